"""What changed between two documents: aligned by headings, then by passages and table rows, then by words.

Passages that are equal are paired first, those of sections with the same heading before others. What is left is
paired by the words that two passages share, weighted by how rare they are in both documents (the Dice coefficient
with the weights of Spärck Jones, 1972), the likest first; a section of the same heading counts as a bonus, so that
the order of clauses may change. The rarest words of a passage propose its pairs, so that time and memory grow with
the documents, not with their product. Within a pair words are aligned by their longest common blocks (Ratcliff and
Metzener, 1988).
"""

from __future__ import annotations

import bisect
import difflib
import heapq
import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from clew.core.text import normalise, sentence_spans
from clew.core.types import RETRIEVED_KINDS, SECTION, Node
from clew.retrieve.structure.outline import heading_terms

#: How like two passages have to be to be versions of one: below equal headings, elsewhere, and with few words.
_LEAST_TOGETHER, _LEAST_APART, _LEAST_SHORT, _SHORT = 0.35, 0.5, 0.65, 5
#: How like two headings have to be.
_LEAST_HEADING = 0.6
#: What equal headings above two passages add to their likeness, and what their distance in the documents takes away.
_SECTION_BONUS, _DISTANCE_PENALTY = 0.2, 0.05
#: So many of the rarest words of a passage propose passages of the other document, each at most as many as the second
#: number, those at about the same place in it; and so many passages are compared that have most of these words.
_RAREST, _PROPOSED, _COMPARED = 12, 40, 10
#: Words from which on frequent ones are left out where two passages are aligned.
_LONG = 2_000
_WORDS_FOR_NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion half "
    "quarter"
)
_NUMBER_WORD = "|".join(_WORDS_FOR_NUMBERS.split())
_TOKEN = re.compile(
    rf"(?P<number>[$€£]?(?:\d{{1,3}}(?:,\d{{3}})+(?!\d)|\d+)(?:\.\d+)*%?|\b(?:{_NUMBER_WORD})(?:-(?:{_NUMBER_WORD}))*\b)|\w+(?:['’-]\w+)*|[^\w\s]",
    re.IGNORECASE,
)

Kind = Literal["changed", "inserted", "removed", "moved"]
KINDS_OF_CHANGE: tuple[Kind, ...] = ("changed", "inserted", "removed", "moved")
#: Half-open character ranges in the texts before and after.
Edit = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class NumberChange:
    """A number of a passage that became another: both as they are written, "" for none."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Change:
    """A passage or table row that was changed, inserted, removed, or moved with its words unchanged.

    ``before`` and ``after`` are its nodes, None where there is none. ``edits`` are the character ranges of their
    texts that differ, ``numbers`` the numbers among them.
    """

    kind: Kind
    before: Node | None
    after: Node | None
    edits: tuple[Edit, ...] = ()
    numbers: tuple[NumberChange, ...] = ()

    @property
    def heading(self) -> str:
        """The innermost heading above it, of the later version where there is one."""
        node = self.after or self.before
        return node.headings[-1] if node is not None and node.headings else ""

    @property
    def quotes(self) -> tuple[str, str]:
        """The sentences before and after that have an edit, verbatim, with " … " for what is left out; the whole text
        of what was inserted, removed or moved, and "" where there is none."""
        return (
            "" if self.before is None else _quote(self.before.text, [before for before, _ in self.edits]),
            "" if self.after is None else _quote(self.after.text, [after for _, after in self.edits]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the change with the texts and places of both sides, JSON-compatible."""
        before, after = self.quotes
        return {
            "kind": self.kind,
            "heading": self.heading,
            "before": None if self.before is None else _side_to_dict(self.before, before),
            "after": None if self.after is None else _side_to_dict(self.after, after),
            "edits": [{"before": list(first), "after": list(second)} for first, second in self.edits],
            "numbers": [{"before": change.before, "after": change.after} for change in self.numbers],
        }


@dataclass(frozen=True, slots=True)
class HeadingPair:
    """A heading of both documents, or of one alone: then the other is None."""

    before: Node | None
    after: Node | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two aligned documents. ``changes`` follow the order of the later document, removals stand at their old place;
    ``headings`` are the headings that changed; ``same`` counts unchanged passages and rows."""

    changes: tuple[Change, ...]
    headings: tuple[HeadingPair, ...]
    same: int

    def counts(self) -> dict[str, int]:
        """Count the changes of each kind, those with changed ``numbers``, and the unchanged passages and rows
        (``same``)."""
        kinds = Counter(change.kind for change in self.changes)
        return {kind: kinds[kind] for kind in KINDS_OF_CHANGE} | {
            "numbers": sum(bool(change.numbers) for change in self.changes),
            "same": self.same,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison, JSON-compatible."""
        return {
            "counts": self.counts(),
            "headings": [
                {"before": pair.before and pair.before.name, "after": pair.after and pair.after.name}
                for pair in self.headings
            ],
            "changes": [change.to_dict() for change in self.changes],
        }


def _side_to_dict(node: Node, quote: str) -> dict[str, Any]:
    data = node.to_dict()
    names = ("id", "kind", "document", "key", "page", "section", "text")
    return {name: data[name] for name in names} | {"quote": quote}


def _quote(text: str, edits: Sequence[tuple[int, int]]) -> str:
    if not edits:
        return text
    sentences = sentence_spans(text)
    shown = [
        number
        for number, (start, end) in enumerate(sentences)
        if any(first <= end and start <= last for first, last in edits)
    ]
    parts, previous = [], -1
    for number in shown:
        parts.append((" … " if number > previous + 1 else " ") + text[slice(*sentences[number])])
        previous = number
    return ("".join(parts) + (" …" if previous < len(sentences) - 1 else "")).strip()


def compare_nodes(before: Sequence[Node], after: Sequence[Node]) -> Comparison:
    """Return what changed from the nodes of one document to those of another, both in reading order."""
    sections = [[node for node in nodes if node.kind == SECTION] for nodes in (before, after)]
    first, second = ([node for node in nodes if node.kind in RETRIEVED_KINDS] for nodes in (before, after))
    heading_pairs = _pair_headings(sections[0], sections[1])
    same_section = {_path(sections[0][old]): _path(sections[1][new]) for old, new in heading_pairs.items()}
    partners = _pair_equal(first, second, same_section)
    equal = dict(partners)
    partners |= _pair_similar(first, second, partners, same_section)
    moved = _out_of_order(equal)
    changes = []
    taken = set(partners.values())
    for old, new in partners.items():
        if old not in equal:
            changes.append((new, 0, old, _describe_change(first[old], second[new])))
        elif old in moved:
            changes.append((new, 0, old, Change("moved", first[old], second[new])))
    for new, node in enumerate(second):
        if new not in taken:
            changes.append((new, 0, -1, Change("inserted", None, node)))
    place = -1  # what was removed is told behind what it stood behind
    for old, node in enumerate(first):
        if old in partners:
            place = place if old in moved else partners[old]
        else:
            changes.append((place, 1, old, Change("removed", node, None)))
    changes.sort(key=lambda item: item[:3])
    return Comparison(
        tuple(change for *_, change in changes),
        tuple(_different_headings(sections[0], sections[1], heading_pairs)),
        len(equal) - len(moved),
    )


# Headings


def _path(section: Node) -> tuple[str, ...]:
    return (*section.headings, section.name) if section.headings[-1:] != (section.name,) else section.headings


def _pair_headings(before: Sequence[Node], after: Sequence[Node]) -> dict[int, int]:
    """Return the index of the heading after for each heading before that has one: equal ones first, in order, then
    those that share most of their words. Their numbers do not count."""
    keys = [[" ".join(heading_terms(node.name)) for node in nodes] for nodes in (before, after)]
    pairs: dict[int, int] = {}
    parents = [
        [" ".join(heading_terms(" ".join(_path(node)[-2:-1]))) for node in nodes] for nodes in (before, after)
    ]
    for with_parent in (True, False):
        waiting: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, key in enumerate(keys[1]):
            if place not in pairs.values():
                waiting[key, parents[1][place] if with_parent else ""].append(place)
        for place, key in enumerate(keys[0]):
            same = waiting[key, parents[0][place] if with_parent else ""]
            if key and place not in pairs and same:
                pairs[place] = same.pop(0)
    taken = set(pairs.values())
    old_terms = {place: Counter(key.split()) for place, key in enumerate(keys[0]) if place not in pairs}
    new_terms = {place: Counter(key.split()) for place, key in enumerate(keys[1]) if place not in taken}
    scored = [
        (likeness, -abs(old - new), old, new)
        for old, new, likeness in _propose_pairs(old_terms, new_terms)
        if likeness >= _LEAST_HEADING
    ]
    return pairs | _take_best(scored)


def _different_headings(
    before: Sequence[Node], after: Sequence[Node], pairs: Mapping[int, int]
) -> Iterable[HeadingPair]:
    renamed = {
        new: old for old, new in pairs.items() if normalise(before[old].name) != normalise(after[new].name)
    }
    taken = set(pairs.values())
    for new, node in enumerate(after):
        if new in renamed:
            yield HeadingPair(before[renamed[new]], node)
        elif new not in taken:
            yield HeadingPair(None, node)
    for old, node in enumerate(before):
        if old not in pairs:
            yield HeadingPair(node, None)


# Passages and rows

#: The headings above a passage of the later document, by those above its counterpart in the earlier one.
_Sections = Mapping[tuple[str, ...], tuple[str, ...]]


def _pair_equal(first: Sequence[Node], second: Sequence[Node], same_section: _Sections) -> dict[int, int]:
    """Return the pairs of equal texts, by index: of several equal ones those of the same section, then in order."""
    texts = [[(node.kind, normalise(node.text)) for node in nodes] for nodes in (first, second)]
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for with_section in (True, False):
        waiting: defaultdict[Any, deque[int]] = defaultdict(deque)
        for new, node in enumerate(second):
            if new not in taken:
                waiting[texts[1][new], node.headings if with_section else None].append(new)
        for old, node in enumerate(first):
            section = same_section.get(node.headings, ()) if with_section else None
            if old not in pairs and (places := waiting.get((texts[0][old], section))):
                pairs[old] = places.popleft()
                taken.add(pairs[old])
    return dict(sorted(pairs.items()))


def _pair_similar(
    first: Sequence[Node], second: Sequence[Node], pairs: Mapping[int, int], same_section: _Sections
) -> dict[int, int]:
    """Return the pairs of passages, and of rows, without a partner that are versions of one."""
    taken = set(pairs.values())
    scored = []
    for kind in RETRIEVED_KINDS:
        old_terms = {
            old: _terms(node) for old, node in enumerate(first) if node.kind == kind and old not in pairs
        }
        new_terms = {
            new: _terms(node) for new, node in enumerate(second) if node.kind == kind and new not in taken
        }
        for old, new, likeness in _propose_pairs(old_terms, new_terms):
            headings = first[old].headings
            together = bool(headings) and same_section.get(headings) == second[new].headings
            is_short = min(old_terms[old].total(), new_terms[new].total()) < _SHORT
            least = _LEAST_SHORT if is_short else _LEAST_TOGETHER if together else _LEAST_APART
            if likeness >= least:
                distance = abs(old / len(first) - new / len(second))
                score = likeness + (_SECTION_BONUS if together else 0.0) - _DISTANCE_PENALTY * distance
                scored.append((score, -abs(old - new), old, new))
    return _take_best(scored)


def _propose_pairs(
    old_terms: Mapping[int, Counter[str]], new_terms: Mapping[int, Counter[str]]
) -> Iterator[tuple[int, int, float]]:
    """Yield pairs of texts that share words, with how like they are, from 0 to 1."""
    weights = _weights([*old_terms.values(), *new_terms.values()])
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for new, terms in new_terms.items():
        for term in terms:
            holders[term].append(new)
    order = {old: place / len(old_terms) for place, old in enumerate(old_terms)}
    for old, terms in old_terms.items():
        votes: defaultdict[int, float] = defaultdict(float)
        for term in sorted(terms, key=lambda term: (-weights[term], term))[:_RAREST]:
            places = holders.get(term, [])
            start = max(0, min(int(order[old] * len(places)) - _PROPOSED // 2, len(places) - _PROPOSED))
            for new in places[start : start + _PROPOSED]:
                votes[new] += weights[term]
        for new, _ in heapq.nlargest(_COMPARED, votes.items(), key=lambda item: (item[1], -item[0])):
            yield old, new, _dice(terms, new_terms[new], weights)


def _terms(node: Node) -> Counter[str]:
    """Return the words of a text and how often each occurs; all numbers are one word."""
    return Counter(
        "#" if match["number"] and not match["number"].isalpha() else match.group().casefold()
        for match in _TOKEN.finditer(node.text)
        if match.group()[0].isalnum() or match["number"]
    )


def _weights(texts: Sequence[Counter[str]]) -> dict[str, float]:
    frequency = Counter(term for terms in texts for term in terms)
    return {term: math.log(1 + len(texts) / count) for term, count in frequency.items()}


def _dice(first: Counter[str], second: Counter[str], weights: Mapping[str, float]) -> float:
    """Return the weight of the shared words, twice, as a share of the weight of all."""
    shared = sum(count * weights[term] for term, count in (first & second).items())
    total = sum(count * weights[term] for terms in (first, second) for term, count in terms.items())
    return 2 * shared / total if total else 0.0


def _take_best(scored: list[tuple[float, int, int, int]]) -> dict[int, int]:
    """Return the pairs with the best scores in which nothing occurs twice."""
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for _, _, old, new in sorted(scored, key=lambda item: (-item[0], -item[1], item[2:])):
        if old not in pairs and new not in taken:
            pairs[old] = new
            taken.add(new)
    return pairs


def _out_of_order(pairs: Mapping[int, int]) -> set[int]:
    """Return the keys of ascending keys whose values are not in the longest ascending sequence of values."""
    ends: list[int] = []
    ends_at: list[int] = []  # the key whose value ends the sequence of each length
    previous: dict[int, int | None] = {}
    for old, new in sorted(pairs.items()):
        length = bisect.bisect_left(ends, new)
        previous[old] = ends_at[length - 1] if length else None
        ends[length : length + 1] = [new]
        ends_at[length : length + 1] = [old]
    in_order: set[int] = set()
    last: int | None = ends_at[-1] if ends_at else None
    while last is not None:
        in_order.add(last)
        last = previous[last]
    return set(pairs) - in_order


# Words


def _describe_change(before: Node, after: Node) -> Change:
    tokens = [list(_TOKEN.finditer(node.text)) for node in (before, after)]
    old_words, new_words = ([match.group().casefold() for match in side] for side in tokens)
    matcher = difflib.SequenceMatcher(None, old_words, new_words, autojunk=len(new_words) > _LONG)
    edits, numbers = [], []
    for tag, low, high, new_low, new_high in matcher.get_opcodes():
        if tag == "equal":
            continue
        removed, inserted = tokens[0][low:high], tokens[1][new_low:new_high]
        edits.append((_range(tokens[0], low, high), _range(tokens[1], new_low, new_high)))
        old = [match.group() for match in removed if match["number"]]
        new = [match.group() for match in inserted if match["number"]]
        for place in range(max(len(old), len(new))):
            pair = "".join(old[place : place + 1]), "".join(new[place : place + 1])
            if not all(number.isalpha() or not number for number in pair) or all(pair):
                numbers.append(NumberChange(*pair))
    return Change("changed", before, after, tuple(edits), tuple(numbers))


def _range(tokens: Sequence[re.Match[str]], low: int, high: int) -> tuple[int, int]:
    if low < high:
        return tokens[low].start(), tokens[high - 1].end()
    place = tokens[low - 1].end() if low else 0
    return place, place
