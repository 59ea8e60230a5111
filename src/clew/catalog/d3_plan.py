"""What the D3 paper's experiments run: recipes by analysis, as far as the models allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.catalog.recipe import Recipe, make, parse

if TYPE_CHECKING:
    from clew.catalog.evaluation import Bench

#: Chunk sizes of Figure 4, in tokens; the paper's default is the last.
SIZES = (500, 1000, 1500, 2000, 2500, 3000, 3500)
#: Passages that are read at most. What ranks without choosing gives the first of :data:`RANKED`; the paper does not
#: say how many it takes.
CHOSEN, RANKED = 30, 5
DRILL = Recipe("drill-paper").with_options(summariser=Recipe("extractive"))
BEST = Recipe("map-reduce-optimised")


@dataclass(frozen=True, slots=True)
class Variants:
    """What Table 3 varies, by name: rerankers (``monot5:NAME``), summarisers, models that choose or answer."""

    rerankers: Sequence[str] = ()
    summarisers: Sequence[str] = ()
    choosing: Sequence[str] = ()
    answering: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The recipes of every analysis, by its name; with a language model, all that the paper has."""

    methods: list[str]
    selfask: list[str]
    strategies: list[str]
    summarisers: list[str]
    names: list[str]
    chunks: dict[int, str]
    compared: list[str]

    @property
    def recipes(self) -> list[str]:
        """Every recipe once."""
        lists = (
            self.methods,
            self.selfask,
            self.strategies,
            self.summarisers,
            self.names,
            self.chunks.values(),
        )
        return [*dict.fromkeys(recipe for one in lists for recipe in one)]


def plan(bench: Bench, variants: Variants) -> Plan:
    """Return what is run with the models of ``bench``. Raises UsageError for a name that makes no sense."""
    reader = "cited" if bench.llm else "extractive"

    def read(retriever: Recipe, k: int = CHOSEN) -> str:
        return str(make("read", {"k": k, "reader": Recipe(reader), "retriever": retriever}))

    rerankers = [_reranker(name) for name in variants.rerankers]
    ranking = [*rerankers, *([Recipe("dense")] if bench.encoder else []), Recipe("bm25")]
    methods = [read(one, RANKED) for one in ranking]
    if bench.llm is None:
        return Plan(
            [*methods, read(Recipe("drill"), RANKED), f"golden(reader={reader})"], [], [], [], [], {}, []
        )
    baselines = [Recipe(name) for name in ("paragraph", "chunk", "map-reduce")]
    chosen = [*baselines, BEST, DRILL, Recipe("drill")]
    methods += [*map(read, chosen), f"golden(reader={reader})"]
    asked = [*rerankers, Recipe("chunk"), BEST, DRILL]
    strategies = [
        "base",
        "hierbase",
        *(["monot5", "monot5+base", "base+monot5"] if _monot5(rerankers) else []),
    ]
    varied = [DRILL.with_options(paragraphs=Recipe(name), **_monot5(rerankers)) for name in strategies]
    return Plan(
        methods,
        [str(make("selfask", {"reader": Recipe(reader), "retriever": one})) for one in asked],
        [read(DRILL), *(read(one) for one in varied[1:])],
        [read(DRILL), *(read(DRILL.with_options(summariser=_part(name))) for name in variants.summarisers)],
        [read(DRILL), read(DRILL.with_options(names=Recipe("uuid")))],
        {
            **{size: read(Recipe("chunk").with_options(size=size)) for size in SIZES[:-1]},
            SIZES[-1]: read(Recipe("chunk")),
        },
        [read(DRILL), read(BEST)],
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
    return name if ":" in name else parse(name)
