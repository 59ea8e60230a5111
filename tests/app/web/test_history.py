"""The history's file: shared by threads, empty of what was forgotten, opened again after trouble."""

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
