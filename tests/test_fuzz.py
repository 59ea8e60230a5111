"""The fuzzer in short (``make fuzz`` at length), and what it met."""

import random
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

import clew
from bad_files import good_pdf
from clew.core.errors import ClewError, UnreadableFile
from clew.core.mentions import cell_names
from clew.core.prompts.replies import is_refusal
from clew.core.protocols import Completion, Prompt
from clew.core.text import iri_label, sentence_spans, title_names
from clew.parse.documents.reader import parse
from clew.questions.outline_plans import find_numbers
from clew.questions.sequences import rank_splits, split_parts
from clew.questions.text import QuestionText
from expressions import Expression, find_slow_text
from fuzz import (
    KEY,
    ROOT,
    TARGETS,
    ChangedModel,
    Run,
    cases,
    change_value,
    format_totals,
    fuzz,
    limited_time,
    next_case,
)
from graph_reading import read_both_ways


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_no_random_change_is_a_fault(target: str) -> None:
    run, faults = fuzz(target, seconds=2.0, seed=1)
    assert run.cases
    assert not faults, faults[0]


def test_a_case_depends_on_its_number_alone() -> None:
    first = [data for _, data in zip(range(3), (data for _, data in cases("chain", 5, 7)), strict=False)]
    assert first[1] == next(cases("chain", 5, 8))[1] != next(cases("chain", 6, 8))[1]


def test_a_part_of_a_package_is_changed_and_packed_again() -> None:
    read, corpus = TARGETS["docx"]
    body = next(case for case in corpus if case.startswith(b"brannick.docx\nword/document.xml\n"))
    read(body)
    with pytest.raises(UnreadableFile, match=r"word/document.xml is not well-formed"):
        read(body.replace(b"</w:body>", b""))
    with pytest.raises(UnreadableFile, match="damaged"):
        read(corpus[0][:-200])  # the package itself


def test_changed_values_leave_the_form_around_them() -> None:
    rng, page = random.Random(0), b'<p id="a"><b>1</b> and <b>2</b></p>'
    changed = {change_value(page, [page], rng) for _ in range(200)}
    assert {page.replace(b"<b>1</b>", b""), page.replace(b">2<", b">-1<")} <= changed
    assert b'<p id=""><b>1</b> and <b>2</b></p>' in changed


def test_runs_of_a_seed_go_on_and_all_are_counted() -> None:
    runs = [Run("html", 1, 0, 40, 30.0, 0), Run("html", 1, 40, 10, 60.0, 1), Run("html", 2, 0, 5, 30.0, 0)]
    assert [next_case(runs, "html", seed) for seed in (1, 2, 3)] == [50, 5, 0]
    assert next_case(runs, "pdf", 1) == 0
    assert "| html | 55 | 2.0 | 1 |\n" in format_totals(runs)


def test_a_case_that_takes_long_is_a_fault_whatever_the_code_catches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def read(data: bytes) -> None:
        try:
            while data != b"a":
                pass
        except Exception as error:
            raise UnreadableFile("cannot be read") from error

    monkeypatch.setitem(TARGETS, "endless", (read, [b"a"]))
    monkeypatch.setattr("fuzz.CASE_SECONDS", 0.05)
    monkeypatch.setattr("fuzz.FAULTS", tmp_path)
    run, faults = fuzz("endless", seconds=0.1, seed=0)
    assert run.faults and "SlowCase" in faults[0]


def test_a_page_of_endless_size_is_refused() -> None:
    data = good_pdf().replace(b"841.", b"841" + b"1" * 50 + b".")
    with pytest.raises(UnreadableFile):
        parse(data, "a.pdf")


DIGITS = "9" * 5000
WIDE_CELL = '<table:table-cell table:number-columns-repeated="65536"><text:p>a</text:p></table:table-cell>'
#: Four rows, each with fifteen cells that are there 65,536 times.
WIDE_TABLE = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:text><table:table>'
    + f"<table:table-row>{WIDE_CELL * 15}</table:table-row>" * 4
    + "</table:table></office:text></office:body></office:document-content>"
)
SPACES = " " * 60_000
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
SPREADSHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("chain", f"Lima >> capital of >> #1; #1 >> leader >> #2; final answer: #{DIGITS}"),
        ("chain", f"Lima >> capital of >> #{DIGITS}; #1 >> leader >> #2; final answer: #2"),
        ("triples", f"#{DIGITS} : film; #{DIGITS}.year > 1990"),
        ("recipe", f"search(k={DIGITS})"),
        ("recipe", "search(k=" + "9" * 190_000 + "x)"),
        ("reply", f'{{"answer": "a", "quotes": [{{"source": {DIGITS}}}]}}'),
        ("reply", f'{{"answer": "a", "quotes": [{{"source": "{DIGITS}"}}]}}'),
        ("question", f"What is in section {DIGITS}?"),
        ("question", f"Show the {DIGITS}th paragraph"),
        ("where", f"pages > {DIGITS}"),
        ("markdown", f"+++\ntitle = {DIGITS}\n+++\nWords.\n"),
        (
            "graph bibliography",
            f'json\n[{{"id": "a", "title": "T", "issued": {{"date-parts": [[{DIGITS}]]}}}}]',
        ),
        (
            "graph jsonl",
            f'jsonl\n{{"type": "node", "id": "a", "labels": [], "properties": {{"size": {DIGITS}}}}}',
        ),
        ("graph csv", f"csv\nhead,relation,tail\nLima,population,{DIGITS}\n"),
        (
            "xlsx",
            "2.xlsx\nxl/styles.xml\n"
            f'<styleSheet xmlns="{SPREADSHEET}"><numFmts><numFmt numFmtId="{DIGITS}" formatCode="0"/></numFmts>'
            f'<cellXfs><xf numFmtId="{DIGITS}"/></cellXfs></styleSheet>',
        ),
        (
            "xlsx",
            "2.xlsx\nxl/worksheets/sheet1.xml\n"
            f'<worksheet xmlns="{SPREADSHEET}"><sheetData><row r="{DIGITS}"><c s="{DIGITS}"><v>1</v></c>'
            f'<c t="s"><v>{DIGITS}</v></c></row></sheetData></worksheet>',
        ),
        pytest.param("address", f"/api/bases/kb/nodes/{KEY.decode()}:{DIGITS}", marks=pytest.mark.slow),
    ],
)
def test_numbers_of_thousands_of_digits_are_read_or_refused(target: str, text: str) -> None:
    """Python raises ValueError for them; a person, a file or a model may write them."""
    function, _ = TARGETS[target]
    with limited_time(), suppress(ClewError):
        function(text.encode())


def test_long_questions_and_names_are_read_in_linear_time() -> None:
    with limited_time():
        assert split_parts(f"What is in A, and what is in section 2.1 of {'9' * 200_000}")
        assert len(find_numbers(QuestionText("p. 9 " * 4_000))) == 4_000
        assert sentence_spans("." * 100_000 + "x") == [(0, 100_001)]
        assert iri_label("http://" + "9" * 100_000 + "#/").startswith("http")
        assert rank_splits(QuestionText(f"In which year was the ferry captain{'9' * 15_000} born?"))
        assert title_names("(" * 200_000 + ")") == []
        assert next(cell_names(" " * 200_000 + "Lima", ""))[0] == "lima"


@pytest.mark.parametrize(
    ("target", "text"),
    [
        # A list of numbers that was cut off before its bracket: twice the time for each number.
        ("reply", "The relevant paragraphs are [" + ", ".join(map(str, range(1, 60)))),
        ("reply", "Paragraphs" + " " * 4_000 + "x"),
        ("reply", "Question:" + "\n" * 4_000 + "x"),
        ("question", "Show the" + " tables of a" * 1_600),
        ("question", "Is Ada or Bo " + "a" * 500 + "1"),
        ("latex", "\\newcommand\\a" + " " * 4_000 + "x"),
        ("reply", "The answer is" + "\n" * 40_000),
        ("reply", "*\n" * 20_000 + "x"),
        ("reply", "\n\n*" * 10_000 + "x"),
        ("reply", "```\n" * 10_000 + "x"),
        ("reply", "Final answer: " * 3_000 + "x"),
        ("graph rdf", f"rdf\n<rdf:RDF xmlns:rdf='{RDF}'><rdf:Bag rdf:about='h{SPACES}'/></rdf:RDF>"),
        ("reply", '{"answer": ' + '" ' * 16_000 + '"#1"}'),
        ("reply", '{"answer": "#1' + "\0" * 60_000 + '"} The #1'),
        ("reply", "0000-02-30" * 6_000 + "date 1"),
        ("reply", "section 1" + " and" * 60),
        ("reply", "(" + "a," * 8_000 + "a"),
        ("text", "<!-- a -->\n" * 40 + "# Notes"),
        ("csv", "a,b\n" + "9" * 50_000 + ",\n" + "1,2\n" * 1_500),
        ("csv", "a;b\n1;2" + "\t" * 4_000 + "x\n"),
        ("opendocument", f"3.odt\ncontent.xml\n{WIDE_TABLE}"),
    ],
)
def test_what_is_cut_off_or_repeated_is_read_in_linear_time(target: str, text: str) -> None:
    function, _ = TARGETS[target]
    with limited_time(), suppress(ClewError):
        function(text.encode())


@pytest.mark.parametrize("text", ["based on " * 40, "in the " * 50 + "x", "However, according to the, " * 14])
def test_lead_ins_of_a_refusal_are_read_one_by_one(text: str) -> None:
    with limited_time():
        assert not is_refusal(text)
    assert is_refusal("However, based on the passages in this folder it is not stated.")


def test_an_expression_that_takes_the_cube_is_slow() -> None:
    slow, quick = (Expression("clew.x", re.compile(pattern)) for pattern in (r"(?:a+)*\d*z", r"[ab]*\d"))
    assert find_slow_text(slow, trials=60, seed=0) and not find_slow_text(quick, trials=60, seed=0)


@pytest.mark.slow
def test_no_expression_is_slow() -> None:
    done = subprocess.run(
        [sys.executable, "tests/expressions.py", "--trials", "4"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_white_space_in_a_question_is_short(tmp_path: Path) -> None:
    asked: list[str] = []

    class Model(ChangedModel):
        def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
            asked.extend(prompt.user for prompt in prompts)
            return super().complete(prompts)

    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        question = "Was" + "\t" * 4_000 + "the toll \n\n in    2019?"
        base.ask(question, recipe="cot", llm=Model("nine", random.Random(0)))
    assert asked and all("Was the toll\nin 2019?" in prompt for prompt in asked)


def test_a_graph_names_the_line_with_a_number_of_too_many_digits() -> None:
    node = '{"type": "node", "id": "%s", "labels": [], "properties": {"size": %s}}\n'
    *_, messages = read_both_ways("a.jsonl", (node % ("a", 3) + node % ("b", DIGITS)).encode(), skip=True)
    assert messages == ["a.jsonl: line 2: has a number of too many digits"]
