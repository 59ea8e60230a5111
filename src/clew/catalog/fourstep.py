"""The experiments of 4StepFocus (Boer et al., 2024) over data sets and graphs of one's own, and the page of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.catalog.fourstep_bases import describe_vectors
from clew.catalog.fourstep_deviations import deviations_section
from clew.catalog.fourstep_plan import UNTYPED, VSS, Plan, Settings, data_names, plan_recipes
from clew.catalog.fourstep_published import published_section
from clew.catalog.paper import data_facts, environment_table, write_page
from clew.catalog.sections import run_command, runs_table, add_shared_options
from clew.evaluate.focused import LOSS_DESCRIPTIONS, triple_statistics, classify_loss
from clew.evaluate.oracle import gold_triples
from clew.evaluate.page import Section, points_table
from clew.text import slugify

if TYPE_CHECKING:
    from clew.catalog.analysis import Experiment
    from clew.evaluate.reporting import Run
    from clew.protocols import Encoder

TITLE = "4StepFocus: the paper's experiments"
#: Columns of Table 1; of answers as sets; of what they cost.
RANKING_METRICS, SET_METRICS, COST_METRICS = (
    ("Hit@1", "Hit@5", "recall@20", "MRR"),
    ("set-EM", "set-F1"),
    ("calls", "tokens", "seconds"),
)
#: How Table 1's recall is divided, and how else it can be.
CAPPED_RECALL = "capped-recall@20"


def write_fourstep_page(works: Sequence[Experiment], settings: Settings) -> tuple[Path, Path]:
    """Run what the paper ran over each data set and write ``page.md`` and ``page.html``; return them.

    What is there already is not run again. All works have the same models and the same ``out``, below which each has
    a folder of its own. Raises UsageError.
    """
    from clew import catalog

    out, bench = works[0].out, works[0].settings
    command = page_command(works, settings)
    planned = plan_recipes(bench, settings.samples)
    parts: list[str] = []
    lost: list[dict[str, Any]] = []
    names = data_names([one.questions.data for one in works])
    encoders = {name: catalog.load_encoder(name, remember=True) for name in settings.encoders}
    for work in (replace(one, out=out / slugify(names[one.questions.data])) for one in works):
        dense = [_with_encoder(work, name, one) for name, one in encoders.items()]
        encoding = [*([work] if bench.encoder is not None else []), *dense]
        for one in encoding if settings.embed else ():
            _vectors(one, make=True)
        runs = {run.recipe: run for run in work.run(planned.recipes)}
        sections = _sections(work, planned, runs, dense)
        if all(gold_triples(one) for one in work.questions.examples):
            sections.append(_oracle(work, planned))
        heading = f"{work.questions.title}, {names[work.questions.data]}"
        lost += [
            {"data": heading, **one}
            for method, recipe in planned.diagnosed.items()
            for one in _lost(work, method, runs[recipe])
        ]
        parts += [
            f"## {heading}",
            data_facts(work, _left_out(work, settings)),
            *_embedded(encoding),
            *(one.to_markdown(out) for one in sections),
        ]
    if planned.diagnosed:
        parts += ["## Errors", _errors(works, list(planned.diagnosed), lost, command).to_markdown(out)]
    parts += [deviations_section(), published_section()]
    return write_page(out, "\n\n".join([f"# {TITLE}", environment_table(works, command), *parts]) + "\n", TITLE)


def page_command(works: Sequence[Experiment], settings: Settings) -> str:
    """Return the command line that makes the page."""
    words = [word for work in works for word in ("--data", work.questions.data)]
    words += [word for one in settings.graphs for word in ("--graph", one)]
    words += [word for one in settings.encoders for word in ("--retriever-encoder", one)]
    words += ["--embed-all"] if settings.embed else []
    words += ["--samples", str(settings.samples)] if settings.samples > 1 else []
    return add_shared_options("paper 4stepfocus", words, works[0])


def _with_encoder(work: Experiment, name: str, encoder: Encoder) -> Experiment:
    """Return the work of a dense retriever, in a folder of its own."""
    bench = replace(work.settings, llm=None, encoder=encoder, encoder_name=name)
    return replace(work, settings=bench, out=work.out / f"encoder-{slugify(name)}")


def _vectors(work: Experiment, make: bool) -> str:
    """Say how many nodes have a vector of the work's encoder, having made those that are missing with ``make``."""
    encoder = work.settings.encoder
    assert encoder is not None
    return describe_vectors(
        Path(work.questions.corpus), encoder, make, work.progress(f"vectors, {work.settings.encoder_name}")
    )


def _embedded(encoding: Sequence[Experiment]) -> list[str]:
    """Say of each encoder whether every node was ranked by its vectors, as in the paper."""
    said = [f"- {one.settings.encoder_name}: {_vectors(one, make=False)}" for one in encoding]
    if not said:
        return []
    return [
        "Vectors after the run, by encoder. Of nodes without one, a question embeds and ranks the 500 that are best "
        "by words, and looks at no others (`--embed-all` makes all vectors first, as the paper has them).",
        "\n".join(said),
    ]


def _left_out(work: Experiment, settings: Settings) -> dict[str, str]:
    """Return what the paper ran and this page did not, and why."""
    return {
        **({} if work.settings.llm else {"4StepFocus on the questions' words, and what reranks": "needs --llm"}),
        **({} if work.settings.encoder else {"VSS and all that is sorted by vector": "needs --encoder"}),
        **(
            {}
            if settings.encoders
            else {
                "the dense retriever": "needs --retriever-encoder, such as one that clew train encoder made"
            }
        ),
        "QA-GNN": "it is a published figure only, below",
    }


def _metrics(work: Experiment) -> tuple[str, ...]:
    return (*RANKING_METRICS, *(SET_METRICS if work.questions.name == "metaqa" else (CAPPED_RECALL,)), *COST_METRICS)


def _table(runs: Sequence[Run], named: Sequence[str], work: Experiment, baseline: str = "") -> str:
    """Return the table of runs under the names that they have there, and which recipe each is."""
    shown = [replace(run, recipe=name) for run, name in zip(runs, named, strict=True)]
    recipes = [{"name": name, "recipe": f"`{run.recipe}`"} for run, name in zip(runs, named, strict=True)]
    table = runs_table(shown, _metrics(work), baseline, ranked_by=RANKING_METRICS)
    return f"{table}\n{points_table({'name': 'name', 'recipe': 'recipe'}, recipes)}"


def _sections(work: Experiment, planned: Plan, runs: Mapping[str, Run], dense: Sequence[Experiment]) -> list[Section]:
    title = work.questions.title
    methods = {name: runs[recipe] for name, recipe in planned.methods.items()}
    commands = [run_command(work, list(planned.methods.values()))]
    for other in dense:
        (run,) = other.run([plan_recipes(other.settings).methods[VSS]])
        methods[_called(other)] = run
        commands.append(run_command(other, [run.recipe]))
    sections = [
        Section(
            f"Methods, {title}",
            "STaRK's baselines, and 4StepFocus with the paper's rule for relations (of any type), the 20 best "
            "reranked one by one, everything else as in clew, below (paper: Table 1); means with 95 % bootstrap "
            "intervals. recall@20 is STaRK's: found of all that are right. "
            f"{CAPPED_RECALL} is found of as many as 20 places can hold, as the paper's words may also be read.",
            "\n".join(commands),
            _table(list(methods.values()), list(methods), work),
        )
    ]
    if planned.extensions:
        named = list(planned.extensions)
        sections.append(
            Section(
                f"Beyond the paper, {title}",
                "Relations by their types, no reranking, one prompt for the whole list; with paired differences to "
                f"{UNTYPED}.",
                run_command(work, list(planned.extensions.values())),
                _table([runs[one] for one in planned.extensions.values()], named, work, UNTYPED),
            )
        )
    if planned.diagnosed:
        sections.append(_diagnosed(work, planned.diagnosed, runs))
    return sections


def _called(work: Experiment) -> str:
    encoder, name = work.settings.encoder, work.settings.encoder_name
    trained = encoder.objective if encoder is not None else ""
    return f"Dense retriever ({name}{f', trained as {trained}' if trained else ', untrained'})"


def _diagnosed(work: Experiment, closely: Mapping[str, str], runs: Mapping[str, Run]) -> Section:
    """Return what became of the triples of each question, method by method."""
    columns = {
        name: triple_statistics(list(work.folder.result_file(recipe).records()), runs[recipe].results)
        for name, recipe in closely.items()
    }
    rows = [
        {"": what, **{name: said[what] for name, said in columns.items()}}
        for what in next(iter(columns.values()))
    ]
    return Section(
        f"What became of the triples, {work.questions.title}",
        "Usable: at least one triple or condition could be held against the graph. Candidates are the nodes that the "
        "triples leave; relaxed are questions whose constraints contradicted each other, so that some were given up; "
        "filled up those whose list was filled with the next best by vector.",
        run_command(work, list(closely.values())),
        points_table({"": "", **{name: name for name in columns}}, rows),
    )


def _oracle(work: Experiment, planned: Plan) -> Section:
    """Return what substitution makes of the gold triples, with which no model is asked."""
    other = replace(
        work,
        questions=replace(work.questions, triples=True),
        settings=replace(work.settings, llm=None),
        out=work.out / "oracle",
    )
    runs = other.run(list(planned.oracle.values()))
    return Section(
        f"Oracle triples, {work.questions.title}",
        "The triples that the questions' types spell, in place of a model's: what the steps after the first make of "
        "perfect triples. set-EM is the share of questions whose candidates are exactly the gold answers.",
        run_command(other, list(planned.oracle.values())),
        _table(runs, list(planned.oracle), work),
    )


def _lost(work: Experiment, name: str, run: Run) -> list[dict[str, Any]]:
    """Return the questions whose first answer is wrong, with all that a person needs to judge it."""
    records = {one["id"]: one for one in work.folder.result_file(run.recipe).records()}
    found = []
    for id, result in run.results.items():
        kind = classify_loss(result, records[id])
        if kind is not None:
            focused = records[id].get("focus", {})
            shown = {"question": result.example.question, "gold": list(result.example.answers)}
            first = [hit["id"] for hit in records[id]["hits"][:5]]
            found.append(
                {
                    "id": id,
                    "method": name,
                    "class": kind,
                    **shown,
                    "first": first,
                    **focused,
                }
            )
    return found


def _errors(
    works: Sequence[Experiment], named: Sequence[str], lost: Sequence[Mapping[str, Any]], command: str
) -> Section:
    """Return how often which method was wrong in which way, and write every error down."""
    path = works[0].out / "errors.jsonl"
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lost), encoding="utf-8")
    rows = [
        {
            "class": kind,
            "what it means": said,
            **{n: sum(one["class"] == kind and one["method"] == n for one in lost) for n in named},
        }
        for kind, said in LOSS_DESCRIPTIONS.items()
    ]
    return Section(
        "Where 4StepFocus goes wrong",
        "Questions of all data sets whose first answer is not right, by the first step that lost it. Classes are "
        f"told by rule from the trail; every error is in [{path.name}](<{path.name}>) to be read.",
        command,
        points_table({"class": "class", "what it means": "what it means", **{name: name for name in named}}, rows),
    )
