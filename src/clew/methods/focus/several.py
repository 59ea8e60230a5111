"""One question over several graphs: each holds some of its triples, joined where their nodes are the same (Boer et
al., 2024, Section 5, name "combining multiple knowledge bases" as future work)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.focus import Pattern, Predicate, Substituted, TypedTriple, fixed, substitute
from clew.link.same import same
from clew.methods.focus.explaining import witnesses
from clew.methods.focus.preparing import Prepared, distinct
from clew.methods.focus.ways import ANY_WORTH
from clew.rows import ascending
from clew.types import Checked, Hit

if TYPE_CHECKING:
    from clew.protocols import PropertyGraph, Rows, Snapshot

#: Candidates of an unknown that are looked for in another graph; where there are more, it waits for the other side.
CARRIED = 1000
#: Candidates of the unknown that is asked for that are checked one by one, so that the answers are exact.
CHECKED = 500


@dataclass(slots=True, eq=False)
class Part:
    """What one graph holds of a question: a pattern of its own, with the constraints as they are written."""

    prepared: Prepared
    pattern: Pattern
    texts: tuple[str, ...]
    solved: Substituted | None = None

    @property
    def graph(self) -> PropertyGraph:
        """The graph."""
        return self.prepared.graph

    @property
    def unknowns(self) -> frozenset[str]:
        """The unknowns of its triples and predicates."""
        names = {end for one in self.pattern.triples for end in (one.head, one.tail)}
        names |= {one.variable for one in self.pattern.predicates}
        return frozenset(one.name for one in self.pattern.variables if one.name in names)

    def restrict(self, name: str, rows: Rows) -> bool:
        """Let an unknown be none but some rows; return whether that is news."""
        given = self.pattern.variable(name)
        narrowed = rows if given.rows is None else np.intersect1d(given.rows, rows)
        if given.rows is not None and len(narrowed) == len(given.rows):
            return False
        self.pattern = with_rows(self.pattern, name, narrowed)
        return True


@dataclass(frozen=True, slots=True)
class Joined:
    """Several graphs that hold a question together. ``main`` has the unknown that is asked for; ``rows`` are its
    candidates there; ``links`` says for each unknown that two graphs share how its candidates were told the same."""

    snapshot: Snapshot
    main: Part
    others: tuple[Part, ...]
    rows: Rows
    links: Mapping[str, tuple[str, ...]]
    _kept: dict[tuple[str, str, int], tuple[Rows, tuple[str, ...]]] = field(repr=False)

    def checks(self, row: int) -> dict[str, Checked]:
        """Return the constraints that other graphs hold, as they are written, each with the triples by which an
        answer meets it; none where it does not."""
        sets = substitute(self.main.graph, fixed(self.main.pattern, [row])).sets
        found: dict[str, Checked] = {}
        for other in self.others:
            hits = self._met(other, sets)
            if hits is None:
                return {}
            found |= {text: Checked(text, 1.0, hits.get(text, ())) for text in other.texts}
        return found

    def _met(self, other: Part, sets: Mapping[str, Rows | None]) -> dict[str, tuple[Hit, ...]] | None:
        """Return the triples of another graph for one answer, None where it holds none."""
        pattern, anchor = other.pattern, next(iter(sorted(other.unknowns)))
        for name in sorted(other.unknowns & self.main.unknowns):
            rows = sets[name]
            if rows is not None and len(rows) <= CARRIED:
                carried, _ = _carried(self.snapshot, self.main.graph, rows, other.graph, self._kept)
                pattern, anchor = with_rows(pattern, name, carried), name
        solved = substitute(other.graph, pattern)
        if any(rows is not None and not len(rows) for rows in solved.sets.values()):
            return None
        rows = solved.sets[anchor]
        if rows is None or not len(rows):
            return None
        asked = replace(pattern, target=anchor)
        found = witnesses(self.snapshot, other.graph, asked, int(rows[0]))
        constraints = zip(other.pattern.triples, other.texts, strict=False)
        return {text: found.get(id(one), ()) for one, text in constraints}


def joined(snapshot: Snapshot, prepared: Sequence[Prepared]) -> Joined | None:
    """Return how several graphs hold a question together, where that is more of it than one of them holds alone and
    something meets it; None otherwise.

    Each triple goes to the graph that is surest of it; graphs are narrowed in turn, each by the candidates that the
    others leave for the unknowns they share, until nothing changes. Mounted graphs take no part.
    """
    parts = _parts([one for one in prepared if not one.graph.mounted])
    target = prepared[0].pattern.target
    asked = [one for one in parts if target in one.unknowns]
    if (
        len(parts) < 2
        or not asked
        or sum(len(one.texts) for one in parts) <= max(_held(one) for one in prepared)
    ):
        return None
    kept: dict[tuple[str, str, int], tuple[Rows, tuple[str, ...]]] = {}
    links: dict[str, tuple[str, ...]] = {}
    if not _narrowed(snapshot, parts, kept, links):
        return None
    main = max(asked, key=lambda one: len(one.pattern.triples))
    rows = main.solved.sets[target] if main.solved is not None else None
    if rows is None or not len(rows):
        return None
    found = Joined(snapshot, main, tuple(one for one in parts if one is not main), rows, links, kept)
    if len(rows) <= CHECKED:
        exact = [row for row in rows.tolist() if found.checks(row)]
        found = replace(found, rows=np.array(exact, dtype=np.int64))
    return found if len(found.rows) else None


def _parts(prepared: Sequence[Prepared]) -> list[Part]:
    """Return what each graph holds where every triple and condition goes to the surest; graphs that hold none are
    left out."""
    surest: dict[str, tuple[float, int]] = {}
    for number, one in enumerate(prepared):
        for constraint, text in zip(hard(one.pattern), one.texts, strict=False):
            if constraint.weight > ANY_WORTH and constraint.weight > surest.get(text, (0.0, 0))[0]:
                surest[text] = constraint.weight, number
    parts = []
    for number, one in enumerate(prepared):
        own = [
            (constraint, text)
            for constraint, text in zip(hard(one.pattern), one.texts, strict=False)
            if surest.get(text, (0.0, -1))[1] == number
        ]
        if own:
            pattern = one.pattern.only([*one.pattern.variables, *(it for it, _ in own)])
            parts.append(Part(one, distinct(replace(pattern, answers=None)), tuple(text for _, text in own)))
    return parts


def hard(pattern: Pattern) -> list[TypedTriple | Predicate]:
    """Return the triples and predicates of a pattern, in the order of its constraints."""
    return [*pattern.triples, *pattern.predicates]


def _held(one: Prepared) -> int:
    """Return how many constraints a graph holds by itself, without those that follow any relation."""
    return sum(it.weight > ANY_WORTH for it in hard(one.pattern))


def _narrowed(
    snapshot: Snapshot,
    parts: Sequence[Part],
    kept: dict[tuple[str, str, int], tuple[Rows, tuple[str, ...]]],
    links: dict[str, tuple[str, ...]],
) -> bool:
    """Narrow the parts by each other until nothing changes; return whether each still has candidates."""
    waiting = list(parts)
    while waiting:
        part = waiting.pop(0)
        part.solved = substitute(part.graph, replace(part.pattern, target=min(part.unknowns)))
        if any(rows is not None and not len(rows) for rows in part.solved.sets.values()):
            return False
        for other, name, rows in _shared(part, parts):
            if len(rows) > CARRIED:
                continue
            carried, said = _carried(snapshot, part.graph, rows, other.graph, kept)
            links[name] = tuple(dict.fromkeys((*links.get(name, ()), *said)))
            if other.restrict(name, carried) and other not in waiting:
                waiting.append(other)
    return True


def _shared(part: Part, parts: Sequence[Part]) -> Iterator[tuple[Part, str, Rows]]:
    """Yield the unknowns that a part shares with others, with the candidates that it leaves them."""
    sets = part.solved.sets if part.solved is not None else {}
    for other in parts:
        if other is not part:
            for name in sorted(part.unknowns & other.unknowns):
                rows = sets.get(name)
                if rows is not None:
                    yield other, name, rows


def _carried(
    snapshot: Snapshot,
    graph: PropertyGraph,
    rows: Rows,
    other: PropertyGraph,
    kept: dict[tuple[str, str, int], tuple[Rows, tuple[str, ...]]],
) -> tuple[Rows, tuple[str, ...]]:
    """Return the nodes of another graph that some of one are the same as, ascending, and what says so."""
    found, said = [np.empty(0, dtype=np.int64)], list[str]()
    for row, id in zip(rows.tolist(), graph.ids(rows), strict=True):
        key = (graph.name, other.name, row)
        if key not in kept:
            links = [
                one
                for one in same(snapshot, id, thorough=False)
                if not one.document and one.target.startswith(f"{other.name}:")
            ]
            told = tuple(f"{one.source} is {one.target}: {'; '.join(one.by)}" for one in links)
            kept[key] = other.rows([one.target for one in links]), told
        found.append(kept[key][0])
        said += kept[key][1]
    return ascending(np.concatenate(found)), tuple(said)


def with_rows(pattern: Pattern, name: str, rows: Rows) -> Pattern:
    """Return the pattern with an unknown that may be none but some rows."""
    return replace(
        pattern,
        variables=tuple(replace(one, rows=rows) if one.name == name else one for one in pattern.variables),
    )
