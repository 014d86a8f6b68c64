"""Every word of what was said stands in exactly one chunk, and in order.

Compared are the characters but blanks: chunks begin and end at blanks, and scripts without them are cut between any two
words.
"""

from __future__ import annotations

import polars as pl

from palace_pipeline.checks.look import PLACE, Part
from palace_pipeline.checks.messages import VISIBLE
from palace_pipeline.checks.result import Check, Found, Problem
from palace_pipeline.model import DOCUMENT_PROVIDERS, KEY_SCHEMA
from palace_pipeline.transcripts.words import words_of

_KEY = list(KEY_SCHEMA)
_STREAM = [*PLACE, "stream"]
_BLANKS = r"[\s\x1c-\x1f]+"
"""All that Python takes for a blank."""


def solid(text: pl.Expr) -> pl.Expr:
    """A text without its blanks."""
    return text.str.replace_all(_BLANKS, "")


def said(messages: pl.DataFrame, chunks: pl.DataFrame) -> pl.DataFrame:
    """What should stand in the chunks of each conversation and stream (talk, document, tool, thinking): `text`, `words`.

    Among people a message is cut with its speaker's name before it; whether it was is read off the chunks.
    """
    people = chunks.filter(pl.col("kind") == "people").select(_KEY).unique().with_columns(named=pl.lit(True))
    shown = messages.filter(pl.col("branch_active") & pl.col("hidden_reason").is_null())
    spoken = VISIBLE & (solid(pl.col("text")) != "")
    is_document = pl.col("provider").is_in(DOCUMENT_PROVIDERS)
    name = pl.when(pl.col("named") & (pl.col("speaker") != "")).then(pl.col("speaker") + ": ").otherwise(pl.lit(""))
    thinking = (pl.col("role") == "thinking") | (pl.col("kind") == "thinking")
    own = (
        shown.join(people, on=_KEY, how="left")
        .with_columns(
            stream=pl.when(spoken & is_document)
            .then(pl.lit("document"))
            .when(spoken)
            .then(pl.lit("talk"))
            .when(~VISIBLE & thinking)
            .then(pl.lit("thinking"))
            .when(~VISIBLE & (pl.col("role") == "tool"))
            .then(pl.lit("tool")),
            text=pl.when(spoken).then(name.fill_null("") + pl.col("text")).otherwise(pl.col("text")),
            part=pl.lit(0, pl.Int64),
        )
        .drop_nulls("stream")
        .select(*_STREAM, "seq", "part", "text")
    )
    attached = (
        shown.filter(pl.col("attachment").list.len() > 0)
        .select(*PLACE, "seq", "attachment")
        .with_columns(part=pl.int_ranges(1, pl.col("attachment").list.len() + 1, dtype=pl.Int64))
        .explode("attachment", "part")
        .with_columns(text=pl.col("attachment").struct.field("text"), stream=pl.lit("document"))
        .drop_nulls("text")
        .select(*_STREAM, "seq", "part", "text")
    )
    return _joined(pl.concat([own, attached]), ["seq", "part"])


def cut(chunks: pl.DataFrame) -> pl.DataFrame:
    """The same of the chunks as they are."""
    stream = pl.when(pl.col("kind").is_in(("exchange", "people"))).then(pl.lit("talk")).otherwise(pl.col("kind"))
    return _joined(chunks.with_columns(stream=stream).select(*_STREAM, "chunk_index", "text"), ["chunk_index"])


def _joined(rows: pl.DataFrame, order: list[str]) -> pl.DataFrame:
    return (
        rows.sort(*_STREAM, *order)
        .with_columns(words=words_of("text"), text=solid(pl.col("text")))
        .group_by(_STREAM, maintain_order=True)
        .agg(pl.col("text").str.join(""), pl.col("words").sum())
        .filter(pl.col("text") != "")
    )


def differences(messages: pl.DataFrame, chunks: pl.DataFrame) -> list[Problem]:
    """Conversations whose chunks do not hold exactly what was said."""
    both = said(messages, chunks).join(cut(chunks), on=_STREAM, how="full", coalesce=True, suffix="_cut")
    wrong = both.filter(pl.col("text").ne_missing(pl.col("text_cut"))).sort(_STREAM)
    out: list[Problem] = []
    for row in wrong.iter_rows(named=True):
        transcript, there = row["words"] or 0, row["words_cut"] or 0
        if transcript == there:
            what = f"{transcript:,} words, which are not in the order of the transcript or not the same"
        else:
            what = f"{there:,} words of {transcript:,} in the transcript"
        out.append(
            Problem(
                f"the chunks ({row['stream']}) hold {what}",
                "lake/clean/chunks",
                row["day"],
                (row["provider"], row["conversation_id"]),
            )
        )
    return out


def look_at(part: Part, found: Found) -> None:
    settled = part.settled("chunks").filter(~pl.col("gone")).select(_KEY)
    columns = (*PLACE, "seq", "branch_active", "role", "kind", "speaker", "text", "attachment", "hidden_reason")
    messages = part.rows("clean/messages", columns).join(settled, on=_KEY, how="semi")
    chunks = part.rows("clean/chunks").join(settled, on=_KEY, how="semi")
    found.counts["conversations"] += settled.height
    found.counts["chunks"] += chunks.height
    found.note(differences(messages, chunks))


WORDS = Check(
    name="every_word_is_in_one_chunk",
    asset="redacted_chunks",
    stage="chunks",
    description="The chunks of a conversation, put together, are its redacted transcript: every word, in order, once.",
    look_at=look_at,
)
