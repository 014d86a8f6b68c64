"""kill -9 between any two changes that a run makes to the files of a home, a hundred of them over all its stores: the next
`palace ingest` makes the archive what an undisturbed run made, whatever the lake's parts are like.

A library that is loaded before all others counts the changes (of Python, SQLite, Polars, DuckDB, Chroma and Tantivy alike)
and ends the process at one of them, half of whose bytes may have been written.
"""

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from palace_pipeline.doctor import examine
from tests.archive_state import state
from tests.embedding.own_model import make_folder
from tests.ingest.exports_for_tests import START, chat, export
from tests.rebuild.archives import home_at

pytestmark = pytest.mark.slow
DAY = 86_400
WORDS = ["red", "green", "blue", "query", "passage", "green", "red", "blue", "passage", "query"]
COMMAND = (
    "import sys; from palace_pipeline.store import lake; lake.PART_BYTES = int(sys.argv.pop(1)); "
    "from palace_pipeline.cli.app import main; main()"
)
WHOLE, SMALL = 4 << 20, 3_000
"""Sizes of a part of a month, in bytes: one file a month, and as many as there are conversations."""
STORES = {
    "vault": (["vault/"], 9),
    "ledger": (["ledger.sqlite"], 14),
    "lake, raw": (["lake/raw/"], 9),
    "lake, redacted messages": (["lake/clean/messages/", "lake/clean/conversations/", "lake/clean/findings/"], 8),
    "lake, chunks": (["lake/clean/chunks/"], 7),
    "lake, drawers": (["lake/clean/drawers/"], 7),
    "lake, vectors": (["lake/clean/vectors/"], 7),
    "pages": (["conversations/"], 8),
    "Chroma": (["chroma/"], 9),
    "lexical index": (["lexical/"], 7),
    "tables": (["palace.duckdb", ".tmp-warehouse"], 7),
    "receipts, quarantine": (["receipts/", "quarantine/"], 4),
    "Dagster's records": (["dagster/"], 4),
}
"""Name -> (paths below the home, kills). Together with those of `test_kills`, which fall at random times."""


class Kill(NamedTuple):
    """Where a run is ended: at the `at`-th change of a store, in a first run or one that finds grown chats."""

    store: str
    at: int
    torn: bool
    first: bool
    part_bytes: int


class Undisturbed(NamedTuple):
    """A home that nobody disturbed, what it holds, and the changes of each store that were made on the way."""

    home: Path
    holds: dict[str, Any]
    changes: dict[str, list[str]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("counting what libraries write needs a C compiler and Linux")
    built = tmp_path_factory.mktemp("library") / "kill_points.so"
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", built, Path(__file__).parent / "kill_points.c"], check=True
    )
    return str(built)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Exports, and the same some days later: two chats have grown, one is new, a file was mended."""
    first, then = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("then")
    talks = [
        [f"why is the {WORDS[n]} one {WORDS[n + 1]}", f"{WORDS[n + 2]} {WORDS[n]} comes after it again. " * (9 * n + 2)]
        for n in range(8)
    ]
    start = START + 25 * DAY  # days of two months
    chats = [chat(f"c{n}", *talk, start=start + n * DAY) for n, talk in enumerate(talks)]
    export(first / "conversations.json", *chats)
    (first / "cut.json").write_text('[{"mapping": ')
    for n in (2, 6):
        chats[n] = chat(f"c{n}", *talks[n], "and the other one?", "the same reads early", start=start + n * DAY)
    export(then / "conversations.json", *chats, chat("c9", "a new quota", "narrow and local", start=start + 3 * DAY))
    export(then / "cut.json", chat("c10", "whole again", "never silently", start=start + 4 * DAY))
    return first, then


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that is ingested: what lies in it is put there by `put`."""
    return tmp_path_factory.mktemp("exports")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("model") / "words")


def put(source: Path, exports: Path) -> None:
    for path in source.iterdir():
        if not (exports / path.name).exists() or (exports / path.name).read_bytes() != path.read_bytes():
            shutil.copy2(path, exports / path.name)


def palace(home: Path, part_bytes: int, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", COMMAND, str(part_bytes), "--home", str(home), *words]
    environment = {**os.environ, **variables}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=600, start_new_session=True
    )


def finished(home: Path, exports: Path, part_bytes: int, **variables: str) -> None:
    done = palace(home, part_bytes, "ingest", str(exports), **variables)
    assert done.returncode in (0, 1), done.stderr  # 1: a file is cut
    assert "Traceback" not in done.stderr, done.stderr
    assert "failed" not in done.stderr, done.stderr


def store_of(home: Path, path: str) -> str | None:
    inside = path.removeprefix(f"{home}/")
    return next((name for name, (below, _) in STORES.items() if inside.startswith(tuple(below))), None)


def new_home(path: Path, model: Path) -> Path:
    path.mkdir()
    (path / "palace.toml").write_text(f'[embedding]\nmodel = "{model}"\n')
    return path


@pytest.fixture(scope="module")
def undisturbed(
    sources: tuple[Path, Path], exports: Path, model: Path, library: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[bool, int], Undisturbed]:
    """(first run or the second, bytes of a part) -> archive."""
    out: dict[tuple[bool, int], Undisturbed] = {}
    folder = tmp_path_factory.mktemp("undisturbed")
    for first in (True, False):
        put(sources[not first], exports)
        for size in (WHOLE, SMALL):
            home = folder / f"{first}-{size}"
            if first:
                new_home(home, model)
            else:
                shutil.copytree(out[True, size].home, home)
            log = folder / "log"
            finished(home, exports, size, LD_PRELOAD=library, KILL_BELOW=f"{home}/", KILL_LOG=str(log))
            changes: dict[str, list[str]] = {}
            for line in log.read_text().splitlines():
                if (store := store_of(home, line.partition(" ")[2])) is not None:
                    changes.setdefault(store, []).append(line)
            log.unlink()
            out[first, size] = Undisturbed(home, state(home), changes)
    return out


@pytest.fixture
def rng(store: str) -> random.Random:
    seed = os.environ.get("PALACE_KILL_SEED", str(random.SystemRandom().randrange(10**6)))
    print(f"PALACE_KILL_SEED={seed}")
    return random.Random(f"{seed} {store}")


@pytest.fixture(scope="module")
def table() -> Iterator[dict[str, Counter[str]]]:
    """Store -> what became of the kills in it; shown at the end (`pytest -s`)."""
    told: dict[str, Counter[str]] = {}
    yield told
    print(
        "\n| store in which the kill fell | times | in half a write | of a month in parts | result |\n|---|---|---|---|---|"
    )
    for store, counts in told.items():
        print(f"| {store} | {counts['kills']} | {counts['torn']} | {counts['small']} | {counts['equal']} equal |")


def test_an_archive_of_many_small_parts_holds_what_one_of_whole_months_does(
    undisturbed: dict[tuple[bool, int], Undisturbed],
) -> None:
    for first in (True, False):
        whole, small = undisturbed[first, WHOLE], undisturbed[first, SMALL]
        assert small.holds == whole.holds
        parts = [len(list((one.home / "lake/clean/vectors").glob("*.parquet"))) for one in (whole, small)]
        assert parts[0] == 2
        assert parts[1] > 4


def test_what_grew_in_small_parts_and_was_rebuilt_is_what_is_made_at_once(
    undisturbed: dict[tuple[bool, int], Undisturbed],
    sources: tuple[Path, Path],
    exports: Path,
    model: Path,
    tmp_path: Path,
) -> None:
    grown, at_once = tmp_path / "grown", new_home(tmp_path / "at-once", model)
    shutil.copytree(undisturbed[False, SMALL].home, grown)
    (grown / "palace.duckdb").unlink()
    shutil.rmtree(grown / "chroma")
    rebuilt = palace(grown, SMALL, "rebuild")
    assert rebuilt.returncode == 0, rebuilt.stderr
    put(sources[1], exports)
    finished(at_once, exports, WHOLE)
    # Vault and ledger know the earlier states of the files, too, and a chat the file that showed it first. `palace` is
    # the hash of a page.
    found, expected = (state(home, leave={"source_sha256", "palace"}) for home in (grown, at_once))
    for store in set(expected) - {"vault", "ledger"}:
        assert found[store] == expected[store], f"{store} differs"


@pytest.mark.parametrize("store", STORES)
def test_a_run_that_is_killed_while_it_writes_a_store_is_finished_by_the_next(
    store: str,
    undisturbed: dict[tuple[bool, int], Undisturbed],
    sources: tuple[Path, Path],
    exports: Path,
    model: Path,
    library: str,
    rng: random.Random,
    table: dict[str, Counter[str]],
    tmp_path: Path,
) -> None:
    counts = table.setdefault(store, Counter())
    for number in range(STORES[store][1]):
        first, size = bool(number % 4 < 2), (SMALL, WHOLE)[number % 2]
        expected = undisturbed[first, size]
        if store not in expected.changes:
            first, expected = True, undisturbed[True, size]
        torn = rng.random() < 0.5
        kill = Kill(store, rng.randint(1, len(expected.changes[store])), torn, first, size)
        home = tmp_path / f"home-{number}"
        if first:
            new_home(home, model)
        else:
            shutil.copytree(undisturbed[True, size].home, home)
        put(sources[not first], exports)
        fell = killed(kill, home, exports, library, tmp_path / "log")
        counts["kills"] += 1
        counts["torn"] += torn and fell.startswith("write")
        counts["small"] += size == SMALL
        finished(home, exports, size)
        holds = state(home)
        for name, content in undisturbed[first, WHOLE].holds.items():
            assert holds[name] == content, f"{name} differs after {kill}: {fell}"
        assert left_behind(home) == [], f"{kill}: {fell}"
        assert [found for found in examine(home_at(home)) if found.level == "wrong"] == [], f"{kill}: {fell}"
        counts["equal"] += 1
        print(f"{kill}: {fell.replace(f'{home}/', '')}: equal")
        shutil.rmtree(home)


def killed(kill: Kill, home: Path, exports: Path, library: str, log: Path) -> str:
    """Ingest until the kill comes; returns the change at which it came."""
    log.unlink(missing_ok=True)
    variables = {"KILL_TORN": "1"} if kill.torn else {}
    run = palace(
        home,
        kill.part_bytes,
        "ingest",
        str(exports),
        LD_PRELOAD=library,
        KILL_BELOW="\n".join(f"{home}/{below}" for below in STORES[kill.store][0]),
        KILL_AT=str(kill.at),
        KILL_LOG=str(log),
        **variables,
    )
    if not log.exists():  # the same work is not done in the very same steps
        assert run.returncode in (0, 1), run.stderr
        return "it came to its end before"
    assert run.returncode == -9
    return log.read_text().strip()


def left_behind(home: Path) -> list[str]:
    """Files that were being made when a kill came and that nobody needs."""
    found = [path for path in home.rglob(".*") if path.name.startswith((".tmp", ".key-")) and not path.is_dir()]
    return [path.relative_to(home).as_posix() for path in found]
