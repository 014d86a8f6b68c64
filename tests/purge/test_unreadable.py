"""A page that cannot be read stops no purge: all else is done, it is named, and a second purge is clean."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.settings import RedactionSettings
from palace_pipeline.store.files import not_writable
from palace_pipeline.store.home import Home
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.forgetting import forget_conversations, parts_of
from tests.rebuild.archives import home_at, take

_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
_RIGHTS = "-dac_override,-dac_read_search"
_WITHOUT_RIGHTS = ("setpriv", f"--bounding-set={_RIGHTS}", f"--inh-caps={_RIGHTS}") if _ROOT else ()

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or (_ROOT and shutil.which("setpriv") is None), reason="every file can be read here"
)

_PURGE = """
import json, sys
from pathlib import Path
from palace_pipeline.purge import find_conversation, find_value, finish, purge_conversation, purge_value
from tests.rebuild.archives import home_at, take
home, what, named = home_at(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
if what == "ingest":
    finish(home, "f")
    take(home, home.path / "sessions")
    print(json.dumps({}))
    raise SystemExit
with home.writing():
    if what == "value":
        done = purge_value(home, find_value(home, named), vault=True, batch="p")
    else:
        done = purge_conversation(home, find_conversation(home, named, vault=True).keys, vault=True, batch="p")
print(json.dumps(done.as_json()))
"""


def _as_another(home: Home, what: str, named: str = "") -> dict[str, Any]:
    """Do it as somebody for whom rights of files hold, in another process."""
    command = [*_WITHOUT_RIGHTS, sys.executable, "-c", _PURGE, str(home.path), what, named]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return home_at(tmp_path / "home")


@pytest.fixture
def live(home: Home) -> Workspace:
    workspace = Workspace(settings=home.settings)
    workspace._funnel = ((), Funnel(RedactionSettings(), b"k" * 32))
    return workspace


def test_a_value_goes_from_all_that_can_be_read(home: Home, live: Workspace) -> None:
    shown = live.new("shown", input="about the zebra")
    hidden = live.new("hidden", input="the zebra as well")
    fact = home.path / "memory/mine.md"
    fact.parent.mkdir(exist_ok=True)
    fact.write_text("# Mine\n\nthe zebra again\n")
    take(home, home.path / "sessions")
    for path in (hidden.path, fact):
        path.chmod(0)
    first = _as_another(home, "value", "zebra")
    inside = [path.relative_to(home.path).as_posix() for path in (fact, hidden.path)]
    assert not first["clean"]
    assert first["proof"]["found"] == []
    assert sorted(first["proof"]["unread"]) == [f"{name} (Permission denied)" for name in sorted(inside)]
    assert live.load(shown.id).session.sections["input"][0].text == "about the [REDACTED:purged]"
    errors = (home.path / "logs/errors.md").read_text()
    assert all(f"`{name}` · what must not be shown" in errors for name in inside)
    _as_another(home, "ingest")  # goes on
    for path in (hidden.path, fact):
        path.chmod(0o600)
    _as_another(home, "ingest")  # does what was put off
    assert "zebra" not in fact.read_text() + hidden.path.read_text()
    assert _as_another(home, "value", "zebra")["clean"]


def test_a_session_goes_though_another_page_cannot_be_read(home: Home, live: Workspace) -> None:
    gone = live.new("gone", input="about the zebra and its many stripes")
    hidden = live.new("hidden", input="apples")
    take(home, home.path / "sessions")
    hidden.path.chmod(0)
    first = _as_another(home, "session", f"session:{gone.id}")
    inside = hidden.path.relative_to(home.path).as_posix()
    assert (first["clean"], first["proof"]["found"]) == (False, [])
    assert first["proof"]["unread"] == [f"{inside} (Permission denied)"]
    assert not gone.path.exists()
    assert f"`{inside}` · a purge could not read or delete it" in (home.path / "logs/errors.md").read_text()
    hidden.path.chmod(0o600)
    assert _as_another(home, "session", f"session:{gone.id}")["clean"]
    assert live.load(hidden.id).session.title == "hidden"


def test_parts_of_many_sessions_are_found_in_one_pass(
    home: Home, live: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = [live.new(f"long {number}", input="zebras").id for number in range(2)]
    for root in roots:
        for number in range(40):
            live.append(root, "input", f"stripes and {number // 20} herds " * 60)
    other = live.new("other", input="apples", parent=roots[0]).id
    read = list[str]()
    whole = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (read.append(path.name), whole(path))[1])
    parts, left = parts_of(home.path, set(roots))
    pages = [path.name for path in live.sessions()]
    assert len(read) == len(set(read)) == len(pages) - 2
    assert other not in parts
    assert len(parts) == len(pages) - 3
    assert left == []
    monkeypatch.undo()
    assert forget_conversations(home.path, [("session", root) for root in roots]).pages == len(pages) - 1
    assert [live.load(other).path] == list(live.sessions())


def test_one_page_that_cannot_be_read_is_named_and_not_the_whole_archive(tmp_path: Path) -> None:
    def said(place: Path) -> str:
        return not_writable(PermissionError(13, "Permission denied", str(place)), tmp_path / "home") or ""

    page = tmp_path / "home/sessions/2026-11-30/1130-1a2b3c4-a.md"
    assert said(page).startswith(f"Permission denied: {page.with_name('1130-1a2b3c4…')}. ")
    assert "This one file has to be readable" in said(page)
    assert f": {tmp_path / 'home/lake'}. " in said(tmp_path / "home/lake/raw/x.parquet")
    assert "The archive has to be writable" in said(tmp_path / "home/lake/raw/x.parquet")
    assert f": a file in {tmp_path / 'cache'}. " in said(tmp_path / "cache/model")
    assert "archive" not in said(tmp_path / "cache/model")
