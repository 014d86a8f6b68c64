"""`palace stats`: the archive's trends as tables and as plots for a terminal, read from the views of `palace.duckdb`."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from palace_pipeline import plots
from palace_pipeline.charts import bars_chart, days_chart
from palace_pipeline.store.sql import query, to_json_rows

QUERIES = {
    "providers": "SELECT * FROM v_providers ORDER BY conversations DESC, provider",
    "months": "SELECT month, conversations, messages, words FROM v_month ORDER BY month",
    "rooms": "SELECT room, count(*) AS drawers FROM drawers GROUP BY room ORDER BY drawers DESC, room",
    "wings": "SELECT wing, count(*) AS conversations FROM conversations WHERE wing IS NOT NULL "
    "GROUP BY wing ORDER BY conversations DESC, wing LIMIT 12",
    "models": "SELECT model, count(*) AS messages FROM messages WHERE model IS NOT NULL AND visible "
    "GROUP BY model ORDER BY messages DESC, model LIMIT 12",
    "hours": "SELECT weekday, hour, messages FROM v_hour_of_week ORDER BY weekday, hour",
    # As v_calendar has them; that also counts conversations, which costs ten times as much.
    "days": "SELECT local_at::DATE AS day, count(*) AS messages FROM messages WHERE visible AND local_at IS NOT NULL "
    "GROUP BY 1 ORDER BY 1",
    "streaks": "SELECT * FROM v_streaks ORDER BY days DESC, first_day LIMIT 5",
    "silences": "SELECT * FROM v_silences ORDER BY days DESC, first_day LIMIT 5",
    "findings": "SELECT kind, sum(findings)::BIGINT AS findings FROM v_findings_by_month GROUP BY kind ORDER BY 2 DESC, 1",
    # Of the older view: tables that were made before the newer one came can be drawn too.
    "findings_by_month": "SELECT month, kind, sum(findings)::BIGINT AS findings FROM v_findings_by_month "
    "GROUP BY ALL ORDER BY month, kind",
}

_OF_SESSIONS = {
    # Asked only where there are sessions: their front matter is read from the lake.
    "sessions": "SELECT * FROM v_sessions_by_month ORDER BY month",
    "tags": "SELECT tag, sum(sessions)::BIGINT AS sessions FROM v_tags_by_month GROUP BY tag "
    "ORDER BY sessions DESC, tag LIMIT 12",
    "tags_by_month": "SELECT month, tag, sessions FROM v_tags_by_month ORDER BY month, tag",
}

PLOTTED = ("days", "hours", "providers", "rooms", "findings")


@dataclass(frozen=True, slots=True)
class Trends:
    """Rows of each query by its name, as JSON values (days and months as ISO text)."""

    rows: dict[str, list[dict[str, Any]]]

    def as_text(self, width: int = 80) -> str:
        """Tables and plots, at most `width` columns wide."""
        parts = [
            ("Conversations by provider", _bars(self.rows["providers"], "provider", "conversations", width)),
            ("Messages by month", _bars(_months(self.rows["months"]), "month", "messages", width)),
            ("Drawers by room", _bars(self.rows["rooms"], "room", "drawers", width)),
            ("Conversations by wing", _bars(self.rows["wings"], "wing", "conversations", width)),
            ("Answers by model", _bars(self.rows["models"], "model", "messages", width)),
            ("Messages by hour of the week", _hours(self.rows["hours"])),
            ("Days", _calendars(self.rows["days"])),
            ("Longest streaks", _spans(self.rows["streaks"])),
            ("Longest silences", _spans(self.rows["silences"])),
            ("Masked by kind", _bars(self.rows["findings"], "kind", "findings", width)),
            ("Masked by month and kind", _by_month(self.rows["findings_by_month"], "kind", "findings", width)),
            ("Sessions by month", _sessions(self.rows["sessions"])),
            ("Sessions by tag", _bars(self.rows["tags"], "tag", "sessions", width)),
            ("Sessions by month and tag", _by_month(self.rows["tags_by_month"], "tag", "sessions", width)),
        ]
        return "\n\n".join(f"{title}\n{text}" for title, text in parts if text)


def trends(home: Path) -> Trends:
    """Read all trends. Raises QueryError, NotBuiltError (`store.sql`)."""
    rows = {name: to_json_rows(*query(home, sql)) for name, sql in QUERIES.items()}
    sessions = any(row["provider"] == "session" for row in rows["providers"])
    more = {name: to_json_rows(*query(home, sql)) if sessions else [] for name, sql in _OF_SESSIONS.items()}
    return Trends(rows | more)


def plots_as_markdown(home: Path) -> dict[str, str]:
    """The whole archive as pictures in Markdown, for Dagster's pages: counts by day, hour, room and kind of finding."""
    found = {name: to_json_rows(*query(home, QUERIES[name])) for name in PLOTTED}
    days = {date.fromisoformat(row["day"]): int(row["messages"]) for row in found["days"]}
    hours = plots.png_hours([(row["weekday"], row["hour"], row["messages"]) for row in found["hours"]])
    heat = (
        "**Messages by weekday and hour**: Monday at the top, midnight at the left, darker is more\n\n"
        f"![Messages by weekday and hour](data:image/png;base64,{base64.b64encode(hours).decode()})"
    )
    return {
        "messages by day": days_chart(days, "messages"),
        "messages by hour of the week": heat if found["hours"] else "",
        "messages by provider": _counted(found["providers"], "provider", "messages"),
        "drawers by room": _counted(found["rooms"], "room", "drawers"),
        "masked by kind": _counted(found["findings"], "kind", "findings"),
    }


def _counted(rows: list[dict[str, Any]], label: str, value: str) -> str:
    return bars_chart([(str(row[label]), int(row[value] or 0)) for row in rows], label, value)


def _bars(rows: list[dict[str, Any]], label: str, value: str, width: int) -> str:
    return plots.bars([(str(row[label]), row[value]) for row in rows], width)


def _months(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last three years, month as `YYYY-MM`; what has no time comes last."""
    return [{**row, "month": row["month"][:7] if row["month"] else "undated"} for row in rows][-37:]


def _sessions(rows: list[dict[str, Any]]) -> str:
    """A line a month: sessions, tokens read and written, to-dos done of all."""
    return "\n".join(
        f"{row['month'][:7]}  sessions {row['sessions']:,} (closed {row['closed']:,}) · turns {row['turns'] or 0:,} · "
        f"tokens in {row['tokens_in'] or 0:,}, out {row['tokens_out'] or 0:,} · "
        f"to-dos done {row['todos_done'] or 0:,} of {(row['todos_done'] or 0) + (row['todos_open'] or 0):,}"
        for row in rows
    )


def _by_month(rows: list[dict[str, Any]], kind: str, value: str, width: int) -> str:
    """A line a kind: one character a month from the first to the last (the last three years at most), then the sum."""
    if not rows:
        return ""
    last = _month_number(rows[-1]["month"])
    first = max(_month_number(rows[0]["month"]), last - 35)
    counts: dict[str, list[int]] = {}
    for row in rows:
        of_kind = counts.setdefault(row[kind], [0] * (last - first + 1))
        if (number := _month_number(row["month"])) >= first:
            of_kind[number - first] += row[value]
    label = min(max(map(plots.text_width, counts)), width // 3)
    lines = [
        f"{plots.fitted(name, label)} {plots.sparkline(of_kind)} {sum(of_kind):,}"
        for name, of_kind in sorted(counts.items(), key=lambda item: (-sum(item[1]), item[0]))
        if sum(of_kind)
    ]
    span = f"{first // 12:04}-{first % 12 + 1:02} to {last // 12:04}-{last % 12 + 1:02}"
    return "\n".join([f"{plots.fitted('', label)} {span}", *lines])


def _month_number(day: str) -> int:
    """Months since the year 0."""
    return int(day[:4]) * 12 + int(day[5:7]) - 1


def _hours(rows: list[dict[str, Any]]) -> str:
    return (
        plots.hour_of_week([(row["weekday"], row["hour"], row["messages"]) for row in rows])
        if any(row["messages"] for row in rows)
        else ""
    )


def _calendars(rows: list[dict[str, Any]]) -> str:
    days = {date.fromisoformat(row["day"]): row["messages"] for row in rows}
    years = sorted({day.year for day in days}, reverse=True)[:3]
    return "\n\n".join(plots.calendar(days, year) for year in years)


def _spans(rows: list[dict[str, Any]]) -> str:
    return "\n".join(
        f"{row['days']:5} {'day ' if row['days'] == 1 else 'days'}  {row['first_day']} to {row['last_day']}"
        for row in rows
    )
