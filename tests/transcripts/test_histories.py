"""Exports of chats that live on: grown, renamed, edited, deleted at the source, resumed, forked; in any order.

Every law is stated on what `palace parse` and the ledger do: merge the sightings of each conversation, then take out
the ones that a copy repeats in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.model import Conversation, Message, to_record
from palace_pipeline.transcripts.merge import Key, family, merge, superseded

START = datetime(2024, 5, 3, 12, tzinfo=UTC)

# --- a world of chats, and exports of it ------------------------------------------------------------------------------

names = st.sampled_from("abcd")
steps = st.one_of(
    st.tuples(st.just("say"), names),
    st.tuples(st.just("rename"), names),
    st.tuples(st.just("edit"), names),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("fork"), names, names),
    st.tuples(st.just("export")),
)
worlds = st.lists(steps, min_size=1, max_size=25)


def exports_of(world: Sequence[tuple[str, ...]]) -> list[list[Conversation]]:
    """What an export showed each time somebody asked for one. Texts name the chat, the message and its version."""
    chats: dict[str, Conversation] = {}
    deleted: set[str] = set()
    exports: list[list[Conversation]] = []
    for minute, (what, *about) in enumerate([*world, ("export",)]):
        now = START + timedelta(minutes=minute)
        name = about[0] if about else ""
        chat = chats.get(name)
        if what == "export":
            exports.append(
                [replace(chat, messages=list(chat.messages)) for n, chat in chats.items() if n not in deleted]
            )
        elif what == "say" and name not in deleted:
            chat = chat or Conversation("chatgpt", name, [], title=f"Chat {name}", created_at=now)
            message = Message(
                f"{name}{len(chat.messages)}", "user", f"{name} says {len(chat.messages)}", created_at=now
            )
            chats[name] = replace(chat, messages=[*chat.messages, message], updated_at=now)
        elif chat is None or name in deleted:
            continue
        elif what == "rename":
            chats[name] = replace(chat, title=f"Chat {name}, renamed at {minute}", updated_at=now)
        elif what == "edit" and chat.messages:
            last = replace(chat.messages[-1], text=f"{name} says otherwise at {minute}", edited_at=now)
            chats[name] = replace(chat, messages=[*chat.messages[:-1], last], updated_at=now)
        elif what == "delete":
            deleted.add(name)
        elif what == "fork" and about[1] not in chats:
            chats[about[1]] = replace(chat, conversation_id=about[1], forked_from=name, messages=list(chat.messages))
    return exports


def archive(records: Sequence[Conversation]) -> tuple[dict[Key, Conversation], dict[Key, Key]]:
    """(canonical transcripts, those that a copy repeats -> that copy)"""
    seen: dict[Key, list[Conversation]] = {}
    for record in records:
        seen.setdefault(record.key, []).append(record)
    merged = {key: merge(found) for key, found in seen.items()}
    return merged, heirs_of(
        {key: frozenset(m.message_id for m in c.messages) for key, c in merged.items()},
        {key: (c.provider, c.forked_from) for key, c in merged.items() if c.forked_from},
    )


def heirs_of(ids: Mapping[Key, frozenset[str]], forks: Mapping[Key, Key]) -> dict[Key, Key]:
    return superseded({key: len(found) for key, found in ids.items()}, ids.__getitem__, forks)


def as_bytes(merged: Mapping[Key, Conversation]) -> dict[Key, bytes]:
    return {key: to_record(conversation) for key, conversation in merged.items()}


@given(worlds, st.randoms(use_true_random=False))
def test_the_order_of_exports_and_of_chats_in_them_makes_no_difference(world, random) -> None:
    records = [record for export in exports_of(world) for record in export]
    shuffled = random.sample(records, len(records))
    (merged, heirs), (other, other_heirs) = archive(records), archive(shuffled)
    assert as_bytes(merged) == as_bytes(other)
    assert heirs == other_heirs


@given(worlds, st.data())
def test_a_second_pass_changes_nothing(world, data) -> None:
    """Over the same exports, over some of them, over what came out before."""
    records = [record for export in exports_of(world) for record in export]
    merged, heirs = archive(records)
    again = data.draw(st.lists(st.sampled_from(records), max_size=5)) if records else []
    for more in (records, again, list(merged.values())):
        assert as_bytes(archive([*records, *more])[0]) == as_bytes(merged)
        assert archive([*records, *more])[1] == heirs


@given(worlds)
def test_nothing_that_an_export_showed_goes_away(world) -> None:
    """Deleted at the source or repeated elsewhere: each message is in its chat or in the copy that stands for it."""
    exports = exports_of(world)
    merged, heirs = archive([record for export in exports for record in export])
    for export in exports:
        for record in export:
            assert record.key in merged, "identity is the source's, whatever a chat is called"
            kept = merged[heirs.get(record.key, record.key)]
            assert {m.message_id for m in record.messages} <= {m.message_id for m in kept.messages}


@given(worlds)
def test_the_last_export_of_a_chat_is_how_it_reads(world) -> None:
    """Each later export of one chat holds all that the earlier ones did: then the last one is the transcript."""
    exports = exports_of(world)
    merged, _ = archive([record for export in exports for record in export])
    last = {record.key: record for export in exports for record in export}
    for key, record in last.items():
        assert [(m.message_id, m.text) for m in merged[key].messages] == [
            (m.message_id, m.text) for m in record.messages
        ]
        assert merged[key].title == record.title


@given(worlds)
def test_a_fork_that_went_its_own_way_is_kept_beside_its_origin(world) -> None:
    merged, heirs = archive([record for export in exports_of(world) for record in export])
    for key, conversation in merged.items():
        ids = {m.message_id for m in conversation.messages}
        own = ids - {m.message_id for other, c in merged.items() if other != key for m in c.messages}
        if own:
            assert key not in heirs


# --- who stands for whom, in any family -------------------------------------------------------------------------------

keys = st.sampled_from([("claude-code", name) for name in "pqrstu"])
families = st.tuples(
    st.dictionaries(keys, st.frozensets(st.sampled_from("1234"), max_size=4), max_size=6),
    st.dictionaries(keys, keys, max_size=6),  # also circles, and forks of what is not there
)


@given(families)
def test_the_heir_holds_all_and_has_a_transcript_of_its_own(given_family) -> None:
    ids, forks = given_family
    heirs = heirs_of(ids, forks)
    for key, heir in heirs.items():
        assert heir != key
        assert heir not in heirs
        assert ids[key]
        assert ids[key] <= ids[heir]


@given(families)
def test_only_copies_stand_for_others(given_family) -> None:
    ids, forks = given_family
    for key, heir in heirs_of(ids, forks).items():
        at, seen = heir, set()
        while at is not None and at != key and at not in seen:
            seen.add(at)
            at = forks.get(at)
        assert at == key, "the heir is a copy of a copy … of what it stands for"


@given(families)
def test_of_a_line_of_copies_that_only_grew_the_last_is_left(given_family) -> None:
    ids, forks = given_family
    heirs = heirs_of(ids, forks)
    for key, parent in forks.items():
        if key in ids and parent in ids and ids[parent] and ids[parent] < ids[key]:
            assert parent in heirs


@given(families, st.randoms(use_true_random=False))
def test_the_order_in_which_copies_are_named_makes_no_difference(given_family, random) -> None:
    ids, forks = given_family
    mixed = {key: ids[key] for key in random.sample(sorted(ids), len(ids))}
    other = {key: forks[key] for key in random.sample(sorted(forks), len(forks))}
    assert heirs_of(mixed, other) == heirs_of(ids, forks)


@given(families)
def test_a_family_alone_says_the_same_as_the_whole_archive(given_family) -> None:
    """So the ledger may ask for the family of the one conversation that changed."""
    ids, forks = given_family
    forks = {key: parent for key, parent in forks.items() if key in ids}  # only records tell of forks
    whole = heirs_of(ids, forks)
    children: dict[Key, list[Key]] = {}
    for key, parent in forks.items():
        children.setdefault(parent, []).append(key)
    for key in ids:
        near = family(key, forks.get, lambda at: children.get(at, []))
        assert key in near
        alone = heirs_of({k: ids[k] for k in near if k in ids}, {k: forks[k] for k in near if k in forks})
        assert {k: v for k, v in whole.items() if k in near} == alone
