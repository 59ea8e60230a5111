"""Semi-Structured Chain-of-Thought: chains, and where their unknowns are looked up."""
