import math
from collections import Counter

import numpy as np
import pytest

from clew.core.text import count_terms, hash_term, query_terms, sentence_spans
from clew.core.trail import TrailRecorder
from clew.core.types import PASSAGE, ROW, Hit, Node, Question
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.extractive import ExtractiveReader


class Counts:
    """Document frequencies of a few texts, counted one by one."""

    def __init__(self, texts):
        self.node_count = len(texts)
        self.holding = Counter(term for text in texts for term in count_terms(text))

    def document_frequency(self, terms):
        return np.array([self.holding[int(term)] for term in terms])


def hit(number, text, score, kind=PASSAGE, headings=(), name="notes.md"):
    node = Node(
        f"d{number}:1", kind, text, f"d{number}", name, 1, None, "", 0, None, headings, (0, len(text))
    )
    return Hit(node, score, (node.id,))


FILLER = [f"Filler number {n} about tolls, tides and the weather of the coast." for n in range(40)]
BRANDT = (
    "The study was printed in 1931. We are grateful to Captain Ottilie Brandt, who commanded the Lady Annis."
)
ANNIS = "Vessels: Lady Annis: Type: Motor vessel; Built: 1926; Builder: Garrow Brothers"


def reader_of(hits, **options):
    return ExtractiveReader(Counts([item.node.text for item in hits] + FILLER), **options)


def read(question, hits, **options):
    trail = TrailRecorder()
    answer = reader_of(hits, **options).read(Question(question), hits, trail)
    (step,) = trail.steps
    assert step.name == "read"
    assert answer.reader == step.detail["reader"] == "extractive"
    return answer, step


def test_the_sentence_that_answers_is_taken_from_its_passage():
    hits = [hit(1, BRANDT, 2.0), hit(2, FILLER[0], 1.0)]
    answer, _ = read("Who commanded the Lady Annis?", hits)
    assert answer.text == "We are grateful to Captain Ottilie Brandt, who commanded the Lady Annis."
    assert not answer.abstained
    (quote,) = [quote for quote in answer.quotes if quote.node == "d1:1"]
    assert BRANDT[slice(*quote.span)] == quote.text == answer.text


def test_every_evidence_comes_with_one_quote_from_it():
    hits = [hit(1, BRANDT, 2.0), hit(2, ANNIS, 1.0, ROW), hit(3, "The Annis sank.", 0.5)]
    answer, _ = read("Who commanded the Lady Annis?", hits)
    assert [quote.node for quote in answer.quotes] == [value.node.id for value in answer.evidence]
    for quote, item in zip(answer.quotes, answer.evidence, strict=True):
        assert item.node.text[slice(*quote.span)] == quote.text


def test_a_table_row_is_one_sentence():
    answer, _ = read("When was the Lady Annis built?", [hit(1, ANNIS, 1.0, ROW)])
    assert answer.text == ANNIS


def test_a_question_of_two_hops_gets_a_sentence_from_each():
    hits = [hit(1, BRANDT, 2.0), hit(3, "The firm of Strake owns a yard.", 1.9), hit(2, ANNIS, 1.0, ROW)]
    question = "Which builder made the ship whose captain the authors of the study are grateful to?"
    answer, step = read(question, hits)
    assert {item.node.id for item in answer.evidence[: step.detail["sentences"]]} >= {"d1:1", "d2:1"}
    assert "Garrow Brothers" in answer.text
    assert "Ottilie Brandt" in answer.text


def test_a_question_that_one_sentence_covers_gets_one():
    text = "Captain Ottilie Brandt commanded the motor vessel Lady Annis."
    answer, step = read(
        "Who commanded the motor vessel Lady Annis?", [hit(1, text, 1.0), hit(2, ANNIS, 0.9, ROW)]
    )
    assert step.detail["sentences"] == 1
    assert answer.text == text


def test_headings_count_for_the_question_but_less_than_the_words_themselves():
    below = hit(1, "It was 118 feet long.", 1.0, headings=("Heron Maid",))
    assert not read("How long was the Heron Maid?", [below])[0].abstained
    bare = hit(1, "It was 118 feet long.", 1.0)
    covered = [read("How long was the Heron Maid?", [item])[1].detail["covered"] for item in (bare, below)]
    assert covered[0] < covered[1] < 1.0
    within = hit(2, "The Heron Maid was 118 feet long.", 1.0)
    assert read("How long was the Heron Maid?", [below, within])[0].quotes[0].node == "d2:1"


def test_it_abstains_where_the_evidence_says_too_little():
    answer, step = read("Which university gave Ilse Tamsin a degree in chemistry?", [hit(1, BRANDT, 1.0)])
    assert (answer.text, answer.abstained, answer.evidence, answer.quotes) == (NOT_FOUND, True, (), ())
    assert step.detail["covered"] < 0.2
    assert read("Who?", [])[0].abstained


def test_covered_is_the_share_of_the_questions_idf():
    hits = [hit(1, "Geese pay a toll.", 1.0)]
    texts = [hits[0].node.text, *FILLER]
    question = "What toll do dragons and geese pay?"

    def idf(term):
        holding = sum(hash_term(term) in count_terms(text) for text in texts)
        return math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))

    asked = set(query_terms(question))
    wanted = sum(idf(term) for term in asked if term != "dragon") / sum(map(idf, asked))
    assert read(question, hits)[1].detail["covered"] == pytest.approx(wanted, abs=1e-3)


def test_a_long_sentence_is_cut_to_the_part_that_has_the_words():
    text = "word " * 300 + "the Lady Annis was commanded by Ottilie Brandt " + "more " * 300
    answer, _ = read("Who commanded the Lady Annis?", [hit(1, text, 1.0)])
    assert "commanded by Ottilie Brandt" in answer.text
    assert len(answer.text) <= 420
    assert text[slice(*answer.quotes[0].span)] == answer.quotes[0].text


def test_the_order_of_hits_does_not_matter_beyond_their_scores():
    hits = [hit(1, BRANDT, 1.0), hit(2, ANNIS, 1.0, ROW), hit(3, FILLER[3], 1.0)]
    forth, _ = read("Who commanded the Lady Annis?", hits)
    back, _ = read("Who commanded the Lady Annis?", hits[::-1])
    assert forth.text == back.text


def test_sentences_and_quotes_agree():
    answer, _ = read("Who commanded the Lady Annis?", [hit(1, BRANDT, 1.0)])
    assert answer.quotes[0].span in sentence_spans(BRANDT)
