from __future__ import annotations

import pytest

from palace_pipeline.redaction.memory import Claim, Memory, worth_remembering
from palace_pipeline.redaction.views import flat
from tests.redaction.samples import OPAQUE, PASSWORD, funnel, token


def _echoes(memory: Memory, text: str) -> list[str]:
    return [text[e.start : e.end] for e in memory.find(text, flat(text), lambda steps: None)]


def test_whole_values_and_long_pieces_are_found_anywhere() -> None:
    value = token(OPAQUE)
    memory = Memory([Claim(value, "secret", "r")])
    for piece in (value, value[7:], value[:25], value[10:30]):
        assert _echoes(memory, f"retry with 「{piece}」 please") == [piece]
    assert _echoes(memory, f"only {value[:9]} of it") == []


@pytest.mark.parametrize("length", range(12, 30))
def test_a_piece_of_twelve_characters_is_found_at_every_offset(length: int) -> None:
    value = token(OPAQUE, length)
    memory = Memory([Claim(value, "secret", "r")])
    for start in range(len(value) - length + 1):
        piece = value[start : start + length]
        assert piece in "".join(_echoes(memory, f"<{piece}>"))


def test_short_values_must_stand_alone() -> None:
    value = token("[a-z]{4}[0-9]{4}")
    memory = Memory([Claim(value, "password", "r")])
    assert _echoes(memory, f"again {value}, again") == [value]
    assert _echoes(memory, f"x{value}y") == []


@pytest.mark.parametrize(
    "word", ["postgres", "admin", "changeme", "tokenizer", "None", "your-api-key-here", "$PW", "12345"]
)
def test_common_words_are_not_remembered(word: str) -> None:
    assert not worth_remembering(word)


def test_passwords_and_tokens_are_remembered() -> None:
    assert worth_remembering(token(PASSWORD))
    assert worth_remembering(token(OPAQUE))


@pytest.mark.parametrize(
    "value",
    [
        "蓝鹭计划二号",
        "这是一个非常秘密的项目代号不要告诉任何人知道",
        "a" * 25,
        "1111222211112222",
        "пароль для сервера",
        "é-77",
        "x" * 20_000 + "1",
    ],
)
def test_known_values_of_any_script_and_size_are_found_in_the_midst_of_others(value: str) -> None:
    own = funnel(known_values=[value])
    run = "我们昨天讨论了" if not value.isascii() else "it is "
    out = own.redact_fields({"t": f"{run}{value}的进展", "u": value, "v": f"{value[:-1]}-"}).texts
    assert value not in out["t"]
    assert out["t"].startswith(run)
    assert out["u"] == "[REDACTED:known-value]"


def test_long_values_are_looked_for_by_their_beginning_and_found_whole() -> None:
    value = token("[A-Za-z0-9]{30}") * 2_000
    memory = Memory([Claim(value, "secret", "r", whole=True), Claim("蓝" * 9_000, "known-value", "known-value")])
    assert max(map(len, memory._keys)) <= 64  # an automaton over the whole would take quadratic time
    assert _echoes(memory, f"see {value} there") == [value]
    assert _echoes(memory, f"see {value[:-1]} there") == []
    assert _echoes(memory, f"看{'蓝' * 9_000}看") == ["蓝" * 9_000]


def test_letters_in_odd_cases_are_worth_remembering() -> None:
    assert worth_remembering("GyTUL" + "onUcrdTam")
    assert not worth_remembering("HelloWorldAgain")


PLACED = ["Reurnd" + "MdjEar", "Wonder" + "Horse", "correct-horse-" + "staple"]
"""Passwords made of what reads like words: only their place tells that they are secrets."""


@pytest.mark.parametrize("value", PLACED)
@pytest.mark.parametrize("said", ["postgres://app:{}@db1.acme.dev:5432/app", "curl -u deploy:{} https://acme.dev"])
def test_a_password_that_its_place_tells_is_masked_where_it_is_repeated(value: str, said: str) -> None:
    texts = {"a": f"I used {value} as always", "b": said.format(value), "c": f"pass: ({value})"}
    clean = funnel().redact_fields(texts)
    assert not any(value in text for text in clean.texts.values())


@pytest.mark.parametrize("value", PLACED)
def test_a_password_of_words_is_masked_only_where_it_stands_alone(value: str) -> None:
    texts = {"b": f"postgres://app:{value}@db1.acme.dev:5432/app", "c": f"my{value}s {value.lower()} {value[:9]}"}
    clean = funnel().redact_fields(texts).texts["c"]
    assert clean == (texts["c"] if value != value.lower() else clean)
    assert f"my{value}s" in clean


@pytest.mark.parametrize("word", ["swordfish", "Rosebud", "SecretPassword", "TestUser", "Password", "appdb"])
def test_an_ordinary_word_in_the_place_of_a_password_stays_elsewhere(word: str) -> None:
    texts = {"b": f"postgres://app:{word}@db1.acme.dev:5432/app", "c": f"the {word} of this page"}
    assert funnel().redact_fields(texts).texts["c"] == texts["c"]
