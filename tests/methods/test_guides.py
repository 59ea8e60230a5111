"""The guide that asks a multi-hop encoder at every hop."""

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.core.types import RETRIEVED_KINDS, Question, Scope
from clew.graph.passages import texts_with_headings
from clew.knowledge_base import registry
from clew.methods.kgp.guides import OpenCandidates, ResidualGuide
from clew.methods.kgp.method import KGP
from clew.methods.kgp.trained import COEFFICIENTS, FEATURES, TrainedGuide
from clew.retrieve.contextual import ContextualSearch
from clew.store.store import Store
from retrieve_documents import add
from retrieve_encoders import WordEncoder


class Hops(WordEncoder):
    """Knows that a lock leads to its keeper, and keeps what it was asked."""

    objective = "mdr"

    def __init__(self):
        super().__init__("lock", "keeper", "mill")
        self.asked = []

    def encode(self, texts, query=False):
        if query:
            self.asked += texts
            texts = [text.split("Lock: ")[-1].replace("its", "keeper") for text in texts]
        return super().encode(texts)


QUESTION = Question("where is the lock")


def score_neighbours(base, encoder, most=3):
    snapshot = base.snapshot()
    rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
    guide = ResidualGuide(ContextualSearch(snapshot, encoder), encoded_paths=most)
    nothing = np.zeros(0, np.int64)
    allowed = snapshot.mask(Scope(), RETRIEVED_KINDS)
    result = guide.score_neighbours(
        QUESTION, [(row,) for row in rows.tolist()], [nothing] * len(rows), OpenCandidates(9, allowed)
    )
    return snapshot, rows, result.scores


@pytest.fixture
def base(tmp_path):
    with Store.open(tmp_path / "base", create=True) as store:
        for name, title, text in (
            ("lock.txt", "Lock", "its water"), ("ann.txt", "Ann", "the keeper"), ("mill.txt", "Mill", "a mill")
        ):  # fmt: skip
            add(store, name, title, text)
        store.catch_up()
        yield store


def test_it_asks_with_title_and_text_of_the_path_for_the_first_paths(base) -> None:
    encoder = Hops()
    base.encode(encoder)
    snapshot, rows, scored = score_neighbours(base, encoder, most=2)
    texts = texts_with_headings(snapshot, rows)
    assert sorted(texts) == ["Ann: the keeper", "Lock: its water", "Mill: a mill"]
    assert encoder.asked == [QUESTION.text, *(f"{QUESTION.text} {text}" for text in texts[:2])]
    assert len(scored) == 3


def test_what_follows_by_vector_alone_is_found_and_weighs_as_it_should(base) -> None:
    encoder = Hops()
    base.encode(encoder)
    snapshot, rows, scored = score_neighbours(base, encoder)
    names = [node.document_name for node in snapshot.nodes(rows)]
    pool, scores = scored[names.index("lock.txt")]
    by_name = {node.document_name: score for node, score in zip(snapshot.nodes(pool), scores, strict=True)}
    # No word of the question is in ann.txt: its score is the cosine with what the path leads to.
    vector = encoder.encode([f"{QUESTION.text} Lock: its water"], query=True)[0]
    cosine = float(encoder.encode(["Ann: the keeper"])[0] @ vector)
    assert cosine > 0.5 and np.isclose(by_name["ann.txt"], 1.2 * cosine, atol=1e-6)
    assert by_name["ann.txt"] > by_name["mill.txt"]


def test_an_encoder_of_another_kind_is_asked_once(base) -> None:
    encoder = Hops()
    encoder.objective = "dpr"
    base.encode(encoder)
    score_neighbours(base, encoder)
    assert encoder.asked == [QUESTION.text]


def test_a_query_has_the_beginnings_of_the_passages_of_a_path(tmp_path) -> None:
    encoder = Hops()
    with Store.open(tmp_path / "long", create=True) as base:
        add(base, "lock.txt", "Lock", " ".join(f"word{number}" for number in range(50)))
        base.catch_up()
        base.encode(encoder)
        score_neighbours(base, encoder)
    (query,) = encoder.asked[1:]
    assert query == f"{QUESTION.text} Lock: " + " ".join(f"word{number}" for number in range(31))


def test_from_the_second_passage_on_less_is_missing_than_the_words_alone_say(base) -> None:
    snapshot = base.snapshot()
    rows = {node.name: int(row) for row in snapshot.rows([f"{d.key}:0" for d in snapshot.documents()])
            for node in snapshot.nodes(np.array([row]))}  # fmt: skip
    lock, keeper, mill = (rows[name] + 1 for name in ("Lock", "Ann", "Mill"))
    question = Question("the keeper of a mill")
    guide = ResidualGuide(ContextualSearch(snapshot))
    (alone,) = guide.missing(question, [(mill,)])
    assert 0 < alone < 1
    # The lock adds no word of the question, so that only the number of passages tells the two apart.
    assert guide.missing(question, [(mill, lock)]) == [pytest.approx(guide.deeper * alone)]
    assert guide.missing(question, [(mill, keeper)])[0] < guide.deeper * alone


def test_a_trained_guide_adds_up_what_is_known_of_a_candidate_and_asks_the_encoder_once_a_round(base) -> None:
    encoder = Hops()
    base.encode(encoder)
    walk = registry.build_retriever("kgp(guide=trained)", base, encoder=encoder)
    assert isinstance(walk, KGP)
    guide = walk.guide
    assert isinstance(guide, TrainedGuide)
    assert walk.prior == 1.0
    snapshot = base.snapshot()
    allowed = snapshot.mask(Scope(), RETRIEVED_KINDS)
    rows = np.flatnonzero(allowed)
    paths = [[int(row)] for row in rows[:3]] + [[int(rows[0]), int(rows[1])]]
    near = [walk.graph.neighbours(path[-1]) for path in paths]
    encoder.asked.clear()
    known = list(guide.describe(QUESTION, paths, near, OpenCandidates(100, allowed)))
    # The question, and the two likeliest paths.
    assert len(encoder.asked) == 3
    assert [some.has_query for some in known] == [True, True, False, False]
    residual = guide.residual.score_neighbours(QUESTION, paths, near, OpenCandidates(100, allowed)).scores
    scored = guide.score_neighbours(QUESTION, paths, near, OpenCandidates(100, allowed))
    column = {feature: number for number, feature in enumerate(FEATURES)}
    for path, some, (pool, alone), (rows, score), opinion in zip(
        paths, known, residual, scored.scores, scored.opinions, strict=True
    ):
        candidates, features = some.rows, some.features
        assert candidates.tolist() == pool.tolist() == rows.tolist()
        assert features.shape == (len(candidates), len(FEATURES))
        assert score == pytest.approx(alone)
        strengths = walk.graph.strengths(path[-1], candidates)
        strengths[~np.isin(candidates, walk.graph.neighbours(path[-1]))] = 0.0
        assert features[:, column["strength"]] == pytest.approx(strengths)
        assert features[:, column["strength, later"]] == pytest.approx(strengths * (len(path) > 1))
        learnt = COEFFICIENTS.with_query if some.has_query else COEFFICIENTS.without
        by_hand = [sum(a * b for a, b in zip(known, learnt, strict=False)) for known in features.tolist()]
        assert opinion.scores == pytest.approx(by_hand)
        assert (opinion.calibration.edge, opinion.trust) == (0.0, 0.5)
    assert guide.missing(QUESTION, paths) == guide.residual.missing(QUESTION, paths)
    assert [hit.node.id for hit in walk.retrieve(QUESTION, 3)]


@pytest.mark.parametrize(
    ("recipe", "objective", "problem"),
    [
        ("kgp(guide=trained)", None, "needs an encoder"),
        ("kgp(guide=trained)", "", "needs a multi-hop encoder"),
        ("kgp(guide=trained, graph=keywords)", "mdr", "was trained on another graph"),
    ],
)
def test_a_trained_guide_says_what_it_needs(base, recipe: str, objective: str | None, problem: str) -> None:
    encoder = None
    if objective is not None:
        encoder = Hops()
        encoder.objective = objective
        base.encode(encoder)
    with pytest.raises(UsageError, match=problem):
        registry.build_retriever(recipe, base, encoder=encoder)
