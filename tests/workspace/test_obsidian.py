"""The home as a vault of Obsidian without a plugin, and on GitHub: properties, tags, links, and what changes with what."""

from __future__ import annotations

import datetime
import io
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.cli.app import main
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.front import as_tag
from tests.cli.conftest import Run
from tests.ingest.exports_for_tests import START, chat, export

FIXTURES = Path(__file__).parents[1] / "fixtures/exports"
SOME = ("08-claude-ai-export", "38-whatsapp-ios", "48-plain-notes")
"""Exports with an assistant, with naive times, with documents."""
DAY = 86_400
LINK = re.compile(r"(?<!\\)\]\(<?([^()\s<>]+)>?\)")


def chats() -> list[dict[str, Any]]:
    made = [
        chat("lamp", "Why did the lighthouse go dark?", "The generator ran out of diesel at three."),
        chat("again", "Is the lighthouse lit again?", "Yes, since Tuesday.", start=START + 3_600),
        chat("数据", "数据库怎么选？", "先看读写比例，再看团队熟悉什么。", start=START + DAY),
        chat("later", "What is a decision record?", "We decided to keep one for each choice.", start=START + 40 * DAY),
        chat("undated", "A chat without any time", "It has none.", start=None),
    ]
    for one, title in zip(made, ("#todo [[x]] yes", "true", "2024", "a: b | c", "null"), strict=True):
        one["title"] = title
    return made


def run(home: Path, *arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["--home", str(home), *arguments])
    return ended.value.code if isinstance(ended.value.code, int) else 0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with exports of several kinds and a live session, all taken in."""
    home = tmp_path_factory.mktemp("vault") / "home"
    inbox = home / "inbox"
    inbox.mkdir(parents=True)
    for name in SOME:
        shutil.copytree(FIXTURES / name, inbox / name, ignore=shutil.ignore_patterns("expected*"))
    export(inbox / "chats/conversations.json", *chats())
    run(home, "ingest")
    live = Workspace(settings=load_settings(home))
    session = live.new("修好烤箱", tags=["kitchen", "烤箱"])
    live.append(session.id, "结论", "The oven needs a new fuse.")
    run(home, "ingest")
    return home


@pytest.fixture
def home(built: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    shutil.copytree(built, tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def archive(home: Path, palace: Run) -> Run:
    return partial(palace, home=home)


def notes(home: Path) -> list[Path]:
    """What Obsidian shows: all Markdown files but those of the user's own exports."""
    inbox = home / "inbox"
    return [path for path in sorted(home.rglob("*.md")) if not path.is_relative_to(inbox)]


def texts(home: Path) -> dict[str, str]:
    return {path.relative_to(home).as_posix(): path.read_text("utf-8") for path in notes(home)}


def properties(text: str) -> dict[str, Any]:
    match = re.match(r"---\n(.*?)^---\n", text, re.DOTALL | re.MULTILINE)
    return {} if match is None else yaml.safe_load(match[1])


def kind_of(value: Any) -> str | None:
    """The type that Obsidian gives a property; None for one that is empty."""
    if value is None or value == []:
        return None
    if isinstance(value, bool):
        return "checkbox"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, datetime.datetime):
        return "date and time"
    if isinstance(value, datetime.date):
        return "date"
    if isinstance(value, list):
        assert all(isinstance(one, str) for one in value), "a list of texts is the only list that Obsidian shows"
        return "list"
    assert isinstance(value, str), f"no property of Obsidian's: {type(value).__name__}"
    return "text"


def test_there_is_something_to_look_at(built: Path) -> None:
    kinds = {properties(text).get("type") for text in texts(built).values()}
    assert {"conversation", "day", "year", "room", "notes"} <= kinds
    assert len(notes(built)) > 30


def test_each_property_is_of_one_type_across_the_vault(built: Path) -> None:
    types: dict[str, dict[str, str]] = {}
    for name, text in texts(built).items():
        for key, value in properties(text).items():
            kind = kind_of(value)
            if kind is not None:
                types.setdefault(key, {}).setdefault(kind, name)
    assert {key: kinds for key, kinds in types.items() if len(kinds) > 1} == {}
    assert types["date"].keys() == {"date"}
    assert types["tags"].keys() == {"list"}
    assert types["title"].keys() == {"text"}  # also of chats that are called true, null and 2024


def test_tags_are_what_obsidian_takes_for_tags(built: Path) -> None:
    seen: set[str] = set()
    for text in texts(built).values():
        seen.update(properties(text).get("tags") or ())
    assert {"kitchen", "烤箱"} <= seen
    for tag in seen:
        assert re.fullmatch(r"[\w/-]+", tag), tag
        assert not tag.isdigit()


def links(home: Path) -> list[tuple[str, str]]:
    """(file, target) of the links between files that the program wrote; code and what people said is left out."""
    found: list[tuple[str, str]] = []
    for name, text in texts(home).items():
        if name.startswith(("conversations/", "sessions/")):
            body = re.split(r"^<!-- palace:", text, maxsplit=1, flags=re.MULTILINE)[0]
        else:
            body = text
        found += ((name, target) for target in LINK.findall(body) if "://" not in target)
    return found


def test_every_link_leads_to_a_file(built: Path) -> None:
    found = links(built)
    assert len(found) > 60
    for name, target in found:
        assert ((built / name).parent / unquote(target)).is_file(), (name, target)
        assert not target.startswith("/")


def test_nothing_is_an_island(built: Path) -> None:
    """From the start one comes to every page with a day or a room, and from each page back."""
    ways: dict[str, set[str]] = {}
    for name, target in links(built):
        path = ((built / name).parent / unquote(target)).resolve().relative_to(built.resolve()).as_posix()
        ways.setdefault(name, set()).add(path)
    reached: set[str] = set()
    waiting = ["notes/README.md"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += sorted(ways.get(name, set()))
    assert {name for name in texts(built) if name.startswith("conversations/")} <= reached
    for name, text in texts(built).items():
        if name.startswith("conversations/"):
            values = properties(text)
            day = f"notes/days/{values['date'].year}/{values['date']}.md"
            assert (day in ways[name]) == (values.get("dated") is not False), name
            assert sum(way.startswith("notes/rooms/") for way in ways[name]) == len(values["rooms"])


def test_titles_do_nothing_in_the_notes(built: Path) -> None:
    day = (built / "notes/days/2024/2024-05-03.md").read_text("utf-8")
    assert "[\\#todo \\[\\[x\\]\\] yes](" in day
    for name, text in texts(built).items():
        if name.startswith("notes/"):
            body = text.partition("\n---\n")[2]
            assert "[[" not in body, name
            assert not re.search(r"(?<![\\\w/#&])#[^\s#\d]", body), name


def test_neighbours_in_time(built: Path) -> None:
    day = (built / "notes/days/2024/2024-05-03.md").read_text("utf-8")
    assert day.index("12:00 [") < day.index("13:00 [")
    assert "[2024-05-04 →](2024-05-04.md)" in day
    assert "[← 2024-05-03](2024-05-03.md)" in (built / "notes/days/2024/2024-05-04.md").read_text("utf-8")


def states(home: Path) -> dict[str, tuple[int, bytes]]:
    return {path.relative_to(home).as_posix(): (path.stat().st_mtime_ns, path.read_bytes()) for path in notes(home)}


def test_an_unchanged_archive_changes_no_file(home: Path, archive: Run) -> None:
    before = states(home)
    assert archive("ingest").code == 0
    assert states(home) == before


def test_a_conversation_that_grows_changes_its_page_and_no_note(home: Path, archive: Run) -> None:
    before = states(home)
    grown = chats()
    node = chat(
        "lamp", "Why did the lighthouse go dark?", "The generator ran out of diesel at three.", "And now?", "It is lit."
    )
    node["title"] = grown[0]["title"]
    export(home / "inbox/chats/conversations.json", node, *grown[1:])
    assert archive("ingest").code == 0
    after = states(home)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    page = next(name for name in before if name.startswith("conversations/chatgpt/2024/2024-05-03-todo-x-yes-"))
    assert page in changed
    rooms = [set(properties(state[page][1].decode())["rooms"]) for state in (before, after)]
    moved = {f"notes/rooms/{room}/2024-05.md" for room in rooms[0] ^ rooms[1]}
    assert {name for name in changed if name.count("/") == 3} <= {page} | moved
    assert not [name for name in changed if name.startswith("notes/days/")]


def test_a_new_conversation_changes_the_notes_it_belongs_to(home: Path, archive: Run) -> None:
    before = states(home)
    new = chat("new", "What about the harbour lamp?", "It was never out.", start=START + 2 * DAY)
    export(home / "inbox/more/conversations.json", new)
    assert archive("ingest").code == 0
    after = states(home)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    rooms = {name for name in changed if name.startswith("notes/rooms/")}
    assert {name for name in changed if name.startswith("notes/")} - rooms <= {
        "notes/README.md",
        "notes/days/2024.md",
        "notes/days/2024/2024-05-04.md",
        "notes/days/2024/2024-05-05.md",
        "notes/days/2024/2024-06-12.md",
    }
    assert {name for name in rooms if name.count("/") == 3} == {name for name in rooms if name.endswith("/2024-05.md")}
    assert sum(name.startswith("conversations/") for name in changed) == 1


def test_a_purged_conversation_leaves_no_line_and_no_title(home: Path, archive: Run) -> None:
    result = archive("purge", "chatgpt:later", "--yes", "--json")
    assert result.code == 0
    for name, text in texts(home).items():
        assert "a: b" not in text, name
        assert "decision record" not in text, name
    assert not (home / "notes/days/2024/2024-06-12.md").exists()
    assert all((home / name).parent.joinpath(unquote(target)).is_file() for name, target in links(home))


@pytest.mark.slow
def test_a_purged_value_leaves_the_users_words_in_notes_too(
    home: Path, archive: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = home / "notes/days/2024/2024-05-03.md"
    day.write_text(day.read_text("utf-8") + "\nasked by Gundula Quendel\n", encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Gundula Quendel"), "utf-8"))
    assert archive("purge", "--value-from-stdin", "--yes", "--json").code == 0
    text = day.read_text("utf-8")
    assert "Gundula" not in text
    assert "asked by" in text


@pytest.mark.slow
def test_a_title_that_is_masked_now_is_masked_in_the_notes(home: Path, archive: Run) -> None:
    with (home / "palace.toml").open("a", encoding="utf-8") as file:
        file.write('\n[redaction]\nprivate_patterns = ["a: b"]\n')
    archive("ingest")
    day = home / "notes/days/2024/2024-06-12.md"
    assert "a: b" not in (day.read_text("utf-8") if day.exists() else "")


@pytest.mark.slow
def test_a_rebuild_makes_the_notes_again_and_keeps_what_is_the_users(home: Path, archive: Run) -> None:
    before = texts(home)
    day = home / "notes/days/2024/2024-05-04.md"
    day.write_text(day.read_text("utf-8").replace("tags: []", "tags:\n  - mine") + "my words\n", encoding="utf-8")
    shutil.rmtree(home / "notes/rooms")
    (home / "notes/README.md").unlink()
    (home / "notes/days/2024/2024-05-03.md").unlink()
    assert archive("rebuild").code == 0
    after = texts(home)
    mine = after.pop("notes/days/2024/2024-05-04.md")
    assert mine.endswith("my words\n")
    assert "  - mine" in mine
    assert after == {name: text for name, text in before.items() if name != "notes/days/2024/2024-05-04.md"}


@pytest.mark.slow
def test_the_notes_are_no_source(home: Path, archive: Run) -> None:
    """Palace does not take in what it wrote itself, also where a source holds the home."""
    with (home / "palace.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[[sources]]\npath = "{home}"\n')
    before = Home(load_settings(home)).lake.read("clean/conversations", ["2024-05"]).height
    archive("ingest")
    assert Home(load_settings(home)).lake.read("clean/conversations", ["2024-05"]).height == before


# --- tags ----------------------------------------------------------------------------------------------------------------

# What Obsidian's own parser takes for a tag (https://help.obsidian.md/tags: letters, digits, `_`, `-`, `/`, and at least
# one character that is no digit).
FORBIDDEN = set("!\"#$%&'()*+,.:;<=>?@^`{|}~[]\\")


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("烤箱", "烤箱"),
        ("#repair", "repair"),
        ("two words", "two-words"),
        ("a|b", "a-b"),
        ("[[link]]", "link"),
        ('"quoted"', "quoted"),
        ("../../etc", "etc"),
        ("a/b/c", "a/b/c"),
        ("a / b", "a/b"),
        ("nul\0nul", "nul-nul"),
        ("2026", "_2026"),
        ("1-2", "1-2"),
        ("三", "三"),
        ("हिन्दी", "हिन्दी"),
        ("🔥", "🔥"),
        ("v1.2", "v1-2"),
        ("snake_case-kebab", "snake_case-kebab"),
        ("[REDACTED:password]", "REDACTED-password"),
        ("#", ""),
        ("...", ""),
        ("长" * 300, "长" * 60),
    ],
)
def test_a_tag_is_one_for_obsidian(text: str, tag: str) -> None:
    assert as_tag(text) == tag


@given(st.text(max_size=80))
def test_any_text_becomes_a_tag_that_stays_as_it_is(text: str) -> None:
    tag = as_tag(text)
    assert as_tag(tag) == tag
    assert not FORBIDDEN.intersection(tag)
    assert not any(char.isspace() for char in tag)
    assert not tag.isdecimal()
