"""What is looked for when something was purged, and in which columns it can stand at all.

What a text, a path or a value of a column is made of (`redaction.made`) says nothing; the masks spare it, and so does the proof.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ahocorasick_rs import BytesAhoCorasick

from palace_pipeline.redaction import made
from palace_pipeline.redaction.forgotten import forms, places_in_name
from palace_pipeline.redaction.made import WORD, Nature, is_path, told

LEAST_BYTES = 6
"""Shorter patterns come by chance in compressed data; they are looked for in texts only."""
_AROUND = 400
"""Bytes on both sides of a pattern by which it is told whether it stands there by chance."""


class Probes:
    """Texts to look for, in every way in which files write them. `names`: what is looked for in paths, in lower case."""

    def __init__(self, texts: Iterable[str], names: Sequence[str] = ()) -> None:
        self.texts = list(dict.fromkeys(texts))
        self.names = names
        self.spared = 0
        """Places that were seen and say nothing, since Palace or a product makes what stands there."""
        self._texts = BytesAhoCorasick([_bytes(text) for text in self.texts]) if self.texts else None
        patterns = {pattern for text in self.texts for pattern in written(text)}
        patterns = {pattern for pattern in patterns if len(pattern) >= LEAST_BYTES}
        self._patterns = BytesAhoCorasick(sorted(patterns)) if patterns else None
        self.reach = max(map(len, patterns), default=1) - 1

    def unlike(self, fixed: str) -> Probes:
        """The same without those texts that stand in `fixed`, which is in a file in any case."""
        gone = {form for text in self.texts if text in fixed for form in (text, *forms(text))}
        left = [text for text in self.texts if text not in gone]
        return self if len(left) == len(self.texts) else Probes(left, self.names)

    def in_text(self, text: str, nature: Nature = made.said) -> bool:
        """Does a text show one of them?"""
        if self._texts is None:
            return False
        data = _bytes(text)
        found = self._texts.find_matches_as_indexes(data, overlapping=nature is not made.said)
        if not found or nature is made.said:
            return bool(found)
        places = [(start, end) for _, start, end in found]
        return self._is_told(text, places if text.isascii() else _characters(data, places), nature)

    def in_path(self, path: str, nature: Nature = made.path) -> bool:
        """Does a path (or what names of files are made of) show one, also as names of files write them?"""
        return self.in_text(path, nature) or self._named(path)

    def in_own(self, text: str, nature: Nature = made.own) -> bool:
        """Does a text that is no chat (a log, a row of the ledger) show one, in its paths also as names of files do?"""
        if self.in_text(text, nature):
            return True
        return bool(self.names) and any(map(self._named, filter(is_path, WORD.findall(text))))

    def _named(self, path: str) -> bool:
        return next(places_in_name(path, self.names), None) is not None

    def in_bytes(self, data: bytes, nature: Nature = made.said) -> bool:
        """Do bytes show one of them, as UTF-8, UTF-16 or escaped for JSON?"""
        if self._patterns is None:
            return False
        found = self._patterns.find_matches_as_indexes(data, overlapping=nature is not made.said)
        if not found or nature is made.said:
            return bool(found)
        return any(self._is_told_in(data, start, end, nature) for _, start, end in found)

    def _is_told_in(self, data: bytes, start: int, end: int, nature: Nature) -> bool:
        at = max(0, start - _AROUND)
        # Every byte a character: what is made is plain ASCII.
        return self._is_told(data[at : end + _AROUND].decode("latin-1"), [(start - at, end - at)], nature)

    def _is_told(self, text: str, places: list[tuple[int, int]], nature: Nature) -> bool:
        left = told(text, places, nature)
        self.spared += len(places) - len(left)
        return bool(left)

    def in_blocks(self, blocks: Iterable[bytes], nature: Nature = made.said) -> bool:
        """The same for a stream: what lies over the edge of two blocks is seen too."""
        reach = self.reach + (0 if nature is made.said else _AROUND)
        tail = b""
        for block in blocks:
            data = tail + block
            if self.in_bytes(data, nature):
                return True
            tail = data[-reach:] if reach else b""
        return False

    def in_column(self, table: str, column: str, value: object, default: Nature) -> bool:
        """Does a value of a table show one? `default`: what the columns of its store hold, but for those that are known."""
        if column in MADE or f"{table}.{column}" in MADE:
            return False
        if isinstance(value, bytes):
            try:
                value = value.decode()
            except UnicodeDecodeError:
                return self.in_bytes(value, made.stored)
        if not isinstance(value, str):
            return False
        if column in _CALLED:
            return self.in_path(value, made.said)
        if column in _PATHS or f"{table}.{column}" in _PATHS:
            return self.in_path(value)
        nature = _NATURES.get(column, default)
        return self.in_own(value, nature) if nature is made.own else self.in_text(value, nature)


MADE = frozenset(
    (
        *("provider", "origin", "role", "kind", "hall", "status", "format", "recipe", "unit", "use", "severity"),
        *("field", "rule", "layer", "fingerprint", "drawer_id", "text_hash", "hash", "source_sha256", "sha256"),
        *("record", "element", "local_time", "day", "seen_day", "built_day", "first_seen_day", "first_seen_at"),
        *("read_at", "finished_at", "filed_at", "earliest", "created", "updated_at", "reason", "undated_reason"),
        *(
            "batch",
            "stage",
            "input",
            "made_from",
            "message_index",
            "proof",
            "rolling",
            "meta.name",
            "clean/vectors.model",
        ),
        *("normalized_in", "normalized_out", "redacted_in", "redacted_out", "chunks_in", "chunks_out", "drawers_in"),
        *("drawers_out", "pages_in", "vectors_in", "tables_in"),
    )
)
"""Columns (everywhere, or of one table) of times, hashes and fixed words: nothing that was said can stand there."""
_CALLED = frozenset(("title", "project"))
"""Columns that hold what names of files are made of."""
_PATHS = frozenset(
    (
        *("path", "source_file", "page", "place", "where", "member", "root"),
        *("unknown_names.name", "shown_names.name", "shown_names.shown"),
    )
)
_NATURES: dict[str, Nature] = {
    **dict.fromkeys(("conversation_id", "doc_id", "document_id", "forked_from", "superseded_by"), made.ident),
    "parent_conversation_id": made.ident,
    **dict.fromkeys(("message_id", "parent_id"), made.message_ident),
    **dict.fromkeys(("wing", "room"), made.filed),
    "value": made.own,
}


def _characters(data: bytes, places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Places in bytes of UTF-8 as places in the text."""
    out: list[tuple[int, int]] = []
    seen = at = 0
    for start, end in sorted(places):
        at += len(data[seen:start].decode("utf-8", "surrogatepass"))
        seen = start
        out.append((at, at + len(data[start:end].decode("utf-8", "surrogatepass"))))
    return out


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def written(text: str) -> set[bytes]:
    """The bytes of a text in a file: UTF-8, both escapes of JSON (and of JSON in JSON), both orders of UTF-16."""
    plain, ascii_only = json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]
    nested = json.dumps(ascii_only)[1:-1]
    wide = {text.encode(order, "surrogatepass") for order in ("utf-16-le", "utf-16-be")}
    return {_bytes(text), _bytes(plain), ascii_only.encode(), nested.encode()} | wide
