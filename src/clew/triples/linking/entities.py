"""What a graph says of a few nodes, in a line each, and how much it says of them."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.errors import BadCompletion, UsageError
from clew.core.steps import LinkStep
from clew.core.text import fold_name, index_terms
from clew.core.types import LinkedEntity, Usage
from clew.triples.linking.nearest_names import MEANING_WEIGHT, NearestNames

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Rows
    from clew.core.prompts.templates import Template
    from clew.core.protocols import Encoder, LanguageModel, PropertyGraph, Trail
    from clew.core.types import Entity

#: What is shown of a text, in characters, and how many triples.
SHOWN_TEXT, SHOWN_TRIPLES = 200, 6
#: A graph with more relations is not asked for degrees and triples: each relation would be a look-up.
MAX_RELATIONS = 64


def node_degrees(graph: PropertyGraph, rows: Rows) -> NDArray[np.int64]:
    """Return the number of edges of each row, (n,); zeros for a graph of very many relations."""
    found = np.zeros(len(rows), dtype=np.int64)
    relations = graph.relations()
    if len(relations) <= MAX_RELATIONS:
        for relation in relations:
            for inverse in (False, True):
                found += np.diff(graph.neighbours(rows, relation, inverse)[0])
    return found


def describe_nodes(graph: PropertyGraph, entities: Sequence[Entity], rows: Rows) -> list[str]:
    """Return one line about each node: ``name (type): text; relation: end; ...``, at most
    :data:`SHOWN_TRIPLES` triples,
    one of each relation."""
    triples = _triples(graph, rows)
    ends = sorted({end for several in triples for _, end in several})
    names = {
        row: entity.name
        for row, entity in zip(ends, graph.entities(np.array(ends, dtype=np.int64)), strict=True)
    }
    return [
        _line(entity, [(words, names[end]) for words, end in several])
        for entity, several in zip(entities, triples, strict=True)
    ]


def _triples(graph: PropertyGraph, rows: Rows) -> list[list[tuple[str, int]]]:
    found: list[list[tuple[str, int]]] = [[] for _ in range(len(rows))]
    relations = graph.relations()
    if len(relations) > MAX_RELATIONS:
        return found
    for inverse in (False, True):
        for relation in relations:
            offsets, ends = graph.neighbours(rows, relation, inverse)
            for place in np.flatnonzero(np.diff(offsets)).tolist():
                if len(found[place]) < SHOWN_TRIPLES:
                    words = f"{relation} of" if inverse else relation
                    found[place].append((words, int(ends[offsets[place]])))
    return found


def _line(entity: Entity, triples: Sequence[tuple[str, str]]) -> str:
    types = ", ".join(one for one in (entity.type, *entity.more_types) if one)
    parts = [entity.text[:SHOWN_TEXT]] if entity.text else []
    parts += [f"{words}: {end}" for words, end in triples]
    head = f"{entity.name} ({types})" if types else entity.name
    return f"{head}: {'; '.join(parts)}" if parts else head


def qualifier_text(entity: Entity, line: str) -> str:
    """Return everything that may confirm a qualifier: the line about a node, its types, text and properties."""
    values = " ".join(str(value) for value in entity.properties.values())
    return " ".join((line, entity.type, *entity.more_types, entity.text, values))


#: What the name without its qualifier, article or "'s" keeps of its likeness.
SHORTENED_WEIGHT = 0.97

_QUALIFIER = re.compile(r"^(?P<name>.*\S)\s*\((?P<said>[^()]+)\)\s*$")
_POSSESSIVE = re.compile(r"['’]s?$")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+(?=\S)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mention:
    """The ways to look a name up, as it is written first, with what each is worth; what its qualifier says."""

    variants: tuple[tuple[str, float], ...]
    qualifier: str = ""


def parse_mention(name: str) -> Mention:
    """Return how to look a name up: as it is written; without its qualifier, a trailing "'s", a leading article.

    >>> mention_of("24 Hours (1931 film)")
    Mention(ways=(('24 Hours (1931 film)', 1.0), ('24 Hours', 0.97)), qualifier='1931 film')
    """
    name = name.strip().strip('"“”').strip()
    ways = {name: 1.0}
    bare, qualifier = split_qualifier(name)
    ways.setdefault(bare, SHORTENED_WEIGHT)
    for way, worth in list(ways.items()):
        owner = _POSSESSIVE.sub("", way)
        for other in (owner, _ARTICLE.sub("", owner)):
            ways.setdefault(other, worth * SHORTENED_WEIGHT)
    return Mention(tuple((way, worth) for way, worth in ways.items() if way), qualifier)


def split_qualifier(name: str) -> tuple[str, str]:
    """Return a name without what stands in brackets at its end, and that; ("", of course, where nothing does).

    >>> without_qualifier("Kismet (film)"), without_qualifier("Kismet")
    (('Kismet', 'film'), ('Kismet', ''))
    """
    found = _QUALIFIER.match(name)
    return (found["name"], found["said"]) if found else (name, "")


#: Candidates by spelling that are looked at.
POOL = 20
#: A spelling less like the mention than this is no candidate.
LEAST = 0.55
#: What a candidate keeps that is called like the mention but for a qualifier of its own.
QUALIFIED = 0.96
#: What a candidate keeps whose name only folds to the mention, where another is written like it; no context
#: outweighs it.
REWRITTEN = 0.84
#: What of its score a candidate loses that has nothing to do with the context, or with the mention's qualifier.
CONTEXT, DENIED = 0.15, 0.2
#: Only what is spelled nearly as well as the best is compared with the context, and at most so many.
NEAR, RANKED = 0.15, 10
#: Candidates that a model chooses among.
CHOICES = 5
#: Where nothing is spelled more like the mention than this, spelling has failed.
FAILED = 0.85
#: What a candidate keeps that is of another type than was asked for.
OTHER_TYPE = 0.9


@dataclass(slots=True)
class _Candidate:
    """A node that may be meant. ``score`` is its likeness at first."""

    row: int
    entity: Entity
    score: float
    how: list[str]
    degree: int = 0
    line: str = ""

    def linked(self) -> LinkedEntity:
        return LinkedEntity(self.row, self.entity.id, self.entity.name, self.score, ", ".join(self.how))


@dataclass(frozen=True, slots=True)
class GraphEntityLinker:
    """:class:`clew.core.protocols.EntityLinker`.

    Candidates are the nodes with the mention's name or alias and those spelled like it
    (:meth:`~clew.core.protocols.PropertyGraph.similar`); a mention is looked up as it is written, and without
    its article,
    "'s" or qualifier, which then speaks for the nodes whose type, text, properties or triples confirm it. Where
    several are spelled about equally well, ``encoder`` compares the context with a line about each; without it, or
    among equals, the one with more edges comes first. In a mounted graph spellings are searched only where nothing
    has the name itself. ``model`` with ``template`` (the prompt ``link-entity``) may choose among the first few where
    that leaves a doubt; a reply that cannot be used leaves the order as it was.

    ``nearest`` adds the nodes whose names mean nearly the same: those of the types that are asked for, and where
    none are, only where spelling fails. So "green" of the type colour is green first, then light green, dark green.

    Deviation: Su et al. (NAACL 2024, Section 3.2) link with BLINK (Wu et al., EMNLP 2020), a bi-encoder and a
    cross-encoder trained on Wikipedia's links, whose entities are Wikipedia's; a person's own graph has others, and
    often no texts. So candidates come from the graph's own names, and any encoder ranks them.
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
        """Return for each name at most ``k`` candidates, best first; ``context`` is the question around them.

        Nodes of ``types`` come before others that are called as well. What the model was asked goes to the trail.
        Raises ModelError.
        """
        mentions = [parse_mention(name) for name in names]
        found = self._candidates(graph, mentions, types)
        for name, several in zip(names, found, strict=True):
            _written_the_same(name, several)
        doubtful = [_near(mention, several) for mention, several in zip(mentions, found, strict=True)]
        self._rank(graph, mentions, doubtful, context)
        for name, several, near in zip(names, found, doubtful, strict=True):
            looked = {one.row for one in near}
            least = min((one.score for one in near), default=1.0)
            for one in several:
                if one.row not in looked:  # what speaks against it was not looked for, so it stays behind
                    one.score = min(one.score, least)
            several.sort(
                key=lambda one: (
                    -one.score,
                    one.row not in looked,
                    one.entity.name != name,  # of equal names the one with the same capitals and accents
                    -one.degree,
                    one.entity.id,
                )
            )
        self._choose(names, found, context, trail)
        return [tuple(one.linked() for one in several[:k]) for several in found]

    def _candidates(
        self, graph: PropertyGraph, mentions: Sequence[Mention], types: Sequence[str]
    ) -> list[list[_Candidate]]:
        """Return for each mention the nodes that any way of looking it up finds, with the best likeness of each."""
        found = [_rows(graph, mention) for mention in mentions]
        if self.nearest is not None:
            asked = [
                n
                for n, several in enumerate(found)
                if mentions[n].variants
                and (types or max((score for score, _ in several.values()), default=0.0) < FAILED)
            ]
            alike = self.nearest.search(graph, [mentions[n].variants[0][0] for n in asked], types)
            for n, near in zip(asked, alike, strict=True):
                for row, cosine in near.items():
                    if row not in found[n] or found[n][row][0] < cosine * MEANING_WEIGHT:
                        found[n][row] = cosine * MEANING_WEIGHT, f"meaning {cosine:.2f}"
        rows = np.array(sorted({row for several in found for row in several}), dtype=np.int64)
        entities = dict(zip(rows.tolist(), graph.entities(rows), strict=True))
        return [
            [
                _typed(_settled(mention, _Candidate(row, entities[row], likeness, [how])), types)
                for row, (likeness, how) in several.items()
            ]
            for mention, several in zip(mentions, found, strict=True)
        ]

    def _rank(
        self,
        graph: PropertyGraph,
        mentions: Sequence[Mention],
        doubtful: Sequence[Sequence[_Candidate]],
        context: str,
    ) -> None:
        """Change the scores of candidates that are spelled about equally well, by qualifier and context."""
        every = [one for several in doubtful for one in several]
        if not every:
            return
        rows = np.array([one.row for one in every], dtype=np.int64)
        for one, degree in zip(every, node_degrees(graph, rows).tolist(), strict=True):
            one.degree = degree
        if self.encoder or self.model or any(mention.qualifier for mention in mentions):
            for one, line in zip(
                every, describe_nodes(graph, [one.entity for one in every], rows), strict=True
            ):
                one.line = line
        for mention, several in zip(mentions, doubtful, strict=True):
            if mention.qualifier:
                _qualify(mention.qualifier, several)
        several_of = [one for several in doubtful if len(several) > 1 for one in several]
        if self.encoder is None or not context.strip() or not several_of:
            return
        distinct = list(dict.fromkeys(one.line for one in several_of))
        cosines = self.encoder.encode(distinct) @ self.encoder.encode([context], query=True)[0]
        cosine_of = dict(zip(distinct, np.clip(cosines, 0, 1).astype(float).tolist(), strict=True))
        for one in several_of:
            one.score *= 1 - CONTEXT * (1 - cosine_of[one.line])
            one.how.append(f"context {cosine_of[one.line]:.2f}")

    def _choose(
        self,
        names: Sequence[str],
        found: Sequence[list[_Candidate]],
        context: str,
        trail: Trail | None,
    ) -> None:
        """Ask the model about the names that are in doubt, all in one call, and put what it chooses first."""
        if self.model is None or self.template is None:
            return
        asked = [
            (name, several)
            for name, several in zip(names, found, strict=True)
            if len(several) > 1 and several[0].score - several[1].score < NEAR
        ]
        if not asked:
            return
        started = time.perf_counter()
        prompts = [
            self.template.render(question=context, mention=name, candidates=_numbered(several[:CHOICES]))
            for name, several in asked
        ]
        completions = self.model.complete(prompts)
        for (_, several), made in zip(asked, completions, strict=True):
            _put_first(several, made.text, self.template)
        if trail is not None:
            usage = sum((one.usage for one in completions), Usage())
            names_asked = "; ".join(name for name, _ in asked)
            seconds = time.perf_counter() - started
            trail.add(LinkStep(self.template.name, names_asked, usage=usage, seconds=seconds))


def _put_first(several: list[_Candidate], reply: str, template: Template) -> None:
    """Put what a model chooses of the candidates first; a reply that cannot be used leaves them as they are."""
    try:
        choice = template.parse(reply)["choice"]
    except BadCompletion as error:
        several[0].how.append(f"the model's choice cannot be used: {error.problem}")
        return
    if choice == 0:
        several[0].how.append("the model chose none")
    elif not 0 < choice <= min(len(several), CHOICES):
        several[0].how.append(f"the model chose {choice}, which is not there")
    else:
        chosen = several.pop(choice - 1)
        chosen.score = max(chosen.score, *(one.score for one in several))
        chosen.how.append("chosen by the model")
        several.insert(0, chosen)


def _rows(graph: PropertyGraph, mention: Mention) -> dict[int, tuple[float, str]]:
    found: dict[int, tuple[float, str]] = {}

    def take(row: int, likeness: float, how: str) -> None:
        if row not in found or found[row][0] < likeness:
            found[row] = likeness, how

    for way, worth in mention.variants:
        for row in graph.find_by_name(way)[:POOL].tolist():
            take(row, worth, "name")
        if graph.is_mounted and found:
            # Each look-up is a question over a network, or a scan; what has the name itself is enough.
            return found
    # An article or "'s" hardly changes what is spelled alike: only the qualifier is worth a second search.
    for way, worth in mention.variants[: 2 if mention.qualifier else 1]:
        rows, likeness = graph.find_similar_names(way, POOL)
        for row, alike in zip(rows.tolist(), likeness.tolist(), strict=True):
            if alike >= LEAST:
                take(row, alike * worth, f"spelling {alike:.2f}")
    return found


def _settled(mention: Mention, one: _Candidate) -> _Candidate:
    """Say whether it was a name or an alias that was found; raise what is called so but for a qualifier of its
    own."""
    ways = {fold_name(way): worth for way, worth in mention.variants}
    if one.how == ["name"]:
        one.how = ["name" if fold_name(one.entity.name) in ways else "alias"]
        return one
    bare, qualifier = split_qualifier(one.entity.name)
    worth = ways.get(fold_name(bare), 0.0) * QUALIFIED if qualifier else 0.0
    if worth > one.score:
        one.score, one.how = worth, [f"name ({qualifier})"]
    return one


def _written_the_same(name: str, several: Sequence[_Candidate]) -> None:
    """Where a name stands in the graph as it is written, put those behind it that only fold to the same."""
    if any(one.entity.name == name for one in several):
        for one in several:
            if one.how == ["name"] and one.entity.name != name:
                one.score *= REWRITTEN
                one.how = ["name in other capitals, accents or punctuation"]


def _typed(one: _Candidate, types: Sequence[str]) -> _Candidate:
    """Take a little from what is of another type than was asked for; what has none may be of any."""
    own = {type for type in (one.entity.type, *one.entity.more_types) if type}
    if types and own and not own & set(types):
        one.score *= OTHER_TYPE
        one.how.append(f"of the type {one.entity.type}")
    return one


def _near(mention: Mention, several: list[_Candidate]) -> list[_Candidate]:
    """Return the candidates to look at closely: none where one stands out and nothing was said beside its name."""
    several.sort(key=lambda one: (-one.score, one.entity.id))
    near = [one for one in several[:RANKED] if one.score > several[0].score - NEAR]
    alone = len(near) == 1 or (near and near[0].score == 1 and near[1].score < 1)
    return [] if alone and not mention.qualifier else near


def _qualify(qualifier: str, several: Sequence[_Candidate]) -> None:
    """Take from the score of each candidate what of the qualifier the graph confirms of others, but not of it."""
    wanted = set(index_terms(qualifier))
    shares = [len(wanted & set(index_terms(qualifier_text(one.entity, one.line)))) for one in several]
    most = max(shares, default=0)
    for one, share in zip(several, shares, strict=True):
        if most and one.score < 1:  # else the qualifier is part of its name
            one.score *= 1 - DENIED * (1 - share / most)
            one.how.append(f"qualifier {share}/{len(wanted)}")


def _numbered(several: Sequence[_Candidate]) -> str:
    return "\n".join(f"{number}. {one.line or one.linked().name}" for number, one in enumerate(several, 1))


# MERGED: Names as questions write them: the ways to look one up, and what it says beside the name.
# MERGED: Entity linking: the nodes of a graph that a name in a question may stand for.
