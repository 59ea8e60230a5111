"""The training of what ranks sentences, with small files of questions over invented documents."""

from __future__ import annotations

import json

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.core.types import Hit, Node
from clew.knowledge_base.knowledge_base import open as open_base
from clew.questions.sentences import (
    LIST,
    SENTENCE,
    Mark,
    Option,
    SentenceModel,
    add_through,
    measure_mark,
    measure_verdict,
    split_hits,
    weigh_vector,
)
from clew.train.sentences import (
    HOPS,
    ONE_HOP,
    RECORD,
    SentenceExample,
    answers_with,
    draw_foreign,
    fit_confidence,
    fit_score,
    fit_wordings,
    prepare_file,
    train_sentences,
    write_documents,
    write_tables,
)

FACTS = [
    ("The ferry", "Crossing", "The ferry crosses the Arde at Olm. It takes nine minutes.", "nine minutes"),
    ("The ferry", "Fares", "A day ticket costs £4. Children under five pay nothing.", "A day ticket costs £4."),
    ("The mill", "History", "The mill was built in 1871 by Ines Harrow. It burned in 1920.", "1871 by Ines Harrow"),
    ("The mill", "Visits", "You may bring:\n\n- a torch\n- boots\n- a coat", "a torch"),
]  # fmt: skip
QUESTIONS = [
    "How long does the crossing take?",
    "What does a day ticket cost?",
    "Who built the mill?",
    "What may I bring?",
]


def write_questions(folder, name):
    passages = [
        {"title": f"{document} of {name} > {section}", "text": text} for document, section, text, _ in FACTS
    ]
    rows = [
        {
            "question": question,
            "kind": "fact",
            "passages": passages,
            "answers": [{"passage": place, "text": fact[3]}],
        }
        for place, (question, fact) in enumerate(zip(QUESTIONS, FACTS, strict=True))
    ]
    rows.append(
        {"question": "Who painted the ferry?", "kind": "none-close", "passages": passages, "answers": []}
    )
    file = folder / f"{name}.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return file


def test_a_trained_score_puts_the_sentences_that_answer_first(tmp_path):
    files, seen = [write_questions(tmp_path, name) for name in ("Olm", "Pera")], []
    record = train_sentences(files, tmp_path / "out", lambda *told: seen.append(told))
    assert [part for part, _, _ in seen] == ["sentences", "sentences"]
    measures = record["after"]
    assert measures["questions"] == 8 and measures["of"] == 12  # one foreign question each
    assert measures["an option is right"] == 1.0 and measures["right among three"] >= 0.75
    with np.load(tmp_path / "out" / "sentences.npz") as arrays:
        model = SentenceModel.of_arrays(dict(arrays))
    assert np.isfinite(model.score.weights).all() and np.isfinite(model.confidence).all()
    assert (tmp_path / "out" / RECORD).is_file()
    assert train_sentences(files, tmp_path / "out", lambda *told: pytest.fail("done already")) == record


def test_whether_no_is_right_is_learned_from_questions_over_real_documents_alone(tmp_path):
    rows = [
        {
            "question": f"Is {name} open?",
            "kind": "polar",
            "polar": polar,
            "answers": [{"text": text}],
            "source": "x",
        }
        for name in map(str, range(20))
        for polar, text in (("no", "It is not open."), ("yes", "It is open."))
    ]
    invented = [{**row, "polar": "yes" if row["polar"] == "no" else "no"} for row in rows * 3]
    for row in invented:
        del row["source"]
    file = tmp_path / "polar.jsonl"
    file.write_text("\n".join(map(json.dumps, [*rows, *invented])) + "\n", encoding="utf-8")
    verdict = fit_wordings([file]).verdict
    assert verdict @ measure_verdict("Is it shut?", "It is never shut.") > 0
    assert verdict @ measure_verdict("Is it shut?", "It is shut.") < 0
    never = fit_wordings([]).verdict
    assert abs(never @ measure_verdict("Is it shut?", "It is never shut.")) < 1e-6


def test_a_base_is_asked_what_other_files_and_ways_to_ask_are_about(tmp_path):
    olm, pera = (write_questions(tmp_path, name) for name in ("Olm", "Pera"))
    ways = tmp_path / "ways.jsonl"
    rows = [{"question": f"Who leads group {number}?", "kind": ONE_HOP} for number in range(20)]
    rows += [{"question": "What may guests take along?", "kind": "list"}]
    ways.write_text("\n".join(map(json.dumps, rows)) + "\n")
    for path in (olm, pera):
        lines = path.read_text().splitlines()
        own = [json.loads(line) for line in lines] * 4
        path.write_text(
            "\n".join(json.dumps({**row, "question": f"{path.stem}: {row['question']}"}) for row in own)
        )
    drawn = draw_foreign(olm, [olm, pera], [ways])
    assert len(drawn) == 4 and sum(each.startswith("Pera: ") for each in drawn) == 2
    assert sum(each.startswith("Who leads group") for each in drawn) == 2
    foreign = [each for each in prepare_file(olm, foreign=drawn) if each.kind == "none-foreign"]
    assert foreign and {each.question for each in foreign} <= set(drawn)
    assert not any(each.right.any() or each.is_answerable for each in foreign)


def test_files_of_another_form_and_a_single_file_are_refused(tmp_path):
    with pytest.raises(UsageError, match="one file is too few"):
        train_sentences([write_questions(tmp_path, "Olm")], tmp_path / "out", print)
    (tmp_path / "other.jsonl").write_text('{"question": "Why?"}\n')
    with pytest.raises(UsageError, match="no questions with passages"):
        train_sentences(
            [tmp_path / "other.jsonl", tmp_path / "Olm.jsonl"], tmp_path / "out2", lambda *told: None
        )


def test_files_of_nothing_but_several_hops_are_refused(tmp_path):
    files = [write_questions(tmp_path, name) for name in ("Olm", "Pera")]
    files[1].write_text(files[1].read_text().replace('"fact"', '"hops"').replace('"none-close"', '"hops"'))
    with pytest.raises(UsageError, match="fewer than two files have other kinds"):
        train_sentences(files, tmp_path / "out", lambda *told: None)


def test_passages_become_documents_with_their_sections(tmp_path):
    write_documents(
        [{"passages": [{"title": "A > One", "text": "x"}, {"title": "A", "text": "y"}]}], tmp_path / "d"
    )
    assert (tmp_path / "d" / "000.md").read_text() == "# A\n\ny\n\n## One\n\nx\n"


def hit(text, kind="passage"):
    return Hit(Node("d:1", kind, text, "d", "d", 0, None, "", 0, None, (), (0, len(text))), 1.0, ("d:1",))


def test_sentences_lists_and_rows_are_options():
    hits = [
        hit("You may bring:\n- a torch.\n- boots."),
        hit("One. Two.\n—"),
        hit("Built: 1871; Owner: Harrow", "row"),
    ]
    options = split_hits(hits)
    assert [option.text(hits) for option in options] == [
        "You may bring:", "- a torch.", "- boots.", hits[0].node.text,
        "One.", "Two.", hits[1].node.text, hits[2].node.text,
    ]  # fmt: skip
    assert [option.kind for option in options[3:]] == [LIST, SENTENCE, SENTENCE, LIST, "row"]


@pytest.mark.parametrize(
    ("answers", "kind", "right"),
    [
        (["a torch", "boots"], SENTENCE, False),
        (["a torch", "boots"], LIST, True),
        (["a torch", "boots", "a coat"], LIST, False),
        (["a torch"], LIST, False),
        (["You may bring: a torch and boots"], LIST, False),
        (["boots"], SENTENCE, True),
        (["a boat"], SENTENCE, False),
    ],
)
def test_what_counts_as_right(answers, kind, right):
    hits = [hit("You may bring:\n- a torch\n- boots")]
    start = 0 if kind == LIST else 25
    option = Option(0, start, len(hits[0].node.text), kind)
    row = {"kind": "list", "answers": [{"text": text} for text in answers]}
    assert answers_with(option, hits, row) is right


def test_lines_with_cells_become_rows_and_a_right_row_has_all_cells_of_the_answer(tmp_path):
    text = "Fees:\nKind | Fee\nAdult | 5\nChild | 15\n  The end."
    write_documents([{"passages": [{"title": "A", "text": text}]}], tmp_path / "d")
    with open_base(tmp_path / "base", create=True) as base:
        base.add([tmp_path / "d"])
        hits = base.search("adult child fee", k=9)
    rows = sorted((each for each in split_hits(hits) if each.kind == "row"), key=lambda each: each.text(hits))
    assert [option.text(hits) for option in rows] == ["Fees. Adult: Fee: 5", "Fees. Child: Fee: 15"]
    row = {"kind": "how-much", "answers": [{"text": "Adult | 5"}]}
    assert [answers_with(option, hits, row) for option in rows] == [True, False]
    assert write_tables("one | line") == "one | line"


def test_a_mark_that_is_a_whole_cell_is_told_from_one_that_is_not():
    hits = [hit("Bittern: Built: 1919; Builder: Tolland Yard", "row")]
    (option,) = split_hits(hits)
    text = hits[0].node.text
    shares = [
        measure_mark(hits, option, mark, [mark])[-1]
        for words in ("1919", "Tolland Yard", "Tolland", "Built: 1919; Builder")
        for mark in [Mark(0, text.index(words), text.index(words) + len(words), 0.5)]
    ]
    assert shares == [1.0, 1.0, -1.0, -1.0]


#: How likely a question asks through another thing, by a vector of one dimension: 1 says that it does.
THROUGH = np.array([20.0, -10.0])


def draw_examples(kind, count, rng):
    """Return questions of three options: of several hops the one with the higher second feature is right, of others
    the one with the higher first."""
    drawn = []
    for _ in range(count):
        features = rng.normal(size=(3, 2))
        column = 1 if kind == HOPS else 0
        right = np.arange(3) == features[:, column].argmax()
        vector = np.array([float(kind == HOPS)])
        drawn.append(SentenceExample("?", kind, [], features, vector, right))
    return drawn


def test_questions_of_several_hops_have_weights_of_their_own_and_take_none_from_others():
    rng = np.random.default_rng(1)
    plain, hops = (draw_examples(kind, 60, rng) for kind in ("fact", HOPS))
    alone, both = fit_score(plain, THROUGH), fit_score([*plain, *hops], THROUGH)
    assert (alone.weights[2:] == 0).all()

    def share_right(score, examples):
        chosen = [
            score.scores(add_through(each.features, weigh_vector(THROUGH, each.vector))).argmax()
            for each in examples
        ]
        return np.mean([each.right[place] for each, place in zip(examples, chosen, strict=True)])

    assert share_right(alone, hops) < 0.6 and share_right(both, hops) > 0.9
    unseen = draw_examples("fact", 60, rng)
    assert share_right(both, unseen) >= share_right(alone, unseen) - 0.05 > 0.85


def test_the_confidence_of_other_questions_is_as_without_those_of_several_hops():
    rng = np.random.default_rng(2)
    in_hops = np.arange(400) < 100
    own = np.column_stack([np.ones(400), rng.normal(size=400)])
    right = rng.random(400) < np.where(in_hops, 0.2, 1 / (1 + np.exp(-2 * own[:, 1])))
    rows = np.column_stack([own, own * in_hops[:, None]])
    alone = fit_confidence(rows[~in_hops], right[~in_hops], in_hops[~in_hops])
    both = fit_confidence(rows, right, in_hops)
    chances = [1 / (1 + np.exp(-rows @ weights)) for weights in (alone, both)]
    assert np.abs(chances[0] - chances[1])[~in_hops].max() < 0.05
    assert chances[1][in_hops].mean() == pytest.approx(0.2, abs=0.08)
    assert chances[0][in_hops].mean() > 0.4
