"""The YAML block: what is written is what PyYAML reads, and what people write is understood."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from palace_pipeline.transcripts import front_matter
from palace_pipeline.transcripts.front_matter import FrontMatterError, dump, entries, load, scalar, split, texts

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
keys = st.from_regex(r"[a-z_]{1,10}", fullmatch=True)


def test_the_form_of_every_type() -> None:
    values: dict[str, front_matter.Value] = {
        "title": "Why: does it break?",
        "model": "gpt-4o",
        "topic": "数据库连接池",
        "none": None,
        "empty": "",
        "day": date(2024, 5, 3),
        "at": datetime(2024, 5, 3, 14, 22, 31, 500000, UTC),
        "naive": datetime(2024, 5, 3, 14, 22, 31),
        "count": 12,
        "dated": False,
        "tags": ("a b", "#x"),
        "aliases": (),
    }
    assert dump(values) == (
        'title: "Why: does it break?"\nmodel: gpt-4o\ntopic: 数据库连接池\nnone:\nempty: ""\nday: 2024-05-03\n'
        "at: 2024-05-03T14:22:31.500000Z\nnaive: 2024-05-03T14:22:31\ncount: 12\ndated: false\n"
        'tags:\n  - a b\n  - "#x"\naliases: []\n'
    )
    read = yaml.safe_load(dump(values))
    assert read == {**values, "tags": ["a b", "#x"], "aliases": []}


@given(anything)
@example("yes")
@example("Null")
@example("2024-05-03")
@example("1e5")
@example("0x1f")
@example("~")
@example("- a")
@example("a: b")
@example("a #b")
@example("a ")
@example("\u2028\u0085\ufeff\x7f\uffff\U0001f600")
@example("---")
@example("\n---\n")
@example("@a")
@example("=")
def test_a_text_comes_back_from_any_yaml_reader(text: str) -> None:
    block = f"key: {scalar(text)}\nlist:\n  - {scalar(text)}\n"
    expected = {"key": text, "list": [text]}
    assert yaml.load(block, Loader=yaml.SafeLoader) == expected
    assert yaml.load(block, Loader=yaml.CSafeLoader) == expected
    assert load(block) == expected


yaml_lines = st.sampled_from(
    """a:|a: b|b: null|b: ~|null: x|n: y|a: []|tags:|  - x|  - "y z"|  -|- x|  more|a: "q"|a: "t\\n"|a: "t\\u0041"
a: 'q'|a: 12:|a: 12|d: 2024-05-03|d: 2024-05-03T01:02:03Z|a: b # c|# c|a: x: y|a:  b|a: b |b: yes|c: [x, y]|c: {x: y}
k k: v|a: "tab\there"|a: b\u0085c|a: 数|a: "数"|a: 1-|a: -1|a: b - c|a: b,c|a: @b|a: b@c|  b: c""".replace(
        "\n", "|"
    ).split("|")
)


@given(st.lists(yaml_lines, max_size=5))
def test_the_fast_way_reads_what_pyyaml_reads(lines: list[str]) -> None:
    block = "".join(f"{line}\n" for line in lines)
    fast = front_matter._load_own(block)
    if fast is not None:
        assert yaml.load(block, Loader=front_matter._Loader) == fast


def test_the_fast_way_is_the_usual_one() -> None:
    block = dump({"title": "a: b", "day": date(2024, 5, 3), "n": 1, "none": None, "tags": ("x", "y z"), "aliases": ()})
    assert front_matter._load_own(block) == load(block)
    assert front_matter._load_own(block) is not None


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    assert yaml.safe_load(scalar("a\ud800b")) == "a\ufffdb"


def test_scalars_that_people_write_stay_text() -> None:
    assert load("tags: [2024, true, 1.5, no]\nday: 2024-05-03\nnone: null\nempty:\n") == {
        "tags": ["2024", "true", "1.5", "no"],
        "day": "2024-05-03",
        "none": None,
        "empty": None,
    }


@pytest.mark.parametrize(
    "block", ["- a\n- b\n", "a: [\n", "1: x\n? [a]\n: b\n", "text\n", "a: !!python/none x\n", "a: \x01\n", "[" * 5000]
)
def test_what_is_no_mapping_is_refused_without_quoting_it(block: str) -> None:
    with pytest.raises(FrontMatterError) as caught:
        load(block)
    assert block.strip() not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "block", "rest"),
    [
        ("---\na: 1\n---\nbody", "a: 1\n", "body"),
        ("---\r\na: 1\r\nb: 2\r\n---\r\nbody", "a: 1\nb: 2\n", "body"),
        ("\n---  \na: 1\n--- \n", "a: 1\n", ""),
        ("---\n---\nbody", "", "body"),
        ("---\na: 1\n---", "a: 1\n", ""),
        ("---\na: '---'\nb: ---\n ---\n---\nx\n---\n", "a: '---'\nb: ---\n ---\n", "x\n---\n"),
        ("---\na: 1\n", None, "---\na: 1\n"),
        ("# no\n---\na: 1\n---\n", None, "# no\n---\na: 1\n---\n"),
        ("", None, ""),
    ],
)
def test_where_the_block_ends(text: str, block: str | None, rest: str) -> None:
    found, start = split(text)
    assert (found, text[start:]) == (block, rest)


def test_entries_keep_the_lines_as_written() -> None:
    block = (
        "a: 1 # one\n# comment\nlist:\n- x: y\n- z\n\n\"quoted: key\": 'v'\n'it''s': v\n"
        "url: http://example.org: x\nlong: >-\n  folded\n  key: no\n数: 值\n"
    )
    found = entries(block)
    assert "".join(lines for _, lines in found) == block
    assert [name for name, _ in found] == ["a", "", "list", "quoted: key", "it''s", "url", "long", "数"]


@given(st.dictionaries(keys, anything | st.none() | st.lists(anything), max_size=5))
def test_entries_of_a_dumped_block_are_its_keys(values: dict[str, str | list[str] | None]) -> None:
    block = dump(values)
    assert [name for name, _ in entries(block)] == list(values)
    assert all(load(lines) == {name: values[name]} for name, lines in entries(block))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ()),
        ("one", ("one",)),
        ("one, two words,,三", ("one", "two words", "三")),
        (["a, b", None, "c"], ("a, b", "c")),
    ],
)
def test_list_properties_as_people_write_them(value: object, expected: tuple[str, ...]) -> None:
    assert texts(value) == expected


@pytest.mark.parametrize("value", [{"a": "b"}, [["a"]], [{"a": "b"}]])
def test_what_is_no_list_of_texts_is_refused(value: object) -> None:
    with pytest.raises(FrontMatterError):
        texts(value)
