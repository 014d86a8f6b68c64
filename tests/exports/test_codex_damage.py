"""Codex rollouts: damage, growth, and records of any shape."""

from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.exports.base import Report
from palace_pipeline.exports.codex import READER
from palace_pipeline.model import message_hash, to_record
from tests.exports.codex_lines import FILE, asks, event, header, item, lines, message, says
from tests.exports.memory_member import MemoryMember, read, shown


def test_damage_is_counted_with_its_line():
    data = lines(
        header(),
        b"\0" * 40,
        lines(asks(1, "A"))[:-9],
        says(2, "nul \0 here"),
        b'{"timestamp":"2026-' + lines(says(3, "glued"))[:-1],
    )
    conversations, report = read([READER], {FILE: data}, FILE)
    assert [text for _, _, text in shown(conversations[0])] == ["nul  here", "glued"]
    assert [(s.reason, s.where) for s in report.skips] == [("damaged line", f"{FILE}: line {n}") for n in (2, 3, 5)]


# --- what always holds ---

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0\r<#")
WORDS = st.text(CHARACTERS, min_size=1, max_size=10).filter(lambda s: s.strip())


@st.composite
def rollouts(draw):
    """[(texts that a line tells, line)]: every message by one source or both, in either order."""
    found = [((), header())]
    second = 0
    for turn in range(draw(st.integers(1, 4))):
        parts = [("user", f"q{turn} " + draw(WORDS))]
        for step in range(draw(st.integers(0, 4))):
            kind = draw(st.sampled_from(["assistant", "thinking", "tool"]))
            parts.append((kind, f"{kind[0]}{turn}.{step} " + draw(WORDS)))
        for kind, text in parts:
            second += 1
            if kind == "tool":
                found.append(((), item(second, "function_call", name="f", arguments="{}", call_id=text)))
                found.append(((text,), item(second, "function_call_output", call_id=text, output=text)))
                continue
            by_event = {
                "user": asks(second, text),
                "assistant": says(second, text),
                "thinking": event(second, "agent_reasoning", text=text),
            }[kind]
            by_item = (
                item(second, "reasoning", summary=[{"text": text}])
                if kind == "thinking"
                else message(second, kind, text)
            )
            found += [((text,), told) for told in draw(st.sampled_from([
                (by_event,), (by_item,), (by_event, by_item), (by_item, by_event)
            ]))]  # fmt: skip
    return found


@settings(max_examples=80)
@given(rollouts(), st.dictionaries(st.integers(1, 60), st.sampled_from(["cut", "nul", "list", "glued"])))
def test_whatever_lines_are_damaged_the_others_are_all_there_once(rollout, harm):
    written = [lines(record)[:-1] for _, record in rollout]
    ways = {
        "cut": lambda raw: raw[: len(raw) // 2],
        "nul": lambda _: b"\0" * 9,
        "list": lambda _: b"[1]",
        "glued": lambda raw: raw[: len(raw) // 3] + raw[: len(raw) // 2],
    }
    broken = [ways[harm[n]](raw) if n in harm else raw for n, raw in enumerate(written)]
    conversations, report = read([READER], {FILE: b"\n".join(broken)}, FILE)
    rows = [m.text for c in conversations for m in c.messages if m.kind != "tool_call"]
    left = {text for n, (texts, _) in enumerate(rollout) if n not in harm for text in texts}
    assert sorted(rows) == sorted(left)
    assert all(m.visible or m.role in ("tool", "thinking") for c in conversations for m in c.messages)
    damaged = [s for s in report.skips if not s.expected]
    assert len(damaged) == sum(n < len(rollout) for n in harm)


@settings(max_examples=60)
@given(rollouts(), st.data())
def test_a_log_that_grows_keeps_its_ids_and_its_finished_messages(rollout, data):
    length = data.draw(st.integers(1, len(rollout)))
    written = lines(*(record for _, record in rollout))
    cut = len(lines(*(record for _, record in rollout[:length]))) + data.draw(st.integers(0, 30))
    full, _ = read([READER], {FILE: written}, FILE)
    part, _ = read([READER], {FILE: written[:cut]}, FILE)
    whole = [message_hash(m) for c in full for m in c.messages]
    grown = [message_hash(m) for c in part for m in c.messages]
    assert grown == whole[: len(grown)]
    assert len({m.message_id for c in full for m in c.messages}) == len(whole)


KEYS = ["timestamp", "type", "payload", "id", "role", "content", "record_type", "instructions"]
INNER_KEYS = (  # noqa: SIM905
    "type id role content text summary arguments output call_id info item message images source timestamp turn_id "
    "forked_from_id num_turns total_token_usage input_tokens thread_name"
).split()
WORDS_OF_THE_FORMAT = (  # noqa: SIM905
    "session_meta response_item event_msg message user assistant function_call function_call_output reasoning x {} [1] "
    "token_count item_completed UserMessage thread_rolled_back user_message input_text"
).split()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS_OF_THE_FORMAT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER_KEYS), inner, max_size=5),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES), min_size=1, max_size=8))
def test_no_record_is_too_odd(records):
    report = Report(FILE)
    for conversation in READER.read(MemoryMember({FILE: lines(*records)}, FILE), report):
        ids = [m.message_id for m in conversation.messages]
        assert len(ids) == len(set(ids))
        to_record(conversation)
