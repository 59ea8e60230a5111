"""The commands of the papers' experiments: ``clew eval annotate``, ``graphs``, ``paper``.

The command line finds them by the entry points of the group ``clew.commands``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from clew.app.cli.command_group import EXIT_INTERRUPTED, CommandGroup
from clew.app.cli.evaluate import (
    Articles,
    DocumentCount,
    SecondEncoder,
    choose_encoder,
    evaluation_session,
    evaluation_settings,
)
from clew.app.cli.options import Llm, announce_text_destination
from clew.app.cli.output import format_count, print_line, print_note, print_text, show_progress

if TYPE_CHECKING:
    from clew.evaluate.run_folder import Experiment
    from clew.papers.page import Section

Data: TypeAlias = Annotated[
    list[str],
    typer.Option(metavar="NAME=PATH", help="A data set: its format and its file; may be repeated."),
]
Graphs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--graph",
        "-g",
        metavar="NAME",
        help="A graph: keywords, mentions, knn or entities; may be repeated.",
        show_default="all that can be built",
    ),
]
Corpus: TypeAlias = Annotated[
    str, typer.Option(metavar="question|pooled|own|kb|FOLDER", help="The corpus of the questions.")
]
Out: TypeAlias = Annotated[
    Path,
    typer.Option(
        metavar="DIR", help="The folder for results, tables and figures; an interrupted run continues there."
    ),
]
Encoder: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The encoder, such as onnx:FOLDER, or none (default: clew:hops).",
        show_default=False,
    ),
]
Passages: TypeAlias = Annotated[
    str, typer.Option(metavar="UNIT", help="The unit of passages: sentence or paragraph.")
]
Sentences: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="Sentences in the corpus of a question, negatives included.")
]
Limit: TypeAlias = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Ask a random sample of N questions.", show_default=False),
]
Seed: TypeAlias = Annotated[int, typer.Option(help="The seed for sampling questions and negatives.")]
Workers: TypeAlias = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Ask N questions at once; more than one makes latencies unreliable."
    ),
]
Pool: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--pool",
        metavar="NAME=PATH",
        help="A data set whose paragraphs join the pooled corpus; may be repeated.",
        show_default=False,
    ),
]
PageFolder: TypeAlias = Annotated[
    Path, typer.Option(metavar="DIR", help="The folder for the results and the page.")
]
ANALYSES_FOLDER = Path("analyses")


@contextmanager
def figure_session(
    data: Sequence[str],
    corpus: str,
    out: Path,
    llm: Sequence[str] | None,
    encoder: str | None,
    passages: str,
    sentences: int,
    limit: int | None,
    seed: int,
    workers: int = 1,
    documents: int | None = None,
    articles: Path | None = None,
    beside: str | None = None,
) -> Iterator[list[Experiment]]:
    """Give one experiment per data set, after checking that figures can be drawn.

    ``llm`` is as in :func:`evaluation_session`: None for the configured model, ``()`` for none. Raises UsageError,
    MissingExtra.
    """
    from clew.evaluate.setup import load_questions
    from clew.papers.figures import load_pyplot

    # A missing matplotlib is reported before hours of measuring, not after them.
    load_pyplot()
    with evaluation_session(
        out,
        llm,
        encoder,
        passages,
        sentences,
        seed,
        workers,
        documents=documents,
        articles=articles,
        beside=beside,
    ) as create_experiment:
        yield [create_experiment(load_questions(name, corpus, limit, seed)) for name in data]


def graphs(
    data: Data,
    graph: Graphs = None,
    corpus: Corpus = "question",
    out: Out = ANALYSES_FOLDER,
    encoder: Encoder = None,
    passages: Passages = "sentence",
    sentences: Sentences = 700,
    documents: DocumentCount = None,
    articles: Articles = None,
    beside: SecondEncoder = None,
    limit: Limit = None,
    seed: Seed = 0,
) -> None:
    """Plot the quality of graphs against their density, and print their statistics (KGP paper).

    These are Figures 5 and 9 and Tables 2 and 4 of the paper.
    Each graph is built over each question's corpus at several values of its parameter: number of keywords, how common
    a name may be, number of neighbours, threshold of entities. Needs the extra plots. An interrupted run continues
    when it is started again.

      clew eval graphs --data hotpotqa=dev.json --limit 100 --out figures
    """
    from clew.papers.kgp import graph_sections

    with figure_session(
        data, corpus, out, (), encoder, passages, sentences, limit, seed, 1, documents, articles, beside
    ) as experiments:
        for experiment in experiments:
            for section in graph_sections(experiment, _choose_graphs(experiment, graph)):
                _print_section(section)


def annotate(
    data: Data,
    service: Annotated[str, typer.Option(metavar="NAME", help="The service: wat or tagme.")] = "wat",
    language: Annotated[str, typer.Option(metavar="CODE", help="The language of the passages.")] = "en",
    url: Annotated[
        str,
        typer.Option(
            metavar="URL", help="The address of another server of the same service.", show_default=False
        ),
    ] = "",
    corpus: Corpus = "question",
    passages: Passages = "sentence",
    sentences: Sentences = 700,
    documents: DocumentCount = None,
    articles: Articles = None,
    limit: Limit = None,
    seed: Seed = 0,
) -> None:
    """Link the passages of evaluation corpora to Wikipedia entities, for the graph 'entities' (KGP paper).

    This sends the passages to the public service WAT or TAGME, at most two per second, and keeps what it answers in
    your cache: stop it at will, and start it again with the same options. The other commands of the paper, with the
    same corpus, then build the graph. You need a free token of the TagMe VRE at D4Science in CLEW_TAGME_TOKEN.

      clew eval annotate --data hotpotqa=dev.json --limit 100 --documents 12

      clew eval paper kgp --data hotpotqa=dev.json --limit 100 --documents 12 --out page
    """
    from clew.core.config import annotation_token
    from clew.evaluate.setup import load_questions, open_stores
    from clew.graph.annotation import AnnotationCache, AnnotationService, annotate_passages, count_unannotated

    settings = evaluation_settings(
        (), "none", passages, sentences, seed, documents=documents, articles=articles
    )
    annotator = AnnotationService(annotation_token(), service, language, url)
    annotations = AnnotationCache.default()
    print_note(f"the texts of passages go to {annotator.url}")
    sent = 0
    try:
        for name in data:
            questions = load_questions(name, corpus, limit, seed)
            report = show_progress(f"annotate {questions.title}")
            shared = questions.corpus != "question"
            examples = questions.examples[:1] if shared else questions.examples
            with open_stores(questions, settings, show_progress("corpus") if shared else None) as store_for:
                for count, example in enumerate(examples, 1):
                    snapshot = store_for(example).snapshot()
                    if count_unannotated(snapshot, annotator.maker, annotations):
                        sent += annotate_passages(
                            snapshot, annotator, annotations, report if shared else None
                        )
                    if not shared:
                        report(count, len(examples))
    except KeyboardInterrupt:
        print_note("clew: stopped; what was annotated is kept. To continue, run the same command again.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    print_line(f"{format_count(sent, 'passage')} annotated by {service}")


def _choose_graphs(experiment: Experiment, names: Sequence[str] | None) -> list[str]:
    """Return the named graphs, or all that can be built; say on stderr which cannot be built, and why."""
    from clew.papers.kgp import find_buildable_graphs

    if names:
        return list(names)
    buildable, problems = find_buildable_graphs(experiment)
    for name, problem in problems.items():
        print_note(f"{name} is skipped: {problem}")
    return buildable


def _print_section(section: Section) -> None:
    _print_paths(section.figures)
    print_text(f"\n{section.title}\n\n{section.table}")


def _print_paths(paths: Sequence[Path]) -> None:
    for path in paths:
        print_line(path)


app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Run the experiments of a paper over data sets and write them to one page: page.md, page.html and the "
    "figures. An interrupted run continues when it is started again.",
)


def _repeatable(option: str, metavar: str, text: str) -> typer.models.OptionInfo:
    """Return an option that may be given several times."""
    info: typer.models.OptionInfo = typer.Option(
        option, metavar=metavar, help=f"{text}; may be repeated.", show_default=False
    )
    return info


@app.command("kgp")
def kgp(
    data: Data,
    out: PageFolder,
    corpus: Corpus = "question",
    llm: Llm = None,
    encoder: Encoder = None,
    sentences: Sentences = 700,
    documents: DocumentCount = None,
    articles: Articles = None,
    beside: SecondEncoder = None,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """Knowledge Graph Prompting (Wang et al., AAAI 2024).

    Compares the methods (Table 1) that the given models allow; graph statistics (Tables 2 and 4), graph quality
    (Figures 5 and 9), the guides of the walk (Table 3), density (Figures 6 and 10), branching factor (7). Passages
    are sentences. Needs the extra plots.

      clew eval paper kgp --data hotpotqa=dev.json --data musique=dev.jsonl --limit 100 --out page

      clew eval paper kgp --data hotpotqa=dev.json --documents 12 --articles wikipedia.jsonl --beside onnx:minilm
      --llm openai:gpt-4o-mini --out page     document sets as in the paper; KNN-ST beside KNN-MDR
    """
    with figure_session(
        data,
        corpus,
        out,
        llm,
        encoder,
        "sentence",
        sentences,
        limit,
        seed,
        workers,
        documents,
        articles,
        beside,
    ) as experiments:
        from clew.papers.kgp import write_kgp_page

        _print_paths(write_kgp_page(experiments))


@app.command("d3")
def d3(
    data: Data,
    out: PageFolder,
    corpus: Corpus = "own",
    llm: Llm = None,
    encoder: Encoder = None,
    reranker: Annotated[
        list[str] | None,
        _repeatable(
            "--reranker", "NAME", "Such as monot5:castorini/monot5-base-msmarco-10k or cross-encoder:FOLDER"
        ),
    ] = None,
    summariser: Annotated[list[str] | None, _repeatable("--summariser", "NAME", "Another summariser")] = None,
    choose_with: Annotated[
        list[str] | None, _repeatable("--choose-with", "MODEL", "Another model that chooses")
    ] = None,
    answer_with: Annotated[
        list[str] | None, _repeatable("--answer-with", "MODEL", "Another model that answers")
    ] = None,
    sentences: Sentences = 700,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """Drilling Down into the Discourse Structure (D3: Nair et al., EMNLP 2023), over QASPER or HotpotQA-Doc.

    Answers by type, evidence and the cost of finding it (Table 1), Self-Ask (Table 2), strategies, summarisers and
    models (Table 3), headings (Table 4), question categories (Table 5), document length and chunk size (Figures 3 and
    4). Needs the extra plots.

      clew eval paper d3 --data qasper=qasper-dev.json --limit 150 --llm openai:gpt-4o-mini --out page
    """
    with figure_session(
        data, corpus, out, llm, encoder, "paragraph", sentences, limit, seed, workers
    ) as experiments:
        from clew.papers.d3 import Variants, write_d3_page

        variants = Variants(reranker or (), summariser or (), choose_with or (), answer_with or ())
        _print_paths(write_d3_page(experiments, variants))


@app.command("semicot")
def semicot(
    data: Data,
    out: PageFolder,
    corpus: Annotated[
        str | None,
        typer.Option(
            metavar="none|kb|FOLDER", help="The corpus of Bamboogle and FEVER.", show_default="none"
        ),
    ] = None,
    llm: Llm = None,
    encoder: Encoder = None,
    graph: Annotated[
        list[str] | None,
        _repeatable(
            "--graph",
            "FILE|URL|oracle",
            "A graph, as for clew graph add or clew graph mount; oracle: the questions' gold triples",
        ),
    ] = None,
    retriever: Annotated[
        list[str] | None,
        _repeatable(
            "--retriever",
            "[DATA=]NAME",
            "The retriever of the methods (default: search), optionally for one data set; all named ones are "
            "compared in rounds",
        ),
    ] = None,
    pool: Pool = None,
    samples: Annotated[int, typer.Option(min=1, metavar="N", help="Chains drawn for self-consistency.")] = 1,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """Semi-Structured Chain-of-Thought (Su et al., NAACL 2024), over 2WikiMultihopQA, the 2-hop questions of MuSiQue,
    Bamboogle and FEVER.

    With a language model: the methods compared (Tables 1, 2 and 10), sources and their orders (Table 3), an oracle
    graph (Table 7), error classes (Table 8). With or without one: single- against multi-round retrieval (Table 6).
    The pooled corpus of a data set has the paragraphs of its whole file and of the files that --pool names.

      clew eval paper semicot --data 2wikimultihopqa=dev.json --data musique=dev.jsonl --graph wikidata.nt.gz --graph
      oracle --limit 100 --llm openai:gpt-4o-mini --out page

      clew eval paper semicot --data musique=dev.jsonl --retriever search --retriever kgp --out page     no model
    """
    from clew.evaluate.setup import CORPUS_SENTENCES
    from clew.papers.semicot import build_settings

    settings = build_settings(graph or (), retriever or (), pool or (), corpus, samples)
    with evaluation_session(
        out, llm, encoder, "paragraph", CORPUS_SENTENCES, seed, workers
    ) as create_experiment:
        from clew.papers.semicot import write_semicot_page

        experiments = [create_experiment(settings.load_questions(name, limit, seed)) for name in data]
        _print_paths(write_semicot_page(experiments, settings))


@app.command("exemplars")
def exemplars(
    data: Annotated[
        str, typer.Option("--data", metavar="NAME=FILE", help="Training questions with gold hops.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FILE.jsonl", help="In the folder exemplars of CLEW_PROMPTS.", dir_okay=False
        ),
    ],
    number: Annotated[int, typer.Option("--number", "-n", min=1, metavar="N", help="Exemplars.")] = 25,
    seed: Seed = 0,
) -> None:
    """Make few-shot exemplars of a data set's training questions, for chain, fewshot and cot.

    The page semicot uses exemplars/NAME.jsonl for the data set NAME; a recipe names them: chain(exemplars=NAME).

      clew eval paper exemplars --data 2wikimultihopqa=train.json --out prompts/exemplars/2wikimultihopqa.jsonl
    """
    import json

    from clew.evaluate.datasets import parse_dataset
    from clew.papers.gold_hops import make_exemplars

    shots = make_exemplars(list(parse_dataset(data).examples()), number, seed)
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(shot, ensure_ascii=False) for shot in shots]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print_line(out)


@app.command("4stepfocus")
def fourstep(
    data: Data,
    graph: Annotated[
        list[str],
        typer.Option(
            "--graph",
            metavar="PLACE",
            help="The graph of the questions: a folder in STaRK's layout, a file that clew graph add reads, or a "
            "knowledge base with one graph; one for all data sets, or one for each in their order.",
        ),
    ],
    out: PageFolder,
    llm: Llm = None,
    encoder: Encoder = None,
    retriever_encoder: Annotated[
        list[str] | None,
        _repeatable(
            "--retriever-encoder",
            "NAME",
            "A trained dense retriever: onnx:FOLDER from clew train encoder",
        ),
    ] = None,
    embed_all: Annotated[
        bool,
        typer.Option(
            "--embed-all",
            help="First make the vector of every possible answer, with each named encoder.",
        ),
    ] = False,
    samples: Annotated[int, typer.Option(min=1, metavar="N", help="Drafts of a question's triples.")] = 1,
    limit: Limit = None,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """4StepFocus (Boer et al., 2024), over STaRK's questions or MetaQA's and a graph.

    Compares the methods (Table 1) that the given models allow: BM25, VSS, Multi-VSS, a trained dense retriever, VSS
    with a reranker, 4StepFocus; then typed against any relations, listwise reranking and none; outcomes of the
    triples and error classes; for MetaQA, oracle triples, which need no model. Published figures are in a separate
    table. The graph is added once to a base in DIR, and its vectors are kept there.

      clew eval paper 4stepfocus --data stark=prime/stark_qa/stark_qa.csv#test-0.1 --graph prime/processed --llm
      openai:gpt-4o --out page

      clew eval paper 4stepfocus --data metaqa=dev_2hop.jsonl --graph films.tsv --out page     no model
    """
    from clew.evaluate.setup import CORPUS_SENTENCES, load_questions
    from clew.papers.fourstep import build_settings, open_graph_bases

    settings = build_settings(
        data, graph, retriever_encoder or (), samples, embed_all, choose_encoder(encoder)
    )
    what = "questions and texts of nodes"
    with evaluation_session(
        out, llm, encoder, "paragraph", CORPUS_SENTENCES, seed, workers, what
    ) as create_experiment:
        from clew.knowledge_base import registry
        from clew.papers.fourstep import write_fourstep_page

        for name in settings.encoders:
            announce_text_destination(what, registry.load_encoder(name))
        places = settings.graphs * (len(data) if len(settings.graphs) == 1 else 1)
        bases = open_graph_bases(places, out, show_progress)
        experiments = [
            create_experiment(load_questions(name, str(base), limit, seed))
            for name, base in zip(data, bases, strict=True)
        ]
        _print_paths(write_fourstep_page(experiments, settings))
