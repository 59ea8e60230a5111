"""The encoder of a knowledge base: which one it is, the vectors it has made, and how long the missing ones take."""

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
#: The value of that setting in a base without an encoder.
NO_ENCODER = "none"
#: How many texts are encoded to estimate how long all take.
SAMPLE_SIZE = 24
#: Several threads of a server may ask for an encoder first; one of them loads it.
_LOADING = threading.Lock()


class Encoding:
    """The encoder of a knowledge base and its vectors of passages: ``base.encoding``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._encoder: Encoder | None = None

    @property
    def name(self) -> str | None:
        """The name of the encoder as it was set, or None."""
        name = self._store.get_setting(ENCODER_SETTING)
        return None if name in {None, NO_ENCODER} else name

    def encoder(self) -> Encoder | None:
        """Return the encoder, loaded, or None where the base has none."""
        name = self.name
        if name and self._encoder is None:
            from clew.knowledge_base.registry import load_encoder

            with _LOADING:
                self._encoder = self._encoder or load_encoder(name)
        return self._encoder

    def require(self) -> Encoder:
        """Return the encoder. Raises UsageError where the base has none."""
        encoder = self.encoder()
        if encoder is None:
            raise UsageError("this knowledge base has no encoder", "Set one: clew encoder set onnx:FOLDER")
        return encoder

    def set(self, name: str | None) -> None:
        """Make ``name`` the encoder of the base, or none with None. Vectors of other encoders stay.

        Encodes nothing yet. Raises UsageError or MissingExtra where there is no such encoder.
        """
        from clew.knowledge_base.registry import load_encoder
        from clew.models import absolute_name

        self._encoder = load_encoder(name) if name else None
        # A folder's path is stored absolute: the base may be opened from anywhere.
        self._store.set_setting(ENCODER_SETTING, absolute_name(name) if name else NO_ENCODER)

    def vector_counts(self) -> list[VectorCounts]:
        """Return for each encoder that the base has vectors of how many there are."""
        snapshot = self._store.snapshot()
        return [
            VectorCounts(name, count, snapshot.vectors(name).missing_count())
            for name, count in self._store.info().encoders.items()
        ]

    def count_missing(self) -> int:
        """Return how many searchable passages have no vector yet; these are found by their words alone."""
        encoder = self.encoder()
        if encoder is None:
            return 0
        return self._store.snapshot().vectors(encoder.name, encoder.dimension).missing_count()

    def encode_missing(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the missing vectors and return how many. When interrupted, the next call continues.

        Raises UsageError where the base has no encoder.
        """
        return self._store.encode(self.require(), progress)

    def estimate(self) -> tuple[int, float | None]:
        """Return how many vectors are missing, and about how many seconds they take.

        The time is measured on a few passages; it is None for an encoder that sends texts to another machine.
        """
        import numpy as np

        from clew.models import leaves_machine

        encoder, name = self.encoder(), self.name
        if encoder is None or name is None:
            return 0, 0.0
        snapshot = self._store.snapshot()
        missing = snapshot.vectors(encoder.name, encoder.dimension).missing_count()
        if not missing or leaves_machine(name):
            return missing, None if missing else 0.0
        rows = sample_rows(np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS)))
        seconds = time_encoding(encoder, [node.text for node in snapshot.nodes(rows)])
        return missing, missing * seconds / max(len(rows), 1)


def sample_rows(rows: Rows) -> Rows:
    """Return at most :data:`SAMPLE_SIZE` rows, evenly spread."""
    import numpy as np

    return rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE_SIZE)).astype(np.int64)]


def time_encoding(encoder: Encoder, texts: Sequence[str]) -> float:
    """Return the seconds that an encoder takes for ``texts`` once its model is loaded."""
    encoder.encode(["the first text also loads the model"])
    started = perf_counter()
    encoder.encode(texts)
    return perf_counter() - started
