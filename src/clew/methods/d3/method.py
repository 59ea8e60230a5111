"""Drilling down (D3: Nair et al., EMNLP 2023): documents, then their sections, then paragraphs of those.

Section 3.3: a model is shown the condensed representation of a document and names sections; the paragraphs of
these go to a second choice (:mod:`clew.methods.d3.paragraphs`). Deviations, each on purpose (decision 9):

- *Many documents.* A level above sections, by name and summary (:mod:`clew.methods.d3.summaries`).
- *No detail is lost to a summary.* The best hits of our own search are shown as hints beside their sections, and
  are themselves among the paragraphs of the second choice, whether or not their section was named. What the
  model does not name is not read in full; what matches strongly is still judged.
- *No model.* Sections are scored by name, summary and best passages; over the whole base then every hit of the
  search is kept, and its section's score raises it.
- The trail says for each section why it was taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from clew.core.component import AtLeast, Resources, component, declarations
from clew.core.errors import BudgetExceeded, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.recipe import Recipe
from clew.core.steps import ChoiceStep, DocumentsStep, SearchStep, SectionReasons, SectionsStep
from clew.core.trail import TrailRecorder, explore_retriever
from clew.core.types import PAGE, RETRIEVED_KINDS, TABLE, Hit, Node, StoppedStep
from clew.methods.d3.baselines import CROSS_ENCODER, MONOT5
from clew.methods.d3.chooser import Choice, Chooser, Entry
from clew.methods.d3.outline import Outlines, documents
from clew.methods.d3.paragraphs import (
    HierarchicalSelector,
    ParagraphSelector,
    PromptSelector,
    RerankerSelector,
    SelectorChain,
    create_window,
)
from clew.methods.d3.scoring import SectionScorer, SectionScores
from clew.methods.d3.summaries import DocumentSummaries, Summaries, open_summaries
from clew.methods.d3.summarisers import ExtractiveSummariser, SectionText

if TYPE_CHECKING:
    from clew.core.protocols import Retriever, Snapshot, Trail
    from clew.core.types import Question
    from clew.methods.d3.outline import Section

#: Hits of the search that speak for documents and sections.
SEARCH_HITS = 200
#: Words of a passage that a hint shows.
HINT_WORDS = 20
#: How much a section's own words raise a hit, in shares of the best hit's score (docs/decisions/0009).
HEADING_LIFT = 0.03
#: Hits whose sections are looked at without a model, if no more are asked for.
LIFTED_HITS = 50


@dataclass(frozen=True, slots=True)
class ChosenSection:
    """A section that was taken, and why."""

    section: Section
    reasons: tuple[str, ...]


#: Ways of choosing paragraphs (Section 3.3.2); ``encoder`` ranks them by search and section, without a model.
ParagraphStrategy = Literal[
    "auto", "base", "hierbase", "monot5", "base+monot5", "monot5+base", "cross-encoder", "encoder"
]
#: Paragraphs that a reranker keeps, and words of a paragraph's summary.
RERANKED_PARAGRAPHS, PARAGRAPH_WORDS = 10, 32


def create_selector(
    resources: Resources,
    component: str,
    strategy: ParagraphStrategy,
    context: int,
    monot5: str,
    cross_encoder: str,
) -> ParagraphSelector | None:
    """Return the strategy for paragraphs, None for ``encoder``. Raises UsageError where it needs a model."""
    if strategy == "auto":
        strategy = "encoder" if resources.model is None else "base"
    if strategy == "encoder":
        return None
    if strategy == "cross-encoder":
        return RerankerSelector(
            resources.tools.reranker(f"cross-encoder:{cross_encoder}"), RERANKED_PARAGRAPHS
        )
    selectors: list[ParagraphSelector] = []
    for name in strategy.split("+"):
        if name == "monot5":
            selectors.append(
                RerankerSelector(resources.tools.reranker(f"monot5:{monot5}"), RERANKED_PARAGRAPHS)
            )
            continue
        base = PromptSelector.build(resources, context, component)
        selectors.append(
            base if name == "base" else HierarchicalSelector(base, _paragraph_summaries(resources))
        )
    return selectors[0] if len(selectors) == 1 else SelectorChain(*selectors)


def _paragraph_summaries(resources: Resources) -> Callable[[Sequence[Node]], Sequence[str]]:
    summariser = ExtractiveSummariser(PARAGRAPH_WORDS, resources.encoder)
    return lambda nodes: summariser.summarise([SectionText(node.name, (node.text,)) for node in nodes])


@component(
    "drill(search=search, summariser=extractive)",
    summary="down into the structure: a model chooses documents, then sections, by name and summary, then "
    "paragraphs; without a model by score",
    paper="Nair et al., EMNLP 2023",
)
@component(
    "drill-paper(search=search, summariser='local:facebook/bart-large-cnn', paragraphs=base, words=142, "
    "context=4096, hints=0)",
    summary="D3 as the paper has it: its prompt, the whole outline, summaries of bart-large-cnn, no hints",
    paper="Nair et al., EMNLP 2023",
)
@dataclass(frozen=True, slots=True)
class Drill:
    """The retriever.

    ``chooser`` asks a model for sections, ``librarian`` for documents; without them, sections and documents are
    taken by score. ``selector`` chooses among the paragraphs of the sections; without one they are ranked by the
    search's score, then by their section's. At most ``documents`` documents of ``shown`` and, without a model,
    ``sections`` sections are taken. ``hints`` is how many hits are hinted at and kept, ``tables``
    whether tables are entries; 0 and False are the paper's form.
    """

    snapshot: Snapshot
    search: Retriever
    outlines: Outlines
    summaries: Summaries
    document_summaries: DocumentSummaries
    scorer: SectionScorer
    chooser: Chooser | None = None
    librarian: Chooser | None = None
    selector: ParagraphSelector | None = None
    documents: int = 3
    shown: int = 20
    sections: int = 5
    hints: int = 5
    tables: bool = True

    @classmethod
    def build(  # noqa: PLR0913 (the options of the recipe)
        cls,
        resources: Resources,
        recipe: Recipe,
        search: Recipe,
        summariser: str,
        documents: int = 3,
        shown: int = 20,
        sections: int = 5,
        paragraphs: ParagraphStrategy = "auto",
        words: Annotated[int, AtLeast(0)] = 64,
        context: int = 16_384,
        calls: int | None = None,
        hints: Annotated[int, AtLeast(0)] = 5,
        names: Literal["headings", "uuid"] = "headings",
        pages: bool = False,
        monot5: str = MONOT5,
        cross_encoder: str = CROSS_ENCODER,
    ) -> Drill:
        """Return the retriever, by score where there is no model; ``drill-paper`` needs one. Raises UsageError."""
        paper = recipe.name == "drill-paper"
        if paper:
            resources.require_model(recipe.name)
        if search.name in {declared.name for declared in declarations(cls)}:
            raise UsageError(f"'{recipe.name}' cannot search with '{search.name}'", "search=search")
        snapshot, encoder = resources.snapshot, resources.encoder
        outlines = Outlines(snapshot, encoder, pages=pages)
        summaries = open_summaries(resources, summariser, words)
        chooser = librarian = None
        if resources.model is not None:
            window = create_window(resources, context)
            form: Literal["paper", "numbered"] = "paper" if paper else "numbered"
            template = load_prompt("drill-paper" if paper else "drill-sections")
            chooser = Chooser(
                resources.model, template, window, form=form, condense=not paper, names=names, calls=calls
            )
            # The ablation of Table 4 (``names=uuid``) is about sections: a document keeps its name.
            librarian = Chooser(
                resources.model,
                load_prompt("drill-documents"),
                window,
                form="numbered",
                condense=True,
                calls=calls,
            )
        return cls(
            snapshot,
            resources.local_retriever(search, recipe.name, "search"),
            outlines,
            summaries,
            DocumentSummaries(snapshot, outlines, summaries),
            SectionScorer(snapshot, summaries, encoder),
            chooser=chooser,
            librarian=librarian,
            selector=create_selector(resources, recipe.name, paragraphs, context, monot5, cross_encoder),
            documents=documents,
            shown=shown,
            sections=sections,
            hints=hints,
            tables=not paper,
        )

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best passages and table rows, best first."""
        return self.explore(question, k, TrailRecorder())

    def explore(self, question: Question, k: int, trail: Trail) -> list[Hit]:
        """Return the same, and tell the trail each step. A budget that is spent ends the search: what was taken
        so far is then ranked without the model."""
        started = time.perf_counter()
        found = explore_retriever(self.search, question, max(k, SEARCH_HITS), trail)
        trail.add(SearchStep(len(found), seconds=time.perf_counter() - started))
        if self.chooser is None and self.selector is None:
            ahead = max(k, LIFTED_HITS)
            return [*self._lifted(question, found[:ahead], trail), *found[ahead:]][:k]
        taken, hits = self._drilled(question, found, trail)
        nodes = self._paragraphs(question, taken, hits)
        why = {row: one for one in reversed(taken) for row in one.section.rows}
        if self.selector is None:
            ranked = self._ranked(nodes, found)
        else:
            try:
                ranked = self.selector.select(question.text, nodes, trail)
            except BudgetExceeded as error:
                trail.add(StoppedStep(error.problem))
                ranked = self._ranked(nodes, found)
        return [self._hit(node, score, why) for node, score in ranked[:k]]

    def _drilled(
        self, question: Question, found: Sequence[Hit], trail: Trail
    ) -> tuple[list[ChosenSection], list[Hit]]:
        """Return the sections that were taken, and the hits that are kept besides."""
        keys = self._keys(question)
        try:
            keys = self._documents(question, keys, found, trail)
            inside = frozenset(keys)
            hits = [hit for hit in found if hit.node.document in inside]
            return self._sections(question, keys, hits, trail), hits[: self.hints]
        except BudgetExceeded as error:
            trail.add(StoppedStep(error.problem))
            return [], list(found[: max(self.hints, SEARCH_HITS // 10)])

    def _keys(self, question: Question) -> list[str]:
        inside = question.scope.documents
        return [key for key in documents(self.snapshot) if inside is None or key in inside]

    # Documents

    def _documents(
        self, question: Question, keys: Sequence[str], found: Sequence[Hit], trail: Trail
    ) -> list[str]:
        """Return the documents whose sections are looked at."""
        short = shortlist(found, keys, self.shown if self.librarian else self.documents)
        if len(keys) <= 1 or (len(short) <= 1 and self.librarian is None):
            return short
        if self.librarian is None:
            trail.add(DocumentsStep(len(keys), chosen=tuple(self._names(short))))
            return short
        started = time.perf_counter()
        entries = self._document_entries(short, found, trail)
        choice = self.librarian.choose(question.text, entries)
        chosen = [short[n] for n in choice.indexes]
        # In the order of the search: the model's list is cut where it is too long.
        chosen = chosen[: self.documents]
        step = DocumentsStep(len(keys), len(short), tuple(self._names(chosen)))
        trail.add(_with_choice(step, self.librarian, choice, started))
        return chosen

    def _document_entries(self, keys: Sequence[str], found: Sequence[Hit], trail: Trail) -> list[Entry]:
        known = documents(self.snapshot)
        texts = self.document_summaries.of(keys, trail)
        entries = []
        for place, (key, text) in enumerate(zip(keys, texts, strict=True)):
            document = known[key]
            title = document.title if document.title not in {"", document.name} else ""
            about = "; ".join(part for part in (title, _pages(document.pages)) if part)
            hint = next((hit for hit in found[: self.hints] if hit.node.document == key), None)
            entries.append(
                Entry(f"{key}:0", (document.name,), text, about, _words(hint), priority=-float(place))
            )
        return entries

    def _names(self, keys: Sequence[str]) -> list[str]:
        known = documents(self.snapshot)
        return [known[key].name for key in keys]

    # Sections

    def _sections(
        self, question: Question, keys: Sequence[str], hits: Sequence[Hit], trail: Trail
    ) -> list[ChosenSection]:
        """Return the sections whose paragraphs are looked at."""
        started = time.perf_counter()
        known = [section for key in keys for section in self.outlines.of(key).sections]
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        known = [one for one in known if (self.tables or one.kind != TABLE) and allowed[list(one.rows)].any()]
        rows = self.snapshot.rows([hit.node.id for hit in hits])
        by_row = dict(zip(rows.tolist(), hits, strict=True))
        support = self.scorer.score_sections(question.text, known, by_row, trail)
        if self.chooser is None:
            order = sorted(range(len(known)), key=lambda n: (-support[n].total, known[n].id))
            taken = [ChosenSection(known[n], tuple(support[n].reasons())) for n in order[: self.sections]]
            trail.add(_sections_step(taken, len(known), started))
            return taken
        entries = self._section_entries(known, support, rows[: self.hints].tolist(), by_row, len(keys) > 1)
        whole = sum(self.chooser.window.tokens(self.snapshot.document_text(key)) for key in keys)
        choice = self.chooser.choose(question.text, entries, whole)
        taken = [
            ChosenSection(
                known[n],
                ("named by the model", *(["hint"] if entries[n].hint else []), *support[n].reasons()),
            )
            for n in choice.indexes
        ]
        step = _sections_step(taken, len(known), started)
        trail.add(_with_choice(step, self.chooser, choice, started))
        return taken

    def _section_entries(
        self,
        sections: Sequence[Section],
        support: Sequence[SectionScores],
        hinted: Sequence[int],
        hits: Mapping[int, Hit],
        several: bool,
    ) -> list[Entry]:
        """Return what the model is shown; each hint stands once, at the smallest entry that holds it."""
        smallest: dict[int, int] = {}
        for n, one in enumerate(sections):
            for row in one.rows:
                if row in hits and (row not in smallest or len(one.rows) < len(sections[smallest[row]].rows)):
                    smallest[row] = n
        hints: dict[int, Hit] = {}
        for row in hinted:
            if row in smallest:
                hints.setdefault(smallest[row], hits[row])
        summaries = self.summaries.of(sections)
        names = dict(zip([one.document for one in sections], [""] * len(sections), strict=True))
        titles = dict(zip(names, self._names(list(names)), strict=True))
        made = []
        for n, (one, text) in enumerate(zip(sections, summaries, strict=True)):
            about = [f"table, {len(one.rows)} rows"] if one.kind == TABLE else []
            if self.hints and one.pages and one.kind != PAGE:
                first, last = one.pages
                about.append(f"page {first}" if first == last else f"pages {first}-{last}")
            path = (titles[one.document], *one.path) if several else one.path
            made.append(Entry(one.id, path, text, ", ".join(about), _words(hints.get(n)), support[n].total))
        return made

    # Paragraphs

    def _paragraphs(
        self, question: Question, taken: Sequence[ChosenSection], hits: Sequence[Hit]
    ) -> list[Node]:
        """Return the paragraphs of the sections and the kept hits, each once, in reading order by document."""
        rows = np.array(sorted({row for one in taken for row in one.section.rows}), dtype=np.int64)
        kept = self.snapshot.rows([hit.node.id for hit in hits])
        rows = np.union1d(rows, kept)
        return self.snapshot.nodes(rows[self.snapshot.mask(question.scope, RETRIEVED_KINDS)[rows]])

    def _ranked(self, nodes: Sequence[Node], found: Sequence[Hit]) -> list[tuple[Node, float]]:
        """Return paragraphs by the search's score; those that it did not find after them, as they stand."""
        scores = {hit.node.id: hit.score for hit in found}
        ranked = sorted(nodes, key=lambda node: -scores.get(node.id, -np.inf))
        return [(node, scores.get(node.id, 0.0)) for node in ranked]

    def _hit(self, node: Node, score: float, why: Mapping[int, ChosenSection]) -> Hit:
        row = int(self.snapshot.rows([node.id])[0])
        one = why.get(row)
        reason = (
            f"section {one.section.name} ({'; '.join(one.reasons)})" if one else "hint: best of the search"
        )
        return Hit(node, score, (f"{node.document}:0", node.id), (reason,))

    # Without a model, over everything

    def _lifted(self, question: Question, found: Sequence[Hit], trail: Trail) -> list[Hit]:
        """Return the hits of the search, each raised by what its section says of itself."""
        started = time.perf_counter()
        rows = self.snapshot.rows([hit.node.id for hit in found]).tolist()
        of_row: dict[int, Section] = {}
        for key in dict.fromkeys(hit.node.document for hit in found):
            own = [row for row, hit in zip(rows, found, strict=True) if hit.node.document == key]
            of_row.update(self.outlines.sections_of(key, own))
        sections = list({one.id: one for row in rows if (one := of_row.get(row))}.values())
        support = dict(
            zip(
                (one.id for one in sections),
                self.scorer.score_sections(
                    question.text, sections, dict(zip(rows, found, strict=True)), trail
                ),
                strict=True,
            )
        )
        top = found[0].score if found else 0.0
        lifted = []
        for row, hit in zip(rows, found, strict=True):
            held = support[of_row[row].id] if row in of_row else None
            score = hit.score + (HEADING_LIFT * top * held.heading if held else 0.0)
            why = (
                f"section {of_row[row].name} ({'; '.join(held.reasons())})" if held else "best of the search"
            )
            lifted.append(Hit(hit.node, score, (f"{hit.node.document}:0", hit.node.id), (why,)))
        lifted.sort(key=lambda hit: -hit.score)
        best = sorted(sections, key=lambda one: (-support[one.id].total, one.id))[: self.sections]
        taken = [ChosenSection(one, tuple(support[one.id].reasons())) for one in best]
        trail.add(_sections_step(taken, len(sections), started))
        return lifted


def _sections_step(chosen: Sequence[ChosenSection], of: int, since: float) -> SectionsStep:
    reasons = tuple(SectionReasons(one.section.name, one.reasons) for one in chosen)
    return SectionsStep(of, chosen=reasons, seconds=time.perf_counter() - since)


def _with_choice(step: ChoiceStep, chooser: Chooser, choice: Choice, since: float) -> ChoiceStep:
    """Return a step with how the model was asked and what that cost."""
    return replace(
        step,
        prompt=chooser.template.name,
        calls=choice.calls,
        summaries=choice.summaries,
        not_known=choice.unmatched,
        left_out=choice.left_out or None,
        usage=choice.usage,
        seconds=time.perf_counter() - since,
    )


def _words(hit: Hit | None) -> str:
    """Return the start of a passage, as a hint."""
    if hit is None:
        return ""
    words = hit.node.text.split()
    return " ".join(words[:HINT_WORDS]) + (" ..." if len(words) > HINT_WORDS else "")


def _pages(count: int) -> str:
    return f"{count} page{'s' * (count != 1)}" if count else ""


def shortlist(hits: Sequence[Hit], allowed: Sequence[str], size: int) -> list[str]:
    """Return the keys of at most ``size`` documents, by their best hit; then, in order of keys, those without."""
    inside = frozenset(allowed)
    found = dict.fromkeys(hit.node.document for hit in hits if hit.node.document in inside)
    return [*found, *sorted(inside - found.keys())][:size]


def make_summaries(recipe: Recipe, resources: Resources) -> None:
    """Make the summaries that a recipe shows and that are not made when they are asked for. Raises ModelError."""
    for _, value in recipe.options:
        if isinstance(value, Recipe):
            make_summaries(value, resources)
    for declared in declarations(Drill):
        if declared.name != recipe.name:
            continue
        options = dict(declared.complete(recipe).options)
        summariser, words = str(options["summariser"]), options["words"]
        if summariser == "extractive" or not isinstance(words, int) or not words:
            return
        outlines = Outlines(resources.snapshot, resources.encoder)
        keys = [document.key for document in resources.snapshot.documents()]
        sections = [section for key in keys for section in outlines.of(key).sections]
        open_summaries(resources, summariser, words).make(sections)
