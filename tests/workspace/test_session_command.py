"""The workspace in a shell: `palace session`, `palace memory`, `palace context`."""

from __future__ import annotations

import io
import re
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
        (("session", "show", "20261130-0915-1a2b3c4"), 2, "there is no session"),
        (("session", "show", "nonsense"), 2, "looks like"),
        (("session", "append", "20261130-0915-1a2b3c4", "nothing", "x"), 2, "there are: input"),
        (("session", "new", "x", *(word for n in range(6) for word in ("--tag", f"t{n}"))), 2, "at most 5 tags"),
        (("session", "append", "20261130-0915-1a2b3c4", "todo", " "), 2, "nothing was changed"),
        (("memory", "set", "oven", " "), 2, "palace memory remove"),
        (("memory", "remove", "oven"), 2, "palace memory show"),
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


def test_nothing_on_stdin_changes_nothing(palace: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    session = palace("session", "new", "x", "--input", "y", "--json").json["id"]
    palace("session", "close", session, "Done.")
    assert palace("memory", "set", "oven", "gas").code == 0
    for command in (("session", "append", session, "input"), ("memory", "set", "oven")):
        _says(monkeypatch, "\n")
        assert palace(*command).code == 2
    assert palace("session", "append", session, "todo", "", "--tag", "a").code == 0
    shown = palace("session", "show", session, "--json").json
    assert (shown["status"], shown["tags"]) == ("closed", ["a"])
    assert palace("memory", "show", "--json").json["facts"] == {"oven": "gas"}


def test_a_fact_can_be_taken_out(palace: Run, tmp_path: Path) -> None:
    assert palace("memory", "set", "oven", "gas", "--json").json == {"path": "memory/facts.md"}
    palace("memory", "set", "lamp", "LED")
    assert palace("memory", "set", "oven", "cold", "--preference", "--json").json == {"path": "memory/preferences.md"}
    made = palace("memory", "set", "role", "cook", "--entity", "Jane Doe", "--json").json
    assert made == {"path": "memory/entities/jane-doe.md"}
    (tmp_path / "home/memory/facts.md").open("a").write("\nwords of mine\n")
    assert palace("memory", "remove", "OVEN", "--json").json == {"path": "memory/facts.md"}
    assert palace("memory", "remove", "role", "--entity", "jane doe").code == 0
    shown = palace("memory", "show", "--json").json
    assert (shown["facts"], shown["preferences"]) == ({"lamp": "LED"}, {"oven": "cold"})
    text = (tmp_path / "home/memory/facts.md").read_text(encoding="utf-8")
    assert "words of mine" in text
    assert "gas" not in text
    assert "- role" not in (tmp_path / "home/memory/entities/jane-doe.md").read_text(encoding="utf-8")


def test_a_page_that_cannot_be_read_stops_no_list(palace: Run) -> None:
    bad = palace("session", "new", "bad", "--json").json
    good = palace("session", "new", "good", "--json").json
    Path(bad["path"]).write_bytes(b"\x89PNG\r\n" + bytes(100))
    listed = palace("session", "show")
    assert listed.code == 1
    assert listed.out.startswith(good["id"])
    assert Path(bad["path"]).name in listed.err
    found = palace("context", "hello", "--json")
    assert found.code == 0
    assert "good" in found.json["text"]
    (left,) = next(part for part in found.json["parts"] if part["name"] == "recent")["left_out"]
    assert Path(bad["path"]).name in left["what"]
    assert palace("session", "show", bad["id"]).code == 1


def test_what_is_left_out_is_named_in_a_few_lines(palace: Run, tmp_path: Path) -> None:
    index = "".join(
        f"| 2026-01-01 | oven number {n} |  |  | [page](sessions/2026-01-01/0915-{n:07x}-x.md) |\n" for n in range(300)
    )
    (tmp_path / "home").mkdir()
    (tmp_path / "home/index.md").write_text(index, encoding="utf-8")
    done = palace("context", "the oven", "--shares", "15/25/1/40", "--tokens", "2000")
    assert done.code == 0
    assert len(done.err.splitlines()) == 12
    assert re.search(r"left out of references: 2\d\d more \([\d,]+ tokens; --json names them all\)", done.err)
