"""Every rule is tested by its own shapes: what they draw is found in bare prose, the same with a placeholder is not."""

from __future__ import annotations

import random
import re

import pytest

from palace_pipeline.redaction.engine import RuleEngine
from palace_pipeline.redaction.rules import Rule, load_rules
from palace_pipeline.redaction.shapes import draw, parse

ENGINE = RuleEngine()
RULES = list(load_rules())


def _covered(text: str, value: str) -> float:
    at = text.index(value)
    marked: set[int] = set()
    for span in ENGINE.scan([text])[0]:
        marked.update(range(max(span.start, at), min(span.end, at + len(value))))
    return len(marked) / len(value)


def _secret_part(rule: Rule, token: str) -> str:
    found = re.search(rule.regex.pattern, token.encode())
    assert found is not None, f"{rule.id}: the pattern does not match what the shape draws"
    value = found.groupdict().get("v") or found[0]
    return value.decode()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_a_shape_draws_is_found_in_prose(rule: Rule) -> None:
    context = f"{rule.context.pattern.decode().split('|')[0]} " if rule.context else ""
    for index, shape in enumerate(rule.shapes):
        for seed in range(3):
            token = draw(shape, random.Random(f"{rule.id}/{index}/{seed}"))
            for text in (f"{context}here it is: {token} ok", f"{context}用的是{token}，谢谢", f"{context}\n{token}\n"):
                assert _covered(text, _secret_part(rule, token)) >= 0.8, (index, seed)


@pytest.mark.parametrize("rule", [r for r in RULES if r.gate == "body"], ids=lambda rule: rule.id)
def test_a_placeholder_in_the_same_shape_is_left_alone(rule: Rule) -> None:
    for shape in rule.shapes:
        token = "".join(
            ("x" if "x" in atom.options else "0" if "0" in atom.options else atom.options[0]) * atom.low
            if atom.kind == "chars"
            else atom.options[0] * atom.low
            for atom in parse(shape)
        )
        assert ENGINE.scan([f"the key is {token} ok"]) == [[]]


@pytest.mark.parametrize("rule", [r for r in load_rules() if r.never], ids=lambda rule: rule.id)
def test_what_a_rule_must_never_match(rule: Rule) -> None:
    for shape in rule.never:
        assert ENGINE.scan([f"see {draw(shape, random.Random(shape))} above"]) == [[]]


def test_ids_are_unique_and_kinds_fit_into_a_mask() -> None:
    rules = load_rules()
    assert len({rule.id for rule in rules}) == len(rules)
    assert all(re.fullmatch(r"[a-z0-9-]{2,40}", kind) for kind in ENGINE.kinds)


def test_every_rule_carries_what_its_positive_and_negative_examples_are_drawn_from() -> None:
    for rule in RULES:
        assert rule.shapes, rule.id
        assert rule.gate == "body" or rule.never, (
            f"{rule.id}: a rule without a verdict needs shapes that must not match"
        )
