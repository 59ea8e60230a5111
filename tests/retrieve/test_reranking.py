"""Reranking by a model: scores in any form, places that are kept, candidates that stay above others."""

from __future__ import annotations

import pytest

from clew.core.prompts.templates import load_prompt
from clew.core.trail import TrailRecorder
from clew.core.types import Entity, Question
from clew.models import create_language_model
from clew.models.wrappers import Budget
from clew.retrieve.nodes import node_hit
from clew.retrieve.reranking import ListwiseReranker, PointwiseReranker, RerankedSearch, parse_score
from scripted import ScriptedServer


def hits(count: int):
    return [
        node_hit(
            "g",
            Entity(f"g:n{n}", "drug", f"drug {n}"),
            f"name: drug {n}\ntype: drug\nwhat it is: {n}",
            1 - n / 10,
        )
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("0.85", 0.85),
        (".5", 0.5),
        ("1", 1.0),
        ("0", 0.0),
        ("1.0.", 1.0),
        ("**0.7**", 0.7),
        ("0,7", 0.7),
        ("80%", 0.8),
        ("8/10", 0.8),
        ("0.8 out of 1", 0.8),
        ("Score: 0.4 because 2 of its 3 authors fit", 0.4),
        ("The score of this drug, from 0.0 to 1.0: 0.6", 0.6),
        ("<think>maybe 0.2</think>0.9", 0.9),
        ("The numeric score is 0.75, on a scale of 0 to 1.", 0.75),
        ("7", None),
        ("-0.5x", None),
        ("between 0.3 and 0.6", None),
        ("no idea", None),
        ("", None),
    ],
)
def test_a_score_is_read_however_it_is_written(reply: str, score: float | None) -> None:
    assert parse_score(reply) == score


def test_each_candidate_is_scored_alone_and_equals_keep_the_order_of_vectors() -> None:
    with ScriptedServer(
        lambda request: {"0": "0.2", "1": "0.9", "2": "0.2", "3": "0.9"}[
            request.user.split("what it is: ")[1][0]
        ]
    ) as server:
        record = TrailRecorder()
        reranker = PointwiseReranker(create_language_model(server.llm), load_prompt("focus-rerank"))
        ranked = reranker.rerank("Which drug?", hits(4), record)
        assert [hit.node.id for hit in ranked] == ["g:n1", "g:n3", "g:n0", "g:n2"]
        assert [hit.score for hit in ranked] == [0.9, 0.9, 0.2, 0.2]
        assert all(
            "Which drug?" in request.user and "about the drug" in request.user for request in server.requests
        )
        (step,) = record.steps
        assert step.name == "rerank" and step.usage.calls == 4 and step.hits == tuple(ranked)
        assert step.detail["prompt"] == "focus-rerank.v1" and step.detail["scores"]["g:n1"] == 0.9


def test_an_unreadable_reply_keeps_its_place_and_is_said() -> None:
    replies = {"0": "0.1", "1": "it depends", "2": "0.8", "3": "0.5"}
    with ScriptedServer(lambda request: replies[request.user.split("what it is: ")[1][0]]) as server:
        record = TrailRecorder()
        ranked = PointwiseReranker(create_language_model(server.llm), load_prompt("focus-rerank")).rerank(
            "q", hits(4), record
        )
        assert [hit.node.id for hit in ranked] == ["g:n2", "g:n1", "g:n3", "g:n0"]
        assert [hit.score for hit in ranked] == [0.8, 0.8, 0.5, 0.1]  # never rising
        assert record.steps[0].detail["unreadable"] == {"g:n1": "it depends"}


def test_filtered_candidates_stay_above_what_fills_up() -> None:
    replies = {"0": "0.1", "1": "0.3", "2": "1.0", "3": "0.9"}
    with ScriptedServer(lambda request: replies[request.user.split("what it is: ")[1][0]]) as server:
        reranker = PointwiseReranker(create_language_model(server.llm), load_prompt("focus-rerank"), k=4)
        ranked = reranker.rerank("q", hits(6), TrailRecorder(), matching=2)
        assert [hit.node.id for hit in ranked] == ["g:n1", "g:n0", "g:n2", "g:n3", "g:n4", "g:n5"]
        assert [hit.score for hit in ranked[:4]] == [1.3, 1.1, 1.0, 0.9]
        assert [hit.score for hit in ranked] == sorted((hit.score for hit in ranked), reverse=True)
        assert server.answered == 4  # k_max bounds what is asked


def test_the_order_that_a_model_names_at_once() -> None:
    with ScriptedServer([{"ranking": [3, 9, 1, 3]}, "no order at all", "Here: [2, 1]"]) as server:
        record = TrailRecorder()
        reranker = ListwiseReranker(create_language_model(server.llm), load_prompt("focus-rerank-list"))
        ranked = reranker.rerank("q", hits(4), record)
        assert [hit.node.id for hit in ranked] == ["g:n2", "g:n0", "g:n1", "g:n3"]
        assert "[4]\nname: drug 3" in server.requests[0].user
        assert record.steps[0].detail["unknown"] == [9] and record.steps[0].usage.calls == 1
        same = reranker.rerank("q", hits(3), record)
        assert [hit.node.id for hit in same] == ["g:n0", "g:n1", "g:n2"]
        assert "unreadable" in record.steps[1].detail
        assert [hit.node.id for hit in reranker.rerank("q", hits(1), record)] == ["g:n0"]


def test_matching_candidates_stay_above_in_a_named_order() -> None:
    with ScriptedServer([{"ranking": [4, 3, 2, 1]}]) as server:
        reranker = ListwiseReranker(create_language_model(server.llm), load_prompt("focus-rerank-list"))
        ranked = reranker.rerank("q", hits(4), TrailRecorder(), matching=2)
        assert [hit.node.id for hit in ranked] == ["g:n1", "g:n0", "g:n3", "g:n2"]


def test_a_spent_budget_leaves_the_order_and_says_so() -> None:
    with ScriptedServer(["0.1"] * 9) as server:
        model = create_language_model(server.llm, budget=Budget(calls=1))
        record = TrailRecorder()
        ranked = PointwiseReranker(model, load_prompt("focus-rerank")).rerank("q", hits(3), record)
        assert [hit.node.id for hit in ranked] == ["g:n0", "g:n1", "g:n2"]
        assert record.steps[0].name == "stopped"


def test_a_search_is_reranked_whole_before_it_is_cut() -> None:
    class Found:
        def retrieve(self, question, k):
            return hits(k)

    with ScriptedServer(lambda request: f"0.{request.user.split('what it is: ')[1][0]}") as server:
        search = RerankedSearch(
            Found(), PointwiseReranker(create_language_model(server.llm), load_prompt("focus-rerank"), 5), 5
        )
        assert [hit.node.id for hit in search.retrieve(Question("q"), 2)] == ["g:n4", "g:n3"]
