"""The method focus of the catalogue: its links, rankings and rerankers by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew.catalog.chain import SURE, SURE_BY_WORDS, graph_source, sources_of, text_source
from clew.catalog.entities import RERANKERS, hit_reranker, node_search
from clew.catalog.parts import Bench, Options, Part
from clew.catalog.recipe import Recipe, make
from clew.catalog.retrievers import RETRIEVERS
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.catalog.recipe import Value
    from clew.link.relations import Relations
    from clew.methods.chain.filling import Source
    from clew.methods.focus.method import FocusMethod
    from clew.methods.focus.preparing import Preparer
    from clew.methods.focus.reading import Reading
    from clew.methods.focus.writing import TriplesWriter
    from clew.protocols import EntityLinker, Method
    from clew.retrieve.entities import NodeRanking
    from clew.retrieve.nodetexts import NodeTexts
    from clew.types import Exclusion, Question

RELATIONS = ("typed", "any")
#: ``auto``: by vector where the base has an encoder, else by words; pointwise where there is a model, else none.
SORTS, FORMS = ("auto", "vector", "words"), ("auto", *RERANKERS, "none")


def _focus(bench: Bench, options: Options) -> FocusMethod:
    from clew.methods.focus.attempts import Attempts
    from clew.methods.focus.method import FocusMethod

    options = _complete(bench, options)
    form, k_max = options.word("form", FORMS), options.count("k")
    linker = _linker(bench, options)
    reading = _reading(bench, options, linker)
    return FocusMethod(
        bench.snapshot,
        _writer(bench, options),
        Attempts(bench.snapshot, _preparer(bench, options, linker), _ranking(bench, options), reading, k_max),
        None if form == "none" else hit_reranker(bench, form, k_max, "focus"),
        options.count("tries"),
        str(options.recipe),
    )


def _complete(bench: Bench, options: Options) -> Options:
    """Return the options with what ``auto`` stands for: an answer names what made it."""
    recipe = options.recipe
    if options.word("sort", SORTS) == "auto":
        recipe = recipe.with_options(sort=Recipe("vector" if bench.encoder else "words"))
    if options.word("form", FORMS) == "auto":
        recipe = recipe.with_options(form=Recipe("pointwise" if bench.model else "none"))
    if options.part("reader").name == "auto":
        recipe = recipe.with_options(reader=Recipe("cited" if bench.model else "short"))
    return Options(recipe)


def excluded(bench: Bench, recipe: Recipe, question: Question, name: str) -> list[Exclusion]:
    """Return why what ``name`` may stand for is no answer to a question with triples of its own: no model is asked.

    Raises UsageError, NotFound.
    """
    if recipe.name != "focus":
        raise UsageError(
            f"'{recipe.name}' has no constraints that drop an answer", "Only focus has: --triples"
        )
    without = {"entities": Recipe("ranked"), "form": Recipe("none"), "reader": Recipe("short")}
    options = Options(make("focus", {**_OPTIONS, **dict(recipe.options), **without}))
    return _focus(bench, options).why_not(question, name, _linker(bench, options))


def _preparer(bench: Bench, options: Options, linker: EntityLinker) -> Preparer:
    """Return what finds the words of a question in a graph."""
    from clew.link.entities import Entities
    from clew.link.nearest import NearestNames
    from clew.methods.focus.constants import Constants
    from clew.methods.focus.preparing import Preparer
    from clew.methods.focus.ways import Ways

    relations = _relations(bench, options)
    meaning = None
    if bench.encoder is not None:
        meaning = Entities(bench.encoder, nearest=NearestNames(bench.encoder))
    matching: Any = options.word("relations", RELATIONS)
    least = SURE if bench.encoder else SURE_BY_WORDS
    return Preparer(Constants(linker, meaning), Ways(relations, matching, least), relations)


def _relations(bench: Bench, options: Options) -> Relations:
    from clew.link.relations import Relations, load_aliases

    file = options.text("aliases")
    return Relations(bench.encoder, load_aliases(file) if file else {})


def _linker(bench: Bench, options: Options) -> EntityLinker:
    from clew.link.entities import Entities
    from clew.prompts import load

    if options.word("entities", ("ranked", "model")) == "model":
        model = bench.need_model("focus(entities=model)")
        return Entities(bench.encoder, model=model, template=load("link-entity"))
    return Entities(bench.encoder)


def _ranking(bench: Bench, options: Options) -> Callable[[NodeTexts, int | None], NodeRanking]:
    """Return what makes, from the texts of a graph's nodes and how many may be embedded, what ranks them."""
    if options.word("sort", SORTS) == "words":
        return _by_words
    bench.need_encoder("focus(sort=vector)")
    return lambda texts, cap: node_search(bench, "focus", texts, cap)


def _by_words(texts: NodeTexts, cap: int | None) -> NodeRanking:
    from clew.retrieve.entities import NodeWords

    return NodeWords(texts)


def _writer(bench: Bench, options: Options) -> TriplesWriter | None:
    from clew.methods.focus.writing import TriplesWriter
    from clew.prompts import load

    if bench.model is None:
        return None
    return TriplesWriter(
        bench.model,
        load("focus-triples"),
        load("focus-pronouns"),
        _relations(bench, options),
        options.count("samples"),
    )


def _reading(bench: Bench, options: Options, linker: EntityLinker) -> Reading | None:
    """Return what fills the hops that substitution cannot, None where nothing is to."""
    from clew.catalog.methods import READERS
    from clew.methods.focus.reading import Reading

    said = options.text("sources")
    if said == "none":
        return None
    named = sources_of(said)
    if "model" in named:
        raise UsageError(
            "'focus' does not answer from the model's memory", "Sources are kg and text; or none"
        )
    # An empty base has nothing to retrieve; what its graphs keep as properties of nodes is looked up all the same.
    named = [one for one in named if one != "text" or bench.snapshot.size]
    retriever = RETRIEVERS.build(options.part("retriever"), bench) if "text" in named else None
    sources: list[Source] = []
    for one in named:
        if one == "kg":
            sources.append(graph_source(bench, options))
        elif retriever is not None:
            reader = READERS.build(options.part("reader"), bench)
            sources.append(text_source(bench, options, retriever, reader, options.count("passages")))
    return Reading(tuple(sources), linker, retriever)


_OPTIONS: dict[str, Value] = {
    "relations": Recipe("typed"),
    "sort": Recipe("auto"),
    "form": Recipe("auto"),
    "k": 20,
    "samples": 1,
    "tries": 3,
    "entities": Recipe("ranked"),
    "aliases": "",
    "sources": "kg,text",
    "retriever": Recipe("search"),
    "reader": Recipe("auto"),
    "passages": 10,
    "values": 3,
}

FOCUS: dict[str, Part[Method]] = {
    "focus": Part(
        "4StepFocus: the question as typed triples, the candidates that meet them in a graph, sorted by vector, the "
        "first k reranked by the model; relations=any is the paper's recipe, which ignores edge types",
        _focus,
        _OPTIONS,
    ),
}
