import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.core.types import Table
from clew.graph.structure import StructureGraph
from clew.parse.documents.builder import DocumentBuilder
from graph_corpora import finish_document


@pytest.fixture(scope="module")
def snapshot(lasting):
    builder = DocumentBuilder()
    builder.add_page(1)
    builder.add_heading(1, "Alpha")
    builder.add_paragraph("a1")
    builder.add_paragraph("a2")
    builder.add_page(2)
    builder.add_heading(2, "Beta")
    builder.add_paragraph("b1")
    builder.add_table(Table(("k", "v"), (("r1", "1"), ("r2", "2"))))
    builder.add_heading(1, "Gamma")
    builder.add_paragraph("g1")
    other = DocumentBuilder()
    other.add_heading(1, "Alpha")
    other.add_paragraph("o1")
    return lasting.snapshot([finish_document(builder, "one", pages=2), finish_document(other, "two")])


def name(node):
    if node.kind in {"passage", "row"}:
        return node.text
    called = node.page if node.kind == "page" else node.name
    return f"{node.kind} {called}" if called else node.kind


def row_of(snapshot, text, title="one"):
    for document in snapshot.documents():
        if document.title == title:
            start, end = snapshot.document_rows(document.key)
            nodes = snapshot.nodes(np.arange(start, end))
            return next(start + at for at, node in enumerate(nodes) if name(node) == text)
    raise AssertionError(text)


def neighbours(snapshot, relation, text):
    graph = StructureGraph(snapshot, (relation,))
    return {name(node) for node in snapshot.nodes(graph.neighbours(row_of(snapshot, text)))}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("relation", "node", "expected"),
    [
        ("next", "a2", {"a1", "b1"}),
        ("next", "b1", {"a2", "r1: v: 1"}),
        ("next", "a1", {"a2"}),
        ("next", "g1", {"r2: v: 2"}),
        ("next", "section Beta", set()),
        ("parent", "a1", {"section Alpha"}),
        ("parent", "r1: v: 1", {"table"}),
        ("parent", "section Alpha", {"document one", "a1", "a2", "section Beta"}),
        ("parent", "document one", {"section Alpha", "section Gamma", "page 1", "page 2"}),
        ("table", "r1: v: 1", {"r2: v: 2"}),
        ("table", "b1", set()),
        ("section", "a1", {"a2", "section Beta"}),
        ("section", "b1", {"table"}),
        ("section", "section Alpha", {"section Gamma"}),
        ("section", "r1: v: 1", set()),
        ("page", "a1", {"a2", "section Alpha", "page 1"}),
        ("page", "page 2", {"section Beta", "b1", "table", "r1: v: 1", "r2: v: 2", "section Gamma", "g1"}),
    ],
)
def test_each_relation_joins_what_the_document_joins(snapshot, relation, node, expected):
    assert neighbours(snapshot, relation, node) == expected


def test_a_document_without_pages_has_no_neighbours_by_page(snapshot):
    graph = StructureGraph(snapshot, ("page",))
    assert graph.neighbours(row_of(snapshot, "o1", "two")).tolist() == []


def test_all_relations_together_are_mutual_and_stay_in_the_document(snapshot):
    graph = StructureGraph(snapshot)
    assert graph.name == "structure"
    pairs = {(row, int(other)) for row in range(snapshot.size) for other in graph.neighbours(row)}
    assert pairs == {(b, a) for a, b in pairs}
    column = snapshot.column("document")
    assert all(column[a] == column[b] and a != b for a, b in pairs)


def test_the_closest_relation_is_the_reason(snapshot):
    graph = StructureGraph(snapshot)
    a1, a2, b1, first = (row_of(snapshot, text) for text in ("a1", "a2", "b1", "section Alpha"))
    assert graph.explain_edge(a1, a2) == "structure: next to it"
    assert graph.explain_edge(a1, first) == "structure: one stands in the other"
    assert StructureGraph(snapshot, ("page", "section")).explain_edge(a1, a2) == "structure: same section"
    assert graph.explain_edge(a1, b1) == ""


def test_the_relations_are_part_of_the_name_and_unknown_ones_are_refused(snapshot):
    assert StructureGraph(snapshot, ("table", "next")).name == "structure(relations=next+table)"
    with pytest.raises(UsageError, match="section"):
        StructureGraph(snapshot, ("sektion",))
