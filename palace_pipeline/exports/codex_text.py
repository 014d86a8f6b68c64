"""Codex: what the program writes in the name of the user, and what of a user text is the user's own.

The list of wrappers follows codex-rs (`rollback` of thread-store, 2026) and what desktop and IDE versions add. They
are matched at the beginning of a text only: a person may well write about them further down.
"""

from __future__ import annotations

import re

_TAGS = (
    "environment_context|environments_instructions|user_instructions|recommended_plugins|app-context|apps_instructions"
    "|codex_internal_context|subagent_notification|turn_aborted|in-app-browser-context|goal_context|skill"
    "|hook_prompt|permissions instructions|collaboration_mode|multi_agent_mode|plugins_instructions"
    "|skills_instructions|personality_spec|model_switch|user_shell_command|INSTRUCTIONS|token_budget|context_window"
    "|context_window_guidance|rollout_budget|git_attribution|realtime_conversation|managed_developer_instructions"
    r"|external_[\w-]+|user_action"
)
_WRAPPER = re.compile(rf"\s*<({_TAGS})(?:\s[^>]*)?>(?:.*?</\1>|.*)", re.DOTALL)
_AGENTS_FILE = re.compile(r"\s*# AGENTS\.md instructions\b[^\n]*(?:\s*<INSTRUCTIONS>.*?</INSTRUCTIONS>|.*)", re.DOTALL)
_WARNINGS = (
    "Warning: The maximum number of unified exec processes you can keep open is",
    "Warning: apply_patch was requested via ",
    "Warning: Your account was flagged for potentially high-risk cyber activity",
)
_SETUP = ("# Context from my IDE setup:", "# Files mentioned by the user:", "This block is automatically supplied ")
_REQUEST = re.compile(r"^## My request(?: for Codex)?:[ \t]*\n?", re.MULTILINE)
_MENTIONED = re.compile(r"^## (.+?):(?:[ \t]*\n)?[ \t]*[/~A-Za-z].*$", re.MULTILINE)
_IMAGE_MARK = re.compile(r"\s*(?:<image(?:\s[^>]*)?>|</image>)\s*")


def split_user_text(text: str) -> tuple[str, str, list[str]]:
    """(what the user wrote, injected text before it, names of files that the user mentioned)."""
    at = 0
    while match := (_WRAPPER.match(text, at) or _AGENTS_FILE.match(text, at)):
        at = match.end()
    injected, own = text[:at], text[at:].lstrip() if at else text
    if own.startswith(_WARNINGS):
        return "", text, []
    files: list[str] = []
    if own.startswith(_SETUP) and (request := _REQUEST.search(own)):
        setup = own[: request.start()]
        if setup.startswith("# Files"):
            files = [match[1] for match in _MENTIONED.finditer(setup)]
        injected, own = injected + setup, own[request.end() :]
    elif request := _REQUEST.match(own):
        own = own[request.end() :]
    return own, injected, files


def is_image_mark(text: str) -> bool:
    """A text that only says where an inline image begins or ends."""
    return _IMAGE_MARK.fullmatch(text) is not None
