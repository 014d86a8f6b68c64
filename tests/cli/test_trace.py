"""`palace first`, `timeline`, `day`, `thread`, `similar`, as a person and as a program meet them."""

import random
import shutil
import string
from functools import partial
from pathlib import Path

import pytest

from palace_pipeline.cli import main
from palace_pipeline.cli.trace import show_mention, show_messages
from palace_pipeline.search.answers import Hit
from palace_pipeline.search.mentions import Mention
from palace_pipeline.search.reading import Spoken, Talk
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
    assert "no message is of an earlier day" in told
    assert "none of the 2 messages before that day holds these words" in archive("first", "数据库").out


def test_a_chat_without_a_title_has_one_name_everywhere(palace: Run, tmp_path: Path) -> None:
    """That of its page: the beginning of what was asked first. In JSON its title stays empty."""
    untitled = chat("u", "Fix the failing migration test", "Done.", "mail me: anna@example.org", "Noted.") | {
        "title": None
    }
    key = "ghp_" + "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=36))
    secret = chat("s", f"{key} is my key", "Keep it safe.") | {"title": None}
    file = export(tmp_path / "in/a.json", untitled, secret)
    name = "Fix the failing migration test"
    parsed = palace("parse", str(file)).out
    dry, dry_json = (
        palace("ingest", "--dry-run", str(file)).out,
        palace("ingest", "--dry-run", "--json", str(file)).json,
    )
    assert palace("ingest", str(file)).code == 0
    told = [
        parsed,
        dry,
        *(palace("search", "migration").out, palace("first", "migration").out, palace("timeline", "migration").out),
        *(
            palace("day", "2024-05-03").out,
            palace("thread", "chatgpt:u").out,
            palace("similar", name, "--bar", "0.5").out,
        ),
    ]
    for said in told:
        assert name in said
        assert "untitled" not in said.replace("2024-05-03-untitled-", "")  # names of pages stay as they are
        assert said is parsed or key not in said
    assert "is my key" in dry
    assert "chatgpt: [REDACTED:github-pat] is my key" in palace("redact", "--report", str(file)).out
    titles = {one["conversation_id"]: (one["title"], one["name"]) for one in dry_json["preview"]["conversations"]}
    assert titles["u"] == (None, name)
    assert palace("search", "migration", "--json").json["hits"][0]["title"] == ""


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


@pytest.mark.parametrize("command", ["first", "timeline", "search"])
def test_days_that_cannot_be_are_told_and_the_ends_of_the_calendar_are_no_error(archive: Run, command: str) -> None:
    wrong = archive(command, "lighthouse", "--since", "2025-01-01", "--until", "2024-01-01")
    assert (wrong.code, "--since is after --until" in wrong.err) == (2, True)
    result = archive(command, "lighthouse", "--since", "0001-01-01", "--until", "9999-12-31")
    assert (result.code, "Why did the lighthouse go dark?" in result.out) == (0, True)
    assert archive("day", "9999-12-31").code == 0


def test_a_long_question_is_not_said_again_in_full_and_none_leads_nowhere(archive: Run) -> None:
    assert "x" * 200 not in "".join(archive("first", "x" * 5_000).out.split())
    assert "palace search" not in archive("first", "?!").err


def test_without_the_index_nothing_is_claimed(built: Path, palace: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(built, home)
    shutil.rmtree(home / "lexical")
    told = palace("first", "zeppelin", home=home).out
    assert "Not everything could be looked through" in told
    assert "there is no lexical index" in told


def test_a_month_that_cannot_be_read_is_named(built: Path, palace: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(built, home)
    date = palace("first", "数据库", "--json", home=home).json["first"]["date"]
    (month,) = (home / "lake/clean/messages").glob(f"{date[:7]}*.parquet")
    month.write_bytes(b"no parquet")
    value = palace("first", "数据库", "--json", home=home).json
    assert value["first"] is None
    assert value["searched"]["complete"] is False
    assert [f"messages/{date[:7]}" in missing for missing in value["searched"]["missing"]] == [True]
    assert f"messages/{date[:7]}" in value["tried"]
    for command in ("search", "timeline"):
        assert f"messages/{date[:7]}" in palace(command, "数据库", "--json", home=home).json["tried"]
    assert "Nothing that could be read was said" in palace("day", date, home=home).out


def test_a_month_that_is_gone_is_told(built: Path, palace: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(built, home)
    date = palace("first", "数据库", "--json", home=home).json["first"]["date"]
    for path in (home / "lake/clean/messages").glob(f"{date[:7]}*.parquet"):
        path.unlink()
    value = palace("first", "lighthouse", "--json", home=home).json
    assert value["searched"]["complete"] is False
    assert "gone from the lake" in value["tried"]
    assert "gone from the lake" in palace("first", "lighthouse", home=home).out
    assert "gone from the lake" in palace("timeline", "lighthouse", home=home).err
    assert "Nothing that could be read was said" in palace("day", date, home=home).out
    assert palace("gaps", "--all", "--heal", home=home).code == 0
    assert palace("first", "数据库", "--json", home=home).json["searched"]["complete"] is True


def test_the_day_of_a_message_without_a_time_is_said_to_be_that_of_its_conversation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def said(date: str | None, at: str | None) -> Mention:
        part = ("user", None, 1.0, None, 1.0, date, at, "Lights", "Lights", "a.md", None, None, "drawer", "On.", ())
        return Mention("exact", None, Hit("chatgpt", "a", 0, 0, *part))

    for date, at in (("2024-05-01", "2024-05-01T08:00:00Z"), ("2024-05-01", None), (None, None)):
        show_mention(said(date, at))
    heads = [line for line in capsys.readouterr().out.split("\n") if "in these words" in line]
    assert [line.partition("  ")[0] for line in heads] == [
        "2024-05-01",
        "2024-05-01 (the day its conversation began)",
        "undated",
    ]


def test_what_is_no_part_of_the_conversation_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    def spoken(index: int | None, text: str) -> Spoken:
        return Spoken(index, 0, "user", "text", None, None, None, None, None, None, text)

    said = [
        spoken(0, "kept"),
        spoken(None, "edited away"),
        *(spoken(None, "more") for _ in range(60)),
        spoken(1, "last"),
    ]
    show_messages(Talk("chatgpt", "a", "", "Untitled", "", 2, "", tuple(said)), everything=True)
    shown = capsys.readouterr()
    assert [line for line in shown.out.split("\n") if "user" in line][:2] == [
        "[0] user",
        "user (in another branch, or hidden)",
    ]
    assert shown.err.strip() == "3 messages more: --around 1, or --json for all."


def test_in_an_empty_archive_nothing_is_asked_and_nothing_drawn(palace: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.bin").write_bytes(b"\0\1\2")
    palace("ingest", str(tmp_path / "in"))
    for asked in (("first", "hello"), ("timeline", "hello"), ("stats",)):
        result = palace(*asked)
        assert result.code == 0
        assert result.out == (
            f"there is nothing in the archive at {tmp_path / 'home'} yet; begin with: palace ingest EXPORT\n"
        )
    assert palace("first", "hello", "--json").json["verdict"] == "none"
