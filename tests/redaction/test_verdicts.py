from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.redaction import verdicts as v
from tests.redaction.samples import token


def test_entropy_of_a_fair_coin_with_the_miller_madow_term() -> None:
    # plain entropy 1 bit; the correction adds (m - 1) / (2 n ln 2) = 1 / (16 ln 2)
    assert v.entropy("abababab") == pytest.approx(1 + 1 / (16 * math.log(2)))
    assert v.entropy("") == 0


@given(st.text(max_size=60))
def test_entropy_never_falls_below_the_plain_one_and_is_zero_for_one_character(text: str) -> None:
    assert v.entropy(text) >= 0
    assert (v.entropy(text) == 0) == (len(set(text)) <= 1)


@pytest.mark.parametrize(
    "value",
    [
        "<your token>",
        "${API_KEY}",
        "$TOKEN",
        "{{ vault }}",
        "%SECRET%",
        "your-api-key-here",
        "changeme",
        "x" * 20,
        "*" * 8,
        "...",
        "[REDACTED:email]",
        "process.env.KEY",
        "os.environ['K']",
        "secrets.TOKEN",
        "YOUR_API_KEY",
        "[A-Za-z0-9]{36}",
        "op://vault/item",
    ],
)
def test_placeholders(value: str) -> None:
    assert v.is_placeholder(value)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(
    "shape", ["[A-Za-z0-9]{24}", "[A-Za-z0-9_-]{40}", "[0-9a-f]{32}", "[a-z2-7]{52}", "[A-Za-z]{34}"]
)
def test_generated_strings_look_random_and_are_no_placeholders(shape: str, seed: int) -> None:
    assert v.looks_random(token(shape, seed))
    assert not v.is_placeholder(token(shape, seed))


@pytest.mark.parametrize(
    "text",
    [
        "KeyboardShortcutHandlerFactory",
        "refresh_token_expires_at",
        "bert-base-uncased",
        "2024-06-01-preview",
        "1234567890123",
        "AutoTokenizer.from_pretrained",
        "customer_account_identifier",
        "correct-horse-battery-staple",
        "osxkeychain",
    ],
)
def test_words_and_numbers_do_not_look_random(text: str) -> None:
    assert not v.looks_random(text, 8)


def test_a_uuid_is_a_secret_only_beside_a_name_that_can_mean_nothing_else() -> None:
    value = token("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}")
    assert v.token_like(value, quoted=False, strong=True)
    assert not v.token_like(value, quoted=False, strong=False)


def test_letters_that_go_together_by_chance_are_a_secret_all_the_same() -> None:
    assert v.word_share("o5PULYomaydu") > 0.8
    assert v.secret_enough("o5PULYomaydu")
    assert v.word_share("O8DWA9FULORSCSUMPAAV") > 0.65
    assert v.secret_enough("O8DWA9FULORSCSUMPAAV")
    assert v.secret_enough("Bdsort" + "HMhZeedD")
    assert not v.secret_enough("MyPasswordText")
    assert not v.secret_enough("ExampleToken12")
