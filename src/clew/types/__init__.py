"""The values that clew is made of. Frozen, slotted, and importing nothing of ours.

A knowledge base is nodes with text, joined by edges. Documents, sections, pages, tables, table rows and
passages are all nodes, so a question about "the table on page 4" and one about the words of a passage are
answered from one structure.
"""

from clew.types.asking import (
    Answer,
    ConstraintCheck,
    Exclusion,
    Hit,
    Question,
    Quote,
    RankedAnswer,
    Scope,
    Step,
    Usage,
)
from clew.types.documents import (
    DOCUMENT,
    ENTITY,
    KINDS,
    PAGE,
    PASSAGE,
    RETRIEVED_KINDS,
    ROW,
    SECTION,
    TABLE,
    TRIPLE,
    Box,
    Document,
    Edge,
    Location,
    Node,
    ParsedDocument,
    ParsedNode,
)
from clew.types.graphs import Entity, GraphInfo, GraphSource, LinkedEntity, LinkedRelation, Property, Relation

__all__ = [
    "DOCUMENT",
    "ENTITY",
    "KINDS",
    "PAGE",
    "PASSAGE",
    "RETRIEVED_KINDS",
    "ROW",
    "SECTION",
    "TABLE",
    "TRIPLE",
    "Answer",
    "Box",
    "ConstraintCheck",
    "Document",
    "Edge",
    "Entity",
    "Exclusion",
    "GraphInfo",
    "GraphSource",
    "Hit",
    "LinkedEntity",
    "LinkedRelation",
    "Location",
    "Node",
    "ParsedDocument",
    "ParsedNode",
    "Property",
    "Question",
    "Quote",
    "RankedAnswer",
    "Relation",
    "Scope",
    "Step",
    "Usage",
]
