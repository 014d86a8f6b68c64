"""Claude Code: the records of one thread -> its message rows, with the branches that were rewound set aside.

Records form a tree by `parentUuid`. Ordinary work forks it too (results of parallel tools, hook progress), so being
off the path of the last record says nothing. A branch was left behind only where one place has two questions, or one
question two answers: then the one that was followed last is active, and the others are kept with `branch_active` False.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from palace_pipeline.exports.agent_log import Record
from palace_pipeline.exports.base import Report
from palace_pipeline.exports.claude_code_blocks import Answer, Rows, add_user_rows
from palace_pipeline.exports.ids import derive_ids
from palace_pipeline.exports.json_values import name_of
from palace_pipeline.exports.times import parse_instant
from palace_pipeline.exports.tree import Turn, left_behind
from palace_pipeline.model import VISIBLE_ROLES, Message

_LOCAL_MODEL = "<synthetic>"
_NOT_A_PERSON = frozenset({"task-notification", "coordinator", "peer", "hook", "system"})
"""Values of `origin.kind` for user records that a program wrote. Any other origin is taken for a person."""


@dataclass(slots=True)
class Node:
    """One record in the tree. `turn` is what it is to the conversation; "" for bookkeeping and hidden text."""

    order: int
    """Place in the file, over all its threads."""
    parent: str | None
    logical: str | None = None
    starts: bool = False
    """The record says that nothing comes before it (`parentUuid: null`)."""
    turn: Turn = ""
    answer: str | None = None
    rows: list[Message] = field(default_factory=list)


class Thread:
    """Collects the records of one thread in the order of the file; `rows_of` makes rows of them.

    `tools` (id of a call -> name of the tool) and `places` (numbers the records) are shared by a file's threads.
    """

    def __init__(self, tools: dict[str, str], places: Iterator[int], report: Report) -> None:
        self._tools, self._places, self._report = tools, places, report
        self._nodes: list[Node] = []
        self._index: dict[str, int] = {}
        self._answers: dict[str, Answer] = {}
        self._queued: dict[tuple[str, str], deque[Message]] = {}
        self._typed_at: dict[str, datetime | None] = {}
        self.repeated = 0
        self.model: str | None = None

    def knows(self, uuid: object) -> bool:
        """Is there a record with this id?"""
        return isinstance(uuid, str) and uuid in self._index

    def add_link(self, record: Record) -> None:
        """A record without words that others may name as their parent."""
        self._place(record)

    def add_user(self, record: Record, message: Record) -> None:
        """A record of type user: a person's words, results of tools, or injected text."""
        node = self._place(record)
        if node is None:
            return
        rows = Rows(_text(record.get("uuid")), parse_instant(record.get("timestamp")), node.rows)
        add_user_rows(rows, message.get("content"), self._tools, self._report, _why_hidden(record))
        for row in node.rows:
            if row.kind == "tool_result":
                node.turn = "result"
                break
            if row.visible:
                node.turn = "prompt"

    def add_assistant(self, record: Record, message: Record) -> None:
        """A record of type assistant: one line of an answer."""
        answer_id = _text(message.get("id"))
        node = self._place(record)
        if node is None:
            if not answer_id:
                return
            node = self._nodes[self._index[record["uuid"]]]
        answer = self._answers.get(answer_id)
        if answer is None:
            answer_id = answer_id or f"line {len(self._nodes)}"
            answer = self._answers[answer_id] = _new_answer(record, message)
        rows = Rows(_text(record.get("uuid")), parse_instant(record.get("timestamp")), node.rows)
        answer.take(rows, message, self._tools, self._report)
        if answer.hidden is None:
            node.turn, node.answer = "answer", answer_id
            self.model = answer.model or self.model

    def add_queued(self, record: Record, attachment: Record) -> None:
        """A prompt that was typed while the model worked: it never becomes a user record."""
        origin = attachment.get("origin") or record.get("origin")
        mode = attachment.get("commandMode")
        hidden = None if mode in (None, "prompt") else f"queued {name_of(mode) or 'command'}"
        hidden = hidden or _why_hidden({**record, "origin": origin})
        uuid = record.get("uuid") or attachment.get("source_uuid")
        node = self._place({**record, "uuid": uuid})
        if node is None:
            return
        rows = Rows(_text(uuid), parse_instant(record.get("timestamp")))
        add_user_rows(rows, attachment.get("prompt"), self._tools, self._report, hidden)
        self._keep_queued(node, rows, "attachment")

    def add_queue_operation(self, record: Record) -> None:
        """The queue's own log; only what it says was taken into the running turn may have no other trace."""
        content, when = record.get("content"), parse_instant(record.get("timestamp"))
        if not isinstance(content, str):
            return
        if record.get("operation") == "enqueue":
            self._typed_at[content] = when
        elif record.get("operation") == "remove" and record.get("reason") == "absorbed_mid_turn":
            rows = Rows("", self._typed_at.get(content) or when)
            add_user_rows(rows, content, self._tools, self._report, None)
            if any(row.visible for row in rows.rows) and (node := self._place({})) is not None:
                self._keep_queued(node, rows, "queue")

    def _keep_queued(self, node: Node, rows: Rows, source: Literal["attachment", "queue"]) -> None:
        """The same prompt stands in an attachment and in the queue's log; it is taken from the first that comes."""
        for row in rows.rows:
            other = "queue" if source == "attachment" else "attachment"
            twins = self._queued.get((other, row.text))
            if twins and row.visible:
                twins.popleft()
            else:
                node.rows.append(row)
                self._queued.setdefault((source, row.text), deque()).append(row)

    def _place(self, record: Record) -> Node | None:
        """The new node of a record, or None if the record has been written before (then once is enough)."""
        uuid, parent, logical = record.get("uuid"), record.get("parentUuid"), record.get("logicalParentUuid")
        parent = parent if isinstance(parent, str) and parent else None
        if isinstance(uuid, str) and uuid:
            known = self._index.get(uuid)
            if known is not None:
                self.repeated += 1
                node = self._nodes[known]
                if node.starts and parent:  # a copy made at a compaction has lost its parent
                    node.parent, node.starts = parent, False
                return None
            self._index[uuid] = len(self._nodes)
        starts = parent is None and "parentUuid" in record
        node = Node(next(self._places), parent, logical if isinstance(logical, str) else None, starts)
        self._nodes.append(node)
        return node

    # --- the tree ---

    def finish(self) -> Iterator[tuple[int, Message, Message | None]]:
        """(place in the file, row, row before it in the tree), with `branch_active` set; in the order of the file."""
        for answer in self._answers.values():
            answer.finish()
        ups = self._ups()
        left_out = left_behind([node.turn for node in self._nodes], [node.answer for node in self._nodes], ups)
        last_row: list[Message | None] = []
        for node, up, left in zip(self._nodes, ups, left_out, strict=True):
            before = last_row[up] if up >= 0 else None
            for row in node.rows:
                row.branch_active = not left
                yield node.order, row, before
                before = row
            last_row.append(before)

    def _ups(self) -> list[int]:
        """The parent of each node as an index smaller than its own (so there are no cycles), -1 at the start.

        A parent that was never written, or comes later, is bridged by the order of the file. So is a missing one,
        except where a person went back to the very first question and asked another.
        """
        found: list[int] = []
        chained = False
        for at, node in enumerate(self._nodes):
            up = self._earlier(node.parent, at)
            found.append(self._earlier(node.logical, at) if up < 0 else up)
            chained = chained or (node.turn == "prompt" and up >= 0)
        for at, node in enumerate(self._nodes):
            if found[at] < 0 and not (chained and node.starts and node.turn == "prompt"):
                found[at] = at - 1
        return found

    def _earlier(self, uuid: str | None, at: int) -> int:
        index = self._index.get(uuid, at) if uuid else at
        return index if index < at else -1


def rows_of(thread: Thread, inside: Iterable[Thread] = ()) -> list[Message]:
    """The rows of a thread, with ids and parents. What sub-agents `inside` it said becomes rows of role tool."""
    found = list(thread.finish())
    for side in inside:
        for order, row, before in side.finish():
            if row.role in VISIBLE_ROLES:
                row.role, row.speaker = "tool", "sub-agent"
            found.append((order, row, before))
    found.sort(key=_place_in_file)
    messages = [row for _, row, _ in found]
    derive_ids(messages)
    for _, row, before in found:
        row.parent_id = before.message_id if before is not None else None
    return messages


def _place_in_file(item: tuple[int, Message, Message | None]) -> int:
    return item[0]


def _new_answer(record: Record, message: Record) -> Answer:
    model = name_of(message.get("model"))
    if record.get("isApiErrorMessage") is True or model == _LOCAL_MODEL:
        return Answer(model=None, hidden="error or notice of the program")
    return Answer(model=model)


def _why_hidden(record: Record) -> str | None:
    if record.get("isCompactSummary") is True:
        return "compact summary"
    if record.get("isMeta") is True:
        return "injected context"
    if record.get("isVisibleInTranscriptOnly") is True:
        return "shown in the raw transcript only"
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    if isinstance(kind, str) and kind in _NOT_A_PERSON:
        return f"from a program: {kind}"
    return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
