import doctest
import json

import pytest

from clew.core.errors import UnreadableFile
from clew.parse.graphs import bibliography
from clew.parse.graphs.bibliography import read_bibtex
from clew.parse.graphs.files import RowErrors
from clew.parse.graphs.formats import GraphReadOptions
from clew.parse.graphs.reader import read_graph
from graph_twin import Twin

BIBTEX = r"""
% A library.
@string{jw = "Journal of Weirs"}
@comment{ @article{never, title={Never}} }
@article{strake21,
  author  = {Strake, Ada and Jo Wu and others},
  title   = {{Weirs} of the {N}orth, \& their K{\"u}hne keepers},
  journal = jw # { (North)},
  year    = 2021,
  keywords = {weirs; north},
  doi = "10.1000/w1",
  file = {Full text:papers/strake21.pdf:application/pdf},
  cites = {wu19, brun}
}
@book(brun, author = "{\'E}lodie Brun", title = "A quay {in} May", publisher = {Oxlade Press}, date = {2015-03},
  note = {Cites: wu19})
@inproceedings{wu19, title = {Tides}, booktitle = {Proc. of Tides}, author = {Wu, Jo}, year = {1999},}
"""
CSL = [
    {
        "id": "http://zotero.org/1",
        "citation-key": "wu19",
        "type": "article-journal",
        "title": "Tides",
        "author": [{"family": "Wu", "given": "Jo"}, {"literal": "Harbour Office"}],
        "issued": {"date-parts": [["1999", 4]]},
        "container-title": "Journal of Tides",
        "DOI": "10.1/2",
        "note": "read it\ncites: brun, strake21",
    },
    {
        "id": "brun",
        "type": "book",
        "title": "A quay in May",
        "issued": {"raw": "March 2015"},
        "publisher": "Oxlade Press",
    },
]


def read_twin(path, content):
    path.write_text(content, encoding="utf-8")
    twin, errors = Twin(), RowErrors()
    read_graph(path, twin, GraphReadOptions(), errors)
    errors.raise_errors()
    return twin


def test_bibtex():
    errors = []
    works = {work.key: work for work in read_bibtex(BIBTEX, lambda *error: errors.append(error))}
    # What stands in a comment is read as BibTeX itself does: the entry within it counts.
    assert not errors and list(works) == ["never", "strake21", "brun", "wu19"]
    first = works["strake21"]
    assert first.title == "Weirs of the North, & their Kühne keepers"
    assert first.authors == ["Ada Strake", "Jo Wu"] and first.venue == "Journal of Weirs (North)"
    assert first.properties == {"year": 2021, "doi": "10.1000/w1", "file": "papers/strake21.pdf"}
    assert first.keywords == ["weirs", "north"] and first.cites == ["wu19", "brun"]
    assert works["brun"].authors == ["Élodie Brun"] and works["brun"].cites == ["wu19"]
    assert works["brun"].venue == "Oxlade Press" and works["brun"].properties == {"year": 2015}
    assert doctest.testmod(bibliography).failed == 0


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("@article{", "lacks a key"),
        ("@article{a title = {x}}", "is not closed"),
        ("@article{a, title {x}}", "has no = after 'title'"),
        ("@article{a, title = {x", "has a value that is not closed"),
        ('@article{a, title = "x', "has a value that is not closed"),
        ("@article{a, title = {" + "{" * 300 + "}" * 300 + "}}", "is nested too deeply"),
        ("@article{a, title = }", "lacks a value"),
        ("@article{, title = {x}}", "has no key"),
        ("@article{b, title={x}} @book{b, title={y}}", "has the key 'b' of another entry"),
    ],
)
def test_a_damaged_entry_is_named_with_its_line_and_the_next_is_read(entry, reason):
    errors = []
    works = list(
        read_bibtex(f"\n\n{entry}\n\n@misc{{last, title = {{Last}}}}\n", lambda *error: errors.append(error))
    )
    assert errors and errors[0] == (3, reason)
    assert works[-1].key == "last"


def test_graphs_of_both_formats(tmp_path):
    bibtex = read_twin(tmp_path / "library.bib", BIBTEX)
    assert ("strake21", "cites", "wu19") in bibtex.edges and (
        "brun",
        "author",
        "person:Élodie Brun",
    ) in bibtex.edges
    csl = read_twin(tmp_path / "library.json", json.dumps(CSL))
    edges = set(csl.edges)
    assert {
        ("wu19", "cites", "brun"),
        ("wu19", "author", "person:Jo Wu"),
        ("wu19", "published in", "venue:Journal of Tides"),
    } <= edges
    assert ("wu19", "author", "person:Harbour Office") in edges
    for name, content in (("empty.bib", "nothing here"), ("no.json", '[{"title": 1, "issued": 2}')):
        with pytest.raises(UnreadableFile):
            read_twin(tmp_path / name, content)
