"""What a person is told of an archive: before there is one, when it is empty, and when rules have changed."""

import re
from pathlib import Path

import pytest

from palace_pipeline.ingest import recipes
from palace_pipeline.settings import load_settings
from palace_pipeline.stages import recipes as stage_recipes
from palace_pipeline.store.home import Home
from tests.cli.conftest import Run
from tests.ingest.exports_for_tests import START, chat, export

DAY = 86_400


@pytest.fixture
def archive(palace: Run, tmp_path: Path) -> Run:
    """Three conversations on two days that lie a week apart."""
    export(
        tmp_path / "in/a.json",
        chat("a", "the code name is bluefalcon", "I see"),
        chat("b", "hi", "ho"),
        chat("c", "later", "yes", start=START + 7 * DAY),
    )
    assert palace("ingest", str(tmp_path / "in")).code == 0
    return palace


def new_rule(tmp_path: Path) -> None:
    (tmp_path / "home/palace.toml").write_text("[redaction]\nprivate_patterns = ['bluefalcon']\n")


def tree(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_a_changed_rule_is_told_before_it_makes_work(archive: Run, tmp_path: Path) -> None:
    assert archive("status", "--json").json["again"] == {}
    assert "again" not in archive("status").out
    new_rule(tmp_path)
    said = "2 days (3 conversations) will be redacted again: rules or settings of redaction changed"
    expected = {"redaction": {"days": 2, "conversations": 3, "said": said}}
    status = archive("status", "--json").json
    assert status["again"] == expected
    assert status["days_with_work"] == 2  # not the quiet days between
    before = tree(tmp_path / "home")
    dry = archive("ingest", str(tmp_path / "in"), "--dry-run", "--json")
    assert dry.json["again"] == expected
    assert tree(tmp_path / "home") == before
    for result in (archive("status"), archive("ingest", str(tmp_path / "in"), "--dry-run")):
        assert [line for line in result.out.splitlines() if said in line] == [
            f"again, since something has changed here: {said}"
        ]
    assert "2 days with work; run: palace ingest" in archive("status").out
    assert archive("ingest", str(tmp_path / "in")).code == 0
    assert archive("status", "--json").json["again"] == {}
    assert "every day is up to date" in archive("status").out


def test_what_is_new_is_not_called_again(archive: Run, tmp_path: Path) -> None:
    export(tmp_path / "in/b.json", chat("d", "hi", "ho"), chat("b", "hi", "ho", "more", "yes"))
    assert archive("ingest", str(tmp_path / "in"), "--dry-run", "--json").json["again"] == {}


def test_a_changed_chunker_and_a_changed_reader_are_named(
    archive: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_recipes, "CHUNK_RECIPE", "another")
    reader = next(reader for reader in recipes.READERS if reader.format == "chatgpt-export")
    monkeypatch.setitem(recipes.RECIPES, "chatgpt-export", str(reader.recipe) + "1")
    again = archive("status", "--json").json["again"]
    assert list(again) == ["reader", "chunks"]
    assert (
        again["chunks"]["said"]
        == "2 days (3 conversations) will be cut again: the chunker or the embedding model changed"
    )
    assert again["reader"] == {
        "days": 2,
        "conversations": 3,
        "files": 1,
        "formats": ["chatgpt-export"],
        "said": "1 file will be read again, with at most 2 days (3 conversations): readers changed (chatgpt-export)",
    }


def test_where_there_is_nothing_yet_it_is_said_how_to_begin(palace: Run, tmp_path: Path) -> None:
    inbox = tmp_path / "home/inbox"
    for command in (("status",), ("doctor",), ("search", "x"), ("stats",), ("sql", "select 1")):
        result = palace(*command)
        assert result.code == 2
        assert "palace ingest EXPORT" in result.err
        assert "palace discover" in result.err
        assert str(inbox) in result.err
    dry = palace("ingest", "--dry-run")
    assert dry.code == 0
    assert not inbox.parent.exists()
    real = palace("ingest")
    assert real.code == 0
    for result in (dry, real):
        assert f"or put exports into {inbox}, then: palace ingest" in result.err
    status = palace("status")
    assert "no conversation in the archive yet" in status.out
    assert f"or put exports into {inbox}, then: palace ingest" in status.out
    assert "None" not in status.out
    assert "not built yet" not in palace("stats").err
    assert palace("search", "hello").out.count("Nothing found") <= 1


def test_the_counts_say_what_they_count(archive: Run, tmp_path: Path) -> None:
    (tmp_path / "in/cut.zip").write_bytes(b"PK\x03\x04 cut")
    (tmp_path / "in/user.json").write_text("{}")
    archive("ingest", str(tmp_path / "in"))
    lines = archive("status").out.splitlines()
    assert lines[1:6] == [
        "3 files read: 1 taken, 1 without a chat, 1 that could not be read",
        "3 conversations on 2 days, 2024-05-03 to 2024-05-10",
        "6 messages, those of tools and thinking included",
        "from chatgpt 3",
        "not taken, though it should have been: 1 file; see: palace doctor",
    ]
    home = Home(load_settings(tmp_path / "home"))
    with home.ledger() as ledger:
        ledger.write("UPDATE conversations SET status = 'withheld' WHERE conversation_id = 'a'")
        ledger.write("UPDATE conversations SET status = 'partial' WHERE conversation_id = 'b'")
    status = archive("status")
    assert "1 conversation withheld, fields of 1 conversation; see: palace doctor" in status.out
    value = archive("status", "--json").json
    assert (value["withheld"], value["withheld_in_part"], value["not_taken_by_unit"]) == (1, 1, {"file": 1})


def test_the_settings_of_a_new_home_name_only_commands_that_there_are(palace: Run, tmp_path: Path) -> None:
    palace("ingest")
    named = set(re.findall(r"`palace ([a-z]+)", (tmp_path / "home/palace.toml").read_text()))
    assert "stats" in named
    assert all(palace(command, "--help").code == 0 for command in named)


# --- words of people --------------------------------------------------------------------------------------------------


def test_a_filter_that_nothing_has_is_wrong_usage_and_shows_what_there_is(archive: Run) -> None:
    for option, value, said in (
        ("--provider", "chatgtp", "'chatgtp'; did you mean chatgpt? There are: chatgpt"),
        ("--provider", "slack", "the provider 'slack'. There are: chatgpt"),
        ("--role", "asistant", "did you mean assistant? There are: assistant, user"),
        ("--room", "no-such-room", "the room 'no-such-room'"),
        ("--wing", "no-such-wing", "the wing 'no-such-wing'"),
    ):
        result = archive("search", "hi", option, value)
        assert result.code == 2, option
        assert said in result.err
    assert archive("search", "hi", "--provider", "chatgpt", "--role", "user").code == 0


@pytest.mark.parametrize(
    ("day", "said"),
    [
        ("lately", "'lately' is no day; write year-month-day, for example 2024-05-31"),
        ("31.05.2024", "'31.05.2024' is no day; write year-month-day"),
        ("2024-13-01", "there is no day '2024-13-01' in the calendar"),
        ("2023-02-29", "there is no day '2023-02-29' in the calendar"),
    ],
)
def test_a_day_that_is_none_is_told_how_to_be_written(palace: Run, day: str, said: str) -> None:
    for command in (("search", "x", "--since", day), ("backfill", "--from", day, "--to", "2024-05-31")):
        result = palace(*command)
        assert result.code == 2
        assert said in " ".join(result.err.replace("│", " ").split())
        assert "formats" not in result.err


def test_one_message_is_no_messages(palace: Run, tmp_path: Path) -> None:
    file = export(tmp_path / "in/a.json", chat("one", "hi"), chat("two", "hi", "ho"))
    for result in (palace("parse", str(file)), palace("ingest", "--dry-run", str(file))):
        assert "1 message " in result.out
        assert "2 messages" in result.out
        assert "1 messages" not in result.out
    assert "1 day · 2 pages · " in palace("ingest", str(file)).out
