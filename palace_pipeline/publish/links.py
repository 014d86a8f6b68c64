"""What becomes of an address in something that is given away: a link on the web, another exported file, or words only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from palace_pipeline.store.lake import Key
from palace_pipeline.transcripts.page_labels import CHAT_LINKS

_SCHEME = re.compile(r"(?:https?://[^/\s]|mailto:[^\s@]+@)", re.IGNORECASE)
_MASKED = re.compile(r"(?:\[|%5B)(?:REDACTED|WITHHELD|PERSON_|PROJECT_)", re.IGNORECASE)
_PICTURE = re.compile(r"data:image/(?:png|jpe?g|gif|webp);base64,[A-Za-z0-9+/]+={0,2}", re.ASCII)
_BARE = re.compile(r"https?://[^\s<>\"'`|\\^{}\u3000-\u303f\uff00-\uffef\u2018-\u201f\u00ab\u00bb]+", re.IGNORECASE)
_OLD_CHAT_LINKS = {"chatgpt": "https://chat.openai.com/c/"}
_ENDS = ".,;:!?*_~'\""
_PAIRS = {")": "(", "]": "["}
_KEPT_IN_URL = "!#$%&'()*+,/:;=?@[]~"


class Links:
    """Addresses as they stand in one export. `files`: name of the file that each exported conversation is written to;
    empty where files do not know of each other."""

    def __init__(self, files: Mapping[Key, str] | None = None) -> None:
        self._files = files or {}

    def of(self, address: str) -> str | None:
        """Where a link leads to: a file of the same export for a chat that is exported too, else the address itself.

        None for what is no address of the web or of mail (scripts, files of a computer, a product's own schemes) and for
        one in which something is masked.
        """
        address = address.strip()
        for provider, start in (*CHAT_LINKS.items(), *_OLD_CHAT_LINKS.items()):
            if address.startswith(start):
                name = self._files.get((provider, re.split(r"[/?#]", address[len(start) :], maxsplit=1)[0]))
                if name is not None:
                    return quote(name)
        if not _SCHEME.match(address) or _MASKED.search(address):
            return None
        return quote(address, safe=_KEPT_IN_URL)


def picture_in(address: str) -> str | None:
    """The address of a picture that brings its own data and can hold no script; None for any other."""
    return address if _PICTURE.fullmatch(address) else None


def bare_links(text: str) -> list[tuple[str, bool]]:
    """A text in pieces, and which of them are addresses: `see https://a.b.` -> `see `, `https://a.b`, `.`."""
    if "://" not in text:
        return [(text, False)]
    pieces: list[tuple[str, bool]] = []
    at = 0
    for match in _BARE.finditer(text):
        end = match.start() + len(_without_end(match[0]))
        if match.start() > at:
            pieces.append((text[at : match.start()], False))
        pieces.append((text[match.start() : end], True))
        at = end
    if at < len(text):
        pieces.append((text[at:], False))
    return pieces


def _without_end(address: str) -> str:
    """Without the punctuation of the sentence around it; a bracket stays if it was opened inside."""
    while address:
        last = address[-1]
        if last in _ENDS or (last in _PAIRS and address.count(last) > address.count(_PAIRS[last])):
            address = address[:-1]
        else:
            break
    return address
