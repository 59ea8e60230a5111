"""Corpora: documents of paragraphs, negatives, and which gold evidence a node of a real base holds."""

import subprocess
import sys

import pytest

from clew.core.types import PASSAGE, SECTION, Location
from clew.evaluate.corpora import (
    GoldEvidence,
    add_articles,
    add_negatives,
    build_document,
    build_documents,
    document_location,
    draw_document_set,
    pool_paragraphs,
    shuffle_paragraphs,
)
from clew.evaluate.examples import Example, Paragraph, Support
from clew.parse.documents.builder import DocumentBuilder
from clew.store.store import Store

BOAT = Paragraph(
    "Heron/Maid", ("The Heron Maid is a lighter.", " She was built, i.e. made", "", " by Tolland. ")
)
YARD = Paragraph("Tolland", ("Tolland is a yard. It opened in 1919.",))
OTHERS = [Paragraph(f"Other {n}", (f"One {n}.", f"Two {n}.")) for n in range(50)]


def question(*support, corpus=(BOAT, YARD), id="q"):
    return Example(id, "Who?", ("x",), support=support, corpus=tuple(corpus))


def passages(document):
    return [node.text for node in document.nodes if node.kind == PASSAGE]


def test_passages_are_the_paragraph_or_the_sentences_of_the_data():
    assert passages(build_document(BOAT)) == [
        "The Heron Maid is a lighter. She was built, i.e. made by Tolland."
    ]
    cut = build_document(BOAT, "sentence")
    assert passages(cut) == ["The Heron Maid is a lighter.", "She was built, i.e. made", "by Tolland."]
    for node in cut.nodes[1:]:
        assert cut.text[slice(*node.span)] == node.text
    # A paragraph that the data does not divide is divided by rule.
    assert passages(build_document(YARD, "sentence")) == ["Tolland is a yard.", "It opened in 1919."]
    assert len({build_document(BOAT).key, cut.key, build_document(YARD).key}) == 3


@pytest.mark.parametrize("unit", ["paragraph", "sentence"])
def test_gold_evidence_is_found_again_in_a_base(tmp_path, unit):
    example = question(
        Support(BOAT.title, 1), Support(BOAT.title, 3), Support("Tolland"), Support("Nowhere", 0)
    )
    gold = GoldEvidence(example)
    with Store.open(tmp_path / "kb", create=True, passages=unit) as base:
        for document in build_documents(example.corpus, unit):
            base.put_document(document, document_location(document))
        held = {}
        for document in base.documents():
            for node in base.document_nodes(document.key):
                if node.kind == PASSAGE:
                    held[node.text] = gold.matching_pieces(node)
    if unit == "paragraph":
        assert held == {BOAT.text: {0, 1}, YARD.text: {2}}
    else:
        assert held == {
            "The Heron Maid is a lighter.": set(),
            "She was built, i.e. made": {0},
            "by Tolland.": {1},
            "Tolland is a yard.": {2},
            "It opened in 1919.": {2},
        }


def test_a_whole_document_keeps_its_sections_and_its_evidence(tmp_path):
    corpus = (
        Paragraph("Paper", ("We do it.",), ("Abstract",)),
        Paragraph("Paper", ("We use BERT.",), ("Methods", "Models")),
        Paragraph("Paper", ("We use CoNLL.",), ("Methods", "Data")),
        Paragraph("Second", ("Else.",), ()),
    )
    example = question(Support("Paper", text="We use  BERT."), corpus=corpus)
    paper, second = build_documents(corpus)
    headings = [(node.level, node.text) for node in paper.nodes if node.kind == SECTION]
    assert headings == [(1, "Abstract"), (1, "Methods"), (2, "Models"), (2, "Data")]
    assert passages(paper) == ["We do it.", "We use BERT.", "We use CoNLL."] and passages(second) == ["Else."]
    with Store.open(tmp_path / "kb", create=True) as base:
        base.put_document(paper, document_location(paper))
        nodes = [node for node in base.document_nodes(paper.key) if node.kind == PASSAGE]
        assert [GoldEvidence(example).matching_pieces(node) for node in nodes] == [set(), {0}, set()]
        assert nodes[1].headings == ("Methods", "Models")


def test_evidence_is_found_in_a_base_of_ones_own_documents(tmp_path):
    article = "Lighters of the Oskell. The Heron Maid is a lighter. She  was built, i.e. made for the trade."
    builder = DocumentBuilder()
    builder.add_paragraph(article)
    builder.add_paragraph("She sank.")
    builder.add_paragraph("She was built, i.e.")
    builder.add_paragraph("She was")
    document = builder.finish(data=b"x", title="Lighters", media_type="text/html", parser="html/1")
    first, second = Support(BOAT.title, 0), Support(BOAT.title, 1)
    unknown = Support("Heron Maid", 7)  # FEVER: no corpus, no sentence
    with Store.open(tmp_path / "kb", create=True) as base:
        base.put_document(document, Location("/wiki/heron_Maid.html", "/wiki", 1, 1, 1))
        built, sank, most, least = (
            node for node in base.document_nodes(document.key) if node.kind == PASSAGE
        )
    gold = GoldEvidence(question(first, second, Support("Tolland")))
    assert [gold.matching_pieces(item) for item in (built, sank, most, least)] == [{0, 1}, set(), {1}, set()]
    assert GoldEvidence(question(unknown, corpus=())).matching_pieces(sank) == {0}
    assert GoldEvidence(question(Support("Heron", 0), corpus=())).matching_pieces(sank) == set()


def test_pages_are_held_by_what_is_on_them(tmp_path):
    builder = DocumentBuilder()
    for number in (1, 2):
        builder.add_page(number)
        builder.add_paragraph(f"Text of page {number}.")
    document = builder.finish(data=b"x", title="10-K", media_type="application/pdf", parser="pdf/1", pages=2)
    with Store.open(tmp_path / "kb", create=True) as base:
        base.put_document(document, Location("/f/A_2022_10K.pdf", "/f", 1, 1, 1))
        first, two = (node for node in base.document_nodes(document.key) if node.kind == PASSAGE)
    gold = GoldEvidence(
        question(Support("A_2022_10K", page=2, text="whatever"), Support("B_2022_10K", page=1))
    )
    assert (gold.matching_pieces(first), gold.matching_pieces(two)) == (set(), {0})


def test_pooling_keeps_each_title_and_text_once_however_it_is_divided():
    again = Paragraph("Tolland", ("Tolland is a yard.", "It opened in 1919."))
    namesake = Paragraph("Tolland", ("Another.",))
    assert pool_paragraphs([question(), question(corpus=(again, namesake))]) == [BOAT, YARD, namesake]


def test_negatives_fill_up_to_the_number_of_sentences():
    example = question()
    corpus = add_negatives(example, [*OTHERS, Paragraph("Tolland", ("Namesake.",))], 30, seed=0)
    assert corpus[:2] == [BOAT, YARD] and len(set(corpus)) == len(corpus)
    # 3 + 2 sentences of its own, then 13 paragraphs of two: 31 is the first number from 30 on.
    assert len(corpus) == 2 + 13 and "Namesake." not in {item.text for item in corpus}
    assert add_negatives(example, OTHERS, 5, seed=0) == [BOAT, YARD]
    assert len(add_negatives(example, OTHERS, 10_000, seed=0)) == 52


@pytest.mark.slow
def test_negatives_depend_on_the_seed_and_the_question_and_on_nothing_else():
    first = add_negatives(question(), OTHERS, 30, seed=0)
    assert add_negatives(question(), OTHERS[::-1], 30, seed=0) == first
    assert add_negatives(question(), OTHERS, 30, seed=1) != first
    assert add_negatives(question(id="other"), OTHERS, 30, seed=0) != first
    # With others left out, those that stay are drawn in the same order.
    fewer = [other for other in OTHERS if other != first[2]]
    assert add_negatives(question(), fewer, 30, seed=0)[2:-1] == first[3:]
    # In another process too, where strings hash differently.
    code = (
        "from clew.evaluate.corpora import shuffle_paragraphs; from clew.evaluate.examples import Paragraph;"
        "print([p.title for p in shuffle_paragraphs('q', [Paragraph(f'Other {n}', (f'One {n}.', f'Two {n}.')) "
        "for n in range(50)], 0)])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == str(
        [paragraph.title for paragraph in shuffle_paragraphs("q", OTHERS, 0)]
    )


def test_whole_documents_are_drawn_whole():
    parts = [Paragraph(f"Book {n // 3}", (f"Part {n}.",), ()) for n in range(30)]
    titles = [negative.title for negative in add_negatives(question(), parts, 8, seed=0)[2:]]
    assert len(titles) == 3 and len(set(titles)) == 1


def test_a_document_set_has_the_gold_documents_and_random_others():
    distractor = Paragraph("Distractor", ("It is near.",))
    example = question(Support("Heron/Maid", 1), Support("Tolland", 0), corpus=(BOAT, distractor, YARD))
    pool = [BOAT, distractor, YARD, *OTHERS]
    drawn = draw_document_set(example, pool, 12, 0)
    assert [p.title for p in drawn[:2]] == ["Heron/Maid", "Tolland"] and len({p.title for p in drawn}) == 12
    assert "Distractor" not in {p.title for p in drawn}
    assert (
        drawn == draw_document_set(example, reversed(pool), 12, 0) != draw_document_set(example, pool, 12, 1)
    )
    assert len(draw_document_set(example, pool, 1, 0)) == 2  # never without its gold documents
    without_evidence = question(corpus=(BOAT, distractor, YARD))
    assert {p.title for p in draw_document_set(without_evidence, pool, 3, 0)} == {
        "Heron/Maid", "Distractor", "Tolland"}  # fmt: skip


def test_an_article_continues_the_paragraphs_of_the_data():
    articles = {
        "Tolland": "Tolland is a yard. It opened in 1919.\n\nIt closed in 1961.",
        "Weir": "A dam.\n\nLow.",
    }
    pool = add_articles([BOAT, YARD], articles)
    assert [p.text for p in pool if p.title == "Tolland"] == [YARD.text, "It closed in 1961."]
    example = question(Support("Tolland", 1), corpus=(BOAT, YARD))
    documents = list(build_documents(draw_document_set(example, pool, 2, 0), "sentence"))
    assert [document.title for document in documents] == ["Tolland", "Weir"]
    assert passages(documents[0]) == ["Tolland is a yard.", "It opened in 1919.", "It closed in 1961."]
