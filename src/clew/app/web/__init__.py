"""The server (extra: serve): web pages, a JSON API, a chat endpoint for OpenAI's clients, and a server of MCP.

:func:`make_app` returns the application of some :class:`Settings`. Routes call
:class:`clew.knowledge_base.KnowledgeBase` and reply with ``to_dict`` of its results. Uploaded documents are parsed
in a process of their own (:mod:`clew.app.web.uploads.worker`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clew.core.errors import require_packages

if TYPE_CHECKING:
    from clew.app.web.application import make_app
    from clew.app.web.settings import Limits, Settings

__all__ = ["Limits", "Settings", "make_app", "require_extra"]

_HOMES = {
    "make_app": "clew.app.web.application",
    "Limits": "clew.app.web.settings",
    "Settings": "clew.app.web.settings",
}
#: The packages of the extra.
_PACKAGES = ("fastapi", "uvicorn", "python_multipart", "jinja2", "openpyxl", "keyring")


def require_extra() -> None:
    """Raise MissingExtra if a package of the extra is not installed."""
    require_packages("serve", *_PACKAGES, part="the web app")


def __getattr__(name: str) -> Any:
    """Import on first use, so that a missing package raises MissingExtra (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'clew.app.web' has no attribute '{name}'")
    require_extra()
    return getattr(import_module(_HOMES[name]), name)
