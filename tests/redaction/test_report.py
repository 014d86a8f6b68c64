from __future__ import annotations

from palace_pipeline.model import Attachment, Conversation, Message
from palace_pipeline.redaction.engine import Span, WorkLimit
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.redaction.report import Masked, Withheld, place_of, what_would_be_masked
from palace_pipeline.settings import RedactionSettings
from tests.redaction.samples import GITHUB, funnel, token


def test_every_place_is_shown_with_its_surroundings_and_without_its_value() -> None:
    first, second = token(GITHUB, 1), token(GITHUB, 2)
    chat = Conversation(
        "chatgpt",
        "c1",
        [
            Message("a", "user", "hi"),
            Message(
                "b", "user", f"old {first}, {'so ' * 20}new {second} end", attachment=[Attachment(name=f"{first}.txt")]
            ),
        ],
        title=f"Key {first}",
    )
    found = [place for place in what_would_be_masked([chat], funnel()) if isinstance(place, Masked)]
    assert [(place.field, place.kind, place.length) for place in found] == [
        ("title", "github-pat", 40),
        ("message 2", "github-pat", 40),
        ("message 2", "github-pat", 40),
        ("message 2, attachment 1 (name)", "github-pat", 40),
    ]
    assert found[1].preview == "old [REDACTED:github-pat], so so so so so so so so so so…"
    assert found[2].preview == "…so so so so so so so so so new [REDACTED:github-pat] end"
    assert found[0].conversation == "chatgpt: Key [REDACTED:github-pat]"
    assert first not in repr(found)
    assert second not in repr(found)


def test_a_field_that_cannot_be_judged_is_named_with_the_reason() -> None:
    class Spent:
        version = "0"
        kinds = frozenset({"x"})

        def scan(self, fields: object) -> list[list[Span]]:
            raise WorkLimit("spent")

    chat = Conversation("chatgpt", "c1", [Message("a", "user", "hi")])
    found = list(what_would_be_masked([chat], Funnel(RedactionSettings(), b"k", Spent())))
    assert found == [Withheld("chatgpt: untitled", "message 1", "work-limit")]


def test_names_of_places() -> None:
    assert place_of("source_file") == "source file"
    assert place_of("messages.0.tool_name") == "message 1 (tool name)"
    assert place_of("messages.3.citations.1.url") == "message 4, citation 2 (url)"
