"""The line protocol of `palace redact`: JSON records or plain text, from a stream to a stream.

In: `{"id", "text"}` or `{"id", "conversation": {"title", "messages": [{"speaker", "text"}]}}`, one object a line.
Out: the same object, redacted, with `findings` (`kind`, `start`, `end`, in a conversation also `field`; code points of
the input, never the value) and `withheld`. Every line stands alone; one that cannot be read is answered by an `error`.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from palace_pipeline.redaction.funnel import Clean, Funnel
from palace_pipeline.settings import RedactionSettings

_EXEMPT = frozenset({"id"})


def redact_lines(lines: Iterable[str], out: TextIO, funnel: Funnel) -> int:
    """Answer every line; returns how many could not be read or were withheld in part."""
    bad = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        answer, fine = _answer(line, number, funnel)
        bad += not fine
        out.write(json.dumps(answer, ensure_ascii=True) + "\n")
    out.flush()
    return bad


def _answer(line: str, number: int, funnel: Funnel) -> tuple[dict[str, Any], bool]:
    record: Any = None
    try:
        record = json.loads(line)
        if not isinstance(record, dict):
            raise ValueError("not an object")
        texts = dict(_texts(record))
        if "text" not in record and "conversation" not in record:
            raise ValueError("no text")
        clean = funnel.redact_fields(texts)
        return _rebuilt(record, clean), not clean.withheld
    except (ValueError, TypeError, RecursionError) as error:
        # The message of a JSON error may quote the line: only the kind of failure and the line number are told.
        answer: dict[str, Any] = {"error": f"line {number}: {type(error).__name__}", "findings": [], "withheld": True}
        if isinstance(record, dict) and isinstance(record.get("id"), (str, int)):
            answer["id"] = record["id"]
        return answer, False


def _texts(record: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Every string of a record with its field name, except the id; `conversation.` is left out of names."""
    for key, value in record.items():
        if key in _EXEMPT:
            continue
        if key == "conversation" and isinstance(value, dict):
            for inner, below in value.items():
                yield from _strings(inner, below)
        else:
            yield from _strings(key, value)


def _strings(name: str, value: Any) -> Iterable[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from _strings(f"{name}.{key}", below)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _strings(f"{name}.{index}", below)


def _rebuilt(record: dict[str, Any], clean: Clean) -> dict[str, Any]:
    def put(name: str, value: Any) -> Any:
        if isinstance(value, str):
            return clean.texts[name]
        if isinstance(value, dict):
            return {key: put(f"{name}.{key}", below) for key, below in value.items()}
        if isinstance(value, list):
            return [put(f"{name}.{index}", below) for index, below in enumerate(value)]
        return value

    answer: dict[str, Any] = {}
    for key, value in record.items():
        if key in _EXEMPT:
            answer[key] = value
        elif key == "conversation" and isinstance(value, dict):
            answer[key] = {inner: put(inner, below) for inner, below in value.items()}
        else:
            answer[key] = put(key, value)
    plain = "conversation" not in record
    answer["findings"] = [
        {"kind": f.kind, "start": f.start, "end": f.end} | ({} if plain else {"field": f.field}) for f in clean.findings
    ]
    answer["withheld"] = bool(clean.withheld)
    return answer


def redact_text(source: TextIO, out: TextIO, funnel: Funnel) -> int:
    """Plain text in, redacted text out, as one field; returns 1 when it was withheld."""
    clean = funnel.redact_fields({"text": source.read()})
    out.write(clean.texts["text"])
    out.flush()
    return len(clean.withheld)


def open_streams() -> tuple[TextIO, TextIO]:
    """Standard input and output as UTF-8 that carries any byte and any line end through unchanged."""
    how: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape", "newline": "\n", "closefd": False}
    source = open(sys.stdin.fileno(), **how)  # noqa: SIM115, PTH123 - a descriptor; the caller closes it
    out = open(sys.stdout.fileno(), "w", **how)  # noqa: SIM115, PTH123
    return source, out


def main(argv: list[str] | None = None) -> int:
    """Run the protocol with default settings and a key of this process only."""
    parser = argparse.ArgumentParser(description="Redact secrets and personal data, stdin to stdout.")
    parser.add_argument("--jsonl", action="store_true", help="one JSON record a line instead of plain text")
    jsonl: bool = parser.parse_args(argv).jsonl
    funnel = Funnel(RedactionSettings(), secrets.token_bytes(32))
    source, out = open_streams()
    with source, out:
        return 1 if (redact_lines if jsonl else redact_text)(source, out, funnel) else 0


if __name__ == "__main__":
    sys.exit(main())
