"""Single-round against multi-round retrieval over the questions of a page (Su et al., NAACL 2024, Table 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clew.catalog.analysis import Experiment
from clew.catalog.evaluation import open_bases
from clew.catalog.runs import REHEARSED_QUESTIONS, RunFolder, run_facts, result_file_name, scale_usage
from clew.catalog.sections import runs_table
from clew.evaluate.decomposed import gold_hops
from clew.evaluate.page import Section, points_table
from clew.evaluate.reporting import Run
from clew.evaluate.rounds import MULTI_ROUND_GOLD, PASSAGES_PER_HOP, SINGLE_ROUND, PASSAGES_PER_QUESTION, rounds_record, correct_fill_share, rounds_results, run_rounds
from clew.evaluate.running import RunFile
from clew.evaluate.statistics import bootstrap_interval

if TYPE_CHECKING:
    from clew.evaluate.examples import Example
    from clew.evaluate.metrics import Result
    from clew.kb import Store
    from clew.protocols import LanguageModel, Reader, Retriever

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
        filled += [_filled(retriever, way, asked, records) for way in found if way not in {SINGLE_ROUND, MULTI_ROUND_GOLD}]
    shown = {"retriever": "retriever", "filled by": "by", "questions": "questions", "#n right": "right"}
    text = (
        f"Gold passages among {PASSAGES_PER_QUESTION} that a question gets, with 95 % bootstrap intervals and paired differences to "
        "a single round (paper: Table 6). A single round asks for the question itself. Several ask for the hops of "
        "its gold decomposition, which take turns in giving their best passage; `#n` is filled by the gold answer, "
        f"or by what a reader says of the hop's first {PASSAGES_PER_HOP} passages. The pool has the paragraphs of all data sets "
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
    from clew import catalog

    data, bench, folder = work.questions, work.settings, work.folder
    asked = examples_with_hops(work)
    with open_bases(data, bench, work.progress("corpus")) as base_of:
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
    from clew import catalog

    names = HOP_READERS if model is not None else HOP_READERS[:1]
    return {name: catalog.build_reader(name, base, llm=model) for name in names}


def _foresee(work: Experiment, base: Store, left: Mapping[str, Sequence[Example]]) -> None:
    """Tell what the readers' model will cost: the first few questions are rehearsed with one that only counts."""
    from clew import catalog
    from clew.models.rehearsal import Rehearsal
    from clew.types import Usage

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
