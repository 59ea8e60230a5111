"""Training of what ranks sentences of passages: the linear score of options, and the confidence in the first.

Each file of questions is a base of its own, made of the passages of its questions; each question is asked of the
whole base, so that the score sees what search brings. Files are held out whole: each in turn for the figures and for
the confidence.
"""

from __future__ import annotations

import itertools
import random
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clew.core.config import DEFAULT_READER
from clew.core.errors import UsageError
from clew.core.types import QUOTED_FROM, ROW
from clew.evaluate.metrics.answers import token_f1
from clew.knowledge_base import registry
from clew.knowledge_base.knowledge_base import open as open_base
from clew.methods.readers.spans import SpanAnswerReader, read_hits
from clew.models.plan_judge import SENTENCES_FILE, create_plan_judge
from clew.questions.linear import LinearScore, train_linear
from clew.questions.sentences import (
    LIST,
    MARKED,
    VERDICT,
    Option,
    SentenceModel,
    add_several,
    add_through,
    measure_first,
    measure_mark,
    measure_verdict,
    share_scores,
    weigh_vector,
)
from clew.train.plan_data import fit_logistic
from clew.train.plan_fitting import count_by, measure_chances, remember
from clew.train.reading_data import NOT_TRAINED_ON
from clew.train.reading_examples import marked_examples
from clew.train.sentence_questions import document_titles, read_lines
from clew.train.training_folder import FINISHED, TrainingFolder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats
    from clew.core.types import Hit

RECORD = "clew-sentences-training.json"
#: Passages that a question's walk is to return.
PASSAGES = 30
#: A list is right if it has this share of the items; with one answer, if that is this share of the list.
_ITEMS, _MOST_OF = 0.75, 0.6
#: In this share of questions the passages that answer are left out. A confidence without examples is lower
#: than any by this.
_WITHOUT, _FAR = 0.2, 10.0
#: Marked words are the value from this token F1 on.
_SAME = 0.6
#: The kinds of questions that ask through another thing and through none; so many of each source with marked answers
#: ask through none.
HOPS, ONE_HOP, _MOST_MARKED = "hops", "one-hop", 500
#: Questions of yes or no of a file, and those of pairs.
POLAR, PAIR = "polar", "pair"
#: For every question of a file, so many are asked of it that are about something else.
_FOREIGN = 0.25
#: What stands between the cells of a row.
_CELL_END = " | "
_SPACE = re.compile(r"[\s|*_`\\-]+")
_WORD = re.compile(r"\w+")
#: The weights of whether several things are asked for are held to be small.
_DECAY = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class SentenceExample:
    """A question with its ``vector``, its options, their ``features`` and which are ``right``; none is where it has
    no answer.

    ``marks`` has the features of the words marked in each right option where the value that is asked for is known,
    and whether they hold it. ``verdicts`` has, where yes or no is right, the features of each option for it and
    whether "no" is.
    """

    question: str
    kind: str
    options: Sequence[Option]
    features: Floats
    vector: Floats
    right: NDArray[np.bool_]
    marks: Sequence[tuple[Floats, bool]] = ()
    verdicts: tuple[Floats, bool] | None = None

    @property
    def is_answerable(self) -> bool:
        """Whether the documents answer it."""
        return not self.kind.startswith("none")


def train_sentences(
    files: Sequence[Path],
    out: Path,
    progress: Callable[[str, int, int], None],
    pairs: Path | None = None,
    reader: str = DEFAULT_READER,
    wordings: Sequence[Path] = (),
    marked: Path | None = None,
) -> dict[str, Any]:
    """Train into the folder ``out`` and return the record, which is also written there. ``pairs`` is a file of
    questions of yes or no with a sentence each, of which those about the documents of ``files`` are asked, too; from
    the questions of ``wordings`` is learned which ask for several things and which through another (the kind
    :data:`HOPS`), which none of a file with ``marked`` answers does. A base is also asked what is about something
    else: questions of the other files, and those of ``wordings`` that ask through another thing or have the kind
    :data:`ONE_HOP`. After an interrupt the same call goes on. Raises UsageError."""
    if len(files) < 2:
        raise UsageError("one file is too few", "Whole files are held out: give at least two")
    output = TrainingFolder(out, RECORD)
    output.check()
    description = {
        "files": [file.name for file in files],
        "pairs": pairs.name if pairs else None,
        "reader": reader,
        "wordings": [file.name for file in wordings],
        "marked": marked.name if marked else None,
    }
    if FINISHED in output.matching_record(description):
        return output.read()
    output.begin(description)
    examples: dict[str, list[SentenceExample]] = {}
    for number, file in enumerate(files):
        progress("sentences", number, len(files))
        foreign = draw_foreign(file, files, wordings)
        examples[file.stem] = remember(
            out / f"sentences-{file.stem}.pickle", partial(prepare_file, file, pairs, reader, foreign)
        )
    if sum(any(each.is_answerable and each.kind != HOPS for each in own) for own in examples.values()) < 2:
        raise UsageError(
            f"fewer than two files have other kinds than {HOPS}", "What counts anyway is learned from these"
        )
    learned = fit_wordings(wordings, marked)
    for own in examples.values():
        own[:] = [
            replace(each, features=add_several(each.features, each.vector, learned.several)) for each in own
        ]
    model, measures = fit_sentences(examples, learned)
    np.savez_compressed(out / SENTENCES_FILE, **model.to_arrays())  # type: ignore[arg-type]
    record = {**description, FINISHED: measures}
    output.write(record)
    return record


class Wordings(NamedTuple):
    """Weights that are learned from questions alone, and from those of yes or no with what answers them: as
    :class:`clew.questions.sentences.SentenceModel` has them."""

    verdict: Floats
    several: Floats
    through: Floats


def fit_wordings(files: Sequence[Path], marked: Path | None = None) -> Wordings:
    """Return the weights of whether "no" is right, whether a question asks for several things, and whether it asks
    through another; without files none does. Questions over invented documents (without a ``source``) were written so
    that negations do not tell yes from no; those over real ones were not."""
    rows = [row for file in files for row in read_lines(file)]
    own = [row for row in rows if row["kind"] not in {HOPS, ONE_HOP}]
    several = _fit_vectors([(row["question"], row["kind"] == LIST) for row in own])
    asked = [(row["question"], row["kind"] == HOPS) for row in rows]
    if marked is not None:
        sources: dict[str, list[str]] = {}
        for example in marked_examples(marked, NOT_TRAINED_ON):
            sources.setdefault(example.source, []).append(example.question)
        chooser = random.Random("marked")
        for questions in sources.values():
            drawn = chooser.sample(questions, min(len(questions), _MOST_MARKED))
            asked += [(question, False) for question in drawn]
    polar = [
        (
            measure_verdict(row["question"], " ".join(each["text"] for each in row["answers"])),
            row["polar"] == "no",
        )
        for row in rows
        if row["kind"] == POLAR and "source" in row
    ]
    verdict = _fit_pairs(polar, VERDICT) if polar else np.zeros(len(VERDICT))
    return Wordings(verdict, several, _fit_vectors(asked))


def _fit_vectors(questions: Sequence[tuple[str, bool]]) -> Floats:
    """Return the weights of a property of questions by their vectors and a constant."""
    vectors = create_plan_judge().encoder.encode([question for question, _ in questions] or [""])
    features = np.column_stack([np.asarray(vectors, dtype=np.float64), np.ones(len(vectors))])
    return fit_logistic(features, np.array([has for _, has in questions] or [False]), _DECAY)


def draw_foreign(file: Path, files: Sequence[Path], wordings: Sequence[Path]) -> list[str]:
    """Return questions to ask of a file that are about something else: one half of other ``files``, the other of
    those ``wordings`` whose kind is how they ask."""
    chooser = random.Random(f"foreign {file.stem}")
    others = [row["question"] for other in files if other != file for row in read_lines(other)]
    asked = [
        row["question"] for each in wordings for row in read_lines(each) if row["kind"] in {HOPS, ONE_HOP}
    ]
    count = round(_FOREIGN * len(read_lines(file)) / 2)
    return [
        question for group in (others, asked) for question in chooser.sample(group, min(count, len(group)))
    ]


def prepare_file(
    file: Path, pairs: Path | None = None, reader: str = DEFAULT_READER, foreign: Sequence[str] = ()
) -> list[SentenceExample]:
    """Return the questions of a file of JSON lines (``question``, ``kind``, ``passages`` with title and text,
    ``answers`` with text; ``value`` and ``polar`` where there are), those of ``pairs`` about its documents, and
    ``foreign`` ones, which nothing in it answers, each with the options that the walk over a base of all of its
    passages gives."""
    rows = read_lines(file)
    if not rows or not {"question", "kind", "passages", "answers"} <= rows[0].keys():
        raise UsageError(f"no questions with passages in {file}", "See: clew train sentences --help")
    with tempfile.TemporaryDirectory(prefix="clew-train-") as folder:
        write_documents(rows, Path(folder) / "documents")
        with open_base(Path(folder) / "base", create=True) as base:
            base.add([Path(folder) / "documents"])
            span_reader = SpanAnswerReader.build(registry.open_resources(base.store), reader)
            examples = []
            asked = [{"question": question, "kind": "none-foreign", "answers": []} for question in foreign]
            for row in [*rows, *(read_pairs(pairs, document_titles(file)) if pairs else ()), *asked]:
                question = row["question"]
                hits = read_hits(base.search(question, k=PASSAGES, retriever="kgp"))
                example = measure_row(span_reader, row, hits)
                if example.options:
                    examples.append(example)
            return examples


def measure_row(reader: SpanAnswerReader, row: Mapping[str, Any], hits: Sequence[Hit]) -> SentenceExample:
    """Return a question of a file with the options that its hits give."""
    question = row["question"]
    options, features, vector, spans = reader.measure_hits(question, hits)
    right = np.array([answers_with(option, hits, row) for option in options])
    value = (row.get("value") or {}).get("text", "")
    marks = []
    for option, is_right in zip(options, right, strict=True):
        inside = [mark for mark in reader.to_marks(spans) if option.holds(mark)]
        if value and is_right and inside and option.kind != LIST:
            best = max(inside, key=lambda mark: mark.probability)
            words = hits[best.place].node.text[best.start : best.end]
            holds = token_f1(words, value) >= _SAME or _squeeze(value) in _squeeze(words)
            marks.append((measure_mark(hits, option, best, inside), holds))
    verdicts = None
    if row.get("polar"):
        measured = [measure_verdict(question, option.text(hits)) for option in options]
        verdicts = np.array(measured), row["polar"] == "no"
    return SentenceExample(question, row["kind"], options, features, vector, right, marks, verdicts)


def read_pairs(file: Path, documents: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the questions of yes or no about some documents as questions of a file; where a sentence says neither,
    nothing is known of what does."""
    for row in read_lines(file):
        if row["title"].partition(" > ")[0] in documents and row["polar"] != "neither":
            yield {
                "question": row["question"],
                "kind": PAIR,
                "polar": row["polar"],
                "answers": [{"text": row["sentence"]}],
            }


def write_documents(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write the passages of questions as Markdown, a file for each document: the first part of a passage's title."""
    documents: dict[str, dict[str, dict[str, None]]] = {}
    for row in rows:
        for passage in row["passages"]:
            document, _, section = passage["title"].partition(" > ")
            documents.setdefault(document, {}).setdefault(section, {})[passage["text"]] = None
    folder.mkdir(parents=True)
    for number, (document, sections) in enumerate(documents.items()):
        lines = [f"# {document}"]
        for section, texts in sorted(sections.items(), key=lambda pair: pair[0] != ""):
            lines += [f"## {section}"] * bool(section) + [write_tables(text) for text in texts]
        (folder / f"{number:03}.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")


def write_tables(text: str) -> str:
    r"""Return a text with its runs of lines that have cells, "a | b", as Markdown tables; the first line of each is
    the header.

    >>> print(write_tables("Fees:\nKind | Fee\nAdult | 5"))
    Fees:
    <BLANKLINE>
    | Kind | Fee |
    | --- | --- |
    | Adult | 5 |
    <BLANKLINE>
    """
    lines: list[str] = []
    for has_cells, run in itertools.groupby(text.split("\n"), lambda line: _CELL_END in line):
        own = list(run)
        if has_cells and len(own) > 1:
            rows = [line.strip("| ").split(_CELL_END) for line in own]
            width = max(map(len, rows))
            rows.insert(1, ["---"] * width)
            own = ["", *(f"| {_CELL_END.join(row + [''] * (width - len(row)))} |" for row in rows), ""]
        lines += own
    return "\n".join(lines)


def answers_with(option: Option, hits: Sequence[Hit], row: Mapping[str, Any]) -> bool:
    """Return whether an option holds the answer of a question, or is a part of it; of several parts it holds most."""
    text = _squeeze(option.text(hits))
    if option.kind == ROW:
        return any(_has_cells(text, answer["text"]) for answer in row["answers"])
    texts = [_squeeze(answer["text"]) for answer in row["answers"]]
    if option.kind == LIST:
        inside = sum(each in text for each in texts)
        if len(texts) > 1:
            return inside >= _ITEMS * len(texts)
        return inside == 1 and len(texts[0]) > _MOST_OF * len(text)
    if not any(each and (each in text or (text in each and len(text) > 12)) for each in texts):
        return False
    words = set(_WORD.findall(option.text(hits).casefold()))
    parts = [_WORD.findall(answer["text"].casefold()) for answer in row["answers"]]
    inside = sum(sum(word in words for word in part) >= _MOST_OF * len(part) for part in parts)
    return bool(row.get("value")) or inside >= (_ITEMS if row["kind"] == LIST else _MOST_OF) * len(parts)


def _has_cells(row: str, answer: str) -> bool:
    """Return whether a row, squeezed, has all cells of an answer; between them stand the names of its columns."""
    cells = [cell for cell in map(_squeeze, answer.split(_CELL_END)) if cell]
    return bool(cells) and all(cell in row for cell in cells)


def _squeeze(text: str) -> str:
    """Return a text without what Markdown and line breaks change."""
    return _SPACE.sub("", text).casefold()


def thin_out(example: SentenceExample, chooser: random.Random) -> SentenceExample:
    """Return a question as a small base has it, with one to three of its passages; in a fifth of the questions
    without those that answer. In a small base a sentence stands far above the others whether it answers or not."""
    places = sorted({option.place for option in example.options})
    good = {option.place for option, right in zip(example.options, example.right, strict=True) if right}
    if good and chooser.random() < _WITHOUT and len(good) < len(places):
        places = [place for place in places if place not in good]
    left = set(chooser.sample(places, min(chooser.randint(1, 3), len(places))))
    return _choose_options(example, lambda option: option.place in left)


def leave_out_answers(example: SentenceExample) -> SentenceExample:
    """Return a question as a base has it whose documents do not answer it: without the passages that do."""
    good = {option.place for option, right in zip(example.options, example.right, strict=True) if right}
    return _choose_options(example, lambda option: option.place not in good)


def _choose_options(example: SentenceExample, keep: Callable[[Option], bool]) -> SentenceExample:
    """Return a question with some of its options, for the order and the confidence in the first alone."""
    rows = [number for number, option in enumerate(example.options) if keep(option)]
    options = [example.options[number] for number in rows]
    features, right = example.features[rows], example.right[rows]
    return SentenceExample(example.question, example.kind, options, features, example.vector, right)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A question of a ``file`` with the order of its options by a score that did not see the file, and the features
    of the confidence in the first; ``is_small`` where it was asked of few passages or without those that answer."""

    file: str
    example: SentenceExample
    is_small: bool
    order: Sequence[int]
    features: Floats

    @property
    def is_right(self) -> bool:
        """Whether the first option is right."""
        return bool(self.example.right[self.order[0]])


def fit_sentences(
    examples: Mapping[str, Sequence[SentenceExample]], wordings: Wordings
) -> tuple[SentenceModel, dict[str, Any]]:
    """Return what all files give, and figures of each file by what the others give. The features have
    been given whether a question asks for several things."""
    through = wordings.through
    judged: list[Judged] = []
    for file, own in examples.items():
        score = fit_score([each for name, of in examples.items() if name != file for each in of], through)
        chooser = random.Random(file)
        thin = [thin_out(each, chooser) for each in own]
        without = [leave_out_answers(each) for each in own if chooser.random() < _WITHOUT]
        thin += [each for each in without if each.options]
        for is_small, each in [*((False, each) for each in own), *((True, each) for each in thin)]:
            shares, order = share_scores(
                score.scores(add_through(each.features, weigh_vector(through, each.vector)))
            )
            features = measure_first(each.question, each.options, each.features, shares, order)
            features = add_through(features, weigh_vector(through, each.vector))
            judged.append(Judged(file, each, is_small, order, features))
    right = np.array([each.is_right for each in judged])
    rows = np.array([each.features for each in judged])
    in_hops = np.array([each.example.kind == HOPS for each in judged])
    chances = np.zeros(len(judged))
    for file in examples:
        inside = np.array([each.file == file for each in judged])
        weights = fit_confidence(rows[~inside], right[~inside], in_hops[~inside])
        chances[inside] = 1 / (1 + np.exp(-rows[inside] @ weights))
    marks = [mark for of in examples.values() for each in of for mark in each.marks]
    model = SentenceModel(
        fit_score([each for of in examples.values() for each in of], through),
        fit_confidence(rows, right, in_hops),
        _fit_pairs(marks, MARKED),
        *wordings,
    )
    measures = measure_judged(judged, chances)
    measures["marked words right"] = {"right": sum(flag for _, flag in marks), "of": len(marks)}
    for name, kinds in (("yes or no right", {POLAR}), ("yes or no of pairs right", {PAIR})):
        flags = [
            bool(features[each.order[0]] @ wordings.verdict > 0) == is_no
            for each in judged
            if each.is_right and each.example.kind in kinds and each.example.verdicts is not None
            for features, is_no in (each.example.verdicts,)
        ]
        measures[name] = {"right": sum(flags), "of": len(flags)}
    return model, measures


def fit_score(examples: Sequence[SentenceExample], through: Floats) -> LinearScore:
    """Return the score of options, over the features of :func:`add_through`: what counts anyway comes from questions
    of one hop, what counts beside for others from all, with that as it is."""
    plain = [(each.features, each.right) for each in examples if each.kind != HOPS]
    score = train_linear(plain)
    own = score.weights / score.scales
    beside = np.zeros(len(own))
    if len(plain) < len(examples):
        both = train_linear(
            [
                (_put_first(add_through(each.features, weigh_vector(through, each.vector)), own), each.right)
                for each in examples
            ]
        )
        weights = both.weights / both.scales
        own, beside = own * weights[0], weights[1:]
    return LinearScore(np.append(own, beside), np.ones(2 * len(own)))


def fit_confidence(rows: Floats, right: NDArray[np.bool_], in_hops: NDArray[np.bool_]) -> Floats:
    """Return the weights of the confidence, as :func:`fit_score` does; ``in_hops`` are the questions of several
    hops."""
    own = fit_logistic(rows[~in_hops, : rows.shape[1] // 2], right[~in_hops])
    beside = np.zeros(len(own))
    if in_hops.any():
        weights = fit_logistic(_put_first(rows, own), right)
        own, beside = own * weights[0], weights[1:]
    return np.append(own, beside)


def _put_first(features: Floats, own: Floats) -> Floats:
    """Return the second half of features behind a column of the first half, weighed."""
    return np.column_stack([features[:, : len(own)] @ own, features[:, len(own) :]])


def _fit_pairs(pairs: Sequence[tuple[Floats, bool]], features: Sequence[str]) -> Floats:
    """Return the weights of a confidence; without examples it is never sure."""
    if not pairs:
        return np.array([-_FAR, *[0.0] * (len(features) - 1)])
    return fit_logistic(np.array([features for features, _ in pairs]), np.array([flag for _, flag in pairs]))


def measure_judged(judged: Sequence[Judged], chances: Floats) -> dict[str, Any]:
    """Return figures of questions, of which each first option was said to be right with the probability of
    ``chances``."""
    right = np.array([each.is_right for each in judged])
    small = np.array([each.is_small for each in judged])
    whole = [each for each in judged if not each.is_small]
    known = [each for each in whole if each.example.is_answerable]
    stated = small & (chances >= QUOTED_FROM)
    return {
        **measure_chances(chances[~small], right[~small], len(known), len(whole), QUOTED_FROM),
        "right among three": _mean(each.example.right[each.order[:3]].any() for each in known),
        "an option is right": _mean(each.example.right.any() for each in known),
        "nearest by vector right first": _mean(
            each.example.right[int(each.example.features[:, 0].argmax())] for each in known
        ),
        "stated where passages are left out": {
            "right": int(right[stated].sum()),
            "wrong": int((~right[stated]).sum()),
        },
        "right first by": count_by(
            [(each.example.kind, each.file) for each in known], np.array([each.is_right for each in known])
        ),
    }


def _mean(flags: Iterable[object]) -> float:
    return round(float(np.mean([bool(flag) for flag in flags])), 4)
