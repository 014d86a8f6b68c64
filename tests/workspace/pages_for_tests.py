"""Session pages for tests, and what happens to pages in real life: edits, torn files, programs with other habits."""

from __future__ import annotations

import random
from datetime import datetime

from palace_pipeline.workspace import names
from palace_pipeline.workspace.sections import SECTIONS, Language
from palace_pipeline.workspace.session import Session, as_entry, render

TS = datetime.fromisoformat("2026-11-30T09:15:00+08:00")
TEXTS = (
    "烤箱不热了，温控器坏了吗？\n\n第二段：230 V 正常。",
    "Measured the thermostat: no continuity.\n\n```python\n# TODO: 结论\n## 结论\nprint('x')\n```\nThen more.",
    "ls -la\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    "换掉温控器。It costs 30 euros. Done!",
    "- [ ] 买温控器\n- [x] 断电\n1. [ ] call Jane",
    "### 2026-11-30T09:15:00+08:00 · no heading of ours\n## 待办\n\\## 待办\n# Title in a text",
    "**结论**\n\n待办：\n---\nid: x\n---",
)


def a_session(language: Language = "zh", *, entries: int = 12, seed: int = 1) -> Session:
    """A session of so many entries, spread over all sections."""
    chance = random.Random(seed)
    session = Session(
        names.session_id(TS, str(seed)),
        TS,
        title="修复烤箱的温控 (oven)",
        tags=("烤箱", "repair"),
        model="claude-x",
        turns=4,
        tokens_in=1200,
        tokens_out=300,
        summary="温控器坏了: 换掉 # 1",
        language=language,
    )
    for number in range(entries):
        section = SECTIONS[number % len(SECTIONS)]
        at = TS.replace(minute=15 + number // 60, second=number % 60)
        who = None if number % 3 else "planner"
        session.sections[section].append(as_entry(chance.choice(TEXTS), at, who))
    return session


def path_of(session: Session) -> str:
    return str(names.path_of(session.id, session.title))


_PIECES = (
    *(
        "\n",
        "\r\n",
        "\r",
        "\ufeff",
        "---\n",
        "---",
        "## ",
        "# ",
        "### ",
        "**结论**\n",
        "## 后续\n",
        "＃＃ 待办\n",
        "`" * 3,
    ),
    *(
        "\n~~~\n",
        "：",
        ": ",
        "#",
        '"',
        "'",
        "\\",
        "\\## 结论\n",
        "## 结论\n",
        "## Conclusion\n",
        "### 2026-11-30T10:00Z\n",
    ),
    *("### 2026-13-45T99:99+08:00\n", "tags: [a, b\n", "tags： x，y\n", "ID: 5\n", "status: done\n", "extra: {a: 1}\n"),
    *(
        "summary: a: b\n",
        "\x85",
        "\u2028",
        "\x0b",
        "\0",
        "\ud800",
        "\x1c\n",
        "  ",
        "\t",
        "- ",
        "# 结论（完）\n",
        "%%",
        "…\n",
    ),
    *(
        "...\n",
        "&a ",
        "*a",
        "!!python/object:os.system x\n",
        "<<: *a\n",
        "? a\n",
        "|\n",
        "null",
        "summary: " + "长" * 90 + "\n",
    ),
)


def mutated(text: str, chance: random.Random) -> str:
    """A page after one to six things that happen to pages."""
    for _ in range(chance.randint(1, 6)):
        at, to = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        if chance.random() < 0.5:  # what stands at the top is where most can go wrong
            at, to = min(at, chance.randrange(400)), min(to, chance.randrange(400))
            at, to = min(at, to), max(at, to)
        lines = text.split("\n")
        match chance.randrange(9):
            case 0:
                text = text[:at] + chance.choice(_PIECES) + text[at:]
            case 1:
                text = text[:at] + text[min(to, at + chance.randrange(1, 40)) :]
            case 2:
                text = text[:to]
            case 3:
                text = text[at:]
            case 4:
                text = text.replace("\n", chance.choice(("\r\n", "\r", "\n\n", "\n ")), chance.choice((1, 5, -1)))
            case 5:
                text = text.replace(
                    *chance.choice((("## ", "# "), ("## ", "#### "), (": ", "："), ("---\n", ""), ("## ", "**")))
                )
            case 6:
                chance.shuffle(lines)
                text = "\n".join(lines[: chance.randrange(1, len(lines) + 1)])
            case 7:
                line = chance.randrange(len(lines))
                lines.insert(chance.randrange(len(lines) + 1), lines[line])
                text = "\n".join(lines)
            case _:
                text = text[:at] + "".join(chance.choice(_PIECES) for _ in range(3)) + text[at:]
    return text


def a_mutated_page(seed: int) -> tuple[str, str]:
    """(text, path) of a mutated page."""
    chance = random.Random(seed)
    session = a_session(chance.choice(("zh", "en")), entries=chance.randrange(8), seed=seed)
    return mutated(render(session), chance), path_of(session)
