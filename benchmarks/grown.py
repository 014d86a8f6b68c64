"""Does the price of one grown conversation depend on how much lies in the archive?

    python benchmarks/grown.py --sizes 1000,10000,100000

For each size an archive of so many conversations is made by `palace ingest` itself (months of ChatGPT chats in export
files of 1,000, and a folder of Claude Code logs), with a model that looks words up instead of running a network. Then
one one log grows by an exchange, and `palace ingest FOLDER` is measured: CPU seconds of the whole command with all its
children, and of its parts in one process (the stages called one behind the other). Everything else is real: ledger,
vault, lake, DuckDB, Chroma, lexical index, pages, Dagster. Archives are kept below --folder and used again.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from main_job import ROOT, environment, palace

FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)
MONTHS = 72
CHATS_PER_FILE = 1_000
LOGS = 100
"""Claude Code logs in each archive; one of them grows."""
ROUNDS = 3
DIMENSION = 384
WORDS = tuple(
    """
    cache parser queue ledger index handler socket retry budget schema column table replica header payload token stream
    cursor region policy quota route fixture sensor invoice report calendar recipe garden museum bridge violin lecture
    reads writes merges splits drops keeps counts skips wakes drains flushes rebuilds renames validates rejects repeats
    encodes caches evicts publishes returns raises truncates appends sorts groups joins filters converts copies moves
    stale empty partial nested duplicate missing hidden slow noisy broken fresh narrow wide local remote shared private
    twice silently later again first only never always sometimes early late safely slowly directly because since when
""".split()  # noqa: SIM905
)


# --- what is archived -------------------------------------------------------------------------------------------------


def say(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words)) + "."


def chat(number: int, of: int) -> dict[str, Any]:
    """A ChatGPT conversation of two exchanges; the days of `of` chats are spread evenly over MONTHS months."""
    rng = random.Random(f"chat {number}")
    start = FIRST_DAY + timedelta(days=MONTHS * 30.4 * number / of, seconds=rng.randrange(80_000))
    mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "children": [f"{number}-0"], "message": None}}
    for at in range(4):
        role = "assistant" if at % 2 else "user"
        name = f"{number}-{at}"
        mapping[name] = {
            "id": name,
            "parent": f"{number}-{at - 1}" if at else "root",
            "children": [f"{number}-{at + 1}"] if at < 3 else [],
            "message": {
                "id": name,
                "author": {"role": role},
                "create_time": start.timestamp() + 60 * at,
                "content": {"content_type": "text", "parts": [say(rng, 40 if at % 2 else 12)]},
                "metadata": {"model_slug": "gpt-sample"} if at % 2 else {},
            },
        }
    return {
        "id": f"chat-{number:07}",
        "conversation_id": f"chat-{number:07}",
        "title": say(rng, 4),
        "create_time": start.timestamp(),
        "update_time": start.timestamp() + 240,
        "current_node": f"{number}-3",
        "mapping": mapping,
    }


def log_lines(number: int, exchanges: int) -> str:
    """A Claude Code log."""
    start = FIRST_DAY + timedelta(days=MONTHS * 30.4 * (number + 0.5) / LOGS)
    session = f"{number:08}-0000-4000-8000-000000000000"
    lines: list[str] = []
    for at in range(2 * exchanges):
        rng = random.Random(f"log {number} {at}")
        role = "assistant" if at % 2 else "user"
        message: dict[str, Any] = {"role": role, "content": say(rng, 60 if at % 2 else 15)}
        if at % 2:
            message = {**message, "id": f"m{number}-{at}", "model": "claude-sample-5"}
            message["content"] = [{"type": "text", "text": message["content"]}]
        record = {
            "type": role,
            "uuid": f"u{number}-{at}",
            "parentUuid": f"u{number}-{at - 1}" if at else None,
            "sessionId": session,
            "cwd": f"/home/me/project-{number % 7}",
            "timestamp": (start + timedelta(minutes=at)).isoformat().replace("+00:00", "Z"),
            "message": message,
        }
        lines.append(json.dumps(record))
    return "\n".join(lines) + "\n"


def log_file(exports: Path, number: int) -> Path:
    return exports / "projects" / f"{number:08}-0000-4000-8000-000000000000.jsonl"


def write_exports(exports: Path, conversations: int) -> None:
    chats = conversations - LOGS
    for first in range(0, chats, CHATS_PER_FILE):
        file = exports / f"chats-{first // CHATS_PER_FILE:04}" / "conversations.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        numbers = range(first, min(first + CHATS_PER_FILE, chats))
        file.write_text(json.dumps([chat(number, chats) for number in numbers]))
    for number in range(LOGS):
        file = log_file(exports, number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(log_lines(number, 2))


def write_model(folder: Path) -> Path:
    """A model that looks up a vector for every word and takes the mean: real libraries, no network to run."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer, pre_tokenizers, processors
    from tokenizers.models import WordLevel

    words = ["[UNK]", "[CLS]", "[SEP]", *sorted(set(WORDS))]
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    values = np.random.default_rng(1).standard_normal((len(words), DIMENSION)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "words",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", DIMENSION])],
        [numpy_helper.from_array(values, "table")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "model.onnx"
    )
    card = {"name": "words", "dimension": DIMENSION, "max_tokens": 512, "pooling": "mean"}
    (folder / "palace-model.json").write_text(json.dumps(card))
    return folder


def build(folder: Path, conversations: int) -> tuple[Path, Path]:
    """(home, exports) of an archive of so many conversations, made unless it is there."""
    home, exports = folder / f"home-{conversations}", folder / f"exports-{conversations}"
    model = folder / "model"
    if not (model / "palace-model.json").exists():
        write_model(model)
    if not (home / "built").exists():
        write_exports(exports, conversations)
        home.mkdir(parents=True, exist_ok=True)
        (home / "palace.toml").write_text(f'[embedding]\nmodel = "{model}"\n')
        cost, _ = palace(home, "ingest", str(exports))
        (home / "built").write_text(f"{cost.cpu:.0f} CPU s, {cost.wall:.0f} s, {cost.memory:.0f} MB")
    print(f"{conversations} conversations: built in {(home / 'built').read_text()}", flush=True)
    return home, exports


# --- what is measured -------------------------------------------------------------------------------------------------


def grow(exports: Path, number: int) -> Path:
    """The log goes on by one exchange."""
    file = log_file(exports, number)
    exchanges = len(file.read_text().splitlines()) // 2
    file.write_text(log_lines(number, exchanges + 1))
    return file


def parts(home_folder: Path, exports: Path) -> dict[str, float]:
    """CPU seconds of each part of an ingest, called one behind the other in this process."""
    from palace_pipeline.exports.scan import scan
    from palace_pipeline.ingest import ingest, needs_reading
    from palace_pipeline.ingest.purged import KnownFiles
    from palace_pipeline.planner import plan
    from palace_pipeline.settings import load_settings
    from palace_pipeline.stages.chunk import chunk
    from palace_pipeline.stages.common import Job
    from palace_pipeline.stages.drawers import file_drawers
    from palace_pipeline.stages.embed import publish_vectors
    from palace_pipeline.stages.missing import mark_missing
    from palace_pipeline.stages.names import write_receipt
    from palace_pipeline.stages.normalize import normalize
    from palace_pipeline.stages.pages import write_pages
    from palace_pipeline.stages.publish import publish_exports, publish_tables
    from palace_pipeline.stages.recipes import recipes_of
    from palace_pipeline.stages.redact import redact
    from palace_pipeline.store.home import Home
    from palace_pipeline.trends import plots_as_markdown

    # Heavy libraries first, so that no part pays for loading them.
    for library in ("chromadb", "duckdb", "onnxruntime", "phonenumbers", "polars", "re2", "tantivy", "tokenizers"):
        __import__(library)
    home = Home(load_settings(home_folder))
    spent: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        before = time.process_time()
        try:
            return work()
        finally:
            spent[name] = spent.get(name, 0) + time.process_time() - before

    def enter() -> None:
        with home.writing():
            pass

    timed("lock", enter)
    with home.writing(), home.ledger() as ledger:
        found = list(timed("scan", lambda: list(scan([exports], home.path))))
        known = timed("known files", lambda: KnownFiles(home, ledger))
        timed("needs reading", lambda: needs_reading(found, known, home.settings))
        timed("raw_exports", lambda: ingest(home, [exports], batch="grown", found=found, known=known))
        timed("mark missing", lambda: mark_missing(home, ledger))
        spans = timed("plan", lambda: plan(ledger, recipes_of(home)))
        for span in spans:
            job = Job(home, span, recipes_of(home), "grown")
            for stage in (normalize, redact, chunk, file_drawers, write_pages, publish_vectors, publish_tables):
                timed(stage.__name__, lambda stage=stage, job=job: stage(job))
        timed("publish exports", lambda: publish_exports(home, "grown"))
        timed("plots", lambda: plots_as_markdown(home.path))
        timed("receipt", lambda: write_receipt(home, ledger, "grown"))
    return spent


def measure_parts(home: Path, exports: Path) -> tuple[dict[str, float], float]:
    """CPU seconds of the parts, and the highest memory of the process (mapped files included), in MB."""
    command = [sys.executable, __file__, "--parts", str(home), str(exports)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment(), cwd=ROOT)
    told = json.loads(done.stdout.splitlines()[-1])
    return told["cpu"], told["memory"]


def report(folder: Path, sizes: list[int], rounds: int) -> None:
    columns: dict[str, dict[int, float]] = {}
    memory: dict[str, dict[int, float]] = {}
    for size in sizes:
        home, exports = build(folder, size)
        number = LOGS // 2
        costs = []
        for _ in range(rounds):
            grow(exports, number)
            costs.append(palace(home, "ingest", str(exports))[0])
        columns.setdefault("palace ingest, one grown", {})[size] = statistics.median(c.cpu for c in costs)
        memory.setdefault("palace ingest, one grown", {})[size] = max(c.memory for c in costs)
        again = [palace(home, "ingest", str(exports))[0] for _ in range(rounds)]
        columns.setdefault("palace ingest, nothing new", {})[size] = statistics.median(c.cpu for c in again)
        memory.setdefault("palace ingest, nothing new", {})[size] = max(c.memory for c in again)
        status = [palace(home, "status")[0] for _ in range(rounds)]
        columns.setdefault("palace status", {})[size] = statistics.median(c.cpu for c in status)
        memory.setdefault("palace status", {})[size] = max(c.memory for c in status)
        runs = []
        for _ in range(rounds):
            grow(exports, number)
            runs.append(measure_parts(home, exports))
        for name in runs[0][0]:
            columns.setdefault(name, {})[size] = statistics.median(cpu[name] for cpu, _ in runs)
    print(f"\n| CPU s | {' | '.join(f'{size:,}' for size in sizes)} | ratio | memory MB |")
    print(f"|---|{'---|' * (len(sizes) + 2)}")
    for name, values in columns.items():
        ratio = values[sizes[-1]] / max(values[sizes[0]], 0.001)
        own = f"{memory[name][sizes[-1]]:.0f}" if name in memory else ""
        print(f"| {name} | {' | '.join(f'{values[size]:.3f}' for size in sizes)} | {ratio:.2f} | {own} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000", help="conversations in the archives (default: 1000,10000)")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/palace-grown"), help="where the archives lie")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--parts", nargs=2, type=Path, metavar=("HOME", "EXPORTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.parts:
        cpu = parts(*options.parts)
        print(json.dumps({"cpu": cpu, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
        return
    report(options.folder, [int(size) for size in options.sizes.split(",")], options.rounds)


if __name__ == "__main__":
    main()
