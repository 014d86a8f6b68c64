"""Seeded random values for the truth set of redaction (`redaction_corpus.py`)."""

from __future__ import annotations

import base64
import random
import sys
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from palace_pipeline.redaction.shapes import draw


class Source:
    """Seeded random values."""

    def __init__(self, seed: str) -> None:
        self.rng = random.Random(seed)

    def shape(self, pattern: str) -> str:
        return draw(pattern, self.rng)

    def hex(self, size: int) -> str:
        return self.shape(f"[0-9a-f]{{{size}}}")

    def alnum(self, size: int) -> str:
        return self.shape(f"[A-Za-z0-9]{{{size}}}")

    def digits(self, size: int) -> str:
        return self.shape(f"[0-9]{{{size}}}")

    def base64(self, size: int) -> str:
        return base64.b64encode(self.rng.randbytes(size)).decode()

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)
