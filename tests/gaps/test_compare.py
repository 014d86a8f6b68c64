"""Source against archive as values: what counts as missing, what is empty, what is gone."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.exports.scan import Missing, Seen
from palace_pipeline.gaps.compare import (
    PLACES,
    Evicted,
    Expected,
    Files,
    Held,
    compare_files,
    differs,
    missing,
    unclean,
)

DAY = date(2026, 11, 2)
LAST = datetime(2026, 11, 2, 12, tzinfo=UTC)
KEY = ("codex", "a")
WHOLE = {place: Held(3, LAST, "same") for place in PLACES}

keys = st.tuples(st.sampled_from(["codex", "claude"]), st.text("ab", min_size=1, max_size=3))
held = st.builds(Held, st.integers(0, 4), st.none() | st.just(LAST), st.none() | st.sampled_from(["same", "other"]))
archives = st.fixed_dictionaries({place: st.dictionaries(keys, held, max_size=4) for place in PLACES})
sources = st.dictionaries(keys, st.fixed_dictionaries(dict.fromkeys(PLACES, held)), max_size=5)


def source(chats: dict[tuple[str, str], dict[str, Held]]) -> list[Expected]:
    return [Expected(DAY + timedelta(days=n % 3), key, {}, places) for n, (key, places) in enumerate(chats.items())]


def test_what_lies_where_it_should_is_no_gap_and_a_day_without_a_source_is_empty() -> None:
    assert missing([Expected(DAY, KEY, {}, WHOLE)], {place: {KEY: WHOLE[place]} for place in PLACES}) == []
    assert missing([], {place: {} for place in PLACES}) == []


def test_every_place_that_lost_a_conversation_is_named_with_the_stage_that_mends_it() -> None:
    for place, (stage, name) in PLACES.items():
        archive = {other: {KEY: WHOLE[other]} for other in PLACES} | {place: {}}
        (gap,) = missing([Expected(DAY, KEY, {}, WHOLE)], archive)
        assert gap.stages == {stage}
        assert gap.reason == f"{name}: none of 3 there"


def test_counts_instants_and_contents_are_compared_in_that_order_and_only_if_both_sides_know_them() -> None:
    whole = Held(3, LAST, "same")
    assert differs(whole, whole) is None
    assert differs(whole, replace(whole, count=2)) == "2 of 3 there"
    assert differs(whole, replace(whole, count=4)) == "more there than belongs there"
    assert differs(whole, replace(whole, last=LAST - timedelta(seconds=1))) == "its last instant is another one"
    assert differs(whole, replace(whole, fingerprint="other")) == "its content is not what was written"
    assert differs(Held(1), Held(0)) == "not there"
    assert differs(Held(3), whole) is None
    assert differs(Held(None, None, "same"), Held(7)) is None


def test_a_stage_that_has_work_anyway_says_why_and_its_places_are_not_compared() -> None:
    waiting = {"pages": "page format has changed"}
    (gap,) = missing([Expected(DAY, KEY, waiting, {"page": Held(1)})], {"page": {}})
    assert (gap.reason, gap.stages) == ("page: page format has changed", frozenset())


@given(sources, archives)
def test_the_look_names_exactly_what_differs(chats, archive) -> None:
    expected = source(chats)
    gaps = missing(expected, archive)
    wrong = {
        chat.key
        for chat in expected
        if any(differs(wanted, archive[place].get(chat.key, Held(0))) for place, wanted in chat.places.items())
    }
    assert {gap.key for gap in gaps} == wrong
    assert len(gaps) == len(wrong)  # one line a conversation
    assert [gap.day for gap in gaps] == sorted(gap.day for gap in gaps)
    assert all(gap.stages for gap in gaps)


@given(sources, archives)
def test_putting_back_what_is_missing_leaves_no_gap(chats, archive) -> None:
    expected = source(chats)
    for gap in missing(expected, archive):
        for place, wanted in chats[gap.key].items():
            archive[place][gap.key] = wanted
    assert missing(expected, archive) == []


# --- files ------------------------------------------------------------------------------------------------------------


def seen(path: str, size: int = 10, **changes: object) -> Seen:
    return replace(Seen(path, "/in", size, 5, 5, 1), **changes)


def row(
    path: str, size: int = 10, status: str = "done", sha256: str | None = None, **more: object
) -> dict[str, object]:
    values = {"path": path, "size": size, "mtime_ns": 5, "inode": 1, "status": status, "sha256": sha256 or path}
    return values | {"reason": None, "provider": "codex", "conversations": 2, "messages": 9} | more


def files(
    *found: Seen | Missing, known: list[dict[str, object]], current: bool = True, folders: set[str] = frozenset()
):
    return compare_files(found, {str(item["path"]): item for item in known}, lambda _: current, folders)


def test_a_file_that_was_taken_as_it_is_leaves_nothing_to_do() -> None:
    assert files(seen("/in/a"), known=[row("/in/a")]) == Files()


def test_new_grown_and_outdated_files_are_to_be_read() -> None:
    assert [why for _, why in files(seen("/in/a"), known=[]).untaken] == ["not taken yet"]
    assert [why for _, why in files(seen("/in/a", 11), known=[row("/in/a")]).untaken] == [
        "has changed since it was read"
    ]
    assert len(files(seen("/in/a"), known=[row("/in/a")], current=False).untaken) == 1


def test_a_log_that_was_there_and_is_gone_is_evicted_and_a_moved_one_is_not() -> None:
    assert files(known=[row("/in/a")]).evicted == [Evicted("/in/a", "codex", 2, 9)]
    moved = files(seen("/in/b"), known=[row("/in/a", sha256="x"), row("/in/b", sha256="x")])
    assert moved.evicted == []
    assert files(known=[row("/in/a", status="quarantined"), row("/in/b", status="skipped")]) == Files()


def test_a_gone_file_of_an_older_reader_is_to_be_read_from_the_vault() -> None:
    found = files(known=[row("/in/a")], current=False)
    assert [path for path, _ in found.again] == ["/in/a"]


def test_a_folder_that_is_not_there_says_nothing_of_its_files() -> None:
    found = files(Missing("/usb"), known=[row("/usb/a"), row("/usbstick/a")], folders={"/usb"})
    assert found.absent == ["/usb"]
    assert [one.path for one in found.evicted] == ["/usbstick/a"]


def test_what_cannot_be_read_is_named_and_what_nobody_wants_is_not() -> None:
    found = files(
        seen("/in/link", problem="symbolic link, not followed"),
        seen("/in/.DS_Store", problem="hidden or system file", expected=True),
        seen("/in/cut.zip"),
        known=[row("/in/cut.zip", status="quarantined", reason="damaged ZIP")],
    )
    assert found.failed == [("/in/link", "symbolic link, not followed"), ("/in/cut.zip", "damaged ZIP")]


paths = st.lists(st.sampled_from([f"/in/{name}" for name in "abcdefgh"]), unique=True)


@given(paths, paths)
def test_every_file_of_either_side_is_unchanged_new_or_gone(there: list[str], known: list[str]) -> None:
    found = files(*map(seen, there), known=[row(path) for path in known])
    assert {item.path for item, _ in found.untaken} == set(there) - set(known)
    assert {one.path for one in found.evicted} == set(known) - set(there)


def test_nothing_missing_is_not_clean_while_something_is_unsure() -> None:
    assert unclean(Files(evicted=[Evicted("/in/a", None, 1, 1)]), 0, False, False) == []
    unsure = [
        unclean(Files(untaken=[(seen("/in/a"), "")]), 0, False, False),
        unclean(Files(again=[("/in/a", "")]), 0, False, False),
        unclean(Files(failed=[("/in/a", "")]), 0, False, False),
        unclean(Files(absent=["/usb"]), 0, False, False),
        unclean(Files(), 1, False, False),
        unclean(Files(), 0, True, False),
        unclean(Files(), 0, False, True),
    ]
    assert all(len(why) == 1 for why in unsure)
    assert "--limit" in unsure[5][0]
