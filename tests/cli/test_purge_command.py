"""`palace purge` as a person and as a program meet it."""

import io
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.ingest.exports_for_tests import chat, export

PLAN = "the meeting behind the old harbour is at nine"


class Piped:
    """Stdin with these bytes, and nobody to ask."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)

    def isatty(self) -> bool:
        return False


@pytest.fixture
def archive(palace: Run, tmp_path: Path) -> Run:
    file = export(tmp_path / "in/a.json", chat("chat-one", PLAN, "as agreed"), chat("chat-two", "what else", "nothing"))
    assert palace("ingest", str(file)).code == 0
    return palace


def test_a_conversation_is_purged_with_proof(archive: Run, tmp_path: Path) -> None:
    result = archive("purge", "chat-one", "--vault", "--yes", "--json")
    assert result.code == 0, result.err
    assert result.json["clean"] is True
    assert result.json["proof"]["found"] == []
    assert set(result.json["proof"]["stores"].values()) == {0}
    assert result.json["removed"]["conversations"] == 1
    assert result.json["your_files"] == [str(tmp_path / "in/a.json")]
    assert "chatgpt:chat-one" in result.err
    again = archive("ingest", str(tmp_path / "in/a.json"), "--json")
    assert again.code == 0
    assert again.json["conversations"] == {"found": 2, "new": 0, "updated": 0, "unchanged": 1, "skipped": 1}
    assert set(again.json["seconds"]) == {"raw_exports"}  # nothing to do starts no run
    for path in (tmp_path / "home").rglob("*"):
        assert not path.is_file() or PLAN.encode() not in path.read_bytes(), path.name
    doctor = archive("doctor", "--json")
    assert doctor.code == 0, doctor.out


def test_a_value_comes_from_stdin_and_is_never_shown(
    archive: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Piped(b"old harbour\n"))
    result = archive("purge", "--value-from-stdin", "--vault", "--yes")
    assert result.code == 0, result.err
    assert "old harbour" not in result.out + result.err
    assert "nothing left" in result.out
    page = next(path for path in (tmp_path / "home/conversations").rglob("*.md") if "chat-one" in path.name)
    assert "the meeting behind the [REDACTED:purged] is at nine" in page.read_text()


def test_wrong_usage_changes_nothing_and_says_what_to_write(
    archive: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Piped(b"abc\n"))
    before = {path: path.read_bytes() for path in (tmp_path / "home/conversations").rglob("*.md")}
    for arguments, said in (
        (("chat-",), "--yes"),
        (("chat-", "--yes"), "chatgpt:chat-one, chatgpt:chat-two"),
        (("nobody", "--yes"), "no conversation"),
        (("--yes",), "--value-from-stdin"),
        (("chat-one", "--value-from-stdin", "--yes"), "--value-from-stdin"),
        (("--value-from-stdin", "--yes"), "at least 4 letters"),
    ):
        result = archive("purge", *arguments)
        assert result.code == 2, arguments
        assert said in result.err
    assert {path: path.read_bytes() for path in before} == before


def test_the_same_command_finishes_a_purge_that_was_killed(
    archive: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import palace_pipeline.purge.rest as steps

    def killed(_: Path) -> None:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(steps, "compact", killed)
        assert archive("purge", "chat-one", "--vault", "--yes").code == 1
    result = archive("purge", "chat-one", "--vault", "--yes")
    assert result.code == 0
    assert "chatgpt:chat-one was purged before; looks again for what is left of it." in result.err
    assert "STILL FOUND" not in result.out
    assert archive("purge", "chat-one", "--vault", "--yes").code == 0
    assert archive("purge", "chat-on", "--vault", "--yes").code == 2


def test_an_export_that_is_called_like_the_value_is_said_to_stay_so(
    archive: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = export(tmp_path / "in/Old Harbour.json", chat("chat-three", "about boats", "yes"))
    (tmp_path / "in/Old Harbour.txt.json").write_text("{")
    assert archive("ingest", str(tmp_path / "in")).code == 1
    monkeypatch.setattr("sys.stdin", Piped(b"Old Harbour\n"))
    result = archive("purge", "--value-from-stdin", "--vault", "--yes")
    assert result.code == 0, result.err
    assert f"still called so: a file in {tmp_path}/in." in result.out
    assert "Old Harbour" not in result.out + result.err
    again = archive("ingest", str(tmp_path / "in"), "--json")
    assert again.json["files"] == {"found": 3, "new": 0, "updated": 0, "unchanged": 2, "skipped": 1}
    export(file, chat("chat-three", "about boats", "yes", "and oars"))
    assert archive("ingest", str(file)).code == 0
    for path in (tmp_path / "home").rglob("*"):
        assert not path.is_file() or b"Old Harbour" not in path.read_bytes(), path.name


def test_a_value_that_stands_nowhere_is_said_to(archive: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Piped(b"nobody said so"))
    result = archive("purge", "--value-from-stdin", "--vault", "--yes")
    assert result.code == 0
    assert "No conversation says the value" in result.err
    assert "It stood nowhere that Palace looks: nothing was changed." in result.out
    monkeypatch.setattr("sys.stdin", Piped(b"old harbour"))
    told = archive("purge", "--value-from-stdin", "--vault", "--yes")
    assert "Masks the value in 1 conversation," in told.err
    assert "nowhere" not in told.out


def test_what_to_do_about_what_is_left_follows_from_where_it_is(archive: Run, tmp_path: Path) -> None:
    (tmp_path / "home/copied.txt").write_text(PLAN)
    result = archive("purge", "chat-one", "--vault", "--yes")
    assert result.code == 1
    assert "still found: files: copied.txt" in result.err
    assert "a copy, or a file of your own: take the words out of it, or delete it. Then run the same" in result.err
    assert "program" not in result.err
