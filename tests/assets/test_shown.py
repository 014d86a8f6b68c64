"""What a stranger sees of an asset: its place in the flow, its columns, where they come from, its rows by day."""

from datetime import date

import dagster as dg

from assets.days import FLOW, POOL
from palace_pipeline.definitions import defs
from palace_pipeline.metadata import TABLES, page_lineage, page_schema, warehouse_lineage, warehouse_table_schema
from palace_pipeline.model import Conversation
from palace_pipeline.store import warehouse_schema
from palace_pipeline.transcripts.page import PageHead, render

SPECS = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}


def test_every_asset_says_where_it_stands_and_whether_it_holds_text() -> None:
    assert [step.number for step in FLOW.values()] == list(range(1, len(FLOW) + 1))
    graph = defs.resolve_asset_graph()
    for name, step in FLOW.items():
        spec = SPECS[name]
        assert (spec.description or "").startswith(f"Step {step.number} of {len(FLOW)}. "), name
        assert spec.tags["palace/text"] == step.text, name
        for parent in graph.get(spec.key).parent_keys:
            assert FLOW[parent.to_user_string()].number < step.number, name
        if spec.partitions_def is not None:
            assert "stays *missing*" in (spec.description or ""), name


def test_whatever_writes_to_the_home_is_in_its_pool() -> None:
    for definition in defs.assets or []:
        assert isinstance(definition, dg.AssetsDefinition)
        assert definition.op.pool == POOL


def test_tables_and_pages_show_columns_and_where_they_come_from() -> None:
    shown = {column.name for column in warehouse_table_schema().columns}
    assert shown == {f"{table}.{name}" for table, it in warehouse_schema.TABLES.items() for name in it.names}
    assert all(column.description for column in warehouse_table_schema().columns)
    properties = {column.name for column in page_schema().columns}
    for made, known in ((warehouse_lineage(), shown), (page_lineage(), properties)):
        assert set(made.deps_by_column) <= known
        for deps in made.deps_by_column.values():
            for dep in deps:
                assert dep.column_name in TABLES[dep.asset_key.to_user_string()]
    assert "messages.role" in warehouse_lineage().deps_by_column


def test_the_head_of_a_page_is_as_described() -> None:
    page = render(Conversation("chatgpt", "c1", []), PageHead(date(2024, 5, 3)))
    head = page.split("---\n")[1]
    written = [
        line.split(":")[0] for line in head.splitlines() if line[:1].isalpha() and not line.startswith("palace:")
    ]
    assert [column.name for column in page_schema().columns] == written
