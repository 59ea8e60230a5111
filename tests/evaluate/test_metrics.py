"""Measures against cases worked by hand."""

import random

import pytest
from ir_measures import RR, P, Qrel, R, ScoredDoc, Success, pytrec_eval

from clew.core.errors import UsageError
from clew.core.types import Usage
from clew.evaluate.examples import Annotation, Example, Result, Support
from clew.evaluate.metrics import parse_metric
from clew.evaluate.metrics.answers import contains_answer, exact_match, f1, normalise_answer, token_f1
from clew.evaluate.metrics.evidence import compare_evidence


@pytest.mark.parametrize(
    ("answer", "gold", "em", "score"),
    [
        ("The Walt Disney Company", "Walt Disney company.", 1, 1),
        ("Disney", "Walt Disney", 0, 2 / 3),
        ("a dog and the dog", "dog", 0, 0.5),  # and, dog, dog against dog: 2 * 1 / (3 + 1)
        ("", "Disney", 0, 0),
        ("", "", 1, 1),
        ("the", "", 1, 1),
        ("1,500", "1500", 1, 1),
        ("$9 a day", "9", 0, 2 / 3),
        ("Yes", "yes", 1, 1),
        ("yes it is", "yes", 0, 0),
        ("no", "yes", 0, 0),
        ("noanswer", "no answer", 0, 0),
        ("G. Stanley Hall", "Stanley Hall", 0, 0.8),
        ("New York City, New York", "New York", 0, 2 * 2 / 7),
        ("U.S.", "US", 1, 1),
        ("theatre", "the atre", 0, 0),
        ("1906 to 1907", "1907", 0, 0.5),
        ("Dunmere  Quay", "dunmere quay", 1, 1),
    ],
)
def test_exact_match_and_f1_by_hand(answer, gold, em, score):
    assert exact_match(answer, gold) == em
    assert f1(answer, gold) == pytest.approx(score)
    assert f1(gold, answer) == pytest.approx(score)


def test_normalisation_takes_articles_as_words_only():
    assert normalise_answer("The A-team, an anthem.") == "ateam anthem"


def test_an_answer_holds_another_at_word_borders_only():
    assert contains_answer("It was built in 1919 at Tolland Yard.", "Tolland Yard") == 1
    assert contains_answer("It was built in 19190", "1919") == 0
    assert contains_answer("anything", "the") == 0


def value(name, **given):
    return parse_metric(name).measure(Result(**given))


def test_aliases_count_and_the_best_one_does():
    example = Example("1", "Who?", ("G. Stanley Hall", "Stanley Hall"))
    assert value("EM", example=example, answer="stanley hall") == 1
    assert value("F1", example=example, answer="Hall") == pytest.approx(2 / 3)
    assert value("accuracy", example=example, answer="It was Stanley Hall, in 1892.") == 1
    assert value("EM", example=example, answer="Stanley Hall", abstained=True) == 0


def test_an_unanswerable_question_is_answered_by_abstaining_alone():
    example = Example("1", "Who?", (), "unanswerable")
    assert value("F1", example=example, answer="No answer that clew is sure of.", abstained=True) == 1
    assert value("F1", example=example, answer="Unanswerable") == 1
    assert value("F1", example=example, answer="Hall") == 0
    assert value("EM", example=Example("1", "Who?", ()), answer="Hall") is None


def test_annotators_are_alternatives():
    either = (
        Annotation(("BERT",), "span", (Support(text="We use  BERT."),)),
        Annotation((), "unanswerable"),
        Annotation(("Yes",), "yes/no", (Support(text="one"), Support(text="two"))),
    )
    example = Example("1", "Which?", ("BERT",), alternatives=either)
    assert value("F1", example=example, answer="the BERT model") == pytest.approx(2 / 3)
    assert value("F1", example=example, answer="", abstained=True) == 1
    # The second annotator gives no evidence: giving none is right.
    assert value("evidence-F1", example=example, cited_pieces=()) == 1
    assert value("evidence-F1", example=example, cited_pieces=({0},)) == 1
    # Against the third, one of three passages holds one of its two pieces.
    several = {"example": example, "cited_pieces": (frozenset({1}), frozenset(), frozenset())}
    assert value("evidence-F1", **several) == pytest.approx(0.4)
    assert value("evidence-P", **several) == pytest.approx(1 / 3)
    assert value("evidence-R", **several) == 0.5


@pytest.mark.parametrize(
    ("cited", "gold", "expected"),
    [
        ((), {}, (1, 1, 1)),
        (({},), {}, (0, 0, 0)),
        ((), {0}, (0, 0, 0)),
        (({0}, {}), {0, 1, 2}, (1 / 2, 1 / 3, 2 / 5)),
        (({3},), {0}, (0, 0, 0)),
        (({0}, {0}), {0}, (1, 1, 1)),  # two sentences of one gold paragraph
        (({0, 1},), {0, 1}, (1, 1, 1)),  # a table row that holds both pieces
    ],
)
def test_evidence_by_hand(cited, gold, expected):
    assert compare_evidence([frozenset(item) for item in cited], frozenset(gold)) == pytest.approx(expected)


def test_any_set_of_evidence_that_suffices_is_enough():
    a, b, c = Support("A", 0), Support("B", 1), Support("C", 2)
    sets = tuple(Annotation(("SUPPORTS",), "label", entry) for entry in ((a, b), (c,), (b, a)))
    claim = Example("1", "It sank.", ("SUPPORTS",), "label", support=(a, b), alternatives=sets)
    assert (claim.pieces, claim.evidence_sets) == ((a, b, c), (frozenset({0, 1}), frozenset({2})))
    for item, em, share in (([{0}], 0, 0.5), ([{0}, {1}], 1, 1), ([{}, {2}], 1, 1), ([{}], 0, 0)):
        held = [frozenset(entry) for entry in item]
        assert value("SF-EM", example=claim, hit_pieces=held) == em
        assert value("SF-coverage", example=claim, hit_pieces=held) == share
    assert value("recall@1", example=claim, hit_pieces=[frozenset(), frozenset({2})]) == 0
    assert value("MRR", example=claim, hit_pieces=[frozenset(), frozenset({2})]) == 0.5


def test_a_label_is_the_whole_answer_and_yes_or_no_its_first_word():
    claim = Example("1", "It sank.", ("SUPPORTS",), "label")
    assert value("accuracy", example=claim, answer="supports.") == 1
    assert value("accuracy", example=claim, answer="Nothing supports it") == 0
    asked = Example("2", "Did it?", ("yes",), "yes/no")
    assert value("accuracy", example=asked, answer="Yes, in 1919.") == 1
    assert value("accuracy", example=asked, answer="No one says yes") == 0
    assert value("F1", example=asked, answer="Yes, in 1919.") == 0
    assert value("token-F1", example=asked, answer="Yes, in 1919.") == pytest.approx(0.5)


def test_a_type_is_that_of_the_annotator_whose_answer_is_nearest():
    either = (
        Annotation(("it uses BERT and a CRF",), "abstractive"),
        Annotation(("BERT",), "span"),
        Annotation((), "unanswerable"),
    )
    example = Example("1", "Which?", ("it uses BERT and a CRF",), "abstractive", alternatives=either)
    assert value("F1(type=span)", example=example, answer="BERT") == 1
    assert value("F1(type=abstractive)", example=example, answer="BERT") is None
    assert value("F1(type=abstractive)", example=example, answer="uses BERT and CRF") > 0.8
    assert value("F1(type=unanswerable)", example=example, abstained=True) == 1


def test_a_grade_is_reported_as_it_was_given():
    assert value("Acc", example=Example("1", "?", ("x",)), grade=1.0) == 1
    assert value("Acc", example=Example("1", "?", ("x",))) is None


TWO = Example("1", "?", ("x",), support=(Support("A", 0), Support("B", 3)))


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        # The second hit holds one piece, the fourth the other.
        (({}, {1}, {}, {0}), {"MRR": 1 / 2, "Hit@1": 0, "Hit@2": 1, "recall@2": 0.5, "recall@4": 1,
                              "all-gold@3": 0, "all-gold@4": 1, "support-precision@2": 0.5,
                              "support-precision@10": 0.2, "SF-precision": 0.5, "SF-EM": 1, "SF-coverage": 1}),
        # The same piece twice is one piece.
        (({0}, {0}), {"MRR": 1, "recall@2": 0.5, "SF-EM": 0, "SF-coverage": 0.5, "support-precision@2": 1}),
        (({0, 1},), {"Hit@1": 1, "recall@1": 1, "all-gold@1": 1, "SF-EM": 1}),
        ((), {"MRR": 0, "Hit@5": 0, "recall@5": 0, "SF-EM": 0, "SF-coverage": 0, "support-precision@5": 0,
               "SF-precision": 0}),
    ],
)  # fmt: skip
def test_rankings_by_hand(result, expected):
    hits = [frozenset(held) for held in result]
    for name, wanted in expected.items():
        assert value(name, example=TWO, hit_pieces=hits) == pytest.approx(wanted), name


def test_recall_counts_paragraphs_and_support_recall_their_sentences():
    support = (Support("A", 0), Support("A", 2), Support("A", 3), Support("B", 1))
    example = Example("1", "?", ("x",), support=support)
    assert example.gold_paragraphs == (0, 0, 0, 1)
    sentence = [frozenset({1})]
    assert (
        value("recall@1", example=example, hit_pieces=sentence),
        value("SF-coverage", example=example, hit_pieces=sentence),
    ) == (0.5, 0.25)
    both = [frozenset({1}), frozenset({3})]
    assert value("all-gold@2", example=example, hit_pieces=both) == 1
    assert value("support-recall@2", example=example, hit_pieces=both) == 0.5
    assert value("SF-EM", example=example, hit_pieces=both) == 0
    paragraphs = [frozenset({0, 1, 2}), frozenset({3})]
    assert value("SF-EM", example=example, hit_pieces=paragraphs) == 1
    pages = (
        Support("f", page=3, text="a"),
        Support("f", page=3, text="b"),
        Support("f", page=4),
        Support("g", text="a"),
        Support("g", text="b"),
    )
    assert Example("2", "?", ("x",), support=pages).gold_paragraphs == (0, 0, 1, 2, 3)


def test_without_gold_evidence_there_is_nothing_to_rank():
    bare = Example("1", "?", ("x",))
    for name in ("SF-EM", "SF-coverage", "MRR", "Hit@1", "recall@5", "all-gold@5", "evidence-F1"):
        assert value(name, example=bare, hit_pieces=(frozenset(),)) is None


def test_costs_are_less_the_better():
    used = Result(TWO, usage=Usage(calls=3, tokens_in=100, tokens_out=20, money=0.5), seconds=1.5)
    for name, wanted in (("calls", 3), ("tokens", 120), ("money", 0.5), ("seconds", 1.5)):
        assert (parse_metric(name).measure(used), parse_metric(name).better) == (wanted, -1)


def test_a_measure_can_be_taken_over_one_kind_of_answer():
    typed = parse_metric("F1(type=yes/no)")
    assert typed.measure(Result(Example("1", "?", ("yes",), "yes/no"), "yes")) == 1
    assert typed.measure(Result(Example("1", "?", ("Hall",)), "Hall")) is None


@pytest.mark.parametrize(
    "name", ["EM", "recall@5", "Hit@1", "F1(type=yes/no)", "evidence-F1", "recall@5(type=span)"]
)
def test_names_parse_back(name):
    assert parse_metric(name).name == name


@pytest.mark.parametrize(
    "name", ["em", "recall", "EM@5", "recall@0", "recal@5", "", "F1(kind=span)", "F1(type=spam)"]
)
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(UsageError):
        parse_metric(name)


def test_token_f1_knows_no_yes_and_no():
    assert (token_f1("yes it is", "yes"), f1("yes it is", "yes")) == (0.5, 0)
    assert token_f1("noanswer", "") == 0


def test_ranking_measures_are_those_of_trec_eval():
    rng = random.Random(0)
    names = {"Hit@3": Success @ 3, "recall@5": R @ 5, "support-precision@5": P @ 5, "MRR": RR}
    for trial in range(40):
        gold = rng.randint(1, 4)
        example = Example("1", "?", ("x",), support=tuple(Support(str(n)) for n in range(gold)))
        # Each hit is a document of its own: the first ones are relevant, and the order is random.
        ranking = rng.sample(range(12), rng.randint(1, 12))
        results = [frozenset({n} if n < gold else ()) for n in ranking]
        judged = [Qrel("q", str(n), 1) for n in range(gold)]
        scored = [ScoredDoc("q", str(n), -float(place)) for place, n in enumerate(ranking)]
        theirs = pytrec_eval.calc_aggregate(names.values(), judged, scored)
        for name, measure in names.items():
            ours = value(name, example=example, hit_pieces=results)
            assert ours == pytest.approx(theirs[measure]), (trial, name, ranking, gold)


@pytest.mark.parametrize(
    ("answer", "gold", "kind", "score"),
    [
        # Worked by hand after the official script: normalise, split, 2 * shared / (tokens + gold tokens).
        ("Yes, they use BERT.", "Yes", "yes/no", 2 * 1 / (4 + 1)),
        ("No", "Yes", "yes/no", 0.0),
        ("yes", "Yes", "yes/no", 1.0),
        ("BERT", "BERT, ELMo, GloVe", "span", 2 * 1 / (1 + 3)),
        ("The authors use ELMo and BERT", "BERT, ELMo", "span", 2 * 2 / (5 + 2)),
        ("an F1 of 84.2 on the test set", "84.2 F1", "span", 2 * 2 / (6 + 2)),
        ("a a model model", "the model", "abstractive", 2 * 1 / (2 + 1)),
        ("They crowdsource labels.", "By asking three annotators", "abstractive", 0.0),
        ("Unanswerable", None, "unanswerable", 1.0),
        ("The paper uses BERT", None, "unanswerable", 0.0),
    ],
)
def test_token_f1_is_that_of_qaspers_official_script(answer, gold, kind, score):
    example = Example("q", "Do they?", (), alternatives=(Annotation((gold,) if gold else (), kind),))
    assert value("token-F1", example=example, answer=answer) == pytest.approx(score)
    assert value(f"token-F1(type={kind})", example=example, answer=answer) == pytest.approx(score)
