"""Values as people write them, dates, numbers and names: parsed, compared, and put in the order that a question asks.

:func:`settle_values` and :func:`settle_count` give the answer that follows from values: earlier or later, more or
less, the same or not, how much more, how many, yes or no. The endings of chains, the answers composed from several
readings and those computed from the cells of tables are all settled here.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clew.core.cell_values import read_cell
from clew.core.text import fold_name, normalise_name, strip_qualifier
from clew.core.types import HEADERS_UNCERTAIN, ROW, Node

MONTHS = "january february march april may june july august september october november december".split()
_MONTH_NUMBERS = {name[:3]: number for number, name in enumerate(MONTHS, 1)}
#: A pattern for the name of a month, in full or short. The full stop after a short name is not in it.
MONTH_PATTERN = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_NAMED = rf"(?P<month>{MONTH_PATTERN})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{1,4})(?P<era>\s*(?:bc|bce)\b)?"
_ABOUT = r"(?:c\.|ca\.?|circa|about|around)?\s*"
_DATES = [
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?P<year>-?\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?:T.*)?(?P<era>)",
        rf"{_ABOUT}{_DAY}\s+(?:of\s+)?{_NAMED},?\s+{_YEAR}",
        rf"{_ABOUT}{_NAMED}\s+{_DAY},?\s+{_YEAR}",
        rf"{_ABOUT}{_NAMED},?\s+{_YEAR}",
        rf"{_ABOUT}{_YEAR}",
    )
]
_SCALE = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6, "bn": 1e9}
_NUMBER = re.compile(
    r"(?P<sign>[^\d.,+-]{0,4}?)(?P<digits>[+-]?\d[\d,]*(?:\.\d+)?)(?P<close>\))?\s*(?P<scale>[a-z]+)?(?!\w)",
    re.IGNORECASE,
)
_WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}


def month_number(name: str) -> int:
    """Return 1 to 12 for a name that begins as a month does, 0 for another.

    >>> month_number("Sept"), month_number("marching"), month_number("spring")
    (9, 3, 0)
    """
    return _MONTH_NUMBERS.get(name[:3].lower(), 0)


@dataclass(frozen=True, slots=True)
class Date:
    """A date. An unknown month or day is 0; years before Christ are negative."""

    year: int
    month: int = 0
    day: int = 0

    def compare(self, other: Date) -> int | None:
        """Return -1 if this date is earlier, 0 if it is the same day, 1 if it is later, None if that is not known."""
        own, others = (self.year, self.month, self.day), (other.year, other.month, other.day)
        for own_part, other_part in zip(own, others, strict=True):
            if not own_part or not other_part:
                return None
            if own_part != other_part:
                return -1 if own_part < other_part else 1
        return 0


def parse_date(text: str) -> Date | None:
    """Return the date that a text consists of, or None.

    >>> parse_date("March 1, 1963"), parse_date("c. 44 BC"), parse_date("Lima")
    (Date(year=1963, month=3, day=1), Date(year=-44, month=0, day=0), None)
    """
    for pattern in _DATES:
        match = pattern.fullmatch(text.strip().rstrip("."))
        if match is None:
            continue
        parts = match.groupdict()
        name = parts.get("month") or "0"
        month = int(name) if name.isdigit() else month_number(name)
        day = int(parts.get("day") or 0)
        year = -int(parts["year"]) if parts["era"] else int(parts["year"])
        return Date(year, month, day) if month <= 12 and day <= 31 else None
    return None


_ISO_DATE = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?!\d)")
_PDF_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?")
_DAY_FIRST = re.compile(r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})")
_DATE_IN_WORDS = re.compile(
    r"(?:(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+)?(?P<month>[A-Za-z]{3,9})\.?\s+"
    r"(?:(?P<second>\d{1,2})(?:st|nd|rd|th)?,?\s+)?(?P<year>\d{4})"
)


def read_date(text: str) -> str:
    """Return a date as 2021-03-05, 2021-03 or 2021, "" where none can be read.

    >>> read_date("5 March 2021"), read_date("05.03.2021"), read_date("2021-03-05T10:00"), read_date("2021-13")
    ('2021-03-05', '2021-03-05', '2021-03-05', '2021')
    """
    if text.startswith("D:") or re.fullmatch(r"\d{8}(?:\d{6})?", text):
        match = _PDF_DATE.match(text)
        return _join_date(*match.groups()) if match else ""
    if match := _ISO_DATE.match(text):
        return _join_date(*match.groups())
    if match := _DAY_FIRST.match(text):
        return _join_date(match[3], match[2], match[1])
    if (match := _DATE_IN_WORDS.search(text)) and (month := month_number(match["month"])):
        return _join_date(match["year"], str(month), match["day"] or match["second"])
    return ""


def _join_date(year: str, month: str | None = None, day: str | None = None) -> str:
    """Return as much of a date as exists: 2021-02 for 31 February."""
    if not 1000 <= int(year) <= 2999:
        return ""
    if not month or not 1 <= int(month) <= 12:
        return year
    try:
        return datetime.date(int(year), int(month), int(day or "")).isoformat()
    except ValueError:
        return f"{year}-{int(month):02}"


_MONTH_NAME = rf"{MONTH_PATTERN}\.?"
_ORDINAL_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATES_WITHIN = re.compile(
    rf"(?<![\w.,/-])(?:\d{{4}}-\d{{2}}-\d{{2}}(?![\w-])|{_ORDINAL_DAY}\s+(?:of\s+)?{_MONTH_NAME},?\s+\d{{4}}\b"
    rf"|{_MONTH_NAME}\s+(?:{_ORDINAL_DAY},?\s+)?\d{{4}}\b)|(?P<bare>(?<![\w$€£.,])(?:FY)?(?:1\d|20)\d{{2}}\b)",
    re.IGNORECASE,
)
#: What stands before and behind a number that is a year and no amount.
_BEFORE_YEAR = re.compile(
    r"(?:^|[(\[]|\d[-–]|\b(?:in|since|until|till|from|by|of|to|and|or|during|between|before|after|fiscal|year|around|late"
    r"|early|through|FY|spring|summer|autumn|winter),?\s)$",
    re.IGNORECASE,
)
_BEHIND_YEAR = re.compile(
    r"[.,/]\d|-?%|\s*(?:feet|foot|metres|meters|tons?|miles|per\s?cent|shares|people|persons|dollars|pounds|men)\b"
)

#: A range, the end of a bracket or a cell, and the colon behind the name of a column.
_ENDS_YEAR = re.compile(r"[-–]\d{2}(?:\d{2})?\b|:\s|[);]|$")


def find_dates(text: str) -> list[tuple[Date, int, int]]:
    """Return the dates within a text, each with its start and end, in order. A bare year counts behind a word that
    dates have before them, as an end of a range, or as the name of a column: "1950 tons" is none.

    >>> find_dates("She sailed on 3 May 1919 and again in 1921 with 1950 tons.")
    [(Date(year=1919, month=5, day=3), 14, 24), (Date(year=1921, month=0, day=0), 38, 42)]
    """
    dates = []
    for match in _DATES_WITHIN.finditer(text):
        written = match.group()
        if match["bare"]:
            before, behind = text[max(0, match.start() - 12) : match.start()], text[match.end() :]
            stands_alone = _ENDS_YEAR.match(behind) or _BEFORE_YEAR.search(before)
            if not stands_alone or _BEHIND_YEAR.match(behind):
                continue
            written = written[-4:]
        if (date := parse_date(written)) is not None:
            dates.append((date, *match.span()))
    return dates


def parse_number(text: str) -> float | None:
    """Return the number that a text begins with, or None; one in parentheses is negative, as in statements.

    >>> parse_number("$1,250.5"), parse_number("3.2 million people"), parse_number("two"), parse_number("Lima")
    (1250.5, 3200000.0, 2.0, None)
    >>> parse_number("$(95) million")
    -95000000.0
    """
    text = text.strip()
    if text.lower() in _WORDS:
        return float(_WORDS[text.lower()])
    match = _NUMBER.match(text)
    if match is None:
        return None
    sign = -1.0 if "(" in match["sign"] and match["close"] else 1.0
    return sign * float(match["digits"].replace(",", "")) * _SCALE.get((match["scale"] or "").lower(), 1.0)


_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")


def has_certain_support(text: str, cited: Sequence[Node], nodes: Sequence[Node]) -> bool:
    """Return whether each number of an answer stands in a node other than the row of a table with uncertain headers.

    In such a row it is not known what a number is of. ``cited`` are the nodes that the answer is quoted from,
    ``nodes`` all that were read. An answer that is quoted from other nodes, or has no numbers, needs no more support.
    """
    numbers = _DIGITS.findall(text)
    if not numbers or not any(_is_uncertain(node) for node in cited):
        return True
    certain = {
        number
        for node in (*cited, *nodes)
        if not _is_uncertain(node)
        for number in _DIGITS.findall(node.text)
    }
    return certain.issuperset(numbers)


def _is_uncertain(node: Node) -> bool:
    return node.kind == ROW and HEADERS_UNCERTAIN in node.text


def same_value(first: str, second: str) -> bool:
    """Return whether two values say the same: equal names, one within the other, dates that do not contradict, or
    equal numbers.

    >>> same_value("André Berthomieu", "Andre Berthomieu"), same_value("10 April 1960", "1960"), same_value("3", "4")
    (True, True, False)
    """
    names = _normalise(first), _normalise(second)
    if names[0] == names[1]:
        return True
    dates = parse_date(first), parse_date(second)
    if dates[0] and dates[1]:
        return dates[0].year == dates[1].year and dates[0].compare(dates[1]) in {0, None}
    numbers = parse_number(first), parse_number(second)
    if numbers[0] is not None and numbers[1] is not None:
        return numbers[0] == numbers[1]
    shorter, longer = sorted((f" {name} " for name in names), key=len)
    return bool(shorter.strip()) and shorter in longer


def mentions_name(name: str, text: str) -> bool:
    """Return whether a text mentions a name, in any case, with or without the words in brackets after it."""
    words = f" {_normalise(text)} "
    bare = strip_qualifier(name)
    return any(f" {_normalise(form)} " in words for form in (name, bare) if form.strip())


def _normalise(name: str) -> str:
    return normalise_name(fold_name(name))


POLAR = re.compile(
    r"^\W*(?:am|are|is|was|were|did|do|does|has|have|had|can|could|may|might|must|shall|should|will|would)\b(?!\s+\d)",
    re.IGNORECASE,
)
EITHER = re.compile(r"\bor\b", re.IGNORECASE)
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
#: A number of years above this is a year, not an age.
_MAX_AGE = 150


def remove_names(names: list[str], question: str) -> str:
    """Return a question without some names: the film "Crime After Crime" says nothing of before and after."""
    for name in names:
        bare = strip_qualifier(name)
        pattern = rf"(?<!\w){re.escape(bare)}(?!\w)(?:\s*\([^)]*\))?"
        question = re.sub(pattern, " ", question, flags=re.IGNORECASE)
    return question


def choose_by_order(words: str, first: str, second: str) -> int | None:
    """Return 0 or 1 for the value that a question asks for ("first", "more"), None where it does not follow.

    ``words`` is the question without its names.

    >>> choose_by_order("Who was born first,  or ?", "2 May 1901", "1899")
    1
    """
    least, most = _LEAST.search(words), _MOST.search(words)
    if (least is None) == (most is None) or _LIVED.search(words):
        return None
    order = _order_values(first, second, by_age=bool(_AGE.search(words)))
    if not order:
        return None
    return 0 if (order < 0) == bool(least) else 1


def asks_for_equality(question: str) -> bool | None:
    """Return True for a question whether two things are the same, False for whether they differ, None for others."""
    if _DIFFERENT.search(question):
        return False
    return True if _SAME.search(question) else None


def _order_values(first: str, second: str, by_age: bool) -> int | None:
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


#: Adjectives of countries that do not begin like the country, and other names of the same country.
_DEMONYMS = {
    "american": "united states", "us": "united states", "usa": "united states", "u s": "united states",
    "united states of america": "united states", "british": "united kingdom", "uk": "united kingdom",
    "english": "england", "scottish": "scotland", "welsh": "wales", "french": "france", "dutch": "netherlands",
    "danish": "denmark", "swiss": "switzerland", "greek": "greece", "turkish": "turkey", "spanish": "spain",
    "polish": "poland", "finnish": "finland", "swedish": "sweden", "irish": "ireland", "chinese": "china",
    "filipino": "philippines", "philippine": "philippines", "thai": "thailand", "czech": "czech republic",
    "soviet": "soviet union", "emirati": "united arab emirates", "burmese": "myanmar", "icelandic": "iceland",
}  # fmt: skip
#: A country and its adjective begin with as many equal letters: Peru and Peruvian, Iran and Iranian.
_SHARED_LETTERS = 4


def same_place(first: str, second: str) -> bool:
    """Return whether two names stand for the same country, one of them perhaps as an adjective.

    >>> same_place("an American", "United States"), same_place("Peruvian", "Peru"), same_place("Iran", "Iraq")
    (True, True, False)
    """
    names = [_DEMONYMS.get(name, name) for name in (_normalise(first), _normalise(second))]
    if names[0] == names[1]:
        return True
    shorter, longer = sorted(names, key=len)
    return len(shorter) >= _SHARED_LETTERS and longer.startswith(
        shorter[: max(_SHARED_LETTERS, len(shorter) - 1)]
    )


def subtract_values(first: str, second: str) -> str:
    """Return the second amount minus the first, written as both are; "" where they cannot be subtracted.

    Amounts in parentheses are negative, as in accounts. Two dates are years apart.

    >>> subtract_values("$14,544", "$14,694"), subtract_values("26.9%", "15.4%"), subtract_values("1.2 billion", "3")
    ('$150', '-11.5%', '')
    >>> subtract_values("3 May 1901", "2 May 1950"), subtract_values("1901", "May 1950")
    ('48', '49')
    """
    dates = parse_date(first), parse_date(second)
    if dates[0] and dates[1] and min(dates[0].year, dates[1].year) > _MAX_AGE:
        return str(_years_between(dates[0], dates[1]))
    amounts = read_cell(first), read_cell(second)
    if amounts[0].number is None or amounts[1].number is None:
        return ""
    if (amounts[0].unit, amounts[0].scale) != (amounts[1].unit, amounts[1].scale):
        return ""
    decimals = max(len(value.text.partition(".")[2].strip(" )%").split(" ")[0]) for value in amounts)
    change = amounts[1].number - amounts[0].number
    unit = amounts[0].unit
    before, after = (unit, "") if unit in _CURRENCIES else ("", unit if unit in {"", "%"} else f" {unit}")
    scale = next((f" {word}" for word, factor in _SCALE_WORDS if factor == amounts[0].scale), "")
    sign = "-" if round(change, decimals) < 0 else ""
    return f"{sign}{before}{abs(change):,.{decimals}f}{scale}{after}"


_CURRENCIES = frozenset("$€£¥₹")
_SCALE_WORDS = (("thousand", 1e3), ("million", 1e6), ("billion", 1e9), ("trillion", 1e12))


def _years_between(first: Date, second: Date) -> int:
    """Return the whole years from one date to the other; of dates without a day the difference of the years."""
    years = second.year - first.year
    if first.day and second.day:
        later, earlier = (second, first) if years > 0 else (first, second)
        is_short = (later.month, later.day) < (earlier.month, earlier.day)
        years -= (years > 0) - (years < 0) if is_short else 0
    return years


@dataclass(frozen=True, slots=True)
class SettledAnswer:
    """An answer that follows from values, and the rule that gave it. ``side`` is the number, from 0, of the thing
    that was chosen, None where the answer is no choice between things."""

    text: str
    rule: Literal["comparison", "same", "difference", "count"]
    side: int | None = None


#: Questions for a difference; what else asks "how many" asks for a count.
_DIFFERENCE = re.compile(
    r"\bwhat (?:was|is) the (?:change|difference|increase|decrease|growth)\b"
    r"|\bhow (?:much|many (?:\w+ ){0,2}?)\s*(?:more|fewer|less|older|younger|earlier|later|taller|longer|larger"
    r"|higher|bigger|shorter|smaller)\b"
    r"|\bhow much (?:did|has|have)\b.*\b(?:chang|gr[eo]w|increas|decreas|declin|f[ae]ll|r[io]s[ei]|drop)\w*",
    re.IGNORECASE,
)
_THAN = re.compile(r"\bthan\b", re.IGNORECASE)
_COUNT = re.compile(r"^\W*how many\b|\bnumber of\b", re.IGNORECASE)
_CALENDAR_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def settle_values(
    question: str, names: tuple[str, str], values: tuple[Sequence[str], Sequence[str]]
) -> SettledAnswer | None:
    """Return the answer that follows from the values of two things, None where none does.

    ``values`` are those of each thing, best first; which is more, and by how much, depends on the best alone.

    >>> settle_values("Who was born first, Ada or Bo?", ("Ada", "Bo"), (["2 May 1901"], ["1899"])).text
    'Bo'
    >>> settle_values("Is Ada older than Bo?", ("Ada", "Bo"), (["1901"], ["1899"])).text
    'no'
    >>> settle_values("How many years older is Bo than Ada?", ("Bo", "Ada"), (["1899"], ["1901"])).text
    '2'
    """
    words = remove_names(list(names), question)
    first, second = values[0][0], values[1][0]
    if _DIFFERENCE.search(words):
        difference = subtract_values(first, second)
        if not all(_CALENDAR_YEAR.search(name) for name in names):
            difference = difference.removeprefix(
                "-"
            )  # only what changed from one year to the other has a sign
        return SettledAnswer(difference, "difference") if difference else None
    if POLAR.search(question) and not EITHER.search(words):
        return _settle_polar(question, words, names, values)
    choice = choose_by_order(words, first, second)
    return None if choice is None else SettledAnswer(names[choice], "comparison", choice)


def _settle_polar(
    question: str, words: str, names: tuple[str, str], values: tuple[Sequence[str], Sequence[str]]
) -> SettledAnswer | None:
    """Return yes or no: whether values are the same, whether one is more than the other."""
    first, second = values[0][0], values[1][0]
    equality = asks_for_equality(words)
    if equality is not None:
        is_same = any(same_value(a, b) or same_place(a, b) for a in values[0] for b in values[1])
        return SettledAnswer("yes" if is_same == equality else "no", "same")
    if _THAN.search(words):
        places = [question.casefold().find(name.casefold()) for name in names]
        choice = choose_by_order(words, first, second)
        if choice is None or min(places) < 0:
            return None
        return SettledAnswer("yes" if choice == (places[0] > places[1]) else "no", "comparison")
    return None


def settle_count(question: str, values: Sequence[str], count: int) -> SettledAnswer | None:
    """Return the number of values, if a question asks how many and they are not numbers themselves.

    ``count`` is how many there are in all, ``values`` at least the first of them.
    """
    if not _COUNT.search(question) or parse_number(values[0]) is not None:
        return None
    return SettledAnswer(str(count), "count")
