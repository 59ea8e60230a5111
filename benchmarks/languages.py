"""Recall in German, Spanish, Chinese and Arabic: words alone, the encoder that comes with clew, the multilingual one.

Usage:
    python benchmarks/languages.py [--languages de,es,zh,ar] [--encoders clew:hops,clew:multilingual] [--work DIR]

Each of the 200 passages of a language (``language_questions/``) is a document of one file. Three things are measured
with the 200 questions of each language: ``own``, the passage among the 200 of the question's language; ``all``, the
passage of the question's language among the 800 of all four; ``cross``, one of the three passages that say the same
among the 600 of the other languages. Recall at 5 and at 1, in per cent: of all questions, of the 50 that were written
first, of the 150 that were written when the figures of the 50 were known, and, for ``own``, of those with and those
without a word of their passage (function words left out); always among all passages. Nothing was tuned on these
questions.

``--languages`` asks the questions of some languages only; the passages are the same, so that the columns of several
runs make up one table.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import clew
from clew.core.text import index_terms, query_terms
from clew.core.types import Question, Scope
from clew.evaluate.corpora import build_documents, document_location, pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.knowledge_base.registry import build_retriever
from clew.models import create_encoder
from clew.store.store import Store

LANGUAGES = ("de", "es", "zh", "ar")
QUESTIONS = Path(__file__).with_name("language_questions")
DATA = Path(__file__).parent.parent.parent / "shared" / "data"
WITH_WORD, WITHOUT_WORD = "Questions with a word of their passage", "Questions without"
COUNTS = "questions, and those with a word of their passage"


def read_lines(language: str) -> list[tuple[str, str, str]]:
    """Return name, passage and question of each line."""
    lines = (QUESTIONS / f"{language}.tsv").read_text(encoding="utf-8").splitlines()
    return [(name, passage, question) for name, passage, question in (line.split("\t") for line in lines)]


def write_files(folder: Path, languages: Sequence[str]) -> None:
    for language in languages:
        for name, passage, _ in read_lines(language):
            (folder / f"{language}-{name}.txt").write_text(passage, encoding="utf-8")


def rank_passages(base: clew.KnowledgeBase, retriever: str, language: str, golds: Sequence[str]) -> list[int]:
    """Return for each question the rank of its first passage in ``golds``, from 1; 6 where none is in the first 5."""
    places = []
    for name, _, question in read_lines(language):
        files = [hit.node.document_name for hit in base.search(question, k=5, retriever=retriever)]
        right = {f"{gold}-{name}.txt" for gold in golds}
        places.append(next((rank for rank, file in enumerate(files, 1) if file in right), 6))
    return places


def settings(languages: Sequence[str]) -> Iterator[tuple[str, Sequence[str], dict[str, Sequence[str]]]]:
    """Yield what is measured, the languages of the base, and by language of the questions those of their passages."""
    yield "all", LANGUAGES, {language: [language] for language in languages}
    for language in languages:
        others = [other for other in LANGUAGES if other != language]
        yield "own", [language], {language: [language]}
        yield "cross", others, {language: others}


def format_recall(places: Sequence[int]) -> str:
    """Return recall at 5 and at 1 in per cent."""
    return " / ".join(f"{100 * sum(rank <= k for rank in places) / len(places):.0f}" for k in (5, 1))


def choose_parts(language: str) -> dict[str, list[int]]:
    """Return for each part of the questions that is reported the indexes of its lines."""
    lines = read_lines(language)
    common = [
        bool({*query_terms(question, [language])} & {*index_terms(passage, language)})
        for _, passage, question in lines
    ]
    return {
        "All questions": list(range(len(lines))),
        "The 50 written first": list(range(50)),
        "The 150 written later": list(range(50, len(lines))),
        WITH_WORD: [i for i, shared in enumerate(common) if shared],
        WITHOUT_WORD: [i for i, shared in enumerate(common) if not shared],
    }


def count_questions(part: str, parts: dict[str, list[int]]) -> str:
    """Return how many questions a part has, and how many of them have a word of their passage."""
    return f"{len(parts[part])}, {len({*parts[part]} & {*parts[WITH_WORD]})}"


def print_contrast(names: Sequence[str], questions: int = 100, passages: int = 600) -> None:
    """Print how far the cosines of an English question with many paragraphs lie apart, by encoder.

    Questions and paragraphs are drawn from HotpotQA and MuSiQue (seed 26): none is in the languages that are measured
    here, none is a question of this benchmark.
    """
    asked, texts = [], []
    for name in ("hotpotqa", "musique"):
        for example in load_dataset(name, DATA / name / "train100.jsonl").examples():
            asked.append(example.question)
            texts += [" ".join(paragraph.sentences) for paragraph in example.corpus]
    draw = random.Random(26)
    asked = draw.sample(asked, questions)
    texts = draw.sample(list(dict.fromkeys(texts)), passages)
    for name in names:
        encoder = create_encoder(name)
        spread = (encoder.encode(asked, query=True) @ encoder.encode(texts).T).std(axis=1).mean()
        print(f"{name}: cosines of a question with {passages} paragraphs spread by {spread:.4f}")


def print_english(name: str, questions: int = 40) -> None:
    """Print the recall at 5 of the gold paragraphs of English questions of three data sets (seed 1) among all of
    theirs, by the vectors alone and by the default search."""
    drawn = {}
    for data_set, file in (
        ("hotpotqa", "train100"),
        ("musique", "train100"),
        ("2wikimultihopqa", "train500"),
    ):
        examples = list(load_dataset(data_set, DATA / data_set / f"{file}.jsonl").examples())
        drawn[data_set] = random.Random(1).sample(examples, questions)
    encoder = create_encoder(name)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "base", create=True) as store:
        for document in build_documents(
            pool_paragraphs(example for some in drawn.values() for example in some)
        ):
            store.put_document(document, document_location(document))
        store.encode(encoder)
        titles = {document.key: document.title for document in store.documents()}
        for component in ("dense", "search"):
            retriever = build_retriever(component, store, encoder=encoder)
            recalls = []
            for some in drawn.values():
                shares = []
                for example in some:
                    gold = {support.title for support in example.support}
                    hits = retriever.retrieve(Question(example.question, Scope()), 5)
                    shares.append(len(gold & {titles[hit.node.document] for hit in hits}) / len(gold))
                recalls.append(f"{100 * sum(shares) / len(shares):.1f}")
            print(f"| {name} | {component} | {' | '.join(recalls)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--languages", default=",".join(LANGUAGES))
    parser.add_argument("--encoders", default="clew:hops,clew:multilingual")
    parser.add_argument("--work", type=Path)
    parser.add_argument(
        "--english", action="store_true", help="only measure 120 English questions of three data sets"
    )
    parser.add_argument("--contrast", action="store_true", help="only measure how far cosines lie apart")
    options = parser.parse_args()
    if options.contrast:
        print_contrast(options.encoders.split(","))
        return
    if options.english:
        for name in options.encoders.split(","):
            print_english(name)
        return
    languages = options.languages.split(",")
    rows: dict[tuple[str, str], dict[str, list[int]]] = {}
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        for number, (measured, searched, golds_by_language) in enumerate(settings(languages)):
            folder = Path(work) / str(number)
            folder.mkdir()
            write_files(folder, searched)
            with clew.open(folder / ".clew", create=True) as base:
                base.encoding.set(None)
                base.add([folder], workers=1)
                runs = [("words alone", "bm25"), ("words alone", "default")]
                for encoder in filter(None, options.encoders.split(",")):
                    runs += [(encoder, "dense"), (encoder, "default")]
                for encoder, retriever in runs:
                    if encoder != "words alone" and base.encoding.name != encoder:
                        base.encoding.set(encoder)
                        base.encoding.encode_missing()
                    for language, golds in golds_by_language.items():
                        places = rank_passages(base, retriever, language, golds)
                        rows.setdefault((encoder, f"{retriever}, {measured}"), {})[language] = places
                        print(
                            f"{language} {measured} {encoder} {retriever}: {format_recall(places)}",
                            file=sys.stderr,
                        )
                        names = [
                            line[0]
                            for line, rank in zip(read_lines(language), places, strict=True)
                            if rank > 5
                        ]
                        print(f"  not in the first 5: {' '.join(names)}", file=sys.stderr)
    parts = {language: choose_parts(language) for language in languages}
    for part in next(iter(parts.values())):
        print(f"\n**{part}**\n\n| encoder | retriever, documents | {' | '.join(languages)} |")
        print("|---|---|" + "---:|" * len(languages))
        print(
            f"| | {COUNTS} | {' | '.join(count_questions(part, parts[language]) for language in languages)} |"
        )
        for (encoder, what), columns in sorted(rows.items(), key=lambda row: row[0][1].split(", ")[::-1]):
            if part in (WITH_WORD, WITHOUT_WORD) and not what.endswith("own"):
                continue  # what a shared word is worth shows among the passages of one language
            shares = [
                format_recall([columns[language][i] for i in parts[language][part]]) for language in languages
            ]
            print(f"| {encoder} | {what} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
