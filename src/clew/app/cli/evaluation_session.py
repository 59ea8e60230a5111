"""What the commands of ``clew eval`` share: models and settings of a run, and how an interrupted run ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clew.app.cli.command_group import EXIT_INTERRUPTED
from clew.app.cli.options import announce_text_destination, configured_model, model_name
from clew.app.cli.output import format_cost, print_note, show_progress
from clew.core.config import default_encoder
from clew.core.errors import UsageError

if TYPE_CHECKING:
    from clew.core.types import Usage
    from clew.evaluate.run_folder import Experiment
    from clew.evaluate.setup import EvaluationSettings, QuestionSet
    from clew.parse.documents.builder import PassageUnit


def parse_unit(passages: str) -> PassageUnit:
    """Return the unit of passages that ``--passages`` names. Raises UsageError."""
    if passages == "sentence":
        return "sentence"
    if passages != "paragraph":
        raise UsageError(f"no passages of '{passages}'", "Known: paragraph, sentence")
    return "paragraph"


def choose_encoder(option: str | None) -> str | None:
    """Return the encoder that ``--encoder`` names, by default that of new bases; None for none."""
    name = option or default_encoder()
    return None if name == "none" else name


def print_estimate(recipe: str, usage: Usage) -> None:
    """Print what a recipe will cost at most."""
    cost = format_cost(usage) or "no model calls"
    print_note(f"{recipe}: about {cost}, if every reply is as long as it may get")


def evaluation_settings(
    llm: Sequence[str] | None,
    encoder: str | None,
    passages: str,
    sentences: int,
    seed: int,
    graphs: Sequence[str] = (),
    cache: bool = True,
) -> EvaluationSettings:
    """Return the settings of a run with its models loaded. ``llm`` is None for the configured model, ``()`` for none.

    Raises UsageError, MissingExtra.
    """
    from clew.evaluate.setup import EvaluationSettings
    from clew.knowledge_base.registry import load_encoder

    model = None if llm == () else configured_model(llm, cache=cache, charged=True)
    encoder_name = choose_encoder(encoder)
    return EvaluationSettings(
        model,
        load_encoder(encoder_name, remember=True) if encoder_name else None,
        parse_unit(passages),
        sentences,
        seed,
        (model_name(llm) or "") if model else "",
        encoder_name or "",
        tuple(graphs),
    )


@contextmanager
def evaluation_session(
    out: Path,
    llm: Sequence[str] | None,
    encoder: str | None,
    passages: str,
    sentences: int,
    seed: int,
    workers: int,
    what: str = "questions and passages",
) -> Iterator[Callable[[QuestionSet], Experiment]]:
    """Yield a factory of experiments with the configured models; ``what`` says what the models are sent.

    ``llm`` is None for the configured model, ``()`` for none. An interrupt prints how to continue and exits 130.
    Raises UsageError, MissingExtra.
    """
    from clew.evaluate.run_folder import Experiment

    settings = evaluation_settings(llm, encoder, passages, sentences, seed)
    announce_text_destination(what, settings.llm)
    announce_text_destination(what, settings.encoder)
    try:
        yield lambda questions: Experiment(questions, settings, out, workers, show_progress, print_estimate)
    except KeyboardInterrupt:
        print_note("clew: stopped; what was measured is kept. To continue, run the same command again.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
