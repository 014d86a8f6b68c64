"""What does an export cost, and does its memory follow the number of conversations?

    python benchmarks/exporting.py --sizes 1000,10000

The archives are those of `benchmarks/grown.py` (made when they are not there). Each is exported whole: CPU seconds and memory of
the command itself, of the browser that prints PDF files only what its first process used. PDF files are made of some days.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from grown import build
from main_job import palace

KINDS = {"html": ["--all"], "md": ["--all"], "docx": ["--all"], "pdf": ["--until", "2020-01-10"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000", help="conversations in the archives (default: 1000,10000)")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/palace-grown"), help="where the archives lie")
    options = parser.parse_args()
    print("| conversations | form | files | CPU s | MB |\n|---:|---|---:|---:|---:|")
    for size in map(int, options.sizes.split(",")):
        home, _ = build(options.folder, size)
        for kind, chosen in KINDS.items():
            target = options.folder / f"out-{kind}"
            shutil.rmtree(target, ignore_errors=True)
            cost, _ = palace(home, "export", "--to", kind, str(target), *chosen)
            files = len(list(target.iterdir())) - 1
            print(f"| {size:,} | {kind} | {files:,} | {cost.cpu:.1f} | {cost.memory:.0f} |", flush=True)
            shutil.rmtree(target)


if __name__ == "__main__":
    main()
