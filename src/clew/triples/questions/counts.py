"""How many neighbours a question asks its answers to have: the most time zones, at least four languages, none.

"The most languages", "the largest number of subdivisions", "more than ten time zones" and "no official language" are
superlatives and quantifiers over a relation of what is asked. Which relation it is, its own words or the type that
it leads to say; the other words of the question break ties ("official in the most countries").
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.triples.language.chain import (
    NOT,
    Condition,
    Quantifier,
    Superlative,
    Term,
    Triple,
    at_least,
    at_most,
    exactly,
)
from clew.triples.questions.paths import NAMES_RELATION
from clew.triples.questions.words import GENERIC, names_inverse

if TYPE_CHECKING:
    from clew.triples.questions.paths import PathSpace, QuestionWords
    from clew.triples.questions.words import Word

_NUMBERS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}
#: Words before "number of" that rank, and whether the highest is meant.
_RANKS = {
    "largest": True,
    "highest": True,
    "greatest": True,
    "biggest": True,
    "smallest": False,
    "lowest": False,
    "fewest": False,
}
#: A counted thing is named by at most so many words.
_LONGEST = 3
_ENDS = frozenset(
    "in of by that which who with for from to on at are is was were do does did have has had and not but".split()
)
#: How far the best relation of a counted thing has to be ahead of the next.
_MARGIN = 0.05
#: What the verb before a counted thing adds to the direction in which it asks.
_VERB = 0.2


@dataclass(frozen=True, slots=True)
class CountPhrase:
    """Words that ask for a number of neighbours: the places of all of them, and of those that say of what.

    ``highest`` says that the most (False: the fewest) are asked for; else ``quantifier`` says how many.
    """

    places: frozenset[int]
    counted: tuple[int, ...]
    highest: bool | None = None
    quantifier: Quantifier | None = None


@dataclass(frozen=True, slots=True)
class CountedRelation:
    """What a phrase says as a statement about an unknown, and the relation's number in the space."""

    relation: int
    triple: Triple | None = None
    quantifier: Quantifier | None = None
    superlative: Superlative | None = None
    condition: Condition | None = None


def find_count_phrases(words: Sequence[Word], of_names: Collection[int] = ()) -> list[CountPhrase]:
    """Return the phrases of a question that ask for a number of neighbours; ``of_names`` are places of names.

    >>> from clew.triples.questions.words import split_words
    >>> phrase, = find_count_phrases(split_words("Which country has more than 10 time zones?"))
    >>> str(phrase.quantifier), phrase.counted
    ('at least 11', (6, 7))
    """
    texts = [word.text for word in words]
    phrases = []
    place = 0
    while place < len(texts):
        phrase = None if place in of_names else _phrase_at(words, texts, place)
        if phrase is not None and phrase.counted:
            phrases.append(phrase)
            place = max(phrase.places) + 1
        else:
            place += 1
    return phrases


def _phrase_at(words: Sequence[Word], texts: Sequence[str], place: int) -> CountPhrase | None:
    text, after = texts[place], texts[place + 1 : place + 4]
    if text in ("most", "fewest"):
        if after[:1] in (["recent"], ["recently"]):
            return None
        return _phrase(words, place, 1, highest=text == "most")
    if text in _RANKS and after[:2] == ["number", "of"]:
        return _phrase(words, place, 3, highest=_RANKS[text])
    if text in ("no", "without"):
        extra = 2 if text == "without" and after[:1] in (["any"], ["a"], ["an"]) else 1
        return _phrase(words, place, extra, quantifier=NOT)
    bounds = {
        ("more", "than"): 1,
        ("at", "least"): 0,
        ("at", "most"): 0,
        ("less", "than"): -1,
        ("fewer", "than"): -1,
    }
    pair = (text, *after[:1])
    number = _number(after[1]) if len(after) > 1 else None
    if pair in bounds and number is not None:
        shifted = number + bounds[pair]
        is_upper = pair[0] in ("less", "fewer") or pair == ("at", "most")
        return _phrase(words, place, 3, quantifier=at_most(shifted) if is_upper else at_least(shifted))
    if text == "exactly" and after and (number := _number(after[0])) is not None:
        return _phrase(words, place, 2, quantifier=exactly(number))
    if text in ("several", "multiple"):
        return _phrase(words, place, 1, quantifier=at_least(2))
    return None


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() and len(text) < 7 else _NUMBERS.get(text)


def _phrase(
    words: Sequence[Word],
    place: int,
    size: int,
    highest: bool | None = None,
    quantifier: Quantifier | None = None,
) -> CountPhrase:
    counted: list[int] = []
    for each in range(place + size, min(place + size + _LONGEST, len(words))):
        if words[each].text in _ENDS or words[each].text[:1].isdigit():
            break
        counted.append(each)
    places = frozenset(range(place, place + size + len(counted)))
    return CountPhrase(places, tuple(counted), highest, quantifier)


def resolve_count(
    phrase: CountPhrase,
    asked: QuestionWords,
    unknown: int,
    leaving: Collection[int],
    space: PathSpace,
    free: int,
) -> CountedRelation | None:
    """Return the statement that a phrase makes about an unknown whose nodes the directed relations ``leaving`` leave;
    ``free`` numbers the unknown that is counted. None where no relation, or more than one, is meant."""
    counted = list(phrase.counted)
    others = [
        place
        for place, word in enumerate(asked.words)
        if place not in phrase.places and word.is_content and word.text not in GENERIC
    ]
    scores: dict[int, float] = {}
    inverse_named: set[int] = set()
    for directed in sorted(leaving):
        relation = directed // 2
        of_words = asked.affinities[counted, relation].copy()
        for number, place in enumerate(counted):
            # "The most subclasses" are where 'inherits from' begins.
            if names_inverse(asked.words[place].stem, space.labels[relation]):
                of_words[number] *= directed % 2
                inverse_named |= {directed} if directed % 2 else set()
        named = float(of_words.max(initial=0.0))
        typed = 0.0
        if space.has_types and not space.is_property(directed):
            fits = (asked.type_affinities[counted] * space.types_at[directed][None]).max(axis=1, initial=0.0)
            typed = float(fits.max(initial=0.0))
            of_words = np.maximum(of_words, fits)
        if directed % 2 and typed < NAMES_RELATION and directed not in inverse_named:
            continue  # "the most languages" are where 'language' leads to, not where it begins
        best = max(named, typed)
        if best < NAMES_RELATION:
            continue
        by_others = float(asked.affinities[others, relation].sum())
        scores[directed] = best + 0.3 * float(of_words.sum()) + 0.5 * by_others
        scores[directed] += _VERB * (
            _direction_before(phrase, asked, relation, space) == 1 - 2 * (directed % 2)
        )
    ranked = sorted(scores, key=lambda directed: -scores[directed])
    if not ranked or (len(ranked) > 1 and scores[ranked[0]] - scores[ranked[1]] < _MARGIN):
        return None
    chosen = ranked[0]
    label = space.relations[chosen // 2]
    if space.is_property(chosen):
        return _resolve_property(phrase, unknown, chosen, label, space)
    triple = Triple(Term(f"#{unknown}"), label, Term(f"#{free}"), inverse=bool(chosen % 2))
    if phrase.highest is not None:
        superlative = Superlative(unknown, phrase.highest, triple=triple)
        return CountedRelation(chosen // 2, superlative=superlative)
    return CountedRelation(chosen // 2, triple, phrase.quantifier)


def _direction_before(phrase: CountPhrase, asked: QuestionWords, relation: int, space: PathSpace) -> int:
    """Return 1 where the verb before a phrase asks for the tails of a relation ("imports the most modules"), -1 where
    it asks for the heads ("is imported by the most"), 0 where no verb is there."""
    before = [place for place in range(min(phrase.places)) if asked.words[place].text != "the"][-2:]
    if not before:
        return 0
    is_passive = asked.words[before[-1]].text == "by"
    verb = before[0] if is_passive else before[-1]
    if asked.affinities[verb, relation] < NAMES_RELATION:
        return 0
    return -1 if is_passive != space.labels[relation].text.endswith(" by") else 1


def _resolve_property(
    phrase: CountPhrase, unknown: int, directed: int, property: str, space: PathSpace
) -> CountedRelation | None:
    """Return what a phrase says of a number that a node has itself: "the most votes", "no decimals"."""
    if not space.leads_to_numbers[directed]:
        return None
    if phrase.highest is not None:
        superlative = Superlative(unknown, phrase.highest, property=property)
        return CountedRelation(directed // 2, superlative=superlative)
    if phrase.quantifier == NOT:
        return CountedRelation(directed // 2, condition=Condition(unknown, property, "=", 0))
    return None  # comparisons with numbers are conditions already
