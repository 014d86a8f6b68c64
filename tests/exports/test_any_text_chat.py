"""What holds for every text that is read as a chat: no word is lost, readings are stable, what was written comes back."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import notes
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.markdown_chat import match_line
from palace_pipeline.exports.plaintext import fenced_lines
from palace_pipeline.exports.text import clean_text
from palace_pipeline.exports.written_times import day_heading
from palace_pipeline.model import Conversation, Message
from tests.exports.test_text_chats import turns

# --- what holds for any text ------------------------------------------------------------------------------------------

_LINES = st.one_of(
    st.sampled_from(
        [
            "> a", ">", ">b", "> > c", "**You:** q", "**ChatGPT:**", "**You:**", "## User", "## Assistant", "## System",
            "### User", "# Title", "# 2024-03-15", "## 2024-03-16", "---", "```", "~~~", "````py", "", " ", "text",
            "  indented", "- **Theo:** x", "- **Ana:** y", "  y2", "**Theo** (2024-03-15 10:00): z",
            "**[10:00] Ana:** w", "> [!NOTE]",
            "Alice (2024-03-15 18:37:00 UTC): hi", "Bob, 3/15/2024 6:37 PM: ho", "User: a", "Assistant: b", "你好",
            "**Theo:** x", "**Ana:** y", "[03/15/2024 6:37 PM] Alice", "**User**", "**Cursor**", "\ufeff", "\u2028",
        ]
    ),
    st.text(alphabet="#>*-`[]():~ \tA1a你é\u2028\u200f🙂|_", max_size=14),
)  # fmt: skip
_BEGINNINGS = st.sampled_from(
    [
        [], ["> q", "a", ""], ["# T", "**You:** q", "**ChatGPT:** a"], ["## User", "q", "## Assistant", "a"],
        ["- **Theo:** 1", "- **Ana:** 2", "- **Theo:** 3", "- **Ana:** 4"],
        ["# 2024-03-15", "**[10:00] A:** w", "**[10:01] A:** x"],
        ["Alice (2024-03-15 18:37:00 UTC): hi", "Bob (2024-03-15 18:38:00 UTC): ho"],
        ["User: q", "Assistant: a", "User: b"], ["front", "**User**", "q", "---", "**Cursor**", "a", "---"],
        ["[03/15/2024 6:37 PM] A", "x", "[03/15/2024 6:38 PM] A", "y"],
    ]
)  # fmt: skip
_TEXTS = st.one_of(
    st.tuples(_BEGINNINGS, st.lists(_LINES, max_size=12)).map(lambda parts: "\n".join([*parts[0], *parts[1]])),
    st.text(max_size=60),
)


def bare(text: str) -> str:
    return "".join(text.split())


def is_syntax(line: str, kept: str, conversation: Conversation) -> bool:
    """Whether a line may lose all but `kept`: it is a speaker's, a day, a title or a rule."""
    if line.startswith(">") and kept == bare(line[1:]):
        return True
    found = match_line(line)
    if found is not None and kept == bare(found[1].text):
        return True
    if kept:
        return False
    title = line.startswith("# ") and line[2:].strip().rstrip("#").strip() == conversation.title
    return title or day_heading(line) is not None or bare(line) in ("---", "***", "___")


@settings(max_examples=400, deadline=None)
@given(_TEXTS)
def test_no_reading_loses_text(text: str) -> None:
    """All characters that are no blanks and no syntax stand in the messages, in order."""
    report = Report("t.md")
    clean = clean_text(text)
    if not clean.strip():
        return
    conversation = notes.read_as_text(clean, "t.md", report)
    out = "".join(bare(message.text) for message in conversation.messages)
    if conversation.provider != "transcript":
        assert out == bare(clean)
        return
    places = {0}
    for line in clean.split("\n"):
        whole = bare(line)
        after = {place + len(whole) for place in places if out.startswith(whole, place)}
        for place in places:
            for start in range(len(whole) + 1):
                kept = whole[start:]
                if out.startswith(kept, place) and is_syntax(line, kept, conversation):
                    after.add(place + len(kept))
        assert after, "a line is lost"
        places = after
    assert len(out) in places


@settings(max_examples=200, deadline=None)
@given(_TEXTS)
def test_readings_are_stable_and_ids_unique(text: str) -> None:
    clean = clean_text(text)
    if not clean.strip():
        return
    first, again = (notes.read_as_text(clean, "t.md", Report("t.md")) for _ in range(2))
    assert first == again
    ids = [message.message_id for message in first.messages]
    assert len(set(ids)) == len(ids)
    assert all(message.text or message.attachment for message in first.messages)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20),
            st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20),
        ),
        min_size=2,
        max_size=6,
    )
)
def test_what_is_written_as_a_transcript_comes_back(pairs: list[tuple[str, str]]) -> None:
    def flat(text: str) -> str:
        return "x" + "".join(c for c in text if unicodedata.category(c)[0] in "LNP" and c not in ">`~").strip()

    exchanges = [(flat(question), flat(answer)) for question, answer in pairs]
    text = "\n\n".join(f"> {question}\n{answer}" for question, answer in exchanges)
    expected = [turn for q, a in exchanges for turn in (("user", q), ("assistant", a))]
    assert turns(text) == expected


def naive_fences(lines: list[str]) -> list[int]:
    """The slow and obvious way to find closed code fences."""

    def mark(line: str) -> tuple[str, int, str] | None:
        bare_line = line.lstrip(" \t")
        character = bare_line[:1]
        length = len(bare_line) - len(bare_line.lstrip(character)) if character in ("`", "~") else 0
        return (character, length, bare_line[length:]) if length >= 3 else None

    inside = [0] * len(lines)
    at = 0
    while at < len(lines):
        opened = mark(lines[at])
        if opened and not (opened[0] == "`" and "`" in opened[2]):
            for end in range(at + 1, len(lines)):
                closed = mark(lines[end])
                if closed and closed[0] == opened[0] and closed[1] >= opened[1] and not closed[2].strip():
                    inside[at : end + 1] = [1] * (end + 1 - at)
                    at = end
                    break
        at += 1
    return inside


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(alphabet="`~ ax", max_size=6), max_size=12))
def test_fences(lines: list[str]) -> None:
    assert list(fenced_lines(lines)) == naive_fences(lines)


@pytest.mark.parametrize(
    "unit", ["> \n", "> a\n\nb\n\n", "**x:**\n", "```\n", "`" * 50 + "\n", "**x:** ", "[", "#", "## ", "- ", "> "]
)
def test_a_long_file_of_one_mark_is_read(unit: str) -> None:
    """Quadratic work would take hours here."""
    text = unit * (400_000 // len(unit))
    conversation = notes.read_as_text(text, "t.md", Report("t.md")) if text.strip() else None
    assert conversation is not None
    assert isinstance(conversation.messages[0], Message)
