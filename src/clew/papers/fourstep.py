"""The experiments of 4StepFocus (Boer et al., 2024) over STaRK's or MetaQA's questions and a graph, and the page of
them.

:func:`plan_recipes` lists the recipes that the models allow, :func:`open_graph_bases` provides the knowledge bases,
:func:`classify_loss` finds the step that lost a question, and :func:`write_fourstep_page` runs it all.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from clew.core.component import Recipe, make_recipe
from clew.core.errors import UsageError, unknown_name_error
from clew.core.text import slugify
from clew.evaluate.datasets.graphs import gold_triples
from clew.evaluate.examples import Result
from clew.evaluate.metrics import parse_metric
from clew.evaluate.setup import base_folder
from clew.knowledge_base import registry
from clew.knowledge_base.ingest.graphs import GraphFiles, add_graph, default_graph_name
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
from clew.retrieve.nodes import NodeTexts, answer_rows_or_all
from clew.store.store import Store

if TYPE_CHECKING:
    from clew.core.component import Value
    from clew.core.protocols import Encoder, PropertyGraph
    from clew.evaluate.report import Run
    from clew.evaluate.run_folder import Experiment
    from clew.evaluate.setup import EvaluationSettings
    from clew.store.store import Store

#: The data sets whose answers are nodes of a graph.
DATA_SETS = ("stark", "metaqa")
#: The number of answers that are ranked and reranked (the paper's ``k_max``, Section 4).
LIST_LENGTH = 20
#: An option of every recipe on the page: the documents of a knowledge base are not used, only its graph.
GRAPH_ALONE: dict[str, Value] = {"sources": Recipe("none")}
#: The paper's rule for relations: edge types are ignored, "restricting it turned out to be error-prone" (Section 4).
ANY_RELATION: dict[str, Value] = {"relations": Recipe("any")}
#: The paper's own form and nothing more (:mod:`clew.methods.focus.paper`): Algorithm 2 as it is printed, and with
#: lines 14 and 19 corrected.
PRINTED, CORRECTED = "paper=yes, as printed", "paper=yes, lines corrected"
VSS, UNTYPED, TYPED = "VSS", "4StepFocus, any relation", "4StepFocus, typed relations"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a page.

    ``graphs`` has one place for all data sets or one for each. ``encoders`` are those of trained dense retrievers.
    ``samples`` is the number of drafts of a question's triples. With ``embed`` the vectors of all possible answers
    are made first.
    """

    graphs: tuple[str, ...]
    encoders: tuple[str, ...] = ()
    samples: int = 1
    embed: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The recipes of each analysis, by their label in its table.

    ``methods`` are those of Table 1, 4StepFocus with the paper's rule for relations. ``extensions`` go beyond the
    paper; the recipe that they are compared with comes first. ``diagnosed`` are those whose triples are analysed.
    ``oracle`` are run with gold triples.
    """

    methods: dict[str, str]
    extensions: dict[str, str]
    diagnosed: dict[str, str]
    oracle: dict[str, str]

    @property
    def recipes(self) -> list[str]:
        """All recipes without duplicates, except those with gold triples."""
        return list(dict.fromkeys([*self.methods.values(), *self.extensions.values()]))


def build_settings(
    data: Sequence[str],
    graphs: Sequence[str],
    encoders: Sequence[str],
    samples: int,
    embed: bool,
    encoder: str | None = None,
) -> Settings:
    """Return the settings of a page over the given data sets. Raises UsageError for invalid combinations.

    ``encoder`` is that of all methods except the dense retrievers, None for none.
    """
    for dataset in data:
        name, equals, _ = dataset.partition("=")
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
    """Return the name of each data set on the page: its file with as many parent folders as make it unique.

    The names are unique as folder names too (:func:`clew.core.text.slugify`); where all parents are equal, a digest
    makes them so.
    """
    parts = {
        dataset: [part for part in Path(dataset.partition("=")[2]).parts if slugify(part)] for dataset in data
    }
    depths = dict.fromkeys(parts, 1)
    while True:
        names = {dataset: "/".join(path_parts[-depths[dataset] :]) for dataset, path_parts in parts.items()}
        folders = {dataset: slugify(name).casefold() for dataset, name in names.items()}
        name_counts = Counter(folders.values())
        ambiguous = [dataset for dataset, folder in folders.items() if name_counts[folder] > 1]
        if not ambiguous:
            return names
        for dataset in ambiguous:
            if depths[dataset] >= len(parts[dataset]):
                parts[dataset].insert(0, hashlib.sha256(dataset.encode()).hexdigest()[:8])
            depths[dataset] += 1


def plan_recipes(shared_settings: EvaluationSettings, samples: int = 1) -> Plan:
    """Return the recipes that the models of ``shared_settings`` allow. Without an encoder, words sort the
    candidates."""

    def read(retriever: Recipe) -> str:
        # The extractive reader calls no model: the answers are the nodes.
        return str(
            make_recipe("read", {"k": LIST_LENGTH, "reader": Recipe("extractive"), "retriever": retriever})
        )

    def reranked_recipe(form: str) -> str:
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

    def own_form(**options: Value) -> str:
        return str(make_recipe("focus", {"form": Recipe("none"), "k": LIST_LENGTH, "paper": True, **options}))

    methods = {"BM25": read(Recipe("bm25-nodes"))}
    if shared_settings.encoder is not None:
        methods |= {VSS: read(Recipe("vss")), "Multi-VSS": read(Recipe("multi-vss"))}
    oracle = {
        "typed relations": focus("none"),
        "any relation": focus("none", any_relation=True),
        PRINTED: own_form(),
        CORRECTED: own_form(lines=Recipe("corrected")),
        f"{CORRECTED}, any relation": own_form(lines=Recipe("corrected"), **ANY_RELATION),
    }
    if shared_settings.llm is None:
        return Plan(methods, {}, {}, oracle)
    if shared_settings.encoder is not None:
        methods["VSS + LLM reranker"] = reranked_recipe("pointwise")
    methods[UNTYPED] = focus("pointwise", any_relation=True)
    ours = {
        UNTYPED: methods[UNTYPED],
        TYPED: focus("pointwise"),
        "any relation, without reranking": focus("none", any_relation=True),
        "typed relations, without reranking": focus("none"),
        "typed relations, listwise": focus("listwise"),
        **(
            {"VSS + LLM reranker, listwise": reranked_recipe("listwise")}
            if shared_settings.encoder is not None
            else {}
        ),
    }
    return Plan(methods, ours, {UNTYPED: ours[UNTYPED], TYPED: ours[TYPED]}, oracle)


#: Where the page keeps the bases that it makes.
BASES_FOLDER = "graphs"
Progress = Callable[[int, int], None]


def open_graph_bases(places: Sequence[str], out: Path, progress_of: Callable[[str], Progress]) -> list[Path]:
    """Return the base of each place (:func:`open_graph_base`).

    Raises UsageError also for two graphs with the same name, since a base is named after its graph.
    """
    place_of_name: dict[str, str] = {}
    for place in dict.fromkeys(places):
        name = default_graph_name(Path(place))
        if name in place_of_name:
            raise UsageError(
                f"two graphs are called '{name}': {place_of_name[name]} and {place}",
                "Rename the folder or file of one",
            )
        place_of_name[name] = place
    folders = {
        place: open_graph_base(place, out, progress_of(f"graph {place}")) for place in place_of_name.values()
    }
    return [folders[place] for place in places]


def open_graph_base(place: str, out: Path, progress: Progress) -> Path:
    """Return the folder of a knowledge base with the graph at ``place``.

    That is ``place`` itself if it is a knowledge base (``kb``: the default one), else a base below ``out`` to which
    the graph is added on the first call. Raises UsageError, UnreadableFile.
    """
    existing = base_folder(place)
    if Store.exists(existing):
        with Store.open(existing) as base:
            _single_graph(base, place)
        return existing
    if not Path(place).exists():
        raise UsageError(
            f"no graph at {place}",
            "Name a folder in STaRK's layout, a file that clew graph add reads, or a knowledge base",
        )
    name = default_graph_name(Path(place))
    folder = out / BASES_FOLDER / name
    with Store.open(folder, create=True) as base:
        add_graph(
            base.graphs,
            name,
            GraphFiles((Path(place),)),
            progress=lambda event: progress(event.done, event.total),
        )
        _single_graph(base, place)
    return folder


def describe_vectors(folder: Path, encoder: Encoder, make: bool, progress: Progress) -> str:
    """Return a text with the number of possible answers that have a vector of ``encoder``.

    With ``make``, the missing vectors are made first; an interrupt keeps those that are finished. Raises ModelError.
    """
    with Store.open(folder) as base:
        graph = _single_graph(base, str(folder))
        rows, texts = answer_rows_or_all(graph), NodeTexts(graph)
        vectors = graph.node_vectors(encoder, texts.document_name)
        if make:
            graph.node_postings(texts.document_name, texts.single_texts)
            vectors.encode_missing(rows, texts.single_texts, progress)
        missing = len(vectors.rows_without_vectors(rows))
    return f"{len(rows) - missing:,} of the {len(rows):,} nodes that may answer"


def _single_graph(base: Store, place: str) -> PropertyGraph:
    """Return the only graph of a base. Raises UsageError for none or several, since answer ids do not name a
    graph."""
    names = [info.name for info in base.graphs.graph_infos()]
    if len(names) != 1:
        graph_list = f"the graphs {', '.join(names)}" if names else "no graph"
        raise UsageError(
            f"{place} has {graph_list}, where questions are over exactly one", "Name the file of the graph"
        )
    return base.snapshot().graph(names[0])


Loss = Literal["no triples", "not usable", "ranking", "contradiction", "constant", "triples"]
#: What each loss means, in the order of the steps.
LOSS_DESCRIPTIONS: Mapping[Loss, str] = {
    "no triples": "none of the model's triples could be parsed",
    "not usable": "the graph can check none of the triples except types",
    "ranking": "a right answer meets the constraints, and another is ranked before it",
    "contradiction": "constraints contradicted each other, and dropping some left no right answer",
    "constant": "a name was not found in the graph, and the other triples leave no right answer",
    "triples": "every name was found, and no node that meets the triples is a right answer",
}


def triple_statistics(records: Sequence[Mapping[str, Any]], results: Mapping[str, Result]) -> dict[str, str]:
    """Return the outcomes of the triples over all answered questions, as texts by measure.

    ``records`` are those of a run of ``focus``. From "one candidate" on, shares are of the questions with usable
    triples.
    """
    latest = {record["id"]: record for record in records if record["id"] in results}
    focus_records = {id: record["focus"] for id, record in latest.items() if "focus" in record}
    usable = {id: record for id, record in focus_records.items() if record.get("usable")}
    constants = sum(record.get("constants", 0) for record in focus_records.values())
    missing_count = sum(len(record.get("unmatched", [])) for record in focus_records.values())
    counts = [record["candidates"] for record in usable.values() if record["candidates"] is not None]
    right_count = sum(any(results[id].answer_pieces or ()) for id in usable)
    return {
        "questions": str(len(focus_records)),
        "with triples": _format_share(
            sum(bool(record["triples"]) for record in focus_records.values()), len(focus_records)
        ),
        "with usable triples": _format_share(len(usable), len(focus_records)),
        "constants matched": _format_share(constants - missing_count, constants),
        "candidates (least, quartiles, most)": _format_quartiles(counts),
        "one candidate": _format_share(sum(count == 1 for count in counts), len(usable)),
        "a right answer among them": _format_share(right_count, len(usable)),
        "relaxed": _format_share(sum(bool(record["given up"]) for record in usable.values()), len(usable)),
        "filled up": _format_share(sum(record["filled"] > 0 for record in usable.values()), len(usable)),
    }


def _format_share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" + (f" ({part / whole:.1%})" if whole else "")


def _format_quartiles(counts: Sequence[int]) -> str:
    if not counts:
        return ""
    return ", ".join(f"{value:,.10g}" for value in np.quantile(counts, [0, 0.25, 0.5, 0.75, 1]))


def classify_loss(result: Result, record: Mapping[str, Any]) -> Loss | None:
    """Return the step of ``focus`` that lost a question, None if its first answer is right or it has no record."""
    if parse_metric("Hit@1").measure(result) in {1.0, None} or "focus" not in record:
        return None
    focus = record["focus"]
    if not focus["triples"]:
        return "no triples"
    if not focus["usable"]:
        return "not usable"
    if any(result.answer_pieces or ()):
        return "ranking"
    if focus["given up"]:
        return "contradiction"
    return "constant" if focus["unmatched"] else "triples"


TITLE = "4StepFocus: the paper's experiments"
#: Columns of Table 1, of sets of answers, and of costs.
RANKING_METRICS, SET_METRICS, COST_METRICS = (
    ("Hit@1", "Hit@5", "recall@20", "MRR"),
    ("set-EM", "set-F1"),
    ("calls", "tokens", "seconds"),
)
#: A second reading of the paper's "recall@20" (:mod:`clew.evaluate.metrics.evidence`).
CAPPED_RECALL = "capped-recall@20"


def write_fourstep_page(experiments: Sequence[Experiment], settings: Settings) -> tuple[Path, Path]:
    """Run the paper's experiments over each data set, write ``page.md`` and ``page.html``, and return their paths.

    Finished parts are not run again. All experiments share their settings and ``out``, below which each gets a
    folder. Raises UsageError.
    """
    out, shared_settings = experiments[0].out, experiments[0].settings
    command = page_command(experiments, settings)
    plan = plan_recipes(shared_settings, settings.samples)
    parts: list[str] = []
    losses: list[dict[str, Any]] = []
    names = data_names([experiment.questions.data for experiment in experiments])
    encoders = {name: registry.load_encoder(name, remember=True) for name in settings.encoders}
    for shared in experiments:
        experiment = replace(shared, out=out / slugify(names[shared.questions.data]))
        dense = [_with_encoder(experiment, name, encoder) for name, encoder in encoders.items()]
        encoding_experiments = [*([experiment] if shared_settings.encoder is not None else []), *dense]
        for encoding_experiment in encoding_experiments if settings.embed else ():
            _describe_encoder(encoding_experiment, make=True)
        runs = {run.recipe: run for run in experiment.run(plan.recipes)}
        sections = _result_sections(experiment, plan, runs, dense)
        if all(gold_triples(example) for example in experiment.questions.examples):
            sections.append(_oracle_section(experiment, plan))
        heading = f"{experiment.questions.title}, {names[experiment.questions.data]}"
        losses += [
            {"data": heading, **loss}
            for method, recipe in plan.diagnosed.items()
            for loss in _collect_losses(experiment, method, runs[recipe])
        ]
        parts += [
            f"## {heading}",
            data_facts(experiment, _omissions(experiment, settings)),
            *_vector_lines(encoding_experiments),
            *(section.to_markdown(out) for section in sections),
        ]
    if plan.diagnosed:
        parts += [
            "## Errors",
            _losses_section(experiments, list(plan.diagnosed), losses, command).to_markdown(out),
        ]
    # Why clew's implementation deviates is in docs/decisions/0014 and 0015. The figures are those of Table 1.
    parts.append(Path(__file__).with_name("fourstep_published.md").read_text(encoding="utf-8").rstrip())
    return write_page(
        out, "\n\n".join([f"# {TITLE}", environment_table(experiments, command), *parts]) + "\n", TITLE
    )


def page_command(experiments: Sequence[Experiment], settings: Settings) -> str:
    """Return the command line that writes the page."""
    words = [word for experiment in experiments for word in ("--data", experiment.questions.data)]
    words += [word for value in settings.graphs for word in ("--graph", value)]
    words += [word for value in settings.encoders for word in ("--retriever-encoder", value)]
    words += ["--embed-all"] if settings.embed else []
    words += ["--samples", str(settings.samples)] if settings.samples > 1 else []
    return add_shared_options("paper 4stepfocus", words, experiments[0])


def _with_encoder(experiment: Experiment, name: str, encoder: Encoder) -> Experiment:
    """Return the experiment with a dense retriever's encoder and an output folder of its own."""
    shared_settings = replace(experiment.settings, llm=None, encoder=encoder, encoder_name=name)
    return replace(experiment, settings=shared_settings, out=experiment.out / f"encoder-{slugify(name)}")


def _describe_encoder(experiment: Experiment, make: bool) -> str:
    """Return :func:`describe_vectors` for the encoder of an experiment."""
    encoder = experiment.settings.encoder
    assert encoder is not None
    return describe_vectors(
        Path(experiment.questions.corpus),
        encoder,
        make,
        experiment.progress(f"vectors, {experiment.settings.encoder_name}"),
    )


def _vector_lines(encoding_experiments: Sequence[Experiment]) -> list[str]:
    """Return the paragraphs about the vectors of each encoder; in the paper every node has one."""
    lines = [
        f"- {experiment.settings.encoder_name}: {_describe_encoder(experiment, make=False)}"
        for experiment in encoding_experiments
    ]
    if not lines:
        return []
    return [
        "Vectors after the run, by encoder. Of nodes without a vector, a question embeds and ranks only the 500 best "
        "by words (`--embed-all` makes all vectors first, as in the paper).",
        "\n".join(lines),
    ]


def _omissions(experiment: Experiment, settings: Settings) -> dict[str, str]:
    """Return the experiments of the paper that this page leaves out, with the reasons."""
    omissions = {}
    if not experiment.settings.llm:
        omissions["4StepFocus on the questions' words, and what reranks"] = "needs --llm"
    if not experiment.settings.encoder:
        omissions["VSS and all that is sorted by vector"] = "needs --encoder"
    if not settings.encoders:
        omissions["the dense retriever"] = (
            "needs --retriever-encoder, such as one that clew train encoder made"
        )
    return omissions | {"QA-GNN": "it is a published figure only, below"}


def _metrics(experiment: Experiment) -> tuple[str, ...]:
    return (
        *RANKING_METRICS,
        *(SET_METRICS if experiment.questions.name == "metaqa" else (CAPPED_RECALL,)),
        *COST_METRICS,
    )


def _methods_table(
    runs: Sequence[Run], labels: Sequence[str], experiment: Experiment, baseline: str = ""
) -> str:
    """Return the table of runs under their labels, and the table of the recipes of the labels."""
    relabelled = [replace(run, recipe=label) for run, label in zip(runs, labels, strict=True)]
    recipes = [{"name": label, "recipe": f"`{run.recipe}`"} for run, label in zip(runs, labels, strict=True)]
    table = runs_table(relabelled, _metrics(experiment), baseline, ranked_by=RANKING_METRICS)
    return f"{table}\n{points_table({'name': 'name', 'recipe': 'recipe'}, recipes)}"


def _result_sections(
    experiment: Experiment, plan: Plan, runs: Mapping[str, Run], dense: Sequence[Experiment]
) -> list[Section]:
    title = experiment.questions.title
    methods = {name: runs[recipe] for name, recipe in plan.methods.items()}
    commands = [run_command(experiment, list(plan.methods.values()))]
    for dense_experiment in dense:
        (run,) = dense_experiment.run([plan_recipes(dense_experiment.settings).methods[VSS]])
        methods[_dense_label(dense_experiment)] = run
        commands.append(run_command(dense_experiment, [run.recipe]))
    sections = [
        Section(
            f"Methods, {title}",
            "STaRK's baselines, and 4StepFocus with the paper's rule for relations (of any type), the 20 best "
            "reranked one by one, everything else as in clew, below (paper: Table 1); means with 95 % bootstrap "
            "intervals. recall@20 is STaRK's: the share of all right answers among the first 20. "
            f"{CAPPED_RECALL} divides by 20 where there are more right answers, another reading of the paper.",
            "\n".join(commands),
            _methods_table(list(methods.values()), list(methods), experiment),
        )
    ]
    if plan.extensions:
        labels = list(plan.extensions)
        sections.append(
            Section(
                f"Beyond the paper, {title}",
                "Relations by their types, no reranking, one prompt for the whole list; with paired differences to "
                f"{UNTYPED}.",
                run_command(experiment, list(plan.extensions.values())),
                _methods_table(
                    [runs[recipe] for recipe in plan.extensions.values()], labels, experiment, UNTYPED
                ),
            )
        )
    if plan.diagnosed:
        sections.append(_triples_section(experiment, plan.diagnosed, runs))
    return sections


def _dense_label(experiment: Experiment) -> str:
    encoder, name = experiment.settings.encoder, experiment.settings.encoder_name
    trained = encoder.objective if encoder is not None else ""
    return f"Dense retriever ({name}{f', trained as {trained}' if trained else ', untrained'})"


def _triples_section(
    experiment: Experiment, recipe_of_method: Mapping[str, str], runs: Mapping[str, Run]
) -> Section:
    """Return the section with the outcomes of the triples, by method."""
    columns = {
        name: triple_statistics(list(experiment.folder.result_file(recipe).records()), runs[recipe].results)
        for name, recipe in recipe_of_method.items()
    }
    rows = [
        {"": measure, **{name: statistics[measure] for name, statistics in columns.items()}}
        for measure in next(iter(columns.values()))
    ]
    return Section(
        f"What became of the triples, {experiment.questions.title}",
        "Usable: the graph could check at least one triple or condition. Candidates are the nodes that meet the "
        "triples. Relaxed: constraints contradicted each other, and some were dropped. Filled up: the list was "
        "padded with the next best nodes by vector.",
        run_command(experiment, list(recipe_of_method.values())),
        points_table({"": "", **{name: name for name in columns}}, rows),
    )


def _oracle_section(experiment: Experiment, plan: Plan) -> Section:
    """Return the section of the gold triples, which need no model."""
    oracle_experiment = replace(
        experiment,
        questions=replace(experiment.questions, triples=True),
        settings=replace(experiment.settings, llm=None),
        out=experiment.out / "oracle",
    )
    runs = oracle_experiment.run(list(plan.oracle.values()))
    return Section(
        f"Oracle triples, {experiment.questions.title}",
        "The triples that the questions' types spell out replace the model's, which tests the steps after the first "
        "alone. set-EM is the share of questions whose candidates are exactly the gold answers. paper=yes is the "
        "paper's own form: Algorithms 1 to 3, without what clew adds. As printed, lines 14 and 19 of Algorithm 2 "
        "compare each end of a triplet with its own neighbours, and nothing is left of chains over two unknowns.",
        run_command(oracle_experiment, list(plan.oracle.values())),
        _methods_table(runs, list(plan.oracle), experiment),
    )


def _collect_losses(experiment: Experiment, method: str, run: Run) -> list[dict[str, Any]]:
    """Return the questions with a wrong first answer, with all that a person needs to judge them."""
    records = {record["id"]: record for record in experiment.folder.result_file(run.recipe).records()}
    losses = []
    for id, result in run.results.items():
        loss = classify_loss(result, records[id])
        if loss is not None:
            focus_record = records[id].get("focus", {})
            question = {"question": result.example.question, "gold": list(result.example.answers)}
            first_ids = [hit["id"] for hit in records[id]["hits"][:5]]
            losses.append(
                {
                    "id": id,
                    "method": method,
                    "class": loss,
                    **question,
                    "first": first_ids,
                    **focus_record,
                }
            )
    return losses


def _losses_section(
    experiments: Sequence[Experiment],
    methods: Sequence[str],
    losses: Sequence[Mapping[str, Any]],
    command: str,
) -> Section:
    """Return the section that counts the losses by method, and write all of them to ``errors.jsonl``."""
    path = experiments[0].out / "errors.jsonl"
    path.write_text("".join(json.dumps(loss, ensure_ascii=False) + "\n" for loss in losses), encoding="utf-8")
    counts = Counter((loss["class"], loss["method"]) for loss in losses)
    rows = [
        {
            "class": loss_class,
            "what it means": description,
            **{method: counts[loss_class, method] for method in methods},
        }
        for loss_class, description in LOSS_DESCRIPTIONS.items()
    ]
    return Section(
        "Where 4StepFocus goes wrong",
        "Questions of all data sets whose first answer is not right, by the first step that lost it. A rule derives "
        f"the class from the trail; every error is in [{path.name}](<{path.name}>) to be read.",
        command,
        points_table(
            {"class": "class", "what it means": "what it means", **{name: name for name in methods}}, rows
        ),
    )
