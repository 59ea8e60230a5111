"""A small graph of who reports to whom."""

from __future__ import annotations

import pytest

import clew

EDGES = """head\trelation\ttail
Andrew\treports to\tNancy
Nancy\treports to\tOlga
Andrew\tworks in\tSales
Nancy\tworks in\tSales
Olga\tworks in\tResearch
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reading")
    (folder / "people.tsv").write_text(EDGES)
    with clew.open(folder / "kb", create=True) as base:
        base.graphs.add(folder / "people.tsv", name="people")
        yield base.store.snapshot().graph("people")
