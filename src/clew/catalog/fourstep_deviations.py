"""Where clew's 4StepFocus differs from the published one (Boer et al., 2024), to be read beside what is measured.

Why it differs: docs/decisions/0014 and 0015.
"""

from __future__ import annotations

DEVIATIONS_INTRODUCTION = (
    "Of the published recipe, the runs here that follow any relation take the rule that edge types are ignored "
    '("restricting it turned out to be error-prone", Section 4) and the 20 that are reranked. Everything else is '
    "clew's, in every run called 4StepFocus and with oracle triples, so that none of them reproduces the published "
    "method; each of these may help or harm:"
)
DEVIATIONS = (
    "Any relation is followed in both directions, where Algorithm 2 tells them apart.",
    "Substitution: lines 14 and 19 of Algorithm 2 are put right, and where triples form a cycle a join makes the "
    "target exact; a triple between two constants is held against the graph, where Algorithm 3 skips it.",
    "Only what is asked for is restricted to the nodes that may answer; Algorithm 3 looks constants and all other "
    "variables up among these, too. No unknown is one of the question's constants where it can be anything else.",
    "A constant may be several nodes, each with its score (a name in lower case also what means nearly the same); "
    "in the paper it is one node, and a triple whose constant is not found is lost.",
    "Beyond triples, the model may write types, conditions on properties, negation and counts, which filter, and "
    "wishes, whose words are a term of the score by which candidates are sorted, as are those of what the graph does "
    "not have. Pronouns are replaced first. The paper names these as future work or not at all.",
    "Constraints that contradict each other are given up, the weakest first, until there is an answer; the paper's "
    "list is then filled by vector alone. Candidates that miss one, or are met by an unsure constant, rank lower.",
    "A list is filled up with nodes of the type that is asked for. Of the rerankers' scores, "
    "equal ones keep the order by vector, and a reply without one leaves the candidate its place; STaRK adds a tenth "
    "of the rank. Prompts are clew's, and `--samples` takes the most frequent of several drafts.",
    "Of more nodes than 500 without vectors, the 500 best by words are sorted (`--embed-all`: all, as in the paper). "
    "Without an encoder candidates are sorted by words.",
)


def deviations_section() -> str:
    """Return them as a section of a page, in Markdown."""
    listed = "\n".join(f"- {one}" for one in DEVIATIONS)
    return f"## What differs from the paper\n\n{DEVIATIONS_INTRODUCTION}\n\n{listed}"
