"""Every query of docs/sql.md runs on a small warehouse, through the same door as `palace sql`."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from palace_pipeline.store.sql import query, to_json_rows
from palace_pipeline.store.stats import VIEWS
from palace_pipeline.store.warehouse import publish
from palace_pipeline.store.warehouse_schema import TABLES
from tests.store.lake_builder import at, conversation, talk, together, write

COOKBOOK = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```sql\n(.*?)^```$", COOKBOOK, flags=re.MULTILINE | re.DOTALL)
NOTHING_HERE = ("put-an-id-here",)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which every query of the cookbook has something to find."""
    home = tmp_path_factory.mktemp("home")
    room = {"first_seq": 0, "last_seq": 1, "wing": "work", "room": "coding"}
    found = [{"seq": 0, "kind": "email", "fingerprint": "f"}]
    priced = [{**m, "model": "m-1", "cost": 0.01, "tokens_out": 9} for m in talk(at("2024-01-05T09:00:00"), "a", "b")]
    again = talk(at("2024-05-01T09:00:00"), "retry?", "retry.", "thanks", step=timedelta(days=9))
    people = [
        {"role": "user", "speaker": "Ann", "text": "hi", "created_at": at("2024-05-03T09:00:00")},
        {"role": "tool", "kind": "tool_call", "tool_name": "grep", "created_at": at("2024-05-03T09:01:00")},
    ]
    write(
        home,
        together(
            [
                conversation("chatgpt", "one", date(2024, 1, 5), priced, drawers=[room], findings=found, title="One"),
                conversation("chatgpt", "two", date(2024, 5, 1), again, drawers=[room], findings=found, title="Two"),
                conversation("slack", "three", date(2024, 5, 3), people, drawers=[room], parent_conversation_id="four"),
                conversation("slack", "four", date(2024, 5, 4), people),
            ]
        ),
    )
    exports: list[dict[str, Any]] = [{"path": "a.zip", "status": "unreadable", "conversations": 0}]
    skips: list[dict[str, Any]] = [{"path": "a.zip", "place": "x", "reason": "r", "expected": False, "count": 1}]
    publish(home, None, exports=exports, skips=skips, pages={("chatgpt", "one"): "conversations/one.md"})
    return home


def test_the_cookbook_is_found() -> None:
    assert len(QUERIES) >= 12


@pytest.mark.parametrize("sql", QUERIES, ids=lambda sql: " ".join(sql.split())[:50])
def test_a_query_of_the_cookbook_answers(home: Path, sql: str) -> None:
    rows = to_json_rows(*query(home, sql))
    assert rows or any(word in sql for word in NOTHING_HERE)
    json.dumps(rows, allow_nan=False)


def test_the_cookbook_names_all_tables_and_only_views_that_exist() -> None:
    assert all(f"`{table}`" in COOKBOOK for table in TABLES)
    assert set(re.findall(r"\bv_\w+", COOKBOOK)) <= {view.name for view in VIEWS}
