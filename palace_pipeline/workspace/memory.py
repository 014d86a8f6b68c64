"""What is to be remembered beyond a session: `memory/facts.md`, `memory/preferences.md`, `memory/entities/<name>.md`.

A fact is a line, `- key: value`; saying it again overwrites it where it stands. Whatever else people write in these files
stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from palace_pipeline.exports.text import decode
from palace_pipeline.model import short_hash
from palace_pipeline.transcripts import front_matter
from palace_pipeline.transcripts.page_path import slug
from palace_pipeline.workspace.front import bare_masks
from palace_pipeline.workspace.locks import locked
from palace_pipeline.workspace.logs import append_error
from palace_pipeline.workspace.session import one_line
from palace_pipeline.workspace.writing import (
    PageChanged,
    assert_own,
    is_fresh,
    is_half,
    plain_file,
    put_page,
    read_page,
    remove_own_leftovers,
)

if TYPE_CHECKING:
    from palace_pipeline.workspace.api import Workspace

MEMORY = Path("memory")
FACTS = MEMORY / "facts.md"
PREFERENCES = MEMORY / "preferences.md"
ENTITIES = MEMORY / "entities"
CLAIMS = MEMORY / ".claims"
"""What finds again what any session, or memory itself, showed to be a secret (`masking.py`)."""
_HEADS = {FACTS: "# Facts\n\n", PREFERENCES: "# Preferences\n\n"}
_LINE = re.compile(r"[-*+] (?:\*\*)?([^\n:：*]+?)(?:\*\*)?[ \t]*[:：](?:\*\*)?[ \t]*(.*)")
_KEY_LENGTH, _VALUE_LENGTH = 80, 500
_TRIES = 4


def facts(workspace: Workspace) -> dict[str, str]:
    """All facts, in the order of the file; of a key that stands twice the last. What is known to be a secret is masked,
    here as everywhere: somebody may have put it back."""
    return lines_of(_text(workspace, FACTS))


def preferences(workspace: Workspace) -> dict[str, str]:
    """All preferences, in the order of the file."""
    return lines_of(_text(workspace, PREFERENCES))


def set_fact(workspace: Workspace, key: str, value: str) -> None:
    """Write a fact, or overwrite it. Redacted first; raises what `Workspace` raises, ValueError for a blank key."""
    _set(workspace, FACTS, key, value)


def set_preference(workspace: Workspace, key: str, value: str) -> None:
    """Write a preference, or overwrite it."""
    _set(workspace, PREFERENCES, key, value)


def set_entity(workspace: Workspace, name: str, key: str, value: str) -> Path:
    """Write what is known of a person, place or thing, or overwrite it; returns its file."""
    clean = one_line(_clean(workspace, {"name": name})["name"], _KEY_LENGTH)
    path = _file_of(workspace, clean)
    _set(workspace, path, key, value, head=f"---\naliases: []\n---\n\n# {clean}\n\n")
    return workspace.home / path


def remove(workspace: Workspace, key: str, *, preference: bool = False, entity: str | None = None) -> Path | None:
    """Take the line of a key out of the facts, the preferences or an entity's file; returns that file (below the home),
    None if there is no such line. Raises what `Workspace` raises."""
    key = _as_key(key)
    file: Path | None = PREFERENCES if preference else FACTS
    if entity is not None:
        called = (path for path, names, _ in entities(workspace) if any(_same(one, entity) for one in names))
        file = next((path.relative_to(workspace.home) for path in called), None)
    if file is None or not any(_same(key, known) for known in lines_of(_text(workspace, file))):
        return None
    _edit(workspace, file, lambda text: without_line(text, key))
    return file


def _file_of(workspace: Workspace, name: str) -> Path:
    """The file (below the home) of an entity of a name: the one that is called so, be it by an alias, else a new one.

    A name that loses something on its way into a file name (C++ and C#) gets a hash, or two would share a file.
    """
    for path, called, _ in entities(workspace):
        if any(_same(one, name) for one in called):
            return path.relative_to(workspace.home)
    return ENTITIES / file_name(name)


def file_name(name: str) -> str:
    """What the file of a new entity is called."""
    part = slug(name)
    whole = part.replace("-", " ").split() == _plain(name).split()
    return f"{part}.md" if whole else f"{part}-{short_hash(_plain(name), length=6)}.md"


def title_of(text: str) -> str:
    """The heading of an entity's file, '' if it has none."""
    body = text[front_matter.split(text)[1] :].strip()
    return body.partition("\n")[0][2:].strip() if body.startswith("# ") else ""


def entities(workspace: Workspace) -> Iterator[tuple[Path, tuple[str, ...], str]]:
    """(file, names and aliases, text) of each entity, in order of name; masked as `facts` are."""
    home = workspace.home
    assert_own(home, ENTITIES)
    folder = home / ENTITIES
    for path in filter(plain_file, sorted(folder.glob("*.md")) if folder.is_dir() else ()):
        try:
            text = _text(workspace, path)
        except OSError as error:
            append_error(home, "unread", path, f"it cannot be read ({error.strerror}), so it is left out", once=True)
            continue
        block, start = front_matter.split(text)
        yield path, tuple(dict.fromkeys([title_of(text) or path.stem, *_aliases(block)])), text[start:].strip()


def mentioned(names: tuple[str, ...], text: str) -> bool:
    """Whether one of the names stands in a text; a name in letters with spaces between words only as a whole word."""
    plain = _plain(text)
    return any(_stands(name, plain) for one in names if len(name := _plain(one).strip()) > 1)


def lines_of(text: str) -> dict[str, str]:
    """The `- key: value` lines of a text."""
    return {match[1].strip(): match[2].strip() for line in text.split("\n") if (match := _LINE.fullmatch(line))}


def with_line(text: str, key: str, value: str) -> str:
    """A text with the line of a key: overwritten where it stands (later ones of the same key go), else behind the last
    such line, else at the end."""
    lines = text.rstrip("\n").split("\n")
    places = [n for n, line in enumerate(lines) if (match := _LINE.fullmatch(line)) and _same(match[1], key)]
    new = f"- {key}: {value}"
    if places:
        lines[places[0]] = new
        lines = [line for n, line in enumerate(lines) if n not in places[1:]]
    else:
        last = max((n for n, line in enumerate(lines) if _LINE.fullmatch(line)), default=None)
        if last is None:
            lines += ["", new] if lines[-1].strip() else [new]
        else:
            lines.insert(last + 1, new)
    return "\n".join(lines) + "\n"


def without_line(text: str, key: str) -> str:
    """A text without the lines of a key."""
    lines = text.split("\n")
    return "\n".join(line for line in lines if not ((match := _LINE.fullmatch(line)) and _same(match[1], key)))


def _set(workspace: Workspace, file: Path, key: str, value: str, *, head: str = "") -> None:
    clean = _clean(workspace, {"key": key, "value": value, "both": f"{key}: {value}"})
    name = _as_key(bare_masks(clean["key"]))
    # A value may be a secret only beside its key: then what is masked of both together counts.
    said = clean["value"] if clean["both"] == f"{key}: {value}" else clean["both"].partition(": ")[2] or clean["value"]
    if not name:
        raise ValueError("a key without letters")
    _edit(workspace, file, lambda text: with_line(text or head or _HEADS[file], name, one_line(said, _VALUE_LENGTH)))


def _clean(workspace: Workspace, said: dict[str, str]) -> dict[str, str]:
    """What may be written of new texts. Memory is everybody's: what any session showed to be a secret is masked in it, and
    what is shown here goes from what it held before."""
    from palace_pipeline.workspace.hiding import hide_secrets
    from palace_pipeline.workspace.masking import masked_texts
    from palace_pipeline.workspace.sweeping import pages_of_rows, sweep

    assert_own(workspace.home, CLAIMS)
    clean = masked_texts(workspace.funnel, workspace.key, said, workspace.home / CLAIMS)
    if clean.secrets:
        hide = hide_secrets(clean.secrets)
        sweep(workspace.home, hide, pages_of_rows(workspace.home, hide))
    return clean.texts


def _as_key(text: str) -> str:
    """A text as the key of a line: nothing in it ends the key."""
    return one_line(re.sub(r"[:：*]", " ", text), _KEY_LENGTH)


def _edit(workspace: Workspace, file: Path, change: Callable[[str], str]) -> None:
    """Write a file anew as `change` makes it of what stands there ('' if it is not there), masked as `facts` are."""
    home = workspace.home
    assert_own(home, file, CLAIMS)
    masked = shown(workspace)
    path = home / file
    with locked(path.parent, file.stem) as lock:
        if lock.after_kill:
            remove_own_leftovers(path.parent, file.name)
        for attempt in range(_TRIES):
            try:
                old, seen = read_page(path, wait=True)
            except FileNotFoundError:
                old, seen = b"", None
            if seen is not None and is_half(old) and is_fresh(seen):
                raise PageChanged(f"{path} is half there: somebody is writing it. Nothing was changed; do it again.")
            text = decode(old)
            if text is None:
                raise PageChanged(f"{path} cannot be read as text; save it as UTF-8. Nothing was changed.")
            data = change(masked(text.removeprefix("\ufeff").replace("\r\n", "\n"))).encode("utf-8", "replace")
            try:
                put_page(home, path, data, seen=seen, same=data.__eq__, lock=lock, keep_half=False)
            except PageChanged:
                if attempt == _TRIES - 1:
                    raise
            else:
                return


def _text(workspace: Workspace, file: Path) -> str:
    assert_own(workspace.home, file)
    try:
        text = decode((workspace.home / file).read_bytes()) or ""
    except FileNotFoundError:
        return ""
    return shown(workspace)(text.removeprefix("\ufeff").replace("\r\n", "\n"))


def shown(workspace: Workspace) -> Callable[[str], str]:
    """What masks in a text of memory, or about to be shown to a model, all that was purged or that any session showed to be
    a secret: somebody may have put it back."""
    from palace_pipeline.redaction.forgotten import MASK
    from palace_pipeline.workspace.hiding import hide_claims, hide_values
    from palace_pipeline.workspace.masking import claims_of

    claims, purged = claims_of(workspace.home / CLAIMS)[0], workspace.forgotten
    hides = [hide_claims(claims, workspace.key)] if claims else []
    hides += [hide_values(purged, workspace.key, MASK)] if purged else []

    def masked(text: str) -> str:
        for hide in hides:
            text = hide.memory(text)
        return text

    return masked


def _aliases(block: str | None) -> tuple[str, ...]:
    try:
        return front_matter.texts(front_matter.load(block or "").get("aliases"))
    except front_matter.FrontMatterError:
        return ()


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _same(one: str, other: str) -> bool:
    return _plain(one).split() == _plain(other).split()


def _stands(name: str, text: str) -> bool:
    if name not in text:
        return False
    spaced = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "HEBREW", "ARABIC")
    if not any(unicodedata.name(name[0], "").startswith(script) for script in spaced):
        return True
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
