"""Search clew's regular expressions for texts that take them far longer than their length.

    python tests/expressions.py --trials 100 --seed 0

A trial draws a text that an expression may match, repeats a part of it up to 2,000 characters, and adds an end that
does not fit. The cube of that length, or two to it, is past the limit of a processor second; its square is not. Runs
of white space are as short as clew makes those of questions, replies and chains, except for what reads files.
``make fuzz`` does this before anything else.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import pkgutil
import random
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any
from unittest.mock import patch

import clew
from clew.core.text import shorten_space
from fuzz import SlowCase, limited_time

LENGTH = 2_000
#: Processor seconds of a trial.
SECONDS = 1.0
ENDS = ("", "x", "\0", "\n", "!", " ", "1")
_FUNCTIONS = frozenset(
    ("compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
)
_EXAMPLES = {
    codes.CATEGORY_DIGIT: "0123456789",
    codes.CATEGORY_NOT_DIGIT: "aZ -_.\n",
    codes.CATEGORY_SPACE: " \t\n",
    codes.CATEGORY_NOT_SPACE: "aZ0-_.(",
    codes.CATEGORY_WORD: "abZ09_",
    codes.CATEGORY_NOT_WORD: " -.,(\n*",
}
_ANY = "aZ0 .,-("
#: Repetitions of a part that may be there any number of times.
_MOST = 3


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression, and the module that has it."""

    module: str
    pattern: re.Pattern[Any]


def collect_expressions() -> list[Expression]:
    """Return the expressions that clew's modules compile when they are imported, and those written in calls."""
    expressions: dict[Expression, None] = {}
    compile_expression = re.compile

    def record(pattern: Any, flags: int = 0) -> re.Pattern[Any]:
        compiled = compile_expression(pattern, flags)
        if (module := sys._getframe(1).f_globals.get("__name__", "")).startswith("clew."):
            expressions[Expression(module, compiled)] = None
        return compiled

    # A module that is there already would not compile its expressions again.
    for name in [name for name in sys.modules if name.startswith("clew.")]:
        del sys.modules[name]
    with patch.object(re, "compile", record):
        for module in pkgutil.walk_packages(clew.__path__, "clew."):
            if not module.name.endswith("__main__"):
                with suppress(ImportError):  # an extra that is not installed
                    importlib.import_module(module.name)
    folder = Path(clew.__path__[0])
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(("clew", *path.relative_to(folder).with_suffix("").parts))
        for pattern in _written_in_calls(ast.parse(path.read_text(encoding="utf-8"))):
            expressions[Expression(name, compile_expression(pattern))] = None
    return list(expressions)


def _written_in_calls(tree: ast.AST) -> Iterator[str | bytes]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _FUNCTIONS
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and isinstance(node.args[0], ast.Constant)
            and isinstance(pattern := node.args[0].value, (str, bytes))
        ):
            yield pattern


def draw_text(pattern: re.Pattern[Any], rng: random.Random) -> str:
    """Return a text that is likely to match; what an expression looks ahead for may be missing."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    return "".join(_draw(parser.parse(source, pattern.flags & ~re.DEBUG), rng, {}))


def _draw(items: Any, rng: random.Random, groups: dict[int, str]) -> Iterator[str]:
    for code, value in items:
        if code is codes.LITERAL:
            yield chr(value)
        elif code is codes.NOT_LITERAL or code is codes.ANY:
            yield rng.choice(_ANY)
        elif code is codes.IN:
            yield _draw_member(value, rng)
        elif code is codes.BRANCH:
            yield from _draw(rng.choice(value[1]), rng, groups)
        elif code is codes.SUBPATTERN:
            groups[value[0]] = "".join(_draw(value[3], rng, groups))
            yield groups[value[0]]
        elif code is codes.ATOMIC_GROUP:
            yield from _draw(value, rng, groups)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            least, most, repeated = value
            for _ in range(rng.randint(least, max(least, min(int(most), least + _MOST)))):
                yield from _draw(repeated, rng, groups)
        elif code is codes.GROUPREF:
            yield groups.get(value, "")


def _draw_member(members: Sequence[tuple[Any, Any]], rng: random.Random) -> str:
    if members[0][0] is codes.NEGATE:
        return rng.choice(_ANY)
    code, value = rng.choice(members)
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.RANGE:
        return chr(rng.randint(*value))
    return rng.choice(_EXAMPLES[value])


def repeat_part(text: str, rng: random.Random) -> str:
    """Return a text with a part of it repeated, up to :data:`LENGTH` characters, and an end."""
    start = rng.randrange(len(text) + 1)
    end = rng.choice((start + 1, start + 2, rng.randint(start, len(text)), len(text)))
    part = text[start:end] or rng.choice(_ANY)
    return text[:end] + part * (LENGTH // len(part)) + rng.choice((text[end:], "")) + rng.choice(ENDS)


def find_slow_text(expression: Expression, trials: int, seed: int) -> str:
    """Return a text that takes an expression more than :data:`SECONDS`, "" if no trial has one."""
    pattern = expression.pattern
    rng = random.Random(f"{seed} {pattern.pattern!r}")
    for _ in range(trials):
        text = repeat_part(draw_text(pattern, rng), rng)
        if not expression.module.startswith("clew.parse."):
            text = shorten_space(text)
        subject = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text
        try:
            with limited_time(SECONDS):
                for _ in pattern.finditer(subject):
                    pass
        except SlowCase:
            return text
    return ""


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--trials", type=int, default=100, help="of each expression (default 100)")
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    expressions, count = collect_expressions(), 0
    for number, expression in enumerate(expressions):
        if number % 100 == 0:
            sys.stderr.write(f"{number:,} of {len(expressions):,} expressions\n")
        if text := find_slow_text(expression, asked.trials, asked.seed):
            count += 1
            sys.stdout.write(f"{expression.module}: {expression.pattern.pattern!r}\n    {text[:100]!r}…\n")
    sys.stdout.write(f"{len(expressions)} expressions, {asked.trials} trials of each: {count} slow\n")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
