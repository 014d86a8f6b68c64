from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace_pipeline.model import Attachment, Citation, Conversation, Message
from palace_pipeline.redaction.engine import RuleEngine
from palace_pipeline.redaction.funnel import Funnel, conversation_fields
from palace_pipeline.redaction.hits import Span
from palace_pipeline.redaction.work import WorkLimit
from palace_pipeline.settings import RedactionSettings
from tests.redaction.samples import GITHUB, OPAQUE, PASSWORD, STRIPE, base64_of, funnel, key_block, token

FUNNEL = funnel()
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def _conversation(value: str) -> Conversation:
    message = Message(
        f"id-{value}",
        "user",
        f"use {value} now",
        speaker=f"me {value}",
        tool_name=f"run {value}",
        model="m",
        created_at=NOW,
        attachment=[Attachment(name=f"{value}.txt", type="text/plain", size=3, ref="ref", text=f"it is {value}")],
        citations=[Citation(url=f"https://acme.dev/?token={value}", title=f"about {value}")],
    )
    return Conversation(
        "chatgpt",
        "c1",
        [message, Message("m2", "assistant", "fine")],
        title=f"key {value}",
        account="jane.roe@acme-corp.de",
        project=f"/srv/{value}",
        source_file=f"exports/{value}.json",
        created_at=NOW,
    )


def test_every_text_of_a_conversation_goes_through_and_structure_stays() -> None:
    value = token(GITHUB)
    before = _conversation(value)
    result = FUNNEL.redact_conversation(before)
    after = result.conversation
    assert after.messages[0].message_id == f"id-{value}"  # a structural id is exempt
    after.messages[0].message_id = "x"
    assert value not in repr(after)
    assert "jane.roe" not in repr(after)
    assert after.messages[0].text == "use [REDACTED:github-pat] now"
    assert (after.conversation_id, after.messages[0].created_at, after.messages[0].model) == ("c1", NOW, "m")
    assert after.messages[1] == before.messages[1]
    assert value in before.title  # type: ignore[operator]  # the input is not changed
    fields = {f.field for f in result.findings}
    assert fields == {
        "title",
        "account",
        "project",
        "source_file",
        "messages.0.text",
        "messages.0.speaker",
        "messages.0.tool_name",
        "messages.0.attachment.0.name",
        "messages.0.attachment.0.text",
        "messages.0.citations.0.url",
        "messages.0.citations.0.title",
    }
    assert {f.seq for f in result.findings} == {None, 0}
    assert len({f.fingerprint for f in result.findings if f.kind == "github-pat"}) == 1
    assert value not in repr(result.findings)


def test_what_one_message_claims_is_masked_in_all_others_also_earlier_ones() -> None:
    value = token(OPAQUE)
    messages = [
        Message("a", "tool", f"seen: {value}"),
        Message("b", "user", f"CO_API_KEY={value}"),
        Message("c", "user", f"({value[5:]})"),
    ]
    clean = FUNNEL.redact_conversation(Conversation("claude", "c", messages, title=f"retry {value}")).conversation
    assert all(value[5:] not in text for text in [clean.title or "", *(m.text for m in clean.messages)])


@pytest.mark.parametrize(
    "name", ["plain", "zero-width", "ansi", "json", "percent", "base64", "wide", "concat", "wrap", "nul"]
)
def test_disguises(name: str) -> None:
    value = token(STRIPE, name)
    shown = {
        "plain": value,
        "zero-width": "\u200b".join([value[:5], value[5:30], value[30:]]),
        "ansi": value[:5] + "\x1b[0m\x1b[31m" + value[5:],
        "json": json.dumps({"raw": json.dumps({"out": f"line\n{value}"})}),
        "percent": "".join(f"%{ord(c):02X}" for c in value),
        "base64": base64_of(f"STRIPE_KEY={value} # prod"),
        "wide": "".join(chr(ord(c) + 0xFEE0) for c in value),
        "concat": f'"{value[:8]}" + "{value[8:]}"',
        "wrap": f"{value[:50]}\n{value[50:]}",
        "nul": f"a\x00b {value}",
    }[name]
    out = FUNNEL.redact_fields({"text": f"the key is {shown} ok"}).texts["text"]
    assert out.startswith("the key is ")
    assert out.endswith(" ok")
    assert len(out) < 120
    assert value[12:40] not in out


class _Failing:
    """The built-in engine, but a text with a certain word in it breaks it."""

    version = "failing"

    def __init__(self, error: Exception) -> None:
        self._engine = RuleEngine()
        self._error = error
        self.kinds = self._engine.kinds

    def scan(self, fields: Sequence[str]) -> list[list[Span]]:
        if any("boom" in text for text in fields):
            raise self._error
        return self._engine.scan(fields)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (WorkLimit("spent"), "work-limit"),
        (ValueError("boom quotes"), "redactor-error"),
        (MemoryError(), "redactor-error"),
    ],
)
def test_a_field_that_breaks_the_engine_is_withheld_and_the_rest_goes_on(error: Exception, reason: str) -> None:
    value = token(GITHUB)
    clean = Funnel(RedactionSettings(), b"k", _Failing(error)).redact_fields(
        {"a": f"boom {value}", "b": f"key {value}", "c": "fine"}
    )
    assert clean.texts == {"a": f"[WITHHELD:{reason}]", "b": "key [REDACTED:github-pat]", "c": "fine"}
    assert clean.withheld == [("a", reason)]


class _Restless:
    """An engine that finds one more letter in whatever it is given, always."""

    version = "restless"
    kinds = frozenset({"letter"})

    def scan(self, fields: Sequence[str]) -> list[list[Span]]:
        places = [[m.start() for m in re.finditer(r"(?<![A-Z:])[a-z](?![a-z]*\])", text)] for text in fields]
        return [[Span(i, i + 1, "letter", "r", "rule", 1.0) for i in found[:1]] for found in places]


def test_a_text_whose_masks_never_settle_is_withheld() -> None:
    clean = Funnel(RedactionSettings(), b"k", _Restless()).redact_fields({"t": "abcdefghijklmnop"})
    assert clean.withheld == [("t", "not-settled")]


def test_the_work_budget_counts_steps_and_raises() -> None:
    from palace_pipeline.redaction.work import Work

    work = Work(10)
    with pytest.raises(WorkLimit):
        work.spend(10**9)


PIECES = st.sampled_from(
    [
        token(GITHUB),
        f"DB_PASSWORD={token(PASSWORD)}",
        f"Bearer {token(OPAQUE)}",
        "jane.roe@acme-corp.de",
        "\x00",
        "\ud800",
        "\r\n",
        "\x1b[1m",
        "密码：",
        "[REDACTED:email]",
        "[REDACTED:",
        "[WITHHELD:x]",
        "postgres://a:",
        "@db/x",
        "key = ",
        '"',
        "\\",
        "\u200b",
        "%41",
        " ",
        key_block(lines=3),
        "+49 30 901820",
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=8))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_redaction_is_idempotent_and_changes_nothing_outside_its_spans(parts: list[str]) -> None:
    text = "".join(parts)
    clean = FUNNEL.redact_fields({"text": text})
    out = clean.texts["text"]
    assert FUNNEL.redact_fields({"text": out}).texts["text"] == out
    assert FUNNEL.scan_published([out]) == []
    if clean.withheld:
        return
    position, rest = 0, out
    for finding in clean.findings:
        kept = text[position : finding.start]
        assert rest.startswith(kept)
        mask = f"[REDACTED:{finding.kind}]"
        assert rest[len(kept) :].startswith(mask)
        rest = rest[len(kept) + len(mask) :]
        position = finding.end
    assert rest == text[position:]


def test_masks_that_somebody_wrote_hide_nothing() -> None:
    value = token("[0-9a-f]{32}")
    out = FUNNEL.redact_fields({"t": f"[REDACTED:sk-{value}]"}).texts["t"]
    assert value not in out


def test_correlation_tells_equal_from_different_but_not_for_guessable_values() -> None:
    same, other = token(GITHUB, 1), token(GITHUB, 2)
    out = funnel(correlate=True).redact_fields({"t": f"{same} {other} {same} jane.roe@acme-corp.de"}).texts["t"].split()
    assert out[0] == out[2] != out[1]
    assert out[0].startswith("[REDACTED:github-pat:")
    assert out[3] == "[REDACTED:email]"
    again = funnel(correlate=True).redact_fields({"t": out[0]}).texts["t"]
    assert again == out[0]


def test_the_users_own_patterns_values_and_exceptions(tmp_path: Path) -> None:
    env = tmp_path / "prod.env"
    secret = token("[a-z]{5}[0-9]{3}[a-z]{4}")
    env.write_text(f"# comment\nNAME=production\nexport THING='{secret}'\nDEBUG=true\n", encoding="utf-8")
    own = funnel(
        private_patterns=[r"PROJ-\d{4}"],
        known_values=["Blue Heron"],
        env_files=[str(env)],
        allow=["jane.roe@acme-corp.de"],
    )
    out = own.redact_fields(
        {"t": f"PROJ-1234 of 项目 Blue Heron uses {secret} in production, ask jane.roe@acme-corp.de, PROJ-99"}
    ).texts["t"]
    assert out == (
        "[REDACTED:private-pattern] of 项目 [REDACTED:known-value] uses [REDACTED:known-value] in production, "
        "ask jane.roe@acme-corp.de, PROJ-99"
    )


def test_an_env_file_that_cannot_be_read_stops_the_funnel(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        funnel(env_files=[str(tmp_path / "gone.env")])


def test_the_recipe_follows_the_settings_and_never_quotes_them() -> None:
    base, other = funnel().recipe, funnel(known_values=["Blue Heron"]).recipe
    assert base == funnel().recipe
    assert base != other
    assert "Heron" not in other


def test_published_texts_are_looked_at_once_more() -> None:
    value = token(GITHUB)
    (leak,) = FUNNEL.scan_published(["fine", f"see {value}", "[REDACTED:github-pat] and [WITHHELD:redactor-error]"])
    assert (leak.index, leak.start, leak.end, leak.kind) == (1, 4, 44, "github-pat")


def test_the_words_of_a_mask_tell_nothing_of_what_stands_beside_it() -> None:
    digest = token("[0-9a-f]{32}")
    for mask in ("[REDACTED:secret]", "[REDACTED:password]", "[REDACTED:bearer-token]"):
        text = f"what does {mask} do, and {digest}?"
        assert FUNNEL.redact_fields({"text": text}).texts["text"] == text
        assert FUNNEL.scan_published([text]) == []


def test_texts_of_which_nothing_was_masked_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    original, looks = RuleEngine.scan, list[list[str]]()

    def scan(self: RuleEngine, fields: Sequence[str]) -> list[list[Span]]:
        looks.append(list(fields))
        return original(self, fields)

    value = token(GITHUB)
    clean = Conversation("chatgpt", "c", [Message("1", "user", "hello"), Message("2", "bot", "hello")], title="[1]")
    dirty = Conversation("chatgpt", "c", [Message("1", "user", f"use {value} now")], title="hello")
    own = funnel()
    monkeypatch.setattr(RuleEngine, "scan", scan)
    kept = own.redact_conversation(clean).conversation
    assert [text for _, text in conversation_fields(kept)] == ["[1]", "hello", "hello"]
    assert own.scan_published(["[1]", "hello"]) == []
    assert looks == [["[1]", "hello"]]
    assert len(own.scan_published([f"use {value} now"])) == 1  # other texts
    own.redact_conversation(clean)
    assert len(own.scan_published(["hello", "[1]", f"use {value} now"])) == 1
    looks.clear()
    own.redact_conversation(dirty)
    assert own.scan_published(["hello", "use [REDACTED:github-pat] now"]) == []
    assert looks[0] == ["hello", f"use {value} now"]
    assert looks[-1][0] == "hello"  # with the mask in it, the other text is looked at once more
    assert value not in repr(looks[-1])
