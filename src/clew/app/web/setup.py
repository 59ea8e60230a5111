"""What the person who runs the server chooses in the app: models found on this machine or named with a key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clew.app.web.errors import LOG
from clew.app.web.settings import ModelChoice, name_models
from clew.core.errors import ClewError, RemoteError, UsageError
from clew.core.files import create_folder, replace_file
from clew.core.http_client import HttpClient
from clew.models import OLLAMA, parse_roles, resolve_endpoint
from clew.models.keys import delete_key, store_key

if TYPE_CHECKING:
    from clew.app.web.model_pool import ModelPool
    from clew.models.endpoint import Endpoint

#: Seconds that a server on this machine gets to list its models, and bytes that are read of the list.
_LOOK_SECONDS, _MAX_LIST = 1.5, 1 << 20
#: Seconds to find out whether a service takes a key.
_CHECK_SECONDS = 10.0
#: Models that are offered of one server.
_MAX_MODELS = 50


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server of language models on this machine: name, address, and the names of its models for ``--llm``."""

    title: str
    url: str
    models: tuple[str, ...]


def find_local_servers(known: Sequence[tuple[str, str]]) -> list[LocalServer]:
    """Return those of the servers ``known`` by title and address that run and list models."""
    with ThreadPoolExecutor(max(1, len(known))) as pool:
        servers = pool.map(lambda item: _look_at(*item), known)
    return [server for server in servers if server is not None]


def _look_at(title: str, url: str) -> LocalServer | None:
    """Ask a server for its models by the list that all OpenAI-compatible servers have, None where nothing answers."""
    client = HttpClient(is_named=True, max_bytes=_MAX_LIST, max_seconds=_LOOK_SECONDS)
    try:
        reply = client.request(f"{url}/v1/models", headers={"Accept": "application/json"})
        content = json.loads(reply.data) if reply.status == 200 else None
    except (OSError, RemoteError, ValueError, RecursionError):
        return None
    finally:
        client.close()
    records = content.get("data") if isinstance(content, dict) else None
    if not isinstance(records, list):
        return None
    ids = [
        record["id"] for record in records if isinstance(record, dict) and isinstance(record.get("id"), str)
    ]
    # A name with a comma, a space or a mark of ours would be read as something else.
    names = [id for id in ids if not set(id) & set(",#? \n") and "embed" not in id.casefold()]
    is_ollama = urlsplit(OLLAMA).port == urlsplit(url).port and title == "Ollama"
    models = [f"ollama:{id}" if is_ollama else f"{url}/v1#{id}" for id in names[:_MAX_MODELS]]
    return LocalServer(title, url, tuple(models))


class ModelSetup:
    """The models chosen in the app, stored in a file of the user; models given on the command line are not in it."""

    def __init__(self, path: Path, pool: ModelPool, given: Sequence[ModelChoice]) -> None:
        self._path, self._pool = path, pool
        self._given = [choice.name for choice in given]
        self.names = [] if given else self._read()
        usable = [name for name in self.names if self._is_usable(name)]
        if usable:
            pool.choose(name_models(usable))

    def _is_usable(self, name: str) -> bool:
        try:
            self._pool.check(name_models([name])[0])
        except ClewError as error:
            LOG.warning("the model %s is left out: %s", name, error)
            return False
        return True

    def add(self, name: str, key: str = "") -> ModelChoice:
        """Choose a model, which becomes the default. Its ``key`` is kept, and sent to its address alone.

        Raises UsageError where the name makes no sense, the service refuses the key or cannot be reached.
        """
        roles = parse_roles(name)
        if len(roles) != 1 or "" not in roles:
            raise UsageError("a model for each role is set on the command line: clew serve --llm")
        model = roles[""]
        if model.scheme not in {"openai", "ollama", "http", "https"}:
            raise UsageError(f"'{name}' can only be set on the command line: clew serve --llm")
        if key:
            endpoint = resolve_endpoint(model, key)
            _check_key(endpoint)
            store_key(endpoint.url, key)
        choice = name_models([name])[0]
        self._pool.check(choice)
        self._set([name, *(other for other in self.names if other != name)])
        return choice

    def remove(self, name: str, *, with_key: bool = False) -> None:
        """Choose a model no more; ``with_key``: forget its key, too."""
        if name not in self.names:
            raise UsageError("this model was not chosen here")
        if with_key:
            delete_key(resolve_endpoint(parse_roles(name)[""], "forgotten").url)
        self._set([other for other in self.names if other != name])

    def _set(self, names: list[str]) -> None:
        self._pool.choose(name_models([*names, *(name for name in self._given if name not in names)]))
        self.names = names
        create_folder(self._path.parent)
        replace_file(self._path, json.dumps({"models": names}, indent=1))

    def _read(self) -> list[str]:
        try:
            content: Any = json.loads(self._path.read_text("utf-8"))
            return [str(name) for name in content["models"]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, KeyError) as error:
            LOG.warning("%s cannot be read: %s", self._path, error)
            return []


def _check_key(endpoint: Endpoint) -> None:
    """Raise UsageError where a service refuses a key or cannot be reached. One that lists no models may work."""
    import openai

    try:
        with endpoint.connect(_CHECK_SECONDS) as client:
            client.models.list()
    except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
        raise UsageError("the service refuses this key", "Is it complete, and for this service?") from error
    except openai.APIConnectionError as error:
        raise UsageError(f"{endpoint.url} cannot be reached", "Is the address right?") from error
    except openai.APIError:
        return
