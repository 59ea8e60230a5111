"""Folders of the whole system and the home folder: refused by the commands that read folders, unless --anyway."""

import json

import pytest

from command_line import run


@pytest.fixture
def home(tmp_path, monkeypatch, without_encoder):
    home = tmp_path / "home"
    (home / "papers").mkdir(parents=True)
    (home / "papers" / "stork.md").write_text("The stork nests on chimneys.")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    return home


@pytest.mark.parametrize(
    "place", ["/", "/etc", "/usr/", "/var/.", "/proc", "/sys", "/dev", "/home/../", "~", "."]
)
def test_a_system_folder_is_refused_before_a_base_is_made(home, place, tmp_path) -> None:
    for words in (("add", place), ("add", "papers", place), ("watch", "--once", place), ("estimate", place)):
        refused = run(*words, "--kb", tmp_path / "kb", status=2)
        assert "--anyway" in refused.output and "Traceback" not in refused.output
        assert not (tmp_path / "kb").exists()


def test_with_anyway_it_is_read(home, tmp_path) -> None:
    kb = tmp_path / "kb"
    assert json.loads(run("estimate", "~", "--anyway", "--kb", kb, "--json").stdout)["add"]["files"] == 1
    assert "1 added" in run("add", "~", "--anyway", "--kb", kb, "--workers", 1).stdout
    (home / "heron.md").write_text("The heron nests in reeds.")
    assert (
        f"added {home}/heron.md" in run("watch", ".", "--once", "--anyway", "--kb", kb, "--workers", 1).stdout
    )


def test_what_lies_below_and_single_files_are_read_without_it(home, tmp_path) -> None:
    (home / "ab.md").write_text("The file ab.")
    run("add", "papers", "ab.md", "--kb", tmp_path / "kb", "--workers", 1)
    listed = json.loads(run("list", "--kb", tmp_path / "kb", "--json").stdout)["documents"]
    assert sorted(document["document"] for document in listed) == ["ab.md", "stork.md"]


def test_an_empty_path_is_not_the_current_folder(home, tmp_path) -> None:
    refused = run("add", "", "--kb", tmp_path / "kb", status=2)
    assert "no path, address or name: ''" in refused.output and not (tmp_path / "kb").exists()
