"""A changed set of rooms in `palace.toml`: the next run files anew, embeds nothing, and every store says the same."""

from pathlib import Path

import pytest

from palace_pipeline.checks import audit
from palace_pipeline.search.engine import Searcher
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.lexical import Filters, open_reader
from palace_pipeline.store.sql import query
from palace_pipeline.transcripts.page import parse
from palace_pipeline.transcripts.terms import query_terms
from tests.filing.test_trial import filed, room_texts
from tests.stages.test_stages import EVERYTHING, planned, run, take

ASKED = "bread oven dough 猫砂 驱虫 git commit regex"
"""Words of every drawer."""


def in_chroma(home: Home) -> dict[str, str]:
    import chromadb

    client = chromadb.PersistentClient(str(home.path / "chroma"))
    try:
        got = client.get_collection("palace_drawers").get(include=["metadatas"])
        return {one: str(metadata["room"]) for one, metadata in zip(got["ids"], got["metadatas"] or [], strict=True)}
    finally:
        client.close()


def in_the_lexical_index(home: Home, rooms: set[str]) -> dict[str, str]:
    reader = open_reader(home.path / "lexical")
    assert reader is not None
    terms = query_terms(ASKED)
    return {one: room for room in rooms for one, _ in reader.search(terms, 50, Filters(room=room))}


def in_the_tables(home: Home) -> dict[str, str]:
    return dict(query(home.path, "SELECT drawer_id, room FROM drawers")[1])


def on_pages(home: Home) -> dict[str, tuple[str, ...]]:
    """Title -> the rooms that its front matter names."""
    return {(page := parse(path.read_text())).conversation.title or "": page.head.rooms for path in pages(home)}


def pages(home: Home) -> list[Path]:
    return sorted(home.conversations.rglob("*.md"))


def every_store_agrees(home: Home) -> dict[str, str]:
    there = filed(home)
    assert in_chroma(home) == there
    assert in_the_lexical_index(home, set(there.values())) == there
    assert in_the_tables(home) == there
    titles = dict(
        query(home.path, "SELECT drawer_id, title FROM drawers JOIN conversations USING (conversation_id)")[1]
    )
    assert on_pages(home) == {titles[one]: (room,) for one, room in there.items()}
    of_messages = query(home.path, "SELECT DISTINCT conversation_id, room FROM messages WHERE visible")[1]
    assert sorted(of_messages) == sorted(query(home.path, "SELECT DISTINCT conversation_id, room FROM drawers")[1])
    assert audit(home, EVERYTHING) == {}
    assert planned(home) == []
    return there


def test_all_stores_follow_and_nothing_is_embedded(home: Home, other_rooms: Path, embedded: list[str]) -> None:
    was = every_store_agrees(home)
    vectors = {path.name: path.read_bytes() for path in (home.lake.folder / "clean/vectors").glob("*.parquet")}
    (home.path / "palace.toml").write_bytes(other_rooms.read_bytes())
    changed = Home(load_settings(home.path))
    assert planned(changed) != []
    embedded.clear()
    counts = take(changed)
    assert counts["file_drawers"]["vectors"] == 0
    assert set(embedded) <= room_texts(changed)
    assert {path.name: path.read_bytes() for path in (home.lake.folder / "clean/vectors").glob("*.parquet")} == vectors
    now = every_store_agrees(changed)
    assert sorted(set(now.values()) - set(was.values())) == ["kitchen", "养猫"]
    searcher = Searcher(changed.path, changed.settings)
    assert [hit.title for hit in searcher.search("bread", room="kitchen").hits] != []
    assert searcher.search("bread", room="technical").verdict != "found"

    (home.path / "palace.toml").write_text("")  # and back
    take(back := Home(load_settings(home.path)))
    assert every_store_agrees(back) == was


def test_a_backfill_files_by_the_changed_rooms_too(home: Home, other_rooms: Path) -> None:
    (home.path / "palace.toml").write_bytes(other_rooms.read_bytes())
    changed = Home(load_settings(home.path))
    with changed.writing():
        run(changed, EVERYTHING, force=True)
    assert "kitchen" in every_store_agrees(changed).values()


def test_a_changed_wing_reaches_every_store(home: Home) -> None:
    (home.path / "palace.toml").write_text('[[wings]]\nmatch = "chat cat"\nname = "pets"\n')
    changed = Home(load_settings(home.path))
    take(changed)
    every_store_agrees(changed)
    assert query(changed.path, "SELECT title FROM conversations WHERE wing = 'pets'")[1] == [("Chat cat",)]
    [page] = [path for path in pages(changed) if "cat" in path.name]
    assert parse(page.read_text()).head.wing == "pets"


@pytest.mark.parametrize("words", ["", "words = { zh = ['面包', '烤箱'] }\n"])
def test_words_of_a_room_may_come_and_go(home: Home, words: str) -> None:
    file = home.path / "palace.toml"
    file.write_text(f"[[rooms]]\nname = 'kitchen'\ndescription = 'baking bread in an oven, recipes'\n{words}")
    take(changed := Home(load_settings(home.path)))
    assert "kitchen" in every_store_agrees(changed).values()
