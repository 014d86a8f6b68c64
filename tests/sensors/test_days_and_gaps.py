"""Which ranges are asked for, and when source and archive are compared: pure."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.planner import Range
from sensors.days import Asked, Quiet, ranges_to_ask
from sensors.gaps import LATEST_SECONDS, REST_SECONDS, SOONEST_SECONDS, wait_for_look
from sensors.gaps import Asked as Looked
from sensors.retries import MOST_ATTEMPTS, Tried, pause_after

NOW = 1_000_000.0
DAY = date(2024, 5, 3)


def spans(count: int) -> list[tuple[Range, str]]:
    days = [DAY + timedelta(days=20 * n) for n in range(count)]
    return [(Range(day, day), f"work{n}") for n, day in enumerate(days)]


def test_new_work_is_asked_for_at_once_and_bounded_by_tick() -> None:
    asked = ranges_to_ask(spans(50), lambda _: Tried(), NOW, most=20)
    assert len(asked.ranges) == 20
    assert {attempts for _, _, attempts in asked.ranges} == {0}


def test_work_that_failed_waits_longer_each_time_and_does_not_hold_up_other_work() -> None:
    before = {"work0": Tried(1, NOW - 10), "work1": Tried(3, NOW - 200), "work2": Tried(1, NOW - 61)}
    asked = ranges_to_ask(spans(4), lambda work: before.get(work, Tried()), NOW)
    assert [(work, attempts) for _, work, attempts in asked.ranges] == [("work2", 1), ("work3", 0)]
    assert asked.waiting == 2
    assert asked.next_at == NOW + 40  # three attempts: 240 s after the last one ended


def test_work_that_always_fails_is_not_tried_for_ever() -> None:
    asked = ranges_to_ask(spans(1), lambda _: Tried(MOST_ATTEMPTS, 0.0), NOW)
    assert (asked.ranges, asked.given_up) == ([], 1)
    assert "palace ingest" in asked.reason(NOW)
    assert Asked().reason(NOW) == "every day is up to date"


@given(st.lists(st.integers(0, MOST_ATTEMPTS + 2), max_size=30), st.floats(0, 1e5))
def test_every_range_is_asked_for_waits_or_is_given_up(attempts: list[int], age: float) -> None:
    before = {f"work{n}": Tried(count, NOW - age) for n, count in enumerate(attempts)}
    asked = ranges_to_ask(spans(len(attempts)), before.__getitem__, NOW, most=99)
    assert len(asked.ranges) + asked.waiting + asked.given_up == len(attempts)
    assert all(age >= pause_after(count) for _, _, count in asked.ranges)


def test_a_cursor_that_cannot_be_read_is_none() -> None:
    for nonsense in (None, "", "[]", "{", '{"state": "x"}'):
        assert Quiet.of(nonsense) == Quiet()
        assert Looked.of(nonsense) == Looked()


def wait(last: Looked, log: int, now: float) -> float:
    return wait_for_look(last.looked_at(log, now), Tried(), now)


def test_source_and_archive_are_compared_after_work_and_once_a_day_without_any() -> None:
    last = Looked(NOW, 7, 7, NOW)
    assert wait(last, 7, NOW + SOONEST_SECONDS) > 0
    assert wait(last, 7, NOW + LATEST_SECONDS) <= 0
    grown = last.looked_at(8, NOW + 60)
    assert wait(grown, 8, NOW + SOONEST_SECONDS - 1) > 0
    assert wait(grown, 8, NOW + SOONEST_SECONDS) <= 0


def test_nothing_is_compared_while_work_goes_on() -> None:
    last, now = Looked(), NOW
    for log in range(5):  # a stage ends every five minutes
        last, now = last.looked_at(log, now), now + 300
        assert wait_for_look(last, Tried(), now) > 0
    assert wait_for_look(last, Tried(), now + REST_SECONDS) <= 0


def test_a_clock_that_was_set_back_puts_a_look_off_by_an_hour_at_most() -> None:
    last = Looked(NOW + 10**9, 7, 8, NOW + 10**9)
    assert wait(last, 8, NOW) == SOONEST_SECONDS
    assert Looked.of(last.cursor()) == last
