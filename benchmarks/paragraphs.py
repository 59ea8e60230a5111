"""Multi-hop questions over pooled Wikipedia paragraphs: recall@5 of the gold paragraphs.

All paragraphs of a data set's questions are pooled, each paragraph a document under its title. Training
questions only (HotpotQA 100, 2WikiMultihopQA 500, MuSiQue 100); clew's own search was chosen on them.

    python benchmarks/paragraphs.py
    python benchmarks/paragraphs.py --retriever search --retriever kgp --encoder onnx:FOLDER --folder /tmp/bases
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from clew import catalog
from clew.kb import KnowledgeBase
from clew.parse.build import DocumentBuilder
from clew.types import Location, ParsedDocument, Question

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
SETS = {
    "hotpotqa": "hotpotqa/train100.jsonl",
    "2wikimultihopqa": "2wikimultihopqa/train500.jsonl",
    "musique": "musique/train100.jsonl",
}
FIRST = 5


def questions(data: Path, name: str) -> Iterator[tuple[str, list[tuple[str, str]], set[int]]]:
    """Yield question, paragraphs (title, text) and which of them are gold."""
    for line in (data / SETS[name]).read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if name == "musique":
            given = record["paragraphs"]
            paragraphs = [(one["title"], one["paragraph_text"]) for one in given]
            gold = {n for n, one in enumerate(given) if one["is_supporting"]}
        else:
            paragraphs = [(title, " ".join(s.strip() for s in text)) for title, text in record["context"]]
            titles = {title for title, _ in record["supporting_facts"]}
            gold = {n for n, (title, _) in enumerate(paragraphs) if title in titles}
        yield record["question"], paragraphs, gold


def as_document(title: str, text: str) -> ParsedDocument:
    builder = DocumentBuilder()
    builder.paragraph(text)
    data = f"{title}\n{text}".encode()
    return builder.finish(data=data, title=title, media_type="text/plain", parser="benchmark/1")


def fill(base: KnowledgeBase, data: Path, name: str) -> list[tuple[str, set[str]]]:
    """Commit what is missing; return the questions with the keys of their gold paragraphs."""
    asked = []
    for question, paragraphs, gold in questions(data, name):
        documents = [as_document(*paragraph) for paragraph in paragraphs]
        for document in documents:
            if not base.has(document.key):
                path = f"/benchmark/{document.key}.txt"
                base.commit(document, Location(path, "/benchmark", len(document.text), 1, 1))
        asked.append((question, {documents[n].key for n in gold}))
    base.catch_up()
    return asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--set", action="append", choices=list(SETS), dest="sets")
    parser.add_argument("--retriever", action="append", help="retrievers or methods that retrieve")
    parser.add_argument("--encoder", help="an encoder, such as onnx:FOLDER")
    parser.add_argument("--folder", type=Path, help="where to keep the bases (default: nowhere)")
    options = parser.parse_args()
    if not options.data.is_dir():
        raise SystemExit(f"no data at {options.data}; it is not part of this repository")
    encoder = catalog.encoder(options.encoder) if options.encoder else None
    retrievers = options.retriever or [
        "tfidf",
        "bm25",
        *(["dense", "hybrid"] if encoder else []),
        "search",
        "kgp",
    ]
    print(f"| recall@{FIRST} | questions | " + " | ".join(retrievers) + " |")
    print("|---|---|" + "---|" * len(retrievers))
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.sets or SETS:
            folder = (options.folder or Path(temporary)) / name
            folder.parent.mkdir(parents=True, exist_ok=True)
            with KnowledgeBase.open(folder, create=True) as base:
                asked = fill(base, options.data, name)
                if encoder:
                    base.encode(encoder)
                cells = []
                for retriever in retrievers:
                    found = catalog.retriever(retriever, base, encoder=encoder)
                    shares = []
                    for question, gold in asked:
                        hits = found.retrieve(Question(question), FIRST)
                        shares.append(len(gold & {hit.node.document for hit in hits}) / len(gold))
                    cells.append(f"{100 * np.mean(shares):.1f}")
                print(f"| {name} | {len(asked)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
