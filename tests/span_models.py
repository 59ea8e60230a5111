"""Trained readers for tests of what is answered without one."""


class NoReader:
    """A trained reader that reads nothing. One that overrides ``read`` finds sentences likely that have its words."""

    name = "none"

    def read(self, question, contexts, limit=5):
        return [[] for _ in contexts]

    def read_options(self, question, passages, options, limit=5):
        spans = self.read(question, [passages], limit)[0]

        def score(place, start, end):
            inside = (
                self.confidence(span.score)
                for span in spans
                if span.kind == "text" and span.passage == place and start <= span.start and span.end <= end
            )
            return 12 * max(inside, default=0.0) - 6

        return spans, [score(*option) for option in options]

    def read_alone(self, question, options):
        return [0.0] * len(options)

    def confidence(self, score):
        return 0.0
