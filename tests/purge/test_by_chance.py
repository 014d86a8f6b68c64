"""A value that by chance stands in what the archive is made of: what was said is masked, and the archive stays whole."""

from __future__ import annotations

import io
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.checks import audit
from palace_pipeline.purge import Purged, find_value, purge_value
from palace_pipeline.purge.probes import Probes
from palace_pipeline.redaction import made
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.settings import RedactionSettings
from palace_pipeline.store.home import Home
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.logs import append_error
from palace_pipeline.workspace.memory import facts, set_fact
from tests.cli.conftest import Run, palace
from tests.ingest.exports_for_tests import chat, export
from tests.rebuild.archives import copied, home_at, take
from tests.stages.test_stages import EVERYTHING

__all__ = ["palace"]

UUID = "6634f2a1-0b7c-4d5e-8f90-a1b2c3d4e5f6"
WORDS = (
    *(
        "open",
        "closed",
        "user",
        "assistant",
        "session",
        "sessions",
        "conversation",
        "conversations",
        "general",
        "title",
    ),
    *("date", "message", "messages", "times", "tags", "Assistant", "Notes", "page", "path", "text", "rooms", "model"),
)
NATURES = (made.said, made.path, made.own, made.raw, made.line, made.page, made.ident, made.stored)
FEW = ("day", "open")
DIGITS: dict[str, Callable[[str], str]] = {
    "day": lambda session: session[4:8],
    "year": lambda session: session[:4],
    "minute": lambda session: session[9:13],
    "whole day": lambda session: f"{session[:4]}-{session[4:6]}-{session[6:8]}",
    "eight digits": lambda session: session[:8],
    "hash": lambda session: session[-4:],
    "uuid": lambda _: UUID[:4],
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, str, dict[str, str]]:
    """An archive, the id of its first session, and the values that one says, by name."""
    folder = tmp_path_factory.mktemp("built")
    home = home_at(folder / "home")
    live = Workspace(settings=home.settings)
    live._funnel = ((), Funnel(RedactionSettings(), b"k" * 32))
    first = live.new("first", input="what is it").id
    values = {word: word for word in WORDS} | {name: of(first) for name, of in DIGITS.items()}
    for value in values.values():
        live.append(first, "judgement", f"it is <{value}> indeed")
    second = live.new("second", input="other ovens", parent=first).id
    live.append(second, "tools", "ls -l", who="sh")
    append_error(home.path, "conflict", live.load(second).path, "two sides")
    set_fact(live, "said", ", ".join(f"<{value}>" for value in values.values()))
    export(folder / "in/a.json", chat(UUID, "what about ovens", "they are hot", "thanks") | {"title": "Ovens"})
    take(home, home.path / "sessions", folder / "in")
    return home, first, values


def test_the_values_really_stand_in_what_the_archive_makes(built: tuple[Home, str, dict[str, str]]) -> None:
    home, first, values = built
    everything = b"".join(path.read_bytes() for path in home.path.rglob("*") if path.is_file()).decode("latin-1")
    masked = re.sub(r"<[^<>\n]*>", "", everything)
    assert [name for name, value in values.items() if value not in masked] == []
    assert first in masked


def _cases() -> list[Any]:
    """Raw bytes are looked at in the same way for all values: a few tell."""
    cases = [(name, vault) for name in (*WORDS, *DIGITS) for vault in (False, True) if name in FEW or not vault]
    return [pytest.param(*case, marks=() if case[0] in FEW else pytest.mark.slow) for case in cases]


@pytest.mark.parametrize(("name", "vault"), _cases())
def test_what_was_said_is_masked_and_the_rest_stays(
    built: tuple[Home, str, dict[str, str]], name: str, vault: bool, tmp_path: Path
) -> None:
    original, first, values = built
    home, value = copied(original, tmp_path / "home"), values[name]
    before = _structure(home)
    purged = _purge(home, value, vault=vault)
    assert purged.clean, purged.proof.found
    assert purged.proof.spared or name not in ("open", *DIGITS)
    live = Workspace(settings=home.settings)
    said = [entry.text for entry in live.load(first).session.sections["judgement"]]
    assert f"it is <{value}> indeed" not in said
    assert "it is <[REDACTED:purged]> indeed" in said
    assert f"<{value}>" not in facts(live)["said"]
    assert not [path for path in home.path.rglob("*.md") if f"<{value}>" in path.read_text()]
    # Nothing was taken apart for it, and nothing is withheld: not now, not later.
    assert _structure(home) == before
    assert audit(home, EVERYTHING) == {}
    live.append(first, "judgement", f"once more <{value}>")
    take(home, home.path / "sessions")
    assert audit(home, EVERYTHING) == {}
    with home.ledger() as ledger:
        assert ledger.withheld() == []
    assert _structure(home)["rows"] == before["rows"]
    assert _structure(home)["status"] == before["status"]
    assert "once more <[REDACTED:purged]>" in live.load(first).session.sections["judgement"][-1].text
    assert not [path for path in home.path.rglob("*.md") if f"<{value}>" in path.read_text()]


def _purge(home: Home, value: str, *, vault: bool = False) -> Purged:
    with home.writing():
        return purge_value(home, find_value(home, value), vault=vault, batch="purge")


def _structure(home: Home) -> dict[str, Any]:
    """What must be the same afterwards: names, properties and headings of pages, ids and days in logs and index."""
    with home.ledger() as ledger:
        rows = ledger.rows("SELECT provider, conversation_id, day, status, page FROM conversations ORDER BY 1, 2")
        files = [row["path"] for row in ledger.rows("SELECT path FROM files ORDER BY path")]
    lines: dict[str, list[str]] = {}
    for path in sorted(home.path.rglob("*.md")):
        text, inside = path.read_text(), path.relative_to(home.path).as_posix()
        if inside.startswith("notes/rooms"):  # which room it is depends on the words
            continue
        head = [line for line in text.partition("\n---\n")[0].split("\n") if not line.startswith(_CHANGING)]
        lines[inside] = [*head, *(line for line in text.split("\n") if line.startswith(("##", "# ", "| date")))]
        if inside.startswith(("logs/", "index")):
            lines[inside] = [line for line in text.split("\n") if "first" not in line]
        lines[inside] = list(dict.fromkeys(lines[inside]))
    heads = {name: found for name, found in lines.items() if name.startswith(("logs", "index", "conversations"))}
    status = {
        name: [line for line in found if line.startswith(("id:", "status:", "parent:", "---"))]
        for name, found in lines.items()
        if name.startswith("sessions")
    }
    return {
        "rows": [tuple(row) for row in rows],
        "files": files,
        "heads": heads,
        "status": status,
        "names": sorted(lines),
    }


_CHANGING = ("palace:", "source_sha256", "  - ", "turns", "redactions", "message_count", "ended_at")


# --- what is said is never spared --------------------------------------------------------------------------------------


def test_what_looks_like_made_is_masked_where_it_was_said(tmp_path: Path) -> None:
    """Titles, tags, texts and names of the user's files: a secret may have any form, and stand beside any other."""
    home = home_at(tmp_path / "home")
    secret, born = secrets.token_hex(10), "1985-03-12"
    live = Workspace(settings=home.settings)
    live._funnel = ((), Funnel(RedactionSettings(), b"k" * 32))
    page = live.new(f"born {born}", input=f"cafe{born} and x{born}x", tags=["1985-03-12"])
    live.append(page.id, "tools", f"at {born}T10:00:00Z open {born}", who="sh")
    append_error(home.path, "conflict", page.path, f"of {born}")
    note = tmp_path / f"in/{secret}/{secret}.md"
    note.parent.mkdir(parents=True)
    note.write_text(f"# About {secret}\n\nIt was {secret}, on {born}.\n")
    own = {"id": secret, "conversation_id": secret, "title": f"Plan {secret} {born}"}
    export(tmp_path / "in/a.json", chat("plain", f"so {secret}", "yes") | own)
    take(home, home.path / "sessions", tmp_path / "in")
    for value in (secret, born):
        purged = _purge(home, value, vault=True)
        assert purged.clean, purged.proof.found
    kept = [path for path in home.path.rglob("*") if path.is_file() and path.suffix in (".md", ".json")]
    assert [path for path in kept if secret in path.read_text() or born in path.read_text()] == []
    assert [path for path in home.path.rglob("*") if secret in path.name or born in path.name] == []
    with home.ledger() as ledger:
        rows = [*ledger.rows("SELECT path FROM files"), *ledger.rows("SELECT conversation_id FROM conversations")]
    assert [row[0] for row in rows if secret in row[0] or born in row[0]] == []
    assert audit(home, EVERYTHING) == {}


@pytest.mark.parametrize(
    ("nature", "text", "value", "left"),
    [
        (made.ident, "20261130-1130-1a2b3c4", "1130", 0),
        (made.ident, "20261130-1130-1a2b3c4", "20261130", 0),
        (made.ident, UUID, "6634", 0),
        (made.ident, UUID, "6634f2a1", 1),  # eight characters do not meet by chance
        (made.ident, "plans-for-1130", "1130", 1),  # somebody chose it
        (made.ident, "1130", "1130", 1),
        (made.path, "sessions/2026-11-30/1130-1a2b3c4-pin-1130.md", "1130", 1),
        (made.path, "conversations/chatgpt/2026/2026-11-30-in-2026-5fab0359.md", "2026", 1),
        (made.path, "/in/2026/export-2026.zip", "2026", 2),
        (made.own, '{"status": "open", "path": "/in/open.json", "n": 1130, "why": "so open"}', "open", 2),
        (made.own, '{"n": 1130, "at": "2026-11-30T11:30:00Z", "name": "1130"}', "1130", 1),
        (made.raw, '{"role":"user","text":"the user"}', "user", 1),
        (made.line, "- 2026-11-30T16:27:50+00:00 · 20261130-1627-e440f94 · sh · ls 2026-11-30", "2026", 1),
        (made.line, "| 2026-11-30 | of 2026 | 2026 |  | [page](sessions/2026-11-30/1130-1a2b3c4-2026.md) |", "2026", 3),
        (made.page, "---\ntype: day\ndate: 2026-11-30\ntags:\n  - 2026\n---\n\n# 2026-11-30\n\nin 2026\n", "2026", 2),
        (made.page, "---\ntype: conversation\ntitle: title\nmine: date\n---\n", "title", 1),
        (made.page, "---\ntype: conversation\nrooms:\n  - general\ntags:\n  - general\n---\n", "general", 1),
    ],
)
def test_what_a_value_may_stand_in(nature: made.Nature, text: str, value: str, left: int) -> None:
    places = [found.span() for found in re.finditer(re.escape(value), text)]
    assert len(places) > left or nature in (made.ident, made.path)
    assert len(made.told(text, places, nature)) == left


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("unknown_names.name", "open", True),
        ("sightings.member", "open", True),
        ("conversations.status", "open", False),
        ("meta.name", "open", False),
        ("dagster.name", "run_open_one", False),
        ("stage_log.counts", '{"open":3,"so":"open it"}', True),
        ("stage_log.counts", '{"open":3}', False),
        ("clean/messages.text", "open", True),
        ("clean/conversations.wing", "open", False),
        ("clean/conversations.title", "sessions/2026-11-30/1130-1a2b3c4-open.md", True),
    ],
)
def test_what_columns_may_say(name: str, value: str, left: bool) -> None:
    table, column = name.split(".")
    default = made.said if table.startswith("clean/") else made.own
    assert Probes(["open"], ["open"]).in_column(table, column, value, default) is left


def test_a_page_in_another_encoding_is_looked_at_as_text(tmp_path: Path) -> None:
    home = home_at(tmp_path / "home")
    live = Workspace(settings=home.settings)
    live._funnel = ((), Funnel(RedactionSettings(), b"k" * 32))
    page = live.new("wide", input="ovens")
    wide = page.path.read_text().replace("ovens", "第一个问题 zebra").encode("utf-16")
    page.path.write_bytes(wide)
    take(home, home.path / "sessions")
    day = DIGITS["whole day"](page.id)
    assert _purge(home, day, vault=True).clean
    assert page.path.read_bytes() == wide
    assert "zebra".encode("utf-16-le") in page.path.read_bytes()
    assert _purge(home, "zebra", vault=True).clean
    assert "第一个问题 [REDACTED:purged]" in page.path.read_text()


@pytest.mark.slow
def test_dagster_and_exports_go_on_after_words_of_theirs_were_purged(
    palace: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Workspace(tmp_path / "home")
    live._funnel = ((), Funnel(RedactionSettings(), b"k" * 32))
    words = ("partition", "asset", "session", live.new("x", input="y").id[:4])
    page = live.new("words", input="my words are " + ", ".join(f"<{word}>" for word in words))
    assert palace("ingest").code == 0
    for word in words:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(word.encode())))
        purged = palace("purge", "--value-from-stdin", "--vault", "--yes")
        assert purged.code == 0, purged.err
    live.append(page.id, "judgement", "an oven is hot")
    assert palace("ingest").code == 0
    assert palace("doctor").code == 0
    assert palace("export", str(tmp_path / "out"), "--all", "--to", "md").code == 0
    shown = next((tmp_path / "out").glob("*-words-*.md")).read_text()
    assert "my words are <[REDACTED:purged]>, <[REDACTED:purged]>, <[REDACTED:purged]>, <[REDACTED:purged]>" in shown


@given(st.text('0123456789abcdef-T:Z/. \n|{}[]"é北', max_size=60), st.sampled_from(NATURES))
def test_all_that_is_not_made_is_changed_and_nothing_else(text: str, nature: made.Nature) -> None:
    whole = [one for one in nature(text) if not one.short]
    assert all(0 <= one.start <= one.end <= len(text) for one in nature(text))
    kept = {at for one in whole for at in range(one.start, one.end)}
    shown = made.between(text, nature, lambda piece: "\x01" * len(piece))
    assert shown == "".join(text[at] if at in kept else "\x01" for at in range(len(text)))


@pytest.mark.parametrize("nature", NATURES)
@pytest.mark.parametrize(
    "template",
    [
        "{}",
        '"{}"',
        '{{"{}": 3}}',
        '{{"kind": "{}"}}',
        '[1, "{}"]',
        "---\ntype: conversation\nconversation_id: {}\nchat_link: https://chat.example/c/{}\norigin: {}\n---\n\n# x\n",
        "### 2026-11-30 14:30 · {}",
        "- 2026-11-30T14:30:00+00:00 · 20261130-1430-abcdef1 · {} · `x`",
        "sessions/2026-11-30/1430-abcdef1-{}.md",
        "conversations/chatgpt/2026/2026-11-30-{}-1a2b3c4d.md",
    ],
)
@pytest.mark.parametrize(
    "value", ["alice_secret_2024", "AureliaCorp", "MY_TOKEN_VALUE", "plans-for-aurelia", "李雷和韩梅梅的密码"]
)
def test_a_long_value_is_spared_nowhere_whatever_it_looks_like(nature: made.Nature, template: str, value: str) -> None:
    text = template.replace("{}", value).replace("{{", "{").replace("}}", "}")
    assert Probes([value]).in_text(text, nature)
    place = (text.index(value), text.index(value) + len(value))
    assert made.told(text, [place], nature) == [place]


def test_the_name_of_a_project_is_said_and_the_name_of_a_room_of_ours_is_not() -> None:
    assert Probes(["proj"]).in_column("clean/drawers", "wing", "my_proj", made.said)
    assert not Probes(["general"]).in_column("clean/drawers", "room", "general", made.said)


def test_a_birthday_goes_from_raw_bytes_though_it_is_a_day(tmp_path: Path) -> None:
    home = home_at(tmp_path / "home")
    live = Workspace(settings=home.settings)
    live._funnel = ((), Funnel(RedactionSettings(), b"k" * 32))
    live.new("born 1987-06-05", input="she was born 1987-06-05")
    export(tmp_path / "in/a.json", chat("a", "my birthday is 1987-06-05 you know", "nice"))
    take(home, home.path / "sessions", tmp_path / "in")
    assert _purge(home, "1987-06-05", vault=True).clean
    with home.vault() as vault:
        assert not [name for name, data in vault.every("pieces") if b"1987-06-05" in data]
