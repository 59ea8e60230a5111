"""What the syntax tree of a SELECT tells: of which columns an output is made, and which values it makes up.

The tree is DuckDB's (``json_serialize_sql``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from clew.core.errors import UsageError

#: Parts of a query that choose rows and sort them; what stands there is no part of an output.
_CHOOSING = frozenset(
    "where_clause having qualify condition modifiers filter when_expr order_bys group_expressions group_sets orders"
    " partitions using_columns sample at_clause".split()
)
#: Classes of expressions that are true or false.
_TRUTHS = frozenset({"COMPARISON", "BETWEEN", "CONJUNCTION"})
#: Functions whose result has the unit of their argument.
_KEEP_UNIT = frozenset(
    "sum avg mean min max median mode first last any_value round abs coalesce + - arg_max arg_min max_by"
    " min_by".split()
)
#: Functions with arguments that say how, not what: digits, parts of days, places.
_PARAMETERS = frozenset(
    "round trunc date_part datepart date_trunc datetrunc strftime substr substring left right split_part lag lead"
    " ntile nth_value quantile quantile_cont quantile_disc percentile_cont string_agg listagg group_concat trim ltrim"
    " rtrim replace regexp_replace regexp_extract date_diff datediff array_extract list_extract nullif try_cast"
    " extract arg_max arg_min max_by min_by".split()
)
#: Functions without an argument that are of the rows.
_OF_ROWS = frozenset("count_star count row_number rank dense_rank percent_rank cume_dist".split())
#: Factors that change a unit: percent, thousands, months and quarters of a year, days.
_FACTORS = frozenset({1.0, 4.0, 7.0, 12.0, 100.0, 365.0, 1e3, 1e6, 1e9, 1e12, 0.01, 1e-3, 1e-6, 1e-9})
_TEXT_WORD = re.compile(r"-?\w+(?:\.\d+)?")
_WORDS = frozenset(
    {"", "yes", "no", "true", "false", "increase", "decrease", "higher", "lower", "equal", "same"}
)


@dataclass(frozen=True, slots=True)
class OutputOrigin:
    """Of which columns an output column is made: (alias or view, "" where none is written; column). ``keeps_unit``:
    it has their unit and scale."""

    columns: tuple[tuple[str, str], ...]
    keeps_unit: bool


def output_origins(tree: dict[str, Any]) -> tuple[OutputOrigin, ...]:
    """Return the origin of each output column of a SELECT, none where a ``*`` or a subquery is among them."""
    node = tree["statements"][0]["node"]
    if node.get("type") != "SELECT_NODE":
        return ()
    origins = []
    for expression in node["select_list"]:
        if any(part.get("class") in {"STAR", "SUBQUERY"} for part in walk(expression)):
            return ()
        columns = dict.fromkeys(_columns(expression))
        origins.append(OutputOrigin(tuple(columns), bool(columns) and _keeps_unit(expression)))
    return tuple(origins)


def _columns(expression: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for part in walk(expression):
        if part.get("class") == "COLUMN_REF":
            *owner, name = part["column_names"]
            yield (str(owner[-1]).lower() if owner else "", str(name))


def _keeps_unit(expression: dict[str, Any]) -> bool:
    kind = expression.get("class")
    if kind == "COLUMN_REF":
        return True
    if kind == "CAST":
        return _keeps_unit(expression["child"])
    if kind not in {"FUNCTION", "OPERATOR", "WINDOW"}:
        return False
    name = str(
        expression.get("function_name", "coalesce" if "COALESCE" in str(expression.get("type")) else "")
    )
    parts = [part for part in _arguments(expression) if part.get("class") != "CONSTANT"]
    if name in {"arg_max", "arg_min", "max_by", "min_by"}:
        parts = parts[:1]
    return name in _KEEP_UNIT and bool(parts) and all(map(_keeps_unit, parts))


def _arguments(expression: dict[str, Any]) -> list[dict[str, Any]]:
    parts = expression.get("arguments", expression.get("children", ()))
    return [part.get("expression", part) for part in parts]


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object within a value of a syntax tree, itself included."""
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from walk(part)
    elif isinstance(value, list):
        for part in value:
            yield from walk(part)


def check_grounded(tree: dict[str, Any], known: Collection[str]) -> None:
    """Refuse a query whose result may have values that are neither cells nor computed from cells.

    Conditions may compare with anything, since they only choose rows. ``known`` are words and numbers that may stand
    in a result besides: those of the question. Raises UsageError, which names a value that comes from nowhere.

    It keeps a model from answering out of its memory; somebody who wants to can still build any number of counts.
    """
    for value in _made_up(tree["statements"][0]["node"], frozenset(word.lower() for word in known)):
        raise UsageError(
            f"{value} in the result is no cell, is not computed from cells and is not in the question",
            "Select columns and computations over them; compare with values in WHERE",
        )


def _made_up(value: Any, known: frozenset[str], operation: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for part in value:
            yield from _made_up(part, known, operation)
        return
    if not isinstance(value, dict):
        return
    kind, type = value.get("class"), str(value.get("type", ""))
    if kind == "CONSTANT":
        text = _literal(value)
        if text is not None and not _is_harmless(text, operation, known):
            yield repr(text)
        return
    if kind in _TRUTHS or type in {"COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_NOT", "OPERATOR_IS_NULL"}:
        return
    if type == "TABLE_FUNCTION":
        yield f"what {value.get('function', {}).get('function_name', 'a table function')}() makes"
        return
    if kind in {"FUNCTION", "WINDOW"}:
        yield from _made_up_by_function(value, known)
        return
    if kind is not None and kind != "CAST":
        operation = "case" if kind == "CASE" else "coalesce" if "COALESCE" in type else ""
    for key, part in value.items():
        if key not in _CHOOSING:
            yield from _made_up(part, known, operation)


def _made_up_by_function(value: dict[str, Any], known: frozenset[str]) -> Iterator[str]:
    name = str(value.get("function_name", "")).lower()
    arguments = _arguments(value)
    if not arguments and name not in _OF_ROWS:
        yield f"{name}()"
    constants = [part for part in arguments if part.get("class") == "CONSTANT"]
    if name in _PARAMETERS and len(constants) < len(arguments):
        arguments = [part for part in arguments if part not in constants]
    yield from _made_up(arguments, known, name)


def _literal(value: dict[str, Any]) -> str | None:
    """Return a constant as text, None for NULL."""
    literal = value.get("literal")
    if isinstance(literal, dict):
        return None if literal.get("kind") == "NULL" else str(literal.get("text", ""))
    known = value.get("value", {})
    return None if known.get("is_null") else str(known.get("value", ""))


def _is_harmless(text: str, operation: str, known: frozenset[str]) -> bool:
    bare = text.strip().lower()
    if bare in _WORDS or all(word in known for word in _TEXT_WORD.findall(bare)):
        return True
    try:
        number = float(bare)
    except ValueError:
        return False
    if operation in {"*", "/", "//"}:
        return abs(number) in _FACTORS
    return number in {0.0, 1.0} and operation in {"+", "-", "case", "coalesce", "sum"}
