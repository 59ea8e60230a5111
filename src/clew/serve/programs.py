"""The chat endpoints of a server: ``/v1`` asks its first base, ``/api/bases/NAME/v1`` each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI

from clew.serve import choices
from clew.serve.chat import make_chat_router
from clew.serve.followup import StandaloneQuestion, Turn, rewrite_standalone
from clew.serve.server import Server
from clew.serve.settings import Settings

if TYPE_CHECKING:
    from clew.types import Answer, Step


@dataclass(frozen=True, slots=True)
class BaseChatBackend:
    """:class:`clew.serve.chat.ChatBackend` over one base of a running server: its model, its budget for one question, and
    as many at once as its pages may ask."""

    app: FastAPI
    base: str

    def ask(
        self, turns: Sequence[Turn], recipe: str, watch: Callable[[Step], None], stop: Callable[[], bool]
    ) -> tuple[StandaloneQuestion, Answer]:
        """Return the question as it was asked, and the answer. Raises ClewError, Busy where too many ask."""
        server: Server = self.app.state.server
        with server.questions.chat_slots.admit():
            model = server.questions.models.lend(server.settings.model(None), stop)
            asked = rewrite_standalone(turns, model)
            base = server.bases[self.base].base
            return asked, base.ask(asked.question, llm=model, recipe=recipe, watch=watch, stop=stop)


def make_chat_routers(app: FastAPI, settings: Settings, executor: Executor) -> Iterator[tuple[str, APIRouter]]:
    """Yield the routes for programs, each with what stands before its paths. Raises UsageError."""
    known = (
        choices.offered_methods(settings.recipes) if settings.recipes else choices.evidence_methods(bool(settings.models))
    )
    recipes = {name: one.recipe for name, one in known.items() if name != choices.DEFAULT}
    for number, name in enumerate(settings.bases):
        made = make_chat_router(BaseChatBackend(app, name), recipes, executor)
        if number == 0:
            yield "", made
        # Not quoted: addresses are compared as they are when they were decoded.
        yield f"/api/bases/{name}", made
