"""Gemini Apps of Google's My Activity, as JSON and as HTML."""

import html as library
import itertools
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports import gemini_takeout_html
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.detect import head_of
from palace_pipeline.exports.gemini_takeout import READER as JSON_READER
from palace_pipeline.exports.gemini_takeout_html import READER as HTML_READER
from palace_pipeline.exports.registry import reader_for
from palace_pipeline.transcripts.merge import merge
from tests.exports.memory_member import MemoryMember, read
from tests.exports.people_damage import ODD, places, retyped

FIXTURES = Path(__file__).parent.parent / "fixtures" / "exports"
PATH = "Takeout/My Activity/Gemini Apps/MyActivity.json"
HTML_PATH = "Takeout/My Activity/Gemini Apps/MyActivity.html"


def activity(title="Prompted Why?", time="2026-03-14T10:00:00.123Z", answer=None, **more):
    record = {"header": "Gemini Apps", "title": title, "time": time, "products": ["Gemini Apps"]}
    if answer is not None:
        record["safeHtmlItem"] = [{"html": answer}]
    return record | more


def of_json(*records):
    return read([JSON_READER], {PATH: list(records)}, PATH)


def cell(body, header="Gemini Apps<br>", caption="<b>Products:</b><br>&emsp;Gemini Apps<br>"):
    return (
        '<div class="outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp"><div class="mdl-grid">'
        f'<div class="header-cell mdl-cell mdl-cell--12-col"><p class="mdl-typography--title">{header}</p></div>'
        f'<div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1">{body}</div>'
        '<div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1 mdl-typography--text-right"></div>'
        f'<div class="content-cell mdl-cell mdl-cell--12-col mdl-typography--caption">{caption}</div></div></div>'
    )


def page(*cells):
    style = "<style>.mdl-grid{display:flex}.outer-cell{margin:0}</style>"
    return f"<!DOCTYPE html><html><head><title>My Activity History</title>{style}</head><body>{''.join(cells)}</body></html>"


def of_html(*cells):
    return read([HTML_READER], {HTML_PATH: page(*cells)}, HTML_PATH)


def said(conversations):
    return [(m.role, m.text) for conversation in conversations for m in conversation.visible_messages()]


def rows(conversations, role):
    return [m for conversation in conversations for m in conversation.messages if m.role == role]


# --- verbs ---


@pytest.mark.parametrize(
    ("title", "prompt"),
    [
        ("Prompted Why is fog salty?", "Why is fog salty?"),
        ("Prompted\u00a0Why?", "Why?"),
        ("Prompted with: Why?", "Why?"),
        ("Prompted Prompt ideas", "Prompt ideas"),
        ("Asked Bard: Why?", "Why?"),
        ("Eingegebener Prompt: Warum?", "Warum?"),
        ("Fez uma pergunta: Por quê?", "Por quê?"),
        ("提问 为什么海雾是咸的？", "为什么海雾是咸的？"),
        ("提问：为什么？", "为什么？"),
        ("送信したメッセージ: なぜ？", "なぜ？"),
        ("Запрос: почему?", "почему?"),
        ("Kysyttiin\u00a0Miksi?", "Miksi?"),  # a verb that nobody listed, ended by a no-break space
        ("Kysyttiin Miksi?", "Kysyttiin Miksi?"),
        ("Promptedly said", "Promptedly said"),
        ("Prompted line one\n\n    indented", "line one\n\n    indented"),
    ],
)
def test_the_verb_is_taken_off_and_nothing_else(title, prompt):
    conversations, report = of_json(activity(title, answer="<p>Because.</p>"))
    assert said(conversations) == [("user", prompt), ("assistant", "Because.")]
    assert not report.skips
    assert bool(report.unknown) == (title == prompt)


@pytest.mark.parametrize(
    "title",
    [
        *(
            "Created Gemini Canvas titled Tides",
            "Used Gemini Apps",
            "Gave feedback: Good response",
            "Selected preferred draft",
        ),
        *("Gemini Apps verwendet", "使用了 Gemini Apps", "Gemini Apps を使用しました", "Käytettiin: Gemini Apps"),
    ],
)
def test_other_kinds_of_activity_are_expected_skips(title):
    conversations, report = of_json(activity(title), activity())
    assert said(conversations) == [("user", "Why?")]
    assert [(skip.reason, skip.expected) for skip in report.skips] == [("activity without a prompt", True)]


def test_what_a_canvas_holds_is_kept_and_no_ones_words():
    conversations, report = of_json(activity("Created Gemini Canvas titled Tides", answer="<p>Spring</p>"), activity())
    assert said(conversations) == [("user", "Why?")]
    assert [m.text for m in rows(conversations, "tool")] == ["Created Gemini Canvas titled Tides\n\nSpring"]
    assert not report.skips


# --- one record ---


def test_references_in_titles_are_resolved_once_and_addresses_stay():
    title = "Prompted tides &amp; moon &amp;lt; https://x.test/?a=1&copy=2 &#28526;"
    conversations, _ = of_json(activity(title))
    assert said(conversations) == [("user", "tides & moon &lt; https://x.test/?a=1&copy=2 潮")]


def test_answers_links_files_and_notes():
    record = activity(
        "Prompted Look Attached 2 files.",
        answer='<p>A pier, see <a href="https://x.test/p">this</a>.</p><img src="made-1.png">',
        attachedFiles=["pier-1.png", "made-1.png", "notes.pdf"],
        imageFile="pier-1.png",
        subtitles=[
            {"name": "Attached 2 files."},
            {"name": "-  pier.png", "url": "pier-1.png"},
            {"name": "-  notes.pdf", "url": "notes.pdf"},
            {"name": "Tide Helper was used in this chat. Manage your Gems.", "url": "https://gemini.google.com/gems/x"},
        ],
    )
    conversations, report = of_json(record)
    user, answer = conversations[0].visible_messages()
    assert (user.text, answer.text) == ("Look", "A pier, see this.")
    assert [(f.name, f.type) for f in user.attachment] == [("pier-1.png", "image"), ("notes.pdf", "file")]
    assert [f.name for f in answer.attachment] == ["made-1.png"]
    assert [(c.url, c.title) for c in answer.citations] == [("https://x.test/p", "this")]
    assert [m.text for m in rows(conversations, "system")] == ["Tide Helper was used in this chat. Manage your Gems."]
    assert not report.skips


def test_a_picture_without_words_and_an_answer_without_prompt():
    conversations, _ = of_json(activity("Prompted", attachedFiles=["a.png"], answer="<p>Fog.</p>"))
    assert [(m.role, m.kind, m.text) for m in conversations[0].messages] == [
        ("user", "attachment", ""),
        ("assistant", "text", "Fog."),
    ]
    conversations, _ = of_json(activity("Prompted", answer="<p>Fog.</p>"))
    assert said(conversations) == [("assistant", "Fog.")]
    conversations, report = of_json(activity("Prompted"))
    assert (conversations, [skip.expected for skip in report.skips]) == ([], [True])


def test_times_are_never_invented():
    conversations, _ = of_json(activity(time="2026-03-14T10:00:00"), activity("Prompted When?", time="yesterday"))
    by_text = {m.text: (m.created_at, m.local_time) for c in conversations for m in c.messages}
    assert by_text == {"Why?": (None, "2026-03-14T10:00:00"), "When?": (None, None)}


# --- conversations ---


def test_a_day_is_a_conversation_in_order_of_time():
    conversations, _ = of_json(
        activity("Prompted d", "2026-03-15T00:00:01Z"),
        activity("Prompted c", "2026-03-14T23:59:59Z", "<p>C</p>"),
        activity("Prompted b", "2026-03-14T09:00:00Z"),
        activity("Prompted a", "2026-03-14T08:00:00Z"),
    )
    assert {c.conversation_id: [m.text for m in c.messages] for c in conversations} == {
        "activity-2026-03-15": ["d"],
        "activity-2026-03-14": ["a", "b", "c", "C"],
    }
    assert {c.order for c in conversations} == {"time"}
    assert {c.title for c in conversations} == {None}


def test_an_activity_that_names_its_chat_belongs_to_it():
    address = "https://gemini.google.com/app/0123456789abcdef?hl=en"
    conversations, _ = of_json(activity(titleUrl=address), activity("Prompted no", "2026-03-13T10:00:00Z"))
    assert [c.conversation_id for c in conversations] == ["0123456789abcdef", "activity-2026-03-13"]
    quoted = activity(f"Prompted what is {address}", answer=f'<a href="{address}">x</a>')
    assert of_json(quoted)[0][0].conversation_id == "activity-2026-03-14"


def test_undated_activities_stand_alone():
    conversations, _ = of_json(*(activity(f"Prompted {n}", time=None, answer="<p>x</p>") for n in range(3)))
    assert len({c.conversation_id for c in conversations}) == 3


WORDS = st.text(st.characters(categories=["L"]), min_size=1, max_size=6)
MOMENTS = st.integers(0, 5 * 86400).map(lambda s: datetime(2026, 3, 10, tzinfo=UTC) + timedelta(seconds=s))
HISTORIES = st.lists(
    st.tuples(MOMENTS, WORDS, WORDS), max_size=12, unique_by=lambda turn: (turn[0], turn[1].casefold())
)


def known(exports):
    """(conversation, message id, time, text) of all messages that the exports show together."""
    sightings = {}
    for conversations in exports:
        for conversation in conversations:
            sightings.setdefault(conversation.key, []).append(conversation)
    merged = [merge(seen) for seen in sightings.values()]
    return [(c.conversation_id, m.message_id, m.created_at, m.role, m.text) for c in merged for m in c.messages]


@given(HISTORIES, st.integers(0, 12), st.integers(0, 12))
@settings(max_examples=60)
def test_next_months_export_changes_no_identity(history, first, last):
    """Old activities go, new ones come: what is in both has one identity, and together they are the whole."""
    records = [activity(f"Prompted {q}", f"{t:%Y-%m-%dT%H:%M:%SZ}", f"<p>{a}</p>") for t, q, a in history]
    records.sort(key=lambda record: record["time"], reverse=True)
    old, new = records[first:], records[: len(records) - last]
    parts = [of_json(*part)[0] for part in (old, new) if part]
    whole = [record for record in records if record in old or record in new]
    everything = [of_json(*whole)[0]] if whole else []
    assert sorted(known(parts)) == sorted(known(everything)) == sorted(known(parts[::-1]))


@given(HISTORIES)
@settings(max_examples=40)
def test_json_and_html_of_one_account_are_the_same_messages(history):
    history = sorted(history, reverse=True)
    records = [activity(f"Prompted {q}", f"{t:%Y-%m-%dT%H:%M:%SZ}", f"<p>{a}</p>") for t, q, a in history]
    cells = [cell(f"Eingegebener Prompt:\u00a0{q}<br>{t:%d.%m.%Y, %H:%M:%S} UTC<br><p>{a}</p>") for t, q, a in history]
    if history:
        assert known([of_json(*records)[0]]) == known([of_html(*cells)[0]])


# --- HTML ---

ANSWER = "<p>It carries <em>sea</em> aerosol.</p><ul><li>a</li></ul>"
RIGHT = [("user", "Why is fog\nsalty & cold?"), ("assistant", "It carries sea aerosol.\n\n- a")]
PROMPT = "Why is fog<br>salty &amp; cold?"


@pytest.mark.parametrize(
    "body",
    [
        f"Prompted&nbsp;{PROMPT}<br>Mar 14, 2026, 6:30:00\u202fPM UTC<br>{ANSWER}",
        f"\n  Prompted {PROMPT}<br>\n 14. März 2026, 19:30:00 MEZ<br>\n {ANSWER}<br>",
        f"<p><b>Prompted</b> {PROMPT}</p><p>2026年3月14日 下午6:30:00 UTC</p>{ANSWER}",
        f"提问\u00a0{PROMPT}<br>2026年3月15日 02:30:00 GMT+8<br><div>{ANSWER}</div>",
    ],
)
def test_date_below_the_title(body):
    conversations, report = of_html(cell(body))
    assert said(conversations) == RIGHT
    assert {m.created_at for m in conversations[0].messages} == {datetime(2026, 3, 14, 18, 30, tzinfo=UTC)}
    assert not report.skips


@pytest.mark.parametrize("verb", ["Prompted<br>", "Eingegebener Prompt:", "Kysyttiin"])
def test_verb_and_date_in_the_header(verb):
    header = f"Gemini Apps</p><p>{verb}</p><p>Mar 14, 2026, 6:30:00 PM UTC"
    conversations, report = of_html(cell(f"<p>Why?</p>{ANSWER}", header))
    assert said(conversations) == [("user", "Why?"), RIGHT[1]]
    assert {m.created_at for m in conversations[0].messages} == {datetime(2026, 3, 14, 18, 30, tzinfo=UTC)}
    assert not report.skips


def test_title_and_date_in_the_header():
    header = "Gemini Apps<br>Prompted Why?<br>Mar 14, 2026, 6:30:00 PM UTC"
    conversations, _ = of_html(cell(ANSWER, header))
    assert said(conversations) == [("user", "Why?"), RIGHT[1]]


def test_other_kinds_and_products_in_html():
    conversations, report = of_html(
        cell("Used Gemini Apps<br>Mar 14, 2026, 6:30:00 PM UTC<br>"),
        cell("x", "Gemini Apps</p><p>Canvas</p><p>Mar 14, 2026, 6:30:00 PM UTC"),
        cell("Searched for tides<br>Mar 14, 2026, 6:30:00 PM UTC", "Search"),
        cell("Watched pier<br>Mar 14, 2026, 6:30:00 PM UTC", "YouTube"),
        cell("Prompted Why?<br>Mar 14, 2026, 6:30:00 PM UTC<br>"),
    )
    assert said(conversations) == [("user", "Why?")]
    assert sorted((skip.reason, skip.count, skip.expected) for skip in report.skips) == [
        ("activity of another product", 2, True),
        ("activity without a prompt", 1, True),
    ]


def test_dates_that_nobody_can_read_keep_the_record():
    conversations, report = of_html(
        cell(f"Prompted One<br>۱۴ اسفند ۱۴۰۴, 6:30:00<br>{ANSWER}"),
        cell(f"Prompted Two<br>{ANSWER}"),
        cell("Prompted Three<br>Jul 14, 2026, 6:30:00 PM XYZT<br>"),
    )
    assert [m for m in said(conversations) if m[0] == "user"] == [("user", "One"), ("user", "Two"), ("user", "Three")]
    times = {m.text: (m.created_at, m.local_time) for m in rows(conversations, "user")}
    assert times == {"One": (None, None), "Two": (None, None), "Three": (None, "2026-07-14T18:30:00")}
    assert [(skip.count, skip.expected) for skip in report.skips] == [(2, False)]
    assert dict(report.unknown) == {"zone:XYZT": 1}


def test_files_and_notes_above_the_date():
    conversations, _ = of_html(
        cell(
            "Prompted&nbsp;Read 2 of<br>these<br>Attached 2 files.<br>-&nbsp;<a href='pier%20one.png'>pier one.png</a><br>"
            "-&nbsp;<a href='b.pdf'>b.pdf</a><br><a href='https://gemini.google.com/gems/1'>Gem was used.</a><br>"
            "Mar 14, 2026, 6:30:00 PM UTC<br><p>A <a href='https://x.test'>pier</a>.<img src='made.png'></p>",
            caption="<a href='https://gemini.google.com/app/abcdef0123456789'>Open</a>",
        )
    )
    user, answer = conversations[0].visible_messages()
    assert (user.text, answer.text) == ("Read 2 of\nthese", "A pier.")
    assert [f.name for f in user.attachment] == ["pier one.png", "b.pdf"]
    assert [f.name for f in answer.attachment] == ["made.png"]
    assert [c.url for c in answer.citations] == ["https://x.test"]
    assert [m.text for m in rows(conversations, "system")] == ["Gem was used."]
    assert conversations[0].conversation_id == "abcdef0123456789"


def test_a_file_of_any_size_is_read_a_cell_at_a_time(monkeypatch):
    """The marks of cells fall on every border of the pieces that are read."""
    cells = [
        cell(f"Prompted {n} {'é潮' * (n % 7)}<br>Mar {n % 28 + 1}, 2026, 6:{n % 60:02}:00 PM UTC<br><p>a{n}</p>")
        for n in range(60)
    ]
    whole = said(of_html(*cells)[0])
    assert len(whole) == 120
    for piece in (701, 997, 1501):
        monkeypatch.setattr(gemini_takeout_html, "_PIECE", piece)
        assert said(of_html(*cells)[0]) == whole


def test_a_cell_without_end_takes_no_memory_and_no_others(monkeypatch):
    monkeypatch.setattr(gemini_takeout_html, "MAX_CELL_CHARS", 20_000)
    good = "Prompted {}<br>Mar 14, 2026, 6:30:00 PM UTC<br>"
    conversations, report = of_html(cell(good.format("a")), cell("x" * 50_000), cell(good.format("b")))
    assert sorted(said(conversations)) == [("user", "a"), ("user", "b")]
    assert [(skip.reason, skip.where) for skip in report.skips] == [
        ("too large to be read", f"{HTML_PATH}: activity 2")
    ]


@given(st.data())
@settings(max_examples=60)
def test_damage_in_one_cell_leaves_the_others(data):
    good = [cell(f"Prompted {n}<br>Mar {n + 1}, 2026, 6:30:00 PM UTC<br><p>answer {n}</p>") for n in range(3)]
    broken = good[1]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(broken)))
        junk = data.draw(
            st.sampled_from(["<", "</div>", "<div", '"', "<script>", "<!--", "\0", "<div class='header-cell'>"])
        )
        broken = broken[:at] + junk + broken[at + data.draw(st.integers(0, 9)) :]
    conversations, _ = of_html(good[0], broken, good[2])
    texts = [text for _, text in said(conversations)]
    # What comes before is whole; what follows a torn mark of the next cell at least loses no words.
    assert {"0", "answer 0"} <= set(texts)
    assert "answer 2" in "\n".join(m.text for c in conversations for m in c.messages)


# --- JSON: damage and detection ---

SAMPLE = [
    activity("Prompted first", "2026-03-16T10:00:00Z", "<p>one</p>"),
    activity(
        "Prompted second",
        "2026-03-15T10:00:00Z",
        "<p>two</p>",
        titleUrl="https://gemini.google.com/",
        subtitles=[{"name": "Attached 1 file."}, {"name": "-  a.png", "url": "a.png"}],
        attachedFiles=["a.png"],
        imageFile="a.png",
        description="d",
        activityControls=["Gemini Apps Activity"],
    ),
    activity("Prompted third", "2026-03-14T10:00:00Z", "<p>three</p>"),
]


def of_value(value):
    member = MemoryMember({PATH: json.dumps(value).encode()}, PATH)
    report = Report(PATH)
    return list(JSON_READER.read(member, report)), report


def test_any_field_of_any_type():
    for path, odd in itertools.product(places(SAMPLE), ODD):
        if path[0] != 1:
            continue
        conversations, report = of_value(retyped(SAMPLE, path, odd))
        texts = said(conversations)
        for kept in (("user", "first"), ("assistant", "one"), ("user", "third"), ("assistant", "three")):
            assert kept in texts
        lost = path in ((1,), (1, "title"), (1, "header"), (1, "products"), (1, "products", 0))
        assert lost or ("user", "second") in texts or report.skips


def test_a_list_that_is_cut_gives_what_is_whole():
    data = json.dumps(SAMPLE).encode()[:-60]
    member = MemoryMember({PATH: data}, PATH)
    report = Report(PATH)
    assert said(list(JSON_READER.read(member, report)))[:4] == [
        *(("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two"))
    ]
    assert [skip.expected for skip in report.skips] == [False]


@pytest.mark.parametrize(
    ("path", "content", "reader"),
    [
        (PATH, [activity()], JSON_READER),
        ("我的活动记录.json", [activity("提问 x", header="Gemini 应用", products=["Gemini 应用"])], JSON_READER),
        ("My Activity.json", [activity("Watched x", header="YouTube", products=["YouTube"])], JSON_READER),
        (HTML_PATH, page(cell("x")), HTML_READER),
        ("Mein Aktivitätsverlauf.html", "\ufeff" + page(cell("x")), HTML_READER),
        (HTML_PATH, page("<style>" + ".mdl-grid{}" * 40_000 + "</style>", cell("x")), HTML_READER),
        ("a.json", [{"title": "t", "time": "2026-03-14T10:00:00Z"}], None),
        ("a.html", "<html><body>outer cell</body></html>", None),
        ("a.md", "Prose about `<div class='outer-cell'>` and header-cell.", "plain-notes"),
    ],
)
def test_detection(path, content, reader):
    data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
    found = reader_for(head_of(MemoryMember({path: data}, path)))
    assert found is reader or (
        found is not None and isinstance(reader, str) and found.format not in ("gemini-takeout",)
    )


def test_no_other_export_is_taken_for_one():
    ours = {"21-gemini-takeout-json", "22-gemini-takeout-html"}
    for file in FIXTURES.rglob("*"):
        if file.is_file() and file.name != "expected.json" and file.relative_to(FIXTURES).parts[0] not in ours:
            path = file.relative_to(FIXTURES).as_posix()
            head = head_of(MemoryMember({path: file.read_bytes()}, path))
            assert not JSON_READER.detect(head)
            assert not HTML_READER.detect(head)


def test_html_text_is_not_markup_of_the_export():
    """An answer that shows the export's own HTML is text."""
    shown = library.escape(cell("Prompted fake<br>Mar 14, 2026, 6:30:00 PM UTC"))
    conversations, _ = of_html(cell(f"Prompted real<br>Mar 14, 2026, 6:30:00 PM UTC<br><pre>{shown}</pre>"))
    assert [role for role, _ in said(conversations)] == ["user", "assistant"]
