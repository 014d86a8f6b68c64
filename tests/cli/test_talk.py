"""How long work says where it is."""

from __future__ import annotations

import pytest

from palace_pipeline.cli import talk
from palace_pipeline.cli.talk import in_lines, progress
from palace_pipeline.stages.progress import report


def test_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter((100.0, 100.0, 109.9, 110.0, 115.0, 121.5, 131.4, 131.5))
    tell = in_lines(lambda: next(times))
    for done in (1, 900, 1_000, 1_500, 2_000, 2_900):
        tell("reading", done, 12_000)
    tell("merging", 0, 7)
    said = capsys.readouterr()
    assert said.err.splitlines() == ["reading: 1,000 of 12,000", "reading: 2,000 of 12,000", "merging: 0 of 7"]
    assert said.out == ""


def test_where_there_is_no_terminal_lines_are_said_of_all_that_reports(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk, "EVERY", 0.0)
    with progress():
        report("reading", 3, 9)
    report("reading", 4, 9)  # nobody listens any more
    assert capsys.readouterr().err == "reading: 3 of 9\n"
