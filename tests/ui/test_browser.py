"""A stranger's walk through the UI in a real browser: the flow, an asset, a day made again and green, the sensors running.

Needs the system's Chromium (Debian: `apt install chromium`); without it the test is skipped. Screenshots stay in
pytest's temporary folder, to be looked at.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.ingest.exports_for_tests import chat, export
from tests.ui.served import Served, palace, served, until

pytestmark = pytest.mark.slow

playwright = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")
BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
if BROWSER is None:
    pytest.skip("no Chromium on this system (Debian: apt install chromium)", allow_module_level=True)

DAY = "2024-05-03"
SAID = "zebrafish harpsichord"
"""What the planted chat says; the UI must show it nowhere."""


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("walk")
    texts = (f"why does the {SAID} fail?", f"because the {SAID} has no strings")
    made = palace(folder / "home", "ingest", str(export(folder / "in/a.json", chat("a", *texts))), timeout=300)
    assert made.returncode == 0, made.stderr
    with served(folder / "home") as running:
        yield running


class Walk:
    """A page of the browser that notes what it saw."""

    def __init__(self, page: playwright.Page, ui: Served, folder: Path) -> None:
        self.page, self.ui, self.folder = page, ui, folder
        self.seen: list[str] = []
        self.seconds: dict[str, float] = {}

    def go(self, path: str, *texts: str) -> None:
        """Open a page and wait until it shows the texts."""
        started = time.monotonic()
        self.page.goto(self.ui.url + path)
        for text in texts:
            self.page.get_by_text(text).first.wait_for()
        self.seconds[path] = round(time.monotonic() - started, 2)

    def look(self, name: str) -> None:
        """A screenshot, and the words that are on the page."""
        with suppress(playwright.TimeoutError):
            self.page.wait_for_load_state("networkidle", timeout=5_000)
        self.page.screenshot(path=str(self.folder / f"{name}.png"))
        self.seen.append(self.page.content())


@pytest.fixture
def walk(ui: Served, tmp_path: Path) -> Generator[Walk]:
    with playwright.sync_playwright() as started:
        options = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        browser = started.chromium.launch(executable_path=BROWSER, args=options)
        page = browser.new_page(viewport={"width": 1500, "height": 950})
        page.set_default_timeout(90_000)
        yield Walk(page, ui, tmp_path)
        browser.close()


def newest_materialisation(ui: Served, asset: str) -> float:
    """When the day was last made, in milliseconds; 0 if never."""
    found = ui.ask(
        """query($k: AssetKeyInput!, $d: [String!]) { assetNodeOrError(assetKey: $k) { ... on AssetNode {
             assetMaterializations(partitions: $d, limit: 1) { timestamp } } } }""",
        k={"path": [asset]},
        d=[DAY],
    )["assetNodeOrError"]["assetMaterializations"]
    return float(found[0]["timestamp"]) if found else 0.0


def test_a_strangers_walk(walk: Walk) -> None:
    page, ui = walk.page, walk.ui

    walk.go("/asset-groups", "ingest", "transcripts", "palace", "tables")
    walk.look("1-lineage")

    walk.go("/assets/redacted_transcripts?view=overview", "Step 3 of 9", "conversation_id", "planned_days")
    walk.look("2-asset")

    before = newest_materialisation(ui, "redacted_transcripts")
    assert before > 0
    walk.go(f"/assets/redacted_transcripts?view=partitions&partition={DAY}", "Materialized", DAY)
    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_text("Partition selection").wait_for()
    page.get_by_text("Show all partitions").click()
    chosen = page.locator("input:not([type=checkbox])").last
    chosen.fill(DAY)
    chosen.press("Enter")
    walk.look("3-choose-a-day")
    page.get_by_role("button", name=re.compile("^Launch 1 run")).click()
    until(lambda: newest_materialisation(ui, "redacted_transcripts") > before, "the day has been made again", 180)

    def green() -> bool:
        walk.go(f"/assets/redacted_transcripts?view=partitions&partition={DAY}", DAY, "dagster/row_count")
        return "Materialized (1)" in page.content() and "Failed (0)" in page.content()

    until(green, "the day is green", 60)
    walk.look("4-the-day")

    walk.go("/assets/palace_stats?view=overview", "messages by day", "drawers by room", "seconds by stage")
    page.get_by_text("messages by day").first.scroll_into_view_if_needed()
    assert page.locator("img[src^='data:image/png']").count() > 0 or page.get_by_text("[Show Markdown]").count() > 0
    walk.look("5-pictures")

    walk.go("/runs", "Success")
    walk.look("6-runs")

    walk.go("/automation", "export_folders", "planned_days")
    on = page.locator("input[type=checkbox]:checked")
    until(lambda: on.count() >= 2, "watching is on without a click", 60)
    walk.look("7-sensors")
    walk.go("/locations/palace_pipeline/sensors/export_folders", "runs requested")
    walk.look("8-a-sensor")

    print("seconds until a page showed what was waited for:", walk.seconds)
    assert len(list(walk.folder.glob("*.png"))) == 8
    for word in SAID.split():
        assert not any(word in page_source for page_source in walk.seen), "chat text in the UI"
        stored = [p for p in (ui.home / "dagster").rglob("*") if p.is_file() and word.encode() in p.read_bytes()]
        assert not stored, "chat text in Dagster's storage"
