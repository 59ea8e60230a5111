"""Questions whose hops are answered from different sources: a graph, a document, a table, without a language model.

:mod:`clew.methods.nested_questions` takes a question apart into questions of one hop. Each hop is asked of the graphs
(read as typed triples, :mod:`clew.questions.reading`) and of the documents (found and read as any question is). How
sure a source is of its value becomes the probability that it is right, by a logistic function for each source that
was fitted to held-out hops; the likeliest value goes into the next hop, and where the sources disagree both are
shown.

The chain, its filling, and the model's memory for what no source knows are those of :mod:`clew.methods.chain`
(Su et al., NAACL 2024); that work asks its sources in a fixed order.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clew.core.component import Recipe, Resources, component, make_recipe
from clew.core.errors import UsageError
from clew.core.protocols import Method, PropertyGraph, Snapshot, Trail
from clew.core.text import fold_name, shorten
from clew.core.trail import FillStep, GraphMatch, TrailRecorder
from clew.core.types import ROW, TABLE, Answer, Node, Question, Quote, Step
from clew.methods.chain.method import ChainMethod
from clew.methods.chain.unknowns import SHOWN_VALUES, Candidate, Filling, Hop, answer_type_mismatch
from clew.methods.graph_questions import SHOWN_FROM, GraphQuestions, ParserTrail, graphs_in_scope
from clew.methods.nested_questions import NestedQuestion, take_apart
from clew.methods.readers.answer_kinds import contains_answer
from clew.methods.readers.spans import SpanAnswerReader
from clew.methods.tables.method import TableQuestions
from clew.questions.reading import Reading, open_catalogue
from clew.questions.slots import share_root
from clew.questions.text import QuestionText

#: The log-odds that a source's value for a hop is right: a constant, and the weight of the log-odds that the source
#: itself states. Fitted by ``benchmarks/hop_sources.py``; what tables state was measured on questions over tables
#: (:func:`clew.methods.readers.table_answers.estimate_probability`).
CALIBRATION: Mapping[str, tuple[float, float]] = {
    "graph": (-0.3, 1.91),
    "document": (1.01, 1.76),
    "table": (0.0, 1.0),
}
#: A value less likely than this does not fill a hop.
MIN_PROBABILITY = 0.15
#: Probabilities are kept this far from 0 and 1.
_CERTAIN = 0.01
#: So many values of a hop are asked on with, and so many readings of it are tried in the graphs.
_VALUES, _READINGS = 3, 3
#: What a value loses of its probability whose passage does not mention what it is about.
_NOT_ABOUT = 0.3
_TITLES = re.compile(
    r"^(?:the|Mr|Mrs|Miss|Ms|Dr|Sir|Dame|Captain|Capt|Councillor|Professor|Prof)\.? (?=\S)", re.I
)
_INVERTED = re.compile(r"^(?P<last>[^\W\d][^,]*), (?P<first>[^\W\d][^,]*)$")


def calibrate(source: str, stated: float) -> float:
    """Return the probability that a source's value is right, of the probability that the source states.

    >>> round(calibrate("graph", 0.5), 2) == round(1 / (1 + math.exp(-CALIBRATION["graph"][0])), 2)
    True
    """
    constant, weight = CALIBRATION[source]
    bounded = min(max(stated, _CERTAIN), 1 - _CERTAIN)
    probability = 1 / (1 + math.exp(-(constant + weight * math.log(bounded / (1 - bounded)))))
    return min(max(probability, _CERTAIN), 1 - _CERTAIN)


def other_spellings(value: str) -> tuple[str, ...]:
    """Return a value and how else a source may write it: "Lisle, Fergus" as Fergus Lisle, "Captain Brandt" as Brandt.

    >>> other_spellings("Lisle, Fergus"), other_spellings("Dame Orla Finch")
    (('Lisle, Fergus', 'Fergus Lisle'), ('Dame Orla Finch', 'Orla Finch'))
    """
    plain = uninvert_name(value)
    return tuple(dict.fromkeys((value, plain, _TITLES.sub("", plain))))


def uninvert_name(value: str) -> str:
    """Return "Lisle, Fergus" as "Fergus Lisle", any other value as it is."""
    inverted = _INVERTED.match(value)
    return f"{inverted['first']} {inverted['last']}" if inverted else value


@dataclass(frozen=True, slots=True)
class GraphHops:
    """Asks the graphs for hops: each as a plain question (``wordings`` by unknown).

    Where the likeliest reading has no answer, the next is tried, and then another spelling of the known value; the
    trail says which.
    """

    questions: GraphQuestions
    graphs: Sequence[PropertyGraph]
    wordings: Mapping[int, str]
    name: str = "graph"

    def fill(self, question: Question, hops: Sequence[Hop], trail: Trail) -> list[Filling | None]:
        """Return the values that the graphs have for each hop, None if none."""
        return [self._fill_hop(question, hop, trail) for hop in hops]

    def _fill_hop(self, question: Question, hop: Hop, trail: Trail) -> Filling | None:
        started = time.perf_counter()
        tried = 0
        for known in hop.known[:_VALUES]:
            for spelling in other_spellings(known.value):
                text = word_hop(self.wordings[hop.unknown], spelling)
                for reading in self.questions.reader.read(text, self.graphs, _READINGS):
                    score = calibrate("graph", reading.probability)
                    if not reading.values or score < MIN_PROBABILITY:
                        continue
                    tried += 1
                    fitting = tuple(value for value in reading.values if fits_hop(text, value, spelling))
                    if not fitting:
                        continue
                    answer = self.questions.answer_reading(question, reading, TrailRecorder())
                    score *= known.score / hop.known[0].score
                    filling = _graph_filling(reading, replace(answer, values=fitting), known, score)
                    repair = "" if spelling == known.value else f"asked as '{spelling}'"
                    if known is not hop.known[0]:
                        repair = f"of the next value, '{spelling}'"
                    repair = repair if tried == 1 else "by the next reading"
                    self._record(hop, text, reading, filling, repair, trail, time.perf_counter() - started)
                    return filling
        self._record(
            hop,
            self.wordings[hop.unknown],
            None,
            None,
            "not in the graphs",
            trail,
            time.perf_counter() - started,
        )
        return None

    def _record(
        self,
        hop: Hop,
        text: str,
        reading: Reading | None,
        filling: Filling | None,
        outcome: str,
        trail: Trail,
        seconds: float,
    ) -> None:
        values = filling.candidates if filling else ()
        trail.add(
            FillStep(
                self.name,
                f"#{hop.unknown}",
                reading.triples if reading else str(hop.triple),
                question=text,
                match=GraphMatch(reading.graph) if reading else None,
                values=tuple(value.value for value in values[:SHOWN_VALUES]) if filling else None,
                of=len(values) if filling else None,
                outcome=outcome or None,
                confidence=round(filling.score, 3) if filling else None,
                hits=tuple(dict.fromkeys(hit for value in values[:SHOWN_VALUES] for hit in value.hits[-1:])),
                seconds=seconds,
            )
        )


def _graph_filling(reading: Reading, answer: Answer, known: Candidate, score: float) -> Filling:
    """Return the values of a reading, each with the triples that it rests on."""
    candidates = []
    for value in answer.values:
        own = [
            hit
            for hit in answer.evidence
            if value in (hit.node.name, hit.node.text) or value in hit.node.text
        ]
        hits = tuple(dict.fromkeys((*known.hits, *(own or answer.evidence[:1]))))
        quotes = [quote for quote in answer.quotes if quote.node in {hit.node.id for hit in own}]
        candidates.append(Candidate(value, score, hits, tuple(dict.fromkeys((*known.quotes, *quotes)))))
    return Filling("graph", tuple(candidates), graph=reading.graph)


@dataclass(frozen=True, slots=True)
class DocumentHops:
    """Asks the documents for hops, each as a question of its own (``wordings`` by unknown), answered by ``method``.

    A value that was read in a row of a table comes from the source ``table``, any other from ``document``. Where
    ``method`` computed what the question cannot mean (a year for "which firm"), ``reading`` reads the words alone.
    """

    method: Method
    reading: Method | None
    wordings: Mapping[int, str]
    name: str = "document"

    def fill(self, question: Question, hops: Sequence[Hop], trail: Trail) -> list[Filling | None]:
        """Return the answers to each hop, None if the reader found none. Raises ModelError."""
        return [self._fill_hop(question, hop, trail) for hop in hops]

    def _fill_hop(self, question: Question, hop: Hop, trail: Trail) -> Filling | None:
        candidates: list[Candidate] = []
        asked = []
        is_last = hop.unknown == max(self.wordings)
        source = self.name
        for known in hop.known[:_VALUES]:
            if trail.should_stop():
                break
            text = word_hop(self.wordings[hop.unknown], uninvert_name(known.value))
            asked.append(text)
            for method in filter(None, (self.method, self.reading)):
                answer = method.answer(Question(text, question.scope), trail)
                of_answer = _document_candidates(text, answer, known)
                if of_answer and (not candidates or of_answer[0].score > candidates[0].score):
                    source = _source_of(answer)
                # Other values may let the next hop succeed; as the answer they would be mistakes.
                candidates += of_answer[: 1 if is_last else _VALUES]
                if of_answer or answer.abstained:
                    break  # else what was computed cannot be meant, and the words are read
            if "#" not in self.wordings[hop.unknown]:
                break
        candidates.sort(key=lambda candidate: -candidate.score)
        best = tuple(candidates) if candidates and candidates[0].score >= MIN_PROBABILITY else ()
        trail.add(
            FillStep(
                source,
                f"#{hop.unknown}",
                str(hop.triple),
                question=" / ".join(asked),
                values=tuple(candidate.value for candidate in best[:SHOWN_VALUES]),
                outcome=None if best else "not in the documents",
                confidence=round(best[0].score, 3) if best else None,
                hits=best[0].hits if best else (),
            )
        )
        return Filling(source, best) if best else None


def _source_of(answer: Answer) -> str:
    return "table" if answer.evidence and answer.evidence[0].node.kind in {ROW, TABLE} else "document"


def _document_candidates(text: str, answer: Answer, known: Candidate) -> list[Candidate]:
    """Return the answer to ``text`` and its alternatives as values, likeliest first, without those that it cannot
    mean; also those of a reader that abstained, which are then unlikely."""
    stated = 0.5 if answer.confidence is None else answer.confidence
    quote = answer.quotes[0] if answer.quotes else None
    given = [] if answer.abstained else [(answer.text.strip().rstrip("."), stated, quote)]
    given += [(other.text, other.confidence, other.quote) for other in answer.alternatives[:_VALUES]]
    nodes = {hit.node.id: hit for hit in (*answer.context, *answer.evidence)}
    candidates: list[Candidate] = []
    for value, probability, support in given:
        hit = nodes.get(support.node) if support else answer.evidence[0] if answer.evidence else None
        value = complete_name(_marked_words(value, support), support)
        if not fits_hop(text, value, known.value):
            continue
        if hit is not None and not _is_about(known.value, hit.node):
            probability *= _NOT_ABOUT
        source = "table" if hit is not None and hit.node.kind in {ROW, TABLE} else "document"
        candidates.append(
            Candidate(
                value,
                calibrate(source, probability),
                (*known.hits, *([hit] if hit else [])),
                (*known.quotes, *([support] if support else [])),
            )
        )
    return sorted(candidates, key=lambda candidate: -candidate.score)


def _marked_words(text: str, quote: Quote | None) -> str:
    """Return the words of an answer that its quote marks; of one that is a whole sentence they are what is asked."""
    if quote is None or quote.answer is None:
        return text
    marked = quote.text[quote.answer[0] - quote.span[0] : quote.answer[1] - quote.span[0]]
    return marked if marked and marked in text else text


def complete_name(value: str, quote: Quote | None) -> str:
    """Return a value with the rest of the name that it is a part of in its quote: "the Tolland" with "Yard".

    >>> complete_name("Okell", Quote("", "Crew. Okell, Ruth: Rank: Purser", (0, 31), (6, 11)))
    'Okell, Ruth'
    """
    if (
        quote is None
        or quote.answer is None
        or not value[:1].isalpha()
        or not value.split()[-1][:1].isupper()
    ):
        return value
    start, end = (place - quote.span[0] for place in quote.answer)
    if quote.text[start:end] != value:
        return value
    rest = _REST_OF_NAME.match(quote.text, end)
    own = value[:1].isupper()
    first = _START_OF_NAME.search(quote.text[:start]) if own else None
    return quote.text[first.start("name") if first else start : rest.end() if rest else end]


#: The rest of a name behind a part of it, and its beginning before a part. The first word of a sentence may have its
#: capital from there.
_REST_OF_NAME = re.compile(
    r"(?:(?: & | and (?=[A-Z][\w]+\b(?! [a-z]))| )[^\W\d_a-zà-öø-ÿ][\w'’-]*)+|, [^\W\d_a-zà-öø-ÿ]\w*(?=:)"
)
_START_OF_NAME = re.compile(r"(?<=[a-z,:;] )(?P<name>(?:[^\W\d_a-zà-öø-ÿ][\w'’-]* (?:& )?)+)$")
_NUMBER_NOUNS = frozenset("year years number amount day days date month price cost sum page pages".split())
_AMOUNTS = re.compile(
    r"\b(?:cost|costs|weigh|weighs|price|wage|wages|salary|paid|earn|earned|fetch|fetched)\b\W*$", re.I
)
_WHICH = re.compile(r"^(?:\w+ )?(?:which|what) (?P<noun>[a-z]+)\b", re.IGNORECASE)


def fits_hop(text: str, value: str, known: str) -> bool:
    """Return whether a value can be the answer of a hop: of the kind that is asked for, and not what is known.

    >>> fits_hop("Which firm built it?", "1926", ""), fits_hop("What did it cost?", "Motor launch", "")
    (False, False)
    """
    if answer_type_mismatch(text, value) or fold_name(value) == fold_name(known):
        return False
    noun = _WHICH.match(text)
    is_number = bool(re.fullmatch(r"[\W\d]+", value))
    if noun and is_number and not {noun["noun"], text.rstrip("?").split()[-1]} & _NUMBER_NOUNS:
        return not noun["noun"].islower() or noun["noun"] in {
            "is",
            "was",
            "were",
            "are",
            "did",
            "does",
            "has",
            "may",
        }
    return not _AMOUNTS.search(text.rstrip("?")) or contains_answer("amount", value, "")


def _is_about(known: str, node: Node) -> bool:
    """Return whether a passage or row mentions a name, by its last word at least."""
    words = re.findall(r"\w+", other_spellings(known)[-1])
    if not words or not known[:1].isupper():
        return True
    return fold_name(words[-1]) in fold_name(f"{node.document_name} {node.name} {node.text}").split()


@dataclass(frozen=True, slots=True)
class TableHops:
    """Computes hops from the tables of data files (``wordings`` by unknown), where a reading is likely."""

    tables: TableQuestions
    wordings: Mapping[int, str]
    name: str = "table"

    def fill(self, question: Question, hops: Sequence[Hop], trail: Trail) -> list[Filling | None]:
        """Return the results for each hop, None where no reading is likely."""
        fillings: list[Filling | None] = []
        for hop in hops:
            started = time.perf_counter()
            known = hop.known[0]
            asked = Question(word_hop(self.wordings[hop.unknown], known.value), question.scope)
            readings = self.tables.read(asked)
            if not readings or readings[0].probability < SHOWN_FROM:
                fillings.append(None)
                continue
            answer = self.tables.answer_reading(asked, readings[0], TrailRecorder())
            score = calibrate(self.name, answer.confidence or 0.5)
            hits = tuple(dict.fromkeys((*known.hits, *answer.evidence)))
            quotes = tuple(dict.fromkeys((*known.quotes, *answer.quotes)))
            values = answer.values or (answer.text,)
            filling = Filling(self.name, tuple(Candidate(value, score, hits, quotes) for value in values))
            trail.add(
                FillStep(
                    self.name,
                    f"#{hop.unknown}",
                    answer.formula,
                    question=asked.text,
                    values=values[:SHOWN_VALUES],
                    of=len(values),
                    confidence=round(score, 3),
                    hits=answer.evidence,
                    seconds=time.perf_counter() - started,
                )
            )
            fillings.append(filling)
        return fillings


def word_hop(wording: str, value: str) -> str:
    """Return a hop's question with a value in the place of its reference.

    >>> word_hop("Who founded #1?", "Garrow Brothers")
    'Who founded Garrow Brothers?'
    """
    return re.sub(r"#\d", lambda _: value, wording)


@component(
    "mixed(documents=kgp)",
    kind="recipe",
    summary="a question taken apart into hops, each asked of graphs and of documents; the likelier value goes on, "
    "and where the sources disagree both are shown; no language model needed",
)
@dataclass(frozen=True, slots=True)
class MixedQuestions:
    """Answers questions of several hops from graphs and documents together."""

    snapshot: Snapshot
    graphs: GraphQuestions
    documents: Method
    reading: Method | None
    tables: TableQuestions
    chain: ChainMethod
    recipe: str = "mixed"

    @classmethod
    def build(cls, resources: Resources, recipe: str, documents: Recipe) -> MixedQuestions:
        """Return the method; ``documents`` is the recipe that answers a hop from documents. Raises UsageError."""
        chain = make_recipe("chain", {"sources": "text,model", "choose": Recipe("hop")})
        filler = resources.registry.build("recipe", chain, resources)
        has_reader = resources.model is None and isinstance(getattr(filler, "reader", None), SpanAnswerReader)
        words_only = make_recipe("kgp", {"reader": make_recipe("span", {"calculate": False})})
        return cls(
            resources.snapshot,
            resources.registry.build("recipe", Recipe("graph"), resources),
            resources.registry.build("recipe", documents, resources),
            resources.registry.build("recipe", words_only, resources) if has_reader else None,
            resources.registry.build("recipe", Recipe("tables"), replace(resources, model=None)),
            filler,
            recipe,
        )

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer with the source of each hop. Raises UsageError where the question has one hop only."""
        graphs = graphs_in_scope(self.snapshot, question)
        nested = self.take_apart(question, graphs)
        if nested is None:
            raise UsageError(
                "'mixed' answers questions of several hops, and this is read as of one: "
                f"'{shorten(question.text, 80)}'",
                "Ask it without --method, or of the graph or the documents: --method graph, --method kgp",
            )
        return self.fill(question, nested, graphs, TrailRecorder.forwarding_to(trail))

    def take_apart(self, question: Question, graphs: Sequence[PropertyGraph]) -> NestedQuestion | None:
        """Return the hops of a question; None where it has only one."""
        return take_apart(question.text, lambda noun: names_relation(noun, graphs))

    def concerns_graphs(self, nested: NestedQuestion, graphs: Sequence[PropertyGraph]) -> bool:
        """Return whether a graph may know one of the hops: by a word for one of its relations."""
        return any(
            names_relation(word.text, graphs)
            for hop in nested.hops
            for word in QuestionText(hop.relation).words
            if word.is_content
        )

    def fill(
        self,
        question: Question,
        nested: NestedQuestion,
        graphs: Sequence[PropertyGraph],
        recorder: TrailRecorder,
    ) -> Answer:
        """Return the answer of a question that was taken apart. Its confidence is that of all hops together."""
        wordings = {number: hop.text for number, hop in enumerate(nested.hops, 1)}
        sources = (
            GraphHops(self.graphs, graphs, wordings),
            TableHops(self.tables, wordings),
            DocumentHops(self.documents, self.reading, wordings),
        )
        filler = replace(self.chain, sources=sources, choose="hop", order="hops", recipe=self.recipe)
        answer = filler.answer(replace(question, chain=str(nested.chain)), ParserTrail(recorder))
        confidence = 1.0
        for best in best_fillings(recorder.steps).values():
            confidence *= best.confidence or MIN_PROBABILITY
        return replace(
            answer,
            trail=tuple(recorder.steps),
            usage=recorder.usage(),
            confidence=None if answer.abstained else round(confidence, 3),
        )

    def rests_on_graphs(self, answer: Answer) -> bool:
        """Return whether a graph gave one of the values that an answer goes through."""
        return any(step.source == "graph" for step in best_fillings(answer.trail).values())


def best_fillings(steps: Sequence[Step]) -> dict[str, FillStep]:
    """Return the step that filled each unknown with the likeliest value."""
    best: dict[str, FillStep] = {}
    for step in steps:
        if isinstance(step, FillStep) and step.values and step.confidence is not None:
            known = best.get(step.unknown)
            if known is None or step.confidence > (known.confidence or 0.0):
                best[step.unknown] = step
    return best


def names_relation(word: str, graphs: Sequence[PropertyGraph]) -> bool:
    """Return whether a word names a relation or a property of one of the graphs."""
    own = QuestionText(word).words
    return bool(own) and any(
        any(share_root(own[-1].stem, each) for each in open_catalogue(graph).labels[name].stems)
        for graph in graphs
        if not graph.is_mounted and graph.size
        for name in (*open_catalogue(graph).relations, *open_catalogue(graph).properties)
    )
