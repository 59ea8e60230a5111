"""The chain method of the catalogue: its sources, readers and links by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.catalog.parts import BuildContext, Params, Component
from clew.catalog.prompting import AUTO, TASKS, load_task_prompt
from clew.catalog.recipe import Recipe
from clew.catalog.retrievers import RETRIEVERS
from clew.errors import UsageError, unknown_name_error

if TYPE_CHECKING:
    from clew.catalog.recipe import Value
    from clew.methods.chain.filling import KnowledgeSource
    from clew.methods.chain.graph import GraphSource
    from clew.methods.chain.memory import Memory
    from clew.methods.chain.text import TextSource
    from clew.methods.chain.writing import ChainWriter
    from clew.protocols import Method, Reader, Retriever

#: Where unknowns are looked up: graphs, text, the model's memory, which is always asked last.
SOURCES = ("kg", "text", "model")
#: The score from which on a graph's edges are taken for a hop (docs/benchmarks.md: of relations in other words, nine
#: in ten score more; of hops that a graph lacks, one in fifty). Words alone mistake more for each other.
MIN_RELATION_SCORE, MIN_RELATION_SCORE_BY_WORDS = 0.3, 0.4
PROMPT_FORMS = ("fewshot", "structured")
CHOICES = ("order", "hop")


def parse_sources(said: str) -> list[str]:
    """Return the sources that ``kg,text,model`` names, in that order. Raises UsageError."""
    named = [one.strip() for one in said.split(",") if one.strip()]
    for one in named:
        if one not in SOURCES:
            raise unknown_name_error("source of 'chain'", one, SOURCES)
    if not named or len(set(named)) < len(named):
        raise UsageError(f"sources of 'chain' are each named once: '{said}'", "Such as kg,text,model")
    if "model" in named[:-1]:
        raise UsageError(
            f"the model's memory is the last source: '{said}'", "It fills what the others leave open"
        )
    return named


def _chain(bench: BuildContext, options: Params) -> Method:
    from clew.catalog.methods import READERS
    from clew.methods.chain.method import ChainMethod

    recipe, reader = _reader(bench, options)
    options = Params(recipe)
    retriever = RETRIEVERS.build(options.component("retriever"), bench)
    read = READERS.build(reader, bench)
    named = parse_sources(options.text("sources"))
    sources: list[KnowledgeSource] = []
    for one in named:
        if one == "kg":
            sources.append(build_graph_source(bench, options))
        elif one == "text":
            sources.append(build_text_source(bench, options, retriever, read, options.count("k")))
    choose: Any = options.word("choose", CHOICES)
    return ChainMethod(
        _writer(bench, options),
        tuple(sources),
        _memory(bench, options) if "model" in named and bench.model is not None else None,
        retriever,
        read,
        choose=choose,
        claims=options.word("task", TASKS) == "claim",
        tries=options.count("tries"),
        k=options.count("k"),
        recipe=str(recipe),
    )


def _reader(bench: BuildContext, options: Params) -> tuple[Recipe, Recipe]:
    """Return the recipe with the reader that ``auto`` stands for, and that reader."""
    reader = options.component("reader")
    if reader.name == "auto":
        reader = Recipe("cited" if bench.model else "short")
    return options.recipe.with_options(reader=reader), reader


def _writer(bench: BuildContext, options: Params) -> ChainWriter | None:
    from clew.chains import Limits
    from clew.methods.chain.writing import ChainWriter
    from clew.prompts import load_prompt

    if bench.model is None:
        return None
    claims = options.word("task", TASKS) == "claim"
    least = options.count("least") if options.recipe.option("least") != AUTO else 1 if claims else 2
    if options.word("form", PROMPT_FORMS) == "structured":
        template = load_prompt("chain-structured")
    else:
        template = load_task_prompt("chain-parse", options)
    limits = Limits(least, options.count("most", least))
    return ChainWriter(bench.model, template, options.count("samples"), limits)


def _memory(bench: BuildContext, options: Params) -> Memory:
    from clew.methods.chain.memory import Memory

    return Memory(bench.require_model("chain"), load_task_prompt("chain-memory", options))


def build_graph_source(bench: BuildContext, options: Params) -> GraphSource:
    """Return what looks unknowns up in the graphs of the base."""
    from clew.link.entities import GraphEntityLinker
    from clew.link.relations import GraphRelationLinker, load_aliases
    from clew.methods.chain.graph import GraphSource
    from clew.prompts import load_prompt

    file = options.text("aliases")
    aliases = load_aliases(file) if file else {}
    choosing: dict[str, Any] = {}
    if options.word("entities", ("ranked", "model")) == "model":
        choosing = {"model": bench.require_model("chain(entities=model)"), "template": load_prompt("link-entity")}
    return GraphSource(
        bench.snapshot,
        GraphEntityLinker(bench.encoder, **choosing),
        GraphRelationLinker(bench.encoder, aliases),
        min_score=MIN_RELATION_SCORE if bench.encoder else MIN_RELATION_SCORE_BY_WORDS,
    )


def build_text_source(bench: BuildContext, options: Params, retriever: Retriever, reader: Reader, k: int) -> TextSource:
    """Return what reads unknowns from the ``k`` passages that are found for each hop."""
    from clew.methods.chain.text import TextSource
    from clew.prompts import load_prompt

    template = load_prompt("chain-question") if bench.model else None
    return TextSource(retriever, reader, bench.model, template, k, options.count("values"))


_OPTIONS: dict[str, Value] = {
    "sources": "kg,text,model",
    "aliases": "",
    "entities": Recipe("ranked"),
    "retriever": Recipe("search"),
    "reader": Recipe("auto"),
    "k": 10,
    "values": 3,
    "samples": 1,
    "form": Recipe("fewshot"),
    "task": Recipe("question"),
    "shots": AUTO,
    "exemplars": AUTO,
    "least": AUTO,
    "most": 4,
    "choose": Recipe("order"),
    "tries": 3,
}

CHAIN: dict[str, Component[Method]] = {
    "chain": Component(
        "Semi-Structured Chain-of-Thought: the question as triples, filled from graphs, text and the model's memory; "
        "choose=hop asks them all for every hop and shows where they disagree; task=claim for claims",
        _chain,
        _OPTIONS,
    ),
}
