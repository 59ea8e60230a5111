"""Graphs over passages, and questions about structure."""
