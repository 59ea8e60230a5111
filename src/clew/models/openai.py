"""Language models behind an OpenAI-compatible endpoint, called through the ``openai`` SDK.

Endpoints differ in a few features: whether they take a JSON schema, any JSON, or neither; whether the limit is called
``max_tokens`` or ``max_completion_tokens``; whether a temperature may be set; whether a system message may be sent. A
:class:`Dialect` begins with the best of each, and steps down where a refusal names or implies the feature.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from clew.core.errors import BadCompletion, ContextExceeded, ModelError, UsageError, unknown_name_error
from clew.core.prompts.replies import clean_reply, schema_instruction
from clew.core.protocols import Completion, Prompt
from clew.core.text import read_count
from clew.core.types import Usage
from clew.models.costs import cost_in_dollars, count_prompt_tokens, count_tokens
from clew.models.endpoint import Endpoint, refusal_text
from clew.models.servers import (
    ServerFacts,
    StreamedReply,
    add_server_options,
    ollama_body,
    probe_server,
    read_json_lines,
    server_root,
    server_schema,
)
from clew.models.wrappers import map_threads

if TYPE_CHECKING:
    import openai

#: Tokens of a prompt from which on what was sent and what was read are compared; and the share that must be read,
#: since the rule counts up to a third too many on some languages and tables.
_SMALL_PROMPT, _READ_SHARE = 256, 0.5
_TOO_LONG = ("context length", "context_length", "context size", "too long", "maximum context")
_SERVER_OPTIONS = ("grammar", "structured_outputs", "chat_template_kwargs", "regex")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The features that one endpoint understands."""

    structure: Literal["json_schema", "json_object", "text"] = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    system: bool = True
    server_options: bool = True

    def request_body(self, prompt: Prompt) -> dict[str, Any]:
        """Return the body of a request for a prompt, without the model's name."""
        body: dict[str, Any] = {"messages": self.messages(prompt), self.limit: prompt.max_tokens}
        if self.temperature:
            body["temperature"] = prompt.temperature
        if prompt.stop:
            body["stop"] = list(prompt.stop)
        if prompt.schema is not None and self.structure == "json_schema":
            form = {"name": prompt.role, "schema": prompt.schema, "strict": _is_strict(prompt.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif prompt.schema is not None and self.structure == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def step_down(self, complaint: str, prompt: Prompt) -> Dialect | None:
        """Return the dialect to try after a refusal, None where the refusal is about something else."""
        text = complaint.casefold()
        if any(words in text for words in _TOO_LONG):
            return None
        if self.server_options and any(words in text for words in _SERVER_OPTIONS):
            return replace(self, server_options=False)
        if self.limit == "max_tokens" and "max_completion_tokens" in text:
            return replace(self, limit="max_completion_tokens")
        if self.temperature and "temperature" in text:
            return replace(self, temperature=False)
        if self.system and prompt.system and "system" in text and "role" in text:
            return replace(self, system=False)
        if prompt.schema is not None and self.structure != "text":
            # Endpoints word this refusal in too many ways to recognise them.
            return replace(self, structure="json_object" if self.structure == "json_schema" else "text")
        return None

    def messages(self, prompt: Prompt) -> list[dict[str, str]]:
        """Return the messages of a prompt."""
        system = prompt.system
        if prompt.schema is not None and self.structure != "json_schema":
            system = f"{system}\n\n{schema_instruction(prompt.schema)}".strip()
        if system and self.system:
            return [{"role": "system", "content": system}, {"role": "user", "content": prompt.user}]
        return [{"role": "user", "content": f"{system}\n\n{prompt.user}".strip()}]


def _is_strict(schema: Mapping[str, Any]) -> bool:
    """Return whether every object of a schema requires exactly its own keys, as ``strict`` demands."""
    if "properties" in schema:
        properties = schema["properties"]
        exact = (
            set(schema.get("required", ())) == set(properties) and schema.get("additionalProperties") is False
        )
        return exact and all(_is_strict(inner) for inner in properties.values())
    return _is_strict(schema["items"]) if "items" in schema else schema.get("type") != "object"


#: Long enough for a small model on a slow machine to read thirty passages.
TIMEOUT = 180.0
#: Seconds until the first token, and until the last, of a server that sends a reply as it is written.
FIRST_TOKEN, TOTAL = 300.0, 900.0
WORKERS = 4
#: Tokens that a model which thinks may spend on it, beside those of the reply.
THOUGHT_TOKENS = 2048
#: Characters that a token may have at most; and what a server may send besides, such as thoughts it does not count.
_TOKEN_CHARACTERS, _SPARE_CHARACTERS, _SPARE_PIECES = 32, 100_000, 4_000
#: HTTP statuses with which endpoints refuse a feature of a request.
_REFUSED = frozenset({400, 422, 501})


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is asked: the end of its name, ``ollama:qwen3?context=16384&think=1024&parallel=2``.

    ``context`` in tokens, if the server's own is not to be asked; ``parallel`` calls at once; ``first`` and ``total``
    seconds until the first and the last token; ``tries`` for a server that is busy; ``think`` the tokens for
    thoughts, 0 for none.
    """

    context: int | None = None
    parallel: int | None = None
    first: float | None = None
    total: float | None = None
    tries: int | None = None
    think: int = 0

    @classmethod
    def parse(cls, text: str) -> ModelSettings:
        """Return the settings of ``context=8192&think=off``. Raises UsageError."""
        values: dict[str, Any] = {}
        for part in filter(None, text.split("&")):
            name, _, value = part.partition("=")
            if name not in _SETTINGS:
                raise unknown_name_error("setting of a model", name, _SETTINGS)
            if name == "think" and value in _THINK_WORDS:
                value = str(_THINK_WORDS[value])
            number = read_count(value)
            if number is None or (name != "think" and not number):
                raise UsageError(f"the setting '{name}' of a model is '{value}'", "It is a whole number")
            values[name] = number
        return cls(**values)


_SETTINGS = ("context", "parallel", "first", "total", "tries", "think")
_THINK_WORDS = {"off": 0, "no": 0, "on": THOUGHT_TOKENS, "yes": THOUGHT_TOKENS}
_CONTEXT_SAID = re.compile(
    r"(?:maximum context length is|context size \(|context length of(?: only)?|available context size \()\s*(\d{1,9})"
)
_NEEDED_SAID = re.compile(
    r"(?:\((?=\d+ in the messages)|request \(|resulted in |prompt (?:is|has) |request has )(\d{1,9})"
)
#: No tokenizer counts more than so many tokens for one of the rule: a token for each character.
_GREATEST_RATIO = 4.0
#: The rule may count so much too little; the room that is left for a reply keeps clear of that.
_COUNT_MARGIN = 1.1
#: Tokens that a reply is always allowed.
_SHORTEST_REPLY = 32


class OpenAIModel:
    """A language model at ``endpoint``.

    The server is asked what it is (:mod:`clew.models.servers`). A prompt that is longer than the model's context goes
    without its optional parts, as many as it takes, and the usage says so; one that is still too long is an error,
    and so is a reply for which the server read less than was sent. Features that the endpoint refuses are left out
    from then on (:class:`Dialect`). Thoughts are switched off where they can be; a model that thinks nevertheless
    gets tokens for it. ``timeout`` is the limit of a call where the reply comes in one piece.

    Raises ModelError with the reason: Unavailable where the same call may succeed later, TimedOut, ContextExceeded.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        workers: int = WORKERS,
        timeout: float = TIMEOUT,
        settings: ModelSettings = ModelSettings(),
    ) -> None:
        self.endpoint = endpoint
        self.workers = settings.parallel or workers
        self.timeout = settings.total or timeout
        self.settings = settings
        self._dialect = Dialect()
        self._lock = threading.Lock()
        self._facts: ServerFacts | None = None
        self._learned_context: int | None = None
        #: The greatest number of tokens that the server counted for one that the rule counts.
        self._token_ratio = 1.0
        self._thoughts = settings.think
        self._turns: threading.Semaphore | None = None

    @property
    def name(self) -> str:
        """Canonical name, such as ``openai:gpt-4o-mini``."""
        return self.endpoint.name

    @property
    def server(self) -> ServerFacts:
        """What the server says of itself; asked once, and again as long as nobody answers."""
        with self._lock:
            if self._facts is None:
                self._facts = probe_server(self._client, self.endpoint)
            return self._facts or ServerFacts()

    @property
    def context(self) -> int | None:
        """The tokens of a prompt and its reply together, None where it is not known."""
        return self.settings.context or self._learned_context or self.server.context

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError."""
        facts = self.server
        if self.settings.context and facts.kind == "ollama":
            facts = replace(facts, context=self.settings.context)
        with self._lock:
            if self._turns is None:
                self._turns = threading.Semaphore(self.settings.parallel or facts.parallel or self.workers)
        return map_threads(lambda prompt: self._complete(prompt, facts), prompts, self.workers)

    @cached_property
    def _client(self) -> openai.OpenAI:
        return self.endpoint.connect(self.timeout, self, self.settings.total or TOTAL)

    def _complete(self, prompt: Prompt, facts: ServerFacts) -> Completion:
        assert self._turns is not None
        with self._turns:
            started = time.perf_counter()
            known = dialect = self._dialect
            sent, left_out = self._fit(prompt)
            # What replies cost that were thrown away: the server counts them too.
            thrown_away = Usage()
            while True:
                try:
                    outcome = self._send(dialect, sent, facts)
                    if not isinstance(outcome, Dialect) and (error := self._find_cut(outcome, sent, facts)):
                        thrown_away += self._usage(outcome, sent, 0.0)
                        raise error
                except ContextExceeded:
                    shorter, more = self._fit(replace(sent, max_tokens=prompt.max_tokens))
                    if not more and shorter.max_tokens >= sent.max_tokens:
                        raise
                    sent, left_out = shorter, left_out + more
                    continue
                if isinstance(outcome, Dialect):
                    dialect = outcome
                    continue
                if self._spent_on_thoughts(outcome, sent):
                    self._thoughts = THOUGHT_TOKENS
                elif roomier := self._make_room(outcome, prompt, sent):
                    left_out += len(sent.optional) - len(roomier.optional)
                    sent = roomier
                else:
                    break
                thrown_away += self._usage(outcome, sent, 0.0)
            if dialect is not known:
                # Stored only once it was accepted, since a refusal may have had another reason.
                self._dialect = dialect
            completion = self._completion(outcome, sent, left_out, time.perf_counter() - started)
            return replace(completion, usage=completion.usage + thrown_away)

    def _fit(self, prompt: Prompt) -> tuple[Prompt, int]:
        """Return a prompt without as many of its optional parts as it takes to fit, with no longer a reply than there
        is room for, and how many parts were left out.

        Raises ContextExceeded if it does not fit without all of them.
        """
        context = self.context
        if context is None:
            return prompt, 0
        # A reply seldom has its greatest length: a small context keeps a quarter for it.
        room = context - min(prompt.max_tokens + self._thoughts, context // 4)
        needed = count_prompt_tokens(prompt) * self._token_ratio
        optional = list(prompt.optional)
        user = prompt.user
        left_out = 0
        while needed > room and optional:
            part = optional.pop(0)
            if part in user:
                user = user.replace(part, "", 1)
                left_out += 1
                needed -= count_tokens(part) * self._token_ratio
        # The rule is wrong by a fifth at times; the server has the last word.
        if needed > 1.2 * context:
            raise self._too_long(prompt, int(needed), context)
        longest = max(_SHORTEST_REPLY, int(context - _COUNT_MARGIN * needed) - self._thoughts)
        max_tokens = min(prompt.max_tokens, longest)
        return replace(prompt, user=user, optional=tuple(optional), max_tokens=max_tokens), left_out

    def _make_room(self, reply: StreamedReply, prompt: Prompt, sent: Prompt) -> Prompt | None:
        """Return the prompt to send instead, after a reply that the context ended before it had the length that
        ``prompt`` asks for; None where the reply can be used.

        Raises ContextExceeded for one that hardly began.
        """
        context = self.context
        length, read = reply.tokens_out, reply.tokens_in
        asked = prompt.max_tokens + self._thoughts
        if (
            context is None
            or reply.finish != "length"
            or not isinstance(length, int)
            or not isinstance(read, int)
            or length >= asked
        ):
            return None
        # The rule counted too much: now it is known what the prompt takes.
        if context - read >= sent.max_tokens + self._thoughts + _SHORTEST_REPLY:
            return replace(sent, max_tokens=min(prompt.max_tokens, context - read - self._thoughts))
        optional, user, missing = list(sent.optional), sent.user, asked - length
        while missing > 0 and optional:
            part = optional.pop(0)
            if part in user:
                user = user.replace(part, "", 1)
                missing -= count_tokens(part)
        if user != sent.user:
            longest = max(_SHORTEST_REPLY, asked - max(missing, 0) - self._thoughts)
            return replace(sent, user=user, optional=tuple(optional), max_tokens=longest)
        if length < asked // 4:
            raise self._too_long(prompt, read + asked, context)
        return None

    def _too_long(self, prompt: Prompt, needed: int, context: int | None) -> ContextExceeded:
        size = f"a context of {context:,} tokens" if context else "a smaller context"
        larger = {
            "ollama": f"{self.name}?context={max(4096, 2 * needed)}",
            "llama.cpp": "llama-server --ctx-size",
            "vllm": "vllm serve --max-model-len",
        }.get(self.server.kind, "a model with a longer one")
        return ContextExceeded(
            f"a '{prompt.role}' prompt of about {needed:,} tokens does not fit: {self.name} has {size}",
            f"Give it a longer context ({larger}), or ask with fewer passages or exemplars (k=3, shots=5)",
        )

    def _send(self, dialect: Dialect, prompt: Prompt, facts: ServerFacts) -> StreamedReply | Dialect:
        """Return the reply, or the dialect to try instead."""
        import openai

        try:
            if facts.kind == "ollama":
                return self._stream_ollama(dialect, prompt, facts)
            longer = replace(prompt, max_tokens=prompt.max_tokens + self._thoughts)
            if prompt.schema is not None and facts.kind != "openai":
                longer = replace(longer, schema=server_schema(prompt))
            body = dialect.request_body(longer)
            if facts.kind == "openai":
                reply = self._read_whole(
                    self._client.chat.completions.create(model=self.endpoint.model, **body)
                )
                self._check_length(reply, longer.max_tokens)
                return reply
            if dialect.server_options:
                body = add_server_options(body, facts, prompt, bool(self._thoughts))
            return self._stream(body, longer.max_tokens)
        except openai.APIStatusError as error:
            complaint = refusal_text(error)
            if error.status_code in _REFUSED and any(words in complaint.casefold() for words in _TOO_LONG):
                raise self._learn_context(complaint, prompt) from error
            next_dialect = dialect.step_down(f"{error.param} {complaint}", prompt)
            if error.status_code not in _REFUSED or next_dialect is None:
                raise self.endpoint.explain_error(error, self.timeout) from error
            return next_dialect
        except openai.OpenAIError as error:
            raise self.endpoint.explain_error(error, self._first_limit(facts)) from error
        except ValueError as error:  # the SDK lets the JSON error of a damaged body through
            raise self._wrong_reply(str(error)) from error

    def _learn_context(self, complaint: str, prompt: Prompt) -> ContextExceeded:
        """Note what a refusal says of the context, and return its error."""
        needed = int(match[1]) if (match := _NEEDED_SAID.search(complaint)) else 0
        if match := _CONTEXT_SAID.search(complaint):
            self._learned_context = int(match[1])
        estimate = count_prompt_tokens(prompt)
        context = self._learned_context or self.context
        if needed:
            self._token_ratio = needed / estimate
        elif context is None or estimate * self._token_ratio + prompt.max_tokens <= context + 1:
            # It counts more than the rule: at least what makes the prompt too long.
            least = ((context or 0) + 1) / estimate
            self._token_ratio = min(max(self._token_ratio * 1.1, least), _GREATEST_RATIO)
        error = self._too_long(prompt, needed or estimate, context)
        return ContextExceeded(error.problem, f"{error.hint}. It says: {complaint[:200]}")

    def _first_limit(self, facts: ServerFacts) -> float:
        return self.timeout if facts.kind == "openai" else self.settings.first or FIRST_TOKEN

    def _read_whole(self, reply: Any) -> StreamedReply:
        choices = getattr(reply, "choices", None)
        if not choices or getattr(choices[0], "message", None) is None:
            raise self._wrong_reply(str(reply)[:100])
        message, usage = choices[0].message, getattr(reply, "usage", None)
        return StreamedReply(
            message.content or getattr(message, "refusal", None) or "",
            getattr(message, "reasoning_content", None) or "",
            getattr(usage, "prompt_tokens", None),
            getattr(usage, "completion_tokens", None),
            choices[0].finish_reason or "",
        )

    def _stream(self, body: dict[str, Any], tokens: int) -> StreamedReply:
        """Return a reply of a llama.cpp or vLLM server, of at most ``tokens``, read as it is written."""
        first = self.settings.first or FIRST_TOKEN
        reply = StreamedReply()
        with self._client.chat.completions.create(
            model=self.endpoint.model,
            stream=True,
            stream_options={"include_usage": True},
            timeout=first,
            **body,
        ) as stream:
            for chunk in stream:
                reply.add_chunk(chunk)
                self._check_length(reply, tokens)
        return reply

    def _stream_ollama(self, dialect: Dialect, prompt: Prompt, facts: ServerFacts) -> StreamedReply:
        """Return a reply of Ollama's own chat, read as it is written."""
        import openai

        first = self.settings.first or FIRST_TOKEN
        reply = StreamedReply()
        body = ollama_body(
            self.endpoint,
            facts,
            prompt,
            dialect.messages(replace(prompt, schema=None)),
            think=bool(self._thoughts),
            tokens=prompt.max_tokens + self._thoughts,
        )
        client = self._client.with_options(timeout=first)
        url = f"{server_root(self.endpoint.url)}/api/chat"
        kind = openai.Stream[object]
        with client.post(url, body=body, cast_to=kind, stream=True, stream_cls=kind) as stream:
            for line in read_json_lines(stream.response.iter_lines()):
                if "error" in line:
                    raise ModelError(f"{self.endpoint.url}: {line['error']}")
                reply.add_line(line)
                self._check_length(reply, prompt.max_tokens + self._thoughts)
        return reply

    def _check_length(self, reply: StreamedReply, tokens: int) -> None:
        """Raise ModelError for a reply that cannot be one of so many tokens."""
        pieces, characters = _SPARE_PIECES + 4 * tokens, _SPARE_CHARACTERS + _TOKEN_CHARACTERS * tokens
        if reply.pieces > pieces:
            what = f"more than {pieces:,} pieces"
        elif reply.characters > characters:
            what = f"more than {characters:,} characters"
        else:
            return
        raise ModelError(
            f"{self.endpoint.url} sent {what} for a reply of at most {tokens:,} tokens",
            "The reply was given up. Does the server keep to max_tokens?",
        )

    def _spent_on_thoughts(self, reply: StreamedReply, prompt: Prompt) -> bool:
        """Return whether thoughts took all tokens of a reply; they are given tokens of their own from then on.

        Raises ModelError where they took those, too.
        """
        is_thought = bool(reply.thoughts) or "<think" in reply.text
        if reply.finish != "length" or not is_thought or clean_reply(reply.text):
            return False
        if self._thoughts < THOUGHT_TOKENS:
            return True
        spent = reply.tokens_out or prompt.max_tokens + self._thoughts
        raise ModelError(
            f"{self.name} spent {spent:,} tokens on thoughts about a '{prompt.role}' prompt and wrote no reply",
            f"Give it more ({self.name}?think={4 * THOUGHT_TOKENS}), or name a model whose thoughts can be "
            "switched off",
        )

    def _find_cut(self, reply: StreamedReply, prompt: Prompt, facts: ServerFacts) -> ContextExceeded | None:
        """Return the error where the server read less of a prompt than was sent; notes what it counts for one token
        of the rule. Ollama reads what fills its context and drops the rest."""
        estimate, read, context = count_prompt_tokens(prompt), reply.tokens_in, self.context
        if not isinstance(read, int) or estimate < _SMALL_PROMPT or read < _SMALL_PROMPT:
            return None
        is_full = facts.kind == "ollama" and context is not None and read >= context
        if not is_full and read >= estimate * _READ_SHARE:
            self._token_ratio = max(self._token_ratio, read / estimate)
            return None
        if is_full:
            self._token_ratio = min(max(self._token_ratio * 1.1, read / estimate), _GREATEST_RATIO)
        error = self._too_long(prompt, max(estimate, read + 1), read)
        return ContextExceeded(
            f"{self.endpoint.url} read {read:,} tokens of a '{prompt.role}' prompt of about "
            f"{max(estimate, read + 1):,}: it cut the rest off without a word",
            error.hint,
        )

    def _completion(self, reply: StreamedReply, prompt: Prompt, left_out: int, seconds: float) -> Completion:
        usage = self._usage(reply, prompt, seconds)
        text = cut_at_stop(reply.text, prompt.stop)
        return Completion(text, replace(usage, left_out=left_out), self.name)

    def _usage(self, reply: StreamedReply, prompt: Prompt, seconds: float) -> Usage:
        tokens_in, tokens_out = reply.tokens_in, reply.tokens_out
        estimated = not isinstance(tokens_in, int) or not isinstance(tokens_out, int)
        if not isinstance(tokens_in, int) or not isinstance(tokens_out, int):
            tokens_in, tokens_out = count_prompt_tokens(prompt), count_tokens(reply.text)
        money = cost_in_dollars(self.name, tokens_in, tokens_out)
        return Usage(1, tokens_in, tokens_out, seconds, money, estimated)

    def _wrong_reply(self, reply: str) -> BadCompletion:
        return BadCompletion(
            f"{self.endpoint.url} did not answer as an OpenAI-compatible endpoint does: {reply}",
            "Does the address end as it should, usually in /v1?",
        )


def cut_at_stop(text: str, stops: Sequence[str]) -> str:
    """Return a text up to the first stop string, since some endpoints ignore stop strings."""
    ends = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text
