"""Generated exports of the further formats; see `export_files`. The shapes are those of tests/fixtures/exports."""

from __future__ import annotations

import html
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
from export_files import Talk, array, escaped, logs, turn_list, write_all


def many(folder: Path, size: int, name: Callable[[int], str], content: Callable[[], bytes]) -> None:
    """Files until `size` is reached."""

    def files() -> Iterator[tuple[str, bytes]]:
        written = number = 0
        while written < size:
            data = content()
            yield name(number), data
            written, number = written + len(data), number + 1

    write_all(folder, files())


def said(talk: Talk, turns: int | None = None) -> Iterator[tuple[str, str]]:
    """Questions and answers in turn."""
    for _ in talk.turns() if turns is None else range(turns):
        yield "user", talk.question()
        yield "assistant", talk.answer()


# --- chat products ----------------------------------------------------------------------------------------------------


def deepseek(folder: Path, size: int, talk: Talk) -> None:
    def chat() -> dict[str, Any]:
        at = talk.at().isoformat()
        mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "children": ["1"], "message": None}}
        for number, (role, text) in enumerate(said(talk), 1):
            kind = "REQUEST" if role == "user" else "RESPONSE"
            fragments = [{"type": "THINK", "content": talk.thought()}] if role == "assistant" else []
            fragments.append({"type": kind, "content": text})
            stamp = talk.at().isoformat()
            message = {"files": [], "model": "deepseek-sample", "inserted_at": stamp, "fragments": fragments}
            parent = str(number - 1) if number > 1 else "root"
            mapping[str(number)] = {"id": str(number), "parent": parent, "children": [str(number + 1)]}
            mapping[str(number)]["message"] = message
        mapping[str(len(mapping) - 1)]["children"] = []
        title = talk.question()[:40]
        return {"id": talk.id(), "title": title, "inserted_at": at, "updated_at": at, "mapping": mapping}

    array(folder / "conversations.json", chat, size, orjson.dumps)


def grok(folder: Path, size: int, talk: Talk) -> None:
    def chat() -> dict[str, Any]:
        name, responses, parent = talk.id(), list[dict[str, Any]](), ""
        for role, text in said(talk):
            own = talk.id()
            when = {"$date": {"$numberLong": str(int(talk.seconds() * 1000))}}
            response = {"_id": own, "conversation_id": name, "message": text, "create_time": when, "model": "grok-4"}
            response |= {
                "sender": "human" if role == "user" else "ASSISTANT",
                "parent_response_id": parent,
                "steps": [],
            }
            response |= {"manual": False, "partial": False, "web_search_results": [], "xpost_ids": [], "metadata": {}}
            responses.append({"response": response, "share_link": None})
            parent = own
        head = {"id": name, "create_time": talk.stamp(), "modify_time": talk.stamp(), "title": talk.question()[:40]}
        return {"conversation": head | {"leaf_response_id": parent, "starred": False}, "responses": responses}

    path = folder / "prod-grok-backend.json"
    array(path, chat, size, orjson.dumps)
    path.write_bytes(b'{"conversations": ' + path.read_bytes() + b', "projects": [], "tasks": []}')


def mistral(folder: Path, size: int, talk: Talk) -> None:
    def content() -> bytes:
        chat = talk.id()
        rest = {"reaction": "neutral", "reactionDetail": None, "context": None, "canvas": [], "quotes": [], "files": []}
        messages = [
            {"id": talk.id(), "version": 0, "chatId": chat, "content": text, "contentChunks": None, "role": role}
            | {"createdAt": talk.stamp(), **rest}
            for role, text in said(talk)
        ]
        return escaped(messages)

    many(folder, size, lambda number: f"chat-{number}.json", content)


def perplexity(folder: Path, size: int, talk: Talk) -> None:
    def content() -> bytes:
        thread = talk.id()
        entries = [
            {"uuid": talk.id(), "context_uuid": thread, "query_str": talk.question(), "display_model": "sonar"}
            | {"entry_created_datetime": talk.stamp(), "blocks": [{"markdown_block": {"answer": talk.answer()}}]}
            for _ in talk.turns()
        ]
        head = {"title": talk.question()[:40], "created_at": talk.stamp(), "updated_at": talk.stamp()}
        return orjson.dumps({"status": "success", "thread_metadata": head, "entries": entries})

    many(folder, size, lambda number: f"thread-{number}.json", content)


def takeout_json(folder: Path, size: int, talk: Talk) -> None:
    def activity() -> dict[str, Any]:
        answer = "".join(f"<p>{html.escape(part)}</p>" for part in talk.answer().split("\n\n"))
        value = {"header": "Gemini Apps", "title": f"Prompted {talk.question()}", "time": talk.stamp()}
        value |= {"safeHtmlItem": [{"html": answer}], "products": ["Gemini Apps"]}
        return value | {"activityControls": ["Gemini Apps Activity"]}

    place = folder / "Takeout/My Activity/Gemini Apps"
    place.mkdir(parents=True)
    array(place / "MyActivity.json", activity, size, escaped)


def takeout_html(folder: Path, size: int, talk: Talk) -> None:
    cell = "mdl-cell mdl-cell--{}-col"

    def activity() -> str:
        answer = "".join(f"<p>{html.escape(part)}</p>" for part in talk.answer().split("\n\n"))
        when = f"{talk.at():%b %-d, %Y, %-I:%M:%S\u202f%p UTC}"
        said_then = f"Prompted\xa0{html.escape(talk.question())}<br>{when}<br>{answer}"
        return (
            f'<div class="outer-cell {cell.format(12)} mdl-shadow--2dp"><div class="mdl-grid"><div class="header-cell '
            f'{cell.format(12)}"><p class="mdl-typography--title">Gemini Apps<br></p></div><div class="content-cell '
            f'{cell.format(6)} mdl-typography--body-1">{said_then}</div><div class="content-cell {cell.format(12)} '
            'mdl-typography--caption"><b>Products:</b><br>&emsp;Gemini Apps<br></div></div></div>'
        )

    place = folder / "Takeout/My Activity/Gemini Apps"
    place.mkdir(parents=True)
    with (place / "MyActivity.html").open("w", encoding="utf-8") as out:
        out.write('<!DOCTYPE html><html lang="en"><head><title>My Activity History</title></head><body>')
        written = 0
        while written < size:
            written += len(block := activity())
            out.write(block)
        out.write("</body></html>")


def ai_studio(folder: Path, size: int, talk: Talk) -> None:
    def content() -> bytes:
        chunks: list[dict[str, Any]] = []
        for role, text in said(talk, 200):
            name = "user" if role == "user" else "model"
            if name == "model":
                chunks.append({"text": talk.thought(), "role": name, "isThought": True, "tokenCount": 90})
            chunks.append({"text": text, "role": name, "tokenCount": 200, "parts": [{"text": text}]})
        settings = {"runSettings": {"temperature": 1.0, "model": "models/gemini-sample"}, "systemInstruction": {}}
        return json.dumps(settings | {"chunkedPrompt": {"chunks": chunks, "pendingInputs": []}}, indent=2).encode()

    many(folder, size, lambda number: f"Prompt {number}", content)


def open_webui(folder: Path, size: int, talk: Talk) -> None:
    def chat() -> dict[str, Any]:
        messages: dict[str, Any] = {}
        parent: str | None = None
        for role, text in said(talk):
            own = talk.id()
            value = {"id": own, "parentId": parent, "childrenIds": [], "role": role, "content": text}
            messages[own] = value | {"timestamp": int(talk.seconds()), "models": ["m"], "model": "m", "done": True}
            if parent is not None:
                messages[parent]["childrenIds"].append(own)
            parent = own
        title, name = talk.question()[:40], talk.id()
        inner = {"id": "", "title": title, "models": ["m"], "history": {"messages": messages, "currentId": parent}}
        inner |= {"messages": list(messages.values()), "tags": [], "timestamp": int(talk.seconds() * 1000)}
        return {"id": name, "user_id": "u", "title": title, "chat": inner, "updated_at": 1, "created_at": 1}

    array(folder / "chat-export-1773480400000.json", chat, size, escaped)


def librechat(folder: Path, size: int, talk: Talk) -> None:
    def content() -> bytes:
        name, parent, messages = talk.id(), "00000000-0000-0000-0000-000000000000", list[dict[str, Any]]()
        for role, text in said(talk):
            own = talk.id()
            value = {"messageId": own, "conversationId": name, "parentMessageId": parent, "text": text, "model": "m"}
            value |= {"sender": "User" if role == "user" else "Sample", "isCreatedByUser": role == "user"}
            messages.append(value | {"createdAt": talk.stamp(), "updatedAt": talk.stamp(), "error": False})
            parent = own
        head = {"conversationId": name, "endpoint": "openAI", "title": talk.question()[:40], "branches": False}
        return json.dumps(head | {"recursive": False, "messages": messages}, indent=2).encode()

    many(folder, size, lambda number: f"Chat {number}.json", content)


def lm_studio(folder: Path, size: int, talk: Talk) -> None:
    def content() -> bytes:
        messages: list[dict[str, Any]] = []
        for role, text in said(talk):
            block = {"type": "text", "text": text}
            step = {"type": "contentBlock", "stepIdentifier": "s", "content": [block], "shouldIncludeInContext": True}
            version = {"type": "multiStep", "role": role, "senderInfo": {"senderName": "m"}, "steps": [step]}
            if role == "user":
                version = {"type": "singleStep", "role": role, "content": [block]}
            messages.append({"versions": [version], "currentlySelected": 0})
        head = {
            "name": talk.question()[:40],
            "pinned": False,
            "createdAt": int(talk.seconds() * 1000),
            "tokenCount": 42,
        }
        return json.dumps(head | {"systemPrompt": "", "messages": messages}, indent=2).encode()

    many(folder, size, lambda number: f"conversations/{1773480400000 + number}.conversation.json", content)


# --- agents -----------------------------------------------------------------------------------------------------------


def gemini_cli(folder: Path, size: int, talk: Talk) -> None:
    def records(session: str) -> Iterator[dict[str, Any]]:
        yield {"sessionId": session, "projectHash": "ab" * 32, "startTime": talk.stamp(), "kind": "main"}
        while True:
            yield {"id": talk.id(), "timestamp": talk.stamp(), "type": "user", "content": [{"text": talk.question()}]}
            for _ in range(talk.rng.choice((0, 1, 3, 6))):
                name, arguments, output = talk.tool()
                call = {"id": talk.short_id(), "name": name, "args": arguments, "status": "success"}
                call["result"] = [{"functionResponse": {"id": "r", "name": name, "response": {"output": output}}}]
                thoughts = [{"subject": "Plan", "description": talk.thought(), "timestamp": talk.stamp()}]
                yield message(talk.thought(), thoughts=thoughts, toolCalls=[call | {"resultDisplay": output[:200]}])
            yield message(talk.answer())

    def message(text: str, **more: Any) -> dict[str, Any]:
        value = {"id": talk.id(), "timestamp": talk.stamp(), "type": "gemini", "content": [{"text": text}]}
        return value | {"model": "gemini-sample", "tokens": {"input": 9000, "output": 200, "cached": 0}, **more}

    write_all(
        folder, logs(lambda session: f"tmp/x/chats/session-2026-03-14T09-26-{session[:8]}.jsonl", records, size, talk)
    )


def vscode_copilot(folder: Path, size: int, talk: Talk) -> None:
    def content() -> bytes:
        requests: list[dict[str, Any]] = []
        for _ in range(60):
            read = {"kind": "toolInvocationSerialized", "toolId": "copilot_readFile", "toolCallId": talk.id()}
            read |= {"isConfirmed": True, "isComplete": True, "invocationMessage": {"value": "Reading"}}
            edit = {"kind": "textEditGroup", "uri": {"path": "/x"}, "edits": [[{"text": talk.tool()[2]}]]}
            response = [{"value": talk.thought()}, read, edit, {"value": talk.answer()}]
            value = {"requestId": talk.id(), "timestamp": int(talk.seconds() * 1000), "response": response}
            value |= {"message": {"text": talk.question(), "parts": []}, "variableData": {"variables": []}}
            requests.append(value | {"modelId": "copilot/gpt-sample", "result": {"metadata": {}}})
        head = {"version": 3, "sessionId": talk.id(), "creationDate": 1773480400000, "customTitle": None}
        return json.dumps(head | {"requesterUsername": "sample", "requests": requests}, indent=2).encode()

    many(folder, size, lambda number: f"workspaceStorage/0a/chatSessions/{number}.json", content)


def copilot_cli(folder: Path, size: int, talk: Talk) -> None:
    def line(kind: str, data: dict[str, Any]) -> dict[str, Any]:
        return {"type": kind, "data": data, "id": talk.id(), "timestamp": talk.stamp(), "parentId": None}

    def records(session: str) -> Iterator[dict[str, Any]]:
        yield line("session.start", {"sessionId": session, "context": {"cwd": "/home/sample", "branch": "main"}})
        while True:
            question = talk.question()
            yield line("user.message", {"content": question, "transformedContent": f"<now/>{question}"})
            for _ in range(talk.rng.choice((0, 1, 3, 6))):
                name, arguments, output = talk.tool()
                call = talk.short_id()
                request = {"toolCallId": call, "name": name, "arguments": arguments}
                more = {"toolRequests": [request], "reasoningText": talk.thought()}
                yield line("assistant.message", {"messageId": talk.id(), "content": "", **more})
                yield line("tool.execution_start", {"toolCallId": call, "toolName": name})
                result = {"toolCallId": call, "success": True, "result": {"content": output}}
                yield line("tool.execution_complete", result)
            yield line("assistant.message", {"messageId": talk.id(), "content": talk.answer(), "toolRequests": []})

    write_all(folder, logs(lambda session: f"session-state/{session}/events.jsonl", records, size, talk))


def openclaw(folder: Path, size: int, talk: Talk) -> None:
    def records(session: str) -> Iterator[dict[str, Any]]:
        parent: str | None = None

        def message(role: str, content: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
            nonlocal parent
            before, parent = parent, talk.id()
            inner = {"role": role, "content": content, "timestamp": int(talk.seconds() * 1000), **more}
            return {"type": "message", "id": parent, "parentId": before, "timestamp": talk.stamp(), "message": inner}

        yield {"type": "session", "version": 3, "id": session, "timestamp": talk.stamp(), "cwd": "/home/sample"}
        while True:
            yield message("user", [{"type": "text", "text": talk.question()}])
            for _ in range(talk.rng.choice((0, 1, 3, 6))):
                name, arguments, output = talk.tool()
                call = {"type": "toolCall", "id": talk.short_id(), "name": name, "arguments": arguments}
                yield message("assistant", [{"type": "thinking", "thinking": talk.thought()}, call])
                yield message("toolResult", [{"type": "text", "text": output}], toolCallId=call["id"], toolName=name)
            yield message("assistant", [{"type": "text", "text": talk.answer()}])

    write_all(folder, logs(lambda session: f"agents/main/sessions/{session}.jsonl", records, size, talk))


def hermes(folder: Path, size: int, talk: Talk) -> None:
    def stamp() -> str:
        return f"{talk.at():%Y-%m-%dT%H:%M:%S.%f}"

    def records(_session: str) -> Iterator[dict[str, Any]]:
        yield {"role": "session_meta", "tools": [], "model": "m", "platform": "cli", "timestamp": stamp()}
        while True:
            yield {"role": "user", "content": talk.question(), "timestamp": stamp()}
            for _ in range(talk.rng.choice((0, 1, 3, 6))):
                name, arguments, output = talk.tool()
                packed = {"name": name, "arguments": orjson.dumps(arguments).decode()}
                call = {"id": talk.short_id(), "type": "function", "function": packed}
                value = {"role": "assistant", "content": "", "reasoning": talk.thought(), "tool_calls": [call]}
                yield value | {"finish_reason": "tool_calls", "timestamp": stamp()}
                yield {"role": "tool", "content": output, "tool_call_id": call["id"], "timestamp": stamp()}
            yield {"role": "assistant", "content": talk.answer(), "finish_reason": "stop", "timestamp": stamp()}

    write_all(folder, logs(lambda session: f"sessions/20260314_092640_{session[:8]}.jsonl", records, size, talk))


def grok_build(folder: Path, size: int, talk: Talk) -> None:
    place = "sessions/%2Fhome%2Fsample"

    def records(_session: str) -> Iterator[dict[str, Any]]:
        yield {"type": "system", "content": "You are helpful."}
        number = 0
        while True:
            query = [{"type": "text", "text": f"<user_query>\n{talk.question()}\n</user_query>"}]
            yield {"type": "user", "content": query, "prompt_index": number}
            number += 1
            for _ in range(talk.rng.choice((0, 1, 3, 6))):
                name, arguments, output = talk.tool()
                yield {
                    "type": "reasoning",
                    "id": talk.id(),
                    "summary": [{"type": "summary_text", "text": talk.thought()}],
                }
                call = {"id": talk.short_id(), "name": name, "arguments": orjson.dumps(arguments).decode()}
                yield {"type": "assistant", "content": "", "model_id": "m", "tool_calls": [call]}
                yield {"type": "tool_result", "tool_call_id": call["id"], "content": output}
            yield {"type": "assistant", "content": talk.answer(), "model_id": "m"}

    write_all(folder, logs(lambda session: f"{place}/{session}/chat_history.jsonl", records, size, talk))


def cursor(folder: Path, size: int, talk: Talk) -> None:
    """The database: a bubble a row, the order of a chat's bubbles in a row of its own."""
    database = sqlite3.connect(folder / "state.vscdb")
    database.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    database.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    written = 0

    def put(key: str, value: dict[str, Any]) -> None:
        nonlocal written
        data = orjson.dumps(value)
        written += len(data)
        database.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, data.decode()))

    while written < size:
        chat, heads = talk.id(), list[dict[str, Any]]()

        def bubble(kind: int, text: str, chat: str = chat, heads: list[dict[str, Any]] = heads, **more: Any) -> None:
            own = talk.id()
            heads.append({"bubbleId": own, "type": kind})
            value = {"_v": 3, "type": kind, "bubbleId": own, "text": text, "createdAt": talk.stamp(), **more}
            put(f"bubbleId:{chat}:{own}", value | {"attachedCodeChunks": [], "context": {"fileSelections": []}})

        for _ in talk.turns():
            bubble(1, talk.question())
            for _ in range(talk.rng.choice((0, 1, 3, 6))):
                name, arguments, output = talk.tool()
                call = {"name": name, "rawArgs": orjson.dumps(arguments).decode(), "toolCallId": talk.short_id()}
                bubble(2, "", toolFormerData=call | {"status": "completed", "result": output})
            bubble(2, talk.answer())
        value = {"_v": 10, "composerId": chat, "name": talk.question()[:40], "createdAt": 1773480400000}
        put(f"composerData:{chat}", value | {"fullConversationHeadersOnly": heads, "conversationMap": {}})
    database.commit()
    database.close()


def continue_dev(folder: Path, size: int, talk: Talk) -> None:
    def content() -> bytes:
        history: list[dict[str, Any]] = []
        for role, text in said(talk):
            context = [{"name": "f", "description": "f", "content": talk.tool()[2]}] if role == "user" else []
            history.append({"message": {"id": talk.id(), "role": role, "content": text}, "contextItems": context})
        head = {"sessionId": talk.id(), "title": talk.question()[:40], "workspaceDirectory": "file:///home/sample"}
        return json.dumps(head | {"history": history}, indent=1).encode()

    many(folder, size, lambda number: f"sessions/{number:08}-0000-4000-8000-000000000001.json", content)


# --- people and text --------------------------------------------------------------------------------------------------

_PEOPLE = ("Inès Sample", "Teo", "海人", "Sample Person")


def discord(folder: Path, size: int, talk: Talk) -> None:
    def message() -> dict[str, Any]:
        number = talk.rng.randrange(4)
        author = {"id": str(number), "name": f"p{number}", "discriminator": "0000", "nickname": _PEOPLE[number]}
        author |= {"color": None, "isBot": False, "roles": [], "avatarUrl": "https://example.invalid/a.png"}
        at = f"{talk.at():%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "+01:00"
        value = {"id": str(talk.rng.getrandbits(60)), "type": "Default", "timestamp": at, "timestampEdited": None}
        value |= {"callEndedTimestamp": None, "isPinned": False, "content": talk.question(), "author": author}
        return value | {"attachments": [], "embeds": [], "stickers": [], "reactions": [], "mentions": []}

    head = {
        "guild": {"id": "1", "name": "Harbour"},
        "channel": {"id": "300", "type": "GuildTextChat", "name": "general"},
    }
    path = folder / "Harbour - general [300].json"
    array(path, message, size, lambda value: json.dumps(value, indent=2, ensure_ascii=False).encode())
    start = json.dumps(head, indent=2)[:-2].encode()
    path.write_bytes(start + b',\n  "messages": ' + path.read_bytes() + b',\n  "messageCount": 1\n}')


def telegram(folder: Path, size: int, talk: Talk) -> None:
    def message() -> dict[str, Any]:
        at, number, text = talk.at(), talk.rng.randrange(4), talk.question()
        value = {"id": talk.count, "type": "message", "date": f"{at:%Y-%m-%dT%H:%M:%S}"}
        value |= {"date_unixtime": str(int(at.timestamp())), "from": _PEOPLE[number], "from_id": f"user{number}"}
        return value | {"text": text, "text_entities": [{"type": "plain", "text": text}]}

    path = folder / "result.json"
    array(path, message, size, lambda value: json.dumps(value, indent=1, ensure_ascii=False).encode())
    head = b'{\n "name": "Harbour group",\n "type": "private_group",\n "id": 4001,\n "messages": '
    path.write_bytes(head + path.read_bytes() + b"\n}")


def lines_of(folder: Path, name: str, size: int, line: Callable[[], str]) -> None:
    with (folder / name).open("w", encoding="utf-8") as out:
        written = 0
        while written < size:
            written += len((text := line()).encode())
            out.write(text)


def whatsapp(folder: Path, size: int, talk: Talk) -> None:
    def line() -> str:
        text = talk.question() if talk.rng.random() < 0.9 else talk.thought()
        return f"[{talk.at():%d/%m/%Y, %H:%M:%S}] {talk.rng.choice(_PEOPLE)}: {text}\n"

    lines_of(folder, "_chat.txt", size, line)


def markdown(folder: Path, size: int, talk: Talk) -> None:
    def content() -> bytes:
        names = {"user": "**You:**", "assistant": "**ChatGPT:**"}
        return "\n\n".join(f"{names[role]}\n\n{text}" for role, text in said(talk, 20)).encode()

    many(folder, size, lambda number: f"chat-{number}.md", content)


def notes(folder: Path, size: int, talk: Talk) -> None:
    many(
        folder, size, lambda number: f"note-{number}.md", lambda: "\n\n".join(talk.answer() for _ in range(9)).encode()
    )


KINDS: dict[str, Callable[[Path, int, Talk], None]] = {
    "deepseek": deepseek,
    "grok": grok,
    "mistral": mistral,
    "perplexity": perplexity,
    "takeout (JSON)": takeout_json,
    "takeout (HTML)": takeout_html,
    "ai-studio": ai_studio,
    "open-webui": open_webui,
    "librechat": librechat,
    "lm-studio": lm_studio,
    "messages (one list)": turn_list,
    "gemini-cli": gemini_cli,
    "vscode-copilot": vscode_copilot,
    "copilot-cli": copilot_cli,
    "openclaw": openclaw,
    "hermes": hermes,
    "grok-build": grok_build,
    "cursor (SQLite)": cursor,
    "continue": continue_dev,
    "discord": discord,
    "telegram": telegram,
    "whatsapp": whatsapp,
    "markdown chat": markdown,
    "notes": notes,
}
"""Name of a format -> the function that writes an export of it."""
