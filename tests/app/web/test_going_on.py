"""What goes on with one click although something was removed, or was not ready yet: a model that is used no more,
documents and graphs that are gone, a server that was started again, answers given before all documents were ready."""

from __future__ import annotations

import shutil
import threading
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

import clew
from page_reader import FORM, OWN, ask_by_form, fetch_page, has_ended
from scripted import ScriptedServer
from serve_app import FILMS, PATIENCE, QUESTION, ServedApp, waited_for

QUOTING = {"quotes": [{"source": 1, "text": "shall pay $9"}], "answer": "$9", "abstain": False}


class Forms(HTMLParser):
    """The forms of a page: their classes, fields and the words on their buttons."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[dict] = []
        self._area = ""

    def handle_starttag(self, tag, attrs) -> None:
        attrs = dict(attrs)
        if tag == "form":
            self.all.append({"class": attrs.get("class") or "", "fields": [], "text": ""})
        elif tag == "input" and self.all and attrs.get("type") == "hidden":
            self.all[-1]["fields"].append((attrs["name"], attrs.get("value") or ""))
        elif tag == "textarea":
            self._area = attrs.get("name", "")

    def handle_endtag(self, tag) -> None:
        self._area = "" if tag == "textarea" else self._area

    def handle_data(self, data) -> None:
        if self.all:
            self.all[-1]["text"] += data
            if self._area:
                self.all[-1][self._area] = data


def read_form(app, place, name):
    """Return the only form of a page that has a class."""
    reader = Forms()
    reader.feed(app.request("GET", place)[2].decode())
    (form,) = [form for form in reader.all if name in form["class"].split()]
    return form


def send_form(app, form, **typed):
    """Send a form as a click on its button does; return the status, the address that it leads to, and the page."""
    body = urlencode([*form["fields"], *typed.items()]).encode()
    status, headers, html = app.request("POST", f"/b/{app.base}/ask", body, {**FORM, **OWN})
    return status, headers.get("location", ""), html.decode()


def await_answer(app, place):
    """Wait until a question has ended, and return it."""
    waited_for(lambda: has_ended(app, place))
    return app.get(f"{app.api}/questions/{place.rpartition('/')[2]}")[1]


@pytest.fixture
def with_models(made_base, tmp_path, monkeypatch):
    """A project with questions that two models answered, both of which can be taken away in the app."""
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    shutil.copytree(made_base, tmp_path / "harbour")
    settings = {"projects": tmp_path / "projects", "own_settings": tmp_path / "settings.json"}
    with (
        ScriptedServer(lambda request: QUOTING) as model,
        ServedApp(tmp_path / "harbour", model_servers=(), **settings) as app,
    ):
        names = [f"{model.url}#first", f"{model.url}#second"]
        for name in names:
            assert app.post("/api/setup/models", {"name": name})[0] == 201
        yield app, names


def remove_model(app, name):
    assert app.post("/api/setup/models/remove", {"name": name})[0] == 200


@pytest.mark.parametrize("left", [["second"], []])
def test_a_conversation_goes_on_after_its_model_is_used_no_more(with_models, left) -> None:
    app, names = with_models
    place, _ = ask_by_form(app, question=QUESTION, model="first", recipe="kgp")
    for name in names:
        if name.rpartition("#")[2] not in left:
            remove_model(app, name)
    form = read_form(app, place, "follow")
    assert "“first” is used no more" in form["text"]
    status, next_place, _ = send_form(app, form, question="and a week?")
    assert status == 303 and "/q/" in next_place
    entry = await_answer(app, next_place)
    assert entry["answer"] is not None and entry["model"] == (left[0] if left else None)
    assert entry["follows"] == place.rpartition("/")[2]
    # Another way of asking it offers what is there.
    page = fetch_page(app, f"{place}/how")
    assert not page.all("option", value="first") and "“first” is used no more" in page.text


def test_a_page_that_was_open_when_its_model_was_removed_keeps_its_words(with_models) -> None:
    app, names = with_models
    place, _ = ask_by_form(app, question=QUESTION, model="first", recipe="kgp")
    stale = read_form(app, place, "follow")
    remove_model(app, names[0])
    status, _, html = send_form(app, stale, question="and a week?")
    reader = Forms()
    reader.feed(html)
    (form,) = [form for form in reader.all if "follow" in form["class"].split()]
    # It is the page of the conversation, not the first one, and says what is wrong.
    assert status == 400 and QUESTION in html and "no model named" in form["text"].lower()
    assert form["question"] == "and a week?"
    status, next_place, _ = send_form(app, form, question=form["question"])
    assert status == 303 and await_answer(app, next_place)["model"] == "second"


@pytest.mark.parametrize("gone", ["a document", "a graph", "all of it"])
def test_a_conversation_goes_on_after_what_it_was_asked_of_is_removed(served, keys, gone) -> None:
    assert served.upload("films.tsv", FILMS, to="graphs")["state"] == "done"
    keys = [document["key"] for document in served.get(f"{served.api}/documents")[1]["documents"]]
    asked = {"documents": keys[:2], "graphs": ["films"]}
    body = urlencode({"question": QUESTION, "recipe": "kgp", **asked}, doseq=True).encode()
    status, headers, _ = served.request("POST", f"/b/{served.base}/ask", body, {**FORM, **OWN})
    assert status == 303
    place = headers["location"]
    await_answer(served, place)
    stale = read_form(served, place, "follow")
    if gone != "a graph":
        for key in keys[:1] if gone == "a document" else keys[:2]:
            assert served.delete(f"{served.api}/documents/{key}")[0] == 200
    if gone != "a document":
        assert served.delete(f"{served.api}/graphs/films")[0] == 200
    form = read_form(served, place, "follow")
    assert "no longer here" in form["text"]
    left = {"a document": [keys[1]], "a graph": keys[:2], "all of it": None}[gone]
    for sent in (form, stale):
        status, next_place, html = send_form(served, sent, question="and a week?")
        if sent is stale:  # what an open page still names is refused there, and goes on with a click
            assert status in {400, 404} and QUESTION in html and "and a week?" in html
            continue
        assert status == 303
        assert await_answer(served, next_place)["documents"] == left


@pytest.mark.parametrize("gone", ["its document", "its graph"])
def test_a_question_whose_source_is_removed_while_it_runs_offers_to_ask_again(
    made_base, tmp_path, monkeypatch, gone
) -> None:
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    shutil.copytree(made_base, tmp_path / "harbour")
    free = threading.Event()

    def wait_for_removal(request):
        assert free.wait(PATIENCE)
        return QUOTING

    with (
        ScriptedServer(wait_for_removal) as model,
        ServedApp(tmp_path / "harbour", models=[model.llm]) as app,
    ):
        assert app.upload("films.tsv", FILMS, to="graphs")["state"] == "done"
        keys = [document["key"] for document in app.get(f"{app.api}/documents")[1]["documents"]]
        asked = {"documents": keys} if gone == "its document" else {"graphs": ["films"]}
        busy = [app.post(f"{app.api}/questions", {"question": f"{QUESTION} {n}?"})[1] for n in range(4)]
        # It waits for its turn behind the others.
        id = app.post(f"{app.api}/questions", {"question": QUESTION, "recipe": "kgp", **asked})[1]["id"]
        for key in keys if gone == "its document" else ():
            assert app.delete(f"{app.api}/documents/{key}")[0] == 200
        if gone == "its graph":
            assert app.delete(f"{app.api}/graphs/films")[0] == 200
        free.set()
        place = f"/b/{app.base}/q/{id}"
        entry = await_answer(app, place)
        for question in busy:
            await_answer(app, f"/b/{app.base}/q/{question['id']}")
        if entry["answer"] is not None:  # the method could do without it
            return
        form = read_form(app, place, "ask-again")
        assert "Ask again" in form["text"] and "no longer here" in form["text"]
        status, next_place, _ = send_form(app, form)
        assert status == 303
        again = await_answer(app, next_place)
        assert again["question"] == QUESTION and again["documents"] is None and again["graphs"] is None


def test_a_question_that_a_server_left_is_asked_again(made_base, tmp_path) -> None:
    shutil.copytree(made_base, tmp_path / "harbour")
    with ServedApp(tmp_path / "harbour") as app:
        first, _ = ask_by_form(app, question=QUESTION, recipe="kgp")
        second = app.post(
            f"{app.api}/questions", {"question": "and a week?", "follows": first.rpartition("/")[2]}
        )[1]["id"]
        await_answer(app, f"/b/{app.base}/q/{second}")
        history = app.serving.app.state.server.bases[app.base].history
        history.finish(second, "running")
    # As after a kill: what was being answered is marked as the next server starts.
    with ServedApp(tmp_path / "harbour") as app:
        place = f"/b/{app.base}/q/{second}"
        form = read_form(app, place, "ask-again")
        status, next_place, _ = send_form(app, form)
        assert status == 303
        entry = await_answer(app, next_place)
        assert entry["answer"] is not None and "a week" in entry["question"]
        assert entry["follows"] == first.rpartition("/")[2]


def test_a_question_whose_predecessor_was_forgotten_is_asked_again(made_base, tmp_path) -> None:
    shutil.copytree(made_base, tmp_path / "harbour")
    with ServedApp(tmp_path / "harbour") as app:
        first, _ = ask_by_form(app, question=QUESTION, recipe="kgp")
        second, _ = ask_by_form(app, question="and a week?", follows=first.rpartition("/")[2])
        history = app.serving.app.state.server.bases[app.base].history
        history.finish(second.rpartition("/")[2], "interrupted")
        history.forget(first.rpartition("/")[2])
        status, next_place, _ = send_form(app, read_form(app, second, "ask-again"))
        assert status == 303 and await_answer(app, next_place)["answer"] is not None


@pytest.fixture
def half_ready(tmp_path):
    """A base of two documents, of which one has no vectors, and a graph; nothing makes them."""
    texts = {
        "ready.md": "# Weir\n\nThe weir at Oxlade was built by Ada Merrin.\n",
        "late.md": "# Mill\n\nThe mill at Oxlade was built by Bo Tarn.\n",
    }
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set("clew:hops")
        for name, text in texts.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        base.add([tmp_path / "ready.md"])
        base.encoding.encode_missing()
        base.encoding.set(None)
        (tmp_path / "films.tsv").write_bytes(FILMS)
        base.add([tmp_path / "late.md"])
        base.graphs.add(tmp_path / "films.tsv")
        base.encoding.set("clew:hops")
        assert base.encoding.count_missing() > 0
    with ServedApp(tmp_path / "kb", read_only=True) as app:
        yield app


def test_an_answer_before_all_vectors_says_so_and_offers_to_ask_again(half_ready) -> None:
    app = half_ready
    keys = {
        document["document"]: document["key"] for document in app.get(f"{app.api}/documents")[1]["documents"]
    }
    chain = "Kismet >> director >> #1\nfinal answer: #1"
    for fields, is_early in (
        ({"question": "Who built the mill?"}, True),
        ({"question": "Who built the mill?", "documents": keys["late.md"]}, True),
        ({"question": "Who built the weir?", "documents": keys["ready.md"]}, False),
        ({"question": "", "chain": chain}, False),
    ):
        place, page = ask_by_form(app, **fields)
        assert ("Asked before all documents were ready" in page.text) == is_early, fields
    place, _ = ask_by_form(app, question="Who built the mill at Oxlade?")
    with clew.open(app.settings.bases[app.base]) as base:
        base.encoding.encode_missing()
    # It was asked early, whatever is ready by now; what is asked again was not.
    form = read_form(app, place, "ask-again")
    status, next_place, _ = send_form(app, form)
    assert status == 303
    assert await_answer(app, next_place)["early"] is False
    assert "Asked before all documents were ready" not in fetch_page(app, next_place).text
    assert app.get(f"{app.api}/questions/{place.rpartition('/')[2]}")[1]["early"] is True


def test_an_answer_while_files_wait_says_so(served) -> None:
    with served.serving.app.state.server.uploads.pause_worker():
        served.send_files(("late.md", b"# Weir\n\nThe weir stands at Oxlade.\n"))
        _, page = ask_by_form(served, question=QUESTION)
        assert "Asked before all documents were ready" in page.text
        key = served.get(f"{served.api}/documents")[1]["documents"][0]["key"]
        _, page = ask_by_form(served, question=QUESTION, documents=key)
        assert "Asked before all documents were ready" not in page.text
    waited_for(lambda: served.get(f"{served.api}/uploads")[1]["progress"] is None)
    _, page = ask_by_form(served, question=QUESTION)
    assert "Asked before all documents were ready" not in page.text
