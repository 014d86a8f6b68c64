"""Chats without ids in a list that is written anew: one transcript as they grow, two where two are meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from palace_pipeline.ingest import ingest
from palace_pipeline.model import from_record
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home

CAT, DOG = ["hi", "hello, about cats?", "yes"], ["hi", "hello, about dogs?"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


def turns(said: list[str]) -> list[dict[str, str]]:
    return [{"role": "user" if n % 2 == 0 else "assistant", "content": text} for n, text in enumerate(said)]


def look(home: Home, file: Path, *chats: list[str]) -> None:
    """Write the list and look at it."""
    file.parent.mkdir(exist_ok=True)
    if file.suffix == ".jsonl":
        file.write_text("".join(json.dumps({"messages": turns(said)}) + "\n" for said in chats))
    else:
        file.write_text(json.dumps([turns(said) for said in chats]))
    with home.writing():
        ingest(home, [file], batch="test")


def shown(home: Home) -> list[list[str]]:
    """What the archive shows of each conversation that has a transcript of its own."""
    with home.ledger() as ledger, home.vault() as vault:
        rows = ledger.rows("SELECT provider, conversation_id FROM conversations WHERE superseded_by IS NULL")
        records = [ledger.sightings((row[0], row[1])) for row in rows]
        return sorted([m.text for m in from_record(vault.record(live[0]["record"])).messages] for live in records)


@pytest.mark.parametrize("name", ["chats.json", "chats.jsonl"])
def test_a_chat_that_grows_stays_one(home: Home, tmp_path: Path, name: str) -> None:
    file = tmp_path / "in" / name
    for length in (1, 2, 3):
        look(home, file, CAT[:length], DOG)
        assert shown(home) == sorted([CAT[:length], DOG])
    look(home, file, CAT, DOG, ["new"])
    assert shown(home) == sorted([CAT, DOG, ["new"]])


def test_several_grow_at_once(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "in" / "chats.json"
    look(home, file, CAT[:2], DOG, ["alone", "yes"])
    look(home, file, CAT, [*DOG, "woof"], ["alone", "yes", "still"])
    assert shown(home) == sorted([CAT, [*DOG, "woof"], ["alone", "yes", "still"]])


def test_two_chats_that_begin_alike_stay_two(home: Home, tmp_path: Path) -> None:
    look(home, tmp_path / "in" / "chats.json", ["hi"], DOG, [*DOG[:1], "another answer"])
    assert shown(home) == sorted([["hi"], DOG, ["hi", "another answer"]])


def test_where_it_is_not_sure_which_one_went_on_all_stay(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "in" / "chats.json"
    look(home, file, ["hi"])
    look(home, file, CAT, DOG)
    assert shown(home) == sorted([["hi"], CAT, DOG])


def test_what_another_file_still_shows_stays(home: Home, tmp_path: Path) -> None:
    look(home, tmp_path / "old" / "chats.json", DOG)
    file = tmp_path / "in" / "chats.json"
    look(home, file, DOG)
    look(home, file, [*DOG, "woof"])
    assert shown(home) == sorted([DOG, [*DOG, "woof"]])


def test_what_is_deleted_from_a_list_stays(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "in" / "chats.json"
    look(home, file, CAT, DOG)
    look(home, file, DOG, ["something", "else"])
    assert shown(home) == sorted([CAT, DOG, ["something", "else"]])
