"""What a file's path says before it is opened: system litter, account data, assets, known side files."""

from __future__ import annotations

import re

_LITTER = {"thumbs.db", "desktop.ini", "__macosx", "lost+found", "$recycle.bin", "system volume information"}
_AGENT_FOLDERS = {
    ".claude", ".codex", ".gemini", ".grok", ".continue", ".hermes", ".openclaw", ".lmstudio", ".cursor", ".copilot",
    ".config", ".local", ".vscode", ".cache", ".vscode-server", ".pi", ".clawdbot", ".moltbot",
}  # fmt: skip
"""Hidden folders in which agents keep their sessions, so that a backup of a home folder is read."""

_SENSITIVE = re.compile(
    r"""
    user\.json | users\.json | org_users\.json | user_settings\.json | accounts?\.json
  | auth\.json | .*[-_.](?:auth|billing|payments?|invoices?|tokens?|secrets?)(?:[-_.].*)?\.json
  | (?:billing|payments?|invoices?|tokens?|secrets?|oauth|cookies?|session_?tokens?)\.(?:json|txt|csv|sqlite)
  | oauth_creds.*\.json | google_accounts?\.json | auth[-_]profiles?\.json | openclaw\.json(?:\..*)? | request_dump_.*\.json
  | .*\.(?:pem|key|p12|pfx|keystore|jks|kdbx|ppk) | id_(?:rsa|dsa|ecdsa|ed25519)(?:\.pub)?
  | \.env(?:\..*)? | .*\.env | \.netrc | \.npmrc | \.pypirc | \.?credentials.* | \.?git-credentials
    """,
    re.VERBOSE,
)

_SENSITIVE_PATHS = re.compile(
    r"(?:^|/)\.(?:copilot|continue|openclaw|clawdbot|moltbot|pi|hermes|gemini)/(?:[^/]+/){0,2}"
    r"(?:config|settings|mcp-config|models)\.(?:json|ya?ml|ts)(?:\..*)?$",
    re.IGNORECASE,
)
"""Settings of agents, which hold keys of models and sign-ins."""

_ASSET = set(
    """
    png jpg jpeg jpe gif webp avif heic heif bmp tif tiff ico svg psd
    mp3 wav m4a aac ogg oga opus flac amr weba aiff mp4 m4v mov webm mkv avi 3gp
    pdf doc docx ppt pptx xls odt ods odp rtf epub pages numbers key vcf tgs ttf otf woff woff2 glb stl
    """.split()  # noqa: SIM905 - fifty quoted endings would read worse
)
_ASSET_FOLDERS = ("prod-mc-asset-server/", "dalle-generations/")
_ASSET_FOLDER = re.compile(r"(?:^|/)chat-[^/]+-files/")
"""Le Chat: what was sent in a chat, which may be notes and JSON and is no chat of its own."""
_ASSET_MAGIC = (
    b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"OggS", b"ID3", b"fLaC", b"\x1aE\xdf\xa3",
    b"BM", b"II*\0", b"MM\0*",
)  # fmt: skip

_SIDE_FILES = set(
    """
    message_feedback.json shared_conversations.json export_manifest.json shopping.json sora.json
    model_comparisons.json chat.html report.html
    projects.json memories.json manifest.json
    channels.json groups.json dms.json mpims.json integration_logs.json canvases.json content_flags.json lists.json
    file_conversations.json huddle_transcripts.json
    sessions-index.json session_index.jsonl history.jsonl stats-cache.json sessions.json workspace.json
    session_search.sqlite summary.json updates.jsonl events.jsonl rewind_points.jsonl prompt_history.jsonl
    prompt_context.json signals.json workspace.json
    """.split()  # noqa: SIM905
)
_SIDE_PATHS = re.compile(
    r"(?:^|/)projects/[^/]+\.json$|(?:^|/)manifest-[^/]*\.json$|(?:^|/)todos/[^/]+\.json$|\.trajectory\.jsonl$|\.jsonl\.lock$"
)
_GOOGLE_SIDE = re.compile(
    r"""
    # Takeout's Gemini folder holds Gems, saved info and scheduled actions, and My Activity has files of all products.
    (?:^|/)(?:gemini[_ -](?:gems|scheduled[_ -]actions|saved[_ -]info|memory|personal[_ -]context|settings)[^/]*
      | my[ ]?activity | archive_browser)\.(?:html|json)$
  | (?:^|/)gemini[^/]*/(?:[^/]*[_ -])?(?:gems|saved[_ -]info|scheduled[_ -]actions)(?:[_ -][^/]*)?\.(?:html|json)$
    # Gemini CLI: short names of the projects, and which one a folder is.
  | (?:^|/)\.?gemini/(?:projects|state|installation_id|trustedfolders)(?:\.json)?$ | (?:^|/)\.project_root$
    """,
    re.VERBOSE | re.IGNORECASE,
)

_DATABASE = (".db", ".vscdb", ".sqlite", ".sqlite3", ".vscdb.backup")
_BESIDE_DATABASE = ("-wal", "-shm", "-journal")
_DAY_FILE = re.compile(r"\d{4}-\d\d-\d\d\.json")
_SESSION_FILE = re.compile(r"(?:^|/)sessions/[0-9a-fA-F-]{36}\.json$")
_SLACK_LISTS = ("users.json", "org_users.json", "channels.json", "groups.json", "dms.json", "mpims.json")
_SIDECARS = re.compile(
    r"""
    # Grok Build: what lies beside the chat of a session, whose folder is named by a percent-encoded or hashed path
    (?:^|/)sessions/(?:[^/]*%[0-9A-F]{2}[^/]*|[^/]*-[0-9a-f]{16})
      (?:/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/(?!chat_history\.jsonl(?:\.(?:zst|gz))?$|subagents/[^/]+/chat_history).+
        | /prompt_history\.jsonl | /permission[^/]*\.toml)$
    # Cursor: terminals, rules and tools of a project
  | (?:^|/)\.cursor/projects/[^/]+/(?!agent-transcripts/).+$
    # Copilot CLI: plans, checkpoints and files of a session
  | (?:^|/)session-state/[^/]+/(?!events\.jsonl(?:\.(?:zst|gz))?$).+$
    # Gemini CLI: outputs of tools, activity logs, what was typed in its shell, states of files
  | (?:^|/)\.gemini/tmp/[^/]+/(?:tool-outputs?|logs|shadow|bin)/.+$ | (?:^|/)\.gemini/(?:tmp/[^/]+/shell_history$|history/.+$)
    # VS Code: texts of files that a chat edited
  | (?:^|/)chatEditingSessions/.+$
    """,
    re.VERBOSE,
)

_ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.zst", ".tar.xz", ".7z", ".rar", ".bz2", ".xz")


def _name(path: str) -> str:
    return path.rpartition("/")[2].casefold()


def is_litter(name: str) -> bool:
    """Files and folders of the operating system, and hidden ones (but not those in which agents keep sessions)."""
    name = name.casefold()
    return name in _LITTER or (name.startswith(".") and name not in _AGENT_FOLDERS and not _SENSITIVE.fullmatch(name))


def is_sensitive(path: str) -> bool:
    """Account, billing, sign-in and key files: never read as chats and never kept.

    Slack's `users.json` is one of them too; its reader reaches the names through `Member.near`.
    """
    return _SENSITIVE.fullmatch(_name(path)) is not None or _SENSITIVE_PATHS.search(path) is not None


def is_asset(path: str, start: bytes = b"") -> bool:
    """Images, sound, films and documents that lie beside the chats; by ending, known folder or first bytes."""
    stem, _, ending = path.rpartition("/")[2].rpartition(".")
    suffix = ending.lower() if stem else ""
    if suffix in _ASSET or any(folder in path for folder in _ASSET_FOLDERS) or _ASSET_FOLDER.search(path):
        return True
    return start.startswith(_ASSET_MAGIC) or start[:4] == b"RIFF" or start[4:8] == b"ftyp"


def is_side_file(path: str) -> bool:
    """Known files of exports that hold no chats; asked only after no reader has claimed the content."""
    return _name(path) in _SIDE_FILES or any(known.search(path) for known in (_SIDE_PATHS, _GOOGLE_SIDE))


def is_sidecar(path: str) -> bool:
    """What agents keep beside their chats, known by its place: looked at by no reader, since some would pass for notes."""
    return _SIDECARS.search(path) is not None


def is_beside_database(path: str) -> bool:
    """The log of a database's changes (`-wal`, `-journal`) or its shared memory: read with the database, never kept."""
    return path.endswith(_BESIDE_DATABASE) and path.rpartition("-")[0].lower().endswith(_DATABASE)


def is_database_part(path: str) -> bool:
    """A file that calls itself an SQLite database, or lies beside one, whatever is in it."""
    return is_beside_database(path) or _name(path).endswith(_DATABASE)


def companions(path: str) -> tuple[str, ...]:
    """Files, by path relative to a file's own folder, whose change changes how that file reads; most files have none.

    They may not be there. Asked for every file of a scan, so it looks at the name and little more.
    """
    name = path.rpartition("/")[2]
    if name.endswith(_DATABASE):
        return (f"{name}-wal", f"{name}-journal")
    if name == "chat_history.jsonl":
        return ("summary.json", "updates.jsonl")
    if name.endswith(".json"):
        if len(name) == 15 and _DAY_FILE.fullmatch(name):
            return tuple(f"../{beside}" for beside in _SLACK_LISTS)
        if len(name) == 41 and _SESSION_FILE.search(path):
            return ("sessions.json",)
    return ()


def is_unread_archive(path: str) -> bool:
    """Kinds of archive that nobody opens here."""
    return _name(path).endswith(_ARCHIVES)
