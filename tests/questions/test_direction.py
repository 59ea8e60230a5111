"""Which way round a relation is meant: no reversed fact is affirmed, no relation turned to find an answer."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.core.types import STATED_FROM
from clew.knowledge_base.knowledge_base import open as open_base
from clew.models.plan_judge import create_plan_judge
from clew.questions.direction import DirectionScorer, name_ends, turn_plan
from clew.questions.plans import COUNT, LIST, YES_NO, Edge, GraphPlan, Kind, Same
from clew.questions.reading import QuestionReader
from clew.train.directions import (
    DirectionExample,
    DirectionQuestion,
    fit_directions,
    measure_directions,
    read_directions,
    temper_directions,
)

PLAN = GraphPlan((Same(1, "Ann"), Edge(1, ("reports to",), "Bo")), YES_NO)


def test_a_plan_turned_twice_is_the_plan() -> None:
    turned = turn_plan(PLAN)
    assert turned is not None and turn_plan(turned) == PLAN
    assert name_ends(PLAN) == ("Ann", "reports to", "Bo")
    assert name_ends(turned) == ("Bo", "reports to", "Ann")


@pytest.mark.parametrize(
    "plan",
    [
        GraphPlan((Edge(1, ("reports to",), 2),), LIST),
        GraphPlan((Edge(1, ("reports to",), "Bo"), Edge(1, ("likes",), "Bo")), LIST),
        GraphPlan((Same(1, "Ann"), Edge(1, ("reports to",), 2)), YES_NO),
        GraphPlan((Same(1, "Ann"), Edge(1, ("reports to",), "Bo", "only")), YES_NO),
        GraphPlan((Same(1, "Ann", True), Edge(1, ("reports to",), "Bo")), YES_NO),
    ],
)
def test_other_plans_are_not_turned(plan: GraphPlan) -> None:
    assert turn_plan(plan) is None


def test_what_speaks_for_one_way_speaks_against_the_other() -> None:
    chooser = np.random.default_rng(0)
    examples = []
    for number in range(600):
        is_passive, is_meant = bool(number % 2), bool(chooser.integers(2))
        cues = frozenset({"order", "has by"} if is_passive else {"order"})
        likeness = chooser.normal(size=(2, 3)) / 100
        question = DirectionQuestion("a", "", ("", ""), cues, is_meant != is_passive, is_meant)
        examples.append(DirectionExample(question, likeness))
    scorer = DirectionScorer.of_arrays(fit_directions(examples).to_arrays("asked"), "asked")
    likeness = np.zeros((2, 3))
    active = scorer.score({"order"}, likeness, is_head_first=True)
    passive = scorer.score({"order", "has by"}, likeness, is_head_first=True)
    assert active > 0.8 and passive < 0.2
    assert scorer.score({"order"}, likeness, is_head_first=False) == pytest.approx(1 - active)


def test_a_scorer_is_no_surer_than_unseen_questions_allow() -> None:
    chooser = np.random.default_rng(1)

    def draw(count: int, share: float) -> list[DirectionExample]:
        examples = []
        for _ in range(count):
            is_meant, is_told = bool(chooser.integers(2)), chooser.random() < share
            likeness = np.zeros((2, 3))
            likeness[0 if is_meant == is_told else 1] = 0.2
            examples.append(
                DirectionExample(DirectionQuestion("a", "", ("", ""), frozenset(), True, is_meant), likeness)
            )
        return examples

    known, unseen = draw(400, 0.98), draw(400, 0.7)
    scorer = fit_directions(known)
    tempered = temper_directions(scorer, unseen)
    likeness = np.array([[0.2] * 3, [0.0] * 3])
    assert scorer.score((), likeness, is_head_first=True) > 0.95
    assert tempered.score((), likeness, is_head_first=True) == pytest.approx(0.7, abs=0.06)
    assert temper_directions(scorer, ()) is scorer
    domains = [
        replace(each, question=replace(each.question, domain=f"d{n % 4}")) for n, each in enumerate(unseen)
    ]
    measures = measure_directions(known, domains)
    assert measures["questions"] == 400 and measures["of 80 % and more"] == 0


def test_no_reversed_fact_is_affirmed(tmp_path: Path) -> None:
    people = {"Ada Fenn": "Bo Marl", "Cy Dunn": "Ada Fenn", "Di Oake": "Cy Dunn", "Ed Pell": "Bo Marl"}
    (tmp_path / "staff.tsv").write_text(
        "".join(f"{who}\treports to\t{to}\n{who}\thired by\t{to}\n" for who, to in people.items())
    )
    asked = [
        "Does {} report to {}?",
        "Was {} hired by {}?",
        "is it true that {} reports to {}",
        "{} hired by {}?",
    ]
    reader = QuestionReader(create_plan_judge())
    with open_base(tmp_path / "base", create=True) as base:
        base.graphs.add(str(tmp_path / "staff.tsv"))
        graph = base.store.snapshot().graph("staff")
        stated = 0
        for text in asked:
            for who, to in people.items():
                answers = [reader.read(text.format(*pair), [graph])[0] for pair in ((who, to), (to, who))]
                is_affirmed = [each.values == ("Yes",) and each.probability >= 0.7 for each in answers]
                assert not is_affirmed[1], (text, to, who, answers[1])
                stated += is_affirmed[0]
        assert stated


def test_written_questions_are_read_both_ways(tmp_path: Path) -> None:
    row = {"relation": "founded by", "head": "Loam & Co", "tail": "Enos Strake", "domain": "firms"}
    file = tmp_path / "ways.jsonl"
    questions = [
        "Did Enos Strake found Loam & Co?",
        "loam & co founded by enos strake",
        "Who is Enos Strake?",
    ]
    file.write_text("".join(json.dumps(row | {"question": question}) + "\n" for question in questions))
    examples = read_directions(file)
    assert [(each.is_meant, each.is_head_first) for each in examples] == [
        (True, False), (False, True), (True, True), (False, False),
    ]  # fmt: skip
    assert "has by" in examples[2].cues and "has by" not in examples[0].cues
    assert examples[1].question == "Did Loam & Co found Enos Strake?"
    assert [each.for_judge().gold for each in examples[:2]] == [*examples[0].sentences]
    file.write_text('{"question": "?"}\n')
    with pytest.raises(UsageError):
        read_directions(file)


def test_a_plan_that_asks_for_one_end_is_turned() -> None:
    asked = GraphPlan((Kind(1, "person"), Edge(1, ("reports to",), "Bo")), COUNT)
    assert turn_plan(asked) == GraphPlan((Edge("Bo", ("reports to",), 1),), COUNT)
    assert name_ends(asked) == ("", "reports to", "Bo")


#: Relations of a graph without types, of things that stand at either end: a chain of three of each, and how each way
#: is asked.
CHAINS = {
    "reports to": (("Andrew", "Nancy", "Vera"), ("Who does {} report to?", "Who reports to {}?")),
    "feeds": (("router-7", "switch-2", "rack-9"), ("What does {} feed?", "What feeds {}?")),
    "taught": (("Jane Austen", "Ann Radley", "Ida Poole"), ("Whom did {} teach?", "Who taught {}?")),
    "supplies": (("Pump A", "Tank 3", "Pump B"), ("What does {} supply?", "what supplies {}")),
    "founded by": (("Nordal", "Kessel", "Ambra"), ("Who was {} founded by?", "What was founded by {}?")),
}


def test_a_relation_is_not_turned_to_find_an_answer(tmp_path: Path) -> None:
    """What is stated of the ends of a chain has the direction that is asked for: nobody, where only the other has an
    answer."""
    (tmp_path / "ways.tsv").write_text(
        "".join(
            f"{head}\t{relation}\t{tail}\n"
            for relation, (chain, _) in CHAINS.items()
            for head, tail in itertools.pairwise(chain)
        )
    )
    reader, wrong, right = QuestionReader(create_plan_judge()), [], 0
    with open_base(tmp_path / "base", create=True) as base:
        base.graphs.add(str(tmp_path / "ways.tsv"))
        graph = base.store.snapshot().graph("ways")
        for (first, second, third), (tail_of, head_of) in CHAINS.values():
            for wording, known, expected in (
                (tail_of, first, {second}),
                (tail_of, third, set()),
                (head_of, first, set()),
                (head_of, third, {second}),
            ):
                reading, *others = reader.read(wording.format(known), [graph])
                assert sum(each.probability for each in (reading, *others[:1])) <= 1
                assert all(each.probability <= reading.probability for each in others)
                is_right = set(reading.values) == expected
                right += is_right
                if reading.probability >= STATED_FROM and not is_right:
                    wrong.append(wording.format(known))
    assert wrong == [] and right >= 15, (wrong, right)  # of 20
