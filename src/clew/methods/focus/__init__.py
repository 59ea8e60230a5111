"""4StepFocus: a question as typed triples, substituted in graphs, sorted by vector, reranked by a model."""
