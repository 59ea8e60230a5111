"""Relation linking: the relations of a graph that words in a question may stand for, alone or with a head entity."""

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

#: The share of its score that a candidate keeps in the direction for which it is not worded.
OTHER_DIRECTION_WEIGHT = 0.85
#: The score of a relation with the asked name or alias; no other has it.
EXACT_SCORE = 1.0
#: The weight of the encoder against shared stems and spelling.
ENCODER_WEIGHT = 0.6
#: Graphs whose wordings are remembered.
_REMEMBERED = 16


@dataclass(frozen=True, slots=True)
class _Wordings:
    """The wordings of a graph's relations, (wordings,) each. ``owners`` are the places of their relations in
    ``names``."""

    names: tuple[str, ...]
    owners: NDArray[np.int64]
    words: tuple[str, ...]
    stems: tuple[frozenset[str], ...]
    stem_counts: Floats
    by_stem: Mapping[str, NDArray[np.int64]]
    backwards: NDArray[np.bool_]
    head_roles: NDArray[np.str_]
    root_words: NDArray[np.str_]
    names_by_head_type: Mapping[str, NDArray[np.int64]]  # stem -> places in names
    names_by_tail_type: Mapping[str, NDArray[np.int64]]
    vectors: Vectors | None


@dataclass(slots=True)
class GraphRelationLinker:
    """:class:`clew.core.protocols.RelationLinker` (Su et al., NAACL 2024, Section 3.2).

    A phrase is as like a relation as its most similar wording: the relation's name, spelled out, or one of its
    ``aliases`` (relation -> wordings; :func:`load_aliases` reads a file of them). Wordings are encoded once for each
    graph and set of relations.

    Deviations: the paper takes the cosine of all-MiniLM-L6-v2. Here any ``encoder`` may be given, and its cosine,
    with this ``weight``, is mixed with shared stems and spelling, which know "directed by" for "director" where an
    encoder trained on passages may not; without an encoder these alone decide. The paper only goes from head to tail;
    here each direction of a relation is a candidate, and the one for which the phrase is not worded
    (:func:`clew.triples.linking.relation_words.is_backwards`) has a lower score.
    """

    encoder: Encoder | None = None
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    weight: float = ENCODER_WEIGHT
    _remembered: dict[tuple[str, tuple[str, ...]], _Wordings] = field(
        default_factory=dict, init=False, repr=False
    )
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def link(
        self, graph: RelationSource, phrases: Sequence[str], k: int = 5
    ) -> list[tuple[LinkedRelation, ...]]:
        """Return for each phrase at most ``k`` candidates, best first; ties in the order of names, forwards first."""
        wordings = self._wordings(graph)
        words = [verbalise_relation(phrase) for phrase in phrases]
        if not wordings.names or not words:
            return [() for _ in phrases]
        cosines = None
        if self.encoder is not None and wordings.vectors is not None:
            distinct = list(dict.fromkeys(words))
            vectors = self.encoder.encode(distinct)
            places = [distinct.index(phrase) for phrase in words]
            cosines = np.clip((vectors @ wordings.vectors.T).astype(np.float64), 0.0, 1.0)[places]
        return [
            self._rank(wordings, phrase, None if cosines is None else cosines[number], k)
            for number, phrase in enumerate(words)
        ]

    def _rank(
        self, wordings: _Wordings, phrase: str, cosines: Floats | None, k: int
    ) -> tuple[LinkedRelation, ...]:
        scores = _likeness(wordings, phrase)
        if cosines is not None:
            scores = self.weight * cosines + (1 - self.weight) * scores
        exact = np.array([words == phrase for words in wordings.words], dtype=np.bool_)
        scores = np.where(exact, EXACT_SCORE, np.minimum(scores, 0.99))
        opposite = _worded_opposite(wordings, phrase)
        # For each relation and direction, the best score and the wording that has it.
        best = np.full((len(wordings.names), 2), -1.0)
        best_wording = np.zeros((len(wordings.names), 2), dtype=np.int64)
        for inverse in (0, 1):
            directed = np.where(opposite == bool(inverse), scores, scores * OTHER_DIRECTION_WEIGHT)
            order = np.argsort(directed, kind="stable")
            best[wordings.owners[order], inverse] = directed[order]  # the highest is assigned last
            best_wording[wordings.owners[order], inverse] = order
        # "films directed by" asks for heads: "film" is a type of the relation's heads and not of its tails.
        stems, count = word_stems(phrase), len(wordings.names)
        heads = _with_stems(wordings.names_by_head_type, stems, count)
        tails = _with_stems(wordings.names_by_tail_type, stems, count)
        swap = (heads & ~tails & (best[:, 1] < best[:, 0])) | (tails & ~heads & (best[:, 0] < best[:, 1]))
        best[swap], best_wording[swap] = best[swap, ::-1], best_wording[swap, ::-1]
        candidates = []
        for place in np.argsort(-best.ravel(), kind="stable")[:k].tolist():
            relation, inverse = divmod(place, 2)
            wording = int(best_wording[relation, inverse])
            reason = _reason(wordings, relation, wording, phrase, cosines)
            score = float(best[relation, inverse])
            candidates.append(LinkedRelation(wordings.names[relation], bool(inverse), score, reason))
        return tuple(candidates)

    def _wordings(self, graph: RelationSource) -> _Wordings:
        key = (graph.name, tuple(graph.relations()))
        with self._lock:
            wordings = self._remembered.get(key)
            if wordings is None:
                wordings = self._collect(graph)
                while len(self._remembered) >= _REMEMBERED:
                    self._remembered.pop(next(iter(self._remembered)))
                self._remembered[key] = wordings
            return wordings

    def _collect(self, graph: RelationSource) -> _Wordings:
        relations = graph.relations()
        owners: list[int] = []
        words: list[str] = []
        for number, (name, relation) in enumerate(relations.items()):
            aliases = [*self.aliases.get(name, ())]
            aliases += self.aliases.get(relation.id, ()) if relation.id else ()
            for wording in dict.fromkeys(map(verbalise_relation, (name, *aliases))):
                owners.append(number)
                words.append(wording)
        vectors = None
        if self.encoder is not None and words:
            distinct = list(dict.fromkeys(words))
            place_of = {wording: place for place, wording in enumerate(distinct)}
            vectors = self.encoder.encode(distinct)[[place_of[wording] for wording in words]]
        stems = tuple(map(word_stems, words))
        return _Wordings(
            tuple(relations),
            np.array(owners, dtype=np.int64),
            tuple(words),
            stems,
            np.array(list(map(len, stems)), dtype=np.float64),
            _places_by_stem(stems),
            np.array([is_backwards(wording) for wording in words], dtype=np.bool_),
            np.array([head_role(wording) for wording in words], dtype=np.str_),
            np.array([root_word(wording) for wording in words], dtype=np.str_),
            _places_by_stem([_type_stems(relation.head_types) for relation in relations.values()]),
            _places_by_stem([_type_stems(relation.tail_types) for relation in relations.values()]),
            vectors,
        )


def has_asked_name(phrase: str, candidate: LinkedRelation) -> bool:
    """Return whether a candidate has the asked name or an alias of it, or its words in another form: ``directed_by``
    for ``director``, but not ``casting director``."""
    return candidate.score == EXACT_SCORE or word_stems(verbalise_relation(phrase)) == word_stems(
        verbalise_relation(candidate.name)
    )


def _reason(wordings: _Wordings, relation: int, wording: int, phrase: str, cosines: Floats | None) -> str:
    """Return what speaks for a relation by one of its wordings."""
    words, name = wordings.words[wording], verbalise_relation(wordings.names[relation])
    if words == phrase:
        return "name" if words == name else f"alias '{words}'"
    reasons = [] if words == name else [f"alias '{words}'"]
    if cosines is not None:
        reasons.append(f"encoder {cosines[wording]:.2f}")
    if common := word_stems(phrase) & wordings.stems[wording]:
        reasons.append(f"words {'/'.join(sorted(common))}")
    return ", ".join(reasons) or "spelling"


def _worded_opposite(wordings: _Wordings, phrase: str) -> NDArray[np.bool_]:
    """Return for each wording whether it is worded in the other direction than a phrase, (wordings,)."""
    role, root = head_role(phrase), root_word(phrase)
    phrase_backwards = (wordings.root_words == role) & bool(role) | is_backwards(phrase)
    backwards = (wordings.head_roles == root) & (wordings.head_roles != "") | wordings.backwards
    opposite: NDArray[np.bool_] = phrase_backwards != backwards
    return opposite


def _likeness(wordings: _Wordings, phrase: str) -> Floats:
    """Return how like each wording a phrase is by stems and spelling, (wordings,)."""
    from rapidfuzz import fuzz, process

    stems = word_stems(phrase)
    common = np.zeros(len(wordings.words))
    for stem in stems & wordings.by_stem.keys():
        common[wordings.by_stem[stem]] += 1
    shared = 2 * common / np.maximum(len(stems) + wordings.stem_counts, 1)
    ratios = process.cdist([phrase], wordings.words, scorer=fuzz.token_sort_ratio, dtype=np.float32)[0]
    likeness: Floats = np.maximum(shared, 0.9 * (ratios / 100).astype(np.float64))
    return likeness


def _type_stems(types: Iterable[str]) -> frozenset[str]:
    return frozenset(stem for type in types for stem in word_stems(verbalise_relation(type)))


def _places_by_stem(sets: Sequence[frozenset[str]]) -> dict[str, NDArray[np.int64]]:
    """Return for each stem the places of the sets that it is in."""
    places: dict[str, list[int]] = {}
    for place, stems in enumerate(sets):
        for stem in stems:
            places.setdefault(stem, []).append(place)
    return {stem: np.array(of_stem, dtype=np.int64) for stem, of_stem in places.items()}


def _with_stems(
    places: Mapping[str, NDArray[np.int64]], stems: frozenset[str], size: int
) -> NDArray[np.bool_]:
    """Return which of ``size`` places have one of the stems, (size,)."""
    flags = np.zeros(size, dtype=np.bool_)
    for stem in stems & places.keys():
        flags[places[stem]] = True
    return flags


def load_aliases(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Return the wordings of relations in a file, by relation.

    A line is ``relation<TAB>alias``, or the JSON ``["relation", "alias", ...]`` or
    ``{"relation": ..., "aliases": [...]}``. A relation is named as the graph names it, or by its IRI. Empty lines and
    lines that begin with # are skipped. Raises UnreadableFile, which lists the lines of another form.
    """
    path = Path(path).expanduser()
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} is not UTF-8", "Save it as UTF-8") from error
    aliases: dict[str, dict[str, None]] = {}
    bad: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        row = _parse_alias_line(line)
        if row is None:
            bad.append(f"{path.name}: line {number}: not a relation and an alias")
        else:
            aliases.setdefault(row[0], {}).update(dict.fromkeys(row[1:]))
    if bad:
        raise UnreadableFile(
            "lines that make no sense:\n  " + "\n  ".join(bad[:20]), "Write: relation, a tab, alias"
        )
    return {relation: tuple(wordings) for relation, wordings in aliases.items()}


def _parse_alias_line(line: str) -> list[str] | None:
    """Return a relation and its aliases, at least one; None for a line of another form."""
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
        row = [field.strip() for field in next(csv.reader([line], delimiter="\t"))]
    if not isinstance(row, list) or len(row) < 2:
        return None
    return row if all(isinstance(field, str) and field for field in row) else None


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no equality of their own
class Grounding:
    """An entity and a relation with edges in a graph. ``rows`` are the other ends, ascending, at least one.

    ``score`` is the product of the two scores, from 0 to 1, comparable within one call.
    """

    entity: LinkedEntity
    relation: LinkedRelation
    score: float
    rows: Rows


def ground(
    graph: PropertyGraph, entities: Sequence[LinkedEntity], relations: Sequence[LinkedRelation], k: int = 5
) -> tuple[Grounding, ...]:
    """Return at most ``k`` pairs of a candidate entity and a candidate relation that have edges, best first.

    A linker that looks at names alone cannot tell "Kismet", the film, from the song; that only the film has a
    director can. So a pair without edges does not count, however well its words fit. Ties keep the order of the
    entities, then that of the relations.
    """
    if not entities or not relations:
        return ()
    heads = np.array([entity.row for entity in entities], dtype=np.int64)
    pairs: list[tuple[int, Grounding]] = []
    for relation in relations:
        offsets, ends = graph.neighbours(heads, relation.name, relation.inverse)
        for place in np.flatnonzero(np.diff(offsets)).tolist():
            entity = entities[place]
            rows = ends[offsets[place] : offsets[place + 1]]
            pairs.append((place, Grounding(entity, relation, entity.score * relation.score, rows)))
    pairs.sort(key=lambda pair: (-pair[1].score, pair[0]))  # stable: relations keep their order
    return tuple(grounding for _, grounding in pairs[:k])


@dataclass(frozen=True, slots=True)
class RelationLabels:
    """Labels that a relation linker compares like the relations of a graph: properties, or some of its relations."""

    name: str
    labels: tuple[str, ...]

    def relations(self) -> Mapping[str, Relation]:
        """Return the labels as relations without edges."""
        return {label: Relation(0) for label in self.labels}
