"""A session that has grown too long becomes a tree: earlier topics move to pages of their own, whose `parent` it is.

Cut is between turns (an input and what follows it), where the words change most; a turn that is too long by itself is
cut between its entries, and never inside one. The last topic stays on the page, which links the earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from palace_pipeline.model import short_hash
from palace_pipeline.transcripts.terms import index_terms
from palace_pipeline.workspace import names
from palace_pipeline.workspace.sections import SECTIONS, Section
from palace_pipeline.workspace.session import PART, Entry, Session, first_sentence, in_time, summary_of

MOST_BYTES = 60 * 1024
"""Bytes of what was said on one page."""
_LEAST_SHARE = 3
"""A part is at least a third of that, unless what follows does not fit."""
_NEAR = 2
"""Units on each side of a place whose words are compared."""
_LOOKED_AT = 4000
"""Characters of a unit whose words are compared."""


class Said(NamedTuple):
    """An entry with its section."""

    section: Section
    entry: Entry


@dataclass(slots=True, frozen=True)
class Tree:
    """`root`: the session with its last topic; `parts`: earlier ones, in order, closed."""

    root: Session
    parts: tuple[Session, ...]


def split(session: Session) -> Tree:
    """The tree of a session. The same entries give the same parts, with the same ids; a session that fits, or cannot be
    cut, is its own tree."""
    groups = _groups(_units([Said(*one) for one in in_time(session)]))
    if len(groups) < 2:
        return Tree(session, ())
    parts = tuple(_part(session, group) for group in groups[:-1])
    links = [f"> [{part.title}](../{_below(part)})" for part in parts]
    intro = "\n".join(filter(None, [session.intro, *links]))
    return Tree(replace(session, intro=intro, sections=_sections(groups[-1])), parts)


def _below(part: Session) -> str:
    """Path of a part below the folder of all sessions."""
    return names.path_of(part.id, part.title).relative_to(names.SESSIONS).as_posix()


def _units(said: Sequence[Said]) -> list[list[Said]]:
    """Turns; one that is too long entry by entry."""
    turns: list[list[Said]] = []
    for one in said:
        if not turns or one.section == "input":
            turns.append([])
        turns[-1].append(one)
    return [unit for turn in turns for unit in ([turn] if _size(turn) <= MOST_BYTES else [[one] for one in turn])]


def _groups(units: Sequence[list[Said]]) -> list[list[Said]]:
    """Neighbouring units that fit on a page together."""
    sizes = [_size(unit) for unit in units]
    words = [_words(unit) for unit in units] if sum(sizes) > MOST_BYTES else []
    groups: list[list[Said]] = []
    start = 0
    while start < len(units):
        end = _end(sizes, words, start)
        groups.append([one for unit in units[start:end] for one in unit])
        start = end
    return groups


def _end(sizes: Sequence[int], words: Sequence[set[str]], start: int) -> int:
    """Where the group that begins at a unit ends: at the weakest place that is allowed."""
    total, most = 0, start
    while most < len(sizes) and (most == start or total + sizes[most] <= MOST_BYTES):
        total += sizes[most]
        most += 1
    if most == len(sizes):
        return most
    least, total = start, 0
    while least < most and total < MOST_BYTES // _LEAST_SHARE:
        total += sizes[least]
        least += 1
    return min(range(max(least, start + 1), most + 1), key=lambda place: (_likeness(words, place), -place))


def _likeness(words: Sequence[set[str]], place: int) -> float:
    before = set[str]().union(*words[max(0, place - _NEAR) : place])
    behind = set[str]().union(*words[place : place + _NEAR])
    return len(before & behind) / max(1, min(len(before), len(behind)))


def _words(unit: Sequence[Said]) -> set[str]:
    return set(index_terms("\n".join(one.entry.text for one in unit)[:_LOOKED_AT]))


def _size(unit: Sequence[Said]) -> int:
    return sum(len(one.entry.text.encode("utf-8", "replace")) for one in unit)


def _part(session: Session, group: Sequence[Said]) -> Session:
    ts = next((one.entry.at for one in group if one.entry.at is not None), session.ts) or session.ts
    assert ts is not None
    asked = next((one.entry for one in group if one.section == "input"), group[0].entry)
    part = Session(
        names.session_id(ts, session.id, short_hash(group[0].section, group[0].entry.text)),
        ts,
        title=first_sentence(asked.text, 60).replace("[", "(").replace("]", ")") or session.title,
        role=PART,
        parent=session.id,
        tags=session.tags,
        model=session.model,
        turns=sum(one.section == "input" for one in group),
        status="closed",
        language=session.language,
        sections=_sections(group),
    )
    part.summary = summary_of(part)
    return part


def _sections(group: Sequence[Said]) -> dict[Section, list[Entry]]:
    """The entries of each section; those by hand first, since on a page they can stand nowhere else."""
    return {
        section: sorted((one.entry for one in group if one.section == section), key=lambda entry: entry.at is not None)
        for section in SECTIONS
    }
