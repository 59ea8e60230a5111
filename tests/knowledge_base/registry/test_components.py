"""Components: what a signature declares, and what recipes may say."""

import importlib
import json
import pkgutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

import clew
from clew.core.component import (
    INTERNAL,
    AtLeast,
    Auto,
    PromptFile,
    Recipe,
    Resources,
    component,
    declarations,
    parse_recipe,
)
from clew.core.errors import UsageError
from clew.core.protocols import LanguageModel, Retriever, Snapshot
from clew.knowledge_base import registry
from clew.knowledge_base.registry import BUILT_IN, REGISTRY
from clew.testing import sample_base
from retrieve_encoders import WordEncoder

ENCODER = WordEncoder("lighthouse", "skerry", "norling", "harbour", "osterby")


@component("toy(parts=bm25)", summary="a toy", paper="nobody")
@component("toy-deep(parts=tfidf, depth=9)", summary="a deep toy")
@dataclass(frozen=True)
class Toy:
    """A retriever with one parameter of each sort."""

    snapshot: Snapshot
    parts: Retriever
    model: LanguageModel | None
    template: Annotated[object, PromptFile("answer-none")]
    sort: Annotated[Literal["vector", "words"], Auto("vector", "words", requires="encoder")]
    recipe: str
    depth: int = 3
    least: Annotated[int, AtLeast(0)] = 0
    share: float = 0.5
    deep_first: bool = False
    label: str = ""
    limit: int | None = None
    count: int | Literal["auto"] = "auto"
    secret: Annotated[dict[str, int] | None, INTERNAL] = None

    def retrieve(self, question, k):
        return ()


@pytest.fixture(scope="module")
def base(tmp_path_factory, without_encoder):
    with sample_base(tmp_path_factory.mktemp("components")) as opened:
        opened.store.encode(ENCODER)
        yield opened


def build(base, recipe):
    parsed = parse_recipe(recipe)
    (declared,) = [item for item in declarations(Toy) if item.name == parsed.name]
    return declared.build(parsed, registry.open_resources(base.store))


def test_options_are_the_parameters_with_their_defaults():
    plain, deep = declarations(Toy)
    assert str(plain.defaults) == (
        "toy(count=auto, deep-first=no, depth=3, label='', least=0, limit=off, parts=bm25, share=0.5, sort=auto)"
    )
    assert str(deep.defaults) == (
        "toy-deep(count=auto, deep-first=no, depth=9, label='', least=0, "
        "limit=off, parts=tfidf, share=0.5, sort=auto)"
    )
    assert (plain.kind, plain.paper) == ("retriever", "nobody")


@pytest.mark.slow
def test_collaborators_are_given_by_their_types(base):
    toy = build(base, "toy(label=reeds, deep-first=yes, count=4)")
    assert type(toy.parts).__name__ == "BM25" and toy.parts.snapshot is toy.snapshot
    assert toy.model is None and toy.template.name == "answer-none.v1"
    assert (toy.label, toy.deep_first, toy.count, toy.depth) == ("reeds", True, 4, 3)
    # What auto stands for is written out, so that an answer names what made it.
    assert toy.sort == "words" and "sort=words" in toy.recipe and "count=4" in toy.recipe


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "problem"),
    [
        ("toy(deth=3)", "no option of 'toy' named 'deth'.*Did you mean 'depth'"),
        ("toy(depth=0)", "option 'depth' of 'toy' must be a whole number from 1 to 1,000,000,000: 0"),
        ("toy(depth=1.5)", "must be a whole number"),
        ("toy(depth=1e400)", "must be a whole number"),
        ("toy(depth=2e9)", "must be a whole number from 1 to 1,000,000,000: 2e"),
        ("toy(depth=" + "9" * 5000 + ")", "must be a whole number from 1 to 1,000,000,000: inf"),
        ("toy(least=-1)", "must be a whole number from 0 to"),
        ("toy(share=yes)", "option 'share' of 'toy' is not a number: True"),
        ("toy(share=off)", "is not a number"),
        ("toy(deep-first=1)", "option 'deep-first' of 'toy' is neither yes nor no: 1"),
        ("toy(sort=size)", "no sort of 'toy' named 'size'"),
        ("toy(count=many)", "is not a number: many"),
        ("toy(parts=3)", "option 'parts' of 'toy' does not name a component: 3"),
        ("toy(parts=bm52)", "no retriever named 'bm52'.*Did you mean 'bm25'"),
        ("toy(parts=dense)", "'dense' needs an encoder"),
    ],
)
def test_wrong_options_are_named(base, recipe, problem):
    with pytest.raises(UsageError, match=problem):
        build(base, recipe)


def test_an_option_without_a_default_has_to_be_named(base):
    with pytest.raises(UsageError, match=r"'union' needs the option 'a'. Write union\(a=..., b=...\)"):
        registry.build_graph("union", base.store)
    both = registry.build_graph("union(a=mentions, b=structure)", base.store)
    assert both.name == "union(a=mentions(common=5, leads=3), b=structure)"


def test_a_signature_that_cannot_be_read_is_refused():
    class Odd:
        def __init__(self, words: dict[str, int]) -> None: ...

        def retrieve(self, question, k): ...

    (declared,) = declarations(component("odd", summary="")(Odd))
    with pytest.raises(TypeError, match=r"Odd: parameter 'words' is no option: dict\[str, int\]"):
        _ = declared.options
    with pytest.raises(TypeError, match="Nothing is no kind of component"):
        component("nothing", summary="")(type("Nothing", (), {}))


def test_the_index_names_every_declared_component_and_no_other():
    declared = set()
    for module in pkgutil.walk_packages(clew.__path__, "clew."):
        if module.name.split(".")[1] in {
            "methods",
            "retrieve",
            "graph",
            "triples",
            "models",
            "parse",
            "core",
        }:
            for name, value in vars(importlib.import_module(module.name)).items():
                for item in declarations(value):
                    if value.__module__ == module.name:
                        declared.add((item.kind, item.name, f"{module.name}:{name}"))
    indexed = {(kind, name, place) for kind, places in BUILT_IN.items() for name, place in places.items()}
    assert declared == indexed


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_component_can_be_described(kind):
    for name in BUILT_IN[kind]:
        result = REGISTRY.component(kind, name)
        assert result.summary and parse_recipe(str(result.defaults)) == result.defaults


@pytest.mark.slow
def test_a_search_imports_only_its_own_component(tmp_path):
    program = (
        "import sys, json, clew\n"
        "with clew.open(sys.argv[1], create=True) as base:\n"
        "    base.search('who', retriever='bm25')\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('clew.')]))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "base"], capture_output=True, text=True, check=True
    )
    loaded = json.loads(finished.stdout)
    assert not [name for name in loaded if name.startswith(("clew.methods", "clew.triples", "clew.graph"))]
    assert [name for name in loaded if name.startswith("clew.retrieve.")] == [
        "clew.retrieve.ranking",
        "clew.retrieve.lexical",
    ]


def test_traits_of_nested_and_default_recipes():
    assert registry.searches_web(parse_recipe("selfask(retriever=serpapi)"))
    assert not registry.searches_web(parse_recipe("selfask"))
    assert registry.embeds_nodes(Recipe("reranked")), "its default retriever is vss"
    assert not registry.embeds_nodes(parse_recipe("read(retriever=reranked(retriever=bm25-nodes))"))
    assert registry.ranks_nodes(parse_recipe("read(retriever=bm25-nodes)"))


def test_resources_name_what_is_missing():
    nothing = Resources(None, REGISTRY, None)
    with pytest.raises(UsageError, match="'ircot' needs a language model"):
        nothing.require_model("ircot")
    with pytest.raises(UsageError, match="'dense' needs an encoder"):
        nothing.require_encoder("dense")
