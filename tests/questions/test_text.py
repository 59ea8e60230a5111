"""The text of a question: numbers in digits and words, days and periods."""

import pytest

from clew.questions.text import QuestionText


def read(question: str) -> list[tuple[tuple[str, ...], str]]:
    return [(value.texts, question[value.start : value.end]) for value in QuestionText(question).values]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What flights stretch beyond fifteen hundred kilometres?", [("1500",)]),
        ("anything beyond two hundred and fifty kilometres", [("250",)]),
        ("Which dams went up in the fifties?", [("1950", "1959")]),
        ("Whose date of birth is in the eighteen-forties?", [("1840", "1849")]),
        ("Nineteen sixty-one was a good year", [("1961",)]),
        ("the first three pages, chapters two to nineteen", [("1",), ("3",), ("2",), ("19",)]),
        ("contracts over a hundred thousand", [("100000",)]),
        ("those between twenty-five and thirty", [("25",), ("30",)]),
        ("the five and the six", [("5",), ("6",)]),
        ("a premium of 1,460 or 12.5", [("1460",), ("12.5",)]),
        ("albums 2020-2022", [("2020",), ("2022",)]),
        ("events with 3+ articles", [("3",)]),
        ("Which candidate has exactly 6 165 votes?", [("6165",)]),
        ("a bill of 1.421,72 euros or 12,50", [("1421.72",), ("12.5",)]),
        ("1.234.567 people, 10'000 sheep", [("1234567",), ("10000",)]),
        ("in 2023 100 people", [("2023",), ("100",)]),
        ("parcels of 20-50 lb", [("20",), ("50",)]),
        ("object 1942.015 and 12345.67", [("1942.015",), ("12345.67",)]),
    ],
)
def test_numbers_are_read_in_digits_and_words(question: str, expected: list[tuple[str, ...]]) -> None:
    assert [texts for texts, _ in read(question)] == expected


@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("Money went out on December the third, 2021.", "2021-12-03"),
        ("We closed a deal on the third of May in 2020.", "2020-05-03"),
        ("doc modified 18/12/2024", "2024-12-18"),
        ("doc modified 2024-12-18", "2024-12-18"),
        ("doc modified 18.12.2024", "2024-12-18"),
        ("doc modified 18.12.24", "2024-12-18"),
        ("Which letter is dated 13 July 1763?", "1763-07-13"),
        ("Which letter is dated July 13, 1763?", "1763-07-13"),
    ],
)
def test_days_are_read_in_every_notation(question: str, day: str) -> None:
    assert [texts for texts, _ in read(question)] == [(day,)]


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("permits issued in December 2020", ("2020-12-01", "2020-12-31")),
        ("in February of 2024", ("2024-02-01", "2024-02-29")),
        ("In February 1900, who sailed?", ("1900-02-01", "1900-02-28")),
    ],
)
def test_a_month_is_its_first_day_and_its_last(question: str, days: tuple[str, str]) -> None:
    assert [texts for texts, _ in read(question)] == [days]


@pytest.mark.parametrize(
    "question", ["Who wrote it?", "Is R-2023 open?", "section 3.1.12", "the FC2 match", "May I ask who?"]
)
def test_codes_and_words_are_no_numbers(question: str) -> None:
    assert read(question) == []


def test_words_keep_their_places() -> None:
    question = QuestionText("Who is Schindler's sister-in-law?")
    assert [word.text for word in question.words] == ["who", "is", "schindler", "sister", "in", "law"]
    assert [question.text[word.start : word.end].casefold() for word in question.words] == [
        word.text for word in question.words
    ]


@pytest.mark.parametrize(
    ("question", "bound"),
    [
        ("orders placed before 05.01.2024", "<"),
        ("flats under CHF 1'700.00 a month", "<"),
        ("fewer than ten seats", "<"),
        ("by 20 September 2024", "<="),
        ("at most five people", "<="),
        ("not more than 3", "<="),
        ("30 minutes or less", "<="),
        ("over £500", ">"),
        ("wait > 44", ">"),
        ("more than 100", ">"),
        ("no less than 4 rooms", ">="),
        ("at least two", ">="),
        ("80,000 euros and above", ">="),
        ("waits ≥30", ">="),
        ("the sales of 2023", ""),
        ("which of the 12 ports", ""),
    ],
)
def test_words_and_signs_beside_a_number_bound_it(question: str, bound: str) -> None:
    assert QuestionText(question).bounds == (bound,)


@pytest.mark.parametrize(
    ("question", "counted"),
    [
        ("How many passengers can the Lady Annis carry?", "passengers"),
        ("How many car spaces does she have?", "car spaces"),
        ("How many people work in Oslo?", "people"),
        ("number of bunkerings Queen of Vell", "bunkerings"),
        ("What is the invoice number of Holm Ltd?", ""),
        ("How many times did she sail?", ""),
    ],
)
def test_what_is_counted_is_said(question: str, counted: str) -> None:
    assert QuestionText(question).counted_words == counted
