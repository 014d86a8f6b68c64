"""Copies of export files with a fresh token in every text of them, whatever the format; tokens are drawn at run time."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard

from palace_pipeline.redaction.shapes import draw

# What a reader needs as it is, to know what it reads: ids, kinds of things, times, numbers as text.
_STRUCTURE = re.compile(
    r"(?:^|_|-|[a-z])(?:ids?|Ids?|ID|uuid|Uuid|type|Type|role|kind|Kind|status|Status|version|Version|format|schema|encoding|"
    r"time|Time|timestamp|Timestamp|date|Date|_at|At|ts|path|Path|hash|sha|mime|currency|branch|recipient|subtype|object|"
    r"channel|sender|author_role|parent|children|current_node|header|products|from|isSidechain|op|event|operation|target)$"
)
_PLAIN = re.compile(r"[\d\s.:TZ+\-/]*|[a-z_]{1,12}|true|false|null")
_LINE_OF_TEXT = re.compile(r"[^\W\d_][^\n<>{}\[\]|#*]{3,}[\w.!?]$")


class Poison:
    """Gives tokens, and remembers where each went (`places[token]`)."""

    def __init__(self, seed: str) -> None:
        self._rng = random.Random(seed)
        self.places: dict[str, str] = {}

    def token(self, place: str) -> str:
        found = draw("ghp_[A-Za-z0-9]{36}", self._rng)
        self.places[found] = place
        return found

    def folder(self, source: Path, target: Path) -> None:
        """Copy a folder; what cannot be poisoned is copied as it is."""
        for path in sorted(source.rglob("*")):
            if path.is_file() and path.name != "expected.json":
                copy = target / path.relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                self._file(path, copy, f"{source.name}/{path.relative_to(source)}")

    def _file(self, path: Path, copy: Path, place: str) -> None:
        data = path.read_bytes()
        if data[:15] == b"SQLite format 3":
            self._database(path, copy, place)
        elif path.suffix in (".db-wal", ".db-shm"):
            return
        elif path.suffix == ".zip" and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as new:
                for info in old.infolist():
                    try:
                        inner = old.read(info)
                    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, NotImplementedError):
                        continue
                    new.writestr(info.filename, self._bytes(inner, f"{place}/{info.filename}"))
        elif path.suffix == ".zst":
            plain = zstandard.ZstdDecompressor().decompressobj().decompress(data)
            copy.write_bytes(zstandard.compress(self._bytes(plain, place)))
        else:
            copy.write_bytes(self._bytes(data, place))

    def _bytes(self, data: bytes, place: str) -> bytes:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return data
        return self._text(text, place).encode("utf-8", "replace")

    def _text(self, text: str, place: str) -> str:
        stripped = text.lstrip("\ufeff").lstrip()
        if stripped[:1] in "[{" and stripped:
            try:
                return json.dumps(self._value(json.loads(text), place), ensure_ascii=False)
            except ValueError:
                lines = [self._line(line, f"{place}:{number}") for number, line in enumerate(text.split("\n"), 1)]
                return "\n".join(lines)
        if "<html" in text[:2000].lower() or "<!doctype" in text[:200].lower() or "mdl-grid" in text:
            return re.sub(r"(?<=[\w.])</(p|div)>", lambda m: f" {self.token(place)}{m[0]}", text)
        return self._lines(text, place)

    def _lines(self, text: str, place: str) -> str:
        out: list[str] = []
        for number, line in enumerate(text.split("\n"), 1):
            said = _LINE_OF_TEXT.search(line.rstrip("\r"))
            fine = (said is not None and ": " in line) or (said is not None and place.endswith("recipe.txt"))
            end = "\r" if line.endswith("\r") else ""
            out.append(f"{line.rstrip(chr(13))} {self.token(f'{place}:{number}')}{end}" if fine else line)
        return "\n".join(out)

    def _line(self, line: str, place: str) -> str:
        try:
            return json.dumps(self._value(json.loads(line), place), ensure_ascii=False)
        except ValueError:
            return line

    def _value(self, value: Any, place: str, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._value(below, f"{place}.{name}", name) for name, below in value.items()}
        if isinstance(value, list):
            return [self._value(below, f"{place}[]", key) for below in value]
        if not isinstance(value, str) or _STRUCTURE.search(key) or _PLAIN.fullmatch(value):
            return value
        if value[:1] in "{[" and value[1:2] != " ":
            try:
                return json.dumps(self._value(json.loads(value), f"{place}(json)"), ensure_ascii=False)
            except ValueError:
                return value
        return f"{value} {self.token(place)}"

    def _database(self, path: Path, copy: Path, place: str) -> None:
        # Opening the fixture itself would fold its write-ahead log into it.
        folder = Path(tempfile.mkdtemp(dir=copy.parent, prefix=".db-"))
        for part in path.parent.glob(f"{path.name}*"):
            shutil.copy(part, folder)
        source = sqlite3.connect(folder / path.name)
        target = sqlite3.connect(copy)
        source.backup(target)
        source.close()
        shutil.rmtree(folder)
        for (table,) in target.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%fts%'"):
            rows = target.execute(f'SELECT rowid, * FROM "{table}"')
            columns = [item[0] for item in rows.description][1:]
            for rowid, *values in rows.fetchall():
                for column, value in zip(columns, values, strict=True):
                    new = self._cell(value, f"{place}/{table}.{column}", column)
                    if new != value:
                        target.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (new, rowid))
        target.commit()
        target.close()

    def _cell(self, value: Any, place: str, column: str) -> Any:
        if isinstance(value, bytes):
            new = self._cell(value.decode("utf-8", "replace"), place, column)
            return new.encode() if isinstance(new, str) and b"\xff" not in value else value
        if column == "key" or not isinstance(value, str):
            return value
        return self._value(value, place, column)


def pieces_of(tokens: dict[str, str], size: int = 24) -> dict[str, str]:
    """Every contiguous 60% of each token, also in lower case -> the token's place."""
    found: dict[str, str] = {}
    for token, place in tokens.items():
        for at in range(len(token) - size + 1):
            found[token[at : at + size]] = place
            found[token[at : at + size].lower()] = place
    return found


_RUN = re.compile(r"[A-Za-z0-9_]{24,}")


def finder(tokens: dict[str, str]) -> Callable[[str], str | None]:
    """Looks for the tokens and their pieces in a text; gives the place of the first one found."""
    pieces = pieces_of(tokens)

    def find(text: str) -> str | None:
        for run in _RUN.finditer(text):
            body = run[0]
            for at in range(len(body) - 23):
                place = pieces.get(body[at : at + 24])
                if place is not None:
                    return place
        return None

    return find
