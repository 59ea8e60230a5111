"""The experiments of Drilling Down into the Discourse Structure (D3: Nair et al., EMNLP 2023), and the page of them.

:func:`plan_recipes` lists the recipes of each table that the models allow; :func:`write_d3_page` runs them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.component import Recipe, make_recipe, parse_recipe
from clew.core.errors import UsageError
from clew.evaluate.metrics import parse_metric
from clew.evaluate.statistics import bootstrap_interval
from clew.knowledge_base import registry
from clew.papers.figures import draw_lines
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
    from clew.evaluate.report import Run
    from clew.evaluate.run_folder import Experiment
    from clew.evaluate.setup import EvaluationSettings

#: Chunk sizes of Figure 4, in tokens; the paper's default is the last.
CHUNK_SIZES = (500, 1000, 1500, 2000, 2500, 3000, 3500)
#: The largest number of passages to read: from retrievers that choose passages, and from those that only rank them.
#: The paper does not say how many ranked passages it takes.
MAX_CHOSEN, MAX_RANKED = 30, 5
D3_BASE = Recipe("drill-paper").with_options(summariser=Recipe("extractive"))
MAP_REDUCE = Recipe("map-reduce-optimised")


@dataclass(frozen=True, slots=True)
class Variants:
    """The variants of Table 3 by name: rerankers (``monot5:NAME``), summarisers, models that choose or answer."""

    rerankers: Sequence[str] = ()
    summarisers: Sequence[str] = ()
    choosing_models: Sequence[str] = ()
    answering_models: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The recipes of each analysis. Without a language model only ``methods`` has any."""

    methods: list[str]
    selfask: list[str]
    strategies: list[str]
    summarisers: list[str]
    headings: list[str]
    chunks: dict[int, str]
    detailed: list[str]

    @property
    def recipes(self) -> list[str]:
        """All recipes without duplicates."""
        lists = (
            self.methods,
            self.selfask,
            self.strategies,
            self.summarisers,
            self.headings,
            self.chunks.values(),
        )
        return [*dict.fromkeys(recipe for group in lists for recipe in group)]


def plan_recipes(settings: EvaluationSettings, variants: Variants) -> Plan:
    """Return the recipes that the models of ``settings`` allow. Raises UsageError for an unknown name."""
    reader = "cited" if settings.llm else "extractive"

    def read(retriever: Recipe, k: int = MAX_CHOSEN) -> str:
        return str(make_recipe("read", {"k": k, "reader": Recipe(reader), "retriever": retriever}))

    rerankers = [_parse_reranker(name) for name in variants.rerankers]
    ranking = [*rerankers, *([Recipe("dense")] if settings.encoder else []), Recipe("bm25")]
    methods = [read(retriever, MAX_RANKED) for retriever in ranking]
    if settings.llm is None:
        return Plan(
            [*methods, read(Recipe("drill"), MAX_RANKED), f"golden(reader={reader})"], [], [], [], [], {}, []
        )
    baselines = [Recipe(name) for name in ("paragraph", "chunk", "map-reduce")]
    choosing = [*baselines, MAP_REDUCE, D3_BASE, Recipe("drill")]
    methods += [*map(read, choosing), f"golden(reader={reader})"]
    followed = [*rerankers, Recipe("chunk"), MAP_REDUCE, D3_BASE]
    strategies = [
        "base",
        "hierbase",
        *(["monot5", "monot5+base", "base+monot5"] if _monot5_option(rerankers) else []),
    ]
    variations = [
        D3_BASE.with_options(paragraphs=Recipe(name), **_monot5_option(rerankers)) for name in strategies
    ]
    return Plan(
        methods,
        [
            str(make_recipe("selfask", {"reader": Recipe(reader), "retriever": retriever}))
            for retriever in followed
        ],
        [read(D3_BASE), *(read(retriever) for retriever in variations[1:])],
        [
            read(D3_BASE),
            *(
                read(D3_BASE.with_options(summariser=name if ":" in name else parse_recipe(name)))
                for name in variants.summarisers
            ),
        ],
        [read(D3_BASE), read(D3_BASE.with_options(names=Recipe("uuid")))],
        {
            **{size: read(Recipe("chunk").with_options(size=size)) for size in CHUNK_SIZES[:-1]},
            CHUNK_SIZES[-1]: read(Recipe("chunk")),
        },
        [read(D3_BASE), read(MAP_REDUCE)],
    )


def _parse_reranker(name: str) -> Recipe:
    from clew.models import parse_name
    from clew.models.rerankers import RERANKERS

    parsed = parse_name(name, RERANKERS)
    return Recipe(parsed.scheme).with_options(model=parsed.rest)


def _monot5_option(rerankers: Sequence[Recipe]) -> dict[str, Any]:
    """Return the option with the MonoT5 model of the strategies, none without a MonoT5 reranker."""
    return next(
        ({"monot5": reranker.option("model")} for reranker in rerankers if reranker.name == "monot5"), {}
    )


TITLE = "Drilling down into the discourse structure: the paper's analyses"
#: Columns of Table 1. The costs are those of retrieval, as in Section 5.
# QASPER's official script compares tokens alone: "Yes, they use BERT." shares one with "Yes".
ANSWERS = (
    "token-F1(type=span)",
    "token-F1(type=abstractive)",
    "token-F1(type=yes/no)",
    "token-F1(type=unanswerable)",
    "token-F1",
)
EVIDENCE = ("retrieved-P", "retrieved-R", "retrieved-F1")
COSTS = ("retrieval-tokens", "retrieval-calls")
#: The categories of Table 5.
CATEGORIES = ("span", "abstractive", "yes/no", "unanswerable")
#: The number of classes of document length in Figure 3.
LENGTH_CLASSES = 4


def write_d3_page(experiments: Sequence[Experiment], variants: Variants) -> tuple[Path, Path]:
    """Run the paper's experiments over each data set, write ``page.md`` and ``page.html``, and return their paths.

    Finished parts are not run again. All experiments share their settings and ``out``. Raises UsageError.
    """
    settings, out = experiments[0].settings, experiments[0].out
    plan = plan_recipes(settings, variants)
    parts: list[str] = []
    for experiment in experiments:
        runs = {run.recipe: run for run in experiment.run(plan.recipes)}
        sections = _table_sections(experiment, plan, runs)
        sections += [*_model_sections(experiment, variants)] if settings.llm else []
        parts += [
            f"## {experiment.questions.title}",
            data_facts(experiment, _omissions(settings, variants)),
        ]
        parts += [section.to_markdown(out) for section in sections]
    command = command_line("paper d3", experiments, _variant_options(variants))
    return write_page(
        out, "\n\n".join([f"# {TITLE}", environment_table(experiments, command), *parts]) + "\n", TITLE
    )


def _omissions(settings: EvaluationSettings, variants: Variants) -> dict[str, str]:
    return {
        **({} if settings.llm else {"what asks a model": "needs --llm"}),
        **({} if settings.encoder else {"dense retrieval (DPR)": "needs --encoder"}),
        **({} if variants.rerankers else {"MonoT5 and cross-encoders": "need --reranker monot5:NAME"}),
    }


def _variant_options(variants: Variants) -> list[str]:
    options = {
        "--reranker": variants.rerankers,
        "--summariser": variants.summarisers,
        "--choose-with": variants.choosing_models,
        "--answer-with": variants.answering_models,
    }
    return [word for option, names in options.items() for name in names for word in (option, name)]


def _table_sections(experiment: Experiment, plan: Plan, runs: Mapping[str, Run]) -> list[Section]:
    """Return the analyses that need no further language models."""
    is_multi_hop = experiment.questions.name == "hotpotqa-doc"
    costs = COSTS if experiment.settings.llm else ("seconds",)
    full_columns = (*ANSWERS, *EVIDENCE, *costs)
    short_columns = (*EVIDENCE, *costs)
    analyses = [
        (
            "Methods",
            "Answer F1 by type; precision, recall and F1 of the passages that are read; the cost of finding them "
            f"(paper: Tables {'1 and 2' if is_multi_hop else '1'}). Rankers give {MAX_RANKED} passages; retrievers "
            f"that choose passages give those, at most {MAX_CHOSEN}. Local rerankers count no calls. `{D3_BASE}` is "
            "the paper's D3-BASE with extractive summaries.",
            plan.methods,
            full_columns,
        ),
        ("Self-Ask", "Follow-up questions over each retriever (paper: Table 2).", plan.selfask, full_columns),
        (
            "Choosing paragraphs",
            "Strategies of Section 3.3.2 (paper: Table 3).",
            plan.strategies,
            full_columns,
        ),
        ("Summarisers", "Summaries by different makers (paper: Table 3).", plan.summarisers, full_columns),
        ("Headings", "Headings replaced by UUIDs (paper: Table 4).", plan.headings, short_columns),
        (
            "Question categories",
            "Evidence by the type of the answer (paper: Table 5).",
            plan.detailed,
            [f"{name}(type={category})" for category in CATEGORIES for name in EVIDENCE],
        ),
    ]
    sections = [
        Section(
            title,
            text,
            run_command(experiment, recipes),
            runs_table([runs[recipe] for recipe in recipes], metrics),
        )
        for title, text, recipes, metrics in analyses
        if len(recipes) > 1
    ]
    return [
        *sections,
        _length_section(experiment, plan, runs),
        *([_chunk_section(experiment, plan, runs)] if plan.chunks else []),
    ]


def _model_sections(experiment: Experiment, variants: Variants) -> Sequence[Section]:
    """Return the sections of other choosing and answering models (Table 3), each run in a folder of its own."""
    recipe = plan_recipes(experiment.settings, Variants()).detailed[0]
    sections = []
    for role, title, names in (
        ("select", "Models that choose", variants.choosing_models),
        ("read", "Models that answer", variants.answering_models),
    ):
        if not names:
            continue
        others = [_with_model(experiment, role, name) for name in names]
        runs = [*experiment.run([recipe]), *(run for other in others for run in other.run([recipe]))]
        renamed = [
            replace(run, recipe=f"{role}={name}")
            for run, name in zip(runs, [experiment.settings.llm_name, *names], strict=True)
        ]
        commands = "\n".join(run_command(other, [recipe]) for other in [experiment, *others])
        text = f"The recipe `{recipe}` with other models in the role `{role}` (paper: Table 3)."
        sections.append(Section(title, text, commands, runs_table(renamed, (*ANSWERS, *EVIDENCE, *COSTS))))
    return sections


def _with_model(experiment: Experiment, role: str, name: str) -> Experiment:

    if "," in name or "=" in experiment.settings.llm_name or "," in experiment.settings.llm_name:
        raise UsageError(
            f"models by role are given twice: '{experiment.settings.llm_name}' and '{role}={name}'",
            "Give one model for all roles with --llm",
        )
    names = f"{experiment.settings.llm_name},{role}={name}"
    settings = replace(
        experiment.settings, llm=registry.load_language_model(names, cache=True, charged=True), llm_name=names
    )
    folder_name = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    return replace(experiment, settings=settings, out=experiment.out / f"{role}-{folder_name}")


def _length_section(experiment: Experiment, plan: Plan, runs: Mapping[str, Run]) -> Section:
    """Return the section of evidence and its cost by document length (Figure 3)."""
    recipes = plan.detailed or plan.methods[:-1]
    classes = group_by_length(experiment.questions.examples)
    rows = [
        {"method": _retriever_name(recipe), "length": length, **_run_point(runs[recipe], ids)}
        for recipe in recipes
        for length, ids in classes.items()
    ]
    columns = {"method": "method", "mean tokens of a document": "length", "questions": "questions"}
    names = ("retrieved-F1", *(COSTS if experiment.settings.llm else ("seconds",)))
    write_json(experiment.folder, "lengths", {"points": rows})
    figure_files = draw_lines(
        rows,
        "method",
        "length",
        names,
        "tokens of a document",
        experiment.questions.title,
        experiment.folder.path / "lengths",
    )
    return Section(
        "Document length",
        f"Questions in {len(classes)} classes by the length of their documents (paper: Figure 3).",
        run_command(experiment, recipes),
        points_table(columns | {name: name for name in names}, rows),
        figure_files,
    )


def _chunk_section(experiment: Experiment, plan: Plan, runs: Mapping[str, Run]) -> Section:
    """Return the section of evidence by chunk size (Figure 4)."""
    rows = [
        {"method": "chunk", "size": size, **_run_point(runs[recipe])} for size, recipe in plan.chunks.items()
    ]
    names = (*EVIDENCE, *COSTS)
    write_json(experiment.folder, "chunks", {"points": rows})
    return Section(
        "Chunk size",
        "The baseline CHUNK with chunks of several sizes, in tokens (paper: Figure 4).",
        run_command(experiment, list(plan.chunks.values())),
        points_table({"size": "size", "questions": "questions"} | {name: name for name in names}, rows),
        draw_lines(
            rows,
            "method",
            "size",
            EVIDENCE,
            "tokens of a chunk",
            experiment.questions.title,
            experiment.folder.path / "chunks",
        ),
    )


def _retriever_name(recipe: str) -> str:
    """Return the name of a recipe in a figure: its retriever."""
    retriever = parse_recipe(recipe).option("retriever")
    return str(retriever or parse_recipe(recipe).name)


def _run_point(run: Run, ids: frozenset[str] | None = None) -> dict[str, Any]:
    """Return the means of a run over the questions ``ids`` (all, if None), without undefined measures."""
    names = [*EVIDENCE, *COSTS, "seconds"]
    values = {name: run.values(parse_metric(name)) for name in names}
    estimates = {
        name: bootstrap_interval([v for id, v in by_id.items() if ids is None or id in ids])
        for name, by_id in values.items()
    }
    selected = [id for id in run.results if ids is None or id in ids]
    return {"questions": len(selected)} | {
        name: estimate.mean for name, estimate in estimates.items() if estimate.count
    }


def group_by_length(examples: Sequence[Example], count: int = LENGTH_CLASSES) -> dict[int, frozenset[str]]:
    """Return the ids of the questions in each class of document length, by the class's mean length in tokens.

    The classes have about equally many questions; questions with documents of equal length share a class.
    """
    from clew.models.costs import count_tokens

    lengths = {
        example.id: sum(count_tokens(paragraph.text) for paragraph in example.corpus) for example in examples
    }
    sorted_lengths = sorted(lengths.values())
    ends = sorted({sorted_lengths[-(-len(sorted_lengths) * n // count) - 1] for n in range(1, count + 1)})
    classes: dict[int, frozenset[str]] = {}
    for low, high in zip([-1, *ends], ends, strict=False):
        members = {id: length for id, length in lengths.items() if low < length <= high}
        classes[round(sum(members.values()) / len(members))] = frozenset(members)
    return classes
