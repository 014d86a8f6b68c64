"""What a look at the folders leads to: pure, so every case is a line."""

import itertools
import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.exports.scan import Missing, Seen
from sensors.exports import MOST_SUSPECTS, Request, Watch, identity, request_for
from sensors.retries import FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS, MOST_ATTEMPTS, asked_for, pause_after

NOW = 1_000_000.0
NONE = Watch()


def seen(path: str, *, age: float = 100, size: int = 10) -> Seen:
    at = int((NOW - age) * 1e9)
    return Seen(path, "/in", size, at, at, 1)


def known(item: Seen) -> dict[str, object]:
    return {"size": item.size, "mtime_ns": item.mtime_ns, "inode": item.inode}


def look(*found: Seen | Missing, watch: Watch = NONE, now: float = NOW, **more: object) -> Request:
    return request_for(found, more.pop("known", {}), watch, now, **more)


def test_a_new_file_that_has_settled_is_asked_for() -> None:
    request = look(seen("/in/a.zip"))
    assert request.work is not None
    assert (request.files, request.only, request.leave) == (1, [], [])
    assert len(request.watch.cursor()) < 300


def test_nothing_new_is_a_reason() -> None:
    item = seen("/in/a.zip")
    request = look(item, known={item.path: known(item)})
    assert (request.work, request.reason) == (None, "nothing new")


def test_a_file_still_being_written_is_waited_for_and_does_not_hold_up_the_others() -> None:
    writing = seen("/in/b.zip", age=1)
    assert "still being written" in look(writing).reason
    assert look(seen("/in/a.zip"), writing).work == look(seen("/in/a.zip")).work


def test_a_copy_with_an_old_modification_time_counts_by_its_change_time() -> None:
    assert look(Seen("/in/a.zip", "/in", 10, 1, int((NOW - 1) * 1e9), 1)).work is None


def test_a_clock_that_was_set_back_does_not_keep_a_file_waiting() -> None:
    assert look(seen("/in/a.zip", age=-3600)).work is not None


def test_a_grown_file_is_asked_for_again_as_other_work() -> None:
    old = seen("/in/a.jsonl", size=10)
    first = look(old)
    second = look(seen("/in/a.jsonl", size=20), known={old.path: known(old)}, watch=first.watch)
    assert second.work not in (None, first.work)


def test_a_renamed_file_is_new_and_a_removed_one_is_nothing() -> None:
    old = seen("/in/a.zip")
    assert look(seen("/in/b.zip"), known={old.path: known(old)}).work is not None
    assert look(known={old.path: known(old)}).reason == "nothing new"


def test_system_files_and_links_never_start_a_run() -> None:
    litter = Seen("/in/.DS_Store", "/in", 0, 0, 0, 0, "hidden or system file", expected=True)
    link = Seen("/in/link", "/in", 0, 0, 0, 0, "symbolic link, not followed")
    assert look(litter, link).reason == "nothing new"


def test_a_file_whose_reader_has_changed_is_asked_for() -> None:
    item = seen("/in/a.zip")
    assert look(item, known={item.path: known(item)}, is_current=lambda _: False).work is not None


def test_a_missing_folder_is_named_and_is_no_empty_folder() -> None:
    watch = Watch(suspects={"abc": (1, 5.0)})
    request = look(Missing("/gone"), watch=watch, whole=False)
    assert request.work is None
    assert "not there: /gone" in request.reason
    assert request.watch == watch
    assert look(Missing("/gone"), seen("/in/a.zip")).work is not None


def test_a_cursor_comes_back_as_it_was_and_nonsense_is_none() -> None:
    watch = Watch("w", "a", 1.5, 2, 3.0, {"abc": (1, 5.0)}, 7.0, ("/in", "/in/b"))
    assert Watch.of(watch.cursor()) == watch
    for nonsense in (
        None,
        "",
        "{",
        "[]",
        "7",
        '{"suspects": 3}',
        '{"after": [1]}',
        json.dumps({"key": "k", "attempt": 1}),
    ):
        assert Watch.of(nonsense) == Watch()


# --- files that fail --------------------------------------------------------------------------------------------------


def day_of_a_sensor(
    bad: set[str], files: Sequence[Seen], hours: float, *, tick: float = 20.0
) -> list[tuple[float, Request]]:
    """Ticks every 20 s with a reader that dies at a bad file, having noted what came before it."""
    taken: dict[str, dict[str, object]] = {}
    asked: list[tuple[float, Request]] = []
    watch, now, failed = Watch(), NOW, False
    while now < NOW + hours * 3600:
        request = request_for(files, taken, Watch.of(watch.cursor()), now, failed=failed)
        watch, failed = request.watch, False
        if request.work is not None:
            asked.append((now - NOW, request))
            for item in files:
                wanted = item.path in request.only if request.only else item.path not in request.leave
                if wanted and item.path not in taken:
                    if item.path in bad:
                        failed = True
                        break
                    taken[item.path] = known(item)
        now += tick
    return asked


def test_a_file_that_always_fails_is_left_out_and_tried_alone_ever_more_seldom_and_not_for_ever() -> None:
    files = [seen("/in/a"), seen("/in/b"), seen("/in/c")]
    asked = day_of_a_sensor({"/in/b"}, files, hours=72)
    assert [request.leave for _, request in asked[:2]] == [[], ["/in/b"]]  # the others are in after one pause
    alone = [at for at, request in asked if request.only == ["/in/b"]]
    assert len(alone) == MOST_ATTEMPTS - 1
    pauses = [b - a for a, b in itertools.pairwise(alone)]
    assert pauses == sorted(pauses)
    assert pauses[0] >= FIRST_RETRY_SECONDS
    assert max(pauses) <= LAST_RETRY_SECONDS + 20
    assert len(asked) == 2 + len(alone)


def test_a_failing_file_that_changes_is_a_new_file() -> None:
    item = seen("/in/a")
    watch = Watch(suspects={identity(item): (MOST_ATTEMPTS, 0.0)})
    assert "left until they change" in look(item, watch=watch).reason
    assert look(seen("/in/a", size=11), watch=watch).work is not None


def test_a_file_that_comes_meanwhile_is_not_held_up_by_one_that_fails() -> None:
    bad = seen("/in/a")
    watch = Watch(suspects={identity(bad): (3, NOW + 999)})
    request = look(bad, seen("/in/new"), watch=watch)
    assert (request.files, request.leave) == (1, ["/in/a"])


def test_when_everything_fails_the_pause_grows_whatever_comes_in() -> None:
    files = [seen(f"/in/{n:03}") for n in range(200)]
    asked = day_of_a_sensor({item.path for item in files}, files, hours=24)
    assert len(asked) < 20
    assert all(len(request.watch.suspects) <= MOST_SUSPECTS for _, request in asked)
    assert max(len(request.watch.cursor()) for _, request in asked) < 4096


@given(st.sets(st.integers(0, 9), max_size=4))
def test_the_good_files_are_in_within_an_hour_however_many_are_bad(bad: set[int]) -> None:
    files = [seen(f"/in/{n}") for n in range(10)]
    broken = {f"/in/{n}" for n in bad}
    asked = day_of_a_sensor(broken, files, hours=1)
    done: set[str] = set()
    for _, request in asked:
        for item in files:
            if item.path in request.only if request.only else item.path not in request.leave:
                if item.path in broken:
                    break
                done.add(item.path)
    assert done == {item.path for item in files} - broken


def test_a_run_key_is_never_used_twice_and_the_pause_has_an_end() -> None:
    keys = {asked_for("work", attempts, {})[0] for attempts in range(5)}
    assert len(keys) == 5
    assert pause_after(0) == 0
    assert pause_after(1) == FIRST_RETRY_SECONDS
    assert pause_after(50) == LAST_RETRY_SECONDS
