"""VS Code's log of a chat (since 1.109): lines that change one value step by step -> the value as it is at the end.

`{"kind": 0, "v": value}` sets all, `{"kind": 1, "k": path, "v": value}` sets one place, `{"kind": 2, "k": path, "v":
[…], "i": n}` cuts the list at `n` (if given) and appends, `{"kind": 3, "k": path}` deletes. Shape:
objectMutationLog.ts of https://github.com/microsoft/vscode, checked 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from palace_pipeline.exports.agent_log import Record, records
from palace_pipeline.exports.base import Member, Report

_DEEPEST = 64
_REQUESTS = "requests"
_MOST_LOST = 64
"""So many places are kept free for list items whose lines are damaged."""


class ChatLog:
    """Applies the lines of one log. Work is linear in the log: nothing is copied, no place is made that was not given.

    A damaged line may have held a request; later lines then name places one further than what is known. Such a place
    is kept free, so that answers do not slip to another question.
    """

    def __init__(self) -> None:
        self.state: Record | None = None
        self.lost = 0
        self._based = False

    def apply(self, entry: Record) -> bool:
        """True if the line could be applied."""
        kind, value = entry.get("kind"), entry.get("v")
        if isinstance(kind, bool):
            return False
        if kind == 0:
            if not isinstance(value, dict):
                return False
            self.state, self._based = value, True
            return True
        path = entry.get("k")
        if kind not in (1, 2, 3) or not isinstance(path, list) or not 0 < len(path) <= _DEEPEST:
            return False
        if not self._based:
            # The first line is lost: what is appended to the list of requests stands alone, places in it do not.
            if kind != 2 or path != [_REQUESTS] or not isinstance(value, list):
                return False
            self.state = self.state or {_REQUESTS: []}
            self.state[_REQUESTS] += value
            return True
        holder = self._at(path[:-1])
        if kind == 2:
            return self._push(holder, path[-1], value, entry.get("i"))
        return self._set(holder, path[-1], value, delete=kind == 3)

    def _at(self, path: list[Any]) -> object:
        at: object = self.state
        for depth, step in enumerate(path):
            if isinstance(at, dict):
                at = at.get(step) if isinstance(step, str) else None
            elif isinstance(at, list) and _is_index(step):
                if depth == 1 and path[0] == _REQUESTS:
                    self._keep_free(at, step)
                at = at[step] if step < len(at) else None
            else:
                return None
        return at

    def _keep_free(self, requests: list[Any], index: int) -> None:
        missing = index + 1 - len(requests)
        if 0 < missing <= min(self.lost, _MOST_LOST):
            requests += [{} for _ in range(missing)]

    def _set(self, holder: object, step: object, value: object, *, delete: bool) -> bool:
        if isinstance(holder, dict) and isinstance(step, str):
            if delete:
                holder.pop(step, None)
            else:
                holder[step] = value
            return True
        if isinstance(holder, list) and _is_index(step):
            if step < len(holder):
                holder[step] = None if delete else value
                return True
            if step == len(holder) and not delete:
                holder.append(value)
                return True
        return False

    def _push(self, holder: object, step: object, values: object, start: object) -> bool:
        if isinstance(holder, dict) and isinstance(step, str):
            target = holder.get(step)
            if target is None:
                target = holder[step] = []
        elif isinstance(holder, list) and _is_index(step) and step < len(holder):
            target = holder[step]
            if target is None:
                target = holder[step] = []
        else:
            return False
        if (
            not isinstance(target, list)
            or not isinstance(values, list | None)
            or not (start is None or _is_index(start))
        ):
            return False
        if start is not None:
            if holder is self.state and step == _REQUESTS and start > 0:
                self._keep_free(target, start - 1)
            del target[start:]
        target += values or []
        return True


def _is_index(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def replay(member: Member, report: Report) -> Record | None:
    """The chat as the log leaves it, or None if nothing of it can be known. Lines that do not fit are counted."""
    log = ChatLog()
    unfit = 0
    known_damage = len(report.skips)
    for _, entry in _entries(member, report):
        log.lost = len(report.skips) - known_damage
        unfit += not log.apply(entry)
    if unfit:
        report.skip("change that does not fit", expected=False, count=unfit)
    return log.state


def _entries(member: Member, report: Report) -> Iterator[tuple[int, Record]]:
    return records(member, report, lambda record: "kind" in record and ("v" in record or "k" in record))
