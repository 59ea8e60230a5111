"""The method focus of the catalogue: its links, rankings and rerankers by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew.catalog.chain import MIN_RELATION_SCORE, MIN_RELATION_SCORE_BY_WORDS, build_graph_source, parse_sources, build_text_source
from clew.catalog.entities import RERANKERS, build_hit_reranker, build_node_search
from clew.catalog.parts import BuildContext, Params, Component
from clew.catalog.recipe import Recipe, make_recipe
from clew.catalog.retrievers import RETRIEVERS
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.catalog.recipe import Value
    from clew.link.relations import GraphRelationLinker
    from clew.methods.chain.filling import KnowledgeSource
    from clew.methods.focus.method import FocusMethod
    from clew.methods.focus.preparing import TriplePreparer
    from clew.methods.focus.reading import DocumentFiller
    from clew.methods.focus.writing import TriplesWriter
    from clew.protocols import EntityLinker, Method
    from clew.retrieve.entities import NodeRanker
    from clew.retrieve.nodetexts import NodeTexts
    from clew.types import Exclusion, Question

RELATIONS = ("typed", "any")
#: ``auto``: by vector where the base has an encoder, else by words; pointwise where there is a model, else none.
SORTS, RERANK_FORMS = ("auto", "vector", "words"), ("auto", *RERANKERS, "none")


def _focus(bench: BuildContext, options: Params) -> FocusMethod:
    from clew.methods.focus.attempts import SubstitutionEngine
    from clew.methods.focus.method import FocusMethod

    options = _complete(bench, options)
    form, k_max = options.word("form", RERANK_FORMS), options.count("k")
    linker = _linker(bench, options)
    reading = _reading(bench, options, linker)
    return FocusMethod(
        bench.snapshot,
        _writer(bench, options),
        SubstitutionEngine(bench.snapshot, _preparer(bench, options, linker), _ranking(bench, options), reading, k_max),
        None if form == "none" else build_hit_reranker(bench, form, k_max, "focus"),
        options.count("tries"),
        str(options.recipe),
    )


def _complete(bench: BuildContext, options: Params) -> Params:
    """Return the options with what ``auto`` stands for: an answer names what made it."""
    recipe = options.recipe
    if options.word("sort", SORTS) == "auto":
        recipe = recipe.with_options(sort=Recipe("vector" if bench.encoder else "words"))
    if options.word("form", RERANK_FORMS) == "auto":
        recipe = recipe.with_options(form=Recipe("pointwise" if bench.model else "none"))
    if options.component("reader").name == "auto":
        recipe = recipe.with_options(reader=Recipe("cited" if bench.model else "short"))
    return Params(recipe)


def focus_exclusions(bench: BuildContext, recipe: Recipe, question: Question, name: str) -> list[Exclusion]:
    """Return why what ``name`` may stand for is no answer to a question with triples of its own: no model is asked.

    Raises UsageError, NotFound.
    """
    if recipe.name != "focus":
        raise UsageError(
            f"'{recipe.name}' has no constraints that drop an answer", "Only focus has: --triples"
        )
    without = {"entities": Recipe("ranked"), "form": Recipe("none"), "reader": Recipe("short")}
    options = Params(make_recipe("focus", {**_OPTIONS, **dict(recipe.options), **without}))
    return _focus(bench, options).why_not(question, name, _linker(bench, options))


def _preparer(bench: BuildContext, options: Params, linker: EntityLinker) -> TriplePreparer:
    """Return what finds the words of a question in a graph."""
    from clew.link.entities import GraphEntityLinker
    from clew.link.nearest import NearestNames
    from clew.methods.focus.constants import ConstantMatcher
    from clew.methods.focus.preparing import TriplePreparer
    from clew.methods.focus.ways import RelationMatcher

    relations = _relations(bench, options)
    meaning = None
    if bench.encoder is not None:
        meaning = GraphEntityLinker(bench.encoder, nearest=NearestNames(bench.encoder))
    matching: Any = options.word("relations", RELATIONS)
    least = MIN_RELATION_SCORE if bench.encoder else MIN_RELATION_SCORE_BY_WORDS
    return TriplePreparer(ConstantMatcher(linker, meaning), RelationMatcher(relations, matching, least), relations)


def _relations(bench: BuildContext, options: Params) -> GraphRelationLinker:
    from clew.link.relations import GraphRelationLinker, load_aliases

    file = options.text("aliases")
    return GraphRelationLinker(bench.encoder, load_aliases(file) if file else {})


def _linker(bench: BuildContext, options: Params) -> EntityLinker:
    from clew.link.entities import GraphEntityLinker
    from clew.prompts import load_prompt

    if options.word("entities", ("ranked", "model")) == "model":
        model = bench.require_model("focus(entities=model)")
        return GraphEntityLinker(bench.encoder, model=model, template=load_prompt("link-entity"))
    return GraphEntityLinker(bench.encoder)


def _ranking(bench: BuildContext, options: Params) -> Callable[[NodeTexts, int | None], NodeRanker]:
    """Return what makes, from the texts of a graph's nodes and how many may be embedded, what ranks them."""
    if options.word("sort", SORTS) == "words":
        return _by_words
    bench.require_encoder("focus(sort=vector)")
    return lambda texts, cap: build_node_search(bench, "focus", texts, cap)


def _by_words(texts: NodeTexts, cap: int | None) -> NodeRanker:
    from clew.retrieve.entities import NodeBM25

    return NodeBM25(texts)


def _writer(bench: BuildContext, options: Params) -> TriplesWriter | None:
    from clew.methods.focus.writing import TriplesWriter
    from clew.prompts import load_prompt

    if bench.model is None:
        return None
    return TriplesWriter(
        bench.model,
        load_prompt("focus-triples"),
        load_prompt("focus-pronouns"),
        _relations(bench, options),
        options.count("samples"),
    )


def _reading(bench: BuildContext, options: Params, linker: EntityLinker) -> DocumentFiller | None:
    """Return what fills the hops that substitution cannot, None where nothing is to."""
    from clew.catalog.methods import READERS
    from clew.methods.focus.reading import DocumentFiller

    said = options.text("sources")
    if said == "none":
        return None
    named = parse_sources(said)
    if "model" in named:
        raise UsageError(
            "'focus' does not answer from the model's memory", "Sources are kg and text; or none"
        )
    # An empty base has nothing to retrieve; what its graphs keep as properties of nodes is looked up all the same.
    named = [one for one in named if one != "text" or bench.snapshot.size]
    retriever = RETRIEVERS.build(options.component("retriever"), bench) if "text" in named else None
    sources: list[KnowledgeSource] = []
    for one in named:
        if one == "kg":
            sources.append(build_graph_source(bench, options))
        elif retriever is not None:
            reader = READERS.build(options.component("reader"), bench)
            sources.append(build_text_source(bench, options, retriever, reader, options.count("passages")))
    return DocumentFiller(tuple(sources), linker, retriever)


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

FOCUS: dict[str, Component[Method]] = {
    "focus": Component(
        "4StepFocus: the question as typed triples, the candidates that meet them in a graph, sorted by vector, the "
        "first k reranked by the model; relations=any is the paper's recipe, which ignores edge types",
        _focus,
        _OPTIONS,
    ),
}
