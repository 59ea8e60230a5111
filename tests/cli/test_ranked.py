"""Questions as typed triples on the command line: ranked answers, files of them, and why something is none."""

import csv
import json

import pytest

from clew.kb import KnowledgeBase
from command_line import run
from film_world import films

TRIPLES = (
    "#1 : film; #1 >> directed_by >> Ilse Varnholt; not #1 >> starred_actors >> Ilse Varnholt; "
    "#1 ~ hunted; final answer: #1"
)


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranked") / "base"
    with KnowledgeBase.open(folder, create=True) as store:
        films(store)
    return folder


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))


def test_ranked_answers_say_what_each_meets_and_misses(kb):
    said = " ".join(run("ask", "--triples", TRIPLES, "--kb", kb).stdout.split())
    assert "Glass Harvest, The Salt Orchard" in said and "2 meet all constraints" in said
    assert "✓ #1 >> directed_by >> Ilse Varnholt Glass Harvest >> directed_by >> Ilse Varnholt" in said
    assert "✗ not #1 >> starred_actors >> Ilse Varnholt" in said and "only fills the list up" in said
    assert "? ~ hunted ranks, does not filter" in said
    assert "Ilse Varnholt is Ilse Varnholt films:p1 1 (name)" in said  # the trail
    assert "#1 2: The Salt Orchard; Glass Harvest" in said


def test_a_constraint_that_is_given_up_or_unknown_is_said_beside_the_answer(kb):
    wanted = "#1 : film; #1 >> directed_by >> Marit Solheim; #1.release_year < 1933; final answer: #1"
    said = " ".join(run("ask", "--triples", wanted, "--kb", kb).stdout.split())
    assert "Given up: #1.release_year < 1933" in said
    wanted = (
        "#1 : film; #1 >> directed_by >> Marit Solheim; #1 >> praised by >> Otto Bexley; final answer: #1"
    )
    said = " ".join(run("ask", "--triples", wanted, "--kb", kb).stdout.split())
    assert "Not looked up: #1 >> praised by >> Otto Bexley 'Otto Bexley' is not in the graph" in said


def test_why_not(kb):
    said = " ".join(run("ask", "--triples", TRIPLES, "--why-not", "Low Water", "--kb", kb).stdout.split())
    assert "Why not Low Water? films:f2 This drops it: not #1 >> starred_actors >> Ilse Varnholt" in said
    shown = json.loads(
        run("ask", "--triples", TRIPLES, "--why-not", "Nine Lanterns", "--json", "--kb", kb).stdout
    )
    assert shown["why_not"][0]["dropped_by"] == ["#1 >> directed_by >> Ilse Varnholt"]
    wrong = run("ask", "--triples", TRIPLES, "--why-not", "Zanzibar", "--kb", kb, status=2)
    assert "nothing called 'Zanzibar'" in wrong.output


def test_ranked_answers_are_written_as_csv_and_json(kb, tmp_path):
    run("ask", "--triples", TRIPLES, "--out", tmp_path / "a.csv", "--kb", kb)
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows[:2]] == ["Glass Harvest", "The Salt Orchard"]
    assert rows[0]["rank"] == "1" and rows[0]["meets_all"] == "True" and rows[2]["meets_all"] == "False"
    assert rows[0]["not #1 >> starred_actors >> Ilse Varnholt"] == "1.0" and rows[0]["~ hunted"] == ""
    assert rows[0]["evidence"] == "Glass Harvest >> directed_by >> Ilse Varnholt"
    assert "A thriller in which a glazier is hunted." in rows[0]["text"]
    assert any("#1 >> directed_by >> Ilse Varnholt" in row["missed"] for row in rows[2:])
    run("ask", "--triples", TRIPLES, "--out", tmp_path / "a.json", "--kb", kb)
    shown = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in shown["ranked"]] == [row["name"] for row in rows]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "answers.xlsx"], "neither .csv nor .json"),
        (["--out", "nowhere/answers.csv"], "no folder"),
        (["--chain", "a >> b >> #1; final answer: #1"], "as --chain or as --triples, not both"),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(kb, words, said):
    assert said in run("ask", "--triples", TRIPLES, "--kb", kb, *words, status=2).output


def test_triples_that_are_none_say_how_they_are_written(kb):
    assert "final answer" in run("ask", "--triples", "films by Lynch", "--kb", kb, status=2).output


def test_a_method_without_constraints_has_no_why_not(kb):
    wrong = run("ask", "Who made films?", "--method", "kgp", "--why-not", "Low Water", "--kb", kb, status=2)
    assert "--triples" in wrong.output
