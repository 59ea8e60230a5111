import json

import numpy as np
import pytest

from clew.core.errors import ModelError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Completion
from clew.core.trail import TrailRecorder
from clew.core.types import Box, Question, Scope, Table, Usage
from clew.parse.documents.builder import DocumentBuilder
from clew.retrieve.structure.lookup import StructureReader, StructureSearch, fetch_hits, find_references
from graph_corpora import document, finish_document


def report(word):
    """Three pages: sections, two tables with captions, one over pages 2 and 3, and one without a caption."""
    builder = DocumentBuilder()
    builder.add_page(1)
    builder.add_heading(1, f"{word} report")
    builder.add_paragraph(f"{word} begins.")
    builder.add_heading(2, "1 Methods and data")
    builder.add_paragraph(f"{word} counted by hand.")
    builder.add_page(2)
    builder.add_heading(3, "1.1 Data")
    builder.add_paragraph(f"{word} data came late.")
    cells = (("Crew", "4"), ("Guests", "9"))
    boxes = (Box(2, 0, 500, 100, 700), Box(3, 0, 0, 100, 50))
    builder.add_table(Table(("Who", "Number"), cells, f"Table 1: {word} people aboard", boxes, (2, 3)))
    builder.add_page(3)
    builder.add_heading(2, "2 Risk factors")
    builder.add_paragraph(f"{word} may sink.")
    builder.add_table(
        Table(("Toll", "Pence"), (("Horse", "6"),), f"Table 2: {word} tolls", (Box(3, 0, 60, 9, 80),))
    )
    builder.add_table(Table(("Mark", "Depth"), (("Red", "2"),), "", (Box(3, 0, 90, 9, 99),)))
    return finish_document(builder, f"{word} report", pages=3)


def ledger():
    builder = DocumentBuilder()
    for sheet in ("Freight", "Crew"):
        builder.add_heading(1, sheet)
        builder.add_table(Table(("Name", "Sum"), ((f"{sheet} one", "1"),), sheet))
    return finish_document(
        builder,
        "Company ledger",
        media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    )


@pytest.fixture(scope="module")
def snapshot(lasting):
    lease = document("Mill lease", "The mill is let.", "Rent is due in May.")
    documents = [report("Harbour"), report("Ferry"), lease, ledger()]
    return lasting.snapshot(
        documents, ["harbour_report.pdf", "FerryReport2021.pdf", "lease.txt", "ledger.xlsx"]
    )


def find_names(snapshot, question, scope=None):
    references = find_references(question, snapshot, scope or Scope())
    nodes = snapshot.nodes(snapshot.rows([reference.node for reference in references]))
    return [
        f"{node.document_name.split('.')[0]}: {node.kind} {node.page if node.kind == 'page' else node.name}".strip()
        for node in nodes
    ]


H, F = "harbour_report: ", "FerryReport2021: "


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What does page 2 of the harbour report say?", [H + "page 2"]),
        ("Summarise the last page of the Ferry report", [F + "page 3"]),
        ("In the ferry report, what is on the first two pages?", [F + "page 1", F + "page 2"]),
        ("What does the harbour report say on page 3?", [H + "page 3"]),
        (
            "Compare page 1 of the harbour report with Table 2 of the ferry report.",
            [H + "page 1", F + "table Table 2: Ferry tolls"],
        ),
        ("Compare pages 1 and 3 of the ferry report", [F + "page 1", F + "page 3"]),
        ("What is in Table II of the harbour report?", [H + "table Table 2: Harbour tolls"]),
        ("What does the third table of the harbour report list?", [H + "table"]),
        ("the last table in the ferry report", [F + "table"]),
        (
            "What does the table on page 2 of the harbour report say?",
            [H + "table Table 1: Harbour people aboard"],
        ),
        ("the second table on page 3 of the harbour report", [H + "table Table 2: Harbour tolls"]),
        (
            "What does the table about people aboard in the ferry report show?",
            [F + "table Table 1: Ferry people aboard"],
        ),
        ("What is in the ferry tolls table?", [F + "table Table 2: Ferry tolls"]),
        ("What does section 1.1 of the harbour report say?", [H + "section 1.1 Data"]),
        ("Summarise the Risk factors section of the ferry report", [F + "section 2 Risk factors"]),
        ("What is said under Risk Factors in the harbour report?", [H + "section 2 Risk factors"]),
        (
            "What does the section on methods and data in the ferry report say?",
            [F + "section 1 Methods and data"],
        ),
        ("Summarise the lease", ["lease: document Mill lease"]),
        (
            "Give me an overview of the mill lease and the harbour report",
            ["lease: document Mill lease", H + "document Harbour report"],
        ),
        ("What is in the Crew sheet?", ["ledger: section Crew"]),
        ("What does sheet 1 of the ledger hold?", ["ledger: section Freight"]),
        ("Show me the risk factors in the harbour report", [H + "section 2 Risk factors"]),
    ],
)
def test_what_a_question_names_is_found_in_the_document_that_it_names(snapshot, question, expected):
    assert find_names(snapshot, question) == expected


def test_where_no_document_is_named_all_that_have_it_are_meant_best_match_first(snapshot):
    assert set(find_names(snapshot, "What does page 2 say?")) == {H + "page 2", F + "page 2"}
    assert find_names(snapshot, "On page 3, may Ferry sink?")[0] == F + "page 3"
    references = find_names(snapshot, "What does table 2 show?")
    assert sorted(references[:2]) == [F + "table Table 2: Ferry tolls", H + "table Table 2: Harbour tolls"]


@pytest.mark.parametrize(
    "question",
    [
        "What is on the negotiating table?",
        "Which section of the river freezes?",
        "Who founded Page & Sons?",
        "What may sink?",
        "Who sat at table 2?",
        "Who was paid for the section of track?",
        "How much rent is due in May?",
        "What does page 90 of the harbour report say?",
        "What is in section 9.9 of the harbour report?",
        "What is in table 12 of the harbour report?",
        "Summarise the rent in the lease",
        "What is the water table?",
        "Who turned the tables?",
    ],
)
def test_questions_about_content_and_structures_that_do_not_exist_name_nothing(snapshot, question):
    assert find_names(snapshot, question) == []


def test_the_scope_is_kept(snapshot):
    ferry = next(document.key for document in snapshot.documents() if document.title == "Ferry report")
    scope = Scope(documents=frozenset({ferry}))
    assert find_names(snapshot, "What does page 2 say?", scope) == [F + "page 2"]
    assert find_names(snapshot, "Summarise page 2 of the harbour report", scope) == [F + "page 2"]


def content(snapshot, question, limit=30):
    return [hit.node.text for hit in fetch_hits(snapshot, find_references(question, snapshot), limit)]


def test_a_page_is_its_passages_and_tables_in_order_also_those_that_go_on_there(snapshot):
    first, table = content(snapshot, "page 2 of the harbour report")
    assert first == "Harbour data came late."
    assert table.startswith("Table 1: Harbour people aboard\n\n| Who | Number |")
    third = content(snapshot, "page 3 of the harbour report")
    assert [text.split("\n")[0] for text in third] == [
        "Table 1: Harbour people aboard",
        "Harbour may sink.",
        "Table 2: Harbour tolls",
        "| Mark | Depth |",
    ]


def test_a_section_is_its_passages_and_those_of_its_subsections(snapshot):
    references = content(snapshot, "section 1 of the harbour report")
    assert [text.split("\n")[0] for text in references] == [
        "Harbour counted by hand.",
        "Harbour data came late.",
        "Table 1: Harbour people aboard",
    ]


def test_a_document_that_is_too_long_gives_the_first_passages_of_its_sections(snapshot):
    assert content(snapshot, "Summarise the lease") == ["The mill is let.", "Rent is due in May."]
    assert content(snapshot, "Summarise the harbour report", limit=4) == [
        "Harbour begins.",
        "Harbour counted by hand.",
        "Harbour data came late.",
        "Harbour may sink.",
    ]


def test_hits_say_from_which_structure_they_came_and_fall_in_score(snapshot):
    named_page = find_references("page 1 of the harbour report", snapshot)
    hits = fetch_hits(snapshot, named_page)
    assert [hit.path for hit in hits] == [(named_page[0].node, hit.node.id) for hit in hits]
    assert hits[0].via == ("structure: page 1",)
    scores = [hit.score for hit in hits]
    assert scores == sorted(set(scores), reverse=True)
    (table,) = fetch_hits(snapshot, find_references("table 1 of the harbour report", snapshot))
    assert (table.path, table.via) == ((table.node.id,), ())


def test_a_short_limit_is_shared_and_what_one_leaves_the_next_takes(snapshot):
    references = find_references("Compare table 1 and page 3 of the harbour report", snapshot)
    texts = [hit.node.text.split("\n")[0] for hit in fetch_hits(snapshot, references, 3)]
    assert texts == ["Table 1: Harbour people aboard", "Harbour may sink.", "Table 2: Harbour tolls"]
    assert fetch_hits(snapshot, (), 3) == []


def test_a_question_about_structure_leaves_a_step_in_the_trail_and_one_about_content_none(snapshot):
    trail = TrailRecorder()
    assert len(StructureSearch(snapshot).find(Question("page 1 of the harbour report"), trail).hits) == 2
    assert [step.name for step in trail.steps] == ["structure"]
    assert trail.steps[0].detail["references"][0]["said"] == "page 1"
    trail = TrailRecorder()
    assert not StructureSearch(snapshot).find(Question("What may sink?"), trail)
    assert trail.steps == []


class Scripted:
    name = "scripted"

    def __init__(self, reply):
        self._reply, self.prompts = reply, []

    def complete(self, prompts):
        self.prompts += prompts
        return [Completion(self._reply, Usage(calls=1))]


def structure(kind, number=None, name=None, page=None, document=None, relation=None, beside=None):
    return {"kind": kind, "number": number, "name": name, "page": page, "document": document,
            "relation": relation, "beside": beside}  # fmt: skip


def reply(operation, *structures, counted=None, text=None):
    return json.dumps({"operation": operation, "counted": counted, "structures": structures, "text": text})


def selector_reply(kind, *arguments, **fields):
    return reply("show", structure(kind, *arguments, **fields))


def ask_model(snapshot, answer, question, always=False):
    model, trail = Scripted(answer), TrailRecorder()
    reader = StructureReader(model, load_prompt("structure-query"))
    return StructureSearch(snapshot, reader, always).find(Question(question), trail), model, trail


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (selector_reply("page", 2, document="harbour_report.pdf (Harbour report)"), [H + "page 2"]),
        (selector_reply("page", -1, document="FerryReport2021.pdf"), [F + "page 3"]),
        (
            selector_reply("table", page=2, document="FerryReport2021.pdf"),
            [F + "table Table 1: Ferry people aboard"],
        ),
        (selector_reply("table", 2, document="FerryReport2021.pdf"), [F + "table Table 2: Ferry tolls"]),
        (selector_reply("section", name="1.1", document="harbour_report.pdf"), [H + "section 1.1 Data"]),
        (
            selector_reply("section", name="risk factors", document="harbour_report.pdf"),
            [H + "section 2 Risk factors"],
        ),
        (selector_reply("document", document="lease.txt (Mill lease)"), ["lease: document Mill lease"]),
        (selector_reply("page", 90, document="harbour_report.pdf"), []),
        (selector_reply("section", relation="after", beside="section 1", document="harbour_report.pdf"),
         [H + "section 2 Risk factors"]),
        (selector_reply("table", 1, relation="under", beside="section 1.1", document="harbour_report.pdf"),
         [H + "table Table 1: Harbour people aboard"]),
        (reply("content"), []),
    ],
)  # fmt: skip
def test_a_model_names_structures_that_the_grammar_does_not_read(snapshot, answer, expected):
    _, model, trail = ask_model(snapshot, answer, "¿Qué pone en esa página?")
    ids = [reference["node"] for reference in trail.steps[0].detail["references"]]
    nodes = snapshot.nodes(snapshot.rows(ids))
    references = [
        f"{n.document_name.split('.')[0]}: {n.kind} {n.page if n.kind == 'page' else n.name}" for n in nodes
    ]
    assert references == expected
    assert trail.usage().calls == 1
    assert "harbour_report.pdf" in model.prompts[0].user
    assert "¿Qué pone en esa página?" in model.prompts[0].user


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (reply("count", structure("document", document="harbour_report.pdf"), counted="table"),
         "harbour_report.pdf has 3 tables."),
        (reply("count", structure("page", 3, document="harbour_report.pdf"), counted="table"),
         "Page 3 of harbour_report.pdf has 3 tables."),
        (reply("list", structure("document", document="harbour_report.pdf"), counted="section"),
         "harbour_report.pdf has 2 sections:\n1. 1 Methods and data, page 1\n2. 2 Risk factors, page 3"),
        (reply("locate", structure("section", name="risk factors", document="harbour_report.pdf")),
         "Page 3 of harbour_report.pdf: 2 Risk factors"),
        (reply("locate", structure("document", document="harbour_report.pdf"), text="counted by hand"),
         "Page 1 of harbour_report.pdf"),
        (reply("exists", structure("table", 9, document="harbour_report.pdf")),
         "No. harbour_report.pdf has no table 9."),
        (reply("count", structure("document", document="atlas.pdf"), counted="table"),
         'No document here is called "atlas.pdf".'),
        (reply("show", structure("page", 90, document="harbour_report.pdf")),
         "harbour_report.pdf has 3 pages; it has no page 90."),
    ],
)  # fmt: skip
def test_what_a_model_writes_in_the_algebra_is_computed_on_the_documents(snapshot, answer, text):
    result, _, _ = ask_model(snapshot, answer, "Cuántas tablas, o en qué página?")
    assert result.text == text


def test_two_documents_that_a_model_sees_compared_are_compared(snapshot):
    both = [structure("document", document=name) for name in ("harbour_report.pdf", "FerryReport2021.pdf")]
    result, _, _ = ask_model(snapshot, reply("differ", *both), "Was unterscheidet die Tabellen der beiden?")
    assert result.text.startswith("Changes from harbour_report.pdf to FerryReport2021.pdf:")


@pytest.mark.parametrize(
    "answer",
    [
        reply("count", structure("page", 77, document="harbour_report.pdf"), counted="table"),
        reply("list", counted=None),
        reply("exists", structure("table", 1)),
        reply("locate", text="a whale that sings"),
        reply("show"),
    ],
)
def test_what_a_model_writes_of_what_is_not_there_is_nothing(snapshot, answer):
    result, _, trail = ask_model(snapshot, answer, "Cuántas tablas hay?")
    assert not result and trail.usage().calls == 1


@pytest.mark.parametrize(
    "question",
    [
        "Summarise the lease document",
        "What does page 1 of the harbour report say?",
        "How many tables does the harbour report have?",
        "What does page 90 of harbour_report.pdf say?",
        "Who directed the film Low Water?",
        "Who invented the periodic table?",
        "Which allegations were made at the Capitol by strong men?",
    ],
)
def test_a_model_is_asked_neither_where_the_grammar_reads_nor_about_content(snapshot, question):
    result, model, trail = ask_model(snapshot, reply("content"), question)
    alone = StructureSearch(snapshot).find(Question(question), TrailRecorder())
    assert not model.prompts and trail.usage().calls == 0
    assert (result.text, [hit.node.id for hit in result.hits]) == (
        alone.text,
        [hit.node.id for hit in alone.hits],
    )


def test_the_paper_asks_a_model_about_every_question_that_the_grammar_does_not_read(snapshot):
    answer = selector_reply("section", name="risk factors", document="harbour_report.pdf")
    result, model, _ = ask_model(snapshot, answer, "What do the risk factors say?", always=True)
    assert len(model.prompts) == 1 and result.hits[0].node.text.startswith("Harbour may sink")
    assert not ask_model(snapshot, answer, "What do the risk factors say?")[1].prompts


@pytest.mark.parametrize(
    "invented",
    [
        selector_reply("page", 1, document="lease.txt (Mill lease)"),
        selector_reply("table", 7, document="FerryReport2021.pdf"),
        selector_reply("section", name="Ferry tolls"),
        selector_reply("document", document="lease.txt (Mill lease)"),
    ],
)
def test_a_place_that_a_model_invents_for_a_question_about_content_is_none(snapshot, invented):
    assert not ask_model(snapshot, invented, "Who directed the film Low Water?", always=True)[0]


def test_a_reply_in_another_form_is_kept_in_the_trail(snapshot):
    result, _, trail = ask_model(snapshot, "I would say page 3.", "¿Qué pone en esa página?")
    assert not result
    assert trail.steps[0].detail["unreadable reply"] == "I would say page 3."


def test_a_model_that_fails_is_an_error_and_not_a_question_about_content(snapshot):
    class Failing(Scripted):
        def complete(self, prompts):
            raise ModelError("out of reach")

    with pytest.raises(ModelError):
        StructureSearch(snapshot, StructureReader(Failing(""), load_prompt("structure-query"))).find(
            Question("Which pages?"), TrailRecorder()
        )


def test_an_empty_base_has_no_structure(bases):
    empty = bases.snapshot([])
    assert find_references("Summarise page 7 of the lease", empty) == ()
    assert np.array_equal(fetch_hits(empty, ()), [])


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is on page 2 of the Zanzibar report?", "the Zanzibar report"),
        ("page 2 of Zanzibar_2021_report.pdf", "Zanzibar_2021_report.pdf"),
        ("How many tables does the Zanzibar report have?", "the Zanzibar report"),
        (
            "How does page 1 of the Zanzibar report differ from page 1 of the harbour report?",
            "the Zanzibar report",
        ),
    ],
)
def test_a_document_that_is_not_here_is_told_and_no_other_answers_for_it(snapshot, question, name):
    result = StructureSearch(snapshot).find(Question(question), TrailRecorder())
    assert result.is_missing and not result.hits
    assert result.text == f'No document here is called "{name}".'


def test_a_name_that_occurs_in_a_text_or_an_old_file_name_may_still_be_a_document(snapshot):
    search = StructureSearch(snapshot)
    for question in ("page 1 of the Harbour report", "page 1 of FerryReport2020.pdf"):
        assert search.find(Question(question), TrailRecorder()).hits
