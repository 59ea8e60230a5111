"""What things will cost is said before they happen, and is what they cost."""

import json
from collections import Counter
from pathlib import Path

import pytest

from command_line import run
from scripted import ScriptedServer

SAMPLES = Path(__file__).parents[3] / "samples" / "documents"


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe", ["default", "kgp(guide=generated, hops=3, budget=40)", "read(retriever=bm25)"]
)
def test_the_calls_that_are_foreseen_are_the_calls_that_are_made(kb, recipe, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path))
    question = "Who built the lighter Bittern?"
    sent = Counter()

    def script(request):
        # The replies of the rehearsal: nothing named, nothing expected, nothing claimed.
        schema = request.body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        known = schema.get("properties", {})
        sent["read" if "abstain" in known else "guide"] += 1
        return {"answer": "", "quotes": [], "abstain": True} if "abstain" in known else " "

    with ScriptedServer(script) as server:
        record = json.loads(
            run(
                "estimate", "--ask", question, "--llm", server.llm, "--recipe", recipe, "--kb", kb, "--json"
            ).stdout
        )["ask"]
        assert not sent  # nothing is asked to find out what asking costs
        run("ask", question, "--llm", server.llm, "--recipe", recipe, "--kb", kb)
    assert {item["role"]: item["usage"]["calls"] for item in record} == dict(sent)
    assert all(item["usage"]["tokens_in"] > 100 and item["usage"]["money"] is None for item in record)


def test_money_is_said_where_a_price_is_known(kb) -> None:
    output = run("estimate", "--ask", "Who built it?", "--llm", "openai:gpt-4o-mini", "--kb", kb).stdout
    assert "read: 1 call" in output and "$0.0" in output
    assert "no language model" in run("estimate", "--ask", "Who built it?", "--kb", kb).stdout


@pytest.mark.slow
def test_an_estimate_of_every_file_is_what_adding_brings_and_makes_no_base(tmp_path) -> None:
    kb = tmp_path / "kb"
    record = json.loads(run("estimate", SAMPLES, "--sample", 0, "--kb", kb, "--json").stdout)["add"]
    assert not kb.exists()
    done = json.loads(run("add", SAMPLES, "--kb", kb, "--json").stdout)
    kinds = ("pages", "passages", "tables", "rows")
    assert record["files"] == record["read"] == len(done["added"]) == record["documents"]
    assert [record[kind] for kind in kinds] == [done[kind] for kind in kinds]
    again = json.loads(run("estimate", SAMPLES, "--kb", kb, "--json").stdout)["add"]
    assert (again["files"], again["unchanged"]) == (0, record["files"])


def test_a_sample_of_equal_files_extrapolates_exactly(tmp_path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.txt").write_text(f"Paragraph one of {number}.\n\nParagraph two of {number}.\n")
    record = json.loads(run("estimate", tmp_path, "--sample", 2, "--kb", tmp_path / "kb", "--json").stdout)[
        "add"
    ]
    assert (record["read"], record["files"], record["documents"], record["passages"]) == (2, 9, 9, 18)
    assert "about 9 documents" in run("estimate", tmp_path, "--sample", 2, "--kb", tmp_path / "kb").stdout
