"""Trained readers for tests of what is answered without one."""


class NoReader:
    """A trained reader that reads nothing."""

    name = "none"

    def read(self, question, contexts, limit=5):
        return [[] for _ in contexts]

    def confidence(self, score):
        return 0.0
