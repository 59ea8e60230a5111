"""The client of TAGME and WAT against a server on this machine that speaks their documented JSON."""

import json

import numpy as np
import pytest

from annotation_server import AnnotationServer, tagme, wat
from clew.core.errors import BadCompletion, ModelError, UsageError
from clew.graph.annotation import AnnotationCache, AnnotationService, annotate_passages, split_text
from clew.graph.entities import EntityGraph
from graph_corpora import document, edges, passages


@pytest.fixture(params=["tagme", "wat"])
def server(request):
    annotation_server = AnnotationServer({"tagme": tagme, "wat": wat}[request.param])
    annotation_server.name = request.param
    yield annotation_server
    annotation_server.close()


def service(server, **other):
    return AnnotationService("secret", server.name, url=server.url, interval=0.0, timeout=5, **other)


@pytest.fixture(scope="module")
def snapshot(lasting):
    return lasting.snapshot(
        [document("a", "Ohio rose.", "Nothing."), document("b", "In Ohio.", "Quill ran.", "Old Quill.")]
    )


def test_both_services_are_asked_as_they_document_and_read_as_they_answer(server):
    (annotation,) = service(server).annotate("Down in Ohio.")
    method, fields = server.asked[0]
    assert method == {"tagme": "POST", "wat": "GET"}[server.name]
    assert fields == {"lang": "en", "gcube-token": "secret", "text": "Down in Ohio."}
    assert (annotation.entity, annotation.title, annotation.spot) == (22199, "Ohio (place)", "Ohio")
    assert (annotation.start, annotation.end) == (8, 12)
    assert (annotation.rho, annotation.prior) == {"tagme": (0.5, 0.9), "wat": (0.6, 0.95)}[server.name]


def test_passages_that_share_an_entity_are_neighbours(server, snapshot, tmp_path):
    cache = AnnotationCache(tmp_path / "cache" / "annotations.sqlite")
    assert annotate_passages(snapshot, service(server), cache) == 5
    graph = EntityGraph(snapshot, cache, f"{server.name}/en", prior=0.0)
    by_id = {node.id: node.text for node in passages(snapshot)}
    assert {frozenset((by_id[a], by_id[b])) for a, b in edges(snapshot, graph)} == {
        frozenset(("Ohio rose.", "In Ohio.")),
        frozenset(("Quill ran.", "Old Quill.")),
    }
    first, other = (int(snapshot.rows([key])[0]) for key, text in by_id.items() if "Ohio" in text)
    assert graph.explain_edge(first, other) == "entities: Ohio (place)"
    assert graph.missing == 0


def test_thresholds_drop_edges_without_asking_again(server, snapshot, tmp_path):
    cache = AnnotationCache(tmp_path / "annotations.sqlite")
    annotate_passages(snapshot, service(server), cache)
    requests_before, maker = len(server.asked), f"{server.name}/en"
    assert edges(snapshot, EntityGraph(snapshot, cache, maker, rho=0.7, prior=0.0)) == set()
    expected = {"tagme": 2, "wat": 4}[server.name]
    assert len(edges(snapshot, EntityGraph(snapshot, cache, maker, prior=0.5))) == expected
    assert len(server.asked) == requests_before


@pytest.mark.slow
def test_a_second_run_asks_only_what_is_new(server, bases, tmp_path):
    cache = AnnotationCache(tmp_path / "annotations.sqlite")
    seen = []
    assert annotate_passages(bases.snapshot([document("a", "Ohio.", "Ohio.")]), service(server), cache) == 1
    more = bases.snapshot([document("a", "Ohio.", "Ohio."), document("b", "Quill.")])
    assert (
        annotate_passages(more, service(server), cache, lambda done, total: seen.append((done, total))) == 1
    )
    assert [fields["text"] for _, fields in server.asked] == ["Ohio.", "Quill."]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_run_that_failed_goes_on_where_it_was(server, snapshot, tmp_path):
    cache = AnnotationCache(tmp_path / "annotations.sqlite")
    rows = len(passages(snapshot))
    server.script = [(200, {}, json.dumps({"annotations": []}))] * 2 + [(404, {}, "no")]
    with pytest.raises(ModelError, match="404"):
        annotate_passages(snapshot, service(server), cache)
    assert EntityGraph(snapshot, cache, f"{server.name}/en").missing == rows - 2
    assert annotate_passages(snapshot, service(server), cache) == rows - 2


def test_a_busy_service_is_asked_again_and_a_busy_one_for_ever_is_an_error(server):
    server.script = [(429, {"Retry-After": "0"}, ""), (503, {}, "")]
    assert len(service(server).annotate("Ohio")) == 1
    server.script = [(503, {}, "")] * 9
    with pytest.raises(ModelError, match="503"):
        service(server, attempts=2).annotate("Ohio")
    assert len(server.asked) == 3 + 2


def test_a_refused_token_is_said_at_once_without_the_token(server):
    server.script = [(401, {}, "")]
    with pytest.raises(ModelError, match="CLEW_TAGME_TOKEN") as problem:
        service(server).annotate("Ohio")
    assert "secret" not in str(problem.value)
    assert len(server.asked) == 1


def test_without_a_token_nothing_is_sent(server):
    with pytest.raises(ModelError, match="no token"):
        AnnotationService(None, server.name, url=server.url).annotate("Ohio")
    assert server.asked == []


@pytest.mark.parametrize("body", ["<html>", "[]", '{"annotations": 3}'])
def test_an_answer_in_another_form_is_an_error(server, body):
    server.script = [(200, {}, body)]
    with pytest.raises(BadCompletion):
        service(server).annotate("Ohio")


def test_a_service_that_is_not_there_is_an_error(server):
    server.close()
    with pytest.raises(ModelError, match="cannot be reached"):
        service(server, attempts=1).annotate("Ohio")


def test_long_texts_are_sent_in_pieces_and_places_refer_to_the_whole(server):
    text = "A dull sentence. " * 300 + "Then Ohio."
    (annotation,) = service(server).annotate(text)
    assert text[annotation.start : annotation.end] == "Ohio"
    assert len(server.asked) > 1


def test_pieces_are_whole_sentences_unless_one_is_too_long():
    text = "One two. Three four. " + "X" * 25 + "."
    cut = split_text(text, 20)
    assert [piece for _, piece in cut] == ["One two. Three four.", "X" * 20, "X" * 5 + "."]
    assert all(text[start : start + len(piece)] == piece for start, piece in cut)


def test_a_base_that_was_never_annotated_is_refused_and_an_unknown_service_too(snapshot, tmp_path):
    with pytest.raises(UsageError, match="wat/en"):
        EntityGraph(snapshot, AnnotationCache(tmp_path / "annotations.sqlite"))
    with pytest.raises(UsageError, match="wot"):
        AnnotationService("secret", "wot")


def test_an_empty_base_has_no_entities(bases, tmp_path):
    snapshot = bases.snapshot([])
    graph = EntityGraph(snapshot, AnnotationCache(tmp_path / "annotations.sqlite"))
    assert np.array_equal(graph.neighbours(0), []) if snapshot.size else graph.missing == 0
