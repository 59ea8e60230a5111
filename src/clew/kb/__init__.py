"""The knowledge base on disk."""
