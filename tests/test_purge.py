"""`palace purge`, without the command line: what is gone, what stays, and that it stays gone."""

import json
import shutil
from pathlib import Path

import pytest

import palace_pipeline.purge.rest as steps
from palace_pipeline.checks import audit
from palace_pipeline.ingest import ingest
from palace_pipeline.purge import (
    Purged,
    PurgeError,
    find_conversation,
    find_value,
    finish,
    purge_conversation,
    purge_value,
)
from palace_pipeline.purge.proof import prove
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.vault import Vault
from tests.ingest.exports_for_tests import START, chat, export
from tests.stages.test_stages import DAY, EVERYTHING, planned, snapshot, take

SECRET_PLAN = "the meeting behind the old harbour is at nine"
ANSWER = "I will bring the blue umbrella as agreed upon"
OTHER = "an ordinary question about gardening in spring"
VALUE = "Villa Aurelia 北京"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(load_settings(tmp_path / "home"))


def forget_chat(home: Home, named: str, *, vault: bool = False) -> Purged:
    with home.writing():
        target = find_conversation(home, named, vault=vault)
        return purge_conversation(home, target.keys, vault=vault, batch="purge")


def forget_value(home: Home, value: str, *, vault: bool = False) -> Purged:
    with home.writing():
        return purge_value(home, find_value(home, value), vault=vault, batch="purge")


def everything(home: Home) -> bytes:
    """All bytes of a home, and those that its vault keeps compressed."""
    files = [path for path in home.path.rglob("*") if path.is_file()]
    found = b"".join(path.name.encode() + path.read_bytes() for path in files)
    vault = Vault(home.path / "vault", reading=True)
    found += b"".join(data for table in ("records", "pieces") for _, data in vault.every(table))
    vault.close()
    return found


def test_a_purged_conversation_is_in_no_store_and_the_others_stay_as_they_were(home: Home, tmp_path: Path) -> None:
    file = export(
        tmp_path / "in/a.json", chat("gone-chat", SECRET_PLAN, ANSWER), chat("stays", OTHER, "begin in March")
    )
    take(home, file)
    others = {name: data for name, data in snapshot(home).items() if name.endswith(".md") and "gone" not in name}
    assert len(others) == 1
    purged = forget_chat(home, "chatgpt:gone-chat", vault=True)
    assert purged.clean, purged.proof.found
    assert purged.proof.probes >= 2
    assert purged.removed["conversations"] == 1
    assert purged.files == [str(file)]
    left = everything(home)
    assert SECRET_PLAN.encode() not in left
    assert ANSWER.encode() not in left
    assert OTHER.encode() in left
    now = snapshot(home)
    assert {name: now[name] for name in others} == others
    assert [name for name in now if name.endswith(".md")] == list(others)
    assert audit(home, EVERYTHING) == {}
    assert planned(home) == []


@pytest.mark.parametrize("vault", [False, True])
def test_a_purged_conversation_does_not_come_back(home: Home, tmp_path: Path, vault: bool) -> None:
    file = export(
        tmp_path / "in/a.json", chat("gone-chat", SECRET_PLAN, ANSWER), chat("stays", OTHER, "begin in March")
    )
    take(home, file)
    forget_chat(home, "gone-chat", vault=vault)
    before = snapshot(home)
    with home.writing():
        again = ingest(home, [file], batch="again")
    assert again.files["unchanged"] == 1
    assert again.conversations == {"found": 2, "new": 0, "updated": 0, "unchanged": 1, "skipped": 1}
    assert planned(home) == []
    export(file, chat("gone-chat", SECRET_PLAN, ANSWER, "one more word"), chat("stays", OTHER, "begin in March"))
    dry = ingest(home, [file], batch="dry", dry_run=True)
    take(home, file)
    with home.writing():
        real = ingest(home, [file], batch="again")
    assert dry.conversations == real.conversations == again.conversations
    assert [(skip.reason, skip.expected) for skip in dry.skips] == [("purged by you", True)]
    assert snapshot(home) == before
    left = everything(home)
    assert (SECRET_PLAN.encode() in left) is not vault
    with home.ledger() as ledger:
        assert ledger.one("SELECT 1 FROM conversations WHERE conversation_id = 'gone-chat'") is None


def test_a_purged_value_is_masked_everywhere_and_stays_masked(home: Home, tmp_path: Path) -> None:
    shown = chat("shown", f"we meet at {VALUE} on Monday", "a fine place")
    shown["title"] = f"Plans for {VALUE}"
    file = export(tmp_path / "in/a.json", shown, chat("stays", OTHER, "begin in March", start=START + DAY))
    take(home, file)
    page = next(path for path in home.conversations.rglob("*.md") if "aurelia" in path.name)
    text = page.read_text()
    page.write_text(text.replace("## Notes\n", f"## Notes\n\nnever forget {VALUE}\n"))
    page.with_name(f"{page.stem}.conflict.md").write_text(f"an old copy with {VALUE}")
    others = {name: data for name, data in snapshot(home).items() if name.endswith(".md") and "stays" in name}
    purged = forget_value(home, VALUE, vault=True)
    assert purged.clean, purged.proof.found
    left = everything(home)
    for form in (VALUE.encode(), json.dumps(VALUE)[1:-1].encode(), VALUE.encode("utf-16-le"), b"aurelia"):
        assert form not in left
    assert "never forget [REDACTED:purged]" in next(home.conversations.rglob("*purged*.md")).read_text()
    assert audit(home, EVERYTHING) == {}
    assert planned(home) == []
    now = snapshot(home)
    assert {name: now[name] for name in others} == others
    with home.writing():
        again = ingest(home, [file], batch="again")
    assert again.conversations["unchanged"] == 2
    export(file, shown, chat("stays", OTHER, "begin in March", start=START + DAY), chat("new", f"again {VALUE}", "yes"))
    take(home, file)
    assert VALUE.encode() not in everything(home)
    assert json.dumps(VALUE)[1:-1].encode() not in everything(home)
    assert {name: data for name, data in snapshot(home).items() if name in now and name.endswith(".md")} == {
        name: data for name, data in now.items() if name.endswith(".md")
    }


@pytest.mark.parametrize("name", ["李雷", "欧阳娜", "김철수", "たなか"])
def test_a_name_of_two_or_three_characters_can_be_purged(home: Home, tmp_path: Path, name: str) -> None:
    shown = chat("shown", f"昨天和{name}吃饭，{name}说好", f"{name} is fine")
    shown["title"] = f"和{name}的计划"
    file = export(tmp_path / "in/a.json", shown, chat("stays", OTHER, "begin in March", start=START + DAY))
    take(home, file)
    purged = forget_value(home, name, vault=True)
    assert purged.clean, purged.proof.found
    left = everything(home)
    for form in (name.encode(), json.dumps(name)[1:-1].encode()):
        assert form not in left
    assert "昨天和[REDACTED:purged]吃饭" in next(home.conversations.rglob("*purged*.md")).read_text(encoding="utf-8")
    take(home, file)
    assert name.encode() not in everything(home)


# --- whole logs, channels, files with several conversations -----------------------------------------------------------


def pages(home: Home) -> dict[str, bytes]:
    return {name: data for name, data in snapshot(home).items() if name.endswith(".md")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "fixture",
    [
        "11-claude-code-session",
        "15-claude-code-resume-dup",
        "21-gemini-takeout-json",
        "35-slack-export",
        "48-plain-notes",
    ],
)
@pytest.mark.parametrize("vault", [False, True])
def test_every_layout_of_files_forgets_and_keeps_the_rest(
    home: Home, tmp_path: Path, fixtures: Path, fixture: str, vault: bool
) -> None:
    source = tmp_path / "in" / fixture
    shutil.copytree(fixtures / "exports" / fixture, source, ignore=shutil.ignore_patterns("expected.json"))
    take(home, source)
    with home.ledger() as ledger:
        rows = ledger.rows(
            "SELECT provider, conversation_id, page FROM conversations WHERE superseded_by IS NULL ORDER BY messages DESC"
        )
    first = rows[0]
    others = {name: data for name, data in pages(home).items() if name != first["page"]}
    purged = forget_chat(home, f"{first['provider']}:{first['conversation_id']}", vault=vault)
    assert purged.clean, purged.proof.found
    assert purged.proof.probes > 0
    assert pages(home) == others
    assert audit(home, EVERYTHING) == {}
    after = snapshot(home)
    for file in source.rglob("*"):
        if file.is_file():  # looked at again, as if it had changed
            file.touch()
    with home.ledger() as ledger:
        ledger.write("UPDATE files SET sha256 = 'another', size = 0")
        ledger.write("DELETE FROM elements")
    assert take(home, source) == {}
    assert snapshot(home) == after
    if vault and not purged.shared:
        again = prove(home, [], [(first["provider"], first["conversation_id"])], pieces=True)
        assert again.found == []


def test_raw_bytes_that_hold_others_too_stay_and_are_named(home: Home, tmp_path: Path, fixtures: Path) -> None:
    source = tmp_path / "in"
    shutil.copytree(fixtures / "exports/21-gemini-takeout-json", source)
    (source / "expected.json").unlink()
    take(home, source)
    with home.ledger() as ledger:
        rows = ledger.rows("SELECT provider, conversation_id FROM conversations ORDER BY 2")
    assert len(rows) > 1
    purged = forget_chat(home, f"{rows[0]['provider']}:{rows[0]['conversation_id']}", vault=True)
    assert purged.clean
    assert [Path(path).name for path in purged.shared] == ["MyActivity.json"]


def test_what_was_resumed_in_a_purged_session_goes_with_it(home: Home, tmp_path: Path, fixtures: Path) -> None:
    source = tmp_path / "in"
    shutil.copytree(
        fixtures / "exports/15-claude-code-resume-dup", source, ignore=shutil.ignore_patterns("expected.json")
    )
    take(home, source)
    with home.ledger() as ledger:
        row = ledger.one("SELECT conversation_id, superseded_by FROM conversations WHERE superseded_by IS NOT NULL")
    assert row is not None
    with pytest.raises(PurgeError, match="was continued in"):
        forget_chat(home, row["conversation_id"])
    purged = forget_chat(home, row["superseded_by"], vault=True)
    assert purged.removed["conversations"] == 2
    assert purged.clean
    with home.ledger() as ledger:
        assert ledger.rows("SELECT * FROM conversations") == []
    assert take(home, source) == {}


# --- names ------------------------------------------------------------------------------------------------------------


def test_a_conversation_is_meant_by_id_beginning_or_page(home: Home, tmp_path: Path) -> None:
    take(
        home,
        export(tmp_path / "in/a.json", chat("chat-one", "hi", "x"), chat("chat-two", "ho", "y"), chat("chat", "a")),
    )
    with home.ledger() as ledger:
        rows = ledger.rows("SELECT conversation_id, page FROM conversations")
    page = next(str(row["page"]) for row in rows if row["conversation_id"] == "chat-two")
    named = {"chatgpt:chat-one": "chat-one", "chat-o": "chat-one", "chatgpt:chat-t": "chat-two", "chat": "chat"}
    for name, meant in {**named, page: "chat-two", str(home.path / page): "chat-two"}.items():
        assert find_conversation(home, name, vault=False).keys == [("chatgpt", meant)], name
    with pytest.raises(PurgeError, match="chatgpt:chat-one, chatgpt:chat-two"):
        find_conversation(home, "chat-", vault=False)
    for nobody in ("", "nothing", "chatgpt:", "2024-05-03-x-00000000.md"):
        with pytest.raises(PurgeError):
            find_conversation(home, nobody, vault=False)


def test_tags_and_other_parts_of_the_user_are_masked_and_stay_theirs(home: Home, tmp_path: Path) -> None:
    file = export(tmp_path / "in/a.json", chat("shown", OTHER, f"not in {VALUE}"))
    take(home, file)
    page = next(home.conversations.rglob("*.md"))
    text = page.read_text()
    assert "tags: []" in text
    page.write_text(text.replace("tags: []", f'tags:\n  - "{VALUE}"\n  - garden'))
    assert forget_value(home, VALUE).clean
    text = page.read_text()
    assert "REDACTED-purged" in text
    assert "garden" in text
    assert not list(home.conversations.rglob("*.conflict*.md"))
    assert planned(home) == []


# --- proof and kills --------------------------------------------------------------------------------------------------


def test_the_proof_sees_what_is_left_anywhere(home: Home, tmp_path: Path) -> None:
    take(home, export(tmp_path / "in/a.json", chat("gone-chat", SECRET_PLAN, ANSWER), chat("stays", OTHER, "in March")))
    before = prove(home, [SECRET_PLAN], [("chatgpt", "gone-chat")], pieces=True)
    for store in ("lake", "vault records", "vault pieces", "chroma", "ledger", "files", "palace.duckdb"):
        assert before.stores[store] > 0, store
    assert forget_chat(home, "gone-chat", vault=True).clean
    for name, data in (("chroma/left.bin", SECRET_PLAN.encode("utf-16-le")), ("receipts/x.json", SECRET_PLAN.encode())):
        (home.path / name).write_bytes(b"\0\1" + data)
        assert prove(home, [SECRET_PLAN], [], pieces=True).found == [f"files: {name}"]
        (home.path / name).unlink()


STEPS = (
    *("normalize", "redact", "write_pages", "_sweep_vault", "publish_vectors", "rebuild_indexes", "publish_tables"),
    *("publish_exports", "compact"),
)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_purge_that_is_killed_is_finished_by_the_next(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    take(home, export(tmp_path / "in/a.json", chat("gone-chat", SECRET_PLAN, ANSWER), chat("stays", OTHER, "in March")))

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(steps, step, killed)
        patch.setattr(
            steps, "BEFORE_INDEXES", tuple(killed if one.__name__ == step else one for one in steps.BEFORE_INDEXES)
        )
        with pytest.raises(KeyboardInterrupt):
            forget_chat(home, "gone-chat", vault=True)
    with home.writing():
        finish(home, "again")
        assert finish(home, "once more") == {}
    assert prove(home, [SECRET_PLAN, ANSWER], [("chatgpt", "gone-chat")], pieces=True).found == []
    assert SECRET_PLAN.encode() not in everything(home)
    assert planned(home) == []
    assert audit(home, EVERYTHING) == {}


# --- rules that change ------------------------------------------------------------------------------------------------


def test_a_new_private_pattern_takes_the_old_words_out_of_every_store(home: Home, tmp_path: Path) -> None:
    shown = chat("shown", "the code name is bluefalcon and nobody knows", "a fine name")
    shown["title"] = "Notes on bluefalcon"
    take(home, export(tmp_path / "in/a.json", shown, chat("stays", OTHER, "begin in March", start=START + DAY)))
    page = next(path for path in home.conversations.rglob("*.md") if "bluefalcon" in path.name)
    page.write_text(page.read_text().replace("nobody knows", "everybody knows"))  # makes a copy of the conflict
    settings = home.settings.model_copy(
        update={"redaction": home.settings.redaction.model_copy(update={"private_patterns": ["bluefalcon"]})}
    )
    changed = Home(settings)
    take(changed)
    assert planned(changed) == []
    assert audit(changed, EVERYTHING) == {}
    assert list(changed.conversations.rglob("*.conflict*.md"))
    for path in changed.path.rglob("*"):
        inside = path.relative_to(changed.path).as_posix()
        assert "bluefalcon" not in path.name
        if path.is_file() and not inside.startswith(("vault/", "lake/raw/", "ledger.sqlite")):
            assert b"bluefalcon" not in path.read_bytes(), inside


def test_names_of_files_are_redacted_where_they_are_shown(home: Home, tmp_path: Path) -> None:
    address = "jane.doe" + "@" + "harbour-mail.de"
    take(home, export(tmp_path / f"in/mail of {address}.json", chat("a", "hi", "ho")))
    (tmp_path / f"in/broken {address}.json").write_text("{")
    with home.writing():
        ingest(home, [tmp_path / "in"], batch="names")
        from palace_pipeline.stages.names import write_receipt
        from palace_pipeline.stages.publish import publish_exports

        publish_exports(home, "names")
        with home.ledger() as ledger:
            receipt = write_receipt(home, ledger, "names")
    assert "[REDACTED:email]" in receipt["skipped"][0]["where"]
    for path in (home.warehouse, home.receipts / "names.json", *home.conversations.rglob("*.md")):
        assert address.encode() not in path.read_bytes()
