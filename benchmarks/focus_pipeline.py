"""The whole of ``focus`` without a model: names to nodes, substitution, the sort by vectors, filling up to 20
answers, and what each meets.

    python benchmarks/focus_engine.py --edges 2000000 --step import --folder F      # F exists; once
    python benchmarks/focus_pipeline.py --folder F --words                          # words counted first: once
    python benchmarks/focus_pipeline.py --folder F

The generated citation graph (:mod:`papers_graph`) is asked ``--number`` questions of each form, as typed triples in
text with the names of their constants and two words that the answers should be about: ``ask --triples``. Nothing is
embedded before: the first time, vectors are made on the way, at most 500 for the candidates and 60 for what fills up;
then the same is asked again. ``--words`` counts the words of all nodes, as the first half of ``clew graph encode``
does; without them what fills up is chosen among the first 5,000 nodes by id, which are read for every question.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import clew
from clew.core.protocols import PropertyGraph
from clew.retrieve.nodes import NodeTexts
from clew.triples.engine.patterns import Pattern
from graph_import import WORDS, memory
from papers_graph import patterns


@dataclass(frozen=True)
class Took:
    """Seconds of one question: of each step that its trail names, and of all; how many answers its triples left, and
    how many nodes were embedded for it."""

    steps: dict[str, float]
    whole: float
    processor: float
    candidates: int
    embedded: int


def text_of(graph: PropertyGraph, pattern: Pattern) -> str:
    """Return a pattern as a person writes it: constants by their names and types, the target as #1."""
    others = [variable for variable in pattern.variables if variable.name != pattern.target]
    number = {pattern.target: "#1"} | {other.name: f"#{n}" for n, other in enumerate(others, 2)}
    texts = [f"{number[variable.name]} : {' or '.join(variable.types)}" for variable in pattern.variables]
    for constant in pattern.constants:
        (entity,) = graph.entities(np.array(constant.rows))
        number[constant.name] = entity.name
        texts.append(f"{entity.name} : {entity.type}")
    texts += [
        f"{number[triple.head]} >> {triple.relations[0].relation} >> {number[triple.tail]}"
        for triple in pattern.triples
    ]
    return "; ".join([*texts, "final answer: #1"])


def ask(base: clew.KnowledgeBase, question: str, triples: str) -> Took:
    """Ask one question."""
    started, before = time.perf_counter(), time.process_time()
    answer = base.ask(question, chain=triples, recipe="focus")
    whole, processor = time.perf_counter() - started, time.process_time() - before
    steps: dict[str, float] = {}
    embedded = stored = 0
    for step in answer.trail:
        steps[step.name] = steps.get(step.name, 0.0) + step.seconds
        if step.name == "sort":
            stored = step.detail.get("kept by the triples", 0)
            parts = (step.detail.get(name, {}) for name in ("sorted", "filling"))
            embedded += sum(part.get("embedded", 0) for part in parts)
    return Took(steps, whole, processor, stored, embedded)


def line(name: str, seconds: list[float]) -> str:
    """Return a line of the table."""
    low, high = np.percentile(np.array(seconds) * 1000, [50, 95])
    return f"| {name} | {len(seconds)} | {low:,.2f} | {high:,.1f} |"


def measure(folder: Path, number: int, seed: int) -> None:
    """Ask everything twice and print what it took."""
    started = time.perf_counter()
    base = clew.open(folder / "kb")
    graph = base.graphs.get("g")
    opened = time.perf_counter() - started
    if base.encoding.encoder() is None:
        base.encoding.set("clew:hops")
    encoder = base.encoding.encoder()
    assert encoder is not None
    encoder.encode(["loads the model"])
    draw = np.random.default_rng(seed)
    questions = [
        (f"papers about {' and '.join(draw.choice(WORDS, 2, replace=False))}", text_of(graph, pattern))
        for _, pattern in patterns(graph, number, seed)
    ]
    print(f"{graph.size:,} nodes; {len(questions)} questions, seed {seed}; open {opened:.2f} s", flush=True)
    for label in ("first", "again"):
        took = [ask(base, *question) for question in questions]
        print(
            f"\n{label}: {sum(item.embedded for item in took):,} nodes embedded; candidates in the median "
            f"{np.median([item.candidates for item in took]):,.0f}, "
            f"at most {max(item.candidates for item in took):,}\n"
        )
        print("| part | questions | p50 ms | p95 ms |\n|---|---|---|---|")
        for name in dict.fromkeys(name for item in took for name in item.steps):
            print(line(name, [item.steps[name] for item in took if name in item.steps]))
        print(line("whole", [item.whole for item in took]))
        print(line("whole, of the processor", [item.processor for item in took]))
        if quiet := [item for item in took if not item.embedded]:
            print(line("whole, nothing to embed", [item.whole for item in quiet]))
            print(line("the same, of the processor", [item.processor for item in quiet]), flush=True)
    print(f"\npeak {memory():,.0f} MB, of which not mapped files {memory('RssAnon'):,.0f} MB at the end")
    base.close()


def count_words(folder: Path) -> None:
    """Count the words of all nodes."""
    with clew.open(folder / "kb") as base:
        texts = NodeTexts(base.graphs.get("g"))
        started = time.perf_counter()
        base.graphs.get("g").node_postings(texts.document_name, texts.single_texts)
        print(f"words counted in {time.perf_counter() - started:.0f} s, peak {memory():,.0f} MB")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="where the generated graph lies")
    parser.add_argument("--number", type=int, default=2, help="questions of each form")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--words", action="store_true", help="count the words of all nodes, and nothing else")
    chosen = parser.parse_args()
    if chosen.words:
        count_words(chosen.folder)
    else:
        measure(chosen.folder, chosen.number, chosen.seed)


if __name__ == "__main__":
    main()
