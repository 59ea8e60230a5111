"""What things will cost is said before they happen, and is what they cost."""

import json
from collections import Counter
from pathlib import Path

import pytest

from clew.store.store import Store
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
        sent["read" if "missing" in known else "structure" if "sql" in known else "guide"] += 1
        if "sql" in known:
            return {"sql": "", "abstain": True}
        return {"quotes": [], "why": "", "answer": "", "missing": ""} if "missing" in known else " "

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


def test_a_copy_in_storage_is_what_was_estimated(kb, tmp_path) -> None:
    """Bytes and objects are those of the copy; requests, those that the questions make; money, sums of these."""
    record = json.loads(run("estimate", "--storage", "--price", "out=1", "--kb", kb, "--json").stdout)[
        "storage"
    ]
    copied = json.loads(run("copy", kb, f"file://{tmp_path / 'copy'}", "--json").stdout)
    assert record["bytes"] == copied["bytes"] and record["passages"] == record["measured"]
    objects = list((tmp_path / "copy" / "pieces").iterdir())
    assert record["objects"] == len(objects) == record["puts"] - 2
    # A small base is fetched ahead, whole but for the database and the files that only a copy back needs.
    first, later = record["first"], record["later"]
    assert 3 < first["gets"] <= len(objects) and 10_000 < first["bytes"] < 2 * record["bytes"]
    assert later["gets"] == 1 and later["bytes"] == 0
    assert record["prices"]["out"] == 1 and record["prices"]["put"] == 0.005
    hours = 1000 * first["cpu_seconds"] / 3600
    expected = first["gets"] * 0.0004 + first["bytes"] / 1e6 + hours * record["prices"]["cpu"]
    assert record["dollars"]["a thousand first questions"] == pytest.approx(expected)
    assert record["dollars"]["storage a month"] == pytest.approx(0.023 * record["bytes"] / 1e9)
    assert not list(kb.glob("temporary/*"))


@pytest.mark.slow
def test_a_larger_copy_in_storage_is_extrapolated(kb) -> None:
    records = [
        json.loads(run("estimate", "--storage", "--passages", number, "--kb", kb, "--json").stdout)["storage"]
        for number in (10_000, 1_000_000)
    ]
    small, large = records
    # The postings of a small base lie in the archive a second time.
    assert 0.9 * 100 * small["bytes"] < large["bytes"] <= 100 * small["bytes"]
    assert large["add_cpu_seconds"] > 20 * small["add_cpu_seconds"] and large["shards"] == 8
    # A question reads vectors whole, and more postings; nodes and texts are as many.
    assert 10 * small["first"]["bytes"] < large["first"]["bytes"] < 100 * small["first"]["bytes"]
    assert small["later"]["gets"] < large["later"]["gets"] < 2000
    printed = run(
        "estimate", "--storage", "--passages", 1_000_000, "--ask", "Who built it?", "--kb", kb
    ).output
    for words in (
        "1,000,000 passages, extrapolated from",
        "PUTs",
        "GETs",
        "vectors",
        "little to extrapolate",
    ):
        assert words in printed


def test_what_cannot_be_estimated_of_storage(kb, tmp_path) -> None:
    for arguments, message in (
        (("--storage", "--price", "get"), "'get' is no price"),
        (("--storage", "--price", "disk=1"), "is no price"),
        (("--storage", "--price", "put=-1"), "is no price"),
        (("--passages", "5", "--ask", "Who?"), "are for --storage"),
        ((), "or --storage"),
    ):
        assert message in run("estimate", *arguments, "--kb", kb, status=2).output, arguments
    empty = tmp_path / "empty"
    Store.open(empty, create=True).close()
    assert "is empty" in run("estimate", "--storage", "--kb", empty, status=2).output
