from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.exports.old_encodings import decode_old
from palace_pipeline.exports.text import decode

TEXTS = {
    "gb18030": "三月十四日　晴\n\n今天出海。风三级，浪不大。TODO: 检查 Python 脚本。",
    "gbk": "note: 今天 ok\nmore ascii",
    "big5": "今天出海，風三級，浪不大。下午兩點回港，一切正常。",
    "cp932": "今日は海に出た。風は弱く、波も静かだった。ｶﾞ",
    "euc-jp": "今日は海に出た。風は弱く、波も静かだった。",
    "euc-kr": "오늘은 바다에 나갔다. 바람이 약하고 파도도 잔잔했다.",
    "cp1251": "Сегодня вышли в море. Ветер слабый, волна небольшая.",
    "koi8-r": "Сегодня вышли в море. Ветер слабый, волна небольшая.",
    "cp1252": "Liste für die Werft – „Öl“ wechseln, größere Schäkel: 5 €",
    "latin-1": "Où est la bouée verte ? À tribord « en entrant », déjà créée",
}


@pytest.mark.parametrize(("encoding", "text"), TEXTS.items())
def test_old_encodings_are_recognised(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize(("encoding", "text"), TEXTS.items())
def test_a_long_text_cut_inside_a_character(encoding: str, text: str) -> None:
    data = (text * 3000).encode(encoding)[:-1]
    found = decode(data)
    assert found is not None
    assert found.startswith(text)


def test_a_broken_byte_in_utf8_breaks_one_character() -> None:
    data = ("今天出海，风三级。" * 3).encode()
    found = decode(data[:4] + b"\xff" + data[4:])
    assert found is not None
    assert found.startswith("今")
    assert found.endswith("海，风三级。")


@given(st.binary(max_size=60))
def test_nothing_is_undecodable(data: bytes) -> None:
    assert isinstance(decode_old(data), str)


_WORD = st.tuples(
    st.text("abcdefgh", min_size=1, max_size=4), st.text("äöüßéèñç", max_size=2), st.text("ehnrst", max_size=3)
)


@given(st.lists(_WORD.map("".join), max_size=12).map(" ".join))
def test_western_text_is_never_taken_for_another(text: str) -> None:
    assert decode_old(text.encode("cp1252")) == text
