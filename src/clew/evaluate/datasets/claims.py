"""FEVER's claims, and Bamboogle's questions with answers only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.core.errors import UsageError
from clew.evaluate.datasets.records import read_records, require_field
from clew.evaluate.examples import Annotation, Example, Support
from clew.methods.replies import LABELS

# How FEVER writes brackets and colons in page names.
_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-COLON-": ":"}


def read_fever(path: Path) -> Iterator[Example]:
    """Yield the claims of FEVER (Thorne et al., NAACL 2018): JSON lines; the answer is the label.

    Each set of evidence that suffices is an alternative; the first is the support. Raises UsageError.
    """
    for place, record in read_records(path):
        label = require_field(place, record, "label")
        if label not in LABELS:
            raise UsageError(f"{place}: no label of FEVER: '{label}'", f"Known: {', '.join(LABELS)}")
        sets = [_evidence(place, one) for one in require_field(place, record, "evidence", list)]
        sets = list(dict.fromkeys(one for one in sets if one))
        yield Example(
            str(require_field(place, record, "id", (int, str))),
            require_field(place, record, "claim"),
            (label,),
            "label",
            support=sets[0] if sets else (),
            alternatives=tuple(Annotation((label,), "label", one) for one in sets),
        )


def _evidence(place: str, given: Any) -> tuple[Support, ...]:
    try:
        found = [(one[2], one[3]) for one in given]
    except (TypeError, IndexError) as error:
        raise UsageError(f"{place}: evidence in another form") from error
    return tuple(Support(_page(page), int(sentence)) for page, sentence in found if page is not None)


def _page(name: str) -> str:
    for escape, character in _ESCAPES.items():
        name = name.replace(escape, character)
    return name.replace("_", " ")
