"""What a model is given at the start of a turn: facts, recent sessions, this session, the input, within a budget of tokens.

Pure but for the reading of pages. Each part has its share of the budget; what does not fit is named and never dropped in
silence. The input is never pushed out: where its share is too small, the others give way, the earliest first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from palace_pipeline.transcripts.terms import index_terms
from palace_pipeline.workspace import index, memory
from palace_pipeline.workspace.api import Page, Workspace
from palace_pipeline.workspace.sections import NAMES
from palace_pipeline.workspace.session import heading, in_time, summary_of, todos

Count = Callable[[str], int]
PARTS = ("facts", "recent", "references", "input")
SHARES = (15, 25, 0, 60)
"""Percent of the budget: facts, preferences and entities; summaries of recent sessions; references to older ones; this
session and the input."""
TOKENS = 8000
RECENT = 20
"""Sessions whose summaries are shown; older ones are only referred to."""
_OLDER = 500
"""Rows of the index that are compared with the input."""
_DENSE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]")
_TITLES = {
    "facts": "Facts",
    "recent": "Recent sessions",
    "references": "Older sessions and conversations",
    "session": "This session",
    "input": "Input",
}
_BETWEEN = {"facts": "\n", "recent": "\n", "references": "\n", "session": "\n\n", "input": "\n\n"}


@dataclass(slots=True)
class Piece:
    """A part of the context. `left_out`: what did not fit, by name, with its tokens."""

    name: str
    budget: int
    lines: list[str] = field(default_factory=list[str])
    tokens: int = 0
    left_out: list[dict[str, str | int]] = field(default_factory=list[dict[str, str | int]])


@dataclass(slots=True, frozen=True)
class Context:
    """`text` is Markdown. `tokens` by `counted`: `estimate`, or the tokenizer's name."""

    text: str
    tokens: int
    budget: int
    counted: str
    parts: tuple[Piece, ...]

    @property
    def left_out(self) -> list[dict[str, str | int]]:
        """All that is not in the text: `{"part", "what", "tokens"}`."""
        return [{"part": part.name, **one} for part in self.parts for one in part.left_out]


def estimated_tokens(text: str) -> int:
    """Tokens of a text without any tokenizer: one for each character of Chinese, Japanese and Korean, one for four bytes
    of the rest. Models differ by a third in both directions."""
    dense = len(_DENSE.findall(text))
    return dense + (len(_DENSE.sub("", text).encode("utf-8", "replace")) + 3) // 4


def assemble(
    workspace: Workspace,
    text: str,
    *,
    session: str | None = None,
    tokens: int = TOKENS,
    shares: tuple[int, int, int, int] = SHARES,
    count: Count = estimated_tokens,
    counted: str = "estimate",
) -> Context:
    """The context of an input. `session`: the one that goes on (else there is no such part). `tokens`: the whole budget.

    Raises ValueError if the shares are no percentages of a whole, NoSession.
    """
    if min(shares) < 0 or sum(shares) > 100:
        raise ValueError("shares are four numbers from 0 that are together at most 100")
    budgets = {name: tokens * share // 100 for name, share in zip(PARTS, shares, strict=True)}
    needed = count(text)
    missing = max(0, needed - budgets["input"])
    for name in ("references", "recent", "facts"):
        taken = min(missing, budgets[name])
        budgets[name] -= taken
        missing -= taken
    said = Piece("input", max(budgets["input"], needed - missing))
    _fill(said, [("input", _cut(text, said.budget, count) if needed > said.budget else text)], count)
    if needed > said.budget:
        said.left_out.append({"what": "the end of the input", "tokens": needed - said.tokens})
    page = workspace.load(session) if session is not None else None
    own = Piece("session", max(0, budgets["input"] - said.tokens))
    if page is not None:
        _fill(own, reversed(list(_known_masked(workspace, _entries(page)))), count)
        own.lines.reverse()
    facts = Piece("facts", budgets["facts"])
    _fill(facts, _facts(workspace, f"{text}\n{page.session.title if page else ''}"), count)
    recent = Piece("recent", budgets["recent"])
    others, unread = workspace.youngest(RECENT, but=session)
    _fill(recent, _known_masked(workspace, _recent(workspace, others)), count)
    recent.left_out += [{"what": f"{path}: it cannot be read ({why})", "tokens": 0} for path, why in unread]
    references = Piece("references", budgets["references"])
    if budgets["references"]:
        shown = {other.path.relative_to(workspace.home).as_posix() for other in others}
        _fill(references, _known_masked(workspace, _references(workspace.home, text, shown)), count)
    parts = (facts, recent, references, own, said)
    return Context(_text(parts), sum(part.tokens for part in parts), tokens, counted, parts)


def _fill(piece: Piece, items: Iterable[tuple[str, str]], count: Count) -> None:
    """Take what fits, in order; each item whole or not at all."""
    for what, text in items:
        size = count(text)
        if piece.tokens + size <= piece.budget:
            piece.lines.append(text)
            piece.tokens += size
        else:
            piece.left_out.append({"what": what, "tokens": size})


def _known_masked(workspace: Workspace, items: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """What was shown to be a secret is masked, also where somebody has put it back."""
    masked = memory.shown(workspace)
    return ((what, masked(text)) for what, text in items)


def _facts(workspace: Workspace, said: str) -> Iterator[tuple[str, str]]:
    """Facts and preferences, and the files of entities that are mentioned."""
    for name, found in (("fact", memory.facts(workspace)), ("preference", memory.preferences(workspace))):
        for key, value in found.items():
            yield f"{name}: {key}", f"- {key}: {value}" if name == "fact" else f"- {key}: {value} (preference)"
    for path, called, text in memory.entities(workspace):
        if memory.mentioned(called, said):
            yield (
                path.relative_to(workspace.home).as_posix(),
                f"\n### {called[0]}\n\n{text.partition(chr(10))[2].strip()}".rstrip(),
            )


def _recent(workspace: Workspace, pages: Iterable[Page]) -> Iterator[tuple[str, str]]:
    for page in pages:
        session = page.session
        waiting = todos(session)[0]
        facts = [session.status, f"{waiting} to do" if waiting else ""]
        said = f"- {page.id} {session.title}: {summary_of(session) or '(no summary)'}"
        yield page.path.relative_to(workspace.home).as_posix(), f"{said} ({', '.join(filter(None, facts))})"


def _references(home: Path, text: str, shown: set[str]) -> Iterator[tuple[str, str]]:
    """Rows of the index that have most words of the input, best first, youngest first among equals."""
    asked = set(index_terms(text))
    found = [
        (len(asked & set(index_terms(f"{row.title} {' '.join(row.tags)} {row.summary}"))), number, row)
        for number, row in enumerate(reversed(index.rows(home)))
        if row.path not in shown
    ]
    best = sorted((-common, number, row) for common, number, row in found if common)
    for _, _, row in best[:_OLDER]:
        yield row.path, f"- {row.day.isoformat()} {row.title} ({row.path})"


def _entries(page: Page) -> Iterator[tuple[str, str]]:
    """The entries of a session as they follow in time, those by hand where they stand."""
    for section, entry in in_time(page.session):
        name = NAMES[page.session.language][section]
        who = f" · {entry.who}" if entry.who else ""
        head = f"### {name}{who}" + (f" · {heading(entry.at)}" if entry.at else "")
        yield f"{name} of {page.id}", f"{head}\n\n{entry.text}"


def _cut(text: str, budget: int, count: Count) -> str:
    """The beginning of a text that fits, by halves."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= budget else (low, middle - 1)
    return text[:low]


def _text(parts: Iterable[Piece]) -> str:
    return "".join(
        f"## {_TITLES[part.name]}\n\n{_BETWEEN[part.name].join(part.lines)}\n\n" for part in parts if part.lines
    )
