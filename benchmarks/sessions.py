"""Claude Code session logs for measuring: seeded, synthetic, of the size and mixture that real logs have.

    python benchmarks/sessions.py FOLDER --sessions 500 --messages 40

A message is one record of a person or the model, as the log writes them: question, thinking, call of a tool, its result,
answer. Results and calls of tools hold two thirds of the characters, answers 60 to 300 words; one session in six is in
Chinese. Sentences, code and output are put together from the word lists below, so that no two texts are equal. The days
are spread over two months. Equal arguments give equal bytes.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from session_texts import (
    Setting,
    Tool,
    answer,
    letters,
    new_uuid,
    prose,
    question,
    sentence,
    some_tool,
    zh_sentence,
)

FIRST_DAY = datetime(2026, 3, 2, tzinfo=UTC)
DAYS = 60
TOOL_SHARE = 2 / 3
MODEL = "claude-sample-5"


_PROJECTS = (
    *("tidepool", "ledgerline", "north-harbour", "orchard-api", "paper-mill", "quiet-queue", "rooftop"),
    *("signal-box", "tram-times", "umbra-ui", "violin-notes", "wharf-infra"),
)
_PLACES = tuple((name, number % 6 == 5) for number, name in enumerate(_PROJECTS))
"""Projects, and whether people write Chinese there."""


@dataclass(slots=True)
class _Session(Setting):
    """The log of one session while it is written."""

    session_id: str = ""
    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    parent: str | None = None
    turns: int = 0
    said: int = 0
    """Characters of talk and of tools up to now: what the size of the next result is steered by."""
    tooled: int = 0

    def add(self, kind: str, message: dict[str, Any], **more: Any) -> None:
        """One record of a person or the model."""
        self.at += timedelta(milliseconds=self.rng.randint(400, 45_000))
        name = new_uuid(self.rng)
        record: dict[str, Any] = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": "2.1.220",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": name,
            "timestamp": _stamp(self.at),
            **more,
        }
        self.records.append(record)
        self.parent = name
        self.turns += 1

    def answer(self, block: dict[str, Any], message_id: str, stop: str | None) -> None:
        rng = self.rng
        usage = {
            "input_tokens": rng.randint(3, 90),
            "output_tokens": rng.randint(20, 900),
            "cache_creation_input_tokens": rng.randint(0, 4_000),
            "cache_read_input_tokens": rng.randint(8_000, 90_000),
        }
        message = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [block],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }
        self.add("assistant", message, requestId=f"req_{message_id[4:]}")


def write_sessions(folder: Path, sessions: int, messages: int, seed: int = 1) -> list[Path]:
    """Write `sessions` logs of `messages` records each as `projects/<folder>/<uuid>.jsonl`; the files by time."""
    rng = random.Random(f"{seed}:{messages}")
    places = sorted(_moment(rng) for _ in range(sessions))
    files: list[Path] = []
    for number, at in enumerate(places):
        own = random.Random(f"{seed}:{messages}:{number}")
        cwd = f"/home/sample/dev/{own.choice(_PROJECTS)}"
        lines, name = _session(own, cwd, at, messages)
        path = folder / "projects" / cwd.replace("/", "-") / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines, encoding="utf-8")
        files.append(path)
    return files


@dataclass(frozen=True, slots=True)
class Samples:
    """Texts to fill exports of other kinds with, so many that they seldom repeat."""

    questions: list[str]
    answers: list[str]
    thoughts: list[str]
    tools: list[Tool]


def sample_texts(seed: int, count: int = 1500) -> Samples:
    """`count` texts of each kind; one in six is in Chinese."""
    rng = random.Random(f"texts:{seed}")
    places = [_Session(rng, f"/home/sample/dev/{name}", chinese, FIRST_DAY) for name, chinese in _PLACES]
    sessions = [places[number % len(places)] for number in range(count)]
    return Samples(
        [question(session) for session in sessions],
        [answer(session) for session in sessions],
        [prose(session, rng.randint(20, 110)) for session in sessions],
        [some_tool(session, int(min(rng.lognormvariate(7.2, 1.1), 30_000))) for session in sessions],
    )


def _moment(rng: random.Random) -> datetime:
    """A moment in working hours mostly; few on weekends."""
    while True:
        at = FIRST_DAY + timedelta(days=rng.randrange(DAYS), seconds=int(rng.gauss(14, 3.5) * 3600) % 86_400)
        if at.weekday() < 5 or rng.random() < 0.25:
            return at


def _session(rng: random.Random, cwd: str, at: datetime, messages: int) -> tuple[str, str]:
    session = _Session(rng, cwd, rng.random() < 1 / 6, at, new_uuid(rng))
    head: list[dict[str, Any]] = [{"type": "mode", "mode": "normal", "sessionId": session.session_id}]
    while session.turns < messages:
        _exchange(session, messages - session.turns)
    title = zh_sentence(rng)[:18] if session.chinese else " ".join(sentence(rng).split()[:6]).rstrip(".,")
    head.append({"type": "ai-title", "aiTitle": title, "sessionId": session.session_id})
    lines = [json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in head + session.records]
    return "\n".join(lines) + "\n", session.session_id


def _exchange(session: _Session, left: int) -> None:
    """A question, what is done for it, and its answer: in all at most `left` records, at least one."""
    rng = session.rng
    message_id = f"msg_{rng.getrandbits(80):020x}"
    asked = question(session)
    session.add("user", {"role": "user", "content": asked})
    session.said += len(asked)
    if left < 2:
        return
    pairs = min(rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 6)), max(0, (left - 2) // 2))
    if left >= 3 + 2 * pairs:
        thinking = prose(session, rng.randint(20, 110))
        session.answer({"type": "thinking", "thinking": thinking, "signature": letters(rng, 120)}, message_id, None)
        session.said += len(thinking)
    answered = answer(session)
    for number in range(pairs):
        # Whatever is still missing of the tools' share, over the calls of this exchange, give or take.
        due = (session.said + len(answered)) * TOOL_SHARE / (1 - TOOL_SHARE) - session.tooled
        size = max(60.0, due / (pairs - number)) * rng.lognormvariate(-0.3, 0.75)
        _tool(session, message_id, int(min(size, 30_000)))
    session.answer({"type": "text", "text": answered}, message_id, "end_turn")
    session.said += len(answered)


def _tool(session: _Session, message_id: str, size: int) -> None:
    """A call and its result of about `size` characters, which the log shows twice, as the program writes it."""
    rng = session.rng
    name, arguments, output = some_tool(session, size)
    call = f"toolu_{rng.getrandbits(88):022x}"
    session.answer({"type": "tool_use", "id": call, "name": name, "input": arguments}, message_id, "tool_use")
    block = {"tool_use_id": call, "type": "tool_result", "content": output}
    session.add("user", {"role": "user", "content": [block]}, toolUseResult={"type": "text", "content": output})
    session.tooled += len(output) + sum(len(str(value)) for value in arguments.values())


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--messages", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    files = write_sessions(arguments.folder, arguments.sessions, arguments.messages, arguments.seed)
    print(f"{len(files)} sessions, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
