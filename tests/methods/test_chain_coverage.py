"""A chain answers only if all of its triples hold, each in the direction in which it is written."""

from __future__ import annotations

import pytest

import clew
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.methods.chain.method import check_triples, fill_in_order
from clew.methods.chain.unknowns import Candidate, FilledChain, Filling
from clew.methods.chain.writer import UNLIMITED
from clew.triples.language.chain import parse_chain

EDGES = """Ana\ttrained\tBo
Ana\ttrained\tCy
Ana\ttrained\tDee
Eli\tmentors\tCy
Eli\tmentors\tFay
Cy\tlives in\tOlm
Fay\tlives in\tOlm
Dee\tlives in\tPera
Olm\tlies on\tthe Arde
Pera\tlies on\tthe Taun
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coverage")
    (folder / "people.tsv").write_text(EDGES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_ENCODER", "none")
        opened = clew.open(folder / "kb", create=True)
    with opened as base:
        base.graphs.add(folder / "people.tsv")
        yield base


@pytest.mark.parametrize(
    "chain, answer",
    [
        ("Ana >> trained >> #1; Eli >> mentors >> #1; final answer: #1", "Cy"),
        ("Eli >> mentors >> #1; #1 >> lives in >> Olm; Ana >> trained >> #1; final answer: #1", "Cy"),
        # What rests on values that a later triple leaves out is filled again.
        (
            "Ana >> trained >> #1; #1 >> lives in >> #2; #2 >> lies on >> #3; Eli >> mentors >> #1; final answer: #3",
            "the Arde",
        ),
        ("Ana >> trained >> #1; #1 >> lives in >> #2; #2 >> lies on >> the Taun; final answer: #1", "Dee"),
        ("#1 >> trained >> Bo; #1 >> trained >> Dee; final answer: #1", "Ana"),
    ],
)  # fmt: skip
def test_every_triple_between_known_ends_is_checked(base, chain, answer):
    found = base.ask("", recipe="chain(sources=kg)", chain=chain)
    assert found.text == answer and not found.abstained


def test_a_triple_that_was_only_checked_is_quoted(base):
    answer = base.ask(
        "", recipe="chain(sources=kg)", chain="Ana >> trained >> #1; Eli >> mentors >> #1; final answer: #1"
    )
    assert [quote.text for quote in answer.quotes] == ["Ana >> trained >> Cy", "Eli >> mentors >> Cy"]


@pytest.mark.parametrize(
    "chain, missing, without",
    [
        ("Ana >> trained >> #1; #1 >> insured by >> #2; final answer: #1", "Bo >> insured by >> #2", "Bo, Cy, Dee"),
        ("Ana >> trained >> #1; Ana >> insured by >> #2; final answer: #1", "Ana >> insured by >> #2", "Bo, Cy, Dee"),
        ("Eli >> mentors >> #1; #1 >> lives in >> Pera; final answer: #1", "#1 >> lives in >> Pera", "Cy, Fay"),
        ("Cy >> trained >> #1; final answer: #1", "Cy >> trained >> #1", ""),
        ("#1 >> mentors >> Eli; final answer: #1", "#1 >> mentors >> Eli", ""),
        ("Ana >> trained >> #1; #2 >> lives in >> #1; final answer: #2", "#2 >> lives in >> Bo", ""),
    ],
)  # fmt: skip
def test_a_chain_with_a_triple_that_nothing_states_says_which(base, chain, missing, without):
    answer = base.ask("", recipe="chain(sources=kg)", chain=chain)
    assert answer.abstained and answer.values == () and answer.quotes == ()
    assert f"nothing states '{missing}'." in answer.text
    assert answer.text.endswith(f"there would be: {without}" if without else "'.")


class Text:
    """A source that knows a few answers, as a reader of passages does."""

    name = "text"

    def __init__(self, **answers):
        self.answers = answers

    def fill(self, question, hops, trail):
        values = [self.answers.get(hop.triple.relation) for hop in hops]
        return [Filling("text", (Candidate(value),)) if value else None for value in values]


@pytest.mark.parametrize(
    "answers, values, unmet",
    [
        ({"wrote": "Bo", "edited": "bo"}, ["Bo"], False),
        ({"wrote": "Bo", "edited": "Cy"}, ["Bo"], True),
        ({"wrote": "Bo"}, ["Bo"], True),
    ],
)
def test_values_from_text_are_compared_as_written(answers, values, unmet):
    filled = FilledChain(parse_chain("Ana >> wrote >> #1; Eli >> edited >> #1; final answer: #1", UNLIMITED))
    fill_in_order(filled, [Text(**answers)], Question("?"), TrailRecorder())
    assert [each.value for each in filled.fillings[1][0].values(9)] == values
    assert (filled.unmet is not None) == unmet


def test_another_source_may_confirm_a_triple():
    filled = FilledChain(parse_chain("Ana >> wrote >> #1; Eli >> edited >> #1; final answer: #1", UNLIMITED))
    filled.fill(filled.open_hops()[0], Filling("kg", (Candidate("Bo"), Candidate("Cy"))))
    assert check_triples(filled, [Text(edited="Dee"), Text(edited="Cy")], Question("?"), TrailRecorder())
    assert filled.best_values == {1: "Cy"} and filled.open_checks() == []
