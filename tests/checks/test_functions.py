"""The checks' own functions on values made by hand or by hypothesis."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.checks import CHECKS
from palace_pipeline.checks.exports import fresh
from palace_pipeline.checks.messages import QUALITY, band, out_of_range, said_twice, twice
from palace_pipeline.checks.pages import unlike
from palace_pipeline.checks.result import Check, Found, Problem
from palace_pipeline.checks.tables import RULES
from palace_pipeline.checks.words import differences
from palace_pipeline.doctor import days_of
from palace_pipeline.exports.scan import Missing, Seen
from palace_pipeline.model import (
    CHUNKS,
    KEY_SCHEMA,
    LAKE,
    MESSAGES,
    UTC_TIME,
    Attachment,
    Chunk,
    Conversation,
    Message,
    frame,
)
from palace_pipeline.planner import Range
from palace_pipeline.stages.chunk import _row
from palace_pipeline.transcripts.page import PageHead, parse, render
from palace_pipeline.transcripts.rows import message_rows
from tests.test_chunking import chunks_of
from tests.transcripts.test_page import chats

DAY = date(2024, 5, 3)
AT = datetime(2024, 5, 3, 12, 0, 7, 125, UTC)


def messages(conversation: Conversation) -> pl.DataFrame:
    return frame(message_rows(conversation, DAY), MESSAGES)


def rows_of(conversation: Conversation, chunks: list[Chunk]) -> pl.DataFrame:
    head = {"day": DAY, "provider": conversation.provider, "conversation_id": conversation.conversation_id}
    return frame([_row(head, chunk) for chunk in chunks], CHUNKS)


# --- words ------------------------------------------------------------------------------------------------------------

texts = st.text(max_size=60) | st.lists(
    st.sampled_from(["apple", "梨子", "\n\n", "# Top", " ", "\x1c", "　", "é"])
).map("".join)
attachments = st.lists(st.builds(Attachment, name=st.just("a.txt"), text=st.none() | texts), max_size=2)
rows = st.builds(
    Message,
    message_id=st.uuids().map(str),
    role=st.sampled_from(["user", "assistant", "bot", "tool", "system", "thinking"]),
    text=texts,
    kind=st.sampled_from(["text", "tool_call", "thinking", "attachment"]),
    speaker=st.sampled_from([None, "", "Ann", "李雷"]),
    attachment=attachments,
    branch_active=st.sampled_from([True, True, True, False]),
    hidden_reason=st.sampled_from([None, None, None, "context"]),
)
talks = st.builds(
    Conversation,
    provider=st.sampled_from(["chatgpt", "slack", "claude-code", "markdown"]),
    conversation_id=st.just("c"),
    messages=st.lists(rows, max_size=6),
)


@given(talks)
@settings(max_examples=60)
def test_the_chunks_of_any_conversation_hold_its_words(conversation: Conversation) -> None:
    assert differences(messages(conversation), rows_of(conversation, chunks_of(conversation))) == []


@given(talks, st.data())
@settings(max_examples=40)
def test_a_lost_or_doubled_chunk_is_always_seen(conversation: Conversation, data: st.DataObject) -> None:
    chunks = chunks_of(conversation)
    if not chunks:
        return
    which = data.draw(st.integers(0, len(chunks) - 1))
    for wrong in ([*chunks[:which], *chunks[which + 1 :]], [*chunks, chunks[which]]):
        (problem,) = differences(messages(conversation), rows_of(conversation, wrong))
        assert problem.key == (conversation.provider, "c")


# --- pages ------------------------------------------------------------------------------------------------------------


@given(chats)
@settings(max_examples=40)
def test_any_page_reads_back_to_its_rows(conversation: Conversation) -> None:
    assert unlike(parse(render(conversation, PageHead(DAY))), conversation) is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"text": "other"}, "another text of message 1"),
        ({"role": "assistant"}, "another role of message 1"),
        ({"created_at": AT + timedelta(microseconds=1)}, "another created_at of message 1"),
        ({"message_id": "n"}, "another message_id of message 1"),
        ({"branch_active": False}, "reads back to 1 messages instead of 0"),
    ],
)
def test_a_page_of_other_rows_is_told_apart(changed: dict[str, object], said: str) -> None:
    row = Message("m", "user", "text", created_at=AT, speaker="Ann")
    page = parse(render(Conversation("chatgpt", "c", [row]), PageHead(DAY)))
    assert said in (unlike(page, Conversation("chatgpt", "c", [replace(row, **changed)])) or "")  # pyright: ignore


# --- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "text", "expected"),
    [
        ("chatgpt", "", "empty"),
        ("chatgpt", " \n ", "empty"),
        ("chatgpt", "a", "too short"),
        ("chatgpt", "好", "too short"),
        ("session", "a", "healthy"),
        ("whatsapp", "好", "healthy"),
        ("whatsapp", "👍", "healthy"),
        ("whatsapp", "a", "too short"),
        ("slack", "네", "healthy"),
        ("chatgpt", "ok", "healthy"),
        ("chatgpt", "继续", "healthy"),
        ("chatgpt", "x" * 30_000, "healthy"),
        ("chatgpt", "x" * 30_001, "too long"),
        ("markdown", "x" * 30_001, "healthy"),
    ],
)
def test_the_band_of_a_message(provider: str, text: str, expected: str) -> None:
    found = messages(Conversation(provider, "c", [Message("m", "user", text)])).select(band()).item()
    assert found == expected


def test_an_attachment_without_words_is_no_empty_message() -> None:
    alone = Message("m", "user", "", attachment=[Attachment("a.png")])
    picture = Message("n", "user", "", kind="image")
    assert (
        messages(Conversation("chatgpt", "c", [alone, picture])).select(band()).to_series().to_list() == ["healthy"] * 2
    )


@pytest.mark.parametrize(
    ("bad", "total", "passed"), [(2, 2, True), (3, 61, True), (3, 60, False), (50, 1_000, False), (49, 1_000, True)]
)
def test_five_in_a_hundred_are_too_many_but_two_prove_nothing(bad: int, total: int, passed: bool) -> None:
    found = Found()
    found.shares.update({("claude", "empty"): bad, ("claude", "healthy"): total - bad})
    assert QUALITY.finish is not None
    QUALITY.finish(None, found)  # pyright: ignore[reportArgumentType] - it needs no look
    result = QUALITY.result(found)
    assert result.passed is passed
    assert result.rows == [
        {
            "format": "claude",
            "messages": total,
            "empty %": round(100 * bad / total, 2),
            "too short %": 0.0,
            "too long %": 0.0,
            "healthy %": round(100 * (total - bad) / total, 2),
        }
    ]


def test_the_same_words_are_doubled_only_at_one_exact_instant() -> None:
    def chat(*said: Message) -> pl.DataFrame:
        return messages(Conversation("telegram", "c", list(said)))

    first = Message("a", "user", "ok", created_at=AT, speaker="Ann")
    assert len(said_twice(chat(first, replace(first, message_id="b")))) == 1
    minute = AT.replace(second=0, microsecond=0)
    coarse = replace(first, created_at=minute)
    for other in (
        replace(first, message_id="b", created_at=AT + timedelta(seconds=1)),
        replace(first, message_id="b", speaker="Ben"),
        replace(first, message_id="b", text="no"),
        replace(first, message_id="b", branch_active=False),
        replace(first, message_id="b", created_at=None),
    ):
        assert said_twice(chat(first, other)) == []
    assert said_twice(chat(coarse, replace(coarse, message_id="b"))) == []
    assert twice(chat(first, first)) != []
    assert said_twice(chat(first, first)) == []  # that is told already


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (AT, None),
        (AT + timedelta(days=1), None),
        (AT + timedelta(days=1, seconds=1), "younger than the export"),
        (datetime(2009, 12, 31, 23, 59, 59, tzinfo=UTC), "from before 2010-01-01"),
        (datetime(2024, 5, 2, 23, 59, 59, tzinfo=UTC), "older than the day"),
    ],
)
def test_times_that_can_be(at: datetime, said: str | None) -> None:
    read = pl.DataFrame([("chatgpt", "c", AT)], schema={**KEY_SCHEMA, "read_at": UTC_TIME}, orient="row")
    chat = messages(Conversation("chatgpt", "c", [Message("m", "user", "x", created_at=at)]))
    problems = out_of_range(chat, read, date(2010, 1, 1))
    assert len(problems) == (said is not None)
    assert all(said is not None and said in problem.what for problem in problems)


# --- schemas, results, sources ----------------------------------------------------------------------------------------


def test_every_table_has_a_rule_over_its_own_columns() -> None:
    assert set(RULES) == set(LAKE)
    for table, rule in RULES.items():
        named = {*rule.required, *(name for unique in rule.unique for name in unique), *rule.values, *rule.bounds}
        assert named <= set(LAKE[table]), table
        assert {"day", "provider", "conversation_id"} <= set(rule.required)


def test_names_of_checks_are_their_own_and_gates_come_before_publishing() -> None:
    assert len({(check.asset, check.name) for check in CHECKS}) == len(CHECKS)
    gates = {(check.asset, check.name) for check in CHECKS if check.blocking}
    assert gates == {
        ("normalized_transcripts", "schema_holds"),
        ("normalized_transcripts", "no_message_is_doubled"),
        ("redacted_transcripts", "schema_holds"),
        ("redacted_chunks", "schema_holds"),
        ("drawers", "schema_holds"),
    }


def test_a_result_says_the_worst_first_and_each_command_once() -> None:
    check = Check("x", "drawers", "drawers", "", lambda part, found: None)
    found = Found()
    found.note([Problem("odd", mend="look", severity="warn")])
    assert check.result(found).severity == "warn"
    days = [DAY + timedelta(days=n) for n in (0, 1, 2, 200)]
    found.note(Problem(f"wrong {n}", "t", day, ("p", "c")) for n, day in enumerate(days))
    result = check.result(found)
    assert (result.passed, result.severity, result.count) == (False, "error", 5)
    assert result.said.startswith("t, 2024-05-03, p c: wrong 0; ")
    assert "and 2 more" in result.said
    assert result.mends == [
        "palace backfill --from 2024-05-03 --to 2024-05-05",
        "palace backfill --from 2024-11-19 --to 2024-11-19",
        "look",
    ]
    found.note(Problem("again", "t", DAY) for _ in range(5_000))
    assert check.result(found).count == 5_005
    assert len(found.problems) == 1_000


def test_a_source_is_stale_when_its_new_files_stay_outside() -> None:
    now = 1_000_000_000.0

    def seen(name: str, days: float, root: str = "/in") -> Seen:
        at = int((now - days * 86_400) * 1e9)
        return Seen(f"{root}/{name}", root, 10, at, at, 1)

    old, new, taken = seen("old", 5), seen("new", 1), seen("taken", 50)
    known = {taken.path: {"size": 10, "mtime_ns": taken.mtime_ns, "inode": 1}}
    assert fresh([new, taken], known, lambda row: True, now).passed
    result = fresh([old, seen("older", 9), new, taken, Missing("/gone")], known, lambda row: True, now)
    assert (result.passed, result.severity, result.blocking) == (False, "warn", False)
    assert result.figures == {"files": 4, "files not in yet": 3}
    assert "/in: 2 new file(s) are not in; the oldest has waited 9 days" in result.said
    assert "/gone: the source is not there" in result.said
    # A reader that has changed makes work as a new file does.
    assert not fresh([taken], known, lambda row: False, now).passed


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("1", "2024-05-03", "2024-05-03"),
        ("30", "2024-04-04", "2024-05-03"),
        ("2024-05-01", "2024-05-01", "2024-05-01"),
        ("2024-05-01..2024-05-31", "2024-05-01", "2024-05-31"),
    ],
)
def test_the_days_that_doctor_is_asked_for(text: str, first: str, last: str) -> None:
    assert days_of(text, DAY) == Range(date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize("text", ["", "x", "2024-05-31..2024-05-01", "2024-13-01"])
def test_days_that_are_none(text: str) -> None:
    with pytest.raises(ValueError):
        days_of(text, DAY)
