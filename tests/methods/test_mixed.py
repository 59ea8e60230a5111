"""Questions whose hops are in different sources: a graph of films, a text, a table."""

from __future__ import annotations

import pytest

import clew
import film_world
import linked_worlds
from clew.core.errors import UsageError
from clew.core.trail import FillStep
from clew.core.types import Quote
from clew.methods.answering import describe_origin
from clew.methods.readers.quotes import mark_words

TEXTS = {
    "lodgings.txt": "Dorte Halvik lodged at the Anchor Inn for eleven winters.\n\n"
    "The Anchor Inn has forty rooms and a brass bell.\n",
    "painter.txt": "The poster of Nine Lanterns was painted by Jorun Vik.\n\n"
    "The prize of the harbour town went to Ruben Achterberg in 1937.\n",
    "pay.csv": "name,role,weekly pay\nIlse Varnholt,director,41.50\nMarit Solheim,director,38.25\n"
    '"Szarka, Emil",actor,19.75\n',
    "shipping.csv": "crates,sender,port\nC1,Ilse Varnholt,Vessby\nC2,Marit Solheim,Vessby\n"
    "C3,Ilse Varnholt,Dunmere\nC4,Ilse Varnholt,Vessby\n",
    "years.csv": "film,year of release,reels\nLow Water,1936,7\nGlass Harvest,1934,9\n",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Texts and tables beside the film world, read by the reader that comes with clew."""
    folder = tmp_path_factory.mktemp("mixed")
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_ENCODER", "none")
        patch.setenv("CLEW_READER", "clew:reader")
        with clew.open(folder / "kb", create=True) as opened:
            opened.add([folder / name for name in TEXTS])
            film_world.films(opened.store)
            yield opened


def steps(answer):
    """Return the source and the first value of each step."""
    return [
        (step.source, step.values[0]) for step in answer.trail if isinstance(step, FillStep) and step.values
    ]


def ask(base, question):
    """Return what the steps of a question lead to, stated or not."""
    answer = base.ask(question, recipe="mixed")
    return answer.perhaps[0] if answer.perhaps else answer


@pytest.mark.slow
def test_the_graph_knows_the_first_step_and_a_table_the_second(base):
    answer = ask(base, "What was the weekly pay of the director of Low Water?")
    assert "41.5" in answer.text and answer.recipe.startswith("mixed")
    assert steps(answer)[0] == ("graph", "Ilse Varnholt")
    assert any("41.50" in quote.text for quote in answer.quotes)
    assert any("Low Water" in quote.text for quote in answer.quotes)
    assert 0 < (answer.confidence or 0) < 1
    assert describe_origin(answer.reader, (), ()) == "each step answered from its source, as the steps say"
    assert answer.plan is not None and answer.plan.kind == "sequence"
    first, second = answer.plan.text.splitlines()
    assert first.startswith("#1: ") and " = Ilse Varnholt (graph 'films': " in first
    assert second.startswith("#2: What was the weekly pay of Ilse Varnholt? = 41.5")


@pytest.mark.slow
def test_a_document_knows_the_first_step_and_the_graph_the_second(base):
    answer = ask(base, "Where was the actor who lodged at the Anchor Inn born?")
    assert answer.values == ("Saltreach",)
    assert steps(answer) == [("document", "Dorte Halvik"), ("graph", "Saltreach")]
    assert any("lodged at the Anchor Inn" in quote.text for quote in answer.quotes)


@pytest.mark.slow
def test_the_router_asks_for_the_steps_where_nothing_states_an_answer(base):
    answer = base.ask("How many crates have the director of Low Water as sender?")
    possible = answer.perhaps or (answer,)
    assert any(each.plan is not None and each.plan.kind == "sequence" for each in possible)


def test_a_question_without_another_inside_is_refused(base):
    with pytest.raises(UsageError, match="none was read in this"):
        base.ask("Who directed it?", recipe="mixed")
    assert (
        base.ask("Which grebe of the moon sang the song that nobody knows?", recipe="mixed").way != "answer"
    )
    with pytest.raises(UsageError) as refusal:
        base.ask("Who directed Low Water in the very long year of the flood? " * 20, recipe="mixed")
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("marked", "words"), [((10, 15), "Okell"), (None, "Crew. Okell, Ruth")], ids=["marked", "unmarked"]
)
def test_a_value_of_a_document_is_what_its_quote_marks(marked, words):
    quote = Quote("n", "Crew: Okell, Ruth: Rank: Purser", (4, 35), marked)
    assert mark_words("Crew. Okell, Ruth", quote) == words


def test_a_step_is_asked_of_graphs_that_links_join(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_ENCODER", "none")
    monkeypatch.setenv("CLEW_READER", "clew:reader")
    (tmp_path / "yards.txt").write_text("Lock & Mast closed in 1971, after the fire.\n")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.add([tmp_path / "yards.txt"])
        linked_worlds.add_fleet(base, tmp_path)
        answer = base.ask("When did the shipyard that built the Sable close?", recipe="mixed")
        asked = [step for step in answer.trail if isinstance(step, FillStep)]
        assert "graph" in {step.source for step in asked}
        assert {"1971"} <= {
            word.strip(",.") for each in answer.perhaps or [answer] for word in each.text.split()
        }
