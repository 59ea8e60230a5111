"""Servers of language models that clew knows: Ollama, llama.cpp and vLLM, and what they say of themselves.

All three have an OpenAI-compatible endpoint. Beside it each tells how long its context is and has ways of its own to
switch thinking off and to constrain a reply, which the endpoint alone has not:

- **llama.cpp** (``llama-server``): ``GET /props`` has the context of a slot, the number of slots and the chat
  template; a request may have a ``grammar`` and ``chat_template_kwargs``.
- **vLLM**: ``GET /v1/models`` has ``max_model_len``; a request may have ``structured_outputs`` with a regular
  expression, and ``chat_template_kwargs``.
- **Ollama**: its OpenAI-compatible endpoint cannot set the context and cuts what does not fit without a word, so
  its own ``POST /api/chat`` is used: ``options.num_ctx``, ``think``, and ``format`` with a JSON schema. ``POST
  /api/show`` has what the model was trained for, and whether it thinks.

:func:`probe_server` asks which of them is at an address.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from clew.core.protocols import Prompt
from clew.models.endpoint import OPENAI, Endpoint

if TYPE_CHECKING:
    import openai

#: Seconds that a server may take to say what it is.
_PROBE = 5.0
#: The context that Ollama is asked for, where neither the user nor the model's file names one: more memory than this
#: many tokens need is not taken unasked.
OLLAMA_CONTEXT = 8192

Kind = Literal["openai", "ollama", "llama.cpp", "vllm"]


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says of itself and of a model.

    ``context`` is the number of tokens of a prompt and its reply together, None where it is not known; ``parallel``
    how many calls it works on at once. ``thinking``: thinking can be switched by a request.
    """

    kind: Kind = "openai"
    context: int | None = None
    parallel: int | None = None
    thinking: bool = False


def probe_server(client: openai.OpenAI, endpoint: Endpoint) -> ServerFacts | None:
    """Return what is at an address; None if nobody answers there now. OpenAI itself is not asked."""
    import openai

    if endpoint.url == OPENAI:
        return ServerFacts()
    asking = client.with_options(timeout=_PROBE)
    root = server_root(endpoint.url)

    def get(url: str) -> Mapping[str, Any]:
        try:
            reply = asking.get(url, cast_to=object)
        except (openai.APIStatusError, ValueError):  # it has no such page, or answers in another form
            return {}
        return reply if isinstance(reply, Mapping) else {}

    try:
        if endpoint.name.startswith("ollama:") or "version" in get(f"{root}/api/version"):
            return _ask_ollama(asking, endpoint)
        models = get(f"{endpoint.url}/models").get("data")
        rows = [row for row in models if isinstance(row, Mapping)] if isinstance(models, list) else []
        row = next((row for row in rows if row.get("id") == endpoint.model), rows[0] if rows else {})
        if isinstance(row.get("max_model_len"), int):
            return ServerFacts("vllm", row["max_model_len"], thinking=True)
        if row.get("owned_by") == "llamacpp":
            return _read_props(get(f"{root}/props"))
    except openai.OpenAIError:
        return None
    return ServerFacts()


def server_root(url: str) -> str:
    """Return the address of a server without the path of its OpenAI-compatible endpoint."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1')}"


def _read_props(props: Mapping[str, Any]) -> ServerFacts:
    settings = props.get("default_generation_settings")
    context = settings.get("n_ctx") if isinstance(settings, Mapping) else None
    slots = props.get("total_slots")
    return ServerFacts(
        "llama.cpp",
        context if isinstance(context, int) and context > 0 else None,
        slots if isinstance(slots, int) and slots > 0 else None,
        "enable_thinking" in str(props.get("chat_template", "")),
    )


def _ask_ollama(client: openai.OpenAI, endpoint: Endpoint) -> ServerFacts:
    """Return what Ollama says of a model; a model that it does not have is an error of the first call."""
    import openai

    root = server_root(endpoint.url)
    try:
        shown = client.post(f"{root}/api/show", body={"model": endpoint.model}, cast_to=object)
    except (openai.APIStatusError, ValueError):
        shown = {}
    details = shown if isinstance(shown, Mapping) else {}
    sizes = [
        value
        for key, value in (details.get("model_info") or {}).items()
        if key.endswith(".context_length") and isinstance(value, int)
    ]
    trained = sizes[0] if sizes else None
    lines = [line.split() for line in str(details.get("parameters") or "").splitlines()]
    written = next(
        (int(line[1]) for line in lines if len(line) == 2 and line[0] == "num_ctx"), OLLAMA_CONTEXT
    )
    thinking = "thinking" in (details.get("capabilities") or ())
    return ServerFacts("ollama", min(written, trained or written), 1, thinking)


# What differs in a request

#: Replies that are no free text, as llama.cpp's grammars (GBNF) have them. ``Prompt.form`` names one.
GRAMMARS = {
    "numbers": 'root ::= "none" | number (", " number){0,15}\nnumber ::= [1-9] [0-9]{0,3}',
    "yes-no": 'root ::= "yes" | "no"',
    "score": 'root ::= "0." [0-9] [0-9]? | "1.0"',
    "chain": (
        'root ::= triple ("; " triple){0,5} "; final answer: #" ("answer" | [1-9])\n'
        'triple ::= term " >> " relation " >> " term\n'
        "term ::= [^>;?\\n ] [^>;?\\n]{0,60}\n"
        "relation ::= [^>;#?\\n ] [^>;#?\\n]{0,40}"
    ),
    "filled": (
        'root ::= triple ("; " triple){0,5} "; final answer: " term\n'
        'triple ::= term " >> " relation " >> " term\n'
        "term ::= [^>;#\\n ] [^>;#\\n]{0,80}\n"
        "relation ::= [^>;#\\n ] [^>;#\\n]{0,40}"
    ),
}
#: The same as regular expressions, for vLLM.
PATTERNS = {
    "numbers": r"none|[1-9]\d{0,3}(, [1-9]\d{0,3}){0,15}",
    "yes-no": r"yes|no",
    "score": r"0\.\d\d?|1\.0",
    "chain": (
        r"[^>;\n]{1,100} >> [^>;#\n]{1,60} >> [^>;\n]{1,100}"
        r"(; [^>;\n]{1,100} >> [^>;#\n]{1,60} >> [^>;\n]{1,100}){0,5}; final answer: #(answer|[1-9])"
    ),
    "filled": (
        r"[^>;#\n]{1,100} >> [^>;#\n]{1,60} >> [^>;#\n]{1,100}"
        r"(; [^>;#\n]{1,100} >> [^>;#\n]{1,60} >> [^>;#\n]{1,100}){0,5}; final answer: [^;#\n]{1,100}"
    ),
}


#: Small models repeat the objects of a list until their tokens are spent.
_OBJECTS, _EXTRACTED, _SCALARS = 8, 60, 60


def bound_lists(schema: Mapping[str, Any], objects: int = _OBJECTS) -> dict[str, Any]:
    """Return a schema whose lists have a greatest length, which the grammars of these servers keep to."""
    bounded = dict(schema)
    if "properties" in schema:
        bounded["properties"] = {
            key: bound_lists(value, objects) for key, value in schema["properties"].items()
        }
    if "items" in schema:
        bounded["items"] = bound_lists(schema["items"], objects)
        bounded["maxItems"] = objects if schema["items"].get("type") == "object" else _SCALARS
    return bounded


def server_schema(prompt: Prompt) -> dict[str, Any]:
    """Return the schema of a prompt as these servers are given it."""
    return bound_lists(prompt.schema or {}, _EXTRACTED if prompt.role == "extract" else _OBJECTS)


def add_server_options(
    body: dict[str, Any], facts: ServerFacts, prompt: Prompt, think: bool
) -> dict[str, Any]:
    """Return the body of a request with what a llama.cpp or vLLM server understands beside OpenAI's: grammars, and
    whether to think. A reply that begins with thoughts is not constrained."""
    extra: dict[str, Any] = {}
    if facts.thinking:
        extra["chat_template_kwargs"] = {"enable_thinking": think}
    if prompt.form and prompt.schema is None and not think:
        if facts.kind == "llama.cpp":
            extra["grammar"] = GRAMMARS[prompt.form]
        elif facts.kind == "vllm":
            extra["structured_outputs"] = {"regex": PATTERNS[prompt.form]}
    return body | ({"extra_body": extra} if extra else {})


def ollama_body(
    endpoint: Endpoint,
    facts: ServerFacts,
    prompt: Prompt,
    messages: list[dict[str, str]],
    *,
    think: bool,
    tokens: int,
) -> dict[str, Any]:
    """Return the body of a request to Ollama's own chat; ``tokens`` is the length of the reply."""
    options: dict[str, Any] = {
        "num_ctx": facts.context,
        "num_predict": tokens,
        "temperature": prompt.temperature,
    }
    body: dict[str, Any] = {"model": endpoint.model, "messages": messages, "options": options, "stream": True}
    if prompt.stop:
        options["stop"] = list(prompt.stop)
    if prompt.schema is not None:
        body["format"] = server_schema(prompt)
    if facts.thinking:
        # Models of the family gpt-oss cannot but think; they know how much.
        body["think"] = ("medium" if think else "low") if "gpt-oss" in endpoint.model else think
    return body


@dataclass(slots=True)
class StreamedReply:
    """A reply as it comes in ``pieces``. ``tokens_in`` and ``tokens_out`` are None until the server says them;
    ``finish`` is "length" for a reply that was cut."""

    text: str = ""
    thoughts: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    finish: str = ""
    pieces: int = 0

    @property
    def characters(self) -> int:
        """The length of text and thoughts together."""
        return len(self.text) + len(self.thoughts)

    def add_chunk(self, chunk: Any) -> None:
        """Add a piece of an OpenAI-compatible stream."""
        self.pieces += 1
        usage = getattr(chunk, "usage", None)
        if usage is not None:
            self.tokens_in, self.tokens_out = usage.prompt_tokens, usage.completion_tokens
        for choice in getattr(chunk, "choices", None) or ():
            delta = choice.delta
            self.text += getattr(delta, "content", None) or ""
            self.thoughts += (
                getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None) or ""
            )
            self.finish = choice.finish_reason or self.finish

    def add_line(self, line: Mapping[str, Any]) -> None:
        """Add a line of Ollama's stream."""
        self.pieces += 1
        message = line.get("message") or {}
        self.text += message.get("content") or ""
        self.thoughts += message.get("thinking") or ""
        if line.get("done"):
            self.finish = str(line.get("done_reason") or "stop")
            self.tokens_in, self.tokens_out = line.get("prompt_eval_count"), line.get("eval_count")


def read_json_lines(lines: Iterator[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a stream of JSON lines. Raises ValueError for a line that is none."""
    for line in lines:
        if line.strip():
            value = json.loads(line)
            if not isinstance(value, Mapping):
                raise ValueError(f"not an object: {line[:80]}")
            yield value
