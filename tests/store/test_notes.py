"""Notes of days and rooms: changed line by line, the user's words kept, nothing written where nothing changed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.model import Conversation, Message
from palace_pipeline.store.notes import bring_in_line, drop_dead_links, months_with_notes, update_notes
from palace_pipeline.transcripts.notes import Listed, in_link, listed, page_links

DAY = date(2024, 5, 3)


def one(
    name: str, day: date = DAY, time: str = "10:00", *, dated: bool = True, rooms: tuple[str, ...] = ("planning",)
) -> Listed:
    page = f"conversations/chatgpt/{day.year}/{day}-{name}-{name[0] * 8}.md"
    return Listed(page, day if dated else None, time, f"Chat {name}", "ChatGPT", rooms)


def tree(home: Path) -> dict[str, str]:
    return {
        path.relative_to(home).as_posix(): path.read_text("utf-8") for path in sorted((home / "notes").rglob("*.md"))
    }


def test_what_the_notes_of_a_first_conversation_look_like(tmp_path: Path) -> None:
    update_notes(tmp_path, [], [one("a")])
    assert tree(tmp_path) == {
        "notes/README.md": (
            "---\ntype: notes\ntags: []\naliases: []\n---\n\n# Notes\n\n<!-- palace list -->\n"
            "- [2024](days/2024.md)\n- [room planning](rooms/planning.md)\n<!-- palace end -->\n\n## Notes\n"
        ),
        "notes/days/2024.md": (
            '---\ntype: year\nyear: "2024"\ntags: []\naliases: []\n---\n\n# 2024\n\n<!-- palace list -->\n'
            "- [2024-05-03](2024/2024-05-03.md)\n<!-- palace end -->\n\n## Notes\n"
        ),
        "notes/days/2024/2024-05-03.md": (
            "---\ntype: day\ndate: 2024-05-03\ntags: []\naliases: []\n---\n\n# 2024-05-03\n\n<!-- palace list -->\n"
            "[2024](../2024.md)\n\n"
            "- 10:00 [Chat a](../../../conversations/chatgpt/2024/2024-05-03-a-aaaaaaaa.md) · ChatGPT\n"
            "<!-- palace end -->\n\n## Notes\n"
        ),
        "notes/rooms/planning.md": (
            "---\ntype: room\nroom: planning\ntags: []\naliases: []\n---\n\n# planning\n\n<!-- palace list -->\n"
            "- [2024-05](planning/2024-05.md)\n<!-- palace end -->\n\n## Notes\n"
        ),
        "notes/rooms/planning/2024-05.md": (
            '---\ntype: room\nroom: planning\nmonth: "2024-05"\ntags: []\naliases: []\n---\n\n# planning, 2024-05\n\n'
            "<!-- palace list -->\n"
            "- 2024-05-03 10:00 [Chat a](../../../conversations/chatgpt/2024/2024-05-03-a-aaaaaaaa.md) · ChatGPT\n"
            "<!-- palace end -->\n\n## Notes\n"
        ),
    }


def test_a_day_leads_to_the_days_around_it_over_the_turn_of_years(tmp_path: Path) -> None:
    days = [date(2022, 12, 31), date(2024, 1, 1), date(2024, 5, 3)]
    update_notes(tmp_path, [], [one(f"{day.month}", day) for day in days])
    middle = (tmp_path / "notes/days/2024/2024-01-01.md").read_text("utf-8")
    assert "[← 2022-12-31](../2022/2022-12-31.md) · [2024](../2024.md) · [2024-05-03 →](2024-05-03.md)\n" in middle
    update_notes(tmp_path, [], [one("b", date(2024, 2, 2))])
    middle = (tmp_path / "notes/days/2024/2024-01-01.md").read_text("utf-8")
    assert "[2024-02-02 →](2024-02-02.md)" in middle
    assert "2024-05-03" not in middle
    update_notes(tmp_path, [one("b", date(2024, 2, 2)).page, one("12", days[0]).page], [])
    middle = (tmp_path / "notes/days/2024/2024-01-01.md").read_text("utf-8")
    assert "\n[2024](../2024.md) · [2024-05-03 →](2024-05-03.md)\n" in middle
    assert not (tmp_path / "notes/days/2022.md").exists()


def test_what_is_as_it_was_is_not_written(tmp_path: Path) -> None:
    chats = [
        one("a"),
        one("b", time="09:00"),
        one("c", dated=False),
        one("d", date(2024, 6, 1), rooms=("general", "Küche")),
    ]
    assert update_notes(tmp_path, [], chats) > 0
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "notes").rglob("*.md")}
    assert update_notes(tmp_path, [chat.page for chat in chats], chats) == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "notes").rglob("*.md")} == times
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in times)


def test_a_conversation_moves_and_gets_other_rooms_and_another_title(tmp_path: Path) -> None:
    update_notes(tmp_path, [], [one("a", rooms=("planning", "general")), one("b")])
    new = Listed(one("a", date(2024, 7, 1)).page, date(2024, 7, 1), "11:11", "New [title]", "ChatGPT", ("general",))
    update_notes(tmp_path, [one("a").page], [new])
    texts = tree(tmp_path)
    assert [name for name, text in texts.items() if "Chat a]" in text] == []
    assert "- 11:11 [New \\[title\\]](" in texts["notes/days/2024/2024-07-01.md"]
    assert "notes/rooms/general/2024-05.md" not in texts
    assert "- 2024-07-01 11:11 [New" in texts["notes/rooms/general/2024-07.md"]
    assert texts["notes/rooms/general.md"].count("- [") == 1


def test_the_users_words_stay_whatever_comes_and_goes(tmp_path: Path) -> None:
    update_notes(tmp_path, [], [one("a")])
    path = tmp_path / "notes/days/2024/2024-05-03.md"
    text = path.read_text("utf-8").replace("tags: []", "tags:\n  - mine").replace("# 2024-05-03", "# My day")
    text = text.replace("<!-- palace end -->", "  - my remark\n<!-- palace end -->") + "\nmy *words*\r\nand more"
    path.write_bytes(text.encode())
    update_notes(tmp_path, [], [one("b", time="09:00")])
    now = path.read_bytes().decode()
    lines = [line for line in now.splitlines() if line.startswith(("- ", "  -"))]
    assert [line[:16] for line in lines] == ["  - mine", "- 09:00 [Chat b]", "- 10:00 [Chat a]", "  - my remark"]
    assert now.endswith("## Notes\n\nmy *words*\r\nand more")
    assert "# My day" in now
    update_notes(tmp_path, [one("a").page, one("b").page], [])
    left = path.read_bytes().decode()
    assert "Chat" not in left
    assert "my *words*" in left
    assert "- mine" in left


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("my own day\n", "my own day\n\n{block}"),
        ("# Mine\n\n## Notes\nx", "# Mine\n\n{block}\n## Notes\nx"),
        ("", "{block}"),
    ],
)
def test_a_note_of_the_users_gets_the_list_and_loses_nothing(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "notes/days/2024/2024-05-03.md"
    path.parent.mkdir(parents=True)
    path.write_text(old, encoding="utf-8")
    update_notes(tmp_path, [], [one("a")])
    line = "- 10:00 [Chat a](../../../conversations/chatgpt/2024/2024-05-03-a-aaaaaaaa.md) · ChatGPT\n"
    assert path.read_text("utf-8") == new.format(block=f"<!-- palace list -->\n{line}<!-- palace end -->\n")


def test_rooms_whose_names_differ_in_capitals_have_notes_of_their_own(tmp_path: Path) -> None:
    update_notes(tmp_path, [], [one("a", rooms=("home",)), one("b", rooms=("Home",)), one("c", rooms=("home_office",))])
    folders = sorted(path.name for path in (tmp_path / "notes/rooms").iterdir() if path.is_dir())
    assert len({folder.casefold() for folder in folders}) == 3
    assert all(folder == folder.lower() for folder in folders)
    assert "room Home" in (tmp_path / "notes/README.md").read_text("utf-8")


def test_a_page_leads_to_its_day_and_rooms(tmp_path: Path) -> None:
    chat = one("a", rooms=("planning", "Küche"))
    update_notes(tmp_path, [], [chat])
    line = page_links(DAY, chat.rooms, dated=True)
    targets = [part.rpartition("](")[2].rstrip(")") for part in line.split(" · ")]
    folder = (tmp_path / chat.page).parent
    folder.mkdir(parents=True)
    assert all((folder / target).resolve().is_file() for target in targets)
    assert len(targets) == 3
    assert page_links(DAY, ("planning",), dated=False) == "[planning](../../../notes/rooms/planning/undated.md)"
    assert page_links(DAY, (), dated=False) == ""


def test_when_a_conversation_began() -> None:
    start = datetime(2024, 5, 3, 23, 30, tzinfo=UTC)
    said = Conversation("chatgpt", "x", [Message("1", "user", "hi", created_at=start)], title=None)
    assert (listed(said, DAY, (), "p", dated=True).time, listed(said, DAY, (), "p", dated=True).title) == (
        "23:30",
        "hi",
    )
    assert listed(said, date(2024, 5, 2), (), "p", dated=True).time == ""
    naive = Conversation("whatsapp", "x", [Message("1", "user", "hi", local_time="2024-05-03T07:05:00")])
    assert listed(naive, DAY, (), "p", dated=True).time == "07:05"
    assert listed(said, DAY, (), "p", dated=False).day is None


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("C# and #todo", "C\\# and \\#todo"),
        ("[[wiki]] `x` *y*", "\\[\\[wiki\\]\\] \\`x\\` \\*y\\*"),
        ("snake_case _it_", "snake_case \\_it\\_"),
        ("<b> 50% %%x%% a==b", "\\<b> 50% \\%\\%x\\%\\% a\\=\\=b"),
        ("数据库（一）", "数据库（一）"),
    ],
)
def test_a_title_does_nothing_in_a_link(title: str, shown: str) -> None:
    assert in_link(title) == shown


NAMES = st.sampled_from("abcdef")
STEPS = st.lists(
    st.tuples(
        NAMES, st.integers(1, 4), st.integers(1, 3), st.sampled_from([(), ("x",), ("x", "Y"), ("Y",)]), st.booleans()
    ),
    max_size=12,
)


Step = tuple[str, int, int, tuple[str, ...], bool]


@settings(max_examples=40)
@given(steps=STEPS, gone=st.sets(NAMES))
def test_whatever_happened_the_notes_are_those_of_a_fresh_home(steps: list[Step], gone: set[str]) -> None:
    with TemporaryDirectory() as one_home, TemporaryDirectory() as other:
        grown, fresh = Path(one_home), Path(other)
        now: dict[str, Listed] = {}
        for name, day, month, rooms, dated in steps:
            new = one(name, date(2024, month, day), f"0{day}:00", dated=dated, rooms=rooms)
            update_notes(grown, [now[name].page] if name in now else [], [new])
            now[name] = new
        update_notes(grown, [now.pop(name).page for name in sorted(gone) if name in now], [])
        update_notes(fresh, [], list(now.values()))
        assert tree(grown) == tree(fresh)


@settings(max_examples=30)
@given(steps=STEPS, broken=st.sets(st.sampled_from(["README", "2024", "x", "2024-01", "2024-01-01", "undated"])))
def test_notes_that_were_deleted_or_are_of_others_are_brought_in_line(steps: list[Step], broken: set[str]) -> None:
    with TemporaryDirectory() as one_home, TemporaryDirectory() as other:
        home, fresh = Path(one_home), Path(other)
        chats = {
            name: one(name, date(2024, month, day), dated=dated, rooms=rooms)
            for name, day, month, rooms, dated in steps
        }
        update_notes(home, [], [*chats.values(), one("f", date(2023, 3, 3), rooms=("x", "gone"))])
        for path in sorted((home / "notes").rglob("*.md")):
            if path.stem in broken:
                path.unlink()
        kept = [chat for name, chat in chats.items() if name != "f"]
        update_notes(fresh, [], kept)
        for month in sorted(months_with_notes(home) | {f"2024-0{month}" for month in range(1, 4)} | {"undated"}):
            bring_in_line(
                home, month, [chat for chat in kept if (f"{chat.day:%Y-%m}" if chat.day else "undated") == month]
            )
        drop_dead_links(home)
        assert tree(home) == tree(fresh)
        assert (
            sum(
                bring_in_line(home, month, [c for c in kept if c.day and f"{c.day:%Y-%m}" == month])
                for month in ("2024-01", "2024-02")
            )
            == 0
        )
