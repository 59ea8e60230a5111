"""What the experiments of Semi-Structured Chain-of-Thought run: recipes by data set, as far as there is something to
search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.catalog.evaluation import POOLED_CORPORA, load_questions
from clew.catalog.recipe import Recipe, make_recipe, parse_recipe
from clew.errors import UsageError, unknown_name_error

if TYPE_CHECKING:
    from clew.catalog.evaluation import QuestionSet

#: The data sets of the paper in the form that is read (Appendix C: of MuSiQue the 2-hop questions), and whether their
#: paragraphs are pooled; the others are asked of the web, or of a base that is named.
DATA_SETS = {"2wikimultihopqa": True, "musique-2hop": True, "bamboogle": False, "fever": False}
TWO_HOPS = {"musique": "musique-2hop"}
#: Retrievers that search elsewhere than in a base.
WEB = ("serpapi",)
ORACLE = "oracle"
#: The orders of Tables 1 and 2, and what Table 3 leaves out, with more.
ORDERS = ("kg,text,model", "text,kg,model")
ABLATION_ORDERS = ("kg", "text", "model", "kg,text", "text,kg", "kg,model", "text,model", *ORDERS)
#: Bamboogle is asked with four exemplars (Appendix D).
FOUR_SHOTS: dict[str, Any] = {"exemplars": Recipe("compositional"), "shots": 4}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a page was asked for.

    ``retrievers`` are names, or ``DATA=NAME``; ``corpus`` is for data sets that bring no paragraphs; ``pool`` names
    data sets whose paragraphs are pooled as well; ``samples`` are chains drawn at once.
    """

    graphs: tuple[str, ...] = ()
    oracle: bool = False
    retrievers: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    corpus: str | None = None
    samples: int = 1

    def load_questions(self, data: str, limit: int | None, seed: int) -> QuestionSet:
        """Return the questions of ``NAME=PATH`` as the paper asks them: pooled, over all paragraphs of their file.

        Raises UsageError.
        """
        name, equals, path = data.partition("=")
        name = TWO_HOPS.get(name, name)
        if equals and name not in DATA_SETS:
            raise unknown_name_error("data set of semicot", name, DATA_SETS)
        if DATA_SETS.get(name):
            return load_questions(f"{name}{equals}{path}", "pooled", limit, seed, [full_data(data), *self.pool])
        return load_questions(data, self.corpus or "none", limit, seed)

    def retriever_for(self, data: str) -> str:
        """Return what finds passages for the methods: that of the data set, else the first, else ``search``."""
        named = [_divided(one) for one in self.retrievers]
        own = [recipe for name, recipe in named if name == data]
        return next(iter([*own, *(recipe for name, recipe in named if not name)]), "search")

    def compared_retrievers(self, encoder: bool) -> list[str]:
        """Return the retrievers whose rounds are compared: those that are named, else all usual ones."""
        named = [recipe for _, recipe in map(_divided, self.retrievers) if not searches_web(recipe)]
        usual = ["search", "bm25", *(["dense", "hybrid"] if encoder else []), "kgp"]
        return list(dict.fromkeys(named)) or usual


def build_settings(
    graphs: Sequence[str], retrievers: Sequence[str], pool: Sequence[str], corpus: str | None, samples: int
) -> Settings:
    """Return the settings of a page. Raises UsageError for names that make no sense."""
    if corpus in POOLED_CORPORA or corpus == "question":
        raise UsageError(
            f"Bamboogle and FEVER bring no paragraphs for the corpus '{corpus}'",
            "Name a knowledge base: --corpus FOLDER; the other data sets are always pooled",
        )
    for one in retrievers:
        parse_recipe(_divided(one)[1])
    places = tuple(one for one in graphs if one != ORACLE)
    for one in places:
        if "://" not in one and not Path(one).exists():
            raise UsageError(f"no graph at {one}", "Name a file, a SPARQL endpoint's URL, or oracle")
    return Settings(places, ORACLE in graphs, tuple(retrievers), tuple(pool), corpus, samples)


def full_data(data: str) -> str:
    """Return the ``NAME=PATH`` of all questions of a file of which only those of two hops are asked."""
    name, equals, path = data.partition("=")
    return next((f"{full}{equals}{path}" for full, two in TWO_HOPS.items() if name == two), data)


def _divided(retriever: str) -> tuple[str, str]:
    """Return the data set that a retriever was named for ("" for all) and its recipe."""
    name, equals, recipe = retriever.partition("=")
    name = TWO_HOPS.get(name, name)
    return (name, recipe) if equals and name in DATA_SETS else ("", retriever)


def searches_web(retriever: str) -> bool:
    """Return whether a retriever searches the web, so that there is something to find without a corpus."""
    return parse_recipe(retriever).name in WEB


@dataclass(frozen=True, slots=True)
class Plan:
    """The recipes of a data set: those of the main table, of the ablation, and ``chain`` as it is looked at closely
    (the oracle graph, the error classes). ``searched``: there are passages to be found."""

    main: list[str]
    ablation: list[str]
    chain: str
    has_search: bool

    @property
    def recipes(self) -> list[str]:
        """Every recipe once."""
        return list(dict.fromkeys([*self.main, *self.ablation]))


def plan_recipes(data: QuestionSet, settings: Settings) -> Plan:
    """Return what is run over a data set: claims by the methods that know claims, as in Table 10; where nothing can
    be searched, what asks a model or a graph alone."""
    retriever = settings.retriever_for(data.name)
    searched = data.corpus != "none" or searches_web(retriever)
    search: dict[str, Any] = {"retriever": parse_recipe(retriever)} if searched else {}
    claims = data.name == "fever"
    shown = {"task": Recipe("claim")} if claims else FOUR_SHOTS if data.name == "bamboogle" else {}

    def chain(sources: str, **more: Any) -> str:
        sampled = {"samples": settings.samples} if settings.samples > 1 else {}
        options = {"sources": sources, "reader": Recipe("hops"), **shown, **search, **sampled, **more}
        return str(make_recipe("chain", options))

    orders = ORDERS if searched else ("kg,model",)
    ablated = [one for one in ABLATION_ORDERS if searched or "text" not in one]
    direct = [str(make_recipe(name, shown)) for name in ("fewshot", "cot")]
    model = {"final": Recipe("model"), **search}
    # Readers answer in passages' words; these papers' own answers are the model's.
    asking = [str(make_recipe(name, model)) for name in ("iterretgen", "react", "dsp")]
    asking = [str(make_recipe("selfask", {"reader": Recipe("hops"), **search})), *asking]
    return Plan(
        [*direct, *(asking if searched and not claims else []), *map(chain, orders)],
        [*map(chain, ablated), *([chain(orders[0], choose=Recipe("hop"))] if searched else [])],
        chain(orders[0]),
        searched,
    )
