"""Numbers in the text of an answer, and what they stand for."""

from dataclasses import dataclass

from clew.app.answers.citations import cite_answer, cited_answer_to_dict, render_text, summarise_step
from clew.app.answers.view import AnswerView, StepView
from clew.app.web.openai import neutralise_markdown
from clew.core.trail import FillStep, RetrieveStep
from clew.core.types import (
    Answer,
    ConstraintCheck,
    FallbackStep,
    Hit,
    Node,
    Quote,
    RankedAnswer,
    Step,
    StoppedStep,
    Usage,
)


def node(id, text, page=None, kind="passage"):
    return Node(id, kind, text, "d", f"{id}.txt", 0, None, id, 0, page, (), (0, len(text)))


def hit(id, text, **more):
    return Hit(node(id, text, **more), 1.0)


def view(*args, **more):
    return AnswerView.from_answer(Answer(*args, **more))


def quote(of, words):
    start = of.node.text.index(words)
    return Quote(of.node.id, words, (start, start + len(words)))


MILL = hit("mill", "The mill was built in 1919.\nIt stands on the Oskell.", page=3)
FERRY = hit("ferry", "The ferry costs 9 pence.")
REED = hit("reed", "Reeds grow by the water.")


def test_numbers_stand_after_the_words_of_an_extracted_answer_and_unused_evidence_has_none():
    quotes = (quote(FERRY, FERRY.node.text), quote(MILL, MILL.node.text), quote(REED, REED.node.text))
    text = "The ferry costs 9 pence.\nThe mill was built in 1919. It stands on the Oskell."
    cited = cite_answer(view(text, (FERRY, MILL, REED), quotes))
    assert cited.text == (
        "The ferry costs 9 pence. [1]\nThe mill was built in 1919. It stands on the Oskell. [2]"
    )
    assert [citation.node.id for citation in cited.citations] == ["ferry", "mill"]
    assert cited.source_list() == "Sources:\n[1] ferry.txt\n[2] mill.txt, page 3"


def test_what_a_model_wrote_is_cited_at_its_end_with_the_words():
    quotes = (quote(MILL, "built in 1919"), quote(FERRY, "9 pence"), quote(MILL, "on the Oskell"))
    cited = cite_answer(view("In 1919, for 9 pence, said they.", (MILL, FERRY), quotes, reader="gpt"))
    assert cited.text == "In 1919, for 9 pence [2], said they. [1]"
    assert (
        cited.source_list()
        == "Sources:\n[1] mill.txt, page 3: “built in 1919 … on the Oskell”\n[2] ferry.txt"
    )


def test_a_number_is_a_word_of_its_own():
    nine = hit("nine", "9")
    cited = cite_answer(view("In 1919.", (nine,), (quote(nine, "9"),), reader="gpt"))
    assert cited.text == "In 1919. [1]" and not cited.citations[0].inline


def test_evidence_without_quotes_is_cited_whole_and_a_mark_makes_no_cell_of_a_table():
    table = hit("table", "| a | b |\n| --- | --- |\n| 1 | 2 |", kind="table")
    cited = cite_answer(view(f"{table.node.text}\n\n{REED.node.text}", (table, REED)))
    assert cited.text == f"{table.node.text}\n[1]\n\n{REED.node.text} [2]"


def test_an_answer_that_abstains_cites_nothing_and_says_what_came_nearest():
    answer = view("Not cited.", (REED, MILL), abstained=True, rejected_quotes=("words of nobody",))
    cited = cite_answer(answer)
    assert not cited.citations and cited.text == "Not cited." and len(cited.nearest) == 2
    text = render_text(answer)
    assert "What came nearest:\n- reed.txt: “Reeds grow by the water.”" in text
    assert "not counted as evidence: “words of nobody”" in text and "extract" not in text


def test_what_only_the_model_remembers_and_what_was_stopped_is_said():
    spent = StoppedStep("over the budget of 3 calls")
    answer = view("Oskell", (), trail=(spent,), reader="chain", from_memory=("#1 is Oskell",))
    text = render_text(answer)
    assert "without evidence: #1 is Oskell" in text and "over the budget of 3 calls" in text
    assert "in part from the model's memory" in text
    assert cited_answer_to_dict(answer)["stopped"] == "over the budget of 3 calls"


def test_what_replaced_a_reply_and_what_a_prompt_went_without_is_said():
    fallback = FallbackStep("choice of sections", "those with the best score were taken", "Sure!")
    answer = view("Oskell", (), trail=(fallback,), usage=Usage(1, left_out=2))
    assert answer.notes == (
        "the model's choice of sections could not be used: those with the best score were taken",
        "2 parts of prompts (passages or exemplars) did not fit the model's context and went unread",
    )
    assert all(f"Note: {note}" in render_text(answer) for note in answer.notes)
    assert view("Oskell", ()).notes == ()


def test_a_quote_of_what_only_a_step_cited_is_cited():
    triple = hit("films:1", "Kismet >> director >> Ada", kind="triple")
    step = FillStep("kg", "#1", "Kismet >> director >> #1", hits=(triple,), usage=Usage(1))
    cited = cite_answer(view("Ada", (), (quote(triple, triple.node.text),), trail=(step,), reader="chain"))
    assert cited.citations[0].node.place == "graph films:1.txt"


def test_ranked_answers_say_what_they_meet_and_miss():
    item = RankedAnswer(
        "mill",
        MILL,
        False,
        (ConstraintCheck("#1 >> by >> Ada", 0.0), ConstraintCheck("#1 = 3", None)),
        "vector 0.7",
    )
    [shape] = cited_answer_to_dict(view("mill", (MILL,), ranking=(item,)))["ranked"]
    assert shape["checks"][0] == {"constraint": "#1 >> by >> Ada", "met": 0.0, "evidence": []}
    assert shape["checks"][1]["met"] is None and shape["by"] == "vector 0.7"


@dataclass(frozen=True, slots=True)
class PlanStep(Step):
    name = "plan"
    queries: tuple[str, ...] = ()


def test_a_step_in_a_line():
    step = RetrieveStep("who  led\nit" + " very" * 40, count=2, hits=(MILL, REED))
    line = summarise_step(StepView.from_step(step))
    assert line.startswith("retrieve: query who led it very") and line.endswith("…, hits 2")
    step = PlanStep(("a list is not shown",), hits=(MILL,))
    assert summarise_step(StepView.from_step(step)) == "plan: 1 found"
    assert summarise_step(StepView.from_step(PlanStep())) == "plan"


def test_markdown_of_documents_is_made_text_however_it_is_escaped():
    for hostile in ("![a](http://x)", "[a]: http://x", r"[a\](b)](http://x)", "<img src=x>", r"\<img src=x>"):
        shown = neutralise_markdown(hostile)
        assert "](" not in shown and "]:" not in shown and "<img" not in shown, shown
    assert neutralise_markdown("p < 0.05 [1][2] and [sic]") == "p < 0.05 [1][2] and [sic]"
