"""Sentences that may answer a question, ranked together: a linear score over features of each beside the question.

The options are the sentences of the passages that were found, the rows of tables with their headers, and a lead-in
with its list as one. Each is compared with the question by its vector (with its heading and the words before it), by
the share of the question's words that it, its passage and its headings have, and by what the reader of spans marks in
it. Which kinds of sentence answer which kinds of question is learned. How likely the first option is right is fitted
on documents that the score was not fitted to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.text import candidate_names, index_terms, query_terms, sentence_spans
from clew.core.types import ROW
from clew.core.values import mentions_name
from clew.questions.linear import LinearScore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder, PlanJudge
    from clew.core.types import Hit, Node

#: Kinds of options.
SENTENCE, LIST = "sentence", "list"
#: Options are taken from the first hits; a list of more characters is no option; words before a sentence go with it.
HITS, LONGEST_LIST, WORDS_BEFORE = 8, 1500, 22
#: The words that ask, which make the kind of a question; a question is of each kind whose words it has.
ASKING = (
    "who", "whom", "whose", "when", "where", "why", "how many", "how much", "how long", "how", "which", "what",
)  # fmt: skip
_POLAR = frozenset(
    "is are was were am do does did can could may might must shall should will would has have had".split()
)
#: What a sentence may have, by which it fits a kind of question.
_MARKS: tuple[re.Pattern[str], ...] = (
    re.compile(r"\d"),
    re.compile(r"\b(?:1[5-9]|20)\d\d\b"),
    re.compile(r"[%$€£¥]"),
    re.compile(r"(?<=\w )[A-Z][a-z]+ [A-Z][a-z]+"),
    re.compile(r"\n"),
    re.compile(r"\?\s*$"),
    re.compile(r":"),
    re.compile(r"\b(?:because|since|so|therefore|thus|to)\b", re.IGNORECASE),
    re.compile(r"\b(?:not|no|never|only|must|may|cannot|shall)\b", re.IGNORECASE),
    re.compile(r"\b(?:is|are|was|were)\b", re.IGNORECASE),
    re.compile(r"[\"“”]"),
)
FEATURES = (
    "likeness",
    "likeness below the best",
    "best likeness in its passage",
    "words",
    "words below the best",
    "words of its passage",
    "words of its headings",
    "words of all of these",
    "root of its rank",
    "first passage",
    "row",
    "list",
    "first in its passage",
    "likeness and words",
    "marked",
    "marked first",
    "numbers left out",
    "names left out",
    *(f"{kind}: {mark}" for kind in (*ASKING, "yes or no", "none") for mark in range(len(_MARKS) + 2)),
)
#: Of these, those that are no kinds of questions beside traits of sentences.
_OWN = FEATURES.index("names left out") + 1
_NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")
#: The features of the confidence in the first option.
CONFIDENCE = (
    "constant",
    "share",
    "share above the second",
    "likeness",
    "words of all of these",
    "words",
    "root of its rank",
    "marked",
    "most words left out",
    "numbers left out",
    "names left out",
    "passages that agree",
    *(f"{kind}" for kind in ("yes or no", "row", "list")),
)


@dataclass(frozen=True, slots=True)
class Option:
    """A part of the hit at ``place`` that may answer: the characters from ``start`` to ``end`` of its node's text."""

    place: int
    start: int
    end: int
    kind: str

    def text(self, hits: Sequence[Hit]) -> str:
        """The words of the option."""
        return hits[self.place].node.text[self.start : self.end]

    def holds(self, mark: Mark) -> bool:
        """Return whether a mark stands in the option."""
        return mark.place == self.place and self.start <= mark.start and mark.end <= self.end

    def overlaps(self, other: Option) -> bool:
        """Return whether two options have words in common."""
        return self.place == other.place and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Mark:
    """What a reader of spans marks in the hit at ``place``, and how likely it finds that it answers."""

    place: int
    start: int
    end: int
    probability: float


def split_hits(hits: Sequence[Hit]) -> list[Option]:
    """Return the options of hits, in order."""
    options = []
    for place, hit in enumerate(hits[:HITS]):
        text = hit.node.text
        if hit.node.kind == ROW:
            options.append(Option(place, 0, len(text), ROW))
            continue
        start = 0
        lines = text.split("\n")
        for line in lines:
            options += [
                Option(place, start + first, start + last, SENTENCE) for first, last in sentence_spans(line)
            ]
            start += len(line) + 1
        if len(lines) > 1 and len(text) <= LONGEST_LIST:
            options.append(Option(place, 0, len(text), LIST))
    return options


def classify_question(text: str) -> Floats:
    """Return of which kinds a question is, (kinds,): by its words that ask, yes or no, none of these."""
    folded = text.casefold()
    kinds = [bool(re.search(rf"\b{words}\b", folded)) for words in ASKING]
    kinds[ASKING.index("how")] &= not any(kinds[ASKING.index(each)] for each in ("how many", "how much"))
    first = re.match(r"\W*(\w+)", folded)
    polar = first is not None and first[1] in _POLAR
    return np.array([*kinds, polar, not any(kinds) and not polar], dtype=np.float64)


def option_words(option: Option, node: Node) -> str:
    """Return an option as it is encoded: the last heading, the words before it, then the option."""
    heading = node.headings[-1] if node.headings else node.document_name
    before = " ".join(node.text[: option.start].split()[-WORDS_BEFORE:])
    return f"{heading}. {f'{before} » ' if before else ''}{node.text[option.start : option.end]}"


def count_left_out(question: str, context: str) -> tuple[int, int]:
    """Return how many numbers and how many names of a question a passage with its headings does not have.

    >>> count_left_out("How many ships did Ada Pell build in 1931?", "Ada Pell built 6 ships in 1922.")
    (1, 0)
    """
    known = {_plain_number(number) for number in _NUMBER.findall(context)}
    numbers = sum(_plain_number(number) not in known for number in _NUMBER.findall(question))
    names, last = 0, 1
    for _, start, end in sorted(candidate_names(question), key=lambda name: (name[1], -name[2])):
        if start >= last and not question[start].isdigit():
            names += not mentions_name(question[start:end], context)
            last = end
    return numbers, names


def _plain_number(number: str) -> str:
    return number.replace(",", "").lstrip("0")


def _context_of(node: Node) -> str:
    return " ".join((node.text, *node.headings, node.document_name))


def measure_sentences(
    question: str,
    hits: Sequence[Hit],
    options: Sequence[Option],
    encoder: Encoder,
    weigh: Callable[[Sequence[str]], Sequence[float]],
    marks: Sequence[Mark],
) -> Floats:
    """Return the features of options, (options, :data:`FEATURES`). ``weigh`` gives the weights of terms."""
    vectors = encoder.encode([question, *(option_words(each, hits[each.place].node) for each in options)])
    likeness = np.asarray(vectors[1:] @ vectors[0], dtype=np.float64)
    terms = list(dict.fromkeys(query_terms(question)))
    weights = np.asarray(weigh(terms), dtype=np.float64)
    weights /= weights.sum() or 1.0

    def share(has: set[str]) -> float:
        return float(sum(weight for term, weight in zip(terms, weights, strict=True) if term in has))

    passages = [set(index_terms(hit.node.text)) for hit in hits[:HITS]]
    headings = [
        set(index_terms(" ".join((*hit.node.headings, hit.node.document_name)))) for hit in hits[:HITS]
    ]
    own = np.array([share(set(index_terms(each.text(hits)))) for each in options])
    of_passage, of_headings, of_all = (
        np.array(
            [share(has[place] if isinstance(has, list) else has(place)) for place in range(len(passages))]
        )
        for has in (passages, headings, lambda place: passages[place] | headings[place])
    )
    best = {
        place: likeness[[each.place == place for each in options]].max()
        for place in {o.place for o in options}
    }
    left_out = [count_left_out(question, _context_of(hit.node)) for hit in hits[:HITS]]
    first_mark = max(marks, key=lambda mark: mark.probability, default=None)
    kinds = classify_question(question)
    features = np.zeros((len(options), len(FEATURES)))
    for number, option in enumerate(options):
        inside = [mark for mark in marks if option.holds(mark)]
        text = option.text(hits)
        traits = [bool(mark.search(text)) for mark in _MARKS]
        row = [
            likeness[number],
            likeness[number] - likeness.max(),
            best[option.place],
            own[number],
            own[number] - own.max(),
            of_passage[option.place],
            of_headings[option.place],
            of_all[option.place],
            1 / math.sqrt(1 + option.place),
            option.place == 0,
            option.kind == ROW,
            option.kind == LIST,
            option.start == 0,
            likeness[number] * own[number],
            max((mark.probability for mark in inside), default=0.0),
            first_mark is not None and first_mark in inside,
            *left_out[option.place],
            *np.outer(kinds, [*traits, math.log1p(len(text)) / 5, 1.0]).ravel(),
        ]
        features[number] = row
    return features


@dataclass(frozen=True, slots=True, eq=False)
class SentenceModel:
    """The fitted weights: of the linear score of options, and of the confidence in the first."""

    score: LinearScore
    confidence: Floats

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> SentenceModel:
        """Return the model of the arrays that :meth:`to_arrays` gives."""
        return cls(LinearScore(arrays["weights"], arrays["scales"]), arrays["confidence"])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return its arrays by name."""
        return {"weights": self.score.weights, "scales": self.score.scales, "confidence": self.confidence}


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Options in ``order``, the likeliest first, their ``shares`` of the probability among all, and how likely it is
    that the first one answers."""

    options: Sequence[Option]
    order: Sequence[int]
    shares: Floats
    probability: float

    def apart(self, most: int) -> list[tuple[Option, float]]:
        """Return the first options that do not overlap, each with the probability that it answers: that of the first
        as it was fitted, those of the others in proportion to their shares."""
        chosen: list[tuple[Option, float]] = []
        for place in self.order:
            option = self.options[place]
            if not any(option.overlaps(other) for other, _ in chosen):
                part = float(self.shares[place] / self.shares[self.order[0]])
                chosen.append((option, self.probability * part))
            if len(chosen) == most:
                break
        return chosen


@dataclass(frozen=True, slots=True)
class SentenceRanker:
    """Ranks the options of hits."""

    judge: PlanJudge

    def measure(
        self,
        question: str,
        hits: Sequence[Hit],
        weigh: Callable[[Sequence[str]], Sequence[float]],
        marks: Sequence[Mark],
    ) -> tuple[list[Option], Floats]:
        """Return the options of hits with their features. ``weigh`` gives the weights of terms, ``marks`` are what a
        reader of spans marks."""
        options = split_hits(hits)
        if not options:
            return [], np.empty((0, len(FEATURES)))
        return options, measure_sentences(question, hits, options, self.judge.encoder, weigh, marks)

    def rank(self, question: str, options: Sequence[Option], features: Floats) -> Ranked | None:
        """Return the options ranked, None where there are none."""
        if not options:
            return None
        model = SentenceModel.of_arrays(self.judge.sentences)
        shares, order = share_scores(model.score.scores(features))
        chance = float(model.confidence @ measure_first(question, options, features, shares, order))
        return Ranked(options, order, shares, 1 / (1 + math.exp(-chance)))


def share_scores(scores: Floats) -> tuple[Floats, list[int]]:
    """Return the shares of scores in their sum of exponentials, and their order, best first."""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum(), np.argsort(-scores, kind="stable").tolist()


def measure_first(
    question: str, options: Sequence[Option], features: Floats, shares: Floats, order: Sequence[int]
) -> Floats:
    """Return the features of the confidence in the first option, (:data:`CONFIDENCE`,)."""
    first = order[0]
    row = dict(zip(FEATURES[:_OWN], features[first][:_OWN], strict=True))
    others = [place for place in order[1:] if options[place].place != options[first].place]
    same = sum(shares[place] for place in order if options[place].place == options[first].place)
    return np.array(
        [
            1.0,
            shares[first],
            shares[first] - (shares[others[0]] if others else 0.0),
            row["likeness"],
            row["words of all of these"],
            row["words"],
            row["root of its rank"],
            row["marked"],
            row["words of all of these"] < 0.5,
            row["numbers left out"],
            row["names left out"],
            same,
            classify_question(question)[len(ASKING)],
            row["row"],
            row["list"],
        ]
    )
