"""Signatures of thinking and the bytes of pictures are nobody's words: they stay in the vault, whole, and are in no text.

What a program needs to play a session again must not go through redaction, and what no person can read must not be
searched, shown or embedded.
"""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.parse import conversations_in

SOURCE = random.Random("signature")
SIGNATURE = base64.b64encode(SOURCE.randbytes(900)).decode()
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + SOURCE.randbytes(3_000)).decode()
URL = f"data:image/png;base64,{PICTURE}"
KEYS = (
    "signature",
    "thoughtSignature",
    "thought_signature",
    "encrypted_content",
    "encryptedContent",
    "reasoning_opaque",
)
PARTS: dict[str, list[dict[str, Any]]] = {
    "content": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
        {"type": "image_url", "image_url": {"url": URL}},
        {"type": "input_image", "image_url": URL},
        {"type": "redacted_thinking", "data": SIGNATURE},
        {"type": "thinking", "thinking": "let me see", "signature": SIGNATURE},
        {"type": "input_audio", "input_audio": {"data": PICTURE, "format": "wav"}},
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}],
        },
    ],
    "parts": [
        {"inlineData": {"mimeType": "image/png", "data": PICTURE}},
        {"inline_data": {"mime_type": "image/png", "data": PICTURE}},
        {"text": "let me see", "thought": True, "thoughtSignature": SIGNATURE},
    ],
}


def signed(value: Any) -> Any:
    """The same with signatures and pictures wherever a program may write them."""
    if isinstance(value, list):
        return [signed(below) for below in value]
    if not isinstance(value, dict):
        return URL if isinstance(value, str) and value.startswith("data:image") else value
    out: dict[str, Any] = {}
    for name, below in value.items():
        if name in KEYS and isinstance(below, str):
            out[name] = SIGNATURE
        elif name == "data" and any("mime" in other.lower() or other == "media_type" for other in value):
            out[name] = PICTURE
        elif name in PARTS and isinstance(below, list) and below and all(isinstance(part, dict) for part in below):
            out[name] = [*map(signed, below), *PARTS[name]]
        else:
            out[name] = signed(below)
    if out.get("type") == "thinking" or "thinking" in out:
        out.setdefault("signature", SIGNATURE)
    return out


def written(data: str) -> str:
    """A JSON file or JSON lines with signatures and pictures in it."""
    try:
        return json.dumps(signed(json.loads(data)), ensure_ascii=False)
    except ValueError:
        pass
    lines: list[str] = []
    for line in data.split("\n"):
        try:
            lines.append(json.dumps(signed(json.loads(line)), ensure_ascii=False))
        except ValueError:
            lines.append(line)
    return "\n".join(lines)


FOLDERS = sorted(path.name for path in (Path(__file__).parents[1] / "fixtures/exports").iterdir() if path.is_dir())


@pytest.mark.parametrize("name", FOLDERS)
def test_no_signature_and_no_picture_is_in_any_text(tmp_path: Path, fixtures: Path, name: str) -> None:
    changed = False
    for path in sorted((fixtures / "exports" / name).rglob("*")):
        if path.suffix not in (".json", ".jsonl") or path.name == "expected.json":
            continue
        try:
            text = written(path.read_text("utf-8-sig"))
        except UnicodeDecodeError:
            continue
        copy = tmp_path / path.relative_to(fixtures / "exports" / name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, "utf-8", "replace")
        changed = changed or SIGNATURE in copy.read_text("utf-8") or PICTURE in copy.read_text("utf-8")
    if not changed:
        pytest.skip("no place for one in this format")
    reports: list[Report] = []
    shown = [repr(conversation) for conversation in conversations_in(tmp_path, reports)]
    noted = repr(reports)
    for value in (SIGNATURE, PICTURE):
        for at in range(0, len(value) - 64, 16):
            piece = value[at : at + 64]
            assert not any(piece in text for text in shown), f"{name}: bytes in a text"
            assert piece not in noted
