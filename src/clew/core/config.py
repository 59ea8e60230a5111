"""Settings from environment variables. No other module reads the environment."""

from __future__ import annotations

import os
from pathlib import Path

from clew.core.errors import UsageError

SERPAPI_URL = "https://serpapi.com"
#: The trained reader that comes with clew.
DEFAULT_READER = "clew:reader"
# onnxruntime would send to its maker what it runs on, unless it reads this before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def environment(name: str, default: str | None = None) -> str | None:
    """Return the environment variable ``name``; an empty one counts as unset."""
    return os.environ.get(name) or default


def environment_with(variables: dict[str, str]) -> dict[str, str]:
    """Return this process's environment with other ``variables``, for a program that it starts."""
    return {**os.environ, **variables}


def set_environment(variables: dict[str, str]) -> None:
    """Set environment variables that a library reads when it is first used, and that it takes in no other way."""
    os.environ.update(variables)


def knowledge_base_path(path: str | Path | None = None) -> Path | str:
    """Return the folder of the knowledge base: ``path``, else ``CLEW_HOME``, else ``./.clew``. An address of object
    storage (``s3://bucket/base``) is returned as text."""
    place = str(path or environment("CLEW_HOME") or ".clew")
    if "://" in place:
        return place.rstrip("/")
    folder = Path(place).expanduser().absolute()
    # A copy that was written into a folder: "clew copy BASE file:///folder".
    if (folder / "manifest.json").is_file() and (folder / "pieces").is_dir():
        return f"file://{folder}"
    return folder


def knowledge_base_name(place: Path | str) -> str:
    """Return the name of a knowledge base where several are served.

    It is the name of the folder without ``.clew``; for a hidden folder, the name of its parent.
    """
    folder = Path(place)
    return folder.parent.name if folder.name.startswith(".") else folder.name.removesuffix(".clew")


def cache_path() -> Path:
    """Return the folder for model caches, outside every base: ``CLEW_CACHE``, else the user's cache folder."""
    folder = environment("CLEW_CACHE")
    if folder:
        return Path(folder).expanduser()
    return Path(environment("XDG_CACHE_HOME") or Path.home() / ".cache") / "clew"


def storage_cache_limit() -> int:
    """Return the bytes cached on this machine for each base in object storage, in addition to the parts that are
    always read whole: ``CLEW_STORAGE_CACHE`` in MiB, by default 2,048. Raises UsageError for an invalid number."""
    text = environment("CLEW_STORAGE_CACHE") or "2048"
    if not text.isdecimal() or len(text) > 9:
        raise UsageError(f"CLEW_STORAGE_CACHE is no number of MiB: '{text}'", "For example: 2048")
    return int(text) << 20


def data_path() -> Path:
    """Return the folder for what the web app keeps for its user: ``CLEW_DATA``, else the user's data folder."""
    folder = environment("CLEW_DATA")
    if folder:
        return Path(folder).expanduser().absolute()
    return Path(environment("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "clew"


def projects_path() -> Path:
    """Return the folder of the projects that are made in the web app."""
    return data_path() / "projects"


#: The encoder that comes with clew.
DEFAULT_ENCODER = "clew:hops"


def default_encoder() -> str:
    """Return the encoder of new knowledge bases and of evaluations: ``CLEW_ENCODER``, else the embedded one.

    ``none`` means that there is no encoder.
    """
    return environment("CLEW_ENCODER") or DEFAULT_ENCODER


def default_reader() -> str:
    """Return the trained reader that reads where no language model is set: ``CLEW_READER``, else the embedded one.

    ``none`` means that there is none: sentences are taken by their words.
    """
    return environment("CLEW_READER") or DEFAULT_READER


def reading_limits() -> tuple[float, float]:
    """Return what the parser may use for one file: seconds of processor time, ``CLEW_READ_SECONDS``, and MiB of
    memory, ``CLEW_READ_MEMORY``; 0 is no limit. Raises UsageError for what is no number."""
    limits = []
    for name, default in (("CLEW_READ_SECONDS", 20.0), ("CLEW_READ_MEMORY", 600.0)):
        try:
            limit = float(environment(name) or default)
        except ValueError:
            limit = -1.0
        if not 0 <= limit < float("inf"):
            raise UsageError(
                f"{name} is no limit: '{environment(name)}'", f"Write a number, such as {default:g}"
            )
        limits.append(limit)
    return limits[0], limits[1]


def prompts_path() -> Path | None:
    """Return the folder of the user's own prompt files, ``CLEW_PROMPTS``, if there is one."""
    folder = environment("CLEW_PROMPTS")
    return Path(folder).expanduser() if folder else None


def annotation_token() -> str | None:
    """Return the personal token for the TAGME and WAT services: ``CLEW_TAGME_TOKEN``."""
    return environment("CLEW_TAGME_TOKEN")


def prices_path() -> Path | None:
    """Return the file of the user's own model prices, ``CLEW_PRICES``, if there is one."""
    file = environment("CLEW_PRICES")
    return Path(file).expanduser() if file else None


def web_search_endpoint() -> tuple[str, str | None]:
    """Return the address of the web search, ``CLEW_SERPAPI_URL`` or that of SerpApi, and the key to it,
    ``CLEW_SERPAPI_KEY``."""
    return environment("CLEW_SERPAPI_URL") or SERPAPI_URL, environment("CLEW_SERPAPI_KEY")


def find_proxy(scheme: str, host: str) -> str | None:
    """Return the address of the proxy for a host, which ``HTTPS_PROXY``, ``HTTP_PROXY`` or ``ALL_PROXY`` names unless
    ``NO_PROXY`` names the host; None where there is none."""
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    return None if not proxies or proxy_bypass(host) else proxies.get(scheme) or proxies.get("all")


def server_token() -> str | None:
    """Return the token of ``clew serve``, ``CLEW_TOKEN``, if there is one."""
    return environment("CLEW_TOKEN")
