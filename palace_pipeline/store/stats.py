"""Trend statistics as views of `palace.duckdb`: nothing is stored twice, and they are as fresh as the tables.

Days, weeks (from Monday) and hours are those of the display zone (`messages.local_at`), or of the source's own clock
where it named no zone. A null day, week or month holds the messages without any time, so that every view adds up to
the whole.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from palace_pipeline.store.duckfile import attached, copy_file, database, opened, put_in_place, quoted, working_folder

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class View:
    """`columns`: every column of `sql`, in order, with its comment."""

    name: str
    comment: str
    columns: dict[str, str]
    sql: str


_MEASURES: dict[str, tuple[str, str]] = {
    "conversations": (
        "count(DISTINCT (provider, conversation_id)) FILTER (visible)",
        "conversations with a visible message then; one that goes on counts in each period, so do not add these up",
    ),
    "started": ("count(*) FILTER (opening)", "conversations that began then"),
    "messages": ("count(*) FILTER (visible)", "visible messages"),
    "user_messages": ("count(*) FILTER (visible AND role = 'user')", "visible messages of role user"),
    "assistant_messages": ("count(*) FILTER (visible AND role = 'assistant')", "visible messages of role assistant"),
    "words": ("coalesce(sum(words) FILTER (visible), 0)::BIGINT", "words of visible messages"),
    "tokens_in": ("sum(tokens_in)::BIGINT", "known input tokens of all rows; null if none is known"),
    "tokens_out": ("sum(tokens_out)::BIGINT", "known output tokens of all rows; null if none is known"),
    "cost": ("sum(cost)", "US dollars, known costs only; null if none is known"),
}
_PERIODS = {"day": "local day", "week": "Monday of the local week", "month": "first day of the local month"}
_DIMENSIONS = {
    "provider": "where the conversation comes from",
    "wing": "wing of the drawer that holds the message; null if none does",
    "room": "room (topic) of the drawer that holds the message; null if none does",
    "model": "model that the source names; messages without one are left out",
}


def _period_view(period: str, dimension: str | None) -> View:
    by = [period] if dimension is None else [period, dimension]
    where = "WHERE model IS NOT NULL" if dimension == "model" else ""
    measures = ", ".join(f"{expression} AS {name}" for name, (expression, _) in _MEASURES.items())
    bucket = "local_at::DATE" if period == "day" else f"date_trunc('{period}', local_at)::DATE"
    return View(
        name="v_" + "_by_".join(by),
        comment=f"conversations, messages, words, tokens and cost per {' and '.join(by)}",
        columns={
            period: f"{_PERIODS[period]}; null: messages without a time",
            **({dimension: _DIMENSIONS[dimension]} if dimension else {}),
            **{name: comment for name, (_, comment) in _MEASURES.items()},
        },
        sql=f"SELECT {', '.join([f'{bucket} AS {period}', *by[1:]])}, {measures} FROM messages {where} GROUP BY ALL"
        f" ORDER BY {', '.join(by)}",
    )


_ACTIVE_DAYS = "SELECT local_at::DATE AS day, count(*) AS messages FROM messages WHERE visible AND local_at IS NOT NULL"
_OTHERS = (
    View(
        "v_calendar",
        "every local day from the first message to the last, also the empty ones: for calendars and plots",
        {"day": "local day", "messages": "visible messages, 0 on a silent day", "conversations": "with one of them"},
        f"""WITH active AS ({_ACTIVE_DAYS} GROUP BY ALL),
        talks AS (SELECT local_at::DATE AS day, count(DISTINCT (provider, conversation_id)) AS conversations
            FROM messages WHERE visible GROUP BY ALL),
        days AS (SELECT unnest(generate_series(min(day), max(day), INTERVAL 1 DAY))::DATE AS day FROM active)
        SELECT day, coalesce(messages, 0) AS messages, coalesce(conversations, 0) AS conversations
        FROM days LEFT JOIN active USING (day) LEFT JOIN talks USING (day) ORDER BY day""",
    ),
    View(
        "v_hour_of_week",
        "when it is talked: all 168 hours of the local week",
        {
            "weekday": "1 = Monday ... 7 = Sunday",
            "hour": "0 to 23, local",
            "messages": "visible messages",
            "user_messages": "of role user",
        },
        """WITH counted AS (SELECT isodow(local_at) AS weekday, hour(local_at) AS hour, count(*) AS messages,
            count(*) FILTER (role = 'user') AS user_messages FROM messages
            WHERE visible AND local_at IS NOT NULL GROUP BY ALL),
        grid AS (SELECT w AS weekday, h AS hour FROM range(1, 8) AS a(w), range(24) AS b(h))
        SELECT weekday, hour, coalesce(messages, 0) AS messages, coalesce(user_messages, 0) AS user_messages
        FROM grid LEFT JOIN counted USING (weekday, hour) ORDER BY weekday, hour""",
    ),
    View(
        "v_streaks",
        "runs of local days with at least one visible message, the longest first",
        {"first_day": "first day", "last_day": "last day", "days": "length", "messages": "visible messages in it"},
        f"""WITH active AS ({_ACTIVE_DAYS} GROUP BY ALL),
        numbered AS (SELECT day, messages, day - (row_number() OVER (ORDER BY day))::INTEGER AS run FROM active)
        SELECT min(day) AS first_day, max(day) AS last_day, count(*) AS days, sum(messages)::BIGINT AS messages
        FROM numbered GROUP BY run ORDER BY days DESC, first_day""",
    ),
    View(
        "v_silences",
        "runs of local days without a message between two days with one, the longest first",
        {"first_day": "first silent day", "last_day": "last silent day", "days": "length"},
        f"""WITH active AS ({_ACTIVE_DAYS} GROUP BY ALL),
        pairs AS (SELECT day, lead(day) OVER (ORDER BY day) AS following FROM active)
        SELECT day + 1 AS first_day, following - 1 AS last_day, (following - day - 1)::BIGINT AS days
        FROM pairs WHERE following - day > 1 ORDER BY days DESC, first_day""",
    ),
    View(
        "v_findings_by_month",
        "what was redacted over time",
        {
            "month": "first day of the local month of the message (of the conversation, if it has no time)",
            "kind": "kind in the mask",
            "layer": "layer of the redaction",
            "provider": "where it was found",
            "findings": "places",
            "values": "different values (by keyed hash)",
            "conversations": "conversations with one",
        },
        """SELECT date_trunc('month', coalesce(m.local_at, c.local_started, f.day::TIMESTAMP))::DATE AS month,
            f.kind, f.layer, f.provider, count(*) AS findings,
            count(DISTINCT nullif(f.fingerprint, '')) AS "values",
            count(DISTINCT f.conversation_id) AS conversations
        FROM findings AS f
        LEFT JOIN messages AS m USING (provider, conversation_id, seq)
        LEFT JOIN conversations AS c USING (provider, conversation_id)
        GROUP BY ALL ORDER BY month, findings DESC, f.kind, f.layer, f.provider""",
    ),
    View(
        "v_findings_by_month_and_kind",
        "what was redacted over time, one row a month and kind, whatever layer found it and wherever",
        {
            "month": "first day of the local month of the message (of the conversation, if it has no time)",
            "kind": "kind in the mask",
            "findings": "places",
            "values": "different values (by keyed hash); one that comes again counts in each month",
            "conversations": "conversations with one",
            "first_seen": "values that were found in no month before",
        },
        """WITH found AS (SELECT date_trunc('month', coalesce(m.local_at, c.local_started, f.day::TIMESTAMP))::DATE AS month,
            f.kind, f.provider, f.conversation_id, nullif(f.fingerprint, '') AS fingerprint
            FROM findings AS f
            LEFT JOIN messages AS m USING (provider, conversation_id, seq)
            LEFT JOIN conversations AS c USING (provider, conversation_id)),
        firsts AS (SELECT kind, month, count(*) AS first_seen FROM (
            SELECT kind, fingerprint, min(month) AS month FROM found WHERE fingerprint IS NOT NULL GROUP BY ALL)
            GROUP BY ALL)
        SELECT month, kind, count(*) AS findings, count(DISTINCT fingerprint) AS "values",
            count(DISTINCT (provider, conversation_id)) AS conversations, coalesce(any_value(first_seen), 0) AS first_seen
        FROM found LEFT JOIN firsts USING (kind, month) GROUP BY month, kind ORDER BY month, findings DESC, kind""",
    ),
    View(
        "v_topic_growth",
        "topics (rooms) per quarter, against the quarter before",
        {
            "quarter": "first day of the local quarter",
            "room": "topic",
            "conversations": "conversations with a visible message in the room",
            "messages": "visible messages in the room",
            "before": "its messages in the quarter before, 0 if it was silent",
            "growth": "messages / before - 1; null if there were none before",
        },
        """WITH counted AS (SELECT date_trunc('quarter', local_at)::DATE AS quarter, room,
            count(DISTINCT (provider, conversation_id)) AS conversations, count(*) AS messages FROM messages
            WHERE visible AND local_at IS NOT NULL AND room IS NOT NULL GROUP BY ALL)
        SELECT n.quarter, n.room, n.conversations, n.messages, coalesce(b.messages, 0) AS before,
            n.messages / b.messages - 1 AS growth
        FROM (SELECT *, (quarter - INTERVAL 3 MONTH)::DATE AS earlier FROM counted) AS n
        LEFT JOIN counted AS b ON b.quarter = n.earlier AND b.room = n.room
        ORDER BY n.quarter, n.messages DESC, n.room""",
    ),
    View(
        "v_filed_by_month",
        "where it is filed over time: drawers per month, wing, hall and room",
        {
            "month": "first day of the local month of a drawer's first message (of the conversation, if it has no time)",
            "wing": "whose or which project",
            "hall": "kind of memory",
            "room": "topic",
            "drawers": "indexed pieces",
            "conversations": "conversations that they belong to; one counts in each row that it has drawers in",
        },
        """SELECT date_trunc('month', coalesce(m.local_at, c.local_started))::DATE AS month, d.wing, d.hall, d.room,
            count(*) AS drawers, count(DISTINCT (d.provider, d.conversation_id)) AS conversations
        FROM drawers AS d
        LEFT JOIN messages AS m
            ON m.provider = d.provider AND m.conversation_id = d.conversation_id AND m.seq = d.first_seq
        LEFT JOIN conversations AS c ON c.provider = d.provider AND c.conversation_id = d.conversation_id
        GROUP BY ALL ORDER BY month, drawers DESC, d.wing, d.hall, d.room""",
    ),
    View(
        "v_cost_by_month",
        "known cost per month and model, and how much of the answers it covers",
        {
            "month": "first day of the local month",
            "provider": "where the conversation comes from",
            "model": "model that the source names",
            "cost": "US dollars, known costs only; null if none is known",
            "priced": "rows with a known cost",
            "unpriced": "visible answers without a known cost",
        },
        """SELECT date_trunc('month', local_at)::DATE AS month, provider, model, sum(cost) AS cost,
            count(cost) AS priced,
            count(*) FILTER (cost IS NULL AND visible AND role IN ('assistant', 'bot')) AS unpriced
        FROM messages WHERE model IS NOT NULL OR cost IS NOT NULL GROUP BY ALL ORDER BY month, provider, model""",
    ),
    View(
        "v_tools",
        "tools that assistants called",
        {
            "tool_name": "tool",
            "provider": "where the conversation comes from",
            "calls": "rows of kind tool_call",
            "conversations": "conversations that used it",
            "last_used": "local day of the last call",
        },
        """SELECT tool_name, provider, count(*) AS calls, count(DISTINCT conversation_id) AS conversations,
            max(local_at)::DATE AS last_used
        FROM messages WHERE kind = 'tool_call' AND tool_name IS NOT NULL AND branch_active
        GROUP BY ALL ORDER BY calls DESC, tool_name, provider""",
    ),
    View(
        "v_skips_by_reason",
        "what was not taken, by reason; expected = nobody would have wanted it",
        {
            "reason": "why",
            "expected": "true: nobody would have wanted it",
            "unit": "of what",
            "count": "how many",
            "files": "in how many files",
        },
        """SELECT reason, expected, unit, sum(count)::BIGINT AS count, count(DISTINCT path) AS files
        FROM skips GROUP BY ALL ORDER BY expected, count DESC, reason""",
    ),
    View(
        "v_providers",
        "one row a provider: how much, since when, until when",
        {
            "provider": "where it comes from",
            "conversations": "conversations",
            "messages": "visible messages",
            "words": "their words",
            "first_day": "local day of the first message",
            "last_day": "local day of the last message",
            "undated": "conversations without any time",
            "findings": "redacted places",
        },
        """SELECT provider, count(*) AS conversations, sum(message_count)::BIGINT AS messages,
            sum(words)::BIGINT AS words, min(local_started)::DATE AS first_day, max(local_ended)::DATE AS last_day,
            count(*) FILTER (NOT dated) AS undated, sum(findings)::BIGINT AS findings
        FROM conversations GROUP BY ALL ORDER BY messages DESC, provider""",
    ),
)

_SESSIONS = (
    View(
        "v_sessions",
        "one row a session of the workspace: its front matter and its to-dos (read from the lake of this home)",
        {
            "conversation_id": "the session's id",
            "month": "first day of the local month in which it began (of its day, if it has no time)",
            "title": "redacted title",
            "status": "open, closed or conflict",
            "tags": "its tags",
            "turns": "inputs",
            "tokens_in": "input tokens, null if unknown",
            "tokens_out": "output tokens, null if unknown",
            "todos_open": "list items with an empty box",
            "todos_done": "list items with a ticked box",
        },
        r"""SELECT t.conversation_id, date_trunc('month', coalesce(c.local_started, c.day))::DATE AS month, c.title,
            regexp_extract(t.text, '"status":"([a-z]+)"', 1) AS status,
            regexp_extract_all(regexp_extract(t.text, '"tags":\[([^\]]*)\]', 1), '"([^"]*)"', 1) AS tags,
            nullif(regexp_extract(t.text, '"turns":(\d+)', 1), '')::BIGINT AS turns, t.tokens_in, t.tokens_out,
            nullif(regexp_extract(t.text, '"todos_open":(\d+)', 1), '')::BIGINT AS todos_open,
            nullif(regexp_extract(t.text, '"todos_done":(\d+)', 1), '')::BIGINT AS todos_done
        FROM message_text AS t JOIN conversations AS c USING (provider, conversation_id)
        WHERE t.provider = 'session' AND t.role = 'system' AND t.message_id = 'front'
        ORDER BY t.conversation_id""",
    ),
    View(
        "v_sessions_by_month",
        "sessions, their tokens and to-dos per month in which they began",
        {
            "month": "first day of the local month",
            "sessions": "sessions that began then",
            "closed": "of which closed",
            "turns": "inputs",
            "tokens_in": "known input tokens; null if none is known",
            "tokens_out": "known output tokens; null if none is known",
            "todos_open": "to-dos with an empty box",
            "todos_done": "to-dos with a ticked box",
        },
        """SELECT month, count(*) AS sessions, count(*) FILTER (status = 'closed') AS closed,
            sum(turns)::BIGINT AS turns, sum(tokens_in)::BIGINT AS tokens_in, sum(tokens_out)::BIGINT AS tokens_out,
            sum(todos_open)::BIGINT AS todos_open, sum(todos_done)::BIGINT AS todos_done
        FROM v_sessions GROUP BY ALL ORDER BY month""",
    ),
    View(
        "v_tags_by_month",
        "tags of sessions per month in which they began",
        {"month": "first day of the local month", "tag": "tag", "sessions": "sessions with it"},
        """SELECT month, tag, count(*) AS sessions FROM (SELECT month, unnest(tags) AS tag FROM v_sessions)
        GROUP BY ALL ORDER BY month, sessions DESC, tag""",
    ),
)

VIEWS: tuple[View, ...] = (
    *(_period_view(period, dimension) for period in _PERIODS for dimension in (None, *_DIMENSIONS)),
    *_OTHERS,
    *_SESSIONS,
)


def _statements() -> list[str]:
    statements: list[str] = []
    for view in VIEWS:
        statements.append(f"CREATE OR REPLACE VIEW {view.name} AS {view.sql}")
        statements.append(f"COMMENT ON VIEW {view.name} IS {quoted(view.comment)}")
        for column, comment in view.columns.items():
            statements.append(f'COMMENT ON COLUMN {view.name}."{column}" IS {quoted(comment)}')
    return statements


def _recipe() -> dict[str, str]:
    return {"stats_recipe": hashlib.sha256("\n".join(_statements()).encode()).hexdigest()[:16]}


def define(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Make the views anew, dropping those of older recipes; returns what `meta` has to say about them."""
    known = {view.name for view in VIEWS}
    rows = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    for (name,) in rows:
        if name.startswith("v_") and name not in known:
            connection.execute(f'DROP VIEW "{name}"')
    for statement in _statements():
        connection.execute(statement)
    return _recipe()


def create_stats(home: Path) -> list[str]:
    """The names of the statistics views of a home; they are made (on a copy, renamed in) only if they are not those of
    this version. Needs the home's write lock. Raises NotBuiltError if nothing has been published.
    """
    with attached(home) as connection:
        present: dict[str, str] = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        rows = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    names = [view.name for view in VIEWS]
    if present.get("stats_recipe") != _recipe()["stats_recipe"] or not {n for (n,) in rows}.issuperset(names):
        with working_folder(home) as folder:
            built = folder / "new.duckdb"
            copy_file(database(home), built)
            with opened(built) as connection:
                recipe = define(connection)
                connection.execute("DELETE FROM meta WHERE key IN (SELECT unnest($1))", [list(recipe)])
                connection.execute(
                    "INSERT INTO meta SELECT unnest($1), unnest($2)", [list(recipe), list(recipe.values())]
                )
                connection.execute("CHECKPOINT")
            put_in_place(built, home)
    return names
