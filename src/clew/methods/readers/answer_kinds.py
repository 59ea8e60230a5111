"""Kinds of answers: which one a question asks for, which texts have an answer of it, and which cannot answer at all.

:func:`expected_kind` and :func:`contains_answer` help to choose between texts; a question that the rules do not know
expects ``any``, which costs precision, never an answer. :func:`is_impossible` looks at the words of an answer of a
table. All rules are for English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from clew.core.text import candidate_names, query_terms
from clew.core.values import MONTH_PATTERN, parse_date

AnswerKind = Literal["person", "place", "date", "amount", "name", "reason", "any"]

#: Enough of a date to see that a text has one: a year from 1000 to 2099, a day of a month, a time, a fiscal year.
_DATE = re.compile(
    rf"\b(?:1[0-9]\d\d|20\d\d)\b|\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{MONTH_PATTERN}\b|\b{MONTH_PATTERN}\s+\d{{1,2}}\b"
    rf"|\b\d\d?:\d\d\b|\b(?:FY|Q[1-4])\s?\d\d",
    re.IGNORECASE,
)
#: A month with its day and year, as far as they are given: a date, and no count of things.
_DATE_BY_MONTH = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?)?{MONTH_PATTERN}\b\.?(?:\s+\d{{1,2}}(?:st|nd|rd|th)?\b)?(?:,?\s+\d{{4}})?",
    re.IGNORECASE,
)
#: All of a date, from its day to its year, as it is given for an answer.
_WHOLE_DATE = re.compile(rf"{_DATE_BY_MONTH.pattern}|\b(?:1[0-9]\d\d|20\d\d)\b", re.IGNORECASE)
#: Words that join two names and are part of neither.
_BETWEEN = re.compile(r"\s(?:in|and|for|on|at|to|by)\s")
_WORDS = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand"
    r"|million|half|dozen|twice|both|none|nil)"
)
_AMOUNT = re.compile(rf"[$€£¥]\s?\d|\d[\d,.]*\s?%|\b\d[\d,]*(?:\.\d+)?\b|\b{_WORDS}\b", re.IGNORECASE)
_REASON = re.compile(
    r"\b(?:because|since|due to|so that|in order to|caused|reason|owing to|as a result|led to)\b", re.I
)
#: A place stands behind such a word and begins with a capital.
_PLACED = re.compile(r"\b(?:in|at|near|from|to|on|of|off|above|below|between)\s+(?:the\s+)?[A-Z]")
#: Words of a question and the kind of answer that they ask for. The first pattern that matches counts.
_ASKS: tuple[tuple[re.Pattern[str], AnswerKind], ...] = (
    (
        re.compile(
            r"\bhow (?:many|much|long|far|tall|high|deep|wide|thick|old|large|big|heavy|fast|often)\b"
            r"|\b(?:what|which) (?:\w+ ){0,5}?(?:number|amount|percentage|percent|share|rate|ratio|price|cost|total"
            r"|height|length|depth|width|size|value|sum|weight|distance|temperature|margin|population)\b"
        ),
        "amount",
    ),
    (re.compile(r"\b(?:what|which) (?:year|date|day|month|century|decade|time)\b|\bwhen\b"), "date"),
    (re.compile(r"\bwho(?:m|se)?\b"), "person"),
    (
        re.compile(
            r"\bwhere\b|\b(?:what|which) (?:\w+ )?(?:city|town|country|place|state|village|river|street)\b"
        ),
        "place",
    ),
    (re.compile(r"\bwhy\b"), "reason"),
    (re.compile(r"\bwhich\b|\bwhat(?: is|'s| was)? the name\b"), "name"),
)


def expected_kind(question: str) -> AnswerKind:
    """Return the kind of answer that ``question`` expects.

    >>> expected_kind("How much did the bridge cost?"), expected_kind("In which year was it built?")
    ('amount', 'date')
    """
    folded = " ".join(question.casefold().split())
    return next((kind for pattern, kind in _ASKS if pattern.search(folded)), "any")


def contains_answer(kind: AnswerKind, text: str, question: str) -> bool:
    """Return whether ``text`` has an answer of ``kind`` that is not in the question itself."""
    return next(_answers(kind, text, question), None) is not None


def _answers(kind: AnswerKind, text: str, question: str) -> Iterator[str]:
    """Yield the possible answers of a kind that are not in the question."""
    folded = question.casefold()
    if kind == "any":
        return
    if kind in {"date", "amount"}:
        pattern = _DATE if kind == "date" else _AMOUNT
        matches = (match.group() for match in pattern.finditer(text))
        yield from (words for words in matches if words.casefold() not in folded)
        return
    if kind == "reason":
        yield from _REASON.findall(text)
        return
    if kind == "place" and not _PLACED.search(text):
        return
    for name, start, end in candidate_names(text):
        # The first word of a sentence is capitalised whatever it is.
        if name not in folded and not name[0].isdigit() and (start > 0 or " " in text[start:end]):
            yield name


def answer_spans(kind: AnswerKind, text: str) -> Iterator[tuple[int, int]]:
    """Yield the character ranges of possible answers of ``kind`` in ``text``.

    A date is one range with its day and month, an amount with the sign of its unit. For all other kinds they are
    names: whole ones ("University of Ohio"), but not two names joined by words such as "in" or "and".
    """
    if kind in {"date", "amount"}:
        pattern = _WHOLE_DATE if kind == "date" else _AMOUNT
        yield from (match.span() for match in pattern.finditer(text))
        return
    names = [
        (start, end)
        for name, start, end in candidate_names(text)
        if not name[0].isdigit()
        and (start > 0 or " " in text[start:end])
        and not _BETWEEN.search(text[start:end])
    ]
    last_end = -1
    for start, end in sorted(names, key=lambda span: (span[0], -span[1])):
        if end > last_end:  # not within the name before
            yield start, end
            last_end = end


#: Words that name nothing, alone or together.
_EMPTY_WORDS = frozenset(
    "a an the this that these those our its his her their my your it they he she we us i you who which what other "
    "another such same all any each both either some of in on at to and or for by with as is was are were be".split()
)
#: Those of them that name nothing at the beginning of a sentence either; "It", "Us" and "The Who" are also names.
_PRONOUNS = frozenset("i she he they we our their his my its your".split())
_WORD = re.compile(r"[^\W\d_]+")
_COUNT = re.compile(r"\bhow many\b")
#: Units of a question in which it counts: "how many percent" is answered by a percentage.
_UNIT = re.compile(r"%|percent|dollar|euro|pound|[mb]illion|thousand")
_DAY = re.compile(r"\b(?:what|which) (?:\w+ )?(?:date|year)\b")
#: Behind "what time" stands a verb: "what time of the year" asks for no time of day.
_TIME = re.compile(r"\b(?:what|which) (?:time|hour) (?:did|does|do|is|was|will|were|are)\b")
_TIME_OF_DAY = re.compile(
    r"\d\s?[:.]\s?\d\d|(?<![a-z])[ap]\.?m\b|o'clock|\b(?:past|to|noon|midday|midnight|morning|evening|afternoon|night|dawn|dusk"
    r"|sunrise|sunset|hours?|minutes?|quarter|half)\b",
    re.IGNORECASE,
)
#: "Who earns more, Ada Pell or Bo Lind?"
_CHOICE = re.compile(r"^(?:who|which|what)\b[^,]*,\s*([^,?]+? or [^,?]+?)\s*\??$")
#: "1928.11" is a number and no date.
_DECIMAL = re.compile(r"\d+\.\d+")
#: Questions for a person or a place; the relation of a chain may end in "built by?".
_NAMES = re.compile(r"^(?:(?:by|to|for|with|from|of|under|after|at|in) )?(?:who|whom|where)\b|\bby\?$")
#: Kinds of things that have names with capitals: of 87 gold answers to questions for such a place none lacks them.
_KIND = re.compile(
    r"(?:\w+ )?which (?:[\w-]+ )?(?:firm|company|corporation|bank|agency|organi[sz]ation|exchange|auditor|person"
    r"|university|college|school|institute|museum|newspaper|club|city|town|village|country|river|street)\b"
)
#: "What did the bridge cost?", "What does the tenant pay a month?"; a price has a digit or the name of money.
_COST = re.compile(
    r"^(?:how much|what) (?:did|do|does|must|shall|should|will|would) .*"
    r"\b(?:(?:cost|earn)\b|pay (?:a|per|each|every) (?:hour|day|week|month|quarter|year|head|ton|share)\b)"
)
_MONEY = re.compile(
    r"\d|[$€£¥]|\b(?:hundreds?|thousands?|[mb]illions?|dollars?|euros?|pounds?|guineas?|shillings?|pence|penny|cents?"
    r"|francs?|money|fortune|nothing)\b",
    re.IGNORECASE,
)
_SCALE_WORD = re.compile(r"\b(?:thousand|[mb]illion|trillion|percent)\b", re.IGNORECASE)
#: A year by itself, as "2021" or "FY 2021", which is no amount.
_CALENDAR_YEAR = re.compile(r"(?:FY ?)?(?:19|20)\d\d", re.IGNORECASE)
#: A percentage, a price and the number of a section are no count of things and no date.
_OTHER_UNIT = re.compile(r"%|percent|[$€£¥]|\b(?:section|note|item|exhibit|article)\b", re.IGNORECASE)
#: A sentence ends within the text: of 35,667 short answers of reading/train.jsonl and dev.jsonl none has that.
_CROSSES_SENTENCES = re.compile(r"(?:[a-z]{4}|\d)[.!?] +[A-Z][a-z]")
_SHORT_ANSWER = 80
_OFFICE_WORDS = frozenset(
    "chief executive financial operating technology accounting commercial information product legal human resources "
    "officer director president vice senior managing general chair chairman chairwoman chairperson treasurer "
    "secretary controller counsel auditor manager member partner principal ceo cfo coo cto board of and the".split()
)


def is_impossible(question: str, text: str) -> bool:
    """Return whether a text cannot answer a question, whatever it says: words that name nothing, a few words of two
    sentences, a question for a count or a date answered without one, a year for an amount, a number for a person or a
    place, something else than what is offered ("Ada Pell or Bo Lind?"), an office for who holds it, "a firm" for
    which firm, words without money for a cost, an amount for a reason.

    >>> is_impossible("How many people work there?", "34.6%"), is_impossible("How many people work there?", "79,000")
    (True, False)
    """
    if _says_nothing(text):
        return True
    has_digit = any(map(str.isdigit, text))
    folded = " ".join(question.casefold().split())
    if _COUNT.search(folded):
        is_other_unit = _OTHER_UNIT.search(text) is not None and _UNIT.search(folded) is None
        return is_other_unit or not contains_answer("amount", _DATE_BY_MONTH.sub(" ", text), "")
    if _DAY.search(folded):
        return (not has_digit and parse_date(text) is None) or _OTHER_UNIT.search(text) is not None
    if _NAMES.search(folded) and _is_date_or_number(text):
        return True
    if folded.startswith("when ") and _DECIMAL.search(text):
        return True
    if folded.startswith("why "):
        return not _WORD.search(_AMOUNT.sub(" ", _SCALE_WORD.sub(" ", text)))
    if choice := _CHOICE.search(folded):
        return set(query_terms(text)).isdisjoint(query_terms(choice[1]))
    if _TIME.search(folded) and _TIME_OF_DAY.search(text) is None:
        # "At 8" is a time, "1912" is none.
        return not has_digit or re.search(r"\d{3}", text) is not None
    if _COST.search(folded) and _MONEY.search(text) is None:
        return True
    if _CALENDAR_YEAR.fullmatch(text.strip(" .")) and expected_kind(question) == "amount":
        return True
    if _KIND.match(folded):
        first = next((word for word in _WORD.findall(text) if word.casefold() not in _EMPTY_WORDS), "")
        return not has_digit and not first[:1].isupper()
    words = {word.casefold() for word in _WORD.findall(text)}
    return folded.startswith("who") and bool(words) and words <= _OFFICE_WORDS


def _says_nothing(text: str) -> bool:
    """Return whether a text answers no question: it names nothing, or is a few words of two sentences."""
    words = {word.casefold() for word in _WORD.findall(text)}
    names_nothing = words <= _EMPTY_WORDS and (text.islower() or words <= _PRONOUNS)
    if names_nothing and not any(map(str.isdigit, text)):
        return True
    return len(text) <= _SHORT_ANSWER and _CROSSES_SENTENCES.search(text) is not None


def _is_date_or_number(text: str) -> bool:
    """Return whether a text is a date or has no letter, and so names no person and no place."""
    return parse_date(text) is not None or not any(character.isalpha() for character in text)


#: What a document calls those whom it is about.
_SELF = frozenset(query_terms("company corporation registrant firm group serve served act acted"))
#: Words for some of what a question asks for, which do not say which.
_VAGUE = frozenset(query_terms("certain various several many numerous different additional following"))
