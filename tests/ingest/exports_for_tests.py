"""Small ChatGPT exports, made to measure."""

import json
from pathlib import Path
from typing import Any

START = 1_714_737_600.0  # 2024-05-03 12:00 UTC


def chat(name: str, *texts: str, start: float | None = START, updated: float | None = None) -> dict[str, Any]:
    """A conversation with one branch; users and the assistant take turns, a minute apart."""
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    parent = "root"
    for number, text in enumerate(texts):
        node = f"{name}-{number}"
        mapping[node] = {
            "id": node,
            "parent": parent,
            "children": [],
            "message": {
                "id": node,
                "author": {"role": "user" if number % 2 == 0 else "assistant"},
                "create_time": None if start is None else start + 60 * number,
                "content": {"content_type": "text", "parts": [text]},
                "metadata": {},
            },
        }
        mapping[parent]["children"].append(node)
        parent = node
    end = None if start is None else start + 60 * len(texts)
    return {
        "id": name,
        "conversation_id": name,
        "title": f"Chat {name}",
        "create_time": start,
        "update_time": updated if updated is not None else end,
        "current_node": parent,
        "mapping": mapping,
    }


def export(path: Path, *chats: Any) -> Path:
    """Write `conversations.json` (or any name) with these conversations."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(chats)), encoding="utf-8")
    return path
