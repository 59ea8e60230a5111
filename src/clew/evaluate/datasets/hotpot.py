"""HotpotQA (Yang et al., EMNLP 2018), 2WikiMultihopQA (Ho et al., COLING 2020), HotpotQA-Doc.

One form: ``context`` is a list of [title, [sentence, ...]], ``supporting_facts`` of [title, sentence index].
2WikiMultihopQA adds ``evidences``, the gold triples in the order of the hops. HotpotQA-Doc, the setting of
"Drilling Down into the Discourse Structure" (Section 5.3), has whole documents in ``context``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.errors import UsageError
from clew.evaluate.datasets import distinct, field
from clew.evaluate.examples import AnswerType, Example, Paragraph, Support
from clew.evaluate.streams import records


def read(path: Path) -> Iterator[Example]:
    """Yield the questions of a JSON array or JSON lines. Raises UsageError."""
    for place, record in records(path):
        yield _example(place, record)


def _example(place: str, record: Any) -> Example:
    answer = field(place, record, "answer")
    context = field(place, record, "context", (list, dict))
    facts = field(place, record, "supporting_facts", (list, dict)) if "supporting_facts" in record else []
    # The copies on data hubs hold columns instead of pairs.
    if isinstance(context, dict):
        context = list(zip(context["title"], context["sentences"], strict=True))
    if isinstance(facts, dict):
        facts = list(zip(facts["title"], facts["sent_id"], strict=True))
    try:
        corpus = tuple(Paragraph(str(title), tuple(map(str, sentences))) for title, sentences in context)
        support = tuple(Support(str(title), int(sentence)) for title, sentence in facts)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{place}: context or supporting_facts in another form ({error})") from error
    kind: AnswerType = "yes/no" if answer.strip().lower() in {"yes", "no"} else "span"
    return Example(
        str(record.get("_id") or record.get("id") or place),
        field(place, record, "question"),
        distinct([answer, *map(str, record.get("aliases") or record.get("answer_aliases") or ())]),
        kind,
        str(record.get("type", "")),
        support,
        chain=tuple(tuple(map(str, triple)) for triple in record.get("evidences") or ()),
        corpus=corpus,
        meta={key: record[key] for key in ("level", "evidences_id", "answer_id") if key in record},
    )
