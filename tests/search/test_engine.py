"""Search over a small archive, with a stand-in for the embedding model that knows two words of each language."""

from __future__ import annotations

import io
import json
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palace_pipeline.embedding.convert import EmbeddingError
from palace_pipeline.model import (
    CHUNKS,
    CONVERSATIONS,
    DRAWERS,
    MESSAGES,
    VECTORS,
    Attachment,
    Conversation,
    Message,
    frame,
    message_hash,
)
from palace_pipeline.search.engine import Searcher, SearchResult, search_lines
from palace_pipeline.settings import Settings
from palace_pipeline.store.lake import Lake, month_of
from palace_pipeline.store.ledger import Ledger
from palace_pipeline.store.lexical import LexicalIndex, LexicalRow
from palace_pipeline.transcripts.terms import index_terms

TRANSLATIONS = {"灯笼": "lantern", "фонарь": "lantern"}
"""What makes the stand-in multilingual."""


class BagOfTerms:
    name = "bag"
    key = "bag@000000000000"

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        vectors = np.full((len(texts), 384), 1e-3, np.float32)
        for row, text in enumerate(texts):
            for foreign, word in TRANSLATIONS.items():
                text = text.replace(foreign, f" {word} ")
            for term in index_terms(text):
                vectors[row, zlib.crc32(term.encode()) % 384] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_query(self, text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        return self.embed_passages([text])[0]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def say(role: Any, text: str, **fields: Any) -> Message:
    return Message(f"{role}-{zlib.crc32(text.encode())}", role, text, **fields)


class Archive:
    """A home as the pipeline leaves it, one exchange a chunk."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.lake = Lake(home / "lake")

    def add(self, conversation: Conversation, *, wing: str = "w", room: str = "general", dated: bool = True) -> None:
        days = [m.created_at.date() for m in conversation.messages if m.created_at]
        days += [date.fromisoformat(m.local_time[:10]) for m in conversation.messages if m.local_time]
        day = min(days, default=date(2024, 1, 31))
        month, keys = month_of(day), [conversation.key]
        head = {"day": day, "provider": conversation.provider, "conversation_id": conversation.conversation_id}
        messages = [
            head
            | {"seq": seq, "message_id": message_hash(m), "role": m.role, "kind": m.kind, "text": m.text}
            | {"branch_active": m.branch_active, "hidden_reason": m.hidden_reason, "speaker": m.speaker}
            | {"created_at": m.created_at, "local_time": m.local_time}
            for seq, m in enumerate(conversation.messages)
        ]
        chunks = list(self._chunks(conversation, head))
        drawers = [row for row in chunks if row["kind"] not in ("tool", "thinking")]
        filed = [{k: v for k, v in row.items() if k in DRAWERS} | {"wing": wing, "room": room} for row in drawers]
        vectors = BagOfTerms().embed_passages([row["text"] for row in drawers])
        embedded = [
            head | {"drawer_id": row["drawer_id"], "text_hash": "", "model": BagOfTerms.key, "vector": vector.tolist()}
            for row, vector in zip(drawers, vectors, strict=True)
        ]
        heads = [head | {"title": conversation.title, "dated": dated}]
        for table, rows, schema in (
            ("conversations", heads, CONVERSATIONS),
            ("messages", messages, MESSAGES),
            ("chunks", chunks, CHUNKS),
            ("drawers", filed, DRAWERS),
            ("vectors", embedded, VECTORS),
        ):
            self.lake.replace(f"clean/{table}", month, keys, frame(rows, schema))
        with LexicalIndex(self.home / "lexical") as index:
            index.upsert(self._lexical(conversation, row, wing, room) for row in chunks)

    def _chunks(self, conversation: Conversation, head: dict[str, Any]) -> Any:
        start = 0
        for seq, m in enumerate(conversation.messages):
            kind = {"tool": "tool", "thinking": "thinking"}.get(m.role, "exchange")
            last = seq + 1 == len(conversation.messages) or conversation.messages[seq + 1].role == "user"
            if kind != "exchange":
                yield self._chunk(head, kind, seq, seq, m.text)
            if last:
                shown = [x.text for x in conversation.messages[start : seq + 1] if x.visible]
                yield self._chunk(head, "exchange", start, seq, "\n\n".join(shown))
                start = seq + 1
            for attachment in m.attachment:
                yield self._chunk(head, "document", seq, seq, attachment.text or "")

    def _chunk(self, head: dict[str, Any], kind: str, first: int, last: int, text: str) -> dict[str, Any]:
        drawer_id = f"{head['conversation_id']}-{kind}-{first}-{zlib.crc32(text.encode())}"
        place = {"kind": kind, "first_seq": first, "last_seq": last, "chunk_index": first}
        return head | place | {"drawer_id": drawer_id, "text": text, "context": "", "tokens": 1}

    def _lexical(self, conversation: Conversation, row: dict[str, Any], wing: str, room: str) -> LexicalRow:
        said = conversation.messages[row["first_seq"] : row["last_seq"] + 1]
        times = [int(f"{m.created_at:%Y%m%d}") for m in said if m.created_at]
        return LexicalRow(
            drawer_id=row["drawer_id"],
            text=row["text"],
            context="",
            title=conversation.title or "",
            provider=conversation.provider,
            conversation_id=conversation.conversation_id,
            wing=wing,
            room=room,
            kind=row["kind"],
            roles=tuple({m.role for m in said}),
            day=int(f"{row['day']:%Y%m%d}"),
            first_day=min(times, default=None),
            last_day=max(times, default=None),
        )

    def searcher(self, zone: str = "UTC") -> Searcher:
        return Searcher(self.home, Settings(home=self.home, display_zone=zone), lambda _: BagOfTerms())


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALACE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def archive(template: Path, tmp_path: Path) -> Archive:
    """A copy that a test may change."""
    return Archive(shutil.copytree(template, tmp_path / "home"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Archive(tmp_path_factory.mktemp("template"))
    made.add(
        Conversation(
            "chatgpt",
            "lamps",
            [
                say("user", "Which lantern did we buy for the terrace?", created_at=at("2024-03-01T22:30:00")),
                say(
                    "assistant",
                    "The copper lantern from Fennel & Daughters, 48 euro.",
                    created_at=at("2024-03-01T22:31:00"),
                ),
                say("user", "And the kettle?", created_at=at("2024-07-09T08:00:00")),
                say("assistant", "The kettle was a present.", created_at=at("2024-07-09T08:01:00")),
            ],
            title="Terrace",
        ),
        wing="house",
    )
    made.add(
        Conversation(
            "claude",
            "竞业",
            [
                say("user", "竞业协议里写了几个月？", created_at=at("2023-05-05T10:00:00")),
                say("assistant", "協議寫明六個月，補償按月支付。", created_at=at("2023-05-05T10:01:00")),
            ],
            title="离职",
        ),
        room="decisions",
    )
    made.add(
        Conversation(
            "claude-code",
            "agent",
            [
                say("user", "<injected context about saffron>", hidden_reason="injected"),
                say("user", "raise rpt_slot to 12", created_at=at("2024-05-05T10:00:00")),
                say("thinking", "the saffron limit is in config"),
                say("tool", "rpt_slot=8 in /etc/saffron.conf"),
                say("assistant", "an older answer", branch_active=False),
                say("assistant", "rpt_slot is 12 now.", created_at=at("2024-05-05T10:02:00")),
            ],
            title="Slots",
        )
    )
    return made.home


def places(result: SearchResult) -> list[tuple[str, int | None]]:
    return [(hit.conversation_id, hit.message_index) for hit in result.hits]


def test_each_message_is_a_hit_of_its_own(archive: Archive) -> None:
    result = archive.searcher().search("copper lantern")
    assert places(result)[0] == ("lamps", 1)
    assert ("lamps", 0) in places(result)
    assert result.verdict == "found"
    hit = result.hits[0]
    assert hit.quote == "The copper lantern from Fennel & Daughters, 48 euro."
    assert [hit.quote[start:end] for start, end in hit.marks] == ["copper", "lantern"]
    assert (hit.provider, hit.title, hit.wing, hit.room, hit.role) == (
        "chatgpt",
        "Terrace",
        "house",
        "general",
        "assistant",
    )
    assert (hit.date, hit.at, hit.seq) == ("2024-03-01", "2024-03-01T22:31:00Z", 1)
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)
    assert len(set(places(result))) == len(result.hits)


def test_visible_messages_are_counted_from_zero(archive: Archive) -> None:
    result = archive.searcher().search("rpt_slot")
    assert {hit.message_index: (hit.seq, hit.quote) for hit in result.hits if hit.conversation_id == "agent"} == {
        0: (1, "raise rpt_slot to 12"),
        1: (5, "rpt_slot is 12 now."),
    }


def test_tools_and_thinking_are_found_on_request_only(archive: Archive) -> None:
    searcher = archive.searcher()
    assert all("saffron" not in hit.quote for hit in searcher.search("saffron").hits)
    hits = searcher.search("saffron", kinds=("tool", "thinking")).hits
    assert {(hit.role, hit.message_index) for hit in hits} == {("tool", None), ("thinking", None)}
    assert {hit.wing for hit in hits} == {None}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("竞业", ("竞业", 0)),
        ("协议写明", ("竞业", 1)),
        ("補償", ("竞业", 1)),
        ("rpt_slot", ("agent", 0)),
        ("灯笼", ("lamps", 0)),
        ("фонарь", ("lamps", 0)),
        ("Fennel", ("lamps", 1)),
    ],
)
def test_words_of_any_script_and_meaning_across_languages(archive: Archive, query: str, expected: Any) -> None:
    assert places(archive.searcher().search(query))[0] == expected


@pytest.mark.parametrize("query", ["", "  ", "?!。", "—", "\ud800"])
def test_a_question_without_words_finds_nothing(archive: Archive, query: str) -> None:
    result = archive.searcher().search(query)
    assert (result.verdict, result.hits) == ("none", [])
    assert result.tried


@pytest.mark.parametrize("query", ["what is the", "什么", "的", "a" * 5000, "(((AND OR NOT:*", "写" * 900])
def test_odd_questions_do_not_crash(archive: Archive, query: str) -> None:
    assert archive.searcher().search(query).verdict in ("found", "weak", "none")


def test_what_was_never_said_is_not_found(archive: Archive) -> None:
    assert archive.searcher().search("quarterly submarine insurance").verdict == "none"


def test_filters(archive: Archive) -> None:
    searcher = archive.searcher()
    everything = "lantern kettle 协议 rpt_slot"
    assert {hit.provider for hit in searcher.search(everything).hits} == {"chatgpt", "claude", "claude-code"}
    assert {hit.provider for hit in searcher.search(everything, provider="claude").hits} == {"claude"}
    assert {hit.conversation_id for hit in searcher.search(everything, wing="house").hits} == {"lamps"}
    assert {hit.conversation_id for hit in searcher.search(everything, room="decisions").hits} == {"竞业"}
    assert {hit.role for hit in searcher.search(everything, role="user").hits} == {"user"}
    assert searcher.search(everything, wing="nowhere").hits == []
    assert len(searcher.search(everything, limit=2).hits) == 2


def test_days_are_those_of_the_message_in_the_display_zone(archive: Archive) -> None:
    query = "lantern kettle"
    berlin, tokyo = archive.searcher("Europe/Berlin"), archive.searcher("Asia/Tokyo")
    # 22:30 UTC is still the 1st in Berlin and already the 2nd in Tokyo; the kettle came up four months later.
    assert {hit.date for hit in berlin.search(query, until=date(2024, 3, 1)).hits} >= {"2024-03-01"}
    assert {hit.conversation_id for hit in berlin.search(query, since=date(2024, 3, 2)).hits} >= {"lamps"}
    assert {hit.message_index for hit in berlin.search(query, since=date(2024, 7, 1)).hits} == {2, 3}
    assert berlin.search(query, since=date(2024, 3, 2), until=date(2024, 3, 2)).hits == []
    assert {hit.date for hit in tokyo.search(query, since=date(2024, 3, 2), until=date(2024, 3, 2)).hits} == {
        "2024-03-02"
    }


def test_naive_and_missing_times(archive: Archive) -> None:
    naive = [say("user", "saucer, naive", local_time="2022-08-01T23:30:00"), say("user", "saucer without a time")]
    archive.add(Conversation("whatsapp", "naive", naive), dated=True)
    archive.add(Conversation("text", "undated", [say("user", "saucer in an undated note")]), dated=False)
    searcher = archive.searcher("Asia/Tokyo")
    dates = {hit.quote: (hit.date, hit.at) for hit in searcher.search("saucer").hits if "saucer" in hit.quote}
    assert dates == {
        "saucer, naive": ("2022-08-01", "2022-08-01T23:30:00"),
        "saucer without a time": ("2022-08-01", None),
        "saucer in an undated note": (None, None),
    }
    found = searcher.search("saucer", since=date(2022, 8, 1), until=date(2022, 8, 1)).hits
    assert {hit.quote for hit in found} == {"saucer, naive", "saucer without a time"}
    assert "saucer in an undated note" not in {
        hit.quote for hit in searcher.search("saucer", since=date(2010, 1, 1)).hits
    }


def test_an_attachment_is_quoted_for_its_own_text(archive: Archive) -> None:
    letter = Attachment(name="letter.pdf", text="The saucer is to be returned by Tuesday.")
    archive.add(Conversation("claude", "post", [say("user", "see the letter", attachment=[letter])]))
    hit = archive.searcher().search("saucer returned").hits[0]
    assert (hit.conversation_id, hit.message_index) == ("post", 0)
    assert hit.quote == "The saucer is to be returned by Tuesday."


def test_hits_grouped_for_people(archive: Archive) -> None:
    result = archive.searcher().search("lantern kettle 协议")
    groups = result.by_conversation()
    assert [hit for group in groups for hit in group.hits] != []
    assert sum(len(group.hits) for group in groups) == len(result.hits)
    assert len({group.conversation_id for group in groups}) == len(groups)
    best = [group.hits[0].score for group in groups]
    assert best == sorted(best, reverse=True)


def test_the_page_is_the_ledgers(archive: Archive) -> None:
    page = "conversations/chatgpt/2024/2024-03-01-terrace-00000000.md"
    ledger = Ledger(archive.home / "ledger.sqlite")
    ledger.write(
        "INSERT INTO conversations (provider, conversation_id, day, dated, first_seen_day, input, messages,"
        " page) VALUES ('chatgpt', 'lamps', '2024-03-01', 1, '2024-03-01', '', 4, ?)",
        (page,),
    )
    ledger.close()
    hits = archive.searcher().search("lantern 协议").hits
    assert {hit.page for hit in hits if hit.conversation_id == "lamps"} == {page}
    assert {hit.page for hit in hits if hit.conversation_id != "lamps"} == {""}


# --- what is missing, damaged or changing -----------------------------------------------------------------------------


def test_an_empty_archive_says_so(tmp_path: Path) -> None:
    result = Archive(tmp_path).searcher().search("lantern")
    assert (result.verdict, result.hits) == ("none", [])
    assert "nothing" in result.tried
    assert list(tmp_path.iterdir()) == []  # looking makes nothing


def test_without_vectors_words_remain(archive: Archive) -> None:
    for path in (archive.home / "lake/clean/vectors").iterdir():
        path.unlink()
    searcher = Searcher(archive.home, Settings(home=archive.home), lambda _: pytest.fail("no model is needed"))
    result = searcher.search("copper lantern")
    assert places(result)[0] == ("lamps", 1)
    assert result.hits[0].dense is None
    assert "not by meaning" in result.tried


def test_without_an_index_meaning_remains(archive: Archive) -> None:
    (archive.home / "lexical" / "recipe").write_text("another")
    result = archive.searcher().search("灯笼")
    assert places(result)[0][0] == "lamps"
    assert "not by words" in result.tried


def test_without_a_model_or_with_another_words_remain(archive: Archive) -> None:
    def broken(_: Any) -> Any:
        raise EmbeddingError("no wheel for this system")

    class Other(BagOfTerms):
        key = "other@000000000000"

    settings = Settings(home=archive.home)
    for load, why in ((broken, "no wheel"), (lambda _: Other(), "another model")):
        result = Searcher(archive.home, settings, load).search("copper lantern")
        assert places(result)[0] == ("lamps", 1)
        assert why in result.tried


def test_rows_without_a_partner_are_left_out(archive: Archive) -> None:
    (archive.home / "lake/clean/messages/2023-05.parquet").unlink()
    (archive.home / "lake/clean/drawers/2024-03.parquet").unlink()
    result = archive.searcher().search("竞业 lantern")
    assert {hit.conversation_id for hit in result.hits} >= {"lamps"}
    assert "竞业" not in {hit.conversation_id for hit in result.hits}


def test_a_damaged_month_is_named_and_costs_only_itself(archive: Archive) -> None:
    (archive.home / "lake/clean/chunks/2023-05.parquet").write_bytes(b"PAR1 broken")
    result = archive.searcher().search("竞业 lantern")
    assert {hit.conversation_id for hit in result.hits} >= {"lamps"}
    assert "2023-05" in result.tried


def test_changes_are_seen_without_a_restart(archive: Archive) -> None:
    searcher = archive.searcher()
    assert searcher.search("saucer").verdict == "none"
    archive.add(
        Conversation("claude", "new", [say("user", "the saucer arrived", created_at=at("2024-03-02T09:00:00"))])
    )
    assert places(searcher.search("saucer"))[0] == ("new", 0)
    assert places(searcher.search("copper lantern"))[0] == ("lamps", 1)


# --- lines ------------------------------------------------------------------------------------------------------------


def test_the_line_protocol(archive: Archive) -> None:
    lines = [
        '{"id": "q1", "query": "copper lantern", "limit": 1}',
        "",
        "{broken secret",
        '{"id": 3}',
        '{"id": 4, "query": "竞业"}',
    ]
    lines.append('{"id": 5, "query": "x", "limit": 0}')
    out = io.StringIO()
    assert search_lines(lines, out, archive.searcher()) == 3
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [answer["id"] for answer in answers] == ["q1", None, 3, 4, 5]
    [hit] = answers[0]["hits"]
    wanted = {"provider", "conversation_id", "message_index", "score", "date", "page", "quote"}
    assert wanted <= set(hit)
    assert (hit["conversation_id"], hit["message_index"], answers[0]["verdict"]) == ("lamps", 1, "found")
    assert answers[3]["hits"][0]["quote"] == "竞业协议里写了几个月？"
    assert "secret" not in out.getvalue()


def test_a_hit_is_plain_data(archive: Archive) -> None:
    hit = archive.searcher().search("lantern").hits[0]
    assert json.loads(json.dumps(hit.as_json()))["seq"] == hit.seq
    assert replace(hit, score=0).quote == hit.quote
