"""Single-round against multi-round retrieval (Su et al., NAACL 2024, Appendix I, Table 6).

Both give a question the same number of passages. In a single round they are the best ones for the question itself. In
multi-round retrieval the hops of the gold decomposition are searched one after the other, each with the answers of
the hops before it, and the hops take turns in contributing their next best passage that is not there yet
(:func:`deal_hits`).

The answer of a hop is the gold answer, which shows what retrieval can reach, or what a reader finds in the hop's own
passages. Where the reader abstains, the hops that need its answer are replaced by the question itself. The paper says
neither how its 20 passages are divided among hops nor how unknowns are filled.

Each question is written to disk before the next one, so an interrupted comparison continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from clew.core.trail import TrailRecorder
from clew.core.types import Hit, Question, Usage
from clew.core.values import same_value
from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.examples import Example, Result
from clew.evaluate.report import Run
from clew.evaluate.run_folder import (
    REHEARSED_QUESTIONS,
    Experiment,
    result_file_name,
    run_facts,
    scale_usage,
)
from clew.evaluate.runner import RunFile
from clew.evaluate.setup import open_stores
from clew.evaluate.statistics import bootstrap_interval
from clew.knowledge_base import registry
from clew.papers.gold_hops import GoldHop, gold_hops
from clew.papers.page import Section, points_table, runs_table

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel, Reader, Retriever
    from clew.store.store import Store

#: The number of passages for a question, in one round or several, and of a hop's passages for its reader.
PASSAGES_PER_QUESTION, PASSAGES_PER_HOP = 20, 10
SINGLE_ROUND, MULTI_ROUND_GOLD = "single round", "multi-round, gold"

#: Returns the passages for a query, best first.
Search = Callable[[str], "list[Hit]"]
#: Returns the answer of a hop from its query and passages, "" if there is none.
Fill = Callable[[GoldHop, str, "Sequence[Hit]"], str]


@dataclass(frozen=True, slots=True)
class Round:
    """The outcome of one variant: its queries, its hits, and the values of the unknowns that later hops need (""
    where there is none)."""

    queries: tuple[str, ...]
    hits: tuple[Hit, ...]
    values: Mapping[int, str] = field(default_factory=dict)


def run_rounds(
    example: Example, retriever: Retriever, readers: Mapping[str, Reader], total: int = PASSAGES_PER_QUESTION
) -> dict[str, Round]:
    """Return the outcome of each variant for a question with gold hops.

    The variants are :data:`SINGLE_ROUND`, :data:`MULTI_ROUND_GOLD`, and ``multi-round, NAME`` for each reader. Errors
    of the retriever and the readers are passed on.
    """
    hits_by_query: dict[str, list[Hit]] = {}

    def search(query: str) -> list[Hit]:
        if query not in hits_by_query:
            hits_by_query[query] = list(retriever.retrieve(Question(query), total))
        return hits_by_query[query]

    hops = gold_hops(example)
    rounds = {
        SINGLE_ROUND: Round((example.question,), tuple(search(example.question)[:total])),
        MULTI_ROUND_GOLD: search_in_rounds(
            example.question, hops, search, lambda hop, query, hits: hop.gold, total
        ),
    }
    for name, reader in readers.items():
        rounds[f"multi-round, {name}"] = search_in_rounds(
            example.question, hops, search, fill_by_reading(reader), total
        )
    return rounds


def search_in_rounds(
    question: str, hops: Sequence[GoldHop], search: Search, fill: Fill, total: int = PASSAGES_PER_QUESTION
) -> Round:
    """Search for the hops in turn, filling their unknowns with the answers of earlier hops; return the outcome."""
    needed_unknowns = {number for hop in hops for number in hop.required_unknowns}
    values: dict[int, str] = {}
    queries: list[str] = []
    hit_lists: list[list[Hit]] = []
    for hop in hops:
        missing = [number for number in hop.required_unknowns if not values.get(number)]
        query = question if missing else hop.query(values)
        hits = search(query)
        queries.append(query)
        hit_lists.append(hits)
        if hop.number in needed_unknowns:
            values[hop.number] = "" if missing else fill(hop, query, hits)
    return Round(tuple(queries), tuple(deal_hits(hit_lists, total)), values)


def fill_by_reading(reader: Reader) -> Fill:
    """Return a function that answers a hop by reading the first of its passages."""

    def fill(hop: GoldHop, query: str, hits: Sequence[Hit]) -> str:
        answer = reader.read(Question(query), hits[:PASSAGES_PER_HOP], TrailRecorder())
        return "" if answer.abstained else answer.text.strip().rstrip(".")

    return fill


def deal_hits(lists: Sequence[Sequence[Hit]], total: int) -> list[Hit]:
    """Return at most ``total`` hits: the lists take turns, each contributing its best hit that is not there yet."""
    dealt: dict[str, Hit] = {}
    remaining = [iter(hits) for hits in lists]
    while remaining and len(dealt) < total:
        unfinished = []
        for iterator in remaining:
            hit = next((hit for hit in iterator if hit.node.id not in dealt), None)
            if hit is not None and len(dealt) < total:
                dealt[hit.node.id] = hit
                unfinished.append(iterator)
        remaining = unfinished
    return list(dealt.values())


def rounds_record(example: Example, rounds: Mapping[str, Round]) -> dict[str, Any]:
    """Return the JSON record of a question: queries, values and the gold pieces of each hit, by variant."""
    gold = GoldEvidence(example)
    return {
        "id": example.id,
        "rounds": {
            name: {
                "queries": list(round_.queries),
                "values": {f"#{number}": value for number, value in round_.values.items()},
                "found": [sorted(gold.matching_pieces(hit.node)) for hit in round_.hits],
            }
            for name, round_ in rounds.items()
        },
    }


def rounds_results(example: Example, record: Mapping[str, Any]) -> dict[str, Result]:
    """Return the results of a record by variant."""
    return {
        name: Result(example, hit_pieces=[frozenset(pieces) for pieces in round_record["found"]])
        for name, round_record in record["rounds"].items()
    }


def correct_fill_share(example: Example, record: Mapping[str, Any], variant: str) -> float | None:
    """Return the share of the unknowns of later hops that have the gold answer as their value, None if there are
    none."""
    values = record["rounds"][variant]["values"]
    gold = {f"#{hop.number}": hop.gold for hop in gold_hops(example)}
    correct = [bool(value) and same_value(value, gold[unknown]) for unknown, value in values.items()]
    return sum(correct) / len(correct) if correct else None


ROUNDS_METRICS = ("recall@5", f"recall@{PASSAGES_PER_QUESTION}", f"all-gold@{PASSAGES_PER_QUESTION}")
#: The readers that fill unknowns: "span" is clew's trained reader; "hops" needs a language model.
HOP_READERS = ("span", "hops")

Records = dict[str, dict[str, Any]]


def examples_with_hops(experiment: Experiment) -> list[Example]:
    """Return the questions with gold hops and gold evidence."""
    return [example for example in experiment.questions.examples if example.pieces and gold_hops(example)]


def rounds_experiment(experiment: Experiment, pool: Sequence[str]) -> Experiment:
    """Return the experiment over the pooled paragraphs of all data sets of a page, with its own output folder."""
    questions = replace(experiment.questions, pool=tuple(pool))
    out = experiment.out / ("rounds-model" if experiment.settings.llm else "rounds")
    return replace(experiment, questions=questions, settings=replace(experiment.settings, graphs=()), out=out)


def rounds_section(experiment: Experiment, retrievers: Sequence[str], command: str) -> Section:
    """Return the section that compares the variants with each retriever, over :func:`rounds_experiment`.

    Raises UsageError, ModelError, RemoteError.
    """
    records_by_retriever = _measure(experiment, retrievers)
    examples = {example.id: example for example in examples_with_hops(experiment)}
    runs: list[Run] = []
    fill_rows: list[dict[str, Any]] = []
    for retriever, records in records_by_retriever.items():
        results_by_way: dict[str, dict[str, Result]] = {}
        for id, example in examples.items():
            for round_name, result in rounds_results(example, records[id]).items():
                results_by_way.setdefault(round_name, {})[id] = result
        name = f"{experiment.questions.title}, {retriever}"
        runs += [
            Run(name, round_name, results, facts=experiment.folder.facts)
            for round_name, results in results_by_way.items()
        ]
        fill_rows += [
            _fill_row(retriever, round_name, examples, records)
            for round_name in results_by_way
            if round_name not in {SINGLE_ROUND, MULTI_ROUND_GOLD}
        ]
    columns = {"retriever": "retriever", "filled by": "by", "questions": "questions", "#n right": "right"}
    text = (
        f"Gold passages among {PASSAGES_PER_QUESTION} for each question, with 95 % bootstrap intervals and paired "
        "differences to a single round (paper: Table 6). A single round searches for the question itself; several "
        "search for the hops of its gold decomposition, which take turns in contributing their best passage. `#n` "
        f"is filled with the gold answer, or with a reader's answer from the hop's first {PASSAGES_PER_HOP} "
        "passages. The pool has the paragraphs of all data sets of this page. The second table shows how often the "
        "reader's `#n` is the gold one."
    )
    if experiment.settings.encoder_name.startswith("clew:"):
        text += (
            " The encoder that comes with clew was trained on training questions of HotpotQA, MuSiQue and "
            "2WikiMultihopQA; over those questions it is tested on its training data."
        )
    return Section(
        f"Single-round and multi-round retrieval, {experiment.questions.title}",
        text,
        command,
        f"{runs_table(runs, ROUNDS_METRICS, SINGLE_ROUND, ranked_by=())}\n{points_table(columns, fill_rows)}",
    )


def _fill_row(
    retriever: str, round_name: str, examples: Mapping[str, Example], records: Records
) -> dict[str, Any]:
    shares = [correct_fill_share(example, records[id], round_name) for id, example in examples.items()]
    estimate = bootstrap_interval([share for share in shares if share is not None])
    text = f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]" if estimate.count else ""
    return {"retriever": retriever, "by": round_name, "questions": estimate.count, "right": text}


def _measure(experiment: Experiment, retrievers: Sequence[str]) -> dict[str, Records]:
    """Return the records of each retriever by question, having made those that are missing."""
    questions, settings, folder = experiment.questions, experiment.settings, experiment.folder
    examples = examples_with_hops(experiment)
    with open_stores(questions, settings, experiment.progress("corpus")) as store_for:
        store = store_for(questions.examples[0])
        folder.claim(run_facts(questions, settings, store.digest()))
        files = {name: RunFile(folder.path / f"rounds-{result_file_name(name)}") for name in retrievers}
        open_examples = {
            name: [example for example in examples if example.id not in _read_records(file)]
            for name, file in files.items()
        }
        _report_estimates(experiment, store, open_examples)
        for name, file in files.items():
            built_retriever = registry.build_retriever(name, store, encoder=settings.encoder)
            readers = _build_readers(store, settings.llm)
            report = experiment.progress(f"rounds of {name}")
            file.append(_run_open(open_examples[name], len(examples), built_retriever, readers, report))
    return {name: _read_records(file) for name, file in files.items()}


def _run_open(
    open_examples: Sequence[Example],
    total: int,
    retriever: Retriever,
    readers: Mapping[str, Reader],
    report: Callable[[int, int], None],
) -> Iterator[dict[str, Any]]:
    for count, example in enumerate(open_examples, total - len(open_examples) + 1):
        yield rounds_record(example, run_rounds(example, retriever, readers))
        report(count, total)


def _read_records(file: RunFile) -> Records:
    return {record["id"]: record for record in file.records()}


def _build_readers(store: Store, model: LanguageModel | None) -> dict[str, Reader]:
    names = HOP_READERS if model is not None else HOP_READERS[:1]
    return {name: registry.build_reader(name, store, llm=model) for name in names}


def _report_estimates(
    experiment: Experiment, store: Store, open_examples: Mapping[str, Sequence[Example]]
) -> None:
    """Report the estimated usage of the readers' model, by rehearsing the first questions with a model that
    counts."""
    from clew.models.costs import Rehearsal

    if experiment.settings.llm is None or experiment.report_estimate is None:
        return
    for retriever, examples in open_examples.items():
        if examples:
            model = Rehearsal(experiment.settings.llm_name or experiment.settings.llm.name)
            built_retriever = registry.build_retriever(retriever, store, encoder=experiment.settings.encoder)
            sample = examples[:REHEARSED_QUESTIONS]
            for example in sample:
                run_rounds(example, built_retriever, _build_readers(store, model))
            usage = sum(model.usage_by_role.values(), Usage())
            experiment.report_estimate(
                f"rounds of {retriever}", scale_usage(usage, len(examples) / len(sample))
            )
