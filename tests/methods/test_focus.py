"""4StepFocus by triples that a person wrote: no model. Answers are worked by hand from tests/film_world.py:

f1 The Salt Orchard 1931 green       by p1, with p2 p3      p1, p2 born in Dunmere
f2 Low Water        1932 light green by p1, with p1 p4      p3, p4 born in Saltreach
f3 The Tin Parade   1933 red         by p5, with p2 p4      p5 born in Vessby
f4 Glass Harvest    1934 green       by p1, with p3
f5 Nine Lanterns    1935 grey        by p5, with p2 p3 p4
"""

import pytest

import clew
from clew.core.errors import NotFound, UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import Question, Scope
from clew.knowledge_base import registry
from clew.parse.graphs.formats import GraphReadOptions
from film_world import BORN, GLASS, LOW, NINE, SALT, TIN, films, nodes, triples
from link_graphs import graph_of
from retrieve_documents import add
from tiny_encoder import make_encoder

FILM = "#1 : film; "
END = "; final answer: #1"
ALL = Scope()


def ask(store, text, question="", recipe="focus", scope=ALL, encoder=None):
    method = registry.build_method(recipe, store, encoder=encoder)
    return method.answer(Question(question or text, scope, text), TrailRecorder())


def details(answer, name):
    return [step.detail for step in answer.trail if step.name == name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#1 >> directed_by >> Ilse Varnholt", {SALT, LOW, GLASS}),
        ("Ilse Varnholt >> directed >> #1", {SALT, LOW, GLASS}),  # turned, in other words
        ("#1 >> directed_by >> ilse varnhold", {SALT, LOW, GLASS}),  # a typo
        ("#1 >> directed_by >> Ilse Varnholt; not #1 >> starred_actors >> Ilse Varnholt", {SALT, GLASS}),
        ("#1 >> directed_by >> #2; not #1 >> starred_actors >> #2", {SALT, TIN, GLASS, NINE}),
        ("#1 >> starred_actors >> #2; #2 >> born_in >> Dunmere", {SALT, LOW, TIN, NINE}),
        ("at least 2 #1 >> starred_actors >> #2; #2 >> born_in >> Saltreach", {NINE}),
        ("exactly 1 #1 >> starred_actors >> #2", {GLASS}),
        ("only #1 >> starred_actors >> #2; #2 >> born_in >> Saltreach", {GLASS}),
        ("at most 2 #1 >> starred_actors >> #2; #1 >> directed_by >> Marit Solheim", {TIN}),
        ("#1.release_year < 1933", {SALT, LOW}),
        ("#1.release_year between 1932 and 1934; #1 >> directed_by >> Ilse Varnholt", {LOW, GLASS}),
        ("#1.colour = green", {SALT, GLASS}),
        ("#1.colour contains green", {SALT, LOW, GLASS}),
        ("not #1.colour contains green", {TIN, NINE}),
        ("#1 >> colour >> Red", {TIN}),  # a property, asked for as a triple
        ("#1 >> colour >> green", {SALT, GLASS}),  # the value itself: "light green" only says green
        (
            "#1 >> directed_by >> #2; #2 >> born_in >> #3; #4 >> born_in >> #3; #1 >> starred_actors >> #4",
            {SALT, LOW},
        ),
    ],
)
def test_answers_are_those_that_meet_all_constraints(base, text, expected):
    films(base)
    answer = ask(base, FILM + text + END)
    assert set(answer.values) == expected
    met = [ranked.meets_all for ranked in answer.ranking]
    assert met == sorted(met, reverse=True) and sum(met) == len(expected)
    assert not any(ranked.missed_constraints for ranked in answer.ranking if ranked.meets_all)
    assert all(ranked.missed_constraints for ranked in answer.ranking if not ranked.meets_all)
    assert details(answer, "exact") or not details(answer, "substitute")[0].get("given up")


def test_an_answer_has_the_triples_that_it_meets(base):
    films(base)
    answer = ask(
        base, f"{FILM}#1 >> starred_actors >> #2; #2 >> born_in >> Dunmere; #1.release_year = 1932{END}"
    )
    (first, *_) = answer.ranking
    checks = {
        check.text: (check.satisfaction, [hit.node.text for hit in check.hits]) for check in first.checks
    }
    assert checks == {
        "#1 >> starred_actors >> #2": (1.0, ["Low Water >> starred_actors >> Ilse Varnholt"]),
        "#2 >> born_in >> Dunmere": (1.0, ["Ilse Varnholt >> born_in >> Dunmere"]),
        "#1.release_year = 1932": (1.0, ["Low Water >> release_year >> 1932"]),
        "#1 : film": (1.0, []),
    }
    assert {hit.node.text for hit in answer.evidence} >= {
        "Low Water >> starred_actors >> Ilse Varnholt",
        "Ilse Varnholt >> born_in >> Dunmere",
    }
    assert all(answer.evidence[0].node.text == quote.text for quote in answer.quotes[:1])
    assert all(ranked.meets_all for ranked in answer.ranking)


def test_contradictory_constraints_have_no_answer_and_near_misses_are_listed_apart(base):
    films(base)
    text = f"{FILM}#1 >> directed_by >> Marit Solheim; #1.release_year < 1933{END}"
    answer = ask(base, text)
    assert not answer.values and not answer.abstained
    assert answer.text == "None: no node of 'films' meets all of this"
    assert {ranked.name: ranked.missed_constraints for ranked in answer.ranking} == {
        TIN: ("#1.release_year < 1933",),
        NINE: ("#1.release_year < 1933",),
        SALT: ("#1 >> directed_by >> Marit Solheim",),
        LOW: ("#1 >> directed_by >> Marit Solheim",),
    }


def test_a_type_that_contradicts_has_no_answer(base):
    films(base)
    answer = ask(base, f"#1 : town; #1 >> directed_by >> Marit Solheim{END}")
    assert not answer.values
    assert {ranked.name: ranked.missed_constraints for ranked in answer.ranking} == {
        TIN: ("#1 : town",),
        NINE: ("#1 : town",),
    }


def test_near_names_give_up_the_weakest_of_contradictory_constraints(base):
    films(base)
    answer = ask(base, f"#1 : town; #1 >> directed_by >> Marit Solheym{END}")  # a typo, so nothing is exact
    assert details(answer, "substitute")[0]["given up"] == ["#1 : town"]
    # What misses a constraint is no answer: it is named as what it is, and listed as a near miss.
    assert answer.abstained and not answer.values and answer.constraints.matching == 0
    assert answer.text.startswith(
        "No answer: nothing meets all of this. Without '#1 : town' there would be: "
    )
    assert TIN in answer.text and NINE in answer.text
    rest = [ranked for ranked in answer.ranking if ranked.meets_rest]
    assert {item.name for item in rest} == {TIN, NINE} and answer.ranking[:2] == tuple(rest)
    assert {(item.list_name, item.missed_constraints) for item in rest} == {("near miss", ("#1 : town",))}
    assert not any(ranked.meets_all for ranked in answer.ranking)


def test_what_a_graph_does_not_have_ranks_and_is_said(base):
    films(base)
    answer = ask(base, f"{FILM}#1 >> directed_by >> Ilse Varnholt; #1 >> praised by >> Otto Bexley{END}")
    assert answer.abstained and not answer.values and answer.constraints.matching_rest == 3
    assert {ranked.name for ranked in answer.ranking if ranked.list_name == "near miss"} == {SALT, LOW, GLASS}
    assert answer.text.startswith(
        "No answer: not all of this can be looked up. Without '#1 >> praised by >> Otto Bexley' there would be: "
    )
    assert details(answer, "prepare")[0]["dropped"] == {
        "#1 >> praised by >> Otto Bexley": "'Otto Bexley' is not in the graph"
    }
    met = {check.text: check.satisfaction for check in answer.ranking[0].checks}
    assert met["#1 >> praised by >> Otto Bexley"] is None
    none = ask(base, f"#1 >> praised by >> Otto Bexley{END}", "Which film about an orchard is praised?")
    assert none.abstained and none.ranking and not any(ranked.meets_all for ranked in none.ranking)


def test_a_preference_reorders_answers_and_drops_none(base):
    films(base)
    answer = ask(base, f"{FILM}#1 >> directed_by >> Marit Solheim; #1 ~ slow and dreamlike{END}")
    assert answer.values == (NINE, TIN)
    turned = ask(base, f"{FILM}#1 >> directed_by >> Marit Solheim; #1 ~ a loud farce with bands{END}")
    assert turned.values == (TIN, NINE)


def test_a_near_name_with_several_candidates_ranks_by_their_scores(base):
    # Where a node is called exactly so, it is that one. Else both that are called nearly so count, the nearest first.
    graph_of(
        base,
        [("a", "by", "x"), ("b", "by", "y"), ("c", "by", "z")],
        x={"name": "Kismet"},
        y={"name": "Kismet (song)"},
        z={"name": "Kestrel"},
    )
    assert ask(base, f"#1 >> by >> Kismet{END}").values == ("a",)
    answer = ask(base, f"#1 >> by >> kismet{END}")
    assert answer.values == ("a", "b")
    assert [item.checks[0].satisfaction for item in answer.ranking[:2]] == [1.0, 0.96]


def test_what_the_question_names_may_answer_unless_it_says_otherwise(base):
    films(base)
    text = "Low Water >> directed_by >> #2; #1 >> directed_by >> #2"
    assert set(ask(base, text + END).values) == {SALT, LOW, GLASS}
    assert set(ask(base, f'{text}; #1 != "Low Water"{END}').values) == {SALT, GLASS}
    graph_of(base, [("n", "likes", "n")], "narcissus", n={"name": "Narcissus"})
    itself = ask(base, f"Narcissus >> likes >> #1{END}", scope=Scope(graphs=frozenset({"narcissus"})))
    assert itself.values == ("Narcissus",)


def test_any_relation_is_the_papers_recipe(base):
    films(base)
    text = f"{FILM}#1 >> directed_by >> Ilse Varnholt{END}"
    assert set(ask(base, text).values) == {SALT, LOW, GLASS}
    loose = ask(base, f"{FILM}#1 >> directed_by >> Dorte Halvik{END}", recipe="focus(relations=any)")
    assert set(loose.values) == {SALT, GLASS, NINE}  # she acts in them
    assert details(loose, "prepare")[0]["relations"] == {
        "directed_by": ">> any >> or << any << (any relation)"
    }


def test_a_value_of_a_property_is_an_answer(base):
    films(base)
    answer = ask(base, f"Nine Lanterns >> release_year >> #1{END}")
    assert answer.text == "1935" and not answer.abstained
    assert [hit.node.text for hit in answer.evidence] == ["Nine Lanterns >> release_year >> 1935"]


def test_only_the_target_is_restricted_to_declared_answers(tmp_path):
    with clew.open(tmp_path / "kb", create=True) as base:
        rows = ["id,name,type", "f1,Low Water,film", "p1,Ilse,person", "p2,Emil,person"]
        (tmp_path / "n.csv").write_text("\n".join(rows) + "\n")
        (tmp_path / "e.csv").write_text("head,relation,tail\nf1,by,p1\nf1,with,p2\n")
        options = GraphReadOptions(answers=("film",))
        base.graphs.add([tmp_path / "n.csv", tmp_path / "e.csv"], name="g", options=options)
        asked = base.ask("", recipe="focus", chain="#1 >> by >> Ilse; #1 >> with >> #2; final answer: #1")
        assert asked.values == ("Low Water",)
        asked = base.ask("", recipe="focus", chain="Low Water >> with >> #1; final answer: #1")
        assert asked.abstained or not any(ranked.meets_all for ranked in asked.ranking)
        why = base.why_not("Emil", "Low Water >> with >> #1; final answer: #1")
        assert why[0].restriction.startswith("it is not of the types that may answer")


def test_candidates_are_sorted_by_vector_and_filled_up(base, tmp_path):
    films(base)
    tiny = make_encoder(tmp_path / "tiny").path
    encoder = registry.load_encoder(f"onnx:{tiny}")
    answer = ask(
        base, f"{FILM}#1 >> directed_by >> Marit Solheym{END}", "nine lanterns night", encoder=encoder
    )
    assert {ranked.name for ranked in answer.ranking if ranked.meets_all} == {TIN, NINE}
    assert all(ranked.ranked_by.startswith("vector ") for ranked in answer.ranking)
    assert {ranked.name for ranked in answer.ranking if not ranked.meets_all} == {SALT, LOW, GLASS}
    firm = [ranked.hit.score for ranked in answer.ranking if ranked.meets_all]
    assert firm == sorted(firm, reverse=True)
    assert answer.context == tuple(ranked.hit for ranked in answer.ranking)


def _apart(store, born="born_in"):
    """Store the films in one graph and where people were born (``born``) in another, under other ids."""
    by_id = nodes()
    graph_of(
        store,
        [triple for triple in triples() if triple[1] != "born_in"],
        "films",
        **{id: value for id, value in by_id.items() if id[0] in "fp"},
    )
    graph_of(
        store,
        [(f"x{head}", born, f"x{tail}") for head, tail in BORN.items()],
        "people",
        **{f"x{id}": value for id, value in by_id.items() if id[0] in "pt"},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{FILM}#1 >> directed_by >> #2; #2 >> born_in >> Dunmere{END}", {SALT, LOW, GLASS}),
        (f"The Tin Parade >> starred_actors >> #2; #2 >> born_in >> #1{END}", {"Dunmere", "Saltreach"}),
        (
            f"{FILM}#1 >> starred_actors >> #2; #2 >> born_in >> #3; Marit Solheim >> born_in >> #3{END}",
            set(),
        ),
    ],
)
def test_several_graphs_hold_a_question_together(base, text, expected):
    _apart(base)
    answer = ask(base, text)
    assert set(answer.values) == expected
    assert {item.name for item in answer.ranking if item.meets_all} == expected
    if not expected:  # nobody but the director was born in Vessby, and she acts in nothing
        assert answer.abstained and not details(answer, "join graphs")
        return
    (step,) = details(answer, "join graphs")
    assert set(step["graphs"]) == {"films", "people"} and step["same"]
    for ranked in answer.ranking:
        if ranked.meets_all:
            assert all(check.satisfaction == 1 for check in ranked.checks)
            assert {hit.node.document_name for check in ranked.checks for hit in check.hits} == {
                "films",
                "people",
            }


@pytest.mark.slow
def test_a_relation_that_is_little_like_its_words_is_held_all_the_same(base):
    _apart(base, born="birth_municipality")
    answer = ask(base, f"{FILM}#1 >> directed_by >> #2; #2 >> place of birth >> Dunmere{END}")
    assert set(answer.values) == {SALT, LOW, GLASS}
    (step,) = details(answer, "join graphs")
    assert step["graphs"] == {
        "films": ["#1 >> directed_by >> #2"],
        "people": ["#2 >> place of birth >> Dunmere"],
    }
    # Met no further than the relation is like the words, as in one graph.
    assert {check.text: check.satisfaction for check in answer.ranking[0].checks} == {
        "#1 >> directed_by >> #2": 1.0,
        "#1 : film": 1.0,
        "#2 >> place of birth >> Dunmere": 0.5,
    }


def test_two_graphs_that_hold_the_whole_question_answer_side_by_side(base):
    graph_of(base, [("a", "by", "x")], "one", a={"name": "Alpha"}, x={"name": "Kismet"})
    graph_of(base, [("b", "by", "y")], "two", b={"name": "Beta"}, y={"name": "Kismet"})
    assert set(ask(base, f"#1 >> by >> Kismet{END}").values) == {"Alpha", "Beta"}
    alone = ask(base, f"#1 >> by >> Kismet{END}", scope=Scope(graphs=frozenset({"two"})))
    assert alone.values == ("Beta",)


def test_a_wish_is_looked_for_in_passages_about_the_answer(base):
    films(base)
    add(
        base,
        "reviews.txt",
        "Reviews",
        "Glass Harvest won the Golden Reed for its editing, to nobody's surprise.",
    )
    base.catch_up()
    answer = ask(base, f"{FILM}#1 >> directed_by >> Ilse Varnholt; #1 ~ won the Golden Reed{END}")
    assert answer.values[0] == GLASS
    (check,) = [item for item in answer.ranking[0].checks if item.text == "~ won the Golden Reed"]
    # It is mentioned, which is no proof: it ranks, and stays unknown.
    assert check.satisfaction is None and "Golden Reed" in check.hits[0].node.text


@pytest.mark.slow
def test_an_edge_that_a_graph_lacks_is_read_where_its_relation_is_known(base):
    # Others were born somewhere in this graph, Marit Solheim was not: the document knows.
    graph_of(base, [triple for triple in triples() if triple != ("p5", "born_in", "t3")], "films", **nodes())
    add(base, "people.txt", "People", "Marit Solheim was born in Vessby by the sea.")
    base.catch_up()
    answer = ask(
        base,
        "The Tin Parade >> directed_by >> #1; #1 >> born_in >> #2; final answer: #2",
        recipe="focus(reader=span)",
    )
    assert answer.text == "Vessby"
    assert details(answer, "substitute")[0]["given up"] == ["#1 >> born_in >> #2"]
    assert {hit.node.text for hit in answer.evidence} == {
        "The Tin Parade >> directed_by >> Marit Solheim",
        "Marit Solheim was born in Vessby by the sea.",
    }
    alone = ask(
        base,
        "The Tin Parade >> directed_by >> #1; #1 >> born_in >> #2; final answer: #2",
        recipe="focus(sources=none)",
    )
    assert not alone.values and alone.text == "None: no node of 'films' meets all of this"


def test_a_base_without_graphs_says_so(base):
    with pytest.raises(UsageError, match="knowledge graphs and there is none"):
        ask(base, f"#1 >> by >> Kismet{END}")


def test_without_a_model_a_question_needs_triples_of_its_own(base):
    films(base)
    with pytest.raises(UsageError, match="--triples"):
        ask(base, "", "Which films are green?")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected", "alone"),
    [
        (LOW, ("#1 >> directed_by >> Marit Solheim", "#1.release_year > 1933"), False),
        (TIN, ("#1.release_year > 1933",), True),
        (NINE, (), False),
    ],
)
def test_why_not(base, name, expected, alone):
    films(base)
    text = f"{FILM}#1 >> directed_by >> Marit Solheim; #1.release_year > 1933{END}"
    (exclusion,) = clew.KnowledgeBase(base).why_not(name, text)
    assert (exclusion.name, set(exclusion.constraints), exclusion.each_alone) == (name, set(expected), alone)
    assert exclusion.is_answer == (not expected)


def test_why_not_asks_no_model_whatever_reads_for_the_answer(base):
    films(base)
    add(base, "people.txt", "People", "Marit Solheim was born in Vessby by the sea.")
    base.catch_up()
    # The triple that no graph holds is read from the document, by a reader that needs no model.
    text = f"{FILM}#1 >> directed_by >> Marit Solheim; Marit Solheim >> shot in >> #2{END}"
    recipe = "focus(reader=cited, form=pointwise, entities=model)"
    (exclusion,) = clew.KnowledgeBase(base).why_not(SALT, text, recipe=recipe)
    assert exclusion.constraints == ("#1 >> directed_by >> Marit Solheim",)


def test_why_not_of_what_is_not_there(base):
    films(base)
    with pytest.raises(NotFound, match="nothing called 'Zanzibar Nights'"):
        clew.KnowledgeBase(base).why_not("Zanzibar Nights", f"{FILM}#1.release_year > 1933{END}")
    (named,) = clew.KnowledgeBase(base).why_not(
        LOW, f"low water >> directed_by >> #2; #1 >> directed_by >> #2{END}"
    )
    assert named.restriction == "it is what the question itself names"
