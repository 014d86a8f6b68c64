"""The workspace in a shell: `palace session`, `palace memory`, `palace context`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.workspace.api import Workspace
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, funnel: Funnel) -> None:
    monkeypatch.setattr(Workspace, "funnel", funnel)


def _says(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_session_in_a_shell(palace: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made = palace("session", "new", "修复烤箱", "--tag", "烤箱", "--input", "烤箱不热了", "--json")
    assert made.code == 0
    session, path = made.json["id"], Path(made.json["path"])
    assert path.is_file()
    _says(monkeypatch, "温控器坏了\n")
    assert palace("session", "append", session, "我的判断", "--tokens-out", "7").out == f"{session}\t{path}\n"
    assert palace("session", "append", session, "todo", "- [ ] 买温控器").code == 0
    assert palace("session", "append", session, "todo", "- [ ] buy a thermostat").out == f"{session}\t{path}\n"
    assert palace("session", "close", session, "换掉。").code == 0
    shown = palace("session", "show", session, "--json").json
    assert (shown["status"], shown["summary"], shown["tokens_out"], shown["todos"]) == ("closed", "换掉。", 7, 2)
    assert [entry["text"] for entry in shown["sections"]["judgement"]] == ["温控器坏了"]
    assert palace("session", "show", session).out == path.read_text(encoding="utf-8")
    (listed,) = palace("session", "show", "--json").json
    assert (listed["id"], listed["title"]) == (session, "修复烤箱")
    assert palace("session", "show").out == f"{session}\tclosed\t修复烤箱\t换掉。\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("session", "show", "20261130-0915-1a2b3c4"), 1, "there is no session"),
        (("session", "show", "nonsense"), 1, "looks like"),
        (("session", "append", "20261130-0915-1a2b3c4", "nothing", "x"), 1, "there are: input"),
        (("session", "append", "20261130-0915-1a2b3c4", "todo", "x", "--at", "yesterday"), 2, "write 2026-11-30T"),
        (("session", "append", "20261130-0915-1a2b3c4", "todo", "x", "--at", "2026-11-30T10:00"), 2, "has no offset"),
        (("session", "append", "20261130-0915-1a2b3c4", "todo", "x", "--tga", "y"), 2, "unexpected extra"),
        (("context", "x", "--shares", "1/2"), 2, "four numbers"),
        (("context", "x", "--shares", "90/90/0/0"), 2, "at most 100"),
        (("memory", "set", ":", "x"), 2, "key"),
    ],
)
def test_errors_say_what_to_write(palace: Run, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = palace(*arguments)
    assert done.code == code
    assert said in done.err
    assert "Traceback" not in done.err


def test_memory_and_context(palace: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert palace("memory", "set", "烤箱", "燃气, 2019").code == 0
    assert palace("memory", "set", "language", "中文", "--preference").code == 0
    assert palace("memory", "set", "role", "technician", "--entity", "Jane Doe").code == 0
    shown = palace("memory", "show", "--json").json
    assert (shown["facts"], shown["preferences"]) == ({"烤箱": "燃气, 2019"}, {"language": "中文"})
    assert shown["entities"] == {"memory/entities/jane-doe.md": ["Jane Doe"]}
    _says(monkeypatch, "What does Jane Doe do?")
    found = palace("context", "--json", "--tokens", "500").json
    assert "technician" in found["text"]
    assert (found["budget"], found["counted"]) == (500, "estimate")
    assert [part["name"] for part in found["parts"]] == ["facts", "recent", "references", "session", "input"]
    small = palace("context", "x", "--tokens", "20")
    assert "left out of facts" in small.err
    assert small.out.endswith("x\n")
