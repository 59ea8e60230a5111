"""The experiments of Semi-Structured Chain-of-Thought (Su et al., NAACL 2024), and the page of them.

:func:`plan_recipes` lists the recipes for a data set, :func:`write_semicot_page` runs them over several, and
:func:`classify_mistake` sorts wrong answers into the error classes of the paper (Appendix H). There people sorted 87
errors by hand; here a rule does, so that every run can be counted. The first condition that holds decides:

| class               | condition                                                                                |
|---------------------|------------------------------------------------------------------------------------------|
| false negative      | no exact match, but an F1 of at least 0.6, the gold answer within the answer, the same date or number in other words, or a grading model's approval |
| reasoning chain     | no chain could be written, or it does not fit the gold one: another number of hops, or a constant of the gold one is in none of its triples |
| unfilled            | the chain fits, but one of its unknowns has no value                                     |
| knowledge retrieval | the chain fits and is filled, but the gold answer of some hop is no unknown's value      |
| final answer        | every hop has its gold answer, and the final answer is wrong                             |
| undecided           | the data set has no gold chain (Bamboogle, FEVER), and every unknown has a value         |

The paper counts unfilled chains as knowledge retrieval. The rule is a heuristic: a chain that says the same in more or
fewer hops than the gold one counts as wrong; one with wrong relations between the right constants counts as right, so
that its error becomes knowledge retrieval. A sub-question in words is compared by the words that it shares with a
triple. A name within a longer one counts as the same (``Paris`` and ``Paris, Texas``).
"""  # noqa: E501

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from clew.core.component import Recipe, make_recipe, parse_recipe
from clew.core.errors import UsageError, unknown_name_error
from clew.core.prompts.templates import has_exemplars
from clew.core.text import query_terms
from clew.core.values import mentions_name, same_value
from clew.evaluate.examples import Result
from clew.evaluate.metrics import parse_metric
from clew.evaluate.report import Run, is_near_match
from clew.evaluate.setup import POOLED_CORPORA, QuestionSet, load_questions
from clew.methods.prompting import TEMPERATURE
from clew.papers.gold_hops import GoldHop, gold_hops
from clew.papers.page import (
    Section,
    add_shared_options,
    data_facts,
    environment_table,
    points_table,
    run_command,
    runs_table,
    skipped_lines,
    write_page,
)
from clew.papers.semicot_rounds import examples_with_hops, rounds_experiment, rounds_section
from clew.triples.language.chain import Chain, Limits, Triple, parse_chain

if TYPE_CHECKING:
    from clew.evaluate.run_folder import Experiment

#: The data sets of the paper (Appendix C: of MuSiQue the 2-hop questions), and whether their paragraphs are pooled.
#: The others are asked of the web or of a knowledge base.
DATA_SETS = {"2wikimultihopqa": True, "musique-2hop": True, "bamboogle": False, "fever": False}
TWO_HOPS = {"musique": "musique-2hop"}
#: Retrievers that search the web instead of a knowledge base.
WEB = ("serpapi",)
ORACLE = "oracle"
#: The orders of sources in Tables 1 and 2, and those of the ablation (Table 3 and more).
ORDERS = ("kg,text,model", "text,kg,model")
ABLATION_ORDERS = ("kg", "text", "model", "kg,text", "text,kg", "kg,model", "text,model", *ORDERS)
#: Bamboogle is asked with four exemplars (Appendix D).
FOUR_SHOTS: dict[str, Any] = {"exemplars": Recipe("compositional"), "shots": 4}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a page.

    ``oracle`` adds the graph of the questions' own gold triples. ``retrievers`` are names, or ``DATA=NAME``.
    ``corpus`` is that of data sets without paragraphs, ``pool`` names further data sets to be pooled. ``samples`` is
    the number of chains drawn for self-consistency.
    """

    graphs: tuple[str, ...] = ()
    oracle: bool = False
    retrievers: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    corpus: str | None = None
    samples: int = 1

    def load_questions(self, data: str, limit: int | None, seed: int) -> QuestionSet:
        """Return the questions of ``NAME=PATH`` with the paper's corpus: all paragraphs of their file, pooled.

        Raises UsageError.
        """
        name, equals, path = data.partition("=")
        name = TWO_HOPS.get(name, name)
        if equals and name not in DATA_SETS:
            raise unknown_name_error("data set of semicot", name, DATA_SETS)
        if DATA_SETS.get(name):
            return load_questions(
                f"{name}{equals}{path}", "pooled", limit, seed, [full_data(data), *self.pool]
            )
        return load_questions(data, self.corpus or "none", limit, seed)

    def retriever_for(self, data: str) -> str:
        """Return the retriever for a data set: the one named for it, else the first for all, else ``search``."""
        by_data = [_split_retriever(retriever) for retriever in self.retrievers]
        of_data = [recipe for name, recipe in by_data if name == data]
        return next(iter([*of_data, *(recipe for name, recipe in by_data if not name)]), "search")

    def compared_retrievers(self, encoder: bool) -> list[str]:
        """Return the retrievers to compare in rounds: the named ones, else the default ones."""
        recipes = [recipe for _, recipe in map(_split_retriever, self.retrievers) if not searches_web(recipe)]
        defaults = ["search", "bm25", *(["dense", "hybrid"] if encoder else []), "kgp"]
        return list(dict.fromkeys(recipes)) or defaults


def build_settings(
    graphs: Sequence[str], retrievers: Sequence[str], pool: Sequence[str], corpus: str | None, samples: int
) -> Settings:
    """Return the settings of a page. Raises UsageError for an invalid name."""
    if corpus in POOLED_CORPORA or corpus == "question":
        raise UsageError(
            f"Bamboogle and FEVER bring no paragraphs for the corpus '{corpus}'",
            "Name a knowledge base: --corpus FOLDER; the other data sets are always pooled",
        )
    for place in retrievers:
        parse_recipe(_split_retriever(place)[1])
    places = tuple(place for place in graphs if place != ORACLE)
    for place in places:
        if "://" not in place and not Path(place).exists():
            raise UsageError(f"no graph at {place}", "Name a file, a SPARQL endpoint's URL, or oracle")
    return Settings(places, ORACLE in graphs, tuple(retrievers), tuple(pool), corpus, samples)


def full_data(data: str) -> str:
    """Return ``NAME=PATH`` of the whole file for a data set that reads only its two-hop questions."""
    name, equals, path = data.partition("=")
    return next((f"{full}{equals}{path}" for full, two in TWO_HOPS.items() if name == two), data)


def _split_retriever(retriever: str) -> tuple[str, str]:
    """Return the data set of ``DATA=NAME`` ("" for all) and the retriever."""
    name, equals, recipe = retriever.partition("=")
    name = TWO_HOPS.get(name, name)
    return (name, recipe) if equals and name in DATA_SETS else ("", retriever)


def searches_web(retriever: str) -> bool:
    """Return whether a retriever searches the web, and so needs no corpus."""
    return parse_recipe(retriever).name in WEB


@dataclass(frozen=True, slots=True)
class Plan:
    """The recipes for a data set: those of the main table, those of the ablation, and the ``chain`` of the oracle
    graph and the error classes. ``has_search``: there is a corpus or the web to search."""

    main: list[str]
    ablation: list[str]
    chain: str
    has_search: bool

    @property
    def recipes(self) -> list[str]:
        """All recipes without duplicates."""
        return list(dict.fromkeys([*self.main, *self.ablation]))


def plan_recipes(data: QuestionSet, settings: Settings) -> Plan:
    """Return the recipes for a data set: for claims the methods that support them (Table 10), and without anything to
    search the methods that use only a model or a graph."""
    retriever = settings.retriever_for(data.name)
    has_search = data.corpus != "none" or searches_web(retriever)
    search: dict[str, Any] = {"retriever": parse_recipe(retriever)} if has_search else {}
    claims = data.name == "fever"
    exemplars = {"task": Recipe("claim")} if claims else FOUR_SHOTS if data.name == "bamboogle" else {}
    if has_exemplars(data.name):
        exemplars = {**exemplars, "exemplars": Recipe(data.name)}

    def chain(sources: str, **options: Any) -> str:
        samples = {"samples": settings.samples} if settings.samples > 1 else {}
        options = {"sources": sources, "reader": Recipe("hops"), **exemplars, **search, **samples, **options}
        return str(make_recipe("chain", options))

    orders = ORDERS if has_search else ("kg,model",)
    ablation = [sources for sources in ABLATION_ORDERS if has_search or "text" not in sources]
    direct = [str(make_recipe(name, exemplars)) for name in ("fewshot", "cot")]
    search_options = {"final": Recipe("model"), **search}
    # final=model: in their papers these methods take the model's own answer, where a reader would quote passages.
    multi_hop = [str(make_recipe(name, search_options)) for name in ("iterretgen", "react", "dsp")]
    multi_hop = [str(make_recipe("selfask", {"reader": Recipe("hops"), **search_options})), *multi_hop]
    return Plan(
        [*direct, *(multi_hop if has_search and not claims else []), *map(chain, orders)],
        [*map(chain, ablation), *([chain(orders[0], choose=Recipe("hop"))] if has_search else [])],
        chain(orders[0]),
        has_search,
    )


Mistake = Literal[
    "false negative", "reasoning chain", "unfilled", "knowledge retrieval", "final answer", "undecided"
]
MISTAKES: tuple[Mistake, ...] = get_args(Mistake)
_ANY_LENGTH = Limits(1, 99)
#: Types of answers that are right only as a whole.
_EXACT_TYPES = {"label", "yes/no"}


def classify_mistake(result: Result, filling: Mapping[str, Any] | None) -> Mistake | None:
    """Return the class of a question's error, None for an exact match.

    ``filling`` is that of the run's record: the ``chain``, and the ``values`` of its unknowns (``{"#1": ["Lima"]}``);
    None where no chain was written.
    """
    if parse_metric("EM").measure(result) in {1.0, None}:
        return None
    if _is_as_good(result):
        return "false negative"
    if filling is None:
        return "reasoning chain"
    chain, values = parse_chain(filling["chain"], _ANY_LENGTH), filling["values"]
    gold = gold_hops(result.example)
    if gold and not chain_fits(chain, gold):
        return "reasoning chain"
    if any(not values.get(f"#{number}") for number in chain.unknowns):
        return "unfilled"
    if not gold:
        return "undecided"
    every_value = [candidate for values_of_unknown in values.values() for candidate in values_of_unknown]
    all_correct = all(any(same_value(candidate, hop.gold) for candidate in every_value) for hop in gold)
    return "final answer" if all_correct else "knowledge retrieval"


def _is_as_good(result: Result) -> bool:
    if result.abstained:
        return False
    if result.grade == 1 or is_near_match(result):
        return True
    example = result.example
    return example.answer_type not in _EXACT_TYPES and any(
        same_value(result.answer, answer) for answer in example.answers
    )


def chain_fits(chain: Chain, gold: Sequence[GoldHop]) -> bool:
    """Return whether a chain has as many hops as the gold one, and all constants that gold hops begin with.

    >>> from clew.triples.language.chain import Term
    >>> gold = [GoldHop(1, Triple(Term("Kismet (1920 film)"), "director", Term("#1")), "Louis J. Gasnier")]
    >>> chain_fits(parse_chain("Kismet >> directed by >> #1; final answer: #1", _ANY_LENGTH), gold)
    True
    """
    if len(chain.triples) != len(gold):
        return False
    return all(
        hop.required_unknowns or any(_shares_constant(triple, hop) for triple in chain.triples)
        for hop in gold
    )


def _shares_constant(triple: Triple, hop: GoldHop) -> bool:
    """Return whether a triple has the constant of a gold hop."""
    constants = [term.text for term in (triple.head, triple.tail) if term.unknown is None]
    if isinstance(hop.statement, Triple):
        head = hop.statement.head.text
        return any(mentions_name(constant, head) or mentions_name(head, constant) for constant in constants)
    words = set(query_terms(hop.statement.text))
    return any(words & set(query_terms(constant)) for constant in constants)


TITLE = "Semi-Structured Chain-of-Thought: the paper's experiments"
#: Columns of Tables 1 to 3, of Table 10, and of costs.
ANSWERS, LABELS, COSTS = ("EM", "F1"), ("accuracy",), ("calls", "tokens")


def write_semicot_page(experiments: Sequence[Experiment], settings: Settings) -> tuple[Path, Path]:
    """Run the paper's experiments over each data set, write ``page.md`` and ``page.html``, and return their paths.

    Finished parts are not run again. All experiments share their models and ``out``. Raises UsageError.
    """
    out = experiments[0].out
    command = page_command(experiments, settings)
    pooled = [experiment.questions.data for experiment in experiments if experiment.questions.pool]
    pool = dict.fromkeys([*map(full_data, pooled), *settings.pool])
    parts: list[str] = []
    titles = [experiment.questions.title for experiment in experiments]
    if len(set(titles)) < len(titles):
        raise UsageError("a data set is given twice", "Name each once: --data NAME=PATH")
    errors: list[dict[str, Any]] = []
    for experiment in experiments:
        plan = plan_recipes(experiment.questions, settings)
        graph_experiment: Experiment | None = None
        sections: list[Section] = []
        if experiment.settings.llm is not None:
            graph_experiment = _with_graphs(experiment, settings)
            runs = {run.recipe: run for run in graph_experiment.run(plan.recipes)}
            sections += _sections(graph_experiment, plan, runs)
            errors += _collect_errors(graph_experiment, runs[plan.chain])
            if settings.oracle and _gold_triples(experiment):
                sections.append(_oracle_section(graph_experiment, runs[plan.chain]))
        if experiment.questions.corpus == "pooled" and examples_with_hops(experiment):
            rounds_work = rounds_experiment(experiment, list(pool))
            sections.append(
                rounds_section(
                    rounds_work,
                    settings.compared_retrievers(experiment.settings.encoder is not None),
                    command,
                )
            )
            graph_experiment = graph_experiment or rounds_work
        omissions = _omissions(experiment, plan, settings)
        facts = (
            data_facts(graph_experiment, omissions)
            if graph_experiment
            else "\n\n".join(skipped_lines(omissions))
        )
        parts += [
            f"## {experiment.questions.title}",
            facts,
            *(section.to_markdown(out) for section in sections),
        ]
    if experiments[0].settings.llm is not None:
        parts += ["## Errors", _error_section(experiments, errors, command).to_markdown(out)]
    head = [f"# {TITLE}", environment_table(experiments, command), describe_samples(settings.samples)]
    return write_page(out, "\n\n".join([*head, *parts]) + "\n", TITLE)


def describe_samples(samples: int) -> str:
    """Return what the paper says of sampled chains, and what this page did."""
    drawn = (
        f"Here {samples} are drawn at temperature {TEMPERATURE}"
        if samples > 1
        else "Here the likeliest chain alone is taken (`--samples N` draws several)"
    )
    return (
        "Samples: the paper draws several chains for a question, drops those with syntactic errors and takes the one "
        "that most agree on (Section 3.1, Appendix B), but gives neither their number nor the temperature. "
        f"{drawn}."
    )


def page_command(experiments: Sequence[Experiment], settings: Settings) -> str:
    """Return the command line that writes the page."""
    words = [word for experiment in experiments for word in ("--data", full_data(experiment.questions.data))]
    words += [word for value in settings.pool for word in ("--pool", value)]
    words += ["--corpus", settings.corpus] if settings.corpus else []
    graphs = [*settings.graphs, *(["oracle"] if settings.oracle else [])]
    words += [word for value in graphs for word in ("--graph", value)]
    words += [word for value in settings.retrievers for word in ("--retriever", value)]
    words += ["--samples", str(settings.samples)] if settings.samples > 1 else []
    return add_shared_options("paper semicot", words, experiments[0])


def _with_graphs(experiment: Experiment, settings: Settings) -> Experiment:
    """Return the experiment with the page's graphs in its corpus; an existing base has only its own graphs."""
    if experiment.questions.corpus not in (*POOLED_CORPORA, "none"):
        return experiment
    return replace(experiment, settings=replace(experiment.settings, graphs=settings.graphs))


def _omissions(experiment: Experiment, plan: Plan, settings: Settings) -> dict[str, str]:
    """Return the experiments of the paper that this page leaves out, with the reasons."""
    if experiment.settings.llm is None:
        return {"all that a model answers": "needs --llm"}
    has_own_base = experiment.questions.corpus not in (*POOLED_CORPORA, "none")
    omissions: dict[str, str] = {}
    if settings.graphs and has_own_base:
        omissions["the graphs of --graph"] = "an existing base is asked with its own graphs"
    elif not settings.graphs and not has_own_base:
        omissions["every graph"] = "none is given (--graph FILE), so that sources=kg fills nothing"
    if not plan.has_search:
        problem = "there is nothing to search; name a base (--corpus FOLDER) or the web (--retriever serpapi)"
        omissions["what searches"] = problem
    return omissions


def _metrics(experiment: Experiment) -> tuple[str, ...]:
    return (*(LABELS if experiment.questions.name == "fever" else ANSWERS), *COSTS)


def _sections(experiment: Experiment, plan: Plan, runs: Mapping[str, Run]) -> Iterator[Section]:
    metrics = _metrics(experiment)
    tables = [
        (
            "Methods",
            "Standard few-shot prompting and the methods that the paper compares with, then the chain with its "
            "sources in two orders (paper: Tables 1, 2 and 10); means with 95 % bootstrap intervals. Data Synthesis, "
            "which is tuned on a million questions, is not among them.",
            plan.main,
        ),
        (
            "Sources and orders",
            "The chain with some of its sources, in one order and the other (paper: Table 3, which has those with "
            "the model). `choose=hop` asks all sources and takes the surest, hop by hop.",
            plan.ablation,
        ),
    ]
    for title, text, recipes in tables:
        table = runs_table([runs[recipe] for recipe in recipes], metrics, ranked_by=metrics[: -len(COSTS)])
        yield Section(f"{title}, {experiment.questions.title}", text, run_command(experiment, recipes), table)


def _gold_triples(experiment: Experiment) -> list[tuple[str, ...]]:
    """Return the gold triples of all questions without duplicates."""
    return list(
        dict.fromkeys(
            link for example in experiment.questions.examples for link in example.chain if len(link) == 3
        )
    )


def _oracle_section(experiment: Experiment, graph_run: Run) -> Section:
    """Return the section of the chain over the questions' own gold triples, beside its run over the given graphs."""
    path = experiment.out / f"oracle-{experiment.questions.name}.jsonl"
    names = ("head", "relation", "tail")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps(dict(zip(names, triple, strict=True)), ensure_ascii=False)
        for triple in _gold_triples(experiment)
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    oracle_experiment = replace(
        experiment, settings=replace(experiment.settings, graphs=(str(path),)), out=experiment.out / "oracle"
    )
    (oracle_run,) = oracle_experiment.run([graph_run.recipe])
    graphs = ", ".join(experiment.settings.graphs) or "none"
    renamed = [replace(oracle_run, recipe="oracle graph"), replace(graph_run, recipe=f"graphs: {graphs}")]
    return Section(
        f"Oracle graph, {experiment.questions.title}",
        f"The recipe `{graph_run.recipe}` over the graph of the questions' own gold triples, and over the given "
        "graphs (paper: Table 7, against Wikidata). Entities and relations are linked as in any graph; the paper "
        "compares strings.",
        "\n".join(run_command(run_of, [graph_run.recipe]) for run_of in (oracle_experiment, experiment)),
        runs_table(renamed, _metrics(experiment), renamed[1].recipe, ranked_by=()),
    )


def _collect_errors(experiment: Experiment, run: Run) -> list[dict[str, Any]]:
    """Return the wrong answers with their class and all that a person needs to judge them."""
    records = {record["id"]: record for record in experiment.folder.result_file(run.recipe).records()}
    errors = []
    for id, result in run.results.items():
        filling = records[id].get("filling")
        mistake = classify_mistake(result, filling)
        if mistake is not None:
            errors.append(
                {
                    "data": experiment.questions.title,
                    "id": id,
                    "class": mistake,
                    **_error_details(result, filling),
                }
            )
    return errors


def _error_details(result: Result, filling: Mapping[str, Any] | None) -> dict[str, Any]:
    example = result.example
    return {
        "question": example.question,
        "chain": filling["chain"] if filling else "",
        "values": filling["values"] if filling else {},
        "prediction": "" if result.abstained else result.answer,
        "gold": list(example.answers),
        "gold chain": [list(link) for link in example.chain],
    }


def _error_section(
    experiments: Sequence[Experiment], errors: Sequence[Mapping[str, Any]], command: str
) -> Section:
    """Return the section that counts the error classes, and write all errors to ``errors.jsonl``."""
    out = experiments[0].out
    path = out / "errors.jsonl"
    lines = (json.dumps(error, ensure_ascii=False) + "\n" for error in errors)
    path.write_text("".join(lines), encoding="utf-8")
    titles = [experiment.questions.title for experiment in experiments]
    counts = Counter((str(error["class"]), str(error["data"])) for error in errors)
    rows = [{"class": mistake, **{title: counts[mistake, title] for title in titles}} for mistake in MISTAKES]
    return Section(
        "Errors of the chain",
        "Answers that are no exact match, by class (paper: Table 8, sorted by hand, with unfilled chains as "
        "knowledge retrieval). A rule derives the class from the chain, its values and the gold hops, so it is "
        f"a first sorting; every error is in [{path.name}](<{path.name}>) to be read.",
        command,
        points_table({"class": "class", **{title: title for title in titles}}, rows),
    )
