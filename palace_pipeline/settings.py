"""`palace.toml` and the environment -> one validated `Settings`. Read once at start, before anything is written."""

from __future__ import annotations

import os
import re
import tomllib
from datetime import UTC, date, datetime, tzinfo
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from palace_pipeline.toml_lines import line_of

DEFAULT_TOML = """\
# Palace settings. Everything is optional; an unknown key is an error, so that a typo never goes unnoticed.

# Keys without a table stand above the first one.
# display_zone = "Europe/Berlin"   # for `palace stats`, `palace search --since` and local times in SQL; default: the system's
# default_rooms = false           # only rooms of your own (below), and general

# Folders that hold exports; relative ones lie in the palace home.
# [[sources]]
# path = "inbox"
# timezone = "Asia/Shanghai"   # for times that the export writes without a zone

# [redaction]
# private_patterns = ['PROJ-\\d{4}']   # regular expressions (RE2) of your own
# known_values = []                      # exact values that must never appear
# env_files = []                         # their values must never appear either
# people = []                            # names to mask: "Jane Doe", or ["Jane Doe", "Jane", "JD"] for one person
# projects = []
# pseudonyms = false                     # [PERSON_1] instead of [REDACTED:person]: add new names at the end
# remember = false                       # what one conversation shows to be a secret is masked in all others
# kingfisher = false                     # a second opinion by Kingfisher's rules: pip install 'palace-pipeline[kingfisher]'
# allow = []                             # exact values that stay
# allow_rules = []                       # kinds or rules that are switched off, such as "ip-address"

# A topic of your own beside the default rooms (a default's name widens that room); try it first: palace rooms try FILE
# [[rooms]]
# name = "garden"
# description = "plants, beds, soil, what to sow and when"
# examples = ["When do I prune the pear tree? In late winter, on a dry day."]
# words = { en = ["seedling", "compost"], zh = ["播种", "堆肥"] }

# [[wings]]                              # conversations whose project, channel or title has these words
# match = "acme"
# name = "customers"

# [workspace]
# language = "en"                        # headings of new sessions: "zh" (用户输入, 我的判断, …) or "en"

# [alerts]                               # when a run that `palace ui` watches over fails
# command = ["notify-send", "Palace"]    # called without a shell, with the reason on its stdin as JSON
# webhook = "http://127.0.0.1:8080/palace"   # the same is posted there
"""


class SettingsError(ValueError):
    """`palace.toml` or an environment variable cannot be used; the text says which key and why."""


def _zone_name(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"{value!r} is no time zone name (write for example 'Europe/Berlin')") from error
    return value


def _pattern(value: str) -> str:
    import re2

    try:
        re2.compile(value)
    except re2.error as error:
        raise ValueError(f"{value!r} is no RE2 regular expression: {error}") from error
    if re.fullmatch(value, "") is not None:
        raise ValueError(f"{value!r} matches the empty text, it would mask nothing or everything")
    return value


Zone = Annotated[str, AfterValidator(_zone_name)]
Pattern = Annotated[str, AfterValidator(_pattern)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Strict):
    """A folder (or file) of exports. `timezone` is used for times that its exports write without a zone."""

    path: Path
    timezone: Zone | None = None


def _ways(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Name = Annotated[tuple[Annotated[str, Field(min_length=2)], ...], BeforeValidator(_ways), Field(min_length=1)]
"""A name and other ways to say it; in the file a text alone is enough."""


class RedactionSettings(_Strict):
    """The user's own part of redaction.

    `correlate` adds a short keyed hash to masks, so that equal values can be told from different ones. `people` and
    `projects` are names to mask; with `pseudonyms` a person is `[PERSON_3]` everywhere, by place in the list.
    `allow_rules` names kinds (as masks show them) or rules that are switched off. `remember`: a secret that one
    conversation claims is masked in all others too. `kingfisher` adds the rules of that package.
    """

    private_patterns: tuple[Pattern, ...] = ()
    known_values: tuple[Annotated[str, Field(min_length=4)], ...] = ()
    env_files: tuple[Path, ...] = ()
    people: tuple[Name, ...] = ()
    projects: tuple[Name, ...] = ()
    pseudonyms: bool = False
    allow: tuple[str, ...] = ()
    allow_rules: tuple[str, ...] = ()
    correlate: bool = False
    remember: bool = False
    kingfisher: bool = False


def _room_name(value: str) -> str:
    if re.fullmatch(r"[\w-]+", value) is None:
        raise ValueError(
            f"{value!r} is no name of a room: letters, digits, - and _ only (write for example 'home-office')"
        )
    return value


def _by_language(value: Any) -> Any:
    if not isinstance(value, dict) or not all(isinstance(words, list | tuple) for words in value.values()):  # pyright: ignore[reportUnknownVariableType]
        raise ValueError('write words by language, for example: words = { en = ["oven"], zh = ["烤箱"] }')
    return value  # pyright: ignore[reportUnknownVariableType]


class Room(_Strict):
    """A room: what it is for in words, a few example texts, and words per language (`{"en": [...], "zh": [...]}`).

    Each in any language; one of the three is enough.
    """

    name: Annotated[str, AfterValidator(_room_name)]
    description: str = ""
    examples: tuple[str, ...] = ()
    words: Annotated[dict[str, tuple[str, ...]], BeforeValidator(_by_language)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_something(self) -> Room:
        said = (self.description, *self.examples, *(word for words in self.words.values() for word in words))
        if not any(text.strip() for text in said):
            raise ValueError(f"nothing says what belongs in {self.name}: add a description, examples or words")
        return self


class Wing(_Strict):
    """Conversations whose project, channel or title contains `match` (case ignored) are filed under wing `name`."""

    match: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)]


class EmbeddingSettings(_Strict):
    """`model`: a known model name, or the folder of an ONNX model. `threads`: for one embedding process."""

    model: str = "multilingual-e5-small"
    threads: Annotated[int, Field(ge=1, le=64)] = 2


def _address(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]\S*", value):
        raise ValueError("not an address (write for example 'http://127.0.0.1:8080/palace')")
    return value


class WorkspaceSettings(_Strict):
    """`language`: that of the five headings of new sessions; pages in the other one are read and go on in theirs."""

    language: Literal["zh", "en"] = "zh"


class AlertSettings(_Strict):
    """Who is told when a run fails: a command (no shell; the reason on its stdin as JSON), or an address to post it to."""

    command: tuple[str, ...] = ()
    webhook: Annotated[str, AfterValidator(_address)] | None = None


class Settings(_Strict):
    """All settings of one palace home."""

    home: Path
    sources: tuple[Source, ...] = (Source(path=Path("inbox")),)
    display_zone: Zone | None = None
    start: date = date(2010, 1, 1)
    redaction: RedactionSettings = RedactionSettings()
    rooms: tuple[Room, ...] = ()
    default_rooms: bool = True
    wings: tuple[Wing, ...] = ()
    embedding: EmbeddingSettings = EmbeddingSettings()
    alerts: AlertSettings = AlertSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()
    color: Literal["auto", "never"] = "auto"

    @property
    def folders(self) -> list[Path]:
        """The export folders as absolute paths (relative ones lie in the home), and the sessions of the workspace if there
        are any."""
        sessions = self.home / "sessions"
        configured = self._configured
        return [*configured, sessions] if sessions not in configured and sessions.is_dir() else configured

    @property
    def _configured(self) -> list[Path]:
        return [source.path if source.path.is_absolute() else self.home / source.path for source in self.sources]

    def timezone_of(self, path: Path) -> tzinfo | None:
        """The configured zone for naive times of a file: that of the longest source path above it."""
        best: tuple[int, str] | None = None
        for source, folder in zip(self.sources, self._configured, strict=True):
            if source.timezone and path.resolve().is_relative_to(folder.resolve()):
                best = max(best or (0, ""), (len(str(folder)), source.timezone))
        return ZoneInfo(best[1]) if best else None

    @property
    def zone(self) -> tzinfo:
        """The zone in which people read dates: `display_zone`, else the system's."""
        return ZoneInfo(self.display_zone) if self.display_zone else _system_zone()


def _system_zone() -> tzinfo:
    """The system's zone by name, with its summer time: today's offset alone would shift half of the archive's hours."""
    name = os.environ.get("TZ", "").removeprefix(":") or os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a POSIX rule in TZ, or a copied file without a name
        return datetime.now(UTC).astimezone().tzinfo or UTC


def environment(settings: Settings) -> dict[str, str]:
    """Variables that Dagster's processes need to work on a home, and to keep everything at home.

    `PALACE_START` has to be set before the definitions are loaded, since they read no file.
    """
    return {
        "PALACE_HOME": str(settings.home),
        "PALACE_START": settings.start.isoformat(),
        "DAGSTER_HOME": str(settings.home / "dagster"),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "DAGSTER_EVENT_BATCH_SIZE": "2000",  # events of a range are written together (`event_log`)
        "ANONYMIZED_TELEMETRY": "False",
    }


def default_home() -> Path:
    """`PALACE_HOME`, else `~/palace`."""
    return Path(os.environ.get("PALACE_HOME") or "~/palace").expanduser()


def load_settings(home: Path | None = None) -> Settings:
    """Settings of a home; a home without `palace.toml` (or that does not exist yet) gets the defaults.

    Raises SettingsError with file, line, key and reason; nothing has been written then.
    """
    home = (home or default_home()).expanduser().absolute()
    file = home / "palace.toml"
    return _settings_of(file, _read(file), home) if file.exists() else Settings(home=home)


def with_rooms_of(settings: Settings, file: Path) -> Settings:
    """The settings of a home with the rooms and wings of another TOML file; what that does not name stays as it is.

    The file may hold all that a `palace.toml` may; the rest of it is looked at, but changes nothing.
    Raises SettingsError with file, line, key and reason, also if it names neither rooms nor wings.
    """
    text = _read(file)
    tried = _settings_of(file, text, settings.home)
    filing = ("rooms", "default_rooms", "wings")
    named = {name: getattr(tried, name) for name in filing if name in tried.model_fields_set}
    if not named:
        raise SettingsError(
            f"{file} has no rooms: write [[rooms]] with a name and a description in it (or [[wings]] with match and name)"
        )
    return settings.model_copy(update=named)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} cannot be read: byte {error.start + 1} is not UTF-8; save it as UTF-8") from error
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror or error}") from error


def _settings_of(file: Path, text: str, home: Path) -> Settings:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file} cannot be read as TOML: {error}") from error
    try:
        settings = Settings(home=home, **values)
    except ValidationError as error:
        raise SettingsError(f"{file}: {_explain(error, text)}") from error
    except TypeError as error:
        raise SettingsError(f"{file}: the key 'home' cannot be set here (use --home or PALACE_HOME)") from error
    names = [room.name for room in settings.rooms]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise SettingsError(
                f"{file}: {_at(text, ('rooms', number, 'name'))}two rooms have the same name: {name!r}; "
                "put what they say into one"
            )
    return settings


def _explain(error: ValidationError, text: str) -> str:
    return "; ".join(
        f"{_at(text, item['loc'])}{'.'.join(map(str, item['loc']))}: {_reason(item['type'], item['msg'], item['loc'])}"
        for item in error.errors(include_url=False, include_input=False)
    )


def _at(text: str, place: tuple[str | int, ...]) -> str:
    line = line_of(text, place)
    return f"line {line}: " if line else ""


def _reason(kind: str, message: str, place: tuple[str | int, ...]) -> str:
    key = str(place[-1]) if place else ""
    if kind == "missing":
        return f"is missing; add a line: {key} = …"
    if kind == "tuple_type" and place in (("rooms",), ("wings",), ("sources",)):
        return f"is a list of tables; write [[{key}]] with two brackets"
    if kind != "extra_forbidden":
        return message.removeprefix("Value error, ")
    table = _TABLES.get(str(place[0])) if len(place) > 1 else Settings
    known = [name for name in table.model_fields if name != "home"] if table else []
    close = get_close_matches(key, known, 1)
    return "unknown key" + (f"; did you mean {close[0]}?" if close else "") + f" (there are: {', '.join(known)})"


_TABLES: dict[str, type[BaseModel]] = {
    "sources": Source,
    "redaction": RedactionSettings,
    "rooms": Room,
    "wings": Wing,
    "embedding": EmbeddingSettings,
    "alerts": AlertSettings,
    "workspace": WorkspaceSettings,
}
