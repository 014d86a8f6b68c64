"""What each part of search does for finding: all of them, then without one after the other, on the same questions.

    python benchmarks/ablation.py mixed SET.json
    python benchmarks/ablation.py locomo LOCOMO.json

The sets are those of `retrieval.py`. Each line: R@5, R@10 and message R@10 in per cent, and for the first and the last the
paired standard error of the change in brackets; the last column, on the mixed set, is R@10 across languages.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from retrieval import Question, ask, build, read_locomo, read_mixed, share

from palace_pipeline.embedding.model import EmbeddingModel, load_model
from palace_pipeline.search import answers, engine, meaning, near
from palace_pipeline.search.engine import Searcher
from palace_pipeline.search.languages import Languages, Passages, languages_of
from palace_pipeline.search.meaning import MeaningReader
from palace_pipeline.search.near import Meaning, spread
from palace_pipeline.settings import EmbeddingSettings, Settings
from palace_pipeline.store import lexical

Lever = Callable[[], AbstractContextManager[Any]]


@contextmanager
def _without(*parts: tuple[object, str]) -> Generator[None]:
    """Weights set to 0."""
    with ExitStack() as stack:
        for place, name in parts:
            stack.enter_context(patch.object(place, name, 0.0))
        yield


def _without_vectors() -> AbstractContextManager[Any]:
    def nothing(_: MeaningReader, corpus: Any, *__: Any, **___: Any) -> tuple[Meaning, None]:
        return Meaning(spread(corpus, np.zeros(0, np.int64), [])), None

    return patch.object(MeaningReader, "of", nothing)


@contextmanager
def _without_words() -> Generator[None]:
    weights = ((near, "CHUNK_WORDS"), (answers, "MESSAGE_WORDS"), (answers, "CONVERSATION_WORDS"))
    with _without(*weights), patch.object(near, "CANDIDATES_OF_DAYS", 0), patch.object(Searcher, "_reader", _no_reader):
        yield


def _no_reader(_: Searcher) -> tuple[None, None]:
    return None, None


def _with_language_in() -> AbstractContextManager[Any]:
    """The part of the vectors that says the language is left in them."""

    def whole(model: Any) -> Languages:
        known = languages_of(model)
        return Languages(np.zeros_like(known.directions), known.typical)

    return patch.object(meaning, "languages_of", whole)


def _with_mean_in() -> AbstractContextManager[Any]:
    """Cosines of the vectors as they are but for their language: the archive's mean is not taken out."""

    def plain(_: type[Passages], vectors: Any, languages: Languages) -> Passages:
        return Passages._measured(vectors, np.zeros_like(languages.typical), languages)  # pyright: ignore[reportPrivateUsage]

    return patch.object(Passages, "of", classmethod(plain))


LEVERS: dict[str, Lever] = {
    "all parts": nullcontext,
    "vectors": _without_vectors,
    "words": _without_words,
    "words of the chunk": lambda: _without((near, "CHUNK_WORDS")),
    "words of the message": lambda: _without((answers, "MESSAGE_WORDS")),
    "words of the conversation": lambda: _without((answers, "CONVERSATION_WORDS")),
    "the user's words first": lambda: _without((answers, "ASKED")),
    "the speaker who is named": lambda: _without((answers, "NAMED")),
    "language taken out of vectors": _with_language_in,
    "the archive's mean taken out": _with_mean_in,
    "other languages raised": lambda: _without((near, "OTHER_LANGUAGE")),
    "slips of the pen read as meant": lambda: patch.object(engine, "respelled", lambda _, terms, *__: (terms, ())),
    "title and context in the index": lambda: patch.object(
        lexical.LexicalReader.search, "__defaults__", (lexical.Filters(), {"body": 1.0})
    ),
}


def once(model: EmbeddingModel) -> AbstractContextManager[Any]:
    """Each question is embedded once for all levers."""
    known = lru_cache(maxsize=None)(model.embed_query)
    return patch.object(EmbeddingModel, "embed_query", lambda _, text: known(text))


def figures(asked: Sequence[tuple[Question, dict[str, Any]]]) -> np.ndarray[Any, Any]:
    """R@5, R@10, message R@10 of each question with evidence, 0 to 1."""
    rows = [
        (
            share({name for name, _ in question.evidence}, answer["conversations"], 5),
            share({name for name, _ in question.evidence}, answer["conversations"], 10),
            share(set(question.evidence), answer["places"], 10),
        )
        for question, answer in asked
        if question.evidence
    ]
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["mixed", "locomo"])
    parser.add_argument("set", type=Path)
    arguments = parser.parse_args()
    model = load_model(EmbeddingSettings())
    data = json.loads(arguments.set.read_text(encoding="utf-8"))
    asked: dict[str, list[tuple[Question, dict[str, Any]]]] = {name: [] for name in LEVERS}
    for conversations, questions in (read_mixed if arguments.kind == "mixed" else read_locomo)(data):
        with tempfile.TemporaryDirectory() as folder, once(model):
            home = Path(folder)
            build(home, conversations, model)
            for name, lever in LEVERS.items():
                with lever():
                    searcher = Searcher(home, Settings(home=home), lambda _: model)
                    asked[name] += [(question, ask(searcher, question)) for question in questions if question.evidence]
    whole = figures(asked["all parts"])
    across = [question.group == "cross-language" for question, _ in asked["all parts"]]
    for name, answered in asked.items():
        found = figures(answered)
        error = 100 * (found - whole).std(axis=0) / len(found) ** 0.5
        mean = 100 * found.mean(axis=0)
        last = f"  {100 * found[across].mean(axis=0)[1]:5.1f}" if any(across) else ""
        label = name if name == "all parts" else f"without {name}"
        print(
            f"{label:42} {mean[0]:5.1f} ({error[0]:.1f})  {mean[1]:5.1f}  {mean[2]:5.1f} ({error[2]:.1f}){last}",
            flush=True,
        )


if __name__ == "__main__":
    main()
