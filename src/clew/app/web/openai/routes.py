"""``/v1/chat/completions`` and ``/v1/models``: questions in the form that OpenAI's clients send.

The last user message is the question. The reply's text is the answer with ``[1]`` after what each citation supports,
and the list of sources below; its field ``clew`` has the same, structured
(:func:`clew.app.web.openai.wire.clew_field`):
``question`` (as it was asked), ``answer``, ``abstained``, ``citations``, ``steps``, ``usage`` and more. A streamed
reply has that field in its last chunk; while the answer is worked on, its steps come as comments, which clients pass
over.

Who may ask is the application's business, and so is how large a request may be.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from clew.app.answers.citations import summarise_step
from clew.app.web import method_choices as choices
from clew.app.web.events import stream_events
from clew.app.web.method_choices import DEFAULT
from clew.app.web.openai.conversation import StandaloneQuestion, Turn, rewrite_standalone
from clew.app.web.openai.wire import ChatError, ChatRequest, ReplyBuilder, encode_event, reply_parts
from clew.app.web.server import Server
from clew.app.web.settings import Settings
from clew.app.web.step_stream import stream_steps
from clew.core.errors import ClewError
from clew.core.types import Answer, Step

T = TypeVar("T")
StepOrAnswer: TypeAlias = Step | Answer
#: The name of the model that is the default recipe, and what the names of the others begin with.
MODEL_NAME = "clew"
#: How often, in seconds, it is looked whether who asked is still there.
_LOOK = 0.5
#: The status of a reply that nobody is there to read.
_GONE = 499


class ChatBackend(Protocol):
    """Answers the last turn of a conversation. Called in a thread of its own."""

    def ask(
        self, turns: Sequence[Turn], recipe: str, watch: Callable[[Step], None], stop: Callable[[], bool]
    ) -> tuple[StandaloneQuestion, Answer]:
        """Return the question as it was asked, and the answer. Raises ClewError.

        ``watch`` receives each step, ``stop`` is asked between steps.
        """
        ...


class OpenAIRoute(APIRoute):
    """A route whose errors have the form of OpenAI's."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with what it raises made a response."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except ChatError as refusal:
                return _refused(refusal)
            except ClewError as error:
                return _refused(ChatError.from_error(error))
            except HTTPException as wrong:  # of what the application asks before
                code = "invalid_api_key" if wrong.status_code == 401 else None
                answer = ChatError(str(wrong.detail), code=code, status=wrong.status_code)
                answer.headers |= dict(wrong.headers or {})
                return _refused(answer)
            except RequestValidationError as error:
                return _refused(_misread(error))

        return handled


@dataclass(slots=True)
class _Work:
    """One question on its way; ``asked`` is how it was asked, once it is answered."""

    asker: ChatBackend
    recipe: str
    turns: list[Turn]
    asked: StandaloneQuestion

    def __call__(self, watch: Callable[[Step], None], stop: Callable[[], bool]) -> Answer:
        """Return the answer. Raises ClewError."""
        self.asked, answer = self.asker.ask(self.turns, self.recipe, watch, stop)
        return answer


def make_chat_router(
    asker: ChatBackend, recipes: Mapping[str, str], executor: Executor | None = None
) -> APIRouter:
    """Return the routes.

    ``recipes`` are those that may be asked for, by the names that they get after ``clew:``. ``executor`` has the
    threads in which the asker is called, by default those of the event loop; a question that finds none free waits.
    """
    models = {MODEL_NAME: DEFAULT} | {f"{MODEL_NAME}:{name}": recipe for name, recipe in recipes.items()}
    since = int(time.time())
    router = APIRouter(prefix="/v1", route_class=OpenAIRoute, tags=["OpenAI-compatible"])

    def described(model: str) -> dict[str, Any]:
        return {"id": model, "object": "model", "created": since, "owned_by": MODEL_NAME}

    @router.get("/models")
    async def list_models() -> dict[str, Any]:
        """List the models: ``clew`` is the recipe that measures best, ``clew:NAME`` a certain method."""
        return {"object": "list", "data": [described(model) for model in models]}

    @router.get("/models/{model}")
    async def one_model(model: str) -> dict[str, Any]:
        """Return one model."""
        _recipe(models, model)
        return described(model)

    @router.post("/chat/completions")
    async def complete(asked: ChatRequest, request: Request) -> Response:
        """Answer the last user message from the base, with numbered citations and the list of their sources.

        The reply is a chat completion (`stream`: chunks) with one more field, `clew`: `question` as it was asked
        (earlier turns are used to make it stand alone, if a language model is set), `answer`, `abstained`,
        `citations` (number, document, page, section, quotes), `nearest`, `steps`, `usage`. System messages are not
        read; sampling parameters have no effect; tools, several choices and response formats are refused.
        """
        recipe = _recipe(models, asked.model)
        asked.check_supported()
        turns = asked.turns()
        work = _Work(asker, recipe, turns, StandaloneQuestion(turns[-1].text))
        reply = ReplyBuilder(asked.model)
        if not asked.stream:
            answer = await _while_there(request, _last(stream_steps(work, executor)))
            if answer is None:
                return Response(status_code=_GONE)
            return JSONResponse(reply.completion(answer, work.asked.question, work.asked.usage))
        # The first event decides the status: what is wrong from the beginning is an error like any other.
        events = stream_steps(work, executor)
        first = await _while_there(request, anext(events))
        if first is None:
            return Response(status_code=_GONE)
        usage = asked.stream_options is not None and asked.stream_options.include_usage
        stream = _streamed(_with_first(first, events), work, reply, usage)
        return stream_events(stream)

    return router


async def _while_there(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """Return what ``work`` does; None where who asked has gone, and the work is cancelled. Raises ClewError."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_LOOK)
            if not task.done() and await request.is_disconnected():
                return None
        return task.result()
    finally:
        task.cancel()


async def _last(events: AsyncGenerator[StepOrAnswer]) -> Answer:
    async with aclosing(events):
        async for one in events:
            if isinstance(one, Answer):
                return one
    raise RuntimeError("work ended without an answer")


async def _with_first(
    first: StepOrAnswer, rest: AsyncGenerator[StepOrAnswer]
) -> AsyncGenerator[StepOrAnswer]:
    async with aclosing(rest):
        yield first
        async for one in rest:
            yield one


async def _streamed(
    events: AsyncGenerator[StepOrAnswer], work: _Work, reply: ReplyBuilder, usage: bool
) -> AsyncGenerator[str]:
    """Yield the events of a streamed reply. Errors are events here: the status has been sent."""
    async with aclosing(events):
        yield encode_event(reply.chunk({"role": "assistant", "content": "", "refusal": None}))
        try:
            async for one in events:
                if isinstance(one, Step):
                    yield f": {summarise_step(one)}\n\n"
                    continue
                for part in reply_parts(one):
                    yield encode_event(reply.chunk({"content": part}))
                yield encode_event(reply.final_chunk(one, work.asked.question, work.asked.usage))
                if usage:
                    yield encode_event(reply.usage_chunk(one.usage + work.asked.usage))
        except ClewError as error:
            yield encode_event(ChatError.from_error(error).body)
        yield "data: [DONE]\n\n"


def _recipe(models: Mapping[str, str], model: str) -> str:
    if model not in models:
        raise ChatError(
            f"The model '{model}' does not exist. There are: {', '.join(models)}",
            "model",
            "model_not_found",
            404,
        )
    return models[model]


def _misread(error: RequestValidationError) -> ChatError:
    """Return what is wrong with a body that is no request."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    return ChatError(f"{where}: {first['msg']}" if where else str(first["msg"]), where or None)


def _refused(refusal: ChatError) -> JSONResponse:
    return JSONResponse(refusal.body, refusal.status, refusal.headers)


@dataclass(frozen=True, slots=True)
class BaseChatBackend:
    """:class:`clew.app.web.openai.routes.ChatBackend` over one base of a running server: its model, its budget
    for one question, and
    as many at once as its pages may ask."""

    app: FastAPI
    base: str

    def ask(
        self, turns: Sequence[Turn], recipe: str, watch: Callable[[Step], None], stop: Callable[[], bool]
    ) -> tuple[StandaloneQuestion, Answer]:
        """Return the question as it was asked, and the answer. Raises ClewError, Busy where too many ask."""
        server: Server = self.app.state.server
        with server.questions.chat_slots.admit():
            model = server.questions.models.lend(server.settings.model(None), stop)
            asked = rewrite_standalone(turns, model)
            base = server.bases[self.base].base
            return asked, base.ask(asked.question, llm=model, recipe=recipe, watch=watch, stop=stop)


def make_chat_routers(
    app: FastAPI, settings: Settings, executor: Executor
) -> Iterator[tuple[str, APIRouter]]:
    """Yield the routes for programs, each with what stands before its paths. Raises UsageError."""
    known = (
        choices.offered_methods(settings.recipes)
        if settings.recipes
        else choices.evidence_methods(bool(settings.models))
    )
    recipes = {name: one.recipe for name, one in known.items() if name != choices.DEFAULT}
    for number, name in enumerate(settings.bases):
        made = make_chat_router(BaseChatBackend(app, name), recipes, executor)
        if number == 0:
            yield "", made
        # Not quoted: addresses are compared as they are when they were decoded.
        yield f"/api/bases/{name}", made


# MERGED: The chat endpoints of a server: ``/v1`` asks its first base, ``/api/bases/NAME/v1`` each of them.
