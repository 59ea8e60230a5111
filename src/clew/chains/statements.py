"""The statements of a question as typed triples, without what a model puts around them."""

from __future__ import annotations

import re

from clew.chains.parsing import INTRODUCED, LISTED, divided
from clew.chains.quoting import blanked, outside, unquoted
from clew.prompts import plain

UNKNOWN = re.compile(r"#(\d+)")
_NAMED = re.compile(r"(?<![\w#])\?([A-Za-z_]\w*)")
_LETTER = re.compile(
    r"(?P<before>\A|>>|->|→|[(,\[:]|\b(?:is|not|only|by)\b)(?P<space>\s*)(?P<name>[x-zX-Z](?:_?\d{1,2})?)"
    r"(?=\s*(?:\Z|>>|--|-\[|->|→|[,)\]:.~(]))"
)


def statements(text: str) -> list[str]:
    """Return the statements of a reply without what stands around them."""
    lines = [line for line in plain(text).split("\n") if not line.strip().startswith("```")]
    found = []
    for line in lines:
        # A mark that is not closed would hide the rest of the line.
        if line.count('"') % 2:
            line = line.replace('"', "'")
        for part in divided(INTRODUCED.sub("", line)):
            part = LISTED.sub("", part).strip().rstrip(",").strip()
            bare, marked = unquoted(part)
            if marked and (">>" in bare or UNKNOWN.search(bare)):
                part = bare
            if part and part != '"':
                found.append(part)
    return found


def numbered(said: list[str], names: dict[str, int]) -> list[str]:
    """Return the statements with named unknowns as numbers, and note the number of each name."""
    used = [int(match[1]) for one in said for match in UNKNOWN.finditer(blanked(_spaced(one)))]
    first = max(used, default=0) + 1

    def number(name: str) -> str:
        return f"#{names.setdefault(name.casefold(), first + len(names))}"

    def named(part: str) -> str:
        return _NAMED.sub(lambda match: number(match[1]), _spaced(part))

    made = [outside(one, named) for one in said]
    if used or names:
        return made

    def lettered(part: str) -> str:
        return _LETTER.sub(lambda match: match["before"] + match["space"] + number(match["name"]), part)

    return [outside(one, lettered) for one in made]


def _spaced(part: str) -> str:
    return re.sub(r"#\s*0*(\d{1,9})", r"#\1", part)
