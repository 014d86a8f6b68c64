"""Exports in a real browser: hostile text does nothing, the page can be read, and the PDF is what the page says.

Needs the system's Chromium (Debian: `apt install chromium`); without it the tests are skipped. Screenshots stay in pytest's
temporary folder, to be looked at.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from datetime import UTC
from pathlib import Path

import pytest

from palace_pipeline.model import Conversation, Message
from palace_pipeline.publish.browser import Browser, NoBrowser, browser, find_browser
from palace_pipeline.publish.html import page
from palace_pipeline.publish.links import Links
from palace_pipeline.publish.pdf import steady
from palace_pipeline.publish.view import view_of
from tests.publish.conftest import talk
from tests.publish.test_html import HOSTILE

pytestmark = pytest.mark.slow

playwright = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")
try:
    BROWSER = find_browser()
except NoBrowser as error:
    pytest.skip(str(error), allow_module_level=True)


@pytest.fixture(scope="module")
def chromium() -> Generator[playwright.Browser]:
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


def written(conversation: Conversation, folder: Path) -> Path:
    path = folder / "page.html"
    path.write_text(page(view_of(conversation, UTC), Links()), encoding="utf-8", errors="replace")
    return path


def test_hostile_text_does_nothing(chromium: playwright.Browser, tmp_path: Path) -> None:
    attack = [text.replace("alert(1)", "document.title='PWNED'") for text in HOSTILE]
    path = written(talk(*attack, *attack, title="calm"), tmp_path)
    shown = chromium.new_page()
    asked: list[str] = []
    popups: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("dialog", lambda dialog: (popups.append(dialog.message), dialog.dismiss()))
    shown.goto(path.as_uri())
    for link in shown.locator("a").all()[:60]:
        assert not (link.get_attribute("href") or "").lower().startswith(("javascript", "data", "file"))
    shown.wait_for_timeout(500)
    assert shown.title() == "calm"
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]
    assert popups == []
    assert shown.locator("script, iframe, object, svg, form, style:not(head style)").count() == 0
    assert shown.locator("article").count() == 2 * len(HOSTILE)
    shown.close()


def test_the_policy_stops_what_would_get_through(chromium: playwright.Browser, tmp_path: Path) -> None:
    path = written(talk("a", "b", title="calm"), tmp_path)
    planted = (
        "<script>document.title='PWNED'</script><img src='https://evil.example/x.png' onerror=\"document.title='PWNED'\">"
        "<iframe src='https://evil.example/'></iframe><p id=p style='display:none'>x</p>"
    )
    path.write_text(path.read_text("utf-8").replace("<main>", f"<main>{planted}"), encoding="utf-8")
    shown = chromium.new_page()
    sent: list[str] = []
    shown.on("requestfinished", lambda request: sent.append(request.url))
    shown.goto(path.as_uri())
    shown.wait_for_timeout(500)
    assert shown.title() == "calm"
    assert sent == [path.as_uri()]
    assert shown.locator("#p").is_visible()  # also its style is refused
    shown.close()


def test_the_page_can_be_read_and_used(chromium: playwright.Browser, tmp_path: Path) -> None:
    wide = "|" + "a|" * 30 + "\n|" + "-|" * 30 + "\n|" + "long words|" * 30
    conversation = talk("first?", "```python\nx = 1\n```", "שלום?", "数据库", "third?", wide)
    conversation.messages.insert(1, Message("t", "tool", "the tool said so", kind="tool_result", tool_name="search"))
    path = written(conversation, tmp_path)
    for scheme in ("light", "dark"):
        shown = chromium.new_page(viewport={"width": 420, "height": 800}, color_scheme=scheme)
        shown.goto(path.as_uri())
        assert shown.evaluate("document.documentElement.scrollWidth") <= 420  # also with a wide table on a telephone
        assert not shown.get_by_text("the tool said so").is_visible()
        shown.get_by_text("Tool result: search").click()
        assert shown.get_by_text("the tool said so").is_visible()
        back = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        assert back == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 24, 28)")
        direction = "e => getComputedStyle(e).direction"
        assert shown.locator("#m3 .written").evaluate(direction) == "rtl"
        assert shown.locator("#m4 p").last.evaluate(direction) == "ltr"
        shown.get_by_role("link", name="third?").click()
        assert shown.url.endswith("#m5")
        assert shown.locator("#m5").is_visible()
        shown.screenshot(path=str(tmp_path / f"{scheme}.png"), full_page=True)
        shown.close()


@pytest.fixture
def printer(tmp_path: Path) -> Generator[Browser]:
    with browser(tmp_path) as running:
        yield running


def test_a_pdf_is_the_same_each_time_and_says_nothing_of_this_machine(printer: Browser, tmp_path: Path) -> None:
    path = written(talk("数据库?", "See [docs](https://a.example/x) " + HOSTILE[0], title="选型"), tmp_path)
    first, second = (steady(b"".join(printer.print_pdf(path))) for _ in range(2))
    assert first == second
    assert first.startswith(b"%PDF-")
    assert first.rstrip().endswith(b"%%EOF")
    assert b"/URI (https://a.example/x)" in first
    for said in (b"file:", str(tmp_path).encode(), b"Mozilla", b"Headless", b"/JavaScript", b"/JS "):
        assert said not in first
    with browser(tmp_path) as other:
        assert steady(b"".join(other.print_pdf(path))) == first
    assert sorted(one.name for one in tmp_path.iterdir() if not one.name.startswith(".tmp-")) == ["page.html"]


def test_a_long_conversation_is_printed_whole(printer: Browser, tmp_path: Path) -> None:
    texts = [f"message {number} of many, " + "with some more words " * 10 for number in range(2_000)]
    pdf = b"".join(printer.print_pdf(written(talk(*texts), tmp_path)))
    pages = max(
        int(count)
        for count in re.findall(rb"/Type /Pages\s+/Count (\d+)|/Count (\d+)", pdf)
        for count in count
        if count
    )
    assert pages > 100
