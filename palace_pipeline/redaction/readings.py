"""Readings of a field: its text as it stands and its views, and the way back from what is found in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from palace_pipeline.redaction.hits import Hit
from palace_pipeline.redaction.memory import Memory
from palace_pipeline.redaction.people import Named
from palace_pipeline.redaction.tokens import GUESSED
from palace_pipeline.redaction.verdicts import looks_random, secret_enough, word_share
from palace_pipeline.redaction.view import View
from palace_pipeline.redaction.work import Work

MAX_BLOB = 4096


class Reading:
    """One way to read a field, with the chain of views that leads back to it."""

    __slots__ = ("_ends", "chain", "data", "joints", "own", "text")

    def __init__(
        self, text: str, data: bytes, chain: list[View], own: list[Hit] | None = None, joints: bool = False
    ) -> None:
        self.text, self.data, self.chain = text, data, chain
        self.own, self.joints = own or [], joints
        self._ends: set[tuple[str, int]] | None = None

    def back(self, start: int, end: int) -> tuple[int, int]:
        for view in reversed(self.chain):
            if view.kind == "decoded" and view.lengths[0] > MAX_BLOB:
                start, end = _blob_part(view, start, end)
            elif view.kind == "decoded":
                start, end = view.origins[0], view.origins[0] + view.lengths[0]
            else:
                start, end = view.source(start, end)
        return start, end

    def place(self, hit: Hit) -> Hit | None:
        """The hit in places of the field; None for a joint that was none."""
        if not self.chain:
            return hit
        if self.joints:
            end = self._cut(hit)
            if end is None:
                return None
            hit = hit._replace(end=end, value=self.text[hit.start : end])
        start, end = self.back(hit.start, hit.end)
        return hit._replace(start=start, end=end)

    def _known_ends(self) -> set[tuple[str, int]]:
        """Where hits of the text as it stands end, by their kind and by their layer."""
        if self._ends is None:
            self._ends = {(name, hit.end) for hit in self.own for name in (hit.kind, hit.layer)}
        return self._ends

    def _cut(self, hit: Hit) -> int | None:
        """Where a hit over closed joints ends: at the first joint behind which no piece of a token follows."""
        view = self.chain[-1]
        cuts = view.cuts(hit.start, hit.end)
        if not cuts:
            return None
        guessed = hit.rule in GUESSED
        if guessed and hit.rule != "prefixed-token" and not all(cut in view.firm for cut in cuts):
            return None  # what a line says of a run says nothing of the next line
        known_to = self._known_ends()
        for index, cut in enumerate(cuts):
            before = view.source(hit.start, cut)[1]
            if cut not in view.firm and _begins(self.text, cut, cut + 48):
                return cut if index else None
            unsure = guessed or hit.layer == "name"
            if cut in view.firm or not (unsure or (hit.kind, before) in known_to or (hit.layer, before) in known_to):
                continue
            stop = cuts[index + 1] if index + 1 < len(cuts) else hit.end
            piece = self.text[cut:stop]
            if not _goes_on(piece, self.text[stop : stop + 1]):
                return cut if index else None
        return hit.end

    def named(self, found: Named) -> Hit:
        start, end = self.back(found.start, found.end)
        rule = f"{found.kind}-{found.number}"
        # Less sure than what it may be a part of: an address stays an address.
        return Hit(start, end, found.kind, rule, "known", 0.7, self.text[found.start : found.end], whole=True)

    def found(self, memory: Memory, work: Work, layer: str) -> list[Hit]:
        out: list[Hit] = []
        for echo in memory.find(self.text, self.data, work.spend):
            start, end = self.back(echo.start, echo.end)
            value = self.text[echo.start : echo.end]
            out.append(Hit(start, end, echo.claim.kind, echo.claim.rule, layer, 0.4, value))
        return out


_NEW_LINE = re.compile(r"[A-Za-z_][\w.\-]{1,40}[=:](?!=|$)")
"""A new assignment, and not the rest of what stands on the line before."""


def _begins(text: str, at: int, end: int) -> bool:
    """Does a new assignment begin at text[at:end]?"""
    found = _NEW_LINE.match(text, at, end)
    return found is not None and not looks_random(found[0][:-1], 12)


def _goes_on(piece: str, after: str) -> bool:
    """Is this the rest of a token on a new line? It looks random, or stands alone on its line and is no word."""
    if _begins(piece, 0, len(piece)):
        return False
    if looks_random(piece, 8) or (len(piece) >= 12 and secret_enough(piece)):
        return True
    alone = after in ("", "\n", "\r") and piece.isascii() and (piece[1:].lower() != piece[1:] or not piece.isalpha())
    mixed = any(c.isdigit() for c in piece) and piece[1:].lower() != piece[1:] and piece.upper() != piece
    return alone and len(piece) >= 2 and (mixed or word_share(piece) < 0.5)


def _blob_part(view: View, start: int, end: int) -> tuple[int, int]:
    """The part of a long encoded run that holds decoded characters [start, end), with room for wide characters."""
    origin, length, size = view.origins[0], view.lengths[0], view.sizes[0]
    low = origin + max(0, start * length // size - 64)
    return low, min(origin + length, origin + end * length // size + 64)


class Closed:
    """Tells of breaks of lines in one text that no token goes over, so that nothing has to be read across them.

    `own`: what was found in the text as it stands; `anchors`: (index, start, end) of fixed parts of tokens in it.
    """

    __slots__ = ("_anchors", "_begun", "_data", "_ends", "_own", "_text")

    def __init__(self, text: str, data: bytes, own: Sequence[Hit], anchors: Sequence[tuple[int, int, int]]) -> None:
        self._text, self._data, self._own, self._anchors = text, data, own, anchors
        self._ends: dict[int, Hit] | None = None
        self._begun: set[int] = set()

    def __call__(self, start: int, end: int) -> bool:
        """Does a line end at `start`, and something else begin on the next one, at `end`?"""
        if _begins(self._text, end, end + 48):
            return True
        if self._ends is None:
            self._ends = {hit.end: hit for hit in self._own}
            self._begun = {hit.start for hit in self._own if _shaped(hit)}
        before = self._ends.get(start)
        if before is None:
            return False
        shaped = _shaped(before)
        if shaped and end in self._begun:
            return True
        piece = _PIECE.match(self._data, end)
        stop = piece.end() if piece else end
        if _goes_on(self._text[end:stop], self._text[stop : stop + 1]):
            return False
        return shaped or not any(before.start - 64 < at < start for _, at, _ in self._anchors)


_PIECE = re.compile(rb"[A-Za-z0-9+/_=.~:$\-]{0,512}")


def _shaped(hit: Hit) -> bool:
    return hit.layer == "rule" and hit.rule not in GUESSED
