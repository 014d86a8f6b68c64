"""Random conversations full of secrets, in every kind of field, disguised and damaged; all drawn when a test runs."""

from __future__ import annotations

import base64
import json
import random
import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from palace_pipeline.model import Attachment, Citation, Conversation, Message
from palace_pipeline.redaction.rules import load_rules
from palace_pipeline.redaction.shapes import draw

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SHAPES = tuple(
    (rule.kind, shape)
    for rule in load_rules()
    if rule.context is None and not rule.locate and rule.id != "other-webhook"  # more address than secret
    for shape in rule.shapes
)
"""Tokens known by their shape alone."""
_NAMES = ("DB_PASSWORD", "client_secret", "api-key", "x-auth-token", "SECRET_KEY", "accessToken", "smtp.password")
_WORDS = [
    *("we", "have", "to", "look", "at", "the", "queue", "again", "and", "then", "deploy", "it", "by", "friday", "so"),
    *("请看一下", "这个问题", "部署", "数据库", "また", "明日", "über", "größer", "naïve", "можно", "сделать"),
]
_ODD = ["\0", "\ud800", "\udfff", "\ufffd", "\x1b[0m", "\r\n", "\u2028", "\ufeff", "\\", '"', "'", "`", "%", "&", "<b>"]


@dataclass(frozen=True)
class Disguise:
    """How a secret is written, and how a reader would get it back from the text."""

    write: Callable[[str, random.Random], str]
    read: Callable[[str], str]


def _split(value: str, by: str, rng: random.Random) -> str:
    places = sorted(rng.sample(range(4, len(value) - 3), 2)) if len(value) > 16 else [len(value) // 2]
    parts = [value[low:high] for low, high in zip([0, *places], [*places, len(value)], strict=True)]
    return by.join(parts)


def _wide(value: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in value)


def _narrow(text: str) -> str:
    return "".join(chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c for c in text)


def _decoded(text: str) -> str:
    out = [text]
    for found in re.finditer(r"[A-Za-z0-9+/]{16,}={0,2}", text):
        run = found[0].rstrip("=")
        for skew in range(4):
            body = run[skew:]
            body = body[: len(body) // 4 * 4]
            out.append(base64.b64decode(body).decode("latin-1"))
    return "\n".join(out)


DISGUISES: dict[str, Disguise] = {
    "plain": Disguise(lambda v, _: v, lambda t: t),
    "zero-width": Disguise(
        lambda v, r: _split(v, r.choice("\u200b\u200d\u2060\ufeff\u00ad"), r),
        lambda t: re.sub("[\u200b\u200d\u2060\ufeff\u00ad]", "", t),
    ),
    "ansi": Disguise(lambda v, r: _split(v, "\x1b[31m", r), lambda t: t.replace("\x1b[31m", "")),
    "wide": Disguise(lambda v, _: _wide(v), _narrow),
    "json": Disguise(lambda v, _: json.dumps(json.dumps({"out": f"line\n{v}\n"})), lambda t: t.replace("\\", "")),
    "unicode escapes": Disguise(
        lambda v, _: "".join(f"\\u{ord(c):04x}" for c in v),
        lambda t: re.sub(r"\\u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), t),
    ),
    "percent": Disguise(lambda v, _: "".join(f"%{ord(c):02X}" for c in v), urllib.parse.unquote),
    "base64": Disguise(lambda v, _: base64.b64encode(f"API_TOKEN={v} # prod".encode()).decode(), _decoded),
    "joined": Disguise(
        lambda v, r: f'key = "{_split(v, chr(34) + " + " + chr(34), r)}"', lambda t: t.replace('" + "', "")
    ),
    "markdown": Disguise(lambda v, _: v.replace("_", "\\_"), lambda t: t.replace("\\_", "_")),
}


@dataclass
class Fuzzed:
    """A conversation, and every secret in it with the disguise it is shown in (`name`: what it is, for messages)."""

    conversation: Conversation
    secrets: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])


def fuzzed(seed: int) -> Fuzzed:
    """Always the same for the same seed."""
    rng = random.Random(f"fuzz/{seed}")
    secrets: list[tuple[str, str, str]] = []

    def prose(least: int = 0, most: int = 30) -> str:
        words = [rng.choice(_WORDS) for _ in range(rng.randint(least, most))]
        if rng.random() < 0.2:
            words.insert(rng.randint(0, len(words)), rng.choice(_ODD) * rng.choice([1, 1, 1, 7, 200]))
        return rng.choice([" ", " ", "\n", "\t"]).join(words)

    def secret() -> str:
        kind = rng.randrange(10)
        disguise = rng.choice(list(DISGUISES)) if rng.random() < 0.5 else "plain"
        if kind < 6:
            name, shape = rng.choice(SHAPES)
            value = draw(shape, rng)
            if any(sign in value for sign in "%$="):
                disguise = "plain"  # escapes of its own can be read in several ways; a name is no part of the secret
            said = DISGUISES[disguise].write(value, rng)
        elif kind < 8:
            name, disguise = "name", "plain"
            value = draw("[A-Za-z0-9]{24,40}", rng) + str(rng.randint(0, 9))
            said = f"{rng.choice(_NAMES)}{rng.choice(['=', ': ', ' = '])}{rng.choice(['', chr(34)])}{value}"
            said += '"' if '"' in said else ""
        elif kind < 9:
            name, disguise = "url", "plain"
            value = draw("[A-Za-z0-9]{12,20}", rng)
            said = f"postgres://app:{value}@db{rng.randint(1, 9)}.acme.dev:5432/app"
        else:
            name, disguise = "e-mail", "plain"
            value = f"{draw('[a-z]{4,9}', rng)}.{draw('[a-z]{4,9}', rng)}@{draw('[a-z]{5,9}', rng)}.de"
            said = value
        secrets.append((name, disguise, value))
        return said

    def text(chance: float) -> str:
        parts = [prose()]
        while rng.random() < chance:
            edge = rng.choice([" ", "\n", " (", "「", " `", '"', " \0", "\ud800", "：", "| "])
            parts += [
                edge,
                secret(),
                {"(": ")", "「": "」", "`": "` ", "：": "，", '"': '"'}.get(edge.strip(), edge),
                prose(),
            ]
            if secrets and rng.random() < 0.3:
                parts += [" again ", rng.choice(secrets)[2], " ", prose()]
        return "".join(parts)

    def maybe(chance: float) -> str | None:
        return text(0.4) if rng.random() < chance else None

    messages: list[Message] = []
    for number in range(rng.randint(1, 8)):
        role = rng.choice(["user", "assistant", "bot", "tool", "system", "thinking"])
        message = Message(f"m{number}", role, text(0.5), speaker=maybe(0.1), model=maybe(0.1), tool_name=maybe(0.1))  # type: ignore[arg-type]
        message.attachment = [Attachment(maybe(0.5), maybe(0.1), 3, "ref", maybe(0.5)) for _ in range(rng.randrange(2))]
        message.citations = [
            Citation(f"https://acme.dev/{draw('[a-z]{5}', rng)}?{text(0.2)}", maybe(0.3))
            for _ in range(rng.randrange(2))
        ]
        messages.append(message)
    conversation = Conversation(
        rng.choice(["chatgpt", "slack", "markdown"]),
        f"c{seed}",
        messages,
        title=maybe(0.6),
        account=maybe(0.1),
        project=maybe(0.1),
        model=maybe(0.1),
        source_file=maybe(0.1),
        created_at=NOW,
    )
    return Fuzzed(conversation, secrets)
