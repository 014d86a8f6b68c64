"""Lines of Codex rollouts for tests."""

import json
from datetime import UTC, datetime, timedelta

ID = "019f0000-0000-7000-8000-000000000001"
FILE = f"sessions/2026/03/14/rollout-2026-03-14T10-00-00-{ID}.jsonl"
START = datetime(2026, 3, 14, 10, tzinfo=UTC)


def at(second):
    return (START + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def line(second, kind, **payload):
    return {"timestamp": at(second), "type": kind, "payload": payload}


def header(second=0, session_id=ID, **more):
    return line(second, "session_meta", id=session_id, timestamp=at(second), cwd="/home/sample/tide", **more)


def event(second, kind, **payload):
    return line(second, "event_msg", type=kind, **payload)


def item(second, kind, **payload):
    return line(second, "response_item", type=kind, **payload)


def asks(second, text):
    return event(second, "user_message", message=text, images=[])


def says(second, text):
    return event(second, "agent_message", message=text)


def message(second, role, *texts):
    kind = "output_text" if role == "assistant" else "input_text"
    return item(second, "message", role=role, content=[{"type": kind, "text": text} for text in texts])


def completed(second, kind, *texts, **more):
    content = [{"type": "text" if kind == "UserMessage" else "Text", "text": text} for text in texts]
    return event(second, "item_completed", item={"type": kind, "content": content, **more})


def lines(*records):
    return b"".join(
        (r if isinstance(r, bytes) else json.dumps(r, ensure_ascii=False).encode()) + b"\n" for r in records
    )
