"""The graph of passages that mention the same name, and of the passages that introduce what is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from clew.core.component import AtLeast, component
from clew.core.errors import UsageError
from clew.core.protocols import Snapshot
from clew.graph.passages import (
    Incidence,
    build_incidence,
    distinct_rows,
    documents_by_title,
    find_positions,
    leading_passages,
    posting_blocks,
    surface_forms,
)

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Hashes, Rows

#: The strength of an edge that does not lead from a name to the text about it; 0.5 measures best (decision 6).
SHARED_NAME_STRENGTH = 0.5


@component("mentions", summary="passages that share a name; a name that is a title leads to its document")
class MentionGraph:
    """Neighbours are passages (and table rows) that share a name, or of which one introduces what the other names.

    The names of a passage are the capitalised, digit-initial or CJK spans of its text
    (:func:`clew.core.text.candidate_names`, postings ``mention``). A name *links* if it is a document's title, with
    or without a trailing parenthesis, or if passages of two documents contain it. There are two kinds of edges:

    - between any two passages that contain the same linking name, unless that name is too common (below);
    - between a passage that contains a document's title and the first ``leads`` passages of that document,
      however common the title is: a document begins with what it is about.

    Names in many passages ("2021", the company itself in its own filing) join everything with everything, so a name
    in more than ``common`` passages makes no edges of the first kind. The bound is a number and not a share, so that
    it also bounds the neighbourhoods of a large knowledge base.

    The defaults were chosen on 2WikiMultihopQA, HotpotQA and MuSiQue (100 questions each, pooled): titles alone
    (``common=0``) are by far the most precise edges, 5 adds most of the recall that can be gained, and beyond it
    precision falls faster than recall grows.

    It replaces the paper's TAGME graph (Wang et al., AAAI 2024, Section 3) without a service: it links to the titles
    of the knowledge base instead of Wikipedia's. Limit: a name without a capital, digit or CJK character is not
    recognised.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        common: Annotated[int, AtLeast(0)] = 5,
        leads: Annotated[int, AtLeast(0)] = 3,
    ) -> None:
        if common < 0:
            raise UsageError(f"number of passages: {common}", "It must be 0 (titles alone) or more")
        if leads < 0:
            raise UsageError(f"number of leading passages: {leads}", "It must be 0 or more")
        self._snapshot = snapshot
        self.mutual = True
        self.name = f"mentions(common={common}, leads={leads})"
        self._links: MentionLinks = snapshot.memoize(
            f"graph/mentions/{leads}", lambda: build_mention_links(snapshot, leads), documents_only=True
        )
        self._joins = self._links.mentions.counts() <= common

    def neighbours(self, row: int) -> Rows:
        """Return the rows joined to ``row`` by a name, ascending, without itself."""
        mentions, leads = self._links.mentions, self._links.leads
        mentioned, introduced = mentions.slots_of(row), leads.slots_of(row)
        parts = mentions.rows_with(mentioned[self._joins[mentioned]])
        parts += leads.rows_with(mentioned)
        parts += mentions.rows_with(introduced)
        return distinct_rows(parts, mentions.size, row)

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return 1 for a neighbour that introduces what ``row`` names, and ``SHARED_NAME_STRENGTH`` for the others.

        One edge leads from a passage that names something to the text about it; many lead back, or to the other
        passages that name it.
        """
        leads = self._links.leads.rows_with(self._links.mentions.slots_of(row))
        introduces = (
            np.isin(neighbours, np.concatenate(leads)) if leads else np.zeros(len(neighbours), np.bool_)
        )
        return np.where(introduces, 1.0, SHARED_NAME_STRENGTH)

    def explain_edge(self, source: int, target: int) -> str:
        """Return the names that join two rows, as their texts write them (``mentions: Alf Clausen``)."""
        mentions, leads = self._links.mentions, self._links.leads
        shared = mentions.shared_slots(source, target)
        slots = [shared[self._joins[shared]]]
        slots += [
            np.intersect1d(mentions.slots_of(naming), leads.slots_of(leading))
            for naming, leading in ((source, target), (target, source))
        ]
        names = mentions.keys[np.unique(np.concatenate(slots))].tolist()
        nodes = self._snapshot.nodes(np.array([target, source], dtype=np.int64))
        # The target first: the source may only be about the name, and not contain it.
        forms = {name.casefold(): name for node in nodes for name in surface_forms(node.text, (), names)}
        return f"mentions: {', '.join(list(forms.values())[:5])}" if forms else ""


@dataclass(frozen=True, slots=True)
class MentionLinks:
    """The passages that contain each linking name, and the first passages of the documents with that title.

    Both incidences have the same keys: the hashes of the linking names.
    """

    mentions: Incidence
    leads: Incidence


def build_mention_links(snapshot: Snapshot, leads: int) -> MentionLinks:
    """Return the links of every name that is a document's title or occurs in passages of two documents."""
    titles = documents_by_title(snapshot)
    title_keys = np.unique(np.array(list(titles), dtype=np.uint64))
    names, holders = snapshot.postings("mention").vocabulary()
    keys = np.union1d(names[holders > 1], title_keys)
    mentions = build_incidence(posting_blocks(snapshot, "mention"), keys, snapshot.size)
    linking = _in_two_documents(mentions, snapshot.column("document"))
    linking[find_positions(keys, title_keys)] = True
    mentions = mentions.select_keys(linking)
    return MentionLinks(mentions, _lead_incidence(snapshot, mentions.keys, titles, leads))


def _in_two_documents(mentions: Incidence, document: Rows) -> NDArray[np.bool_]:
    """Return for each name whether passages of at least two documents contain it, (number of names,)."""
    in_two = np.zeros(len(mentions.keys), dtype=np.bool_)
    occurring = np.flatnonzero(mentions.counts())
    if len(occurring):
        documents = document[mentions.key_rows]
        starts = mentions.key_starts[occurring]
        in_two[occurring] = np.minimum.reduceat(documents, starts) != np.maximum.reduceat(documents, starts)
    return in_two


def _lead_incidence(snapshot: Snapshot, keys: Hashes, titles: dict[int, list[str]], count: int) -> Incidence:
    first = leading_passages(snapshot, count)
    pairs = {(row, name) for name, documents in titles.items() for key in documents for row in first[key]}
    rows = np.array([row for row, _ in pairs], dtype=np.int32)
    slots = find_positions(keys, np.array([name for _, name in pairs], dtype=np.uint64)).astype(np.int32)
    return Incidence.from_pairs(keys, rows, slots, snapshot.size)
