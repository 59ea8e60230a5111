"""Chains as models write them: both forms, the eight errors of Appendix B, and what small models put around them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.triples.language.chain import (
    Chain,
    ChainError,
    DiscontinuousMaskError,
    FinalAnswerFormatError,
    IncorrectTripleFormatError,
    IncorrectTripleRelationMaskError,
    Limits,
    MaskOverflowError,
    MaskUnderflowError,
    MissingMaskNumberError,
    MissingTripleMaskError,
    Term,
    Triple,
    parse_chain,
)
from clew.triples.language.consistency import normal_form, rank_by_agreement

FLAG = Chain(
    (
        Triple(Term("Lima Exchange"), "country", Term("#1")),
        Triple(Term("flag of the #1"), "applies to jurisdiction", Term("#2")),
    ),
    2,
)


@pytest.mark.parametrize(
    "text",
    [
        "Lima Exchange >> country >> #1; flag of the #1 >> applies to jurisdiction >> #2; final answer: #2",
        "(Lima Exchange, country, #1); (flag of the #1, applies to jurisdiction, #2); final answer: #2",
        "Reasoning Chain: Lima Exchange>>country>># 1;flag of the #1>>applies to jurisdiction>>#2;Final answer: #2.",
        "<think>A flag; (no, wait)</think>\n1. Lima Exchange >> country >> #1\n"
        "2. flag of the #1 >> applies to jurisdiction >> #2\n\n**Final answer: #2**",
        "- (Lima Exchange, country, #1)\n- (flag of the #1, applies to jurisdiction, #02)\nfinal answer is #2",
        "`Lima Exchange >> country >> #1; flag of the #1 >> applies to jurisdiction >> #2; final answer: #2;`",
    ],
)
def test_both_written_forms_of_a_chain_parse_alike(text):
    assert parse_chain(text) == FLAG
    assert parse_chain(str(FLAG)) == FLAG


def test_terms_are_constants_unknowns_or_text_with_unknowns():
    head, tail = FLAG.triples[1].head, FLAG.triples[1].tail
    assert (head.unknown, head.unknowns, tail.unknown, Term("Lima").unknowns) == (None, (1,), 2, ())
    assert str(FLAG.fill({1: "Bahamas"}).triples[1]) == "flag of the Bahamas >> applies to jurisdiction >> #2"
    # A value that looks like an unknown is a value; #1 is not the beginning of #12.
    assert Term("#12 and #1").fill({1: "#2", 2: "no"}) == Term("#12 and #2")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("A >> b >> #1; final answer: #1", MaskUnderflowError),
        (
            "A >> b >> #1; #1 >> c >> #2; #2 >> d >> #3; #3 >> e >> #4; #4 >> f >> #5; final answer: #5",
            MaskOverflowError,
        ),
        ("A >> b >> #1; #1 >> c >> #3; final answer: #3", DiscontinuousMaskError),
        ("A >> b >> #2; #2 >> c >> #3; final answer: #3", DiscontinuousMaskError),
        ("A >> b >> #; # >> c >> #2; final answer: #2", MissingMaskNumberError),
        ("A >> b >> #answer; #1 >> c >> #2; final answer: #2", MissingMaskNumberError),
        ("A >> b >> C; A >> c >> #1; #1 >> d >> #2; final answer: #2", MissingTripleMaskError),
        ("A >> #1 >> #2; #2 >> c >> #3; final answer: #3", IncorrectTripleRelationMaskError),
        ("A >> b >> c >> #1; #1 >> d >> #2; final answer: #2", IncorrectTripleFormatError),
        ("A >> #1; #1 >> d >> #2; final answer: #2", IncorrectTripleFormatError),
        ("(A, b, c, #1); (#1, d, #2); final answer: #2", IncorrectTripleFormatError),
        ("A >>  >> #1; #1 >> d >> #2; final answer: #2", IncorrectTripleFormatError),
        ("I do not know; final answer: #1", IncorrectTripleFormatError),
        ("final answer: #answer", IncorrectTripleFormatError),
        ("A >> b >> #1; #1 >> c >> #2", FinalAnswerFormatError),
        ("A >> b >> #1; #1 >> c >> #2; final answer: Lima", FinalAnswerFormatError),
        ("A >> b >> #1; #1 >> c >> #2; final answer: #3", FinalAnswerFormatError),
        ("final answer: #2; A >> b >> #1; #1 >> c >> #2", FinalAnswerFormatError),
        ("", FinalAnswerFormatError),
    ],
)
def test_the_errors_of_appendix_b(text, error):
    with pytest.raises(ChainError) as raised:
        parse_chain(text)
    assert type(raised.value) is error and raised.value.hint


def test_limits_are_the_tasks():
    chain = parse_chain("Ada >> was born in >> #1; final answer: #1", Limits(least=1))
    assert chain.unknowns == (1,)
    with pytest.raises(MaskOverflowError):
        parse_chain(str(FLAG), Limits(least=1, most=1))


def test_quotation_marks_keep_commas_and_semicolons_together():
    chain = parse_chain('("Lima, Peru", country, #1); (#1, "head of state; 1990", #2); final answer: #answer')
    assert chain.triples[0].head == Term("Lima, Peru") and chain.triples[1].relation == "head of state; 1990"


WORDS = st.text(alphabet="abcdefg ,'(", min_size=1).map(str.strip).filter(bool)


@pytest.mark.slow
@given(WORDS, WORDS, WORDS, st.sampled_from([None, 1, 2]))
def test_a_chain_parses_back(head, relation, other, answer):
    chain = Chain(
        (Triple(Term(head), relation, Term("#1")), Triple(Term(f"{head} #1"), other, Term("#2"))), answer
    )
    assert parse_chain(str(chain)) == chain


@pytest.mark.slow
@given(st.text(alphabet="#12 >;(),abfinal answer:\n\"'"))
def test_anything_else_is_a_chain_error(text):
    try:
        chain = parse_chain(text, Limits(1, 9))
    except ChainError:
        return
    assert parse_chain(str(chain), Limits(1, 9)) == chain


def test_self_consistency_compares_what_chains_mean():
    first = parse_chain("A >> b >> #1; #1 >> c >> #2; final answer: #2")
    again = parse_chain("a. >> B >> #2; #2 >>  C >> #1; final answer: #1")
    other = parse_chain("A >> b >> #1; #1 >> c >> #2; final answer: #answer")
    assert normal_form(first) == normal_form(again) != normal_form(other)
    assert rank_by_agreement([other, first, again]) == [first, other]
    assert rank_by_agreement([other, first]) == [other, first] and rank_by_agreement([]) == []
