"""Finding logs and exports: in made-up home folders of three systems, by names and `stat` alone."""

import builtins
import os
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from palace_pipeline.exports import discover as finder
from palace_pipeline.exports.discover import Found, Machine, System, discover, export_by_name, known_places, looked_at
from palace_pipeline.model import PROVIDERS

CONFIG: dict[System, str] = {
    "linux": ".config",
    "mac": "Library/Application Support",
    "windows": "AppData/Roaming",
}
LOGS = {
    ".claude/projects/-home-me-app/0a.jsonl": "claude-code",
    ".codex/sessions/2026/03/14/rollout-2026-03-14T09-00-00-0a.jsonl.zst": "codex",
    ".codex/archived_sessions/rollout-2025-03-14T09-00-00-0b.jsonl": "codex",
    ".gemini/tmp/0a1b/chats/session-2026.json": "gemini-cli",
    ".cursor/projects/app/agent-transcripts/0a/0a.jsonl": "cursor",
    ".copilot/session-state/0a/events.jsonl": "copilot-cli",
    ".openclaw/agents/main/sessions/0a.jsonl": "openclaw",
    ".openclaw/agents/office/sessions/0b.jsonl.reset.2026": "openclaw",
    ".pi/agent/sessions/--home-me--/2026_0a.jsonl": "openclaw",
    ".hermes/state.db": "hermes",
    ".hermes/sessions/20260101_090000_0a.jsonl": "hermes",
    ".hermes/profiles/office/state.db": "hermes",
    ".lmstudio/conversations/folder/1.conversation.json": "lm-studio",
    ".grok/sessions/%2Fhome/0a/chat_history.jsonl": "grok-cli",
    ".continue/sessions/0a.json": "continue",
    "{config}/Cursor/User/globalStorage/state.vscdb": "cursor",
    "{config}/Cursor/User/workspaceStorage/0a/state.vscdb": "cursor",
    "{config}/Code/User/workspaceStorage/0a/chatSessions/0b.json": "vscode-copilot",
    "{config}/Code - Insiders/User/workspaceStorage/0a/chatSessions/0b.jsonl": "vscode-copilot",
    "{config}/VSCodium/User/globalStorage/emptyWindowChatSessions/0b.json": "vscode-copilot",
}
NOT_OURS = (
    "notes.jsonl",
    "work/project/session.jsonl",
    ".claude/settings.json",
    ".gemini/tmp/0a1b/logs.json",
    "{config}/Code/User/workspaceStorage/0a/state.vscdb",
    "{config}/Code/User/settings.json",
    "Downloads/holiday.zip",
    "Downloads/claude-code-main.zip",
    "Downloads/inner/chatgpt-export.zip",
)


def put(home: Path, relative: str, system: System = "linux", size: int = 10, day: str = "2026-03-14") -> Path:
    path = home / relative.replace("{config}", CONFIG[system])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    at = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    os.utime(path, (at, at))
    return path


@pytest.fixture(params=["linux", "mac", "windows"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    system: System = request.param
    for relative in (*LOGS, *NOT_OURS):
        put(tmp_path, relative, system)
    environment = {"APPDATA": str(tmp_path / "AppData/Roaming")} if system == "windows" else {}
    return Machine(system, tmp_path, environment)


def holder(found: list[Found], path: Path) -> list[Found]:
    return [place for place in found if path.is_relative_to(place.path)]


def test_every_known_place_is_found_and_nothing_else(machine: Machine) -> None:
    found = discover(machine)
    for relative, provider in LOGS.items():
        path = machine.home / relative.replace("{config}", CONFIG[machine.system])
        assert [place.provider for place in holder(found, path)] == [provider], relative
    for relative in NOT_OURS:
        assert not holder(found, machine.home / relative.replace("{config}", CONFIG[machine.system])), relative
    assert all(place.kind == "log" and not place.configured for place in found)
    assert {place.files for place in found} == {1}


def test_nothing_is_opened_and_the_home_folder_is_not_walked(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    finder.known_downloads()
    finder.known_places()
    listed: list[str] = []
    scandir = os.scandir

    def noted(path: str | Path) -> object:
        listed.append(str(path))
        return scandir(path)

    def refused(*_: object, **__: object) -> object:
        raise AssertionError("a file was opened")

    monkeypatch.setattr(os, "scandir", noted)
    monkeypatch.setattr(os, "open", refused)
    monkeypatch.setattr(builtins, "open", refused)
    assert discover(machine)
    assert str(machine.home) not in listed
    assert str(machine.home / "work") not in listed
    assert str(machine.home / "Downloads/inner") not in listed


def test_counts_sizes_and_dates_of_a_place(tmp_path: Path) -> None:
    put(tmp_path, ".claude/projects/a/1.jsonl", size=10, day="2025-01-02")
    put(tmp_path, ".claude/projects/a/sub/2.jsonl", size=20, day="2026-05-06")
    put(tmp_path, ".claude/projects/a/other.txt", size=500, day="2020-01-01")
    (tmp_path / ".claude/projects/a/link.jsonl").symlink_to(tmp_path / ".claude/projects/a/1.jsonl")
    (tmp_path / ".claude/projects/round").symlink_to(tmp_path / ".claude/projects")
    place = tmp_path / ".claude/projects"
    assert discover(Machine("linux", tmp_path, {})) == [
        Found("log", "Claude Code", "claude-code", place, 2, 30, date(2025, 1, 2), date(2026, 5, 6))
    ]


def test_counting_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "MOST_FILES", 3)
    for number in range(10):
        put(tmp_path, f".claude/projects/a/{number}.jsonl")
    (place,) = discover(Machine("linux", tmp_path, {}))
    assert (place.files, place.more) == (3, True)


@pytest.mark.parametrize(
    ("variable", "below", "file"),
    [
        ("CLAUDE_CONFIG_DIR", "", "projects/a/1.jsonl"),
        ("CODEX_HOME", "", "sessions/2026/01/01/rollout-1.jsonl"),
        ("GEMINI_CLI_HOME", ".gemini/", "tmp/x/chats/session-1.jsonl"),
        ("COPILOT_HOME", "", "session-state/1/events.jsonl"),
        ("OPENCLAW_STATE_DIR", "", "agents/a/sessions/1.jsonl"),
        ("HERMES_HOME", "", "profiles/p/state.db"),
        ("GROK_HOME", "", "sessions/x/1/chat_history.jsonl"),
        ("CONTINUE_GLOBAL_DIR", "", "sessions/1.json"),
        ("VSCODE_PORTABLE", "user-data/User/", "globalStorage/emptyWindowChatSessions/1.json"),
        ("XDG_CONFIG_HOME", "Code/User/", "workspaceStorage/1/chatSessions/1.json"),
        ("XDG_CONFIG_HOME", "claude/", "projects/a/1.jsonl"),
        ("XDG_DOWNLOAD_DIR", "", "chatgpt-export.zip"),
    ],
)
def test_the_environment_leads_elsewhere(variable: str, below: str, file: str, tmp_path: Path) -> None:
    path = put(tmp_path / "elsewhere", below + file)
    home = tmp_path / "home"
    home.mkdir()
    assert not discover(Machine("linux", home, {}))
    assert holder(discover(Machine("linux", home, {variable: str(tmp_path / "elsewhere")})), path)
    assert not discover(Machine("linux", home, {variable: ""}))


def test_variables_may_name_the_home_folder_and_several_folders(tmp_path: Path) -> None:
    put(tmp_path, "one/projects/a/1.jsonl")
    put(tmp_path, "two/projects/a/1.jsonl")
    put(tmp_path, "dl/deepseek_data-2026-01-01.zip")
    environment = {"CLAUDE_CONFIG_DIR": f"~/one, {tmp_path}/two", "XDG_DOWNLOAD_DIR": "$HOME/dl"}
    found = discover(Machine("linux", tmp_path, environment))
    assert [place.path.relative_to(tmp_path).parts[0] for place in found] == ["one", "two", "dl"]


def test_one_folder_is_one_place_however_it_is_reached(tmp_path: Path) -> None:
    put(tmp_path, "dotfiles/claude/projects/a/1.jsonl")
    (tmp_path / ".claude").symlink_to(tmp_path / "dotfiles/claude")
    (place,) = discover(Machine("linux", tmp_path, {"CLAUDE_CONFIG_DIR": str(tmp_path / "dotfiles/claude")}))
    assert place.path == tmp_path / "dotfiles/claude/projects"
    (tmp_path / ".codex").mkdir()
    put(tmp_path, "disk/rollout-1.jsonl")
    (tmp_path / ".codex/sessions").symlink_to(tmp_path / "disk")
    assert tmp_path / "disk" in [place.path for place in discover(Machine("linux", tmp_path, {}))]


def test_what_a_source_holds_is_marked(tmp_path: Path) -> None:
    put(tmp_path, ".codex/sessions/rollout-1.jsonl")
    put(tmp_path, ".codex/archived_sessions/rollout-1.jsonl")
    put(tmp_path, ".claude/projects/a/1.jsonl")
    found = discover(Machine("linux", tmp_path, {}), [tmp_path / ".codex", tmp_path / ".claude/projects/a"])
    assert {place.path.name: place.configured for place in found} == {
        "projects": False,
        "sessions": True,
        "archived_sessions": True,
    }


def test_the_windows_around_a_wsl_is_looked_at_too(tmp_path: Path) -> None:
    path = put(tmp_path / "Users/me", "{config}/Code/User/workspaceStorage/1/chatSessions/1.json", "windows")
    (tmp_path / "home").mkdir()
    assert holder(discover(Machine("linux", tmp_path / "home", {}, (tmp_path / "Users/me",))), path)


def test_a_folder_that_may_not_be_listed_is_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, ".claude/projects/a/1.jsonl")
    put(tmp_path, ".claude/projects/closed/1.jsonl")
    scandir = os.scandir

    def closed(path: str | Path) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    assert [place.files for place in discover(Machine("linux", tmp_path, {}))] == [1]


# --- downloads --------------------------------------------------------------------------------------------------------

NAMES = {
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef-2026-03-14-09-00-00-0a1b2c.zip": "chatgpt",
    "chatgpt-export.zip": "chatgpt",
    "ChatGPT Conversations (2).json": "chatgpt",
    "User Online Activity.zip": "chatgpt",
    "Conversations_2026-07-01-chatgpt-0001.zip": "chatgpt",
    "3f9a-0b1c2d3e-2026-03-14-chatgpt.zip": "chatgpt",
    "3F9A0B1C-chatgpt-export (1).zip": "chatgpt",
    "result.json": "telegram",
    "result (2).json": "telegram",
    "data-2026-03-14-09-00-00-batch-0000.zip": "claude",
    "data-2026-03-14-09-00-00-batch-0000 (1).zip": "claude",
    "claude-export.json": "claude",
    "conversations.json": "",
    "conversations-003.json": "",
    "Acme Slack export Jan 1 2026 - Feb 1 2026.zip": "slack",
    "slack-export.zip": "slack",
    "takeout-20260314T090000Z-001.zip": "gemini",
    "MyActivity.json": "gemini",
    "grok-export.zip": "grok",
    "prod-grok-backend.json": "grok",
    "deepseek_data-2026-03-14.zip": "deepseek",
    "chat-0a1b2c3d-0a1b-4c5d-8e9f-0a1b2c3d4e5f.json": "mistral",
    "perplexity-export.xlsx": "perplexity",
    "chat-export-1710406800000.json": "open-webui",
    "Guild - Text - general [123456789012345678].json": "discord",
    "WhatsApp Chat with Ana.txt": "whatsapp",
    "WhatsApp Chat - Ana.zip": "whatsapp",
    "Chat de WhatsApp con Ana.txt": "whatsapp",
    "WhatsApp-Chat mit Ana.zip": "whatsapp",
    "与小王的 WhatsApp 聊天.zip": "whatsapp",
}
OTHER_NAMES = (
    *("holiday.zip", "claude-code-main.zip", "chatgpt.exe", "ChatGPT.dmg", "grok.mp4", "slack-desktop-4.29.deb"),
    *("data.zip", "openai-python-main.zip", "notes.json", "package.json", "whatsapp.apk", "takeout-menu.pdf", "zip"),
    *(
        "awesome-chatgpt.zip",
        "cafe-chatgpt.zip",
        "2048-game-chatgpt-main.zip",
        "results.json",
        "test-result.json",
        "result.txt",
    ),
)


@pytest.mark.parametrize(("name", "provider"), NAMES.items())
def test_an_export_is_known_by_its_name(name: str, provider: str) -> None:
    download = export_by_name(name)
    assert download is not None
    assert download.provider == provider


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_other_downloads_are_left_alone(name: str) -> None:
    assert export_by_name(name) is None


@pytest.mark.parametrize("folder", ["Downloads", "下载", "ダウンロード", "Téléchargements", "Загрузки"])
def test_exports_are_found_in_the_downloads_folder_of_any_language(folder: str, tmp_path: Path) -> None:
    for name in (*NAMES, *OTHER_NAMES):
        put(tmp_path, f"{folder}/{name}")
    put(tmp_path, f"{folder}/Telegram Desktop/ChatExport_2026-03-14/result.json")
    put(tmp_path, f"{folder}/data-2026-03-14-09-00-00-batch-0000/conversations.json")
    found = discover(Machine("linux", tmp_path, {}))
    assert {place.path.name for place in found} == {
        *NAMES,
        "ChatExport_2026-03-14",
        "data-2026-03-14-09-00-00-batch-0000",
    }
    assert all(place.kind == "export" for place in found)


def test_a_home_folder_that_is_called_the_downloads_folder_is_not_looked_through(tmp_path: Path) -> None:
    put(tmp_path, "chatgpt-export.zip")
    assert not discover(Machine("linux", tmp_path, {"XDG_DOWNLOAD_DIR": "$HOME"}))
    assert not discover(Machine("linux", tmp_path, {"XDG_DOWNLOAD_DIR": f"{tmp_path}/"}))


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_table_names_known_providers_and_each_has_a_root_without_variables() -> None:
    for place in known_places():
        assert place.provider in PROVIDERS
        assert any(not root.startswith("$") for root in place.roots), place.product
        assert all(not below.startswith("*") for below in place.below), place.product


def test_people_are_told_where_was_looked(tmp_path: Path) -> None:
    asked = looked_at(Machine("mac", tmp_path, {"CODEX_HOME": "/elsewhere"}))
    expected = ["/elsewhere", str(tmp_path / ".codex"), str(tmp_path / "Library/Application Support/Cursor/User")]
    assert set(expected) <= set(asked)


def test_this_machine_is_described(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("WSL_DISTRO_NAME", raising=False)
    machine = finder.this_machine()
    assert (machine.home, machine.windows_homes) == (tmp_path, ())
    assert machine.system in ("linux", "mac", "windows")
