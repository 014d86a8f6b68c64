"""`raw_exports`: files of the export folders -> vault (bytes, records) and ledger (what was seen, on which day)."""

from palace_pipeline.ingest.recipes import needs_reading
from palace_pipeline.ingest.run import Ingested, ingest

__all__ = ["Ingested", "ingest", "needs_reading"]
