"""Small real knowledge bases."""

from small_bases import base, lasting, snapshot_of

__all__ = ["base", "lasting", "snapshot_of"]
