"""The chat completions protocol as OpenAI documents it: what is read of a request, what is refused, what is written.

Read: ``model``, ``messages``, ``stream``, ``stream_options``. Accepted without effect: what tunes how a model samples
(``temperature``, ``top_p``, ``seed``, penalties, ``max_tokens``) and what only labels a request (``user``,
``metadata``). Refused: what would give the reply another form or meaning (:data:`UNSUPPORTED_PARAMETERS`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from clew.app.answers.citations import answer_remarks, cite_answer, cited_answer_to_dict
from clew.app.web.errors import retry_headers, status_code
from clew.app.web.openai.conversation import Turn
from clew.core.errors import ClewError
from clew.core.types import Answer, Usage

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
#: What an error is called, by its status.
_CODES = {400: "bad_request", 404: "not_found", 429: "too_much", 502: "model_error", 503: "unavailable"}
#: How long a question may be.
_LONG = 8_000
#: What a Markdown viewer would load or follow: what makes a link or image of brackets, and tags.
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


class ChatRequest(BaseModel):
    """A question in the form of a chat completion; see the module for what becomes of other parameters."""

    model_config = ConfigDict(extra="allow")
    model: str = Field(description="clew, or clew: and a method, such as clew:chain; see /v1/models")
    messages: list[Message] = Field(min_length=1, description="The last user message is the question.")
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    def check_supported(self) -> None:
        """Raise Refusal for a parameter that cannot be honoured."""
        given = self.model_extra or {}
        for name, harmless in UNSUPPORTED_PARAMETERS.items():
            if name in given and given[name] not in harmless:
                raise ChatError(
                    f"'{name}' is not supported: clew answers once, in text, from documents", name
                )

    def turns(self) -> list[Turn]:
        """Return what was said, the question last. Raises Refusal where there is none that can be asked.

        System messages are instructions for a language model that writes freely; they are not read.
        """
        found = [
            Turn(message.role, _text(message, f"messages.{number}.content"))
            for number, message in enumerate(self.messages)
            if message.role in {"user", "assistant"}
        ]
        while found and found[-1].speaker != "user":
            found.pop()
        if not found or not found[-1].text.strip():
            raise ChatError("there is no user message with a question in it", "messages")
        if len(found[-1].text) > _LONG:
            raise ChatError(f"the question is longer than {_LONG:,} characters", "messages")
        return [turn for turn in found if turn.text.strip()]


class ChatError(Exception):
    """A request that is not answered: an error object with a status, in OpenAI's form."""

    def __init__(
        self, message: str, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        # It may hold what was sent, which need not be text.
        message = message.encode("utf-8", "replace").decode()
        super().__init__(message)
        kind = "invalid_request_error" if status < 500 and status != 429 else "server_error"
        self.status = status
        self.headers: dict[str, str] = {}
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}

    @classmethod
    def from_error(cls, error: ClewError) -> ChatError:
        """Return what an error of clew is in this protocol: problem and hint, and a status that says whose it is."""
        status = status_code(error)
        refusal = cls(str(error), code=_CODES.get(status, "error"), status=status)
        refusal.headers |= retry_headers(error)
        return refusal


@dataclass(frozen=True, slots=True)
class ReplyBuilder:
    """The reply to one request, as one object or in chunks. ``question`` is what was asked in the end."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def completion(self, answer: Answer, question: str, asking: Usage) -> dict[str, Any]:
        """Return the reply as one object. ``clew`` holds the answer with its citations, structured."""
        message = {"role": "assistant", "content": "".join(reply_parts(answer)), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": _usage(answer.usage + asking),
            "clew": clew_field(answer, question, asking),
        }

    def chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        """Return one chunk of a streamed reply."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**self._head("chat.completion.chunk"), "choices": [choice], **more}

    def final_chunk(self, answer: Answer, question: str, asking: Usage) -> dict[str, Any]:
        """Return the chunk that ends a streamed reply, which has ``clew`` as a whole reply does."""
        return self.chunk({}, _finish(answer), clew=clew_field(answer, question, asking))

    def usage_chunk(self, usage: Usage) -> dict[str, Any]:
        """Return the chunk that says what a streamed reply cost."""
        return {**self._head("chat.completion.chunk"), "choices": [], "usage": _usage(usage)}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def reply_parts(answer: Answer) -> list[str]:
    """Return the text of a reply in its parts: the marked answer, its sources, what is to be said of it."""
    marked = cite_answer(answer)
    below = [part for part in (marked.source_list(), "\n".join(answer_remarks(answer))) if part]
    # Two spaces end a line in Markdown, which most clients show; plain text loses nothing.
    return [
        neutralise_markdown(marked.text),
        *("\n\n" + neutralise_markdown(part).replace("\n", "  \n") for part in below),
    ]


def clew_field(answer: Answer, question: str, asking: Usage) -> dict[str, Any]:
    """Return the field ``clew`` of a reply: :func:`clew.app.answers.citations.cited_answer_to_dict`, the
    question as it was asked, and
    the usage with what finding that question cost."""
    return {
        "question": question,
        **cited_answer_to_dict(answer),
        "usage": (answer.usage + asking).to_dict(),
    }


def neutralise_markdown(text: str) -> str:
    """Return a text of documents or models with what a Markdown viewer would load made text: images, links, tags."""
    return _TAG.sub("&lt;", _TARGET.sub(r"]\\", text))


def encode_event(data: Any) -> str:
    """Return a server-sent event."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def _text(message: Message, where: str) -> str:
    if isinstance(message.content, str):
        parts = [message.content]
    else:
        others = {part.type for part in message.content or [] if part.type != "text"}
        if others:
            raise ChatError(f"only text parts are read, not {', '.join(sorted(others))}", where)
        parts = [part.text for part in message.content or []]
    # Halves of surrogate pairs are valid JSON and no text.
    return "\n".join(parts).encode("utf-8", "replace").decode()


def _finish(answer: Answer) -> str:
    return "length" if answer.stop_reason else "stop"


def _usage(usage: Usage) -> dict[str, int]:
    """Return what the language model was given and wrote; all zero where none was asked."""
    total = usage.tokens_in + usage.tokens_out
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": total,
    }
