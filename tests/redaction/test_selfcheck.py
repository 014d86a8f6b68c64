"""An engine of which a layer has become blind is not used: nothing it lets through may be published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from palace_pipeline.redaction import engine, scanning
from palace_pipeline.redaction.engine import RuleEngine
from palace_pipeline.redaction.memory import Memory
from palace_pipeline.redaction.people import Names
from palace_pipeline.redaction.selfcheck import EngineBlind, canaries, check, covers
from palace_pipeline.settings import RedactionSettings
from tests.redaction.samples import funnel

OWN = {"known_values": ["Blue Heron 7"], "people": [["Jane Doe", "Jane"], "张伟"]}


def _nothing(*_: Any, **__: Any) -> Iterator[Any]:
    return iter(())


def _none(*_: Any, **__: Any) -> None:
    return None


LAYERS: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "token shapes": (RuleEngine, "_anchored", _nothing),
    "names of values": (engine.names, "assigned", _nothing),
    "containers": (engine.containers, "url_credentials", _nothing),
    "personal data": (engine.pii, "email_at", _none),
    "normalised view": (engine, "views_of", _nothing),
    "joined view": (engine, "views_of", _nothing),
    "encoded text": (engine, "decoded_base64", _none),
    "memory": (Memory, "find", _nothing),
    "known values": (Memory, "find", _nothing),
    "listed names": (Names, "find", _nothing),
}


def test_the_engine_sees_with_all_its_layers_whatever_the_settings() -> None:
    for own in ({}, OWN, {**OWN, "allow_rules": ["email", "github-pat", "known-value", "person"], "allow": ["x"]}):
        funnel(**own)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_blind_layer_stops_the_funnel_before_anything_goes_through_it(
    layer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, blind = LAYERS[layer]
    monkeypatch.setattr(owner, name, blind)
    with pytest.raises(EngineBlind, match=layer):
        funnel(**OWN)


@pytest.mark.parametrize(("owner", "name"), [(scanning.Literals, "places"), (scanning.Signs, "seen")])
def test_blind_first_looks_stop_it_too(owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, lambda *_: [])
    with pytest.raises(EngineBlind):
        funnel(**OWN)


def test_every_layer_has_a_test_here() -> None:
    assert {canary.layer for canary in canaries(RedactionSettings.model_validate(OWN))} == set(LAYERS)


def test_an_engine_that_raises_is_blind_and_its_words_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("quotes a text")

    settings = RedactionSettings()
    found = RuleEngine(settings)
    monkeypatch.setattr(engine.names, "assigned", broken)
    with pytest.raises(EngineBlind) as told:
        check(found, settings)
    assert "quotes" not in str(told.value)


@pytest.mark.parametrize(
    ("spans", "good"), [([(0, 4), (4, 9)], True), ([(5, 9), (0, 6)], True), ([(0, 4), (5, 9)], False), ([], False)]
)
def test_covered_means_from_end_to_end(spans: list[tuple[int, int]], good: bool) -> None:
    assert covers(spans, 1, 9) is good
