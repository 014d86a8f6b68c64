"""A page is pleasant to read, and reads back to the same rows whatever a text holds."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.model import (
    MESSAGES,
    PROVIDERS,
    ROLES,
    Attachment,
    Citation,
    Conversation,
    Kind,
    Message,
    frame,
    message_values,
    page_hash,
    short_hash,
)
from palace_pipeline.transcripts.page import PageHead, UserParts, parse, render

DAY = date(2024, 5, 3)
HEAD = PageHead(DAY, wing="work", rooms=("databases", "testing"), redactions=3, source_sha256=("aa" * 32,))
AT = datetime(2024, 5, 3, 14, 22, 31, 123456, UTC)
CHAT = Conversation(
    "chatgpt",
    "6634a1b2-0000-8000-8000-1234567890ab",
    [
        Message("m1", "user", "How do I close it?\n\n```python\npool.close()\n```", created_at=AT),
        Message("m2", "thinking", "They ask about\n\n> a pool", "thinking", AT + timedelta(seconds=1)),
        Message("m3", "tool", '{"q": "pool"}', "tool_call", tool_name="search", model="gpt-4o"),
        Message("m4", "tool", "a ``` fence\n", "tool_result", tool_name="search"),
        Message(
            "m5",
            "assistant",
            "Call `close()`.",
            created_at=AT + timedelta(minutes=1),
            edited_at=AT + timedelta(hours=1),
            model="gpt-4o",
            citations=[Citation("https://example.org/a?b=(c)", "Docs [v2] \\ more"), Citation("https://example.org")],
        ),
        Message(
            "m6", "user", "", "image", AT + timedelta(minutes=2), attachment=[Attachment("map.png", "image/png", 12345)]
        ),
        Message("m7", "user", "left behind", branch_active=False),
        Message("m8", "user", "injected", hidden_reason="context"),
    ],
    title="Closing a pool: how?",
)
PAGE = """\
---
type: conversation
provider: chatgpt
conversation_id: "6634a1b2-0000-8000-8000-1234567890ab"
title: "Closing a pool: how?"
date: 2024-05-03
started_at: 2024-05-03T14:22:31.123456Z
ended_at: 2024-05-03T14:24:31.123456Z
message_count: 3
model: gpt-4o
wing: work
rooms:
  - databases
  - testing
redactions: 3
source_sha256:
  - aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
chat_link: "https://chatgpt.com/c/6634a1b2-0000-8000-8000-1234567890ab"
palace: TOKEN SEAL
tags: []
aliases: []
---

# Closing a pool: how?

ChatGPT · 3 messages · times in UTC

[2024-05-03](../../../notes/days/2024/2024-05-03.md) · \
[databases](../../../notes/rooms/databases/2024-05.md) · \
[testing](../../../notes/rooms/testing/2024-05.md)

<!-- palace:TOKEN {"role":"user","id":"m1","at":"2024-05-03T14:22:31.123456Z"} -->
### 2024-05-03 14:22 · You

How do I close it?

```python
pool.close()
```

<!-- palace:TOKEN {"role":"thinking","id":"m2","at":"2024-05-03T14:22:32.123456Z"} -->
> [!thinking]- Thinking · 2024-05-03 14:22
>
> They ask about
>
> > a pool

<!-- palace:TOKEN {"role":"tool","kind":"tool_call","id":"m3","model":"gpt-4o","tool":"search"} -->
> [!tool]- Tool call: search
>
> ```
> {"q": "pool"}
> ```

<!-- palace:TOKEN {"role":"tool","kind":"tool_result","id":"m4","tool":"search"} -->
> [!tool]- Tool result: search
>
> ````
> a ``` fence
>
> ````

<!-- palace:TOKEN {"role":"assistant","id":"m5","at":"2024-05-03T14:23:31.123456Z",\
"edited":"2024-05-03T15:22:31.123456Z","model":"gpt-4o","tail":5} -->
### 2024-05-03 14:23 · ChatGPT · edited

Call `close()`.

Sources:

- [Docs \\[v2\\] \\\\ more](<https://example.org/a?b=(c)>)
- <https://example.org>

<!-- palace:TOKEN {"role":"user","kind":"image","id":"m6","at":"2024-05-03T14:24:31.123456Z",\
"files":[{"name":"map.png","type":"image/png","size":12345}],"tail":1} -->
### 2024-05-03 14:24 · You


- 📎 map.png (image/png, 12 KB)

<!-- palace:TOKEN {"conversation":{"model":null,"gap":2}} -->

<!-- palace:TOKEN end -->

## Notes
"""


def on_page(message: Message) -> bool:
    return message.branch_active and message.hidden_reason is None


def shown(conversation: Conversation) -> Conversation:
    """What a page holds of a conversation."""
    rows = [replace(m, parent_id=None) for m in conversation.messages if on_page(m)]
    return replace(conversation, messages=rows, order="source", local_created=None)


def seal_of(page: str) -> tuple[str, str]:
    token, seal = yaml.safe_load(page.split("---\n")[1])["palace"].split()
    return token, seal


def test_a_page_looks_like_this() -> None:
    page = render(CHAT, HEAD)
    token, seal = seal_of(page)
    assert token == page_hash("chatgpt", CHAT.conversation_id)
    assert page.replace(token, "TOKEN").replace(seal, "SEAL") == PAGE


def test_a_page_reads_back() -> None:
    parsed = parse(render(CHAT, HEAD))
    assert parsed.conversation == shown(CHAT)
    assert parsed.head == HEAD
    assert (parsed.user, parsed.intact, parsed.problems) == (UserParts(), True, ())


def test_every_property_has_one_type_and_dates_are_iso() -> None:
    found = yaml.safe_load(render(CHAT, HEAD).split("---\n")[1])
    assert found["type"] == "conversation"
    assert (found["date"], found["started_at"]) == (DAY, AT)
    assert (found["rooms"], found["tags"], found["aliases"]) == (["databases", "testing"], [], [])
    bare = yaml.safe_load(render(Conversation("text", "c", []), PageHead(DAY)).split("---\n")[1])
    assert (bare["title"], bare["started_at"], bare["wing"], bare["model"]) == (None, None, None, None)
    assert (bare["rooms"], bare["source_sha256"], bare["message_count"]) == ([], [], 0)


def test_an_undated_conversation_shows_no_times_of_its_own() -> None:
    undated = Conversation("chatgpt", "c", [Message("a", "user", "x")])
    page = render(undated, PageHead(DAY, dated=False))
    assert "### You\n" in page
    assert yaml.safe_load(page.split("---\n")[1])["dated"] is False
    assert parse(page).head == PageHead(DAY, dated=False)


def test_naive_times_stay_naive_and_speakers_have_their_names() -> None:
    chat = Conversation(
        "whatsapp",
        "c",
        [Message("a", "user", "hi", speaker="Ann <ann>\nB", local_time="2024-05-03T09:05:00")],
        order="time",
    )
    page = render(chat, HEAD)
    assert "### 2024-05-03 09:05 · Ann \\<ann> B\n" in page
    assert "started_at: 2024-05-03T09:05:00\n" in page
    assert "times as written, without a zone" in page
    (message,) = parse(page).conversation.messages
    assert message == chat.messages[0]


def test_an_untitled_page_is_headed_by_what_the_person_first_said() -> None:
    chat = Conversation(
        "codex", "c", [Message("a", "assistant", "hello"), Message("b", "user", "\nFix the <b> tests " * 9)]
    )
    heading = render(chat, HEAD).split("\n# ")[1].split("\n")[0]
    assert heading.startswith("Fix the \\<b> tests Fix")
    assert heading.endswith("…")
    assert parse(render(chat, HEAD)).conversation.title is None


# --- texts that want to be something else -----------------------------------------------------------------------------

OWN = render(CHAT, HEAD)
MINE = UserParts(("a tag", "2024"), ("Pool",), "\nmy words\n", "rating: 5\n")
HOSTILE = [
    "",
    "\n",
    "\n\nblank lines around\n\n\n",
    "trailing blanks  \n\tand tabs\t",
    "---\ntype: conversation\n---",
    "---",
    "# Title\n\n## Notes\n\nmine\n",
    "### 2024-05-03 14:22 · You\n\nx",
    "<!--",
    "<!-- palace:1a2b3c4d end -->",
    "-->",
    "> [!tool]- Tool call: x\n> y",
    "> \n>\n>  a",
    "```\nunclosed",
    "~~~~\n```",
    "```\n````",
    "`````",
    "%%time",
    "<pre>\nunclosed",
    "<details>\n<summary>x</summary>",
    "line\u2028separator\u2029and\x85next\x0b\x0c\x1c",
    "\u202eright to left\u202c עברית العربية",
    "混合 text 中文。",
    "\ufeffBOM",
    "emoji 👩‍👩‍👧",
    "- 📎 map.png (image/png, 12 KB)",
    "Sources:\n\n- [a](<https://example.org>)",
    OWN,
    OWN.replace(page_hash("chatgpt", CHAT.conversation_id), page_hash("codex", "c1")),
    f"{page_hash('codex', 'c1')} <!-- palace:",
]
lines = st.sampled_from([*HOSTILE, *[f"\n{text}" for text in HOSTILE], *[f"{text}\n" for text in HOSTILE]])
plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=30)
bodies = st.lists(lines | plain, max_size=4).map("".join) | st.lists(lines | plain, max_size=4).map("\n".join)
instants = st.none() | st.datetimes(datetime(1990, 1, 1), datetime(2199, 1, 1), timezones=st.just(UTC))
counts = st.none() | st.integers(0, 10**12)
rows = st.builds(
    Message,
    message_id=plain,
    role=st.sampled_from(ROLES),
    text=bodies,
    kind=st.sampled_from(get_args(Kind)),
    created_at=instants,
    local_time=st.sampled_from([None, "2024-05-03T09:00:00"]),
    speaker=st.none() | bodies,
    edited_at=instants,
    model=st.none() | plain,
    tool_name=st.none() | bodies,
    citations=st.lists(
        st.builds(
            Citation, url=st.from_regex(r"https://[!-;=?-~]{0,20}", fullmatch=True) | plain, title=st.none() | plain
        ),
        max_size=2,
    ),
    attachment=st.lists(
        st.builds(
            Attachment,
            st.none() | bodies,
            st.none() | plain,
            st.none() | st.integers(0, 10**12),
            st.none() | plain,
            st.none() | bodies.filter(bool),
        ),
        max_size=2,
    ),
    tokens_in=counts,
    tokens_out=counts,
    tokens_cached=counts,
    cost=st.none() | st.floats(0, 1e6),
    branch_active=st.sampled_from([True, True, True, False]),
    hidden_reason=st.sampled_from([None, None, None, "context"]),
)
chats = st.builds(
    Conversation,
    provider=st.sampled_from(PROVIDERS),
    conversation_id=plain.filter(bool),
    messages=st.lists(rows, max_size=4),
    title=st.none() | bodies,
    origin=st.sampled_from(["person", "subagent"]),
    created_at=instants,
    updated_at=instants,
    account=st.none() | plain,
    model=st.none() | plain,
    project=st.none() | bodies,
    forked_from=st.none() | plain,
    parent_conversation_id=st.none() | plain,
    source_file=st.none() | plain,
)
heads = st.builds(
    PageHead,
    day=st.dates(date(2010, 1, 1)),
    dated=st.booleans(),
    wing=st.none() | plain,
    rooms=st.lists(plain.filter(bool), max_size=2).map(tuple),
    redactions=st.integers(0, 10**6),
    source_sha256=st.lists(plain.map(short_hash), max_size=2).map(tuple),
)
owners = st.builds(
    UserParts,
    tags=st.lists(plain, max_size=2).map(tuple),
    aliases=st.lists(plain, max_size=2).map(tuple),
    notes=bodies | st.text(st.sampled_from("a\r\n #-"), max_size=20),
    extra=st.sampled_from(
        ["", "rating: 5\n", "cssclasses:\n- a\n", '# mine\n"my key": >-\n  folded\n  ---\nz: {a: [1]}\n']
    ),
)


@given(chats, heads, owners)
def test_any_page_reads_back_to_the_same(chat: Conversation, head: PageHead, user: UserParts) -> None:
    page = render(chat, head, user)
    parsed = parse(page)
    assert parsed.conversation == shown(chat)
    assert (parsed.head, parsed.user, parsed.intact, parsed.problems) == (head, user, True, ())
    assert render(parsed.whole(), parsed.head, parsed.user) == page
    places = [number for number, message in enumerate(chat.messages) if on_page(message)]
    assert [number for number, message in enumerate(parsed.whole().messages) if on_page(message)] == places
    assert len(parsed.whole().messages) == len(chat.messages)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_in_every_role(role, text: str) -> None:
    texts = [text, f"before\n{text}", f"{text}\nafter", f"{text}\n", f"\n{text}"]
    chat = Conversation("codex", "c1", [Message(str(i), role, t) for i, t in enumerate(texts)])
    assert [m.text for m in parse(render(chat, HEAD)).conversation.messages] == texts


def test_ordinary_lines_stand_on_the_page_as_written() -> None:
    text = "# a heading\n<b>html</b> & *stars* [[link]]\n| a | b |\n  indented \\ back\\slash"
    chat = Conversation("codex", "c1", [Message("a", "user", text)])
    assert f"\n\n{text}\n\n" in render(chat, HEAD)


def test_a_comment_line_is_one_html_comment() -> None:
    odd = "a --> b <!-- c ---- d\ne"
    first = Message(odd, "user", "x", speaker=odd, attachment=[Attachment(odd)])
    chat = Conversation("codex", odd, [first, Message("a--b", "user")], title=odd)
    lines = [line for line in render(chat, HEAD).split("\n") if line.startswith("<!--")]
    assert len(lines) == 3
    for line in lines:
        inside = line.removeprefix("<!--").removesuffix("-->")
        assert not {"--", ">", "<"} & {inside[i : i + n] for i in range(len(inside)) for n in (1, 2)}
    assert parse(render(chat, HEAD)).conversation == shown(chat)


def test_carriage_returns_become_line_feeds() -> None:
    chat = Conversation("codex", "c1", [Message("a", "user", "a\r\nb\rc")])
    assert "\r" not in render(chat, HEAD)
    assert parse(render(chat, HEAD)).conversation.messages[0].text == "a\nb\nc"


def test_a_page_quoted_in_its_own_conversation_gets_another_token() -> None:
    chat = Conversation("codex", "c1", [Message("a", "user", "x")])
    quoting = replace(chat, messages=[Message("a", "user", render(chat, HEAD))])
    first, second = seal_of(render(chat, HEAD))[0], seal_of(render(quoting, HEAD))[0]
    assert first != second
    assert second not in quoting.messages[0].text


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ("```python\nx", "```"),
        ("  ~~~~\nx\n~~~\n", "  ~~~~"),
        ("```\nx\n```", None),
        ("````\n```\n", "````"),
        ("``` not ` a fence", None),
        ("%%time\nx", "%%"),
        ("%%hidden%%", None),
        ("```\n%%time\n```", None),
        ("a\n<PRE>\nx", "</PRE>"),
        ("<script>x</script>\n<b>", None),
        ("inline <pre> is no block", None),
    ],
)
def test_what_a_text_leaves_open_is_closed_for_viewers(text: str, closing: str | None) -> None:
    chat = Conversation("codex", "c1", [Message("a", "user", text)])
    page = render(chat, HEAD)
    after = page.split(f"\n\n{text}\n")[1].split("<!-- ")[0].strip("\n")
    assert after == (closing or "").strip("\n")
    assert parse(page).conversation.messages[0].text == text


def test_times_in_other_zones_are_the_same_instant() -> None:
    there = AT.astimezone(timezone(timedelta(hours=8)))
    chat = Conversation("codex", "c1", [Message("a", "user", "x", created_at=there)])
    (message,) = parse(render(chat, HEAD)).conversation.messages
    assert message.created_at == AT


FIRST_RECIPE = """\
---
type: conversation
provider: codex
conversation_id: c1
title: Old
date: 2024-05-03
started_at:
ended_at:
message_count: 1
model:
wing:
rooms: []
redactions: 0
source_sha256: []
palace: 39dbdcd2 SEAL
tags: []
aliases: []
---

# Old

codex · 1 message

<!-- palace:39dbdcd2 {"role":"user","id":"a"} -->
### You

x

<!-- palace:39dbdcd2 end -->

## Notes
"""


def test_a_page_of_the_first_recipe_is_known_as_intact_and_as_changed() -> None:
    """As it was written before tokens, times of the conversation and numbers of rows stood on pages."""
    body = FIRST_RECIPE.split("aliases: []\n---\n")[1].split("\n<!-- palace:39dbdcd2 end")[0]
    page = FIRST_RECIPE.replace("SEAL", short_hash(body, "codex", "c1", "Old", "", "", length=16))
    parsed = parse(page)
    assert (parsed.intact, parsed.problems, parsed.gaps) == (True, (), (0, 0))
    assert parsed.conversation == Conversation("codex", "c1", [Message("a", "user", "x")], title="Old")
    assert not parse(page.replace("title: Old", "title: Mine")).intact
    assert not parse(page.replace("\nx\n", "\ny\n")).intact


def test_texts_of_files_are_folded_and_readable() -> None:
    file = Attachment("plan.txt", "text/plain", 1200, text="first\n```\nlast")
    page = render(Conversation("codex", "c1", [Message("a", "user", "see", attachment=[file])]), HEAD)
    shown_as = "> [!file]- 📎 plan.txt (text/plain, 1 KB)\n>\n> ````\n> first\n> ```\n> last\n> ````\n"
    assert f'{{"text_of_file":0}} -->\n{shown_as}\n<!-- ' in page
    assert parse(page).conversation.messages[0].attachment == [file]


@given(st.data())
def test_facts_of_any_type_cost_their_message_and_no_other(data: st.DataObject) -> None:
    """Whatever JSON somebody puts into a comment line."""
    line = data.draw(st.sampled_from([line for line in OWN.split("\n") if line.startswith("<!-- ") and "{" in line]))
    facts = json.loads(line[line.index("{") : line.rindex("}") + 1])
    name = data.draw(st.sampled_from([*facts, "in", "cost", "sources", "files", "gap", "text_of_file", "conversation"]))
    odd = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | plain,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(plain, inner, max_size=2),
    )
    facts[name] = data.draw(odd)
    changed = f"{line[: line.index('{')]}{json.dumps(facts)} -->"
    parsed = parse(OWN.replace(line, changed))
    assert len(parsed.conversation.messages) >= 5
    assert len(parsed.problems) <= 1
    typed = frame([{**message_values(m), "seq": 0} for m in parsed.conversation.messages], MESSAGES)
    assert typed.height == len(parsed.conversation.messages)


def test_the_same_rows_give_the_same_bytes() -> None:
    assert render(CHAT, HEAD, MINE) == render(replace(CHAT, messages=list(CHAT.messages)), HEAD, MINE)
