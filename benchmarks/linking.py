"""Linking: names and relation words to a graph.

    python benchmarks/linking.py names                      # the shared film graph, 2,000 names for each change
    python benchmarks/linking.py names --generate 2000000   # the same in a graph of two million generated names
    python benchmarks/linking.py names --encoder clew:hops  # what the vectors of names add
    python benchmarks/linking.py others --encoder clew:hops # the other names that 2Wiki has for a thing
    python benchmarks/linking.py triples --encoder clew:hops --encoder onnx:FOLDER

``names`` draws names of a graph by ``--seed``, changes each (``benchmarks/perturbed.py``) and looks for the node.
``triples`` puts the gold triples of the shared 2WikiMultihopQA questions into one graph with the film graph
(``benchmarks/gold_triples.py``) and links the head and the relation of each: as given, the relation in other words
(``relation_paraphrases.tsv``, written before any linker was run), the head's name changed.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import clew
from clew.core.protocols import Encoder, PropertyGraph
from clew.core.text import fold_name
from clew.knowledge_base import registry
from clew.triples.linking.entities import GraphEntityLinker
from clew.triples.linking.nearest_names import NAME_VECTORS, NearestNames, node_names
from gold_triples import (
    FILMS,
    gold,
    measure_both,
    measure_entities,
    measure_relations,
    mentions,
    merge_graphs,
)
from perturbed import CHANGES


def film_names() -> list[str]:
    """Return the names of the film graph, sorted."""
    lines = FILMS.read_text(encoding="utf-8").splitlines()
    return sorted({end for line in lines for end in line.split("\t")[::2]})


def generate_graph(folder: Path, count: int, seed: int) -> Path:
    """Write a graph of different names, of two to four words of the film graph's names each."""
    draw = random.Random(seed)
    words = sorted({word for name in film_names() for word in name.split()})
    path = folder / "names.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "name"])
        seen: set[str] = set()
        while len(seen) < count:
            name = " ".join(draw.choices(words, k=draw.choice((2, 2, 2, 3, 3, 4))))
            if name in seen:
                continue
            writer.writerow([f"n{len(seen)}", name])
            seen.add(name)
    return path


@contextmanager
def import_graph(path: Path) -> Iterator[PropertyGraph]:
    """Yield the graph of a file, added to a base of its own; print what that took."""
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        started = time.perf_counter()
        report = base.graphs.add(path, name="g")
        seconds = time.perf_counter() - started
        index = sum(
            file.stat().st_size
            for pattern in ("names.*", "grams.*")
            for file in Path(folder).rglob(pattern)
            if "graphs" in file.parts
        )
        print(f"{report.graph.nodes:,} nodes, added in {seconds:.1f} s; index of names {index / 1e6:.1f} MB")
        yield base.graphs.get("g")


def film_asked(graph: PropertyGraph, count: int, seed: int) -> dict[str, list[tuple[str, str]]]:
    """Return for each change ``count`` names of the graph, changed, with the ids of their nodes."""
    draw = random.Random(seed)
    rows = np.array(draw.sample(range(graph.size), min(8 * count, graph.size)))
    named = list(zip(graph.ids(rows), graph.entities(rows), strict=True))
    return {
        label: [
            (change(item.name, draw), id)
            for id, item in [item for item in named if fits(item[1].name)][:count]
        ]
        for label, (change, fits) in CHANGES.items()
    }


def print_shared(graph: PropertyGraph) -> None:
    """Print how many nodes share their name, as graphs compare names, and what guessing among equals finds."""
    chunks = (np.arange(start, min(start + 10_000, graph.size)) for start in range(0, graph.size, 10_000))
    counts = Counter(fold_name(entity.name) for chunk in chunks for entity in graph.entities(chunk))
    shared = sum(count for count in counts.values() if count > 1) / graph.size
    print(
        f"{100 * shared:.1f} % of the nodes share their folded name with another; "
        f"guessing among equals finds {len(counts) / graph.size:.3f}"
    )


def measure_names(
    graph: PropertyGraph, asked: dict[str, list[tuple[str, str]]], encoders: dict[str, Encoder]
) -> None:
    """Print recall of the right node at 1 and 5, and milliseconds per name, for each change: by the index of names
    alone, by the linker, which knows capitals and edges, and by the linker with the vectors of names."""

    def similar(name: str) -> list[str]:
        return graph.ids(graph.find_similar_names(name, 5)[0])

    def linking(linker: GraphEntityLinker) -> Callable[[str], list[str]]:
        return lambda name: [item.id for item in linker.link(graph, [name])[0]]

    ways = {"`similar`": similar, "linker": linking(GraphEntityLinker())}
    for called, encoder in encoders.items():
        vectors, rows = graph.node_vectors(encoder, NAME_VECTORS), np.arange(graph.size)
        started = time.perf_counter()
        result = vectors.encode_missing(rows, lambda some: node_names(graph, some))
        seconds = time.perf_counter() - started
        print(
            f"\n{result:,} names embedded by {called} in {seconds:.1f} s ({result / seconds:,.0f} a second)"
        )
        ways[f"linker and {called}"] = linking(GraphEntityLinker(nearest=NearestNames(encoder)))
    print(
        "\n| names | way | count | at 1 | at 5 | ms per name | of the processor |\n|---|---|---|---|---|---|---|"
    )
    for label, items in asked.items():
        for called, find in ways.items():
            find("warm up")
            started, before = time.perf_counter(), time.process_time()
            results = [find(name) for name, _ in items]
            ms = (time.perf_counter() - started) / max(len(items), 1) * 1000
            processor = (time.process_time() - before) / max(len(items), 1) * 1000
            shares = [
                sum(id in ids[:k] for (_, id), ids in zip(items, results, strict=True)) / max(len(items), 1)
                for k in (1, 5)
            ]
            print(
                f"| {label} | {called} | {len(items):,} | {shares[0]:.3f} | {shares[1]:.3f} "
                f"| {ms:.2f} | {processor:.2f} |",
                flush=True,
            )


def other_names(folder: Path) -> tuple[Path, list[tuple[str, str]]]:
    """Write the film graph and the things of 2Wiki under their most frequent names as one graph; return it, and the
    other names that 2Wiki has for them, each with its node's id: real ones, often not spelled alike."""
    _, names, _, _ = gold()
    path, others = folder / "others.jsonl", []
    with path.open("w", encoding="utf-8") as file:
        for id, counted in names.items():
            first, *more = sorted(counted, key=lambda name: (-counted[name], name))
            file.write(json.dumps({"id": id, "name": first}, ensure_ascii=False) + "\n")
            others += [(name, f"g:{id}") for name in more]
        for name in film_names():
            file.write(json.dumps({"id": f"film {name}", "name": name}, ensure_ascii=False) + "\n")
    return path, others


def main() -> None:
    """Run one of the three."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("names", "others", "triples"))
    parser.add_argument("--count", type=int, default=2000, help="names for each change")
    parser.add_argument(
        "--generate", type=int, default=0, help="names of a generated graph, instead of films"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--encoder", action="append", default=[], help="compare this encoder, by its name")
    parser.add_argument("--weight", action="append", type=float, default=[], help="its share among relations")
    parser.add_argument("--only", choices=("entities", "relations", "both"), help="this table alone")
    chosen = parser.parse_args()
    if not FILMS.is_file():
        raise SystemExit(f"absent: {FILMS}")
    if chosen.what != "triples":
        encoders = {name: registry.load_encoder(name) for name in chosen.encoder}
        with tempfile.TemporaryDirectory() as folder:
            others = None
            path = generate_graph(Path(folder), chosen.generate, chosen.seed) if chosen.generate else FILMS
            if chosen.what == "others":
                path, others = other_names(Path(folder))
            with import_graph(path) as graph:
                print_shared(graph)
                asked = {"other names": others} if others else film_asked(graph, chosen.count, chosen.seed)
                print(f"seed {chosen.seed}")
                measure_names(graph, asked, encoders)
        return
    with tempfile.TemporaryDirectory() as folder:
        path, triples, entities = merge_graphs(Path(folder))
        with import_graph(path) as graph:
            encoders = {name: registry.load_encoder(name) for name in chosen.encoder or ["clew:hops"]}
            changed = mentions(triples, entities, chosen.seed)
            print(
                f"{len(triples)} triples of {len({triple.question for triple in triples})} questions, "
                f"seed {chosen.seed}"
            )
            if chosen.only in {None, "relations"}:
                measure_relations(graph, triples, encoders, chosen.weight or [1.0, 0.6])
            if chosen.only in {None, "entities"}:
                measure_entities(graph, changed, encoders)
            if chosen.only in {None, "both"}:
                for called, encoder in {"no encoder": None, **encoders}.items():
                    measure_both(graph, changed, encoder, called)


if __name__ == "__main__":
    main()
