"""Methods that ask a model, with a real one (``tests/llama_server.py``) over a small base.

The model is too small to be right. Nothing may fail or hang, no quote may be shown that does not stand in its source,
the budget holds, and tokens are those that the server itself counts.
"""

import urllib.request

import pytest

from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.knowledge_base import registry
from clew.models import create_language_model
from clew.models.wrappers import Budget
from llama_server import MISSING, llama_server, model_file

pytestmark = pytest.mark.slow
QUESTION = "In which town was the director of Low Water born?"
#: The three with the shortest prompts; benchmarks/small_model.py has all ten over real passages.
RECIPES = {
    "selfask": "selfask(k=2, rounds=1)",
    "ircot": "ircot(each=1, rounds=1)",
    "cited": "read(retriever=search, k=2, reader=cited)",
}
CALLS = 16


@pytest.fixture(scope="module")
def smollm():
    if model_file() is None:
        pytest.skip(MISSING)
    with llama_server(2048) as llm:
        yield llm


def server_tokens(llm):
    """Return the tokens that the server has read, from its cache or not, and written."""
    page = urllib.request.urlopen(f"{llm.partition('/v1')[0]}/metrics").read().decode()
    lines = (
        line.removeprefix("llamacpp:").split(" ") for line in page.splitlines() if not line.startswith("#")
    )
    counters = {name: float(value) for name, value in lines}
    read = counters["prompt_tokens_total"] + counters["prompt_tokens_cached_total"]
    return read, counters["tokens_predicted_total"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_method_gets_on_with_a_real_and_very_small_model(world, smollm, name):
    budget = Budget(calls=CALLS)
    model = create_language_model(smollm, budget=budget)
    method = registry.build_method(RECIPES[name], world, llm=model)
    before = server_tokens(smollm)
    answer = method.answer(Question(QUESTION), TrailRecorder())
    used = tuple(after - start for after, start in zip(server_tokens(smollm), before, strict=True))
    assert (budget.spent.tokens_in, budget.spent.tokens_out) == used and not budget.spent.estimated
    assert 1 <= budget.spent.calls <= CALLS
    texts = {hit.node.id: hit.node.text for hit in (*answer.context, *answer.evidence)}
    assert all(quote.text in texts[quote.node] for quote in answer.quotes)
    assert answer.text and answer.evidence
