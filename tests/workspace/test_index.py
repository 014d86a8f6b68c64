"""`index.md`: it only grows, the last row of an id wins, and an unchanged archive leaves it as it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.model import page_hash
from palace_pipeline.workspace import index
from palace_pipeline.workspace.index import Row, parse_row

SESSION = Row(
    date(2026, 11, 30), "修复 | 烤箱 [x] <b>", ("烤箱", "repair"), "a\\|b", "sessions/2026-11-30/0915-1a2b3c4-修复.md"
)
PAGE = Row(
    date(2024, 5, 3), "Oven", (), "", f"conversations/chatgpt/2024/2024-05-03-oven-{page_hash('chatgpt', 'c1')}.md"
)


def test_a_row_is_one_line_of_a_table_and_can_be_read_back() -> None:
    assert PAGE.line() == f"| 2024-05-03 | Oven |  |  | [page]({PAGE.path}) |"
    assert parse_row(SESSION.line()) == SESSION


def test_nothing_in_a_cell_is_a_tag_or_a_link_for_a_viewer() -> None:
    row = replace(PAGE, title="#plan of [[C#]] # 1 ![[x]]", summary="see #3")
    assert row.line().startswith(r"| 2024-05-03 | \#plan of \[\[C#\]\] # 1 !\[\[x\]\] |  | see \#3 |")
    assert parse_row(row.line()) == row


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_stays_in_its_cell(title: str, summary: str) -> None:
    row = replace(PAGE, title=title, summary=summary)
    line = row.line()
    assert "\n" not in line
    read = parse_row(line)
    assert read is not None
    assert (read.title, read.summary, read.path) == (
        " ".join(read.title.split()),
        " ".join(read.summary.split()),
        PAGE.path,
    )
    assert read.line() == line


def test_the_last_row_of_an_id_wins(tmp_path: Path) -> None:
    assert index.add_rows(tmp_path, [SESSION, PAGE]) == 2
    moved = replace(PAGE, day=date(2024, 5, 4), path=PAGE.path.replace("2024-05-03", "2024-05-04"))
    assert index.add_rows(tmp_path, [moved]) == 1
    assert index.find(tmp_path, "20261130-0915-1a2b3c4") == SESSION
    assert index.find_conversation(tmp_path, "chatgpt", "c1") == moved
    assert index.rows(tmp_path) == [SESSION, moved]
    assert (tmp_path / "index.md").read_text(encoding="utf-8").startswith(index.HEAD)


def test_what_says_nothing_new_changes_nothing(tmp_path: Path) -> None:
    index.add_rows(tmp_path, [SESSION, PAGE])
    before = (tmp_path / "index.md").read_bytes()
    assert index.add_rows(tmp_path, [PAGE, SESSION]) == 0
    assert index.add_rows(tmp_path, []) == 0
    assert (tmp_path / "index.md").read_bytes() == before


def test_many_rows_at_once_are_compared_as_well(tmp_path: Path) -> None:
    many = [replace(SESSION, path=f"sessions/2026-11-30/0915-{n:07x}-x.md") for n in range(100)]
    assert index.add_rows(tmp_path, many) == 100
    assert index.add_rows(tmp_path, [*many, PAGE]) == 1
    assert index.find(tmp_path, "20261130-0915-0000063") == many[99]


def test_lines_that_people_put_in_are_left_alone(tmp_path: Path) -> None:
    index.add_rows(tmp_path, [SESSION])
    file = tmp_path / "index.md"
    file.write_text(
        file.read_text(encoding="utf-8") + "| mine | 1 |\n\nA remark.\n| 2026-13-45 | a | b | c | [page](x) |\n",
        encoding="utf-8",
    )
    index.add_rows(tmp_path, [PAGE])
    assert index.rows(tmp_path) == [SESSION, PAGE]
    assert index.forget_rows(tmp_path, [SESSION.key]) == 1
    text = file.read_text(encoding="utf-8")
    assert "A remark." in text
    assert "修复" not in text
    assert index.rows(tmp_path) == [PAGE]


def test_what_is_forgotten_was_there_in_all_its_rows(tmp_path: Path) -> None:
    index.add_rows(tmp_path, [SESSION, PAGE])
    index.add_rows(tmp_path, [replace(SESSION, title="new")])
    assert index.forget_rows(tmp_path, [SESSION.key]) == 2
    assert index.forget_rows(tmp_path, [SESSION.key]) == 0
    assert index.find(tmp_path, SESSION.key) is None
