"""Sessions that grow too long become trees: cut between topics, never inside a message, and nothing twice or lost."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from palace_pipeline.workspace import index
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.reading import parse
from palace_pipeline.workspace.sections import SECTIONS
from palace_pipeline.workspace.session import PART, Session, as_entry, body_size, in_time, render
from palace_pipeline.workspace.split import MOST_BYTES, split
from tests.workspace.pages_for_tests import TS, a_session

_WORDS = {
    "oven": "oven thermostat heating element bake bread temperature gasket 烤箱 温控器 加热 面包",
    "tax": "tax invoice deduction office declaration income receipt 报税 发票 扣除 收入 申报",
    "bike": "bike chain brake wheel spoke pedal saddle 自行车 链条 刹车 车轮 脚踏",
}
WORDS = {topic: words.split() for topic, words in _WORDS.items()}


def _talk(topic: str, size: int, chance: random.Random) -> str:
    words = [chance.choice(WORDS[topic]) for _ in range(size)]
    text = " ".join(words)
    while len(text.encode()) > size:
        text = text[: len(text) - 10]
    return text.strip()


def _said(session: Session) -> Counter[tuple[str, object]]:
    return Counter((section, entry) for section, entry in session.entries())


def test_a_session_is_cut_where_the_topic_changes() -> None:
    chance = random.Random(3)
    session = a_session(entries=0)
    topics = ["oven"] * 12 + ["tax"] * 12 + ["bike"] * 12
    for number, topic in enumerate(topics):
        section = SECTIONS[0] if number % 2 == 0 else SECTIONS[1]
        session.sections[section].append(as_entry(_talk(topic, 2200, chance), TS + timedelta(minutes=number)))
    assert body_size(session) > MOST_BYTES
    tree = split(session)
    at = [entry.at for part in tree.parts for _, entry in in_time(part)]
    assert [part.role for part in tree.parts] == [PART]
    assert len(at) in (12, 24), "the cut is at the end of a topic"
    assert _said(tree.root) + _said(tree.parts[0]) == _said(session)


def test_a_session_that_fits_is_its_own_tree() -> None:
    session = a_session()
    assert split(session).root is session


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 40_000), st.booleans()), min_size=1, max_size=14))
def test_every_entry_is_on_exactly_one_page_and_whole(shape: list[tuple[int, int, bool]]) -> None:
    session = a_session(entries=0)
    by_hand = set[int]()
    for number, (place, size, dated) in enumerate(shape):
        first_by_hand = not dated and place not in by_hand and not session.sections[SECTIONS[place]]
        by_hand |= {place} if first_by_hand else set()
        at = None if first_by_hand else TS + timedelta(minutes=number)
        session.sections[SECTIONS[place]].append(as_entry(f"{number} " + "x" * size, at))
    tree = split(session)
    pages = [*tree.parts, tree.root]
    assert sum((_said(page) for page in pages), Counter()) == _said(session)
    assert len({page.id for page in pages}) == len(pages)
    for page in pages:
        assert body_size(page) <= MOST_BYTES or sum(1 for _ in page.entries()) == 1
        assert parse(render(page), None).sections == page.sections
    for part in tree.parts:
        assert (part.parent, part.status) == (session.id, "closed")
        assert f"{part.id[9:]}-" in tree.root.intro
    assert [part.id for part in split(session).parts] == [part.id for part in tree.parts]


def _grown(workspace: Workspace, entries: int = 40) -> str:
    page = workspace.new("Long", ts=TS)
    chance = random.Random(5)
    for number in range(entries):
        section = ("input", "judgement", "todo")[number % 3]
        text = f"{number} {_talk(('oven', 'tax')[number // 20 % 2], 3000, chance)}"
        workspace.append(page.id, section, text, at=TS + timedelta(minutes=number))
    return page.id


def test_a_session_that_an_agent_fills_is_split_and_linked(workspace: Workspace) -> None:
    root = workspace.load(_grown(workspace)).session
    pages = [workspace.load(str(index.key_of(str(path.relative_to(workspace.home))))) for path in workspace.sessions()]
    numbers = [int(entry.text.split()[0]) for page in pages for _, entry in page.session.entries()]
    assert sorted(numbers) == list(range(40))
    assert len(pages) >= 3
    links = root.intro.split("\n")
    assert len(links) == len(pages) - 1
    for link in links:
        target = link.partition("](../")[2].removesuffix(")")
        assert (workspace.home / "sessions" / target).is_file()
    assert root.turns == 14
    assert {row.key for row in index.rows(workspace.home)} == {page.id for page in pages}
    assert all(body_size(page.session) <= MOST_BYTES for page in pages)


def test_parts_that_a_killed_writer_left_are_not_told_twice(workspace: Workspace) -> None:
    page = workspace.new("Long", ts=TS)
    session = page.session
    for number in range(30):
        session.sections["input"].append(as_entry(f"{number} " + "oven bread " * 270, TS + timedelta(minutes=number)))
    page.path.write_text(render(session), encoding="utf-8")  # by hand: longer than a page may be
    left = split(replace(session, sections={**session.sections, "input": session.sections["input"][5:]})).parts
    for part in [*left, *split(session).parts]:
        workspace._put_part(part)
    lock = page.path.parent / f".{page.id[9:]}.lock"
    lock.write_text('{"pid": 1, "host": "elsewhere", "until": "2001-01-01T00:00:00+00:00", "token": "x"}')
    workspace.append(page.id, "judgement", "30 the end", at=TS + timedelta(minutes=30))
    pages = [workspace.load(index.key_of(str(path.relative_to(workspace.home)))) for path in workspace.sessions()]
    numbers = [int(entry.text.split()[0]) for one in pages for _, entry in one.session.entries()]
    assert sorted(numbers) == list(range(31))
