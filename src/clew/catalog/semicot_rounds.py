"""Single-round against multi-round retrieval over the questions of a page (Su et al., NAACL 2024, Table 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clew.catalog.analysis import Work
from clew.catalog.evaluation import bases
from clew.catalog.runs import REHEARSED, Folder, facts_of, file_name, scaled
from clew.catalog.sections import runs_table
from clew.evaluate.decomposed import hops
from clew.evaluate.page import Section, points
from clew.evaluate.reporting import Run
from clew.evaluate.rounds import GOLD, READ, SINGLE, TOTAL, as_record, filled_right, results, rounds
from clew.evaluate.running import RunFile
from clew.evaluate.statistics import interval

if TYPE_CHECKING:
    from clew.evaluate.examples import Example
    from clew.evaluate.metrics import Result
    from clew.kb import KnowledgeBase
    from clew.protocols import LanguageModel, Reader, Retriever

METRICS = ("recall@5", f"recall@{TOTAL}", f"all-gold@{TOTAL}")
#: What fills ``#n``: names or dates in sentences, and where there is a language model, what it answers.
READERS = ("short", "hops")

Records = dict[str, dict[str, Any]]


def with_hops(work: Work) -> list[Example]:
    """Return the questions of which the hops and the evidence are known."""
    return [one for one in work.data.examples if one.pieces and hops(one)]


def rounds_work(work: Work, pool: Sequence[str]) -> Work:
    """Return the work whose base has the paragraphs of all data sets of a page, in a folder of its own."""
    data = replace(work.data, pool=tuple(pool))
    out = work.out / ("rounds-model" if work.bench.llm else "rounds")
    return replace(work, data=data, bench=replace(work.bench, graphs=()), out=out)


def rounds_section(work: Work, retrievers: Sequence[str], command: str) -> Section:
    """Return what one round and several find with each retriever. ``work`` is that of :func:`rounds_work`.

    What is measured of a question is on disk before the next one. Raises UsageError, ModelError, RemoteError.
    """
    measured = _measured(work, retrievers)
    asked = {example.id: example for example in with_hops(work)}
    runs: list[Run] = []
    filled: list[dict[str, Any]] = []
    for retriever, records in measured.items():
        found: dict[str, dict[str, Result]] = {}
        for id, example in asked.items():
            for way, result in results(example, records[id]).items():
                found.setdefault(way, {})[id] = result
        name = f"{work.data.title}, {retriever}"
        runs += [Run(name, way, held, facts=work.folder.facts) for way, held in found.items()]
        filled += [_filled(retriever, way, asked, records) for way in found if way not in {SINGLE, GOLD}]
    shown = {"retriever": "retriever", "filled by": "by", "questions": "questions", "#n right": "right"}
    text = (
        f"Gold passages among {TOTAL} that a question gets, with 95 % bootstrap intervals and paired differences to "
        "a single round (paper: Table 6). A single round asks for the question itself. Several ask for the hops of "
        "its gold decomposition, which take turns in giving their best passage; `#n` is filled by the gold answer, "
        f"or by what a reader says of the hop's first {READ} passages. The pool has the paragraphs of all data sets "
        "of this page. The second table says how often the reader's `#n` was the gold one."
    )
    if work.bench.encoder_name.startswith("clew:"):
        text += (
            " The encoder that comes with clew was trained on training questions of HotpotQA, MuSiQue and "
            "2WikiMultihopQA: over those, it is tested on what it learnt."
        )
    return Section(
        f"Single-round and multi-round retrieval, {work.data.title}",
        text,
        command,
        f"{runs_table(runs, METRICS, SINGLE, ranked_by=())}\n{points(shown, filled)}",
    )


def _filled(retriever: str, way: str, asked: Mapping[str, Example], records: Records) -> dict[str, Any]:
    shares = [filled_right(example, records[id], way) for id, example in asked.items()]
    some = interval([share for share in shares if share is not None])
    right = f"{some.mean:.3f} [{some.low:.3f}, {some.high:.3f}]" if some.count else ""
    return {"retriever": retriever, "by": way, "questions": some.count, "right": right}


def _measured(work: Work, retrievers: Sequence[str]) -> dict[str, Records]:
    """Return the records of each retriever by question, having made those that are missing."""
    from clew import catalog

    data, bench, folder = work.data, work.bench, work.folder
    asked = with_hops(work)
    with bases(data, bench, work.progress("corpus")) as base_of:
        base = base_of(data.examples[0])
        folder.claim(facts_of(data, bench, base.digest()))
        files = {name: _file(folder, name) for name in retrievers}
        left = {name: [one for one in asked if one.id not in _known(file)] for name, file in files.items()}
        _foresee(work, base, left)
        for name, file in files.items():
            searching = catalog.retriever(name, base, encoder=bench.encoder)
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
        yield as_record(example, rounds(example, searching, readers))
        tell(count, total)


def _file(folder: Folder, retriever: str) -> RunFile:
    return RunFile(folder.path / f"rounds-{file_name(retriever)}")


def _known(file: RunFile) -> Records:
    return {record["id"]: record for record in file.records()}


def _readers(base: KnowledgeBase, model: LanguageModel | None) -> dict[str, Reader]:
    from clew import catalog

    names = READERS if model is not None else READERS[:1]
    return {name: catalog.reader(name, base, llm=model) for name in names}


def _foresee(work: Work, base: KnowledgeBase, left: Mapping[str, Sequence[Example]]) -> None:
    """Tell what the readers' model will cost: the first few questions are rehearsed with one that only counts."""
    from clew import catalog
    from clew.models.rehearsal import Rehearsal
    from clew.types import Usage

    if work.bench.llm is None or work.foreseen is None:
        return
    for retriever, missing in left.items():
        if missing:
            model = Rehearsal(work.bench.llm_name or work.bench.llm.name)
            searching = catalog.retriever(retriever, base, encoder=work.bench.encoder)
            some = missing[:REHEARSED]
            for example in some:
                rounds(example, searching, _readers(base, model))
            spent = sum(model.asked.values(), Usage())
            work.foreseen(f"rounds of {retriever}", scaled(spent, len(missing) / len(some)))
