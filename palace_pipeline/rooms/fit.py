"""A linear classifier on text vectors: softmax regression, fitted in a second on a few hundred labelled texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_SCALE = 4.0
"""Unit vectors of one language model lie close together; stretched about their mean they suit one step size."""
_L2 = 0.003
"""Chosen by cross-validation (`benchmarks/rooms.py`); between 0.001 and 0.01 nothing changes."""
_STEPS = 200
_FEWEST_OF_A_GROUP = 3


@dataclass(slots=True, frozen=True, eq=False)
class LinearFit:
    """Scores of `labels`: `(vector - center) @ weights + bias`; float32 [dimension], [dimension, labels], [labels]."""

    labels: tuple[str, ...]
    center: Floats
    weights: Floats
    bias: Floats

    def scores(self, vectors: Floats) -> Floats:
        """Logits, float32 [texts, labels]."""
        scores = (vectors - self.center) @ self.weights + self.bias
        return scores.astype(np.float32, copy=False)

    def arrays(self, name: str) -> dict[str, NDArray[np.generic]]:
        """The parts as arrays to keep in an `.npz` under `name`."""
        parts = {"labels": np.array(self.labels), "center": self.center, "weights": self.weights, "bias": self.bias}
        return {f"{name}_{part}": value for part, value in parts.items()}

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[np.generic]], name: str) -> LinearFit:
        """The inverse of `arrays`."""
        center, weights, bias = (arrays[f"{name}_{part}"].astype(np.float32) for part in ("center", "weights", "bias"))
        return cls(tuple(str(label) for label in arrays[f"{name}_labels"]), center, weights, bias)


def fit(labels: Sequence[str], vectors: Floats, shares: Floats, apart: Floats | None = None) -> LinearFit:
    """Softmax regression. `vectors` [texts, dimension]; `shares` [texts, labels] with rows that add up to 1.
    `apart`: orthonormal directions [n, dimension] that must not matter.

    Every label weighs the same, however many texts it has. Accelerated gradient descent with a fixed number of steps:
    the same input gives the same result.
    """
    center = vectors.mean(axis=0)
    points = ((vectors - center) * _SCALE).astype(np.float64)
    if apart is not None:
        # The weights stay among the points, so they have nothing of these directions either.
        points -= (points @ apart.T) @ apart
    targets = shares.astype(np.float64)
    importance = 1 / np.maximum(targets.sum(axis=0), 1e-9)[targets.argmax(axis=1)]
    importance /= importance.sum()
    # The gradient's Lipschitz constant; the bias needs a step of its own size.
    steepest = max(0.5 * float(np.linalg.norm(points * np.sqrt(importance)[:, None], 2)) ** 2 + _L2, 0.5)
    weights = np.zeros((points.shape[1], len(labels)))
    bias = np.zeros(len(labels))
    ahead, bias_ahead, pace = weights, bias, 1.0
    for _ in range(_STEPS):
        error = (softmax(points @ ahead + bias_ahead) - targets) * importance[:, None]
        new_weights = ahead - (points.T @ error + _L2 * ahead) / steepest
        new_bias = bias_ahead - error.sum(axis=0) / steepest
        new_pace = (1 + np.sqrt(1 + 4 * pace * pace)) / 2
        ahead = new_weights + (pace - 1) / new_pace * (new_weights - weights)
        bias_ahead = new_bias + (pace - 1) / new_pace * (new_bias - bias)
        weights, bias, pace = new_weights, new_bias, new_pace
    return LinearFit(
        tuple(labels), center.astype(np.float32), (weights * _SCALE).astype(np.float32), bias.astype(np.float32)
    )


def group_directions(vectors: Floats, groups: Sequence[str]) -> Floats:
    """The directions in which groups of texts (their languages) differ as a whole: orthonormal, [n, dimension].

    Taken out of the vectors, what is left says the same in every language. Groups of few texts say little of a language
    and do not count.
    """
    of = np.array(groups)
    large = [group for group in sorted(set(groups)) if (of == group).sum() >= _FEWEST_OF_A_GROUP]
    if len(large) < 2:
        return vectors[:0].astype(np.float32)
    center = vectors.mean(axis=0)
    apart = np.stack([vectors[of == group].mean(axis=0) - center for group in large])
    _, sizes, directions = np.linalg.svd(apart.astype(np.float64), full_matrices=False)
    return directions[sizes > max(0.1 * sizes[0], 1e-6)].astype(np.float32)


def softmax(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Probabilities by row."""
    powers = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
