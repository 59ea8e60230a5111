"""OTT-QA: questions whose answer needs a table, a passage that a cell of it links to, or both.

    python benchmarks/tables_and_passages.py build --kb FOLDER --minutes 15   # again until it says "complete"
    python benchmarks/tables_and_passages.py retrieval --kb FOLDER
    python benchmarks/tables_and_passages.py answers --kb FOLDER

All 600 tables and all 16,899 passages of ``../shared/data/ottqa`` are one base; the 300 questions are its training
questions. The links of the cells are not given to clew: it joins cells and documents by name.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from clew.evaluate.corpora import build_documents, document_location
from clew.evaluate.datasets.tables import read_ottqa_pool
from clew.knowledge_base.registry import load_encoder
from clew.store.store import Store


def build(options: argparse.Namespace) -> None:
    """Make the base, or go on making it, for so many minutes at most."""
    stop = time.monotonic() + 60 * options.minutes

    def stop_in_time(done: int, total: int) -> None:
        if time.monotonic() > stop:
            raise TimeoutError(f"{done} of {total}")

    with Store.open(options.kb, create=True) as store:
        known = {document.key for document in store.documents()}
        documents = list(build_documents(read_ottqa_pool(options.data / "ottqa" / "questions.jsonl")))
        current = {document.key for document in documents}
        stale = [path for document in store.documents() if document.key not in current for path in document.paths]
        if stale:
            store.remove(stale)
        for document in documents:
            if document.key not in known:
                store.put_document(document, document_location(document))
        try:
            store.catch_up(stop_in_time)
            store.encode(load_encoder(options.encoder), stop_in_time)
        except TimeoutError as error:
            print(f"not complete: {error}")
            return
    print("complete")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("build")
    command.add_argument("--minutes", type=float, default=15)
    command.set_defaults(run=build)
    for command in commands.choices.values():
        command.add_argument("--kb", type=Path, required=True)
        command.add_argument("--encoder", default="clew:hops")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
