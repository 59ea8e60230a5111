"""The analyses of the KGP paper: ``clew eval graphs``, ``density``, ``branching`` and ``paper``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from clew.cli.group import INTERRUPTED
from clew.cli.options import Llm

if TYPE_CHECKING:
    from clew.catalog.analysis import Work
    from clew.evaluate.page import Section

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
    from clew.catalog.sections import graph_sections

    with _works(data, corpus, out, (), encoder, passages, sentences, limit, seed) as works:
        for work in works:
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
    from clew.catalog.sections import density_section

    with _works(data, corpus, out, llm, encoder, passages, sentences, limit, seed, workers) as works:
        for work in works:
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
    from clew.catalog.sections import branching_section

    with _works(data, corpus, out, llm, encoder, passages, sentences, limit, seed, workers) as works:
        for work in works:
            _show(branching_section(work, recipe, budget))


def paper(
    name: Annotated[str, typer.Argument(metavar="PAPER", help="kgp or d3.")],
    data: Data,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results and the page go.")],
    corpus: Annotated[
        str | None,
        typer.Option(
            metavar="question|pooled|own|kb|FOLDER",
            help="What is asked.",
            show_default="question for kgp, own for d3",
        ),
    ] = None,
    llm: Llm = None,
    encoder: Encoder = None,
    reranker: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="d3: such as monot5:castorini/monot5-base-msmarco-10k or cross-encoder:FOLDER; may be repeated.",
        ),
    ] = None,
    summariser: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="d3: another summariser; may be repeated.")
    ] = None,
    choose_with: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help="d3: another model that chooses; may be repeated."),
    ] = None,
    answer_with: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help="d3: another model that answers; may be repeated."),
    ] = None,
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
    size (Figures 3 and 4). Needs the extra plots. Killed, it continues where it was when run again.

      clew eval paper kgp --data hotpotqa=dev.json --data musique=dev.jsonl --limit 100 --out page

      clew eval paper d3 --data qasper=qasper-dev.json --limit 150 --llm openai:gpt-4o-mini --out page
    """
    from clew.errors import unknown

    if name not in ("kgp", "d3"):
        raise unknown("paper", name, ("kgp", "d3"))
    passages, usual = ("sentence", "question") if name == "kgp" else ("paragraph", "own")
    asked = corpus or usual
    with _works(data, asked, out, llm, encoder, passages, sentences, limit, seed, workers) as works:
        if name == "kgp":
            from clew.catalog.paper import kgp_page

            written = kgp_page(works)
        else:
            from clew.catalog.d3 import d3_page
            from clew.catalog.d3_plan import Variants

            varied = Variants(reranker or (), summariser or (), choose_with or (), answer_with or ())
            written = d3_page(works, varied)
        for path in written:
            print(path)


@contextmanager
def _works(
    data: Sequence[str],
    corpus: str,
    out: Path,
    llm: Sequence[str] | None,
    encoder: str | None,
    passages: str,
    sentences: int,
    limit: int | None,
    seed: int,
    workers: int = 1,
) -> Iterator[list[Work]]:
    """Give what is analysed; an interrupt says that it can be continued. ``llm`` is None for the usual one, ``()``
    for none."""
    from clew import catalog
    from clew.catalog.analysis import Work
    from clew.catalog.evaluation import Bench, asked
    from clew.cli.output import note
    from clew.cli.progress import told
    from clew.cli.remote import configured_model, model_name, say_where_texts_go
    from clew.cli.stages import chosen_encoder, foreseen, unit
    from clew.evaluate.drawing import pyplot

    # What a figure lacks is said before hours of measuring, not after them.
    pyplot()
    model = None if llm == () else configured_model(llm, charged=True)
    name = chosen_encoder(encoder)
    found = catalog.encoder(name, remember=True) if name else None
    bench = Bench(
        model, found, unit(passages), sentences, seed, model_name(llm) or "" if model else "", name or ""
    )
    say_where_texts_go("questions and passages", model)
    say_where_texts_go("questions and passages", found)
    try:
        yield [Work(asked(one, corpus, limit, seed), bench, out, workers, told, foreseen) for one in data]
    except KeyboardInterrupt:
        note("clew: stopped; what was measured is kept. To continue, run the same command again.")
        raise typer.Exit(INTERRUPTED) from None


def _graphs(work: Work, named: Sequence[str] | None) -> list[str]:
    """Return the graphs that are asked for; if none, all that can be built, having said which cannot."""
    from clew.catalog.analysis import possible_graphs
    from clew.cli.output import note

    if named:
        return list(named)
    found, missing = possible_graphs(work)
    for name, why in missing.items():
        note(f"{name} is skipped: {why}")
    return found


def _show(section: Section) -> None:
    for path in section.figures:
        print(path)
    print(f"\n{section.title}\n\n{section.table}")
