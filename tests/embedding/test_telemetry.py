"""Nothing is reported: the libraries that would are told not to, before they are loaded."""

import os
import subprocess
import sys
from pathlib import Path

from palace_pipeline.embedding.convert import cache_folder

EMBED = """
from palace_pipeline.embedding.model import load_model
from palace_pipeline.settings import EmbeddingSettings
load_model(EmbeddingSettings()).embed_query("hello")
"""


def test_embedding_leaves_no_device_id_and_no_event_store(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {
        "HOME": str(tmp_path),
        "PALACE_CACHE": str(cache_folder()),
        "XDG_CACHE_HOME": str(tmp_path / ".cache"),
    }
    subprocess.run([sys.executable, "-c", EMBED], env=environment, check=True, capture_output=True)
    assert [path for path in tmp_path.rglob("*") if "onnxruntime" in path.name or path.name == "deviceid"] == []
