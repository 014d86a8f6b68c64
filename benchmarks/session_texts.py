"""Texts of synthetic sessions: sentences, code and output put together from word lists, so that no two are equal.

Everything is drawn from the random numbers of a `Setting`; equal ones give equal texts.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any


def _words(text: str) -> list[str]:
    return text.split()


def _phrases(text: str) -> list[str]:
    """Texts parted by bars and ends of lines."""
    return [phrase.strip() for phrase in text.replace("\n", "|").split("|") if phrase.strip()]


_SYLLABLES = _words("ba ce di fo gra hu in jor ka lu mer no pel qui ra su tor ul ven wi xa yor zel bri cho dra fen gol")
_NOUNS = _words("""
    cache parser queue scheduler ledger index migration handler worker socket timeout retry budget schema column table
    partition snapshot replica checksum header payload token stream buffer encoder session cursor cluster region bucket
    policy quota webhook endpoint route middleware template fixture benchmark profiler allocator iterator sensor gateway
    invoice customer report forecast calendar reminder recipe garden museum harbour bridge violin lecture essay budget
    deployment container volume manifest secret certificate dashboard alert metric latency throughput backlog release
    branch commit review merge rollback hotfix changelog dependency lockfile compiler linker symbol macro closure
""")
_VERBS = _words("""
    reads writes merges splits drops keeps counts skips retries blocks wakes drains flushes rebuilds renames validates
    rejects accepts repeats reorders compresses encodes decodes caches evicts publishes subscribes returns raises hides
    overwrites truncates appends sorts groups joins filters converts copies moves deletes restores schedules cancels
""")
_ADJECTIVES = _words("""
    stale empty partial nested duplicate missing hidden slow noisy broken fresh narrow wide local remote shared private
    atomic lazy eager idle busy cold warm optional required strict loose silent verbose fragile robust ancient recent
""")
_ADVERBS = _words("twice silently later again first only never always sometimes early late safely slowly directly")
_REASONS = _phrases("""
    because the lock is taken before the file is opened|since two workers start in the same second|
    when the clock of the container runs behind|after the second restart of the service|if the header has no length|
    while the old process still holds the handle|as soon as the batch is larger than a page|unless the flag is set by hand|
    when a line ends in the middle of a character|since the test uses a fixed port|because the cache key leaves the zone out
""")
_QUESTIONS = _phrases("""
    Why does the {a} {n} in {m} sometimes {v} the {n2}?|Can you look at {m} and find out where the {n} comes from?|
    Please change the {n} so that it never {vs} a {a} {n2}.|I get this since yesterday: the {n} {vs} {adv}. What is wrong?|
    Write a test that shows the {a} {n} in {m}, then fix it.|Let us rename {f} to {g} everywhere and keep the old name for now.|
    How should we store the {n}: one {n2} each, or a shared {a} {n2}?|The review says that {f} is too long. Split it, please.|
    Is it safe to run the {n} {adv} while the {n2} is {a}?|Explain to me how the {n} and the {n2} work together.
""")
_ZH_NOUNS = _words("""
    缓存 队列 索引 分区 快照 日志 接口 权限 事务 锁 线程 会话 请求 响应
    数据库 表结构 迁移脚本 部署流程 测试用例 监控指标 配置文件 依赖版本 向量
    文档 报表 预算 行程 合同 课程
""")
_ZH_VERBS = _words("""
    读取 写入 合并 拆分 跳过 重试 阻塞 清理 重建 校验 拒绝 压缩 缓存 发布
    返回 覆盖 截断 排序 过滤 转换 复制 恢复 取消
""")
_ZH_ADJECTIVES = _words("""
    过期的 空的 重复的 缺失的 隐藏的 缓慢的 损坏的 最新的 本地的 远程的
    共享的 可选的 严格的 旧的
""")
_ZH_REASONS = _phrases("""
    因为在打开文件之前就已经加锁了|原因是两个进程在同一秒启动|当容器的时钟落后的时候|在服务第二次重启之后|如果请求头里没有长度|
    旧进程仍然占用着句柄|只要批次超过一页|除非手动设置了开关|因为测试用了固定的端口|缓存键里没有包含时区
""")
_ZH_QUESTIONS = _phrases("""
    为什么 {m} 里{a}{n}有时会{v}{n2}？|帮我看一下 {m}，{n}到底是从哪里来的？|请修改{n}，让它不要再{v}{a}{n2}。|
    从昨天开始出现这个问题：{n}会{v}两次，哪里错了？|先写一个测试重现{a}{n}的问题，然后修好它。|{n}应该怎么存，每个{n2}一份，还是共用{a}{n2}？|
    我们把 {f} 改名为 {g}，旧名字先保留。|解释一下{n}和{n2}是怎么配合的。
""")
_FOLDERS = ("core", "api", "store", "jobs", "web", "tests", "tools", "models")
_ENDINGS = (".py", ".py", ".py", ".ts", ".go", ".toml", ".md")


@dataclass(slots=True)
class Setting:
    """Where and when something is said; `chinese`: the language of people there."""

    rng: random.Random
    cwd: str
    chinese: bool
    at: datetime


Tool = tuple[str, dict[str, Any], str]
"""Name, arguments and output of a tool."""


# --- tools ------------------------------------------------------------------------------------------------------------


def some_tool(setting: Setting, size: int) -> Tool:
    return setting.rng.choice((_read, _bash, _grep, _edit))(setting, size)


def _read(setting: Setting, size: int) -> Tool:
    rng = setting.rng
    code = _code(rng, size)
    numbered = "\n".join(f"{number:5}→{line}" for number, line in enumerate(code.split("\n"), rng.randint(1, 300)))
    return "Read", {"file_path": _path(setting)}, numbered


def _edit(setting: Setting, size: int) -> Tool:
    rng = setting.rng
    path, new = _path(setting), _code(rng, size // 2)
    old = "\n".join(line for line in new.split("\n") if rng.random() < 0.7)
    return (
        "Edit",
        {"file_path": path, "old_string": old, "new_string": new},
        f"The file {path} has been updated.",
    )


def _grep(setting: Setting, size: int) -> Tool:
    rng = setting.rng
    pattern, lines, length = _name(rng), list[str](), 0
    while length < size:
        line = f"{_path(setting)}:{rng.randint(1, 900)}:    {_statement(rng, pattern)}"
        lines.append(line)
        length += len(line) + 1
    return "Grep", {"pattern": pattern, "path": setting.cwd, "output_mode": "content"}, "\n".join(lines)


def _bash(setting: Setting, size: int) -> Tool:
    rng = setting.rng
    command, line_of = rng.choice(_COMMANDS)
    lines, length = list[str](), 0
    while length < size:
        line = line_of(setting)
        lines.append(line)
        length += len(line) + 1
    arguments = {"command": command.format(f=_path(setting), n=_name(rng)), "description": sentence(rng)[:60]}
    return "Bash", arguments, "\n".join(lines)


def _test_line(setting: Setting) -> str:
    rng = setting.rng
    if rng.random() < 0.1:
        return f"E       AssertionError: assert {rng.randint(0, 99)} == {rng.randint(0, 99)}"
    outcome = rng.choices(("PASSED", "FAILED", "SKIPPED"), (20, 1, 1))[0]
    return f"tests/test_{_name(rng)}.py::test_{_name(rng)}_{rng.choice(_NOUNS)} {outcome} [{rng.randint(1, 100):3}%]"


def _log_line(setting: Setting) -> str:
    rng = setting.rng
    at = setting.at - timedelta(seconds=rng.randint(0, 90_000))
    address = f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"
    level = rng.choices(("INFO", "DEBUG", "WARN", "ERROR"), (12, 5, 2, 1))[0]
    detail = f"client={address} request={new_uuid(rng)} took={rng.randint(1, 4000)}ms"
    return f"{at:%Y-%m-%dT%H:%M:%S}.{rng.randrange(1000):03}Z {level} {_name(rng)}: {_clause(rng)} {detail}"


def _list_line(setting: Setting) -> str:
    rng = setting.rng
    at = setting.at - timedelta(days=rng.randint(0, 300))
    return (
        f"-rw-r--r--  1 sample sample {rng.randint(20, 400_000):8} {at:%b %d %H:%M} {_name(rng)}{rng.choice(_ENDINGS)}"
    )


def _diff_line(setting: Setting) -> str:
    rng = setting.rng
    if rng.random() < 0.05:
        return f"@@ -{rng.randint(1, 400)},{rng.randint(3, 20)} +{rng.randint(1, 400)},{rng.randint(3, 20)} @@ def {_name(rng)}("
    return rng.choices(" +-", (6, 2, 1))[0] + "    " * rng.randint(0, 3) + _statement(rng, _name(rng))


def _history_line(setting: Setting) -> str:
    rng = setting.rng
    author = f"{rng.choice(_SYLLABLES)}{rng.choice(_SYLLABLES)}"
    return f"{rng.getrandbits(40):010x} {author}@mail.{_name(rng)[:6]}.org {setting.at:%Y-%m-%d} {sentence(rng)}"


def _environment_line(setting: Setting) -> str:
    rng = setting.rng
    if rng.random() < 0.03:
        return f"{rng.choice(_NOUNS).upper()}_API_KEY={letters(rng, 40)}"
    return f"{rng.choice(_NOUNS).upper()}_{rng.choice(_NOUNS).upper()}={rng.choice(('on', 'off', _name(rng), '8080'))}"


_COMMANDS = (
    ("cd {f} && python -m pytest -x -q {n}", _test_line),
    ("docker logs --tail 200 {n}", _log_line),
    ("kubectl logs deploy/{n} --since 1h", _log_line),
    ("ls -la {f}", _list_line),
    ("git diff HEAD~1 -- {f}", _diff_line),
    ("git log --format='%h %ae %as %s' -- {f}", _history_line),
    ("env | sort | grep -i {n}", _environment_line),
)


def _code(rng: random.Random, size: int) -> str:
    """Some functions, `size` characters or a little more."""
    lines, length = list[str](), 0
    while length < size:
        one, two, three = _name(rng), _name(rng), _name(rng)
        body = [
            f"def {one}({two}: {rng.choice(('str', 'int', 'Path', 'bytes'))}, *, {three}: bool = False) -> None:",
            f'    """{sentence(rng)}"""',
            *(f"    {_statement(rng, rng.choice((one, two, three)))}" for _ in range(rng.randint(2, 9))),
            f"    if {three} and {two} is not None:",
            f'        raise ValueError(f"{rng.choice(_NOUNS)} {{{two}!r}} is {rng.choice(_ADJECTIVES)}")',
            f"    # {sentence(rng)}",
            "",
        ]
        lines += body
        length += sum(len(line) + 1 for line in body)
    return "\n".join(lines)


def _statement(rng: random.Random, name: str) -> str:
    other = _name(rng)
    return rng.choice(
        (
            f"{other} = {name}.{rng.choice(_VERBS)}({other}, limit={rng.randint(1, 5000)})",
            f"for {other} in {name}[{rng.randint(0, 9)}:]:",
            f"self.{name}_{rng.choice(_NOUNS)} = {other} or {rng.random():.4f}",
            f'log.info("{rng.choice(_NOUNS)} %s {rng.choice(_VERBS)}", {name})',
            f"assert {name} <= {other}, {rng.randint(1, 400)}",
            f"return [{other} for {other} in {name} if {other}.{rng.choice(_NOUNS)}]",
        )
    )


# --- words ------------------------------------------------------------------------------------------------------------


def answer(setting: Setting) -> str:
    """60 to 300 words (Chinese: as many characters and a half more), with a list or a piece of code now and then."""
    rng = setting.rng
    text = prose(setting, rng.randint(60, 300))
    if rng.random() < 0.35:
        items = [zh_sentence(rng) if setting.chinese else sentence(rng) for _ in range(rng.randint(2, 5))]
        text += "\n\n" + "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
    if rng.random() < 0.25:
        text += "\n\n```python\n" + "\n".join(_statement(rng, _name(rng)) for _ in range(rng.randint(2, 7))) + "\n```"
    return text


def prose(setting: Setting, words: int) -> str:
    rng = setting.rng
    paragraphs, length = list[str](), 0
    while length < words:
        sentences: list[str] = []
        for _ in range(rng.randint(2, 6)):
            if length >= words:
                break
            sentences.append(zh_sentence(rng) if setting.chinese else sentence(rng))
            length += len(sentences[-1]) * 2 // 3 if setting.chinese else len(sentences[-1].split())
        paragraphs.append(("" if setting.chinese else " ").join(sentences))
    return "\n\n".join(paragraphs)


def question(setting: Setting) -> str:
    rng = setting.rng
    nouns, verbs = (_ZH_NOUNS, _ZH_VERBS) if setting.chinese else (_NOUNS, _VERBS)
    adjectives = _ZH_ADJECTIVES if setting.chinese else _ADJECTIVES
    verb = rng.choice(verbs)
    text = rng.choice(_ZH_QUESTIONS if setting.chinese else _QUESTIONS)
    text = text.format(
        n=rng.choice(nouns),
        n2=rng.choice(nouns),
        a=rng.choice(adjectives),
        v=verb.removesuffix("s"),
        vs=verb,
        adv=rng.choice(_ADVERBS),
        m=f"{rng.choice(_FOLDERS)}/{_name(rng)}.py",
        f=f"{_name(rng)}()",
        g=f"{_name(rng)}()",
    )
    if rng.random() < 0.4:
        text += (" " if not setting.chinese else "") + prose(setting, rng.randint(10, 60))
    return text


def sentence(rng: random.Random) -> str:
    start = rng.choice(("", "", "In `" + _name(rng) + "` ", "So ", "Note that ", "At first ", "By default "))
    text = f"{start}the {rng.choice(_ADJECTIVES)} {_clause(rng)}"
    if rng.random() < 0.5:
        text += f" {rng.choice(_REASONS)}"
    if rng.random() < 0.25:
        text += f", so that the {rng.choice(_NOUNS)} {_word(rng)} {rng.choice(_VERBS)} {rng.choice(_ADVERBS)}"
    return text[0].upper() + text[1:] + "."


def _clause(rng: random.Random) -> str:
    return f"{rng.choice(_NOUNS)} {rng.choice(_VERBS)} the {rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)} {rng.choice(_ADVERBS)}"


def zh_sentence(rng: random.Random) -> str:
    text = f"{rng.choice(_ZH_ADJECTIVES)}{rng.choice(_ZH_NOUNS)}会{rng.choice(_ZH_VERBS)}{rng.choice(_ZH_NOUNS)}"
    if rng.random() < 0.6:
        text += f"，{rng.choice(_ZH_REASONS)}"
    if rng.random() < 0.3:
        text += f"，所以 `{_name(rng)}` 需要先{rng.choice(_ZH_VERBS)}{rng.choice(_ZH_NOUNS)}"
    return text + "。"


def _word(rng: random.Random) -> str:
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 3)))


def _name(rng: random.Random) -> str:
    return f"{rng.choice(_NOUNS)}_{rng.choice((_word(rng), rng.choice(_NOUNS)))}"


def _path(setting: Setting) -> str:
    rng = setting.rng
    return f"{setting.cwd}/{rng.choice(_FOLDERS)}/{_name(rng)}{rng.choice(_ENDINGS)}"


def letters(rng: random.Random, length: int) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=length))


def new_uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))
