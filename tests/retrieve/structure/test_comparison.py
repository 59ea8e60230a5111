"""What changed between two documents: known edits are told, and nothing else, wherever the clauses moved to."""

import importlib.util
import json
import random

import pytest

import clew
from clew.core.types import PASSAGE, ROW, SECTION, Node
from clew.retrieve.structure.comparison import NumberChange, compare_nodes
from command_line import run
from retrieve_documents import add
from serve_app import SAMPLES

CLAUSES = {
    "1. Rate": "The Hirer shall pay $38 for each week, in advance, on or before the Saturday.",
    "2. Deposit": "Upon signing, the Hirer shall lodge $200 with the Secretary of the Owner for twenty-six weeks.",
    "3. Loading": "Stone shall be stowed evenly and shall not be dropped from a height of more than one metre.",
    "4. Insurance": "The Owner shall keep the hull insured for $4,400. The Hirer shall insure the cargo.",
}


def nodes(clauses, kind=PASSAGE):
    tree = []
    for heading, text in clauses:
        for of_kind, body, headings in ((SECTION, heading, ()), (kind, text, (heading,))):
            place = len(tree)
            name = heading if of_kind == SECTION else ""
            tree.append(
                Node(f"k:{place}", of_kind, body, "k", "a.md", place, None, name, 1, 1, headings, (0, 0))
            )
    return tree


def summary(comparison):
    return [
        (change.kind, change.heading, [(pair.before, pair.after) for pair in change.numbers])
        for change in comparison.changes
    ]


def test_changed_words_and_numbers_are_told_and_a_new_number_of_a_clause_is_no_change():
    after = {
        "1. Rate": CLAUSES["1. Rate"].replace("$38", "$42.50"),
        "2. Insurance": CLAUSES["4. Insurance"],
        "3. Deposit": CLAUSES["2. Deposit"].replace("twenty-six", "thirty"),
        "4. Subletting": "The lighter shall not be lent to any other person.",
    }
    comparison = compare_nodes(nodes(CLAUSES.items()), nodes(after.items()))
    assert summary(comparison) == [
        ("changed", "1. Rate", [("$38", "$42.50")]),
        ("changed", "3. Deposit", [("twenty-six", "thirty")]),
        ("removed", "3. Loading", []),
        ("inserted", "4. Subletting", []),
    ]
    rate = comparison.changes[0]
    assert [(rate.before.text[slice(*old)], rate.after.text[slice(*new)]) for old, new in rate.edits] == [
        ("$38", "$42.50")
    ]
    renamed = [
        (pair.before and pair.before.name, pair.after and pair.after.name) for pair in comparison.headings
    ]
    assert renamed == [
        ("4. Insurance", "2. Insurance"),
        ("2. Deposit", "3. Deposit"),
        (None, "4. Subletting"),
        ("3. Loading", None),
    ]
    shape = json.loads(json.dumps(comparison.to_dict()))
    assert shape["counts"] == {
        "changed": 2, "inserted": 1, "removed": 1, "moved": 0, "numbers": 2, "same": 1
    }  # fmt: skip


def test_clauses_in_another_order_are_moved():
    backwards = [(heading, CLAUSES[heading]) for heading in reversed(CLAUSES)]
    comparison = compare_nodes(nodes(CLAUSES.items()), nodes(backwards))
    assert [change.kind for change in comparison.changes] == ["moved"] * 3 and comparison.same == 1


def test_a_long_clause_is_quoted_by_the_sentences_that_changed():
    before = "The roof is kept by the owner. The rent is 800 dollars. Nothing is sublet. Pets are allowed."
    after = before.replace("800", "950").replace("Pets", "Cats and dogs")
    change = compare_nodes(nodes([("Lease", before)]), nodes([("Lease", after)])).changes[0]
    assert change.quotes[0] == "… The rent is 800 dollars. … Pets are allowed."
    assert change.quotes[1] == "… The rent is 950 dollars. … Cats and dogs are allowed."
    assert change.numbers == (NumberChange("800", "950"),)


@pytest.mark.parametrize(
    ("before", "after", "numbers"),
    [
        ("The sum of $4,400 is due.", "The sum of $4,450.50 is due.", [("$4,400", "$4,450.50")]),
        ("Copyright 1999,2000 by Pell.", "Copyright 1999, 2000, 2007 by Pell.", [("", "2007")]),
        ("Interest of 5% is paid.", "Interest of 5.25% is paid.", [("5%", "5.25%")]),
        ("It lasts twenty-six weeks here.", "It lasts 30 weeks here.", [("twenty-six", "30")]),
        ("Notice is given in writing here.", "Written notice of 14 days is given here.", [("", "14")]),
        ("No one is let in without a key.", "Nobody is let in without a key.", []),  # "one" is no number here
    ],
)
def test_numbers_are_those_that_changed(before, after, numbers):
    [change] = compare_nodes(nodes([("Terms", before)]), nodes([("Terms", after)])).changes
    assert [(pair.before, pair.after) for pair in change.numbers] == numbers


def test_of_random_edits_each_is_told_once_and_every_passage_is_accounted_for():
    """A twin that knows the edits: words without meaning, so that no two passages are alike by chance."""
    draw = random.Random(7)
    for kind in (PASSAGE, ROW):
        texts = [" ".join(f"w{draw.randrange(10**6)}" for _ in range(20)) for _ in range(60)]
        before = [(f"Part {number // 6}", text) for number, text in enumerate(texts)]
        removed, changed = set(range(3, 60, 10)), set(range(5, 60, 10))
        after, expected = [], {"removed": 6, "changed": 6, "inserted": 4, "moved": 0}
        for number, (heading, text) in enumerate(before):
            if number in changed:
                text = text.replace(text.split()[4], "other words").replace(text.split()[9], "")
            if number not in removed:
                after.append((heading, text))
            if number % 15 == 0:
                after.append((heading, " ".join(f"n{draw.randrange(10**6)}" for _ in range(20))))
        comparison = compare_nodes(nodes(before, kind), nodes(after, kind))
        counts = comparison.counts()
        assert {name: counts[name] for name in expected} == expected and counts["same"] == 48
        assert {change.before.text for change in comparison.changes if change.kind == "removed"} == {
            texts[number] for number in removed
        }
        assert not compare_nodes(nodes(before, kind), nodes(before, kind)).changes


def test_the_command_prints_both_quotes_with_their_places(base):
    for name, rent in (("v1.md", 800), ("v2.md", 950)):
        add(base, name, "Lease", ("page", 1), ("heading", 1, "Rent"), f"The rent is {rent} dollars a month.")
    printed = run("diff", "v1.md", "v2.md", "--kb", base.path).stdout
    assert printed.splitlines() == [
        "v1.md -> v2.md: 1 changed (1 with other numbers), 0 the same",
        "",
        "changed, Rent: 800 -> 950",
        "  - “The rent is 800 dollars a month.”",
        "    v1.md, page 1",
        "  + “The rent is 950 dollars a month.”",
        "    v2.md, page 1",
    ]
    shape = json.loads(run("diff", "v1.md", "v2.md", "--kb", base.path, "--json").stdout)
    assert shape["changes"][0]["after"]["quote"] == "The rent is 950 dollars a month."
    assert "no document named 'v3.md'" in run("diff", "v1.md", "v3.md", "--kb", base.path, status=2).stderr


@pytest.mark.slow
def test_the_command_compares_documents_of_the_base_and_files_beside_it(tmp_path, without_encoder):
    for name, rent in (("v1.md", 800), ("v2.md", 950)):
        (tmp_path / name).write_text(f"# Lease\n\n## Rent\n\nThe rent is {rent} dollars a month.\n")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.add([tmp_path / "v1.md"], workers=1)
    printed = run("diff", "v1.md", tmp_path / "v2.md", "--kb", tmp_path / "kb", "--numbers").stdout
    assert printed.splitlines() == [
        "v1.md -> v2.md: 1 changed (1 with other numbers), 0 the same",
        "",
        "changed, Rent: 800 -> 950",
        "  - “The rent is 800 dollars a month.”",
        "    v1.md",
        "  + “The rent is 950 dollars a month.”",
        "    v2.md",
    ]
    with clew.open(tmp_path / "kb") as base:
        assert [item.name for item in base.documents()] == ["v1.md"]
    alike = run("diff", tmp_path / "v1.md", tmp_path / "v1.md", "--kb", tmp_path / "none").stdout
    assert alike.startswith("v1.md and v1.md say the same")
    assert (
        "no document named 'v3.md'" in run("diff", "v1.md", "v3.md", "--kb", tmp_path / "kb", status=2).stderr
    )


@pytest.mark.slow
def test_two_editions_of_a_printed_contract(tmp_path, monkeypatch):
    """The sample contract as PDF, and one with known edits, laid out on other pages."""
    spec = importlib.util.spec_from_file_location("make", SAMPLES.parent / "make.py")
    make = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "make", make)
    spec.loader.exec_module(make)
    text = (SAMPLES.parent / "source" / "lighter-contract.txt").read_text()
    for old, new in (
        ("pay $38 for", "pay $42 for"),
        ("twenty-six weeks", "thirty weeks"),
        ("Monday 12 March 1934", "Monday 11 March 1935"),
        ("| Sweeps, ash | 4 | 12.00 |", "| Sweeps, ash | 6 | 18.00 |"),
        ("| Riding lamps | 3 | 9.75 |\n", ""),
        ("===\n\n", ""),
        ("Dated 1 March 1934", "Dated 2 March 1935"),
    ):
        assert old in text
        text = text.replace(old, new)
    parts = text.split("# ")
    deposit = next(part for part in parts if part.startswith("3. Deposit"))
    parts.remove(deposit)
    text = "# ".join(parts).replace(
        "# 9. Disputes", "# 9. Subletting\n\nThe lighter stays with the Hirer.\n\n# 10. Disputes"
    )
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "lighter-contract.txt").write_text(text)
    monkeypatch.setattr(make, "SOURCE", tmp_path / "source")
    make.contract(tmp_path)
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        base.add([SAMPLES / "lighter-hire-contract.pdf"])
        base.add([path := next(tmp_path.glob("*.pdf"))])
        first, second = (
            item.key for item in sorted(base.documents(), key=lambda item: str(path) in item.paths)
        )
        comparison = base.compare(first, second)
    numbers = {(pair.before, pair.after) for change in comparison.changes for pair in change.numbers}
    assert numbers == {
        ("$38", "$42"), ("twenty-six", "thirty"), ("12", "11"), ("1934", "1935"), ("4", "6"),
        ("12.00", "18.00"), ("1", "2"),
    }  # fmt: skip
    assert [change.before.headings[-1] for change in comparison.changes if change.kind == "removed"] == [
        "3. Deposit",
        "Schedule of equipment",
    ]
    assert [change.after.text for change in comparison.changes if change.kind == "inserted"] == [
        "The lighter stays with the Hirer."
    ]
