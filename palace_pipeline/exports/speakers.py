"""Who speaks in a transcript written as text: role names of several languages, and what a name looks like."""

from __future__ import annotations

import re
import unicodedata

from palace_pipeline.model import Role

_USERS = """
you|user|human|me|you said|i said
用户|用戶|使用者|我|你|人类|人類|提问者
ich|du|benutzer|nutzer|moi|vous|utilisateur|utilisatrice|tú|yo|usuario|usuaria|usuário|você|utente|tu
пользователь|вы|я|ユーザー|あなた|私|사용자|나
"""
_ASSISTANTS = """
assistant|chatgpt|claude|ai|ai assistant|gpt|gemini|bard|copilot|github copilot|grok|deepseek|perplexity|le chat|mistral
kimi|qwen|cursor|claude code|codex|chatgpt said|claude said|gemini said|assistant said
助手|ai助手|ai 助手|助理|人工智能|人工智慧|豆包|通义千问|文心一言
assistent|ki|ki-assistent|assistente|asistente|ia
ассистент|помощник|ии|アシスタント|어시스턴트
"""
_SYSTEMS = "system|system prompt|系统|系統|система|システム|시스템"
_NAMES: dict[str, Role] = {
    **dict.fromkeys(re.split(r"[|\n]", _USERS.strip()), "user"),
    **dict.fromkeys(re.split(r"[|\n]", _ASSISTANTS.strip()), "assistant"),
    **dict.fromkeys(_SYSTEMS.split("|"), "system"),
}
_MODEL = re.compile(
    r"(?:chat)?gpt[- ]?\d[\w.-]*(?: \w+)?"
    r"|(?:chatgpt|claude|gemini|grok|deepseek|qwen|mistral|llama)[ -](?:\w+[ -])?[\w.]*\d[\w.-]*(?: \w+)?"
)
"""An assistant called by its model: `GPT-4o`, `Claude 3.5 Sonnet`."""
_LOG_LEVEL = re.compile(r"\b(?:error|warn(?:ing)?|info|debug|trace|fatal|notice|critical|verbose)\b", re.IGNORECASE)
_PHONE = re.compile(r"\+\d[\d ()-]{5,20}")
_DECORATION = ("So", "Sk", "Sm", "Cf", "Mn", "Cn", "Co", "Zs")
"""Unicode categories of emoji, their joiners and selectors, and of the space after them."""


def clean_name(label: str) -> str:
    """A speaker without leading emoji; the label itself if nothing else is left of it."""
    name = label.strip()
    start = 0
    while start < len(name) and unicodedata.category(name[start]) in _DECORATION:
        start += 1
    return name[start:] or name


def role_of(name: str) -> Role | None:
    """The role that a (clean) name stands for: `ChatGPT` -> assistant, `我` -> user; None for a person."""
    key = name.casefold().rstrip(":： ")
    if (role := _NAMES.get(key)) is not None:
        return role
    return "assistant" if _MODEL.fullmatch(key) else None


def is_name(name: str) -> bool:
    """Whether a label can be a speaker: letters, an emoji or a phone number, and no level of a log (`ERROR`)."""
    if not any(character.isalpha() or unicodedata.category(character) == "So" for character in name):
        return _PHONE.fullmatch(name) is not None
    return not _LOG_LEVEL.search(name)
