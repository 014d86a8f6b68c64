"""What a conversation and its messages are called for people: on its page, and in what is made of it for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palace_pipeline.model import DOCUMENT_PROVIDERS, VISIBLE_ROLES, Conversation, Message
from palace_pipeline.transcripts.page_tail import no_html, squeezed

PRODUCTS = {
    "chatgpt": "ChatGPT",
    "claude": "Claude",
    "claude-code": "Claude",
    "codex": "Codex",
    "gemini": "Gemini",
    "gemini-cli": "Gemini",
    "ai-studio": "Gemini",
    "grok": "Grok",
    "grok-cli": "Grok",
    "deepseek": "DeepSeek",
    "mistral": "Mistral",
    "perplexity": "Perplexity",
    "vscode-copilot": "Copilot",
    "copilot-cli": "Copilot",
}
SOURCES = {
    **PRODUCTS,
    "claude-code": "Claude Code",
    "gemini-cli": "Gemini CLI",
    "ai-studio": "Google AI Studio",
    "grok-cli": "Grok CLI",
    "vscode-copilot": "VS Code Copilot",
    "copilot-cli": "Copilot CLI",
    "cursor": "Cursor",
    "openclaw": "OpenClaw",
    "hermes": "Hermes",
    "open-webui": "Open WebUI",
    "librechat": "LibreChat",
    "lm-studio": "LM Studio",
    "continue": "Continue",
    "slack": "Slack",
    "discord": "Discord",
    "telegram": "Telegram",
    "whatsapp": "WhatsApp",
    "sharegpt": "ShareGPT",
    "transcript": "Transcript",
    "markdown": "Markdown",
    "text": "Text",
    "session": "Session",
}
"""Where a conversation was held, in what is made for others; `PRODUCTS` is who answered."""
CHAT_LINKS = {"chatgpt": "https://chatgpt.com/c/", "claude": "https://claude.ai/chat/"}
"""Where a conversation is seen in its product: an address that its id follows."""
_FOLDED = {"tool_call": "Tool call", "tool_result": "Tool result", "thinking": "Thinking", "system": "System"}

_SECTIONS = {"judgement": "Judgement", "conclusion": "Conclusion", "todo": "To do"}
"""Sections of a live session whose entries are all the assistant's; the id of a row begins with its section."""


def shown_rows(conversation: Conversation) -> list[Message]:
    """The rows that stand on a page: those of the active branch that the source does not hide."""
    return [m for m in conversation.messages if m.branch_active and m.hidden_reason is None]


def name_of(conversation: Conversation, rows: Sequence[Message]) -> str:
    """Its title, else the beginning of what was asked first."""
    first = next((m.text for m in rows if m.role == "user" and m.text.strip()), "")
    return called(conversation.title, first)


def called(title: str | None, asked_first: str) -> str:
    """What people read as the title of a conversation, wherever it is named: that of its source (200 characters), else the
    beginning of what was asked first (80), else `Untitled`. The names of pages do without: they stay when a title comes."""
    return squeezed(title or "", 200) or squeezed(asked_first, 80) or "Untitled"


def heading_of(conversation: Conversation, rows: Sequence[Message]) -> str:
    """`name_of` in Markdown."""
    return no_html(name_of(conversation, rows))


def summary_of(
    conversation: Conversation, rows: Sequence[Message], zone: str = "UTC", names: Mapping[str, str] = PRODUCTS
) -> str:
    """Product (by its name in `names`), number of visible messages, and what the times are in (`zone`)."""
    visible = [m for m in rows if m.role in VISIBLE_ROLES]
    parts = [names.get(conversation.provider, conversation.provider)]
    parts.append("1 message" if len(visible) == 1 else f"{len(visible)} messages")
    if any(m.created_at for m in rows):
        parts.append(f"times in {zone}")
    elif any(m.local_time for m in rows):
        parts.append("times as written, without a zone")
    return " · ".join(parts)


def title_of(message: Message, provider: str) -> str:
    """The heading of a message in Markdown: its time (UTC, or the naive one) and who said it, or which part was folded."""
    if message.created_at:
        time = message.created_at.isoformat(" ")[:16]
    else:
        time = (message.local_time or "")[:16].replace("T", " ")
    name = no_html(said_by(message, provider))
    parts = [time, name] if message.role in VISIBLE_ROLES else [name, time]
    if message.edited_at:
        parts.append("edited")
    return " · ".join(part for part in parts if part)


def said_by(message: Message, provider: str) -> str:
    """Who said it, or for what people do not see: what it is, and the tool's name."""
    if message.role in VISIBLE_ROLES:
        name = squeezed(message.speaker or "", 80) or _label(message.role, provider)
        section = _SECTIONS.get(message.message_id.partition(":")[0]) if provider == "session" else None
        return f"{name} · {section}" if section else name
    label = _FOLDED.get(message.kind) or message.role.capitalize()
    name = squeezed(message.tool_name or message.speaker or "", 80)
    return f"{label}: {name}" if name else label


def _label(role: str, provider: str) -> str:
    if role == "user":
        return "Document" if provider in DOCUMENT_PROVIDERS else "You"
    return "Bot" if role == "bot" else PRODUCTS.get(provider, "Assistant")
