"""Pages as files: found, kept, moved, and nothing of the user's lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from palace_pipeline.model import Conversation, Message, page_hash
from palace_pipeline.store import files as files_of_store
from palace_pipeline.store import pages
from palace_pipeline.store.pages import PageIndex, page_paths, remove_page, write_page
from palace_pipeline.transcripts.page import PageHead, UserParts, parse, render, take_over

HEAD = PageHead(date(2024, 5, 3))
CHAT = Conversation(
    "chatgpt",
    "c1",
    [Message("m1", "user", "How?", created_at=datetime(2024, 5, 3, 12, tzinfo=UTC)), Message("m2", "assistant", "So.")],
    title="Closing a pool",
)
GROWN = replace(CHAT, messages=[*CHAT.messages, Message("m3", "user", "Thanks!")])
HASH = page_hash("chatgpt", "c1")
NAME = f"2024-05-03-closing-a-pool-{HASH}.md"
MINE = UserParts(("pool",), ("The pool",), "\nmy words\n", "rating: 5\n")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def annotate(path: Path) -> None:
    """What a person does to a page: tags, aliases, a property, notes."""
    edit(path, "tags: []\naliases: []\n---", "tags: [pool]\naliases: The pool\nrating: 5\n---")
    path.write_text(path.read_text(encoding="utf-8") + "\nmy words\n", encoding="utf-8")


def files(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.is_file())


def user_parts(path: Path) -> UserParts:
    return take_over(path.read_text(encoding="utf-8")).user


def test_a_new_page_lies_where_the_contract_says(tmp_path: Path) -> None:
    result = write_page(tmp_path, CHAT, HEAD)
    assert result.path == tmp_path / "conversations/chatgpt/2024" / NAME
    assert (result.written, result.moved_from, result.conflict) == (True, None, None)
    assert result.path.read_text(encoding="utf-8") == render(CHAT, HEAD)
    assert result.path.stat().st_mode & 0o777 == 0o600
    assert result.path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("known", [True, False])
def test_an_unchanged_page_is_not_touched(tmp_path: Path, known: bool) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    annotate(path)
    write_page(tmp_path, CHAT, HEAD)
    before = path.stat()
    result = write_page(tmp_path, CHAT, HEAD, known_path=path if known else None)
    assert (result.path, result.written, result.generated) == (path, False, "")
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


@pytest.mark.parametrize("known", [True, False])
def test_a_new_title_keeps_the_path_and_the_users_parts(tmp_path: Path, known: bool) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    annotate(path)
    result = write_page(tmp_path, replace(GROWN, title="Renamed"), HEAD, known_path=path if known else None)
    assert (result.path, result.written, result.conflict) == (path, True, None)
    assert user_parts(path) == MINE
    assert parse(path.read_text(encoding="utf-8")).conversation.title == "Renamed"
    assert files(tmp_path) == [NAME]


@pytest.mark.parametrize("known", [True, False])
def test_a_new_day_renames_the_page_and_the_users_parts_move_with_it(tmp_path: Path, known: bool) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    annotate(path)
    result = write_page(tmp_path, CHAT, PageHead(date(2023, 12, 31)), known_path=path if known else None)
    assert result.path == tmp_path / "conversations/chatgpt/2023" / NAME.replace("2024-05-03", "2023-12-31")
    assert (result.moved_from, result.conflict) == (path, None)
    assert user_parts(result.path) == MINE
    assert files(tmp_path) == [result.path.name]


def test_a_page_deleted_by_hand_comes_back(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    path.unlink()
    assert write_page(tmp_path, CHAT, HEAD, known_path=path).written
    assert path.exists()


def test_a_relative_known_path_lies_below_the_home(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    assert not write_page(tmp_path, CHAT, HEAD, known_path=path.relative_to(tmp_path)).written


def conflict_of(path: Path) -> Path:
    return path.with_name(path.name.replace(".md", ".conflict.md"))


def test_an_edited_page_is_never_written_and_what_is_new_goes_beside_it(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    annotate(path)
    edit(path, "How?", "How?\n\nMy remark.")
    edited = path.read_bytes()
    result = write_page(tmp_path, GROWN, HEAD, known_path=path)
    assert (result.path, result.edited, result.conflict) == (path, True, conflict_of(path))
    assert path.read_bytes() == edited
    state = parse(result.conflict.read_text(encoding="utf-8"))
    assert state.conversation.messages == GROWN.messages
    assert (state.intact, state.user) == (True, UserParts(extra="status: conflict\n"))
    assert result.conflict.stat().st_mode & 0o777 == 0o600
    assert "Thanks!" in result.generated
    again = write_page(tmp_path, GROWN, HEAD, known_path=path)
    assert (again.written, again.edited, again.conflict) == (False, True, result.conflict)


def test_where_a_conversation_is_filed_is_nothing_new_to_say_to_an_edited_page(tmp_path: Path) -> None:
    """Rooms follow from the words: an edited page of which the archive was made anew, or whose rooms were named anew."""
    filed = replace(HEAD, rooms=("general",), wing="work", redactions=1, source_sha256=("0" * 64,))
    path = write_page(tmp_path, CHAT, filed).path
    edit(path, "So.", "So, said I.")
    edited = path.read_bytes()
    again = replace(HEAD, rooms=("decisions", "general"), wing="home", source_sha256=("1" * 64,))
    as_edited = parse(edited.decode()).conversation
    for conversation in (as_edited, CHAT):
        result = write_page(tmp_path, conversation, again, known_path=path)
        assert (result.written, result.edited, result.conflict) == (False, True, None)
    assert (path.read_bytes(), files(tmp_path)) == (edited, [NAME])
    assert write_page(tmp_path, GROWN, again, known_path=path).conflict == conflict_of(path)


def test_an_edited_page_of_an_unchanged_conversation_is_no_conflict(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    edit(path, "How?", "How come?")
    edited = path.read_bytes()
    result = write_page(tmp_path, CHAT, HEAD, known_path=path)
    assert (result.written, result.edited, result.conflict) == (False, True, None)
    assert (path.read_bytes(), files(tmp_path)) == (edited, [NAME])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("title: Closing a pool", "title: Mine"),
        ("date: 2024-05-03", "date: 2024-05-04"),
        ("message_count: 2", "message_count: 3"),
        ("rooms: []", "rooms: [pools]"),
        ("# Closing a pool", "# Mine"),
        ("So.", "So so."),
    ],
)
def test_a_change_of_anything_but_the_users_parts_is_an_edit(tmp_path: Path, old: str, new: str) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    edit(path, old, new)
    edited = path.read_bytes()
    assert write_page(tmp_path, GROWN, HEAD, known_path=path).conflict == conflict_of(path)
    assert path.read_bytes() == edited


def test_the_newest_state_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    edit(path, "How?", "mine")
    edited = path.read_bytes()
    write_page(tmp_path, GROWN, HEAD)
    longer = replace(GROWN, messages=[*GROWN.messages, Message("m4", "assistant", "Welcome.")])
    result = write_page(tmp_path, longer, HEAD)
    assert files(tmp_path) == [conflict_of(path).name, NAME]
    assert "Welcome." in conflict_of(path).read_text(encoding="utf-8")
    assert (result.written, path.read_bytes()) == (True, edited)
    write_page(tmp_path, CHAT, HEAD)  # what the page was made from: nothing is left to say
    assert (files(tmp_path), path.read_bytes()) == ([NAME], edited)


def test_what_stands_beside_a_page_is_nobodys_but_what_the_archive_wrote(tmp_path: Path) -> None:
    """An edited state, and the versions of pages that were kept before, are somebody's words."""
    path = write_page(tmp_path, CHAT, HEAD).path
    edit(path, "How?", "mine")
    write_page(tmp_path, GROWN, HEAD)
    edit(conflict_of(path), "Thanks!", "Thanks, said I.")
    result = write_page(tmp_path, GROWN, HEAD)
    assert result.conflict == path.with_name(NAME.replace(".md", ".conflict-2.md"))
    assert "Thanks, said I." in conflict_of(path).read_text(encoding="utf-8")
    edit(path, "mine", "How?")  # as it was: it is the archive's again
    write_page(tmp_path, GROWN, HEAD)
    assert files(tmp_path) == [conflict_of(path).name, NAME]
    assert parse(path.read_text(encoding="utf-8")).conversation.messages == GROWN.messages


def test_an_edited_page_moves_with_its_day_unchanged_and_takes_its_conflict_along(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    edit(path, "How?", "mine")
    edited = path.read_bytes()
    write_page(tmp_path, GROWN, HEAD)
    result = write_page(tmp_path, GROWN, PageHead(date(2023, 12, 31)), known_path=path)
    assert result.path.read_bytes() == edited
    assert (result.moved_from, result.conflict) == (path, conflict_of(result.path))
    assert files(tmp_path) == sorted([result.path.name, conflict_of(result.path).name])


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b"aliases: The pool\nrating: 5\n---\n", b""),
        lambda data: data.replace(b"my words", b"my w\xf6rds"),
        lambda data: b"not a page at all",
    ],
    ids=["torn", "front matter torn", "not UTF-8", "something else"],
)
def test_what_cannot_be_read_is_left_and_the_page_goes_beside_it(tmp_path: Path, damage) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    annotate(path)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    result = write_page(tmp_path, CHAT, HEAD, known_path=path)
    assert result.conflict is not None
    assert path.read_bytes() == damaged
    assert parse(result.conflict.read_text(encoding="utf-8")).conversation.messages == CHAT.messages


@pytest.mark.parametrize("zeros", [0, 40])
def test_a_page_that_was_cut_is_written_again(tmp_path: Path, zeros: int) -> None:
    """Nothing stands in it that the whole page does not say."""
    path = write_page(tmp_path, CHAT, HEAD).path
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + b"\0" * zeros)
    result = write_page(tmp_path, CHAT, HEAD, known_path=path)
    assert (result.written, result.edited, path.read_bytes()) == (True, False, whole)


def test_properties_that_a_note_program_adds_are_the_users(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    edit(
        path, "aliases: []\n", "aliases: []\ncssclasses:\n  - wide\nstatus: reading\nlinter-time: 2024-05-03T10:00:00\n"
    )
    result = write_page(tmp_path, GROWN, HEAD, known_path=path)
    assert (result.written, result.edited, result.conflict) == (True, False, None)
    assert "\ncssclasses:\n  - wide\nstatus: reading\nlinter-time: 2024-05-03T10:00:00\n---\n" in path.read_text()


def test_a_page_whose_conversation_did_not_change_keeps_the_form_a_person_gave_its_properties(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    edit(path, "tags: []\naliases: []\n", "rating: 5\ntags: [a, b]\naliases: The pool\n")
    before = path.read_bytes()
    assert not write_page(tmp_path, CHAT, HEAD, known_path=path).written
    assert path.read_bytes() == before


@pytest.mark.parametrize("left", [b"", b"\0" * 900], ids=["empty", "zeros"])
def test_what_a_power_cut_leaves_of_a_file_is_no_conflict(tmp_path: Path, left: bytes) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    path.write_bytes(left)
    result = write_page(tmp_path, CHAT, HEAD, known_path=path)
    assert (result.written, result.conflict) == (True, None)


def test_a_page_from_windows_is_no_conflict(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    annotate(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    result = write_page(tmp_path, GROWN, HEAD, known_path=path)
    assert result.conflict is None
    assert path.read_bytes().endswith(b"## Notes\n\r\nmy words\r\n")


def test_what_a_kill_left_between_writing_and_removing_is_put_right(tmp_path: Path) -> None:
    old = write_page(tmp_path, CHAT, HEAD).path
    annotate(old)
    text = old.read_bytes()
    new = write_page(tmp_path, CHAT, PageHead(date(2024, 1, 1)), known_path=old).path
    old.write_bytes(text)
    for known in (old, new, None):
        result = write_page(tmp_path, GROWN, PageHead(date(2024, 1, 1)), known_path=known)
        assert (result.path, result.conflict) == (new, None)
    assert files(tmp_path) == [new.name]
    assert user_parts(new) == MINE


def test_two_copies_with_different_notes_are_both_kept(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    twin = path.with_name(NAME.replace("05-03", "01-01"))
    twin.write_bytes(path.read_bytes() + b"\nother words\n")
    annotate(path)
    result = write_page(tmp_path, CHAT, HEAD)
    assert result.path == path
    everything = b"".join(file.read_bytes() for file in tmp_path.rglob("*.md"))
    assert b"other words" in everything
    assert b"my words" in everything
    assert len(files(tmp_path)) == 2


def test_conversations_that_share_a_hash_do_not_share_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "page_hash", lambda *key: "12345678")
    monkeypatch.setattr("palace_pipeline.transcripts.page_path.page_hash", lambda *key: "12345678")
    first = write_page(tmp_path, CHAT, HEAD).path
    other = replace(CHAT, conversation_id="c2")
    second = write_page(tmp_path, other, HEAD).path
    assert first != second
    assert not write_page(tmp_path, CHAT, HEAD).written
    assert not write_page(tmp_path, other, HEAD).written


def test_a_known_path_that_is_another_conversations_is_left_alone(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    annotate(path)
    other = write_page(tmp_path, replace(CHAT, conversation_id="c2"), HEAD, known_path=path)
    assert (other.path != path, other.conflict) == (True, None)
    assert user_parts(path) == MINE
    assert user_parts(other.path).blank


def test_one_index_serves_many_pages(tmp_path: Path) -> None:
    index = PageIndex(tmp_path)
    chats = [replace(CHAT, conversation_id=f"c{i}") for i in range(5)]
    for _ in range(2):
        written = [write_page(tmp_path, chat, HEAD, index=index) for chat in chats]
        index.sync()
    assert not any(result.written for result in written)
    assert sorted(page_paths(tmp_path)) == sorted(result.path for result in written)


def test_what_stands_beside_a_page_is_found_without_a_look_at_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    class Marks:
        def fullmatch(self, mark: str) -> bool:
            looked.append(mark)
            return mark.startswith("conflict") or "ct-" in mark

    index = PageIndex(tmp_path)
    monkeypatch.setattr(pages, "_COPY_HASH", Marks())
    chats = [replace(CHAT, conversation_id=f"c{number}") for number in range(20)]
    paths = [write_page(tmp_path, chat, HEAD, index=index).path for chat in chats]
    assert len(looked) == len(chats)
    copies = [path.with_name(f"{path.stem}.conflict{end}.md") for path in paths[:2] for end in ("", "-2", "-13")]
    for copy in copies:
        copy.write_text("mine")
    for known in (index, PageIndex(tmp_path)):  # those that it is told of, and those that it finds
        for copy in copies if known is index else ():
            known.add("chatgpt", copy)
        found = [known.copies(path, "chatgpt") for path in paths]
        assert found == [sorted(copies[:3]), sorted(copies[3:]), *([] for _ in paths[2:])]
    assert len(looked) == len(chats) + len(copies) + len(chats) + len(copies)


def test_page_paths_are_pages_only(tmp_path: Path) -> None:
    assert list(page_paths(tmp_path)) == []
    path = write_page(tmp_path, CHAT, HEAD).path
    edit(path, "How?", "What?")
    write_page(tmp_path, GROWN, HEAD)
    (path.parent / "index.md").write_text("mine")
    (path.parent.parent / ".DS_Store").write_text("x")
    assert list(page_paths(tmp_path)) == [path]
    assert list(page_paths(tmp_path, "claude")) == []


def test_generated_is_the_page_without_the_users_parts(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    annotate(path)
    generated = write_page(tmp_path, GROWN, HEAD, known_path=path).generated
    assert "Thanks!" in generated
    assert "Closing a pool" in generated
    for mine in ("my words", "The pool", "rating"):
        assert mine not in generated


# --- removing ---------------------------------------------------------------------------------------------------------


def test_a_page_nobody_touched_goes_without_a_trace(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    result = remove_page(path)
    assert (result.removed, result.user.blank, result.kept, result.conflict) == (True, True, None, None)
    assert files(tmp_path) == []
    assert not remove_page(path).removed


def test_the_users_parts_outlive_the_page_and_return_with_it(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    annotate(path)
    result = remove_page(path)
    assert (result.user, result.conflict) == (MINE, None)
    assert result.kept is not None
    assert user_parts(result.kept) == MINE
    left = result.kept.read_text(encoding="utf-8")
    assert files(tmp_path) == [f"2024-05-03-untitled-{HASH}.md"]
    for gone in ("How?", "Closing", "closing"):
        assert gone not in left
    assert remove_page(result.kept).kept == result.kept
    back = write_page(tmp_path, CHAT, HEAD)
    assert user_parts(back.path) == MINE
    assert len(files(tmp_path)) == 1


def test_an_edited_page_is_kept_whole(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    edit(path, "How?", "My remark.")
    result = remove_page(path)
    assert result.conflict is not None
    assert "My remark." in result.conflict.read_text(encoding="utf-8")
    assert not path.exists()


def test_forgetting_leaves_nothing(tmp_path: Path) -> None:
    path = write_page(tmp_path, CHAT, HEAD).path
    other = write_page(tmp_path, replace(CHAT, conversation_id="c2"), HEAD).path
    edit(path, "How?", "My remark.")
    assert write_page(tmp_path, GROWN, HEAD).conflict is not None
    moved = write_page(tmp_path, CHAT, PageHead(date(2025, 1, 1))).path
    annotate(moved)
    result = remove_page(moved, forget=True)
    assert (result.removed, result.user, result.kept) == (True, MINE, None)
    assert files(tmp_path) == [other.name]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose content was flushed to disk."""
    names: list[str] = []
    sync = files_of_store._sync

    def noted(path: Path) -> None:
        names.append(path.name)
        sync(path)

    monkeypatch.setattr(files_of_store, "_sync", noted)
    return names


def test_pages_written_in_one_go_are_flushed_together(tmp_path: Path, synced: list[str]) -> None:
    index = PageIndex(tmp_path)
    path = write_page(tmp_path, CHAT, HEAD, index=index).path
    assert synced == []
    index.sync()
    assert synced == [path.name, "2024"]
    index.sync()
    assert synced == [path.name, "2024"]


def test_a_page_with_the_users_words_is_flushed_at_once(tmp_path: Path, synced: list[str]) -> None:
    index = PageIndex(tmp_path)
    path = write_page(tmp_path, CHAT, HEAD, index=index).path
    annotate(path)
    write_page(tmp_path, GROWN, HEAD, index=index)
    assert any(name.endswith(path.name) for name in synced)
