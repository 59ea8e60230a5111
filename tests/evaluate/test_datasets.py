"""Data sets in their official forms: invented records, and the real ones where they are there."""

import itertools
import json
from pathlib import Path

import pytest

from clew.core.errors import UsageError
from clew.evaluate.datasets import READERS, load_dataset, records
from clew.evaluate.examples import Support

SHARED = Path(__file__).parents[3] / "shared" / "data"

HOTPOT = {
    "_id": "5a", "question": "Who built the lighter?", "answer": "Tolland Yard", "type": "bridge", "level": "hard",
    "supporting_facts": [["Bittern", 1], ["Tolland", 0]],
    "context": [["Bittern", ["It is a lighter. ", " It was built."]], ["Tolland", ["A yard."]], ["Noise", ["No."]]],
}  # fmt: skip
MUSIQUE = {
    "id": "2hop__1_2", "question": "Who led it?", "answer": "G. Stanley Hall", "answer_aliases": ["Stanley Hall"],
    "answerable": True,
    "paragraphs": [
        {"idx": 0, "title": "Noise", "paragraph_text": "No.", "is_supporting": False},
        {"idx": 1, "title": "APA", "paragraph_text": "Hall led it.", "is_supporting": True},
        {"idx": 2, "title": "Journal", "paragraph_text": "The APA publishes it.", "is_supporting": True},
    ],
    "question_decomposition": [
        {"id": 1, "question": "Who publishes it?", "answer": "APA", "paragraph_support_idx": 2},
        {"id": 2, "question": "Who led #1?", "answer": "G. Stanley Hall", "paragraph_support_idx": 1},
    ],
}  # fmt: skip
IIRC = {
    "pid": "p1", "title": "Wreck", "text": "The steamer was lost.",
    "questions": [
        {"qid": "q1", "question": "How long was it?", "answer": {"type": "value", "answer_value": "31",
         "answer_unit": "metres"}, "context": [{"text": "It was 31 metres long.", "passage": "Heron Maid"},
         {"text": "The steamer was lost.", "passage": "main"}], "question_links": ["Heron Maid"]},
        {"qid": "q2", "question": "Who wept?", "answer": {"type": "none"}, "context": []},
        {"qid": "q3", "question": "Was it lost?", "answer": {"type": "binary", "answer_value": "yes"}, "context": []},
        {"qid": "q4", "question": "Which?", "answer": {"type": "span", "answer_spans": [{"text": "Heron Maid"}]}},
    ],
}  # fmt: skip
QASPER = {
    "1909.1": {
        "title": "A paper", "abstract": "We do it.",
        "full_text": [{"section_name": "Methods ::: Data", "paragraphs": ["We use BERT.", ""]}],
        "figures_and_tables": [{"caption": "Table 1: Results"}],
        "qas": [{"question": "Which model?", "question_id": "q", "answers": [
            {"answer": {"unanswerable": False, "extractive_spans": ["BERT"], "yes_no": None, "free_form_answer": "",
                        "evidence": ["We use BERT."]}},
            {"answer": {"unanswerable": True, "extractive_spans": [], "yes_no": None, "free_form_answer": "",
                        "evidence": []}},
            {"answer": {"unanswerable": False, "extractive_spans": [], "yes_no": False, "free_form_answer": "",
                        "evidence": ["FLOAT SELECTED: Table 1: Results"]}}]}],
    }
}  # fmt: skip


def write_file(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def only(name, path):
    (example,) = load_dataset(name, path).examples()
    return example


def test_hotpotqa(tmp_path):
    dataset = only("hotpotqa", write_file(tmp_path / "a.json", [HOTPOT]))
    assert (dataset.id, dataset.answers, dataset.question_type) == ("5a", ("Tolland Yard",), "bridge")
    assert [(item.title, item.sentence) for item in dataset.support] == [("Bittern", 1), ("Tolland", 0)]
    assert dataset.corpus[0].text == "It is a lighter. It was built."
    columns = HOTPOT | {
        "context": {"title": ["A"], "sentences": [["x"]]},
        "supporting_facts": {"title": ["A"], "sent_id": [0]},
        "answer": "yes",
    }
    dataset = only("hotpotqa", write_file(tmp_path / "b.json", [columns]))
    assert (dataset.corpus[0].title, dataset.support[0].sentence, dataset.answer_type) == ("A", 0, "yes/no")


def test_2wikimultihopqa_has_its_triples_in_order(tmp_path):
    triples = [["Get Low", "performer", "Dillon Francis"], ["Dillon Francis", "date of birth", "1987"]]
    dataset = only("2wikimultihopqa", write_file(tmp_path / "a.json", [HOTPOT | {"evidences": triples}]))
    assert dataset.chain == tuple(map(tuple, triples))


def test_musique_support_is_in_the_order_of_the_hops(tmp_path):
    dataset = only("musique", write_file(tmp_path / "a.jsonl", MUSIQUE))
    assert [item.title for item in dataset.support] == ["Journal", "APA"]
    assert dataset.answers == ("G. Stanley Hall", "Stanley Hall") and dataset.question_type == "2hop"
    assert dataset.chain[1] == ("Who led #1?", "G. Stanley Hall")
    full = only("musique", write_file(tmp_path / "b.jsonl", MUSIQUE | {"answerable": False}))
    assert full.answer_type == "unanswerable"


def test_iirc(tmp_path):
    value, none, binary, span = load_dataset("iirc", write_file(tmp_path / "a.json", [IIRC])).examples()
    assert (value.answers, value.answer_type) == (("31 metres", "31"), "number")
    assert [item.title for item in value.support] == ["Heron Maid", "Wreck"]
    assert [item.title for item in value.corpus] == ["Wreck", "Heron Maid"]
    assert (none.answers, none.answer_type) == ((), "unanswerable")
    assert (binary.answers, binary.answer_type) == (("yes",), "yes/no")
    assert (span.answers, span.id) == (("Heron Maid",), "q4")


def test_iirc_reads_the_pages_that_a_passage_links_to(tmp_path):
    path = write_file(
        tmp_path / "a.json", [{**IIRC, "links": [{"target": "Heron Maid"}, {"target": "Nowhere"}]}]
    )
    pages = {"heron maid": 'A <a href="Barge">barge</a> & a <b>tug</b>.\n\nShe is long.', "other": "x"}
    write_file(tmp_path / "context_articles.json", pages)
    first, *_ = load_dataset("iirc", path).examples()
    assert [(item.title, item.text) for item in first.corpus[1:]] == [
        ("Heron Maid", "A barge & a tug."),
        ("Heron Maid", "She is long."),
    ]
    assert first.meta["pages"] is True
    write_file(tmp_path / "context_articles.json", {"heron maid": 3})
    with pytest.raises(UsageError, match="not a text under its title"):
        list(load_dataset("iirc", path).examples())


def test_qasper_keeps_every_annotator(tmp_path):
    dataset = only("qasper", write_file(tmp_path / "a.json", QASPER))
    assert [alternative.answer_type for alternative in dataset.alternatives] == [
        "span",
        "unanswerable",
        "yes/no",
    ]
    assert dataset.answers == ("BERT",) and dataset.alternatives[2].answers == ("No",)
    texts = [(item.title, item.section, item.text) for item in dataset.corpus]
    assert texts == [
        ("A paper", ("Abstract",), "We do it."),
        ("A paper", ("Methods", "Data"), "We use BERT."),
        ("A paper", ("Figures and tables",), "FLOAT SELECTED: Table 1: Results"),
    ]
    assert dataset.pieces == (
        Support("A paper", text="We use BERT."),
        Support("A paper", text="FLOAT SELECTED: Table 1: Results"),
    )
    assert dataset.evidence_sets == (frozenset({0}), frozenset(), frozenset({1}))


def test_hotpotqa_doc_has_whole_documents(tmp_path):
    whole = {
        "context": [["Bittern", ["A lighter.", ["It was", "built."]]], ["Tolland", ["A yard."]]],
        "supporting_facts": [["Bittern", 1], ["Tolland", 0]],
    }
    dataset = only("hotpotqa-doc", write_file(tmp_path / "a.json", [HOTPOT | whole]))
    assert [(item.title, item.text, item.section) for item in dataset.corpus] == [
        ("Bittern", "A lighter.", ()),
        ("Bittern", "It was built.", ()),
        ("Tolland", "A yard.", ()),
    ]
    assert dataset.support == (Support("Bittern", text="It was built."), Support("Tolland", text="A yard."))
    lines = write_file(tmp_path / "b.jsonl", HOTPOT | whole)
    assert only("hotpotqa-doc", lines) == dataset
    with pytest.raises(UsageError, match="another form"):
        only(
            "hotpotqa-doc",
            write_file(tmp_path / "c.json", [HOTPOT | whole | {"supporting_facts": [["X", 0]]}]),
        )
    assert only("hotpotqa-doc", write_file(tmp_path / "d.json", QASPER)).meta["paper"] == "1909.1"


def test_a_fact_beyond_its_paragraph_means_the_paragraph(tmp_path):
    facts = [["Bittern", 2], ["Bittern", 2], ["Nowhere", 0], ["Tolland", 0]]
    dataset = only("hotpotqa", write_file(tmp_path / "a.json", [HOTPOT | {"supporting_facts": facts}]))
    assert dataset.support == (Support("Bittern"), Support("Nowhere"), Support("Tolland", 0))


def test_a_file_of_another_form_is_recognised(tmp_path):
    forms = {
        "hotpotqa": [HOTPOT],
        "musique": MUSIQUE,
        "iirc": [IIRC],
        "qasper": QASPER,
        "fever": {"id": 7, "label": "SUPPORTS", "claim": "It sank.", "evidence": []},
        "bamboogle": "Who led?,Hall\n",
        "stark": 'id,query,answer_ids\n4,Which drug?,"[12]"\n',
        "metaqa": "who directed [Heron]\tA Finch\n",
        "jsonl": {"question": "Who?"},
    }
    for name, content in forms.items():
        path = write_file(tmp_path / name, content)
        other = "financebench" if name != "financebench" else "fever"
        with pytest.raises(UsageError) as error:
            list(load_dataset(other, path).examples())
        assert (
            f"It looks like {'2wikimultihopqa or hotpotqa' if name == 'hotpotqa' else name}"
            in error.value.hint
        )
    # Not where the form is right and only a later record is wrong.
    path = write_file(tmp_path / "later.json", [HOTPOT, {"question": "?"}])
    with pytest.raises(UsageError) as error:
        list(load_dataset("hotpotqa", path).examples())
    assert "looks like" not in error.value.hint and "no 'answer'" in error.value.problem


def test_two_questions_of_one_id_are_refused(tmp_path):
    lines = [
        {"id": "a", "question": "Who?"},
        {"id": "b", "question": "Why?"},
        {"id": "a", "question": "How?"},
    ]
    path = write_file(tmp_path / "own.jsonl", "\n".join(map(json.dumps, lines)))
    examples = load_dataset("jsonl", path).examples()
    assert [next(examples).id, next(examples).id] == ["a", "b"]
    with pytest.raises(UsageError, match="two questions have the id 'a'"):
        next(examples)


@pytest.mark.parametrize("name", sorted(READERS))
def test_what_is_no_text_is_refused(tmp_path, name):
    path = tmp_path / "file"
    path.write_bytes(b'{"question": "caf\xe9 or not?"}\n')
    with pytest.raises(UsageError, match="not text in UTF-8"):
        list(load_dataset(name, path).examples())


def test_a_line_is_read_no_sooner_than_it_is_asked_for(tmp_path):
    path = tmp_path / "long.jsonl"
    line = json.dumps({"question": "Who?", "answers": ["x" * 1_000]})
    path.write_text("\n".join([line] * 2_000 + ["not JSON"]), encoding="utf-8")
    examples = load_dataset("jsonl", path).examples()
    assert len(list(itertools.islice(examples, 1_999))) == 1_999
    next(examples)
    with pytest.raises(UsageError, match="line 2001"):
        next(examples)


def test_a_digest_is_that_of_the_bytes(tmp_path):
    first, other = write_file(tmp_path / "a", "x" * 100_000), write_file(tmp_path / "b", "x" * 100_001)
    assert (
        load_dataset("jsonl", first).digest()
        == load_dataset("fever", first).digest()
        != load_dataset("jsonl", other).digest()
    )


def test_fever_has_sets_of_evidence(tmp_path):
    first = [[1, 2, "Heron_Maid_-LRB-ship-RRB-", 3], [1, 2, "Oskell", 0]]
    sets = [first, [[1, 3, "Wreck", 1]], [[1, 3, "Wreck", 1]]]
    claim = {"id": 7, "label": "SUPPORTS", "claim": "It sank.", "evidence": sets}
    unknown = {
        "id": 8,
        "label": "NOT ENOUGH INFO",
        "claim": "It sang.",
        "evidence": [[[9, None, None, None]]],
    }
    path = write_file(tmp_path / "a.jsonl", "\n".join(map(json.dumps, (claim, unknown))))
    dataset, other = load_dataset("fever", path).examples()
    assert dataset.support[0].title == "Heron Maid (ship)" and len(dataset.alternatives) == 2
    assert (other.answers, other.support) == (("NOT ENOUGH INFO",), ())


def test_financebench_pages_count_from_one(tmp_path):
    record = {"financebench_id": "f", "doc_name": "A_10K", "question": "?", "answer": "1", "question_type": "m",
              "evidence": [{"doc_name": "A_10K", "evidence_page_num": 41, "evidence_text": "t"}]}  # fmt: skip
    (support,) = only("financebench", write_file(tmp_path / "a.jsonl", record)).support
    assert (support.title, support.page) == ("A_10K", 42)


def test_bamboogle_stark_and_metaqa(tmp_path):
    bamboogle = write_file(tmp_path / "b.csv", 'Question,Answer\n"Who, then?",,,,james madison,,\n')
    assert only("bamboogle", bamboogle).answers == ("james madison",)
    aliases = write_file(tmp_path / "c.csv", "Whose mother?,,,,Mildred Warner,Mildred Gale,\n")
    assert only("bamboogle", aliases).answers == ("Mildred Warner", "Mildred Gale")
    stark = write_file(tmp_path / "s.csv", 'id,query,answer_ids\n4,Which drug?,"[12, 7]"\n')
    assert (only("stark", stark).id, only("stark", stark).answers) == ("4", ("12", "7"))
    metaqa = write_file(tmp_path / "m.txt", "who directed [Heron]\tA Finch|B Loam\n")
    dataset = only("metaqa", metaqa)
    assert (dataset.answers, dataset.meta["topic"]) == (("A Finch", "B Loam"), "Heron")


def test_ones_own_questions_and_a_bad_line_is_named(tmp_path):
    lines = [
        {"question": "Who?", "answers": ["A"], "evidence": ["r.pdf", {"document": "s.pdf", "page": 3}]},
        {"question": "Why?"},
    ]
    path = write_file(tmp_path / "own.jsonl", "\n".join(map(json.dumps, lines)))
    dataset, other = load_dataset("jsonl", path).examples()
    assert [(s.title, s.page) for s in dataset.support] == [("r.pdf", None), ("s.pdf", 3)]
    assert (other.answer_type, other.id) == ("unanswerable", "own.jsonl, line 2")
    for bad, item in (
        ('{"question": "Who?", "answers": [3]}', "'answers'"),
        ('{"answers": ["A"]}', "no 'question'"),
        ('{"question": " "}', "empty"),
        ('{"question": "Who?", "evidence": [{"document": "a", "page": 0}]}', "page number"),
        ("[1, 2", "line 3"),
        ("12", "not a JSON object"),
    ):
        path.write_text("\n".join([*map(json.dumps, lines), bad]), encoding="utf-8")
        with pytest.raises(UsageError, match=f"(?s)line 3.*{item}|{item}"):
            list(load_dataset("jsonl", path).examples())


@pytest.mark.parametrize(
    ("name", "record", "text"),
    [
        ("hotpotqa", {"question": "?"}, "no 'answer'"),
        ("hotpotqa", HOTPOT | {"context": [["A"]]}, "another form"),
        ("musique", MUSIQUE | {"paragraphs": [{"title": "A"}]}, "no 'paragraph_text'"),
        ("fever", {"label": "MAYBE", "claim": "c", "evidence": []}, "no label of FEVER"),
        ("stark", "a,b\n1,2\n", "no column 'answer_ids'"),
        ("stark", "id,query,answer_ids\n1,q,none\n", "line 2"),
        ("metaqa", "no tab here\n", "line 1"),
        ("bamboogle", "Only a question\n", "no answer"),
        ("hotpotqa", "", "empty"),
    ],
)
def test_another_form_is_refused_with_its_place(tmp_path, name, record, text):
    path = write_file(tmp_path / "file", [record] if isinstance(record, dict) else record)
    with pytest.raises(UsageError, match=text):
        list(load_dataset(name, path).examples())


def test_unknown_names_and_missing_files_are_refused(tmp_path):
    with pytest.raises(UsageError) as error:
        load_dataset("hotpot", tmp_path / "none")
    assert "hotpotqa" in error.value.hint
    with pytest.raises(UsageError, match="no file"):
        load_dataset("hotpotqa", tmp_path / "none")


def test_an_array_is_read_no_further_than_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_BLOCK_SIZE", 64)
    path = write_file(
        tmp_path / "a.json", json.dumps([{"n": n, "t": "x" * 40} for n in range(500)], indent=1)
    )
    read = []
    opened = records._open

    def counted(path):
        stream = opened(path)
        original = stream.read

        class Counting:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                stream.close()

            def read(self, size):
                read.append(size)
                return original(size)

            def seek(self, at):
                stream.seek(at)

        return Counting()

    monkeypatch.setattr(records, "_open", counted)
    results = list(itertools.islice(records.read_records(path), 3))
    assert [record["n"] for _, record in results] == [0, 1, 2]
    assert sum(read) < 1_000
    assert [place for place, _ in results] == ["a.json, line 2", "a.json, line 6", "a.json, line 10"]


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 16])
def test_records_do_not_depend_on_where_a_block_ends(tmp_path, monkeypatch, block):
    monkeypatch.setattr(records, "_BLOCK_SIZE", block)
    values = [{"a": "]} , ["}, [], {"b": [1, {"c": '\\" é'}]}, "text", 12, None]
    array = write_file(tmp_path / "a.json", " \n" + json.dumps(values, indent=2, ensure_ascii=False))
    assert [record for _, record in records.read_records(array)] == values
    keyed = write_file(tmp_path / "o.json", json.dumps({"k": {"v": 1}, "l ": [2]}))
    assert [record for _, record in records.read_records(keyed, keyed=True)] == [["k", {"v": 1}], ["l ", [2]]]
    for broken in ('[{"a": 1}', '[{"a": 1} {"b"', '[{"a": tru}]'):
        with pytest.raises(UsageError, match=r"line 1|ends before"):
            list(records.read_records(write_file(tmp_path / "b.json", broken)))


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/data; it is not part of this repository")
@pytest.mark.parametrize(
    ("name", "file", "count"),
    [
        ("hotpotqa", "hotpotqa/train100.jsonl", 100),
        ("2wikimultihopqa", "2wikimultihopqa/train500.jsonl", 500),
        ("musique", "musique/train100.jsonl", 100),
        ("bamboogle", "bamboogle/bamboogle.csv", 125),
        ("financebench", "financebench/questions.jsonl", 28),
        ("metaqa", "metaqa/dev_2hop.jsonl", 2000),
        ("stark", "stark/prime_human.csv", 109),
    ],
)
def test_the_real_files(name, file, count):
    examples = list(load_dataset(name, SHARED / file).examples())
    assert name in READERS and len(examples) == count == len({example.id for example in examples})
    assert all(example.question and example.answers for example in examples)
    if name in {"hotpotqa", "2wikimultihopqa"}:
        numbered = {
            (p.title, n) for example in examples for p in example.corpus for n in range(len(p.sentences))
        }
        pieces = [(s.title, s.sentence) for example in examples for s in example.support]
        assert sum(piece in numbered for piece in pieces) >= 0.99 * len(pieces)
