"""What the experiments of 4StepFocus (Boer et al., 2024) run: recipes by analysis, as far as the models allow."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from clew.core.errors import UsageError, unknown_name_error
from clew.core.recipe import Recipe, make_recipe
from clew.core.text import slugify
from clew.evaluate.datasets.graphs import gold_triples
from clew.evaluate.examples import Result
from clew.evaluate.metrics import parse_metric
from clew.evaluate.setup import base_folder
from clew.knowledge_base.ingest.graphs import GraphFiles, add_graph, default_graph_name
from clew.papers.fourstep_published import deviations_section, published_section
from clew.papers.page import (
    Section,
    add_shared_options,
    data_facts,
    environment_table,
    points_table,
    run_command,
    runs_table,
    write_page,
)

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, PropertyGraph
    from clew.core.recipe import Value
    from clew.evaluate.report import Run
    from clew.evaluate.run_folder import Experiment
    from clew.evaluate.setup import EvaluationSettings
    from clew.store.store import Store

#: The forms of data sets that name their answers as nodes of a graph.
DATA_SETS = ("stark", "metaqa")
#: Answers that are ranked, and that the model is asked about (the paper's ``k_max``, Section 4).
LIST_LENGTH = 20
#: What every recipe of the page has: documents, which a base of one's own may hold beside its graph, are not asked.
GRAPH_ALONE: dict[str, Value] = {"sources": Recipe("none")}
#: The paper's rule for relations: edge types are ignored, "restricting it turned out to be error-prone" (Section 4).
ANY_RELATION: dict[str, Value] = {"relations": Recipe("any")}
VSS, UNTYPED, TYPED = "VSS", "4StepFocus, any relation", "4StepFocus, typed relations"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a page was asked for: ``graphs``, one for all data sets or one for each, as they were named; ``encoders``
    of trained dense retrievers; ``samples`` are drafts of a question's triples; ``embed``: every node that may answer
    gets its vector first."""

    graphs: tuple[str, ...]
    encoders: tuple[str, ...] = ()
    samples: int = 1
    embed: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The recipes of every analysis, by what they are called in its table.

    ``methods`` are those of Table 1, 4StepFocus with the paper's rule for relations; ``ours`` what the paper has
    not, with the recipe that it is compared with first, ``closely`` those of them whose triples are looked at.
    ``oracle`` are asked with gold triples.
    """

    methods: dict[str, str]
    extensions: dict[str, str]
    diagnosed: dict[str, str]
    oracle: dict[str, str]

    @property
    def recipes(self) -> list[str]:
        """Every recipe once, but for those of gold triples."""
        return list(dict.fromkeys([*self.methods.values(), *self.extensions.values()]))


def build_settings(
    data: Sequence[str],
    graphs: Sequence[str],
    encoders: Sequence[str],
    samples: int,
    embed: bool,
    encoder: str | None = None,
) -> Settings:
    """Return the settings of a page over these data sets; ``encoder`` is that of all methods but the dense
    retrievers, None for none. Raises UsageError for what makes no sense."""
    for one in data:
        name, equals, _ = one.partition("=")
        if equals and name not in DATA_SETS:
            raise unknown_name_error("data set of 4stepfocus", name, DATA_SETS)
    if len(set(data)) < len(data):
        raise UsageError("a data set is given twice", "Name each once: --data NAME=PATH")
    if len(graphs) not in {1, len(data)}:
        raise UsageError(
            f"{len(graphs)} graphs for {len(data)} data sets",
            "Name one for all of them, or one for each in their order: --graph FOLDER",
        )
    if embed and encoder is None and not encoders:
        raise UsageError(
            "--embed-all without an encoder makes no vectors",
            "Name one: --encoder onnx:FOLDER, or --retriever-encoder",
        )
    return Settings(tuple(graphs), tuple(dict.fromkeys(encoders)), samples, embed)


def data_names(data: Sequence[str]) -> dict[str, str]:
    """Return what each data set is called on the page: its file, with as many of the folders above it as tell it from
    the others, as a folder's name (:func:`clew.core.text.slugify`) too; a digest tells those that share all of
    them."""
    parts = {one: [part for part in Path(one.partition("=")[2]).parts if slugify(part)] for one in data}
    depths = dict.fromkeys(parts, 1)
    while True:
        names = {one: "/".join(some[-depths[one] :]) for one, some in parts.items()}
        folders = {one: slugify(name).casefold() for one, name in names.items()}
        count = Counter(folders.values())
        same = [one for one, folder in folders.items() if count[folder] > 1]
        if not same:
            return names
        for one in same:
            if depths[one] >= len(parts[one]):
                parts[one].insert(0, hashlib.sha256(one.encode()).hexdigest()[:8])
            depths[one] += 1


def plan_recipes(bench: EvaluationSettings, samples: int = 1) -> Plan:
    """Return what is run with the models of ``bench``. Without an encoder, candidates are sorted by words."""

    def read(retriever: Recipe) -> str:
        # What reads costs no calls: the answers are the nodes.
        return str(
            make_recipe("read", {"k": LIST_LENGTH, "reader": Recipe("extractive"), "retriever": retriever})
        )

    def reranked(form: str) -> str:
        return read(
            make_recipe("reranked", {"form": Recipe(form), "k": LIST_LENGTH, "retriever": Recipe("vss")})
        )

    def focus(form: str, any_relation: bool = False) -> str:
        options: dict[str, Value] = {
            "form": Recipe(form),
            "k": LIST_LENGTH,
            **GRAPH_ALONE,
            **(ANY_RELATION if any_relation else {}),
        }
        return str(make_recipe("focus", {**options, **({"samples": samples} if samples > 1 else {})}))

    methods = {"BM25": read(Recipe("bm25-nodes"))}
    if bench.encoder is not None:
        methods |= {VSS: read(Recipe("vss")), "Multi-VSS": read(Recipe("multi-vss"))}
    oracle = {"typed relations": focus("none"), "any relation": focus("none", any_relation=True)}
    if bench.llm is None:
        return Plan(methods, {}, {}, oracle)
    if bench.encoder is not None:
        methods["VSS + LLM reranker"] = reranked("pointwise")
    methods[UNTYPED] = focus("pointwise", any_relation=True)
    ours = {
        UNTYPED: methods[UNTYPED],
        TYPED: focus("pointwise"),
        "any relation, without reranking": focus("none", any_relation=True),
        "typed relations, without reranking": focus("none"),
        "typed relations, listwise": focus("listwise"),
        **({"VSS + LLM reranker, listwise": reranked("listwise")} if bench.encoder is not None else {}),
    }
    return Plan(methods, ours, {UNTYPED: ours[UNTYPED], TYPED: ours[TYPED]}, oracle)


#: Where the page keeps the bases that it makes.
BASES_FOLDER = "graphs"
Tick = Callable[[int, int], None]


def open_graph_bases(places: Sequence[str], out: Path, tick_of: Callable[[str], Tick]) -> list[Path]:
    """Return for each place what :func:`base_with` does. Raises UsageError also for two graphs of one name, since a
    base is called by its graph."""
    named: dict[str, str] = {}
    for place in dict.fromkeys(places):
        name = default_graph_name(Path(place))
        if name in named:
            raise UsageError(
                f"two graphs are called '{name}': {named[name]} and {place}",
                "Rename the folder or file of one",
            )
        named[name] = place
    made = {place: open_graph_base(place, out, tick_of(f"graph {place}")) for place in named.values()}
    return [made[place] for place in places]


def open_graph_base(place: str, out: Path, tick: Tick) -> Path:
    """Return the folder of a base that has the graph at ``place``: ``place`` itself where it is a base (``kb``: the
    usual one), else one below ``out``, to which the graph is added where that was not done before.

    ``tick`` is told how much of the graph is read. Raises UsageError, UnreadableFile.
    """
    from clew.store.store import Store

    own = base_folder(place)
    if Store.exists(own):
        with Store.open(own) as base:
            _only(base, place)
        return own
    if not Path(place).exists():
        raise UsageError(
            f"no graph at {place}",
            "Name a folder in STaRK's layout, a file that clew graph add reads, or a knowledge base",
        )
    name = default_graph_name(Path(place))
    made = out / BASES_FOLDER / name
    with Store.open(made, create=True) as base:
        add_graph(
            base.graphs,
            name,
            GraphFiles((Path(place),)),
            progress=lambda event: tick(event.done, event.total),
        )
        _only(base, place)
    return made


def describe_vectors(folder: Path, encoder: Encoder, make: bool, tick: Tick) -> str:
    """Say how many of the nodes that may answer have a vector, having made all that are missing with ``make``.

    Stopped, what was made is kept. Raises ModelError.
    """
    from clew.retrieve.node_texts import NodeTexts
    from clew.retrieve.nodes import answer_rows_or_all
    from clew.store.store import Store

    with Store.open(folder) as base:
        graph = _only(base, str(folder))
        rows, texts = answer_rows_or_all(graph), NodeTexts(graph)
        kept = graph.node_vectors(encoder, texts.document_name)
        if make:
            graph.node_postings(texts.document_name, texts.single_texts)
            kept.encode_missing(rows, texts.single_texts, tick)
        missing = len(kept.rows_without_vectors(rows))
    return f"{len(rows) - missing:,} of the {len(rows):,} nodes that may answer"


def _only(base: Store, place: str) -> PropertyGraph:
    """Return the graph of a base. Raises UsageError for none and for several: ids of answers name no graph."""
    names = [one.name for one in base.graphs.graph_infos()]
    if len(names) != 1:
        said = f"the graphs {', '.join(names)}" if names else "no graph"
        raise UsageError(
            f"{place} has {said}, where questions are asked of one", "Name the file of the graph"
        )
    return base.snapshot().graph(names[0])


TITLE = "4StepFocus: the paper's experiments"
#: Columns of Table 1; of answers as sets; of what they cost.
RANKING_METRICS, SET_METRICS, COST_METRICS = (
    ("Hit@1", "Hit@5", "recall@20", "MRR"),
    ("set-EM", "set-F1"),
    ("calls", "tokens", "seconds"),
)
#: How Table 1's recall is divided, and how else it can be.
CAPPED_RECALL = "capped-recall@20"


def write_fourstep_page(works: Sequence[Experiment], settings: Settings) -> tuple[Path, Path]:
    """Run what the paper ran over each data set and write ``page.md`` and ``page.html``; return them.

    What is there already is not run again. All works have the same models and the same ``out``, below which each has
    a folder of its own. Raises UsageError.
    """
    from clew.knowledge_base import registry as catalog

    out, bench = works[0].out, works[0].settings
    command = page_command(works, settings)
    planned = plan_recipes(bench, settings.samples)
    parts: list[str] = []
    lost: list[dict[str, Any]] = []
    names = data_names([one.questions.data for one in works])
    encoders = {name: catalog.load_encoder(name, remember=True) for name in settings.encoders}
    for work in (replace(one, out=out / slugify(names[one.questions.data])) for one in works):
        dense = [_with_encoder(work, name, one) for name, one in encoders.items()]
        encoding = [*([work] if bench.encoder is not None else []), *dense]
        for one in encoding if settings.embed else ():
            _vectors(one, make=True)
        runs = {run.recipe: run for run in work.run(planned.recipes)}
        sections = _sections(work, planned, runs, dense)
        if all(gold_triples(one) for one in work.questions.examples):
            sections.append(_oracle(work, planned))
        heading = f"{work.questions.title}, {names[work.questions.data]}"
        lost += [
            {"data": heading, **one}
            for method, recipe in planned.diagnosed.items()
            for one in _lost(work, method, runs[recipe])
        ]
        parts += [
            f"## {heading}",
            data_facts(work, _left_out(work, settings)),
            *_embedded(encoding),
            *(one.to_markdown(out) for one in sections),
        ]
    if planned.diagnosed:
        parts += ["## Errors", _errors(works, list(planned.diagnosed), lost, command).to_markdown(out)]
    parts += [deviations_section(), published_section()]
    return write_page(
        out, "\n\n".join([f"# {TITLE}", environment_table(works, command), *parts]) + "\n", TITLE
    )


def page_command(works: Sequence[Experiment], settings: Settings) -> str:
    """Return the command line that makes the page."""
    words = [word for work in works for word in ("--data", work.questions.data)]
    words += [word for one in settings.graphs for word in ("--graph", one)]
    words += [word for one in settings.encoders for word in ("--retriever-encoder", one)]
    words += ["--embed-all"] if settings.embed else []
    words += ["--samples", str(settings.samples)] if settings.samples > 1 else []
    return add_shared_options("paper 4stepfocus", words, works[0])


def _with_encoder(work: Experiment, name: str, encoder: Encoder) -> Experiment:
    """Return the work of a dense retriever, in a folder of its own."""
    bench = replace(work.settings, llm=None, encoder=encoder, encoder_name=name)
    return replace(work, settings=bench, out=work.out / f"encoder-{slugify(name)}")


def _vectors(work: Experiment, make: bool) -> str:
    """Say how many nodes have a vector of the work's encoder, having made those that are missing with ``make``."""
    encoder = work.settings.encoder
    assert encoder is not None
    return describe_vectors(
        Path(work.questions.corpus), encoder, make, work.progress(f"vectors, {work.settings.encoder_name}")
    )


def _embedded(encoding: Sequence[Experiment]) -> list[str]:
    """Say of each encoder whether every node was ranked by its vectors, as in the paper."""
    said = [f"- {one.settings.encoder_name}: {_vectors(one, make=False)}" for one in encoding]
    if not said:
        return []
    return [
        "Vectors after the run, by encoder. Of nodes without one, a question embeds and ranks the 500 that are best "
        "by words, and looks at no others (`--embed-all` makes all vectors first, as the paper has them).",
        "\n".join(said),
    ]


def _left_out(work: Experiment, settings: Settings) -> dict[str, str]:
    """Return what the paper ran and this page did not, and why."""
    return {
        **(
            {}
            if work.settings.llm
            else {"4StepFocus on the questions' words, and what reranks": "needs --llm"}
        ),
        **({} if work.settings.encoder else {"VSS and all that is sorted by vector": "needs --encoder"}),
        **(
            {}
            if settings.encoders
            else {
                "the dense retriever": "needs --retriever-encoder, such as one that clew train encoder made"
            }
        ),
        "QA-GNN": "it is a published figure only, below",
    }


def _metrics(work: Experiment) -> tuple[str, ...]:
    return (
        *RANKING_METRICS,
        *(SET_METRICS if work.questions.name == "metaqa" else (CAPPED_RECALL,)),
        *COST_METRICS,
    )


def _table(runs: Sequence[Run], named: Sequence[str], work: Experiment, baseline: str = "") -> str:
    """Return the table of runs under the names that they have there, and which recipe each is."""
    shown = [replace(run, recipe=name) for run, name in zip(runs, named, strict=True)]
    recipes = [{"name": name, "recipe": f"`{run.recipe}`"} for run, name in zip(runs, named, strict=True)]
    table = runs_table(shown, _metrics(work), baseline, ranked_by=RANKING_METRICS)
    return f"{table}\n{points_table({'name': 'name', 'recipe': 'recipe'}, recipes)}"


def _sections(
    work: Experiment, planned: Plan, runs: Mapping[str, Run], dense: Sequence[Experiment]
) -> list[Section]:
    title = work.questions.title
    methods = {name: runs[recipe] for name, recipe in planned.methods.items()}
    commands = [run_command(work, list(planned.methods.values()))]
    for other in dense:
        (run,) = other.run([plan_recipes(other.settings).methods[VSS]])
        methods[_called(other)] = run
        commands.append(run_command(other, [run.recipe]))
    sections = [
        Section(
            f"Methods, {title}",
            "STaRK's baselines, and 4StepFocus with the paper's rule for relations (of any type), the 20 best "
            "reranked one by one, everything else as in clew, below (paper: Table 1); means with 95 % bootstrap "
            "intervals. recall@20 is STaRK's: found of all that are right. "
            f"{CAPPED_RECALL} is found of as many as 20 places can hold, as the paper's words may also be read.",
            "\n".join(commands),
            _table(list(methods.values()), list(methods), work),
        )
    ]
    if planned.extensions:
        named = list(planned.extensions)
        sections.append(
            Section(
                f"Beyond the paper, {title}",
                "Relations by their types, no reranking, one prompt for the whole list; with paired differences to "
                f"{UNTYPED}.",
                run_command(work, list(planned.extensions.values())),
                _table([runs[one] for one in planned.extensions.values()], named, work, UNTYPED),
            )
        )
    if planned.diagnosed:
        sections.append(_diagnosed(work, planned.diagnosed, runs))
    return sections


def _called(work: Experiment) -> str:
    encoder, name = work.settings.encoder, work.settings.encoder_name
    trained = encoder.objective if encoder is not None else ""
    return f"Dense retriever ({name}{f', trained as {trained}' if trained else ', untrained'})"


def _diagnosed(work: Experiment, closely: Mapping[str, str], runs: Mapping[str, Run]) -> Section:
    """Return what became of the triples of each question, method by method."""
    columns = {
        name: triple_statistics(list(work.folder.result_file(recipe).records()), runs[recipe].results)
        for name, recipe in closely.items()
    }
    rows = [
        {"": what, **{name: said[what] for name, said in columns.items()}}
        for what in next(iter(columns.values()))
    ]
    return Section(
        f"What became of the triples, {work.questions.title}",
        "Usable: at least one triple or condition could be held against the graph. Candidates are the nodes that the "
        "triples leave; relaxed are questions whose constraints contradicted each other, so that some were given up; "
        "filled up those whose list was filled with the next best by vector.",
        run_command(work, list(closely.values())),
        points_table({"": "", **{name: name for name in columns}}, rows),
    )


def _oracle(work: Experiment, planned: Plan) -> Section:
    """Return what substitution makes of the gold triples, with which no model is asked."""
    other = replace(
        work,
        questions=replace(work.questions, triples=True),
        settings=replace(work.settings, llm=None),
        out=work.out / "oracle",
    )
    runs = other.run(list(planned.oracle.values()))
    return Section(
        f"Oracle triples, {work.questions.title}",
        "The triples that the questions' types spell, in place of a model's: what the steps after the first make of "
        "perfect triples. set-EM is the share of questions whose candidates are exactly the gold answers.",
        run_command(other, list(planned.oracle.values())),
        _table(runs, list(planned.oracle), work),
    )


def _lost(work: Experiment, name: str, run: Run) -> list[dict[str, Any]]:
    """Return the questions whose first answer is wrong, with all that a person needs to judge it."""
    records = {one["id"]: one for one in work.folder.result_file(run.recipe).records()}
    found = []
    for id, result in run.results.items():
        kind = classify_loss(result, records[id])
        if kind is not None:
            focused = records[id].get("focus", {})
            shown = {"question": result.example.question, "gold": list(result.example.answers)}
            first = [hit["id"] for hit in records[id]["hits"][:5]]
            found.append(
                {
                    "id": id,
                    "method": name,
                    "class": kind,
                    **shown,
                    "first": first,
                    **focused,
                }
            )
    return found


def _errors(
    works: Sequence[Experiment], named: Sequence[str], lost: Sequence[Mapping[str, Any]], command: str
) -> Section:
    """Return how often which method was wrong in which way, and write every error down."""
    path = works[0].out / "errors.jsonl"
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lost), encoding="utf-8")
    rows = [
        {
            "class": kind,
            "what it means": said,
            **{n: sum(one["class"] == kind and one["method"] == n for one in lost) for n in named},
        }
        for kind, said in LOSS_DESCRIPTIONS.items()
    ]
    return Section(
        "Where 4StepFocus goes wrong",
        "Questions of all data sets whose first answer is not right, by the first step that lost it. Classes are "
        f"told by rule from the trail; every error is in [{path.name}](<{path.name}>) to be read.",
        command,
        points_table(
            {"class": "class", "what it means": "what it means", **{name: name for name in named}}, rows
        ),
    )


Loss = Literal["no triples", "not usable", "ranking", "contradiction", "constant", "triples"]
LOSS_DESCRIPTIONS: Mapping[Loss, str] = dict(
    zip(
        get_args(Loss),
        (
            "nothing that the model wrote could be read",
            "of what was written, the graph can hold nothing but types",
            "a right answer meets the constraints, and another is put before it",
            "constraints contradicted each other, and giving some up left no right answer",
            "a name was not found in the graph, and the other triples leave no right answer",
            "everything was found, and what meets it is no right answer",
        ),
        strict=True,
    )
)


def triple_statistics(records: Sequence[Mapping[str, Any]], results: Mapping[str, Result]) -> dict[str, str]:
    """Return what became of the triples of all questions that were answered, in words, by what it is.

    ``records`` are those of a run of ``focus``. Shares are of the questions with usable triples, but for the first
    three.
    """
    last = {one["id"]: one for one in records if one["id"] in results}
    every = {id: one["focus"] for id, one in last.items() if "focus" in one}
    usable = {id: one for id, one in every.items() if one.get("usable")}
    constants = sum(one.get("constants", 0) for one in every.values())
    missing = sum(len(one.get("unmatched", [])) for one in every.values())
    counts = [one["candidates"] for one in usable.values() if one["candidates"] is not None]
    right = sum(any(results[id].answer_pieces or ()) for id in usable)
    return {
        "questions": str(len(every)),
        "with triples": _share(sum(bool(one["triples"]) for one in every.values()), len(every)),
        "with usable triples": _share(len(usable), len(every)),
        "constants matched": _share(constants - missing, constants),
        "candidates (least, quartiles, most)": _spread(counts),
        "one candidate": _share(sum(count == 1 for count in counts), len(usable)),
        "a right answer among them": _share(right, len(usable)),
        "relaxed": _share(sum(bool(one["given up"]) for one in usable.values()), len(usable)),
        "filled up": _share(sum(one["filled"] > 0 for one in usable.values()), len(usable)),
    }


def _share(some: int, all_: int) -> str:
    return f"{some:,} of {all_:,}" + (f" ({some / all_:.1%})" if all_ else "")


def _spread(counts: Sequence[int]) -> str:
    if not counts:
        return ""
    return ", ".join(f"{value:,.10g}" for value in np.quantile(counts, [0, 0.25, 0.5, 0.75, 1]))


def classify_loss(result: Result, record: Mapping[str, Any]) -> Loss | None:
    """Return the step of ``focus`` that lost a question, None where the first answer is right or nothing is known."""
    if parse_metric("Hit@1").measure(result) in {1.0, None} or "focus" not in record:
        return None
    said = record["focus"]
    if not said["triples"]:
        return "no triples"
    if not said["usable"]:
        return "not usable"
    if any(result.answer_pieces or ()):
        return "ranking"
    if said["given up"]:
        return "contradiction"
    return "constant" if said["unmatched"] else "triples"


# MERGED: The bases that the questions of 4StepFocus's page are asked of: one's own, or made of a graph and kept.
# MERGED: The experiments of 4StepFocus (Boer et al., 2024) over data sets and graphs of one's own, and the
# page of them.
