"""A disk that fills up: said plainly, and finished by the next run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.archive_state import state


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "palace_pipeline.cli", "--home", str(home), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="mounting a small file system needs root")
@pytest.mark.parametrize("megabytes", [1, 2, 3, 5])
def test_a_full_disk_is_named_and_loses_nothing(tmp_path: Path, fixtures: Path, megabytes: int) -> None:
    sources = [str(fixtures / "exports" / name) for name in ("01-chatgpt-basic", "08-claude-ai-export")]
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(small)], check=False
    ).returncode:
        pytest.skip("this system does not let us mount")
    try:
        full = run(small / "home", "ingest", *sources)
        assert full.returncode == 1
        assert "disk is full" in full.stderr.lower() or "no space" in full.stderr.lower(), full.stderr[-800:]
        assert "Traceback" not in full.stderr
        subprocess.run(["mount", "-o", "remount,size=500m", str(small)], check=True)
        again = run(small / "home", "ingest", *sources)
        assert again.returncode == 0, again.stderr[-800:]
        undisturbed = run(tmp_path / "home", "ingest", *sources)
        assert undisturbed.returncode == 0
        expected, found = state(tmp_path / "home"), state(small / "home")
        for store in expected:
            assert found[store] == expected[store], store
    finally:
        subprocess.run(["umount", str(small)], check=False)
