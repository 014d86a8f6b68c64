"""Palace: AI-chat exports in, an archive of your own out."""

import os

__version__ = "0.1.0"

# onnxruntime makes a device id and reports its use over the network unless this is set before it is first imported,
# by us or by chromadb: so it stands where nothing of ours can be imported without it.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
