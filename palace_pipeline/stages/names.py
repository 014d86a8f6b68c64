"""Names of files as they are shown: in tables and receipts they go through redaction like any other text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

import orjson

from palace_pipeline.redaction.forgotten import HASHED, MASK
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.stages.recipes import redaction_of
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.receipts import compose, keep_receipt

_EXTENSION = re.compile(r"(\.[A-Za-z0-9]{1,8})(?=$|!/|: )")
_CONSTANT = ("", "files seen before")


class ShownNames:
    """Looks names up, and redacts those that it does not know yet; the ledger keeps what comes out."""

    def __init__(self, home: Home, ledger: Ledger) -> None:
        self._home, self._ledger = home, ledger
        self._recipe = redaction_of(home)

    def of(self, names: Iterable[str]) -> dict[str, str]:
        """Name -> how it is shown."""
        wanted = {name for name in names if name not in _CONSTANT}
        # Those that are asked for, not all that were ever seen: CROSS keeps SQLite from going the other way.
        rows = self._ledger.rows(
            "SELECT name, shown FROM json_each(?) CROSS JOIN shown_names ON name = value WHERE recipe = ?",
            (orjson.dumps(sorted(wanted)).decode(), self._recipe),
        )
        known = {row["name"]: row["shown"] or row["name"] for row in rows}
        if new := wanted - known.keys():
            known |= self._redacted(new)
        return {name: HASHED.sub(MASK, known.get(name, name)) for name in names}

    def sharing(self, shown: Collection[str]) -> set[str]:
        """Names of which something is masked and that are shown as one of these: more than one may be shown alike."""
        rows = self._ledger.rows(
            "SELECT name, shown FROM shown_names WHERE recipe = ? AND (shown IS NOT NULL OR instr(name, '[') > 0)",
            (self._recipe,),
        )
        return {row["name"] for row in rows if HASHED.sub(MASK, row["shown"] or row["name"]) in shown}

    def _redacted(self, names: Collection[str]) -> dict[str, str]:
        settings, forgotten = self._home.settings.redaction, self._ledger.forgotten()
        funnel = Funnel(settings, self._home.key(), forgotten=forgotten)
        # An extension at the end of an address would make another address of it.
        apart = {name: _EXTENSION.sub(r"\n\1", name) for name in sorted(names)}
        shown = {name: text.replace("\n.", ".") for name, text in funnel.redact_fields(apart).texts.items()}
        with self._ledger.transaction():
            self._ledger.write("DELETE FROM shown_names WHERE recipe != ?", (self._recipe,))
            self._ledger.write_many(
                "INSERT OR REPLACE INTO shown_names VALUES (?, ?, ?)",
                ((name, self._recipe, None if clean == name else clean) for name, clean in shown.items()),
            )
        return shown


def with_shown_names(home: Home, ledger: Ledger, rows: list[dict[str, Any]], columns: Collection[str]) -> None:
    """Put into rows how their names are shown, in place."""
    shown = ShownNames(home, ledger).of({row[column] for row in rows for column in columns})
    for row in rows:
        for column in columns:
            row[column] = shown[row[column]]


def write_receipt(home: Home, ledger: Ledger, batch: str) -> dict[str, Any]:
    """Write (or bring up to date) the receipt of a batch; returns it."""
    receipt = compose(ledger, batch)
    with_shown_names(home, ledger, receipt["skipped"], ("where",))
    return keep_receipt(home.receipts, receipt)
