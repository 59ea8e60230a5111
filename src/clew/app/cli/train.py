"""``clew train``: models that walks are guided by, trained on questions with ordered evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.app.cli.command_group import EXIT_INTERRUPTED, CommandGroup
from clew.app.cli.output import format_count, print_note
from clew.app.cli.progress import show_progress
from clew.core.errors import UsageError

if TYPE_CHECKING:
    from clew.train.encoder import Plan as EncoderPlan
    from clew.train.encoder import Training
    from clew.train.export import ExportForm
    from clew.train.traverser import Plan

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Train the models that walks are guided by, on questions with ordered evidence.",
)

Data = Annotated[
    list[str],
    typer.Option(metavar="NAME=PATH", help="A data set with ordered evidence; may be repeated."),
]


def _number(help: str, default: str, least: float = 1) -> Any:
    return typer.Option(min=least, metavar="N", help=help, show_default=default)


@app.command("traverser")
def traverser(
    data: Data,
    model: Annotated[
        str, typer.Option(metavar="NAME|FOLDER", help="The model to start from: hub name or folder.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the model goes; continued if begun.")],
    limit: Annotated[int | None, _number("Draw so many questions.", "all", 2)] = None,
    held_out: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", min=0, max=0.9, help="Of the questions; at least one.", show_default="0.02"
        ),
    ] = None,
    epochs: Annotated[int | None, _number("Times that each example is seen.", "3")] = None,
    batch: Annotated[int | None, _number("Examples in a step.", "8; decoder-only 128")] = None,
    at_once: Annotated[int | None, _number("Examples in memory at a time.", "8; decoder-only 4")] = None,
    learning_rate: Annotated[float | None, _number("Of AdamW.", "1e-4; decoder-only 3e-4", 0)] = None,
    warmup: Annotated[int | None, _number("Steps until it is reached.", "0; decoder-only 100", 0)] = None,
    lora_rank: Annotated[int | None, _number("0 trains all weights.", "0; decoder-only 8", 0)] = None,
    max_input: Annotated[int | None, _number("Tokens; a longer prompt is left out.", "512")] = None,
    max_output: Annotated[int | None, _number("Tokens; a longer output is cut.", "96")] = None,
    seed: Annotated[int | None, _number("Of drawing, LoRA, order and dropout.", "0", 0)] = None,
    save_every: Annotated[int | None, _number("Steps between checkpoints.", "500")] = None,
    save_memory: Annotated[
        bool | None,
        typer.Option(
            "--save-memory/--all-memory",
            help="bf16 and gradient checkpointing.",
            show_default="where there is a GPU",
        ),
    ] = None,
) -> None:
    """Tune a language model to write the evidence that a walk needs next (KGP paper, Supplementary 8.1, 8.2).

    A T5 gets the instruction as a prefix and all its weights are trained; a decoder-only model gets Listing 1
    and is trained with LoRA, which is merged into the model at the end. The defaults are those of the
    repositories that the paper took its own from. Killed, it continues when run again. Needs the extra train.

      clew train traverser --data hotpotqa=train.json --model t5-large --out t5-guide

      clew ask "YOUR QUESTION" --recipe "kgp(guide=generated(prompt=prefix))"
      --llm guide=local:t5-guide --llm read=ollama:llama3.1
    """
    from clew.evaluate.datasets import parse_dataset
    from clew.train.traverser import train_traverser

    given = {
        "limit": limit, "held_out": held_out, "epochs": epochs, "batch": batch, "at_once": at_once,
        "learning_rate": learning_rate, "warmup": warmup, "lora_rank": lora_rank, "max_input": max_input,
        "max_output": max_output, "seed": seed, "save_every": save_every, "save_memory": save_memory,
    }  # fmt: skip
    changes = {name: value for name, value in given.items() if value is not None}
    try:
        made = train_traverser(
            [parse_dataset(one) for one in data], model, out, changes, _say, show_progress("training")
        )
    except KeyboardInterrupt:
        print_note("clew: stopped; the last checkpoint is kept. To continue, run the same command again.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    print(f"{out}: held-out loss {made.before:.3f} before, {made.after:.3f} after (nats per token)")
    recipe = f"kgp(guide=generated(prompt={made.prompt}))"
    print(f'To walk with it: --recipe "{recipe}" --llm guide=local:{out} --llm read=MODEL')


def _say(plan: Plan) -> None:

    chosen = plan.settings
    print_note(
        f"{format_count(plan.questions, 'question')} with {format_count(plan.examples, 'example')}; held out: "
        f"{format_count(plan.held_out_questions, 'question')} with {format_count(plan.held_out_examples, 'example')}"
    )
    if plan.too_long:
        print_note(
            f"left out: {format_count(plan.too_long, 'example')} with more than {chosen.max_input} tokens"
        )
    print_note(
        f"{plan.trainable:,} of {plan.parameters:,} weights are trained"
        + (f" (LoRA, rank {chosen.lora_rank})" if chosen.lora_rank else "")
        + f", in {format_count(plan.steps, 'step')} of {format_count(chosen.batch, 'example')}"
        + f" ({format_count(chosen.epochs, 'epoch')}, learning rate {chosen.learning_rate:g})"
    )
    if plan.done:
        print_note(f"continued after step {plan.done:,}")


@app.command("encoder")
def encoder(
    model: Annotated[
        str, typer.Option(metavar="NAME|FOLDER", help="The sentence-transformers model to start from.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the model goes; continued if begun.")],
    data: Annotated[
        list[str] | None, typer.Option(metavar="NAME=PATH", help="A data set; may be repeated.")
    ] = None,
    from_kb: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A knowledge base to learn from instead; no questions are needed."),
    ] = None,
    objective: Annotated[str, typer.Option(metavar="NAME", help="mdr (every hop) or dpr (one).")] = "mdr",
    configuration: Annotated[
        str, typer.Option(metavar="NAME", help="clew, or paper: Table 5 of the KGP paper.")
    ] = "clew",
    held_out: Annotated[
        float, typer.Option(metavar="SHARE", min=0, max=0.9, help="Of the questions, to measure on.")
    ] = 0.1,
    limit: Annotated[int | None, _number("Draw so many questions.", "all", 2)] = None,
    pairs: Annotated[int | None, _number("Draw so many pairs of a base.", "4000", 32)] = None,
    epochs: Annotated[int | None, _number("Times that each pair is seen.", "1")] = None,
    batch: Annotated[int | None, _number("Pairs in a step.", "32", 2)] = None,
    negatives: Annotated[int | None, _number("Distractors for a pair.", "1", 0)] = None,
    mined: Annotated[int | None, _number("Hard negatives for a pair.", "0", 0)] = None,
    learning_rate: Annotated[float | None, _number("Of AdamW.", "1e-4", 0)] = None,
    scale: Annotated[float | None, _number("1 / temperature.", "20", 0)] = None,
    max_tokens: Annotated[int | None, _number("A longer text is cut in training.", "128", 8)] = None,
    blend: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, metavar="SHARE", help="Of the trained weights in the result.", show_default="0.5"
        ),
    ] = None,
    seed: Annotated[int | None, _number("Of drawing and order.", "0", 0)] = None,
    weights: Annotated[str, typer.Option(metavar="FORM", help="Of the export: fp32, half, int8.")] = "int8",
) -> None:
    """Train an encoder to find the next passage of a chain of evidence, and export it for use without torch.

    MDR learns from a question to its first gold passage, and from the question with the passages so far to the
    next one; the walk then asks it at every hop. DPR learns from a question to each gold passage. Without
    questions, --from-kb learns how your own documents lead to each other. Prints recall@5 on questions held out,
    before and after. Killed, it continues when run again. Needs the extra train.

      clew train encoder --data hotpotqa=train.json --model all-MiniLM-L6-v2 --out models/hops

      clew train encoder --from-kb .clew --model all-MiniLM-L6-v2 --out models/ours

      clew encoder set onnx:models/ours/onnx
    """
    from clew.train.encoder import build_settings
    from clew.train.export import parse_form

    if bool(data) == (from_kb is not None):
        raise UsageError("what is there to learn from?", "Give either --data NAME=PATH or --from-kb DIR")
    given = {
        "objective": objective, "epochs": epochs, "batch": batch, "negatives": negatives, "blend": blend,
        "learning_rate": learning_rate, "scale": scale, "mined": mined, "max_tokens": max_tokens, "seed": seed,
    }  # fmt: skip
    settings = build_settings(
        configuration, {name: value for name, value in given.items() if value is not None}
    )
    form = parse_form(weights, out.name)
    from clew.store.store import Store
    from clew.train import encoder as training

    if from_kb is None:
        work = training.training_from_data(data or [], model, settings, held_out, limit)
    else:
        with Store.open(from_kb) as base:
            work = training.training_from_base(base, model, settings, pairs or training.MAX_BASE_PAIRS)
    _train(work, out, form)


def _train(work: Training, out: Path, form: ExportForm) -> None:
    """Train, say how the held-out recall changed, and export."""
    from clew.train.encoder import MODEL_FOLDER, train_encoder
    from clew.train.export import export_encoder

    try:
        record = train_encoder(work, out, _plan, show_progress("training"))
    except KeyboardInterrupt:
        print_note("clew: stopped; the last checkpoint is kept. To continue, run the same command again.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    for step, found in record.get("during", {}).items():
        print(f"step {step}: " + ", ".join(f"{name} {value:.3f}" for name, value in found.items()))
    for name, value in record["after"].items():
        print(
            f"{name}: {record['before'][name]:.3f} before, {value:.3f} after ({record['held_out']} held out)"
        )
    target = out / "onnx"
    if not target.exists():
        made = export_encoder(out / MODEL_FOLDER, target, form)
        print_note(f"{made.size / 2**20:.0f} MiB, {form.weights}")
    print(f"To use it: clew encoder set onnx:{target}")


def _plan(plan: EncoderPlan) -> None:

    print_note(f"{format_count(plan.pairs, 'pair')}, {format_count(plan.steps, 'step')}")
    if plan.done:
        print_note(f"continued after step {plan.done:,}")


@app.command("data")
def training_data(
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON lines; must not be there yet.")],
    form: Annotated[
        str,
        typer.Option(metavar="FORM", help="passages (for encoders), instruction or prefix (for guides)."),
    ] = "passages",
    negatives: Annotated[int, typer.Option(min=0, metavar="N", help="Distractors with each chain.")] = 2,
    seed: Annotated[int, typer.Option(help="Of drawing them.")] = 0,
) -> None:
    """Write what trainers of other makes can learn from: chains of gold passages, or Listing 1's instructions.

    The order is that in which the passages lead to the answer: from the triples of 2WikiMultihopQA, the
    decomposition of MuSiQue, the place of the answer in HotpotQA; comparisons come in both orders.

      clew train data --data musique=train.jsonl --out chains.jsonl

      clew train data --data hotpotqa=train.json --form instruction --out listing1.jsonl
    """
    from clew.evaluate.datasets import parse_dataset
    from clew.train.evidence_chains import write_chains, write_instructions

    if out.exists():
        raise UsageError(f"{out} exists already", "Name a new file")
    examples = (example for one in data for example in parse_dataset(one).examples())
    count = (
        write_chains(out, examples, negatives, seed)
        if form == "passages"
        else write_instructions(out, examples, form)
    )
    print(f"{out}: {count:,} lines")
