"""An answer is stated, possible ("perhaps") or not found: the same in Python, the command line, the JSON API, MCP and
the chat endpoint, and never larger or surer than it is."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import clew
from clew.app.answers.citations import cited_answer_to_dict, render_text
from clew.app.answers.view import AnswerView
from clew.app.cli.answer import print_answer
from clew.app.web.api.questions import render_markdown
from clew.app.web.mcp.tools import ToolContext, ask_result, make_tools
from clew.app.web.pages.answer import make_answer_page
from clew.app.web.pages.render import render_fragment
from clew.core.types import QUOTED_FROM, ROW, STATED_FROM, Alternative, Answer, Hit, Node, Plan, Quote
from clew.knowledge_base.grid import GridCell
from command_line import run
from serve_app import ServedApp

FILMS = """\
Kismet\tdirector\tLudwig Berger
Kismet\tstars\tAda Pell
The Weir\tdirector\tLudwig Berger
The Weir\tstars\tJoel Marsh
Ludwig Berger\tborn in\tMainz
"""
ORDERS = "Order,Country,Total\nA1,Norway,80\nA2,Sweden,219\nA3,Norway,876\n"
NOTES = "# Lock\n\nThe lock at Oxley was rebuilt by Dorothea Lisle in 1931.\n"
TRIPLES = "#1 >> director >> Ludwig Berger; #1 >> stars >> Ada Pell; final answer: #1"
NOTHING = "#1 >> director >> Joel Marsh; final answer: #1"
CHAIN = "Kismet >> director >> #1; #1 >> born in >> #2; final answer: #2"
#: What is asked, how it is answered, the kind of plan and its operation.
ASKED = [
    ({"chain": TRIPLES, "recipe": "focus"}, "answer", "Kismet", ("graph", "list")),
    ({"chain": NOTHING, "recipe": "focus"}, "answer", "None: ", ("graph", "list")),
    ({"chain": CHAIN, "recipe": "chain"}, "answer", "Mainz", ("chain", "list")),
    ({"question": "Who directed Kismet?"}, "perhaps", "Ludwig Berger", ("graph", "list")),
    ({"question": "Who is the director of Kismet?"}, "answer", "Ludwig Berger", ("graph", "list")),
    ({"question": "How many films did Ludwig Berger direct?"}, "answer", "2", ("graph", "count")),
    ({"question": "Was Ludwig Berger the director of Kismet?"}, "answer", "Yes", ("graph", "yes_no")),
    ({"question": "How many orders went to Norway?"}, "answer", "2", ("table", "count")),
    ({"question": "In which country is order A3?"}, "answer", "Norway", ("table", "values")),
    ({"question": "Who rebuilt the lock at Oxley?"}, "perhaps", "The lock", None),
    (
        {"question": "Who painted the ceiling of the chapel?"},
        "not_found",
        "No answer that clew is sure of",
        None,
    ),
    (
        {"question": "How many tables does orders.csv have?"},
        "answer",
        "orders.csv has",
        ("structure", "count"),
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("ways")
    for name, text in (("films.tsv", FILMS), ("orders.csv", ORDERS), ("notes.md", NOTES)):
        (home / name).write_text(text, encoding="utf-8")
    with clew.open(home / "kb", create=True) as base:
        base.add([home / "orders.csv", home / "notes.md"])
        base.graphs.add(home / "films.tsv")
    return home / "kb"


@pytest.mark.parametrize(("asked", "way", "text", "plan"), ASKED, ids=lambda value: str(value)[:40])
def test_the_way_is_the_same_everywhere(folder, asked, way, text, plan) -> None:
    question = asked.get("question", "")
    with clew.open(folder) as base:
        answer = base.ask(question, **{key: value for key, value in asked.items() if key != "question"})
        told = ask_result(ToolContext({"b": base}, {"default": ""}), {}, answer)
    assert answer.way == way and answer.abstained == (way != "answer") and answer.text.startswith(text)
    said = {"perhaps": f"Perhaps: {answer.text}", "answer": answer.text, "not_found": answer.text}[way]
    assert str(answer).startswith(said)
    data = answer.to_dict()
    check_contract(data, way, plan)
    assert told.text.startswith("Perhaps: ") == (way == "perhaps")
    check_contract(told.structure, way, plan)
    words = (
        [question] if question else ["--triples" if asked["recipe"] == "focus" else "--chain", asked["chain"]]
    )
    printed = json.loads(run("ask", *words, "--kb", folder, "--json").stdout)
    check_contract(printed, way, plan)
    assert [printed[key] for key in ("answer", "values", "perhaps")] == [
        json.loads(json.dumps(data[key])) for key in ("answer", "values", "perhaps")
    ]


def check_contract(data, way, plan) -> None:
    """Check the keys that say how an answer is given."""
    assert data["way"] == way and data["abstained"] == (way != "answer")
    assert data["empty"] == (way == "answer" and data["answer"].startswith("None: "))
    assert (data["plan"] and (data["plan"]["kind"], data["plan"]["operation"])) == plan
    assert bool(data["perhaps"]) == (way == "perhaps") and len(data["perhaps"]) <= 3
    for each in data["perhaps"]:
        assert set(each) == {"answer", "values", "quotes", "confidence", "plan", "empty"}
    if data["perhaps"]:
        assert (data["perhaps"][0]["answer"], data["perhaps"][0]["plan"]) == (data["answer"], data["plan"])
        assert data["perhaps"][0]["quotes"]
    if data["confidence"] is not None:  # what the fitted models said of a plain question
        assert way == "not_found" or data["plan"]["kind"] in ("graph", "table", "structure")


def test_the_plan_of_a_plain_question_can_be_asked_as_it_is(folder) -> None:
    with clew.open(folder) as base:
        for question in ("Who directed Kismet?", "Which films did Ludwig Berger direct?"):
            possible = base.ask(question)
            stated = base.ask("", recipe="focus(k=5000)", chain=possible.plan.text)
            assert stated.way == "answer" and set(stated.values) == set(possible.values)


def test_the_server_and_its_chat_endpoint_say_the_way(folder) -> None:
    with ServedApp(folder) as app:
        for asked, way, _, plan in ASKED[3:-1:2]:
            replied = app.ask(asked["question"])
            check_contract(replied, way, plan)
            messages = [{"role": "user", "content": asked["question"]}]
            body = {"model": "clew", "messages": messages}
            _, reply = app.post(f"{app.api}/v1/chat/completions", body)
            check_contract(reply["clew"], way, plan)
            content = reply["choices"][0]["message"]["content"]
            assert content.startswith("Perhaps: ") == (way == "perhaps")
            page = app.request("GET", f"/b/{app.base}/q/{replied['id']}")[2].decode()
            assert (' class="perhaps"' in page) == (way == "perhaps") and ('class="text first' in page) == (
                way == "answer"
            )
            text = app.request("GET", f"{app.api}/questions/{replied['id']}/export")[2].decode()
            assert ("## Perhaps" in text) == (way == "perhaps") and ("Confidence" in text) == (
                way == "answer"
            )
        follow = app.post(f"{app.api}/questions/{replied['id']}/follow-up", {"question": "and in Sweden?"})
        assert follow[0] == 200


# What decides the way


def node(id, text):
    return Node(id, "passage", text, "d", "d.txt", int(id[-1]), None, "", 0, 1, (), (0, len(text)))


FIRST, SECOND = node("d:1", "The lock was rebuilt in 1931."), node("d:2", "It closed in 1940, 1941 and 1942.")


def quote(of, words):
    start = of.text.index(words)
    return Quote(of.id, of.text, (0, len(of.text)), (start, start + len(words)))


def read(confidence, **more):
    others = tuple(Alternative(f"194{n}", 0.5 / 2 ** (n + 1), quote(SECOND, f"194{n}")) for n in range(3))
    given = {"reader": "span", "confidence": confidence, "alternatives": others} | more
    evidence = given.pop("evidence", (Hit(FIRST, 1.0), Hit(SECOND, 0.5)))
    return Answer("1931", evidence, (quote(FIRST, "1931"),), **given)


@pytest.mark.parametrize(
    ("answer", "way", "confidence"),
    [
        (read(QUOTED_FROM), "answer", QUOTED_FROM),
        (read(0.99), "answer", 0.99),
        (read(QUOTED_FROM - 0.0001), "perhaps", QUOTED_FROM - 0.0001),
        # A cell says less than a sentence, and what is computed has no words at all.
        (read(STATED_FROM, evidence=(Hit(replace(FIRST, kind=ROW), 1.0),)), "answer", STATED_FROM),
        (read(0.64, evidence=(Hit(replace(FIRST, kind=ROW), 1.0),)), "perhaps", 0.64),
        (read(STATED_FROM, plan=Plan("table", "SELECT 1931")), "answer", STATED_FROM),
        (read(0.64, plan=Plan("table", "SELECT 1931")), "perhaps", 0.64),
        (read(0.25), "perhaps", 0.25),
        (read(0.0), "perhaps", 0.0),
        (read(0.9, by_rule=True), "perhaps", None),
        (read(None, by_rule=True), "perhaps", None),
        (read(None, reader="gpt"), "answer", None),
        (read(0.3, abstained=True), "not_found", 0.3),
        (read(0.9, by_rule=True, abstained=True), "not_found", 0.9),
    ],
)
def test_only_a_fitted_confidence_that_is_high_enough_states(answer, way, confidence) -> None:
    given = answer.weigh()
    assert (given.way, given.confidence, given.abstained) == (way, confidence, way != "answer")
    assert given.weigh() == given


def test_at_most_three_are_possible_each_with_its_own_quote() -> None:
    given = read(0.4).weigh()
    assert [(each.text, each.confidence, each.way) for each in given.perhaps] == [
        ("1931", 0.4, "perhaps"),
        ("1940", 0.25, "perhaps"),
        ("1941", 0.125, "perhaps"),
    ]
    assert [each.citations[0].node.id for each in given.perhaps] == ["d:1", "d:2", "d:2"]
    assert [len(each["quotes"]) for each in given.to_dict()["perhaps"]] == [1, 1, 1]
    assert read(0.8).weigh().perhaps == () and read(0.4, abstained=True).weigh().perhaps == ()


@pytest.mark.parametrize(("confidence", "rule"), [(0.4, False), (0.9, True)])
def test_a_possible_answer_looks_possible(capsys, confidence, rule) -> None:
    given = read(confidence, by_rule=rule).weigh()
    view = AnswerView.from_answer(given)
    print_answer(view, 5)
    shown = capsys.readouterr().out
    assert shown.startswith("Perhaps\n  1. 1931") and "Answer" not in shown and "confidence" not in shown
    assert ("40 %" in shown) == (not rule) and "90 %" not in shown and "  3. 1941" in shown
    text = render_text(view)
    assert text.startswith("Perhaps: 1931 [1]\n- or: 1940 (25 %), d.txt, page 1: ") and "90 %" not in text
    html = page_html(view)
    assert '<h2 tabindex="-1" class="answer-heading">Perhaps</h2>' in html and html.count("candidate") == 4
    assert 'class="text' not in html and "sure of this" not in html and "90 %" not in html
    entry = {"question": "When?", "chain": "", "asked": 0.0, "model": None, "answer": given.to_dict()}
    assert render_markdown(entry).startswith("# When?\n\n## Perhaps\n\n1. 1931")
    assert "Perhaps: 1931" in given._repr_html_() and "<strong>" not in given._repr_html_()
    assert GridCell.from_answer("d", "When?", "default", given).answer == "Perhaps: 1931"
    import jsonschema

    schema = make_tools(ToolContext({}, {"default": ""}))[0].output_schema
    jsonschema.validate(cited_answer_to_dict(view), schema)


def page_html(view) -> str:
    """Return the part of a page that shows an answer."""
    asked = {"id": "q", "question": "When?", "state": "done", "asked": 0.0, "model": None, "problem": None}
    page = make_answer_page(view)
    shown = {"entry": asked, "ended": True, "view": view, "page": page, "compared": "", "titles": {}}
    shown |= {"early": False, "go_on": ""}
    return re.sub(r"\s*\n\s*", "", render_fragment("part-answer.html", base="b", scope="", **shown))


@pytest.mark.parametrize(("confidence", "way"), [(0.4, "perhaps"), (0.8, "answer"), (None, "answer")])
def test_an_answer_of_an_earlier_version_is_shown_by_its_confidence(confidence, way) -> None:
    data = json.loads(json.dumps(read(confidence).to_dict()))
    for key in ("way", "perhaps", "plan", "empty"):
        del data[key]
    view = AnswerView.from_dict(data)
    assert view.way == way and [item.text for item in view.perhaps] == ["1931", "1940", "1941"] * (
        way == "perhaps"
    )
    assert ("text first" in page_html(view)) == (confidence == 0.8)
