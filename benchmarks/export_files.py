"""Generated exports for measuring readers: seeded, synthetic, of the shape and mixture that the products write.

Each function writes one export of about `size` bytes into an empty folder. `KINDS` is the table of them; a new format is
one function here. Equal arguments give equal bytes.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from sessions import FIRST_DAY, MODEL, Samples, Tool, sample_texts

LOG_BYTES = 8_000_000
"""About what one session's log holds (13 MB is usual for Codex, 16 to 42 MB for long work with Claude Code)."""


@dataclass(slots=True)
class Talk:
    """Endless talk: texts, tools, ids and times, one after the other."""

    seed: int
    samples: Samples = field(init=False)
    rng: random.Random = field(init=False)
    moment: datetime = FIRST_DAY
    count: int = 0

    def __post_init__(self) -> None:
        self.samples = sample_texts(self.seed)
        self.rng = random.Random(self.seed)

    def _text(self, texts: list[str]) -> str:
        self.count += 1
        return f"{self.rng.choice(texts)} ({self.count})"

    def question(self) -> str:
        return self._text(self.samples.questions)

    def answer(self) -> str:
        return self._text(self.samples.answers)

    def thought(self) -> str:
        return self._text(self.samples.thoughts)

    def tool(self) -> Tool:
        name, arguments, output = self.rng.choice(self.samples.tools)
        self.count += 1
        return name, arguments, f"{output}\n{self.count}"

    def id(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def short_id(self, prefix: str = "") -> str:
        return f"{prefix}{self.rng.getrandbits(88):022x}"

    def blob(self, length: int) -> str:
        """What looks like base64."""
        return f"{self.rng.getrandbits(length * 4):0{length}x}"

    def at(self) -> datetime:
        """The next moment, some seconds later."""
        self.moment += timedelta(milliseconds=self.rng.randint(400, 45_000))
        return self.moment

    def stamp(self) -> str:
        at = self.at()
        return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"

    def seconds(self) -> float:
        return self.at().timestamp()

    def turns(self) -> range:
        """How many questions a chat has; most have few."""
        return range(1 + int(self.rng.expovariate(1 / 5)))


# --- files ------------------------------------------------------------------------------------------------------------


def array(path: Path, chats: Callable[[], dict[str, Any]], size: int, dump: Callable[[Any], bytes]) -> None:
    """A JSON array of chats until `size` is reached."""
    with path.open("wb") as out:
        out.write(b"[" + dump(chats()))
        while out.tell() < size:
            out.write(b", " + dump(chats()))
        out.write(b"]")


def logs(
    name: Callable[[str], str],
    records: Callable[[str], Iterator[Any]],
    size: int,
    talk: Talk,
    log_bytes: int = LOG_BYTES,
) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of JSONL logs until `size` is reached, each of about `log_bytes`."""
    left = size
    while left > 0:
        session, lines, length = talk.id(), list[bytes](), 0
        for record in records(session):
            lines.append(orjson.dumps(record))
            length += len(lines[-1]) + 1
            if length >= min(left, log_bytes):
                break
        left -= length
        yield name(session), b"\n".join(lines) + b"\n"


def write_all(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    for name, data in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def escaped(value: Any) -> bytes:
    """JSON as Python's own module writes it: blanks after commas, `\\u` for what is not ASCII."""
    return json.dumps(value).encode()


# --- chat products ----------------------------------------------------------------------------------------------------


def chatgpt(folder: Path, size: int, talk: Talk) -> None:
    """`conversations.json` on one line, ASCII, trees with system nodes, thoughts, a regenerated answer now and then."""

    def node(chat: dict[str, Any], parent: str, role: str, content: dict[str, Any], **more: Any) -> str:
        name, rng = talk.id(), talk.rng
        metadata = {"request_id": talk.id(), "timestamp_": "absolute", "message_type": None, "is_complete": True}
        if role == "assistant":
            metadata |= {"model_slug": "gpt-sample", "default_model_slug": "auto", "parent_id": parent, "citations": []}
            metadata |= {"content_references": [], "finish_details": {"type": "stop", "stop_tokens": [200002]}}
        message = {
            "id": name,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": talk.seconds() + rng.random(),
            "update_time": None,
            "content": content,
            "status": "finished_successfully",
            "end_turn": role == "assistant" or None,
            "weight": 1.0,
            "metadata": metadata,
            "recipient": "all",
            "channel": None,
            **more,
        }
        chat["mapping"][name] = {"id": name, "message": message, "parent": parent, "children": []}
        chat["mapping"][parent]["children"].append(name)
        chat["current_node"] = name
        return name

    def chat() -> dict[str, Any]:
        value: dict[str, Any] = {"title": talk.question()[:40], "create_time": talk.seconds(), "update_time": None}
        root = "client-created-root"
        value |= {
            "mapping": {root: {"id": root, "message": None, "parent": None, "children": []}},
            "current_node": root,
        }
        at = node(value, root, "system", {"content_type": "text", "parts": [""]})
        for _ in talk.turns():
            at = node(value, at, "user", {"content_type": "text", "parts": [talk.question()]})
            if talk.rng.random() < 0.3:
                thoughts = [{"summary": "Looking", "content": talk.thought(), "chunks": [], "finished": True}]
                at = node(value, at, "assistant", {"content_type": "thoughts", "thoughts": thoughts})
            if talk.rng.random() < 0.1:
                node(value, at, "assistant", {"content_type": "text", "parts": [talk.answer()]}, channel="final")
            answer = {"content_type": "text", "parts": [talk.answer()]}
            at = node(value, at, "assistant", answer, channel="final")
        name = talk.id()
        more = ("moderation_results", "plugin_ids", "gizmo_id", "safe_urls", "is_archived", "voice", "memory_scope")
        return value | {"conversation_id": name, "id": name, "default_model_slug": "auto", **dict.fromkeys(more)}

    array(folder / "conversations.json", chat, size, escaped)


def claude(folder: Path, size: int, talk: Talk) -> None:
    """`conversations.json` of an account: flat lists of messages, blocks beside the flat text, tools, pasted files."""

    def block(kind: str, **more: Any) -> dict[str, Any]:
        return {"start_timestamp": talk.stamp(), "stop_timestamp": talk.stamp(), "flags": None, "type": kind, **more}

    def message(sender: str, content: list[dict[str, Any]], at: str, files: list[Any]) -> dict[str, Any]:
        text = "\n\n".join(str(part["text"]) for part in content if part["type"] == "text")
        value = {"uuid": talk.id(), "text": text, "content": content, "sender": sender, "created_at": at}
        return value | {"updated_at": at, "attachments": files, "files": []}

    def answer() -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if talk.rng.random() < 0.4:
            blocks.append(
                block("thinking", thinking=talk.thought(), summaries=[{"summary": "Weighing"}], cut_off=False)
            )
        if talk.rng.random() < 0.25:
            name, arguments, output = talk.tool()
            call = talk.short_id("toolu_")
            blocks.append(block("tool_use", id=call, name=name, input=arguments, message=name))
            result = [{"type": "text", "text": output, "uuid": talk.id()}]
            blocks.append(block("tool_result", tool_use_id=call, name=name, content=result, is_error=False))
        return [*blocks, block("text", text=talk.answer(), citations=[])]

    def chat() -> dict[str, Any]:
        at, messages = talk.stamp(), list[dict[str, Any]]()
        for _ in talk.turns():
            files: list[Any] = []
            if talk.rng.random() < 0.1:
                text = talk.tool()[2]
                files = [{"file_name": "p.txt", "file_size": len(text), "file_type": "txt", "extracted_content": text}]
            messages.append(message("human", [block("text", text=talk.question(), citations=[])], at, files))
            messages.append(message("assistant", answer(), at, []))
        head = {"uuid": talk.id(), "name": talk.question()[:40], "summary": "", "created_at": at, "updated_at": at}
        return head | {"account": {"uuid": "00000000-0000-4000-8000-000000000001"}, "chat_messages": messages}

    array(folder / "conversations.json", chat, size, orjson.dumps)


def slack(folder: Path, size: int, talk: Talk) -> None:
    """An export of a workspace: channels with a file a day, texts beside the same as blocks, threads and reactions."""
    users = [f"U{number:08}" for number in range(40)]
    people = [{"id": user, "name": f"p{user}", "profile": {"display_name": f"Person {user[-2:]}"}} for user in users]
    channels = [{"id": f"C{number:08}", "name": f"room-{number}", "created": 1_700_000_000} for number in range(12)]
    for name, value in (("users.json", people), ("channels.json", channels)):
        (folder / name).write_bytes(json.dumps(value, indent=4).encode())

    def message(ts: float, thread: float | None) -> dict[str, Any]:
        user, text = talk.rng.choice(users), talk.question() + (talk.thought() if talk.rng.random() < 0.3 else "")
        text = f"<@{talk.rng.choice(users)}> {text}" if talk.rng.random() < 0.2 else text
        elements = [{"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}]
        value: dict[str, Any] = {
            "user": user,
            "type": "message",
            "ts": f"{ts:.6f}",
            "client_msg_id": talk.id(),
            "text": text,
            "team": "T00000001",
            "user_team": "T00000001",
            "user_profile": {"avatar_hash": "g0", "display_name": f"Person {user[-2:]}", "team": "T00000001"},
            "blocks": [{"type": "rich_text", "block_id": "b1", "elements": elements}],
        }
        if thread is not None:
            value["thread_ts"] = f"{thread:.6f}"
        if talk.rng.random() < 0.2:
            value["reactions"] = [{"name": "wave", "users": users[:3], "count": 3}]
        return value

    def days() -> Iterator[tuple[str, bytes]]:
        written, day = 0, datetime(2020, 1, 1, tzinfo=UTC)
        while written < size:
            for channel in channels:
                start, thread, messages = day.timestamp(), None, list[dict[str, Any]]()
                for number in range(talk.rng.randint(20, 200)):
                    at = start + number * 300
                    thread = thread if talk.rng.random() < 0.3 else at if talk.rng.random() < 0.1 else None
                    messages.append(message(at, thread))
                data = json.dumps(messages, indent=4).replace("/", "\\/").encode()
                written += len(data)
                yield f"{channel['name']}/{day:%Y-%m-%d}.json", data
            day += timedelta(days=1)

    write_all(folder, days())


def flat_messages(folder: Path, size: int, talk: Talk) -> None:
    """A data set in the shape of fine-tuning files: one object with `messages` a line."""

    def lines() -> Iterator[bytes]:
        written = 0
        while written < size:
            turns = [{"role": "system", "content": "You are helpful."}]
            for _ in talk.turns():
                turns += ({"role": "user", "content": talk.question()}, {"role": "assistant", "content": talk.answer()})
            line = orjson.dumps({"messages": turns}) + b"\n"
            written += len(line)
            yield line

    with (folder / "train.jsonl").open("wb") as out:
        out.writelines(lines())


def turn_list(folder: Path, size: int, talk: Talk) -> None:
    """One long conversation a file, as a list of turns."""

    def file(number: int) -> tuple[str, bytes]:
        turns: list[dict[str, str]] = []
        while len(turns) < 2000:
            turns += ({"role": "user", "content": talk.question()}, {"role": "assistant", "content": talk.answer()})
        return f"chat-{number}.json", escaped(turns)

    written = number = 0
    while written < size:
        name, data = file(number)
        (folder / name).write_bytes(data)
        written, number = written + len(data), number + 1


# --- logs of agents ---------------------------------------------------------------------------------------------------


def claude_code(folder: Path, size: int, talk: Talk) -> None:
    """Session logs: a record a block, results of tools twice, bookkeeping between."""

    def records(session: str) -> Iterator[dict[str, Any]]:
        parent: str | None = None
        base = {"isSidechain": False, "userType": "external", "cwd": "/home/sample/dev/tidepool", "sessionId": session}
        base |= {"version": "2.1.220", "gitBranch": "main"}

        def record(kind: str, message: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
            nonlocal parent
            before, parent = parent, talk.id()
            held = {} if message is None else {"message": message}
            return {
                "parentUuid": before,
                **base,
                "type": kind,
                **held,
                "uuid": parent,
                "timestamp": talk.stamp(),
                **more,
            }

        def answer(block: dict[str, Any], answer_id: str) -> dict[str, Any]:
            usage = {"input_tokens": 4, "cache_creation_input_tokens": 900, "cache_read_input_tokens": 30_000}
            usage |= {"output_tokens": 300, "service_tier": "standard", "server_tool_use": {"web_search_requests": 0}}
            message = {"id": answer_id, "type": "message", "role": "assistant", "model": MODEL, "content": [block]}
            message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
            return record("assistant", message, requestId=f"req_{answer_id[4:]}")

        yield {"type": "permission-mode", "permissionMode": "default", "sessionId": session}
        while True:
            yield record("user", {"role": "user", "content": talk.question()}, promptSource="typed")
            yield {"type": "file-history-snapshot", "messageId": talk.id(), "snapshot": {"trackedFileBackups": {}}}
            for _ in range(talk.rng.choice((0, 1, 2, 3, 5, 8))):
                answer_id = talk.short_id("msg_")
                if talk.rng.random() < 0.3:
                    thinking = {"type": "thinking", "thinking": talk.thought(), "signature": talk.blob(600)}
                    yield answer(thinking, answer_id)
                name, arguments, output = talk.tool()
                call = talk.short_id("toolu_")
                yield answer({"type": "tool_use", "id": call, "name": name, "input": arguments}, answer_id)
                block = {"tool_use_id": call, "type": "tool_result", "content": output}
                result = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
                yield record("user", {"role": "user", "content": [block]}, toolUseResult=result)
            yield answer({"type": "text", "text": talk.answer()}, talk.short_id("msg_"))
            yield record("system", None, subtype="turn_duration", durationMs=31_000, isMeta=False)

    def name(session: str) -> str:
        return f"projects/-home-sample-dev-tidepool/{session}.jsonl"

    write_all(folder, logs(name, records, size, talk))


def codex(folder: Path, size: int, talk: Talk) -> None:
    """Rollouts: words as event and as item, encrypted reasoning, calls with their outputs, token counts."""

    def line(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": talk.stamp(), "type": kind, "payload": payload}

    def said(role: str, text: str) -> dict[str, Any]:
        kind = "input_text" if role == "user" else "output_text"
        return line("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]})

    def records(session: str) -> Iterator[dict[str, Any]]:
        head = {"id": session, "timestamp": talk.stamp(), "cwd": "/home/sample/dev/tidepool", "source": "cli"}
        head |= {"originator": "codex_cli_rs", "cli_version": "0.139.0", "base_instructions": {"text": talk.answer()}}
        yield line("session_meta", head)
        yield said("user", "<environment_context>\n  <cwd>/home/sample</cwd>\n</environment_context>")
        total = 0
        while True:
            turn, question = talk.id(), talk.question()
            yield line("event_msg", {"type": "task_started", "turn_id": turn, "model_context_window": 272_000})
            yield line(
                "turn_context", {"turn_id": turn, "cwd": "/home/sample", "model": "gpt-sample", "summary": "auto"}
            )
            yield said("user", question)
            yield line("event_msg", {"type": "user_message", "message": question, "images": [], "kind": "plain"})
            for _ in range(talk.rng.choice((0, 1, 2, 4, 8, 12))):
                thought = talk.thought()
                yield line("event_msg", {"type": "agent_reasoning", "text": thought})
                reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]}
                yield line("response_item", reasoning | {"content": None, "encrypted_content": talk.blob(1200)})
                _, arguments, output = talk.tool()
                call = talk.short_id("call_")
                packed = {"name": "exec_command", "arguments": orjson.dumps(arguments).decode(), "call_id": call}
                yield line("response_item", {"type": "function_call", **packed})
                output = f"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{output}"
                yield line("response_item", {"type": "function_call_output", "call_id": call, "output": output})
                total += 1000
                usage = {"input_tokens": total, "cached_input_tokens": total // 2, "output_tokens": total // 9}
                info = {"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 272_000}
                yield line("event_msg", {"type": "token_count", "info": info, "rate_limits": {"primary": None}})
            answer = talk.answer()
            yield line("event_msg", {"type": "agent_message", "message": answer})
            yield said("assistant", answer)
            yield line("event_msg", {"type": "task_complete", "turn_id": turn, "last_agent_message": answer})

    def name(session: str) -> str:
        return f"sessions/2026/03/14/rollout-2026-03-14T10-00-00-{session}.jsonl"

    write_all(folder, logs(name, records, size, talk))


KINDS: dict[str, Callable[[Path, int, Talk], None]] = {
    "chatgpt": chatgpt,
    "claude": claude,
    "slack": slack,
    "messages (data set)": flat_messages,
    "claude-code": claude_code,
    "codex": codex,
}
"""Name of a format -> the function that writes an export of it."""
