"""D3 (Nair et al., EMNLP 2023): from documents to their sections, from sections to paragraphs.

:meth:`Drill.explore` is the retriever of Section 3.3. A model is shown the condensed representation of a document
(the names and summaries of its sections, Section 3.3.1: :mod:`clew.methods.d3.outline`,
:mod:`clew.methods.d3.summaries`) and names the relevant ones (:mod:`clew.methods.d3.chooser`). A second choice takes
paragraphs of these sections (Section 3.3.2: :mod:`clew.methods.d3.paragraphs`).

Deviations, each on purpose (docs/decisions/0009):

- *Many documents.* Documents are chosen first, by name and summary. The paper leaves retrieval from several of them
  open (Limitations); ``drill-paper`` shows the sections of all, or of the search's ``documents`` best if there are
  more.
- *No detail is lost to a summary.* The best hits of our own search are shown as hints beside their sections, and are
  among the paragraphs of the second choice even if their section was not named.
- *A model that chooses nothing.* Sections that are named by a reply that cannot be read, documents and paragraphs of
  which none is named, are chosen as without a model, and the trail and the answer say so: a model never leaves less
  evidence than none would. ``drill-paper`` takes "none" of the paragraphs at its word.
- *No model.* Sections are scored by name, summary and best passages (:mod:`clew.methods.d3.scoring`). All hits of the
  search are then kept, and the score of its section raises a hit.
- The trail says for each section why it was chosen.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from clew.core.component import AtLeast, Recipe, Resources, component, declarations
from clew.core.errors import BudgetExceeded, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Retriever, Snapshot, Trail
from clew.core.trail import (
    ChoiceStep,
    DocumentsStep,
    SectionReasons,
    SectionsStep,
    TrailRecorder,
    explore_retriever,
)
from clew.core.types import (
    PAGE,
    RETRIEVED_KINDS,
    TABLE,
    FallbackStep,
    Hit,
    Node,
    Question,
    ShownStep,
    StoppedStep,
)
from clew.methods.d3.baselines import CROSS_ENCODER, MONOT5
from clew.methods.d3.chooser import Choice, Chooser, Entry
from clew.methods.d3.outline import Outlines, Section, documents
from clew.methods.d3.paragraphs import ParagraphSelector, ParagraphStrategy, create_selector, create_window
from clew.methods.d3.scoring import SectionScorer, SectionScores
from clew.methods.d3.summaries import DocumentSummaries, Summaries, open_summaries

#: This many hits of the search count for documents and sections.
SEARCH_HITS = 200
#: A hint shows this many words of a passage.
HINT_WORDS = 20
#: The name and summary of a section raise a hit by at most this share of the best hit's score (docs/decisions/0009).
HEADING_LIFT = 0.03
#: Without a model, at least this many hits are raised by their sections.
LIFTED_HITS = 50


@dataclass(frozen=True, slots=True)
class ChosenSection:
    """A section that was chosen, and why."""

    section: Section
    reasons: tuple[str, ...]


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
    """The whole retriever.

    ``librarian`` lets a model choose documents, ``chooser`` sections; without them both are chosen by score.
    ``selector`` chooses among the paragraphs of the sections; without one they are ranked as by the search. At most
    ``documents`` of ``shown`` documents are chosen, and, without a model, ``sections`` sections. ``hints`` is how
    many hits of the search are shown as hints and kept; ``tables`` makes tables entries of their own. The paper has
    neither (0 and False).
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
            # The ablation of Table 4 (``names=uuid``) is about sections: a document keeps its name. The paper has no
            # choice of documents: it is shown the sections of all, as many as ``documents``.
            librarian = (
                None
                if paper
                else Chooser(
                    resources.model,
                    load_prompt("drill-documents"),
                    window,
                    form="numbered",
                    condense=True,
                    calls=calls,
                )
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
        """Return the same, and add each step to the trail.

        A spent budget ends the search: what was chosen so far is then ranked without the model.
        """
        started = time.perf_counter()
        hits = explore_retriever(self.search, question, max(k, SEARCH_HITS), trail)
        trail.add(ShownStep("search", {"hits": len(hits)}, seconds=time.perf_counter() - started))
        if self.chooser is None and self.selector is None:
            raised = max(k, LIFTED_HITS)
            return [*self._lift_hits(question, hits[:raised], trail), *hits[raised:]][:k]
        sections, kept_hits = self._drill_down(question, hits, trail)
        # The paragraphs of sections, and hits, each once, in reading order by document.
        in_sections = {row for chosen in sections for row in chosen.section.rows}
        rows = np.union1d(
            np.array(sorted(in_sections), dtype=np.int64),
            self.snapshot.rows([hit.node.id for hit in kept_hits]),
        )
        paragraphs = self.snapshot.nodes(rows[self.snapshot.mask(question.scope, RETRIEVED_KINDS)[rows]])
        ranked = self._select_paragraphs(question, paragraphs, hits, trail)
        section_of_row = {row: chosen for chosen in reversed(sections) for row in chosen.section.rows}
        return [self._to_hit(node, score, section_of_row) for node, score in ranked[:k]]

    def _drill_down(
        self, question: Question, hits: Sequence[Hit], trail: Trail
    ) -> tuple[list[ChosenSection], list[Hit]]:
        """Return the sections that were chosen, and the hits that are kept beside them."""
        scope = question.scope.documents
        keys = [key for key in documents(self.snapshot) if scope is None or key in scope]
        try:
            keys = self._choose_documents(question, keys, hits, trail)
            chosen = frozenset(keys)
            hits_inside = [hit for hit in hits if hit.node.document in chosen]
            sections = self._choose_sections(question, keys, hits_inside, trail)
            return sections, hits_inside[: self.hints]
        except BudgetExceeded as error:
            trail.add(StoppedStep(error.problem))
            return [], list(hits[: max(self.hints, SEARCH_HITS // 10)])

    # Documents (not in the paper)

    def _choose_documents(
        self, question: Question, keys: Sequence[str], hits: Sequence[Hit], trail: Trail
    ) -> list[str]:
        """Return the keys of the documents whose sections are considered."""
        candidates = shortlist(hits, keys, self.shown if self.librarian else self.documents)
        if len(keys) <= 1 or (len(candidates) <= 1 and self.librarian is None):
            return candidates
        if self.librarian is None:
            trail.add(DocumentsStep(len(keys), chosen=tuple(self._names(candidates))))
            return candidates
        started = time.perf_counter()
        entries = self._document_entries(candidates, hits, trail)
        choice = self.librarian.choose(question.text, entries)
        # In the order of the search, so that the cut drops the least likely.
        chosen = [candidates[n] for n in choice.indexes or range(len(candidates))][: self.documents]
        step = DocumentsStep(len(keys), len(candidates), tuple(self._names(chosen)))
        trail.add(_with_choice(step, self.librarian, choice, started))
        if not choice.indexes:
            trail.add(_fallback("choice of documents", "those of the best hits were taken", choice))
        return chosen

    def _document_entries(self, keys: Sequence[str], hits: Sequence[Hit], trail: Trail) -> list[Entry]:
        """Return the entries of documents that the model is shown."""
        by_key = documents(self.snapshot)
        summaries = self.document_summaries.of(keys, trail)
        entries = []
        for rank, (key, summary) in enumerate(zip(keys, summaries, strict=True)):
            document = by_key[key]
            title = document.title if document.title not in {"", document.name} else ""
            pages = f"{document.pages} page{'s' * (document.pages != 1)}" if document.pages else ""
            about = "; ".join(part for part in (title, pages) if part)
            hint = next((hit for hit in hits[: self.hints] if hit.node.document == key), None)
            entries.append(
                Entry(f"{key}:0", (document.name,), summary, about, _hint_text(hint), priority=-float(rank))
            )
        return entries

    def _names(self, keys: Sequence[str]) -> list[str]:
        by_key = documents(self.snapshot)
        return [by_key[key].name for key in keys]

    # Sections (Section 3.3.1)

    def _choose_sections(
        self, question: Question, keys: Sequence[str], hits: Sequence[Hit], trail: Trail
    ) -> list[ChosenSection]:
        """Return the sections whose paragraphs are considered."""
        started = time.perf_counter()
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        sections = [
            section
            for key in keys
            for section in self.outlines.of(key).sections
            if (self.tables or section.kind != TABLE) and allowed[list(section.rows)].any()
        ]
        rows = self.snapshot.rows([hit.node.id for hit in hits])
        hit_of_row = dict(zip(rows.tolist(), hits, strict=True))
        scores = self.scorer.score_sections(question.text, sections, hit_of_row, trail)
        if self.chooser is None:
            order = sorted(range(len(sections)), key=lambda n: (-scores[n].total, sections[n].id))
            chosen = [ChosenSection(sections[n], tuple(scores[n].reasons())) for n in order[: self.sections]]
            trail.add(_sections_step(chosen, len(sections), started))
            return chosen
        hinted_rows = rows[: self.hints].tolist()
        entries = self._section_entries(sections, scores, hinted_rows, hit_of_row, len(keys) > 1)
        total_tokens = sum(self.chooser.window.tokens(self.snapshot.document_text(key)) for key in keys)
        choice = self.chooser.choose(question.text, entries, total_tokens)
        chosen = [
            ChosenSection(
                sections[n],
                ("named by the model", *(["hint"] if entries[n].hint else []), *scores[n].reasons()),
            )
            for n in choice.indexes
        ]
        if not choice.indexes and choice.unmatched:
            order = sorted(range(len(sections)), key=lambda n: (-scores[n].total, sections[n].id))
            chosen = [ChosenSection(sections[n], tuple(scores[n].reasons())) for n in order[: self.sections]]
            trail.add(_fallback("choice of sections", "those with the best score were taken", choice))
        step = _sections_step(chosen, len(sections), started)
        trail.add(_with_choice(step, self.chooser, choice, started))
        return chosen

    def _section_entries(
        self,
        sections: Sequence[Section],
        scores: Sequence[SectionScores],
        hinted_rows: Sequence[int],
        hit_of_row: Mapping[int, Hit],
        with_document_name: bool,
    ) -> list[Entry]:
        """Return the entries of sections that the model is shown; a hint stands at the smallest entry that has it."""
        smallest: dict[int, int] = {}
        for n, section in enumerate(sections):
            for row in section.rows:
                size = len(section.rows)
                if row in hit_of_row and (row not in smallest or size < len(sections[smallest[row]].rows)):
                    smallest[row] = n
        hints: dict[int, Hit] = {}
        for row in hinted_rows:
            if row in smallest:
                hints.setdefault(smallest[row], hit_of_row[row])
        summaries = self.summaries.of(sections)
        by_key = documents(self.snapshot)
        entries = []
        for n, (section, summary) in enumerate(zip(sections, summaries, strict=True)):
            about = [f"table, {len(section.rows)} rows"] if section.kind == TABLE else []
            if self.hints and section.pages and section.kind != PAGE:
                first, last = section.pages
                about.append(f"page {first}" if first == last else f"pages {first}-{last}")
            path = section.path
            if with_document_name:
                path = (by_key[section.document].name, *path)
            hint = _hint_text(hints.get(n))
            entries.append(Entry(section.id, path, summary, ", ".join(about), hint, scores[n].total))
        return entries

    # Paragraphs (Section 3.3.2)

    def _select_paragraphs(
        self, question: Question, paragraphs: Sequence[Node], hits: Sequence[Hit], trail: Trail
    ) -> list[tuple[Node, float]]:
        """Return the paragraphs that the selector chooses; without a selector, or if the budget ends it, all of them
        in the order of the search, and those that it did not find behind them in reading order."""
        if self.selector is not None:
            try:
                selected = self.selector.select(question.text, paragraphs, trail)
                # The paper takes "none" at its word; without a model there would be these paragraphs.
                if selected or not self.hints:
                    return selected
                used = "the paragraphs were ranked as by the search"
                trail.add(FallbackStep("choice of paragraphs", used))
            except BudgetExceeded as error:
                trail.add(StoppedStep(error.problem))
        scores = {hit.node.id: hit.score for hit in hits}
        ranked = sorted(paragraphs, key=lambda node: -scores.get(node.id, -np.inf))
        return [(node, scores.get(node.id, 0.0)) for node in ranked]

    def _to_hit(self, node: Node, score: float, section_of_row: Mapping[int, ChosenSection]) -> Hit:
        chosen = section_of_row.get(int(self.snapshot.rows([node.id])[0]))
        if chosen is None:
            via = "hint: best of the search"
        else:
            via = f"section {chosen.section.name} ({'; '.join(chosen.reasons)})"
        return Hit(node, score, (f"{node.document}:0", node.id), (via,))

    # Without a model

    def _lift_hits(self, question: Question, hits: Sequence[Hit], trail: Trail) -> list[Hit]:
        """Return the hits of the search in a new order, each raised by the name and summary of its section."""
        started = time.perf_counter()
        rows = self.snapshot.rows([hit.node.id for hit in hits]).tolist()
        section_of_row: dict[int, Section] = {}
        for key in dict.fromkeys(hit.node.document for hit in hits):
            rows_inside = [row for row, hit in zip(rows, hits, strict=True) if hit.node.document == key]
            section_of_row.update(self.outlines.sections_of(key, rows_inside))
        in_hit_order = [section_of_row[row] for row in rows if row in section_of_row]
        sections = list({section.id: section for section in in_hit_order}.values())
        hit_of_row = dict(zip(rows, hits, strict=True))
        section_scores = self.scorer.score_sections(question.text, sections, hit_of_row, trail)
        scores = dict(zip((section.id for section in sections), section_scores, strict=True))
        top = hits[0].score if hits else 0.0
        lifted = []
        for row, hit in zip(rows, hits, strict=True):
            section = section_of_row.get(row)
            score, via = hit.score, "best of the search"
            if section is not None:
                score += HEADING_LIFT * top * scores[section.id].heading
                via = f"section {section.name} ({'; '.join(scores[section.id].reasons())})"
            lifted.append(Hit(hit.node, score, (f"{hit.node.document}:0", hit.node.id), (via,)))
        lifted.sort(key=lambda hit: -hit.score)
        best = sorted(sections, key=lambda section: (-scores[section.id].total, section.id))
        chosen = [
            ChosenSection(section, tuple(scores[section.id].reasons())) for section in best[: self.sections]
        ]
        trail.add(_sections_step(chosen, len(sections), started))
        return lifted


def _sections_step(chosen: Sequence[ChosenSection], of: int, since: float) -> SectionsStep:
    sections = tuple(SectionReasons(each.section.name, each.reasons) for each in chosen)
    return SectionsStep(of, chosen=sections, seconds=time.perf_counter() - since)


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


def _fallback(asked_for: str, used: str, choice: Choice) -> FallbackStep:
    reply = "; ".join(choice.unmatched)[:200]
    return FallbackStep(asked_for, used, reply or "it chose none")


def _hint_text(hit: Hit | None) -> str:
    """Return the beginning of a passage."""
    if hit is None:
        return ""
    words = hit.node.text.split()
    return " ".join(words[:HINT_WORDS]) + (" ..." if len(words) > HINT_WORDS else "")


def shortlist(hits: Sequence[Hit], allowed: Sequence[str], size: int) -> list[str]:
    """Return the keys of at most ``size`` documents, in the order of their best hits; behind them, by key, those
    without a hit."""
    inside = frozenset(allowed)
    with_hits = dict.fromkeys(hit.node.document for hit in hits if hit.node.document in inside)
    return [*with_hits, *sorted(inside - with_hits.keys())][:size]


def make_summaries(recipe: Recipe, resources: Resources) -> None:
    """Make the summaries that a recipe shows and a model writes, in advance. Raises ModelError."""
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
