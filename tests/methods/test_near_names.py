"""Names that a graph does not have: near names are taken and told, except for numbers, days and identifiers."""

import pytest

from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.knowledge_base import registry
from clew.methods.focus.pattern_builder import ConstantMatcher, is_identifier
from clew.triples.linking.entities import GraphEntityLinker
from command_line import run
from film_world import films
from link_graphs import graph_of


def ask(store, triples):
    return registry.build_method("focus", store).answer(Question("?", chain=triples), TrailRecorder())


def linked_names(graph, name):
    linked = ConstantMatcher(GraphEntityLinker()).link(graph, {name: ()}, "", TrailRecorder())
    return {entity.name for entity in linked[name]}


@pytest.fixture
def years(base):
    return graph_of(
        base,
        [
            ("f1", "released", "1989"),
            ("f2", "released", "1899"),
            ("f2", "released", "5"),
            ("f3", "needs", "libc6"),
            ("f3", "released", "1990-05-04"),
            ("f3", "title", "Blade Runner 2049"),
        ],
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["1889", "-5", "libc5", "1990-05-14", "1,989"])
def test_nothing_is_a_near_name_of_a_number_a_day_or_an_identifier(years, name):
    assert not linked_names(years, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("1989", "1989"),
        ("LIBC6", "libc6"),
        ("1990-05-04", "1990-05-04"),
        ("blade runer 2049", "Blade Runner 2049"),
    ],
)
def test_numbers_and_identifiers_take_what_is_called_so(years, name, called):
    assert linked_names(years, name) == {called}
    assert is_identifier(name) == (" " not in name)


def test_a_number_that_the_graph_lacks_has_no_answers(base, years):
    answer = ask(base, "#1 >> released >> 1889; final answer: #1")
    assert answer.abstained and not answer.values
    assert "1889" in next(iter(answer.constraints.dropped.values()))


def test_an_answer_tells_the_names_that_were_taken_for_others(base):
    films(base)
    answer = ask(
        base, "#1 : Films; #1 >> directed by >> ilse varnholt; #1.relaese_year < 1933; final answer: #1"
    )
    assert set(answer.values) == {"The Salt Orchard", "Low Water"}
    taken = {"ilse varnholt": "Ilse Varnholt", "Films": "film", "relaese_year": "release_year"}
    assert answer.constraints.substitutions == answer.to_dict()["substitutions"] == taken
    exact = ask(base, "#1 : film; #1 >> directed by >> Ilse Varnholt; final answer: #1")
    assert exact.constraints.exact and not exact.constraints.substitutions


def test_the_command_line_tells_near_names(base, tmp_path, monkeypatch):
    films(base)
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    triples = "#1 >> directed_by >> ilse varnholt; final answer: #1"
    assert (
        "taking 'ilse varnholt' as Ilse Varnholt"
        in run("ask", "--triples", triples, "--kb", base.path).stdout
    )
