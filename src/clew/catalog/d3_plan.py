"""What the D3 paper's experiments run: recipes by analysis, as far as the models allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.catalog.recipe import Recipe, make_recipe, parse_recipe

if TYPE_CHECKING:
    from clew.catalog.evaluation import EvaluationSettings

#: Chunk sizes of Figure 4, in tokens; the paper's default is the last.
CHUNK_SIZES = (500, 1000, 1500, 2000, 2500, 3000, 3500)
#: Passages that are read at most. What ranks without choosing gives the first of :data:`RANKING_METRICS`; the paper does not
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
        [read(D3_BASE), *(read(D3_BASE.with_options(summariser=_part(name))) for name in variants.summarisers)],
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
