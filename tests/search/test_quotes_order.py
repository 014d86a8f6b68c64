"""The same question gives the same answer in every process: nothing may depend on the order of a set."""

from __future__ import annotations

import os
import subprocess
import sys

_CODE = """
from palace_pipeline.search.quotes import quote_of
weights = {f"word{n}": 0.1 + n / 7 for n in range(12)}
text = " ".join(f"word{(n * 5) % 12} filler{n % 3}" for n in range(200))
print(quote_of(text, weights).start)
"""


def test_the_quote_does_not_depend_on_the_hash_seed() -> None:
    starts = {
        subprocess.run(
            [sys.executable, "-c", _CODE],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(6)
    }
    assert len(starts) == 1
