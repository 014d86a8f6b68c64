"""`palace rooms`: counts, shares and trends by hand."""

import json
from pathlib import Path

import pytest

from palace_pipeline.filing.overview import months_to, overview
from palace_pipeline.rooms.examples import definitions
from palace_pipeline.settings import Room, Settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.sql import query
from tests.cli.conftest import Run

OWN = (Room(name="kitchen", description="cooking"), Room(name="technical", description="code, and what I do with it"))


def test_months_end_with_the_newest_and_cross_years() -> None:
    assert months_to(2024, 2, 3) == ("2023-12", "2024-01", "2024-02")
    assert months_to(2024, 12, 1) == ("2024-12",)


def test_counts_shares_and_trends(made: Path) -> None:
    seen = overview(made, Settings(home=made, rooms=OWN))
    assert (seen.drawers, seen.conversations) == (4, 4)
    assert len(seen.months) == 12
    rooms = {room.name: room for room in seen.places["room"]}
    assert set(rooms) == {room.name for room in definitions("room")} | {"kitchen"}
    assert sum(room.drawers for room in rooms.values()) == 4
    assert sum(room.share for room in rooms.values()) == pytest.approx(1)
    technical = rooms["technical"]
    assert technical.drawers == 2
    assert technical.share == 0.5
    assert technical.description == "code, and what I do with it"
    assert [room.name for room in seen.empty] == ["kitchen"]
    by_month = dict(zip(seen.months, (sum(r.by_month[n] for r in rooms.values()) for n in range(12)), strict=True))
    dated = query(made, "SELECT strftime(day, '%Y-%m'), count(*) FROM drawers GROUP BY 1")[1]
    assert {month: count for month, count in by_month.items() if count} == {m: c for m, c in dated if m in seen.months}
    [wing] = seen.places["wing"]
    assert (wing.name, wing.drawers, wing.conversations, wing.share) == ("chatgpt", 4, 4, 1.0)
    assert [hall.name for hall in seen.places["hall"]] != []
    assert sum(hall.drawers for hall in seen.places["hall"]) == 4
    assert all(hall.description for hall in seen.places["hall"])


def test_a_room_that_takes_most_is_named_but_not_in_a_tiny_archive(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = overview(made, Settings(home=made))
    assert seen.crowded == []
    monkeypatch.setattr("palace_pipeline.filing.overview.FEW", 1)
    monkeypatch.setattr("palace_pipeline.filing.overview.CROWDED", 0.4)
    assert [room.name for room in seen.crowded] == ["general", "technical"]


def test_default_rooms_that_are_not_wanted_are_not_shown_unless_something_is_in_them(made: Path) -> None:
    seen = overview(made, Settings(home=made, rooms=OWN[:1], default_rooms=False))
    rooms = {room.name: room for room in seen.places["room"]}
    assert set(rooms) == {"kitchen", "general", "technical"}
    assert [name for name, room in rooms.items() if not room.known] == ["technical"]


def test_the_command_says_it_for_people_and_programs(made: Path, palace: Run) -> None:
    shown = palace("rooms", home=made)
    assert shown.code == 0
    assert [line for line in shown.out.splitlines() if line in ("Rooms", "Halls", "Wings")] == [
        "Rooms",
        "Halls",
        "Wings",
    ]
    assert any(line.startswith("technical\t2\t2\t50%\t") for line in shown.out.splitlines())
    value = palace("rooms", "--json", home=made).json
    assert value["drawers"] == sum(room["drawers"] for room in value["rooms"]) == 4
    assert value["empty"] == []
    assert value["filed_again"] is None
    assert len(value["months"]) == len(value["rooms"][0]["by_month"]) == 12
    assert json.dumps(value["halls"])


def test_the_command_says_what_is_empty_crowded_gone_and_waiting(
    home: Home,
    palace: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("palace_pipeline.filing.overview.FEW", 1)
    monkeypatch.setattr("palace_pipeline.filing.overview.CROWDED", 0.4)
    (home.path / "palace.toml").write_text('[[rooms]]\nname = "astronomy"\ndescription = "the night sky"\n')
    shown = palace("rooms", home=home.path)
    assert "technical takes 50% of all drawers" in shown.out
    assert "Nothing is in: astronomy" in shown.out
    assert "will be filed again: rooms, wings or the embedding model changed" in shown.out
    assert palace("rooms", "--json", home=home.path).json["filed_again"]["conversations"] == 4


def test_a_home_without_an_archive_is_told_how_to_begin(palace: Run) -> None:
    for command in (("rooms",), ("rooms", "--json")):
        result = palace(*command)
        assert result.code == 2
        assert "palace ingest" in result.err
