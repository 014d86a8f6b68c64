"""A truth set for redaction, drawn from a seed: secrets and personal data as they are pasted, disguised, and look-alikes.

    python benchmarks/redaction_corpus.py --seed 5 > corpus.jsonl

Rows are `{"id", "group", "kind", "text", "secret", "plain"}`; `secret` is what has to go (null: nothing has), `plain` the
same without its disguise. Groups: vendors (known by the token), names (known by the name beside it), containers, prose,
disguises, personal, echo (claimed in one line, bare in the next), look-alikes. Nothing here is made from the rules of the
engine, and no token stands in these files: shapes are drawn when it runs. Never commit the output.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import urllib.parse
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from redaction_disguises import DISGUISE_LINES, DISGUISED, DISGUISES
from redaction_others import lookalikes, personal
from redaction_secrets import BARE, CONTAINERS, NAMED, PASSWORD_NAMES, PROSE, TOKEN_NAMES, VALUES, VENDORS, WORDS, fill
from redaction_source import Source


@dataclass(frozen=True)
class Row:
    id: str
    group: str
    kind: str
    text: str
    secret: str | None
    plain: str | None = None


def rows(seed: int | str) -> Iterator[Row]:
    """Every row of the set; the same seed gives the same rows."""
    number = 0

    def row(group: str, kind: str, text: str, secret: str | None, plain: str | None = None) -> Row:
        nonlocal number
        number += 1
        return Row(f"{group}-{number}", group, kind, text, secret, plain)

    source = Source(f"{seed}/vendors")
    for name, shape in VENDORS.items():
        for line in source.rng.sample(BARE, 4):
            token = source.shape(shape)
            yield row("vendors", name, line.replace("{s}", token), token)
    source = Source(f"{seed}/names")
    for names, values in ((TOKEN_NAMES, VALUES), (PASSWORD_NAMES, WORDS)):
        for name in names:
            for line in source.rng.sample(NAMED, 4):
                kind = source.rng.choice([*values])
                value = source.digits(6) if name == "PIN" else source.shape(values[kind])
                yield row("names", name, line.replace("{k}", name).replace("{s}", value), value)
    source = Source(f"{seed}/containers")
    for name, template in CONTAINERS.items():
        for around in ("{s}", "here is what I have:\n\n{s}\n\nit fails, why?"):
            text, secret = fill(source, template)
            yield row("containers", name, around.replace("{s}", text), secret)
    source = Source(f"{seed}/prose")
    for language, templates in PROSE.items():
        for template in templates:
            for _ in range(2):
                text, secret = fill(source, template)
                yield row("prose", language, text, secret)
    source = Source(f"{seed}/disguises")
    for name, disguise in DISGUISES.items():
        for shape in DISGUISED.values():
            token = source.shape(shape)
            shown = disguise(token)
            if shown != token:
                must = token if token in shown else shown
                yield row("disguises", name, source.pick(*DISGUISE_LINES).replace("{s}", shown), must, token)
    source = Source(f"{seed}/personal")
    for _ in range(2):
        for kind, text, value in personal(source):
            yield row("personal", kind, text, value)
    source = Source(f"{seed}/echo")
    for kind, (claim, echo) in {
        "url": ("postgres://app:{s}@db/x", "then I typed {s}"),
        "named": ("DB_PASSWORD={s}", "with {s} it works"),
        "prose": ("the password is {s}", "psql asked, I gave {s}"),
        "percent": ("password: {s}", "?p={q}"),
        "escaped": ("token={s}", '{"v":"{s}"}'),
        "cn": ("密码是{s}", "我试了{s}不行"),
        "upper": ("api_key={s}", "the log shows {s}!"),
        "base64": ("secret: {s}", "blob {e}"),
    }.items():
        for _ in range(6):
            value = (
                source.shape("[A-Za-z0-9]{5}[!@#%+/]{1}[A-Za-z0-9]{8}[0-9]{2}")
                if kind in ("named", "percent", "prose")
                else source.alnum(24)
            )
            shown = {
                "{q}": urllib.parse.quote(value, safe=""),
                "{e}": base64.b64encode(f"value is {value} ok".encode()).decode(),
            }
            line = echo.replace("{s}", value)
            for hole, form in shown.items():
                line = line.replace(hole, form)
            said = next((form for hole, form in shown.items() if hole in echo), value)
            yield row("echo", kind, f"{line}\nearlier: {claim.replace('{s}', value)}", said, value)
    source = Source(f"{seed}/look-alikes")
    for _ in range(3):
        for kind, text in lookalikes(source):
            yield row("look-alikes", kind, text, None)


def caught(row: Row, out: str, spans: Iterable[tuple[int, int]]) -> bool:
    """Is no piece of 60% of the secret left, shown or plain, and is four fifths of it masked where it stands
    (three fifths of a disguise, which has signs around the secret)?"""
    assert row.secret is not None
    for form in {row.secret, row.plain or row.secret}:
        size = -(-len(form) * 6 // 10)
        if any(form[i : i + size] in out for i in range(len(form) - size + 1)):
            return False
    at = row.text.index(row.secret)
    masked = {place for start, end in spans for place in range(max(start, at), min(end, at + len(row.secret)))}
    return len(masked) >= (0.6 if row.group == "disguises" else 0.8) * len(row.secret)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the truth set as JSON lines.")
    parser.add_argument("--seed", default="1")
    for made in rows(parser.parse_args().seed):
        print(json.dumps(asdict(made)))


if __name__ == "__main__":
    main()
