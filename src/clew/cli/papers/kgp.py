"""``clew eval paper kgp``."""

from __future__ import annotations

from clew.cli.analyse import Corpus, Data, Encoder, Limit, Seed, Sentences, Workers
from clew.cli.options import Llm
from clew.cli.papers.common import PageFolder, print_paths
from clew.cli.works import figure_session


def run_kgp(
    data: Data,
    out: PageFolder,
    corpus: Corpus = "question",
    llm: Llm = None,
    encoder: Encoder = None,
    sentences: Sentences = 700,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """Knowledge Graph Prompting (Wang et al., AAAI 2024).

    Its methods compared (Table 1), as far as the models given allow; graph statistics (Tables 2 and 4), graph quality
    (Figures 5 and 9), density (6 and 10), branching factor (7). Passages are sentences. Needs the extra plots.

      clew eval paper kgp --data hotpotqa=dev.json --data musique=dev.jsonl --limit 100 --out page
    """
    with figure_session(data, corpus, out, llm, encoder, "sentence", sentences, limit, seed, workers) as found:
        from clew.catalog.paper import write_kgp_page

        print_paths(write_kgp_page(found))
