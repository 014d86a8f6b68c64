"""HTML to text: what a person sees is all there, in order, and nothing that a browser would not show."""

import html as library
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.exports.html_text import attributes_of, html_to_text, plain_text, tokens

EXAMPLES = {
    "<p>Spring tides follow the <strong>new</strong> moon.</p><ul><li>twice</li><li>a month</li></ul>": (
        "Spring tides follow the new moon.\n\n- twice\n- a month"
    ),
    "one<br>two<br/>three<br><br><br>four": "one\ntwo\nthree\n\nfour",
    "<h2>潮</h2>\n  <p>words\n   over  lines</p><hr><p>end</p>": "## 潮\n\nwords over lines\n\n---\n\nend",
    "<ol><li>a<ul><li>in</li><li>in too</ul><li>b<p>more</p></ol>after": (
        "1. a\n   - in\n   - in too\n2. b\n\n   more\n\nafter"
    ),
    "<ol start=7><li>x</li></ol>": "7. x",
    "<blockquote><p>said</p><p>twice</p></blockquote>then": "> said\n>\n> twice\n\nthen",
    "<pre><code class='hljs language-py'>if a &lt; b:\n    go()\n</code></pre>tail": (
        "```py\nif a < b:\n    go()\n```\n\ntail"
    ),
    "<pre>```\nfence\n```</pre>": "````\n```\nfence\n```\n````",
    "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td><p>2</p></td></tr></table>end": (
        "| A | B |\n| --- | --- |\n| 1 | 2 |\n\nend"
    ),
    "<table><tr><td>a<td>b<tr><td>c</table>": "| a | b |\n| c |",
    "<b>a</b><i>b</i> <u>c</u>": "ab c",
    "a&nbsp;&amp;&lt;b&gt; &#28526; &#x1F30A; &unknown; &#99999999999999999999999;": (
        "a\u00a0&<b> 潮 \U0001f30a &unknown; \ufffd"
    ),
    "x<!-- not > seen -->y<script>if (a < b) {}</script><style>p{}</style><template>t</template>z": "xyz",
    "<!DOCTYPE html><html><head><title>no</title></head><body>yes": "yes",
    'a <img src="p.png" alt="pier"> b <span title="x > y">c</span>': "a b c",
    "5 < 6 and 7 > 2": "5 < 6 and 7 > 2",
    "": "",
    "<ul></ul><p></p><table></table>": "",
}


@pytest.mark.parametrize("source", EXAMPLES)
def test_examples(source):
    assert html_to_text(source).text == EXAMPLES[source]


def test_links_and_pictures_stand_beside_the_text():
    found = html_to_text(
        "See <a href='https://x.test/?a=1&amp;b=2'>the <b>tide</b>\ntable</a>. <img src=a.png alt='a b'>"
    )
    assert found.text == "See the tide table."
    assert found.links == [("https://x.test/?a=1&b=2", "the tide table")]
    assert found.images == [("a.png", "a b")]


def test_attributes():
    assert attributes_of(" CLASS = 'a  b' data-x=\"1\" hidden id=q class=again") == {
        "class": "a  b",
        "data-x": "1",
        "id": "q",
    }


def test_text_that_a_person_typed_keeps_its_lines_and_blanks():
    assert plain_text(tokens("def f():\n    return 1<br>  x &lt; y<div>z</div>")) == (
        "def f():\n    return 1\n  x < y\nz"
    )


BROKEN = [
    "<!",
    "<a ",
    "<![",
    "&#",
    "<script>",
    "</",
    "<!--",
    '<a b="',
    "<?",
    "<ul><li>",
    "<blockquote>x",
    "<td>x",
    "<tr>",
]


@pytest.mark.parametrize("piece", [*BROKEN, "<tr><td>", "</ul>", "<pre>", "<a href=x>y", "<ol><table>", "<a \"'<b '\""])
def test_any_amount_of_broken_markup_ends(piece):
    """Work per character is bounded: this would take minutes with a search from every tag to the end."""
    html_to_text(piece * 10_000)
    html_to_text(piece * 10_000 + ">")


# --- what always holds ---

WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=6)
INLINE = ["b", "strong", "em", "i", "span", "code", "sup", "a", "u"]
BLOCK = ["p", "div", "li", "ul", "ol", "h1", "h3", "blockquote", "pre", "td", "tr", "table", "section", "figure"]


@st.composite
def pages(draw):
    """(html, words in the order in which they are seen); every word is a text of its own."""
    seen = []

    def some(depth):
        if depth == 0 or draw(st.booleans()):
            word = draw(WORDS)
            seen.append(word)
            blank = draw(st.sampled_from([" ", "\n", "&#32;", "<br>"]))
            return blank + library.escape(word) + blank
        tag = draw(st.sampled_from(INLINE + BLOCK))
        inner = "".join(some(depth - 1) for _ in range(draw(st.integers(0, 3))))
        attributes = draw(st.sampled_from(["", " class='x > y'", ' href="https://h.test/"', " data-a=1"]))
        return f"<{tag}{attributes}>{inner}</{draw(st.sampled_from([tag, tag.upper()]))}>"

    parts = [some(4) for _ in range(draw(st.integers(0, 4)))]
    extra = draw(st.sampled_from(["", "<!-- unseenwordunseen -->", "<style>unseenwordunseen</style>"]))
    return extra + extra.join(parts), seen


@given(pages())
def test_no_word_is_lost_and_no_markup_stays(page):
    source, words = page
    text = html_to_text(source).text
    at = 0
    for word in words:
        at = text.find(word, at)
        assert at >= 0
        at += len(word)
    assert not re.search(r"</?[a-z]+[ >]|&#|unseenwordunseen", text)
    marks = re.sub(r"\d+\. |[-#>|`\s]", "", text)
    assert sorted(marks) == sorted(re.sub(r"\d+\. |[-#>|`\s]", "", "".join(words)))


@given(st.text(alphabet="<>/!-&;#'\"= \nabpredivlutolx1\ud800\0é潮", max_size=80))
def test_anything_gives_text(source):
    found = html_to_text(source)
    assert found == html_to_text(source)
    found.text.encode()
    assert "\0" not in found.text


@given(st.text(max_size=60).filter(lambda text: "\r" not in text and "\0" not in text))
def test_escaped_text_comes_back(text):
    assert plain_text(tokens(library.escape(text))) == text.strip()
