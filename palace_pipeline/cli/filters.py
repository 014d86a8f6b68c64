"""`palace parse`, `redact`, `classify`: filters that need no archive and make none."""

from __future__ import annotations

import sys
from pathlib import Path

from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, out, out_json
from palace_pipeline.settings import Settings, default_home, load_settings


def _settings() -> Settings:
    """The home's settings if there is a home; the defaults otherwise. Makes nothing."""
    return load_settings(default_home())


def run_parse(path: Path, *, as_json: bool) -> int:
    """Exit code 1 if something was not taken that should have been."""
    from palace_pipeline.exports.parse import parse_path

    if not path.exists():
        raise UsageError(f"not there: {path}")
    understood = parse_path(path, _settings())
    bad = any(not skip["expected"] for skip in understood["skipped"])
    if as_json:
        out_json(understood)
        return NOT_TAKEN if bad else 0
    for conversation in understood["conversations"]:
        seen = sum(message["role"] in ("user", "assistant", "bot") for message in conversation["messages"])
        title = conversation["title"] or "untitled"
        out(f"{conversation['start_date'] or 'undated':10}  {conversation['provider']:12}  {seen:5} messages  {title}")
    for skip in understood["skipped"]:
        kind = "left out" if skip["expected"] else "not taken"
        out(f"{kind}: {skip['where']}: {skip['reason']}" + (f" ({skip['count']})" if skip["count"] > 1 else ""))
    return NOT_TAKEN if bad else 0


def run_redact(*, lines: bool) -> int:
    """stdin to stdout; exit code 1 if something was withheld."""
    from palace_pipeline.redaction import protocol
    from palace_pipeline.redaction.funnel import Funnel

    home = default_home()
    key = home / ".key"
    funnel = Funnel(_settings().redaction, key.read_bytes() if key.exists() else b"no archive, no correlation")
    source, out = protocol.open_streams()
    with source, out:
        withheld = (protocol.redact_lines if lines else protocol.redact_text)(source, out, funnel)
    return NOT_TAKEN if withheld else 0


def run_classify(*, lines: bool) -> int:
    """`{id, text}` a line in, `{id, room, hall, confidence}` a line out."""
    from palace_pipeline.rooms.classifier import classify_lines

    if not lines:
        raise UsageError("classify reads JSON lines; write: palace classify --jsonl")
    classify_lines(sys.stdin.buffer, sys.stdout.buffer, _settings())
    return 0
