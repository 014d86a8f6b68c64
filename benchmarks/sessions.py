"""Claude Code session logs for measuring: seeded, synthetic, of the size and mixture that real logs have.

    python benchmarks/sessions.py FOLDER --sessions 500 --messages 40

A message is one record of a person or the model, as the log writes them: question, thinking, call of a tool, its result,
answer. Results and calls of tools hold two thirds of the characters, answers 60 to 300 words; one session in six is in
Chinese. Sentences, code and output are put together from the word lists below, so that no two texts are equal. The days
are spread over two months. Equal arguments give equal bytes.
"""

from __future__ import annotations

import argparse
import json
import random
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FIRST_DAY = datetime(2026, 3, 2, tzinfo=UTC)
DAYS = 60
TOOL_SHARE = 2 / 3
MODEL = "claude-sample-5"


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
_PROJECTS = (
    *("tidepool", "ledgerline", "north-harbour", "orchard-api", "paper-mill", "quiet-queue", "rooftop"),
    *("signal-box", "tram-times", "umbra-ui", "violin-notes", "wharf-infra"),
)
_PLACES = tuple((name, number % 6 == 5) for number, name in enumerate(_PROJECTS))
"""Projects, and whether people write Chinese there."""
_FOLDERS = ("core", "api", "store", "jobs", "web", "tests", "tools", "models")
_ENDINGS = (".py", ".py", ".py", ".ts", ".go", ".toml", ".md")


@dataclass(slots=True)
class _Session:
    """The log of one session while it is written."""

    rng: random.Random
    cwd: str
    chinese: bool
    at: datetime
    session_id: str = ""
    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    parent: str | None = None
    turns: int = 0
    said: int = 0
    """Characters of talk and of tools up to now: what the size of the next result is steered by."""
    tooled: int = 0

    def add(self, kind: str, message: dict[str, Any], **more: Any) -> None:
        """One record of a person or the model."""
        self.at += timedelta(milliseconds=self.rng.randint(400, 45_000))
        name = _uuid(self.rng)
        record: dict[str, Any] = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": "2.1.220",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": name,
            "timestamp": _stamp(self.at),
            **more,
        }
        self.records.append(record)
        self.parent = name
        self.turns += 1

    def answer(self, block: dict[str, Any], message_id: str, stop: str | None) -> None:
        rng = self.rng
        usage = {
            "input_tokens": rng.randint(3, 90),
            "output_tokens": rng.randint(20, 900),
            "cache_creation_input_tokens": rng.randint(0, 4_000),
            "cache_read_input_tokens": rng.randint(8_000, 90_000),
        }
        message = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [block],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }
        self.add("assistant", message, requestId=f"req_{message_id[4:]}")


def write_sessions(folder: Path, sessions: int, messages: int, seed: int = 1) -> list[Path]:
    """Write `sessions` logs of `messages` records each as `projects/<folder>/<uuid>.jsonl`; the files by time."""
    rng = random.Random(f"{seed}:{messages}")
    places = sorted(_moment(rng) for _ in range(sessions))
    files: list[Path] = []
    for number, at in enumerate(places):
        own = random.Random(f"{seed}:{messages}:{number}")
        cwd = f"/home/sample/dev/{own.choice(_PROJECTS)}"
        lines, name = _session(own, cwd, at, messages)
        path = folder / "projects" / cwd.replace("/", "-") / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines, encoding="utf-8")
        files.append(path)
    return files


Tool = tuple[str, dict[str, Any], str]
"""Name, arguments and output of a tool."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Texts to fill exports of other kinds with, so many that they seldom repeat."""

    questions: list[str]
    answers: list[str]
    thoughts: list[str]
    tools: list[Tool]


def sample_texts(seed: int, count: int = 1500) -> Samples:
    """`count` texts of each kind; one in six is in Chinese."""
    rng = random.Random(f"texts:{seed}")
    places = [_Session(rng, f"/home/sample/dev/{name}", chinese, FIRST_DAY) for name, chinese in _PLACES]
    sessions = [places[number % len(places)] for number in range(count)]
    return Samples(
        [_question(session) for session in sessions],
        [_answer(session) for session in sessions],
        [_prose(session, rng.randint(20, 110)) for session in sessions],
        [_some_tool(session, int(min(rng.lognormvariate(7.2, 1.1), 30_000))) for session in sessions],
    )


def _moment(rng: random.Random) -> datetime:
    """A moment in working hours mostly; few on weekends."""
    while True:
        at = FIRST_DAY + timedelta(days=rng.randrange(DAYS), seconds=int(rng.gauss(14, 3.5) * 3600) % 86_400)
        if at.weekday() < 5 or rng.random() < 0.25:
            return at


def _session(rng: random.Random, cwd: str, at: datetime, messages: int) -> tuple[str, str]:
    session = _Session(rng, cwd, rng.random() < 1 / 6, at, _uuid(rng))
    head: list[dict[str, Any]] = [{"type": "mode", "mode": "normal", "sessionId": session.session_id}]
    while session.turns < messages:
        _exchange(session, messages - session.turns)
    title = _zh_sentence(rng)[:18] if session.chinese else " ".join(_sentence(rng).split()[:6]).rstrip(".,")
    head.append({"type": "ai-title", "aiTitle": title, "sessionId": session.session_id})
    lines = [json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in head + session.records]
    return "\n".join(lines) + "\n", session.session_id


def _exchange(session: _Session, left: int) -> None:
    """A question, what is done for it, and its answer: in all at most `left` records, at least one."""
    rng = session.rng
    message_id = f"msg_{rng.getrandbits(80):020x}"
    question = _question(session)
    session.add("user", {"role": "user", "content": question})
    session.said += len(question)
    if left < 2:
        return
    pairs = min(rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 6)), max(0, (left - 2) // 2))
    if left >= 3 + 2 * pairs:
        thinking = _prose(session, rng.randint(20, 110))
        session.answer({"type": "thinking", "thinking": thinking, "signature": _letters(rng, 120)}, message_id, None)
        session.said += len(thinking)
    answer = _answer(session)
    for number in range(pairs):
        # Whatever is still missing of the tools' share, over the calls of this exchange, give or take.
        due = (session.said + len(answer)) * TOOL_SHARE / (1 - TOOL_SHARE) - session.tooled
        size = max(60.0, due / (pairs - number)) * rng.lognormvariate(-0.3, 0.75)
        _tool(session, message_id, int(min(size, 30_000)))
    session.answer({"type": "text", "text": answer}, message_id, "end_turn")
    session.said += len(answer)


def _tool(session: _Session, message_id: str, size: int) -> None:
    """A call and its result of about `size` characters, which the log shows twice, as the program writes it."""
    rng = session.rng
    name, arguments, output = _some_tool(session, size)
    call = f"toolu_{rng.getrandbits(88):022x}"
    session.answer({"type": "tool_use", "id": call, "name": name, "input": arguments}, message_id, "tool_use")
    block = {"tool_use_id": call, "type": "tool_result", "content": output}
    session.add("user", {"role": "user", "content": [block]}, toolUseResult={"type": "text", "content": output})
    session.tooled += len(output) + sum(len(str(value)) for value in arguments.values())


# --- tools ------------------------------------------------------------------------------------------------------------


def _some_tool(session: _Session, size: int) -> Tool:
    return session.rng.choice((_read, _bash, _grep, _edit))(session, size)


def _read(session: _Session, size: int) -> Tool:
    rng = session.rng
    code = _code(rng, size)
    numbered = "\n".join(f"{number:5}→{line}" for number, line in enumerate(code.split("\n"), rng.randint(1, 300)))
    return "Read", {"file_path": _path(session)}, numbered


def _edit(session: _Session, size: int) -> Tool:
    rng = session.rng
    path, new = _path(session), _code(rng, size // 2)
    old = "\n".join(line for line in new.split("\n") if rng.random() < 0.7)
    return (
        "Edit",
        {"file_path": path, "old_string": old, "new_string": new},
        f"The file {path} has been updated.",
    )


def _grep(session: _Session, size: int) -> Tool:
    rng = session.rng
    pattern, lines, length = _name(rng), list[str](), 0
    while length < size:
        line = f"{_path(session)}:{rng.randint(1, 900)}:    {_statement(rng, pattern)}"
        lines.append(line)
        length += len(line) + 1
    return "Grep", {"pattern": pattern, "path": session.cwd, "output_mode": "content"}, "\n".join(lines)


def _bash(session: _Session, size: int) -> Tool:
    rng = session.rng
    command, line_of = rng.choice(_COMMANDS)
    lines, length = list[str](), 0
    while length < size:
        line = line_of(session)
        lines.append(line)
        length += len(line) + 1
    arguments = {"command": command.format(f=_path(session), n=_name(rng)), "description": _sentence(rng)[:60]}
    return "Bash", arguments, "\n".join(lines)


def _test_line(session: _Session) -> str:
    rng = session.rng
    if rng.random() < 0.1:
        return f"E       AssertionError: assert {rng.randint(0, 99)} == {rng.randint(0, 99)}"
    outcome = rng.choices(("PASSED", "FAILED", "SKIPPED"), (20, 1, 1))[0]
    return f"tests/test_{_name(rng)}.py::test_{_name(rng)}_{rng.choice(_NOUNS)} {outcome} [{rng.randint(1, 100):3}%]"


def _log_line(session: _Session) -> str:
    rng = session.rng
    at = session.at - timedelta(seconds=rng.randint(0, 90_000))
    address = f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"
    level = rng.choices(("INFO", "DEBUG", "WARN", "ERROR"), (12, 5, 2, 1))[0]
    detail = f"client={address} request={_uuid(rng)} took={rng.randint(1, 4000)}ms"
    return f"{at:%Y-%m-%dT%H:%M:%S}.{rng.randrange(1000):03}Z {level} {_name(rng)}: {_clause(rng)} {detail}"


def _list_line(session: _Session) -> str:
    rng = session.rng
    at = session.at - timedelta(days=rng.randint(0, 300))
    return (
        f"-rw-r--r--  1 sample sample {rng.randint(20, 400_000):8} {at:%b %d %H:%M} {_name(rng)}{rng.choice(_ENDINGS)}"
    )


def _diff_line(session: _Session) -> str:
    rng = session.rng
    if rng.random() < 0.05:
        return f"@@ -{rng.randint(1, 400)},{rng.randint(3, 20)} +{rng.randint(1, 400)},{rng.randint(3, 20)} @@ def {_name(rng)}("
    return rng.choices(" +-", (6, 2, 1))[0] + "    " * rng.randint(0, 3) + _statement(rng, _name(rng))


def _history_line(session: _Session) -> str:
    rng = session.rng
    author = f"{rng.choice(_SYLLABLES)}{rng.choice(_SYLLABLES)}"
    return f"{rng.getrandbits(40):010x} {author}@mail.{_name(rng)[:6]}.org {session.at:%Y-%m-%d} {_sentence(rng)}"


def _environment_line(session: _Session) -> str:
    rng = session.rng
    if rng.random() < 0.03:
        return f"{rng.choice(_NOUNS).upper()}_API_KEY={_letters(rng, 40)}"
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
            f'    """{_sentence(rng)}"""',
            *(f"    {_statement(rng, rng.choice((one, two, three)))}" for _ in range(rng.randint(2, 9))),
            f"    if {three} and {two} is not None:",
            f'        raise ValueError(f"{rng.choice(_NOUNS)} {{{two}!r}} is {rng.choice(_ADJECTIVES)}")',
            f"    # {_sentence(rng)}",
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


def _answer(session: _Session) -> str:
    """60 to 300 words (Chinese: as many characters and a half more), with a list or a piece of code now and then."""
    rng = session.rng
    text = _prose(session, rng.randint(60, 300))
    if rng.random() < 0.35:
        items = [_zh_sentence(rng) if session.chinese else _sentence(rng) for _ in range(rng.randint(2, 5))]
        text += "\n\n" + "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
    if rng.random() < 0.25:
        text += "\n\n```python\n" + "\n".join(_statement(rng, _name(rng)) for _ in range(rng.randint(2, 7))) + "\n```"
    return text


def _prose(session: _Session, words: int) -> str:
    rng = session.rng
    paragraphs, length = list[str](), 0
    while length < words:
        sentences: list[str] = []
        for _ in range(rng.randint(2, 6)):
            if length >= words:
                break
            sentences.append(_zh_sentence(rng) if session.chinese else _sentence(rng))
            length += len(sentences[-1]) * 2 // 3 if session.chinese else len(sentences[-1].split())
        paragraphs.append(("" if session.chinese else " ").join(sentences))
    return "\n\n".join(paragraphs)


def _question(session: _Session) -> str:
    rng = session.rng
    nouns, verbs = (_ZH_NOUNS, _ZH_VERBS) if session.chinese else (_NOUNS, _VERBS)
    adjectives = _ZH_ADJECTIVES if session.chinese else _ADJECTIVES
    verb = rng.choice(verbs)
    text = rng.choice(_ZH_QUESTIONS if session.chinese else _QUESTIONS)
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
        text += (" " if not session.chinese else "") + _prose(session, rng.randint(10, 60))
    return text


def _sentence(rng: random.Random) -> str:
    start = rng.choice(("", "", "In `" + _name(rng) + "` ", "So ", "Note that ", "At first ", "By default "))
    text = f"{start}the {rng.choice(_ADJECTIVES)} {_clause(rng)}"
    if rng.random() < 0.5:
        text += f" {rng.choice(_REASONS)}"
    if rng.random() < 0.25:
        text += f", so that the {rng.choice(_NOUNS)} {_word(rng)} {rng.choice(_VERBS)} {rng.choice(_ADVERBS)}"
    return text[0].upper() + text[1:] + "."


def _clause(rng: random.Random) -> str:
    return f"{rng.choice(_NOUNS)} {rng.choice(_VERBS)} the {rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)} {rng.choice(_ADVERBS)}"


def _zh_sentence(rng: random.Random) -> str:
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


def _path(session: _Session) -> str:
    rng = session.rng
    return f"{session.cwd}/{rng.choice(_FOLDERS)}/{_name(rng)}{rng.choice(_ENDINGS)}"


def _letters(rng: random.Random, length: int) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=length))


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--messages", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    files = write_sessions(arguments.folder, arguments.sessions, arguments.messages, arguments.seed)
    print(f"{len(files)} sessions, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
