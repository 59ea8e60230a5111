"""``clew eval``: methods compared on data sets.

The first part is what its commands share with those of the papers: models and settings of a run, and how an
interrupted run ends.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from clew.app.cli.command_group import CommandGroup, interruptible
from clew.app.cli.options import (
    Json,
    Llm,
    NoCache,
    On,
    Record,
    Where,
    announce_search_destination,
    announce_text_destination,
    cluster_session,
    configured_model,
    describe_encoder_input,
    model_name,
    option,
)
from clew.app.cli.output import (
    format_cost,
    make_console,
    print_json,
    print_line,
    print_note,
    print_text,
    show_progress,
)
from clew.core.config import default_encoder
from clew.core.errors import UsageError, unknown_name_error

if TYPE_CHECKING:
    from clew.core.types import Usage
    from clew.evaluate.report import Table
    from clew.evaluate.run_folder import Experiment, RunFolder
    from clew.evaluate.setup import EvaluationSettings, QuestionSet
    from clew.parse.documents.builder import PassageUnit


#: Options of commands that build a corpus for each question.
DocumentCount: TypeAlias = Annotated[
    int | None,
    option(
        "N",
        "The corpus of a question (--corpus question): its gold documents and random ones, N in all.",
        default="by --sentences",
        min=1,
    ),
]
Articles: TypeAlias = Annotated[
    Path | None,
    option("FILE", "Whole articles as JSON lines with title and text; --documents draws from them too."),
]
SecondEncoder: TypeAlias = Annotated[
    str | None, option("NAME", "A second encoder, for the graph knn(vectors=NAME): KNN-ST beside KNN-MDR.")
]


def parse_unit(passages: str) -> PassageUnit:
    """Return the unit of passages that ``--passages`` names. Raises UsageError."""
    if passages == "sentence":
        return "sentence"
    if passages != "paragraph":
        raise UsageError(f"no passages of '{passages}'", "Known: paragraph, sentence")
    return "paragraph"


def choose_encoder(option: str | None) -> str | None:
    """Return the encoder that ``--encoder`` names, by default that of new bases; None for none."""
    name = option or default_encoder()
    return None if name == "none" else name


def print_estimate(recipe: str, usage: Usage) -> None:
    """Print what a recipe will cost at most."""
    cost = format_cost(usage) or "no model calls"
    print_note(f"{recipe}: about {cost}, if every reply is as long as it may get")


def evaluation_settings(
    llm: Sequence[str] | None,
    encoder: str | None,
    passages: str,
    sentences: int,
    seed: int,
    graphs: Sequence[str] = (),
    cache: bool = True,
    documents: int | None = None,
    articles: Path | None = None,
    beside: str | None = None,
    record: Path | None = None,
) -> EvaluationSettings:
    """Return the settings of a run with its models loaded. ``llm`` is None for the configured model, ``()`` for none.

    ``record`` is a file for all prompts and replies. Raises UsageError, MissingExtra.
    """
    from clew.evaluate.setup import EvaluationSettings
    from clew.knowledge_base.registry import load_encoder

    model = None if llm == () else configured_model(llm, cache=cache, charged=True, record=record)
    encoder_name = choose_encoder(encoder)
    return EvaluationSettings(
        model,
        load_encoder(encoder_name, remember=True) if encoder_name else None,
        parse_unit(passages),
        sentences,
        seed,
        (model_name(llm) or "") if model else "",
        encoder_name or "",
        tuple(graphs),
        documents,
        articles,
        load_encoder(beside, remember=True) if beside else None,
        beside or "",
    )


@contextmanager
def evaluation_session(
    out: Path,
    llm: Sequence[str] | None,
    encoder: str | None,
    passages: str,
    sentences: int,
    seed: int,
    workers: int,
    what: str = "questions and passages",
    documents: int | None = None,
    articles: Path | None = None,
    beside: str | None = None,
) -> Iterator[Callable[[QuestionSet], Experiment]]:
    """Yield a factory of experiments with the configured models; ``what`` says what the models are sent.

    ``llm`` is None for the configured model, ``()`` for none. An interrupt prints how to continue and exits 130.
    Raises UsageError, MissingExtra.
    """
    from clew.evaluate.run_folder import Experiment

    settings = evaluation_settings(
        llm, encoder, passages, sentences, seed, documents=documents, articles=articles, beside=beside
    )
    for model in (settings.llm, settings.encoder, settings.beside):
        announce_text_destination(what, model)
    with interruptible("what was measured is kept. To continue, run the same command again."):
        yield lambda questions: Experiment(questions, settings, out, workers, show_progress, print_estimate)


METRICS = ("EM", "F1", "accuracy", "recall@5", "all-gold@5", "SF-EM", "MRR", "seconds", "calls", "tokens")

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Compare methods on data sets: run them, and print tables with confidence intervals.",
)

Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR...", help="Folders of results: the --out of clew eval run, or one inside it."
    ),
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
            help="A data set: its name and its file (STaRK with a split: stark_qa.csv#test); may be repeated.",
        ),
    ],
    recipe: Annotated[
        list[str] | None, option("RECIPE", "A recipe to compare; may be repeated.", "--recipe", "-r")
    ] = None,
    corpus: Annotated[
        str,
        typer.Option(
            metavar="question|pooled|own|none|kb|FOLDER", help="The documents to search; see below."
        ),
    ] = "pooled",
    pool: Annotated[
        list[str] | None,
        option(
            "NAME=PATH",
            "Another data set whose paragraphs join the pooled corpus; may be repeated.",
            "--pool",
        ),
    ] = None,
    graph: Annotated[
        list[str] | None,
        option(
            "FILE|URL",
            "A graph beside the corpus: a file or folder as clew graph add reads it, or an endpoint as "
            "clew graph mount takes it; may be repeated.",
            "--graph",
        ),
    ] = None,
    triples: Annotated[
        bool,
        typer.Option("--gold-triples", help="Ask with the triples that MetaQA's question types spell out."),
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for results; an interrupted run continues there.")
    ] = Path("runs"),
    llm: Llm = None,
    encoder: Annotated[
        str | None, option("NAME", "Such as onnx:FOLDER, or none (default: clew:hops).")
    ] = None,
    passages: Annotated[
        str, typer.Option(metavar="UNIT", help="The unit of search: paragraph or sentence.")
    ] = "paragraph",
    sentences: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Size of a question's corpus, with negatives (--corpus question)."
        ),
    ] = 700,
    documents: DocumentCount = None,
    articles: Articles = None,
    beside: SecondEncoder = None,
    where: Where = "",
    limit: Annotated[int | None, option("N", "Sample N questions.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Seed for sampling questions and negatives.")] = 0,
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Answer N questions at the same time.")
    ] = 1,
    on: On = None,
    record: Record = None,
    no_cache: NoCache = False,
) -> None:
    """Answer every question of a data set with every recipe.

    Results go to DIR, one JSON line per question. An interrupted run continues where it stopped. A question that
    fails is recorded as an error, never as a wrong answer, and is asked again next time.

    --corpus chooses the documents: those of each question with randomly drawn others (question), those of all
    questions together (pooled), the same but each question searches only its own (own), your knowledge base (kb) or
    another one (FOLDER), or nothing (none), for recipes that answer from memory or the web. Graphs can be added to
    a corpus that is pooled or none; a knowledge base brings its own. With a language model there is always a control:
    read, one prompt over the first ten passages of the same search.

      clew eval run --data hotpotqa=dev.json -r kgp -r "read(retriever=bm25)" --limit 200 --out runs

      clew eval report runs

      clew eval run --on local --data hotpotqa=dev.json -r kgp --out runs      a task for each question; clew cluster

      clew eval run --data 2wikimultihopqa=dev.json -r chain --graph wikidata.nt.gz --limit 200 --out runs

      clew eval run --data stark=stark_qa.csv#test-0.1 --corpus none --graph prime/processed -r
      "read(retriever=vss, k=20)" --out runs     a graph alone: its nodes are the answers
    """
    from clew.evaluate.run_folder import evaluate_recipes
    from clew.evaluate.setup import load_questions

    if on is not None and record is not None:
        raise UsageError("--on and --record together", "Record a run on this machine")
    settings = evaluation_settings(
        llm,
        encoder,
        passages,
        sentences,
        seed,
        graph or (),
        cache=not no_cache,
        documents=documents,
        articles=articles,
        beside=beside,
        record=record,
    )
    recipes = recipe or ["default"]
    # What a method adds is seen beside one prompt over the first passages of the same search.
    if settings.llm is not None and corpus != "none" and not any(name.startswith("read") for name in recipes):
        recipes = [*recipes, "read"]
    announce_text_destination("questions and passages", settings.llm)
    for model in (settings.encoder, settings.beside):
        announce_text_destination(describe_encoder_input("questions and passages", recipes), model)
    announce_search_destination("questions and the queries made of them", recipes)
    calls = "no model calls" if settings.llm is None else f"each by {settings.llm.name}"
    with (
        interruptible("what was answered is kept. To continue, run the same command again."),
        cluster_session(on, workers if workers > 1 else None) as cluster,
    ):
        cluster_run = None
        if cluster is not None:
            from clew.evaluate.cluster import ClusterRun

            cluster_run = ClusterRun(cluster, cached=not no_cache)
        for name in data:
            questions = load_questions(name, corpus, limit, seed, pool or (), triples, where)
            size = f"{len(questions.examples):,} questions x {len(recipes)} recipes"
            print_note(f"{questions.title}: {size}, {calls}")
            folder = evaluate_recipes(
                out,
                questions,
                recipes,
                settings,
                workers=workers,
                progress=show_progress,
                report_estimate=print_estimate,
                cluster=cluster_run,
            )
            print_line(folder.path)


@app.command("grade")
def grade(
    folders: Folders,
    llm: Llm = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Ask again where an earlier reply held no verdict.")
    ] = False,
) -> None:
    """Let a language model judge whether each answer is right (metric Acc; Listing 5 of the KGP paper).

    Grades are stored beside the answers. An answer that has a grade is not judged again.

      clew eval grade runs --llm openai:gpt-4o-mini

      clew eval report runs --metric Acc --metric F1
    """
    from clew.evaluate.run_folder import grade_folder

    model = configured_model(llm, cache=not no_cache)
    if model is None:
        raise UsageError("grading needs a language model and none is set", "Name one: --llm ollama:llama3.1")
    announce_text_destination("questions and answers", model)
    for folder in _run_folders(folders):
        usage = grade_folder(folder, model, show_progress)
        print_note(f"{folder.path}: {format_cost(usage) or 'nothing left to grade'}")


@app.command("report")
def report(
    folders: Folders,
    metrics: Metrics = None,
    baseline: Annotated[str, option("RECIPE", "Show differences from this recipe.")] = "",
    form: Annotated[
        str | None,
        option(
            "FORM",
            "terminal, markdown, latex, csv or json (default: terminal, or markdown into a file or pipe).",
            "--format",
        ),
    ] = None,
) -> None:
    """Print the results as a table: means with 95 % bootstrap intervals, paired differences, mean ranks.

    Below the table stand the conditions: data, corpus, models, versions.

    clew eval report runs --metric recall@5 --metric F1 --baseline "read(retriever=bm25)"
    """
    from clew.evaluate.report import build_table, format_table

    runs = [run for folder in _run_folders(folders) for run in folder.load_runs()]
    table = build_table(runs, metrics or METRICS, baseline)
    match form or ("terminal" if sys.stdout.isatty() else "markdown"):
        case "terminal":
            _print_table(table)
        case ("markdown" | "latex" | "csv" | "json") as known:
            print_text(format_table(table, known))
        case other:
            raise unknown_name_error("format", other, ("terminal", "markdown", "latex", "csv", "json"))


def _print_table(table: Table) -> None:
    """Print a table on a terminal, a grid for each data set."""
    from rich.table import Table as Grid

    from clew.evaluate.report import describe_conditions, table_rows

    header, rows = table_rows(table)
    for dataset, conditions in describe_conditions(table).items():
        grid = Grid(title=dataset, caption=conditions, title_justify="left", caption_justify="left")
        for name in header[1:]:
            text = name == "recipe"
            grid.add_column(name, justify="left" if text else "right", overflow="fold", no_wrap=not text)
        for row in rows:
            if row[0] == dataset:
                grid.add_row(*row[1:])
        make_console().print(grid)


@app.command("compare")
def compare(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of one data set.")],
    first: Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe of the run.")],
    second: Annotated[str, typer.Argument(metavar="RECIPE", help="Another recipe of the run.")],
    by: Annotated[
        str, typer.Option("--metric", "-m", metavar="NAME", help="The metric to compare by.")
    ] = "recall@5",
    as_json: Json = False,
) -> None:
    """Show the questions on which two recipes differ, the largest difference first.

    clew eval compare runs/hotpotqa-pooled kgp "read(retriever=bm25)" --metric F1
    """
    from clew.evaluate.report import compare_runs

    (run_folder,) = _run_folders([folder], limit=1)
    runs = {run.recipe: run for run in run_folder.load_runs()}
    for name in (first, second):
        if name not in runs:
            raise unknown_name_error("recipe in this run", name, runs)
    rows = compare_runs(runs[first], runs[second], by)
    if as_json:
        print_json([{"id": id, "one": left, "other": right} for id, left, right in rows])
        return
    for id, left, right in rows:
        example = runs[first].results[id].example
        print_line(f"{left:.2f} {right:.2f}  {id}  {example.question}")
        print_line(f"      gold: {'; '.join(example.answers[:3])}")
        for run in (runs[first], runs[second]):
            print_line(f"      {run.recipe}: {' '.join(run.results[id].answer.split())[:160]}")


@app.command("errors")
def errors(folders: Folders, as_json: Json = False) -> None:
    """Count why questions were not answered exactly.

    The kinds: error (the question failed), not retrieved (no gold evidence was found), chain wrong (only a part of
    it), abstained and misread (all of it), alias (the answer contains the gold answer, or nearly equals it).

    clew eval errors runs
    """
    from clew.evaluate.report import classify_failures

    runs = [run for folder in _run_folders(folders) for run in folder.load_runs()]
    failures = [(run, classify_failures(run)) for run in runs]
    if as_json:
        print_json(
            [{"dataset": run.dataset, "recipe": run.recipe, "failures": kinds} for run, kinds in failures]
        )
        return
    for run, kinds in failures:
        counts = Counter(kinds.values()).most_common()
        summary = ", ".join(f"{kind} {count}" for kind, count in counts) or "none"
        total = len(run.results) + len(run.errors)
        print_line(f"{run.dataset}  {run.recipe}: {total} questions; {summary}")
        for id, problem in run.errors.items():
            print_line(f"  error  {id}: {problem}")


def _run_folders(paths: Sequence[Path], limit: int | None = None) -> list[RunFolder]:
    """Return the folders of results at or below ``paths``. Raises UsageError for none, or more than ``limit``."""
    from clew.evaluate.run_folder import FACTS_FILE, RunFolder

    folders = [RunFolder(facts.parent) for path in paths for facts in sorted(path.rglob(FACTS_FILE))]
    if not folders:
        raise UsageError(f"no evaluation in {paths[0]}", "Make one: clew eval run --help")
    if limit is not None and len(folders) > limit:
        names = ", ".join(str(folder.path) for folder in folders[:3])
        raise UsageError(f"several evaluations in {paths[0]}", f"Name the folder of one: {names}")
    return folders
