"""The public Python API."""

import asyncio
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import clew
from clew.core.errors import NotFound, UsageError


def written(place):
    for folder, text in (("one", "The heron nests in reeds."), ("two", "The stork nests on chimneys.")):
        (place / folder).mkdir()
        (place / folder / "birds.md").write_text(f"# Birds\n\n{text}\n")
    (place / "one" / "fish.txt").write_text("Herring swim in shoals.")
    return place


@contextmanager
def opened(files):
    with clew.open(files / "kb", create=True) as base:
        base.add([files / "one", files / "two"])
        yield base


@pytest.fixture
def files(tmp_path):
    return written(tmp_path)


@pytest.fixture
def base(files):
    """A base that a test may change."""
    with opened(files) as base:
        yield base


@pytest.fixture(scope="module")
def kept_files(tmp_path_factory):
    return written(tmp_path_factory.mktemp("api"))


@pytest.fixture(scope="module")
def kept(kept_files, without_encoder):
    """A base that tests only read."""
    with opened(kept_files) as base:
        yield base


def test_importing_clew_imports_nothing_of_it() -> None:
    code = "import sys, clew; sys.exit(any(m.startswith('clew.') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert {"open", "KnowledgeBase", "Hit"} <= set(dir(clew))
    with pytest.raises(AttributeError, match="close"):
        _ = clew.close


def test_a_base_is_made_only_on_request(tmp_path) -> None:
    with pytest.raises(NotFound, match="clew add"):
        clew.open(tmp_path / "kb")
    assert not (tmp_path / "kb").exists()


def test_the_unit_of_passages_is_fixed_when_a_base_is_made(tmp_path) -> None:
    (tmp_path / "a.txt").write_text("One sentence. Another sentence.")
    with clew.open(tmp_path / "kb", create=True, passages="sentence") as base:
        assert base.add([tmp_path / "a.txt"]).passages == 2
    with clew.open(tmp_path / "kb", create=True) as base:  # no wish: what the base has
        assert base.store.passage_unit == "sentence"
    with pytest.raises(UsageError, match="sentence"):
        clew.open(tmp_path / "kb", create=True, passages="paragraph")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "expected"),
    [("fish.txt", {"fish.txt"}), ("one", {"fish.txt", "birds.md"}), ("one/birds.md", {"birds.md"})],
)
def test_a_question_keeps_to_documents_by_name_folder_or_path(kept, kept_files, where, expected) -> None:
    named = where if where == "fish.txt" else str(kept_files / where)
    hits = kept.search("heron stork herring nests swim", documents=[named])
    assert {hit.node.document_name for hit in hits} == expected
    assert not any("stork" in hit.node.text for hit in hits)
    answer = kept.ask("Where does the stork nest?", documents=[str(kept_files / "two")])
    assert all(hit.node.document_name == "birds.md" for hit in answer.evidence)


@pytest.mark.slow
def test_many_names_of_documents_are_looked_up_in_a_single_list(kept, kept_files, monkeypatch) -> None:
    """Thousands of keys once took the square of their number."""
    keys = [document.key for document in kept.documents()]
    lists = []
    read = type(kept.store).documents
    monkeypatch.setattr(type(kept.store), "documents", lambda store: lists.append(1) or read(store))
    paths = [str(path) for path in (kept_files / "one").iterdir()]
    assert kept.document_keys(*keys, *paths, *keys) == frozenset(keys)
    assert len(lists) == 1
    birds = kept.document_keys(str(kept_files / "two"))
    hits = kept.search("Who nests on chimneys?", documents=[*birds] * 100)
    assert hits and {hit.node.document for hit in hits} == birds


@pytest.mark.slow
def test_a_name_that_is_nowhere_is_refused(kept) -> None:
    with pytest.raises(NotFound):
        kept.search("heron", documents=["bird.md"])


@pytest.mark.slow
def test_steps_arrive_as_they_happen_and_stopping_is_asked_for(kept) -> None:
    steps = []
    answer = kept.ask("Where does the heron nest?", watch=steps.append)
    assert [step.name for step in steps] == [step.name for step in answer.trail] != []
    asked = []
    kept.ask("Where does the heron nest?", stop=lambda: not asked.append(1))
    assert asked


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_matrix_products_of_a_question_use_one_thread(kept) -> None:
    with threadpool_limits(2, user_api="blas"):
        before, meanwhile = blas_threads(), set()
        if before != {2}:
            pytest.skip("numpy's BLAS has one thread here, or does not tell")
    # threadpoolctl lets one thread of a process at a time set the number; a question may be asked in any.
    before = blas_threads()
    kept.ask("Where does the heron nest?", watch=lambda step: meanwhile.update(blas_threads()))
    asyncio.run(kept.aask("Where does the stork nest?", watch=lambda step: meanwhile.update(blas_threads())))
    assert meanwhile == {1} and blas_threads() == before


def test_removing_by_name_path_folder_and_key(base, files) -> None:
    with pytest.raises(UsageError, match="2 documents are named"):
        base.remove("birds.md")
    with pytest.raises(NotFound):
        base.remove("whales.md")
    assert [d.name for d in base.remove(str(files / "two"))] == ["birds.md"]
    assert [d.paths for d in base.remove("birds.md")] == [(str(files / "one" / "birds.md"),)]
    [fish] = base.documents()
    assert base.remove(fish.key) == [fish]
    assert base.documents() == [] and base.search("herring") == []


def test_a_document_at_two_paths_goes_with_the_last(base, files) -> None:
    (files / "two" / "copy.txt").write_bytes((files / "one" / "fish.txt").read_bytes())
    report = base.add([files / "two"])
    assert [report.located, report.added] == [[str(files / "two" / "copy.txt")], []]
    assert base.remove(str(files / "one" / "fish.txt")) == []
    assert base.search("herring")[0].node.document_name == "copy.txt"
    assert len(base.remove(str(files / "two" / "copy.txt"))) == 1


def test_sync_forgets_what_is_gone_and_nothing_else(base, files) -> None:
    (files / "one" / "fish.txt").unlink()
    (files / "two" / "birds.md").unlink()
    report = base.add([files / "one"])
    assert report.removed == [] and len(base.documents()) == 3
    report = base.add([files / "one"], sync=True)
    assert report.removed == [str(files / "one" / "fish.txt")]
    # A folder that is not there is named, and nothing under it is forgotten: a drive may be away.
    (files / "two").rmdir()
    report = base.add([files / "two"], sync=True)
    assert [failure.reason for failure in report.failed] == ["no such file or folder"]
    assert report.removed == [] and len(base.documents()) == 2


@pytest.mark.slow
def test_order_of_adding_does_not_show(kept, kept_files, tmp_path) -> None:
    with clew.open(tmp_path / "other", create=True) as other:
        other.add([kept_files / "two"])
        other.add([kept_files / "one" / "fish.txt"])
        other.add([kept_files / "one" / "birds.md"])
        assert [d.name for d in other.documents()] == [d.name for d in kept.documents()]
        question = "where do herons and storks nest"
        found = [[(hit.node.id, hit.score) for hit in one.search(question)] for one in (kept, other)]
        assert found[0] == found[1] != []


def test_steps_are_streamed_and_the_answer_is_last(base):
    *steps, answer = base.stream("Where do storks nest?")
    assert [step.name for step in steps] == [step.name for step in answer.trail]
    assert "chimneys" in answer.text and answer.text == base.ask("Where do storks nest?").text
    with pytest.raises(UsageError):
        list(base.stream(" "))
    events = base.stream("Where do storks nest?")
    next(events)
    events.close()
    assert not any(thread.name == "clew-stream" for thread in threading.enumerate())


@pytest.mark.slow
def test_questions_are_asked_from_an_event_loop(base):
    async def ask():
        answer = await base.aask("Where do storks nest?")
        events = [event async for event in base.astream("Where do storks nest?")]
        return answer, events

    answer, events = asyncio.run(ask())
    assert "chimneys" in answer.text and events[-1].text == answer.text and len(events) > 1


def test_who_waits_for_a_step_may_be_cancelled(base):
    async def ask():
        async def read():
            return [event async for event in base.astream("Where do storks nest?")]

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        with pytest.raises(UsageError):
            await anext(base.astream(" "))
        return (await base.aask("Where do storks nest?")).text

    assert "chimneys" in asyncio.run(ask())


def test_an_answer_shows_its_citations_as_text_and_html(base):
    answer = base.ask("Where do storks nest?")
    (first, *_) = answer.citations
    assert first.number == 1 and first.text in base.node(first.node.id).text
    assert first.to_dict()["document"] == "birds.md"
    assert f"[1] {first.place}: “{first.text}”" in str(answer)
    assert "<q>" in answer._repr_html_() and "<script>" not in replace(answer, text="<script>")._repr_html_()
    assert "3 documents" in repr(base) and "<td" in base._repr_html_() and "fish.txt" in base._repr_html_()


def test_the_evidence_as_a_data_frame(base):
    pytest.importorskip("pandas")
    answer = base.ask("Where do storks nest?")
    frame = answer.to_pandas()
    assert list(frame["id"]) == [hit.node.id for hit in answer.evidence] and frame["quotes"][0]


def test_a_question_begins_again_where_what_it_reads_is_removed(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.md").write_text(
            f"The lighter Kittiwake {number} was built in 19{number}1 at Corran.\n"
        )
    with clew.open(tmp_path / "base", create=True) as base, clew.open(tmp_path / "base") as other:
        base.add([tmp_path / f"{number}.md" for number in range(3)])
        removed = []

        def remove_best(step):
            if not removed:
                removed.append(step.hits[0].node.document_name)
                other.remove(*removed)

        answer = base.ask("When was the lighter Kittiwake 2 built?", watch=remove_best)
        assert removed == ["2.md"]
        assert "2.md" not in {hit.node.document_name for hit in answer.evidence}
