"""`palace export`, as a person and as a program meet it."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest

from palace_pipeline.model import CONVERSATIONS
from palace_pipeline.publish import browser
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from tests.cli.conftest import Run

KINDS = ("html", "docx", "md")


@pytest.fixture
def archive(built: Path, palace: Run) -> Run:
    return partial(palace, home=built)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def ids(value: dict[str, object], folder: Path) -> list[str]:
    """Which conversations of the archive were written, by a word of each."""
    words = {"dark?": "lighthouse", "lit again": "again", "数据库": "database", "pond": "garden"}
    names = value["files"]
    assert isinstance(names, list)
    texts = [(folder / name).read_text("utf-8") for name in names]
    return [next(name for word, name in words.items() if word in text) for text in texts]


@pytest.mark.parametrize("kind", KINDS)
def test_one_conversation(archive: Run, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "new" / "out"
    result = archive("export", "--to", kind, str(folder), "chatgpt:lighthouse", "--json")
    assert result.code == 0
    value = result.json
    assert (value["conversations"], value["written"], value["messages"], value["skipped"]) == (1, 1, 2, [])
    index = "index.md" if kind == "md" else "index.html"
    assert sorted(files(folder)) == sorted([*value["files"], index])
    assert value["files"][0].startswith("2024-05-03-chat-lighthouse-")
    assert value["files"][0].endswith(f".{kind}")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())
    assert value["files"][0] in (folder / index).read_text("utf-8")


def test_a_page_names_its_conversation(archive: Run, built: Path, tmp_path: Path) -> None:
    page = next(built.glob("conversations/chatgpt/*/*database*.md"))
    value = archive("export", str(tmp_path / "out"), str(page), "chatgpt:garden", "--json").json
    assert ids(value, tmp_path / "out") == ["database", "garden"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["--search", "lighthouse"], {"lighthouse", "again"}),
        (["--search", "lighthouse", "--limit", "1"], 1),
        (["--search", "lighthouse", "--until", "2024-05-01"], set()),
        (["--search", "zeppelin"], set()),
        (["--day", "2024-05-03"], {"lighthouse", "again"}),
        (["--day", "2024-05-04"], {"database"}),
        (["--day", "2024-05-05"], set()),
        (["--since", "2024-05-04"], {"database", "garden"}),
        (["--since", "2024-05-04", "--until", "2024-05-31"], {"database"}),
        (["--provider", "chatgpt", "--until", "2024-05-03"], {"lighthouse", "again"}),
        (["--all"], {"lighthouse", "again", "database", "garden"}),
    ],
)
def test_what_is_chosen(archive: Run, tmp_path: Path, asked: list[str], found: set[str] | int) -> None:
    value = archive("export", "--to", "md", str(tmp_path / "out"), *asked, "--json").json
    written = ids(value, tmp_path / "out")
    if isinstance(found, int):
        assert len(written) == found
    else:
        assert set(written) == found
        assert len(written) == len(found)
    assert (tmp_path / "out").exists() == bool(written)


def test_a_room(archive: Run, tmp_path: Path) -> None:
    rooms = archive("sql", "SELECT DISTINCT room, conversation_id FROM drawers", "--json").json
    room = rooms[0]["room"]
    wanted = {row["conversation_id"] for row in rooms if row["room"] == room}
    value = archive("export", "--to", "md", str(tmp_path / "out"), "--room", room, "--json").json
    assert set(ids(value, tmp_path / "out")) == wanted
    wrong = archive("export", str(tmp_path / "out"), "--room", "no-such-room")
    assert wrong.code == 2
    assert room in wrong.err


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_export_is_the_same_bytes_and_touches_nothing(archive: Run, tmp_path: Path, kind: str) -> None:
    archive("export", "--to", kind, str(tmp_path / "a"), "--all")
    archive("export", "--to", kind, str(tmp_path / "b"), "--all")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    times = [path.stat().st_mtime_ns for path in sorted((tmp_path / "a").iterdir())]
    again = archive("export", "--to", kind, str(tmp_path / "a"), "--all", "--json").json
    assert (again["written"], again["unchanged"]) == (0, 4)
    assert [path.stat().st_mtime_ns for path in sorted((tmp_path / "a").iterdir())] == times


def test_a_file_that_is_not_ours_stays_until_asked(archive: Run, tmp_path: Path) -> None:
    first = archive("export", str(tmp_path / "out"), "chatgpt:garden", "--json").json
    path = tmp_path / "out" / first["files"][0]
    path.write_text("my own words", encoding="utf-8")
    again = archive("export", str(tmp_path / "out"), "chatgpt:garden")
    assert again.code == 1
    assert "--overwrite" in again.out
    assert path.read_text("utf-8") == "my own words"
    assert archive("export", str(tmp_path / "out"), "chatgpt:garden", "--overwrite").code == 0
    assert "pond" in path.read_text("utf-8")


def test_nothing_outside_the_folder_is_written(archive: Run, built: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.html"
    outside.write_text("kept", encoding="utf-8")
    (tmp_path / "out").mkdir()
    name = archive("export", str(tmp_path / "x"), "chatgpt:garden", "--json").json["files"][0]
    (tmp_path / "out" / name).symlink_to(outside)
    (tmp_path / "out" / "index.html").symlink_to(outside)
    assert archive("export", str(tmp_path / "out"), "chatgpt:garden", "--overwrite").code == 0
    assert outside.read_text("utf-8") == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "outside.html", "x"]
    for inside in (built, built / "conversations", built / "inbox" / "new"):
        refused = archive("export", str(inside), "chatgpt:garden")
        assert refused.code == 2
        assert "choose a folder outside" in refused.err
    (tmp_path / "link").symlink_to(built / "conversations")
    assert archive("export", str(tmp_path / "link"), "chatgpt:garden").code == 2


def test_a_chat_that_is_exported_too_is_linked_as_a_file(archive: Run, tmp_path: Path) -> None:
    both = archive("export", str(tmp_path / "both"), "--day", "2024-05-03", "--json").json
    other = next(name for name in both["files"] if "lighthouse" in name)
    page = next(name for name in both["files"] if "again" in name)
    assert f'<a href="{other}"' in (tmp_path / "both" / page).read_text("utf-8")
    archive("export", str(tmp_path / "one"), "chatgpt:again")
    assert '<a href="https://chatgpt.com/c/lighthouse"' in (tmp_path / "one" / page).read_text("utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_into_the_folder_of_another_keeps_the_links_of_both(archive: Run, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "out"
    index = folder / ("index.md" if kind == "md" else "index.html")
    first = archive("export", "--to", kind, str(folder), "--search", "lighthouse", "--json").json["files"]
    second = archive("export", "--to", kind, str(folder), "chatgpt:garden", "--json").json
    assert (second["earlier"], len(second["files"])) == (len(first), 1)
    links = [quote(name) for name in sorted([*first, *second["files"]])]
    text = index.read_text("utf-8")
    assert [text.count(link) for link in links] == [1] * 3
    assert sorted(links, key=text.index) == links  # by date
    assert "ran out of **diesel**" in text
    assert "# Conversations" in text or '<h1 dir="auto">Conversations<' in text
    said = archive("export", "--to", kind, str(folder), "chatgpt:garden").out
    assert "The index lists 2 files of earlier exports as well." in said
    assert index.read_text("utf-8") == text
    whole = archive("export", "--to", kind, str(folder), "--all", "--json").json
    assert (whole["earlier"], whole["unchanged"]) == (0, 3)


def test_an_index_lists_what_lies_there_and_nothing_else(archive: Run, tmp_path: Path) -> None:
    """A file that is gone is no link; one that somebody changed still is; one that no index names is found by its seal."""
    folder = tmp_path / "out"
    names = archive("export", str(folder), "--all", "--json").json["files"]
    gone, changed, alone, again = names
    (folder / gone).unlink()
    (folder / changed).write_text("mine")
    archive("export", "--overwrite", str(folder), "chatgpt:garden")
    index = folder / "index.html"
    index.write_text("mine")
    archive("export", "--overwrite", str(folder), "chatgpt:garden")
    text = index.read_text("utf-8")
    assert [quote(name) in text for name in names] == [False, False, True, True]
    assert f">{alone[11:-14].replace('-', ' ')}</a>" in text
    (folder / "notes.html").write_text("<p>mine</p>")
    archive("export", "--to", "docx", str(folder), "chatgpt:garden")
    text = index.read_text("utf-8")
    assert "notes.html" not in text
    assert text.count(quote(again)) == 1
    assert text.count(quote(again.replace(".html", ".docx"))) == 1


def test_what_must_not_be_shown_any_more_is_not_linked_either(copy: Path, palace: Run, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert palace("export", str(folder), "--all", home=copy).code == 0
    (copy / "palace.toml").write_text(
        '[redaction]\nprivate_patterns = ["zebrafish-[0-9]+", "(?i)the lighthouse lit"]\n'
    )
    result = palace("export", str(folder), "chatgpt:database", "chatgpt:garden", home=copy)
    assert result.code == 1
    assert "a file of it from an earlier export is still in the folder: delete it" in result.out
    text = (folder / "index.html").read_text("utf-8")
    assert "garden" not in text
    assert "database" in text


def test_an_index_of_a_search_has_its_quotes(archive: Run, tmp_path: Path) -> None:
    archive("export", str(tmp_path / "out"), "--search", "generator diesel")
    assert "ran out of **diesel**" in (tmp_path / "out" / "index.html").read_text("utf-8")


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    """An archive that may be changed."""
    shutil.copytree(built, tmp_path / "home")
    return tmp_path / "home"


def test_what_the_rules_of_today_would_mask_stays_at_home(copy: Path, palace: Run, tmp_path: Path) -> None:
    with (copy / "palace.toml").open("a", encoding="utf-8") as file:
        file.write('[redaction]\nprivate_patterns = ["zebrafish-[0-9]+"]\n')
    for kind in KINDS:
        result = palace("export", "--to", kind, str(tmp_path / kind), "--all", "--json", home=copy)
        assert result.code == 1
        assert [(skip["where"], skip["unit"]) for skip in result.json["skipped"]] == [
            ("chatgpt:garden", "conversation")
        ]
        assert "palace ingest" in result.json["skipped"][0]["reason"]
        assert result.json["written"] == 3
        assert not any("garden" in path.name for path in (tmp_path / kind).iterdir())
    assert not any(b"zebrafish" in data for kind in KINDS for data in files(tmp_path / kind).values())


def test_a_withheld_conversation_does_not_leave(copy: Path, palace: Run, tmp_path: Path) -> None:
    lake = Home(load_settings(copy)).lake
    heads = lake.read("clean/conversations", ["2024-06"])
    changed = heads.with_columns(status=heads["status"].str.replace("ok", "withheld")).select(list(CONVERSATIONS))
    lake.replace("clean/conversations", "2024-06", [("chatgpt", "garden")], changed)
    result = palace("export", str(tmp_path / "out"), "chatgpt:garden", "--json", home=copy)
    assert result.code == 1
    assert "withheld" in result.json["skipped"][0]["reason"]
    assert list((tmp_path / "out").iterdir()) == []


def test_a_month_that_cannot_be_read_costs_only_itself(copy: Path, palace: Run, tmp_path: Path) -> None:
    next(copy.glob("lake/clean/messages/2024-06*.parquet")).write_bytes(b"torn")
    result = palace("export", str(tmp_path / "out"), "--all", "--json", home=copy)
    assert result.code == 1
    assert result.json["written"] == 3
    assert "palace backfill" in result.json["skipped"][0]["reason"]


def test_wrong_usage(archive: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for arguments, told in (
        ([str(tmp_path / "out")], "say what to export"),
        ([str(tmp_path / "out"), "chatgpt:none"], "no conversation"),
        ([str(tmp_path / "out"), "chatgpt:garden", "--day", "2024-05-03"], "not both"),
        ([str(tmp_path / "out"), "--day", "2024-05-03", "--since", "2024-05-03"], "--day"),
        ([str(tmp_path / "out"), "--day", "soon"], "no day"),
        ([str(tmp_path / "file"), "chatgpt:garden"], "is a file"),
        (["chatgpt:garden", str(tmp_path / "out")], "the folder comes first"),
        ([str(tmp_path / "out"), "--to", "rtf", "--all"], "rtf"),
    ):
        result = archive("export", *arguments)
        assert result.code == 2, arguments
        assert told in result.err
    assert not (tmp_path / "out").exists()


def test_without_a_browser_pdf_says_what_is_missing(
    archive: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "_ON_MACS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    result = archive("export", "--to", "pdf", str(tmp_path / "out"), "chatgpt:garden")
    assert result.code == 3
    assert "chromium" in result.err
    assert "--to html" in result.err
    assert not (tmp_path / "out").exists()
