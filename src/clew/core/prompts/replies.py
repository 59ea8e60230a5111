"""Reading replies of language models: free text, and JSON however small the model.

JSON is read in two steps. *Parsing* is lenient about form: thoughts and prose around the value, code fences, single
quotes, bare keys, Python's ``None`` and ``True``, comments, trailing commas, line breaks inside strings, an end that
is cut off. *Validation* is strict about content: the value must be valid by the schema, and nothing is invented to
make it so. Of a value that is cut off, the incomplete part is dropped, because half a number is another
number; if the schema requires the dropped part, the reply is refused. That is why clew does not use json-repair: it
completes what is cut off (``[1, 23`` to ``[1, 23]``, ``{"a": `` to ``{"a": ""}``), so that the schema accepts values
that the model did not write.

The schemas are the subset of JSON Schema that endpoints understand: ``type`` (one or a list), ``properties``,
``required``, ``items``, ``enum``. Keys beyond ``properties`` are dropped. Three conversions lose nothing and
are made: ``"3"`` and ``3.0`` where an integer is required, ``"0.5"`` where a number is, ``"true"`` where a
boolean is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.core.errors import BadCompletion

Schema = Mapping[str, Any]

_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL)
#: A thought that never ends: the reply contains nothing else.
_ENDLESS_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*\Z", re.DOTALL)
#: Control characters, and halves of surrogate pairs, which cannot be written to a file.
_NOT_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
#: Places tried as the start of the value: a reply full of brackets is not JSON with prose around it.
_MAX_STARTS = 40
_MAX_DEPTH = 60


def clean_reply(reply: str) -> str:
    """Return a reply without the thoughts before it and without characters that are not text."""
    return _NOT_TEXT.sub(" ", _ENDLESS_THOUGHT.sub("", _THOUGHT.sub("", reply))).strip()


def parse_json(reply: str, schema: Schema) -> Any:
    """Return the first value in ``reply`` that is valid by ``schema``. Raises BadCompletion, which says why not."""
    problem = ""
    for text in _value_starts(_THOUGHT.sub("", reply), schema):
        try:
            return _validate(_LenientParser(text).parse(), schema, "reply")
        except (_Unreadable, _Invalid) as error:
            # Report the problem of the outermost value, though an inner one may still be valid.
            problem = problem or str(error)
    shown = " ".join(reply.split())
    raise BadCompletion(
        f"the model's reply is not the JSON that was asked for: {problem or 'no JSON in it'}",
        f"It wrote: {shown[:200]}{'...' if len(shown) > 200 else ''}",
    )


def schema_instruction(schema: Schema) -> str:
    """Return the instruction to add to a prompt where an endpoint does not accept a schema."""
    return "Reply with one JSON value that is valid by this JSON schema, and nothing else:\n" + json.dumps(
        schema, ensure_ascii=False, separators=(", ", ": ")
    )


def _value_starts(text: str, schema: Schema) -> Iterator[str]:
    """Yield the rest of the text from each place where the value may start: in code fences first, then anywhere."""
    types = schema.get("type", ["object", "array"])
    openers = ("{" if "object" in types else "") + ("[" if "array" in types else "")
    remaining = _MAX_STARTS
    for piece in [*(fence[1] for fence in _FENCE.finditer(text)), text]:
        if not openers:
            yield piece.strip()
            continue
        for opener in re.finditer(f"[{re.escape(openers)}]", piece):
            if remaining == 0:
                return
            remaining -= 1
            yield piece[opener.start() :]


class _Unreadable(ValueError):
    """The text is not JSON, even by the lenient rules."""


class _Invalid(ValueError):
    """The value does not match the schema."""


class _Cut(Exception):
    """The text ended inside a value that is useless when incomplete."""


_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
# An apostrophe, or a quotation mark that should have been escaped, is followed by more of the sentence.
_STRING_END = re.compile(r"\s*(?:[,:}\]]|\Z|//|/\*)")
#: What closes a string that opened with each quotation mark.
_QUOTES = {'"': '"', "'": "'", "“": "”"}


@dataclass(slots=True)
class _LenientParser:
    """A lenient recursive-descent parser at position ``at`` of ``text``; ``cut``: the text ended too early."""

    text: str
    at: int = 0
    depth: int = 0
    cut: bool = False

    def parse(self) -> Any:
        try:
            return self._value()
        except _Cut:
            raise _Unreadable("the reply ends before the JSON does") from None

    def _value(self) -> Any:
        self._skip_space()
        char = self._peek()
        if char == "{":
            return self._nest(self._object)
        if char == "[":
            return self._nest(self._array)
        if char in _QUOTES:
            return self._string()
        return self._scalar()

    def _nest(self, read: Any) -> Any:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _Unreadable("it is nested too deeply")
        self.at += 1
        value = read()
        self.depth -= 1
        return value

    def _object(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while True:
            try:
                if self._at_closer("}"):
                    return members
                key = self._key()
                value = self._value()
            except _Cut:
                self.cut = True
                return members
            members[key] = value
            if self.cut:
                return members

    def _array(self) -> list[Any]:
        items: list[Any] = []
        while True:
            try:
                if self._at_closer("]"):
                    return items
                value = self._value()
            except _Cut:
                self.cut = True
                return items
            # An element that was cut off may have lost some of its keys, so it is dropped entirely.
            if self.cut:
                return items
            items.append(value)

    def _at_closer(self, closer: str) -> bool:
        self._skip_space()
        while self._peek() == ",":
            self.at += 1
            self._skip_space()
        if self._peek() != closer:
            return False
        self.at += 1
        return True

    def _key(self) -> str:
        if self._peek() in _QUOTES:
            key = self._string()
        elif word := _WORD.match(self.text, self.at):
            key, self.at = word.group(), word.end()
        else:
            raise _Unreadable(f"a key was expected at '{self.text[self.at : self.at + 20]}'")
        self._skip_space()
        if self._peek() != ":":
            raise _Unreadable(f"a colon was expected after '{key}'")
        self.at += 1
        return key

    def _string(self) -> str:
        closer = _QUOTES[self.text[self.at]]
        self.at += 1
        out: list[str] = []
        while (char := self._peek()) != closer or not _STRING_END.match(self.text, self.at + 1):
            self.at += 1
            out.append(self._escape() if char == "\\" else char)
        self.at += 1
        return "".join(out)

    def _escape(self) -> str:
        char = self._peek()
        self.at += 1
        if char != "u":
            return _ESCAPES.get(char, char)
        digits = self.text[self.at : self.at + 4]
        if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            raise _Unreadable(f"'\\u{digits}' is no character")
        self.at += 4
        code = int(digits, 16)
        low = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})").match(self.text, self.at)
        if 0xD800 <= code < 0xDC00 and low:
            self.at = low.end()
            code = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        return chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd"

    def _scalar(self) -> Any:
        token = _NUMBER.match(self.text, self.at) or _WORD.match(self.text, self.at)
        if not token:
            raise _Unreadable(f"a value was expected at '{self.text[self.at : self.at + 20]}'")
        # At the very end "12" may be the start of "123", unless nothing encloses it.
        if token.end() == len(self.text) and self.depth:
            raise _Cut
        self.at = token.end()
        word = token.group()
        if word in _WORDS:
            return _WORDS[word]
        try:
            return json.loads(word)
        except ValueError:
            raise _Unreadable(f"'{word[:20]}' is no JSON value") from None

    def _skip_space(self) -> None:
        if skipped := _SPACE.match(self.text, self.at):
            self.at = skipped.end()

    def _peek(self) -> str:
        if self._at_end():
            raise _Cut
        return self.text[self.at]

    def _at_end(self) -> bool:
        return self.at >= len(self.text)


def _validate(value: Any, schema: Schema, where: str) -> Any:
    value = _validate_type(value, schema.get("type"), where)
    if "enum" in schema and value not in schema["enum"]:
        raise _Invalid(f"{where} is {value!r}, not one of {schema['enum']}")
    if isinstance(value, dict) and "properties" in schema:
        properties = schema["properties"]
        if missing := [key for key in schema.get("required", ()) if key not in value]:
            raise _Invalid(f"{where} has no '{missing[0]}'")
        return {
            key: _validate(value[key], properties[key], f"{where}.{key}")
            for key in properties
            if key in value
        }
    if isinstance(value, list) and "items" in schema:
        return [_validate(item, schema["items"], f"{where}[{n}]") for n, item in enumerate(value)]
    return value


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _validate_type(value: Any, expected: str | list[str] | None, where: str) -> Any:
    if expected is None:
        return value
    kinds = [expected] if isinstance(expected, str) else expected
    for kind in kinds:
        if isinstance(value, _PYTHON_TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)):
            return value
    for kind in kinds:
        if (converted := _convert(value, kind)) is not None:
            return converted
    raise _Invalid(f"{where} is {type(value).__name__} {str(value)[:40]!r}, not {' or '.join(kinds)}")


def _convert(value: Any, kind: str) -> Any:
    text = str(value).strip()
    if isinstance(value, bool):
        return None
    if kind == "integer" and re.fullmatch(r"-?\d+(\.0+)?", text):
        return int(text.partition(".")[0])
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    if kind == "boolean" and text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    return None
