"""A mounted Wikibase: labels of properties, dates and quantities as people write them, on a real SPARQL server; and
the comparison questions of 2WikiMultihopQA over a store of their gold triples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.evaluate.datasets import load_dataset
from clew.evaluate.metrics.answers import exact_match
from clew.knowledge_base import registry
from clew.papers.gold_hops import gold_chain
from clew.store.sparql.mount_options import MountOptions
from clew.store.sparql.wikibase import write_quantity, write_time
from sparql_servers import serving
from wikibase_store import build_wikibase, describe_properties, describe_quantity, describe_time, is_covered

DATA = Path(__file__).parents[3] / "shared/data/2wikimultihopqa/train500.jsonl"

TURTLE = (
    describe_properties()
    + 'wd:Q1 rdfs:label "Ada Strake"@en ; wdt:P27 wd:Q9 .\nwd:Q9 rdfs:label "Corran"@en .\n'
    + 'wd:Q2 rdfs:label "Bo Harker"@en ; wdt:P27 wd:Q9 .\nwd:Q712226 rdfs:label "square kilometre"@en .\n'
    + describe_time("Q1", "P569", "1834-05-03T00:00:00Z", 11, 1)
    + describe_time("Q1", "P570", "1902-11-01T00:00:00Z", 10, 2)
    + describe_time("Q2", "P569", "1834-01-01T00:00:00Z", 9, 3)
    + describe_time("Q2", "P570", "-0043-03-15T00:00:00Z", 11, 4)
    + describe_quantity("Q9", "P2046", "+1203.5", "Q712226", 5)
    + 'wd:Q9 wdt:P577 "1800-01-01T00:00:00Z"^^xsd:dateTime ; '
    + '<http://schema.org/version> "77"^^xsd:integer .\n'
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from serving(tmp_path_factory.mktemp("wikibase"), TURTLE)


def test_literals_have_the_names_of_their_properties_and_are_written_as_people_write_them(
    server: str, tmp_path: Path
) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.mount("wikidata", server)
        (ada,) = base.graphs.entities("wikidata", "Ada Strake")
        assert dict(ada.properties) == {"date of birth": "3 May 1834", "date of death": "November 1902"}
        (bo,) = base.graphs.entities("wikidata", "Bo Harker")
        assert dict(bo.properties) == {"date of birth": "1834", "date of death": "15 March 44 BC"}
        # A direct claim without a full value, and what a Wikibase says of its own page.
        (corran,) = base.graphs.entities("wikidata", "Corran")
        assert dict(corran.properties) == {"area": "1,203.5 square kilometre", "publication date": "1800"}


def test_a_chain_compares_dates_and_places_of_a_wikibase(server: str, tmp_path: Path) -> None:
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.mount("wikidata", server)
        method = registry.build_method("chain(sources=kg)", base.store)
        for question, relation, expected in (
            ("Who died first, Ada Strake or Bo Harker?", "date of death", "Bo Harker"),
            ("Are Ada Strake and Bo Harker from the same country?", "country of citizenship", "yes"),
        ):
            chain = f"Ada Strake >> {relation} >> #1; Bo Harker >> {relation} >> #2; final answer: #answer"
            answer = method.answer(Question(question, chain=chain), TrailRecorder())
            assert answer.text == expected
            assert len(answer.quotes) == 2
        chain = "Corran >> area >> #1; final answer: #1"
        answer = method.answer(Question("How big is Corran?", chain=chain), TrailRecorder())
        assert answer.text == "1,203.5 square kilometre"
        assert [quote.text for quote in answer.quotes] == ["Corran >> area >> 1,203.5 square kilometre"]


@pytest.mark.parametrize(
    ("time", "precision", "written"),
    [
        ("1975-02-27T00:00:00Z", 11, "27 February 1975"),
        ("1975-02-27T00:00:00Z", None, "27 February 1975"),
        ("1975-01-01T00:00:00Z", 11, "1 January 1975"),
        ("1975-01-01T00:00:00Z", None, "1975"),
        ("1975-01-01T00:00:00Z", 8, "1970s"),
        ("1801-01-01T00:00:00Z", 7, "19th century"),
        ("0000-01-01T00:00:00Z", 9, "1 BC"),
        ("2001-01-01T12:30:00Z", 14, "1 January 2001"),
        ("http://www.wikidata.org/.well-known/genid/1", None, "http://www.wikidata.org/.well-known/genid/1"),
    ],
)
def test_times_are_written_to_their_precision(time: str, precision: int | None, written: str) -> None:
    assert write_time(time, precision) == written


def test_amounts_are_numbers_unless_they_have_a_unit() -> None:
    assert write_quantity("+7000", "") == 7000 and write_quantity("-2.25", "") == -2.25
    assert write_quantity("+7000", "metre") == "7,000 metre"


@pytest.mark.slow
def test_comparison_questions_are_answered_by_gold_chains_over_a_wikibase(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph", reason="the extra 'rdf' is not installed")
    if not DATA.exists():
        pytest.skip("the shared 2WikiMultihopQA is not here")
    examples = [
        example
        for example in load_dataset("2wikimultihopqa", DATA).examples()
        if "comparison" in example.question_type and is_covered(example.chain)
    ]
    rows = map(json.loads, DATA.read_text(encoding="utf-8").splitlines())
    ids = {
        name: number
        for row in rows
        for names, numbers in zip(row["evidences"], row["evidences_id"], strict=False)
        for name, number in zip(names[::2], numbers[::2], strict=True)
        if "date" not in names[1]
    }
    chosen = examples[::5]
    store, titles = build_wikibase([example.chain for example in chosen], ids, tmp_path)
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.mount("wikidata", str(store), MountOptions(titles=str(titles)))
        method = registry.build_method("chain(sources=kg)", base.store)
        wrong = []
        for example in chosen:
            question = Question(example.question, chain=str(gold_chain(example)[0]))
            text = method.answer(question, TrailRecorder()).text
            if not any(exact_match(text, gold) for gold in example.answers):
                wrong.append(f"{example.question} {text}")
    assert len(chosen) == 51 and len(wrong) <= 1, wrong
