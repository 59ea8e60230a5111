"""Views are made before somebody asks: at the start and after an upload, not while questions are answered."""

import shutil

import pytest

from clew.app.web.bases import BaseWarmer, ServedBases
from clew.app.web.settings import Settings
from serve_app import ServedApp, waited_for

PROFILE = "names/profile"


def has_profile(base):
    """Return whether a view that any search needs is there for the documents as they are now."""
    return PROFILE in base.store.snapshot()._document_views._values


@pytest.fixture
def shelf(made_base, tmp_path):
    result = ServedBases(Settings(bases={"harbour": shutil.copytree(made_base, tmp_path / "harbour")}))
    yield result
    result.close()


def test_warming_builds_the_views_that_every_question_needs(shelf) -> None:
    base = shelf["harbour"].knowledge_base
    warming = BaseWarmer(shelf, lambda: False)
    for _ in range(3):
        warming.schedule("harbour")
    warming.close()
    known = base.store.snapshot()._document_views._values
    assert has_profile(base) and "graph/mentions/3/5" in known and "postings/text" in known
    warming.schedule("harbour")  # nothing, after the end


def test_not_while_questions_are_answered(shelf) -> None:
    warming = BaseWarmer(shelf, lambda: True)
    warming.schedule("harbour")
    warming.close()
    assert not has_profile(shelf["harbour"].knowledge_base)


@pytest.mark.slow
def test_a_server_is_warm_at_the_start_and_after_each_upload(folder) -> None:
    with ServedApp(folder) as app:
        base = app.serving.app.state.server.bases[app.base].knowledge_base
        waited_for(lambda: has_profile(base))
        app.upload("heron.md", b"# Heron\n\nThe heron stands at Dunmere Landing.\n")
        assert "heron.md" in {document.name for document in base.store.snapshot().documents()}
        waited_for(lambda: has_profile(base))
