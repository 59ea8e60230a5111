"""What a document's outline can be asked, and what plain questions about it are read as."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clew.core.types import Question, Scope
from clew.knowledge_base.knowledge_base import open as open_base
from clew.models.plan_judge import create_plan_judge
from clew.questions.linear import JUDGED
from clew.questions.outline_plans import CONTENT, OutlineCatalogue, OutlinePlans, find_numbers
from clew.questions.outline_reading import choose_judged, correct_outlines, create_outline_reader
from clew.questions.text import QuestionText
from clew.retrieve.structure.algebra import evaluate
from clew.retrieve.structure.lookup import StructureSearch, fetch_hits
from clew.retrieve.structure.query import Query, Selector
from clew.retrieve.structure.resolver import ReferenceResolver
from clew.train.outline_data import OutlineQuestion, OutlineWorld, read_outline_source
from misspelling import misspell

OUTLINES = Path(__file__).parents[2] / "benchmarks" / "data" / "outlines"
#: Two documents of each of these are asked here.
SOURCES = ("accounts", "contracts", "research")


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    folder, judge = tmp_path_factory.mktemp("outlines"), create_plan_judge()
    made = {}
    for name in SOURCES:
        written = json.loads((OUTLINES / f"{name}.json").read_text(encoding="utf-8"))
        written["documents"] = written["documents"][:2]
        names = {document["name"] for document in written["documents"]}
        written["questions"] = [row for row in written["questions"] if row["document"] in names]
        file = folder / f"{name}.json"
        file.write_text(json.dumps(written), encoding="utf-8")
        made[name] = (OutlineWorld(file, judge.encoder), read_outline_source(file))
    yield made
    for world, _ in made.values():
        world.close()


def prepared(worlds, change=lambda text, number: text):
    for world, questions in worlds.values():
        for number, question in enumerate(questions):
            if question.plan is not None:
                yield world.prepare(replace(question, question=change(question.question, number)))


@pytest.mark.parametrize(("change", "floor"), [(lambda text, number: text, 0.94), (misspell, 0.88)])
def test_the_query_that_is_meant_is_among_the_options(worlds, change, floor):
    examples = [*prepared(worlds, change)]
    assert len(examples) > 300
    assert sum(bool(example.right.any()) for example in examples) / len(examples) >= floor


def test_an_option_is_what_its_query_says(worlds):
    """What an option leads to is found by number, label and name alone, too."""
    judge, checked = create_plan_judge(), 0
    for world, questions in worlds.values():
        document = next(iter(world.documents.values()))
        catalogue = OutlineCatalogue(world.snapshot, document)
        resolver = ReferenceResolver(world.snapshot, "", Scope(documents=frozenset({document.key})))
        for question in questions[:60:4]:
            vector = judge.encoder.encode([question.question], query=True)[0].astype(np.float64)
            text = QuestionText(question.question)
            options = OutlinePlans(text, find_numbers(text), catalogue, judge.encoder, vector).options()
            for option in options:
                kind, how = option.shape.partition(" ")[2].split(" ")[0], option.shape.split(" ")[-1]
                if option.shape.startswith("show ") and kind in {"page", "table"} and how in {
                    "number", "label", "nth", "first", "last",
                }:  # fmt: skip
                    (selector,) = option.query.selectors
                    found = resolver.nodes(replace(selector, node=""), catalogue.outline)
                    assert (option.key[1] if option.exists else frozenset()) == {node.id for node in found}, (
                        option
                    )
                    checked += 1
    assert checked > 200


def test_places_of_two_documents_are_paired_as_the_question_has_them(worlds):
    world, _ = worlds["accounts"]
    first, second = (document.name for document in world.snapshot.documents())
    question = f"How does page 3 of {first} differ from page 5 of {second}?"
    plan = Query("show", (Selector("page", 3, document=first), Selector("page", 5, document=second)))
    example = world.prepare(OutlineQuestion("accounts", "", question, plan, "differ", "plain"))
    (right,) = [example.read.options[place] for place in np.flatnonzero(example.right)]
    assert (right.shape, right.numbers.count("page")) == ("across page number", 2)
    # "Page 5 of the first" is not what was said.
    across = [option for option in example.read.options if option.shape == "across page number"]
    assert [5, 3] not in [[each.number for each in option.query.selectors] for option in across]


def test_the_judge_reads_queries_with_their_documents_and_corrects_all_that_mean_the_same(worlds):
    world, _ = worlds["contracts"]
    first, second = world.documents.values()
    text = f"Compare page 2 of {first.title} with page 1 of {second.title}"
    example = world.prepare(OutlineQuestion("contracts", "", text, None, "several", "plain"), alone=False)
    said = {example.read.say(place) for place, option in enumerate(example.read.options) if option.exists}
    assert f"show page 2 of {first.title[:60]} and page 1 of {second.title[:60]}" in said
    assert f"show page 2 of {first.title[:60]}" in said and "list the documents without tables" in said
    keys = [option.key for option in example.read.options]
    scores = np.zeros(len(keys))
    scores[keys.index(CONTENT)] = 9.0
    judged = choose_judged(example.read, scores)
    assert (
        len({keys[place] for place in judged}) == len(judged) == JUDGED and keys.index(CONTENT) not in judged
    )
    likeness = np.zeros((JUDGED, 3))
    likeness[1] = 1.0, 0.5, 0.25
    corrections = correct_outlines(np.array([1.0, 2.0, 2.0, 4.0, -3.0]), example.read, judged, likeness)
    assert {value for key, value in zip(keys, corrections, strict=True) if key == keys[judged[1]]} == {4.0}
    assert corrections[-1] == -3.0 and set(corrections[:-1]) == {0.0, 4.0}


def test_a_row_is_counted_in_the_table_that_is_numbered(worlds):
    world, _ = worlds["accounts"]
    within = Selector("table", 1, "1")
    plan = Query("show", (Selector("row", 2, within=within),))
    for document in world.documents:
        question = OutlineQuestion("accounts", document, "The second row of Table 1?", plan, "row", "plain")
        example = world.prepare(question)
        if right := [example.read.options[place].shape for place in np.flatnonzero(example.right)]:
            assert "show row nth of label" in right
            return
    pytest.fail("no document has a Table 1 with two rows")


def test_documents_without_tables_are_listed(tmp_path):
    with open_base(tmp_path / "kb", create=True) as base:
        for name, text in (("with.md", "| a | b |\n|---|---|\n| 1 | 2 |\n"), ("bare.md", "No table here.\n")):
            (tmp_path / name).write_text(f"# {name}\n\n{text}", encoding="utf-8")
            base.add(tmp_path / name)
        snapshot = base.store.snapshot()
        for without, name in ((False, "with.md"), (True, "bare.md")):
            query = Query("list", (Selector("table"),), "document", "document", without=without)
            assert evaluate("", [query], snapshot, Scope()).text == f"1 document:\n1. {name}"


def test_where_many_tables_stand_is_told(tmp_path):
    """References without words of the question once made it twice as long, each."""
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    text = "# Notes\n\n" + "\n\n".join(f"Part {number}\n\n{table}" for number in range(60))
    (tmp_path / "notes.md").write_text(text, encoding="utf-8")
    with open_base(tmp_path / "kb", create=True) as base:
        base.add(tmp_path / "notes.md")
        snapshot = base.store.snapshot()
        (document,) = snapshot.documents()
        query = Query("locate", (Selector("table", document=document.key),), document=document.key)
        finding = evaluate("Where are the tables?", [query], snapshot, Scope())
        assert len(finding.references) == 60
        assert fetch_hits(snapshot, finding.references, 5, finding.listed, "Where are the tables?")


def test_numbers_are_read_in_words_roman_and_with_their_word():
    numbers = find_numbers(
        QuestionText("p9, tbl. 3, the twenty-seventh page, page iv, note 1A and Appendix B")
    )
    assert [(number.value, number.label) for number in numbers] == [
        (9, "9"), (3, "3"), (27, "27"), (4, "4"), (None, "1a"), (None, "b"),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def report(worlds):
    """The first document of the accounts, asked alone."""
    world, _ = worlds["accounts"]
    document = world.snapshot.documents()[0]
    search = StructureSearch(world.snapshot, create_outline_reader(create_plan_judge()))

    def ask(text):
        return search.find_certain(Question(text, Scope(documents=frozenset({document.key}))))

    return document, ask


def test_a_page_that_is_not_there_is_told(report):
    document, ask = report
    found = ask(f"What is on page {document.pages + 40}?")
    assert found.is_missing and f"has {document.pages} pages" in found.text


def test_counting_is_computed(report):
    document, ask = report
    assert ask("How many pages does it have?").text == f"{document.name} has {document.pages} pages."


@pytest.mark.parametrize(
    "question",
    [
        "Who audits the accounts?",
        "How many employees were there at the end of the year?",
        "May the table be wiped with a wet cloth?",
        "Which section of the river freezes first?",
        "Who turned the page on the scandal?",
        "When was Page & Sons founded?",
        "Where does the heron nest?",
    ],
)
def test_content_is_left_to_the_search(report, question):
    assert not report[1](question)


def test_no_structure_is_one_of_the_options(worlds):
    example = next(prepared(worlds))
    assert [option.key for option in example.read.options].count(CONTENT) == 1
    assert len(example.right) == len(example.read.options) == len(example.read.features)


def test_a_long_text_is_left_to_the_search(report):
    assert not report[1]("What is on page 3 and in table 2? " * 300)


def test_a_number_in_the_name_of_a_document_is_no_page():
    names = frozenset({"10k", "verizon"})
    numbers = find_numbers(QuestionText("What does Item 3 of Verizon's 10-K say?"), names)
    assert [number.value for number in numbers] == [3]
