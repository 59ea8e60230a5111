"""Questions as typed triples: the forms in which people and small models write them, the errors, the round trip."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.triples.language.chain import (
    NOT,
    ONLY,
    TESTS,
    UNKNOWN,
    Chain,
    ChainError,
    Condition,
    DiscontinuousMaskError,
    FinalAnswerFormatError,
    IncorrectTripleFormatError,
    IncorrectTripleRelationMaskError,
    MaskOverflowError,
    MaskUnderflowError,
    MissingMaskNumberError,
    MissingTripleMaskError,
    Quantifier,
    Term,
    Triple,
    TypedChain,
    at_least,
    at_most,
    exactly,
)
from clew.triples.language.consistency import rank_typed_by_agreement
from clew.triples.language.typed_parsing import parse_typed, parse_typed_statements
from malformed import MALFORMED

LYNCH = Triple(Term("#1"), "directed_by", Term("David Lynch"))
SIMPLE = TypedChain(Chain((LYNCH,), 1), {1: ("film",)})


def test_all_that_a_question_can_say():
    read = parse_typed(
        "David Lynch : person\n#1 : film or series\n#1 >> directed_by >> David Lynch\n"
        "not #1 >> starred_actors >> Kyle MacLachlan\nat least 2 #1 >> starred_actors >> #2\n"
        "#1.release_year between 1980 and 1990\nnot #1.colour = green\n#1 ~ slow and dreamlike\nfinal answer: #1"
    )
    stars = Triple(Term("#1"), "starred_actors", Term("#2"))
    assert read == TypedChain(
        Chain((LYNCH, Triple(Term("#1"), "starred_actors", Term("Kyle MacLachlan")), stars), 1),
        {1: ("film", "series")},
        {"David Lynch": ("person",)},
        {1: NOT, 2: at_least(2)},
        (
            Condition(1, "release_year", "between", 1980, 1990),
            Condition(1, "colour", "=", "green", negated=True),
        ),
        ("slow and dreamlike",),
    )
    assert str(read) == (
        "David Lynch : person; #1 : film or series; #1 >> directed_by >> David Lynch; "
        "not #1 >> starred_actors >> Kyle MacLachlan; at least 2 #1 >> starred_actors >> #2; "
        "#1.release_year between 1980 and 1990; not #1.colour = green; #1 ~ slow and dreamlike; final answer: #1"
    )
    assert read.statement(2) == "at least 2 #1 >> starred_actors >> #2"


@pytest.mark.parametrize(
    "text",
    [
        "#1 : film; #1 >> directed_by >> David Lynch; final answer: #1",
        "(#1 (film), directed_by, David Lynch); target: #1",
        "<think>A film (whose?)</think>\nReasoning chain:\n1) `#1 >> directed_by >> David Lynch`\n2. #1 is a film\n"
        "**Final answer: #1**",
        "```text\nfilm #1 >> directed_by >> “David Lynch”\n```\nThe answer is #1.",
        "Here are the triples:\n- ?film --directed_by--> David Lynch\n- ?film: film\nx_target = ?film",
        "?x:film -> directed_by -> David Lynch\nanswer: ?x",
        "X : film\nX -[:directed_by]-> David Lynch\nfinal answer: X",
        "directed_by(#01, 'David Lynch')\n(#1, is a, film)\nfinal answer: #1 (film)",
        'Type: #1 : film\nTriple: [#1, directed_by, "David Lynch"],\nfinal answer is # 1',
        "SELECT ?film\n?film | directed_by | David Lynch\n?film is of type film",
        "#1 : a film\n#1 → directed_by → David Lynch\n#1 → directed_by → David Lynch",
    ],
)
def test_the_forms_of_small_models(text):
    assert parse_typed(text) == SIMPLE


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("not #1 >> stars >> #2", NOT),
        ("NOT (#1 >> stars >> #2)", NOT),
        ("no #1 >> stars >> #2", NOT),
        ("#1 >> does not star >> #2", NOT),
        ("#1 >> stars >> no actor #2", NOT),
        ("#1 >> stars >> without #2", NOT),
        ("#1 >> stars >> only #2", ONLY),
        ("at least two #1 >> stars >> #2", at_least(2)),
        ("#1 >> stars >> 3 or more #2", at_least(3)),
        ("more than one #1 >> stars >> #2", at_least(2)),
        ("#1 >> stars >> at most twelve #2", at_most(12)),
        ("fewer than 3 #1 >> stars >> #2", at_most(2)),
        ("exactly 2 #1 >> stars >> #2", exactly(2)),
        ("from 2 to 4 #1 >> stars >> #2", Quantifier(2, 4)),
        ("only at least 2 #1 >> stars >> #2", Quantifier(2, None, True)),
    ],
)
def test_quantifiers(text, count):
    read = parse_typed(f"{text}; final answer: #1")
    assert read.quantifiers == {0: count}
    assert read.chain.triples[0].tail == Term("#2")


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("Not Another Teen Movie", "Not Another Teen Movie", None),
        ("no country for old men", "no country for old men", None),
        ("Only Lovers Left Alive", "Only Lovers Left Alive", None),
        ('"not David Lynch"', "not David Lynch", None),
        ("not David Lynch", "David Lynch", NOT),
        ('Only "Only God Forgives"', "Only God Forgives", ONLY),
        ("Return of the Jedi", "Return of the Jedi", None),
        ("The answer is blowing", "The answer is blowing", None),
        ("Malcolm X", "Malcolm X", None),
        ('"#1 Crush; a >> song"', "#1 Crush; a >> song", None),
        ('"a 12"" record"', 'a 12" record', None),
        ("8 1/2", "8 1/2", None),
    ],
)
def test_names_that_look_like_something_else(text, name, count):
    read = parse_typed(f"{text} >> made_by >> #1; final answer: #1")
    assert read.chain.triples[0].head.text == name
    assert read.quantifiers == ({} if count is None else {0: count})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#1.year = 1990", Condition(1, "year", "=", 1990)),
        ("#1.year==1990", Condition(1, "year", "=", 1990)),
        ("#1.release year > 1990.5", Condition(1, "release year", ">", 1990.5)),
        ('#1."odd = name" < 3', Condition(1, "odd = name", "<", 3)),
        ("#1.year ≥ 1990", Condition(1, "year", ">=", 1990)),
        ("#1.year is at least 1990", Condition(1, "year", ">=", 1990)),
        ("#1's year is before 1990.", Condition(1, "year", "<", 1990)),
        ("#1 year <= 1990", Condition(1, "year", "<=", 1990)),
        ("year(#1) after 1990", Condition(1, "year", ">", 1990)),
        ("1990 < #1.year", Condition(1, "year", ">", 1990)),
        ("1980 <= #1.year <= 1990", Condition(1, "year", "between", 1980, 1990)),
        ("1990 >= #1.year ≥ 1980", Condition(1, "year", "between", 1980, 1990)),
        ("#1.year from 1980 to 1990", Condition(1, "year", "between", 1980, 1990)),
        ("#1.year between 1980-1990", Condition(1, "year", "between", 1980, 1990)),
        ("#1 >> year >> >= 1990", Condition(1, "year", ">=", 1990)),
        ("#1 >> year >> between 1980 and 1990", Condition(1, "year", "between", 1980, 1990)),
        ("not #1 >> year >> before 1990", Condition(1, "year", "<", 1990, negated=True)),
        ("#1.colour != light green", Condition(1, "colour", "=", "light green", negated=True)),
        ("#1.colour is not green", Condition(1, "colour", "=", "green", negated=True)),
        ("not #1.colour = 'green'", Condition(1, "colour", "=", "green", negated=True)),
        ("#1.sold > 1,250,000", Condition(1, "sold", ">", 1_250_000)),
        ("#1.sold > $2.5 million", Condition(1, "sold", ">", 2_500_000)),
        ("#1.length < 90 minutes", Condition(1, "length", "<", 90)),
        ("#1.born >= 1994-01-31", Condition(1, "born", ">=", "1994-01-31")),
        ('#1.code = "007"', Condition(1, "code", "=", "007")),
        ('#1.title contains "; final answer: #2"', Condition(1, "title", "contains", "; final answer: #2")),
        ("#1.title does not contain 7", Condition(1, "title", "contains", "7", negated=True)),
    ],
)
def test_conditions(text, expected):
    read = parse_typed(f"{text}; final answer: #1")
    assert read.conditions == (expected,) and not read.chain.triples
    assert parse_typed(str(read)) == read


def test_a_range_with_one_open_end_is_two_conditions():
    read = parse_typed("1980 < #1.year <= 1990; final answer: #1")
    assert read.conditions == (Condition(1, "year", ">", 1980), Condition(1, "year", "<=", 1990))


def test_what_is_left_out_is_returned():
    read = parse_typed_statements(
        "I write it.\nLima >> country >> Peru\n#1 >> lies_in >> Peru\nPeru : country\nSpain : country\nanswer: #1"
    )
    assert read.dropped == ("Lima >> country >> Peru",)
    assert read.ignored == ("I write it.", "Spain : country")
    assert read.chain.constant_types == {"Peru": ("country",)} and len(read.chain.chain.triples) == 1


def test_wishes_and_an_answer_that_can_be_but_one():
    read = parse_typed('#1 : film; #1 ~ slow; not #1 ~ violent; ~ dreamlike; wish: "sad; long"')
    assert read == TypedChain(
        Chain((), 1), {1: ("film",)}, preferences=("slow", "not violent", "dreamlike", "sad; long")
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", MaskUnderflowError),
        ("Lima is nice; final answer: Lima", MaskUnderflowError),
        ("; ".join(f"A >> b >> #{n}" for n in range(1, 14)) + "; final answer: #1", MaskOverflowError),
        ("A >> b >> #1; #1 >> c >> #3; final answer: #3", DiscontinuousMaskError),
        ("A >> b >> #2; final answer: #2", DiscontinuousMaskError),
        ("A >> b >> #; final answer: #1", MissingMaskNumberError),
        ("A >> b >> #answer; final answer: #answer", MissingMaskNumberError),
        ("C# >> used_by >> #1; final answer: #1", MissingMaskNumberError),
        ("A >> b >> C; final answer: #answer", MissingTripleMaskError),
        ("A >> #1 >> #2; final answer: #2", IncorrectTripleRelationMaskError),
        ("#1 >> ?how >> A; final answer: #1", IncorrectTripleRelationMaskError),
        ("A >> b >> c >> #1; final answer: #1", IncorrectTripleFormatError),
        ("A >> >> #1; final answer: #1", IncorrectTripleFormatError),
        ("#1 directed by A; final answer: #1", IncorrectTripleFormatError),
        ("flag of the #1 >> colour >> #2; A >> b >> #1; final answer: #2", IncorrectTripleFormatError),
        ("#1.year between 1980; final answer: #1", IncorrectTripleFormatError),
        ("#1.year >=; final answer: #1", IncorrectTripleFormatError),
        ('#1 >> "" >> A; final answer: #1', IncorrectTripleFormatError),
        ('#1 >> by >> ""; final answer: #1', IncorrectTripleFormatError),
        ("A >> b >> #1; #1 >> c >> #2", FinalAnswerFormatError),
        ("A >> b >> #1; #1 >> c >> #2; final answer: #answer", FinalAnswerFormatError),
        ("A >> b >> #1; final answer: Lima", FinalAnswerFormatError),
    ],
)
def test_errors_that_show_the_form(text, error):
    with pytest.raises(error) as raised:
        parse_typed(text)
    assert type(raised.value) is error and raised.value.hint


ECHOED = "the prompt again"  # holds HEAD >> RELATION >> #1, which is a triple


def test_an_echo_of_the_form_is_read_as_it_stands():
    assert str(parse_typed(MALFORMED[ECHOED])) == "HEAD >> RELATION >> #1; final answer: #1"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MALFORMED.keys() - {ECHOED}))
def test_a_malformed_reply_is_an_error_of_chains(name):
    with pytest.raises(ChainError):
        parse_typed(MALFORMED[name])


@pytest.mark.slow
@given(st.text(alphabet=st.sampled_from(list("#?123 >-;:()[]\"'.=<~\nnotXab,|only")), max_size=60))
def test_no_text_is_another_error(text):
    try:
        read = parse_typed(text)
    except ChainError:
        return
    assert parse_typed(str(read)) == read


LOOKALIKES = """David Lynch|not|only Bo|X|?x|#1|C#|a >> b|is a|film or tv|at least 2|12"|a, b|final answer: #1|type
(a)|-> b|1980|1,000|90 minutes|between 1 and 2|a: b|'q'|~""".replace("\n", "|").split("|")
_WORDS = st.one_of(
    st.sampled_from(LOOKALIKES),
    st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=8),
).filter(lambda text: text == text.strip() and text)
_COUNTS = st.sampled_from(
    [
        *(None, NOT, ONLY, at_least(1), at_least(2), at_most(3), exactly(2)),
        *(Quantifier(2, 4), Quantifier(0, 0, True), Quantifier(2, None, True)),
    ]
)
_NUMBERS = st.one_of(st.integers(-(10**16), 10**16), st.floats(allow_nan=False, allow_infinity=False))
_COMPARED = st.one_of(_NUMBERS, st.sampled_from(["1990", "1990-05-04", "-2.5"]))


def _name(text):
    """A constant, also where its text has an unknown in it ("Mambo #1"): those are written in quotation marks."""
    return Term(text, is_name=UNKNOWN.search(text) is not None)


@st.composite
def typed_chains(draw):
    number = draw(st.integers(1, 3))
    unknowns = [f"#{n}" for n in range(1, number + 1)]
    triples, counts = {}, {}
    for unknown in unknowns:  # every unknown is in one, so that none is left out
        other = draw(st.one_of(st.sampled_from(unknowns).map(Term), _WORDS.map(_name)))
        pair = (Term(unknown), other) if draw(st.booleans()) else (other, Term(unknown))
        triples[Triple(pair[0], draw(_WORDS), pair[1])] = draw(_COUNTS)
    counts = {place: count for place, count in enumerate(triples.values()) if count is not None}
    names = {term.text for triple in triples for term in (triple.head, triple.tail) if term.unknown is None}
    types = st.lists(_WORDS, min_size=1, max_size=2, unique=True).map(tuple)
    kinds = draw(st.dictionaries(st.sampled_from(sorted(names)), types)) if names else {}
    results = []
    for test in draw(st.lists(st.sampled_from(TESTS), max_size=3)):
        value = draw(_WORDS if test in ("contains", "says") else st.one_of(_WORDS, _NUMBERS))
        if test in ("<", "<=", ">", ">=", "between"):  # only numbers and days can be compared
            value = draw(_COMPARED)
        high = draw(_COMPARED) if test == "between" else None
        results.append(
            Condition(draw(st.integers(1, number)), draw(_WORDS), test, value, high, draw(st.booleans()))
        )
    return TypedChain(
        Chain(tuple(triples), draw(st.integers(1, number))),
        draw(st.dictionaries(st.integers(1, number), types)),
        kinds,
        counts,
        tuple(dict.fromkeys(results)),
        tuple(draw(st.lists(_WORDS, max_size=2, unique=True))),
    )


def test_a_constant_whose_name_would_introduce_a_chain_is_quoted():
    shown_in = Triple(Term("#1"), "shown in", Term("Reasoning chain"))
    chain = TypedChain(Chain((shown_in,), 1), {}, {"Reasoning chain": ("book",)})
    assert str(chain).startswith('"Reasoning chain" : book; ') and parse_typed(str(chain)) == chain


@pytest.mark.slow
@given(typed_chains())
def test_what_is_written_reads_back(chain):
    assert parse_typed(str(chain)) == chain


def test_self_consistency_knows_equal_questions():
    item = parse_typed("#1 >> by >> #2; #2 >> born in >> Lima; #1.year > 3; final answer: #1")
    same = parse_typed("#1 >> Born In >> lima; #2 >> by >> #1; #2.Year > 3; #2 ~ sad; final answer: #2")
    other = parse_typed("#1 >> by >> #2; #2 >> born in >> Lima; final answer: #1")
    asked = parse_typed("#1 >> by >> #2; #2 >> born in >> Lima; #1.year > 3; final answer: #2")
    assert rank_typed_by_agreement([other, item, same, asked]) == [item, other, asked]
    assert rank_typed_by_agreement([]) == []
