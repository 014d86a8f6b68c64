"""All readers, in the order in which they are asked. A new format is one import and one line here."""

from __future__ import annotations

from palace_pipeline.exports import (
    chatgpt,
    claude,
    claude_code,
    codex,
    continue_dev,
    copilot_cli,
    cursor,
    cursor_transcript,
    deepseek,
    discord,
    gemini_cli,
    gemini_conversation,
    gemini_takeout,
    gemini_takeout_html,
    google_ai_studio,
    grok,
    grok_build,
    hermes,
    hermes_db,
    librechat,
    lm_studio,
    markdown_chat,
    messages,
    mistral,
    notes,
    open_webui,
    openclaw,
    perplexity,
    perplexity_xlsx,
    quotes,
    session_pages,
    slack,
    telegram,
    vscode_copilot,
    whatsapp,
)
from palace_pipeline.exports.base import Head, Reader

READERS: list[Reader] = [
    # Shapes that are surely of one product come first, lists of turns that many write later, and text last: every text
    # is a note if it is nothing else.
    claude_code.READER,
    codex.READER,
    deepseek.READER,
    chatgpt.READER,
    claude.READER,
    grok.READER,
    mistral.READER,
    perplexity.READER,
    perplexity_xlsx.READER,
    slack.READER,
    whatsapp.READER,
    open_webui.READER,
    lm_studio.READER,
    librechat.READER,
    telegram.READER,
    discord.READER,
    *hermes.READERS,
    hermes_db.READER,
    cursor.READER,
    cursor_transcript.READER,
    grok_build.READER,
    openclaw.READER,
    copilot_cli.READER,
    continue_dev.READER,
    *vscode_copilot.READERS,
    gemini_cli.READER,
    gemini_takeout.READER,
    gemini_takeout_html.READER,
    gemini_conversation.READER,
    google_ai_studio.READER,
    *messages.READERS,
    session_pages.READER,
    quotes.READER,
    markdown_chat.READER,
    notes.READER,
]


def reader_for(head: Head) -> Reader | None:
    """The first reader that knows the shape, or None."""
    return next((reader for reader in READERS if reader.detect(head)), None)


def reader_named(format_name: str) -> Reader | None:
    """The reader of a format by its name, as the ledger keeps it."""
    return next((reader for reader in READERS if reader.format == format_name), None)
