"""Small real knowledge bases."""

from small_bases import bases, lasting

__all__ = ["bases", "lasting"]
