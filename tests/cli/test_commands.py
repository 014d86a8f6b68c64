"""The command line as a person and as a program meet it."""

import io
import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from palace_pipeline import __version__
from palace_pipeline.cli.app import main, take_home
from tests.cli.conftest import Run
from tests.ingest.exports_for_tests import START, chat, export


def small_export(folder: Path) -> Path:
    """Two conversations on two days."""
    return export(
        folder / "in/conversations.json",
        chat("a", "Why did the lighthouse go dark?", "The generator ran out of diesel at three."),
        chat("b", "数据库怎么选？", "先看读写比例，再看团队熟悉什么。", start=START + 86_400),
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a small archive that is made once; tests that use it leave it as it is."""
    folder = tmp_path_factory.mktemp("archive")
    with pytest.raises(SystemExit) as ended:
        main(["--home", str(folder / "home"), "ingest", str(small_export(folder))])
    assert ended.value.code == 0
    return folder / "home"


@pytest.fixture
def archive(built: Path, palace: Run) -> Run:
    """`palace` on the archive that is made once."""
    return partial(palace, home=built)


# --- the main job -----------------------------------------------------------------------------------------------------


def test_ingest_prints_a_receipt_whose_sums_add_up_and_keeps_it(palace: Run, tmp_path: Path) -> None:
    file = export(tmp_path / "in/a.json", chat("a", "hi", "hello"), chat("b", "x"))
    receipt = palace("ingest", str(file), "--json").json
    for unit, found in (("files", 1), ("conversations", 2), ("messages", 3)):
        counts = receipt[unit]
        assert counts["found"] == found == sum(counts[k] for k in ("new", "updated", "unchanged", "skipped"))
    assert (receipt["pages"], receipt["drawers"], receipt["vectors"], receipt["days"]) == (2, 2, 2, 1)
    kept = [json.loads(path.read_bytes()) for path in (tmp_path / "home/receipts").glob("*.json")]
    assert kept == [receipt]
    again = palace("ingest", str(file), "--json")
    assert again.code == 0
    assert again.json["conversations"]["unchanged"] == 2
    assert set(again.json["seconds"]) == {"raw_exports"}  # nothing to do starts no run


def test_what_was_not_taken_is_named_with_its_reason_and_the_exit_code_is_one(palace: Run, tmp_path: Path) -> None:
    export(tmp_path / "in/good.json", chat("a", "hi"))
    (tmp_path / "in/cut.zip").write_bytes(b"PK\x03\x04 cut")
    result = palace("ingest", str(tmp_path / "in"))
    assert result.code == 1
    assert f"not taken: {tmp_path}/in/cut.zip: " in result.out
    assert palace("ingest", str(tmp_path / "in")).code == 1
    assert palace("sql", "select reason from skips where not expected", "--json").json != []
    assert "mend or replace the file" in palace("doctor").out
    (tmp_path / "in/cut.zip").unlink()
    assert palace("ingest", str(tmp_path / "in")).code == 0
    said = palace("doctor").out
    assert f"{tmp_path}/in/cut.zip: " in said
    assert "it is not there now; if you moved it away, nothing is to be done" in said
    assert "mend or replace the file" not in said


def test_a_doubt_is_a_note_and_nothing_is_left_out(palace: Run, tmp_path: Path) -> None:
    file = tmp_path / "in/WhatsApp Chat with Ana.txt"
    file.parent.mkdir()
    file.write_text("03/04/2026, 10:01 - Ana: the boat is here\n03/04/2026, 10:02 - Teo: good\n")
    for _ in range(2):
        result = palace("ingest", str(file))
        assert result.code == 0
        assert "\nnote: day and month may be the other way round: read as day first\n" in result.out
        assert "left out" not in result.out


def test_a_path_that_is_not_there_is_wrong_usage_and_makes_no_home(palace: Run, tmp_path: Path) -> None:
    result = palace("ingest", str(tmp_path / "nowhere.zip"))
    assert result.code == 2
    assert "nowhere.zip" in result.err
    assert not (tmp_path / "home").exists()


def test_a_dry_run_makes_no_home(palace: Run, tmp_path: Path) -> None:
    file = export(tmp_path / "in/a.json", chat("a", "hi"))
    assert palace("ingest", "--dry-run", "--json", str(file)).json["conversations"]["new"] == 1
    assert not (tmp_path / "home").exists()


def test_the_inbox_is_what_is_read_without_a_path(palace: Run, tmp_path: Path) -> None:
    export(tmp_path / "home/inbox/a.json", chat("a", "hi"))
    assert palace("ingest", "--json").json["conversations"]["new"] == 1


def test_a_backfill_makes_the_same_days_again(archive: Run, built: Path) -> None:
    pages = {p: p.read_bytes() for p in (built / "conversations").rglob("*.md")}
    result = archive("backfill", "--from", "2024-05-03", "--to", "2024-05-03", "--json")
    assert result.code == 0
    assert result.json["pages"] == 1
    assert {p: p.read_bytes() for p in (built / "conversations").rglob("*.md")} == pages
    assert archive("backfill", "--from", "2024-05-04", "--to", "2024-05-03").code == 2


def test_a_typo_in_the_settings_stops_before_anything_is_written(palace: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "palace.toml").write_text("[redaction]\nprivate_patern = []\n")
    result = palace("ingest", str(export(tmp_path / "in/a.json", chat("a", "hi"))))
    assert result.code == 2
    assert "redaction.private_patern: unknown key" in result.err
    assert [path.name for path in home.iterdir()] == ["palace.toml"]


# --- finding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [("lighthouse dark", "Chat a"), ("数据库", "Chat b"), ("generator diesel", "Chat a")],
)
def test_search_finds_in_both_languages(archive: Run, query: str, expected: str) -> None:
    found = archive("search", query, "--json").json
    assert found["query"] == query
    assert found["verdict"] == "found"
    best = found["hits"][0]
    assert best["title"] == expected
    assert {"provider", "conversation_id", "message_index", "score", "date", "page", "quote"} <= set(best)
    assert expected in archive("search", query).out


def test_search_lines_answer_each_question(archive: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = '{"id": "q1", "query": "lighthouse", "limit": 5}\n{"id": "q2", "query": "数据库", "limit": 5}\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode()), "utf-8"))
    answers = [json.loads(line) for line in archive("search", "--jsonl").out.splitlines()]
    assert [a["id"] for a in answers] == ["q1", "q2"]
    assert [a["hits"][0]["conversation_id"] for a in answers] == ["a", "b"]


def test_sql_answers_as_a_table_and_as_json(archive: Run) -> None:
    query = "select provider, count(*) as n from conversations group by all"
    assert archive("sql", query, "--json").json == [{"provider": "chatgpt", "n": 2}]
    assert archive("sql", query).out == "provider\tn\nchatgpt\t2\n"


@pytest.mark.parametrize("query", ["delete from messages", "select * from read_text('/etc/hostname')", "selekt 1"])
def test_sql_only_reads_the_archive(archive: Run, query: str) -> None:
    assert archive("sql", query).code == 2


def test_status_stats_and_doctor_of_a_healthy_archive(archive: Run) -> None:
    status = archive("status", "--json").json
    assert (status["conversations"], status["messages"], status["days_with_work"]) == (2, 4, 0)
    assert archive("stats").code == 0
    assert archive("stats", "--json").json
    doctor = archive("doctor", "--json")
    assert doctor.code == 0
    assert {finding["level"] for finding in doctor.json["findings"]} == {"ok"}


def test_doctor_says_what_is_wrong_and_what_mends_it(palace: Run, built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "home")
    (tmp_path / "home/lake/clean/chunks/2024-05.parquet").write_bytes(b"PAR1")
    result = palace("doctor")
    assert result.code == 1
    assert "2024-05.parquet" in result.out
    assert "palace backfill --from 2024-05-01 --to 2024-05-31" in result.out


@pytest.mark.parametrize(
    "command",
    [("status",), ("search", "x"), ("sql", "select 1"), ("stats",), ("doctor",), ("first", "x"), ("day", "today")],
)
def test_reading_commands_make_no_home(palace: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    result = palace(*command)
    assert result.code == 2
    assert "palace ingest" in result.err
    assert not (tmp_path / "home").exists()


# --- filters ----------------------------------------------------------------------------------------------------------


def test_parse_shows_and_changes_nothing(palace: Run, fixtures: Path, tmp_path: Path) -> None:
    path = fixtures / "exports/01-chatgpt-basic/conversations.json"
    understood = palace("parse", str(path), "--json").json
    assert [c["conversation_id"][-1] for c in understood["conversations"]] == ["1", "2"]
    assert "2026-03-14" in palace("parse", str(path)).out
    assert not (tmp_path / "home").exists()


def in_a_process(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "palace_pipeline.cli", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, **environment},
    )


def test_redact_masks_text_and_lines(tmp_path: Path) -> None:
    token = "gh" + "p_" + "a1B2c3D4e5F6" * 3
    plain = in_a_process("redact", stdin=f"钥匙 {token} ok\n", PALACE_HOME=str(tmp_path / "none"))
    assert plain.stdout == "钥匙 [REDACTED:github-pat] ok\n"
    lines = in_a_process("redact", "--jsonl", stdin=json.dumps({"id": 1, "text": token}) + "\n")
    answer = json.loads(lines.stdout)
    assert answer["text"] == "[REDACTED:github-pat]"
    assert answer["findings"] == [{"kind": "github-pat", "start": 0, "end": len(token)}]
    assert not (tmp_path / "none").exists()


def test_classify_lines() -> None:
    asked = [
        {"id": 1, "text": "The deploy fails with exit code 137, what is wrong?"},
        {"id": 2, "text": "红烧肉怎么做？"},
    ]
    result = in_a_process("classify", "--jsonl", stdin="".join(json.dumps(a) + "\n" for a in asked))
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [a["id"] for a in answers] == [1, 2]
    assert all({"room", "hall", "confidence"} <= set(a) for a in answers)


# --- conventions ------------------------------------------------------------------------------------------------------


def test_version_and_help_are_quick_to_load() -> None:
    assert in_a_process("--version").stdout.strip() == f"palace {__version__}"
    heavy = ("dagster", "chromadb", "duckdb", "onnxruntime", "polars")
    code = f"import sys, palace_pipeline.cli; print([m for m in {heavy} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
    assert "palace_pipeline" not in in_a_process("--help").stderr


def test_home_may_stand_anywhere_before_a_double_dash() -> None:
    assert take_home(["--home", "/a", "status"]) == (["status"], "/a")
    assert take_home(["status", "--home=/a", "--json"]) == (["status", "--json"], "/a")
    assert take_home(["search", "--", "--home", "/a"]) == (["search", "--", "--home", "/a"], None)


def test_wrong_usage_is_two(palace: Run) -> None:
    assert palace("ingest", "--no-such-option").code == 2
    assert palace("--home").code == 2


def test_two_homes_never_mix(palace: Run, archive: Run, tmp_path: Path) -> None:
    other = export(tmp_path / "in/other.json", chat("c", "only here"))
    assert palace("ingest", str(other), home=tmp_path / "second").code == 0
    assert archive("sql", "select count(*) n from conversations", "--json").json == [{"n": 2}]
    assert palace("sql", "select count(*) n from conversations", "--json", home=tmp_path / "second").json == [{"n": 1}]


def test_no_chat_text_reaches_dagsters_storage(built: Path) -> None:
    marks = [b"generator ran out", "读写比例".encode(), "读写比例".encode("unicode-escape"), b"Chat a"]
    for path in (built / "dagster").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [mark for mark in marks if mark in data], path.name


def test_everything_in_a_home_is_its_owners_alone(built: Path) -> None:
    for path in (built, *built.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path.relative_to(built.parent)
