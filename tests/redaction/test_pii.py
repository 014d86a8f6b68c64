from __future__ import annotations

import random

import pytest

from palace_pipeline.redaction import pii
from palace_pipeline.redaction.engine import RuleEngine
from tests.redaction.samples import funnel

ENGINE = RuleEngine()


def _kinds(text: str) -> list[tuple[str, str]]:
    return sorted({(s.kind, text[s.start : s.end]) for s in ENGINE.scan([text])[0]})


def _card(prefix: str, length: int, seed: int = 1) -> str:
    body = prefix + "".join(random.Random(seed).choices("0123456789", k=length - len(prefix) - 1))
    return next(body + c for c in "0123456789" if pii.luhn(body + c))


def _iban(country: str, bban: str) -> str:
    number = "".join(str(int(c, 36)) for c in bban + country + "00")
    return f"{country}{98 - int(number) % 97:02d}{bban}"


def test_luhn_by_hand() -> None:
    assert pii.luhn("79927398713")  # the textbook number
    assert not pii.luhn("79927398710")


@pytest.mark.parametrize(
    "number", [_card("4", 16), _card("2221", 16), _card("37", 15), _card("62", 16), _card("3528", 16)]
)
def test_cards(number: str) -> None:
    groups = " ".join(number[i : i + 4] for i in range(0, len(number), 4))
    assert _kinds(f"my card is {number}, thanks") == [("credit-card", number)]
    if len(number) == 16:
        assert _kinds(f"信息：{groups}。") == [("credit-card", groups)]
    wrong = number[:-1] + str((int(number[-1]) + 1) % 10)
    assert _kinds(f"ref {wrong} done") == []


def test_iban_with_and_without_blanks() -> None:
    number = _iban("DE", "370400440532013000")
    spaced = " ".join(number[i : i + 4] for i in range(0, len(number), 4))
    assert _kinds(f"IBAN {number} ok") == [("iban", number)]
    assert _kinds(f"IBAN {spaced} ok") == [("iban", spaced)]
    assert _kinds("IBAN GB82 WEST 1234 5698 7654 33 ok") == []


def test_cn_resident_id_check_digit_and_date() -> None:
    body = "11010519491231002"
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    check = "10X98765432"[sum(int(c) * w for c, w in zip(body, weights, strict=True)) % 11]
    assert _kinds(f"身份证{body}{check}。") == [("cn-resident-id", body + check)]
    assert not pii.cn_resident_id("110105194913310021")  # there is no month 13


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("mail jane.roe+x@mail.acme-corp.de now", "email", "jane.roe+x@mail.acme-corp.de"),
        ("my SSN: 219-09-9999 ok", "us-ssn", "219-09-9999"),
        ("call +49 30 901820 today", "phone", "+49 30 901820"),
        ("(415) 555-2671 is me", "phone", "(415) 555-2671"),
        ("手机号 13912345678", "phone", "13912345678"),
        ("Tel: 01.84.17.61.18", "phone", "01.84.17.61.18"),
        ("client 81.2.69.142 hit us", "ip-address", "81.2.69.142"),
        ("from 2a02:6b8:b010:9020::3 port 22", "ip-address", "2a02:6b8:b010:9020::3"),
    ],
)
def test_personal_data(text: str, kind: str, value: str) -> None:
    assert _kinds(text) == [(kind, value)]


@pytest.mark.parametrize(
    "text",
    [
        "git@github.com:owner/repo.git",
        "noreply@anthropic.com",
        "user@example.com",
        "npm i @types/node@20.1.0",
        "logo@2x.png",
        "version 10.0.22621.3007",
        "upgrade to 1.2.3.4",
        "127.0.0.1 and 192.168.1.1 and 8.8.8.8",
        "std::vector<int>",
        "fe80::1%lo0",
        "timestamp: 1712345678901",
        "2024-01-15 12:30:45",
        "ISBN 978-3-16-148410-0",
        "f(x)=3.14159265358979",
        "Decimal('+35236450.6')",
        "123e4567-e89b-12d3-a456-426614174000",
        "pid 13800138000123",
        "https://user@example.org/repo.git",
        "Copyright 2003-2010",
        "section 22.1.4.1 of the standard",
        "000-12-3456 is no number",
        "feature/5068609911521280",
    ],
)
def test_look_alikes(text: str) -> None:
    assert _kinds(text) == []


def test_a_wallet_address_needs_a_right_checksum() -> None:
    address = "1BoatSLRHtKNngkdXEeobR76b53LETtpyT"
    assert pii.base58_check(address) == "crypto-address"
    assert pii.base58_check(address[:-1] + "U") is None


def test_an_address_in_the_path_or_query_of_a_url_is_one_and_its_user_part_is_none() -> None:
    own = funnel()
    address = "ann.lee" + "@" + "mail-host.de"
    for text in (
        f"https://app.dev/users/{address}/edit",
        f"https://app.dev/x?q=:{address}",
        f"https://app.dev/#/{address}",
    ):
        assert address not in own.redact_fields({"t": text}).texts["t"]
    assert own.redact_fields({"t": f"ssh://{address}/srv"}).texts["t"] == f"ssh://{address}/srv"


@pytest.mark.parametrize("between", [" ", "  ", "/", " / ", ", ", "\n", "; "])
def test_numbers_one_after_the_other_are_all_found(between: str) -> None:
    numbers = [f"+1 212-555-{place}" for place in range(1234, 1244)]
    clean = funnel().redact_fields({"t": "call " + between.join(numbers)}).texts["t"]
    assert not any(number[-8:] in clean for number in numbers)


@pytest.mark.parametrize("before", ["v2 ", "a12 ", "x1-", "$5 ", "#3 ("])
def test_digits_that_go_on_from_a_name_are_no_phone_number(before: str) -> None:
    text = f"{before}555-123-4567" + (")" if "(" in before else "")
    assert funnel().redact_fields({"t": text}).texts["t"] == text
