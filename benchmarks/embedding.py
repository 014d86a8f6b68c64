"""How fast texts are embedded and cut, with how much memory, against Chroma's default way in the same run.

    python benchmarks/embedding.py [--texts 128] [--threads 2]

The baseline has the shape of Chroma's default model (all-MiniLM-L6-v2 in f32: 6 layers, half of ours; random weights,
since speed does not depend on them) and is run as Chroma runs it: 32 texts at a time, each padded to 256 tokens and cut
there, on all cores. Its texts come tokenized, ours do not. Every figure is taken in a process of its own. Seconds of
the processor (CPU) hold on a busy machine, seconds of the clock do not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

BASELINE = "Chroma's default way (MiniLM shape, f32, padded to 256)"
MEAN_TOKENS = 183

SENTENCES = [
    "The backup runs every night at two, and nobody has ever tried to restore it.",
    "Use a read replica for the reports, then the morning peak no longer blocks the orders.",
    "每天凌晨两点备份一次，但是从来没有人试过恢复，所以谁也不知道它是否可用。",
    "先把旧库设成只读，等复制延迟归零之后再切换流量，回滚窗口留两个小时。",
    "Резервная копия делается каждую ночь, но её никто не пробовал восстановить.",
    "バックアップは毎晩二時に動きますが、復元を試した人はまだいません。",
    "Der Teig ruht eine Stunde, danach wird er bei 230 Grad mit Dampf gebacken.",
    "for path in sorted(root.glob('*.sql.gz')):\n    restore(path, into='test', check=True)\n",
    "| table | rows | size |\n|---|---|---|\n| orders | 1204331 | 2.1 GB |\n",
]


def make_texts(count: int, tokens_of: Callable[[str], int]) -> list[str]:
    """Texts of about 60 to 300 tokens in six languages and code, the same on every run."""
    chance = random.Random(7)
    sizes = {sentence: tokens_of(sentence) for sentence in SENTENCES}
    texts: list[str] = []
    for _ in range(count):
        wanted, parts, size = chance.randint(60, 2 * MEAN_TOKENS - 60), list[str](), 0
        while size < wanted:
            parts.append(chance.choice(SENTENCES))
            size += sizes[parts[-1]]
        texts.append("\n".join(parts))
    return texts


def measured(work: Callable[[], Any], count: int) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": count / wall, "cpu": count / cpu, "rss": peak_mb(resource.RUSAGE_SELF)}


def peak_mb(who: int) -> float:
    peak = resource.getrusage(who).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def run_palace(count: int, threads: int) -> dict[str, float]:
    started = time.process_time()
    from palace_pipeline.embedding.model import load_model
    from palace_pipeline.settings import EmbeddingSettings

    model = load_model(EmbeddingSettings(threads=threads))
    model.embed_query("warm")
    first = time.process_time() - started
    texts = make_texts(count, model.count_tokens)
    tokens = sum(model.count_tokens(text) for text in texts)
    result = measured(lambda: model.embed_passages(texts), count)
    started = time.process_time()
    for _ in range(20):
        model.embed_query("how do I restore the backup of last night?")
    query = (time.process_time() - started) / 20
    return {**result, "tokens": tokens / count, "first": first, "query": query}


def run_baseline(count: int, threads: int) -> dict[str, float]:
    import numpy as np
    import onnxruntime

    del threads  # Chroma sets none: all cores
    session = onnxruntime.InferenceSession(minilm_shape(), providers=["CPUExecutionProvider"])
    chance = np.random.default_rng(7)
    lengths = np.minimum(chance.integers(60, 2 * MEAN_TOKENS - 60, count), 256)
    ids = chance.integers(1000, 30000, (count, 256))
    mask = (np.arange(256) < lengths[:, None]).astype(np.int64)

    def embed() -> None:
        for start in range(0, count, 32):
            batch = slice(start, start + 32)
            session.run(None, {"input_ids": ids[batch], "attention_mask": mask[batch]})

    session.run(None, {"input_ids": ids[:1], "attention_mask": mask[:1]})
    return measured(embed, count)


def minilm_shape() -> bytes:
    """A BERT encoder as onnxruntime's optimizer leaves it: hidden 384, 6 layers, 12 heads, feed-forward 1536, f32."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    chance = np.random.default_rng(1)
    constants: list[Any] = []
    nodes: list[Any] = []

    def constant(name: str, *shape: int) -> str:
        value = (chance.standard_normal(shape) * 0.05).astype(np.float32)
        constants.append(numpy_helper.from_array(value, name))
        return name

    def node(operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        domain = "" if operator in ("Gather", "MatMul", "Cast") else "com.microsoft"
        nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    node("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
    state = node("Gather", [constant("words", 30522, 384), "input_ids"], "x")
    for layer in range(6):
        n = f"l{layer}."
        qkv = [state, constant(n + "qkv", 384, 1152), constant(n + "qkv.b", 1152), "mask"]
        out = node("MatMul", [node("Attention", qkv, n + "att", num_heads=12), constant(n + "ao", 384, 384)], n + "a")
        norm = [out, state, constant(n + "g1", 384), constant(n + "b1", 384), constant(n + "ao.b", 384)]
        state = node("SkipLayerNormalization", norm, n + "s1")
        inner = node("MatMul", [state, constant(n + "fi", 384, 1536)], n + "i")
        inner = node("BiasGelu", [inner, constant(n + "fi.b", 1536)], n + "g")
        out = node("MatMul", [inner, constant(n + "fo", 1536, 384)], n + "o")
        norm = [out, state, constant(n + "g2", 384), constant(n + "b2", 384), constant(n + "fo.b", 384)]
        state = node("SkipLayerNormalization", norm, n + "s2")
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"]) for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info(state, TensorProto.FLOAT, ["b", "s", 384])
    graph = helper.make_graph(nodes, "minilm", inputs, [output], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def run_conversion(count: int, threads: int) -> dict[str, float]:
    del count, threads
    from palace_pipeline.embedding.convert import ensure_converted

    with tempfile.TemporaryDirectory() as folder:
        os.environ["PALACE_CACHE"] = folder
        wall = time.perf_counter()
        made = ensure_converted()
        wall = time.perf_counter() - wall
        size = sum(path.stat().st_size for path in made.iterdir()) / 1e6
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "rss": peak_mb(resource.RUSAGE_CHILDREN), "size": size}


def run_chunking(count: int, threads: int) -> dict[str, float]:
    del threads
    from palace_pipeline.chunking import chunk_conversation
    from palace_pipeline.embedding.model import load_model
    from palace_pipeline.model import Conversation, Message
    from palace_pipeline.settings import EmbeddingSettings

    tokenizer = load_model(EmbeddingSettings())
    texts = make_texts(count * 8, tokenizer.count_tokens)
    megabyte = "\n\n".join(texts)
    megabyte = (megabyte * (5_000_000 // len(megabyte) + 1))[:5_000_000]
    short = Conversation(
        "chatgpt", "c", [Message(str(n), "assistant" if n % 2 else "user", t) for n, t in enumerate(texts)]
    )
    long = Conversation("chatgpt", "c", [Message("0", "user", "why?"), Message("1", "assistant", megabyte)])
    result: dict[str, float] = {}
    for name, conversation in (("short", short), ("long", long)):
        size = sum(len(message.text.encode()) for message in conversation.messages)
        started = time.process_time()
        chunks = chunk_conversation(conversation, tokenizer)
        seconds = time.process_time() - started
        result |= {name: size / 1e6 / seconds, f"{name}_seconds": seconds, f"{name}_chunks": len(chunks)}
    return result


RUNS = {"palace": run_palace, "baseline": run_baseline, "conversion": run_conversion, "chunking": run_chunking}


def in_own_process(name: str, arguments: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, "--run", name]
    command += ["--texts", str(arguments.texts), "--threads", str(arguments.threads)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(RUNS[arguments.run](arguments.texts, arguments.threads)))
        return
    c = in_own_process("conversion", arguments)
    print(f"conversion     {c['wall']:.1f} s, {c['cpu']:.1f} s CPU, peak {c['rss']:.0f} MB, {c['size']:.0f} MB on disk")
    p = in_own_process("palace", arguments)
    b = in_own_process("baseline", arguments)
    print(f"palace         {p['wall']:.1f} texts/s, {p['cpu']:.1f} per CPU second, peak {p['rss']:.0f} MB")
    print(f"               ({p['tokens']:.0f} tokens a text, {arguments.threads} threads, tokenizing included)")
    print(f"baseline       {b['wall']:.1f} texts/s, {b['cpu']:.1f} per CPU second, peak {b['rss']:.0f} MB")
    print(f"               ({BASELINE})")
    print(f"query          {p['query'] * 1e3:.1f} ms CPU, the first of a process {p['first']:.2f} s CPU")
    k = in_own_process("chunking", arguments)
    print(f"chunking       {k['short']:.2f} MB per CPU second; one message of 5 million characters:")
    print(f"               {k['long_seconds']:.1f} s CPU, {k['long_chunks']:.0f} chunks")
    print(
        f"ratio          {p['cpu'] / b['cpu']:.2f} x the baseline per CPU second, {p['wall'] / b['wall']:.2f} x by the clock"
    )


if __name__ == "__main__":
    main()
