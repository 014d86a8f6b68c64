"""Files beside and inside messages: named by what a source gives (a path, an address, base64 data), never with the data."""

from __future__ import annotations

import re
from urllib.parse import unquote

from palace_pipeline.exports.json_values import name_of
from palace_pipeline.exports.text import clean_text
from palace_pipeline.model import Attachment, Kind

_DATA_URL = re.compile(r"data:([\w.+/-]*)[^,]{0,100},", re.ASCII)
_URI = re.compile(r"[A-Za-z][\w+.-]+://[^/]*(/.*)?", re.ASCII | re.DOTALL)
_WINDOWS_DRIVE = re.compile(r"/[A-Za-z]:")


def inline_file(media_type: object, data: object, name: object = None) -> Attachment:
    """An attachment for base64 data inside a log: type and size stay, the data does not."""
    size = None
    if isinstance(data, str):
        size = len(data) * 3 // 4 - data[-2:].count("=")
    return Attachment(name=name_of(name), type=name_of(media_type), size=size)


def url_file(url: object) -> Attachment:
    """An attachment for an image URL: a `data:` URL gives type and size, any other its file name."""
    if not isinstance(url, str):
        return Attachment(type="image")
    if match := _DATA_URL.match(url):
        return inline_file(match[1] or "image", url[match.end() :])
    return Attachment(name=name_of(url.split("?", 1)[0].rsplit("/", 1)[-1]), type="image")


def kind_of_files(files: list[Attachment]) -> Kind:
    """The kind of a message that is only files."""
    types = {(file.type or "").split("/")[0] for file in files}
    return "image" if types == {"image"} else "audio" if types == {"audio"} else "attachment"


def base_name(path: str) -> str:
    """The last part of a path of any system."""
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def uri_path(value: object) -> str | None:
    """The path of a folder or file that is given as `file:///…` (or another scheme) or as a plain path."""
    text = name_of(value)
    if text is None or (match := _URI.fullmatch(text)) is None:
        return text
    path = clean_text(unquote(match[1] or ""))
    return (path[1:] if _WINDOWS_DRIVE.match(path) else path) or None
