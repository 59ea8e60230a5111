"""Questions over a graph by everything that could answer them, with the sets compared: ``focus``, its exact
solver, the obvious program, DuckDB, Oxigraph and Kuzu.

    python benchmarks/graph_questions.py                                  # MetaQA's dev questions of 2 and 3 hops
    python benchmarks/graph_questions.py --number 100 --seed 1
    python benchmarks/focus_engine.py --edges 2000000 --step import --folder F      # F exists; once
    python benchmarks/graph_questions.py --folder F                       # a generated citation graph

* ``focus``: ``base.ask`` with typed triples and no model: the whole method, with evidence of the first answers.
* ``solver``: the same triples, parsed and compiled before, solved.
* ``program``: dictionaries from a relation and a node to the nodes at its other end, followed hop by hop (MetaQA).
* ``duckdb``: one table of edges for each relation, joined by the SQL of the compiled question.
* ``oxigraph``: the SPARQL that ``--explain`` prints.
* ``kuzu``: the same edges as a MATCH pattern.

The last three are left out where they are not installed. Loading is not timed. The nodes of names are given by row
numbers except to ``focus`` and ``oxigraph``, which look them up.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import clew
from clew.core.errors import ClewError
from clew.core.protocols import PropertyGraph
from clew.evaluate.datasets import load_dataset
from clew.evaluate.datasets.graphs import gold_triples
from clew.methods.focus.ranking import MAX_NAMED
from clew.store.graphs.rdf_view import PREFIXES, open_rdf_store, row_of
from clew.triples.language.typed_parsing import parse_typed
from clew.triples.language.wordings import exclude_named_nodes
from clew.triples.query import GraphQuestion, compile_question, solve_question, to_sparql
from focus_pipeline import text_of
from papers_graph import patterns

DATA = Path("../shared/data/metaqa")
Way = Callable[[int], frozenset[int] | frozenset[str]]


@dataclass(frozen=True)
class Asked:
    """A question: its text, and what it asks of the graph."""

    triples: str
    compiled: GraphQuestion


def metaqa_questions(graph: PropertyGraph, number: int, seed: int) -> list[Asked]:
    """Return gold triples of MetaQA's questions, with what the question names excluded."""
    draw = np.random.default_rng(seed)
    asked = []
    for name in ("dev_2hop.jsonl", "dev_3hop.jsonl"):
        examples = list(load_dataset("metaqa", DATA / name).examples())
        for place in sorted(draw.choice(len(examples), min(number, len(examples)), replace=False)):
            typed = exclude_named_nodes(parse_typed(gold_triples(examples[place])))
            asked.append(_compile(graph, str(typed)))
    return asked


def generated_questions(graph: PropertyGraph, number: int, seed: int) -> list[Asked]:
    """Return questions over a generated graph, so many of each form."""
    return [_compile(graph, text_of(graph, pattern)) for _, pattern in patterns(graph, number, seed)]


def _compile(graph: PropertyGraph, triples: str) -> Asked:
    compiled = compile_question(graph, parse_typed(triples)).question
    assert compiled is not None, triples
    return Asked(triples, compiled)


def by_focus(base: clew.KnowledgeBase, asked: Sequence[Asked]) -> Way:
    """Return the whole method, whose answers are names."""
    return lambda place: frozenset(
        base.ask("", chain=asked[place].triples, recipe="focus(sources=none)").values
    )


def by_solver(graph: PropertyGraph, asked: Sequence[Asked]) -> Way:
    """Return the solver."""
    return lambda place: frozenset(solve_question(graph, asked[place].compiled).tolist())


def by_program(graph: PropertyGraph, asked: Sequence[Asked]) -> Way:
    """Return the obvious program for paths: from a name, edge by edge, to the target."""
    ends: dict[tuple[str, bool], dict[int, list[int]]] = {}
    for relation in graph.relations():
        for inverse in (False, True):
            adjacency = graph.adjacency(relation, inverse)
            assert adjacency is not None
            heads = np.arange(graph.size) if adjacency.heads is None else adjacency.heads
            table = ends[relation, inverse] = defaultdict(list)
            for head, (start, stop) in zip(heads.tolist(), pairwise(adjacency.starts.tolist()), strict=True):
                if stop > start:
                    table[head] = adjacency.tails[start:stop].tolist()

    def walk(place: int) -> frozenset[int]:
        question = asked[place].compiled
        (name,) = question.names
        start = set(question.names[name].rows.tolist())
        reached, term, edges = set(start), name, list(question.group.edges)
        while edges:
            edge = next(edge for edge in edges if term in edge.ends)
            edges.remove(edge)
            forwards = edge.head == term
            ((relation, inverse),) = [(d.relation, d.inverse) for d in edge.relations]
            table = ends[relation or "", inverse if forwards else not inverse]
            reached = {end for node in reached for end in table.get(node, ())}
            term = edge.tail if forwards else edge.head
            reached -= start
        return frozenset(reached)

    return walk


def by_duckdb(graph: PropertyGraph, asked: Sequence[Asked]) -> Way:
    """Return DuckDB over a table of edges for each relation."""
    import duckdb

    connection = duckdb.connect()
    tables: dict[str, str] = {}
    for number, (relation, heads, tails) in enumerate(_edges(graph)):
        columns = {"head": heads, "tail": tails}  # noqa: F841 (DuckDB reads the variables in scope)
        tables[relation] = f"r{number}"
        connection.execute(f"create table r{number} as select * from columns")
    of_types: dict[str, str] = {}
    for number, type in enumerate(graph.types()):
        rows = {"node": graph.rows_of_type(type)}  # noqa: F841
        of_types[type] = f"t{number}"
        connection.execute(f"create table t{number} as select * from rows")
    queries = [_to_sql(question.compiled, tables, of_types) for question in asked]
    return lambda place: frozenset(row for (row,) in connection.execute(queries[place]).fetchall())


def by_kuzu(graph: PropertyGraph, asked: Sequence[Asked], folder: Path) -> Way:
    """Return Kuzu over one table of nodes and a table of edges for each relation."""
    import kuzu

    connection = kuzu.Connection(kuzu.Database(str(folder / "kuzu")))
    connection.execute("CREATE NODE TABLE N(row INT64 PRIMARY KEY)")
    nodes = folder / "nodes.csv"
    nodes.write_text("\n".join(map(str, range(graph.size))) + "\n", encoding="utf-8")
    connection.execute(f'COPY N FROM "{nodes}"')
    tables: dict[str, str] = {}
    for number, (relation, heads, tails) in enumerate(_edges(graph)):
        tables[relation] = f"R{number}"
        connection.execute(f"CREATE REL TABLE R{number}(FROM N TO N)")
        path = folder / f"r{number}.csv"
        np.savetxt(path, np.column_stack([heads, tails]), fmt="%d", delimiter=",")
        connection.execute(f'COPY R{number} FROM "{path}"')
    queries = [_to_cypher(question.compiled, tables) for question in asked]

    def ask(place: int) -> frozenset[int]:
        result: Any = connection.execute(queries[place])
        rows = []
        while result.has_next():
            rows.append(result.get_next()[0])
        return frozenset(rows)

    return ask


def by_oxigraph(graph: PropertyGraph, asked: Sequence[Asked]) -> Way:
    """Return Oxigraph with the SPARQL of the questions."""
    store = open_rdf_store(graph)
    prefixes = "".join(f"PREFIX {prefix}: <{iri}>\n" for prefix, iri in PREFIXES.items())
    queries = [prefixes + to_sparql(question.compiled) for question in asked]

    def ask(place: int) -> frozenset[int]:
        solutions: Any = store.query(queries[place])
        return frozenset(row for solution in solutions if (row := row_of(solution[0].value)) is not None)

    return ask


def _edges(graph: PropertyGraph) -> list[tuple[str, Any, Any]]:
    """Return the relations with the heads and tails of their edges."""
    edges = []
    for relation in graph.relations():
        adjacency = graph.adjacency(relation)
        assert adjacency is not None
        heads = np.arange(graph.size) if adjacency.heads is None else adjacency.heads
        sources = np.repeat(heads, np.diff(adjacency.starts)).astype(np.int64)
        edges.append((relation, sources, adjacency.tails.astype(np.int64)))
    return edges


def _oriented(question: GraphQuestion) -> list[tuple[str, str, str]]:
    """Return the edges of a question as relation, source and end."""
    edges = []
    for edge in question.group.edges:
        (directed,) = edge.relations
        ends = edge.ends[::-1] if directed.inverse else edge.ends
        edges.append((directed.relation or "", *ends))
    return edges


def _excluded(question: GraphQuestion) -> Mapping[str, list[int]]:
    """Return the rows that unknowns are not: those that the question names, where it says so."""
    named = sorted({row for name in question.names.values() for row in name.rows.tolist()})
    return {test.variable: named for test in question.group.tests if test.negated and not test.property}


def _to_sql(question: GraphQuestion, tables: Mapping[str, str], of_types: Mapping[str, str]) -> str:
    column: dict[str, str] = {}
    sources, conditions = [], []
    for number, (relation, head, tail) in enumerate(_oriented(question)):
        sources.append(f"{tables[relation]} e{number}")
        for term, side in ((head, "head"), (tail, "tail")):
            if term in column:
                conditions.append(f"{column[term]} = e{number}.{side}")
            column.setdefault(term, f"e{number}.{side}")
    for term, name in question.names.items():
        conditions.append(f"{column[term]} in ({', '.join(map(str, name.rows.tolist()))})")
    for term, rows in _excluded(question).items():
        conditions.append(f"{column[term]} not in ({', '.join(map(str, rows))})")
    for term, types in question.types.items():
        if term in column:
            nodes = " union all ".join(f"select node from {of_types[type]}" for type in types)
            conditions.append(f"{column[term]} in ({nodes})")
    return f"select distinct {column[question.target]} from {', '.join(sources)} where {' and '.join(conditions)}"


def _to_cypher(question: GraphQuestion, tables: Mapping[str, str]) -> str:
    def variable(term: str) -> str:
        return {"#": "x", "=": "c", "+": "v"}[term[0]] + term[1:]

    matches = [
        f"({variable(head)}:N)-[:{tables[relation]}]->({variable(tail)}:N)"
        for relation, head, tail in _oriented(question)
    ]
    conditions = [f"{variable(term)}.row IN {name.rows.tolist()}" for term, name in question.names.items()]
    conditions += [f"NOT {variable(term)}.row IN {rows}" for term, rows in _excluded(question).items()]
    target = variable(question.target)
    return f"MATCH {', '.join(matches)} WHERE {' AND '.join(conditions)} RETURN DISTINCT {target}.row"


def measure(
    base: clew.KnowledgeBase, graph: PropertyGraph, asked: Sequence[Asked], folder: Path, names: Sequence[str]
) -> None:
    """Ask everything each way, once to warm up and once timed, and print the table.

    Processor time says more than wall time where other jobs run; that of the first time is of a question that is new.
    """
    makers: dict[str, Callable[[], Way]] = {
        "focus": lambda: by_focus(base, asked),
        "solver": lambda: by_solver(graph, asked),
        "program": lambda: by_program(graph, asked),
        "duckdb": lambda: by_duckdb(graph, asked),
        "oxigraph": lambda: by_oxigraph(graph, asked),
        "kuzu": lambda: by_kuzu(graph, asked, folder),
    }
    expected = [frozenset(solve_question(graph, question.compiled).tolist()) for question in asked]
    print(
        f"{graph.size:,} nodes, {len(asked)} questions, {np.mean([len(rows) for rows in expected]):,.0f} answers each"
    )
    names_of = [_names(graph, rows) for rows in expected]
    print(
        "\n| way | p50 ms | p95 ms | of the processor | first time, of the processor | sum s | times solver "
        "| other sets |\n|---|---|---|---|---|---|---|---|"
    )
    of_solver = 0.0
    for name in names:
        try:
            way = makers[name]()
        except (ImportError, ClewError) as error:
            print(f"| {name} | not run: {error} | | | | | | |")
            continue
        seconds, processor, first_time, different = [], [], [], 0
        way(len(asked) - 1)  # what the process does once
        for place in range(len(asked)):
            of_processor = time.process_time()
            way(place)
            first_time.append(time.process_time() - of_processor)
            started, of_processor = time.perf_counter(), time.process_time()
            rows = way(place)
            seconds.append(time.perf_counter() - started)
            processor.append(time.process_time() - of_processor)
            if name == "focus":
                # It names at most MAX_NAMED answers beyond those that it ranks.
                different += len(expected[place]) <= MAX_NAMED and rows != names_of[place]
            else:
                different += rows != expected[place]
        total = sum(seconds)
        of_solver = total if name == "solver" else of_solver
        low, high = np.percentile(np.array(seconds) * 1000, [50, 95])
        cells = " | ".join(
            "{:.2f} / {:.1f}".format(*np.percentile(np.array(part) * 1000, [50, 95]))
            for part in (processor, first_time)
        )
        ratio = f"{total / of_solver:.1f}" if of_solver else ""
        print(
            f"| {name} | {low:.2f} | {high:.1f} | {cells} | {total:.2f} | {ratio} | {different} |", flush=True
        )


def _names(graph: PropertyGraph, rows: frozenset[int]) -> frozenset[str]:
    """Return the names of nodes; of more than ``focus`` names, none."""
    if len(rows) > MAX_NAMED:
        return frozenset()
    return frozenset(entity.name for entity in graph.entities(np.array(sorted(rows), dtype=np.int64)))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="a generated graph instead of MetaQA")
    parser.add_argument("--number", type=int, help="questions of each kind (200; generated: 2)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--ways", help="comma-separated: focus,solver,program,duckdb,oxigraph,kuzu")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if chosen.folder:
            ways = chosen.ways or "solver,focus,duckdb"
            with clew.open(chosen.folder / "kb") as base:
                graph = base.graphs.get("g")
                asked = generated_questions(graph, chosen.number or 2, chosen.seed)
                measure(base, graph, asked, Path(scratch), ways.split(","))
            return
        ways = chosen.ways or "solver,focus,program,duckdb,oxigraph,kuzu"
        with clew.open(Path(scratch) / "kb", create=True) as base:
            base.graphs.add([DATA / "graph.tsv"], name="metaqa")
            graph = base.graphs.get("metaqa")
            asked = metaqa_questions(graph, chosen.number or 200, chosen.seed)
            measure(base, graph, asked, Path(scratch), ways.split(","))


if __name__ == "__main__":
    main()
