"""What wordings mean, end to end: nothing that is denied is answered as if it were said (answers: test_focus.py)."""

import pytest

from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.knowledge_base import registry
from clew.methods.focus.triples_writer import align_to_schema, reply_to_text
from clew.models import create_language_model
from clew.store.store import Store
from clew.triples.language.chain import NOT, IncorrectTripleFormatError
from clew.triples.language.typed_parsing import parse_typed
from film_world import GLASS, LOW, NINE, SALT, TIN, films
from link_graphs import graph_of
from scripted import ScriptedServer

ALL = {SALT, LOW, TIN, GLASS, NINE}
OTHERS = {TIN, NINE}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    with Store.open(tmp_path_factory.mktemp("wording") / "base", create=True) as store:
        films(store)
        yield store


@pytest.fixture(scope="module")
def graph(base):
    return base.snapshot().graph("films")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('#1 >> directed_by >> "not Ilse Varnholt"', OTHERS),
        ("#1 >> directed_by >> not ilse varnholt", OTHERS),
        ('#1 >> directed_by >> "without Ilse Varnholt"', OTHERS),
        ("not Ilse Varnholt >> directed >> #1", OTHERS),
        ('"not Ilse Varnholt" >> directed >> #1', OTHERS),
        ("#1 >> directed_by >> Not Ilse Varnholt", OTHERS),
        ("#1 >> directed_by >> NOT Ilse Varnholt", OTHERS),
        ("#1 >> not_directed_by >> Ilse Varnholt", OTHERS),
        ('#1 >> "was_not_directed_by" >> Ilse Varnholt', OTHERS),
        ("negation: #1 >> directed_by >> Ilse Varnholt", OTHERS),
        ("NOT: #1 >> directed_by >> Ilse Varnholt", OTHERS),
        ("(not #1, directed_by, Ilse Varnholt)", OTHERS),
        ("none #1 >> directed_by >> Ilse Varnholt", OTHERS),
        ("#1 -not-directed-by-> Ilse Varnholt", OTHERS),
        ("#1.release_year not between 1932 and 1934", {SALT, NINE}),
        ("#1.release_year is not between 1932 and 1934", {SALT, NINE}),
        ('#1."not release_year" >= 1933', {SALT, LOW}),
        ("#1.not_release_year >= 1933", {SALT, LOW}),
        ("#1.colour isn't green", {LOW, TIN, NINE}),
        ('#1 >> colour >> "not green"', {TIN, NINE}),
        ("#1.release_year > 1931 and < 1934", {LOW, TIN}),
        ("#1.release_year > 1931 and #1.release_year < 1934", {LOW, TIN}),
        ("#1.release_year >= 1932, #1.release_year <= 1933", {LOW, TIN}),
        ("#1 >> starred_actors >> at least 2 persons", {SALT, LOW, TIN, NINE}),
        ("#1 >> starred_actors >> at least 3 people", {NINE}),
        ("#1 >> starred_actors >> exactly 1 person", {GLASS}),
        ('#1 >> starred_actors >> "only Dorte Halvik"', {GLASS}),
    ],
)
def test_what_a_person_writes(base, text, expected):
    output = f"#1 : film; {text}; final answer: #1"
    answer = registry.build_method("focus", base).answer(Question(output, chain=output), TrailRecorder())
    assert set(answer.values) == expected


def test_a_type_that_the_graph_does_not_have_is_not_looked_up(base):
    text = "#1 : film; #1 >> starred_actors >> at least 2 actors; final answer: #1"
    answer = registry.build_method("focus", base).answer(Question(text, chain=text), TrailRecorder())
    assert not answer.values and list(answer.constraints.dropped) == ["#2 : actors"]
    assert {ranked.name for ranked in answer.ranking if ranked.meets_rest} == {SALT, LOW, TIN, NINE}


def reply(quantifier="", relation="directed_by", tail="Ilse Varnholt", types=(), head="#1", **more):
    triples = [{"quantifier": quantifier, "head": head, "relation": relation, "tail": tail}]
    given = [{"of": "#1", "type": "film"}, *types]
    return {"types": given, "triples": triples, "conditions": [], "wishes": [], "answer": "#1"} | more


def of(property, test, value, high=None):
    return [{"of": "#1", "property": property, "test": test, "value": value, "high": high}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (reply(), {SALT, LOW, GLASS}),
        (reply("not"), OTHERS),
        (reply(tail="not Ilse Varnholt"), OTHERS),
        (reply(tail="!= Ilse Varnholt"), OTHERS),
        (reply("not", tail="not Ilse Varnholt"), OTHERS),
        (reply(relation="not directed_by"), OTHERS),
        (reply(relation="no colour", tail="green"), {TIN, NINE}),
        (reply(relation="starred_actors", tail="at least 3 people"), {NINE}),
        (reply("at least 3", relation="starred_actors", tail="person #2"), {NINE}),
        (reply(triples=[], conditions=of("not release_year", ">", 1932)), {SALT, LOW}),
        (reply(triples=[], conditions=of("release_year", ">", "1,934")), {NINE}),
    ],
)
def test_what_a_model_writes(base, text, expected):
    with ScriptedServer([text]) as server:
        method = registry.build_method("focus(form=none)", base, llm=create_language_model(server.llm))
        answer = method.answer(Question("Which films?"), TrailRecorder())
    assert set(answer.values) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        *(
            reply(item)
            for item in ("one", "exactly", "!=", "exists", "any", "none", "None", "2", "different")
        ),
        reply(tail="!Ilse Varnholt"),
        reply(types=[{"of": "#1", "type": "not town"}]),
        reply(triples=[], conditions=of("release_year", ">", "soon")),
        reply(head="two #1"),
    ],
)
def test_what_a_model_is_told_and_asked_again(base, text):
    with ScriptedServer([text, reply("not")]) as server:
        method = registry.build_method("focus(form=none)", base, llm=create_language_model(server.llm))
        answer = method.answer(Question("Which films?"), TrailRecorder())
    if text["triples"] and text["triples"][0]["head"] == "two #1":  # a name, of which there is none
        assert len(server.requests) == 1 and not answer.values
    else:
        assert "Your last reply could not be used" in server.requests[1].user
        assert set(answer.values) == OTHERS


@pytest.mark.parametrize(
    ("text", "types", "tail"),
    [
        ("Mambo #1", (), '"Mambo #1"'),
        ("Symphony #1", ("film",), '"Symphony #1"'),
        ("a song #2", ("song",), "#2"),
        ("Songs #2", ("song",), "#2"),
        ("(film) ?x", (), "#3"),
        ("# 2", (), "#2"),
        ("#2 (song)", (), "#2"),
        ("no song #2", ("song",), "#2"),
        ("Track #2 by Bob", ("track",), '"Track #2 by Bob"'),
    ],
)
def test_what_a_model_means_by_a_number(text, types, tail):
    more = {"quantifier": "", "head": "#1", "relation": "of", "tail": "#2"}
    result = reply(tail=text)
    result["triples"].append(more)
    read = parse_typed(reply_to_text(result, types))
    assert read.statement(0).endswith(f" >> directed_by >> {tail}")
    assert ("song" in str(read.types).casefold()) == ("song" in text.casefold() and tail[0] == "#")


def test_denials_that_a_graph_has_are_its_own(tmp_path, graph):
    with Store.open(tmp_path / "base", create=True) as base:
        own = graph_of(
            base,
            [
                ("salt", "not_compatible_with", "zinc"),
                ("salt", "compatible_with", "tin"),
                ("salt", "never_by", "not me"),
            ],
            zinc={"types": ["not metal", "metal"], "properties": {"not rated": 1, "rated": 3}},
        )

        def fit(text):
            return str(align_to_schema(parse_typed(f"{text}; final answer: #1"), [own]).chain).partition(
                "; final"
            )[0]

        assert fit('#1 >> "not_compatible_with" >> zinc') == '#1 >> "not_compatible_with" >> zinc'
        assert fit("#1 >> not compatible with >> zinc") == "not #1 >> compatible with >> zinc"
        assert fit("not #1 >> by >> Bob") == '#1 >> "never_by" >> Bob'
        assert fit("#1 >> knows >> not me") == '#1 >> knows >> "not me"'
        assert fit("#1 >> knows >> not zinc") == "not #1 >> knows >> zinc"
        assert (
            fit('#1 : "not metals"; #1."not rated" = 1; #1.rating = 3') == '#1."not rated" = 1; #1.rated = 3'
        )
        assert fit("#1 >> by >> Not Zinc") == "not #1 >> by >> Zinc"
        assert fit("#1 >> in >> Not Another Movie") == '#1 >> in >> "Not Another Movie"'
        assert fit('#1 : "not metal"') == '#1 : "not metal"'
    fit = align_to_schema(parse_typed('#1 : "not film"; #1.release_year > 1; final answer: #1'), [graph])
    assert not fit.chain.types and fit.notes == ("type 'not film' left out: it denies",)
    fit = align_to_schema(
        parse_typed('"not Ilse Varnholt" : person; #1 >> by >> "not Ilse Varnholt"'), [graph]
    )
    assert fit.chain.quantifiers == {0: NOT} and fit.chain.constant_types == {"Ilse Varnholt": ("person",)}


def test_a_type_that_denies_is_no_type():
    with pytest.raises(IncorrectTripleFormatError, match="denies"):
        reply_to_text(reply(types=[{"of": "#2", "type": "film or not a town"}]), ["town"])
