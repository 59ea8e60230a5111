"""The knowledge base on disk."""

from clew.kb.base import Finding, Store
from clew.kb.info import StoreInfo

__all__ = ["Finding", "StoreInfo", "Store"]
