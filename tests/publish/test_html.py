"""The page of a conversation: nothing runs, nothing is loaded, nothing is lost."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.model import Attachment, Citation, Message
from palace_pipeline.publish.html import fenced, page
from palace_pipeline.publish.index import Entry, index_html
from palace_pipeline.publish.links import Links
from palace_pipeline.publish.view import view_of
from tests.publish.conftest import talk

TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "main",
        "nav",
        "article",
        "footer",
        "details",
        "summary",
    ),
    *(
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "p",
        "div",
        "span",
        "a",
        "b",
        "time",
        "ul",
        "ol",
        "li",
        "pre",
        "code",
        "br",
        "hr",
    ),
    *("blockquote", "table", "thead", "tbody", "tr", "th", "td", "em", "strong", "s", "img", "q", "small"),
}
ATTRIBUTES = {
    *(
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "dir",
        "class",
        "id",
        "href",
        "rel",
        "datetime",
        "open",
        "src",
    ),
    *("alt", "start"),
}


class Seen(HTMLParser):
    """The elements of a page, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "hr", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def shown(*texts: str, **more: str) -> str:
    return page(view_of(talk(*texts, **more), UTC), Links())


def harmless(html: str) -> Seen:
    """The page, if nothing in it can run or be loaded."""
    seen = Seen(html)
    assert not seen.open
    for tag, attributes in seen.tags:
        assert tag in TAGS
        assert set(attributes) <= ATTRIBUTES
        for name in ("href", "src"):
            if (address := attributes.get(name)) is not None:
                assert re.match(
                    r"https?://|mailto:|#m\d+$|data:image/(png|jpeg|gif|webp);base64,[\w+/=]+$|[^:/]+\.\w+$", address
                )
                assert name == "href" or address.startswith("data:image/")
    return seen


HOSTILE = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "[a](javascript:alert(1)) [b](JAVASCRIPT:alert(1)) [c](data:text/html,x) <javascript:alert(1)>",
    '[a](https://ok.example/"onmouseover="alert(1))',
    '[a](https://ok.example "t\\" onmouseover=alert(1)")',
    "![x](https://evil.example/pixel.png) ![y](data:image/svg+xml;base64,PHN2Zz4=) ![z](file:///etc/passwd)",
    "</article></main></body></html><iframe src=https://evil.example></iframe>",
    '```"><script>alert(1)</script>\ncode\n```',
    "<style>*{display:none}</style><base href=https://evil.example><meta http-equiv=refresh content=0>",
    "| a | b |\n|:--|--:|\n| </td></table><script>1</script> | x |",
    "[x]: javascript:alert(1)\n\n[x]",
    "&lt;script&gt; &#60;script&#62;",
    "<svg/onload=alert(1)>",
    "a\x00b\x1b[31m\ud800c\u202etxt",
    "[" * 3_000 + "](x)",
    "> " * 400 + "deep",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text(text: str) -> None:
    harmless(shown(text, text, text, text, title=text))
    harmless(shown(text, text, title=text, provider="markdown"))
    harmless(index_html(text, [Entry("a.html", text, text, "2024-05-03", 1, "", (text,))]))


@given(
    st.lists(st.text(alphabet=st.sampled_from("<>\"'`&[]()!#*_~|:-=/\\ \nax1数א"), max_size=60), min_size=2, max_size=4)
)
def test_whatever_a_message_says_nothing_runs(texts: list[str]) -> None:
    harmless(page(view_of(talk(*texts), UTC), Links()))


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\x00\r"), max_size=200))
def test_what_a_person_typed_stands_there_letter_by_letter(text: str) -> None:
    blank = re.compile(r"\s|```[^\n]*")
    html = shown(text, "x")
    article = html[html.index("<article") : html.index("</article>")]
    said = Seen(f"<html>{article}</article></html>").text.removeprefix("You 23:30")
    assert blank.sub("", said).removeprefix("You23:30") == blank.sub("", text)


def test_the_policy_allows_the_own_style_and_nothing_else() -> None:
    html = shown("a", "b")
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert " style=" not in html


def test_markdown_of_an_answer() -> None:
    answer = (
        "# Head\n\nA **bold** and *slanted* `code`, ~~gone~~.\nNext line.\n\n1. one\n   - two\n3. three\n\n"
        "> quoted\n\n| L | R |\n|:--|--:|\n| a<br>b | 1 |\n\n- [x] done\n\n```python\nx = 'y'  # why\n```\n\n"
        "\\(a_1 * b_1 * c\\) $$x_i$$"
    )
    html = shown("q", answer)
    for part in (
        '<h3 dir="auto">Head</h3>',
        "<strong>bold</strong>",
        "<em>slanted</em>",
        "<code>code</code>",
        "<s>gone</s>.<br>\nNext line.",
        '<td dir="auto" class="left">a<br>\nb</td>',
        '<td dir="auto" class="right">1</td>',
        "☑ done",
        '<span class="s">y</span>',
        '<span class="c"># why</span>',
        "<code>\\(a_1 * b_1 * c\\)</code>",
        "<code>$$x_i$$</code>",
        '<ol dir="ltr">',
    ):
        assert part in html, part


def test_line_ends_are_meant_in_chats_and_not_in_documents() -> None:
    assert '<p dir="auto">roses<br>\nviolets</p>' in shown("q", "roses\nviolets")
    assert '<p dir="auto">roses\nviolets</p>' in shown("roses\nviolets", provider="markdown")


def test_a_question_is_shown_as_it_was_typed() -> None:
    html = shown("why is __init__ called?\n  indented\n```python\nclass A:\n    pass\n```\nsee https://a.example.", "x")
    assert "why is __init__ called?\n  indented</p>" in html
    assert '<span class="k">class</span>' in html
    assert '<a href="https://a.example" rel="noopener noreferrer nofollow">https://a.example</a>.' in html
    assert "<strong>init</strong>" in shown("__init__", provider="markdown")


def test_pictures_are_shown_if_they_are_in_the_text_and_named_if_not() -> None:
    html = shown(
        "q", "![dot](data:image/png;base64,iVBORw0KGgo=) ![chart](https://a.example/c.png) ![](sandbox:/x.png)"
    )
    assert '<img src="data:image/png;base64,iVBORw0KGgo=" alt="dot">' in html
    assert 'Picture: <a href="https://a.example/c.png" rel="noopener noreferrer nofollow">chart</a>' in html
    assert html.count("<img") == 1


def test_tools_and_thinking_are_folded_and_can_be_left_out() -> None:
    conversation = talk("q", "a")
    conversation.messages[1:1] = [
        Message("t1", "thinking", "**hm**", kind="thinking"),
        Message("t2", "tool", '{"x": "<b>"}', kind="tool_call", tool_name="search"),
        Message("t3", "tool", "found", kind="tool_result", tool_name="search"),
    ]
    html = page(view_of(conversation, UTC), Links())
    assert '<summary dir="auto">3 steps: Thinking, Tool call: search, Tool result: search</summary>' in html
    assert "{&quot;x&quot;: &quot;&lt;b&gt;&quot;}" in html
    assert "<details" not in page(view_of(conversation, UTC, folded=False), Links())
    paper = page(view_of(conversation, UTC, most=3), Links(), unfold=True)
    assert paper.count("<details") == paper.count(" open>") == 3
    assert "9 more characters are in the archive." in paper


def test_hidden_rows_and_other_branches_stay_at_home() -> None:
    conversation = talk("q", "a")
    conversation.messages += [
        Message("h", "user", "injected", hidden_reason="context"),
        Message("b", "assistant", "regenerated", branch_active=False),
    ]
    html = page(view_of(conversation, UTC), Links())
    assert "injected" not in html
    assert "regenerated" not in html


def test_files_and_sources() -> None:
    conversation = talk("q", "a")
    conversation.messages[0].attachment = [
        Attachment("plan <1>.pdf", "application/pdf", 2_000, "ref", "the words in it")
    ]
    conversation.messages[1].citations = [Citation("https://a.example/x", "A page"), Citation("javascript:x", "bad")]
    html = page(view_of(conversation, UTC), Links())
    assert "plan &lt;1&gt;.pdf (application/pdf, 2 KB)" in html
    assert "the words in it" in html
    assert '<a href="https://a.example/x" rel="noopener noreferrer nofollow">A page</a>' in html
    assert '<li dir="auto">bad</li>' in html


def test_times_are_those_of_the_zone() -> None:
    html = page(view_of(talk("q", "a"), ZoneInfo("Asia/Shanghai")), Links())
    assert "2024-05-04 · ChatGPT · 2 messages · times in Asia/Shanghai" in html
    assert '<time datetime="2024-05-04T07:30:00+08:00">07:30</time>' in html


def test_directions_and_languages() -> None:
    html = shown("כן", "- أولاً\n- ثانياً\n\n| א | ב |\n|---|---|\n| 1 | 2 |", title="数据库")
    assert '<ul dir="rtl">' in html
    assert '<div class="table" dir="rtl">' in html
    assert '<html lang="zh-Hans">' in html
    for text, language in (("かな", "ja"), ("한국", "ko"), ("資料庫選擇", "zh-Hant"), ("数据库选择", "zh-Hans")):
        assert f' id="m1" lang="{language}">' in shown(text, "x", title="t")
    assert ' id="m1">' in shown("plain", "x")


def test_contents_are_the_questions_or_the_days() -> None:
    html = shown("first\nmore", "a", "second", "b")
    assert '<li><a href="#m1" dir="auto">first</a></li>\n<li><a href="#m3" dir="auto">second</a></li>' in html
    assert "Contents" not in shown("only", "a")
    people = talk("hi", "x", "later", "y", provider="slack")
    for at, message in enumerate(people.messages):
        message.role, message.speaker = "user", "ab"[at % 2]
        if message.created_at and at > 1:
            message.created_at = message.created_at.replace(day=9)
    assert '<li><a href="#m3" dir="auto">2024-05-09</a></li>' in page(view_of(people, UTC), Links())


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a", [(None, "a")]),
        ("a\n```py\nb\n```\nc", [(None, "a"), ("py", "b"), (None, "c")]),
        ("```\nopen", [(None, ""), ("", "open")]),
        ("a ```b``` c", [(None, "a ```b``` c")]),
    ],
)
def test_fences_in_what_was_typed(text: str, pieces: list[tuple[str | None, str]]) -> None:
    assert list(fenced(text)) == pieces
