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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.examples import Result
from clew.evaluate.report import Run
from clew.evaluate.run_folder import (
    REHEARSED_QUESTIONS,
    Experiment,
    RunFolder,
    result_file_name,
    run_facts,
    scale_usage,
)
from clew.evaluate.runner import RunFile
from clew.evaluate.setup import open_stores
from clew.evaluate.statistics import bootstrap_interval
from clew.methods.chain.value_matching import same_value
from clew.papers.gold_hops import GoldHop, gold_hops
from clew.papers.page import Section, points_table, runs_table

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel, Reader, Retriever
    from clew.core.types import Hit
    from clew.evaluate.examples import Example
    from clew.store.store import Store

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
    """Return what each way finds for a question that has gold hops: :data:`SINGLE_ROUND`,
    :data:`MULTI_ROUND_GOLD`, and
    ``multi-round, NAME`` for each of the readers. Raises what a retriever or reader raises."""
    known: dict[str, list[Hit]] = {}

    def search(query: str) -> list[Hit]:
        if query not in known:
            known[query] = list(retriever.retrieve(Question(query), total))
        return known[query]

    asked = gold_hops(example)
    made = {
        SINGLE_ROUND: Round((example.question,), tuple(search(example.question)[:total])),
        MULTI_ROUND_GOLD: search_in_rounds(
            example.question, asked, search, lambda hop, query, hits: hop.gold, total
        ),
    }
    for name, reader in readers.items():
        made[f"multi-round, {name}"] = search_in_rounds(
            example.question, asked, search, fill_by_reading(reader), total
        )
    return made


def search_in_rounds(
    question: str, asked: Sequence[GoldHop], search: Search, fill: Fill, total: int = PASSAGES_PER_QUESTION
) -> Round:
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


ROUNDS_METRICS = ("recall@5", f"recall@{PASSAGES_PER_QUESTION}", f"all-gold@{PASSAGES_PER_QUESTION}")
#: What fills ``#n``: names or dates in sentences, and where there is a language model, what it answers.
HOP_READERS = ("short", "hops")

Records = dict[str, dict[str, Any]]


def examples_with_hops(work: Experiment) -> list[Example]:
    """Return the questions of which the hops and the evidence are known."""
    return [one for one in work.questions.examples if one.pieces and gold_hops(one)]


def rounds_experiment(work: Experiment, pool: Sequence[str]) -> Experiment:
    """Return the work whose base has the paragraphs of all data sets of a page, in a folder of its own."""
    data = replace(work.questions, pool=tuple(pool))
    out = work.out / ("rounds-model" if work.settings.llm else "rounds")
    return replace(work, questions=data, settings=replace(work.settings, graphs=()), out=out)


def rounds_section(work: Experiment, retrievers: Sequence[str], command: str) -> Section:
    """Return what one round and several find with each retriever. ``work`` is that of :func:`rounds_work`.

    What is measured of a question is on disk before the next one. Raises UsageError, ModelError, RemoteError.
    """
    measured = _measured(work, retrievers)
    asked = {example.id: example for example in examples_with_hops(work)}
    runs: list[Run] = []
    filled: list[dict[str, Any]] = []
    for retriever, records in measured.items():
        found: dict[str, dict[str, Result]] = {}
        for id, example in asked.items():
            for way, result in rounds_results(example, records[id]).items():
                found.setdefault(way, {})[id] = result
        name = f"{work.questions.title}, {retriever}"
        runs += [Run(name, way, held, facts=work.folder.facts) for way, held in found.items()]
        filled += [
            _filled(retriever, way, asked, records)
            for way in found
            if way not in {SINGLE_ROUND, MULTI_ROUND_GOLD}
        ]
    shown = {"retriever": "retriever", "filled by": "by", "questions": "questions", "#n right": "right"}
    text = (
        f"Gold passages among {PASSAGES_PER_QUESTION} that a question gets, with 95 % bootstrap intervals and paired differences to "  # noqa: E501
        "a single round (paper: Table 6). A single round asks for the question itself. Several ask for the hops of "
        "its gold decomposition, which take turns in giving their best passage; `#n` is filled by the gold answer, "
        f"or by what a reader says of the hop's first {PASSAGES_PER_HOP} passages. The pool has the paragraphs of all data sets "  # noqa: E501
        "of this page. The second table says how often the reader's `#n` was the gold one."
    )
    if work.settings.encoder_name.startswith("clew:"):
        text += (
            " The encoder that comes with clew was trained on training questions of HotpotQA, MuSiQue and "
            "2WikiMultihopQA: over those, it is tested on what it learnt."
        )
    return Section(
        f"Single-round and multi-round retrieval, {work.questions.title}",
        text,
        command,
        f"{runs_table(runs, ROUNDS_METRICS, SINGLE_ROUND, ranked_by=())}\n{points_table(shown, filled)}",
    )


def _filled(retriever: str, way: str, asked: Mapping[str, Example], records: Records) -> dict[str, Any]:
    shares = [correct_fill_share(example, records[id], way) for id, example in asked.items()]
    some = bootstrap_interval([share for share in shares if share is not None])
    right = f"{some.mean:.3f} [{some.low:.3f}, {some.high:.3f}]" if some.count else ""
    return {"retriever": retriever, "by": way, "questions": some.count, "right": right}


def _measured(work: Experiment, retrievers: Sequence[str]) -> dict[str, Records]:
    """Return the records of each retriever by question, having made those that are missing."""
    from clew.knowledge_base import registry as catalog

    data, bench, folder = work.questions, work.settings, work.folder
    asked = examples_with_hops(work)
    with open_stores(data, bench, work.progress("corpus")) as base_of:
        base = base_of(data.examples[0])
        folder.claim(run_facts(data, bench, base.digest()))
        files = {name: _file(folder, name) for name in retrievers}
        left = {name: [one for one in asked if one.id not in _known(file)] for name, file in files.items()}
        _foresee(work, base, left)
        for name, file in files.items():
            searching = catalog.build_retriever(name, base, encoder=bench.encoder)
            readers = _readers(base, bench.llm)
            tell = work.progress(f"rounds of {name}")
            file.append(_asked(left[name], len(asked), searching, readers, tell))
    return {name: _known(file) for name, file in files.items()}


def _asked(
    left: Sequence[Example],
    total: int,
    searching: Retriever,
    readers: Mapping[str, Reader],
    tell: Callable[[int, int], None],
) -> Iterator[dict[str, Any]]:
    for count, example in enumerate(left, total - len(left) + 1):
        yield rounds_record(example, run_rounds(example, searching, readers))
        tell(count, total)


def _file(folder: RunFolder, retriever: str) -> RunFile:
    return RunFile(folder.path / f"rounds-{result_file_name(retriever)}")


def _known(file: RunFile) -> Records:
    return {record["id"]: record for record in file.records()}


def _readers(base: Store, model: LanguageModel | None) -> dict[str, Reader]:
    from clew.knowledge_base import registry as catalog

    names = HOP_READERS if model is not None else HOP_READERS[:1]
    return {name: catalog.build_reader(name, base, llm=model) for name in names}


def _foresee(work: Experiment, base: Store, left: Mapping[str, Sequence[Example]]) -> None:
    """Tell what the readers' model will cost: the first few questions are rehearsed with one that only counts."""
    from clew.core.types import Usage
    from clew.knowledge_base import registry as catalog
    from clew.models.rehearsal import Rehearsal

    if work.settings.llm is None or work.report_estimate is None:
        return
    for retriever, missing in left.items():
        if missing:
            model = Rehearsal(work.settings.llm_name or work.settings.llm.name)
            searching = catalog.build_retriever(retriever, base, encoder=work.settings.encoder)
            some = missing[:REHEARSED_QUESTIONS]
            for example in some:
                run_rounds(example, searching, _readers(base, model))
            spent = sum(model.usage_by_role.values(), Usage())
            work.report_estimate(f"rounds of {retriever}", scale_usage(spent, len(missing) / len(some)))


# MERGED: Single-round against multi-round retrieval over the questions of a page (Su et al., NAACL 2024, Table 6).
