"""The resources and prompts of the MCP server: documents and their pages to read, and ways of asking.

A document's resource, ``clew://BASE/KEY``, is its outline with the ids that the tool ``show`` takes; a page's,
``clew://BASE/KEY/page/3``, is the page's text. A key is that of the document's bytes, so an address never leads to
another text than it did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from clew.app.web.mcp.lookups import show_target
from clew.core.errors import NotFound, UsageError
from clew.core.text import read_count
from clew.core.types import Document
from clew.knowledge_base.knowledge_base import KnowledgeBase

SCHEME = "clew"
#: The form of a page's address.
PAGE_TEMPLATE = f"{SCHEME}://{{base}}/{{key}}/page/{{page}}"
#: Documents of one listing; the next has the rest.
LISTED = 100


@dataclass(frozen=True, slots=True)
class Resource:
    """A document as a resource of the base called ``base``."""

    base: str
    document: Document

    @property
    def uri(self) -> str:
        """The address."""
        return f"{SCHEME}://{quote(self.base, safe='')}/{self.document.key}"


def list_resources(bases: Mapping[str, KnowledgeBase], start: int = 0) -> tuple[list[Resource], int | None]:
    """Return :data:`LISTED` documents of all bases from the ``start``-th on, and where the next listing starts."""
    resources = [Resource(name, document) for name, base in bases.items() for document in base.documents()]
    end = start + LISTED
    return resources[start:end], end if end < len(resources) else None


def read_resource(bases: Mapping[str, KnowledgeBase], uri: str) -> str:
    """Return the text of an address: an outline or a page. Raises NotFound, UsageError."""
    name, _, rest = uri.removeprefix(f"{SCHEME}://").partition("/")
    key, *words = rest.split("/")
    base = bases.get(unquote(name))
    if not uri.startswith(f"{SCHEME}://") or base is None or not key:
        raise NotFound(f"no resource '{uri}'", "List the resources for their addresses")
    if not words:
        return show_target(base, key).text
    page = read_count(words[1]) if len(words) == 2 and words[0] == "page" else None
    if page is None:
        raise UsageError(f"'{uri}' is no address of a page", f"It is written {PAGE_TEMPLATE}")
    return show_target(base, key, page=page).text


@dataclass(frozen=True, slots=True)
class PromptText:
    """A prompt that a person picks: ``template`` has the names of ``arguments``, each with its description."""

    name: str
    title: str
    description: str
    arguments: Mapping[str, str]
    template: str

    def render(self, values: Mapping[str, str]) -> str:
        """Return the prompt filled in. Raises UsageError for a missing argument."""
        missing = [name for name in self.arguments if not values.get(name, "").strip()]
        if missing:
            raise UsageError(f"{self.name}: {missing[0]} is missing", f"It is {self.arguments[missing[0]]}")
        text = self.template
        for name in self.arguments:
            text = text.replace(f"{{{name}}}", values[name].strip())
        return text


PROMPTS = tuple(
    PromptText(**prompt)
    for prompt in json.loads((Path(__file__).parent / "prompts.json").read_text(encoding="utf-8"))
)
