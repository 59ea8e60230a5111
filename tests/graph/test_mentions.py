import random
from collections import defaultdict

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.core.mentions import linking_names
from clew.core.text import STOPWORDS, title_names
from clew.core.types import KINDS, Table
from clew.graph.mentions import EDGE_KINDS, MentionGraph
from clew.graph.passages import UnionGraph
from clew.parse.documents.builder import DocumentBuilder
from graph_corpora import corpus, document, edges, finish_document, locate, pairs, passages, texts

NAMES_ALONE = ("title", "name")


def neighbours_by_hand(snapshot, common, leads):
    nodes = passages(snapshot)
    certain = {name for entry in snapshot.documents() for name in title_names(entry.title)}
    spans = {node.id: list(linking_names(node.text)) for node in nodes}
    certain |= {name for some in spans.values() for name, _, _, is_initial in some if not is_initial}
    mentioned = {id: {name for name, *_ in some if name in certain} for id, some in spans.items()}
    holders, in_document = defaultdict(set), defaultdict(list)
    for node in nodes:
        in_document[node.document].append(node.id)
        for name in mentioned[node.id]:
            holders[name].add(node.id)
    titled = defaultdict(set)
    for entry in snapshot.documents():
        for name in title_names(entry.title):
            if name not in STOPWORDS:
                titled[name] |= set(in_document[entry.key][:leads])
    by_id = {node.id: node for node in nodes}
    titles = {name for entry in snapshot.documents() for name in title_names(entry.title)} - STOPWORDS
    joins = {
        name
        for name, ids in holders.items()
        if len(ids) <= common and (name in titles or len({by_id[id].document for id in ids}) > 1)
    }

    def joined(a, b):
        about = any(b.id in titled[name] for name in mentioned[a.id] if name in titled)
        back = any(a.id in titled[name] for name in mentioned[b.id] if name in titled)
        return bool(mentioned[a.id] & mentioned[b.id] & joins) or about or back

    return pairs(nodes, joined)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_edges_are_those_counted_pair_by_pair(bases, seed):
    snapshot = bases.snapshot(corpus(seed))
    for common, leads in ((0, 1), (3, 0), (5, 2), (1000, 1000)):
        by_hand = neighbours_by_hand(snapshot, common, leads)
        assert edges(snapshot, MentionGraph(snapshot, common, leads, NAMES_ALONE)) == by_hand


def rows_of(snapshot, *texts):
    id_of_text = {node.text: node.id for node in passages(snapshot)}
    return [int(row) for row in snapshot.rows([id_of_text[text] for text in texts])]


def test_a_new_title_finds_passages_that_were_there_before_and_a_removed_one_is_gone(bases):
    old = document("minutes", "The council heard Hesper Marrable speak.")
    base = bases.base([old])
    assert edges(base.snapshot(), MentionGraph(base.snapshot(), kinds=NAMES_ALONE)) == set()
    new = document("Hesper Marrable", "She built gauges.")
    base.put_document(new, locate(new))
    base.catch_up()
    snapshot = base.snapshot()
    passage, lead = rows_of(snapshot, "The council heard Hesper Marrable speak.", "She built gauges.")
    assert MentionGraph(snapshot, kinds=NAMES_ALONE).neighbours(passage).tolist() == [lead]
    assert MentionGraph(snapshot, kinds=NAMES_ALONE).neighbours(lead).tolist() == [passage]
    assert (
        MentionGraph(snapshot, kinds=NAMES_ALONE).explain_edge(passage, lead) == "mentions: Hesper Marrable"
    )
    assert (
        MentionGraph(snapshot, kinds=NAMES_ALONE).explain_edge(lead, passage) == "mentions: Hesper Marrable"
    )
    base.remove(
        [path for entry in base.documents() if entry.title == "Hesper Marrable" for path in entry.paths]
    )
    base.catch_up()
    assert edges(base.snapshot(), MentionGraph(base.snapshot(), kinds=NAMES_ALONE)) == set()


def test_a_name_of_one_document_joins_nothing_and_of_two_it_does(bases):
    item = document("x", "Corran is far.", "Near Corran.")
    alone = bases.snapshot([item])
    assert edges(alone, MentionGraph(alone, kinds=NAMES_ALONE)) == set()
    joined = bases.snapshot([item, document("y", "To Corran again.")])
    assert len(edges(joined, MentionGraph(joined, kinds=NAMES_ALONE))) == 6


def test_a_common_name_joins_no_two_passages_but_still_leads_to_its_document(bases):
    documents = [document("Quill", "A river."), *(document(f"n{i}", f"Saw Quill {i}x.") for i in range(4))]
    snapshot = bases.snapshot(documents)
    assert len(edges(snapshot, MentionGraph(snapshot, common=3, kinds=NAMES_ALONE))) == 2 * 4
    assert len(edges(snapshot, MentionGraph(snapshot, common=4, kinds=NAMES_ALONE))) == 2 * 4 + 4 * 3


def test_leads_are_the_first_passages_of_the_document(bases):
    snapshot = bases.snapshot([document("Quill", "one", "two", "three"), document("n", "At Quill.")])
    at, first, two = rows_of(snapshot, "At Quill.", "one", "two")
    assert MentionGraph(snapshot, leads=2, kinds=NAMES_ALONE).neighbours(at).tolist() == sorted([first, two])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_removed_document_leaves_no_trace(bases, seed):
    documents = corpus(seed, documents=10)
    base = bases.base(random.Random(seed).sample(documents, 10))
    paths = {entry.key: entry.paths for entry in base.documents()}
    base.remove([path for removed in documents[:4] for path in paths[removed.key]])
    base.catch_up()
    after, never = base.snapshot(), bases.snapshot(documents[4:])
    assert edges(after, MentionGraph(after, kinds=NAMES_ALONE)) == edges(
        never, MentionGraph(never, kinds=NAMES_ALONE)
    )


def test_neighbours_are_the_same_for_few_and_for_many(bases, monkeypatch):
    snapshot = bases.snapshot(corpus(4, documents=20))
    sorted_way = edges(snapshot, MentionGraph(snapshot, 50, kinds=NAMES_ALONE))
    monkeypatch.setattr("clew.graph.passages._SORT_BELOW", 0)
    assert edges(snapshot, MentionGraph(snapshot, 50, kinds=NAMES_ALONE)) == sorted_way


def test_an_empty_base_has_no_mentions(bases):
    snapshot = bases.snapshot([])
    assert edges(snapshot, MentionGraph(snapshot)) == set()
    assert MentionGraph(snapshot).name == "mentions(common=5, leads=3)"


def test_knobs_out_of_range_are_refused(bases):
    with pytest.raises(UsageError):
        MentionGraph(bases.snapshot([]), common=-1)
    with pytest.raises(UsageError):
        MentionGraph(bases.snapshot([]), leads=-1)


@pytest.mark.slow
def test_every_neighbour_has_a_reason(bases):
    snapshot = bases.snapshot(corpus(2, documents=12))
    graph = MentionGraph(snapshot)
    for node in passages(snapshot):
        row = int(snapshot.rows([node.id])[0])
        assert all(graph.explain_edge(row, int(other)) for other in graph.neighbours(row))
    assert len(np.concatenate([graph.neighbours(row) for row in range(snapshot.size)]))


def test_the_edge_from_a_name_to_the_text_about_it_is_the_strongest(bases):
    about = document("Hesper Marrable", "She built gauges for the river.")
    item = document("minutes", "The council heard Hesper Marrable speak.")
    other = document("diary", "Met Hesper Marrable at the lock.")
    snapshot = bases.snapshot([about, item, other])
    gauges, heard, met = rows_of(
        snapshot,
        "She built gauges for the river.",
        "The council heard Hesper Marrable speak.",
        "Met Hesper Marrable at the lock.",
    )
    graph = MentionGraph(snapshot)
    title, name = EDGE_KINDS["title"], EDGE_KINDS["name"]
    assert graph.strengths(heard, np.array([gauges, met])).tolist() == [title.forward, name.forward]
    assert title.forward > title.back > name.forward > 0
    assert graph.strengths(gauges, np.array([heard, met])).tolist() == [title.back, title.back]
    assert len(graph.strengths(gauges, np.array([], dtype=np.int64))) == 0
    union = UnionGraph([MentionGraph(snapshot, leads=0), graph])
    assert union.strengths(heard, np.array([gauges, met])).tolist() == [title.forward, name.forward]


def report(year: int) -> DocumentBuilder:
    """A small annual report, worded as companies word theirs."""
    builder = DocumentBuilder()
    builder.add_page(1)
    builder.add_heading(1, "Item 7. Management's Discussion")
    builder.add_paragraph(
        f'Oskell Lighters plc (the "Company") earned more in {year}; see Note 5 and the table on page 2.'
    )
    builder.add_paragraph(
        "However, net operating loss (NOL) carry-forwards are described under “Taxes Paid”."
    )
    builder.add_heading(1, "Results")
    builder.add_table(Table(("Year", str(year)), (("Net sales (a)", "47"), ("Freight", "848"))))
    builder.add_paragraph("(a) Net of the tolls of the lock.")
    builder.add_page(2)
    builder.add_heading(1, "Note 5 - Taxes Paid")
    builder.add_paragraph("The NOL of the lighters expires; 47 of them are sold.")
    builder.add_heading(1, "Segments")
    builder.add_table(Table(("Segment", "North"), (("Net sales", "31"), ("Wages", "848"))))
    return builder


REPORT = {
    "sees": 'Oskell Lighters plc (the "Company") earned more in 1931; see Note 5 and the table on page 2.',
    "loss": "However, net operating loss (NOL) carry-forwards are described under “Taxes Paid”.",
    "sales": "Net sales (a): 1931: 47",
    "note": "The NOL of the lighters expires; 47 of them are sold.",
    "mark": "(a) Net of the tolls of the lock.",
    "north": "Net sales: North: 31",
    "wages": "Wages: North: 848",
    "freight": "Freight: 1931: 848",
}


@pytest.fixture(scope="module")
def annual(lasting):
    return lasting.snapshot([finish_document(report(1931), "report", pages=2)], ["report-1931.pdf"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "source", "target", "reason"),
    [
        ("reference", "sees", "note", "reference: Note 5"),
        ("page", "sees", "wages", "reference: page 2"),
        ("term", "note", "loss", "term: NOL"),
        ("heading", "loss", "note", "heading: Taxes Paid"),
        ("footnote", "sales", "mark", "footnote: (a)"),
        ("label", "sales", "north", "row label: net sales"),
        ("table", "loss", "freight", "structure: table on its page"),
        ("next", "sees", "loss", "structure: next to it"),
    ],
)
def test_each_kind_of_edge_leads_where_its_text_says(annual, kind, source, target, reason):
    start, end = rows_of(annual, REPORT[source], REPORT[target])
    graph = MentionGraph(annual, kinds=(kind,))
    assert end in graph.neighbours(start) and start in graph.neighbours(end)
    assert graph.explain_edge(start, end) == reason
    assert graph.strengths(start, np.array([end])).tolist() == [EDGE_KINDS[kind].forward]
    assert start not in graph.neighbours(start)


@pytest.mark.slow
def test_equal_numbers_and_words_that_begin_sentences_join_nothing(annual, bases):
    graph = MentionGraph(annual, kinds=("title", "name", "own-name"))
    freight, wages, note, sales = rows_of(
        annual, *(REPORT[name] for name in ("freight", "wages", "note", "sales"))
    )
    assert wages not in graph.neighbours(freight) and sales not in graph.neighbours(note)
    dates = bases.snapshot(
        [
            document("x", "However, on 31 December 2021 the mill closed.", "It sold 47 boats in March 2021."),
            document("y", "However, the ferry sank on 31 December 2021.", "In March 2021 there were 47."),
        ]
    )
    assert edges(dates, MentionGraph(dates, kinds=("title", "name", "own-name"))) == set()
    named = bases.snapshot(
        [document("x", "Corran is far."), document("y", "They went to Corran."), document("z", "Corran.")]
    )
    assert len(edges(named, MentionGraph(named, kinds=("name",)))) == 6


def test_a_passage_leads_to_the_nodes_that_it_stands_in_and_to_the_table_of_its_page(annual):
    (row,) = rows_of(annual, REPORT["loss"])
    nodes = annual.nodes(MentionGraph(annual, kinds=("container",)).neighbours(row))
    assert {(node.kind, node.name or node.page) for node in nodes} == {
        ("page", 1),
        ("section", "Item 7. Management's Discussion"),
        ("table", 1),
    }
    assert {node.kind for node in nodes} < set(KINDS)


def test_editions_are_joined_in_order_of_time_and_only_with_their_neighbours(bases):
    years = (1929, 1931, 1930)
    snapshot = bases.snapshot(
        [finish_document(report(year), f"report {year}", pages=2) for year in years],
        [f"report-{year}.pdf" for year in years],
    )
    graph = MentionGraph(snapshot, kinds=("edition",))
    joined = {
        (first[:-1], second[:-1])
        for first, second in texts(snapshot, edges(snapshot, graph))
        if first.startswith("Net sales (a): ") and second.startswith("Net sales (a): ")
    }
    as_years = {(first[15:19], second[15:19]) for first, second in joined}
    assert as_years == {("1929", "1930"), ("1930", "1929"), ("1930", "1931"), ("1931", "1930")}


def test_every_kind_of_edge_is_gone_with_its_document(bases):
    base = bases.base([finish_document(report(year), f"report {year}", pages=2) for year in (1930, 1931)])
    base.remove([path for entry in base.documents() if entry.title == "report 1930" for path in entry.paths])
    base.catch_up()
    after = base.snapshot()
    never = bases.snapshot([finish_document(report(1931), "report 1931", pages=2)])

    def all_edges(snapshot):
        graph = MentionGraph(snapshot, kinds=tuple(EDGE_KINDS))
        return {
            (node, other)
            for row in np.flatnonzero(snapshot.column("kind") >= 0)
            for node, other in [(snapshot.ids(np.array([row]))[0], snapshot.ids(graph.neighbours(int(row))))]
            for other in other
        }

    assert all_edges(after) == all_edges(never) != set()


def test_a_cell_that_is_the_title_of_a_document_leads_to_it(bases):
    builder = DocumentBuilder()
    rows = (("1970", "ash tree, 1. fc quill (ROC)", "bus"), ("1971", "stone", "on foot by the river"))
    builder.add_table(Table(("Year", "Seen", "By"), rows, "Walks"))
    table = finish_document(builder, "walks")
    names = ("Ash tree", "1. FC Quill", "Bus", "River", "Seen")
    snapshot = bases.snapshot([table, *(document(name, f"About {name}.") for name in names)])
    graph = MentionGraph(snapshot, kinds=("cell",))
    (row,) = rows_of(snapshot, "Walks. 1970: Seen: ash tree, 1. fc quill (ROC); By: bus")
    leads = rows_of(snapshot, "About Ash tree.", "About 1. FC Quill.", "About Bus.")
    assert graph.neighbours(row).tolist() == sorted(leads)
    assert graph.explain_edge(row, leads[2]) == "cell: Bus"
    assert graph.neighbours(leads[0]).tolist() == [row]
    (other,) = rows_of(snapshot, "Walks. 1971: Seen: stone; By: on foot by the river")
    assert not len(graph.neighbours(other))  # a river within a text is no cell


def test_a_plain_number_leads_to_a_passage_only_where_no_heading_has_it_and_never_to_a_footnote(bases):
    filing, licence = DocumentBuilder(), DocumentBuilder()
    for builder, name in ((filing, "Note 2"), (licence, "Section 2")):
        builder.add_paragraph(f"The conditions of {name} apply.")
    filing.add_heading(1, "Note 2 - Leases")
    filing.add_paragraph("The company leases barges.")
    filing.add_paragraph("2. Based on my knowledge, this report is complete.")
    licence.add_paragraph("2. You may lend copies of the map.")
    licence.add_paragraph("(2) Unless the map is lost.")
    snapshot = bases.snapshot([finish_document(filing, "Filing"), finish_document(licence, "Licence")])
    edges = MentionGraph(snapshot, kinds=("citation", "reference"))
    (sees,) = rows_of(snapshot, "The conditions of Note 2 apply.")
    assert edges.neighbours(sees).tolist() == rows_of(
        snapshot, "The company leases barges.", "2. Based on my knowledge, this report is complete."
    )
    assert {each.kind for each in edges.typed_edges(sees)} == {"reference"}
    (sees,) = rows_of(snapshot, "The conditions of Section 2 apply.")
    assert edges.neighbours(sees).tolist() == rows_of(snapshot, "2. You may lend copies of the map.")
