"""What the experiments of 4StepFocus (Boer et al., 2024) run: recipes by analysis, as far as the models allow."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clew.catalog.recipe import Recipe, make_recipe
from clew.errors import UsageError, unknown_name_error
from clew.text import slugify

if TYPE_CHECKING:
    from clew.catalog.evaluation import EvaluationSettings
    from clew.catalog.recipe import Value

#: The forms of data sets that name their answers as nodes of a graph.
DATA_SETS = ("stark", "metaqa")
#: Answers that are ranked, and that the model is asked about (the paper's ``k_max``, Section 4).
LIST_LENGTH = 20
#: What every recipe of the page has: documents, which a base of one's own may hold beside its graph, are not asked.
GRAPH_ALONE: dict[str, Value] = {"sources": Recipe("none")}
#: The paper's rule for relations: edge types are ignored, "restricting it turned out to be error-prone" (Section 4).
ANY_RELATION: dict[str, Value] = {"relations": Recipe("any")}
VSS, UNTYPED, TYPED = "VSS", "4StepFocus, any relation", "4StepFocus, typed relations"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a page was asked for: ``graphs``, one for all data sets or one for each, as they were named; ``encoders``
    of trained dense retrievers; ``samples`` are drafts of a question's triples; ``embed``: every node that may answer
    gets its vector first."""

    graphs: tuple[str, ...]
    encoders: tuple[str, ...] = ()
    samples: int = 1
    embed: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The recipes of every analysis, by what they are called in its table.

    ``methods`` are those of Table 1, 4StepFocus with the paper's rule for relations; ``ours`` what the paper has
    not, with the recipe that it is compared with first, ``closely`` those of them whose triples are looked at.
    ``oracle`` are asked with gold triples.
    """

    methods: dict[str, str]
    extensions: dict[str, str]
    diagnosed: dict[str, str]
    oracle: dict[str, str]

    @property
    def recipes(self) -> list[str]:
        """Every recipe once, but for those of gold triples."""
        return list(dict.fromkeys([*self.methods.values(), *self.extensions.values()]))


def build_settings(
    data: Sequence[str],
    graphs: Sequence[str],
    encoders: Sequence[str],
    samples: int,
    embed: bool,
    encoder: str | None = None,
) -> Settings:
    """Return the settings of a page over these data sets; ``encoder`` is that of all methods but the dense
    retrievers, None for none. Raises UsageError for what makes no sense."""
    for one in data:
        name, equals, _ = one.partition("=")
        if equals and name not in DATA_SETS:
            raise unknown_name_error("data set of 4stepfocus", name, DATA_SETS)
    if len(set(data)) < len(data):
        raise UsageError("a data set is given twice", "Name each once: --data NAME=PATH")
    if len(graphs) not in {1, len(data)}:
        raise UsageError(
            f"{len(graphs)} graphs for {len(data)} data sets",
            "Name one for all of them, or one for each in their order: --graph FOLDER",
        )
    if embed and encoder is None and not encoders:
        raise UsageError(
            "--embed-all without an encoder makes no vectors",
            "Name one: --encoder onnx:FOLDER, or --retriever-encoder",
        )
    return Settings(tuple(graphs), tuple(dict.fromkeys(encoders)), samples, embed)


def data_names(data: Sequence[str]) -> dict[str, str]:
    """Return what each data set is called on the page: its file, with as many of the folders above it as tell it from
    the others, as a folder's name (:func:`clew.text.slugify`) too; a digest tells those that share all of them."""
    parts = {one: [part for part in Path(one.partition("=")[2]).parts if slugify(part)] for one in data}
    depths = dict.fromkeys(parts, 1)
    while True:
        names = {one: "/".join(some[-depths[one] :]) for one, some in parts.items()}
        folders = {one: slugify(name).casefold() for one, name in names.items()}
        count = Counter(folders.values())
        same = [one for one, folder in folders.items() if count[folder] > 1]
        if not same:
            return names
        for one in same:
            if depths[one] >= len(parts[one]):
                parts[one].insert(0, hashlib.sha256(one.encode()).hexdigest()[:8])
            depths[one] += 1


def plan_recipes(bench: EvaluationSettings, samples: int = 1) -> Plan:
    """Return what is run with the models of ``bench``. Without an encoder, candidates are sorted by words."""

    def read(retriever: Recipe) -> str:
        # What reads costs no calls: the answers are the nodes.
        return str(make_recipe("read", {"k": LIST_LENGTH, "reader": Recipe("extractive"), "retriever": retriever}))

    def reranked(form: str) -> str:
        return read(make_recipe("reranked", {"form": Recipe(form), "k": LIST_LENGTH, "retriever": Recipe("vss")}))

    def focus(form: str, any_relation: bool = False) -> str:
        options: dict[str, Value] = {
            "form": Recipe(form),
            "k": LIST_LENGTH,
            **GRAPH_ALONE,
            **(ANY_RELATION if any_relation else {}),
        }
        return str(make_recipe("focus", {**options, **({"samples": samples} if samples > 1 else {})}))

    methods = {"BM25": read(Recipe("bm25-nodes"))}
    if bench.encoder is not None:
        methods |= {VSS: read(Recipe("vss")), "Multi-VSS": read(Recipe("multi-vss"))}
    oracle = {"typed relations": focus("none"), "any relation": focus("none", any_relation=True)}
    if bench.llm is None:
        return Plan(methods, {}, {}, oracle)
    if bench.encoder is not None:
        methods["VSS + LLM reranker"] = reranked("pointwise")
    methods[UNTYPED] = focus("pointwise", any_relation=True)
    ours = {
        UNTYPED: methods[UNTYPED],
        TYPED: focus("pointwise"),
        "any relation, without reranking": focus("none", any_relation=True),
        "typed relations, without reranking": focus("none"),
        "typed relations, listwise": focus("listwise"),
        **({"VSS + LLM reranker, listwise": reranked("listwise")} if bench.encoder is not None else {}),
    }
    return Plan(methods, ours, {UNTYPED: ours[UNTYPED], TYPED: ours[TYPED]}, oracle)
