"""The methods of the catalogue, and the guides and readers that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.catalog.chain import CHAIN
from clew.catalog.focus import FOCUS
from clew.catalog.graphs import GRAPHS
from clew.catalog.parts import BuildContext, Params, Component, Registry
from clew.catalog.prompting import prompting_methods
from clew.catalog.recipe import Recipe, make_recipe, parse_recipe
from clew.catalog.retrievers import RETRIEVERS
from clew.catalog.walks import KGP_OPTIONS, KGP_PAPER
from clew.catalog.web import require_local_retriever
from clew.errors import UsageError, unknown_name_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.methods.guides import Expectation, Guide, Matcher
    from clew.methods.kgp import KGP, StructureFinder
    from clew.protocols import Method, Reader, Retriever
    from clew.types import Hit

GUIDES = ("none", "question", "tfidf", "encoder", "generated", "residual")
MATCHERS = ("tfidf", "encoder")


def _extractive(bench: BuildContext, options: Params) -> Reader:
    from clew.read.extractive import ExtractiveReader

    return ExtractiveReader(bench.snapshot.postings("text"))


def _cited(bench: BuildContext, options: Params) -> Reader:
    from clew.prompts import load_prompt
    from clew.read.cited import CitedReader

    return CitedReader(bench.require_model("cited"), load_prompt("read-cited"))


def _paper(bench: BuildContext, options: Params) -> Reader:
    from clew.prompts import load_prompt
    from clew.read.paper import PaperReader

    def texts(ids: list[str]) -> list[str]:
        return [node.text for node in bench.snapshot.nodes(bench.snapshot.rows(ids))]

    return PaperReader(bench.require_model("paper"), load_prompt("kgp-read"), texts)


def _short(bench: BuildContext, options: Params) -> Reader:
    from clew.read.short import ShortReader

    return ShortReader(_extractive(bench, options))


def _hops(bench: BuildContext, options: Params) -> Reader:
    from clew.prompts import load_prompt
    from clew.read.hops import HopReader

    return HopReader(bench.require_model("hops"), load_prompt("chain-answer"))


READERS: Registry[Reader] = Registry(
    "reader",
    {
        "extractive": Component("the sentences that best answer, taken from the evidence; no model", _extractive),
        "cited": Component("a model answers with quotes, each checked to be in its source; may abstain", _cited),
        "paper": Component("the KGP paper's prompt (Listings 3 and 4)", _paper),
        "short": Component("the name, date or number in the sentence that best answers; no model", _short),
        "hops": Component("the chain paper's: a few-shot prompt for questions of one hop (15 exemplars)", _hops),
    },
)


def _with_reader(bench: BuildContext, options: Params, with_model: str = "cited") -> Params:
    """Return the options with the reader that ``auto`` stands for: an answer names what made it."""
    if options.component("reader").name != "auto":
        return options
    chosen = Recipe(with_model if bench.model else "extractive")
    return Params(make_recipe(options.recipe.name, {**dict(options.recipe.options), "reader": chosen}))


def _reader(bench: BuildContext, options: Params) -> tuple[Reader, Params]:
    options = _with_reader(bench, options)
    return READERS.build(options.component("reader"), bench), options


def _guide(bench: BuildContext, options: Params, seeding: Retriever) -> Guide:
    from clew.methods import guides
    from clew.prompts import load_prompt
    from clew.retrieve.evidence import ContextualSearch
    from clew.retrieve.lexical import TfIdf

    recipe = options.component("guide")
    name = options.word("guide", GUIDES)
    if name == "residual":
        # The same object where it can be: it has weighed the question already.
        return guides.ResidualGuide(
            seeding if isinstance(seeding, ContextualSearch) else ContextualSearch(bench.snapshot, bench.encoder)
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
    from clew.methods.guides import GENERATION_PROMPTS

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
    from clew.graph.reading import StructureReader
    from clew.graph.structure import StructureSearch as Finder
    from clew.prompts import load_prompt

    reader = StructureReader(bench.model, load_prompt("structure")) if bench.model else None
    return Finder(bench.snapshot, reader)


def build_kgp(bench: BuildContext, options: Params) -> KGP:
    """Return Knowledge Graph Prompting with the graph, guide, seeds and bounds of the recipe."""
    from clew.methods.guides import ResidualGuide
    from clew.methods.kgp import KGP
    from clew.read.contents import ContentsReader

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
    from clew.methods.plain import RetrieveAndRead

    retriever = RETRIEVERS.build(options.component("retriever"), bench)
    options = _with_reader(bench, options)
    reader = READERS.build(options.component("reader"), bench)
    return RetrieveAndRead(retriever, reader, options.count("k"), str(options.recipe))


def _none(bench: BuildContext, options: Params) -> Method:
    from clew.methods.direct import Direct
    from clew.prompts import load_prompt

    return Direct(bench.require_model("none"), load_prompt("answer-none"), str(options.recipe))


def _ircot(bench: BuildContext, options: Params) -> Method:
    from clew.methods.ircot import IRCoT
    from clew.prompts import load_prompt

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
    from clew.methods.selfask import SelfAsk
    from clew.prompts import load_prompt

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
    from clew.methods.direct import Golden

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
            "Knowledge Graph Prompting: walk a graph of passages from seeds to evidence", build_kgp, KGP_OPTIONS
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
        **prompting_methods(_reader),
    },
)

#: What measures best on the data that we develop on (docs/benchmarks.md).
DEFAULT = parse_recipe("kgp")
