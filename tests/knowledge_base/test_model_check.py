"""``clew doctor --llm``: three servers with different abilities."""

import json

import pytest

from clew.core.component import Auto
from clew.knowledge_base import registry
from clew.knowledge_base.model_check import check_model, saved_settings
from clew.models import create_language_model
from clew.store.store import Store
from command_line import run
from scripted import ScriptedServer

CHAINS = {
    "The Salt Orchard": "The Salt Orchard >> director >> #1; #1 >> mother >> #2; final answer: #2",
    "Low Water": "Low Water >> composer >> #1; #1 >> birthplace >> #2; #2 >> country >> #3; final answer: #3",
}
QUOTES = {
    "Who designed the Corran Light?": (1, "The Corran Light was designed by Ada Strake", "Ada Strake"),
    "From which town was Ada Strake?": (2, "was an engineer from Saltreach", "Saltreach"),
    "How much water does the Fenner Dam hold?": (
        3,
        "4 million cubic metres of water",
        "4 million cubic metres",
    ),
}
TOWNS = {"1834": ("Ellery", 1834), "1902": ("Dunmere", 1902), "1761": ("Saltreach", 1761)}


def to_object(chain):
    *triples, final = chain.split("; ")
    rows = [dict(zip(("head", "relation", "tail"), triple.split(" >> "), strict=True)) for triple in triples]
    return {"triples": rows, "answer": final.removeprefix("final answer: ")}


def able(request):
    """Reply to each of the twenty prompts as a good model does."""
    user, last = request.user, request.user.rpartition("Question: ")[2].partition("\n")[0]
    if "code word" in user:
        return "Marlinspike"
    if "keys town and year" in user:
        town, year = next(value for key, value in TOWNS.items() if key in user)
        return {"town": town, "year": year}
    if "final answer" in request.system:
        return next(chain for name, chain in CHAINS.items() if name in last)
    if "triples" in request.system:
        return to_object(next(chain for name, chain in CHAINS.items() if name in last))
    if "quotes" in request.system:
        quote = QUOTES.get(last)
        if quote is None:
            return {"quotes": [], "answer": "", "abstain": True}
        return {"quotes": [{"source": quote[0], "text": quote[1]}], "answer": quote[2], "abstain": False}
    if "ranking" in request.system:
        return {"ranking": [3, 1, 2]}
    if "Respond with yes or no" in user:
        return "No." if "apples" in user else "Yes."
    return "4" if "Numbers of the sections" in user else "3"


def schema_only(request):
    """A model that keeps to a schema, writes no chains of its own, and answers what it is not told."""
    reply = able(request)
    if isinstance(reply, dict) and "quotes" in reply and reply["abstain"]:
        return {"quotes": [{"source": 1, "text": "first lit in 1871"}], "answer": "1871", "abstain": False}
    return "The chain goes from the film to its director." if "final answer" in request.system else reply


def babbler(request):
    return "Once upon a time there was a lighthouse, and many ships came by."


@pytest.mark.slow
def test_three_models_get_the_settings_that_they_can_live_with():
    expected = {
        able: ({"reader": "cited", "form": "fewshot", "paragraphs": "base"}, 20),
        schema_only: ({"reader": "span", "form": "structured", "paragraphs": "base"}, None),
        babbler: ({"reader": "span", "form": "fewshot", "paragraphs": "encoder"}, None),
    }
    for script, (settings, calls) in expected.items():
        with ScriptedServer(script) as server:
            report = check_model(create_language_model(server.llm))
        assert report.settings == settings, [ability for ability in report.abilities if ability.problem]
        assert sum(ability.asked for ability in report.abilities) == 20
        assert calls is None or (report.usage.calls == calls and not any(a.problem for a in report.abilities))
        assert script is not babbler or max(ability.right for ability in report.abilities[:-2]) == 0


def test_the_result_is_kept_and_methods_go_by_it(monkeypatch, tmp_path):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path))
    with ScriptedServer(babbler) as server:
        shown = run("doctor", "--llm", server.llm)
        assert "chains by example  0 of 2" in shown.stdout and "reader=span" in shown.stdout
        assert json.loads(run("doctor", "--llm", server.llm, "--json").stdout)["settings"]["reader"] == "span"
        assert saved_settings(server.llm)["paragraphs"] == "encoder" and saved_settings("other:model") == {}
        store = Store.open(tmp_path / "kb", create=True)
        resources = registry.open_resources(store, create_language_model(server.llm), None)
        assert resources.choose(Auto("cited", "none")).name == "none"
        other = registry.open_resources(store, create_language_model(f"{server.url}#other"), None)
        assert other.choose(Auto("cited", "none")).name == "cited"
    (tmp_path / "model-reports.json").write_text("{")
    assert saved_settings(server.llm) == {}
