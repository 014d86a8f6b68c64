"""How well chunks are filed, and the fit that is shipped.

    python benchmarks/rooms.py             cross-validated figures on the shipped examples, by axis and language
    python benchmarks/rooms.py FILE...     the same on labelled files: JSON lines with text, lang, room or hall, also
    python benchmarks/rooms.py --own       rooms of one's own in five wordings (benchmarks/own_rooms.toml): texts found
    python benchmarks/rooms.py --write     fit on all examples and write palace_pipeline/rooms/fitted.npz

Folds are honest: both forms of a text are on the same side, and a fold's texts take no part in the fit, its centre or
its languages. Texts of a FILE that are shipped as examples are filed by fits without their fold; all other examples
are in every fit. Texts of a FILE that are not shipped are filed by the fit on all examples.
The examples were chosen and looked at while the classifier was made, so a text of another author may do worse.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import palace_pipeline.rooms
from palace_pipeline.embedding.derived import shipped_bytes
from palace_pipeline.embedding.model import EmbeddingModel, load_model
from palace_pipeline.rooms.classifier import ROOMS_RECIPE, SHIPPED, Classifier, Filed, arrays_of, learn, learn_from
from palace_pipeline.rooms.examples import Axis, as_chunk, definitions, examples
from palace_pipeline.settings import EmbeddingSettings, Room

FOLDS = 5
WRITTEN_EARLIER = 455
"""Examples that the figures of rooms of one's own have been compared on since the first version."""
AXES: tuple[Axis, ...] = ("room", "hall")


@dataclass(frozen=True)
class Item:
    """A labelled text. `label`: the main one of each axis; `right`: all that count as right."""

    text: str
    lang: str
    label: Mapping[Axis, str]
    right: Mapping[Axis, frozenset[str]]


def shipped_items() -> list[Item]:
    found: list[Item] = []
    for example in examples():
        label = {axis: max(share, key=lambda name: share[name]) for axis, share in example.share.items()}
        found.append(Item(example.text, example.lang, label, {a: frozenset(s) for a, s in example.share.items()}))
    return found


def items_of(file: Path) -> list[Item]:
    found: list[Item] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        axis: Axis = "room" if "room" in row else "hall"
        right = frozenset({row[axis], *row.get("also", ())})
        found.append(Item(row["text"], row["lang"], {axis: row[axis]}, {axis: right}))
    return found


def filed(model: EmbeddingModel, items: Sequence[Item], splits: int) -> dict[str, list[tuple[Item, Filed]]]:
    """Form -> every item with where it was filed, once a split."""
    known = {example.text: place for place, example in enumerate(examples())}
    texts = [example.text for example in examples()]
    marked, chunks = model.embed_passages(texts), model.embed_passages([as_chunk(text) for text in texts])
    folded = sorted({known[item.text] for item in items if item.text in known})
    out: dict[str, list[tuple[Item, Filed]]] = defaultdict(list)
    new = [item for item in items if item.text not in known]
    if new:
        classifier = Classifier((), model, learn_from(marked, chunks))
        for form, these in (("marked", [i.text for i in new]), ("chunk", [as_chunk(i.text) for i in new])):
            out[form] += list(zip(new, classifier.classify(these), strict=True)) * splits
    for split in range(splits):
        fold_of = dict(zip(folded, np.random.default_rng(split).permutation(len(folded)) % FOLDS, strict=True))
        for fold in range(FOLDS):
            fits = learn_from(marked, chunks, [p for p in range(len(texts)) if fold_of.get(p) != fold])
            classifier = Classifier((), model, fits)
            of_fold = [item for item in items if fold_of.get(known.get(item.text, -1)) == fold]
            places = [known[item.text] for item in of_fold]
            if of_fold:
                here = classifier.classify([item.text for item in of_fold], marked[places])
                out["marked"] += zip(of_fold, here, strict=True)
                here = classifier.classify([as_chunk(item.text) for item in of_fold], chunks[places])
                out["chunk"] += zip(of_fold, here, strict=True)
    return out


def show(model: EmbeddingModel, name: str, items: Sequence[Item], splits: int) -> None:
    for form, pairs in filed(model, items, splits).items():
        for axis in AXES:
            of_axis = [(item, getattr(place, axis), place.confidence) for item, place in pairs if axis in item.label]
            if not of_axis:
                continue
            right = [answer in item.right[axis] for item, answer, _ in of_axis]
            strict = [answer == item.label[axis] for item, answer, _ in of_axis]
            gold = [a if a in item.right[axis] else item.label[axis] for item, a, _ in of_axis]
            answers = [answer for _, answer, _ in of_axis]
            groups: dict[str, list[bool]] = defaultdict(list)
            for (item, _, _), good in zip(of_axis, right, strict=True):
                groups[item.lang if item.lang in ("zh", "en") else "others"].append(good)
            shares = "  ".join(f"{lang} {np.mean(good):.3f}" for lang, good in sorted(groups.items()))
            biggest, count = Counter(answers).most_common(1)[0]
            print(
                f"{name}: {axis}, {form:6}  n {len(of_axis) // splits:3}  accuracy {np.mean(right):.3f}  "
                f"macro-F1 {macro_f1([room.name for room in definitions(axis)], gold, answers):.3f}  "
                f"strict {np.mean(strict):.3f}  {shares}  biggest {biggest} {count / len(answers):.2f}"
            )
            if axis == "room":
                print(f"    said -> was: {reliability([(c, g) for (_, _, c), g in zip(of_axis, right, strict=True)])}")


def show_own(model: EmbeddingModel) -> None:
    """How many texts each set of rooms finds, by language, and how many examples about work it takes falsely."""
    data = tomllib.loads(Path(__file__).with_name("own_rooms.toml").read_text(encoding="utf-8"))
    texts = [text["text"] for text in data["texts"]]
    work = [
        as_chunk(item.text)
        for item in shipped_items()[:WRITTEN_EARLIER]
        if item.label.get("room", "general") != "general"
    ]
    vectors, of_work = model.embed_passages(texts), model.embed_passages(work)
    for tried in data["sets"]:
        rooms = [Room(**room) for room in tried["rooms"]]
        classifier = Classifier(rooms, model)
        hits: Counter[str] = Counter()
        for text, place in zip(data["texts"], classifier.classify(texts, vectors), strict=True):
            hits[text["lang"]] += place.room == text["room"]
        taken = sum(place.room in {room.name for room in rooms} for place in classifier.classify(work, of_work))
        print(
            f"{tried['name']:34} found {hits.total():2} of {len(texts)} {dict(hits)}  taken falsely {taken} of {len(work)}"
        )


def macro_f1(labels: Sequence[str], gold: Sequence[str], answers: Sequence[str]) -> float:
    """An answer that counts as right although it is not the main label counts as a hit of what was answered."""
    found: list[float] = []
    for label in labels:
        hits = sum(g == a == label for g, a in zip(gold, answers, strict=True))
        total = sum(g == label for g in gold) + sum(a == label for a in answers)
        found.append(2 * hits / total if total else 0.0)
    return float(np.mean(found))


def reliability(pairs: list[tuple[float, bool]]) -> str:
    """Mean confidence and share that was right, in five steps of confidence."""
    steps: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, good in pairs:
        steps[min(int(confidence * 5), 4)].append((confidence, good))
    means = {step: np.mean(np.array(these, float), axis=0) for step, these in sorted(steps.items())}
    return "  ".join(f"{said:.2f} -> {was:.2f} ({len(steps[step])})" for step, (said, was) in means.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="labelled files (default: the shipped examples)")
    parser.add_argument("--write", action="store_true", help="write the fit that is shipped")
    parser.add_argument("--splits", type=int, default=3, help="repeat the folds so many times (default: 3)")
    parser.add_argument("--own", action="store_true", help="rooms of one's own")
    arguments = parser.parse_args()
    model = load_model(EmbeddingSettings())
    if arguments.write:
        target = Path(palace_pipeline.rooms.__file__).with_name(SHIPPED)
        target.write_bytes(shipped_bytes(model, ROOMS_RECIPE, arrays_of(learn(model))))
        print(f"{target} written, {target.stat().st_size:,} bytes")
        return
    if arguments.own:
        show_own(model)
        return
    for file in arguments.files:
        show(model, file.stem, items_of(file), arguments.splits)
    if not arguments.files:
        show(model, "examples", shipped_items(), arguments.splits)


if __name__ == "__main__":
    main()
