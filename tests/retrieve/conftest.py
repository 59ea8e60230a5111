"""Small real knowledge bases."""

from small_bases import base, bases, lasting, snapshot_of

__all__ = ["base", "bases", "lasting", "snapshot_of"]
