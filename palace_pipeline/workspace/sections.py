"""The five sections of a session, what they are called, and the lines that people and models write for them.

A page that a program wrote has all five headings in their exact form; then nothing else in it can be one. Only where a
section's exact heading is missing, other forms of it count: another level, bold, a synonym, an explanation behind it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, get_args

Section = Literal["input", "judgement", "tools", "conclusion", "todo"]
Language = Literal["zh", "en"]
SECTIONS: tuple[Section, ...] = get_args(Section)

NAMES: dict[Language, dict[Section, str]] = {
    "zh": {"input": "用户输入", "judgement": "我的判断", "tools": "工具调用", "conclusion": "结论", "todo": "待办"},
    "en": {
        "input": "User input",
        "judgement": "My judgement",
        "tools": "Tool calls",
        "conclusion": "Conclusion",
        "todo": "To do",
    },
}
EXACT: dict[str, tuple[Section, Language]] = {
    name: (section, language) for language, names in NAMES.items() for section, name in names.items()
}

_SYNONYMS: dict[Section, str] = {
    "input": "用户|輸入|输入|用户问题|用户请求|用户提问|提问|请求|使用者輸入|用戶輸入|user|input|user question|user request|"
    "question|request|prompt|user prompt|user message",
    "judgement": "判断|判斷|我的判斷|我的分析|我的想法|我的思考|分析|思考|推理|想法|my judgment|judgement|judgment|my view|"
    "my assessment|assessment|analysis|my analysis|reasoning|thinking|thoughts",
    "tools": "工具|工具使用|调用工具|工具呼叫|工具調用|tool call|tools|tool use|tools used|tool usage",
    "conclusion": "結論|总结|總結|小结|最终结论|答案|结果|結果|conclusions|result|results|answer|outcome|final answer|"
    "decision|decisions",
    "todo": "待辦|待办事项|待辦事項|代办|后续|後續|下一步|后续步骤|后续工作|后续计划|下一步计划|行动项|todo|todos|to-do|"
    "to-dos|to dos|to do list|todo list|next|next step|next steps|follow-up|follow-ups|follow up|followup|action items",
}
_NAMED: dict[str, Section] = {
    **{name: section for section, names in _SYNONYMS.items() for name in names.split("|")},
    **{name.casefold(): section for name, (section, _) in EXACT.items()},
}
_OWN = {name.casefold() for name in EXACT}
_LONGEST_NAME = max(map(len, _NAMED))
_LONGEST_LINE = 200
_HEADING = re.compile(r"[ ]{0,3}[#＃]{1,6}[ \t\u3000]*(.+?)[ \t#＃]*", re.DOTALL)
_BOLD = re.compile(r"[ ]{0,3}(\*\*|__)(.+?)\1[ \t]*([:：]?)[ \t]*(.*)", re.DOTALL)
_LEADING = re.compile(
    r"(?:[^\w(（【\[]|_)*(?:(?:\d{1,2}|[一二三四五六七八九十])[.、)）:：][ \t]*|[(（][一二三四五六七八九十\d]{1,2}[)）][ \t]*)?"
)
_BRACKETED = ("(", "（", "[", "【", ":", "：", "-", "–", "—", "|", "/", ",", "，", "、", "。", ".")


def named(text: str) -> tuple[Section, str, Language] | None:
    """(section, explanation behind the name, language) if a heading's text names a section, else None.

    Behind a section's own name an explanation may follow after a blank; behind a synonym a bracket, colon or dash must
    show that it is one ("结果集的大小" and "next week" are no headings of ours).
    """
    if len(text) > _LONGEST_LINE:
        return None
    plain = text[_LEADING.match(text).end() :].strip(" \t\u3000*_`\"'“”「」《》") if text else ""  # pyright: ignore[reportOptionalMemberAccess]
    # Character by character, so that places in the folded text are places in the text.
    folded = "".join(one if len(one := unicodedata.normalize("NFKC", c).casefold()) == 1 else c for c in plain)
    for length in range(min(len(folded), _LONGEST_NAME), 0, -1):
        section = _NAMED.get(folded[:length])
        if section is None:
            continue
        rest = plain[length:].lstrip("*_`\"'”」》")
        bare = rest.lstrip(" \t\u3000")
        marked = not bare or bare[0] in _BRACKETED
        if marked or (folded[:length] in _OWN and rest != bare):
            explanation = bare.lstrip(":：-–—|/,，、。. \t\u3000").rstrip()
            return section, explanation, "en" if folded[:length].isascii() else "zh"
    return None


def as_heading(line: str) -> tuple[Section, str, Language] | None:
    """The section that a line begins as a heading of any level or a line in bold, with what stands behind the name."""
    if line.lstrip(" ")[:1] not in ("#", "＃", "*", "_"):
        return None
    match = _HEADING.fullmatch(line)
    if match is not None:
        return named(match[1])
    match = _BOLD.fullmatch(line)
    if match is None or (match[4] and not (match[3] or match[2].rstrip().endswith((":", "：")))):
        return None
    found = named(match[2])
    return (found[0], " ".join(part for part in (found[1], match[4].rstrip()) if part), found[2]) if found else None
