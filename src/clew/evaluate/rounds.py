"""Single-round against multi-round retrieval (Su et al., NAACL 2024, Appendix I, Table 6).

Both give a question the same number of passages. Single-round: the best for the question itself. Multi-round: the
hops of its gold decomposition are asked one after the other, each with what the hops before it were answered, and
take turns in giving their best passage; one that is there already is passed over, and its hop gives the next
(:func:`dealt`). So each of two hops has half of the places, and what both find leaves room for more.

What a hop was answered is the gold answer (what retrieval could reach), or what a reader says of the hop's own
passages. Where the reader knows none, the hops that need it cannot be asked; the question itself is, in their place.
The paper says neither how its 20 passages are divided nor what its hops were filled with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.decomposed import GoldHop, gold_hops
from clew.evaluate.metrics import Result
from clew.methods.chain.likeness import same_value
from clew.trail import TrailRecorder
from clew.types import Question

if TYPE_CHECKING:
    from clew.evaluate.examples import Example
    from clew.protocols import Reader, Retriever
    from clew.types import Hit

#: Passages that a question gets, however many rounds it takes, and how many of a hop's own its reader reads.
PASSAGES_PER_QUESTION, PASSAGES_PER_HOP = 20, 10
SINGLE_ROUND, MULTI_ROUND_GOLD = "single round", "multi-round, gold"

#: Gives the passages of a query, best first.
Search = Callable[[str], "list[Hit]"]
#: Gives what a hop is answered, from its query and passages, "" where that is not known.
Fill = Callable[[GoldHop, str, "Sequence[Hit]"], str]


@dataclass(frozen=True, slots=True)
class Round:
    """What one way of asking found: its queries, the values of the unknowns that later hops need ("" where none was
    found), and the hits."""

    queries: tuple[str, ...]
    hits: tuple[Hit, ...]
    values: Mapping[int, str] = field(default_factory=dict)


def run_rounds(
    example: Example, retriever: Retriever, readers: Mapping[str, Reader], total: int = PASSAGES_PER_QUESTION
) -> dict[str, Round]:
    """Return what each way finds for a question that has gold hops: :data:`SINGLE_ROUND`, :data:`MULTI_ROUND_GOLD`, and
    ``multi-round, NAME`` for each of the readers. Raises what a retriever or reader raises."""
    known: dict[str, list[Hit]] = {}

    def search(query: str) -> list[Hit]:
        if query not in known:
            known[query] = list(retriever.retrieve(Question(query), total))
        return known[query]

    asked = gold_hops(example)
    made = {
        SINGLE_ROUND: Round((example.question,), tuple(search(example.question)[:total])),
        MULTI_ROUND_GOLD: search_in_rounds(example.question, asked, search, lambda hop, query, hits: hop.gold, total),
    }
    for name, reader in readers.items():
        made[f"multi-round, {name}"] = search_in_rounds(example.question, asked, search, fill_by_reading(reader), total)
    return made


def search_in_rounds(question: str, asked: Sequence[GoldHop], search: Search, fill: Fill, total: int = PASSAGES_PER_QUESTION) -> Round:
    """Return what asking the hops in turn finds."""
    needed = {number for hop in asked for number in hop.required_unknowns}
    values: dict[int, str] = {}
    queries: list[str] = []
    found: list[list[Hit]] = []
    for hop in asked:
        open_ = [number for number in hop.required_unknowns if not values.get(number)]
        query = question if open_ else hop.query(values)
        hits = search(query)
        queries.append(query)
        found.append(hits)
        if hop.number in needed:
            values[hop.number] = "" if open_ else fill(hop, query, hits)
    return Round(tuple(queries), tuple(deal_hits(found, total)), values)


def fill_by_reading(reader: Reader) -> Fill:
    """Return what answers a hop from the first of its own passages."""

    def fill(hop: GoldHop, query: str, hits: Sequence[Hit]) -> str:
        answer = reader.read(Question(query), hits[:PASSAGES_PER_HOP], TrailRecorder())
        return "" if answer.abstained else answer.text.strip().rstrip(".")

    return fill


def deal_hits(lists: Sequence[Sequence[Hit]], total: int) -> list[Hit]:
    """Return at most ``total`` hits: the lists take turns, each giving its best that is not there yet."""
    found: dict[str, Hit] = {}
    turns = [iter(one) for one in lists]
    while turns and len(found) < total:
        left = []
        for turn in turns:
            hit = next((one for one in turn if one.node.id not in found), None)
            if hit is not None and len(found) < total:
                found[hit.node.id] = hit
                left.append(turn)
        turns = left
    return list(found.values())


def rounds_record(example: Example, made: Mapping[str, Round]) -> dict[str, Any]:
    """Return what is kept of a question: of each way its queries, its values, and what gold each hit holds."""
    gold = GoldEvidence(example)
    return {
        "id": example.id,
        "rounds": {
            name: {
                "queries": list(one.queries),
                "values": {f"#{number}": value for number, value in one.values.items()},
                "found": [sorted(gold.matching_pieces(hit.node)) for hit in one.hits],
            }
            for name, one in made.items()
        },
    }


def rounds_results(example: Example, record: Mapping[str, Any]) -> dict[str, Result]:
    """Return a record as what the metrics measure, by way of asking."""
    return {
        name: Result(example, hit_pieces=[frozenset(held) for held in one["found"]])
        for name, one in record["rounds"].items()
    }


def correct_fill_share(example: Example, record: Mapping[str, Any], way: str) -> float | None:
    """Return the share of the unknowns that later hops need which got the gold answer, None where none is needed."""
    values = record["rounds"][way]["values"]
    gold = {f"#{hop.number}": hop.gold for hop in gold_hops(example)}
    right = [bool(value) and same_value(value, gold[name]) for name, value in values.items()]
    return sum(right) / len(right) if right else None
