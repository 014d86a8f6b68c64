"""The vocabulary: what a conversation is made of, and the column schemas of every table in the lake.

Times are UTC (`datetime` with `tzinfo=UTC`, microseconds) or None. A time without a zone is never turned into UTC: it
stays text in `local_time` (`YYYY-MM-DDTHH:MM:SS`, as the source wrote it). Nothing in here does I/O.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Literal

import orjson
import polars as pl

Role = Literal["user", "assistant", "bot", "tool", "system", "thinking"]
Kind = Literal["text", "tool_call", "tool_result", "thinking", "attachment", "image", "audio", "system", "event"]
Origin = Literal["person", "subagent", "cron", "heartbeat", "tool"]
Unit = Literal["file", "conversation", "message"]

ROLES: tuple[Role, ...] = ("user", "assistant", "bot", "tool", "system", "thinking")
VISIBLE_ROLES: tuple[Role, ...] = ("user", "assistant", "bot")
PROVIDERS = (
    *("chatgpt", "claude", "claude-code", "codex", "gemini-cli", "gemini", "ai-studio", "grok", "grok-cli", "deepseek"),
    *("mistral", "perplexity", "vscode-copilot", "copilot-cli", "cursor", "openclaw", "hermes", "open-webui"),
    *("librechat", "lm-studio", "continue", "slack", "discord", "telegram", "whatsapp", "sharegpt", "transcript"),
    *("markdown", "text", "session"),
)
DOCUMENT_PROVIDERS = ("markdown", "text")
"""Providers whose 'conversation' is a document without speakers."""
CURRENT_PROVIDERS = (*DOCUMENT_PROVIDERS, "session")
"""Providers whose file says all that there is now: what an earlier state of it said is gone."""


@dataclass(slots=True)
class Citation:
    """A source that an answer points at."""

    url: str
    title: str | None = None


@dataclass(slots=True)
class Attachment:
    """A file beside a message. `size` in bytes; `ref` is a vault reference; `text` what the source extracted of it."""

    name: str | None = None
    type: str | None = None
    size: int | None = None
    ref: str | None = None
    text: str | None = None


@dataclass(slots=True)
class Message:
    """One row of a transcript.

    `message_id` is unique inside its conversation: the source's id, or one made by `exports.ids.derive_ids` from
    content that does not change when the conversation grows. `branch_active` is False for an edited or regenerated
    message that the person no longer sees. `hidden_reason` is set for what the source itself never shows (injected
    context, profile messages). `tokens_*` are counts; `cost` is US dollars, None when unknown.
    """

    message_id: str
    role: Role
    text: str = ""
    kind: Kind = "text"
    created_at: datetime | None = None
    local_time: str | None = None
    parent_id: str | None = None
    branch_active: bool = True
    speaker: str | None = None
    edited_at: datetime | None = None
    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    cost: float | None = None
    tool_name: str | None = None
    citations: list[Citation] = field(default_factory=list)
    attachment: list[Attachment] = field(default_factory=list)
    hidden_reason: str | None = None

    @property
    def visible(self) -> bool:
        """What a person sees in the source's own window: said by somebody, on the active branch, not hidden."""
        return self.role in VISIBLE_ROLES and self.branch_active and self.hidden_reason is None


@dataclass(slots=True)
class Conversation:
    """A conversation as one source shows it, or (after the merge) as all sources together show it.

    `created_at`, `updated_at`: the source's own times of the conversation; `local_created` the same without a zone.
    `order`: "time" for people chats whose rows are put in order by instant, "source" where the source's order rules.
    `forked_from`: id of the conversation whose messages this one repeats at its start. `parent_conversation_id`: the
    session that started this sub-agent. `project`: working folder, Slack channel or the like (names the wing).
    `source_file`: the export member it was read from; `damaged`: that is torn or in conflict, and may say less than it did.
    Neither takes part in identity.
    """

    provider: str
    conversation_id: str
    messages: list[Message]
    title: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    local_created: str | None = None
    origin: Origin = "person"
    account: str | None = None
    model: str | None = None
    project: str | None = None
    order: Literal["source", "time"] = "source"
    forked_from: str | None = None
    parent_conversation_id: str | None = None
    source_file: str | None = None
    damaged: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return (self.provider, self.conversation_id)

    def visible_messages(self) -> list[Message]:
        return [m for m in self.messages if m.visible]


@dataclass(slots=True, frozen=True)
class Skip:
    """Something that was not taken, and why. `expected`: nobody would have wanted it (a join notice, an empty chat).

    `where` names file and place and never quotes content. `unit` says what was lost: a file, a conversation, a message.
    """

    reason: str
    where: str
    expected: bool
    count: int = 1
    unit: Unit = "message"


@dataclass(slots=True)
class Finding:
    """One redacted place. `start`, `end`: code points of the field before redaction. Never the value itself.

    `fingerprint`: keyed hash (the home's `.key`) of the value: equal values can be counted without being kept.
    """

    field: str
    kind: str
    rule: str
    layer: str
    start: int
    end: int
    seq: int | None = None
    fingerprint: str = ""

    @property
    def length(self) -> int:
        return self.end - self.start


@dataclass(slots=True)
class Chunk:
    """A unit for the index: one question with its answer, or a piece of it.

    `text` is the verbatim redacted text, `context` what is embedded before it (the question of a continued answer) and
    is not part of the text. `first_seq`, `last_seq` are inclusive message numbers. `tokens` counts context and text.
    """

    drawer_id: str
    chunk_index: int
    kind: Literal["exchange", "people", "document", "tool", "thinking"]
    first_seq: int
    last_seq: int
    text: str
    context: str
    tokens: int

    @property
    def text_hash(self) -> str:
        """Identity of what is embedded."""
        return short_hash(self.context, self.text, length=32)


# --- identity ---------------------------------------------------------------------------------------------------------


def short_hash(*parts: str, length: int = 16) -> str:
    """First `length` hex digits of sha256 over length-prefixed parts (so that ('ab','c') and ('a','bc') differ)."""
    return hashlib.sha256(hash_input(*parts)).hexdigest()[:length]


def hash_input(*parts: str) -> bytes:
    """What `short_hash` hashes; that of more parts begins with that of fewer."""
    return b"".join([b"%d:%b" % (len(data := part.encode("utf-8", "surrogatepass")), data) for part in parts])


def page_hash(provider: str, conversation_id: str) -> str:
    """The `hash8` of a page's file name: first 8 hex digits of sha256 of `provider:conversation_id` (contract)."""
    return hashlib.sha256(f"{provider}:{conversation_id}".encode("utf-8", "surrogatepass")).hexdigest()[:8]


def message_hash(message: Message) -> str:
    """Identity of everything a message says: equal hash, equal row."""
    digest = hashlib.sha256()
    for part in message_parts(message):
        digest.update(part)
    return digest.hexdigest()[:_HASH_LENGTH]


def message_values(message: Message) -> dict[str, Any]:
    """A message's fields as plain values. Ten times as fast as `asdict`, which copies every string deeply."""
    values = dict(zip(MESSAGE_FIELDS, _values_of(message), strict=True))
    values["citations"] = [asdict(citation) for citation in message.citations]
    values["attachment"] = [asdict(attachment) for attachment in message.attachment]
    return values


# --- records: a conversation as bytes ---------------------------------------------------------------------------------

_JSON = orjson.OPT_UTC_Z | orjson.OPT_SORT_KEYS
_LONG_TEXT = 1 << 20
_HASH_LENGTH = 16
_RECORD_FIELDS = tuple(f.name for f in fields(Conversation) if f.name not in ("source_file", "damaged"))
MESSAGE_FIELDS = tuple(f.name for f in fields(Message))
"""Names of a message's own columns; the others are the conversation's."""
_values_of = attrgetter(*MESSAGE_FIELDS)


def to_record(conversation: Conversation) -> bytes:
    """Canonical bytes of a conversation; `source_file` left out, so that the same chat in two exports is one record.

    Texts must be free of lone surrogates (readers replace them), since JSON in UTF-8 cannot hold them.
    """
    value = {name: getattr(conversation, name) for name in _RECORD_FIELDS}
    value["messages"] = [message_values(message) for message in conversation.messages]
    return orjson.dumps(value, option=_JSON)


def record_parts(conversation: Conversation) -> Iterator[bytes]:
    """`to_record` in parts, none of them large: a session may hold gigabytes of what tools put out."""
    head, tail = _record_ends(conversation)
    yield head
    for number, message in enumerate(conversation.messages):
        if number:
            yield b","
        yield from message_parts(message)
    yield tail


def record_identity(conversation: Conversation) -> tuple[str, dict[str, str]]:
    """sha256 of the record in hex, and `message_hash` of each message by its id, with no record in memory."""
    whole = hashlib.sha256()
    index: dict[str, str] = {}
    head, tail = _record_ends(conversation)
    whole.update(head)
    for number, message in enumerate(conversation.messages):
        if number:
            whole.update(b",")
        own = hashlib.sha256()
        for part in message_parts(message):
            whole.update(part)
            own.update(part)
        index[message.message_id] = own.hexdigest()[:_HASH_LENGTH]
    whole.update(tail)
    return whole.hexdigest(), index


def _record_ends(conversation: Conversation) -> tuple[bytes, bytes]:
    """What stands before and behind the messages of a record."""
    value: dict[str, Any] = {name: getattr(conversation, name) for name in _RECORD_FIELDS}
    value["messages"] = []
    head, opening, tail = orjson.dumps(value, option=_JSON).partition(b'"messages":[')
    return head + opening, tail


def message_parts(message: Message) -> Iterator[bytes]:
    """The canonical JSON of a message, a long text in pieces (orjson would keep a second copy of it inside the text)."""
    values = message_values(message)
    text = message.text
    if len(text) <= _LONG_TEXT:
        yield orjson.dumps(values, option=_JSON)
        return
    values["text"] = ""
    # The last one: attachments have texts too, and stand before. Inside strings quotes are escaped.
    head, _, tail = orjson.dumps(values, option=_JSON).rpartition(b'"text":""')
    yield head + b'"text":"'
    for at in range(0, len(text), _LONG_TEXT):
        yield orjson.dumps(text[at : at + _LONG_TEXT])[1:-1]
    yield b'"' + tail


def from_record(data: bytes, source_file: str | None = None) -> Conversation:
    """The inverse of `to_record`."""
    value = orjson.loads(data)
    value["messages"] = [_message(m) for m in value["messages"]]
    for name in ("created_at", "updated_at"):
        value[name] = _time(value[name])
    return Conversation(**value, source_file=source_file)


def _message(value: dict[str, Any]) -> Message:
    value["created_at"] = _time(value["created_at"])
    value["edited_at"] = _time(value["edited_at"])
    value["citations"] = [Citation(**c) for c in value["citations"]]
    value["attachment"] = [Attachment(**a) for a in value["attachment"]]
    return Message(**value)


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value).astimezone(UTC)


# --- schemas of the lake ----------------------------------------------------------------------------------------------

UTC_TIME = pl.Datetime("us", "UTC")
KEY_SCHEMA: dict[str, Any] = {"provider": pl.String, "conversation_id": pl.String}

MESSAGES: dict[str, Any] = {
    "day": pl.Date,
    **KEY_SCHEMA,
    "message_id": pl.String,
    "seq": pl.Int64,
    "parent_id": pl.String,
    "branch_active": pl.Boolean,
    "role": pl.String,
    "kind": pl.String,
    "speaker": pl.String,
    "text": pl.String,
    "created_at": UTC_TIME,
    "local_time": pl.String,
    "edited_at": UTC_TIME,
    "model": pl.String,
    "tokens_in": pl.Int64,
    "tokens_out": pl.Int64,
    "tokens_cached": pl.Int64,
    "cost": pl.Float64,
    "tool_name": pl.String,
    "citations": pl.List(pl.Struct({"url": pl.String, "title": pl.String})),
    "attachment": pl.List(
        pl.Struct({"name": pl.String, "type": pl.String, "size": pl.Int64, "ref": pl.String, "text": pl.String})
    ),
    "account": pl.String,
    "source_file": pl.String,
    "hidden_reason": pl.String,
}
"""Message rows (`lake/raw/messages`, `lake/clean/messages`). `seq` counts all rows of a conversation from 0."""

CONVERSATIONS: dict[str, Any] = {
    "day": pl.Date,
    **KEY_SCHEMA,
    "title": pl.String,
    "dated": pl.Boolean,
    "created_at": UTC_TIME,
    "updated_at": UTC_TIME,
    "origin": pl.String,
    "account": pl.String,
    "model": pl.String,
    "project": pl.String,
    "forked_from": pl.String,
    "parent_conversation_id": pl.String,
    "source_file": pl.String,
    "source_sha256": pl.String,
    "status": pl.String,
}
"""Conversation heads (`lake/raw/conversations`, `lake/clean/conversations`). `status`: ok, withheld or partial."""

FINDINGS: dict[str, Any] = {
    "day": pl.Date,
    **KEY_SCHEMA,
    "seq": pl.Int64,
    "field": pl.String,
    "kind": pl.String,
    "rule": pl.String,
    "layer": pl.String,
    "length": pl.Int64,
    "fingerprint": pl.String,
}

CHUNKS: dict[str, Any] = {
    "day": pl.Date,
    **KEY_SCHEMA,
    "drawer_id": pl.String,
    "chunk_index": pl.Int64,
    "kind": pl.String,
    "first_seq": pl.Int64,
    "last_seq": pl.Int64,
    "text": pl.String,
    "context": pl.String,
    "tokens": pl.Int64,
    "text_hash": pl.String,
}

DRAWERS: dict[str, Any] = {
    "day": pl.Date,
    **KEY_SCHEMA,
    "drawer_id": pl.String,
    "chunk_index": pl.Int64,
    "kind": pl.String,
    "first_seq": pl.Int64,
    "last_seq": pl.Int64,
    "wing": pl.String,
    "hall": pl.String,
    "room": pl.String,
    "confidence": pl.Float64,
    "tokens": pl.Int64,
}

VECTORS: dict[str, Any] = {
    "day": pl.Date,
    **KEY_SCHEMA,
    "drawer_id": pl.String,
    "text_hash": pl.String,
    "model": pl.String,
    "vector": pl.Array(pl.Float32, 384),
}

LAKE: dict[str, dict[str, Any]] = {
    "raw/messages": MESSAGES,
    "raw/conversations": CONVERSATIONS,
    "clean/messages": MESSAGES,
    "clean/conversations": CONVERSATIONS,
    "clean/findings": FINDINGS,
    "clean/chunks": CHUNKS,
    "clean/drawers": DRAWERS,
    "clean/vectors": VECTORS,
}
"""Every table of the lake: name (folder below `lake/`) -> schema. One Parquet file a month, rows sorted by day."""


def frame(rows: Iterable[dict[str, Any]], schema: dict[str, Any]) -> pl.DataFrame:
    """Rows as a frame with exactly the columns of `schema`; missing keys become null, unknown keys are an error."""
    rows = list(rows)
    unknown = {key for row in rows for key in row} - set(schema)
    if unknown:
        raise ValueError(f"columns not in the schema: {sorted(unknown)}")
    return pl.DataFrame(rows, schema=schema, orient="row") if rows else pl.DataFrame(schema=schema)
