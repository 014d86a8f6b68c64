"""`palace backup` and `palace restore`: an archive as one file, and back.

A backup is a ZIP, so that in twenty years, and without Palace, its owner can open it with whatever the system has, take
one page out of it, and see where it is cut: every member has its own checksum, and what belongs in it is listed in
`manifest.json`. What is compressed already (vault, Parquet) is stored as it is. It holds what cannot be made again
(vault, ledger, key, settings, pages) and what would take long (lake); indexes and tables are made from the lake.
"""

from __future__ import annotations

from palace_pipeline.backup.format import Backup, BackupError, verify
from palace_pipeline.backup.make import make_backup
from palace_pipeline.backup.restore import restore

__all__ = ["Backup", "BackupError", "make_backup", "restore", "verify"]
