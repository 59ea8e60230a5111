"""The reader of answer spans: its logic with a scripted model, and answers of the one that comes with clew."""

import pytest

from clew.core.trail import SpanReadStep, TrailRecorder
from clew.core.types import PASSAGE, ROW, Hit, Node, Question, Span
from clew.methods.readers import NOT_FOUND
from span_models import NoReader
from span_readers import span_reader


def hit(number, text, kind=PASSAGE, headings=(), name="notes.md"):
    node = Node(
        f"d{number}:1", kind, text, f"d{number}", name, 1, None, "", 0, None, headings, (0, len(text))
    )
    return Hit(node, 1.0 / (1 + number), (node.id,))


class ScriptedModel(NoReader):
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
    reader = span_reader(ScriptedModel(answers), rank_weight=0.0, **options)
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


def test_an_answer_is_quoted_by_its_sentence_with_its_range():
    text = "The ferry is old. It was built in 1926 by Garrow Brothers of Corran. It is red."
    answer, steps = read({"When": {"1926": 8.0}}, "When was the ferry built?", [hit(0, text)])
    assert (answer.text, answer.abstained, answer.reader) == ("1926", False, "span")
    assert answer.confidence is not None and 0.5 < answer.confidence < 1
    (quote,) = answer.quotes
    assert quote.text == text[slice(*quote.span)] == "It was built in 1926 by Garrow Brothers of Corran."
    assert text[slice(*quote.answer)] == "1926"
    assert [type(step) for step in steps] == [SpanReadStep]
    assert next(iter(steps[0].to_dict()["detail"]["confidences"])) == "1926"


def test_a_cell_is_quoted_by_its_row_and_ends_with_the_cell():
    answer, _ = read({"Who": {"Motor vessel; Built: 1926": 8.0}}, "Who owns it?", [hit(0, VESSELS, ROW)])
    assert answer.text == "Motor vessel"
    assert answer.quotes[0].text == VESSELS
    assert VESSELS[slice(*answer.quotes[0].answer)] == "Motor vessel"


def test_below_the_threshold_it_abstains_and_names_the_nearest():
    answers = {"Who": {"Garrow": 1.9, "Annis": 1.0, "Motor": 0.1}}
    answer, steps = read(answers, "Who sold it?", [hit(0, VESSELS, ROW)], min_confidence=0.99)
    assert (answer.text, answer.abstained) == (NOT_FOUND, True)
    assert [near.quote.text for near in answer.alternatives] == [VESSELS]
    assert answer.confidence == answer.alternatives[0].confidence < 0.99
    assert steps[-1].outcome == "not found"
    assert not read(answers, "Who sold it?", [hit(0, VESSELS, ROW)], min_confidence=0.0)[0].abstained


LOG = "1922-05-02: Vessel: Tern; Cargo: salt"


def test_the_model_is_asked_for_a_day_as_the_texts_write_it():
    model = ScriptedModel({"": {"Tern": 9.0}})
    reader = span_reader(model, rank_weight=0.0)
    texts = [hit(0, LOG, kind=ROW), hit(1, "Nothing came on 3 May 1922.")]
    reader.read(Question("Which vessel came on May 2, 1922 or on 3 May 1922?"), texts, TrailRecorder())
    assert model.asked == ["Which vessel came on 1922-05-02 or on 3 May 1922?"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [("Dogs are not allowed on deck.", "No"), ("Dogs are allowed on deck.", "Yes")],
)
def test_yes_or_no_is_by_what_negates(text, answer):
    (result, _) = read({"": {"allowed on deck": 9.0}}, "Are dogs allowed on deck?", [hit(0, text)])
    assert (result.text, result.quotes[0].text) == (answer, text) and result.confidence >= 0.65
    # Where it is not sure, what the sentence says is shown as possible; to another question it is stated.
    unsure, _ = read({"": {"allowed on deck": 5.0}}, "Are dogs allowed on deck?", [hit(0, text)])
    stated, _ = read({"": {"allowed on deck": 5.0}}, "What is allowed on deck?", [hit(0, text)])
    assert (unsure.text, unsure.weigh().way, stated.weigh().way) == (stated.text, "perhaps", "answer")
    either, _ = read({"": {"allowed on deck": 9.0}}, "Are dogs or cats allowed on deck?", [hit(0, text)])
    assert either.text not in {"Yes", "No"}
