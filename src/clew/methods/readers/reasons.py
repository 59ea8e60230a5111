"""Why something is so: "Why did operating income fall in 2022?", answered by the clause that gives the cause.

A reader of short spans marks the amount that changed, or a few words of its cause. Here all sentences are looked at
that state a cause ("primarily due to ...", "because ...") and have the words of what the question asks about, in the
passages that search returned and in those of the documents that it names. A sentence that begins with "The decrease"
or "This" is read with the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from clew.core.protocols import Snapshot
from clew.core.text import query_terms, sentence_spans
from clew.core.types import PASSAGE, Node
from clew.methods.readers.passages import nodes_with_words

_QUESTION = re.compile(
    r"^(?:why|how come|for what reasons?)\b(?P<why>.*)"
    r"|^what (?:is|are|was|were) the (?:main |primary |key |chief )?(?:reasons?|causes?|drivers?|explanations?)"
    r" (?:for|of|behind|why)\b(?P<noun>.*)"
    r"|^what (?:caused|causes|drove|drives|explains|explained|led to)\b(?P<event>.*)",
    re.IGNORECASE,
)
_DEGREE = r"(?:(?:primarily|mainly|largely|mostly|principally|chiefly|partly|partially|in part|driven) )?"
#: What stands between an effect and its cause.
_CAUSE = re.compile(
    rf"\b{_DEGREE}(?:because(?: of)?|due {_DEGREE}to|driven {_DEGREE}by|attribut(?:able|ed) {_DEGREE}to"
    rf"|as a result of|result(?:ed|ing|s) {_DEGREE}from|caused {_DEGREE}by|owing to|thanks to|on account of"
    r"|reflecting|so that)\s+",
    re.IGNORECASE,
)
#: What weakens a cause is no part of it.
_WEAKENED = re.compile(r",? (?:partially|partly) offset by\b|,? offset(?:,)? in part,? by\b")
#: An increase of so much is not what it is due to.
_AMOUNT_OF_CHANGE = re.compile(
    r"^(?:an?|the) (?:\w+ )?(?:increase|decrease|decline|growth) of \W?\d", re.IGNORECASE
)
#: A sentence that tells more about what the sentence before it says.
_REFERRING = re.compile(
    r"^(?:the|this|that|these|such) (?:[a-z]+ )?"
    r"(?:increase|decrease|change|growth|decline|reduction|improvement|rise|fall|drop)s?\b|^(?:this|that|it|they|he|she)\b",
    re.IGNORECASE,
)
_UP = frozenset(
    query_terms("increase increased grow grew growth rise rose risen higher up improve improved gain")
)
_DOWN = frozenset(
    query_terms("decrease decreased decline declined fall fell fallen drop dropped lower down reduce reduced")
)
#: Words of a question that name nothing of what happened.
_ASKING = frozenset(
    query_terms("change changed happen happened did go went come company year fiscal so much")
)
#: Of a part of a company, or of an amount that is computed otherwise: less likely what a question asks about.
_OTHER = re.compile(r"\b(?:segments?|adjusted|pro forma|comparable|underlying|organic)\b", re.IGNORECASE)
_MAX_NODES = 200
#: How sure a cause is whose sentence has every word of what is asked, and one of which the headings have some (set by
#: hand).
_WHOLE, _AROUND = 0.7, 0.5


@dataclass(frozen=True, slots=True)
class Reason:
    """A cause as ``node`` gives it at ``start`` to ``end``, and how sure it is that it is the one asked for.

    ``fit`` puts causes in order that are as sure: one of the year that is asked about, and of the whole.
    """

    text: str
    node: Node
    start: int
    end: int
    confidence: float
    fit: tuple[bool, bool]


def parse_reason_question(text: str) -> str:
    """Return the words of what a question asks the cause of, "" for another question.

    >>> parse_reason_question("Why did sales fall in 2022?").strip()
    'did sales fall in 2022?'
    >>> parse_reason_question("When did sales fall?")
    ''
    """
    match = _QUESTION.match(" ".join(text.split()))
    return next(filter(None, match.groups()), "") if match else ""


def find_reason(
    asked: str, names: Collection[str], nodes: Sequence[Node], documents: Collection[str], snapshot: Snapshot
) -> Reason | None:
    """Return the cause of what is ``asked`` about, None where no sentence gives one.

    ``names`` are those in the question that ``documents`` (keys) are about; ``nodes`` were found by search, and the
    passages of these documents that have the other words are read, too.
    """
    named = frozenset(term for name in names for term in query_terms(name))
    terms = frozenset(query_terms(asked)) - named - _ASKING
    direction = next((words for words in (_UP, _DOWN) if terms & words), frozenset())
    needed = frozenset(term for term in terms - _UP - _DOWN if not term.isdigit())
    years = frozenset(term for term in terms if term.isdigit())
    if not needed:
        return None
    own = nodes_with_words([" ".join(needed)], documents, snapshot, _MAX_NODES) if documents else []
    candidates = dict.fromkeys(node for node in (*nodes, *own) if node.kind == PASSAGE)
    reasons = [reason for node in candidates for reason in _read_reasons(node, needed, years, direction)]
    return max(reasons, key=lambda reason: (reason.confidence, reason.fit), default=None)


def _read_reasons(
    node: Node, needed: frozenset[str], years: frozenset[str], direction: frozenset[str]
) -> Iterator[Reason]:
    spans = sentence_spans(node.text)
    around = frozenset(query_terms(" ".join((*node.headings, node.document_name))))
    for number, (start, end) in enumerate(spans):
        cause = _CAUSE.search(node.text, start, end)
        if cause is None:
            continue
        effect = node.text[start : cause.start()]
        if number and _REFERRING.match(effect):
            effect = f"{node.text[slice(*spans[number - 1])]} {effect}"
        words = frozenset(query_terms(effect))
        stated = frozenset(word for word in words if word.isdigit() and len(word) == 4)
        if not needed <= words | around or (years and stated and not years & stated):
            continue
        if (direction and not words & direction) or 2 * len(words & needed) <= len(needed):
            continue
        weakened = _WEAKENED.search(node.text, cause.end(), end)
        last = weakened.start() if weakened else end
        text = node.text[cause.end() : last].rstrip(" .;:,")
        if any(map(str.isalpha, text)) and not _AMOUNT_OF_CHANGE.match(text):
            sure = _WHOLE if needed <= words else _AROUND
            fit = bool(years & stated), not any(map(_OTHER.search, (effect, *node.headings)))
            yield Reason(text, node, cause.end(), cause.end() + len(text), sure, fit)
