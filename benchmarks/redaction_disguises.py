# ruff: noqa: E501 - tables of examples, one a line, in many scripts
"""Disguises of a secret, for the truth set of redaction: signs between its letters, other scripts, encodings, pieces."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Callable

_CYRILLIC = str.maketrans("aceopxyACEHKMOPTXB", "асеорхуАСЕНКМОРТХВ")
_GREEK = str.maketrans("ABEZHIKMNOPTYXov", "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧον")


def each(text: str, size: int, joint: str) -> str:
    return joint.join(text[i : i + size] for i in range(0, len(text), size))


def _circled(text: str) -> str:
    return "".join(
        chr(0x24B6 + ord(c) - 65) if "A" <= c <= "Z" else chr(0x24D0 + ord(c) - 97) if "a" <= c <= "z" else c
        for c in text
    )


def _superscript(text: str) -> str:
    return text.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _mathematical(text: str) -> str:
    bases = (0x1D400, 0x1D41A, 0x1D7CE)
    return "".join(
        chr(bases[0] + ord(c) - 65)
        if "A" <= c <= "Z"
        else chr(bases[1] + ord(c) - 97)
        if "a" <= c <= "z"
        else chr(bases[2] + ord(c) - 48)
        if c.isdigit() and c.isascii()
        else c
        for c in text
    )


def _dump(text: str) -> str:
    data = text.encode()
    return "\n".join(
        f"{at:08x}  {data[at : at + 16].hex(' ')}  |{''.join(chr(b) for b in data[at : at + 16])}|"
        for at in range(0, len(data), 16)
    )


DISGUISES: dict[str, Callable[[str], str]] = {
    "spaces-between": lambda s: " ".join(s), "dashes-none": lambda s: each(s, 4, " "), "zero-width-joiner": lambda s: "\u200d".join(s), "word-joiner": lambda s: each(s, 3, "\u2060"), "bom-inside": lambda s: each(s, 7, "\ufeff"),
    "rtl-mark": lambda s: s[:4] + "\u200f" + s[4:9] + "\u202e" + s[9:], "soft-hyphen": lambda s: each(s, 5, "\u00ad"), "tag-characters": lambda s: s[:6] + "\U000e0041" + s[6:], "variation": lambda s: each(s, 2, "\ufe0f"), "combining": lambda s: s[:5] + "\u0336" + s[5:10] + "\u0332" + s[10:],
    "fullwidth-all": lambda s: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in s), "fullwidth-digits": lambda s: s.translate(str.maketrans("0123456789", "０１２３４５６７８９")), "mathematical": _mathematical, "circled": _circled, "superscript": _superscript,
    "cyrillic-all": lambda s: s.translate(_CYRILLIC), "greek-all": lambda s: s.translate(_GREEK), "html-decimal": lambda s: "".join(f"&#{ord(c)};" for c in s), "html-hex-padded": lambda s: "".join(f"&#x{ord(c):04X};" for c in s), "html-named": lambda s: s.replace("_", "&lowbar;").replace("-", "&hyphen;").replace(".", "&period;").replace("/", "&sol;"),
    "quoted-printable": lambda s: "".join(f"={ord(c):02X}" for c in s[:8]) + s[8:], "quoted-printable-soft": lambda s: s[:12] + "=\n" + s[12:], "percent-all": lambda s: "".join(f"%{ord(c):02x}" for c in s), "percent-twice": lambda s: urllib.parse.quote("".join(f"%{ord(c):02X}" for c in s[:4]), safe="") + s[4:],
    "u8-escape": lambda s: "".join(f"\\U{ord(c):08x}" for c in s[:5]) + s[5:], "u-brace": lambda s: "".join(f"\\u{{{ord(c):x}}}" for c in s), "x-brace": lambda s: "".join(f"\\x{{{ord(c):02x}}}" for c in s), "x-all": lambda s: "".join(f"\\x{ord(c):02x}" for c in s), "octal": lambda s: "".join(f"\\{ord(c):03o}" for c in s), "css-escape": lambda s: f"\\{ord(s[0]):x} " + s[1:],
    "md-bold-inside": lambda s: s[:6] + "**" + s[6:12] + "**" + s[12:], "md-italic-inside": lambda s: s[:6] + "*" + s[6:], "md-code-inside": lambda s: s[:8] + "`" + s[8:] + "`", "html-span-inside": lambda s: s[:7] + '<span class="hl">' + s[7:13] + "</span>" + s[13:], "wbr": lambda s: each(s, 10, "<wbr>"), "br": lambda s: each(s, max(12, len(s) // 2 + 1), "<br>"), "ansi-inside": lambda s: s[:6] + "\x1b[1;33m" + s[6:] + "\x1b[0m",
    "wrap-16": lambda s: each(s, 16, "\n"), "wrap-indent": lambda s: each(s, 20, "\n      "), "wrap-comment": lambda s: each(s, 20, "\n// "), "wrap-log": lambda s: each(s, 20, "\n2026-01-02 03:04:05 INFO "), "wrap-email": lambda s: each(s, 20, "\n> "), "wrap-backslash": lambda s: each(s, 20, "\\\n"), "wrap-table": lambda s: each(s, 20, " |\n| "),
    "concat-plus": lambda s: each(s, 14, '" + "'), "concat-implicit": lambda s: each(s, 14, '" "'), "concat-lines": lambda s: each(s, 14, '"\n    "'), "concat-dot": lambda s: each(s, 14, "' . '"), "concat-amp": lambda s: each(s, 14, '" & "'), "concat-comma-join": lambda s: '"".join(["' + each(s, 14, '", "') + '"])', "concat-array": lambda s: "['" + each(s, 14, "', '") + "'].join('')", "format": lambda s: f'"{s[:12]}{{}}".format("{s[12:]}")', "printf": lambda s: f"\"{s[:12]}%s\" % '{s[12:]}'", "template": lambda s: "`" + s[:12] + "${'" + s[12:] + "'}`", "shell-adjacent": lambda s: s[:12] + '""' + s[12:], "concat-var": lambda s: f'"{s[:12]}"\nk += "{s[12:]}"', "strcat": lambda s: f"CONCAT('{s[:12]}', '{s[12:]}')", "lua": lambda s: each(s, 14, '" .. "'), "c-adjacent-r": lambda s: each(s, 14, "' + r'"),
    "base64": lambda s: base64.b64encode(s.encode()).decode(), "base64url": lambda s: base64.urlsafe_b64encode(s.encode()).decode().rstrip("="), "base64-twice": lambda s: base64.b64encode(base64.b64encode(s.encode())).decode(), "base64-wrapped": lambda s: each(base64.b64encode(f'{{"config": "plain text before", "k": "{s}", "z": "and some after it"}}'.encode()).decode(), 76, "\n"),
    "hex": lambda s: s.encode().hex(), "hex-spaced": lambda s: s.encode().hex(" "), "hex-0x": lambda s: ", ".join(f"0x{b:02x}" for b in s.encode()), "hexdump": _dump, "base32": lambda s: base64.b32encode(s.encode()).decode(), "reversed": lambda s: s[::-1], "bytes-list": lambda s: ", ".join(str(b) for b in s.encode()), "char-list": lambda s: "['" + "', '".join(s) + "']", "utf16-base64": lambda s: base64.b64encode(s.encode("utf-16-le")).decode(),
    "json-thrice": lambda s: json.dumps(json.dumps(json.dumps({"k": s}))), "yaml-quoted-break": lambda s: '"' + s[:15] + "\\\n   " + s[15:] + '"', "nul-inside": lambda s: s[:9] + "\0" + s[9:], "tab-inside": lambda s: s[:15] + "\t" + s[15:], "crlf-wrap": lambda s: each(s, 24, "\r\n"), "ellipsis-none": lambda s: f"({s})...", "unicode-dash": lambda s: s.replace("-", "\u2011").replace("_", "\uff3f"), "url-in-md": lambda s: f"[x](https://e.example.org/{s})", "exclaim": lambda s: f"!!{s}!!",
}  # fmt: skip
DISGUISED = {
    "github": "ghp_[A-Za-z0-9]{36}", "openai": "sk-proj-[A-Za-z0-9_-]{74}T3BlbkFJ[A-Za-z0-9_-]{74}", "aws": "AKIA[A-Z2-7]{16}", "google": "AIza[0-9A-Za-z_-]{35}", "slack": "xoxb-[0-9]{12}-[0-9]{13}-[A-Za-z0-9]{24}", "stripe": "sk_live_51[A-Za-z0-9]{97}", "gitlab": "glpat-[A-Za-z0-9_-]{20}",
    "huggingface": "hf_[A-Za-z]{34}", "digitalocean": "dop_v1_[0-9a-f]{64}", "sendgrid": "SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}", "e2b": "e2b_[0-9a-f]{40}", "npm": "npm_[A-Za-z0-9]{36}",
}  # fmt: skip
DISGUISE_LINES = ("key = {s}", "token: {s}", "x {s} y", "the secret:\n{s}\n")
