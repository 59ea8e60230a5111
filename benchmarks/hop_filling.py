"""Hops of MuSiQue's questions, each filled from an extracted graph, from the text, and from both.

    python benchmarks/hop_filling.py --data ../shared/data

The graph is HippoRAG's extraction (gpt-3.5-turbo) from the 1,890 paragraphs of the shared questions; the text is
those paragraphs. A hop is a sub-question of the gold decomposition with ``#1`` replaced by its gold answer, as a
triple: ``head >> relation`` as the data writes it, else the last name in the sub-question as head and its other
words as relation. No model: relations are linked by the encoder, passages read by the reader that is named
(``--reader``). The trained reader learnt from the hops of all folds but 0. A hop is right where
its best value says what the gold answer says (:func:`clew.core.values.same_value`).
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import clew
import folds
from clew.core.text import candidate_names
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.core.values import same_value
from clew.evaluate.corpora import pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.knowledge_base import registry
from clew.methods.chain.method import fill_by_hop, fill_in_order
from clew.methods.chain.unknowns import FilledChain, KnowledgeSource
from clew.triples.language.chain import Chain, Term, Triple

_ASKING = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|how|is|are|was|were|did|does|do|the|a|an)\b|\?", re.IGNORECASE
)


def triple_of(asked: str, number: int) -> Triple:
    """Return a sub-question as a triple whose tail is unknown."""
    head, arrow, relation = asked.partition(">>")
    if arrow:
        return Triple(Term(head.strip()), relation.strip(), Term(f"#{number}"))
    head = max((asked[start:end] for _, start, end in candidate_names(asked)), key=len, default=asked)
    relation = " ".join(_ASKING.sub(" ", asked.replace(head, " ")).split()) or "is"
    return Triple(Term(head), relation, Term(f"#{number}"))


def hops(example: Example) -> Iterator[tuple[str, str, str]]:
    """Yield the hops: sub-question with the gold answers before it filled in, its answer, and its form."""
    for number, (asked, answer) in enumerate(example.chain, 1):
        filled = asked
        for before, (_, value) in enumerate(example.chain[: number - 1], 1):
            filled = re.sub(rf"#{before}\b", value, filled)
        yield filled, answer, "head >> relation" if ">>" in asked else "in words"


def right(
    sources: Sequence[KnowledgeSource], asked: str, answer: str, question: str, choose: str
) -> tuple[bool, bool]:
    """Return whether anything was found for a hop, and whether it is right."""
    filled = FilledChain(Chain((triple_of(asked, 1),), 1))
    (fill_in_order if choose == "order" else fill_by_hop)(
        filled, sources, Question(question), TrailRecorder()
    )
    if filled.open_unknowns:
        return False, False
    return True, same_value(filled.best_values[1], answer)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--encoder", default="clew:hops", help="none: by words alone")
    parser.add_argument("--retriever", default="search")
    parser.add_argument("--all", action="store_true", help="all questions, not only those of two hops")
    parser.add_argument(
        "--fold", type=int, nargs="+", help="only questions of these folds; the trained reader has not seen 0"
    )
    parser.add_argument("--reader", default="auto", help="auto: the trained reader")
    given = parser.parse_args()
    examples = list(load_dataset("musique", given.data / "musique/train100.jsonl").examples())
    encoder = None if given.encoder == "none" else registry.load_encoder(given.encoder)
    asked = [item for item in examples if given.all or item.id.startswith("2hop")]
    fold_of = folds.folds({"musique": examples})
    if given.fold:
        asked = [item for item in asked if fold_of["musique", item.id] in given.fold]
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        fill_store(base.store, pool_paragraphs(examples), EvaluationSettings(encoder=encoder))
        base.graphs.add(given.data / "musique/train100_openie.jsonl", name="extracted", skip_bad=True)
        recipe = f"chain(sources='kg,text', retriever={given.retriever}, reader={given.reader})"
        kg, text = registry.build_method(recipe, base.store, encoder=encoder).sources  # type: ignore[attr-defined]
        settings = [
            ("graph", [kg], "order"), ("text", [text], "order"), ("graph, then text", [kg, text], "order"),
            ("text, then graph", [text, kg], "order"), ("the surer of both", [kg, text], "hop"),
        ]  # fmt: skip
        counts: dict[str, Counter[str]] = {name: Counter() for name, _, _ in settings}
        either: Counter[str] = Counter()
        by_fold: dict[int, Counter[str]] = defaultdict(Counter)
        for example in asked:
            for question, answer, form in hops(example):
                either[form] += 1
                got = []
                for name, sources, choose in settings:
                    result, ok = right(sources, question, answer, example.question, choose)
                    counts[name][f"filled {form}"] += result
                    counts[name][f"right {form}"] += ok
                    got.append(ok)
                    if name == "text":
                        outcome = "right" if ok else "wrong" if result else "unknown"
                        by_fold[fold_of["musique", example.id]][outcome] += 1
                either[f"either {form}"] += got[0] or got[1]
        forms = ("head >> relation", "in words")
        listed = ", ".join(f"{either[form]} {form}" for form in forms)
        print(f"{len(asked)} questions, hops: {listed}; encoder {given.encoder}\n")
        print("| source | " + " | ".join(f"filled, {form} | right" for form in forms) + " | right, all |")
        print("|" + "---|" * (2 + 2 * len(forms)))
        total = sum(either[form] for form in forms)
        for name, _, _ in settings:
            cells = [str(counts[name][f"{what} {form}"]) for form in forms for what in ("filled", "right")]
            every = sum(counts[name][f"right {form}"] for form in forms)
            print(f"| {name} | {' | '.join(cells)} | {every} of {total} |")
        both = [str(either[f"either {form}"]) for form in forms]
        print(
            f"| right in at least one of graph and text | | {both[0]} | | {both[1]} "
            f"| {sum(map(int, both))} of {total} |"
        )
        print("\nText alone, by fold; the trained reader learnt from the hops of folds 1 to 4\n")
        print("| fold | hops | right | wrong | unknown |\n|---|---|---|---|---|")
        for fold, outcomes in sorted(by_fold.items()):
            listed = " | ".join(str(outcomes[outcome]) for outcome in ("right", "wrong", "unknown"))
            print(f"| {fold} | {outcomes.total()} | {listed} |")


if __name__ == "__main__":
    main()
