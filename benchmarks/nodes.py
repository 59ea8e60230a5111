"""Nodes of a graph by their texts: counting words, embedding, searching.

    python benchmarks/nodes.py                     # the shared film graph, 5,000 of its nodes embedded
    python benchmarks/nodes.py --count 0           # all of them: some five minutes on two cores

Prints how many documents are written, counted and embedded in a second, and the time of a search: over all embedded
nodes, over the nodes that lie two steps from a person, and the first time, when their vectors are made on the way.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

import numpy as np

import clew
from clew.core.protocols import PropertyGraph
from clew.knowledge_base import registry
from clew.retrieve.nodes import NodeBM25, NodeChunkSearch, NodeTexts, NodeVectorSearch

FILMS = Path(__file__).parents[2] / "shared" / "data" / "metaqa" / "graph.tsv"


def size(folder: Path, pattern: str) -> float:
    """Return megabytes of the files below the folders that match."""
    return sum(file.stat().st_size for item in folder.rglob(pattern) for file in item.rglob("*")) / 1e6


def neighbourhoods(graph: PropertyGraph, count: int, seed: int) -> list[tuple[str, np.ndarray]]:
    """Return ``count`` names with the nodes one and two steps from each, at least 20."""
    draw = random.Random(seed)
    results: list[tuple[str, np.ndarray]] = []
    while len(results) < count:
        row = np.array([draw.randrange(graph.size)])
        rows = row
        for _ in range(2):
            near = [
                graph.neighbours(rows, relation, inverse)[1]
                for relation in graph.relations()
                for inverse in (False, True)
            ]
            rows = np.unique(np.concatenate([rows, *near]))[:500]
        if len(rows) >= 20:
            results.append((graph.entities(row)[0].name, rows))
    return results


def time_work(work: list[float]) -> str:
    """Return the median and the 95th percentile of milliseconds."""
    return f"{np.percentile(work, 50):.1f} | {np.percentile(work, 95):.1f}"


def measure(base: clew.KnowledgeBase, count: int, seed: int, searches: int) -> None:
    graph, encoder = base.graphs.get("films"), base.encoding.encoder()
    assert encoder is not None
    texts = NodeTexts(graph)
    started = time.perf_counter()
    words = sum(len(text.split()) for text in texts.documents(np.arange(0, graph.size, 8)))
    writing = len(range(0, graph.size, 8)) / (time.perf_counter() - started)
    started = time.perf_counter()
    NodeBM25(texts).postings()
    counting = graph.size / (time.perf_counter() - started)
    print(f"\n{graph.size:,} nodes, {words * 8 / graph.size:.0f} words a document, seed {seed}\n")
    print("| work | nodes/s | MB on disk |\n|---|---|---|")
    print(f"| writing documents | {writing:,.0f} | |")
    print(f"| writing and counting words | {counting:,.0f} | {size(base.path, 'words-*'):.1f} |")
    nearby = neighbourhoods(graph, searches, seed)
    search = NodeVectorSearch(encoder, texts)
    first = [elapsed_ms(lambda name=name, rows=rows: search.rank(name, 20, rows)) for name, rows in nearby]
    again = [elapsed_ms(lambda name=name, rows=rows: search.rank(name, 20, rows)) for name, rows in nearby]
    rows = np.array(
        sorted(random.Random(seed).sample(range(graph.size), count)) if count else range(graph.size)
    )
    vectors = graph.node_vectors(encoder, texts.document_name)
    started, missing = time.perf_counter(), len(vectors.rows_without_vectors(rows))
    vectors.encode_missing(rows, texts.single_texts)
    encoding = missing / max(time.perf_counter() - started, 1e-9)
    print(f"| embedding ({encoder.name}) | {encoding:,.0f} | {size(base.path, 'vectors-*'):.1f} |")
    whole = [elapsed_ms(lambda name=name: search.rank(name, 20, rows)) for name, _ in nearby]
    lexical = [elapsed_ms(lambda name=name: NodeBM25(texts).rank(name, 20)) for name, _ in nearby]
    chunks = NodeChunkSearch(search)
    multi = [elapsed_ms(lambda name=name, some=some: chunks.rank(name, 20, some)) for name, some in nearby]
    multi_again = [
        elapsed_ms(lambda name=name, some=some: chunks.rank(name, 20, some)) for name, some in nearby
    ]
    sizes = [len(some) for _, some in nearby]
    near = f"{min(sizes)} to {max(sizes)} nodes around a name"
    print(f"\n{searches} searches, each encoding its question\n")
    print("| search | nodes | ms p50 | p95 |\n|---|---|---|---|")
    print(f"| vss, vectors made on the way | {near} | {time_work(first)} |")
    print(f"| vss, vectors there | the same | {time_work(again)} |")
    print(f"| vss, all embedded | {len(rows):,} | {time_work(whole)} |")
    print(f"| multi-vss, chunks made on the way | {near} | {time_work(multi)} |")
    print(f"| multi-vss, chunks there | the same | {time_work(multi_again)} |")
    print(f"| bm25-nodes | {graph.size:,} | {time_work(lexical)} |")


def elapsed_ms(work: object) -> float:
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return (time.perf_counter() - started) * 1000


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=5000, help="nodes that are embedded; 0: all")
    parser.add_argument("--searches", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--encoder", default="clew:hops")
    chosen = parser.parse_args()
    if not FILMS.is_file():
        raise SystemExit(f"absent: {FILMS}")
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        base.encoding.set(chosen.encoder)
        registry.load_encoder(chosen.encoder).encode(["loads the model"])
        base.graphs.add(FILMS, name="films")
        measure(base, chosen.count, chosen.seed, chosen.searches)


if __name__ == "__main__":
    main()
