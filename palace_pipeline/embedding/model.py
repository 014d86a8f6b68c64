"""The embedding model: texts in, unit vectors out.

Texts are run one by one, `threads` at a time, each on one core. So a vector depends on its text alone (with int8, which
scales activations by tensor, batch mates would show in it), nothing is padded, and the memory is that of `threads`
texts. On the default model it is also about twice as fast as padded batches of eight (see `embedding.graph`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from palace_pipeline.embedding import quick, tokens
from palace_pipeline.embedding.convert import (
    CARD_FILE,
    MODEL_FILE,
    NAME,
    TOKENIZER_FILE,
    EmbeddingError,
    convert_elsewhere,
    ensure_converted,
    file_sha256,
)
from palace_pipeline.embedding.words import Words
from palace_pipeline.model import VECTORS, short_hash
from palace_pipeline.settings import EmbeddingSettings

if TYPE_CHECKING:
    import onnxruntime
    from tokenizers import Tokenizer

Vectors = NDArray[np.float32]
Progress = Callable[[int, int], None]


class Card(BaseModel):
    """`palace-model.json`: what the ONNX file alone does not say.

    `pooling`: how a text's vector comes from the first output of the graph; "none" if the graph gives it itself.
    `sha256`: file name -> expected hash, checked when the file is loaded; may be left out for a folder of your own.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str = Field(min_length=1)
    dimension: int = Field(gt=0)
    max_tokens: int = Field(gt=8)
    pooling: Literal["mean", "cls", "none"]
    query_prefix: str = ""
    passage_prefix: str = ""
    sha256: dict[str, str] = Field(default_factory=dict)


class DamagedModelError(EmbeddingError):
    """A file of the model is not the one that its card names."""


class EmbeddingModel:
    """A model folder. Tokenizer and ONNX session are loaded when first needed, each by itself; both serve threads."""

    def __init__(self, folder: Path, threads: int) -> None:
        self.folder = folder
        self.threads = threads
        self.card = _read_card(folder)
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def dimension(self) -> int:
        return self.card.dimension

    @property
    def max_tokens(self) -> int:
        """Most tokens the model takes, begin and end marks and prefix counted."""
        return self.card.max_tokens

    @cached_property
    def sha256(self) -> str:
        """Identity of everything a vector depends on: graph, tokenizer, pooling, prefixes. 64 hex digits."""
        parts = [self._checked_hash(MODEL_FILE), self._checked_hash(TOKENIZER_FILE)]
        card = self.card
        return short_hash(*parts, card.pooling, card.query_prefix, card.passage_prefix, length=64)

    @property
    def key(self) -> str:
        """What the column `model` of a vector row holds: vectors of different keys must not be compared."""
        return f"{self.name}@{self.sha256[:12]}"

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Vectors of texts to be found: float32 [texts, dimension], L2 norm 1; a text over the limit loses its end.

        `progress` is called with the number of texts done and of all, by the thread that asked.
        """
        return self._embed([self.card.passage_prefix + text for text in texts], progress)

    def embed_query(self, text: str) -> Vectors:
        """Vector of a search query: float32 [dimension], L2 norm 1."""
        text = self.card.query_prefix + text
        if "_tokenizer" not in self.__dict__ and len(text) <= quick.LONGEST and self._quick_tokenizer is not None:
            return self._run(self._session, self._quick_tokenizer.ids(text, self.max_tokens))
        return self._embed([text], None)[0]

    def count_tokens(self, text: str) -> int:
        """Tokens of a text without prefix, begin and end marks."""
        return len(self.token_offsets(text))

    def token_offsets(self, text: str) -> NDArray[np.int64]:
        """Start and end (code points) of each token, int64 [tokens, 2]; marks and prefix are not counted."""
        return tokens.token_offsets(self._words, text)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        self._checked_hash(TOKENIZER_FILE)
        self.__dict__.pop("_quick_tokenizer", None)  # 60 MB that nobody asks for any more
        return tokens.read_tokenizer(self.folder / TOKENIZER_FILE)

    @cached_property
    def _words(self) -> Words:
        return tokens.words_of(self._tokenizer)

    @cached_property
    def _quick_tokenizer(self) -> quick.QuickTokenizer | None:
        self._checked_hash(TOKENIZER_FILE)
        return quick.load_quick(self.folder / TOKENIZER_FILE)

    @cached_property
    def _session(self) -> onnxruntime.InferenceSession:
        import onnxruntime

        self._checked_hash(MODEL_FILE)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        # The arena keeps the largest tensors of every thread for ever: gigabytes on long runs.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        options.log_severity_level = 3
        path = str(self.folder / MODEL_FILE)
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def _embed(self, texts: Sequence[str], progress: Progress | None) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        with self._lock:  # cached_property does not keep two threads from loading twice
            tokenizer, session = self._tokenizer, self._session

        def run(place: int) -> None:
            vectors[place] = self._run(session, tokens.model_input(tokenizer, texts[place], self.max_tokens))

        if len(texts) == 1:
            run(0)
            return vectors
        # Longest first, so that no thread begins a long text when the others are done.
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        with ThreadPoolExecutor(self.threads, thread_name_prefix="embed") as pool:
            try:
                for done, _ in enumerate(pool.map(run, order), start=1):
                    if progress:
                        progress(done, len(texts))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return vectors

    def _run(self, session: onnxruntime.InferenceSession, token_ids: list[int]) -> Vectors:
        ids = np.array([token_ids], np.int64)
        wanted = {item.name for item in session.get_inputs()}
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        output = session.run(None, {name: value for name, value in inputs.items() if name in wanted})[0]
        hidden = np.asarray(output, np.float32)[0]
        if self.card.pooling == "mean":
            hidden = hidden.mean(axis=0)
        elif self.card.pooling == "cls":
            hidden = hidden[0]
        norm = float(np.linalg.norm(hidden))
        if hidden.shape != (self.dimension,) or not 0 < norm < float("inf"):
            raise EmbeddingError(f"the model {self.name} gave no vector of {self.dimension} numbers")
        return hidden / np.float32(norm)

    def _checked_hash(self, name: str) -> str:
        actual = _sha256_of(self.folder / name)
        if actual != self.card.sha256.get(name, actual):
            raise DamagedModelError(f"{self.folder / name} is not the file that {CARD_FILE} names")
        return actual


@lru_cache
def _sha256_of(path: Path) -> str:
    return file_sha256(path)


def _read_card(folder: Path) -> Card:
    missing = [name for name in (MODEL_FILE, TOKENIZER_FILE, CARD_FILE) if not (folder / name).is_file()]
    if missing:
        raise EmbeddingError(f"the model folder {folder} lacks {', '.join(missing)}")
    try:
        card = Card.model_validate(json.loads((folder / CARD_FILE).read_text(encoding="utf-8")))
    except (ValidationError, ValueError) as error:
        raise EmbeddingError(f"{folder / CARD_FILE} cannot be used: {error}") from error
    width = VECTORS["vector"].size
    if card.dimension != width:
        raise EmbeddingError(f"the model {card.name} gives {card.dimension} numbers a text, the archive holds {width}")
    return card


@lru_cache(maxsize=4)
def _load(model: str, threads: int) -> EmbeddingModel:
    if model == NAME:
        folder = ensure_converted()
        try:
            loaded = EmbeddingModel(folder, threads)
            _ = loaded.sha256
        except EmbeddingError:
            # A full disk or a cleaner of caches left a part of it.
            convert_elsewhere(folder)
            _sha256_of.cache_clear()
            loaded = EmbeddingModel(folder, threads)
        return loaded
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise EmbeddingError(f"[embedding] model = {model!r} is neither the known name {NAME!r} nor a folder")
    return EmbeddingModel(folder, threads)


def load_model(settings: EmbeddingSettings) -> EmbeddingModel:
    """The configured model, the same object for every call of a process. The first use on a machine converts it.

    Raises EmbeddingError with what to do about it.
    """
    return _load(settings.model, settings.threads)
