"""Plans over a graph: formal queries that a question may mean, each with one exact meaning.

A plan is written as typed triples (:mod:`clew.triples.language.typed_parsing`), which execute it exactly as it reads,
and is said in words for a judge and for people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.errors import UsageError
from clew.questions.shapes import BETWEEN_PARTS
from clew.triples.language.typed_parsing import parse_typed
from clew.triples.linking.relation_words import verbalise_relation
from clew.triples.query import compile_question, solve_question

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph
    from clew.questions.catalogue import GraphCatalogue

#: What a plan asks of the nodes that it selects.
LIST, COUNT, YES_NO, VALUE = "list", "count", "yes_no", "value"
#: An unknown by its number, or the name of a node.
Term = int | str


@dataclass(frozen=True, slots=True)
class Edge:
    """A triple: ``head``, one of ``relations``, ``tail``. ``tail`` may list names of which any will do.

    ``quantifier`` ("not", "only", "at least 3") is about the end ``counted_from``, the unknown that is kept.
    ``repeated``: one or more steps along the relation.
    """

    head: Term
    relations: tuple[str, ...]
    tail: Term
    quantifier: str = ""
    repeated: bool = False
    counted_from: int = 0
    more_tails: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """An unknown is of a type."""

    unknown: int
    type: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A property of an unknown (with ``property`` "" its own name) compares with ``values``: ``=``, ``<``, ``<=``,
    ``>``, ``>=``, or ``between`` two of them."""

    unknown: int
    property: str
    comparison: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Same:
    """An unknown is the node called ``name``, or, with ``denied``, is another."""

    unknown: int
    name: str
    denied: bool = False


@dataclass(frozen=True, slots=True)
class Rank:
    """The ``most`` unknowns with the highest or lowest property, or, with ``edge``, with most or fewest edges."""

    unknown: int
    highest: bool
    property: str = ""
    edge: Edge | None = None
    most: int = 1


Statement = Edge | Kind | Comparison | Same | Rank


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """Statements about unknowns, of which number 1 is asked for; ``operation`` says what of it, ``asked_property``
    which value. Equal plans are equal objects, whatever the order in which they were built."""

    statements: tuple[Statement, ...]
    operation: str = LIST
    asked_property: str = ""

    @property
    def triples(self) -> str:
        """The plan as typed triples."""
        texts = [write_statement(statement) for statement in self.statements]
        return "; ".join([*texts, "final answer: #1"])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of nodes in it, in order, each once."""
        names: dict[str, None] = {}
        for statement in self.statements:
            if isinstance(statement, Edge):
                terms: Sequence[Term] = (statement.head, statement.tail, *statement.more_tails)
                names |= dict.fromkeys(term for term in terms if isinstance(term, str))
            elif isinstance(statement, Same):
                names[statement.name] = None
        return tuple(names)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Its triples, those that it counts for an order among them."""
        own = [statement for statement in self.statements if isinstance(statement, Edge)]
        ranked = [
            statement.edge for statement in self.statements if isinstance(statement, Rank) and statement.edge
        ]
        return (*own, *ranked)

    @property
    def shape(self) -> str:
        """What kind of plan it is, without the names, relations and types in it: what plans of all graphs share. Its
        parts are the operation and the statements."""
        parts: list[str] = []
        for statement in self.statements:
            if isinstance(statement, Edge):
                ends = ("" if isinstance(term, int) else "name" for term in (statement.head, statement.tail))
                quantifier = statement.quantifier.rstrip("0123456789 ")
                marks = "+" * statement.repeated + "|" * (
                    len(statement.relations) > 1 or bool(statement.more_tails)
                )
                parts.append(f"{quantifier}edge{marks}{'-' if any(ends) else ''}")
            elif isinstance(statement, Comparison):
                parts.append(
                    "between" if statement.comparison == "between" else f"test{statement.comparison}"
                )
            elif isinstance(statement, Rank):
                parts.append(
                    ("most" if statement.highest else "fewest")
                    if statement.edge
                    else ("highest" if statement.highest else "lowest")
                )
            elif isinstance(statement, Same):
                parts.append("other" if statement.denied else "is")
            else:
                parts.append("type")
        return BETWEEN_PARTS.join((self.operation, " ".join(sorted(parts))))

    def close_gaps(self) -> GraphPlan:
        """Return the plan with its unknowns numbered from 1 without gaps, number 1 being the one asked for."""
        numbers = {1: 1}
        for statement in self.statements:
            for number in _unknowns_of(statement):
                numbers.setdefault(number, len(numbers) + 1)
        return replace(self, statements=tuple(_renumber(statement, numbers) for statement in self.statements))

    def rename(self, names: Mapping[str, str]) -> GraphPlan:
        """Return the plan with other names of nodes."""
        return replace(self, statements=tuple(_rename(statement, names) for statement in self.statements))

    def ask(self, operation: str, property: str = "") -> GraphPlan:
        """Return the plan with another operation."""
        return replace(self, operation=operation, asked_property=property)

    def add(self, *statements: Statement) -> GraphPlan:
        """Return the plan with further statements."""
        return replace(self, statements=(*self.statements, *statements))


@dataclass(frozen=True, slots=True)
class WrittenPlan(GraphPlan):
    """A plan that somebody wrote as typed triples (``text``), whatever these can say."""

    text: str = ""

    @property
    def triples(self) -> str:
        """The plan as typed triples."""
        return self.text


def _unknowns_of(statement: Statement) -> list[int]:
    if isinstance(statement, Edge):
        return [term for term in (statement.head, statement.tail) if isinstance(term, int)]
    if isinstance(statement, Rank) and statement.edge is not None:
        return _unknowns_of(statement.edge)
    return [statement.unknown]


def _renumber(statement: Statement, numbers: Mapping[int, int]) -> Statement:
    if isinstance(statement, Edge):
        head, tail = (
            numbers[term] if isinstance(term, int) else term for term in (statement.head, statement.tail)
        )
        return replace(statement, head=head, tail=tail, counted_from=numbers.get(statement.counted_from, 0))
    if isinstance(statement, Rank) and statement.edge is not None:
        unknown = numbers[statement.unknown]
        edge = _renumber(statement.edge, numbers)
        assert isinstance(edge, Edge)
        return replace(statement, unknown=unknown, edge=edge)
    return replace(statement, unknown=numbers[statement.unknown])


def _rename(statement: Statement, names: Mapping[str, str]) -> Statement:
    if isinstance(statement, Edge):
        head, tail = (
            names.get(term, term) if isinstance(term, str) else term
            for term in (statement.head, statement.tail)
        )
        more_tails = tuple(names.get(name, name) for name in statement.more_tails)
        return replace(statement, head=head, tail=tail, more_tails=more_tails)
    return (
        replace(statement, name=names.get(statement.name, statement.name))
        if isinstance(statement, Same)
        else statement
    )


def write_statement(statement: Statement) -> str:
    """Return a statement as typed triples have it."""
    if isinstance(statement, Edge):
        return write_edge(statement)
    if isinstance(statement, Kind):
        return f"#{statement.unknown} : {statement.type}"
    if isinstance(statement, Same):
        return f"#{statement.unknown} {'!=' if statement.denied else '='} {quote_name(statement.name)}"
    if isinstance(statement, Comparison):
        subject = f"#{statement.unknown}" + (f".{statement.property}" if statement.property else "")
        values = [quote_value(value) for value in statement.values]
        return f"{subject} {statement.comparison} {' and '.join(values)}"
    number = f"{statement.most} " if statement.most > 1 else ""
    if statement.edge is not None:
        return f"{number}{'most' if statement.highest else 'fewest'} {write_edge(statement.edge)}"
    return f"{number}{'highest' if statement.highest else 'lowest'} #{statement.unknown}.{statement.property}"


def write_edge(edge: Edge) -> str:
    """Return a triple as typed triples have it; one that is counted begins with the end that is kept."""
    relation = " or ".join(map(quote_relation, edge.relations))
    tail = " or ".join(write_term(term) for term in (edge.tail, *edge.more_tails))
    start = f"{edge.quantifier} " * bool(edge.quantifier)
    arrow = ">>+" if edge.repeated else ">>"
    if edge.counted_from and edge.tail == edge.counted_from:
        return f"{start}{tail} << {relation} << {write_term(edge.head)}"
    return f"{start}{write_term(edge.head)} >> {relation} {arrow} {tail}"


def write_term(term: Term) -> str:
    """Return an unknown or a name as typed triples have it."""
    return f"#{term}" if isinstance(term, int) else quote_name(term)


def quote_name(name: str) -> str:
    """Return a name in quotation marks."""
    return '"' + name.replace('"', "'") + '"'


def quote_relation(name: str) -> str:
    """Return a relation as typed triples have it; in quotation marks where " or " would divide it."""
    return quote_name(name) if " or " in name else name


def quote_value(value: str) -> str:
    """Return a value; texts in quotation marks, numbers and days without."""
    return value if value[:1].isdigit() or value[:1] == "-" else quote_name(value)


def say_plan(plan: GraphPlan, types: Mapping[int, str]) -> str:
    """Return a plan in words: what is asked, then each statement; relations and properties by their names spelled
    out. ``types`` says of what type each unknown is, "" where that is not known."""
    same = next((each for each in plan.statements if isinstance(each, Same) and each.unknown == 1), None)
    is_known = same is not None and not same.denied
    words = {
        number: f"{'what' if number == 1 else 'some'} {type or 'thing'}" for number, type in types.items()
    }
    if len(types) > 2:
        words |= {number: f"{text} {number}" for number, text in words.items() if number > 1}
    if same is not None and is_known:
        words[1] = same.name
    texts = [
        _say_statement(statement, words)
        for statement in plan.statements
        if statement is not same
        and not (isinstance(statement, Kind) and not is_known and statement.unknown == 1)
    ]
    if same is not None and not is_known:
        texts.append(f"other than {same.name}")
    asked = {
        LIST: words.get(1, "what"),
        COUNT: f"how many {types.get(1) or 'things'}",
        YES_NO: "is it true",
        VALUE: f"the {verbalise_relation(plan.asked_property)} of {words.get(1, 'it')}",
    }[plan.operation]
    return f"{asked}: {'; '.join(texts)}" if texts else asked


def _say_statement(statement: Statement, words: Mapping[int, str]) -> str:
    if isinstance(statement, Edge):
        return _say_edge(statement, words)
    if isinstance(statement, Kind):
        return f"{words[statement.unknown]} is a {verbalise_relation(statement.type)}"
    if isinstance(statement, Same):
        return f"{words[statement.unknown]} is {'not ' * statement.denied}{statement.name}"
    if isinstance(statement, Rank):
        number = f"{statement.most} " if statement.most > 1 else ""
        if statement.edge is not None:
            return f"{number}{'most' if statement.highest else 'fewest'}: {_say_edge(statement.edge, words)}"
        return (
            f"{number}{'highest' if statement.highest else 'lowest'} {verbalise_relation(statement.property)}"
        )
    subject = verbalise_relation(statement.property) if statement.property else words[statement.unknown]
    if statement.property and statement.unknown != 1:
        subject = f"{subject} of {words[statement.unknown]}"
    return f"{subject} {_COMPARISONS[statement.comparison]} {' and '.join(statement.values)}"


_COMPARISONS = {
    "=": "is", "<": "less than", "<=": "at most", ">": "more than", ">=": "at least", "between": "between",
}  # fmt: skip


def _say_edge(edge: Edge, words: Mapping[int, str]) -> str:
    relation = " or ".join(map(verbalise_relation, edge.relations))
    head, *tails = (
        term if isinstance(term, str) else words.get(term, "some thing")
        for term in (edge.head, edge.tail, *edge.more_tails)
    )
    start = f"{edge.quantifier} " * bool(edge.quantifier)
    return f"{start}{head} {relation}{' and so on' * edge.repeated} {' or '.join(tails)}"


def explain_plan(plan: GraphPlan, types: Mapping[int, str]) -> str:
    """Return a plan for the person who asked: what is asked for, then each thing that has to hold of it, with arrows
    that show which way a relation is followed. ``types`` are those of :func:`type_unknowns`.

    >>> plan = GraphPlan((Edge(2, ("replaced",), "OY-KNB"), Edge(2, ("assignedTo",), 1)))
    >>> explain_plan(plan, {1: "route", 2: "aircraft"})
    'each route for which: some aircraft → replaced → OY-KNB; this aircraft → assigned to → the route'
    """
    same = next((each for each in plan.statements if isinstance(each, Same) and each.unknown == 1), None)
    kind = types.get(1) or "thing"
    subject = same.name if same is not None and not same.denied else f"the {kind}"
    name = _namer(types, subject)
    texts = [
        _explain_statement(statement, name)
        for statement in plan.statements
        if statement is not same and not (isinstance(statement, Kind) and statement.unknown == 1)
    ]
    if same is not None and same.denied:
        texts.append(f"it is not {same.name}")
    if plan.operation == VALUE:
        start = f"the {verbalise_relation(plan.asked_property)} of {subject}"
        return f"{start}, where {'; '.join(texts)}" if texts else start
    asked = {LIST: f"each {kind}", COUNT: f"how many there are of the type {kind}", YES_NO: "whether"}
    start = asked[plan.operation]
    return (
        f"{start}{'' if plan.operation == YES_NO else ' for which'}: {'; '.join(texts)}" if texts else start
    )


def _namer(types: Mapping[int, str], subject: str) -> Callable[[Term], str]:
    """Return a function that names a term for a reader: "some aircraft", and after that "this aircraft"."""
    kinds = {number: type or "thing" for number, type in types.items() if number != 1}
    known: set[int] = set()

    def name(term: Term) -> str:
        if isinstance(term, str):
            return term
        if term == 1:
            return subject
        kind = kinds.get(term, "thing")
        article = "this" if term in known else "some"
        known.add(term)
        if list(kinds.values()).count(kind) > 1:
            return f"{article} {kind} {term}"
        return f"{article} {'other ' * (subject == f'the {kind}')}{kind}"

    return name


def _explain_statement(statement: Statement, name: Callable[[Term], str]) -> str:
    if isinstance(statement, Edge):
        head, tail = name(statement.head), " or ".join(map(name, (statement.tail, *statement.more_tails)))
        relation = " or ".join(map(verbalise_relation, statement.relations))
        text = f"{head} → {relation}{', in any number of steps' * statement.repeated} → {tail}"
        return f"{statement.quantifier}: {text}" if statement.quantifier else text
    if not isinstance(statement, Rank):
        return _say_statement(statement, {statement.unknown: name(statement.unknown)})
    number = f"among the {statement.most} " if statement.most > 1 else "the "
    if statement.edge is not None:
        most = "most" if statement.highest else "fewest"
        return f"it is {number}with {most} of: {_explain_statement(statement.edge, name)}"
    rank = "highest" if statement.highest else "lowest"
    return f"its {verbalise_relation(statement.property)} is {number}{rank}"


def type_unknowns(plan: GraphPlan, catalogue: GraphCatalogue) -> dict[int, str]:
    """Return the type of each unknown of a plan, as far as its statements and the schema tell it."""
    possible: dict[int, frozenset[str]] = {1: frozenset()}
    stated: dict[int, str] = {}
    for statement in plan.statements:
        if isinstance(statement, Kind):
            stated[statement.unknown] = statement.type
    for edge in plan.edges:
        for term, is_tail in ((edge.head, False), (edge.tail, True)):
            if isinstance(term, int):
                ends = frozenset().union(*(catalogue.sources_of(name, is_tail) for name in edge.relations))
                own = possible.get(term) or ends
                possible[term] = own & ends or own
    if not possible[1]:
        named = [
            each.property for each in plan.statements if isinstance(each, Comparison | Rank) and each.property
        ]
        owners = [
            catalogue.owners[name] for name in [*named, plan.asked_property] if name in catalogue.owners
        ]
        possible[1] = owners[0] if owners else frozenset()
    return {
        number: verbalise_relation(stated[number])
        if number in stated
        else " or ".join(sorted(map(verbalise_relation, types)))
        if len(types) <= 2
        else ""
        for number, types in (
            possible | {number: frozenset() for number in stated if number not in possible}
        ).items()
    }


def run_plan(graph: PropertyGraph, plan: GraphPlan) -> Rows | None:
    """Return the rows of the nodes that meet a plan, ascending; None where the graph cannot be asked that."""
    try:
        compiled = compile_question(graph, parse_typed(plan.triples)).question
        return None if compiled is None else solve_question(graph, compiled).astype(np.int64)
    except UsageError:
        return None
