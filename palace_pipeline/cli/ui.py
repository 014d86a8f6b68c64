"""`palace ui`: Dagster's webserver and daemon on one home, as children that live as long as this process and no longer."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from palace_pipeline.cli import service
from palace_pipeline.cli.archive import open_home
from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, say
from palace_pipeline.settings import environment
from palace_pipeline.store.home import Home
from palace_pipeline.store.lock import HomeBusy

HOST = "127.0.0.1"
STOP_SECONDS = 20.0
"""A run that is stopped has so long to put its last files down; after that it is killed, which loses nothing either."""
READY_SECONDS = 120.0
LOOK_SECONDS = 0.5
SET_BACK_SECONDS = 20.0
"""A clock that was set back by more than this; the daemon would wait until it is as late again as it was before."""
SOCKET, LOCATION = "code", "palace_pipeline"


_RUNS = (sys.executable, "-m", "palace_pipeline.runs")


class Stopped(Exception):
    """Ctrl-C, SIGTERM or a closed terminal."""


def run_ui(port: int) -> int:
    """Serve until stopped. Exit code 0 after Ctrl-C or SIGTERM, 1 if a service ended by itself.

    Raises HomeBusy if a UI is running on this home, UsageError if the port is taken.
    """
    home = open_home()
    url = f"http://{HOST}:{port}"
    try:
        with stopping():
            prepare(home)
            with only_one(home, url) as lock, tempfile.TemporaryDirectory(prefix="palace-ui-") as folder:
                check_port(port)
                say(f"Starting Dagster on {url} for {home.path} …")
                variables = {**os.environ, **environment(home.settings)}
                subprocess.run([*_RUNS], env=variables, check=False)
                return serve(commands(Path(folder), port), home.dagster, variables, url, lock, Path(folder) / SOCKET)
    except Stopped:
        return 0


def prepare(home: Home) -> None:
    """Make the home if need be. Somebody else who is writing to it has done so already, and is not waited for."""
    try:
        with home.writing(wait_seconds=0):
            return
    except HomeBusy:
        if not (home.dagster / "workspace.yaml").exists():
            with home.writing():
                return


def commands(folder: Path, port: int) -> dict[str, list[str]]:
    """Service -> module and arguments. `folder`: a short path of our own (a socket's path may have some 100 bytes).

    One code server for both: left to themselves each would start its own, and the daemon a new one every minute, which
    costs more CPU than everything else that goes on while nothing happens.
    """
    socket_path, file = folder / SOCKET, folder / "workspace.yaml"
    where = {"host": "localhost", "socket": str(socket_path), "location_name": LOCATION}
    file.write_text(json.dumps({"load_from": [{"grpc_server": where}]}), encoding="utf-8")  # JSON is YAML
    workspace = ["-w", str(file)]
    return {
        "code server": [
            *("dagster", "api", "grpc", "--socket", str(socket_path), "-m", "palace_pipeline.definitions"),
            *("--location-name", LOCATION, "--use-python-environment-entry-point", "--log-level", "warning"),
        ],
        "webserver": [
            *("dagster_webserver", *workspace, "-h", HOST, "-p", str(port), "--dagster-log-level", "warning"),
            *("--uvicorn-log-level", "warning", "--code-server-log-level", "warning"),
        ],
        "daemon": [
            "dagster._daemon",
            "run",
            *workspace,
            "--log-level",
            "warning",
            "--code-server-log-level",
            "warning",
        ],
    }


def check_port(port: int) -> None:
    """Raises UsageError if another program listens on the port: the webserver would say so in forty lines."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            why = "is taken by another program" if error.errno == errno.EADDRINUSE else "is not allowed to you"
            raise UsageError(f"port {port} {why}; choose another one: palace ui --port {port % 65000 + 1}") from None


@contextmanager
def only_one(home: Home, url: str) -> Generator[int]:
    """Hold the home's UI lock, which also says where its UI is; the services hold it, too. Raises HomeBusy."""
    descriptor = os.open(home.dagster / ".ui.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            where = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip()
            raise HomeBusy(f"palace ui is already running on {home.path}: {where}") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, url.encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def stopping() -> Generator[None]:
    """Ctrl-C, SIGTERM and a closed terminal become one exception."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def serve(
    services: Mapping[str, list[str]], folder: Path, env: Mapping[str, str], url: str, lock: int, code: Path
) -> int:
    """Start the services and watch them; whatever happens, none of them is left when this returns.

    The first one serves the socket `code`; the others are started when it does, since they ask for it at once.
    """
    children: dict[str, subprocess.Popen[bytes]] = {}
    reading, writing = os.pipe()  # the writing end is ours alone: it closes when we end, and the services see it

    def start(name: str) -> None:
        children[name] = subprocess.Popen(
            [sys.executable, service.__file__, str(reading), *services[name]],
            cwd=folder,
            env=dict(env),
            pass_fds=(reading, lock),
            start_new_session=True,
        )

    def start_daemon_again() -> None:
        say("The clock was set back: the daemon is started again, it would wait until the old time has come.")
        if not stop_all([children["daemon"]]):
            raise Stopped
        subprocess.run([*_RUNS, "--clock"], env=dict(env), check=False)
        start("daemon")

    try:
        for name in services:
            start(name)
            if len(children) == 1 and not wait_for_socket(code, children[name]):
                break
        return watch(children, url, start_daemon_again)
    except Stopped:
        say("Stopping …")
        return 0
    finally:
        stop_all(children.values())
        os.close(reading)
        os.close(writing)


def wait_for_socket(path: Path, child: subprocess.Popen[bytes]) -> bool:
    """Until somebody listens there (or it takes too long); False if the process has ended, which `watch` says then."""
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        if child.poll() is not None:
            return False
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
            try:
                probe.connect(str(path))
            except OSError:
                time.sleep(LOOK_SECONDS / 5)
            else:
                break
    return True


def watch(
    children: Mapping[str, subprocess.Popen[bytes]],
    url: str,
    clock_was_set_back: Callable[[], None],
    clock: Callable[[], float] = time.time,
) -> int:
    """Wait until a service ends by itself, which is an error; says when the UI can be opened."""
    started, ready = time.monotonic(), False
    ahead = clock() - started
    while True:
        ahead, before = clock() - time.monotonic(), ahead
        if ahead < before - SET_BACK_SECONDS:
            clock_was_set_back()
        for name, child in children.items():
            if (code := child.poll()) is not None:
                say(f"palace ui: the {name} has ended by itself (code {code}); everything is stopped. Start it again.")
                return NOT_TAKEN
        if not ready and (answers(url) or time.monotonic() - started > READY_SECONDS):
            ready = True
            say(f"Ready: {url}  (watching the export folders; stop with Ctrl-C)")
        time.sleep(LOOK_SECONDS)


def answers(url: str) -> bool:
    """True when the webserver serves pages."""
    try:
        with urllib.request.urlopen(f"{url}/server_info", timeout=2) as response:
            return response.status == 200
    except OSError:
        return False


def stop_all(children: Collection[subprocess.Popen[bytes]]) -> bool:
    """End the process groups of the services: politely, and after a while (or a second Ctrl-C: False) for good."""
    until = time.monotonic() + STOP_SECONDS
    try:
        for child in children:
            send(child, signal.SIGTERM)
        while any(send(child, 0) for child in children) and time.monotonic() < until:
            time.sleep(0.1)
    except Stopped:
        say("Stopping at once.")
        return False
    finally:
        for child in children:
            send(child, signal.SIGKILL)
            child.wait()
    return True


def send(child: subprocess.Popen[bytes], number: int) -> bool:
    """Send a signal to a service's process group (0: none); whether somebody of it is still there."""
    child.poll()  # takes the leader out of the process table when it has ended
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group that has only just ended
        return False
    return True
