"""Files that only grow, and the log of errors."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from palace_pipeline.store.appending import append_chosen, append_lines
from palace_pipeline.workspace.logs import append_error


def test_an_error_is_one_line_with_time_kind_file_and_words(tmp_path: Path) -> None:
    at = datetime.fromisoformat("2026-11-30T10:12:13+08:00")
    append_error(tmp_path, "conflict", tmp_path / "sessions/2026-11-30/a.md", "somebody\nchanged `it`", at=at)
    text = (tmp_path / "logs/errors.md").read_text(encoding="utf-8")
    assert text.startswith("# Errors\n")
    line = text.splitlines()[-1]
    assert line == "- 2026-11-30T10:12:13+08:00 · conflict · `sessions/2026-11-30/a.md` · somebody changed 'it'"


def test_files_and_folders_are_the_owners_alone(tmp_path: Path) -> None:
    append_error(tmp_path, "damaged", "a.md", "x")
    assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "logs/errors.md").stat().st_mode & 0o777 == 0o600


def test_a_line_that_a_kill_tore_is_ended_by_the_next_writer(tmp_path: Path) -> None:
    file = tmp_path / "index.md"
    append_lines(file, ["one"], head="head\n")
    file.write_bytes(file.read_bytes() + b"tw")
    append_lines(file, ["three"], head="head\n")
    assert file.read_text() == "head\none\ntw\nthree\n"


def test_nothing_to_add_makes_no_file(tmp_path: Path) -> None:
    append_lines(tmp_path / "a.md", [])
    assert not (tmp_path / "a.md").exists()


def test_a_line_break_inside_a_line_is_refused(tmp_path: Path) -> None:
    append_lines(tmp_path / "a.md", ["one"])
    with pytest.raises(ValueError, match="line break"):
        append_lines(tmp_path / "a.md", ["two\nthree"])
    assert (tmp_path / "a.md").read_text() == "one\n"


def test_what_is_added_may_depend_on_what_is_there(tmp_path: Path) -> None:
    append_lines(tmp_path / "a.md", ["one"])
    append_chosen(tmp_path / "a.md", lambda text: [] if b"one" in text else ["one"])
    append_chosen(tmp_path / "a.md", lambda text: [] if b"two" in text else ["two"])
    assert (tmp_path / "a.md").read_text() == "one\ntwo\n"


def test_a_blank_file_gets_its_head(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("\n")
    append_lines(tmp_path / "a.md", ["one"], head="head\n")
    assert (tmp_path / "a.md").read_text().split() == ["head", "one"]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    append_lines(tmp_path / "a.md", ["one"])
    child = f"""
import resource, signal, sys
from pathlib import Path
from palace_pipeline.store.appending import append_lines
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    append_lines(Path({str(tmp_path / "a.md")!r}), ["x" * 500])
except OSError:
    sys.exit(7)
"""
    assert subprocess.run([sys.executable, "-c", child], timeout=60, check=False).returncode == 7
    assert (tmp_path / "a.md").read_text() == "one\n"


def test_many_processes_add_whole_lines_and_none_is_lost(tmp_path: Path) -> None:
    child = """
import sys
from pathlib import Path
from palace_pipeline.store.appending import append_lines
for number in range(40):
    append_lines(Path(sys.argv[1]), [f"{sys.argv[2]} {number} " + sys.argv[2] * 300], head="head\\n")
"""
    file = tmp_path / "logs/a.md"
    writers = [subprocess.Popen([sys.executable, "-c", child, str(file), str(name)]) for name in range(6)]
    assert [writer.wait(timeout=60) for writer in writers] == [0] * 6
    lines = file.read_text().splitlines()
    assert lines[0] == "head"
    assert sorted(lines[1:]) == sorted(
        f"{name} {number} {str(name) * 300}" for name in range(6) for number in range(40)
    )
