"""What a reviewer broke: cookies of other applications, pages that draw slowly, a stop between two model calls."""

import threading

import pytest
from starlette.datastructures import Headers

from clew.app.web.errors import ServerBusy
from clew.app.web.events import parse_last_event_id
from clew.app.web.guard import cookie_name, has_token, session_value
from clew.app.web.model_pool import LentModel
from clew.app.web.server import MAX_CONCURRENT, PageImageCache
from clew.core.errors import BudgetExceeded, UnreadableFile
from clew.core.protocols import Completion, Prompt
from serve_app import ServedApp

TOKEN = "a-token-of-enough-characters"


@pytest.mark.parametrize("other", ["a[]=1", 'x={"a":1}', "foo", "e=x y", "", "=", ";;"])
def test_cookies_of_other_applications_lock_nobody_out(other):
    mine = f"{cookie_name(TOKEN)}={session_value(TOKEN)}"
    for cookies in (f"{other}; {mine}", f"{mine}; {other}"):
        assert has_token(TOKEN, Headers({"cookie": cookies}))
    wrong = f"{cookie_name(TOKEN)}={session_value('another-token-altogether')}"
    assert not has_token(TOKEN, Headers({"cookie": f"{other}; {wrong}"}))


@pytest.mark.parametrize(
    ("text", "number"), [(None, 0), ("7", 7), ("x", 0), ("-1", 0), ("9" * 5_000, 0), ("٣", 0)]
)
def test_the_number_of_an_event_is_read_or_is_none(text, number):
    assert parse_last_event_id(text) == number


class Drawing:
    """A base whose pages wait to be drawn, and then cannot be."""

    name = "kb"

    def __init__(self):
        self.knowledge_base = self.files = self
        self.drawn, self.go, self.begun = 0, threading.Event(), threading.Semaphore(0)

    def page_image(self, key, page, scale):
        self.drawn += 1
        self.begun.release()
        self.go.wait(30)
        raise UnreadableFile("took too long")


def test_pages_that_draw_slowly_take_only_so_many_threads_and_are_tried_once():
    drawing, pictures = Drawing(), PageImageCache(1 << 20)
    outcomes = []

    def look(page):
        try:
            pictures.get(drawing, "key", page, 1.0)
        except UnreadableFile as error:
            outcomes.append(error)

    threads = [threading.Thread(target=look, args=(page,)) for page in range(MAX_CONCURRENT)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert drawing.begun.acquire(timeout=30)
    with pytest.raises(ServerBusy):
        pictures.get(drawing, "key", 99, 1.0)
    drawing.go.set()
    for thread in threads:
        thread.join()
    assert len(outcomes) == drawing.drawn == MAX_CONCURRENT
    with pytest.raises(UnreadableFile):
        pictures.get(drawing, "key", 0, 2.0)
    assert drawing.drawn == MAX_CONCURRENT


class Model:
    name = "read=http://10.0.0.7:8000/v1?a=b#counted,guide=openai:other"

    def __init__(self):
        self.asked = 0

    def complete(self, prompts):
        self.asked += 1
        return [Completion("said", model="http://10.0.0.7:8000/v1#counted") for _ in prompts]


def test_a_stopped_question_asks_the_model_no_more():
    model, stopped = Model(), threading.Event()
    lent = LentModel(model, stopped.is_set)
    assert lent.name == "read=counted,guide=openai:other"
    assert [item.model for item in lent.complete([Prompt("", "x")])] == ["counted"]
    stopped.set()
    with pytest.raises(BudgetExceeded, match="stopped before"):
        lent.complete([Prompt("", "x")])
    assert model.asked == 1


@pytest.mark.slow
def test_a_form_of_too_many_fields_is_refused(tmp_path):
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        body = b"question=Who&" + b"&".join(b"documents=x" for _ in range(20_001))
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        status, *_ = app.request("POST", f"/b/{app.base}/ask", body, headers)
        assert status == 413
