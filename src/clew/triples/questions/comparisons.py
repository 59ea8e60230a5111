"""Questions that compare two names: which is first, later, longer, and whether they have the same.

Both names are followed along the same path, and the values at its ends are compared by the rules of
:mod:`clew.core.values`, which are also those of the method ``chain``: what is written is a chain that ends with
``#answer``. A comparison is read only where the values settle it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import stem
from clew.core.values import EITHER, POLAR, asks_for_equality, is_order_word, settle_values
from clew.triples.language.chain import Chain, Term, Triple, TypedChain
from clew.triples.questions.paths import CERTAIN_NAME, NAMES_RELATION
from clew.triples.questions.words import GENERIC, PERSON_WORDS, label_affinity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.triples.questions.names import NameMatch
    from clew.triples.questions.paths import PathSpace, QuestionWords

#: Between two names that are compared: "or", "and the director of the film", "longer than".
_JOINING = re.compile(r"^\W*(?:\([^()]*\)[\s,]*)?(?:(?:or|and)\b|[^A-Z0-9.?!]*\b(?:than|as)\b)[^A-Z0-9.?!]*$")
_QUALIFIER = re.compile(r"^\W*(\([^()]*\))")
#: Words that compare numbers of things.
_COUNTING = frozenset("more most fewer fewest".split())
_SAME = frozenset("same share shares shared sharing different differ differs common".split())
#: What "older" is about where nothing else is said: a birth, else another time.
_BORN = frozenset("older oldest younger youngest elder".split())
#: Words of comparisons that name nothing.
_WORDING = frozenset(
    "both than other two between among out all of one has have had more most less least was were are is recent "
    "recently located situated lie lies based from come came".split()
)
#: Paths whose words fit nearly as well leave a question open.
_MARGIN = 0.05
#: More values of a name are not compared, and so many hops are followed.
_MOST_VALUES, _MOST_HOPS = 20, 2


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two names followed along a path of relations, as a chain. ``settled`` is what follows from the values, "" where
    nothing does; ``left_out`` are the words that nothing stands for, ``notes`` what else speaks against it."""

    first: NameMatch
    hops: tuple[int, ...]
    chain: str
    settled: str
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    explained: float


@dataclass(frozen=True, slots=True)
class CountComparison:
    """Two names compared by how many neighbours they have along a directed relation. ``settled`` has more, or fewer,
    as the question asks, "" for equals; ``triples`` lead to the neighbours of that name, ``counts`` has both numbers
    in words; ``left_out`` are the words that nothing stands for."""

    first: NameMatch
    directed: int
    triples: TypedChain
    settled: str
    counts: str
    left_out: tuple[str, ...]


def find_comparison(
    question: str, asked: QuestionWords, names: Sequence[NameMatch], space: PathSpace
) -> Comparison | None:
    """Return the comparison that a question asks for; None where it asks for none, or nothing can be compared."""
    pair = find_pair(question, asked, names)
    if pair is None:
        return None
    first, second = pair
    covered = [_covered(question, asked, name) for name in pair]
    outside = [place for place in range(len(asked.words)) if not any(place in each for each in covered)]
    texts = [asked.words[place].text for place in outside]
    is_same = bool(POLAR.search(question)) and not EITHER.search(" ".join(texts)) and bool(_SAME & set(texts))
    is_order = any(map(is_order_word, texts)) and bool({"or", "than", "between", "among", "out"} & set(texts))
    if not is_same and not is_order:
        return None
    paths = _common_paths(first, second, space)
    ranked = sorted(
        (
            (len(left), -fit, len(path), path, left)
            for path in paths
            for fit, left in [_fit(question, asked, outside, path, space, is_order)]
            if fit >= NAMES_RELATION
        ),
        key=lambda each: each[:4],
    )
    best: Comparison | None = None
    for number, (_, negative, _, path, left) in enumerate(ranked):
        values = [_values(name, path, space) for name in pair]
        settled = _settle(question, pair, values) if all(values) else ""
        notes = []
        if is_order and _asks_between(asked, first, path, space):
            notes.append("it asks for what lies between the names and the values")
        if any(_is_ambiguous(name, path, space) for name in pair):
            notes.append("a name is that of several nodes, which have other values")
        if any(
            len(other[4]) == len(left) and other[1] - negative < _MARGIN
            for other in ranked[number + 1 :]
            if all(_values(name, other[3], space) for name in pair)
        ):
            notes.append("another relation is about as likely to be compared")
        unfit = "" if settled else "the values do not settle it"
        comparison = Comparison(
            first,
            path,
            str(_write_chain(pair, path, space)),
            settled,
            left,
            (*notes, *([unfit] if unfit else [])),
            -negative,
        )
        if settled:
            return comparison
        best = best or comparison
    return best


def find_count_comparison(
    question: str, asked: QuestionWords, names: Sequence[NameMatch], space: PathSpace
) -> CountComparison | None:
    """Return which of two names has more or fewer neighbours: "Who directed more films, Ada Pell or Joel Marsh?".
    None for other questions, and where the words do not say along which relation."""
    pair = find_pair(question, asked, names)
    texts = {word.text for word in asked.words}
    if pair is None or POLAR.search(question) or not texts & _COUNTING or not texts & {"or", "than"}:
        return None
    covered = [_covered(question, asked, name) for name in pair]
    outside = [place for place in range(len(asked.words)) if not any(place in each for each in covered)]
    affinity = asked.affinities[outside]
    common = space.at_rows(pair[0].rows) & space.at_rows(pair[1].rows)
    named = {
        directed: float(affinity[:, directed // 2].sum())
        for directed in common
        if not space.is_property(directed) and affinity[:, directed // 2].max(initial=0.0) >= NAMES_RELATION
    }
    if not named:
        return None
    ranked = sorted(named, key=lambda directed: -named[directed])
    if len(ranked) > 1 and named[ranked[0]] - named[ranked[1]] < _MARGIN:
        return None
    directed = ranked[0]
    label, is_backwards = space.relations[directed // 2], bool(directed % 2)
    counts = [len(np.unique(space.graph.neighbours(name.rows, label, is_backwards)[1])) for name in pair]
    wants_first = (counts[0] > counts[1]) != bool(texts & {"fewer", "less", "fewest", "least"})
    winner = pair[0] if wants_first else pair[1]
    ends = (Term("#1"), Term(winner.name, is_name=True))
    triple = Triple(ends[0], label, ends[1]) if is_backwards else Triple(ends[1], label, ends[0])
    return CountComparison(
        pair[0],
        directed,
        TypedChain(Chain((triple,), 1)),
        winner.name if counts[0] != counts[1] else "",
        ", ".join(f"{name.name} has {count:,}" for name, count in zip(pair, counts, strict=True)),
        _count_left_out(asked, outside, directed, space),
    )


def _count_left_out(
    asked: QuestionWords, outside: Sequence[int], directed: int, space: PathSpace
) -> tuple[str, ...]:
    """Return the content words outside the names that neither a relation, a type nor the comparison stands for."""
    left = []
    for place in outside:
        word = asked.words[place]
        # A word with a capital is taken for wording, too, unlike in other questions.
        if not word.is_content or word.text in GENERIC | PERSON_WORDS | _WORDING | _COUNTING:
            continue
        if not asked.names_part(place, [directed // 2], space):
            left.append(word.text)
    return tuple(dict.fromkeys(left))


def find_pair(
    question: str, asked: QuestionWords, names: Sequence[NameMatch]
) -> tuple[NameMatch, NameMatch] | None:
    """Return the two names that a question joins by "or", "and", "than" or "as", None where it does not."""
    certain = sorted(
        (name for name in names if name.plausibility >= CERTAIN_NAME or name.is_exact),
        key=lambda name: (name.first, -name.plausibility),
    )
    for first in certain:
        for second in certain:
            if second.first < first.last:
                continue
            between = question[asked.words[first.last - 1].end : asked.words[second.first].start]
            if _JOINING.match(between):
                return first, second
    return None


def _covered(question: str, asked: QuestionWords, name: NameMatch) -> range:
    """Return the places of a name, with the words in brackets behind it that say what kind of thing it is."""
    end = asked.words[name.last - 1].end
    brackets = _QUALIFIER.match(question[end:])
    last = name.last
    if brackets is not None and len(name.rows) == 1:
        inside = [place for place, word in enumerate(asked.words) if end <= word.start < end + brackets.end()]
        if all(asked.words[place].text in GENERIC for place in inside):
            last = name.last + len(inside)
    return range(name.first, last)


def _common_paths(first: NameMatch, second: NameMatch, space: PathSpace) -> list[tuple[int, ...]]:
    """Return the paths of one and two hops, from heads to tails, that leave both names."""
    starts = space.at_rows(first.rows) & space.at_rows(second.rows)
    paths: list[tuple[int, ...]] = []
    for start in sorted(each for each in starts if not each % 2):
        paths.append((start,))
        if _MOST_HOPS > 1 and not space.is_property(start):
            paths += [(start, after) for after in space.following(start) if not after % 2]
    return paths


def _fit(
    question: str,
    asked: QuestionWords,
    outside: Sequence[int],
    path: Sequence[int],
    space: PathSpace,
    is_order: bool,
) -> tuple[float, tuple[str, ...]]:
    """Return how far the words name every hop of a path, and the content words that nothing stands for."""
    words = asked.words
    relations = [hop // 2 for hop in path]
    label = space.labels[relations[-1]]
    named = [float(asked.affinities[list(outside), relation].max(initial=0.0)) for relation in relations]
    texts = {words[place].text for place in outside}
    if is_order:
        by_age = label_affinity(stem("born"), label) if texts & _BORN else 0.0
        # "Which came first": any time will do, where no word names another.
        by_time = NAMES_RELATION if "time" in label.kinds else 0.0
        named[-1] = max(named[-1], by_age, by_time)
    left = []
    for place in outside:
        word = words[place]
        if asked.is_wording(place, question):
            continue
        if word.text in _SAME or word.text in _WORDING or is_order_word(word.text):
            continue
        if asked.names_part(place, relations, space):
            continue
        is_capital = place > 0 and question[word.start].isupper() and len(word.text) > 1
        if not is_capital and _is_apposition(asked, place, outside):
            continue
        if not space.has_types and place in asked.focus and asked.affinities[place].max() < NAMES_RELATION:
            continue  # "which ship": a graph without types does not say what its nodes are
        left.append(word.text)
    return min(named) + 0.01 * float(np.mean(named)), tuple(dict.fromkeys(left))


def _asks_between(asked: QuestionWords, name: NameMatch, path: Sequence[int], space: PathSpace) -> bool:
    """Return whether a comparison asks not for one of the names but for a node on the way from it: "who is older, the
    director of Kismet or that of Low Water"."""
    if len(path) == 1:
        return False
    focus = [place for place in asked.focus if not name.first <= place < name.last]
    if asked.kind == "person":
        return True
    if not focus or asked.kind:
        return False
    on_the_way = [hop // 2 for hop in path[:-1]]
    if asked.affinities[focus][:, on_the_way].max() >= NAMES_RELATION:
        return True
    if not space.has_types:
        return False
    wanted = asked.type_affinities[focus].max(axis=0)
    own = {entity.type for entity in space.graph.entities(name.rows[:1])}
    named = {space.type_names[place] for place in np.flatnonzero(wanted >= NAMES_RELATION)}
    return bool(named) and not named & own


def _is_apposition(asked: QuestionWords, place: int, outside: Sequence[int]) -> bool:
    """Return whether a word says what kind of things the names are: "both *high schools*, X and Y"."""
    start = place
    while start in outside and asked.words[start].is_content:
        start -= 1
    end = place
    while end in outside and asked.words[end].is_content:
        end += 1
    run = range(start + 1, end)
    if any(is_order_word(asked.words[each].text) for each in run):
        return False
    if asked.affinities[list(run)].max(initial=0.0) >= NAMES_RELATION:
        return False
    before = asked.words[start].text if start >= 0 else ""
    return before in ("both", "the", "two", "which", "what") and (end not in outside)


def _values(name: NameMatch, path: Sequence[int], space: PathSpace) -> list[str]:
    """Return the values at the end of a path, as their nodes are called."""
    return _values_of(np.asarray(name.rows, dtype=np.int64), path, space)


def _values_of(rows: NDArray[np.int64], path: Sequence[int], space: PathSpace) -> list[str]:
    for hop in path:
        relation = space.relations[hop // 2]
        if space.is_property(hop):
            own = [entity.properties.get(relation) for entity in space.graph.entities(rows[:_MOST_VALUES])]
            return [str(value) for value in own if value is not None]
        rows = np.unique(space.graph.neighbours(rows, relation)[1]).astype(np.int64)
        if not len(rows):
            return []
    return [entity.name for entity in space.graph.entities(rows[:_MOST_VALUES])]


def _is_ambiguous(name: NameMatch, path: Sequence[int], space: PathSpace) -> bool:
    """Return whether nodes of the same name have other values."""
    if len(name.rows) < 2:
        return False
    of_rows = {tuple(_values_of(np.array([row]), path, space)) for row in name.rows.tolist()}
    return len(of_rows - {()}) > 1


def _settle(question: str, pair: tuple[NameMatch, NameMatch], values: Sequence[Sequence[str]]) -> str:
    """Return what follows from the values: one of the names, yes or no; "" where nothing does, or where another of
    several values would say something else."""
    texts = pair[0].name, pair[1].name
    if asks_for_equality(question) is None:
        outcomes = {
            settled.text if settled else ""
            for one_value in values[0]
            for other_value in values[1]
            for settled in [settle_values(question, texts, ([one_value], [other_value]))]
        }
        return outcomes.pop() if len(outcomes) == 1 else ""
    settled = settle_values(question, texts, (values[0], values[1]))
    return settled.text if settled else ""


def _write_chain(pair: Sequence[NameMatch], path: Sequence[int], space: PathSpace) -> Chain:
    triples = []
    number = 0
    for name in pair:
        previous = Term(name.name, is_name=True)
        for hop in path:
            number += 1
            unknown = Term(f"#{number}")
            triples.append(Triple(previous, space.relations[hop // 2], unknown))
            previous = unknown
    return Chain(tuple(triples), None)
