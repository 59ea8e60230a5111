"""The retriever ``drill``, its paper's setting, and the summaries that both show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clew.catalog.baselines import CONTEXT, CROSS_ENCODER, MONOT5, base_selector, reranker_selector, context_window
from clew.catalog.parts import BuildContext, Params, Component
from clew.catalog.recipe import Recipe
from clew.catalog.web import require_local_retriever
from clew.errors import UsageError, unknown_name_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from clew.catalog.parts import Registry
    from clew.catalog.recipe import Value
    from clew.drill.choosing import Chooser
    from clew.drill.extracts import ExtractiveSummariser
    from clew.drill.paragraphs import HierarchicalSelector, ParagraphSelector
    from clew.drill.summaries import Summaries
    from clew.drill.written import ModelSummariser
    from clew.protocols import LanguageModel, Retriever
    from clew.types import Usage

EXTRACTIVE = "extractive"
#: What people call summarisers.
SUMMARISERS = (EXTRACTIVE, "model", "local:facebook/bart-large-cnn")
#: Ways of choosing paragraphs.
PARAGRAPHS = (
    "auto",
    "base",
    "hierbase",
    "monot5",
    "base+monot5",
    "monot5+base",
    "cross-encoder",
    "encoder",
)
#: Paragraphs that a reranker keeps, and words of a paragraph's summary.
RERANKED_PARAGRAPHS, PARAGRAPH_WORDS = 10, 32
#: Tokens of a section that a summariser is given: bart-large's window less what the count by rule may miss.
BART_ROOM, MODEL_ROOM = 800, 3000


def extractive_summariser(bench: BuildContext, words: int) -> ExtractiveSummariser:
    """Return the extractive summariser, with the encoder of ``bench`` where it has one."""
    from clew.drill.extracts import ExtractiveSummariser

    return ExtractiveSummariser(words, bench.encoder)


def model_summariser(
    model: LanguageModel, words: int, local: bool, spent: Callable[[Usage], None] = lambda usage: None
) -> ModelSummariser:
    """Return the summariser that asks ``model``; ``local``: one made for summaries, which is given the text alone."""
    from clew.drill.written import ModelSummariser
    from clew.models.tokens import count_tokens
    from clew.prompts import load_prompt

    template = load_prompt("drill-text" if local else "drill-summarise")
    return ModelSummariser(model, template, words, BART_ROOM if local else MODEL_ROOM, count_tokens, spent)


def open_summaries(
    bench: BuildContext, summariser: str, words: int, spent: Callable[[Usage], None] = lambda usage: None
) -> Summaries:
    """Return the summaries of a summariser: ``extractive``, ``model`` (that of ``bench``) or ``local:NAME``.

    Raises UsageError for another name, and where there is no model.
    """
    from clew.drill.summaries import Summaries

    made = Summaries(bench.snapshot, extractive_summariser(bench, words))
    if summariser == EXTRACTIVE or not words:
        return made
    if summariser == "model":
        return replace(made, summariser=model_summariser(bench.require_model("summariser=model"), words, False, spent))
    if summariser.startswith("local:"):
        from clew.models import create_language_model

        return replace(made, summariser=model_summariser(create_language_model(summariser), words, True, spent))
    raise unknown_name_error("summariser", summariser, SUMMARISERS)


def make_summaries(recipe: Recipe, bench: BuildContext) -> None:
    """Make the summaries that a recipe shows and that are not made when they are asked for. Raises ModelError."""
    from clew.drill.representation import Outlines

    for part in (value for _, value in recipe.options if isinstance(value, Recipe)):
        make_summaries(part, bench)
    if recipe.name not in D3_RETRIEVERS:
        return
    options = {**(_PAPER if recipe.name == "drill-paper" else _DRILL), **dict(recipe.options)}
    name, words = str(options["summariser"]), options["words"]
    if name == EXTRACTIVE or not isinstance(words, int) or not words:
        return
    outlines = Outlines(bench.snapshot, bench.encoder)
    sections = [one for document in bench.snapshot.documents() for one in outlines.of(document.key).sections]
    open_summaries(bench, name, words).make(sections)


def _chooser(bench: BuildContext, options: Params, prompt: str) -> Chooser | None:
    """Return what asks the model, or None where there is none."""
    from clew.drill.choosing import Chooser
    from clew.prompts import load_prompt

    chosen = options.word("names", ("headings", "uuid"))
    if bench.model is None:
        return None
    form: Literal["paper", "numbered"] = "paper" if prompt == "drill-paper" else "numbered"
    # The ablation of Table 4 is about sections: a document keeps its name.
    hidden = chosen == "uuid" and prompt != "drill-documents"
    names: Literal["headings", "uuid"] = "uuid" if hidden else "headings"
    return Chooser(
        bench.model,
        load_prompt(prompt),
        context_window(options.count("context")),
        form=form,
        condense=form == "numbered",
        names=names,
        calls=None if options.recipe.option("calls") is None else options.count("calls"),
    )


def _selector(bench: BuildContext, options: Params) -> ParagraphSelector | None:
    """Return the strategy for paragraphs (D3, Section 3.3.2); None ranks them by search and encoder."""
    from clew.drill.paragraphs import SelectorChain

    name = options.word("paragraphs", PARAGRAPHS)
    if name == "auto":
        name = "base" if bench.model is not None else "encoder"
    who, context = options.recipe.name, options.count("context")

    def monot5() -> ParagraphSelector:
        return reranker_selector(f"monot5:{options.text('monot5')}", RERANKED_PARAGRAPHS)

    if name == "encoder":
        return None
    if name == "base":
        return base_selector(bench, context, who)
    if name == "hierbase":
        return _hierbase(bench, context, who)
    if name == "monot5":
        return monot5()
    if name == "base+monot5":
        return SelectorChain(base_selector(bench, context, who), monot5())
    if name == "monot5+base":
        return SelectorChain(monot5(), base_selector(bench, context, who))
    return reranker_selector(f"cross-encoder:{options.text('cross-encoder')}", RERANKED_PARAGRAPHS)


def _hierbase(bench: BuildContext, context: int, who: str) -> HierarchicalSelector:
    from clew.drill.extracts import SectionText
    from clew.drill.paragraphs import HierarchicalSelector

    short = extractive_summariser(bench, PARAGRAPH_WORDS)
    return HierarchicalSelector(
        base_selector(bench, context, who),
        lambda nodes: short.summarise([SectionText(node.name, (node.text,)) for node in nodes]),
    )


def d3_retrievers(retrievers: Callable[[], Registry[Retriever]]) -> dict[str, Component[Retriever]]:
    """Return the parts; ``retrievers`` gives the shelf on which the search that they use stands."""

    def drill(bench: BuildContext, options: Params) -> Retriever:
        from clew.drill.collection import DocumentSummaries
        from clew.drill.drill import Drill
        from clew.drill.representation import Outlines
        from clew.drill.scoring import SectionScorer

        paper = options.recipe.name == "drill-paper"
        if paper:
            bench.require_model("drill-paper")
        search = options.component("search")
        if search.name in D3_RETRIEVERS:
            raise UsageError(f"'{options.recipe.name}' cannot search with '{search.name}'", "search=search")
        require_local_retriever(search, options.recipe.name, "search=search")
        outlines = Outlines(bench.snapshot, bench.encoder, pages=options.flag("pages"))
        made = open_summaries(bench, options.text("summariser"), options.count("words", 0))
        return Drill(
            bench.snapshot,
            retrievers().build(search, bench),
            outlines,
            made,
            DocumentSummaries(bench.snapshot, outlines, made),
            SectionScorer(bench.snapshot, made, bench.encoder),
            chooser=_chooser(bench, options, "drill-paper" if paper else "drill-sections"),
            librarian=_chooser(bench, options, "drill-documents"),
            selector=_selector(bench, options),
            documents=options.count("documents"),
            shown=options.count("shown"),
            sections=options.count("sections"),
            hints=options.count("hints", 0),
            tables=not paper,
        )

    return {
        "drill": Component(
            "down into the structure: a model chooses documents, then sections, by name and summary, then "
            "paragraphs; without a model by score",
            drill,
            _DRILL,
        ),
        "drill-paper": Component(
            "D3 as the paper has it: its prompt, the whole outline, summaries of bart-large-cnn, no hints",
            drill,
            _PAPER,
        ),
    }


D3_RETRIEVERS = ("drill", "drill-paper")
_DRILL: dict[str, Value] = {
    "search": Recipe("search"),
    "documents": 3,
    "shown": 20,
    "sections": 5,
    "paragraphs": Recipe("auto"),
    "summariser": Recipe(EXTRACTIVE),
    "words": 64,
    "context": 16_384,
    "calls": None,
    "hints": 5,
    "names": Recipe("headings"),
    "pages": False,
    "monot5": MONOT5,
    "cross-encoder": CROSS_ENCODER,
}
_PAPER: dict[str, Value] = {
    **_DRILL,
    "paragraphs": Recipe("base"),
    "summariser": "local:facebook/bart-large-cnn",
    "words": 142,
    "context": CONTEXT,
    "hints": 0,
}
