"""What does it cost to ingest many live sessions at once, and again after each of them has grown?

    python benchmarks/live_sessions.py --sessions 10000

Session pages of 12 messages and 8 KB (those of `workspace.py`), spread over 313 days, in a home of their own; then `palace
ingest` with a model that looks words up instead of running a network. After that every page gets one entry more, and
`palace ingest` runs again. CPU seconds and memory are those of the whole command; the stages are in seconds of the clock.
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from grown import write_model
from main_job import palace
from workspace import BEGIN, a_session

from palace_pipeline.workspace import names
from palace_pipeline.workspace.reading import parse
from palace_pipeline.workspace.session import as_entry, render

DAYS = 313


def write_sessions(home: Path, count: int) -> None:
    """`count` pages, as many on each of the days before `BEGIN`."""
    for number in range(count):
        session = a_session(number)
        began = BEGIN - timedelta(days=DAYS - number * DAYS // count, minutes=-(number % 50))
        moved = began - session.ts
        session.id, session.ts = names.session_id(began, str(number)), began
        for entries in session.sections.values():
            entries[:] = [replace(entry, at=entry.at + moved) if entry.at else entry for entry in entries]
        path = home / names.path_of(session.id, session.title)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(session), encoding="utf-8")


def let_grow(home: Path) -> None:
    """One entry more on every page, an hour after it was begun."""
    for path in sorted((home / names.SESSIONS).rglob("*.md")):
        session = parse(path.read_text(encoding="utf-8"), path)
        session.sections["conclusion"].append(
            as_entry("The oven is fine now.", session.ts + timedelta(hours=1), "planner")
        )
        path.write_text(render(session), encoding="utf-8")


def ingest(home: Path, name: str) -> None:
    cost, told = palace(home, "ingest", "--json")
    receipt = json.loads(told[told.index("{") :])  # behind what was said of the progress
    seconds = ", ".join(f"{stage} {spent:.0f}" for stage, spent in receipt["seconds"].items())
    print(
        f"| {name} | {cost.cpu:.0f} | {cost.wall:.0f} | {cost.memory:.0f} | {receipt['days']} | {seconds} |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000, help="pages (default: 10000)")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/palace-live"), help="where the home lies")
    options = parser.parse_args()
    home, model = options.folder / f"home-{options.sessions}", options.folder / "words-model"
    if not (model / "palace-model.json").exists():
        write_model(model)
    shutil.rmtree(home, ignore_errors=True)
    write_sessions(home, options.sessions)
    (home / "palace.toml").write_text(f'[embedding]\nmodel = "{model}"\n')
    print("| | CPU s | wall s | memory MB | days | stages, s |\n|---|---|---|---|---|---|")
    ingest(home, f"{options.sessions:,} sessions")
    let_grow(home)
    ingest(home, "all of them grown")


if __name__ == "__main__":
    main()
