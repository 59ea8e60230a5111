"""Final answers that follow from what was filled, without asking anyone: comparisons of dates and numbers, yes or no,
and counting.

English questions; whatever is not understood, or not settled by what is known (two years that are equal), is left to
the model, or unanswered where there is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rapidfuzz import fuzz

from clew.methods.chain.unknowns import Candidate, FilledChain, values_agree
from clew.methods.chain.value_matching import Date, parse_date, parse_number
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
#: Of people, older is to be born earlier: of dates the least, of a number of years the most.
_AGE = re.compile(r"\b(?:older|oldest|younger|youngest)\b", re.IGNORECASE)


#: How much alike, of 100, a name in a chain and one in the question are spelled that are the same.
_SPELLED = 80
#: Nobody gets so old, in years.
_AGED = 150


@dataclass(frozen=True, slots=True)
class DerivedAnswer:
    """A final answer: its words, what it follows from, and by which rule."""

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
        return _counted(question, filled, filled.chain.answer)
    last = find_strands(filled.chain)
    if len(last) != 2:
        return _counted(question, filled, last[0].last_unknown) if len(last) == 1 else None
    # "Was Ada or Bo born first?" wants one of the two.
    words = _without([strand.constant for strand in last], question)
    if _BOOLEAN.search(question) and not _EITHER.search(words):
        return _same(question, filled, last)
    return _compared(question, words, filled, last)


def find_strands(chain: Chain) -> list[Strand]:
    """Return the strands of a chain in the order of the question: from each constant to the last of its unknowns."""
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


def _counted(question: str, filled: FilledChain, number: int) -> DerivedAnswer | None:
    """Return how many values the last unknown has, where a graph, which knows all of them, was asked how many."""
    found = filled.fillings[number][0]
    if (
        not _COUNTS.search(question)
        or found.source != "kg"
        or parse_number(found.candidates[0].value) is not None
    ):
        return None
    return DerivedAnswer(str(found.count), "count", found.candidates)


def _same(question: str, filled: FilledChain, last: list[Strand]) -> DerivedAnswer | None:
    one, other = (filled.fillings[strand.last_unknown][0] for strand in last)
    different = _DIFFERENT.search(question)
    if not different and not _SAME.search(question):
        return None
    yes = values_agree(one, other) != bool(different)
    return DerivedAnswer("yes" if yes else "no", "same", (one.candidates[0], other.candidates[0]))


def _compared(question: str, words: str, filled: FilledChain, last: list[Strand]) -> DerivedAnswer | None:
    """Return which strand comes first or last; ``words`` are the question's without what it asks about."""
    least, most = _LEAST.search(words), _MOST.search(words)
    if (least is None) == (most is None) or _LIVED.search(words):
        return None
    candidates = [filled.fillings[strand.last_unknown][0].candidates[0] for strand in last]
    order = _order(candidates[0].value, candidates[1].value, by_age=bool(_AGE.search(words)))
    if not order:
        return None
    chosen = last[0 if (order < 0) == bool(least) else 1].constant
    return DerivedAnswer(_as_asked(chosen, question), "comparison", tuple(candidates))


def _without(names: list[str], question: str) -> str:
    """Return a question without what it asks about: "Crime After Crime" says nothing of before and after."""
    for name in names:
        bare = re.sub(r"\s*\([^)]*\)\s*$", "", name)
        named = rf"(?<!\w){re.escape(bare)}(?!\w)(?:\s*\([^)]*\))?"
        question = re.sub(named, " ", question, flags=re.IGNORECASE)
    return question


def _order(one: str, other: str, by_age: bool) -> int | None:
    """Return -1 where the first comes first, 1 where the second does, 0 or None where that is not known."""
    dates: tuple[Date | None, Date | None] = parse_date(one), parse_date(other)
    numbers = parse_number(one), parse_number(other)
    years = not by_age or all(date and date.year > _AGED for date in dates)  # "40" is an age
    if dates[0] and dates[1] and years:
        return dates[0].compare(dates[1])
    if numbers[0] is None or numbers[1] is None:
        return None
    order = (numbers[0] > numbers[1]) - (numbers[0] < numbers[1])
    return -order if by_age else order


def _as_asked(constant: str, question: str) -> str:
    """Return a constant as the question writes it: what a chain misspells there is spelled as it was asked."""
    bare = re.sub(r"\s*\([^)]*\)\s*$", "", constant)
    for name in (constant, bare):
        found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", question, re.IGNORECASE)
        if found:
            return found.group()
    near = fuzz.partial_ratio_alignment(bare.lower(), question.lower(), score_cutoff=_SPELLED)
    if near is None or len(bare) > len(question) or len(question.lower()) != len(question):
        return constant
    start, end = near.dest_start, near.dest_end
    while start > 0 and question[start - 1].isalnum():
        start -= 1
    while end < len(question) and question[end].isalnum():
        end += 1
    return question[start:end].strip(" ,;:?!")
