"""The knowledge bases of a server, opened once and shared by its threads."""

from __future__ import annotations

from dataclasses import dataclass

from clew.api import Base
from clew.api import open as open_base
from clew.errors import NotFound
from clew.serve.history import History
from clew.serve.settings import Settings


@dataclass(frozen=True, slots=True)
class Shelved:
    """One base of a server: its name, the base, and the questions that were asked of it."""

    name: str
    base: Base
    history: History


class Shelf:
    """The bases by name. Reading is shared by threads; what writes opens the base for itself
    (:meth:`clew.api.Base` of another connection), so that nobody who reads waits for a writer."""

    def __init__(self, settings: Settings) -> None:
        self._bases: dict[str, Shelved] = {}
        for name, path in settings.bases.items():
            base = opened(settings, name)
            base.store.catches_up = settings.read_only  # else the process that reads uploads does
            history = History(path)
            history.break_off()
            self._bases[name] = Shelved(name, base, history)

    def __getitem__(self, name: str) -> Shelved:
        """Return a base. Raises NotFound."""
        if name not in self._bases:
            raise NotFound(f"no knowledge base named '{name}'", "See: /api/bases")
        return self._bases[name]

    def every(self) -> list[Shelved]:
        """Return all bases, in the order in which they were given."""
        return list(self._bases.values())

    def close(self) -> None:
        """Close them."""
        for one in self._bases.values():
            one.history.close()
            one.base.close()


def opened(settings: Settings, name: str) -> Base:
    """Open a base for one user alone, made where there is none."""
    from clew.kb import KnowledgeBase

    path = settings.bases[name]
    fresh = not KnowledgeBase.exists(path)
    base = open_base(path, create=True)
    if fresh and settings.encoder is not None:
        base.set_encoder(None if settings.encoder == "none" else settings.encoder)
    return base
