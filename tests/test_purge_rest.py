"""What a purge has to find beside whole conversations: parts of files that are cut, what was purged before, names of files."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.checks import audit
from palace_pipeline.exports.scan import scan
from palace_pipeline.ingest import ingest, needs_reading
from palace_pipeline.ingest.purged import KnownFiles
from palace_pipeline.purge import PurgeError, find_conversation
from palace_pipeline.redaction.forgetting import tombstone
from palace_pipeline.redaction.forgotten import forget, masked_name
from palace_pipeline.stages.names import write_receipt
from palace_pipeline.stages.publish import publish_exports
from palace_pipeline.store.home import Home
from palace_pipeline.store.vault import Vault
from tests.ingest.exports_for_tests import chat, export
from tests.stages.test_stages import EVERYTHING, planned, take
from tests.test_purge import ANSWER, OTHER, SECRET_PLAN, everything, forget_chat, forget_value, home

__all__ = ["home"]

GONE = "gone-chat-6634f2a1-0001"
"""As long as ids of products are: their messages' are made of it."""
PLACE = "Villa Aurelia"


def gone_chat(*more: str) -> dict[str, Any]:
    return chat(GONE, SECRET_PLAN, ANSWER, *more)


def other_chat() -> dict[str, Any]:
    return chat("stays", OTHER, "begin in March")


def cut(path: Path, *chats: Any, keep: float) -> Path:
    """An export of which only the beginning has arrived."""
    data = export(path, *chats).read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    return path


def pieces(home: Home) -> bytes:
    vault = Vault(home.path / "vault", reading=True)
    found = b"".join(data for _, data in vault.every("pieces"))
    vault.close()
    return found


# --- parts of files that are cut --------------------------------------------------------------------------------------


def test_the_piece_of_a_cut_file_that_shows_a_purged_conversation_goes_too(home: Home, tmp_path: Path) -> None:
    whole = export(tmp_path / "in/a.json", gone_chat(), other_chat())
    broken = cut(tmp_path / "in/cut.json", other_chat(), gone_chat(), keep=0.9)
    take(home, whole, broken)
    assert pieces(home).count(SECRET_PLAN.encode()) == 2
    purged = forget_chat(home, GONE, vault=True)
    assert purged.clean, purged.proof.found
    assert purged.removed["pieces"] == 2
    assert purged.files == [str(whole), str(broken)]
    assert SECRET_PLAN.encode() not in everything(home)
    assert OTHER.encode() in pieces(home)
    assert audit(home, EVERYTHING) == {}
    assert planned(home) == []


def test_a_part_is_known_by_its_ids_where_its_words_say_nothing(home: Home, tmp_path: Path) -> None:
    short = chat(GONE, "hi", "ho", "hm")
    take(home, export(tmp_path / "in/a.json", short), cut(tmp_path / "in/cut.json", short, keep=0.7))
    assert pieces(home).count(f"{GONE}-0".encode()) > 1
    assert forget_chat(home, GONE, vault=True).clean
    assert pieces(home) == b""


def test_a_part_that_stands_beside_another_conversation_stays_and_its_file_is_named(home: Home, tmp_path: Path) -> None:
    take(home, export(tmp_path / "in/a.json", gone_chat()))
    text = json.dumps([gone_chat(), other_chat()])
    lost = tmp_path / "in/lost.json"
    at = text.index('"current_node"')
    lost.write_text(text[:at] + text[at:].replace("}", "", 1))  # a bracket is lost: both become one element
    take(home, lost)
    purged = forget_chat(home, GONE, vault=True)
    assert purged.clean, purged.proof.found
    assert str(lost) in purged.files
    assert purged.shared == [str(lost)]
    assert SECRET_PLAN.encode() in pieces(home)
    assert OTHER.encode() in pieces(home)


def test_a_part_that_comes_later_is_not_kept(home: Home, tmp_path: Path) -> None:
    take(home, export(tmp_path / "in/a.json", gone_chat(), other_chat()))
    assert forget_chat(home, GONE, vault=True).clean
    for share in (0.95, 0.8):
        take(home, cut(tmp_path / "in/cut.json", other_chat(), gone_chat(), keep=share))
        assert SECRET_PLAN.encode() not in everything(home), share
    take(home, cut(tmp_path / "in/other.json", chat("another-chat-of-long-id", "a third thing", "yes"), keep=0.8))
    assert b"a third thing" in pieces(home)


def test_a_damaged_log_that_comes_later_is_not_kept(home: Home, tmp_path: Path, fixtures: Path) -> None:
    source = next((fixtures / "exports/11-claude-code-session").rglob("*.jsonl"))
    log = tmp_path / "in" / source.name
    log.parent.mkdir()
    log.write_bytes(source.read_bytes())
    take(home, log)
    with home.ledger() as ledger:
        (row,) = ledger.rows("SELECT provider, conversation_id FROM conversations")
    assert forget_chat(home, f"{row[0]}:{row[1]}", vault=True).clean
    # A line without its end: no reader takes it, and it holds the session's id.
    log.write_bytes(next(line for line in source.read_bytes().splitlines() if b"parentUuid" in line)[:-20])
    take(home, log)
    assert pieces(home) == b""


# --- what was purged before -------------------------------------------------------------------------------------------


def test_what_was_purged_can_be_purged_again_with_its_raw_bytes(home: Home, tmp_path: Path) -> None:
    file = export(tmp_path / "in/a.json", gone_chat(), other_chat())
    take(home, file)
    assert forget_chat(home, GONE).clean
    assert SECRET_PLAN.encode() in pieces(home)
    for named in (f"chatgpt:{GONE}", GONE):
        target = find_conversation(home, named, vault=True)
        assert (target.keys, target.before, target.files) == ([("chatgpt", GONE)], True, [str(file)])
    again = forget_chat(home, GONE, vault=True)
    assert again.clean, again.proof.found
    assert again.proof.probes >= 2  # what it said was read from the raw bytes
    assert again.removed["pieces"] == 1
    assert again.files == [str(file)]
    assert SECRET_PLAN.encode() not in everything(home)
    assert OTHER.encode() in pieces(home)
    assert planned(home) == []


@pytest.mark.parametrize("file_is_there", [True, False])
def test_sweeping_again_finds_a_part_that_an_older_purge_left(home: Home, tmp_path: Path, file_is_there: bool) -> None:
    file = export(tmp_path / "in/a.json", gone_chat(), other_chat())
    take(home, file)
    assert forget_chat(home, GONE, vault=True).clean
    with home.ledger() as ledger:  # as if no ids had been kept of it
        ledger.write("DELETE FROM tombstones WHERE hash != ?", (tombstone("chatgpt", GONE, home.key()),))
    take(home, cut(tmp_path / "in/cut.json", other_chat(), gone_chat(), keep=0.97))
    assert SECRET_PLAN.encode() in pieces(home)
    if not file_is_there:
        file.unlink()
    again = forget_chat(home, GONE, vault=True)
    assert again.clean, again.proof.found
    assert (again.proof.probes > 0) is file_is_there
    assert SECRET_PLAN.encode() not in everything(home)


def test_who_was_never_there_is_still_unknown(home: Home, tmp_path: Path) -> None:
    take(home, export(tmp_path / "in/a.json", gone_chat(), other_chat()))
    forget_chat(home, GONE)
    for named in ("nobody", f"claude:{GONE}", GONE[:-1], ""):
        with pytest.raises(PurgeError):
            find_conversation(home, named, vault=False)


# --- names of files ---------------------------------------------------------------------------------------------------


def look(home: Home, *paths: Path) -> dict[str, dict[str, int]]:
    with home.writing():
        found = ingest(home, list(paths), batch="look")
        publish_exports(home, "look")
        with home.ledger() as ledger:
            write_receipt(home, ledger, "look")
    return {unit: found.of(unit) for unit in ("files", "conversations")}


def test_a_value_in_the_name_of_a_file_is_masked_and_the_file_keeps_its_name(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / f"in/{PLACE}"
    note = folder / f"{PLACE} notes.md"
    folder.mkdir(parents=True)
    note.write_text("# A plan\n\nNothing about the place itself, only apples and pears.\n")
    file = export(folder / "a.json", other_chat())
    (folder / f"broken {PLACE}.json").write_text("{")
    with zipfile.ZipFile(folder / "b.zip", "w") as archive:
        archive.writestr(f"{PLACE}/conversations.json", json.dumps([chat("zipped", "what else", "nothing")]))
        archive.writestr(f"{PLACE}/broken.json", "{")
    take(home, folder)
    before = look(home, folder)
    purged = forget_value(home, PLACE, vault=True)
    assert purged.clean, purged.proof.found
    assert purged.called == [str(tmp_path / "in")]
    assert PLACE not in json.dumps(purged.as_json())
    assert b"Aurelia" not in everything(home)
    # Nothing is new, nothing is read again, and nothing of it comes back.
    with home.ledger() as ledger:
        assert not needs_reading(scan([folder]), KnownFiles(home, ledger), home.settings)
    assert look(home, folder) == before
    assert planned(home) == []
    dry = ingest(home, [folder], batch="dry", dry_run=True)
    assert {unit: dry.of(unit) for unit in before} == before
    for path in folder.iterdir():
        path.touch()
    assert look(home, folder) == before
    note.write_text("# A plan\n\nNothing about the place itself, only apples, pears and plums.\n")
    export(file, other_chat(), chat("new", "one more", "yes"))
    (folder / f"broken {PLACE}.json").write_text("{{")
    dry = ingest(home, [folder], batch="dry", dry_run=True)
    with home.writing():
        real = ingest(home, [folder], batch="grown")
    assert dry.as_counts() == real.as_counts()
    assert (real.conversations["updated"], real.conversations["new"]) == (1, 1)
    take(home, folder)
    look(home, folder)
    assert b"Aurelia" not in everything(home)
    assert audit(home, EVERYTHING) == {}
    assert len(list(home.quarantine.iterdir())) == 1
    with home.ledger() as ledger:
        assert len(ledger.rows("SELECT * FROM files")) == 4
    # It stays so however the user goes on: the same value again, the file renamed.
    assert forget_value(home, PLACE, vault=True).clean
    note.rename(folder / "notes.md")
    take(home, folder)
    assert b"Aurelia" not in everything(home)


def test_two_names_that_differ_in_what_was_purged_stay_two(home: Home, tmp_path: Path) -> None:
    for name in ("Aurelia", "Aureliana"):
        export(tmp_path / f"in/{name}.json", chat(f"chat-{name[-1]}{len(name)}", name[0] + " word", "yes"))
    take(home, tmp_path / "in")
    before = look(home, tmp_path / "in")
    assert forget_value(home, "Aureliana", vault=True).clean
    assert forget_value(home, "Aurelia", vault=True).clean
    assert look(home, tmp_path / "in") == before
    with home.ledger() as ledger:
        assert len(ledger.rows("SELECT * FROM files")) == 2


KEY = b"k" * 32
NAMES = st.text("ab/.北", max_size=12)


@given(st.lists(st.text("ab北", min_size=4, max_size=5), min_size=1, max_size=3, unique=True), NAMES, NAMES)
def test_masked_names_are_stable_and_stay_apart(values: list[str], one: str, other: str) -> None:
    known = [forget(value, KEY) for value in values]
    shown = masked_name(one, known, KEY)
    assert not any(value in shown for value in values)
    assert masked_name(shown, known, KEY) == shown
    assert (shown == masked_name(other, known, KEY)) is (one == other)
    if not any(value in one for value in values):
        assert shown == one
