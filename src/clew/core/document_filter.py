"""Conditions on the fields of documents: ``date >= 2021 and tag = lease``.

A field has a name and any number of values, each a text. A comparison holds if it holds for one of the values;
``!=`` and ``not`` negate, so that they hold for a document without the field. ``and`` binds before ``or``; brackets
group. ``=`` compares without case, diacritics and punctuation, ``~`` looks for a part. Two numbers are compared as
numbers. Dates are compared as the spans of time that they are: 2021 is the whole year, so that ``date <= 2021``
includes its last day, and ``date = 2021`` means any day of it. They may be written as ``2021-03-05``, ``05.03.2021``
or ``"5 March 2021"``. ``author = ""`` holds for a document without an author.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeVar

from clew.core.errors import UsageError
from clew.core.text import file_name, fold_name
from clew.core.types import Document
from clew.core.values import read_date

Fields = Mapping[str, Sequence[str]]

_TOKEN = re.compile(
    r"""\s*(?:(?P<open>\()|(?P<close>\))|(?P<comma>,)|(?P<operator><=|>=|!=|==?|<|>|~)"""
    r"""|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[^\s()<>=!~,"']+))"""
)
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "~")
_EXAMPLE = "Such as: date >= 2021 and tag = lease"
_JOIN = "Join conditions with and, or; put a value of several words into quotation marks"
_DATES = "Write 2021, 2021-03, 2021-03-05 or '5 March 2021'"
#: Brackets and "not" may stand in each other so many times.
_MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was read: the text, the names of the fields in it with their positions, and the test."""

    text: str
    fields: tuple[tuple[str, int], ...]
    matches: Callable[[Fields], bool]

    def check_fields(self, known: Sequence[str]) -> None:
        """Raise UsageError for a field that is not ``known``, with its position."""
        for name, position in self.fields:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean '{near[0]}'?" if near else f"Fields: {', '.join(known)}"
                raise _error(self.text, position, f"no document has a field '{name}'", hint)


def parse_condition(text: str) -> Condition:
    """Read a condition. Raises UsageError with the position of the mistake.

    >>> parse_condition("date >= 2021 and not tag = draft").matches({"date": ["2021-03-05"], "tag": ["Lease"]})
    True
    """
    parser = _Parser(text, list(_tokens(text)))
    matches = parser.parse_alternatives(0)
    if parser.at < len(parser.tokens):
        token = parser.tokens[parser.at]
        raise _error(text, token.start, f"'{token.text}' is not expected", _JOIN)
    return Condition(text, tuple(parser.fields), matches)


def _error(text: str, position: int, problem: str, hint: str = _EXAMPLE) -> UsageError:
    shown = f"{text[:position]}⟨here⟩{text[position:]}"
    return UsageError(f"{problem}, at character {position + 1} of the condition: {shown}", hint)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            problem = (
                "a quotation mark is not closed" if text[at] in "\"'" else f"'{text[at]}' is not expected"
            )
            raise _error(text, at, problem)
        kind = str(match.lastgroup)
        quoted = kind in {"double", "single"}
        start = match.start(kind) - quoted
        yield _Token("value" if quoted else kind, match[kind], start)
        at = match.end()


@dataclass(slots=True)
class _Parser:
    """Reads by recursive descent: alternatives of conjunctions of comparisons."""

    text: str
    tokens: list[_Token]
    at: int = 0
    fields: list[tuple[str, int]] = field(default_factory=list)

    def parse_alternatives(self, depth: int) -> Callable[[Fields], bool]:
        parts = [self.parse_conjunction(depth)]
        while self._take_word("or"):
            parts.append(self.parse_conjunction(depth))
        return parts[0] if len(parts) == 1 else lambda fields: any(part(fields) for part in parts)

    def parse_conjunction(self, depth: int) -> Callable[[Fields], bool]:
        parts = [self.parse_negation(depth)]
        while self._take_word("and"):
            parts.append(self.parse_negation(depth))
        return parts[0] if len(parts) == 1 else lambda fields: all(part(fields) for part in parts)

    def parse_negation(self, depth: int) -> Callable[[Fields], bool]:
        if depth > _MAX_DEPTH:
            raise _error(self.text, self._position(), "brackets are nested too deeply")
        if self._take_word("not"):
            inner = self.parse_negation(depth + 1)
            return lambda fields: not inner(fields)
        if self._take_kind("open"):
            opened = self.tokens[self.at - 1].start
            inner = self.parse_alternatives(depth + 1)
            if not self._take_kind("close"):
                raise _error(self.text, opened, "a bracket is not closed", "Close it with )")
            return inner
        return self.parse_comparison()

    def parse_comparison(self) -> Callable[[Fields], bool]:
        token = self._next("a field")
        if token.kind != "word":
            raise _error(self.text, token.start, f"a field is expected, not '{token.text}'")
        name = token.text.casefold()
        self.fields.append((name, token.start))
        if self._take_word("in"):
            return self._membership(name)
        operator = self._next(f"one of {' '.join(_OPERATORS)} or in")
        if operator.kind != "operator":
            raise _error(
                self.text,
                operator.start,
                f"one of {' '.join(_OPERATORS)} or in is expected after '{token.text}'",
            )
        symbol = "=" if operator.text == "==" else operator.text
        return _comparison(name, symbol, self._value(f"a value after {operator.text}", name, symbol))

    def _membership(self, name: str) -> Callable[[Fields], bool]:
        opening = self._next("( after in")
        if opening.kind != "open":
            raise _error(self.text, opening.start, "( is expected after in", "Such as: tag in (lease, offer)")
        tests = [_comparison(name, "=", self._value("a value", name, "="))]
        while self._take_kind("comma"):
            tests.append(_comparison(name, "=", self._value("a value after the comma", name, "=")))
        if not self._take_kind("close"):
            raise _error(self.text, opening.start, "a bracket is not closed", "Close it with )")
        return lambda fields: any(test(fields) for test in tests)

    def _value(self, expected: str, name: str, operator: str) -> str:
        """Return the next value, for the field ``name``: a date in the form in which dates are stored."""
        token = self._next(expected)
        if token.kind not in {"word", "value"}:
            raise _error(self.text, token.start, f"{expected} is expected, not '{token.text}'")
        if operator == "~" or not token.text.strip():
            return token.text
        if name == "date":
            date = read_date(token.text.strip())
            if not date or len(date.split("-")) < len(token.text.strip().split("-")):
                raise _error(self.text, token.start, f"'{token.text}' is no date", _DATES)
            return date
        if name == "pages" and not _NUMBER.fullmatch(token.text):
            raise _error(self.text, token.start, f"'{token.text}' is no number", "Such as: pages > 10")
        return token.text

    def _next(self, expected: str) -> _Token:
        if self.at == len(self.tokens):
            raise _error(self.text, len(self.text.rstrip()), f"{expected} is expected")
        self.at += 1
        return self.tokens[self.at - 1]

    def _take_word(self, word: str) -> bool:
        return self._take(lambda token: token.kind == "word" and token.text.casefold() == word)

    def _take_kind(self, kind: str) -> bool:
        return self._take(lambda token: token.kind == kind)

    def _take(self, fits: Callable[[_Token], bool]) -> bool:
        if self.at < len(self.tokens) and fits(self.tokens[self.at]):
            self.at += 1
            return True
        return False

    def _position(self) -> int:
        return self.tokens[self.at].start if self.at < len(self.tokens) else len(self.text)


def _comparison(name: str, operator: str, literal: str) -> Callable[[Fields], bool]:
    if operator == "!=":
        equal = _comparison(name, "=", literal)
        return lambda fields: not equal(fields)
    if operator == "=" and not literal.strip():
        return lambda fields: not any(value.strip() for value in fields.get(name, ()))
    folded = fold_name(literal)
    if operator == "~":
        return lambda fields: any(folded in fold_name(value) for value in fields.get(name, ()))
    return lambda fields: any(compare_values(value, operator, literal) for value in fields.get(name, ()))


def compare_values(value: str, operator: str, literal: str) -> bool:
    """Return whether a value compares so with a literal: as dates, else as numbers, else as names.

    >>> compare_values("2021-03-05", "<=", "2021"), compare_values("9", "<", "10"), compare_values("b", ">", "A")
    (True, True, True)
    """
    if _DATE.fullmatch(value) and _DATE.fullmatch(literal):
        return _compare_spans(_date_span(value), operator, _date_span(literal))
    if _NUMBER.fullmatch(value) and _NUMBER.fullmatch(literal):
        number, other = float(value), float(literal)
        return _compare_spans((number, number), operator, (other, other))
    name, wanted = fold_name(value), fold_name(literal)
    return _compare_spans((name, name), operator, (wanted, wanted))


def _date_span(date: str) -> tuple[str, str]:
    """Return the first and the last day of a date, as texts that compare as the days do."""
    return date + "-00-00"[len(date) - 4 :], date + "-99-99"[len(date) - 4 :]


_Ordered = TypeVar("_Ordered", str, float)


def _compare_spans(
    value: tuple[_Ordered, _Ordered], operator: str, literal: tuple[_Ordered, _Ordered]
) -> bool:
    (first, last), (start, end) = value, literal
    match operator:
        case "=":
            return first >= start and last <= end
        case "<":
            return last < start
        case "<=":
            return last <= end
        case ">":
            return first > end
        case _:
            return first >= start


#: Kinds of documents by the last part of their media type; others are called by that.
_KINDS = {
    "vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "vnd.oasis.opendocument.text": "odt",
    "vnd.oasis.opendocument.spreadsheet": "ods",
    "vnd.oasis.opendocument.presentation": "odp",
    "vnd.ms-outlook": "mail",
    "rfc822": "mail",
    "mbox": "mail",
    "plain": "text",
    "epub+zip": "epub",
    "x-ipynb+json": "notebook",
    "vtt": "subtitles",
}


def document_fields(document: Document) -> dict[str, tuple[str, ...]]:
    """Return the fields of a document: those of its file (author, date, tag, ...), and those that every document has.

    ``name`` and ``title``; ``kind`` (pdf, docx, mail, ...); ``language``; ``pages``; ``folder``, the folders below
    the one that was added ("contracts", "contracts/2021"). The name of each of these folders is also a ``tag``.
    """
    values: dict[str, list[str]] = {}
    for name, value in (*document.fields, *(("tag", tag) for tag in document.tags)):
        values.setdefault(name, []).append(value)
    last = document.media_type.rpartition("/")[2]
    values["kind"] = [_KINDS.get(last, last.removeprefix("x-"))]
    values["name"] = list(dict.fromkeys(map(file_name, document.paths)))
    values["title"] = [document.title]
    values["pages"] = [str(document.pages)]
    if document.language:
        values["language"] = [document.language]
    for folder in document.folders:
        parts = folder.split("/")
        values.setdefault("tag", []).extend(parts)
        values.setdefault("folder", []).extend("/".join(parts[: n + 1]) for n in range(len(parts)))
    return {name: tuple(dict.fromkeys(texts)) for name, texts in values.items()}


def select_documents(documents: Iterable[Document], text: str) -> frozenset[str]:
    """Return the keys of the documents that meet a condition. Raises UsageError for a mistake in it, and for a field
    that no document has."""
    condition = parse_condition(text)
    by_key = {document.key: document_fields(document) for document in documents}
    condition.check_fields(sorted({name for fields in by_key.values() for name in fields} | STANDARD_FIELDS))
    return frozenset(key for key, fields in by_key.items() if condition.matches(fields))


#: Fields that may be asked for where no document has them.
STANDARD_FIELDS = frozenset({"author", "date", "folder", "kind", "language", "name", "pages", "tag", "title"})
