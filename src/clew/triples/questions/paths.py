"""The paths of a graph that a question may mean, and what speaks for each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from clew.triples.questions.words import (
    GENERIC,
    PERSON_WORDS,
    QUESTION_WORDS,
    Label,
    Word,
    measure_affinities,
    names_inverse,
    read_label,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import Encoder, PropertyGraph
    from clew.triples.questions.names import NameMatch

#: Hops of a path, nodes whose edges are looked at to learn which relations follow each other, relations of a large
#: schema that are tried for one question.
MAX_HOPS, SAMPLE, SAMPLED_ENTITIES, MAX_RELATIONS = 3, 200, 20, 24
#: Of a schema with more relations or types, the most frequent are looked at.
MAX_SCHEMA = 300
#: Words of a name at least this plausible are no words of the question's own.
CERTAIN_NAME = 0.6
#: More paths from one name are not compared.
MAX_PATHS = 6_000
#: A word with at least this affinity names a relation.
NAMES_RELATION = 0.5
#: A type counts as one that a relation leads to if this share of its ends has it.
TYPE_SHARE = 0.05
#: Words that ask for other things with the same neighbour.
_SHARING = frozenset("same share shares shared sharing common also together co other others another".split())
_NOUN_ENDINGS = ("or", "ors", "er", "ers", "ist", "ists", "ency", "encies", "ion", "ions", "ment", "ments")
_PASSIVE = frozenset("was were is are be been being".split())
_BREAKS = frozenset(
    "in of by that which who whose with for from to on at are is was were do does did have has had as and not "
    "fall listed can could be come comes came".split()
)


@dataclass(slots=True)
class PathSpace:
    """The directed relations of a graph, numbered ``2 * relation + inverse``, and the paths along them.

    Properties of nodes follow the relations under numbers of their own: the last hop may lead to a value.
    """

    graph: PropertyGraph
    relations: tuple[str, ...]
    edge_relations: int
    labels: tuple[Label, ...]
    type_names: tuple[str, ...]
    type_labels: tuple[Label, ...]
    types_at: NDArray[np.bool_]  # (directed relations, types): what each leads to
    has_types: bool
    leads_to_numbers: NDArray[np.bool_]  # (directed relations,)
    _following: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _paths: dict[frozenset[int], NDArray[np.int64]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def of_graph(cls, graph: PropertyGraph) -> PathSpace:
        """Return the space of a graph that is stored in the base."""
        schema = dict(sorted(graph.relations().items(), key=lambda item: -item[1].edges)[:MAX_SCHEMA])
        properties = {name: own for name, own in graph.properties().items() if name not in schema}
        relations, types = (*schema, *properties), tuple(graph.types())[:MAX_SCHEMA]
        place = {type: number for number, type in enumerate(types)}
        types_at = np.zeros((2 * len(relations), len(types)), dtype=np.bool_)
        numbers = np.zeros(2 * len(relations), dtype=np.bool_)
        for number, relation in enumerate(schema.values()):
            for inverse, counts in enumerate((relation.tail_types, relation.head_types)):
                for type, count in counts.items():
                    if type in place and count >= TYPE_SHARE * relation.edges:
                        types_at[2 * number + inverse, place[type]] = True
            tails = [tail for _, tail in relation.examples]
            numbers[2 * number] = bool(tails) and all(tail.strip().isdigit() for tail in tails)
        for number, own in enumerate(properties.values(), len(schema)):
            numbers[2 * number] = own.numbers > 0.5 * own.values
        return cls(
            graph,
            relations,
            len(schema),
            tuple(map(read_label, relations)),
            types,
            tuple(map(read_label, types)),
            types_at,
            bool(types),
            numbers,
        )

    def at_rows(self, rows: Rows) -> frozenset[int]:
        """Return the directed relations along which edges leave one of ``rows``."""
        names = set(self.graph.relations_at(rows))
        leaving = set()
        for number, relation in enumerate(self.relations[: self.edge_relations]):
            if relation in names:
                for inverse in (False, True):
                    if len(self.graph.neighbours(rows, relation, inverse)[1]):
                        leaving.add(2 * number + inverse)
        if self.edge_relations < len(self.relations):
            own = {
                key for entity in self.graph.entities(rows[:SAMPLED_ENTITIES]) for key in entity.properties
            }
            leaving |= {
                2 * number
                for number, property in enumerate(self.relations[self.edge_relations :], self.edge_relations)
                if property in own
            }
        return frozenset(leaving)

    def end_kinds(self) -> dict[str, NDArray[np.bool_]]:
        """Return which directed relations lead to a person, a time or a place."""
        kinds: dict[str, NDArray[np.bool_]] = {}
        for kind in ("person", "time", "place"):
            of_kind = [kind in label.kinds or kind in label.stems for label in self.type_labels]
            flags: NDArray[np.bool_] = np.zeros(len(self.types_at), dtype=np.bool_)
            if of_kind:
                flags |= (self.types_at & np.array(of_kind, dtype=np.bool_)[None]).any(axis=1)
            for number, label in enumerate(self.labels):
                flags[2 * number] |= kind in label.kinds
                flags[2 * number + 1] |= kind in label.kinds and label.joins_alike
            if kind == "time" and np.any(self.leads_to_numbers & flags):
                flags &= self.leads_to_numbers
            kinds[kind] = flags
        return kinds

    def is_property(self, directed: int) -> bool:
        """Return whether a number is that of a property."""
        return self.edge_relations <= directed // 2 < len(self.relations)

    def type_start(self, place: int) -> int:
        """Return the number of what comes before all nodes of a type, in place of a hop."""
        return 2 * (len(self.relations) + place)

    def type_of_start(self, directed: int) -> str | None:
        """Return the type whose nodes a number of :meth:`type_start` stands before, None for that of a relation."""
        place = directed // 2 - len(self.relations)
        return self.type_names[place] if place >= 0 else None

    def relations_of_kind(self, rows: Rows) -> list[int]:
        """Return the relations that are called as a type of nodes is: "currency" for a currency. A name of such a
        node says which relation leads to it."""
        if not self.has_types or not len(rows):
            return []
        types = {entity.type for entity in self.graph.entities(rows[:1])}
        stems = [
            set(self.type_labels[place].stems) for place, name in enumerate(self.type_names) if name in types
        ]
        return [number for number, label in enumerate(self.labels) if set(label.stems) in stems]

    def following(self, directed: int) -> tuple[int, ...]:
        """Return the directed relations that leave the ends of one, by a sample of its edges."""
        if self.is_property(directed):
            return ()
        with self._lock:
            if directed not in self._following:
                self._following[directed] = tuple(sorted(self.at_rows(self._sample_ends(directed))))
            return self._following[directed]

    def _sample_ends(self, directed: int) -> Rows:
        """Return up to :data:`SAMPLE` nodes that a directed relation leads to, spread evenly."""
        type = self.type_of_start(directed)
        if type is not None:
            rows = self.graph.rows_of_type(type)
            return np.unique(rows[:: max(1, len(rows) // SAMPLE)][:SAMPLE]).astype(np.int64)
        relation, inverse = self.relations[directed // 2], bool(directed % 2)
        adjacency = self.graph.adjacency(relation, inverse)
        if adjacency is None:
            return np.empty(0, dtype=np.int64)
        step = max(1, len(adjacency.tails) // SAMPLE)
        return np.unique(adjacency.tails[::step][:SAMPLE]).astype(np.int64)

    def paths(self, start: frozenset[int], allowed: frozenset[int] | None = None) -> NDArray[np.int64]:
        """Return the paths of one to three hops that begin with one of ``start``, (n, 3), -1 beyond their end.

        ``allowed`` are the relations that they may use, None for all.
        """
        if allowed is None and start in self._paths:
            return self._paths[start]
        paths: list[tuple[int, int, int]] = []
        for first in sorted(start):
            if allowed is not None and first // 2 not in allowed:
                continue
            paths.append((first, -1, -1))
            for second in self.following(first):
                if allowed is not None and second // 2 not in allowed:
                    continue
                paths.append((first, second, -1))
                for third in self.following(second):
                    if allowed is None or third // 2 in allowed:
                        paths.append((first, second, third))
        array = np.array(paths or np.empty((0, 3)), dtype=np.int64)[:MAX_PATHS].reshape(-1, 3)
        if allowed is None:
            self._paths[start] = array
        return array


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """A question's words as far as they speak about one graph.

    ``affinities`` and ``type_affinities`` are (words, relations) and (words, types). ``focus`` are the words for what
    is asked ("which *languages*"), ``kind`` what its question word asks for: a person, a time, a place, a number, or
    "".
    """

    words: tuple[Word, ...]
    affinities: Floats
    type_affinities: Floats
    focus: tuple[int, ...]
    kind: str
    wants_sharing: bool

    @classmethod
    def read(
        cls,
        words: Sequence[Word],
        space: PathSpace,
        encoder: Encoder | None,
        names: Sequence[NameMatch] = (),
    ) -> QuestionWords:
        """Return the words of a question with their affinities to the relations and types of a graph.

        A word of one of its ``names`` asks for nothing ("What Women Want").
        """
        affinities = measure_affinities(words, space.labels, encoder)
        types = measure_affinities(words, space.type_labels)
        of_names = {
            place
            for name in names
            if name.plausibility >= CERTAIN_NAME
            for place in range(name.first, name.last)
        }
        focus, kind = find_focus(words, of_names)
        if not kind:
            focus = _before_name(focus, words, of_names, affinities)
            focus = _before_verb(focus, words, types, affinities)
        affinities = _name_containment(words, names, focus, types, affinities, space)
        return cls(
            tuple(words),
            affinities,
            types,
            focus,
            kind,
            any(word.text in _SHARING for word in words),
        )

    def is_wording(self, place: int, question: str) -> bool:
        """Return whether a word only words the question, and so needs nothing of the graph to stand for it: "which",
        "list", "people". Within a question a word with a capital may be a name: "It"."""
        word = self.words[place]
        if place > 0 and question[word.start].isupper() and len(word.text) > 1:
            return False
        return not word.is_content or word.text in GENERIC or word.text in PERSON_WORDS

    def names_part(self, place: int, relations: Sequence[int], space: PathSpace) -> bool:
        """Return whether a word names any of ``relations``, or a type of the graph."""
        if self.affinities[place, list(relations)].max(initial=0.0) >= NAMES_RELATION:
            return True
        return space.has_types and bool(self.type_affinities[place].max() >= NAMES_RELATION)


_AUXILIARIES = frozenset("do does did is are was were has have had can could".split())
_CONTAINING = frozenset({"of", "in", "within", "inside"})
#: A preposition that may stand for a relation of parts names it so far: less than a word of its own.
_BY_PREPOSITION = 0.6
#: A word with at least this affinity to a type is a word for it.
TYPE_WORD = 0.8


def _before_name(
    focus: tuple[int, ...], words: Sequence[Word], of_names: Collection[int], affinities: Floats
) -> tuple[int, ...]:
    """Return what is asked without a name behind it, and without the verb that stands between both: "which *movie*
    stars both Al Pacino and ..."."""
    inside = tuple(place for place in focus if not any(name <= place for name in of_names))
    if (
        len(inside) == len(focus)
        or len(inside) < 2
        or affinities[inside[-1]].max(initial=0.0) < NAMES_RELATION
    ):
        return inside or focus
    between = words[inside[-1] + 1 : focus[len(inside)]]
    return inside[:-1] if all(word.text in {"both", "the", "either"} for word in between) else inside


def _before_verb(
    focus: tuple[int, ...], words: Sequence[Word], types: Floats, affinities: Floats
) -> tuple[int, ...]:
    """Return what is asked without the verb behind it: "which *modules* import heapq". In "which package
    dependencies does vim have" the word before the auxiliary belongs to it."""
    after = words[focus[-1] + 1].text if focus and focus[-1] + 1 < len(words) else ""
    if after in _AUXILIARIES or not types.size:
        return focus
    for number, place in enumerate(focus[1:], 1):
        is_verb = affinities[place].max(initial=0.0) >= NAMES_RELATION and not words[place].text.endswith(
            _NOUN_ENDINGS
        )
        if is_verb and types[place].max() < TYPE_WORD <= types[list(focus[:number])].max():
            return focus[:number]
    return focus


def _name_containment(
    words: Sequence[Word],
    names: Sequence[NameMatch],
    focus: tuple[int, ...],
    types: Floats,
    affinities: Floats,
    space: PathSpace,
) -> Floats:
    """Return the affinities with those of "of" and "in" between what is asked and a name: "modules *of* asyncio" asks
    for its parts, if a relation of parts leads from nodes of the one type to those of the other."""
    if not types.size or not focus or types[list(focus)].max() < TYPE_WORD:
        return affinities
    asked_types = types[list(focus)].max(axis=0) >= TYPE_WORD
    affinities = affinities.copy()
    for name in names:
        place = name.first - 1
        while place > focus[-1] and (
            words[place].text in {"the", "a", "an"} or types[place].max() >= TYPE_WORD
        ):
            place -= 1
        if place != focus[-1] + 1 or words[place].text not in _CONTAINING or not len(name.rows):
            continue
        leaving = space.at_rows(name.rows)
        for number, label in enumerate(space.labels[: space.edge_relations]):
            inverse = 2 * number + 1
            if label.is_containment and inverse in leaving and (space.types_at[inverse] & asked_types).any():
                affinities[place, number] = _BY_PREPOSITION
    return affinities


def find_focus(words: Sequence[Word], of_names: Collection[int] = ()) -> tuple[tuple[int, ...], str]:
    """Return the places of the words for what is asked, and the kind of thing that the question word asks for."""
    texts = [word.text for word in words]
    place = next(
        (place for place, text in enumerate(texts) if text in _ASKING and place not in of_names), None
    )
    if place is None:
        if texts and texts[0] in _COMMANDS:
            return _noun_phrase(words, 1), ""
        if words and words[0].is_content:  # "films by Ada Pell"
            return _noun_phrase(words, 0), ""
        phrase = _noun_phrase(words, 1) if texts[:1] in (["the"], ["all"], ["any"]) else ()
        if any(texts[each] in GENERIC or texts[each].endswith("est") for each in phrase):
            return phrase, ""  # "the latest film of Ada Pell", not "the writer of Kismet also wrote films"
        content = [place for place, word in enumerate(words) if word.is_content]
        return tuple(content[-1:]), ""
    asking = texts[place]
    if asking in _KINDS:
        return _content_after(words, place), _KINDS[asking]
    after = texts[place + 1 : place + 2]
    if asking == "how":
        if after in (["many"], ["much"]):
            return _noun_phrase(words, place + 2), ""
        return tuple(range(place + 1, min(place + 2, len(words)))), "number"
    begin = place + 1
    while begin < len(words) and texts[begin] in {"are", "is", "was", "were", "the", "a", "an", "all", "of"}:
        begin += 1
    focus = _noun_phrase(words, begin)
    person = next((each for each in focus if texts[each] in PERSON_WORDS), None)
    if person is not None:
        return _content_after(words, person), "person"
    return focus, ""


def _content_after(words: Sequence[Word], place: int) -> tuple[int, ...]:
    """Return the places of the content words after a question word, or before one that ends the question."""
    after = tuple(each for each in range(place + 1, len(words)) if words[each].is_content)
    return after or tuple(each for each in range(place - 1, -1, -1) if words[each].is_content)


_KINDS = {"who": "person", "whom": "person", "when": "time", "where": "place"}
_ASKING = frozenset(_KINDS) | {"which", "what", "how"}
_COMMANDS = frozenset("list name find give show tell all".split())


_PARTICIPLES = frozenset(
    "written made built sung shot drawn won held led spoken known born begun given taken sold bought taught found "
    "shown grown worn flown driven chosen lent sent met".split()
)


def _noun_phrase(words: Sequence[Word], begin: int) -> tuple[int, ...]:
    """Return the places of the content words of the phrase that begins at a place."""
    places: list[int] = []
    for place in range(begin, min(begin + 5, len(words))):
        word = words[place]
        if places and (word.text.endswith(("ed", "ing")) or word.text in _PARTICIPLES):
            break  # "packages maintained by", "films written by"
        if word.text in _BREAKS and (places or word.text not in {"of", "in"}):
            break
        if word.is_content and (word.text not in QUESTION_WORDS):
            places.append(place)
    return tuple(places)


FEATURES = (
    "hops 1",
    "hops 2",
    "hops 3",
    "least explained hop",
    "mean explained hop",
    "words unexplained",
    "returns at the start, asked for others",
    "returns at the start, not asked for",
    "returns at the end",
    "words beyond hops",
    "hops beyond words",
    "asked for others, no return",
    "focus is last relation",
    "focus is last relation, backwards",
    "focus is another relation",
    "focus names no relation, last hop backwards",
    "focus names no relation, last hop forwards",
    "focus is type of the end",
    "focus is another type",
    "person asked and led to",
    "person asked, not led to",
    "time asked and led to",
    "time asked, not led to",
    "place asked and led to",
    "place asked, not led to",
    "first hop is nearest to the name",
    "hops out of order",
    "direction of the first hop fits",
    "direction of the first hop contradicts",
    "inverse relation after itself",
    "name plausibility",
    "words left out of names",
    "name not written exactly",
    "hops that nothing names",
    "hops named by the same words",
    "last verb fits",
    "last verb contradicts",
)


def measure_paths(
    asked: QuestionWords, name: NameMatch, paths: NDArray[np.int64], space: PathSpace
) -> Floats:
    """Return the features of each path from a name, (paths, features)."""
    words = asked.words
    outside = np.array([not name.first <= place < name.last for place in range(len(words))], dtype=np.bool_)
    affinity = asked.affinities * outside[:, None]
    used = paths >= 0
    hops = used.sum(axis=1)
    relation = np.where(used, paths // 2, 0)
    inverse = (paths % 2 == 1) & used
    last = hops - 1
    here = np.arange(len(paths))
    last_relation, last_inverse = relation[here, last], inverse[here, last]
    last_directed = paths[here, last]

    best = affinity.max(axis=0) if len(words) else np.zeros(len(space.relations))
    best[space.relations_of_kind(name.rows)] = 1.0
    explained = np.where(used, best[relation], np.inf)
    mean = np.where(used, best[relation], 0).sum(axis=1) / hops
    # A word that names relations wants one of them on the path.
    by_path = np.where(used[None], affinity[:, relation], 0).max(axis=2)  # (words, paths)
    strongest = affinity.max(axis=1)
    focus_places = [place for place in asked.focus if outside[place]]
    kinds = space.end_kinds()
    if asked.kind == "person":
        # "Who directed the films written by": the first word that names a relation.
        focus_places = [place for place in focus_places if strongest[place] >= NAMES_RELATION][:1]
    elif asked.kind in ("time", "place"):
        # "Where was the director of Kismet born": the first word that names a relation to a place.
        of_kind = affinity[:, kinds[asked.kind][::2]].max(axis=1, initial=0.0)
        focus_places = [place for place in focus_places if of_kind[place] >= NAMES_RELATION][:1]
    unexplained = np.clip(strongest[:, None] - by_path, 0, None).sum(axis=0)
    same = (relation[:, 1:] == relation[:, :-1]) & used[:, 1:]
    returning = same & (inverse[:, 1:] != inverse[:, :-1])
    returns, returns_late = returning[:, 0], returning[:, 1]
    mentions = count_mentions(affinity, strongest)
    hops_of = np.zeros((len(paths), len(space.relations)))
    for hop in range(MAX_HOPS):
        np.add.at(hops_of, (here, relation[:, hop]), used[:, hop])
    wanted_hops = np.where(hops_of > 0, mentions[None], 0)
    words_beyond = np.clip(wanted_hops - hops_of, 0, None).sum(axis=1)
    hops_beyond = (
        np.clip(hops_of - np.maximum(wanted_hops, 1), 0, None).sum(axis=1) - returns * asked.wants_sharing
    )
    repeats = (same & (inverse[:, 1:] == inverse[:, :-1])).any(axis=1)

    focus = affinity[focus_places].max(axis=0) if focus_places else np.zeros(len(space.relations))
    type_affinity = asked.type_affinities[focus_places].max(axis=0) if focus_places else np.zeros(0)
    names_type = bool(len(type_affinity)) and type_affinity.max() >= NAMES_RELATION
    end_type = np.zeros(len(paths))
    if names_type:
        end_type = (space.types_at[last_directed] * type_affinity[None]).max(axis=1)
    has_focus = bool(focus_places)
    from_other_end = _names_other_end(words, focus_places, affinity, space)
    backwards = last_inverse != from_other_end[last_relation]
    focus_last = focus[last_relation]
    focus_best = float(focus.max()) if has_focus else 0.0
    unnamed = has_focus and focus_best < NAMES_RELATION and not names_type
    person, time, place_ = (kinds[kind][last_directed] for kind in ("person", "time", "place"))

    positions = np.array([_distance(place, name) for place in range(len(words))])
    near = np.where(affinity >= NAMES_RELATION, positions[:, None], np.inf).min(axis=0)
    far = np.where(affinity >= NAMES_RELATION, positions[:, None], -np.inf).max(axis=0)
    nearest = float(near.min()) if len(near) else np.inf
    first_is_nearest = np.isfinite(nearest) & (near[relation[:, 0]] == nearest)
    last_far = far.copy()
    if _ends_with_verb(words, name):  # "where is the base class of Timer *defined*"
        last_far[affinity[-1] >= NAMES_RELATION] = np.inf
    disorder = np.zeros(len(paths))
    for hop in range(MAX_HOPS - 1):
        both = used[:, hop + 1] & (relation[:, hop] != relation[:, hop + 1])
        earlier, later = near[relation[:, hop]], last_far[relation[:, hop + 1]]
        known = np.isfinite(earlier) & ~np.isneginf(later)
        disorder += both & known & (earlier > later)
    wanted = expected_directions(asked, name, affinity, space)[relation[:, 0]]
    actual = np.where(inverse[:, 0], -1, 1)
    asks = asked.kind
    last_verb = _last_verb(asked, affinity, space)
    ends_with_verb = last_relation == (last_verb // 2 if last_verb >= 0 else -1)
    columns = [
        hops == 1,
        hops == 2,
        hops == 3,
        explained.min(axis=1),
        mean,
        unexplained,
        returns & asked.wants_sharing,
        returns & (not asked.wants_sharing),
        returns_late,
        words_beyond,
        hops_beyond,
        ~(returns | returns_late) & asked.wants_sharing,
        focus_last * ~backwards,
        focus_last * backwards,
        (focus_best - focus_last) * (focus_best >= NAMES_RELATION),
        unnamed & last_inverse,
        unnamed & ~last_inverse,
        end_type,
        names_type & (end_type < NAMES_RELATION),
        (asks == "person") & person,
        (asks == "person") & ~person,
        (asks == "time") & time,
        (asks == "time") & ~time,
        (asks == "place") & place_,
        (asks == "place") & ~place_,
        first_is_nearest,
        disorder,
        wanted * actual > 0,
        wanted * actual < 0,
        repeats,
        np.full(len(paths), name.plausibility),
        np.full(len(paths), _words_outside(words, outside, strongest)),
        np.full(len(paths), float(not name.is_exact)),
        (used[:, 1:] & (best[relation[:, 1:]] < NAMES_RELATION)).sum(axis=1),
        _count_shared_words(affinity, relation, used),
        ends_with_verb & (last_directed == last_verb),
        ends_with_verb & (last_directed != last_verb),
    ]
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)


def _names_other_end(
    words: Sequence[Word], places: Sequence[int], affinity: Floats, space: PathSpace
) -> NDArray[np.bool_]:
    """Return for each relation whether the word of ``places`` that names it best is one for where it begins: the
    "subclasses" are where ``inherits_from`` does."""
    if not places:
        return np.zeros(len(space.relations), dtype=np.bool_)
    best = np.array(places)[affinity[places].argmax(axis=0)]
    return np.array(
        [names_inverse(words[place].stem, label) for place, label in zip(best, space.labels, strict=True)],
        dtype=np.bool_,
    )


def _ends_with_verb(words: Sequence[Word], name: NameMatch) -> bool:
    """Return whether a question ends with the verb of an auxiliary that stands before a phrase around the name: what
    it asks for comes last, though it stands beside the name."""
    before = [word.text for word in words[: name.first]]
    auxiliary = next((place for place, text in enumerate(before) if text in _AUXILIARIES), None)
    return (
        auxiliary is not None
        and name.last == len(words) - 1
        and any(word.is_content for word in words[auxiliary + 1 : name.first])
        and before[-1] in ("of", "by", "in", "the")
    )


def _last_verb(asked: QuestionWords, affinity: Floats, space: PathSpace) -> int:
    """Return the directed relation that the last word of "what does the module of Fraction *import*" asks for, -1
    where it has no such word. Only relations between nodes of one type need it: the types tell for others."""
    words = asked.words
    if len(words) < 4 or words[0].text not in ("what", "which") or not space.has_types:
        return -1
    has_auxiliary = any(word.text in ("do", "does", "did") for word in words[1:-2])
    relation = int(affinity[-1].argmax()) if affinity.shape[1] else 0
    if not has_auxiliary or affinity[-1, relation] < NAMES_RELATION or relation >= space.edge_relations:
        return -1
    ends = space.types_at[2 * relation], space.types_at[2 * relation + 1]
    if words[-1].text.endswith(_NOUN_ENDINGS) or not (ends[0] & ends[1]).any():
        return -1
    return 2 * relation + space.labels[relation].text.endswith(" by")


def _count_shared_words(
    affinity: Floats, relation: NDArray[np.int64], used: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return for each path how often a hop is named only by words that name the hop before it as well, though that is
    another relation: "official language" does not ask for the spoken ones too."""
    naming = (affinity >= NAMES_RELATION).astype(np.float64)
    # (relation, other): whether a word names the first and not the other
    has_own: NDArray[np.bool_] = np.asarray(naming.T @ (1 - naming) > 0, dtype=np.bool_)
    named: NDArray[np.bool_] = naming.max(axis=0, initial=0.0) > 0
    shared = np.zeros(len(relation))
    for hop in range(MAX_HOPS - 1):
        first, second = relation[:, hop], relation[:, hop + 1]
        both = used[:, hop + 1] & (first != second) & named[first] & named[second]
        shared += both & ~(has_own[first, second] & has_own[second, first])
    return shared


def count_mentions(affinity: Floats, strongest: Floats) -> Floats:
    """Return how many phrases name each relation; words side by side ("release years") are one phrase."""
    naming = (affinity >= NAMES_RELATION) & (affinity >= 0.9 * strongest[:, None])
    begins = naming.copy()
    begins[1:] &= ~naming[:-1]
    counts: Floats = begins.sum(axis=0).astype(np.float64)
    return counts


def _distance(place: int, name: NameMatch) -> int:
    return name.first - place if place < name.first else place - name.last + 1


def _words_outside(words: Sequence[Word], outside: NDArray[np.bool_], strongest: Floats) -> float:
    """Return how many content words neither belong to the name nor name a relation."""
    return float(
        sum(
            out and word.is_content and word.text not in GENERIC and score < 0.2
            for word, out, score in zip(words, outside.tolist(), strongest.tolist(), strict=True)
        )
    )


def expected_directions(
    asked: QuestionWords, name: NameMatch, affinity: Floats, space: PathSpace
) -> NDArray[np.int64]:
    """Return for each relation the direction in which the words beside the name ask it: 1 from the name as its head,
    -1 from the name as its tail, 0 where they do not tell."""
    directions = np.zeros(len(space.relations), dtype=np.int64)
    words = asked.words
    for number, label in enumerate(space.labels):
        places = np.flatnonzero(affinity[:, number] >= NAMES_RELATION)
        if not len(places):
            continue
        place = int(min(places, key=lambda each: (_distance(int(each), name), each)))
        if not words[place].is_content:  # the parts "of" a name
            directions[number] = -1
            continue
        direction = _direction(words, place, name, label)
        directions[number] = -direction if names_inverse(words[place].stem, label) else direction
    return directions


def _direction(words: Sequence[Word], place: int, name: NameMatch, label: Label) -> int:
    word = words[place].text
    between = words[place + 1 : name.first] if place < name.first else words[name.last : place]
    texts = {each.text for each in between}
    is_noun = word.endswith(_NOUN_ENDINGS) or (
        word in label.text.split()[-1:] and not label.text.endswith(" by")
    )
    is_noun |= [each.text for each in between[:1]] == ["of"]  # "the subclasses of"
    agent = -1 if label.is_agentive else 1
    if place < name.first:  # "directed by Ada", "director of Kismet", "depend on curl"
        if "by" in texts:
            return agent if not label.is_agentive else -1
        if is_noun:
            return 1 if texts & {"of", "for"} else 0
        return -agent
    before = {each.text for each in words[max(0, name.first - 3) : name.first]}
    if is_noun:  # "Kismet's director"
        return 1
    after = [each.text for each in words[place + 1 : place + 2]]
    if (texts | before) & _PASSIVE or after == ["by"]:  # "Kismet was directed by"
        return -agent if after == ["by"] and not label.is_agentive else 1
    return agent  # "curl depends on", "Ada directed"
