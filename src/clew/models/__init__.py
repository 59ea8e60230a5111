"""Language models and encoders by their names, as ``--llm`` and ``clew encoder set`` take them.

| name                              | language model                  | encoder                         |
|-----------------------------------|---------------------------------|---------------------------------|
| ``openai:gpt-4o-mini``            | OpenAI                          | its embeddings                  |
| ``ollama:llama3.1``               | Ollama on this machine          | its embeddings                  |
| ``http://localhost:8000/v1#name`` | any OpenAI-compatible endpoint  | its embeddings                  |
| ``local:Qwen/Qwen3-0.6B``         | Hugging Face, in this process   |                                 |
| ``st:all-MiniLM-L6-v2``           |                                 | sentence-transformers           |
| ``clew:hops``                     |                                 | the encoder that clew ships     |
| ``clew:multilingual``             |                                 | multilingual-e5-small           |
| ``onnx:FOLDER``                   |                                 | onnxruntime                     |
| ``replay:file.jsonl``             | what was recorded               |                                 |

Several language models, one per role, are joined by commas: ``read=openai:gpt-4o,guide=ollama:llama3.1``. A model
without a role serves all other roles; without such a model, the one of ``read`` does.

What stands behind a question mark are settings of a model that is asked over a network, such as
``ollama:qwen3?context=16384&think=on`` (:class:`clew.models.openai.ModelSettings`).

Heavy libraries are imported when a model that needs them is created, not before.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from clew.core.addresses import is_loopback
from clew.core.component import ENCODER_PLUGINS, load_plugin, plugin_names, plugin_package
from clew.core.config import environment
from clew.core.errors import UsageError, refuse_password, unknown_name_error
from clew.models.endpoint import OPENAI, Endpoint

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, LanguageModel
    from clew.models.wrappers import Budget, RetryPolicy

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
#: What models are asked for; :attr:`clew.core.protocols.Prompt.role`.
ROLES = ("guide", "select", "summarise", "read", "grade", "structure", "extract")
#: The encoder of about 100 languages, whose weights are those of another package.
MULTILINGUAL = "multilingual"
_REMOTE = frozenset({"openai", "ollama", "http", "https"})
_ROLE = re.compile(r"\s*([A-Za-z_]+)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ModelName:
    """A parsed name: ``openai`` and ``gpt-4o-mini``; for a URL, its scheme and the whole name. ``settings`` is what
    stands behind a question mark (:class:`clew.models.openai.ModelSettings`)."""

    scheme: str
    rest: str
    settings: str = ""

    @property
    def canonical(self) -> str:
        """The name without its settings, under which replies are stored."""
        return self.rest if self.scheme in {"http", "https"} else f"{self.scheme}:{self.rest}"

    def __str__(self) -> str:
        return f"{self.canonical}?{self.settings}" if self.settings else self.canonical


def parse_name(text: str, known: dict[str, str]) -> ModelName:
    """Return the parsed name. Raises UsageError, naming the nearest form, where its scheme is not ``known``."""
    scheme, colon, rest = text.strip().partition(":")
    if scheme not in known:
        what = "kind of model" if colon else "model"
        error = unknown_name_error(what, scheme if colon else text, known)
        near = f"{error.hint} " if error.hint.endswith("?") else ""
        raise UsageError(error.problem, f"{near}The forms are {', '.join(known.values())}")
    if not rest:
        raise UsageError(f"'{text}' names no model", f"Write it as {known[scheme]}")
    settings = ""
    if scheme in _REMOTE:
        head, mark, model = rest.rpartition("#") if scheme in {"http", "https"} else ("", "", rest)
        model, _, settings = model.partition("?")
        rest = f"{head}{mark}{model}"
    if scheme not in {"http", "https"}:
        return ModelName(scheme, rest, settings)
    url, _, model = f"{scheme}:{rest}".partition("#")
    # The name is stored with every answer.
    refuse_password(url, "the address of a model", "Give the key as CLEW_API_KEY")
    if not model or not urlsplit(url).hostname:
        raise UsageError(f"'{text}' needs an address and a model", f"Write it as {known[scheme]}")
    return ModelName(scheme, f"{url.rstrip('/')}#{model}", settings)


def parse_encoder_name(text: str) -> ModelName:
    """Split the name of an encoder, one of clew's or of a plug-in. Raises UsageError as :func:`parse_name` does."""
    if text.strip().partition(":")[0] in ENCODERS:
        return parse_name(text, ENCODERS)
    return parse_name(text, ENCODERS | {name: f"{name}:..." for name in plugin_names(ENCODER_PLUGINS)})


def parse_roles(text: str) -> dict[str, ModelName]:
    """Return the name of each role's language model; the role ``""`` stands for all others. Raises UsageError."""
    names: dict[str, ModelName] = {}
    for part in text.split(","):
        match = _ROLE.fullmatch(part)
        role, name = (match[1], match[2]) if match else ("", part)
        if role and role not in ROLES:
            raise unknown_name_error("role", role, ROLES)
        if role in names:
            raise UsageError(f"two models for {f'the role {role!r}' if role else 'all roles'}: '{text}'")
        names[role] = parse_name(name, LANGUAGE_MODELS)
        if names[role].settings:
            from clew.models.openai import ModelSettings

            ModelSettings.parse(names[role].settings)
    return names


def resolve_endpoint(name: ModelName, key: str | None = None) -> Endpoint:
    """Return the endpoint of a remote model, with this ``key`` or its own. Raises UsageError where OpenAI has none.

    ``OPENAI_API_KEY`` is sent to OpenAI (or to ``OPENAI_BASE_URL``, if that is set) and nowhere else. All other
    endpoints get ``CLEW_API_KEY``, if it is set. An address of another machine without one gets the key that was kept
    for it in the system's keyring (:mod:`clew.models.keys`).
    """
    if name.scheme == "openai":
        url = _openai_url()
        key = key or environment("OPENAI_API_KEY") or _stored_key(url)
        if key is None and not is_loopback(url):
            raise UsageError(
                f"'{name}' needs a key", "Set OPENAI_API_KEY, or keep it in the settings of clew serve"
            )
        canonical = name.canonical if url == OPENAI else f"{url}#{name.rest}"
        return Endpoint(canonical, url, name.rest, key, "OPENAI_API_KEY")
    if name.scheme == "ollama":
        return Endpoint(name.canonical, OLLAMA, name.rest, key or environment("CLEW_API_KEY"))
    url, _, model = name.rest.partition("#")
    return Endpoint(name.canonical, url, model, key or environment("CLEW_API_KEY") or _stored_key(url))


def _stored_key(url: str) -> str | None:
    """Return the key that was kept for an address of another machine."""
    if is_loopback(url):
        return None
    from clew.models.keys import read_key

    return read_key(url)


def describe_destination(name: str) -> str:
    """Return in words where a model's texts are sent: ``sent to https://api.openai.com (OpenAI)``.

    ``name`` is that of a language model, of several by role, or of an encoder, as given or canonical.
    """
    return "; ".join(
        f"{role}: {_describe_place(model)}" if role else _describe_place(model)
        for role, model in _models_by_role(name)
    )


def leaves_machine(name: str) -> bool:
    """Return whether texts for a model of this name are sent over a network."""
    return any(_describe_place(model).startswith("sent") for _, model in _models_by_role(name))


def _models_by_role(name: str) -> Iterable[tuple[str, ModelName]]:
    scheme = name.partition(":")[0]
    if scheme not in LANGUAGE_MODELS and (scheme in ENCODERS or scheme in plugin_names(ENCODER_PLUGINS)):
        return [("", parse_encoder_name(name))]
    names = parse_roles(name)
    if len(names) == 1:
        return [("", model) for model in names.values()]
    return [(role or "others", model) for role, model in names.items()]


def _describe_place(name: ModelName) -> str:
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


def create_language_model(
    name: str,
    *,
    cache: bool = False,
    charge_cached: bool = False,
    budget: Budget | None = None,
    record: str | Path | None = None,
    retries: RetryPolicy | None = None,
) -> LanguageModel:
    """Return the language model of a name, or of one name per role, ready for use.

    It retries by ``retries``, keeps within ``budget`` (shared by all roles), and with ``cache`` asks nothing twice;
    a cached reply is free unless ``charge_cached``. ``record`` is a cassette to which every completion is appended,
    cached ones included. A replayed model is neither retried, cached nor counted. Raises UsageError for a name that
    makes no sense or whose key is not set.
    """
    models = {
        role: _wrapped_model(parsed, cache=cache, charge_cached=charge_cached, budget=budget, retries=retries)
        for role, parsed in parse_roles(name).items()
    }
    default = models.pop("", models.get("read"))
    if default is None or models:
        from clew.models.wrappers import RoleRouter

        default = RoleRouter(models, default)
    if record is None:
        return default
    from clew.models.cassette import RecordingModel

    return RecordingModel(default, record)


def create_encoder(name: str) -> Encoder:
    """Return the encoder of a name; its weights are loaded at the first use.

    Raises UsageError, NotFound, and PluginError for a plug-in that cannot be loaded.
    """
    parsed = parse_encoder_name(name)
    if parsed.scheme not in ENCODERS:
        encoder: Encoder = load_plugin(ENCODER_PLUGINS, parsed.scheme)(parsed.rest)
        return encoder
    if parsed.scheme == "clew":
        from clew.models.encoders import OnnxEncoder, embedded_folder

        if parsed.rest == MULTILINGUAL:
            from clew.models.multilingual import multilingual_folder

            return OnnxEncoder(multilingual_folder())
        return OnnxEncoder(embedded_folder(parsed.rest))
    if parsed.scheme == "onnx":
        from clew.models.encoders import OnnxEncoder

        return OnnxEncoder(parsed.rest)
    if parsed.scheme == "st":
        from clew.models.encoders import SentenceTransformerEncoder

        return SentenceTransformerEncoder(parsed.rest)
    from clew.models.encoders import OpenAIEncoder

    return OpenAIEncoder(resolve_endpoint(parsed))


def absolute_name(name: str) -> str:
    """Return an encoder's name as a knowledge base stores it: with the folder's path made absolute, so that it means
    the same from any working directory. Raises UsageError."""
    parsed = parse_encoder_name(name)
    folder = Path(parsed.rest).expanduser()
    if parsed.scheme == "onnx" or (parsed.scheme == "st" and folder.is_dir()):
        return f"{parsed.scheme}:{folder.absolute()}"
    return str(parsed)


def _wrapped_model(
    name: ModelName, *, cache: bool, charge_cached: bool, budget: Budget | None, retries: RetryPolicy | None
) -> LanguageModel:
    if name.scheme == "replay":
        from clew.models.cassette import ReplayModel

        return ReplayModel(name.rest)
    from clew.models.openai import ModelSettings
    from clew.models.wrappers import BudgetedModel, RetryingModel, RetryPolicy

    model = _shared_model(name)
    if name.scheme != "local":
        tries = name.settings and ModelSettings.parse(name.settings).tries
        model = RetryingModel(model, retries or (RetryPolicy(tries=tries) if tries else RetryPolicy()))
    if budget is not None:
        model = BudgetedModel(model, budget)
    if cache:
        from clew.models.cache import CachedModel

        model = CachedModel(model, charge_cached=charge_cached)
    return model


def _shared_model(name: ModelName) -> LanguageModel:
    """Return the model itself, without wrappers; while anyone holds it, everyone who names it gets the same object.

    Weights are gigabytes, and connections and what an endpoint has refused are worth keeping.
    """
    endpoint = None if name.scheme == "local" else resolve_endpoint(name)
    key: object = (endpoint, name.settings) if endpoint else name.rest
    with _models_lock:
        model = _MODELS_IN_USE.get(key)
        if model is None:
            if endpoint is None:
                from clew.models.local import LocalModel

                model = LocalModel(name.rest)
            else:
                from clew.models.openai import ModelSettings, OpenAIModel

                model = OpenAIModel(endpoint, settings=ModelSettings.parse(name.settings))
            _MODELS_IN_USE[key] = model
    return model


_MODELS_IN_USE: WeakValueDictionary[object, LanguageModel] = WeakValueDictionary()
_models_lock = threading.Lock()
