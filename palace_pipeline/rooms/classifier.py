"""Filing: the wing, room and hall of a chunk.

Room and hall come from the chunk's vector, and from what the text looks like, by linear classifiers that were fitted on
labelled texts of eleven languages. What vectors say of the language is taken out first, so neither language nor single
words decide; the words of `defaults.toml` tip the balance where it is close. Rooms of `palace.toml` are recognised by
likeness to their description and examples, measured against what is usual, and by their words, in any language; they go
before the default rooms, since somebody wanted them.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from palace_pipeline.embedding.derived import Arrays, derived_arrays
from palace_pipeline.exports.text import clean_text
from palace_pipeline.rooms.examples import FALLBACK, Axis, as_chunk, data_hash, definitions, examples
from palace_pipeline.rooms.fit import Floats, LinearFit, fit, group_directions, softmax
from palace_pipeline.rooms.shape import SIZE, shapes
from palace_pipeline.settings import Room, Settings, Wing
from palace_pipeline.transcripts.terms import index_terms

ROOMS_RECIPE = f"2.{data_hash()}"
"""Raised when the same chunk, model and settings may be filed otherwise."""

SHIPPED = "fitted.npz"
_AXES: tuple[Axis, ...] = ("room", "hall")
_TEMPERATURE: Mapping[Axis, float] = {"room": 0.4, "hall": 0.5}
"""Turns scores into probabilities that are right as often as they say, by cross-validation (`benchmarks/rooms.py`)."""
_UNSURE = 0.4
"""Below this probability a text is filed under `general`."""
_CUE = 0.2
_MOST_CUES = 2
_LIKE = 2.3
"""A text belongs to a room of the user's if it is this many standard deviations more like it than usual (one in 90)."""
_LIKE_CUE = 0.75
_USUAL = 300
"""Example vectors that are kept to know what likeness is usual."""


class Embedder(Protocol):
    """What is needed of a model here (`embedding.model.EmbeddingModel`)."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> str: ...
    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


@dataclass(slots=True, frozen=True)
class Filed:
    """Where a chunk is filed; `confidence` is the probability (0 to 1) that the room is right."""

    room: str
    hall: str
    confidence: float


@dataclass(slots=True, frozen=True, eq=False)
class Fits:
    """What was learned from the examples with one model. `room` and `hall` take a vector with `shape.shapes` behind it.

    `usual`: vectors of some of them, [texts, dimension]; `languages`: the directions in which languages differ.
    """

    room: LinearFit
    hall: LinearFit
    usual: Floats
    languages: Floats


class Classifier:
    """Files texts. `rooms`: the user's rooms beside the default ones (one with a default's name widens that room), or
    without them (`alone`)."""

    def __init__(
        self, rooms: Sequence[Room], model: Embedder, fits: Fits | None = None, *, alone: bool = False
    ) -> None:
        self._model = model
        self._alone = alone
        self._fits = fits or fitted(model)
        self._cues = {axis: [_cues(room) for room in definitions(axis)] for axis in _AXES}
        self._ground = _Ground.of(self._fits)
        self._own = [_OwnRoom.of(room, model, self._ground) for room in rooms]

    def classify(self, texts: Sequence[str], vectors: NDArray[np.float32] | None = None) -> list[Filed]:
        """File texts. `vectors`: their passage vectors, float32 [texts, dimension], if they are known already."""
        if not texts:
            return []
        known = self._model.embed_passages(texts) if vectors is None else vectors.astype(np.float32, copy=False)
        terms = [frozenset(index_terms(text)) for text in texts]
        shaped = np.hstack([known, shapes(texts)])
        rooms = self._probabilities("room", self._fits.room, shaped, terms)
        halls = self._probabilities("hall", self._fits.hall, shaped, terms)
        bare = self._ground.bare(known) if self._own else known
        own = np.stack([room.likeness(bare, terms) for room in self._own]) if self._own else None
        return [
            self._filed(terms[place], rooms[place], halls[place], None if own is None else own[:, place])
            for place in range(len(texts))
        ]

    def _probabilities(
        self, axis: Axis, linear: LinearFit, vectors: Floats, terms: Sequence[frozenset[str]]
    ) -> NDArray[np.float64]:
        hits = np.array([[_hits(cues, have) for cues in self._cues[axis]] for have in terms])
        scores = linear.scores(vectors) + _CUE * np.minimum(hits, _MOST_CUES)
        return softmax(scores / _TEMPERATURE[axis])

    def _filed(
        self,
        terms: frozenset[str],
        rooms: NDArray[np.float64],
        halls: NDArray[np.float64],
        own: NDArray[np.float64] | None,
    ) -> Filed:
        if not terms:
            return Filed(FALLBACK["room"], FALLBACK["hall"], 0.0)
        hall = self._fits.hall.labels[int(halls.argmax())]
        if own is not None:
            best = int(own.argmax())
            sure = float(1 / (1 + np.exp(2 * (_LIKE - own[best]))))
            if own[best] >= _LIKE:
                return Filed(self._own[best].name, hall, sure)
            if self._alone:
                return Filed(FALLBACK["room"], hall, 1 - sure)
        elif self._alone:
            return Filed(FALLBACK["room"], hall, 1.0)
        labels = self._fits.room.labels
        place = int(rooms.argmax())
        if rooms[place] < _UNSURE:
            place = labels.index(FALLBACK["room"])
        return Filed(labels[place], hall, float(rooms[place]))


@dataclass(slots=True, frozen=True, eq=False)
class _Ground:
    """What likeness is measured on. `usual`: bare vectors of texts as they come, [texts, dimension]."""

    center: Floats
    languages: Floats
    usual: Floats

    @classmethod
    def of(cls, fits: Fits) -> _Ground:
        center = fits.usual.mean(axis=0)
        return cls(center, fits.languages, _bare(fits.usual, center, fits.languages))

    def bare(self, vectors: Floats) -> Floats:
        return _bare(vectors, self.center, self.languages)


def _bare(vectors: Floats, center: Floats, languages: Floats) -> Floats:
    """Unit vectors seen from the middle of all texts, without what says their language: otherwise a short description
    draws all that is short, and one in Chinese all that is Chinese."""
    moved = vectors - center
    moved = moved - (moved @ languages.T) @ languages
    return moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-6)


@dataclass(slots=True, frozen=True, eq=False)
class _OwnRoom:
    """A room of the user's: directions that lead to it (one for its description, each example, the words of each
    language), and how far other texts lie in them as a rule."""

    name: str
    cues: tuple[frozenset[str], ...]
    directions: Floats
    usual: Floats
    spread: Floats

    @classmethod
    def of(cls, room: Room, model: Embedder, ground: _Ground) -> _OwnRoom:
        said = [room.description, *room.examples, *(" ".join(words) for words in room.words.values())]
        described = [text for text in said if text.strip()]
        directions = ground.bare(model.embed_passages([as_chunk(clean_text(text)) for text in described]))
        likeness = ground.usual @ directions.T
        return cls(room.name, _cues(room), directions, likeness.mean(axis=0), likeness.std(axis=0) + 1e-6)

    def likeness(self, bare: Floats, terms: Sequence[frozenset[str]]) -> NDArray[np.float64]:
        """For each text: how many standard deviations more like the room than usual; a found word adds to it."""
        above = ((bare @ self.directions.T - self.usual) / self.spread).max(axis=1)
        cues = np.array([min(_hits(self.cues, have), _MOST_CUES) for have in terms])
        return above.astype(np.float64) + _LIKE_CUE * cues


def load_classifier(settings: Settings, model: Embedder) -> Classifier:
    """The classifier for a model and the rooms of a home. With another model than the default one, the first call on a
    machine embeds the examples (half a minute) and keeps what was learned in the user's cache."""
    return Classifier(settings.rooms, model, alone=not settings.default_rooms)


def described(settings: Settings) -> dict[str, str]:
    """Name -> description of all rooms that there can be: the default ones, and those of `palace.toml`, in this order."""
    default = [room for room in definitions("room") if settings.default_rooms or room.name == FALLBACK["room"]]
    return {room.name: room.description for room in (*default, *settings.rooms)}


def wing_of(head: Mapping[str, Any], wings: Sequence[Wing]) -> str:
    """The wing of a conversation (a row of `model.CONVERSATIONS`): the first own rule that fits its project, channel,
    title or provider; else the last part of its project folder or its channel; else the provider."""
    project = str(head.get("project") or "").strip()
    provider = str(head["provider"])
    for wing in wings:
        places = (project, str(head.get("title") or ""), provider)
        if any(wing.match.casefold() in place.casefold() for place in places):
            return wing.name
    last = project.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].lstrip("#").strip()
    return provider if last in ("", ".", "~") else last


def fitted(model: Embedder) -> Fits:
    """What was learned for a model: as shipped, or from the user's cache, or learned now."""
    shipped = resources.files("palace_pipeline.rooms").joinpath(SHIPPED)
    return fits_of(derived_arrays(model, "rooms", ROOMS_RECIPE, shipped, lambda: arrays_of(learn(model))))


def learn(model: Embedder) -> Fits:
    """Fit rooms and halls on all shipped examples, each in two forms: with `> ` marks, and as chunks have it."""
    texts = [example.text for example in examples()]
    return learn_from(model.embed_passages(texts), model.embed_passages([as_chunk(text) for text in texts]))


def learn_from(marked: Floats, chunks: Floats, used: Collection[int] | None = None) -> Fits:
    """The same from the vectors of the examples in both forms; `used`: from those at these places only."""
    places = sorted(range(len(examples())) if used is None else used)
    room, hall = (_fit_axis(axis, marked, chunks, places) for axis in _AXES)
    kept = np.linspace(0, len(places) - 1, min(_USUAL, len(places))).astype(int)
    languages = group_directions(chunks[places], [examples()[place].lang for place in places])
    return Fits(room, hall, chunks[places][kept], languages)


def arrays_of(fits: Fits) -> Arrays:
    """What is kept of a fit."""
    kept: Arrays = {"usual": fits.usual.astype(np.float16), "languages": fits.languages}
    return kept | fits.room.arrays("room") | fits.hall.arrays("hall")


def fits_of(arrays: Arrays) -> Fits:
    """The inverse of `arrays_of`."""
    room, hall = LinearFit.of_arrays(arrays, "room"), LinearFit.of_arrays(arrays, "hall")
    return Fits(room, hall, arrays["usual"].astype(np.float32), arrays["languages"].astype(np.float32))


def _fit_axis(axis: Axis, marked: Floats, chunks: Floats, places: Sequence[int]) -> LinearFit:
    labels = [room.name for room in definitions(axis)]
    labelled = [place for place in places if axis in examples()[place].share]
    of_axis = [examples()[place] for place in labelled]
    shares = np.array([[example.share[axis].get(label, 0.0) for label in labels] for example in of_axis], np.float32)
    texts = [example.text for example in of_axis]
    shaped = np.hstack([np.vstack([marked[labelled], chunks[labelled]]), shapes([*texts, *map(as_chunk, texts)])])
    languages = [example.lang for example in of_axis] * 2
    apart = np.pad(group_directions(shaped[:, :-SIZE], languages), ((0, 0), (0, SIZE)))
    return fit(labels, shaped, np.vstack([shares, shares]), apart)


def _cues(room: Room) -> tuple[frozenset[str], ...]:
    return tuple(cue for words in room.words.values() for word in words if (cue := frozenset(index_terms(word))))


def _hits(cues: Sequence[frozenset[str]], terms: frozenset[str]) -> int:
    return sum(cue <= terms for cue in cues)


# --- palace classify --jsonl ------------------------------------------------------------------------------------------

_LINES_AT_ONCE = 64


def classify_lines(source: BinaryIO, out: BinaryIO, settings: Settings) -> int:
    """`{"id", "text"}` a line in, `{"id", "room", "hall", "confidence"}` a line out, in order; returns how many lines
    were answered by `{"id", "error"}`. An answer never waits for a further line."""
    from palace_pipeline.embedding.model import load_model

    model = load_model(settings.embedding)
    classifier = load_classifier(settings, model)
    bad = 0
    for lines in _waiting_lines(source):
        asked = [_asked(number, line) for number, line in lines]
        filed = iter(classifier.classify([text for _, text, error in asked if error is None]))
        for asked_id, _, error in asked:
            answer: dict[str, Any] = {"id": asked_id}
            if error is None:
                place = next(filed)
                answer |= {"room": place.room, "hall": place.hall, "confidence": round(place.confidence, 4)}
            else:
                answer["error"] = error
                bad += 1
            out.write(json.dumps(answer).encode() + b"\n")
        out.flush()
    return bad


def _asked(number: int, line: bytes) -> tuple[Any, str, str | None]:
    """Id, text, and what is wrong with the line (never quoting it)."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None, "", f"line {number} is not JSON"
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        return record.get("id") if isinstance(record, dict) else None, "", f"line {number} has no text"
    return record.get("id"), clean_text(record["text"]), None


def _waiting_lines(source: BinaryIO) -> Generator[list[tuple[int, bytes]]]:
    """The lines that have arrived, up to a batch; waits for one, never for more."""
    arrived: queue.Queue[tuple[int, bytes] | None] = queue.Queue(maxsize=4 * _LINES_AT_ONCE)

    def read() -> None:
        for number, line in enumerate(source, 1):
            if line.strip():
                arrived.put((number, line))
        arrived.put(None)

    threading.Thread(target=read, daemon=True).start()
    while (first := arrived.get()) is not None:
        lines = [first]
        while len(lines) < _LINES_AT_ONCE and not arrived.empty():
            if (item := arrived.get()) is None:
                yield lines
                return
            lines.append(item)
        yield lines
