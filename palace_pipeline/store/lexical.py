"""The lexical index: which drawers hold which words. Derived from the lake, disposable; tantivy on disk.

Texts and queries are analysed by `transcripts.terms`; tantivy only splits at blanks what that gave. A commit is atomic:
a kill at any moment leaves the last one, and the writer's lock is the operating system's (`flock`), so it ends with
its process. Readers need no lock and keep what they opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from palace_pipeline.store.files import make_folder, put_back_folder, replacing_folder, restrict, write_bytes
from palace_pipeline.transcripts.terms import (
    ANALYSIS_VERSION,
    LEAST_RELATED,
    MOST_RELATED,
    Groups,
    QueryTerms,
    index_terms,
    paired_characters,
)

if TYPE_CHECKING:
    import tantivy

_FIELDS_VERSION = 1
SCHEMA_VERSION = ANALYSIS_VERSION + _FIELDS_VERSION - 1
"""Grows with either."""
RECIPE = f"terms-{ANALYSIS_VERSION}/fields-{_FIELDS_VERSION}"
"""What the index was made with; an index of another recipe is rebuilt."""

_RECIPE_FILE = "recipe"
_HEAP_BYTES = 50_000_000
FIELD_BOOSTS: dict[str, float] = {"body": 1.0, "title": 0.4, "context": 0.3}
"""How much a hit in a field counts: the text itself, the conversation's title, the question a piece belongs to."""


class StaleIndexError(RuntimeError):
    """The directory holds an index of another recipe, or one that cannot be read: it has to be rebuilt."""


@dataclass(slots=True, frozen=True)
class LexicalRow:
    """One drawer for the index.

    `roles`: those of the messages in it. `day` (yyyymmdd) is the conversation's, as everywhere in the lake; `first_day`
    and `last_day` are the UTC days of the earliest and latest message in the drawer itself (a conversation may go on
    for months), None if they are not known: a filter by days lets such a drawer through.
    """

    drawer_id: str
    text: str
    context: str
    title: str
    provider: str
    conversation_id: str
    wing: str
    room: str
    kind: str
    roles: tuple[str, ...]
    day: int
    first_day: int | None = None
    last_day: int | None = None


@dataclass(slots=True, frozen=True)
class Filters:
    """What a drawer must be: each part that is set has to hold.

    `since` and `until` are UTC days (yyyymmdd), inclusive: a drawer whose messages begin or end in between, reach over
    them, or have no known day.
    """

    provider: str | None = None
    conversation_id: str | None = None
    wing: str | None = None
    room: str | None = None
    kinds: tuple[str, ...] = ()
    role: str | None = None
    since: int | None = None
    until: int | None = None


class LexicalIndex:
    """The index of one directory, opened for writing. Use as a context manager: it commits when the block ends well
    and leaves the index as it was when it does not. The caller holds the home's lock.

    Raises StaleIndexError on entry if the index has to be rebuilt.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._writer: tantivy.IndexWriter | None = None

    def __enter__(self) -> Self:
        import tantivy

        put_back_folder(self._path)
        make_folder(self._path)
        if not tantivy.Index.exists(str(self._path)):
            write_bytes(self._path / _RECIPE_FILE, RECIPE.encode())
            index = _prepared(tantivy.Index(_schema(), path=str(self._path)))
        else:
            index = _open(self._path)
        self._writer = index.writer(_HEAP_BYTES, 1)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            if kind is None:
                writer.commit()
            else:
                writer.rollback()
            writer.wait_merging_threads()
            restrict(self._path)

    @property
    def _open_writer(self) -> tantivy.IndexWriter:
        if self._writer is None:
            raise ValueError("the lexical index is not open")
        return self._writer

    def upsert(self, rows: Iterable[LexicalRow]) -> int:
        """Add the rows, each in the place of what its drawer id held before; returns how many."""
        count = 0
        for row in rows:
            self._open_writer.delete_documents_by_term("drawer_id", row.drawer_id)
            self._open_writer.add_document(_document(row))
            count += 1
        return count

    def delete(self, ids: Iterable[str]) -> None:
        """Remove drawers; ids that are not there are ignored."""
        for drawer_id in ids:
            self._open_writer.delete_documents_by_term("drawer_id", drawer_id)

    def delete_days(self, first: int, last: int) -> None:
        """Remove all drawers of the days from `first` to `last` (yyyymmdd, inclusive)."""
        self._open_writer.delete_documents_by_query(_day_query(_schema(), "day", first, last))

    def commit(self) -> None:
        """Make what was written so far visible and durable."""
        self._open_writer.commit()

    @classmethod
    def rebuild(cls, path: Path, rows: Iterable[LexicalRow]) -> int:
        """Make the index from `rows` in a new directory and put it in the place of the old; returns the count."""
        with replacing_folder(path.absolute()) as fresh, cls(fresh) as index:
            return index.upsert(rows)


@dataclass(slots=True)
class LexicalReader:
    """The last committed state of an index, for searching; `open_reader` makes it."""

    _index: tantivy.Index
    _searcher: tantivy.Searcher = field(init=False)

    def __post_init__(self) -> None:
        self._searcher = self._index.searcher()

    def count(self) -> int:
        """How many drawers the index holds."""
        return self._searcher.num_docs

    def ids(self, first: int | None = None, last: int | None = None) -> list[str]:
        """All drawer ids, or those filed under the days from `first` to `last` (yyyymmdd, inclusive)."""
        import tantivy

        if first is None and last is None:
            return self._ids_of(tantivy.Query.all_query(), self.count())
        return self._ids_of(_day_query(self._index.schema, "day", first, last), self.count())

    def document_frequency(self, term: str) -> int:
        """In how many drawers' own text a term stands (a character of a paired script: alone or inside a run)."""
        return max(self._searcher.doc_freq("body", term), self._searcher.doc_freq("characters", term))

    def holds(self, term: str) -> bool:
        """Does a term stand anywhere: in a text, a title or a context?"""
        return any(self._searcher.doc_freq(name, term) for name in (*FIELD_BOOSTS, "characters"))

    def search(
        self,
        terms: QueryTerms,
        limit: int,
        filters: Filters = Filters(),
        boosts: Mapping[str, float] = FIELD_BOOSTS,
    ) -> list[tuple[str, float]]:
        """The best drawers for any of the terms: (drawer id, BM25 score), best first. Nothing asked, nothing found."""
        import tantivy

        if not terms or limit < 1 or not self.count():
            return []
        schema, query = self._index.schema, tantivy.Query
        wanted = [
            query.boost_query(query.term_query(schema, name, term, index_option="freq"), boost * weight)
            for term, weight in terms.weights.items()
            for name, boost in boosts.items()
        ]
        wanted += [query.term_query(schema, "characters", c, index_option="basic") for c in terms.characters]
        parts = [(tantivy.Occur.Must, query.boolean_query([(tantivy.Occur.Should, part) for part in wanted]))]
        # A filter says yes or no; it must not add to the score.
        parts += [(tantivy.Occur.Must, query.const_score_query(part, 0.0)) for part in _filter_queries(schema, filters)]
        hits = self._searcher.search(query.boolean_query(parts), limit, count=False).hits
        return [(str(self._searcher.doc(address).get_first("drawer_id")), float(score)) for score, address in hits]

    def holding(self, groups: Groups, filters: Filters = Filters(), *, related: bool = False) -> list[str]:
        """All drawers that hold, of each group, one of its terms: in their text, their title or their context.

        `related`: words that begin like an asked one, or are one letter away, count too (`terms.related` decides).
        """
        import tantivy

        if not groups or not self.count():
            return []
        schema, query = self._index.schema, tantivy.Query
        parts: list[tuple[tantivy.Occur, tantivy.Query]] = []
        for group in groups:
            wanted: list[tantivy.Query] = []
            for term in group:
                fields = ("body", "title", "context", *(("characters",) if len(term) == 1 else ()))
                wanted += [query.term_query(schema, name, term, index_option="basic") for name in fields]
                if related and LEAST_RELATED <= len(term) <= MOST_RELATED and term.isalpha():
                    wanted += [query.fuzzy_term_query(schema, "body", term)]
                    wanted += [query.regex_query(schema, "body", _alike(term))]
            parts.append((tantivy.Occur.Must, query.boolean_query([(tantivy.Occur.Should, part) for part in wanted])))
        parts += [(tantivy.Occur.Must, part) for part in _filter_queries(schema, filters)]
        return self._ids_of(query.const_score_query(query.boolean_query(parts), 0.0), self.count())

    def _ids_of(self, query: tantivy.Query, limit: int) -> list[str]:
        hits = self._searcher.search(query, max(limit, 1), count=False).hits
        return [str(self._searcher.doc(address).get_first("drawer_id")) for _, address in hits]


def open_reader(path: Path) -> LexicalReader | None:
    """The index of a directory for reading, without making anything; None if there is none.

    Raises StaleIndexError if the index has to be rebuilt.
    """
    import tantivy

    if not path.is_dir() or not tantivy.Index.exists(str(path)):
        return None
    return LexicalReader(_open(path.absolute()))


def commit_of(path: Path) -> tuple[tuple[int, int, int], ...]:
    """What is different after each commit to the index of a directory, and after it was made anew; () if there is none."""
    try:
        states = [(path / name).stat() for name in (_RECIPE_FILE, "meta.json")]
    except FileNotFoundError:
        return ()
    return tuple((state.st_mtime_ns, state.st_ino, state.st_size) for state in states)


def _open(path: Path) -> tantivy.Index:
    import tantivy

    recipe = path / _RECIPE_FILE
    made_with = recipe.read_text(encoding="utf-8") if recipe.exists() else "nothing known"
    if made_with != RECIPE:
        raise StaleIndexError(f"the lexical index was made with {made_with}, this version needs {RECIPE}")
    try:
        return _prepared(tantivy.Index.open(str(path)))
    except (ValueError, OSError) as error:
        # tantivy's message quotes the file it cannot read, which is never chat text here: only its own metadata.
        raise StaleIndexError(f"the lexical index cannot be read: {error}") from error


def _prepared(index: tantivy.Index) -> tantivy.Index:
    import tantivy

    blanks = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    index.register_tokenizer("terms", blanks)
    return index


def _schema() -> tantivy.Schema:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("drawer_id", stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("body", "title", "context"):
        builder.add_text_field(name, tokenizer_name="terms", index_option="freq")
    builder.add_text_field("characters", tokenizer_name="terms", index_option="basic")
    for name in ("provider", "conversation_id", "wing", "room", "kind", "role"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("day", "first_day", "last_day"):
        builder.add_integer_field(name, indexed=True, fast=True)
    return builder.build()


def _document(row: LexicalRow) -> tantivy.Document:
    import tantivy

    document = tantivy.Document()
    document.add_text("drawer_id", row.drawer_id)
    document.add_text("body", " ".join(index_terms(row.text)))
    document.add_text("title", " ".join(index_terms(row.title)))
    document.add_text("context", " ".join(index_terms(row.context)))
    document.add_text("characters", " ".join(sorted(paired_characters(row.text))))
    document.add_text("provider", row.provider)
    document.add_text("conversation_id", row.conversation_id)
    document.add_text("wing", row.wing)
    document.add_text("room", row.room)
    document.add_text("kind", row.kind)
    for role in row.roles:
        document.add_text("role", role)
    for name, day in (("day", row.day), ("first_day", row.first_day), ("last_day", row.last_day)):
        if day is not None:
            document.add_integer(name, day)
    return document


def _filter_queries(schema: tantivy.Schema, filters: Filters) -> list[tantivy.Query]:
    import tantivy

    exact = {name: getattr(filters, name) for name in ("provider", "conversation_id", "wing", "room", "role")}
    queries = [
        tantivy.Query.term_query(schema, name, value, index_option="basic")
        for name, value in exact.items()
        if value is not None
    ]
    if filters.kinds:
        queries.append(tantivy.Query.term_set_query(schema, "kind", list(filters.kinds)))
    if filters.since is not None:
        queries.append(_or_unknown(_day_query(schema, "last_day", filters.since, None), "last_day"))
    if filters.until is not None:
        queries.append(_or_unknown(_day_query(schema, "first_day", None, filters.until), "first_day"))
    return queries


def _alike(term: str) -> str:
    """A pattern for terms that begin with this one, or are its beginning (letters only, so nothing to escape)."""
    shorter = (term[:size] for size in range(max(LEAST_RELATED, -(-6 * len(term) // 10)), len(term)))
    return "|".join([f"{term}.*", *shorter])


def _day_query(schema: tantivy.Schema, name: str, first: int | None, last: int | None) -> tantivy.Query:
    import tantivy

    return tantivy.Query.range_query(schema, name, tantivy.FieldType.Integer, first, last)


def _or_unknown(query: tantivy.Query, name: str) -> tantivy.Query:
    import tantivy

    unknown = tantivy.Query.all_query().and_must_not_match(tantivy.Query.exists_query(name))
    return query.or_should_match(unknown)
