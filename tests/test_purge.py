"""`palace purge`, without the command line: what is gone, what stays, and that it stays gone."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from palace_pipeline.ingest import ingest
from palace_pipeline.purge import PurgeError, finish, find_conversation, find_value, purge_conversation, purge_value
from palace_pipeline.settings import load_settings
from palace_pipeline.stages.audit import audit
from palace_pipeline.store.home import Home
from palace_pipeline.store.vault import Vault
from tests.ingest.exports_for_tests import START, chat, export
from tests.stages.test_stages import DAY, EVERYTHING, planned, snapshot, take

SECRET_PLAN = "the meeting behind the old harbour is at nine"
ANSWER = "I will bring the blue umbrella as agreed upon"
OTHER = "an ordinary question about gardening in spring"
VALUE = "Villa Aurelia 北京"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


def forget_chat(home: Home, named: str, *, vault: bool = False):
    with home.writing():
        target = find_conversation(home, named, vault=vault)
        return purge_conversation(home, target.keys, vault=vault, batch="purge")


def forget_value(home: Home, value: str, *, vault: bool = False):
    with home.writing():
        return purge_value(home, find_value(home, value), vault=vault, batch="purge")


def everything(home: Home) -> bytes:
    """All bytes of a home, and those that its vault keeps compressed."""
    files = [path for path in home.path.rglob("*") if path.is_file()]
    found = b"".join(path.name.encode() + path.read_bytes() for path in files)
    vault = Vault(home.path / "vault", reading=True)
    found += b"".join(data for table in ("records", "pieces") for _, data in vault.every(table))
    vault.close()
    return found


def test_a_purged_conversation_is_in_no_store_and_the_others_stay_as_they_were(home: Home, tmp_path: Path) -> None:
    file = export(tmp_path / "in/a.json", chat("gone-chat", SECRET_PLAN, ANSWER), chat("stays", OTHER, "begin in March"))
    take(home, file)
    others = {name: data for name, data in snapshot(home).items() if name.endswith(".md") and "gone" not in name}
    assert len(others) == 1
    purged = forget_chat(home, "chatgpt:gone-chat", vault=True)
    assert purged.clean, purged.proof.found
    assert purged.proof.probes >= 2
    assert purged.removed["conversations"] == 1
    assert purged.files == [str(file)]
    left = everything(home)
    assert SECRET_PLAN.encode() not in left
    assert ANSWER.encode() not in left
    assert OTHER.encode() in left
    now = snapshot(home)
    assert {name: now[name] for name in others} == others
    assert [name for name in now if name.endswith(".md")] == list(others)
    assert audit(home, EVERYTHING) == {}
    assert planned(home) == []


@pytest.mark.parametrize("vault", [False, True])
def test_a_purged_conversation_does_not_come_back(home: Home, tmp_path: Path, vault: bool) -> None:
    file = export(tmp_path / "in/a.json", chat("gone-chat", SECRET_PLAN, ANSWER), chat("stays", OTHER, "begin in March"))
    take(home, file)
    forget_chat(home, "gone-chat", vault=vault)
    before = snapshot(home)
    with home.writing():
        again = ingest(home, [file], batch="again")
    assert again.files["unchanged"] == 1
    assert again.conversations == {"found": 2, "new": 0, "updated": 0, "unchanged": 1, "skipped": 1}
    assert planned(home) == []
    export(file, chat("gone-chat", SECRET_PLAN, ANSWER, "one more word"), chat("stays", OTHER, "begin in March"))
    dry = ingest(home, [file], batch="dry", dry_run=True)
    take(home, file)
    with home.writing():
        real = ingest(home, [file], batch="again")
    assert dry.conversations == real.conversations == again.conversations
    assert [(skip.reason, skip.expected) for skip in dry.skips] == [("purged by you", True)]
    assert snapshot(home) == before
    left = everything(home)
    assert (SECRET_PLAN.encode() in left) is not vault
    with home.ledger() as ledger:
        assert ledger.one("SELECT 1 FROM conversations WHERE conversation_id = 'gone-chat'") is None


def test_a_purged_value_is_masked_everywhere_and_stays_masked(home: Home, tmp_path: Path) -> None:
    shown = chat("shown", f"we meet at {VALUE} on Monday", "a fine place")
    shown["title"] = f"Plans for {VALUE}"
    file = export(tmp_path / "in/a.json", shown, chat("stays", OTHER, "begin in March", start=START + DAY))
    take(home, file)
    page = next(path for path in home.conversations.rglob("*.md") if "aurelia" in path.name)
    text = page.read_text()
    page.write_text(text.replace("## Notes\n", f"## Notes\n\nnever forget {VALUE}\n"))
    page.with_name(f"{page.stem}.conflict.md").write_text(f"an old copy with {VALUE}")
    others = {name: data for name, data in snapshot(home).items() if name.endswith(".md") and "stays" in name}
    purged = forget_value(home, VALUE, vault=True)
    assert purged.clean, purged.proof.found
    left = everything(home)
    for form in (VALUE.encode(), json.dumps(VALUE)[1:-1].encode(), VALUE.encode("utf-16-le"), b"aurelia"):
        assert form not in left
    assert "never forget [REDACTED:purged]" in next(home.conversations.rglob("*purged*.md")).read_text()
    assert audit(home, EVERYTHING) == {}
    assert planned(home) == []
    now = snapshot(home)
    assert {name: now[name] for name in others} == others
    with home.writing():
        again = ingest(home, [file], batch="again")
    assert again.conversations["unchanged"] == 2
    export(file, shown, chat("stays", OTHER, "begin in March", start=START + DAY), chat("new", f"again {VALUE}", "yes"))
    take(home, file)
    assert VALUE.encode() not in everything(home)
    assert json.dumps(VALUE)[1:-1].encode() not in everything(home)
    assert {name: data for name, data in snapshot(home).items() if name in now and name.endswith(".md")} == {
        name: data for name, data in now.items() if name.endswith(".md")
    }
