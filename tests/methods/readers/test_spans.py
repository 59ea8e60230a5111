"""The reader of answer spans: its logic with a scripted model, and answers of the one that comes with clew."""

import pytest

import clew
from clew.core.trail import SpanReadStep, TrailRecorder
from clew.core.types import HEADERS_UNCERTAIN, PASSAGE, ROW, Hit, Node, Question, Span
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.passages import passage_of_hit
from clew.methods.readers.spans import SpanAnswerReader


def hit(number, text, kind=PASSAGE, headings=(), name="notes.md"):
    node = Node(
        f"d{number}:1", kind, text, f"d{number}", name, 1, None, "", 0, None, headings, (0, len(text))
    )
    return Hit(node, 1.0 / (1 + number), (node.id,))


class ScriptedModel:
    """Marks given words: ``answers`` has for the beginning of a question the words and their scores."""

    name = "scripted"

    def __init__(self, answers):
        self.answers = answers
        self.asked = []

    def read(self, question, contexts, limit=5):
        self.asked.append(question)
        marked = next((words for start, words in self.answers.items() if question.startswith(start)), {})
        readings = []
        for passages in contexts:
            spans = [
                Span(word, word, -1, 0, 0, score) for word, score in marked.items() if word in {"yes", "no"}
            ]
            for number, passage in enumerate(passages):
                for words, score in marked.items():
                    if (place := passage.text.find(words)) >= 0:
                        spans.append(Span(words, "text", number, place, place + len(words), score))
                    elif words == passage.title:
                        spans.append(Span(words, "title", number, 0, len(words), score))
            readings.append(sorted(spans, key=lambda span: -span.score)[:limit])
        return readings

    def confidence(self, score):
        return min(max(score / 10, 0.0), 1.0)


def read(answers, question, hits, **options):
    recorder = TrailRecorder()
    reader = SpanAnswerReader(ScriptedModel(answers), rank_weight=0.0, **options)
    return reader.read(Question(question), hits, recorder), recorder.steps


VESSELS = "Vessels: Lady Annis: Type: Motor vessel; Built: 1926; Builder: Garrow Brothers"


@pytest.mark.parametrize(
    ("text", "marked", "answer"),
    [
        ("It was built by Strake & Loam of Corran.", "Strake", "Strake & Loam"),
        ("It was built by Strake & Loam of Corran.", "Strake & Loam", "Strake & Loam"),
        ("It holds salt & Peter counts it.", "salt", "salt"),
        ("It took $11,000 of the fund.", "11,000", "$11,000"),
        ("It grew by 5%.", "5", "5%"),
    ],
)
def test_the_name_of_a_firm_and_a_number_with_its_signs_are_whole(text, marked, answer):
    result, _ = read({"What": {marked: 9.0}}, "What is named here by the text?", [hit(0, text)])
    assert result.text == answer
    assert (
        result.quotes[0].text[slice(*(place - result.quotes[0].span[0] for place in result.quotes[0].answer))]
        == answer
    )


def test_a_line_item_of_a_year_is_answered_by_an_amount_alone():
    text = "Ada Pell is a partner since October 2015, and the goodwill is hers."
    marked = {"What": {"partner since October 2015": 9.0}}
    result, _ = read(marked, "What was the goodwill in 2015?", [hit(0, text)])
    assert result.abstained


def test_an_answer_is_quoted_by_its_sentence_with_its_range():
    text = "The ferry is old. It was built in 1926 by Garrow Brothers of Corran. It is red."
    answer, steps = read({"When": {"1926": 8.0}}, "When was the ferry built?", [hit(0, text)])
    assert (answer.text, answer.abstained, answer.confidence, answer.reader) == ("1926", False, 0.8, "span")
    (quote,) = answer.quotes
    assert quote.text == text[slice(*quote.span)] == "It was built in 1926 by Garrow Brothers of Corran."
    assert text[slice(*quote.answer)] == "1926"
    assert [type(step) for step in steps] == [SpanReadStep]
    assert steps[0].to_dict()["detail"]["confidences"] == {"1926": 0.8}


def test_a_cell_is_quoted_by_its_row_and_ends_with_the_cell():
    answer, _ = read({"Who": {"Motor vessel; Built: 1926": 8.0}}, "Who owns it?", [hit(0, VESSELS, ROW)])
    assert answer.text == "Motor vessel"
    assert answer.quotes[0].text == VESSELS
    assert VESSELS[slice(*answer.quotes[0].answer)] == "Motor vessel"


def test_below_the_threshold_it_abstains_and_names_the_nearest():
    answers = {"Who": {"Garrow": 1.9, "Annis": 1.0, "Motor": 0.1}}
    answer, steps = read(answers, "Who sold it?", [hit(0, VESSELS, ROW)], min_confidence=0.2)
    assert (answer.text, answer.abstained) == (NOT_FOUND, True)
    assert [(near.text, near.confidence) for near in answer.alternatives] == [
        ("Garrow", 0.19),
        ("Annis", 0.1),
    ]
    assert steps[-1].outcome == "not found"
    assert read(answers, "Who sold it?", [hit(0, VESSELS, ROW)], min_confidence=0.1)[0].text == "Garrow"


def test_an_office_is_not_part_of_a_name_and_the_question_no_answer():
    text = (
        "Ronald Delia, Managing Director and Chief Executive Officer, signed. We are the Company's auditor."
    )
    whole = "Ronald Delia, Managing Director and Chief Executive Officer"
    assert read({"Who": {whole: 9.0}}, "Who signed?", [hit(0, text)])[0].text == "Ronald Delia"
    assert read({"What": {whole: 9.0}}, "What was signed?", [hit(0, text)])[0].text == whole
    assert read({"Who": {"Company's auditor": 9.0}}, "Who is Adobe's auditor?", [hit(0, text)])[0].abstained
    assert not read({"Is": {"yes": 9.0}}, "Is yes right?", [hit(0, text)])[0].abstained


@pytest.mark.parametrize(
    ("question", "text", "kind", "answered"),
    [
        (
            "How many passengers did the Lady Annis carry?",
            "Lady Annis: Passengers: 180; Built: 1926",
            ROW,
            False,
        ),
        (
            "How many passengers may the Lady Annis carry?",
            "Lady Annis: Passengers: 180; Built: 1926",
            ROW,
            True,
        ),
        ("How many passengers did the Lady Annis carry?", "Lady Annis: Passengers carried: 180", ROW, True),
        ("How many passengers did the Lady Annis carry?", "The Lady Annis took 180 people.", PASSAGE, True),
        (
            "How many passengers did the Lady Annis carry?",
            "Of six vessels 180 carry passengers.",
            PASSAGE,
            False,
        ),
        ("How many passengers did she carry in 1931?", "Of six vessels 180 carry passengers.", PASSAGE, True),
    ],
)
def test_how_many_did_is_answered_by_what_happened(question, text, kind, answered):
    answer, _ = read({"How": {"180": 9.0}}, question, [hit(0, text, kind)])
    assert answer.abstained is not answered


@pytest.mark.parametrize(
    ("question", "confidence"),
    [
        ("How many hotels does Pfizer own?", 0.3),
        ("How many properties does Pfizer own?", 0.5),
        ("How many people were there?", 0.5),
        ("How many does it own?", 0.5),
    ],
)
def test_a_count_is_doubtful_where_the_text_does_not_name_what_is_counted(question, confidence):
    text = "Pfizer had 327 owned and leased properties."
    assert read({"How": {"327": 5.0}}, question, [hit(0, text)])[0].confidence == confidence


@pytest.mark.parametrize(
    ("text", "answered"),
    [
        ("During 2022 it closed approximately 300 locations.", False),
        ("It had 300 colleagues. It closed 40 locations.", True),
        ("The yard employed 300 in 2022.", True),
    ],
)
def test_the_number_of_people_who_work_somewhere_is_no_number_of_other_things(text, answered):
    answer, _ = read({"How": {"300": 9.0}}, "How many people work at Corran?", [hit(0, text)])
    assert answer.abstained is not answered


def test_a_text_too_long_to_be_a_question_of_a_known_kind_is_read_by_the_model_alone():
    question = "Did " + "Acme or Bolt have the higher net income, " * 1_000
    answer, _ = read({"Did": {"Acme": 9.0}}, question, [hit(0, "Acme makes ropes.")])
    assert answer.text == "Acme"


def test_certain_things_of_those_asked_for_are_no_answer():
    text = "We operate in certain countries that are subject to sanctions."
    assert read({"Which": {"certain countries": 9.0}}, "Which countries do we operate in?", [hit(0, text)])[
        0
    ].abstained


def test_a_name_that_no_passage_mentions_makes_an_answer_doubtful():
    text = "Blue Whale Re is a subsidiary of Pfizer in Vermont."
    asked = "In which state is {} incorporated?"
    assert read({"In": {"Vermont": 5.0}}, asked.format("Blue Whale Re"), [hit(0, text)])[0].confidence == 0.5
    answer, _ = read({"In": {"Vermont": 5.0}}, asked.format("Grey Seal Re"), [hit(0, text)])
    assert (answer.abstained, answer.confidence) == (True, 0.2)
    # Another passage that is read leads from the name to the answer.
    both = [hit(0, text), hit(1, "Grey Seal Re was sold.", name="sales.md")]
    assert read({"In": {"Vermont": 5.0}}, asked.format("Grey Seal Re"), both)[0].text == "Vermont"


def test_keywords_that_begin_with_an_unknown_name_are_doubtful():
    text = "Building and improvements were 4,545 million in 2022; Rope deliveries were 12."
    scripted = {"Rope": {"12": 5.0}, "Tesla": {"4,545 million": 5.0}}
    assert not read(scripted, "Rope deliveries 2022", [hit(0, text)])[0].abstained
    assert read(scripted, "Tesla deliveries 2022", [hit(0, text)])[0].abstained


def test_a_figure_of_another_part_of_the_company_makes_an_answer_doubtful():
    text = "The revenue of the Rope segment was 40 million in 2021."
    asked = "What was the revenue of the {} segment in 2021?"
    scripted = {"What": {"40 million": 5.0}}
    assert not read(scripted, asked.format("Rope"), [hit(0, text)])[0].abstained
    assert read(scripted, asked.format("Sail"), [hit(0, text)])[0].abstained


def test_yes_or_no_needs_every_name_of_the_question():
    asked = "Are {} and Bo Lind both pilots?"
    hits = [hit(0, "Ada Pell is a pilot."), hit(1, "Bo Lind sails.", name="other.md")]
    assert read({"Are": {"no": 9.0}}, asked.format("Ada Pell"), hits)[0].text == "No"
    answer, _ = read({"Are": {"no": 9.0}}, asked.format("Cleo Pell"), hits)
    assert answer.abstained and answer.text == NOT_FOUND


def test_an_answer_from_a_passage_that_nothing_of_the_question_leads_to_is_doubtful():
    serbia = hit(0, "Serbian is the language that is spoken in Serbia.", name="Serbia")
    ships = hit(1, "Ships sail to Brazil.", name="Ships")
    tides = hit(2, "Tides are high.", name="Tides")
    leading = hit(3, "Brazil trades with Serbia.", name="Trade")
    model = {"Which": {"Serbian": 5.0}}
    asked = "Which language is spoken in {}?"
    assert read(model, asked.format("Serbia"), [serbia, ships, tides])[0].text == "Serbian"
    assert read(model, asked.format("Brazil"), [serbia, ships, tides])[0].abstained
    assert read(model, asked.format("Brazil"), [serbia, leading, tides])[0].text == "Serbian"


def test_alternatives_do_not_overlap_the_answer_or_repeat_it():
    text = "Ada Pell met Bo Lind. Bo Lind left."
    answers = {"Who": {"Ada Pell": 9.0, "Ada": 8.0, "Bo Lind": 7.0}}
    answer, _ = read(answers, "Who met?", [hit(0, text), hit(1, text)])
    assert answer.text == "Ada Pell"
    assert [other.text for other in answer.alternatives] == ["Ada", "Bo Lind"][1:]


def test_dates_and_numbers_are_preferred_where_they_are_asked_for():
    text = "It was built in spring, in 1926, for 200 people."
    answers = {"When": {"spring": 9.0, "1926": 5.0}, "How many": {"spring": 9.0, "200": 5.0}}
    assert read(answers, "When was it built?", [hit(0, text)])[0].text == "1926"
    assert read(answers, "How many people does it hold?", [hit(0, text)])[0].text == "200"
    assert read({"When": {"spring": 9.0}}, "When was it built?", [hit(0, text)])[0].text == "spring"


def test_a_number_does_not_rest_on_a_table_with_uncertain_headers_alone():
    row = hit(0, f"Adjusted results. {HEADERS_UNCERTAIN}. Adjusted profit: 289; 265", ROW)
    answers = {"What": {"289": 8.0, "Adjusted profit": 1.0}}
    answer, _ = read(answers, "What was the adjusted profit?", [row])
    assert (answer.text, answer.abstained) == (NOT_FOUND, True)
    sentence = hit(1, "Adjusted profit came to 289 million in 2022.")
    assert read(answers, "What was the adjusted profit?", [row, sentence])[0].text == "289"
    words = {"Which": {"Adjusted profit": 8.0}}
    assert read(words, "Which line is the first?", [row])[0].text == "Adjusted profit"


def test_of_values_that_are_given_respectively_that_of_the_year_is_the_answer():
    text = (
        "Advertising cost $1.04 billion, $865 million and $592 million in fiscal 2022, 2021 and 2020, respectively. "
        "The dividend was $0.55 and $0.50 in 2022 and 2021."
    )
    marked = {"What": {"$1.04 billion, $865 million": 8.0}, "Which": {"$0.55 and $0.50": 8.0}}
    for year, value in ((2022, "$1.04 billion"), (2021, "$865 million"), (2020, "$592 million")):
        answer, _ = read(marked, f"What did advertising cost in {year}?", [hit(0, text)])
        assert answer.text == value
        assert text[slice(*answer.quotes[0].answer)] == value
    for question in ("What did advertising cost in 2019?", "What did advertising cost in 2021 and 2020?"):
        assert read(marked, question, [hit(0, text)])[0].text == "$1.04 billion, $865 million"
    assert read(marked, "Which dividend was paid in 2021?", [hit(0, text)])[0].text == "$0.55 and $0.50"


def test_the_number_of_a_page_is_not_read():
    model = ScriptedModel({})
    reader = SpanAnswerReader(model, passages=2)
    hits = [hit(0, "6"), hit(1, "— 7 —"), hit(2, "The ferry is red."), hit(3, "第 6 頁")]
    chosen = reader._choose_passages("Which colour is the ferry?", hits)
    assert [piece.node.text for piece in chosen] == ["The ferry is red.", "第 6 頁"]


def test_yes_and_no_answer_questions_that_ask_for_them_alone():
    text = "The weir is closed in winter. Boats pay a toll."
    answers = {"Is": {"yes": 9.0, "winter": 9.5}, "When": {"yes": 9.9, "winter": 9.0}}
    polar, _ = read(answers, "Is the weir closed in winter?", [hit(0, text)])
    assert polar.text == "Yes"
    assert polar.quotes[0].text == "The weir is closed in winter."
    assert polar.quotes[0].answer is None
    assert read(answers, "When is the weir closed?", [hit(0, text)])[0].text == "winter"
    text = "It has judged the effectiveness of the lock in May. It found that the lock was effective in May."
    polar, _ = read({"Was": {"yes": 9.0}}, "Was the lock effective in May?", [hit(0, text)])
    assert polar.quotes[0].text == "It found that the lock was effective in May."


def test_the_name_of_a_file_is_no_answer_but_the_title_of_an_article_is():
    answers = {"Which": {"Red Dust": 9.0}}
    assert (
        read(answers, "Which film won?", [hit(0, "It won a prize.", name="Red Dust")])[0].text == "Red Dust"
    )
    assert read(answers, "Which film won?", [hit(0, "It won a prize.", name="Red Dust.pdf")])[0].abstained


def test_hops_are_read_in_order_from_passages_about_what_they_ask_for():
    hits = [
        hit(0, "Red Dust is a film by Ada Pell, made in 1950.", name="Red Dust"),
        hit(1, "Bo Lind was born in 1899.", name="Bo Lind"),
        hit(2, "Ada Pell was born in 1901 in Corran.", name="Ada Pell"),
    ]
    answers = {"Who directed": {"Ada Pell": 9.0}, "When was": {"1899": 9.5, "1901": 8.0}}
    answer, steps = read(answers, "When was the director of Red Dust born?", hits)
    assert answer.text == "1901"
    assert [piece.node.id for piece in answer.evidence] == ["d0:1", "d2:1"]
    assert [step.asked for step in steps] == ["Who directed Red Dust?", "When was Ada Pell born?"]
    assert answer.confidence == 0.8
    asked = "When was the director of Red Dust born?"
    whole, steps = read(answers, asked, hits, compose=False)
    assert [step.asked for step in steps] == [asked]
    assert whole.text == "1901"  # nothing leads from Red Dust to Bo Lind


def test_a_hop_without_an_answer_leaves_the_question_whole():
    hits = [hit(0, "Red Dust came out in 1950.", name="Red Dust")]
    answer, steps = read({"When was": {"1950": 9.0}}, "When was the director of Red Dust born?", hits)
    assert [step.asked for step in steps] == [
        "Who directed Red Dust?",
        "When was the director of Red Dust born?",
    ]
    assert answer.text == "1950"


def test_a_long_passage_is_read_around_the_words_of_the_question():
    filler = "Nothing of interest happened on the river this day. " * 60
    text = f"{filler}The toll of the Dunmere weir was ninepence. {filler}"
    passage = passage_of_hit(hit(0, text), "What was the toll of the Dunmere weir?")
    place = text.index("ninepence")
    assert passage.text[place : place + 9] == "ninepence"
    assert len(passage.text.split()) < len(text.split()) / 2


@pytest.mark.slow
@pytest.mark.usefixtures("embedded")
def test_the_default_answers_first_and_refuses_what_is_not_there(tmp_path):
    (tmp_path / "weir.md").write_text(
        "# The Dunmere weir\n\nThe weir was built in 1871 by Harriet Vane. The toll for a boat is ninepence.\n\n"
        "| Year | Boats |\n| --- | --- |\n| 1929 | 412 |\n| 1930 | 388 |\n"
    )
    base = clew.open(tmp_path / "kb", create=True)
    base.add([tmp_path / "weir.md"])
    answer = base.ask("Who built the weir?")
    assert (answer.text, answer.reader) == ("Harriet Vane", "span")
    assert answer.quotes[0].text == "The weir was built in 1871 by Harriet Vane."
    assert base.ask("How many boats were there in 1930?").text == "388"
    assert base.ask("What is the capital of Mongolia?").abstained
    base.close()


def test_the_capital_of_another_country_is_no_answer():
    text = "The capital of Spain is Madrid, on the Manzanares."
    for country, abstained in (("Spain", False), ("France", True)):
        result, _ = read({"What": {"Madrid": 9.0}}, f"What is the capital of {country}?", [hit(0, text)])
        assert result.abstained is abstained


@pytest.mark.parametrize(
    ("text", "name", "abstained"),
    [
        ("She left her papers to the school at Upper Quill.", "Hesper Marrable", True),
        ("She left her papers to the school at Upper Quill.", "Ilse Tamsin", False),
        ("Tamsin read physics. She left it for Upper Quill.", "Hesper Marrable", False),
        ("The school at Upper Quill took no boys.", "Hesper Marrable", False),
    ],
)
def test_she_is_not_somebody_whom_neither_text_nor_document_names(text, name, abstained):
    question = "At which university did Ilse Tamsin take her degree?"
    result, _ = read({"At": {"Upper Quill": 9.0}}, question, [hit(0, text, name=name)])
    assert result.abstained is abstained


MINUTES = (
    "On 4 May 1922 the board elected Ruth Amsel. On May 11, 1922 it bought a dredger. It dismissed Carl Brandt on 25 "
    "May 1922."
)
LOG = "1922-05-02: Vessel: Tern; Cargo: salt"


@pytest.mark.parametrize(
    ("question", "text", "kind", "words", "answered"),
    [
        ("Who was elected on 4 May 1922?", MINUTES, PASSAGE, "Ruth Amsel", True),
        ("Who was elected on May 4th, 1922?", MINUTES, PASSAGE, "Ruth Amsel", True),
        ("Who was dismissed on the 25th of May 1922?", MINUTES, PASSAGE, "Carl Brandt", True),
        ("Who was elected on 11 May 1922?", MINUTES, PASSAGE, "Ruth Amsel", False),
        ("Who was elected on 31 June 1922?", MINUTES, PASSAGE, "Ruth Amsel", False),
        ("Who was elected on 1922-02-30?", MINUTES, PASSAGE, "Ruth Amsel", False),
        # Nobody says when she left.
        ("Who was harbour master on 1 June 1922?", MINUTES, PASSAGE, "Ruth Amsel", True),
        ("Who was elected before 11 May 1922?", MINUTES, PASSAGE, "Ruth Amsel", True),
        ("Which vessel came on 2 May 1922?", LOG, ROW, "Tern", True),
        ("Which vessel came on 3 May 1922?", LOG, ROW, "Tern", False),
        ("Who was captain on 3 May 1922?", "Lund: Captain since: 1922-05-02", ROW, "Lund", True),
        (
            "Who was captain on 3 May 1922?",
            "Lund: First day: 1922-05-02; Last day: 1923-01-31",
            ROW,
            "Lund",
            True,
        ),
    ],
)
def test_what_was_on_one_day_is_not_what_was_on_another(question, text, kind, words, answered):
    answer, _ = read({"": {words: 9.0}}, question, [hit(0, text, kind=kind)])
    assert answer.text == (words if answered else NOT_FOUND)


def test_the_model_is_asked_for_a_day_as_the_texts_write_it():
    model = ScriptedModel({"": {"Tern": 9.0}})
    reader = SpanAnswerReader(model, rank_weight=0.0)
    texts = [hit(0, LOG, kind=ROW), hit(1, "Nothing came on 3 May 1922.")]
    reader.read(Question("Which vessel came on May 2, 1922 or on 3 May 1922?"), texts, TrailRecorder())
    assert model.asked == ["Which vessel came on 1922-05-02 or on 3 May 1922?"]
