"""Whatever happens to a page, the reader takes it or refuses it, and what it takes is written to a fixed point."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.transcripts import front_matter
from palace_pipeline.workspace.reading import SessionError, parse
from palace_pipeline.workspace.session import (
    KEYS,
    MOST_TAGS,
    SUMMARY_LENGTH,
    Session,
    as_entry,
    escaped,
    render,
    unescaped,
)
from tests.workspace.pages_for_tests import TS, a_mutated_page, a_session, path_of


def _to_fixed_point(text: str, path: str | None) -> Session:
    first = parse(text, path)
    written = render(first)
    again = parse(written, path)
    assert render(again) == written
    assert replace(again, problems=first.problems) == again_like(first, again)
    values = front_matter.load(front_matter.split(written)[0] or "")
    assert list(values)[: len(KEYS)] == list(KEYS)
    assert len(again.tags) <= MOST_TAGS
    assert len(again.summary) <= SUMMARY_LENGTH
    return again


def again_like(first: Session, again: Session) -> Session:
    """The first reading: entries that stood side by side without a heading are one from then on."""
    return replace(first, sections=again.sections, extra=again.extra)


@pytest.mark.parametrize("start", range(0, 600, 100))
def test_mutated_pages_are_read_and_come_to_rest(start: int) -> None:
    for seed in range(start, start + 100):
        text, path = a_mutated_page(seed)
        _to_fixed_point(text, path)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100_000, 120_000, 1000))
def test_twenty_thousand_mutated_pages(start: int) -> None:
    for seed in range(start, start + 1000):
        text, path = a_mutated_page(seed)
        _to_fixed_point(text, path)
        try:
            _to_fixed_point(text, None)
        except SessionError:
            continue


@given(st.text(max_size=200))
def test_any_text_is_a_session_where_the_file_name_says_so(text: str) -> None:
    _to_fixed_point(text, path_of(a_session()))


@given(
    st.lists(
        st.text(max_size=80) | st.sampled_from(["## 结论", "\\## To do", "### 2026-11-30T10:00Z", "# x"]), max_size=6
    )
)
def test_no_text_ends_or_begins_an_entry(lines: list[str]) -> None:
    session = a_session(entries=0)
    entry = as_entry("\n".join(lines), TS, "who")
    session.sections["judgement"] = [entry, as_entry("behind", TS)]
    assert parse(render(session), path_of(session)).sections == session.sections


@given(st.text())
def test_escaping_has_an_inverse(text: str) -> None:
    text = text.replace("\r", "")
    assert unescaped(escaped(text)) == text
