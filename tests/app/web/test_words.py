"""The words on the screens: none of a list of jargon outside "Advanced", a direction for every text, pages for people
where something goes wrong."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from page_reader import ask_by_form
from serve_app import QUESTION, ServedApp

#: Words that a person who never wrote a program need not know.
JARGON = """
    kgp|ircot|selfask|self-ask|iterretgen|dsp|dpr|mdr|4stepfocus|semi-cot|chain-of-thought|cot|few-?shot|drill|focus
    triples?|nodes?|edges?|seeds?|hops?|recipes?|retrievers?|rerank\\w*|readers?|encoders?|encod\\w+|embeddings?|vectors?|tokens?
    bm25|tf-?idf|cosine|top-k|corpus|ingest\\w*|parsers?|parsing|chunks?|schema|sparql|rdf|json|api|endpoints?|parquet|tsv
    ontolog\\w+|entit\\w+|walk|trail|abstain\\w*|confidence|spans?|extractive|baselines?|golden|prompts?|inference|cassette
    knowledge bases?|stdin|stdout|null|none|onnx\\S*|llm|cli|localhost|http|regex|boolean|generation|snapshot
    --[a-z]\\S*|clew (?:add|ask|serve|info|graph)
"""
WORDS = re.compile(
    rf"(?<![\w-])(?:{'|'.join(JARGON.split(chr(10))[1:-1]).replace('    ', '')})(?![\w-])", re.I
)
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Dest": "document"}
#: Elements whose text is not shown, or only to those who open "Advanced".
_SKIPPED = {"script", "style", "title"}
_VOID = {"input", "img", "meta", "link", "br", "progress"}


class ShownText(HTMLParser):
    """The text of a page that a person reads without opening "Advanced", with labels and hints of fields."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[bool] = []
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        fields = dict(attrs)
        classes = (fields.get("class") or "").split()
        hidden = tag in _SKIPPED or (tag == "details" and {"more", "advanced"} & set(classes))
        hidden = hidden or "to-programs" in classes
        if tag not in _VOID:
            self.stack.append(bool(hidden or (self.stack and self.stack[-1])))
        if not (hidden or (self.stack and self.stack[-1])):
            self.text += (
                " ".join(fields.get(name) or "" for name in ("aria-label", "placeholder", "alt")) + " "
            )

    def handle_endtag(self, tag) -> None:
        if tag not in _VOID and self.stack:
            self.stack.pop()

    def handle_data(self, data) -> None:
        if not (self.stack and self.stack[-1]):
            self.text += data


def jargon_on(app, path: str) -> set[str]:
    page = ShownText()
    page.feed(app.request("GET", path, headers=BROWSER)[2].decode())
    assert len(page.text.split()) > 5
    return {match.group().casefold() for match in WORDS.finditer(page.text)}


def test_the_list_has_sixty_words() -> None:
    assert len([word for line in JARGON.split("\n") for word in line.strip().split("|") if word]) >= 60
    assert WORDS.findall("Add --llm ollama, then clew add FILE: 3 nodes, encoded") == [
        "--llm",
        "clew add",
        "nodes",
        "encoded",
    ]


def test_no_jargon_outside_advanced(app, own, keys) -> None:
    place, _ = ask_by_form(app, question=QUESTION)
    unanswered, _ = ask_by_form(app, question="Who invented the telescope?")
    id = place.rpartition("/")[2]
    follow, _ = ask_by_form(app, question="and a week?", follows=id)
    key = next(iter(keys.values()))
    paths = [f"/b/{app.base}/", place, unanswered, follow, f"{place}/cite/1", f"/b/{app.base}/d/{key}"]
    paths += [
        f"/b/{app.base}/d/{key}?at=1",
        "/nothing",
        f"/b/{app.base}/q/nothing",
        f"/b/{app.base}/part/history?words=x",
    ]
    new = [
        f"/b/{app.base}/{name}" for name in ("removed", "about?name=Bittern", "basket", "part/add", "grids")
    ]
    new += [f"/b/{app.base}/changes?before={key}&after={key}", "/projects", "/settings"]
    paths = [*new, *paths]
    assert jargon_on(own, "/settings") == set() and jargon_on(own, "/projects") == set()
    found = {path: words for path in paths[:-1] if (words := jargon_on(app, path))}
    assert found == {}


@pytest.mark.slow
def test_no_jargon_on_the_first_screens(tmp_path) -> None:
    with ServedApp(tmp_path / "new", encoder="none", token="a-token-of-the-tests") as app:
        assert jargon_on(app, "/login") == set()
    with ServedApp(tmp_path / "new", tmp_path / "other", encoder="none") as app:
        assert jargon_on(app, "/") == set() and jargon_on(app, f"/b/{app.base}/") == set()
        assert app.upload("broken.pdf", b"%PDF-1.7 and then nothing")["state"] == "failed"
        assert jargon_on(app, f"/b/{app.base}/") == set()


@pytest.mark.slow
def test_who_opens_an_address_gets_a_page_and_a_program_gets_json(app) -> None:
    for path in ("/nothing", "/api/bases/nothing", f"{app.api}/documents/{'0' * 32}/pages/1.png"):
        status, headers, body = app.request("GET", path, headers=BROWSER)
        assert status == 404 and headers["content-type"].startswith("text/html")
        assert b"Nothing is here" in body and b'href="/"' in body
        status, headers, body = app.request("GET", path, headers={"Accept": "*/*"})
        assert status == 404 and headers["content-type"] == "application/json" and b'"error"' in body
    # What a script of a page asks for, or an image, is no page.
    status, headers, _ = app.request("GET", "/nothing", headers={**BROWSER, "Sec-Fetch-Dest": "empty"})
    assert headers["content-type"] == "application/json"


@pytest.mark.slow
def test_texts_of_documents_and_people_have_a_direction_of_their_own(tmp_path) -> None:
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        app.upload("bridge.md", "# الجسر القديم\n\nبنى الجسر القديم أحمد في عام 1901.\n".encode())
        _, page = ask_by_form(app, question="من بنى الجسر القديم؟")
        texts = [
            attrs
            for tag, attrs in page.found
            if tag in {"h1", "textarea", "blockquote"} or attrs.get("class") in {"passage", "text", "q"}
        ]
        assert texts and all(attrs.get("dir") == "auto" for attrs in texts), texts
