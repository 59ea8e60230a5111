"""The knowledge base on disk: documents, their indexes, vectors and graphs in one folder.

:class:`Store` is the entry point, its ``snapshot()`` the view that retrieval works on.
"""

from clew.store.store import Finding, Store, StoreInfo

__all__ = ["Finding", "Store", "StoreInfo"]
