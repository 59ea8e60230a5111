"""Which recipes ask the web, and where that is."""

from __future__ import annotations

from clew.core.config import web_search_endpoint
from clew.core.errors import UsageError
from clew.core.recipe import Recipe

#: The retrievers whose hits are not in the base.
WEB_RETRIEVERS = ("serpapi",)


def searches_web(recipe: Recipe) -> bool:
    """Return whether a recipe, or any part of it, searches the web."""
    parts = (value for _, value in recipe.options if isinstance(value, Recipe))
    return recipe.name in WEB_RETRIEVERS or any(map(searches_web, parts))


def require_local_retriever(recipe: Recipe, who: str, instead: str) -> Recipe:
    """Return a retriever's recipe. Raises UsageError where it searches the web: ``who`` needs nodes of the base."""
    if searches_web(recipe):
        raise UsageError(
            f"'{who}' starts from passages of the base, and '{recipe}' finds them on the web",
            f"Name a retriever of the base ({instead}); methods for the web: read, selfask, react",
        )
    return recipe


def web_destination() -> str:
    """Return the address that searches go to; "" where it is this machine."""
    from urllib.parse import urlsplit

    from clew.models.endpoint import is_loopback

    url, _ = web_search_endpoint()
    parts = urlsplit(url)
    return "" if is_loopback(url) else f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
