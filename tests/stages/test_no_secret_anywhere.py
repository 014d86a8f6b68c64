"""From every format to every store: a fresh token in each text of each fixture, and none of them anywhere but in what
is kept unredacted for the user alone (the vault, the raw lake)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.archive_texts import raw_bytes, stored_texts
from tests.stages.poison import Poison, finder


def palace(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=1_200, check=False)


@pytest.mark.slow
def test_no_token_of_any_format_reaches_a_store_a_log_or_the_terminal(tmp_path: Path, fixtures: Path) -> None:
    poison = Poison("everywhere")
    for folder in sorted((fixtures / "exports").iterdir()):
        poison.folder(folder, tmp_path / "in" / folder.name)
    home = tmp_path / "home"
    done = palace(home, "ingest", str(tmp_path / "in"), "--json")
    assert done.returncode in (0, 1), done.stderr[-2000:]
    receipt = json.loads(done.stdout)
    assert receipt["conversations"]["new"] > 60
    assert receipt["findings"]["github-pat"] > 500
    find = finder(poison.places)
    # The tokens did arrive: nearly every format's raw rows hold some.
    import polars as pl

    arrived: Counter[str] = Counter()
    for path in (home / "lake/raw").rglob("*.parquet"):
        for row in pl.read_parquet(path).iter_rows():
            place = find(repr(row))
            if place:
                arrived[place.split("/")[0]] += 1
    print(len(poison.places), "tokens;", len(arrived), "fixtures with tokens in the raw lake")
    assert len(arrived) > 35
    leaks: Counter[str] = Counter()
    for name, text in [("stdout", done.stdout), ("stderr", done.stderr), *stored_texts(home)]:
        place = find(text)
        if place is not None:
            leaks[f"{name} <- {place}"] += 1
    for name, data in raw_bytes(home):
        place = find(data.decode("latin-1"))
        if place is not None:
            leaks[f"bytes of {name} <- {place}"] += 1
    for command in (["status"], ["doctor"], ["formats"], ["sql", "from skips"], ["sql", "from exports"], ["ingest"]):
        again = palace(home, *command)
        place = find(again.stdout + again.stderr)
        if place is not None:
            leaks[f"palace {' '.join(command)} <- {place}"] += 1
    assert not leaks, "\n".join(f"{count} {leak}" for leak, count in leaks.most_common(60))
