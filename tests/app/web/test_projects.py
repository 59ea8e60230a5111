"""Projects that are made, renamed and deleted in the app, and who may do that."""

from __future__ import annotations

import os
import shutil
import socket

import pytest

from clew.app.web.guard import connection_owner
from page_reader import fetch_page
from serve_app import FILES, QUESTION, SAMPLES, ServedApp, waited_for


def test_a_project_is_made_filled_renamed_and_deleted(own, own_folder) -> None:
    status, project = own.post("/api/bases", {"title": "Lease of  the quay"})
    assert (
        status == 201 and project["base"] == "lease-of-the-quay" and project["title"] == "Lease of the quay"
    )
    assert own.post("/api/bases", {"title": "Lease of the quay"})[1]["base"] == "lease-of-the-quay-2"
    first, own.base = own.base, project["base"]
    assert own.upload(FILES[0], (SAMPLES / FILES[0]).read_bytes())["state"] == "done"
    assert "9" in own.ask(QUESTION)["answer"]
    # Other programs find it where they find the others.
    assert own.get(f"{own.api}/v1/models")[0] == 200
    assert own.json("PATCH", own.api, {"title": "The lighter"})[0] == 200
    page = fetch_page(own, "/projects")
    assert "The lighter" in page.text and "1 document, 2 pages" in page.text
    assert "The lighter" in fetch_page(own, f"/b/{own.base}/").text
    assert own.delete(own.api) == (200, {"deleted": "lease-of-the-quay"})
    assert own.get(own.api)[0] == 404 and not (own_folder / "projects" / "lease-of-the-quay").exists()
    # A folder of the person is no project of the app.
    assert own.delete(f"/api/bases/{first}")[0] == 403 and (own_folder / "kb").exists()
    # The name is free again, and its routes lead to the new one.
    assert own.post("/api/bases", {"title": "Lease of the quay"})[1]["documents"] == 0
    assert own.get("/api/bases/lease-of-the-quay/v1/models")[0] == 200
    for bad in ("", " ", "x" * 81):
        assert own.post("/api/bases", {"title": bad})[0] == 400
    assert own.json("PATCH", f"/api/bases/{first}", {"title": ""})[0] == 400


@pytest.mark.slow
def test_the_sample_project_has_the_samples(own) -> None:
    assert "Try it with sample documents" in fetch_page(own, f"/b/{own.base}/").text
    own.base = own.post("/api/bases/sample", {})[1]["base"]
    waited_for(lambda: own.get(own.api)[1]["documents"] == len(list(SAMPLES.iterdir())))
    waited_for(lambda: not own.get(f"{own.api}/uploads")[1]["uploads"] or own.get(own.api)[1]["pending"] == 0)
    assert "9" in own.ask(QUESTION)["answer"]


def test_who_comes_through_a_proxy_is_no_local_user(own) -> None:
    for header in ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"):
        assert own.post("/api/bases", {"title": "x"}, **{header: "127.0.0.1"})[0] == 403
    proxied = {"X-Forwarded-For": "203.0.113.7"}
    assert own.json("PATCH", own.api, {"title": "x"}, proxied)[0] == 403
    assert own.delete(own.api, **proxied)[0] == 403


@pytest.mark.slow
def test_only_a_server_for_this_machine_has_a_local_user(made_base, tmp_path) -> None:
    shutil.copytree(made_base, tmp_path / "kb")
    for settings in (
        {"hosts": ("clew.example.org",)},
        {"read_only": True},
        {"host": "0.0.0.0", "token": "a-token-of-the-tests"},
    ):
        with ServedApp(tmp_path / "kb", projects=tmp_path / "projects", **settings) as served:
            token = {"Authorization": "Bearer a-token-of-the-tests"}
            assert served.post("/api/bases", {"title": "x"}, **token)[0] == 403
            assert b"New project" not in served.request("GET", "/projects", headers=token)[2]


def test_the_owner_of_a_connection_is_known_on_linux(own) -> None:
    with socket.create_connection(("127.0.0.1", own.port)) as connection:
        assert connection_owner(connection.getsockname()[1], own.port) in {os.getuid(), None}
    assert connection_owner(1, own.port) is None


@pytest.mark.slow
def test_a_project_that_another_server_has_is_left_out(own, own_folder) -> None:
    own.post("/api/bases", {"title": "Quay"})
    folders = [own_folder / "other", own_folder / "projects" / "quay"]
    with ServedApp(*folders, encoder="none", projects=own_folder / "projects") as second:
        assert [base["base"] for base in second.get("/api/bases")[1]["bases"]] == ["other"]
