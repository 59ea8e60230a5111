"""The languages of the app: every message in each of them, a language for each browser, no word of English."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from app_messages import WEB, collect_messages, count_forms, load_catalogue, render_catalogue
from browsing import ask, wait_for_answer
from clew.app.web.pages import language
from clew.app.web.pages.render import (
    as_sentence,
    format_confidence,
    format_duration,
    format_remaining,
    template_environment,
)
from clew.app.web.pages.texts import translate_text
from page_reader import FORM, OWN, ask_by_form
from serve_app import QUESTION

OTHERS = [code for code in language.LANGUAGES if code != "en"]
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Dest": "document"}
#: Words of English pages that no page in German has, outside the texts of documents and of people.
ENGLISH = set(
    "the of and to is are were your ask asked asking answer answers question questions page pages back remove close "
    "delete rename find search show all settings projects documents document add choose here with without this that "
    "nothing no not from by for on where what which before after language models compare changed passages quote "
    "quotes first rows read reading look looked kept found people light dark key address use service use".split()
)


@pytest.fixture
def speak():
    """Makes texts in a language, afterwards in English again."""
    yield lambda code: language.set_language(language.LANGUAGES[code])
    language.set_language(language.ENGLISH)


def parts_of(text: str) -> list[str]:
    """Return what a translation must have, too: what is put in, percent signs, tags."""
    return sorted(re.findall(r"%\(\w+\)s|%%|</?\w+>", text))


def test_every_message_is_in_each_catalogue_with_its_parts() -> None:
    messages = collect_messages()
    assert len(messages) > 500
    for code in OTHERS:
        catalogue = load_catalogue(code)
        header = catalogue.pop(("", "")).translations[0]
        plural: Callable[[int], int] = vars(language.translations(code))["plural"]
        numbers = Counter(plural(n) for n in range(1_000))
        assert set(catalogue) == set(messages), f"run python tests/app_messages.py {code}"
        for key, message in catalogue.items():
            case = (code, message.text, message.translations)
            assert message.is_translated and message == messages[key], case
            assert len(message.translations) == (count_forms(header) if message.plural else 1), case
            for form, text in enumerate(message.translations):
                wanted = parts_of(message.plural or message.text)
                # The form for no thing, one or two need not have the number.
                if message.plural and numbers[form] == 1 and "%(num)s" not in text:
                    wanted.remove("%(num)s")
                assert parts_of(text) == wanted, case
                # A message may stand in an attribute of a page.
                assert '"' not in text and not re.search(r"[<>&]", re.sub(r"</?\w+>", "", text)), case
        assert render_catalogue(code, messages) == (language.catalogue_text(code), [])


def test_no_text_of_a_template_is_left_unmarked() -> None:
    """Text between tags, and in attributes that are shown or spoken, is put in by a function."""
    left = []
    names = "clew|Word|Excel|CSV|Markdown|JSON|openapi.json|OpenAI|pip install .*|The whole description, .*"
    for path in sorted((WEB / "pages" / "templates").glob("*.html")):
        text = re.sub(r"{#.*?#}", "", path.read_text("utf-8"), flags=re.S)
        text = re.sub(r"{{.*?}}|{%.*?%}", "\0", text, flags=re.S)
        shown = re.findall(r'(?:aria-label|placeholder|title|alt|data-confirm)="([^"]*)"', text)
        shown += re.sub(r"<[^>]*>", "\n", text).replace("\0", "\n").split("\n")
        examples = (
            r"[\w.-]+\.example\.org\S*|www\.example.*|gpt-4o-mini|date &gt;.*|Kismet.*|: JSON API|https?:.*"
        )
        for words in (word.strip(" .·/…") for word in shown):
            if re.search(r"[A-Za-z]{3}", re.sub(r"&\w+;", "", words)) and not re.fullmatch(
                f"{names}|{examples}", words
            ):
                left.append((path.name, words))
    assert [item for item in left if item[1] not in {"default:"}] == []


class OwnText(HTMLParser):
    """The words of the app on a page: without texts of documents and people, names, code and what is under
    "Advanced"."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[bool] = []
        self.words: set[str] = set()

    def handle_starttag(self, tag, attrs) -> None:
        fields = dict(attrs)
        classes = set((fields.get("class") or "").split())
        foreign = tag in {"bdi", "code", "option", "script", "style", "table", "text", "title"} or fields.get(
            "dir"
        ) in {"auto", "ltr"}
        foreign |= bool(classes & {"more", "advanced", "section", "chip", "caption"})
        if tag not in {"input", "img", "meta", "link", "br"}:
            self.stack.append(foreign or bool(self.stack and self.stack[-1]))
        if not foreign and not (self.stack and self.stack[-1]):
            self.handle_data(" ".join(fields.get(name) or "" for name in ("placeholder", "alt")))

    def handle_endtag(self, tag) -> None:
        if tag not in {"input", "img", "meta", "link", "br"}:
            self.stack.pop()

    def handle_data(self, data) -> None:
        if not (self.stack and self.stack[-1]):
            # Paths and addresses are no words.
            self.words |= set(re.findall(r"[a-z]+", re.sub(r"\S*[/.]\S+", " ", data.casefold())))


def english_words(server, paths) -> dict[str, set[str]]:
    """Return the English words of the app on pages in German, by their paths."""
    english = {}
    for path in paths:
        page = OwnText()
        page.feed(server.request("GET", path, headers={**BROWSER, "Accept-Language": "de"})[2].decode())
        assert len(page.words) > 3, path
        if words := page.words & ENGLISH:
            english[path] = words
    return english


def test_german_pages_have_no_english_words(app, own, keys) -> None:
    key = keys["merrowgate-charter.md"]
    names = ("", "removed", "about", "basket", "grids", "changes", f"d/{key}", f"d/{key}?at=1")
    assert english_words(app, [*(f"/b/{app.base}/{name}" for name in names), "/nothing"]) == {}
    # Other tests add to the projects of this app; what is wrong with a file is said in English.
    assert english_words(own, ["/projects", "/settings", f"/b/{own.base}/part/add"]) == {}


@pytest.mark.slow
def test_german_answers_have_no_english_words(app, keys) -> None:
    place, _ = ask_by_form(app, question=QUESTION)
    unanswered, _ = ask_by_form(app, question="Who invented the telescope?")
    key = keys["lighter-hire-contract.pdf"]
    names = (
        "",
        "about?name=Bittern",
        "about?name=Bitern",
        f"changes?before={key}&after={keys['merrowgate-charter.md']}",
    )
    pages = [f"/b/{app.base}/{name}" for name in (*names, f"d/{key}/page?page=1", f"d/{key}/find?words=1929")]
    assert english_words(app, [place, unanswered, f"{place}/cite/1", *pages]) == {}
    # Half of an answer is under "Advanced": there the labels are German, and what a method says of itself is not.
    how = app.request("GET", f"{place}/how", headers={"Accept-Language": "de"})[2].decode()
    assert "Spur" in how and "Trail" not in how
    text = app.request("GET", place, headers={"Accept-Language": "de"})[2].decode()
    assert "So wurde das gefunden" in text and re.search(
        r"In \d Dokument(en)? gesucht, \d+ Textstellen gefunden", text
    )


def test_a_browser_gets_its_language_or_the_one_that_was_chosen(app) -> None:
    def start(path="/settings", **headers):
        text = app.request("GET", path, headers={**BROWSER, **headers})[2].decode()
        return re.search(r"<html[^>]*>", text)[0], text

    cases = {
        "": '<html lang="en">',
        "pl, de;q=0.8": '<html lang="de">',
        "ar-EG": '<html lang="ar" dir="rtl">',
        "zh-TW,en;q=0.5": '<html lang="zh">',
        "es;q=x": '<html lang="es">',
    }
    for accepted, opening in cases.items():
        assert start(**{"Accept-Language": accepted})[0] == opening
    assert start(Cookie="clew_language=es", **{"Accept-Language": "de"})[0] == '<html lang="es">'
    assert start(Cookie="clew_language=tlh", **{"Accept-Language": "de"})[0] == '<html lang="de">'
    # Pages that no route of pages makes have it, too.
    opening, text = start("/nothing", **{"Accept-Language": "ar"})
    assert 'dir="rtl"' in opening and "Nothing is here" not in text
    assert '<option value="es" lang="es" selected>' in start(Cookie="clew_language=es")[1]
    # Only the chosen language is delivered, and none for English; the API stays English.
    assert "/static/words/" not in start()[1]
    assert re.findall(r"/static/words/\w+\.js", start(**{"Accept-Language": "de"})[1]) == [
        "/static/words/de.js"
    ]
    status, headers, body = app.request("GET", "/static/words/ar.js")
    assert status == 200 and headers["content-type"].startswith("text/javascript") and b"n%100" in body
    again = {"If-None-Match": headers["etag"]}
    assert app.request("GET", "/static/words/ar.js", headers=again)[0] == 304
    assert app.request("GET", "/static/words/fr.js")[0] == 404
    asked = {**FORM, **OWN, "Accept-Language": "de"}
    assert "Die Frage ist leer." in app.request("POST", f"/b/{app.base}/ask", b"question=", asked)[2].decode()
    assert app.post(f"{app.api}/questions", {"question": ""}, **{"Accept-Language": "de"})[1]["error"] == (
        "the question is empty"
    )


def test_numbers_dates_and_plurals_are_those_of_the_language(speak) -> None:
    assert [language.format_integer(n) for n in (999, 1234, 1234567)] == ["999", "1,234", "1,234,567"]
    assert language.format_day(date(2026, 11, 3)) == "Tuesday 3 November"
    speak("de")
    assert language.format_count(1234, "page") == "1.234 Seiten" and format_duration(7.31) == "7,3 s"
    assert language.format_day(date(2026, 11, 3)) == "Dienstag, 3. November"
    assert language.format_moment(datetime(2026, 3, 9, 7, 5)) == "9. März 2026, 07:05"
    assert format_confidence(0.001) == "unter 1 %" and format_remaining(7300) == "etwa 2 h"


def test_errors_are_translated_where_they_are_known(speak) -> None:
    assert as_sentence(translate_text("there is no folder /a 100 km")) == "There is no folder /a 100 km."
    speak("de")
    assert as_sentence(translate_text("there is no folder /a")) == "Es gibt keinen Ordner /a."
    assert translate_text("disk I/O error") == "disk I/O error" and translate_text("") == ""
    assert translate_text("100 %(x)s") == "100 %(x)s"


def test_what_is_put_into_a_message_is_escaped() -> None:
    render = template_environment().from_string
    name = '<b>"&'
    assert render('{{ _("Kept in %(folder)s on this computer.", folder=folder) }}').render(
        folder=Path(name)
    ) == ("Kept in &lt;b&gt;&#34;&amp; on this computer.")
    text = render(
        '{{ ngettext("%(num)s place with “%(words)s”", "%(num)s places with “%(words)s”", 1234, words=name) }}'
    )
    assert text.render(name=name) == "1,234 places with “&lt;b&gt;&#34;&amp;”"


def test_a_damaged_catalogue_is_refused() -> None:
    with pytest.raises(ValueError, match="no line of a catalogue"):
        list(language.read_catalogue('msgid "a"\nmsgstr b\n'))


@pytest.mark.slow
def test_an_arabic_app_reads_from_right_to_left(app, open_page) -> None:
    page = open_page(app, locale="ar")
    page.goto(f"http://127.0.0.1:{app.port}/b/{app.base}/")
    ask(page, QUESTION)
    assert "$9" in wait_for_answer(page)
    answer, home = page.url, f"http://127.0.0.1:{app.port}/b/{app.base}/"
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for address in (
            home,
            answer,
            f"{answer}/how",
            f"{home}grids",
            f"{home}changes",
            home.partition("/b/")[0] + "/settings",
        ):
            page.goto(address)
            assert page.evaluate("getComputedStyle(document.body).direction") == "rtl"
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (width, address)
    # The messages of scripts are Arabic, in the form for two.
    page.goto(home)
    for box in page.locator(".documents input[id^=d-]").all()[:2]:
        box.check()
    # What shows the choice is loaded with the first.
    page.wait_for_selector(".picked:not([hidden])")
    assert page.locator(".picked .count").inner_text() == "اختير اثنان"
    # The chosen language stays.
    page.goto(home.partition("/b/")[0] + "/settings")
    with page.expect_navigation(wait_until="load"):
        page.select_option("[name=language]", "de")
    assert page.locator("h1").inner_text() == "Einstellungen" and page.evaluate("document.dir") == ""
    with page.expect_navigation(wait_until="load"):
        page.select_option("[name=language]", "")
    assert page.evaluate("document.documentElement.lang") == "ar"
