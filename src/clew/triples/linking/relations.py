"""Relation linking: the relations of a graph that words in a question may stand for."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from clew.core.errors import UnreadableFile
from clew.core.types import LinkedRelation, Relation
from clew.triples.linking.relation_words import (
    head_role,
    is_backwards,
    root_word,
    verbalise_relation,
    word_stems,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Rows, Vectors
    from clew.core.protocols import Encoder, PropertyGraph, RelationSource
    from clew.core.types import LinkedEntity

#: What a candidate the other way round keeps of the score of its words.
AGAINST = 0.85
#: The score of a relation that is called as it is asked for; no other has it.
EXACT_SCORE = 1.0
#: How much the encoder says, against shared stems and spelling.
ENCODED = 0.6
#: Graphs whose labels are kept.
_KEPT = 16


@dataclass(frozen=True, slots=True)
class _Labels:
    """The wordings of a graph's relations: ``owners`` says whose each is, as a place in ``names``."""

    names: tuple[str, ...]
    owners: NDArray[np.int64]
    words: tuple[str, ...]
    stems: tuple[frozenset[str], ...]
    sizes: Floats  # number of stems of each
    holders: Mapping[str, NDArray[np.int64]]  # stem -> the wordings with it
    backwards: NDArray[np.bool_]
    roles: NDArray[np.str_]  # what the head is said to be of the tail, and what the tail is called
    called: NDArray[np.str_]
    ends: tuple[Mapping[str, NDArray[np.int64]], ...]  # stem -> the names with such a type of heads; of tails
    vectors: Vectors | None


@dataclass(slots=True)
class GraphRelationLinker:
    """:class:`clew.core.protocols.RelationLinker` (Su et al., NAACL 2024, Section 3.2).

    A phrase and a relation are as alike as the phrase and the likest wording of the relation: its name, spelled
    out, or one of its ``aliases`` (relation -> wordings; :func:`load_aliases` reads a file of them). The paper
    takes the cosine of all-MiniLM-L6-v2. Deviations: any ``encoder`` may be given, and its cosine is mixed with
    shared stems and spelling, which know "directed by" for "director" where an encoder trained on passages may
    not; without an encoder these alone decide. And the paper only goes from head to tail: here each direction of a
    relation is a candidate of its own; the one that the phrase is not worded for
    (:func:`clew.triples.linking.relation_words.is_backwards`) has ``AGAINST`` of the score.

    Labels are encoded once for each graph and set of relations.
    """

    encoder: Encoder | None = None
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    weight: float = ENCODED
    _kept: dict[tuple[str, tuple[str, ...]], _Labels] = field(default_factory=dict, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def link(
        self, graph: RelationSource, phrases: Sequence[str], k: int = 5
    ) -> list[tuple[LinkedRelation, ...]]:
        """Return for each phrase at most ``k`` candidates, best first; ties in the order of names, forward first."""
        labels = self._labels(graph)
        asked = [verbalise_relation(phrase) for phrase in phrases]
        if not labels.names or not asked:
            return [() for _ in phrases]
        cosines = None
        if self.encoder is not None and labels.vectors is not None:
            distinct = list(dict.fromkeys(asked))
            vectors = self.encoder.encode(distinct)
            places = [distinct.index(one) for one in asked]
            cosines = np.clip((vectors @ labels.vectors.T).astype(np.float64), 0.0, 1.0)[places]
        return [
            self._candidates(labels, phrase, None if cosines is None else cosines[number], k)
            for number, phrase in enumerate(asked)
        ]

    def _candidates(
        self, labels: _Labels, phrase: str, cosines: Floats | None, k: int
    ) -> tuple[LinkedRelation, ...]:
        words = _alike(labels, phrase)
        scores = words if cosines is None else self.weight * cosines + (1 - self.weight) * words
        same = np.array([one == phrase for one in labels.words], dtype=np.bool_)
        scores = np.where(same, EXACT_SCORE, np.minimum(scores, 0.99))
        turned = _turned(labels, phrase)
        asked, best = word_stems(phrase), np.full((len(labels.names), 2), -1.0)
        best_of = np.zeros((len(labels.names), 2), dtype=np.int64)
        for inverse in (0, 1):
            way = np.where(turned == bool(inverse), scores, scores * AGAINST)
            order = np.argsort(way, kind="stable")
            best[labels.owners[order], inverse] = way[order]  # the last assignment, of the highest, stays
            best_of[labels.owners[order], inverse] = order
        # "films directed by": what is asked for is of the type of the heads, and not of that of the tails; or so.
        heads, tails = (_holding(ends, asked, len(labels.names)) for ends in labels.ends)
        swap = (heads & ~tails & (best[:, 1] < best[:, 0])) | (tails & ~heads & (best[:, 0] < best[:, 1]))
        best[swap], best_of[swap] = best[swap, ::-1], best_of[swap, ::-1]
        flat = best.ravel()
        order = np.argsort(-flat, kind="stable")[:k]
        return tuple(
            self._said(labels, phrase, int(place), float(flat[place]), int(best_of.ravel()[place]), cosines)
            for place in order
        )

    def _said(
        self, labels: _Labels, phrase: str, place: int, score: float, label: int, cosines: Floats | None
    ) -> LinkedRelation:
        name, words = labels.names[place // 2], labels.words[label]
        parts = []
        if words == phrase:
            parts.append("name" if words == verbalise_relation(name) else f"alias '{words}'")
        else:
            if words != verbalise_relation(name):
                parts.append(f"alias '{words}'")
            if cosines is not None:
                parts.append(f"encoder {cosines[label]:.2f}")
            if common := word_stems(phrase) & labels.stems[label]:
                parts.append(f"words {'/'.join(sorted(common))}")
        return LinkedRelation(name, bool(place % 2), score, ", ".join(parts) or "spelling")

    def _labels(self, graph: RelationSource) -> _Labels:
        relations = graph.relations()
        key = (graph.name, tuple(relations))
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._made(graph)
                while len(self._kept) >= _KEPT:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[key] = found
            return found

    def _made(self, graph: RelationSource) -> _Labels:
        relations = graph.relations()
        owners: list[int] = []
        words: list[str] = []
        for number, (name, relation) in enumerate(relations.items()):
            given = (*self.aliases.get(name, ()), *(self.aliases.get(relation.id, ()) if relation.id else ()))
            for wording in dict.fromkeys((verbalise_relation(name), *map(verbalise_relation, given))):
                owners.append(number)
                words.append(wording)
        distinct = list(dict.fromkeys(words))
        vectors = None
        if self.encoder is not None and distinct:
            place_of = {one: place for place, one in enumerate(distinct)}
            vectors = self.encoder.encode(distinct)[[place_of[one] for one in words]]
        roots = tuple(map(word_stems, words))
        return _Labels(
            tuple(relations),
            np.array(owners, dtype=np.int64),
            tuple(words),
            roots,
            np.array(list(map(len, roots)), dtype=np.float64),
            _inverted(roots),
            np.array([is_backwards(one) for one in words], dtype=np.bool_),
            np.array([head_role(one) for one in words], dtype=np.str_),
            np.array([root_word(one) for one in words], dtype=np.str_),
            (
                _inverted([_types(one.head_types) for one in relations.values()]),
                _inverted([_types(one.tail_types) for one in relations.values()]),
            ),
            vectors,
        )


def has_asked_name(phrase: str, one: LinkedRelation) -> bool:
    """Return whether a candidate has the name or an alias that was asked for, or its words in another form:
    ``directed_by`` beside ``director``, but not ``casting director``."""
    return one.score == EXACT_SCORE or word_stems(verbalise_relation(phrase)) == word_stems(
        verbalise_relation(one.name)
    )


def _turned(labels: _Labels, phrase: str) -> NDArray[np.bool_]:
    """Return which wordings are said the other way than a phrase, (labels,)."""
    asked, wanted = head_role(phrase), root_word(phrase)
    ours = (labels.called == asked) & bool(asked) | is_backwards(phrase)
    theirs = (labels.roles == wanted) & (labels.roles != "") | labels.backwards
    turned: NDArray[np.bool_] = ours != theirs
    return turned


def _types(types: Iterable[str]) -> frozenset[str]:
    return frozenset(one for type in types for one in word_stems(verbalise_relation(type)))


def _inverted(sets: Sequence[frozenset[str]]) -> dict[str, NDArray[np.int64]]:
    """Return the places of the sets that each stem is in."""
    places: dict[str, list[int]] = {}
    for place, one in enumerate(sets):
        for stem in one:
            places.setdefault(stem, []).append(place)
    return {stem: np.array(found, dtype=np.int64) for stem, found in places.items()}


def _holding(places: Mapping[str, NDArray[np.int64]], asked: frozenset[str], size: int) -> NDArray[np.bool_]:
    found = np.zeros(size, dtype=np.bool_)
    for stem in asked & places.keys():
        found[places[stem]] = True
    return found


def _alike(labels: _Labels, phrase: str) -> Floats:
    """Return how alike a phrase is to each wording by stems and spelling, (labels,)."""
    from rapidfuzz import fuzz, process

    asked = word_stems(phrase)
    common = np.zeros(len(labels.words))
    for stem in asked & labels.holders.keys():
        common[labels.holders[stem]] += 1
    shared = 2 * common / np.maximum(len(asked) + labels.sizes, 1)
    spelling = process.cdist([phrase], labels.words, scorer=fuzz.token_sort_ratio, dtype=np.float32)[0] / 100
    likeness: Floats = np.maximum(shared, 0.9 * spelling.astype(np.float64))
    return likeness


def load_aliases(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Return the wordings of relations in a file, by relation: lines ``relation<TAB>alias``, or JSON lines
    ``["relation", "alias", ...]`` or ``{"relation": ..., "aliases": [...]}``.

    A relation is named as the graph names it, or by its IRI. Empty lines and lines that begin with # say nothing.
    Raises UnreadableFile, with the lines that make no sense.
    """
    path = Path(path).expanduser()
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} is not UTF-8", "Save it as UTF-8") from error
    found: dict[str, dict[str, None]] = {}
    bad: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        row = _row(line)
        if row is None:
            bad.append(f"{path.name}: line {number}: not a relation and an alias")
        else:
            found.setdefault(row[0], {}).update(dict.fromkeys(row[1:]))
    if bad:
        raise UnreadableFile(
            "lines that make no sense:\n  " + "\n  ".join(bad[:20]), "Write: relation, a tab, alias"
        )
    return {relation: tuple(aliases) for relation, aliases in found.items()}


def _row(line: str) -> list[str] | None:
    """Return a relation and its aliases, at least one; None for a line that is neither form."""
    row: object
    if line.lstrip()[:1] in {"[", "{"}:
        try:
            row = json.loads(line)
        except ValueError:
            return None
        if isinstance(row, dict):
            aliases = row.get("aliases")
            row = [row.get("relation"), *(aliases if isinstance(aliases, list) else [aliases])]
    else:
        row = [one.strip() for one in next(csv.reader([line], delimiter="\t"))]
    if not isinstance(row, list) or len(row) < 2 or not all(isinstance(one, str) and one for one in row):
        return None
    return row


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no equality of their own
class Grounding:
    """An entity and a relation that a graph joins: ``rows`` are the other ends, ascending, never none.

    ``score`` is the product of the two scores: from 0 to 1, comparable within one call.
    """

    entity: LinkedEntity
    relation: LinkedRelation
    score: float
    rows: Rows


def ground(
    graph: PropertyGraph, entities: Sequence[LinkedEntity], relations: Sequence[LinkedRelation], k: int = 5
) -> tuple[Grounding, ...]:
    """Return at most ``k`` pairs of a candidate entity and a candidate relation with edges, best first.

    A linker that looks at the name alone cannot tell "Kismet", the film, from the song; that only the film has a
    director can. So a pair without an edge is no pair, however well its words fit. Ties keep the order of the
    entities, then that of the relations.
    """
    if not entities or not relations:
        return ()
    heads = np.array([one.row for one in entities], dtype=np.int64)
    found: list[tuple[int, Grounding]] = []
    for relation in relations:
        offsets, ends = graph.neighbours(heads, relation.name, relation.inverse)
        for place in np.flatnonzero(np.diff(offsets)).tolist():
            entity = entities[place]
            rows = ends[offsets[place] : offsets[place + 1]]
            found.append((place, Grounding(entity, relation, entity.score * relation.score, rows)))
    found.sort(key=lambda one: (-one[1].score, one[0]))  # stable: relations keep their order
    return tuple(one for _, one in found[:k])


@dataclass(frozen=True, slots=True)
class RelationLabels:
    """Properties of a node, or some of a graph's relations, as a relation linker sees the relations of a graph."""

    name: str
    labels: tuple[str, ...]

    def relations(self) -> Mapping[str, Relation]:
        """Return the labels, as relations without edges."""
        return {label: Relation(0) for label in self.labels}


# MERGED: Linking a head and its relation together: of their candidates, the pairs that the graph has edges for.
