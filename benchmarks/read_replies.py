"""How replies of language models are read: 120 forms, twelve for each of ten kinds (``tests/reply_forms.py``).

    PYTHONPATH=src:tests python benchmarks/read_replies.py            # a table
    PYTHONPATH=src:tests python benchmarks/read_replies.py --list     # and each form that is not read right

The forms were written down before any of them was tried. To compare with another commit, give the ``src`` of a
checkout of it as PYTHONPATH.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reply_forms import FORMS, KINDS, read_as, read_reply

OUTCOMES = ("right", "wrong", "refused")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="show each form that is not read right")
    arguments = parser.parse_args()
    outcomes = {(form.kind, form.name): read_as(form) for form in FORMS}
    print("| kind of reply | forms | read right | read wrong | refused |\n|---|---|---|---|---|")
    for kind in KINDS:
        counts = Counter(outcome for (of, _), outcome in outcomes.items() if of == kind)
        print(f"| {kind} | {counts.total()} | {' | '.join(str(counts[outcome]) for outcome in OUTCOMES)} |")
    counts = Counter(outcomes.values())
    print(f"| all | {len(FORMS)} | {' | '.join(str(counts[outcome]) for outcome in OUTCOMES)} |")
    if arguments.list:
        for form in FORMS:
            if (outcome := outcomes[form.kind, form.name]) != "right":
                print(
                    f"\n{form.kind}, {form.name}: {outcome}\n  says {form.says!r}\n  read {read_reply(form)!r}"
                )


if __name__ == "__main__":
    main()
