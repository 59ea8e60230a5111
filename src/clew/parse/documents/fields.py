"""Fields of documents: what a file says of itself, in one form for all formats.

``author`` (one value for each), ``date`` (2021-03-05, or as much of it as is known), ``tag`` (keywords, categories).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date

AUTHOR, DATE, TAG = "author", "date", "tag"
#: Names under which formats give the fields, in lower case.
_NAMES = {
    "author": AUTHOR,
    "authors": AUTHOR,
    "creator": AUTHOR,
    "from": AUTHOR,
    "date": DATE,
    "created": DATE,
    "creationdate": DATE,
    "creation-date": DATE,
    "published": DATE,
    "article:published_time": DATE,
    "dcterms.created": DATE,
    "dc.creator": AUTHOR,
    "dc.date": DATE,
    "dc.subject": TAG,
    "tag": TAG,
    "tags": TAG,
    "keywords": TAG,
    "keyword": TAG,
    "category": TAG,
    "categories": TAG,
    "subject": TAG,
}
_ISO = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?!\d)")
_PDF = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?")
_DAY_FIRST = re.compile(r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WORDS = re.compile(
    r"(?:(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+)?(?P<month>[A-Za-z]{3,9})\.?\s+"
    r"(?:(?P<second>\d{1,2})(?:st|nd|rd|th)?,?\s+)?(?P<year>\d{4})"
)
_LIST = re.compile(r"\s*[;,|]\s*")
_MAX_LENGTH = 200
#: Authors that are programs or nobody.
_NO_AUTHOR = frozenset("unknown anonymous user admin administrator author python-docx none openpyxl".split())


def field_pairs(stated: Mapping[str, str | Iterable[str]]) -> Iterator[tuple[str, str]]:
    """Yield the fields among what a file states, by the names of its format; other names are left out."""
    for key, value in stated.items():
        if name := _NAMES.get(key.casefold()):
            yield from ((name, text) for text in ([value] if isinstance(value, str) else value))


def normalise_field(name: str, value: str) -> list[str]:
    """Return the values of a field as they are stored; none for a date that cannot be read.

    >>> normalise_field("date", "D:20210305120000Z"), normalise_field("tag", "[lease, draft]")
    (['2021-03-05'], ['lease', 'draft'])
    >>> normalise_field("date", "soon")
    []
    """
    value = " ".join(value.split())
    if name == DATE:
        return [day] if (day := read_date(value)) else []
    values = _LIST.split(value.strip("[]")) if name == TAG else re.split(r"\s*;\s*", value)
    cleaned = [text.strip("\"' ")[:_MAX_LENGTH] for text in values]
    return [text for text in cleaned if text and (name != AUTHOR or text.casefold() not in _NO_AUTHOR)]


def read_date(text: str) -> str:
    """Return a date as 2021-03-05, 2021-03 or 2021, "" where none can be read.

    >>> read_date("5 March 2021"), read_date("05.03.2021"), read_date("2021-03-05T10:00"), read_date("2021-13")
    ('2021-03-05', '2021-03-05', '2021-03-05', '2021')
    """
    if text.startswith("D:") or re.fullmatch(r"\d{8}(?:\d{6})?", text):
        match = _PDF.match(text)
        return _join_date(*match.groups()) if match else ""
    if match := _ISO.match(text):
        return _join_date(*match.groups())
    if match := _DAY_FIRST.match(text):
        return _join_date(match[3], match[2], match[1])
    if (match := _WORDS.search(text)) and match["month"][:3].casefold() in _MONTHS:
        month = str(_MONTHS.index(match["month"][:3].casefold()) + 1)
        return _join_date(match["year"], month, match["day"] or match["second"])
    return ""


def _join_date(year: str, month: str | None = None, day: str | None = None) -> str:
    """Return as much of a date as exists: 2021-02 for 31 February."""
    if not 1000 <= int(year) <= 2999:
        return ""
    if not month or not 1 <= int(month) <= 12:
        return year
    try:
        return date(int(year), int(month), int(day or "")).isoformat()
    except ValueError:
        return f"{year}-{int(month):02}"
