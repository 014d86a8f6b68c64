"""Checks of message rows: nothing doubled, times that can be, and whether the readers gave sound messages."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl

from palace_pipeline.checks.look import PLACE, Part
from palace_pipeline.checks.result import Check, Found, Key, Problem
from palace_pipeline.chunking import PEOPLE_PROVIDERS
from palace_pipeline.model import DOCUMENT_PROVIDERS, KEY_SCHEMA, UTC_TIME, VISIBLE_ROLES

_KEY = list(KEY_SCHEMA)
_RAW = "lake/raw/messages"
VISIBLE = pl.col("role").is_in(VISIBLE_ROLES) & pl.col("branch_active") & pl.col("hidden_reason").is_null()

# --- nothing doubled --------------------------------------------------------------------------------------------------


def look_for_doubles(part: Part, found: Found) -> None:
    """Rows of `raw/messages` against themselves and against the ledger."""
    rows = part.rows("raw/messages")
    heads = part.heads
    found.counts["messages"] += rows.height
    settled = part.settled("normalized")
    waiting = heads.filter(pl.col("normalized"))
    found.note(twice(rows))
    found.note(too_many(rows.join(waiting, on=_KEY, how="anti"), settled, _elsewhere(part, rows)))
    found.note(said_twice(rows))


def twice(rows: pl.DataFrame) -> list[Problem]:
    """The same id or the same place more than once in a conversation."""
    out: list[Problem] = []
    for column, what in (("message_id", "the same id"), ("seq", "the same place")):
        again = rows.filter(~pl.struct(*_KEY, column).is_first_distinct())
        for day, provider, conversation_id, count, seq in (
            again.group_by(PLACE, maintain_order=True).agg(pl.len(), pl.col("seq").min().alias("first")).iter_rows()
        ):
            what_is = f"{count:,} message(s) stand there twice with {what}, the first is number {seq}"
            out.append(Problem(what_is, _RAW, day, (provider, conversation_id)))
    return out


def too_many(rows: pl.DataFrame, heads: pl.DataFrame, elsewhere: dict[Key, date]) -> list[Problem]:
    """Conversations with more rows than their sources hold messages, on a day that is not theirs, or that have none.

    `elsewhere`: the day, as the ledger knows it, of conversations that have rows on these days and belong to others.
    """
    counted = rows.group_by(PLACE).len("rows").join(heads, on=_KEY, how="left", suffix="_own")
    out: list[Problem] = []
    for row in counted.sort(PLACE).iter_rows(named=True):
        key, day = (row["provider"], row["conversation_id"]), row["day"]
        if key in elsewhere or (row["day_own"] is not None and row["day_own"] != day):
            out.append(Problem(f"{row['rows']:,} rows lie on a day that is not theirs", _RAW, day, key))
        elif row["messages"] is None:
            out.append(Problem(f"{row['rows']:,} rows of a conversation that the ledger does not know", _RAW, day, key))
        elif row["gone"]:
            why = "was purged" if row["status"] == "purged" else "is held by another one"
            out.append(Problem(f"{row['rows']:,} rows of a conversation that {why}", _RAW, day, key))
        elif row["rows"] > row["messages"]:
            more = row["rows"] - row["messages"]
            out.append(
                Problem(f"{more:,} more rows than its exports hold messages ({row['messages']:,})", _RAW, day, key)
            )
    return out


def _elsewhere(part: Part, rows: pl.DataFrame) -> dict[Key, date]:
    """Day of conversations with rows on these days that are not among the days' conversations; none that still waits."""
    strangers = rows.select(_KEY).unique().join(part.heads, on=_KEY, how="anti")
    out: dict[Key, date] = {}
    for key in strangers.iter_rows():
        row = part.look.ledger.one(
            "SELECT day, built_day FROM conversations WHERE provider = ? AND conversation_id = ?", key
        )
        if row is not None and row["day"] == row["built_day"]:
            out[key] = date.fromisoformat(row["day"])
    return out


def said_twice(rows: pl.DataFrame) -> list[Problem]:
    """The same words of the same speaker at the same instant: a reader, or the source itself, shows them twice.

    Sources that write whole minutes are left out: there it can be true.
    """
    exact = (pl.col("created_at").dt.second() != 0) | (pl.col("created_at").dt.microsecond() != 0)
    said = rows.unique([*_KEY, "message_id"], maintain_order=True).filter(
        VISIBLE & exact & (pl.col("text").str.strip_chars() != "")
    )
    same = ["created_at", "role", "speaker", "text"]
    again = said.filter(~pl.struct(*_KEY, *same).is_first_distinct())
    return [
        Problem(
            f"{count:,} message(s) say the same at the same instant as another, the first is number {seq}",
            _RAW,
            day,
            (provider, conversation_id),
            "look at the export: if it shows them once, report it (a reader takes them twice); nothing is lost",
            "warn",
        )
        for day, provider, conversation_id, count, seq in again.group_by(PLACE, maintain_order=True)
        .agg(pl.len(), pl.col("seq").min())
        .iter_rows()
    ]


DOUBLED = Check(
    name="no_message_is_doubled",
    asset="normalized_transcripts",
    stage="normalized",
    blocking=True,
    description=(
        "No message stands twice, no conversation has more messages than its exports hold or lies on two days. "
        "(The same words at the same instant under two ids only warn: the export itself may hold them.)"
    ),
    look_at=look_for_doubles,
)

# --- times ------------------------------------------------------------------------------------------------------------

CLOCK_SKEW = timedelta(days=1)
"""A message may be younger than the export by this much: clocks differ, and naive times count with their own date."""


def look_at_times(part: Part, found: Found) -> None:
    """Instants of `raw/messages` against the time when the export was read, the calendar, and the conversation's day."""
    rows = part.rows("raw/messages", (*PLACE, "seq", "created_at"))
    read = part.ledger(
        "SELECT c.provider, c.conversation_id, max(f.read_at) AS read_at FROM conversations c "
        "CROSS JOIN sightings s ON s.provider = c.provider AND s.conversation_id = c.conversation_id "
        "CROSS JOIN files f ON f.path = s.path WHERE c.day BETWEEN :first AND :last GROUP BY 1, 2"
    )
    read_at = pl.DataFrame(
        [(row["provider"], row["conversation_id"], _instant(row["read_at"])) for row in read],
        schema={**KEY_SCHEMA, "read_at": UTC_TIME},
        orient="row",
    )
    start = part.look.home.settings.start
    found.counts["messages"] += rows.height
    found.counts["messages without an instant"] += rows["created_at"].null_count()
    found.note(out_of_range(rows.join(part.settled("normalized").select(_KEY), on=_KEY, how="semi"), read_at, start))


def out_of_range(rows: pl.DataFrame, read_at: pl.DataFrame, start: date) -> list[Problem]:
    """Messages from after their export was read, from before the calendar begins, or before their conversation's day."""
    said = rows.drop_nulls("created_at").join(read_at, on=_KEY, how="left")
    on = pl.col("created_at").dt.date()
    cases: tuple[tuple[pl.Expr, str, str | None], ...] = (
        (
            pl.col("created_at") > pl.col("read_at") + CLOCK_SKEW,
            "younger than the export that holds them",
            "nothing is lost; a clock was wrong (this one, or that of the source): they sort where it put them",
        ),
        (
            on < start,
            f"from before {start}, where the calendar begins",
            "nothing is lost; if the times are true, set an earlier start in palace.toml, then: palace ingest",
        ),
        ((on < pl.col("day")) & (on >= start), "older than the day of their conversation", None),
    )
    out: list[Problem] = []
    for condition, what, mend in cases:
        for day, provider, conversation_id, count, seq in (
            said.filter(condition).group_by(PLACE).agg(pl.len(), pl.col("seq").min()).sort(PLACE).iter_rows()
        ):
            text = f"{count:,} message(s) are {what}, the first is number {seq}"
            severity = "error" if mend is None else "warn"
            out.append(Problem(text, _RAW, day, (provider, conversation_id), mend, severity))
    return out


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


TIMES = Check(
    name="times_are_possible",
    asset="normalized_transcripts",
    stage="normalized",
    description="No message is younger than its export, older than the calendar, or older than its conversation's day.",
    look_at=look_at_times,
)

# --- quality of reading -----------------------------------------------------------------------------------------------

BAD_SHARE = 0.05
FEW = 3
"""Fewer bad messages than this prove nothing, whatever their share."""
TOO_LONG = 30_000
"""Characters; an answer of a model is shorter. Many such messages are transcripts that were taken for one message."""
BANDS = ("empty", "too short", "too long")
_SINGLE = r"^[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{So}\p{Sk}\x{200D}\x{FE0F}\x{1F3FB}-\x{1F3FF}]+$"
"""One character that people say: a word of its own in these scripts, or a picture."""


def band() -> pl.Expr:
    """The band of a visible message: empty, too short, too long, or healthy."""
    text = pl.col("text").str.strip_chars()
    alone = pl.col("attachment").list.len().fill_null(0) == 0
    spoken = pl.col("provider").is_in(PEOPLE_PROVIDERS) & text.str.contains(_SINGLE)
    document = pl.col("provider").is_in(DOCUMENT_PROVIDERS)
    # Pages of our own form cannot be misread: what is short there was said so (a to-do, a yes).
    own = pl.col("provider") == "session"
    return (
        pl.when((text == "") & alone & (pl.col("kind") == "text"))
        .then(pl.lit("empty"))
        .when((text.str.len_chars() == 1) & ~spoken & ~own)
        .then(pl.lit("too short"))
        .when((text.str.len_chars() > TOO_LONG) & ~document)
        .then(pl.lit("too long"))
        .otherwise(pl.lit("healthy"))
    )


def look_at_quality(part: Part, found: Found) -> None:
    """Bands of the visible messages, by the format that they were read by."""
    columns = (*PLACE, "role", "kind", "branch_active", "hidden_reason", "text", "attachment")
    said = part.rows("raw/messages", columns).filter(VISIBLE)
    formats = part.ledger_frame(
        "SELECT c.provider, c.conversation_id, min(e.format) AS format FROM conversations c "
        "CROSS JOIN element_records r ON r.provider = c.provider AND r.conversation_id = c.conversation_id "
        "CROSS JOIN elements e ON e.element = r.element WHERE c.day BETWEEN :first AND :last GROUP BY 1, 2",
        {**KEY_SCHEMA, "format": pl.String},
    )
    counted = (
        said.with_columns(band=band())
        .join(formats, on=_KEY, how="left")
        .group_by("provider", pl.col("format").fill_null("?"), "band")
        .len()
    )
    for provider, name, which, count in counted.iter_rows():
        found.shares[provider if name in (provider, "?") else f"{provider} ({name})", which] += count
    found.counts["visible messages"] += said.height


def judge_quality(_look: Any, found: Found) -> None:
    """Every bad band of every format under 5%."""
    for name, total in sorted(_totals(found).items()):
        for which in BANDS:
            count = found.shares[name, which]
            if count >= FEW and count >= BAD_SHARE * total:
                share = f"{100 * count / total:.0f}%"
                found.note(
                    [
                        Problem(
                            f"{share} of the messages of {name} are {which} ({count:,} of {total:,})",
                            mend="see palace formats; if it names nothing new, report the format and these figures",
                            severity="warn",
                        )
                    ]
                )


def _totals(found: Found) -> Counter[str]:
    totals: Counter[str] = Counter()
    for (name, _), count in found.shares.items():
        totals[name] += count
    return totals


def quality_table(found: Found) -> list[dict[str, str | int | float]]:
    """A row a format: messages, and the percentage of each band."""
    return [
        {
            "format": name,
            "messages": total,
            **{f"{which} %": round(100 * found.shares[name, which] / total, 2) for which in (*BANDS, "healthy")},
        }
        for name, total in sorted(_totals(found).items())
    ]


QUALITY = Check(
    name="messages_are_healthy",
    asset="normalized_transcripts",
    stage="normalized",
    description=(
        f"By format: empty messages, those of one character, those of more than {TOO_LONG:,} characters (documents may be "
        "longer): each under 5% of what people see. A reader that has fallen behind its format shows here first."
    ),
    look_at=look_at_quality,
    finish=judge_quality,
    table=quality_table,
)
