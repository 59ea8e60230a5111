"""``clew train``: models that walks are guided by, trained on questions with ordered evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.group import INTERRUPTED, Group

if TYPE_CHECKING:
    from clew.evaluate.datasets import File
    from clew.train.traverser import Plan

app = typer.Typer(
    cls=Group,
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
    from clew.cli.output import note
    from clew.cli.progress import told
    from clew.train.traverser import train_traverser

    given = {
        "limit": limit, "held_out": held_out, "epochs": epochs, "batch": batch, "at_once": at_once,
        "learning_rate": learning_rate, "warmup": warmup, "lora_rank": lora_rank, "max_input": max_input,
        "max_output": max_output, "seed": seed, "save_every": save_every, "save_memory": save_memory,
    }  # fmt: skip
    changes = {name: value for name, value in given.items() if value is not None}
    try:
        made = train_traverser([_file(one) for one in data], model, out, changes, _say, told("training"))
    except KeyboardInterrupt:
        note("clew: stopped; the last checkpoint is kept. To continue, run the same command again.")
        raise typer.Exit(INTERRUPTED) from None
    print(f"{out}: held-out loss {made.before:.3f} before, {made.after:.3f} after (nats per token)")
    recipe = f"kgp(guide=generated(prompt={made.prompt}))"
    print(f'To walk with it: --recipe "{recipe}" --llm guide=local:{out} --llm read=MODEL')


def _file(data: str) -> File:
    from clew.errors import UsageError
    from clew.evaluate.datasets import load

    name, equals, path = data.partition("=")
    if not equals:
        raise UsageError(f"no data set in '{data}'", "Write NAME=PATH, such as hotpotqa=train.json")
    return load(name, path)


def _say(plan: Plan) -> None:
    from clew.cli.output import count, note

    chosen = plan.settings
    note(
        f"{count(plan.questions, 'question')} with {count(plan.examples, 'example')}; held out: "
        f"{count(plan.held_out_questions, 'question')} with {count(plan.held_out_examples, 'example')}"
    )
    if plan.too_long:
        note(f"left out: {count(plan.too_long, 'example')} with more than {chosen.max_input} tokens")
    note(
        f"{plan.trainable:,} of {plan.parameters:,} weights are trained"
        + (f" (LoRA, rank {chosen.lora_rank})" if chosen.lora_rank else "")
        + f", in {count(plan.steps, 'step')} of {count(chosen.batch, 'example')}"
        + f" ({count(chosen.epochs, 'epoch')}, learning rate {chosen.learning_rate:g})"
    )
    if plan.done:
        note(f"continued after step {plan.done:,}")
