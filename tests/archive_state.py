"""Everything an archive holds, store by store, in a form that two archives can be compared in."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import chromadb
import duckdb
from chromadb.config import Settings as ChromaSettings

from palace_pipeline.model import LAKE
from palace_pipeline.settings import load_settings
from palace_pipeline.store.home import Home
from palace_pipeline.store.lexical import open_reader

TIMES_OF_THE_RUN = {"first_seen_at", "published_at", "home"}
"""Columns that say when the work was done or where the home lies."""


def state(path: Path, *, leave: Collection[str] = ()) -> dict[str, Any]:
    """Store -> content. Equal for two archives that hold the same, whatever happened while they were made.

    `leave`: columns of the lake and the tables, and lines of the pages' front matter, that are not looked at.
    """
    home = Home(load_settings(path))
    return {
        "pages": {
            p.relative_to(path).as_posix(): _without(p.read_text("utf-8"), leave)
            for p in sorted((path / "conversations").rglob("*.md"))
        },
        **{f"lake {table}": _lake(home, table, leave) for table in LAKE},
        "ledger": _ledger(home),
        "vault": _vault(home),
        "chroma": _chroma(path / "chroma"),
        "lexical": _lexical(path / "lexical"),
        "tables": _tables(path / "palace.duckdb", {*leave, *TIMES_OF_THE_RUN}),
    }


def _without(page: str, leave: Collection[str]) -> str:
    """A page without some entries of its front matter, the lines of a list included."""
    out: list[str] = []
    left = False
    for line in page.splitlines(keepends=True):
        left = line.partition(":")[0] in leave or (left and line.startswith(" "))
        if not left:
            out.append(line)
    return "".join(out)


def _lake(home: Home, table: str, leave: Collection[str]) -> list[str]:
    return sorted(map(repr, home.lake.read(table, home.lake.months(table)).drop(*leave, strict=False).rows()))


def _ledger(home: Home) -> list[tuple[Any, ...]]:
    with home.ledger() as ledger:
        rows = ledger.rows(
            "SELECT provider, conversation_id, day, dated, messages, superseded_by, status, page, normalized_out, "
            "redacted_out, chunks_out, drawers_out FROM conversations ORDER BY 1, 2"
        )
        files = ledger.rows("SELECT path, sha256, status, conversations, messages, skipped FROM files ORDER BY path")
        published = ledger.rows("SELECT * FROM published ORDER BY 1, 2, 3")
        live = ledger.rows(
            "SELECT provider, conversation_id, record FROM sightings WHERE superseded = 0 ORDER BY 1, 2, 3"
        )
    return [tuple(row) for part in (rows, files, published, live) for row in part]


def _vault(home: Home) -> list[str]:
    with home.vault() as vault:
        return [row[0] for row in vault._db.execute("SELECT hash FROM pieces ORDER BY hash")]


def _chroma(path: Path) -> dict[str, tuple[Any, Any, list[float]]]:
    client = chromadb.PersistentClient(str(path), settings=ChromaSettings(anonymized_telemetry=False))
    got = client.get_collection("palace_drawers", embedding_function=None).get(
        include=["documents", "metadatas", "embeddings"]
    )
    client.close()
    vectors = got["embeddings"]
    assert vectors is not None
    return {
        name: (document, metadata, [round(float(x), 5) for x in vector])
        for name, document, metadata, vector in zip(
            got["ids"], got["documents"] or [], got["metadatas"] or [], vectors, strict=True
        )
    }


def _lexical(path: Path) -> list[str]:
    reader = open_reader(path)
    return sorted(reader.ids()) if reader else []


def _tables(path: Path, leave: Collection[str]) -> dict[str, list[tuple[Any, ...]]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        names = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND table_name != 'meta' ORDER BY 1"
        ).fetchall()
        out: dict[str, list[tuple[Any, ...]]] = {}
        for (name,) in names:
            columns = [c[0] for c in connection.execute(f"DESCRIBE {name}").fetchall() if c[0] not in leave]
            rows = connection.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall()
            out[name] = sorted(rows, key=repr)
        return out
