"""A small archive to export from, and conversations made in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from palace_pipeline.cli.app import main
from palace_pipeline.model import Conversation, Message
from tests.cli.conftest import palace  # noqa: F401 - a fixture
from tests.ingest.exports_for_tests import START, chat, export

DAY = 86_400


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of four conversations on three days from 2024-05-03 on; nobody changes it."""
    folder = tmp_path_factory.mktemp("published")
    chats = [
        chat("lighthouse", "Why did the lighthouse go dark?", "The generator ran out of **diesel** at three."),
        chat(
            "again",
            "Is the lighthouse lit again?",
            "Yes, see https://chatgpt.com/c/lighthouse for why.",
            start=START + 40,
        ),
        chat("database", "数据库怎么选？", "先看读写比例，再看团队熟悉什么。", start=START + DAY),
        chat("garden", "zebrafish-1234 in my garden pond?", "A heater keeps the pond warm.", start=START + 40 * DAY),
    ]
    file = export(folder / "in/conversations.json", *chats)
    home = folder / "home"
    home.mkdir()
    (home / "palace.toml").write_text('display_zone = "Asia/Shanghai"\n', encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["--home", str(home), "ingest", str(file)])
    assert ended.value.code == 0
    return home


def talk(*texts: str, provider: str = "chatgpt", title: str | None = "A talk", name: str = "one") -> Conversation:
    """A conversation in which user and assistant take turns, a minute apart, from 2024-05-03 23:30 UTC on."""
    start = datetime(2024, 5, 3, 23, 30, tzinfo=UTC)
    rows = [
        Message(str(at), "assistant" if at % 2 else "user", text, created_at=start + timedelta(minutes=at))
        for at, text in enumerate(texts)
    ]
    return Conversation(provider, name, rows, title=title)
