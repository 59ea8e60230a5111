"""What is said of a name, what changed, and the quotes that were put aside, over HTTP."""

from urllib.parse import quote

import pytest


@pytest.mark.slow
def test_a_name_has_its_sentences_a_part_at_a_time_and_a_misspelt_one_suggestions(app, keys):
    status, whole = app.get(f"{app.api}/about?name=Hirer")
    assert status == 200 and whole["total"] == len(whole["statements"]) > 5
    assert {item["key"] for item in whole["statements"]} == {keys["lighter-hire-contract.pdf"]}
    _, part = app.get(f"{app.api}/about?name=Hirer&start=2&limit=3")
    assert part["statements"] == whole["statements"][2:5] and part["total"] == whole["total"]
    _, unknown = app.get(f"{app.api}/about?name=Hierer")
    assert unknown["statements"] == [] and unknown["suggestions"][0]["name"] == "Hirer"
    key = keys["merrowgate-charter.md"]
    assert app.get(f"{app.api}/about?name=Hirer&documents={key}")[1]["total"] == 0
    assert app.get(f"{app.api}/about?name={quote('  ')}")[0] == 400


def test_two_documents_are_compared_a_part_at_a_time(app, keys):
    contract, charter = keys["lighter-hire-contract.pdf"], keys["merrowgate-charter.md"]
    status, whole = app.get(f"{app.api}/diff?before={contract}&after={charter}&limit=2000")
    assert status == 200 and whole["total"] == len(whole["changes"]) > 20
    _, part = app.get(f"{app.api}/diff?before={contract}&after={charter}&start=3&limit=4")
    assert part["changes"] == whole["changes"][3:7] and part["counts"] == whole["counts"]
    _, same = app.get(f"{app.api}/diff?before={contract}&after={contract}")
    assert same["changes"] == [] and same["counts"]["same"] > 20
    assert app.get(f"{app.api}/diff?before={contract}&after={'0' * 32}")[0] == 404
    assert app.get(f"{app.api}/diff?before={contract}&after=../etc")[0] == 422


def test_quotes_are_put_aside_noted_exported_and_taken_out(app, keys):
    path = f"{app.api}/basket"
    _, said = app.get(f"{app.api}/about?name=Hirer&limit=1")
    [statement] = said["statements"]
    status, pinned = app.post(path, {"node": statement["id"], "text": statement["text"], "question": "Who?"})
    assert status == 201 and pinned["text"] == statement["text"] and pinned["key"] == statement["key"]
    assert app.json("PUT", f"{path}/{pinned['id']}", {"note": "Mine."})[0] == 200
    assert app.get(path)[1] == {"quotes": [pinned | {"note": "Mine."}], "missing": 0}
    assert app.post(path, {"node": statement["id"], "text": "never said"})[0] == 400
    assert app.post(path, {"node": "0" * 32 + ":1"})[0] == 404
    status, headers, content = app.request("GET", f"{app.api}/memo?form=md&title=Hire")
    assert status == 200 and headers["content-disposition"] == 'attachment; filename="memo.md"'
    assert content.decode().startswith("# Hire\n\n## Who?\n\nMine.") and pinned["key"] in content.decode()
    assert app.request("GET", f"{app.api}/memo")[2].startswith(b"PK")
    assert app.delete(f"{path}/{pinned['id']}")[0] == 200 and app.delete(f"{path}/{pinned['id']}")[0] == 404
    assert app.delete(path)[1] == {"removed": 0}
