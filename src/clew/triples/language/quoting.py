"""Quotation marks in typed triples: text between them is a name or a value, whatever it looks like."""

from __future__ import annotations

import re
from collections.abc import Callable

#: Text in quotation marks; a mark within it is written twice.
QUOTED_TEXT = r'"(?:[^"]|"")*"'
_QUOTED = re.compile(QUOTED_TEXT)
_SPLIT = re.compile(f"({QUOTED_TEXT})")
#: Text that the parser takes for nothing else than a name or a value.
_PLAIN = re.compile(r"[^\W\d_](?:[\w'’&/+!-]|\.(?=\w)|,(?=[ \w])| (?=[\w&]))*")
#: Words that may negate a relation or a property (:func:`clew.triples.language.quantifiers.split_negation`).
NEGATION = (
    r"(?i:(?:\A|[\s_-])(?:not|never|no|without|cannot|\w{1,6}n['’]?t)(?:[\s_-]|\Z))"
    r"|(?:[nN]ot|[nN]o|[nN]ever)(?=[A-Z])"
)
#: First words that show that something is not a name; X, Y and Z may be unknowns.
_RESERVED = re.compile(
    r"(?:an?|the|some|not|no|none|never|without|only|nothing|at|exactly|just|from|more|fewer|less|up|between|before"
    r"|after|since|until|is|isn|are|aren|was|wasn|were|do|does|doesn|did|didn|has|have|there|several|multiple|final"
    r"|answer|target|return|select|wish|wishes|leftovers?|type|triples?|triplets?|conditions?|types?|constraints?"
    r"|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|negat(?:ions?|ed|ives?)|exclu(?:de|ded|ding|sions?)"
    r"|except|[x-z]_?\d*)\b",
    re.IGNORECASE,
)
#: Other quotation marks, and Markdown marks, around a name that a model writes.
_WRAPPED = tuple(
    re.compile(pattern)
    for pattern in (
        r"“([^“”]*)”",
        r"‘([^‘’]*)’",
        r"«([^«»]*)»",
        r"'([^']*)'",
        r"`([^`]*)`",
        r"\*\*([^*]*)\*\*",
    )
)


def quote(text: str) -> str:
    """Return text in quotation marks, on one line.

    >>> quote('a 12" record')
    '"a 12"" record"'
    """
    return '"' + " ".join(re.split(r"[\n\r]+", text)).replace('"', '""') + '"'


def quote_if_needed(text: str, reserved: str = "") -> str:
    """Return the text in quotation marks if the parser would take it for anything else than text, otherwise as it is.

    ``reserved`` is a pattern of further texts that must be quoted.

    >>> quote_if_needed("David Lynch"), quote_if_needed("Not Another Teen Movie"), quote_if_needed("gene/protein")
    ('David Lynch', '"Not Another Teen Movie"', 'gene/protein')
    """
    plain = (
        _PLAIN.fullmatch(text) and not _RESERVED.match(text) and not (reserved and re.search(reserved, text))
    )
    return text if plain else quote(text)


def unquote(text: str) -> tuple[str, bool]:
    """Return the text without quotation marks around it, and whether there were any."""
    text = text.strip()
    if _QUOTED.fullmatch(text):
        return text[1:-1].replace('""', '"'), True
    for pattern in _WRAPPED:
        if match := pattern.fullmatch(text):
            return match[1].strip(), True
    return text, False


def replace_outside_quotes(text: str, change: Callable[[str], str]) -> str:
    """Return the text with ``change`` applied to its parts outside quotation marks."""
    return "".join(part if place % 2 else change(part) for place, part in enumerate(_SPLIT.split(text)))


def mask_quotes(text: str) -> str:
    """Return the text with each character between quotation marks replaced by one that no pattern matches. Positions
    in it are those in the text."""
    return _QUOTED.sub(lambda match: '"' + "\0" * (len(match.group()) - 2) + '"', text)


def split_outside_quotes(text: str, at: str) -> list[str]:
    """Return the parts of a text between the matches of the pattern ``at``, ignoring matches in quotation marks."""
    parts, start = [], 0
    for match in re.finditer(at, mask_quotes(text)):
        parts.append(text[start : match.start()].strip())
        start = match.end()
    return [*parts, text[start:].strip()]
