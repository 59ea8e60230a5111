"""Questions about structure and questions that only sound like them: are they told apart, on our samples?

    python benchmarks/routing.py                      # both halves of benchmarks/data/routing.jsonl
    python benchmarks/routing.py --half even --show   # the half that may be looked at, with its failures

A question is routed to structure if it is read, surely enough, as a query about a place that exists in the base. For
a question about structure it is also counted whether every labelled node is among those named, and whether nothing
else is. Nothing was trained on these questions.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.protocols import Snapshot
from clew.core.text import normalise
from clew.core.types import Location, Node, Question
from clew.models.plan_judge import create_plan_judge
from clew.parse.documents.reader import read_file
from clew.questions.outline_reading import create_outline_reader
from clew.retrieve.structure.lookup import StructureSearch, fetch_hits
from clew.retrieve.structure.outline import normalise_label, parse_table_label
from clew.retrieve.structure.resolver import Reference
from clew.store.store import Store

ROOT = Path(__file__).parents[1]
LABELLED = ROOT / "benchmarks" / "data" / "routing.jsonl"


def base_of_samples(folder: Path) -> Store:
    """Return a base of the sample documents."""
    base = Store.open(folder, create=True)
    for path in sorted((ROOT / "samples" / "documents").iterdir()):
        stat = path.stat()
        place = Location(str(path), str(path.parent), stat.st_size, stat.st_mtime_ns, stat.st_ino)
        base.put_document(read_file(path), place)
    base.catch_up()
    return base


def is_target(node: Node, target: dict[str, Any], snapshot: Snapshot) -> bool:
    """Return whether a node is what a label says."""
    if node.document_name != target["document"] or node.kind != target["kind"]:
        return False
    if node.kind == "page":
        return bool(node.page == target["page"])
    if node.kind == "table":
        labelled = parse_table_label(node.name)
        by_label = "number" in target and labelled == normalise_label(str(target["number"]))
        by_name = "name" in target and normalise(target["name"]) in normalise(node.name)
        counted = "name" not in target and not labelled and target.get("number") == place(node, snapshot)
        return by_name or by_label or counted
    return node.kind == "document" or normalise(str(target.get("name", ""))) in normalise(node.name)


def place(node: Node, snapshot: Snapshot) -> int:
    """Return which table of its document (of its page, where it has one) a table is, from 1."""
    rows = np.arange(*snapshot.document_rows(node.document))
    tables = [item for item in snapshot.nodes(rows) if item.kind == "table" and item.page == node.page]
    return [table.id for table in tables].index(node.id) + 1


def judge_routing(line: dict[str, Any], named: tuple[Reference, ...], snapshot: Snapshot) -> dict[str, bool]:
    """Return whether a question was routed rightly, and whether all and only the labelled nodes came."""
    nodes = snapshot.nodes(snapshot.rows([item.node for item in named]))
    routed = bool(named) == line["structural"]
    if not line["structural"]:
        return {"routed": routed}
    targets = line["targets"]
    all_there = all(any(is_target(node, target, snapshot) for node in nodes) for target in targets)
    only_those = all(any(is_target(node, target, snapshot) for target in targets) for node in nodes)
    shown = bool(fetch_hits(snapshot, named))
    return {"routed": routed, "right": all_there and shown, "exact": all_there and only_those}


def share(flags: list[bool]) -> str:
    """Return a share with its 95 % Wilson interval."""
    n, p = len(flags), sum(flags) / len(flags)
    middle, spread = p + 1.92 / n, 1.96 * math.sqrt(p * (1 - p) / n + 0.96 / n**2)
    low, high = (max(0, (middle - spread) / (1 + 3.84 / n)), min(1, (middle + spread) / (1 + 3.84 / n)))
    return f"{sum(flags):2}/{n:<2} {p:.2f} ({low:.2f}-{high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--half", choices=["even", "odd", "both"], default="both")
    parser.add_argument("--show", action="store_true", help="print the failures (of the even half only)")
    arguments = parser.parse_args()
    lines = [json.loads(text) for text in LABELLED.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder, base_of_samples(Path(folder) / "base") as base:
        snapshot = base.snapshot()
        search = StructureSearch(snapshot, create_outline_reader(create_plan_judge()))
        halves = {"even": lines[1::2], "odd": lines[0::2]}
        for half in halves if arguments.half == "both" else [arguments.half]:
            results = []
            for line in halves[half]:
                named = search.find_certain(Question(line["question"])).references
                results.append((line, judge_routing(line, named, snapshot)))
                if arguments.show and half == "even" and not all(results[-1][1].values()):
                    nodes = snapshot.nodes(snapshot.rows([item.node for item in named]))
                    print(line["question"], results[-1][1], line.get("targets", "content"))
                    print("    ", [(node.document_name, node.kind, node.name, node.page) for node in nodes])
            report(half, results)


def report(half: str, results: list[tuple[dict[str, Any], dict[str, bool]]]) -> None:
    """Print the figures of one half."""
    structural = [result for line, result in results if line["structural"]]
    content = [result for line, result in results if not line["structural"]]
    print(f"{half} lines of {LABELLED.name}: {len(results)} questions, interval 95 %")
    print(f"  routed rightly            {share([result['routed'] for _, result in results])}")
    print(f"    about structure         {share([result['routed'] for result in structural])}")
    print(f"    about content           {share([result['routed'] for result in content])}")
    print(f"  all labelled nodes named  {share([result['right'] for result in structural])}")
    print(f"  and no others             {share([result['exact'] for result in structural])}")


if __name__ == "__main__":
    main()
