"""Questions inside questions, answered step by step from graphs, tables and documents, without a language model.

:mod:`clew.questions.sequences` proposes the phrases that may be asked first. Each is asked of the graphs and tables
(read as formal queries) and, the likeliest, of the documents; a name that stands in what the documents say of the
phrase, or of the whole question, is a value of it, too. The likeliest values take the place of their phrase, and the
question that this makes is asked of the same sources. How likely the first of all these ways is right is fitted, and
so is which is the first; the steps that led there, with their values and sources, are in the trail and in the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clew.core.component import Recipe, Resources, component
from clew.core.errors import UsageError
from clew.core.protocols import Method, Snapshot, Trail
from clew.core.text import shorten
from clew.core.trail import FillStep, GraphMatch, TrailRecorder
from clew.core.types import Answer, Plan, Question
from clew.methods.graph_questions import GraphQuestions, graphs_in_scope
from clew.methods.kgp.method import KGP
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.quotes import mark_words
from clew.methods.readers.spans import SpanAnswerReader
from clew.methods.readers.table_answers import describe_reading
from clew.methods.tables.method import TableQuestions
from clew.parse.data_tables import DATA_TYPES
from clew.questions.names import find_names
from clew.questions.plans import COUNT, YES_NO
from clew.questions.reading import Reading, open_catalogue
from clew.questions.sequences import (
    DOCUMENT,
    GRAPH,
    TABLE,
    WHOLE,
    Ending,
    Link,
    Reply,
    Split,
    choose_ending,
    rank_splits,
)
from clew.questions.table_reading import TableReading
from clew.questions.text import QuestionText

#: Phrases that are asked of graphs and tables, and of the documents; questions that the likeliest values make, which
#: are asked of graphs and tables, and of the documents.
PHRASES, QUOTED_PHRASES, FILLED, QUOTED_FILLED = 4, 1, 4, 1
#: Readings of a question that are used, values of one of them, and the most that it may have; answers of documents,
#: names of one quotation, and words of a quoted value.
_READINGS, _VALUES, _MOST_VALUES, _QUOTED, _NAMES, _WORDS = 2, 2, 3, 3, 4, 6
#: A reading of a phrase, and of a filled question, that is less likely leads nowhere.
_LEAST_LINK, _LEAST_ENDING, _LEAST_PROMISE = 0.1, 0.02, -4.5
#: How likely words of documents count that nobody weighed, the evidence of a first step that is listed, and the
#: values of a step that the trail shows.
_UNWEIGHED, _EVIDENCE, _SHOWN = 0.02, 5, 10


@component(
    "mixed(documents=kgp)",
    kind="recipe",
    summary="a question inside which another stands, answered step by step: the value of a phrase takes its place; "
    "graphs, tables and documents are asked for each step; no language model needed",
)
@dataclass(frozen=True, slots=True)
class MixedQuestions:
    """Answers questions of several steps from graphs, tables and documents together."""

    snapshot: Snapshot
    documents: Method
    graphs: GraphQuestions | None
    tables: TableQuestions | None
    recipe: str = "mixed"

    @classmethod
    def build(cls, resources: Resources, recipe: str, documents: Recipe) -> MixedQuestions:
        """Return the method; ``documents`` is the recipe that answers from documents. Raises UsageError."""
        snapshot, build = resources.snapshot, resources.registry.build
        alone = replace(resources, model=None)
        has_tables = any(document.media_type in DATA_TYPES for document in snapshot.documents())
        method: Method = build("recipe", documents, alone)
        if isinstance(method, KGP) and isinstance(method.reader, SpanAnswerReader):
            # Each step is asked by itself: what only leads to the answer is what a step is to find.
            method = replace(method, reader=method.reader.read_steps())
        return cls(
            snapshot,
            method,
            build("recipe", Recipe("graph"), alone) if snapshot.graphs() else None,
            build("recipe", Recipe("tables"), alone) if has_tables else None,
            recipe,
        )

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer with the source of each step. Raises UsageError where no question stands inside."""
        if not rank_splits(QuestionText(question.text)):
            raise UsageError(
                "'mixed' answers questions inside which another stands, and none was read in this: "
                f"'{shorten(question.text, 80)}'",
                "Ask it without --method, or of the graph or the documents: --method graph, --method kgp",
            )
        recorder = TrailRecorder.forwarding_to(trail)
        documents = self.documents.answer(question, recorder)
        whole = [*self.read(question), *quote_answer(documents)]
        chosen = self.choose(question, whole, recorder)
        if chosen is not None:
            return self.tell(question, *chosen, recorder)
        return Answer(
            NOT_FOUND,
            documents.evidence,
            trail=tuple(recorder.steps),
            usage=recorder.usage(),
            abstained=True,
            reader="sequence",
            recipe=self.recipe,
        )

    def choose(self, question: Question, whole: Sequence[Reply], trail: Trail) -> tuple[Ending, float] | None:
        """Return where the likeliest steps end, and how likely that is right; None where no question stands inside
        the other. ``whole`` is what the sources answer to the whole question, asked at once."""
        return choose_ending(self.find_endings(question, whole, trail), whole)

    def read(self, question: Question) -> list[Reply]:
        """Return what graphs and tables answer, the likelier readings of each first."""
        readings: Sequence[Reading] = ()
        tables: Sequence[TableReading] = ()
        if self.graphs is not None and question.scope.documents is None:
            graphs = graphs_in_scope(self.snapshot, question)
            readings = self.graphs.reader.read(question.text, graphs, _READINGS)
        if self.tables is not None and question.scope.graphs is None:
            tables = self.tables.read(question)
        return self.reply(question.text, readings, tables)

    def reply(self, text: str, readings: Sequence[Reading], tables: Sequence[TableReading]) -> list[Reply]:
        """Return what readings of a question answer."""
        replies = []
        for rank, reading in enumerate(readings[:_READINGS]):
            is_list = reading.plan.operation not in (COUNT, YES_NO)
            values = tuple(map(str, reading.values))
            replies.append(
                Reply(GRAPH, reading.probability, values, rank, is_list, reading.types, "", reading)
            )
        for rank, computed in enumerate(tables[:_READINGS]):
            values = tuple(describe_reading(text, computed))
            is_list = computed.plan.operation not in (COUNT, YES_NO)
            replies.append(Reply(TABLE, computed.probability, values, rank, is_list, origin=computed))
        return replies

    def find_endings(self, question: Question, whole: Sequence[Reply], trail: Trail) -> list[Ending]:
        """Return the answers to what the values of the question's phrases make of it."""
        links = [link for link in self.find_links(question, whole, trail) if link.promise >= _LEAST_PROMISE]
        read = dict.fromkeys(link.filled for link in links)
        quoted = dict.fromkeys(link.filled for link in links if link.reply.source in (GRAPH, TABLE))
        asked: dict[str, list[Reply]] = {text: [] for text in list(read)[:FILLED]}
        for text, replies in asked.items():
            if not trail.should_stop():
                replies += self.read(replace(question, text=text))
        for text in list(quoted)[:QUOTED_FILLED]:
            if not trail.should_stop() and question.scope.graphs is None:
                answer = self.documents.answer(replace(question, text=text), TrailRecorder())
                asked.setdefault(text, []).extend([] if answer.abstained else quote_answer(answer)[:1])
        return [
            Ending(link, reply)
            for link in links
            for reply in asked.get(link.filled, ())
            if reply.values and reply.probability >= _LEAST_ENDING
        ]

    def find_links(self, question: Question, whole: Sequence[Reply], trail: Trail) -> list[Link]:
        """Return values of the question's phrases, those first whose way is likelier."""
        links: list[Link] = []
        for number, (split, chance) in enumerate(rank_splits(QuestionText(question.text))[:PHRASES]):
            if trail.should_stop():
                break
            asked = replace(question, text=split.asked)
            replies = self.read(asked)
            if number < QUOTED_PHRASES and question.scope.graphs is None:
                replies += quote_answer(self.documents.answer(asked, TrailRecorder()))
            replies += [replace(reply, source=WHOLE) for reply in whole if reply.source == DOCUMENT]
            for reply in replies:
                links += self._link(split, chance, reply)
        return sorted(links, key=lambda link: -link.promise)

    def _link(self, split: Split, chance: float, reply: Reply) -> Iterator[Link]:
        """Yield the values that a reply has for a phrase, without those that the question itself has."""
        known = {word.text for word in QuestionText(split.text).words}
        for value, likeness, types in self._values_of(reply):
            if not {word.text for word in QuestionText(value).words} <= known:
                yield Link(split, chance, reply, value, likeness, types)

    def _values_of(self, reply: Reply) -> Iterator[tuple[str, float | None, frozenset[str]]]:
        """Yield the values that may be meant: with the likeness of a name that a quotation has."""
        if reply.source in (GRAPH, TABLE):
            if reply.is_list and reply.probability >= _LEAST_LINK and len(reply.values) <= _MOST_VALUES:
                yield from ((value, None, reply.types) for value in reply.values[:_VALUES])
            return
        if len(reply.values[0].split()) <= _WORDS:
            yield reply.values[0], None, frozenset()
        if self.graphs is None:
            return
        graphs = [self.snapshot.graph(name) for name in self.snapshot.graphs()]
        scorer = self.graphs.reader.model.names
        names = [
            match
            for graph in graphs
            if not graph.is_mounted and graph.size
            for match in find_names(open_catalogue(graph), QuestionText(reply.quotation), scorer)
        ]
        for match in sorted(names, key=lambda match: -match.likeness)[:_NAMES]:
            yield match.name, match.likeness, match.types

    def tell(self, question: Question, ending: Ending, chance: float, recorder: TrailRecorder) -> Answer:
        """Return the answer of an ending, with the evidence of both steps."""
        link = ending.link
        asked = question.text if link.reply.source == WHOLE else link.split.asked
        first = self._prove(replace(question, text=asked), link.reply)
        last = self._prove(replace(question, text=link.filled), ending.reply)
        steps = (
            ("#1", asked, link.reply, (link.value,), first),
            ("#2", link.filled, ending.reply, ending.reply.values, last),
        )
        for unknown, text, reply, values, answer in steps:
            recorder.add(record_step(unknown, text, reply, values, answer))
        plan = "\n".join(
            f"{unknown}: {text} = {', '.join(values)} ({describe_source(reply, answer)})"
            for unknown, text, reply, values, answer in steps
        )
        return replace(
            last,
            evidence=tuple(dict.fromkeys((*first.evidence[:_EVIDENCE], *last.evidence))),
            quotes=tuple(dict.fromkeys((*last.quotes, *first.quotes[:1]))),
            context=tuple(dict.fromkeys((*first.context, *last.context))),
            trail=tuple(recorder.steps),
            usage=recorder.usage(),
            confidence=chance,
            formula=f"Read as: {asked} {link.value}. Then: {link.filled} {last.formula}".strip(),
            plan=Plan("sequence", plan, "list" if last.plan is None else last.plan.operation),
            reader="sequence",
            recipe=self.recipe,
            alternatives=(),
            others=(),
            by_rule=False,
        )

    def _prove(self, question: Question, reply: Reply) -> Answer:
        """Return a reply as an answer with its evidence."""
        if isinstance(reply.origin, Reading) and self.graphs is not None:
            return self.graphs.answer_reading(question, reply.origin, TrailRecorder())
        if isinstance(reply.origin, TableReading) and self.tables is not None:
            return self.tables.answer_reading(question, reply.origin, TrailRecorder())
        assert isinstance(reply.origin, Answer)
        return reply.origin


def quote_answer(answer: Answer) -> list[Reply]:
    """Return what documents say, of an answer and its alternatives: the words that are marked in each quotation, and
    the quotation with the name of its document."""
    given = (
        []
        if answer.abstained
        else [(answer.text, answer.confidence, answer.quotes[0] if answer.quotes else None)]
    )
    given += [(other.text, other.confidence, other.quote) for other in answer.alternatives]
    hits = {hit.node.id: hit for hit in (*answer.context, *answer.evidence)}
    replies = []
    for rank, (text, confidence, quote) in enumerate(given[:_QUOTED]):
        hit = None if quote is None else hits.get(quote.node)
        title = "" if hit is None else f"{hit.node.document_name} {hit.node.name}"
        own = replace(
            answer,
            text=text,
            abstained=False,
            quotes=() if quote is None else (quote,),
            evidence=answer.evidence if hit is None else (hit,),
        )
        replies.append(
            Reply(
                DOCUMENT,
                _UNWEIGHED if confidence is None else confidence,
                (mark_words(text, quote).strip(" .,;"),),
                rank,
                quotation=title if quote is None else f"{title}: {quote.text}",
                origin=own if rank else answer,
            )
        )
    return [reply for reply in replies if reply.values[0]]


def record_step(unknown: str, text: str, reply: Reply, values: Sequence[str], answer: Answer) -> FillStep:
    """Return the step of the trail that has the value of a step, its source and its evidence."""
    return FillStep(
        GRAPH if reply.source == GRAPH else TABLE if reply.source == TABLE else DOCUMENT,
        unknown,
        text if answer.plan is None else answer.plan.text,
        question=text,
        match=GraphMatch(reply.origin.graph) if isinstance(reply.origin, Reading) else None,
        values=tuple(values[:_SHOWN]),
        of=len(values),
        confidence=round(reply.probability, 3),
        hits=answer.evidence[:_EVIDENCE],
    )


def describe_source(reply: Reply, answer: Answer) -> str:
    """Say where the value of a step comes from."""
    if isinstance(reply.origin, Reading):
        return f"graph '{reply.origin.graph}': {reply.origin.triples}"
    if isinstance(reply.origin, TableReading):
        return f"table '{reply.origin.table}': {reply.origin.plan.sql}"
    return f"document '{answer.evidence[0].node.document_name}'" if answer.evidence else "documents"
