"""The meaning of a question over a graph as SPARQL, in the mapping of graphs to RDF
(:mod:`clew.store.graphs.rdf_view`). ``clew graph query`` runs it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from clew.core.text import encode_iri_name, fold_name, parse_number, scalar_text
from clew.triples.engine.predicates import is_day, may_be_year
from clew.triples.language.chain import NOT

if TYPE_CHECKING:
    from clew.triples.engine.patterns import DirectedRelation, Predicate
    from clew.triples.query.question import Count, EdgePattern, GraphQuestion, Group, Ranking

_OPERATORS = {"=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_INDENT = "  "
#: The namespaces of relations and of the forms of property values, by prefix (clew.store.graphs.rdf_view.PREFIXES).
NAMESPACES: Mapping[str, str] = {
    "r": "urn:clew:relation:",
    "n": "urn:clew:number:",
    "y": "urn:clew:year:",
    "d": "urn:clew:day:",
    "f": "urn:clew:folded:",
}
#: What may follow a prefix: PN_LOCAL of SPARQL, as far as encoded names need it. Oxigraph reads one dot at most.
_LETTERS = r"A-Za-z0-9_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u3001-\ud7ff"
_LOCAL_NAME = re.compile(rf"(?:[{_LETTERS}]|%..)(?:[{_LETTERS}-]|%..)*(?:\.(?:[{_LETTERS}-]|%..)+)?")


def to_sparql(question: GraphQuestion) -> str:
    """Return the SPARQL query whose results are the nodes that answer the question."""
    return QueryWriter(question).write()


@dataclass(slots=True)
class QueryWriter:
    """Writes the SPARQL of a question over the RDF view of an imported graph."""

    question: GraphQuestion
    fresh: int = 0
    renamed: Mapping[str, str] = field(default_factory=dict)

    def write(self) -> str:
        """Return the query."""
        target = _variable(self.question.target)
        body = [*self._group(self.question.group, ()), *self._answer_nodes(target)]
        query = ["SELECT DISTINCT " + target + " WHERE {", *_indent(body), "}"]
        for ranking in self.question.rankings:
            query = self._rank(query, ranking, target)
        return "\n".join(query)

    def _answer_nodes(self, target: str) -> list[str]:
        if self.question.answer_rows is None:
            return []
        if self.question.answer_types:
            return self._types(target, self.question.answer_types)
        nodes = " ".join(f"node:{row}" for row in self.question.answer_rows.tolist())
        return [f"VALUES {target} {{ {nodes} }}"]

    # Groups

    def _group(self, group: Group, around: tuple[Group, ...]) -> list[str]:
        lines = self._positive(group)
        lines += [line for test in group.tests if test.negated for line in self._test(test)]
        for count in group.counts:
            lines += self._count(count, (*around, group))
        return lines

    def _positive(self, group: Group) -> list[str]:
        """Return what binds the terms of a group."""
        lines = [line for term in group.terms for line in self._term(term)]
        lines += [self._edge(edge) for edge in group.edges]
        lines += [line for test in group.tests if not test.negated for line in self._test(test)]
        bound = {end for edge in group.edges for end in edge.ends}
        bound |= {test.variable for test in group.tests if not test.negated}
        for term in group.terms:
            if term not in bound and not self.question.names.get(term) and not self.question.types.get(term):
                lines.insert(0, f"{self._name(term)} clew:id {self._new('id')} .")
        return lines

    def _term(self, term: str) -> list[str]:
        variable, lines = self._name(term), []
        if name := self.question.names.get(term):
            if len(name.text) == 1:
                lines.append(f"{variable} clew:name|clew:alias {_literal(name.text[0])} .")
            else:
                text = self._new("name")
                lines.append(f"{variable} clew:name|clew:alias {text} .")
                lines.append(f"FILTER({text} IN ({', '.join(map(_literal, name.text))}))")
            types = name.types
        else:
            types = self.question.types.get(term, ())
        return lines + self._types(variable, types)

    def _types(self, variable: str, types: Sequence[str]) -> list[str]:
        """Return that a node is of one of ``types``; nothing if there are none."""
        if not types:
            return []
        if len(types) == 1:
            return [f"{variable} clew:type {_literal(types[0])} ."]
        type = self._new("type")
        return [
            f"{variable} clew:type {type} .",
            f"FILTER({type} IN ({', '.join(map(_literal, types))}))",
        ]

    def _edge(self, edge: EdgePattern) -> str:
        paths = [("^" if directed.inverse else "") + self._relation(directed) for directed in edge.relations]
        path = "|".join(paths)
        if edge.repeated:
            path = f"({path})+"
        elif len(paths) > 1:
            path = f"({path})"
        return f"{self._name(edge.head)} {path} {self._name(edge.tail)} ."

    def _relation(self, directed: DirectedRelation) -> str:
        return shorten_iri("r", directed.relation or "")

    def _count(self, count: Count, around: tuple[Group, ...]) -> list[str]:
        inside = [self._edge(count.edge), *self._group(count.group, around)]
        if count.counted in count.outside:
            inside = [self._edge(count.edge)]
        if count.quantifier == NOT:
            return ["FILTER NOT EXISTS {", *_indent(inside), "}"]
        lines = []
        quantifier = count.quantifier
        if quantifier.least:
            lines += ["{", *_indent(self._count_query(count, inside, f">= {quantifier.least}", around)), "}"]
        if quantifier.most is not None:
            lines += [
                "MINUS {",
                *_indent(self._count_query(count, inside, f"> {quantifier.most}", around)),
                "}",
            ]
        if quantifier.only:
            lines += self._only(count, around)
        return lines

    def _count_query(
        self, count: Count, inside: list[str], having: str, around: tuple[Group, ...]
    ) -> list[str]:
        outside = " ".join(map(self._name, count.outside))
        binding = [line for group in around for line in self._positive(group)]
        return [
            f"SELECT {outside} WHERE {{",
            *_indent([*binding, *inside]),
            f"}} GROUP BY {outside} HAVING (COUNT(DISTINCT {self._name(count.counted)}) {having})",
        ]

    def _only(self, count: Count, around: tuple[Group, ...]) -> list[str]:
        """Return that the edge leads to no node for which the group does not hold."""
        other = self._new("other")
        edge = self._edge(count.edge)
        inner = replace(count, quantifier=NOT)
        outer_names = self.renamed
        self.renamed = {**outer_names, count.counted: other}
        leading = self._edge(count.edge)
        self.renamed = outer_names
        same = f"FILTER({self._name(count.counted)} = {other})"
        group = [edge, *self._group(inner.group, around), same]
        return ["FILTER NOT EXISTS {", *_indent([leading, "FILTER NOT EXISTS {", *_indent(group), "}"]), "}"]

    # Tests

    def _test(self, test: Predicate) -> list[str]:
        inside = self._value_test(test)
        return ["FILTER NOT EXISTS {", *_indent(inside), "}"] if test.negated else inside

    def _value_test(self, test: Predicate) -> list[str]:
        node, value = self._name(test.variable), self._new("value")
        name = test.property
        is_numeric = test.test not in ("contains", "says") and (
            test.test != "=" or parse_number(test.value) == parse_number(test.value)
        )
        if not is_numeric:
            folded = _literal(fold_name(scalar_text(test.value)))
            path = shorten_iri("f", name) if name else "clew:folded-name"
            if test.test == "=":
                return [f"{node} {path} {folded} ."]
            if test.test == "contains":
                return [f"{node} {path} {value} .", f"FILTER(CONTAINS({value}, {folded}))"]
            words = _literal(f" {fold_name(scalar_text(test.value))} ")
            return [f"{node} {path} {value} .", f'FILTER(CONTAINS(CONCAT(" ", {value}, " "), {words}))']
        if test.test != "between":
            path = self._number_path(test.property, may_be_year(test.value))
            number = _number(test.value)
            return [f"{node} {path} {value} .", f"FILTER({value} {_OPERATORS[test.test]} {number})"]
        low, high = _number(test.value), _number(test.high)
        if may_be_year(test.high) and is_day(test.value):
            day = self._new("day")
            path = shorten_iri("d", name) if name else "clew:name-day"
            years = self._number_path(test.property, True)
            return [
                "{",
                f"  {node} {years} {value} . FILTER({value} >= {low} && {value} <= {high})",
                "} UNION {",
                f"  {node} {path} {day} .",
                f"  FILTER({day} >= {_literal(str(test.value))}^^xsd:date && YEAR({day}) <= {high})",
                "}",
            ]
        path = self._number_path(test.property, may_be_year(test.high))
        return [f"{node} {path} {value} .", f"FILTER({value} >= {low} && {value} <= {high})"]

    @staticmethod
    def _number_path(property: str, by_year: bool) -> str:
        if property:
            return shorten_iri("y" if by_year else "n", property)
        return "clew:name-year" if by_year else "clew:name-number"

    # Superlatives

    def _rank(self, query: list[str], ranking: Ranking, target: str) -> list[str]:
        value, other, other_value = self._new("rank"), self._new("other"), self._new("rank")
        ranked = self._ranking_query(query, ranking, target, value)
        others = [
            f"SELECT ({target} AS {other}) ({value} AS {other_value}) WHERE {{",
            *_indent(["{", *_indent(ranked), "}"]),
            "}",
        ]
        better = ">" if ranking.highest else "<"
        return [
            f"SELECT {target} WHERE {{",
            *_indent(["{", *_indent(ranked), "}"]),
            *_indent(
                [
                    "OPTIONAL {",
                    *_indent(["{", *_indent(others), "}"]),
                    f"  FILTER({other_value} {better} {value})",
                    "}",
                ]
            ),
            f"}} GROUP BY {target} HAVING (COUNT(DISTINCT {other}) < {ranking.count})",
        ]

    def _ranking_query(self, query: list[str], ranking: Ranking, target: str, value: str) -> list[str]:
        if ranking.counted is None:
            pick = "MAX" if ranking.highest else "MIN"
            number = self._new("number")
            lines = ["{", *_indent(query), "}", *self._ranked_number(ranking, target, number)]
            head = f"SELECT {target} ({pick}({number}) AS {value}) WHERE {{"
        else:
            count = ranking.counted
            inside = [self._edge(count.edge), *self._group(count.group, ())]
            lines = ["{", *_indent(query), "}", "OPTIONAL {", *_indent(inside), "}"]
            head = f"SELECT {target} (COUNT(DISTINCT {self._name(count.counted)}) AS {value}) WHERE {{"
        return [head, *_indent(lines), f"}} GROUP BY {target}"]

    def _ranked_number(self, ranking: Ranking, target: str, number: str) -> list[str]:
        if not ranking.relations:
            return [f"{target} {shorten_iri('n', ranking.property)} {number} ."]
        node = self._new("value")
        path = "|".join(self._relation(directed) for directed in ranking.relations)
        path = f"({path})" if len(ranking.relations) > 1 else path
        return [f"{target} {path} {node} .", f"{node} clew:name-number {number} ."]

    # Names

    def _name(self, term: str) -> str:
        return self.renamed.get(term) or _variable(term)

    def _new(self, word: str) -> str:
        self.fresh += 1
        return f"?{word}{self.fresh}"


def shorten_iri(prefix: str, name: str) -> str:
    """Return the IRI of a relation or a property, with its prefix if SPARQL allows the name after one.

    >>> shorten_iri("r", "directed by"), shorten_iri("r", "Mr."), shorten_iri("r", "no. 1.2")
    ('r:directed%20by', '<urn:clew:relation:Mr.>', '<urn:clew:relation:no.%201.2>')
    """
    local = encode_iri_name(name)
    return f"{prefix}:{local}" if _LOCAL_NAME.fullmatch(local) else f"<{NAMESPACES[prefix]}{local}>"


def _variable(term: str) -> str:
    return {"#": "?x", "=": "?name_", "+": "?value_"}[term[0]] + term[1:]


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _number(value: object) -> str:
    return f"{parse_number(value)!r}e0"


def _indent(lines: Iterable[str]) -> list[str]:
    return [_INDENT + line for line in lines]
