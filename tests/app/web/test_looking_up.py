"""What is said of a name, what changed, and the quotes that were put aside, over HTTP."""

from urllib.parse import quote


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
