"""``clew eval paper``: the experiments of a paper on one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from clew.cli.analyse import Data, Encoder, Limit, Pool, Seed, Sentences, Workers
from clew.cli.options import Llm
from clew.cli.works import benched, works

#: What each paper's questions are asked of unless something else is named, and the passages of that.
_SETTINGS = {"kgp": ("question", "sentence"), "d3": ("own", "paragraph"), "semicot": (None, "paragraph")}


def _several(option: str, metavar: str, text: str) -> typer.models.OptionInfo:
    """Return an option that may be repeated and that papers which it is not about ignore."""
    made: typer.models.OptionInfo = typer.Option(
        option, metavar=metavar, help=f"{text}; may be repeated.", show_default=False
    )
    return made


def paper(
    name: Annotated[str, typer.Argument(metavar="PAPER", help="kgp, d3 or semicot.")],
    data: Data,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results and the page go.")],
    corpus: Annotated[
        str | None,
        typer.Option(
            metavar="question|pooled|own|none|kb|FOLDER",
            help="What is asked; semicot: what Bamboogle and FEVER are asked of.",
            show_default="question for kgp, own for d3; none for semicot",
        ),
    ] = None,
    llm: Llm = None,
    encoder: Encoder = None,
    reranker: Annotated[
        list[str] | None,
        _several(
            "--reranker",
            "NAME",
            "d3: such as monot5:castorini/monot5-base-msmarco-10k or cross-encoder:FOLDER",
        ),
    ] = None,
    summariser: Annotated[
        list[str] | None, _several("--summariser", "NAME", "d3: another summariser")
    ] = None,
    choose_with: Annotated[
        list[str] | None, _several("--choose-with", "MODEL", "d3: another model that chooses")
    ] = None,
    answer_with: Annotated[
        list[str] | None, _several("--answer-with", "MODEL", "d3: another model that answers")
    ] = None,
    graph: Annotated[
        list[str] | None,
        _several(
            "--graph",
            "FILE|URL|oracle",
            "semicot: a graph, as clew graph add reads or clew graph mount takes it; or the questions' gold triples",
        ),
    ] = None,
    retriever: Annotated[
        list[str] | None,
        _several(
            "--retriever",
            "[DATA=]NAME",
            "semicot: what finds passages (default: search), for one data set where it is named; the rounds of all "
            "are compared",
        ),
    ] = None,
    pool: Pool = None,
    samples: Annotated[
        int, typer.Option(min=1, metavar="N", help="semicot: chains drawn for self-consistency.")
    ] = 1,
    sentences: Sentences = 700,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """Run a paper's experiments over data sets and write one page of them: page.md, page.html and the figures.

    Of the KGP paper: its methods compared (Table 1), as far as the models given allow; graph statistics (Tables 2
    and 4), graph quality (Figures 5 and 9), density (6 and 10), branching factor (7). Of the D3 paper, over QASPER
    or HotpotQA-Doc: answers by type, evidence and what finding it costs (Table 1), Self-Ask (Table 2), strategies,
    summarisers and models (Table 3), headings (Table 4), question categories (Table 5), document length and chunk
    size (Figures 3 and 4). Both need the extra plots.

    Of Semi-Structured Chain-of-Thought (semicot), over 2WikiMultihopQA, the 2-hop questions of MuSiQue, Bamboogle
    and FEVER: its methods compared (Tables 1, 2 and 10), sources and their orders (Table 3), an oracle graph (Table
    7), error classes (Table 8), each with a language model; and without one too, single-round against multi-round
    retrieval (Table 6). What brings paragraphs is asked of all of its file, and of those that --pool names.

    Killed, it continues where it was when run again.

      clew eval paper kgp --data hotpotqa=dev.json --data musique=dev.jsonl --limit 100 --out page

      clew eval paper d3 --data qasper=qasper-dev.json --limit 150 --llm openai:gpt-4o-mini --out page

      clew eval paper semicot --data 2wikimultihopqa=dev.json --data musique=dev.jsonl --graph wikidata.nt.gz --graph
      oracle --limit 100 --llm openai:gpt-4o-mini --out page

      clew eval paper semicot --data musique=dev.jsonl --retriever search --retriever kgp --out page     no model
    """
    from clew.errors import unknown

    if name not in _SETTINGS:
        raise unknown("paper", name, _SETTINGS)
    usual, passages = _SETTINGS[name]
    if name == "semicot":
        from clew.catalog.semicot_plan import settings_of

        settings = settings_of(graph or (), retriever or (), pool or (), corpus, samples)
        with benched(out, llm, encoder, passages, sentences, seed, workers) as work:
            from clew.catalog.semicot import semicot_page

            written: Sequence[Path] = semicot_page(
                [work(settings.asked(one, limit, seed)) for one in data], settings
            )
            _print(written)
        return
    with works(
        data, corpus or usual or "", out, llm, encoder, passages, sentences, limit, seed, workers
    ) as found:
        if name == "kgp":
            from clew.catalog.paper import kgp_page

            written = kgp_page(found)
        else:
            from clew.catalog.d3 import d3_page
            from clew.catalog.d3_plan import Variants

            varied = Variants(reranker or (), summariser or (), choose_with or (), answer_with or ())
            written = d3_page(found, varied)
        _print(written)


def _print(paths: Sequence[Path]) -> None:
    for path in paths:
        print(path)
