"""Pronouns are found by a cheap rule and resolved by a model, whose rewrite is checked."""

import pytest

from clew.core.prompts.templates import load_prompt
from clew.core.trail import TrailRecorder
from clew.methods.focus.pronouns import PronounResolver, has_pronouns, rewrite_problem
from clew.models import create_language_model
from malformed import MALFORMED
from scripted import ScriptedServer


@pytest.mark.parametrize(
    "question",
    [
        "Which films did David Lynch direct before his first series?",
        "I saw a film by Lynch. Who starred in it?",
        "Which directors act in films that they wrote?",
        "Find drugs for asthma. These should not interact with aspirin.",
        "I know Heat and Ali; who shot that one?",
        "Heat and Ali: who shot the latter?",
        "I liked Heat. Who directed this film?",
        "Which director's film has her name?",
        "Lynch made two films in 1990. He won for one. Which?",
        "Who directed Blue Velvet? What is its length?",
        "Heat is a film; this film has a director; who?",
        "A film of Lynch: who stars in this film?",
    ],
)
def test_pronouns_are_noticed(question):
    assert has_pronouns(question)


@pytest.mark.parametrize(
    "question",
    [
        "Which films did David Lynch direct?",
        "Who directed It?",
        "Who directed Her in 2013?",
        'Who sang "Is it you?"',
        "Is it true that Lynch directed Heat?",
        "How long does it take from Lima to Cusco?",
        "Which films are like those of David Lynch?",
        "Which people are those who won in 1990?",
        "Which films that won a prize did Lynch direct?",
        "I am looking for a film. The director was born in Lima.",
        "Which IT companies are in Lima?",
        "Which films of Lynch: the slow ones; those that won a prize?",
        "",
    ],
)
def test_what_is_no_pronoun_costs_no_call(question):
    assert not has_pronouns(question)
    with ScriptedServer([]) as server:
        record = TrailRecorder()
        resolver = PronounResolver(create_language_model(server.llm), load_prompt("focus-pronouns"))
        assert resolver.resolve(question, record) == question
        assert not server.requests and not record.steps


ASKED = "David Lynch made a film in 1986. Who starred in it?"
GOOD = "David Lynch made a film in 1986. Who starred in the film that David Lynch made in 1986?"


def resolve_pronouns(reply, question=ASKED):
    with ScriptedServer([reply]) as server:
        record = TrailRecorder()
        text = PronounResolver(create_language_model(server.llm), load_prompt("focus-pronouns")).resolve(
            question, record
        )
    (step,) = record.steps
    assert step.name == "pronouns" and step.usage.calls == 1
    return text, step.detail


@pytest.mark.parametrize(
    "reply", [GOOD, f"<think>it?</think>Rewritten question: {GOOD}", f'"{GOOD}"\n', f"```\n{GOOD}\n```"]
)
def test_the_rewrite_is_taken_and_shown(reply):
    assert resolve_pronouns(reply) == (
        GOOD,
        {"question": ASKED, "rewritten": GOOD, "prompt": "focus-pronouns.v1"},
    )


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "the rewrite is empty"),
        ("David Lynch made a film. Who starred in the film?", "the rewrite loses 1986"),
        ("Who starred in the film made in 1986?", "the rewrite loses lynch"),
        (
            "David Lynch made Blue Velvet in 1986. Who starred in Blue Velvet?",
            "the rewrite brings in blue, velvet",
        ),
        (GOOD.replace("Who starred", "Who never starred"), "the rewrite differs in never"),
        (GOOD.replace("Who starred", "Who has not starred"), "the rewrite differs in not"),
        (GOOD.replace("starred in", "starred only in"), "the rewrite differs in only"),
        (GOOD.replace("the film that", "two films that"), "the rewrite differs in 2"),
        (GOOD * 4, "the rewrite is much longer than the question"),
    ],
)
def test_a_rewrite_that_changes_the_question_is_not_taken(reply, why):
    text, detail = resolve_pronouns(reply)
    assert text == ASKED and detail["kept as it was"] == why


def test_a_possessive_is_the_name():
    assert (
        rewrite_problem("Who shot Lynch's film? Was he paid?", "Who shot the film by Lynch? Was Lynch paid?")
        == ""
    )
    assert rewrite_problem("Did Lynch shoot it?", "Did Lynch's crew shoot the film?") == ""


@pytest.mark.parametrize(
    ("question", "rewrite", "why"),
    [
        ("Which films of Lynch don't have his name?", "Which films of Lynch have Lynch's name?", "not"),
        (
            "Lynch made films. Which of his are without MacLachlan?",
            "Which Lynch films have MacLachlan?",
            "without",
        ),
        ("Which films by Lynch have three of his actors?", "Which films by Lynch have Lynch's actors?", "3"),
        ("Which films aren't his, Lynch's?", "Which films are not Lynch's?", ""),
        ("Lynch has no film of his own?", "Lynch has not any film of Lynch's own?", "any"),
        ("Did Lynch shoot at least two of them?", "Did Lynch shoot at least two of the films?", ""),
        ("Lynch shot one. Who starred in it?", "Lynch shot one. Who starred in the one that Lynch shot?", ""),
    ],
)
def test_a_rewrite_denies_and_counts_what_the_question_does(question, rewrite, why):
    assert rewrite_problem(question, rewrite) == (f"the rewrite differs in {why}" if why else "")


@pytest.mark.slow
@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_rewrite_is_not_taken(reply):
    assert resolve_pronouns(reply)[0] == ASKED
