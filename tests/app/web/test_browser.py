"""The app in a real browser: Debian's Chromium, headless. Each test has a base of its own."""

from __future__ import annotations

import json
import re
import shutil
import threading
from contextlib import closing
from pathlib import Path

import pytest
from pypdfium2 import PdfDocument

import clew
from browsing import ask, home, visit, wait_for_answer
from scripted import ScriptedServer
from serve_app import FILMS, PATIENCE, QUESTION, SAMPLES, ServedApp

pytestmark = pytest.mark.slow

REPORT, INQUIRY, CHARTER = (
    "oskell-passage-annual-report-1931.pdf",
    "heron-maid-inquiry.docx",
    "merrowgate-charter.md",
)
CONTRACT = "lighter-hire-contract.pdf"


def quoting(request):
    """A model that answers from the sources it is shown, and says what it needs where that is not among them."""
    if "structure" in request.system.lower() and "quotes" not in request.system:
        return {"references": []}
    wanted, answer = next((value for words, value in _REPLIES.items() if words in request.user), ([], ""))
    sources = re.split(r"^\[(\d+)\] ", request.user, flags=re.MULTILINE)
    texts = dict(zip(sources[1::2], sources[2::2], strict=True))
    results = [
        {"source": int(number), "text": words}
        for words in wanted
        for number, text in texts.items()
        if words in text
    ]
    missing = [words for words in wanted if not any(words in text for text in texts.values())]
    answer = "" if missing else answer
    return {"quotes": results, "why": "", "answer": answer, "missing": " ".join(missing)}


#: Words of a question, the words of the sources that answer it, and the answer.
_REPLIES: dict[str, tuple[list[str], str]] = {
    "owners are suing": (
        ["The owners of forty-one casks of lamp oil", "Casks of lamp oil"],
        "23 casks of lamp oil",
    ),
    "the longer": (["a single-screw steamer of 118 feet", "Heron Queen"], "the Heron Queen"),
}


def test_documents_of_three_formats_are_dropped_in_and_asked(open_page, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 and then nothing")
    with ScriptedServer(quoting) as model, ServedApp(tmp_path / "kb", models=[model.llm]) as app:
        page = open_page(app)
        assert "Drop documents in" in page.locator(".invite").inner_text()
        page.set_input_files("#files", [SAMPLES / REPORT, SAMPLES / INQUIRY, broken])
        page.wait_for_selector("#ask")
        page.wait_for_load_state("load")
        _drop(page, CHARTER)
        page.wait_for_selector(".documents li:nth-child(3)")
        # One that cannot be read says why, and can be put away; the others are there.
        failed = page.locator(".upload.failed")
        assert "broken.pdf" in failed.inner_text() and "not a whole PDF" in failed.inner_text()
        page.wait_for_selector(".upload:not(.failed)", state="detached")
        failed.locator("button").click()
        failed.wait_for(state="detached")
        shown = page.locator(".documents .name").all_inner_texts()
        assert all(
            file in words for file, words in zip(sorted([CHARTER, INQUIRY, REPORT]), shown, strict=True)
        )
        assert "The Charter of Merrowgate" in " ".join(shown)
        _six_cases(page)


def _six_cases(page) -> None:
    """The paper's case studies: two tables, a page, one document, a bridge, a comparison."""
    ask(page, f"What does the table on page 4 of {REPORT} say?", model="none")
    page.wait_for_selector(".answer table")
    cells = page.locator(".answer table td").all_inner_texts()
    place = cells.index("14,992")
    assert cells[place - 2 : place] == ["July 1931", "Long Passage"]
    ask(page, "How many people crossed by the Long Passage in July 1931?", model="none")
    assert "14,992" in wait_for_answer(page)
    ask(page, f"What is on page 2 of {REPORT}?", model="none")
    assert "a ferry is judged on its worst day" in wait_for_answer(page)
    ask(page, "Which travellers are to be carried for nothing?", model="none")
    assert "midwives" in wait_for_answer(page)
    documents = page.locator(".citations .where")
    assert CHARTER in documents.first.inner_text()
    for question, answer in (
        (
            "Of the casks whose owners are suing the ferry company, how many were saved?",
            "23 casks of lamp oil",
        ),
        ("Which of the two steamers was the longer, the Heron Maid or the Heron Queen?", "the Heron Queen"),
    ):
        ask(page, question, recipe="kgp")
        assert wait_for_answer(page).startswith(answer)
        named = " ".join(documents.all_inner_texts())
        assert REPORT in named and INQUIRY in named
        # Each is shown where it stands: one on the picture of its page, one in its own text.
        page.locator(".citations .open", has_text=REPORT).first.click()
        page.wait_for_selector(".viewer .sheet rect")
        page.locator(".citations .open", has_text=INQUIRY).first.click()
        page.wait_for_selector(f".viewer h2 >> text={INQUIRY}")
        assert page.locator(".viewer #here").count() == 1
        assert not page.locator(".viewer .sheet").count()


def _drop(page, name: str) -> None:
    """Drop a file on the page, as a person does from a folder."""
    held = page.evaluate_handle(
        "([name, text]) => { const held = new DataTransfer(); held.items.add(new File([text], name)); return held; }",
        [name, (SAMPLES / name).read_text(encoding="utf-8")],
    )
    page.dispatch_event("main", "dragover", {"dataTransfer": held})
    assert "over" in page.get_attribute("#drop", "class")
    page.dispatch_event("main", "drop", {"dataTransfer": held})


def test_a_citation_opens_on_its_page_with_its_box(served, open_page) -> None:
    page = open_page(served)
    ask(page, QUESTION)
    assert "$9" in wait_for_answer(page)
    page.locator(".answer [data-cite]").first.click()
    image = page.locator(".viewer .sheet img")
    image.wait_for()
    assert image.evaluate("one => one.decode().then(() => one.complete && one.naturalWidth > 500)")
    # A sentence over two lines has two boxes; what is around both is looked at.
    lines = [line.bounding_box() for line in page.locator(".viewer .sheet .mark.current").all()]
    assert len(lines) == 2
    left, top = (min(line[edge] for line in lines) for edge in "xy")
    right, bottom = (max(line[a] + line[b] for line in lines) for a, b in (("x", "width"), ("y", "height")))
    paper = image.bounding_box()
    box = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    view = page.locator(".viewer").bounding_box()
    assert paper["x"] <= box["x"] and box["x"] + box["width"] <= paper["x"] + paper["width"]
    assert paper["y"] <= box["y"] and box["y"] + box["height"] <= paper["y"] + paper["height"]
    # It is in view, not somewhere below.
    assert view["y"] <= box["y"] < view["y"] + view["height"]
    assert "$9" in page.locator(".viewer .page-text .here").inner_text()
    # What is printed under the box is the passage, and nothing else.
    share = [(box[a] - paper[a]) / paper[b] for a, b in (("x", "width"), ("y", "height"))]
    share += [share[0] + box["width"] / paper["width"], share[1] + box["height"] / paper["height"]]
    printed = _words_on_page(SAMPLES / CONTRACT, 2, *share)
    assert printed.startswith("If the lighter is not returned") and printed.endswith("the weekly rate.")
    page.locator(".viewer-bar .next").click()
    page.locator(".viewer .source h2", has_text="2").wait_for()


def test_pages_are_turned_enlarged_and_searched_and_words_selected(served, open_page) -> None:
    page = open_page(served)
    ask(page, QUESTION)
    wait_for_answer(page)
    page.locator(".answer [data-cite]").first.click()
    number = page.locator(".viewer input[name=page]")
    number.wait_for()
    assert number.input_value() == "2"
    page.locator(".viewer-body").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".viewer img[alt^='Page 1 ']")
    assert number.input_value() == "1" and page.locator(".viewer .turn[aria-disabled]").count() == 1
    page.keyboard.press("PageDown")
    page.wait_for_selector(".viewer img[alt^='Page 2 ']")
    # Evidence of the same answer is marked on the page that was turned to, and opens from there.
    assert page.locator(".viewer .sheet a[data-cite]").count() >= 1
    width = page.locator(".viewer .paper").bounding_box()["width"]
    assert page.locator(".viewer [data-zoom][aria-disabled=true]").get_attribute("data-zoom") == "-1"
    page.click(".viewer [data-zoom='1']")
    assert page.locator(".viewer [data-zoom][aria-disabled=true]").count() == 0
    assert page.locator(".viewer .paper").bounding_box()["width"] == pytest.approx(1.5 * width, rel=0.01)
    assert "scale=2" in page.locator(".viewer .sheet img").get_attribute("src")
    page.keyboard.press("-")
    page.evaluate(
        "() => { const text = [...document.querySelectorAll('.viewer .words text')]."
        "find(t => t.textContent.includes('berth')); getSelection().selectAllChildren(text); }"
    )
    assert page.evaluate("getSelection().toString()").strip() == "berth"
    page.fill(".viewer [name=words]", "late return")
    page.press(".viewer [name=words]", "Enter")
    page.locator(".viewer .places a").first.click()
    page.wait_for_selector(".viewer .match")
    page.click(".viewer .thumbs summary")
    page.locator(".viewer .thumbs a").first.click()
    page.wait_for_selector(".viewer img[alt^='Page 1 ']")
    page.keyboard.press("Escape")
    assert page.locator(".viewer").is_hidden()


def test_a_conversation_goes_on_and_is_found_renamed_and_pinned(served, open_page) -> None:
    page = open_page(served, permissions=["clipboard-read", "clipboard-write"])
    ask(page, QUESTION)
    wait_for_answer(page)
    with page.expect_navigation(wait_until="load"):
        page.fill(".follow textarea", "and a week?")
        page.press(".follow textarea", "Enter")
    wait_for_answer(page)
    meant = QUESTION.replace("a day", "a week")
    assert meant in page.locator(".understood summary").inner_text()
    assert QUESTION in page.locator(".earlier").inner_text()
    page.click("[data-copy]")
    page.wait_for_selector("text=Copied")
    assert meant in page.evaluate("navigator.clipboard.readText()")
    page.click(".understood summary")
    page.fill("#meant", "What is the rent of the lighter?")
    with page.expect_navigation(wait_until="load"):
        page.click("text=Ask this instead")
    wait_for_answer(page)
    assert page.locator(".history .question-line").count() == 1
    page.click(".history .menu summary")
    page.click(".history >> text=Rename")
    page.locator(".history li input").wait_for()  # its script may still be on the way
    page.keyboard.type("The lighter")
    page.keyboard.press("Enter")
    # The whole title: the question has its words too, and its line is drawn anew with its menu closed.
    page.wait_for_selector('.history a >> text="The lighter"')
    page.click(".history .menu summary")
    page.click(".history >> text=Pin")
    page.wait_for_selector(".history h3 >> text=Pinned")
    page.fill(".history [name=words]", "zeppelin")
    page.wait_for_selector(".history >> text=No question or answer has these words")
    page.fill(".history [name=words]", "the lighter")
    page.wait_for_selector('.history a >> text="The lighter"')


def test_what_is_pressed_before_its_script_is_there_is_done_once_it_is(served, open_page) -> None:
    page = open_page(served)
    page.locator(".documents li", has_text=CONTRACT).locator("input").check()
    page.wait_for_selector("#ask .chip")
    page.click(".more summary")
    page.select_option("#ask [name=recipe]", "kgp")
    page.fill("#question", QUESTION)
    waiting = {}
    page.route(
        re.compile(r"/static/(history|scope|walk)\.js"),
        lambda route: waiting.update({route.request.url.rpartition("/")[2]: route}),
    )
    with page.expect_navigation(wait_until="load"):
        page.press("#question", "Enter")
    wait_for_answer(page)
    chip, field = page.locator(".follow .chip"), page.locator(".history li input")
    note = page.locator(".walk-note:visible")
    chip.locator("button").click()
    page.click(".history .menu summary")
    page.click(".history >> text=Rename")
    with page.expect_request("**/walk.js"):
        page.click(".advanced summary")
    page.locator(".walk .place").first.hover()
    assert (chip.count(), field.count(), note.count()) == (1, 0, 0)
    waiting["walk.js"].continue_()
    note.wait_for()
    waiting["scope.js"].continue_()
    chip.wait_for(state="detached")
    waiting["history.js"].continue_()
    field.wait_for()


def _words_on_page(path, page: int, left: float, top: float, right: float, bottom: float) -> str:
    """The words of a PDF within a part of a page, whose edges are given as shares of its width and height."""
    with closing(PdfDocument(path)) as document:
        sheet = document[page - 1]
        width, height = sheet.get_size()
        words = sheet.get_textpage().get_text_bounded(
            left * width, (1 - bottom) * height, right * width, (1 - top) * height
        )
    return " ".join(words.split())


def test_the_walk_tells_of_each_node_by_pointer_and_by_keys(served, open_page) -> None:
    page = open_page(served)
    ask(page, QUESTION, recipe="kgp")
    wait_for_answer(page)
    assert "Looked in" in page.locator(".how-box").text_content()
    page.click(".advanced summary")
    places = page.locator(".walk .place")
    page.locator(".walk .place.cited").first.hover()
    note = page.locator(".walk-note:visible")
    note.wait_for()
    assert places.count() >= 3 and page.locator(".way").count() >= 2
    assert note.count() == 1 and "score" in note.inner_text()
    first = page.locator(".walk .place[tabindex='0']")
    first.focus()
    note_text = note.inner_text()
    page.keyboard.press("ArrowDown")
    assert note.count() == 1 and note.inner_text() != note_text
    assert page.evaluate("document.activeElement.dataset.row") == "1"
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_selector(".viewer .source")


def test_a_running_question_streams_its_trail_and_is_stopped(
    made_base, tmp_path, open_page, monkeypatch
) -> None:
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    shutil.copytree(made_base, tmp_path / "harbour")
    reached, free = threading.Event(), threading.Event()

    def waiting(request):
        if "quotes" not in request.prompt:
            return {"references": []}
        reached.set()
        assert free.wait(PATIENCE)
        return {"quotes": [{"source": 1, "text": "shall pay $9"}], "answer": "$9", "abstain": False}

    with ScriptedServer(waiting) as model, ServedApp(tmp_path / "harbour", models=[model.llm]) as app:
        try:
            page = open_page(app)
            ask(page, QUESTION, recipe="kgp")
            page.wait_for_selector(".live .step >> text=Followed names and references")
            assert reached.wait(PATIENCE) and not page.locator(".answer").count()
            assert page.locator(".live .trail").get_attribute("aria-live") == "polite"
            # Loaded again, the trail is there from its beginning, once.
            page.reload()
            page.wait_for_selector(".live .step >> text=Followed names and references")
            assert page.locator(".live .step >> text=Searched for passages").count() == 1
            page.locator(".live .stop").click()
            page.wait_for_selector(".live .state >> text=Stopping")
        finally:
            free.set()
        page.wait_for_selector(".answer")
        assert "stopped" in page.locator(".answer h2").inner_text()
        # The button is gone, and who used it by key is where the answer begins.
        assert not page.locator(".stop").count()


def test_the_history_outlives_the_page_and_forgets_when_told(served, open_page) -> None:
    page = open_page(served)
    ask(page, QUESTION)
    text = wait_for_answer(page)
    page.reload()
    assert wait_for_answer(page) == text
    home(page)
    visit(page, ".questions a")
    assert wait_for_answer(page) == text
    with page.expect_download() as download:
        page.click("text=Download")
    assert "$9" in Path(download.value.path()).read_text(encoding="utf-8")
    home(page)
    page.locator(".questions .menu summary").click()
    page.locator(".questions .quiet >> text=Forget").click()
    page.keyboard.press("Enter")  # the dialog begins at the button that keeps
    assert page.locator(".questions li").count() == 1
    page.locator(".questions .quiet >> text=Forget").click()
    page.click("#confirm button[value=yes]")
    page.wait_for_selector(".questions li", state="detached")
    page.reload()
    assert "Nothing was asked yet" in page.locator(".history").inner_text()


def test_a_document_that_holds_scripts_stays_text(open_page, tmp_path) -> None:
    script = "<script>window.owned = 1</script><img src=x onerror='window.owned = 2'>"
    text = f"# Bridge {script}\n\nThe bridge `{script}` was built by Ada.\n\n| a |\n| --- |\n| `{script}` |\n"
    source = tmp_path / "<img src=x onerror=alert(1)>.md"
    source.write_text(text, encoding="utf-8")
    graph = tmp_path / "films.tsv"
    graph.write_text(f"{script}\tdirector\tLudwig {script}\n", encoding="utf-8")
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        page = open_page(app)
        page.set_input_files("#files", source)
        page.wait_for_selector(".documents >> text=onerror")
        page.set_input_files("#graph-files", graph)
        page.wait_for_selector(".documents a >> text=films")
        ask(page, f"Who built the bridge {script}?")
        assert "<script>window.owned" in wait_for_answer(page)
        page.locator(".citations .open").first.click()
        page.wait_for_selector(".viewer .here >> text=<script>")
        page.click(".viewer .close")
        page.click(".advanced summary")
        page.wait_for_selector(".trail-box")
        assert "&lt;script&gt;" in page.locator(".how-parts").inner_html()
        page.goto(f"http://127.0.0.1:{app.port}/b/kb/g/films")
        home(page)
        visit(page, ".documents a")
        page.locator(".outline a").first.click()
        page.wait_for_selector(".viewer .source")
        assert page.evaluate("window.owned") is None
        assert not page.locator("img[src=x]").count()


def test_a_chain_shows_where_each_unknown_comes_from(open_page, tmp_path) -> None:
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        assert app.upload("films.tsv", FILMS, to="graphs")["state"] == "done"
        page = open_page(app)
        page.click(".more summary")
        page.fill("#chain", "Kismet >> director >> #1\n#1 >> born in >> #2\nfinal answer: #2")
        with page.expect_navigation(wait_until="load"):
            page.click("#ask button.primary")
        assert wait_for_answer(page).startswith("Mainz")
        page.click(".advanced summary")
        page.wait_for_selector(".hops")
        hops = page.locator(".hops li").all_inner_texts()
        assert len(hops) == 2 and "Ludwig Berger" in hops[1]
        assert "from the graph films" in page.locator(".unknown.final").inner_text()
        page.locator(".citations .open").first.click()
        page.wait_for_selector(".viewer .triple >> text=Kismet")


def test_a_method_that_cannot_be_asked_says_why(served, open_page) -> None:
    page = open_page(served)
    page.click(".more summary")
    page.locator("select[name=recipe]").focus()
    option = page.locator("select[name=recipe] option[value=selfask]")
    page.wait_for_selector("select[name=recipe] option[value=selfask][disabled]", state="attached")
    assert "needs a language model" in option.text_content()
    assert page.locator("select[name=recipe] option[value=kgp]").is_enabled()


def test_a_removed_document_is_gone_and_its_answers_keep_what_they_quote(served, open_page) -> None:
    page = open_page(served)
    ask(page, QUESTION)
    wait_for_answer(page)
    home(page)
    page.locator(".documents li", has_text=CONTRACT).locator("button").click()
    page.locator(".documents li", has_text=CONTRACT).wait_for(state="detached")
    assert json.dumps(served.get(f"{served.api}/documents")[1]).count(CONTRACT) == 0
    visit(page, ".questions a")
    page.locator(".answer [data-cite]").first.click()
    page.wait_for_selector(".viewer .warn >> text=source removed")
    assert "the Hirer shall pay $9" in page.locator(".viewer .here").inner_text()
    with clew.open(served.settings.bases[served.base]) as base:
        assert len(base.documents()) == 2


def test_what_was_refused_stays_in_view_when_the_first_document_makes_room(open_page, tmp_path) -> None:
    for name in ("one.md", "two.md", "three.md"):
        (tmp_path / name).write_text(f"# {name}\n\nThe weir of {name} stands at Oxlade.\n", encoding="utf-8")
    (tmp_path / "empty.md").touch()
    for number, order in enumerate((["empty.md", "one.md"], ["one.md", "two.md", "three.md", "empty.md"])):
        with ServedApp(tmp_path / f"kb{number}", encoder="none") as app:
            page = open_page(app)
            page.set_input_files("#files", [tmp_path / name for name in order])
            page.wait_for_selector("#ask")
            assert "it is empty" in page.locator("#sending .failed").inner_text()
            page.wait_for_selector(f".documents li:nth-child({len(order) - 1}) a")
            page.click(".more summary")
            page.select_option("#ask [name=recipe]", "read")
            page.fill("#question", "Where does the weir stand?")
            with page.expect_navigation(wait_until="load"):
                page.press("#question", "Enter")
            assert "Oxlade" in wait_for_answer(page)


def test_a_citation_of_a_question_that_was_forgotten_meanwhile_says_so(served, browser) -> None:
    page = browser.new_page()  # the browser logs the reply that is no success
    page.goto(f"http://127.0.0.1:{served.port}/")
    ask(page, QUESTION)
    wait_for_answer(page)
    served.delete(f"{served.api}/questions/{page.url.rpartition('/')[2]}")
    page.locator(".citations .open").first.click()
    page.wait_for_selector(".viewer .problem >> text=may have been forgotten")
    # Only what the server says, not its whole page within this one.
    assert page.locator("main").count() == 1 and not page.locator(".viewer .top").count()
    page.close()


def test_a_question_that_a_restart_left_goes_on_with_one_click(
    made_base, tmp_path, browser, monkeypatch
) -> None:
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    shutil.copytree(made_base, tmp_path / "harbour")
    reached, free = threading.Event(), threading.Event()

    def wait_for_restart(request):
        reached.set()
        assert free.wait(PATIENCE)
        return {"quotes": [{"source": 1, "text": "shall pay $9"}], "answer": "$9", "abstain": False}

    page = browser.new_page()  # the browser logs that the server cannot be reached
    page.set_default_timeout(1000 * PATIENCE)
    with ScriptedServer(wait_for_restart) as model:
        with ServedApp(tmp_path / "harbour", models=[model.llm]) as app:
            port = app.port
            page.goto(f"http://127.0.0.1:{port}/")
            ask(page, QUESTION, recipe="kgp")
            assert reached.wait(PATIENCE)
        with ServedApp(tmp_path / "harbour", models=[model.llm], port=port):
            # The open page finds out by itself.
            page.wait_for_selector(".ask-again button")
            free.set()
            with page.expect_navigation(wait_until="load"):
                page.click(".ask-again button")
            assert "9" in wait_for_answer(page)
    page.close()
