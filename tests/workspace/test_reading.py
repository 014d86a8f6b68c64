"""Pages as people and models write them: each case is one thing that goes wrong with a session page."""

from __future__ import annotations

from datetime import datetime

import pytest

from palace_pipeline.workspace import names
from palace_pipeline.workspace.reading import SessionError, parse
from palace_pipeline.workspace.sections import NAMES, SECTIONS, Section
from palace_pipeline.workspace.session import (
    Entry,
    Session,
    as_entry,
    first_sentence,
    render,
    summary_of,
    todos,
)
from tests.workspace.pages_for_tests import TS, a_session, path_of

PATH = "sessions/2026-11-30/0915-1a2b3c4-修复烤箱.md"
FRONT = """---
id: "20261130-0915-1a2b3c4"
ts: 2026-11-30T09:15:00+08:00
role: planner
parent:
tags:
  - 烤箱
model: claude-x
turns: 1
tokens_in: 10
tokens_out: 20
status: open
summary: ""
---
"""


def text_of(session: Session, section: Section) -> str:
    return "\n\n".join(entry.text for entry in session.sections[section])


# --- names -----------------------------------------------------------------------------------------------------------


def test_the_id_is_in_the_zone_of_the_time_and_says_the_path() -> None:
    session = names.session_id(datetime.fromisoformat("2026-12-01T00:05:00+08:00"), "x")
    assert session.startswith("20261201-0005-")
    assert len(session) == len("20261201-0005-") + 7
    assert str(names.path_of(session, "修复 烤箱!")) == f"sessions/2026-12-01/0005-{session[-7:]}-修复-烤箱.md"
    assert names.id_of(names.path_of(session, "修复 烤箱!")) == session


@pytest.mark.parametrize(
    ("title", "part"),
    [
        ("修复烤箱的温控器并且更换所有的加热元件和密封条吧", "修复烤箱的温控器并且更换所有的加热元件和"),
        ('a/b\\c:d*e?f"g<h>i|j', "a-b-c-d-e-f-g-h-i-j"),
        ("../../etc/passwd", "etc-passwd"),
        ("   ", "untitled"),
        ("🎉🎉", "untitled"),
        ("A B C D E F G H I J K", "a-b-c-d-e-f-g-h-i-j"),
        ("NUL\0.txt\n", "nul-txt"),
    ],
)
def test_a_title_is_safe_in_a_file_name(title: str, part: str) -> None:
    assert names.title_part(title) == part
    assert len(names.title_part(title)) <= 20


@pytest.mark.parametrize("text", ["20261330-0915-1a2b3c4", "20261130-2515-1a2b3c4", "20261130-0915-1A2B3C4", "x", ""])
def test_what_is_no_id_is_refused(text: str) -> None:
    assert not names.is_id(text)
    with pytest.raises(ValueError):
        names.folder_of(text)


def test_the_copy_of_a_conflict_is_no_session() -> None:
    assert names.id_of("sessions/2026-11-30/0915-1a2b3c4-x.conflict.md") is None
    assert names.id_of("sessions/2026-11-30/0915-1a2b3c4-x.conflict-2.md") is None


# --- a page as a program writes it -------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_page_is_read_back_as_it_was(language: str) -> None:
    session = a_session("zh" if language == "zh" else "en")
    assert parse(render(session), path_of(session)) == session


def test_values_are_quoted_where_yaml_needs_it() -> None:
    session = Session(
        "20261130-0915-1a2b3c4", TS, role="yes", tags=("true", "1e3"), summary="no: # 'x' \"y\" - 1", model="null"
    )
    again = parse(render(session), PATH)
    assert (again.role, again.tags, again.summary, again.model) == ("yes", ("true", "1e3"), session.summary, "null")


def test_a_page_has_the_five_sections_in_order_even_when_empty() -> None:
    page = render(Session("20261130-0915-1a2b3c4", TS))
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == list(NAMES["zh"].values())


# --- torn front matter -------------------------------------------------------------------------------------------------


def test_without_front_matter_id_and_time_are_those_of_the_file_name() -> None:
    session = parse("## 结论\n\n好了。\n", PATH)
    assert (session.id, session.ts, session.status) == (
        "20261130-0915-1a2b3c4",
        datetime(2026, 11, 30, 9, 15),
        "conflict",
    )
    assert text_of(session, "conclusion") == "好了。"
    assert any("missing" in problem for problem in session.problems)


def test_without_any_id_it_is_no_session() -> None:
    with pytest.raises(SessionError):
        parse("## 结论\n\n好了。\n", "notes/a.md")


def test_front_matter_that_nothing_closes_gives_what_can_be_read() -> None:
    session = parse(FRONT.replace("\n---\n", "\n")[:180] + "\n\n## 结论\n\n好了。\n", PATH)
    assert (session.id, session.role, session.tags, session.status) == (
        *("20261130-0915-1a2b3c4", "planner"),
        ("烤箱",),
        "conflict",
    )
    assert text_of(session, "conclusion") == "好了。"


def test_a_line_that_is_no_property_does_not_take_the_others_along() -> None:
    session = parse(FRONT.replace("role: planner", "<<<<<<< HEAD\nrole: planner"), PATH)
    assert (session.role, session.model, session.tags, session.status) == ("planner", "claude-x", ("烤箱",), "conflict")
    assert session.intro == "<<<<<<< HEAD"


def test_full_width_colons() -> None:
    session = parse(FRONT.replace(": ", "：").replace("09：15：00", "09:15:00") + "\n## 待办：明天\n\n- [ ] 买\n", PATH)
    assert (session.role, session.model, session.ts, session.tags) == ("planner", "claude-x", TS, ("烤箱",))
    assert text_of(session, "todo") == "明天\n\n- [ ] 买"


def test_an_id_that_differs_from_the_file_name_is_a_conflict_and_the_name_counts() -> None:
    session = parse(FRONT.replace("1a2b3c4", "fffffff"), PATH)
    assert (session.id, session.status) == ("20261130-0915-1a2b3c4", "conflict")


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("turns: three", "turns", 0),
        ('turns: "1,234"', "turns", 1234),
        ("turns: 12.0", "turns", 12),
        ("turns: １２", "turns", 12),
        ("turns: [3]", "turns", 3),
        ("turns: {a: b}", "turns", 0),
        ("tokens_in: -", "tokens_in", None),
        ("tags: a, b，c", "tags", ("a", "b", "c")),
        ('tags: "#a #b"', "tags", ("a", "b")),
        ("tags: [a, a, 'b c']", "tags", ("a", "b-c")),
        ("标签: [烤箱]", "tags", ("烤箱",)),
        ("Tags: x", "tags", ("x",)),
        ("status: 已完成", "status", "closed"),
        ("status: Done", "status", "closed"),
        ("status: whatever", "status", "open"),
        ("parent: '[[20261129-0915-aaaaaaa]]'", "parent", "20261129-0915-aaaaaaa"),
        ("parent: ../2026-11-29/0915-aaaaaaa-x.md", "parent", "20261129-0915-aaaaaaa"),
        ("parent: nobody", "parent", None),
        ("summary: [a, b]", "summary", "a, b"),
        ("summary: a\n  b", "summary", "a b"),
        ("model: {x: 1}", "model", None),
        ("ts: 2026/11/30 9:15", "ts", datetime(2026, 11, 30, 9, 15)),
        ("ts: 2026年11月30日 09：15", "ts", datetime(2026, 11, 30, 9, 15)),
        ("ts: 2026-11-30 09:15:00 +0800", "ts", TS),
    ],
)
def test_values_of_another_type_are_understood(line: str, name: str, value: object) -> None:
    known = {"标签": "tags", "Tags": "tags"}
    key = line.partition(":")[0]
    own = known.get(key, key)
    kept = "".join(
        f"{text}\n"
        for text in FRONT.replace("tags:\n  - 烤箱", "tags: [烤箱]").splitlines()
        if not text.startswith(f"{own}:")
    )
    session = parse(kept.replace("role: planner", f"role: planner\n{line}"), PATH)
    assert getattr(session, name) == value
    assert session.role == "planner"


def test_what_the_schema_has_no_place_for_stays_in_properties_of_its_own() -> None:
    page = FRONT.replace("  - 烤箱\n", "".join(f"  - t{n}\n" for n in range(7))).replace(
        'summary: ""', f"summary: {'长' * 100}"
    )
    session = parse(page.replace("role:", "cssclasses: [wide]\nrole:"), PATH)
    again = parse(render(session), PATH)
    assert again.tags == ("t0", "t1", "t2", "t3", "t4")
    assert len(again.summary) == 80
    for kept in ("cssclasses: [wide]", "t6", "长" * 100):
        assert kept in again.extra


# --- sections ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("## 结论", "conclusion"),
        ("# 结论", "conclusion"),
        ("#### 结论", "conclusion"),
        ("##结论", "conclusion"),
        ("＃＃ 结论", "conclusion"),
        ("## 结论 ##", "conclusion"),
        ("## **结论**", "conclusion"),
        ("**结论**", "conclusion"),
        ("__结论：__", "conclusion"),
        ("## 结论：", "conclusion"),
        ("## 四、结论", "conclusion"),
        ("## 4. Conclusion", "conclusion"),
        ("## ✅ Conclusion", "conclusion"),
        ("## “结论”", "conclusion"),
        ("## CONCLUSION:", "conclusion"),
        ("## 後續", "todo"),
        ("## 后续", "todo"),
        ("## 下一步", "todo"),
        ("### To-Do", "todo"),
        ("## TODO", "todo"),
        ("## Next steps:", "todo"),
        ("## 待办事项", "todo"),
        ("## 用户问题", "input"),
        ("## Analysis", "judgement"),
        ("## Tools used", "tools"),
    ],
)
def test_headings_as_people_and_models_write_them(heading: str, section: Section) -> None:
    session = parse(f"{FRONT}\n{heading}\n\ntext\n", PATH)
    assert {name: text_of(session, name) for name in SECTIONS if session.sections[name]} == {section: "text"}


@pytest.mark.parametrize(
    ("heading", "first"),
    [
        ("## 结论（基于以上分析）", "（基于以上分析）"),
        ("## 结论: use the small one", "use the small one"),
        ("## Conclusion - final", "final"),
        ("**结论：** 采用方案 A", "采用方案 A"),
        ("## 结论 最终版", "最终版"),
    ],
)
def test_an_explanation_behind_a_heading_is_kept_as_text(heading: str, first: str) -> None:
    session = parse(f"{FRONT}\n{heading}\n\ntext\n", PATH)
    assert text_of(session, "conclusion") == f"{first}\n\ntext"


@pytest.mark.parametrize(
    "line", ["## 结果集的大小", "## Next week", "### 用户 Jane", "**结论**是错的", "## Inputs of the model"]
)
def test_other_headings_are_text(line: str) -> None:
    session = parse(f"{FRONT}\n## 我的判断\n\n{line}\n", PATH)
    assert text_of(session, "judgement") == line


def test_doubled_headings_go_on_where_the_first_ended() -> None:
    session = parse(f"{FRONT}\n## 结论\n\none\n\n## 待办\n\ntwo\n\n## 结论\n\nthree\n", PATH)
    assert text_of(session, "conclusion") == "one\n\nthree"
    assert text_of(session, "todo") == "two"


def test_where_the_exact_heading_stands_other_forms_are_text() -> None:
    session = parse(f"{FRONT}\n## 我的判断\n\n**结论**\n\n### 待办\n\nx\n\n## 结论\n\ny\n\n## 待办\n\nz\n", PATH)
    assert text_of(session, "judgement") == "**结论**\n\n### 待办\n\nx"


def test_a_comment_in_code_is_no_heading() -> None:
    session = parse(f"{FRONT}\n## 我的判断\n\n```python\n# TODO: x\n# 结论\n```\n", PATH)
    assert text_of(session, "judgement") == "```python\n# TODO: x\n# 结论\n```"
    assert not session.sections["todo"]


def test_crlf_and_bom() -> None:
    page = render(a_session())
    session = a_session()
    assert parse("\ufeff" + page.replace("\n", "\r\n"), path_of(session)) == session


def test_text_of_a_person_stands_before_the_entries_of_a_program() -> None:
    session = parse(f"{FRONT}\n## 结论\n\nmine\n\n### 2026-11-30T10:00:00+08:00 · bob\n\nhis\n", PATH)
    assert session.sections["conclusion"] == [
        Entry("mine"),
        Entry("his", datetime.fromisoformat("2026-11-30T10:00:00+08:00"), "bob"),
    ]


def test_a_text_that_leaves_a_fence_open_does_not_swallow_the_rest() -> None:
    assert as_entry("```python\nx = 1").text == "```python\nx = 1\n```"


# --- what is made of it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("换掉温控器。然后测试。", "换掉温控器。"),
        ("It costs 3.50 euros. Done.", "It costs 3.50 euros."),
        ("- **Use** `uv`!\n- more", "Use uv!"),
        ("\n\n## Heading\ntext", "Heading"),
        ("no end", "no end"),
        ("", ""),
    ],
)
def test_the_first_sentence(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def test_a_summary_is_the_writers_else_of_the_conclusion_and_at_most_80_characters() -> None:
    session = a_session(entries=0)
    assert summary_of(session) == session.summary
    session.summary = ""
    session.sections["conclusion"] = [as_entry("长" * 100 + "。")]
    assert len(summary_of(session)) == 80


def test_todos_are_counted() -> None:
    session = a_session(entries=0)
    session.sections["todo"] = [as_entry("- [ ] a\n- [x] b\n* [X] c\n1. [ ] d\n[ ] no item\n- [ ]")]
    assert todos(session) == (2, 2)


@pytest.mark.parametrize("before", ["A note of mine.", "<!-- a comment -->", "```\n# no title\n```", "\\## 结论"])
def test_text_before_the_title_costs_neither(before: str) -> None:
    page = render(Session("20261130-0915-1a2b3c4", TS, title="Oven", intro="more"))
    read = parse(page.replace("# Oven", f"{before}\n\n# Oven"), PATH)
    assert (read.title, read.intro, read.status) == ("Oven", f"{before.removeprefix(chr(92))}\n\nmore", "open")
    again = render(read)
    assert render(parse(again, PATH)) == again


def test_a_merge_that_git_could_not_make_is_a_conflict() -> None:
    session = Session("20261130-0915-1a2b3c4", TS, title="Oven")
    session.sections["input"] = [as_entry("ours", TS), as_entry("theirs", TS)]
    marked = render(session).replace("\n### ", "\n<<<<<<< HEAD\n### ", 1).replace("ours\n", "ours\n=======\n")
    marked = marked.replace("theirs\n", "theirs\n>>>>>>> laptop\n")
    read = parse(marked, PATH)
    assert read.status == "conflict"
    assert "marks of Git" in read.problems[0]
    assert [entry.text for entry in read.sections["input"]] == [
        "<<<<<<< HEAD",
        "ours\n=======",
        "theirs\n>>>>>>> laptop",
    ]
    assert parse(render(read), PATH).status == "conflict"


def test_a_text_about_such_marks_is_none() -> None:
    session = Session("20261130-0915-1a2b3c4", TS, title="Oven")
    marks = "<<<<<<< HEAD\nours\n=======\n### 2026-11-30T09:15:00+08:00\n>>>>>>> laptop"
    session.sections["tools"] = [as_entry(marks, TS), as_entry("<<<<<<< HEAD\n## 结论\n=======", TS)]
    read = parse(render(session), PATH)
    assert (read.status, read.problems) == ("open", ())
    assert read.sections == session.sections


MARKS = "<<<<<<< HEAD\n- [ ] buy a\n=======\n- [ ] buy b\n>>>>>>> other"


@pytest.mark.parametrize(
    ("by_hand", "text", "status"),
    [
        (True, MARKS, "conflict"),
        (True, f"before\n\n{MARKS}\n\nbehind", "conflict"),
        (False, MARKS, "open"),
        (True, f"```\n{MARKS}\n```", "open"),
        (True, "<<<<<<< HEAD\n- [ ] buy a", "open"),
        (True, "<<<<<<< is what Git writes\n\n======= too", "open"),
    ],
)
def test_marks_of_git_in_what_a_person_wrote_are_a_conflict(by_hand: bool, text: str, status: str) -> None:
    session = Session("20261130-0915-1a2b3c4", TS)
    session.sections["todo"] = [Entry(text) if by_hand else as_entry(text, TS)]
    read = parse(render(session), PATH)
    assert read.status == status
    assert [entry.text for _, entry in read.entries()] == [text]
