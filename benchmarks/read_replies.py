"""How replies of language models are read: 120 forms, twelve for each of ten kinds (``tests/reply_forms.py``).

    PYTHONPATH=src:tests python benchmarks/read_replies.py            # a table
    PYTHONPATH=src:tests python benchmarks/read_replies.py --list     # and each form that is not read right

    PYTHONPATH=src:tests python benchmarks/read_replies.py --fresh    # 36 others
    PYTHONPATH=src:tests python benchmarks/read_replies.py --families # 40 more, by families of models

The forms were written down before any of them was tried; what was read wrong was then mended. The fresh ones were
written after that, and nothing was mended on them; the families' were written last, and mended on after the first
run. To compare with another commit, give the ``src`` of a
checkout of it as PYTHONPATH.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reply_forms import FAMILIES, FORMS, FRESH, KINDS, read_as, read_reply

OUTCOMES = ("right", "wrong", "refused")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="show each form that is not read right")
    parser.add_argument("--fresh", action="store_true", help="the forms that nothing was mended on")
    parser.add_argument("--families", action="store_true", help="the forms by families of models")
    arguments = parser.parse_args()
    forms = FAMILIES if arguments.families else FRESH if arguments.fresh else FORMS
    outcomes = {(form.kind, form.name): read_as(form) for form in forms}
    print("| kind of reply | forms | read right | read wrong | refused |\n|---|---|---|---|---|")
    for kind in KINDS:
        counts = Counter(outcome for (of, _), outcome in outcomes.items() if of == kind)
        print(f"| {kind} | {counts.total()} | {' | '.join(str(counts[outcome]) for outcome in OUTCOMES)} |")
    counts = Counter(outcomes.values())
    print(f"| all | {len(forms)} | {' | '.join(str(counts[outcome]) for outcome in OUTCOMES)} |")
    if arguments.list:
        for form in forms:
            if (outcome := outcomes[form.kind, form.name]) != "right":
                print(
                    f"\n{form.kind}, {form.name}: {outcome}\n  says {form.says!r}\n  read {read_reply(form)!r}"
                )


if __name__ == "__main__":
    main()
