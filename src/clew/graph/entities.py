"""Passages that mention the same Wikipedia entity: the paper's TAGME graph (Section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clew.core.component import component
from clew.core.errors import UsageError
from clew.graph.annotation import AnnotationCache
from clew.graph.passages import Incidence, distinct_rows, passage_rows

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import Snapshot

#: Passages whose annotations are read at a time.
_BATCH = 2_000


@component(
    "entities",
    summary="passages with a common Wikipedia entity (TAGME or WAT: clew annotate)",
    paper="Wang et al., AAAI 2024",
)
class EntityGraph:
    """Neighbours are passages (and table rows) in which an annotation service found a common entity.

    ``kept`` holds what the service ``maker`` (``wat/en``) said; :func:`clew.graph.annotation.annotate_passages` fills
    it. An annotation counts if its confidence is at least ``rho`` and its prior at least ``prior``, the
    paper's knob of density. ``missing`` is how many passages the service was not asked about; they have no
    neighbours. Raises UsageError where it was asked about none.
    """

    @classmethod
    def build(
        cls, snapshot: Snapshot, service: str = "wat/en", rho: float = 0.0, prior: float = 0.8
    ) -> EntityGraph:
        """Return the graph over the annotations that this user's cache has."""
        return cls(snapshot, AnnotationCache.default(), service, rho, prior)

    def __init__(
        self,
        snapshot: Snapshot,
        annotations: AnnotationCache,
        service: str = "wat/en",
        rho: float = 0.0,
        prior: float = 0.8,
    ) -> None:
        self.mutual = True
        self.name = f"entities(prior={prior!r}, rho={rho!r}, service={service!r})"
        # Not remembered for the generation: annotations can be added within one.
        rows = passage_rows(snapshot)
        self._titles: dict[int, str] = {}
        pairs: list[tuple[int, int]] = []
        self.missing = 0
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            found = annotations.get(service, [node.text for node in snapshot.nodes(batch)])
            self.missing += sum(one is None for one in found)
            for row, said in zip(batch.tolist(), found, strict=True):
                sure = [one for one in said or () if one.rho >= rho and one.prior >= prior]
                self._titles.update((one.entity, one.title) for one in sure)
                pairs += [(row, entity) for entity in sorted({one.entity for one in sure})]
        if len(rows) and self.missing == len(rows):
            raise UsageError(
                f"no passage was annotated by {service}",
                "Annotate them first: clew annotate",
            )
        self._entities = _incidence(pairs, snapshot.size)

    def neighbours(self, row: int) -> Rows:
        """Return the rows that share an entity with ``row``, ascending, without itself."""
        found = self._entities.rows_with(self._entities.slots_of(row))
        return distinct_rows(found, self._entities.size, row)

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return 1 for each: an entity was annotated, or was not."""
        return np.ones(len(neighbours))

    def explain_edge(self, source: int, target: int) -> str:
        """Return the titles of the entities that both mention (``entities: Ohio``)."""
        shared = self._entities.keys[self._entities.shared_slots(source, target)].tolist()
        return f"entities: {', '.join(self._titles[entity] for entity in shared[:5])}" if shared else ""


def _incidence(pairs: list[tuple[int, int]], size: int) -> Incidence:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    keys, slots = np.unique(table[:, 1].astype(np.uint64), return_inverse=True)
    return Incidence.from_pairs(keys, table[:, 0].astype(np.int32), slots.astype(np.int32), size)
