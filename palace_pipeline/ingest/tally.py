"""Counting a look at the export folders: found = new + updated + unchanged + skipped, for files, chats and messages.

A conversation or message counts once per look, however many files show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from palace_pipeline.ingest.sightings import News
from palace_pipeline.model import Skip
from palace_pipeline.store.ledger import Key, Ledger, unpack_index

Outcome = Literal["new", "updated", "unchanged", "skipped"]
_ORDER = {"new": 3, "updated": 2, "unchanged": 1}


@dataclass(frozen=True, slots=True)
class Ingested:
    """The counts of one look. `days`: days (ISO) of conversations that are new or changed."""

    files: dict[str, int]
    conversations: dict[str, int]
    messages: dict[str, int]
    skips: list[Skip]
    days: list[str]

    def of(self, unit: str) -> dict[str, int]:
        return {"files": self.files, "conversations": self.conversations, "messages": self.messages}[unit]

    def as_counts(self) -> dict[str, Any]:
        """For the log and the receipt."""
        return {
            "files": self.files,
            "conversations": self.conversations,
            "messages": self.messages,
            "skipped": [
                {"reason": s.reason, "where": s.where, "expected": s.expected, "count": s.count, "unit": s.unit}
                for s in self.skips
            ],
        }

    def skips_as_markdown(self) -> str:
        """Reasons and counts; names of files only for what should have been taken."""
        reasons = Counter[tuple[str, bool]]()
        for skip in self.skips:
            reasons[skip.reason, skip.expected] += skip.count
        lines = ["| reason | expected | count |", "|---|---|---|"]
        lines += [
            f"| {reason} | {'yes' if expected else 'no'} | {n} |" for (reason, expected), n in reasons.most_common()
        ]
        return "\n".join(lines) if reasons else "Everything was taken."


@dataclass(slots=True)
class _Chat:
    outcome: Literal["new", "updated", "unchanged"] = "unchanged"
    records: set[str] = field(default_factory=set[str])
    new: int = 0
    updated: int = 0


@dataclass(slots=True)
class Tally:
    """Gathers while files are read."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    skips: list[Skip] = field(default_factory=list[Skip])
    chats: dict[Key, _Chat] = field(default_factory=dict[Key, _Chat])
    untouched: set[str] = field(default_factory=set[str])

    def file(self, outcome: Outcome, skips: Iterable[Skip]) -> None:
        self.outcomes[outcome] += 1
        self.skips += skips

    def seen(self, key: Key, record: str) -> None:
        """A known record was shown again."""
        self.chats.setdefault(key, _Chat()).records.add(record)

    def news(self, key: Key, news: News) -> None:
        """A record was read."""
        chat = self.chats.setdefault(key, _Chat())
        chat.records.add(news.record)
        chat.new += news.new
        chat.updated += news.updated
        outcome = "new" if news.new_conversation else "updated" if news.anything else "unchanged"
        if _ORDER[outcome] > _ORDER[chat.outcome]:
            chat.outcome = outcome

    def unchanged_files(self, ledger: Ledger, paths: Iterable[str]) -> None:
        """Files as the ledger knows them: what they could not give is said again."""
        for path in paths:
            self.untouched.add(path)
        # One pass over the (few) skips that matter, not one question a file.
        for row in ledger.rows("SELECT * FROM skips WHERE expected = 0"):
            if row["path"] in self.untouched:
                self.skips.append(Skip(row["reason"], row["place"], False, row["count"], row["unit"]))

    def result(self, ledger: Ledger) -> Ingested:
        """The sums; reads the ledger for what unchanged files show."""
        files = Counter(self.outcomes)
        statuses = dict(ledger.db.execute("SELECT path, status FROM files").fetchall()) if self.untouched else {}
        for path in self.untouched:
            files["skipped" if statuses.get(path) in ("quarantined", "skipped") else "unchanged"] += 1
        conversations, messages = Counter[str](), Counter[str]()
        days: set[str] = set()
        skips = list(self.skips)
        for key, chat in self.chats.items():
            row = ledger.conversation(key)
            if row is None:
                continue
            if row["superseded_by"]:
                conversations["skipped"] += 1
                skips.append(Skip("continued in another session", f"{key[0]}:{key[1]}", True, unit="conversation"))
                continue
            conversations[chat.outcome] += 1
            shown = _messages_shown(ledger, key, chat.records)
            messages["new"] += chat.new
            messages["updated"] += chat.updated
            messages["unchanged"] += shown - chat.new - chat.updated
            if chat.outcome != "unchanged":
                days.add(row["day"])
        self._unchanged_chats(ledger, conversations, messages)
        for skip in self.skips:
            if skip.unit == "conversation":
                conversations["skipped"] += skip.count
            elif skip.unit == "message":
                messages["skipped"] += skip.count
        return Ingested(_summed(files), _summed(conversations), _summed(messages), skips, sorted(days))

    def _unchanged_chats(self, ledger: Ledger, conversations: Counter[str], messages: Counter[str]) -> None:
        if not self.untouched:
            return
        known = ledger.one("SELECT count(*) AS n FROM files")
        everything = known is not None and known["n"] == len(self.untouched)
        if everything:
            where = ""
        else:
            ledger.write("CREATE TEMP TABLE IF NOT EXISTS looked_at (path TEXT PRIMARY KEY)")
            ledger.write("DELETE FROM looked_at")
            ledger.write_many("INSERT INTO looked_at VALUES (?)", ((path,) for path in self.untouched))
            where = "AND path IN (SELECT path FROM looked_at)"
        for row in ledger.rows(
            "SELECT provider, conversation_id, messages FROM conversations c WHERE superseded_by IS NULL AND EXISTS ("
            "SELECT 1 FROM element_records r JOIN file_elements f USING (element) "
            f"WHERE r.provider = c.provider AND r.conversation_id = c.conversation_id {where})"
        ):
            if (row["provider"], row["conversation_id"]) not in self.chats:
                conversations["unchanged"] += 1
                messages["unchanged"] += row["messages"]


def _messages_shown(ledger: Ledger, key: Key, records: set[str]) -> int:
    rows = [
        row
        for row in ledger.rows(
            "SELECT record, messages, message_index FROM sightings WHERE provider = ? AND conversation_id = ?", key
        )
        if row["record"] in records
    ]
    if len(rows) == 1:
        return rows[0]["messages"]
    return len(set().union(*(unpack_index(row["message_index"]) for row in rows)))


def _summed(counts: Counter[str]) -> dict[str, int]:
    names = ("new", "updated", "unchanged", "skipped")
    return {"found": sum(counts[name] for name in names), **{name: counts[name] for name in names}}
