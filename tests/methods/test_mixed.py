"""Questions whose hops are in different sources: a graph of films, a text, a table."""

from __future__ import annotations

import pytest

import clew
import film_world
from clew.core.errors import UsageError
from clew.core.trail import ConflictStep, FillStep
from clew.core.types import Quote, RouteStep
from clew.methods.mixed import calibrate, complete_name, fits_hop, other_spellings

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


def sources(answer):
    """Return the source of each hop that has a value, the likelier first."""
    steps = [step for step in answer.trail if isinstance(step, FillStep) and step.values]
    return [(step.unknown, step.source, step.values[0]) for step in steps]


@pytest.mark.slow
def test_the_graph_knows_the_first_hop_and_a_table_the_second(base):
    answer = base.ask("What was the weekly pay of the director of Low Water?")
    assert answer.text in ("41.50", "41.5") and answer.recipe.startswith("mixed")
    assert ("#1", "graph", "Ilse Varnholt") in sources(answer) and ("#2", "table", answer.text) in sources(
        answer
    )
    assert any("41.50" in quote.text for quote in answer.quotes)
    assert any("directed_by" in quote.text or "Low Water" in quote.text for quote in answer.quotes)
    steps = [step for step in answer.trail if isinstance(step, FillStep) and step.values]
    assert all(step.confidence is not None and 0 < step.confidence < 1 for step in steps)
    assert 0 < (answer.confidence or 0) < 1
    chains = [step.detail for step in answer.trail if step.name == "chain"]
    assert chains[0]["written by"] == "clew's parser" and "#1 >> weekly pay >> #2" in chains[0]["chain"]
    route = answer.trail[0]
    assert isinstance(route, RouteStep) and route.method == "mixed" and route.cost
    assert answer.route.startswith("From graphs and documents: it is 2 questions")


@pytest.mark.slow
def test_a_document_knows_the_first_hop_and_the_graph_the_second(base):
    answer = base.ask("Where was the actor who lodged at the Anchor Inn born?")
    assert answer.values == ("Saltreach",)
    assert ("#1", "document", "Dorte Halvik") in sources(answer)
    assert ("#2", "graph", "Saltreach") in sources(answer)


@pytest.mark.slow
def test_sources_that_disagree_are_shown(base):
    answer = base.ask("In which year was the film that starred Ilse Varnholt released?", recipe="mixed")
    (conflict,) = (step for step in answer.trail if isinstance(step, ConflictStep) and step.unknown == "#2")
    assert {conflict.taken.values[0], conflict.also.values[0]} == {"1932", "1936"}
    assert conflict.taken.source == "films" and conflict.also.source == "table"


def test_a_hop_is_asked_of_a_table(base):
    """Whether it is counted or listed is the table's reading; its rows are those of the director."""
    answer = base.ask("How many crates have the director of Low Water as sender?")
    assert answer.text in ("3", "C1, C3, C4")
    assert any((unknown, source) == ("#2", "table") for unknown, source, _ in sources(answer))


def test_hops_that_no_graph_knows_are_left_to_the_documents(base):
    answer = base.ask("How many rooms has the inn that has a brass bell?")
    assert answer.recipe.startswith("kgp")


def test_a_question_of_one_hop_is_refused(base):
    with pytest.raises(UsageError, match="of several hops"):
        base.ask("Who directed Low Water?", recipe="mixed")
    with pytest.raises(UsageError) as refusal:
        base.ask("Who directed Low Water in the very long year of the flood? " * 20, recipe="mixed")
    assert len(str(refusal.value)) < 300


@pytest.mark.slow
def test_a_name_is_asked_for_as_each_source_writes_it(base):
    assert other_spellings("Szarka, Emil") == ("Szarka, Emil", "Emil Szarka")
    answer = base.ask("Where was the actor whose weekly pay is 19.75 born?")
    assert answer.values == ("Dunmere",)
    (born,) = (
        step
        for step in answer.trail
        if isinstance(step, FillStep) and step.unknown == "#2" and step.source == "graph"
    )
    assert born.values == ("Dunmere",)


def test_a_value_is_completed_from_its_quote():
    text = "It was forged by the Tolland Yard and laid in four nights."
    start = text.index("the Tolland")
    quote = Quote("n", text, (10, 10 + len(text)), (10 + start, 10 + start + len("the Tolland")))
    assert complete_name("the Tolland", quote) == "the Tolland Yard"
    assert complete_name("nights", quote) == "nights" and complete_name("Tolland", None) == "Tolland"


@pytest.mark.parametrize(
    ("text", "value", "fits"),
    [
        ("Which firm built it?", "1926", False),
        ("Which year was it built?", "1926", True),
        ("What did it cost?", "Motor launch", False),
        ("What did it cost?", "$9,850", True),
        ("Who is the wife of Ada?", "Ada", False),
        ("When was it built?", "Lima", False),
    ],
)
def test_a_value_has_to_be_what_the_hop_asks_for(text, value, fits):
    assert fits_hop(text, value, "Ada") == fits


def test_calibration_keeps_the_order_of_what_a_source_states():
    for source in ("graph", "document", "table"):
        probabilities = [calibrate(source, stated) for stated in (0.0, 0.2, 0.5, 0.8, 1.0)]
        assert probabilities == sorted(probabilities) and 0 < probabilities[0] < probabilities[-1] < 1
