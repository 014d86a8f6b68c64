"""The Chroma collection `palace_drawers`: every drawer with its text, vector and metadata, for any Chroma client.

Chroma is derived from the lake and disposable; the vectors themselves are kept in `lake/clean/vectors`. Two processes
that write one Chroma directory lose vectors without an error, so every writer holds the home's lock before it opens a
store here. Search does not use Chroma at all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from palace_pipeline.store.files import make_folder, put_back_folder, replacing_folder, restrict

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection
    from chromadb.base_types import Where

COLLECTION = "palace_drawers"
SCHEMA_VERSION = 1
WRITE_BATCH = 5_000
"""Chroma refuses more than 5,461 rows at once."""
READ_PAGE = 500
_NAMED_DAYS = 200
_NO_TEXT = frozenset({"conversation_id", "document_id", "doc_id", "page", "filed_at"})
"""Metadata made of ids and times; the words in the name of a page are those of the title."""

_HEADER = struct.Struct("<i4Q")
"""Of hnswlib as Chroma persists it: version, offset, places, places in use, bytes of a place (unaligned)."""

Scalar = str | int
T = TypeVar("T")


class OtherModelError(RuntimeError):
    """The collection holds vectors of another model or layout; vectors of two models must not be mixed."""

    def __init__(self, stored: str, wanted: str) -> None:
        super().__init__(
            f"the Chroma collection was made with {stored}, but the settings ask for {wanted}; it has to be rebuilt"
        )


@dataclass(slots=True, frozen=True)
class ModelIdentity:
    """What made the vectors of a collection."""

    name: str
    sha256: str
    dimension: int

    @property
    def label(self) -> str:
        return f"{self.name} ({self.sha256[:12]}, {self.dimension} dimensions)"


@dataclass(slots=True, frozen=True, eq=False)
class StoredDrawer:
    """One row of the collection. `day` is yyyymmdd; `filed_at` ISO text, see `filed_at`; unknown text is ''."""

    drawer_id: str
    document: str
    vector: NDArray[np.float32]
    provider: str
    conversation_id: str
    wing: str
    hall: str
    room: str
    day: int
    chunk_index: int
    title: str = ""
    page: str = ""
    source_file: str = ""
    filed_at: str = ""

    def metadata(self) -> dict[str, Scalar]:
        """The metadata of the contract; `document_id` and `doc_id` are what LlamaIndex deletes by."""
        return {
            "provider": self.provider,
            "conversation_id": self.conversation_id,
            "document_id": self.conversation_id,
            "doc_id": self.conversation_id,
            "wing": self.wing,
            "hall": self.hall,
            "room": self.room,
            "day": self.day,
            "chunk_index": self.chunk_index,
            "title": self.title,
            "page": self.page,
            "source_file": self.source_file,
            "filed_at": self.filed_at,
        }


def filed_at(times: Iterable[datetime | None], day: date) -> str:
    """When a drawer's content came to be: its latest message time in UTC, else its day. Never the time of the run.

    The same rows give the same text, so that a second run finds nothing to write.
    """
    known = [time for time in times if time is not None]
    return max(known).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if known else day.isoformat()


class VectorStore:
    """The collection of one directory, opened for writing. Use as a context manager; the caller holds the home's lock.

    Raises OtherModelError on entry if the directory holds vectors of another model (`rebuild` then makes it anew).
    """

    def __init__(self, path: Path, model: ModelIdentity) -> None:
        self._path = path.absolute()
        self._model = model
        self._client: Client | None = None
        self._opened: Collection | None = None

    def __enter__(self) -> Self:
        put_back_folder(self._path)
        make_folder(self._path)
        self._client = _connect(self._path)
        try:
            self._opened = _collection(self._client, self._model)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the directory. Chroma shares one system per path and process: the last one closed frees it."""
        if self._client is not None:
            if _held.get(str(self._path), self._client) is None:
                _held[str(self._path)] = self._client
            else:
                self._client.close()
            self._client = None
            self._opened = None
            clear_slack(self._path)
            restrict(self._path)

    @property
    def _collection(self) -> Collection:
        if self._opened is None:
            raise ValueError("the vector store is not open")
        return self._opened

    def is_empty(self) -> bool:
        """True if it holds no drawer. Counting them takes the longer the more there are."""
        return not self._collection.get(limit=1, include=[])["ids"]

    def count(self) -> int:
        """How many drawers the collection holds."""
        return self._collection.count()

    def ids(self, first_day: int | None = None, last_day: int | None = None) -> Generator[list[str]]:
        """The drawer ids, in pages: all, or those of the days from `first_day` to `last_day` (yyyymmdd, inclusive)."""
        bounds = [
            {"day": {operator: day}} for operator, day in (("$gte", first_day), ("$lte", last_day)) if day is not None
        ]
        where = cast("Where | None", {"$and": bounds} if len(bounds) > 1 else next(iter(bounds), None))
        offset = 0
        while page := self._collection.get(where=where, include=[], limit=READ_PAGE, offset=offset)["ids"]:
            yield page
            offset += len(page)

    def upsert(self, rows: Iterable[StoredDrawer]) -> int:
        """Write the rows that are new or differ from what is stored; returns how many those are.

        The comparison pays: replacing a row costs Chroma some four times what adding one does.
        """
        written = 0
        for batch in _batches(rows, WRITE_BATCH):
            stored: set[str] = set()
            same: set[str] = set()
            for page in _batches(batch, READ_PAGE):
                found, equal = self._compare(page)
                stored |= found
                same |= equal
            new = [row for row in batch if row.drawer_id not in stored]
            changed = [row for row in batch if row.drawer_id in stored - same]
            if new:
                _write(self._collection.add, new)
            if changed:
                _write(self._collection.upsert, changed)
            written += len(new) + len(changed)
        return written

    def delete(self, ids: Iterable[str]) -> None:
        """Remove drawers; ids that are not there are ignored."""
        for batch in _batches(ids, WRITE_BATCH):
            self._collection.delete(ids=batch)

    def sample_check(self, ids: Sequence[str]) -> list[str]:
        """Those of `ids` that are missing or have no usable vector Chroma can lose vectors and still count right."""
        missing: list[str] = []
        for page in _batches(ids, READ_PAGE):
            got = self._collection.get(ids=page, include=["embeddings"])
            vectors = got["embeddings"]
            good = {
                drawer_id
                for drawer_id, vector in zip(got["ids"], vectors if vectors is not None else [], strict=False)
                if _usable(vector, self._model.dimension)
            }
            missing += [drawer_id for drawer_id in page if drawer_id not in good]
        return missing

    def shown(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """What Chroma shows of some drawers: (name of the place, text) of documents and of the metadata's texts."""
        named: list[tuple[str, str]] = []
        for page in _batches(ids, READ_PAGE):
            got = self._collection.get(ids=page, include=["documents", "metadatas"])
            named += (("document in Chroma", text) for text in got["documents"] or [] if text)
            for metadata in got["metadatas"] or []:
                texts = ((name, value) for name, value in (metadata or {}).items() if name not in _NO_TEXT)
                named += ((f"{name} in Chroma", value) for name, value in texts if isinstance(value, str))
        return named

    @classmethod
    def rebuild(cls, path: Path, model: ModelIdentity, rows: Iterable[StoredDrawer]) -> int:
        """Make the collection from `rows` in a new directory and put it in the place of the old; returns the count.

        A kill leaves the old directory, or (between the two renames) one that the next opening puts back. Erased
        texts are really gone afterwards, which a delete inside Chroma does not promise. Nobody may have `path` open in
        this process, since a client would go on with the old files: raises ValueError then.
        """
        path = path.absolute()
        _let_go(path)
        if _is_open(path):
            raise ValueError("the collection is open in this process; close it before it is rebuilt")
        with replacing_folder(path) as fresh, cls(fresh, model) as store:
            for batch in _batches(rows, WRITE_BATCH):
                _write(store._collection.add, batch)
            return store.count()

    def _compare(self, rows: Sequence[StoredDrawer]) -> tuple[set[str], set[str]]:
        """Ids that are stored, and those of them that are stored exactly so."""
        got = self._collection.get(
            ids=[row.drawer_id for row in rows], include=["documents", "metadatas", "embeddings"]
        )
        vectors, documents, metadatas = got["embeddings"], got["documents"] or [], got["metadatas"] or []
        stored = {
            drawer_id: (document, metadata, vector)
            for drawer_id, document, metadata, vector in zip(
                got["ids"], documents, metadatas, vectors if vectors is not None else [], strict=False
            )
        }
        same: set[str] = set()
        for row in rows:
            if (known := stored.get(row.drawer_id)) is None:
                continue
            document, metadata, vector = known
            if document == row.document and dict(metadata) == row.metadata() and np.array_equal(vector, row.vector):
                same.add(row.drawer_id)
        return set(got["ids"]), same


def _day_number(day: date) -> int:
    """A day as the metadata has it: yyyymmdd."""
    return day.year * 10_000 + day.month * 100 + day.day


class VectorReader:
    """The collection as it stands: nothing is made, nothing is changed. See `reading`."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def count(self) -> int:
        return self._collection.count()

    def ids(self, first: date, last: date) -> set[str]:
        """Ids of the drawers of some days (both inclusive).

        Days are named one by one where they are few: Chroma goes through all its rows for a comparison (0.04 CPU s of
        20,000), and asks an index for equal values.
        """
        if (last - first).days < _NAMED_DAYS:
            named = [_day_number(first + timedelta(days=n)) for n in range((last - first).days + 1)]
            where: object = {"day": {"$in": named}}
        else:
            where = {"$and": [{"day": {"$gte": _day_number(first)}}, {"day": {"$lte": _day_number(last)}}]}
        return set(self._collection.get(where=cast("Where", where), include=[])["ids"])

    def stored(self, ids: Sequence[str]) -> dict[str, tuple[str, NDArray[np.float32]]]:
        """Document and vector of those of some drawers that can be read."""
        found: dict[str, tuple[str, NDArray[np.float32]]] = {}
        for page in _batches(ids, READ_PAGE):
            got = self._collection.get(ids=page, include=["documents", "embeddings"])
            vectors = got["embeddings"]
            for drawer_id, document, vector in zip(
                got["ids"], got["documents"] or [], vectors if vectors is not None else [], strict=False
            ):
                if _usable(vector, len(vector)):
                    found[drawer_id] = (document or "", np.asarray(vector, dtype=np.float32))
        return found


@contextmanager
def reading(path: Path) -> Generator[VectorReader | None]:
    """The collection of a directory to look at, or None if there is none.

    The caller holds the home's lock all the same: two processes with one Chroma directory open disturb each other.
    """
    path = path.absolute()
    if not (path / "chroma.sqlite3").exists():
        yield None
        return
    client = _connect(path)
    try:
        names = {collection.name for collection in client.list_collections()}
        found = client.get_collection(COLLECTION, embedding_function=None) if COLLECTION in names else None
        yield VectorReader(found) if found is not None else None
    finally:
        client.close()


_held: dict[str, Client | None] = {}
"""Directories that `held_open` is about: None until the first who wrote has closed."""


@contextmanager
def held_open(path: Path) -> Generator[None]:
    """Keep a directory open from the first writing of the block to its end, for whoever looks at it then.

    Chroma loads its whole index whenever it is opened, whatever is asked: 0.3 CPU s and 340 MB at 200,000 drawers. The
    caller holds the home's lock over the whole block.
    """
    name = str(path.absolute())
    _held[name] = None
    try:
        yield
    finally:
        _let_go(path.absolute())
        del _held[name]


def take_place(fresh: Path, path: Path) -> None:
    """Put the collection of one directory in the place of another, which is gone afterwards. Nobody may have `fresh` open.

    A kill between the two renames is undone when `path` is opened next.
    """
    path = path.absolute()
    _let_go(path)
    with replacing_folder(path) as empty:
        empty.rmdir()
        fresh.rename(empty)


def _let_go(path: Path) -> None:
    client = _held.get(str(path))
    if client is not None:
        _held[str(path)] = None
        client.close()


def clear_slack(path: Path) -> None:
    """Overwrite the places of an index that hold no vector yet: hnswlib allocates them without clearing them and writes
    them out, so that whatever this process had in memory, raw texts of chats too, would stand in the file."""
    for header in path.glob("*/header.bin"):
        data = header.read_bytes()
        if len(data) < _HEADER.size:
            continue
        version, _, places, used, size = _HEADER.unpack_from(data)
        for name, width in (("data_level0.bin", size), ("length.bin", 4)):
            file = header.with_name(name)
            if version == 1 and file.exists() and file.stat().st_size == places * width and used < places:
                with file.open("r+b") as stream:
                    stream.seek(used * width)
                    stream.write(bytes((places - used) * width))


def _connect(path: Path) -> Client:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(str(path), settings=Settings(anonymized_telemetry=False))
    return cast("Client", client)  # its declared type lacks `close`


def _is_open(path: Path) -> bool:
    from chromadb.api.shared_system_client import SharedSystemClient

    # No public way to ask; opening a second client would itself take the path.
    return str(path) in SharedSystemClient._identifier_to_system  # pyright: ignore[reportPrivateUsage]


def _collection(client: Client, model: ModelIdentity) -> Collection:
    wanted = {
        "model": model.name,
        "model_sha256": model.sha256,
        "dimension": model.dimension,
        "schema": SCHEMA_VERSION,
    }
    # Opening with other metadata would be accepted in silence, so what is stored is compared here.
    collection = client.get_or_create_collection(
        COLLECTION, embedding_function=None, metadata=wanted, configuration={"hnsw": {"space": "cosine"}}
    )
    stored = collection.metadata or {}
    if {key: stored.get(key) for key in wanted} != wanted:
        made_by = ModelIdentity(
            str(stored.get("model", "?")), str(stored.get("model_sha256", "?")), int(stored.get("dimension") or 0)
        )
        raise OtherModelError(f"{made_by.label}, schema {stored.get('schema')}", f"{model.label}, schema 1")
    return collection


def _write(method: Callable[..., None], rows: Sequence[StoredDrawer]) -> None:
    method(
        ids=[row.drawer_id for row in rows],
        documents=[row.document for row in rows],
        embeddings=np.stack([row.vector for row in rows]).astype(np.float32, copy=False),
        metadatas=[row.metadata() for row in rows],
    )


def _usable(vector: object, dimension: int) -> bool:
    if vector is None:
        return False
    values = np.asarray(vector, dtype=np.float32)
    return values.shape == (dimension,) and bool(np.isfinite(values).all()) and bool(values.any())


def _batches(rows: Iterable[T], size: int) -> Generator[list[T]]:
    rest = iter(rows)
    while batch := list(islice(rest, size)):
        yield batch
