"""What a question asks besides its path: further names, comparisons with numbers, superlatives, and counting."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from clew.core.number_comparisons import find_comparisons
from clew.triples.language.chain import NOT, Chain, Condition, Quantifier, Superlative, Term, Triple
from clew.triples.questions.counts import find_count_phrases, resolve_count
from clew.triples.questions.paths import NAMES_RELATION
from clew.triples.questions.words import label_affinity, read_label

if TYPE_CHECKING:
    from clew.core.number_comparisons import NumberComparison
    from clew.triples.language.chain import TypedChain
    from clew.triples.questions.names import NameMatch
    from clew.triples.questions.paths import PathSpace, QuestionWords

#: A further name less plausible than this is taken for a word.
MIN_PLAUSIBILITY = 0.2
#: What each word beside a further name adds to a relation that it names.
_FURTHER_WORDS = 0.2
#: What speaks for joining a further name by the relation of the path.
_ALIKE = 0.15
#: What speaks for a writing that is the question's own, and for each tenfold number of edges.
_EXACT, _PER_EDGES = 0.3, 0.02
#: Words between two verbs that share a name: "both directed and starred in".
_JOINING_VERBS = frozenset("and also both in by then".split())
#: Words before a name that belong to it.
_BEFORE = 4
#: Superlatives: highest or lowest, and the word for what is measured, "" where the next word says it.
_SUPERLATIVES = {
    "latest": (True, "year"),
    "newest": (True, "year"),
    "recent": (True, "year"),
    "oldest": (False, "year"),
    "earliest": (False, "year"),
    "first": (False, "year"),
    "highest": (True, ""),
    "lowest": (False, ""),
    "largest": (True, "size"),
    "biggest": (True, "size"),
    "greatest": (True, ""),
    "smallest": (False, "size"),
    "longest": (True, "length"),
    "shortest": (False, "length"),
    "tallest": (True, "height"),
}
_NEGATIONS = frozenset("not except excluding without no never neither nor but".split()) | {
    "aren't",
    "isn't",
    "don't",
    "doesn't",
}
_CONTRACTED = re.compile(r"n['’]t$")


@dataclass(slots=True)
class Additions:
    """What is added to the triples of a path. ``words`` are the places of the words that it accounts for,
    ``relations`` the numbers of its relations, ``alike`` those of them that join a name as another ("French and
    English") is joined, ``counted`` the places of words for what is counted, ``notes`` what could not be
    expressed."""

    triples: list[tuple[Triple, Quantifier | None]] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    superlatives: list[Superlative] = field(default_factory=list)
    asks_count: bool = False
    words: set[int] = field(default_factory=set)
    relations: set[int] = field(default_factory=set)
    alike: set[int] = field(default_factory=set)
    counted: set[int] = field(default_factory=set)
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many statements restrict the answers of the path."""
        return len(self.triples) + len(self.conditions) + len(self.superlatives)

    def apply(self, path: TypedChain) -> TypedChain:
        """Return the path with everything added."""
        triples = path.chain.triples + tuple(triple for triple, _ in self.triples)
        first = len(path.chain.triples)
        quantifiers = {
            first + place: each for place, (_, each) in enumerate(self.triples) if each is not None
        }
        return replace(
            path,
            chain=Chain(triples, path.chain.answer),
            quantifiers={**path.quantifiers, **quantifiers},
            conditions=(*path.conditions, *self.conditions),
            superlatives=(*path.superlatives, *self.superlatives),
        )


def find_additions(
    question: str,
    asked: QuestionWords,
    name: NameMatch,
    names: Sequence[NameMatch],
    hops: Sequence[int],
    space: PathSpace,
    path: TypedChain,
) -> Additions:
    """Return what a question asks besides a path from ``name``."""
    additions = Additions()
    texts = [word.text for word in asked.words]
    _add_counts(asked, name, names, hops, space, additions)
    additions.asks_count = any(
        pair in (["how", "many"], ["number", "of"]) and place not in additions.words
        for place, pair in enumerate(_pairs(texts))
    )
    if additions.asks_count:
        additions.words |= {place for place, text in enumerate(texts) if text in ("many", "number")}
    taken = _add_comparisons(question, asked, name, hops, space, additions)
    _add_relations(asked, name, hops, space, additions)
    for other in names:
        if other.overlaps(name) or any(other.first <= place < other.last for place in taken):
            continue
        if any(other.first <= place < other.last for place in additions.words):
            continue  # the same words under another writing
        writings = [
            each
            for each in names
            if (each.first, each.last) == (other.first, other.last)
            and each.plausibility >= MIN_PLAUSIBILITY
            and not _is_explained(asked, name, each, hops, space)
        ]
        if writings:
            _add_name(asked, name, writings, hops, space, additions)
    _add_superlatives(asked, name, hops, space, additions)
    additions.notes += unexpressed_negations(asked, name, additions)
    return additions


def asks_measure(question: str, asked: QuestionWords) -> bool:
    """Return whether a question compares or ranks by a number; the number is then no answer."""
    return bool(find_comparisons(question)) or any(
        word.text in _SUPERLATIVES or word.text in ("most", "fewest") for word in asked.words
    )


def _add_counts(
    asked: QuestionWords,
    name: NameMatch,
    names: Sequence[NameMatch],
    hops: Sequence[int],
    space: PathSpace,
    additions: Additions,
) -> None:
    """Add how many neighbours the answers are to have. What is not expressed is noted, unless it may be a comparison
    with a number or a negation, which others look for."""
    of_names = {
        place
        for each in (name, *names)
        if each.plausibility >= MIN_PLAUSIBILITY
        for place in range(each.first, each.last)
    }
    if space.is_property(hops[-1]):
        return
    for phrase in find_count_phrases(asked.words, of_names):
        if additions.words & phrase.places or of_names & phrase.places:
            continue
        free = len(hops) + 1 + len(additions.triples) + len(additions.superlatives)
        leaving = _leaving(len(hops), hops, name, space)
        statement = resolve_count(phrase, asked, len(hops), leaving, space, free)
        if statement is None:
            if phrase.highest is not None:
                words = " ".join(asked.words[place].text for place in sorted(phrase.places))
                additions.notes += (f"no relation is counted for '{words}'",)
                additions.words |= phrase.places
            continue
        additions.words |= phrase.places
        additions.counted |= phrase.places
        additions.relations.add(statement.relation)
        if statement.triple is not None:
            additions.triples.append((statement.triple, statement.quantifier))
        if statement.superlative is not None:
            additions.superlatives.append(statement.superlative)
        if statement.condition is not None:
            additions.conditions.append(statement.condition)


def is_denied(asked: QuestionWords, name: NameMatch, names: Sequence[NameMatch]) -> bool:
    """Return whether a negation stands before a name, with no other name between them."""
    for place in range(name.first - 1, max(-1, name.first - 1 - _BEFORE), -1):
        if any(
            other.first <= place < other.last and other.plausibility >= MIN_PLAUSIBILITY for other in names
        ):
            return False
        if _is_negation(asked.words[place].text):
            return True
    return False


def unexpressed_negations(asked: QuestionWords, name: NameMatch, additions: Additions) -> tuple[str, ...]:
    """Return the negations of a question that nothing in its additions stands for."""
    return tuple(
        f"'{word.text}' is not expressed"
        for place, word in enumerate(asked.words)
        if _is_negation(word.text) and place not in additions.words and not name.first <= place < name.last
    )


def _pairs(texts: Sequence[str]) -> list[list[str]]:
    return [list(pair) for pair in pairwise(texts)]


def _is_explained(
    asked: QuestionWords, name: NameMatch, other: NameMatch, hops: Sequence[int], space: PathSpace
) -> bool:
    """Return whether the words of a possible name are wording that the path stands for already.

    The words for what is asked are, unless they name what the answers have: "*comedies* by Mel Brooks".
    """
    if other.plausibility >= 0.6:
        return False
    relations = [hop // 2 for hop in hops]
    from_other = space.at_rows(other.rows)
    is_value = any(
        not directed % 2 and directed ^ 1 in from_other for directed in _leaving(len(hops), hops, name, space)
    )
    for place in range(other.first, other.last):
        word = asked.words[place]
        if not word.is_content:
            continue
        by_type = asked.type_affinities[place].max() if space.has_types else 0.0
        by_path = max(asked.affinities[place, relations].max(), by_type)
        names_value = is_value and asked.affinities[place].max() < NAMES_RELATION
        if by_path < NAMES_RELATION and (place not in asked.focus or names_value):
            return False
    return True


def _leaving(number: int, hops: Sequence[int], name: NameMatch, space: PathSpace) -> frozenset[int]:
    """Return the directed relations that leave the nodes of unknown ``number``."""
    return frozenset(space.following(hops[number - 1])) if number else space.at_rows(name.rows)


def _add_relations(
    asked: QuestionWords, name: NameMatch, hops: Sequence[int], space: PathSpace, additions: Additions
) -> None:
    """Add the relations that a question joins to that of the path by "and": "directed *and written* by Ada"."""
    if len(hops) != 1 or space.is_property(hops[0]) or space.type_of_start(hops[0]) is not None:
        return
    own, inverse = hops[0] // 2, hops[0] % 2
    outside = [place for place in range(len(asked.words)) if not name.first <= place < name.last]
    naming = [place for place in outside if asked.affinities[place, own] >= NAMES_RELATION]
    for directed in sorted(space.at_rows(name.rows)):
        relation = directed // 2
        if directed % 2 != inverse or relation == own or relation in additions.relations:
            continue
        joined = [
            place
            for place in outside
            if asked.affinities[place, relation] >= NAMES_RELATION and place not in naming
            for first in naming
            if "and" in (between := _texts_between(asked, first, place)) and between <= _JOINING_VERBS
        ]
        if joined:
            unknown, constant = Term("#1"), Term(name.name, is_name=True)
            label = space.relations[relation]
            triple = Triple(unknown, label, constant) if inverse else Triple(constant, label, unknown)
            additions.triples.append((triple, None))
            additions.relations.add(relation)
            additions.alike.add(relation)
            additions.words |= set(joined)


def _texts_between(asked: QuestionWords, first: int, second: int) -> set[str]:
    return {word.text for word in asked.words[min(first, second) + 1 : max(first, second)]}


def _add_name(
    asked: QuestionWords,
    name: NameMatch,
    writings: Sequence[NameMatch],
    hops: Sequence[int],
    space: PathSpace,
    additions: Additions,
) -> None:
    """Join a further name to the unknown that its relation fits best. Of its ``writings`` in the graph, the genre
    "Comedy" and the tag "comedy", the one that fits best is meant, and of equals the one with most edges."""
    other = writings[0]
    is_role = asked.words[other.last : other.last + 1] and asked.words[other.last].text == "as"
    after = _BEFORE if is_role else 2  # "German as an official language"
    near = range(max(0, other.first - _BEFORE), min(len(asked.words), other.last + after))
    near_words = [
        place
        for place in near
        if not name.first <= place < name.last and not other.first <= place < other.last
    ]
    best: tuple[float, int, int, NameMatch] | None = None
    from_writings = [space.at_rows(writing.rows) for writing in writings]
    for number in range(len(hops), 0, -1):
        leaving = _leaving(number, hops, name, space)
        for directed, writing in (
            (directed, writing)
            for directed in sorted(leaving)
            for writing, from_writing in zip(writings, from_writings, strict=True)
            if not space.is_property(directed) and directed ^ 1 in from_writing
        ):
            of_words = asked.affinities[near_words, directed // 2]
            worded = float(of_words.max(initial=0.0) + _FURTHER_WORDS * of_words.sum())
            own = label_affinity(asked.words[other.last - 1].stem, space.labels[directed // 2])
            of_type = _type_said(asked, near_words, directed, space)
            forwards = 0.2 if not directed % 2 else 0.0
            score = worded + of_type + 0.3 * own + forwards + (0.25 if number == len(hops) else 0.0)
            # "French and English": what nothing tells apart is joined as the other name is.
            score += _ALIKE if number == len(hops) and directed == hops[-1] ^ 1 else 0.0
            if len(writings) > 1:
                is_meant = writing.is_exact and not writing.name.islower()
                score += _EXACT * is_meant + _PER_EDGES * math.log10(
                    1 + _degree(writing, directed ^ 1, space)
                )
            if best is None or score > best[0] + 1e-9:
                best = score, number, directed, writing
    additions.words |= set(range(other.first, other.last))
    if best is None:
        additions.notes += (f"no relation joins '{other.name}' to what is asked",)
        return
    _, number, directed, writing = best
    negated = any(_is_negation(asked.words[place].text) for place in near if place < other.first)
    unknown, constant = Term(f"#{number}"), Term(writing.name, is_name=True)
    relation = space.relations[directed // 2]
    triple = Triple(constant, relation, unknown) if directed % 2 else Triple(unknown, relation, constant)
    additions.triples.append((triple, NOT if negated else None))
    additions.relations.add(directed // 2)
    between = asked.words[min(name.last, other.last) : max(name.first, other.first)]
    if all(word.text in ("and", "or", "both") for word in between):
        additions.alike.add(directed // 2)
    additions.words |= {place for place in near_words if _is_negation(asked.words[place].text)}


def _degree(name: NameMatch, directed: int, space: PathSpace) -> int:
    """Return how many edges leave the nodes of a name along a directed relation."""
    relation, inverse = space.relations[directed // 2], bool(directed % 2)
    return len(space.graph.neighbours(name.rows, relation, inverse)[1])


def _type_said(asked: QuestionWords, near: Sequence[int], directed: int, space: PathSpace) -> float:
    """Return how far the words beside a name name the type that a relation leads to ("the section vcs")."""
    if not space.has_types or not near:
        return 0.0
    types = space.types_at[directed]
    return float((asked.type_affinities[near] * types[None]).max())


def _is_negation(text: str) -> bool:
    return text in _NEGATIONS or bool(_CONTRACTED.search(text))


def _add_comparisons(
    question: str,
    asked: QuestionWords,
    name: NameMatch,
    hops: Sequence[int],
    space: PathSpace,
    additions: Additions,
) -> set[int]:
    """Add the comparisons with numbers, and return the places of their words."""
    taken: set[int] = set()
    start, end = asked.words[name.first].start, asked.words[name.last - 1].end
    for comparison in find_comparisons(question):
        if name.last > name.first and comparison.start < end and start < comparison.end:
            continue  # "2 Days in the Valley": part of the name
        places = places_of(comparison, asked)
        if places <= additions.words:
            continue  # "more than 10 time zones" counts nodes
        kind = "time" if comparison.is_year else ""
        target = _find_measure(asked, hops, space, name, kind, places)
        if target is None:
            if comparison.test == "=":
                continue  # "in 24 Hours": a name may follow
            text = question[comparison.start : comparison.end]
            additions.notes += (f"nothing in the graph can be compared for '{text}'",)
            taken |= places
            continue
        number, relation = target
        additions.conditions.append(write_condition(comparison, number, space.relations[relation]))
        additions.relations.add(relation)
        taken |= places
    additions.words |= taken
    return taken


def places_of(comparison: NumberComparison, asked: QuestionWords) -> set[int]:
    """Return the places of the words of a comparison."""
    return {
        place for place, word in enumerate(asked.words) if comparison.start <= word.start < comparison.end
    }


def write_condition(comparison: NumberComparison, unknown: int, property: str) -> Condition:
    """Return the comparison of a property of an unknown."""
    return Condition(unknown, property, comparison.test, comparison.low, comparison.high)


def _find_measure(
    asked: QuestionWords,
    hops: Sequence[int],
    space: PathSpace,
    name: NameMatch,
    kind: str,
    places: set[int],
    word: str = "",
) -> tuple[int, int] | None:
    """Return the unknown and the relation or property that a comparison is about: numbers, named by a word of the
    question or of the given kind. None where there is none, or nothing tells which."""
    best: tuple[float, int, int] | None = None
    for number in range(len(hops), 0, -1):
        if space.is_property(hops[number - 1]):
            continue
        for directed in sorted(_leaving(number, hops, name, space)):
            relation = directed // 2
            if directed % 2 or not space.leads_to_numbers[directed]:
                continue
            label = space.labels[relation]
            worded = float(
                max(
                    (
                        asked.affinities[place, relation]
                        for place in range(len(asked.words))
                        if not name.first <= place < name.last
                    ),
                    default=0.0,
                )
            )
            by_word = (
                max((label_affinity(each, label) for each in read_label(word).stems), default=0.0)
                if word
                else 0.0
            )
            by_kind = 0.8 if kind and kind in label.kinds else 0.0
            score = max(worded, by_word, by_kind)
            if score >= NAMES_RELATION and (best is None or score > best[0] + 1e-9):
                best = score, number, relation
    return None if best is None else best[1:]


def _add_superlatives(
    asked: QuestionWords, name: NameMatch, hops: Sequence[int], space: PathSpace, additions: Additions
) -> None:
    for place, word in enumerate(asked.words):
        if word.text not in _SUPERLATIVES or name.first <= place < name.last or place in additions.words:
            continue
        highest, measure = _SUPERLATIVES[word.text]
        kind = "time" if measure == "year" else ""
        places = {place}
        if word.text == "recent" and place and asked.words[place - 1].text == "most":
            places.add(place - 1)
        target = _find_measure(asked, hops, space, name, kind, places, measure)
        additions.words |= places
        if target is None or target[0] != len(hops):
            additions.notes += (f"nothing in the graph tells which is '{word.text}'",)
            continue
        number, relation = target
        additions.superlatives.append(Superlative(number, highest, property=space.relations[relation]))
        additions.relations.add(relation)
