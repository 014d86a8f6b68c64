"""Tokens for tests, drawn when the tests run: none stands in the source."""

from __future__ import annotations

import base64
import random

from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.redaction.shapes import draw
from palace_pipeline.settings import RedactionSettings

GITHUB = "ghp_[A-Za-z0-9]{36}"
STRIPE = "sk_live_51[A-Za-z0-9]{97}"
PASSWORD = "[A-Z][a-z]{4}[!@#%][0-9]{4}[a-z]{4}"
OPAQUE = "[A-Za-z0-9]{40}"
BASE62 = "[A-Za-z0-9]{32}"


def token(shape: str, seed: object = 1) -> str:
    return draw(shape, random.Random(f"{shape}/{seed}"))


def funnel(**settings: object) -> Funnel:
    return Funnel(RedactionSettings.model_validate(settings), b"key of a test")


def marker(word: str, label: str = "PRIVATE KEY") -> str:
    return "-" * 5 + f"{word} {label}" + "-" * 5


def key_block(label: str = "PRIVATE KEY", lines: int = 8, seed: object = 1) -> str:
    body = [token("[A-Za-z0-9+/]{64}", f"{seed}/{i}") for i in range(lines)]
    return "\n".join([marker("BEGIN", label), *body, token("[A-Za-z0-9+/]{30}", seed) + "==", marker("END", label)])


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
