"""What is masked where: in a page of a session, in memory, in a row of the index, in a line of a log, in a name of a file.

There are three reasons to take something out of the workspace: an entry shows that something said before is a secret, the
rules find more than they did, a value is purged. Each makes a `Hide`; the walk (`sweeping`) is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from palace_pipeline.redaction import made
from palace_pipeline.redaction.forgotten import (
    WORD,
    Forgotten,
    forms,
    is_enough,
    is_in,
    is_path,
    masked,
    masked_path,
    masked_paths,
    places_in_name,
    with_mask,
)
from palace_pipeline.redaction.memory import LEAST_PIECE
from palace_pipeline.transcripts.page_path import SLUG_LENGTH, slug
from palace_pipeline.workspace import names
from palace_pipeline.workspace.front import as_tag, bare_masks
from palace_pipeline.workspace.index import Row
from palace_pipeline.workspace.masking import (
    Claim,
    is_glued,
    name_of,
    name_without_known,
    shows_anywhere,
    texts_of,
    with_texts,
    without_known,
)
from palace_pipeline.workspace.reading import parse
from palace_pipeline.workspace.session import ENTRY_LINE, KEYS, SECTION_LINE, render

if TYPE_CHECKING:
    from palace_pipeline.redaction.funnel import Funnel

_LEAST_CUT = 5
"""Characters of a secret that is cut off (by `…`, or at the end of a file name) from which the rest is masked as well."""
_LONG = 16
"""Characters of a secret that are as good as the whole."""
_TITLE = re.compile(r"^# .*", re.MULTILINE)
_KEY = re.compile(r"(\s*[-*+] )((?:[^:：\[]|\[[^\]]*\])++)(?=[:：])")


@dataclass(slots=True, frozen=True)
class Hide:
    """What is masked in a session's page (its text and path), a file of memory, a row of the index, a line of a log, and
    in the part of a file name that comes of a title."""

    page: Callable[[str, Path], str]
    memory: Callable[[str], str]
    row: Callable[[Row], Row]
    line: Callable[[str], str]
    name: Callable[[str], str]
    may: Callable[[str], bool]
    """Whether there may be anything to mask in a whole file: most have nothing, and need no second look."""


def hide_secrets(secrets: Mapping[str, str]) -> Hide:
    """Secrets (value -> kind) that an entry has just shown, as they are and as other files write them."""
    spelled = {form: kind for value, kind in secrets.items() for form in _spellings(value) if is_enough(form)}
    masks = {form: f"[REDACTED:{spelled[form]}]" for form in sorted(spelled, key=len, reverse=True)}
    in_names = {form: slug(f"redacted {kind}") for value, kind in secrets.items() if (form := name_of(value))}

    def text(said: str) -> str:
        said = _without_cut(said, secrets) if "…" in said else said
        for form, mask in masks.items():
            said = _without(said, form, mask)
        return said

    def name(part: str) -> str:
        full = len(part) in (names.TITLE_LENGTH - 1, names.TITLE_LENGTH, SLUG_LENGTH - 1, SLUG_LENGTH)
        for form, mask in in_names.items():
            part = with_mask(part, sorted(places_in_name(part, [form])), mask)
            if full:  # so its end may be cut off
                kept = next((n for n in range(len(form) - 1, _LEAST_CUT - 1, -1) if part.endswith(form[:n])), 0)
                part = part[:-kept] + mask if kept else part
        return part

    starts = {form[:_LEAST_CUT].lower() for form in (*masks, *in_names)}

    def may(said: str) -> bool:
        lower = said.lower()
        return any(start in lower for start in starts)

    return _everywhere(text, text, name, may)


def hide_values(values: Sequence[Forgotten], key: bytes, mask: str) -> Hide:
    """Values that are known by their hashes only."""
    return _everywhere(
        lambda text: masked(text, values, key, mask),
        lambda text: masked_paths(text, values, key, mask, made.said),
        lambda part: masked_path(part, values, key, slug(mask)),
        lambda text: is_in(text, values, key),
        title=lambda title: masked_path(title, values, key, mask, made.said),
    )


def hide_claims(claims: Sequence[Claim], key: bytes) -> Hide:
    """What entries showed before, by its hashes."""

    def text(said: str) -> str:
        return without_known(said, claims, key)

    def line(said: str) -> str:  # a page's old name may stand in it: its writer was killed before it was through
        name = partial(name_without_known, known=claims, key=key)
        return WORD.sub(lambda word: name(word[0]) if is_path(word[0]) else word[0], text(said))

    return _everywhere(
        text,
        line,
        lambda part: name_without_known(part, claims, key),
        lambda text: shows_anywhere(text, claims, key),
    )


def hide_by_rules(funnel: Funnel, titles: Iterable[str] = ()) -> Hide:
    """What the rules of today find in what programs wrote; words by hand stay as they are. `titles`: all that sessions ever
    had, by the index: a file is called by one of them, whatever its heading says now."""

    def line(text: str) -> str:
        return funnel.redact_fields({"line": text}).texts["line"]

    clean_titles = {title: line(title) for title in titles}
    parts = {
        names.title_part(title): names.title_part(clean) for title, clean in clean_titles.items() if title != clean
    }

    def listed(text: str) -> str:
        return line(text) if text.startswith(("- ", "# ")) else text

    def row(old: Row) -> Row:
        said = {"title": old.title, "summary": old.summary, **{f"tag {n}": tag for n, tag in enumerate(old.tags)}}
        clean = funnel.redact_fields(said).texts
        tags = tuple(as_tag(text) for name, text in clean.items() if name.startswith("tag "))
        return replace(old, title=clean["title"], summary=clean["summary"], tags=tags)

    return Hide(
        page=lambda text, path: _page_by_rules(text, path, funnel),
        memory=lambda text: _facts("\n".join(map(listed, text.split("\n")))),
        row=row,
        line=lambda text: made.between(text, made.line, line) if text.startswith("- ") else text,
        name=lambda part: parts.get(part, part),
        may=lambda _: True,
    )


# --- pages and lines --------------------------------------------------------------------------------------------------


def _page_by_rules(text: str, path: Path, funnel: Funnel) -> str:
    if names.id_of(names.page_beside(path)) is None:
        return text

    def line(said: str) -> str:
        label, sep, link = said.partition("](")
        return funnel.redact_fields({"label": label}).texts["label"] + sep + link

    session = parse(text, names.page_beside(path))
    clean = funnel.redact_fields({f"{n}": said for n, said in enumerate(texts_of(session))}).texts
    new = with_texts(session, (clean[f"{n}"] for n in range(len(clean))))
    sections = {
        section: [old if old.at is None else entry for old, entry in zip(entries, new.sections[section], strict=True)]
        for section, entries in session.sections.items()
    }
    # By hand, but for the links to parts: their labels are the program's.
    intro = "\n".join(line(said) if said.startswith("> [") else said for said in session.intro.split("\n"))
    new = replace(new, intro=intro, sections=sections)
    return text if new == session else render(new)


# --- masks ------------------------------------------------------------------------------------------------------------


def _everywhere(
    text: Callable[[str], str],
    line: Callable[[str], str],
    name: Callable[[str], str],
    may: Callable[[str], bool],
    *,
    title: Callable[[str], str] | None = None,
) -> Hide:
    """A `Hide` that knows no difference between places. `line`: of the program's own lines; `title`: of what names of files
    are made of, if that is more."""
    title = title or text

    def raw(said: str) -> str:
        end = max(0, said.find("\n---", 4)) if said.startswith("---\n") else 0
        front = "\n".join(map(_in_front(text), said[:end].split("\n")))
        return front + _TITLE.sub(lambda found: title(found[0]), text(said[end:]), count=1)

    def page(said: str, path: Path) -> str:
        # Of a session what it says is masked, never what the page is made of: ids, times, statuses, headings.
        if names.id_of(names.page_beside(path)) is None:
            return raw(said)
        session = parse(said, names.page_beside(path))
        heading, *texts = texts_of(session)
        extra = "\n".join(map(_in_front(text), session.extra.split("\n")))
        new = replace(with_texts(session, [title(heading), *map(text, texts)]), extra=extra)
        page = said if new == session else render(new)
        # What the reader passes over may still show it: a comment, or a value that is none of its key.
        return page if text(page) == page else "\n".join(_outside_structure(page.split("\n"), text))

    def row(old: Row) -> Row:
        tags = tuple(as_tag(text(tag)) for tag in old.tags)
        return replace(old, title=title(old.title), summary=text(old.summary), tags=tags)

    return Hide(page, lambda said: _facts(raw(said)), row, lambda said: made.between(said, made.line, line), name, may)


_FIXED = re.compile(
    r'(?:id|parent): *"?\d{8}-\d{4}-[0-9a-f]{7}"?|ts: *\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d)?'
    r"|status: *(?:open|closed|conflict)|(?:turns|tokens_in|tokens_out): *\d{1,12}"
)
"""Lines of front matter that say nothing: what is not of this form is looked at."""
_OWN_KEY = re.compile(rf"(?:{'|'.join(KEYS)}):")


def _outside_structure(lines: Sequence[str], text: Callable[[str], str]) -> Iterator[str]:
    """Lines of a page with masks, but for what it is made of: keys, ids, times, statuses, headings of sections."""
    end = next((n for n, line in enumerate(lines) if n and line == "---"), 0) if lines[:1] == ["---"] else 0
    for number, line in enumerate(lines):
        if number < end:
            key = found[0] if (found := _OWN_KEY.match(line)) else ""
            yield line if _FIXED.fullmatch(line) else key + _in_front(text)(line[len(key) :])
        elif (entry := ENTRY_LINE.fullmatch(f"\n{line}")) is not None:
            yield line if entry[2] is None else f"### {entry[1]} · {text(entry[2])}"
        else:
            yield line if SECTION_LINE.fullmatch(f"\n{line}") else text(line)


def said_on_page(page: str) -> list[str]:
    """What a page of a session says, without what it is made of: what is masked there if it must be, and so what is looked
    at afterwards."""
    said: list[str] = []

    def keep(text: str) -> str:
        said.append(text)
        return text

    for _ in _outside_structure(page.split("\n"), keep):
        pass
    return said


def _facts(text: str) -> str:
    """A text of memory in which masks stand in keys of facts without a colon, which would end the key."""
    lines = text.split("\n")
    return "\n".join(_with_bare_key(line) if "[" in line else line for line in lines)


def _with_bare_key(line: str) -> str:
    key = _KEY.match(line)
    return line if key is None else f"{key[1]}{bare_masks(key[2])}{line[key.end() :]}"


def _in_front(text: Callable[[str], str]) -> Callable[[str], str]:
    """For lines of YAML: outside of quotes brackets would be a list."""

    def line(said: str) -> str:
        new = text(said)
        return new if new == said or '"' in said else bare_masks(new)

    return line


def _spellings(value: str) -> Iterator[str]:
    """A value as texts hold it: in data, on one line, in the code span of a log."""
    for form in forms(value):
        line = " ".join(form.split())
        yield from (form, line, line.replace("`", "'"), as_tag(form))


def _without(text: str, form: str, mask: str) -> str:
    """A text with a mask for a form of a secret; of a long one the beginning is enough, however much of it is there."""
    if len(form) < LEAST_PIECE and form in text:
        places = (found.span() for found in re.finditer(re.escape(form), text))
        return with_mask(text, (place for place in places if not is_glued(text, *place)), mask)
    if len(form) <= _LONG or form[:_LONG] not in text:
        return text.replace(form, mask)
    parts = text.split(form[:_LONG])
    return parts[0] + "".join(mask + part[_alike(part, form[_LONG:]) :] for part in parts[1:])


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    return next(
        (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )


def _without_cut(text: str, secrets: Mapping[str, str]) -> str:
    """A secret of which only the beginning is there, before `…`."""
    parts = text.split("…")
    for number, part in enumerate(parts[:-1]):
        for value, kind in secrets.items():
            if kept := _begun(part, " ".join(value.split())):
                parts[number] = part = f"{part[:-kept]}[REDACTED:{kind}]"
    return "…".join(parts)


def _begun(part: str, line: str) -> int:
    """With how many characters of the beginning of a line a text ends; 0 if those are too few."""
    if len(line) < _LEAST_CUT:
        return 0
    start, at = line[:_LEAST_CUT], max(0, len(part) - len(line))
    while (at := part.find(start, at)) >= 0:
        if line.startswith(part[at:]):
            return len(part) - at
        at += 1
    return 0
