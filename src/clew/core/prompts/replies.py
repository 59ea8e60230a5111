"""JSON out of what a language model wrote, however small the model.

Two steps. *Reading* is lenient about form: thoughts and prose around the value, code fences, single quotes,
bare keys, Python's ``None`` and ``True``, comments, trailing commas, line breaks inside strings, an end that
is cut off. *Checking* is strict about content: the value must be valid by the schema, and nothing is made up
to make it so. Of a value that is cut off, what is incomplete is dropped, because half a number is another
number; if the schema requires what was dropped, the reply is refused.

The schemas are the subset of JSON Schema that endpoints understand: ``type`` (one or a list), ``properties``,
``required``, ``items``, ``enum``. Keys beyond ``properties`` are dropped. Three conversions lose nothing and
are made: ``"3"`` and ``3.0`` where an integer is wanted, ``"0.5"`` where a number is, ``"true"`` where a
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
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
#: More openings than this are not looked at: a reply full of brackets is not JSON with prose around it.
_STARTS = 40
_DEPTH = 60


def parse_json(reply: str, schema: Schema) -> Any:
    """Return the first value in ``reply`` that is valid by ``schema``. Raises BadCompletion, naming why."""
    problem = ""
    for start in _candidates(_THOUGHT.sub("", reply), schema):
        try:
            return _checked(_Reading(start).value_at_start(), schema, "reply")
        except (_Unreadable, _Invalid) as error:
            # The outermost value's problem is the one to name, though an inner one may still be what we want.
            problem = problem or str(error)
    shown = " ".join(reply.split())
    raise BadCompletion(
        f"the model's reply is not the JSON that was asked for: {problem or 'no JSON in it'}",
        f"It wrote: {shown[:200]}{'...' if len(shown) > 200 else ''}",
    )


def schema_instruction(schema: Schema) -> str:
    """Return the instruction that stands in for a schema where an endpoint takes none."""
    return "Reply with one JSON value that is valid by this JSON schema, and nothing else:\n" + json.dumps(
        schema, ensure_ascii=False, separators=(", ", ": ")
    )


def _candidates(text: str, schema: Schema) -> Iterator[str]:
    """Yield the places where the value may start: in fences first, then anywhere."""
    kinds = schema.get("type", ["object", "array"])
    openers = ("{" if "object" in kinds else "") + ("[" if "array" in kinds else "")
    left = _STARTS
    for piece in [*(found[1] for found in _FENCE.finditer(text)), text]:
        if not openers:
            yield piece.strip()
            continue
        for found in re.finditer(f"[{re.escape(openers)}]", piece):
            if left == 0:
                return
            left -= 1
            yield piece[found.start() :]


class _Unreadable(ValueError):
    """The text is not JSON, even leniently read."""


class _Invalid(ValueError):
    """The value does not match the schema."""


class _Cut(Exception):
    """The text ended inside a value that is of no use incomplete."""


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
class _Reading:
    """A lenient recursive-descent reader at position ``at`` of ``text``; ``cut``: the end came too early."""

    text: str
    at: int = 0
    depth: int = 0
    cut: bool = False

    def value_at_start(self) -> Any:
        try:
            return self._value()
        except _Cut:
            raise _Unreadable("the reply ends before the JSON does") from None

    def _value(self) -> Any:
        self._space()
        char = self._peek()
        if char == "{":
            return self._nested(self._object)
        if char == "[":
            return self._nested(self._array)
        if char in _QUOTES:
            return self._string()
        return self._scalar()

    def _nested(self, read: Any) -> Any:
        self.depth += 1
        if self.depth > _DEPTH:
            raise _Unreadable("it is nested too deeply")
        self.at += 1
        value = read()
        self.depth -= 1
        return value

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            try:
                if self._closed("}"):
                    return found
                key = self._key()
                value = self._value()
            except _Cut:
                self.cut = True
                return found
            found[key] = value
            if self.cut:
                return found

    def _array(self) -> list[Any]:
        found: list[Any] = []
        while True:
            try:
                if self._closed("]"):
                    return found
                value = self._value()
            except _Cut:
                self.cut = True
                return found
            # An element that the end cut short may have lost some of its keys: it is dropped whole.
            if self.cut:
                return found
            found.append(value)

    def _closed(self, closer: str) -> bool:
        self._space()
        while self._peek() == ",":
            self.at += 1
            self._space()
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
        self._space()
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
            out.append(self._escaped() if char == "\\" else char)
        self.at += 1
        return "".join(out)

    def _escaped(self) -> str:
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
        found = _NUMBER.match(self.text, self.at) or _WORD.match(self.text, self.at)
        if not found:
            raise _Unreadable(f"a value was expected at '{self.text[self.at : self.at + 20]}'")
        # At the very end "12" may be the start of "123", unless nothing encloses it.
        if found.end() == len(self.text) and self.depth:
            raise _Cut
        self.at = found.end()
        word = found.group()
        if word in _WORDS:
            return _WORDS[word]
        try:
            return json.loads(word)
        except ValueError:
            raise _Unreadable(f"'{word[:20]}' is no JSON value") from None

    def _space(self) -> None:
        if skipped := _SPACE.match(self.text, self.at):
            self.at = skipped.end()

    def _peek(self) -> str:
        if self._at_end():
            raise _Cut
        return self.text[self.at]

    def _at_end(self) -> bool:
        return self.at >= len(self.text)


def _checked(value: Any, schema: Schema, where: str) -> Any:
    value = _typed(value, schema.get("type"), where)
    if "enum" in schema and value not in schema["enum"]:
        raise _Invalid(f"{where} is {value!r}, not one of {schema['enum']}")
    if isinstance(value, dict) and "properties" in schema:
        properties = schema["properties"]
        if missing := [key for key in schema.get("required", ()) if key not in value]:
            raise _Invalid(f"{where} has no '{missing[0]}'")
        return {
            key: _checked(value[key], properties[key], f"{where}.{key}") for key in properties if key in value
        }
    if isinstance(value, list) and "items" in schema:
        return [_checked(item, schema["items"], f"{where}[{n}]") for n, item in enumerate(value)]
    return value


_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _typed(value: Any, wanted: str | list[str] | None, where: str) -> Any:
    if wanted is None:
        return value
    kinds = [wanted] if isinstance(wanted, str) else wanted
    for kind in kinds:
        if isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool)):
            return value
    for kind in kinds:
        if (converted := _converted(value, kind)) is not None:
            return converted
    raise _Invalid(f"{where} is {type(value).__name__} {str(value)[:40]!r}, not {' or '.join(kinds)}")


def _converted(value: Any, kind: str) -> Any:
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


_THOUGHT_replies = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL)
#: A thought that never ends says nothing.
_ENDLESS = re.compile(r"\A\s*<think(?:ing)?>.*\Z", re.DOTALL)
#: Characters that no text has: controls, and halves of pairs, which cannot be written to a file.
_UNWRITTEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_reply(reply: str) -> str:
    """Return a reply without the thoughts before it and without characters that no text has."""
    return _UNWRITTEN.sub(" ", _ENDLESS.sub("", _THOUGHT_replies.sub("", reply))).strip()


# MERGED: Free text out of what a language model wrote.
