"""Small real homes: the same files in any order give one archive, and looking again changes nothing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace_pipeline.exports.parse import parse_path
from palace_pipeline.ingest import Ingested, ingest
from palace_pipeline.model import to_record
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.normalize import canonical
from palace_pipeline.store.home import Home
from tests.ingest.exports_for_tests import START, chat

Files = dict[str, bytes]


def look(home: Home, *paths: Path) -> Ingested:
    with home.writing():
        return ingest(home, list(paths), batch="test")


def view(home: Home) -> dict[str, dict[str, Any]]:
    """All that an archive knows of each conversation, but for the file it was first seen in (that is history)."""
    found: dict[str, dict[str, Any]] = {}
    with home.ledger() as ledger, home.vault() as vault:
        for row in ledger.rows("SELECT * FROM conversations"):
            key = (row["provider"], row["conversation_id"])
            conversation, _ = canonical(ledger, vault, row)
            found[":".join(key)] = {
                **{name: row[name] for name in ("day", "dated", "messages", "input", "forked_from", "superseded_by")},
                "ids": sorted(ledger.message_hashes(key)),
                "live": [sighting["record"] for sighting in ledger.sightings(key)],
                "transcript": to_record(conversation),
            }
    return found


def archived(files: Files, batches: Sequence[Sequence[str]]) -> dict[str, dict[str, Any]]:
    """The archive after looking at some files, then at some more; then everything is looked at again."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(load_settings(Path(folder) / "home"))
        inbox = Path(folder) / "inbox"
        inbox.mkdir()
        for batch in batches:
            for name in batch:
                (inbox / name).parent.mkdir(parents=True, exist_ok=True)
                (inbox / name).write_bytes(files[name])
            look(home, *(inbox / name for name in batch))
        once = view(home)
        again = look(home, inbox)
        assert again.files["new"] == again.files["updated"] == 0
        assert again.conversations["new"] == again.conversations["updated"] == 0
        assert again.messages["new"] == again.messages["updated"] == 0
        assert again.days == []
        assert view(home) == once
        shown = {f"{c['provider']}:{c['conversation_id']}" for c in parse_path(inbox)["conversations"]}
        assert shown == {key for key, row in once.items() if row["superseded_by"] is None}
        return once


# --- monthly exports of chats that live on ----------------------------------------------------------------------------


def monthly(steps: Sequence[tuple[str, str]]) -> Files:
    """ChatGPT exports, one after each `export` step and one at the end."""
    texts: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    changed: dict[str, float] = {}
    gone: set[str] = set()
    files: Files = {}
    for number, (what, name) in enumerate([*steps, ("export", "")]):
        now = START + 86400 * number
        if what == "export":
            chats = []
            for at, said in texts.items():
                if at not in gone:
                    value = chat(at, *said, updated=changed[at])
                    chats.append({**value, "title": titles[at]})
            files[f"month-{number:02}/conversations.json"] = json.dumps(chats).encode()
        elif what == "say":
            texts.setdefault(name, []).append(f"{name} says {number}")
            titles.setdefault(name, f"Chat {name}")
            gone.discard(name)
            changed[name] = now
        elif name in texts and what == "rename":
            titles[name], changed[name] = f"Renamed {number}", now
        elif name in texts and what == "edit":
            texts[name][-1], changed[name] = f"{name} says otherwise {number}", now
        elif name in texts and what == "delete":
            gone.add(name)
    return files


# --- sessions of a coding agent, resumed and forked -------------------------------------------------------------------


def session(number: int) -> str:
    return f"{number:08}-0000-4000-8000-000000000000"


def line(own: str, uuid: str, parent: str | None, second: int, origin: str | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "type": "user" if second % 2 == 0 else "assistant",
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": own,
        "timestamp": f"2024-05-03T12:{second // 60:02}:{second % 60:02}.000Z",
        "message": {"role": "user" if second % 2 == 0 else "assistant", "content": f"text of {uuid}"},
    }
    if second % 2:
        record["message"]["id"] = f"answer-{uuid}"
    if origin is not None:
        record["forkedFrom"] = {"sessionId": origin, "messageUuid": uuid}
    return record


def sessions(plan: Sequence[tuple[int, int, int]], circle: bool) -> Files:
    """Logs: each (origin, lines taken over, lines of its own). An origin that is not there makes a new session.

    `circle`: the first one claims to be a copy of the last one, too.
    """
    logs: list[list[tuple[str, int]]] = []
    origins: list[int | None] = []
    for number, (origin, taken, own) in enumerate(plan):
        known = logs[origin] if origin < number else []
        copied = known[:taken]
        logs.append(copied + [(f"s{number}m{at}", len(copied) + at) for at in range(own)])
        origins.append(origin if copied else None)
    if circle and len(plan) > 1:
        origins[0] = len(plan) - 1
    files: Files = {}
    for number, lines in enumerate(logs):
        origin = origins[number]
        source = session(origin) if origin is not None else None
        records = [
            line(session(number), uuid, lines[at - 1][0] if at else None, second, None if at else source)
            for at, (uuid, second) in enumerate(lines)
        ]
        if records:
            files[f"projects/{session(number)}.jsonl"] = "".join(json.dumps(r) + "\n" for r in records).encode()
    return files


what = st.sampled_from(["say", "say", "say", "rename", "edit", "delete", "export", "export"])
histories = st.lists(st.tuples(what, st.sampled_from("ab")), min_size=2, max_size=9).map(monthly)
plans = st.builds(
    sessions,
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=5),
    st.booleans(),
)


@st.composite
def orders(draw: Callable[..., Any], files: Files) -> list[list[str]]:
    """The files in any order, looked at one by one or several at a time."""
    names = draw(st.permutations(sorted(files)))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(names) - 1)), max_size=3)))
    return [list(names[a:b]) for a, b in zip([0, *cuts], [*cuts, len(names)], strict=True) if names[a:b]]


def check(data: st.DataObject, files: Files) -> None:
    assert archived(files, data.draw(orders(files))) == archived(files, [sorted(files)])


FEW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(st.data(), histories)
def test_monthly_exports_in_any_order(data: st.DataObject, files: Files) -> None:
    check(data, files)


@FEW
@given(st.data(), plans)
def test_sessions_resumed_and_forked_in_any_order(data: st.DataObject, files: Files) -> None:
    check(data, files)


@pytest.mark.slow
@MANY
@given(st.data(), histories, plans)
def test_many_homes_in_any_order(data: st.DataObject, months: Files, logs: Files) -> None:
    check(data, {**months, **logs})


def test_a_copy_that_outgrows_another_stands_for_both() -> None:
    """Two copies of one session: while one is longer it stands for the origin, and then the other does."""
    short = sessions([(9, 0, 2), (0, 2, 1), (0, 2, 1)], circle=False)
    long = sessions([(9, 0, 2), (0, 2, 1), (0, 2, 3)], circle=False)
    grown = f"projects/{session(2)}.jsonl"
    for files, heir in (({**short}, session(2)), (long, session(2)), ({**long, grown: short[grown]}, session(2))):
        assert archived(files, [[name] for name in files])[f"claude-code:{session(0)}"]["superseded_by"] == heir
    other = sessions([(9, 0, 2), (0, 2, 3), (0, 2, 1)], circle=False)
    assert archived(other, [sorted(other, reverse=True)])[f"claude-code:{session(0)}"]["superseded_by"] == session(1)


def test_sessions_that_claim_to_be_copies_of_each_other_leave_one() -> None:
    files = sessions([(9, 0, 3), (0, 3, 0)], circle=True)
    for order in (sorted(files), sorted(files, reverse=True)):
        found = archived(files, [[name] for name in order])
        assert [row["superseded_by"] for _, row in sorted(found.items())] == [session(1), None]
