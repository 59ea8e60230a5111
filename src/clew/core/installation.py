"""How clew was installed here: from a folder of its sources, an archive, a repository, or a package index.

pip records it beside the package (direct_url.json, PEP 610); for an index it records nothing.
"""

from __future__ import annotations

import json
import shlex
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


@lru_cache(maxsize=1)
def _read_origin() -> dict[str, Any]:
    """Return what pip recorded, {} for an index. What runs without being installed runs from its sources."""
    try:
        record = distribution("clew").read_text("direct_url.json")
    except PackageNotFoundError:
        return {"url": Path(__file__).parents[3].as_uri(), "dir_info": {}}
    return dict(json.loads(record)) if record else {}


def format_install_command(extra: str = "", *, upgrade: bool = False) -> str:
    """Return the command that installs an extra of clew into this installation, or clew itself again.

    Where clew was installed from a folder, the command is to be run in that folder (:func:`find_sources`).
    """
    origin = _read_origin()
    name = f"[{extra}]" if extra else ""
    options = "--upgrade " if upgrade else ""
    if "dir_info" in origin:
        options += "-e " if origin["dir_info"].get("editable") else ""
        return f"pip install {options}{shlex.quote(f'.{name}')}"
    source = ""
    if origin:
        source = f" @ {origin['url']}"
        if "vcs_info" in origin:
            source = f" @ {origin['vcs_info']['vcs']}+{origin['url']}"
            source += f"@{revision}" if (revision := origin["vcs_info"].get("requested_revision")) else ""
        source += f"#subdirectory={folder}" if (folder := origin.get("subdirectory")) else ""
    return f"pip install {options}{shlex.quote(f'clew{name}{source}')}"


def find_sources() -> Path | None:
    """Return the folder that clew was installed from; None where it came from elsewhere, or the folder is gone."""
    origin = _read_origin()
    folder = Path(url2pathname(urlsplit(origin["url"]).path)) if "dir_info" in origin else None
    return folder if folder and folder.is_dir() else None
