"""Set-up in the app, for the person who runs the server alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import Field, SecretStr

from clew.app.web.api.questions import Form
from clew.app.web.errors import RequestRefused
from clew.app.web.server import CurrentBase, CurrentServer, Server
from clew.app.web.setup import ModelSetup, find_local_servers
from clew.core.errors import UsageError
from clew.models import describe_destination
from clew.models.keys import name_keyring

router = APIRouter(tags=["set-up"])

#: The encoders that can be chosen in the app, each with what it is for.
ENCODERS = {"clew:hops": "English", "clew:multilingual": "about 100 languages"}


def require_setup(request: Request, server: Server) -> ModelSetup:
    """Return the set-up of models, for the local user. Raises RequestRefused."""
    server.require_local_user(request)
    if server.setup is None:
        raise RequestRefused(403, "this server is set up on the command line alone")
    return server.setup


@router.get("/setup")
def look(request: Request, server: CurrentServer) -> dict[str, Any]:
    """Return the models that were chosen, where each one's texts go, the servers of models that run on this machine,
    and what the system's keyring is called (empty: it has none, and keys are kept until the server ends)."""
    setup = require_setup(request, server)
    return {
        "models": [{"name": name, "goes": describe_destination(name)} for name in setup.names],
        "servers": list(map(asdict, find_local_servers(server.settings.model_servers))),
        "keyring": name_keyring(),
    }


class NewModel(Form):
    """A model by its name, such as ``ollama:llama3.1`` or ``openai:gpt-4o-mini``, and a key for its service."""

    name: Annotated[str, Field(min_length=1, max_length=500)]
    key: Annotated[SecretStr, Field(max_length=500)] = SecretStr("")


@router.post("/setup/models", status_code=201)
def add(asked: NewModel, request: Request, server: CurrentServer) -> dict[str, Any]:
    """Choose a model, which becomes the default. A key goes to the system's keyring; without one it is kept until
    the server ends."""
    choice = require_setup(request, server).add(asked.name, asked.key.get_secret_value().strip())
    return {"id": choice.id, "goes": choice.goes, "leaves_machine": choice.leaves}


class OldModel(Form):
    """A model that was chosen; ``key``: its key is forgotten, too."""

    name: Annotated[str, Field(min_length=1, max_length=500)]
    key: bool = False


@router.post("/setup/models/remove")
def remove(asked: OldModel, request: Request, server: CurrentServer) -> dict[str, Any]:
    """Choose a model no more."""
    require_setup(request, server).remove(asked.name, with_key=asked.key)
    return {"removed": asked.name}


class NewEncoder(Form):
    """The name of an encoder that comes with clew."""

    name: Annotated[str, Field(max_length=100)]


@router.post("/bases/{base}/encoder")
def set_encoder(
    asked: NewEncoder, request: Request, server: CurrentServer, base: CurrentBase
) -> dict[str, Any]:
    """Search a project by meaning with another of clew's encoders; its documents are prepared in the background."""
    server.require_local_user(request)
    if asked.name not in ENCODERS:
        raise UsageError(f"'{asked.name}' cannot be chosen here", "Set it with clew encoder set")
    with server.open_for_writing(base) as writable:
        writable.encoding.set(asked.name)
    server.uploads.request_catch_up(base.name)
    return {"encoder": asked.name}
