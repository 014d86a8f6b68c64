"""VS Code chat: the parts of one answer -> message rows.

Parts without a kind are Markdown and join with nothing between; among them stand references, tools, thinking, edits
and what only the window shows. Kinds as in chatService.ts and chatModel.ts of https://github.com/microsoft/vscode,
checked 2026-11-29.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from palace_pipeline.exports.agent_log import Record, count_unknown
from palace_pipeline.exports.attachments import base_name, inline_file, uri_path
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.claude_code_blocks import Rows
from palace_pipeline.exports.json_values import arguments_text, dicts_of, name_of, text_of, unpacked
from palace_pipeline.model import Attachment, Message

_QUIET = frozenset(
    """
    undoStop codeblockUri mcpServersStarting mcpServersStartingSerialized progressTaskSerialized progressTask
    progressTaskResult progressMessage prepareToolInvocation command commandButton treeData extensions multiDiffData
    reference codeCitation usedContext move agentDetection clearToPreviousToolInvocation hook disabledClaudeHooks
    externalEdits externalEdit workspaceEdit followup planReview autoModeResolution systemInitiated info
    """.split()  # noqa: SIM905
)
"""What the window shows beside an answer: progress, buttons, marks for undo."""
_MARKDOWN = (None, "", "markdownContent", "markdown", "markdownVuln")
_EDITS = ("textEditGroup", "notebookEditGroup", "textEdit", "notebookEdit")
_TOOLS = ("toolInvocationSerialized", "toolInvocation")
_NOTICES = ("warning", "confirmation", "elicitationSerialized", "elicitation", "pullRequest", "errorDetails")
_FENCE = re.compile(r"\s*`{3,}[\w-]*\s*")
_SENTENCE_END = re.compile(r"[.!?:;…。！？：；)\]`*\"'»”]$")
_SENTENCE_START = re.compile(r"[^\W_]|[#*\[`«“\"-]")


@dataclass(slots=True)
class Answer:
    """Collects the rows of one answer. `arguments`, `results`: of tool calls by their id, from the model's own rounds."""

    rows: Rows
    key: str
    report: Report
    model: str | None
    arguments: dict[str, object] = field(default_factory=dict[str, object])
    results: dict[str, str] = field(default_factory=dict[str, str])
    pieces: list[str] = field(default_factory=list)
    text_row: Message | None = None
    thinking: Message | None = None
    thinking_id: object = None
    thoughts: int = 0
    _tool_since: bool = False

    def take_all(self, parts: list[Any]) -> None:
        """All parts, in order; a frame of code around an edit is no text."""
        known = [{"value": part} if isinstance(part, str) else part for part in parts]
        kinds = [part.get("kind") if isinstance(part, dict) else None for part in known]
        editing = [kind in (*_EDITS, "codeblockUri") for kind in kinds]
        for at, part in enumerate(known):
            if not isinstance(part, dict):
                self.report.skip("not a part of an answer", expected=part is None)
                continue
            beside = (at > 0 and editing[at - 1]) or (at + 1 < len(known) and editing[at + 1])
            if kinds[at] in _MARKDOWN and beside and _FENCE.fullmatch(_value(part)):
                self._tool_since = True
                continue
            self._take(part, kinds[at])
        self._finish()

    def _take(self, part: Record, kind: object) -> None:
        if kind != "thinking":
            self.thinking = None
        if kind in _MARKDOWN:
            text = _value(part)
            if not text and part.get("value"):
                self.report.skip("part of an answer that is no text", expected=False)
            self._add_text(text)
        elif kind == "inlineReference":
            self._add_text(reference_text(part))
        elif kind == "thinking":
            self._add_thinking(part)
        elif kind in _TOOLS:
            self._add_tool(part)
        elif kind in _EDITS:
            self._add_edit(part)
        elif kind == "questionCarousel":
            self._add_questions(part)
        elif kind in _NOTICES:
            words = [_value(part.get(key)) for key in ("content", "title", "message", "description")]
            self.rows.add_hidden("notice of the program", "\n\n".join(word for word in words if word.strip()))
        elif not isinstance(kind, str) or kind not in _QUIET:
            count_unknown(self.report, "response part", kind)
            self.rows.add_hidden("part of an unknown kind", _value(part))

    def _add_text(self, text: str) -> None:
        if not text:
            return
        if self._tool_since and self.pieces and _is_seam(self.pieces[-1], text):
            self.pieces.append("\n\n")
        self._tool_since = False
        self.pieces.append(text)
        if self.text_row is None and text.strip():
            self.text_row = self.rows.add(role="assistant", model=self.model)
            self.text_row.message_id = f"{self.key}/answer" if self.key else ""

    def _add_thinking(self, part: Record) -> None:
        value = part.get("value")
        pieces = value if isinstance(value, list) else [value]
        text = "".join(text_of(piece) for piece in pieces)
        if not text.strip():
            return
        if self.thinking is not None and self.thinking_id == part.get("id"):
            self.thinking.text += text
            return
        self.thinking_id = part.get("id")
        self.thinking = self.add_thought(text)

    def add_thought(self, text: str) -> Message:
        """A row of thinking; its id does not depend on what else the answer holds."""
        row = self.rows.add(role="thinking", kind="thinking", text=text, model=self.model)
        row.message_id = f"{self.key}/thinking/{self.thoughts}" if self.key else ""
        self.thoughts += 1
        return row

    def _add_tool(self, part: Record) -> None:
        self._tool_since = True
        name, call = name_of(part.get("toolId")) or name_of(part.get("toolName")), name_of(part.get("toolCallId"))
        details, data = part.get("resultDetails"), part.get("toolSpecificData")
        details = details if isinstance(details, dict) else {}
        data = data if isinstance(data, dict) else {}
        row = self.rows.add(role="tool", kind="tool_call", tool_name=name, model=self.model)
        row.text = self._arguments(part, call, details, data)
        output, files = _output(details, data)
        output = output or self.results.get(call or "", "")
        if call and self.key:
            row.message_id = f"{self.key}/{call}"
        if output or files:
            result = self.rows.add(role="tool", kind="tool_result", text=output, tool_name=name, attachment=files)
            if call and self.key:
                result.message_id = f"{self.key}/{call}/output"

    def _arguments(self, part: Record, call: str | None, details: Record, data: Record) -> str:
        """What the tool was called with, as far as it is kept: else what the window says of it."""
        told = _value(part.get("pastTenseMessage")) or _value(part.get("invocationMessage"))
        given = self.arguments.get(call or "")
        command = data.get("commandLine")
        if isinstance(command, dict):
            command = next((c for key in ("userEdited", "toolEdited", "original") if (c := command.get(key))), None)
        for value in (
            given,
            command or data.get("command"),
            details.get("input"),
            data.get("rawInput"),
            data.get("prompt"),
        ):
            if text := arguments_text(unpacked(value)).strip():
                return f"{told}\n\n{text}" if told else text
        todos = [text_of(todo.get("title")) for todo in dicts_of(data.get("todoList"))]
        return "\n".join(filter(None, [told, *todos]))

    def _add_edit(self, part: Record) -> None:
        """An edit of a file: its path and the new text, as a call of a tool."""
        self._tool_since = True
        path = path_of(part.get("uri")) or ""
        edits = part.get("edits")
        texts: list[str] = []
        for edit in edits if isinstance(edits, list) else ():
            for inner in edit if isinstance(edit, list) else [edit]:
                if isinstance(inner, dict) and isinstance(inner.get("text"), str):
                    texts.append(text_of(inner["text"]))
        text = "\n".join(filter(None, [path, "".join(texts).strip("\n")]))
        self.rows.add(role="tool", kind="tool_call", text=text, tool_name="edit", model=self.model)

    def _add_questions(self, part: Record) -> None:
        """Questions of the agent with their choices, and what the person chose."""
        self._tool_since = True
        asked = [_value(q.get("title")) or _value(q.get("message")) for q in dicts_of(part.get("questions"))]
        self.rows.add(role="tool", kind="tool_call", text="\n".join(filter(None, asked)), tool_name="questionCarousel")
        if answers := arguments_text(part.get("data")):
            self.rows.add(role="tool", kind="tool_result", text=answers, tool_name="questionCarousel")

    def _finish(self) -> None:
        if self.text_row is not None:
            self.text_row.text = "".join(self.pieces).strip()


def _is_seam(left: str, right: str) -> bool:
    """Where a tool stood between two sentences, the window breaks the line."""
    return _SENTENCE_END.search(left) is not None and _SENTENCE_START.match(right) is not None


def _value(part: object) -> str:
    """The text of Markdown in any of its forms: a text, `{value}`, `{content: {value}}`."""
    for _ in range(3):
        if isinstance(part, str):
            return text_of(part)
        if not isinstance(part, dict):
            return ""
        part = part["value"] if part.get("value") else part.get("content")
    return ""


def _output(details: Record, data: Record) -> tuple[str, list[Attachment]]:
    """Text and files of a tool's result."""
    texts: list[str] = []
    files: list[Attachment] = []
    output = details.get("output")
    for item in [output] if isinstance(output, str | dict) else output if isinstance(output, list) else ():
        if isinstance(item, str):
            texts.append(text_of(item))
        elif isinstance(item, dict) and (isinstance(item.get("base64Data"), str) or item.get("isText") is False):
            encoded = item.get("base64Data") or item.get("value")
            files.append(inline_file(item.get("mimeType") or "file", encoded))
        elif isinstance(item, dict):
            texts.append(text_of(item.get("value")) or text_of(item.get("text")))
    terminal = data.get("terminalCommandOutput")
    texts += [text_of(terminal.get("text"))] if isinstance(terminal, dict) else []
    texts += [text_of(data.get(key)) for key in ("result", "output")]
    return "\n\n".join(text.strip("\n") for text in texts if text.strip()), files


# --- addresses --------------------------------------------------------------------------------------------------------


def path_of(value: object) -> str | None:
    """The path of an address: a text, `{fsPath, path, scheme}`, or a place `{uri, range}`."""
    for _ in range(3):
        if not isinstance(value, dict):
            break
        if path := name_of(value.get("fsPath")) or name_of(value.get("path")):
            return path
        value = value.get("uri") or value.get("external") or value.get("location")
    return uri_path(value)


def web_address(value: object) -> str | None:
    """The address of a page, or None for files."""
    if isinstance(value, dict):
        inner = value.get("uri")
        value = inner if isinstance(inner, dict | str) else value
    if isinstance(value, dict) and value.get("scheme") in ("http", "https"):
        if external := name_of(value.get("external")):
            return external
        query = text_of(value.get("query"))
        rest = f"{text_of(value.get('authority'))}{text_of(value.get('path'))}"
        return f"{value['scheme']}://{rest}" + (f"?{query}" if query else "")
    address = name_of(value)
    return address if address is not None and address.startswith(("http://", "https://")) else None


def reference_text(part: Record) -> str:
    """How a reference inside an answer reads: its name, or the last part of its path, as code; a page as its address."""
    reference = part.get("inlineReference")
    if address := web_address(reference):
        return address
    named = name_of(part.get("name"))
    if named is None and isinstance(reference, dict):
        named = name_of(reference.get("name"))
    if named is None and (path := path_of(reference)):
        named = base_name(path) or path
    return f"`{named}`" if named else ""
