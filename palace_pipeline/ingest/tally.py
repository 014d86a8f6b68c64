"""Counting a look at the export folders: found = new + updated + unchanged + skipped, for files, chats and messages.

A conversation or message counts once per look, however many files show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from sqlite3 import Row
from typing import Any, Literal

from palace_pipeline.ingest.by_format import Drift, drifted
from palace_pipeline.ingest.purged import PURGED
from palace_pipeline.ingest.sightings import News
from palace_pipeline.model import Skip, Unit
from palace_pipeline.store.ledger import Key, Ledger, unpack_index

Outcome = Literal["new", "updated", "unchanged", "skipped"]
LEFT_BY_LIMIT = "left for the next run (--limit)"
"""Reason of a file that would have been read without `--limit`."""
_ORDER = {"new": 3, "updated": 2, "unchanged": 1}


def _lacking(unit: Unit, count: int, found: int) -> str:
    """`found` counts what is shown by several files once, and does not know what could not be read at all."""
    return f"{count:,} of {found:,} {unit}s" if unit == "file" else f"{count:,} {unit}" + ("s" if count > 1 else "")


@dataclass(frozen=True, slots=True)
class Ingested:
    """The counts of one look. `days`: days (ISO) of conversations that are new or changed. `drift`: signs that a format
    has changed, in the files that were looked at."""

    files: dict[str, int]
    conversations: dict[str, int]
    messages: dict[str, int]
    skips: list[Skip]
    days: list[str]
    drift: list[Drift] = field(default_factory=list[Drift])

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
                for s in grouped(self.skips)
            ],
            "drift": [drift.as_counts() for drift in self.drift],
        }

    def lacking(self) -> str:
        """How much was not taken that should have been, in words; '' if all was."""
        lost = [skip for skip in self.skips if not skip.expected]
        files = len({skip.where.partition("!/")[0] for skip in lost if skip.unit == "file"})
        counts = Counter[Unit]({"file": files})
        for skip in lost:
            counts[skip.unit] += skip.count if skip.unit != "file" else 0
        said = (_lacking(unit, count, self.of(f"{unit}s")["found"]) for unit, count in counts.items() if count)
        return ", ".join(sorted(said))

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


MANY = 20


def grouped(skips: Iterable[Skip]) -> list[Skip]:
    """Skips for people: where one container has many of a kind, one line with their number (the ledger keeps each)."""
    kinds: dict[tuple[str, str, bool, Unit], list[Skip]] = {}
    for skip in skips:
        container = skip.where.partition("!/")[0]
        kinds.setdefault((container, skip.reason, skip.expected, skip.unit), []).append(skip)
    out: list[Skip] = []
    for (container, reason, expected, unit), alike in kinds.items():
        if len(alike) <= MANY:
            out += alike
        else:
            out.append(Skip(reason, container, expected, sum(skip.count for skip in alike), unit))
    return out


@dataclass(slots=True)
class _Chat:
    outcome: Literal["new", "updated", "unchanged"] = "unchanged"
    records: set[str] = field(default_factory=set[str])
    new: int = 0
    updated: int = 0


class _Untouched:
    """Conversations that files show which need no reading, counted by the ledger: there may be all that it knows.

    Mostly all its files but one or two need none, or few do: what fewer files show is gone through, and the rest is
    what is left of all.
    """

    _SHOWN = (
        "EXISTS (SELECT 1 FROM element_records r JOIN file_elements f USING (element) "
        "WHERE r.provider = c.provider AND r.conversation_id = c.conversation_id{where})"
    )
    _SUMS = (
        "SELECT count(superseded_by), count(*) - count(superseded_by), "
        "coalesce(sum(messages) FILTER (WHERE superseded_by IS NULL), 0) FROM {of}"
    )
    _OF_NAMED = (
        "(SELECT DISTINCT r.provider, r.conversation_id FROM named n CROSS JOIN file_elements f ON f.path = n.path "
        "CROSS JOIN element_records r ON r.element = f.element) CROSS JOIN conversations c USING (provider, conversation_id)"
    )

    # The two differences are sorted, so that SQLite makes each of them in one pass over two indexes.
    _OF_NONE = (
        "(SELECT provider, conversation_id FROM (SELECT provider, conversation_id FROM conversations "
        "EXCEPT SELECT provider, conversation_id FROM element_records ORDER BY 1, 2) "
        "UNION SELECT c.provider, c.conversation_id FROM element_records c WHERE c.element IN "
        "(SELECT element FROM element_records EXCEPT SELECT element FROM file_elements ORDER BY 1) "
        f"AND NOT {_SHOWN.format(where='')}) CROSS JOIN conversations USING (provider, conversation_id)"
    )

    def __init__(self, ledger: Ledger, untouched: Set[str], others: Set[str]) -> None:
        """`others`: all files of the ledger that are not `untouched`."""
        self._ledger = ledger
        few = len(untouched) <= len(others)
        self._shown = self._SHOWN.format(where="")
        if others:
            ledger.write("CREATE TEMP TABLE IF NOT EXISTS named (path TEXT PRIMARY KEY)")
            ledger.write("DELETE FROM named")
            ledger.write_many("INSERT INTO named VALUES (?)", ((path,) for path in (untouched if few else others)))
            self._shown = self._SHOWN.format(where=f" AND f.path {'IN' if few else 'NOT IN'} (SELECT path FROM named)")
        if others and few:
            sums = self._summed(self._OF_NAMED)
        else:
            sums = _less(self._summed("conversations"), self._summed(self._OF_NONE))
        if others and not few:
            sums = _less(sums, self._summed(f"{self._OF_NAMED} WHERE NOT {self._shown}"))
        self.continued, self.conversations, self.messages = sums

    def _summed(self, of: str) -> list[int]:
        row = self._ledger.one(self._SUMS.format(of=of))
        return list(row) if row is not None else [0, 0, 0]

    def shows(self, key: Key) -> bool:
        where = f"WHERE provider = ? AND conversation_id = ? AND {self._shown}"
        return self._ledger.one(f"SELECT 1 FROM conversations c {where}", key) is not None

    def leave_out(self, row: Row) -> None:
        """This one is counted elsewhere."""
        if row["superseded_by"] is None:
            self.conversations -= 1
            self.messages -= row["messages"]
        else:
            self.continued -= 1

    def keys(self) -> set[Key]:
        rows = self._ledger.rows(f"SELECT provider, conversation_id FROM conversations c WHERE {self._shown}")
        return {(row["provider"], row["conversation_id"]) for row in rows}


def _less(sums: Sequence[int], without: Sequence[int]) -> list[int]:
    return [of_all - lacking for of_all, lacking in zip(sums, without, strict=True)]


@dataclass(slots=True)
class Tally:
    """Gathers while files are read."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    skips: list[Skip] = field(default_factory=list[Skip])
    chats: dict[Key, _Chat] = field(default_factory=dict[Key, _Chat])
    untouched: set[str] = field(default_factory=set[str])
    looked_at: set[str] = field(default_factory=set[str])
    """Paths of all files of this look, read or not."""
    purged: set[str] = field(default_factory=set[str])
    """Marks of purged conversations that were seen."""
    _before: dict[Key, _Chat | None] = field(default_factory=dict[Key, "_Chat | None"])
    """Chats of the file that is being read, as they were counted before it."""

    def begin(self) -> None:
        """A file is read next."""
        self._before.clear()

    def undo(self) -> None:
        """What was counted of the file that was read last does not count."""
        for key, chat in self._before.items():
            if chat is None:
                del self.chats[key]
            else:
                self.chats[key] = chat
        self._before.clear()

    def _chat(self, key: Key) -> _Chat:
        chat = self.chats.get(key)
        if key not in self._before:
            self._before[key] = replace(chat, records=set(chat.records)) if chat is not None else None
        if chat is None:
            chat = self.chats[key] = _Chat()
        return chat

    def file(self, outcome: Outcome, skips: Iterable[Skip]) -> None:
        self.outcomes[outcome] += 1
        self.skips += (skip for skip in skips if skip.reason != PURGED or self._first(skip.where))

    def _first(self, place: str) -> bool:
        """True for the first place of a look where a purged conversation is seen: it counts once, like any other."""
        mark = place.rpartition(" ")[2]
        if mark in self.purged:
            return False
        self.purged.add(mark)
        return True

    def seen(self, key: Key, record: str) -> None:
        """A known record was shown again."""
        self._chat(key).records.add(record)

    def news(self, key: Key, news: News) -> None:
        """A record was read."""
        chat = self._chat(key)
        chat.records.add(news.record)
        chat.new += news.new
        chat.updated += news.updated
        outcome = "new" if news.new_conversation else "updated" if news.anything else "unchanged"
        if _ORDER[outcome] > _ORDER[chat.outcome]:
            chat.outcome = outcome

    def unchanged_files(self, ledger: Ledger, paths: Iterable[str]) -> None:
        """Files as the ledger knows them: what they could not give is said again."""
        paths = set(paths)
        self.untouched |= paths
        as_expected: Counter[tuple[str, Unit]] = Counter()
        # One pass over all skips, not one question a file. What nobody wants is summed up, the rest is named again.
        for row in ledger.rows("SELECT path, place, reason, expected, count, unit FROM skips") if paths else ():
            if row["path"] not in paths:
                continue
            if row["reason"] == PURGED and not self._first(row["place"]):
                continue
            if row["expected"]:
                as_expected[row["reason"], row["unit"]] += row["count"]
            else:
                self.skips.append(Skip(row["reason"], row["place"], False, row["count"], row["unit"]))
        for (reason, unit), count in sorted(as_expected.items()):
            self.skips.append(Skip(reason, "files seen before", True, count, unit))

    def result(self, ledger: Ledger) -> Ingested:
        """The sums; reads the ledger for what unchanged files show."""
        files = Counter(self.outcomes)
        files["unchanged"] += len(self.untouched)
        for row in ledger.rows("SELECT path FROM files WHERE status IN ('quarantined', 'skipped')"):
            if row["path"] in self.untouched:
                files["unchanged"] -= 1
                files["skipped"] += 1
        conversations, messages = Counter[str](), Counter[str]()
        days: set[str] = set()
        skips = list(self.skips)
        beside = self._beside(ledger)
        for key, chat in self.chats.items():
            row = ledger.conversation(key)
            if row is None:
                continue
            untouched = beside is not None and beside.shows(key)
            if untouched and beside is not None:
                beside.leave_out(row)
            if row["superseded_by"]:
                conversations["skipped"] += 1
                skips.append(Skip("continued in another session", f"{key[0]}:{key[1]}", True, unit="conversation"))
                continue
            conversations[chat.outcome] += 1
            shown = row["messages"] if untouched else _messages_shown(ledger, key, chat.records)
            # What is new in one file and different in the next one of the same look is new, and counts once.
            updated = min(chat.updated, shown - chat.new)
            messages["new"] += chat.new
            messages["updated"] += updated
            messages["unchanged"] += shown - chat.new - updated
            if chat.outcome != "unchanged":
                days.add(row["day"])
        if beside is not None:
            conversations["unchanged"] += beside.conversations
            messages["unchanged"] += beside.messages
            if continued := beside.continued:
                conversations["skipped"] += continued
                skips.append(Skip("continued in another session", "files seen before", True, continued, "conversation"))
        for skip in self.skips:
            if skip.unit == "conversation":
                conversations["skipped"] += skip.count
            elif skip.unit == "message":
                messages["skipped"] += skip.count
        drift = drifted(ledger, self.looked_at)
        return Ingested(_summed(files), _summed(conversations), _summed(messages), skips, sorted(days), drift)

    def untouched_chats(self, ledger: Ledger) -> set[Key]:
        """Conversations that untouched files show."""
        beside = self._beside(ledger)
        return beside.keys() if beside is not None else set()

    def _beside(self, ledger: Ledger) -> _Untouched | None:
        """What untouched files show; None if there are none."""
        if not self.untouched:
            return None
        row = ledger.one("SELECT count(*) AS n FROM files")
        others = set[str]()
        if row is None or row["n"] != len(self.untouched):
            others = {row["path"] for row in ledger.rows("SELECT path FROM files")} - self.untouched
        return _Untouched(ledger, self.untouched, others)


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
