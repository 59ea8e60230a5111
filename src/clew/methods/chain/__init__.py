"""Semi-Structured Chain-of-Thought (Su et al., NAACL 2024): fill the unknowns of a chain of triples hop by hop."""
