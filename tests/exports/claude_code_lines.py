"""Records of Claude Code logs for tests."""

import json
from datetime import UTC, datetime, timedelta

from palace_pipeline.exports.claude_code import READER
from tests.exports.memory_member import read, shown

SESSION = "aaaaaaaa-0000-4000-8000-000000000001"
FILE = f"projects/-home-sample/{SESSION}.jsonl"
START = datetime(2026, 3, 14, 23, 58, tzinfo=UTC)


def stamp(second):
    return (START + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def user(uuid, parent, content, **more):
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "cwd": "/home/sample",
        "sessionId": SESSION,
        "type": "user",
        "message": {"role": "user", "content": content},
        "uuid": uuid,
        "timestamp": stamp(sum(map(ord, uuid)) % 3000),
        **more,
    }


def answer(uuid, parent, content, answer_id=None, usage=None, **more):
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    message = {"role": "assistant", "model": "claude-sample-4", "content": blocks}
    if answer_id != "":
        message["id"] = answer_id or f"msg_{uuid}"
    if usage:
        message["usage"] = usage
    return {**user(uuid, parent, ""), "type": "assistant", "message": message, **more}


def call(tool_id, name="Bash", **arguments):
    return {"type": "tool_use", "id": tool_id, "name": name, "input": arguments}


def result(tool_id, content):
    return [{"type": "tool_result", "tool_use_id": tool_id, "content": content}]


def lines(*records):
    return b"".join(
        (r if isinstance(r, bytes) else json.dumps(r, ensure_ascii=False).encode()) + b"\n" for r in records
    )


def log(*records, path=FILE):
    """(conversations, report) of a file with these records."""
    return read([READER], {path: lines(*records)}, path)


def one(*records, path=FILE):
    conversations, _ = log(*records, path=path)
    assert len(conversations) == 1
    return conversations[0]


def said(*records):
    return [text for _, _, text in shown(one(*records))]
