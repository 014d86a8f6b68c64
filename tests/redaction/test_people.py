from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from palace_pipeline.redaction.engine import RuleEngine
from palace_pipeline.redaction.funnel import Funnel
from palace_pipeline.settings import RedactionSettings
from tests.redaction.samples import GITHUB, token

PEOPLE = ["张伟", ["Jane Doe", "Jane", "JD"], "Жанна Петрова", "김철수", "Zoë"]
SETTINGS = RedactionSettings.model_validate({"people": PEOPLE, "projects": ["Blue Falcon"], "pseudonyms": True})
NAMED = Funnel(SETTINGS, b"k")


def clean(text: str, funnel: Funnel = NAMED) -> str:
    return funnel.redact_fields({"text": text}).texts["text"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Jane Doe wrote, jane answered", "[PERSON_2] wrote, [PERSON_2] answered"),
        ("JANE's plan for BLUE FALCON", "[PERSON_2]'s plan for [PROJECT_1]"),
        ("Janet and Jdk and MyJane1 stay", "Janet and Jdk and MyJane1 stay"),
        ("昨天张伟说了", "昨天[PERSON_1]说了"),
        ("김철수가 왔다", "[PERSON_4]가 왔다"),
        ("Звонила жанна петрова.", "Звонила [PERSON_3]."),
        ("Петрова одна", "Петрова одна"),
        ("ZOË and Zoe", "[PERSON_5] and Zoe"),
        ("J\u200bane Doe hid", "[PERSON_2] hid"),
        ("İJ and JD", "İJ and [PERSON_2]"),
    ],
)
def test_listed_names_get_their_own_pseudonym(text: str, wanted: str) -> None:
    assert clean(text) == wanted
    assert clean(wanted) == wanted


def test_without_pseudonyms_a_name_is_only_masked() -> None:
    funnel = Funnel(RedactionSettings.model_validate({"people": ["Jane Doe"]}), b"k")
    assert clean("ask Jane Doe", funnel) == "ask [REDACTED:person]"


def test_an_address_that_holds_a_name_stays_an_address() -> None:
    assert clean("write to jane.roe@acme-corp.de or Jane") == "write to [REDACTED:email] or [PERSON_2]"


def test_a_name_in_a_speaker_or_a_title_goes_too() -> None:
    got = NAMED.redact_fields({"title": "Call with Jane", "messages.0.speaker": "Jane Doe", "messages.0.text": "hi"})
    assert got.texts == {"title": "Call with [PERSON_2]", "messages.0.speaker": "[PERSON_2]", "messages.0.text": "hi"}
    assert {(f.kind, f.rule, f.layer) for f in got.findings} == {("person", "person-2", "known")}


@given(st.text(max_size=60), st.sampled_from(["张伟", "Jane Doe", "김철수"]), st.text(max_size=60))
def test_a_name_between_blanks_never_survives(before: str, name: str, after: str) -> None:
    text = f"{before} {name} {after}"
    got = clean(text)
    assert name not in got
    assert clean(got) == got


def test_rules_can_be_switched_off_by_kind_and_by_name() -> None:
    text = f"from 52.14.3.7 with {token(GITHUB)}"
    off = Funnel(RedactionSettings(allow_rules=("ip-address",)), b"k")
    assert clean(text, off) == "from 52.14.3.7 with [REDACTED:github-pat]"
    both = Funnel(RedactionSettings(allow_rules=("ip-address", "github-pat")), b"k")
    assert clean(text, both) == text


def test_an_allowed_value_is_not_remembered_either() -> None:
    value = token(GITHUB)
    funnel = Funnel(RedactionSettings(allow=(value,)), b"k")
    assert clean(f"{value} and again {value}", funnel) == f"{value} and again {value}"


def test_a_rule_that_does_not_exist_is_an_error_that_says_so() -> None:
    with pytest.raises(ValueError, match="no kind or rule called ip-adress"):
        RuleEngine(RedactionSettings(allow_rules=("ip-adress",)))


@pytest.mark.parametrize("people", [[""], ["x"], [[]]])
def test_a_name_needs_two_characters(people: list[object]) -> None:
    with pytest.raises(ValidationError):
        RedactionSettings.model_validate({"people": people})


@pytest.mark.parametrize("name", ["张伟", "Bob", "Li"])
def test_a_field_that_is_nothing_but_a_short_name(name: str) -> None:
    funnel = Funnel(RedactionSettings.model_validate({"people": [name], "private_patterns": ["X\\d"]}), b"k")
    got = funnel.redact_fields({"speaker": name, "title": "X7", "text": "hi"})
    assert got.texts == {"speaker": "[REDACTED:person]", "title": "[REDACTED:private-pattern]", "text": "hi"}
    assert funnel.scan_published([name]) != []
