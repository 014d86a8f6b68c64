"""`palace rooms` and `palace rooms try`: what is filed where, and what other rooms would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palace_pipeline import plots
from palace_pipeline.cli.archive import open_home
from palace_pipeline.cli.status import again_in, nothing_yet
from palace_pipeline.cli.talk import UsageError, counted, out, out_json, progress, table
from palace_pipeline.rooms.examples import FALLBACK
from palace_pipeline.settings import with_rooms_of

if TYPE_CHECKING:
    from palace_pipeline.filing.overview import Kind, Overview, Place
    from palace_pipeline.filing.trial import Change, Trial
    from palace_pipeline.store.home import Home

_WINGS_SHOWN = 15
_TITLES: dict[Kind, str] = {"room": "Rooms", "hall": "Halls", "wing": "Wings"}


def run_rooms(*, as_json: bool) -> int:
    """Wings, halls and rooms with counts and trends."""
    from palace_pipeline.filing.overview import KINDS, overview
    from palace_pipeline.store.duckfile import NotBuiltError

    home = open_home(must_exist=True)
    try:
        seen = overview(home.path, home.settings)
    except NotBuiltError:
        raise UsageError(nothing_yet(home)) from None
    waiting = next((again for again in again_in(home) if again.what == "rooms"), None)
    if as_json:
        out_json(
            {
                "drawers": seen.drawers,
                "conversations": seen.conversations,
                "months": seen.months,
                **{f"{kind}s": [_as_json(place, kind) for place in seen.places[kind]] for kind in KINDS},
                "empty": [room.name for room in seen.empty],
                "crowded": [{"name": room.name, "share": round(room.share, 4)} for room in seen.crowded],
                "filed_again": waiting.as_json() if waiting else None,
            }
        )
        return 0
    for kind in KINDS:
        _show(seen, kind)
    for line in _notes(seen, home):
        out(line)
    if waiting:
        out(f"{waiting.said}. To do so: palace ingest")
    return 0


def _as_json(place: Place, kind: Kind) -> dict[str, Any]:
    value = asdict(place) | {"share": round(place.share, 4)}
    if kind != "room":
        del value["own"], value["known"]
    if kind == "wing":
        del value["description"]
    return value


def _show(seen: Overview, kind: Kind) -> None:
    places = seen.places[kind]
    shown = places[:_WINGS_SHOWN] if kind == "wing" else places
    if not shown:
        return
    trend = f"{seen.months[0]} to {seen.months[-1]}" if seen.months else "trend"
    out(_TITLES[kind])
    rows: list[dict[str, Any]] = []
    for place in shown:
        row = {
            kind: place.name,
            "drawers": place.drawers,
            "conversations": place.conversations,
            "share": f"{place.share:.0%}",
            trend: plots.sparkline(place.by_month),
        }
        rows.append(row if kind == "wing" else row | {"what belongs in it": place.description})
    table(rows)
    if len(places) > len(shown):
        out(f"and {len(places) - len(shown):,} more (--json lists all)")
    out("")


def _notes(seen: Overview, home: Home) -> list[str]:
    file = home.path / "palace.toml"
    notes = [
        f"{room.name} takes {room.share:.0%} of all drawers: it helps little to find anything. Give the topics in it rooms "
        f"of their own; palace rooms try FILE shows what they would do before they stand in {file}"
        + ("; examples/rooms/life.toml has some for private life" if room.name == FALLBACK["room"] else "")
        for room in seen.crowded
    ]
    if seen.empty:
        names = ", ".join(room.name for room in seen.empty)
        notes.append(f"Nothing is in: {names} (of {file}). More examples or words draw more into a room.")
    for room in seen.places["room"]:
        if not room.known:
            notes.append(f"{room.name} is no longer in {file}; what is in it is filed anew by: palace ingest")
    if not seen.drawers:
        notes.append("Nothing is filed yet.")
    return notes


# --- palace rooms try -------------------------------------------------------------------------------------------------


def run_try(file: Path, *, as_json: bool) -> int:
    """What the rooms (and wings) of a file would do. Changes nothing."""
    from palace_pipeline.filing.trial import what_if

    if not file.is_file():
        raise UsageError(f"not there: {file}; FILE is a TOML file with [[rooms]] as in palace.toml")
    home = open_home(must_exist=True)
    tried = with_rooms_of(home.settings, file)
    with progress():
        trial = what_if(home, tried)
    own = {room.name for room in tried.rooms}
    empty = [room.name for room in trial.rooms if room.name in own and not room.then]
    if as_json:
        out_json(_trial_json(trial, empty))
        return 0
    if trial.gone:
        out(
            f"{counted(trial.gone, 'conversation')} left out: not all of it is in the lake; palace gaps --all --heal makes it again"
        )
    if not trial.drawers:
        out("No drawer has a vector of the model that is set: there is nothing to try it on. First: palace ingest")
        return 0
    out(
        f"{trial.moved:,} of {counted(trial.drawers, 'drawer')} would move, in "
        f"{counted(trial.conversations, 'conversation')}. Nothing has been changed."
    )
    if trial.without_vector:
        out(
            f"{counted(trial.without_vector, 'drawer')} without a vector of this model left out; palace ingest makes them"
        )
    out("")
    table([_row("room", room, trial.drawers) for room in trial.rooms])
    _show_moves(trial.moves)
    if trial.wing_moves:
        table([_row("wing", wing, trial.drawers) for wing in trial.wings])
        _show_moves(trial.wing_moves)
    for example in trial.examples:
        out(
            f"{example.before} → {example.after} ({example.confidence:.2f})  {example.day or 'undated'}  {example.name}"
        )
        out(f"    {example.quote}")
        out(f"    {example.page}")
    if trial.examples:
        out("")
    general = trial.general
    out(
        f"{general.name} would hold {_of(general.then, trial.drawers)}; now it holds {_of(general.now, trial.drawers)}."
    )
    for room in trial.crowded:
        out(
            f"{room.name} would take {room.then / trial.drawers:.0%} of all drawers: give the topics in it rooms of their own."
        )
    if empty:
        out(f"Nothing would be in: {', '.join(empty)}. More examples or words draw more into a room.")
    out(
        f"To apply it: put what {file} says into {home.path / 'palace.toml'}, then: palace ingest (nothing is embedded again)"
    )
    return 0


def _trial_json(trial: Trial, empty: Sequence[str]) -> dict[str, Any]:
    changes = [asdict(room) | {"share": round(room.then / max(trial.drawers, 1), 4)} for room in trial.rooms]
    return {
        "drawers": trial.drawers,
        "without_vector": trial.without_vector,
        "gone": trial.gone,
        "moved": trial.moved,
        "conversations": trial.conversations,
        "rooms": changes,
        "moves": _moves_json(trial.moves),
        "wings": [asdict(wing) for wing in trial.wings],
        "wing_moves": _moves_json(trial.wing_moves),
        "general": {"now": trial.general.now, "then": trial.general.then},
        "crowded": [room.name for room in trial.crowded],
        "empty": list(empty),
        "examples": [
            {"from": value.pop("before"), "to": value.pop("after"), **value} for value in map(asdict, trial.examples)
        ],
    }


def _moves_json(moves: dict[tuple[str, str], int]) -> list[dict[str, Any]]:
    return [{"from": before, "to": after, "drawers": count} for (before, after), count in moves.items()]


def _show_moves(moves: dict[tuple[str, str], int]) -> None:
    out("")
    if moves:
        table(_moves_json(moves))
        out("")


def _row(kind: str, change: Change, drawers: int) -> dict[str, Any]:
    return {kind: change.name, "now": change.now, "then": change.then, "share": f"{change.then / drawers:.0%}"}


def _of(count: int, drawers: int) -> str:
    return f"{counted(count, 'drawer')} ({count / drawers:.0%})"
