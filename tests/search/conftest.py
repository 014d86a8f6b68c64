"""The small archive that tests of search share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from palace_pipeline.model import (
    Conversation,
)
from palace_pipeline.store.ledger import Ledger
from tests.search.small_archive import Archive, at, say


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALACE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def archive(template: Path, tmp_path: Path) -> Archive:
    """A copy that a test may change."""
    return Archive(shutil.copytree(template, tmp_path / "home"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Archive(tmp_path_factory.mktemp("template"))
    Ledger(made.home / "ledger.sqlite").close()
    made.add(
        Conversation(
            "chatgpt",
            "lamps",
            [
                say("user", "Which lantern did we buy for the terrace?", created_at=at("2024-03-01T22:30:00")),
                say(
                    "assistant",
                    "The copper lantern from Fennel & Daughters, 48 euro.",
                    created_at=at("2024-03-01T22:31:00"),
                ),
                say("user", "And the kettle?", created_at=at("2024-07-09T08:00:00")),
                say("assistant", "The kettle was a present.", created_at=at("2024-07-09T08:01:00")),
            ],
            title="Terrace",
        ),
        wing="house",
    )
    made.add(
        Conversation(
            "claude",
            "竞业",
            [
                say("user", "竞业协议里写了几个月？", created_at=at("2023-05-05T10:00:00")),
                say("assistant", "協議寫明六個月，補償按月支付。", created_at=at("2023-05-05T10:01:00")),
            ],
            title="离职",
        ),
        room="decisions",
    )
    made.add(
        Conversation(
            "claude-code",
            "agent",
            [
                say("user", "<injected context about saffron>", hidden_reason="injected"),
                say("user", "raise rpt_slot to 12", created_at=at("2024-05-05T10:00:00")),
                say("thinking", "the saffron limit is in config"),
                say("tool", "rpt_slot=8 in /etc/saffron.conf"),
                say("assistant", "an older answer", branch_active=False),
                say("assistant", "rpt_slot is 12 now.", created_at=at("2024-05-05T10:02:00")),
            ],
            title="Slots",
        )
    )
    return made.home
