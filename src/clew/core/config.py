"""The one place that reads the environment."""

from __future__ import annotations

import os
from pathlib import Path

SERPAPI_URL = "https://serpapi.com"


def environment(name: str, default: str | None = None) -> str | None:
    """Return the environment variable ``name``; an empty one counts as unset."""
    return os.environ.get(name) or default


def knowledge_base_path(given: str | Path | None = None) -> Path:
    """Return the folder of the knowledge base: ``given``, else ``CLEW_HOME``, else ``./.clew``."""
    return Path(given or environment("CLEW_HOME") or ".clew").expanduser().absolute()


def knowledge_base_name(folder: Path) -> str:
    """Return what a knowledge base is called where several are served: its folder's own name without ``.clew``, for
    a hidden one its parent's."""
    return folder.parent.name if folder.name.startswith(".") else folder.name.removesuffix(".clew")


def expand_path(what: str) -> Path:
    """Return the path that a word may be; ``~`` with a name that is no user's is a name like any other."""
    try:
        return Path(what).expanduser().absolute()
    except RuntimeError:
        return Path(what).absolute()


def cache_path() -> Path:
    """Return the folder for model caches, outside every base: ``CLEW_CACHE``, else the user's own."""
    given = environment("CLEW_CACHE")
    if given:
        return Path(given).expanduser()
    return Path(environment("XDG_CACHE_HOME") or Path.home() / ".cache") / "clew"


def default_encoder() -> str:
    """Return the encoder of new knowledge bases and of evaluations: ``CLEW_ENCODER``, else the one that comes with
    clew; ``none`` stands for none."""
    return environment("CLEW_ENCODER") or "clew:hops"


def prompts_path() -> Path | None:
    """Return the folder of the user's own prompt files, ``CLEW_PROMPTS``, if there is one."""
    given = environment("CLEW_PROMPTS")
    return Path(given).expanduser() if given else None


def annotation_token() -> str | None:
    """Return the personal token for the TAGME and WAT services: ``CLEW_TAGME_TOKEN``."""
    return environment("CLEW_TAGME_TOKEN")


def prices_path() -> Path | None:
    """Return the file of the user's own model prices, ``CLEW_PRICES``, if there is one."""
    given = environment("CLEW_PRICES")
    return Path(given).expanduser() if given else None


def web_search_endpoint() -> tuple[str, str | None]:
    """Return the address of the web search, ``CLEW_SERPAPI_URL`` or SerpApi's own, and its key,
    ``CLEW_SERPAPI_KEY``."""
    return environment("CLEW_SERPAPI_URL") or SERPAPI_URL, environment("CLEW_SERPAPI_KEY")


def server_token() -> str | None:
    """Return the token of ``clew serve``, ``CLEW_TOKEN``, if there is one."""
    return environment("CLEW_TOKEN")
