"""The encoders that come with clew: folders as ``clew encoder export`` makes them, each with its model card."""

from __future__ import annotations

from pathlib import Path

from clew.core.errors import unknown_name_error

_HERE = Path(__file__).parent


def encoder_folder(name: str) -> Path:
    """Return the folder of an encoder that comes with clew. Raises UsageError for an unknown name."""
    known = sorted(path.parent.name for path in _HERE.glob("*/model.onnx"))
    if name not in known:
        raise unknown_name_error("encoder that comes with clew", name, known)
    return _HERE / name
