"""The knowledge base on disk."""

from clew.kb.base import Finding, Info, KnowledgeBase

__all__ = ["Finding", "Info", "KnowledgeBase"]
