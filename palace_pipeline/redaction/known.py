"""The user's own values: what must never appear, from the settings and from env files."""

from __future__ import annotations

import re
from pathlib import Path

from palace_pipeline.redaction.verdicts import is_placeholder, looks_random
from palace_pipeline.settings import RedactionSettings

_ENV_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s#]*))")


def known_values(settings: RedactionSettings) -> list[str]:
    """All known values. Raises ValueError when an env file cannot be read: going on would let its values through."""
    return [*settings.known_values, *(value for path in settings.env_files for value in env_values(path))]


def env_values(path: Path) -> list[str]:
    """The values of an env file that could be secret: six characters with a digit, or random; never a placeholder."""
    try:
        lines = path.expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the env file {path} cannot be read ({type(error).__name__})") from error
    found: list[str] = []
    for line in lines:
        match = _ENV_LINE.match(line)
        if match is None:
            continue
        value = next((v for v in match.groups()[1:] if v), "")
        odd = any(c.isdigit() for c in value) and any(not c.isdigit() for c in value)
        if len(value) >= 6 and not is_placeholder(value) and not value.isdigit() and (odd or looks_random(value, 8)):
            found.append(value)
    return found
