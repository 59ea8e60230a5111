"""Names of models: what ``--llm`` and ``clew encoder set`` take, and what each name means.

| name                              | language model                  | encoder                         |
|-----------------------------------|---------------------------------|---------------------------------|
| ``openai:gpt-4o-mini``            | OpenAI                          | its embeddings                  |
| ``ollama:llama3.1``               | Ollama on this machine          | its embeddings                  |
| ``http://localhost:8000/v1#name`` | any OpenAI-compatible endpoint  | its embeddings                  |
| ``local:Qwen/Qwen3-0.6B``         | Hugging Face, in this process   |                                 |
| ``st:all-MiniLM-L6-v2``           |                                 | sentence-transformers           |
| ``clew:hops``                     |                                 | the one that comes with clew    |
| ``onnx:FOLDER``                   |                                 | onnxruntime                     |
| ``replay:file.jsonl``             | what was recorded               |                                 |

Language models may be named one per role, joined by commas: ``read=openai:gpt-4o,guide=ollama:llama3.1``. A
part without a role serves all roles that are not named; without such a part, the model of ``read`` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from clew.core.config import environment
from clew.core.errors import UsageError, refuse_password, unknown_name_error
from clew.core.plugins import ENCODERS as ENCODER_PLUGINS
from clew.core.plugins import plugin_names, plugin_package
from clew.models.endpoint import OPENAI, Endpoint, is_loopback

OLLAMA = "http://localhost:11434/v1"
LANGUAGE_MODELS = {
    "openai": "openai:gpt-4o-mini",
    "ollama": "ollama:llama3.1",
    "http": "http://localhost:8000/v1#name",
    "https": "https://example.org/v1#name",
    "local": "local:Qwen/Qwen3-0.6B",
    "replay": "replay:file.jsonl",
}
ENCODERS = {
    "clew": "clew:hops",
    "onnx": "onnx:FOLDER",
    "st": "st:all-MiniLM-L6-v2",
    "openai": "openai:text-embedding-3-small",
    "ollama": "ollama:nomic-embed-text",
    "http": "http://localhost:8000/v1#name",
    "https": "https://example.org/v1#name",
}
_REMOTE = frozenset({"openai", "ollama", "http", "https"})
_ROLE = re.compile(r"\s*([A-Za-z_]+)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ModelName:
    """A name taken apart: ``openai`` and ``gpt-4o-mini``; for a URL, the scheme and the whole."""

    scheme: str
    rest: str

    def __str__(self) -> str:
        return self.rest if self.scheme in {"http", "https"} else f"{self.scheme}:{self.rest}"


def parse_name(text: str, known: dict[str, str]) -> ModelName:
    """Take a name apart. Raises UsageError, naming the nearest form, where its scheme is not ``known``."""
    scheme, colon, rest = text.strip().partition(":")
    if scheme not in known:
        what = "kind of model" if colon else "model"
        error = unknown_name_error(what, scheme if colon else text, known)
        near = f"{error.hint} " if error.hint.endswith("?") else ""
        raise UsageError(error.problem, f"{near}The forms are {', '.join(known.values())}")
    if not rest:
        raise UsageError(f"'{text}' names no model", f"Write it as {known[scheme]}")
    if scheme not in {"http", "https"}:
        return ModelName(scheme, rest)
    url, _, model = text.strip().partition("#")
    # A name is written down with every answer.
    refuse_password(url, "the address of a model", "Give the key as CLEW_API_KEY")
    if not model or not urlsplit(url).hostname:
        raise UsageError(f"'{text}' needs an address and a model", f"Write it as {known[scheme]}")
    return ModelName(scheme, f"{url.rstrip('/')}#{model}")


def parse_encoder_name(text: str) -> ModelName:
    """Split the name of an encoder, one of clew's or of a plug-in. Raises UsageError as :func:`parse_name` does."""
    if text.strip().partition(":")[0] in ENCODERS:
        return parse_name(text, ENCODERS)
    return parse_name(text, ENCODERS | {name: f"{name}:..." for name in plugin_names(ENCODER_PLUGINS)})


def parse_roles(text: str) -> dict[str, ModelName]:
    """Return the language model of each role that is named; ``""`` is for all others."""
    found: dict[str, ModelName] = {}
    for part in text.split(","):
        assigned = _ROLE.fullmatch(part)
        role, name = (assigned[1], assigned[2]) if assigned else ("", part)
        if role and role not in ROLES:
            raise unknown_name_error("role", role, ROLES)
        if role in found:
            raise UsageError(f"two models for {f'the role {role!r}' if role else 'all roles'}: '{text}'")
        found[role] = parse_name(name, LANGUAGE_MODELS)
    return found


def resolve_endpoint(name: ModelName) -> Endpoint:
    """Return where a remote model is reached. Raises UsageError where its key is not set.

    ``OPENAI_API_KEY`` goes to OpenAI (or ``OPENAI_BASE_URL``, if that is set) and nowhere else; other
    endpoints get ``CLEW_API_KEY``, models on this machine too, if it is set.
    """
    if name.scheme == "openai":
        key = environment("OPENAI_API_KEY")
        url = _openai_url()
        if key is None and not is_loopback(url):
            raise UsageError(f"'{name}' needs a key", "Set OPENAI_API_KEY")
        canonical = str(name) if url == OPENAI else f"{url}#{name.rest}"
        return Endpoint(canonical, url, name.rest, key, "OPENAI_API_KEY")
    if name.scheme == "ollama":
        return Endpoint(str(name), OLLAMA, name.rest, environment("CLEW_API_KEY"))
    url, _, model = name.rest.partition("#")
    return Endpoint(str(name), url, model, environment("CLEW_API_KEY"))


def describe_destination(name: str) -> str:
    """Say in words where the texts go that a model is given: ``sent to https://api.openai.com (OpenAI)``.

    Works for language models, one or per role, and for encoders, by the name they were given or have.
    """
    return "; ".join(f"{role}: {_where(one)}" if role else _where(one) for role, one in _parts(name))


def leaves_machine(name: str) -> bool:
    """Return whether a model of this name is given its texts over a network."""
    return any(_where(one).startswith("sent") for _, one in _parts(name))


def _parts(name: str) -> Iterable[tuple[str, ModelName]]:
    scheme = name.partition(":")[0]
    if scheme not in LANGUAGE_MODELS and (scheme in ENCODERS or scheme in plugin_names(ENCODER_PLUGINS)):
        return [("", parse_encoder_name(name))]
    found = parse_roles(name)
    if len(found) == 1:
        return [("", one) for one in found.values()]
    return [(role or "others", one) for role, one in found.items()]


def _where(name: ModelName) -> str:
    if name.scheme not in _REMOTE:
        if name.scheme in ENCODERS or name.scheme in LANGUAGE_MODELS:
            return "stays on this machine"
        # What other packages do with texts is not known here.
        return f"sent to the plug-in '{name.scheme}' of {plugin_package(ENCODER_PLUGINS, name.scheme)}"
    if name.scheme == "ollama" and name.rest.endswith("cloud"):
        return "sent to https://ollama.com (by the Ollama on this machine)"
    url = {"openai": _openai_url(), "ollama": OLLAMA}.get(name.scheme) or name.rest.partition("#")[0]
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}"
    if is_loopback(url):
        return f"stays on this machine ({place})"
    return f"sent to {place}{' (OpenAI)' if url == OPENAI else ''}"


def _openai_url() -> str:
    url = (environment("OPENAI_BASE_URL") or OPENAI).rstrip("/")
    refuse_password(url, "OPENAI_BASE_URL", "Give the key as OPENAI_API_KEY")
    return url


#: What models are asked for; :attr:`clew.core.protocols.Prompt.role`.
ROLES = ("guide", "select", "summarise", "read", "grade", "structure", "extract")
