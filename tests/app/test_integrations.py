"""clew as a retriever of other frameworks: the real packages, where they are installed."""

import pytest

import clew

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
