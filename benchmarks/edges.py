"""How often does an edge of a passage graph lead from evidence to evidence? Kinds of edges against chance.

For each kind of edge of the graph ``mentions``: how many there are, how many passages have one, and, of the edges
that start at a gold passage of a question, the share that ends at another gold passage of the same question
(*precision*). *chance* is that share for a passage drawn at random: from the document where the edge stays in it,
else from the base. *lift* is their quotient. A pair of passages counts for each question that it is evidence of.

Corpora: the pooled paragraphs of three multi-hop sets (gold paragraphs); the sample documents (passages with the gold
evidence); eight filings, with two kinds of pairs: the questions that have evidence on two pages (FinanceBench's, and
``data/filings_places.jsonl``, written by hand before any edge was looked at), and *figures*: two passages or rows of
a filing that state the same figure of four digits or more, which no third one states. No edge is made from a number,
so that the figures are a fair check of all others; Debian's licences, some of them editions of one another
(``data/licence_places.jsonl``: a section and one that it refers to, two editions, a term and its use). Of 5,000 drawn
edges by a name those are counted whose every name is a number: there has to be none.

    python benchmarks/edges.py                           # all: five minutes
    python benchmarks/edges.py --corpus musique
    python benchmarks/edges.py --common 8
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

import clew
from clew.core.protocols import Snapshot
from clew.core.types import KINDS, ROW, Node, Question
from clew.evaluate.corpora import GoldEvidence, pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.graph.mentions import EDGE_KINDS, MentionGraph
from clew.graph.passages import passage_rows
from clew.knowledge_base import registry
from clew.store.store import Store

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data"
SETS = {"hotpotqa": "train100", "musique": "train100", "2wikimultihopqa": "train500"}
CORPORA = (*SETS, "samples", "filings", "licences")
LICENCES = Path("/usr/share/common-licenses")
#: Begins the names of kinds that are two edges: up to a page, section or table, and down again.
STEPS = "same "
_FIGURE = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])")

#: The gold passages of a question, each with the place it stands for: a paragraph, a piece of evidence, a page.
Evidence = list[tuple[int, object]]


@dataclass
class Tally:
    """What is counted of a kind of edge."""

    edges: int = 0
    passages: int = 0
    from_evidence: int = 0
    to_evidence: int = 0
    expected: float = 0.0

    @property
    def lift(self) -> float:
        """The share of edges that lead to evidence, over chance."""
        return self.to_evidence / self.expected if self.expected else math.nan


def paragraphs_evidence(name: str, snapshot: Snapshot) -> list[Evidence]:
    """Return the gold paragraphs of the questions of a set."""
    rows = passage_rows(snapshot)
    by_title: dict[str, list[tuple[int, Node]]] = defaultdict(list)
    for row, node in zip(rows.tolist(), snapshot.nodes(rows), strict=True):
        by_title[node.document_name.rpartition(".")[0]].append((row, node))
        by_title[node.document_name].append((row, node))
    questions: list[Evidence] = []
    for example in load_dataset(name, DATA / name / f"{SETS[name]}.jsonl").examples():
        gold = GoldEvidence(example)
        titles = {piece.title for piece in example.pieces}
        nodes = {row: node for title in titles for row, node in by_title[title]}
        questions.append(
            [
                (row, example.gold_paragraphs[min(p)])
                for row, node in nodes.items()
                if (p := gold.matching_pieces(node))
            ]
        )
    return questions


def samples_evidence(snapshot: Snapshot) -> list[Evidence]:
    """Return the passages that contain the gold evidence of the sample questions."""
    rows = passage_rows(snapshot)
    texts = [
        (row, " ".join(node.text.split()))
        for row, node in zip(rows.tolist(), snapshot.nodes(rows), strict=True)
    ]
    questions: list[Evidence] = []
    for line in (HERE.parent / "samples" / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        pieces = [" ".join(piece.replace("|", " ").split()) for piece in json.loads(line).get("evidence", [])]
        questions.append(
            [
                (row, number)
                for row, text in texts
                for number, piece in enumerate(pieces)
                if _contains(text, piece)
            ]
        )
    return questions


def _contains(text: str, piece: str) -> bool:
    """Return whether a text has a piece of evidence; of a table row, all its cells."""
    return piece in text or all(word in text for word in piece.split())


def pages_evidence(snapshot: Snapshot) -> list[Evidence]:
    """Return the passages of the gold pages of the questions on filings that have several."""
    by_page: dict[tuple[str, int], list[int]] = defaultdict(list)
    rows = passage_rows(snapshot)
    for row, node in zip(rows.tolist(), snapshot.nodes(rows), strict=True):
        by_page[node.document_name, node.page or 0].append(row)
    places: list[set[tuple[str, int]]] = []
    for line in (DATA / "financebench" / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        places.append(
            {(f"{record['doc_name']}.pdf", item["evidence_page_num"] + 1) for item in record["evidence"]}
        )
    for line in (HERE / "data" / "filings_places.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        places.append({(record["file"], page) for page in record["pages"]})
    return [[(row, page) for page in pages for row in by_page[page]] for pages in places if len(pages) > 1]


def figures_evidence(snapshot: Snapshot) -> list[Evidence]:
    """Return the pairs of passages or rows of a filing that alone state a figure; rows of one table are no pair."""
    holders: dict[tuple[str, str], list[tuple[int, object]]] = defaultdict(list)
    rows, parent = passage_rows(snapshot), snapshot.column("parent")
    for row, node in zip(rows.tolist(), snapshot.nodes(rows), strict=True):
        for figure in set(_FIGURE.findall(node.text)):
            holders[node.document_name, figure].append((row, int(parent[row]) if node.kind == ROW else -row))
    pairs = {tuple(both): None for both in holders.values() if len(both) == 2 and both[0][1] != both[1][1]}
    return [list(pair) for pair in pairs]


def licences_evidence(snapshot: Snapshot) -> list[tuple[str, str, Evidence]]:
    """Return the questions on licences: what joins the two places, the question, and the passages with the words that
    mark each place."""
    rows = passage_rows(snapshot)
    texts = [
        (row, node.document_name.removesuffix(".txt"), " ".join(node.text.split()))
        for row, node in zip(rows.tolist(), snapshot.nodes(rows), strict=True)
    ]
    questions = []
    for line in (HERE / "data" / "licence_places.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        evidence: Evidence = [
            (row, number)
            for row, name, text in texts
            for number, (file, words) in enumerate(record["places"])
            if name == file and words in text
        ]
        questions.append((record["kind"], record["question"], evidence))
    return questions


def tally_edges(
    snapshot: Snapshot, questions: Sequence[Evidence], common: int
) -> dict[tuple[str, bool], Tally]:
    """Count the edges of every kind and direction."""
    graph = MentionGraph(snapshot, common=common, kinds=tuple(EDGE_KINDS))
    tallies: dict[tuple[str, bool], Tally] = defaultdict(Tally)
    document, rows, kinds = snapshot.column("document"), passage_rows(snapshot), snapshot.column("kind")
    is_passage = np.zeros(snapshot.size, dtype=np.bool_)
    is_passage[rows] = True
    size_of = Counter(document[rows].tolist())
    targets_of: dict[tuple[int, str, bool], list[int]] = {}
    for row in rows.tolist():
        for kind, parts in group_edges(graph, row, kinds).items():
            near = np.unique(np.concatenate(parts))
            targets_of[(row, *kind)] = near = near[is_passage[near] & (near != row)].tolist()
            tallies[kind].edges += len(near)
            tallies[kind].passages += len(near) > 0
    for evidence in questions:
        place_of = dict(evidence)
        for row, place in place_of.items():
            others = {other for other, elsewhere in place_of.items() if elsewhere != place}
            same = place_of.keys() - others
            in_document = sum(document[other] == document[row] for other in others)
            for kind, tally in tallies.items() if others else ():
                for target in targets_of.get((row, *kind), ()):
                    if target in same:
                        continue
                    inside = document[target] == document[row]
                    own = size_of[int(document[row])]
                    tally.from_evidence += 1
                    tally.to_evidence += target in others
                    tally.expected += (
                        in_document / own if inside else (len(others) - in_document) / max(len(rows) - own, 1)
                    )
    return tallies


def group_edges(graph: MentionGraph, row: int, kinds: np.ndarray) -> dict[tuple[str, bool], list[np.ndarray]]:
    """Return the ends of a row's edges by kind and direction; ``kinds`` has the kind of every node, as its place in
    ``KINDS``. An edge to a page, section or table is followed by the edges of that."""
    groups: dict[tuple[str, bool], list[np.ndarray]] = defaultdict(list)
    for edges in graph.typed_edges(row):
        groups[edges.kind, edges.is_back].append(edges.rows)
        for place in edges.rows.tolist() if edges.kind == "container" else ():
            inside = [each.rows for each in graph.typed_edges(place) if each.kind == "container"]
            groups[f"{STEPS}{KINDS[kinds[place]]}", False] += inside
    return groups


def count_number_edges(snapshot: Snapshot, common: int) -> tuple[int, int]:
    """Return how many of up to 5,000 edges by a name, drawn with seed 0, are by numbers alone, and of how many."""
    graph = MentionGraph(snapshot, common=common, kinds=("title", "name", "own-name"))
    rows = passage_rows(snapshot)
    edges = [(row, int(other)) for row in rows.tolist() for other in graph.neighbours(row)]
    draw = np.random.default_rng(0).permutation(len(edges))[:5_000]
    explained = [graph.explain_edge(*edges[int(n)]).partition(": ")[2].split(", ") for n in draw]
    return sum(not any(re.search(r"[^\W\d_]", form) for form in forms) for forms in explained), len(explained)


def old_number_edges(snapshot: Snapshot) -> tuple[float, float]:
    """Return what the graph was before: the share of its edges by shared names that are numbers alone, and of
    passages without an edge."""
    from clew.core.text import candidate_names

    holders: dict[str, list[int]] = defaultdict(list)
    rows = passage_rows(snapshot)
    document = snapshot.column("document")
    for row, node in zip(rows.tolist(), snapshot.nodes(rows), strict=True):
        for name in {name for name, _, _ in candidate_names(node.text)}:
            holders[name].append(row)
    edges: dict[tuple[int, int], bool] = {}
    for name, some in holders.items():
        if 1 < len(some) <= 5 and len({int(document[row]) for row in some}) > 1:
            is_number = not re.search(r"[^\W\d_]", name)
            for pair in combinations(some, 2):
                edges[pair] = edges.get(pair, True) and is_number
    joined = {row for pair in edges for row in pair}
    return sum(edges.values()) / max(len(edges), 1), 1 - len(joined) / max(len(rows), 1)


def open_base(name: str, folder: Path) -> Store:
    """Return a base of a corpus, made in ``folder``."""
    if name in SETS:
        base = Store.open(folder / name, create=True)
        if not base.documents():
            examples = load_dataset(name, DATA / name / f"{SETS[name]}.jsonl").examples()
            fill_store(base, pool_paragraphs(list(examples)), EvaluationSettings())
        return base
    source = DATA / "financebench" / "pdfs" if name == "filings" else HERE.parent / "samples" / "documents"
    if name == "licences":
        source = folder / "texts"
        source.mkdir(exist_ok=True)
        for path in LICENCES.iterdir():
            # The names without a version are links to the newest.
            if not path.is_symlink():
                shutil.copyfile(path, source / f"{path.name}.txt")
    with clew.open(folder / name, create=True) as result:
        result.encoding.set(None)
        result.add([source])
    return Store.open(folder / name)


def evidence_of(name: str, snapshot: Snapshot) -> Iterator[tuple[str, list[Evidence]]]:
    """Yield the sets of questions on a corpus, with their gold passages."""
    if name in SETS:
        yield name, paragraphs_evidence(name, snapshot)
    elif name == "samples":
        yield name, samples_evidence(snapshot)
    elif name == "licences":
        by_kind: dict[str, list[Evidence]] = defaultdict(list)
        for kind, _, evidence in licences_evidence(snapshot):
            by_kind[kind].append(evidence)
        yield from ((f"licences, {kind}", some) for kind, some in by_kind.items())
    else:
        yield "filings, two pages", pages_evidence(snapshot)
        yield "filings, figures", figures_evidence(snapshot)


def report_recall(base: Store, questions: Sequence[tuple[str, Evidence]], encoders: Sequence[str]) -> None:
    """Print of how many questions every place is among the first passages of a search and of walks."""
    snapshot = base.snapshot()
    print("| encoder | search | questions | all places @5 | @10 |\n|---|---|---|---|---|")
    for name in encoders:
        encoder = None if name == "none" else registry.load_encoder(name)
        if encoder is not None:
            base.encode(encoder)
        for recipe in ("search", "kgp(prior=0.0)", "kgp"):
            retriever = registry.build_retriever(recipe, base, encoder=encoder)
            covered = []
            for text, evidence in questions:
                hits = retriever.retrieve(Question(text), 10)
                rows = snapshot.rows([hit.node.id for hit in hits]).tolist()
                places = [{place for row, place in evidence if row in rows[:cut]} for cut in (5, 10)]
                covered.append([some == {place for _, place in evidence} for some in places])
            first, ten = np.sum(covered, axis=0)
            print(f"| {name} | {recipe} | {len(questions)} | {first} | {ten} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", action="append", choices=CORPORA, help="default: all")
    parser.add_argument("--common", type=int, default=5)
    parser.add_argument("--kb", type=Path, help="a folder for the bases (default: a temporary one)")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}; it is not part of this repository")
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.corpus or CORPORA:
            with open_base(name, options.kb or Path(temporary)) as base:
                report(name, base.snapshot(), options.common)
                if name == "licences":
                    questions = [(text, evidence) for _, text, evidence in licences_evidence(base.snapshot())]
                    report_recall(base, questions, ("none", "clew:hops"))


def report(name: str, snapshot: Snapshot, common: int) -> None:
    """Print the tables of a corpus."""
    rows = passage_rows(snapshot)
    whole = MentionGraph(snapshot, common=common)
    joined = sum(len(near[np.isin(near, rows)]) > 0 for near in map(whole.neighbours, rows.tolist()))
    numbers, lonely = old_number_edges(snapshot)
    alone, drawn = count_number_edges(snapshot, common)
    print(
        f"\n{name}: {len(rows):,} passages and rows, {joined / len(rows):.0%} with an edge. Names as before: "
        f"{numbers:.0%} of the edges by numbers alone, {1 - lonely:.0%} of the passages with an edge. "
        f"Edges by numbers alone now: {alone} of {drawn:,}\n"
    )
    for title, questions in evidence_of(name, snapshot):
        several = [evidence for evidence in questions if len({place for _, place in evidence}) > 1]
        print(f"{title}: {len(several)} questions with evidence in several places\n")
        print(
            "| kind | edges | passages with one | from evidence | to evidence | precision | chance | lift |"
        )
        print("|---|---|---|---|---|---|---|---|")
        tallies = tally_edges(snapshot, several, common)
        order = list(EDGE_KINDS)
        for kind, is_back in sorted(
            tallies, key=lambda each: (order.index(each[0]) if each[0] in order else len(order), each)
        ):
            t = tallies[kind, is_back]
            each = max(t.from_evidence, 1)
            print(
                f"| {kind}{', back' if is_back else ''} | {t.edges:,} | {t.passages / len(rows):.1%} | "
                f"{t.from_evidence} | {t.to_evidence} | {t.to_evidence / each:.4f} | {t.expected / each:.4f} | "
                f"{t.lift:.1f} |",
                flush=True,
            )
        print()


if __name__ == "__main__":
    main()
