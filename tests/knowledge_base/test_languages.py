import sqlite3

import pytest

import clew
from clew.core.types import LanguageStep

FILES = {
    "haus.txt": "Die Häuser am Markt wurden im Jahr 1850 gebaut. Der Brand von 1903 hat sie nicht erreicht.",
    "boot.txt": "Das Boot liegt im Hafen und wird im Winter an Land gezogen, damit das Eis es nicht beschädigt.",
    "mill.txt": "The mill was built by the town in 1871, and it has been idle since the flood of 1929.",
    "list.txt": "Opel Corsa 1.4",
}

RECIPE = "read(retriever=bm25, reader=span)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("languages")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with clew.open(folder / ".clew", create=True) as base:
        base.encoding.set(None)
        base.add([folder], workers=1)
    return folder


def names(hits):
    return [hit.node.document_name for hit in hits]


@pytest.mark.slow
def test_a_document_keeps_its_language_and_is_found_by_its_stems(folder):
    with clew.open(folder / ".clew") as base:
        languages = {document.name: document.language for document in base.documents()}
        assert languages == {"haus.txt": "de", "boot.txt": "de", "mill.txt": "en", "list.txt": ""}
        assert base.info().languages == {"de": 2, "en": 1, "": 1}
        # Neither word is in the text as it is asked for: Haus is Häuser, floods is flood.
        assert names(base.search("Haus", retriever="bm25")) == ["haus.txt"]
        assert names(base.search("Which floods?", retriever="bm25")) == ["mill.txt"]
        assert names(base.search("Wann zog man das Boot an Land?", retriever="default"))[0] == "boot.txt"


def test_a_question_in_another_language_gets_sentences_and_says_why_once(folder):
    with clew.open(folder / ".clew") as base:
        answer = base.ask("Wann wurden die Häuser am Markt gebaut?", recipe=RECIPE)
        assert answer.reader == "extractive"
        assert answer.text.startswith("Die Häuser am Markt wurden im Jahr 1850 gebaut.")
        assert [step.language for step in answer.trail if isinstance(step, LanguageStep)] == ["de"]
        assert len(answer.fallbacks) == 1 and "the question is in German" in answer.fallbacks[0]
        assert not base.ask("When was the mill built?", recipe=RECIPE).fallbacks


@pytest.mark.slow
def test_a_base_from_before_languages_detects_them_when_it_is_indexed(folder, tmp_path):
    with clew.open(tmp_path / "old", create=True) as base:
        base.encoding.set(None)
        base.add([folder], workers=1)
    with sqlite3.connect(tmp_path / "old" / "base.sqlite") as connection:
        connection.execute("UPDATE document SET language = NULL")
    connection.close()
    with clew.open(tmp_path / "old") as base:
        base.store.doctor()
        base.store.catch_up()
        assert base.info().languages == {"de": 2, "en": 1, "": 1}
        assert names(base.search("Haus", retriever="bm25")) == ["haus.txt"]


def test_the_multilingual_encoder_is_suggested_where_most_is_not_english(folder, tmp_path, monkeypatch):
    with clew.open(folder / ".clew") as base:
        base.remove("list.txt")
        assert base.encoding.suggest() == ""  # no encoder was wanted
        monkeypatch.setattr(type(base.encoding), "name", "clew:hops")
        assert base.encoding.suggest().startswith(
            "most of this knowledge base is not in English but in German"
        )
        base.remove("haus.txt", "boot.txt")
        assert base.encoding.suggest() == ""
