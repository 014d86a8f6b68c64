# ruff: noqa: E402, E501 - the path is set first; tables, one line each
"""Redaction measured in one run: recall and false alarms by group, speed by layer, worst input, false secrets in real code.

    python benchmarks/redaction.py [--seed 1] [--code /usr/share/doc ...] [--megabytes 20]
        [--kingfisher PYTHON] [--detect-secrets PYTHON] [--presidio PYTHON]

The truth set is `redaction_corpus.py`, drawn anew from the seed. The other tools run in their own environments, each given
by the path of its Python: `pip install kingfisher-secret-scanner`, `detect-secrets`, `presidio-analyzer` (its pattern
recognizers only, without a language model). Every tool is judged by the same rule: no piece of 60% of a secret is left.
Times are CPU seconds of one core. No value found is printed, only its kind, its length and its place.
"""

from __future__ import annotations

import argparse
import collections
import gc
import gzip
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

from redaction_corpus import Row, Source, caught, lookalikes, rows

from palace_pipeline.redaction import names, pii, telling, views
from palace_pipeline.redaction.engine import RUN, RuleEngine
from palace_pipeline.redaction.foreign import foreign_names
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.redaction.work import Work, WorkLimit
from palace_pipeline.settings import RedactionSettings

Spans = list[tuple[int, int]]

_IN_OUT = """
import json, sys, time
FIND
out = []
for line in sys.stdin:
    text = json.loads(line)
    start = time.process_time()
    spans = find(text)
    out.append((spans, time.process_time() - start))
json.dump(out, sys.stdout)
"""
ADAPTERS = {
    "kingfisher": """
import kingfisher_sdk
scanner = kingfisher_sdk.Scanner(kingfisher_sdk.Rules(), dedup=False)
def find(text):
    data = text.encode("utf-8", "surrogatepass")
    to = lambda at: len(data[:at].decode("utf-8", "replace"))
    return [(to(f.location["start_offset"]), to(f.location["end_offset"])) for f in scanner.scan(data)]
""",
    "detect-secrets": """
from detect_secrets.core.scan import scan_line
from detect_secrets.settings import default_settings
context = default_settings(); context.__enter__()
def find(text):
    spans, at = [], 0
    for line in text.split("\\n"):
        for secret in scan_line(line):
            value, place = secret.secret_value or "", -1
            while value and (place := line.find(value, place + 1)) >= 0:
                spans.append((at + place, at + place + len(value)))
        at += len(line) + 1
    return spans
""",
    "presidio": """
from presidio_analyzer import RecognizerRegistry
registry = RecognizerRegistry()
registry.load_predefined_recognizers(languages=["en"])
def find(text):
    spans = []
    for recognizer in registry.recognizers:
        if hasattr(recognizer, "patterns"):
            spans += [(r.start, r.end) for r in recognizer.analyze(text, recognizer.supported_entities, None) or []]
    return spans
""",
}


def ours(texts: Sequence[str]) -> list[tuple[Spans, float]]:
    """Places masked in each text, with CPU seconds."""
    funnel = Funnel(RedactionSettings(), b"benchmark")
    found: list[tuple[Spans, float]] = []
    for text in texts:
        start = time.process_time()
        clean = funnel.redact_fields({"text": text})
        found.append(([(x.start, x.end) for x in clean.findings], time.process_time() - start))
    return found


def other(python: str, name: str, texts: Sequence[str]) -> list[tuple[Spans, float]]:
    """The same by another tool in its own environment. Raises CalledProcessError when it does not run there."""
    lines = "\n".join(json.dumps(text) for text in texts)
    code = _IN_OUT.replace("FIND", ADAPTERS[name])
    done = subprocess.run([python, "-c", code], input=lines, capture_output=True, text=True, check=True)
    return [([(low, high) for low, high in spans], seconds) for spans, seconds in json.loads(done.stdout)]


def masked(text: str, spans: Spans) -> str:
    out, at = "", 0
    for start, end in sorted(spans):
        if end > at:
            out += text[at : max(at, start)] + "\0"
            at = end
    return out + text[at:]


def share(corpus: Sequence[Row], found: Sequence[tuple[Spans, float]]) -> dict[str, float]:
    """Per cent right in each group; of the look-alikes the per cent that were changed."""
    right: collections.Counter[str] = collections.Counter()
    total = collections.Counter(row.group for row in corpus)
    for row, (spans, _) in zip(corpus, found, strict=True):
        right[row.group] += bool(spans) if row.secret is None else caught(row, masked(row.text, spans), spans)
    return {group: 100 * right[group] / total[group] for group in total}


# --- speed ------------------------------------------------------------------------------------------------------------


def chat_mix(seed: int | str, megabytes: float = 2.0) -> list[str]:
    """Messages as agents and people write them: prose, code, JSON, logs, git, and now and then something to find."""
    source = Source(f"{seed}/mix")
    rng = source.rng
    words = [
        "the",
        "build",
        "of",
        "this",
        "module",
        "fails",
        "when",
        "we",
        "run",
        "it",
        "twice",
        "because",
        "a",
        "cache",
        "is",
        "kept",
        "and",
        "not",
        "all",
        "of",
        "it",
        "is",
        "read",
        "again",
    ]
    cjk = "这个函数的返回值不对请看一下日志然后再决定要不要回滚因为测试没有通过"
    made: list[str] = []
    size = 0

    def prose() -> str:
        return " ".join(rng.choice(words) for _ in range(rng.randint(20, 160))) + "."

    def code() -> str:
        line = "def {a}_{b}(self, {c}: str) -> int:\n    for key, value in self.{c}.items():\n        total += value\n    return total\n\n"
        return "".join(
            line.format(a=rng.choice(words), b=rng.choice(words), c=rng.choice(words))
            for _ in range(rng.randint(3, 14))
        )

    def results() -> str:
        return json.dumps(
            [
                {
                    "uuid": source.uuid(),
                    "ts": f"2026-01-{rng.randint(10, 28)}T12:00:03Z",
                    "path": f"/srv/{rng.choice(words)}/main.py",
                    "ms": rng.randint(1, 999),
                }
                for _ in range(rng.randint(2, 20))
            ]
        )

    def log() -> str:
        return "".join(
            f"2026-01-12T10:{rng.randint(10, 59)}:07.{source.digits(3)}Z INFO worker[{source.digits(4)}] req={source.hex(16)} status=200 in {source.digits(2)} ms\n"
            for _ in range(rng.randint(4, 24))
        )

    def git() -> str:
        return "".join(f"{source.hex(40)} {rng.choice(words)} {rng.choice(words)}\n" for _ in range(rng.randint(3, 16)))

    def found() -> str:
        kept = [text for kind, text in lookalikes(source) if kind in ("config", "code", "prose")]
        return prose() + f"\nexport API_TOKEN={source.alnum(36)}\n" + rng.choice(kept)

    makers: list[Callable[[], str]] = [
        prose,
        prose,
        prose,
        code,
        code,
        results,
        log,
        git,
        lambda: cjk * rng.randint(1, 6),
        found,
    ]
    while size < megabytes * 1e6:
        made.append(rng.choice(makers)())
        size += len(made[-1])
    return made


def seconds(run: Callable[[], object], times: int = 8) -> float:
    """CPU seconds of the quickest of several runs: what other work on the machine adds is not ours."""
    best = float("inf")
    gc.collect()
    gc.freeze()  # the corpus of the first part is no garbage of the engine's
    for _ in range(times):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def layers(mix: Sequence[str]) -> Iterator[tuple[str, float]]:
    """MB per CPU second of each layer on the text as it stands, and of all with all views."""
    engine, work = RuleEngine(), Work(10**12)
    flats = [views.flat(text) for text in mix]
    megabytes = sum(len(text.encode()) for text in mix) / 1e6
    seen = engine._looking.seen(flats)  # pyright: ignore[reportPrivateUsage]
    every = list(zip(mix, flats, seen, strict=True))
    parts: dict[str, Callable[[], object]] = {
        "all, a message at a time": lambda: [engine.scan([text]) for text in mix],
        "all, 50 messages at a time": lambda: [engine.scan(mix[at : at + 50]) for at in range(0, len(mix), 50)],
        "first looks": lambda: engine._looking.seen(flats),  # pyright: ignore[reportPrivateUsage]
        "anchored rules": lambda: [list(engine._anchored(t, d, work, s.anchors)) for t, d, s in every],  # pyright: ignore[reportPrivateUsage]
        "names": lambda: [list(names.assigned(d, s.stems)) + list(foreign_names(t, d)) for t, d, s in every],
        "telling words": lambda: [list(telling.told(t, d, s.words, [])) for t, d, s in every],
        "personal data": lambda: [list(pii.personal(t, d, s.personal)) for t, d, s in every],
        "unknown tokens": lambda: [list(engine._runs(t, d, work, [], s, RUN.spans(d))) for t, d, s in every],  # pyright: ignore[reportPrivateUsage]
        "making views": lambda: [list(views.views_of(t, d, s.views)) for t, d, s in every],
    }
    for name, run in parts.items():
        yield name, megabytes / seconds(run)


def worst(size: int) -> Iterator[tuple[str, float]]:
    """CPU seconds per MB on inputs made to be slow."""
    engine, rng = RuleEngine(), random.Random(1)
    many = "".join(rng.choices("abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=size))
    units = {
        "one letter": "a", "key=": "key=", "password: ": "password: ", "bearer ": "bearer ", "a zero-width": "a\u200b", "escapes": "\\u0073", "quotes": '"', "wrapped": "aB3dE6gH9jK2mN5pQ8sT\n",
        "addresses (all masked)": "52.14.3.7 ", "e-mails (all masked)": "joe@bar.co ", "phones (all masked)": "+1 212-555-1234 ",
    }  # fmt: skip
    texts = {name: (unit * (size // len(unit) + 1))[:size] for name, unit in units.items()}
    texts["tokens (all masked)"] = "\n".join("ghp" + "_" + many[at : at + 36] for at in range(0, size - 40, 40))
    texts["passwords (all masked)"] = "\n".join(f"password=Ab1!{many[at : at + 10]}" for at in range(0, size - 24, 24))
    for name, text in texts.items():
        start = time.process_time()
        try:
            engine.scan([text])
        except WorkLimit:
            name += " (withheld)"
        yield name, (time.process_time() - start) * 1e6 / len(text)


# --- real code and prose ----------------------------------------------------------------------------------------------

_SKIPPED = ("/test/", "/tests/", "/idle_test/", "/site-packages/", "/node_modules/.cache/")
_READ = (".py", ".md", ".txt", ".html", ".js", ".ts", ".json", ".rst", ".c", ".h", ".yaml", ".toml", ".go", ".gz", "README", "copyright", "changelog")  # fmt: skip


def texts_under(folder: Path, megabytes: float) -> Iterator[tuple[str, str]]:
    size = 0
    for path in sorted(folder.rglob("*")):
        if size > megabytes * 1e6:
            return
        inside = f"/{path.relative_to(folder)}"
        if (
            path.name.endswith(_READ)
            and path.is_file()
            and not path.is_symlink()
            and not any(s in inside for s in _SKIPPED)
        ):
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            if len(data) < 3_000_000 and b"\0" not in data[:4000]:
                size += len(data)
                yield str(path), data.decode("utf-8", "replace")


def false_secrets(folder: Path, megabytes: float) -> tuple[float, list[tuple[str, str]], int]:
    """Megabytes read, what was called a secret (rule, place), and how many places are personal data."""
    engine = RuleEngine()
    size, personal = 0, 0
    found: list[tuple[str, str]] = []
    for path, text in texts_under(folder, megabytes):
        size += len(text)
        seen: set[tuple[int, int]] = set()
        for span in engine.scan([text])[0]:
            if span.layer == "memory" or (span.start, span.end) in seen:
                continue
            seen.add((span.start, span.end))
            if span.kind in (
                "email",
                "phone",
                "credit-card",
                "iban",
                "ip-address",
                "us-ssn",
                "cn-resident-id",
                "crypto-address",
            ):
                personal += 1
            else:
                found.append(
                    (span.rule, f"{path}:{text.count(chr(10), 0, span.start) + 1} ({span.end - span.start} characters)")
                )
    return size / 1e6, found, personal


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure redaction.")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--code", type=Path, nargs="*", default=[])
    parser.add_argument("--megabytes", type=float, default=20.0)
    parser.add_argument("--worst", type=int, default=200_000, help="characters of each slow input")
    for name in ADAPTERS:
        parser.add_argument(f"--{name}", metavar="PYTHON")
    options = parser.parse_args()
    corpus = list(rows(options.seed))
    texts = [row.text for row in corpus]
    measured = {"ours": ours(texts)}
    for name in ADAPTERS:
        if python := getattr(options, name.replace("-", "_")):
            measured[name] = other(python, name, texts)
    shares = {name: share(corpus, found) for name, found in measured.items()}
    print(f"{len(corpus)} rows of seed {options.seed}; per cent caught, of look-alikes per cent changed")
    print(f"{'':16s}" + "".join(f"{name:>16s}" for name in shares))
    for group in dict.fromkeys(row.group for row in corpus):
        print(f"{group:16s}" + "".join(f"{of[group]:16.1f}" for of in shares.values()))
    characters = sum(map(len, texts)) / 1e6
    print(
        f"{'MB/s here':16s}" + "".join(f"{characters / sum(s for _, s in found):16.2f}" for found in measured.values())
    )
    missed = collections.Counter(
        f"{row.group}/{row.kind}" for row, (spans, _) in zip(corpus, measured["ours"], strict=True)
        if (row.secret is None and spans) or (row.secret is not None and not caught(row, masked(row.text, spans), spans))
    )  # fmt: skip
    print("\nwrong: " + ", ".join(f"{kind} {count}" for kind, count in missed.most_common(40)))
    print("\nchat mix, MB per CPU second")
    for name, speed in layers(chat_mix(options.seed)):
        print(f"  {name:16s}{speed:8.1f}")
    print("\nslow inputs, CPU seconds per MB")
    for name, cost in sorted(worst(options.worst), key=lambda pair: -pair[1]):
        print(f"  {name:24s}{cost:6.2f}")
    for folder in options.code:
        size, found, personal = false_secrets(folder, options.megabytes)
        print(
            f"\n{folder}: {size:.1f} MB, {len(found) / max(size, 1e-9):.2f} secrets per MB, {personal} places of personal data"
        )
        for rule, place in found[:10]:
            print(f"  {rule}  {place}")


if __name__ == "__main__":
    main()
