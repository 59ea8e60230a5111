"""The whole of ``focus`` without a model: substitution, the sort by vectors, and filling up to 20 answers.

    python benchmarks/focus_engine.py --edges 2000000 --step import --folder F      # F exists; once
    python benchmarks/focus_pipeline.py --folder F --words                          # words counted first: once
    python benchmarks/focus_pipeline.py --folder F

The generated citation graph (:mod:`papers_graph`) is asked ``--number`` patterns of each form with a few words that
the answers should be about; answers are of the type of the unknown. Nothing is embedded before: the first time, the
vectors of the candidates (at most 500 for each question) are made on the way; then the same is asked again. Each
question gets 20 answers with the texts that ranked them. ``--words`` counts the words of all nodes, as the first half
of ``clew graph encode`` does; without them the nodes that fill up are chosen among the first 5,000 by id.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import clew
from clew.focus import Pattern, substitute
from clew.protocols import PropertyGraph
from clew.retrieve.entities import NodeSearch, Ranked, answer_rows, as_hits, sorted_and_filled
from clew.retrieve.nodetexts import NodeTexts
from graph_import import WORDS, memory
from papers_graph import patterns

K_MAX = 20


@dataclass(frozen=True)
class Took:
    """Seconds of each part of one question, how many candidates it had, and how many nodes were embedded for it."""

    substitution: float
    sort: float
    texts: float
    candidates: int
    embedded: int

    @property
    def whole(self) -> float:
        """Seconds of all parts."""
        return self.substitution + self.sort + self.texts


def asked(graph: PropertyGraph, search: NodeSearch, pattern: Pattern, text: str) -> Took:
    """Ask one question by the parts of ``focus``.

    The place to switch to ``base.ask(text, chain=..., recipe="focus")``: what is written here is its steps 2 and 3,
    with the pattern given; step 1 and 4, triples from a model and its reranking, are not part of this benchmark.
    """
    started = time.perf_counter()
    rows = substitute(graph, pattern).rows
    substituted = time.perf_counter()
    among = answer_rows(graph, pattern.variable(pattern.target).types)
    firm, rest = sorted_and_filled(search, text, rows, K_MAX, among)
    ranked = time.perf_counter()
    best = Ranked(firm.rows[:K_MAX], firm.scores[:K_MAX])
    hits = as_hits(search.texts, best) + as_hits(search.texts, rest)
    done = time.perf_counter()
    assert len(hits) == K_MAX, (len(hits), len(rows))
    embedded = sum(int(one.detail.get("embedded", 0)) for one in (firm, rest))
    return Took(substituted - started, ranked - substituted, done - ranked, len(rows), embedded)


def line(name: str, seconds: list[float]) -> str:
    """Return a line of the table."""
    low, high = np.percentile(np.array(seconds) * 1000, [50, 95])
    return f"| {name} | {low:,.2f} | {high:,.1f} |"


def measure(folder: Path, number: int, seed: int) -> None:
    """Ask everything twice and print what it took."""
    started = time.perf_counter()
    base = clew.open(folder / "kb")
    graph = base.graph("g")
    opened = time.perf_counter() - started
    if base.encoder() is None:
        base.set_encoder("clew:hops")
    encoder = base.encoder()
    assert encoder is not None
    encoder.encode(["loads the model"])
    search = NodeSearch(encoder, NodeTexts(graph))
    draw = np.random.default_rng(seed)
    questions = [
        (pattern, f"about {' and '.join(draw.choice(WORDS, 2, replace=False))}")
        for _, pattern in patterns(graph, number, seed)
    ]
    print(f"{graph.size:,} nodes; {len(questions)} questions, seed {seed}; open {opened:.2f} s", flush=True)
    for label in ("first", "again"):
        took = [asked(graph, search, *one) for one in questions]
        print(
            f"\n{label}: {sum(one.embedded for one in took):,} nodes embedded; candidates in the median "
            f"{np.median([one.candidates for one in took]):,.0f}, at most {max(one.candidates for one in took):,}\n"
        )
        print("| part | p50 ms | p95 ms |\n|---|---|---|")
        print(line("substitution", [one.substitution for one in took]))
        print(line("sort by vectors, fill up to 20", [one.sort for one in took]))
        print(line("texts of the 20", [one.texts for one in took]))
        print(line("whole", [one.whole for one in took]))
        if quiet := [one.whole for one in took if not one.embedded]:
            print(line(f"whole, the {len(quiet)} that embed nothing", quiet), flush=True)
    print(f"\npeak {memory():,.0f} MB, of which not mapped files {memory('RssAnon'):,.0f} MB at the end")
    base.close()


def count_words(folder: Path) -> None:
    """Count the words of all nodes."""
    with clew.open(folder / "kb") as base:
        texts = NodeTexts(base.graph("g"))
        started = time.perf_counter()
        base.graph("g").words(texts.document_name, texts.whole)
        print(f"words counted in {time.perf_counter() - started:.0f} s, peak {memory():,.0f} MB")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="where the generated graph lies")
    parser.add_argument("--number", type=int, default=3, help="patterns of each form")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--words", action="store_true", help="count the words of all nodes, and nothing else")
    chosen = parser.parse_args()
    if chosen.words:
        count_words(chosen.folder)
    else:
        measure(chosen.folder, chosen.number, chosen.seed)


if __name__ == "__main__":
    main()
