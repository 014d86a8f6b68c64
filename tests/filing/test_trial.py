"""`palace rooms try`: what it says is what an ingest does then; it changes nothing and embeds only the rooms' texts."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from palace_pipeline.filing.trial import beginning, what_if
from palace_pipeline.rooms.examples import as_chunk, definitions
from palace_pipeline.settings import load_settings, with_rooms_of
from palace_pipeline.store.home import Home
from tests.cli.conftest import Run
from tests.stages.test_stages import take

FIRST_LINE = "my sourdough bread stays flat, what can I do?"


def room_texts(home: Home) -> set[str]:
    """All that the rooms of a home say of themselves."""
    rooms = [*home.settings.rooms, *definitions("room"), *definitions("hall")]
    said = [t for room in rooms for t in (room.description, *room.examples, *map(" ".join, room.words.values()))]
    return {as_chunk(text) for text in said} | set(said)


def files(home: Home) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in home.path.rglob("*") if path.is_file()
    }


def filed(home: Home) -> dict[str, str]:
    rows = home.lake.read("clean/drawers", home.lake.months("clean/drawers"))
    return dict(rows.select("drawer_id", "room").iter_rows())


def test_it_says_what_would_move_and_changes_nothing(home: Home, other_rooms: Path, embedded: list[str]) -> None:
    before = files(home)
    tried = with_rooms_of(home.settings, other_rooms)
    trial = what_if(home, tried)
    assert files(home) == before
    assert set(embedded) <= room_texts(Home(tried))
    assert (trial.drawers, trial.without_vector) == (4, 0)
    assert trial.room("kitchen").then == 1
    assert trial.room("养猫").then == 1
    assert trial.room("astronomy").then == 0
    assert trial.moved == sum(trial.moves.values()) == trial.conversations == 2
    assert sum(room.now for room in trial.rooms) == sum(room.then for room in trial.rooms) == 4
    by_room = {example.after: example for example in trial.examples}
    assert set(by_room) == {"kitchen", "养猫"}
    bread = by_room["kitchen"]
    assert (bread.title, bread.quote, bread.day) == ("Chat bread", FIRST_LINE, "2024-05-03")
    assert (home.path / bread.page).is_file()
    assert FIRST_LINE in (home.path / bread.page).read_text()


def test_an_ingest_with_these_rooms_does_what_the_trial_said(home: Home, other_rooms: Path) -> None:
    trial = what_if(home, with_rooms_of(home.settings, other_rooms))
    was = filed(home)
    (home.path / "palace.toml").write_bytes(other_rooms.read_bytes())
    take(Home(load_settings(home.path)))
    now = filed(home)
    moved = [(was[one], now[one]) for one in was if was[one] != now[one]]
    assert sorted(moved) == sorted(pair for pair, count in trial.moves.items() for _ in range(count))
    again = what_if(Home(load_settings(home.path)), load_settings(home.path))
    assert again.moved == 0
    assert again.examples == ()


def test_wings_are_tried_as_well_and_rooms_that_are_not_named_stay(home: Home, tmp_path: Path) -> None:
    (home.path / "palace.toml").write_text('[[rooms]]\nname = "kitchen"\ndescription = "baking bread"\n')
    settings = load_settings(home.path)
    (tmp_path / "wings.toml").write_text('[[wings]]\nmatch = "chat bread"\nname = "bakery"\n')
    tried = with_rooms_of(settings, tmp_path / "wings.toml")
    assert tried.rooms == settings.rooms
    trial = what_if(home, tried)
    assert trial.wing_moves == {("chatgpt", "bakery"): 1}


def test_a_set_may_do_without_the_default_rooms(home: Home, other_rooms: Path) -> None:
    other_rooms.write_text("default_rooms = false\n" + other_rooms.read_text())
    tried = with_rooms_of(home.settings, other_rooms)
    trial = what_if(home, tried)
    assert {room.name for room in trial.rooms if room.then} == {"kitchen", "养猫", "general"}
    assert trial.general.then == 2
    (home.path / "palace.toml").write_bytes(other_rooms.read_bytes())
    take(Home(load_settings(home.path)))
    assert sorted(filed(home).values()) == ["general", "general", "kitchen", "养猫"]


def test_drawers_without_a_vector_are_left_out_and_counted(home: Home, other_rooms: Path) -> None:
    vectors = home.lake.read("clean/vectors", ["2024-05"])
    keys = list(vectors.select("provider", "conversation_id").iter_rows())
    with home.writing():
        home.lake.replace("clean/vectors", "2024-05", keys, vectors.head(1))
    trial = what_if(home, with_rooms_of(home.settings, other_rooms))
    assert (trial.drawers, trial.without_vector) == (3, 1)


@pytest.mark.parametrize("table", ["chunks", "drawers", "conversations"])
def test_what_is_gone_from_the_lake_is_left_out_and_counted(home: Home, other_rooms: Path, table: str) -> None:
    assert what_if(home, with_rooms_of(home.settings, other_rooms)).gone == 0
    for path in home.lake.files(f"clean/{table}", "2024-05"):
        path.unlink()
    trial = what_if(home, with_rooms_of(home.settings, other_rooms))
    assert (trial.gone, trial.without_vector, trial.drawers) == (2, 0, 2)


@pytest.mark.parametrize(
    ("text", "most", "quote"),
    [
        ("\n  ---\n  why?\nbecause", 160, "why?"),
        ("one two three", 8, "one two"),
        ("数据库怎么选择才好", 4, "数据库怎"),
        ("!!!", 160, "!!!"),
        ("", 160, ""),
    ],
)
def test_a_quote_stands_in_the_text(text: str, most: int, quote: str) -> None:
    assert beginning(text, most) == quote
    assert quote in text


def test_the_command_shows_tables_examples_and_what_to_do(made: Path, other_rooms: Path, palace: Run) -> None:
    shown = palace("rooms", "try", str(other_rooms), home=made)
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0] == "2 of 4 drawers would move, in 2 conversations. Nothing has been changed."
    assert "kitchen\t0\t1\t25%" in lines
    assert any(line.endswith("\tkitchen\t1") for line in lines)
    assert f"    {FIRST_LINE}" in lines
    assert "Nothing would be in: astronomy." in shown.out
    assert "general would hold" in shown.out
    value = palace("rooms", "try", str(other_rooms), "--json", home=made).json
    assert value["moved"] == sum(move["drawers"] for move in value["moves"]) == 2
    assert value["empty"] == ["astronomy"]
    assert {example["to"] for example in value["examples"]} == {"kitchen", "养猫"}
    assert sum(room["share"] for room in value["rooms"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rooms]]\nname = 'a'\ndescription 'b'\n", ("line 3",)),
        (
            "[[rooms]]\nname = 'a'\ndescription = 'b'\ncolour = 'red'\n",
            ("line 4: rooms.0.colour: unknown key", "examples"),
        ),
        ("[[rooms]]\nname = 'a'\ndescripton = 'b'\n", ("line 3", "did you mean description?")),
        ("[[rooms]]\ndescription = 'b'\n", ("line 1: rooms.0.name: is missing; add a line: name = …",)),
        ("[[rooms]]\nname = 'a'\n", ("line 1", "nothing says what belongs in a", "add a description")),
        ("[[rooms]]\nname = 'my home'\ndescription = 'b'\n", ("line 2", "letters, digits, - and _ only")),
        ("[[rooms]]\nname = 'a'\nwords = ['x']\n", ("line 3", "write words by language")),
        (
            "[[rooms]]\nname='a'\ndescription='b'\n\n[[rooms]]\nname='a'\ndescription='c'\n",
            ("line 6", "two rooms", "'a'"),
        ),
        ("[[room]]\nname = 'a'\n", ("line 1", "unknown key; did you mean rooms?")),
        ("[rooms]\nname = 'a'\n", ("line 1", "write [[rooms]] with two brackets")),
        ("display_zone = 'UTC'\n", ("has no rooms: write [[rooms]]",)),
        ("", ("has no rooms",)),
        ("home = '/x'\n", ("'home' cannot be set",)),
    ],
)
def test_errors_name_file_line_key_and_what_to_do(
    made: Path,
    tmp_path: Path,
    palace: Run,
    text: str,
    said: Sequence[str],
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    for extra in ((), ("--json",)):
        result = palace("rooms", "try", str(file), *extra, home=made)
        assert result.code == 2
        assert result.out == ""
        for part in (str(file), *said):
            assert part in result.err


def test_a_file_that_cannot_be_read_or_is_not_there(made: Path, tmp_path: Path, palace: Run) -> None:
    (tmp_path / "latin.toml").write_bytes(b"[[rooms]]\nname = 'a'\ndescription = '\xe4'\n")
    assert "save it as UTF-8" in palace("rooms", "try", str(tmp_path / "latin.toml"), home=made).err
    missing = palace("rooms", "try", str(tmp_path / "none.toml"), home=made)
    assert missing.code == 2
    assert f"not there: {tmp_path / 'none.toml'}" in missing.err
