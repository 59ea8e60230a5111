"""``clew eval``: methods compared on data sets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.app.cli.command_group import EXIT_INTERRUPTED, CommandGroup
from clew.app.cli.options import Json, Llm
from clew.app.cli.progress import show_progress
from clew.papers import commands as papers

if TYPE_CHECKING:
    from clew.evaluate.report import Table
    from clew.evaluate.run_folder import RunFolder

METRICS = ("EM", "F1", "accuracy", "recall@5", "all-gold@5", "SF-EM", "MRR", "seconds", "calls")

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Compare methods on data sets: run them, and write tables that say what was compared.",
)

Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="What run wrote: --out, or a folder in it.")
]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", "-m", metavar="NAME", help=f"Such as {', '.join(METRICS)}; may be repeated."),
]


@app.command("run")
def run(
    data: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=PATH",
            help="A data set: its form and its file (of STaRK with a split: stark_qa.csv#test); may be repeated.",
        ),
    ],
    recipe: Annotated[
        list[str] | None, typer.Option("--recipe", "-r", metavar="RECIPE", help="May be repeated.")
    ] = None,
    corpus: Annotated[
        str, typer.Option(metavar="question|pooled|own|none|kb|FOLDER", help="What is asked: see below.")
    ] = "pooled",
    pool: papers.Pool = None,
    graph: papers.GraphPlaces = None,
    triples: Annotated[
        bool, typer.Option("--gold-triples", help="Ask with the triples that MetaQA's types spell.")
    ] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results go, and are continued.")] = Path(
        "runs"
    ),
    llm: Llm = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Such as onnx:FOLDER, or none (default: clew:hops).", show_default=False
        ),
    ] = None,
    passages: Annotated[str, typer.Option(metavar="UNIT", help="paragraph or sentence.")] = "paragraph",
    sentences: Annotated[
        int, typer.Option(min=1, metavar="N", help="Size of a question's corpus with its negatives.")
    ] = 700,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Draw so many questions.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of drawing questions and negatives.")] = 0,
    workers: Annotated[int, typer.Option(min=1, metavar="N", help="Questions asked at once.")] = 1,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Ask the model what it has answered.")] = False,
) -> None:
    """Ask every question by every recipe; one JSON line for each goes to DIR.

    The corpus is that of each question with others drawn at random (question), of all questions together
    (pooled), the same with each question asked of its own documents alone (own), your knowledge base (kb) or
    another one; or nothing (none), for recipes that answer from memory or the web. Graphs stand beside a corpus that
    is pooled or none; a base of your own brings its own. Killed, it continues where it was when run again; a question
    that failed is recorded as an error, never as a wrong answer, and asked again.

      clew eval run --data hotpotqa=dev.json -r kgp -r "read(retriever=bm25)" --limit 200 --out runs

      clew eval run --data 2wikimultihopqa=dev.json -r chain --graph wikidata.nt.gz --limit 200 --out runs

      clew eval run --data stark=stark_qa.csv#test-0.1 --corpus none --graph prime/processed -r
      "read(retriever=vss, k=20)" --out runs     a graph alone: its nodes are the answers

      clew eval report runs
    """
    from clew.app.cli.evaluation_session import choose_encoder, parse_unit, print_estimate
    from clew.app.cli.models import (
        announce_search_destination,
        announce_text_destination,
        configured_model,
        describe_encoder_input,
        model_name,
    )
    from clew.app.cli.output import print_note
    from clew.evaluate.run_folder import evaluate_recipes
    from clew.evaluate.setup import EvaluationSettings, load_questions
    from clew.knowledge_base import registry as catalog

    model = configured_model(llm, cache=not no_cache, charged=True)
    name = choose_encoder(encoder)
    found = catalog.load_encoder(name, remember=True) if name else None
    bench = EvaluationSettings(
        model,
        found,
        parse_unit(passages),
        sentences,
        seed,
        model_name(llm) or "",
        name or "",
        tuple(graph or ()),
    )
    recipes = recipe or ["default"]
    announce_text_destination("questions and passages", model)
    announce_text_destination(describe_encoder_input("questions and passages", recipes), found)
    announce_search_destination("questions and the queries made of them", recipes)

    try:
        for one in data:
            questions = load_questions(one, corpus, limit, seed, pool or (), triples)
            calls = "no model calls" if model is None else f"each by {model.name}"
            print_note(
                f"{questions.title}: {len(questions.examples):,} questions x {len(recipes)} recipes, {calls}"
            )
            folder = evaluate_recipes(
                out,
                questions,
                recipes,
                bench,
                workers=workers,
                progress=show_progress,
                report_estimate=print_estimate,
            )
            print(folder.path)
    except KeyboardInterrupt:
        print_note("clew: stopped; what was answered is kept. To continue, run the same command again.")
        raise typer.Exit(EXIT_INTERRUPTED) from None


@app.command("grade")
def grade(
    folders: Folders,
    llm: Llm = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Ask again also what the model answered without a verdict.")
    ] = False,
) -> None:
    """Let a language model say of each answer whether it is right (Acc; the KGP paper's Listing 5).

    Grades are kept beside the answers; what has one is not asked again.

      clew eval grade runs --llm openai:gpt-4o-mini

      clew eval report runs --metric Acc --metric F1
    """
    from clew.app.cli.models import announce_text_destination, configured_model
    from clew.app.cli.output import format_cost, print_note
    from clew.core.errors import UsageError
    from clew.evaluate.run_folder import grade_folder

    model = configured_model(llm, cache=not no_cache)
    if model is None:
        raise UsageError("grading needs a language model and none is set", "Name one: --llm ollama:llama3.1")
    announce_text_destination("questions and answers", model)
    for folder in _folders(folders):
        spent = grade_folder(folder, model, show_progress)
        print_note(f"{folder.path}: {format_cost(spent) or 'nothing left to grade'}")


@app.command("report")
def report(
    folders: Folders,
    metrics: Metrics = None,
    baseline: Annotated[
        str, typer.Option(metavar="RECIPE", help="Show differences to this recipe.", show_default=False)
    ] = "",
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORM",
            help="terminal, markdown, latex, csv or json (default: terminal, or markdown into a file or pipe).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the table of runs: means with 95 % bootstrap intervals, paired differences, mean ranks.

    Below it stands what was compared: data, base, models, versions.

    clew eval report runs --metric recall@5 --metric F1 --baseline "read(retriever=bm25)"
    """
    from clew.core.errors import unknown_name_error
    from clew.evaluate.report import build_table, format_table

    runs = [run for folder in _folders(folders) for run in folder.load_runs()]
    made = build_table(runs, metrics or METRICS, baseline)
    match form or ("terminal" if sys.stdout.isatty() else "markdown"):
        case "terminal":
            _show(made)
        case ("markdown" | "latex" | "csv" | "json") as known:
            print(format_table(made, known))
        case other:
            raise unknown_name_error("format", other, ("terminal", "markdown", "latex", "csv", "json"))


def _show(made: Table) -> None:
    """Print a table for a person, one for each data set."""
    from rich.table import Table as Grid

    from clew.app.cli.output import make_console
    from clew.evaluate.report import describe_conditions, table_rows

    header, rows = table_rows(made)
    for dataset, said in describe_conditions(made).items():
        grid = Grid(title=dataset, caption=said, title_justify="left", caption_justify="left")
        for name in header[1:]:
            grid.add_column(
                name,
                justify="left" if name == "recipe" else "right",
                overflow="fold",
                no_wrap=name != "recipe",
            )
        for row in rows:
            if row[0] == dataset:
                grid.add_row(*row[1:])
        make_console().print(grid)


@app.command("compare")
def compare(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of one data set.")],
    one: Annotated[str, typer.Argument(metavar="RECIPE")],
    other: Annotated[str, typer.Argument(metavar="RECIPE")],
    by: Annotated[str, typer.Option("--metric", "-m", metavar="NAME")] = "recall@5",
    as_json: Json = False,
) -> None:
    """Show the questions on which two recipes differ, the largest difference first.

    clew eval compare runs/hotpotqa-pooled kgp "read(retriever=bm25)" --metric F1
    """
    from clew.app.cli.output import print_json
    from clew.core.errors import unknown_name_error
    from clew.evaluate.report import compare_runs

    (only,) = _folders([folder], most=1)
    runs = {run.recipe: run for run in only.load_runs()}
    for name in (one, other):
        if name not in runs:
            raise unknown_name_error("recipe in this run", name, runs)
    rows = compare_runs(runs[one], runs[other], by)
    if as_json:
        print_json([{"id": name, "one": left, "other": right} for name, left, right in rows])
        return
    for name, left, right in rows:
        example = runs[one].results[name].example
        print(f"{left:.2f} {right:.2f}  {name}  {example.question}")
        print(f"      gold: {'; '.join(example.answers[:3])}")
        for run in (runs[one], runs[other]):
            print(f"      {run.recipe}: {' '.join(run.results[name].answer.split())[:160]}")


@app.command("errors")
def errors(folders: Folders, as_json: Json = False) -> None:
    """Sort the questions that were not answered exactly by why: see below.

    error: it failed. not retrieved: no gold evidence came back. chain wrong: some did, the rest did not.
    abstained, misread: all came back. alias: the answer holds the gold one, or nearly is it.

    clew eval errors runs
    """
    from collections import Counter

    from clew.app.cli.output import print_json
    from clew.evaluate.report import classify_failures

    sorted_ = [(run, classify_failures(run)) for folder in _folders(folders) for run in folder.load_runs()]
    if as_json:
        print_json([{"dataset": r.dataset, "recipe": r.recipe, "failures": kinds} for r, kinds in sorted_])
        return
    for run, kinds in sorted_:
        counts = Counter(kinds.values())
        said = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
        print(
            f"{run.dataset}  {run.recipe}: {len(run.results) + len(run.errors)} questions; {said or 'none'}"
        )
        for name, problem in run.errors.items():
            print(f"  error  {name}: {problem}")


def _folders(paths: list[Path], most: int | None = None) -> list[RunFolder]:
    from clew.core.errors import UsageError
    from clew.evaluate.run_folder import FACTS_FILE, RunFolder

    found = [RunFolder(one.parent) for path in paths for one in sorted(path.rglob(FACTS_FILE))]
    if not found or (most is not None and len(found) > most):
        raise UsageError(
            f"{'no evaluation' if not found else 'several evaluations'} in {paths[0]}",
            "Name the folder of one: " + ", ".join(str(one.path) for one in found[:3])
            if found
            else "Make one: clew eval run --help",
        )
    return found


app.command("graphs")(papers.graphs)
app.command("density")(papers.density)
app.command("branching")(papers.branching)
app.add_typer(papers.app, name="paper")
