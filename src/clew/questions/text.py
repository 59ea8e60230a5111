"""The text of a question, read once: its words, the numbers, dates and periods in it."""

from __future__ import annotations

import calendar
import itertools
import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from clew.core.text import is_stop_term, stem
from clew.core.types import STATED_FROM
from clew.core.values import MONTH_PATTERN, find_dates, month_number
from clew.questions.closed_words import AUXILIARIES, BOUNDS, LESS, MORE, NEGATIONS, WHO

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?", re.UNICODE)
_POSSESSIVE = re.compile(r"['’]s?$")
_NUMBER = re.compile(
    r"(?<![\w.])(?:(?<=\b\d-)|(?<=\b\d{2}-)|(?<=\b\d{3}-)|(?<=\b\d{4}-)|(?<!\w-))"
    r"(?:\d{1,3}(?:[.,' ]\d{3}(?!\d))+(?:[.,]\d{1,2}(?!\d))?|\d+(?:\.\d+|,\d{1,2}(?!\d))?)(?![\w]|-[a-z]|[.,]\d)",
    re.IGNORECASE,
)
#: The sign before a number, behind which a currency may stand, and how many characters these are at most.
_SIGN = 5
_BOUND = re.compile(r"([<>]=?|[≤≥])\s?[$€£¥]?\s?$")
_NUMERIC_DATE = re.compile(
    r"(?<!\d)(?:(\d{4})-(\d{1,2})-(\d{1,2})|(\d{1,2})[./](\d{1,2})[./](\d{4})"
    # "09.09.24", but not the section 3.1.12
    r"|(\d{2})[./](\d{2})[./](\d{2}))(?![./]?\d)"
)
#: Number words and ordinals of English, a closed class: units, tens, and what multiplies them.
_NUMBERS = (
    "zero|one once first single|two twice second|three third|four fourth|five fifth|six sixth|seven seventh|"
    "eight eighth|nine ninth|ten tenth|eleven eleventh|twelve twelfth dozen|thirteen thirteenth|"
    "fourteen fourteenth|fifteen fifteenth|sixteen sixteenth|seventeen seventeenth|eighteen eighteenth|"
    "nineteen nineteenth"
)
_UNITS = {word: value for value, words in enumerate(_NUMBERS.split("|")) for word in words.split()}
_TENS = {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
} | {"twentieth": 20, "thirtieth": 30}
_DECADES = {f"{word[:-1]}ies": value for word, value in _TENS.items() if word.endswith("y")}
#: A year of two digits is one of this century.
_CENTURY = 2000
#: The highest probability of an answer without a digit to a question that begins with "when": a place, a person; and
#: of one without a letter to "who". Set by hand, beside the fitted confidence.
MOST_MISFIT = STATED_FROM - 0.01
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question: its text in lower case, its stem, and its place in characters."""

    text: str
    stem: str
    start: int
    end: int

    @property
    def is_content(self) -> bool:
        """Whether it is more than a function word."""
        return not is_stop_term(self.stem)


@dataclass(frozen=True, slots=True)
class Value:
    """A number, or a period of days, that a question gives: ``texts`` are what a plan may compare with, the first day
    and the last for a period; ``start`` and ``end`` are its place in characters."""

    texts: tuple[str, ...]
    start: int
    end: int
    is_date: bool = False


@dataclass(frozen=True)
class QuestionText:
    """A question as it was asked, and what is read off its text alone."""

    text: str

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words in order; a hyphen separates words, an apostrophe with s does too."""
        return tuple(
            Word(written, stem(written), start, start + len(written))
            for written, start in _iterate_words(self.text)
        )

    @cached_property
    def counted(self) -> int | None:
        """The place of the word that says what is counted, behind "how many" or "number of"; None without one: "how
        many times" asks how often."""
        texts = [word.text for word in self.words]
        for place, word in enumerate(self.words[2:], 2):
            # The invoice number of a firm counts no firms.
            is_number = texts[place - 2 : place] == ["number", "of"] and not (
                place > 2 and self.words[place - 3].is_content
            )
            if (is_number or texts[place - 2 : place] == ["how", "many"]) and word.is_content:
                return place if word.text != "times" else None
        return None

    @cached_property
    def counted_words(self) -> str:
        """The words that say what is counted: those up to the verb, where one follows soon ("how many car spaces does
        she have?"), else the first; "" without one."""
        if self.counted is None:
            return ""
        words = self.words[self.counted : self.counted + 4]
        names = list(itertools.takewhile(lambda word: word.is_content, words))
        if len(names) == len(words) or words[len(names)].text not in AUXILIARIES:
            names = names[:1]
        return self.text[names[0].start : names[-1].end]

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """The dates and periods, and the numbers outside them, in order; a year is a number."""
        values = [
            Value((written,), start, end, is_date=True) for written, start, end in _find_days(self.text)
        ]
        values += _find_months(self.words, _places_of(values))
        taken = _places_of(values)
        for match in _NUMBER.finditer(self.text):
            number = _read_number(match.group())
            if math.isfinite(number) and taken.isdisjoint(range(*match.span())):
                values.append(Value((_write_number(number),), *match.span()))
        taken = _places_of(values)
        words = _find_number_words(self.words)
        values += [value for value in words if taken.isdisjoint(range(value.start, value.end))]
        return tuple(sorted(values, key=lambda value: value.start))

    @cached_property
    def value_places(self) -> tuple[frozenset[int], ...]:
        """The places of the words of each of the values."""
        starts = [word.start for word in self.words]
        return tuple(
            frozenset(range(bisect_left(starts, value.start), bisect_left(starts, value.end)))
            for value in self.values
        )

    @cached_property
    def bounds(self) -> tuple[str, ...]:
        """What the words and signs beside each of the values make of it: "<", "<=", ">", ">=", or "" where they bound
        nothing."""
        return tuple(
            self._read_bound(value.start, min(places, default=0), len(places))
            for value, places in zip(self.values, self.value_places, strict=True)
        )

    def _read_bound(self, start: int, first: int, count: int) -> str:
        """Return what bounds the value whose ``count`` words begin with the ``first``."""
        before = [word.text for word in self.words[max(first - 3, 0) : first]]
        behind = [word.text for word in self.words[first + count : first + count + 4]]
        if sign := _BOUND.search(self.text[max(start - _SIGN, 0) : start]):
            return sign[1].replace("≤", "<=").replace("≥", ">=")
        for joint, order in itertools.pairwise(behind):
            if joint in ("or", "and") and order in LESS | MORE:
                return "<=" if order in LESS else ">="
        match before:
            case [*_, "at", "least"]:
                return ">="
            case [*_, "at", "most"] | [*_, "up", "to"]:
                return "<="
            case [*others, order, "than"] if order in LESS | MORE:
                is_denied = bool({"no", "not"} & set(others))
                return ("<" if (order in LESS) != is_denied else ">") + "=" * is_denied
        # "under CHF 500"
        near = (operator for word in before[:-3:-1] for operator, own in BOUNDS.items() if word in own)
        return next(near, "")


def _iterate_words(text: str) -> Iterator[tuple[str, int]]:
    for match in _WORD.finditer(text):
        written = _POSSESSIVE.sub("", match.group().casefold())
        if written:
            yield written, match.start()


def stem_words(text: str) -> tuple[str, ...]:
    """Return the stems of the words of a text, as those of a question have them.

    >>> stem_words("Brakes for the LX-200")
    ('brake', 'for', 'the', 'lx', '200')
    """
    return tuple(stem(written) for written, _ in _iterate_words(text))


def _places_of(values: Iterable[Value]) -> set[int]:
    """Return the places of the characters of values."""
    return {place for value in values for place in range(value.start, value.end)}


def _read_number(written: str) -> float:
    """Return a number of digits. Of a point and a comma the last begins the decimals, and so does a comma that groups
    no three digits."""
    digits = re.sub(r"[' ]", "", written)
    point, comma = digits.rfind("."), digits.rfind(",")
    if comma > point and (point >= 0 or not re.fullmatch(r"\d{1,3}(?:,\d{3})+", digits)):
        return float(digits.replace(".", "").replace(",", "."))
    digits = digits.replace(",", "")
    return float(digits if digits.count(".") < 2 else digits.replace(".", ""))


def _write_number(number: float) -> str:
    return f"{number:.0f}" if number == int(number) else f"{number:.15g}"


def _find_months(words: Sequence[Word], taken: set[int]) -> list[Value]:
    """Return the days and whole months that are written with the name of a month: its neighbours within three words
    are the day and the year."""
    values = []
    for place, word in enumerate(words):
        month = month_number(word.text) if re.fullmatch(MONTH_PATTERN, word.text, re.IGNORECASE) else 0
        if not month or word.start in taken:
            continue
        before, after = words[max(0, place - 3) : place], words[place : place + 5]
        near = (*before, *after)
        # "between March 1928 and June 1929": the year behind a month is its own.
        year = next((each for each in (*after, *before) if re.fullmatch(r"[12]\d{3}", each.text)), None)
        if year is None:
            continue
        numbers = {each: _day_of(each.text) for each in near if each is not year}
        day = next((each for each, number in numbers.items() if 1 <= number <= 31), None)
        last = calendar.monthrange(int(year.text), month)[1]
        start, end = min(word.start, year.start), max(word.end, year.end)
        if day is not None and numbers[day] <= last:
            texts: tuple[str, ...] = (f"{year.text}-{month:02}-{numbers[day]:02}",)
            start, end = min(start, day.start), max(end, day.end)
        else:
            texts = (f"{year.text}-{month:02}-01", f"{year.text}-{month:02}-{last:02}")
        values.append(Value(texts, start, end, is_date=True))
    return values


def _day_of(text: str) -> int:
    digits = re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", text)
    return int(digits[1]) if digits else _UNITS.get(text, _TENS.get(text, 0))


def _find_number_words(words: Sequence[Word]) -> list[Value]:
    """Return the numbers that are written in words ("two hundred and fifty", "nineteen sixty-one") and decades."""
    values: list[Value] = []
    place = 0
    while place < len(words):
        # "the forties", "the eighteen-forties"
        century = _UNITS.get(words[place].text, 0)
        decade = place + (century in range(10, 20))
        if decade < len(words) and words[decade].text in _DECADES:
            first = 100 * (century or 19) + _DECADES[words[decade].text]
            values.append(Value((str(first), str(first + 9)), words[place].start, words[decade].end))
            place = decade + 1
            continue
        last, number = _read_number_words(words, place)
        if last > place:
            values.append(Value((str(number),), words[place].start, words[last - 1].end))
        place = max(last, place + 1)
    return values


def _read_number_words(words: Sequence[Word], first: int) -> tuple[int, int]:
    """Return where the number in words that begins at ``first`` ends, and the number; ``first`` if none does."""
    total = current = 0
    place = last = first
    while place < len(words):
        text = words[place].text
        if (number := _UNITS.get(text, _TENS.get(text))) is not None:
            is_unit = number < 10 and current % 10 == 0 and current % 100 != 10
            if current in range(10, 21) and number >= 10:
                current = current * 100 + number  # "nineteen twelve"
            elif place == first or current % 100 == 0 or is_unit:
                current += number
            else:
                break  # "the first three" are two numbers
        elif text in _SCALES and place > first:
            current *= _SCALES[text]
            if _SCALES[text] >= 1000:
                total, current = total + current, 0
        elif text in _SCALES and place == first and text != "million":
            current = _SCALES[text]
        elif not (text == "and" and last == place and place > first and total + current >= 100):
            break
        place += 1
        last = place if text != "and" else last
    return last, total + current


def _find_days(text: str) -> list[tuple[str, int, int]]:
    """Return the days of a text in ISO form with their places; a numeric date has the day first, where it can."""
    days = [
        (f"{date.year:04}-{date.month:02}-{date.day:02}", start, end)
        for date, start, end in find_dates(text)
        if date.month and date.day
    ]
    taken = {place for _, start, end in days for place in range(start, end)}
    for match in _NUMERIC_DATE.finditer(text):
        if not taken.isdisjoint(range(*match.span())):
            continue
        if match[1]:
            year, month, day = int(match[1]), int(match[2]), int(match[3])
        else:
            day, month, year = (int(part) for part in match.groups()[3:] if part)
            year += _CENTURY if year < 100 else 0
            if month > 12 >= day:
                day, month = month, day
        if 1 <= month <= 12 and 1 <= day <= calendar.monthrange(max(year, 1), month)[1]:
            days.append((f"{year:04}-{month:02}-{day:02}", match.start(), match.end()))
    return days


def has_number(text: str) -> bool:
    """Return whether a text has a number, in digits or in words."""
    words = _WORD.findall(text.casefold())
    return any(word[0].isdigit() or word in _UNITS or word in _TENS for word in words)


def negates(text: str) -> bool:
    """Return whether a text has a word that negates."""
    words = _WORD.findall(text.casefold().replace("’", "'"))
    return any(word in NEGATIONS or word.endswith("n't") for word in words)


def is_misfit(question: QuestionText, values: Sequence[str]) -> bool:
    """Return whether no value is a day or number where "when" is asked, or all are nothing but numbers for "who"."""
    asked = question.words[0].text if question.words else ""
    if asked == "when":
        return not any(re.search(r"\d", value) for value in values)
    return asked in WHO and bool(values) and not any(re.search(r"[^\W\d_]", value) for value in values)
