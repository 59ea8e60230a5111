"""``clew eval paper semicot``."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.cli.analyse import Data, Encoder, Limit, Pool, Seed, Workers
from clew.cli.options import Llm
from clew.cli.papers.common import PageFolder, print_paths, repeated_option
from clew.cli.works import evaluation_session


def run_semicot(
    data: Data,
    out: PageFolder,
    corpus: Annotated[
        str | None,
        typer.Option(
            metavar="none|kb|FOLDER", help="What Bamboogle and FEVER are asked of.", show_default="none"
        ),
    ] = None,
    llm: Llm = None,
    encoder: Encoder = None,
    graph: Annotated[
        list[str] | None,
        repeated_option(
            "--graph",
            "FILE|URL|oracle",
            "A graph, as clew graph add reads or clew graph mount takes it; or the questions' gold triples",
        ),
    ] = None,
    retriever: Annotated[
        list[str] | None,
        repeated_option(
            "--retriever",
            "[DATA=]NAME",
            "What finds passages (default: search), for one data set where it is named; rounds of all are compared",
        ),
    ] = None,
    pool: Pool = None,
    samples: Annotated[int, typer.Option(min=1, metavar="N", help="Chains drawn for self-consistency.")] = 1,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """Semi-Structured Chain-of-Thought (Su et al., NAACL 2024), over 2WikiMultihopQA, the 2-hop questions of MuSiQue,
    Bamboogle and FEVER.

    Its methods compared (Tables 1, 2 and 10), sources and their orders (Table 3), an oracle graph (Table 7), error
    classes (Table 8), each with a language model; and without one too, single-round against multi-round retrieval
    (Table 6). What brings paragraphs is asked of all of its file, and of those that --pool names.

      clew eval paper semicot --data 2wikimultihopqa=dev.json --data musique=dev.jsonl --graph wikidata.nt.gz --graph
      oracle --limit 100 --llm openai:gpt-4o-mini --out page

      clew eval paper semicot --data musique=dev.jsonl --retriever search --retriever kgp --out page     no model
    """
    from clew.catalog.evaluation import CORPUS_SENTENCES
    from clew.catalog.semicot_plan import build_settings

    settings = build_settings(graph or (), retriever or (), pool or (), corpus, samples)
    with evaluation_session(out, llm, encoder, "paragraph", CORPUS_SENTENCES, seed, workers) as work:
        from clew.catalog.semicot import write_semicot_page

        print_paths(write_semicot_page([work(settings.load_questions(one, limit, seed)) for one in data], settings))
