"""The chat endpoints of a server: ``/v1`` asks its first base, ``/api/bases/NAME/v1`` each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi import APIRouter, FastAPI

from clew import catalog
from clew.errors import Unavailable
from clew.serve import choices
from clew.serve.chat import chat_router
from clew.serve.problems import Busy
from clew.serve.recipes import offered
from clew.serve.server import Server
from clew.serve.settings import Settings

if TYPE_CHECKING:
    from clew.types import Answer, Step


@dataclass(frozen=True, slots=True)
class BaseAsker:
    """:class:`clew.serve.chat.Asker` over one base of a running server: its model, its limits."""

    app: FastAPI
    base: str

    def ask(
        self, question: str, recipe: str, watch: Callable[[Step], None], stop: Callable[[], bool]
    ) -> Answer:
        """Return the answer. Raises ClewError, Unavailable where too many ask."""
        server: Server = self.app.state.server
        model = server.asking.model(server.settings.model(None))
        try:
            with server.asking.room():
                base = server.shelf[self.base].base
                return base.ask(question, llm=model, recipe=recipe, watch=watch, stop=stop)
        except Busy as error:
            raise Unavailable(error.problem, retry_after=error.retry_after) from error


def chat_routers(app: FastAPI, settings: Settings, executor: Executor) -> Iterator[tuple[str, APIRouter]]:
    """Yield the routes for programs, each with what stands before its paths. Raises UsageError."""
    model = settings.model(None)
    llm = None if model is None else catalog.language_model(model.name, cache=True)
    answering = offered(llm is not None)
    known = choices.methods(settings.recipes)
    recipes = {
        name: one.recipe for name, one in known.items() if name in answering or name in settings.recipes
    }
    for number, name in enumerate(settings.bases):
        made = chat_router(BaseAsker(app, name), llm=llm, recipes=recipes, executor=executor)
        if number == 0:
            yield "", made
        yield f"/api/bases/{quote(name, safe='')}", made
