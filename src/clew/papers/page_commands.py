"""The analyses of the KGP paper: ``clew eval graphs``, ``density`` and ``branching``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from clew.app.cli.evaluation_session import evaluation_session, figure_session
from clew.app.cli.options import Llm

if TYPE_CHECKING:
    from clew.evaluate.run_folder import Experiment
    from clew.papers.page import Section

Data: TypeAlias = Annotated[
    list[str],
    typer.Option(metavar="NAME=PATH", help="A data set: its form and its file; may be repeated."),
]
Graphs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--graph",
        "-g",
        metavar="NAME",
        help="keywords, mentions, knn, entities; may be repeated.",
        show_default="all that can be built",
    ),
]
Walk: TypeAlias = Annotated[
    str, typer.Option("--recipe", "-r", metavar="RECIPE", help="The walk: kgp-paper or kgp, with options.")
]
Corpus: TypeAlias = Annotated[
    str, typer.Option(metavar="question|pooled|own|kb|FOLDER", help="What is asked.")
]
Out: TypeAlias = Annotated[
    Path, typer.Option(metavar="DIR", help="Where results, tables and figures go, and are continued.")
]
Encoder: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Such as onnx:FOLDER, or none (default: clew:hops).", show_default=False
    ),
]
Passages: TypeAlias = Annotated[str, typer.Option(metavar="UNIT", help="sentence or paragraph.")]
Sentences: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="Size of a question's corpus with its negatives.")
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Draw so many questions.", show_default=False)
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Of drawing questions and negatives.")]
Workers: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="Questions asked at once; more than one spoils latencies.")
]
Pool: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--pool",
        metavar="NAME=PATH",
        help="A data set whose paragraphs are in the pooled corpus as well; may be repeated.",
        show_default=False,
    ),
]
GraphPlaces: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--graph",
        metavar="FILE|URL",
        help="A graph beside the corpus: a file, or a folder in STaRK's layout, as clew graph add reads it, or what "
        "clew graph mount takes; may be repeated.",
        show_default=False,
    ),
]
OUT = Path("analyses")


def graphs(
    data: Data,
    graph: Graphs = None,
    corpus: Corpus = "question",
    out: Out = OUT,
    encoder: Encoder = None,
    passages: Passages = "sentence",
    sentences: Sentences = 700,
    limit: Limit = None,
    seed: Seed = 0,
) -> None:
    """Draw how good graphs are against how dense they are, and count them (KGP paper, Figures 5 and 9, Tables 2
    and 4).

    Each graph is built over each question's corpus at several values of its knob: number of keywords, commonness
    of names, number of neighbours, threshold of entities. Needs the extra plots. Killed, it continues where it
    was when run again.

      clew eval graphs --data hotpotqa=dev.json --limit 100 --out figures
    """
    from clew.papers.kgp import graph_sections

    with figure_session(data, corpus, out, (), encoder, passages, sentences, limit, seed) as found:
        for work in found:
            for section in graph_sections(work, _graphs(work, graph)):
                _show(section)


def density(
    data: Data,
    graph: Graphs = None,
    recipe: Walk = "kgp-paper",
    corpus: Corpus = "question",
    out: Out = OUT,
    llm: Llm = None,
    encoder: Encoder = None,
    passages: Passages = "sentence",
    sentences: Sentences = 700,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """Draw what a walk finds, and how fast, against the density of its graph (KGP paper, Figures 6 and 10).

    The recipe is run with each graph at each value of its knob; its results are those of clew eval run, and
    clew eval report and errors read them. Latency is the seconds of choosing neighbours, so nothing else should
    run beside it. Needs the extra plots. Killed, it continues where it was when run again.

      clew eval density --data hotpotqa=dev.json --limit 100 --graph keywords --graph mentions
    """
    from clew.papers.kgp import density_section

    with figure_session(data, corpus, out, llm, encoder, passages, sentences, limit, seed, workers) as found:
        for work in found:
            _show(density_section(work, _graphs(work, graph), recipe))


def branching(
    data: Data,
    recipe: Walk = "kgp-paper",
    budget: Annotated[int, typer.Option(min=1, metavar="K", help="Paths that a walk may return.")] = 30,
    corpus: Corpus = "question",
    out: Out = OUT,
    llm: Llm = None,
    encoder: Encoder = None,
    passages: Passages = "sentence",
    sentences: Sentences = 700,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """Draw what a walk finds against its branching factor, 1 to 10, at a constant budget (KGP paper, Figure 7).

    The more neighbours each passage is continued by, the fewer seeds the budget is for: budget / branch. Needs
    the extra plots. Killed, it continues where it was when run again.

      clew eval branching --data 2wikimultihopqa=dev.json --limit 100
    """
    from clew.papers.kgp import branching_section

    with figure_session(data, corpus, out, llm, encoder, passages, sentences, limit, seed, workers) as found:
        for work in found:
            _show(branching_section(work, recipe, budget))


def _graphs(work: Experiment, named: Sequence[str] | None) -> list[str]:
    """Return the graphs that are asked for; if none, all that can be built, having said which cannot."""
    from clew.app.cli.output import print_note
    from clew.papers.kgp import find_buildable_graphs

    if named:
        return list(named)
    found, missing = find_buildable_graphs(work)
    for name, why in missing.items():
        print_note(f"{name} is skipped: {why}")
    return found


def _show(section: Section) -> None:
    for path in section.figures:
        print(path)
    print(f"\n{section.title}\n\n{section.table}")


PageFolder: TypeAlias = Annotated[Path, typer.Option(metavar="DIR", help="Where results and the page go.")]


def repeated_option(option: str, metavar: str, text: str) -> typer.models.OptionInfo:
    """Return an option that may be repeated."""
    made: typer.models.OptionInfo = typer.Option(
        option, metavar=metavar, help=f"{text}; may be repeated.", show_default=False
    )
    return made


def print_paths(paths: Sequence[Path]) -> None:
    """Print the files that were written, a line each."""
    for path in paths:
        print(path)


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
    with figure_session(
        data, corpus, out, llm, encoder, "sentence", sentences, limit, seed, workers
    ) as found:
        from clew.papers.kgp import write_kgp_page

        print_paths(write_kgp_page(found))


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
    summariser: Annotated[
        list[str] | None, repeated_option("--summariser", "NAME", "Another summariser")
    ] = None,
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
    with figure_session(
        data, corpus, out, llm, encoder, "paragraph", sentences, limit, seed, workers
    ) as found:
        from clew.papers.d3 import Variants, write_d3_page

        varied = Variants(reranker or (), summariser or (), choose_with or (), answer_with or ())
        print_paths(write_d3_page(found, varied))


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
    from clew.evaluate.setup import CORPUS_SENTENCES
    from clew.papers.semicot import build_settings

    settings = build_settings(graph or (), retriever or (), pool or (), corpus, samples)
    with evaluation_session(out, llm, encoder, "paragraph", CORPUS_SENTENCES, seed, workers) as work:
        from clew.papers.semicot import write_semicot_page

        print_paths(
            write_semicot_page([work(settings.load_questions(one, limit, seed)) for one in data], settings)
        )


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
    from clew.app.cli.evaluation_session import choose_encoder
    from clew.app.cli.models import announce_text_destination
    from clew.app.cli.progress import show_progress
    from clew.evaluate.setup import CORPUS_SENTENCES, load_questions
    from clew.papers.fourstep import build_settings, open_graph_bases

    chosen = choose_encoder(encoder)
    settings = build_settings(data, graph, retriever_encoder or (), samples, embed_all, chosen)
    what = "questions and texts of nodes"
    with evaluation_session(out, llm, encoder, "paragraph", CORPUS_SENTENCES, seed, workers, what) as work:
        from clew.knowledge_base import registry as catalog
        from clew.papers.fourstep import write_fourstep_page

        for name in settings.encoders:
            announce_text_destination(what, catalog.load_encoder(name))
        places = settings.graphs * (len(data) if len(settings.graphs) == 1 else 1)
        bases = open_graph_bases(places, out, show_progress)
        found = [
            work(load_questions(one, str(base), limit, seed)) for one, base in zip(data, bases, strict=True)
        ]
        print_paths(write_fourstep_page(found, settings))


# MERGED: What the commands of ``clew eval paper`` share.
# MERGED: ``clew eval paper kgp``.
# MERGED: ``clew eval paper d3``.
# MERGED: ``clew eval paper semicot``.
# MERGED: ``clew eval paper 4stepfocus``.
