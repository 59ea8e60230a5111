"""The statements of a question as typed triples, without what a model puts around them."""

from __future__ import annotations

import re

from clew.chains.parsing import INTRODUCTION, LIST_MARK, split_statements
from clew.chains.quoting import mask_quotes, replace_outside_quotes, unquote
from clew.prompts import clean_reply

UNKNOWN = re.compile(r"#(\d+)")
_NAMED = re.compile(r"(?<![\w#])\?([A-Za-z_]\w*)")
_LETTER = re.compile(
    r"(?P<before>\A|>>|->|→|[(,\[:]|\b(?:is|not|only|by)\b)(?P<space>\s*)(?P<name>[x-zX-Z](?:_?\d{1,2})?)"
    r"(?=\s*(?:\Z|>>|--|-\[|->|→|[,)\]:.~(]))"
)


def extract_statements(text: str) -> list[str]:
    """Return the statements of a reply without what stands around them."""
    lines = [line for line in clean_reply(text).split("\n") if not line.strip().startswith("```")]
    found = []
    for line in lines:
        # A mark that is not closed would hide the rest of the line.
        if line.count('"') % 2:
            line = line.replace('"', "'")
        for part in split_statements(INTRODUCTION.sub("", line)):
            part = LIST_MARK.sub("", part).strip().rstrip(",").strip()
            bare, marked = unquote(part)
            if marked and (">>" in bare or UNKNOWN.search(bare)):
                part = bare
            if part and part != '"':
                found.append(part)
    return found


def number_unknowns(said: list[str], names: dict[str, int]) -> list[str]:
    """Return the statements with named unknowns as numbers, and note the number of each name."""
    used = [int(match[1]) for one in said for match in UNKNOWN.finditer(mask_quotes(_spaced(one)))]
    first = max(used, default=0) + 1

    def number(name: str) -> str:
        return f"#{names.setdefault(name.casefold(), first + len(names))}"

    def named(part: str) -> str:
        return _NAMED.sub(lambda match: number(match[1]), _spaced(part))

    made = [replace_outside_quotes(one, named) for one in said]
    if used or names:
        return made

    def lettered(part: str) -> str:
        return _LETTER.sub(lambda match: match["before"] + match["space"] + number(match["name"]), part)

    return [replace_outside_quotes(one, lettered) for one in made]


def _spaced(part: str) -> str:
    return re.sub(r"#\s*0*(\d{1,9})", r"#\1", part)
