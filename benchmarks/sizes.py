"""How large the stores of an archive are: bytes in all, for a conversation and for a message.

python benchmarks/sizes.py HOME
python benchmarks/sizes.py --make 300 FOLDER     makes one of so many generated sessions of 40 messages first
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from sessions import write_sessions

STORES = {
    "vault": "raw bytes and records",
    "ledger.sqlite": "what was found and built",
    "lake/raw": "transcripts",
    "lake/clean": "redacted rows, chunks, drawers",
    "lake/clean/vectors": "of which vectors",
    "conversations": "pages",
    "chroma": "Chroma",
    "lexical": "lexical index",
    "palace.duckdb": "tables",
    "dagster": "run history",
}


def bytes_below(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("home", type=Path)
    arguments.add_argument("--make", type=int, metavar="N")
    given = arguments.parse_args()
    home: Path = given.home
    if given.make:
        write_sessions(home / "sessions", given.make, 40)
        home = home / "home"
        command = [
            sys.executable,
            "-m",
            "palace_pipeline.cli",
            "--home",
            str(home),
            "ingest",
            str(given.home / "sessions"),
        ]
        # 1: something was not taken, or is withheld; what was taken can be measured all the same.
        if subprocess.run(command, check=False, env={**os.environ, "NO_COLOR": "1"}).returncode not in (0, 1):
            sys.exit("the ingest failed")
        print(f"exports: {bytes_below(given.home / 'sessions'):,} bytes")
    with sqlite3.connect(f"file:{home}/ledger.sqlite?mode=ro", uri=True) as ledger:
        chats, messages = ledger.execute("SELECT count(*), sum(messages) FROM conversations").fetchone()
    with sqlite3.connect(f"file:{home}/vault/vault.sqlite?mode=ro", uri=True) as vault:
        raw = vault.execute("SELECT sum(size) FROM pieces").fetchone()[0]
    print(f"{chats:,} conversations, {messages:,} messages, {raw:,} raw bytes in the vault before compression\n")
    print("| store | bytes | a conversation | a message | of the raw bytes |\n|---|---|---|---|---|")
    for name, what in STORES.items():
        size = bytes_below(home / name)
        print(f"| `{name}` ({what}) | {size:,} | {size / chats:,.0f} | {size / messages:,.0f} | {size / raw:.0%} |")


if __name__ == "__main__":
    main()
