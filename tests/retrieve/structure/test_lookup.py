import json

import numpy as np
import pytest

from clew.core.errors import ModelError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Completion
from clew.core.trail import TrailRecorder
from clew.core.types import Box, Question, Scope, Table, Usage
from clew.parse.documents.builder import DocumentBuilder
from clew.retrieve.structure.lookup import StructureReader, StructureSearch, fetch_hits
from clew.retrieve.structure.query import Query, Selector
from clew.retrieve.structure.resolver import ReferenceResolver
from graph_corpora import document, finish_document
from plain_queries import FixedReader, find, page, section, show, table


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


HARBOUR, FERRY = "the harbour report", "the ferry report"


def resolve(snapshot, *selectors, question="", scope=None):
    return ReferenceResolver(snapshot, question, scope or Scope()).resolve_all(selectors)


def find_names(snapshot, *selectors, question="", scope=None):
    references = resolve(snapshot, *selectors, question=question, scope=scope)
    nodes = snapshot.nodes(snapshot.rows([reference.node for reference in references]))
    return [
        f"{node.document_name.split('.')[0]}: {node.kind} {node.page if node.kind == 'page' else node.name}".strip()
        for node in nodes
    ]


H, F = "harbour_report: ", "FerryReport2021: "


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        ([page(2, document=HARBOUR)], [H + "page 2"]),
        ([page(-1, document=FERRY)], [F + "page 3"]),
        ([page(1, document=HARBOUR), table(2, "2", FERRY)], [H + "page 1", F + "table Table 2: Ferry tolls"]),
        ([table(2, "ii", HARBOUR)], [H + "table Table 2: Harbour tolls"]),
        ([table(3, document=HARBOUR)], [H + "table"]),
        ([table(-1, document=FERRY)], [F + "table"]),
        ([table(document=HARBOUR, within=page(2))], [H + "table Table 1: Harbour people aboard"]),
        ([table(2, document=HARBOUR, within=page(3))], [H + "table Table 2: Harbour tolls"]),
        ([table(document=FERRY, name="people aboard")], [F + "table Table 1: Ferry people aboard"]),
        ([section("1.1", document=HARBOUR)], [H + "section 1.1 Data"]),
        ([Selector("section", name="Risk factors", document=FERRY)], [F + "section 2 Risk factors"]),
        ([Selector("document", document="the lease")], ["lease: document Mill lease"]),
        ([Selector("section", name="Crew", word="sheet", document="ledger.xlsx")], ["ledger: section Crew"]),
        ([Selector("section", 1, word="sheet", document="ledger.xlsx")], ["ledger: section Freight"]),
        ([table(document=HARBOUR, within=section("1.1"))], [H + "table Table 1: Harbour people aboard"]),
    ],
)
def test_what_selectors_name_is_found_in_the_document_that_they_name(snapshot, selectors, expected):
    assert find_names(snapshot, *selectors) == expected


def test_where_no_document_is_named_all_that_have_it_are_meant_best_match_first(snapshot):
    assert set(find_names(snapshot, page(2))) == {H + "page 2", F + "page 2"}
    assert find_names(snapshot, page(3), question="On page 3, may Ferry sink?")[0] == F + "page 3"


@pytest.mark.parametrize(
    "selector",
    [page(90, document=HARBOUR), section("9.9", document=HARBOUR), table(12, "12", HARBOUR),
     Selector("section", name="rent", document="the lease")],
)  # fmt: skip
def test_structures_that_do_not_exist_are_none(snapshot, selector):
    assert find_names(snapshot, selector) == []


def test_the_scope_is_kept(snapshot):
    ferry = next(document.key for document in snapshot.documents() if document.title == "Ferry report")
    scope = Scope(documents=frozenset({ferry}))
    assert find_names(snapshot, page(2), scope=scope) == [F + "page 2"]


def test_a_cell_is_its_value_with_its_row_and_column(snapshot):
    cell = Selector("row", name="Guests", column="Number", document=HARBOUR, within=table(1, "1"))
    assert find(snapshot, show(cell)).text == "9 (Guests, Number)"


def content(snapshot, *selectors, limit=30):
    return [hit.node.text for hit in fetch_hits(snapshot, resolve(snapshot, *selectors), limit)]


def test_a_page_is_its_passages_and_tables_in_order_also_those_that_go_on_there(snapshot):
    first, table = content(snapshot, page(2, document=HARBOUR))
    assert first == "Harbour data came late."
    assert table.startswith("Table 1: Harbour people aboard\n\n| Who | Number |")
    third = content(snapshot, page(3, document=HARBOUR))
    assert [text.split("\n")[0] for text in third] == [
        "Table 1: Harbour people aboard",
        "Harbour may sink.",
        "Table 2: Harbour tolls",
        "| Mark | Depth |",
    ]


def test_a_section_is_its_passages_and_those_of_its_subsections(snapshot):
    references = content(snapshot, section("1", document=HARBOUR))
    assert [text.split("\n")[0] for text in references] == [
        "Harbour counted by hand.",
        "Harbour data came late.",
        "Table 1: Harbour people aboard",
    ]


def test_a_document_that_is_too_long_gives_the_first_passages_of_its_sections(snapshot):
    lease, harbour = Selector("document", document="the lease"), Selector("document", document=HARBOUR)
    assert content(snapshot, lease) == ["The mill is let.", "Rent is due in May."]
    assert content(snapshot, harbour, limit=4) == [
        "Harbour begins.",
        "Harbour counted by hand.",
        "Harbour data came late.",
        "Harbour may sink.",
    ]


def test_hits_say_from_which_structure_they_came_and_fall_in_score(snapshot):
    named_page = resolve(snapshot, page(1, document=HARBOUR))
    hits = fetch_hits(snapshot, named_page)
    assert [hit.path for hit in hits] == [(named_page[0].node, hit.node.id) for hit in hits]
    assert hits[0].via == ("structure: page 1",)
    scores = [hit.score for hit in hits]
    assert scores == sorted(set(scores), reverse=True)
    (hit,) = fetch_hits(snapshot, resolve(snapshot, table(1, "1", HARBOUR)))
    assert (hit.path, hit.via) == ((hit.node.id,), ())


def test_a_short_limit_is_shared_and_what_one_leaves_the_next_takes(snapshot):
    references = resolve(snapshot, table(1, "1", HARBOUR), page(3, document=HARBOUR))
    texts = [hit.node.text.split("\n")[0] for hit in fetch_hits(snapshot, references, 3)]
    assert texts == ["Table 1: Harbour people aboard", "Harbour may sink.", "Table 2: Harbour tolls"]
    assert fetch_hits(snapshot, (), 3) == []


def test_a_question_about_structure_leaves_a_step_in_the_trail_and_one_about_content_none(snapshot):
    trail, reader = TrailRecorder(), FixedReader(show(page(1, document=HARBOUR)))
    assert len(StructureSearch(snapshot, reader).find(Question("page 1?"), trail).hits) == 2
    assert [step.name for step in trail.steps] == ["structure"]
    assert trail.steps[0].detail["references"][0]["said"] == "page 1"
    for content_reader in (FixedReader(), FixedReader(show(page(1, document=HARBOUR)), probability=0.2)):
        trail = TrailRecorder()
        assert not StructureSearch(snapshot, content_reader).find(Question("What may sink?"), trail)
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


def ask_model(snapshot, answer, question, always=False, plain=None):
    """Ask a model where the plain reader takes the question for structure with a probability of a quarter."""
    model, trail = Scripted(answer), TrailRecorder()
    plain = plain or FixedReader(show(page(1)), probability=0.25)
    reader = StructureReader(model, load_prompt("structure-query"))
    return StructureSearch(snapshot, plain, reader, always).find(Question(question), trail), model, trail


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
def test_a_model_names_structures_that_no_reading_is_likely_for(snapshot, answer, expected):
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


def test_a_model_is_asked_neither_where_a_reading_is_likely_nor_about_content(snapshot):
    likely = FixedReader(show(page(1, document=HARBOUR)), probability=0.9)
    result, model, _ = ask_model(snapshot, reply("content"), "Page 1 of the report?", plain=likely)
    assert not model.prompts and len(result.hits) == 2
    result, model, _ = ask_model(snapshot, reply("content"), "Who directed Low Water?", plain=FixedReader())
    assert not model.prompts and not result


def test_the_paper_asks_a_model_about_every_question_that_no_reading_is_likely_for(snapshot):
    answer = selector_reply("section", name="risk factors", document="harbour_report.pdf")
    question, plain = "What do the risk factors say?", FixedReader()
    result, model, _ = ask_model(snapshot, answer, question, always=True, plain=plain)
    assert len(model.prompts) == 1 and result.hits[0].node.text.startswith("Harbour may sink")
    assert not ask_model(snapshot, answer, question, plain=plain)[1].prompts


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
    question = "Who directed the film Low Water?"
    assert not ask_model(snapshot, invented, question, always=True, plain=FixedReader())[0]


def test_a_reply_in_another_form_is_kept_in_the_trail(snapshot):
    result, _, trail = ask_model(snapshot, "I would say page 3.", "¿Qué pone en esa página?")
    assert not result
    assert trail.steps[0].detail["unreadable reply"] == "I would say page 3."


def test_a_model_that_fails_is_an_error_and_not_a_question_about_content(snapshot):
    class Failing(Scripted):
        def complete(self, prompts):
            raise ModelError("out of reach")

    with pytest.raises(ModelError):
        reader = StructureReader(Failing(""), load_prompt("structure-query"))
        unsure = FixedReader(show(page(1)), probability=0.25)
        StructureSearch(snapshot, unsure, reader).find(Question("Which pages?"), TrailRecorder())


def test_an_empty_base_has_no_structure(bases):
    empty = bases.snapshot([])
    assert resolve(empty, page(7, document="the lease")) == ()
    assert np.array_equal(fetch_hits(empty, ()), [])


@pytest.mark.parametrize(
    ("query", "name"),
    [
        (show(page(2, document="the Zanzibar report")), "the Zanzibar report"),
        (show(page(2, document="Zanzibar_2021_report.pdf")), "Zanzibar_2021_report.pdf"),
        (
            Query("count", (Selector("document", document="the Zanzibar report"),), "table", "table"),
            "the Zanzibar report",
        ),
        (show(page(1, document="the Zanzibar report"), page(1, document=HARBOUR)), "the Zanzibar report"),
    ],
)
def test_a_document_that_is_not_here_is_told_and_no_other_answers_for_it(snapshot, query, name):
    result = find(snapshot, query)
    assert result.is_missing and not result.hits
    assert result.text == f'No document here is called "{name}".'


def test_a_name_that_occurs_in_a_text_or_an_old_file_name_may_still_be_a_document(snapshot):
    for words in ("the Harbour report", "FerryReport2020.pdf"):
        assert find(snapshot, show(page(1, document=words))).hits
