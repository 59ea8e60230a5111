"""The history's file: shared by threads, empty of what was forgotten, opened again after trouble."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from clew.app.web.history import FILE, QuestionHistory
from clew.core.errors import Damaged, NotFound

ASKING = {"question": "Who keeps the zanzibarquux?", "chain": "", "model": None}


def test_threads_note_questions_at_once(tmp_path) -> None:
    with QuestionHistory(tmp_path) as history:

        def whole(number: int) -> None:
            history.begin(f"q{number}", ASKING)
            history.set_state(f"q{number}", "running")
            history.finish(
                f"q{number}", "done", {"answer": f"keeper {number}", "abstained": False, "usage": {}}
            )

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(whole, range(100)))
        assert {item["text"] for item in history.latest(200)} == {f"keeper {n}" for n in range(100)}
        assert all(item["state"] == "done" for item in history.latest(200))


@pytest.mark.parametrize("all_of_them", [False, True])
def test_what_is_forgotten_is_in_no_file_while_the_history_is_open(tmp_path, all_of_them) -> None:
    with QuestionHistory(tmp_path) as history:
        history.begin("a", ASKING)
        history.finish("a", "done", {"answer": "the zanzibarquux"})
        assert any(b"zanzibarquux" in path.read_bytes() for path in tmp_path.iterdir())
        if all_of_them:
            assert history.clear() == 1
        else:
            history.forget("a")
        for path in tmp_path.iterdir():
            assert b"zanzibarquux" not in path.read_bytes(), path
        with pytest.raises(NotFound):
            history.forget("a")
        history.begin("b", ASKING)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]  # nothing is left in a log
    with QuestionHistory(tmp_path) as again:
        assert [item["id"] for item in again.latest()] == ["b"]


def test_a_damaged_file_is_said_and_one_that_was_deleted_begins_anew(tmp_path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all" * 100)
    with QuestionHistory(tmp_path) as history:
        with pytest.raises(Damaged, match="is damaged"):
            history.begin("a", ASKING)
        (tmp_path / FILE).unlink()
        history.begin("a", ASKING)
        assert [item["id"] for item in history.latest()] == ["a"]


def ask_and_answer(history, id: str, question: str, text: str = "An answer.", **more) -> None:
    history.begin(id, {**ASKING, "question": question, **more})
    history.finish(id, "done", {"answer": text})


def test_a_conversation_is_one_line_and_asking_again_adds_none(tmp_path) -> None:
    with QuestionHistory(tmp_path) as history:
        ask_and_answer(history, "a", "Who built the Heron Queen?", "Strake & Loam")
        ask_and_answer(
            history, "b", "Who built the Bittern?", "Tolland Yard", follows="a", typed="and the Bittern?"
        )
        ask_and_answer(history, "c", "When was it built?", "1919", follows="b")
        for id in "de":
            ask_and_answer(history, id, "How wide is the bank?" if id == "d" else " how wide is the bank? ")
        ask_and_answer(history, "f", "How wide is the bank?", documents=["x"])
        lines = history.conversations()
        assert [(line["id"], line["question"], line["size"]) for line in lines] == [
            ("f", "How wide is the bank?", 1),
            ("e", "How wide is the bank?", 1),
            ("c", "Who built the Heron Queen?", 3),
        ]
        # Words of an answer in the middle of it find a conversation; so do those of its new title.
        assert [line["id"] for line in history.conversations(words="tolland")] == ["c"]
        history.rename("b", title="Ships", pinned=True)
        (ships,) = history.conversations(words="SHIPS")
        assert (ships["id"], ships["title"], ships["pinned"]) == ("c", "Ships", True)
        assert history.forget_conversation("a") == ["a", "b", "c"]
        assert history.forget_conversation("d") == ["d", "e"]
        assert [line["id"] for line in history.conversations()] == ["f"]
        with pytest.raises(NotFound):
            history.rename("a", title="Gone")


def test_a_file_of_an_earlier_version_gets_the_new_columns(tmp_path) -> None:
    with sqlite3.connect(tmp_path / FILE) as old:
        old.execute(
            "CREATE TABLE question (id TEXT PRIMARY KEY, asked REAL NOT NULL, state TEXT NOT NULL, "
            "asking TEXT NOT NULL, answer TEXT, problem TEXT)"
        )
        old.execute("INSERT INTO question VALUES ('a', 1.0, 'done', '{\"question\": \"Who?\"}', NULL, NULL)")
    old.close()
    with QuestionHistory(tmp_path) as history:
        ask_and_answer(history, "b", "And when?", follows="a")
        assert [(line["id"], line["size"]) for line in history.conversations()] == [("b", 2)]
        assert history.get("a")["question"] == "Who?"
