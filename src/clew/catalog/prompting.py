"""The prompting methods that Su et al. (NAACL 2024, Appendix F) compare with, as parts of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from clew.catalog.parts import BuildContext, Params, Component
from clew.catalog.recipe import Recipe
from clew.catalog.retrievers import RETRIEVERS
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.catalog.recipe import Value
    from clew.prompts import Template
    from clew.protocols import Method, Reader

#: Builds the reader that a recipe names, and the recipe with that reader written out.
ReaderFor = Callable[[BuildContext, Params], tuple["Reader", Params]]
TASKS = ("question", "claim")
AUTO = Recipe("auto")


def load_task_prompt(name: str, options: Params) -> Template:
    """Return the few-shot prompt ``name`` for the task of a recipe, with its exemplars and as many as it says."""
    from clew.prompts import load_prompt

    suffix = "-claim" if options.word("task", TASKS) == "claim" else ""
    exemplars = options.component("exemplars").name
    return load_prompt(
        f"{name}{suffix}",
        shots=None if options.recipe.option("shots") == AUTO else options.count("shots", 0),
        exemplars=None if exemplars == "auto" else exemplars,
    )


def _fewshot(bench: BuildContext, options: Params) -> Method:
    from clew.methods.fewshot import FewShot
    from clew.methods.replies import parse_short_answer
    from clew.read.labels import parse_label

    claims = options.word("task", TASKS) == "claim"
    return FewShot(
        bench.require_model("fewshot"),
        load_task_prompt("fewshot", options),
        parse_label if claims else parse_short_answer,
        str(options.recipe),
    )


def _cot(bench: BuildContext, options: Params) -> Method:
    from clew.methods.cot import ChainOfThought
    from clew.methods.replies import parse_final_answer
    from clew.read.labels import parse_label

    named = options.component("retriever")
    temperature = options.number("temperature")
    if temperature <= 0 and options.count("samples") > 1:
        raise UsageError(
            "'cot' draws several samples at temperature 0, all alike", "Name one: temperature=0.7"
        )
    return ChainOfThought(
        bench.require_model("cot"),
        load_task_prompt("cot", options),
        None if named.name == "none" else RETRIEVERS.build(named, bench),
        options.count("k"),
        options.count("samples"),
        temperature,
        parse_label if options.word("task", TASKS) == "claim" else parse_final_answer,
        str(options.recipe),
    )


def _final(reader_for: ReaderFor, bench: BuildContext, options: Params) -> tuple[Reader | None, str]:
    """Return what reads in the end, None for the model's own answer, and the recipe with it written out."""
    if options.word("final", ("reader", "model")) == "model":
        return None, str(options.recipe)
    reader, options = reader_for(bench, options)
    return reader, str(options.recipe)


def _iterretgen(reader_for: ReaderFor, bench: BuildContext, options: Params) -> Method:
    from clew.methods.iterretgen import IterRetGen
    from clew.prompts import load_prompt

    retriever = RETRIEVERS.build(options.component("retriever"), bench)
    model = bench.require_model("iterretgen")
    reader, recipe = _final(reader_for, bench, options)
    bounds = options.count("k"), options.count("rounds")
    return IterRetGen(retriever, model, load_prompt("cot"), reader, *bounds, recipe)


def _react(reader_for: ReaderFor, bench: BuildContext, options: Params) -> Method:
    from clew.methods.react import ReAct
    from clew.prompts import load_prompt

    retriever = RETRIEVERS.build(options.component("retriever"), bench)
    model = bench.require_model("react")
    reader, recipe = _final(reader_for, bench, options)
    bounds = options.count("k"), options.count("rounds"), options.count("budget")
    return ReAct(retriever, model, load_prompt("react"), reader, *bounds, recipe)


def _dsp(reader_for: ReaderFor, bench: BuildContext, options: Params) -> Method:
    from clew.methods.dsp import DSP
    from clew.prompts import load_prompt

    retriever = RETRIEVERS.build(options.component("retriever"), bench)
    model = bench.require_model("dsp")
    reader, recipe = _final(reader_for, bench, options)
    bounds = options.count("k"), options.count("hops"), options.count("budget")
    return DSP(retriever, model, load_prompt("dsp-search"), load_prompt("cot"), reader, *bounds, recipe)


_SHOTS: dict[str, Value] = {"task": Recipe("question"), "shots": AUTO, "exemplars": AUTO}
_READ: dict[str, Value] = {"retriever": Recipe("search"), "reader": AUTO, "final": Recipe("reader")}


def prompting_methods(reader_for: ReaderFor) -> dict[str, Component[Method]]:
    """Return the methods by name; ``reader_for`` makes what reads in the end."""
    return {
        "fewshot": Component(
            "a baseline: the model answers from memory after exemplars (25, or as many as 'shots' says); "
            "task=claim for claims",
            _fewshot,
            _SHOTS,
        ),
        "cot": Component(
            "chain of thought; with 'samples' the answer that most reach; with a retriever over its passages; "
            "task=claim for claims",
            _cot,
            {**_SHOTS, "retriever": Recipe("none"), "k": 5, "samples": 1, "temperature": 0.7},
        ),
        "iterretgen": Component(
            "ITER-RETGEN: retrieval with the question and what the model wrote last, in turns; final=model "
            "takes the model's own answer, unchecked",
            partial(_iterretgen, reader_for),
            {**_READ, "k": 5, "rounds": 2},
        ),
        "react": Component(
            "ReAct: thoughts, searches and look-ups in turns; final=model as for iterretgen",
            partial(_react, reader_for),
            {**_READ, "k": 3, "rounds": 7, "budget": 30},
        ),
        "dsp": Component(
            "Demonstrate-Search-Predict: a summary and a query for each hop; final=model as for iterretgen",
            partial(_dsp, reader_for),
            {**_READ, "k": 5, "hops": 3, "budget": 30},
        ),
    }
