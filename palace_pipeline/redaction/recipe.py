"""The version of everything that decides what is masked, without building the engine."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from importlib.resources import files

from palace_pipeline.redaction.forgotten import Forgotten
from palace_pipeline.redaction.known import known_values
from palace_pipeline.settings import RedactionSettings

CODE = 7
"""Raise it when the code finds other places or writes other masks than before."""


def data_text(name: str) -> str:
    """The text of a data file of this package (`rules.toml`, `words.toml`)."""
    return (files("palace_pipeline.redaction") / name).read_text(encoding="utf-8")


def _digest() -> str:
    data = data_text("rules.toml") + data_text("words.toml")
    return hashlib.sha256(data.encode()).hexdigest()[:8]


ENGINE_RECIPE = f"{CODE}.{_digest()}"
"""Code, rules and word lists; the user's own settings come on top (`redaction_recipe`)."""


def redaction_recipe(settings: RedactionSettings, key: bytes, forgotten: Iterable[Forgotten] = ()) -> str:
    """Recipe of the stage; a hash under the home's key stands for the user's patterns and values, and what was purged.

    Raises ValueError when a file of known values cannot be read.
    """
    said = json.dumps(
        [
            sorted(settings.private_patterns),
            sorted(known_values(settings)),
            sorted(settings.allow),
            settings.correlate,
            settings.people,
            settings.projects,
            settings.pseudonyms,
            sorted(settings.allow_rules),
            settings.remember,
            settings.kingfisher,
        ]
    )
    said += "".join(sorted(value.proof.hex() for value in forgotten))
    return f"{ENGINE_RECIPE}.{hmac.new(key, said.encode(), hashlib.sha256).hexdigest()[:12]}"
