"""Reads plain questions about the structure of documents: the likeliest query over their outlines, and how likely.

The options of :mod:`clew.questions.outline_plans` are weighed by learned scores: the kind of query that the wording
asks for, what each number is taken for by the words around it, how well names fit, what of the question stays
unexplained. "No structure is asked for" is one of the options. A judge that reads question and query in words
corrects the scores of the first dozen. Weights are made by ``clew train outlines``.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.core.text import index_terms
from clew.core.types import DOCUMENT, PAGE, ROW, SECTION, TABLE, Scope
from clew.questions.linear import JUDGED, NetworkScore, log_odds
from clew.questions.outline_plans import (
    CONTENT,
    Named,
    Number,
    OutlineCatalogue,
    OutlineOption,
    OutlinePlans,
    find_numbers,
    name_spans,
    pair_documents,
)
from clew.questions.shapes import BUCKETS, ShapeClassifier, hash_runs
from clew.questions.text import QuestionText, stem_words
from clew.retrieve.structure.query import FIGURE, Query, Selector
from clew.retrieve.structure.resolver import ReferenceResolver

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder, PlanJudge, Snapshot

#: What a number of a question can be taken for.
ROLES = (PAGE, TABLE, SECTION, FIGURE, ROW, "")
#: The documents whose outlines are looked at: those that the question names best, and all together.
MOST_NAMED, MOST_DOCUMENTS = 3, 4
#: Below this share of the probability for all queries together, the outlines are not looked at.
LEAST_CHANCE = 0.2
#: A question of more words is left to the search: what its options would cost grows faster than it does.
MOST_WORDS = 80
#: The log probability of a shape that was never seen.
UNSEEN = -9.0
#: A name hides its words from what the wording is read from where the question has so much of it.
CERTAIN = 0.8
#: What is read from the wording: whether structure is asked for at all, before outlines are looked at; then the
#: operation, the kind of place, how it is said, and all three together.
ASPECTS = ("gate", "operation", "kind", "how", "shape")
OUTLINE_FEATURES = (
    "log probability of the operation",
    "log probability of the kind",
    "log probability of how it is said",
    "log probability of the shape",
    "log probability of what numbers are taken for",
    "numbers left out",
    "the place exists",
    "no structure",
    "names",
    "share of the first name",
    "share of the second name",
    "first name stands in the question",
    "likeness of the first name",
    "rank of the first name",
    "names of a cell: row",
    "names of a cell: column",
    "words that no name covers",
    "share of the document's name",
    "document is named",
    "rank of the document",
    "the only document",
    "another document is named",
    "ordinal is counted",
    "ordinal is a label",
    "word of the label is in the question",
    "label is counted",
    "label is a label",
    "abbreviation of the word stands before the number",
    "words that are looked for",
    "best name of any option",
)
OUTLINE_CONFIDENCE = (
    "bias",
    "log-odds of the first",
    "margin",
    "mass of the same meaning",
    "log probability of the shape",
    "chance of content",
    "numbers left out",
    "words that no name covers",
    "document is named",
    "the only document",
    "the place exists",
    "share of the first name",
    "log-odds without the judge",
    "correction by the judge",
)
#: The characters of a document's title that the judge reads beside a query.
_TITLE = 60


@dataclass(frozen=True, slots=True)
class OutlineWording:
    """What is read from wordings, by :data:`ASPECTS`, and what numbers are taken for."""

    aspects: Mapping[str, ShapeClassifier]
    roles: ShapeClassifier


@dataclass(frozen=True, slots=True)
class OutlineModel:
    """The fitted parts: what is read from the wording, the score of options, the weights of that score, of the
    judge's likenesses and of "no structure is asked for" beside each other (``mixture``, (5,)), the confidence."""

    wording: OutlineWording
    score: NetworkScore
    mixture: Floats
    confidence: Floats

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> OutlineModel:
        """Return the model of the arrays that :meth:`to_arrays` gives."""
        classifiers = {
            name: ShapeClassifier(
                tuple(arrays[f"{name}_names"].tolist()),
                arrays[f"{name}_runs"].astype(np.float32),
                arrays[f"{name}_vector"].astype(np.float32),
            )
            for name in (*ASPECTS, "roles")
        }
        wording = OutlineWording(classifiers, classifiers.pop("roles"))
        score = NetworkScore.of_arrays(arrays, "score")
        return cls(wording, score, arrays["mixture"], arrays["confidence"])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return its arrays by name; the weights of classifiers in 16 bits."""
        arrays: dict[str, NDArray[Any]] = {
            **self.score.to_arrays("score"),
            "mixture": self.mixture,
            "confidence": self.confidence,
        }
        for name, each in {**self.wording.aspects, "roles": self.wording.roles}.items():
            arrays |= {
                f"{name}_names": np.array(each.shapes),
                f"{name}_runs": each.runs.astype(np.float16),
                f"{name}_vector": each.vector.astype(np.float16),
            }
        return arrays


@dataclass(frozen=True, slots=True)
class OutlineReading:
    """A query that a question may mean, and how likely it is what is meant."""

    query: Query
    probability: float

    @property
    def sentence(self) -> str:
        """The query in words."""
        return str(self.query)


@dataclass(frozen=True, slots=True, eq=False)
class AskedOutline:
    """A question beside the outline of one document, or of two: its options; ``names`` are the title and file name,
    ``share`` is how much of the document's name the question has, ``named`` the weight of these words beside those
    of the document that it names best, ``rank`` the place among the documents that are looked at, ``is_only`` whether
    there is no other, ``leaves_one`` whether the question names another one beside."""

    names: str
    options: list[OutlineOption]
    share: float
    named: float
    rank: int
    is_only: bool
    leaves_one: bool


@dataclass(frozen=True, slots=True, eq=False)
class ReadOutlines:
    """A question with all its options over documents, the last one that no structure is asked for, the ``titles`` of
    the documents of each, and their features, (options, :data:`OUTLINE_FEATURES`), without those of shapes and
    numbers; ``buckets`` are those of its masked words, ``gate`` those before outlines are looked at, ``contexts``
    those of the words around each number."""

    question: QuestionText
    options: list[OutlineOption]
    titles: list[tuple[str, ...]]
    features: Floats
    gate: NDArray[np.int64]
    buckets: NDArray[np.int64]
    vector: Floats
    contexts: list[NDArray[np.int64]]

    def say(self, place: int) -> str:
        """Return an option in words with its documents, for the judge."""
        query = self.options[place].query
        titles = [f"of {title[:_TITLE]}" for title in self.titles[place]]
        if len(titles) < 2:
            return " ".join([str(query), *titles])
        pairs = zip(query.selectors, titles, strict=True)
        return f"{query.operation} {' and '.join(f'{each} {title}' for each, title in pairs)}"


#: What a question may ask of all documents; the last that no structure is asked for.
BASE_OPTIONS = (
    OutlineOption(Query("longest", (), DOCUMENT, DOCUMENT), "longest", ("longest",)),
    OutlineOption(Query("count", (), DOCUMENT, DOCUMENT), "count documents", ("count", DOCUMENT)),
    OutlineOption(Query("list", (), DOCUMENT, DOCUMENT), "list documents", ("list", DOCUMENT)),
    *(
        OutlineOption(
            Query("list", (Selector(kind),), DOCUMENT, DOCUMENT, without=without),
            f"list documents {'without' if without else 'with'} {kind}",
            ("list", DOCUMENT, kind, without),
        )
        for kind in (TABLE, FIGURE)
        for without in (False, True)
    ),
    OutlineOption(Query("show"), CONTENT[0], CONTENT),
)


class OutlineReader:
    """Reads questions about the structure of documents, with the trained parts that ``judge`` holds. No language
    model."""

    def __init__(self, judge: PlanJudge) -> None:
        self.judge, self.encoder = judge, judge.encoder
        self.model = OutlineModel.of_arrays(judge.outlines)

    def read(self, text: str, snapshot: Snapshot, scope: Scope, most: int = 3) -> tuple[OutlineReading, ...]:
        """Return the likeliest queries that a question may mean, the likeliest first; () for a question that is
        likelier to be about content."""
        question = QuestionText(text)
        if len(question.words) > MOST_WORDS:
            return ()
        resolver = ReferenceResolver(snapshot, text, scope)
        vector = self.encoder.encode([text], query=True)[0].astype(np.float64)
        buckets = mask_question(question, resolver)
        gate = self.model.wording.aspects["gate"].log_probabilities(buckets, vector)
        if np.exp(gate["structure"]) < LEAST_CHANCE:
            return ()
        read = read_outlines(question, snapshot, resolver, self.encoder, vector)
        features, scores = score_outlines(self.model, read)
        judged = choose_judged(read, scores)
        likeness = self.judge.compare(text, [read.say(place) for place in judged])
        order, shares, confidence = rank_outlines(self.model, read, features, scores, judged, likeness)
        first = read.options[order[0]]
        if first.key == CONTENT or (first.shape == "locate text" and not _is_quoted(text, first.query.text)):
            return ()
        chance = float(1 / (1 + np.exp(-(confidence @ self.model.confidence))))
        readings, seen = [OutlineReading(first.query, chance)], {first.key, CONTENT}
        for place in order[1:]:
            option = read.options[place]
            if option.key not in seen and len(readings) < most:
                rest = float(shares[place] / max(1 - shares[order[0]], 1e-6))
                readings.append(OutlineReading(option.query, min(chance, (1 - chance) * min(rest, 1.0))))
            seen.add(option.key)
        return tuple(readings)


@cache
def create_outline_reader(judge: PlanJudge) -> OutlineReader:
    """Return the reader with the fitted parts that a judge holds, beside their encoder; the same one each time."""
    return OutlineReader(judge)


def _is_quoted(question: str, words: str) -> bool:
    """Return whether words stand in quotation marks. Any words of a question may stand in a text, so that "Where does
    the heron nest?" would ask for the page of the heron; the search shows that place, too."""
    return any(f"{mark}{words}" in question for mark in "\"“'‘«„")


def mask_question(
    question: QuestionText,
    resolver: ReferenceResolver,
    names: Sequence[Named] = (),
    labels: Sequence[str] = (),
) -> NDArray[np.int64]:
    """Return the buckets of the words of a question, with numbers, words of documents' titles, the ``names`` of
    places and the words for ``labels`` replaced by marks: what is left is how people ask."""
    chosen = resolver.titles.choose(question.text)
    matches = [each for each in resolver.titles.match(question.text) if each.document in chosen]
    titles = frozenset().union(*(match.words for match in matches))
    numbers, named = find_numbers(question, titles), name_spans(question.text, titles)
    covered = {place for name in names for place in name.words}
    of_title = {
        place
        for place, word in enumerate(question.words)
        if any(start <= word.start < end for start, end in named)
    } | _places_with(question, titles)
    stems = {stem for word in labels for stem in stem_words(word)}
    masked: list[str] = []
    for place, word in enumerate(question.words):
        number = next((each for each in numbers if each.start <= word.start < each.end), None)
        if place in covered:
            mark = "<name>"
        elif number is not None:
            mark = "<ordinal>" if number.is_ordinal else "<number>" if number.value else "<label>"
        elif word.stem in stems:
            mark = "<word>"
        elif place in of_title:
            mark = "<document>"
        else:
            mark = word.text
        if not (mark.startswith("<") and masked[-1:] == [mark]):
            masked.append(mark)
    end = "<end?>" if question.text.rstrip().endswith("?") else "<end>"
    return hash_runs(["<start>", *masked, end])


def _places_with(question: QuestionText, terms: frozenset[str]) -> set[int]:
    """Return which words of a question have any of some terms."""
    return {
        place
        for place, word in enumerate(question.words)
        if word.is_content and terms.intersection(index_terms(word.text))
    }


def aspects_of(shape: str) -> dict[str, str]:
    """Return what of a shape each aspect of the wording says.

    >>> aspects_of("count table in page")["how"]
    'in page'
    """
    operation, _, rest = shape.partition(" ")
    kind, _, how = rest.partition(" ")
    gate = CONTENT[0] if shape == CONTENT[0] else "structure"
    return {"gate": gate, "operation": operation, "kind": kind, "how": how, "shape": shape}


def context_of(question: QuestionText, number: Number) -> NDArray[np.int64]:
    """Return the buckets of the words around a number: what it is taken for is read from them."""
    before = _words_before(question, number)[-3:]
    after = [word.text for word in question.words if word.start >= number.end][:3]
    around = [f"-{place} {word}" for place, word in enumerate(reversed(before), 1)]
    around += [f"+{place} {word}" for place, word in enumerate(after, 1)]
    around += [f"-2 {' '.join(before[-2:])}", f"+2 {' '.join(after[:2])}", f"ordinal {number.is_ordinal}"]
    around.append(f"kind {'number' if number.value and number.label.isdigit() else 'label'}")
    return np.array(sorted({zlib.crc32(run.encode()) % BUCKETS for run in around}), dtype=np.int64)


def read_outlines(
    question: QuestionText,
    snapshot: Snapshot,
    resolver: ReferenceResolver,
    encoder: Encoder,
    vector: Floats,
) -> ReadOutlines:
    """Return a question with its options over the documents that it names, or over those most like it."""
    matches = resolver.titles.match(question.text)
    likeliest = [match.document for match in matches[:MOST_NAMED]]
    likeliest += resolver.rank_documents()[: MOST_DOCUMENTS - len(likeliest)]
    options: list[OutlineOption] = []
    of_documents: list[tuple[str, ...]] = []
    rows: list[list[float]] = []
    names: list[Named] = []
    labels: list[str] = []
    titles = {match.document.key: match.words for match in matches}
    chosen = [titles.get(each.key, frozenset()) for each in resolver.titles.choose(question.text)]
    numbers = find_numbers(question, frozenset().union(*chosen, *(match.words for match in matches[:1])))
    named = {match.document.key: match for match in matches}
    known: dict[str, OutlinePlans] = {}
    for rank, document in enumerate({document.key: document for document in likeliest}.values()):
        catalogue = snapshot.memoize(
            f"questions/outline/{document.key}", partial(OutlineCatalogue, snapshot, document)
        )
        plans = known[document.key] = OutlinePlans(question, numbers, catalogue, encoder, vector)
        own = plans.options()
        names += [name for name in (*plans.sections, *plans.tables) if name.stands or name.share >= CERTAIN]
        labels += plans.words
        match = named.get(document.key)
        asked = AskedOutline(
            f"{document.title} {document.name}",
            own,
            match.share if match else 0.0,
            match.weight / matches[0].weight if match else 0.0,
            rank,
            len(resolver.documents) == 1,
            any(words - titles.get(document.key, frozenset()) for words in chosen),
        )
        options += own
        of_documents += [(document.title,)] * len(own)
        rows += measure_outline(question, numbers, asked)
    for first, second in itertools.combinations(matches[:MOST_NAMED], 2):
        # Both are named where each has words that the other has not; they stand in the order of these.
        places = sorted(
            (min(_places_with(question, match.words - other.words), default=-1), match.document.key)
            for match, other in ((first, second), (second, first))
        )
        if places[0][0] < 0:
            continue
        own = [*pair_documents(*(known[key] for _, key in places))]
        title = " ".join(f"{match.document.title} {match.document.name}" for match in (first, second))
        share = min(first.share, second.share)
        options += own
        of_documents += [tuple(known[key].catalogue.document.title for _, key in places)] * len(own)
        rows += measure_outline(
            question,
            numbers,
            AskedOutline(title, own, share, second.weight / matches[0].weight, 0, False, False),
        )
    options += BASE_OPTIONS
    best = max((row[OUTLINE_FEATURES.index("share of the first name")] for row in rows), default=0.0)
    features = np.zeros((len(options), len(OUTLINE_FEATURES)))
    if rows:
        features[: len(rows)] = rows
    features[-1, OUTLINE_FEATURES.index("no structure")] = 1.0
    features[-1, OUTLINE_FEATURES.index("best name of any option")] = best
    features[-len(BASE_OPTIONS) :, OUTLINE_FEATURES.index("numbers left out")] = len(numbers)
    features[-len(BASE_OPTIONS) :, OUTLINE_FEATURES.index("words that no name covers")] = 1.0
    features[-len(BASE_OPTIONS) :, OUTLINE_FEATURES.index("the place exists")] = 1.0
    return ReadOutlines(
        question,
        options,
        [*of_documents, *[()] * len(BASE_OPTIONS)],
        features,
        mask_question(question, resolver),
        mask_question(question, resolver, names, labels),
        vector,
        [context_of(question, number) for number in numbers],
    )


def measure_outline(
    question: QuestionText, numbers: Sequence[Number], asked: AskedOutline
) -> list[list[float]]:
    """Return the features of the options over one document, without those of shapes and numbers."""
    title = set(stem_words(asked.names.replace("_", " ").replace("-", " ")))
    of_numbers = {place for number in numbers for place in _places_of(question, number)}
    content = [
        place
        for place, word in enumerate(question.words)
        if word.is_content and place not in of_numbers and word.stem not in title
    ]
    return [_measure_option(question, numbers, asked, content, option) for option in asked.options]


def _measure_option(
    question: QuestionText,
    numbers: Sequence[Number],
    asked: AskedOutline,
    content: Sequence[int],
    option: OutlineOption,
) -> list[float]:
    used = [number for number, role in zip(numbers, option.numbers, strict=False) if role]
    covered = {place for name in option.names for place in name.words}
    left = sum(
        not set(_places_of(question, number)) <= covered
        for number in numbers
        if not any(number.start < other.end and other.start < number.end for other in used)
    )
    first, second = (option.names[place] if place < len(option.names) else None for place in (0, 1))
    is_cell = option.shape.startswith("show row cell")
    of_row = is_cell or option.shape.startswith("show row row")
    query, selector = option.query, option.query.selectors[0] if option.query.selectors else None
    # What is counted, or the word before the label; that of plain sections says nothing.
    word = query.word if query.operation in {"count", "list"} else "" if selector is None else selector.word
    word = "" if word in {"section", PAGE, TABLE, ROW} else word
    short_for = word or ("" if selector is None else selector.kind)
    is_nth = " nth" in option.shape or option.shape.startswith("several")
    is_counted = is_nth or option.shape.endswith("page number")
    has_ordinal, has_label = (
        any(getattr(each, name) for each in used) for name in ("is_ordinal", "is_label")
    )
    stems = {each.stem for each in question.words}
    return [
        *[0.0] * len(ASPECTS),
        left,
        option.exists,
        0.0,
        len(option.names),
        0.0 if first is None else first.share,
        0.0 if second is None else second.share,
        first is not None and first.stands,
        0.0 if first is None else first.like,
        0.0 if first is None else np.log1p(first.rank),
        first.share if first is not None and of_row else 0.0,
        option.names[-1].share if is_cell else 0.0,
        sum(place not in covered for place in content) / max(len(content), 1),
        asked.share,
        asked.named,
        asked.rank,
        asked.is_only,
        asked.leaves_one,
        is_nth and has_ordinal,
        not is_nth and has_ordinal,
        not stems.isdisjoint(stem_words(word)),
        is_counted and has_label,
        not is_counted and has_label,
        bool(short_for) and any(_is_short(question, number, short_for) for number in used),
        len(first.words) if first is not None and option.shape == "locate text" else 0.0,
        0.0,
    ]


def _words_before(question: QuestionText, number: Number) -> list[str]:
    """Return the words before a number; that of "p9" is "p"."""
    before = [word for word in question.words if word.start < number.start]
    return [question.text[word.start : min(word.end, number.start)].casefold() for word in before]


def _is_short(question: QuestionText, number: Number, word: str) -> bool:
    """Return whether a word before a number is short for a word: "ch 4", "appx b", "tbl 3"."""
    before = "".join(_words_before(question, number)[-1:])
    letters = iter(word)
    return len(before) < len(word) and before[:1] == word[0] and all(letter in letters for letter in before)


def _places_of(question: QuestionText, number: Number) -> list[int]:
    return [place for place, word in enumerate(question.words) if number.start <= word.start < number.end]


def add_outline_shapes(wording: OutlineWording, read: ReadOutlines) -> Floats:
    """Return the features of options with those of their shapes and of what they take the numbers for."""
    logs = {
        name: wording.aspects[name].log_probabilities(read.buckets, read.vector)
        for name in ASPECTS
        if name != "gate"
    }
    roles = [wording.roles.log_probabilities(context, np.zeros(1)) for context in read.contexts]
    features = read.features.copy()
    for place, option in enumerate(read.options):
        own = aspects_of(option.shape)
        features[place, : len(logs)] = [logs[name].get(own[name], UNSEEN) for name in logs]
        taken = option.numbers or ("",) * len(roles)
        features[place, len(logs)] = sum(
            each.get(role, UNSEEN) for each, role in zip(roles, taken, strict=True)
        )
    return features


def score_outlines(model: OutlineModel, read: ReadOutlines) -> tuple[Floats, Floats]:
    """Return the features of options with those of shapes, and their scores, (options,)."""
    features = add_outline_shapes(model.wording, read)
    return features, model.score.scores(features)


def choose_judged(read: ReadOutlines, scores: Floats) -> list[int]:
    """Return the likeliest options that differ in meaning, the likeliest first: those that the judge reads."""
    order, _ = order_options(read, scores)
    likeliest: dict[tuple[object, ...], int] = {}
    for place in order:
        likeliest.setdefault(read.options[place].key, place)
    return [place for key, place in likeliest.items() if key != CONTENT][:JUDGED]


def order_options(read: ReadOutlines, scores: Floats) -> tuple[list[int], Floats]:
    """Return the order of options and their shares of the probability. Options of equal meaning count together; the
    likeliest of them stands for all."""
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    mass = _sum_by_meaning(read, shares)
    order = sorted(range(len(shares)), key=lambda place: (-mass[read.options[place].key], -shares[place]))
    return order, shares


def _sum_by_meaning(read: ReadOutlines, shares: Floats) -> dict[tuple[object, ...], float]:
    mass: dict[tuple[object, ...], float] = {}
    for option, share in zip(read.options, shares.tolist(), strict=True):
        mass[option.key] = mass.get(option.key, 0.0) + share
    return mass


def correct_outlines(mixture: Floats, read: ReadOutlines, judged: Sequence[int], likeness: Floats) -> Floats:
    """Return what the judge adds to the scores of options, (options,): options that mean the same get the same, those
    that it did not read the least; the last, that no structure is asked for, has a weight of its own."""
    added = likeness @ mixture[1:4]
    by_meaning = {read.options[place].key: value for place, value in zip(judged, added.tolist(), strict=True)}
    least = min(by_meaning.values(), default=0.0)
    corrections = np.array([by_meaning.get(option.key, least) for option in read.options])
    corrections[-1] = mixture[4]
    return corrections


def rank_outlines(
    model: OutlineModel,
    read: ReadOutlines,
    features: Floats,
    scores: Floats,
    judged: Sequence[int],
    likeness: Floats,
) -> tuple[list[int], Floats, Floats]:
    """Return the order of the options, their shares of the probability, and the features of the confidence
    (:data:`OUTLINE_CONFIDENCE`)."""
    corrections = correct_outlines(model.mixture, read, judged, likeness)
    order, shares = order_options(read, model.mixture[0] * scores + corrections)
    mass = _sum_by_meaning(read, shares)
    key = read.options[order[0]].key
    others = [value for name, value in mass.items() if name != key]
    own = mass[key]
    named = {name: number for number, name in enumerate(OUTLINE_FEATURES)}
    best = features[order[0]]
    confidence = np.array(
        [
            1.0,
            log_odds(own),
            own - max(others, default=0.0),
            own,
            best[named["log probability of the shape"]],
            mass.get(CONTENT, 0.0),
            # The names between are those of features.
            *(best[named[name]] for name in OUTLINE_CONFIDENCE[6:-2]),
            log_odds(_sum_by_meaning(read, order_options(read, scores)[1])[key]),
            corrections[order[0]] - corrections[-1],
        ]
    )
    return order, shares, confidence
