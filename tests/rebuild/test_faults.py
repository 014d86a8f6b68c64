"""Stores that are damaged or gone: `palace doctor` says so and names a command, and that command makes the archive what an
undisturbed run made of the same exports."""

import json
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from palace_pipeline.doctor import examine
from palace_pipeline.store.home import Home
from tests.cli.conftest import Run, palace  # noqa: F401 - a fixture
from tests.ingest.exports_for_tests import START, chat, export
from tests.rebuild.archives import assert_same, copied, home_at, take

DAY = 86_400
Fault = Callable[[Home, random.Random], object]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    chats = [
        chat(
            f"c{n}",
            f"question {n} about {'apples' if n % 2 else '数据库'}",
            "answer " * (n + 2),
            start=START + n * 5 * DAY,
        )
        for n in range(24)
    ]
    export(folder / "chatgpt/conversations.json", *chats[:16])
    export(folder / "later/conversations.json", *chats[12:])
    one = json.dumps(
        chat("alone", "one chat saved by itself?", "with blanks behind it", start=START + 3 * DAY), indent=1
    )
    (folder / "alone.json").write_text(f"\n{one}\n\n")
    turns = [
        [{"role": "user", "content": f"line {n}?"}, {"role": "assistant", "content": f"yes, {n}"}] for n in range(3)
    ]
    (folder / "lines.jsonl").write_text("\n\r\n".join(json.dumps({"messages": said}) + " " for said in turns))
    (folder / "plan.md").write_text("# A plan\n\nApples first, then pears.\n")
    (folder / "cut.json").write_text('[{"mapping": ')
    return folder


@pytest.fixture(scope="module")
def archive(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = home_at(tmp_path_factory.mktemp("archive") / "home")
    take(home, sources)
    assert [finding for finding in examine(home) if finding.level == "wrong"] == []
    return home


def cut(path: Path, part: float) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])


def scribble(path: Path, rng: random.Random, *, first: int = 4096, pages: int = 1) -> None:
    """Garbage in some pages of a file, not in those before `first`."""
    data = bytearray(path.read_bytes())
    for _ in range(pages):
        at = rng.randrange(first // 4096, max(len(data) // 4096, first // 4096 + 1)) * 4096
        data[at : at + 4096] = rng.randbytes(4096)
    path.write_bytes(data)


def overwrite(path: Path, rng: random.Random, first: float, last: float) -> None:
    """Garbage in a stretch of a file, given in parts of its length."""
    data = bytearray(path.read_bytes())
    start, end = int(len(data) * first), int(len(data) * last)
    data[start:end] = rng.randbytes(end - start)
    path.write_bytes(data)


def of_lake(table: str, fault: Callable[[Path, random.Random], None]) -> Fault:
    def break_it(home: Home, rng: random.Random) -> None:
        fault(home.lake.path(table, rng.choice(home.lake.months(table))), rng)

    return break_it


def gone(path: Path) -> None:
    for one in path.parent.glob(f"{path.name}*"):
        shutil.rmtree(one) if one.is_dir() else one.unlink()


FAULTS: dict[str, Fault] = {
    "chroma deleted": lambda home, _: gone(home.path / "chroma"),
    "chroma database cut": lambda home, _: cut(home.path / "chroma/chroma.sqlite3", 0.4),
    "chroma database empty": lambda home, _: cut(home.path / "chroma/chroma.sqlite3", 0),
    "lexical index deleted": lambda home, _: gone(home.path / "lexical"),
    "lexical index empty": lambda home, _: [cut(p, 0) for p in (home.path / "lexical").iterdir()],
    "palace.duckdb cut": lambda home, _: cut(home.warehouse, 0.5),
    "palace.duckdb with garbage in the middle": lambda home, rng: overwrite(home.warehouse, rng, 0.4, 0.6),
    "palace.duckdb empty": lambda home, _: cut(home.warehouse, 0),
    "palace.duckdb deleted": lambda home, _: gone(home.warehouse),
    "palace.duckdb is another file": lambda home, _: home.warehouse.write_bytes(b"no database" * 1000),
    **{
        f"lake {table} {name}": of_lake(table, fault)
        for table in ("raw/messages", "clean/messages", "clean/chunks", "clean/drawers", "clean/vectors")
        for name, fault in {
            "cut": lambda path, _: cut(path, 0.6),
            "overwritten": lambda path, rng: path.write_bytes(rng.randbytes(path.stat().st_size)),
        }.items()
    },
    "lake deleted": lambda home, _: gone(home.path / "lake"),
    "ledger deleted": lambda home, _: gone(home.ledger_path),
    "ledger empty": lambda home, _: [gone(home.ledger_path), home.ledger_path.touch()],
    "ledger cut at its first page": lambda home, _: home.ledger_path.write_bytes(home.ledger_path.read_bytes()[:4096]),
    "ledger cut in half": lambda home, _: cut(home.ledger_path, 0.5),
    "ledger overwritten": lambda home, rng: home.ledger_path.write_bytes(rng.randbytes(100_000)),
    "ledger with a garbage page": lambda home, rng: scribble(home.ledger_path, rng, pages=3),
    "vault deleted": lambda home, _: gone(home.path / "vault/vault.sqlite"),
    "vault cut in half": lambda home, _: cut(home.path / "vault/vault.sqlite", 0.5),
    "vault overwritten": lambda home, rng: (home.path / "vault/vault.sqlite").write_bytes(rng.randbytes(100_000)),
    "vault with garbage pages": lambda home, rng: scribble(home.path / "vault/vault.sqlite", rng, pages=4),
    "key deleted": lambda home, _: gone(home.path / ".key"),
    "vault and ledger cut": lambda home, _: [cut(home.ledger_path, 0.3), cut(home.path / "vault/vault.sqlite", 0.7)],
}  # fmt: skip


def wrong(home: Home) -> list[str]:
    """The mends that doctor names for what is wrong (in a process of its own: what it opens is closed then)."""
    command = [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home.path), "doctor", "--json"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return [
        found["mend"] or found["what"] for found in json.loads(said.stdout)["findings"] if found["level"] == "wrong"
    ]


def mended(home: Home, run: Run) -> list[str]:
    """Follow doctor until nothing is wrong; returns the commands that it took."""
    done: list[str] = []
    for _ in range(3):
        said = wrong(home)
        if not said:
            return done
        commands = [re.split(r"[:;,·]| goes on| and ", mend)[0].strip() for mend in said if mend.startswith("palace ")]
        assert commands, said
        result = run(*shlex.split(commands[0])[1:], home=home.path)
        assert result.code == 0, (commands[0], result.err)
        done.append(commands[0])
    raise AssertionError(f"still wrong after {done}: {wrong(home)}")


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.slow
def test_what_doctor_names_mends_it(name: str, archive: Home, sources: Path, tmp_path: Path, palace: Run) -> None:  # noqa: F811
    home = copied(archive, tmp_path / "home")
    FAULTS[name](home, random.Random(name))
    done = mended(home, palace)
    assert done, "doctor saw nothing"
    if "and ledger" in name:  # what neither knows any more is in the exports
        assert palace("ingest", str(sources), home=home.path).code == 1  # one of them is cut
    assert_same(home.path, archive.path)


@pytest.mark.parametrize("name", ["ledger cut in half", "ledger deleted", "vault and ledger cut"])
@pytest.mark.parametrize("command", ["ingest", "status", "search apples", "doctor"])
@pytest.mark.slow
def test_no_command_goes_on_as_if_nothing_were(
    name: str,
    command: str,
    archive: Home,
    tmp_path: Path,
    palace: Run,  # noqa: F811
) -> None:
    home = copied(archive, tmp_path / "home")
    FAULTS[name](home, random.Random(name))
    before = {path: path.read_bytes() for path in home.lake.folder.rglob("*.parquet")}
    result = palace(*command.split(), home=home.path)
    assert "Traceback" not in result.err
    assert {path: path.read_bytes() for path in home.lake.folder.rglob("*.parquet")} == before
    if command in ("ingest", "status"):
        assert result.code == 1
        assert "palace rebuild --from vault" in result.err or "palace doctor" in result.err, result.err
    if command == "doctor":
        assert result.code == 1
        assert "palace rebuild --from vault" in result.out
