"""Filing in rooms, halls and wings, with a small stand-in for the embedding model."""

from __future__ import annotations

import io
import json
import os
import threading
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palace_pipeline.embedding import model as embedding
from palace_pipeline.rooms import classifier as under_test
from palace_pipeline.rooms.classifier import Classifier, Fits, classify_lines, learn, wing_of
from palace_pipeline.rooms.examples import FALLBACK, as_chunk, definitions, examples
from palace_pipeline.rooms.fit import fit, softmax
from palace_pipeline.settings import EmbeddingSettings, Room, Settings, Wing
from palace_pipeline.transcripts.terms import index_terms

DIMENSION = 384


class BagOfTerms:
    """A stand-in for the embedding model: each term has a place; texts with the same terms are alike."""

    name = "bag"
    key = "bag@000000000000"

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        vectors = np.full((len(texts), DIMENSION), 1e-3, np.float32)
        for row, text in enumerate(texts):
            for term, count in Counter(index_terms(text)).items():
                vectors[row, zlib.crc32(term.encode()) % DIMENSION] += count
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def fits() -> Fits:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("palace_pipeline.rooms.fit._STEPS", 40)  # enough for terms, and quick
        return learn(BagOfTerms())


def test_examples_carry_known_labels() -> None:
    rooms = {room.name for room in definitions("room")}
    halls = {hall.name for hall in definitions("hall")}
    assert rooms == {"technical", "architecture", "planning", "decisions", "problems", "general"}
    assert halls == {"facts", "events", "discoveries", "preferences", "advice"}
    for example in examples():
        assert example.text.strip()
        assert set(example.share.get("room", {})) <= rooms
        assert set(example.share.get("hall", {})) <= halls
        assert example.share
        assert all(sum(share.values()) == pytest.approx(1) for share in example.share.values())
    assert {"en", "zh", "ja", "ko", "de", "fr", "es", "pt", "ru", "ar"} <= {example.lang for example in examples()}
    assert FALLBACK["room"] in rooms
    assert FALLBACK["hall"] in halls


def test_the_shipped_fit_belongs_to_the_shipped_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    class Default(BagOfTerms):
        name = "multilingual-e5-small"

    monkeypatch.setattr(under_test, "learn", lambda _: pytest.fail("write it anew: benchmarks/rooms.py --write"))
    assert under_test.fitted(Default()).room.labels == tuple(room.name for room in definitions("room"))


def test_as_chunk_has_the_form_of_the_archive() -> None:
    assert as_chunk("> one\n> two\nanswer\nmore\n> next") == "one\ntwo\n\nanswer\nmore\n\nnext"
    assert as_chunk("no marks\nat all") == "no marks\nat all"


def test_fit_separates_and_gives_every_label_the_same_weight() -> None:
    random = np.random.default_rng(1)
    centres = np.eye(3, 8, dtype=np.float32)
    sizes = (60, 6, 6)
    vectors = np.vstack([centres[k] + random.normal(0, 0.15, (size, 8)) for k, size in enumerate(sizes)])
    shares = np.repeat(np.eye(3, dtype=np.float32), sizes, axis=0)
    learned = fit(("a", "b", "c"), vectors.astype(np.float32), shares)
    assert learned.scores(centres).argmax(axis=1).tolist() == [0, 1, 2]
    # A text like none of them is not drawn to the label with most examples.
    nowhere = softmax(learned.scores(centres.mean(axis=0, keepdims=True)))[0]
    assert nowhere.max() < 0.45
    again = fit(("a", "b", "c"), vectors.astype(np.float32), shares)
    assert np.array_equal(again.weights, learned.weights)


def test_another_model_is_fitted_once_and_kept(fits: Fits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALACE_CACHE", str(tmp_path))
    calls: list[int] = []
    monkeypatch.setattr(under_test, "learn", lambda model: calls.append(1) or fits)
    first, second = under_test.fitted(BagOfTerms()), under_test.fitted(BagOfTerms())
    assert len(calls) == 1
    assert second.room.labels == fits.room.labels
    assert np.array_equal(first.hall.weights, second.hall.weights)
    [kept] = (tmp_path / "derived").iterdir()
    kept.write_bytes(b"damaged")
    under_test.fitted(BagOfTerms())
    assert len(calls) == 2


def test_examples_are_filed_where_they_belong(fits: Fits) -> None:
    chosen = [example for example in examples() if "room" in example.share]
    filed = Classifier((), BagOfTerms(), fits).classify([example.text for example in chosen])
    right = np.mean([place.room in example.share["room"] for place, example in zip(filed, chosen, strict=True)])
    assert right > 0.95  # these are the texts it was fitted on: a check of the plumbing, not of quality
    assert all(0 < place.confidence <= 1 for place in filed)


def test_vectors_that_are_known_are_used(fits: Fits) -> None:
    filing = Classifier((), BagOfTerms(), fits)
    texts = [examples()[0].text, examples()[5].text]
    assert filing.classify(texts, BagOfTerms().embed_passages(texts)) == filing.classify(texts)
    swapped = BagOfTerms().embed_passages(texts[::-1])
    assert filing.classify(texts, swapped) != filing.classify(texts)
    assert filing.classify([], np.zeros((0, DIMENSION), np.float32)) == []


@pytest.mark.parametrize("text", ["", "   \n", "?!… —", "=====\n-----"])
def test_a_text_without_words_is_general_without_confidence(text: str, fits: Fits) -> None:
    [place] = Classifier((), BagOfTerms(), fits).classify([text])
    assert (place.room, place.confidence) == ("general", 0.0)


def test_a_room_of_the_users_goes_first_and_takes_only_its_own(fits: Fits) -> None:
    room = Room(
        name="kitchen",
        description="recipes, cooking, baking",
        examples=("> how long do I bake sourdough bread\nForty minutes in a hot oven with steam.",),
        words={"en": ("sourdough", "oven")},
    )
    filing = Classifier([room], BagOfTerms(), fits)
    [bread] = filing.classify(["> my sourdough bread is flat\nBake it in a hotter oven, with steam."])
    assert bread.room == "kitchen"
    assert bread.confidence > 0.5
    others = filing.classify(
        ["服务一重启就报 502，是健康检查的路径改了", "> git undo the last commit\n`git reset --soft HEAD~1`"]
    )
    assert all(place.room != "kitchen" for place in others)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ({"provider": "claude-code", "project": "/home/x/src/garden"}, "garden"),
        ({"provider": "claude-code", "project": "C:\\work\\Garden\\"}, "Garden"),
        ({"provider": "slack", "project": "#花园"}, "花园"),
        ({"provider": "chatgpt", "project": None, "title": "Trip"}, "chatgpt"),
        ({"provider": "codex", "project": "/"}, "codex"),
        ({"provider": "chatgpt", "project": None, "title": "ACME offer"}, "customers"),
        ({"provider": "codex", "project": "/src/acme-web"}, "customers"),
    ],
)
def test_wing(head: dict[str, Any], expected: str) -> None:
    wings = [Wing(match="acme", name="customers"), Wing(match="acme-web", name="never reached")]
    assert wing_of(head, wings) == expected


# --- the line protocol ------------------------------------------------------------------------------------------------


@pytest.fixture
def settings(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, fits: Fits) -> Settings:
    monkeypatch.setattr(embedding, "load_model", lambda _: BagOfTerms())
    monkeypatch.setattr(under_test, "fitted", lambda _: fits)
    return Settings(home=tmp_path)


def test_lines_are_answered_in_order_and_bad_ones_named(settings: Settings) -> None:
    lines = [
        {"id": "a", "text": examples()[0].text},
        {"id": 7, "text": "surrogate \ud800 and NUL \x00"},
        {"id": "c"},
    ]
    source = "\n".join([json.dumps(line) for line in lines] + ["", "{broken secret", "[1]"]).encode()
    out = io.BytesIO()
    assert classify_lines(io.BytesIO(source), out, settings) == 3
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [answer["id"] for answer in answers] == ["a", 7, "c", None, None]
    assert set(answers[0]) == {"id", "room", "hall", "confidence"}
    assert [("error" in answer) for answer in answers] == [False, False, True, True, True]
    assert b"secret" not in out.getvalue()


def test_an_answer_does_not_wait_for_the_next_line(settings: Settings) -> None:
    ask, asked = os.pipe()
    answer, answered = os.pipe()
    with os.fdopen(ask, "rb") as source, os.fdopen(answered, "wb") as out, os.fdopen(answer, "rb") as answers:
        worker = threading.Thread(target=lambda: classify_lines(source, out, settings), daemon=True)
        worker.start()
        os.write(asked, b'{"id": 1, "text": "one line"}\n')
        assert json.loads(answers.readline())["id"] == 1  # would block for ever
        os.close(asked)
        worker.join(10)
        assert not worker.is_alive()


# --- with the real model ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_real_model_goes_by_meaning() -> None:
    model = embedding.load_model(EmbeddingSettings())
    texts = {
        "I need a latest explanation of capital markets": "general",
        "> which digital camera for the trip\nTake the small one; it fits into a coat pocket.": "general",
        "latest capital digital": "general",
        "> 服务一重启就报 502\n是健康检查的路径改了,网关还在探旧的。改回来之后恢复。": "problems",
        "> как вывести последние 20 строк файла\n`tail -n 20 файл`, а с `-f` он будет следить дальше.": "technical",
    }
    filed = Classifier((), model).classify(list(texts))
    assert [place.room for place in filed] == list(texts.values())


@pytest.mark.slow
def test_the_shipped_fit_is_what_the_examples_give() -> None:
    model = embedding.load_model(EmbeddingSettings())
    shipped, now = under_test.fitted(model), learn(model)
    texts = [example.text for example in examples()]
    vectors = model.embed_passages(texts)
    same = now.room.scores(vectors).argmax(axis=1) == shipped.room.scores(vectors).argmax(axis=1)
    assert same.mean() > 0.98
