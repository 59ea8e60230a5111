"""Two pairs of graphs that know the same things under other ids and names, and that identifiers join."""

from __future__ import annotations

import csv
from pathlib import Path

import clew

Rows = list[tuple[str, ...]]

#: id, name, type, identifier, year.
OWNERS: Rows = [
    ("ann", "Ann Tarrow", "person"),
    ("bo", "Bo Lindqvist", "person"),
    ("cato", "Cato Venn", "person"),
    ("petrel", "Grey Petrel", "ship", "Q901"),
    ("sable", "Sable", "ship", "Q902"),
    ("hook", "Marl Hook", "ship", "Q903"),
    ("ebb", "Ebb Tide", "ship", "Q904"),
    ("curlew", "Curlew", "ship"),
    ("harrow", "Harrow Mutual", "company"),
    ("tide", "Tidewater Fund", "company"),
]
OWNED: Rows = [
    ("ann", "owns", "petrel"),
    ("ann", "owns", "sable"),
    ("bo", "owns", "sable"),
    ("bo", "owns", "hook"),
    ("cato", "owns", "ebb"),
    ("cato", "owns", "curlew"),
    ("harrow", "insures", "petrel"),
    ("harrow", "insures", "hook"),
    ("tide", "insures", "sable"),
    ("tide", "insures", "ebb"),
]
YARDS: Rows = [
    ("y1", "Grey Petrel", "vessel", "Q901", "1951"),
    ("y2", "Hull 88", "vessel", "Q902", "1963"),
    ("y3", "Marl Hook", "vessel", "Q903", "1970"),
    ("y4", "Ebb Tide", "vessel", "Q904", "1948"),
    ("y5", "Curlew", "vessel", "", "1940"),
    ("orrin", "Orrin Yard", "shipyard"),
    ("lock", "Lock & Mast", "shipyard"),
    ("ilse", "Ilse Krahn", "designer"),
    ("tove", "Tove Aske", "designer"),
]
BUILT: Rows = [
    ("y1", "builtBy", "orrin"),
    ("y2", "builtBy", "lock"),
    ("y3", "builtBy", "orrin"),
    ("y4", "builtBy", "lock"),
    ("y5", "builtBy", "orrin"),
    ("y1", "designedBy", "ilse"),
    ("y2", "designedBy", "ilse"),
    ("y3", "designedBy", "tove"),
    ("y4", "designedBy", "tove"),
]


def write_nodes(path: Path, nodes: Rows) -> Path:
    """Write a table of nodes, and return where it is."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "name", "type", "wikidata", "launched"))
        rows.writerows((*node, *[""] * (5 - len(node))) for node in nodes)
    return path


def add_graph(base: clew.KnowledgeBase, folder: Path, name: str, nodes: Rows, edges: Rows) -> None:
    """Add a graph from tables of its nodes and edges."""
    path = folder / f"{name}-edges.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("head", "relation", "tail"), *edges])
    base.graphs.add(name=name, nodes=[write_nodes(folder / f"{name}-nodes.csv", nodes)], edges=[path])


def add_fleet(base: clew.KnowledgeBase, folder: Path) -> None:
    """Add who owns ships, and who built them."""
    add_graph(base, folder, "owners", OWNERS, OWNED)
    add_graph(base, folder, "yards", YARDS, BUILT)
