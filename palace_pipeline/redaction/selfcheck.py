"""Does the engine find anything at all? One made-up value for each layer, looked for before an engine is trusted.

A layer that fails loudly withholds the field; one that has become blind (an automaton without its words, a word list
that is empty) would let everything through in silence. The values are drawn when they are needed and mean nothing.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palace_pipeline.redaction.known import known_values
from palace_pipeline.redaction.shapes import draw
from palace_pipeline.settings import RedactionSettings

if TYPE_CHECKING:
    from palace_pipeline.redaction.engine import Engine

_TOKEN = "ghp_[A-Za-z0-9]{36}"
_PASSWORD = "[A-Z][a-z]{4}[0-9]{4}[a-z]{4}[!]"
_OPAQUE = "[A-Za-z0-9]{40}"


class EngineBlind(RuntimeError):
    """The engine misses what it must find; the text names the layers. Nothing may be published with it."""


@dataclass(frozen=True, slots=True)
class Canary:
    """The text `fields[-1]` holds `value`, which the layer has to cover from its first to its last character.

    `kind`: what it has to be taken for, where another layer might cover it too.
    """

    layer: str
    fields: tuple[str, ...]
    value: str
    kind: str | None = None


def check(engine: Engine, settings: RedactionSettings) -> None:
    """Raises EngineBlind when a layer finds nothing. `settings`: those that the engine was built with, no exceptions."""
    blind = [canary.layer for canary in canaries(settings) if not _seen(engine, canary)]
    if blind:
        raise EngineBlind(f"the redactor is blind ({', '.join(blind)}): nothing is redacted or published with it")


def canaries(settings: RedactionSettings) -> Iterator[Canary]:
    """One for each layer that the settings use."""
    source = random.Random("canary")  # always the same: a check that fails fails every time
    token, password, opaque = draw(_TOKEN, source), draw(_PASSWORD, source), draw(_OPAQUE, source)
    yield Canary("token shapes", (f"see {token} there",), token, "github-pat")
    yield Canary("names of values", (f"DB_PASSWORD={password}\n",), password)
    yield Canary("containers", (f"postgres://app:{password}@db.host-{opaque[:3].lower()}.net:5432/app",), password)
    address = f"{draw('[a-z]{7}', source)}.{draw('[a-z]{6}', source)}@{draw('[a-z]{8}', source)}.net"
    yield Canary("personal data", (f"write to {address} soon",), address)
    hidden = "\u200b".join((token[:9], token[9:20], token[20:]))
    yield Canary("normalised view", (f"see {hidden} there",), hidden, "github-pat")
    cut = f'{token[:16]}" + "{token[16:]}'
    yield Canary("joined view", (f'key = "{cut}"\n',), cut, "github-pat")
    encoded = base64.b64encode(f"GITHUB_TOKEN={token} # deploy".encode()).decode()
    yield Canary("encoded text", (f"blob {encoded} end",), encoded)
    yield Canary("memory", (f"CO_API_KEY={opaque}", f"it was {opaque} before"), opaque)
    known = min(known_values(settings), key=lambda value: (abs(len(value) - 16), value), default=None)
    if known is not None:
        yield Canary("known values", (f"it is {known} now",), known)
    names = [way for listed in (*settings.people, *settings.projects) for way in listed]
    if names:
        yield Canary("listed names", (f"ask {names[0]} now",), names[0])


def _seen(engine: Engine, canary: Canary) -> bool:
    try:
        spans = engine.scan(canary.fields)[-1]
    except Exception:  # noqa: BLE001 - an engine that fails at this is not to be trusted; what it says may not be shown
        return False
    text = canary.fields[-1]
    start = text.index(canary.value)
    return covers(
        [(span.start, span.end) for span in spans if canary.kind in (None, span.kind)], start, start + len(canary.value)
    )


def covers(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Do the spans together cover [start, end)?"""
    at = start
    for low, high in sorted(spans):
        if low > at:
            break
        at = max(at, high)
    return at >= end
