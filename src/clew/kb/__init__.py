"""The knowledge base on disk."""

from clew.kb.base import Finding, KnowledgeBase
from clew.kb.info import Info

__all__ = ["Finding", "Info", "KnowledgeBase"]
