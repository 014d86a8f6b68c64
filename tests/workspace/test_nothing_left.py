"""What redaction or a purge takes stays nowhere in a home: not in old rows, logs, names of files, parts of a session, memory,
tables and indexes. Each test says a value in every field that a person or an agent can fill."""

from __future__ import annotations

import random
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palace_pipeline.ingest.session_names import ready_sessions
from palace_pipeline.purge import find_value, purge_value
from palace_pipeline.store.home import Home
from palace_pipeline.transcripts.page_path import slug
from palace_pipeline.workspace import index
from palace_pipeline.workspace.api import Page, Workspace
from palace_pipeline.workspace.hiding import hide_secrets
from palace_pipeline.workspace.locks import PageBusy
from palace_pipeline.workspace.memory import entities, facts, set_entity, set_fact, set_preference
from palace_pipeline.workspace.sweeping import all_sessions, sweep
from tests.archive_texts import UNREDACTED, raw_bytes, stored_texts
from tests.rebuild.archives import home_at, take

ROOT = Path(__file__).parents[2]


def _password() -> str:
    """Nothing in it is repeated or in order: the rules would take it for an example."""
    chance = random.SystemRandom()
    letters = "".join(
        letter for pair in zip(chance.sample("hrxbtn", 4), chance.sample("7395", 4), strict=True) for letter in pair
    )
    return f"Kiwi{letters}Q"


def _forms(value: str) -> Iterator[str]:
    yield from dict.fromkeys((value, value.lower(), slug(value), slug(value)[:8]))


def _holding(home: Home, value: str, *, unredacted: bool = False) -> set[str]:
    """Where any form of a value still stands: names, bytes and texts of every file."""
    left: set[str] = set()
    for form in _forms(value):
        left |= {f"{place}: {form}" for place, text in stored_texts(home.path) if form in text}
        left |= {f"bytes of {name}: {form}" for name, data in raw_bytes(home.path) if form.encode() in data}
        if unredacted:
            left |= {
                f"{path.relative_to(home.path)}: {form}"
                for path in home.path.rglob("*")
                if path.is_file()
                and path.relative_to(home.path).as_posix().startswith(UNREDACTED)
                and form.encode() in path.read_bytes()
            }
    return left


def _said_everywhere(live: Workspace, value: str) -> Page:
    """A session, one that it began, and memory, which say a value in each field."""
    page = live.new(
        f"run {value}",
        input=f"hello {value} | `{value}`",
        role=f"role {value}",
        tags=[f"t{value}", value, "ok"],
        model=f"model {value}",
        summary=f"about {value} and other things",
    )
    live.append(page.id, "tools", f"login `{value}`\n" + "x" * 370 + f" {value}", who=f"sh {value}")
    live.append(page.id, "conclusion", f"We used {value}.", tags=[f"late-{value}"])
    live.new(f"child {value}", parent=page.id, input=value)
    set_fact(live, f"host {value}", value)
    set_preference(live, "word", value)
    set_entity(live, f"Box {value}", "holds", value)
    return page


def test_a_secret_shown_late_goes_from_all_that_was_said_before(home: Home, live: Workspace) -> None:
    value = _password()
    page = _said_everywhere(live, value)
    take(home, home.path / "sessions")
    assert len(_holding(home, value)) > 20
    shown = live.append(page.id, "judgement", f"the password is {value}")
    assert shown.path.exists()
    assert not [place for place in _holding(home, value) if re.search(r"sessions|memory|index\.md|logs", place)]
    take(home, home.path / "sessions")
    assert _holding(home, value) == set()
    session = live.load(page.id).session
    assert session.title == "run [REDACTED:password]"
    assert session.tags == ("tREDACTED-password", "REDACTED-password", "ok", "late-REDACTED-password")
    assert session.sections["input"][0].text == "hello [REDACTED:password] | `[REDACTED:password]`"
    assert facts(live) == {"host REDACTED-password": "[REDACTED:password]"}
    assert [called for _, called, _ in entities(Workspace(settings=home.settings))] == [("Box [REDACTED:password]",)]
    row = index.find(home.path, page.id)
    assert row is not None
    assert (home.path / row.path).is_file()


def test_and_from_what_is_said_after_it(home: Home, live: Workspace) -> None:
    value = _password()
    page = live.new("before", input="hello")
    child = live.new("child", parent=page.id)
    live.append(page.id, "judgement", f"the password is {value}")
    _said_everywhere_in(live, child.id, value)
    _said_everywhere_in(live, page.id, value)
    set_fact(live, "host", value)
    set_entity(live, f"Box {value}", "holds", value)
    assert _holding(home, value) == set()


def _said_everywhere_in(live: Workspace, session: str, value: str) -> None:
    live.append(session, "tools", value, who=f"sh {value}", tags=[value], summary=f"of {value}", model=value)


@pytest.mark.parametrize("title", ["{}", "we spoke of {} today", "a {}", "这是密码 {} 的事"])
def test_a_name_that_was_cut_off_inside_of_it_is_another(home: Home, live: Workspace, title: str) -> None:
    value = _password()
    page = live.new(title.format(value), input="hello")
    live.append(page.id, "judgement", f"the password is {value}")
    assert _holding(home, value) == set()


def test_the_earlier_parts_of_a_long_session_lose_it_too(home: Home, live: Workspace) -> None:
    value = _password()
    page = live.new("long", input=f"we spoke of {value} today")
    for number in range(30):
        topic = "oven thermostat heat" if number < 15 else "database index rows"
        live.append(page.id, "input", f"question {number} {topic}")
        live.append(page.id, "judgement", f"answer {number} {topic} " * 100)
    parts = [path for path in live.sessions() if path != page.path]
    assert parts
    assert _holding(home, value)
    live.append(page.id, "judgement", f"the password is {value}")
    assert _holding(home, value) == set()
    links = re.findall(r"\]\(\.\./([^)]+)\)", live.load(page.id).session.intro)
    assert links
    assert all((home.path / "sessions" / link).is_file() for link in links)


def test_what_a_killed_writer_left_is_finished_by_the_next(
    home: Home, live: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = _password()
    page = _said_everywhere(live, value)
    with monkeypatch.context() as killed:
        killed.setattr("palace_pipeline.workspace.sweeping.sweep", _killed)
        with pytest.raises(KeyboardInterrupt):
            live.append(page.id, "judgement", f"the password is {value}")
    assert _holding(home, value)
    with home.writing():
        ready_sessions(home)
    left = {place for place in _holding(home, value) if not place.endswith(f": {slug(value)[:8]}")}
    assert left == set()


def test_a_page_that_is_held_puts_it_off_and_loses_no_word(
    home: Home, live: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = _password()
    page = _said_everywhere(live, value)
    with monkeypatch.context() as held:
        held.setattr("palace_pipeline.workspace.sweeping.sweep", _busy)
        done = live.append(page.id, "judgement", f"the password is {value}")
    assert done.session.sections["judgement"][0].text == "the password is [REDACTED:password]"
    assert "· waiting ·" in (home.path / "logs/errors.md").read_text()
    assert _holding(home, value)
    live.append(page.id, "todo", "- [ ] go on")
    left = {place for place in _holding(home, value) if not place.endswith(f": {slug(value)[:8]}")}
    assert left == set()


def _busy(*_: object) -> int:
    raise PageBusy("another page is held")


def _killed(*_: object) -> int:
    raise KeyboardInterrupt


def test_a_page_by_hand_keeps_its_form(home: Home, live: Workspace) -> None:
    value = _password()
    page = live.new("by hand", input="hello")
    other = live.new("child", parent=page.id)
    text = (
        other.path.read_text()
        .replace("tags:", f"tags: [a, {value}]  # {value}")
        .replace("# child", f"#  child {value}")
    )
    other.path.write_text(text)
    live.append(page.id, "judgement", f"the password is {value}")
    read = live.load(other.id)
    assert read.session.status == "open"
    assert read.session.tags == ("a", "REDACTED-password")
    assert _holding(home, value) == set()


def test_new_rules_mask_every_field(home: Home, live: Workspace) -> None:
    page = _said_everywhere(live, "PROJ-7731")
    live.append(page.id, "todo", "call PROJ-7731")
    take(home, home.path / "sessions")
    settings = home.path / "palace.toml"
    settings.write_text("[redaction]\nprivate_patterns = ['PROJ-\\d{4}']\n")
    anew = home_at(home.path)
    take(anew, home.path / "sessions")
    take(anew, home.path / "sessions")
    left = {
        place for place in _holding(anew, "PROJ-7731") if not place.startswith(("palace.toml", "bytes of palace.toml"))
    }
    assert {place for place in left if "proj-773:" not in place} == set()
    assert [called for _, called, _ in entities(Workspace(settings=home.settings))] == [
        ("Box [REDACTED:private-pattern]",)
    ]


@pytest.mark.parametrize(
    "make", [lambda: f"Zork{secrets.token_hex(4)}Q", lambda: f"Anna Maria {secrets.token_hex(3)} Ng"]
)
def test_a_purged_value_goes_in_every_form_that_names_of_files_have(
    home: Home, live: Workspace, make: Callable[[], str], tmp_path: Path
) -> None:
    value = make()
    page = _said_everywhere(live, value)
    (home.path / "conversations").mkdir(exist_ok=True)
    take(home, home.path / "sessions")
    live.append(page.id, "todo", "- [ ] later")
    with home.writing():
        found = find_value(home, value)
        assert found.found.files == []
        purged = purge_value(home, found, vault=True, batch="p")
    assert purged.clean, purged.proof.found
    assert purged.files == []
    assert _holding(home, value, unredacted=True) == set()
    assert live.load(page.id).path.is_file()
    take(home, home.path / "sessions")
    assert _holding(home, value, unredacted=True) == set()


def test_a_name_from_before_is_found_by_a_purge_though_the_title_is_clean(home: Home, live: Workspace) -> None:
    """As older versions left it: the title was masked, and the file kept its name."""
    value = f"Zork{secrets.token_hex(4)}Q"
    page = live.new(f"about {value}", input="hello")
    page.path.write_text(page.path.read_text().replace(value, "[REDACTED:password]"))
    take(home, home.path / "sessions")
    with home.writing():
        purged = purge_value(home, find_value(home, value), vault=True, batch="p")
    assert purged.clean, purged.proof.found
    assert _holding(home, value, unredacted=True) == set()


def test_a_purge_says_what_it_leaves_of_a_file_of_yours_that_is_called_so(home: Home, tmp_path: Path) -> None:
    """The title of a document is the name of its file."""
    value = f"Zork{secrets.token_hex(4)}Q"
    folder = home.path / "inbox"
    folder.mkdir(parents=True)
    document = folder / f"about-{value.lower()}.md"
    document.write_text(f"# Apples\n\nSome words of mine about {value}, and of apples.\n")
    other = folder / "plain.md"
    other.write_text("# Pears\n\nSome words of mine about pears.\n")
    take(home, folder)
    with home.writing():
        purged = purge_value(home, find_value(home, value), vault=True, batch="p")
    assert purged.clean, purged.proof.found
    assert purged.files == [f"{folder}/about-[REDACTED:purged].md"]
    assert purged.called == [str(folder)]
    take(home, folder)
    left = {place for place in _holding(home, value, unredacted=True) if "inbox" not in place}
    assert {place for place in left if not place.startswith("name of a file")} == set()
    assert document.read_text().count(value) == 1


def test_a_purged_word_stays_in_longer_words_and_other_texts(home: Home, live: Workspace) -> None:
    """Only names lose the form in lower case, and only where it is a word of its own."""
    page = live.new("The annals of Hannah", input="anna.example.org is not Anna, and hannah is nobody")
    other = live.new("A call with anna", input="hello")
    take(home, home.path / "sessions")
    with home.writing():
        purged = purge_value(home, find_value(home, "Anna"), vault=True, batch="p")
    assert purged.clean, purged.proof.found
    session = live.load(page.id)
    assert session.path.name.endswith("-the-annals-of-hannah.md")
    assert session.session.title == "The annals of Hannah"
    assert (
        session.session.sections["input"][0].text == "anna.example.org is not [REDACTED:purged], and hannah is nobody"
    )
    renamed = live.load(other.id)
    assert renamed.path.name.endswith("-a-call-with-redacted.md")
    assert renamed.session.title == "A call with [REDACTED:purged]"


@pytest.mark.parametrize(("processes", "seed"), [(12, 7), pytest.param(20, 1130, marks=pytest.mark.slow)])
def test_many_writers_at_once_some_of_them_killed(tmp_path: Path, processes: int, seed: int) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.workspace.writers",
        "shown",
        str(tmp_path / "home"),
        str(processes),
        str(seed),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


ODD = [
    "Kw|h7[r3]x9\\b<Q>",
    "Kw\"h7'r3`x9bQ",
    "口令七三九甲乙丙丁",
    "Kw h7 r3 x9 bQ and more of it",
    "Kwh7r3" + "".join(f"{n}x{n * 7 % 10}" for n in range(40)),
    "Kwh7/r3+x9=bQ%20&c",
    "Kwh7: r3 #x9 - bQ",
]


@pytest.mark.parametrize("value", ODD)
def test_a_sweep_finds_it_however_pages_rows_and_logs_write_it(workspace: Workspace, value: str) -> None:
    """Before anybody knew: nothing of this is a secret by its form, so it is written as it is."""
    page = workspace.new(f"{'on ' * 30}{value}", input=f"hello `{value}`", tags=[value], summary=f"{'of ' * 20}{value}")
    workspace.append(page.id, "tools", "x" * 330 + f" {value}", who=f"tool {value}")
    workspace.append(page.id, "conclusion", f"{value}. Then we went.")
    set_fact(workspace, f"of {value}", value)
    set_entity(workspace, f"Box {value}", "holds", value)
    assert _in_files(workspace.home, value)
    sweep(workspace.home, hide_secrets({value: "password"}), all_sessions(workspace.home))
    assert _in_files(workspace.home, value) == []
    session = workspace.load(page.id).session
    assert session.problems == ()
    assert session.sections["input"][0].text == "hello `[REDACTED:password]`"
    assert len(index.rows(workspace.home)) == 1
    assert [called[0].removesuffix("…") for _, called, _ in entities(workspace)] == ["Box [REDACTED:password]"]
    again = {path: path.read_bytes() for path in workspace.home.rglob("*.md")}
    assert sweep(workspace.home, hide_secrets({value: "password"}), all_sessions(workspace.home)).changed == 0
    assert {path: path.read_bytes() for path in workspace.home.rglob("*.md")} == again


def _in_files(home: Path, value: str) -> list[str]:
    """Files that show the value or its beginning, in a name or, with what files escape undone, in the text."""
    starts = {value, value[:7], value.lower()[:7], slug(value)[:7]}
    found: list[str] = []
    for path in home.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        texts = (path.name, text, text.replace("\\", ""), re.sub(r"\\(.)", r"\1", text), text.replace("'", "`"))
        found += [path.name for start in starts if any(start in one for one in texts)]
    return found
