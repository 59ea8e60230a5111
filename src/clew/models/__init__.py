"""Language models and encoders, and the wrappers around them.

A name (:mod:`clew.models.names`) becomes a model here; what it costs to import is paid when it is first used.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from clew.models.names import (
    ENCODERS,
    LANGUAGE_MODELS,
    ModelName,
    describe_destination,
    leaves_machine,
    parse_name,
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

    It retries with ``patience``, keeps within ``budget`` (shared by all roles), asks nothing twice (``cache``; what
    is remembered is free unless ``charged``) and is recorded to the cassette ``record``, cached replies included.
    What is replayed is not retried, cached or counted. Raises UsageError for a name that makes no sense or whose
    key is not set.
    """
    from clew.models.cassette import RecordingModel
    from clew.models.wrappers import RoleRouter

    models = {
        role: _wrapped(one, cache=cache, charged=charge_cached, budget=budget, patience=retries)
        for role, one in parse_roles(name).items()
    }
    default = models.pop("", models.get("read"))
    model = default if default is not None and not models else RoleRouter(models, default)
    return model if record is None else RecordingModel(model, record)


def create_encoder(name: str) -> Encoder:
    """Return the encoder of a name. Raises UsageError, NotFound; the weights are loaded at the first use."""
    parsed = parse_name(name, ENCODERS)
    if parsed.scheme == "clew":
        from clew.models.embedded import encoder_folder
        from clew.models.onnx import OnnxEncoder

        return OnnxEncoder(encoder_folder(parsed.rest))
    if parsed.scheme == "onnx":
        from clew.models.onnx import OnnxEncoder

        return OnnxEncoder(parsed.rest)
    if parsed.scheme == "st":
        from clew.models.encoders import SentenceTransformerEncoder

        return SentenceTransformerEncoder(parsed.rest)
    from clew.models.encoders import OpenAIEncoder

    return OpenAIEncoder(resolve_endpoint(parsed))


def absolute_name(name: str) -> str:
    """Return an encoder's name for a base's settings: a folder's path made absolute, so that it means the
    same from anywhere. Raises UsageError."""
    parsed = parse_name(name, ENCODERS)
    folder = Path(parsed.rest).expanduser()
    if parsed.scheme == "onnx" or (parsed.scheme == "st" and folder.is_dir()):
        return f"{parsed.scheme}:{folder.absolute()}"
    return str(parsed)


def _wrapped(
    name: ModelName, *, cache: bool, charged: bool, budget: Budget | None, patience: RetryPolicy | None
) -> LanguageModel:
    if name.scheme == "replay":
        from clew.models.cassette import ReplayModel

        return ReplayModel(name.rest)
    model = _bare(name)
    if name.scheme != "local":
        from clew.models.wrappers import RetryingModel, RetryPolicy

        model = RetryingModel(model, patience or RetryPolicy())
    if budget is not None:
        from clew.models.wrappers import BudgetedModel

        model = BudgetedModel(model, budget)
    if cache:
        from clew.models.cache import CachedModel

        model = CachedModel(model, charge_cached=charged)
    return model


def _bare(name: ModelName) -> LanguageModel:
    """Return the model itself, the same one to all who have it at a time.

    Weights are gigabytes; connections, and what an endpoint refuses, are worth keeping.
    """
    key: object = name.rest if name.scheme == "local" else resolve_endpoint(name)
    with _making:
        found = _IN_USE.get(key)
        if found is None:
            found = _IN_USE[key] = _made(name)
    return found


def _made(name: ModelName) -> LanguageModel:
    if name.scheme == "local":
        from clew.models.local import LocalModel

        return LocalModel(name.rest)
    from clew.models.openai import OpenAIModel

    return OpenAIModel(resolve_endpoint(name))


_IN_USE: WeakValueDictionary[object, LanguageModel] = WeakValueDictionary()
_making = threading.Lock()
