"""File names of pages."""

from __future__ import annotations

import unicodedata
from datetime import date
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.transcripts.page_path import page_folder, page_name, parse_name, slug


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Planning the Widget Co launch!", "planning-the-widget-co-launch"),
        ("  Why: does_it -- break? ", "why-does-it-break"),
        ("数据库连接池,端口错配", "数据库连接池-端口错配"),
        ("Cafe\u0301 CRÈME", "café-crème"),
        ("हिन्दी में बात", "हिन्दी-में-बात"),
        ("x² ½ ٣ v1.0", "x-٣-v1-0"),
        ("🚀🚀", "untitled"),
        ("", "untitled"),
        (None, "untitled"),
        ("../../etc/passwd", "etc-passwd"),
        ("a" * 47 + " bcd", "a" * 47),
        ("İstanbul", "i̇stanbul"),
    ],
)
def test_slug(title: str | None, expected: str) -> None:
    assert slug(title) == expected


@given(st.text(max_size=120))
def test_any_title_gives_a_safe_short_stable_name(title: str) -> None:
    made = slug(title)
    assert 1 <= len(made) <= 48
    assert not made.startswith("-")
    assert not made.endswith("-")
    assert "--" not in made
    assert all(c == "-" or c.isalnum() or unicodedata.category(c)[0] == "M" for c in made)
    assert unicodedata.is_normalized("NFC", made)
    name = page_name(date(2024, 5, 3), title, "chatgpt", "c1")
    # The longest name beside a page is that of a conflict's copy; 255 bytes is what file systems take.
    assert len(name.encode()) + len(".conflict-99") <= 255
    assert parse_name(name) == (date(2024, 5, 3), name[-11:-3])


def test_name_and_folder_of_a_page() -> None:
    # echo -n 'chatgpt:abc' | sha256sum
    assert page_name(date(2024, 5, 3), "Hello, world", "chatgpt", "abc") == "2024-05-03-hello-world-7e7a8ea1.md"
    assert page_folder(date(2024, 5, 3), "claude-code") == PurePosixPath("conversations/claude-code/2024")


@pytest.mark.parametrize(
    "name",
    ["index.md", "2024-05-03-x-7e7a8ea1.conflict.md", "2024-13-03-x-7e7a8ea1.md", "2024-05-03-7e7a8ea1.md", "x.txt"],
)
def test_other_files_are_no_pages(name: str) -> None:
    assert parse_name(name) is None
