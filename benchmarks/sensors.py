"""What watching costs: CPU seconds of a tick of each sensor over 1,000, 10,000 and 100,000 known files.

    python -m benchmarks.sensors [FILES ...]

The files are small and lie in folders of 500; the ledger knows them all (its rows are written straight, as a reading of
100,000 files would take an hour). "idle" is a tick with nothing new, "one new" one with a file that has settled,
"resting" the tick that follows an idle one. Peak memory is that of the process.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import dagster as dg

from palace_pipeline.exports.scan import Seen, scan
from palace_pipeline.ingest.recipes import ALL_READERS
from palace_pipeline.resources import PalaceResource
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from sensors import export_folders, gaps, planned_days

A_FOLDER = 500
OLD = 60.0


def make(home: Home, count: int) -> None:
    """Files in the inbox, and their rows in the ledger."""
    for number in range(count):
        folder = home.path / f"inbox/{number // A_FOLDER:04}"
        if number % A_FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"rollout-{number:06}.jsonl").write_bytes(b"{}\n")
    with home.ledger() as ledger, ledger.transaction():
        ledger.write_many(
            "INSERT INTO files (path, root, size, mtime_ns, inode, sha256, status, recipe, first_seen_at, read_at, "
            "conversations, messages, skipped) VALUES (?, ?, ?, ?, ?, '', 'done', ?, '', '', 1, 2, 0)",
            (
                (seen.path, seen.root, seen.size, seen.mtime_ns, seen.inode, ALL_READERS)
                for seen in scan([home.path / "inbox"], home.path)
                if isinstance(seen, Seen)
            ),
        )


def tick(
    sensor: dg.SensorDefinition, instance: dg.DagsterInstance, home: Path, cursor: str | None
) -> tuple[float, str, str | None]:
    """CPU seconds of one tick, what it said, and its cursor."""
    resources = {"palace": PalaceResource(home=str(home))}
    with dg.build_sensor_context(instance=instance, resources=resources, cursor=cursor) as context:
        began = time.process_time()
        said = sensor(context)
        seconds = time.process_time() - began
        asked = isinstance(said, dg.SensorResult) and said.run_requests
        return seconds, "a run is asked for" if asked else str(getattr(said, "skip_message", said)), context.cursor


def measure(count: int, folder: Path) -> None:
    home = Home(load_settings(folder / "home"))
    with home.writing():
        make(home, count)
    now = time.time

    def later() -> float:
        return now() + OLD  # the files have come to rest

    with dg.DagsterInstance.ephemeral(tempdir=str(folder)) as instance, mock.patch("sensors.exports.time.time", later):
        _, _, cursor = tick(export_folders, instance, home.path, None)  # imports, caches of the disk
        seconds, said, cursor = tick(export_folders, instance, home.path, _rested(cursor))
        row("export_folders idle", count, seconds, said, cursor)
        row("export_folders resting", count, *tick(export_folders, instance, home.path, cursor))
        (home.path / "inbox/0000/new.jsonl").write_bytes(b"{}\n")
        row("export_folders one new", count, *tick(export_folders, instance, home.path, _rested(cursor)))
        _, _, cursor = tick(planned_days, instance, home.path, None)
        row("planned_days whole look", count, *tick(planned_days, instance, home.path, None))
        row("planned_days resting", count, *tick(planned_days, instance, home.path, cursor))
        _, _, cursor = tick(gaps, instance, home.path, None)
        row("gaps resting", count, *tick(gaps, instance, home.path, cursor))


def _rested(cursor: str | None) -> str | None:
    """The cursor after the rest that a look is followed by."""
    import orjson

    return orjson.dumps(orjson.loads(cursor) | {"rest_until": 0.0}).decode() if cursor else None


def row(name: str, files: int, seconds: float, said: str, cursor: str | None) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {files:,} | {seconds:.3f} | {len(cursor or '')} | {peak:.0f} | {said[:60]} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    print("| tick | files | CPU s | cursor, bytes | peak MB | said |\n|---|---|---|---|---|---|")
    for count in parser.parse_args().files:
        folder = Path(tempfile.mkdtemp(prefix="palace-sensors-"))
        try:
            measure(count, folder)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
