"""The lines of docs/workspace.md that find things with ripgrep, grep and awk, run as they stand."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.settings import Settings
from palace_pipeline.store.pages import write_page
from palace_pipeline.transcripts.page import PageHead
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.logs import append_error
from tests.publish.conftest import talk

DOCS = Path(__file__).parents[2] / "docs/workspace.md"
SECTION = re.compile(r"^## Finding things with ripgrep$(.*?)^## ", re.MULTILINE | re.DOTALL)
LINES = [
    line.split("   #")[0].strip()
    for block in re.findall(r"^```sh\n(.*?)^```", SECTION.findall(DOCS.read_text("utf-8"))[0], re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, funnel: Funnel) -> Path:
    """Two sessions of one week, one of the week before, a conversation."""
    path = tmp_path_factory.mktemp("rg") / "home"
    monday = datetime.fromisoformat("2026-11-23T09:00:00+08:00")
    for language, day, name in (("zh", 0, "oven"), ("en", 6, "lamp"), ("en", -1, "past")):
        live = Workspace(settings=Settings.model_validate({"home": path, "workspace": {"language": language}}))
        live._funnel = ((), funnel)
        begin = monday + timedelta(days=day)
        page = live.new(f"Fix the {name}", tags=["repair", "烤箱"] if name != "past" else ["other"], ts=begin)
        live.append(page.id, "judgement", f"The thermostat of the {name} is broken.", at=begin)
        live.append(page.id, "todo", f"- [ ] buy a {name}\n- [x] call about the {name}", at=begin)
        if name != "lamp":
            live.append(page.id, "conclusion", f"The {name} is mended.", at=begin)
            live.close(page.id)
    chat = talk("My question", "An answer", title="Talk")
    day = chat.messages[0].created_at
    assert day is not None
    written = write_page(path, chat, PageHead(day.date(), wing="chatgpt", rooms=("planning", "general")))
    append_error(path, "conflict", written.path, "somebody has to look")
    target = next(path.glob("sessions/*/*past*.md"))
    target.write_text(target.read_text("utf-8").replace("status: closed", "status: conflict"), encoding="utf-8")
    return path


def run(line: str, home: Path) -> str:
    if (tool := line.split()[0]) and shutil.which(tool) is None:
        pytest.skip(f"no {tool} on this system")
    done = subprocess.run(
        ["bash", "-c", line], cwd=home, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def test_there_are_lines_to_try() -> None:
    assert sum(line.startswith("rg ") for line in LINES) >= 10
    assert {line.split()[0] for line in LINES} == {"rg", "grep", "awk"}


@pytest.mark.parametrize("line", LINES)
def test_each_line_finds_something(line: str, home: Path) -> None:
    assert run(line, home).strip()


def found(start: str, home: Path) -> set[str]:
    """Which of the things are named in what a line finds."""
    out = run(next(line for line in LINES if line.startswith(start)), home)
    return {name for name in ("oven", "lamp", "past", "talk") if name in out.lower()}


@pytest.mark.parametrize(
    ("start", "names"),
    [
        ("rg -Ul '^tags:", {"oven", "lamp"}),
        ("rg -l '^status: open", {"lamp"}),
        ("rg -l '^status: conflict", {"past"}),
        ("rg -A3 '^## (结论", {"oven", "lamp", "past"}),
        ("rg -Ul '^## (我的判断", {"oven", "lamp", "past"}),
        ("rg -n '^ *[-*] \\[ \\]", {"oven", "lamp"}),
        ("rg -n '^ *[-*] \\[[xX]\\]", {"oven", "lamp"}),
        ("rg 'repair' index.md", {"oven", "lamp"}),
        ("rg -l '^wing:", {"talk"}),
        ("rg -Ul '^rooms:", {"talk"}),
        ("rg -c '^### .* · You", {"talk"}),
        ("rg -n 'conflict' logs", {"talk"}),
        ("grep -rlE '^status: open", {"lamp"}),
        ("grep -rnE '^ *[-*]", {"oven", "lamp"}),
        ("grep -rlE '^  - ", {"oven", "lamp"}),
        ("awk ", {"oven", "lamp", "past"}),
    ],
)
def test_each_line_finds_what_it_says(start: str, names: set[str], home: Path) -> None:
    assert found(start, home) == names


def test_the_lines_of_a_section_are_those_of_that_section(home: Path) -> None:
    line = next(line for line in LINES if line.startswith("rg -Ul '^## (我的判断"))
    assert run(line, home)
    if shutil.which("rg"):
        other = line.replace("thermostat", "call about")  # stands in another section
        assert subprocess.run(["bash", "-c", other], cwd=home, capture_output=True, check=False).stdout == b""
