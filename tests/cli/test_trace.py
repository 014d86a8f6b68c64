"""`palace first`, `timeline`, `day`, `thread`, `similar`, as a person and as a program meet them."""

from functools import partial
from pathlib import Path

import pytest

from palace_pipeline.cli import main
from tests.cli.conftest import Run
from tests.ingest.exports_for_tests import START, chat, export


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of an archive of three conversations on three days; START is 2024-05-01 in UTC or near it."""
    folder = tmp_path_factory.mktemp("archive")
    file = export(
        folder / "in/conversations.json",
        chat("lighthouse", "Why did the lighthouse go dark?", "The generator ran out of diesel at three."),
        chat("database", "数据库怎么选？", "先看读写比例，再看团队熟悉什么。", start=START + 86_400),
        chat("again", "Is the lighthouse lit again?", "Yes, since Tuesday.", start=START + 40 * 86_400),
    )
    with pytest.raises(SystemExit) as ended:
        main(["--home", str(folder / "home"), "ingest", str(file)])
    assert ended.value.code == 0
    return folder / "home"


@pytest.fixture
def archive(built: Path, palace: Run) -> Run:
    return partial(palace, home=built)


def test_the_first_mention_for_people_and_for_programs(archive: Run) -> None:
    value = archive("first", "When did I first talk about the lighthouse?", "--json").json
    assert value["topic"] == "the lighthouse"
    assert value["verdict"] == "found"
    first = value["first"]
    assert (first["conversation_id"], first["message_index"], first["how"]) == ("lighthouse", 0, "exact")
    assert first["quote"] == "Why did the lighthouse go dark?"
    assert value["searched"]["messages"] == 6
    told = archive("first", "lighthouse").out
    assert first["date"] in told
    assert first["page"] in told
    assert "none of the 0 messages before that day speaks of it" in told


def test_what_was_never_discussed(archive: Run) -> None:
    result = archive("first", "zeppelin")
    assert result.code == 0
    assert "zeppelin" in result.out
    assert archive("timeline", "zeppelin", "--json").json["verdict"] in ("none", "weak")


def test_a_timeline_is_oldest_first(archive: Run) -> None:
    value = archive("timeline", "lighthouse", "--json").json
    assert [one["conversation_id"] for one in value["conversations"]] == ["lighthouse", "again"]
    told = archive("timeline", "lighthouse").out
    assert told.index("Why did the lighthouse") < told.index("Is the lighthouse lit")
    assert "mentions by month" in told


def test_a_day_and_its_threads(archive: Run) -> None:
    date = archive("first", "数据库", "--json").json["first"]["date"]
    value = archive("day", date, "--json").json
    assert [talk["conversation_id"] for talk in value["conversations"]] == ["database"]
    assert "数据库怎么选？" in archive("day", date).out
    assert "Nothing was said" in archive("day", "1999-01-01").out
    assert archive("day", "soon").code == 2
    thread = archive("thread", "chatgpt:database", "--json").json
    assert [one["text"] for one in thread["messages"]] == ["数据库怎么选？", "先看读写比例，再看团队熟悉什么。"]
    told = archive("thread", "database", "--around", "1", "--context", "0").out
    assert "先看读写比例" in told
    assert "怎么选" not in told.split("\n", 2)[2]
    assert archive("thread", "nobody").code == 2
    wrong = archive("thread", "database", "--around", "9")
    assert (wrong.code, "0 to 1" in wrong.err) == (2, True)


def test_a_text_that_is_there_already(archive: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Why did the lighthouse go dark?\n\nThe generator ran out of diesel at three."
    value = archive("similar", text, "--json").json
    assert value["duplicate"]
    assert value["similar"][0]["conversation_id"] == "lighthouse"
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("Bees dance to tell where the flowers are."))
    assert "Nothing in the archive" in archive("similar").out


def test_a_name_that_is_not_there_is_told_with_those_that_are(archive: Run) -> None:
    result = archive("first", "lighthouse", "--provider", "chatgtp")
    assert result.code == 2
    assert "did you mean chatgpt?" in result.err
