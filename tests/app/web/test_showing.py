"""What the page of an answer is made of: blocks, citations, chains, ranked lists, walks."""

from __future__ import annotations

from itertools import pairwise

import pytest

from clew.app.answers import walk
from clew.app.answers.view import AnswerView, CheckView, StepView, excerpt, table_cells
from clew.app.answers.walk import COLUMN, HEIGHT, MAX_NODES
from clew.app.web.pages.answer import TableRow, make_answer_page, view_chain

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


def page(*args, rows=None, **more):
    """Return what the page of an answer shows."""
    return make_answer_page(AnswerView.from_dict(answer(*args, **more)), rows or {})


def draw_walk(data):
    return walk.draw_walk(AnswerView.from_dict(data))


def chain_of(trail):
    return view_chain([StepView.from_dict(item) for item in trail])


def mark_pieces(pieces):
    return "".join(f"[{piece.text}]" if piece.marked else piece.text for piece in pieces)


def test_quotes_are_marked_where_they_stand_and_overlaps_once() -> None:
    assert mark_pieces(excerpt("one two three four", [(4, 7), (8, 13)])) == "one [two] [three] four"
    assert mark_pieces(excerpt("one two three", [(0, 7), (4, 13)])) == "[one two][ three]"
    assert mark_pieces(excerpt("one", [(-4, 99)])) == "[one]"


def test_a_long_passage_is_cut_around_its_quotes_and_never_loses_one() -> None:
    text = "a" * 1000 + "QUOTE" + "b" * 1000
    pieces = excerpt(text, [(1000, 1005)])
    assert mark_pieces(pieces) == "… " + "a" * 320 + "[QUOTE]" + "b" * 320 + " …"
    assert mark_pieces(excerpt(text, [(1000, 1005)], around=None)) == text.replace("QUOTE", "[QUOTE]")


def test_each_sentence_of_an_extract_has_the_number_of_its_source() -> None:
    shown = page(
        "She built  it.\nIt was 1901.",
        [hit("a:1", "She built\nit. So."), hit("a:2", "It was 1901."), hit("a:3", "Else.")],
        [("a:1", "She built\nit.", (0, 13)), ("a:2", "It was 1901.", (0, 12))],
    )
    assert [(block.text, block.citations) for block in shown.blocks] == [
        ("She built  it.", (1,)),
        ("It was 1901.", (2,)),
    ]
    assert shown.view.origin.startswith("sentences of")
    assert [bool(item.quotes) for item in shown.view.evidence] == [True, True, False]


def test_what_a_model_wrote_rests_on_all_that_is_quoted() -> None:
    evidence = [hit("a:1", "x"), hit("a:2", "y"), hit("a:3", "z")]
    quotes = [("a:1", "x", (0, 1)), ("a:3", "z", (0, 1))]
    shown = page("In 1901.\nBy Ada.", evidence, quotes, reader="http://localhost:1/v1#m")
    assert [block.citations for block in shown.blocks] == [(), (1, 3)]
    assert shown.view.origin == "written by m, from the evidence"


def test_an_answer_that_abstains_cites_nothing() -> None:
    shown = page("Not found.", [hit("a:1", "x")], abstained=True)
    assert shown.view.heading == "Not answered" and shown.blocks[0].citations == ()


def test_tables_in_answers_and_rows_in_evidence_are_tables() -> None:
    assert table_cells(TABLE) == (("boat", "year"), ("Lady | Annis", "1926"))
    row = TableRow("Fleet", (("boat", "year"), ("Lady | Annis", "1926")))
    shown = page(TABLE, [hit("a:1", TABLE, "table"), hit("a:2", "Fleet. ...", "row")], rows={"a:2": row})
    assert [bool(block.cells) for block in shown.blocks] == [False, True, False]
    assert shown.blocks[-1].citations == (1, 2)
    assert shown.evidence[0].cells == shown.blocks[1].cells
    assert shown.evidence[1].cells == row.cells and shown.evidence[1].caption == "Fleet"


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
    shown = chain_of(trail)
    first = shown.hops[0]
    assert (first.head, first.relation, first.tail) == ("Kismet", "director", "#1")
    sources = {name: value.source for name, value in shown.unknowns.items()}
    assert sources == {"#1": "the graph films", "#2": "the documents", "#3": "the model’s memory"}
    assert shown.unknowns["#1"].conflicts == (("the documents", "Vidor"),)
    assert shown.answer == "#3"


def test_of_several_chains_the_one_is_shown_that_was_answered_from() -> None:
    short = {"chain": "Kismet >> year >> #1; final answer: #1", "values": {"#1": ["1944"]}, "worth": WHOLE}
    long = {
        "chain": CHAIN,
        "values": {"#1": ["Dieterle"], "#2": ["Germany"]},
        "worth": [False, False, True, 2],
    }
    for fillings in ([short, long], [long, short]):
        shown = chain_of([step("filled", filling=filling) for filling in fillings])
        assert [hop.relation for hop in shown.hops] == ["year"]


def test_an_unknown_that_was_not_found_stays_open() -> None:
    part = {"chain": CHAIN, "values": {"#1": ["Dieterle"]}, "worth": [False, False, True, 1]}
    shown = chain_of([step("filled", filling=part)])
    assert shown.unknowns["#1"].values and not shown.unknowns["#2"].values
    assert chain_of([step("read")]) is None


def test_ranked_answers_are_a_table_over_all_constraints() -> None:
    def check(constraint, met, *texts):
        return {"constraint": constraint, "met": met, "evidence": [{"id": "x", "text": t} for t in texts]}

    ranked = [
        {"name": "Dune", "id": "films:9", "graph": "films", "by": "vector 0.7", "meets_all": True,
         "checks": [check("#1 >> by >> Lynch", 1.0, "Dune >> by >> Lynch")]},
        {"name": "Tron", "id": "k:3", "graph": "a.pdf", "by": "read", "meets_all": False,
         "checks": [check("#1 >> by >> Lynch", 0.0), check("#1.year < 1985", 0.5)]},
    ]  # fmt: skip
    shown = page(ranked=ranked)
    rows = shown.ranked
    assert shown.view.constraints == ("#1 >> by >> Lynch", "#1.year < 1985")
    assert [[item.state for item in row.checks] for row in rows] == [["met", "unknown"], ["missed", "partly"]]
    assert rows[0].checks == (
        CheckView("#1 >> by >> Lynch", 1.0, ("Dune >> by >> Lynch",)),
        CheckView("#1.year < 1985"),
    )
    assert (rows[0].graph, rows[0].entity) == ("films", "9")
    # What was read in a document has no node in a graph to look up.
    assert rows[1].graph == ""


def walk_answer():
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
    drawn = draw_walk(walk_answer())
    places = {node.id: node for node in drawn.nodes}
    assert [places[id].column for id in ("a:1", "a:2", "a:3", "a:4")] == [0, 0, 1, 1]
    assert {id for id, value in places.items() if value.seed} == {"a:1", "a:2"}
    assert {id for id, value in places.items() if value.chosen} == {"a:1", "a:2", "a:3"}
    assert places["a:3"].citation == 1 and places["a:2"].citation == 2 and places["a:1"].citation == 0
    assert places["a:1"].considered == 102 and places["a:1"].followed == 2
    assert places["a:1"].expected == ["where Ada was born"]
    assert [(w.source, w.target, w.chosen) for w in drawn.edges] == [
        ("a:1", "a:2", False),
        ("a:2", "a:4", False),
        ("a:1", "a:3", True),
    ]
    assert [edge.via for edge in drawn.edges_into("a:3")] == ["keywords: ohio"]


def test_no_two_nodes_of_a_walk_lie_over_each_other() -> None:
    drawn = draw_walk(walk_answer())
    for column in {node.column for node in drawn.nodes}:
        tops = sorted(node.y for node in drawn.nodes if node.column == column)
        assert all(b - a > HEIGHT for a, b in pairwise(tops))
        assert tops[-1] + HEIGHT <= drawn.height
    assert max(node.x for node in drawn.nodes) == pytest.approx(COLUMN + 8)


def test_a_search_has_no_walk() -> None:
    assert draw_walk(answer("x", [hit("a:1")], trail=[step("retrieve", [hit("a:1")])])) is None


def test_a_long_walk_keeps_the_paths_to_the_evidence() -> None:
    many = [hit(f"a:{n}", path=("a:0", f"a:{n}"), via=["x"]) for n in range(1, 3 * MAX_NODES)]
    last = many[-1]
    drawn = draw_walk(answer("x", [last], trail=[step("seed", [hit("a:0")]), step("expand", many, paths=[])]))
    assert len(drawn.nodes) == MAX_NODES and drawn.left_out == 3 * MAX_NODES - MAX_NODES
    assert {"a:0", last["id"]} <= {node.id for node in drawn.nodes}
    assert all(edge.source in {node.id for node in drawn.nodes} for edge in drawn.edges)
