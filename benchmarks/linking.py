"""Linking: names and relation words to a graph.

    python benchmarks/linking.py names                      # spelling alone: the shared film graph, 2,000 names
    python benchmarks/linking.py names --generate 2000000   # the same in a graph of two million generated names
    python benchmarks/linking.py names --encoder clew:hops  # what the vectors of names add; other names of a thing
    python benchmarks/linking.py triples --encoder clew:hops --encoder onnx:FOLDER

``names`` draws names of a graph by ``--seed``, changes each (``benchmarks/perturbed.py``) and asks ``similar`` for
the node. ``triples`` puts the gold triples of the shared 2WikiMultihopQA questions into one graph with the film
graph and links the head and the relation of each: as given, the relation in other words
(``relation_paraphrases.tsv``, written before any linker was run), the head's name changed. The nodes of 2Wiki have
Wikidata's ids, so that a film that both graphs know is there twice; the one of the triple is the right one.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import clew
from clew import catalog
from clew.link import Entities, Relations, ground
from clew.link.nearest import NAMES, NearestNames, named
from clew.protocols import Encoder, PropertyGraph
from clew.types import LinkedEntity, LinkedRelation
from perturbed import CHANGES

SHARED = Path(__file__).parents[2] / "shared" / "data"
FILMS = SHARED / "metaqa" / "graph.tsv"
QUESTIONS = SHARED / "2wikimultihopqa" / "train500.jsonl"
PARAPHRASES = Path(__file__).parent / "data" / "relation_paraphrases.tsv"
#: Ids of what is no date; questions without ids get some made of the names.
ENTITY = re.compile(r"Q\d+$|2wiki ")
QUALIFIER = re.compile(r"\s*\([^)]*\)$")


def film_names() -> list[str]:
    """Return the names of the film graph, sorted."""
    lines = FILMS.read_text(encoding="utf-8").splitlines()
    return sorted({end for line in lines for end in line.split("\t")[::2]})


def generated(folder: Path, count: int, seed: int) -> Path:
    """Write a graph of different names, of two to four words of the film graph's names each."""
    draw = random.Random(seed)
    words = sorted({word for name in film_names() for word in name.split()})
    path = folder / "names.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "name"])
        seen: set[str] = set()
        while len(seen) < count:
            name = " ".join(draw.choices(words, k=draw.choice((2, 2, 2, 3, 3, 4))))
            if name in seen:
                continue
            writer.writerow([f"n{len(seen)}", name])
            seen.add(name)
    return path


@contextmanager
def imported(path: Path) -> Iterator[PropertyGraph]:
    """Yield the graph of a file, added to a base of its own; print what that took."""
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        started = time.perf_counter()
        report = base.add_graph(path, name="g")
        seconds = time.perf_counter() - started
        index = sum(
            file.stat().st_size
            for pattern in ("names.*", "grams.*")
            for file in Path(folder).rglob(pattern)
            if "graphs" in file.parts
        )
        print(f"{report.graph.nodes:,} nodes, added in {seconds:.1f} s; index of names {index / 1e6:.1f} MB")
        yield base.graph("g")


def measure_names(graph: PropertyGraph, count: int, seed: int) -> None:
    """Print recall of the right node at 1 and 5, and milliseconds per name, for each change."""
    draw = random.Random(seed)
    rows = draw.sample(range(graph.size), min(8 * count, graph.size))
    import numpy as np

    names = [(row, one.name) for row, one in zip(rows, graph.entities(np.array(rows)), strict=True)]
    graph.similar("warm up", 5)
    print(
        f"\nseed {seed}\n\n| change | names | at 1 | at 5 | at 20 | ms per name |\n|---|---|---|---|---|---|"
    )
    for label, (change, fits) in CHANGES.items():
        asked = [(row, change(name, draw)) for row, name in [one for one in names if fits(one[1])][:count]]
        started = time.perf_counter()
        found = [graph.similar(name, 20)[0].tolist() for _, name in asked]
        ms = (time.perf_counter() - started) / max(len(asked), 1) * 1000
        shares = [
            sum(row in one[:k] for (row, _), one in zip(asked, found, strict=True)) / max(len(asked), 1)
            for k in (1, 5, 20)
        ]
        print(
            f"| {label} | {len(asked):,} | "
            + " | ".join(f"{share:.3f}" for share in shares)
            + f" | {ms:.2f} |"
        )


def other_names(folder: Path) -> tuple[Path, list[tuple[str, str]]]:
    """Write the film graph and the things of 2Wiki under their most frequent names as one graph; return it, and the
    other names that 2Wiki has for them, each with its node's id: real ones, often not spelled alike."""
    _, names, _, _ = gold()
    path, others = folder / "others.jsonl", []
    with path.open("w", encoding="utf-8") as file:
        for id, counted in names.items():
            first, *more = sorted(counted, key=lambda name: (-counted[name], name))
            file.write(json.dumps({"id": id, "name": first}, ensure_ascii=False) + "\n")
            others += [(name, id) for name in more]
        for name in film_names():
            file.write(json.dumps({"id": f"film {name}", "name": name}, ensure_ascii=False) + "\n")
    return path, others


def measure_meaning(graph: PropertyGraph, asked: dict[str, list[tuple[str, str]]], encoder: Encoder) -> None:
    """Print what the vectors of names add to spelling: recall at 1 and 5, milliseconds per name."""
    import numpy as np

    kept, rows = graph.vectors(encoder, NAMES), np.arange(graph.size)
    started = time.perf_counter()
    made = kept.make(rows, lambda some: named(graph, some))
    seconds = time.perf_counter() - started
    print(
        f"\n{made:,} names embedded by {encoder.name} in {seconds:.1f} s ({made / seconds:,.0f} a second)\n"
    )
    print("| names | linker | count | at 1 | at 5 | ms per name |\n|---|---|---|---|---|---|")
    linkers = {"spelling": Entities(), "and meaning": Entities(nearest=NearestNames(encoder))}
    for label, items in asked.items():
        for called, linker in linkers.items():
            started = time.perf_counter()
            found = [[one.id for one in linker.link(graph, [name])[0]] for name, _ in items]
            ms = (time.perf_counter() - started) / max(len(items), 1) * 1000
            shares = [
                sum(f"g:{id}" in ids[:k] for (_, id), ids in zip(items, found, strict=True))
                / max(len(items), 1)
                for k in (1, 5)
            ]
            print(f"| {label} | {called} | {len(items)} | {shares[0]:.3f} | {shares[1]:.3f} | {ms:.1f} |")


def perturbed_names(count: int, seed: int) -> dict[str, list[tuple[str, str]]]:
    """Return for each change names of the film graph, changed, with the ids of their nodes."""
    draw = random.Random(seed)
    names = film_names()
    return {
        label: [
            (change(one, draw), f"film {one}") for one in draw.sample([n for n in names if fits(n)], count)
        ]
        for label, (change, fits) in CHANGES.items()
    }


# Triples


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
        one = json.loads(line)
        ids = one["evidences_id"] or [
            [f"2wiki {head}", "", f"2wiki {tail}"] for head, _, tail in one["evidences"]
        ]
        for (head, relation, tail), (head_id, _, tail_id) in zip(one["evidences"], ids, strict=True):
            names.setdefault(head_id, Counter())[head] += 1
            if ENTITY.match(tail_id):
                names.setdefault(tail_id, Counter())[tail] += 1
            edges.append([head_id, relation, tail_id if ENTITY.match(tail_id) else tail])
            asked.append(Asked(one["question"], head, head_id, relation))
            for title, _ in one["supporting_facts"]:
                if title != head and QUALIFIER.sub("", title).casefold() == head.casefold():
                    titles[head_id] = title
    return asked, names, titles, edges


def merged(folder: Path) -> tuple[Path, list[Asked], dict[str, list[tuple[str, str]]]]:
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
            others[id] = [("alias", one) for one in more]
            if id in titles and titles[id] not in counted:
                others[id].append(("title with a qualifier", titles[id]))
        films = (line.split("\t") for line in FILMS.read_text(encoding="utf-8").splitlines())
        for edge in (*films, *edges):
            file.write(json.dumps(edge, ensure_ascii=False) + "\n")
    return path, asked, others


def paraphrases() -> dict[str, list[str]]:
    """Return the two paraphrases of each relation."""
    found: dict[str, list[str]] = {}
    for line in PARAPHRASES.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            relation, phrase = line.split("\t")
            found.setdefault(relation, []).append(phrase)
    return found


def mentions(
    asked: list[Asked], others: dict[str, list[tuple[str, str]]], seed: int
) -> dict[str, list[tuple[Asked, str]]]:
    """Return for each way to change a name the triples that it can be done to, and their heads' names changed."""
    draw = random.Random(seed)
    found = {
        label: [(one, change(one.name, draw)) for one in asked if fits(one.name)]
        for label, (change, fits) in CHANGES.items()
    }
    for label in ("alias", "title with a qualifier"):
        found[label] = [(one, name) for one in asked for kind, name in others[one.id] if kind == label]
    return found


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
            linker = Entities(encoder)
            started = time.perf_counter()
            found = [linker.link(graph, [name], one.question)[0] for one, name in items]
            ms = (time.perf_counter() - started) / max(len(items), 1) * 1000
            ids = [
                [f"g:{one.id}" == candidate.id for candidate in several]
                for (one, _), several in zip(items, found, strict=True)
            ]
            joint = 0
            for (one, _), several in zip(items, found, strict=True):
                pairs = ground(graph, several, [LinkedRelation(one.relation, False, 1.0, "gold")])
                joint += bool(pairs) and pairs[0].entity.id == f"g:{one.id}"
            size = max(len(items), 1)
            top = [sum(any(one[:k]) for one in ids) / size for k in (1, 5)]
            cells = " | ".join(f"{share:.3f}" for share in (*top, joint / size))
            print(f"| {label} | {called} | {len(items)} | {cells} | {ms:.1f} |")


def measure_relations(
    graph: PropertyGraph, asked: list[Asked], encoders: dict[str, Encoder], weights: list[float]
) -> None:
    """Print top-1 and top-5 of relation linking, each triple counted and each relation counted once, and of the right
    relation where it is grounded with the right head."""
    said = paraphrases()
    kinds = {
        "as given": [(one, one.relation) for one in asked],
        "paraphrased": [(one, phrase) for one in asked for phrase in said[one.relation]],
    }
    linkers: dict[str, Relations] = {"words": Relations()}
    for called, encoder in encoders.items():
        for weight in weights:
            linkers[f"{weight:g} {called}, {1 - weight:g} words"] = Relations(encoder, weight=weight)
    print(
        "\n| relations | linker | links | top-1 | top-5 | once each: top-1 | top-5 | grounded | ms per link |"
        "\n|---|---|---|---|---|---|---|---|---|"
    )
    for label, items in kinds.items():
        for called, linker in linkers.items():
            linker.link(graph, ["warm up"])
            phrases = list(dict.fromkeys(phrase for _, phrase in items))
            started = time.perf_counter()
            found = {phrase: linker.link(graph, [phrase])[0] for phrase in phrases}
            ms = (time.perf_counter() - started) / len(phrases) * 1000
            right = [
                [candidate.name == one.relation and not candidate.inverse for candidate in found[phrase]]
                for one, phrase in items
            ]
            once = list(
                {
                    (one.relation, phrase): hits for (one, phrase), hits in zip(items, right, strict=True)
                }.values()
            )
            shares = [sum(any(one[:k]) for one in some) / len(some) for some in (right, once) for k in (1, 5)]
            joint = 0
            for one, phrase in items:
                (row,) = graph.rows([f"g:{one.id}"]).tolist()
                pairs = ground(
                    graph, [LinkedEntity(row, f"g:{one.id}", one.name, 1.0, "gold")], found[phrase]
                )
                joint += (
                    bool(pairs) and pairs[0].relation.name == one.relation and not pairs[0].relation.inverse
                )
            cells = " | ".join(f"{share:.3f}" for share in (*shares, joint / len(items)))
            print(f"| {label} | {called} | {len(items)} | {cells} | {ms:.1f} |")


def measure_both(
    graph: PropertyGraph, changed: dict[str, list[tuple[Asked, str]]], encoder: Encoder | None, called: str
) -> None:
    """Print how often the head and the relation are both right at the first place, linked apart and grounded."""
    said = paraphrases()
    print(f"\nBoth, {called}:\n")
    print("| names | relations | links | apart | grounded top-1 | top-5 |\n|---|---|---|---|---|---|")
    entities, relations = Entities(encoder), Relations(encoder)
    for label, items in changed.items():
        linked = [entities.link(graph, [name], one.question)[0] for one, name in items]
        for kind in ("as given", "paraphrased"):
            apart = first = five = links = 0
            for (one, _), several in zip(items, linked, strict=True):
                for phrase in [one.relation] if kind == "as given" else said[one.relation]:
                    (ways,) = relations.link(graph, [phrase])
                    right = (f"g:{one.id}", one.relation, False)
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


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("names", "triples"))
    parser.add_argument("--count", type=int, default=2000, help="names for each change")
    parser.add_argument(
        "--generate", type=int, default=0, help="names of a generated graph, instead of films"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--encoder", action="append", default=[], help="compare this encoder, by its name")
    parser.add_argument("--weight", action="append", type=float, default=[], help="its share among relations")
    parser.add_argument("--only", choices=("entities", "relations", "both"), help="this table alone")
    chosen = parser.parse_args()
    if not FILMS.is_file():
        raise SystemExit(f"absent: {FILMS}")
    if chosen.what == "names" and chosen.encoder:
        with tempfile.TemporaryDirectory() as folder:
            path, others = other_names(Path(folder))
            asked = {"other names": others, **perturbed_names(min(chosen.count, 300), chosen.seed)}
            with imported(path) as graph:
                for name in chosen.encoder:
                    measure_meaning(graph, asked, catalog.encoder(name))
        return
    if chosen.what == "names":
        with tempfile.TemporaryDirectory() as folder:
            path = generated(Path(folder), chosen.generate, chosen.seed) if chosen.generate else FILMS
            with imported(path) as graph:
                measure_names(graph, chosen.count, chosen.seed)
        return
    with tempfile.TemporaryDirectory() as folder:
        path, asked, others = merged(Path(folder))
        with imported(path) as graph:
            encoders = {name: catalog.encoder(name) for name in chosen.encoder or ["clew:hops"]}
            changed = mentions(asked, others, chosen.seed)
            print(
                f"{len(asked)} triples of {len({one.question for one in asked})} questions, seed {chosen.seed}"
            )
            if chosen.only in {None, "relations"}:
                measure_relations(graph, asked, encoders, chosen.weight or [1.0, 0.6])
            if chosen.only in {None, "entities"}:
                measure_entities(graph, changed, encoders)
            if chosen.only in {None, "both"}:
                for called, encoder in {"no encoder": None, **encoders}.items():
                    measure_both(graph, changed, encoder, called)


if __name__ == "__main__":
    main()
