"""The one place that reads the environment."""

from __future__ import annotations

import os
from pathlib import Path


def environment(name: str, default: str | None = None) -> str | None:
    """Return the environment variable ``name``; an empty one counts as unset."""
    return os.environ.get(name) or default


def base_path(given: str | Path | None = None) -> Path:
    """Return the folder of the knowledge base: ``given``, else ``CLEW_HOME``, else ``./.clew``."""
    return Path(given or environment("CLEW_HOME") or ".clew").expanduser().absolute()


def cache_path() -> Path:
    """Return the folder for model caches, outside every base: ``CLEW_CACHE``, else the user's own."""
    given = environment("CLEW_CACHE")
    if given:
        return Path(given).expanduser()
    return Path(environment("XDG_CACHE_HOME") or Path.home() / ".cache") / "clew"
