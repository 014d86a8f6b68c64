"""Files that are read together, and databases: what counts as a change, what is kept, what never is."""

import json
import secrets
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.exports.names import companions, is_beside_database, is_sidecar
from palace_pipeline.exports.scan import Missing, has_settled, scan
from palace_pipeline.ingest import Ingested, ingest, recipes, run
from palace_pipeline.model import Conversation, from_record
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from tests.exports.sqlite_files import cursor, database, with_log

CHAT = "cccccccc-0000-4000-8000-00000000000{}"
SESSION = "019f75d0-0000-7000-8000-000000000001"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


def look(home: Home, *paths: Path, **options: Any) -> Ingested:
    with home.writing():
        return ingest(home, list(paths), batch="test", **options)


def counts(found: Ingested, unit: str) -> tuple[int, int, int, int]:
    of = found.of(unit)
    return of["new"], of["updated"], of["unchanged"], of["skipped"]


def chats(*conversations: tuple[int, list[str]]) -> dict[str, Any]:
    """Rows of Cursor's store: chats by number, each with its texts."""
    rows: dict[str, Any] = {}
    for number, texts in conversations:
        chat = CHAT.format(number)
        rows[f"composerData:{chat}"] = {
            "composerId": chat,
            "createdAt": 1_773_480_400_000,
            "fullConversationHeadersOnly": [{"bubbleId": f"b{n}", "type": 1 + n % 2} for n in range(len(texts))],
        }
        for n, text in enumerate(texts):
            rows[f"bubbleId:{chat}:b{n}"] = {"bubbleId": f"b{n}", "type": 1 + n % 2, "text": text}
    return rows


def live(home: Home, provider: str, name: str) -> list[Conversation]:
    with home.ledger() as ledger, home.vault() as vault:
        return [from_record(vault.record(s["record"])) for s in ledger.sightings((provider, name))]


def everything_in(folder: Path, home: Home) -> bytes:
    """All bytes of a home, those that its vault has packed unpacked."""
    out = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    with home.vault() as vault:
        for table in ("pieces", "records"):
            out += [vault._get(table, row[0]) for row in vault._db.execute(f"SELECT hash FROM {table}")]
    return b"\n".join(out)


# --- databases --------------------------------------------------------------------------------------------------------


def test_of_a_database_only_its_chats_are_kept(home: Home, inbox: Path) -> None:
    token = secrets.token_hex(20)
    path = cursor(
        inbox / "globalStorage" / "state.vscdb",
        {**chats((1, ["hi", "hello"])), "agentKv:blob:0": {"content": f"agent {token}"}},
        {"cursorAuth/accessToken": token, "composer.composerData": {"allComposers": [], "note": token}},
    )
    found = look(home, inbox)
    assert counts(found, "files") == (1, 0, 0, 0)
    assert counts(found, "messages") == (2, 0, 0, 0)
    kept = everything_in(home.path, home)
    assert b"hello" in kept
    assert token.encode() not in kept
    with home.ledger() as ledger:
        assert [(m["use"], m["size"]) for m in ledger.rows("SELECT use, size FROM members")] == [("lines", 0)]
    assert token.encode() in path.read_bytes()


@pytest.mark.parametrize("name", ["tokens.bin", "cut.vscdb", "logs.sqlite"])
def test_a_database_that_nobody_can_read_is_named_and_not_kept(home: Home, inbox: Path, name: str) -> None:
    token = secrets.token_hex(20)
    path = database(inbox / name, "CREATE TABLE things (v)", ("INSERT INTO things VALUES (?)", (token,)))
    if name.startswith("cut"):
        path.write_bytes(b"\0" * 16 + path.read_bytes()[16:])
    (inbox / "other.db-wal").write_bytes(token.encode())
    found = look(home, inbox)
    assert {skip.reason for skip in found.skips if not skip.expected} & {
        "unknown SQLite database",
        "binary file of an unknown kind",
        "damaged database",
    }
    assert token.encode() not in everything_in(home.path, home)


def test_a_chat_that_grew_in_the_log_is_read_and_the_others_are_not_parsed(
    home: Home, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = chats((1, ["hi", "hello"]), (2, ["one", "two"]))
    table = "CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"

    def put(values: dict[str, Any]) -> list[tuple[str, Any]]:
        return [("INSERT INTO cursorDiskKV VALUES (?, ?)", (k, json.dumps(v))) for k, v in values.items()]

    path = with_log(inbox / "state.vscdb", [table, *put(rows)], [])
    assert counts(look(home, inbox), "messages") == (4, 0, 0, 0)
    main = path.read_bytes()
    shutil.rmtree(inbox)
    with_log(path, [table, *put(rows)], put(chats((2, ["one", "two", "three"]))))
    (inbox / "state.vscdb-shm").write_bytes(b"\0" * 32768)
    assert len(path.read_bytes()) == len(main)

    parsed: list[str] = []
    original = run.read_one
    monkeypatch.setattr(run, "read_one", lambda e, *rest: (parsed.append(e.place), original(e, *rest))[1])
    grown = look(home, inbox)
    assert counts(grown, "files") == (0, 1, 0, 0)
    assert counts(grown, "messages") == (1, 0, 4, 0)
    assert parsed == [f"composerData:{CHAT.format(2)}"]
    assert counts(look(home, inbox), "files") == (0, 0, 1, 0)
    (inbox / "state.vscdb-shm").write_bytes(b"\1" * 32768)
    assert counts(look(home, inbox), "files") == (0, 0, 1, 0)


def test_a_dry_run_of_a_database_counts_the_same(home: Home, inbox: Path) -> None:
    with_log(
        inbox / "state.vscdb",
        ["CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)"],
        [("INSERT INTO cursorDiskKV VALUES (?, ?)", (k, json.dumps(v))) for k, v in chats((1, ["a", "b"])).items()],
    )
    dry = look(home, inbox, dry_run=True)
    real = look(home, inbox)
    assert (dry.files, dry.conversations, dry.messages) == (real.files, real.conversations, real.messages)
    assert not list((home.path / "vault").glob(".tmp-*"))


@pytest.mark.parametrize("numbers", [(1,), (1, 2)])
@pytest.mark.parametrize("length", [5, 1_500_000])
def test_chats_of_a_database_that_is_gone_are_read_again_by_a_better_reader(
    home: Home, inbox: Path, monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, ...], length: int
) -> None:
    path = cursor(inbox / "state.vscdb", chats(*((number, ["hi", "x" * length]) for number in numbers)))
    look(home, inbox)
    path.unlink()
    from palace_pipeline.exports import cursor as reader

    original = reader.CursorReader.read_element

    def better(self: Any, value: Any, *rest: Any) -> Any:
        for conversation in original(self, value, *rest):
            conversation.title = f"Better {conversation.conversation_id[-1]}"
            yield conversation

    monkeypatch.setattr(reader.CursorReader, "read_element", better)
    monkeypatch.setitem(recipes.RECIPES, "cursor-vscdb", "2")
    monkeypatch.setattr(reader.CursorReader, "recipe", 2)
    for _ in range(2):  # and once more, from what the first time left
        look(home, inbox)
        titles = {n: [(c.title, len(c.messages)) for c in live(home, "cursor", CHAT.format(n))] for n in numbers}
        assert titles == {n: [(f"Better {n}", 2)] for n in numbers}
        monkeypatch.setitem(recipes.RECIPES, "cursor-vscdb", "3")
        monkeypatch.setattr(reader.CursorReader, "recipe", 3)


def test_what_a_kill_left_of_a_copy_is_removed(home: Home, inbox: Path) -> None:
    look(home, inbox)
    left = home.path / "vault" / ".tmp-abc"
    left.mkdir()
    (left / "copy").write_bytes(b"chats")
    look(home, inbox)
    assert not left.exists()


def test_a_kill_in_the_middle_of_a_database_loses_nothing(
    home: Home, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor(inbox / "state.vscdb", chats(*((n, [f"q{n}", f"a{n}"]) for n in range(5))))

    original, read = run.note, []

    def killed(*args: Any, **options: Any) -> Any:
        read.append(1)
        if len(read) == 3:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(run, "note", killed)
    with pytest.raises(KeyboardInterrupt):
        look(home, inbox)
    monkeypatch.setattr(run, "note", original)
    again = look(home, inbox)
    assert counts(again, "conversations") == (5, 0, 0, 0)
    assert counts(again, "messages") == (10, 0, 0, 0)
    assert counts(look(home, inbox), "messages") == (0, 0, 10, 0)


# --- companions -------------------------------------------------------------------------------------------------------


def grok(folder: Path, title: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"type": "user", "content": [{"type": "text", "text": "<user_query>hi</user_query>"}], "prompt_index": 0},
        {"type": "assistant", "content": "hello", "model_id": "m"},
    ]
    (folder / "chat_history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = {"info": {"id": SESSION, "cwd": "/dev/x"}, "created_at": "2026-03-14T09:26:40Z", "generated_title": title}
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def test_a_new_title_beside_an_unchanged_log_is_seen(home: Home, inbox: Path) -> None:
    folder = grok(inbox / "sessions" / "%2Fdev%2Fx" / SESSION)
    look(home, inbox)
    assert [c.title for c in live(home, "grok-cli", SESSION)] == [None]
    assert counts(look(home, inbox), "files")[:2] == (0, 0)
    grok(folder, "A title")
    look(home, inbox)
    assert "A title" in [c.title for c in live(home, "grok-cli", SESSION)]
    update = {
        "params": {
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}},
            "_meta": {"agentTimestampMs": 1_773_480_401_000},
        }
    }
    (folder / "updates.jsonl").write_text(json.dumps(update) + "\n")
    found = look(home, inbox)
    assert counts(found, "messages")[1] == 1
    assert counts(look(home, inbox), "messages") == (0, 0, 2, 0)


def test_what_lies_beside_a_chat_is_found_in_the_vault_when_the_reader_changes(
    home: Home, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grok(inbox / "sessions" / "%2Fdev%2Fx" / SESSION, "Kept")
    look(home, inbox)
    shutil.rmtree(inbox / "sessions")
    from palace_pipeline.exports import grok_build

    monkeypatch.setitem(recipes.RECIPES, "grok-build", "2")
    monkeypatch.setattr(grok_build.GrokBuildReader, "recipe", 2)
    look(home, inbox)
    assert [(c.title, c.project) for c in live(home, "grok-cli", SESSION)] == [("Kept", "/dev/x")]


def test_new_names_of_people_are_read_into_old_day_files(home: Home, inbox: Path) -> None:
    def names(name: str) -> None:
        (inbox / "users.json").write_text(json.dumps([{"id": "U1", "profile": {"display_name": name}}]))

    (inbox / "general").mkdir()
    (inbox / "channels.json").write_text(json.dumps([{"id": "C1", "name": "general"}]))
    for day in ("2024-05-01", "2024-05-02"):
        message = {"type": "message", "user": "U1", "text": f"on {day}", "ts": "1714557600.000100"}
        (inbox / "general" / f"{day}.json").write_text(json.dumps([message]))
    names("ann")
    look(home, inbox)
    assert counts(look(home, inbox), "files")[:2] == (0, 0)
    names("anna")
    assert counts(look(home, inbox), "files")[1] == 2
    assert {m.speaker for c in live(home, "slack", "C1") for m in c.messages} >= {"anna"}


def test_only_known_names_have_companions() -> None:
    assert companions("/x/state.vscdb") == ("state.vscdb-wal", "state.vscdb-journal")
    assert companions("x/chat_history.jsonl") == ("summary.json", "updates.jsonl")
    assert "../users.json" in companions("/x/general/2024-05-01.json")
    assert companions("/x/sessions/11111111-0000-4000-8000-000000000000.json") == ("sessions.json",)
    assert [companions(p) for p in ("/x/conversations.json", "/x/a.jsonl", "/x/sessions/sessions.json", "a")] == [
        ()
    ] * 4
    assert [is_beside_database(n) for n in ("a.db-wal", "a.db-shm", "a.sqlite-journal", "notes-wal", "a.db")] == [
        *(True, True, True, False, False)
    ]


def test_what_agents_keep_beside_their_chats_is_no_note() -> None:
    session = f"grok/sessions/%2FUsers%2Fa/{SESSION}"
    assert is_sidecar(f"{session}/system_prompt.txt")
    assert is_sidecar(f"{session}/terminal/1.log")
    assert is_sidecar("grok/sessions/%2FUsers%2Fa/prompt_history.jsonl")
    assert is_sidecar("home/.cursor/projects/a-b/terminals/1.txt")
    for path in (f"{session}/chat_history.jsonl", "home/.cursor/projects/a/agent-transcripts/x/x.jsonl", "notes/a.md"):
        assert not is_sidecar(path)


def test_a_scan_mixes_companions_into_the_time_of_their_file(tmp_path: Path) -> None:
    def state() -> dict[str, tuple[int, bool]]:
        found = [seen for seen in scan([tmp_path]) if not isinstance(seen, Missing)]
        return {Path(s.path).name: (s.mtime_ns, has_settled(s, 2_000_000_000)) for s in found}

    (tmp_path / "a.db").write_bytes(b"a")
    (tmp_path / "b.db").write_bytes(b"b")
    plain = state()
    assert plain["a.db"][0] == (tmp_path / "a.db").stat().st_mtime_ns
    (tmp_path / "a.db-wal").write_bytes(b"log")
    (tmp_path / "a.db-shm").write_bytes(b"shared")
    (tmp_path / "lone.db-wal").write_bytes(b"log")
    logged = state()
    assert set(logged) == {"a.db", "b.db", "lone.db-wal"}
    assert logged["a.db"] != plain["a.db"]
    assert logged["b.db"] == plain["b.db"]
    (tmp_path / "a.db-wal").write_bytes(b"log that grew")
    assert state()["a.db"] != logged["a.db"]
    before = state()
    (tmp_path / "a.db-shm").write_bytes(b"other")
    assert state() == before
    (tmp_path / "a.db-wal").write_bytes(b"")
    assert state() == {**plain, "lone.db-wal": before["lone.db-wal"]}


def test_companions_above_the_export_do_not_belong_to_it(tmp_path: Path) -> None:
    (tmp_path / "users.json").write_text("[]")
    day = tmp_path / "general" / "2024-05-01.json"
    day.parent.mkdir()
    day.write_text("[]")
    [inside] = [s for s in scan([tmp_path / "general"]) if not isinstance(s, Missing)]
    assert inside.mtime_ns == day.stat().st_mtime_ns
    outside = next(s for s in scan([tmp_path]) if not isinstance(s, Missing) and s.path == str(day))
    assert outside.mtime_ns != day.stat().st_mtime_ns


def test_the_database_of_a_running_program_is_read_while_it_writes(home: Home, inbox: Path) -> None:
    path = inbox / "state.vscdb"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    for key, value in chats((1, ["hi", "hello"])).items():
        writer.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, json.dumps(value)))
    assert counts(look(home, inbox), "messages") == (2, 0, 0, 0)
    for key, value in chats((1, ["hi", "hello", "more"])).items():
        writer.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, json.dumps(value)))
    assert counts(look(home, inbox), "messages") == (1, 0, 2, 0)
    writer.close()
