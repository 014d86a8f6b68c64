"""What a look says of files that were not taken though they should have been."""

from __future__ import annotations

from pathlib import Path

from palace_pipeline.ingest import ingest
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from tests.ingest.exports_for_tests import chat, export


def test_what_should_have_been_taken_is_counted_by_what_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    export(folder / "a.json", chat("a", "hello", "hi"))
    home = Home(load_settings(tmp_path / "home"))
    with home.writing():
        assert ingest(home, [folder], batch="1").lacking() == ""
        (folder / "broken.zip").write_bytes(b"PK\x03\x04" + b"\0" * 40)
        (folder / ".hidden").write_text("never taken")
        assert ingest(home, [folder], batch="2").lacking() == "1 of 3 files"
