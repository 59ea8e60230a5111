"""Names with a similar spelling, against brute force over all names, in every script."""

from __future__ import annotations

import random
import string

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.core.text import clean_name, fold_name
from clew.store.graphs import spelling_index
from clew.store.store import Store
from graph_twin import Twin

WORDS = "garrow mill ferry oskell hollow stone river toll gauge quillstone bank harbour lantern north".split()
NAMES = (
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
    .map(clean_name)
    .filter(bool)
)


def store_twin(base: Store, twin: Twin):
    builder = base.graphs.create_builder("g")
    twin.give(builder)
    base.graphs.store_graph(builder, [])
    return base.snapshot().graph("g")


def of_names(names: list[str]) -> Twin:
    twin = Twin()
    for number, name in enumerate(names):
        twin.add_node(f"n{number:04}", name=name)
    return twin


def brute(twin: Twin, name: str) -> dict[int, float]:
    """Likeness of every row: the most of its names."""
    wanted = fold_name(name)
    similarities = {}
    for row, id in enumerate(sorted(twin.nodes)):
        fields = twin.nodes[id]
        names = [fold_name(item) for item in (fields.get("name") or id, *fields.get("aliases", ())) if item]
        similarities[row] = float(spelling_index.name_similarity(wanted, names).max())
    return similarities


def typo(name: str, rng: random.Random) -> str:
    place = rng.randrange(len(name))
    return name[:place] + rng.choice(["", rng.choice(string.ascii_lowercase)]) + name[place + 1 :]


@pytest.mark.slow
def test_the_most_similar_names_by_brute_force_are_found(base) -> None:
    rng = random.Random(5)
    names = [" ".join(rng.choices(WORDS, k=rng.randint(1, 3))) + f" {n % 7}" for n in range(1500)]
    twin = of_names(names)
    for number in range(0, 1500, 50):
        twin.nodes[f"n{number:04}"]["aliases"] = (f"Alias {WORDS[number % len(WORDS)]} {number}",)
    graph = store_twin(base, twin)
    for _ in range(60):
        asked = typo(typo(rng.choice(names), rng), rng)
        expected = brute(twin, asked)
        rows, likeness = graph.find_similar_names(asked, 10)
        for row, alike in zip(rows.tolist(), likeness.tolist(), strict=True):
            assert alike == pytest.approx(expected[row])
        # The likeliest of all are the likeliest of those that were proposed.
        best = sorted(expected.values(), reverse=True)[:3]
        assert likeness[:3].tolist() == pytest.approx(best)
    assert graph.ids(graph.find_similar_names(f"alias {WORDS[50 % len(WORDS)]} 50", 1)[0]) == ["g:n0050"]


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(NAMES, min_size=1, max_size=8), st.data())
def test_names_of_any_script(tmp_path_factory: pytest.TempPathFactory, names: list[str], data) -> None:
    twin = of_names(names)
    asked = data.draw(st.one_of(st.sampled_from(names), NAMES))
    with Store.open(tmp_path_factory.mktemp("base"), create=True) as base:
        graph = store_twin(base, twin)
        expected = brute(twin, asked)
        exact = graph.find_by_name(asked).tolist()
        rows, likeness = graph.find_similar_names(asked, len(names))
        assert rows[: len(exact)].tolist() == exact and (likeness[: len(exact)] == 1).all()
        assert (likeness[len(exact) :] < 1).all() and (likeness >= 0).all()
        assert len(set(rows.tolist())) == len(rows) <= len(names)
        keys = list(zip((-likeness).tolist(), rows.tolist(), strict=True))
        assert keys == sorted(keys)  # best first, ties in the order of ids
        for row, alike in zip(rows.tolist(), likeness.tolist(), strict=True):
            assert alike == pytest.approx(expected[row])
        assert graph.find_similar_names(asked, 1)[0].tolist() == rows[:1].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("Gert Fröbe", "GERT FROBE"),
        ("Gert Fröbe", "Fröbe, Gert"),
        ("Gert Fröbe", "Gerd Frobe"),
        ("Stanley Kubrick", "Kubrick"),
        ("2001: A Space Odyssey", "Space Odyssey"),
        ("Москва", "Масква"),
        ("東京都庭園美術館", "東京庭園美術館"),
        ("अमिताभ बच्चन", "अमिताभ बचन"),
    ],
)
def test_a_misspelt_name_is_found(base, name: str, asked: str) -> None:
    graph = store_twin(base, of_names([*WORDS, name, "Someone Else", "Берлин", "大阪城"]))
    rows, likeness = graph.find_similar_names(asked, 3)
    assert [entity.name for entity in graph.entities(rows[:1])] == [name]
    assert (likeness[0] == 1) == (fold_name(name) == fold_name(asked))


@pytest.mark.slow
def test_chunks_do_not_change_the_index_and_common_grams_are_left_out(base, monkeypatch) -> None:
    names = [f"{WORDS[n % len(WORDS)]} {n}" for n in range(300)]
    whole = store_twin(base, of_names(names))
    grams = {name: item.copy() for name, item in whole._opened.arrays.items() if name.startswith("grams")}
    asked = "garow 14"
    before = whole.find_similar_names(asked, 5)[0].tolist()
    base.graphs.remove("g")
    monkeypatch.setattr(spelling_index, "_CHUNK", 7)
    again = store_twin(base, of_names(names))
    for name, value in grams.items():
        assert np.array_equal(value, again._opened.arrays[name]), name
    base.graphs.remove("g")
    monkeypatch.setattr(spelling_index, "MAX_NAMES_PER_GRAM", 30)
    fewer = store_twin(base, of_names(names))
    assert np.diff(fewer._opened.arrays["grams.starts"]).max() <= 30
    assert len(fewer._opened.arrays["grams.names"]) < len(grams["grams.names"])
    assert fewer.find_similar_names(asked, 5)[0].tolist()[0] == before[0]
    assert fewer.find_similar_names("garrow 0", 1)[1].tolist() == [1]


def test_long_names_are_distinguished_by_their_hash(base) -> None:
    start = "garrow " * 30
    graph = store_twin(base, of_names([start + "one", start + "two"]))
    rows, likeness = graph.find_similar_names(start + "two", 2)
    assert rows.tolist() == [1, 0] and likeness[0] == 1 and likeness[1] < 1


def test_an_empty_graph_has_no_similar_names(base) -> None:
    graph = store_twin(base, Twin())
    assert [len(name) for name in graph.find_similar_names("anything", 5)] == [0, 0]


def test_a_name_with_hidden_marks_finds_the_node_whose_name_was_cleaned(tmp_path) -> None:
    twin = of_names(["Heron\u200b Queen", "\u202eLady Annis", "Young\x1b[2J Corwin"])
    with Store.open(tmp_path / "base", create=True) as base:
        graph = store_twin(base, twin)
        for asked in ("Heron\u200b Queen", "Heron Queen", "\u202eLady Annis", "lady annis", "Young Corwin"):
            exact = graph.find_by_name(asked).tolist()
            rows, likeness = graph.find_similar_names(asked, 1)
            assert len(exact) == 1 and rows.tolist() == exact and likeness.tolist() == [1.0]
