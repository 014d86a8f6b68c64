"""Telling somebody that a run failed: by a command or a webhook of the user's. Never raises; a failure to tell is told back."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress

import orjson

from palace_pipeline.settings import AlertSettings

COMMAND_SECONDS = 30.0
WEBHOOK_SECONDS = 10.0


def send(alerts: AlertSettings, told: Mapping[str, object]) -> list[str]:
    """Hand `told` (JSON values, no chat text) to the command and the webhook that are set; returns what did not work."""
    data = orjson.dumps(dict(told))
    problems: list[str] = []
    if alerts.command and (problem := _run(alerts.command, data)) is not None:
        problems.append(f"the command of [alerts] {problem}")
    if alerts.webhook and (problem := _post(alerts.webhook, data)) is not None:
        problems.append(f"the webhook of [alerts] {problem}")
    return problems


def _run(command: tuple[str, ...], data: bytes) -> str | None:
    # No shell; what the command prints is its own affair and is not kept.
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                process.communicate(data, timeout=COMMAND_SECONDS)
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # what a script has started, too
                raise
    except subprocess.TimeoutExpired:
        return f"had not ended after {COMMAND_SECONDS:.0f} s and was stopped"
    except (OSError, ValueError) as error:
        return f"could not be started ({type(error).__name__})"
    return f"ended with {process.returncode}" if process.returncode else None


def _post(url: str, data: bytes) -> str | None:
    try:
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method="POST")
        with _OPENER.open(request, timeout=WEBHOOK_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        error.close()
        return f"answered {error.code}"
    except (
        OSError,
        ValueError,
        http.client.HTTPException,
    ) as error:  # only the type: the address may hold a token
        return f"could not be reached ({type(error).__name__})"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """What is told goes where the user said, and nowhere else."""

    def redirect_request(self, *_args: object, **_kwargs: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)
