"""The knowledge base on disk."""

from __future__ import annotations

from clew.store.info import StoreInfo
from clew.store.store import Finding, Store

__all__ = ["Finding", "Store", "StoreInfo"]
