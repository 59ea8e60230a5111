"""What the commands of ``clew eval`` share: units of passages, and what a run will cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clew.app.cli.command_group import EXIT_INTERRUPTED
from clew.app.cli.output import format_cost, print_note
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


def choose_encoder(given: str | None) -> str | None:
    """Return the name that ``--encoder`` gives, or that new bases get; None for none."""
    name = given or default_encoder()
    return None if name == "none" else name


def print_estimate(recipe: str, usage: Usage) -> None:
    """Say what a recipe will cost."""
    print_note(
        f"{recipe}: about {format_cost(usage) or 'no model calls'}, if every reply is as long as it may get"
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
    """Give what makes of questions the work with the models that were named; an interrupt says that it can be
    continued. ``llm`` is None for the usual one, ``()`` for none; ``what`` is what models are sent."""
    from clew.app.cli.models import announce_text_destination
    from clew.app.cli.output import print_note
    from clew.app.cli.progress import show_progress
    from clew.evaluate.run_folder import Experiment

    pass

    bench = _bench(llm, encoder, passages, sentences, seed)
    announce_text_destination(what, bench.llm)
    announce_text_destination(what, bench.encoder)
    try:
        yield lambda data: Experiment(data, bench, out, workers, show_progress, print_estimate)
    except KeyboardInterrupt:
        print_note("clew: stopped; what was measured is kept. To continue, run the same command again.")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _bench(
    llm: Sequence[str] | None, encoder: str | None, passages: str, sentences: int, seed: int
) -> EvaluationSettings:
    from clew.app.cli.models import configured_model, model_name
    from clew.evaluate.setup import EvaluationSettings
    from clew.knowledge_base import registry as catalog

    pass

    model = None if llm == () else configured_model(llm, charged=True)
    name = choose_encoder(encoder)
    found = catalog.load_encoder(name, remember=True) if name else None
    said = model_name(llm) or "" if model else ""
    return EvaluationSettings(model, found, parse_unit(passages), sentences, seed, said, name or "")


# MERGED: What the analyses of ``clew eval`` are made of: questions, models, and where results go.
