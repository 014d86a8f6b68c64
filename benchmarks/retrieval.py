"""How well search finds, on labelled questions, through the same lake, index and searcher that an archive has.

    python benchmarks/retrieval.py mixed SET.json [--predictions OUT.jsonl]
    python benchmarks/retrieval.py locomo LOCOMO.json [--predictions OUT.jsonl]
    python benchmarks/retrieval.py languages        measure the language directions of the default model and ship them

`mixed`: {"conversations": [{"id", "provider", "title", "started_at", "messages": [{"role", "text", "at"}]}], "questions":
[{"id", "lang", "type", "question", "evidence": [{"conversation_id", "message_index"}]}]}; a question without evidence was
never discussed. `locomo`: the format of LoCoMo (CC BY-NC 4.0, not part of this project); each conversation is an archive
of its own and a session is a conversation. R@k: share of the evidence conversations among the first k; msgR@10: of the
evidence messages among the first ten; negFound, posNone: verdicts that are wrong (less is better).
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import palace_pipeline.search
from palace_pipeline.chunking import chunk_conversation
from palace_pipeline.embedding.derived import shipped_bytes
from palace_pipeline.embedding.model import EmbeddingModel, load_model
from palace_pipeline.embedding.vectors import ensure_vectors
from palace_pipeline.model import CHUNKS, CONVERSATIONS, DRAWERS, MESSAGES, VECTORS, Conversation, Message, frame
from palace_pipeline.search import languages
from palace_pipeline.search.engine import Searcher
from palace_pipeline.settings import EmbeddingSettings, Settings
from palace_pipeline.store.lake import Lake, month_of
from palace_pipeline.store.lexical import LexicalIndex, LexicalRow

LIMIT = 60
Place = tuple[str, int]


@dataclass(frozen=True)
class Question:
    id: str
    group: str
    text: str
    evidence: frozenset[Place]
    label: dict[Place, str]


def build(home: Path, conversations: Sequence[Conversation], model: EmbeddingModel) -> None:
    """An archive of these conversations: the tables that search reads, without the steps before."""
    by_month: dict[str, list[Conversation]] = defaultdict(list)
    for conversation in conversations:
        by_month[month_of(day_of(conversation))].append(conversation)
    lake = Lake(home / "lake")
    with LexicalIndex(home / "lexical") as index:
        for month, these in by_month.items():
            keys = [conversation.key for conversation in these]
            heads: list[dict[str, Any]] = []
            messages: list[dict[str, Any]] = []
            chunks: list[dict[str, Any]] = []
            for conversation in these:
                head = {"day": day_of(conversation), "provider": conversation.provider}
                head["conversation_id"] = conversation.conversation_id
                heads.append({**head, "title": conversation.title, "dated": True})
                messages += [
                    {**head, "message_id": m.message_id, "seq": seq, "role": m.role, "kind": m.kind, "text": m.text}
                    | {"speaker": m.speaker, "branch_active": True, "created_at": m.created_at}
                    for seq, m in enumerate(conversation.messages)
                ]
                for chunk in chunk_conversation(conversation, model):
                    row = {name: getattr(chunk, name) for name in CHUNKS if hasattr(chunk, name)}
                    chunks.append({**head, **row})
                    index.upsert([lexical_row(conversation, row, head["day"])])
            table = frame(chunks, CHUNKS)
            filed = [{name: row[name] for name in DRAWERS if name in row} for row in chunks]
            lake.replace("clean/conversations", month, keys, frame(heads, CONVERSATIONS))
            lake.replace("clean/messages", month, keys, frame(messages, MESSAGES))
            lake.replace("clean/chunks", month, keys, table)
            lake.replace("clean/drawers", month, keys, frame(filed, DRAWERS))
            lake.replace("clean/vectors", month, keys, ensure_vectors(table, frame([], VECTORS), model))


def day_of(conversation: Conversation) -> date:
    times = [m.created_at for m in conversation.messages if m.created_at]
    return min(times).astimezone(UTC).date() if times else date(2023, 1, 1)


def lexical_row(conversation: Conversation, chunk: dict[str, Any], day: date) -> LexicalRow:
    return LexicalRow(
        drawer_id=chunk["drawer_id"],
        text=chunk["text"],
        context=chunk["context"],
        title=conversation.title or "",
        provider=conversation.provider,
        conversation_id=conversation.conversation_id,
        wing="",
        room="",
        kind=chunk["kind"],
        roles=(),
        day=int(f"{day:%Y%m%d}"),
    )


def read_mixed(data: dict[str, Any]) -> Iterator[tuple[list[Conversation], list[Question]]]:
    conversations = [
        Conversation(
            provider=c["provider"],
            conversation_id=c["id"],
            title=c["title"],
            messages=[
                Message(str(place), m["role"], m["text"], created_at=datetime.fromisoformat(m["at"]).astimezone(UTC))
                for place, m in enumerate(c["messages"])
            ],
        )
        for c in data["conversations"]
    ]
    questions = [
        Question(
            q["id"], q["type"], q["question"],
            frozenset((e["conversation_id"], e["message_index"]) for e in q["evidence"]), {},
        )
        for q in data["questions"]
    ]  # fmt: skip
    yield conversations, questions


def read_locomo(data: list[dict[str, Any]]) -> Iterator[tuple[list[Conversation], list[Question]]]:
    for sample in data:
        sessions: list[Conversation] = []
        place_of: dict[str, Place] = {}
        number = 1
        while (turns := sample["conversation"].get(f"session_{number}")) is not None:
            when = sample["conversation"].get(f"session_{number}_date_time")
            chat = Conversation("whatsapp", str(number), [], title=when)
            for place, turn in enumerate(turns):
                caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
                place_of[turn["dia_id"]] = (str(number), place)
                chat.messages.append(Message(turn["dia_id"], "user", turn["text"] + caption, speaker=turn["speaker"]))
            sessions.append(chat)
            number += 1
        label = {place: name for name, place in place_of.items()}
        yield (
            sessions,
            [
                Question(
                    f"{sample['sample_id']}/{place}", str(q.get("category")), q["question"],
                    frozenset(place_of[e] for e in q.get("evidence") or [] if e in place_of and re.match(r"D\d+:", e)),
                    label,
                )
                for place, q in enumerate(sample["qa"])
            ],
        )  # fmt: skip


def ask(searcher: Searcher, question: Question) -> dict[str, Any]:
    result = searcher.search(question.text, limit=LIMIT)
    places = [(hit.conversation_id, hit.message_index) for hit in result.hits]
    return {
        "id": question.id,
        "verdict": result.verdict,
        "conversations": list(dict.fromkeys(name for name, _ in places)),
        "messages": [question.label.get(place, place) if question.label else place for place in places],
        "places": places,
    }


def share(evidence: set[Any], ranked: Sequence[Any], count: int) -> float:
    return len(evidence & set(ranked[:count])) / len(evidence)


def report(asked: list[tuple[Question, dict[str, Any]]]) -> None:
    groups: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for question, answer in asked:
        if question.evidence:
            wanted = {name for name, _ in question.evidence}
            ranks = answer["conversations"]
            row = (
                share(wanted, ranks, 5),
                share(wanted, ranks, 10),
                share(set(question.evidence), answer["places"], 10),
            )
            groups[question.group].append(row)
            groups["all"].append(row)
    for name, rows in sorted(groups.items()):
        means = [100 * sum(column) / len(rows) for column in zip(*rows, strict=True)]
        print(f"{name:16} n {len(rows):4}  R@5 {means[0]:5.1f}  R@10 {means[1]:5.1f}  msgR@10 {means[2]:5.1f}")
    for name, answered in (("with evidence", True), ("never discussed", False)):
        verdicts = [answer["verdict"] for question, answer in asked if bool(question.evidence) == answered]
        if verdicts:
            shown = "  ".join(f"{v} {100 * verdicts.count(v) / len(verdicts):5.1f}" for v in ("found", "weak", "none"))
            print(f"{name:16} n {len(verdicts):4}  {shown}")


def ship_languages(model: EmbeddingModel) -> None:
    folder = Path(palace_pipeline.search.__file__).parent
    sentences = (folder / "parallel.json").read_text(encoding="utf-8")
    arrays = languages.arrays_of(languages.measure(model, sentences))
    target = folder / languages.SHIPPED
    target.write_bytes(shipped_bytes(model, languages.recipe(sentences), arrays))
    print(f"{target} written, {target.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["mixed", "locomo", "languages"])
    parser.add_argument("set", type=Path, nargs="?")
    parser.add_argument("--predictions", type=Path, help="write the ranked answers here, one JSON object a line")
    arguments = parser.parse_args()
    model = load_model(EmbeddingSettings())
    if arguments.kind == "languages":
        ship_languages(model)
        return
    data = json.loads(arguments.set.read_text(encoding="utf-8"))
    asked: list[tuple[Question, dict[str, Any]]] = []
    seconds = 0.0
    for conversations, questions in (read_mixed if arguments.kind == "mixed" else read_locomo)(data):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            build(home, conversations, model)
            searcher = Searcher(home, Settings(home=home), lambda _: model)
            started = time.perf_counter()
            asked += [(question, ask(searcher, question)) for question in questions]
            seconds += time.perf_counter() - started
    report(asked)
    print(f"{len(asked)} questions, {1000 * seconds / len(asked):.0f} ms each")
    if arguments.predictions:
        lines = [json.dumps({k: v for k, v in answer.items() if k != "places"}) for _, answer in asked]
        arguments.predictions.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
