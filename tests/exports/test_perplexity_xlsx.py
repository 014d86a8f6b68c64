"""Perplexity's workbook: columns by name, times of every kind, cells that only look like formulas, other sheets."""

import json
import zipfile

import pytest

from palace_pipeline.exports.containers import members_of
from palace_pipeline.exports.parse import parse_path
from palace_pipeline.exports.registry import READERS
from palace_pipeline.model import Citation
from tests.exports.memory_member import read, shown
from tests.exports.xlsx import HEADER, sheet, sheet_xml, workbook


def book(*rows, header=HEADER, **more):
    return workbook({"Conversations": sheet([header, *rows])}, **more)


def parsed(data):
    return read(READERS, {"export.xlsx": data}, "export.xlsx")


def one(*row, **more):
    conversations, report = parsed(book(row, **more))
    assert len(conversations) == 1
    return conversations[0], report


def test_a_row_is_a_question_and_its_answer():
    answer = json.dumps(
        {"answer": "Friction.\n\n- a [1]", "web_results": [{"name": "W", "url": "https://example.invalid/w"}]}
    )
    conversation, report = one("u1", "2026-03-14 23:58:41.250000", "2026-03-15 00:01:00", "Why? 🌕", answer)
    assert shown(conversation) == [("user", None, "Why? 🌕"), ("assistant", None, "Friction.\n\n- a [1]")]
    assert [m.message_id for m in conversation.messages] == ["u1#question", "u1"]
    assert conversation.messages[1].citations == [Citation("https://example.invalid/w", "W")]
    assert {(m.created_at, m.local_time) for m in conversation.messages} == {(None, "2026-03-14T23:58:41")}
    assert (conversation.provider, conversation.conversation_id, conversation.title) == ("perplexity", "u1", "Why? 🌕")
    assert (conversation.local_created, conversation.created_at) == ("2026-03-14T23:58:41", None)
    assert not report.skips


@pytest.mark.parametrize(
    ("cell", "instant", "local"),
    [
        ("2026-03-14 23:58:41", None, "2026-03-14T23:58:41"),
        ("2026-03-14T23:58:41.123456789", None, "2026-03-14T23:58:41"),
        (46095.99908564815, None, "2026-03-14T23:58:41"),  # 0.99908564815 d = 86321 s = 23:58:41
        ("46095.99908564815", None, "2026-03-14T23:58:41"),
        ("2026-03-14 23:58:41 UTC", "2026-03-14T23:58:41+00:00", None),
        ("2026-03-14 23:58:41.000 +0800", "2026-03-14T15:58:41+00:00", None),
        ("2026-03-14T23:58:41Z", "2026-03-14T23:58:41+00:00", None),
        (1773480370, "2026-03-14T09:26:10+00:00", None),
        ("yesterday", None, None),
        (None, None, None),
    ],
)
def test_times(cell, instant, local):
    conversation, _ = one("u", cell, None, "q", "a")
    row = conversation.messages[0]
    assert (row.created_at.isoformat() if row.created_at else None, row.local_time) == (instant, local)


def test_dates_that_count_from_1904():
    conversation, _ = one("u", 46095.99908564815 - 1462, None, "q", "a", properties='<workbookPr date1904="1"/>')
    assert conversation.messages[0].local_time == "2026-03-14T23:58:41"


def test_text_that_looks_like_a_formula_is_text():
    conversation, _ = one("u", None, None, "=SUM(A1:A3) 这个公式是什么意思？", "=1+1")
    assert [t for _, _, t in shown(conversation)] == ["=SUM(A1:A3) 这个公式是什么意思？", "=1+1"]


def test_columns_are_found_by_their_names():
    header = ["Mood", "output_str", "Title", "Created At", "uuid"]
    rows = [["exported on Monday"], [], header, ["ZZ", "a", "q", "2026-03-14 10:00:00", "u"]]
    conversations, report = parsed(workbook({"Sheet 1": sheet(rows)}))
    assert shown(conversations[0]) == [("user", None, "q"), ("assistant", None, "a")]
    assert conversations[0].conversation_id == "u"
    assert report.unknown == {"column:Mood": 1}


def test_rows_that_lack_something():
    conversations, report = parsed(
        book(
            ["u1", None, None, "question only", None],
            ["u2", None, None, None, "answer only"],
            [None, "2026-03-14 10:00:00", None, "no id", "a"],
            ["u3", None, None, None, None],
            [None, "2026-03-14 10:00:00", None, None, '{"answer": ""}'],
            [None, None, None, None, None],
        )
    )
    assert [(c.conversation_id, c.title, [t for _, _, t in shown(c)]) for c in conversations][:2] == [
        ("u1", "question only", ["question only"]),
        ("u2", None, ["answer only"]),
    ]
    assert len(conversations[2].conversation_id) == 16
    assert [(s.reason, s.where, s.expected) for s in report.skips] == [
        ("row without question and answer", "export.xlsx: sheet 1, row 5", True),
        ("row without id, question and answer", "export.xlsx: sheet 1, row 6", True),
    ]


def test_an_answer_that_the_cell_could_not_hold():
    cut = json.dumps({"answer": "word " * 8000, "web_results": []})[:32767]
    conversation, report = one("u", None, None, "q", cut)
    assert conversation.messages[1].text.startswith("word word")
    assert "{" not in conversation.messages[1].text
    assert [(s.reason, s.expected) for s in report.skips] == [("answer is cut in the source", False)]


def test_other_sheets_are_named():
    memory = sheet([["MEMORY_KEY", "MEMORY_VALUE"], ["boat", "ZZ"]])
    data = workbook(
        {"Memory": memory, "Conversations": sheet([HEADER, ["u", None, None, "q", "a"]]), "Spaces": sheet([["x"]]),
         "Empty": sheet([])}
    )  # fmt: skip
    conversations, report = parsed(data)
    assert len(conversations) == 1
    assert [(s.reason, s.where, s.expected) for s in report.skips] == [
        ("Memory sheet: no conversation", "export.xlsx: sheet 1", True),
        ("sheet of an unknown kind", "export.xlsx: sheet 3", False),
    ]


def test_rows_before_damage_survive_and_so_do_other_sheets():
    whole = sheet([HEADER, ["u1", None, None, "q", "a"], ["u2", None, None, "q", "a"]])
    data = workbook({"A": whole[: whole.index("u2")], "B": sheet([HEADER, ["u3", None, None, "q", "a"]])})
    conversations, report = parsed(data)
    assert [c.conversation_id for c in conversations] == ["u1", "u3"]
    assert [(s.reason, s.expected) for s in report.skips] == [("damaged workbook", False)]


def test_other_workbooks_are_assets_whatever_their_name(tmp_path):
    (tmp_path / "budget.xlsx").write_bytes(workbook({"Budget": sheet([["Item", "Cost"], ["sail", 12]])}))
    (tmp_path / "hostile.xlsx").write_bytes(workbook({"S": sheet_xml('<row><c r="ZZZ1"/></row>')}))
    with zipfile.ZipFile(tmp_path / "letter.dat", "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", "<x/>")
    (tmp_path / "export.bin").write_bytes(book(["u", None, None, "q", "a"]))
    answer = parse_path(tmp_path)
    assert [c["conversation_id"] for c in answer["conversations"]] == ["u"]
    assert {(s["reason"], s["expected"]) for s in answer["skipped"]} == {
        ("asset beside the chats", True),
        ("binary file of an unknown kind", False),
    }


def test_a_workbook_is_not_unfolded(tmp_path):
    path = tmp_path / "export.xlsx"
    path.write_bytes(book(["u", None, None, "q", "a"]))
    reports = []
    assert [m.path for m in members_of(path, lambda p: reports.append(p))] == ["export.xlsx"]


def test_a_second_reading_gives_the_same():
    data = book(["u1", 46095.5, None, "q", "a"], [None, None, None, "q", "a"])
    first, _ = parsed(data)
    second, _ = read(READERS, {"other.xlsx": data}, "other.xlsx")
    for conversation in first + second:
        conversation.source_file = None
    assert first == second
