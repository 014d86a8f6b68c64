"""Each reader of people's chats and of chat programs knows its own fixture, and no other format's file as its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from palace_pipeline.exports import discord, librechat, lm_studio, open_webui, registry, telegram, whatsapp
from palace_pipeline.exports.base import Reader
from palace_pipeline.exports.detect import head_of
from tests.exports.memory_member import MemoryMember

FIXTURES = Path(__file__).parent.parent / "fixtures" / "exports"
OWN: dict[str, Reader] = {
    "32-open-webui-export": open_webui.READER,
    "33-librechat-export": librechat.READER,
    "34-lm-studio": lm_studio.READER,
    "36-discord-chat-exporter": discord.READER,
    "37-telegram": telegram.READER,
    "38-whatsapp-ios": whatsapp.READER,
    "39-whatsapp-android": whatsapp.READER,
}
READERS = list(dict.fromkeys(OWN.values()))


@pytest.mark.parametrize("case", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
def test_only_its_own_files(case: str) -> None:
    for path in sorted((FIXTURES / case).rglob("*")):
        if not path.is_file() or path.name == "expected.json":
            continue
        head = head_of(MemoryMember({path.name: path.read_bytes()}, path.name))
        assert [reader for reader in READERS if reader.detect(head)] == ([OWN[case]] if case in OWN else [])
        if case in OWN:
            assert registry.reader_for(head) is OWN[case]
