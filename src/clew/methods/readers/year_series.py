"""Questions over several years of one line item: which year was highest, the average over them, how it developed.

The line item is looked for in all tables of the document, and in its other editions where one does not have all
years. Nothing is computed unless every year that the question names has a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Literal

from clew.core.text import is_stop_term, query_terms
from clew.methods.readers.calculation import (
    Calculation,
    Operand,
    announced_scale,
    find_operation,
    find_periods,
    format_number,
    item_words,
    number_test,
)
from clew.methods.readers.line_items import LineItem, LineItems
from clew.parse.data_tables import SCALE_NAMES

Kind = Literal[
    "development", "always", "rises", "highest", "average", "median", "sum", "growth", "count", "percent"
]

_YEAR = r"(?:19|20)\d\d"
_BETWEEN = re.compile(
    rf"\b(?:between|from)\s+(?:fiscal |the )?(?:years? )?({_YEAR})"
    rf"\s+(?:and|to|through|until|-)\s+(?:fiscal )?({_YEAR})\b",
    re.IGNORECASE,
)
_SINCE = re.compile(rf"\bsince (?:fiscal )?(?:year )?({_YEAR})\b", re.IGNORECASE)
_NUMBER_OF_YEARS = re.compile(
    r"\b(?:last|past|previous|latest|most recent|all|the) (two|three|four|five|six|\d{1,2})"
    r" (?:fiscal |financial )?years\b",
    re.IGNORECASE,
)
_COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_ALL_YEARS = re.compile(
    r"\bover the years\b|\bover time\b|\b(?:each|every) year\b|\byear (?:over|by|on) year\b", re.I
)
_UP = r"(?:(?:increas|grow|grew|ris|rose|higher|gain|improv|expand)\w*|(?:go|gone|went) up)"
_DOWN = (
    r"(?:(?:decreas|declin|f[ae]ll|drop|lower|reduc|shr[aiu]nk|worsen)\w*|(?:go|gone|went|come|came) down)"
)
_KINDS: tuple[tuple[Kind, str], ...] = (
    ("growth", r"\bcompound(?:ed)? (?:annual )?growth|\bCAGR\b|\baverage annual growth rate\b"),
    ("percent", r"\bby what percent"),
    ("always", rf"^\W*(?:did|has|have|was|were|is|does)\b.*\b(?:{_UP}|{_DOWN})\b.*\b(?:every|each) year\b"
               rf"|^\W*(?:did|has|have)\b.*\b(?:consistently|steadily|continuously|always)\b.*\b(?:{_UP}|{_DOWN})\b"),
    ("count", r"\bhow many\b.*\byears\b|\bin how many years\b|\bnumber of years\b"),
    ("rises", rf"\b(?:which|what)\b.*\byears?\b.*\b(?:did|has|have|was there|had)\b.*\b(?:{_UP}|{_DOWN})\b"),
    ("highest", r"\b(?:which|what)\b.*\byears?\b.*"
                r"\b(?:high|low|larg|small|great|most|least|big|max|min|peak|best|worst|fewest)\w*"),
    ("development", r"\bhow (?:did|has|have|do|does)\b.*"
                    r"\b(?:develop|evolv|chang|progress|mov|trend|gr[eo]w|vary|varied|perform)\w*"
                    r"|\btrends? (?:in|of|for)\b|\b(?:development|evolution|course|trajectory) of\b"
                    r"|\byear (?:over|by|on) year (?:changes?|figures?|values?)\b"),
    ("median", r"\bmedian\b"),
    ("average", r"\b(?:average|mean)\b"),
    ("sum", r"\b(?:sum|total|totals|totaled|combined|cumulative|altogether|add up)\b"),
)  # fmt: skip
_FORMS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS)
#: Questions of these kinds are over years only if nothing else is asked to be computed.
_PLAIN_KINDS = frozenset({"highest", "average", "sum", "count", "median"})
_PLAIN_OPERATIONS = frozenset({"lookup", "sum", "average", "extreme", "count", "periods"})
_LEAST = re.compile(r"\b(?:low|small|least|min|worst|fewest)\w*", re.IGNORECASE)
#: Lines that are printed in parentheses though they are amounts.
_OUTFLOW = re.compile(
    r"\b(?:paid|payments?|purchases?|expenditures?|repurchases?|used|spent|repayments?|expenses?|costs?|provisions?"
    r"|depreciation|amortization|tax|taxes)\b",
    re.IGNORECASE,
)
#: Words of such questions, not of line items.
_NOISE = frozenset(
    query_terms(
        "develop developed development evolve evolved evolution trend trajectory course change changed year years"
        " each every consistently steadily always over time between from through until since last past three four"
        " five six two highest fewest lowest largest smallest greatest most least average mean median sum total"
        " totals combined cumulative up add compound compounded annual growth rate cagr increase increased"
        " increases rise rises rose risen grow grew grown decrease decreased decline declined fall fell fallen"
        " drop dropped peak best worst many number above below million billion thousand than more less fiscal"
        " company company's what which how saw seen see period gone went go come came down percent"
        " percentage"
    )
)
#: The label of a line item has to fit the words of the question so well.
_MIN_FIT = 0.72


@dataclass(frozen=True, slots=True)
class SeriesQuestion:
    """A question over several years: its kind, its ``years`` (ascending; empty for all that there are), the number of
    latest years that it asks for (0 for all), and the ``words`` of the line item."""

    text: str
    kind: Kind
    years: tuple[str, ...]
    latest: int
    words: frozenset[str]


def parse_series_question(text: str) -> SeriesQuestion | None:
    """Return a question over three years or more of a line item, None for any other.

    >>> parse_series_question("In which year from 2019 to 2021 was revenue highest?").years
    ('2019', '2020', '2021')
    """
    kind = next((kind for kind, form in _FORMS if form.search(text)), None)
    if kind is None:
        return None
    years, latest = [period for period in find_periods(text) if len(period) == 4], 0
    if any(period.startswith("q") for period in find_periods(text)) or (
        kind in _PLAIN_KINDS and find_operation(text) not in _PLAIN_OPERATIONS
    ):
        return None
    is_span = kind in {"highest", "rises", "development", "always", "count", "growth"}
    if (match := _BETWEEN.search(text)) and is_span and int(match[1]) < int(match[2]) < int(match[1]) + 12:
        years = [str(year) for year in range(int(match[1]), int(match[2]) + 1)]
    if kind == "percent":
        # Neighbouring years are two columns of one table, which is read as a table.
        if match is None or int(match[2]) - int(match[1]) < 2:
            return None
        years = [match[1], match[2]]
    if match := _NUMBER_OF_YEARS.search(text):
        count = _COUNTS.get(match[1].lower()) or int(match[1])
        latest = 0 if len(years) >= count else count
    is_open = bool(_SINCE.search(text)) or (not years and bool(_ALL_YEARS.search(text)))
    if not latest and not is_open and len(years) < (2 if kind in {"growth", "percent"} else 3):
        return None
    words = (item_words(text) | frozenset(query_terms(text))) - _NOISE
    words = frozenset(word for word in words if not word.isdigit() and not is_stop_term(word))
    words -= frozenset(query_terms(" ".join(years)))
    if not words:
        return None
    if since := _SINCE.search(text):
        years = [since[1]]
    return SeriesQuestion(text, kind, tuple(sorted(set(years))), latest, words)


def answer_series(question: SeriesQuestion, lines: LineItems, context: str = "") -> Calculation | None:
    """Return the answer to a question over several years, None where no line item fits or a year has no number.

    ``context`` is text around the tables that may announce a scale, for tables that have none.
    """
    since = question.years[0] if _SINCE.search(question.text) and question.years else ""
    asked = () if since else question.years
    chosen: tuple[float, LineItem, list[str]] | None = None
    for score, item in lines.find(question.words, question.text):
        if score < _MIN_FIT or (chosen is not None and score < chosen[0] - 1e-6):
            break
        known = lines.years(item)
        years = [year for year in known if not since or year >= since]
        if question.latest:
            years = [year for year in years if not asked or year <= asked[-1]][-question.latest :]
            years = years if len(years) == question.latest else []
        elif asked:
            years = list(asked) if set(asked) <= set(known) else []
        if (
            len(years) > 1
            and (not since or since in years)
            and (chosen is None or len(years) > len(chosen[2]))
        ):
            chosen = score, item, years
    if chosen is None:
        return None
    score, item, years = chosen
    places = [_place(year, lines.same(item)) for year in years]
    units = {place.unit(year) for place, year in zip(places, years, strict=True)}
    operands = [place.operand(year) for place, year in zip(places, years, strict=True)]
    cells = [operand for operand in operands if operand is not None]
    if len(units) > 1 or len(cells) < len(years):
        return None
    unit, scale = units.pop()
    if scale == 1.0 and unit != "%" and all(cell.row.place.scale is None for cell in cells):
        scale = announced_scale(context)
    return _compute(question, item, years, cells, (unit, scale), score)


def _place(year: str, items: Sequence[LineItem]) -> LineItem:
    return next(item for item in items if item.operand(year) is not None)


def _compute(
    question: SeriesQuestion,
    item: LineItem,
    years: Sequence[str],
    cells: Sequence[Operand],
    unit: tuple[str, float],
    score: float,
) -> Calculation | None:
    printed = tuple(cells)
    if all((cell.number or 0.0) <= 0 for cell in cells) and _OUTFLOW.search(item.label):
        cells = [replace(cell, number=abs(cell.number or 0.0), text=cell.text.strip("()")) for cell in cells]
    solvers: dict[Kind, Callable[[], tuple[tuple[str, ...], str]]] = {
        "development": lambda: _describe_development(years, cells, unit),
        "always": lambda: _check_always(question.text, years, cells),
        "rises": lambda: _find_rises(question.text, years, cells),
        "highest": lambda: _find_highest(question.text, years, cells),
        "average": lambda: _total(cells, unit, len(cells)),
        "median": lambda: _median(cells, unit),
        "sum": lambda: _total(cells, unit, 1),
        "growth": lambda: _compound_growth(years, cells),
        "count": lambda: _count(question.text, years, cells, unit),
        "percent": lambda: _percent_change(cells, unit),
    }
    values, formula = solvers[question.kind]()
    if not values or (question.kind == "sum" and unit[0] == "%"):
        return None
    scale = unit[1] if question.kind in {"average", "median", "sum"} else 1.0
    return Calculation("series", item.table, values, printed, formula, unit[0], scale, min(score, 1.0))


def _find_highest(text: str, years: Sequence[str], cells: Sequence[Operand]) -> tuple[tuple[str, ...], str]:
    least = bool(_LEAST.search(text))
    ordered = sorted(zip(years, cells, strict=True), key=lambda pair: -(pair[1].number or 0.0))
    best = ordered[-1 if least else 0][1].number
    chosen = tuple(year for year, cell in sorted(ordered, key=lambda pair: pair[0]) if cell.number == best)
    return chosen, " > ".join(f"{cell.text} ({year})" for year, cell in ordered)


def _describe_development(
    years: Sequence[str], cells: Sequence[Operand], unit: tuple[str, float]
) -> tuple[tuple[str, ...], str]:
    word = SCALE_NAMES.get(unit[1], "")
    values = [
        f"{year}: {cell.text}{' ' + word if word else ''}" for year, cell in zip(years, cells, strict=True)
    ]
    steps = _steps(cells)
    course = (
        "rose and fell"
        if min(steps) < 0 < max(steps)
        else "did not fall"
        if max(steps) > 0
        else "did not rise"
    )
    if min(steps) > 0 or max(steps) < 0:
        course = "rose each year" if min(steps) > 0 else "fell each year"
    parts = [cells[0].text]
    for before, after in pairwise(cells):
        parts.append(f"{after.text}{_describe_step(before, after, unit[0])}")
    return (*values, course), " -> ".join(parts)


def _describe_step(before: Operand, after: Operand, unit: str) -> str:
    change = (after.number or 0.0) - (before.number or 0.0)
    if unit == "%":
        return f" ({change:+.2f} points)"
    if not before.number or before.number < 0 or (after.number or 0.0) < 0:
        return ""
    return f" ({100 * change / before.number:+.2f}%)"


def _steps(cells: Sequence[Operand]) -> list[float]:
    numbers = [cell.number or 0.0 for cell in cells]
    if max(numbers) < 0 or (max(numbers) <= 0 and min(numbers) < 0):
        # A payment of (30) after one of (20) rose.
        numbers = [-number for number in numbers]
    return [after - before for before, after in pairwise(numbers)]


def _check_always(text: str, years: Sequence[str], cells: Sequence[Operand]) -> tuple[tuple[str, ...], str]:
    is_up = re.search(rf"\b{_UP}", text, re.IGNORECASE) is not None
    steps = _steps(cells)
    is_true = min(steps) > 0 if is_up else max(steps) < 0
    shown = " -> ".join(f"{cell.text} ({year})" for year, cell in zip(years, cells, strict=True))
    return ("Yes" if is_true else "No",), shown


def _find_rises(text: str, years: Sequence[str], cells: Sequence[Operand]) -> tuple[tuple[str, ...], str]:
    is_up = re.search(rf"\b{_UP}", text, re.IGNORECASE) is not None
    steps = list(zip(years[1:], _steps(cells), strict=True))
    if re.search(r"\b(?:most|largest|biggest|strongest|fastest)\b", text, re.IGNORECASE):
        best = max(steps, key=lambda step: step[1] if is_up else -step[1])
        chosen: tuple[str, ...] = (best[0],)
    else:
        chosen = tuple(year for year, step in steps if (step > 0 if is_up else step < 0))
    shown = " -> ".join(f"{cell.text} ({year})" for year, cell in zip(years, cells, strict=True))
    return chosen or ("none of these years",), shown


def _total(cells: Sequence[Operand], unit: tuple[str, float], parts: int) -> tuple[tuple[str, ...], str]:
    """Return the sum of cells divided by ``parts``, and its formula."""
    value = sum(cell.number or 0.0 for cell in cells) / parts
    text = format_number(value) + ("%" if unit[0] == "%" else "")
    joined = " + ".join(cell.text for cell in cells)
    return (text,), f"({joined}) / {parts} = {text}" if parts > 1 else f"{joined} = {text}"


def _median(cells: Sequence[Operand], unit: tuple[str, float]) -> tuple[tuple[str, ...], str]:
    text = format_number(median(cell.number or 0.0 for cell in cells)) + ("%" if unit[0] == "%" else "")
    return (text,), f"median of {', '.join(cell.text for cell in cells)} = {text}"


def _compound_growth(years: Sequence[str], cells: Sequence[Operand]) -> tuple[tuple[str, ...], str]:
    first, last = cells[0].number or 0.0, cells[-1].number or 0.0
    span = int(years[-1]) - int(years[0])
    if first <= 0 or last <= 0:
        return (), ""
    text = f"{format_number(100 * ((last / first) ** (1 / span) - 1))}%"
    return (text,), f"({cells[-1].text} / {cells[0].text}) ^ (1/{span}) - 1 = {text}"


def _percent_change(cells: Sequence[Operand], unit: tuple[str, float]) -> tuple[tuple[str, ...], str]:
    first, last = cells[0].number or 0.0, cells[-1].number or 0.0
    if first <= 0 or unit[0] == "%":
        return (), ""
    text = f"{format_number(100 * (last - first) / first)}%"
    return (text,), f"({cells[-1].text} - {cells[0].text}) / {cells[0].text} = {text}"


def _count(
    text: str, years: Sequence[str], cells: Sequence[Operand], unit: tuple[str, float]
) -> tuple[tuple[str, ...], str]:
    test = number_test(text, unit[1])
    if test is None:
        return (), ""
    chosen = [
        f"{year}: {cell.text}" for year, cell in zip(years, cells, strict=True) if test(cell.number or 0.0)
    ]
    return (str(len(chosen)),), f"count of {', '.join(chosen)}"
