"""Downloads and logs that were cut off: what stands before the cut is read, and the reason is told once."""

import json
import os
import zipfile
from pathlib import Path

import zstandard

from palace_pipeline.ingest import Ingested, ingest
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from tests.ingest.exports_for_tests import chat

SESSION = "019f0000-0000-7000-8000-00000000000a"


def look(tmp_path: Path, inbox: Path, *, dry_run: bool = False) -> Ingested:
    home = Home(load_settings(tmp_path / "home"))
    with home.writing():
        return ingest(home, [inbox], batch="test", dry_run=dry_run)


def reasons(found: Ingested) -> list[tuple[str, int]]:
    return [(skip.reason, skip.count) for skip in found.skips]


def rollout(questions: int) -> bytes:
    at = "2026-03-14T10:00:00.000Z"
    lines = [{"timestamp": at, "type": "session_meta", "payload": {"id": SESSION, "timestamp": at, "cwd": "/x"}}]
    for number in range(questions):
        text = f"{number} {os.urandom(300).hex()}"
        lines.append({"timestamp": at, "type": "event_msg", "payload": {"type": "user_message", "message": text}})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_a_packed_log_that_is_cut(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    file = inbox / f"rollout-2026-03-14T10-00-00-{SESSION}.jsonl.zst"
    whole = zstandard.compress(rollout(1000))
    file.write_bytes(whole[: len(whole) * 4 // 5])
    dry = look(tmp_path, inbox, dry_run=True)
    found = look(tmp_path, inbox)
    for one in (dry, found):
        assert one.of("conversations")["new"] == 1
        assert 400 < one.of("messages")["new"] < 1000
        assert [reason for reason, _ in reasons(one)].count("its compressed data is cut") == 1
    assert dry.of("messages") == found.of("messages")
    # The whole download comes later: nothing is doubled.
    file.write_bytes(whole)
    before = found.of("messages")["new"]
    assert look(tmp_path, inbox).of("messages")["new"] == 1000 - before


def test_a_zip_that_is_cut(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    chats = [chat(f"c{number}", os.urandom(3000).hex(), "yes") for number in range(300)]
    with zipfile.ZipFile(inbox / "whole.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps(chats))
        archive.writestr("chat.html", "<html>" + os.urandom(1000).hex())
    data = (inbox / "whole.zip").read_bytes()
    (inbox / "whole.zip").write_bytes(data[: len(data) * 3 // 4])
    found = look(tmp_path, inbox)
    assert 200 < found.of("conversations")["new"] < 300
    told = [reason for reason, _ in reasons(found)]
    missing = "truncated or damaged ZIP: its directory is missing, 1 of its files were found without it"
    assert sorted(told) == ["its compressed data is cut", missing]


def test_a_damaged_entry_is_told_once(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with zipfile.ZipFile(inbox / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([chat("a", os.urandom(500).hex(), "yes")]))
        archive.writestr("more/conversations.json", json.dumps([chat("b", "good", "yes")]))
    data = bytearray((inbox / "a.zip").read_bytes())
    data[60:80] = bytes(20)
    (inbox / "a.zip").write_bytes(data)
    found = look(tmp_path, inbox)
    assert found.of("conversations")["new"] == 1
    assert [count for reason, count in reasons(found) if "compressed data" in reason] == [1]


def test_a_file_of_nuls_is_not_called_empty(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "session.jsonl").write_bytes(bytes(5000))
    (inbox / "zero.jsonl").write_bytes(b"")
    assert sorted(reasons(look(tmp_path, inbox))) == [
        ("empty file", 1),
        ("nothing but NULs, as a crash leaves them", 1),
    ]
