"""Facts that are overwritten where they stand, and the context that is put together of them within a budget."""

from __future__ import annotations

import secrets
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace_pipeline.workspace import memory, names
from palace_pipeline.workspace.api import Workspace
from palace_pipeline.workspace.context import assemble, estimated_tokens
from palace_pipeline.workspace.memory import lines_of, mentioned, set_entity, set_fact, set_preference, with_line
from tests.workspace.pages_for_tests import TS

# --- facts ---------------------------------------------------------------------------------------------------------------


def test_a_fact_said_again_is_overwritten_where_it_stands(workspace: Workspace) -> None:
    set_fact(workspace, "oven", "gas")
    set_fact(workspace, "城市", "上海")
    file = workspace.home / memory.FACTS
    file.write_text(file.read_text(encoding="utf-8") + "\nA remark by hand.\n", encoding="utf-8")
    set_fact(workspace, "Oven", "electric, 2019")
    assert file.read_text(encoding="utf-8") == "# Facts\n\n- Oven: electric, 2019\n- 城市: 上海\n\nA remark by hand.\n"
    assert memory.facts(workspace) == {"Oven": "electric, 2019", "城市": "上海"}


@pytest.mark.parametrize("line", ["- oven: gas", "* oven：gas", "- **oven**: gas", "- **oven:** gas", "+ oven : gas"])
def test_facts_as_people_write_them(line: str) -> None:
    assert lines_of(f"# Facts\n\n{line}\n") == {"oven": "gas"}


@given(
    st.text(alphabet="ab é城：\n-*# ", max_size=40),
    st.sampled_from(["a", "城", "b b"]),
    st.sampled_from(["1", "x: y", ""]),
)
def test_a_line_is_there_once_and_the_others_stay(text: str, key: str, value: str) -> None:
    text = text.replace("：", "")  # no fact lines before
    new = with_line(text, key, value)
    assert lines_of(new)[key] == value
    assert with_line(new, key, value) == new
    assert [line for line in new.split("\n") if line.strip() and line != f"- {key}: {value}"] == [
        line for line in text.rstrip("\n").split("\n") if line.strip() and line != f"- {key}: {value}"
    ]


def test_what_is_remembered_is_redacted(workspace: Workspace) -> None:
    secret = "Zq7" + secrets.token_hex(9) + "!k"
    set_fact(workspace, "password", secret)
    set_preference(workspace, "login", f"always with password {secret}")
    set_entity(workspace, "Jane Doe", "password", secret)
    for path in workspace.home.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path.name


def test_a_blank_key_is_refused(workspace: Workspace) -> None:
    with pytest.raises(ValueError):
        set_fact(workspace, " : ", "x")


def test_names_that_look_alike_in_a_file_name_have_files_of_their_own(workspace: Workspace) -> None:
    names = ["C++", "C#", "C", "🍋", "🍊", "甲公司", "x" * 60 + "a", "x" * 60 + "b", "Fennel & Daughters"]
    paths = [set_entity(workspace, name, "what", name) for name in names]
    assert len(set(paths)) == len(names)
    assert paths[2].name == "c.md"
    assert paths[5].name == "甲公司.md"
    assert [set_entity(workspace, f" {name.lower()}", "why", "again") for name in names] == paths
    found = {called[0]: text for _, called, text in memory.entities(workspace)}
    assert all(f"- what: {name}" in found[name] for name in names)


def test_an_entity_is_known_by_its_alias(workspace: Workspace) -> None:
    path = set_entity(workspace, "Jane Doe", "role", "technician")
    path.write_text(path.read_text(encoding="utf-8").replace("aliases: []", "aliases: [JD]"), encoding="utf-8")
    assert set_entity(workspace, "JD", "city", "Lyon") == path


def test_an_entity_has_a_page_that_its_names_and_aliases_find(workspace: Workspace) -> None:
    path = set_entity(workspace, "Jane Doe", "role", "technician")
    path.write_text(path.read_text(encoding="utf-8").replace("aliases: []", "aliases: [老王, JD]"), encoding="utf-8")
    ((found, called, text),) = memory.entities(workspace)
    assert (found, called) == (path, ("Jane Doe", "老王", "JD"))
    assert "- role: technician" in text
    assert mentioned(called, "ask jane doe about it")
    assert mentioned(called, "老王说好了")
    assert not mentioned(called, "the JDK is old")


# --- context -------------------------------------------------------------------------------------------------------------


def _workspace_with_past(workspace: Workspace) -> str:
    set_fact(workspace, "oven", "gas, 2019")
    set_preference(workspace, "language", "中文")
    set_entity(workspace, "Jane Doe", "role", "technician")
    set_entity(workspace, "Nobody", "role", "unknown")
    for number in range(3):
        page = workspace.new(f"Past {number}", ts=TS - timedelta(days=number + 1))
        workspace.close(page.id, f"Result {number}. More of it.")
    page = workspace.new("Now", input="烤箱坏了", ts=TS)
    workspace.append(page.id, "judgement", "温控器坏了", at=TS + timedelta(minutes=1))
    return page.id


def test_the_order_is_facts_recent_this_session_input(workspace: Workspace) -> None:
    session = _workspace_with_past(workspace)
    found = assemble(workspace, "What did Jane Doe say?", session=session)
    places = [found.text.index(text) for text in ("## Facts", "## Recent", "## This session", "## Input")]
    assert places == sorted(places)
    for text in (
        "oven: gas, 2019",
        "language: 中文",
        "technician",
        "Past 0: Result 0.",
        "温控器坏了",
        "What did Jane Doe say?",
    ):
        assert text in found.text
    assert "unknown" not in found.text, "an entity that nobody mentions"
    assert found.text.index("Past 0") < found.text.index("Past 2"), "the youngest first"
    assert found.text.index("烤箱坏了") < found.text.index("温控器坏了")
    assert found.left_out == []
    assert found.tokens <= found.budget


def test_what_does_not_fit_is_named(workspace: Workspace) -> None:
    session = _workspace_with_past(workspace)
    set_fact(workspace, "long", "x" * 480)
    found = assemble(workspace, "hello", session=session, tokens=200)
    assert {"part": "facts", "what": "fact: long", "tokens": estimated_tokens("- long: " + "x" * 480)} in found.left_out
    assert "x" * 480 not in found.text
    assert found.tokens <= 200
    assert "hello" in found.text


def test_shares_are_kept_and_the_input_is_never_pushed_out(workspace: Workspace) -> None:
    session = _workspace_with_past(workspace)
    text = "word " * 150  # 190 tokens of 200
    found = assemble(workspace, text, session=session, tokens=200)
    assert text in found.text
    assert found.tokens <= 200
    assert {one["part"] for one in found.left_out} >= {"recent", "session"}
    cut = assemble(workspace, "word " * 1000, tokens=200)
    assert cut.tokens <= 200
    assert any(one["what"] == "the end of the input" for one in cut.left_out)


def test_older_ones_are_referred_to_when_they_have_a_share(workspace: Workspace) -> None:
    for number in range(25):
        workspace.new(
            f"Topic {number}", summary="bike" if number else "the oven thermostat", ts=TS - timedelta(days=30 - number)
        )
    found = assemble(workspace, "our oven thermostat", shares=(15, 15, 10, 60))
    assert "## Older" in found.text
    assert "Topic 0 (sessions/" in found.text
    assert "Topic 3 (sessions/" not in found.text
    assert "## Older" not in assemble(workspace, "our oven thermostat").text


@pytest.mark.parametrize("shares", [(50, 50, 50, 50), (-1, 0, 0, 0)])
def test_shares_are_of_a_whole(workspace: Workspace, shares: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="100"):
        assemble(workspace, "x", shares=shares)


def test_tokens_can_be_counted_otherwise(workspace: Workspace) -> None:
    found = assemble(workspace, "a b c", count=lambda text: len(text.split()), counted="words")
    assert (found.tokens, found.counted) == (3, "words")


def test_the_estimate_counts_chinese_by_character() -> None:
    assert estimated_tokens("温控器坏了") == 5
    assert estimated_tokens("abcdefgh") == 2
    assert estimated_tokens("") == 0


def test_sessions_of_a_clock_that_was_ahead_do_not_push_out_the_recent_ones(workspace: Workspace) -> None:
    now = workspace.now()
    for days in (20_000, 400, 2):
        workspace.new(f"Ahead {days}", ts=now + timedelta(days=days))
    session = workspace.new("Now", input="x").id
    workspace.new("Before", ts=now - timedelta(days=1))
    assert next(names.id_of(path) for path in workspace.sessions()) == session
    text = assemble(workspace, "hello").text
    assert text.index("Now") < text.index("Before") < text.index("Ahead")


def test_preferences_and_entities_can_be_told_from_facts(workspace: Workspace) -> None:
    _workspace_with_past(workspace)
    text = assemble(workspace, "Jane Doe").text
    assert "- oven: gas, 2019\n- language: 中文 (preference)\n\n### Jane Doe\n\n- role: technician\n" in text


def test_an_entity_that_cannot_be_read_is_noted_and_left_out(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    _workspace_with_past(workspace)
    real = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name == "nobody.md":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    assert "technician" in assemble(workspace, "Jane Doe and Nobody").text
    assert "nobody.md" in (workspace.home / "logs/errors.md").read_text(encoding="utf-8")
