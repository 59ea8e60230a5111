"""``/v1/chat/completions`` and ``/v1/models``: questions in the form that OpenAI's clients send.

The last user message is the question. The reply's text is the answer with ``[1]`` after what each citation supports,
and the list of sources below; its field ``clew`` has the same, structured (``question`` as it was asked, ``answer``,
``abstained``, ``citations``, ``steps``, ``usage`` and more). A streamed reply has that field in its last chunk; while
the answer is worked on, its steps come as comments, which clients ignore.

A server has these routes for its first base at ``/v1``, and for each base at ``/api/bases/NAME/v1``. Access control
and the size of requests are the application's business.
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
from clew.app.answers.view import AnswerView, StepView
from clew.app.web.events import stream_events, stream_steps
from clew.app.web.method_choices import DEFAULT, evidence_methods, offered_methods
from clew.app.web.openai.wire import (
    ChatError,
    ChatRequest,
    ReplyBuilder,
    StandaloneQuestion,
    Turn,
    encode_event,
    reply_parts,
    rewrite_standalone,
)
from clew.app.web.server import Server
from clew.app.web.settings import Settings
from clew.core.errors import ClewError
from clew.core.types import Answer, Step

T = TypeVar("T")
StepOrAnswer: TypeAlias = Step | Answer
#: The name of the model that is the default recipe, and the beginning of the others' names.
MODEL_NAME = "clew"
#: Seconds between two checks whether the client is still connected.
_POLL = 0.5
#: The status of a reply to a client that has disconnected.
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
        """Return the handler, with its exceptions turned into responses."""
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except ChatError as error:
                return _error_response(error)
            except ClewError as error:
                return _error_response(ChatError.from_error(error))
            except HTTPException as error:  # of a dependency of the application
                code = "invalid_api_key" if error.status_code == 401 else None
                chat_error = ChatError(str(error.detail), code=code, status=error.status_code)
                chat_error.headers |= dict(error.headers or {})
                return _error_response(chat_error)
            except RequestValidationError as error:
                return _error_response(_validation_error(error))

        return handle_errors


@dataclass(slots=True)
class _ChatWork:
    """One question on its way; ``asked`` is the question as it was asked, once it is answered."""

    backend: ChatBackend
    recipe: str
    turns: list[Turn]
    asked: StandaloneQuestion

    def __call__(self, watch: Callable[[Step], None], stop: Callable[[], bool]) -> Answer:
        """Return the answer. Raises ClewError."""
        self.asked, answer = self.backend.ask(self.turns, self.recipe, watch, stop)
        return answer


def make_chat_router(
    backend: ChatBackend, recipes: Mapping[str, str], executor: Executor | None = None
) -> APIRouter:
    """Return the routes.

    ``recipes`` are those that may be asked for, by the names that they get after ``clew:``. ``executor`` has the
    threads in which the backend is called, by default those of the event loop; a question waits for a free one.
    """
    models = {MODEL_NAME: DEFAULT} | {f"{MODEL_NAME}:{name}": recipe for name, recipe in recipes.items()}
    started = int(time.time())
    router = APIRouter(prefix="/v1", route_class=OpenAIRoute, tags=["OpenAI-compatible"])

    def model_to_dict(model: str) -> dict[str, Any]:
        return {"id": model, "object": "model", "created": started, "owned_by": MODEL_NAME}

    @router.get("/models")
    async def list_models() -> dict[str, Any]:
        """List the models: ``clew`` is the recipe that measures best, ``clew:NAME`` a certain method."""
        return {"object": "list", "data": [model_to_dict(model) for model in models]}

    @router.get("/models/{model}")
    async def one_model(model: str) -> dict[str, Any]:
        """Return one model."""
        _recipe(models, model)
        return model_to_dict(model)

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
        work = _ChatWork(backend, recipe, turns, StandaloneQuestion(turns[-1].text))
        reply = ReplyBuilder(asked.model)
        if not asked.stream:
            answer = await _while_connected(request, _wait_for_answer(stream_steps(work, executor)))
            if answer is None:
                return Response(status_code=_GONE)
            view = AnswerView.from_answer(answer)
            return JSONResponse(reply.completion(view, work.asked.question, work.asked.usage))
        # The first event decides the status: a request that fails at once is an error like any other.
        events = stream_steps(work, executor)
        first = await _while_connected(request, anext(events))
        if first is None:
            return Response(status_code=_GONE)
        usage = asked.stream_options is not None and asked.stream_options.include_usage
        return stream_events(_reply_events(_with_first(first, events), work, reply, usage))

    return router


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of ``work``; None if the client disconnects, which cancels the work. Raises ClewError."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_POLL)
            if not task.done() and await request.is_disconnected():
                return None
        return task.result()
    finally:
        task.cancel()


async def _wait_for_answer(events: AsyncGenerator[StepOrAnswer]) -> Answer:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Answer):
                return event
    raise RuntimeError("work ended without an answer")


async def _with_first(
    first: StepOrAnswer, rest: AsyncGenerator[StepOrAnswer]
) -> AsyncGenerator[StepOrAnswer]:
    async with aclosing(rest):
        yield first
        async for event in rest:
            yield event


async def _reply_events(
    events: AsyncGenerator[StepOrAnswer], work: _ChatWork, reply: ReplyBuilder, usage: bool
) -> AsyncGenerator[str]:
    """Yield the server-sent events of a streamed reply. Errors are events here: the status has been sent."""
    async with aclosing(events):
        yield encode_event(reply.role_chunk())
        try:
            async for event in events:
                if isinstance(event, Step):
                    yield f": {summarise_step(StepView.from_step(event))}\n\n"
                    continue
                view = AnswerView.from_answer(event)
                for part in reply_parts(view):
                    yield encode_event(reply.text_chunk(part))
                yield encode_event(reply.final_chunk(view, work.asked.question, work.asked.usage))
                if usage:
                    yield encode_event(reply.usage_chunk(view.usage + work.asked.usage))
        except ClewError as error:
            yield encode_event(ChatError.from_error(error).body)
        yield "data: [DONE]\n\n"


def _recipe(models: Mapping[str, str], model: str) -> str:
    if model not in models:
        message = f"The model '{model}' does not exist. There are: {', '.join(models)}"
        raise ChatError(message, "model", "model_not_found", 404)
    return models[model]


def _validation_error(error: RequestValidationError) -> ChatError:
    """Return what is wrong with a body that is not a valid request."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    return ChatError(f"{where}: {first['msg']}" if where else str(first["msg"]), where or None)


def _error_response(error: ChatError) -> JSONResponse:
    return JSONResponse(error.body, error.status, error.headers)


@dataclass(frozen=True, slots=True)
class BaseChatBackend:
    """A :class:`ChatBackend` over one base of a running server. It has the server's first model, the budget of one
    question, and as many places as the pages have."""

    app: FastAPI
    base: str

    def ask(
        self, turns: Sequence[Turn], recipe: str, watch: Callable[[Step], None], stop: Callable[[], bool]
    ) -> tuple[StandaloneQuestion, Answer]:
        """Return the question as it was asked, and the answer. Raises ClewError, ServerBusy where too many ask."""
        server: Server = self.app.state.server
        with server.questions.chat_slots.admit():
            model = server.questions.models.lend(server.settings.model(None), stop)
            asked = rewrite_standalone(turns, model)
            base = server.bases[self.base].knowledge_base
            return asked, base.ask(asked.question, llm=model, recipe=recipe, watch=watch, stop=stop)


def make_chat_routers(
    app: FastAPI, settings: Settings, executor: Executor
) -> Iterator[tuple[str, APIRouter]]:
    """Yield the routes of each base with their prefix; the first base has them twice. Raises UsageError."""
    methods = (
        offered_methods(settings.recipes) if settings.recipes else evidence_methods(bool(settings.models))
    )
    recipes = {name: choice.recipe for name, choice in methods.items() if name != DEFAULT}
    for number, name in enumerate(settings.bases):
        router = make_chat_router(BaseChatBackend(app, name), recipes, executor)
        if number == 0:
            yield "", router
        # Not quoted: addresses are compared after they were decoded.
        yield f"/api/bases/{name}", router
