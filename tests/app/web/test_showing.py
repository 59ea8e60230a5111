"""What the page of an answer is made of: blocks, citations, chains, ranked lists, walks."""

from __future__ import annotations

from itertools import pairwise

import pytest

from clew.app.answers.view import (
    ConstraintCheck,
    TableRow,
    excerpt,
    ranked_rows,
    table_cells,
    view_answer,
    view_chain,
)
from clew.app.answers.walk import COLUMN, HEIGHT, MAX_NODES, draw_walk

TABLE = "Fleet\n\n| boat | year |\n| --- | --- |\n| Lady \\| Annis | 1926 |"


def hit(id, text="", kind="passage", path=(), via=(), score=1.0):
    return {
        "id": id,
        "kind": kind,
        "document": "a.pdf",
        "key": "a",
        "page": 2,
        "section": "One > Two",
        "name": "",
        "text": text,
        "score": score,
        "path": list(path or (id,)),
        "via": list(via),
    }


def answer(text="", evidence=(), quotes=(), trail=(), **more):
    return {
        "answer": text,
        "abstained": False,
        "reader": "extractive",
        "evidence": list(evidence),
        "quotes": [{"node": n, "text": t, "span": list(s)} for n, t, s in quotes],
        "remembered": [],
        "trail": list(trail),
        **more,
    }


def step(name, hits=(), **detail):
    return {"name": name, "detail": detail, "hits": list(hits)}


def marked(pieces):
    return "".join(f"[{one.text}]" if one.marked else one.text for one in pieces)


def test_quotes_are_marked_where_they_stand_and_overlaps_once() -> None:
    assert marked(excerpt("one two three four", [(4, 7), (8, 13)])) == "one [two] [three] four"
    assert marked(excerpt("one two three", [(0, 7), (4, 13)])) == "[one two][ three]"
    assert marked(excerpt("one", [(-4, 99)])) == "[one]"


def test_a_long_passage_is_cut_around_its_quotes_and_never_loses_one() -> None:
    text = "a" * 1000 + "QUOTE" + "b" * 1000
    pieces = excerpt(text, [(1000, 1005)])
    assert marked(pieces) == "… " + "a" * 320 + "[QUOTE]" + "b" * 320 + " …"
    assert marked(excerpt(text, [(1000, 1005)], around=None)) == text.replace("QUOTE", "[QUOTE]")


def test_each_sentence_of_an_extract_has_the_number_of_its_source() -> None:
    made = view_answer(
        answer(
            "She built  it.\nIt was 1901.",
            [hit("a:1", "She built\nit. So."), hit("a:2", "It was 1901."), hit("a:3", "Else.")],
            [("a:1", "She built\nit.", (0, 13)), ("a:2", "It was 1901.", (0, 12))],
        )
    )
    assert [(one.text, one.cites) for one in made.blocks] == [
        ("She built  it.", (1,)),
        ("It was 1901.", (2,)),
    ]
    assert made.how.startswith("sentences taken")
    assert [one.quoted for one in made.citations] == [True, True, False]


def test_what_a_model_wrote_rests_on_all_that_is_quoted() -> None:
    evidence = [hit("a:1", "x"), hit("a:2", "y"), hit("a:3", "z")]
    quotes = [("a:1", "x", (0, 1)), ("a:3", "z", (0, 1))]
    made = view_answer(answer("In 1901.\nBy Ada.", evidence, quotes, reader="http://localhost:1/v1#m"))
    assert [one.cites for one in made.blocks] == [(), (1, 3)]
    assert made.how == "written by m, from the evidence"


def test_an_answer_that_abstains_cites_nothing() -> None:
    made = view_answer(answer("Not found.", [hit("a:1", "x")], abstained=True))
    assert made.heading == "Not answered" and made.blocks[0].cites == ()


def test_tables_in_answers_and_rows_in_evidence_are_tables() -> None:
    assert table_cells(TABLE) == (("boat", "year"), ("Lady | Annis", "1926"))
    row = TableRow("Fleet", (("boat", "year"), ("Lady | Annis", "1926")))
    made = view_answer(
        answer(TABLE, [hit("a:1", TABLE, "table"), hit("a:2", "Fleet. ...", "row")]), {"a:2": row}
    )
    assert [bool(one.cells) for one in made.blocks] == [False, True, False]
    assert made.blocks[-1].cites == (1, 2)
    assert made.citations[0].cells == made.blocks[1].cells
    assert made.citations[1].cells == row.cells and made.citations[1].caption == "Fleet"


WHOLE = [True, True, True, 3]
CHAIN = "Kismet >> director >> #1; #1 >> born in >> #2; #2 >> flag >> #3; final answer: #3"


def test_a_chain_shows_each_unknown_with_its_source() -> None:
    values = {"#1": ["Dieterle"], "#2": ["Germany"], "#3": ["tricolour"]}
    sides = {
        "taken": {"source": "films", "values": ["Dieterle"]},
        "also": {"source": "text", "values": ["Vidor"]},
    }
    trail = [
        step("fill", source="kg", unknown="#1", graph="films", values=["Dieterle"]),
        step("fill", source="text", unknown="#1", values=["Vidor"]),
        step("fill", source="text", unknown="#2", values=["Germany"]),
        step("conflict", unknown="#1", **sides),
        step("filled", filling={"chain": CHAIN, "values": values, "worth": WHOLE}),
    ]
    made = view_chain(trail)
    first = made.hops[0]
    assert (first.head, first.relation, first.tail) == ("Kismet", "director", "#1")
    sources = {name: one.source for name, one in made.unknowns.items()}
    assert sources == {"#1": "the graph films", "#2": "the documents", "#3": "the model's memory"}
    assert made.unknowns["#1"].also == (("the documents", "Vidor"),)
    assert made.final == "#3"


def test_of_several_chains_the_one_is_shown_that_was_answered_from() -> None:
    short = {"chain": "Kismet >> year >> #1; final answer: #1", "values": {"#1": ["1944"]}, "worth": WHOLE}
    long = {
        "chain": CHAIN,
        "values": {"#1": ["Dieterle"], "#2": ["Germany"]},
        "worth": [False, False, True, 2],
    }
    for told in ([short, long], [long, short]):
        made = view_chain([step("filled", filling=one) for one in told])
        assert [one.relation for one in made.hops] == ["year"]


def test_an_unknown_that_was_not_found_stays_open() -> None:
    part = {"chain": CHAIN, "values": {"#1": ["Dieterle"]}, "worth": [False, False, True, 1]}
    made = view_chain([step("filled", filling=part)])
    assert made.unknowns["#1"].values and not made.unknowns["#2"].values
    assert view_chain([step("read")]) is None


def test_ranked_answers_are_a_table_over_all_constraints() -> None:
    def check(constraint, met, *texts):
        return {"constraint": constraint, "met": met, "evidence": [{"id": "x", "text": t} for t in texts]}

    ranked = [
        {"name": "Dune", "id": "films:9", "graph": "films", "by": "vector 0.7", "meets_all": True,
         "checks": [check("#1 >> by >> Lynch", 1.0, "Dune >> by >> Lynch")]},
        {"name": "Tron", "id": "k:3", "graph": "a.pdf", "by": "read", "meets_all": False,
         "checks": [check("#1 >> by >> Lynch", 0.0), check("#1.year < 1985", 0.5)]},
    ]  # fmt: skip
    names, rows = ranked_rows(ranked)
    assert names == ("#1 >> by >> Lynch", "#1.year < 1985")
    assert [[one.state for one in row.checks] for row in rows] == [["met", "unknown"], ["missed", "partly"]]
    assert rows[0].checks == (ConstraintCheck(1.0, ("Dune >> by >> Lynch",)), ConstraintCheck(None))
    assert (rows[0].graph, rows[0].inside) == ("films", "9")
    # What was read in a document has no node in a graph to look up.
    assert rows[1].graph == ""


def walked():
    seeds = [hit("a:1", score=0.5), hit("a:2", score=0.4)]
    chosen = [
        hit("a:3", path=("a:1", "a:3"), via=["keywords: ohio"], score=0.3),
        hit("a:2", path=("a:1", "a:2"), via=["mentions: Ada"], score=0.2),
        hit("a:4", path=("a:2", "a:4"), via=["no edge: best match"], score=0.1),
    ]
    paths = [
        {"path": ["a:1"], "considered": 102, "chosen": 2, "expected": "where Ada was born"},
        {"path": ["a:2"], "considered": 7, "chosen": 1},
    ]
    evidence = [hit("a:3", "text", path=("a:1", "a:3"), via=["keywords: ohio"]), hit("a:2", "text")]
    return answer("x", evidence, trail=[step("seed", seeds), step("expand", chosen, paths=paths)])


def test_a_walk_has_the_seeds_what_was_considered_and_the_chosen_path() -> None:
    walk = draw_walk(walked())
    places = {one.id: one for one in walk.places}
    assert [places[id].column for id in ("a:1", "a:2", "a:3", "a:4")] == [0, 0, 1, 1]
    assert {id for id, one in places.items() if one.seed} == {"a:1", "a:2"}
    assert {id for id, one in places.items() if one.chosen} == {"a:1", "a:2", "a:3"}
    assert places["a:3"].cite == 1 and places["a:2"].cite == 2 and places["a:1"].cite == 0
    assert places["a:1"].considered == 102 and places["a:1"].taken == 2
    assert places["a:1"].expected == ["where Ada was born"]
    assert [(w.source, w.target, w.chosen) for w in walk.ways] == [
        ("a:1", "a:2", False),
        ("a:2", "a:4", False),
        ("a:1", "a:3", True),
    ]
    assert [way.via for way in walk.into("a:3")] == ["keywords: ohio"]


def test_no_two_nodes_of_a_walk_lie_over_each_other() -> None:
    walk = draw_walk(walked())
    for column in {one.column for one in walk.places}:
        tops = sorted(one.y for one in walk.places if one.column == column)
        assert all(b - a > HEIGHT for a, b in pairwise(tops))
        assert tops[-1] + HEIGHT <= walk.height
    assert max(one.x for one in walk.places) == pytest.approx(COLUMN + 8)


def test_a_search_has_no_walk() -> None:
    assert draw_walk(answer("x", [hit("a:1")], trail=[step("retrieve", [hit("a:1")])])) is None


def test_a_long_walk_keeps_the_paths_to_the_evidence() -> None:
    many = [hit(f"a:{n}", path=("a:0", f"a:{n}"), via=["x"]) for n in range(1, 3 * MAX_NODES)]
    last = many[-1]
    walk = draw_walk(answer("x", [last], trail=[step("seed", [hit("a:0")]), step("expand", many, paths=[])]))
    assert len(walk.places) == MAX_NODES and walk.left_out == 3 * MAX_NODES - MAX_NODES
    assert {"a:0", last["id"]} <= {one.id for one in walk.places}
    assert all(way.source in {one.id for one in walk.places} for way in walk.ways)
