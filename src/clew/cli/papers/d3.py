"""``clew eval paper d3``."""

from __future__ import annotations

from typing import Annotated

from clew.cli.analyse import Corpus, Data, Encoder, Limit, Seed, Sentences, Workers
from clew.cli.options import Llm
from clew.cli.papers.common import PageFolder, print_paths, repeated_option
from clew.cli.works import figure_session


def run_d3(
    data: Data,
    out: PageFolder,
    corpus: Corpus = "own",
    llm: Llm = None,
    encoder: Encoder = None,
    reranker: Annotated[
        list[str] | None,
        repeated_option(
            "--reranker", "NAME", "Such as monot5:castorini/monot5-base-msmarco-10k or cross-encoder:FOLDER"
        ),
    ] = None,
    summariser: Annotated[list[str] | None, repeated_option("--summariser", "NAME", "Another summariser")] = None,
    choose_with: Annotated[
        list[str] | None, repeated_option("--choose-with", "MODEL", "Another model that chooses")
    ] = None,
    answer_with: Annotated[
        list[str] | None, repeated_option("--answer-with", "MODEL", "Another model that answers")
    ] = None,
    sentences: Sentences = 700,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """Drilling Down into the Discourse Structure (D3: Nair et al., EMNLP 2023), over QASPER or HotpotQA-Doc.

    Answers by type, evidence and what finding it costs (Table 1), Self-Ask (Table 2), strategies, summarisers and
    models (Table 3), headings (Table 4), question categories (Table 5), document length and chunk size (Figures 3 and
    4). Needs the extra plots.

      clew eval paper d3 --data qasper=qasper-dev.json --limit 150 --llm openai:gpt-4o-mini --out page
    """
    with figure_session(data, corpus, out, llm, encoder, "paragraph", sentences, limit, seed, workers) as found:
        from clew.catalog.d3 import write_d3_page
        from clew.catalog.d3_plan import Variants

        varied = Variants(reranker or (), summariser or (), choose_with or (), answer_with or ())
        print_paths(write_d3_page(found, varied))
