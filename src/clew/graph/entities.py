"""Passages that mention the same Wikipedia entity: the paper's TAGME graph (Section 3)."""

from __future__ import annotations

import numpy as np

from clew.core.arrays import Floats, Rows
from clew.core.component import component
from clew.core.errors import UsageError
from clew.core.protocols import Snapshot
from clew.graph.annotation import AnnotationCache
from clew.graph.passages import Incidence, distinct_rows, passage_rows

#: Passages whose annotations are read at a time.
_BATCH = 2_000


@component(
    "entities",
    summary="passages with a common Wikipedia entity (TAGME or WAT: clew annotate)",
    paper="Wang et al., AAAI 2024",
)
class EntityGraph:
    """Neighbours are passages (and table rows) in which an annotation service recognised the same entity.

    ``annotations`` is the cache of what ``service`` (``wat/en``) recognised, which
    :func:`clew.graph.annotation.annotate_passages` fills. An annotation counts if its confidence is at least ``rho``
    and its prior at least ``prior``, by which the paper controls the density. ``missing`` is the number of passages
    that were not annotated; they have no neighbours. Raises UsageError where none was annotated.
    """

    @classmethod
    def build(
        cls, snapshot: Snapshot, service: str = "wat/en", rho: float = 0.0, prior: float = 0.8
    ) -> EntityGraph:
        """Return the graph over the annotations in this user's cache."""
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
        # Not memoized for the generation: annotations can be added within one.
        rows = passage_rows(snapshot)
        self._titles: dict[int, str] = {}
        pairs: list[tuple[int, int]] = []
        self.missing = 0
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            by_passage = annotations.get(service, [node.text for node in snapshot.nodes(batch)])
            self.missing += sum(mentions is None for mentions in by_passage)
            for row, mentions in zip(batch.tolist(), by_passage, strict=True):
                counting = [
                    mention for mention in mentions or () if mention.rho >= rho and mention.prior >= prior
                ]
                self._titles.update((mention.entity, mention.title) for mention in counting)
                pairs += [(row, entity) for entity in sorted({mention.entity for mention in counting})]
        if len(rows) and self.missing == len(rows):
            raise UsageError(
                f"no passage was annotated by {service}",
                "Annotate them first: clew annotate",
            )
        self._entities = _pair_incidence(pairs, snapshot.size)

    def neighbours(self, row: int) -> Rows:
        """Return the rows that share an entity with ``row``, ascending, without itself."""
        parts = self._entities.rows_with(self._entities.slots_of(row))
        return distinct_rows(parts, self._entities.size, row)

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return 1 for each."""
        return np.ones(len(neighbours))

    def explain_edge(self, source: int, target: int) -> str:
        """Return the titles of the entities that both mention (``entities: Ohio``)."""
        shared = self._entities.keys[self._entities.shared_slots(source, target)].tolist()
        return f"entities: {', '.join(self._titles[entity] for entity in shared[:5])}" if shared else ""


def _pair_incidence(pairs: list[tuple[int, int]], size: int) -> Incidence:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    keys, slots = np.unique(table[:, 1].astype(np.uint64), return_inverse=True)
    return Incidence.from_pairs(keys, table[:, 0].astype(np.int32), slots.astype(np.int32), size)
