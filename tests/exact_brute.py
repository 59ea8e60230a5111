"""The exact meaning of typed triples (:mod:`clew.triples.query.question`), tried out binding by binding.

It shares nothing with the package but the parsed question: names, scopes, counts and tests are read anew, over a
small graph in dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.triples.language.chain import Condition, Quantifier, Term, Triple, TypedChain

Bindings = Mapping[str, int]
#: A triple with its quantifier, the keys of its ends, and the place that tells equal triples apart.
Statement = tuple[Triple, "Quantifier | None", str, str, int]


@dataclass(slots=True)
class World:
    """A small graph: names and aliases, types and properties by node, and pairs of nodes by relation."""

    names: list[list[str]]
    types: list[list[str]]
    properties: list[dict[str, Any]]
    edges: dict[str, set[tuple[int, int]]]

    @property
    def nodes(self) -> range:
        """All nodes."""
        return range(len(self.names))


class Unanswerable(Exception):
    """The question has no meaning here: a name that is not there, or counts that go round in circles."""


@dataclass(slots=True)
class BruteForce:
    """Answers one question over one world."""

    world: World
    typed: TypedChain
    domains: dict[str, list[int]] = field(default_factory=dict)
    tests: dict[str, list[Condition]] = field(default_factory=dict)

    def answers(self) -> list[int]:
        """Return the answers, ascending. Raises Unanswerable."""
        statements = [self._statement(place) for place in range(len(self.typed.chain.triples))]
        target = f"#{self.typed.chain.answer}"
        for condition in self.typed.conditions:
            self.tests.setdefault(f"#{condition.unknown}", []).append(condition)
        for number, types in self.typed.types.items():
            self.domains[f"#{number}"] = [
                node for node in self.world.nodes if set(types) & set(self.world.types[node])
            ]
        ranked: list[Statement | None] = []
        for superlative in self.typed.superlatives:
            if superlative.triple is not None:
                triple = superlative.triple
                place = len(statements)
                statement: Statement = (triple, Quantifier(0, None), *self._ends(triple, place), place)
                ranked.append(statement)
                statements.append(statement)
            else:
                ranked.append(None)
        # An answer: a node for which all other statements hold. What nothing joins to it has to hold somewhere.
        answers = [node for node in self.world.nodes if self._holds_for(target, node, statements, ranked)]
        for superlative, counted in zip(self.typed.superlatives, ranked, strict=True):
            values: dict[int, float] = {}
            for node in answers:
                if counted is None:
                    numbers = [
                        value
                        for value in as_list(self.world.properties[node].get(superlative.property))
                        if isinstance(value, (int, float))
                    ]
                    if numbers:
                        values[node] = max(numbers) if superlative.highest else min(numbers)
                else:
                    rest = [other for other in statements if other is not counted]
                    values[node] = len(self._counted(counted, rest, {target: node}))
            sign = -1 if superlative.highest else 1
            answers = [
                node
                for node in values
                if sum(sign * other < sign * values[node] for other in values.values()) < superlative.count
            ]
        return answers

    def _holds_for(
        self, target: str, node: int, statements: list[Statement], ranked: list[Statement | None]
    ) -> bool:
        if not self._is_allowed(target, node):
            return False
        scoped = {statement[3] for statement in ranked if statement is not None}
        rest = [other for other in statements if other[3] not in scoped]
        # Statements about what a superlative counts belong to its count.
        rest = [other for other in rest if not self._hangs_on(other, scoped, target, statements)]
        return next(self._extend(rest, {target: node}, whole=True), None) is not None

    def _hangs_on(
        self, statement: Statement, scoped: set[str], target: str, statements: list[Statement]
    ) -> bool:
        if not scoped:
            return False
        outside = self._reachable({target}, statements, blocked=scoped)
        inside = self._reachable(set(scoped), statements, blocked=outside)
        return bool({statement[2], statement[3]} & inside)

    @staticmethod
    def _reachable(start: set[str], statements: list[Statement], blocked: set[str]) -> set[str]:
        """Return the terms that hang together with some by statements, without those that are ``blocked``."""
        reached = set(start)
        while True:
            ends = [{statement[2], statement[3]} for statement in statements]
            more = {term for pair in ends if pair & reached for term in pair} - reached - blocked
            if not more:
                return reached
            reached |= more

    # Names

    def _statement(self, place: int) -> Statement:
        triple = self.typed.chain.triples[place]
        return triple, self.typed.quantifiers.get(place), *self._ends(triple, place), place

    def _ends(self, triple: Triple, place: int) -> tuple[str, str]:
        return self._key(triple.head, f"head {place}"), self._key(triple.tail, f"tail {place}")

    def _key(self, term: Term, own: str) -> str:
        if term.unknown is not None:
            return f"#{term.unknown}"
        texts = [term.text]
        if not self._named(term.text):
            texts = [part.strip().strip('"') for part in term.text.split(" or ")]
        nodes = sorted({node for text in texts for node in self._named(text)})
        if not all(self._named(text) for text in texts):
            raise Unanswerable(term.text)
        self.domains[own] = nodes
        return own

    def _named(self, text: str) -> list[int]:
        return [node for node in self.world.nodes if text in self.world.names[node]]

    def _is_allowed(self, term: str, node: int) -> bool:
        if term in self.domains and node not in self.domains[term]:
            return False
        return all(self._passes(condition, node) for condition in self.tests.get(term, ()))

    def _passes(self, condition: Condition, node: int) -> bool:
        if condition.property == "value":
            values: list[Any] = list(self.world.names[node])
        else:
            values = as_list(self.world.properties[node].get(condition.property))
        return any(_compare(value, condition) for value in values) != condition.negated

    # Edges

    def _pairs(self, triple: Triple) -> set[tuple[int, int]]:
        parts = [triple.relation]
        if triple.relation not in self.world.edges:
            parts = [part.strip().strip('"') for part in triple.relation.split(" or ")]
        if not all(part in self.world.edges for part in parts):
            raise Unanswerable(triple.relation)
        pairs = {pair for part in parts for pair in self.world.edges[part]}
        if triple.inverse:
            pairs = {(tail, head) for head, tail in pairs}
        while triple.repeated:
            longer = pairs | {(a, d) for a, b in pairs for c, d in pairs if b == c}
            if longer == pairs:
                break
            pairs = longer
        return pairs

    # Bindings

    def _extend(self, statements: list[Statement], bound: Bindings, *, whole: bool) -> Iterator[Bindings]:
        """Yield bindings of the unknowns that plain triples join to what is bound, for which all that is asked of
        them holds; ``whole``: statements that hang on nothing bound count too."""
        plain = [statement for statement in statements if statement[1] is None]
        for statement in plain:
            if {statement[2], statement[3]} <= set(bound) and not self._edge_holds(statement, bound):
                return
        free = self._next_term(statements, bound, whole=whole)
        if free is None:
            if self._counts_hold(statements, bound):
                yield bound
            return
        for node in self.world.nodes:
            if self._is_allowed(free, node):
                yield from self._extend(statements, {**bound, free: node}, whole=whole)

    def _next_term(self, statements: list[Statement], bound: Bindings, *, whole: bool) -> str | None:
        """Return the term to bind next: one that a plain triple joins to what is bound, then a loose one."""
        counted = {end for _, quantifier, _, end, _ in statements if _counts(quantifier)}
        ends = [{head, tail} for _, quantifier, head, tail, _ in statements if quantifier is None]
        joined = {end for pair in ends if pair & set(bound) for end in pair} - set(bound) - counted
        if joined:
            return min(joined)
        if not whole:
            return None
        inner = counted | self._scoped_inside(statements, bound)
        loose = {end for pair in ends for end in pair} | set(self.tests)
        loose |= {head for _, quantifier, head, _, _ in statements if quantifier is not None}
        return min(loose - set(bound) - inner, default=None)

    def _scoped_inside(self, statements: list[Statement], bound: Bindings) -> set[str]:
        """Return the terms that belong to counts and negations of what is bound."""
        starts = set()
        for _, quantifier, head, tail, _ in statements:
            if _counts(quantifier):
                starts.add(tail)
            elif quantifier is not None and (head in bound) != (tail in bound):
                starts.add(tail if head in bound else head)
        return self._reachable(starts, statements, set(bound)) if starts else set()

    def _counts_hold(self, statements: list[Statement], bound: Bindings) -> bool:
        for statement in statements:
            _, quantifier, head, tail, _ = statement
            if quantifier is None or not {head, tail} & set(bound):
                continue
            rest = [other for other in statements if other is not statement]
            holds = self._count_holds if _counts(quantifier) else self._negation_holds
            if not holds(statement, rest, bound):
                return False
        return True

    def _count_holds(self, statement: Statement, rest: list[Statement], bound: Bindings) -> bool:
        triple, quantifier, head, _, _ = statement
        if head not in bound or quantifier is None:
            return True
        number = len(self._counted(statement, rest, bound))
        reached = {b for a, b in self._pairs(triple) if a == bound[head]}
        if number < quantifier.least or (quantifier.most is not None and number > quantifier.most):
            return False
        return not quantifier.only or number == len(reached)

    def _negation_holds(self, statement: Statement, rest: list[Statement], bound: Bindings) -> bool:
        _, _, head, tail, _ = statement
        if {head, tail} <= set(bound):
            return not self._edge_holds(statement, bound)
        counted = {end for _, other, _, end, _ in rest if _counts(other) and end not in bound}
        return bool(counted & {head, tail}) or not self._counted(statement, rest, bound)

    def _counted(self, statement: Statement, rest: list[Statement], bound: Bindings) -> list[int]:
        """Return the nodes at the free end of a counted or negated edge for which all that is asked of it holds."""
        _, _, head, tail, _ = statement
        free = tail if head in bound else head
        region = self._reachable({free}, rest, set(bound))
        about = [other for other in rest if {other[2], other[3]} & region]
        return [
            node
            for node in self.world.nodes
            if self._is_allowed(free, node)
            and self._edge_holds(statement, {**bound, free: node})
            and next(self._extend(about, {**bound, free: node}, whole=False), None) is not None
        ]

    def _edge_holds(self, statement: Statement, bound: Bindings) -> bool:
        triple, _, head, tail, _ = statement
        return (bound[head], bound[tail]) in self._pairs(triple)


def _counts(quantifier: Quantifier | None) -> bool:
    return quantifier is not None and quantifier != Quantifier(0, 0)


def as_list(value: Any) -> list[Any]:
    """Return the values of a property."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _compare(value: Any, condition: Condition) -> bool:
    wanted = condition.value
    text = str(value).casefold()
    if condition.test == "contains":
        return str(wanted).casefold() in text
    if condition.test == "says":
        return f" {str(wanted).casefold()} " in f" {text} "
    number, amount = _number(value), _number(wanted)
    if condition.test == "=" and amount is None:
        return text == str(wanted).casefold()
    if number is None or amount is None:
        return False
    if condition.test == "between":
        high = _number(condition.high)
        return high is not None and amount <= number <= high
    return {
        "=": number == amount,
        "<": number < amount,
        "<=": number <= amount,
        ">": number > amount,
        ">=": number >= amount,
    }[condition.test]
