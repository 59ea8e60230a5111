"""A base in object storage that is read where it lies: pieces named by their hash, fetched when they are needed.

:class:`~clew.store.remote.store.RemoteStore` is the entry point (docs/decisions/0038).
"""
