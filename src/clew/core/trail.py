"""The trail of an answer: its typed steps, one dataclass for each thing that a method or retriever does, and their
recorder.

The fields of a step are its results. Renderers show any step through :attr:`~clew.core.types.Step.detail`, which has
the fields as JSON; code that needs a result takes it from a return value or from the typed field. A new kind of step
is a frozen dataclass derived from :class:`~clew.core.types.Step` with a ``name``; it needs no registration. A step
that is only shown is a :class:`~clew.core.types.ShownStep`. The step "stopped" stands beside
:class:`~clew.core.types.Answer`, which looks for it.

The names, keys and order of ``detail`` are part of the JSON that clew prints and stores: do not rename them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.core.protocols import Retriever, Trail
from clew.core.types import Hit, Question, Step, StepValue, Usage

# Retrieval


@dataclass(frozen=True, slots=True)
class RetrieveStep(Step):
    """A method asked its retriever. ``count`` is the number of hits."""

    name = "retrieve"
    query: str | None = None
    round: int | None = None
    count: int = field(default=0, metadata={"key": "hits"})


@dataclass(frozen=True, slots=True)
class StructureReference(StepValue):
    """A part of a question that names a page, table or section: its words, the kind, and the id of the node."""

    words: str = field(metadata={"key": "said"})
    kind: str
    node: str


@dataclass(frozen=True, slots=True)
class StructureStep(Step):
    """A question was searched for references to pages, tables and sections."""

    name = "structure"
    references: tuple[StructureReference, ...]
    unreadable_reply: str | None = None


@dataclass(frozen=True, slots=True)
class NodeCounts(StepValue):
    """How many nodes of a graph a ranking looked at: by words those that share one with the question, by vector those
    that had to be embedded first."""

    nodes: int
    sharing_a_word: int | None = None
    without_a_vector: int | None = None
    looked_at: str | None = None
    hint: str | None = None
    embedded: int | None = None
    embedding_seconds: float | None = None
    chunks: int | None = None
    embedded_in_chunks: int | None = None


@dataclass(frozen=True, slots=True)
class RankNodesStep(Step):
    """The nodes of a graph were ranked, or passed over where the graph has no texts here."""

    name = "rank nodes"
    by: str
    graph: str
    passed_over: str | None = None
    counts: NodeCounts | None = field(default=None, metadata={"flat": True})


@dataclass(frozen=True, slots=True)
class RerankStep(Step):
    """A language model reordered candidates. ``scores`` has the model's score of each candidate by node id, None for
    a reply without one; ``unreadable`` the replies that gave none, or what was wrong with the only reply."""

    name = "rerank"
    prompt: str
    asked_about: int
    scores: Mapping[str, float | None] | None = None
    unreadable: Mapping[str, str] | str | None = None
    unknown: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class LinkStep(Step):
    """A language model chose among the entities that ambiguous names may stand for."""

    name = "link"
    prompt: str
    names: str


# KGP


@dataclass(frozen=True, slots=True)
class SeedStep(Step):
    """The walk chose its first passages."""

    name = "seed"
    seeds: int


@dataclass(frozen=True, slots=True)
class ExpandedPath(StepValue):
    """A path of the walk: the ids of its nodes, how many continuations were considered and chosen, and the text that
    a model expected next."""

    path: tuple[str, ...]
    considered: int
    chosen: int
    expected: str | None = None


@dataclass(frozen=True, slots=True)
class ExpandStep(Step):
    """The walk went one hop further along several paths."""

    name = "expand"
    hop: int
    graph: str
    paths: tuple[ExpandedPath, ...]


# D3


@dataclass(frozen=True, slots=True)
class SectionReasons(StepValue):
    """A section that was chosen, and why."""

    section: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChoiceStep(Step):
    """Documents or sections were chosen: ``of`` how many, and how the model was asked where one was.

    ``not_known`` are names in the reply that fit no entry, ``left_out`` the number of entries that were not shown.
    """

    of: int
    shown: int | None = None
    chosen: tuple[str | SectionReasons, ...] = ()
    prompt: str | None = None
    calls: int | None = None
    summaries: int | None = None
    not_known: tuple[str, ...] | None = None
    left_out: int | None = None


@dataclass(frozen=True, slots=True)
class DocumentsStep(ChoiceStep):
    """Documents were chosen."""

    name = "documents"


@dataclass(frozen=True, slots=True)
class SectionsStep(ChoiceStep):
    """Sections were chosen."""

    name = "sections"


@dataclass(frozen=True, slots=True)
class ParagraphsStep(Step):
    """Paragraphs were chosen. ``cut`` are the ids of those too long for a call, ``unknown`` the numbers in replies
    that name no paragraph."""

    name = "paragraphs"
    reranker: str | None = None
    prompt: str | None = None
    offered: int = 0
    calls: int | None = None
    cut: tuple[str, ...] | None = None
    unknown: tuple[int, ...] | None = None
    unreadable: tuple[str, ...] | None = None
    shown: str | None = None
    chosen: int = 0


# Plain questions


@dataclass(frozen=True, slots=True)
class QuestionReading(StepValue):
    """One meaning of a plain question: typed triples, the graph, the probability that it is meant, the number of
    nodes that meet it, and the same in words."""

    triples: str
    graph: str
    probability: float
    answers: int | None = None
    sentence: str | None = None


@dataclass(frozen=True, slots=True)
class ReadingsStep(Step):
    """A plain question was read as typed triples, without a language model; the likeliest reading first. ``apart``
    says why linked graphs were not read as one."""

    name = "readings"
    readings: tuple[QuestionReading, ...]
    apart: str | None = None


# Chain


@dataclass(frozen=True, slots=True)
class ChainStep(Step):
    """A question was written as a chain, by a model or by a person (``written_by``)."""

    name = "chain"
    chain: str
    written_by: str | None = None
    prompt: str | None = None
    samples: int | None = None
    usable: int | None = None
    others: tuple[str, ...] | None = None
    errors: str | None = None


@dataclass(frozen=True, slots=True)
class LinkedName(StepValue):
    """An entity that a name of the question stands for, and how it was found."""

    name: str
    id: str
    how: str


@dataclass(frozen=True, slots=True)
class GraphMatch(StepValue):
    """How a graph understood a hop: the relation or property that was followed, how its name was matched (``how``),
    and the nodes that the names stand for, or the links to the ``same`` nodes of another graph."""

    graph: str | None = None
    relation: str | None = None
    property: str | None = None
    how: str | None = None
    score: float | None = None
    same: tuple[str, ...] | None = None
    entities: tuple[LinkedName, ...] | None = None


@dataclass(frozen=True, slots=True)
class FillStep(Step):
    """A source was asked for the value of an unknown: text with a ``question``, a graph by a ``match``.

    ``values`` are the first of the ``of`` values that it has; ``outcome`` says why there are none, or how it came to
    them. ``confidence`` is the estimated probability that the first is right, of a source that estimates it.
    """

    name = "fill"
    source: str
    unknown: str
    triple: str
    question: str | None = None
    match: GraphMatch | None = field(default=None, metadata={"flat": True})
    values: tuple[str, ...] | None = None
    of: int | None = None
    outcome: str | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class SourceValues(StepValue):
    """What one source gives for an unknown."""

    source: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConflictStep(Step):
    """Two sources disagree about an unknown: the values that were taken, and the others."""

    name = "conflict"
    unknown: str
    taken: SourceValues
    also: SourceValues


@dataclass(frozen=True, slots=True)
class ChainFilling(StepValue):
    """A chain with the first values of its unknowns (``#1``), and what makes it better than another: whether it is
    complete, has an answer, has one of the kind that is asked for, and how many unknowns have values."""

    chain: str
    values: Mapping[str, tuple[str, ...]]
    worth: tuple[bool | int, ...]


@dataclass(frozen=True, slots=True)
class FilledStep(Step):
    """A chain was filled as far as its sources go. ``settled_by`` is the rule that gave the answer."""

    name = "filled"
    chain: str
    answer: str
    settled_by: str | None = None
    not_found: str | None = None
    does_not_fit: str | None = None
    filling: ChainFilling | None = None


# Focus


@dataclass(frozen=True, slots=True)
class TriplesStep(Step):
    """A question was written as typed triples, by a model or by a person (``written_by``)."""

    name = "triples"
    triples: str
    written_by: str | None = None
    prompt: str | None = None
    usable: int | None = None
    schema: str | None = None
    others: tuple[str, ...] | None = None
    dropped: tuple[str, ...] | None = None
    fitted: tuple[str, ...] | None = None
    errors: str | None = None
    samples: int | None = None


@dataclass(frozen=True, slots=True)
class LinkedConstant(StepValue):
    """A node that a constant of the question may stand for."""

    name: str
    id: str
    score: float
    how: str


@dataclass(frozen=True, slots=True)
class PrepareStep(Step):
    """Typed triples were turned into a pattern over one graph. ``dropped`` has each constraint that the graph cannot
    hold, and why; ``ranks_by`` the wishes."""

    name = "prepare"
    triples: str
    graph: str
    constants: Mapping[str, tuple[LinkedConstant, ...]]
    relations: Mapping[str, str]
    dropped: Mapping[str, str]
    ranks_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CandidateSet(StepValue):
    """The candidates of one unknown: how many (None: nothing restricts it), and the names of the first."""

    count: int | None
    first: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the set as JSON; a count of None stays."""
        return {"count": self.count, "first": list(self.first)}


@dataclass(frozen=True, slots=True)
class ExactStep(Step):
    """The triples were solved in one graph that has all their names exactly. ``candidates`` has the answers, by their
    unknown: they meet everything."""

    name = "exact"
    graph: str
    triples: str
    candidates: Mapping[str, CandidateSet]


@dataclass(frozen=True, slots=True)
class CandidatesStep(Step):
    """The candidates of each unknown, of which ``asked_for`` answers the question. ``given_up`` are the constraints
    that were relaxed, ``contradict`` the sets of constraints that cannot hold together."""

    graph: str
    asked_for: str
    candidates: Mapping[str, CandidateSet]
    rounds: int
    given_up: tuple[str, ...] | None = None
    contradict: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class SubstituteStep(CandidatesStep):
    """Unknowns were narrowed to a fixpoint in one graph."""

    name = "substitute"


@dataclass(frozen=True, slots=True)
class JoinGraphsStep(CandidatesStep):
    """Unknowns were narrowed in several graphs together. ``graphs`` has the constraints that each holds, ``same`` the
    links between their nodes."""

    name = "join graphs"
    graphs: Mapping[str, tuple[str, ...]] = field(kw_only=True)
    same: Mapping[str, tuple[str, ...]] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class SortStep(Step):
    """Candidates were sorted by their texts, and the list filled up where it was short."""

    name = "sort"
    graph: str
    passed_over: str | None = None
    by: str | None = None
    kept_by_the_triples: int | None = None
    filled_up: int | None = None
    sorted: NodeCounts | None = None
    filling: NodeCounts | None = None


@dataclass(frozen=True, slots=True)
class RankedLine(StepValue):
    """An answer of a ranked list in a line: whether it meets all constraints, and which it misses."""

    name: str
    id: str
    by: str
    meets: bool
    misses: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RankedStep(Step):
    """The ranked list was completed. ``meet_all`` is how many answers meet all constraints that were kept;
    ``given_up`` and ``dropped`` are the constraints that it does not rest on; ``taken_as`` has the names of the
    question that were taken for another name of the graph."""

    name = "ranked"
    answer: str
    meet_all: int
    triples: str | None = None
    given_up: tuple[str, ...] | None = None
    dropped: Mapping[str, str] | None = None
    answers: tuple[RankedLine, ...] = ()
    taken_as: Mapping[str, str] | None = None


# Reading


@dataclass(frozen=True, slots=True)
class ReadStep(Step):
    """An answer was read from the evidence, or given without any; ``reader`` is what did it."""

    name = "read"
    reader: str


@dataclass(frozen=True, slots=True)
class ReadOutcomeStep(ReadStep):
    """A reading that needs no more than its outcome said."""

    outcome: str


@dataclass(frozen=True, slots=True)
class ModelAnswerStep(ReadStep):
    """A model gave its own answer, which is checked against nothing.

    ``final`` is the answer as it was read out of the reply, or out of most of several; ``votes`` how many samples
    gave each answer; ``unreadable`` the reply, or how many of them, that gave none.
    """

    prompt: str | None = None
    model: str | None = None
    thought: str | None = None
    thoughts: tuple[str, ...] | None = None
    final: str | None = None
    temperature: float | None = None
    votes: Mapping[str, int] | None = None
    unreadable: str | int | None = None


@dataclass(frozen=True, slots=True)
class PromptReadStep(ReadStep):
    """A model read numbered contexts with the prompt of a paper."""

    prompt: str
    model: str
    contexts: int
    reply: str
    quotes: int | None = None


@dataclass(frozen=True, slots=True)
class ExtractiveReadStep(ReadStep):
    """Sentences were taken from the evidence. ``covered`` is the share of the question that the sentences cover."""

    covered: float
    outcome: str
    sentences: int | None = None


@dataclass(frozen=True, slots=True)
class SpanReadStep(ReadStep):
    """The trained reader marked answers in the evidence. ``asked`` is the question that it read for, ``confidences``
    has its best answers, each with its confidence from 0 to 1; ``outcome`` says what became of them."""

    model: str
    asked: str
    confidences: Mapping[str, float]
    outcome: str


@dataclass(frozen=True, slots=True)
class TableQueryStep(Step):
    """A question was asked of tables as a query. ``written_by`` is the model that wrote it, or clew's own parser;
    ``problem`` is what was wrong with the first of two queries, ``outcome`` what came of the last one."""

    name = "query tables"
    sql: str
    written_by: str
    tables: str
    outcome: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class CitedReadStep(ReadStep):
    """A model answered with quotes, which were looked up in their sources.

    ``withheld`` is an answer that no quote supports; ``asked_again`` what was wrong with the first reply. ``why`` is
    how the model says that the answer follows, ``missing`` what it says that no source states.
    """

    prompt: str
    sources: int
    left_out: int | None = field(default=None, metadata={"key": "left_out"})
    model: str | None = None
    asked_again: str | None = field(default=None, metadata={"key": "asked_again"})
    taken_as_text: str | None = field(default=None, metadata={"key": "taken_as_text"})
    quotes: int | None = None
    rejected: int | None = None
    found_elsewhere: int | None = field(default=None, metadata={"key": "found_elsewhere"})
    outcome: str | None = None
    withheld: str | None = None
    why: str | None = None
    missing: str | None = None


# Recording


@dataclass(slots=True)
class TrailRecorder:
    """A trail that records its steps.

    ``on_step`` is called with each step as it happens, to stream it; ``is_cancelled`` is called between steps and
    returns whether the caller wants no more.
    """

    on_step: Callable[[Step], None] | None = None
    is_cancelled: Callable[[], bool] | None = None
    steps: list[Step] = field(default_factory=list)

    @classmethod
    def forwarding_to(cls, trail: Trail) -> TrailRecorder:
        """Return a recorder that passes each step on to ``trail`` and stops when its caller wants no more."""
        return cls(on_step=trail.add, is_cancelled=trail.should_stop)

    def add(self, step: Step) -> None:
        """Record ``step`` and pass it to ``on_step``."""
        self.steps.append(step)
        if self.on_step is not None:
            self.on_step(step)

    def should_stop(self) -> bool:
        """Return whether the caller wants no more steps."""
        return self.is_cancelled is not None and self.is_cancelled()

    def usage(self) -> Usage:
        """Return the total usage of all steps."""
        return sum((step.usage for step in self.steps), Usage())


def explore_retriever(retriever: Retriever, question: Question, k: int, trail: Trail) -> list[Hit]:
    """Return at most ``k`` hits, best first. A retriever with a method ``explore`` adds the steps of its search to
    the trail, others add none."""
    explore = getattr(retriever, "explore", None)
    return list(explore(question, k, trail) if explore is not None else retriever.retrieve(question, k))


def retrieve_with_trail(
    retriever: Retriever,
    question: Question,
    k: int,
    trail: Trail,
    query: str | None = None,
    round: int | None = None,
) -> list[Hit]:
    """Return at most ``k`` hits, best first, and add the retrieval to the trail.

    The steps of an explorer come first, each with its own cost. The step "retrieve" follows, with ``query`` and
    ``round``, the number of hits, the seconds that no other step accounts for, and no usage.
    """
    started = time.perf_counter()
    recorder = TrailRecorder.forwarding_to(trail)
    hits = explore_retriever(retriever, question, k, recorder)
    accounted = sum(step.seconds for step in recorder.steps)
    seconds = max(0.0, time.perf_counter() - started - accounted)
    trail.add(RetrieveStep(query, round, len(hits), hits=tuple(hits), seconds=seconds))
    return hits
