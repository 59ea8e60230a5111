"""The JSON API over a base with documents: what is there, shown, searched and remembered."""

import json
import struct
import zlib

import numpy as np
import pytest

import clew
from bad_files import good_pdf
from clew.app.web.api.questions import render_markdown
from clew.core.errors import NotFound, UsageError
from clew.core.types import Answer, ConstraintCheck, Hit, Node, RankedAnswer
from serve_app import FILMS, QUESTION

CONTRACT = "lighter-hire-contract.pdf"


def test_bases_and_choices_are_listed(app) -> None:
    (base,) = app.get("/api/bases")[1]["bases"]
    assert base["base"] == "harbour" and base["documents"] == 3 and base["pending"] == 0
    config = app.get("/api/config")[1]
    assert config["models"] == [] and config["model"] == "none"
    names = [recipe["name"] for recipe in config["recipes"]]
    assert names[0] == "default" and "kgp" in names and config["load"] == {"running": 0, "waiting": 0}
    # What searches the web spends the key of the one who runs the server.
    assert "serpapi" not in {retriever["name"] for retriever in config["retrievers"]}
    assert app.get("/api/bases/elsewhere")[0] == 404
    offered = {recipe["name"]: recipe["problem"] for recipe in app.get(f"{app.api}/recipes")[1]["recipes"]}
    assert offered["default"] is None and "language model" in offered["react"]["error"]
    assert "golden" not in offered and "sentences" in offered["kgp-paper"]["error"]
    assert app.get(f"{app.api}/recipes?model=other")[0] == 400


def test_a_document_has_an_outline_nodes_and_text(app, keys) -> None:
    documents = app.get(f"{app.api}/documents")[1]["documents"]
    # Where files lie on the server's disks is nobody's business.
    assert [document["paths"] for document in documents] == [[document["document"]] for document in documents]
    place = f"{app.api}/documents/{keys[CONTRACT]}"
    outline = app.get(place)[1]["outline"]
    late = next(item for item in outline if "Late return" in item["name"])
    assert late["kind"] == "section" and late["page"] == 2
    listed = app.get(f"{place}/nodes?page=2&limit=1000")[1]
    assert late["id"] in {node["id"] for node in listed["nodes"]} and len(listed["nodes"]) == listed["total"]
    hit = app.post(f"{app.api}/search", {"question": "$9 for every day", "k": 1})[1]["hits"][0]
    first, last = hit["span"]
    assert app.get(f"{place}/text?start={first}&end={last}")[1]["text"] == hit["text"]


def test_a_node_stands_in_its_text_and_a_row_in_its_table(app, keys) -> None:
    (hit,) = app.post(f"{app.api}/search", {"question": "$9 for every day", "k": 1})[1]["hits"]
    shown = app.get(f"{app.api}/nodes/{hit['id']}?around=40")[1]
    assert shown["inside"] == hit["text"] and "Late return" in shown["before"] and "table" not in shown
    (row,) = app.post(f"{app.api}/search", {"question": "tolls live geese the score", "k": 1})[1]["hits"]
    table = app.get(f"{app.api}/nodes/{row['id']}")[1]["table"]
    assert row["kind"] == "row" and any("geese" in cell for line in table["cells"] for cell in line)
    assert len({len(line) for line in table["cells"]}) == 1
    several = app.get(f"{app.api}/nodes?id={row['id']}&id=gone:1&id={hit['id']}&id={hit['id']}")[1]["nodes"]
    assert [item["id"] for item in several] == [row["id"], hit["id"]] and several[1]["text"] == hit["text"]
    for id in ("nothing", f"{keys[CONTRACT]}:999999", f"{keys[CONTRACT]}:-1", "films:Q1"):
        assert app.get(f"{app.api}/nodes/{id}")[0] == 404


def test_a_page_is_drawn_with_the_boxes_of_the_evidence(app, keys) -> None:
    (hit,) = app.post(f"{app.api}/search", {"question": "$9 for every day", "k": 1})[1]["hits"]
    place = f"{app.api}/documents/{hit['key']}/pages/{hit['page']}"
    page = app.get(f"{place}?node={hit['id']}")[1]
    ((x0, y0, x1, y1),) = [item["box"] for item in page["boxes"]]
    assert 0 < x0 < x1 < page["width"] and 0 < y0 < y1 < page["height"]
    status, headers, png = app.request("GET", f"{place}.png?scale=2")
    assert status == 200 and headers["content-type"] == "image/png"
    assert struct.unpack(">II", png[16:24]) == (round(page["width"] * 2), round(page["height"] * 2))
    # Words stand in the box, and nothing but paper in the margin beside it.
    pixels = _pixels(png)
    box = pixels[round(2 * y0) : round(2 * y1), round(2 * x0) : round(2 * x1)]
    assert (box < 100).any() and (pixels[:, : round(2 * x0) - 12] > 250).all()
    assert app.get(f"{app.api}/documents/{hit['key']}/pages/99")[0] == 404
    assert app.get(f"{app.api}/documents/{keys['merrowgate-charter.md']}/pages/1")[0] == 400


def _pixels(png: bytes) -> np.ndarray:
    """Return the pixels of a PNG whose rows are all filtered as the difference from the row above."""
    width, height = struct.unpack(">II", png[16:24])
    size = struct.unpack(">I", png[33:37])[0]
    rows = np.frombuffer(zlib.decompress(png[41 : 41 + size]), dtype=np.uint8).reshape(height, -1)
    assert (rows[:, 0] == 2).all()
    return np.cumsum(rows[:, 1:], axis=0, dtype=np.uint8).reshape(height, width, 3)


def test_what_lies_at_a_documents_path_now_is_not_taken_for_it(tmp_path) -> None:
    """So no other file is ever read through a document: not a changed one, not one that a link leads to."""
    path, other = tmp_path / "a.pdf", tmp_path / "other.pdf"
    path.write_bytes(good_pdf())
    other.write_bytes(good_pdf() + b"%other")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.add([path])
        (document,) = base.documents()
        assert base.files.original(document.key) == path
        path.unlink()
        path.symlink_to(other)
        for look in (base.files.original, lambda key: base.files.page_image(key, 1)):
            with pytest.raises(NotFound, match="was changed"):
                look(document.key)
        with pytest.raises(NotFound, match="has no page 2"):
            base.files.page_image(document.key, 2)
        with pytest.raises(UsageError, match="scale"):
            base.files.page_image(document.key, 1, 100.0)


def test_a_question_is_streamed_remembered_exported_and_forgotten(app) -> None:
    reply = app.post(f"{app.api}/questions", {"question": QUESTION})[1]
    events = list(app.events(reply["events"]))
    names = [name for name, _ in events]
    assert names[:2] == ["waiting", "running"] and names[-1] == "answer" and set(names[2:-1]) == {"step"}
    answer = events[-1][1]
    assert "$9" in answer["answer"] and answer["evidence"][0]["document"] == CONTRACT
    assert [data["name"] for _, data in events[2:-1]] == [item["name"] for item in answer["trail"]]
    # Who comes back gets what is missing, then nothing more.
    assert list(app.events(reply["events"], **{"Last-Event-ID": "2"})) == events[2:]
    assert app.request("GET", reply["events"], headers={"Last-Event-ID": str(len(events))})[0] == 204
    place = f"{app.api}/questions/{reply['id']}"
    stored = app.get(place)[1]
    assert stored["question"] == QUESTION and stored["state"] == "done"
    assert stored["answer"]["evidence"] == answer["evidence"]
    latest = app.get(f"{app.api}/questions?limit=1")[1]["questions"][0]
    assert latest["id"] == reply["id"] and latest["text"] == answer["answer"]
    status, headers, markdown = app.request("GET", f"{place}/export")
    assert status == 200 and headers["content-disposition"].startswith("attachment")
    assert f"1. **{CONTRACT}, page 2" in markdown.decode() and "\\$9" in markdown.decode()
    exported = json.loads(app.request("GET", f"{place}/export?form=json")[2])
    assert exported["answer"] == stored["answer"]
    assert app.delete(place)[0] == 200
    assert app.get(place)[0] == 404 and app.delete(place)[0] == 404


def test_two_methods_side_by_side_know_of_each_other(app) -> None:
    item = app.ask(QUESTION, recipe="read")
    two = app.ask(QUESTION, recipe="kgp", beside=item["id"])
    assert item["recipe"] != two["recipe"]
    assert app.get(f"{app.api}/questions/{two['id']}")[1]["beside"] == item["id"]


def test_questions_keep_to_documents(app, keys) -> None:
    market = "On which day is there a market, and what is a day's hire of the lighter?"
    everywhere = app.ask(market, recipe="read")
    inside = app.ask(market, recipe="read", documents=[keys["merrowgate-charter.md"]])
    results = [
        {hit["document"] for step in item["trail"] for hit in step["hits"]} for item in (everywhere, inside)
    ]
    assert results[0] > results[1] == {"merrowgate-charter.md"}
    unknown = app.post(f"{app.api}/questions", {"question": "x", "documents": ["0" * 32]})
    assert unknown[0] == 404
    assert app.post(f"{app.api}/questions", {"question": "x", "graphs": ["nothing"]})[0] == 400


def test_a_graph_is_added_looked_up_asked_and_removed(app) -> None:
    done = app.upload("films.tsv", FILMS, to="graphs")
    assert done["state"] == "done" and done["graph"] == "films"
    (graph,) = app.get(f"{app.api}/graphs")[1]["graphs"]
    assert graph["edges"] == 2 and [source["path"] for source in graph["sources"]] == ["films.tsv"]
    assert {relation["relation"] for relation in app.get(f"{app.api}/graphs/films")[1]["relations"]} == {
        "director",
        "born in",
    }
    (entity,) = app.get(f"{app.api}/graphs/films/entities?called=kismet")[1]["entities"]
    assert entity["triples"][0]["ends"][0]["name"] == "Ludwig Berger"
    chain = "Kismet >> director >> #1; #1 >> born in >> #2; final answer: #2"
    assert app.ask("", chain=chain)["answer"] == "Mainz"
    # One that is there is not replaced by the way.
    refused = app.send_files(("films.tsv", FILMS), to="graphs")[1]["refused"]
    assert "there is a graph named 'films'" in refused[0]["error"]
    bad = app.upload("rows.tsv", b"a\tb\tc\nonly one\n", to="graphs")
    assert bad["state"] == "failed" and "rows.tsv: line 2" in bad["error"]
    assert app.delete(f"{app.api}/graphs/films")[1] == {"removed": "films"}
    assert app.get(f"{app.api}/graphs")[1]["graphs"] == []


@pytest.mark.slow
def test_every_route_is_described_without_loading_anything_from_elsewhere(app) -> None:
    described = app.get("/api/openapi.json")[1]
    status, headers, page = app.request("GET", "/api/docs")
    text = page.decode()
    assert status == 200 and "default-src 'self'" in headers["content-security-policy"]
    assert all(path in text.replace("&#34;", '"') for path in described["paths"])
    assert (
        "://" not in text and text.count("<script") == text.count('<script type="module" src="/static/') == 1
    )
    assert all(
        operation["description"] for value in described["paths"].values() for operation in value.values()
    )


@pytest.mark.slow
def test_ranked_answers_are_told_and_exported() -> None:
    node = Node(
        "films:1", "entity", "Kismet, a film", "films", "films", 0, None, "Kismet", 0, None, (), (0, 0)
    )
    ranked = RankedAnswer(
        "Kismet", Hit(node, 0.7), True, (ConstraintCheck("#1 >> director >> Berger", 1.0),), "vector 0.71"
    )
    shape = (Answer("Kismet", (Hit(node, 0.7),), ranking=(ranked,))).to_dict()
    checks = [{"constraint": "#1 >> director >> Berger", "met": 1.0, "evidence": []}]
    assert shape["ranked"][0]["checks"] == checks
    entry = {"question": "Which *film*?", "chain": "", "asked": 0.0, "model": None, "answer": shape}
    text = render_markdown(entry)
    assert "# Which \\*film\\*?" in text and "1. **Kismet** (vector 0.71)" in text and "met 1" in text
