"""LM Studio: `~/.lmstudio/conversations/**/<ms>.conversation.json`, one file per chat, named by the time of its start.

Facts: https://lmstudio.ai/docs/app/basics/chat (where the files lie), https://github.com/lmstudio-ai/lmstudio-js
`ChatHistoryData.ts` (parts of a message) and public parsers of real files; checked 2026-11-29. The vendor calls the
structure internal, so other names are to be expected. A message has versions (regenerated answers) of which one is
selected, an answer has steps; no message has a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

from palace_pipeline.exports import known_keys
from palace_pipeline.exports.agent_log import cut_blocks
from palace_pipeline.exports.attachments import inline_file
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import arguments_text, count_of, name_of, text_of
from palace_pipeline.exports.one_chat import one_chat
from palace_pipeline.exports.plaintext import stem
from palace_pipeline.exports.times import parse_instant
from palace_pipeline.model import Attachment, Conversation, Kind, Message, Role

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
_HOUSEKEEPING = ("debugInfoBlock", "status")
_FOLDER = re.compile(r"(?:^|/)conversations/(?:.*/)?([^/]+)/[^/]+$")
_FAILED = ("toolCallFailed", "toolCallDenied", "toolCallGenerationFailed")

Json = dict[str, Any]
Step = tuple[Role, Kind, str | None, str]


class LMStudio:
    """Reads one chat object."""

    format = "lm-studio"
    provider = "lm-studio"
    recipe = 1
    spec = SpecTarget(
        "2026-11-29",
        "https://lmstudio.ai/docs/app/basics/chat, lmstudio-js ChatHistoryData.ts, public parsers",
        "medium",
        name="LM Studio chat",
        where="`~/.lmstudio/conversations/**/<ms>.conversation.json`",
        since="2024",
    )
    layout: Literal["elements"] = "elements"
    known_keys = known_keys.LM_STUDIO

    def detect(self, head: Head) -> bool:
        """True for an object whose messages have versions, or that has LM Studio's settings of a chat."""
        value = head.items[0] if head.shape == "object" and head.items else None
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
            return False
        messages = [item for item in value["messages"] if isinstance(item, dict)]
        if messages:
            return any(isinstance(item.get("versions"), list) for item in messages[:8])
        return "usePerChatPredictionConfig" in value or ("systemPrompt" in value and "tokenCount" in value)

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation; it is called by its file, since nothing inside names it."""
        items = value.get("messages") if isinstance(value, dict) else None
        messages: list[Any] | None = items if isinstance(items, list) else None
        read = partial(_conversation, value, path=member.path, place=place, report=report)
        yield from one_chat(messages, read, place, report, silent="empty conversation")


READER = LMStudio()


def _conversation(value: Json, items: list[Any], path: str, place: str, report: Report) -> Conversation:
    messages = _system(value)
    housekeeping = 0
    for number, item in enumerate(items):
        where = f"{place} message {number}".strip()
        versions = item.get("versions") if isinstance(item, dict) else None
        if not isinstance(versions, list) or not versions:
            reason = "null in place of a message" if item is None else "message without versions"
            report.skip(reason, where, expected=item is None or versions == [])
            continue
        selected = _selected(item.get("currentlySelected"), len(versions))
        for version_number, version in enumerate(versions):
            if not isinstance(version, dict):
                report.skip("not a version of a message", where, expected=version is None)
                continue
            rows, passed = _rows(version, where, report)
            housekeeping += passed
            if not rows and version_number == selected:
                report.skip("empty message", where, expected=True)
            for row in rows:
                row.branch_active = version_number == selected
            messages += rows
    if housekeeping:
        report.skip("debug information and progress", place, expected=True, count=housekeeping)
    derive_ids(messages)
    title = name_of(value.get("name"))
    file_id = stem(path).removesuffix(".conversation")
    folder = _FOLDER.search(path)
    touched = (parse_instant(value.get(key)) for key in ("assistantLastMessagedAt", "userLastMessagedAt"))
    return Conversation(
        "lm-studio",
        file_id
        if file_id != "conversation" and file_id
        else derive_conversation_id("lm-studio", title or "", messages),
        messages,
        title=title,
        created_at=parse_instant(value.get("createdAt")),
        updated_at=max((time for time in touched if time is not None), default=None),
        model=_model(value, messages),
        project=folder[1] if folder else None,
    )


def _selected(value: Any, count: int) -> int:
    """Number of the version that is shown; the last one if the file does not name one that exists."""
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count
    return value if known else count - 1


def _model(value: Json, messages: list[Message]) -> str | None:
    used = next((m.model for m in reversed(messages) if m.model and m.branch_active), None)
    last = value.get("lastUsedModel")
    last = last if isinstance(last, dict) else {}
    return used or name_of(last.get("identifier")) or name_of(last.get("indexedModelIdentifier"))


def _system(value: Json) -> list[Message]:
    """The system prompt: that of the chat's own settings before the plain one."""
    config = value.get("perChatPredictionConfig")
    fields = config.get("fields") if isinstance(config, dict) else None
    found = [
        field.get("value")
        for field in (fields if isinstance(fields, list) else [])
        if isinstance(field, dict) and field.get("key") == "llm.prediction.systemPrompt"
    ]
    text = next((text for prompt in (*found, value.get("systemPrompt")) if (text := text_of(prompt).strip())), None)
    return [] if text is None else [Message("", "system", text, "system", hidden_reason="system prompt")]


# --- versions and steps -----------------------------------------------------------------------------------------------


def _rows(version: Json, where: str, report: Report) -> tuple[list[Message], int]:
    """(rows of one version of a message: thinking and tools, then what the person sees; steps of housekeeping)."""
    name = version.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        report.unknown[f"role:{name}"] += 1
    parts = _Parts(where, report)
    parts.take_content(version.get("content") if not isinstance(version.get("steps"), list) else None, role == "tool")
    steps = version.get("steps")
    for step in steps if isinstance(steps, list) else []:
        parts.take_step(step)
    if not parts.texts and isinstance(steps, list) and not steps:
        parts.take_content(version.get("content"), role == "tool")
    sender = version.get("senderInfo")
    model = parts.model or (name_of(sender.get("senderName")) if isinstance(sender, dict) else None)
    rows: list[Message] = []
    text = "\n\n".join(text for text in parts.texts if text.strip()).strip()
    if role == "assistant" and text.startswith("<think>") and "</think>" in text:
        head, mark, text = text.partition("</think>")
        for thought in cut_blocks(head + mark, "think")[1]:
            parts.steps.append(("thinking", "thinking", None, thought))
        text = text.strip()
    for step_role, kind, tool, said in parts.steps:
        if said.strip() or tool:
            rows.append(Message("", step_role, said.strip(), kind, tool_name=tool))
    if text or parts.files:
        said_row = Message("", role or "system", text, "text" if text else "attachment", attachment=parts.files)
        if role == "system" or role is None:
            said_row.kind, said_row.hidden_reason = "system", "system prompt" if role else "unknown role"
        if role == "assistant":
            said_row.tokens_in, said_row.tokens_out = parts.tokens_in or None, parts.tokens_out or None
        rows.append(said_row)
    if role == "assistant":
        for row in rows:
            row.model = model
    return rows, parts.passed


class _Parts:
    """What the steps of one version hold."""

    def __init__(self, where: str, report: Report) -> None:
        self.where, self.report = where, report
        self.texts: list[str] = []
        self.steps: list[Step] = []
        self.files: list[Attachment] = []
        self.names: dict[str, str] = {}
        self.model: str | None = None
        self.tokens_in = self.tokens_out = self.passed = 0

    def take_step(self, step: Any) -> None:
        if not isinstance(step, dict):
            self.report.skip("not a step of a message", self.where, expected=step is None)
            return
        kind = step.get("type")
        if kind == "contentBlock" or (kind is None and "content" in step):
            self._take_block(step)
        elif kind == "toolStatus":
            self._take_status(step)
        elif kind == "citationBlock":
            source = step.get("source")
            source = source if isinstance(source, dict) else {}
            name = name_of(source.get("fileName"))
            self.files.append(Attachment(name, "citation", text=text_of(step.get("citedText")) or None))
        elif isinstance(kind, str) and kind in _HOUSEKEEPING:
            self.passed += 1
        else:
            self.report.unknown[f"step:{kind}"] += 1
            self.report.skip("unknown kind of step", self.where, expected=False)

    def _take_block(self, step: Json) -> None:
        info = step.get("genInfo")
        if isinstance(info, dict):
            self.model = name_of(info.get("identifier")) or name_of(info.get("indexedModelIdentifier")) or self.model
            stats = info.get("stats")
            if isinstance(stats, dict):
                self.tokens_in = count_of(stats.get("promptTokensCount")) or self.tokens_in
                self.tokens_out += count_of(stats.get("predictedTokensCount"))
        style = step.get("style")
        if isinstance(style, dict) and style.get("type") == "thinking":
            inner = _Parts(self.where, self.report)
            inner.take_content(step.get("content"), False)
            self.steps += inner.steps
            self.steps.append(("thinking", "thinking", None, "\n\n".join(inner.texts)))
            self.files += inner.files
        else:
            self.take_content(step.get("content"), step.get("role") == "tool")

    def _take_status(self, step: Json) -> None:
        """Progress of a tool call. Only a failure says what no result will."""
        state = step.get("statusState")
        status = state.get("status") if isinstance(state, dict) else None
        if not isinstance(status, dict) or status.get("type") not in _FAILED:
            self.passed += 1
            return
        reason = text_of(status.get("error")) or text_of(status.get("denyReason")) or str(status["type"])
        self.steps.append(("tool", "tool_result", self.names.get(str(step.get("callId"))), reason))

    def take_content(self, content: Any, tool: bool) -> None:
        """Parts of a message: texts, files, tool calls and their results. `tool`: texts are what a tool gave back."""
        values = content if isinstance(content, list) else [content]
        for part in values:
            if isinstance(part, str):
                self._take_text(text_of(part), tool)
            elif isinstance(part, dict):
                self._take_part(part, tool)
            elif part:
                self.report.skip("content of an unknown form", self.where, expected=False)

    def _take_text(self, text: str, tool: bool) -> None:
        if tool and text.strip():
            self.steps.append(("tool", "tool_result", None, text))
        elif text:
            self.texts.append(text)

    def _take_part(self, part: Json, tool: bool) -> None:
        match part.get("type"):
            case "text":
                self._take_text(text_of(part.get("text")), tool)
                if part.get("text") and not isinstance(part["text"], str):
                    self.report.skip("text of an unknown form", self.where, expected=False)
            case "file":
                self.files.append(_file(part))
            case "image" | "imageBase64" | "image_url":
                name = name_of(part.get("name")) or name_of(part.get("fileName"))
                self.files.append(inline_file("image", part.get("base64", part.get("data")), name))
            case "toolCallRequest":
                inner = part.get("toolCallRequest")
                call = inner if isinstance(inner, dict) else part
                name = name_of(call.get("name"))
                for key in ("callId", "toolCallRequestId", "id"):
                    if name and isinstance(call_id := call.get(key, part.get(key)), str | int):
                        self.names[str(call_id)] = name
                self.steps.append(
                    ("tool", "tool_call", name, arguments_text(call.get("parameters", call.get("arguments"))))
                )
            case "toolCallResult":
                ids = (part.get(key) for key in ("callId", "toolCallId", "toolCallRequestId", "id"))
                known = next((self.names[str(i)] for i in ids if str(i) in self.names), None)
                name = name_of(part.get("name")) or known
                self.steps.append(("tool", "tool_result", name, _result(part.get("content"))))
            case kind:
                self.report.unknown[f"content:{kind}"] += 1
                if text := text_of(part.get("text")):
                    self._take_text(text, tool)
                else:
                    self.report.skip("unknown kind of content", self.where, expected=False)


def _file(part: Json) -> Attachment:
    name = name_of(part.get("name")) or name_of(part.get("fileName")) or name_of(part.get("fileIdentifier"))
    return Attachment(
        name or name_of(part.get("identifier")),
        name_of(part.get("fileType")) or name_of(part.get("type")),
        count_of(part.get("sizeBytes")) or None,
        text=text_of(part.get("text")) or text_of(part.get("content")) or None,
    )


def _result(content: Any) -> str:
    if isinstance(content, list):
        texts = [text_of(item.get("text")) if isinstance(item, dict) else text_of(item) for item in content]
        if any(texts):
            return "\n\n".join(text for text in texts if text)
    return arguments_text(content)
