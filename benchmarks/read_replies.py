"""How replies of language models are read: 120 forms, twelve for each of ten kinds (``tests/reply_forms.py``).

    PYTHONPATH=src:tests python benchmarks/read_replies.py            # a table
    PYTHONPATH=src:tests python benchmarks/read_replies.py --list     # and each form that is not read right

    PYTHONPATH=src:tests python benchmarks/read_replies.py --fresh    # 36 others
    PYTHONPATH=src:tests python benchmarks/read_replies.py --families # 40 more, by families of models
    PYTHONPATH=src:tests python benchmarks/read_replies.py --written FILE   # others', by the call that asks for them

The forms were written down before any of them was tried; what was read wrong was then mended. The fresh ones were
written after that, and nothing was mended on them; the families' were written last, and mended on after the first
run. To compare with another commit, give the ``src`` of a
checkout of it as PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reply_forms import FAMILIES, FORMS, FRESH, KINDS, expected_of_call, read_as, read_call, read_reply

OUTCOMES = ("right", "wrong", "refused")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="show each form that is not read right")
    parser.add_argument("--fresh", action="store_true", help="the forms that nothing was mended on")
    parser.add_argument("--families", action="store_true", help="the forms by families of models")
    parser.add_argument(
        "--written", type=Path, metavar="FILE", help="JSONL of call, form, expect, payload, reply"
    )
    arguments = parser.parse_args()
    if arguments.written:
        show_written(arguments.written, arguments.list)
        return
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


def show_written(path: Path, is_listed: bool) -> None:
    """Print how the replies of a file are read, by the call that asks for them."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    counts: dict[str, Counter[str]] = {row["call"]: Counter() for row in rows}
    misread = []
    for row in rows:
        read = read_call(row["call"], row["reply"])
        wanted = expected_of_call(row["call"], row["payload"]) if row["expect"] == "value" else None
        outcome = "right" if read == wanted else "refused" if read is None else "wrong"
        counts[row["call"]][outcome] += 1
        if outcome != "right":
            misread.append(
                f"\n{row['call']}, {row['form']}: {outcome}\n  says {row['reply']!r}\n  read {read!r}"
            )
    print("| call | replies | read right | read wrong | refused |\n|---|---|---|---|---|")
    for call, of in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        print(f"| {call} | {of.total()} | {' | '.join(str(of[outcome]) for outcome in OUTCOMES)} |")
    if is_listed:
        print("\n".join(misread))


if __name__ == "__main__":
    main()
