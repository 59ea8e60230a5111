"""The published figures of 4StepFocus (Boer et al., 2024, Table 1), and the deviations of clew's implementation.

Both are printed beside the measured figures. The reasons for the deviations are in docs/decisions/0014 and 0015. The
figures of the other methods are those of STaRK (Wu et al., NeurIPS 2024), as the paper quotes them.
"""

from __future__ import annotations

from clew.evaluate.report import markdown_table

DEVIATIONS_INTRODUCTION = (
    "The runs with any relation share two things with the published method: edge types are ignored "
    '("restricting it turned out to be error-prone", Section 4), and 20 answers are reranked. Everything else in the '
    "runs called 4StepFocus and in those with oracle triples is clew's, so none of them reproduces the published "
    "method; `focus(paper=yes)` runs its algorithms as they are printed. Each of these deviations may help or harm:"
)
DEVIATIONS = (
    "Any relation is followed in both directions, where Algorithm 2 distinguishes them.",
    "Substitution: lines 14 and 19 of Algorithm 2 are corrected, and where triples form a cycle a join makes the "
    "target exact; a triple between two constants is checked against the graph, where Algorithm 3 skips it.",
    "Only the target is restricted to the nodes that may be answers; Algorithm 3 looks up constants and all other "
    "variables among these, too. An unknown is none of the question's constants if it can be anything else.",
    "A constant may be several nodes, each with its score (a lower-case name also matches near synonyms); "
    "in the paper it is one node, and a triple whose constant is not found is lost.",
    "Beyond triples, the model may write types, conditions on properties, negation and counts, which filter, and "
    "soft preferences, whose words are a term of the ranking score, as are the words of conditions that the graph "
    "cannot check. Pronouns are replaced first. The paper names these as future work or not at all.",
    "Contradicting constraints are dropped, the weakest first, until there is an answer; the paper then fills its "
    "list by vector alone. Candidates that miss a constraint, or meet it by an uncertain constant, rank lower.",
    "A list is padded with nodes of the target's type. Equal reranker scores keep the order by vector, and a reply "
    "without a score leaves the candidate in its place; STaRK adds a tenth of the rank. Prompts are clew's, and "
    "`--samples` takes the most frequent of several drafts; the paper asks for the triples once (Algorithm 1).",
    "Of more than 500 nodes without vectors, the 500 best by words are sorted (`--embed-all`: all, as in the paper). "
    "Without an encoder candidates are sorted by words.",
)


def deviations_section() -> str:
    """Return the deviations as a section of a page, in Markdown."""
    listed = "\n".join(f"- {deviation}" for deviation in DEVIATIONS)
    return f"## What differs from the paper\n\n{DEVIATIONS_INTRODUCTION}\n\n{listed}"


PUBLISHED_METHODS = (
    "Dense Retriever",
    "QA-GNN",
    "VSS",
    "Multi-VSS",
    "VSS & Claude3 Rer.",
    "VSS & GPT4 Rer.",
    "4StepFocus",
)
#: By knowledge base, questions and measure, in the order of :data:`PUBLISHED_METHODS`; None: not given.
PUBLISHED_FIGURES: dict[tuple[str, str, str], tuple[float | None, ...]] = {
    ("AMAZON", "synthetic", "Hit@1"): (0.153, 0.266, 0.392, 0.401, 0.455, 0.448, 0.476),
    ("AMAZON", "synthetic", "Hit@5"): (0.479, 0.500, 0.627, 0.650, 0.711, 0.712, 0.676),
    ("AMAZON", "synthetic", "Recall@20"): (0.445, 0.520, 0.533, 0.551, 0.538, 0.554, 0.562),
    ("AMAZON", "synthetic", "MRR"): (0.302, 0.378, 0.504, 0.516, 0.559, 0.557, 0.565),
    ("MAG", "synthetic", "Hit@1"): (0.105, 0.129, 0.290, 0.259, 0.365, 0.409, 0.538),
    ("MAG", "synthetic", "Hit@5"): (0.352, 0.390, 0.496, 0.504, 0.532, 0.582, 0.692),
    ("MAG", "synthetic", "Recall@20"): (0.421, 0.470, 0.483, 0.508, 0.484, 0.486, 0.658),
    ("MAG", "synthetic", "MRR"): (0.213, 0.291, 0.386, 0.369, 0.442, 0.490, 0.614),
    ("PRIME", "synthetic", "Hit@1"): (0.045, 0.089, 0.126, 0.151, 0.178, 0.183, 0.393),
    ("PRIME", "synthetic", "Hit@5"): (0.219, 0.214, 0.315, 0.336, 0.369, 0.373, 0.532),
    ("PRIME", "synthetic", "Recall@20"): (0.301, 0.296, 0.360, 0.381, 0.356, 0.341, 0.559),
    ("PRIME", "synthetic", "MRR"): (0.124, 0.147, 0.214, 0.235, 0.263, 0.266, 0.458),
    ("AMAZON", "human", "Hit@1"): (None, None, 0.395, 0.469, 0.560, 0.543, 0.605),
    ("AMAZON", "human", "Hit@5"): (None, None, 0.642, 0.728, 0.728, 0.728, 0.679),
    ("AMAZON", "human", "MRR"): (None, None, 0.527, 0.587, 0.644, 0.627, 0.643),
    ("MAG", "human", "Hit@1"): (None, None, 0.286, 0.238, 0.381, 0.369, 0.476),
    ("MAG", "human", "Hit@5"): (None, None, 0.417, 0.417, 0.464, 0.452, 0.512),
    ("MAG", "human", "MRR"): (None, None, 0.358, 0.314, 0.424, 0.403, 0.492),
    ("PRIME", "human", "Hit@1"): (None, None, 0.212, 0.257, 0.284, 0.284, 0.505),
    ("PRIME", "human", "Hit@5"): (None, None, 0.404, 0.404, 0.477, 0.486, 0.655),
    ("PRIME", "human", "MRR"): (None, None, 0.298, 0.338, 0.362, 0.362, 0.579),
}
PUBLISHED_INTRODUCTION = (
    "Published figures for reference, not measured here: Boer et al. (2024), Table 1. All except those of 4StepFocus "
    "are STaRK's, as the paper quotes them, and all are over the whole knowledge bases of STaRK. The methods used "
    "(Sections 2 and 4): 4StepFocus GPT-4o (`gpt-4o-2024-05-13`), with text-embedding-ada-002 for its vector search; "
    "the two rerankers GPT-4-turbo (`gpt-4-1106-preview`) and Claude 3 (`claude-3-opus`); the Dense Retriever an "
    "encoder of questions and one of documents, fine-tuned on training questions; QA-GNN (Yasunaga et al., NAACL "
    "2021) a graph neural network with a language model's embeddings, which clew does not have. The paper does not "
    "name the encoder of VSS and Multi-VSS. Methods with a proprietary model were run on a tenth of the synthetic "
    "questions (`#test-0.1`). The figures are not comparable with those over other questions, another graph or other "
    "models."
)


def published_section() -> str:
    """Return the published figures as a section of a page, in Markdown."""
    rows = [
        [base, questions, measure, *("" if figure is None else f"{figure:.3f}" for figure in figures)]
        for (base, questions, measure), figures in PUBLISHED_FIGURES.items()
    ]
    table = markdown_table(["knowledge base", "questions", "measure", *PUBLISHED_METHODS], rows)
    return f"## Published figures\n\n{PUBLISHED_INTRODUCTION}\n\n{table.rstrip()}"
