"""The encoder of a knowledge base, and how long its work will take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from clew.core.errors import UsageError
from clew.core.types import RETRIEVED_KINDS, Scope
from clew.knowledge_base.results import VectorCounts

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import Encoder
    from clew.store.store import Store

#: The setting of a base that names its encoder.
ENCODER_SETTING = "encoder"
#: What it says in a base that has none.
NO_ENCODER = "none"
#: Texts that are encoded to foresee how long all will take.
SAMPLE_SIZE = 24


class WithEncoder:
    """The part of :class:`clew.Base` that is about its encoder."""

    store: Store
    _encoder: Encoder | None = None
    #: Several threads of a server may ask first; one loads.
    _loading = threading.Lock()

    def vector_counts(self) -> list[VectorCounts]:
        """Return the encoders that this base has vectors of."""
        snapshot = self.store.snapshot()
        return [
            VectorCounts(name, count, snapshot.vectors(name).missing_count())
            for name, count in self.store.info().encoders.items()
        ]

    def set_encoder(self, name: str | None) -> None:
        """Make ``name`` the encoder of this base (None: have none). The vectors of others stay.

        Raises UsageError or MissingExtra where there is no such encoder; encodes nothing yet.
        """
        from clew.knowledge_base import registry as catalog
        from clew.models import absolute_name

        self._encoder = catalog.load_encoder(name) if name else None
        # A folder's path is kept absolute: the base may be opened from anywhere.
        self.store.set_setting(ENCODER_SETTING, absolute_name(name) if name else NO_ENCODER)

    def encoder_name(self) -> str | None:
        """Return the name of the base's encoder as it was set, or None."""
        name = self.store.get_setting(ENCODER_SETTING)
        return None if name in {None, NO_ENCODER} else name

    def encoder(self) -> Encoder | None:
        """Return the base's encoder, loaded, or None."""
        name = self.encoder_name()
        if name and self._encoder is None:
            from clew.knowledge_base import registry as catalog

            with self._loading:
                self._encoder = self._encoder or catalog.load_encoder(name)
        return self._encoder

    def encode(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the missing vectors of the base's encoder; return how many. Stopped, it continues next time.

        Raises UsageError where the base has no encoder.
        """
        return self.store.encode(self.require_encoder(), progress)

    def missing_vectors(self) -> int:
        """Return how many searchable passages have no vector of the base's encoder: they are found by words alone."""
        encoder = self.encoder()
        if encoder is None:
            return 0
        return self.store.snapshot().vectors(encoder.name, encoder.dimension).missing_count()

    def estimate_encoding(self) -> tuple[int, float | None]:
        """Return how many vectors of the base's encoder are missing, and about how many seconds they take.

        The time is that of some passages, encoded now; None for an encoder that sends texts elsewhere.
        """
        import numpy as np

        from clew.models.names import leaves_machine

        encoder, name = self.encoder(), self.encoder_name()
        if encoder is None or name is None:
            return 0, 0.0
        snapshot = self.store.snapshot()
        missing = snapshot.vectors(encoder.name, encoder.dimension).missing_count()
        if not missing or leaves_machine(name):
            return missing, None if missing else 0.0
        rows = sample_rows(np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS)))
        taken = time_encoding(encoder, [node.text for node in snapshot.nodes(rows)])
        return missing, missing * taken / max(len(rows), 1)

    def require_encoder(self) -> Encoder:
        """Return the base's encoder. Raises UsageError where it has none."""
        encoder = self.encoder()
        if encoder is None:
            raise UsageError("this knowledge base has no encoder", "Set one: clew encoder set onnx:FOLDER")
        return encoder


def sample_rows(rows: Rows) -> Rows:
    """Return a few rows from all over, to foresee by them how long all will take."""
    import numpy as np

    return rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE_SIZE)).astype(np.int64)]


def time_encoding(encoder: Encoder, texts: Sequence[str]) -> float:
    """Return how long an encoder that is loaded takes for texts."""
    encoder.encode(["the first text also loads the model"])
    started = perf_counter()
    encoder.encode(texts)
    return perf_counter() - started
