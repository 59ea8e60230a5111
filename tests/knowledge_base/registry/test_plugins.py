"""Plug-ins: the toy package of tests/data is installed into a folder and used; a broken one hides nothing else."""

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

TOY = Path(__file__).parents[2] / "data" / "toy_plugin"
BROKEN = """
[project]
name = "clew-broken"
version = "1.0"

[project.entry-points."clew.retrievers"]
broken = "clew_broken:Nothing"
bm25 = "clew_broken:BM25"

[project.entry-points."clew.parsers"]
broken-format = "clew_broken:Nothing"
"""


def build_wheel(folder: Path, target: Path) -> Path:
    """Return the wheel of a pure package: what its build backend would write, which need not be installed here."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items())
        for group, names in project["entry-points"].items()
    )
    files = {file.relative_to(folder).as_posix(): file.read_text("utf-8") for file in folder.rglob("*.py")}
    files[f"{stem}.dist-info/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    files[f"{stem}.dist-info/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{stem}.dist-info/entry_points.txt"] = points
    files[f"{stem}.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files)
    wheel = target / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the toy package and a broken one, as pip installs them."""
    folder = tmp_path_factory.mktemp("plugins")
    broken = folder / "broken"
    (broken / "clew_broken").mkdir(parents=True)
    (broken / "clew_broken" / "__init__.py").write_text("1 / 0")
    (broken / "pyproject.toml").write_text(BROKEN)
    wheels = [build_wheel(TOY, folder), build_wheel(broken, folder)]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        folder / "site",
    ]
    subprocess.run([*command, *wheels], check=True)
    return folder / "site"


@pytest.fixture
def run_python(site, monkeypatch):
    """Run a program with the packages on its path; return what it prints, and its notes."""
    import clew

    source = Path(clew.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{source}:{site}")

    def run(*arguments) -> subprocess.CompletedProcess:
        finished = subprocess.run(
            [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=120
        )
        assert finished.returncode == 0, finished.stderr
        return finished

    return run


@pytest.mark.slow
def test_recipes_lists_the_components_of_plug_ins_and_names_broken_ones(run_python):
    finished = run_python("-m", "clew", "recipes", "--json")
    listed = {
        kind: {item["name"]: item for item in named} for kind, named in json.loads(finished.stdout).items()
    }
    assert listed["retriever"]["first-lines"]["recipe"] == "first-lines(depth=20)"
    assert listed["reader"]["shout"]["recipe"] == "shout(mark='!')"
    assert listed["recipe"]["echo"]["recipe"] == "echo(k=3, reader=shout, retriever=first-lines)"
    assert listed["retriever"]["bm25"]["summary"] == "Okapi BM25"
    assert "broken" not in listed["retriever"]
    assert "'broken' of clew-broken cannot be loaded: ZeroDivisionError" in finished.stderr
    assert "'broken-format' of clew-broken cannot be loaded" in finished.stderr
    assert "'bm25' of clew-broken has the name of a retriever of clew" in finished.stderr


CONFORMS = """
import sys
from pathlib import Path
from clew.models import create_encoder
from clew.parse.documents.formats import format_of_suffix
from clew.testing import check_encoder, check_format, check_method, check_reader, check_retriever, sample_base

with sample_base(Path(sys.argv[1])) as base:
    assert check_retriever("first-lines(depth=30)", base)
    assert not check_reader("shout", base).abstained
    assert check_method("echo(k=2)", base).recipe == "echo(k=2, reader=shout, retriever=first-lines)"
check_encoder(create_encoder("letters:abcdefg"))
check_format(format_of_suffix(".ini"), b"[Sea]\\nboats=forty\\n", "harbour.ini")
"""


@pytest.mark.slow
def test_the_toy_package_passes_the_conformance_checks(run_python, tmp_path):
    run_python("-c", CONFORMS, tmp_path)


ANSWERS = """
import sys, clew

with clew.open(sys.argv[1], create=True) as base:
    base.encoding.set("letters:abcdefgh")
    base.add([sys.argv[2]], workers=1)
    print(base.ask("how many boats", recipe="echo").text)
    print(base.search("how many boats", retriever="dense")[0].node.document_name)
    try:
        base.search("boats", retriever="broken")
    except clew.ClewError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_question_is_answered_by_the_toy_package_over_a_file_of_its_format(run_python, tmp_path):
    (tmp_path / "harbour.ini").write_text("[Harbour]\nboats=forty\nopened=1923\n")
    lines = run_python("-c", ANSWERS, tmp_path / "base", tmp_path / "harbour.ini").stdout.splitlines()
    assert lines[0] == "BOATS IS FORTY!"
    assert lines[1] == "harbour.ini"
    assert lines[2].startswith("the plug-in 'broken' of clew-broken cannot be loaded")


@pytest.mark.slow
def test_adding_names_a_format_that_cannot_be_loaded(run_python, tmp_path):
    (tmp_path / "note.txt").write_text("The lock opened in 1902.")
    finished = run_python(
        "-m", "clew", "add", tmp_path / "note.txt", "--kb", tmp_path / "base", "--encoder", "none"
    )
    assert finished.stdout.startswith("1 added")
    assert "clew: the plug-in 'broken-format' of clew-broken cannot be loaded" in finished.stderr
