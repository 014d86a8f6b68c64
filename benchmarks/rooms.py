"""How well chunks are filed, and the fit that is shipped.

    python benchmarks/rooms.py             cross-validated accuracy on the shipped examples, by axis and language
    python benchmarks/rooms.py --write     fit on all of them and write palace_pipeline/rooms/fitted.npz

Folds are honest: both forms of a text are on the same side, and a fold's texts take no part in the fit or its centre.
The examples were chosen and looked at while the classifier was made, so a text of another author may do worse.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

import palace_pipeline.rooms
from palace_pipeline.embedding.derived import shipped_bytes
from palace_pipeline.embedding.model import EmbeddingModel, load_model
from palace_pipeline.rooms.classifier import ROOMS_RECIPE, SHIPPED, Classifier, Fits, arrays_of, learn
from palace_pipeline.rooms.examples import Axis, as_chunk, definitions, examples
from palace_pipeline.rooms.fit import Floats, LinearFit, fit
from palace_pipeline.settings import EmbeddingSettings

FOLDS = 5
AXES: tuple[Axis, ...] = ("room", "hall")


def fold_fits(axis: Axis, marked: Floats, chunks: Floats, fold_of: np.ndarray) -> list[LinearFit]:
    """One fit for each fold, on the texts of the others."""
    labels = [room.name for room in definitions(axis)]
    shares = np.array([[e.share.get(axis, {}).get(label, 0.0) for label in labels] for e in examples()], np.float32)
    fits: list[LinearFit] = []
    for fold in range(FOLDS):
        used = (fold_of != fold) & (shares.sum(axis=1) > 0)
        fits.append(fit(labels, np.vstack([marked[used], chunks[used]]), np.vstack([shares[used], shares[used]])))
    return fits


def cross_validate(model: EmbeddingModel, splits: int) -> None:
    texts = [example.text for example in examples()]
    forms = {"marked": texts, "chunk": [as_chunk(text) for text in texts]}
    vectors = {form: model.embed_passages(these) for form, these in forms.items()}
    right: dict[tuple[Axis, str], dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    sure: dict[tuple[Axis, str], list[tuple[float, bool]]] = defaultdict(list)
    for split in range(splits):
        fold_of = np.random.default_rng(split).permutation(len(texts)) % FOLDS
        fits = {axis: fold_fits(axis, vectors["marked"], vectors["chunk"], fold_of) for axis in AXES}
        for fold in range(FOLDS):
            classifier = Classifier((), model, Fits(fits["room"][fold], fits["hall"][fold], vectors["chunk"][:2]))
            places = np.flatnonzero(fold_of == fold)
            for form, these in forms.items():
                filed = classifier.classify([these[place] for place in places], vectors[form][places])
                for place, answer in zip(places, filed, strict=True):
                    example = examples()[place]
                    language = example.lang if example.lang in ("zh", "en") else "others"
                    for axis, label in (("room", answer.room), ("hall", answer.hall)):
                        if axis in example.share:
                            good = label in example.share[axis]
                            right[axis, form]["all"].append(good)
                            right[axis, form][language].append(good)
                            if len(example.share) == 1:
                                right[axis, form]["labelled on this axis alone"].append(good)
                            if axis == "room":
                                sure[axis, form].append((answer.confidence, good))
    for (axis, form), groups in sorted(right.items()):
        shown = "  ".join(f"{name} {np.mean(good):.3f}" for name, good in groups.items())
        print(f"{axis}, {form:6}  n {len(groups['all']) // splits:3}  {shown}")
    for (axis, form), pairs in sorted(sure.items()):
        print(f"{axis}, {form:6}  said -> was: {reliability(pairs)}")


def reliability(pairs: list[tuple[float, bool]]) -> str:
    """Mean confidence and share that was right, in five steps of confidence."""
    steps: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, good in pairs:
        steps[min(int(confidence * 5), 4)].append((confidence, good))
    means = {step: np.mean(np.array(these, float), axis=0) for step, these in sorted(steps.items())}
    return "  ".join(f"{said:.2f} -> {was:.2f} ({len(steps[step])})" for step, (said, was) in means.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the fit that is shipped")
    parser.add_argument("--splits", type=int, default=3, help="repeat the folds so many times (default: 3)")
    arguments = parser.parse_args()
    model = load_model(EmbeddingSettings())
    if arguments.write:
        target = Path(palace_pipeline.rooms.__file__).with_name(SHIPPED)
        target.write_bytes(shipped_bytes(model, ROOMS_RECIPE, arrays_of(learn(model))))
        print(f"{target} written, {target.stat().st_size:,} bytes")
    else:
        cross_validate(model, arguments.splits)


if __name__ == "__main__":
    main()
