"""Code in a message cut into what a reader tells apart: keywords, strings, numbers, comments, names of functions."""

from __future__ import annotations

from collections.abc import Iterator

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String
from pygments.token import _TokenType as Kind  # pyright: ignore[reportPrivateUsage] - it has no other name
from pygments.util import ClassNotFound

_MOST = 20_000
"""Characters above which code is not coloured: some lexers take time that grows with the square."""


_CLASSES: dict[Kind, str] = {
    Comment: "c",
    String: "s",
    Number: "m",
    Keyword: "k",
    Operator.Word: "k",
    Name.Function: "f",
    Name.Class: "f",
    Name.Decorator: "f",
    Name.Tag: "k",
    Generic.Deleted: "x",
    Generic.Inserted: "i",
}


def coloured(code: str, language: str) -> Iterator[tuple[str, str]]:
    """(class, text) of its pieces, which are the code again when put together; the class is '' for what has no colour.

    `language`: as it stands behind a fence. Without a known one nothing is guessed.
    """
    name = (language.split() or [""])[0].strip("{}.").lower()
    if not name or len(code) > _MOST:
        yield "", code
        return
    try:
        lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        yield "", code
        return
    for _, kind, text in lexer.get_tokens_unprocessed(code):
        yield _class_of(kind), text


def _class_of(kind: Kind) -> str:
    for family, name in _CLASSES.items():
        if kind in family:
            return name
    return ""
