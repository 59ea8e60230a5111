"""Outlines and topic segments: by hand, and against plain programs that do the same slowly."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from clew.core.types import DOCUMENT, PASSAGE, RETRIEVED_KINDS, ROW, SECTION, TABLE
from clew.methods.d3.outline import Outlines
from clew.methods.d3.segments import (
    EVENNESS,
    PENALTY,
    WANTED_SHARE,
    key_phrases,
    segment_starts,
    text_vectors,
    word_vectors,
)
from drill_documents import NOTES, REPORT, SUBJECTS
from kb_documents import document, location


def test_sections_stand_in_preorder_with_the_names_along_the_path(snapshot_of):
    snapshot = snapshot_of(REPORT)
    (only,) = snapshot.documents()
    outline = Outlines(snapshot).of(only.key)
    assert [(section.kind, section.name, len(section.rows)) for section in outline.sections] == [
        ("section", "The Tolland lighters", 1),  # what stands before the first heading
        ("section", "History", 1),
        ("section", "History > Owners", 1),
        ("section", "History > Crews", 1),
        ("section", "Fleet", 4),  # a paragraph, and the rows of the table
        ("table", "Fleet > Ships of the line", 3),
        ("section", "End > Owners", 1),  # "End" has nothing of its own
    ]
    fleet, table = outline.sections[4:6]
    assert set(table.rows) < set(fleet.rows)
    assert snapshot.nodes(np.array(table.rows))[1].text.startswith("Ships of the line. Gannet:")


def test_pages_are_told(snapshot_of):
    snapshot = snapshot_of(
        ("a.pdf", "A", ("page", 3), ("heading", 1, "One"), "First words.", ("page", 4), "Second words.")
    )
    (first,) = Outlines(snapshot).of(snapshot.documents()[0].key).sections
    assert first.pages == (3, 4)


def test_pages_are_entries_where_that_is_wanted(snapshot_of):
    document = (
        "a.pdf",
        "A",
        ("page", 3),
        ("heading", 1, "One"),
        "First words.",
        ("page", 4),
        "Second words.",
    )
    snapshot = snapshot_of(document)
    key = snapshot.documents()[0].key
    section, third, fourth = Outlines(snapshot, pages=True).of(key).sections
    assert [(item.kind, item.name, item.pages) for item in (section, third, fourth)] == [
        ("section", "One", (3, 4)),
        ("page", "A > page 3", (3, 3)),
        ("page", "A > page 4", (4, 4)),
    ]
    assert section.rows == (*third.rows, *fourth.rows)
    # A passage stands in its section; the page is another way to choose it.
    assert set(Outlines(snapshot, pages=True).sections_of(key, section.rows).values()) == {section}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(8))
def test_sections_are_those_of_a_walk_through_the_tree(base, number):
    parsed = document(number)
    base.put_document(parsed, location(f"/d/{number}.txt"))
    snapshot = base.snapshot()
    tree = base.document_nodes(parsed.key)
    expected = []
    for node in tree:
        if node.kind in {DOCUMENT, SECTION}:
            own = [child for child in tree if child.parent == node.id and child.kind == PASSAGE]
            tables = {child.id for child in tree if child.parent == node.id and child.kind == TABLE}
            own += [child for child in tree if child.parent in tables and child.kind == ROW]
            if own:
                expected.append((node.id, sorted(child.position for child in own)))
    result = Outlines(snapshot).of(parsed.key).sections
    assert [
        (item.id, [int(id.rpartition(":")[2]) for id in snapshot.ids(np.array(item.rows))])
        for item in result
        if item.kind == "section"
    ] == expected


def test_a_long_document_without_headings_is_shown_in_parts(snapshot_of):
    snapshot = snapshot_of(("talk.txt", "Talk", *SUBJECTS))
    key = snapshot.documents()[0].key
    sections = Outlines(snapshot, max_terms=90).of(key).sections
    rows = np.flatnonzero(snapshot.mask(scope_of(key), RETRIEVED_KINDS)).tolist()
    assert [row for section in sections for row in section.rows] == rows  # each paragraph once, in order
    assert [len(section.rows) for section in sections] == [3, 3, 3]
    assert [section.kind for section in sections] == ["part"] * 3
    bees, volcano, music = (section.path[-1] for section in sections)
    assert "hive" in bees and "eruption" in volcano and "concert" in music
    # A pure function of the document: another beside it changes nothing.
    again = snapshot_of(NOTES)
    names = [(section.id, section.path) for section in sections]
    assert [(section.id, section.path) for section in Outlines(again, max_terms=90).of(key).sections] == names


def test_a_long_section_keeps_its_name_above_its_parts(snapshot_of):
    snapshot = snapshot_of(("talk.txt", "Talk", ("heading", 1, "Item 8"), *SUBJECTS))
    sections = Outlines(snapshot, max_terms=90).of(snapshot.documents()[0].key).sections
    assert {section.path[0] for section in sections} == {"Item 8"}
    assert len({section.path for section in sections}) == len(sections) == 3


def scope_of(key):
    from clew.core.types import Scope

    return Scope(documents=frozenset([key]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_segments_cost_as_little_as_the_best_of_all_segmentations(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    vectors = rng.normal(size=(n, 5))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    lengths, longest = rng.integers(1, 30, n), 60
    whole = scatter(vectors, lengths, 0, n)
    wanted = WANTED_SHARE * longest
    penalty = PENALTY * whole / (n - 1)
    evenness = EVENNESS * whole * wanted / lengths.sum()

    def cost(starts):
        pieces = list(pairwise([*starts, n]))
        if any(lengths[a:b].sum() > longest for a, b in pieces if b - a > 1):
            return np.inf
        return sum(
            scatter(vectors, lengths, a, b) + penalty + evenness * (lengths[a:b].sum() / wanted - 1) ** 2
            for a, b in pieces
        )

    every = [(0, *rest) for size in range(n) for rest in combinations(range(1, n), size)]
    result = segment_starts(vectors, lengths, longest)
    assert cost(result) == pytest.approx(min(map(cost, every)), abs=1e-6)


def scatter(vectors, lengths, start, end):
    mean = lengths[start:end] @ vectors[start:end] / lengths[start:end].sum()
    return float(lengths[start:end] @ (1 - 2 * vectors[start:end] @ mean + mean @ mean))


def test_vectors_of_words_are_the_same_from_postings_and_from_texts(snapshot_of):
    snapshot = snapshot_of(NOTES)
    rows = np.flatnonzero(snapshot.mask(scope_of(snapshot.documents()[0].key), RETRIEVED_KINDS))
    texts = [node.text for node in snapshot.nodes(rows)]
    assert np.allclose(word_vectors(snapshot.postings("text"), rows), text_vectors(texts))


def test_key_phrases_tell_segments_apart():
    result = key_phrases(
        [["The harbour toll rose. A harbour toll is paid."], ["The harbour mill grinds. The mill is old."]]
    )
    assert result[0][0] == "harbour toll"
    assert result[1][0] == "mill"
    assert key_phrases([["the of and"]]) == [[]]
