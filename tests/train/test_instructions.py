"""Training files: Listing 1 of the KGP paper, and ordered passages with negatives."""

import json

import pytest

from clew.core.errors import UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Completion
from clew.core.types import Usage
from clew.evaluate.examples import Example, Paragraph, Support
from clew.methods.kgp.guides import GENERATION_PROMPTS, GeneratedEvidence
from clew.train.evidence_chains import (
    INSTRUCTION,
    chain_records,
    instruction_records,
    write_chains,
    write_instructions,
)

THEME = (
    "The theme was re-arranged during season 2, and the current arrangement by Alf Clausen was introduced."
)
ALF = "Alf Heiberg Clausen (born March 28, 1941) is an American film and television composer."
QUESTION = "In what year was the creator of the current arrangement of Simpson's Theme born?"
NOISE = tuple(Paragraph(f"Noise {n}", (f"Nothing {n}.",)) for n in range(6))
EXAMPLE = Example(
    "5a",
    QUESTION,
    ("March 28, 1941",),
    question_type="bridge",
    support=(Support("Alf Clausen", 0), Support("The Simpsons Theme", 1)),
    corpus=(
        Paragraph("Alf Clausen", (ALF, "He won awards.")),
        Paragraph("The Simpsons Theme", ("It is a theme.", THEME)),
        *NOISE,
    ),
)


def test_an_instruction_is_that_of_listing_1():
    assert list(instruction_records(EXAMPLE)) == [
        {"instruction": INSTRUCTION, "input": f"{QUESTION} {THEME}", "output": ALF}
    ]
    assert list(instruction_records(EXAMPLE, "prefix")) == [
        {"input": f"{INSTRUCTION} {QUESTION} {THEME}", "output": ALF}
    ]


def test_three_hops_make_two_steps_and_each_order_of_a_comparison_one():
    corpus = tuple(Paragraph(t, (f"{t} it is.",)) for t in ("One", "Two", "Three"))
    support = tuple(Support(item.title, text=item.text) for item in corpus)
    three = Example("3", "Q?", ("x",), support=support, corpus=corpus, chain=(("q", "a"),) * 3)
    assert [(record["input"], record["output"]) for record in instruction_records(three)] == [
        ("Q? One it is.", "Two it is."),
        ("Q? One it is. Two it is.", "Three it is."),
    ]
    compared = Example("2", "Q?", ("x",), support=support[:2], corpus=corpus[:2], question_type="comparison")
    assert [(record["input"], record["output"]) for record in instruction_records(compared)] == [
        ("Q? One it is.", "Two it is."),
        ("Q? Two it is.", "One it is."),
    ]


def test_negatives_hold_no_gold_and_depend_on_the_seed_alone():
    (first,) = chain_records(EXAMPLE, negatives=3, seed=1)
    assert [passage["title"] for passage in first["passages"]] == ["The Simpsons Theme", "Alf Clausen"]
    assert first["passages"][0]["facts"] == THEME
    negatives = [negative["title"] for negative in first["negatives"]]
    assert len(set(negatives)) == 3 and all(title.startswith("Noise") for title in negatives)
    shuffled = Example(
        EXAMPLE.id,
        QUESTION,
        EXAMPLE.answers,
        question_type="bridge",
        support=EXAMPLE.support,
        corpus=EXAMPLE.corpus[::-1],
    )
    (again,) = chain_records(shuffled, negatives=3, seed=1)
    assert again["negatives"] == first["negatives"]
    seeds = [next(chain_records(EXAMPLE, 3, seed))["negatives"] for seed in range(6)]
    assert any(item != first["negatives"] for item in seeds)


def test_files_hold_a_record_a_line_and_are_the_same_every_time(tmp_path):
    examples = [EXAMPLE, Example("no order", "Q?", ("x",))]
    assert write_chains(tmp_path / "a.jsonl", examples) == 1
    assert write_instructions(tmp_path / "b.jsonl", iter(examples), "prefix") == 1
    (line,) = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == next(chain_records(EXAMPLE))
    before = (tmp_path / "b.jsonl").read_bytes()
    write_instructions(tmp_path / "b.jsonl", examples, "prefix")
    assert (tmp_path / "b.jsonl").read_bytes() == before
    with pytest.raises(UsageError, match="no form"):
        write_instructions(tmp_path / "c.jsonl", examples, "instrction")


class Heard:
    """A model that keeps what it is asked."""

    name = "heard"

    def __init__(self):
        self.asked = []

    def complete(self, prompts):
        self.asked += prompts
        return [Completion("x", Usage(), self.name) for _ in prompts]


def test_a_guide_asks_what_its_model_was_trained_on():
    (listing,), (prefix,) = instruction_records(EXAMPLE), instruction_records(EXAMPLE, "prefix")
    texts = {}
    for name in ("listing1", "prefix"):
        model = Heard()
        GeneratedEvidence(model, load_prompt(GENERATION_PROMPTS[name])).expect(QUESTION, [[THEME]])
        (texts[name],) = model.asked
    assert texts["listing1"].user == "\n\n".join(
        (f"Instruction: {listing['instruction']}", f"Input: {listing['input']}", "Output:")
    )
    assert texts["prefix"].user == prefix["input"]
    assert texts["listing1"].system == texts["prefix"].system == ""
