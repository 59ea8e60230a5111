"""Hops that a graph does not hold: how often the method ``chain`` fills one all the same, wrongly.

    python benchmarks/withheld_hops.py --data ../shared/data

The gold triples of 2WikiMultihopQA's questions are merged with the film graph of MetaQA, but for the half whose hash
is even. Every triple is then asked on its own, its tail masked, from the graph alone and without a model: as given,
with other words for the relation, and with the name of the head spelled otherwise.
"""

from __future__ import annotations

import hashlib

from clew.core.protocols import Method
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.core.values import same_value
from clew.evaluate.examples import Example
from clew.triples.language.chain import Chain, Term, Triple
from oracle_chains import Change, change_triples, options, oracle, settings


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--verbose", action="store_true", help="print what was filled wrongly, and by what")
    given = parser.parse_args()
    with oracle(given, is_held) as (examples, method):
        print(f"{len(examples)} questions; hops asked one by one")
        print("| chains | held | right | wrong | withheld | filled wrongly |")
        print("|---|---|---|---|---|---|")
        for name, change in settings():
            print(row(name, change, examples, method, given.verbose), flush=True)


def is_held(triple: tuple[str, ...]) -> bool:
    """Return whether a triple is in the graph."""
    return hashlib.blake2b("\t".join(triple).encode(), digest_size=2).digest()[0] % 2 == 1


def row(name: str, change: Change, examples: list[Example], method: Method, verbose: bool) -> str:
    """Ask every triple and return a row of the table."""
    counts = {True: [0, 0, 0], False: [0, 0, 0]}  # asked, filled right, filled wrong
    for example in examples:
        for head, relation, tail in example.chain:
            chain = change_triples(Chain((Triple(Term(head), relation, Term("#1")),), 1), change)
            answer = method.answer(Question(example.question, chain=str(chain)), TrailRecorder())
            some = counts[is_held((head, relation, tail))]
            some[0] += 1
            if answer.abstained:
                continue
            is_right = any(same_value(value, tail) for value in answer.values)
            some[1 if is_right else 2] += 1
            if verbose and not is_right:
                (text,) = (step.detail for step in answer.trail if step.name == "fill")
                print(
                    f"  {chain} | {tail} | {answer.values[:2]} {text.get('relation')} {text.get('entities')}"
                )
    (present, right, wrong), (absent, _, filled) = counts[True], counts[False]
    cells = [present, f"{right / present:.3f}", f"{wrong / present:.3f}", absent, f"{filled / absent:.3f}"]
    return "| " + " | ".join([name, *map(str, cells)]) + " |"


if __name__ == "__main__":
    main()
