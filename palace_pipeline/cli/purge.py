"""`palace purge`: says what it will do, asks, does it, and shows the proof."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext

from palace_pipeline.cli.archive import finish_purge, new_batch, open_home, open_workspace
from palace_pipeline.cli.talk import NOT_TAKEN, UsageError, counted, out, out_json, progress, say
from palace_pipeline.purge import (
    Purged,
    PurgeError,
    Target,
    Value,
    find_conversation,
    find_value,
    purge_conversation,
    purge_value,
    shown_paths,
)
from palace_pipeline.purge.targets import LEAST_BYTES as LEAST_SAID
from palace_pipeline.redaction.forgotten import TOO_SHORT, is_enough
from palace_pipeline.store.home import Home
from palace_pipeline.workspace.forgetting import forget_conversations
from palace_pipeline.workspace.names import folder_of, is_id
from palace_pipeline.workspace.sweeping import page_of

_FILES_SHOWN = 20


def run_purge(named: str | None, *, from_stdin: bool, vault: bool, yes: bool, as_json: bool) -> int:
    """Forget a conversation, or a value that is read from stdin. Exit code 1: something is still found."""
    if (named is None) is not from_stdin:
        raise UsageError("say which conversation (provider:id, a page, the beginning of an id), or --value-from-stdin")
    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("there is nobody to ask; add --yes if you mean it")
    if named is not None and (session := _unread_session(open_home(), named)) is not None:
        return _forget_unread(open_home(), session, yes=yes, as_json=as_json)
    # A value may stand in sessions and memory alone: to be rid of it nobody has to spread it into an archive first.
    home = open_workspace() if from_stdin else open_home(must_exist=True)
    value = _read_value() if from_stdin else None
    told: list[str] = []
    kept: list[str] = []
    with home.writing():
        if value is not None:
            found = find_value(home, value)
            told = shown_paths(found, found.found.files)
            _say_value(found, told, vault=vault)
            if not yes and not _agreed():
                return 0
            with progress():
                purged = purge_value(home, found, vault=vault, batch=new_batch())
        else:
            target = _target(home, named or "", vault=vault)
            if target is None:
                return 0
            told, kept = target.files, target.shared
            _say_conversation(target, vault=vault)
            if not yes and not _agreed():
                return 0
            with progress():
                purged = purge_conversation(home, target.keys, vault=vault, batch=new_batch())
    if as_json:
        out_json(purged.as_json())
    else:
        _show(purged, vault=vault, is_value=value is not None)
        for path in purged.shared:
            if path not in kept:
                out(f"kept: raw bytes of {path} that show a part of it hold other conversations too")
        _say_files([path for path in purged.files if path not in told])
    return 0 if purged.clean else NOT_TAKEN


def _unread_session(home: Home, named: str) -> str | None:
    """The id of a live session that no archive has read yet, if one is meant."""
    session = named.removeprefix("session:")
    if not is_id(session) or page_of(home.path / folder_of(session), session) is None:
        return None
    if home.exists:
        with home.ledger() as ledger:
            if ledger.conversation(("session", session)) is not None:
                return None
    return session


def _forget_unread(home: Home, session: str, *, yes: bool, as_json: bool) -> int:
    say(f"Forgets session {session}, which is in no archive yet: its page and parts, its rows and lines.")
    if not yes and not _agreed():
        return 0
    with home.writing() if home.exists else nullcontext():
        gone = forget_conversations(home.path, [("session", session)])
    left = [path.relative_to(home.path).as_posix() for path in gone.left]
    if as_json:
        out_json({"removed": {"pages": gone.pages}, "clean": not left} | ({"unread": left} if left else {}))
    else:
        out(f"removed: {gone.pages} pages")
        _say_unread(left)
    return NOT_TAKEN if left else 0


def _say_unread(places: list[str]) -> None:
    for place in places:
        say(f"could not be looked at: {place}")
    if places:
        say(
            "All else is done. What was purged may still stand there: make it readable and writable for the user who runs "
            "Palace, then run the same command again."
        )


def _target(home: Home, named: str, *, vault: bool) -> Target | None:
    """The conversation that is meant; None if it is gone already but for the rest of a purge that was killed."""
    try:
        return find_conversation(home, named, vault=vault)
    except PurgeError as error:
        if finish_purge(home, new_batch()):
            say("Finished what an earlier purge had left to do.")
            return None
        raise UsageError(str(error)) from None


def _read_value() -> str:
    """The value, never from the arguments: those can be seen by others and stay in the shell's history."""
    if sys.stdin.isatty():
        import getpass

        value = getpass.getpass("Value to forget (not shown): ", sys.stderr)
    else:
        try:
            value = sys.stdin.buffer.read().decode("utf-8")
        except UnicodeDecodeError:
            raise UsageError("the value on stdin is no UTF-8") from None
        value = value.removesuffix("\n").removesuffix("\r")
    if not is_enough(value):
        raise UsageError(TOO_SHORT)
    return value


def _agreed() -> bool:
    sys.stderr.write("This cannot be undone. Go on? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _say_conversation(target: Target, *, vault: bool) -> None:
    named = ", ".join(f"{provider}:{name}" for provider, name in target.keys)
    if target.before:
        say(f"{named} was purged before; looks again for what is left of it.")
        if not vault:
            say("The raw bytes in the vault are not looked at; --vault looks there too, and removes them.")
        _say_files(target.files)
        return
    say(f"Forgets {named}: {counted(target.messages, 'message')}.")
    say(
        "Removed from pages, lake, search, tables and records"
        + (", and the raw bytes from the vault." if vault else ".")
    )
    if not vault:
        say("The raw bytes stay in the vault; --vault removes them as well.")
    for path in target.shared:
        say(f"Its raw bytes stay in the vault with {path}: they hold other conversations too.")
    _say_files(target.files)


def _say_value(found: Value, files: list[str], *, vault: bool) -> None:
    raw = found.found.raw
    pieces = len(raw.elements) + len(raw.members)
    if found.keys:
        say(f"Masks the value in {counted(len(found.keys), 'conversation')}, and wherever else it stands.")
    else:
        say("No conversation says the value. It is masked wherever else it stands, and in what comes from now on.")
    if vault:
        say(f"Raw bytes that show it are removed from the vault: {counted(pieces, 'piece')} of exports.")
    elif pieces:
        say(
            f"Raw bytes that show it stay in the vault ({counted(pieces, 'piece')} of exports); --vault removes them too."
        )
    _say_files(files)


def _say_files(files: list[str]) -> None:
    for path in files[:_FILES_SHOWN]:
        say(f"Yours, and left as it is: {path}")
    if len(files) > _FILES_SHOWN:
        say(f"and {len(files) - _FILES_SHOWN} more files of yours.")


def _show(purged: Purged, *, vault: bool, is_value: bool) -> None:
    out("removed: " + ", ".join(f"{count} {what}" for what, count in purged.removed.items()))
    proof = purged.proof
    if is_value and purged.clean and not any((*purged.removed.values(), purged.files, purged.called, purged.otherwise)):
        out("It stood nowhere that Palace looks: nothing was changed. What comes with it from now on is masked.")
    for store, hits in proof.stores.items():
        out(f"{store}: {'nothing left' if not hits else f'STILL FOUND in {hits} place(s)'}")
    if proof.probes:
        where = f"in {counted(proof.files, 'file')} ({proof.size:,} bytes)"
        out(f"looked for {counted(proof.probes, 'piece')} of text {where}")
    elif purged.short:
        out(
            f"it said nothing long enough ({LEAST_SAID} bytes on a line) to be looked for; its ids were looked for in every table"
        )
    else:
        out("nothing is known any more of what it said, so only its ids could be looked for")
    if proof.spared:
        out(
            f"it also stands in days, times, ids, hashes or fixed words that Palace or a product makes ({proof.spared:,} "
            "places looked at); these say nothing, and stay"
        )
    if purged.otherwise:
        out(
            f"in another case of letters it stands in {counted(purged.otherwise, 'conversation')}: in texts only exactly what "
            "you wrote is masked, in titles and names of files any case. Purge the other spelling as well if it is meant"
        )
    if not vault:
        out("not looked at: the raw bytes in the vault (--vault)")
    for folder in purged.called:
        out(
            f"Yours, outside of what Palace keeps, and still called so: a file in {folder}. Palace knows it by a masked "
            "name; rename it if its own name shall not show the value either."
        )
    for place in proof.found:
        say(f"still found: {place}")
    _say_unread(proof.unread)
    if proof.found:
        say(f"{_next(proof.found)} Then run the same command again.")


_DATABASES = "End a program that has the database open."
_NEXT = {
    "files": "What is named among files is a copy, or a file of your own: take the words out of it, or delete it.",
    "git history": "Take it out of the history of Git, as it says there.",
}


def _next(found: Sequence[str]) -> str:
    """What to do about what is still found (`store: place`), by where that is."""
    return " ".join(dict.fromkeys(_NEXT.get(place.partition(": ")[0], _DATABASES) for place in found))
