"""The experiments of Semi-Structured Chain-of-Thought (Su et al., NAACL 2024) over data sets of one's own, and the
page of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.catalog.evaluation import POOLED_CORPORA
from clew.catalog.paper import data_facts, environment_table, write_page
from clew.catalog.sections import run_command, runs_table, add_shared_options
from clew.catalog.semicot_plan import Plan, Settings, plan_recipes, full_data
from clew.catalog.semicot_rounds import rounds_section, rounds_experiment, examples_with_hops
from clew.errors import UsageError
from clew.evaluate.mistakes import MISTAKES, classify_mistake
from clew.evaluate.page import Section, points_table

if TYPE_CHECKING:
    from clew.catalog.analysis import Experiment
    from clew.evaluate.metrics import Result
    from clew.evaluate.reporting import Run

TITLE = "Semi-Structured Chain-of-Thought: the paper's experiments"
#: Columns of Tables 1 to 3, and of Table 10; with what they cost.
ANSWERS, LABELS, COSTS = ("EM", "F1"), ("accuracy",), ("calls", "tokens")


def write_semicot_page(works: Sequence[Experiment], settings: Settings) -> tuple[Path, Path]:
    """Run what the paper ran over each data set and write ``page.md`` and ``page.html``; return them.

    What is there already is not run again. All works have the same models and the same ``out``. Raises UsageError.
    """
    out = works[0].out
    command = page_command(works, settings)
    pool = dict.fromkeys([*(full_data(one.questions.data) for one in works if one.questions.pool), *settings.pool])
    parts: list[str] = []
    titles = [work.questions.title for work in works]
    if len(set(titles)) < len(titles):
        raise UsageError("a data set is given twice", "Name each once: --data NAME=PATH")
    wrong: list[dict[str, Any]] = []
    for work in works:
        planned = plan_recipes(work.questions, settings)
        facts_work: Experiment | None = None
        sections: list[Section] = []
        if work.settings.llm is not None:
            facts_work = _with_graphs(work, settings)
            runs = {run.recipe: run for run in facts_work.run(planned.recipes)}
            sections += _sections(facts_work, planned, runs)
            wrong += _errors(facts_work, runs[planned.chain])
            if settings.oracle and _triples(work):
                sections.append(_oracle(facts_work, runs[planned.chain]))
        if work.questions.corpus == "pooled" and examples_with_hops(work):
            asked = rounds_experiment(work, list(pool))
            sections.append(rounds_section(asked, settings.compared_retrievers(work.settings.encoder is not None), command))
            facts_work = facts_work or asked
        missing = _left_out(work, planned, settings)
        facts = data_facts(facts_work, missing) if facts_work else _skipped(missing)
        parts += [f"## {work.questions.title}", facts, *(section.to_markdown(out) for section in sections)]
    if works[0].settings.llm is not None:
        parts += ["## Errors", _error_section(works, wrong, command).to_markdown(out)]
    return write_page(out, "\n\n".join([f"# {TITLE}", environment_table(works, command), *parts]) + "\n", TITLE)


def page_command(works: Sequence[Experiment], settings: Settings) -> str:
    """Return the command line that makes the page."""
    words = [word for work in works for word in ("--data", full_data(work.questions.data))]
    words += [word for one in settings.pool for word in ("--pool", one)]
    words += ["--corpus", settings.corpus] if settings.corpus else []
    graphs = [*settings.graphs, *(["oracle"] if settings.oracle else [])]
    words += [word for one in graphs for word in ("--graph", one)]
    words += [word for one in settings.retrievers for word in ("--retriever", one)]
    words += ["--samples", str(settings.samples)] if settings.samples > 1 else []
    return add_shared_options("paper semicot", words, works[0])


def _with_graphs(work: Experiment, settings: Settings) -> Experiment:
    """Return the work with the graphs of the page beside its corpus; a base of one's own keeps to its own."""
    if work.questions.corpus not in (*POOLED_CORPORA, "none"):
        return work
    return replace(work, settings=replace(work.settings, graphs=settings.graphs))


def _left_out(work: Experiment, planned: Plan, settings: Settings) -> dict[str, str]:
    """Return what the paper ran and this page did not, and why."""
    if work.settings.llm is None:
        return {"all that a model answers": "needs --llm"}
    own = work.questions.corpus not in (*POOLED_CORPORA, "none")
    graphs = {"every graph": "none is given (--graph FILE), so that sources=kg fills nothing"}
    return {
        **({} if settings.graphs or own else graphs),
        **({"the graphs of --graph": "a base of one's own is asked with its own"} if settings.graphs and own else {}),
        **({} if planned.has_search else {"what searches": "there is nothing to search; name a base (--corpus FOLDER) "
                                        "or the web (--retriever serpapi)"}),
    }  # fmt: skip


def _skipped(missing: Mapping[str, str]) -> str:
    return "\n\n".join(f"Skipped: {what}: {why}." for what, why in missing.items())


def _metrics(work: Experiment) -> tuple[str, ...]:
    return (*(LABELS if work.questions.name == "fever" else ANSWERS), *COSTS)


def _sections(work: Experiment, planned: Plan, runs: Mapping[str, Run]) -> Iterator[Section]:
    metrics = _metrics(work)
    shown = [
        (
            "Methods",
            "Standard few-shot prompting and the methods that the paper compares with, then the chain with its "
            "sources in two orders (paper: Tables 1, 2 and 10); means with 95 % bootstrap intervals. Data Synthesis, "
            "which is tuned on a million questions, is not among them.",
            planned.main,
        ),
        (
            "Sources and orders",
            "The chain with some of its sources, in one order and the other (paper: Table 3, which has those with "
            "the model). `choose=hop` asks all sources and takes the surest, hop by hop.",
            planned.ablation,
        ),
    ]
    for title, text, recipes in shown:
        table = runs_table([runs[one] for one in recipes], metrics, ranked_by=metrics[: -len(COSTS)])
        yield Section(f"{title}, {work.questions.title}", text, run_command(work, recipes), table)


def _triples(work: Experiment) -> list[tuple[str, ...]]:
    """Return the gold triples of all questions, each once."""
    return list(dict.fromkeys(link for one in work.questions.examples for link in one.chain if len(link) == 3))


def _oracle(work: Experiment, given: Run) -> Section:
    """Return the chain over the graph of the questions' own gold triples, beside the graphs that were given."""
    path = work.out / f"oracle-{work.questions.name}.jsonl"
    names = ("head", "relation", "tail")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(dict(zip(names, one, strict=True)), ensure_ascii=False) for one in _triples(work))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    other = replace(work, settings=replace(work.settings, graphs=(str(path),)), out=work.out / "oracle")
    (run,) = other.run([given.recipe])
    graphs = ", ".join(work.settings.graphs) or "none"
    named = [replace(run, recipe="oracle graph"), replace(given, recipe=f"graphs: {graphs}")]
    return Section(
        f"Oracle graph, {work.questions.title}",
        f"The recipe `{given.recipe}` over the graph of the questions' own gold triples, and over what was given "
        "(paper: Table 7, against Wikidata). Entities and relations are linked as in any graph; the paper compares "
        "strings.",
        "\n".join(run_command(one, [given.recipe]) for one in (other, work)),
        runs_table(named, _metrics(work), named[1].recipe, ranked_by=()),
    )


def _errors(work: Experiment, run: Run) -> list[dict[str, Any]]:
    """Return what was answered wrongly, with all that a person needs to judge it."""
    records = {one["id"]: one for one in work.folder.result_file(run.recipe).records()}
    found = []
    for id, result in run.results.items():
        filling = records[id].get("filling")
        kind = classify_mistake(result, filling)
        if kind is not None:
            found.append({"data": work.questions.title, "id": id, "class": kind, **_shown(result, filling)})
    return found


def _shown(result: Result, filling: Mapping[str, Any] | None) -> dict[str, Any]:
    example = result.example
    return {
        "question": example.question,
        "chain": filling["chain"] if filling else "",
        "values": filling["values"] if filling else {},
        "prediction": "" if result.abstained else result.answer,
        "gold": list(example.answers),
        "gold chain": [list(link) for link in example.chain],
    }


def _error_section(works: Sequence[Experiment], wrong: Sequence[Mapping[str, Any]], command: str) -> Section:
    """Return how often the chain was wrong in which way, and write every error down."""
    out = works[0].out
    path = out / "errors.jsonl"
    lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in wrong)
    path.write_text("".join(lines), encoding="utf-8")
    titles = [work.questions.title for work in works]
    counts = Counter((str(one["class"]), str(one["data"])) for one in wrong)
    rows = [{"class": kind, **{title: counts[kind, title] for title in titles}} for kind in MISTAKES]
    return Section(
        "Errors of the chain",
        "Answers that are no exact match, by class (paper: Table 8, sorted by hand; what was not filled is there "
        "among knowledge retrieval). Classes are told by rule from the chain, its values and the gold hops, so they "
        f"are a first sorting; every error is in [{path.name}](<{path.name}>) to be read.",
        command,
        points_table({"class": "class", **{title: title for title in titles}}, rows),
    )
