"""What the analyses of ``clew eval`` are made of: questions, models, and where results go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clew.cli.group import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from clew.catalog.analysis import Experiment
    from clew.catalog.evaluation import QuestionSet, EvaluationSettings


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
) -> Iterator[list[Experiment]]:
    """Give what is analysed, once figures can be drawn; see :func:`benched` for the rest."""
    from clew.catalog.evaluation import load_questions
    from clew.evaluate.drawing import load_pyplot

    # What a figure lacks is said before hours of measuring, not after them.
    load_pyplot()
    with evaluation_session(out, llm, encoder, passages, sentences, seed, workers) as work:
        yield [work(load_questions(one, corpus, limit, seed)) for one in data]


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
    from clew.catalog.analysis import Experiment
    from clew.cli.output import print_note
    from clew.cli.progress import show_progress
    from clew.cli.remote import announce_text_destination
    from clew.cli.stages import print_estimate

    bench = _bench(llm, encoder, passages, sentences, seed)
    announce_text_destination(what, bench.llm)
    announce_text_destination(what, bench.encoder)
    try:
        yield lambda data: Experiment(data, bench, out, workers, show_progress, print_estimate)
    except KeyboardInterrupt:
        print_note("clew: stopped; what was measured is kept. To continue, run the same command again.")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _bench(llm: Sequence[str] | None, encoder: str | None, passages: str, sentences: int, seed: int) -> EvaluationSettings:
    from clew import catalog
    from clew.catalog.evaluation import EvaluationSettings
    from clew.cli.remote import configured_model, model_name
    from clew.cli.stages import choose_encoder, parse_unit

    model = None if llm == () else configured_model(llm, charged=True)
    name = choose_encoder(encoder)
    found = catalog.load_encoder(name, remember=True) if name else None
    said = model_name(llm) or "" if model else ""
    return EvaluationSettings(model, found, parse_unit(passages), sentences, seed, said, name or "")
