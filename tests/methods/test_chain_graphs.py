"""Hops of a chain in graphs: all their values, what is meant by a name, where another graph goes on."""

import json

import pytest

import clew
from chain_bases import DIRECTOR, FILM, TOWN, Agent, run, steps
from clew.core.trail import TrailRecorder
from clew.core.types import Question, Scope
from clew.knowledge_base import registry


@pytest.mark.slow
def test_all_values_of_a_graph_are_kept_and_counted(world, tmp_path):
    path = tmp_path / "many.tsv"
    path.write_text("".join(f"Film {n:03}\tdirected_by\tBusy Bee\n" for n in range(130)))
    opened = clew.KnowledgeBase(world)
    opened.graphs.add(path)
    try:
        chain = "Film 007 >> director >> #1; #2 >> directed by >> #1; final answer: #2"
        answer, requests = run(world, Agent(chain), "Which other films did the director of Film 007 make?")
        assert len(answer.values) == 129 and "Film 007" not in answer.values and len(requests) == 1
        assert answer.text.endswith("and 109 more")
        paths = {hit.node.text for hit in answer.evidence}
        assert {"Film 007 >> directed_by >> Busy Bee", "Film 000 >> directed_by >> Busy Bee"} <= paths
        answer, _ = run(world, Agent(chain), "How many other films did the director of Film 007 make?")
        assert answer.text == "and 109 more" or answer.text == "129"
    finally:
        opened.graphs.remove("many")


@pytest.mark.slow
def test_what_is_asked_for_by_its_own_name_is_no_other_relation(world, tmp_path):
    (tmp_path / "crew.jsonl").write_text(
        '{"id": "a", "name": "Film A", "type": "film"}\n'
        '{"id": "b", "name": "Film B", "type": "film", "properties": {"director of casting": "Zed"}}\n'
        '{"head": "a", "relation": "director", "tail": "Ada Pell"}\n'
        '{"head": "a", "relation": "casting director", "tail": "Yves Orr"}\n'
        '{"head": "b", "relation": "casting director", "tail": "Zed Lind"}\n'
        '{"id": "c", "name": "Film C", "type": "film"}\n'
        '{"head": "c", "relation": "directed_by", "tail": "Ilse Varn"}\n'
    )
    opened = clew.KnowledgeBase(world)
    opened.graphs.add(tmp_path / "crew.jsonl")
    try:

        def asked(chain):
            question = Question("Who?", scope=Scope(graphs=frozenset({"crew"})), chain=chain)
            return registry.build_method("chain(sources=kg)", world).answer(question, TrailRecorder())

        assert asked("Film A >> director >> #1; final answer: #1").text == "Ada Pell"
        assert asked("Film B >> director >> #1; final answer: #1").abstained
        assert asked("Film B >> casting director >> #1; final answer: #1").text == "Zed Lind"
        # The same word in another form is the same relation, where a graph was made of two.
        assert asked("Film C >> director >> #1; final answer: #1").text == "Ilse Varn"
        # A word that names no relation of the graph stands for what is nearest and there.
        assert asked("Film B >> casting >> #1; final answer: #1").text == "Zed Lind"
    finally:
        opened.graphs.remove("crew")


def test_relation_aliases_are_read_from_a_file(world, tmp_path):
    chain = f"{FILM} >> rendered upon celluloid by >> #1; final answer: #1"
    asked = Question("Who?", chain=chain)
    assert registry.build_method("chain(sources=kg)", world).answer(asked, TrailRecorder()).abstained
    (tmp_path / "aliases.tsv").write_text("directed_by\trendered upon celluloid by\n")
    recipe = f"chain(sources=kg, aliases='{tmp_path / 'aliases.tsv'}')"
    answer = registry.build_method(recipe, world).answer(asked, TrailRecorder())
    assert answer.text == DIRECTOR and "alias" in steps(answer, "fill")[0].detail["how"]


def test_a_hop_goes_on_in_another_graph_where_the_same_thing_has_another_name(world, tmp_path):
    path = tmp_path / "people.jsonl"
    people = [
        {"id": "p1", "types": ["person"], "name": "I. V. Varnholt", "aliases": [DIRECTOR]},
        {"head": "p1", "relation": "spouse", "tail": "p2"},
        {"id": "p2", "types": ["person"], "name": "Greta Lind"},
    ]
    path.write_text("\n".join(map(json.dumps, people)))
    opened = clew.KnowledgeBase(world)
    opened.graphs.add(path)
    chain = f"{FILM} >> director >> #1; #1 >> spouse >> #2; final answer: #2"
    try:
        answer, _ = run(world, Agent(chain), "Whom did the director marry?")
        assert answer.text == "Greta Lind"
        assert [hit.node.document_name for hit in answer.evidence] == ["films", "people"]
        (text,) = steps(answer, "fill")[1].detail["same"]
        assert text == f"films:{DIRECTOR} is people:p1: alias '{DIRECTOR}'"
    finally:
        opened.graphs.remove("people")


def test_a_triple_that_was_extracted_comes_with_its_passage(world):
    passage = world.document(next(d.key for d in world.documents() if d.name == f"{DIRECTOR}.txt"))
    node = next(node for node in world.document_nodes(passage.key) if node.kind == "passage")
    builder = world.graphs.create_builder("extracted")
    builder.add_edge(DIRECTOR, "birthplace", TOWN, {"passage": node.id, "document": node.document_name})
    builder.add_edge(DIRECTOR, "friend", "Nobody", {"passage": "gone:1"})
    world.graphs.store_graph(builder, [])
    try:
        chain = f"{DIRECTOR} >> birthplace >> #1; final answer: #1"
        answer, _ = run(world, Agent(chain), f"Where was {DIRECTOR} born?", "chain(k=3, sources=kg)")
        assert answer.text == TOWN
        assert [hit.node.id for hit in answer.evidence][1:] == [node.id]
        answer, _ = run(world, Agent(chain.replace("birthplace", "friend")), "Who?", "chain(k=3, sources=kg)")
        assert answer.text == "Nobody" and len(answer.evidence) == 1
    finally:
        world.graphs.remove("extracted")
