"""Sentences that may answer a question, ranked together: a linear score over features of each beside the question.

The options are the sentences of the passages that were found, the rows of tables with their headers, and a lead-in
with its list as one. Each is compared with the question by its vector (with its heading and the words before it), by
the share of the question's words that it, its passage and its headings have, by how likely the trained reader finds
that it answers (within its passage and, for the likeliest, alone), and by what it marks in it. How likely the first
option is right is fitted on documents that the score was not fitted to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.text import candidate_names, index_terms, item_number_end, query_terms, sentence_spans
from clew.core.types import ROW, ReaderPassage
from clew.core.values import POLAR, mentions_name
from clew.questions.linear import LinearScore
from clew.questions.text import has_number, negates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder, PlanJudge
    from clew.core.types import Hit, Node

#: Kinds of options.
SENTENCE, LIST = "sentence", "list"
#: Options are taken from the first hits; a list of more characters is no option; words before a sentence go with it.
HITS, LONGEST_LIST, WORDS_BEFORE = 8, 1500, 22
#: So many options are read alone.
ALONE = 10
FEATURES = (
    "likeness",
    "best likeness in its passage",
    "words",
    "words of its passage",
    "words of its headings",
    "words of all of these",
    "root of its rank",
    "first passage",
    "row",
    "list",
    "first in its passage",
    "marked",
    "score",
    "score alone",
    "numbers left out",
    "names left out",
    "log of its words",
    "a question",
    "behind a question",
    "a lead-in",
    "no number where one is asked for",
    "list where several are asked for",
)
_NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")
_ASKS_NUMBER = re.compile(r"\b(?:when|how (?:many|much))\b", re.IGNORECASE)
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
    "score",
    "share of its score",
    "score alone",
    "share of its score alone",
    "most words left out",
    "numbers left out",
    "names left out",
    "passages that agree",
    "log of passages",
    "share by log of passages",
    "yes or no",
    "row",
    "list",
    "a question",
    "no number where one is asked for",
)

#: The features of the confidence in words that are marked in an option that answers.
MARKED = (
    "constant",
    "log odds",
    "share among the marks of its option",
    "words",
    "words of its option",
    "a whole cell of a row",
)
#: What of a question of yes or no and the sentence that answers it the probability of "no" is fitted to.
VERDICT = ("constant", "the question negates", "the sentence negates", "both negate")


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
    return [
        Option(place, start, end, kind)
        for place, hit in enumerate(hits[:HITS])
        for start, end, kind in split_text(hit.node.text, is_row=hit.node.kind == ROW)
    ]


def split_text(text: str, *, is_row: bool = False) -> list[tuple[int, int, str]]:
    """Return the options of a text, each with its characters from start to end and its kind; what has neither letter
    nor digit answers nothing."""
    if is_row:
        return [(0, len(text), ROW)]
    options: list[tuple[int, int, str]] = []
    start = 0
    lines = text.split("\n")
    for line in lines:
        text_start = item_number_end(line)
        options += [
            (start + max(first, text_start), start + last, SENTENCE) for first, last in sentence_spans(line)
        ]
        start += len(line) + 1
    if len(lines) > 1 and len(text) <= LONGEST_LIST:
        options.append((0, len(text), LIST))
    return [each for each in options if says_something(text[each[0] : each[1]])]


def says_something(text: str) -> bool:
    """Return whether a text has a letter or a digit: the dash of an empty cell has none."""
    return any(map(str.isalnum, text))


def option_words(option: Option, node: Node) -> str:
    """Return an option as it is encoded: the last heading, the words before it, then the option."""
    heading = node.headings[-1] if node.headings else node.document_name
    before = words_before(node.text, option.start)
    return f"{heading}. {f'{before} » ' if before else ''}{node.text[option.start : option.end]}"


def words_before(text: str, start: int) -> str:
    """Return the words before a place of a text that go with what begins there."""
    return " ".join(text[:start].split()[-WORDS_BEFORE:])


def stand_alone(title: str, text: str, start: int, end: int) -> tuple[ReaderPassage, int, int]:
    """Return a part of a passage as it is read alone: below its title, behind the words before it; and where it
    stands there."""
    before = words_before(text, start)
    lead = f"{before} " if before else ""
    return ReaderPassage(title, lead + text[start:end]), len(lead), len(lead) + end - start


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


@dataclass(frozen=True, slots=True)
class OptionScores:
    """What the trained reader makes of options: its ``marks``, the score of each within its passage (``within``), and
    the function that reads the options of given numbers alone."""

    marks: Sequence[Mark]
    within: Sequence[float]
    read_alone: Callable[[Sequence[int]], Sequence[float]]

    def score_alone(self, likeness: Floats) -> Floats:
        """Return the scores alone; the options least likely by their ``likeness`` and their score have the lowest of
        those that are read."""
        both = _standardise(likeness) + _standardise(np.asarray(self.within, dtype=np.float64))
        chosen = np.argsort(-both, kind="stable")[:ALONE]
        read = np.asarray(self.read_alone(chosen.tolist()), dtype=np.float64)
        scores = np.full(len(likeness), read.min(initial=np.inf))
        scores[chosen] = read
        return scores


def _standardise(values: Floats) -> Floats:
    scaled: Floats = (values - values.mean()) / (values.std() or 1.0) if len(values) else values
    return scaled


def measure_sentences(
    question: str,
    hits: Sequence[Hit],
    options: Sequence[Option],
    encoder: Encoder,
    weigh: Callable[[Sequence[str]], Sequence[float]],
    scores: OptionScores,
) -> tuple[Floats, Floats]:
    """Return the features of options, (options, :data:`FEATURES`), and the question's vector. ``weigh`` gives the
    weights of terms. Whether several things are asked for is left open (:func:`add_several`)."""
    vectors = encoder.encode([question, *(option_words(each, hits[each.place].node) for each in options)])
    likeness = np.asarray(vectors[1:] @ vectors[0], dtype=np.float64)
    alone = scores.score_alone(likeness)
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
    asks_number = _ASKS_NUMBER.search(question) is not None
    features = np.zeros((len(options), len(FEATURES)))
    for number, option in enumerate(options):
        inside = [mark for mark in scores.marks if option.holds(mark)]
        node = hits[option.place].node
        features[number] = [
            likeness[number],
            best[option.place],
            own[number],
            of_passage[option.place],
            of_headings[option.place],
            of_all[option.place],
            1 / math.sqrt(1 + option.place),
            option.place == 0,
            option.kind == ROW,
            option.kind == LIST,
            option.start == 0,
            max((mark.probability for mark in inside), default=0.0),
            scores.within[number],
            alone[number],
            *left_out[option.place],
            math.log1p(len(option.text(hits).split())),
            _asks(option.text(hits)),
            _asks(node.text[: option.start].strip() or " ".join(node.headings[-1:])),
            option.kind == SENTENCE and option.text(hits).endswith(":"),
            asks_number and not has_number(option.text(hits)),
            0.0,
        ]
    return features, np.asarray(vectors[0], dtype=np.float64)


def _asks(text: str) -> bool:
    """Return whether a text ends with a question."""
    return text.rstrip(' \n"”’)*_').endswith("?")


def add_several(features: Floats, vector: Floats, several: Floats) -> Floats:
    """Return features with how likely the question of a ``vector`` asks for several things, at the options that are
    lists."""
    chance = weigh_vector(several, vector)
    return np.column_stack([features[:, :-1], features[:, FEATURES.index("list")] * chance])


def add_through(features: Floats, chance: float) -> Floats:
    """Return features, (..., features), with as many more behind them: what they count beside where a question asks
    for something through another thing, by the ``chance`` that it does. In "the mayor of the city where Ann was born"
    the sentence that is most like the question only leads to the answer."""
    return np.concatenate([features, features * chance], axis=-1)


def weigh_vector(weights: Floats, vector: Floats) -> float:
    """Return how likely a question of a vector has a property that has these weights and a constant."""
    return _logistic(weights, np.append(vector, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class SentenceModel:
    """The fitted weights: of the linear score of options, of the confidence in the first, of that in the words marked
    in an option that answers, of that in yes or no, and of whether a question asks for several things and whether it
    asks through another thing (by its vector and a constant)."""

    score: LinearScore
    confidence: Floats
    marked: Floats
    verdict: Floats
    several: Floats
    through: Floats

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> SentenceModel:
        """Return the model of the arrays that :meth:`to_arrays` gives."""
        score = LinearScore(arrays["weights"], arrays["scales"])
        names = ("confidence", "marked", "verdict", "several", "through")
        return cls(score, *(arrays[name] for name in names))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return its arrays by name."""
        return {
            "weights": self.score.weights,
            "scales": self.score.scales,
            "confidence": self.confidence,
            "marked": self.marked,
            "verdict": self.verdict,
            "several": self.several,
            "through": self.through,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Options in ``order``, the likeliest first, their ``shares`` of the probability among all, how likely it is that
    the first one answers, and how likely the question asks ``through`` another thing."""

    options: Sequence[Option]
    order: Sequence[int]
    shares: Floats
    probability: float
    through: float

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
    """Ranks the options of hits; ``in_hops`` no ranks those of each question as of one that asks for nothing through
    another thing."""

    judge: PlanJudge
    in_hops: bool = True

    def rank(
        self, question: str, options: Sequence[Option], features: Floats, vector: Floats
    ) -> Ranked | None:
        """Return the options ranked by their features and the question's vector, None where there are none."""
        if not options:
            return None
        model = SentenceModel.of_arrays(self.judge.sentences)
        features = add_several(features, vector, model.several)
        through = weigh_vector(model.through, vector) if self.in_hops else 0.0
        shares, order = share_scores(model.score.scores(add_through(features, through)))
        first = add_through(measure_first(question, options, features, shares, order), through)
        return Ranked(options, order, shares, _logistic(model.confidence, first), through)

    def choose_mark(
        self, hits: Sequence[Hit], option: Option, marks: Sequence[Mark]
    ) -> tuple[Mark, float] | None:
        """Return the likeliest words that are marked in an option, with the probability that they are what is asked
        if the option answers; None where none are marked."""
        inside = [mark for mark in marks if option.holds(mark)]
        if not inside:
            return None
        mark = max(inside, key=lambda mark: mark.probability)
        model = SentenceModel.of_arrays(self.judge.sentences)
        return mark, _logistic(model.marked, measure_mark(hits, option, mark, inside))

    def judge_verdict(self, question: str, answer: str) -> tuple[str, float]:
        """Return "yes" or "no", with the probability that it is right if the sentence ``answer`` answers."""
        model = SentenceModel.of_arrays(self.judge.sentences)
        chance = _logistic(model.verdict, measure_verdict(question, answer))
        return ("no", chance) if chance > 0.5 else ("yes", 1 - chance)


def _logistic(weights: Floats, features: Floats) -> float:
    return float(1 / (1 + math.exp(-float(weights @ features))))


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, 1e-3), 1 - 1e-3)
    return math.log(bounded / (1 - bounded))


def measure_mark(hits: Sequence[Hit], option: Option, mark: Mark, marks: Sequence[Mark]) -> Floats:
    """Return the features of the confidence in a mark of an option beside the other ``marks`` in it,
    (:data:`MARKED`,)."""
    text = hits[mark.place].node.text[mark.start : mark.end]
    return np.array(
        [
            1.0,
            _log_odds(mark.probability),
            mark.probability / (sum(each.probability for each in marks) or 1.0),
            math.log1p(len(text.split())),
            math.log1p(len(option.text(hits).split())),
            _measure_cell(hits[mark.place].node.text, mark) if option.kind == ROW else 0.0,
        ]
    )


def _measure_cell(row: str, mark: Mark) -> float:
    """Return 1 for a mark that is a whole cell of a row, "Built: 1919; Builder: Tolland Yard", else -1."""
    begins = row[: mark.start].rstrip()[-1:] in {"", ":", "."}
    return 1.0 if begins and row[mark.end :].lstrip()[:1] in {"", ";"} else -1.0


def measure_verdict(question: str, answer: str) -> Floats:
    """Return the features of the probability of "no", (:data:`VERDICT`,)."""
    asked, answered = negates(question), negates(answer)
    return np.array([1.0, asked, answered, asked and answered])


def share_scores(scores: Floats) -> tuple[Floats, list[int]]:
    """Return the shares of scores in their sum of exponentials, and their order, best first."""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum(), np.argsort(-scores, kind="stable").tolist()


def measure_first(
    question: str, options: Sequence[Option], features: Floats, shares: Floats, order: Sequence[int]
) -> Floats:
    """Return the features of the confidence in the first option, (:data:`CONFIDENCE`,)."""
    first = order[0]
    row = dict(zip(FEATURES, features[first], strict=True))
    others = [place for place in order[1:] if options[place].place != options[first].place]
    scores, alone = (features[:, FEATURES.index(name)] for name in ("score", "score alone"))
    same = sum(shares[place] for place in order if options[place].place == options[first].place)
    passages = math.log(len({option.place for option in options}))
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
            row["score"],
            math.exp(row["score"]) / (1 + float(np.exp(scores).sum())),
            row["score alone"],
            math.exp(row["score alone"]) / (1 + float(np.exp(alone).sum())),
            row["words of all of these"] < 0.5,
            row["numbers left out"],
            row["names left out"],
            same,
            passages,
            shares[first] * passages,
            bool(POLAR.search(question)),
            row["row"],
            row["list"],
            row["a question"],
            row["no number where one is asked for"],
        ]
    )
