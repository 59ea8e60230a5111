"""Questions as typed triples on the command line: ranked answers, files of them, and why something is none."""

import csv
import json

import pytest

from clew.store.store import Store
from command_line import run
from film_world import films
from link_graphs import graph_of
from retrieve_documents import add
from scripted import ScriptedServer

TRIPLES = (
    "#1 : film; #1 >> directed_by >> Ilse Varnholt; not #1 >> starred_actors >> Ilse Varnholt; "
    "#1 ~ hunted; final answer: #1"
)


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranked") / "base"
    with Store.open(folder, create=True) as store:
        films(store)
    return folder


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
def test_ranked_answers_say_what_each_meets_and_misses(kb):
    output = " ".join(run("ask", "--triples", TRIPLES, "--trail", "--kb", kb).stdout.split())
    assert "Glass Harvest, The Salt Orchard" in output and "2 meet all constraints exactly" in output
    assert "✓ #1 >> directed_by >> Ilse Varnholt Glass Harvest >> directed_by >> Ilse Varnholt" in output
    assert "✗ not #1 >> starred_actors >> Ilse Varnholt" in output and "Near misses" in output
    assert "? ~ hunted not known; it ranks, and drops nothing" in output
    assert "2: The Salt Orchard; Glass Harvest" in output  # the trail
    near = TRIPLES.replace("Ilse Varnholt", "ilse varnholt")
    output = " ".join(run("ask", "--triples", near, "--trail", "--kb", kb).stdout.split())
    assert "ilse varnholt is Ilse Varnholt films:p1 1 (name)" in output
    assert "#1 2: The Salt Orchard; Glass Harvest" in output


def test_the_answer_lists_constraints_that_were_relaxed_or_are_unknown(kb):
    wanted = "#1 : film; #1 >> directed_by >> Marit Solheim; #1.release_year < 1933; final answer: #1"
    output = " ".join(run("ask", "--triples", wanted, "--kb", kb).stdout.split())
    assert "None: no node of 'films' meets all of this" in output
    assert "✗ #1.release_year < 1933" in output
    near = wanted.replace("Marit", "marit")
    output = " ".join(run("ask", "--triples", near, "--kb", kb).stdout.split())
    assert "Given up: #1.release_year < 1933" in output
    wanted = (
        "#1 : film; #1 >> directed_by >> Marit Solheim; #1 >> praised by >> Otto Bexley; final answer: #1"
    )
    output = " ".join(run("ask", "--triples", wanted, "--kb", kb).stdout.split())
    assert "Not looked up: #1 >> praised by >> Otto Bexley 'Otto Bexley' is not in the graph" in output


def test_why_not(kb):
    output = " ".join(run("ask", "--triples", TRIPLES, "--why-not", "Low Water", "--kb", kb).stdout.split())
    assert "Why not Low Water? films:f2 This drops it: not #1 >> starred_actors >> Ilse Varnholt" in output
    shown = json.loads(
        run("ask", "--triples", TRIPLES, "--why-not", "Nine Lanterns", "--json", "--kb", kb).stdout
    )
    assert shown["why_not"][0]["dropped_by"] == ["#1 >> directed_by >> Ilse Varnholt"]


def test_why_one_answer_is_above_another(kb):
    ask = ("ask", "--triples", TRIPLES, "--kb", kb)
    printed = run(*ask, "--why", "Low Water", "--above", "glass harvest").stdout
    assert "not #1 >> starred_actors >> Ilse Varnholt: Glass Harvest 1, Low Water 0" in printed
    assert "Glass Harvest: meets everything, with exact names; Low Water: near misses" in printed
    data = json.loads(run(*ask, "--why", "Glass Harvest", "--above", "The Salt Orchard", "--json").stdout)
    assert data["order"][0] in {
        "Glass Harvest ranks 1, The Salt Orchard ranks 2",
        "The Salt Orchard ranks 1, Glass Harvest ranks 2",
    }
    assert len(data["order"]) > 1
    missing = run(*ask, "--why", "Zanzibar", "--above", "Low Water")
    assert "no ranked answer is called 'Zanzibar'" in missing.stderr
    assert "go together" in run(*ask, "--why", "Low Water", status=2).output


def test_a_name_that_nothing_has_is_said_and_the_answer_is_there(kb, tmp_path):
    out = tmp_path / "a.csv"
    asked = run("ask", "--triples", TRIPLES, "--why-not", "Zanzibar", "--out", out, "--kb", kb)
    assert "Glass Harvest" in asked.stdout and out.exists()
    assert "Why not Zanzibar: the graph 'films' has nothing called 'Zanzibar'." in asked.stderr


def test_what_fails_beside_the_answer_does_not_lose_it(kb, tmp_path):
    # The retriever of the recipe asks a model; why-not has none.
    with Store.open(tmp_path / "base", create=True) as store:
        films(store)
        add(store, "reeds.txt", "Reeds", "Glass Harvest won the Golden Reed for its editing.")
    wanted = "#1 : film; #1 >> directed_by >> Ilse Varnholt; final answer: #1"
    words = ("ask", "--triples", wanted, "--why-not", "Nine Lanterns", "--kb", tmp_path / "base")
    recipe = "focus(form=none, retriever=reranked(retriever=bm25))"
    with ScriptedServer(lambda request: "0.5") as server:
        words = (*words, "--method", recipe, "--llm", server.llm)
        asked = run(*words, status=2)
        assert "Glass Harvest" in asked.stdout and "3 meet all constraints" in asked.stdout
        assert "'reranked' needs a language model" in asked.stderr
        asked = run(*words, "--json", status=2)
        assert set(json.loads(asked.stdout)["values"]) == {"Glass Harvest", "Low Water", "The Salt Orchard"}
        # What reads for the answer needs no model to say why not.
        output = run(*words[:-4], "--method", "focus(form=none, reader=cited)", "--llm", server.llm).stdout
        assert "Why not Nine Lanterns? films:f5 This drops it:" in " ".join(output.split())
        assert server.requests == []


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
    assert [item["name"] for item in shown["ranked"]] == [row["name"] for row in rows]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--out", "answers.xlsx"], "neither .csv nor .json"),
        (["--out", "nowhere/answers.csv"], "no folder"),
        (["--chain", "a >> b >> #1; final answer: #1"], "as --chain or as --triples, not both"),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(kb, words, text):
    assert text in run("ask", "--triples", TRIPLES, "--kb", kb, *words, status=2).output


def test_triples_that_are_none_say_how_they_are_written(kb):
    assert "final answer" in run("ask", "--triples", "films by Lynch", "--kb", kb, status=2).output


def test_a_method_without_constraints_has_no_why_not_and_no_list(kb, tmp_path):
    asked = ("ask", "Who made films?", "--method", "kgp", "--kb", kb)
    assert "only the method focus says why" in run(*asked, "--why-not", "Low Water", status=2).output
    assert "only the method focus ranks" in run(*asked, "--out", tmp_path / "a.csv", status=2).output


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path):
    with Store.open(tmp_path / "base", create=True) as store:
        graph_of(store, [("f", "by", "p")], f={"name": '=HYPERLINK("http://evil","x")'}, p={"name": "Pia"})
    words = (
        "--triples",
        "#1 >> by >> Pia; final answer: #1",
        "--out",
        tmp_path / "a.csv",
        "--kb",
        tmp_path / "base",
    )
    run("ask", *words)
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        [_, row, *_] = list(csv.reader(file))
    assert row[1] == '\'=HYPERLINK("http://evil","x")' and not any(cell[:1] in "=+-@" for cell in row if cell)
