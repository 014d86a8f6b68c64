"""The workspace under Git: what a person reads and edits has a history; raw exports, keys and derived stores do not.

Git is called as a program, only ever on the home's own repository, and never to push. A commit names counts, no chat.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from palace_pipeline.store.files import Told, make_folder, write_bytes

TRACKED = ("conversations", "sessions", "memory", "artifacts", "notes", "logs", "index.md")
"""What a snapshot takes, below the home."""
OWN = (".gitignore", ".gitattributes")
_NEVER = (
    *(".tmp-*", "*.lock", ".lock", ".key*", "*.key", "*.pem", "*.p12", ".env*", ".netrc", "id_rsa*", "id_ed25519*"),
    *("*.sqlite*", "*.duckdb*", "*.parquet", "*.claims"),
)
"""Names that are left out wherever they lie: locks, temporary files, keys, databases, hashes of secrets."""
_BEGIN = "# palace: begin"
_END = "# palace: end"
_ALLOWED = "\n".join(f"!/{name}" if "." in name else f"!/{name}/" for name in (*OWN, *TRACKED))
_NAMES = "\n".join(_NEVER)
_BLOCK = f"""\
{_BEGIN} (written by palace init --git; put lines of your own outside of this block)
# Everything is left out but what people read and edit:
/*
{_ALLOWED}
# Raw exports and what is not redacted, keys, settings (they may name secrets), locks and temporary files:
/vault/
/lake/
/quarantine/
/inbox/
/palace.toml
{_NAMES}
# What can be made again:
/ledger.sqlite*
/palace.duckdb*
/chroma/
/chroma-next/
/lexical/
/receipts/
/dagster/
/before-upgrades/
/schema_version
/store_versions.json
{_END}
"""
_ATTRIBUTES = (
    "# Written by palace init --git: the bytes of a page are its own, whatever system it is read on.\n* -text\n"
)
HOW_TO_CLEAN = (
    "Palace does not rewrite your history: delete the folder .git and run palace init --git and palace snapshot to begin a "
    "new one, or use git filter-repo; copies that you pushed are yours to clean"
)
_REDIRECTING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_PREFIX")
_NAME, _EMAIL = "Palace", "palace@localhost"


class GitFailed(Told):
    """Git is not there, or said no; the text holds what it said and what to do."""


@dataclass(slots=True)
class Snapshot:
    """What a commit holds: its short id ('' if there was nothing to commit), and files by folder and kind of change."""

    commit: str = ""
    new: Counter[str] = field(default_factory=Counter[str])
    changed: Counter[str] = field(default_factory=Counter[str])
    removed: Counter[str] = field(default_factory=Counter[str])

    @property
    def message(self) -> str:
        """The commit's message: counts, and no word of a chat."""
        lines = [f"Snapshot: {_counts(sum(self.new.values()), sum(self.changed.values()), sum(self.removed.values()))}"]
        lines += [
            f"{name}: {_counts(self.new[name], self.changed[name], self.removed[name])}"
            for name in sorted({*self.new, *self.changed, *self.removed})
        ]
        return lines[0] + "\n\n" + "\n".join(lines[1:]) + "\n"


def _counts(new: int, changed: int, removed: int) -> str:
    said = [
        f"{number:,} {what}" for number, what in ((new, "new"), (changed, "changed"), (removed, "removed")) if number
    ]
    return ", ".join(said)


def is_repository(home: Path) -> bool:
    """Is the home a repository of its own (and not a folder inside of one)?"""
    return (home / ".git").exists()


def begin(home: Path) -> list[str]:
    """Make the home a repository with a `.gitignore`; may be called again. Returns the files written. Raises GitFailed.

    Lines of the person's own in `.gitignore` stay.
    """
    make_folder(home)
    if not is_repository(home):
        _git(home, "init", "--quiet")
        (home / ".git").chmod(0o700)
        _git(home, "config", "core.sharedRepository", "0600")  # what it keeps of the pages is as private as they are
    return [name for name, text in (_ignore(home), _attributes(home)) if _write(home / name, text)]


def _ignore(home: Path) -> tuple[str, str]:
    before = _read(home / ".gitignore")
    start, end = before.find(_BEGIN), before.find(_END)
    if start < 0 or end < start:
        return ".gitignore", f"{before.rstrip()}\n\n{_BLOCK}" if before.strip() else _BLOCK
    return ".gitignore", before[:start] + _BLOCK + before[end + len(_END) :].removeprefix("\n")


def _attributes(home: Path) -> tuple[str, str]:
    return ".gitattributes", _read(home / ".gitattributes") or _ATTRIBUTES


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""


def _write(path: Path, text: str) -> bool:
    data = text.encode("utf-8", "surrogateescape")
    if path.exists() and path.read_bytes() == data:
        return False
    write_bytes(path, data)
    return True


def snapshot(home: Path, *, but: Sequence[str] = ()) -> Snapshot:
    """Commit what has changed in the workspace, and nothing else that may be staged. Hold the home's write lock, so that no
    run is half done. `but`: paths below the home that are left as the last commit has them. Raises GitFailed."""
    if not is_repository(home):
        raise GitFailed(f"{home} is no Git repository yet. Make it one with: palace init --git")
    begin(home)
    there = [name for name in (*OWN, *TRACKED) if (home / name).exists() or _knows(home, name)]
    wanted = [*there, *(f":(exclude,glob)**/{name}" for name in _NEVER), *(f":(exclude,literal){path}" for path in but)]
    _git(home, "add", "--all", "--", *wanted)
    found = Snapshot()
    paths: list[bytes] = []
    first = not _has_commits(home)
    staged = ["ls-files", "-z", "--cached", "--", *wanted] if first else ["diff", "--cached", "--name-status", "-z"]
    if not first:
        staged += ["--no-renames", "--", *wanted]
    said = [part for part in _git(home, *staged).split(b"\0") if part]
    pairs = [(b"A", path) for path in said] if first else list(zip(said[::2], said[1::2], strict=True))
    for status, path in pairs:
        kind = found.new if status == b"A" else found.removed if status == b"D" else found.changed
        kind[path.decode("utf-8", "surrogateescape").partition("/")[0]] += 1
        paths.append(path)
    if not paths:
        return found
    _git(
        home,
        *("-c", "commit.gpgsign=false"),  # nobody is there to type a passphrase
        *("commit", "--quiet", "--message", found.message, "--pathspec-from-file=-", "--pathspec-file-nul"),
        given=b"\0".join(paths),
        more=_identity(home),
    )
    found.commit = _git(home, "rev-parse", "--short", "HEAD").decode().strip()
    return found


def objects(home: Path) -> Iterator[bytes]:
    """Everything that the repository of a home has ever kept: files, folders, messages. Nothing where there is none.

    Raises GitFailed; what was purged must not be said to be gone when nobody could look.
    """
    if not is_repository(home):
        return
    command = _command(home, "cat-file", "--batch-all-objects", "--batch", "--unordered")
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=_environment()) as process:
        stream = process.stdout
        assert stream is not None
        while head := stream.readline():
            size = int(head.split()[-1])
            yield stream.read(size)
            stream.read(1)
    if process.returncode:
        raise GitFailed(f"the history of {home} could not be looked through (git cat-file failed). See: git fsck")


def _knows(home: Path, name: str) -> bool:
    """Has the repository something of that name, which was deleted since?"""
    return bool(_git(home, "ls-files", "--cached", "--", name))


def _has_commits(home: Path) -> bool:
    return bool(_git(home, "for-each-ref", "--count=1", "--format=x", "refs/heads")) and not _fails(
        home, "rev-parse", "--verify", "--quiet", "HEAD"
    )


def _identity(home: Path) -> dict[str, str]:
    """Palace's own name for this commit, where the person has given Git none."""
    if not (_fails(home, "config", "user.name") or _fails(home, "config", "user.email")):
        return {}
    given = {name: os.environ.get(name) for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL")}
    name, email = given["GIT_AUTHOR_NAME"] or _NAME, given["GIT_AUTHOR_EMAIL"] or _EMAIL
    return {
        **{f"GIT_{who}_NAME": name for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": email for who in ("AUTHOR", "COMMITTER")},
    }


def _run(
    home: Path, *arguments: str, given: bytes = b"", more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = _command(home, *arguments)
    return subprocess.run(command, input=given, capture_output=True, env=_environment(more), check=False)


def _command(home: Path, *arguments: str) -> list[str]:
    program = shutil.which("git")
    if program is None:
        raise GitFailed("git is not installed, or not on the PATH. Nothing was changed")
    return [program, "-C", str(home), "-c", "core.quotePath=false", *arguments]


def _environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _REDIRECTING}
    return kept | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(more or {})}


def _git(home: Path, *arguments: str, given: bytes = b"", more: Mapping[str, str] | None = None) -> bytes:
    done = _run(home, *arguments, given=given, more=more)
    if done.returncode:
        command = next((one for one in arguments if not one.startswith("-") and "=" not in one), "")
        said = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
        raise GitFailed(f"git {command} in {home} failed: {said}. No file of the archive was changed")
    return done.stdout


def _fails(home: Path, *arguments: str) -> bool:
    return _run(home, *arguments).returncode != 0
