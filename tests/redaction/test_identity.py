"""Numbers of persons: with their name and a right check digit they go, without either they stay. The numbers are made here."""

from __future__ import annotations

import random

import pytest

from palace_pipeline.redaction.identity import luhn, numbered, papers
from palace_pipeline.redaction.views import flat
from tests.redaction.samples import funnel

FUNNEL = funnel()


def _redacted(text: str) -> str:
    return FUNNEL.redact_fields({"text": text}).texts["text"]


# From the descriptions of the schemes: numbers whose check digits were worked out by hand.
RIGHT = {
    "NHS number": "943 476 5919",
    "PESEL": "44051401359",
    "CPF": "111.444.777-35",
    "SIN": "046 454 286",
    "TFN": "876 543 210",
    "BSN": "111222333",
    "NIR": "255081416802538",
    "Steuer-ID": "86095742719",
    "Aadhaar": "2341 2341 2346",
    "personnummer": "811218-9876",
    "TC kimlik": "10000000146",
    "IMEI": "490154203237518",
    "주민등록번호": "960121-1234567",
}
LETTERED = {
    "DNI": "12345678Z",
    "NIE": "X1234567L",
    "NINO": "AB123456C",
    "codice fiscale": "RSSMRA85T10A562S",
    "NRIC": "S1234567D",
    "hetu": "131052-308T",
    "passport no.": "C12345678",
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_number_behind_its_name_goes_and_a_wrong_one_stays(name: str) -> None:
    value = RIGHT[name]
    text = f"{name}: {value}, thanks"
    assert _redacted(text) == f"{name}: [REDACTED:national-id], thanks"
    if name != "주민등록번호":
        last = next(i for i in reversed(range(len(value))) if value[i].isdigit())
        wrong = value[:last] + str((int(value[last]) + 1) % 10) + value[last + 1 :]
        assert "national-id" not in _redacted(f"{name}: {wrong}, thanks")  # it may still be a phone
    assert "national-id" not in _redacted(f"count {value} rows")


@pytest.mark.parametrize("name", LETTERED)
def test_numbers_with_letters(name: str) -> None:
    text = f"my {name} {LETTERED[name]}, thanks"
    assert LETTERED[name] not in _redacted(text)
    assert _redacted(text.replace(name, "part")) == text.replace(name, "part")


def test_passports_in_other_scripts() -> None:
    for text in ("护照号：E12345678", "パスポート番号はTK1234567です", "여권번호는 M12345678 입니다"):
        assert "[REDACTED:" in _redacted(text)


def test_words_stand_alone() -> None:
    assert numbered("my SIN is ", "046454286")
    assert not numbered("using ", "046454286")
    assert list(papers(flat("xnino AB123456C"), b"nino", 1)) == []


def test_luhn_finds_every_wrong_digit() -> None:
    rng = random.Random(1)
    for _ in range(50):
        body = "".join(rng.choices("0123456789", k=15))
        check = next(c for c in "0123456789" if luhn(body + c))
        place = rng.randrange(15)
        other = str((int(body[place]) + rng.randint(1, 9)) % 10)
        assert not luhn(body[:place] + other + body[place + 1 :] + check)


@pytest.mark.parametrize(
    "address",
    ["张三@acme-corp.cn", "bob@почта.рф", "jürgen@müller-bau.de", '"jane roe"@acme-corp.org'],
)
def test_addresses_beyond_ascii(address: str) -> None:
    kept = _redacted(f"mail: {address}, thanks")
    assert kept == "mail: [REDACTED:email], thanks"


@pytest.mark.parametrize("text", ["a@。", "见@张三", "x @ 北京.市场", "foo('a')@bar", "5@三.五"])
def test_what_is_no_address_stays(text: str) -> None:
    assert _redacted(text) == text


def test_phones_with_two_zeros_and_addresses_after_a_label() -> None:
    assert "152" not in _redacted("0044 161 152 4006")
    assert _redacted("0012345678901") == "0012345678901"
    assert "2a01" not in _redacted("登录IP：2a01:4f8:c17:b0f::2")
