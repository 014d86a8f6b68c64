"""Faults injected into every layer of redaction, odd texts, and every place around the engine's internal cuts.

Whatever breaks, no text passes that was not judged: the field is withheld with a reason, and the others go on.
"""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from palace_pipeline.model import Conversation, Message
from palace_pipeline.redaction import engine, forgotten, looking, memory, names, pii, readings, scanning, views, work
from palace_pipeline.redaction import funnel as funnels
from palace_pipeline.redaction.engine import RuleEngine
from palace_pipeline.redaction.funnel import MAX_FIELD, Funnel
from palace_pipeline.redaction.hits import Span
from palace_pipeline.redaction.people import Names
from palace_pipeline.redaction.remember import hashes
from palace_pipeline.redaction.work import WorkLimit
from palace_pipeline.settings import RedactionSettings
from tests.redaction.leaks import leaked
from tests.redaction.samples import BASE62, GITHUB, OPAQUE, PASSWORD, STRIPE, base64_of, funnel, token

KEY = b"key of a test"
OWN: dict[str, Any] = {
    "known_values": ["Blue Heron 7"],
    "people": [["Jane Doe", "Jane"]],
    "private_patterns": [r"PROJ-\d{4}"],
    "remember": True,
}
SECRET = token(GITHUB, "faults")
BARE = token(OPAQUE, "faults")
FIELDS = {
    "a": f"the token is {SECRET}\u200b and {base64_of('KEY=' + SECRET)} and Blue Heron 7, Jane, PROJ-1234",
    "b": f"DB_PASSWORD={token(PASSWORD, 'faults')} postgres://u:{token(BASE62, 'f')}@db.acme.dev/x",
    "c": f"CO_API_KEY={BARE} ann.lee@mail-host.de",
    "d": f"again {BARE}",
    "e": f'key = "{SECRET[:12]}" + "{SECRET[12:]}"',
}
VALUES = [SECRET, BARE, token(PASSWORD, "faults"), token(BASE62, "f"), "Blue Heron 7", "ann.lee@mail-host.de"]

LAYERS: dict[str, list[tuple[object, str]]] = {
    "signs": [
        (looking.Looking, "seen"),
        (looking.Looking, "_seen"),
        (scanning.Literals, "places"),
        (scanning.Signs, "seen"),
    ],
    "anchors": [(RuleEngine, "_anchored"), (engine, "match")],
    "runs": [(RuleEngine, "_runs"), (engine, "unknown_token")],
    "names": [(names, "assigned"), (names, "foreign")],
    "containers": [
        (engine.containers, name) for name in ("url_credentials", "url_parameters", "private_keys", "spoken_secrets")
    ],
    "personal data": [(pii, "personal"), (pii, "email_at")],
    "views": [(engine, "views_of"), (views, "normalised"), (views, "joined"), (engine, "flat")],
    "base64": [(engine, "decoded_base64")],
    "memory": [(memory.Memory, "find"), (memory.Memory, "__init__"), (engine, "worth_remembering")],
    "known": [(memory.Memory, "find")],
    "listed names": [(Names, "find")],
    "private patterns": [(engine, "_private")],
    "remembered": [(funnels, "remembered")],
    "purged": [(funnels, "find")],
    "merging": [(funnels, "merged"), (funnels, "outside")],
    "masks": [(Funnel, "_masks"), (Funnel, "_mask_of"), (Funnel, "_render")],
    "engine": [(RuleEngine, "scan"), (RuleEngine, "_scan_field"), (RuleEngine, "_read")],
}
PLACES = [(layer, owner, name) for layer, places in LAYERS.items() for owner, name in places if hasattr(owner, name)]
ERRORS = [WorkLimit("spent"), ValueError("quotes a text"), MemoryError(), RecursionError(), StopIteration()]


def _built(**own: Any) -> Funnel:
    settings = RedactionSettings.model_validate({**OWN, **own})
    return Funnel(settings, KEY, forgotten=(forgotten.forget("never there", KEY),))


def _conversation() -> Conversation:
    messages = [Message(name, "user", text) for name, text in FIELDS.items()]
    return Conversation("chatgpt", "c", messages, title=f"about {SECRET}")


def test_every_layer_is_broken_somewhere() -> None:
    assert {layer for layer, _, _ in PLACES} == set(LAYERS)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("layer", "owner", "name"), PLACES, ids=[f"{p[0]}-{p[2]}" for p in PLACES])
def test_an_error_in_any_layer_withholds_and_never_passes(
    monkeypatch: pytest.MonkeyPatch, layer: str, owner: object, name: str, error: Exception
) -> None:
    own = _built()
    known = frozenset(hashes([BARE], KEY))

    def broken(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(owner, name, broken)
    clean = own.redact_fields(FIELDS, known)
    assert leaked("\n".join(clean.texts.values()), VALUES) == []
    assert set(clean.texts) == set(FIELDS)
    assert {reason for _, reason in clean.withheld} <= {"work-limit", "redactor-error"}
    for field, reason in clean.withheld:
        assert clean.texts[field] == f"[WITHHELD:{reason}]"
    assert own.redact_conversation(_conversation(), known).conversation.conversation_id == "c"
    if own.scan_published([FIELDS["a"]]) == []:
        pytest.fail("the second look let a secret pass")


@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize(("layer", "owner", "name"), PLACES, ids=[f"{p[0]}-{p[2]}" for p in PLACES])
def test_an_error_at_a_later_call_too(
    monkeypatch: pytest.MonkeyPatch, layer: str, owner: object, name: str, after: int
) -> None:
    """The first calls are fine: an error in the second round, or between two fields."""
    own = _built()
    original: Any = getattr(owner, name)
    calls = 0

    def broken(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > after:
            raise MemoryError
        return original(*given, **named)

    monkeypatch.setattr(owner, name, broken)
    clean = own.redact_fields(FIELDS)
    assert leaked("\n".join(clean.texts.values()), VALUES) == []


# --- wrong answers ----------------------------------------------------------------------------------------------------

GOOD = Span(0, 2, "email", "email", "personal", 0.9)
ANSWERS: dict[str, Callable[[Sequence[str]], Any]] = {
    "none": lambda _: None,
    "no list": lambda _: 7,
    "too few": lambda fields: [[] for _ in fields[1:]],
    "too many": lambda fields: [[] for _ in [*fields, ""]],
    "none for a field": lambda fields: [None for _ in fields],
    "no spans": lambda fields: [["x"] for _ in fields],
    "behind the end": lambda fields: [[Span(0, len(f) + 1, "email", "e", "personal", 0.9)] for f in fields],
    "before the start": lambda fields: [[Span(-3, 2, "email", "e", "personal", 0.9)] for _ in fields],
    "backwards": lambda fields: [[Span(3, 1, "email", "e", "personal", 0.9)] for _ in fields],
    "empty": lambda fields: [[Span(2, 2, "email", "e", "personal", 0.9)] for _ in fields],
    "no numbers": lambda fields: [[Span("0", None, "email", "e", "personal", 0.9)] for _ in fields],  # type: ignore[arg-type]
    "a kind of its own": lambda fields: [[Span(0, len(f), "x]" + f, "e", "personal", 0.9)] for f in fields],
    "a kind that is no text": lambda fields: [[Span(0, len(f), None, "e", "personal", 0.9)] for f in fields],  # type: ignore[arg-type]
}


class _Answering:
    """An engine that gives a certain answer, whatever it is asked."""

    version = "answering"
    kinds = frozenset({"email"})

    def __init__(self, answer: Callable[[Sequence[str]], Any]) -> None:
        self._answer = answer

    def scan(self, fields: Sequence[str]) -> list[list[Span]]:
        return self._answer(fields)


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_that_cannot_be_true_withholds_the_field(answer: str) -> None:
    own = Funnel(RedactionSettings(), KEY, _Answering(ANSWERS[answer]))
    texts = {"a": f"see {SECRET}", "b": f"and {BARE}"}
    clean = own.redact_fields(texts)
    assert leaked("\n".join(clean.texts.values()), VALUES) == []
    assert own.scan_published(list(texts.values()))


# --- odd texts --------------------------------------------------------------------------------------------------------

ODD = {
    "nul": "\0",
    "nuls": "\0" * 5_000,
    "lone surrogate": "\ud800",
    "surrogates turned round": "\udc00\ud800",
    "escaped bytes": b"\xff\xfe\x80abc".decode("utf-8", "surrogateescape"),
    "replacement": "\ufffd",
    "bom": "\ufeff",
    "no character": "\uffff\U0010ffff",
    "private use": "\ue000\U000f0000",
    "right to left": "\u202e\u2066",
    "combining": "e" + "\u0301" * 300,
    "controls": "".join(map(chr, range(1, 32))),
    "line ends": "\r\n\x85\u2028\u2029\x0b\x0c",
    "emoji": "👩‍👩‍👧‍👦🇩🇪",
    "astral": "𝒳𝟘" * 30,
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_characters_around_a_secret_hide_nothing(odd: str) -> None:
    own = funnel()
    strange = ODD[odd]
    for text in (
        f"{strange}{SECRET}",
        f"{SECRET}{strange}",
        f"{strange} {SECRET} {strange}",
        f"x {strange} y {SECRET}",
    ):
        clean = own.redact_fields({"t": text, "u": strange})
        assert leaked(clean.texts["t"], [SECRET]) == []
        assert own.redact_fields(clean.texts).texts == clean.texts
        assert own.scan_published(list(clean.texts.values())) == []


def test_odd_characters_inside_a_secret_leave_no_long_piece() -> None:
    own = funnel()
    for name, strange in ODD.items():
        if len(strange) > 40 or name == "escaped bytes":
            continue
        cut = f"{SECRET[:20]}{strange}{SECRET[20:]}"
        out = own.redact_fields({"t": f"see {cut} and {SECRET}"}).texts["t"]
        assert leaked(out, [SECRET]) == [], name


# --- every place around internal cuts ---------------------------------------------------------------------------------

CUTS = sorted({views.REGION, 400, 512, readings.MAX_BLOB, memory.MAX_VALUE})


def _fillers() -> dict[str, Callable[[int], str]]:
    source = random.Random("fillers")
    words = ["the", "quick", "brown", "fox", "jumps", "over", "it", "and", "then", "goes", "on", "to", "next", "one"]
    prose = " ".join(source.choice(words) for _ in range(60_000))
    lines = "\n".join(f"{n:>6}  {source.choice(words)} = {source.choice(words)};" for n in range(30_000))
    chinese = "".join(source.choice("我们今天讨论了数据库的选择和部署的问题，") for _ in range(200_000))
    return {
        "prose": lambda n: prose[:n],
        "code": lambda n: lines[:n],
        "chinese": lambda n: chinese[:n],
        "dashes": lambda n: "-" * n,
        "escapes": lambda n: ("\\n" * n)[:n],
    }


FILLERS = _fillers()
SHOWN: dict[str, Callable[[str], str]] = {
    "plain": lambda value: value,
    "zero-width": lambda value: f"{value[:9]}\u200b{value[9:]}",
    "wrapped": lambda value: f"{value[:60]}\n{value[60:]}" if len(value) > 60 else value,
    "joined": lambda value: f'"{value[:14]}" + "{value[14:]}"',
    "percent": lambda value: "".join(f"%{ord(c):02X}" for c in value),
}


@pytest.mark.parametrize("filler", FILLERS)
@pytest.mark.parametrize("shown", SHOWN)
def test_no_offset_around_an_internal_cut_lets_a_secret_through(filler: str, shown: str) -> None:
    own = funnel()
    value = token(STRIPE, "cuts") if shown == "wrapped" else SECRET
    texts: dict[str, str] = {}
    for cut in CUTS:
        for offset in range(cut - len(value) - 4, cut + 5, 7):
            texts[f"{cut}/{offset}"] = f"{FILLERS[filler](offset)} {SHOWN[shown](value)} {FILLERS[filler](40)}"
    for name, text in texts.items():
        out = own.redact_fields({"t": text}).texts["t"]
        assert leaked(out, [value]) == [], name


@pytest.mark.parametrize("size", [*CUTS, 20_000])
def test_a_secret_in_an_encoded_run_of_any_length_is_masked_or_the_run_is_opaque(size: int) -> None:
    """Beyond what is decoded, the run is judged as a whole: what it shows as text is nothing of the secret."""
    own = funnel()
    for place in (0, size // 2, size):
        plain = f"{FILLERS['prose'](place)} GITHUB_TOKEN={SECRET} {FILLERS['prose'](size - place)}"
        for skew in range(3):
            shown = base64_of("x" * skew + plain)
            out = own.redact_fields({"t": f"blob {shown} end"}).texts["t"]
            assert leaked(out, [SECRET]) == []


def _shows(text: str, value: str) -> bool:
    """Does any run of base64 or hex in a text hold a value?"""
    for found in re.finditer(r"[A-Za-z0-9+/]{24,}", text):
        run = found[0]
        plain = [base64.b64decode(run[skew : skew + (len(run) - skew) // 4 * 4]) for skew in range(4)]
        if re.fullmatch("[0-9a-f]+", run):
            plain.append(bytes.fromhex(run[: len(run) // 2 * 2]))
        if any(value.encode() in data for data in plain):
            return True
    return False


@pytest.mark.parametrize("encoded", [base64_of, lambda text: text.encode().hex()], ids=["base64", "hex"])
def test_what_is_not_decoded_of_a_long_encoded_text_is_masked(
    monkeypatch: pytest.MonkeyPatch, encoded: Callable[[str], str]
) -> None:
    own = funnel()
    monkeypatch.setattr(views, "MAX_DECODED", 3_000)
    monkeypatch.setattr(engine, "MAX_RUN", 3_996)
    for place in (100, 2_900, 3_100, 5_000):
        shown = encoded(f"{FILLERS['prose'](place)} GITHUB_TOKEN={SECRET} {FILLERS['prose'](4_000)}")
        out = own.redact_fields({"t": f"blob {shown} end"}).texts["t"]
        assert out.startswith("blob ")
        assert out.endswith(" end")
        assert not _shows(out, SECRET[6:30])


@pytest.mark.parametrize("spare", [-2_000, -1, 0, 1, 2_000])
def test_a_work_budget_spent_at_any_place_withholds_the_field(monkeypatch: pytest.MonkeyPatch, spare: int) -> None:
    own = funnel()
    text = f"{FILLERS['code'](3_000)} {SECRET} {FILLERS['prose'](3_000)} {SECRET}"
    spent: list[int] = []
    original = work.Work.spend

    def counted(self: Any, steps: int) -> None:
        spent.append(steps)
        original(self, steps)

    with monkeypatch.context() as watching:
        watching.setattr(work.Work, "spend", counted)
        own.redact_fields({"t": text})
    for share in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0):
        monkeypatch.setattr(work, "WORK_BASE", int(sum(spent) * share) + spare)
        monkeypatch.setattr(work, "WORK_PER_CHARACTER", 0)
        clean = own.redact_fields({"t": text, "u": "fine"})
        assert leaked(clean.texts["t"], [SECRET]) == []
        assert clean.texts["t"] == "[WITHHELD:work-limit]" or not clean.withheld


def test_a_field_beyond_the_limit_is_withheld_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(funnels, "MAX_FIELD", 1_000)
    clean = funnel().redact_fields({"t": f"{SECRET} {'x ' * 500}", "u": f"see {SECRET}"})
    assert clean.texts == {"t": "[WITHHELD:too-long]", "u": "see [REDACTED:github-pat]"}
    assert clean.withheld == [("t", "too-long")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["prose", "one run", "chinese"])
def test_a_field_of_64_million_characters(kind: str) -> None:
    block = {
        "prose": FILLERS["prose"](100_000),
        "one run": "aB3dE5gH" * 12_500,
        "chinese": FILLERS["chinese"](100_000),
    }[kind]
    half = block * (MAX_FIELD // len(block) // 2)
    text = f"{half} {SECRET} {half}"[: MAX_FIELD - 60] + f" {SECRET}"
    clean = funnel().redact_fields({"t": text})
    assert SECRET not in clean.texts["t"]
    assert leaked(clean.texts["t"][len(half) - 10 : len(half) + 60] + clean.texts["t"][-200:], [SECRET]) == []


@pytest.mark.parametrize("sign", [chr(code) for code in range(32, 127)] + ["\n", "\t", "中", "é", "\u200b"])
def test_a_line_of_one_sign_is_no_fault(sign: str) -> None:
    engine = RuleEngine()
    for size in (20, 21, 79, 300):
        for text in (sign * size, "a heading\n" + sign * size, sign * size + "\ntext", "x" + sign * size + "y"):
            assert engine.scan([text])[0] == [] or sign.isdigit(), "nothing to hide, and no error that hides all"
