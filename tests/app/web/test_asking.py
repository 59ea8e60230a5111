"""Questions with a scripted model: streamed while it thinks, stopped, refused when too many, alone and at once."""

import json
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing

import pytest

import clew
from clew.app.web.history import QuestionHistory
from clew.app.web.settings import Limits
from scripted import ScriptedServer
from serve_app import FILES, QUESTION, ServedApp, waited_for

CONTRACT = FILES[0]
SECRET = "sk-the-key-of-the-person-who-serves"


class Gate:
    """A model that answers when it may."""

    def __init__(self) -> None:
        self.asked, self.open = threading.Event(), threading.Event()
        self.reply = {"quotes": [{"source": 1, "text": "shall pay $9"}], "answer": "$9 a day"}

    def __call__(self, request):
        if "quotes" not in request.prompt:
            return "Nothing more."
        self.asked.set()
        assert self.open.wait(60)
        return self.reply


@pytest.fixture
def gate():
    result = Gate()
    yield result
    result.open.set()


@pytest.fixture
def narrow(gate, folder, monkeypatch, tmp_path):
    """A server that answers one question at a time, lets one wait, and has a model with a gate."""
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CLEW_API_KEY", SECRET)
    with (
        ScriptedServer(gate) as server,
        ServedApp(folder, models=[server.llm], limits=Limits(asks=1, waiting=1), read_only=True) as app,
    ):
        app.scripted = server
        yield app
        gate.open.set()


@pytest.mark.slow
def test_steps_arrive_while_the_model_still_thinks(narrow, gate) -> None:
    reply = narrow.post(f"{narrow.api}/questions", {"question": QUESTION})[1]
    events = narrow.events(reply["events"])
    first = [next(events)[0] for _ in range(3)]
    assert first == ["waiting", "running", "step"] and gate.asked.wait(60)
    assert narrow.get(f"{narrow.api}/questions/{reply['id']}")[1]["state"] == "running"
    gate.open.set()
    *_, (event, answer) = events
    assert event == "answer" and answer["answer"] == "$9 a day" and answer["usage"]["calls"] >= 1
    assert answer["quotes"][0]["text"] == "shall pay $9"


@pytest.mark.slow
def test_the_key_goes_to_the_model_and_nowhere_else(narrow, gate, capfd) -> None:
    gate.open.set()
    answer = narrow.ask(QUESTION)
    assert any(SECRET in request.headers["authorization"] for request in narrow.scripted.requests)
    address = narrow.scripted.url.removesuffix("/v1")
    question, page = f"{narrow.api}/questions/{answer['id']}", f"/b/{narrow.base}"
    chat = {"model": "clew", "messages": [{"role": "user", "content": QUESTION}]}
    shown = {
        "answer": json.dumps(answer),
        "chat": json.dumps(narrow.post("/v1/chat/completions", chat)[1]),
        "events": json.dumps(list(narrow.events(f"{question}/events"))),
    } | {
        path: narrow.request("GET", path)[2].decode()
        for path in (
            *("/api/config", "/api/bases", f"{narrow.api}/questions", question, f"{question}/export"),
            *("/", f"{page}/", f"{page}/q/{answer['id']}", f"{page}/q/{answer['id']}/cite/1"),
        )
    }
    for where, value in shown.items():
        # Where texts go is said to the one who asks, and nothing more of where the model is.
        assert SECRET not in value and address not in value.replace(f"this machine ({address})", ""), where
    assert "scripted" in shown["chat"] and answer["reader"] == "scripted"
    assert SECRET not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_the_page_of_an_answer_says_what_it_cost(narrow, gate) -> None:
    gate.open.set()
    answer = narrow.ask(QUESTION)
    usage = answer["usage"]
    page = narrow.request("GET", f"/b/{narrow.base}/q/{answer['id']}")[2].decode()
    text = f"1 call, {usage['tokens_in']} tokens in, {usage['tokens_out']} out, price not known"
    assert usage["calls"] == len(narrow.scripted.requests) == 1 and text in page


@pytest.mark.slow
def test_a_page_says_that_a_reply_could_not_be_used_and_what_was_read_in_its_place(
    folder, monkeypatch
) -> None:
    monkeypatch.setenv("CLEW_READER", "clew:reader")

    def reply(request):
        return "I am only a small model." if "quotes" in request.prompt else "Nothing more."

    with ScriptedServer(reply) as server, ServedApp(folder, models=[server.llm], read_only=True) as app:
        answer = app.ask(QUESTION, recipe="read")
        page = app.request("GET", f"/b/{app.base}/q/{answer['id']}")[2].decode()
    note = "answer could not be used: no quote supports it, so the passages were read without the model"
    assert "$9" in answer["answer"] and answer["way"] == "answer"
    assert note in page and "; no language model wrote it." in page


@pytest.mark.slow
def test_a_request_cannot_name_a_model_of_its_own(narrow) -> None:
    with ScriptedServer(["no"]) as other:
        for name in (other.llm, narrow.scripted.llm, "openai:gpt-4o", "http://169.254.169.254/#x", "read=x"):
            status, reply = narrow.post(f"{narrow.api}/questions", {"question": "x", "model": name})
            assert status == 400 and "no model named" in reply["error"]
        assert not other.requests and not narrow.scripted.requests
    recipe = {"question": "x", "recipe": "read(retriever=serpapi)"}
    assert narrow.post(f"{narrow.api}/questions", recipe)[0] == 400
    # One that was configured, by its id; and none at all.
    assert narrow.ask(QUESTION, model="none")["reader"] == "extractive"


@pytest.mark.slow
def test_too_many_questions_are_refused_with_a_time_and_none_is_lost(narrow, gate) -> None:
    reply = [narrow.post(f"{narrow.api}/questions", {"question": QUESTION})[1] for _ in range(2)]
    assert gate.asked.wait(60)
    status, headers, body = narrow.request(
        "POST", f"{narrow.api}/questions", b'{"question": "x"}', {"Content-Type": "application/json"}
    )
    assert status == 429 and 1 <= int(headers["retry-after"]) <= 60 and b"more are not taken on" in body
    assert narrow.get("/api/config")[1]["load"] == {"running": 1, "waiting": 1}
    gate.open.set()
    for item in reply:
        *_, (event, answer) = narrow.events(item["events"])
        assert event == "answer" and answer["answer"] == "$9 a day"


@pytest.mark.slow
def test_a_stopped_question_asks_the_model_no_more_and_says_that_it_was_stopped(narrow, gate) -> None:
    gate.reply = {"quotes": [], "answer": "", "missing": "the rate for a late return of the lighter"}
    reply = narrow.post(f"{narrow.api}/questions", {"question": QUESTION, "recipe": "kgp"})[1]
    assert gate.asked.wait(60)
    narrow.post(f"{narrow.api}/questions/{reply['id']}/stop")
    gate.open.set()
    *_, (event, answer) = narrow.events(reply["events"])
    assert event == "answer" and answer["state"] == "stopped" and answer["abstained"]
    assert "stopped before there was an answer" in answer["answer"]
    # What is missing is not asked for any more.
    assert len(narrow.scripted.requests) == 1


@pytest.mark.slow
def test_a_question_is_stopped_while_it_waits_and_while_it_runs(narrow, gate) -> None:
    running, waiting = (narrow.post(f"{narrow.api}/questions", {"question": QUESTION})[1] for _ in range(2))
    assert gate.asked.wait(60)
    assert narrow.post(f"{narrow.api}/questions/{waiting['id']}/stop")[1]["state"] == "stopped"
    *_, (event, problem) = narrow.events(waiting["events"])
    assert event == "problem" and "stopped" in problem["error"]
    message = narrow.post(f"{narrow.api}/questions/{running['id']}/stop")[1]
    assert message == {"id": running["id"], "state": "running", "stopping": True}
    gate.open.set()
    *_, (_, last) = narrow.events(running["events"])
    assert last["state"] == "stopped"
    assert narrow.post(f"{narrow.api}/questions/nothing/stop")[0] == 404
    states = {
        question["id"]: question["state"]
        for question in narrow.get(f"{narrow.api}/questions")[1]["questions"]
    }
    assert states[waiting["id"]] == states[running["id"]] == "stopped"


def test_a_model_that_refuses_is_a_problem_that_is_told_and_kept(folder, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    with ScriptedServer([]) as server, ServedApp(folder, models=[server.llm], read_only=True) as app:
        asked = app.ask(QUESTION)
        assert asked["event"] == "problem" and asked["state"] == "failed" and asked["error"]
        stored = app.get(f"{app.api}/questions/{asked['id']}")[1]
        assert stored["state"] == "failed" and stored["problem"]["error"] == asked["error"]
        assert app.request("GET", f"{app.api}/questions/{asked['id']}/export")[0] == 404
        # Long ago: the events are history, and end at once.
        again = list(app.events(f"{app.api}/questions/{asked['id']}/events"))
        assert again[-1][0] == "problem"


def test_the_page_of_a_question_gets_every_event_as_html_also_those_that_waited(app) -> None:
    question = app.ask(QUESTION)
    assert question["state"] == "done"
    # All of them wait, and come in one write.
    events = list(app.events(f"/b/{app.base}/q/{question['id']}/events"))
    steps = [data for event, data in events if event == "step"]
    assert len(steps) > 2 and all(set(data) == {"html"} and "<li" in data["html"] for data in steps)
    assert events[-1] == ("answer", {})


@pytest.mark.slow
def test_questions_at_once_get_the_answers_that_each_gets_alone(app) -> None:
    questions = [
        QUESTION,
        "What is the toll on live geese?",
        "Who hires the lighter?",
        "When does the market open?",
        "What was the gauge on 5 March 1929?",
    ]
    alone = [_told(app.ask(question)) for question in questions]
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(lambda item: _told(app.ask(item)), questions * 3))
    assert at_once == alone * 3


@pytest.mark.slow
def test_what_a_killed_server_was_answering_is_said_to_be_interrupted(tmp_path) -> None:
    clew.open(tmp_path / "kb", create=True).close()
    with QuestionHistory(tmp_path / "kb") as history:
        history.begin("cut", {"question": "Who?", "chain": "", "model": None})
        history.set_state("cut", "running")
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        (first,) = app.get(f"{app.api}/questions")[1]["questions"]
        assert first["state"] == "interrupted"
        ((event, reply),) = app.events(f"{app.api}/questions/cut/events")
        assert event == "problem" and "ended before" in reply["error"]
        # A second server, which only reads, does not say so of what the first one is at.
        with QuestionHistory(tmp_path / "kb") as history:
            history.begin("under way", {"question": "Who?", "chain": "", "model": None})
        with ServedApp(tmp_path / "kb", read_only=True):
            assert app.get(f"{app.api}/questions/under way".replace(" ", "%20"))[1]["state"] != "interrupted"
    with ServedApp(tmp_path / "kb", read_only=True) as app:
        assert {question["state"] for question in app.get(f"{app.api}/questions")[1]["questions"]} == {
            "interrupted"
        }


@pytest.mark.slow
def test_stopping_the_server_ends_what_is_followed_and_answered(
    gate, folder, monkeypatch, tmp_path, caplog
) -> None:
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    with ScriptedServer(gate) as server, ServedApp(folder, models=[server.llm], read_only=True) as app:
        reply = app.post(f"{app.api}/questions", {"question": QUESTION})[1]
        events = app.events(reply["events"])
        assert next(events)[0] == "waiting" and gate.asked.wait(60)
        app.serving.stop()
        assert "answer" not in [
            name for name, _ in events
        ]  # the stream ends, though the model has not answered
        gate.open.set()
    with QuestionHistory(folder) as history:
        assert history.get(reply["id"])["state"] == "stopped"
    assert "exceeded" not in caplog.text and "Traceback" not in caplog.text


def _told(answer):
    return answer["answer"], [(item["id"], item["score"]) for item in answer["evidence"]]


def test_too_many_chats_are_refused_with_a_time_and_the_others_answered(narrow, gate) -> None:
    body = json.dumps({"model": "clew", "messages": [{"role": "user", "content": QUESTION}]}).encode()
    sent = ("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(narrow.request, *sent) for _ in range(3)]
        status, headers, text = next(as_completed(asked)).result()
        assert status == 429 and int(headers["retry-after"]) >= 1 and b"wait for their turn" in text
        gate.open.set()
        assert sorted(item.result()[0] for item in asked) == [200, 200, 429]
    # A search is no question: it does not wait for them.
    assert narrow.post(f"{narrow.api}/search", {"question": QUESTION})[1]["hits"]


@pytest.mark.slow
def test_a_document_that_is_removed_while_it_is_asked_about_harms_nobody(
    gate, made_base, tmp_path, monkeypatch
):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    shutil.copytree(made_base, tmp_path / "harbour")
    with (
        ScriptedServer(gate) as server,
        ServedApp(tmp_path / "harbour", models=[server.llm], encoder="none") as app,
    ):
        keys = {
            document["document"]: document["key"]
            for document in app.get(f"{app.api}/documents")[1]["documents"]
        }
        picture = f"{app.api}/documents/{keys[CONTRACT]}/pages/2.png"
        assert app.request("GET", picture)[0] == 200
        reply = app.post(f"{app.api}/questions", {"question": QUESTION})[1]
        assert gate.asked.wait(60)
        assert app.delete(f"{app.api}/documents/{keys[CONTRACT]}")[1]["quoted"] == 0  # not answered yet
        assert app.request("GET", picture)[0] == 404
        gate.open.set()
        *_, (event, answer) = app.events(reply["events"])
        # It is answered from what there was when it was asked, and says so where that is looked for.
        assert event == "answer" and answer["answer"] == "$9 a day"
        assert {item["document"] for item in answer["evidence"]} == {CONTRACT}
        page = f"/b/{app.base}/q/{reply['id']}"
        assert app.request("GET", page)[0] == 200
        status, _, shown = app.request("GET", f"{page}/cite/1")
        assert status == 200 and b"$9" in shown
        after = app.ask(QUESTION, model="none")
        assert CONTRACT not in {hit["document"] for step in after["trail"] for hit in step["hits"]}


@pytest.mark.slow
def test_a_question_whose_end_cannot_be_written_is_not_being_answered_for_ever(made_base, tmp_path):
    shutil.copytree(made_base, tmp_path / "kb")
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        assert app.ask(QUESTION)["event"] == "answer"
        with closing(sqlite3.connect(tmp_path / "kb" / "serve.db")) as database, database:
            database.execute(
                "CREATE TRIGGER full BEFORE UPDATE ON question WHEN NEW.state != 'running' "
                "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        asked = app.ask(QUESTION)  # who follows it still hears the answer
        assert asked["event"] == "answer" and "$9" in asked["answer"]
        waited_for(lambda: not app.get("/api/config")[1]["load"]["running"])
        stored = app.get(f"{app.api}/questions/{asked['id']}")[1]
        assert stored["state"] == "failed" and "could not be kept" in stored["problem"]["error"]
        for part in ("", "/answer"):
            _, _, body = app.request("GET", f"/b/{app.base}/q/{asked['id']}{part}")
            assert b"could not be kept" in body and b'class="live"' not in body
