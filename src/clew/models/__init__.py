"""Language models and encoders, and the wrappers around them.

This module turns a name (:mod:`clew.models.names`) into a model. Heavy libraries are imported when a model that needs
them is created, not before.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from clew.core.component import ENCODER_PLUGINS, load_plugin
from clew.models.names import (
    ENCODERS,
    LANGUAGE_MODELS,
    ModelName,
    describe_destination,
    leaves_machine,
    parse_encoder_name,
    parse_roles,
    resolve_endpoint,
)

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, LanguageModel
    from clew.models.wrappers import Budget, RetryPolicy

__all__ = [
    "ENCODERS",
    "LANGUAGE_MODELS",
    "absolute_name",
    "create_encoder",
    "create_language_model",
    "describe_destination",
    "leaves_machine",
]


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
        from clew.models.onnx import OnnxEncoder, embedded_folder

        return OnnxEncoder(embedded_folder(parsed.rest))
    if parsed.scheme == "onnx":
        from clew.models.onnx import OnnxEncoder

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
    from clew.models.wrappers import BudgetedModel, RetryingModel, RetryPolicy

    model = _shared_model(name)
    if name.scheme != "local":
        model = RetryingModel(model, retries or RetryPolicy())
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
    key: object = endpoint or name.rest
    with _models_lock:
        model = _MODELS_IN_USE.get(key)
        if model is None:
            if endpoint is None:
                from clew.models.local import LocalModel

                model = LocalModel(name.rest)
            else:
                from clew.models.openai import OpenAIModel

                model = OpenAIModel(endpoint)
            _MODELS_IN_USE[key] = model
    return model


_MODELS_IN_USE: WeakValueDictionary[object, LanguageModel] = WeakValueDictionary()
_models_lock = threading.Lock()
