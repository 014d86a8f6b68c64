"""What has work, and in how few ranges."""

import itertools
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.planner import EVER, STAGES, Range, Recipes, due, plan, ranges, stale_days, watch
from palace_pipeline.store.ledger import Ledger

DAY = date(2024, 5, 3)
NOW = Recipes(merge="1", redaction="1", chunks="1", rooms="1", pages="1", vectors="1", tables="1")


def ledger_with(*days: date) -> Ledger:
    ledger = Ledger(None)
    for number, day in enumerate(days):
        ledger.write(
            "INSERT INTO conversations (provider, conversation_id, day, dated, first_seen_day, input, messages) "
            "VALUES ('chatgpt', ?, ?, 1, ?, 'in', 2)",
            (f"c{number}", day.isoformat(), day.isoformat()),
        )
    return ledger


def build(ledger: Ledger, recipes: Recipes = NOW, *, out: str = "x") -> list[str]:
    """Do the work of every stage in the order of the flow; returns the stages that had any."""
    had: list[str] = []
    everything = Range(date(2000, 1, 1), date(2030, 1, 1))
    for stage in ("normalized", "redacted", "chunks", "drawers", "pages", "vectors", "tables"):
        rows = due(ledger, stage, everything, recipes)
        if rows:
            had.append(stage)
        ledger.mark_built(
            stage, [((r["provider"], r["conversation_id"]), r["made_from"], f"{stage}-{out}") for r in rows]
        )
    return had


def test_a_new_conversation_is_work_for_every_stage_once() -> None:
    ledger = ledger_with(DAY)
    assert stale_days(ledger, NOW) == [DAY]
    assert build(ledger) == ["normalized", "redacted", "chunks", "drawers", "pages", "vectors", "tables"]
    assert plan(ledger, NOW) == []


def test_an_input_that_leaves_the_transcript_as_it_was_costs_nothing_downstream() -> None:
    ledger = ledger_with(DAY)
    build(ledger)
    ledger.write("UPDATE conversations SET input = 'another sighting'")
    assert stale_days(ledger, NOW) == [DAY]
    assert build(ledger) == ["normalized"]


def test_a_changed_recipe_marks_the_stages_that_depend_on_it() -> None:
    ledger = ledger_with(DAY)
    build(ledger)
    rooms = Recipes(**{**vars_of(NOW), "rooms": "2"})
    assert build(ledger, rooms) == ["drawers"]
    assert build(ledger, Recipes(**{**vars_of(rooms), "pages": "2"})) == ["pages", "tables"]
    redaction = Recipes(**{**vars_of(rooms), "pages": "2", "redaction": "2"})
    assert build(ledger, redaction, out="y") == ["redacted", "chunks", "drawers", "pages", "vectors", "tables"]


def vars_of(recipes: Recipes) -> dict[str, str]:
    return {name: getattr(recipes, name) for name in Recipes.__slots__}


def test_force_takes_all_conversations_of_the_days_and_no_others() -> None:
    ledger = ledger_with(DAY, DAY + timedelta(days=1))
    build(ledger)
    span = Range(DAY, DAY)
    assert due(ledger, "normalized", span, NOW) == []
    assert [row["conversation_id"] for row in due(ledger, "normalized", span, NOW, force=True)] == ["c0"]


def test_a_day_that_lost_a_conversation_is_planned_too() -> None:
    ledger = ledger_with()
    ledger.write("INSERT INTO left_days VALUES ('2024-01-01')")
    assert plan(ledger, NOW) == [Range(date(2024, 1, 1), date(2024, 1, 1))]


@given(st.sets(st.dates(date(2015, 1, 1), date(2015, 12, 31)), max_size=60), st.integers(1, 20))
def test_ranges_hold_every_day_and_are_far_enough_apart(days: set[date], gap: int) -> None:
    found = ranges(days, gap)
    assert {day for day in days for span in found if day in span} == days
    assert all(span.first in days and span.last in days for span in found)
    assert all((after.first - before.last).days > gap for before, after in itertools.pairwise(found))


def test_neighbours_share_a_range() -> None:
    days = [DAY, DAY + timedelta(days=1), DAY + timedelta(days=5), DAY + timedelta(days=40)]
    assert ranges(days, 4) == [
        Range(DAY, DAY + timedelta(days=5)),
        Range(DAY + timedelta(days=40), DAY + timedelta(days=40)),
    ]
    assert len(Range(DAY, DAY + timedelta(days=5)).days()) == 6


# --- the list of what has work ----------------------------------------------------------------------------------------

what = st.sampled_from(["new", "input", "build", "undo", "recipe", "move"])


@given(st.lists(st.tuples(what, st.integers(0, 4)), max_size=25))
def test_the_watched_ledger_says_what_a_look_at_all_says(steps: list[tuple[str, int]]) -> None:
    ledger, recipes = ledger_with(), NOW
    watch(ledger, recipes)
    for number, (step, at) in enumerate(steps):
        name = f"c{at}"
        if step == "new":
            sql = "INSERT OR IGNORE INTO conversations (provider, conversation_id, day, dated, first_seen_day, input, messages"
            sql += ") VALUES ('chatgpt', ?, ?, 1, ?, 'in', 2)"
            day = (DAY + timedelta(days=at)).isoformat()
            ledger.write(sql, (name, day, day))
        elif step == "input":
            ledger.write("UPDATE conversations SET input = ? WHERE conversation_id = ?", (f"in {number}", name))
        elif step == "move":
            ledger.write("UPDATE conversations SET day = '2024-06-01' WHERE conversation_id = ?", (name,))
        elif step == "undo":
            ledger.write("UPDATE conversations SET pages_in = NULL WHERE conversation_id = ?", (name,))
        elif step == "build":
            build(ledger, recipes, out=f"{number}")
        else:
            recipes = Recipes(**{**vars_of(NOW), "rooms": f"it's {number}"})
            watch(ledger, recipes)
        assert stale_days(ledger, recipes) == by_comparing_all(ledger, recipes)


def by_comparing_all(ledger: Ledger, recipes: Recipes) -> list[date]:
    stale: set[date] = set()
    for stage in STAGES:
        stale |= {date.fromisoformat(row["day"]) for row in due(ledger, stage, EVER, recipes)}
        rows = ledger.rows(f"SELECT day FROM conversations WHERE {stage}_in IS NULL")
        stale |= {date.fromisoformat(row["day"]) for row in rows}
    return sorted(stale)


def test_planning_reads_the_list_and_not_all_conversations() -> None:
    ledger = ledger_with(DAY)
    watch(ledger, NOW)
    said: list[str] = []
    ledger.db.set_trace_callback(said.append)
    stale_days(ledger, NOW)
    ledger.db.set_trace_callback(None)
    plan_of_sqlite = [row["detail"] for row in ledger.rows(f"EXPLAIN QUERY PLAN {said[0]}")]
    assert any("stale_" in detail for detail in plan_of_sqlite), plan_of_sqlite
    assert "SCAN conversations" not in plan_of_sqlite
