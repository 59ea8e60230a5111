"""Final answers that follow from the values of a chain by rule: comparisons of dates and numbers, yes or no, counts.

The rules are for English questions. A question that they do not understand, or that the values do not decide (two
equal years), is left to the model; without a model it has no answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rapidfuzz import fuzz

from clew.methods.chain.unknowns import Candidate, FilledChain, values_agree
from clew.methods.chain.value_matching import parse_date, parse_number
from clew.triples.language.chain import Chain

_COUNTS = re.compile(r"^\W*how many\b|\bnumber of\b", re.IGNORECASE)
_BOOLEAN = re.compile(r"^\W*(?:are|is|was|were|did|do|does|has|have|had|can|could)\b", re.IGNORECASE)
_EITHER = re.compile(r"\bor\b", re.IGNORECASE)
_SAME = re.compile(r"\b(?:same|share|shared|both|common|also)\b", re.IGNORECASE)
_DIFFERENT = re.compile(r"\b(?:different|differ|distinct)\b", re.IGNORECASE)
_LEAST = re.compile(
    r"\b(?:first|earlier|earliest|older|oldest|before|fewer|fewest|less|least|smaller|smallest|lower|lowest|shorter"
    r"|shortest|cheaper|cheapest|lighter|lightest|nearer|closer)\b",
    re.IGNORECASE,
)
_MOST = re.compile(
    r"\b(?:later|latest|last|younger|youngest|after|more|most|larger|largest|bigger|biggest|higher|highest|longer"
    r"|longest|taller|tallest|greater|greatest|newer|newest|heavier|heaviest|recent|recently|further|farther)\b",
    re.IGNORECASE,
)
_LIVED = re.compile(r"\bliv(?:ed|es) (?:longer|shorter)\b", re.IGNORECASE)
#: The older of two people has the earlier date of birth, but the greater age in years.
_AGE = re.compile(r"\b(?:older|oldest|younger|youngest)\b", re.IGNORECASE)
#: A name in a chain and one in the question are the same if they are at least this alike, of 100.
_MIN_SPELLING = 80
#: A number of years above this is a year, not an age.
_MAX_AGE = 150


@dataclass(frozen=True, slots=True)
class DerivedAnswer:
    """A final answer, the rule that gave it, and the values it is based on."""

    text: str
    rule: Literal["comparison", "same", "count"]
    based_on: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Strand:
    """A constant of a chain, and the last unknown that its triples lead to."""

    constant: str
    last_unknown: int


def derive_answer(question: str, filled: FilledChain) -> DerivedAnswer | None:
    """Return the final answer if it follows by counting or comparing, else None.

    >>> from clew.triples.language import parse_chain
    >>> from clew.methods.chain.unknowns import Filling
    >>> filled = FilledChain(parse_chain("Ada >> born >> #1; Bo >> born >> #2; final answer: #answer"))
    >>> filled.add(1, Filling("kg", (Candidate("2 May 1901"),)))
    >>> filled.add(2, Filling("kg", (Candidate("1899"),)))
    >>> derive_answer("Who was born first, Ada or Bo?", filled).text
    'Bo'
    """
    if filled.unfilled:
        return None
    if filled.chain.answer is not None:
        return _count_values(question, filled, filled.chain.answer)
    strands = find_strands(filled.chain)
    if len(strands) == 1:
        return _count_values(question, filled, strands[0].last_unknown)
    if len(strands) != 2:
        return None
    # "Was Ada or Bo born first?" asks for one of the two, not for yes or no.
    words = _remove_names([strand.constant for strand in strands], question)
    if _BOOLEAN.search(question) and not _EITHER.search(words):
        return _compare_equality(question, filled, strands)
    return _compare_order(question, words, filled, strands)


def find_strands(chain: Chain) -> list[Strand]:
    """Return the strands of a chain, from each constant to the last of its unknowns, in the order of the unknowns."""
    root: dict[int, str] = {}
    used: set[int] = set()
    for triple in chain.triples:
        numbers = triple.head.unknowns
        head = root.get(numbers[0], "") if numbers else str(triple.head)
        number = triple.tail.unknown
        if number is not None and head:
            root.setdefault(number, head)
        used.update(numbers)
    return [Strand(constant, number) for number, constant in sorted(root.items()) if number not in used]


def _count_values(question: str, filled: FilledChain, number: int) -> DerivedAnswer | None:
    """Return the number of values of an unknown, if the question asks how many and a graph, which has all of them,
    filled it."""
    filling = filled.fillings[number][0]
    is_number = parse_number(filling.candidates[0].value) is not None
    if not _COUNTS.search(question) or filling.source != "kg" or is_number:
        return None
    return DerivedAnswer(str(filling.count), "count", filling.candidates)


def _compare_equality(question: str, filled: FilledChain, strands: list[Strand]) -> DerivedAnswer | None:
    """Return yes or no to a question whether two strands end in the same or in different values."""
    different = _DIFFERENT.search(question)
    if not different and not _SAME.search(question):
        return None
    first, second = (filled.fillings[strand.last_unknown][0] for strand in strands)
    yes = values_agree(first, second) != bool(different)
    return DerivedAnswer("yes" if yes else "no", "same", (first.candidates[0], second.candidates[0]))


def _compare_order(
    question: str, words: str, filled: FilledChain, strands: list[Strand]
) -> DerivedAnswer | None:
    """Return the constant whose strand ends in the lesser or greater value. ``words`` is the question without its
    names."""
    least, most = _LEAST.search(words), _MOST.search(words)
    if (least is None) == (most is None) or _LIVED.search(words):
        return None
    candidates = [filled.fillings[strand.last_unknown][0].candidates[0] for strand in strands]
    order = _order(candidates[0].value, candidates[1].value, by_age=bool(_AGE.search(words)))
    if not order:
        return None
    chosen = strands[0 if (order < 0) == bool(least) else 1].constant
    return DerivedAnswer(_spell_as_asked(chosen, question), "comparison", tuple(candidates))


def _remove_names(names: list[str], question: str) -> str:
    """Return a question without some names: the film "Crime After Crime" says nothing of before and after."""
    for name in names:
        bare = re.sub(r"\s*\([^)]*\)\s*$", "", name)
        pattern = rf"(?<!\w){re.escape(bare)}(?!\w)(?:\s*\([^)]*\))?"
        question = re.sub(pattern, " ", question, flags=re.IGNORECASE)
    return question


def _order(first: str, second: str, by_age: bool) -> int | None:
    """Return -1 if the first value comes before the second, 1 if it comes after; 0 or None if that is not known."""
    dates = parse_date(first), parse_date(second)
    numbers = parse_number(first), parse_number(second)
    are_years = not by_age or all(date and date.year > _MAX_AGE for date in dates)  # "40" is an age
    if dates[0] and dates[1] and are_years:
        return dates[0].compare(dates[1])
    if numbers[0] is None or numbers[1] is None:
        return None
    order = (numbers[0] > numbers[1]) - (numbers[0] < numbers[1])
    return -order if by_age else order


def _spell_as_asked(constant: str, question: str) -> str:
    """Return a constant of the chain in the spelling of the question."""
    bare = re.sub(r"\s*\([^)]*\)\s*$", "", constant)
    for name in (constant, bare):
        match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", question, re.IGNORECASE)
        if match:
            return match.group()
    alignment = fuzz.partial_ratio_alignment(bare.lower(), question.lower(), score_cutoff=_MIN_SPELLING)
    if alignment is None or len(bare) > len(question) or len(question.lower()) != len(question):
        return constant
    start, end = alignment.dest_start, alignment.dest_end
    while start > 0 and question[start - 1].isalnum():
        start -= 1
    while end < len(question) and question[end].isalnum():
        end += 1
    return question[start:end].strip(" ,;:?!")
