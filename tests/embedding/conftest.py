"""One conversion of the real model for all tests here, in a cache of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from palace_pipeline.embedding.convert import ensure_converted
from palace_pipeline.embedding.model import EmbeddingModel


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The converted default model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PALACE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield ensure_converted()


@pytest.fixture(scope="session")
def model(model_folder: Path) -> EmbeddingModel:
    """The default model with two threads."""
    return EmbeddingModel(model_folder, threads=2)
