"""Recall in German, Spanish, Chinese and Arabic: words alone, the encoder that comes with clew, the multilingual one.

Usage:
    python benchmarks/languages.py [--encoders clew:hops,clew:multilingual] [--work DIR]

Each of the 50 passages of a language (``language_questions/``) is a document of one file. Three things are measured
with the 50 questions of each language: ``own``, the passage among the 50 of the question's language; ``all``, the
passage of the question's language among the 200 of all four; ``cross``, one of the three passages that say the same
among the 150 of the other languages. Recall at 5 and at 1, in per cent. Nothing was tuned on these questions.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import clew

LANGUAGES = ("de", "es", "zh", "ar")
QUESTIONS = Path(__file__).with_name("language_questions")


def read_lines(language: str) -> list[tuple[str, str, str]]:
    """Return name, passage and question of each line."""
    lines = (QUESTIONS / f"{language}.tsv").read_text(encoding="utf-8").splitlines()
    return [(name, passage, question) for name, passage, question in (line.split("\t") for line in lines)]


def write_files(folder: Path, languages: Sequence[str]) -> None:
    for language in languages:
        for name, passage, _ in read_lines(language):
            (folder / f"{language}-{name}.txt").write_text(passage, encoding="utf-8")


def recall(base: clew.KnowledgeBase, retriever: str, language: str, golds: Sequence[str]) -> tuple[int, int]:
    """Return how many questions have one of their passages in ``golds`` among the first 5, and as the first."""
    in_five = first = 0
    for name, _, question in read_lines(language):
        files = [hit.node.document_name for hit in base.search(question, k=5, retriever=retriever)]
        right = [file in {f"{gold}-{name}.txt" for gold in golds} for file in files]
        in_five += any(right)
        first += any(right[:1])
    return in_five, first


def settings(language: str) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """Yield what is measured, the languages of the base, and those of the passages that count."""
    others = [other for other in LANGUAGES if other != language]
    yield "own", [language], [language]
    yield "all", LANGUAGES, [language]
    yield "cross", others, others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoders", default="clew:hops,clew:multilingual")
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    rows: dict[tuple[str, str], list[str]] = {}
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        for language in LANGUAGES:
            for measured, searched, golds in settings(language):
                folder = Path(work) / f"{measured}-{language}"
                folder.mkdir()
                write_files(folder, searched)
                with clew.open(folder / ".clew", create=True) as base:
                    base.encoding.set(None)
                    base.add([folder], workers=1)
                    runs = [("words alone", "bm25"), ("words alone", "default")]
                    for encoder in filter(None, [None, *options.encoders.split(",")]):
                        runs += [(encoder, "dense"), (encoder, "default")]
                    for encoder, retriever in runs:
                        if encoder != "words alone" and base.encoding.name != encoder:
                            base.encoding.set(encoder)
                            base.encoding.encode_missing()
                        in_five, first = recall(base, retriever, language, golds)
                        share = f"{2 * in_five} / {2 * first}"
                        rows.setdefault((encoder, f"{retriever}, {measured}"), []).append(share)
                        print(f"# {language} {measured} {encoder} {retriever}: {share}", flush=True)
    print(f"\n| encoder | retriever, documents | {' | '.join(LANGUAGES)} |")
    print("|---|---|" + "---:|" * len(LANGUAGES))
    for (encoder, what), shares in sorted(rows.items(), key=lambda row: row[0][1].split(", ")[::-1]):
        print(f"| {encoder} | {what} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
