"""Importing graphs: seconds, peak memory, opening, adjacency, removal; each step in a process of its own.

    python benchmarks/graph_import.py                     # the shared film graph, 130,311 triples
    python benchmarks/graph_import.py --edges 20000000    # and a generated one (2 million nodes)
    python benchmarks/graph_import.py --compare 200000 2000000   # the generated one by clew, Polars and DuckDB
    python benchmarks/graph_import.py --formats 2000000   # the generated one from each format
    python benchmarks/graph_import.py --edit 2000000      # edits of the generated one beside importing it

The generated graph has the shape of a citation graph: papers with texts, authors, institutions and fields of study,
degrees drawn from a power law, everything from ``--seed``. It has a tenth as many nodes as edges.

``--compare`` imports the same two files with clew, with Polars and with DuckDB, in one run, a process each; a library
that is not installed is left out. The libraries do the least that an import is: they read all columns as texts,
number the ids in their order, replace the ends of edges by numbers, drop repeated edges, sort the rest, and write
nodes and edges to a file (Parquet, a database). clew besides makes compressed lines, digests, arrays of both
directions, and the indexes of names, spellings and property values.

``--edit`` imports the files, then edits the graph in place, three times each, and prints the median: edges alone are
removed and added, then nodes with their edges. At the end the graph is compared with one that is imported from files
with the edges that are left.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

FILMS = Path(__file__).parents[2] / "shared" / "data" / "metaqa" / "graph.tsv"
WORDS = "graph model learning neural protein cell quantum survey method analysis network theory river".split()


def generate(folder: Path, edges: int, seed: int) -> list[str]:
    """Write the generated graph as a table of nodes and one of edges; return the options that add it."""
    draw = np.random.default_rng(seed)
    nodes = edges // 10
    shares = {"paper": 0.6, "author": 0.35, "field": 0.04, "institution": 0.01}
    counts = {kind: max(int(nodes * share), 1) for kind, share in shares.items()}
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "nodes.csv").open("w", encoding="utf-8") as file:
        file.write("id,type,name,text,year:int\n")
        for kind, count in counts.items():
            words = draw.integers(0, len(WORDS), (count, 12))
            years = draw.integers(1950, 2025, count)
            for number, (picked, year) in enumerate(zip(words.tolist(), years.tolist(), strict=True)):
                output = " ".join(WORDS[word] for word in picked)
                text = f"{output} " * 3 if kind == "paper" else ""
                file.write(f"{kind[0]}{number},{kind},{output[:20]} {number},{text},{year if text else ''}\n")
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


def step_add(kb: Path, options: list[str]) -> dict[str, Any]:
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
        "digest": report["digest"],
    }


def step_open(kb: Path, _: list[str]) -> dict[str, Any]:
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
        relation = max(graph.relations().items(), key=lambda item: item[1].edges)[0]
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


def step_polars(folder: Path, options: list[str]) -> dict[str, Any]:
    """Do the least that an import is with Polars."""
    started = time.perf_counter()
    pl: Any = import_module("polars")
    nodes, edges = (pl.read_csv(path, infer_schema=False) for path in (options[1], options[3]))
    ids = pl.concat([nodes["id"], edges["head"], edges["tail"]]).unique().sort().alias("id")
    rows = pl.DataFrame([ids]).with_row_index("row")
    for end in ("head", "tail"):
        edges = edges.join(rows, left_on=end, right_on="id").drop(end).rename({"row": end})
    pairs = edges.unique().sort("relation", "head", "tail")
    rows.join(nodes, on="id", how="left").write_parquet(folder / "nodes.parquet")
    pairs.write_parquet(folder / "edges.parquet")
    return import_figures(folder, started, len(ids), len(pairs))


def step_duckdb(folder: Path, options: list[str]) -> dict[str, Any]:
    """Do the least that an import is with DuckDB."""
    started = time.perf_counter()
    connection: Any = import_module("duckdb").connect(str(folder / "graph.duckdb"))
    for statement in (
        f"CREATE TEMP TABLE nodes AS FROM read_csv('{options[1]}', all_varchar = true)",
        f"CREATE TEMP TABLE edges AS FROM read_csv('{options[3]}', all_varchar = true)",
        "CREATE TEMP TABLE ids AS SELECT id, row_number() OVER (ORDER BY id) - 1 AS number FROM "
        "(SELECT id FROM nodes UNION SELECT head FROM edges UNION SELECT tail FROM edges)",
        "CREATE TABLE node AS SELECT ids.number, nodes.* FROM ids LEFT JOIN nodes USING (id) ORDER BY number",
        "CREATE TABLE edge AS SELECT DISTINCT relation, h.number AS head, t.number AS tail FROM edges "
        "JOIN ids h ON h.id = edges.head JOIN ids t ON t.id = edges.tail ORDER BY ALL",
    ):
        connection.execute(statement)
    (node_count,), (edge_count,) = (
        connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("node", "edge")
    )
    connection.close()
    return import_figures(folder, started, node_count, edge_count)


def import_figures(folder: Path, started: float, nodes: int, edges: int) -> dict[str, Any]:
    """Return the figures of an import into a folder that began at ``started``."""
    seconds = time.perf_counter() - started
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"seconds": seconds, "nodes": nodes, "edges": edges, "MB on disk": size / 1e6}


def step_remove(kb: Path, _: list[str]) -> dict[str, Any]:
    """Remove the graph; the base is then what it was."""
    import clew

    started = time.perf_counter()
    with clew.open(kb) as base:
        base.graphs.remove("g")
        seconds = time.perf_counter() - started
        left = len(list(base.store.dump())), len(list((kb / "derived").glob("graphs/*")))
    return {"seconds": seconds, "lines of the dump": left[0], "folders of arrays": left[1]}


#: What is edited: the number of edges that are removed, of edges that are added, and of nodes that come and go.
EDITS = {"1 edge": (0, 1, 0), "20 edges": (10, 10, 0), "2,000 edges": (1000, 1000, 0), "1 node": (0, 3, 1)}
EDITS |= {"100 nodes": (0, 300, 100)}


def step_edit(kb: Path, _: list[str]) -> dict[str, Any]:
    """Edit the graph; the seconds of each edit, the median of three."""
    import clew
    from clew.knowledge_base import GraphEdits

    draw = np.random.default_rng(3)
    figures: dict[str, Any] = {}
    with clew.open(kb) as base:
        for what, (removals, additions, nodes) in EDITS.items():
            seconds = []
            for _turn in range(3):
                graph, edits = base.graphs.get("g"), GraphEdits()
                edges = graph.adjacency("cites")
                assert edges is not None
                size = len(edges.tails)
                drawn = np.searchsorted(edges.starts, draw.integers(0, size, removals), side="right") - 1
                heads: Any = drawn if edges.heads is None else edges.heads[drawn]
                for head in np.unique(heads).tolist():
                    tail = graph.neighbours(np.array([head]), "cites")[1][:1]
                    head_id, tail_id = (id[2:] for id in graph.ids(np.array([head, int(tail[0])])))
                    edits.remove_edge(head_id, "cites", tail_id)
                gone = [id[2:] for id in graph.ids(draw.integers(0, graph.size, nodes))]
                new = [f"q{draw.integers(10**9)}" for _ in gone]
                for old_id, id in zip(gone, new, strict=True):
                    edits.remove_node(old_id)
                    edits.add_node(id, types=["paper"], name=f"a new paper {id}", properties={"year": 2026})
                for place in range(additions):
                    ends = [id[2:] for id in graph.ids(draw.integers(0, graph.size, 2))]
                    edits.add_edge(new[place // 3] if new else ends[0], "cites", ends[1])
                started, processor = time.perf_counter(), time.process_time()
                base.graphs.edit("g", edits)
                seconds.append((time.perf_counter() - started, time.process_time() - processor))
            figures[what] = [sorted(column)[1] for column in zip(*seconds, strict=True)]
        assert not base.doctor()
        figures["digest"] = base.graphs.infos()[0].digest
    return figures


def step_export(kb: Path, options: list[str]) -> dict[str, Any]:
    """Write the graph as JSON lines to the file that ``options`` names."""
    import clew

    with clew.open(kb) as base, Path(options[0]).open("w", encoding="utf-8") as file:
        for line in base.store.dump():
            fields = json.loads(line)
            if node := fields.get("node"):
                file.write(json.dumps(node | {"id": node["id"]}) + "\n")
            elif edge := fields.get("edge"):
                file.write(json.dumps([*edge, *([p] if (p := fields.get("properties")) else [])]) + "\n")
    return {}


def compare_edits(edges: int, seed: int) -> None:
    """Print the seconds of importing a generated graph and of edits, and whether the result is the same."""
    with tempfile.TemporaryDirectory() as files, tempfile.TemporaryDirectory() as folder:
        options = generate(Path(files), edges, seed)
        added = run_step("add", folder, options)
        print(f"\n{added['edges']:,} edges, {added['nodes']:,} nodes; load {os.getloadavg()[0]:.1f}")
        print("\n| | s | processor s | import, times this | of the processor |\n|---|---|---|---|---|")
        print(f"| import | {added['seconds']:.2f} | {added['CPU seconds']:.2f} | 1 | 1 |")
        figures = run_step("edit", folder, options)
        for what in EDITS:
            wall, processor = figures[what]
            ratios = f"{added['seconds'] / wall:.0f} | {added['CPU seconds'] / processor:.0f}"
            print(f"| {what} | {wall:.2f} | {processor:.2f} | {ratios} |")
        print(f"\npeak {figures['peak MB']:,.0f} MB", flush=True)
        exported = Path(files) / "edited.jsonl"
        run_step("export", folder, [str(exported)])
        with tempfile.TemporaryDirectory() as fresh:
            again = run_step("add", fresh, [str(exported)])
        print(
            f"read again from JSON lines: {'the same' if again['digest'] == figures['digest'] else 'DIFFERS'}"
        )


STEPS = {"add": step_add, "open": step_open, "remove": step_remove}
EDIT_STEPS = {"edit": step_edit, "export": step_export}
LIBRARIES = {"polars": step_polars, "duckdb": step_duckdb}


def measure(name: str, options: list[str]) -> None:
    """Run every step in a process of its own and print what it took."""
    print(f"\n{name}")
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            figures = run_step(step, folder, options)
            numbers = {key: value for key, value in figures.items() if key != "digest"}
            print(f"  {step:<7}" + ", ".join(f"{key} {value:,.6g}" for key, value in numbers.items()))


def run_step(step: str, folder: str, options: list[str]) -> dict[str, Any]:
    """Run a step in a process of its own and return its figures."""
    command = [sys.executable, __file__, "--step", step, "--kb", folder, "--", *options]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def compare(edges: int, seed: int) -> None:
    """Import a generated graph with clew and with each library that is installed, and print a line for each."""
    with tempfile.TemporaryDirectory() as files:
        options = generate(Path(files), edges, seed)
        size = sum(Path(path).stat().st_size for path in options[1::2]) / 1e6
        print(
            f"\n{edges:,} rows of edges, {edges // 10:,} of nodes, {size:,.0f} MB; load {os.getloadavg()[0]:.1f}"
        )
        print(
            "\n| | edges | s | processor s | peak MB | MB on disk | s, times clew's |\n|---|---|---|---|---|---|---|"
        )
        seconds = 0.0
        for name, step in {"clew": "add", **{name: name for name in LIBRARIES if find_spec(name)}}.items():
            with tempfile.TemporaryDirectory() as folder:
                figures = run_step(step, folder, options)
            seconds = seconds or figures["seconds"]
            print(
                f"| {name} | {figures['edges']:,} | {figures['seconds']:.1f} | {figures['CPU seconds']:.1f} "
                f"| {figures['peak MB']:,.0f} | {figures['MB on disk']:,.0f} | {figures['seconds'] / seconds:.2f} |",
                flush=True,
            )


def write_formats(folder: Path, options: list[str]) -> dict[str, list[str]]:
    """Write the generated tables in other formats too; return the options that add each, by what it is called."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    nodes, edges = (Path(path) for path in options[1::2])
    formats = {"CSV": options}
    weighted = folder / "weighted.csv"
    with edges.open(encoding="utf-8") as source, weighted.open("w", encoding="utf-8") as file:
        file.write(next(source).rstrip("\n") + ",weight:int\n")
        file.writelines(f"{line[:-1]},{number % 7}\n" for number, line in enumerate(source))
    formats["CSV, a property of each edge"] = ["--nodes", str(nodes), "--edges", str(weighted)]
    lines = folder / "graph.jsonl"
    with lines.open("w", encoding="utf-8") as file:
        with nodes.open(encoding="utf-8") as source:
            next(source)
            for line in source:
                id, kind, name, text, year = line.rstrip("\n").split(",")
                node = {"id": id, "types": [kind], "name": name, "text": text}
                file.write(json.dumps(node | ({"year": int(year)} if year else {})) + "\n")
        with edges.open(encoding="utf-8") as source:
            next(source)
            file.writelines(json.dumps(line.rstrip("\n").split(",")) + "\n" for line in source)
    formats["JSON lines"] = [str(lines)]
    read = {name: pyarrow.csv.read_csv(path) for name, path in (("nodes", nodes), ("edges", edges))}
    read["nodes"] = read["nodes"].rename_columns(["id", "type", "name", "text", "year"])
    for name, table in read.items():
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    formats["Parquet"] = [word for name in read for word in (f"--{name}", str(folder / f"{name}.parquet"))]
    return formats


def compare_formats(edges: int, seed: int) -> None:
    """Import a generated graph from each format, and print a line for each."""
    with tempfile.TemporaryDirectory() as files:
        formats = write_formats(Path(files), generate(Path(files), edges, seed))
        print(f"\n{edges:,} rows of edges, {edges // 10:,} of nodes; load {os.getloadavg()[0]:.1f}")
        print("\n| from | edges | s | processor s | peak MB |\n|---|---|---|---|---|")
        for name, options in formats.items():
            with tempfile.TemporaryDirectory() as folder:
                figures = run_step("add", folder, options)
            print(
                f"| {name} | {figures['edges']:,} | {figures['seconds']:.1f} | {figures['CPU seconds']:.1f} "
                f"| {figures['peak MB']:,.0f} |",
                flush=True,
            )


def main() -> None:
    """Run the benchmark, or one step of it in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edges", type=int, default=0, help="edges of a generated graph")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--compare", type=int, nargs="+", help="sizes, in edges, to import with clew and others"
    )
    parser.add_argument("--formats", type=int, default=0, help="size, in edges, to import from each format")
    parser.add_argument("--edit", type=int, default=0, help="size, in edges, of a generated graph to edit")
    parser.add_argument("--step", choices={**STEPS, **LIBRARIES, **EDIT_STEPS}, help=argparse.SUPPRESS)
    parser.add_argument("--kb", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("options", nargs="*", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        before = memory()
        figures = {**STEPS, **LIBRARIES, **EDIT_STEPS}[chosen.step](chosen.kb, chosen.options)
        print(
            json.dumps(
                figures
                | {"CPU seconds": time.process_time(), "peak MB": memory(), "of that at start": before}
            )
        )
        return
    for edges in chosen.compare or ():
        compare(edges, chosen.seed)
    if chosen.formats:
        compare_formats(chosen.formats, chosen.seed)
    if chosen.edit:
        compare_edits(chosen.edit, chosen.seed)
    if chosen.compare or chosen.formats or chosen.edit:
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
