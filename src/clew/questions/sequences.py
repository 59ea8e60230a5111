"""Questions inside and beside questions: the phrase that may be asked first, and whose answer takes its place.

"How long is the vessel that Ottilie Brandt commands?" asks which vessel she commands, and how long it is. Every run
of words between two borders is such a phrase, perhaps: it begins with an article, an owner, a question word inside
the question or where a part of the sentence begins, and ends behind any word. A linear score over its borders and
what stands inside and outside keeps the likeliest few. What sources say to these, and then to the question that is
filled with it, makes endings; a second score knows how likely each step is, and a third the whole. All three are
fitted to questions whose steps are known; no word with a meaning of its own is known here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.text import fold_name
from clew.questions.closed_words import ARTICLES, ASKING, AUXILIARIES, PREPOSITIONS
from clew.questions.linear import log_odds
from clew.questions.slots import share_root
from clew.questions.text import QuestionText, stem_words

if TYPE_CHECKING:
    from clew.core.arrays import Floats

#: Words that begin a phrase, by what they are: closed classes.
DETERMINERS = ARTICLES | frozenset("this that these those its his her their our my your".split())
INDEFINITE = frozenset("one some any somebody someone something whoever whatever another each every".split())
RELATIVE = frozenset("that which who whom whose where when".split())
PERSONS = frozenset("somebody someone whoever".split())
CLOSED = (
    DETERMINERS | INDEFINITE | ASKING | RELATIVE | AUXILIARIES | PREPOSITIONS | {"and", "or", "not", "how"}
)
_BREAK = re.compile(r"[,;:.?!()]")
PERSONAL, OWN = frozenset("it he she they him them".split()), frozenset("its his her their".split())
PLURAL = frozenset("they them their".split())
#: Words of the longest phrase and question.
LONGEST_PHRASE, LONGEST_QUESTION = 24, 60
#: Probabilities are kept from this.
_UNLIKELY = 0.01
#: A text with more questions beside each other than this is left as it is.
MAX_PARTS = 4
_LEAD = rf"(?:(?:{'|'.join(sorted(PREPOSITIONS))}) )?(?:{'|'.join(sorted(ASKING))})\b(?!['’]s\b)"
_BORDER = re.compile(rf"(?:[?,;]? and|\? also|[?,;]) (?={_LEAD})", re.IGNORECASE)
_HEAD = re.compile(
    rf"{_LEAD}(?: (?:many|much)\b)?(?: (?:{'|'.join(sorted(AUXILIARIES))})\b)?\s*", re.IGNORECASE
)
_WORD = r"[^\W\d_a-zà-öø-ÿ][\w.’&-]*(?:'(?!s\b)\w+)?"
_NAME = re.compile(rf"(?<=[a-z,] ){_WORD}(?: (?:(?:of|de|&) )?{_WORD})*")
_PRONOUN = re.compile(rf"\b(?:{'|'.join(sorted(PERSONAL | OWN))})\b", re.IGNORECASE)

FEATURES = (
    "begins with the",
    "begins with another article",
    "begins with an indefinite word",
    "begins with an owner",
    "begins with a question word",
    "begins a part of the sentence",
    "begins the question",
    "behind of",
    "behind another preposition",
    "behind an auxiliary",
    "behind a word of content",
    "ends the question",
    "ends a part of the sentence",
    "before an auxiliary",
    "before of",
    "before another preposition",
    "before a word of content",
    "ends with a preposition",
    "ends with a function word",
    "a relative word inside",
    "prepositions inside",
    "an auxiliary inside",
    "an owner inside",
    "a break inside",
    "articles inside",
    "log of words of content inside",
    "log of words of content outside",
    "names inside",
    "names outside",
    "values inside",
    "values outside",
    "a whole sentence",
)


SPLIT_WEIGHTS = (
    0.73, -0.44, 1.24, 0.52, 0.28, -2.02, 1.59, 0.47, 0.66, 0.28, -0.10, 1.93,
    2.47, 1.70, -1.66, -0.47, 0.88, -0.50, -1.10, 0.51, -0.83, 0.21, 0.82, -2.19,
    -0.70, 2.52, 0.82, 0.75, -1.21, -0.89, 0.23, 2.12,
)  # fmt: skip
ENDING_WEIGHTS = (
    0.38, 0.87, 1.11, 1.58, -0.60, -0.43, -0.41, -0.31, -1.14, -0.06, 0.05, -1.46,
    0.14, 0.05,
)  # fmt: skip
CONFIDENCE_WEIGHTS = (
    -0.31, 0.42, 0.07, 0.15, 0.14, -0.13, 0.00, 0.02, 0.53,
)  # fmt: skip


#: Of the probability that a question stands inside another: a constant, the score of the likeliest phrase, of all
#: together, the log of their number, and the features of the likeliest.
NESTED_WEIGHTS = (
    -2.47, 0.52, -0.44, 0.60, 0.92, -0.18, -0.19, 0.83, -0.23, -0.09, -0.56, 0.14,
    -0.43, -0.33, -0.03, -0.84, -0.06, 0.04, 0.00, -0.13, -0.42, -0.31, -0.37, 1.18,
    0.18, -0.05, 0.68, -0.20, 0.08, -0.54, -0.05, 1.34, 0.59, 0.12, -0.38, 0.94,
)  # fmt: skip
#: From this probability on a question is asked step by step, too, which takes seconds: so are 71 % of the questions
#: of several steps, and 32 % of others (``benchmarks/sequences.py nested``, whole groups held out).
NESTED_FROM = 0.3


@dataclass(frozen=True, slots=True)
class Split:
    """A phrase of the question ``text``, from ``start`` to ``end`` in characters, that may be a question of its own
    (``asked``), and :data:`FEATURES`."""

    text: str
    start: int
    end: int
    asked: str
    features: tuple[float, ...]

    def fill(self, value: str) -> str:
        """Return the question with a value in the place of the phrase."""
        return f"{self.text[: self.start]}{value}{self.text[self.end :]}"

    @property
    def outer(self) -> str:
        """The question with ``#1`` in the place of the phrase."""
        return self.fill("#1")


class SplitFinder:
    """Enumerates the phrases of a question."""

    def __init__(self, question: QuestionText) -> None:
        self.text, self.words = question.text, question.words
        last = len(self.words) - 1
        #: Whether a mark stands behind each word, and whether the word owns the next.
        between = [
            self.text[word.end : self.words[place + 1].start if place < last else len(self.text)]
            for place, word in enumerate(self.words)
        ]
        self.values = [
            next((value.start for value in question.values if value.start <= word.start < value.end), None)
            for word in self.words
        ]
        #: "1,320" is one value: no mark stands inside it.
        self.joined = [
            place < last and value is not None and value == self.values[place + 1]
            for place, value in enumerate(self.values)
        ]
        self.breaks = [
            bool(_BREAK.search(each)) and not whole for each, whole in zip(between, self.joined, strict=True)
        ]
        self.ends = [
            place == last or (self.breaks[place] and bool(re.search(r"[.?!;]", each)))
            for place, each in enumerate(between)
        ]
        self.owners = [each[:1] in ("'", "’") and place < last for place, each in enumerate(between)]
        self.names = [self._is_name(place) for place in range(len(self.words))]

    def _is_name(self, place: int) -> bool:
        """Return whether a word has a capital that it does not owe to the beginning of a sentence."""
        return self.text[self.words[place].start].isupper() and place > 0 and not self.ends[place - 1]

    def propose(self) -> list[Split]:
        """Return the phrases, in the order of the question."""
        words = self.words
        if not 4 <= len(words) <= LONGEST_QUESTION:
            return []
        splits = []
        for first in filter(self._may_begin, range(len(words))):
            for last in range(first + 1, min(len(words), first + LONGEST_PHRASE) + 1):
                split = self._make_split(first, last)
                if split is not None:
                    splits.append(split)
        return splits

    def _may_begin(self, place: int) -> bool:
        text = self.words[place].text
        starts_part = place == 0 or self.breaks[place - 1]
        if text in ASKING:
            return place > 0 and not starts_part
        if text in DETERMINERS or text in INDEFINITE:
            return True
        if text in AUXILIARIES or text in PREPOSITIONS:
            return False
        return starts_part or self._begins_owner(place)

    def _begins_owner(self, place: int) -> bool:
        """Return whether a name that owns something begins at a word: "Paolo Marchisio's"."""
        if place and (self.names[place - 1] or self.words[place - 1].text in DETERMINERS):
            return False
        while place < len(self.words) - 1 and self.names[place] and not self.owners[place]:
            place += 1
        return self.owners[place]

    def _make_split(self, first: int, last: int) -> Split | None:
        """Return the phrase from the word ``first`` up to ``last``; None where too little is in it or beside it."""
        inside = self.words[first:last]
        outside = [*self.words[:first], *self.words[last:]]
        content = [word for word in inside if word.is_content and word.text not in CLOSED]
        around = [word for word in outside if word.is_content and word.text not in CLOSED]
        if len(content) < 2 or not around or inside[-1].text in DETERMINERS | ASKING | {"and", "or"}:
            return None
        if self.owners[last - 1] or self.joined[last - 1] or any(self.ends[first : last - 1]):
            return None
        start, end = inside[0].start, inside[-1].end
        phrase = self.text[start:end]
        opening = inside[0].text
        if opening in ASKING:
            asked = f"{phrase[:1].upper()}{phrase[1:]}?"
        elif opening in DETERMINERS or opening in INDEFINITE:
            rest = self.text[inside[1].start : end]
            if inside[1].text in ASKING:
                asked = f"{rest[:1].upper()}{rest[1:]}?"
            else:
                asked = f"{'Who' if opening in PERSONS else 'Which'} {rest}?"
        else:
            asked = f"Which {phrase}?"
        return Split(self.text, start, end, asked, self._measure(first, last, len(content), len(around)))

    def _measure(self, first: int, last: int, content: int, around: int) -> tuple[float, ...]:
        words = self.words
        opening, closing = words[first].text, words[last - 1].text
        before = words[first - 1] if first else None
        after = words[last] if last < len(words) else None
        starts_part = first > 0 and self.breaks[first - 1]
        inner = words[first + 1 : last]
        outside = [*range(first), *range(last, len(words))]
        is_sentence = (first == 0 or self.ends[first - 1]) and self.ends[last - 1]
        return (
            opening == "the",
            opening in DETERMINERS - {"the"},
            opening in INDEFINITE,
            self._begins_owner(first),
            opening in ASKING,
            starts_part,
            first == 0,
            before is not None and not starts_part and before.text == "of",
            before is not None and not starts_part and before.text in PREPOSITIONS - {"of"},
            before is not None and not starts_part and before.text in AUXILIARIES,
            before is not None and not starts_part and before.text not in CLOSED and before.is_content,
            after is None,
            after is not None and self.breaks[last - 1],
            after is not None and not self.breaks[last - 1] and after.text in AUXILIARIES,
            after is not None and not self.breaks[last - 1] and after.text == "of",
            after is not None and not self.breaks[last - 1] and after.text in PREPOSITIONS - {"of"},
            after is not None and not self.breaks[last - 1] and after.text not in CLOSED and after.is_content,
            closing in PREPOSITIONS,
            closing in CLOSED - PREPOSITIONS,
            any(word.text in RELATIVE for word in inner),
            min(sum(word.text in PREPOSITIONS for word in inner), 3),
            any(word.text in AUXILIARIES for word in inner),
            any(self.owners[first : last - 1]),
            any(self.breaks[first : last - 1]),
            sum(word.text in DETERMINERS for word in inner),
            math.log(content),
            math.log(around),
            any(self.names[first:last]),
            any(self.names[place] for place in outside),
            any(value is not None for value in self.values[first:last]),
            any(self.values[place] is not None for place in outside),
            is_sentence,
        )


#: Where a value comes from: a graph, a table, the documents asked for the phrase, or for the whole question.
GRAPH, TABLE, DOCUMENT, WHOLE = SOURCES = ("graph", "table", "document", "whole question")
ENDING_FEATURES = (
    "chance of the split",
    "log probability of the link",
    "log probability of the ending",
    "log likeness of a name in a quotation",
    "a value of the whole question's documents",
    "a value of documents",
    "ranks",
    "log of values of the link",
    "log of values of the ending",
    "the phrase has a type of the value",
    "the ending is from documents",
    "the ending is in the question",
    "log of phrases that lead there",
    "another source",
)
#: What the probability that the first ending is right is fitted to.
CONFIDENCE = (
    "constant",
    "score",
    "log odds of its share",
    "log odds of its link",
    "log odds of its ending",
    "its ending is from documents",
    "log odds of the whole question, asked of graphs and tables",
    "log odds of the whole question, asked of documents",
    "the whole question has the same answer",
)


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """What one ``source`` (:data:`SOURCES`) says to a question: its values, how likely it finds them, and its rank
    among what that source says.

    ``is_list``: they are values, no count and no verdict. ``types`` are those of a graph's nodes. ``quotation`` are
    the words of documents. ``origin`` is what the source itself gave.
    """

    source: str
    probability: float
    values: tuple[str, ...]
    rank: int = 0
    is_list: bool = True
    types: frozenset[str] = frozenset()
    quotation: str = ""
    origin: Any = None

    @property
    def text(self) -> str:
        """The values in words."""
        return ", ".join(self.values)


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A value for the phrase of a split, whose ``chance`` is its log probability among those of the question.
    ``likeness`` is that of a name that the reply's quotation has; None where the value is the reply's own."""

    split: Split
    chance: float
    reply: Reply
    value: str
    likeness: float | None = None
    types: frozenset[str] = frozenset()

    @property
    def filled(self) -> str:
        """The question with the value in the place of the phrase."""
        return self.split.fill(self.value)

    @property
    def promise(self) -> float:
        """How soon the link is followed."""
        likeness = 1.0 if self.likeness is None else max(self.likeness, _UNLIKELY)
        return self.chance + 2 * math.log(max(self.reply.probability, _UNLIKELY)) + math.log(likeness)


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """What a source says to the question that a link filled."""

    link: Link
    reply: Reply

    def goes_beyond(self, words: str) -> bool:
        """Return whether words have the value of the phrase, which was asked alone, and not what follows from it."""
        own, known = fold_name(words), fold_name(self.link.value)
        return self.link.reply.source != WHOLE and known in own and fold_name(self.reply.text) not in own


def rank_splits(question: QuestionText) -> list[tuple[Split, float]]:
    """Return the phrases of a question with the log probability of each among them, the likeliest first."""
    splits = SplitFinder(question).propose()
    if not splits:
        return []
    scores = np.array([split.features for split in splits], dtype=np.float64) @ np.array(SPLIT_WEIGHTS)
    chances = scores - np.logaddexp.reduce(scores)
    order = np.argsort(-chances, kind="stable")
    return [(splits[place], float(chances[place])) for place in order]


def estimate_nesting(question: QuestionText) -> float:
    """Return how likely it is, from 0 to 1, that another question stands inside a question."""
    features = measure_nesting(question)
    return 0.0 if features is None else 1 / (1 + math.exp(-float(features @ np.array(NESTED_WEIGHTS))))


def measure_nesting(question: QuestionText) -> Floats | None:
    """Return what that is fitted to; None where no phrase can stand inside."""
    splits = SplitFinder(question).propose()
    if not splits:
        return None
    scores = np.array([split.features for split in splits], dtype=np.float64) @ np.array(SPLIT_WEIGHTS)
    best = splits[int(np.argmax(scores))].features
    return np.array([1.0, scores.max(), np.logaddexp.reduce(scores), math.log(len(splits)), *best])


def choose_ending(endings: Sequence[Ending], whole: Sequence[Reply]) -> tuple[Ending, float] | None:
    """Return the likeliest ending and how likely it is right; None where there is none. ``whole`` is what the sources
    say to the question as a whole."""
    if not endings:
        return None
    scores = measure_endings(endings) @ np.array(ENDING_WEIGHTS)
    features = measure_first(endings, scores, whole)
    chance = 1 / (1 + math.exp(-float(features @ np.array(CONFIDENCE_WEIGHTS))))
    return endings[int(np.argmax(scores))], chance


def measure_endings(endings: Sequence[Ending]) -> Floats:
    """Return the features of what the endings of one question say, (endings, :data:`ENDING_FEATURES`)."""
    ways: dict[str, set[tuple[int, int]]] = {}
    for ending in endings:
        split = ending.link.split
        ways.setdefault(fold_name(ending.reply.text), set()).add((split.start, split.end))
    features = np.zeros((len(endings), len(ENDING_FEATURES)))
    for row, ending in enumerate(endings):
        link, reply = ending.link, ending.reply
        features[row] = (
            link.chance,
            math.log(max(link.reply.probability, _UNLIKELY)),
            math.log(max(reply.probability, _UNLIKELY)),
            0.0 if link.likeness is None else math.log(max(link.likeness, _UNLIKELY)),
            link.reply.source == WHOLE,
            link.reply.source == DOCUMENT,
            link.reply.rank + reply.rank,
            math.log(max(len(link.reply.values), 1)),
            math.log(len(reply.values)),
            _names_type(link),
            reply.source == DOCUMENT,
            fold_name(reply.text) in fold_name(link.filled),
            math.log(len(ways[fold_name(reply.text)])),
            link.reply.source != reply.source and {link.reply.source, reply.source} != {DOCUMENT, WHOLE},
        )
    return features


def measure_first(endings: Sequence[Ending], scores: Floats, whole: Sequence[Reply]) -> Floats:
    """Return what the probability that the first of endings is right is fitted to, (:data:`CONFIDENCE`,)."""
    first = endings[int(np.argmax(scores))]
    texts = [fold_name(ending.reply.text) for ending in endings]
    mass = np.exp(scores - np.logaddexp.reduce(scores))
    own = texts[int(np.argmax(scores))]
    share = float(sum(part for part, text in zip(mass, texts, strict=True) if text == own))
    computed = max((reply.probability for reply in whole if reply.source in (GRAPH, TABLE)), default=0.0)
    quoted = max((reply.probability for reply in whole if reply.source == DOCUMENT), default=0.0)
    return np.array(
        [
            1.0,
            scores.max(),
            log_odds(share),
            log_odds(first.link.reply.probability),
            log_odds(first.reply.probability),
            first.reply.source == DOCUMENT,
            log_odds(computed),
            log_odds(quoted),
            any(fold_name(reply.text) == own for reply in whole),
        ]
    )


def _names_type(link: Link) -> bool:
    """Return whether the phrase has a word of the value's type: "beer" for "Which beer won the prize?"."""
    asked = stem_words(link.split.asked)
    return any(share_root(word, each) for type in link.types for word in stem_words(type) for each in asked)


def split_parts(question: str) -> tuple[tuple[str, str], ...]:
    """Return the questions that stand beside each other in a text, in its order, each as it is written and as it
    stands alone; () where it asks once. What a later one leaves out is taken from the first.

    >>> [alone for _, alone in split_parts("Who built the Heron Queen, and in what year was the Bittern built?")]
    ['Who built the Heron Queen?', 'In what year was the Bittern built?']
    >>> split_parts("In 2019, what was the revenue?")
    ()
    """
    text = " ".join(question.split()).rstrip("?!. ")
    borders = [match.group().casefold() for match in _BORDER.finditer(text)]
    first, *later = (part.strip(" ,;?") for part in _BORDER.split(text))
    # A comma alone joins a clause or a list's items; the last question comes after "and".
    if not 0 < len(later) < MAX_PARTS or not ("and" in borders[-1] or "?" in borders[-1]):
        return ()
    words = first.casefold().split()
    if not _HEAD.match(first) or len(words) < 3 or RELATIVE & set(words[2:]):
        return ()
    for part in later:
        following = part.casefold().split()[1:2]
        # "what it does and how they use it" asks nothing; "which is older, A or B" chooses for the first, too.
        if PERSONAL & set(following) or ("," in part and " or " in part):
            return ()
    return ((f"{first}?", f"{first}?"), *((_as_question(part), _stand_alone(part, first)) for part in later))


def _stand_alone(part: str, first: str) -> str:
    """Return a later question with what it leaves out: the name that a pronoun stands for, or what is asked first."""
    name = next((match.group().strip() for match in _NAME.finditer(first)), "")
    pronoun = _PRONOUN.search(part)
    if pronoun is not None and name and pronoun.group().casefold() not in PLURAL:
        owner = "'s" if pronoun.group().casefold() in OWN else ""
        return _as_question(f"{part[: pronoun.start()]}{name}{owner}{part[pronoun.end() :]}")
    topic, rest = _HEAD.sub("", first, count=1), _HEAD.sub("", part, count=1)
    if not rest:
        return _as_question(f"{part} {topic}")
    own = [word for word in QuestionText(_NAME.sub(" ", f"a {rest}")).words if word.is_content]
    if not own:
        return _as_question(f"{part} {' '.join(_NAME.sub(' ', f'a {topic}').split()[1:])}")
    is_bare = part.casefold().split()[1] in AUXILIARIES and part.casefold().startswith("which")
    if pronoun is not None or is_bare or (name and not _NAME.search(part) and not re.search(r"\d", part)):
        return _as_question(f"{part} ({topic})")
    return _as_question(part)


def _as_question(part: str) -> str:
    return f"{part[:1].upper()}{part[1:]}?"
