"""4StepFocus over graphs that stay where they are: a store that is mounted, alone and beside an imported graph."""

import pytest

import clew
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.knowledge_base import registry
from film_world import BORN, FILMS, PEOPLE, TOWNS, films
from sparql_servers import store_turtle


def turtle(*relations):
    """Return the films as Turtle, with some of the relations."""
    lines = ["@prefix : <http://films.example/> .", "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."]
    names = {**{id: film[0] for id, film in FILMS.items()}, **PEOPLE, **TOWNS}
    lines += [f':{id} rdfs:label "{name}" .' for id, name in names.items()]
    lines += [f":{id} a :film ." for id in FILMS]
    for id, film in FILMS.items():
        if "directed_by" in relations:
            lines.append(f":{id} :directed_by :{film[4]} .")
        if "starred_actors" in relations:
            lines += [f":{id} :starred_actors :{actor} ." for actor in film[5].split()]
    if "born_in" in relations:
        lines += [f":{id} :born_in :{town} ." for id, town in BORN.items()]
    return "\n".join(lines) + "\n"


def ask(store, text):
    return registry.build_method("focus", store).answer(Question(text, chain=text), TrailRecorder())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#1 : film; #1 >> directed_by >> Ilse Varnholt", {"The Salt Orchard", "Low Water", "Glass Harvest"}),
        (
            "#1 >> directed_by >> Ilse Varnholt; not #1 >> starred_actors >> Ilse Varnholt",
            {"The Salt Orchard", "Glass Harvest"},
        ),
        (
            "Marit Solheim >> directed >> #2; #2 >> starred_actors >> #3; #3 >> born_in >> #1",
            {"Dunmere", "Saltreach"},
        ),
    ],
)
def test_a_mounted_graph_is_asked(base, tmp_path, text, expected):
    place = store_turtle(tmp_path / "store", turtle("directed_by", "starred_actors", "born_in"))
    clew.KnowledgeBase(base).graphs.mount("films", str(place))
    answer = ask(base, f"{text}; final answer: #1")
    assert set(answer.values) == expected
    assert all(ranked.meets_all and not ranked.missed_constraints for ranked in answer.ranking)
    assert all(hit.node.kind == "triple" for check in answer.ranking[0].checks for hit in check.hits)


def test_a_contradiction_in_a_mounted_graph_has_no_answer(base, tmp_path):
    place = store_turtle(tmp_path / "store", turtle("directed_by", "born_in"))
    clew.KnowledgeBase(base).graphs.mount("films", str(place))
    answer = ask(
        base, "#1 >> directed_by >> Ilse Varnholt; #1 >> directed_by >> Marit Solheim; final answer: #1"
    )
    assert answer.text == "None: no node of 'films' meets all of this" and not answer.values
    near = ask(
        base, "#1 >> directed_by >> Ilse Varnholt; #1 >> directed_by >> marit solheim; final answer: #1"
    )
    assert not near.values and near.abstained
    assert {ranked.name for ranked in near.ranking if ranked.meets_rest} == {
        "The Salt Orchard",
        "Low Water",
        "Glass Harvest",
    }
    (given_up,) = [step.detail["given up"] for step in near.trail if step.name == "substitute"]
    assert given_up == ["#1 >> directed_by >> marit solheim"]  # of two that are as sure the last


def test_a_mounted_graph_without_the_answer_stands_beside_one_that_has_it(base, tmp_path):
    films(base)
    place = store_turtle(tmp_path / "store", turtle("born_in"))
    clew.KnowledgeBase(base).graphs.mount("places", str(place))
    answer = ask(base, "#1 : film; #1 >> directed_by >> Marit Solheim; final answer: #1")
    assert set(answer.values) == {"The Tin Parade", "Nine Lanterns"}
    assert {ranked.hit.node.document_name for ranked in answer.ranking if ranked.meets_all} == {"films"}
