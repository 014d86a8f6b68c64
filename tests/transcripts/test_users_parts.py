"""What a person writes on a page is theirs: it is found again, and what they changed elsewhere is noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.transcripts.page import PageError, parse, render, take_over
from tests.transcripts.test_page import CHAT, HEAD, MINE, OWN, on_page, plain

# --- the user's parts -------------------------------------------------------------------------------------------------


def edited(page: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in page
        page = page.replace(old, new, 1)
    return page


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [('tags:\n  - a tag\n  - "2024"\n', "tags: [a tag, 2024]\n")],
        [('tags:\n  - a tag\n  - "2024"\n', "tags: a tag, 2024\n")],
        [("## Notes\n", "##  notes \n")],
        [("end -->\n\n## Notes\n", "end -->\n## Notes\n")],
        [
            ('title: "Closing a pool: how?"', "title: 'Closing a pool: how?'"),
            ("date: 2024-05-03", "date: '2024-05-03'"),
        ],
        [("rating: 5\n", ""), ("tags:", "rating: 5\ntags:")],
    ],
)
def test_the_users_parts_survive_what_note_programs_do_to_a_page(changes: list[tuple[str, str]]) -> None:
    page = edited(render(CHAT, HEAD, MINE), *changes)
    for text in (page, "\ufeff" + page):
        taken = take_over(text)
        assert (taken.user, taken.complete, taken.intact, taken.key) == (MINE, True, True, CHAT.key)
        assert parse(text).user == MINE


def test_line_ends_of_windows() -> None:
    page = render(CHAT, HEAD, MINE).replace("\n", "\r\n")
    taken = take_over(page)
    assert taken.user == replace(MINE, notes="\r\nmy words\r\n")
    assert (taken.complete, taken.intact) == (True, True)
    assert parse(page).conversation == parse(render(CHAT, HEAD)).conversation


@pytest.mark.parametrize(
    ("changes", "notes"),
    [
        ([("## Notes\n", "## My thoughts\n")], "\n## My thoughts\n\nmy words\n"),
        ([("## Notes\n", "before\n\n## Notes\n")], "\nbefore\n\n## Notes\n\nmy words\n"),
        ([("## Notes\n\nmy words\n", "")], ""),
    ],
)
def test_a_changed_notes_heading_loses_nothing(changes: list[tuple[str, str]], notes: str) -> None:
    taken = take_over(edited(render(CHAT, HEAD, MINE), *changes))
    assert (taken.user, taken.complete) == (replace(MINE, notes=notes), True)
    again = take_over(render(CHAT, HEAD, taken.user))
    assert again.user == taken.user


@pytest.mark.parametrize(
    "change",
    [
        ("How do I close it?", "How do I open it?"),
        ("How do I close it?", "How do I close it?\n\nmy remark"),
        ("# Closing", "# My closing"),
        ('title: "Closing a pool: how?"', "title: Mine"),
        ("  - databases\n", ""),
        ("message_count: 3", "message_count: 4"),
        ("date: 2024-05-03", "date: 2024-05-04"),
        ("redactions: 3\n", ""),
        ("\n\nChatGPT ·", "\n\nan introduction\n\nChatGPT ·"),
    ],
)
def test_what_a_person_changed_elsewhere_is_noticed(change: tuple[str, str]) -> None:
    taken = take_over(edited(render(CHAT, HEAD, MINE), change))
    assert (taken.user, taken.complete, taken.intact) == (MINE, True, False)


@pytest.mark.parametrize(
    "change",
    [
        ("aliases:\n  - Pool\nrating: 5\n---\n", ""),
        ("tags:\n", "tags: [\n"),
        ("  - a tag\n", "  - a: [tag]\n"),
        (" end -->", " end"),
        ("redactions: 3\n", "redactions: &n 3\nrating: *n\n"),
    ],
    ids=["front matter torn", "no YAML", "tags of another form", "end mark gone", "a value that hangs on another"],
)
def test_parts_that_cannot_be_read_are_said_to_be_incomplete(change: tuple[str, str]) -> None:
    taken = take_over(edited(render(CHAT, HEAD, MINE), change))
    assert not taken.complete
    assert taken.user.notes == MINE.notes


@pytest.mark.parametrize("text", ["", "just a note\n", "---\ntype: note\n---\nx\n", OWN[:700], OWN[:300]])
def test_what_is_no_page_is_refused(text: str) -> None:
    with pytest.raises(PageError):
        parse(text)
    assert not take_over(text).complete


@given(st.integers(0, len(OWN)), st.integers(0, len(OWN)), plain)
def test_a_damaged_page_never_breaks_the_reader(start: int, end: int, text: str) -> None:
    damaged = OWN[:start] + text + OWN[end:]
    taken = take_over(damaged)
    assert taken.intact <= (taken.key == CHAT.key)
    try:
        parsed = parse(damaged)
    except PageError:
        return
    if parsed.intact:
        assert parsed.conversation == parse(OWN).conversation


def test_a_comment_line_that_cannot_be_read_costs_one_message() -> None:
    parsed = parse(edited(OWN, ('{"role":"thinking"', '{"role:thinking"')))
    assert [m.message_id for m in parsed.conversation.messages] == ["m1", "m3", "m4", "m5", "m6"]
    assert parsed.problems == ("comment line 2 cannot be read",)
    numbers = {m.message_id: number for number, m in enumerate(parsed.whole().messages) if on_page(m)}
    assert numbers == {"m1": 0, "m3": 2, "m4": 3, "m5": 4, "m6": 5}
