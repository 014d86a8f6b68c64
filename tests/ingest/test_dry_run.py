"""A dry run gives the numbers of the run that follows, shows what it understood, and leaves no trace."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.ingest import Ingested, ingest, recipes
from palace_pipeline.ingest.preview import SAMPLES, Preview, one_line
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.settings import RedactionSettings, load_settings
from palace_pipeline.store.home import Home
from tests.ingest.exports_for_tests import START, chat, export

FIXTURES = Path(__file__).parent.parent / "fixtures/exports"
CASES = sorted(path.parent for path in FIXTURES.glob("*/expected.json"))


def tree(*roots: Path) -> dict[str, bytes]:
    """Every file below some folders with its bytes; folders too, so that a new empty one shows."""
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        for root in roots
        for path in root.rglob("*")
    }


def a_home(folder: Path) -> Home:
    return Home(load_settings(folder / "home"))


def both(home: Home, *paths: Path, limit: int | None = None) -> Ingested:
    """A dry run and the run that follows, compared; returns the latter."""
    roots = [home.path, *(path for path in paths if path.is_dir())]
    before = tree(*roots)
    expected = ingest(home, list(paths), batch="dry", dry_run=True, limit=limit)
    assert tree(*roots) == before
    with home.writing():
        got = ingest(home, list(paths), batch="real", limit=limit)
    assert expected.as_counts() == got.as_counts()
    assert expected.days == got.days
    return got


# --- the same numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_of_every_format(case: Path, tmp_path: Path) -> None:
    shutil.copytree(case, tmp_path / "in", ignore=shutil.ignore_patterns("expected.json"))
    home = a_home(tmp_path)
    first = both(home, tmp_path / "in")
    assert first.files["found"] > 0
    again = both(home, tmp_path / "in")
    assert again.conversations["new"] == again.conversations["updated"] == again.messages["new"] == 0
    assert again.conversations["unchanged"] == first.conversations["new"] + first.conversations["unchanged"]


def test_of_all_formats_at_once_and_of_a_part_of_the_files(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES, tmp_path / "in", ignore=shutil.ignore_patterns("expected.json"))
    home = a_home(tmp_path)
    both(home, tmp_path / "in", limit=7)
    both(home, tmp_path / "in")
    both(home, tmp_path / "in", tmp_path / "nowhere")


def test_of_exports_that_grew_shrank_and_repeat_each_other(tmp_path: Path) -> None:
    inbox, home = tmp_path / "in", a_home(tmp_path)
    export(inbox / "may.json", chat("a", "hi", "hello"), chat("b", "one", "two"), chat("c", "x"))
    both(home, inbox)
    export(inbox / "june.json", chat("a", "hi", "hello", "more", "sure"), chat("b", "one", "two"), chat("d", "new"))
    export(inbox / "may.json", chat("b", "one", "changed"), chat("e", "late", start=START + 86_400))
    found = both(home, inbox)
    assert found.conversations == {"found": 4, "new": 2, "updated": 2, "unchanged": 0, "skipped": 0}
    (inbox / "may.json").unlink()
    both(home, inbox)


def test_of_a_log_that_grows(tmp_path: Path) -> None:
    home, log = a_home(tmp_path), tmp_path / "in/0a1b2c3d-0a1b-4c5d-8e9f-0a1b2c3d4e5f.jsonl"
    source = next((FIXTURES / "11-claude-code-session").rglob("*.jsonl")).read_bytes().splitlines(keepends=True)
    log.parent.mkdir()
    for lines in (len(source) // 2, len(source)):
        log.write_bytes(b"".join(source[:lines]))
        both(home, log.parent)


def test_of_files_whose_reader_has_changed_since_they_went_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = a_home(tmp_path)
    export(tmp_path / "in/gone.json", chat("a", "hi", "hello"), chat("b", "x"))
    export(tmp_path / "in/here.json", chat("c", "hi"))
    both(home, tmp_path / "in")
    (tmp_path / "in/gone.json").unlink()
    reader = next(reader for reader in recipes.READERS if reader.format == "chatgpt-export")
    monkeypatch.setattr(type(reader), "recipe", reader.recipe + 1)
    monkeypatch.setitem(recipes.RECIPES, "chatgpt-export", str(reader.recipe))
    both(home, tmp_path / "in")


def test_of_a_single_file_that_is_gone_after_it_was_taken(tmp_path: Path) -> None:
    home, file = a_home(tmp_path), export(tmp_path / "in/a.json", chat("a", "hi"))
    both(home, file)
    file.unlink()
    (skip,) = both(home, file).skips
    assert (skip.reason, skip.expected) == ("no longer there, it was taken before", True)
    (other,) = both(home, tmp_path / "in/never-there.json").skips
    assert (other.reason, other.expected) == ("not there", False)


CHATS = st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from(["hi", "hello", "more"]), max_size=4))


@settings(max_examples=12, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["one.json", "two.json"]), CHATS), min_size=1, max_size=3))
def test_whatever_the_exports_do(looks: list[dict[str, dict[str, list[str]]]]) -> None:
    with TemporaryDirectory() as folder:
        inbox, home = Path(folder) / "in", a_home(Path(folder))
        inbox.mkdir()
        for look in looks:
            for name, chats in look.items():
                export(inbox / name, *(chat(key, *texts) for key, texts in chats.items()))
            both(home, inbox)


def test_a_dry_run_beside_a_writer_leaves_no_trace_either(tmp_path: Path) -> None:
    home, inbox = a_home(tmp_path), tmp_path / "in"
    export(inbox / "a.json", chat("a", "hi"))
    both(home, inbox)
    export(inbox / "b.json", chat("b", "hi"))
    with home.ledger() as writer:
        writer.set_meta("something", "new")
        names = {path.name for path in home.path.rglob("*")}
        found = ingest(home, [inbox], batch="dry", dry_run=True)
        assert {path.name for path in home.path.rglob("*")} == names
    assert found.conversations["new"] == 1


def test_the_ledger_is_read_as_a_killed_run_left_it(tmp_path: Path) -> None:
    home, inbox = a_home(tmp_path), tmp_path / "in"
    export(inbox / "a.json", chat("a", "hi"))
    both(home, inbox)
    ledger = home.path / "ledger.sqlite"
    writer = sqlite3.connect(ledger)
    writer.execute("PRAGMA wal_autocheckpoint=0")
    writer.execute("DELETE FROM files")
    writer.commit()
    shutil.copytree(home.path, tmp_path / "killed")
    writer.close()
    (tmp_path / "killed/ledger.sqlite-shm").unlink(missing_ok=True)
    killed = Home(load_settings(tmp_path / "killed"))
    before = tree(killed.path)
    found = ingest(killed, [inbox], batch="dry", dry_run=True)
    assert found.files["new"] == 1  # what stands in the write-ahead log counts
    assert {name for name in tree(killed.path) if "ledger" not in name} == {n for n in before if "ledger" not in n}
    assert {name: data for name, data in tree(killed.path).items() if name in before} == before


# --- what is shown ----------------------------------------------------------------------------------------------------


@pytest.fixture
def previewed(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def look(*paths: Path) -> dict[str, Any]:
        preview = Preview()
        ingest(a_home(tmp_path), list(paths), batch="dry", dry_run=True, preview=preview)
        return preview.shown(Funnel(RedactionSettings(), b"key"), {})

    return look


def test_the_pick_list_names_every_conversation_and_agrees_with_the_counts(
    previewed: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    inbox, home = tmp_path / "in", a_home(tmp_path)
    export(inbox / "one.json", chat("a", "hi", "hello"), chat("b", "x"))
    with home.writing():
        ingest(home, [inbox], batch="real")
    export(inbox / "two.json", chat("a", "hi", "hello", "more"), chat("c", "y", start=START + 86_400))
    shown = previewed(inbox)
    keys = ("conversation_id", "outcome", "title", "first_day", "messages", "new_messages", "updated_messages")
    assert [tuple(c[key] for key in keys) for c in shown["conversations"]] == [
        ("c", "new", "Chat c", "2024-05-04", 1, 1, 0),
        ("a", "updated", "Chat a", "2024-05-03", 3, 1, 0),
        ("b", "unchanged", None, "2024-05-03", 1, 0, 0),
    ]
    (of,) = shown["formats"]
    assert {key: of[key] for key in ("format", "new", "updated", "unchanged")} == {
        "format": "chatgpt-export",
        "new": 1,
        "updated": 1,
        "unchanged": 1,
    }


def test_titles_that_the_archive_has_are_shown_for_what_is_unchanged(tmp_path: Path) -> None:
    home, file = a_home(tmp_path), export(tmp_path / "in/one.json", chat("a", "hi"))
    with home.writing():
        ingest(home, [file], batch="real")
    preview = Preview()
    ingest(home, [file], batch="dry", dry_run=True, preview=preview)
    shown = preview.shown(Funnel(RedactionSettings(), b"key"), {("chatgpt", "a"): "As it was published"})
    assert [c["title"] for c in shown["conversations"]] == ["As it was published"]


def test_a_few_of_each_format_are_shown_as_they_were_understood(
    previewed: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    export(tmp_path / "in/one.json", *(chat(f"c{n}", f"question {n}", "answer", "and?") for n in range(40)))
    (of,) = previewed(tmp_path / "in")["formats"]
    assert len(of["samples"]) == SAMPLES
    sample = of["samples"][0]
    number = sample["conversation_id"].removeprefix("c")
    assert sample == {
        "provider": "chatgpt",
        "conversation_id": f"c{number}",
        "title": f"Chat c{number}",
        "name": f"Chat c{number}",
        "first_day": "2024-05-03",
        "last_day": "2024-05-03",
        "messages": 3,
        "roles": {"user": 2, "assistant": 1},
        "speakers": [],
        "attachments": 0,
        "first_words": f"question {number}",
    }
    again = previewed(tmp_path / "in")["formats"][0]["samples"]
    assert [s["conversation_id"] for s in again] == [s["conversation_id"] for s in of["samples"]]


def test_what_is_shown_has_been_redacted(previewed: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    token = "gh" + "p_" + "a1B2c3D4e5F6" * 3
    word = "Tr0ub4dor" + "&3xyz"
    one = chat("a", f"try {token} or {word}", "no", f"my password is {word}")
    one["title"] = f"about {token}"
    export(tmp_path / "in/one.json", one)
    shown = json.dumps(previewed(tmp_path / "in"))
    assert token not in shown
    assert word not in shown
    assert "[REDACTED:" in shown


def test_a_secret_at_the_edge_of_the_first_words_is_masked_whole(
    previewed: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    token = "gh" + "p_" + "a1B2c3D4e5F6" * 3
    export(tmp_path / "in/one.json", chat("a", f"{'word ' * 15}{token}"))
    shown = json.dumps(previewed(tmp_path / "in"))
    assert token[:8] not in shown


def test_a_resumed_session_is_shown_once(previewed: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    case = FIXTURES / "15-claude-code-resume-dup"
    shutil.copytree(case, tmp_path / "in", ignore=shutil.ignore_patterns("expected.json"))
    shown = previewed(tmp_path / "in")
    listed = {c["conversation_id"] for c in shown["conversations"]}
    assert {s["conversation_id"] for of in shown["formats"] for s in of["samples"]} <= listed
    found = ingest(a_home(tmp_path), [tmp_path / "in"], batch="dry", dry_run=True)
    counts = found.conversations
    assert len(listed) == counts["new"] + counts["updated"] + counts["unchanged"]
    assert sum(c["messages"] for c in shown["conversations"]) == found.messages["found"] - found.messages["skipped"]


def test_words_are_cut_to_one_line() -> None:
    assert one_line(" a\n\nb\tc ") == "a b c"
    assert one_line("x" * 100) == "x" * 79 + "…"
    assert len(one_line("数据库" * 100)) == 80
