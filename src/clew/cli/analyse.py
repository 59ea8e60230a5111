"""The analyses of the KGP paper: ``clew eval graphs``, ``density`` and ``branching``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from clew.cli.options import Llm
from clew.cli.works import figure_session

if TYPE_CHECKING:
    from clew.catalog.analysis import Experiment
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
    from clew.catalog.sections import graph_sections

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
    from clew.catalog.sections import density_section

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
    from clew.catalog.sections import branching_section

    with figure_session(data, corpus, out, llm, encoder, passages, sentences, limit, seed, workers) as found:
        for work in found:
            _show(branching_section(work, recipe, budget))


def _graphs(work: Experiment, named: Sequence[str] | None) -> list[str]:
    """Return the graphs that are asked for; if none, all that can be built, having said which cannot."""
    from clew.catalog.analysis import find_buildable_graphs
    from clew.cli.output import print_note

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
