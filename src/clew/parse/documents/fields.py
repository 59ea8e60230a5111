"""Fields of documents: what a file says of itself, in one form for all formats.

``author`` (one value for each), ``date`` (2021-03-05, or as much of it as is known), ``tag`` (keywords, categories).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from clew.core.text import clean_name
from clew.core.values import read_date

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
    value = clean_name(" ".join(value.split()))
    if name == DATE:
        return [day] if (day := read_date(value)) else []
    values = _LIST.split(value.strip("[]")) if name == TAG else re.split(r"\s*;\s*", value)
    cleaned = [text.strip("\"' ")[:_MAX_LENGTH] for text in values]
    return [
        text for text in cleaned if text and (name != AUTHOR or text.casefold().strip("()") not in _NO_AUTHOR)
    ]
