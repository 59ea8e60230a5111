"""What of a chain is settled by rule: values that are alike, endings, answers that cannot be; hand-worked."""

import doctest

import pytest

from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Hit, Node, Question, Quote
from clew.core.values import Date, parse_date, parse_number, same_value
from clew.methods.chain import method, text_source, unknowns
from clew.methods.chain.method import derive_answer, find_strands
from clew.methods.chain.unknowns import (
    Candidate,
    FilledChain,
    Filling,
    answer_type_mismatch,
    find_conflicts,
    is_solvable,
    values_agree,
)
from clew.methods.chain.writer import UNLIMITED
from clew.methods.readers import extractive
from clew.triples.language.chain import Chain, Term, Triple, parse_chain


@pytest.mark.parametrize("module", [method, unknowns, text_source, extractive])
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    "text, date",
    [
        ("1 March 1963", Date(1963, 3, 1)),
        ("March 1, 1963", Date(1963, 3, 1)),
        ("1963-03-01", Date(1963, 3, 1)),
        ("1963-03-01T00:00:00Z", Date(1963, 3, 1)),
        ("3rd of Sept 1921", Date(1921, 9, 3)),
        ("March 1963", Date(1963, 3)),
        ("1963", Date(1963)),
        ("c. 44 BC", Date(-44)),
        ("about 1200", Date(1200)),
        ("31 Foo 1963", None),
        ("1963-13-01", None),
        ("March", None),
        ("Lima", None),
        ("", None),
    ],
)
def test_dates_as_people_write_them(text, date):
    assert parse_date(text) == date


@pytest.mark.parametrize(
    "item, other, order",
    [
        (Date(1901, 5, 2), Date(1899), 1),
        (Date(1901, 5, 2), Date(1901, 5, 3), -1),
        (Date(1901, 5), Date(1901, 5, 3), None),
        (Date(1901), Date(1901, 5, 3), None),
        (Date(1901, 5, 3), Date(1901, 5, 3), 0),
        (Date(-44), Date(14), -1),
    ],
)
def test_dates_compare_as_far_as_both_are_known(item, other, order):
    assert item.compare(other) == order


def test_numbers_as_people_write_them():
    texts = ["1,250", "$3.5 million", "-4", "two", "12%", "7 km", "no 7", "", "x"]
    assert [parse_number(text) for text in texts] == [1250, 3.5e6, -4, 2, 12, 7, 7, None, None]


@pytest.mark.parametrize(
    "item, other, same",
    [
        ("The Hague", "hague", True),
        ("Géza von Bolváry", "Geza von Bolvary", True),
        ("Kismet (1944 film)", "Kismet", True),
        ("New York", "York", True),
        ("Yorkshire", "York", False),
        ("1960", "10 April 1960", True),
        ("April 1960", "10 May 1960", False),
        ("12", "twelve", True),
        ("1,250", "1250", True),
        ("", "Lima", False),
    ],
)
def test_values_that_say_the_same(item, other, same):
    assert same_value(item, other) is same and same_value(other, item) is same


def fill_chain(chain, *values, source="kg"):
    result = FilledChain(parse_chain(chain, UNLIMITED))
    for number, value in enumerate(values, 1):
        some = value if isinstance(value, tuple) else (value,)
        result.add(number, Filling(source, tuple(map(Candidate, some))))
    return result


def two(relation, item="Ada", other="Bo"):
    return f"{item} >> {relation} >> #1; {other} >> {relation} >> #2; final answer: #answer"


FOUR = "{0} >> director >> #1; {1} >> director >> #2; #1 >> {2} >> #3; #2 >> {2} >> #4; final answer: #answer"


@pytest.mark.parametrize(
    "question, chain, values, answer",
    [
        ("Who was born first, Ada or Bo?", two("born"), ("2 May 1901", "1899"), "Bo"),
        ("Was Ada or Bo born first?", two("born"), ("2 May 1901", "1899"), "Bo"),
        ("Are Low Or High and Bo from the same country?", two("country", "Low Or High"), ("A", "B"), "no"),
        ("Who was born later, Ada or Bo?", two("born"), ("2 May 1901", "1899"), "Ada"),
        ("Who is older, Ada or Bo?", two("born"), ("2 May 1901", "1899"), "Bo"),
        ("Who is younger, Ada or Bo?", two("born"), ("2 May 1901", "1899"), "Ada"),
        ("Who is older, Ada or Bo?", two("age"), ("40", "31"), "Ada"),
        ("Who was born first, Ada or Bo?", two("born"), ("1901", "May 1901"), None),
        ("Which is longer, the Oskell or the Fenn?",
         two("length", "Oskell", "Fenn"), ("1,250 km", "990 km"), "Oskell"),
        ("Which has fewer people, Oskell or Fenn?",
         two("population", "Oskell", "Fenn"), ("2 million", "990,000"), "Fenn"),
        ("Which came out first, Crime After Crime or Up?",
         two("year", "Crime After Crime", "Up"), ("2011", "2009"), "Up"),
        ("Which lived longer, Ada or Bo?", two("born"), ("1901", "1899"), None),
        ("Whose is the taller tower, Ada's or Bo's?", two("tower"), ("stone", "brick"), None),
        ("Which film has the director who died earlier, low water or Tin?",
         FOUR.format("Low Water (film)", "Tin", "died"), ("A", "B", "1950", "3 May 1949"), "Tin"),
        ("Which film has the director who died later, low water or Tin?",
         FOUR.format("Low Watr", "Tin", "died"), ("A", "B", "1950", "3 May 1949"), "low water"),
        ("Are Ada and Bo from the same country?", two("country"), ("Iran", "Iran"), "yes"),
        ("Are Ada and Bo from the same country?", two("country"), ("Iran", "Peru"), "no"),
        ("Are Ada and Bo from different countries?", two("country"), ("Iran", "Peru"), "yes"),
        ("Do both films have directors of one nation?",
         FOUR.format("Low", "Tin", "nation"), ("A", "B", ("US", "UK"), "UK"), "yes"),
        ("Is Ada taller than Bo?", two("height"), ("1.80 m", "1.70 m"), "yes"),
        ("Is Bo older than Ada?", two("born"), ("2 May 1901", "1899"), "yes"),
        ("Is Bo younger than Ada?", two("born"), ("2 May 1901", "1899"), "no"),
        ("How many years older is Bo than Ada?", two("born"), ("2 May 1901", "1 May 1899"), "2"),
        ("How many more people has Oskell than Fenn?",
         two("population", "Oskell", "Fenn"), ("1,200", "990"), "210"),
        ("How much did Ada and Bo earn?", two("earned"), ("1,200", "990"), None),
        ("Are Ada and Bo from the same country?", two("country"), ("an American", "United States"), "yes"),
        ("How many films did Ada make?", "#1 >> director >> Ada; final answer: #1", (("X", "Y", "Z"),), "3"),
        ("How many people live there?", "Lima >> population >> #1; final answer: #1", ("9 million",), None),
        ("Who made X?", "X >> director >> #1; final answer: #1", ("Ada",), None),
    ],
)  # fmt: skip
def test_endings(question, chain, values, answer):
    ending = derive_answer(question, fill_chain(chain, *values))
    assert (ending.text if ending else None) == answer
    if ending:
        assert ending.based_on


def test_nothing_is_settled_while_something_is_missing_or_where_only_the_text_was_counted():
    chain = two("born")
    assert derive_answer("Who was born first, Ada or Bo?", fill_chain(chain, "1901")) is None
    filled_chain = fill_chain("#1 >> director >> Ada; final answer: #1", ("X", "Y"), source="text")
    assert derive_answer("How many films did Ada make?", filled_chain) is None


def test_strands_lead_from_constants_to_the_last_unknowns():
    chain = parse_chain(FOUR.format("Low", "Tin", "died"))
    assert [(value.constant, value.last_unknown) for value in find_strands(chain)] == [("Low", 3), ("Tin", 4)]
    item = parse_chain("A >> father >> #1; flag of the #1 >> colour >> #2; final answer: #2")
    assert [(strand.constant, strand.last_unknown) for strand in find_strands(item)] == [("A", 2)]


@pytest.mark.parametrize(
    "question, answer, problem",
    [
        ("When did he die?", "Hollywood", "a day or a name is asked for"),
        ("When did he die?", "in the spring of 1950", ""),
        ("How many were there?", "Hollywood", "a number is asked for"),
        ("How many were there?", "about forty", ""),
        ("Who made it?", "1950", "a day or a name is asked for"),
        ("Who made it?", "50 Cent", ""),
        ("Is it old?", "Hollywood", "yes or no is asked for"),
        ("Is it old?", "No.", ""),
        ("Is Ada or Bo older?", "Bo", ""),
        ("Is there a film which he made, and when?", "1950", ""),
        ("Which film is it?", "1917", ""),
        ("Who made it?", "", "nothing was found"),
    ],
)
def test_answers_that_cannot_be(question, answer, problem):
    assert answer_type_mismatch(question, answer) == problem


def test_hops_are_open_when_what_they_ask_with_is_known():
    filled_chain = fill_chain(
        "A >> r >> #1; B >> s >> #2; #1 and #2 >> t >> #3; #4 >> u >> #3; final answer: #4"
    )
    assert [(ask.unknown, str(ask.triple)) for ask in filled_chain.open_hops()] == [
        (1, "A >> r >> #1"),
        (2, "B >> s >> #2"),
    ]
    filled_chain.add(1, Filling("kg", (Candidate("x"), Candidate("y"))))
    assert [ask.unknown for ask in filled_chain.open_hops()] == [2]
    filled_chain.add(2, Filling("kg", (Candidate("z"),)))
    (ask,) = filled_chain.open_hops()
    assert [item.value for item in ask.known] == ["x and z", "y and z"] and not ask.inverse
    filled_chain.add(3, Filling("text", (Candidate("w"),)))
    (ask,) = filled_chain.open_hops()
    assert ask.inverse and ask.unknown == 4 and str(ask.known_term) == "w"
    filled_chain.add(4, Filling("text", (Candidate("v"),)))
    assert filled_chain.open_hops() == [] and filled_chain.open_unknowns == ()
    assert str(filled_chain) == "A >> r >> x; B >> s >> z; x and z >> t >> w; v >> u >> w; final answer: #4"


def test_a_chain_whose_unknowns_wait_for_each_other_leads_nowhere():
    assert is_solvable(parse_chain("A >> r >> #1; #1 >> s >> #2; final answer: #2"))
    assert is_solvable(parse_chain("#1 >> r >> B; #1 >> s >> #2; final answer: #2"))
    assert not is_solvable(parse_chain("#1 >> r >> #2; #2 >> s >> #1; final answer: #2"))


def test_sources_agree_where_any_of_their_values_do():
    first, other = (
        Filling("kg", (Candidate("Iran"), Candidate("Peru"))),
        Filling("text", (Candidate("the Peru"),)),
    )
    assert values_agree(first, other)
    filled_chain = fill_chain("A >> country >> #1; final answer: #1", ("Iran", "Chile"))
    filled_chain.add(1, other)
    (conflict,) = find_conflicts(filled_chain)
    assert (conflict.unknown, conflict.used.source, conflict.other.source) == (1, "kg", "text")


def test_names_with_what_divides_a_chain_are_written_so_that_they_parse_back():
    name = 'Awesome; I "Shot" >> That'
    chain = Chain((Triple(Term(name), "director", Term("#1")),), 1)
    again = parse_chain(str(chain), UNLIMITED)
    assert again.triples[0].head.text == name.replace('"', "'") and again.answer == 1


class Source:
    """A source that knows some tails by head and relation, and records what it was asked."""

    def __init__(self, name, **tails):
        self.name = name
        self.tails = {tuple(key.split("__")): value for key, value in tails.items()}
        self.asked = []

    def fill(self, question, hops, trail):
        self.asked += [str(hop.triple) for hop in hops]
        values = [self.tails.get((str(hop.known_term), hop.triple.relation)) for hop in hops]
        return [value and Filling(self.name, tuple(map(Candidate, value.split("|")))) for value in values]


@pytest.mark.parametrize(
    "chain, ours, papers",
    [
        # The graph knows the first hop, the text the second: both orders fill the chain.
        (
            "Kismet >> director >> #1; #1 >> born >> #2; final answer: #2",
            {1: "Ada", 2: "Ellery"},
            {1: "Ada", 2: "Ellery"},
        ),
        # The text knows the first, the graph the second: the graph's only turn was before the text's.
        ("Ellery >> mayor >> #1; #1 >> party >> #2; final answer: #2", {1: "Bo", 2: "Reds"}, {1: "Bo"}),
        # A triple before the one that gives its head: within a turn no algorithm goes back.
        (
            "#1 >> born >> #2; Kismet >> director >> #1; final answer: #2",
            {1: "Ada", 2: "Ellery"},
            {1: "Ada", 2: "Ellery"},
        ),
        ("#1 >> party >> #2; Dun >> chief >> #1; final answer: #2", {1: "Bo", 2: "Reds"}, {1: "Bo"}),
    ],
)
def test_the_order_of_the_paper_gives_each_source_one_turn_for_the_whole_chain(chain, ours, papers):
    for fill, expected in ((method.fill_in_order, ours), (method.fill_by_algorithms, papers)):
        graph = Source("kg", Kismet__director="Ada|Eve", Bo__party="Reds", Dun__chief="Bo")
        text = Source("text", Ada__born="Ellery", Ellery__mayor="Bo")
        filled = FilledChain(parse_chain(chain))
        fill(filled, (graph, text), Question("Who?"), TrailRecorder())
        assert dict(filled.best_values) == expected
        if fill is method.fill_by_algorithms:
            assert all(len(fillings) == 1 and fillings[0].count == 1 for fillings in filled.fillings.values())


def test_the_order_of_the_paper_asks_each_triple_at_most_once_of_each_source():
    graph, text = Source("kg"), Source("text")
    filled = FilledChain(parse_chain("A >> r >> #1; #1 >> s >> #2; final answer: #2"))
    method.fill_by_algorithms(filled, (graph, text), Question("Who?"), TrailRecorder())
    assert graph.asked == text.asked == ["A >> r >> #1"] and not filled.fillings


@pytest.mark.parametrize(
    ("is_marked", "values"),
    [(False, None), (True, ["Ada Kessel"])],
    ids=["a sentence without marked words", "the words that are marked"],
)
def test_a_hop_takes_the_words_that_the_trained_reader_marks_and_no_whole_sentence(is_marked, values):
    text = "The mayor of Dunmere is Ada Kessel."
    node = Node("n", "passage", text, "d", "d.txt", 0, None, "", 0, None, (), (0, len(text)))
    hit = Hit(node, 1.0, ("n",))
    answer = (text.index("Ada Kessel"), text.index(".")) if is_marked else None
    quote = Quote("n", text, (0, len(text)), answer)

    class Finder:
        name = "finder"

        def retrieve(self, question, k):
            return [hit]

    class Reader:
        def read(self, question, hits, trail):
            return Answer(text, (hit,), (quote,), reader="span", confidence=0.9)

    hop = unknowns.Hop(Triple(Term("Dunmere"), "mayor", Term("#1")), (Candidate("Dunmere"),), 1)
    source = text_source.TextSource(Finder(), Reader())
    (filling,) = source.fill(Question("Who is mayor of Dunmere?"), [hop], TrailRecorder())
    assert (None if filling is None else [each.value for each in filling.candidates]) == values
