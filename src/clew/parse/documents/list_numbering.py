"""The numbers that Word prints before headings and list items. They are not in the text, so they are counted here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.parse.documents.office_package import attribute_value, local_name

if TYPE_CHECKING:
    from lxml.etree import _Element

LEVELS = 9
_PLACE = re.compile(r"%([1-9])")


@dataclass(frozen=True, slots=True)
class ListLevel:
    """The numbering of one level of a list; ``text`` has %1 to %9 in place of the numbers of the levels."""

    form: str = "decimal"
    text: str = ""
    start: int = 1


@dataclass(slots=True)
class ListNumbering:
    """The lists of a document, and the number that each has reached."""

    _levels: dict[str, dict[int, ListLevel]] = field(default_factory=dict)  # by list (numId)
    _shared: dict[str, str] = field(default_factory=dict)  # list -> the definition whose count it shares
    _restarts: dict[str, dict[int, int]] = field(default_factory=dict)  # list -> first number by level
    _counts: dict[str, list[int | None]] = field(default_factory=dict)
    _started: set[str] = field(default_factory=set)

    @classmethod
    def from_xml(cls, root: _Element | None) -> ListNumbering:
        """Read numbering.xml; a document without one numbers nothing."""
        numbering = cls()
        abstract: dict[str, dict[int, ListLevel]] = {}
        for element in root if root is not None else ():
            if local_name(element) == "abstractNum":
                abstract[attribute_value(element, "abstractNumId")] = dict(
                    _read_level(child) for child in element if local_name(child) == "lvl"
                )
            elif local_name(element) == "num":
                numbering._define(element, abstract)
        return numbering

    def _define(self, element: _Element, abstract: dict[str, dict[int, ListLevel]]) -> None:
        name = attribute_value(element, "numId")
        for child in element:
            if local_name(child) == "abstractNumId":
                self._shared[name] = attribute_value(child, "val")
                self._levels[name] = dict(abstract.get(self._shared[name], {}))
            elif local_name(child) == "lvlOverride":
                depth = _parse_number(attribute_value(child, "ilvl"))
                for inner in child:
                    if local_name(inner) == "startOverride":
                        self._restarts.setdefault(name, {})[depth] = _parse_number(
                            attribute_value(inner, "val"), 1
                        )
                    elif local_name(inner) == "lvl":
                        self._levels.setdefault(name, {}).update([_read_level(inner)])

    def next_label(self, name: str, depth: int) -> str:
        """Count a paragraph of the list ``name`` at ``depth`` (from 0), and return the number printed before it.

        The number is ``-`` for a bullet, and "" where nothing is printed or the list is not defined.
        """
        levels = self._levels.get(name, {})
        level = levels.get(depth)
        if level is None:
            return ""
        counts = self._counts.setdefault(self._shared.get(name, name), [None] * LEVELS)
        if name not in self._started:
            self._started.add(name)
            for place, start in self._restarts.get(name, {}).items():
                counts[place:] = [start - 1 if place < LEVELS else None, *[None] * (LEVELS - place - 1)]
        before = counts[depth]
        counts[depth] = level.start if before is None else before + 1
        counts[depth + 1 :] = [None] * (LEVELS - depth - 1)
        if level.form == "bullet":
            return "-"
        if level.form == "none":
            return _PLACE.sub("", level.text).strip()

        def number_of_level(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            other = levels.get(place, ListLevel())
            count = counts[place]
            return format_list_number(other.start if count is None else count, other.form)

        return _PLACE.sub(number_of_level, level.text).strip()


def _read_level(element: _Element) -> tuple[int, ListLevel]:
    values = {local_name(child): attribute_value(child, "val") for child in element}
    return (
        min(_parse_number(attribute_value(element, "ilvl")), LEVELS - 1),
        ListLevel(
            values.get("numFmt", "decimal"),
            values.get("lvlText", ""),
            _parse_number(values.get("start", "1"), 1),
        ),
    )


def _parse_number(text: str, default: int = 0) -> int:
    return int(text) if re.fullmatch(r"\d{1,6}", text) else default


_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        "m cm d cd c xc l xl x ix v iv i".split(),
        strict=True,
    )
)


def format_list_number(number: int, form: str) -> str:
    """Return a list number in one of Word's forms; as a decimal number in a form that is not supported.

    >>> [formatted(n, f) for n, f in ((4, "lowerRoman"), (28, "upperLetter"), (3, "decimalZero"))]
    ['iv', 'BB', '03']
    """
    if form in {"lowerLetter", "upperLetter"} and 1 <= number <= 780:
        # Word doubles the letter after z: aa, bb, cc.
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if form == "upperLetter" else letters
    if form in {"lowerRoman", "upperRoman"} and 1 <= number <= 3999:
        roman = ""
        for value, letters in _ROMAN:
            roman += letters * (number // value)
            number %= value
        return roman.upper() if form == "upperRoman" else roman
    return f"{number:02d}" if form == "decimalZero" else str(number)
