"""The pages as they are served: what they show, that all of it is text, and how they explain what goes wrong."""

from __future__ import annotations

import gzip
import json
import re
from urllib.parse import quote, urlencode

import pytest

from clew.app.web.history import QuestionHistory
from clew.app.web.pages.context import QUESTIONS_PER_PAGE
from page_reader import FORM, OWN, Elements, ask_by_form, fetch_page
from serve_app import FILMS, QUESTION, SAMPLES, ServedApp

CONTRACT, READINGS = "lighter-hire-contract.pdf", "gauge-readings-march-1929.csv"
SCRIPT = '<script>alert(1)</script><img src=x onerror="alert(2)">'


@pytest.mark.slow
def test_a_base_shows_its_documents_and_a_form(app, keys) -> None:
    page = fetch_page(app, f"/b/{app.base}/")
    assert {item["value"] for item in page.all("input", name="documents")} == set(keys.values())
    (form,) = page.all("form", id="ask")
    assert form["method"] == "post" and page.all("textarea", name="question")
    offered = {item["value"] for item in page.all("option")}
    assert {"default", "kgp", "chain", "read"} <= offered and "golden" not in offered
    assert app.request("GET", "/")[1]["location"] == f"/b/{app.base}/"


@pytest.mark.slow
def test_an_empty_base_shows_the_upload_form_unless_it_is_read_only(tmp_path) -> None:
    with ServedApp(tmp_path / "new", encoder="none") as app:
        page = fetch_page(app, f"/b/{app.base}/")
        assert (
            "Drop documents in" in page.text and page.all("input", type="file") and not page.all("textarea")
        )
    with ServedApp(tmp_path / "new", read_only=True) as app:
        page = fetch_page(app, f"/b/{app.base}/")
        assert not page.all("input", type="file") and "Drop documents in" not in page.text


def test_a_question_is_asked_with_a_form_and_answered_on_a_page_of_its_own(app) -> None:
    place, page = ask_by_form(app, question=QUESTION, recipe="default", also="", chain="")
    assert "$9 for every day" in page.text and "Looked in" in page.text
    cites = [item["href"] for item in page.all("a", **{"class": "open"})]
    assert cites and cites[0].startswith(f"{place}/cite/")
    # The same without scripts: each citation is a page.
    cited = fetch_page(app, cites[0])
    assert "Late return" in cited.text and cited.all("mark")
    (image,) = [item for item in cited.all("img") if item["alt"]]
    assert app.request("GET", image["src"])[1]["content-type"] == "image/png"
    (sheet,) = [item for item in cited.all("svg") if item["class"] == "boxes"]
    width, height = (float(item) for item in sheet["viewbox"].split()[2:])
    box = next(box for box in cited.all("rect") if "current" in box["class"])
    x, y, w, h = (float(box[name]) for name in ("x", "y", "width", "height"))
    assert 0 <= x < x + w <= width and 0 <= y < y + h <= height and h < height / 4
    assert QUESTION in fetch_page(app, f"/b/{app.base}/").text


@pytest.mark.slow
def test_a_cell_is_cited_in_its_table_with_its_row_marked(app) -> None:
    place, page = ask_by_form(app, question="What was the level at Fenner Mouth on 1929-03-14 at 06:00?")
    number = next(
        item for item in range(1, 9) if "3.62" in fetch_page(app, f"{place}/cite/{item}?part=1").text
    )
    shown = fetch_page(app, f"{place}/cite/{number}?part=1")
    rows = shown.all("tr")
    assert len([row for row in rows if row.get("class") == "here"]) == 1 and len(rows) > 20
    assert page.all("table")


@pytest.mark.slow
def test_a_cell_of_a_pdf_is_drawn_in_its_row_on_the_page(tmp_path, embedded) -> None:
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        name = "oskell-passage-annual-report-1931.pdf"
        app.upload(name, (SAMPLES / name).read_bytes())
        question = "What was the percentage change in total revenue from 1930 to 1931?"
        place, page = ask_by_form(app, question=question, recipe="default", also="", chain="")
        assert "-1.31%" in page.text
        shown = fetch_page(app, f"{place}/cite/1?part=1")
        (row,), cells = (
            [
                {edge: float(box[edge]) for edge in ("x", "y", "width", "height")}
                for box in shown.all("rect", **{"class": name})
            ]
            for name in ("mark current", "answer")
        )
        assert len(cells) == 2
        for cell in cells:
            assert row["x"] < cell["x"] and cell["width"] < row["width"] / 4
            assert row["y"] <= cell["y"] and cell["y"] + cell["height"] <= row["y"] + row["height"]


def test_a_restricted_question_says_so_and_two_methods_stand_side_by_side(app, keys) -> None:
    place, page = ask_by_form(
        app, question=QUESTION, recipe="kgp", also="read", documents=keys[CONTRACT], chain=""
    )
    articles = page.all("article")
    assert [article["aria-label"] for article in articles] == ["Answer by kgp", "Answer by read"]
    assert page.text.count(f"asked of {CONTRACT} only") == 2
    assert page.text.count("same answer; ") + page.text.count("different answer; ") == 2
    first = f"/b/{app.base}/q/{articles[0]['data-id']}"
    assert len(fetch_page(app, first).all("article")) == 1
    # The other one is forgotten: this one stands alone.
    app.delete(f"{app.api}/questions/{articles[0]['data-id']}")
    assert len(fetch_page(app, place).all("article")) == 1


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"question": "  "}, "The question is empty."),
        ({"question": "who", "recipe": "kgb"}, "No recipe named 'kgb'"),
        ({"question": "who", "documents": "x"}, "String should match"),
        ({"question": "who", "graphs": "films"}, "No graph named 'films'"),
        ({"question": "who " * 2000}, "The question has more than 4,000 characters."),
    ],
)
def test_what_is_wrong_is_said_above_the_form_which_keeps_its_words(app, fields, text) -> None:
    body = urlencode(fields).encode()
    status, _, got = app.request("POST", f"/b/{app.base}/ask", body, {**FORM, **OWN})
    page = Elements()
    page.feed(got.decode())
    assert status in {400, 422} and page.all("p", role="alert")
    assert text.lower() in page.text.lower()
    assert fields["question"].strip() in page.text


def test_errors_are_pages_that_explain(app) -> None:
    for path in (
        f"/b/{app.base}/q/nothing",
        f"/b/{app.base}/nothing",
        "/b/nothing/",
        f"/b/{app.base}/d/{'0' * 32}",
    ):
        page = fetch_page(app, path, 404)
        assert "Nothing is here" in page.text and page.all("a", href="/")
    assert app.get("/api/bases/nothing")[0] == 404  # and JSON for programs


def test_another_sites_page_cannot_ask_with_our_form(app) -> None:
    before = app.get(f"{app.api}/questions")[1]["questions"]
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        status, *_ = app.request("POST", f"/b/{app.base}/ask", b"question=who", {**FORM, **headers})
        assert status == 403
    assert app.get(f"{app.api}/questions")[1]["questions"] == before
    # A browser sends the origin with a form only where the policy of the page lets it.
    assert app.request("GET", f"/b/{app.base}/")[1]["referrer-policy"] == "same-origin"


def test_a_document_shows_its_outline_and_each_place_in_it(app, keys) -> None:
    page = fetch_page(app, f"/b/{app.base}/d/{keys[CONTRACT]}")
    late = next(item for item in page.all("a") if "at=" in (item.get("href") or ""))
    shown = fetch_page(app, late["href"])
    assert shown.all("img", alt=f"Page 1 of {CONTRACT}")
    table = fetch_page(app, f"/b/{app.base}/d/{keys[READINGS]}?at=1&part=1")
    assert table.all("table")


def test_what_was_left_out_of_a_document_stands_on_its_page(own) -> None:
    done = own.upload(
        "lease.md", b"# Lease\n\nThe rent is ~~90 <b> crowns~~ 120 crowns.\n\nNo ~~90 <b> crowns~~.\n"
    )
    # It is no remark that stays among the uploads until somebody puts it away.
    assert done["state"] == "done" and not done["notes"]
    page = fetch_page(own, f"/b/{own.base}/d/{done['key']}")
    assert "6 words were left out" in page.text and "struck out (2×): 90 <b> crowns" in " ".join(
        page.text.split()
    )
    assert "left out" not in fetch_page(own, f"/b/{own.base}/").text


def test_the_description_of_the_api_reads_as_text(app) -> None:
    page = fetch_page(app, "/api/docs")
    assert "GET /api/config" in page.text and "`" not in page.text


def test_style_and_scripts_are_kept_and_asked_for_again(app) -> None:
    status, headers, _ = app.request("GET", "/static/clew.css")
    assert status == 200 and headers["cache-control"] == "no-cache"
    again = app.request("GET", "/static/clew.css", headers={"If-None-Match": headers["etag"]})
    assert again[0] == 304
    # A browser asks for the icon of a document that it shows by itself.
    status, headers, _ = app.request("GET", "/favicon.ico")
    assert status == 307 and app.request("GET", headers["location"])[0] == 200


def test_pages_are_packed_for_those_who_unpack_them(app) -> None:
    place = f"/b/{app.base}/"
    _, plain, whole = app.request("GET", place)
    _, headers, body = app.request("GET", place, headers={"Accept-Encoding": "gzip"})
    assert (
        headers["content-encoding"] == "gzip"
        and gzip.decompress(body) == whole
        and len(body) < len(whole) / 2
    )
    assert "accept-encoding" in headers["vary"].lower() and "content-encoding" not in plain


@pytest.mark.slow
def test_everything_from_documents_graphs_and_questions_is_text(tmp_path) -> None:
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        name = "<img src=x onerror=alert(3)>.md"
        text = f"# Bridge {SCRIPT}\n\nThe bridge `{SCRIPT}` was built by Ada.\n\n| who | {SCRIPT} |\n| --- | --- |\n"
        done = app.upload(name, f"{text}| Ada | `{SCRIPT}` |\n".encode())
        assert done["state"] == "done", done
        films = f"{SCRIPT}\tdirector\tLudwig {SCRIPT}\n".encode()
        app.upload("films.tsv", films, to="graphs")
        places = [f"/b/{app.base}/", f"/b/{app.base}/d/{done['key']}", f"/b/{app.base}/g/films"]
        places.append(f"/b/{app.base}/g/films?called={quote(SCRIPT)}")
        places.append(f"/b/{app.base}/?find={quote(SCRIPT)}&question={quote(SCRIPT)}&chain={quote(SCRIPT)}")
        for question in (f"Who built the bridge {SCRIPT}?", "What does the table say?"):
            place, page = ask_by_form(app, question=question)
            places += [place, f"{place}/answer", f"{place}/how"]
            places += [item["href"] for item in page.all("a", **{"class": "open"})]
        place, _ = ask_by_form(app, chain=f"{SCRIPT} >> director >> #1; final answer: #1", recipe="chain")
        places.append(place)
        for path in places:
            page = fetch_page(app, path)
            assert all(item["src"].startswith("/static/") for item in page.all("script")), path
            assert not [item for item in page.all("img") if item["src"] == "x"], path
        assert any("<script>alert(1)</script>" in fetch_page(app, path).text for path in places)


@pytest.mark.slow
def test_the_walk_is_drawn_with_a_note_for_each_node(app) -> None:
    place, _ = ask_by_form(app, question=QUESTION, recipe="kgp")
    page = fetch_page(app, f"{place}/how")
    places = [item for item in page.all("g") if "place" in item["class"]]
    assert places and [place["tabindex"] for place in places].count("0") == 1
    notes = {item["data-for"] for item in page.all("div") if item.get("class") == "walk-note"}
    assert notes == {place["data-id"] for place in places}
    assert "considered" in page.text and "seed" in page.text
    assert any("cited" in place["class"] and place["data-cite"] for place in places)


@pytest.mark.slow
def test_a_graph_shows_its_schema_and_what_it_says_of_a_node(tmp_path) -> None:
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        assert app.upload("films.tsv", FILMS, to="graphs")["state"] == "done"
        page = fetch_page(app, f"/b/{app.base}/g/films?called=Ludwig+Berger")
        assert "Kismet" in page.text and "Mainz" in page.text and "born in" in page.text
        assert (
            "Nothing in the graph 'films' is called 'Nobody'"
            in fetch_page(app, f"/b/{app.base}/g/films?called=Nobody").text
        )
        chain = "Kismet >> director >> #1; #1 >> born in >> #2; final answer: #2"
        place, page = ask_by_form(app, chain=chain)
        assert "Mainz" in page.text and "from the graph films" in fetch_page(app, f"{place}/how").text
        cited = fetch_page(app, f"{place}/cite/1?part=1")
        assert "Ludwig Berger in the graph films" in cited.text or "Kismet in the graph films" in cited.text
        assert "Mainz" in fetch_page(app, f"{place}/cite/2?part=1").text


@pytest.mark.slow
def test_triples_are_substituted_and_each_answer_says_what_it_meets(tmp_path) -> None:
    boats = b"Heron Maid\tbuilt by\tGarrow\nLady Annis\tbuilt by\tGarrow\nHeron Maid\tcaptain\tRufus\n"
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        assert app.upload("boats.tsv", boats, to="graphs")["state"] == "done"
        triples = "#1 >> built by >> Garrow; not #1 >> captain >> Rufus; final answer: #1"
        _, page = ask_by_form(app, chain=triples, recipe="focus")
        (table,) = page.text.split("Answers, best first")[1:]
        assert "Lady Annis" in table and "Heron Maid" not in table and "Near names" not in page.text
        _, page = ask_by_form(app, chain=triples.replace("Garrow", "garrow"), recipe="focus")
        assert "Near names: taking “garrow” as Garrow" in page.text
        (table,) = page.text.split("Answers, best first")[1:]
        assert table.index("Lady Annis") < table.index("Heron Maid")
        states = [item["class"] for item in page.all("td") if (item.get("class") or "").startswith("check")]
        assert states[:4] == ["check met", "check met", "check met", "check missed"]
        assert "loose" in [row.get("class") for row in page.all("tr")]


@pytest.mark.slow
def test_what_an_answer_rested_on_is_shown_though_the_document_is_gone(tmp_path) -> None:
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        done = app.upload("a.md", b"# Mill\n\nThe mill at Oxlade grinds barley.\n")
        place, page = ask_by_form(app, question="What does the mill at Oxlade grind?")
        assert page.all("a", **{"class": "open"}), page.text
        app.delete(f"{app.api}/documents/{done['key']}")
        cited = fetch_page(app, f"{place}/cite/1?part=1")
        assert "This is what the answer kept of it" in cited.text
        assert fetch_page(app, place).all("a", **{"class": "open"})


@pytest.mark.slow
def test_ranked_answers_are_a_table_of_what_each_meets(tmp_path) -> None:
    folder = tmp_path / "kb"
    with ServedApp(folder, encoder="none") as app:
        place, _ = ask_by_form(app, question="Which film is it?")
        id = place.rpartition("/")[2]
        with QuestionHistory(folder) as history:
            answer = history.get(id)["answer"]
        check = {
            "constraint": "#1 >> by >> Lynch",
            "met": 1.0,
            "evidence": [{"id": "x", "text": "Dune >> by >> Lynch"}],
        }
        row = {
            "name": "Dune",
            "id": "films:9",
            "graph": "films",
            "score": 1.0,
            "by": "vector 0.71",
            "meets_all": True,
            "missed": [],
            "text": "Dune",
        }
        loose = row | {
            "name": "Tron",
            "id": "films:7",
            "meets_all": False,
            "checks": [check | {"met": 0.0, "evidence": []}],
        }
        ranked = [row | {"checks": [check]}, loose]
        with QuestionHistory(folder) as history:
            history.finish(id, "done", json.loads(json.dumps(answer | {"ranked": ranked})))
        page = fetch_page(app, place)
        assert "#1 >> by >> Lynch" in page.text and "vector 0.71" in page.text
        states = [item["class"] for item in page.all("td") if (item.get("class") or "").startswith("check")]
        assert states == ["check met", "check missed"]
        assert page.all("a", href=f"/b/{app.base}/g/films?called=9")


@pytest.mark.slow
def test_every_question_of_a_long_history_is_on_some_page(tmp_path) -> None:
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        history = app.serving.app.state.bases[app.base].history
        for number in range(2 * QUESTIONS_PER_PAGE + 5):
            asking = {"question": f"Number {number}?", "chain": "", "recipe": "read", "beside": None}
            history.begin(f"q{number}", asking)
            history.finish(f"q{number}", "done", {"answer": "Nothing.", "abstained": True})
        address, listed = f"/b/{app.base}/", []
        while address:
            page = fetch_page(app, address)
            listed += [
                item["href"].rpartition("/")[2] for item in page.all("a") if "/q/" in (item["href"] or "")
            ]
            older = [item["href"] for item in page.all("a") if "before=" in (item["href"] or "")]
            address = older[0].partition("#")[0] if older else ""
        # Nothing is in the base any more, and what was asked of it is there still.
        assert listed == [f"q{number}" for number in reversed(range(2 * QUESTIONS_PER_PAGE + 5))]
        assert fetch_page(app, f"/b/{app.base}/?before=nonsense", 422)


def test_a_follow_up_is_shown_as_it_is_understood_with_what_was_asked_before(app, keys) -> None:
    place, page = ask_by_form(app, question=QUESTION, documents=keys[CONTRACT])
    (form,) = [form for form in page.all("form") if "follow" in (form.get("class") or "")]
    assert form["action"] == f"/b/{app.base}/ask"
    id = place.rpartition("/")[2]
    assert page.all("input", name="follows", value=id) and page.all(
        "input", name="documents", value=keys[CONTRACT]
    )
    meant = QUESTION.replace("a day", "a week")
    status, refused = app.post(f"{app.api}/questions/{id}/follow-up", {"question": "and a week " * 1_000})
    assert status == 400 and refused["error"] == "the question has more than 4,000 characters"
    assert app.post(f"{app.api}/questions/{id}/follow-up", {"question": "and a week?"})[1] == {
        "question": meant
    }
    after, page = ask_by_form(app, question="and a week?", follows=id)
    assert f"Understood as: {meant}" in page.text and "and a week?" in page.text
    assert page.all("a", href=place) and page.all("input", name="verbatim")
    stored = app.get(f"{app.api}/questions/{after.rpartition('/')[2]}")[1]
    assert (stored["question"], stored["typed"], stored["follows"]) == (meant, "and a week?", id)
    after, _ = ask_by_form(app, question="Which document says so?", follows=id)
    stored = app.get(f"{app.api}/questions/{after.rpartition('/')[2]}")[1]
    assert (stored["question"], stored["answer"]["answer"]) == (QUESTION, CONTRACT)
    # What it was understood as can be put right, and is then asked as it is written.
    _, page = ask_by_form(app, question="And who pays it?", follows=id, verbatim="true")
    assert "Understood as" not in page.text and page.all("a", href=place)
    text = app.request("GET", f"{app.api}/questions/{id}/export?form=text")[2].decode()
    assert text.startswith(QUESTION) and "$9" in text and f"[1] {CONTRACT}" in text


@pytest.mark.slow
def test_the_sidebar_finds_renames_and_pins(served) -> None:
    for question in (QUESTION, "Which travellers are to be carried for nothing?"):
        place, _ = ask_by_form(served, question=question)
    id = place.rpartition("/")[2]
    found = fetch_page(served, f"/b/{served.base}/part/history?words=travellers")
    assert "Today" in found.text and QUESTION not in found.text and found.all("a", href=place)
    body = {"title": "Passengers", "pinned": True}
    assert served.json("PATCH", f"{served.api}/questions/{id}", body)[0] == 200
    page = fetch_page(served, f"/b/{served.base}/")
    assert page.text.index("Pinned") < page.text.index("Passengers") < page.text.index("Today")
    assert served.json("PATCH", f"{served.api}/questions/nothing", body)[0] == 404


def test_suggested_questions_come_from_headings_and_tables(app) -> None:
    page = fetch_page(app, f"/b/{app.base}/")
    suggested = [item["value"] for item in page.all("button", name="question")]
    assert any(text.startswith("What does the section “") for text in suggested)
    assert f"What does the table on page 2 of {CONTRACT} show?" in suggested


def test_methods_that_need_a_model_are_grey_and_say_so(app) -> None:
    problems = {item["name"]: item["problem"] for item in app.get(f"{app.api}/recipes")[1]["recipes"]}
    need = {
        name for name, problem in problems.items() if problem and "needs a language model" in problem["error"]
    }
    page = fetch_page(app, f"/b/{app.base}/")
    grey = {item["value"] for item in page.all("option") if "disabled" in item}
    assert grey == need and "needs a language model, and none is set" in page.text


@pytest.mark.slow
def test_a_row_and_a_sentence_are_marked_and_pages_are_turned(app, keys) -> None:
    place, _ = ask_by_form(app, question=QUESTION)
    cited = fetch_page(app, f"{place}/cite/1?part=1")
    lines = [box for box in cited.all("rect") if "current" in box["class"]]
    (paper,) = [item for item in cited.all("svg") if item["class"] == "boxes"]
    # The sentence is over two lines, each of which has its box.
    assert len(lines) == 2
    assert all(float(line["height"]) < float(paper["viewbox"].split()[3]) / 30 for line in lines)
    # The words of the page can be selected, each in its place.
    assert "berth" in cited.text and cited.all("text", lengthadjust="spacingAndGlyphs")
    before = next(item for item in cited.all("a") if item.get("data-turn") == "-1")
    assert not [item for item in cited.all("a") if item.get("data-turn") == "1"]  # it is the last page
    first = fetch_page(app, before["href"] + "&part=1")
    assert first.all("img", alt=f"Page 1 of {CONTRACT}") and first.all("input", name="page", value="1")
    # Evidence that stands on this page too has its number there.
    assert [item for item in first.all("a") if item.get("data-cite")]
    assert fetch_page(app, f"/b/{app.base}/d/{keys[CONTRACT]}/page?page=99").all(
        "input", name="page", value="2"
    )
    assert fetch_page(app, f"/b/{app.base}/d/{keys[READINGS]}/page", 400)


def test_words_are_found_in_a_document_and_marked_on_its_pages(app, keys) -> None:
    address = f"/b/{app.base}/d/{keys[CONTRACT]}/find?words=LATE++return"
    found = fetch_page(app, address)
    (link,) = [item for item in found.all("a") if "words=" in (item.get("href") or "")]
    shown = fetch_page(app, link["href"])
    assert len([box for box in shown.all("rect") if box["class"] == "match"]) == 2
    assert "does not stand in this document" in fetch_page(app, f"{address}x").text
    table = fetch_page(app, f"/b/{app.base}/d/{keys[READINGS]}/find?words=Pellow")
    assert "page" not in table.text.partition("Pellow")[2].lower() and len(table.all("li")) > 1


@pytest.mark.slow
def test_the_original_is_served_byte_for_byte_and_only_a_pdf_is_opened(app, keys) -> None:
    for name, way in ((CONTRACT, "inline"), (READINGS, "attachment")):
        status, headers, body = app.request("GET", f"{app.api}/documents/{keys[name]}/original")
        assert status == 200 and body == (SAMPLES / name).read_bytes()
        assert (
            headers["content-disposition"].startswith(way) and headers["x-content-type-options"] == "nosniff"
        )


@pytest.mark.slow
def test_a_long_table_is_complete_in_parts(tmp_path) -> None:
    lines = "name,size\n" + "".join(f"item {n}x,{n}\n" for n in range(1, 1_001))
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        key = app.upload("items.csv", lines.encode())["key"]
        tree = app.get(f"{app.api}/documents/{key}/nodes?limit=5000")[1]["nodes"]
        table = next(n for n, node in enumerate(tree) if node["kind"] == "table")
        address, seen = f"/b/{app.base}/d/{key}?at={table}&part=1", []
        while address:
            page = fetch_page(app, address)
            seen += re.findall(r"item (\d+)x", page.text)
            after = [item["href"] for item in page.all("a") if re.search(r"rows=\d", item.get("href") or "")]
            address = f"{after[-1]}&part=1" if len(seen) < 1_000 else ""
        assert seen == [str(n) for n in range(1, 1_001)]
        page = fetch_page(app, f"/b/{app.base}/d/{key}?at={table}&part=1&rows=-1")
        assert re.findall(r"item (\d+)x", page.text) == seen
        row = next(n for n, node in enumerate(tree) if "item 777x" in node["text"] and node["kind"] == "row")
        page = fetch_page(app, f"/b/{app.base}/d/{key}?at={row}&part=1")
        assert "rows 601 to 800 of 1,000" in page.text
        assert len([line for line in page.all("tr") if line.get("class") == "here"]) == 1
