"""Random conversations: no secret passes, what is not masked stays as it was, and a second time changes nothing."""

from __future__ import annotations

import os

import pytest

from palace_pipeline.redaction.funnel import Clean, conversation_fields
from tests.redaction.fuzzed import DISGUISES, fuzzed
from tests.redaction.leaks import leaked
from tests.redaction.samples import funnel

FUNNEL = funnel()
SEED = int(os.environ.get("PALACE_FUZZ_SEED", "0"))
BLOCKS, BLOCK = 10, 1_000


def problems(number: int) -> list[str]:
    """What is wrong with a conversation after redaction, in words without content."""
    case = fuzzed(number)
    before = dict(conversation_fields(case.conversation))
    clean = FUNNEL.redact_fields(before)
    shown = "\n".join(clean.texts.values())
    found: list[str] = []
    for name, disguise, value in dict.fromkeys(case.secrets):
        if leaked(shown, [value]) or leaked(DISGUISES[disguise].read(shown), [value]):
            found.append(f"conversation {number}: {name}, {disguise}: a secret of {len(value)} characters passes")
    if FUNNEL.redact_fields(clean.texts).texts != clean.texts:
        found.append(f"conversation {number}: not idempotent")
    if FUNNEL.scan_published(list(clean.texts.values())):
        found.append(f"conversation {number}: the second look finds something")
    found += [f"conversation {number}: {name} has changed outside of its masks" for name in _changed(before, clean)]
    if number % 10 == 0:
        found += _ids_changed(number)
    return found


def _ids_changed(number: int) -> list[str]:
    before = fuzzed(number).conversation
    after = FUNNEL.redact_conversation(before).conversation
    same = [m.message_id for m in after.messages] == [m.message_id for m in before.messages] and after.key == before.key
    return [] if same else [f"conversation {number}: its ids have changed"]


def _changed(before: dict[str, str], clean: Clean) -> list[str]:
    withheld = {name for name, _ in clean.withheld}
    changed: list[str] = []
    for name, text in before.items():
        if name in withheld:
            continue
        spans = [(f.start, f.end) for f in clean.findings if f.field == name]
        places = clean.places[name]
        kept = [
            text[low:high]
            for low, high in zip([0, *(e for _, e in spans)], [*(s for s, _ in spans), len(text)], strict=True)
        ]
        out = clean.texts[name]
        rest = [
            out[low:high]
            for low, high in zip([0, *(e for _, e in places)], [*(s for s, _ in places), len(out)], strict=True)
        ]
        if kept != rest:
            changed.append(name)
    return changed


def test_random_conversations() -> None:
    assert [problem for number in range(SEED, SEED + 200) for problem in problems(number)] == []


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_ten_thousand_random_conversations(block: int) -> None:
    first = SEED + 1_000 + block * BLOCK
    assert [problem for number in range(first, first + BLOCK) for problem in problems(number)] == []
