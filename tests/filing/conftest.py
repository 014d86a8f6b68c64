"""A small archive to file in, made once, and rooms to try on it."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palace_pipeline.embedding.model import EmbeddingModel
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from tests.cli.conftest import palace as palace
from tests.ingest.exports_for_tests import START, chat, export
from tests.stages.test_stages import DAY, take

ROOMS = """\
[[rooms]]
name = "kitchen"
description = "recipes, cooking, baking bread"
examples = ["> how long do I bake a sourdough bread\\nForty minutes in a hot oven with steam."]
words = { en = ["sourdough", "oven"] }

[[rooms]]
name = "养猫"
words = { zh = ["猫", "猫砂", "驱虫"] }

[[rooms]]
name = "astronomy"
description = "telescopes, planets, the night sky"
"""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filed")
    file = export(
        folder / "in/a.json",
        chat(
            "bread",
            "my sourdough bread stays flat, what can I do?",
            "Bake it in a hotter oven with steam, and let the dough rise longer in the fridge.",
        ),
        chat(
            "cat",
            "小猫多大可以驱虫？猫砂要多久换一次？",
            "两个月大就可以驱虫；猫砂每天铲，两周全换一次。",
            start=START + DAY,
        ),
        chat(
            "git",
            "how do I undo the last commit in git?",
            "`git reset --soft HEAD~1` keeps the changes in the index.",
            start=START + 40 * DAY,
        ),
        chat("undated", "which regex matches a date?", "`\\d{4}-\\d{2}-\\d{2}` does.", start=None),
    )
    take(Home(load_settings(folder / "home")), file)
    return folder / "home"


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Home:
    """A copy that may be changed."""
    shutil.copytree(made, tmp_path / "home")
    return Home(load_settings(tmp_path / "home"))


@pytest.fixture
def other_rooms(tmp_path: Path) -> Path:
    file = tmp_path / "rooms.toml"
    file.write_text(ROOMS, encoding="utf-8")
    return file


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the model is asked for."""
    asked: list[str] = []
    original = EmbeddingModel.embed_passages

    def embed(self: EmbeddingModel, texts: Sequence[str], *rest: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        asked.extend(texts)
        return original(self, texts, *rest)

    monkeypatch.setattr(EmbeddingModel, "embed_passages", embed)
    return asked
