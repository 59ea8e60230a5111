"""The prompting methods that Su et al. (NAACL 2024, Appendix F) compare with, as parts of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from clew.core.component import BuildContext, Component, Params, Registry
from clew.core.errors import UsageError, unknown_name_error
from clew.core.recipe import Recipe, make_recipe, parse_recipe
from clew.knowledge_base.registry.graphs import GRAPHS
from clew.knowledge_base.registry.retrievers import (
    KGP_OPTIONS,
    KGP_PAPER,
    RERANKERS,
    RETRIEVERS,
    build_hit_reranker,
    build_node_search,
)
from clew.knowledge_base.registry.web import require_local_retriever

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.prompts.templates import Template
    from clew.core.protocols import EntityLinker, Method, Reader, Retriever
    from clew.core.recipe import Value
    from clew.core.types import Exclusion, Hit, Question
    from clew.methods.chain.graph_source import GraphSource
    from clew.methods.chain.memory import Memory
    from clew.methods.chain.text_source import TextSource
    from clew.methods.chain.unknowns import KnowledgeSource
    from clew.methods.chain.writer import ChainWriter
    from clew.methods.focus.document_filling import DocumentFiller
    from clew.methods.focus.method import FocusMethod
    from clew.methods.focus.pattern_builder import TriplePreparer
    from clew.methods.focus.triples_writer import TriplesWriter
    from clew.methods.kgp.guides import Expectation, Guide, Matcher
    from clew.methods.kgp.method import KGP, StructureFinder
    from clew.retrieve.node_texts import NodeTexts
    from clew.retrieve.nodes import NodeRanker
    from clew.triples.linking.relations import GraphRelationLinker

#: Builds the reader that a recipe names, and the recipe with that reader written out.
ReaderFor = Callable[[BuildContext, Params], tuple["Reader", Params]]
TASKS = ("question", "claim")
AUTO = Recipe("auto")


def load_task_prompt(name: str, options: Params) -> Template:
    """Return the few-shot prompt ``name`` for the task of a recipe, with its exemplars and as many as it says."""
    from clew.core.prompts.templates import load_prompt

    suffix = "-claim" if options.word("task", TASKS) == "claim" else ""
    exemplars = options.component("exemplars").name
    return load_prompt(
        f"{name}{suffix}",
        shots=None if options.recipe.option("shots") == AUTO else options.count("shots", 0),
        exemplars=None if exemplars == "auto" else exemplars,
    )


def _fewshot(bench: BuildContext, options: Params) -> Method:
    from clew.methods.baselines.fewshot import FewShot
    from clew.methods.replies import parse_label, parse_short_answer

    claims = options.word("task", TASKS) == "claim"
    return FewShot(
        bench.require_model("fewshot"),
        load_task_prompt("fewshot", options),
        parse_label if claims else parse_short_answer,
        str(options.recipe),
    )


def _cot(bench: BuildContext, options: Params) -> Method:
    from clew.methods.baselines.cot import ChainOfThought
    from clew.methods.replies import parse_final_answer, parse_label

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
    from clew.core.prompts.templates import load_prompt
    from clew.methods.baselines.iterretgen import IterRetGen

    retriever = RETRIEVERS.build(options.component("retriever"), bench)
    model = bench.require_model("iterretgen")
    reader, recipe = _final(reader_for, bench, options)
    bounds = options.count("k"), options.count("rounds")
    return IterRetGen(retriever, model, load_prompt("cot"), reader, *bounds, recipe)


def _react(reader_for: ReaderFor, bench: BuildContext, options: Params) -> Method:
    from clew.core.prompts.templates import load_prompt
    from clew.methods.baselines.react import ReAct

    retriever = RETRIEVERS.build(options.component("retriever"), bench)
    model = bench.require_model("react")
    reader, recipe = _final(reader_for, bench, options)
    bounds = options.count("k"), options.count("rounds"), options.count("budget")
    return ReAct(retriever, model, load_prompt("react"), reader, *bounds, recipe)


def _dsp(reader_for: ReaderFor, bench: BuildContext, options: Params) -> Method:
    from clew.core.prompts.templates import load_prompt
    from clew.methods.baselines.dsp import DSP

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
    pass
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
    from clew.core.prompts.templates import load_prompt
    from clew.methods.chain.writer import ChainWriter
    from clew.triples.language.chain import Limits

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
    from clew.core.prompts.templates import load_prompt
    from clew.methods.chain.graph_source import GraphSource
    from clew.triples.linking.entities import GraphEntityLinker
    from clew.triples.linking.relations import GraphRelationLinker, load_aliases

    file = options.text("aliases")
    aliases = load_aliases(file) if file else {}
    choosing: dict[str, Any] = {}
    if options.word("entities", ("ranked", "model")) == "model":
        choosing = {
            "model": bench.require_model("chain(entities=model)"),
            "template": load_prompt("link-entity"),
        }
    return GraphSource(
        bench.snapshot,
        GraphEntityLinker(bench.encoder, **choosing),
        GraphRelationLinker(bench.encoder, aliases),
        min_score=MIN_RELATION_SCORE if bench.encoder else MIN_RELATION_SCORE_BY_WORDS,
    )


def build_text_source(
    bench: BuildContext, options: Params, retriever: Retriever, reader: Reader, k: int
) -> TextSource:
    """Return what reads unknowns from the ``k`` passages that are found for each hop."""
    from clew.core.prompts.templates import load_prompt
    from clew.methods.chain.text_source import TextSource

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

RELATIONS = ("typed", "any")
#: ``auto``: by vector where the base has an encoder, else by words; pointwise where there is a model, else none.
SORTS, RERANK_FORMS = ("auto", "vector", "words"), ("auto", *RERANKERS, "none")


def _focus(bench: BuildContext, options: Params) -> FocusMethod:
    from clew.methods.focus.interpretations import SubstitutionEngine
    from clew.methods.focus.method import FocusMethod

    options = _complete(bench, options)
    form, k_max = options.word("form", RERANK_FORMS), options.count("k")
    linker = _linker(bench, options)
    reading = _reading(bench, options, linker)
    return FocusMethod(
        bench.snapshot,
        _writer_focus(bench, options),
        SubstitutionEngine(
            bench.snapshot, _preparer(bench, options, linker), _ranking(bench, options), reading, k_max
        ),
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
    options = Params(make_recipe("focus", {**_OPTIONS_focus, **dict(recipe.options), **without}))
    return _focus(bench, options).why_not(question, name, _linker(bench, options))


def _preparer(bench: BuildContext, options: Params, linker: EntityLinker) -> TriplePreparer:
    """Return what finds the words of a question in a graph."""
    from clew.methods.focus.constant_matcher import ConstantMatcher
    from clew.methods.focus.pattern_builder import TriplePreparer
    from clew.methods.focus.relation_matcher import RelationMatcher
    from clew.triples.linking.entities import GraphEntityLinker
    from clew.triples.linking.nearest_names import NearestNames

    relations = _relations(bench, options)
    meaning = None
    if bench.encoder is not None:
        meaning = GraphEntityLinker(bench.encoder, nearest=NearestNames(bench.encoder))
    matching: Any = options.word("relations", RELATIONS)
    least = MIN_RELATION_SCORE if bench.encoder else MIN_RELATION_SCORE_BY_WORDS
    return TriplePreparer(
        ConstantMatcher(linker, meaning), RelationMatcher(relations, matching, least), relations
    )


def _relations(bench: BuildContext, options: Params) -> GraphRelationLinker:
    from clew.triples.linking.relations import GraphRelationLinker, load_aliases

    file = options.text("aliases")
    return GraphRelationLinker(bench.encoder, load_aliases(file) if file else {})


def _linker(bench: BuildContext, options: Params) -> EntityLinker:
    from clew.core.prompts.templates import load_prompt
    from clew.triples.linking.entities import GraphEntityLinker

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
    from clew.retrieve.nodes import NodeBM25

    return NodeBM25(texts)


def _writer_focus(bench: BuildContext, options: Params) -> TriplesWriter | None:
    from clew.core.prompts.templates import load_prompt
    from clew.methods.focus.triples_writer import TriplesWriter

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
    pass
    from clew.methods.focus.document_filling import DocumentFiller

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


_OPTIONS_focus: dict[str, Value] = {
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
        _OPTIONS_focus,
    ),
}

GUIDES = ("none", "question", "tfidf", "encoder", "generated", "residual")
MATCHERS = ("tfidf", "encoder")


def _extractive(bench: BuildContext, options: Params) -> Reader:
    from clew.methods.readers.extractive import ExtractiveReader

    return ExtractiveReader(bench.snapshot.postings("text"))


def _cited(bench: BuildContext, options: Params) -> Reader:
    from clew.core.prompts.templates import load_prompt
    from clew.methods.readers.cited import CitedReader

    return CitedReader(bench.require_model("cited"), load_prompt("read-cited"))


def _paper(bench: BuildContext, options: Params) -> Reader:
    from clew.core.prompts.templates import load_prompt
    from clew.methods.readers.paper import PaperReader

    def texts(ids: list[str]) -> list[str]:
        return [node.text for node in bench.snapshot.nodes(bench.snapshot.rows(ids))]

    return PaperReader(bench.require_model("paper"), load_prompt("kgp-read"), texts)


def _short(bench: BuildContext, options: Params) -> Reader:
    from clew.methods.readers.short import ShortReader

    return ShortReader(_extractive(bench, options))


def _hops(bench: BuildContext, options: Params) -> Reader:
    from clew.core.prompts.templates import load_prompt
    from clew.methods.readers.hops import HopReader

    return HopReader(bench.require_model("hops"), load_prompt("chain-answer"))


READERS: Registry[Reader] = Registry(
    "reader",
    {
        "extractive": Component(
            "the sentences that best answer, taken from the evidence; no model", _extractive
        ),
        "cited": Component(
            "a model answers with quotes, each checked to be in its source; may abstain", _cited
        ),
        "paper": Component("the KGP paper's prompt (Listings 3 and 4)", _paper),
        "short": Component("the name, date or number in the sentence that best answers; no model", _short),
        "hops": Component(
            "the chain paper's: a few-shot prompt for questions of one hop (15 exemplars)", _hops
        ),
    },
)


def _with_reader(bench: BuildContext, options: Params, with_model: str = "cited") -> Params:
    """Return the options with the reader that ``auto`` stands for: an answer names what made it."""
    if options.component("reader").name != "auto":
        return options
    chosen = Recipe(with_model if bench.model else "extractive")
    return Params(make_recipe(options.recipe.name, {**dict(options.recipe.options), "reader": chosen}))


def _reader_methods(bench: BuildContext, options: Params) -> tuple[Reader, Params]:
    options = _with_reader(bench, options)
    return READERS.build(options.component("reader"), bench), options


def _guide(bench: BuildContext, options: Params, seeding: Retriever) -> Guide:
    from clew.core.prompts.templates import load_prompt
    from clew.methods.kgp import guides
    from clew.retrieve.contextual import ContextualSearch
    from clew.retrieve.lexical import TfIdf

    recipe = options.component("guide")
    name = options.word("guide", GUIDES)
    if name == "residual":
        # The same object where it can be: it has weighed the question already.
        return guides.ResidualGuide(
            seeding
            if isinstance(seeding, ContextualSearch)
            else ContextualSearch(bench.snapshot, bench.encoder)
        )
    generated = _generated(recipe) if name == "generated" else {}
    by_vector = "encoder" in (name, generated.get("match"))
    matcher: Matcher
    if name == "none":
        matcher = guides.EqualMatcher()
    elif by_vector:
        matcher = guides.EncoderMatcher(bench.snapshot, bench.require_encoder(f"guide={recipe}"))
    else:
        matcher = guides.LexicalMatcher(TfIdf(bench.snapshot))
    expectation: Expectation = guides.QuestionAndPath()
    if name in {"none", "question"}:
        expectation = guides.QuestionOnly()
    if name == "generated":
        template = load_prompt(guides.GENERATION_PROMPTS[generated["prompt"]])
        expectation = guides.GeneratedEvidence(bench.require_model("guide=generated"), template)
    return guides.TextGuide(bench.snapshot, expectation, matcher)


def _generated(guide: Recipe) -> dict[str, str]:
    """Return what a generated guide matches by, and the prompt that it asks with; options fill in the defaults."""
    from clew.methods.kgp.guides import GENERATION_PROMPTS

    known = {"match": MATCHERS, "prompt": tuple(GENERATION_PROMPTS)}
    words = {"match": "tfidf", "prompt": "untuned"}
    for key, value in guide.options:
        if key not in known:
            raise unknown_name_error("option of 'generated'", key, known)
        words[key] = value.name if isinstance(value, Recipe) else str(value)
        if words[key] not in known[key]:
            raise unknown_name_error(f"{key} of 'generated'", words[key], known[key])
    return words


def _structures(bench: BuildContext, options: Params) -> StructureFinder | None:
    if not options.flag("structures"):
        return None
    from clew.core.prompts.templates import load_prompt
    from clew.retrieve.structure.lookup import StructureReader
    from clew.retrieve.structure.lookup import StructureSearch as Finder

    reader = StructureReader(bench.model, load_prompt("structure")) if bench.model else None
    return Finder(bench.snapshot, reader)


def build_kgp(bench: BuildContext, options: Params) -> KGP:
    """Return Knowledge Graph Prompting with the graph, guide, seeds and bounds of the recipe."""
    from clew.methods.kgp.guides import ResidualGuide
    from clew.methods.kgp.method import KGP
    from clew.methods.readers.extractive import ContentsReader

    options = _with_reader(bench, options)
    named = require_local_retriever(options.component("seeding"), options.recipe.name, "seeding=search")
    seeding = RETRIEVERS.build(named, bench)
    prior, sharpness = options.recipe.option("prior"), options.recipe.option("sharpness")
    together = options.word("context", ("paths", "passages")) == "paths"
    guide = _guide(bench, options, seeding)
    knows_paths = options.component("reader").name == "paper"
    return KGP(
        bench.snapshot,
        seeding,
        GRAPHS.build(options.component("graph"), bench),
        guide,
        READERS.build(options.component("reader"), bench),
        structures=_structures(bench, options),
        contents=None if bench.model else ContentsReader(),
        seeds=options.count("seeds"),
        branch=options.count("branch"),
        hops=options.count("hops"),
        budget=options.count("budget"),
        prior=None if prior is None else options.number("prior"),
        beyond=options.count("beyond"),
        sharpness=None if sharpness is None else options.number("sharpness"),
        relative=not (isinstance(guide, ResidualGuide) and guide.search is seeding),
        context=("paths" if knows_paths else "visited") if together else "passages",
        recipe=str(options.recipe),
    )


def build_kgp_paper(bench: BuildContext, options: Params) -> KGP:
    """Return the paper's own setting (Supplementary 8.2), which needs sentences as passages."""
    parsers = {document.parser for document in bench.snapshot.documents()}
    if others := sorted(parser for parser in parsers if "passages=sentence" not in parser):
        raise UsageError(
            f"'kgp-paper' needs sentences as passages; this base has documents of {others[0]}",
            "Make a base for it: clew add FOLDER --passages sentence --kb OTHER",
        )
    options = _with_reader(bench, options, "paper")
    return build_kgp(bench, options)


def _read(bench: BuildContext, options: Params) -> Method:
    from clew.methods.baselines.plain import RetrieveAndRead

    retriever = RETRIEVERS.build(options.component("retriever"), bench)
    options = _with_reader(bench, options)
    reader = READERS.build(options.component("reader"), bench)
    return RetrieveAndRead(retriever, reader, options.count("k"), str(options.recipe))


def _none(bench: BuildContext, options: Params) -> Method:
    from clew.core.prompts.templates import load_prompt
    from clew.methods.baselines.plain import Direct

    return Direct(bench.require_model("none"), load_prompt("answer-none"), str(options.recipe))


def _ircot(bench: BuildContext, options: Params) -> Method:
    from clew.core.prompts.templates import load_prompt
    from clew.methods.baselines.ircot import IRCoT

    options = _with_reader(bench, options, "paper")
    return IRCoT(
        RETRIEVERS.build(options.component("retriever"), bench),
        bench.require_model("ircot"),
        load_prompt("ircot-reason"),
        READERS.build(options.component("reader"), bench),
        options.count("each"),
        options.count("rounds"),
        options.count("budget"),
        str(options.recipe),
    )


def _selfask(bench: BuildContext, options: Params) -> Method:
    from clew.core.prompts.templates import load_prompt
    from clew.methods.baselines.selfask import SelfAsk

    options = _with_reader(bench, options)
    return SelfAsk(
        RETRIEVERS.build(options.component("retriever"), bench),
        bench.require_model("selfask"),
        load_prompt("selfask"),
        READERS.build(options.component("reader"), bench),
        options.count("k"),
        options.count("rounds"),
        options.count("budget"),
        str(options.recipe),
    )


def build_golden(bench: BuildContext, recipe: Recipe, hits: Sequence[Hit]) -> Method:
    """Return the method that reads ``hits``, which an evaluation knows to be the gold evidence."""
    from clew.methods.baselines.plain import Golden

    options = _with_reader(bench, Params(METHODS.fill_defaults(recipe)))
    return Golden(hits, READERS.build(options.component("reader"), bench), str(options.recipe))


def _no_gold(bench: BuildContext, options: Params) -> Method:
    raise UsageError(
        "'golden' reads the gold evidence, which a question of one's own has not", "clew eval run"
    )


METHODS: Registry[Method] = Registry(
    "recipe",
    {
        "kgp": Component(
            "Knowledge Graph Prompting: walk a graph of passages from seeds to evidence",
            build_kgp,
            KGP_OPTIONS,
        ),
        "kgp-paper": Component(
            "the same as the paper has it: 10 TF-IDF seeds, 2 hops, branch 3, 30 paths, only along edges; "
            "guide 'question' is the paper's 'without LM'",
            build_kgp_paper,
            KGP_PAPER,
        ),
        "read": Component(
            "retrieve once and read: any retriever as a baseline",
            _read,
            {"retriever": Recipe("search"), "reader": Recipe("auto"), "k": 10},
        ),
        "dpr": Component(
            "the KGP paper's baseline DPR: the 30 nearest passages, by an encoder trained for that",
            _read,
            {"retriever": Recipe("dense"), "reader": Recipe("auto"), "k": 30},
        ),
        "mdr": Component(
            "the KGP paper's baseline MDR: 30 passages of the best pairs, by an encoder trained for that",
            _read,
            {"retriever": Recipe("twohop"), "reader": Recipe("auto"), "k": 30},
        ),
        "none": Component("a baseline: the model answers from memory, without evidence", _none),
        "golden": Component(
            "a ceiling: the gold evidence is read (clew eval run only)", _no_gold, {"reader": Recipe("auto")}
        ),
        "ircot": Component(
            "IRCoT: retrieval for each sentence of the model's reasoning",
            _ircot,
            {
                "retriever": Recipe("bm25"),
                "reader": Recipe("auto"),
                "each": 5,
                "rounds": 8,
                "budget": 30,
            },
        ),
        "selfask": Component(
            "Self-Ask: follow-up questions, each answered from what a retriever finds, until the final answer",
            _selfask,
            {"retriever": Recipe("search"), "reader": Recipe("auto"), "k": 10, "rounds": 5, "budget": 30},
        ),
        **CHAIN,
        **FOCUS,
        **prompting_methods(_reader_methods),
    },
)

#: What measures best on the data that we develop on (docs/benchmarks.md).
DEFAULT = parse_recipe("kgp")

# MERGED: The chain method of the catalogue: its sources, readers and links by name.
# MERGED: The method focus of the catalogue: its links, rankings and rerankers by name.
# MERGED: The methods of the catalogue, and the guides and readers that they are made of.
