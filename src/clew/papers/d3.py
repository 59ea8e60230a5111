"""What the D3 paper's experiments run: recipes by analysis, as far as the models allow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.errors import UsageError
from clew.core.recipe import Recipe, make_recipe, parse_recipe
from clew.evaluate.metrics import parse_metric
from clew.evaluate.report import Run
from clew.evaluate.run_folder import Experiment
from clew.evaluate.statistics import bootstrap_interval
from clew.papers import figures as drawing
from clew.papers.page import (
    Section,
    command_line,
    data_facts,
    environment_table,
    points_table,
    run_command,
    runs_table,
    write_json,
    write_page,
)

if TYPE_CHECKING:
    from clew.evaluate.examples import Example
    from clew.evaluate.setup import EvaluationSettings

#: Chunk sizes of Figure 4, in tokens; the paper's default is the last.
CHUNK_SIZES = (500, 1000, 1500, 2000, 2500, 3000, 3500)
#: Passages that are read at most. What ranks without choosing gives the first of :data:`RANKING_METRICS`; the
#: paper does not
#: say how many it takes.
MAX_CHOSEN, MAX_RANKED = 30, 5
D3_BASE = Recipe("drill-paper").with_options(summariser=Recipe("extractive"))
MAP_REDUCE = Recipe("map-reduce-optimised")


@dataclass(frozen=True, slots=True)
class Variants:
    """What Table 3 varies, by name: rerankers (``monot5:NAME``), summarisers, models that choose or answer."""

    rerankers: Sequence[str] = ()
    summarisers: Sequence[str] = ()
    choosing_models: Sequence[str] = ()
    answering_models: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The recipes of every analysis, by its name; with a language model, all that the paper has."""

    methods: list[str]
    selfask: list[str]
    strategies: list[str]
    summarisers: list[str]
    headings: list[str]
    chunks: dict[int, str]
    detailed: list[str]

    @property
    def recipes(self) -> list[str]:
        """Every recipe once."""
        lists = (
            self.methods,
            self.selfask,
            self.strategies,
            self.summarisers,
            self.headings,
            self.chunks.values(),
        )
        return [*dict.fromkeys(recipe for one in lists for recipe in one)]


def plan_recipes(bench: EvaluationSettings, variants: Variants) -> Plan:
    """Return what is run with the models of ``bench``. Raises UsageError for a name that makes no sense."""
    reader = "cited" if bench.llm else "extractive"

    def read(retriever: Recipe, k: int = MAX_CHOSEN) -> str:
        return str(make_recipe("read", {"k": k, "reader": Recipe(reader), "retriever": retriever}))

    rerankers = [_reranker(name) for name in variants.rerankers]
    ranking = [*rerankers, *([Recipe("dense")] if bench.encoder else []), Recipe("bm25")]
    methods = [read(one, MAX_RANKED) for one in ranking]
    if bench.llm is None:
        return Plan(
            [*methods, read(Recipe("drill"), MAX_RANKED), f"golden(reader={reader})"], [], [], [], [], {}, []
        )
    baselines = [Recipe(name) for name in ("paragraph", "chunk", "map-reduce")]
    chosen = [*baselines, MAP_REDUCE, D3_BASE, Recipe("drill")]
    methods += [*map(read, chosen), f"golden(reader={reader})"]
    asked = [*rerankers, Recipe("chunk"), MAP_REDUCE, D3_BASE]
    strategies = [
        "base",
        "hierbase",
        *(["monot5", "monot5+base", "base+monot5"] if _monot5(rerankers) else []),
    ]
    varied = [D3_BASE.with_options(paragraphs=Recipe(name), **_monot5(rerankers)) for name in strategies]
    return Plan(
        methods,
        [str(make_recipe("selfask", {"reader": Recipe(reader), "retriever": one})) for one in asked],
        [read(D3_BASE), *(read(one) for one in varied[1:])],
        [
            read(D3_BASE),
            *(read(D3_BASE.with_options(summariser=_part(name))) for name in variants.summarisers),
        ],
        [read(D3_BASE), read(D3_BASE.with_options(names=Recipe("uuid")))],
        {
            **{size: read(Recipe("chunk").with_options(size=size)) for size in CHUNK_SIZES[:-1]},
            CHUNK_SIZES[-1]: read(Recipe("chunk")),
        },
        [read(D3_BASE), read(MAP_REDUCE)],
    )


def _reranker(name: str) -> Recipe:
    from clew.models.names import parse_name
    from clew.models.rerankers import RERANKERS

    parsed = parse_name(name, RERANKERS)
    return Recipe(parsed.scheme).with_options(model=parsed.rest)


def _monot5(rerankers: Sequence[Recipe]) -> dict[str, Any]:
    """Return the option that names the MonoT5 of strategies, none where there is no MonoT5."""
    return next(({"monot5": one.option("model")} for one in rerankers if one.name == "monot5"), {})


def _part(name: str) -> Any:
    """Return the value of an option that is a recipe, or a name with a colon in it."""
    return name if ":" in name else parse_recipe(name)


TITLE = "Drilling down into the discourse structure: the paper's analyses"
#: Columns of Table 1 and how they are named there, and of its evidence; costs are of retrieval, as in Section 5.
ANSWERS = ("F1(type=span)", "F1(type=abstractive)", "F1(type=yes/no)", "F1(type=unanswerable)", "F1")
EVIDENCE = ("retrieved-P", "retrieved-R", "retrieved-F1")
COSTS = ("retrieval-tokens", "retrieval-calls")
#: The categories of Table 5.
CATEGORIES = ("span", "abstractive", "yes/no", "unanswerable")
#: Classes of document length in Figure 3, with as many questions each as can be.
LENGTH_CLASSES = 4


def write_d3_page(works: Sequence[Experiment], variants: Variants) -> tuple[Path, Path]:
    """Run what the paper ran over each data set and write ``page.md`` and ``page.html``; return them.

    What is there already is not run again. All works have the same models and the same ``out``. Raises UsageError.
    """
    bench, out = works[0].settings, works[0].out
    planned = plan_recipes(bench, variants)
    parts: list[str] = []
    for work in works:
        runs = {run.recipe: run for run in work.run(planned.recipes)}
        sections = _sections(work, planned, runs)
        sections += [*_models(work, variants)] if bench.llm else []
        parts += [f"## {work.questions.title}", data_facts(work, _left_out(bench, variants))]
        parts += [section.to_markdown(out) for section in sections]
    command = command_line("paper d3", works, _given(variants))
    return write_page(
        out, "\n\n".join([f"# {TITLE}", environment_table(works, command), *parts]) + "\n", TITLE
    )


def _left_out(bench: EvaluationSettings, variants: Variants) -> dict[str, str]:
    return {
        **({} if bench.llm else {"what asks a model": "needs --llm"}),
        **({} if bench.encoder else {"dense retrieval (DPR)": "needs --encoder"}),
        **({} if variants.rerankers else {"MonoT5 and cross-encoders": "need --reranker monot5:NAME"}),
    }


def _given(variants: Variants) -> list[str]:
    options = {
        "--reranker": variants.rerankers,
        "--summariser": variants.summarisers,
        "--choose-with": variants.choosing_models,
        "--answer-with": variants.answering_models,
    }
    return [word for option, names in options.items() for name in names for word in (option, name)]


def _sections(work: Experiment, planned: Plan, runs: Mapping[str, Run]) -> list[Section]:
    """Return the analyses that need no other models than the page has."""
    multi = work.questions.name == "hotpotqa-doc"
    costs = COSTS if work.settings.llm else ("seconds",)
    every = (*ANSWERS, *EVIDENCE, *costs)
    brief = (*EVIDENCE, *costs)
    shown = [
        (
            "Methods",
            f"Answer F1 by type, precision, recall and F1 of the passages that are read, and what finding them cost "
            f"(paper: Tables {'1 and 2' if multi else '1'}). Rankers give {MAX_RANKED} passages, what chooses gives what "  # noqa: E501
            f"it chose, {MAX_CHOSEN} at most. Local rerankers count no calls. `{D3_BASE}` is the paper's D3-BASE with "  # noqa: E501
            "extractive summaries.",
            planned.methods,
            every,
        ),
        ("Self-Ask", "Follow-up questions over each retriever (paper: Table 2).", planned.selfask, every),
        ("Choosing paragraphs", "Strategies of Section 3.3.2 (paper: Table 3).", planned.strategies, every),
        ("Summarisers", "Summaries by different makers (paper: Table 3).", planned.summarisers, every),
        ("Headings", "Headings replaced by UUIDs (paper: Table 4).", planned.headings, brief),
        (
            "Question categories",
            "Evidence by the type of the answer (paper: Table 5).",
            planned.detailed,
            [f"{name}(type={kind})" for kind in CATEGORIES for name in EVIDENCE],
        ),
    ]
    made = [
        Section(title, text, run_command(work, recipes), runs_table([runs[one] for one in recipes], metrics))
        for title, text, recipes, metrics in shown
        if len(recipes) > 1
    ]
    return [*made, _lengths(work, planned, runs), *([_chunks(work, planned, runs)] if planned.chunks else [])]


def _models(work: Experiment, variants: Variants) -> Sequence[Section]:
    """Return what other models choose and answer (Table 3): each in a folder of its own."""
    recipe = plan_recipes(work.settings, Variants()).detailed[0]
    sections = []
    for role, title, names in (
        ("select", "Models that choose", variants.choosing_models),
        ("read", "Models that answer", variants.answering_models),
    ):
        if not names:
            continue
        others = [_with_model(work, role, name) for name in names]
        runs = [*work.run([recipe]), *(run for one in others for run in one.run([recipe]))]
        named = [
            replace(run, recipe=f"{role}={name}")
            for run, name in zip(runs, [work.settings.llm_name, *names], strict=True)
        ]
        commands = "\n".join(run_command(one, [recipe]) for one in [work, *others])
        text = f"The recipe `{recipe}` with other models in the role `{role}` (paper: Table 3)."
        sections.append(Section(title, text, commands, runs_table(named, (*ANSWERS, *EVIDENCE, *COSTS))))
    return sections


def _with_model(work: Experiment, role: str, name: str) -> Experiment:
    from clew.knowledge_base import registry as catalog

    if "," in name or "=" in work.settings.llm_name or "," in work.settings.llm_name:
        raise UsageError(
            f"models by role are given twice: '{work.settings.llm_name}' and '{role}={name}'",
            "Give one model for all roles with --llm",
        )
    both = f"{work.settings.llm_name},{role}={name}"
    bench = replace(
        work.settings, llm=catalog.load_language_model(both, cache=True, charged=True), llm_name=both
    )
    slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    return replace(work, settings=bench, out=work.out / f"{role}-{slug}")


def _lengths(work: Experiment, planned: Plan, runs: Mapping[str, Run]) -> Section:
    """Return evidence and its cost by the length of documents (Figure 3)."""
    recipes = planned.detailed or planned.methods[:-1]
    classes = group_by_length(work.questions.examples)
    rows = [
        {"method": _name(recipe), "length": length, **_point(runs[recipe], ids)}
        for recipe in recipes
        for length, ids in classes.items()
    ]
    shown = {"method": "method", "mean tokens of a document": "length", "questions": "questions"}
    names = _measures(work)
    write_json(work.folder, "lengths", {"points": rows})
    figures = drawing.draw_lines(
        rows,
        "method",
        "length",
        names,
        "tokens of a document",
        work.questions.title,
        work.folder.path / "lengths",
    )
    return Section(
        "Document length",
        f"Questions in {len(classes)} classes by the length of what they are asked of (paper: Figure 3).",
        run_command(work, recipes),
        points_table(shown | {name: name for name in names}, rows),
        figures,
    )


def _chunks(work: Experiment, planned: Plan, runs: Mapping[str, Run]) -> Section:
    """Return evidence by chunk size (Figure 4)."""
    rows = [
        {"method": "chunk", "size": size, **_point(runs[recipe])} for size, recipe in planned.chunks.items()
    ]
    names = (*EVIDENCE, *COSTS)
    write_json(work.folder, "chunks", {"points": rows})
    return Section(
        "Chunk size",
        "The baseline CHUNK with chunks of several sizes, in tokens (paper: Figure 4).",
        run_command(work, list(planned.chunks.values())),
        points_table({"size": "size", "questions": "questions"} | {name: name for name in names}, rows),
        drawing.draw_lines(
            rows,
            "method",
            "size",
            EVIDENCE,
            "tokens of a chunk",
            work.questions.title,
            work.folder.path / "chunks",
        ),
    )


def _measures(work: Experiment) -> tuple[str, ...]:
    return ("retrieved-F1", *(COSTS if work.settings.llm else ("seconds",)))


def _name(recipe: str) -> str:
    """Return what a reader of figures calls a recipe: its retriever."""
    retriever = parse_recipe(recipe).option("retriever")
    return str(retriever or parse_recipe(recipe).name)


def _point(run: Run, ids: frozenset[str] | None = None) -> dict[str, Any]:
    """Return the means of a run over some questions (all, if None), as far as there are any."""
    names = [*EVIDENCE, *COSTS, "seconds"]
    values = {name: run.values(parse_metric(name)) for name in names}
    found = {
        name: bootstrap_interval([v for id, v in held.items() if ids is None or id in ids])
        for name, held in values.items()
    }
    asked = [id for id in run.results if ids is None or id in ids]
    return {"questions": len(asked)} | {name: one.mean for name, one in found.items() if one.count}


def group_by_length(examples: Sequence[Example], count: int = LENGTH_CLASSES) -> dict[int, frozenset[str]]:
    """Return the questions of each class of document length, by the class's mean length in tokens.

    The classes have equally many questions, but questions of documents of one length share a class.
    """
    from clew.models.costs import count_tokens as tokens

    lengths = {one.id: sum(tokens(paragraph.text) for paragraph in one.corpus) for one in examples}
    ordered = sorted(lengths.values())
    ends = sorted({ordered[-(-len(ordered) * n // count) - 1] for n in range(1, count + 1)})
    classes: dict[int, frozenset[str]] = {}
    for low, high in zip([-1, *ends], ends, strict=False):
        held = {id: length for id, length in lengths.items() if low < length <= high}
        classes[round(sum(held.values()) / len(held))] = frozenset(held)
    return classes


# MERGED: The D3 paper's experiments (Nair et al., EMNLP 2023) over data sets of one's own, and the page of them.
