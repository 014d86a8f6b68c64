"""What lies beside Google's chats: account data is never read, housekeeping is expected."""

import pytest

from palace_pipeline.exports import names


@pytest.mark.parametrize(
    "path",
    [
        *(".gemini/oauth_creds.json", ".gemini/google_accounts.json", ".gemini/settings.json"),
        *(".gemini/mcp-oauth-tokens.json", ".gemini/oauth_creds.backup.json"),
    ],
)
def test_accounts(path):
    assert names.is_sensitive(path)


@pytest.mark.parametrize(
    "path",
    [
        *(".gemini/projects.json", ".gemini/tmp/tides/.project_root", ".gemini/tmp/tides/shell_history"),
        *(".gemini/tmp/tides/tool-outputs/session-1/shell_7.txt", ".gemini/history/tides/notes.md"),
        *("Takeout/Gemini/gemini_gems_data.html", "Takeout/Gemini/gemini_scheduled_actions_data.html"),
        *(
            "Takeout/archive_browser.html",
            "Takeout/My Activity/Search/MyActivity.html",
            "My Activity/YouTube/My Activity.json",
        ),
    ],
)
def test_housekeeping(path):
    assert names.is_side_file(path) or names.is_sidecar(path)


@pytest.mark.parametrize(
    "path",
    [
        *(".gemini/tmp/tides/chats/session-2026-03-14T09-26-aaaa1111.json", ".gemini/tmp/tides/chats/s/agent.jsonl"),
        *("notes/gemini.md", "Takeout/Drive/Google AI Studio/Gems of the sea", "Gemini/conversation_1.txt"),
        *("Takeout/Gemini/Conversation History/conversation_1.txt", "gemini/memory of a summer.md"),
    ],
)
def test_chats_and_notes_are_neither(path):
    assert [names.is_sensitive(path), names.is_side_file(path), names.is_sidecar(path)] == [False] * 3
