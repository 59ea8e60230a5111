"""Random questions in typed triples over five real graphs: what ``focus`` answers, compared with Oxigraph.

    python benchmarks/exact_answers.py --brick brickschema.whl               # 2,000 questions of each graph
    python benchmarks/exact_answers.py --graphs metaqa 2wiki --questions 100
    python benchmarks/exact_answers.py --names                               # names that are spelled exactly
    python benchmarks/exact_answers.py --written --brick brickschema.whl     # 33 questions, computed directly
    python benchmarks/exact_answers.py --why-not --brick brickschema.whl     # why nodes are no answers; the funnel

Each question is asked of the method (with ``--every``, of some), and of Oxigraph as the SPARQL of the same compiled
question, over the RDF view of the graph. Compared are the rows of the exact set, the number of answers, the names of
all answers, the ids of the ranked ones and what they are said to miss. Oxigraph runs in a process of its own, which is ended where a query takes longer than ``--limit`` seconds;
such questions are counted apart, never as equal. So that more can be compared, ``--easy`` leaves out questions whose
exact set takes longer than so many seconds, before Oxigraph is asked, and counts them; ``--compared`` asks questions of
the last graph until so many of all graphs are compared. The graphs are in ``real_graphs.py``; what is absent is left out.
"""  # noqa: E501

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clew
from clew.core.errors import ClewError, UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Question
from clew.knowledge_base import registry
from clew.methods.focus.exact import ExactAnswers, find_exact_answers
from clew.methods.focus.ranking import MAX_NAMED
from clew.store.graphs.rdf_view import PREFIXES, build_rdf_store, read_rdf_store, row_of
from clew.triples.query import to_sparql
from clew.triples.query.evaluation import measure_funnel
from direct_answers import (
    DirectQuestion,
    Ontology,
    draw_conjunctions,
    list_brick_questions,
    list_debian_questions,
    list_film_names,
    list_package_names,
)
from real_graphs import NAMES, read_packages, write_graph

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from typed_questions import QuestionGenerator

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from clew.core.protocols import Method, PropertyGraph
    from clew.store.store import Store

DATA = Path(__file__).parents[2] / "shared" / "data"
#: With one near miss below the answers, which take most of the time where there are twenty.
RECIPE = "focus(k=1)"
#: Questions that differ, and that are shown.
SHOWN = 20


# The oracle


def _serve_queries(folder: str, connection: Connection) -> None:
    """Answer queries with rows, or with the message of an error, until the other end is closed."""
    store = read_rdf_store(Path(folder))
    assert store is not None
    prefixes = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREFIXES.items())
    while True:
        try:
            query = connection.recv()
        except EOFError:
            return
        try:
            solutions: Any = store.query(prefixes + query)
            connection.send(sorted({row_of(solution[0].value) for solution in solutions}))
        except (SyntaxError, ValueError, OSError) as error:
            connection.send(str(error))


class Oracle:
    """Oxigraph over the RDF view of a graph, in a process of its own, which is ended after ``limit`` seconds."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit = folder, limit
        self.process: Any = None
        self.connection: Any = None

    def rows(self, sparql: str) -> list[int] | None:
        """Return the rows of the answers, None if that took too long."""
        if self.process is None:
            self._start()
        self.connection.send(sparql)
        if not self.connection.poll(self.limit):
            self.close()
            return None
        reply = self.connection.recv()
        if isinstance(reply, str):
            raise SystemExit(f"Oxigraph refuses a query: {reply}\n{sparql}")
        rows: list[int] = reply
        return rows

    def _start(self) -> None:
        context = multiprocessing.get_context("forkserver")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve_queries, args=(str(self.folder), other), daemon=True)
        self.process.start()
        other.close()
        # To open the store is no part of a query's time.
        self.connection.send("SELECT ?x WHERE { ?x clew:id ?id } LIMIT 1")
        self.connection.recv()

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
        self.process = None


# Questions


@dataclass(slots=True)
class Tally:
    """What came of the questions over one graph."""

    graph: str
    nodes: int
    edges: int
    questions: int = 0
    compared: int = 0
    with_answers: int = 0
    refused: int = 0
    too_slow: int = 0
    left_out: int = 0
    differences: list[str] = field(default_factory=list)
    answers: int = 0
    exact_seconds: float = 0.0
    method_seconds: float = 0.0
    oracle_seconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        """Return it as a line of the table."""
        numbers = (
            self.questions,
            self.answers,
            self.compared,
            self.with_answers,
            self.refused,
            self.too_slow,
            self.left_out,
            len(self.differences),
        )
        cells = " | ".join(f"{number:,}" for number in (self.nodes, self.edges, *numbers))
        seconds = (self.exact_seconds, self.method_seconds, self.oracle_seconds)
        return f"| {self.graph} | {cells} | {' | '.join(f'{value:.1f}' for value in seconds)} |"


HEADER = (
    "| graph | nodes | edges | questions | answers of the method | compared | with answers | refused "
    "| Oxigraph too slow | left out | differences | s exact sets | s method | s Oxigraph |\n|" + "---|" * 14
)


def find_rows(graph: PropertyGraph, text: str) -> ExactAnswers | None:
    """Return the exact answers to a question; None if it is refused. Raises UsageError."""
    answers = find_exact_answers([graph], [], Question(text, chain=text), TrailRecorder())
    return answers[0] if answers else None


def ask_method(method: Method, text: str) -> Answer:
    """Return the method's answer."""
    return method.answer(Question(text, chain=text), TrailRecorder())


def compare_answers(
    graph: PropertyGraph, exact: ExactAnswers, answer: Answer | None, rows: Sequence[int]
) -> str:
    """Return how an answer differs from the rows that it should have, "" if it does not."""
    if exact.rows.tolist() != list(rows):
        return f"rows: {len(exact.rows)} instead of {len(rows)}"
    if answer is None:
        return ""
    if answer.constraints is None or not answer.constraints.exact:
        return "the answer is not exact"
    if answer.constraints.matching != len(rows):
        return f"{answer.constraints.matching} answers instead of {len(rows)}"
    entities = graph.entities(exact.rows)
    ids = {entity.id for entity in entities}
    ranked = [line.hit.node.id for line in answer.ranking if line.meets_all and line.hit.node is not None]
    if not ids.issuperset(ranked) or len(set(ranked)) < min(len(rows), 200):
        return "ranked nodes that are no answers"
    if len(rows) <= MAX_NAMED and set(answer.values) != {entity.name for entity in entities}:
        return "other names"
    if any(check.satisfaction == 0.0 for line in answer.ranking if line.meets_all for check in line.checks):
        return "an answer that misses a constraint"
    return ""


def compare_questions(
    graph: PropertyGraph,
    method: Method,
    oracle: Oracle,
    questions: Iterator[str],
    given: argparse.Namespace,
    enough: int,
) -> Tally:
    """Ask questions of both, and compare; stop after some seconds, or when ``enough`` are compared."""
    edges = sum(relation.edges for relation in graph.relations().values())
    tally = Tally(graph.name, graph.size, edges)
    begun = time.monotonic()
    for text in questions:
        is_late = enough == sys.maxsize and time.monotonic() - begun > given.seconds
        if is_late or tally.compared >= enough:
            break
        tally.questions += 1
        answer = None
        try:
            started = time.perf_counter()
            exact = find_rows(graph, text)
            seconds = time.perf_counter() - started
            tally.exact_seconds += seconds
            if seconds > given.easy:
                tally.left_out += 1
                continue
            if tally.questions % given.every == 0:
                started = time.perf_counter()
                answer = ask_method(method, text)
                tally.method_seconds += time.perf_counter() - started
                tally.answers += 1
        except UsageError as error:
            tally.refused += 1
            tally.reasons[str(error)[:60]] += 1
            continue
        if exact is None:
            tally.refused += 1
            tally.reasons["a name that the graph does not have"] += 1
            if answer is not None and answer.constraints is not None and answer.constraints.exact:
                tally.differences.append(f"{text}\n  exact though it is refused")
            continue
        started = time.perf_counter()
        rows = oracle.rows(to_sparql(exact.question))
        tally.oracle_seconds += time.perf_counter() - started
        if rows is None:
            tally.too_slow += 1
            continue
        tally.compared += 1
        tally.with_answers += bool(rows)
        if difference := compare_answers(graph, exact, answer, rows):
            tally.differences.append(f"{text}\n  {difference}")
    oracle.close()
    return tally


@contextmanager
def open_graph(name: str, given: argparse.Namespace) -> Iterator[tuple[Store, PropertyGraph, Path] | None]:
    """Yield the store, the graph and a folder; None where the graph's data is absent."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        packages = read_packages() if name == "debian" else None
        path = write_graph(name, given.data, given.brick, folder, packages)
        if path is None:
            print(f"left out, its data is absent: {name}")
            yield None
            return
        with clew.open(folder / "kb", create=True) as base:
            base.graphs.add(path, name=name)
            yield base.store, base.graphs.get(name), folder


def compare_graph(name: str, given: argparse.Namespace, wanted: int | None) -> Tally | None:
    """Ask random questions of one graph, and compare; of the last, until ``wanted`` are compared."""
    with open_graph(name, given) as opened:
        if opened is None:
            return None
        store, graph, folder = opened
        build_rdf_store(graph, folder / "rdf")
        method = registry.build_method(RECIPE, store)
        generator = QuestionGenerator(graph, given.seed, repeated=True)
        numbers = range(given.questions) if wanted is None else itertools.count()
        questions = (generator.question() for _ in numbers)
        oracle = Oracle(folder / "rdf", given.limit)
        enough = sys.maxsize if wanted is None else wanted
        return compare_questions(graph, method, oracle, questions, given, enough)


def report_questions(given: argparse.Namespace) -> None:
    """Print the table of random questions, and the differences."""
    print(f"seed {given.seed}; a query of Oxigraph is ended after {given.limit:g} s\n\n{HEADER}", flush=True)
    tallies: list[Tally] = []
    for name in given.graphs:
        is_last = given.compared and name == given.graphs[-1]
        wanted = given.compared - sum(tally.compared for tally in tallies) if is_last else None
        tally = compare_graph(name, given, wanted)
        if tally is not None:
            tallies.append(tally)
            print(tally.line(), flush=True)
    compared = sum(tally.compared for tally in tallies)
    differing = sum(len(tally.differences) for tally in tallies)
    print(f"{compared:,} questions compared, {differing:,} differences")
    for tally in tallies:
        for reason, number in tally.reasons.most_common():
            print(f"refused in {tally.graph}: {number} times: {reason}")
        for difference in tally.differences[:SHOWN]:
            print(f"differs in {tally.graph}: {difference}")


# Computed directly


def count_right(store: Store, graph: PropertyGraph, questions: Sequence[DirectQuestion]) -> Counter[str]:
    """Print the questions that the method answers otherwise than they were computed; return how many of each."""
    method = registry.build_method(RECIPE, store)
    counts = Counter[str]()
    for question in questions:
        try:
            exact = find_rows(graph, question.text)
            answer = ask_method(method, question.text) if exact is not None else None
        except UsageError:
            exact = answer = None
        if exact is None or answer is None:
            outcome = "refused, as it should be" if question.ids is None else "refused"
        else:
            start = len(graph.name) + 1
            ids = {entity.id[start:] for entity in graph.entities(exact.rows)}
            difference = compare_answers(graph, exact, answer, exact.rows.tolist())
            outcome = "right" if ids == question.ids and not difference else "wrong"
            counts["empty and right"] += outcome == "right" and not ids
        counts[outcome] += 1
        if outcome in ("refused", "wrong"):
            print(f"{outcome}: {question.text}")
    return counts


def report_direct(given: argparse.Namespace, names: bool) -> None:
    """Print how many questions are right of those that are computed directly."""
    for name in ("metaqa", "debian") if names else ("debian", "brick"):
        with open_graph(name, given) as opened:
            if opened is None:
                continue
            store, graph, folder = opened
            if name == "metaqa":
                questions = list_film_names(given.data / "metaqa/graph.tsv", given.seed)
            elif name == "brick":
                questions = list_brick_questions(Ontology(folder / "Brick.ttl"))
            else:
                packages = read_packages()
                assert packages is not None
                listing = (
                    list_package_names(packages, given.seed) if names else list_debian_questions(packages)
                )
                questions = listing
            counts = count_right(store, graph, questions)
            print(f"{name}: {len(questions)} questions: {dict(counts)}", flush=True)


def report_why_not(given: argparse.Namespace) -> None:
    """Print how many reasons and funnels are those that are computed directly."""
    with open_graph("debian", given) as opened:
        packages = read_packages()
        if opened is None or packages is None:
            return
        _, graph, _ = opened
        counts = Counter[str]()
        for conjunction in draw_conjunctions(packages, 50, given.seed):
            exact = find_rows(graph, conjunction.text)
            assert exact is not None
            row = int(graph.rows([f"debian:package/{conjunction.drawn}"])[0])
            missed, expected = exact.missed_constraints(row), conjunction.missed()
            funnel = [(step.text, step.left, step.without) for step in measure_funnel(graph, exact.question)]
            counts["reasons right"] += set(missed.texts) == expected and missed.alone == (len(expected) == 1)
            counts["answers among them"] += not expected
            counts["funnels right"] += funnel == conjunction.funnel()
            if set(missed.texts) != expected or funnel != conjunction.funnel():
                print(f"differs: {conjunction.text}\n  {missed}\n  {funnel}\n  {conjunction.funnel()}")
        print(f"50 nodes: {dict(counts)}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--brick", type=Path, help="a wheel of brickschema, or Brick.ttl")
    parser.add_argument("--graphs", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--questions", type=int, default=2000, help="for each graph")
    parser.add_argument("--every", type=int, default=1, help="ask the method every so many questions")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds of a query of Oxigraph")
    parser.add_argument("--seconds", type=float, default=3600.0, help="seconds of all questions of a graph")
    parser.add_argument("--easy", type=float, default=60.0, help="seconds of an exact set that is compared")
    parser.add_argument("--compared", type=int, default=0, help="compared in all, by more of the last graph")
    parser.add_argument("--names", action="store_true", help="names that are spelled exactly")
    parser.add_argument("--written", action="store_true", help="33 questions, computed directly")
    parser.add_argument("--why-not", action="store_true", help="why nodes are no answers; the funnel")
    given = parser.parse_args()
    try:
        if given.names or given.written:
            report_direct(given, given.names)
        elif given.why_not:
            report_why_not(given)
        else:
            report_questions(given)
    except ClewError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
