"""`palace formats`, `palace discover` and what a dry run shows, as people and programs meet them."""

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.cli.app import main
from palace_pipeline.cli.sources import size_in_words
from palace_pipeline.exports.catalogue import with_table
from palace_pipeline.exports.registry import READERS
from palace_pipeline.ingest import ingest
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from tests.cli.conftest import Run
from tests.ingest.exports_for_tests import START, chat, export

ROOT = Path(__file__).parent.parent.parent
HOMES = (
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "COPILOT_HOME", "OPENCLAW_STATE_DIR", "OPENCLAW_HOME"),
    *("HERMES_HOME", "GROK_HOME", "CONTINUE_GLOBAL_DIR", "VSCODE_PORTABLE", "XDG_CONFIG_HOME", "XDG_DOWNLOAD_DIR"),
    *("CLAWDBOT_STATE_DIR", "PI_CODING_AGENT_DIR", "WSL_DISTRO_NAME"),
)


@pytest.fixture
def me(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home folder with logs of two agents and an export in Downloads."""
    folder = tmp_path / "me"
    for name in HOMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    session = ROOT / "tests/fixtures/exports/11-claude-code-session"
    shutil.copytree(session, folder / ".claude/projects/-home-me", ignore=shutil.ignore_patterns("expected.json"))
    (folder / ".codex/sessions").mkdir(parents=True)
    rollout = next((ROOT / "tests/fixtures/exports/16-codex-rollout").rglob("rollout-*.jsonl"))
    shutil.copy(rollout, folder / ".codex/sessions")
    export(folder / "下载/chatgpt-export.json", chat("a", "why is it dark?", "the lamp is broken"))
    return folder


def read(home: Path, *paths: Path) -> dict[str, Any]:
    """What the first stage of `palace ingest` does, without the others."""
    of = Home(load_settings(home))
    with of.writing():
        return ingest(of, list(paths) or None, batch="test").as_counts()


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


# --- discover ---------------------------------------------------------------------------------------------------------


def test_discover_lists_what_is_there_and_changes_nothing(palace: Run, me: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    found = palace("discover", "--json").json
    assert [(p["kind"], p["product"], p["path"], p["files"]) for p in found["places"]] == [
        ("log", "Claude Code", str(me / ".claude/projects"), 1),
        ("log", "Codex", str(me / ".codex/sessions"), 1),
        ("export", "ChatGPT", str(me / "下载/chatgpt-export.json"), 1),
    ]
    assert found["would_add"] == [p["path"] for p in found["places"]]
    assert str(me / ".hermes") in found["looked_at"]
    shown = palace("discover")
    assert shown.code == 0
    assert "would add to" in shown.out
    assert f'path = "{me}/.codex/sessions"' in shown.out
    assert tree(tmp_path) == before


def test_discover_writes_sources_once_and_ingest_takes_them(palace: Run, me: Path, tmp_path: Path) -> None:
    result = palace("discover", "--write")
    assert result.code == 0
    assert "Added 3 source(s)" in result.out
    written = (tmp_path / "home/palace.toml").read_bytes()
    assert load_settings(tmp_path / "home").folders == [
        tmp_path / "home/inbox",
        me / ".claude/projects",
        me / ".codex/sessions",
        me / "下载/chatgpt-export.json",
    ]
    again = palace("discover", "--write", "--json").json
    assert again["added"] == []
    assert all(place["configured"] for place in again["places"])
    assert (tmp_path / "home/palace.toml").read_bytes() == written
    dry = palace("ingest", "--dry-run", "--json")
    assert dry.code == 0
    expected = dry.json
    assert expected["conversations"]["new"] >= 3
    got = read(tmp_path / "home")
    assert got == {key: expected[key] for key in got}
    assert palace("discover").out.count("configured") == 3


def test_an_export_that_was_taken_need_not_become_a_source(palace: Run, me: Path, tmp_path: Path) -> None:
    file = me / "下载/chatgpt-export.json"
    read(tmp_path / "home", file)
    found = palace("discover", "--json").json
    assert [p["taken"] for p in found["places"]] == [False, False, True]
    assert str(file) not in found["would_add"]
    assert "in the archive" in palace("discover").out


def test_what_stands_in_the_settings_stays_as_it_is(palace: Run, me: Path, tmp_path: Path) -> None:
    del me
    settings = tmp_path / "home/palace.toml"
    settings.parent.mkdir()
    lines = [
        "# mine",
        'display_zone = "Europe/Berlin" # home',
        "[[sources]]",
        'path = "/elsewhere"',
        "[redaction]",
        "allow = []",
    ]
    text = "\r\n".join(lines)
    settings.write_bytes(text.encode())
    assert palace("discover", "--write").code == 0
    now = settings.read_bytes().decode()
    assert now.startswith(text)
    values = tomllib.loads(now)
    assert values["sources"][0]["path"] == "/elsewhere"
    assert len(values["sources"]) == 4
    assert values["display_zone"] == "Europe/Berlin"


def test_settings_that_cannot_be_added_to_are_left_alone(palace: Run, me: Path, tmp_path: Path) -> None:
    settings = tmp_path / "home/palace.toml"
    settings.parent.mkdir()
    settings.write_text('sources = [{path = "inbox"}]\n')
    result = palace("discover", "--write")
    assert result.code == 2
    assert f'path = "{me}/.codex/sessions"' in result.err
    assert settings.read_text() == 'sources = [{path = "inbox"}]\n'


def test_a_settings_file_that_is_a_link_stays_one(palace: Run, me: Path, tmp_path: Path) -> None:
    del me
    kept = tmp_path / "dotfiles/palace.toml"
    kept.parent.mkdir()
    kept.write_text("# kept elsewhere\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/palace.toml").symlink_to(kept)
    assert palace("discover", "--write").code == 0
    assert (tmp_path / "home/palace.toml").is_symlink()
    assert "[[sources]]" in kept.read_text()


def test_nothing_is_found_and_people_are_told(palace: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HOMES:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    result = palace("discover", "--write")
    assert result.code == 0
    assert "were found" in result.out
    assert not (tmp_path / "home").exists()


def test_sizes_as_people_read_them() -> None:
    assert [size_in_words(n) for n in (0, 999, 1000, 123_456, 5_300_000_000)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "123 KB",
        "5.3 GB",
    ]


# --- formats ----------------------------------------------------------------------------------------------------------


def test_formats_need_no_archive_and_make_none(palace: Run, tmp_path: Path) -> None:
    listed = palace("formats", "--json").json
    assert {of["format"] for of in listed["formats"]} == {reader.format for reader in READERS}
    assert all(of["files"] == 0 and of["drift"] is None for of in listed["formats"])
    assert palace("formats").code == 0
    assert not (tmp_path / "home").exists()


def test_drift_is_told_by_receipt_formats_and_doctor(palace: Run, tmp_path: Path) -> None:
    changed = chat("a", "hi", "hello") | {"sparkle": {"secret": "nobody may see this"}}
    file = export(tmp_path / "in/one.json", changed)
    receipt = palace("ingest", str(file), "--json").json
    told = {"format": "chatgpt-export", "files": 1, "nothing": 0, "unknown": {"key:sparkle": 1}}
    assert receipt["drift"] == [told]
    kept = [json.loads(path.read_bytes()) for path in (tmp_path / "home/receipts").glob("*.json")]
    assert [one["drift"] for one in kept] == [[told]]
    again = palace("ingest", str(file))
    assert "drift: chatgpt-export: 1 name(s) never seen: key:sparkle (1)" in again.out
    listed = palace("formats", "--json").json
    of = next(of for of in listed["formats"] if of["format"] == "chatgpt-export")
    assert (of["files"], of["conversations"], of["messages"], of["last_day"]) == (1, 1, 2, "2024-05-03")
    assert of["folders"] == {str(tmp_path / "in"): 1}
    shown = palace("formats").out
    assert of["drift"]["report"] in shown
    assert "nobody may see this" not in shown
    doctor = palace("doctor")
    assert doctor.code == 0
    assert "a format seems to have changed: chatgpt-export" in doctor.out


def test_a_file_that_no_reader_knows_is_named_by_formats(palace: Run, tmp_path: Path) -> None:
    export(tmp_path / "in/one.json", chat("a", "hi"))
    (tmp_path / "in/other.json").write_text('{"a": 1}')
    read(tmp_path / "home", tmp_path / "in")
    assert "unknown JSON: 1 file(s) that no reader knows" in palace("formats").out
    assert palace("formats", "--json").json["unread"] == {"unknown JSON": [str(tmp_path / "in/other.json")]}


def test_the_table_in_the_documentation_is_that_of_the_registry() -> None:
    page = (ROOT / "docs/formats.md").read_text("utf-8")
    assert with_table(page) == page, "run: python -m palace_pipeline.exports.catalogue docs/formats.md"


def test_every_format_says_where_people_get_it() -> None:
    for reader in READERS:
        assert reader.spec.where, reader.format
        assert len(reader.spec.where) <= 160, reader.format


# --- the dry run ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with two conversations, and the export that it was made of."""
    folder = tmp_path_factory.mktemp("built")
    export(folder / "in/one.json", chat("a", "why is it dark?", "the lamp is broken"), chat("b", "x", "y"))
    with pytest.raises(SystemExit) as ended:
        main(["--home", str(folder / "home"), "ingest", str(folder / "in")])
    assert ended.value.code == 0
    return folder


@pytest.fixture
def grown(built: Path, tmp_path: Path) -> Path:
    """The next export: one conversation grew, one is new, one is as it was."""
    shutil.copytree(built / "home", tmp_path / "home")
    export(
        tmp_path / "in/two.json",
        chat("a", "why is it dark?", "the lamp is broken", "and now?"),
        chat("b", "x", "y"),
        chat("c", "数据库怎么选？", start=START + 86_400),
    )
    return tmp_path / "in"


def test_a_dry_run_says_the_numbers_of_the_run_that_follows(palace: Run, grown: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    expected = palace("ingest", "--dry-run", "--json", str(grown))
    assert tree(tmp_path) == before
    got = palace("ingest", "--json", str(grown))
    assert expected.code == got.code == 0
    numbers = ("files", "conversations", "messages", "skipped", "drift")
    assert {key: expected.json[key] for key in numbers} == {key: got.json[key] for key in numbers}
    assert expected.json["conversations"] == {"found": 3, "new": 1, "updated": 1, "unchanged": 1, "skipped": 0}
    for path in (tmp_path / "home/receipts").glob("*.json"):
        assert "preview" not in json.loads(path.read_bytes())
        assert "lamp" not in path.read_text()


def test_a_dry_run_lists_what_is_new_and_how_it_is_understood(palace: Run, grown: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    preview: dict[str, Any] = palace("ingest", "--dry-run", "--json", str(grown)).json["preview"]
    assert [(c["outcome"], c["title"]) for c in preview["conversations"]] == [
        ("new", "Chat c"),
        ("updated", "Chat a"),
        ("unchanged", "Chat b"),
    ]
    shown = palace("ingest", "--dry-run", str(grown)).out
    assert "chatgpt-export: 1 new, 1 updated, 1 unchanged" in shown
    assert "“数据库怎么选？”" in shown
    assert "3 (1 new)" in shown
    assert tree(tmp_path) == before


def test_long_lists_are_cut_for_people_and_whole_for_programs(palace: Run, tmp_path: Path) -> None:
    file = export(tmp_path / "in/many.json", *(chat(f"c{n}", f"q{n}") for n in range(30)))
    assert "and 20 more new; --json lists all" in palace("ingest", "--dry-run", str(file)).out
    assert len(palace("ingest", "--dry-run", "--json", str(file)).json["preview"]["conversations"]) == 30
