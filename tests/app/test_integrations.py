"""clew as a retriever of other frameworks: the real packages, where they are installed."""

from pathlib import Path

import pytest

import clew
from clew.core.errors import UsageError

pytestmark = pytest.mark.slow

QUESTION = "Where does the stork nest?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("integrations")
    (place / "birds.md").write_text("# Birds\n\nThe stork nests on chimneys.\n\nThe heron nests in reeds.\n")
    (place / "fish.txt").write_text("Herring swim in shoals.")
    with clew.open(place / "kb", create=True) as base:
        base.add([place / "birds.md", place / "fish.txt"])
    return place / "kb"


@pytest.fixture
def base(folder):
    with clew.open(folder) as base:
        yield base


def test_langchain_gets_passages_with_their_places(base):
    pytest.importorskip("langchain_core")
    from langchain_core.runnables import RunnableLambda

    from clew.app.integrations.langchain import ClewRetriever

    retriever = ClewRetriever(base=base, k=2)
    first, *_ = retriever.invoke(QUESTION)
    assert "chimneys" in first.page_content
    assert first.metadata["document"] == "birds.md"
    assert base.node(first.metadata["id"]).text == first.page_content
    assert [len(documents) for documents in retriever.batch([QUESTION, "What swims?"])] == [2, 1]
    chain = retriever | RunnableLambda(lambda documents: documents[0].metadata["section"])
    assert chain.invoke(QUESTION) == "Birds"
    (only,) = ClewRetriever(base=base, documents=["fish.txt"]).invoke("What swims?")
    assert only.metadata["document"] == "fish.txt"


def test_llama_index_gets_scored_nodes(base):
    pytest.importorskip("llama_index.core")
    from clew.app.integrations.llama_index import ClewRetriever

    hits = base.search(QUESTION, k=2)
    nodes = ClewRetriever(base, k=2).retrieve(QUESTION)
    assert [(item.node.node_id, item.score) for item in nodes] == [(hit.node.id, hit.score) for hit in hits]
    assert "chimneys" in nodes[0].node.get_content() and nodes[0].node.metadata["document"] == "birds.md"


def test_a_haystack_pipeline_is_run_saved_and_loaded(folder):
    pytest.importorskip("haystack")
    from haystack import Pipeline

    from clew.app.integrations.haystack import ClewRetriever

    pipeline = Pipeline()
    pipeline.add_component("retriever", ClewRetriever(str(folder), k=2))
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["clew.app.integrations.haystack"])
    for item in (pipeline, loaded):
        documents = item.run({"retriever": {"query": QUESTION}})["retriever"]["documents"]
        assert "chimneys" in documents[0].content and documents[0].meta["document"] == "birds.md"
        assert documents[0].score >= documents[-1].score
    only = loaded.run({"retriever": {"query": "What swims?", "documents": ["fish.txt"]}})["retriever"][
        "documents"
    ]
    assert [document.meta["document"] for document in only] == ["fish.txt"]


def test_langchain_takes_k_and_documents_with_a_question(base):
    pytest.importorskip("langchain_core")
    from clew.app.integrations.langchain import ClewRetriever

    retriever = ClewRetriever(base=base, k=2)
    assert [len(retriever.invoke(QUESTION, k=k)) for k in (1, 2)] == [1, 2]
    assert len(retriever.batch([QUESTION] * 2, k=1)[1]) == 1
    (only,) = retriever.invoke("What swims?", documents="fish.txt")
    assert only.metadata["document"] == "fish.txt"
    (only,) = retriever.invoke("What swims?", where="name = fish.txt")
    assert only.metadata["document"] == "fish.txt"
    with pytest.raises(TypeError, match="number"):
        retriever.invoke(QUESTION, number=3)
    for documents in ("fish.txt", Path("fish.txt"), ["fish.txt"]):
        (only,) = ClewRetriever(base=base, documents=documents).invoke("What swims?")
        assert only.metadata["document"] == "fish.txt"


def test_llama_index_shows_a_model_neither_scores_nor_ids(base):
    pytest.importorskip("llama_index.core")
    from llama_index.core.schema import MetadataMode

    from clew.app.integrations.llama_index import ClewRetriever

    for documents in ("birds.md", Path("birds.md"), ["birds.md"]):
        first, *_ = ClewRetriever(base, documents=documents).retrieve(QUESTION)
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            shown = first.node.get_content(mode)
            assert shown.startswith("document: birds.md\nsection: Birds\n"), shown
            assert not any(word in shown for word in ("score", "key", "id:", "None", first.node.node_id))
        assert first.node.metadata["key"] == first.node.node_id.partition(":")[0]
    (first, *_) = ClewRetriever(base, documents="fish.txt").retrieve("What swims?")
    assert "section" not in first.node.get_content(MetadataMode.LLM)


FILTERS = [
    ({"field": "meta.document", "operator": "==", "value": "fish.txt"}, {"fish.txt"}),
    ({"field": "meta.document", "operator": "!=", "value": "fish.txt"}, {"birds.md"}),
    ({"field": "name", "operator": "in", "value": ["fish.txt", "other"]}, {"fish.txt"}),
    ({"field": "name", "operator": "not in", "value": ["fish.txt", "other"]}, {"birds.md"}),
    ({"field": "meta.author", "operator": "==", "value": None}, {"fish.txt", "birds.md"}),
    ({"field": "name", "operator": "==", "value": "nothing.md"}, set()),
    (
        {
            "operator": "OR",
            "conditions": [
                {"field": "name", "operator": "==", "value": "fish.txt"},
                {"field": "name", "operator": "==", "value": "birds.md"},
            ],
        },
        {"fish.txt", "birds.md"},
    ),
    (
        {
            "operator": "NOT",
            "conditions": [
                {"field": "name", "operator": "==", "value": "fish.txt"},
                {"field": "kind", "operator": "==", "value": "text"},
            ],
        },
        {"birds.md"},
    ),
    (
        {
            "operator": "AND",
            "conditions": [
                {"field": "name", "operator": "==", "value": "fish.txt"},
                {"field": "name", "operator": "==", "value": "birds.md"},
            ],
        },
        set(),
    ),
]


@pytest.mark.parametrize(("filters", "names"), FILTERS)
def test_haystack_filters_documents_by_their_fields(filters, names, folder):
    pytest.importorskip("haystack")
    from clew.app.integrations.haystack import ClewRetriever

    retrieved = ClewRetriever(str(folder)).run("Where do stork and herring nest and swim?", filters=filters)[
        "documents"
    ]
    assert {document.meta["document"] for document in retrieved} == names
    own = ClewRetriever(str(folder), filters=filters).run("Where do stork and herring nest and swim?")[
        "documents"
    ]
    assert own == retrieved


def test_haystack_takes_top_k_and_documents_with_a_question(folder):
    pytest.importorskip("haystack")
    from clew.app.integrations.haystack import ClewRetriever

    retriever = ClewRetriever(str(folder), top_k=2)
    assert [len(retriever.run(QUESTION, top_k=k)["documents"]) for k in (0, 1, 2)] == [0, 1, 2]
    assert len(retriever.run(QUESTION)["documents"]) == 2
    assert len(ClewRetriever(str(folder), k=2).run(QUESTION, k=1)["documents"]) == 1
    for documents in ("fish.txt", Path("fish.txt"), ["fish.txt"]):
        (only,) = ClewRetriever(str(folder), documents=documents).run("What swims?")["documents"]
        assert only.meta["document"] == "fish.txt"
    none = retriever.run(
        "What swims?",
        documents=["birds.md"],
        filters={"field": "name", "operator": "==", "value": "fish.txt"},
    )
    assert none["documents"] == []
    bad = (
        {"field": "name", "operator": "like", "value": "fish"},
        {"field": "name = x or kind", "operator": "==", "value": "fish"},
        {"operator": "AND", "conditions": []},
        {"field": "page", "operator": ">", "value": 3},
        {"field": "name", "operator": "==", "value": "\"'"},
    )
    for filters in bad:
        with pytest.raises(UsageError):
            retriever.run(QUESTION, filters=filters)
    with pytest.raises(UsageError, match="top_k"):
        retriever.run(QUESTION, top_k=-1)


def test_haystack_saves_its_filters(folder):
    pytest.importorskip("haystack")
    from haystack import Pipeline

    from clew.app.integrations.haystack import ClewRetriever

    pipeline = Pipeline()
    filters = {"field": "name", "operator": "==", "value": "fish.txt"}
    pipeline.add_component("retriever", ClewRetriever(str(folder), top_k=1, filters=filters))
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["clew.app.integrations.haystack"])
    run = {"retriever": {"query": "Where do stork and herring nest and swim?"}}
    assert [item.meta["document"] for item in loaded.run(run)["retriever"]["documents"]] == ["fish.txt"]


try:
    from langchain_tests.integration_tests import RetrieversIntegrationTests
except ImportError:
    RetrieversIntegrationTests = None

if RetrieversIntegrationTests is not None:

    class TestStandardRetriever(RetrieversIntegrationTests):  # type: ignore[misc]
        """LangChain's own tests of a retriever."""

        @pytest.fixture(autouse=True)
        def documents(self, tmp_path):
            texts = ("on chimneys", "in reeds", "on cliffs", "in trees")
            for number, text in enumerate(texts):
                (tmp_path / f"{number}.md").write_text(f"Bird number {number} nests {text}.")
            with clew.open(tmp_path / "kb", create=True) as self.base:
                self.base.add([tmp_path / f"{number}.md" for number in range(len(texts))])
                yield

        @property
        def retriever_constructor(self):
            from clew.app.integrations.langchain import ClewRetriever

            return ClewRetriever

        @property
        def retriever_constructor_params(self):
            return {"base": self.base}

        @property
        def retriever_query_example(self):
            return "Where does the bird nest?"
