"""Exact answers of a mounted graph: a question is one SPARQL query in the graph's own IRIs, which its source answers.

The meaning is that of imported graphs (:mod:`clew.triples.query.question`): names for each occurrence anew, inverse
and repeated edges, counts, negation. Nodes are resources; literals and blank nodes are none. A source cannot be asked

* for what compares values or names (``<``, ``=``, ``highest``): its literals are not read as numbers and days;
* for an unknown that only negations and upper limits restrict, which would list everything that the source has;
* for more answers than the mount lists (:attr:`clew.store.sparql.mount_options.MountOptions.most`).

These raise UsageError: such a question has no exact reading there. A name stands for what the mount's look-up has
under exactly that label or alias (its languages; with a table of titles, the article of that title), and ``>>+``
may pass through blank nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.errors import UsageError
from clew.core.protocols import PropertyGraph, QueriedGraph
from clew.triples.language.chain import NOT
from clew.triples.query.sparql import QueryWriter

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.triples.engine.patterns import DirectedRelation, Predicate
    from clew.triples.query.question import EdgePattern, GraphQuestion, Group, Ranking


def write_query(graph: PropertyGraph, question: GraphQuestion) -> str:
    """Return the SPARQL of a question: of an imported graph over its RDF view, of a mounted one in its own IRIs.

    Raises UsageError for what a mounted graph cannot be asked exactly.
    """
    if isinstance(graph, QueriedGraph):
        return _MountedWriter(question, graph=graph).write()
    return QueryWriter(question).write()


def solve_at_source(graph: QueriedGraph, question: GraphQuestion) -> Rows:
    """Return the rows of all answers of a mounted graph, ascending. Raises UsageError and RemoteError."""
    return graph.select_nodes(_MountedWriter(question, graph=graph).write())


@dataclass(slots=True)
class _MountedWriter(QueryWriter):
    graph: QueriedGraph | None = None

    @property
    def _source(self) -> QueriedGraph:
        assert self.graph is not None
        return self.graph

    def _positive(self, group: Group) -> list[str]:
        lines = [line for term in group.terms for line in self._term(term)]
        lines += [self._edge(edge) for edge in group.edges]
        if group.tests:
            raise _refusal("a comparison of values or names", "Write triples, types and counts only")
        return lines

    def write(self) -> str:
        """Return the query. Raises UsageError for what a source cannot be asked exactly."""
        self._check_bound(self.question.group)
        return QueryWriter.write(self)

    def _check_bound(self, group: Group) -> None:
        """Raise UsageError if a term could be any node."""
        question = self.question
        bound = {end for edge in group.edges for end in edge.ends} | set(question.names)
        bound |= {term for term, types in question.types.items() if types}
        if question.answer_types or question.answer_rows is not None:
            bound.add(question.target)
        for count in group.counts:
            if count.quantifier != NOT and count.quantifier.least:
                bound |= set(count.outside)
        free = [term for term in group.terms if term not in bound]
        if free:
            raise _refusal(
                f"{free[0]}, which may be any of its nodes", "Add a type, or a triple that is not negated"
            )

    def _edge(self, edge: EdgePattern) -> str:
        unknown = dict.fromkeys(self._name(end) for end in edge.ends if end not in self.question.names)
        return " ".join([QueryWriter._edge(self, edge), *(f"FILTER(isIRI({name}))" for name in unknown)])

    def _term(self, term: str) -> list[str]:
        variable, name = self._name(term), self.question.names.get(term)
        if name is not None:
            return [self._values(variable, self._source.iris(name.rows))]
        return self._types(variable, self.question.types.get(term, ()))

    def _types(self, variable: str, types: Sequence[str]) -> list[str]:
        if not types:
            return []
        iris = [iri for type in types for iri in self._source.type_iris(type)]
        if len(iris) == 1:
            return [f"{variable} <{self._source.type_property}> <{iris[0]}> ."]
        type = self._new("type")
        return [self._values(type, iris), f"{variable} <{self._source.type_property}> {type} ."]

    def _answer_nodes(self, target: str) -> list[str]:
        if self.question.answer_rows is not None and not self.question.answer_types:
            return [self._values(target, self._source.iris(self.question.answer_rows))]
        return QueryWriter._answer_nodes(self, target)

    def _relation(self, directed: DirectedRelation) -> str:
        return f"<{self._source.relation_iri(directed.relation or '')}>"

    def _value_test(self, test: Predicate) -> list[str]:
        raise _refusal("a comparison of values or names", "Write triples, types and counts only")

    def _ranked_number(self, ranking: Ranking, target: str, number: str) -> list[str]:
        raise _refusal("the highest or lowest value", "Rank by the number of neighbours, or leave it out")

    @staticmethod
    def _values(variable: str, iris: Sequence[str]) -> str:
        return f"VALUES {variable} {{ {' '.join(f'<{iri}>' for iri in iris)} }}"


def _refusal(what: str, hint: str) -> UsageError:
    return UsageError(f"a mounted graph cannot be asked exactly for {what}", hint)
