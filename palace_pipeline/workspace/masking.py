"""What an agent says goes through the redaction funnel before it is written: texts, title, tags, names, summary.

The session is one conversation for it: what a new text shows to be a secret is masked in the texts before as well, and
what an earlier one showed is found again by keyed hashes, in a hidden file beside the page (`.HHMM-<hash7>.claims`; for
memory, which is everybody's, `memory/.claims`). Apart from that, words that stand on a page are left as they are: they
were looked at when they were written, or a person wrote them by hand.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from palace_pipeline.exports.text import without_controls
from palace_pipeline.model import Finding
from palace_pipeline.redaction.forgotten import (
    SHORTEST,
    Forgotten,
    find,
    forget,
    forget_name,
    forms,
    masked_path,
    with_mask,
)
from palace_pipeline.redaction.funnel import Clean, Funnel
from palace_pipeline.redaction.memory import LEAST_PIECE, worth_remembering
from palace_pipeline.store.appending import append_chosen, append_lines
from palace_pipeline.transcripts.page_path import slug
from palace_pipeline.workspace.front import as_tag
from palace_pipeline.workspace.session import Session

_MEMORY = "memory"
"""The layer of finds that were known already."""
_OF_NAME = "name:"
"""Before the kind of a claim of the form that names of files have."""
_SWEPT = "swept"
"""Line of a file of claims: the claims before it, so many, were masked in all that the workspace held."""


@dataclass(slots=True, frozen=True)
class Claim:
    """A secret that a text of the session showed: its kind, and what finds it again."""

    kind: str
    value: Forgotten

    def line(self) -> str:
        return f"{self.kind} {self.value.length} {self.value.rolling} {self.value.proof.hex()}"


@dataclass(slots=True, frozen=True)
class Said:
    """`texts`: the new ones, clean, by name. `secrets`: what they show to be one (value -> kind; held in memory only)."""

    texts: dict[str, str]
    secrets: dict[str, str] = field(repr=False)
    unfinished: bool = False
    """What was claimed earlier may still stand where it was said: a writer was killed, or is at it, or it was put back."""


def masked(funnel: Funnel, key: bytes, new: Mapping[str, str], old: Session, claims: Path) -> tuple[Said, Session]:
    """(what may be written of new texts, the session without the secrets that they show). `key`: the home's; `claims`: see
    above.

    Control characters go first, or they would hide a secret until they do. A text that cannot be judged comes back as
    `[WITHHELD:reason]`. Raises what the funnel raises: nothing is written then.
    """
    before = {f"old {number}": text for number, text in enumerate(texts_of(old))}
    said, clean = _judged(funnel, key, new, before, claims)
    return said, _with_claims(old, before, clean, said.secrets)


def masked_texts(funnel: Funnel, key: bytes, new: Mapping[str, str], claims: Path) -> Said:
    """The same for texts that belong to no session."""
    return _judged(funnel, key, new, {}, claims)[0]


def _judged(
    funnel: Funnel, key: bytes, new: Mapping[str, str], before: Mapping[str, str], claims: Path
) -> tuple[Said, Clean]:
    known, unfinished = claims_of(claims)
    # An editor, or a sync program, may have put back what was masked.
    unfinished = unfinished or shows("\n".join(before.values()), known, key)
    texts = {name: without_controls(text) for name, text in new.items() if text}
    clean = funnel.redact_fields({**texts, **before})
    secrets = dict(_secrets(texts, clean.findings))
    note_claims(claims, secrets, key)
    # What is known already comes last: it may be the beginning of a longer secret, of which the rest would stay.
    shown = {name: without_known(clean.texts[name], known, key) if name in texts else "" for name in new}
    return Said(shown, secrets, unfinished), clean


def note_claims(claims: Path, secrets: Mapping[str, str], key: bytes) -> None:
    """Keep what finds these secrets again, in every form in which data writes them."""
    found: set[Claim] = set()
    for value, kind in secrets.items():
        found |= {Claim(kind, forget(form, key)) for form in forms(value)}
        if name := name_of(value):
            found.add(Claim(f"{_OF_NAME}{kind}", forget_name(name, key)))
    add_claims(claims, found)


def name_of(value: str) -> str:
    """A value as names of files write it, '' if too little of it stands there."""
    return form if any(map(str.isalnum, value)) and len(form := slug(value)) > SHORTEST else ""


def _secrets(texts: Mapping[str, str], findings: Iterable[Finding]) -> Iterable[tuple[str, str]]:
    """(value, kind) of what the new texts show by themselves, if it is more than a common word."""
    for found in findings:
        if found.field in texts and found.layer != _MEMORY:
            value = texts[found.field][found.start : found.end]
            if worth_remembering(value):
                yield value, found.kind


def without_known(text: str, known: Iterable[Claim], key: bytes) -> str:
    """A text without what was claimed before."""
    for kind, values in _by_kind(known, of_name=False).items():
        text = with_mask(text, sorted(_alone(text, find(text, values, key))), f"[REDACTED:{kind}]")
    return text


def shows(text: str, known: Iterable[Claim], key: bytes) -> bool:
    """Whether `without_known` would mask anything."""
    values = [claim.value for claim in known if not claim.kind.startswith(_OF_NAME)]
    return next(iter(_alone(text, find(text, values, key))), None) is not None


def shows_anywhere(text: str, known: Iterable[Claim], key: bytes) -> bool:
    """The same for a file with names of files in it."""
    claims = list(known)
    return shows(text, claims, key) or name_without_known(text, claims, key) != text


def _alone(text: str, places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Places of secrets, the short ones where they stand alone: as in a conversation that is read."""
    return (place for place in places if place[1] - place[0] >= LEAST_PIECE or not is_glued(text, *place))


def is_glued(text: str, start: int, end: int) -> bool:
    """Whether a place of a text is a part of a longer word."""
    return any(
        _LETTERS.fullmatch(text[at : at + 2]) is not None for at in (start - 1, end - 1) if 0 <= at < len(text) - 1
    )


_LETTERS = re.compile("[A-Za-z0-9]{2}")


def name_without_known(part: str, known: Iterable[Claim], key: bytes) -> str:
    """The part of a file name that comes of a title, without what was claimed."""
    for kind, values in _by_kind(known, of_name=True).items():
        part = masked_path(part, values, key, f"redacted-{kind}")
    return part


def _by_kind(claims: Iterable[Claim], *, of_name: bool) -> dict[str, list[Forgotten]]:
    kinds: dict[str, list[Forgotten]] = {}
    for claim in claims:
        if claim.kind.startswith(_OF_NAME) == of_name:
            kinds.setdefault(claim.kind.removeprefix(_OF_NAME), []).append(claim.value)
    return kinds


def texts_of(session: Session) -> list[str]:
    """All that a session says, names and tags included; `with_texts` puts as many others in their places."""
    said = (text for _, entry in session.entries() for text in (entry.text, entry.who or ""))
    return [session.title, session.summary, session.intro, session.role, session.model or "", *session.tags, *said]


def with_texts(session: Session, texts: Iterable[str]) -> Session:
    """The session that says other texts, in the order of `texts_of`."""
    rest = iter(texts)
    title, summary, intro, role, model = (next(rest) for _ in range(5))
    tags = tuple(dict.fromkeys(tag for _ in session.tags if (tag := as_tag(next(rest)))))
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


def claims_of(claims: Path) -> tuple[list[Claim], bool]:
    """(what a file of claims holds, whether some of it still has to be masked in what was said before: a writer was killed,
    or is at it). A line that a kill tore, or that is damaged otherwise, is none."""
    found: list[Claim] = []
    swept = 0
    with suppress(FileNotFoundError):
        for line in claims.read_text("ascii", "replace").split("\n"):
            if (said := _SWEPT_LINE.fullmatch(line)) is not None:
                swept = max(swept, int(said[1]))
            elif (said := _CLAIM_LINE.fullmatch(line)) is not None and int(said[3]) < 1 << 64:
                found.append(Claim(said[1], Forgotten(int(said[2]), int(said[3]), bytes.fromhex(said[4]))))
    return found, swept < len(found)


_SWEPT_LINE = re.compile(rf"{_SWEPT} (\d{{1,9}})")
_CLAIM_LINE = re.compile(r"(\S+) ([1-9]\d{0,8}) (\d{1,20}) ((?:[0-9a-f]{2}){16})")


def note_swept(claims: Path, count: int) -> None:
    """The first `count` claims of a file are masked everywhere."""
    append_lines(claims, [f"{_SWEPT} {count}"])


def add_claims(claims: Path, more: Collection[Claim]) -> None:
    """Keep claims, those that are new."""
    lines = {claim.line() for claim in more}
    if lines:
        append_chosen(claims, lambda data: sorted(lines.difference(data.decode("ascii", "replace").split("\n"))))
