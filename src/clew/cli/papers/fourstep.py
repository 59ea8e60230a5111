"""``clew eval paper 4stepfocus``."""

from __future__ import annotations

from typing import Annotated

import typer

from clew.cli.analyse import Data, Encoder, Limit, Seed, Workers
from clew.cli.options import Llm
from clew.cli.papers.common import PageFolder, print_paths, repeated_option
from clew.cli.works import evaluation_session


def run_fourstep(
    data: Data,
    graph: Annotated[
        list[str],
        typer.Option(
            "--graph",
            metavar="PLACE",
            help="What is asked: a folder in STaRK's layout, a file as clew graph add reads it, or a knowledge base "
            "with one graph; one for all data sets, or one for each in their order.",
        ),
    ],
    out: PageFolder,
    llm: Llm = None,
    encoder: Encoder = None,
    retriever_encoder: Annotated[
        list[str] | None,
        repeated_option(
            "--retriever-encoder",
            "NAME",
            "A trained dense retriever: onnx:FOLDER that clew train encoder made",
        ),
    ] = None,
    embed_all: Annotated[
        bool,
        typer.Option(
            "--embed-all",
            help="First make the vector of every node that may answer, of each encoder that is named.",
        ),
    ] = False,
    samples: Annotated[int, typer.Option(min=1, metavar="N", help="Drafts of a question's triples.")] = 1,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """4StepFocus (Boer et al., 2024), over STaRK's questions or MetaQA's and a graph.

    Its methods compared (Table 1), as far as the models given allow: BM25, VSS, Multi-VSS, a trained dense retriever,
    VSS with a reranker, 4StepFocus; typed against any relations, listwise and no reranking; what became of the
    triples, error classes; of MetaQA, oracle triples, with which no model is asked. Published figures are in a table
    of their own. The graph is added once to a base in DIR, and its vectors are kept there.

      clew eval paper 4stepfocus --data stark=prime/stark_qa/stark_qa.csv#test-0.1 --graph prime/processed --llm
      openai:gpt-4o --out page

      clew eval paper 4stepfocus --data metaqa=dev_2hop.jsonl --graph films.tsv --out page     no model
    """
    from clew.catalog.evaluation import CORPUS_SENTENCES, load_questions
    from clew.catalog.fourstep_bases import open_graph_bases
    from clew.catalog.fourstep_plan import build_settings
    from clew.cli.progress import show_progress
    from clew.cli.remote import announce_text_destination
    from clew.cli.stages import choose_encoder

    chosen = choose_encoder(encoder)
    settings = build_settings(data, graph, retriever_encoder or (), samples, embed_all, chosen)
    what = "questions and texts of nodes"
    with evaluation_session(out, llm, encoder, "paragraph", CORPUS_SENTENCES, seed, workers, what) as work:
        from clew import catalog
        from clew.catalog.fourstep import write_fourstep_page

        for name in settings.encoders:
            announce_text_destination(what, catalog.load_encoder(name))
        places = settings.graphs * (len(data) if len(settings.graphs) == 1 else 1)
        bases = open_graph_bases(places, out, show_progress)
        found = [work(load_questions(one, str(base), limit, seed)) for one, base in zip(data, bases, strict=True)]
        print_paths(write_fourstep_page(found, settings))
