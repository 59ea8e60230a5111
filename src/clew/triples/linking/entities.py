"""Entity linking: the nodes of a graph that a name in a question may stand for.

A name is parsed into a mention, candidates are looked up by name, spelling and meaning, and those that are spelled
about equally well are compared with the question, with the help of a line about each node.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.errors import BadCompletion, UsageError
from clew.core.text import fold_name, index_terms
from clew.core.trail import LinkStep
from clew.core.types import LinkedEntity, Usage
from clew.triples.linking.nearest_names import MEANING_WEIGHT, NearestNames

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Rows
    from clew.core.prompts.templates import Template
    from clew.core.protocols import Encoder, LanguageModel, PropertyGraph, Trail
    from clew.core.types import Entity

#: Characters of a node's text, and triples, in a line about it.
SHOWN_TEXT, SHOWN_TRIPLES = 200, 6
#: A graph with more relations is not asked for degrees and triples: each relation would be a query.
MAX_RELATIONS = 64
#: The share of its likeness that a name keeps without its qualifier, article or "'s".
SHORTENED_WEIGHT = 0.97
#: Candidates by spelling, and how like the mention they must be.
POOL, LEAST = 20, 0.55
#: The share of its score that a candidate keeps that is called like the mention except for a qualifier of its own.
QUALIFIED_WEIGHT = 0.96
#: The share that a candidate keeps whose name equals the mention only without capitals, accents and punctuation,
#: where another is written as the mention is. No context outweighs it.
FOLDED_WEIGHT = 0.84
#: The share of its score that a candidate loses that has nothing in common with the context, or with the qualifier.
CONTEXT_PENALTY, QUALIFIER_PENALTY = 0.15, 0.2
#: Candidates within this of the best are compared with the context, at most so many.
NEAR, MAX_COMPARED = 0.15, 10
#: Candidates that a model chooses from.
CHOICES = 5
#: If nothing is spelled more like the mention than this, spelling has failed.
SPELLING_FAILED = 0.85
#: The share of its score that a candidate of another type than the wanted ones keeps.
OTHER_TYPE_WEIGHT = 0.9

_QUALIFIER = re.compile(r"^(?P<name>.*\S)\s*\((?P<qualifier>[^()]+)\)\s*$")
_POSSESSIVE = re.compile(r"['’]s?$")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+(?=\S)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a question: the variants to look up, the written one first, each with a weight; and its qualifier."""

    variants: tuple[tuple[str, float], ...]
    qualifier: str = ""


def parse_mention(name: str) -> Mention:
    """Return the variants of a name: as it is written; without its qualifier, a trailing "'s", a leading article.

    >>> parse_mention("24 Hours (1931 film)")
    Mention(variants=(('24 Hours (1931 film)', 1.0), ('24 Hours', 0.97)), qualifier='1931 film')
    """
    name = name.strip().strip('"“”').strip()
    variants = {name: 1.0}
    bare, qualifier = split_qualifier(name)
    variants.setdefault(bare, SHORTENED_WEIGHT)
    for variant, weight in list(variants.items()):
        owner = _POSSESSIVE.sub("", variant)
        for shorter in (owner, _ARTICLE.sub("", owner)):
            variants.setdefault(shorter, weight * SHORTENED_WEIGHT)
    return Mention(tuple((variant, weight) for variant, weight in variants.items() if variant), qualifier)


def split_qualifier(name: str) -> tuple[str, str]:
    """Return a name without the brackets at its end, and the text in them, "" where there are none.

    >>> split_qualifier("Kismet (film)"), split_qualifier("Kismet")
    (('Kismet', 'film'), ('Kismet', ''))
    """
    match = _QUALIFIER.match(name)
    return (match["name"], match["qualifier"]) if match else (name, "")


@dataclass(slots=True)
class _Candidate:
    """A node that a mention may stand for. ``score`` begins as its likeness; ``reasons`` say how it was found."""

    row: int
    entity: Entity
    score: float
    reasons: list[str]
    degree: int = 0
    line: str = ""

    def to_linked(self) -> LinkedEntity:
        return LinkedEntity(self.row, self.entity.id, self.entity.name, self.score, ", ".join(self.reasons))


@dataclass(frozen=True, slots=True)
class GraphEntityLinker:
    """:class:`clew.core.protocols.EntityLinker` by the names, texts and edges of the graph's own nodes.

    Candidates are the nodes with the mention's name or alias and those spelled like it
    (:meth:`~clew.core.protocols.PropertyGraph.find_similar_names`). A mention is looked up as it is written, and
    without its article, "'s" or qualifier; the qualifier then speaks for the nodes whose type, text, properties or
    triples confirm it. Where several candidates are spelled about equally well, ``encoder`` compares the question
    with a line about each. Without an encoder, or among equals, the node with more edges comes first. In a mounted
    graph spellings are searched only if nothing has the name itself. ``model`` with ``template`` (the prompt
    ``link-entity``) may choose among the first few candidates if doubt remains; an unusable reply leaves the order as
    it was.

    ``nearest`` adds nodes whose names mean nearly the same: those of the wanted types, and without wanted types only
    where spelling fails. So "green" of the type colour is green first, then light green and dark green.

    Deviation: Su et al. (NAACL 2024, Section 3.2) link with BLINK (Wu et al., EMNLP 2020), a bi-encoder and a
    cross-encoder trained on Wikipedia's links, whose entities are Wikipedia's. A person's own graph has other
    entities, often without texts, so candidates come from the graph's own names, and any encoder ranks them.
    """

    encoder: Encoder | None = None
    model: LanguageModel | None = None
    template: Template | None = None
    nearest: NearestNames | None = None

    def __post_init__(self) -> None:
        if (self.model is None) != (self.template is None):
            raise UsageError("a model that links needs its prompt, and the prompt a model")

    def link(
        self,
        graph: PropertyGraph,
        names: Sequence[str],
        context: str = "",
        k: int = 5,
        trail: Trail | None = None,
        types: Sequence[str] = (),
    ) -> list[tuple[LinkedEntity, ...]]:
        """Return for each name at most ``k`` candidates, best first; ``context`` is the question around the names.

        Nodes of ``types`` come before other nodes of the same name. A model call adds a step to the trail. Raises
        ModelError.
        """
        mentions = [parse_mention(name) for name in names]
        candidates = self._find_candidates(graph, mentions, types)
        for name, of_name in zip(names, candidates, strict=True):
            _prefer_exact_writing(name, of_name)
        doubtful = [
            _doubtful(mention, of_name) for mention, of_name in zip(mentions, candidates, strict=True)
        ]
        self._compare(graph, mentions, doubtful, context)
        for name, of_name, compared in zip(names, candidates, doubtful, strict=True):
            _sort(name, of_name, compared)
        self._ask_model(names, candidates, context, trail)
        return [tuple(candidate.to_linked() for candidate in of_name[:k]) for of_name in candidates]

    def _find_candidates(
        self, graph: PropertyGraph, mentions: Sequence[Mention], types: Sequence[str]
    ) -> list[list[_Candidate]]:
        """Return for each mention the nodes that any way of looking it up finds, each with its best likeness."""
        rows_of = [_find_rows(graph, mention) for mention in mentions]
        if self.nearest is not None:
            asked = [
                n
                for n, by_row in enumerate(rows_of)
                if mentions[n].variants
                and (types or max((score for score, _ in by_row.values()), default=0.0) < SPELLING_FAILED)
            ]
            near = self.nearest.search(graph, [mentions[n].variants[0][0] for n in asked], types)
            for n, cosines in zip(asked, near, strict=True):
                for row, cosine in cosines.items():
                    likeness = cosine * MEANING_WEIGHT
                    if row not in rows_of[n] or rows_of[n][row][0] < likeness:
                        rows_of[n][row] = likeness, f"meaning {cosine:.2f}"
        rows = np.array(sorted({row for by_row in rows_of for row in by_row}), dtype=np.int64)
        entities = dict(zip(rows.tolist(), graph.entities(rows), strict=True))
        candidates = [
            [_Candidate(row, entities[row], likeness, [reason]) for row, (likeness, reason) in by_row.items()]
            for by_row in rows_of
        ]
        for mention, of_mention in zip(mentions, candidates, strict=True):
            for candidate in of_mention:
                _name_reason(mention, candidate)
                _penalise_other_type(candidate, types)
        return candidates

    def _compare(
        self,
        graph: PropertyGraph,
        mentions: Sequence[Mention],
        doubtful: Sequence[Sequence[_Candidate]],
        context: str,
    ) -> None:
        """Change the scores of candidates that are spelled about equally well, by qualifier and context."""
        compared = [candidate for of_mention in doubtful for candidate in of_mention]
        if not compared:
            return
        rows = np.array([candidate.row for candidate in compared], dtype=np.int64)
        for candidate, degree in zip(compared, node_degrees(graph, rows).tolist(), strict=True):
            candidate.degree = degree
        if self.encoder or self.model or any(mention.qualifier for mention in mentions):
            lines = describe_nodes(graph, [candidate.entity for candidate in compared], rows)
            for candidate, line in zip(compared, lines, strict=True):
                candidate.line = line
        for mention, of_mention in zip(mentions, doubtful, strict=True):
            if mention.qualifier:
                _compare_qualifier(mention.qualifier, of_mention)
        rivals = [candidate for of_mention in doubtful if len(of_mention) > 1 for candidate in of_mention]
        if self.encoder is None or not context.strip() or not rivals:
            return
        lines = list(dict.fromkeys(candidate.line for candidate in rivals))
        cosines = self.encoder.encode(lines) @ self.encoder.encode([context], query=True)[0]
        cosine_of = dict(zip(lines, np.clip(cosines, 0, 1).astype(float).tolist(), strict=True))
        for candidate in rivals:
            candidate.score *= 1 - CONTEXT_PENALTY * (1 - cosine_of[candidate.line])
            candidate.reasons.append(f"context {cosine_of[candidate.line]:.2f}")

    def _ask_model(
        self,
        names: Sequence[str],
        candidates: Sequence[list[_Candidate]],
        context: str,
        trail: Trail | None,
    ) -> None:
        """Ask the model about the names that are in doubt, all in one call, and put its choices first."""
        if self.model is None or self.template is None:
            return
        in_doubt = [
            (name, of_name)
            for name, of_name in zip(names, candidates, strict=True)
            if len(of_name) > 1 and of_name[0].score - of_name[1].score < NEAR
        ]
        if not in_doubt:
            return
        started = time.perf_counter()
        prompts = [
            self.template.render(question=context, mention=name, candidates=_listing(of_name[:CHOICES]))
            for name, of_name in in_doubt
        ]
        completions = self.model.complete(prompts)
        for (_, of_name), completion in zip(in_doubt, completions, strict=True):
            _put_choice_first(of_name, completion.text, self.template)
        if trail is not None:
            trail.add(
                LinkStep(
                    self.template.name,
                    "; ".join(name for name, _ in in_doubt),
                    usage=sum((completion.usage for completion in completions), Usage()),
                    seconds=time.perf_counter() - started,
                )
            )


def _find_rows(graph: PropertyGraph, mention: Mention) -> dict[int, tuple[float, str]]:
    """Return the nodes that a mention's variants find by name and spelling, each with its likeness and the reason."""
    rows: dict[int, tuple[float, str]] = {}

    def add(row: int, likeness: float, reason: str) -> None:
        if row not in rows or rows[row][0] < likeness:
            rows[row] = likeness, reason

    for variant, weight in mention.variants:
        for row in graph.find_by_name(variant)[:POOL].tolist():
            add(row, weight, "name")
        if graph.is_mounted and rows:
            # Each look-up is a query over a network, or a scan; a node with the name itself is enough.
            return rows
    # An article or "'s" hardly changes which names are similar: only the qualifier is worth a second search.
    for variant, weight in mention.variants[: 2 if mention.qualifier else 1]:
        similar, likenesses = graph.find_similar_names(variant, POOL)
        for row, likeness in zip(similar.tolist(), likenesses.tolist(), strict=True):
            if likeness >= LEAST:
                add(row, likeness * weight, f"spelling {likeness:.2f}")
    return rows


def _name_reason(mention: Mention, candidate: _Candidate) -> None:
    """Say whether the name or an alias was found; raise a candidate with that name and a qualifier of its own."""
    weights = {fold_name(variant): weight for variant, weight in mention.variants}
    if candidate.reasons == ["name"]:
        candidate.reasons = ["name" if fold_name(candidate.entity.name) in weights else "alias"]
        return
    bare, qualifier = split_qualifier(candidate.entity.name)
    score = weights.get(fold_name(bare), 0.0) * QUALIFIED_WEIGHT if qualifier else 0.0
    if score > candidate.score:
        candidate.score, candidate.reasons = score, [f"name ({qualifier})"]


def _penalise_other_type(candidate: _Candidate, types: Sequence[str]) -> None:
    """Lower the score of a candidate of another type than the wanted ones; one without a type may be of any."""
    own = {type for type in (candidate.entity.type, *candidate.entity.more_types) if type}
    if types and own and not own & set(types):
        candidate.score *= OTHER_TYPE_WEIGHT
        candidate.reasons.append(f"of the type {candidate.entity.type}")


def _prefer_exact_writing(name: str, candidates: Sequence[_Candidate]) -> None:
    """If a candidate is written exactly as the name, put those behind it that equal the name only when folded."""
    if any(candidate.entity.name == name for candidate in candidates):
        for candidate in candidates:
            if candidate.reasons == ["name"] and candidate.entity.name != name:
                candidate.score *= FOLDED_WEIGHT
                candidate.reasons = ["name in other capitals, accents or punctuation"]


def _doubtful(mention: Mention, candidates: list[_Candidate]) -> list[_Candidate]:
    """Return the candidates to compare, after sorting all by likeness: none if one stands out and there is no
    qualifier."""
    candidates.sort(key=lambda candidate: (-candidate.score, candidate.entity.id))
    near = [
        candidate for candidate in candidates[:MAX_COMPARED] if candidate.score > candidates[0].score - NEAR
    ]
    stands_out = len(near) == 1 or (near and near[0].score == 1 and near[1].score < 1)
    return [] if stands_out and not mention.qualifier else near


def _compare_qualifier(qualifier: str, candidates: Sequence[_Candidate]) -> None:
    """Lower the score of each candidate by the part of the qualifier that the graph confirms of others and not of
    it."""
    words = set(index_terms(qualifier))
    confirmed = [
        len(words & set(index_terms(qualifier_text(candidate.entity, candidate.line))))
        for candidate in candidates
    ]
    most = max(confirmed, default=0)
    for candidate, count in zip(candidates, confirmed, strict=True):
        if most and candidate.score < 1:  # at 1 the qualifier is part of its name
            candidate.score *= 1 - QUALIFIER_PENALTY * (1 - count / most)
            candidate.reasons.append(f"qualifier {count}/{len(words)}")


def _sort(name: str, candidates: list[_Candidate], compared: Sequence[_Candidate]) -> None:
    """Sort candidates, best first. Those that were not compared stay behind, since nothing was held against them."""
    compared_rows = {candidate.row for candidate in compared}
    least = min((candidate.score for candidate in compared), default=1.0)
    for candidate in candidates:
        if candidate.row not in compared_rows:
            candidate.score = min(candidate.score, least)
    candidates.sort(
        key=lambda candidate: (
            -candidate.score,
            candidate.row not in compared_rows,
            candidate.entity.name != name,  # of equal names the one with the same capitals and accents
            -candidate.degree,
            candidate.entity.id,
        )
    )


def _listing(candidates: Sequence[_Candidate]) -> str:
    return "\n".join(
        f"{number}. {candidate.line or candidate.entity.name}"
        for number, candidate in enumerate(candidates, 1)
    )


def _put_choice_first(candidates: list[_Candidate], reply: str, template: Template) -> None:
    """Put the model's choice first; an unusable reply leaves the order as it was, and the first candidate says
    why."""
    try:
        choice = template.parse(reply)["choice"]
    except BadCompletion as error:
        candidates[0].reasons.append(f"the model's choice cannot be used: {error.problem}")
        return
    if choice == 0:
        candidates[0].reasons.append("the model chose none")
    elif not 0 < choice <= min(len(candidates), CHOICES):
        candidates[0].reasons.append(f"the model chose {choice}, which is not there")
    else:
        chosen = candidates.pop(choice - 1)
        chosen.score = max(chosen.score, *(candidate.score for candidate in candidates))
        chosen.reasons.append("chosen by the model")
        candidates.insert(0, chosen)


def node_degrees(graph: PropertyGraph, rows: Rows) -> NDArray[np.int64]:
    """Return the number of edges of each row, (rows,); zeros for a graph with more than :data:`MAX_RELATIONS`."""
    degrees = np.zeros(len(rows), dtype=np.int64)
    relations = graph.relations()
    if len(relations) <= MAX_RELATIONS:
        for relation in relations:
            for inverse in (False, True):
                degrees += np.diff(graph.neighbours(rows, relation, inverse)[0])
    return degrees


def describe_nodes(graph: PropertyGraph, entities: Sequence[Entity], rows: Rows) -> list[str]:
    """Return a line about each node, ``name (type): text; relation: end; ...``, with at most :data:`SHOWN_TRIPLES`
    triples, one of each relation and direction."""
    triples = _first_triples(graph, rows)
    ends = sorted({end for of_node in triples for _, end in of_node})
    names = {
        row: entity.name
        for row, entity in zip(ends, graph.entities(np.array(ends, dtype=np.int64)), strict=True)
    }
    return [
        _describe_node(entity, [(relation, names[end]) for relation, end in of_node])
        for entity, of_node in zip(entities, triples, strict=True)
    ]


def _first_triples(graph: PropertyGraph, rows: Rows) -> list[list[tuple[str, int]]]:
    triples: list[list[tuple[str, int]]] = [[] for _ in range(len(rows))]
    relations = graph.relations()
    if len(relations) > MAX_RELATIONS:
        return triples
    for inverse in (False, True):
        for relation in relations:
            offsets, ends = graph.neighbours(rows, relation, inverse)
            for place in np.flatnonzero(np.diff(offsets)).tolist():
                if len(triples[place]) < SHOWN_TRIPLES:
                    label = f"{relation} of" if inverse else relation
                    triples[place].append((label, int(ends[offsets[place]])))
    return triples


def _describe_node(entity: Entity, triples: Sequence[tuple[str, str]]) -> str:
    types = ", ".join(type for type in (entity.type, *entity.more_types) if type)
    parts = [entity.text[:SHOWN_TEXT]] if entity.text else []
    parts += [f"{relation}: {end}" for relation, end in triples]
    head = f"{entity.name} ({types})" if types else entity.name
    return f"{head}: {'; '.join(parts)}" if parts else head


def qualifier_text(entity: Entity, line: str) -> str:
    """Return the text that may confirm a qualifier: the line about a node, its types, text and properties."""
    values = " ".join(str(value) for value in entity.properties.values())
    return " ".join((line, entity.type, *entity.more_types, entity.text, values))
