"""Recipes: a canonical name parses back, and a wrong one is refused with the place of the fault."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.core.component import Recipe, make_recipe, parse_recipe
from clew.core.errors import UsageError

WORDS = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).filter(lambda w: w not in {"yes", "no", "off"})
VALUES = st.recursive(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none(),
    lambda inner: st.builds(make_recipe, WORDS, st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=6,
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.builds(make_recipe, WORDS, st.dictionaries(WORDS, VALUES, max_size=4)))
def test_a_canonical_name_parses_back_to_the_same_recipe(recipe: Recipe) -> None:
    assert parse_recipe(str(recipe)) == recipe


def test_order_and_spaces_do_not_matter() -> None:
    assert parse_recipe("kgp( seeds=10,graph = keywords(n=20) )") == parse_recipe(
        "kgp(graph=keywords(n=20), seeds=10)"
    )
    assert str(parse_recipe("kgp(seeds=10,graph=keywords)")) == "kgp(graph=keywords, seeds=10)"


def test_words_for_yes_no_and_none() -> None:
    recipe = parse_recipe("walk(prior=off, fence=yes, x=no, f='a, (b)')")
    assert [recipe.option(key) for key in ("prior", "fence", "x", "f")] == [None, True, False, "a, (b)"]


@pytest.mark.parametrize("text", ["", "kgp(", "kgp(x)", "kgp(a=1", "a b)", "a(x=1,x=2)", "(", "a(b=)", "a,b"])
def test_what_makes_no_sense_is_refused_with_the_recipe_named(text: str) -> None:
    with pytest.raises(UsageError) as failure:
        parse_recipe(text)
    assert "recipe" in failure.value.problem
