"""`palace` in this process."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.cli.app import main

Run = Callable[..., "Result"]


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def palace(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in this process on the test's own home."""

    def run(*arguments: str, home: Path | None = tmp_path / "home") -> Result:
        capfd.readouterr()
        given = [*(["--home", str(home)] if home else []), *arguments]
        with pytest.raises(SystemExit) as ended:
            main(given)
        sys.stdout.flush()
        out, err = capfd.readouterr()
        code = ended.value.code
        return Result(code if isinstance(code, int) else 0, out, err)

    return run
