"""The traverser of KGP on a real base, with a scripted language model behind the real client."""

import json
from dataclasses import replace

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import Location, Question, Scope
from clew.knowledge_base import registry
from clew.methods.kgp.algorithm1 import Path, traverse
from clew.methods.kgp.best_first import BestFirst
from clew.methods.kgp.method import KGP, best_rows
from clew.models import create_language_model
from clew.models.wrappers import Budget
from clew.parse.documents.builder import DocumentBuilder
from clew.store.store import Store
from scripted import ScriptedServer

TEXTS = {
    "Simpsons theme": "The Simpsons theme was arranged anew by Alf Clausen in season two.",
    "Alf Clausen": "Alf Clausen is a composer who was taught by Wilmot Harker in Boston.",
    "Wilmot Harker": "Wilmot Harker was born in the village of Dunmere.",
    "Dunmere": "Dunmere lies on the river Oskell and has a ferry.",
    "Noise": "A season of theme music was played by the band all summer.",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    with Store.open(tmp_path_factory.mktemp("kgp") / "base", create=True, passages="sentence") as store:
        for number, (title, text) in enumerate(TEXTS.items()):
            builder = DocumentBuilder(unit="sentence")
            builder.add_paragraph(text)
            parsed = builder.finish(data=text.encode(), title=title, media_type="text/plain", parser="t/1")
            store.put_document(parsed, Location(f"/docs/{title}.txt", "/docs", 1, number, number))
        yield store


def titles(hits):
    return [hit.node.document_name.removesuffix(".txt") for hit in hits]


QUESTION = Question("In which village was the teacher of the arranger of the Simpsons theme born?")


def test_a_scripted_model_drives_three_hops_and_its_evidence_is_read(base) -> None:
    def script(request):
        if "Dunmere" in request.prompt and "QUESTION" in request.prompt:
            return "Dunmere"
        if "taught by Wilmot Harker" in request.prompt:
            return "Wilmot Harker was born in the village of Springfield."
        return "Alf Clausen is a composer, taught by somebody."

    with ScriptedServer(script) as server:
        recipe = "kgp-paper(guide=generated, graph=mentions, seeds=1, branch=1, hops=3)"
        method = registry.build_method(recipe, base, llm=create_language_model(server.llm))
        answer = method.answer(Question(QUESTION.text), TrailRecorder())
    assert answer.text == "Dunmere"
    (path,) = [hit.path for hit in answer.evidence]
    texts = [node.text for node in base.snapshot().nodes(base.snapshot().rows(path))]
    assert texts == [TEXTS["Simpsons theme"], TEXTS["Alf Clausen"], TEXTS["Wilmot Harker"]]
    expands = [step for step in answer.trail if step.name == "expand"]
    assert [step.detail["hop"] for step in expands] == [2, 3]
    assert "Springfield" in expands[1].detail["paths"][0]["expected"]
    assert [step.usage.calls for step in expands] == [1, 1]
    # Two expansions, the question whether it is about structure, the answer.
    assert answer.usage.calls == len(server.requests) == 4
    # The second expansion was asked with both passages of the path; what the model made up is no evidence.
    asked = server.requests[2].prompt
    assert TEXTS["Simpsons theme"] in asked and TEXTS["Alf Clausen"] in asked
    assert not any("Springfield" in hit.node.text for hit in answer.evidence)


def test_a_guide_asks_in_the_form_that_its_model_was_trained_on(base) -> None:
    asked = {}
    for prompt in ("untuned", "listing1", "prefix"):
        with ScriptedServer(lambda request: "Alf Clausen is a composer.") as server:
            recipe = f"kgp-paper(guide=generated(prompt={prompt}), graph=mentions, structures=no, seeds=1)"
            method = registry.build_method(recipe, base, llm=create_language_model(server.llm))
            method.answer(Question(QUESTION.text), TrailRecorder())
            asked[prompt] = server.requests[0].prompt
    given = f"{QUESTION.text} {TEXTS['Simpsons theme']}"
    assert asked["prefix"].strip().endswith(f"given the current evidence? {given}")
    assert asked["listing1"].strip().startswith("Instruction: What evidence")
    assert f"Input: {given}\n\nOutput:" in asked["listing1"]
    assert "You name the one fact" in asked["untuned"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("promt=prefix", "Did you mean 'prompt'"),
        ("prompt=prefx", "Did you mean 'prefix'"),
        ("match=3", "named '3'"),
    ],
)
def test_an_option_that_a_generated_guide_does_not_know_is_refused(base, options: str, problem: str) -> None:
    with ScriptedServer([]) as server, pytest.raises(UsageError, match=problem):
        registry.build_method(f"kgp(guide=generated({options}))", base, llm=create_language_model(server.llm))


def test_a_spent_budget_ends_the_walk_and_leaves_what_was_found(base) -> None:
    def script(request):
        return "Alf Clausen is a composer, taught by somebody."

    recipe = "kgp(guide=generated, structures=no, seeds=1, branch=1, hops=3, prior=off, sharpness=off)"
    with ScriptedServer(script) as server:
        model = create_language_model(server.llm, budget=Budget(calls=1))
        answer = registry.build_method(recipe, base, llm=model).answer(
            Question(QUESTION.text), TrailRecorder()
        )
        assert len(server.requests) == 1
    assert [step.name for step in answer.trail] == ["seed", "expand", "stopped", "stopped"]
    assert "of 1 calls" in answer.trail[2].detail["budget"]
    assert (
        answer.abstained and "stopped before there was an answer" in answer.text and answer.usage.calls == 1
    )
    assert {"Simpsons theme", "Alf Clausen"} <= set(titles(answer.evidence))


def test_the_recipe_of_an_answer_reproduces_the_answer(base) -> None:
    answer = registry.build_method("kgp", base).answer(QUESTION, TrailRecorder())
    assert "reader=extractive" in answer.recipe and "auto" not in answer.recipe
    again = registry.build_method(answer.recipe, base).answer(QUESTION, TrailRecorder())
    assert (again.recipe, again.text, again.evidence) == (answer.recipe, answer.text, answer.evidence)


def test_an_answer_that_abstains_shows_what_came_nearest(base) -> None:
    asked = Question("Where do theme parks sell cricket bats, helmets, gloves and pads in Tokyo?")
    answer = registry.build_method("read", base).answer(asked, TrailRecorder())
    assert answer.abstained and answer.evidence and not answer.quotes


def test_a_fence_is_left_by_no_path_and_a_prior_may(base) -> None:
    fenced = registry.build_method("kgp(graph=mentions, prior=off, hops=3, guide=tfidf)", base)
    graph = registry.build_graph("mentions", base)
    snapshot = base.snapshot()
    for path in fenced.walk(QUESTION, TrailRecorder()):
        for row, other in zip(path.rows, path.rows[1:], strict=False):
            assert other in graph.neighbours(row)
    free = registry.build_method("kgp(graph=mentions, prior=0.1, hops=2, guide=tfidf)", base)
    steps = [
        (a, b) for p in free.walk(QUESTION, TrailRecorder()) for a, b in zip(p.rows, p.rows[1:], strict=False)
    ]
    assert any(b not in graph.neighbours(a) for a, b in steps)
    assert snapshot.size > 0


@pytest.mark.slow
@pytest.mark.parametrize("budget", [1, 2, 3, 5, 8, 30])
@pytest.mark.parametrize("branch", [1, 2, 3])
def test_the_budget_is_met_and_never_exceeded(base, budget: int, branch: int) -> None:
    method = registry.build_method(f"kgp(budget={budget}, branch={branch}, seeds=3, hops=3, prior=0.1)", base)
    paths = method.walk(QUESTION, TrailRecorder())
    assert 1 <= len({row for path in paths for row in path.rows}) <= budget
    assert all(len(set(path.rows)) == len(path.rows) <= 3 for path in paths)
    whole = [path.rows for path in paths]
    assert len(set(whole)) == len(whole)


def test_algorithm_1_stops_when_its_counter_passes_k_and_loses_what_has_no_neighbour() -> None:
    def visit(path: Path, near: np.ndarray) -> list[Path]:
        return [Path((*path.rows, int(row)), (*path.scores, 0.5)) for row in near]

    seeds = [Path((n,), (1.0,)) for n in range(10)]

    def neighbours(row: int) -> np.ndarray:
        return np.array([] if row == 1 else [100 + 3 * row, 101 + 3 * row, 102 + 3 * row])

    paths = traverse(seeds, neighbours, visit, budget=30, hops=2)
    # 10 seeds and 21 continuations: the counter passes 30 with the last, and two seeds were not visited.
    assert [path.rows for path in paths if len(path.rows) == 1] == [(8,), (9,)]
    assert len([path for path in paths if len(path.rows) == 2]) == 21
    assert not any(path.rows[0] == 1 for path in paths)
    assert len(traverse(seeds, neighbours, visit, budget=60, hops=2)) == 27
    chain = traverse(seeds[:1], lambda row: np.array([row + 1]), visit, budget=99, hops=4)
    assert [path.rows for path in chain] == [(0, 1, 2, 3)]
    assert traverse(seeds[:2], neighbours, lambda *_: None, budget=30, hops=2) == seeds[:2]


def test_best_first_follows_one_path_deep_before_a_bad_seed_and_stops_where_a_question_is_covered() -> None:
    asked: list[tuple[int, ...]] = []

    def expand(paths):
        asked.extend(path.rows for path in paths)
        return [
            [Path((*p.rows, p.rows[-1] + 1), (*p.scores, p.score * 0.9))] if p.rows[0] == 0 else []
            for p in paths
        ]

    seeds = [Path((0,), (0.8,)), Path((50,), (0.3,))]
    search = BestFirst(budget=30, hops=4, width=1)
    paths = search.search(seeds, expand, lambda paths: [1.0] * len(paths))
    assert asked == [(0,), (0, 1), (0, 1, 2), (50,)]
    assert {path.rows for path in paths} == {(0, 1, 2, 3), (50,)}
    asked.clear()
    # A path of two passages that leaves nothing open is not continued.
    covered = search.search(seeds, expand, lambda paths: [0.0 if len(p.rows) > 1 else 1.0 for p in paths])
    assert asked == [(0,), (50,)] and {path.rows for path in covered} == {(0, 1), (50,)}
    half = search.search(seeds, expand, lambda paths: [0.5] * len(paths))
    # From the third passage on, what is left open is the probability that there is a next one.
    longest = max(half, key=lambda path: len(path.rows))
    assert longest.scores == pytest.approx((0.8, 0.72, 0.72 * 0.9 * 0.5, 0.72 * 0.9 * 0.5 * 0.9 * 0.5))


def test_a_passage_without_neighbours_is_not_lost(base) -> None:
    method = registry.build_method(
        "kgp(graph=mentions(common=0, leads=0), prior=off, seeds=5, guide=tfidf)", base
    )
    hits = method.retrieve(QUESTION, 10)
    assert "Simpsons theme" in titles(hits)


def test_scope_holds_for_seeds_and_for_neighbours(base) -> None:
    keys = {document.title: document.key for document in base.documents()}
    scope = Scope(documents=frozenset([keys["Simpsons theme"], keys["Alf Clausen"]]))
    method = registry.build_method("kgp(hops=3, prior=0.1)", base)
    hits = method.retrieve(Question(QUESTION.text, scope), 10)
    assert set(titles(hits)) <= {"Simpsons theme", "Alf Clausen"}
    assert "Alf Clausen" in titles(hits)


def test_stopping_between_steps_keeps_what_was_found(base) -> None:
    method = registry.build_method("kgp(hops=3)", base)
    trail = TrailRecorder(is_cancelled=lambda: True)
    answer = method.answer(QUESTION, trail)
    assert [step.name for step in trail.steps if step.name in {"seed", "expand"}] == ["seed"]
    assert answer.evidence or answer.abstained


def test_hits_have_their_path_and_the_edge_of_each_step(base) -> None:
    hits = registry.build_method("kgp(graph=mentions, hops=3)", base).retrieve(QUESTION, 10)
    reached = {hit.node.document_name: hit for hit in hits}
    harker = reached["Wilmot Harker.txt"]
    assert harker.path[-1] == harker.node.id and len(harker.path) == len(harker.via) + 1
    if len(harker.path) > 1:
        assert "Harker" in harker.via[-1] or harker.via[-1].startswith("no edge")


def test_the_paper_recipe_refuses_paragraphs(tmp_path) -> None:
    with Store.open(tmp_path / "base", create=True) as base:
        builder = DocumentBuilder()
        builder.add_paragraph("One paragraph.")
        parsed = builder.finish(data=b"x", title="T", media_type="t", parser="t/1")
        base.put_document(parsed, Location("/docs/x.txt", "/docs", 1, 1, 1))
        with pytest.raises(UsageError, match="sentences"):
            registry.build_method("kgp-paper", base)


def test_a_structural_question_is_answered_with_what_it_names(base) -> None:
    answer = registry.build_method("kgp", base).answer(
        Question("Summarise the document Dunmere"), TrailRecorder()
    )
    assert answer.text == TEXTS["Dunmere"]
    assert [step.name for step in answer.trail] == ["structure", "read"]


def test_best_rows_break_ties_by_id_and_not_by_row(base) -> None:
    snapshot = base.snapshot()
    rows = np.flatnonzero(snapshot.mask(Scope(), ("passage",)))
    chosen = [row for row, _ in best_rows(snapshot, rows, np.ones(len(rows)), 3)]
    assert snapshot.ids(np.array(chosen)) == sorted(snapshot.ids(rows))[:3]
    shuffled = [row for row, _ in best_rows(snapshot, rows[::-1], np.ones(len(rows)), 3)]
    assert shuffled == chosen


@pytest.mark.parametrize(
    ("recipe", "text"),
    [
        ("kpg", "did you mean 'kgp'|Did you mean 'kgp'"),
        ("kgp(seed=3)", "Did you mean 'seeds'"),
        ("kgp(seeds=0)", "whole number"),
        ("kgp(graph=keyword)", "Did you mean 'keywords'"),
        ("kgp(guide=generated)", "--llm"),
        ("kgp(guide=encoder)", "clew encoder set"),
        ("read(retriever=bm52)", "bm25"),
        ("read(reader=cited)", "--llm"),
    ],
)
def test_recipes_that_cannot_be_built_say_why(base, recipe: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        registry.build_method(recipe, base)


def test_scores_are_probabilities_and_a_continuation_may_overtake_a_seed(base) -> None:
    method = registry.build_method("kgp(seeds=2, branch=2)", base)
    hits = method.retrieve(QUESTION, 10)
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.node.id))
    assert all(0 < hit.score <= 1 for hit in hits)
    by_path = {hit.path: hit.score for hit in hits}
    for path, score in by_path.items():
        if path[:-1] in by_path:
            assert score <= by_path[path[:-1]]
    # No word of the question stands in the text about Clausen: the name in the first passage leads there.
    search = titles(registry.build_retriever("search", base).retrieve(QUESTION, 10))
    assert "Alf Clausen" not in search
    assert titles(hits)[:2] == ["Simpsons theme", "Alf Clausen"]


def test_a_sharp_walk_without_edges_that_stand_out_keeps_the_order_of_the_search(tmp_path) -> None:
    with Store.open(tmp_path / "base", create=True) as base:
        for number, text in enumerate(["the rent of the mill", "the rent of the barn", "a mill", "a rent"]):
            builder = DocumentBuilder()
            builder.add_paragraph(text)
            parsed = builder.finish(data=text.encode(), title=f"D{number}", media_type="t", parser="t/1")
            base.put_document(parsed, Location(f"/docs/{number}.txt", "/docs", 1, number, number))
        question = Question("What was the rent of the mill?")
        walked = registry.build_method("kgp", base).retrieve(question, 4)
        hits = registry.build_retriever("search", base).retrieve(question, 4)
    assert [hit.node.id for hit in walked] == [hit.node.id for hit in hits]


def test_passages_that_only_the_seeding_found_follow_the_visited_ones(tmp_path) -> None:
    with Store.open(tmp_path / "base", create=True) as base:
        builder = DocumentBuilder()
        for number in range(40):
            builder.add_paragraph(f"Mill number {number} stands on the river Oskell{' ' * number}.")
        parsed = builder.finish(data=b"mills", title="Mills", media_type="t", parser="t/1")
        base.put_document(parsed, Location("/docs/mills.txt", "/docs", 1, 1, 1))
        question = Question("Which mill stands on the river?")
        assert len(registry.build_method("kgp(seeds=3, budget=5)", base).retrieve(question, 35)) == 35
        assert (
            len(registry.build_method("kgp(seeds=3, budget=5, prior=off)", base).retrieve(question, 35)) <= 10
        )


def test_paths_may_be_read_passage_by_passage(base) -> None:
    results = {}
    for context in ("paths", "passages"):
        recipe = f"kgp-paper(graph=mentions, reader=extractive, seeds=2, branch=2, context={context})"
        results[context] = (
            registry.build_method(recipe, base).answer(Question(QUESTION.text), TrailRecorder()).context
        )
    walker = registry.build_retriever("kgp-paper(graph=mentions, reader=extractive, seeds=2, branch=2)", base)
    paths = walker.walk(Question(QUESTION.text), TrailRecorder())
    rows = list(dict.fromkeys(row for path in paths for row in path.rows))
    visited = [hit.node.id for hit in results["paths"]]
    # Each passage of a path once, in the order of the paths.
    assert visited == base.snapshot().ids(np.array(rows)) and len(visited) > len(paths) / 2
    assert len(visited) == len(set(visited))
    assert [hit.node.id for hit in results["passages"]] != visited


TEACHER = Question("Where is the teacher of the arranger of the theme from?")


def read_by(base, script, **options):
    """Return the answer of the default with a model, and the prompts that it was given."""
    extra = "".join(f", {name}={value}" for name, value in options.items())
    with ScriptedServer(script) as server:
        model = create_language_model(server.llm)
        method = registry.build_method(f"kgp(structures=no{extra})", base, llm=model)
        return method.answer(TEACHER, TrailRecorder()), server.requests


def told(answer, missing="", quote=""):
    quotes = [{"source": 0, "text": quote}] if quote else []
    return json.dumps({"quotes": quotes, "why": "", "answer": answer, "missing": missing})


def test_with_a_model_one_call_reads_and_the_walk_goes_on_from_what_is_missing(base) -> None:
    harker = "taught by Wilmot Harker"

    def script(request):
        if "born in the village of Dunmere" in request.prompt:
            return told("Dunmere", quote="born in the village of Dunmere")
        return told("", "birthplace of Wilmot Harker", harker)

    answer, requests = read_by(base, script, shown=2, rounds=1)
    assert (answer.text, answer.abstained) == ("Dunmere", False) and len(requests) == 2
    # What was quoted is read again, and at most as many passages as in the first call.
    assert harker in requests[1].prompt and "[2]" in requests[1].prompt and "[3]" not in requests[1].prompt
    assert answer.usage.calls == 2 and "born in the village" not in requests[0].prompt


@pytest.mark.parametrize(("rounds", "calls"), [(0, 1), (1, 2), (2, 3)])
def test_the_walk_goes_on_no_more_often_than_it_may(base, rounds, calls) -> None:
    _, requests = read_by(base, lambda _: told("", "the village of a composer"), shown=1, rounds=rounds)
    assert len(requests) == calls
    shown = [request.prompt.rpartition("[1]")[2] for request in requests]
    assert len(set(shown)) == len(shown)


def test_an_answer_stays_where_more_passages_give_none(base) -> None:
    replies = iter(
        [told("Alf Clausen", "birthplace of Wilmot Harker", "a composer who was taught"), told(""), told("")]
    )
    answer, requests = read_by(base, lambda _: next(replies), shown=3)
    assert (answer.text, answer.abstained, len(requests)) == ("Alf Clausen", False, 2)
    assert answer.quotes[0].text == "a composer who was taught" and answer.usage.calls == 2


@pytest.mark.slow
def test_passages_are_spread_over_pages_but_not_for_the_reader_that_chooses_itself(tmp_path) -> None:
    builder = DocumentBuilder()
    builder.add_page(1)
    for year in range(1920, 1932):
        builder.add_paragraph(f"The toll of the ferry in {year} was {year - 1900} pence a head.")
    builder.add_page(2)
    builder.add_paragraph("The toll paid for a new chain.")
    parsed = builder.finish(data=b"t", title="Tolls", media_type="application/pdf", parser="t/1")
    question = Question("How many pence a head was the toll of the ferry, and what for?")
    with Store.open(tmp_path / "tolls", create=True) as store:
        store.put_document(parsed, Location("/docs/tolls.pdf", "/docs", 1, 1, 1))
        walk = registry.build_retriever("kgp", store)
        assert isinstance(walk, KGP)
        spread = walk.retrieve(question, 13)
        alone = replace(walk, same_page=1.0).retrieve(question, 13)
        method = registry.build_method("kgp(reader=extractive)", store)
        read = method.answer(question, TrailRecorder()).context

    def place_of_page_2(hits):
        return [hit.node.page for hit in hits].index(2)

    assert {hit.node.id for hit in spread} == {hit.node.id for hit in alone}
    assert place_of_page_2(spread) <= 1 < place_of_page_2(alone)
    assert [hit.node.id for hit in read] == [hit.node.id for hit in alone][: len(read)]
    # Each passage of a page counts half as much as the one before it would; the order follows the scores.
    score_of = {hit.node.id: hit.score for hit in alone}
    of_page_1 = [hit for hit in spread if hit.node.page == 1]
    assert [hit.score for hit in of_page_1] == pytest.approx(
        [score_of[hit.node.id] * 0.5**n for n, hit in enumerate(of_page_1)]
    )
    assert [hit.score for hit in spread] == sorted((hit.score for hit in spread), reverse=True)
