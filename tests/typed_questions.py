"""Random questions in typed triples over a graph, for comparing what answers them with an oracle.

Most are drawn along edges that the graph has, so that they have answers; some ask for what it has not.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from clew.core.protocols import PropertyGraph
from clew.triples.language.chain import quote

#: Nodes that are drawn to begin with.
SAMPLE = 4000


class QuestionGenerator:
    """Draws questions over one graph. ``recursive`` are relations that may be followed repeatedly."""

    def __init__(self, graph: PropertyGraph, seed: int, repeated: bool = True) -> None:
        self.graph, self.random, self.repeated = graph, random.Random(seed), repeated
        self.relations = sorted(graph.relations())
        self.properties = sorted(graph.properties())
        self.types = sorted(graph.types())
        self.rows = [self.random.randrange(graph.size) for _ in range(min(SAMPLE, graph.size))]

    def question(self) -> str:
        """Return a question."""
        self.unknowns = 1
        self.bound: dict[str, int] = {}
        statements: list[str] = []
        row = self._row_with_edges()
        self.bound["#1"] = row
        for _ in range(self.random.choice((1, 1, 2, 2, 3))):
            statements += self._edge(self.random.choice(list(self.bound)), grow=True)
        if len(self.bound) > 2 and self.random.random() < 0.15:
            statements += self._closing_edge()
        extras = (
            (0.25, self._negated),
            (0.25, self._counted),
            (0.08, self._only),
            (0.2, self._condition),
            (0.15, self._typed),
            (0.05, self._repeated_edge),
            (0.08, self._joined_names),
        )
        for chance, extra in extras:
            if self.random.random() < chance:
                statements += extra()
        self.random.shuffle(statements)
        if self.random.random() < 0.08:
            statements += self._superlative()
        return "; ".join([*statements, "final answer: #1"])

    # Parts

    def _row_with_edges(self) -> int:
        for _ in range(50):
            row = self.random.choice(self.rows)
            if self._edges_at(row):
                return row
        return self.random.choice(self.rows)

    def _edges_at(self, row: int) -> list[tuple[str, bool]]:
        place = np.array([row])
        return [
            (relation, inverse)
            for relation in self.graph.relations_at(place)
            for inverse in (False, True)
            if len(self.graph.neighbours(place, relation, inverse)[1])
        ]

    def _name(self, row: int) -> str:
        return quote(self.graph.entities(np.array([row]))[0].name)

    def _new(self) -> str:
        self.unknowns += 1
        return f"#{self.unknowns}"

    def _step(self, row: int) -> tuple[str, bool, int] | None:
        """Return an edge at a node: its relation, whether it is followed backwards, and its other end."""
        edges = self._edges_at(row)
        if not edges:
            return None
        relation, inverse = self.random.choice(edges)
        others = self.graph.neighbours(np.array([row]), relation, inverse)[1]
        return relation, inverse, int(others[self.random.randrange(len(others))])

    def _triple(self, head: str, relation: str, inverse: bool, tail: str, more: str = "") -> str:
        words = quote(relation)
        if self.random.random() < 0.1:
            words = f"{words} or {quote(self.random.choice(self.relations))}"
        if inverse and self.random.random() < 0.5:
            return f"{tail} >> {words} >>{more} {head}"
        arrow = "<<" if inverse else ">>"
        return f"{head} {arrow} {words} {arrow}{more} {tail}"

    def _edge(self, term: str, grow: bool = False) -> list[str]:
        """Return an edge at a bound unknown, to a name or to a new unknown."""
        step = self._step(self.bound[term])
        if step is None:
            return []
        relation, inverse, other = step
        if grow and self.random.random() < 0.45:
            new = self._new()
            self.bound[new] = other
            return [self._triple(term, relation, inverse, new)]
        if self.random.random() < 0.05:
            other = self.random.choice(self.rows)
        return [self._triple(term, relation, inverse, self._name(other))]

    def _closing_edge(self) -> list[str]:
        """Return a further edge between unknowns that are there already."""
        first, second = self.random.sample(list(self.bound), 2)
        return [f"{first} >> {quote(self.random.choice(self.relations))} >> {second}"]

    def _some_edge(self) -> tuple[str, str, bool, int] | None:
        term = self.random.choice(list(self.bound))
        row = self.bound[term] if self.random.random() < 0.5 else self.random.choice(self.rows)
        step = self._step(row)
        return None if step is None else (term, *step)

    def _negated(self) -> list[str]:
        edge = self._some_edge()
        if edge is None:
            return []
        term, relation, inverse, other = edge
        choice = self.random.random()
        if choice < 0.45:
            return ["not " + self._triple(term, relation, inverse, self._name(other))]
        if choice < 0.6 and len(self.bound) > 1:
            first, second = self.random.sample(list(self.bound), 2)
            return ["not " + self._triple(first, relation, inverse, second)]
        new = self._new()
        return ["not " + self._triple(term, relation, inverse, new), *self._about(new, other)]

    def _about(self, term: str, row: int) -> list[str]:
        """Return nothing, or a statement on an unknown that is counted or negated."""
        choice = self.random.random()
        if choice < 0.4:
            return []
        step = self._step(row)
        if step is None:
            return []
        relation, inverse, other = step
        if choice < 0.6:
            return [self._triple(term, relation, inverse, self._name(other))]
        if choice < 0.7:
            return ["not " + self._triple(term, relation, inverse, self._name(other))]
        if choice < 0.8:
            return [self._triple(term, relation, inverse, self.random.choice(list(self.bound)))]
        if choice < 0.9:
            new = self._new()
            return [self._triple(term, relation, inverse, new), *self._about(new, other)]
        new = self._new()
        return [
            f"at least 2 {term} {'<<' if inverse else '>>'} {quote(relation)} {'<<' if inverse else '>>'} {new}"
        ]

    def _quantifier(self, size: int) -> str:
        n = max(0, size + self.random.choice((-1, 0, 0, 1)))
        choices = [f"at least {max(n, 1)}", f"at most {n}", f"exactly {n}", f"from {n} to {n + 2}"]
        return self.random.choice(choices)

    def _counted(self) -> list[str]:
        edge = self._some_edge()
        if edge is None:
            return []
        term, relation, inverse, other = edge
        size = len(self.graph.neighbours(np.array([self.bound[term]]), relation, inverse)[1])
        new, arrow = self._new(), "<<" if inverse else ">>"
        return [
            f"{self._quantifier(min(size, 1000))} {term} {arrow} {quote(relation)} {arrow} {new}",
            *self._about(new, other),
        ]

    def _only(self) -> list[str]:
        edge = self._some_edge()
        if edge is None:
            return []
        term, relation, inverse, other = edge
        arrow = "<<" if inverse else ">>"
        if self.random.random() < 0.5:
            return [f"only {term} {arrow} {quote(relation)} {arrow} {self._name(other)}"]
        new = self._new()
        return [f"only {term} {arrow} {quote(relation)} {arrow} {new}", *self._about(new, other)]

    def _condition(self) -> list[str]:
        term = self.random.choice(list(self.bound))
        entity = self.graph.entities(np.array([self.bound[term]]))[0]
        denied = "not " if self.random.random() < 0.2 else ""
        if not entity.properties:
            number = entity.name
            if not number.isascii() or not number.isdigit():
                return []
            return [f"{denied}{term}.value {self.random.choice(('<', '<=', '>', '>=', '='))} {int(number)}"]
        property, value = self.random.choice(sorted(entity.properties.items(), key=lambda item: item[0]))
        single: Any = self.random.choice(value) if isinstance(value, tuple) else value
        name = f"{term}.{quote(property)}"
        try:
            amount = float(single)
        except (TypeError, ValueError):
            text = str(single)
            word = self.random.choice(text.split() or [""])
            if not word or len(text) > 200:
                return []
            if self.random.random() < 0.5:
                return [f"{denied}{name} = {quote(text)}"]
            return [f"{denied}{name} {self.random.choice(('contains', 'says'))} {quote(word)}"]
        if abs(amount) > 1e12 or amount != amount:
            return []
        text = str(int(amount)) if amount.is_integer() else f"{amount:.6f}"
        if self.random.random() < 0.25:
            return [f"{denied}{name} between {text} and {int(amount) + 10}"]
        return [f"{denied}{name} {self.random.choice(('<', '<=', '>', '>=', '='))} {text}"]

    def _typed(self) -> list[str]:
        if not self.types:
            return []
        term = self.random.choice(list(self.bound))
        type = self.graph.entities(np.array([self.bound[term]]))[0].type or self.random.choice(self.types)
        other = f" or {quote(self.random.choice(self.types))}" if self.random.random() < 0.3 else ""
        return [f"{term} : {quote(type)}{other}"]

    def _repeated_edge(self) -> list[str]:
        edge = self._some_edge() if self.repeated else None
        if edge is None:
            return []
        term, relation, inverse, other = edge
        arrow = "<<" if inverse else ">>"
        tail = self._name(other) if self.random.random() < 0.7 else self.random.choice(list(self.bound))
        return [f"{term} {arrow} {quote(relation)} {arrow}+ {tail}"] if tail != term else []

    def _joined_names(self) -> list[str]:
        edge = self._some_edge()
        if edge is None:
            return []
        term, relation, inverse, other = edge
        arrow = "<<" if inverse else ">>"
        names = f"{self._name(other)} or {self._name(self.random.choice(self.rows))}"
        return [f"{term} {arrow} {quote(relation)} {arrow} {names}"]

    def _superlative(self) -> list[str]:
        count = self.random.choice(("", "", "2 ", "3 "))
        step = self._step(self.bound["#1"])
        numeric = [
            property
            for property, value in self.graph.entities(np.array([self.bound["#1"]]))[0].properties.items()
            if isinstance(value, (int, float))
        ]
        if numeric and self.random.random() < 0.6:
            return [
                f"{count}{self.random.choice(('highest', 'lowest'))} #1.{quote(self.random.choice(numeric))}"
            ]
        if step is None:
            return []
        relation, inverse, _ = step
        arrow = "<<" if inverse else ">>"
        word = self.random.choice(("most", "fewest"))
        return [f"{count}{word} #1 {arrow} {quote(relation)} {arrow} {self._new()}"]
