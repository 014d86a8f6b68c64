"""On which line a key of a TOML file stands."""

import pytest

from palace_pipeline.toml_lines import line_of

TEXT = """\
# comment, no = key
color = "never"
[redaction]
"allow" = []
[[rooms]]
name = "a"

[[rooms]] # the second
name = "b"
words.en = ["x"]
  [rooms.words]
  zh = ["猫"]
wings = 1
"""


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("color",), 2),
        (("redaction",), 3),
        (("redaction", "allow", 0), 4),
        (("rooms", 0, "name"), 6),
        (("rooms", 1, "name"), 9),
        (("rooms", 1, "words", "en"), 10),
        (("rooms", 1, "words", "zh", 0), 12),
        (("rooms", 1, "description"), 8),
        (("rooms",), 5),
        (("sources",), None),
    ],
)
def test_the_line_of_a_place(place: tuple[str | int, ...], line: int | None) -> None:
    assert line_of(TEXT, place) == line


@pytest.mark.parametrize("text", ["", "[", "[[", "= 1", "[]", "\x00", '"""\n[[a]]\n"""'])
def test_any_text_has_an_answer(text: str) -> None:
    assert line_of(text, ("rooms", 0)) in (None, 1, 2)
