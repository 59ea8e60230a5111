"""An encoder small enough to work by hand: one direction for each of a few words."""

import numpy as np

from clew.core.text import index_terms


class WordEncoder:
    """Unit vectors that count ``words``; the last direction stands for everything else."""

    objective = ""
    contrast = 1.0

    def __init__(self, *words):
        self.words = list(words)
        self.name = "test:" + "-".join(words)
        self.dimension = len(words) + 1

    def encode(self, texts, query=False):
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for term in index_terms(text):
                vector[self.words.index(term) if term in self.words else -1] += 1
            vector /= np.linalg.norm(vector) or 1
        return vectors
