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
from palace_pipeline.rooms.fit import fit, group_directions, softmax
from palace_pipeline.rooms.shape import SIZE, WEIGHT, shapes
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


def test_what_must_not_matter_does_not() -> None:
    """Label and language go together in the texts; without the direction of the language the label alone decides."""
    random = np.random.default_rng(2)
    language = np.array([0, 0, 0, 1] * 20)
    label = np.array([0, 0, 0, 1] * 20) ^ (np.arange(80) % 10 == 0)
    vectors = random.normal(0, 0.05, (80, 4)).astype(np.float32)
    vectors[:, 0] += language
    vectors[:, 1] += label * 0.3
    shares = np.eye(2, dtype=np.float32)[label]
    apart = group_directions(vectors * [1, 0, 1, 1], list(map(str, language))).astype(np.float32)
    assert np.allclose(np.abs(apart), [[1, 0, 0, 0]], atol=0.1)
    learned = fit(("a", "b"), vectors, shares, apart)
    assert np.abs(apart @ learned.weights).max() < 1e-5
    # The other language, the first label: only what the label adds is looked at.
    assert learned.scores(np.array([[1, 0, 0, 0], [0, 0.3, 0, 0]], np.float32)).argmax(axis=1).tolist() == [0, 1]


def test_directions_of_groups_need_texts_and_more_than_one_group() -> None:
    vectors = np.random.default_rng(3).normal(0, 1, (12, 5)).astype(np.float32)
    assert group_directions(vectors, ["en"] * 12).shape == (0, 5)
    assert group_directions(vectors, ["en"] * 10 + ["zh"] * 2).shape == (0, 5)
    two = group_directions(vectors, ["en"] * 6 + ["zh"] * 6)
    assert two.shape == (1, 5)
    assert np.linalg.norm(two) == pytest.approx(1)


def test_shapes_are_the_same_with_and_without_marks() -> None:
    text = "> when at 10:30?\n1. run `main()`\n2. wait"
    with_marks, as_chunks = shapes([text, as_chunk(text)])
    assert np.allclose(with_marks, as_chunks, atol=0.01)
    assert shapes([]).shape == (0, SIZE)
    plain, fenced = shapes(["a word", "```\nx = f(1)\n```"])
    assert plain.max() <= WEIGHT
    assert fenced[1] == pytest.approx(WEIGHT)
    assert plain[1] == 0
    assert np.isfinite(shapes(["", "> ", "\n\n"])).all()


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


def test_without_the_default_rooms_all_else_is_general(fits: Fits) -> None:
    room = Room(name="kitchen", description="cooking", words={"en": ("sourdough", "oven")})
    texts = ["sourdough in the oven, cooking", "> git undo the last commit\n`git reset --soft HEAD~1`"]
    filed = Classifier([room], BagOfTerms(), fits, alone=True).classify(texts)
    assert [place.room for place in filed] == ["kitchen", "general"]
    assert all(place.confidence > 0.5 for place in filed)
    assert {p.room for p in Classifier([], BagOfTerms(), fits, alone=True).classify(texts)} == {"general"}


def test_only_the_texts_of_own_rooms_are_embedded_when_vectors_are_known(fits: Fits) -> None:
    asked: list[str] = []

    class Watched(BagOfTerms):
        def embed_passages(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
            asked.extend(texts)
            return super().embed_passages(texts)

    texts = [example.text for example in examples()[:5]]
    room = Room(name="kitchen", description="cooking", examples=("> soup?\nStir.",), words={"en": ("oven", "pan")})
    Classifier([room], Watched(), fits).classify(texts, BagOfTerms().embed_passages(texts))
    assert sorted(asked) == sorted(["cooking", "soup?\n\nStir.", "oven pan"])
    asked.clear()
    Classifier([], Watched(), fits).classify(texts, BagOfTerms().embed_passages(texts))
    assert asked == []


@pytest.mark.parametrize(
    "room",
    [
        Room(name="养猫", words={"zh": ("猫砂", "驱虫")}),
        Room(name="养猫", description="养猫 猫砂 驱虫"),
        Room(name="养猫", examples=("> 小猫多久驱虫？\n两个月大开始，猫砂每天铲。",)),
    ],
)
def test_one_of_description_examples_and_words_is_enough_in_any_script(room: Room, fits: Fits) -> None:
    filing = Classifier([room], BagOfTerms(), fits)
    [cat] = filing.classify(["> 小猫要驱虫吗\n要的，猫砂也要换。"])
    assert cat.room == "养猫"
    others = filing.classify(["> 数据库怎么选\n先看读写比例。", "> which regex\n`\\d+` does"])
    assert all(place.room != "养猫" for place in others)


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
def test_a_room_in_one_language_takes_its_topic_in_others_and_not_all_of_its_language() -> None:
    rooms = [
        Room(name="做菜", words={"zh": ("菜谱", "做菜", "烘焙", "火候")}),
        Room(name="pets", description="cats, dogs and other pets: care, food, vet"),
    ]
    filing = Classifier(rooms, embedding.load_model(EmbeddingSettings()))
    taken = {
        "糖醋排骨的汁怎么调?\n\n一勺料酒两勺酱油三勺糖,先煎后焖,最后大火收汁。": "做菜",
        "How long do I simmer the ragù?\n\nThree hours on a low flame, then salt and pepper.": "做菜",
        "味噌汁の出汁はどう取る?\n\n昆布を水に三十分、かつお節を入れて一分で漉します。": "做菜",
        "小猫一直打喷嚏要不要去医院?\n\n精神和食欲正常先观察两天。": "pets",
        "Wie gewöhne ich den Hund an die Leine?\n\nErst in der Wohnung, und jedes Mal belohnen.": "pets",
        # Of a language that no room and no example is written in.
        "แมวของฉันไม่ยอมกินอาหารใหม่\n\nค่อย ๆ ผสมกับอาหารเดิมหนึ่งสัปดาห์": "pets",
    }
    assert [place.room for place in filing.classify(list(taken))] == list(taken.values())
    others = [
        "服务一重启就报 502,怎么回事?\n\n健康检查的路径改了,网关还在探旧的。",
        "还剩三周,怎么排期?\n\n第一周联调,第二周压测,第三周发版。",
        "How do I undo the last commit?\n\n`git reset --soft HEAD~1`",
    ]
    own = {room.name for room in rooms}
    assert [place.room in own for place in filing.classify(others)] == [False] * len(others)


@pytest.mark.slow
def test_languages_without_words_and_examples_are_filed_by_meaning() -> None:
    texts = {
        "Sunucu her gece ikide çöküyor, neden?\n\nYedekleme sırasında disk doluyor. Günlükleri silince düzeldi.": "problems",
        "git'te son commit'i nasıl geri alırım?\n\n`git reset --soft HEAD~1` değişiklikleri korur.": "technical",
        "Vad bestämde vi om databasen?\n\nDet blev PostgreSQL, för att alla kan det. MySQL valdes bort.": "decisions",
        "रात में सर्वर बार-बार बंद हो जाता है\n\nकारण मिल गया: डिस्क भर जाती है।": "problems",
        "จะหาไฟล์ใหญ่ใน linux ยังไง\n\nใช้ `du -sh * | sort -h`": "technical",
        "Cách nấu phở bò ngon tại nhà?\n\nHầm xương ít nhất sáu tiếng, cho hoa hồi quế sau cùng.": "general",
    }
    filed = Classifier((), embedding.load_model(EmbeddingSettings())).classify(list(texts))
    assert [place.room for place in filed] == list(texts.values())


@pytest.mark.slow
def test_the_shipped_fit_is_what_the_examples_give() -> None:
    model = embedding.load_model(EmbeddingSettings())
    shipped, now = under_test.fitted(model), learn(model)
    texts = [example.text for example in examples()]
    vectors = np.hstack([model.embed_passages(texts), shapes(texts)])
    same = now.room.scores(vectors).argmax(axis=1) == shipped.room.scores(vectors).argmax(axis=1)
    assert same.mean() > 0.98
