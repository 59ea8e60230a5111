import json
import multiprocessing
import stat
from dataclasses import replace

import pytest

from clew.core.errors import (
    BudgetExceeded,
    Damaged,
    ModelError,
    NotFound,
    StoreError,
    Unavailable,
    UsageError,
)
from clew.core.protocols import Prompt
from clew.core.types import Usage
from clew.models import create_language_model
from clew.models.cache import CachedModel, CompletionCache, prompt_to_dict
from clew.models.cassette import RecordingModel, ReplayModel
from clew.models.endpoint import Endpoint
from clew.models.openai import OpenAIModel
from clew.models.wrappers import Budget, BudgetedModel, RetryingModel, RetryPolicy
from scripted import Reply, ScriptedServer, refusal


def at(server, name=None):
    return OpenAIModel(Endpoint(name or server.llm, server.url, "scripted"))


def echo(request):
    return request.user.upper()


# Retrying


def patient(waits, **options):
    return RetryPolicy(sleep=waits.append, **options)


def test_a_busy_endpoint_is_asked_again_after_as_long_as_it_says():
    waits = []
    script = [
        refusal(429, headers={"Retry-After": "7"}),
        refusal(429, headers={"retry-after": "0.5"}),
        "fine",
    ]
    with ScriptedServer(script) as server:
        completions = RetryingModel(at(server), patient(waits)).complete([Prompt("q")])
    assert completions[0].text == "fine"
    assert waits == [7.0, 0.5]
    assert completions[0].usage.calls == 1


def test_without_a_word_from_the_endpoint_the_wait_doubles_within_bounds():
    waits = []
    with ScriptedServer(
        [refusal(500), Reply("x" * 99, cut=True), refusal(503), refusal(502), "ok"]
    ) as server:
        RetryingModel(at(server), patient(waits, longest_wait=3.0)).complete([Prompt("q")])
    assert all(
        low <= wait <= high
        for wait, (low, high) in zip(waits, [(1, 1.5), (2, 3), (3, 3), (3, 3)], strict=True)
    )


def test_it_gives_up_in_the_end_with_the_last_reason():
    waits = []
    with ScriptedServer(lambda _: refusal(503, "overloaded")) as server:
        with pytest.raises(Unavailable, match="overloaded"):
            RetryingModel(at(server), patient(waits, tries=3)).complete([Prompt("q")])
        assert len(server.requests) == 3
    assert len(waits) == 2


def test_an_endpoint_that_asks_for_too_long_a_wait_is_not_waited_for():
    waits = []
    with (
        ScriptedServer([refusal(429, headers={"Retry-After": "3600"})]) as server,
        pytest.raises(Unavailable, match="It asks to wait 3600 seconds"),
    ):
        RetryingModel(at(server), patient(waits)).complete([Prompt("q")])
    assert waits == []


def test_what_cannot_get_better_is_not_retried():
    waits = []
    with ScriptedServer([refusal(401)]) as server, pytest.raises(ModelError):
        RetryingModel(at(server), patient(waits)).complete([Prompt("q")])
    assert waits == []


def test_only_the_prompt_that_was_refused_is_asked_again():
    refused = []

    def reply(request):
        if request.user == "b" and not refused:
            refused.append(1)
            return refusal(503)
        return echo(request)

    with ScriptedServer(reply) as server:
        completions = RetryingModel(at(server), patient([])).complete([Prompt(text) for text in "abc"])
    assert [reply.text for reply in completions] == list("ABC")
    assert sorted(request.user for request in server.requests) == ["a", "b", "b", "c"]


# Cached


def test_the_same_prompt_is_asked_once(tmp_path):
    cache = CompletionCache(tmp_path / "c.sqlite")
    with ScriptedServer(echo) as server:
        first = CachedModel(at(server), cache).complete([Prompt("a"), Prompt("b"), Prompt("a")])
        repeated = CachedModel(at(server), cache).complete([Prompt("b"), Prompt("c")])
    assert sorted(request.user for request in server.requests) == ["a", "b", "c"]
    assert [(reply.text, reply.cached, reply.usage.calls) for reply in first] == [
        ("A", False, 1),
        ("B", False, 1),
        ("A", True, 0),
    ]
    assert [(reply.text, reply.cached) for reply in repeated] == [("B", True), ("C", False)]
    assert repeated[0].usage == Usage()
    assert cache.count() == 3


def test_everything_a_reply_depends_on_is_in_the_key(tmp_path):
    cache = CompletionCache(tmp_path / "c.sqlite")
    prompt = Prompt("a")
    different = [
        prompt,
        replace(prompt, system="s"),
        replace(prompt, max_tokens=9),
        replace(prompt, temperature=0.5),
        replace(prompt, stop=("x",)),
        replace(prompt, schema={"type": "object"}),
    ]
    with ScriptedServer(echo) as server:
        CachedModel(at(server), cache).complete(different)
        assert len(server.requests) == len(different)
        CachedModel(at(server, "http://other/v1#m"), cache).complete([prompt])
        assert len(server.requests) == len(different) + 1
        assert CachedModel(at(server), cache).complete([replace(prompt, role="guide")])[0].cached


@pytest.mark.slow
def test_what_was_answered_before_a_failure_is_kept(tmp_path):
    cache = CompletionCache(tmp_path / "c.sqlite")
    prompts = [Prompt(f"q{n}") for n in range(40)]
    with ScriptedServer(lambda r: refusal(401) if r.user == "q39" else echo(r)) as server:
        with pytest.raises(ModelError):
            CachedModel(at(server), cache).complete(prompts)
        assert cache.count() == 32


def test_clearing_forgets_everything_and_leaves_no_text_behind(tmp_path):
    cache = CompletionCache(tmp_path / "deep" / "c.sqlite")
    assert cache.size == cache.clear() == 0
    assert not cache.path.exists()
    with ScriptedServer(lambda _: "unmistakable words of a reply") as server:
        CachedModel(at(server), cache).complete([Prompt("secret question")])
    content = cache.path.read_bytes()
    assert b"unmistakable" in content
    assert b"secret question" not in content
    assert stat.S_IMODE(cache.path.stat().st_mode) == 0o600
    assert cache.size > 0
    assert cache.clear() == 1
    assert b"unmistakable" not in cache.path.read_bytes()
    assert cache.size == 0


def test_samples_of_one_prompt_are_drawn_remembered_and_replayed_apart(tmp_path):
    cache = CompletionCache(tmp_path / "c.sqlite")
    drawn = [Prompt("q", temperature=0.7, sample=n) for n in range(3)]
    assert "sample" not in prompt_to_dict(drawn[0]) and prompt_to_dict(drawn[2])["sample"] == 2
    with ScriptedServer(lambda request: f"reply {len(server.requests)}") as server:
        tape = RecordingModel(CachedModel(at(server), cache), tmp_path / "tape.jsonl")
        first = [reply.text for reply in tape.complete(drawn)]
        assert sorted(first) == ["reply 1", "reply 2", "reply 3"]
        repeated = CachedModel(at(server), cache).complete(drawn[::-1])
        assert [reply.text for reply in repeated] == first[::-1] and all(reply.cached for reply in repeated)
        assert len(server.requests) == 3
        # Asked once without a number, it is the first sample; and the number is not sent.
        assert CachedModel(at(server), cache).complete([replace(drawn[0], sample=0)])[0].text == first[0]
        assert all("sample" not in request.body for request in server.requests)
    replayed = ReplayModel(tmp_path / "tape.jsonl").complete(drawn[::-1])
    assert [reply.text for reply in replayed] == first[::-1]


def test_a_damaged_cache_is_an_error_that_says_what_to_do(tmp_path):
    path = tmp_path / "c.sqlite"
    path.write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(Damaged, match="Delete it"):
        CompletionCache(path).count()
    with pytest.raises(StoreError, match="CLEW_CACHE"):
        CompletionCache(path / "below").count()


def fill(path, mark):
    from clew.core.protocols import Completion

    cache = CompletionCache(path)
    for n in range(50):
        cache.put({f"{mark}{n}": Completion(f"{mark}{n}")})
        cache.find([f"{mark}{n}", "other"])


@pytest.mark.slow
def test_several_processes_share_a_cache(tmp_path):
    path = tmp_path / "c.sqlite"
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=fill, args=(path, mark)) for mark in "ab"]
    for worker in workers:
        worker.start()
    fill(path, "c")
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert CompletionCache(path).count() == 150


# Budgeted


def test_a_batch_that_would_exceed_the_calls_is_not_begun():
    with ScriptedServer(echo) as server:
        model = BudgetedModel(at(server), Budget(calls=3))
        model.complete([Prompt("a"), Prompt("b")])
        with pytest.raises(BudgetExceeded, match=r"exceed the budget: 4 of 3 calls\. Calls so far: 2"):
            model.complete([Prompt("c"), Prompt("d")])
        assert len(server.requests) == 2
        model.complete([Prompt("e")])
        assert model.budget.spent.calls == 3


def test_tokens_are_set_aside_at_their_most_and_settled_by_what_was_used():
    prompt = Prompt("x" * 40, max_tokens=100)
    most = 10 + 4 + 100
    with ScriptedServer(echo) as server:
        model = BudgetedModel(at(server), Budget(tokens=most + 18))
        model.complete([prompt])  # uses 11 + 7
        model.complete([prompt])
        with pytest.raises(BudgetExceeded, match="tokens"):
            model.complete([prompt])
    assert model.budget.spent.tokens_in + model.budget.spent.tokens_out == 36


def test_money_is_bounded_where_a_price_is_known(tmp_path, monkeypatch):
    with ScriptedServer(echo) as server:
        with pytest.raises(UsageError, match="no price is known"):
            BudgetedModel(at(server), Budget(money=1.0))
        prices = tmp_path / "prices.json"
        prices.write_text(json.dumps({"models": {server.llm: [1_000_000, 2_000_000]}}))
        monkeypatch.setenv("CLEW_PRICES", str(prices))
        model = BudgetedModel(at(server), Budget(money=30.0))
        (completions,) = model.complete([Prompt("x" * 4, max_tokens=10)])  # at most 5 + 20 dollars
        assert completions.usage.money == 11 + 14
        with pytest.raises(BudgetExceeded, match="dollars"):
            model.complete([Prompt("x" * 4, max_tokens=10)])


def test_one_budget_is_shared_by_all_roles():
    with ScriptedServer(echo) as item, ScriptedServer(echo) as two:
        model = create_language_model(f"guide={item.llm},read={two.llm}", budget=Budget(calls=2))
        model.complete([Prompt("a", role="guide"), Prompt("b", role="read")])
        with pytest.raises(BudgetExceeded):
            model.complete([Prompt("c", role="guide")])


def test_a_failed_call_counts_as_a_call():
    with ScriptedServer([refusal(401), "x"]) as server:
        model = BudgetedModel(at(server), Budget(calls=1))
        with pytest.raises(ModelError):
            model.complete([Prompt("a")])
        with pytest.raises(BudgetExceeded):
            model.complete([Prompt("a")])


# Cassettes


def test_a_recording_replays_without_the_model(tmp_path):
    tape = tmp_path / "tape.jsonl"
    prompts = [Prompt("a", "sys"), Prompt("ü\u2028b", role="guide"), Prompt("a", "sys")]
    script = iter(["one", "two", "three"])
    with ScriptedServer(lambda _: next(script)) as server:
        model = OpenAIModel(Endpoint(server.llm, server.url, "m"), workers=1)
        recorded = RecordingModel(model, tape).complete(prompts)
    replayed = create_language_model(f"replay:{tape}").complete(prompts)
    assert [reply.text for reply in replayed] == ["one", "two", "three"]
    assert replayed == recorded
    assert ReplayModel(tape).complete([prompts[2], prompts[1], prompts[0]])[2].text == "three"


def test_a_miss_names_the_role_and_what_differs_from_the_nearest(tmp_path):
    tape = tmp_path / "tape.jsonl"
    with ScriptedServer(echo) as server:
        RecordingModel(at(server), tape).complete(
            [Prompt("Who built the boat Bittern?"), Prompt("Something else")]
        )
    with pytest.raises(ModelError) as caught:
        ReplayModel(tape).complete([Prompt("Who built the boat Heron?")])
    assert caught.value.problem == f"{tape} has no reply to this 'read' prompt"
    assert (
        "it has 'Who built the boat Bittern?', this one 'Who built the boat Heron?'"
        in caught.value.hint.replace("\\n", "")
    )
    with pytest.raises(ModelError, match="none with that role"):
        ReplayModel(tape).complete([Prompt("q", role="grade")])


def test_more_asked_than_was_recorded_is_another_run(tmp_path):
    tape = tmp_path / "tape.jsonl"
    with ScriptedServer(echo) as server:
        RecordingModel(at(server), tape).complete([Prompt("a")])
    model = ReplayModel(tape)
    model.complete([Prompt("a")])
    with pytest.raises(ModelError, match="has 1 replies to this 'read' prompt, and one more was needed"):
        model.complete([Prompt("a")])


def test_a_missing_or_damaged_tape_is_named_with_its_line(tmp_path):
    tape = tmp_path / "tape.jsonl"
    with pytest.raises(NotFound, match="Make one with --record"):
        ReplayModel(tape).complete([Prompt("a")])
    tape.write_text('{"prompt": {"user": "a", "system": "", "role": "read"}, "completion": {"text": "x"}}\n')
    with pytest.raises(ModelError, match="line 1 is no recorded completion"):
        ReplayModel(tape).complete([Prompt("a")])


def test_what_the_cache_answers_is_on_the_tape_too(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    tape = tmp_path / "tape.jsonl"
    with ScriptedServer(echo) as server:
        for _ in range(2):
            create_language_model(server.llm, cache=True, record=tape).complete([Prompt("a")])
        assert len(server.requests) == 1
    model = ReplayModel(tape)
    assert [model.complete([Prompt("a")])[0].usage.calls for _ in range(2)] == [1, 0]


def test_what_is_cached_is_charged_where_methods_are_compared(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path))
    with ScriptedServer(["one"]) as server:
        first = create_language_model(server.llm, cache=True, charge_cached=True).complete([Prompt("a")])[0]
        repeated = create_language_model(server.llm, cache=True, charge_cached=True).complete([Prompt("a")])[
            0
        ]
        free = create_language_model(server.llm, cache=True).complete([Prompt("a")])[0]
    assert (
        repeated.cached
        and repeated.usage.tokens_in == first.usage.tokens_in == 11
        and repeated.usage.calls == 1
    )
    assert free.usage.calls == 0 and len(server.requests) == 1
