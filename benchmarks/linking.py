"""Linking: names and relation words to a graph.

    python benchmarks/linking.py names                      # spelling alone: the shared film graph, 2,000 names
    python benchmarks/linking.py names --generate 2000000   # the same in a graph of two million generated names
    python benchmarks/linking.py triples                    # the gold triples of the 2Wiki questions in the film graph

``names`` draws names of a graph by ``--seed``, changes each (``benchmarks/perturbed.py``) and asks ``similar`` for the
node. ``triples`` merges the gold triples of the shared 2WikiMultihopQA questions into the film graph, adds it with ``clew
graph add``, and links the head and the relation of each triple: as given, the relation in other words
(``benchmarks/data/relation_paraphrases.tsv``), the head's name changed.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perturbed import CHANGES

import clew
from clew.protocols import PropertyGraph

SHARED = Path(__file__).parents[2] / "shared" / "data"
FILMS = SHARED / "metaqa" / "graph.tsv"


def film_names() -> list[str]:
    """Return the names of the film graph, sorted."""
    lines = FILMS.read_text(encoding="utf-8").splitlines()
    return sorted({end for line in lines for end in line.split("\t")[::2]})


def generated(folder: Path, count: int, seed: int) -> Path:
    """Write a graph of names made of the words of the film graph's names, one to four words each."""
    draw = random.Random(seed)
    words = sorted({word for name in film_names() for word in name.split()})
    path = folder / "names.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            name = " ".join(draw.choices(words, k=draw.choice((1, 2, 2, 2, 3, 3, 4))))
            file.write(json.dumps({"id": f"n{number}", "name": name}, ensure_ascii=False) + "\n")
        file.write('["n0", "next", "n1"]\n')
    return path


@contextmanager
def imported(path: Path) -> Iterator[PropertyGraph]:
    """Yield the graph of a file, added to a base of its own; print what that took."""
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        started = time.perf_counter()
        report = base.add_graph(path, name="g")
        seconds = time.perf_counter() - started
        index = sum(
            file.stat().st_size
            for pattern in ("names.*", "grams.*")
            for file in Path(folder).rglob(pattern)
            if "graphs" in file.parts
        )
        print(f"{report.graph.nodes:,} nodes, added in {seconds:.1f} s; index of names {index / 1e6:.1f} MB")
        yield base.graph("g")


def measure_names(graph: PropertyGraph, count: int, seed: int) -> None:
    """Print recall of the right node at 1 and 5, and milliseconds per name, for each change."""
    draw = random.Random(seed)
    rows = draw.sample(range(graph.size), min(8 * count, graph.size))
    import numpy as np

    names = [(row, one.name) for row, one in zip(rows, graph.entities(np.array(rows)), strict=True)]
    graph.similar("warm up", 5)
    print(
        f"\nseed {seed}\n\n| change | names | at 1 | at 5 | at 20 | ms per name |\n|---|---|---|---|---|---|"
    )
    for label, (change, fits) in CHANGES.items():
        asked = [(row, change(name, draw)) for row, name in [one for one in names if fits(one[1])][:count]]
        started = time.perf_counter()
        found = [graph.similar(name, 20)[0].tolist() for _, name in asked]
        ms = (time.perf_counter() - started) / max(len(asked), 1) * 1000
        shares = [
            sum(row in one[:k] for (row, _), one in zip(asked, found, strict=True)) / max(len(asked), 1)
            for k in (1, 5, 20)
        ]
        print(
            f"| {label} | {len(asked):,} | "
            + " | ".join(f"{share:.3f}" for share in shares)
            + f" | {ms:.2f} |"
        )


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("names", "triples"))
    parser.add_argument("--count", type=int, default=2000, help="names for each change")
    parser.add_argument(
        "--generate", type=int, default=0, help="names of a generated graph, instead of films"
    )
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    if not FILMS.is_file():
        raise SystemExit(f"absent: {FILMS}")
    if chosen.what == "names":
        with tempfile.TemporaryDirectory() as folder:
            path = generated(Path(folder), chosen.generate, chosen.seed) if chosen.generate else FILMS
            with imported(path) as graph:
                measure_names(graph, chosen.count, chosen.seed)


if __name__ == "__main__":
    main()
