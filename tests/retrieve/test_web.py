"""The web search against a server of SerpApi's protocol on this machine."""

import json

import pytest
from typer.testing import CliRunner

import hop_base
from clew.app.cli.commands import app
from clew.core.errors import RemoteError, UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import PASSAGE, ROW, Question, Scope
from clew.knowledge_base import registry
from clew.models import create_language_model
from clew.retrieve.web import SerpApi
from hop_base import BORN, QUESTION, reading
from raw_server import RawServer, endless
from scripted import ScriptedServer
from web_server import ENTRY, PAGES, WebServer

HARKER = Question("Where was Wilmot Harker born?")


@pytest.fixture
def base(tmp_path):
    with hop_base.make_base(tmp_path / "base") as base:
        yield base


@pytest.fixture
def web(monkeypatch):
    with WebServer() as server:
        monkeypatch.setenv("CLEW_SERPAPI_URL", server.url)
        yield server


def test_results_become_passages_with_title_and_address():
    with WebServer() as server:
        hits = SerpApi(server.url, "secret").retrieve(HARKER, 3)
        assert server.asked == [
            ("/search.json", {"engine": "google", "q": HARKER.text, "num": "3", "api_key": "secret"})
        ]
    # The one without a text says nothing.
    assert [hit.node.text for hit in hits] == [PAGES[0][2], PAGES[1][2], PAGES[3][2]][: len(hits)]
    first = hits[0].node
    assert (first.kind, first.document_name, first.document, first.headings) == (
        PASSAGE,
        PAGES[0][0],
        PAGES[0][1],
        (PAGES[0][1],),
    )
    assert all(hit.node.id.startswith("web:") and hit.path == (hit.node.id,) for hit in hits)
    assert len({hit.node.id for hit in hits}) == len(hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_the_answer_box_and_the_entry_come_first():
    def shape(fields):
        box = {
            "type": "organic_result",
            "title": "Harker",
            "answer": "Dunmere",
            "snippet": "Born in Dunmere.",
        }
        results = [{"title": "T", "link": "https://example.org/t", "snippet": "S"}] * 2
        return {"answer_box": box, "knowledge_graph": ENTRY, "organic_results": results}

    with WebServer(shape) as server:
        box, entry, page = SerpApi(server.url).retrieve(HARKER, 10)
        assert "api_key" not in server.asked[0][1]
        assert len(SerpApi(server.url).retrieve(HARKER, 2)) == 2
    assert (box.node.document_name, box.node.text) == ("Harker", "Dunmere\nBorn in Dunmere.")
    assert box.node.document == box.node.id and box.node.headings == ()
    assert entry.node.text == (
        "Wilmot Harker. Music teacher. Wilmot Harker taught in Boston.\nBorn: 3 May 1901, Dunmere"
    )
    assert entry.node.document == ENTRY["source"]["link"]
    assert page.node.text == "S" and page.score == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"error": "Google hasn't returned any results for this query."},
        {"organic_results": None, "answer_box": [1], "knowledge_graph": "x"},
        {"organic_results": [None, 3, {"title": "t"}, {"snippet": {"a": 1}}, {"snippet": " "}]},
        {"answer_box": {"type": "weather"}, "knowledge_graph": {"kgmid": "/m/1"}},
    ],
)
def test_what_has_no_results_or_another_form_finds_nothing(answer):
    with WebServer(lambda fields: answer) as server:
        assert SerpApi(server.url).retrieve(HARKER, 5) == []


def test_a_search_is_asked_once_and_an_empty_one_never():
    with WebServer() as server:
        search = SerpApi(server.url)
        assert search.retrieve(HARKER, 2) == search.retrieve(Question(" Where was  Wilmot Harker born? "), 2)
        assert search.retrieve(Question(" \n"), 5) == []
        assert search.retrieve(Question("x", Scope(kinds=frozenset({ROW}))), 5) == []
        assert len(server.asked) == 1
        search.retrieve(HARKER, 500)
        assert server.asked[1][1]["num"] == "100"
        # What no address can hold is asked without it.
        search.retrieve(Question("Harker \ud83d & Boston=?"), 2)
        assert server.asked[2][1]["q"] == "Harker ? & Boston=?"
        with pytest.raises(UsageError, match="cannot be restricted to documents"):
            search.retrieve(Question("x", Scope(documents=frozenset({"a"}))), 5)


def test_a_busy_service_is_asked_again_when_it_says():
    waits = []
    script = [(429, {"Retry-After": "7"}, "{}"), (503, {}, "busy")]
    with WebServer(script=script) as server:
        hits = SerpApi(server.url, sleep=waits.append).retrieve(HARKER, 1)
        assert len(server.asked) == 3 and len(hits) == 1
    assert waits == [7.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "turn, asked, problem, hint",
    [
        (
            (401, {}, '{"error": "Invalid API key: secret."}'),
            1,
            r"refused the key: Invalid API key: \.\.\.",
            "KEY",
        ),
        ((403, {}, "no"), 1, "refused the key", "CLEW_SERPAPI_KEY"),
        ((400, {}, '{"error": "Missing query"}'), 1, r"HTTP 400\): Missing query", ""),
        ((429, {}, '{"error": "Your account has run out of searches."}'), 1, "no searches left", ""),
        ((429, {"Retry-After": "600"}, "{}"), 1, "asks to wait 600 seconds", "Ask again"),
        ((429, {}, "{}"), 3, "is busy \\(HTTP 429\\)", "Ask again later"),
        ((200, {}, "<html>"), 1, "other than a JSON object", "SerpApi's protocol"),
        ((200, {}, "[1]"), 1, "other than a JSON object", "SerpApi's protocol"),
        (0.5, 3, "did not answer within 0.1 seconds", "Ask again later"),
    ],
)
def test_what_goes_wrong_is_said_without_the_key(turn, asked, problem, hint):
    with WebServer(script=[turn] * 3) as server:
        with pytest.raises(RemoteError, match=problem) as raised:
            SerpApi(server.url, "secret", timeout=0.1, sleep=lambda seconds: None).retrieve(HARKER, 1)
        assert len(server.asked) == asked
    assert hint in raised.value.hint and "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:{}/", "//localhost:{}/search.json", "http://2130706433:{}/"]
)
def test_a_search_leads_nowhere_else_and_has_an_end(place):
    with WebServer() as other:
        leads = (302, {"Location": place.format(other.url.rpartition(":")[2])}, "")
        with WebServer(script=[leads]) as server:
            with pytest.raises(RemoteError, match="redirects to another place") as refused:
                SerpApi(server.url, "secret").retrieve(HARKER, 1)
            assert "secret" not in str(refused.value)
        assert other.asked == []
    with (
        RawServer(lambda request: endless(b"HTTP/1.1 200 OK\r\n\r\n")) as server,
        pytest.raises(RemoteError, match="larger than 64"),
    ):
        SerpApi(server.url).retrieve(HARKER, 1)


def test_a_service_that_is_not_there_and_an_address_that_is_none():
    with WebServer() as server:
        url = server.url
    with pytest.raises(RemoteError, match="cannot be reached") as raised:
        SerpApi(url, "secret").retrieve(HARKER, 1)
    assert "secret" not in str(raised.value) and "secret" not in repr(SerpApi(url, "secret"))
    for wrong in ("file:///etc/passwd", "serpapi.com", ""):
        with pytest.raises(UsageError, match="no address of a web search"):
            SerpApi(wrong)
    with pytest.raises(UsageError, match="has a password in it") as refused:
        SerpApi("https://me:secret@example.org")
    assert "secret" not in str(refused.value)


def test_the_catalogue_needs_a_key_for_the_service_itself(base, monkeypatch):
    monkeypatch.delenv("CLEW_SERPAPI_URL", raising=False)
    monkeypatch.delenv("CLEW_SERPAPI_KEY", raising=False)
    with pytest.raises(UsageError, match="'serpapi' needs a key") as raised:
        registry.build_retriever("serpapi", base)
    assert "CLEW_SERPAPI_KEY" in raised.value.hint
    monkeypatch.setenv("CLEW_SERPAPI_KEY", "k")
    assert isinstance(registry.build_retriever("serpapi", base), SerpApi)


@pytest.mark.parametrize(
    "recipe",
    [
        "kgp(seeding=serpapi)",
        "kgp(seeding=hybrid(a=bm25, b=serpapi))",
        "read(retriever=drill(search=serpapi))",
    ],
)
def test_what_starts_from_the_base_cannot_start_from_the_web(base, web, recipe):
    with pytest.raises(UsageError, match="starts from passages of the base"):
        registry.build_method(recipe, base)


def script(request):
    """Take part in every method: ask on once, then answer; read what is in the sources."""
    if "numbered sources" in request.system:
        return reading(request)
    if "step by step" in request.system:
        return "So the answer is: Dunmere."
    if "Thought, Action and Observation" in request.system:
        here = request.user.rpartition(QUESTION)[2]
        return "Finish[Dunmere]" if "Observation" in here else "Search[village where Wilmot Harker was born]"
    if "one hop at a time" in request.system:
        here = request.user.rpartition(f"{QUESTION}\nContext: ")[2]
        return "None." if BORN in here else "Nothing.\nSearch query: village where Wilmot Harker was born"
    if "one sentence at a time" in request.system:
        return "Wilmot Harker was born in the village of Dunmere."
    here = request.user.rpartition(QUESTION)[2]
    return (
        "So the final answer is: Dunmere."
        if "Intermediate" in here
        else "Follow up: Where was Wilmot Harker born?"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    [
        "read(retriever=serpapi)",
        "read(retriever=hybrid(a=bm25, b=serpapi))",
        "selfask(retriever=serpapi)",
        "ircot(retriever=serpapi, reader=cited)",
        "cot(retriever=serpapi)",
        "iterretgen(retriever=serpapi)",
        "react(retriever=serpapi)",
        "dsp(retriever=serpapi)",
    ],
)
def test_methods_answer_over_the_web(base, web, recipe):
    with ScriptedServer(script) as server:
        method = registry.build_method(recipe, base, llm=create_language_model(server.llm))
        answer = method.answer(Question(QUESTION), TrailRecorder())
    assert answer.text == "Dunmere" and web.asked
    assert any(hit.node.document == "https://example.org/harker" for hit in answer.evidence)
    if not recipe.startswith("cot"):
        assert {quote.text for quote in answer.quotes} == {BORN}


def test_without_a_model_the_web_is_read_extractively(base, web):
    answer = registry.build_method("read(retriever=serpapi)", base).answer(HARKER, TrailRecorder())
    assert "Dunmere" in answer.text and answer.evidence[0].node.id.startswith("web:")


def test_the_command_line_says_where_questions_go_and_shows_the_address(base, web, tmp_path, monkeypatch):
    words = ["--kb", str(tmp_path / "base")]
    result = CliRunner().invoke(app, ["search", HARKER.text, "--retriever", "serpapi", *words, "--json"])
    assert result.exit_code == 0, result.output
    (first, *_) = json.loads(result.stdout)["hits"]
    assert (first["key"], first["document"]) == ("https://example.org/harker", PAGES[0][0])
    result = CliRunner().invoke(app, ["ask", HARKER.text, "--retriever", "serpapi", *words])
    assert result.exit_code == 0 and "https://example.org/harker" in "".join(result.output.split())
    assert "sent to" not in result.output  # this machine
    # An address that is not known to be this machine is said before anything is sent there.
    monkeypatch.setenv("CLEW_SERPAPI_URL", "http://0.0.0.0:1/path")
    for command in (
        ["search", HARKER.text, "--retriever", "serpapi", *words],
        ["ask", HARKER.text, "--method", "read(retriever=hybrid(a=bm25, b=serpapi))", *words],
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 2
        output, _, problem = result.output.partition("sent to http://0.0.0.0:1\n")
        assert "the question" in output and "cannot be reached" in problem


def test_questions_with_answers_alone_are_evaluated_over_the_web(web, tmp_path):
    (tmp_path / "asked.csv").write_text(
        f"Question,Answer\n{HARKER.text},Dunmere\nWho taught Alf Clausen?,Mars\n"
    )
    out = str(tmp_path / "runs")
    words = [
        "--data",
        f"bamboogle={tmp_path / 'asked.csv'}",
        "--corpus",
        "none",
        "--encoder",
        "none",
        "--out",
        out,
    ]
    ran = CliRunner().invoke(app, ["eval", "run", *words, "-r", "read(retriever=serpapi)"])
    assert ran.exit_code == 0, ran.output
    assert {fields["q"] for _, fields in web.asked} == {HARKER.text, "Who taught Alf Clausen?"}
    result = CliRunner().invoke(app, ["eval", "report", out, "-m", "accuracy", "--format", "json"])
    (run,) = json.loads(result.stdout)["runs"]
    assert run["metrics"]["accuracy"]["mean"] == 0.5
