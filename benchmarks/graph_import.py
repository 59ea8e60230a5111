"""Importing graphs: seconds, peak memory, opening, adjacency, removal; each step in a process of its own.

    python benchmarks/graph_import.py                     # the shared film graph, 130,311 triples
    python benchmarks/graph_import.py --edges 20000000    # and a generated one (2 million nodes)

The generated graph has the shape of a citation graph: papers with texts, authors, institutions and fields of study,
degrees drawn from a power law, everything from ``--seed``. It has a tenth as many nodes as edges.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

FILMS = Path(__file__).parents[2] / "shared" / "data" / "metaqa" / "graph.tsv"
WORDS = "graph model learning neural protein cell quantum survey method analysis network theory river".split()


def generate(folder: Path, edges: int, seed: int) -> list[str]:
    """Write the generated graph as a table of nodes and one of edges; return the options that add it."""
    draw = np.random.default_rng(seed)
    nodes = edges // 10
    shares = {"paper": 0.6, "author": 0.35, "field": 0.04, "institution": 0.01}
    counts = {kind: max(int(nodes * share), 1) for kind, share in shares.items()}
    with (folder / "nodes.csv").open("w", encoding="utf-8") as file:
        file.write("id,type,name,text,year:int\n")
        for kind, count in counts.items():
            words = draw.integers(0, len(WORDS), (count, 12))
            years = draw.integers(1950, 2025, count)
            for number, (picked, year) in enumerate(zip(words.tolist(), years.tolist(), strict=True)):
                said = " ".join(WORDS[word] for word in picked)
                text = f"{said} " * 3 if kind == "paper" else ""
                file.write(f"{kind[0]}{number},{kind},{said[:20]} {number},{text},{year if text else ''}\n")
    kinds = (
        ("cites", "paper", "paper", 0.45),
        ("writes", "author", "paper", 0.30),
        ("has topic", "paper", "field", 0.20),
        ("affiliated with", "author", "institution", 0.05),
    )
    with (folder / "edges.csv").open("w", encoding="utf-8") as file:
        file.write("head,relation,tail\n")
        for relation, head, tail, share in kinds:
            count = int(edges * share)
            heads = draw.integers(0, counts[head], count).tolist()
            # Squared twice: few tails have most of the edges.
            tails = (draw.random(count) ** 4 * counts[tail]).astype(np.int64).tolist()
            file.writelines(
                f"{head[0]}{h},{relation},{tail[0]}{t}\n" for h, t in zip(heads, tails, strict=True)
            )
    return ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv")]


def memory(what: str = "VmHWM") -> float:
    """Return this process's peak of resident memory in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def step_add(kb: Path, options: list[str]) -> dict[str, float]:
    """Add a graph through the command line's own function."""
    from typer.testing import CliRunner

    from clew.app.cli.commands import app

    result = CliRunner().invoke(
        app, ["graph", "add", *options, "--name", "g", "--kb", str(kb), "--json"], catch_exceptions=False
    )
    report = json.loads(result.stdout)
    sizes = sum(path.stat().st_size for path in kb.rglob("*") if path.is_file())
    return {
        "seconds": report["seconds"],
        "nodes": report["nodes"],
        "edges": report["edges"],
        "MB on disk": sizes / 1e6,
    }


def step_open(kb: Path, _: list[str]) -> dict[str, float]:
    """Open the graph and ask it: what a first and a later question cost."""
    import clew

    def timed(function: Callable[[], object], times: int = 1) -> float:
        started = time.perf_counter()
        for _ in range(times):
            function()
        return (time.perf_counter() - started) / times * 1000

    with clew.open(kb) as base:
        opening = timed(lambda: base.graphs.get("g").relations())
        graph = base.graphs.get("g")
        relation = max(graph.relations().items(), key=lambda one: one[1].edges)[0]
        draw = np.random.default_rng(1)
        few, many = draw.integers(0, graph.size, 10), draw.integers(0, graph.size, 100_000)
        (sample,) = graph.entities(few[:1])
        return {
            "open ms": opening,
            "first adjacency ms": timed(lambda: graph.neighbours(few, relation)),
            "10 rows ms": timed(lambda: graph.neighbours(few, relation), 100),
            "100,000 rows ms": timed(lambda: graph.neighbours(many, relation, True), 5),
            "by name ms": timed(lambda: graph.find_by_name(sample.name), 100),
            "10 entities ms": timed(lambda: graph.entities(draw.integers(0, graph.size, 10)), 20),
        }


def step_remove(kb: Path, _: list[str]) -> dict[str, float]:
    """Remove the graph; the base is then what it was."""
    import clew

    started = time.perf_counter()
    with clew.open(kb) as base:
        base.graphs.remove("g")
        seconds = time.perf_counter() - started
        left = len(list(base.store.dump())), len(list((kb / "derived").glob("graphs/*")))
    return {"seconds": seconds, "lines of the dump": left[0], "folders of arrays": left[1]}


STEPS = {"add": step_add, "open": step_open, "remove": step_remove}


def measure(name: str, options: list[str]) -> None:
    """Run every step in a process of its own and print what it took."""
    print(f"\n{name}")
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            command = [sys.executable, __file__, "--step", step, "--kb", folder, "--", *options]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found = json.loads(done.stdout)
            print(f"  {step:<7}" + ", ".join(f"{key} {value:,.6g}" for key, value in found.items()))


def main() -> None:
    """Run the benchmark, or one step of it in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edges", type=int, default=0, help="edges of a generated graph")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--kb", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("options", nargs="*", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        before = memory()
        found = STEPS[chosen.step](chosen.kb, chosen.options)
        print(
            json.dumps(
                found | {"CPU seconds": time.process_time(), "peak MB": memory(), "of that at start": before}
            )
        )
        return
    if FILMS.is_file():
        measure("the film graph", [str(FILMS)])
    else:
        print(f"absent, left out: {FILMS}")
    if chosen.edges:
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            options = generate(Path(folder), chosen.edges, chosen.seed)
            print(f"\ngenerated in {time.perf_counter() - started:.0f} s")
            measure(f"generated, {chosen.edges:,} edges", options)


if __name__ == "__main__":
    main()
