"""Drilling down into the discourse structure (D3): documents, their sections, the paragraphs of those."""
