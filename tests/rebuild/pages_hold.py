"""What Markdown pages hold of an archive, computed from the archive itself: nothing else may be missing after a rebuild.

Not on pages: the words, times and costs of rows that the source hides or that stand in other branches (their places are
kept), which message a message answers to, by which rule something was masked, that fields were withheld (the mask
stays), the export files and what was not taken of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb

from palace_pipeline.model import LAKE
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from tests.archive_state import state

Row = dict[str, Any]
_EMPTY: Row = {"citations": [], "attachment": [], "text": "", "branch_active": True}
_KEPT_OF_A_PLACE = ("day", "provider", "conversation_id", "seq", "account", "source_file")


def lake_of(home: Home) -> dict[str, list[Row]]:
    return {
        table: _sorted(home.lake.read(table, home.lake.months(table)).drop("vector", strict=False).to_dicts())
        for table in LAKE
    }


def tables_of(home: Home) -> dict[str, list[Row]]:
    with duckdb.connect(str(home.warehouse), read_only=True) as connection:
        names = ("conversations", "messages", "drawers", "findings", "exports", "skips")
        found: dict[str, list[Row]] = {}
        for name in names:
            result = connection.execute(f"FROM {name}")
            columns = [column[0] for column in result.description or ()]
            found[name] = _sorted([dict(zip(columns, row, strict=True)) for row in result.fetchall()])
        return found


def everything(path: Path) -> dict[str, Any]:
    """All stores of an archive that people see, comparable."""
    home = Home(load_settings(path))
    whole = state(path)
    tables = {f"table {name}": rows for name, rows in tables_of(home).items()}
    lake = {f"lake {name}": rows for name, rows in lake_of(home).items()}
    return {**lake, **tables, **{store: whole[store] for store in ("pages", "chroma", "lexical")}}


def held(path: Path) -> dict[str, Any]:
    """The same of an archive, as far as its pages hold it."""
    found = everything(path)
    clean = found["lake clean/messages"]
    shown = {_place(row) for row in clean if row["branch_active"] and row["hidden_reason"] is None}
    rows = [_row(row, _place(row) in shown) for row in clean]
    heads = [row | {"status": "ok"} for row in found["lake clean/conversations"]]
    findings = [_finding(row) for row in found["lake clean/findings"] if row["seq"] is None or _place(row) in shown]
    messages = [_said(row, _place(row) in shown) for row in found["table messages"]]
    counted = {_key(head): [f for f in findings if _key(f) == _key(head)] for head in heads}
    conversations = [
        row
        | _sums([m for m in messages if _key(m) == _key(row)])
        | {"findings": len(counted[_key(row)]), "status": "ok"}
        for row in found["table conversations"]
    ]
    changed = {
        "lake raw/messages": rows,
        "lake clean/messages": rows,
        "lake raw/conversations": heads,
        "lake clean/conversations": heads,
        "lake clean/findings": findings,
        "table conversations": conversations,
        "table messages": messages,
        "table findings": [
            _finding(row) for row in found["table findings"] if row["seq"] is None or _place(row) in shown
        ],
        "table exports": [],
        "table skips": [],
    }
    return found | {store: _sorted(content) for store, content in changed.items()}


def assert_held(rebuilt: Path, original: Path) -> None:
    """A home that was made from the pages of another holds all that pages hold, store by store, field by field."""
    have, want = everything(rebuilt), held(original)
    for store, content in want.items():
        assert have[store] == content, f"{store} differs"


def _row(row: Row, shown: bool) -> Row:
    if shown:
        return row | {"parent_id": None}
    place = {name: row[name] for name in _KEPT_OF_A_PLACE}
    empty = {**dict.fromkeys(row), **_EMPTY, **place}
    return empty | {"message_id": f"page:{row['seq']}", "role": "system", "kind": "system"} | _HIDDEN


def _said(row: Row, shown: bool) -> Row:
    if shown:
        return row
    kept = ("provider", "conversation_id", "seq", "day", "wing", "room")
    empty = {**dict.fromkeys(row), "branch_active": True, "visible": False, "opening": False, "words": 0, "findings": 0}
    return empty | {name: row[name] for name in kept} | {"role": "system", "kind": "system"} | _HIDDEN


_HIDDEN: Row = {"hidden_reason": "not on the page"}


def _finding(row: Row) -> Row:
    return row | {"rule": "page", "layer": "page", "length": None, "fingerprint": ""}


def _sums(messages: Iterable[Row]) -> Row:
    messages = list(messages)
    return {name: _sum(m[name] for m in messages) for name in ("tokens_in", "tokens_out", "tokens_cached", "cost")}


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return (math.fsum(known) if isinstance(known[0], float) else sum(known)) if known else None


def _key(row: Row) -> tuple[str, str]:
    return row["provider"], row["conversation_id"]


def _place(row: Row) -> tuple[str, str, int]:
    return *_key(row), row["seq"]


def _sorted(rows: list[Row], by: Callable[[Row], str] = repr) -> list[Row]:
    return sorted(rows, key=by)
