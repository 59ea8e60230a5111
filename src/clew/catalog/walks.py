"""The options of the walks of Knowledge Graph Prompting, and the walks as retrievers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.catalog.parts import BuildContext, Params, Component
from clew.catalog.recipe import Recipe

if TYPE_CHECKING:
    from clew.catalog.recipe import Value
    from clew.protocols import Retriever

KGP_OPTIONS: dict[str, Value] = {
    "graph": Recipe("mentions"),
    "guide": Recipe("residual"),
    "seeding": Recipe("search"),
    "reader": Recipe("auto"),
    "structures": True,
    "seeds": 10,
    "branch": 3,
    "hops": 2,
    "budget": 30,
    "prior": 1.0,
    "beyond": 100,
    "sharpness": 8,
    "context": Recipe("passages"),
}
KGP_PAPER: dict[str, Value] = {
    **KGP_OPTIONS,
    "graph": Recipe("keywords"),
    "guide": Recipe("question"),
    "seeding": Recipe("tfidf"),
    "prior": None,
    "sharpness": None,
    "context": Recipe("paths"),
}


def _kgp(bench: BuildContext, options: Params) -> Retriever:
    from clew.catalog.methods import build_kgp

    return build_kgp(bench, options)


def _kgp_paper(bench: BuildContext, options: Params) -> Retriever:
    from clew.catalog.methods import build_kgp_paper

    return build_kgp_paper(bench, options)


WALKS: dict[str, Component[Retriever]] = {
    "kgp": Component("the passages of Knowledge Graph Prompting's walk, likeliest first", _kgp, KGP_OPTIONS),
    "kgp-paper": Component("the same walk as the paper has it", _kgp_paper, KGP_PAPER),
}
