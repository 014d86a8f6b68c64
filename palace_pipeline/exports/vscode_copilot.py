"""VS Code's chat (GitHub Copilot Chat): `…/User/workspaceStorage/<hash>/chatSessions/<id>.json`, since 1.109 `.jsonl`.

Chats of windows without a folder lie in `globalStorage/emptyWindowChatSessions/`; "Export Chat" saves the same object
without an id. A request is a question with its whole answer; it has one time. `.jsonl` is a log of changes, see
`vscode_log`. Shape: chatModel.ts, chatSessionOperationLog.ts of https://github.com/microsoft/vscode, checked 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Literal

from palace_pipeline.exports.agent_log import Record, side_json
from palace_pipeline.exports.attachments import base_name, uri_path
from palace_pipeline.exports.base import Head, Member, Report, SpecTarget
from palace_pipeline.exports.claude_code_blocks import Rows
from palace_pipeline.exports.ids import derive_conversation_id, derive_ids
from palace_pipeline.exports.json_values import count_of, dict_of, dicts_of, name_of, text_of
from palace_pipeline.exports.times import parse_instant
from palace_pipeline.exports.vscode_log import replay
from palace_pipeline.exports.vscode_parts import Answer, path_of, web_address
from palace_pipeline.model import Attachment, Citation, Conversation, Message

PROVIDER = "vscode-copilot"

_SIGNS = ("sessionId", "requesterUsername", "responderUsername", "initialLocation", "creationDate")
_LOG_KEYS = frozenset(
    """
    requests customTitle inputState lastMessageDate creationDate responderUsername initialLocation hasPendingEdits
    repoData pendingRequests version sessionId isImported
    """.split()  # noqa: SIM905
)
_CHAT_KEYS = _LOG_KEYS | frozenset(
    """
    requesterUsername requesterAvatarIconUri responderAvatarIconUri welcomeMessage inputPlaceholder isNew computedTitle
    providerId providerState workingSet
    """.split()  # noqa: SIM905
)
_REQUEST_KEYS = frozenset(
    """
    requestId providerRequestId message variableData response responseId responseErrorDetails responseMarkdownInfo
    responseTimestamp agent slashCommand result followups isCanceled isHidden shouldBeRemovedOnSend vote voteDownReason
    usedContext contentReferences codeCitations timestamp confirmation editedFileEvents modelId modelState modeInfo
    timeSpentWaiting elapsedMs workingSet locationData attempt usage isSystemInitiated systemInitiatedLabel
    userSelectedTools isCompleteAddedRequest completionTokens
    """.split()  # noqa: SIM905
)
_FOLDERS = ("chatSessions", "emptyWindowChatSessions", "transferredChatSessions")
_ENDINGS = re.compile(r"(?:\.jsonl|\.json|\.zst|\.gz)+$", re.IGNORECASE)
_INJECTED_KINDS = ("workspace", "tool", "toolset", "promptText")
_SPEC = SpecTarget(
    "2026-11-29",
    "https://github.com/microsoft/vscode src/vs/workbench/contrib/chat/common/model",
    "high",
    "VS Code Copilot Chat",
    "`…/Code/User/workspaceStorage/<hash>/chatSessions/*.json`, `*.jsonl`; command *Chat: Export Chat…*",
    "2023",
)


class VSCodeChatReader:
    """Reads a chat that is one object; see the module."""

    format = "vscode-copilot-chat"
    provider = PROVIDER
    recipe = 1
    spec = _SPEC
    layout: Literal["elements"] = "elements"
    known_keys = {"": _CHAT_KEYS, "requests.*": _REQUEST_KEYS}  # noqa: RUF012 - never changed

    def detect(self, head: Head) -> bool:
        """An object with `requests` and the fields of a chat beside them."""
        return head.shape in ("object", "array") and any(
            isinstance(item, dict) and _is_chat(item) for item in head.items
        )

    def read_element(self, value: Any, member: Member, place: str, report: Report) -> Iterator[Conversation]:
        """At most one conversation."""
        if isinstance(value, dict):
            yield from _conversations(value, member, place, report)
        else:
            report.skip("not a conversation", place, expected=False, unit="conversation")


class VSCodeLogReader:
    """Reads a chat that is a log of changes; see the module."""

    format = "vscode-copilot-log"
    provider = PROVIDER
    recipe = 1
    spec = _SPEC
    layout: Literal["whole"] = "whole"

    def detect(self, head: Head) -> bool:
        """Lines with a `kind` from 0 to 3; the first holds a chat, others a path into one."""
        return head.shape == "jsonl" and any(isinstance(item, dict) and _is_entry(item) for item in head.items)

    def read(self, member: Member, report: Report) -> Iterator[Conversation]:
        """The one conversation that the log leaves."""
        state = replay(member, report)
        if state is None:
            report.skip("log without a chat", expected=False, unit="conversation")
            return
        yield from _conversations(state, member, "", report)


READERS = (VSCodeLogReader(), VSCodeChatReader())


def _is_chat(item: Record) -> bool:
    requests = item.get("requests")
    if not isinstance(requests, list) or not any(key in item for key in _SIGNS):
        return False
    first = next((request for request in requests if isinstance(request, dict)), None)
    return first is None or "message" in first or "requestId" in first or "response" in first


def _is_entry(item: Record) -> bool:
    kind, path, value = item.get("kind"), item.get("k"), item.get("v")
    if isinstance(kind, bool):
        return False
    if kind == 0:
        return isinstance(value, dict) and ("requests" in value or "sessionId" in value)
    start = path[0] if isinstance(path, list) and path else None
    return kind in (1, 2, 3) and isinstance(start, str) and start in _LOG_KEYS


def _conversations(chat: Record, member: Member, place: str, report: Report) -> Iterator[Conversation]:
    requests = chat.get("requests")
    if not isinstance(requests, list):
        report.skip("chat without requests", place, expected=requests is None, unit="conversation")
        return
    if not requests:
        report.skip("empty chat", place, expected=True, unit="conversation")
        return
    messages: list[Message] = []
    model: str | None = None
    for number, request in enumerate(requests):
        if not isinstance(request, dict):
            report.skip("not a request", f"{place} requests[{number}]".strip(), expected=request is None)
            continue
        messages += _request_rows(request, report)
        model = _model(request) or model
    derive_ids(messages)
    conversation = Conversation(
        provider=PROVIDER,
        conversation_id=_id(chat, member, messages),
        messages=messages,
        title=name_of(chat.get("customTitle")),
        created_at=parse_instant(chat.get("creationDate")),
        updated_at=parse_instant(chat.get("lastMessageDate")),
        model=model,
        project=_workspace(member),
    )
    if conversation.visible_messages():
        yield conversation
    else:
        report.skip("chat without messages", place, expected=True, unit="conversation")


def _id(chat: Record, member: Member, messages: list[Message]) -> str:
    """The chat's own id, else the name of its file in VS Code's storage; a chat saved by hand is known by its start."""
    if own := name_of(chat.get("sessionId")):
        return own
    path = PurePosixPath(member.path)
    stem = _ENDINGS.sub("", path.name)
    return stem if path.parent.name in _FOLDERS else derive_conversation_id(PROVIDER, "", messages)


def _workspace(member: Member) -> str | None:
    """The folder of the window a chat belongs to, from `workspace.json` in the storage of that window."""
    manifest = side_json(member, "../workspace.json")
    if not isinstance(manifest, dict):
        return None
    for key in ("folder", "workspace", "configuration"):
        if (address := manifest.get(key)) is not None:
            return path_of(address) if isinstance(address, dict) else uri_path(address)
    return None


# --- one request ------------------------------------------------------------------------------------------------------


def _request_rows(request: Record, report: Report) -> list[Message]:
    """The question, what was found and done for its answer, and the answer."""
    key = name_of(request.get("requestId")) or ""
    model = _model(request)
    rows = Rows(key, parse_instant(request.get("timestamp")))
    _add_question(request, rows)
    _count_odd("message", request.get("message"), ("text", "parts"), report)
    if not isinstance(request.get("response"), list):
        _count_odd("response", request.get("response"), ("value", "kind"), report)
    result = dict_of(request.get("result"))
    metadata = dict_of(result.get("metadata"))
    rounds = dicts_of(metadata.get("toolCallRounds"))
    calls = [call for each in rounds for call in dicts_of(each.get("toolCalls"))]
    answer = Answer(rows, key, report, model)
    answer.arguments = {id: call.get("arguments") for call in calls if (id := name_of(call.get("id")))}
    answer.results = {
        id: text for id, value in dict_of(metadata.get("toolCallResults")).items() if (text := _result_text(value))
    }
    response = request.get("response")
    parts = response if isinstance(response, list) else [response] if isinstance(response, str | dict) else []
    if not any(isinstance(part, dict) and part.get("kind") == "thinking" for part in parts):
        for each in rounds:
            thought = dict_of(each.get("thinking")).get("text")
            if text := "\n".join(text_of(t) for t in (thought if isinstance(thought, list) else [thought])).strip():
                answer.add_thought(text)
    before = len(rows.rows)
    answer.take_all(parts)
    said = answer.text_row or next((row for row in rows.rows[before:] if row.role != "system"), None)
    if said is not None:
        _set_usage(said, request, metadata)
        said.citations = _citations(request)
    error = dict_of(result.get("errorDetails")) or dict_of(request.get("responseErrorDetails"))
    rows.add_hidden("error of the program", text_of(error.get("message")))
    taken_back = bool(request.get("shouldBeRemovedOnSend")) or request.get("isHidden") is True
    for row in rows.rows:
        row.branch_active = not taken_back
    return rows.rows


def _count_odd(name: str, value: object, keys: tuple[str, ...], report: Report) -> None:
    if not isinstance(value, str | None) and not (isinstance(value, dict) and any(key in value for key in keys)):
        report.skip(f"{name} of an unknown shape", expected=False)


def _add_question(request: Record, rows: Rows) -> None:
    message = request.get("message")
    text = text_of(message)
    if isinstance(message, dict):
        text = text_of(message.get("text")) or "".join(text_of(p.get("text")) for p in dicts_of(message.get("parts")))
    variables = dicts_of(dict_of(request.get("variableData")).get("variables"))
    files = [file for variable in variables if (file := _attachment(variable)) is not None]
    if request.get("isSystemInitiated") is True:
        rows.add_hidden("from a program", text)
    elif text.strip() or files:
        kind = "text" if text.strip() else "attachment"
        rows.add(role="user", kind=kind, text=text.strip(), attachment=files)


def _attachment(variable: Record) -> Attachment | None:
    """What stood beside a question: a file, image, selection, text. Instructions and tools are no attachments."""
    kind = name_of(variable.get("kind"))
    value = variable.get("value")
    automatic = variable.get("automaticallyAdded") is True or (kind == "implicit" and variable.get("enabled") is False)
    if kind in _INJECTED_KINDS or automatic or (kind == "implicit" and value is None):
        return None
    path = path_of(value) if isinstance(value, dict) else None
    name = (name_of(variable.get("name")) or "").removeprefix("file:").strip()
    text = variable.get("code") if kind == "paste" else value
    return Attachment(
        name=name or (base_name(path) if path else None),
        type=name_of(variable.get("mimeType")) or kind,
        size=len(value) if kind == "image" and isinstance(value, list) else None,
        text=text_of(text) or None if kind != "image" else None,
    )


def _model(request: Record) -> str | None:
    """The model that was asked; where the program chose one, that one."""
    asked = name_of(request.get("modelId"))
    if asked is None or asked.endswith("/auto"):
        metadata = dict_of(dict_of(request.get("result")).get("metadata"))
        return name_of(metadata.get("resolvedModel")) or asked
    return asked


def _set_usage(row: Message, request: Record, metadata: Record) -> None:
    usage = dict_of(request.get("usage"))
    read = count_of(metadata.get("promptTokens")) or count_of(usage.get("promptTokens"))
    out = count_of(metadata.get("outputTokens")) or count_of(usage.get("completionTokens"))
    if read or out:
        row.tokens_in, row.tokens_out = read, out


def _citations(request: Record) -> list[Citation]:
    """Pages that were used, and public code that an answer matches; files of the workspace are no citations."""
    found: dict[str, Citation] = {}
    for item in dicts_of(request.get("contentReferences")):
        if address := web_address(item.get("reference")):
            found.setdefault(address, Citation(address))
    for item in dicts_of(request.get("codeCitations")):
        if address := web_address(item.get("value")):
            found.setdefault(address, Citation(address, name_of(item.get("license"))))
    return list(found.values())


def _result_text(value: object) -> str:
    """The text of a tool's result as the model got it: texts, or trees whose leaves hold `text`."""
    texts: list[str] = []
    for part in dicts_of(dict_of(value).get("content")):
        inner = part.get("value")
        if isinstance(inner, str):
            texts.append(text_of(inner))
        elif isinstance(inner, dict):
            texts.append(_tree_text(inner))
    return "\n\n".join(text.strip() for text in texts if text.strip())


def _tree_text(tree: Record) -> str:
    """The leaves of a tree of prompt nodes, in order; a walk without recursion."""
    found: list[str] = []
    waiting: list[object] = [tree]
    while waiting:
        at = waiting.pop()
        if isinstance(at, list):
            waiting.extend(reversed(at))
        elif isinstance(at, dict):
            if isinstance(at.get("text"), str):
                found.append(("\n" if at.get("lineBreakBefore") and found else "") + text_of(at["text"]))
            waiting += [at.get("children"), at.get("node")]
    return "".join(found)
