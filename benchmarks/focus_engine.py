"""Substitution: the engine of ``focus`` against 4StepFocus's Algorithm 2 on Python sets, at equal answers.

    python benchmarks/focus_engine.py                     # MetaQA, dev_2hop and dev_3hop: all 4,000 questions
    python benchmarks/focus_engine.py --edges 200000      # a generated citation graph, patterns of 1 to 4 triples

*MetaQA.* Each question's type spells its chain (``writer_to_movie_to_actor``), its start stands in [brackets] and is
left out at every hop. Answer sets are compared with the data set's, by name.

*The generated graph* (:mod:`papers_graph`, a tenth as many nodes as edges) is imported by ``clew graph add`` in a
process of its own, then asked in another: patterns of one to four triples, triangles, and constants among the 0.1 %
of nodes with most edges (hubs). 209 patterns of every form are compared with what a join of whole tables finds.

The other side is :class:`algorithm2.Algorithm2`, in the same process, at the same questions.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import clew
from algorithm2 import Algorithm2, Tables
from clew.core.protocols import PropertyGraph
from clew.evaluate.datasets.graphs import METAQA_RELATIONS
from clew.triples.engine.patterns import Constant, Pattern, TypedTriple, Variable, along
from clew.triples.engine.substitution import substitute
from graph_import import generate, memory, step_add
from metaqa_stores import DATA, Chain, chain_of
from papers_graph import FORMS, patterns

Q = TypeVar("Q")
A = TypeVar("A")
#: Times that MetaQA's questions are asked in each way.
ROUNDS = 5


def pattern_of(graph: PropertyGraph, chain: Chain) -> Pattern:
    """Return a chain as a pattern: a variable for each hop, none of which is the start."""
    starts = graph.find_by_name(chain.start)
    exact = [n for n, entity in enumerate(graph.entities(starts)) if entity.name == chain.start]
    (row,) = starts[exact].tolist()
    names = ["start", *(f"#{number}" for number in range(1, len(chain.hops) + 1))]
    return Pattern(
        names[-1],
        tuple(Variable(name, excluded=(row,)) for name in names[1:]),
        (Constant("start", (row,)),),
        tuple(
            TypedTriple(names[hop], along(relation, inverse), names[hop + 1])
            for hop, (relation, inverse) in enumerate(chain.hops)
        ),
    )


def solve(graph: PropertyGraph, pattern: Pattern) -> np.ndarray:
    """Return the rows of a pattern's target, which the patterns here always restrict."""
    rows = substitute(graph, pattern).rows
    assert rows is not None
    return rows


def films() -> None:
    """All questions of MetaQA that are there."""
    if not (DATA / "graph.tsv").is_file():
        sys.exit(f"absent: {DATA}")
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        base.graphs.add(DATA / "graph.tsv", name="films")
        graph = base.graphs.get("films")
        relations = {relation.replace(" ", "_"): relation for relation in graph.relations()}
        plain = Algorithm2(
            graph, [relations[value] for value in METAQA_RELATIONS.values() if value in relations]
        )
        print(
            "| questions | number | way | sets equal | per s of processor | ms each, median | times Python sets |"
        )
        print("|---|---|---|---|---|---|---|")
        both: dict[str, list[float]] = {}
        for name in ("dev_2hop", "dev_3hop"):
            lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
            chains = [chain_of(json.loads(line), relations) for line in lines]
            results = {way: (len(chains), *entry) for way, entry in ways(graph, plain, chains).items()}
            print_ways(name, results)
            for way, item in results.items():
                both[way] = [old + new for old, new in zip(both.get(way, [0, 0, 0]), item[:3], strict=True)]
        print_ways("both", {way: (int(entry[0]), int(entry[1]), entry[2], "") for way, entry in both.items()})


def ways(graph: PropertyGraph, plain: Algorithm2, chains: list[Chain]) -> dict[str, tuple[int, float, str]]:
    """Return for each way to answer all questions how many answers are right, the processor's seconds of all, and the
    median milliseconds of one. Each way in turn, several times; the quickest counts."""
    asked = [pattern_of(graph, chain) for chain in chains]
    functions: dict[str, Callable[[Pattern], Any]] = {
        "Python sets": plain.substitute,
        "`substitute`": lambda pattern: solve(graph, pattern),
    }
    results: dict[str, tuple[int, float, str]] = {}
    for _ in range(ROUNDS):
        for way, function in functions.items():
            answers, _, took = time_calls(function, asked)
            if way not in results or sum(took) < results[way][1]:
                median = f"{statistics.median(took) * 1000:.3f}"
                results[way] = right(graph, chains, answers), sum(took), median
    return results


def right(graph: PropertyGraph, chains: list[Chain], answers: Sequence[Collection[int]]) -> int:
    """Return how many answers are the data set's, by name."""
    return sum(
        frozenset(entity.name for entity in graph.entities(np.array(sorted(some), dtype=np.int64)))
        == chain.gold
        for chain, some in zip(chains, answers, strict=True)
    )


def print_ways(name: str, found: dict[str, tuple[int, int, float, str]]) -> None:
    """Print a line for each way, with how many times as fast it is as the first."""
    first = next(iter(found.values()))
    for way, (number, right, seconds, median) in found.items():
        print(
            f"| {name} | {number:,} | {way} | {right:,} | {number / seconds:,.0f} | {median} "
            f"| {first[2] / seconds:.1f} |",
            flush=True,
        )


def time_calls(function: Callable[[Q], A], asked: Sequence[Q]) -> tuple[list[A], list[float], list[float]]:
    """Return the answers of a function, the wall-clock seconds of each, and the processor seconds."""
    results: list[A] = []
    took: list[float] = []
    worked: list[float] = []
    function(asked[0])
    for item in asked:
        started, before = time.perf_counter(), time.thread_time()
        results.append(function(item))
        worked.append(time.thread_time() - before)
        took.append(time.perf_counter() - started)
    return results, took, worked


def step_import(folder: Path, chosen: argparse.Namespace) -> dict[str, float]:
    """Generate the graph and add it."""
    options = generate(folder, chosen.edges, chosen.seed)
    return step_add(folder / "kb", options)


def step_ask(folder: Path, chosen: argparse.Namespace) -> dict[str, float]:
    """Open the graph in a fresh process and ask it every form of pattern."""
    started = time.perf_counter()
    base = clew.open(folder / "kb")
    graph = base.graphs.get("g")
    opened = time.perf_counter() - started
    asked = list(patterns(graph, chosen.number, chosen.seed))
    solve(graph, asked[0][1])
    result, took, worked = time_calls(lambda item: solve(graph, item[1]), asked)
    print(
        "| pattern | asked | with answers | median answers | p50 ms | p95 ms | of the processor: p50 | p95 |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for form in dict.fromkeys(form for form, _ in asked):
        some = [n for n, item in enumerate(asked) if item[0] == form]
        sizes = [len(result[n]) for n in some]
        line(form, sizes, [took[n] for n in some], [worked[n] for n in some])
    for size in sorted({len(item.triples) for _, item in asked}):
        some = [n for n, item in enumerate(asked) if len(item[1].triples) == size]
        sizes = [len(result[n]) for n in some]
        line(f"all of {size}", sizes, [took[n] for n in some], [worked[n] for n in some])
    line("all", [len(item) for item in result], took, worked)
    own = memory()
    held = memory("RssAnon")
    base.close()
    return {"open s": opened, "peak MB": own, "of which not mapped files MB, at the end": held}


def line(form: str, sizes: list[int], took: list[float], worked: list[float]) -> None:
    """Print the times of a form."""
    low, high = np.quantile(np.array(took) * 1000, [0.5, 0.95])
    least, most = np.quantile(np.array(worked) * 1000, [0.5, 0.95])
    print(
        f"| {form} | {len(took)} | {sum(map(bool, sizes))} | {statistics.median(sizes):,.0f} "
        f"| {low:.2f} | {high:.2f} | {least:.2f} | {most:.2f} |"
    )


def step_check(folder: Path, chosen: argparse.Namespace) -> dict[str, float]:
    """Compare with a join of whole tables, and with Algorithm 2 on Python sets, on 200 patterns."""
    base = clew.open(folder / "kb")
    graph = base.graphs.get("g")
    number = -(-200 // len(FORMS))
    asked = list(patterns(graph, number, chosen.seed + 1))
    result, _, ours = time_calls(lambda item: solve(graph, item[1]), asked)
    tables = Tables(graph, graph.relations())
    exact = [tables.answers(item) for _, item in asked]
    del tables
    same = sum(set(rows.tolist()) == some for rows, some in zip(result, exact, strict=True))
    print(f"{len(asked)} patterns, {same} equal to the join of whole tables", flush=True)
    started = time.perf_counter()
    plain = Algorithm2(graph, graph.relations())
    seconds = time.perf_counter() - started
    sets, _, theirs = time_calls(lambda item: plain.substitute(item[1]), asked)
    base.close()
    print(
        "| triples | patterns | engine p50 ms | engine s | Python sets p50 ms | Python sets s | ratio of sums "
        "| median ratio | Python sets too large |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    counts = np.array([len(item.triples) for _, item in asked])
    larger = np.array([len(some) > len(rows) for some, rows in zip(sets, exact, strict=True)])
    for size in (*sorted(set(counts.tolist())), 0):
        ratios(size, *(np.array(item)[(counts == size) | (size == 0)] for item in (ours, theirs, larger)))
    return {
        "patterns": len(asked),
        "equal": same,
        "making the Python sets s": seconds,
        "peak MB of this check": memory(),
    }


def ratios(size: int, ours: np.ndarray, theirs: np.ndarray, larger: np.ndarray) -> None:
    """Print what the engine and the Python sets took of the processor for patterns of so many triples; 0: all."""
    print(
        f"| {size or 'all'} | {len(ours)} | {np.median(ours) * 1000:.2f} | {ours.sum():.3g} "
        f"| {np.median(theirs) * 1000:.2f} | {theirs.sum():.3g} | {theirs.sum() / ours.sum():.1f} "
        f"| {np.median(theirs / ours):.1f} | {larger.sum()} |"
    )


STEPS = {"import": step_import, "ask": step_ask, "check": step_check}


def main() -> None:
    """Run the benchmark, or one step of it in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edges", type=int, default=0, help="edges of the generated graph; 0: MetaQA")
    parser.add_argument("--number", type=int, default=50, help="patterns of each form")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where the generated graph lies, or is to lie")
    parser.add_argument("--step", choices=STEPS, help="one step alone, in this process")
    chosen = parser.parse_args()
    if chosen.step:
        result = STEPS[chosen.step](chosen.folder, chosen)
        result["peak MB"] = memory()
        shown = (
            f"{key} {value}" if isinstance(value, str) else f"{key} {value:,.6g}"
            for key, value in result.items()
        )
        print(f"{chosen.step}: " + ", ".join(shown))
    elif not chosen.edges:
        films()
    else:
        with tempfile.TemporaryDirectory() as folder:
            for step in STEPS:
                options = [f"--{key}={getattr(chosen, key)}" for key in ("edges", "number", "seed")]
                command = [sys.executable, __file__, "--step", step, "--folder", folder, *options]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
