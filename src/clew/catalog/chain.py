"""The chain method of the catalogue: its sources, readers and links by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.catalog.parts import Bench, Options, Part
from clew.catalog.prompting import AUTO, TASKS, prompt
from clew.catalog.recipe import Recipe
from clew.catalog.retrievers import RETRIEVERS
from clew.errors import UsageError, unknown

if TYPE_CHECKING:
    from clew.catalog.recipe import Value
    from clew.methods.chain.filling import Source
    from clew.methods.chain.graph import GraphSource
    from clew.methods.chain.memory import Memory
    from clew.methods.chain.text import TextSource
    from clew.methods.chain.writing import ChainWriter
    from clew.protocols import Method, Reader, Retriever

#: Where unknowns are looked up: graphs, text, the model's memory, which is always asked last.
SOURCES = ("kg", "text", "model")
#: The score from which on a graph's edges are taken for a hop (docs/benchmarks.md: of relations in other words, nine
#: in ten score more; of hops that a graph lacks, one in fifty). Words alone mistake more for each other.
SURE, SURE_BY_WORDS = 0.3, 0.4
FORMS = ("fewshot", "structured")
CHOICES = ("order", "hop")


def sources_of(said: str) -> list[str]:
    """Return the sources that ``kg,text,model`` names, in that order. Raises UsageError."""
    named = [one.strip() for one in said.split(",") if one.strip()]
    for one in named:
        if one not in SOURCES:
            raise unknown("source of 'chain'", one, SOURCES)
    if not named or len(set(named)) < len(named):
        raise UsageError(f"sources of 'chain' are each named once: '{said}'", "Such as kg,text,model")
    if "model" in named[:-1]:
        raise UsageError(
            f"the model's memory is the last source: '{said}'", "It fills what the others leave open"
        )
    return named


def _chain(bench: Bench, options: Options) -> Method:
    from clew.catalog.methods import READERS
    from clew.methods.chain.method import ChainMethod

    recipe, reader = _reader(bench, options)
    options = Options(recipe)
    retriever = RETRIEVERS.build(options.part("retriever"), bench)
    read = READERS.build(reader, bench)
    named = sources_of(options.text("sources"))
    sources: list[Source] = []
    for one in named:
        if one == "kg":
            sources.append(graph_source(bench, options))
        elif one == "text":
            sources.append(text_source(bench, options, retriever, read, options.count("k")))
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


def _reader(bench: Bench, options: Options) -> tuple[Recipe, Recipe]:
    """Return the recipe with the reader that ``auto`` stands for, and that reader."""
    reader = options.part("reader")
    if reader.name == "auto":
        reader = Recipe("cited" if bench.model else "short")
    return options.recipe.with_options(reader=reader), reader


def _writer(bench: Bench, options: Options) -> ChainWriter | None:
    from clew.chains import Limits
    from clew.methods.chain.writing import ChainWriter
    from clew.prompts import load

    if bench.model is None:
        return None
    claims = options.word("task", TASKS) == "claim"
    least = options.count("least") if options.recipe.option("least") != AUTO else 1 if claims else 2
    if options.word("form", FORMS) == "structured":
        template = load("chain-structured")
    else:
        template = prompt("chain-parse", options)
    limits = Limits(least, options.count("most", least))
    return ChainWriter(bench.model, template, options.count("samples"), limits)


def _memory(bench: Bench, options: Options) -> Memory:
    from clew.methods.chain.memory import Memory

    return Memory(bench.need_model("chain"), prompt("chain-memory", options))


def graph_source(bench: Bench, options: Options) -> GraphSource:
    """Return what looks unknowns up in the graphs of the base."""
    from clew.link.entities import Entities
    from clew.link.relations import Relations, load_aliases
    from clew.methods.chain.graph import GraphSource
    from clew.prompts import load

    file = options.text("aliases")
    aliases = load_aliases(file) if file else {}
    choosing: dict[str, Any] = {}
    if options.word("entities", ("ranked", "model")) == "model":
        choosing = {"model": bench.need_model("chain(entities=model)"), "template": load("link-entity")}
    return GraphSource(
        bench.snapshot,
        Entities(bench.encoder, **choosing),
        Relations(bench.encoder, aliases),
        least=SURE if bench.encoder else SURE_BY_WORDS,
    )


def text_source(bench: Bench, options: Options, retriever: Retriever, reader: Reader, k: int) -> TextSource:
    """Return what reads unknowns from the ``k`` passages that are found for each hop."""
    from clew.methods.chain.text import TextSource
    from clew.prompts import load

    template = load("chain-question") if bench.model else None
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

CHAIN: dict[str, Part[Method]] = {
    "chain": Part(
        "Semi-Structured Chain-of-Thought: the question as triples, filled from graphs, text and the model's memory; "
        "choose=hop asks them all for every hop and shows where they disagree; task=claim for claims",
        _chain,
        _OPTIONS,
    ),
}
