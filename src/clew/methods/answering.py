"""What all methods do at the end: read the hits, take the model's own answer, or record that a budget ended the work.

:func:`predict_answer` asks the model for its own answer over the hits.

Triples of a graph become hits and quotes. :func:`describe_origin` says in words how the text of an answer came about.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from clew.core.errors import BudgetExceeded, NotFound
from clew.core.prompts.replies import is_refusal
from clew.core.protocols import LanguageModel, PromptTemplate, PropertyGraph, Reader, Snapshot
from clew.core.trail import ModelAnswerStep, TrailRecorder
from clew.core.types import TRIPLE, Answer, Entity, Hit, Node, Question, Quote, StoppedStep
from clew.methods.prompting import make_passages_optional, parse_final_answer, titled_contexts
from clew.methods.readers import NOT_FOUND

#: An answer that abstains has this many of the best hits as its evidence.
NEAREST_HITS = 5
#: The text of an answer whose work was ended by a spent budget or by the caller.
CUT_SHORT = "Not answered: it was stopped before there was an answer. The evidence found so far is below."

UNCHECKED_ANSWER = "the model's own words, checked against nothing"
_ORIGINS = {
    "extractive": "sentences of the evidence; no language model wrote them",
    "structure": "from the documents' outline; no language model wrote it",
    "span": "words of the evidence; no language model wrote them",
    "none": UNCHECKED_ANSWER,
    "model": UNCHECKED_ANSWER,
    "chain": "filled in hop by hop, each hop from the evidence",
    "sequence": "each step answered from its source, as the steps say",
    "parts": "each part answered on its own, as the steps say",
    "tables": "computed from table cells; no language model wrote it",
    "focus": "looked up in the graph, best first",
    "graph": "looked up in the graph; no language model wrote it",
}


def read_answer(
    reader: Reader,
    question: Question,
    hits: Sequence[Hit],
    recorder: TrailRecorder,
    recipe: str,
    context: Sequence[Hit] | None = None,
) -> Answer:
    """Return the reader's answer with trail, usage and recipe; the best hits are the evidence of one that abstains.

    ``context`` lists every passage that is read, in case a hit stands for several; by default the hits.
    """
    try:
        answer = reader.read(question, hits, recorder)
    except BudgetExceeded as error:
        record_stop(recorder, error)
        answer = Answer(CUT_SHORT, abstained=True)
    if answer.abstained and not answer.evidence:
        answer = replace(answer, evidence=tuple(hits[:NEAREST_HITS]))
    return replace(
        answer,
        trail=tuple(recorder.steps),
        usage=recorder.usage(),
        recipe=recipe,
        context=tuple(hits if context is None else context),
    )


def computed_answer(
    text: str, hits: Sequence[Hit], recorder: TrailRecorder, recipe: str, abstained: bool = False
) -> Answer:
    """Return an answer that was computed from the documents themselves, without a reader ("it has 14 pages")."""
    return Answer(
        text,
        tuple(hits),
        trail=tuple(recorder.steps),
        usage=recorder.usage(),
        recipe=recipe,
        abstained=abstained,
        reader="structure",
        context=tuple(hits),
    )


def record_stop(recorder: TrailRecorder, error: BudgetExceeded) -> None:
    """Add to the trail that a budget ended a step; the method goes on with what it has."""
    recorder.add(StoppedStep(error.problem))


def no_answer_text(recorder: TrailRecorder) -> str:
    """Return the text of an answer that abstains: the work was stopped, or nothing was found."""
    stopped = any(isinstance(step, StoppedStep) for step in recorder.steps)
    return CUT_SHORT if stopped else NOT_FOUND


def model_answer(
    reader: Reader | None,
    question: Question,
    reply: str,
    hits: Sequence[Hit],
    recorder: TrailRecorder,
    recipe: str,
) -> Answer:
    """Return the reader's answer; without a reader, the answer that the model itself gave (``reply``).

    The published methods take the model's answer unchecked, so its evidence is everything that the model was shown.
    The answer abstains if the reply is empty or says that the answer is not known.
    """
    if reader is not None:
        return read_answer(reader, question, hits, recorder, recipe)
    if is_refusal(reply):
        reply = ""
    return Answer(
        reply or no_answer_text(recorder),
        tuple(hits) if reply else tuple(hits[:NEAREST_HITS]),
        trail=tuple(recorder.steps),
        usage=recorder.usage(),
        abstained=not reply,
        reader="model",
        recipe=recipe,
        context=tuple(hits),
    )


def predict_answer(
    model: LanguageModel,
    template: PromptTemplate,
    question: Question,
    hits: Sequence[Hit],
    recorder: TrailRecorder,
) -> str:
    """Return the answer of the model's chain of thought over the hits, "" if it ends without one.

    ``template`` is the prompt ``cot``. Raises ModelError, and BudgetExceeded.
    """
    started = time.perf_counter()
    contexts = titled_contexts(hits)
    prompt = template.render(question=question.text, contexts="\n\n".join([*contexts, ""]))
    prompt = make_passages_optional(prompt, contexts)
    completion = model.complete([prompt])[0]
    final = parse_final_answer(completion.text)
    recorder.add(
        ModelAnswerStep(
            "model",
            prompt=template.name,
            thought=completion.text.strip(),
            final=final,
            hits=tuple(hits),
            usage=completion.usage,
            seconds=time.perf_counter() - started,
        )
    )
    return final


def describe_origin(
    reader: str, from_memory: Collection[str], ranked_by: Iterable[str], is_quoted: bool = True
) -> str:
    """Say how the text of an answer came about.

    ``reader`` is that of the answer; one that is not a reader of ours is the name of a model. ``from_memory`` is that
    of the answer, ``ranked_by`` that of each of its ranked answers. ``is_quoted``: the text stands in one of its
    quotes; "yes", a count or a difference does not.
    """
    if reader == "chain" and from_memory:
        return "filled in hop by hop, in part from the model's memory"
    if reader == "focus" and "read" in ranked_by:
        return "read where no graph has it"
    if reader == "span" and not is_quoted:
        return "read from the evidence; no language model wrote it"
    # The name of a model at another address is "address#model".
    return _ORIGINS.get(reader, f"written by {reader.rpartition('#')[2]}, from the evidence")


def triple_hit(
    graph: str, head: Entity, relation: str, tail: str, tail_id: str = "", score: float = 1.0
) -> Hit:
    """Return a triple as a hit. ``tail`` is the name of its tail; ``tail_id`` is "" for the value of a property."""
    id = f"{head.id} >> {relation} >> {tail_id.removeprefix(f'{graph}:') or tail}"
    text = f"{head.name} >> {relation} >> {tail}"
    node = Node(id, TRIPLE, text, graph, graph, 0, None, relation, 0, None, (), (0, len(text)))
    return Hit(node, score, (id,))


def quote_triples(hits: Sequence[Hit]) -> tuple[Quote, ...]:
    """Return for each hit that is a triple its whole text as a quote."""
    triples = (hit for hit in hits if hit.node.kind == TRIPLE)
    return tuple(Quote(hit.node.id, hit.node.text, (0, len(hit.node.text))) for hit in triples)


def source_passages(
    snapshot: Snapshot, graph: PropertyGraph, edge: tuple[int, str, int], score: float
) -> tuple[Hit, ...]:
    """Return the passages of this base that an edge (head, relation, tail) was extracted from."""
    passages: list[Hit] = []
    statements = graph.edge_properties(*edge)
    for id in dict.fromkeys(str(each["passage"]) for each in statements if "passage" in each):
        try:
            (node,) = snapshot.nodes(snapshot.rows([id]))
        except NotFound:  # the graph was extracted from documents of another base
            continue
        passages.append(Hit(node, score, (id,)))
    return tuple(passages)
