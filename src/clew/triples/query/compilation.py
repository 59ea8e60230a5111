"""From typed triples to a question over one graph, in which every name is taken for what is called exactly so.

Nothing is guessed here. What the graph does not have by exactly this name is reported, and the question then has no
exact meaning in this graph.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import fold_name, parse_number
from clew.triples.engine.patterns import DirectedRelation, Predicate
from clew.triples.engine.predicates import PropertyTest
from clew.triples.language.conditions import OWN_VALUE
from clew.triples.language.quoting import split_outside_quotes, unquote
from clew.triples.language.typed_chain import NOT, Condition, Quantifier
from clew.triples.linking.relation_words import verbalise_relation
from clew.triples.query.question import Count, EdgePattern, GraphQuestion, NodeName, Ranking, Scoper

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph
    from clew.triples.language.chain import Term, Triple
    from clew.triples.language.typed_chain import Superlative, TypedChain

_OR = r"\s+or\s+"


@dataclass(frozen=True, slots=True)
class Compilation:
    """A question over one graph, and why it has none: ``missing`` has what the graph does not have under that name,
    with the kind of thing that it is in the question."""

    question: GraphQuestion | None
    missing: tuple[str, ...] = ()


def compile_question(
    graph: PropertyGraph,
    typed: TypedChain,
    answer_rows: Rows | None = None,
    answer_types: tuple[str, ...] = (),
) -> Compilation:
    """Return what typed triples ask of a graph; ``answer_rows`` are the rows that may answer, None: all. If they are
    the nodes of some types, ``answer_types`` are these.

    Raises UsageError for counts that have no meaning in any graph.
    """
    return _Compiler(graph, typed).compile(answer_rows, answer_types)


@dataclass(slots=True)
class _Compiler:
    graph: PropertyGraph
    typed: TypedChain
    edges: list[EdgePattern] = field(default_factory=list)
    tests: list[Predicate] = field(default_factory=list)
    counts: list[tuple[EdgePattern, Quantifier]] = field(default_factory=list)
    names: dict[str, NodeName] = field(default_factory=dict)
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    test_texts: dict[Predicate, str] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)
    fresh: int = 0

    def compile(self, answer_rows: Rows | None, answer_types: tuple[str, ...]) -> Compilation:
        typed = self.typed
        for number, wanted in typed.types.items():
            self.types[f"#{number}"] = self._types(wanted)
        values = self._value_unknowns()
        for place, triple in enumerate(typed.chain.triples):
            if triple.tail.unknown not in values:
                self._add_triple(triple, typed.quantifiers.get(place), place)
        for condition in typed.conditions:
            if (triple_of_value := values.get(condition.unknown)) is not None:
                head = triple_of_value.head.unknown
                assert head is not None
                self._add_condition(condition, f"#{head}", triple_of_value.relation)
            else:
                self._add_condition(condition, f"#{condition.unknown}", condition.property)
        for superlative in typed.superlatives:
            if superlative.unknown != typed.chain.answer:
                self.missing[f"a superlative of another unknown than the answer: '{superlative}'"] = None
        ranked = [self._add_superlative(superlative) for superlative in typed.superlatives]
        if self.missing:
            return Compilation(None, tuple(self.missing))
        target = f"#{typed.chain.answer}"
        scoper = Scoper(self.edges, self.tests, self.counts)
        hidden = [edge for edge in ranked if edge is not None]
        group = scoper.scope_with_rankings(target, hidden)
        rankings = [
            _ranking(
                superlative, self._property(superlative.property), scoper.ranked.get(edge) if edge else None
            )
            for superlative, edge in zip(typed.superlatives, ranked, strict=True)
        ]
        return Compilation(
            GraphQuestion(
                target,
                group,
                self.names,
                self.types,
                tuple(rankings),
                answer_rows,
                self.test_texts,
                answer_types,
            )
        )

    def _value_unknowns(self) -> dict[int, Triple]:
        """Return the unknowns that stand for the value of a property, which is no node, with their triples: they are
        the tail of one triple, and nothing but comparisons is asked of them."""
        triples = self.typed.chain.triples
        used = [end.unknown for triple in triples for end in (triple.head, triple.tail)]
        used += [superlative.unknown for superlative in self.typed.superlatives]
        values = {}
        for place, triple in enumerate(triples):
            number = triple.tail.unknown
            if (
                number is not None
                and triple.head.unknown is not None
                and used.count(number) == 1
                and number != self.typed.chain.answer
                and number not in self.typed.types
                and place not in self.typed.quantifiers
                and not self._relations(triple.relation)
                and self._property(triple.relation)
                and not (triple.inverse or triple.repeated)
                and any(condition.unknown == number for condition in self.typed.conditions)
                and all(
                    condition.property == OWN_VALUE
                    for condition in self.typed.conditions
                    if condition.unknown == number
                )
            ):
                values[number] = triple
        return values

    # Statements

    def _add_test(self, test: Predicate, text: str) -> None:
        self.tests.append(test)
        self.test_texts[test] = text

    def _add_triple(self, triple: Triple, quantifier: Quantifier | None, place: int) -> None:
        head, tail = triple.head.unknown, triple.tail.unknown
        if any(end.unknown is None and end.unknowns for end in (triple.head, triple.tail)):
            self.missing[f"an unknown inside a name: '{self.typed.statement(place)}'"] = None
            return
        relations = self._relations(triple.relation)
        property = self._property(triple.relation)
        is_value = (
            head is not None
            and tail is None
            and bool(property)
            and quantifier in (None, NOT)
            and not (triple.inverse or triple.repeated)
        )
        if is_value and (not relations or not len(self._rows(triple.tail.text))):
            test = Predicate(f"#{head}", property, "=", triple.tail.text, negated=quantifier == NOT)
            if not self._has_value(test):
                self.missing[f"value '{triple.tail.text}' of '{property}'"] = None
            self._add_test(test, self.typed.statement(place))
            return
        if not relations:
            kind = "a property, whose values are no nodes" if property else "relation"
            self.missing[f"{kind} '{triple.relation}'"] = None
            for end in (triple.head, triple.tail):
                if end.unknown is None and not property:
                    self._term(end)
            return
        edge = EdgePattern(
            self._term(triple.head),
            _directed(relations, triple.inverse),
            self._term(triple.tail),
            triple.repeated,
            self.typed.statement(place),
        )
        if quantifier is None:
            self.edges.append(edge)
        else:
            self.counts.append((edge, quantifier))

    def _add_condition(self, condition: Condition, term: str, name: str) -> None:
        value: str | float = condition.value
        if (property := self._property(name)) or (name == OWN_VALUE and condition.property == OWN_VALUE):
            test = Predicate(term, property, condition.test, value, condition.high, condition.negated)
            self._add_test(test, str(condition))
            return
        relations = self._relations(name)
        if not relations:
            self.missing[f"property '{name}'"] = None
            return
        # The values are nodes: the relation leads to one whose name passes the test.
        self.fresh += 1
        node = f"+{self.fresh}"
        self.tests.append(Predicate(node, "", condition.test, value, condition.high))
        edge = EdgePattern(term, _directed(relations, False), node, text=str(condition))
        if condition.negated:
            self.counts.append((edge, NOT))
        else:
            self.edges.append(edge)

    def _add_superlative(self, superlative: Superlative) -> EdgePattern | None:
        """Return the edge whose tails are counted; None for a superlative of a property."""
        if superlative.triple is None:
            if not self._property(superlative.property):
                self.missing[f"property '{superlative.property}'"] = None
            return None
        triple = superlative.triple
        relations = self._relations(triple.relation)
        if not relations:
            self.missing[f"relation '{triple.relation}'"] = None
            return None
        return EdgePattern(
            self._term(triple.head),
            _directed(relations, triple.inverse),
            self._term(triple.tail),
            triple.repeated,
            str(superlative),
        )

    # Names

    def _term(self, term: Term) -> str:
        """Return an unknown, or a new occurrence of a name."""
        if term.unknown is not None:
            return f"#{term.unknown}"
        self.fresh += 1
        name = f"={self.fresh}"
        texts = self._alternatives(term.text, lambda text: bool(len(self._rows(text))))
        wanted = self.typed.constant_types.get(term.text, ())
        types = self._types(wanted) if wanted else ()
        rows = np.unique(np.concatenate([self._rows(text) for text in texts or [term.text]]))
        if types and len(rows):
            rows = rows[np.logical_or.reduce([self.graph.has_type(rows, type) for type in types])]
        if not texts or not len(rows):
            self.missing[f"node '{term.text}'"] = None
        self.names[name] = NodeName(tuple(texts or [term.text]), types, rows)
        return name

    def _rows(self, text: str) -> Rows:
        """Return the nodes that are called exactly so, by name, alias or id."""
        candidates = self.graph.find_by_name(text)
        exact = [
            row
            for row, entity in zip(candidates.tolist(), self.graph.entities(candidates), strict=True)
            if text == entity.name or text in entity.aliases
        ]
        return np.array(exact, dtype=np.int64)

    def _has_value(self, test: Predicate) -> bool:
        """Return whether a node has the value of a property that a test asks for. Numbers need not occur: they are
        compared."""
        if not math.isnan(parse_number(test.value)):
            return True
        column = self.graph.property_values(test.property)
        rows = None if column is None else np.unique(column.rows)
        return rows is None or bool(PropertyTest(self.graph, replace(test, negated=False)).holds(rows).any())

    def _alternatives(self, text: str, exists: Callable[[str], bool]) -> list[str]:
        """Return the names that a text joins by "or", which all have to exist; the text itself if it is a name."""
        if exists(text):
            return [text]
        parts = [unquote(part)[0] for part in split_outside_quotes(text, _OR)]
        return parts if len(parts) > 1 and all(map(exists, parts)) else []

    def _types(self, wanted: Sequence[str]) -> tuple[str, ...]:
        types = []
        for name in wanted:
            match = _match_name(name, self.graph.types())
            if match:
                types.append(match)
            else:
                self.missing[f"type '{name}'"] = None
        return tuple(types)

    def _relations(self, words: str) -> tuple[str, ...]:
        names = self.graph.relations()
        texts = self._alternatives(words, lambda text: bool(_match_name(text, names)))
        return tuple(dict.fromkeys(_match_name(text, names) for text in texts))

    def _property(self, words: str) -> str:
        return _match_name(words, self.graph.properties())


def _match_name(words: str, names: Iterable[str]) -> str:
    """Return the name of a relation, a property or a type that is written so, apart from case and separators; "" if
    none or several are."""
    names = list(names)
    if words in names:
        return words
    spelled = re.sub(r"\s+", " ", verbalise_relation(words)).casefold()
    matching = [name for name in names if verbalise_relation(name).casefold() == spelled]
    return matching[0] if len(matching) == 1 and fold_name(matching[0]) else ""


def _directed(relations: Iterable[str], inverse: bool) -> tuple[DirectedRelation, ...]:
    return tuple(DirectedRelation(relation, inverse) for relation in relations)


def _ranking(superlative: Superlative, property: str, counted: Count | None) -> Ranking:
    return Ranking(
        superlative.highest, superlative.count, "" if counted else property, counted, str(superlative)
    )
