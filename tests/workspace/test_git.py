"""The workspace under Git: what may be in it, an unchanged archive that gives no diff, and snapshots anybody can let run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from palace_pipeline import rebuild
from palace_pipeline.cli.archive import main_job
from palace_pipeline.purge import purge_conversation
from palace_pipeline.purge.proof import prove
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.lock import writer
from palace_pipeline.workspace.git import GitFailed, begin, snapshot
from tests.cli.conftest import Run
from tests.ingest.exports_for_tests import START, chat, export
from tests.rebuild.archives import home_at, take

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
SECRET = [
    *(
        "vault/vault.sqlite",
        "lake/raw/messages/2024-05.parquet",
        "lake/clean/messages/2024-05.parquet",
        "ledger.sqlite",
    ),
    *("ledger.sqlite-wal", "palace.duckdb", "chroma/chroma.sqlite3", "lexical/meta.json", "receipts/a.json", ".lock"),
    *(".key", "palace.toml", "dagster/dagster.yaml", "quarantine/a.json", "inbox/conversations.json"),
    *("conversations/chatgpt/2024/.tmp-1a2b3c4d-a.md", "sessions/2026-11-30/a.lock", "memory/.env", "notes/server.pem"),
    *("before-upgrades/ledger.sqlite", "schema_version", ".rebuild/lake/x", "anything-else.txt"),
]
READ = [
    "conversations/chatgpt/2024/a.md",
    "sessions/2026-11-30/1012-abcdef1-计划.md",
    "memory/facts.md",
    "index.md",
    "notes/x.md",
]


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine where Git knows nobody's name."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(home: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(home), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def tracked(home: Path) -> set[str]:
    return {name for name in git(home, "ls-files", "-z").split("\0") if name}


def write(home: Path, *names: str) -> None:
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"content of {name}\n", encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    begin(home)
    return home


@pytest.fixture
def archive(tmp_path: Path) -> Home:
    home = home_at(tmp_path / "home")
    begin(home.path)
    take(
        home, export(tmp_path / "in/a.json", chat("a", "how?", "so"), chat("b", "什么?", "那个", start=START + 86_400))
    )
    return home


def test_only_what_people_read_and_edit_is_taken(repository: Path) -> None:
    write(repository, *SECRET, *READ)
    made = snapshot(repository)
    assert tracked(repository) == {*READ, ".gitignore", ".gitattributes"}
    assert sum(made.new.values()) == len(READ) + 2
    for name in SECRET:
        assert git(repository, "check-ignore", name).strip(), name
    assert (repository / ".git").stat().st_mode & 0o077 == 0


def test_what_is_secret_stays_out_even_where_somebody_took_lines_away(repository: Path) -> None:
    write(repository, *SECRET, *READ)
    (repository / ".gitignore").write_text("# nothing\n")
    snapshot(repository)
    assert tracked(repository) == {*READ, ".gitignore", ".gitattributes"}
    assert (repository / ".gitignore").read_text().startswith("# nothing\n\n# palace: begin")
    before = (repository / ".gitignore").read_bytes()
    assert begin(repository) == []
    assert (repository / ".gitignore").read_bytes() == before


def test_an_unchanged_archive_gives_no_diff(archive: Home, tmp_path: Path) -> None:
    first = snapshot(archive.path)
    assert first.new["conversations"] == 2
    assert snapshot(archive.path).commit == ""
    page = next(archive.conversations.rglob("*.md"))
    page.write_text(page.read_text().replace("tags: []", "tags: [a, b]\nrating: 5") + "\nmy notes\n")
    with archive.ledger() as ledger:
        ledger.write("UPDATE conversations SET pages_in = NULL")
    take(archive, tmp_path / "in")  # the index learns of the tags
    assert snapshot(archive.path).changed["conversations"] == 1
    take(archive, tmp_path / "in")
    with archive.writing():
        rebuild.from_lake(archive, "test")
        rebuild.from_vault(archive, "test")
        rebuild.from_pages(archive, "test")
    with archive.ledger() as ledger:
        ledger.write("UPDATE conversations SET pages_in = NULL")
    take(archive, tmp_path / "in")
    assert git(archive.path, "status", "--porcelain") == ""
    assert snapshot(archive.path).commit == ""


def test_the_message_has_counts_and_no_word_of_a_chat(archive: Home, tmp_path: Path) -> None:
    snapshot(archive.path)
    take(archive, export(tmp_path / "in/a.json", chat("a", "how?", "so", "more"), chat("c", "new one", "yes")))
    next(path for path in archive.conversations.rglob("*chat-b-*.md")).unlink()
    made = snapshot(archive.path)
    said = git(archive.path, "log", "-1", "--format=%B")
    assert made.message.strip() == said.strip()
    assert "1 new, 1 changed, 1 removed" in said
    assert not any(word in said.lower() for word in ("chat-", "how", "new one", "更"))


def test_a_name_is_given_only_to_the_commit_and_only_where_there_is_none(repository: Path) -> None:
    write(repository, "memory/facts.md")
    snapshot(repository)
    assert git(repository, "log", "-1", "--format=%an %ae %cn") == "Palace palace@localhost Palace\n"
    assert "user" not in git(repository, "config", "--list", "--local")
    git(repository, "config", "user.name", "Ann")
    git(repository, "config", "user.email", "ann@localhost")
    git(repository, "config", "commit.gpgsign", "true")
    git(repository, "config", "gpg.program", "false")
    write(repository, "memory/preferences.md")
    snapshot(repository)
    assert git(repository, "log", "-1", "--format=%an %cn") == "Ann Ann\n"


def test_what_somebody_staged_is_left_to_them(repository: Path) -> None:
    write(repository, "memory/facts.md", "palace.toml")
    git(repository, "add", "--force", "palace.toml")
    snapshot(repository)
    assert "palace.toml" not in git(repository, "ls-tree", "-r", "--name-only", "HEAD")
    assert git(repository, "diff", "--cached", "--name-only") == "palace.toml\n"


def test_files_that_are_gone_and_odd_names(repository: Path) -> None:
    odd = ['notes/a b\n"c".md', "notes/-x.md", "notes/日本.md", "notes/:(top).md"]
    write(repository, *odd)
    assert snapshot(repository).new["notes"] == len(odd)
    shutil.rmtree(repository / "notes")
    assert snapshot(repository).removed == {"notes": len(odd)}
    assert snapshot(repository).commit == ""


def test_a_snapshot_is_skipped_while_somebody_writes(archive: Home, palace: Run) -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from palace_pipeline.store.lock import writer\n"
            "with writer(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()",
            str(archive.path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        result = palace("snapshot")
        assert (result.code, "Skipped" in result.err) == (0, True)
        assert palace("snapshot", "--json").json["skipped"] == "the archive is being written"
    finally:
        holder.communicate()
    assert palace("snapshot").code == 0
    assert palace("snapshot").out == "Nothing has changed since the last snapshot.\n"
    assert palace("snapshot", "--json").json["commit"] is None


def test_the_commands(palace: Run, tmp_path: Path) -> None:
    assert palace("init", "--git").code == 0
    assert palace("init", "--git", "--json").json == {
        "home": str(tmp_path / "home"),
        "new": False,
        "git": True,
        "written": [],
    }
    home = Home(load_settings(tmp_path / "home"))
    with home.writing():
        main_job(home, [export(tmp_path / "in/a.json", chat("a", "how?", "so"))], None)
    result = palace("snapshot")
    assert (result.code, "Snapshot: " in result.out) == (0, True)
    assert git(home.path, "status", "--porcelain") == ""


def test_without_a_repository_it_says_what_to_do(tmp_path: Path, palace: Run) -> None:
    outer = tmp_path / "home"
    outer.mkdir()
    with pytest.raises(GitFailed, match="palace init --git"):
        snapshot(outer)
    assert palace("init").code == 0
    result = palace("snapshot")
    assert result.code == 1
    assert "palace init --git" in result.err


def test_gits_own_lock_is_told_and_nothing_is_broken(repository: Path) -> None:
    write(repository, "memory/facts.md")
    (repository / ".git/index.lock").touch()
    with pytest.raises(GitFailed, match=r"index\.lock"):
        snapshot(repository)
    (repository / ".git/index.lock").unlink()
    assert snapshot(repository).commit


def test_the_lock_is_free_afterwards(archive: Home) -> None:
    snapshot(archive.path)
    with writer(archive.path, wait_seconds=0):
        pass


def test_a_purge_says_that_earlier_commits_still_hold_it(archive: Home, tmp_path: Path) -> None:
    take(
        archive,
        export(tmp_path / "in/more.json", chat("p", "plans for the orchard behind the mill", "apples and pears")),
    )
    snapshot(archive.path)
    with archive.writing():
        purged = purge_conversation(archive, [("chatgpt", "p")], vault=True, batch="test")
    (found,) = purged.proof.found
    assert found.startswith("git history: ")
    assert "palace init --git" in found
    shutil.rmtree(archive.path / ".git")
    begin(archive.path)
    snapshot(archive.path)
    assert prove(archive, ["plans for the orchard behind the mill"], [("chatgpt", "p")], pieces=True).found == []
