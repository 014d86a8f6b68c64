"""What an agent says goes through the redaction funnel before it is written: texts, title, tags, names, summary.

The session is one conversation for it: what a new text shows to be a secret is masked in the texts before as well, and
what an earlier one showed is found again by keyed hashes, in a hidden file beside the page (`.HHMM-<hash7>.claims`).
Apart from that, words that stand on a page are left as they are: they were looked at when they were written, or a person
wrote them by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from palace_pipeline.model import Finding
from palace_pipeline.redaction.forgotten import SHORTEST, Forgotten, forget
from palace_pipeline.redaction.forgotten import masked as without
from palace_pipeline.redaction.funnel import Clean, Funnel
from palace_pipeline.redaction.memory import worth_remembering
from palace_pipeline.store.appending import append_lines
from palace_pipeline.workspace.session import Session

_MEMORY = "memory"
"""The layer of finds that were known already."""


@dataclass(slots=True, frozen=True)
class Claim:
    """A secret that a text of the session showed: its kind, and what finds it again."""

    kind: str
    value: Forgotten

    def line(self) -> str:
        return f"{self.kind} {self.value.length} {self.value.rolling} {self.value.proof.hex()}"


def masked(
    funnel: Funnel, key: bytes, new: Mapping[str, str], old: Session, claims: Path
) -> tuple[dict[str, str], Session]:
    """(clean new texts by name, the session with what they claim masked). `key`: the home's; `claims`: see above.

    A text that cannot be judged comes back as `[WITHHELD:reason]`. Raises what the funnel raises: nothing is written then.
    """
    known = _read(claims)
    texts = {name: _without_known(text, known, key) for name, text in new.items() if text}
    before = {f"old {number}": text for number, text in enumerate(texts_of(old))}
    clean = funnel.redact_fields({**texts, **before})
    secrets = dict(_secrets(texts, clean.findings))
    fresh = {Claim(kind, forget(value, key)) for value, kind in secrets.items() if len(value) >= SHORTEST}
    append_lines(claims, sorted(claim.line() for claim in fresh.difference(known)))
    return {name: clean.texts.get(name, "") for name in new}, _with_claims(old, before, clean, secrets)


def _secrets(texts: Mapping[str, str], findings: Iterable[Finding]) -> Iterable[tuple[str, str]]:
    """(value, kind) of what the new texts show by themselves, if it is more than a common word."""
    for found in findings:
        if found.field in texts and found.layer != _MEMORY:
            value = texts[found.field][found.start : found.end]
            if worth_remembering(value):
                yield value, found.kind


def _without_known(text: str, known: Iterable[Claim], key: bytes) -> str:
    kinds: dict[str, list[Forgotten]] = {}
    for claim in known:
        kinds.setdefault(claim.kind, []).append(claim.value)
    for kind, values in kinds.items():
        text = without(text, values, key, f"[REDACTED:{kind}]")
    return text


def texts_of(session: Session) -> list[str]:
    """All that a session says, names and tags included; `with_texts` puts as many others in their places."""
    said = (text for _, entry in session.entries() for text in (entry.text, entry.who or ""))
    return [session.title, session.summary, session.intro, session.role, session.model or "", *session.tags, *said]


def with_texts(session: Session, texts: Iterable[str]) -> Session:
    """The session that says other texts, in the order of `texts_of`."""
    rest = iter(texts)
    title, summary, intro, role, model = (next(rest) for _ in range(5))
    tags = tuple(next(rest) for _ in session.tags)
    sections = {
        section: [replace(entry, text=next(rest), who=next(rest) or None) for entry in entries]
        for section, entries in session.sections.items()
    }
    return replace(
        session,
        title=title,
        summary=summary,
        intro=intro,
        role=role,
        model=model or None,
        tags=tags,
        sections=sections,
    )


def _with_claims(session: Session, before: Mapping[str, str], clean: Clean, secrets: Mapping[str, str]) -> Session:
    """The session with those texts masked that repeat a secret."""
    shown = {
        name: clean.texts[name] if any(secret in text for secret in secrets) else text for name, text in before.items()
    }
    return session if shown == before else with_texts(session, shown.values())


def _read(claims: Path) -> list[Claim]:
    """The claims of a session; a line that a kill tore is none."""
    found: list[Claim] = []
    with suppress(FileNotFoundError):
        for line in claims.read_text("ascii", "replace").split("\n"):
            with suppress(ValueError):
                kind, length, rolling, proof = line.split()
                found.append(Claim(kind, Forgotten(int(length), int(rolling), bytes.fromhex(proof))))
    return found
