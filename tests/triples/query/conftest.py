"""Small real bases."""

from small_bases import base, snapshot_of

__all__ = ["base", "snapshot_of"]
