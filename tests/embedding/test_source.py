"""The weight file's layout, on a file written here byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from palace_pipeline.embedding.source import E5File, SourceError


def write_file(path: Path, mark: bytes = b"E5S1", version: int = 1, block: int = 32) -> Path:
    """Two pieces, one f32 tensor of 3 and one Q4 tensor of 2 x 32: row 0 counts 0..15, 15..0, row 1 is all 8."""
    pieces = ["▁a", "猫"]
    blob = "".join(pieces).encode()
    head = mark + struct.pack("<I7if", version, 384, 12, 12, 1536, 2, 512, 2, 1e-12)
    head += struct.pack("<i i 4i Q", block, 2, 0, 2, 1, 3, len(blob))
    head += struct.pack("<3I", 0, 4, 7) + struct.pack("<2f", -1.5, -2.5) + blob
    head += struct.pack("<iI", 1, 5) + b"skip!"
    row0 = bytes(low | ((15 - low) << 4) for low in range(16))
    q4 = np.float16(0.5).tobytes() + row0 + np.float16(2).tobytes() + b"\x88" * 16
    f32 = struct.pack("<3f", 1, 2, 3)
    table_size = 4 + 2 * (2 + 1 + 1 + 4 + 8 + 8)
    start = len(head) + table_size
    table = struct.pack("<i", 2)
    table += struct.pack("<H1sBIQQ", 1, b"f", 0, 3, start, len(f32))
    table += struct.pack("<H1sBIQQ", 1, b"q", 1, 64, start + len(f32), len(q4))
    path.write_bytes(head + table + f32 + q4)
    return path


def test_sizes_pieces_and_tensors(tmp_path: Path):
    file = E5File(write_file(tmp_path / "w.bin"))
    assert (file.hidden, file.layers, file.heads, file.feed_forward, file.positions) == (384, 12, 12, 1536, 512)
    assert (file.bos, file.eos, file.pad, file.unknown) == (0, 2, 1, 3)
    assert (file.pieces, file.scores) == (["▁a", "猫"], [-1.5, -2.5])
    assert file.floats("f").tolist() == [1, 2, 3]
    values, scales = file.blocks("q", rows=2)
    assert values[0].tolist() == [*range(16), *range(15, -1, -1)]
    assert scales.tolist() == [[0.5], [2.0]]
    assert file.weights("q", rows=2)[0, [0, 8, 15, 16, 31]].tolist() == [-4.0, 0.0, 3.5, 3.5, -4.0]
    assert not file.weights("q", rows=2)[1].any()


@pytest.mark.parametrize("wrong", [{"mark": b"E5S2"}, {"version": 2}, {"block": 64}])
def test_an_unknown_layout_is_refused(tmp_path: Path, wrong: dict[str, object]):
    with pytest.raises(SourceError):
        E5File(write_file(tmp_path / "w.bin", **wrong))  # pyright: ignore[reportArgumentType]


def test_a_file_that_ends_too_early_is_refused(tmp_path: Path):
    path = write_file(tmp_path / "w.bin")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(SourceError, match="too early"):
        E5File(path)


def test_a_tensor_of_another_kind_is_refused(tmp_path: Path):
    file = E5File(write_file(tmp_path / "w.bin"))
    with pytest.raises(SourceError):
        file.floats("q")
    with pytest.raises(SourceError):
        file.blocks("f", rows=1)
