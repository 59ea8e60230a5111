"""Grading by a model: what it is asked, and what counts as its verdict."""

import pytest

from clew.core.errors import BadCompletion
from clew.core.prompts.templates import load_prompt
from clew.evaluate.examples import Example
from clew.evaluate.metrics.grading import AnswerToGrade, Grader, read_verdict, reference_answer
from clew.models import create_language_model
from scripted import ScriptedServer

MARVEL = Example("1", "What company owns Marvel Comics?", ("The Walt Disney Company", "Disney"))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [("1", 1), ("0", 0), (" 1\n", 1), ("Return: 1", 1), ("return:0.", 0), ("0.", 0)],
)
def test_a_verdict(reply, expected):
    assert read_verdict(reply) == expected


@pytest.mark.parametrize("reply", ["", "yes", "10", "1 or 0", "0.5", "Return: 2", "The answer is 1", "1\n0"])
def test_anything_else_is_no_verdict(reply):
    with pytest.raises(BadCompletion):
        read_verdict(reply)


def test_the_model_sees_question_real_answer_and_prediction():
    with ScriptedServer(["1", "Return: 0", "I cannot say"]) as server:
        grader = Grader(create_language_model(server.llm), load_prompt("grade"))
        grades = [grader.grade([AnswerToGrade(MARVEL, answer)])[0] for answer in ("Disney", "Fox", "Marvel")]
        asked = server.requests[0].prompt
    assert [grade.value for grade in grades] == [1, 0, None]
    assert "neither 0 nor 1" in grades[2].problem and grades[2].usage.calls == 1
    assert "Answer: The Walt Disney Company\nPrediction: Disney\n" in asked
    assert "Question: What company owns Marvel Comics?" in asked


def test_what_needs_no_grading_is_not_asked():
    none = Example("2", "Who?", (), "unanswerable")
    unknown = Example("3", "Who?", ())
    given = [
        AnswerToGrade(MARVEL, "Not found.", abstained=True),
        AnswerToGrade(MARVEL, " "),
        AnswerToGrade(none, "Not found.", abstained=True),
        AnswerToGrade(none, "Fox"),
        AnswerToGrade(unknown, "Fox"),
        AnswerToGrade(MARVEL, "Disney"),
    ]
    with ScriptedServer(["1"]) as server:
        grades = Grader(create_language_model(server.llm), load_prompt("grade")).grade(given)
        assert len(server.requests) == 1
    assert [grade.value for grade in grades] == [0, 0, 1, 0, None, 1]
    assert "no answer" in grades[4].problem
    assert sum(grade.usage.calls for grade in grades) == 1


def test_a_list_of_entities_is_shown_whole():
    assert reference_answer(MARVEL) == "The Walt Disney Company"
    assert reference_answer(Example("4", "Who?", ("A Finch", "B Loam"), "entities")) == "A Finch, B Loam"
