"""Formats of graph files: what clew's own declare, and one of another package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from clew.core.errors import UnreadableFile
from clew.parse.graphs.formats import GraphReadOptions, graph_formats
from clew.parse.graphs.reader import detect_format

PLUGIN = """
from clew.parse.graphs.files import open_graph_file
from clew.parse.graphs.formats import GraphFormat

def read(path, sink, options, errors, report_progress):
    with open_graph_file(path, report_progress) as file:
        for line in file.read_lines(errors):
            head, relation, tail = line.split()
            sink.add_edge(head, relation, tail, {"languages": list(options.languages), "kind": options.kind})

FORMAT = GraphFormat("words", read, (".words",), options=("languages",))
"""
READ = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import clew
from clew.core.component import GRAPH_FORMAT_PLUGINS, declaration_problems
from clew.parse.graphs.formats import GraphFormat, GraphReadOptions
from clew.parse.graphs.reader import detect_format, read_graph
from clew.parse.graphs.files import RowErrors

class Sink:
    def add_edge(self, *edge):
        print(edge)

print(declaration_problems(GRAPH_FORMAT_PLUGINS, GraphFormat), detect_format(Path("a.tsv")))
path = Path(sys.argv[1], "a.words")
read_graph(path, Sink(), GraphReadOptions(languages=("de",), kind="edges"), RowErrors())
"""


def run_with_plugin(folder: Path, value: str) -> subprocess.CompletedProcess[str]:
    """Run ``READ`` where a package names its format as ``value``."""
    (folder / "words.py").write_text(PLUGIN)
    (folder / "a.words").write_text("a knows b\n")
    metadata = folder / "words-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: words\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[clew.graph_formats]\nwords = {value}\n")
    return subprocess.run(
        [sys.executable, "-c", READ, str(folder)], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_format_of_another_package_reads_graphs_with_the_options_that_it_declares(tmp_path: Path) -> None:
    done = run_with_plugin(tmp_path, "words:FORMAT")
    edge = ("a", "knows", "b", {"languages": ["de"], "kind": ""})
    assert done.stdout == f"[] tsv\n{edge}\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("value", ["words:MISSING", "words:read"])
def test_a_broken_format_of_another_package_is_left_out_and_named(value: str, tmp_path: Path) -> None:
    done = run_with_plugin(tmp_path, value)
    assert "the plug-in 'words' of words " in done.stdout and "] tsv" in done.stdout
    assert "its name does not tell the format of its graph" in done.stderr


def test_formats_are_listed_in_their_order_with_their_suffixes() -> None:
    names = [form.name for form in graph_formats()]
    assert names == [
        "bibtex",
        "csl-json",
        "zotero-rdf",
        "zotero-csv",
        "ris",
        "csv",
        "tsv",
        "jsonl",
        "parquet",
        "ntriples",
        "turtle",
        "rdfxml",
        "stark",
    ]
    suffixes = [suffix for form in graph_formats() for suffix in form.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in suffixes)
    options = GraphReadOptions()
    assert all(hasattr(options, name) for form in graph_formats() for name in form.options)
    with pytest.raises(UnreadableFile) as raised:
        detect_format(Path("a.doc"))
    assert raised.value.hint == (
        "Name the format: --format bibtex|csl-json|zotero-rdf|zotero-csv|ris|csv|tsv|jsonl|parquet|ntriples|turtle|"
        "rdfxml|stark; known suffixes: .bib, .bibtex, .ris, .csv, .txt, .tsv, .tab, .jsonl, .ndjson, .parquet, .pq, "
        ".nt, .ttl, .rdf, .owl, .xml"
    )


@pytest.mark.slow
def test_readers_are_imported_when_a_graph_is_read() -> None:
    code = (
        "import sys, clew.parse.graphs.reader, clew.knowledge_base.ingest.graphs\n"
        "readers = ('csv', 'jsonlines', 'parquet', 'rdf', 'stark')\n"
        "print([m for m in ('numpy', *(f'clew.parse.graphs.{r}' for r in readers)) if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
