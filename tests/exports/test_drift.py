"""The drift alarm: what may be kept of a name, and when a file counts as one of which nothing was understood."""

import secrets
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.drift import (
    MANY_NAMES,
    MAX_NAME,
    NOT_A_NAME,
    cleaned,
    name,
    understood_nothing,
    unknown_keys,
)
from palace_pipeline.model import Skip

NAMES = """
hologram web_search_20250305 real_time_user_audio_video_asset_pointer file-history-snapshot ItemCompleted x_files
server_tool_use toolInvocationSerialized isVisibleInTranscriptOnly tool.execution_start $set response.output_item.done
is_do_not_remember conversation_template_id gpt-4o critic ghost brand-new multiStep chat_messages.mood
""".split()  # noqa: SIM905 - twenty quoted names would read worse


def token(alphabet: str, length: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))


@pytest.mark.parametrize("given_name", NAMES)
def test_what_a_programmer_called_something_is_kept(given_name: str) -> None:
    assert name(given_name) == given_name


@pytest.mark.parametrize(
    "value",
    [
        *("", "hello there", "what is the password", "密码", "a\nb", "alice@example.com", "+49 170 1234567", "x" * 300),
        *("3f2504e0-4f89-11d3-9a0c-0305e82c3301", "4111111111111111", "tel:0049170123456", None, 5, ["a"], {"a": 1}),
    ],
)
def test_a_sentence_a_number_or_no_text_at_all_is_no_name(value: object) -> None:
    assert name(value) == NOT_A_NAME


@pytest.mark.parametrize("alphabet", [string.ascii_letters + string.digits, string.hexdigits.lower()])
def test_random_strings_are_no_names(alphabet: str) -> None:
    kept = [t for t in (token(alphabet, 40) for _ in range(300)) if name(t) != NOT_A_NAME]
    kept += [t for t in ("k" + "-" + token(alphabet, 32) for _ in range(300)) if name(t) != NOT_A_NAME]
    assert not kept


def test_a_long_name_is_cut() -> None:
    assert name("_".join(["message"] * 20)) == ("_".join(["message"] * 20))[:MAX_NAME]


def test_counts_are_kept_under_clean_names_and_none_is_lost() -> None:
    counts = {"type:hologram": 2, "type:my secret plan": 3, "type:other words here": 1}
    assert cleaned(counts) == {f"type:{NOT_A_NAME}": 4, "type:hologram": 2}
    assert cleaned({"record type:brand-new": 1, "Mixed:x": 2, "x y z": 2, "type:9": 1}) == {
        "record type:brand-new": 1,
        NOT_A_NAME: 4,
        "type:9": 1,
    }


def test_a_report_never_holds_anything_else() -> None:
    report = Report("x")
    for value in ("hologram", "my secret plan", "hologram", "another secret"):
        report.unknown[f"type:{value}"] += 1
    assert report.unknown == {"type:hologram": 2, f"type:{NOT_A_NAME}": 2}


def test_a_type_of_dozens_of_values_is_data() -> None:
    words = [f"name_{a}{b}" for a in "abcdefg" for b in "abcdefg"]
    assert len(words) > MANY_NAMES
    counts = {f"type:{word}": 1 for word in words} | {"role:critic": 1}
    assert cleaned(counts) == {f"type:{NOT_A_NAME}": len(words), "role:critic": 1}


@given(st.dictionaries(st.text(), st.integers(1, 9)))
def test_any_text_becomes_a_short_plain_name_and_cleaning_again_changes_nothing(counts: dict[str, int]) -> None:
    clean = cleaned(counts)
    assert sum(clean.values()) == sum(counts.values())
    assert all(len(key) <= 30 + 1 + MAX_NAME and key.isascii() for key in clean)
    assert cleaned(clean) == clean


def skip(reason: str, *, expected: bool, unit: str = "message", count: int = 1) -> Skip:
    return Skip(reason, "x", expected, count, unit)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("taken", "skips", "unknown", "nothing"),
    [
        (1, [], {"type:hologram": 9}, False),  # something was taken: new names are told, that is all
        (0, [], {}, True),  # nobody says why
        (0, [skip("conversation without messages", expected=False, unit="conversation")], {}, True),
        (0, [skip("damaged conversation", expected=False, unit="conversation")], {}, True),  # the reader fell over it
        (0, [skip("damaged file", expected=False, unit="file")], {}, True),
        (0, [skip("damaged JSON", expected=False), skip("damaged line", expected=False)], {}, False),
        (0, [skip("cut or damaged: ends inside", expected=False, unit="file")], {}, False),
        (0, [skip("empty conversation", expected=True, unit="conversation", count=1300)], {}, False),
        (0, [skip("empty conversation", expected=True, unit="conversation")], {"block:hologram": 1}, True),
        (0, [skip("channel_join", expected=True, count=20)], {}, False),
        (0, [skip("empty message", expected=True, count=2)], {}, False),
        (0, [skip("empty message", expected=True)] * 6, {}, True),  # the words stand somewhere else now
    ],
)
def test_when_nothing_was_understood(taken: int, skips: list[Skip], unknown: dict[str, int], nothing: bool) -> None:
    assert understood_nothing(taken, skips, unknown) is nothing


KNOWN = {"": frozenset({"id", "nodes"}), "nodes.*.message": frozenset({"text"})}


def test_keys_that_nobody_knows_are_counted_on_each_level() -> None:
    items = [
        {"id": 1, "mood": "secret", "nodes": {"a": {"message": {"text": "t", "tone": 1}}, "b": {"message": None}}},
        {"id": 2, "mood": None, "nodes": [{"message": {"tone": 2}}, 5]},
        None,
    ]
    assert unknown_keys(items, KNOWN) == {"key:mood": 2, "key:nodes.message.tone": 2}


def test_a_key_that_is_data_is_not_repeated() -> None:
    assert unknown_keys([{"what Alice said": 1, token(string.hexdigits, 40): 2}], KNOWN) == {f"key:{NOT_A_NAME}": 2}


def test_only_a_few_records_are_looked_at() -> None:
    big = [{"id": n, "nodes": {str(k): {"message": {"tone": k}} for k in range(1000)}} for n in range(1000)]
    counts = unknown_keys(big, KNOWN)
    assert counts["key:nodes.message.tone"] <= 400


@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_any_shape_may_stand_anywhere(value: object) -> None:
    assert sum(unknown_keys([value, {"nodes": value}], KNOWN).values()) >= 0
