"""The documentation is true: every `palace` command in it runs, every setting in it is accepted, every link leads somewhere."""

import configparser
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from palace_pipeline.backup import make_backup
from palace_pipeline.cli import main
from palace_pipeline.settings import Settings, load_settings
from palace_pipeline.store.home import Home
from tests.ingest.exports_for_tests import chat, export

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (page.name, body) for page in PAGES for name, body in FENCE.findall(page.read_text("utf-8")) if name == language
    ]


def commands() -> list[str]:
    """The `palace` commands of all shell blocks, comments cut off."""
    lines = [line.split("  #")[0].strip() for _, body in blocks("sh") for line in body.splitlines()]
    # What timers and services start, without the time and the place of the program.
    lines += [_REST.split(line[line.index("palace ", line.index("bin/")) :])[0] for line in started_by_others()]
    return sorted({line for line in lines if line.startswith("palace ") and not line.startswith("palace ui")})


_REST = re.compile(r"\s*(?:2?>|\)|\||;|&&)")
"""Where a command ends that a shell started."""


def programs() -> list[str]:
    """The Python blocks."""
    return [body for _, body in blocks("python")]


def started_by_others() -> list[str]:
    """Lines of crontabs and of systemd units that start Palace."""
    lines = [line for name in ("cron", "ini") for _, body in blocks(name) for line in body.splitlines()]
    return [line for line in lines if "bin/palace " in line]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive that the documented commands can be tried on; exports in it stand for the reader's own."""
    folder = tmp_path_factory.mktemp("docs")
    export(
        folder / "home/inbox/a.json",
        chat("a", "why did the deployment break?", "the disk was full"),
        chat("b", "数据库怎么选", "看读写比例"),
    )
    with pytest.raises(SystemExit) as ended:
        main(["--home", str(folder / "home"), "ingest"])
    assert ended.value.code in (0, None)
    return folder


@pytest.mark.parametrize("body", programs())
def test_documented_python_runs(body: str, archive: Path, tmp_path: Path) -> None:
    for module in ("langchain_chroma", "llama_index.vector_stores.chroma"):
        if module in body:
            pytest.importorskip(module)
    home = archive / "home"
    if "Workspace(" in body:  # what it writes would be a gap for the others
        home = tmp_path
    environment = {**os.environ, "PALACE_HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", body], cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_there_are_commands_to_try() -> None:
    assert len(commands()) >= 8


@pytest.mark.parametrize("command", commands())
def test_a_documented_command_runs(
    command: str, archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = shlex.split(command)[1:]
    elsewhere = given[0] == "--home"
    if elsewhere:
        given = given[2:]
    if given[0] in ("backup", "restore"):
        backups = tmp_path / "backups"
        backups.mkdir()
        given = [str(backups) if word.startswith("~") else word for word in given]
        if given[0] == "restore":
            make_backup(Home(load_settings(archive / "home")), backups)
        archive = tmp_path if elsewhere else archive
    if given[0] == "export":
        if "pdf" in given and shutil.which("chromium") is None:
            pytest.skip("no browser that prints")
        words = {"~": str(tmp_path / "out"), "chatgpt:": "chatgpt:b"}
        given = [next((new for start, new in words.items() if word.startswith(start)), word) for word in given]
    own = [str(archive / "home/inbox/a.json") if word.startswith("~") else word for word in given]
    if given[0] == "discover":
        monkeypatch.setenv("HOME", str(archive))  # what lies about on this machine is none of the test's business
    said = b""
    if given[0] in ("session", "memory", "context"):
        archive = tmp_path  # what they write would be a gap for the others
    if given[0] == "purge":  # what it forgets is missing for nobody else
        archive = Path(shutil.copytree(archive, tmp_path / "copy"))
        own = [word if word.startswith("-") or word == "purge" else "chatgpt:b" for word in given] + ["--yes"]
        said = b"a value of nobody"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(said), "utf-8"))
    with pytest.raises(SystemExit) as ended:
        main(["--home", str(archive / "home"), *own])
    sys.stdout.flush()
    assert ended.value.code in (0, None)


@pytest.mark.parametrize("body", [body for _, body in blocks("ini")])
def test_a_documented_unit_can_be_read(body: str, tmp_path: Path) -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read_string(body)
    kind = "timer" if "Timer" in unit else "service"
    assert unit["Unit"]["Description"].startswith("Palace")
    if kind == "service":
        assert unit["Service"]["ExecStart"].split()[0].endswith("bin/palace")
    checker = shutil.which("systemd-analyze")
    if checker is not None:
        (tmp_path / f"palace-x.{kind}").write_text(body.replace("/opt/palace/.venv/bin/palace", sys.executable))
        (tmp_path / "palace-x.service").touch()
        said = subprocess.run(
            [checker, "verify", "--man=no", tmp_path / f"palace-x.{kind}"], capture_output=True, text=True
        )
        assert "Unknown" not in said.stderr, said.stderr


def test_what_timers_and_services_start_is_a_command() -> None:
    started = started_by_others()
    assert len(started) >= 5
    for line in started:
        words = shlex.split(line[line.index("bin/palace ") + 4 :])
        with pytest.raises(SystemExit) as ended:
            main([words[1], "--help"])
        assert ended.value.code in (0, None)
        times = line.split()[:5]
        assert line.startswith("ExecStart=") or (len(times) == 5 and all(re.fullmatch(r"[0-9*,/-]+", t) for t in times))


@pytest.mark.parametrize(("page", "body"), blocks("toml"))
def test_a_documented_setting_is_accepted(page: str, body: str, tmp_path: Path) -> None:
    assert Settings(home=tmp_path, **tomllib.loads(body))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target
