"""One look after the other at changing exports: what counts as new, what is kept, what is never lost."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from palace_pipeline.exports.base import Report
from palace_pipeline.ingest import Ingested, ingest, recipes, run
from palace_pipeline.model import from_record
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.ledger import Ledger
from tests.ingest.exports_for_tests import START, chat, export


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


def look(home: Home, *paths: Path, **options: object) -> Ingested:
    with home.writing():
        return ingest(home, list(paths), batch="test", **options)  # pyright: ignore[reportArgumentType]


def counts(found: Ingested, unit: str) -> tuple[int, int, int, int]:
    of = found.of(unit)
    assert of["found"] == of["new"] + of["updated"] + of["unchanged"] + of["skipped"]
    return of["new"], of["updated"], of["unchanged"], of["skipped"]


def conversation(home: Home, name: str) -> dict[str, object]:
    with home.ledger() as ledger:
        row = ledger.conversation(("chatgpt", name))
        assert row is not None
        return dict(row)


def live_texts(home: Home, name: str) -> set[str]:
    with home.ledger() as ledger, home.vault() as vault:
        records = [from_record(vault.record(s["record"])) for s in ledger.sightings(("chatgpt", name))]
    return {m.text for record in records for m in record.messages}


def test_new_then_unchanged_then_grown(home: Home, inbox: Path) -> None:
    export(inbox / "conversations.json", chat("a", "hi", "hello"), chat("b", "one", "two"))
    first = look(home, inbox)
    assert counts(first, "files") == (1, 0, 0, 0)
    assert counts(first, "conversations") == (2, 0, 0, 0)
    assert counts(first, "messages") == (4, 0, 0, 0)
    again = look(home, inbox)
    assert counts(again, "files") == (0, 0, 1, 0)
    assert counts(again, "conversations") == (0, 0, 2, 0)
    assert counts(again, "messages") == (0, 0, 4, 0)
    export(inbox / "conversations.json", chat("a", "hi", "hello", "more"), chat("b", "one", "two"))
    grown = look(home, inbox)
    assert counts(grown, "files") == (0, 1, 0, 0)
    assert counts(grown, "conversations") == (0, 1, 1, 0)
    assert counts(grown, "messages") == (1, 0, 4, 0)
    assert grown.days == ["2024-05-03"]


def test_a_monthly_reexport_stores_and_parses_only_what_changed(
    home: Home, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [chat(f"c{n}", f"question {n}", f"answer {n}") for n in range(50)]
    export(inbox / "may.json", *many)
    look(home, inbox)
    with home.vault() as vault:
        pieces = vault._db.execute("select count(*) from pieces").fetchone()[0]

    parsed: list[str] = []
    original = run.read_one
    monkeypatch.setattr(run, "read_one", lambda e, *rest: (parsed.append(e.place), original(e, *rest))[1])
    export(
        inbox / "june.json", *many[:30], chat("c30", "question 30", "answer 30", "again?"), *many[31:], chat("new", "x")
    )
    june = look(home, inbox)
    assert len(parsed) == 2
    assert counts(june, "conversations") == (1, 1, 49, 0)
    with home.vault() as vault:
        assert vault._db.execute("select count(*) from pieces").fetchone()[0] == pieces + 2


def test_an_older_and_poorer_export_takes_nothing_away(home: Home, inbox: Path) -> None:
    export(inbox / "new.json", chat("a", "hi", "hello", "more", "sure"))
    look(home, inbox)
    before = conversation(home, "a")
    export(inbox / "old.json", chat("a", "hi", "hello"))
    older = look(home, inbox)
    assert counts(older, "conversations") == (0, 0, 1, 0)
    assert counts(older, "messages") == (0, 0, 4, 0)
    assert live_texts(home, "a") == {"hi", "hello", "more", "sure"}
    assert conversation(home, "a")["messages"] == before["messages"] == 4


def test_the_order_of_exports_does_not_matter(tmp_path: Path) -> None:
    inputs = {}
    for name, order in (("x", ["may.json", "june.json"]), ("y", ["june.json", "may.json"])):
        home = Home(load_settings(tmp_path / name / "home"))
        export(tmp_path / name / "may.json", chat("a", "hi", "hello"))
        export(tmp_path / name / "june.json", chat("a", "hi", "hello", "more"))
        for file in order:
            look(home, tmp_path / name / file)
        row = conversation(home, "a")
        inputs[name] = (row["day"], row["messages"], live_texts(home, "a"))
    assert inputs["x"] == inputs["y"]


def test_a_log_that_grows_leaves_one_live_record_and_one_tail_in_the_vault(home: Home, inbox: Path) -> None:
    lines = [
        {
            "type": "user" if n % 2 == 0 else "assistant",
            "uuid": f"u{n}",
            "parentUuid": f"u{n - 1}" if n else None,
            "sessionId": "11111111-0000-4000-8000-000000000000",
            "timestamp": f"2024-05-03T12:00:{n:02}.000Z",
            "message": {
                "role": "user" if n % 2 == 0 else "assistant",
                "id": f"m{n}",
                "content": [{"type": "text", "text": f"line {n}"}],
            },
        }
        for n in range(20)
    ]
    log = inbox / "11111111-0000-4000-8000-000000000000.jsonl"
    for upto in (5, 10, 20):
        log.write_text("".join(json.dumps(line) + "\n" for line in lines[:upto]))
        found = look(home, inbox)
        assert found.messages["new"] == (5 if upto < 20 else 10)
    with home.ledger() as ledger, home.vault() as vault:
        key = ("claude-code", "11111111-0000-4000-8000-000000000000")
        assert len(ledger.sightings(key)) == 1
        assert vault._db.execute("select count(*) from records").fetchone() == (1,)
        stored = vault._db.execute("select sum(size) from pieces").fetchone()[0]
    assert stored == log.stat().st_size


def test_touching_renaming_and_copying_a_file_is_no_news(home: Home, inbox: Path) -> None:
    file = export(inbox / "a.json", chat("a", "hi", "hello"))
    look(home, inbox)
    os.utime(file, (1, 1))
    assert counts(look(home, inbox), "files") == (0, 0, 1, 0)
    file.rename(inbox / "b.json")
    renamed = look(home, inbox)
    assert counts(renamed, "conversations") == (0, 0, 1, 0)
    assert renamed.days == []


def test_files_that_were_only_touched_are_counted_together(
    home: Home, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (inbox / f"{number}.png").write_bytes(b"\x89PNG" + bytes([number]))
    look(home, inbox)
    for file in inbox.iterdir():
        os.utime(file, (1, 1))
    asked: list[str] = []
    rows = Ledger.rows

    def counted(ledger: Ledger, sql: str, *values: object) -> object:
        asked.append(sql)
        return rows(ledger, sql, *values)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Ledger, "rows", counted)
    assert look(home, inbox).files["skipped"] == 30
    # All skips that are known are gone through once, not once for each file.
    assert sum("FROM skips" in sql for sql in asked) == 1


def test_a_bad_file_never_ends_the_run_and_is_named(home: Home, inbox: Path) -> None:
    export(inbox / "good.json", chat("a", "hi"))
    (inbox / "cut.zip").write_bytes(b"PK\x03\x04 cut")
    (inbox / "empty.json").write_bytes(b"")
    (inbox / "unknown.json").write_text('{"a": 1}')
    (inbox / "link.json").symlink_to("/etc/hostname")
    os.mkfifo(inbox / "pipe.json")
    found = look(home, inbox)
    assert counts(found, "files") == (1, 0, 0, 5)
    bad = {Path(s.where.split(":")[0]).name: s.reason for s in found.skips if not s.expected}
    assert set(bad) == {"cut.zip", "empty.json", "unknown.json", "link.json", "pipe.json"}
    quarantined = [json.loads(p.read_bytes()) for p in home.quarantine.iterdir()]
    assert {Path(q["path"]).name for q in quarantined} == {"cut.zip", "empty.json", "unknown.json"}
    assert all(q["reasons"] for q in quarantined)
    again = [s.reason for s in look(home, inbox).skips if not s.expected]
    assert sorted(again) == sorted(bad.values())


def test_a_name_that_is_no_utf8_is_named_and_stops_nothing(home: Home, inbox: Path) -> None:
    export(inbox / "good.json", chat("a", "hi"))
    Path(os.fsdecode(os.fsencode(inbox) + b"/bad\xff.txt")).write_bytes(b"hello")
    os.mkfifo(os.fsencode(inbox) + b"/fifo\xff")
    found = look(home, inbox)
    assert counts(found, "files") == (1, 0, 0, 2)
    assert all("rename it" in s.reason for s in found.skips)
    assert look_dry(home, inbox).files["skipped"] == 2


@pytest.mark.parametrize(
    "data", [json.dumps([{"mapping": {}}]).encode("utf-16-le"), b'[{"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}]"]
)
def test_what_cannot_be_read_is_no_empty_list(home: Home, inbox: Path, data: bytes) -> None:
    (inbox / "conversations.json").write_bytes(data)
    assert [s.expected for s in look(home, inbox).skips] == [False]


def test_many_skips_of_one_archive_are_one_line(home: Home, inbox: Path) -> None:
    with zipfile.ZipFile(inbox / "many.zip", "w") as archive:
        for number in range(200):
            archive.writestr(f"f{number}.dat", b"x")
        archive.writestr("conversations.json", json.dumps([chat("a", "hi")]))
    found = look(home, inbox)
    lines = found.as_counts()["skipped"]
    assert [(line["count"], line["where"]) for line in lines] == [(200, str(inbox / "many.zip"))]


def test_the_archive_is_no_export_of_itself(home: Home, tmp_path: Path) -> None:
    export(tmp_path / "home/inbox/a.json", chat("a", "hi"))
    look(home, tmp_path / "home/inbox")
    (tmp_path / "home/conversations/page.md").write_text("a page\n")
    for path in (tmp_path, tmp_path / "home", tmp_path / "home/conversations"):
        found = look(home, path)
        assert (found.conversations["new"], [s.reason for s in found.skips]) == (0, ["the archive itself"])


def test_a_mended_file_leaves_quarantine(home: Home, inbox: Path) -> None:
    (inbox / "a.json").write_text('{"a": 1}')
    look(home, inbox)
    assert len(list(home.quarantine.iterdir())) == 1
    export(inbox / "a.json", chat("a", "hi"))
    assert counts(look(home, inbox), "conversations") == (1, 0, 0, 0)
    assert list(home.quarantine.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(home: Home, inbox: Path) -> None:
    export(inbox / "a.json", chat("a", "hi")).chmod(0)
    found = look(home, inbox)
    assert counts(found, "files") == (0, 0, 0, 1)


def test_account_data_is_neither_read_nor_kept(home: Home, inbox: Path) -> None:
    mark = "account-holder-data"
    with zipfile.ZipFile(inbox / "export.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps([chat("a", "hi")]))
        archive.writestr("user.json", json.dumps({"email": mark}))
    found = look(home, inbox)
    assert counts(found, "conversations") == (1, 0, 0, 0)
    with home.vault() as vault:
        names = [row[0] for row in vault._db.execute("select hash from pieces")]
        assert all(mark.encode() not in vault.piece(name) for name in names)


def test_a_dry_run_counts_the_same_and_keeps_nothing(home: Home, inbox: Path) -> None:
    export(inbox / "a.json", chat("a", "hi", "hello"), {"mapping": 3}, chat("b", "x"))
    dry = look_dry(home, inbox)
    assert not home.path.exists()
    real = look(home, inbox)
    assert dry.as_counts() == real.as_counts()
    export(inbox / "b.json", chat("a", "hi", "hello", "more"))
    with home.vault() as vault:
        before = list(vault._db.iterdump())
    dry = look_dry(home, inbox)
    with home.vault() as vault:
        assert list(vault._db.iterdump()) == before
    assert dry.as_counts() == look(home, inbox).as_counts()


def look_dry(home: Home, *paths: Path) -> Ingested:
    return ingest(home, list(paths), batch="dry", dry_run=True)


def test_a_limit_leaves_the_rest_for_the_next_run(home: Home, inbox: Path) -> None:
    for name in "abc":
        export(inbox / f"{name}.json", chat(name, "hi"))
    assert counts(look(home, inbox, limit=2), "files") == (2, 0, 0, 1)
    assert counts(look(home, inbox, limit=2), "files") == (1, 0, 2, 0)


def test_a_better_date_moves_the_conversation_and_the_old_day_is_shown_anew(home: Home, inbox: Path) -> None:
    export(inbox / "a.json", chat("a", "later part", start=START))
    look(home, inbox)
    assert conversation(home, "a")["day"] == "2024-05-03"
    with home.ledger() as ledger:
        ledger.write("UPDATE conversations SET built_day = day")
    earlier = chat("a", "later part", start=START)
    earlier["mapping"]["a-0"]["message"]["id"] = "a-0"
    earlier["mapping"]["first"] = {
        "id": "first",
        "parent": "root",
        "children": [],
        "message": {
            "id": "first",
            "author": {"role": "user"},
            "create_time": START - 3 * 86_400,
            "content": {"content_type": "text", "parts": ["first part, another branch"]},
        },
    }
    export(inbox / "b.json", earlier)
    look(home, inbox)
    assert conversation(home, "a")["day"] == "2024-04-30"
    with home.ledger() as ledger:
        assert [row["day"] for row in ledger.rows("SELECT day FROM left_days")] == ["2024-05-03"]


def test_a_conversation_without_any_time_keeps_the_day_it_was_first_seen(home: Home, inbox: Path) -> None:
    export(inbox / "a.json", chat("a", "hi", start=None))
    look(home, inbox)
    with home.ledger() as ledger:
        ledger.write("UPDATE conversations SET first_seen_day = '2025-01-02', day = '2025-01-02'")
    export(inbox / "b.json", chat("a", "hi", "hello", start=None))
    look(home, inbox)
    row = conversation(home, "a")
    assert (row["day"], row["dated"], row["undated_reason"]) == ("2025-01-02", 0, "no time")


@pytest.mark.parametrize("start", [0.0, -5.0, 1e9, 4e9])
def test_absurd_dates_do_not_become_days(home: Home, inbox: Path, start: float) -> None:
    export(inbox / "a.json", chat("a", "hi", start=start))
    look(home, inbox)
    assert conversation(home, "a")["dated"] == 0


def test_a_reader_that_changed_reads_again_from_the_vault_when_the_file_is_gone(
    home: Home, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = export(inbox / "a.json", chat("a", "hi", "hello"), chat("b", "x"))
    look(home, inbox)
    file.unlink()
    from palace_pipeline.exports.registry import reader_named

    reader = reader_named("chatgpt-export")
    assert reader is not None
    monkeypatch.setattr(type(reader), "recipe", reader.recipe + 1, raising=False)
    monkeypatch.setitem(recipes.RECIPES, "chatgpt-export", str(reader.recipe))
    original = type(reader).read_element

    def louder(self: object, *arguments: object) -> object:
        for conversation in original(self, *arguments):  # pyright: ignore[reportArgumentType]
            for message in conversation.messages:
                message.model = "newly understood"
            yield conversation

    monkeypatch.setattr(type(reader), "read_element", louder)
    look(home, inbox)
    with home.ledger() as ledger, home.vault() as vault:
        records = [from_record(vault.record(s["record"])) for s in ledger.sightings(("chatgpt", "a"))]
        assert any(m.model == "newly understood" for r in records for m in r.messages)


def test_what_a_better_reader_understands_of_a_file_that_is_gone_is_counted(
    home: Home, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from palace_pipeline.exports.registry import reader_named

    archive = inbox / "export.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("conversations.json", json.dumps([chat("a", "hi", "hello")]))
        opened.writestr("picture.png", b"\x89PNG")
    reader = reader_named("chatgpt-export")
    assert reader is not None
    original = type(reader).read_element

    def blind(self: object, value: object, member: object, place: str, report: Report) -> object:
        report.skip("of a kind that nobody knows", place, expected=False)
        yield from ()

    with monkeypatch.context() as patch:
        patch.setattr(type(reader), "read_element", blind)
        look(home, inbox)

    def row() -> tuple[object, ...]:
        with home.ledger() as ledger:
            found = ledger.one(
                "SELECT status, conversations, messages, skipped FROM files WHERE path = ?", (str(archive),)
            )
            skips = [skip["reason"] for skip in ledger.rows("SELECT reason FROM skips ORDER BY reason")]
        assert found is not None
        return (*found, skips)

    assert row()[:3] == ("quarantined", 0, 0)
    archive.unlink()
    monkeypatch.setattr(type(reader), "read_element", original)
    monkeypatch.setattr(type(reader), "recipe", reader.recipe + 1)
    monkeypatch.setitem(recipes.RECIPES, "chatgpt-export", str(reader.recipe))
    monkeypatch.setattr(recipes, "ALL_READERS", "*:since then")
    look(home, inbox)
    assert row() == ("done", 1, 2, 1, ["asset beside the chats"])
    assert not list(home.quarantine.iterdir())


def test_a_corrected_reader_corrects_the_archive(home: Home, inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from palace_pipeline.exports.registry import reader_named

    reader = reader_named("chatgpt-export")
    assert reader is not None
    original = type(reader).read_element

    def wrong(self: object, *arguments: object) -> object:
        for conversation in original(self, *arguments):  # pyright: ignore[reportArgumentType]
            for message in conversation.messages:
                message.message_id, message.text = "wrong-" + message.message_id, "garbled"
            yield conversation

    export(inbox / "a.json", chat("a", "hi", "hello"))
    with monkeypatch.context() as patch:
        patch.setattr(type(reader), "read_element", wrong)
        look(home, inbox)
    assert live_texts(home, "a") == {"garbled"}
    monkeypatch.setattr(type(reader), "recipe", reader.recipe + 1)
    monkeypatch.setitem(recipes.RECIPES, "chatgpt-export", str(reader.recipe))
    look(home, inbox)
    assert live_texts(home, "a") == {"hi", "hello"}
    assert conversation(home, "a")["messages"] == 2


def test_a_zone_that_is_set_later_gives_the_archive_of_a_fresh_one(tmp_path: Path, inbox: Path) -> None:
    (inbox / "talk.md").write_text(
        "**Ann** (2025-01-01 07:30): early\n\n**Bo** (2025-01-01 07:31): yes\n\n**Ann** (2025-01-01 07:32): ok\n"
    )
    toml = f'[[sources]]\npath = "{inbox}"\ntimezone = "Asia/Shanghai"\n'
    days = []
    for name, first in (("later", ""), ("fresh", toml)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "palace.toml").write_text(first)
        look(Home(load_settings(tmp_path / name)), inbox)
        (tmp_path / name / "palace.toml").write_text(toml)
        home = Home(load_settings(tmp_path / name))
        look(home, inbox)
        with home.ledger() as ledger:
            days.append([tuple(row) for row in ledger.rows("SELECT day, dated, messages FROM conversations")])
    assert days[0] == days[1] == [("2024-12-31", 1, 3)]


def test_equal_paths_in_two_folders_are_two_documents_and_a_folder_inside_is_no_third(
    home: Home, tmp_path: Path
) -> None:
    for name in ("work", "private"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "README.md").write_text(f"about {name}\n")
        (tmp_path / name / "sub/n.md").write_text(f"notes of {name}\n")
    first = look(home, tmp_path / "work", tmp_path / "private")
    assert counts(first, "conversations") == (4, 0, 0, 0)
    assert counts(look(home, tmp_path / "work/sub"), "conversations") == (0, 0, 1, 0)


def test_a_message_that_is_new_and_then_different_in_one_look_counts_once(home: Home, inbox: Path) -> None:
    export(inbox / "a.json", chat("a", "one", "two"))
    edited = chat("a", "ONE", "TWO", updated=START + 9_000)
    export(inbox / "b.json", edited)
    assert counts(look(home, inbox), "messages") == (2, 0, 0, 0)
    assert live_texts(home, "a") >= {"ONE", "TWO"}


def test_a_naive_time_of_this_morning_in_the_east_is_dated(home: Home, inbox: Path) -> None:
    from datetime import UTC, datetime, timedelta

    soon = (datetime.now(UTC) + timedelta(hours=23)).strftime("%Y-%m-%d %H:%M")
    (inbox / "talk.md").write_text(f"**Ann** ({soon}): early\n\n**Bo** ({soon}): yes\n\n**Ann** ({soon}): ok\n")
    look(home, inbox)
    with home.ledger() as ledger:
        (row,) = ledger.rows("SELECT day, dated FROM conversations")
    assert tuple(row) == (datetime.now(UTC).date().isoformat(), 1)


def test_a_dry_run_does_not_hold_up_a_writer(home: Home, inbox: Path) -> None:
    export(inbox / "a.json", chat("a", "hi"))
    look(home, inbox)
    export(inbox / "b.json", chat("b", "hi"))
    dry = look_dry(home, inbox)
    assert counts(dry, "conversations") == (1, 0, 1, 0)
    assert dry.as_counts() == look(home, inbox).as_counts()


def test_an_edited_note_says_what_its_file_says_now_also_when_it_gets_shorter(home: Home, inbox: Path) -> None:
    note = inbox / "list.md"
    seen: list[set[str]] = []
    for text in ("rope\n\nlamp\n\npaint\n", "rope\n", "rope\n\nlamp\n\npaint\n"):
        note.write_text(text)
        look(home, inbox)
        with home.ledger() as ledger, home.vault() as vault:
            (row,) = ledger.rows("SELECT provider, conversation_id FROM conversations")
            (sighting,) = ledger.sightings((row["provider"], row["conversation_id"]))
            seen.append({m.text for m in from_record(vault.record(sighting["record"])).messages})
    assert seen == [{"rope\n\nlamp\n\npaint"}, {"rope"}, {"rope\n\nlamp\n\npaint"}]
