"""Tables of answers in the app: begun, stopped, continued, downloaded."""

from __future__ import annotations

import csv
import io

import pytest

from browsing import visit
from page_reader import fetch_page
from serve_app import QUESTION, waited_for

OTHER = "Which travellers are to be carried for nothing?"


def ended(app, id):
    return waited_for(lambda: (grid := app.get(f"{app.api}/grids/{id}")[1])["state"] == "ended" and grid)


def test_a_grid_is_answered_shown_and_written(app, keys) -> None:
    status, reply = app.post(f"{app.api}/grids", {"questions": [QUESTION, "", OTHER, QUESTION]})
    assert status == 202
    grid = ended(app, reply["id"])
    assert grid["missing"] == 0 and grid["questions"] == [QUESTION, OTHER] and len(grid["rows"]) == 3
    cells = {row["document"]: row["cells"] for row in grid["rows"]}
    assert "9" in cells["lighter-hire-contract.pdf"][0]["answer"]
    assert all(cell["quote"] for row in cells.values() for cell in row if cell["answer"])
    page = fetch_page(app, f"/b/{app.base}/grids/{reply['id']}")
    assert "have an answer, each with a quote" in page.text
    assert QUESTION in fetch_page(app, f"/b/{app.base}/grids").text
    _, _, body = app.request("GET", f"{app.api}/grids/{reply['id']}/file?form=csv")
    rows = list(csv.reader(io.StringIO(body.decode())))
    assert len(rows) == 4 and rows[0][1] == QUESTION
    # What is complete stays so; a grid of one document asks that alone.
    assert app.post(f"{app.api}/grids/{reply['id']}/continue")[0] == 202
    one = app.post(f"{app.api}/grids", {"questions": [OTHER], "documents": [keys["merrowgate-charter.md"]]})[
        1
    ]
    assert len(ended(app, one["id"])["rows"]) == 1
    assert len(app.get(f"{app.api}/grids")[1]["grids"]) == 2
    for id in (reply["id"], one["id"]):
        ended(app, id)
        assert app.delete(f"{app.api}/grids/{id}")[0] == 200
    assert app.get(f"{app.api}/grids/{one['id']}")[0] == 404
    assert app.post(f"{app.api}/grids", {"questions": [" "]})[0] == 400
    assert app.post(f"{app.api}/grids", {"questions": [f"q{n}" for n in range(51)]})[0] == 400
    assert app.get(f"{app.api}/grids/..%2f..%2fetc")[0] == 404


@pytest.mark.slow
def test_a_grid_is_stopped_and_goes_on_in_a_browser(served, open_page) -> None:
    page = open_page(served)
    visit(page, "text=Table of answers")
    page.fill("#grid-questions", "\n".join(f"What is said of the year {1900 + n}?" for n in range(40)))
    with page.expect_navigation(wait_until="load"):
        page.click("text=Ask them all")
    page.wait_for_selector("[data-running] progress")
    page.click("text=Stop")
    page.wait_for_selector("text=not answered yet")
    page.click("text=Go on")
    page.wait_for_selector("text=have an answer, each with a quote")
    with page.expect_download() as download:
        page.click("text=Excel")
    assert download.value.suggested_filename == "grid.xlsx"
