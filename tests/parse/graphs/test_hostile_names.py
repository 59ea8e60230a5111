"""Names of graphs are clean however a file is read: in blocks, in batches or row by row."""

import json
from pathlib import Path

import pytest

import clew
from clew.core.text import clean_name, has_hidden
from clew.store.graphs.graph_edits import GraphEdits
from hostile_names import TEXTS

LINES = [name for name in TEXTS if "\n" not in name and "\r" not in name]


def stored_names(kb: Path) -> set[str]:
    with clew.open(kb) as base:
        graph = base.graphs.get("g")
        names = set(graph.relations())
        for entity in graph.entities(range(graph.size)):
            names |= {entity.id, entity.name, entity.type, *entity.aliases, *entity.properties}
    return names


@pytest.mark.parametrize("plain", [0, 3_000], ids=["alone", "among plain rows"])
@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_triples(tmp_path, suffix, delimiter, plain) -> None:
    rows = [("head", "relation", "tail"), *((f"p{n}", "r", f"q{n}") for n in range(plain))]
    rows += [(f"H {name}", f"R {name}", f"T {name}") for name in LINES if delimiter not in name]
    (tmp_path / f"g{suffix}").write_text("\n".join(map(delimiter.join, rows)), newline="")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.add(tmp_path / f"g{suffix}", name="g")
    names = stored_names(tmp_path / "kb")
    assert not any(map(has_hidden, names))
    for name in LINES:
        if delimiter not in name:
            assert (f"R {name}" in names) == (clean_name(name) == name)
            assert clean_name(f"R {name}") in names and f"g:{clean_name(f'T {name}')}" in names


@pytest.mark.parametrize("plain", [0, 3_000], ids=["alone", "among plain rows"])
def test_tables_of_nodes(tmp_path, plain) -> None:
    header = ["id", "type", "name", "aliases", "text", "year\x1b[2J:int"]
    rows = [[f"p{n}", "t", f"plain {n}", "", "a text", "1901"] for n in range(plain)]
    rows += [[f"{name}", f"T {name}", f"N {name}", f"A {name}", f"say {name}", "1902"] for name in LINES]
    rows = [["".join(c for c in cell if c not in ',;"') for cell in row] for row in [header, *rows]]
    (tmp_path / "g.csv").write_text("\n".join(map(",".join, rows)), newline="")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.add(tmp_path / "g.csv", name="g")
        texts = {entity.text for entity in base.graphs.get("g").entities(range(base.graphs.get("g").size))}
    names = stored_names(tmp_path / "kb")
    assert not any(map(has_hidden, names)) and "year" in names
    assert any("\x07" in text for text in texts)  # texts are as the file has them


def test_edits_name_nodes_as_files_do(tmp_path) -> None:
    lines = [json.dumps({"head": f"H {name}", "relation": f"R {name}", "tail": "end"}) for name in LINES]
    (tmp_path / "g.jsonl").write_text("\n".join([*lines, '["a", "b", "c"]']))
    edits = GraphEdits()
    for name in LINES:
        edits.remove_edge(f"H {name}", f"R {name}", "end")
        edits.add_node(
            f"new {name}", name=f"called {name}", types=[name], aliases=[name], properties={name: name}
        )
        edits.add_edge("a", f"to {name}", f"new {name}")
        assert edits.has_node(f"new {name}")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.add(tmp_path / "g.jsonl", name="g")
        report = base.graphs.edit("g", edits)
        assert (
            report.counts.edges_removed == len({clean_name(name) for name in LINES})
            and not report.counts.missing
        )
    assert not any(map(has_hidden, stored_names(tmp_path / "kb")))
