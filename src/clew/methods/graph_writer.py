"""Plain questions over graphs, written as typed triples by a language model.

What a model writes is held to what a person's triples are held to: every name, relation, type and property is in the
graph as it is written, and no statement is left out. Where that is not so, the model is told what a person would be
told, and asked once more; after that there is no query.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from clew.core.errors import BadCompletion, UsageError
from clew.core.prompts.templates import Template, load_prompt
from clew.core.protocols import EntityLinker, LanguageModel, PropertyGraph, Snapshot, Trail
from clew.core.text import normalise
from clew.core.trail import TriplesStep
from clew.core.types import Question, Usage
from clew.methods.focus.schema import SchemaLimits, describe_schema
from clew.questions.plans import VALUE, YES_NO, WrittenPlan
from clew.questions.reading import Reading, answer_plan
from clew.triples.language.typed_parsing import parse_typed_statements
from clew.triples.linking.linked_graphs import join_linked
from clew.triples.query import compile_question, solve_question

#: Names that are offered for one that a graph does not have.
_OFFERED = 3
#: "?x1" is "#1"; another variable, or another unknown that is asked for, is not known to be the one.
_VARIABLE = re.compile(r"\?[A-Za-z]{0,2}_?(\d+)\b")
_FINAL = re.compile(r";?\s*final answer: ?#1\b")
_OTHER = re.compile(r"\?[A-Za-z_]\w*(?= *(?:>>|:|=|\.|;))|final answer[^;]*")
_NAME_WORD, _LONGEST_NAME = re.compile(r"\w(?:[^\s,;:?!\"“”()]*\w)?"), 6
_MISSING_NAME = re.compile(r"(?P<kind>node|relation|type|property) '(?P<name>.*)'\Z", re.DOTALL)


class _Unusable(Exception):
    """What a model wrote cannot be asked; the message says why."""


@dataclass(frozen=True, slots=True)
class GraphQueryWriter:
    """A language model that writes a question as a query over graphs (prompt ``graph-query``)."""

    model: LanguageModel
    linker: EntityLinker
    snapshot: Snapshot
    template: Template = field(default_factory=lambda: load_prompt("graph-query"))
    room: SchemaLimits = field(default_factory=SchemaLimits)

    def write(self, question: Question, graphs: Sequence[PropertyGraph], trail: Trail) -> Reading | None:
        """Return what a model reads in a question, with the nodes that meet it; None if it reads nothing, or nothing
        that can be asked exactly. One call, or two. Raises ModelError, RemoteError, BudgetExceeded."""
        started = time.perf_counter()
        schema = describe_schema(graphs, question.text, room=self.room)
        prompt = self.template.render(question=question.text, schema=schema.text)
        prompt = replace(prompt, optional=(*prompt.optional, *schema.optional))
        reading, problems, usage = None, list[str](), Usage()
        for _ in range(2):
            user = prompt.user
            if problems:
                user += (
                    f"\n\nYour last reply cannot be asked: {problems[-1]}. Write the whole JSON object again."
                )
            completion = self.model.complete([replace(prompt, user=user)])[0]
            usage += completion.usage
            try:
                reading = self._read(completion.text, question, graphs)
            except _Unusable as error:
                problems.append(str(error))
                continue
            # That nothing meets a query may be its fault: it is looked at once more.
            if reading is None or not is_empty(reading) or problems:
                break
            problems.append(
                "nothing in the graphs meets it. If each statement is as the question has it, repeat it"
            )
        trail.add(
            TriplesStep(
                "" if reading is None else reading.triples,
                prompt=self.template.name,
                usable=int(reading is not None),
                schema=schema.summary,
                errors="; ".join(problems) or None,
                samples=1,
                usage=usage,
                seconds=time.perf_counter() - started,
            )
        )
        return reading

    def _read(self, reply: str, question: Question, graphs: Sequence[PropertyGraph]) -> Reading | None:
        """Return what a reply reads, None if it reads nothing. Raises _Unusable."""
        try:
            fields = self.template.parse(reply)
        except BadCompletion as error:
            raise _Unusable(error.problem) from error
        if not fields["statements"]:
            return None
        plan = _write_plan(fields)
        if numbers := sorted(_numbers(question.text) - _numbers(plan.triples)):
            raise _Unusable(f"no statement has the {numbers[0]} of the question")
        problems = []
        readings = []
        for graph in [*graphs, *join_linked(self.snapshot, graphs)]:
            try:
                reading = _run(graph, plan)
                if left_out := _name_left_out(graph, question.text, plan.triples):
                    raise _Unusable(f"no statement has '{left_out}', which the question names")
                readings.append(reading)
            except _Unusable as error:
                problems.append(self._advise(str(error), graph, question))
        if not readings:
            raise _Unusable(min(problems, key=len))
        return next((reading for reading in readings if reading.values), readings[0])

    def _advise(self, problem: str, graph: PropertyGraph, question: Question) -> str:
        """Return a problem with the names that the graph has instead."""
        match = _MISSING_NAME.fullmatch(problem)
        if match is None:
            return problem
        known = {"relation": graph.relations(), "type": graph.types(), "property": graph.properties()}
        if match["kind"] == "node":
            (candidates,) = self.linker.link(graph, [match["name"]], question.text, _OFFERED)
            near = [candidate.name for candidate in candidates]
        else:
            near = get_close_matches(match["name"], list(known[match["kind"]]), _OFFERED, 0.4)
        offered = f"; it has {', '.join(map(repr, near))}" if near else ""
        return f"the graph '{graph.name}' has no {problem}{offered}"


def is_empty(reading: Reading) -> bool:
    """Return whether nothing meets a query that asks for more than yes or no."""
    return not len(reading.rows) and reading.plan.operation != YES_NO


def _write_plan(fields: dict[str, Any]) -> WrittenPlan:
    """Return what a reply writes. Raises _Unusable for statements that cannot be read."""
    text = "; ".join(statement.strip().rstrip(";") for statement in fields["statements"])
    text = _VARIABLE.sub(r"#\1", _FINAL.sub("", text))
    if other := _OTHER.search(text):
        raise _Unusable(f"'{other[0]}': unknowns are written #1, #2 and so on, and #1 is asked for")
    text += "; final answer: #1"
    try:
        parse = parse_typed_statements(text)
    except UsageError as error:
        raise _Unusable(error.problem) from error
    if unread := [*parse.dropped, *parse.ignored]:
        raise _Unusable(f"the statement '{unread[0]}' says nothing of an unknown")
    if parse.chain.preferences:
        raise _Unusable(f"no graph can be asked for '{parse.chain.preferences[0]}'")
    if (fields["operation"] == VALUE) != bool(fields["property"]):
        raise _Unusable("a property belongs to the operation value and to no other")
    return WrittenPlan((), fields["operation"], fields["property"], text)


def _run(graph: PropertyGraph, plan: WrittenPlan) -> Reading:
    """Return what a query means in a graph, with the nodes that meet it. Raises _Unusable."""
    try:
        compilation = compile_question(graph, parse_typed_statements(plan.triples).chain)
        if compilation.question is None:
            raise _Unusable(compilation.missing[0])
        if plan.asked_property and plan.asked_property not in graph.properties():
            raise _Unusable(f"property '{plan.asked_property}'")
        rows = solve_question(graph, compilation.question).astype(np.int64)
    except UsageError as error:
        raise _Unusable(error.problem) from error
    sentence = plan.triples.removesuffix("; final answer: #1")
    return Reading(plan, graph.name, sentence, 1.0, rows, answer_plan(graph, plan, rows))


def _name_left_out(graph: PropertyGraph, question: str, triples: str) -> str:
    """Return a node that a question names with a capital or a digit and a query does not, by none of its names; "" if
    there is none. Of names within names the longest counts."""
    words = [match.span() for match in _NAME_WORD.finditer(question)]
    written, place = normalise(triples), 0
    while place < len(words):
        step = 1
        for end in range(min(len(words), place + _LONGEST_NAME), place, -1):
            name = question[words[place][0] : words[end - 1][1]]
            if name == name.lower() and not any(map(str.isdigit, name)):
                continue
            rows = graph.find_by_name(name)
            if len(rows):
                known = [other for node in graph.entities(rows) for other in (node.name, *node.aliases)]
                if not any(normalise(other) in written for other in (name, *known)):
                    return name
                step = end - place
                break
        place += step
    return ""


def _numbers(text: str) -> set[str]:
    """Return the numbers in a text, without what groups their digits."""
    return set(re.findall(r"\d+", re.sub(r"(?<=\d)[, '\u202f](?=\d{3}(?!\d))", "", text)))
