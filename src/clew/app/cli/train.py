"""``clew train``: readers, encoders, and language models that guide walks, trained on questions with evidence."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.app.cli.command_group import CommandGroup, interruptible
from clew.app.cli.options import option
from clew.app.cli.output import format_count, print_line, print_note, show_progress
from clew.core.config import DEFAULT_READER
from clew.core.errors import UsageError

if TYPE_CHECKING:
    from clew.train.encoder import EncoderPlan, Training
    from clew.train.export import ExportForm
    from clew.train.reader import ReaderPlan
    from clew.train.traverser import Plan

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Train readers, encoders and language models that guide walks, on questions with evidence.",
)

Data = Annotated[
    list[str],
    typer.Option(metavar="NAME=PATH", help="A data set with ordered evidence; may be repeated."),
]


#: An option that takes a number.
_number = partial(typer.Option, metavar="N")


@app.command("traverser")
def traverser(
    data: Data,
    model: Annotated[
        str, typer.Option(metavar="NAME|FOLDER", help="The model to start from: a hub name or a folder.")
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="The folder for the model; an interrupted run continues there."),
    ],
    limit: Annotated[int | None, option("N", "Sample N questions.", default="all", min=2)] = None,
    held_out: Annotated[
        float | None,
        option(
            "SHARE",
            "The share of questions to hold out; at least one question.",
            default="0.02",
            min=0,
            max=0.9,
        ),
    ] = None,
    epochs: Annotated[int | None, option("N", "Passes over the examples.", default="3", min=1)] = None,
    batch: Annotated[
        int | None, option("N", "Examples per step.", default="8; decoder-only 128", min=1)
    ] = None,
    at_once: Annotated[
        int | None, option("N", "Examples in memory at the same time.", default="8; decoder-only 4", min=1)
    ] = None,
    learning_rate: Annotated[
        float | None, option("N", "Learning rate of AdamW.", default="1e-4; decoder-only 3e-4", min=0)
    ] = None,
    warmup: Annotated[
        int | None, option("N", "Steps of learning-rate warm-up.", default="0; decoder-only 100", min=0)
    ] = None,
    lora_rank: Annotated[
        int | None, option("N", "Rank of LoRA; 0 trains all weights.", default="0; decoder-only 8", min=0)
    ] = None,
    max_input: Annotated[
        int | None, option("N", "Skip prompts with more tokens.", default="512", min=1)
    ] = None,
    max_output: Annotated[int | None, option("N", "Cut outputs after N tokens.", default="96", min=1)] = None,
    seed: Annotated[
        int | None, option("N", "Seed for sampling, LoRA, order and dropout.", default="0", min=0)
    ] = None,
    save_every: Annotated[int | None, option("N", "Steps between checkpoints.", default="500", min=1)] = None,
    save_memory: Annotated[
        bool | None,
        typer.Option(
            "--save-memory/--all-memory",
            help="Use bf16 and gradient checkpointing.",
            show_default="with a GPU",
        ),
    ] = None,
) -> None:
    """Train a language model to write the evidence that a walk needs next (KGP paper, Supplementary 8.1, 8.2).

    A T5 model gets the instruction as a prefix, and all its weights are trained. A decoder-only model gets Listing 1
    and is trained with LoRA, which is merged into the model at the end. The defaults are those of the repositories
    that the paper builds on. An interrupted run continues when started again. Needs the extra train.

      clew train traverser --data hotpotqa=train.json --model t5-large --out t5-guide

      clew ask "YOUR QUESTION" --recipe "kgp(guide=generated(prompt=prefix))"
      --llm guide=local:t5-guide --llm read=ollama:llama3.1
    """
    from clew.evaluate.datasets import parse_dataset
    from clew.train.traverser import train_traverser

    options = {
        "limit": limit, "held_out": held_out, "epochs": epochs, "batch": batch, "at_once": at_once,
        "learning_rate": learning_rate, "warmup": warmup, "lora_rank": lora_rank, "max_input": max_input,
        "max_output": max_output, "seed": seed, "save_every": save_every, "save_memory": save_memory,
    }  # fmt: skip
    changes = {name: value for name, value in options.items() if value is not None}
    datasets = list(map(parse_dataset, data))
    progress = show_progress("training")
    with interruptible("the last checkpoint is kept. To continue, run the same command again."):
        result = train_traverser(datasets, model, out, changes, _print_traverser_plan, progress)
    print_line(f"{out}: held-out loss {result.before:.3f} before, {result.after:.3f} after (nats per token)")
    recipe = f"kgp(guide=generated(prompt={result.prompt}))"
    print_line(f'To walk with it: --recipe "{recipe}" --llm guide=local:{out} --llm read=MODEL')


def _print_traverser_plan(plan: Plan) -> None:
    settings = plan.settings
    print_note(
        f"{format_count(plan.questions, 'question')} with {format_count(plan.examples, 'example')}; held out: "
        f"{format_count(plan.held_out_questions, 'question')} with {format_count(plan.held_out_examples, 'example')}"
    )
    if plan.too_long:
        print_note(
            f"left out: {format_count(plan.too_long, 'example')} with more than {settings.max_input} tokens"
        )
    print_note(
        f"{plan.trainable:,} of {plan.parameters:,} weights are trained"
        + (f" (LoRA, rank {settings.lora_rank})" if settings.lora_rank else "")
        + f", in {format_count(plan.steps, 'step')} of {format_count(settings.batch, 'example')}"
        + f" ({format_count(settings.epochs, 'epoch')}, learning rate {settings.learning_rate:g})"
    )
    if plan.done:
        print_note(f"continued after step {plan.done:,}")


@app.command("encoder")
def encoder(
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME|FOLDER",
            help="The sentence-transformers model to start from, or clew:multilingual.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="The folder for the model; an interrupted run continues there."),
    ],
    data: Annotated[list[str] | None, option("NAME=PATH", "A data set; may be repeated.")] = None,
    from_kb: Annotated[
        Path | None, option("DIR", "Learn from this knowledge base instead; no questions are needed.")
    ] = None,
    graph: Annotated[
        Path | None,
        option(
            "PLACE",
            "The graph whose nodes answer the questions: a file or folder as clew graph add reads it, or a "
            "knowledge base with one graph.",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        option("NAME", "mdr (learns every hop) or dpr (learns one).", default="mdr; dpr with --graph"),
    ] = None,
    configuration: Annotated[
        str,
        typer.Option(metavar="NAME", help="The default settings: clew, or paper (Table 5 of the KGP paper)."),
    ] = "clew",
    held_out: Annotated[
        float,
        typer.Option(
            metavar="SHARE", min=0, max=0.9, help="The share of questions to hold out and measure on."
        ),
    ] = 0.1,
    limit: Annotated[int | None, option("N", "Sample N questions.", default="all", min=2)] = None,
    pairs: Annotated[
        int | None, option("N", "Sample N pairs of a knowledge base.", default="4000", min=32)
    ] = None,
    epochs: Annotated[int | None, option("N", "Passes over the pairs.", default="1", min=1)] = None,
    batch: Annotated[int | None, option("N", "Pairs per step.", default="32", min=2)] = None,
    negatives: Annotated[int | None, option("N", "Distractors per pair.", default="1", min=0)] = None,
    mined: Annotated[int | None, option("N", "Hard negatives per pair.", default="0", min=0)] = None,
    learning_rate: Annotated[
        float | None, option("N", "Learning rate of AdamW.", default="1e-4", min=0)
    ] = None,
    scale: Annotated[
        float | None, option("N", "Scale of similarities (1 / temperature).", default="20", min=0)
    ] = None,
    max_tokens: Annotated[
        int | None, option("N", "Cut texts after N tokens in training.", default="128", min=8)
    ] = None,
    blend: Annotated[
        float | None,
        option("SHARE", "The share of the trained weights in the result.", default="0.5", min=0, max=1),
    ] = None,
    lora_rank: Annotated[
        int | None, option("N", "Rank of LoRA; 0 trains all weights.", default="0", min=0)
    ] = None,
    seed: Annotated[int | None, option("N", "Seed for sampling and order.", default="0", min=0)] = None,
    weights: Annotated[
        str, typer.Option(metavar="FORM", help="Weights of the export: fp32, half or int8.")
    ] = "int8",
) -> None:
    """Train an encoder to find the next passage of a chain of evidence, and export it for use without torch.

    The objective mdr learns to find the first gold passage from the question, and each next one from the question
    with the passages so far; a walk uses it at every hop. The objective dpr learns to find each gold passage from
    the question. --from-kb needs no questions: it learns how your own documents refer to each other. With --graph
    the right answers are nodes, as in STaRK: it learns their texts, for vss and focus. Prints recall on held-out
    questions before and after. An interrupted run continues when started again. Needs the extra train.

      clew train encoder --data hotpotqa=train.json --model all-MiniLM-L6-v2 --out models/hops

      clew train encoder --from-kb .clew --model all-MiniLM-L6-v2 --out models/ours

      clew train encoder --from-kb .clew --model clew:multilingual --lora-rank 16 --out models/ours

      clew train encoder --data stark=qa.csv --graph prime/processed --model all-MiniLM-L6-v2 --out models/prime

      clew encoder set onnx:models/ours/onnx
    """
    from clew.evaluate.setup import graph_base
    from clew.store.store import Store
    from clew.train.encoder import (
        MAX_BASE_PAIRS,
        build_settings,
        training_from_base,
        training_from_data,
        training_from_graph,
    )
    from clew.train.export import parse_form

    if bool(data) == (from_kb is not None):
        raise UsageError("no training data given", "Give either --data NAME=PATH or --from-kb DIR")
    if from_kb is not None and graph is not None:
        raise UsageError("--graph is for the questions of --data", "Leave one out: --from-kb or --graph")
    objective = objective or ("mdr" if graph is None else "dpr")
    options = {
        "objective": objective, "epochs": epochs, "batch": batch, "negatives": negatives, "blend": blend,
        "learning_rate": learning_rate, "scale": scale, "mined": mined, "max_tokens": max_tokens,
        "lora_rank": lora_rank, "seed": seed,
    }  # fmt: skip
    changes = {name: value for name, value in options.items() if value is not None}
    settings = build_settings(configuration, changes)
    form = parse_form(weights, out.name)
    if graph is not None:
        with graph_base(graph) as base:
            _train(training_from_graph(base, data or [], model, settings, held_out, limit), out, form)
        return
    if from_kb is None:
        work = training_from_data(data or [], model, settings, held_out, limit)
    else:
        with Store.open(from_kb) as base:
            work = training_from_base(base, model, settings, pairs or MAX_BASE_PAIRS)
    _train(work, out, form)


def _train(work: Training, out: Path, form: ExportForm) -> None:
    """Train an encoder, print how its recall on held-out questions changed, and export it."""
    from clew.train.encoder import MODEL_FOLDER, train_encoder
    from clew.train.export import export_encoder

    with interruptible("the last checkpoint is kept. To continue, run the same command again."):
        record = train_encoder(work, out, _print_encoder_plan, show_progress("training"))
    for step, measures in record.get("during", {}).items():
        print_line(f"step {step}: " + ", ".join(f"{name} {value:.3f}" for name, value in measures.items()))
    for name, value in record["after"].items():
        print_line(
            f"{name}: {record['before'][name]:.3f} before, {value:.3f} after ({record['held_out']} held out)"
        )
    target = out / "onnx"
    if not target.exists():
        exported = export_encoder(out / MODEL_FOLDER, target, form)
        print_note(f"{exported.size / 2**20:.0f} MiB, {form.weights}")
    print_line(f"To use it: clew encoder set onnx:{target}")


def _print_encoder_plan(plan: EncoderPlan) -> None:
    print_note(f"{format_count(plan.pairs, 'pair')}, {format_count(plan.steps, 'step')}")
    if plan.done:
        print_note(f"continued after step {plan.done:,}")


@app.command("reader")
def reader(
    data: Data,
    model: Annotated[
        str, typer.Option(metavar="NAME|FOLDER", help="The encoder to start from: a hub name or a folder.")
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="The folder for the reader; an interrupted run continues there."),
    ],
    held_out: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=0.9,
            help="The share of multi-hop questions and of TAT-QA's tables to hold out, measure and calibrate on.",
        ),
    ] = 0.2,
    scale: Annotated[
        float, _number(min=0.001, help="Multiply the number of examples of every kind by N.")
    ] = 1.0,
    epochs: Annotated[int | None, option("N", "Passes over the examples.", default="1", min=1)] = None,
    batch: Annotated[int | None, option("N", "Windows per step.", default="24", min=1)] = None,
    learning_rate: Annotated[
        float | None, option("N", "Learning rate of AdamW.", default="3e-4", min=0)
    ] = None,
    max_tokens: Annotated[
        int | None, option("N", "Tokens of a window.", default="320", min=96, max=512)
    ] = None,
    seed: Annotated[int | None, option("N", "Seed for sampling and order.", default="0", min=0)] = None,
    save_every: Annotated[int | None, option("N", "Steps between checkpoints.", default="50", min=1)] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A reader that was exported before: only which sentences answer is learned further.",
        ),
    ] = None,
) -> None:
    """Train a reader that marks answers in passages, and export it for use without torch.

    The data sets: reading (JSON lines of source, question, title, context, start, end), hotpotqa, 2wikimultihopqa,
    musique, tatqa, tables and passages of OTT-QA, from which questions are made; then, for which sentences answer,
    written (JSON lines of question, kind, polar, passages, answers, value), polar (question, title, before, sentence,
    polar) and unseen (as written: files for clew train sentences, about whose documents nothing is learned). Prints
    exact match and F1 on held-out questions. An interrupted run continues when started again. Needs the extra train.

      clew train reader --data reading=train.jsonl --data tatqa=dev.json --model all-MiniLM-L6-v2 --out ours

      clew ask "YOUR QUESTION" --recipe "read(reader=span(model='onnx:ours/onnx'))"
    """
    from clew.train.reader import EXPORT_FOLDER, ReaderSettings, train_reader
    from clew.train.reading_data import collect_examples

    options = {
        "epochs": epochs, "batch": batch, "learning_rate": learning_rate, "max_tokens": max_tokens, "seed": seed,
        "save_every": save_every,
    }  # fmt: skip
    settings = ReaderSettings(**{name: value for name, value in options.items() if value is not None})  # type: ignore[arg-type]
    examples = collect_examples(data, held_out, settings.seed, scale)
    shown = {stage: show_progress(f"training: {stage}") for stage in ("words", "sentences")}
    with interruptible("the last checkpoint is kept. To continue, run the same command again."):
        record = train_reader(
            examples,
            model,
            settings,
            out,
            _print_reader_plan,
            lambda stage, done, total: shown[stage](done, total),
            start,
        )
    for source, measures in record["after"].items():
        print_line(
            f"{source}: EM {measures['EM']:.3f}, F1 {measures['F1']:.3f} ({measures['questions']:.0f} held out)"
        )
    print_line(f"To use it: --recipe \"read(reader=span(model='onnx:{out / EXPORT_FOLDER}'))\"")


@app.command("plans")
def plans(
    data: Annotated[
        list[Path],
        typer.Option(
            metavar="FOLDER", help="A graph with questions and what they mean, MetaQA, or a folder of such."
        ),
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME|FOLDER", help="The encoder to start from: a hub name or a folder.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The folder for the result; a run continues there.")
    ],
    beside: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="As --data, but never held out: for training alone."),
    ] = None,
    directions: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Questions about relations between two names, JSON lines."),
    ] = None,
    options: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Questions with queries, as clew train outlines writes them."),
    ] = None,
    judge: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep this trained judge; fit what surrounds it, without torch."),
    ] = None,
    steps: Annotated[int | None, option("N", "Steps of the judge.", default="1600", min=1)] = None,
    most: Annotated[int | None, option("N", "Questions of a domain.", default="100", min=1)] = None,
    seed: Annotated[int | None, option("N", "Seed for sampling and order.", default="1", min=0)] = None,
) -> None:
    """Train what reads plain questions over graphs and tables, and export it for use without torch.

    A folder is a graph: nodes.csv and edges.csv, as `clew graph add` reads them, and questions.jsonl (question,
    operation, triples, property); or MetaQA (graph.tsv, dev_2hop.jsonl, dev_3hop.jsonl); or a world of tables: files
    in tables/, and questions.jsonl (question, sql, result); or TAT-QA (dev.json). Each graph is also asked without
    the types of its nodes. Every fourth graph and world is held out: from it come the figures. A line of --directions
    has a relation, its head, its tail, and a question of yes or no that means just that. An interrupted run continues
    when started again. Needs the extra train.

      clew train plans --data plans/ --data tables/ --model all-MiniLM-L6-v2 --out ours
    """
    from clew.models.encoders import OnnxEncoder, embedded_folder
    from clew.train.plan_judge import PlanSettings
    from clew.train.plans import EXPORT_FOLDER, train_plans

    chosen = {"steps": steps, "most": most, "seed": seed}
    settings = PlanSettings(**{name: value for name, value in chosen.items() if value is not None})
    folders, others = (
        sorted(
            {
                file.parent
                for name in ("questions.jsonl", "graph.tsv", "dev.json")
                for folder in given
                for file in folder.glob(f"**/{name}")
            }
        )
        for given in (data, beside or [])
    )
    encoder = OnnxEncoder(embedded_folder("hops"))
    shown = {
        name: show_progress(name)
        for name in (
            "names",
            "slots",
            "options",
            "shapes",
            "run",
            "judge",
            "measure",
            "cells",
            "queries",
            "scores",
            "judge tables",
            "directions",
            "ways",
        )
    }
    with interruptible("what is done is kept. To continue, run the same command again."):
        record = train_plans(
            folders,
            model,
            encoder,
            settings,
            out,
            lambda part, done, total: shown[part](done, total),
            judge,
            others,
            directions or (),
            options or (),
        )
    for name, value in record["after"].items():
        print_line(f"{name}: {value}")
    print_line(f"It is in {out / EXPORT_FOLDER}")


@app.command("outlines")
def outlines(
    data: Annotated[
        list[Path],
        typer.Option(
            metavar="FOLDER|FILE",
            help="Documents with questions and what they mean (documents/, questions.jsonl), or outlines in JSON.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The folder for the result; a run continues there.")
    ],
    content: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="JSON lines with questions about content, which name no structure."
        ),
    ] = None,
    most: Annotated[
        int | None, option("N", "Questions about content for each source.", default="150", min=0)
    ] = None,
    seed: Annotated[int | None, option("N", "Seed for sampling.", default="1", min=0)] = None,
) -> None:
    """Train what reads plain questions about the structure of documents: pages, sections, tables, cells, figures.

    Questions are JSON with document, question and plan: {"operation": "count", "counted": "table"}, {"operation":
    "show", "selectors": [{"kind": "page", "number": 4}]}, {"operation": "content"}. Every fourth document is held
    out: from that come the figures. The judge can be trained on what clew-outlines-options.jsonl has of the others
    (clew train plans --options). An interrupted run continues when started again. Needs no torch.

      clew train outlines --data structure/ --data outlines/report.json --content questions.jsonl --out ours
    """
    from clew.models.plan_judge import create_plan_judge
    from clew.train.outlines import OutlineSettings, train_outlines

    given = {"most_content": most, "seed": seed}
    settings = OutlineSettings(**{name: value for name, value in given.items() if value is not None})
    sources = [
        file for path in data for file in (sorted(path.glob("*.json")) or [path] if path.is_dir() else [path])
    ]
    shown = {name: show_progress(name) for name in ("options", "scores", "judge")}
    with interruptible("what is done is kept. To continue, run the same command again."):
        record = train_outlines(
            sources,
            content or [],
            create_plan_judge(),
            settings,
            out,
            lambda part, done, total: shown[part](done, total),
        )
    for name, value in record["after"].items():
        print_line(f"{name}: {value}")
    print_line(f"It is in {out}")


@app.command("sentences")
def sentences(
    data: Annotated[
        list[Path], typer.Option(metavar="FILE", help="JSON lines: questions with passages and answers.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The folder for the result; a run continues there.")
    ],
    polar: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="JSON lines: questions of yes or no, each with title, sentence and polar."
        ),
    ] = None,
    wordings: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="JSON lines: other questions with kinds, to learn which ask for a list, or in hops. Those of the "
            "kinds hops and one-hop are also asked of bases that do not answer them.",
        ),
    ] = None,
    marked: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="JSON lines: questions with marked answers, none of which asks in hops."
        ),
    ] = None,
    reader: Annotated[
        str, typer.Option(metavar="NAME", help="The reader: clew:reader, or onnx:FOLDER.")
    ] = DEFAULT_READER,
) -> None:
    """Train what chooses the sentences that answer a question, and how sure it is of them.

    A line is JSON with question, kind (none-close and none-far have no answer, hops asks through another thing),
    passages (title, text) and answers (text). The passages of a file become a base, and each question is asked of it.
    Each file is held out in turn: from that come the figures. The reader must not have been trained on these
    documents, else its scores count for too much. An interrupted run continues when started again. Needs no torch.

      clew train sentences --data manuals.jsonl --data policies.jsonl --out ours
    """
    from clew.train.sentences import train_sentences

    shown = show_progress("sentences")
    with interruptible("what is done is kept. To continue, run the same command again."):
        record = train_sentences(
            data,
            out,
            lambda part, done, total: shown(done, total),
            pairs=polar,
            reader=reader,
            wordings=wordings or (),
            marked=marked,
        )
    for name, value in record["after"].items():
        print_line(f"{name}: {value}")
    print_line(f"It is in {out}")


def _print_reader_plan(plan: ReaderPlan) -> None:
    print_note(
        f"{format_count(plan.examples, 'example')} in {format_count(plan.windows, 'window')}, "
        f"{format_count(plan.steps, 'step')}"
    )
    if plan.done:
        print_note(f"continued after step {plan.done:,}")
