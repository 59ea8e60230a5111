"""The tools that a program is given: ``ask``, ``search`` and ``show``, each with its schemas.

Only :mod:`clew.app.web.mcp.server` knows the protocol. Arguments are checked by the schema that the client was shown
(JSON Schema 2020-12).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.app.answers.citations import cited_answer_to_dict, render_text
from clew.app.answers.view import AnswerView
from clew.app.web.mcp.lookups import (
    ToolResult,
    list_contents,
    pending_notes,
    search_passages,
    show_entities,
    show_target,
)
from clew.app.web.model_pool import LentModel
from clew.core.errors import UsageError
from clew.core.protocols import LanguageModel
from clew.core.text import shorten
from clew.core.types import Answer, Step
from clew.knowledge_base.knowledge_base import KnowledgeBase

Schema = dict[str, Any]
Arguments = Mapping[str, Any]
#: Characters of an error message about an argument, which repeats the argument.
_MAX_MESSAGE = 200


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the tools work with: bases by name, the allowed recipes with their summaries (the first is the default),
    and the language model, if any."""

    bases: Mapping[str, KnowledgeBase]
    recipes: Mapping[str, str]
    llm: LanguageModel | None = None

    def base(self, arguments: Arguments) -> KnowledgeBase:
        """Return the base that the arguments name, or the only one."""
        return self.bases[arguments["base"]] if len(self.bases) > 1 else next(iter(self.bases.values()))


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, a title and description, the schemas of its arguments and of its structured result (None
    where that differs from call to call)."""

    name: str
    title: str
    description: str
    input_schema: Schema
    output_schema: Schema | None = None

    def check_arguments(self, arguments: Arguments) -> None:
        """Raise UsageError for arguments that the schema does not allow."""
        from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
        from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

        error = best_match(Draft202012Validator(self.input_schema).iter_errors(arguments))
        if error is not None:
            where = "".join(f"{part}: " for part in error.absolute_path)
            names = ", ".join(self.input_schema["properties"])
            problem = f"{self.name}: {where}{shorten(error.message, _MAX_MESSAGE)}"
            raise UsageError(problem, f"The arguments are {names}")


def make_tools(context: ToolContext) -> tuple[Tool, Tool, Tool]:
    """Return the tools ``ask``, ``search`` and ``show`` for a context, as ``tools.json`` declares them.

    With several bases, each call has to name one of them.
    """
    declared = json.loads((Path(__file__).parent / "tools.json").read_text(encoding="utf-8"))
    parts = declared["parts"]
    tools = {name: Tool(name, **_insert_parts(tool, parts)) for name, tool in declared["tools"].items()}
    recipe = tools["ask"].input_schema["properties"]["recipe"]
    listed = "; ".join(f"{name}: {summary}" for name, summary in context.recipes.items())
    recipe["enum"], recipe["default"] = list(context.recipes), next(iter(context.recipes))
    recipe["description"] += f" {listed}."
    if len(context.bases) > 1:
        base = {"type": "string", "enum": list(context.bases), "description": "The knowledge base."}
        for tool in tools.values():
            tool.input_schema["properties"] = {"base": base} | tool.input_schema["properties"]
            tool.input_schema["required"].insert(0, "base")
    return tools["ask"], tools["search"], tools["show"]


def _insert_parts(schema: Any, parts: Mapping[str, Schema]) -> Any:
    """Return a schema with the parts that it names by ``$part`` in it."""
    if isinstance(schema, list):
        return [_insert_parts(item, parts) for item in schema]
    if not isinstance(schema, dict):
        return schema
    part = _insert_parts(parts[schema["$part"]], parts) if "$part" in schema else {}
    return part | {key: _insert_parts(item, parts) for key, item in schema.items() if key != "$part"}


def run_ask(
    context: ToolContext, arguments: Arguments, watch: Callable[[Step], None], stop: Callable[[], bool]
) -> Answer:
    """Answer a question; see :meth:`clew.KnowledgeBase.ask`. Raises ClewError."""
    return context.base(arguments).ask(
        arguments["question"],
        llm=None if context.llm is None else LentModel(context.llm, stop),
        recipe=arguments.get("recipe") or next(iter(context.recipes)),
        documents=arguments.get("documents"),
        where=arguments.get("where", ""),
        graphs=arguments.get("graphs"),
        watch=watch,
        stop=stop,
    )


def ask_result(context: ToolContext, arguments: Arguments, answer: Answer) -> ToolResult:
    """Return the answer to a call of ``ask`` as text and in its structured form."""
    view = AnswerView.from_answer(answer)
    text = "\n\n".join([render_text(view), *pending_notes(context.base(arguments))])
    return ToolResult(text, cited_answer_to_dict(view))


def run_search(context: ToolContext, arguments: Arguments) -> ToolResult:
    """Find passages. Raises ClewError."""
    return search_passages(
        context.base(arguments),
        arguments["query"],
        arguments.get("k", 10),
        arguments.get("documents"),
        arguments.get("where", ""),
    )


def run_show(context: ToolContext, arguments: Arguments) -> ToolResult:
    """Show a document, page, node or entity; without arguments the contents of the base. Raises ClewError."""
    base, what, start = context.base(arguments), arguments.get("what"), arguments.get("start", 0)
    if what is None:
        return list_contents(base, start)
    if graph := arguments.get("graph"):
        return show_entities(base, graph, what)
    return show_target(base, what, arguments.get("page"), start)
