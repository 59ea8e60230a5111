"""What the analyses of ``clew eval`` are made of: questions, models, and where results go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clew.cli.group import INTERRUPTED

if TYPE_CHECKING:
    from clew.catalog.analysis import Work
    from clew.catalog.evaluation import Asked, Bench


@contextmanager
def works(
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
) -> Iterator[list[Work]]:
    """Give what is analysed, once figures can be drawn; see :func:`benched` for the rest."""
    from clew.catalog.evaluation import asked
    from clew.evaluate.drawing import pyplot

    # What a figure lacks is said before hours of measuring, not after them.
    pyplot()
    with benched(out, llm, encoder, passages, sentences, seed, workers) as work:
        yield [work(asked(one, corpus, limit, seed)) for one in data]


@contextmanager
def benched(
    out: Path,
    llm: Sequence[str] | None,
    encoder: str | None,
    passages: str,
    sentences: int,
    seed: int,
    workers: int,
    what: str = "questions and passages",
) -> Iterator[Callable[[Asked], Work]]:
    """Give what makes of questions the work with the models that were named; an interrupt says that it can be
    continued. ``llm`` is None for the usual one, ``()`` for none; ``what`` is what models are sent."""
    from clew.catalog.analysis import Work
    from clew.cli.output import note
    from clew.cli.progress import told
    from clew.cli.remote import say_where_texts_go
    from clew.cli.stages import foreseen

    bench = _bench(llm, encoder, passages, sentences, seed)
    say_where_texts_go(what, bench.llm)
    say_where_texts_go(what, bench.encoder)
    try:
        yield lambda data: Work(data, bench, out, workers, told, foreseen)
    except KeyboardInterrupt:
        note("clew: stopped; what was measured is kept. To continue, run the same command again.")
        raise typer.Exit(INTERRUPTED) from None


def _bench(llm: Sequence[str] | None, encoder: str | None, passages: str, sentences: int, seed: int) -> Bench:
    from clew import catalog
    from clew.catalog.evaluation import Bench
    from clew.cli.remote import configured_model, model_name
    from clew.cli.stages import chosen_encoder, unit

    model = None if llm == () else configured_model(llm, charged=True)
    name = chosen_encoder(encoder)
    found = catalog.encoder(name, remember=True) if name else None
    said = model_name(llm) or "" if model else ""
    return Bench(model, found, unit(passages), sentences, seed, said, name or "")
