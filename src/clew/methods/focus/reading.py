"""What no graph holds, read from the documents: hops that are left over, and wishes that passages speak for."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.chains import Chain, TypedChain
from clew.focus import Pattern, components
from clew.methods.chain.facts import quoted
from clew.methods.chain.filling import Source, in_order
from clew.methods.chain.values import Candidate, Filled, Found
from clew.methods.focus.explaining import witnesses
from clew.methods.focus.preparing import Prepared
from clew.methods.focus.several import with_rows
from clew.text import folded_name, query_terms, terms
from clew.types import Checked, Hit, Question, RankedAnswer, Step

if TYPE_CHECKING:
    from clew.protocols import EntityLinker, PropertyGraph, Retriever, Rows, Snapshot, Trail

#: A node is what a text says only if it is called so.
CALLED = 0.9
#: Passages that are looked at for a wish, answers that are, and the share of its words that must be there.
PASSAGES, ANSWERS, SAYS = 3, 10, 0.6


@dataclass(frozen=True, slots=True)
class Reading:
    """Fills from ``sources`` (:mod:`clew.methods.chain.filling`) what substitution cannot, and looks in the passages
    that ``retriever`` finds for what a graph does not say of an answer; None where there are no documents."""

    sources: Sequence[Source]
    linker: EntityLinker
    retriever: Retriever | None

    def before(
        self, prepared: Prepared, question: Question, trail: Trail
    ) -> tuple[Pattern, dict[int, Found]]:
        """Read the unknowns that only dropped triples lead to; return the pattern with them as nodes, as far as the
        graph has nodes that are called so, and what was found. Graphs are not asked: what they hold together is
        joined (:mod:`clew.methods.focus.several`). Raises ModelError."""
        typed, pattern = prepared.typed, prepared.pattern
        free = unrestricted(pattern)
        left = [typed.chain.triples[one.place] for one in prepared.dropped if one.place is not None]
        left = [one for one in left if one.unknowns]
        if not left or not free & {f"#{number}" for one in left for number in one.unknowns}:
            return pattern, {}
        filled = Filled(Chain(tuple(left), typed.chain.answer))
        in_order(filled, [one for one in self.sources if one.name != "kg"], question, trail)
        found = {number: some[0] for number, some in filled.found.items() if f"#{number}" in free}
        for number, one in found.items():
            rows = self._rows(prepared.graph, one, question, trail)
            if len(rows):
                pattern = with_rows(pattern, f"#{number}", rows)
        return pattern, found

    def after(
        self, typed: TypedChain, known: Mapping[int, Found], question: Question, trail: Trail
    ) -> Filled:
        """Fill what is left of a chain from the unknowns that are known, hop by hop. Raises ModelError,
        RemoteError."""
        filled = Filled(typed.chain)
        for number, one in known.items():
            filled.add(number, one)
        in_order(filled, self.sources, question, trail)
        return filled

    def _rows(self, graph: PropertyGraph, found: Found, question: Question, trail: Trail) -> Rows:
        """Return the nodes that are called like the values that were read, ascending."""
        names = [one.value for one in found.candidates]
        linked = self.linker.link(graph, names, question.text, 1, trail)
        rows = [one.row for some in linked for one in some if one.score >= CALLED]
        return np.unique(np.array(rows, dtype=np.int64))

    def supported(
        self, ranked: Sequence[RankedAnswer], question: Question, trail: Trail
    ) -> list[RankedAnswer]:
        """Return the answers, the first of them with what passages say of the constraints that the graph cannot
        hold: met as far as one passage that names the answer has the words."""
        if self.retriever is None:
            return list(ranked)
        started, hits = time.perf_counter(), list[Hit]()
        made = []
        for one in ranked[:ANSWERS]:
            checks = tuple(
                self._read(self.retriever, one, check, question) if check.met is None else check
                for check in one.checks
            )
            hits += [hit for check in checks if check not in one.checks for hit in check.hits]
            made.append(replace(one, checks=checks))
        if hits:
            seconds = time.perf_counter() - started
            trail.add(
                Step("look in passages", {"answers": len(made)}, tuple(dict.fromkeys(hits)), seconds=seconds)
            )
        return [*made, *ranked[ANSWERS:]]

    def _read(
        self, retriever: Retriever, answer: RankedAnswer, check: Checked, question: Question
    ) -> Checked:
        words = set(query_terms(check.text)) - set(query_terms(answer.name))
        name = folded_name(answer.name)
        best = check
        for hit in retriever.retrieve(Question(f"{answer.name} {check.text}", question.scope), PASSAGES):
            if not words or name not in folded_name(f"{hit.node.document_name} {hit.node.text}"):
                continue
            share = len(words & set(terms(hit.node.text))) / len(words)
            if share >= SAYS and share > (best.met or 0.0):
                best = Checked(check.text, round(share, 3), (hit,))
        return best


def unrestricted(pattern: Pattern) -> frozenset[str]:
    """Return the unknowns that nothing but their types restricts."""
    names = [one.name for one in pattern.variables] + [one.name for one in pattern.constants]
    together = components(pattern.triples, names)
    fixed = {one.name for one in pattern.constants}
    fixed |= {one.variable for one in pattern.predicates}
    fixed |= {end for one in pattern.triples if one.count is not None for end in (one.head, one.tail)}
    fixed |= {one.name for one in pattern.variables if one.rows is not None}
    names = [one.name for one in pattern.variables]
    return frozenset(name for name in names if not together[name] & fixed)


def known_in(
    snapshot: Snapshot,
    graph: PropertyGraph,
    pattern: Pattern,
    sets: Mapping[str, Rows | None],
    most: int,
) -> dict[int, Found]:
    """Return what substitution left of the unknowns that something restricts, as values of a chain, each with the
    triples that say so."""
    found, free = {}, unrestricted(pattern)
    for name, rows in sets.items():
        if not name.startswith("#") or name in free or rows is None or not len(rows):
            continue
        asked = replace(pattern, target=name, answers=None)
        candidates = []
        for row, entity in zip(rows[:most].tolist(), graph.entities(rows[:most]), strict=True):
            hits = [hit for some in witnesses(snapshot, graph, asked, row).values() for hit in some]
            candidates.append(Candidate(entity.name, 1.0, tuple(hits), quoted(hits), entity.id))
        found[int(name[1:])] = Found("kg", tuple(candidates), where=graph.name)
    return found


def checked(typed: TypedChain, found: Mapping[int, Found]) -> dict[str, Checked]:
    """Return the triples of which an unknown was read, as they are written, with what that rests on."""
    made = {}
    for place, triple in enumerate(typed.chain.triples):
        read = [found[number] for number in triple.unknowns if number in found]
        if read:
            text, best = typed.statement(place), read[-1].candidates[0]
            made[text] = Checked(text, round(min(one.score for one in read), 3), best.hits)
    return made
