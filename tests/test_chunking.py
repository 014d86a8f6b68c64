"""Chunks: every word once and in order, within the budget, cut where a reader would cut, the same on every run."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from palace_pipeline.chunking import chunk_conversation
from palace_pipeline.chunking.cuts import estimated_ends
from palace_pipeline.model import Attachment, Chunk, Conversation, Message, Role

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


class Words:
    """A tokenizer to calculate by hand with: a token is six characters of a word, or one ideograph or sign."""

    token = re.compile(r"[a-zA-Z0-9_]{1,6}|[^\sa-zA-Z0-9_]")

    def __init__(self, max_tokens: int = 64) -> None:
        self.max_tokens = max_tokens

    def token_offsets(self, text: str) -> NDArray[np.int64]:
        spans = [match.span() for match in self.token.finditer(text)]
        return np.array(spans, np.int64).reshape(-1, 2)

    def count(self, text: str) -> int:
        return len(self.token_offsets(text))


BUDGET = 56
"""Seven eighths of 64."""


def said(*turns: tuple[Role, str]) -> list[Message]:
    return [Message(f"m{number}", role, text) for number, (role, text) in enumerate(turns)]


def chat(*turns: tuple[Role, str], provider: str = "chatgpt", title: str | None = None) -> Conversation:
    return Conversation(provider, "c1", said(*turns), title=title)


def chunks_of(conversation: Conversation, max_tokens: int = 64) -> list[Chunk]:
    return chunk_conversation(conversation, Words(max_tokens))


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


# --- units ------------------------------------------------------------------------------------------------------------


def test_question_and_answer_are_one_chunk_and_the_text_is_verbatim():
    [chunk] = chunks_of(chat(("user", "Why is\n\nthe sky  blue?"), ("assistant", "> quoted\n\nRayleigh scattering.\n")))
    assert chunk.text == "Why is\n\nthe sky  blue?\n\n> quoted\n\nRayleigh scattering."
    assert (chunk.kind, chunk.first_seq, chunk.last_seq, chunk.context, chunk.chunk_index) == ("exchange", 0, 1, "", 0)
    assert chunk.tokens == 13


def test_a_unit_takes_all_questions_in_a_row_and_all_answers_up_to_the_next_question():
    turns: list[tuple[Role, str]] = [
        ("assistant", "Hello!"),
        ("user", "One"),
        ("user", "two"),
        ("assistant", "three"),
        ("bot", "four"),
        ("user", "five"),
    ]
    chunks = chunks_of(chat(*turns))
    assert [chunk.text for chunk in chunks] == ["Hello!", "One\n\ntwo\n\nthree\n\nfour", "five"]
    assert [(chunk.first_seq, chunk.last_seq) for chunk in chunks] == [(0, 0), (1, 4), (5, 5)]
    assert [chunk.chunk_index for chunk in chunks] == [0, 1, 2]


def test_blank_hidden_and_left_branches_give_no_chunk():
    conversation = chat(("user", "asked"), ("assistant", "  \n"), ("assistant", "gone"), ("assistant", "secret"))
    conversation.messages[2].branch_active = False
    conversation.messages[3].hidden_reason = "injected"
    assert [chunk.text for chunk in chunks_of(conversation)] == ["asked"]
    assert chunks_of(chat(("user", "\n"))) == []
    assert chunks_of(chat()) == []


def test_tool_output_and_thinking_are_chunks_of_their_own_kind_in_reading_order():
    conversation = chat(
        ("user", "list it"),
        ("thinking", "I will"),
        ("tool", "a.txt\nb.txt"),
        ("assistant", "two files"),
        ("user", "ok"),
    )
    chunks = chunks_of(conversation)
    assert [(c.kind, c.first_seq, c.last_seq, c.text) for c in chunks] == [
        ("exchange", 0, 3, "list it\n\ntwo files"),
        ("thinking", 1, 1, "I will"),
        ("tool", 2, 2, "a.txt\nb.txt"),
        ("exchange", 4, 4, "ok"),
    ]


def test_an_attachment_is_a_document_with_its_name_before_it():
    conversation = chat(("user", "see file"), ("assistant", "seen"))
    conversation.messages[0].attachment = [
        Attachment(name="plan.md", text="# Plan\n\nBuy bread."),
        Attachment(name="x"),
    ]
    exchange, document = chunks_of(conversation)
    assert (document.kind, document.first_seq, document.last_seq) == ("document", 0, 0)
    assert (document.context, document.text) == ("plan.md", "# Plan\n\nBuy bread.")
    assert exchange.text == "see file\n\nseen"


def test_the_title_stands_before_every_exchange_but_is_not_part_of_it():
    [chunk] = chunks_of(chat(("user", "and butter?"), title="Shopping"))
    assert (chunk.context, chunk.text, chunk.tokens) == ("Shopping", "and butter?", 5)


def test_a_continued_answer_carries_its_question():
    answer = "\n\n".join(f"Paragraph {n} has some eight words in it." for n in range(12))
    first, *rest = chunks_of(chat(("user", "What is in it?"), ("assistant", answer)))
    assert first.context == ""
    assert first.text.startswith("What is in it?\n\nParagraph 0")
    assert {chunk.context for chunk in rest} == {"What is in it?"}
    assert [(c.first_seq, c.last_seq) for c in rest] == [(1, 1)] * len(rest)
    assert all(chunk.text.startswith("Paragraph") and chunk.text.endswith("it.") for chunk in rest)


def test_a_long_question_is_shortened_to_its_beginning_and_its_end():
    question = "Here is my log: " + "line " * 200 + "so why does it fail?"
    chunks = chunks_of(chat(("user", question), ("assistant", "word " * 100)), max_tokens=256)
    context = chunks[-1].context
    assert context.startswith("Here is my log: line")
    assert context.endswith("so why does it fail?")
    assert Words().count(context) <= 256 * 7 // 8 // 6


# --- where it is cut --------------------------------------------------------------------------------------------------


def test_code_is_not_cut_when_it_fits():
    code = "```python\n" + "\n".join(f"x = {n}" for n in range(10)) + "\n```"
    prose = "Some words of prose come first here. " * 3
    chunks = chunks_of(chat(("user", "how?"), ("assistant", f"{prose}\n\n{code}\n\nThat is all there is to say.")))
    assert sum(code in chunk.text for chunk in chunks) == 1
    assert len(chunks) > 1


def test_long_code_is_cut_between_lines_and_never_beside_its_fence():
    code = "\n".join(f"value = compute({n})" for n in range(40))
    chunks = chunks_of(chat(("user", "how?"), ("assistant", f"```\n{code}\n```")))
    assert len(chunks) > 3
    for chunk in chunks:
        lines = chunk.text.split("\n")
        assert lines[-1] == "```" or lines[-1].startswith("value")
        assert len(lines) > 2
        assert re.fullmatch(r"value = compute\(\d+\)", lines[0]) or chunk.chunk_index == 0


def test_long_code_is_rather_cut_at_a_blank_line():
    parts = ["\n".join(f"    part{n} = line({k})" for k in range(3)) for n in range(8)]
    chunks = chunks_of(chat(("user", "how?"), ("assistant", "```\n" + "\n\n".join(parts) + "\n```")))
    assert len(chunks) > 3
    assert all(chunk.text.endswith("line(2)") for chunk in chunks[:-1])
    assert all(chunk.text.startswith("    part") for chunk in chunks[1:])


def test_a_table_stays_whole_and_its_head_keeps_its_rule():
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| {n} | {n} |" for n in range(5))
    text = "Words before the table, quite a few of them to fill the room. " * 2
    chunks = chunks_of(chat(("assistant", f"{text}\n\n{table}")))
    assert sum(table in chunk.text for chunk in chunks) == 1


def test_list_items_stay_whole():
    items = [f"- item {n} is about one thing and only that" for n in range(15)]
    chunks = chunks_of(chat(("user", "list"), ("assistant", "\n".join(items))))
    assert len(chunks) > 1
    kept = [line for chunk in chunks for line in chunk.text.split("\n") if line.startswith("- ")]
    assert kept == items


def test_chinese_is_cut_after_sentences():
    sentence = "这是一个测试分块的中文句子，它有标点。"
    chunks = chunks_of(chat(("user", "问"), ("assistant", sentence * 12)))
    assert len(chunks) > 3
    assert all(chunk.text.endswith("。") for chunk in chunks)


def test_a_heading_stays_with_its_text():
    sections = "\n\n".join(f"## Part {n}\n\n" + "some words here now. " * 5 for n in range(8))
    chunks = chunks_of(chat(("user", "go"), ("assistant", sections)))
    assert len(chunks) > 2
    assert not any(re.search(r"## Part \d$", chunk.text) for chunk in chunks)


def test_an_endless_word_is_cut_hard_and_whole_again_when_joined():
    word = "abcdef" * 500
    chunks = chunks_of(chat(("user", word)))
    assert "".join(chunk.text for chunk in chunks) == word
    assert max(chunk.tokens for chunk in chunks) <= BUDGET


def test_a_hard_cut_leaves_marks_and_emoji_parts_with_their_letter():
    text = "e\u0301" * 300 + "👩\u200d🔬" * 100
    for chunk in chunks_of(chat(("user", text))):
        assert chunk.text[0] not in "\u0301\u200d🔬"
        assert chunk.text[-1] != "\u200d"


def test_the_last_piece_is_no_crumb():
    text = " ".join(f"word{n % 10}." for n in range(BUDGET // 2 + 2))
    assert Words().count(text) == BUDGET + 4
    first, second = chunks_of(chat(("user", text)))
    assert min(first.tokens, second.tokens) > BUDGET // 4


def test_text_without_tokens_does_not_grow_endless():
    chunks = chunks_of(chat(("user", "a" + "\u3000" * 50_000 + "b")))
    assert max(len(chunk.text) for chunk in chunks) <= 64 * BUDGET


# --- people -----------------------------------------------------------------------------------------------------------


def people(*turns: tuple[float, str, str], provider: str = "slack") -> Conversation:
    messages = [
        Message(f"m{n}", "user", text, speaker=name, created_at=NOON + timedelta(minutes=minute))
        for n, (minute, name, text) in enumerate(turns)
    ]
    return Conversation(provider, "c1", messages, title="general")


def test_people_are_named_and_a_pause_begins_a_new_chunk():
    chunks = chunks_of(people((0, "Ana", "Lunch?"), (30, "李雷", "好"), (61, "Ana", "Back.\nNow.")))
    assert [(c.kind, c.text, c.context) for c in chunks] == [
        ("people", "Ana: Lunch?\n李雷: 好", ""),
        ("people", "Ana: Back.\nNow.", ""),
    ]
    assert [(c.first_seq, c.last_seq) for c in chunks] == [(0, 1), (2, 2)]


def test_a_group_of_peoples_messages_carries_the_message_before_it():
    turns = [(n, "Ana", f"message {n} " + "word " * 15) for n in range(6)]
    chunks = chunks_of(people(*turns))
    assert len(chunks) > 1
    for before, chunk in pairwise(chunks):
        assert before.text.endswith(chunk.context)
        assert chunk.context
        assert chunk.text.startswith("Ana: message")


def test_a_naive_time_is_not_compared_with_one_of_a_zone():
    conversation = people((0, "Ana", "one"), (0, "Bo", "two"))
    conversation.messages[1] = replace(conversation.messages[1], created_at=None, local_time="2024-05-03T12:00:00")
    assert [chunk.text for chunk in chunks_of(conversation)] == ["Ana: one\nBo: two"]


def test_several_speakers_without_an_assistant_are_people_whatever_the_provider():
    assert chunks_of(people((0, "A", "x"), (1, "B", "y"), provider="transcript"))[0].kind == "people"
    assert chunks_of(people((0, "A", "x"), (1, "A", "y"), provider="transcript"))[0].kind == "exchange"


# --- documents --------------------------------------------------------------------------------------------------------


def test_a_document_is_cut_at_headings_and_pieces_name_the_heading_above():
    section = "Plain words that say something about it. " * 12
    text = f"# One\n\n{section}\n\n# Two\n\nshort\n\n# Three\n\n{section}"
    chunks = chunks_of(chat(("user", text), provider="markdown", title="notes.md"))
    assert {chunk.kind for chunk in chunks} == {"document"}
    headed = [chunk for chunk in chunks if chunk.text.startswith("# ")]
    assert [chunk.text.split("\n")[0] for chunk in headed] == ["# One", "# Three"]
    contexts = ["notes.md", "notes.md\n# One", "notes.md\n# One", "notes.md", "notes.md\n# Three", "notes.md\n# Three"]
    assert [chunk.context for chunk in chunks] == contexts


# --- identity ---------------------------------------------------------------------------------------------------------


def test_equal_chunks_of_one_conversation_have_different_ids_and_other_conversations_have_others():
    turns: list[tuple[Role, str]] = [("user", "thanks"), ("assistant", "welcome")]
    one, two = chunks_of(chat(*turns, *turns))
    assert one.text == two.text
    assert one.drawer_id != two.drawer_id
    assert re.fullmatch("[0-9a-f]{24}", one.drawer_id)
    other = replace(chat(*turns), conversation_id="c2")
    assert chunks_of(other)[0].drawer_id != one.drawer_id


def test_a_new_title_moves_no_id_but_asks_for_a_new_vector():
    [before], [after] = (chunks_of(chat(("user", "x"), title=title)) for title in (None, "Letters"))
    assert before.drawer_id == after.drawer_id
    assert before.text_hash != after.text_hash


# --- invariants -------------------------------------------------------------------------------------------------------

BLOCKS = st.sampled_from(
    [
        "Plain words, a sentence. And another one! Is it?",
        "中文的句子，很短。还有一句！",
        "- item one\n- item two\n  - nested\n1. first",
        "```py\nx = 1\n\ny = 2\n```",
        "``` never closed\ncode",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "# Heading",
        "lead in:",
        "   \n\n\t",
        "x" * 700,
        "одно слово за другим " * 20,
        "汉" * 200,
        "\u200b\u3000\u00a0 \u0085",
        "a\u0301👩\u200d🔬",
        "> quote\n> more",
    ]
)
TEXTS = st.lists(st.one_of(BLOCKS, st.text(max_size=60)), max_size=12).flatmap(
    lambda blocks: st.sampled_from(["\n\n", "\n", " ", ""]).map(lambda gap: gap.join(blocks))
)
ROLES = st.sampled_from(["user", "user", "assistant", "assistant", "tool", "thinking"])
MESSAGES = st.lists(st.builds(lambda role, text: (role, text), ROLES, TEXTS), max_size=8)
PROVIDERS = st.sampled_from(["chatgpt", "slack", "markdown"])


def made(turns: list[tuple[Role, str]], provider: str) -> Conversation:
    conversation = chat(*turns, provider=provider, title="A title of some words")
    if provider == "slack":
        for number, message in enumerate(conversation.messages):
            message.speaker = f"S{number % 3}"
            message.created_at = NOON + timedelta(minutes=number * (7 if number % 2 else 40))
    return conversation


@settings(max_examples=100, deadline=None)
@given(MESSAGES, PROVIDERS)
def test_every_word_survives_once_in_order_within_the_budget(turns: list[tuple[Role, str]], provider: str):
    conversation = made(turns, provider)
    chunks = chunks_of(conversation)
    kinds = ("exchange", "people", "document")
    visible = [m for m in conversation.messages if m.visible and m.text.strip()]
    wanted = "".join(f"{m.speaker}:{m.text}" if provider == "slack" else m.text for m in visible)
    assert squeezed("".join(c.text for c in chunks if c.kind in kinds)) == squeezed(wanted)
    for kind in ("tool", "thinking"):
        rows = "".join(m.text for m in conversation.messages if m.role == kind)
        assert squeezed("".join(c.text for c in chunks if c.kind == kind)) == squeezed(rows)
    for chunk in chunks:
        assert chunk.text.strip()
        assert chunk.tokens <= BUDGET
        if chunk.kind in kinds:
            assert Words().count(chunk.context) + Words().count(chunk.text) <= BUDGET
        rows = conversation.messages[chunk.first_seq : chunk.last_seq + 1]
        if chunk.kind in ("tool", "thinking"):
            assert chunk.text in rows[0].text
        else:
            inside = "".join(
                f"{m.speaker}:{m.text}" if provider == "slack" else m.text for m in rows if m.visible and m.text.strip()
            )
            assert squeezed(chunk.text) in squeezed(inside)
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
    assert len({chunk.drawer_id for chunk in chunks}) == len(chunks)
    assert chunks_of(made(turns, provider)) == chunks


@settings(max_examples=60, deadline=None)
@given(MESSAGES, MESSAGES)
def test_a_grown_conversation_keeps_the_chunks_of_all_units_but_its_last(
    before: list[tuple[Role, str]], after: list[tuple[Role, str]]
):
    old, grown = made(before, "chatgpt"), made([*before, *after], "chatgpt")
    spoken = [n for n, m in enumerate(old.messages) if m.visible and m.text.strip()]
    asked = [n for n in spoken if old.messages[n].role == "user"]
    first = [n for n in asked if n == spoken[0] or old.messages[spoken[spoken.index(n) - 1]].role != "user"]
    last_unit = first[-1] if first else 0
    kept = [c for c in chunks_of(old) if c.last_seq < last_unit or c.kind in ("tool", "thinking")]
    new = {(c.drawer_id, c.chunk_index, c.text_hash) for c in chunks_of(grown)}
    assert {(c.drawer_id, c.chunk_index, c.text_hash) for c in kept if c.last_seq < last_unit} <= new
    assert {c.drawer_id for c in kept} <= {drawer_id for drawer_id, _, _ in new}


def test_an_answer_that_grows_keeps_its_first_pieces():
    paragraphs = [f"Paragraph {n} has about eight words in it." for n in range(60)]
    short, long = (chunks_of(chat(("user", "go"), ("assistant", "\n\n".join(paragraphs[:n])))) for n in (40, 60))
    assert len(short) > 5
    assert [c.drawer_id for c in short[:-2]] == [c.drawer_id for c in long[: len(short) - 2]]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("The quick brown fox jumps over the lazy dog. " * 40, 400), ("这是一个很长的中文句子，用来测试。" * 30, 390)],
)
def test_the_estimate_is_near_the_truth(text: str, tokens: int):
    ends = estimated_ends(text)
    assert 0.8 * tokens <= len(ends) <= 1.35 * tokens
    assert (np.diff(ends) > 0).all()
    assert ends[0] > 0
    assert ends[-1] <= len(text)


def test_a_text_is_tokenized_once_however_long_it_is():
    class Counting(Words):
        seen = 0

        def token_offsets(self, text: str) -> NDArray[np.int64]:
            self.seen += len(text)
            return super().token_offsets(text)

    unit = "A sentence of words. " * 20 + "\n\n```\ncode line\n```\n\n" + "- item\n" * 5 + "汉字" * 50
    for copies in (10, 100):
        tokens = Counting()
        conversation = chat(("user", "go"), ("assistant", unit * copies))
        chunks = chunk_conversation(conversation, tokens)
        # Once the text, and for every chunk its short context.
        assert tokens.seen <= len(unit) * copies + len(chunks) * 40
