"""How well Palace and MemPalace find the right conversation, on the same archives and questions in the same run.

    python benchmarks/beside.py mixed SET.json --mempalace VENV [--minilm FOLDER]
    python benchmarks/beside.py locomo LOCOMO.json --mempalace VENV

The sets are those of `retrieval.py`. MemPalace gets each conversation as a file of its own (mixed: a Claude export of one
conversation; LoCoMo: a transcript with names), mines them (`mine --mode convos`) and is asked through its own functions: `raw`
is its collection asked for the nearest drawers, `hybrid` its search as it comes, `union` its search with candidates by words
as well. docs/performance.md says how to set its environment up.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrieval import Question, ask, build, read_locomo, read_mixed, share

from palace_pipeline.embedding.model import load_model
from palace_pipeline.model import Conversation
from palace_pipeline.search.engine import Searcher
from palace_pipeline.settings import EmbeddingSettings, Settings

WAYS = ("raw", "hybrid", "union")
MINILM = Path("~/.cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx")

# Runs in MemPalace's environment: the conversations of the nearest drawers for each question, in their order.
_ASK = """
import json, sys
from pathlib import Path
from mempalace.searcher import search_memories, _open_search_collection
palace, limit = sys.argv[1], 60
collection, trouble = _open_search_collection(palace, None)
assert collection is not None, trouble
def conversations(sources):
    return list(dict.fromkeys(Path(source).stem for source in sources))
out = []
for question in json.load(sys.stdin):
    found = collection.query(query_texts=[question], n_results=limit, include=["metadatas"])
    metadatas = found["metadatas"] if isinstance(found, dict) else found.metadatas
    answer = {"raw": conversations(m["source_file"] for m in metadatas[0])}
    for way, strategy in (("hybrid", "vector"), ("union", "union")):
        hits = search_memories(question, palace, n_results=limit, candidate_strategy=strategy)["results"]
        answer[way] = conversations(hit["source_file"] for hit in hits)
    out.append(answer)
print(json.dumps(out))
"""


def written(folder: Path, kind: str, conversations: Sequence[Conversation]) -> None:
    """Each conversation as a file that MemPalace reads, named after its id."""
    folder.mkdir()
    for conversation in conversations:
        name = conversation.conversation_id
        if kind == "locomo":
            lines = [f"{message.speaker}: {message.text}" for message in conversation.messages]
            text = f"{conversation.title}\n\n" + "\n\n".join(lines) + "\n"
            (folder / f"{name}.txt").write_text(text, encoding="utf-8")
            continue
        messages = [
            {
                "uuid": message.message_id,
                "sender": "human" if message.role == "user" else "assistant",
                "text": message.text,
                "created_at": message.created_at.isoformat() if message.created_at else None,
            }
            for message in conversation.messages
        ]
        export = {"uuid": name, "name": conversation.title, "chat_messages": messages}
        (folder / f"{name}.json").write_text(json.dumps([export], ensure_ascii=False), encoding="utf-8")


def theirs(
    folder: Path, venv: Path, environment: dict[str, str], questions: Sequence[Question]
) -> list[dict[str, Any]]:
    """What MemPalace answers, by way, in the order of the questions."""
    palace, python = folder / "palace", venv / "bin" / "python"
    command = [venv / "bin" / "mempalace", "--palace", palace, "mine", folder / "chats", "--mode", "convos", "--direct"]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    texts = json.dumps([question.text for question in questions])
    done = subprocess.run(
        [python, "-c", _ASK, palace], env=environment, input=texts, stdout=subprocess.PIPE, text=True, check=True
    )
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def recalls(asked: Sequence[tuple[Question, list[str]]]) -> tuple[float, float]:
    """R@5 and R@10 of conversations, in per cent."""
    wanted = [({name for name, _ in question.evidence}, ranked) for question, ranked in asked]
    five, ten = (100 * sum(share(*one, count) for one in wanted) / len(wanted) for count in (5, 10))
    return five, ten


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["mixed", "locomo"])
    parser.add_argument("set", type=Path)
    parser.add_argument("--mempalace", type=Path, required=True, metavar="VENV", help="environment that has mempalace")
    parser.add_argument("--minilm", type=Path, default=MINILM, metavar="FOLDER", help="the model of Chroma's default")
    given = parser.parse_args()
    model = load_model(EmbeddingSettings())
    data = json.loads(given.set.read_text(encoding="utf-8"))
    asked: dict[str, list[tuple[Question, list[str]]]] = {way: [] for way in ("palace", *WAYS)}
    for conversations, everything in (read_mixed if given.kind == "mixed" else read_locomo)(data):
        questions = [question for question in everything if question.evidence]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            user, home = folder / "user", folder / "home"
            place = user / MINILM.relative_to("~")
            place.parent.mkdir(parents=True)
            place.symlink_to(given.minilm.expanduser().resolve(), target_is_directory=True)
            written(folder / "chats", given.kind, conversations)
            # A home of its own: nothing of the user's is read or changed. No PYTHONPATH, which would bring in our libraries.
            environment = {**os.environ, "HOME": str(user), "PYTHONPATH": "", "XDG_CACHE_HOME": str(user / ".cache")}
            answers = theirs(folder, given.mempalace, environment, questions)
            for way in WAYS:
                asked[way] += [(question, answer[way]) for question, answer in zip(questions, answers, strict=True)]
            home.mkdir()
            build(home, conversations, model)
            searcher = Searcher(home, Settings(home=home), lambda _: model)
            asked["palace"] += [(question, ask(searcher, question)["conversations"]) for question in questions]
    ours = recalls(asked["palace"])
    for way, answered in asked.items():
        five, ten = recalls(answered)
        label = way if way == "palace" else f"mempalace {way}"
        print(f"{label:20} n {len(answered):4}  R@5 {five:5.1f}  R@10 {ten:5.1f}  ratio to palace {ten / ours[1]:.2f}")


if __name__ == "__main__":
    main()
