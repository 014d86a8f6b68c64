"""Arrays that are computed once from a model and data of this package: shipped for the default model, else cached.

What belongs to another model, or to other data, is computed at its first use and kept in the user's cache.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from importlib.resources.abc import Traversable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from palace_pipeline.embedding.convert import cache_folder
from palace_pipeline.model import short_hash

Arrays = dict[str, NDArray[np.generic]]
_MADE_WITH = "made_with"


class Named(Protocol):
    """What is needed of a model here (`embedding.model.EmbeddingModel`)."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> str: ...


def derived_arrays(model: Named, what: str, data: str, shipped: Traversable, make: Callable[[], Arrays]) -> Arrays:
    """The arrays named `what` for a model. `data`: identity of the data and code they are made from.

    The shipped file counts for every conversion of the model it names: those differ by rounding only.
    """
    if shipped.is_file() and (arrays := _read(shipped.read_bytes(), f"{model.name}|{data}")) is not None:
        return arrays
    path = cache_folder() / "derived" / f"{what}-{short_hash(data, model.key)}.npz"
    made_with = f"{model.key}|{data}"
    if path.is_file() and (arrays := _read(path.read_bytes(), made_with)) is not None:
        return arrays
    arrays = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_bytes(as_bytes(arrays, made_with))
    temporary.replace(path)
    return arrays


def shipped_bytes(model: Named, data: str, arrays: Arrays) -> bytes:
    """The content of a file to ship for a model."""
    return as_bytes(arrays, f"{model.name}|{data}")


def as_bytes(arrays: Arrays, made_with: str) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **{**arrays, _MADE_WITH: np.array(made_with)})  # type: ignore[arg-type]
    return stream.getvalue()


def _read(data: bytes, made_with: str) -> Arrays | None:
    """The arrays, or None if they were made with something else, or cannot be read (they are made again then)."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays: Arrays = {name: file[name] for name in file.files}
    except (ValueError, KeyError, OSError, EOFError):
        return None
    return arrays if str(arrays.pop(_MADE_WITH, "")) == made_with else None
