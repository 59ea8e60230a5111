"""What the experiments of Semi-Structured Chain-of-Thought run: recipes by data set, as far as there is something to
search."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from clew.core.errors import UsageError, unknown_name_error
from clew.core.recipe import Recipe, make_recipe, parse_recipe
from clew.core.text import query_terms
from clew.evaluate.examples import Result
from clew.evaluate.metrics import parse_metric
from clew.evaluate.report import is_near_match
from clew.evaluate.setup import POOLED_CORPORA, load_questions
from clew.methods.chain.value_matching import mentions_name, same_value
from clew.papers.gold_hops import GoldHop, gold_hops
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
from clew.papers.semicot_rounds import examples_with_hops, rounds_experiment, rounds_section
from clew.triples.language.chain import Chain, Limits, Triple, parse_chain

if TYPE_CHECKING:
    from clew.evaluate.report import Run
    from clew.evaluate.run_folder import Experiment
    from clew.evaluate.setup import QuestionSet

#: The data sets of the paper in the form that is read (Appendix C: of MuSiQue the 2-hop questions), and whether their
#: paragraphs are pooled; the others are asked of the web, or of a base that is named.
DATA_SETS = {"2wikimultihopqa": True, "musique-2hop": True, "bamboogle": False, "fever": False}
TWO_HOPS = {"musique": "musique-2hop"}
#: Retrievers that search elsewhere than in a base.
WEB = ("serpapi",)
ORACLE = "oracle"
#: The orders of Tables 1 and 2, and what Table 3 leaves out, with more.
ORDERS = ("kg,text,model", "text,kg,model")
ABLATION_ORDERS = ("kg", "text", "model", "kg,text", "text,kg", "kg,model", "text,model", *ORDERS)
#: Bamboogle is asked with four exemplars (Appendix D).
FOUR_SHOTS: dict[str, Any] = {"exemplars": Recipe("compositional"), "shots": 4}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a page was asked for.

    ``retrievers`` are names, or ``DATA=NAME``; ``corpus`` is for data sets that bring no paragraphs; ``pool`` names
    data sets whose paragraphs are pooled as well; ``samples`` are chains drawn at once.
    """

    graphs: tuple[str, ...] = ()
    oracle: bool = False
    retrievers: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    corpus: str | None = None
    samples: int = 1

    def load_questions(self, data: str, limit: int | None, seed: int) -> QuestionSet:
        """Return the questions of ``NAME=PATH`` as the paper asks them: pooled, over all paragraphs of their file.

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
        """Return what finds passages for the methods: that of the data set, else the first, else ``search``."""
        named = [_divided(one) for one in self.retrievers]
        own = [recipe for name, recipe in named if name == data]
        return next(iter([*own, *(recipe for name, recipe in named if not name)]), "search")

    def compared_retrievers(self, encoder: bool) -> list[str]:
        """Return the retrievers whose rounds are compared: those that are named, else all usual ones."""
        named = [recipe for _, recipe in map(_divided, self.retrievers) if not searches_web(recipe)]
        usual = ["search", "bm25", *(["dense", "hybrid"] if encoder else []), "kgp"]
        return list(dict.fromkeys(named)) or usual


def build_settings(
    graphs: Sequence[str], retrievers: Sequence[str], pool: Sequence[str], corpus: str | None, samples: int
) -> Settings:
    """Return the settings of a page. Raises UsageError for names that make no sense."""
    if corpus in POOLED_CORPORA or corpus == "question":
        raise UsageError(
            f"Bamboogle and FEVER bring no paragraphs for the corpus '{corpus}'",
            "Name a knowledge base: --corpus FOLDER; the other data sets are always pooled",
        )
    for one in retrievers:
        parse_recipe(_divided(one)[1])
    places = tuple(one for one in graphs if one != ORACLE)
    for one in places:
        if "://" not in one and not Path(one).exists():
            raise UsageError(f"no graph at {one}", "Name a file, a SPARQL endpoint's URL, or oracle")
    return Settings(places, ORACLE in graphs, tuple(retrievers), tuple(pool), corpus, samples)


def full_data(data: str) -> str:
    """Return the ``NAME=PATH`` of all questions of a file of which only those of two hops are asked."""
    name, equals, path = data.partition("=")
    return next((f"{full}{equals}{path}" for full, two in TWO_HOPS.items() if name == two), data)


def _divided(retriever: str) -> tuple[str, str]:
    """Return the data set that a retriever was named for ("" for all) and its recipe."""
    name, equals, recipe = retriever.partition("=")
    name = TWO_HOPS.get(name, name)
    return (name, recipe) if equals and name in DATA_SETS else ("", retriever)


def searches_web(retriever: str) -> bool:
    """Return whether a retriever searches the web, so that there is something to find without a corpus."""
    return parse_recipe(retriever).name in WEB


@dataclass(frozen=True, slots=True)
class Plan:
    """The recipes of a data set: those of the main table, of the ablation, and ``chain`` as it is looked at closely
    (the oracle graph, the error classes). ``searched``: there are passages to be found."""

    main: list[str]
    ablation: list[str]
    chain: str
    has_search: bool

    @property
    def recipes(self) -> list[str]:
        """Every recipe once."""
        return list(dict.fromkeys([*self.main, *self.ablation]))


def plan_recipes(data: QuestionSet, settings: Settings) -> Plan:
    """Return what is run over a data set: claims by the methods that know claims, as in Table 10; where nothing can
    be searched, what asks a model or a graph alone."""
    retriever = settings.retriever_for(data.name)
    searched = data.corpus != "none" or searches_web(retriever)
    search: dict[str, Any] = {"retriever": parse_recipe(retriever)} if searched else {}
    claims = data.name == "fever"
    shown = {"task": Recipe("claim")} if claims else FOUR_SHOTS if data.name == "bamboogle" else {}

    def chain(sources: str, **more: Any) -> str:
        sampled = {"samples": settings.samples} if settings.samples > 1 else {}
        options = {"sources": sources, "reader": Recipe("hops"), **shown, **search, **sampled, **more}
        return str(make_recipe("chain", options))

    orders = ORDERS if searched else ("kg,model",)
    ablated = [one for one in ABLATION_ORDERS if searched or "text" not in one]
    direct = [str(make_recipe(name, shown)) for name in ("fewshot", "cot")]
    model = {"final": Recipe("model"), **search}
    # Readers answer in passages' words; these papers' own answers are the model's.
    asking = [str(make_recipe(name, model)) for name in ("iterretgen", "react", "dsp")]
    asking = [str(make_recipe("selfask", {"reader": Recipe("hops"), **search})), *asking]
    return Plan(
        [*direct, *(asking if searched and not claims else []), *map(chain, orders)],
        [*map(chain, ablated), *([chain(orders[0], choose=Recipe("hop"))] if searched else [])],
        chain(orders[0]),
        searched,
    )


Mistake = Literal[
    "false negative", "reasoning chain", "unfilled", "knowledge retrieval", "final answer", "undecided"
]
MISTAKES: tuple[Mistake, ...] = get_args(Mistake)
_ANY = Limits(1, 99)
#: Answers that are no names: only the whole of them is right.
_WHOLE = {"label", "yes/no"}


def classify_mistake(result: Result, filling: Mapping[str, Any] | None) -> Mistake | None:
    """Return the class of a question's error, None where the answer is exactly right.

    ``filling`` is what the record of a run keeps of the chain: ``chain`` with its unknowns, ``values`` of each
    (``{"#1": ["Lima"]}``); None where no chain was written.
    """
    if parse_metric("EM").measure(result) in {1.0, None}:
        return None
    if _as_good(result):
        return "false negative"
    if filling is None:
        return "reasoning chain"
    chain, values = parse_chain(filling["chain"], _ANY), filling["values"]
    gold = gold_hops(result.example)
    if gold and not chain_fits(chain, gold):
        return "reasoning chain"
    if any(not values.get(f"#{number}") for number in chain.unknowns):
        return "unfilled"
    if not gold:
        return "undecided"
    every = [value for some in values.values() for value in some]
    right = all(any(same_value(value, hop.gold) for value in every) for hop in gold)
    return "final answer" if right else "knowledge retrieval"


def _as_good(result: Result) -> bool:
    if result.abstained:
        return False
    if result.grade == 1 or is_near_match(result):
        return True
    example = result.example
    return example.answer_type not in _WHOLE and any(
        same_value(result.answer, one) for one in example.answers
    )


def chain_fits(chain: Chain, gold: Sequence[GoldHop]) -> bool:
    """Return whether a chain has as many hops as the gold one, and all that the gold one begins with.

    >>> from clew.triples.language.chain import Term
    >>> asked = [Hop(1, Triple(Term("Kismet (1920 film)"), "director", Term("#1")), "Louis J. Gasnier")]
    >>> fits(parse("Kismet >> directed by >> #1; final answer: #1", _ANY), asked)
    True
    """
    if len(chain.triples) != len(gold):
        return False
    return all(hop.required_unknowns or any(_about(triple, hop) for triple in chain.triples) for hop in gold)


def _about(triple: Triple, hop: GoldHop) -> bool:
    """Return whether a triple has the constant that a gold hop begins with."""
    constants = [term.text for term in (triple.head, triple.tail) if term.unknown is None]
    if isinstance(hop.statement, Triple):
        head = hop.statement.head.text
        return any(mentions_name(one, head) or mentions_name(head, one) for one in constants)
    words = set(query_terms(hop.statement.text))
    return any(words & set(query_terms(one)) for one in constants)


TITLE = "Semi-Structured Chain-of-Thought: the paper's experiments"
#: Columns of Tables 1 to 3, and of Table 10; with what they cost.
ANSWERS, LABELS, COSTS = ("EM", "F1"), ("accuracy",), ("calls", "tokens")


def write_semicot_page(works: Sequence[Experiment], settings: Settings) -> tuple[Path, Path]:
    """Run what the paper ran over each data set and write ``page.md`` and ``page.html``; return them.

    What is there already is not run again. All works have the same models and the same ``out``. Raises UsageError.
    """
    out = works[0].out
    command = page_command(works, settings)
    pool = dict.fromkeys(
        [*(full_data(one.questions.data) for one in works if one.questions.pool), *settings.pool]
    )
    parts: list[str] = []
    titles = [work.questions.title for work in works]
    if len(set(titles)) < len(titles):
        raise UsageError("a data set is given twice", "Name each once: --data NAME=PATH")
    wrong: list[dict[str, Any]] = []
    for work in works:
        planned = plan_recipes(work.questions, settings)
        facts_work: Experiment | None = None
        sections: list[Section] = []
        if work.settings.llm is not None:
            facts_work = _with_graphs(work, settings)
            runs = {run.recipe: run for run in facts_work.run(planned.recipes)}
            sections += _sections(facts_work, planned, runs)
            wrong += _errors(facts_work, runs[planned.chain])
            if settings.oracle and _triples(work):
                sections.append(_oracle(facts_work, runs[planned.chain]))
        if work.questions.corpus == "pooled" and examples_with_hops(work):
            asked = rounds_experiment(work, list(pool))
            sections.append(
                rounds_section(
                    asked, settings.compared_retrievers(work.settings.encoder is not None), command
                )
            )
            facts_work = facts_work or asked
        missing = _left_out(work, planned, settings)
        facts = data_facts(facts_work, missing) if facts_work else _skipped(missing)
        parts += [f"## {work.questions.title}", facts, *(section.to_markdown(out) for section in sections)]
    if works[0].settings.llm is not None:
        parts += ["## Errors", _error_section(works, wrong, command).to_markdown(out)]
    return write_page(
        out, "\n\n".join([f"# {TITLE}", environment_table(works, command), *parts]) + "\n", TITLE
    )


def page_command(works: Sequence[Experiment], settings: Settings) -> str:
    """Return the command line that makes the page."""
    words = [word for work in works for word in ("--data", full_data(work.questions.data))]
    words += [word for one in settings.pool for word in ("--pool", one)]
    words += ["--corpus", settings.corpus] if settings.corpus else []
    graphs = [*settings.graphs, *(["oracle"] if settings.oracle else [])]
    words += [word for one in graphs for word in ("--graph", one)]
    words += [word for one in settings.retrievers for word in ("--retriever", one)]
    words += ["--samples", str(settings.samples)] if settings.samples > 1 else []
    return add_shared_options("paper semicot", words, works[0])


def _with_graphs(work: Experiment, settings: Settings) -> Experiment:
    """Return the work with the graphs of the page beside its corpus; a base of one's own keeps to its own."""
    if work.questions.corpus not in (*POOLED_CORPORA, "none"):
        return work
    return replace(work, settings=replace(work.settings, graphs=settings.graphs))


def _left_out(work: Experiment, planned: Plan, settings: Settings) -> dict[str, str]:
    """Return what the paper ran and this page did not, and why."""
    if work.settings.llm is None:
        return {"all that a model answers": "needs --llm"}
    own = work.questions.corpus not in (*POOLED_CORPORA, "none")
    graphs = {"every graph": "none is given (--graph FILE), so that sources=kg fills nothing"}
    return {
        **({} if settings.graphs or own else graphs),
        **({"the graphs of --graph": "a base of one's own is asked with its own"} if settings.graphs and own else {}),
        **({} if planned.has_search else {"what searches": "there is nothing to search; name a base (--corpus FOLDER) "  # noqa: E501
                                        "or the web (--retriever serpapi)"}),
    }  # fmt: skip


def _skipped(missing: Mapping[str, str]) -> str:
    return "\n\n".join(f"Skipped: {what}: {why}." for what, why in missing.items())


def _metrics(work: Experiment) -> tuple[str, ...]:
    return (*(LABELS if work.questions.name == "fever" else ANSWERS), *COSTS)


def _sections(work: Experiment, planned: Plan, runs: Mapping[str, Run]) -> Iterator[Section]:
    metrics = _metrics(work)
    shown = [
        (
            "Methods",
            "Standard few-shot prompting and the methods that the paper compares with, then the chain with its "
            "sources in two orders (paper: Tables 1, 2 and 10); means with 95 % bootstrap intervals. Data Synthesis, "
            "which is tuned on a million questions, is not among them.",
            planned.main,
        ),
        (
            "Sources and orders",
            "The chain with some of its sources, in one order and the other (paper: Table 3, which has those with "
            "the model). `choose=hop` asks all sources and takes the surest, hop by hop.",
            planned.ablation,
        ),
    ]
    for title, text, recipes in shown:
        table = runs_table([runs[one] for one in recipes], metrics, ranked_by=metrics[: -len(COSTS)])
        yield Section(f"{title}, {work.questions.title}", text, run_command(work, recipes), table)


def _triples(work: Experiment) -> list[tuple[str, ...]]:
    """Return the gold triples of all questions, each once."""
    return list(
        dict.fromkeys(link for one in work.questions.examples for link in one.chain if len(link) == 3)
    )


def _oracle(work: Experiment, given: Run) -> Section:
    """Return the chain over the graph of the questions' own gold triples, beside the graphs that were given."""
    path = work.out / f"oracle-{work.questions.name}.jsonl"
    names = ("head", "relation", "tail")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(dict(zip(names, one, strict=True)), ensure_ascii=False) for one in _triples(work))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    other = replace(work, settings=replace(work.settings, graphs=(str(path),)), out=work.out / "oracle")
    (run,) = other.run([given.recipe])
    graphs = ", ".join(work.settings.graphs) or "none"
    named = [replace(run, recipe="oracle graph"), replace(given, recipe=f"graphs: {graphs}")]
    return Section(
        f"Oracle graph, {work.questions.title}",
        f"The recipe `{given.recipe}` over the graph of the questions' own gold triples, and over what was given "
        "(paper: Table 7, against Wikidata). Entities and relations are linked as in any graph; the paper compares "
        "strings.",
        "\n".join(run_command(one, [given.recipe]) for one in (other, work)),
        runs_table(named, _metrics(work), named[1].recipe, ranked_by=()),
    )


def _errors(work: Experiment, run: Run) -> list[dict[str, Any]]:
    """Return what was answered wrongly, with all that a person needs to judge it."""
    records = {one["id"]: one for one in work.folder.result_file(run.recipe).records()}
    found = []
    for id, result in run.results.items():
        filling = records[id].get("filling")
        kind = classify_mistake(result, filling)
        if kind is not None:
            found.append({"data": work.questions.title, "id": id, "class": kind, **_shown(result, filling)})
    return found


def _shown(result: Result, filling: Mapping[str, Any] | None) -> dict[str, Any]:
    example = result.example
    return {
        "question": example.question,
        "chain": filling["chain"] if filling else "",
        "values": filling["values"] if filling else {},
        "prediction": "" if result.abstained else result.answer,
        "gold": list(example.answers),
        "gold chain": [list(link) for link in example.chain],
    }


def _error_section(works: Sequence[Experiment], wrong: Sequence[Mapping[str, Any]], command: str) -> Section:
    """Return how often the chain was wrong in which way, and write every error down."""
    out = works[0].out
    path = out / "errors.jsonl"
    lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in wrong)
    path.write_text("".join(lines), encoding="utf-8")
    titles = [work.questions.title for work in works]
    counts = Counter((str(one["class"]), str(one["data"])) for one in wrong)
    rows = [{"class": kind, **{title: counts[kind, title] for title in titles}} for kind in MISTAKES]
    return Section(
        "Errors of the chain",
        "Answers that are no exact match, by class (paper: Table 8, sorted by hand; what was not filled is there "
        "among knowledge retrieval). Classes are told by rule from the chain, its values and the gold hops, so they "
        f"are a first sorting; every error is in [{path.name}](<{path.name}>) to be read.",
        command,
        points_table({"class": "class", **{title: title for title in titles}}, rows),
    )


# MERGED: Why the method ``chain`` was wrong: the error classes of Su et al. (NAACL 2024, Appendix H), told
# from its trail.
# MERGED: The experiments of Semi-Structured Chain-of-Thought (Su et al., NAACL 2024) over data sets of one's
# own, and the
