"""TAT-QA and OTT-QA: their formats, and TAT-QA's measures against cases worked by hand."""

import json

import pytest

from clew.core.errors import UsageError
from clew.core.types import Table
from clew.evaluate.corpora import build_documents
from clew.evaluate.datasets.tables import read_ottqa, read_tatqa
from clew.evaluate.examples import Example, Paragraph, Result
from clew.evaluate.metrics import parse_metric

CONTEXT = {
    "table": {"uid": "t1", "table": [["", "2019", "2018"], ["(in millions)", "", ""], ["Sales", "$5", "4"]]},
    "paragraphs": [{"uid": "p", "order": 1, "text": "Sales rose."}, {"uid": "e", "order": 2, "text": " "}],
    "questions": [
        {"uid": "q1", "question": "What were sales in 2019?", "answer": ["$5"], "derivation": "", "scale": "million",
         "answer_type": "span", "answer_from": "table"},
        {"uid": "q2", "question": "By how many percent did sales rise?", "answer": 25, "derivation": "(5-4)/4",
         "scale": "percent", "answer_type": "arithmetic", "answer_from": "table"},
    ],
}  # fmt: skip


def test_tatqa(tmp_path):
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([CONTEXT]))
    first, second = read_tatqa(path)
    assert (first.answers, first.answer_type, first.question_type) == (("$5 million",), "span", "span, table")
    assert (second.answers, second.answer_type) == (("25 percent",), "number")
    assert second.meta["values"] == ["25"]
    table, paragraph = first.corpus
    assert table.table.rows[0] == ("Sales", "$5", "4")
    assert "2019" in table.text and "Sales" in table.text
    assert paragraph.text == "Sales rose." and paragraph.title == table.title == "t1"
    path.write_text(
        json.dumps([CONTEXT | {"questions": [CONTEXT["questions"][0] | {"answer_type": "poem"}]}])
    )
    with pytest.raises(UsageError, match="poem"):
        list(read_tatqa(path))


def test_ottqa(tmp_path):
    question = {"question_id": "q", "question": "How tall is the winner?", "table_id": "races",
                "answer-text": "1.7 m", "answer-node": [["Ada", [0, 1], "/wiki/Ada_Pell", "passage"]]}  # fmt: skip
    table = {"table_id": "races", "title": "Races", "header": [["Year", []], ["Winner", []]],
             "data": [[["1970", []], ["Ada", ["/wiki/Ada_Pell", "/wiki/Gone"]]]]}  # fmt: skip
    (tmp_path / "questions.jsonl").write_text(json.dumps(question) + "\n")
    with pytest.raises(UsageError, match=r"tables\.jsonl"):
        list(read_ottqa(tmp_path / "questions.jsonl"))
    (tmp_path / "tables.jsonl").write_text(json.dumps(table) + "\n")
    (tmp_path / "passages.jsonl").write_text(
        json.dumps({"link": "/wiki/Ada_Pell", "text": "She is 1.7 m."}) + "\n"
    )
    (example,) = read_ottqa(tmp_path / "questions.jsonl")
    assert [paragraph.title for paragraph in example.corpus] == ["Races", "Ada Pell"]
    assert example.corpus[0].table.header == ("Year", "Winner")
    assert [piece.title for piece in example.support] == ["Races", "Ada Pell"]
    assert (example.answers, example.question_type) == (("1.7 m",), "passage")
    question["table_id"] = "other"
    (tmp_path / "questions.jsonl").write_text(json.dumps(question) + "\n")
    with pytest.raises(UsageError, match="no table 'other'"):
        list(read_ottqa(tmp_path / "questions.jsonl"))


@pytest.mark.parametrize(
    ("values", "scale", "kind", "answer", "em", "f1"),
    [
        (["$1,496.5"], "million", "span", "1496.5 million", 1, 1),
        (["$1,496.5"], "million", "span", "$1,496.5", 0, 0),  # the scale is part of the answer
        (["$1,496.5"], "million", "span", "1,496,500 thousand", 1, 1),
        (["-12.6"], "million", "number", "(12.6) million", 1, 1),
        (["-12.6"], "million", "number", "12.6 million", 0, 0),
        (["-22.22"], "percent", "number", "-22.22%", 1, 1),
        (["-22.22"], "percent", "number", "-22.22", 1, 1),  # as the published script allows
        (["-22.22"], "percent", "number", "-22.2%", 0, 0),
        (["2019"], "", "span", "2019", 1, 1),
        (["2019"], "", "span", "2018", 0, 0),
        (["Land", "the Buildings"], "", "span", "buildings; land", 1, 1),
        (["Land", "Buildings"], "", "span", "Land", 0, 0.5),  # one of two values
        (["land and buildings"], "", "span", "land", 0, 0.5),  # 1 of 1 words, 1 of 3: 2 * 1 / (1 + 3)
        (["sold 3 ships"], "", "span", "sold 4 ships", 0, 0),  # another number: nothing counts
        (["Ada", "Bo", "Cy"], "", "span", "Cy; Ada; Dee", 0, 2 / 3),
    ],
)
def test_measures_by_hand(values, scale, kind, answer, em, f1):
    example = Example("q", "?", ("; ".join(values),), kind, meta={"values": values, "scale": scale})
    result = Result(example, answer)
    assert parse_metric("TAT-EM").measure(result) == em
    assert parse_metric("TAT-F1").measure(result) == pytest.approx(f1)


def test_measures_of_other_answers():
    example = Example("q", "?", ("a",), meta={"values": ["a"], "scale": ""})
    assert parse_metric("TAT-F1").measure(Result(example, "a", abstained=True)) == 0
    assert parse_metric("TAT-F1").measure(Result(Example("q", "?", ("a",)), "a")) is None
    many = Example("q", "?", ("x",), meta={"values": [f"v{n}x" for n in range(14)], "scale": ""})
    answer = "; ".join(f"v{n}x" for n in reversed(range(14)))
    assert parse_metric("TAT-F1").measure(Result(many, answer)) == 1


def test_a_table_alone_is_a_document_with_rows():
    table = Paragraph("Races", (), (), Table(("Year", "Winner"), (("1970", "Ada"), ("1971", "Bo"))))
    (document,) = build_documents([table])
    assert [node.kind for node in document.nodes] == ["document", "table", "row", "row"]
