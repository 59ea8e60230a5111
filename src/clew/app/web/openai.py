"""``/v1/chat/completions``, ``/v1/responses`` and ``/v1/models``: questions in the form that OpenAI's clients send.

The last user message is the question. The reply's text is the answer with ``[1]`` after what each citation supports,
and the list of sources below; its field ``clew`` has the same, structured (``question`` as it was asked, ``answer``,
``abstained``, ``citations``, ``steps``, ``usage`` and more). A streamed reply has that field in its last chunk; while
the answer is worked on, its steps come as comments, which clients ignore.

A server has these routes for its first base at ``/v1``, and for each base at ``/api/bases/NAME/v1``. Access control
and the size of requests are the application's business.

Of a request are read: ``model``, ``messages``, ``stream``, ``stream_options``, and ``max_tokens`` (also
``max_completion_tokens``): the text ends after so many tokens, with the reason ``length``; ``clew`` has all of it.
What tunes how a model samples (``temperature``, ``top_p``, penalties) has no effect, since an answer is not sampled:
a value that OpenAI refuses is refused, and another one is named in ``clew.ignored``, as is every parameter that clew
does not know. What only labels a request (``user``, ``metadata``) is accepted. Refused: what would give the reply
another form or meaning (:data:`UNSUPPORTED_PARAMETERS`).

Replies are built of the types of OpenAI's own client. Of a request to ``/v1/responses``, ``input`` is read in the
place of ``messages`` and ``max_output_tokens`` in that of ``max_tokens``; responses are not stored. The last question
of a conversation is rewritten so that it can be understood without the earlier turns.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar
from uuid import uuid4

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from clew.app.answers.citations import (
    answer_remarks,
    cite_answer,
    cited_answer_to_dict,
    mark_possible,
    summarise_step,
)
from clew.app.answers.follow_ups import ChatMessage, StandaloneQuestion, name_source, rewrite_standalone
from clew.app.answers.view import AnswerView, StepView
from clew.app.web.errors import Problem, describe_errors, retry_headers, status_code
from clew.app.web.events import EventStream, stream_steps
from clew.app.web.method_choices import DEFAULT, evidence_methods, offered_methods
from clew.app.web.server import Server
from clew.app.web.settings import Settings
from clew.core.errors import ClewError
from clew.core.types import Answer, Step, Usage
from clew.methods.d3.context_window import truncate
from clew.models.costs import count_tokens

#: Parameters that are refused unless they have one of these values, which change nothing.
UNSUPPORTED_PARAMETERS: Mapping[str, tuple[Any, ...]] = {
    "n": (None, 1),
    "tools": (None, []),
    "tool_choice": (None, "none", "auto"),
    "functions": (None, []),
    "function_call": (None, "none", "auto"),
    "response_format": (None, {"type": "text"}),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "logit_bias": (None, {}),
    "stop": (None, []),
    "modalities": (None, ["text"]),
    "audio": (None,),
    "web_search_options": (None,),
}
#: Parameters of a response that would need what clew does not keep or do.
_UNSUPPORTED_IN_RESPONSES = ("previous_response_id", "conversation", "tools", "background", "prompt")
#: What tunes how a model samples, with the value that is no wish.
_SAMPLING = {"temperature": 0, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
#: Parameters that only label a request, or that every reply is in accord with.
_LABELS = frozenset(
    "user metadata store seed safety_identifier prompt_cache_key prompt_cache_retention service_tier include "
    "parallel_tool_calls truncation".split()
)
#: OpenAI's words and codes for a number that is too small or too large.
_LIMITS = {
    "greater_than_equal": ("min", "below minimum", ">=", "ge"),
    "less_than_equal": ("max", "above maximum", "<=", "le"),
}
#: The code of an error, by its status.
_CODES = {400: "bad_request", 404: "not_found", 429: "too_much", 502: "model_error", 503: "unavailable"}
#: Characters that a question may have.
_MAX_QUESTION = 8_000
#: What makes a link or an image of brackets, and what begins a tag: a Markdown viewer would load or follow it.
_TARGET, _TAG = re.compile(r"\](?=[(:])"), re.compile(r"<(?=[A-Za-z/!?])")


class Part(BaseModel):
    """A part of a message; only text parts are answered."""

    model_config = ConfigDict(extra="allow")
    type: str
    text: str = ""


class Message(BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(extra="allow")
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None


class StreamOptions(BaseModel):
    """What a streamed reply has besides."""

    model_config = ConfigDict(extra="allow")
    include_usage: bool = False


class Sampling(BaseModel):
    """How a model would sample. clew does not: what is asked for here is named in the reply's `clew.ignored`."""

    model_config = ConfigDict(extra="allow")
    temperature: float | None = Field(None, ge=0, le=2, description="No effect: an answer is not sampled.")
    top_p: float | None = Field(None, ge=0, le=1, description="No effect: an answer is not sampled.")

    def ignored(self) -> tuple[str, ...]:
        """Return the parameters that were given and have no effect."""
        known = _LABELS | UNSUPPORTED_PARAMETERS.keys() | set(_UNSUPPORTED_IN_RESPONSES)
        wishes = {name: getattr(self, name, None) for name in _SAMPLING}
        others = {name: value for name, value in (self.model_extra or {}).items() if name not in known}
        given = wishes | others
        return tuple(name for name in given if given[name] is not None and given[name] != _SAMPLING.get(name))


class ChatRequest(Sampling):
    """A question in the form of a chat completion; see the module for what becomes of other parameters."""

    model: str = Field(description="clew, or clew: and a method, such as clew:chain; see /v1/models")
    messages: list[Message] = Field(min_length=1, description="The last user message is the question.")
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    presence_penalty: float | None = Field(None, ge=-2, le=2, description="No effect.")
    frequency_penalty: float | None = Field(None, ge=-2, le=2, description="No effect.")
    max_tokens: int | None = Field(None, ge=1, description="The text ends after so many tokens.")
    max_completion_tokens: int | None = Field(None, ge=1, description="The same as max_tokens.")

    def limits(self) -> ReplyLimits:
        """Return where the reply's text ends, and what it says of parameters without effect."""
        given = [limit for limit in (self.max_tokens, self.max_completion_tokens) if limit is not None]
        return ReplyLimits(min(given, default=None), self.ignored())

    def check_supported(self) -> None:
        """Raise ChatError for a parameter that cannot be honoured."""
        extra = self.model_extra or {}
        for name, harmless in UNSUPPORTED_PARAMETERS.items():
            if name in extra and extra[name] not in harmless:
                raise ChatError(
                    f"'{name}' is not supported: clew answers once, in text, from documents", name
                )

    def turns(self) -> list[ChatMessage]:
        """Return the turns of the conversation, the question last. Raises ChatError where there is no question.

        System messages are instructions for a language model that writes freely; they are not read.
        """
        turns = [
            ChatMessage(message.role, _text(message, f"messages.{number}.content"))
            for number, message in enumerate(self.messages)
            if message.role in {"user", "assistant"}
        ]
        while turns and turns[-1].speaker != "user":
            turns.pop()
        if not turns or not turns[-1].text.strip():
            raise ChatError("there is no user message with a question in it", "messages")
        if len(turns[-1].text) > _MAX_QUESTION:
            raise ChatError(f"the question is longer than {_MAX_QUESTION:,} characters", "messages")
        return [turn for turn in turns if turn.text.strip()]


class InputItem(BaseModel):
    """An item of a response's input: a message; its parts are ``input_text`` and ``output_text``."""

    model_config = ConfigDict(extra="allow")
    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part]


class ResponseRequest(Sampling):
    """A question in the form of OpenAI's responses; see the module for what becomes of other parameters."""

    model: str = Field(description="clew, or clew: and a method, such as clew:chain; see /v1/models")
    input: str | list[InputItem] = Field(min_length=1, description="The last user message is the question.")
    stream: bool | None = None
    max_output_tokens: int | None = Field(None, ge=1, description="The text ends after so many tokens.")

    def to_chat(self) -> ChatRequest:
        """Return the request as one for a chat completion. Raises ChatError for what cannot be honoured."""
        extra = self.model_extra or {}
        for name in _UNSUPPORTED_IN_RESPONSES:
            if extra.get(name):
                raise ChatError(
                    f"'{name}' is not supported: responses are not stored and call no tools", name
                )
        if isinstance(self.input, str):
            messages = [Message(role="user", content=self.input)]
        else:
            messages = [Message(role=item.role, content=_chat_content(item.content)) for item in self.input]
        options = extra | self.model_dump(include={"model", "stream", "temperature", "top_p"})
        return ChatRequest(messages=messages, max_tokens=self.max_output_tokens, **options)


def _chat_content(content: str | list[Part]) -> str | list[Part]:
    if isinstance(content, str):
        return content
    texts = {"input_text", "output_text"}
    return [part.model_copy(update={"type": "text"}) if part.type in texts else part for part in content]


class ErrorObject(BaseModel):
    """An error in OpenAI's form; ``param`` names the invalid parameter."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorReply(BaseModel):
    """The body of a reply to a request that failed."""

    error: ErrorObject


class ChatError(Exception):
    """A request that is not answered: an error object with a status, in OpenAI's form."""

    def __init__(
        self, message: str, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        # It may repeat what was sent, which need not be valid Unicode.
        message = message.encode("utf-8", "replace").decode()
        super().__init__(message)
        kind = "invalid_request_error" if status < 500 and status != 429 else "server_error"
        self.status = status
        self.headers: dict[str, str] = {}
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}

    @classmethod
    def from_error(cls, error: ClewError) -> ChatError:
        """Return an error of clew in this protocol: problem and hint, and a status that says whose fault it is."""
        status = status_code(error)
        chat_error = cls(str(error), code=_CODES.get(status, "error"), status=status)
        chat_error.headers |= retry_headers(error)
        return chat_error


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """How many tokens the text of a reply has at most, by the rule of four characters, and the parameters of the
    request that have no effect."""

    tokens: int | None = None
    ignored: tuple[str, ...] = ()

    def parts(self, view: AnswerView) -> list[str]:
        """Return the text of a reply in its parts (:func:`reply_parts`), as far as they go."""
        parts = reply_parts(view)
        if self.tokens is None:
            return parts
        ends = accumulate(map(len, parts))
        length = len(truncate("".join(parts), self.tokens, count_tokens))
        return [
            part[: length - end + len(part)]
            for part, end in zip(parts, ends, strict=True)
            if end - len(part) < length
        ]

    def is_cut(self, view: AnswerView) -> bool:
        """Return whether limits of the request, or of its question, cut the reply."""
        return bool(view.stopped) or self.parts(view) != reply_parts(view)

    def clew_field(self, view: AnswerView, question: str, asking: Usage) -> dict[str, Any]:
        """Return the field ``clew`` of a reply: the answer with numbered citations, the question as it was asked, the
        usage with what finding that question cost, and ``ignored``."""
        usage = (view.usage + asking).to_dict()
        about = {"usage": usage, "ignored": list(self.ignored)}
        return {"question": question, **cited_answer_to_dict(view), **about}


@dataclass(frozen=True, slots=True)
class ReplyBuilder:
    """Builds the reply to one request, as one object or in chunks; with ``has_usage`` the last says what it cost.

    ``question`` is always the question as it was asked in the end, ``asking`` what finding it cost.
    """

    model: str
    limits: ReplyLimits = ReplyLimits()
    has_usage: bool = False
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))
    #: What ends a stream.
    end: ClassVar[str] = "data: [DONE]\n\n"

    def completion(self, view: AnswerView, question: str, asking: Usage) -> dict[str, Any]:
        """Return the reply as one object. ``clew`` holds the answer with its citations, structured."""
        message = {"role": "assistant", "content": "".join(self.limits.parts(view)), "refusal": None}
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": self._finish_reason(view),
        }
        return self._reply("chat.completion", choice) | {
            "usage": _usage(view.usage + asking),
            "clew": self.limits.clew_field(view, question, asking),
        }

    def opening_events(self) -> Iterator[str]:
        """Yield the first chunk of a streamed reply, which says who speaks."""
        yield encode_event(self._chunk({"role": "assistant", "content": "", "refusal": None}))

    def text_event(self, text: str) -> str:
        """Return a chunk with a part of the text."""
        return encode_event(self._chunk({"content": text}))

    def closing_events(self, view: AnswerView, question: str, asking: Usage) -> Iterator[str]:
        """Yield the chunk that ends the text and carries ``clew``, and the chunk with the usage."""
        field = {"clew": self.limits.clew_field(view, question, asking)}
        yield encode_event(self._chunk({}, self._finish_reason(view)) | field)
        if self.has_usage:
            yield encode_event(self._reply("chat.completion.chunk") | {"usage": _usage(view.usage + asking)})

    def error_event(self, error: ChatError) -> str:
        """Return the event of a failure."""
        return encode_event(error.body)

    def _finish_reason(self, view: AnswerView) -> str:
        return "length" if self.limits.is_cut(view) else "stop"

    def _chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._reply("chat.completion.chunk", choice)

    def _reply(self, kind: str, *choices: Mapping[str, Any]) -> dict[str, Any]:
        reply = {"id": self.id, "object": kind, "created": self.created, "model": self.model}
        return reply | {"choices": list(choices)}


@dataclass(slots=True)
class ResponseBuilder:
    """Builds the reply to one request to ``/v1/responses``, as one object or as events, which are numbered."""

    model: str
    limits: ReplyLimits = ReplyLimits()
    id: str = field(default_factory=lambda: f"resp_{uuid4().hex}")
    message_id: str = field(default_factory=lambda: f"msg_{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))
    _events: int = 0
    end: ClassVar[str] = ""

    def response(self, view: AnswerView, question: str, asking: Usage) -> dict[str, Any]:
        """Return the reply as one object. ``clew`` holds the answer with its citations, structured."""
        message = self._message("".join(self.limits.parts(view)))
        usage = view.usage + asking
        reply = self._response("incomplete" if self.limits.is_cut(view) else "completed", [message])
        return reply | {
            "usage": _response_usage(usage),
            "clew": self.limits.clew_field(view, question, asking),
        }

    def opening_events(self) -> Iterator[str]:
        """Yield the events that precede the text."""
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=self._response("in_progress", []))
        empty = {"id": self.message_id, "type": "message", "role": "assistant", "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=0, item=empty | {"content": []})
        yield self._event("response.content_part.added", **self._place, part=_output_text(""))

    def text_event(self, text: str) -> str:
        """Return the event with a part of the text."""
        return self._event("response.output_text.delta", **self._place, delta=text, logprobs=[])

    def closing_events(self, view: AnswerView, question: str, asking: Usage) -> Iterator[str]:
        """Yield the events that follow the text; the last holds the whole reply."""
        text = "".join(self.limits.parts(view))
        yield self._event("response.output_text.done", **self._place, text=text, logprobs=[])
        yield self._event("response.content_part.done", **self._place, part=_output_text(text))
        yield self._event("response.output_item.done", output_index=0, item=self._message(text))
        kind = "response.incomplete" if self.limits.is_cut(view) else "response.completed"
        yield self._event(kind, response=self.response(view, question, asking))

    def error_event(self, error: ChatError) -> str:
        """Return the event of a failure."""
        body = error.body["error"]
        return self._event("error", **{name: body[name] for name in ("code", "message", "param")})

    @property
    def _place(self) -> dict[str, Any]:
        return {"item_id": self.message_id, "output_index": 0, "content_index": 0}

    def _message(self, text: str) -> dict[str, Any]:
        message = {"id": self.message_id, "type": "message", "role": "assistant", "status": "completed"}
        return message | {"content": [_output_text(text)]}

    def _response(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "model": self.model,
            "status": status,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "error": None,
            "output": output,
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
            "store": False,
        }

    def _event(self, kind: str, **fields: Any) -> str:
        number, self._events = self._events, self._events + 1
        return f"event: {kind}\n" + encode_event({"type": kind, "sequence_number": number} | fields)


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _response_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.tokens_in,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": usage.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.tokens_in + usage.tokens_out,
    }


def reply_parts(view: AnswerView) -> list[str]:
    """Return the text of a reply in its parts: the marked answer, its sources, the remarks."""
    cited = cite_answer(view)
    below = [part for part in (cited.source_list(), "\n".join(answer_remarks(view))) if part]
    # Two spaces end a line in Markdown, which most clients show; plain text loses nothing.
    return [
        neutralise_markdown(mark_possible(view, cited)),
        *("\n\n" + neutralise_markdown(part).replace("\n", "  \n") for part in below),
    ]


def neutralise_markdown(text: str) -> str:
    """Return a text in which images, links and tags are plain text, so that a Markdown viewer loads nothing."""
    return _TAG.sub("&lt;", _TARGET.sub(r"]\\", text))


def encode_event(data: Any) -> str:
    """Return a server-sent event."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def _text(message: Message, field_name: str) -> str:
    if isinstance(message.content, str):
        texts = [message.content]
    else:
        others = {part.type for part in message.content or [] if part.type != "text"}
        if others:
            raise ChatError(f"only text parts are read, not {', '.join(sorted(others))}", field_name)
        texts = [part.text for part in message.content or []]
    # Halves of surrogate pairs are valid JSON and no text.
    return "\n".join(texts).encode("utf-8", "replace").decode()


def _usage(usage: Usage) -> dict[str, int]:
    """Return the tokens that the language model read and wrote; all zero where none was asked."""
    total = usage.tokens_in + usage.tokens_out
    return {"prompt_tokens": usage.tokens_in, "completion_tokens": usage.tokens_out, "total_tokens": total}


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
        self,
        turns: Sequence[ChatMessage],
        recipe: str,
        watch: Callable[[Step], None],
        stop: Callable[[], bool],
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
    turns: list[ChatMessage]
    asked: StandaloneQuestion

    def __call__(self, watch: Callable[[Step], None], stop: Callable[[], bool]) -> Answer:
        """Return the answer. Raises ClewError."""
        self.asked, answer = self.backend.ask(self.turns, self.recipe, watch, stop)
        return answer


def make_openai_router() -> APIRouter:
    """Return a router without routes, whose errors have the form of OpenAI's, in its description too."""
    statuses = (400, 404, 429, 502, 503)
    # The guard of the whole server answers before a route does, in the form of the JSON API.
    refused = {"model": ErrorReply | Problem, "description": "The server refuses the request"}
    return APIRouter(
        prefix="/v1",
        route_class=OpenAIRoute,
        tags=["OpenAI-compatible"],
        responses=describe_errors(ErrorReply, *statuses) | {"default": refused},
    )


def make_chat_router(
    backend: ChatBackend, recipes: Mapping[str, str], executor: Executor | None = None
) -> APIRouter:
    """Return the routes.

    ``recipes`` maps the names allowed after ``clew:`` to recipes. The backend is called in threads of ``executor``,
    by default the event loop's; a question waits for a free thread.
    """
    models = {MODEL_NAME: DEFAULT} | {f"{MODEL_NAME}:{name}": recipe for name, recipe in recipes.items()}
    started = int(time.time())
    router = make_openai_router()

    def model_to_dict(model: str) -> dict[str, Any]:
        return {"id": model, "object": "model", "created": started, "owned_by": MODEL_NAME}

    def prepare(asked: ChatRequest) -> _ChatWork:
        recipe = _recipe(models, asked.model)
        asked.check_supported()
        turns = asked.turns()
        return _ChatWork(backend, recipe, turns, StandaloneQuestion(turns[-1].text))

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
        (made to stand alone with the earlier turns, with or without a language model), `answer`, `way` (`answer`,
        `perhaps` or `not_found`), `perhaps`, `plan`, `empty`, `abstained`, `confidence`, `alternatives`, `citations`
        (number, document, page, section, boxes, quotes), `nearest`, `steps`, `usage`, `ignored`. System messages are
        not read. Of `max_tokens`, the text has at most so many. An answer is not sampled: `temperature` and the like
        are named in `ignored`, or refused where OpenAI refuses them. Tools, several choices and response formats are
        refused.
        """
        has_usage = asked.stream_options is not None and asked.stream_options.include_usage
        work, reply = prepare(asked), ReplyBuilder(asked.model, asked.limits(), has_usage)
        stream = partial(_reply_events, work=work, reply=reply) if asked.stream else None
        return await _respond(request, work, executor, reply.completion, stream)

    @router.post("/responses")
    async def respond(asked: ResponseRequest, request: Request) -> Response:
        """Answer the last user message of `input`, as `/v1/chat/completions` does, in the form of a response.

        The text is that of the chat completion, and the field `clew` the same. A streamed reply has the usual events;
        the last holds the whole response. Responses are not stored, so `previous_response_id` is refused.
        """
        chat = asked.to_chat()
        work, reply = prepare(chat), ResponseBuilder(asked.model, chat.limits())
        stream = partial(_reply_events, work=work, reply=reply) if asked.stream else None
        return await _respond(request, work, executor, reply.response, stream)

    return router


async def _respond(
    request: Request,
    work: _ChatWork,
    executor: Executor | None,
    build: Callable[[AnswerView, str, Usage], dict[str, Any]],
    stream: Callable[[AsyncGenerator[StepOrAnswer]], AsyncGenerator[str]] | None,
) -> Response:
    """Return the reply that ``build`` makes of the answer, or the events that ``stream`` makes of the work."""
    events = stream_steps(work, executor)
    if stream is None:
        answer = await _while_connected(request, _wait_for_answer(events))
        if answer is None:
            return Response(status_code=_GONE)
        return JSONResponse(build(AnswerView.from_answer(answer), work.asked.question, work.asked.usage))
    # The first event decides the status: a request that fails at once is an error like any other.
    first = await _while_connected(request, anext(events))
    return Response(status_code=_GONE) if first is None else EventStream(stream(_with_first(first, events)))


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
    events: AsyncGenerator[StepOrAnswer], work: _ChatWork, reply: ReplyBuilder | ResponseBuilder
) -> AsyncGenerator[str]:
    """Yield the server-sent events of a streamed reply. Errors are events here: the status has been sent."""
    async with aclosing(events):
        for opening in reply.opening_events():
            yield opening
        try:
            async for event in events:
                if isinstance(event, Step):
                    yield f": {summarise_step(StepView.from_step(event))}\n\n"
                    continue
                view = AnswerView.from_answer(event)
                for part in reply.limits.parts(view):
                    yield reply.text_event(part)
                for closing in reply.closing_events(view, work.asked.question, work.asked.usage):
                    yield closing
        except ClewError as error:
            yield reply.error_event(ChatError.from_error(error))
        if reply.end:
            yield reply.end


def _recipe(models: Mapping[str, str], model: str) -> str:
    if model not in models:
        message = f"The model '{model}' does not exist. There are: {', '.join(models)}"
        raise ChatError(message, "model", "model_not_found", 404)
    return models[model]


def _validation_error(error: RequestValidationError) -> ChatError:
    """Describe why a request body is invalid."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    if first["type"] in _LIMITS:
        end, side, sign, name = _LIMITS[first["type"]]
        limit, kind = first["ctx"][name], "decimal" if isinstance(first["ctx"][name], float) else "integer"
        expected = f"Expected a value {sign} {limit:g}, but got {first['input']} instead."
        code = f"{kind}_{side.split()[0]}_{end}_value"
        return ChatError(f"Invalid '{where}': {kind} {side} value. {expected}", where, code)
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
        self,
        turns: Sequence[ChatMessage],
        recipe: str,
        watch: Callable[[Step], None],
        stop: Callable[[], bool],
    ) -> tuple[StandaloneQuestion, Answer]:
        """Return the question as it was asked, and the answer. Raises ClewError, ServerBusy where too many ask."""
        server: Server = self.app.state.server
        with server.questions.chat_slots.admit():
            model = server.questions.models.lend(server.questions.models.choice(None), stop)
            asked = rewrite_standalone(turns, model)
            base = server.bases[self.base].knowledge_base
            answer = base.ask(asked.question, llm=model, recipe=recipe, watch=watch, stop=stop)
            return asked, name_source(answer) if asked.asks_source else answer


def make_chat_routers(
    app: FastAPI, settings: Settings, executor: Executor, bases: Sequence[str]
) -> Iterator[tuple[str, APIRouter]]:
    """Yield the routes of each of the ``bases`` with their prefix; the server's first base has them twice. Raises
    UsageError."""
    methods = (
        offered_methods(settings.recipes) if settings.recipes else evidence_methods(bool(settings.models))
    )
    recipes = {name: choice.recipe for name, choice in methods.items() if name != DEFAULT}
    for name in bases:
        router = make_chat_router(BaseChatBackend(app, name), recipes, executor)
        if name == next(iter(settings.bases)):
            yield "", router
        # Not quoted: addresses are compared after they were decoded.
        yield f"/api/bases/{name}", router
