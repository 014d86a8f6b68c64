"""A browser of the system without a window, which prints HTML files as PDF: one process for all files of an export.

Chromium and its relatives are asked over a pipe (the DevTools protocol), so no port is opened. Scripts are switched off and no
name is resolved, whatever a page says. https://chromedevtools.github.io/devtools-protocol/ (seen 2026-11-30).
"""

from __future__ import annotations

import base64
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from palace_pipeline.store.files import Told

_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "brave-browser",
)
_ON_MACS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
_OPTIONS = (
    *("--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--no-default-browser-check"),
    *("--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND", "--no-pings", "--use-mock-keychain"),
    *("--password-store=basic", "--blink-settings=scriptEnabled=false", "--export-tagged-pdf"),
)
# The protocol's pipe is on the descriptors 3 and 4, which Popen cannot give away by number.
_LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
_SECONDS = 60.0
_SECONDS_PER_BYTE = 30 / 1_000_000
_FOOTER = (
    '<div style="font-size:8px;color:#666;width:100%;text-align:center">'
    '<span class="pageNumber"></span> / <span class="totalPages"></span></div>'
)


class NoBrowser(Told):
    """There is no browser that could print."""


class BrowserFailed(Told):
    """The browser does not answer, or not as it should."""


def find_browser() -> str:
    """The browser to use: that of PALACE_BROWSER, else one that is installed. Raises NoBrowser."""
    chosen = os.environ.get("PALACE_BROWSER")
    if chosen:
        found = shutil.which(Path(chosen).expanduser())
        if found is None:
            raise NoBrowser(f"PALACE_BROWSER names {chosen}, which is no program that could be started")
        return found
    for name in (*_NAMES, *_ON_MACS):
        if found := shutil.which(name):
            return found
    raise NoBrowser(
        "PDF files are printed by Chromium, Chrome or Edge, and none is installed (Debian: apt install chromium; "
        "another place: set PALACE_BROWSER). --to html needs none, and any browser prints those pages"
    )


class Browser:
    """A running browser; made by `browser`."""

    def __init__(self, process: subprocess.Popen[bytes], commands: int, answers: int) -> None:
        self._process, self._commands, self._answers = process, commands, answers
        self._number = 0
        self._buffer = bytearray()
        self._waiting: list[dict[str, Any]] = []
        self._session: str | None = None

    def print_pdf(self, page: Path) -> Iterator[bytes]:
        """The PDF of an HTML file, in pieces. Raises BrowserFailed."""
        seconds = _SECONDS + page.stat().st_size * _SECONDS_PER_BYTE
        if self._session is None:
            target = self._ask("Target.createTarget", {"url": "about:blank"})["targetId"]
            self._session = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
            self._ask("Page.enable")
            self._ask("Emulation.setScriptExecutionDisabled", {"value": True})
        self._waiting.clear()
        if error := self._ask("Page.navigate", {"url": page.resolve().as_uri()}, seconds).get("errorText"):
            raise BrowserFailed(f"the browser cannot open what it is to print ({error})")
        self._until_loaded(seconds)
        options = {
            "printBackground": True,
            "preferCSSPageSize": True,
            "displayHeaderFooter": True,
            "headerTemplate": "<span></span>",
            "footerTemplate": _FOOTER,
            "generateTaggedPDF": True,
            "generateDocumentOutline": True,
            "transferMode": "ReturnAsStream",
        }
        stream = self._ask("Page.printToPDF", options, seconds)["stream"]
        while True:
            part = self._ask("IO.read", {"handle": stream, "size": 1 << 20})
            data = part["data"]
            yield base64.b64decode(data) if part.get("base64Encoded") else data.encode()
            if part["eof"]:
                break
        self._ask("IO.close", {"handle": stream})

    def _until_loaded(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not any(event.get("method") == "Page.loadEventFired" for event in self._waiting):
            self._waiting.append(self._next(end))
        self._waiting.clear()

    def _ask(self, method: str, parameters: dict[str, Any] | None = None, seconds: float = _SECONDS) -> dict[str, Any]:
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters or {}}
        if self._session is not None:
            command["sessionId"] = self._session
        try:
            os.write(self._commands, orjson.dumps(command) + b"\0")
        except OSError:
            raise BrowserFailed(_GONE) from None
        end = time.monotonic() + seconds
        while True:
            answer = self._next(end)
            if answer.get("id") != self._number:
                self._waiting.append(answer)
            elif "error" in answer:
                raise BrowserFailed(
                    f"the browser refuses {method} ({answer['error'].get('message', 'no reason given')})"
                )
            else:
                return answer["result"]

    def _next(self, end: float) -> dict[str, Any]:
        while (at := self._buffer.find(0)) < 0:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise BrowserFailed("the browser does not answer in time")
            data = os.read(self._answers, 1 << 20)
            if not data:
                raise BrowserFailed(_GONE)
            self._buffer += data
        message = bytes(self._buffer[:at])
        del self._buffer[: at + 1]
        return orjson.loads(message)


_GONE = (
    "the browser ended before it was done (look whether it can be started: chromium --headless --dump-dom about:blank)"
)


@contextmanager
def browser(folder: Path) -> Generator[Browser]:
    """Start a browser whose profile lies in `folder` and goes away with it. Raises NoBrowser, BrowserFailed."""
    program = find_browser()
    with TemporaryDirectory(prefix=".tmp-browser-", dir=folder, ignore_cleanup_errors=True) as profile:
        to_browser, from_browser = os.pipe(), os.pipe()
        options = [*_OPTIONS, f"--user-data-dir={profile}"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # as root Chromium does not start otherwise
        given = (_high(to_browser[0]), _high(from_browser[1]))
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", _LAUNCH, str(given[0]), str(given[1]), program, *options, "about:blank"],
                pass_fds=given,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "HOME": profile},
            )
        finally:
            for descriptor in (*given, to_browser[0], from_browser[1]):
                os.close(descriptor)
        try:
            yield Browser(process, to_browser[1], from_browser[0])
        finally:
            for descriptor in (to_browser[1], from_browser[0]):
                os.close(descriptor)
            _end(process)


def _high(descriptor: int) -> int:
    """A copy of a descriptor that is neither 3 nor 4."""
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The browser ends when its pipe is closed; what does not is killed, with its children."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
