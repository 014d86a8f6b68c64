from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.redaction.views import decoded_base64, flat, fold, joined, normalised, views_of
from tests.redaction.samples import GITHUB, base64_of, funnel, token

FUNNEL = funnel()


@given(st.text(alphabet=st.characters(codec=None)))  # type: ignore[arg-type]
def test_flat_has_one_byte_a_code_point_and_keeps_ascii(text: str) -> None:
    data = flat(text)
    assert len(data) == len(text)
    assert all(chr(byte) == char for byte, char in zip(data, text, strict=True) if char.isascii() and char != "\x7f")


def _seen(text: str) -> str:
    view = normalised(text, flat(text))
    return text if view is None else view.text.rstrip("\n")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("se\u200bcret1", "secret1"),
        ("ｓｅｃｒｅｔ１", "secret1"),
        ("sеcrеt1", "secret1"),
        ("𝗌𝖾𝖼𝗋𝖾𝗍𝟣", "secret1"),
        ("se\u00adcret1", "secret1"),
        ("se\x1b[0m\x1b[31mcret1", "secret1"),
        ("a\\_b", "a_b"),
        ("\\u0073ecret", "secret"),
        ("\\x73ecret", "secret"),
        ("%73ecret", "secret"),
        ("&#115;ecret", "secret"),
        ("https:\\/\\/a", "https://a"),
        ("x=<code>a1</code>", "x=a1"),
        ("\\73 \\65 \\63 ret1", "secret1"),
        ("\\73 ecret12345678", "secret12345678"),
        ("\\000073\\000065\\000063ret1".replace("63r", "63 r"), "secret1"),
    ],
)
def test_disguises_are_seen_through(text: str, plain: str) -> None:
    assert _seen(text) == plain


@pytest.mark.parametrize("text", ["plain words, nothing else", "日志里没有密钥。", "Ключ к задаче", "C:\\new\\table"])
def test_ordinary_text_needs_no_view(text: str) -> None:
    assert normalised(text, flat(text)) is None


def test_folding_goes_by_category_not_by_list() -> None:
    assert fold("\u2063") == fold("\u0301") == fold("\U000e0041") == ""
    assert fold("é") == "e"
    assert fold("中") == "中"


@pytest.mark.parametrize(
    "joint",
    [
        *("\n", "\r\n", "\\\n", "`\n  ", "\n    ", "\n> ", "\n> > ", " │\n│ ", "\t", "<br>", "\n// "),
        *(
            "\n2026-01-02 03:04:05 INFO ",
            "\n[2026-01-02T03:04:05Z] [warn] ",
            "\nJan 12 03:04:05 web1 app[77]: ",
            "\napp_1  | ",
        ),
        *('" + "', "' . '", "' ~ '", '" +\n  "', '" "'),
    ],
)
def test_a_cut_token_is_put_together_and_mapped_back(joint: str) -> None:
    value = token(GITHUB)
    text = f'x = "{value[:20]}{joint}{value[20:]}" end'
    view = joined(text, flat(text))
    assert view is not None
    at = view.text.index(value)
    start, end = view.source(at, at + len(value))
    assert text[start:end] == value[:20] + joint + value[20:]


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 1, 2), (7, 2), (1, 9, 1, 1)])
def test_pieces_of_one_character_are_pieces_too(sizes: tuple[int, ...]) -> None:
    value = token(GITHUB)
    pieces, at = [], 0
    for size in sizes:
        pieces.append(value[at : at + size])
        at += size
    text = "x = " + " + ".join(f'"{piece}"' for piece in [*pieces, value[at:]])
    view = joined(text, flat(text))
    assert view is not None
    assert value in view.text


@pytest.mark.parametrize("joint", ["", " ", " + "])
def test_a_quote_beside_another_joins_or_parts(joint: str) -> None:
    """`"…""at"`: in some languages one literal, in others the end of one and the beginning of another."""
    value = token("SK[0-9a-f]{32}")
    cut = f'key = "{value[:7]}" + "{value[7:]}"{joint}"at the end"'
    read = [view.text for view in views_of(cut, flat(cut))]
    assert any(f"{value}at the end" in text for text in read)
    assert joint or any(f'{value}""at the end' in text for text in read)


@given(
    st.lists(st.sampled_from(["abc1", "\u200b", "ｘ", "\\u0041", "%41", "\x1b[1m", " ", "密", "\\_", "é"]), max_size=30)
)
def test_every_place_of_a_view_lies_in_its_source(parts: list[str]) -> None:
    text = "".join(parts)
    view = normalised(text, flat(text))
    if view is None:
        return
    last = 0
    for place in range(len(view.text)):
        start, end = view.source(place, place + 1)
        assert 0 <= start <= end <= len(text)
        assert start >= last or view.text[place] == "\n"
        last = start
        if end - start == 1 and view.text[place] == text[start]:
            assert view.text[place].isprintable()


def test_base64_of_text_is_read_and_of_noise_is_not() -> None:
    assert decoded_base64(base64_of("the key is somewhere in here")) == "the key is somewhere in here"
    assert decoded_base64(b"the key is somewhere here ok!!!!".hex()) == "the key is somewhere here ok!!!!"
    assert decoded_base64(token("[A-Za-z0-9+/]{60}")) is None


@pytest.mark.parametrize("rest", ["src/main.py", "name", "2026-01-02", "12345678", "README.md"])
def test_a_column_of_words_is_not_joined_to_the_one_before_it(rest: str) -> None:
    text = f"{token('[0-9a-f]{40}')}\t{rest}"
    assert joined(text, flat(text)) is None


@pytest.mark.parametrize("sign", ["`", "\0", "*", "**"])
def test_a_sign_between_a_word_and_a_disguised_token_parts_or_joins(sign: str) -> None:
    value = token(GITHUB)
    for text in (f"word{sign}{value[:7]}\u200b{value[7:]}", f"{value[:9]}{sign}{value[9:15]}\u200b{value[15:]}"):
        kept = FUNNEL.redact_fields({"text": text}).texts["text"]
        assert value[20:] not in kept
