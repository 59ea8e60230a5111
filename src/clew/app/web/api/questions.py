"""Questions: asked, followed, stopped, exported (Markdown for people, JSON for programs), forgotten."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, field_validator

from clew.app.answers.citations import render_text
from clew.app.answers.follow_ups import StandaloneQuestion, complete_question
from clew.app.answers.view import AnswerView, SupportView, format_confidence
from clew.app.web import history
from clew.app.web.bases import ServedBase
from clew.app.web.events import EventChannel, stream_channel
from clew.app.web.method_choices import DEFAULT, method_for_triples, resolve_method
from clew.app.web.question_queue import QuestionRequest
from clew.app.web.server import CurrentBase, CurrentServer, Server
from clew.core.errors import NotFound, UsageError
from clew.questions.follow_up import LOOK_BACK, Turn

router = APIRouter(prefix="/bases/{base}", tags=["questions"])

#: The keys of documents, as /documents returns them.
KEY = r"^[0-9a-f]{32}$"


class Form(BaseModel):
    """A JSON request without unknown fields, whose texts are valid Unicode."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    @field_validator("*")
    @classmethod
    def _text(cls, value: Any) -> Any:
        if isinstance(value, str):
            check_text(value)
        elif isinstance(value, list):
            for item in value:
                check_text(str(item))
        return value


def check_text(text: str) -> None:
    """Raise ValueError for text that is not Unicode (half a surrogate pair)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("is not valid Unicode") from None


Key = Annotated[str, Field(pattern=KEY)]
Name = Annotated[str, Field(max_length=200)]
Condition = Annotated[str, Field(max_length=2_000)]


class Ask(Form):
    """A question. ``recipe`` and ``model`` are names of /config; by default clew chooses. ``documents`` and
    ``graphs`` restrict the search, and so does ``where``, a condition on the fields of documents such as
    ``date >= 2021 and tag = lease``. ``chain`` is the question as triples. ``beside`` is the id of a question to
    compare with. ``follows`` is the id of the question before, with whose words and answer a follow-up ("and in
    2021?") is made to stand alone, unless ``verbatim``."""

    question: str = ""
    recipe: Name = DEFAULT
    model: Name | None = None
    documents: Annotated[list[Key], Field(max_length=10_000)] | None = None
    where: Condition = ""
    graphs: Annotated[list[Name], Field(max_length=1_000)] | None = None
    chain: str = ""
    beside: Name | None = None
    follows: Name | None = None
    verbatim: bool = False


@router.post("/questions", status_code=202)
def ask(asked: Ask, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Accept a question and return its id at once. 429 with Retry-After if too many wait already."""
    if not (asked.question or asked.chain):
        raise UsageError("the question is empty", "Say what you want to know")
    refuse_long(server, asked.question, asked.chain)
    alone = StandaloneQuestion(asked.question)
    if asked.follows:
        turns = read_turns(base, asked.follows)
        alone = alone if asked.verbatim else complete_question(asked.question, turns)
    recipe = asked.recipe
    if asked.chain and recipe == DEFAULT:
        recipe = method_for_triples(asked.chain)
    model = server.questions.models.choice(asked.model)
    # Checked here, while the client still waits for the reply.
    for name in asked.graphs or ():
        base.knowledge_base.graphs.get(name)
    documents: Collection[str] | None = asked.documents
    base.knowledge_base.document_keys(*(documents or ()))
    if asked.where:
        documents = sorted(base.knowledge_base.select_documents(asked.where, documents))
    job = server.questions.submit(
        base,
        QuestionRequest(
            alone.question,
            recipe,
            None if model is None else model.id,
            None if documents is None else tuple(documents),
            None if asked.graphs is None else tuple(asked.graphs),
            asked.chain,
            asked.beside,
            asked.follows,
            asked.question if alone.question != asked.question else "",
            alone.asks_source,
        ),
        resolve_method(server.settings, recipe),
        model,
    )
    place = f"{base.api_path}/questions/{job.id}"
    return {"id": job.id, "state": job.state, "url": place, "events": f"{place}/events"}


def refuse_long(server: Server, *texts: str) -> None:
    """Raise UsageError where one of the texts of a question has more characters than the settings allow."""
    limit = server.settings.limits.question_characters
    if max(map(len, texts)) > limit:
        raise UsageError(f"the question has more than {limit:,} characters", "Ask for less at a time")


def read_turns(base: ServedBase, id: str) -> list[Turn]:
    """Return the last turns of a conversation up to a question of the history, in order. Those that asked for a
    source add nothing to it. Raises NotFound for that question alone; those before may have been forgotten."""
    turns: list[Turn] = []
    entry = base.history.get(id)
    while len(turns) < LOOK_BACK:
        answer = entry["answer"] or {"abstained": True, "answer": ""}
        is_given = answer.get("way") == "perhaps" or not answer["abstained"]
        if not entry["asks_source"]:
            text = answer["answer"] if is_given else ""
            turns.insert(0, Turn(entry["question"], text, is_stated=not answer["abstained"]))
        if not entry["follows"]:
            break
        try:
            entry = base.history.get(entry["follows"])
        except NotFound:
            break
    return turns


class FollowUp(Form):
    """A follow-up question."""

    question: str


@router.post("/questions/{id}/follow-up")
def follow_up(id: str, asked: FollowUp, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Return what a follow-up to a question means, as a question that stands alone; nothing is asked."""
    refuse_long(server, asked.question)
    return {"question": complete_question(asked.question, read_turns(base, id)).question}


class Conversation(Form):
    """The title of a conversation ("" for its first question), and whether it is pinned; None changes nothing."""

    title: Annotated[str, Field(max_length=200)] | None = None
    pinned: bool | None = None


@router.patch("/questions/{id}")
def rename(id: str, asked: Conversation, base: CurrentBase) -> dict[str, Any]:
    """Rename or pin the conversation that a question belongs to."""
    base.history.rename(id, asked.title, asked.pinned)
    return {"id": id, **asked.model_dump(exclude_none=True)}


@router.get("/questions/{id}/events", response_class=StreamingResponse)
def events(
    id: str, server: CurrentServer, base: CurrentBase, last_event_id: Annotated[str | None, Header()] = None
) -> Response:
    """Follow a question as server-sent events: ``waiting``, ``running``, each ``step``, then ``answer`` or
    ``problem``.

    A question that has ended sends only the last event. A reader that reconnects with Last-Event-ID gets the events
    that it has missed; 204 if there are no more.
    """
    job = server.questions.get(base, id)
    if job is not None:
        if job.events.is_closed and last_event_id == str(job.events.last_number):
            return Response(status_code=204)
        return stream_channel(job.events, last_event_id)
    if last_event_id is not None:
        return Response(status_code=204)
    return stream_channel(_last_event(base.history.get(id)), None)


def _last_event(entry: dict[str, Any]) -> EventChannel:
    """Return a channel with the last event of a question that has ended."""
    head, channel = {"id": entry["id"], "state": entry["state"]}, EventChannel()
    if entry["answer"] is not None:
        channel.send("answer", head | entry["answer"])
    else:
        interrupted = {"error": "the server ended before the answer was complete", "hint": "Ask again"}
        channel.send("problem", head | (entry["problem"] or interrupted))
    channel.close()
    return channel


@router.post("/questions/{id}/stop", status_code=202)
def stop(id: str, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Stop a question: at once if it waits, else after its current step. What was found until then is its answer."""
    job = server.questions.stop(base, id)
    return {"id": id, "state": job.state, "stopping": job.state not in history.FINAL_STATES}


@router.get("/questions")
def questions(
    base: CurrentBase,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    before: Annotated[float | None, Query(description="Only questions asked before this time.")] = None,
) -> dict[str, Any]:
    """List the questions, the latest first, with the texts of their answers."""
    return {"questions": base.history.latest(limit, before)}


@router.get("/questions/{id}")
def question(id: str, server: CurrentServer, base: CurrentBase) -> dict[str, Any]:
    """Return a question with its answer: text, confidence, alternatives, evidence, quotes, trail, usage."""
    return server.questions.entry(base, id)


@router.get("/questions/{id}/export", response_class=Response)
def export(
    id: str,
    base: CurrentBase,
    form: Annotated[
        Literal["markdown", "json", "text"], Query(description="The format of the file.")
    ] = "markdown",
) -> Response:
    """Return a question with its answer and citations as a file: Markdown, JSON, or plain text with references."""
    entry = base.history.get(id)
    if entry["answer"] is None:
        raise NotFound("this question has no answer to export")
    if form == "text":
        text = (
            f"{entry['question'] or entry['chain']}\n\n{render_text(AnswerView.from_dict(entry['answer']))}\n"
        )
        return Response(text, media_type="text/plain")
    ending, media_type, content = (
        ("md", "text/markdown", render_markdown(entry))
        if form == "markdown"
        else ("json", "application/json", render_json(entry))
    )
    headers = {"Content-Disposition": f'attachment; filename="answer-{entry["id"]}.{ending}"'}
    return Response(content, media_type=media_type, headers=headers)


@router.delete("/questions/{id}")
def forget(
    id: str,
    server: CurrentServer,
    base: CurrentBase,
    conversation: Annotated[bool, Query(description="Forget all questions of its conversation.")] = False,
) -> dict[str, Any]:
    """Forget a question and its answer. A question that is being answered is stopped first."""
    job = server.questions.get(base, id)
    if job is not None and job.state not in history.FINAL_STATES:
        server.questions.stop(base, id)
    if conversation:
        return {"forgotten": id, "questions": base.history.forget_conversation(id)}
    base.history.forget(id)
    return {"forgotten": id}


@router.delete("/questions")
def clear(base: CurrentBase) -> dict[str, Any]:
    """Forget every question that has ended."""
    return {"forgotten": base.history.clear()}


#: Characters that mean something in Markdown or HTML.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")


def render_json(entry: Mapping[str, Any]) -> str:
    """Return a question of the history, with its answer, as JSON."""
    return json.dumps(entry, ensure_ascii=False, indent=2) + "\n"


def render_markdown(entry: Mapping[str, Any]) -> str:
    """Return a question of the history as Markdown: the answer, its numbered evidence with the quoted words, and how
    the answer was reached. Texts of documents are escaped, so they stay text wherever the file is shown."""
    view = AnswerView.from_dict(entry["answer"])
    lines = [f"# {escape_markdown(entry['question'] or entry['chain'])}", ""]
    if view.confidence is not None or view.perhaps:
        lines += _format_candidates(view)
    else:
        lines += [*map(escape_markdown, view.text.split("\n")), ""]
    for text in view.from_memory:
        lines += [f"From the model's memory, without evidence: {escape_markdown(text)}", ""]
    lines += [
        *_format_ranked(view),
        *_format_evidence(view),
        "## How it came about",
        "",
        *_format_origin(entry, view),
    ]
    return "\n".join(lines).rstrip() + "\n"


def escape_markdown(text: str) -> str:
    r"""Return a text, in one line, that Markdown shows as it is.

    >>> print(escape_markdown("a_b <script>\n# c"))
    a\_b \<script\> \# c
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _format_candidates(view: AnswerView) -> Iterator[str]:
    """Yield the answer with confidence, quotations and alternatives, or the possible answers."""
    if view.answer_first:
        yield from (f"## {escape_markdown(view.text)}", "")
        yield from (f"Confidence: {format_confidence(view.confidence or 0)}", "")
        for support in view.supports:
            yield from _format_support(support, "")
    elif not view.perhaps:
        yield from (escape_markdown(view.text), "")
    candidates = view.perhaps or view.alternatives
    if candidates:
        heading = {"answer": "### Alternatives", "perhaps": "## Perhaps", "not_found": "### Nearest"}[
            view.way
        ]
        yield from (heading, "")
    for number, item in enumerate(candidates, 1):
        sure = "" if item.confidence is None else f" ({format_confidence(item.confidence)})"
        yield from (f"{number}. {escape_markdown(item.text)}{sure}", "")
        for support in item.supports:
            yield from _format_support(support, "   ")


def _format_support(support: SupportView, indent: str) -> Iterator[str]:
    """Yield a quotation with the answer in bold, and its place with the number of its evidence."""
    words = (
        f"**{escape_markdown(piece.text)}**" if piece.is_answer else _escape_keeping_ends(piece.text)
        for piece in support.pieces
    )
    yield from (f"{indent}> {''.join(words).strip()}", "")
    number = f" ({support.number})" if support.number else ""
    if support.place:
        yield from (f"{indent}{escape_markdown(support.place)}{number}", "")


def _escape_keeping_ends(text: str) -> str:
    """Return a part of a line as :func:`escape_markdown` does, with a blank at each end that has blanks."""
    start, end = (" " if blank else "" for blank in (text[:1].isspace(), text[-1:].isspace()))
    return f"{start}{escape_markdown(text)}{end}" if text.strip() else start


def _format_ranked(view: AnswerView) -> Iterator[str]:
    if not view.ranked:
        return
    yield from ("## Answers, best first", "")
    for name, taken in view.substitutions.items():
        yield f"Near names: taking '{escape_markdown(name)}' as {escape_markdown(taken)}"
        yield ""
    for heading, rows in view.lists:
        yield from (f"### {heading}", "")
        for rank, row in rows:
            by = f" ({escape_markdown(row.ranked_by)})" if row.ranked_by else ""
            yield f"{rank}. **{escape_markdown(row.name)}**{by}"
            for check in row.checks:
                met = "not known" if check.met is None else f"met {check.met:.2g}"
                yield f"   - {escape_markdown(check.constraint)}: {met}"
        yield ""


def _format_evidence(view: AnswerView) -> Iterator[str]:
    if view.evidence:
        yield from ("## What came nearest" if view.way == "not_found" else "## Evidence", "")
    for item in view.evidence:
        yield from (f"{item.number}. **{escape_markdown(item.node.location)}**", "")
        yield from (f"   > {escape_markdown(item.node.text)}", "")
        for quote in item.quotes if view.way != "not_found" else ():
            yield from (f"   Quoted: “{escape_markdown(quote.text)}”", "")


def _format_origin(entry: Mapping[str, Any], view: AnswerView) -> Iterator[str]:
    """Yield when and how the question was answered, and what that cost."""
    yield f"- asked: {datetime.fromtimestamp(entry['asked'], UTC).isoformat(timespec='seconds')}"
    yield f"- how: {escape_markdown(view.origin or view.heading)}; model: {escape_markdown(entry['model'] or 'none')}"
    if view.stopped:
        yield f"- stopped: {escape_markdown(view.stopped)}"
    if (usage := view.usage).calls:
        money = "price unknown" if usage.money is None else f"${usage.money:.4f}"
        yield f"- cost: {usage.calls} calls, {usage.tokens_in} tokens in, {usage.tokens_out} out, {money}"
    for step in view.steps:
        yield f"- {escape_markdown(step.name)}: {len(step.hits)} found, {step.seconds:.2f} s"
