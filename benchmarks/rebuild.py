"""What does it cost to make an archive again from its Markdown pages?

    python benchmarks/rebuild.py --pages 10000

Pages of 12 messages and 8 KB are written as Palace writes them, over six years, into an empty home; then `palace rebuild
--from pages` runs with a model that looks words up instead of running a network. CPU seconds of the whole command, and of
its parts in one process (the same functions, one behind the other). Beside it stands the least that anybody would have to
do: read every page and parse its front matter with PyYAML.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from grown import WORDS, write_model
from main_job import ROOT, environment, palace

FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)
MONTHS = 72
MESSAGES = 12
BYTES = 8_000


def write_pages(home: Path, count: int) -> int:
    """Pages of chats of one provider; returns their bytes."""
    from palace_pipeline.model import Conversation, Message
    from palace_pipeline.transcripts.page import PageHead, page_folder, page_name, render

    size = 0
    for number in range(count):
        rng = random.Random(number)
        start = FIRST_DAY + timedelta(days=MONTHS * 30.4 * number / count, seconds=rng.randrange(80_000))
        said = [" ".join(rng.choices(WORDS, k=82)) + "." for _ in range(MESSAGES)]
        messages = [
            Message(f"{number}-{at}", "assistant" if at % 2 else "user", text, created_at=start + timedelta(minutes=at))
            for at, text in enumerate(said)
        ]
        chat = Conversation("chatgpt", f"chat-{number:07}", messages, title=" ".join(rng.choices(WORDS, k=4)))
        head = PageHead(start.date(), wing="chatgpt", rooms=("general",), source_sha256=("0" * 64,))
        page = render(chat, head).encode()
        path = home / page_folder(start.date(), chat.provider) / page_name(start.date(), chat.title, *chat.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page)
        size += len(page)
    return size


def build(folder: Path, count: int) -> Path:
    """A folder with the pages of an archive, and a palace.toml that names the model."""
    source = folder / f"pages-{count}"
    model = folder / "words-model"
    if not (model / "palace-model.json").exists():
        write_model(model)
    if not (source / "palace.toml").exists():
        size = write_pages(source, count)
        print(f"{count:,} pages, {size / count:,.0f} bytes each")
        (source / "palace.toml").write_text(f'[embedding]\nmodel = "{model}"\n')
    return source


def parts(folder: Path) -> dict[str, float]:
    """CPU seconds of each part of a rebuild, in this process."""
    from palace_pipeline.planner import EVER
    from palace_pipeline.rebuild.derived import TO_DRAWERS
    from palace_pipeline.rebuild.pages import take_pages
    from palace_pipeline.settings import load_settings
    from palace_pipeline.stages.common import Job
    from palace_pipeline.stages.embed import make_indexes_anew
    from palace_pipeline.stages.pages import write_pages
    from palace_pipeline.stages.publish import publish_anew
    from palace_pipeline.stages.recipes import recipes_of
    from palace_pipeline.store.home import Home

    # Heavy libraries first, so that no part pays for loading them.
    for library in ("chromadb", "duckdb", "onnxruntime", "phonenumbers", "polars", "re2", "tantivy", "tokenizers"):
        __import__(library)
    home = Home(load_settings(folder))
    spent: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> None:
        before = time.process_time()
        work()
        spent[name] = time.process_time() - before

    with home.writing():
        timed("pages read and noted", lambda: take_pages(home))
        job = Job(home, EVER, recipes_of(home), "rebuild")
        for stage in (*TO_DRAWERS, write_pages):
            timed(stage.__name__, lambda stage=stage: stage(job))
        with home.ledger() as ledger:
            timed("both indexes", lambda: make_indexes_anew(home, ledger, job.recipes))
        timed("tables", lambda: publish_anew(job))
    return spent


def baseline(folder: Path) -> float:
    """CPU seconds of reading every page and its front matter with PyYAML, in this process."""
    before = time.process_time()
    for path in (folder / "conversations").rglob("*.md"):
        yaml.safe_load(path.read_text(encoding="utf-8").split("---\n")[1])
    return time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=10_000, help="pages in the archive (default: 10000)")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/palace-rebuild"), help="where the archive lies")
    parser.add_argument("--parts", type=Path, metavar="HOME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.parts:
        cpu = parts(options.parts)
        print(json.dumps({"cpu": cpu, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
        return
    source = build(options.folder, options.pages)
    homes = [options.folder / name for name in ("home-whole", "home-parts")]
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(source, home)
    cost, told = palace(homes[0], "rebuild", "--from", "pages")
    print(told.splitlines()[-1])
    done = subprocess.run(
        [sys.executable, __file__, "--parts", str(homes[1])],
        stdout=subprocess.PIPE,
        check=True,
        env=environment(),
        cwd=ROOT,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    print("\n| part | CPU s |\n|---|---|")
    print(f"| `palace rebuild --from pages` ({cost.memory:,.0f} MB at its highest) | {cost.cpu:.1f} |")
    for name, seconds in said["cpu"].items():
        print(f"| {name} | {seconds:.1f} |")
    print(f"| front matter alone, PyYAML | {baseline(source):.1f} |")


if __name__ == "__main__":
    main()
