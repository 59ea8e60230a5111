"""The gold triples of the shared 2WikiMultihopQA questions, in one graph with the film graph: for :mod:`linking`.

The nodes of 2Wiki have Wikidata's ids, so that a film that both graphs know is there twice; the one of the triple is
the right one.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from clew.core.protocols import Encoder, PropertyGraph
from clew.core.types import LinkedEntity, LinkedRelation
from clew.triples.linking.entities import GraphEntityLinker
from clew.triples.linking.relations import GraphRelationLinker, ground
from perturbed import CHANGES

SHARED = Path(__file__).parents[2] / "shared" / "data"
FILMS = SHARED / "metaqa" / "graph.tsv"
QUESTIONS = SHARED / "2wikimultihopqa" / "train500.jsonl"
PARAPHRASES = Path(__file__).parent / "data" / "relation_paraphrases.tsv"
#: Ids of what is no date; questions without ids get some made of the names.
ENTITY = re.compile(r"Q\d+$|2wiki ")
QUALIFIER = re.compile(r"\s*\([^)]*\)$")


@dataclass(frozen=True)
class Asked:
    """A gold triple: its question, the head's name and id, the relation."""

    question: str
    name: str
    id: str
    relation: str


def gold() -> tuple[list[Asked], dict[str, Counter[str]], dict[str, str], list[list[str]]]:
    """Return the triples, the names of each id, a title with a qualifier for the ids that have one, and the edges."""
    asked: list[Asked] = []
    names: dict[str, Counter[str]] = {}
    titles: dict[str, str] = {}
    edges = []
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        ids = record["evidences_id"] or [
            [f"2wiki {head}", "", f"2wiki {tail}"] for head, _, tail in record["evidences"]
        ]
        for (head, relation, tail), (head_id, _, tail_id) in zip(record["evidences"], ids, strict=True):
            names.setdefault(head_id, Counter())[head] += 1
            if ENTITY.match(tail_id):
                names.setdefault(tail_id, Counter())[tail] += 1
            edges.append([head_id, relation, tail_id if ENTITY.match(tail_id) else tail])
            asked.append(Asked(record["question"], head, head_id, relation))
            for title, _ in record["supporting_facts"]:
                if title != head and QUALIFIER.sub("", title).casefold() == head.casefold():
                    titles[head_id] = title
    return asked, names, titles, edges


def merge_graphs(folder: Path) -> tuple[Path, list[Asked], dict[str, list[tuple[str, str]]]]:
    """Write the film graph and the gold triples as one graph; return it, the triples, and for each id other ways to
    call it: ``alias``, which the graph has, and ``title with a qualifier``, which it has not."""
    asked, names, titles, edges = gold()
    path = folder / "oracle.jsonl"
    others: dict[str, list[tuple[str, str]]] = {}
    with path.open("w", encoding="utf-8") as file:
        for id, counted in names.items():
            first, *more = sorted(counted, key=lambda name: (-counted[name], name))
            node = {"id": id, "name": first, "aliases": more}
            file.write(json.dumps(node, ensure_ascii=False) + "\n")
            others[id] = [("alias", item) for item in more]
            if id in titles and titles[id] not in counted:
                others[id].append(("title with a qualifier", titles[id]))
        films = (line.split("\t") for line in FILMS.read_text(encoding="utf-8").splitlines())
        for edge in (*films, *edges):
            file.write(json.dumps(edge, ensure_ascii=False) + "\n")
    return path, asked, others


def paraphrases() -> dict[str, list[str]]:
    """Return the two paraphrases of each relation."""
    results: dict[str, list[str]] = {}
    for line in PARAPHRASES.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            relation, phrase = line.split("\t")
            results.setdefault(relation, []).append(phrase)
    return results


def mentions(
    asked: list[Asked], others: dict[str, list[tuple[str, str]]], seed: int
) -> dict[str, list[tuple[Asked, str]]]:
    """Return for each way to change a name the triples that it can be done to, and their heads' names changed."""
    draw = random.Random(seed)
    results = {
        label: [(item, change(item.name, draw)) for item in asked if fits(item.name)]
        for label, (change, fits) in CHANGES.items()
    }
    for label in ("alias", "title with a qualifier"):
        results[label] = [(item, name) for item in asked for kind, name in others[item.id] if kind == label]
    return results


def measure_entities(
    graph: PropertyGraph, changed: dict[str, list[tuple[Asked, str]]], encoders: dict[str, Encoder]
) -> None:
    """Print top-1 and top-5 of entity linking, and of the right node where the right relation is grounded with it."""
    print(
        "\n| names | linker | triples | top-1 | top-5 | top-1 grounded | ms per link |\n"
        "|---|---|---|---|---|---|---|"
    )
    for label, items in changed.items():
        for called, encoder in {"no encoder": None, **encoders}.items():
            linker = GraphEntityLinker(encoder)
            started = time.perf_counter()
            links = [linker.link(graph, [name], value.question)[0] for value, name in items]
            ms = (time.perf_counter() - started) / max(len(items), 1) * 1000
            ids = [
                [f"g:{value.id}" == candidate.id for candidate in several]
                for (value, _), several in zip(items, links, strict=True)
            ]
            joint = 0
            for (item, _), several in zip(items, links, strict=True):
                pairs = ground(graph, several, [LinkedRelation(item.relation, False, 1.0, "gold")])
                joint += bool(pairs) and pairs[0].entity.id == f"g:{item.id}"
            size = max(len(items), 1)
            top = [sum(any(value[:k]) for value in ids) / size for k in (1, 5)]
            cells = " | ".join(f"{share:.3f}" for share in (*top, joint / size))
            print(f"| {label} | {called} | {len(items)} | {cells} | {ms:.1f} |")


def measure_relations(
    graph: PropertyGraph, asked: list[Asked], encoders: dict[str, Encoder], weights: list[float]
) -> None:
    """Print top-1 and top-5 of relation linking, each triple counted and each relation counted once, and of the right
    relation where it is grounded with the right head."""
    wordings = paraphrases()
    kinds = {
        "as given": [(value, value.relation) for value in asked],
        "paraphrased": [(value, phrase) for value in asked for phrase in wordings[value.relation]],
    }
    linkers: dict[str, GraphRelationLinker] = {"words": GraphRelationLinker()}
    for called, encoder in encoders.items():
        for weight in weights:
            linkers[f"{weight:g} {called}, {1 - weight:g} words"] = GraphRelationLinker(
                encoder, weight=weight
            )
    print(
        "\n| relations | linker | links | top-1 | top-5 | once each: top-1 | top-5 | grounded | ms per link |"
        "\n|---|---|---|---|---|---|---|---|---|"
    )
    for label, items in kinds.items():
        for called, linker in linkers.items():
            linker.link(graph, ["warm up"])
            phrases = list(dict.fromkeys(phrase for _, phrase in items))
            started = time.perf_counter()
            links = {phrase: linker.link(graph, [phrase])[0] for phrase in phrases}
            ms = (time.perf_counter() - started) / len(phrases) * 1000
            right = [
                [candidate.name == value.relation and not candidate.inverse for candidate in links[phrase]]
                for value, phrase in items
            ]
            once = list(
                {
                    (value.relation, phrase): hits for (value, phrase), hits in zip(items, right, strict=True)
                }.values()
            )
            shares = [
                sum(any(value[:k]) for value in some) / len(some) for some in (right, once) for k in (1, 5)
            ]
            joint = 0
            for item, phrase in items:
                (row,) = graph.rows([f"g:{item.id}"]).tolist()
                pairs = ground(
                    graph, [LinkedEntity(row, f"g:{item.id}", item.name, 1.0, "gold")], links[phrase]
                )
                joint += (
                    bool(pairs) and pairs[0].relation.name == item.relation and not pairs[0].relation.inverse
                )
            cells = " | ".join(f"{share:.3f}" for share in (*shares, joint / len(items)))
            print(f"| {label} | {called} | {len(items)} | {cells} | {ms:.1f} |")


def measure_both(
    graph: PropertyGraph, changed: dict[str, list[tuple[Asked, str]]], encoder: Encoder | None, called: str
) -> None:
    """Print how often the head and the relation are both right at the first place, linked apart and grounded."""
    wordings = paraphrases()
    print(f"\nBoth, {called}:\n")
    print("| names | relations | links | apart | grounded top-1 | top-5 |\n|---|---|---|---|---|---|")
    entities, relations = GraphEntityLinker(encoder), GraphRelationLinker(encoder)
    for label, items in changed.items():
        linked = [entities.link(graph, [name], value.question)[0] for value, name in items]
        for kind in ("as given", "paraphrased"):
            apart = first = five = links = 0
            for (item, _), several in zip(items, linked, strict=True):
                for phrase in [item.relation] if kind == "as given" else wordings[item.relation]:
                    (ways,) = relations.link(graph, [phrase])
                    right = (f"g:{item.id}", item.relation, False)
                    top = [(several[0].id, ways[0].name, ways[0].inverse)] if several else []
                    pairs = [
                        (p.entity.id, p.relation.name, p.relation.inverse)
                        for p in ground(graph, several, ways)
                    ]
                    links += 1
                    apart += right in top
                    first += right in pairs[:1]
                    five += right in pairs
            size = max(links, 1)
            print(
                f"| {label} | {kind} | {links} | {apart / size:.3f} | {first / size:.3f} | {five / size:.3f} |"
            )
