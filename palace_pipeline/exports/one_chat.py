"""What a reader of chat objects does with each of them: one conversation, or a skip that says why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from typing import TypeVar

from palace_pipeline.exports.base import Report
from palace_pipeline.model import Conversation

Held = TypeVar("Held", bound=Sized)


def one_chat(
    messages: Held | None,
    read: Callable[[Held], Conversation],
    place: str,
    report: Report,
    *,
    silent: str = "no message that a person sees",
) -> Iterator[Conversation]:
    """The conversation of a chat that has messages and in which somebody says something that people see.

    `messages`: what the chat holds, for `read`; None if it has no such list. `silent`: the reason where nobody is seen to speak.
    """
    if messages is None:
        report.skip("conversation without messages", place, expected=False, unit="conversation")
    elif not messages:
        report.skip("empty conversation", place, expected=True, unit="conversation")
    elif (conversation := read(messages)).visible_messages():
        yield conversation
    else:
        report.skip(silent, place, expected=True, unit="conversation")
