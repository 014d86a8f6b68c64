"""The version of everything that decides what is masked, without building the engine."""

from __future__ import annotations

import hashlib
import hmac
import json

from palace_pipeline.redaction import engine, funnel
from palace_pipeline.settings import RedactionSettings

ENGINE_RECIPE = f"{funnel.RECIPE}.{engine.RECIPE}.{hashlib.sha256(engine.rules_text().encode()).hexdigest()[:8]}"
"""Code and rules; the user's own settings come on top (`redaction_recipe`)."""


def redaction_recipe(settings: RedactionSettings, key: bytes) -> str:
    """Recipe of the stage; a hash under the home's key stands for the user's patterns and values.

    Raises ValueError when a file of known values cannot be read.
    """
    known = [*settings.known_values, *(value for path in settings.env_files for value in funnel.env_values(path))]
    said = json.dumps([sorted(settings.private_patterns), sorted(known), sorted(settings.allow), settings.correlate])
    return f"{ENGINE_RECIPE}.{hmac.new(key, said.encode(), hashlib.sha256).hexdigest()[:12]}"
