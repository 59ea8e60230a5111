"""Particulars of a Wikibase, such as Wikidata: properties are nodes, and values are structured.

``wdt:P569`` has a label ("date of birth") only through the property that it is the direct claim of. A date is always
a ``xsd:dateTime`` and a quantity a bare number: its precision (a year) or unit (kilometres) stands at the full value
of the statement (https://www.mediawiki.org/wiki/Wikibase/Indexing/RDF_Dump_Format).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from clew.core.text import iri_label
from clew.store.sparql.mount_options import TYPE, SparqlSource, Term
from clew.store.sparql.name_lookup import split_iris, values_clause

_ONTOLOGY = "http://wikiba.se/ontology#"
#: The property that gives the type of an item of Wikidata.
INSTANCE_OF = "http://www.wikidata.org/prop/direct/P31"
#: The unit of a bare number: the item "1".
_NO_UNIT = "http://www.wikidata.org/entity/Q199"
#: Precisions of times: a day, a month, a year, ten years, a hundred.
_DAY, _MONTH, _YEAR, _DECADE, _CENTURY = 11, 10, 9, 8, 7
_MONTHS = ("January February March April May June July August September October November December").split()
_TIME = re.compile(r"(?P<sign>[+-]?)(?P<year>\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)(?:T.*)?")

#: The way in which people write a value, by node, property and the value as the direct claim has it.
WrittenValues = Mapping[tuple[str, str, str], str | int | float]


def list_properties(source: SparqlSource) -> dict[str, str]:
    """Return the entity of each property by the IRI of its direct claims; none where the source is no Wikibase."""
    listed = source.select(
        f"SELECT ?e ?p WHERE {{ ?e <{TYPE}> <{_ONTOLOGY}Property> ; <{_ONTOLOGY}directClaim> ?p }}"
    )
    return {solution["p"]["value"]: solution["e"]["value"] for solution in listed}


def write_values(
    source: SparqlSource, iris: Iterable[str], find_labels: Callable[[Iterable[str]], Mapping[str, str]]
) -> WrittenValues:
    """Return the times and quantities of nodes as people write them: "3 May 1834", "1834", "102.5 kilometre".

    ``find_labels`` returns the labels of units. A source with direct claims only has none of these.
    """
    solutions: list[Mapping[str, Term]] = []
    for batch in split_iris(list(dict.fromkeys(iris))):
        solutions += source.select(
            f"PREFIX wikibase: <{_ONTOLOGY}> SELECT DISTINCT ?x ?p ?time ?precision ?amount ?unit WHERE {{ "
            f"{values_clause('x', batch)} ?x ?claim ?statement . "
            "?property wikibase:claim ?claim ; wikibase:directClaim ?p ; wikibase:statementValue ?full . "
            "?statement ?full ?value . "
            "{ ?value wikibase:timeValue ?time ; wikibase:timePrecision ?precision } UNION "
            "{ ?value wikibase:quantityAmount ?amount ; wikibase:quantityUnit ?unit } }"
        )
    units = find_labels({solution["unit"]["value"] for solution in solutions if "unit" in solution})
    written: dict[tuple[str, str, str], str | int | float] = {}
    for solution in solutions:
        node, property = solution["x"]["value"], solution["p"]["value"]
        if "time" in solution:
            time = solution["time"]["value"]
            written[node, property, time] = write_time(time, int(solution["precision"]["value"]))
        else:
            amount, unit = solution["amount"]["value"], solution["unit"]["value"]
            label = "" if unit == _NO_UNIT else units.get(unit) or iri_label(unit)
            written[node, property, amount] = write_quantity(amount, label)
    return written


def write_time(time: str, precision: int | None = None) -> str:
    """Return a ``xsd:dateTime`` as people write it, to its precision; unchanged where it is none.

    Without a precision, midnight of 1 January is taken for the year alone: so direct claims write one.

    >>> write_time("1834-05-03T00:00:00Z", 11), write_time("1834-01-01T00:00:00Z"), write_time("1834-01-01", 7)
    ('3 May 1834', '1834', '19th century')
    """
    match = _TIME.fullmatch(time)
    if match is None:
        return time
    month, day = int(match["month"]), int(match["day"])
    if precision is None:
        precision = _YEAR if (month, day) == (1, 1) else _DAY
    # XSD 1.1 has a year 0, which people call 1 BC.
    year = int(match["sign"] + match["year"])
    era, year = ("", year) if year > 0 else (" BC", 1 - year)
    if precision >= _DAY and 1 <= month <= 12 and day:
        return f"{day} {_MONTHS[month - 1]} {year}{era}"
    if precision == _MONTH and 1 <= month <= 12:
        return f"{_MONTHS[month - 1]} {year}{era}"
    if precision == _DECADE:
        return f"{year // 10 * 10}s{era}"
    if precision <= _CENTURY:
        return f"{_ordinal((year + 99) // 100)} century{era}"
    return f"{year}{era}"


def write_quantity(amount: str, unit: str) -> str | int | float:
    """Return an amount as a number, with its unit as text.

    >>> write_quantity("+102.5", "kilometre"), write_quantity("+7000", "")
    ('102.5 kilometre', 7000)
    """
    try:
        value = float(amount)
    except ValueError:
        return f"{amount} {unit}".strip()
    number = int(value) if value.is_integer() and abs(value) < 1e15 else value
    return f"{number:,} {unit}" if unit else number


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
