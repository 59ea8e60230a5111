"""Results of worker processes arrive whatever the libraries in them print: parsers, SQL, uploads with their models,
and followed sources."""

import subprocess
import sys

import pytest

import clew
from clew.methods.tables.sql_process import EngineTable, QueryLimits, QueryTask, run_in_process
from noisy_library import install_noise
from serve_app import ServedApp, waited_for

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the noise is made by the C library of a Unix"
)
WEIR = "# The weir\n\nThe weir at Oxlade was built in 1901.\n"


@pytest.fixture
def noise(tmp_path, monkeypatch):
    """Every Python that is started prints."""
    folder = tmp_path / "noise"
    folder.mkdir()
    install_noise(folder, monkeypatch)
    child = subprocess.run([sys.executable, "-c", "pass"], capture_output=True, check=True)
    assert b"noise of Python" in child.stdout and b"noise of C" in child.stdout


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("select 1", [(1,)]),
        ("select name, size from t order by size", [("b", 1.0), ("a", 2.0)]),
        ("select sum(hash(i) % 7) >= 0 from range(20000000) t(i)", [(True,)]),
    ],
)
def test_a_query_gives_its_rows_beside_a_library_that_prints(noise, text, rows) -> None:
    pytest.importorskip("duckdb")
    import numpy as np

    table = EngineTable(
        "t", {"c0": np.array(["a", "b"], object), "c1": np.array([2.0, 1.0])}, ("c0 as name", "c1 as size")
    )
    assert run_in_process(QueryTask(text, (), (table,), QueryLimits(60.0))).rows == rows


def test_a_query_that_fails_says_why_beside_a_library_that_prints(noise) -> None:
    pytest.importorskip("duckdb")
    from clew.core.errors import UsageError

    with pytest.raises(UsageError, match=r"longer than 0\.3 seconds"):
        run_in_process(QueryTask("select count(*) from range(1000000000000)", (), (), QueryLimits(0.3)))
    with pytest.raises(UsageError, match="cannot be run"):
        run_in_process(QueryTask("select nothing from range(3)", (), (), QueryLimits()))


def test_files_are_parsed_beside_a_library_that_prints(noise, tmp_path) -> None:
    (tmp_path / "weir.md").write_text(WEIR)
    (tmp_path / "tolls.csv").write_text("cargo,toll\ngeese,2\n")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        report = base.add([tmp_path / name for name in ("weir.md", "tolls.csv", "broken.pdf")], workers=2)
        assert len(report.added) == 2 and len(report.failed) == 1
        assert base.search("Oxlade weir")[0].node.text == "The weir at Oxlade was built in 1901."


@pytest.mark.slow
def test_uploads_are_read_and_encoded_beside_a_library_that_prints(noise, tmp_path, embedded) -> None:
    """The process of uploads runs the model of the base's encoder, too."""
    with ServedApp(tmp_path / "kb") as app:
        assert app.upload("weir.md", WEIR.encode())["state"] == "done"
    with clew.open(tmp_path / "kb") as base:
        assert base.encoding.name == "clew:hops" and base.encoding.encode_missing() == 0


@pytest.mark.slow
def test_sources_are_followed_beside_a_library_that_prints(noise, tmp_path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "weir.md").write_text(WEIR)
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        app.post(f"{app.api}/sources", {"kind": "folder", "place": str(folder)})
        waited_for(lambda: app.get(f"{app.api}/sources")[1]["sources"][0]["state"].get("files") == 1)
