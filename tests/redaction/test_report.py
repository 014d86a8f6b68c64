from __future__ import annotations

from collections.abc import Sequence

from palace_pipeline.model import Attachment, Conversation, Message
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.redaction.hits import Span
from palace_pipeline.redaction.report import Masked, Withheld, by_kind, place_of, what_would_be_masked
from palace_pipeline.redaction.work import WorkLimit
from palace_pipeline.settings import RedactionSettings
from palace_pipeline.transcripts.page_labels import called
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
    found = [
        place
        for place in what_would_be_masked([(chat, [f"in/{first}.json"])], funnel(), called)
        if isinstance(place, Masked)
    ]
    assert found[0].conversation == "name of a file: in/[REDACTED:github-pat].json"
    assert (found[0].number, found[0].files) == (0, ("in/[REDACTED:github-pat].json",))
    found = found[1:]
    assert [place.value for place in found] == [1, 1, 2, 1]
    assert {place.files for place in found} == {("in/[REDACTED:github-pat].json",)}
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
    found = list(what_would_be_masked([(chat, ["a.json"])], Funnel(RedactionSettings(), b"k", Spent()), called))
    assert found[0] == Withheld(0, "name of a file", ("[WITHHELD:work-limit]",), "name", "work-limit")
    assert found[1] == Withheld(
        1, "chatgpt: [WITHHELD:work-limit]", ("[WITHHELD:work-limit]",), "message 1", "work-limit"
    )


def test_names_of_places() -> None:
    assert place_of("source_file") == "source file"
    assert place_of("messages.0.tool_name") == "message 1 (tool name)"
    assert place_of("messages.3.citations.1.url") == "message 4, citation 2 (url)"


def test_what_a_second_look_still_finds_is_told() -> None:
    class Late:
        """Finds one text at first, and another in a second look."""

        version = "0"
        kinds = frozenset({"x"})

        def __init__(self) -> None:
            self.seen: set[str] = set()

        def scan(self, fields: Sequence[str]) -> list[list[Span]]:
            hit = [Span(0, 2, "x", "r", "rule", 1.0)]
            found = [hit if text == "zz" or (text in self.seen and text == "hi") else [] for text in fields]
            self.seen.update(fields)
            return found

    chat = Conversation("chatgpt", "c1", [Message("a", "user", "hi"), Message("b", "user", "zz")], title="T")
    found = list(what_would_be_masked([(chat, ["a.json"])], Funnel(RedactionSettings(), b"k", Late()), called))
    assert [one for one in found if isinstance(one, Withheld)] == [
        Withheld(1, "chatgpt: T", ("a.json",), "message 1", "x", whole=True)
    ]


def test_kinds_are_summed_up_and_different_values_are_shown_first() -> None:
    def place(number: int, kind: str, value: int) -> Masked:
        return Masked(number, "c", ("f",), "title", kind, "r", value, 5, f"value {value}")

    places = [place(1, "email", 1)] * 20 + [place(2, "email", value) for value in range(2, 5)] + [place(0, "phone", 9)]
    email, phone = by_kind(places)
    assert (email.kind, email.places, len(email.conversations), len(email.values)) == ("email", 23, 2, 4)
    assert [shown.value for shown in email.examples] == [1, 2, 3, 4, 1, 1, 1, 1]
    assert (phone.places, len(phone.conversations)) == (1, 0)
