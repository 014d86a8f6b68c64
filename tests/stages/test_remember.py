"""With `remember`, a secret that one conversation claims is masked in all others, in whatever order they come."""

from itertools import permutations
from pathlib import Path

import pytest

from palace_pipeline.ingest import ingest
from palace_pipeline.planner import plan
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.common import Job
from palace_pipeline.stages.normalize import normalize
from palace_pipeline.stages.recipes import recipes_of
from palace_pipeline.stages.redact import redact
from palace_pipeline.store.home import Home
from tests.ingest.exports_for_tests import START, chat, export
from tests.redaction.samples import token

DAY = 86_400
SHAPE = "[0-9a-f]{32}"  # bare, this could as well be a hash
SECRET, OTHER = token(SHAPE, 7), token(SHAPE, 8)
CHATS = {
    "claims": chat("claims", f"the api key is {SECRET}", start=START),
    "shows": chat("shows", f"what does {SECRET} do, and {OTHER}?", start=START + 40 * DAY),
    "quotes": chat("quotes", f"see https://acme.dev/x/{SECRET}/y", start=START + 80 * DAY),
}


def home_of(folder: Path, remember: bool) -> Home:
    folder.mkdir()
    (folder / "palace.toml").write_text(f"[redaction]\nremember = {str(remember).lower()}\n")
    return Home(load_settings(folder))


def take(home: Home, path: Path) -> int:
    """Ingest, normalise and redact until nothing is planned; returns the rounds."""
    with home.writing():
        ingest(home, [path], batch="test")
        for rounds in range(6):
            with home.ledger() as ledger:
                spans = plan(ledger, recipes_of(home))
                left = ledger.rows("SELECT 1 FROM conversations WHERE redacted_in IS NULL")
            if not left:
                return rounds
            for span in spans:
                job = Job(home, span, recipes_of(home), "test")
                normalize(job)
                redact(job)
    raise AssertionError("redaction does not come to rest")


def texts(home: Home) -> list[str]:
    return sorted(home.lake.read("clean/messages", home.lake.months("clean/messages"))["text"].to_list())


@pytest.mark.parametrize("order", list(permutations(CHATS)))
def test_the_order_of_the_exports_makes_no_difference(tmp_path: Path, order: tuple[str, ...]) -> None:
    home = home_of(tmp_path / "home", remember=True)
    for number, name in enumerate(order):
        take(home, export(tmp_path / f"{number}.json", CHATS[name]))
    assert texts(home) == sorted(
        [
            "the api key is [REDACTED:secret]",
            f"what does [REDACTED:secret] do, and {OTHER}?",
            "see https://acme.dev/x/[REDACTED:secret]/y",
        ]
    )


def test_all_in_one_export_come_to_rest_with_the_same_result(tmp_path: Path) -> None:
    home = home_of(tmp_path / "home", remember=True)
    assert take(home, export(tmp_path / "all.json", *CHATS.values())) <= 2
    assert not any(SECRET in text for text in texts(home))
    assert sum(OTHER in text for text in texts(home)) == 1


def test_off_by_default_and_only_hashes_are_kept(tmp_path: Path) -> None:
    off = home_of(tmp_path / "off", remember=False)
    take(off, export(tmp_path / "all.json", *CHATS.values()))
    assert sum(SECRET in text for text in texts(off)) == 2
    on = home_of(tmp_path / "on", remember=True)
    take(on, export(tmp_path / "again.json", *CHATS.values()))
    assert SECRET.encode() not in (on.path / "ledger.sqlite").read_bytes()
