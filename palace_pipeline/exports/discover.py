"""Finding agents' logs and exports by their known places and names.

Nothing is opened and the home folder is never walked: each place is one of `places.toml`, its files are counted by
`stat`, with a limit; of a downloads folder only the names are looked at, and only those that exports have.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

System = Literal["linux", "mac", "windows"]

MOST_FILES = 20_000
"""Files that are counted in one place; more are told as "and more"."""
MOST_ENTRIES = 200_000
"""Entries of folders that are looked at in one place, whatever they are."""
MOST_BESIDE = 2_000
"""Folders that a `*` may stand for, and entries of a downloads folder times ten."""
DEEPEST = 10
DOWNLOADS = (
    *("Downloads", "Download", "下载", "下載", "ダウンロード", "다운로드", "Téléchargements", "Descargas", "Scaricati"),
    *("Transferências", "Transferencias", "Baixades", "Pobrane", "Stažené", "Stiahnuté", "Letöltések", "Descărcări"),
    *("Загрузки", "Завантаження", "Изтегляния", "Hämtningar", "Hentet", "Nedlastinger", "Hentede filer", "Overførsler"),
    *("Lataukset", "İndirilenler", "Λήψεις", "Tải xuống", "ดาวน์โหลด", "Unduhan", "הורדות", "التنزيلات", "تنزيلات"),
)
"""What a desktop calls the folder, by language, where no variable names it."""
_INSIDE_DOWNLOADS = ("Telegram Desktop",)
_SECOND_COPY = re.compile(r" ?(?:\(\d+\)|- copy|- Kopie|的副本|副本)$", re.IGNORECASE)
_EXPORT = r"(?:[-_. ]?(?:.*[-_. ])?(?:exports?|conversations?|chats?|history|data|backup|archive|\d{4}-\d\d-\d\d).*)?"
_VARIABLE = re.compile(r"\$([A-Z][A-Z0-9_]*)(/.*)?")


@dataclass(frozen=True, slots=True)
class Machine:
    """Where to look: the system's kind, the home folder and the environment (never the process's own by itself)."""

    system: System
    home: Path
    environment: Mapping[str, str]
    windows_homes: tuple[Path, ...] = ()
    """Home folders of the Windows around a WSL."""

    @property
    def config(self) -> Path:
        """Where applications keep their settings."""
        if self.system == "mac":
            return self.home / "Library/Application Support"
        if self.system == "windows":
            return Path(self.environment.get("APPDATA") or self.home / "AppData/Roaming")
        return Path(self.environment.get("XDG_CONFIG_HOME") or self.home / ".config")

    def around(self) -> Iterator[Machine]:
        """This machine, and the Windows around it if it is a WSL."""
        yield self
        for home in self.windows_homes:
            yield Machine("windows", home, {})


@dataclass(frozen=True, slots=True)
class Found:
    """A place that exists. Sizes in bytes; dates are those of the files' last change, in UTC.

    `more`: there are more files than were counted. `configured`: a source of the settings holds it already.
    """

    kind: Literal["log", "export"]
    product: str
    provider: str
    path: Path
    files: int
    size: int
    oldest: date | None
    newest: date | None
    more: bool = False
    configured: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A product's places, as `places.toml` has them."""

    product: str
    provider: str
    roots: tuple[str, ...]
    below: tuple[str, ...]
    names: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class Download:
    """Names that a product's exports have."""

    product: str
    provider: str
    names: tuple[re.Pattern[str], ...]
    endings: tuple[str, ...]


@dataclass(slots=True)
class _Count:
    files: int = 0
    size: int = 0
    oldest: float | None = None
    newest: float | None = None
    more: bool = False
    looked_at: int = field(default=0)

    def add(self, info: os.stat_result) -> None:
        self.files += 1
        self.size += info.st_size
        self.oldest = info.st_mtime if self.oldest is None else min(self.oldest, info.st_mtime)
        self.newest = info.st_mtime if self.newest is None else max(self.newest, info.st_mtime)


def this_machine() -> Machine:
    """The machine that the program runs on."""
    system: System = "mac" if sys.platform == "darwin" else "windows" if os.name == "nt" else "linux"
    environment = dict(os.environ)
    around = Path("/mnt/c/Users") if "WSL_DISTRO_NAME" in environment else None
    homes = _folders(around) if around is not None else []
    own = [home for home in homes if home.name not in ("Public", "Default", "Default User", "All Users")]
    return Machine(system, Path.home(), environment, tuple(own))


def discover(machine: Machine, configured: Iterable[Path] = ()) -> list[Found]:
    """Every known place that holds something, logs first; the same folder is given once, however many roads lead to it."""
    sources = [_real(path) for path in configured]
    found: dict[Path, Found] = {}
    for here in machine.around():
        for place in known_places():
            for path in _paths(place, here):
                _note(found, sources, "log", place.product, place.provider, path, place.names)
        for path, download in _exports(here):
            _note(found, sources, "export", download.product, download.provider, path, ("*",))
    return list(found.values())


def looked_at(machine: Machine) -> list[str]:
    """Every root and downloads folder that `discover` asks for, there or not; for people who miss something."""
    roots = [
        str(root) for here in machine.around() for place in known_places() for root in _roots(place.roots, here)
    ] + [str(folder) for here in machine.around() for folder in _downloads(here)]
    return list(dict.fromkeys(roots))


# --- the data ---------------------------------------------------------------------------------------------------------


@cache
def _data() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads((files(__package__ or "") / "places.toml").read_text("utf-8"))


@cache
def known_places() -> tuple[Place, ...]:
    """The places of `places.toml`."""
    return tuple(
        Place(p["product"], p["provider"], tuple(p["roots"]), tuple(p["below"]), tuple(p.get("names", ("*",))))
        for p in _data()["place"]
    )


@cache
def known_downloads() -> tuple[Download, ...]:
    """The names of `places.toml`."""
    return tuple(
        Download(
            d["product"],
            d["provider"],
            tuple(re.compile(name.replace("{EXPORT}", _EXPORT), re.IGNORECASE) for name in d["names"]),
            tuple(d["endings"]),
        )
        for d in _data()["download"]
    )


# --- logs -------------------------------------------------------------------------------------------------------------


def _roots(roots: Iterable[str], machine: Machine) -> Iterator[Path]:
    for root in roots:
        if match := _VARIABLE.fullmatch(root):
            value = machine.environment.get(match[1], "")
            # Claude Code's may name several folders.
            for one in value.split(",") if value.strip() else ():
                path = _expanded(one.strip(), machine)
                if path.is_absolute():
                    yield Path(f"{path}{match[2] or ''}")
        elif root.startswith("{config}/"):
            yield machine.config / root.removeprefix("{config}/")
        else:
            yield machine.home / root.removeprefix("~/")


def _expanded(value: str, machine: Machine) -> Path:
    for start in ("~/", "$HOME/", "${HOME}/"):
        if value.startswith(start):
            return machine.home / value.removeprefix(start)
    return machine.home if value in ("~", "$HOME") else Path(value)


def _paths(place: Place, machine: Machine) -> Iterator[Path]:
    """What exists of a place: folders, or single files."""
    for root in _roots(place.roots, machine):
        for below in place.below:
            yield from _matching(root, below.split("/"))


def _matching(folder: Path, parts: list[str]) -> list[Path]:
    found = [folder]
    for part in parts:
        if "*" in part:
            found = [inner for at in found for inner in _folders(at) if fnmatchcase(inner.name, part)]
        else:
            found = [at / part for at in found]
    return [path for path in found if _exists(path)]


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            inner = [Path(entry.path) for entry, _ in zip(entries, range(MOST_BESIDE), strict=False) if entry.is_dir()]
    except OSError:
        return []  # not there, or not ours to look into
    return sorted(inner)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


# --- exports ----------------------------------------------------------------------------------------------------------


def _downloads(machine: Machine) -> Iterator[Path]:
    named = machine.environment.get("XDG_DOWNLOAD_DIR", "")
    # A desktop that has no such folder calls the home folder so; that one is never looked through.
    if named and (path := _expanded(named, machine)).is_absolute() and _real(path) != _real(machine.home):
        yield path
    for name in DOWNLOADS:
        yield machine.home / name


def _exports(machine: Machine) -> Iterator[tuple[Path, Download]]:
    for folder in _downloads(machine):
        for inside in (folder, *(folder / name for name in _INSIDE_DOWNLOADS)):
            try:
                with os.scandir(inside) as entries:
                    names = [(e.name, e.is_dir()) for e, _ in zip(entries, range(MOST_BESIDE * 10), strict=False)]
            except OSError:
                continue
            for name, is_folder in sorted(names):
                if (download := export_by_name(name, is_folder=is_folder)) is not None:
                    yield inside / name, download


def export_by_name(name: str, *, is_folder: bool = False) -> Download | None:
    """The product whose exports are called so, or None. A folder is an export that was unpacked."""
    stem, ending = (name, "") if is_folder else (name.rpartition(".")[0], name.rpartition(".")[2].lower())
    stem = _SECOND_COPY.sub("", stem)
    for download in known_downloads():
        if (is_folder or ending in download.endings) and any(p.fullmatch(stem) for p in download.names):
            return download
    return None


# --- counting ---------------------------------------------------------------------------------------------------------


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def _note(
    found: dict[Path, Found],
    sources: list[Path],
    kind: Literal["log", "export"],
    product: str,
    provider: str,
    path: Path,
    names: tuple[str, ...],
) -> None:
    real = _real(path)
    if real in found:
        return
    count = _counted(real, names)
    if count.files == 0:
        return
    # A link that is a source by itself is not followed when exports are read; what it leads to is.
    shown = real if path.is_symlink() else path
    oldest, newest = (
        datetime.fromtimestamp(at, UTC).date() if at is not None else None for at in (count.oldest, count.newest)
    )
    known = any(real.is_relative_to(source) for source in sources)
    found[real] = Found(kind, product, provider, shown, count.files, count.size, oldest, newest, count.more, known)


def _counted(path: Path, names: tuple[str, ...]) -> _Count:
    """The files below a path (or the one file); links are not followed."""
    count = _Count()
    try:
        info = path.stat()
    except OSError:
        return count
    if not stat.S_ISDIR(info.st_mode):
        if stat.S_ISREG(info.st_mode):
            count.add(info)
        return count
    stack = [(path, 0)]
    while stack and not count.more:
        folder, depth = stack.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    count.looked_at += 1
                    if count.files >= MOST_FILES or count.looked_at > MOST_ENTRIES:
                        count.more = True
                        break
                    if entry.is_dir(follow_symlinks=False):
                        if depth < DEEPEST:
                            stack.append((Path(entry.path), depth + 1))
                    elif entry.is_file(follow_symlinks=False) and any(fnmatchcase(entry.name, name) for name in names):
                        count.add(entry.stat(follow_symlinks=False))
        except OSError:
            continue  # what may not be listed is not counted; reading it will say why
    return count
