"""What a look at the folders leads to: pure, so every case is a line."""

import itertools
import json

from palace_pipeline.exports.scan import Missing, Seen
from sensors.exports import FIRST_RETRY_SECONDS, request_for

NOW = 1_000_000.0


def seen(path: str, *, age: float = 100, size: int = 10) -> Seen:
    at = int((NOW - age) * 1e9)
    return Seen(path, "/in", size, at, at, 1)


def known(item: Seen) -> dict[str, object]:
    return {"size": item.size, "mtime_ns": item.mtime_ns, "inode": item.inode}


def test_a_new_file_that_has_settled_is_asked_for() -> None:
    request = request_for([seen("/in/a.zip")], {}, None, NOW)
    assert request.run_key is not None
    assert len(request.cursor) < 200


def test_nothing_new_is_a_reason() -> None:
    item = seen("/in/a.zip")
    request = request_for([item], {item.path: known(item)}, None, NOW)
    assert (request.run_key, request.reason) == (None, "nothing new")


def test_a_file_still_being_written_is_waited_for_and_does_not_hold_up_the_others() -> None:
    writing = seen("/in/b.zip", age=1)
    assert "still being written" in (request_for([writing], {}, None, NOW).reason or "")
    both = request_for([seen("/in/a.zip"), writing], {}, None, NOW)
    alone = request_for([seen("/in/a.zip")], {}, None, NOW)
    assert both.run_key == alone.run_key


def test_a_copy_with_an_old_modification_time_counts_by_its_change_time() -> None:
    copied = Seen("/in/a.zip", "/in", 10, 1, int((NOW - 1) * 1e9), 1)
    assert request_for([copied], {}, None, NOW).run_key is None


def test_a_grown_file_is_asked_for_again_under_another_key() -> None:
    first = request_for([seen("/in/a.jsonl", size=10)], {}, None, NOW)
    old = seen("/in/a.jsonl", size=10)
    second = request_for([seen("/in/a.jsonl", size=20)], {old.path: known(old)}, first.cursor, NOW)
    assert second.run_key not in (None, first.run_key)


def test_a_file_that_always_fails_is_tried_again_ever_more_seldom() -> None:
    item, cursor, times = seen("/in/a.zip"), None, list[float]()
    keys: set[str] = set()
    now = NOW
    while len(times) < 5:
        request = request_for([item], {}, cursor, now)
        if request.run_key:
            keys.add(request.run_key)
            times.append(now)
            cursor = request.cursor
        now += 20
    pauses = [b - a for a, b in itertools.pairwise(times)]
    assert len(keys) == 5  # a run key is never used twice: Dagster would ignore it for ever
    assert pauses == sorted(pauses)
    assert pauses[0] >= FIRST_RETRY_SECONDS
    assert pauses[-1] >= 8 * FIRST_RETRY_SECONDS


def test_system_files_and_links_never_start_a_run() -> None:
    litter = Seen("/in/.DS_Store", "/in", 0, 0, 0, 0, "hidden or system file", expected=True)
    link = Seen("/in/link", "/in", 0, 0, 0, 0, "symbolic link, not followed")
    assert request_for([litter, link], {}, None, NOW).reason == "nothing new"


def test_a_file_whose_reader_has_changed_is_asked_for() -> None:
    item = seen("/in/a.zip")
    assert request_for([item], {item.path: known(item)}, None, NOW, lambda _: False).run_key is not None


def test_a_missing_folder_is_named_and_is_no_empty_folder() -> None:
    request = request_for([Missing("/gone")], {}, json.dumps({"key": "k", "attempt": 1}), NOW)
    assert request.run_key is None
    assert "/gone" in (request.reason or "")
    assert request.cursor == json.dumps({"key": "k", "attempt": 1})
