"""The order of gold passages, from what each data set says about it."""

from pathlib import Path

import pytest

from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example, Paragraph, Support
from clew.train.evidence_chains import GuideStep, evidence_chains, gold_passages, guide_steps

SHARED = Path(__file__).parents[3] / "shared" / "data"


def example(paragraphs, support, **more):
    corpus = tuple(Paragraph(title, tuple(sentences)) for title, sentences in paragraphs)
    pieces = tuple(Support(title, sentence) for title, sentence in support)
    return Example("1", "Who?", more.pop("answers", ("1919",)), support=pieces, corpus=corpus, **more)


def titles(example):
    return [[passage.title for passage in chain.passages] for chain in evidence_chains(example)]


YARD = ("Tolland Yard", ["Tolland Yard is a shipyard.", "It opened in 1919."])
BOAT = ("Heron Maid", ["The Heron Maid is a lighter.", "She was built by Tolland Yard.", "She sank."])
NOISE = ("Noise", ["Nothing happened in 1919."])


def test_of_a_bridge_the_passage_that_holds_the_answer_is_last():
    either = [("Tolland Yard", 1), ("Heron Maid", 1)]
    for support in (either, either[::-1]):
        result = example([NOISE, YARD, BOAT], support, question_type="bridge")
        assert titles(result) == [["Heron Maid", "Tolland Yard"]]
    (chain,) = evidence_chains(result)
    assert [passage.facts for passage in chain.passages] == [
        "She was built by Tolland Yard.",
        "It opened in 1919.",
    ]
    assert chain.passages[1].text == "Tolland Yard is a shipyard. It opened in 1919."


def test_where_the_answer_does_not_tell_the_passage_that_another_names_is_last():
    yes = example(
        [YARD, BOAT], [("Tolland Yard", 0), ("Heron Maid", 1)], answers=("yes",), question_type="bridge"
    )
    assert titles(yes) == [["Heron Maid", "Tolland Yard"]]
    unknown = example([YARD, NOISE], [("Tolland Yard", 1), ("Noise", 0)], question_type="bridge")
    assert titles(unknown) == []


def test_an_answer_is_looked_for_at_word_borders_and_in_supporting_sentences_first():
    # "1919" is also in Heron Maid, but not in the sentence that supports the answer; "19190" is no "1919".
    boat = ("Heron Maid", ["The Heron Maid, no. 19190, was built by Tolland Yard.", "She sank in 1919."])
    result = example([YARD, boat], [("Tolland Yard", 1), ("Heron Maid", 0)], question_type="bridge")
    assert titles(result) == [["Heron Maid", "Tolland Yard"]]


def test_a_comparison_has_both_orders():
    result = example([YARD, BOAT], [("Tolland Yard", 1), ("Heron Maid", 2)], question_type="comparison")
    assert titles(result) == [["Tolland Yard", "Heron Maid"], ["Heron Maid", "Tolland Yard"]]


def test_triples_give_the_order_whatever_the_order_of_the_support():
    result = example(
        [("Get Low (song)", ["By Dillon Francis."]), ("Dillon Francis", ["Born 1987."])],
        [("Dillon Francis", 0), ("Get Low (song)", 0)],
        answers=("1987",),
        question_type="compositional",
        chain=(("Get Low", "performer", "Dillon Francis"), ("Dillon Francis", "date of birth", "1987")),
    )
    assert titles(result) == [["Get Low (song)", "Dillon Francis"]]


def test_a_head_under_another_name_is_found_by_its_tail():
    result = example(
        [
            ("Anne McLaren", ["She was the daughter of Henry McLaren."]),
            ("Henry McLaren, 2nd Baron", ["He was the son of Charles McLaren."]),
        ],
        [("Henry McLaren, 2nd Baron", 0), ("Anne McLaren", 0)],
        answers=("Charles McLaren",),
        question_type="inference",
        chain=(
            ("Dame Anne McLaren", "father", "Henry McLaren"),
            ("Henry McLaren", "father", "Charles McLaren"),
        ),
    )
    assert titles(result) == [["Anne McLaren", "Henry McLaren, 2nd Baron"]]


def test_the_strands_of_a_bridge_comparison_are_read_in_both_orders():
    facts = {"Film A": "By Ann.", "Film B": "By Bob.", "Ann": "Born 1900.", "Bob": "Born 1910."}
    result = example(
        [(title, [text]) for title, text in facts.items()],
        [(title, 0) for title in ("Bob", "Film B", "Ann", "Film A")],
        answers=("Film A",),
        question_type="bridge_comparison",
        chain=(
            ("Film A", "director", "Ann"),
            ("Film B", "director", "Bob"),
            ("Ann", "date of birth", "1900"),
            ("Bob", "date of birth", "1910"),
        ),
    )
    assert titles(result) == [["Film A", "Ann", "Film B", "Bob"], ["Film B", "Bob", "Film A", "Ann"]]


def test_a_decomposition_gives_the_order_of_three_hops(tmp_path):
    paragraphs = (
        '{"idx": 0, "title": "C", "paragraph_text": "Three.", "is_supporting": true},'
        '{"idx": 1, "title": "A", "paragraph_text": "One.", "is_supporting": true},'
        '{"idx": 2, "title": "A", "paragraph_text": "Noise.", "is_supporting": false},'
        '{"idx": 3, "title": "B", "paragraph_text": "Two.", "is_supporting": true}'
    )
    hops = ",".join(
        f'{{"question": "q{n}", "answer": "a", "paragraph_support_idx": {i}}}'
        for n, i in enumerate((1, 3, 0), 1)
    )
    record = (
        f'{{"id": "3hop1__1", "question": "Q?", "answer": "a", "paragraphs": [{paragraphs}], '
        f'"question_decomposition": [{hops}]}}'
    )
    path = tmp_path / "m.jsonl"
    path.write_text(record, encoding="utf-8")
    (dataset,) = load_dataset("musique", path).examples()
    (chain,) = evidence_chains(dataset)
    assert [(passage.title, passage.facts) for passage in chain.passages] == [
        ("A", "One."),
        ("B", "Two."),
        ("C", "Three."),
    ]


def test_one_gold_passage_or_no_answer_makes_no_chain():
    assert (
        evidence_chains(example([YARD], [("Tolland Yard", 0), ("Tolland Yard", 1)], question_type="bridge"))
        == ()
    )
    both = [("Tolland Yard", 1), ("Heron Maid", 1)]
    assert evidence_chains(example([YARD, BOAT], both, answers=(), question_type="comparison")) == ()


def test_support_beyond_a_paragraph_is_left_out_and_its_whole_text_taken():
    result = example([YARD, BOAT], [("Tolland Yard", 7), ("Heron Maid", 0), ("Nowhere", 0)])
    assert [(passage.title, passage.facts) for passage in gold_passages(result)] == [
        ("Tolland Yard", "Tolland Yard is a shipyard. It opened in 1919."),
        ("Heron Maid", "The Heron Maid is a lighter."),
    ]


def test_three_hops_make_two_steps_and_each_order_of_a_comparison_one():
    corpus = tuple(Paragraph(title, (f"{title} it is.",)) for title in ("One", "Two", "Three"))
    support = tuple(Support(item.title, text=item.text) for item in corpus)
    three = Example("3", "Q?", ("x",), support=support, corpus=corpus, chain=(("q", "a"),) * 3)
    assert list(guide_steps(three)) == [
        GuideStep("Q?", "One it is.", "Two it is."),
        GuideStep("Q?", "One it is. Two it is.", "Three it is."),
    ]
    compared = Example("2", "Q?", ("x",), support=support[:2], corpus=corpus[:2], question_type="comparison")
    assert list(guide_steps(compared)) == [
        GuideStep("Q?", "One it is.", "Two it is."),
        GuideStep("Q?", "Two it is.", "One it is."),
    ]


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/data; it is not part of this repository")
@pytest.mark.parametrize(
    ("name", "file", "least"),
    [
        ("hotpotqa", "hotpotqa/train100.jsonl", 99),
        ("2wikimultihopqa", "2wikimultihopqa/train500.jsonl", 500),
        ("musique", "musique/train100.jsonl", 100),
    ],
)
def test_nearly_all_real_questions_have_an_order(name, file, least):
    dataset = {
        item.id: (item, evidence_chains(item)) for item in load_dataset(name, SHARED / file).examples()
    }
    assert sum(bool(orders) for _, orders in dataset.values()) >= least
    for value, orders in dataset.values():
        assert len(orders) in ((0, 2) if "comparison" in value.question_type else (0, 1))
        for chain in orders:
            assert set(chain.passages) == set(gold_passages(value))
