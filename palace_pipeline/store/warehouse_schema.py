"""The tables of `palace.duckdb`, each column with its type and the comment that `duckdb_columns()` shows.

Times: `created_at`, `started_at`, `ended_at` are UTC instants. `local_*` are wall-clock times without a zone, in
the display zone of the home, or as the source wrote them where it named none; they are made when rows are published, so
that no view needs DuckDB's time zone extension. Null means unknown, everywhere: an unknown cost is never 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from palace_pipeline.store.duckfile import quoted
from palace_pipeline.transcripts.words import words_sql

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Table:
    """`columns`: (name, DuckDB type, comment)."""

    comment: str
    columns: tuple[tuple[str, str, str], ...]

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.columns]


_KEY = (
    ("provider", "VARCHAR", "where it comes from: chatgpt, claude, claude-code, codex, slack, ..."),
    ("conversation_id", "VARCHAR", "the source's id, or one made from content; unique with provider"),
)
_WORDS = (
    "words: every Han or Kana character, every run of other letters and digits, Thai and the like by fives"
    " (the macro count_words counts the same way)"
)

TABLES: dict[str, Table] = {
    "exports": Table(
        "Every export file ever seen, with what became of it.",
        (
            ("path", "VARCHAR", "the file, as it was found"),
            ("sha256", "VARCHAR", "of its bytes"),
            ("provider", "VARCHAR", "detected source, null if not recognised"),
            ("format", "VARCHAR", "detected format"),
            ("first_seen_at", "TIMESTAMPTZ", "when the file was first read (UTC)"),
            ("size", "BIGINT", "bytes"),
            ("conversations", "BIGINT", "conversations in it"),
            ("messages", "BIGINT", "messages in it"),
            ("skipped", "BIGINT", "what was not taken of it, counted (reasons: table skips)"),
            ("status", "VARCHAR", "what became of it"),
            ("reason", "VARCHAR", "why, if it was not taken"),
        ),
    ),
    "conversations": Table(
        "One row a conversation, merged from all files that show it.",
        (
            *_KEY,
            ("title", "VARCHAR", "redacted title"),
            ("day", "DATE", "partition: UTC date of the earliest dated message, else see dated"),
            ("dated", "BOOLEAN", "false: no time known, day is when its export was first seen"),
            ("started_at", "TIMESTAMPTZ", "first dated visible message (UTC), null if none"),
            ("ended_at", "TIMESTAMPTZ", "last dated visible message (UTC), null if none"),
            ("message_count", "BIGINT", "visible messages: user, assistant or bot, on the active branch, not hidden"),
            ("user_messages", "BIGINT", "visible messages of role user"),
            ("assistant_messages", "BIGINT", "visible messages of role assistant"),
            ("bot_messages", "BIGINT", "visible messages of role bot (people chats)"),
            ("words", "BIGINT", f"{_WORDS}; visible messages only"),
            ("tokens_in", "BIGINT", "sum of the known input tokens, all rows; null if none is known"),
            ("tokens_out", "BIGINT", "sum of the known output tokens, all rows; null if none is known"),
            ("tokens_cached", "BIGINT", "sum of the known cached tokens, all rows; null if none is known"),
            ("model", "VARCHAR", "the source's model, else the one that most messages name"),
            ("cost", "DOUBLE", "US dollars, sum of the known costs; null if none is known, never 0 for unknown"),
            ("account", "VARCHAR", "account that the export belongs to"),
            ("origin", "VARCHAR", "who started it: person, subagent, cron, heartbeat, tool"),
            ("wing", "VARCHAR", "the wing that most of its drawers are in"),
            ("room", "VARCHAR", "the room that most of its drawers are in"),
            ("page", "VARCHAR", "Markdown page, relative to the home"),
            ("findings", "BIGINT", "places that were redacted"),
            ("status", "VARCHAR", "ok, partial or withheld"),
            ("drawers", "BIGINT", "indexed pieces"),
            ("rows", "BIGINT", "all message rows, visible or not"),
            ("local_started", "TIMESTAMP", "first visible message on the clock of the display zone or of the source"),
            ("local_ended", "TIMESTAMP", "last visible message on the clock of the display zone or of the source"),
            ("project", "VARCHAR", "working folder, channel or project"),
            ("forked_from", "VARCHAR", "conversation whose messages this one repeats at its start"),
            ("parent_conversation_id", "VARCHAR", "session that started this sub-agent"),
            ("source_file", "VARCHAR", "export member it was read from"),
            ("source_sha256", "VARCHAR", "of that file"),
        ),
    ),
    "messages": Table(
        "One row a message, without its text (view message_text has it).",
        (
            *_KEY,
            ("seq", "BIGINT", "place in the conversation, all rows counted from 0"),
            ("role", "VARCHAR", "user, assistant, bot, tool, system, thinking"),
            (
                "kind",
                "VARCHAR",
                "text, tool_call, tool_result, thinking, attachment, image, audio, system, event",
            ),
            ("branch_active", "BOOLEAN", "false: edited away or regenerated"),
            ("visible", "BOOLEAN", "what a person sees: user, assistant or bot, active branch, not hidden"),
            ("created_at", "TIMESTAMPTZ", "UTC instant; null: unknown, or only local_at is known"),
            ("words", "BIGINT", _WORDS),
            ("model", "VARCHAR", "model that the source names"),
            ("tokens_in", "BIGINT", "input tokens, null if unknown"),
            ("tokens_out", "BIGINT", "output tokens, null if unknown"),
            ("tool_name", "VARCHAR", "tool that was called or answered"),
            ("findings", "BIGINT", "places of this message that were redacted"),
            ("day", "DATE", "partition: the day of its conversation, not of the message (that is local_at)"),
            (
                "local_at",
                "TIMESTAMP",
                "time on the clock of the display zone, or as the source wrote it without a zone",
            ),
            ("opening", "BOOLEAN", "the first visible message of its conversation (one each)"),
            ("wing", "VARCHAR", "wing of the drawer that holds it"),
            ("room", "VARCHAR", "room of the drawer that holds it"),
            ("speaker", "VARCHAR", "who said it, in people chats"),
            ("tokens_cached", "BIGINT", "cached input tokens, null if unknown"),
            ("cost", "DOUBLE", "US dollars, null if unknown"),
            ("hidden_reason", "VARCHAR", "why the source itself does not show it"),
        ),
    ),
    "drawers": Table(
        "One row an indexed piece of a conversation: where it is filed.",
        (
            ("drawer_id", "VARCHAR", "the same id as in Chroma and in the lexical index"),
            *_KEY,
            ("chunk_index", "BIGINT", "place among the pieces of the conversation, from 0"),
            ("first_seq", "BIGINT", "first message (messages.seq), inclusive"),
            ("last_seq", "BIGINT", "last message, inclusive"),
            ("wing", "VARCHAR", "whose or which project"),
            ("hall", "VARCHAR", "kind of memory"),
            ("room", "VARCHAR", "topic"),
            ("confidence", "DOUBLE", "of the room, 0 to 1"),
            ("tokens", "BIGINT", "length for the embedding model"),
            ("day", "DATE", "the day of its conversation"),
            ("kind", "VARCHAR", "exchange, people, document, tool or thinking"),
        ),
    ),
    "findings": Table(
        "One row a redacted place; never the value.",
        (
            *_KEY,
            ("seq", "BIGINT", "message (messages.seq); null: not in a message, for example in the title"),
            ("field", "VARCHAR", "field that held it"),
            ("kind", "VARCHAR", "what it was: the kind in its mask"),
            ("rule", "VARCHAR", "rule that found it"),
            ("layer", "VARCHAR", "layer of the redaction that the rule belongs to"),
            ("length", "BIGINT", "characters that were masked"),
            ("fingerprint", "VARCHAR", "keyed hash: equal values of this home have equal fingerprints"),
            ("day", "DATE", "the day of its conversation"),
        ),
    ),
    "skips": Table(
        "What was not taken, with its reason.",
        (
            ("path", "VARCHAR", "export file"),
            ("provider", "VARCHAR", "detected source"),
            ("place", "VARCHAR", "place inside the file; never content"),
            ("reason", "VARCHAR", "why"),
            ("expected", "BOOLEAN", "true: nobody would have wanted it (a join notice, an empty chat)"),
            ("count", "BIGINT", "how many"),
            ("unit", "VARCHAR", "of what: file, conversation, message"),
        ),
    ),
    "meta": Table(
        "What this file is: schema_version, recipe, published_at (UTC), home, display_zone and digests.",
        (("key", "VARCHAR", "name"), ("value", "VARCHAR", "value")),
    ),
}


def definitions() -> list[str]:
    """The statements that make an empty warehouse: tables, comments and the macro `count_words`."""
    statements: list[str] = []
    for name, table in TABLES.items():
        columns = ", ".join(f"{column} {kind}" for column, kind, _ in table.columns)
        statements.append(f"CREATE TABLE {name} ({columns})")
        statements.append(f"COMMENT ON TABLE {name} IS {quoted(table.comment)}")
        statements += [f"COMMENT ON COLUMN {name}.{c} IS {quoted(comment)}" for c, _, comment in table.columns]
    statements.append(f"CREATE MACRO count_words(t) AS {words_sql('t')}")
    statements.append(f"COMMENT ON MACRO count_words IS {quoted(_WORDS)}")
    return statements
