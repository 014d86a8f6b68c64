"""Google AI Studio: prompts in the Drive folder `Google AI Studio`, files without an ending.

`{runSettings{model}, systemInstruction, chunkedPrompt{chunks[], pendingInputs[]}}`; a chunk is `{role user|model, text,
parts[], isThought, driveImage|driveDocument|inlineImage…, tokenCount, createTime (newer), grounding, …}`. Converters also
write the bare list of chunks. Facts: https://github.com/yetanotherchris/openwebui-importer, public viewers and
converters, checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from palace_pipeline.exports.agent_log import count_unknown
from palace_pipeline.exports.attachments import inline_file, kind_of_files
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.gemini_parts import Parts, bytes_of, result_text, salvaged, split_parts
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import arguments_text, count_of, name_of, text_of
from palace_pipeline.exports.text import clean_text, parse_json
from palace_pipeline.exports.times import parse_instant, parse_naive
from palace_pipeline.model import Attachment, Citation, Conversation, Kind, Message, Role

PROVIDER = "ai-studio"

MAX_BYTES = 1024 * 1024 * 1024
_ENDING = re.compile(r"\.(?:json|txt|prompt)$", re.IGNORECASE)
_PROMPTS = ("chunkedPrompt", "multimodalPrompt", "freeformPrompt", "textPrompt")
_TOP_KEYS = frozenset({"runSettings", "systemInstruction", "applicationMetadata", "citations", *_PROMPTS})
_CHUNK_KEYS = frozenset(
    """
    role text parts isThought tokenCount finishReason createTime thinkingBudget thoughtSignatures thinkingLevel
    safetyRatings grounding citations branchParent branchChildren isEdited isGeneratedUsingApiKey errorMessage
    executableCode codeExecutionResult functionCall functionCallResponse functionResponse youtubeVideo id
    driveImage driveDocument driveVideo driveAudio driveFile inlineImage inlineFile inlineData inlineAudio inlineVideo
    imageGenerationPrompt videoMetadata mediaResolution
    """.split()  # noqa: SIM905
)


class AiStudioReader:
    """Reader of one prompt: one conversation per file."""

    format = "google-ai-studio"
    provider = PROVIDER
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://github.com/yetanotherchris/openwebui-importer and public viewers of AI Studio's files",
        "medium",
        name="Google AI Studio prompt",
        where="drive.google.com → folder `Google AI Studio` → download (files without an ending); also Takeout → Drive",
        since="2024",
    )
    layout: Literal["whole"] = "whole"
    known_keys = {"": _TOP_KEYS | _CHUNK_KEYS, "chunkedPrompt.chunks.*": _CHUNK_KEYS}  # noqa: RUF012 - never changed

    def detect(self, head: Head) -> bool:
        """An object with a prompt of chunks, or a list of chunks that bear AI Studio's marks."""
        if head.shape == "object":
            return "chunkedPrompt" in head.keys or (
                "runSettings" in head.keys and any(p in head.keys for p in _PROMPTS)
            )
        items = [item for item in head.items if isinstance(item, dict)]
        marks = any("isThought" in item or ("tokenCount" in item and "text" in item) for item in items)
        return head.shape == "array" and marks and all(item.get("role") in ("user", "model") for item in items)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The conversation of a file, if anything is said in it."""
        value = _value_of(member, report)
        prompt: Any = value
        if isinstance(value, dict):
            prompt = next((value[key] for key in _PROMPTS if isinstance(value.get(key), dict)), None)
        chunks = prompt.get("chunks") if isinstance(prompt, dict) else prompt
        settings = value.get("runSettings") if isinstance(value, dict) else None
        model = name_of(settings.get("model")) if isinstance(settings, dict) else None
        model = model.removeprefix("models/") if model else None
        if not isinstance(chunks, list):
            report.skip("prompt without chunks", expected=False, unit="conversation")
            return
        rows = list(_instruction(value))
        rows += _rows_of(chunks, model, report)
        if isinstance(prompt, dict):
            rows += _pending(prompt.get("pendingInputs"), report)
        visible = [row for row in rows if row.visible]
        if not visible:
            report.skip("prompt that was never run", expected=True, unit="conversation")
            return
        derive_ids(rows)
        title = _ENDING.sub("", clean_text(member.path.rsplit("/", 1)[-1]))
        # The file's name can be changed; with times in it the chat is known without.
        dated = any(row.created_at or row.local_time for row in visible)
        conversation_id = derive_conversation_id(PROVIDER, "" if dated else title, visible)
        yield Conversation(PROVIDER, conversation_id, rows, title=title or None, model=model)


READER = AiStudioReader()


def _value_of(member: Member, report: Report) -> object:
    data = bytes_of(member, report, MAX_BYTES)
    data = data.removeprefix(b"\xef\xbb\xbf").strip(b"\0 \t\r\n")
    try:
        return parse_json(data)
    except ValueError:
        found = salvaged(data, "chunks", "role", report)
        return {**found, "chunkedPrompt": {"chunks": found.get("chunks")}}


def _instruction(value: object) -> Iterator[Message]:
    """What the person told the model beforehand; AI Studio shows it beside the chat, not in it."""
    told = value.get("systemInstruction") if isinstance(value, dict) else None
    if isinstance(told, dict):
        parts = told.get("parts")
        texts = [text_of(told.get("text"))]
        texts += (
            [text_of(part.get("text")) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        )
        told = "\n\n".join(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if isinstance(told, str) and told.strip():
        yield Message("", "system", clean_text(told).strip(), "system", hidden_reason="system instruction")


def _pending(inputs: object, report: Report) -> Iterator[Message]:
    """What was typed and never sent."""
    for chunk in inputs if isinstance(inputs, list) else []:
        if isinstance(chunk, dict) and (text := _words(chunk, report)[0].strip()):
            yield Message("", "user", text, hidden_reason="not sent")


def _rows_of(chunks: list[Any], model: str | None, report: Report) -> list[Message]:
    """The rows of all chunks. A file is a chunk of its own: it goes to the text that it was sent with."""
    rows: list[Message] = []
    waiting: list[Message] = []
    last_user: Message | None = None
    for number, chunk in enumerate(chunks):
        if not isinstance(chunk, dict):
            report.skip("not a chunk", f"chunks[{number}]", expected=chunk is None)
            continue
        found = list(_chunk_rows(chunk, model, report, f"chunks[{number}]"))
        if len(found) == 1 and found[0].role == "user" and not found[0].text:
            waiting.append(found[0])
            continue
        next_user = next((row for row in found if row.role == "user" and row.visible), None)
        rows += _placed(waiting, next_user, last_user)
        waiting = []
        rows += found
        last_user = next_user
    return rows + _placed(waiting, None, last_user)


def _placed(waiting: list[Message], after: Message | None, before: Message | None) -> list[Message]:
    """Files without words join the text after them, else that right before; else they are one message."""
    files = [file for row in waiting for file in row.attachment]
    if after is not None and files:
        after.attachment = files + after.attachment
    elif before is not None:
        before.attachment = before.attachment + files
    elif waiting:
        waiting[0].attachment = files
        return waiting[:1]
    return []


def _chunk_rows(chunk: Mapping[str, Any], model: str | None, report: Report, place: str) -> Iterator[Message]:
    role = chunk.get("role")
    text, parts = _words(chunk, report)
    files = [*parts.files, *_files(chunk)]
    instant = parse_instant(chunk.get("createTime"))
    local = parse_naive(chunk.get("createTime")) if instant is None else None
    count = count_of(chunk.get("tokenCount")) or None

    def row(role: Role, text: str, kind: Kind) -> Message:
        by = model if role in ("assistant", "thinking", "tool") else None
        return Message("", role, text, kind, instant, local, model=by)

    found: list[Message] = []
    if chunk.get("isThought") and text.strip():
        found.append(row("thinking", text.strip(), "thinking"))
        text = ""
    found += [row("thinking", thought.strip(), "thinking") for thought in parts.thoughts if thought.strip()]
    for name, said, is_result in _calls(chunk, parts):
        found.append(row("tool", said, "tool_result" if is_result else "tool_call"))
        found[-1].tool_name = name
    if text.strip() or files:
        speaks: Role = "user" if role == "user" else "assistant" if role == "model" else "system"
        kind: Kind = "text" if text.strip() else kind_of_files(files)
        found.append(row(speaks, text.strip("\n"), "system" if speaks == "system" else kind))
        found[-1].attachment, found[-1].citations = files, _citations(chunk)
        if speaks == "system":
            count_unknown(report, "role", role)
            report.skip("chunk of an unknown role", place, expected=False)
            found[-1].hidden_reason = "unknown role"
    if (error := text_of(chunk.get("errorMessage")).strip()) and not found:
        found.append(row("system", error, "event"))
        found[-1].hidden_reason = "error of the program"
    if not found:
        report.skip("empty message", place, expected=True)
    elif role == "user":
        found[-1].tokens_in = count
    else:
        found[-1].tokens_out = count
    yield from found


def _words(chunk: Mapping[str, Any], report: Report) -> tuple[str, Parts]:
    """(text, parts) of a chunk. The text repeats its parts; of parts that hold thoughts only they say which is which."""
    parts = split_parts(chunk.get("parts"), report)
    text = text_of(chunk.get("text"))
    if chunk.get("isThought"):
        thoughts, parts.thoughts = "".join(parts.thoughts), []
        return text or thoughts or parts.text, parts
    if parts.text and (parts.thoughts or not text.strip()):
        return parts.text, parts
    if parts.thoughts and text.strip() == "".join(parts.thoughts).strip():
        return "", parts
    return text, parts


_FILES = {
    "driveImage": "image", "driveDocument": "document", "driveVideo": "video", "driveAudio": "audio", "driveFile": "file",
    "inlineImage": "image", "inlineFile": "file", "inlineData": "file", "inlineAudio": "audio", "inlineVideo": "video",
}  # fmt: skip


def _files(chunk: Mapping[str, Any]) -> Iterator[Attachment]:
    """Files of a chunk. Drive's are known by an id alone; the data of inline ones is not kept."""
    for key, kind in _FILES.items():
        held = chunk.get(key)
        for file in held if isinstance(held, list) else [held]:
            if not isinstance(file, dict):
                continue
            name = file.get("name", file.get("displayName", file.get("fileName")))
            if isinstance(file.get("data"), str):
                yield inline_file(file.get("mimeType") or kind, file["data"], name)
            else:
                yield Attachment(name=name_of(name), type=name_of(file.get("mimeType")) or kind)
    if isinstance(video := chunk.get("youtubeVideo"), dict):
        yield Attachment(name=name_of(video.get("id")), type="video")


def _calls(chunk: Mapping[str, Any], parts: Parts) -> Iterator[tuple[str | None, str, bool]]:
    """(tool, text, whether it is a result). A chunk repeats its code as a part."""
    for call in parts.calls:
        yield call.name, call.text, call.is_result
    if parts.calls:
        return
    if isinstance(code := chunk.get("executableCode"), dict):
        yield "code execution", text_of(code.get("code")), False
    if isinstance(outcome := chunk.get("codeExecutionResult"), dict):
        yield "code execution", text_of(outcome.get("output")), True
    if isinstance(call := chunk.get("functionCall"), dict):
        yield name_of(call.get("name")), arguments_text(call.get("args", call.get("parameters"))), False
        if "response" in call:
            yield name_of(call.get("name")), result_text(call["response"])[0], True
    for key in ("functionResponse", "functionCallResponse"):
        if isinstance(result := chunk.get(key), dict):
            yield name_of(result.get("name")), result_text(result.get("response", result.get("content")))[0], True


def _citations(chunk: Mapping[str, Any]) -> list[Citation]:
    """Sources of an answer: those of a search, and those that the model was found to repeat."""
    grounding = chunk.get("grounding")
    sources: list[Any] = []
    if isinstance(grounding, dict):
        for key in ("groundingSources", "groundingChunks", "corroborationSegments"):
            sources += held if isinstance(held := grounding.get(key), list) else []
    sources += held if isinstance(held := chunk.get("citations"), list) else []
    found: list[Citation] = []
    for source in sources:
        if not isinstance(source, dict):
            continue
        inner = source.get("web")
        holder: Mapping[str, Any] = inner if isinstance(inner, dict) else source
        url = name_of(holder.get("uri")) or name_of(holder.get("url"))
        if url and (citation := Citation(url, name_of(holder.get("title")))) not in found:
            found.append(citation)
    return found
