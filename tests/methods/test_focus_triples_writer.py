"""Typed triples from questions: by hand, by a model in JSON or in text, fitted to the graph, and never a failure."""

import json

import pytest

from clew.core.errors import UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.methods.focus.schema import SchemaLimits
from clew.methods.focus.triples_writer import TriplesWriter, align_to_schema, parse_given_triples
from clew.models import create_language_model
from clew.store.store import Store
from clew.triples.language.chain import (
    NOT,
    Chain,
    Condition,
    IncorrectTripleFormatError,
    Term,
    Triple,
    TypedChain,
    at_least,
)
from clew.triples.language.typed_parsing import parse_typed
from malformed import MALFORMED
from scripted import ScriptedServer


@pytest.fixture(scope="module")
def base(schemas):
    return schemas


@pytest.fixture(scope="module")
def graph(base):
    return base.snapshot().graph("films")


QUESTION = "Which slow films did David Lynch direct in the 1980s without Kyle MacLachlan?"
REPLY = {
    "types": [{"of": "#1", "type": "film"}, {"of": "David Lynch", "type": "person"}],
    "triples": [
        {"quantifier": "", "head": "#1", "relation": "directed_by", "tail": "David Lynch"},
        {"quantifier": "not", "head": "#1", "relation": "starred_actors", "tail": "Kyle MacLachlan"},
    ],
    "conditions": [
        {"of": "#1", "property": "release_year", "test": "between", "value": 1980, "high": "1989"}
    ],
    "wishes": ["slow"],
    "answer": "#1",
}
TEXT = (
    "#1 : film; David Lynch : person; #1 >> directed_by >> David Lynch; not #1 >> starred_actors >> Kyle MacLachlan; "
    "#1.release_year between 1980 and 1989; #1 ~ slow; final answer: #1"
)
WANTED = TypedChain(
    Chain(
        (
            Triple(Term("#1"), "directed_by", Term("David Lynch")),
            Triple(Term("#1"), "starred_actors", Term("Kyle MacLachlan")),
        ),
        1,
    ),
    {1: ("film",)},
    {"David Lynch": ("person",)},
    {1: NOT},
    (Condition(1, "release_year", "between", 1980, 1989),),
    ("slow",),
)


def write_triples(replies, graphs, question=QUESTION, **more):
    """Return the questions, the steps of the trail and the requests."""
    with ScriptedServer(replies) as server:
        record = TrailRecorder()
        writer = TriplesWriter(
            create_language_model(server.llm),
            load_prompt("focus-triples"),
            **more,
        )
        return writer.write(Question(question), graphs, record), record.steps, server.requests


def test_a_question_is_written_over_the_schema(graph):
    chains, (step,), (request,) = write_triples([REPLY], [graph])
    assert chains == [WANTED]
    assert step.name == "triples" and step.usage.calls == 1
    assert step.detail == {
        "triples": str(WANTED),
        "prompt": "focus-triples.v1",
        "usable": 1,
        "schema": "films: 2 types, 2 relations, 3 properties",
        "samples": 1,
    }
    assert "- film >> directed_by >> person: 3 edges" in request.user and request.user.endswith(QUESTION)
    assert request.format == "json_schema" and request.body["temperature"] == 0


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        TEXT.replace("; ", "\n"),
        f"<think>JSON?</think>\n```json\n{json.dumps(REPLY)}\n```",
        json.dumps(REPLY).replace('"high": "1989"', '"high": 1989, "note": "the 1980s"'),
        json.dumps(
            {
                "types": [{"of": "?film", "type": "film"}, {"of": "David Lynch", "type": "person"}],
                "triples": [
                    {"head": "?film", "relation": "directed_by", "tail": "David Lynch"},
                    {"head": "film ?film", "relation": "not starred_actors", "tail": "Kyle MacLachlan"},
                ],
                "conditions": [
                    {
                        "of": "?film",
                        "property": "release_year",
                        "test": "between",
                        "value": "1980",
                        "high": "1989",
                    }
                ],
                "wishes": ["slow"],
                "answer": "?film",
            }
        ),
    ],
)
def test_other_forms_of_the_same_reply(graph, reply):
    chains, steps, requests = write_triples([reply], [graph])
    assert chains == [WANTED] and len(steps) == len(requests) == 1


def test_keys_that_are_left_out_are_empty(graph):
    reply = {
        "triples": [{"head": "#1", "relation": "directed_by", "tail": 'The "X; Y" >> Duo'}],
        "answer": "#1",
    }
    chains, _, requests = write_triples([reply], [graph])
    assert chains == [TypedChain(Chain((Triple(Term("#1"), "directed_by", Term('The "X; Y" >> Duo')),), 1))]
    assert len(requests) == 1


def test_what_was_wrong_is_said_and_asked_again(graph):
    flawed = {**REPLY, "triples": [{"quantifier": "", "head": "#1", "relation": "#2", "tail": "Lynch"}]}
    chains, (step,), requests = write_triples([flawed, REPLY], [graph])
    assert chains == [WANTED] and step.usage.calls == 2 == len(requests)
    assert "Your last reply could not be used: an unknown as relation" in requests[1].user
    assert step.detail["errors"] == "IncorrectTripleRelationMaskError 1" and step.detail["usable"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("samples", [1, 2])
def test_a_malformed_reply_is_no_failure(graph, reply, samples):
    chains, (step,), requests = write_triples([reply] * (samples + 1), [graph], samples=samples)
    if reply == MALFORMED["the prompt again"]:  # which holds a triple
        assert [str(chain) for chain in chains] == ["HEAD >> RELATION >> #1; final answer: #1"]
    else:
        assert chains == [] and step.detail["triples"] == "" and step.detail["errors"]
        assert len(requests) == samples + 1


def test_samples_vote(graph):
    other = {**REPLY, "conditions": []}
    turned = {**REPLY, "triples": REPLY["triples"][::-1], "wishes": ["not fast"]}
    chains, (step,), requests = write_triples([other, REPLY, "no", turned], [graph], samples=4)
    assert len(requests) == 4 and {request.body["temperature"] for request in requests} == {0.7}
    # Replies come in any order; two of the three that can be used say the same.
    assert len(chains) == 2 and chains[0].conditions and not chains[1].conditions
    assert step.detail["usable"] == 3 and len(step.detail["others"]) == 1 and step.detail["errors"]


def test_the_prompt_carries_a_cut_schema_and_says_so(base):
    graphs = [base.snapshot().graph(name) for name in ("films", "wide")]
    room = SchemaLimits(types=5, relations=6, properties=4)
    _, (step,), (request,) = write_triples([TEXT], graphs, "Which horse won the race?", room=room)
    assert "Relations (6 of 203)" in request.user and "race >> won_by >> horse" in request.user
    assert "relation150" not in request.user
    assert step.detail["schema"].endswith("wide: 5 of 402 types, 6 of 203 relations, 4 of 201 properties")


def test_types_and_properties_are_called_as_the_graph_calls_them(graph):
    chain = parse_typed(
        "?f : Films or spaceship; ?a : persno; ?f >> directed by >> David Lynch (person); ?f >> release year >> 1986;"
        " at least 2 ?f >> stars >> ?a; not ?f >> colour >> blue; ?f.Release-Year < 1990; ?f.length > 90; answer: ?f"
    )
    fit = align_to_schema(chain, [graph])
    assert fit.chain == TypedChain(
        Chain(
            (
                Triple(Term("#1"), "directed by", Term("David Lynch")),
                Triple(Term("#1"), "stars", Term("#2")),
            ),
            1,
        ),
        {1: ("film", "spaceship"), 2: ("person",)},
        {"David Lynch": ("person",)},
        {1: at_least(2)},
        (
            Condition(1, "release_year", "<", 1990),
            Condition(1, "length", ">", 90),
            Condition(1, "release_year", "=", "1986"),
            Condition(1, "colour", "says", "blue", negated=True),
        ),
    )
    assert fit.notes == (
        "'release year' is a property, so its triple is a condition",
        "'colour' is a property, so its triple is a condition",
        "no graph has the property 'length'",
        "type 'Films' read as 'film'",
        "no graph has the type 'spaceship'",
        "type 'persno' read as 'person'",
    )


def test_what_the_trail_says_of_what_was_left_out_and_fitted(graph):
    reply = "Lynch >> born_in >> Montana; #1 : movie; #1 >> directed_by >> Lynch; final answer: #1"
    chains, (step,), _ = write_triples([reply], [graph])
    assert [str(chain) for chain in chains] == ["#1 : movie; #1 >> directed_by >> Lynch; final answer: #1"]
    assert step.detail["dropped"] == ["Lynch >> born_in >> Montana (nothing in it is unknown)"]
    assert step.detail["fitted"] == ["no graph has the type 'movie'"]


def test_a_name_that_the_graph_has_keeps_its_brackets(tmp_path):
    from link_graphs import graph_of

    with Store.open(tmp_path / "base", create=True) as base:
        graph = graph_of(base, [("Crash (film)", "by", "x")], **{"Crash (film)": {"types": ["film"]}})
        chain = parse_typed("Crash (film) >> by >> #1; Ali (film) >> by >> #1; answer: #1")
        heads = [triple.head.text for triple in align_to_schema(chain, [graph]).chain.chain.triples]
        assert heads == ["Crash (film)", "Ali"]


def test_triples_by_hand_need_no_model(graph):
    record = TrailRecorder()
    with ScriptedServer([]) as server:
        writer = TriplesWriter(create_language_model(server.llm), load_prompt("focus-triples"))
        assert writer.write(Question("Who is it?", chain=TEXT), [graph], record) == [WANTED]
        assert not server.requests
    assert record.steps[0].detail == {"triples": str(WANTED), "written by": "hand"}


@pytest.mark.parametrize(
    ("text", "error", "output"),
    [
        ("", UsageError, "needs a language model"),
        (
            "#1 >> by >> Lynch; directed_by Mann; final answer: #1",
            IncorrectTripleFormatError,
            "says nothing: 'direc",
        ),
        ("#1 >> by >> Lynch; Mann : person; final answer: #1", IncorrectTripleFormatError, "Mann : person"),
        ("#1 by Lynch", IncorrectTripleFormatError, "not a head"),
    ],
)
def test_what_a_person_wrote_wrong_is_said(text, error, output):
    with pytest.raises(error, match=output) as raised:
        parse_given_triples(Question("Which?", chain=text), TrailRecorder())
    assert (type(raised.value) is error and ">>" in raised.value.hint) or "constant" in raised.value.hint


def test_the_example_of_the_prompt_can_be_read():
    template = load_prompt("focus-triples")
    example = template.system.rpartition('never carried coal?": ')[2]
    from clew.methods.focus.triples_writer import reply_to_text

    assert str(parse_typed(reply_to_text(template.parse(example)))) == (
        "Corran : river; coal : cargo; #1 : ship; #2 : shipyard; #1 >> built_at >> #2; #2 >> lies_on >> Corran; "
        "not #1 >> carried >> coal; #1.launched between 1870 and 1879; #1 ~ elegant; final answer: #1"
    )
