"""Questions over graphs with their exact meaning, prepared for training: the options of each, and which are right.

A folder has ``nodes.csv`` and ``edges.csv`` (as ``clew graph add`` reads them) and ``questions.jsonl``: ``question``,
``operation`` (list, count, yes_no, value, none), ``triples`` (typed triples) and ``property``. A folder of MetaQA
has ``graph.tsv`` and ``dev_2hop.jsonl``, ``dev_3hop.jsonl``, whose types spell the path that is meant. Each graph is
also asked without the types of its nodes, as many graphs have none. An option is right if it answers as the
question's own triples do, on the graph and on a copy in which the second ends of the edges of each relation are
exchanged.
"""

from __future__ import annotations

import csv
import json
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import UsageError
from clew.evaluate.datasets import load_dataset
from clew.evaluate.datasets.graphs import gold_triples
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.knowledge_base.knowledge_base import open as open_base
from clew.questions.catalogue import GraphCatalogue
from clew.questions.graph_plans import GraphPlanner, Option
from clew.questions.linear import FEATURES, measure_options
from clew.questions.names import NameMatch, NameScorer, find_names, measure_names
from clew.questions.plans import (
    LIST,
    YES_NO,
    Comparison,
    Edge,
    GraphPlan,
    Kind,
    Rank,
    Same,
    Statement,
    Term,
    run_plan,
)
from clew.questions.shapes import hash_runs, mask_words
from clew.questions.slots import SlotScorer, mask_names, slot_features
from clew.questions.text import QuestionText

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import Encoder

#: The file of MetaQA's graph.
METAQA_GRAPH = "graph.tsv"
_QUANTIFIER = re.compile(r"^(not|only|(?:exactly|at least|at most) \d+) ")
_RANK = re.compile(r"^(?:(\d+) )?(highest|lowest|most|fewest) (.*)$")
_TEST = re.compile(r"#(\d+)(?:\.(.+?))? (=|!=|<=|>=|<|>|between) (.+)")


@dataclass(frozen=True, slots=True)
class PlanSource:
    """A folder with a graph and its questions; with ``typed`` False, its nodes have no types."""

    folder: Path
    typed: bool = True

    @property
    def name(self) -> str:
        """What its questions call it."""
        return self.folder.name if self.typed else f"{self.folder.name} without types"

    @property
    def is_public(self) -> bool:
        """Whether it is a public set, which is never held out."""
        return (self.folder / METAQA_GRAPH).is_file()


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """A question over the graph of a ``domain``, and the plan that it means; None where it cannot be asked. ``kind``
    and ``wording`` are what the data call it."""

    domain: str
    question: str
    plan: GraphPlan | None
    kind: str = ""
    wording: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SlotExample:
    """The features of the steps, types and properties of a catalogue for a question, and which are meant."""

    features: Mapping[str, Floats]
    meant: Mapping[str, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class PlanExample:
    """A question with its options: their ``features`` before they are run, (options, :data:`FEATURES`), and which are
    ``right``; ``buckets`` and ``vector`` are what its shape is read from."""

    question: PlanQuestion
    names: tuple[NameMatch, ...]
    options: tuple[Option, ...]
    features: Floats
    right: NDArray[np.bool_]
    buckets: NDArray[np.int64]
    vector: Floats


def read_source(source: PlanSource) -> list[PlanQuestion]:
    """Return the questions of a source. Raises UsageError for a folder without them."""
    if source.is_public:
        return _read_metaqa(source)
    file = source.folder / "questions.jsonl"
    if not file.is_file():
        raise UsageError(
            f"no questions over a graph in {source.folder}",
            "It needs nodes.csv, edges.csv and questions.jsonl",
        )
    questions = []
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        plan = None
        if row["operation"] != "none":
            plan = read_plan(row["triples"], row["operation"], row.get("property") or "")
            asks_type = plan is not None and any(isinstance(each, Kind) for each in plan.statements)
            if plan is None or (asks_type and not source.typed):
                continue
        questions.append(PlanQuestion(source.name, row["question"], plan, row["kind"], row["wording"]))
    return questions


def _read_metaqa(source: PlanSource) -> list[PlanQuestion]:
    """Return the questions of MetaQA: what a path leads to that never comes back to where it starts."""
    questions = []
    for hops in ("2hop", "3hop"):
        for example in load_dataset("metaqa", source.folder / f"dev_{hops}.jsonl").examples():
            ends = example.question_type.split("_to_")
            last = len(ends) - 1
            numbers = {place: 1 if place == last else place + 1 for place in range(1, last + 1)}
            # Its unknowns are numbered along the path; of a plan, number 1 is asked for.
            pieces = re.split(r"#(\d+)", gold_triples(example))
            pieces[1::2] = [f"#{numbers[int(number)]}" for number in pieces[1::2]]
            plan = read_plan("".join(pieces), LIST)
            if plan is None:
                continue
            topic = str(example.meta["topic"])
            plan = plan.add(
                *(Same(numbers[place], topic, True) for place in numbers if ends[place] == ends[0])
            )
            text = example.question.replace(f"[{topic}]", topic)
            text = f"{text[:1].upper()}{text[1:]}?"
            questions.append(PlanQuestion(source.name, text, plan, hops, example.question_type))
    return questions


def read_plan(triples: str, operation: str, property: str = "") -> GraphPlan | None:
    """Return the plan of typed triples as the training data write them, None for a form that plans do not have."""
    statements: list[Statement] = []
    for text in triples.split("; "):
        if not text.startswith("final answer"):
            statement = _read_statement(text.strip())
            if statement is None:
                return None
            statements.append(statement)
    return GraphPlan(tuple(statements), operation, property).close_gaps()


def _read_statement(text: str) -> Statement | None:
    if rank := _RANK.match(text):
        most, highest = int(rank[1] or 1), rank[2] in ("highest", "most")
        if of_property := re.fullmatch(r"#(\d+)\.(.+)", rank[3]):
            return Rank(int(of_property[1]), highest, of_property[2], most=most)
        edge = _read_edge(rank[3])
        if edge is None:
            return None
        counted = Edge(edge.head, edge.relations, edge.tail, "", edge.repeated, 1, edge.more_tails)
        return Rank(1, highest, edge=counted, most=most)
    if kind := re.fullmatch(r"#(\d+) : (.+)", text):
        return Kind(int(kind[1]), kind[2])
    test = _TEST.fullmatch(text)
    if test is None or ">>" in text:
        return _read_edge(text)
    unknown, comparison = int(test[1]), test[3]
    values = tuple(
        part.strip('"') for part in (test[4].split(" and ") if comparison == "between" else [test[4]])
    )
    if not test[2] and comparison in ("=", "!="):
        return Same(unknown, values[0], comparison == "!=")
    return None if comparison == "!=" else Comparison(unknown, test[2] or "", comparison, values)


def _read_edge(text: str) -> Edge | None:
    quantifier = _QUANTIFIER.match(text)
    parts = re.split(r" (>>\+?|<<\+?) ", text[quantifier.end() :] if quantifier else text)
    if len(parts) != 5:
        return None
    first, _, relation, arrow, second = parts
    others = second.split(" or ")
    head, tail, more = _read_term(first), _read_term(others[0]), tuple(map(_read_term, others[1:]))
    counted_from = head if quantifier and isinstance(head, int) else 0
    if arrow.startswith("<<"):
        if more:
            return None
        head, tail = tail, head
    relations = tuple(name.strip('"') for name in relation.split(" or "))
    names = tuple(name for name in more if isinstance(name, str))
    return Edge(
        head,
        relations,
        tail,
        quantifier[1] if quantifier else "",
        "+" in arrow + parts[1],
        counted_from,
        names,
    )


def _read_term(text: str) -> Term:
    return int(text[1:]) if re.fullmatch(r"#\d+", text.strip()) else text.strip().strip('"')


class Domain:
    """The graph of a source and its rewired copy, in a base in a temporary folder until it is closed."""

    def __init__(self, source: PlanSource, encoder: Encoder) -> None:
        self.encoder = encoder
        self._temporary = tempfile.TemporaryDirectory()
        place = Path(self._temporary.name)
        edges, nodes = _write_tables(source, place)
        rewire_edges(edges, place / "copy.csv")
        self.base: KnowledgeBase = open_base(place / "base", create=True)
        for name, table in (("graph", edges), ("copy", place / "copy.csv")):
            self.base.graphs.add(name=name, nodes=nodes, edges=[table])
        snapshot = self.base.store.snapshot()
        self.graph, self.copy = snapshot.graph("graph"), snapshot.graph("copy")
        self.catalogue = GraphCatalogue.of_graph(self.graph)

    def __enter__(self) -> Domain:
        return self

    def __exit__(self, *_: object) -> None:
        self.base.close()
        self._temporary.cleanup()

    def names(self, question: PlanQuestion) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the features of what may be a name in a question, and which of it the plan names."""
        text = QuestionText(question.question)
        matches = find_names(self.catalogue, text)
        meant = set() if question.plan is None else set(question.plan.names)
        return measure_names(matches, text, self.catalogue), np.array(
            [match.name in meant for match in matches], dtype=bool
        )

    def slots(self, question: PlanQuestion, names: NameScorer) -> SlotExample:
        """Return what the slots of a question are fitted to."""
        text, plan = QuestionText(question.question), question.plan
        statements = () if plan is None else plan.statements
        relations = {name for edge in (plan.edges if plan else ()) for name in edge.relations}
        types = {statement.type for statement in statements if isinstance(statement, Kind)}
        properties = {
            statement.property for statement in statements if isinstance(statement, Comparison | Rank)
        }
        properties |= {plan.asked_property} if plan else set()
        catalogue = self.catalogue
        return SlotExample(
            slot_features(catalogue, text, find_names(catalogue, text, names), self.encoder),
            {
                "steps": np.array([step.relation in relations for step in catalogue.steps], dtype=bool),
                "types": np.array([name in types for name in catalogue.types], dtype=bool),
                "properties": np.array([name in properties for name in catalogue.properties], dtype=bool),
            },
        )

    def prepare(self, question: PlanQuestion, name_scorer: NameScorer, scorer: SlotScorer) -> PlanExample:
        """Return a question with its options, the likeliest first."""
        text = QuestionText(question.question)
        names = find_names(self.catalogue, text, name_scorer)
        slots = scorer.score(self.catalogue, text, names, self.encoder)
        options = GraphPlanner(self.catalogue, text, names, slots).propose()
        features = (
            measure_options(options, text, names, slots, {}) if options else np.zeros((0, len(FEATURES)))
        )
        return PlanExample(
            question,
            tuple(names),
            tuple(options),
            features,
            self.compare(question, options),
            hash_runs(mask_words(text, names, self.catalogue)),
            self.encoder.encode([mask_names(text, names)])[0],
        )

    def compare(self, question: PlanQuestion, options: Sequence[Option]) -> NDArray[np.bool_]:
        """Return which options mean what a question means."""
        right = np.zeros(len(options), dtype=bool)
        gold = question.plan
        if gold is None:
            return right
        wanted = [run_plan(graph, gold) for graph in (self.graph, self.copy)]
        relations = {name for edge in gold.edges for name in edge.relations}
        for place, option in enumerate(options):
            plan = option.plan
            if (plan.operation, plan.asked_property) != (gold.operation, gold.asked_property):
                continue
            # Plans over other relations differ on the copy; they need not be run.
            if {name for edge in plan.edges for name in edge.relations} == relations:
                answers = (run_plan(graph, plan) for graph in (self.graph, self.copy))
                right[place] = all(
                    _agree(gold.operation, want, own) for want, own in zip(wanted, answers, strict=True)
                )
        return right


def _agree(operation: str, first: Rows | None, second: Rows | None) -> bool:
    if first is None or second is None:
        return False
    return bool(len(first)) == bool(len(second)) if operation == YES_NO else np.array_equal(first, second)


def _write_tables(source: PlanSource, place: Path) -> tuple[Path, list[Path]]:
    """Return the tables of a source's edges and nodes as ``clew graph add`` reads them; what differs from the source
    is written into the folder ``place``."""
    if source.is_public:
        edges = place / "edges.csv"
        with edges.open("w", encoding="utf-8", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow(["head", "relation", "tail"])
            for line in (source.folder / METAQA_GRAPH).read_text(encoding="utf-8").splitlines():
                head, relation, tail = line.split("\t")
                writer.writerow([head, relation.replace(" ", "_"), tail])
        return edges, []
    nodes = source.folder / "nodes.csv"
    if not source.typed:
        with nodes.open(encoding="utf-8", newline="") as opened:
            header, *rows = csv.reader(opened)
        places = [number for number, name in enumerate(header) if name != "type"]
        nodes = place / "nodes.csv"
        with nodes.open("w", encoding="utf-8", newline="") as opened:
            csv.writer(opened).writerows([row[number] for number in places] for row in [header, *rows])
    return source.folder / "edges.csv", [nodes]


def rewire_edges(edges: Path, to: Path) -> None:
    """Write the edges of a file with their second ends exchanged within each relation."""
    with edges.open(encoding="utf-8", newline="") as opened:
        head, *rows = csv.reader(opened)
    shuffler, ends = random.Random(0), defaultdict(list)
    for row in rows:
        ends[row[1]].append(row[2])
    for own in ends.values():
        shuffler.shuffle(own)
    with to.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows([head, *([*row[:2], ends[row[1]].pop(), *row[3:]] for row in rows)])


def fit_names(examples: Sequence[tuple[Floats, NDArray[np.bool_]]]) -> NameScorer:
    """Return the name scorer of what may be names, (names, features), and which of it is meant."""
    return NameScorer(
        fit_logistic(
            np.concatenate([features for features, _ in examples]),
            np.concatenate([meant for _, meant in examples]),
        )
    )


def fit_slots(examples: Sequence[SlotExample]) -> SlotScorer:
    """Return the slot scorer of examples."""
    weights = []
    for kind in ("steps", "types", "properties"):
        features = np.concatenate([each.features[kind] for each in examples])
        meant = np.concatenate([each.meant[kind] for each in examples])
        weights.append(fit_logistic(features, meant))
    return SlotScorer(*weights)


def fit_logistic(features: Floats, outcomes: NDArray[np.bool_], decay: float = 1.0) -> Floats:
    """Return the weights of a logistic regression, by Newton's method."""
    weights: Floats = np.zeros(features.shape[1])
    for _ in range(30):
        chances = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        spread = chances * (1 - chances) + 1e-6
        hessian = (features * spread[:, None]).T @ features + decay * np.eye(len(weights))
        weights = weights - np.linalg.solve(hessian, features.T @ (chances - outcomes) + decay * weights)
    return weights
