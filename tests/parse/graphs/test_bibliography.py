import doctest
import json
import time

import pytest

from clew.core.errors import UnreadableFile
from clew.parse.graphs import bibliography
from clew.parse.graphs.bibliography import read_bibtex
from clew.parse.graphs.files import RowErrors
from clew.parse.graphs.formats import GraphReadOptions
from clew.parse.graphs.reader import read_graph
from graph_reading import read_both_ways
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

#: The form of Zotero's own translator: an article with an attachment, a note and tags, a book, a chapter.
ZOTERO = """<rdf:RDF
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:z="http://www.zotero.org/namespaces/export#"
 xmlns:dcterms="http://purl.org/dc/terms/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:bib="http://purl.org/net/biblio#"
 xmlns:foaf="http://xmlns.com/foaf/0.1/"
 xmlns:link="http://purl.org/rss/1.0/modules/link/"
 xmlns:prism="http://prismstandard.org/namespaces/1.2/basic/"
 xmlns:vcard="http://nwalsh.com/rdf/vCard#">
    <bib:Article rdf:about="#item_12">
        <z:itemType>journalArticle</z:itemType>
        <dcterms:isPartOf rdf:resource="urn:issn:0000-1234"/>
        <bib:authors><rdf:Seq>
            <rdf:li><foaf:Person>
                <foaf:surname>Strake</foaf:surname><foaf:givenName>Ada</foaf:givenName>
            </foaf:Person></rdf:li>
            <rdf:li><foaf:Person><foaf:surname>Harbour Office</foaf:surname></foaf:Person></rdf:li>
        </rdf:Seq></bib:authors>
        <dcterms:isReferencedBy rdf:resource="#item_15"/>
        <link:link rdf:resource="#item_13"/>
        <link:link rdf:resource="#item_14"/>
        <dc:subject>weirs</dc:subject>
        <dc:subject><z:AutomaticTag><rdf:value>north</rdf:value></z:AutomaticTag></dc:subject>
        <dc:title>Weirs of the North</dc:title>
        <dcterms:abstract>They were
          built of oak.</dcterms:abstract>
        <dc:date>2021-05-03</dc:date>
        <z:language>en</z:language>
        <dc:identifier><dcterms:URI><rdf:value>https://example.org/weirs</rdf:value></dcterms:URI></dc:identifier>
        <dc:description>Citation Key: strake21
cites: wu19, item_20</dc:description>
        <bib:pages>1-9</bib:pages>
    </bib:Article>
    <bib:Journal rdf:about="urn:issn:0000-1234">
        <prism:volume>7</prism:volume>
        <dc:title>Journal of Weirs</dc:title>
        <dc:identifier>DOI 10.1000/w1</dc:identifier>
        <dc:identifier>ISSN 0000-1234</dc:identifier>
    </bib:Journal>
    <z:Attachment rdf:about="#item_13">
        <z:itemType>attachment</z:itemType>
        <dc:identifier><dcterms:URI><rdf:value>https://example.org/weirs</rdf:value></dcterms:URI></dc:identifier>
        <z:linkMode>3</z:linkMode>
    </z:Attachment>
    <z:Attachment rdf:about="#item_14">
        <z:itemType>attachment</z:itemType>
        <rdf:resource rdf:resource="files/14/strake21.pdf"/>
        <dc:title>strake21.pdf</dc:title>
        <link:type>application/pdf</link:type>
    </z:Attachment>
    <bib:Memo rdf:about="#item_15"><rdf:value>&lt;p&gt;To read.&lt;/p&gt;</rdf:value></bib:Memo>
    <bib:Book rdf:about="urn:isbn:978-0-00-000000-2">
        <z:itemType>book</z:itemType>
        <dc:publisher><foaf:Organization>
            <vcard:adr><vcard:Address><vcard:locality>Corran</vcard:locality></vcard:Address></vcard:adr>
            <foaf:name>Oxlade Press</foaf:name>
        </foaf:Organization></dc:publisher>
        <bib:editors><rdf:Seq><rdf:li><foaf:Person>
            <foaf:surname>Brun</foaf:surname><foaf:givenName>Élodie</foaf:givenName>
        </foaf:Person></rdf:li></rdf:Seq></bib:editors>
        <z:citationKey>brun</z:citationKey>
        <dc:title>A quay in May</dc:title>
        <dc:date>March 2015</dc:date>
    </bib:Book>
    <bib:BookSection rdf:about="#item_20">
        <z:itemType>bookSection</z:itemType>
        <dcterms:isPartOf><bib:Book><dc:title>Tides of the World</dc:title></bib:Book></dcterms:isPartOf>
        <dc:title>Tides</dc:title>
    </bib:BookSection>
    <z:Collection rdf:about="#collection_1">
        <dc:title>Rivers</dc:title>
        <dcterms:hasPart rdf:resource="#item_12"/>
    </z:Collection>
</rdf:RDF>
"""


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


@pytest.mark.parametrize(
    ("value", "title"),
    [
        (r"\textit{Homo sapiens} and \textsc{Naso}", "Homo sapiens and Naso"),
        (r"See \url{http://a.example/x_y}", "See http://a.example/x_y"),
        (r"{\L}{\'o}d\'z, \v{C}ech, \'{\i}, H\aa kon, \H{o}", "Łódź, Čech, í, Håkon, ő"),
        (r"100% of 50\% \& C\#, it\ is", "100% of 50% & C#, it is"),
        ("Weirs--and ``locks''", "Weirs–and “locks”"),
        (r"A bound $O(n^2)$ in {\LaTeX}", "A bound $O(n^2)$ in LaTeX"),
        ("O'Neil's weirs\n  and locks", "O'Neil's weirs and locks"),
    ],
)
def test_tex_in_titles(value, title):
    assert [work.title for work in read_bibtex(f"@misc{{a, title = {{{value}}}}}", print)] == [title]


@pytest.mark.parametrize(
    ("value", "persons"),
    [
        ("{Barnes and Noble} and Wu, Jo", ["Barnes and Noble", "Jo Wu"]),
        ("Wu, Jo AND {Weir, Lock and Sons}", ["Jo Wu", "Weir, Lock and Sons"]),
        (r"M{\"u}ller, J\"org\n and  Anders Sand", ["Jörg Müller", "Anders Sand"]),
        ("Sand, A. and others", ["A. Sand"]),
    ],
)
def test_braces_hold_a_name_together(value, persons):
    value = value.replace("\\n", "\n")
    assert [work.authors for work in read_bibtex(f"@misc{{a, author = {{{value}}}}}", print)] == [persons]


def test_strings_that_double_are_refused_and_the_rest_is_read():
    doubling = "".join(f"@string{{s{n} = s{n - 1} # s{n - 1}}}\n" for n in range(1, 60))
    text = (
        f'@string{{s0 = "{"x" * 1_000}"}}\n{doubling}@misc{{a, title = s59}}\n@misc{{b, title = {{Quays}}}}'
    )
    errors = []
    works = list(read_bibtex(text, lambda *error: errors.append(error)))
    assert works[-1].title == "Quays" and max(len(work.title) for work in works) < 100_000
    assert {reason for _, reason in errors} == {"has strings that grow too long"}


@pytest.mark.parametrize(
    "text",
    [
        "@a{b,c={" * 20_000,
        '@a{b,c="' * 20_000,
        "@a{b,author={" + " " * 200_000 + "x}}",
        "@a{b,title={" + '\\"' * 50_000 + "}}",
        "@a{b,author={" + "{" * 80 + " and " * 50_000 + "}" * 80 + "}}",
    ],
)
def test_hostile_files_end_soon(text):
    started = time.process_time()
    list(read_bibtex(text, lambda *_: None))
    assert time.process_time() - started < 5


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


def test_an_export_of_zotero_as_rdf(tmp_path):
    twin = read_twin(tmp_path / "library.rdf", ZOTERO)
    papers = {id: node for id, node in twin.nodes.items() if "paper" in node.get("types", ())}
    assert papers.keys() == {"strake21", "brun", "item_20"}
    first = papers["strake21"]
    assert (first["name"], first["text"]) == ("Weirs of the North", "They were built of oak.")
    assert first["properties"] == {
        "kind": "journalArticle",
        "year": 2021,
        "doi": "10.1000/w1",
        "url": "https://example.org/weirs",
        "file": "files/14/strake21.pdf",
    }
    assert set(twin.edges) == {
        ("strake21", "author", "person:Ada Strake"),
        ("strake21", "author", "person:Harbour Office"),
        ("strake21", "published in", "venue:Journal of Weirs"),
        ("strake21", "keyword", "keyword:weirs"),
        ("strake21", "keyword", "keyword:north"),
        ("strake21", "cites", "wu19"),
        ("strake21", "cites", "item_20"),
        ("brun", "editor", "person:Élodie Brun"),
        ("brun", "published in", "venue:Oxlade Press"),
        ("item_20", "published in", "venue:Tides of the World"),
    }


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (ZOTERO.replace("</bib:Memo>", ""), "Opening and ending tag mismatch"),
        (ZOTERO.partition("<bib:Article")[0] + "</rdf:RDF>", "holds no works"),
        (ZOTERO.replace("<dc:title>Tides</dc:title>", ""), "is a work without a title"),
        ('<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + ZOTERO.replace("oak", "&e;"), None),
    ],
)
def test_what_is_wrong_in_an_export_of_zotero_is_said_and_nothing_is_fetched(tmp_path, content, reason):
    if reason is None:
        twin = read_twin(tmp_path / "library.rdf", content)
        assert "root:" not in twin.nodes["strake21"]["text"]
        return
    with pytest.raises(UnreadableFile, match=reason):
        read_twin(tmp_path / "library.rdf", content)


RIS = """TY  - JOUR
AU  - Müller, Jörg
AU  - van der Berg, Anna
TI  - On the Filling
  of Locks
JO  - Journal of Canal Studies
PY  - 2019/03//
DO  - 10.1000/jcs
KW  - locks
KW  - to read
N1  - cites: reyes22
ER  -

TY  - THES
ID  - reyes22
A1  - Reyes, Ada
T1  - Gentle paddles
PB  - University of Wexcombe
Y1  - 2022
ER  -
"""
COLUMNS = (
    "Key,Item Type,Publication Year,Author,Title,Publication Title,DOI,Abstract Note,Publisher,Manual Tags,"
    "File Attachments,Extra"
)
LOCKS = (
    "ABCD", "journalArticle", "2019", "Müller, Jörg; van der Berg, Anna", "On the Filling of Locks",
    "Journal of Canal Studies", "10.1000/jcs", "We, who\nmeasured.", "", "locks; to read",
    "/home/ada/XYZ/mueller.pdf; /home/ada/XYZ/snap.html", "cites: reyes22",
)  # fmt: skip
PADDLES = (
    "EFGH", "thesis", "2022", "Reyes, Ada", "Gentle paddles", "", "", "", "University of Wexcombe", "", "",
    "Citation Key: reyes22",
)  # fmt: skip
TABLE = "\ufeff" + "".join(
    ",".join(f'"{cell}"' for cell in row) + "\n" for row in (COLUMNS.split(","), LOCKS, PADDLES)
)


@pytest.mark.parametrize(
    ("name", "content", "key"), [("a.ris", RIS, "10.1000/jcs"), ("a.csv", TABLE, "ABCD")]
)
def test_ris_and_the_table_of_zotero(tmp_path, name, content, key):
    twin = read_twin(tmp_path / name, content)
    assert twin.nodes[key]["name"] == "On the Filling of Locks"
    people = {tail for head, relation, tail in twin.edges if (head, relation) == (key, "author")}
    assert people == {"person:Jörg Müller", "person:Anna van der Berg"}
    assert {(key, "cites", "reyes22"), (key, "keyword", "keyword:to read")} <= set(twin.edges)
    assert ("reyes22", "published in", "venue:University of Wexcombe") in twin.edges
    assert twin.nodes[key]["properties"]["year"] == 2019
    if name == "a.csv":
        assert twin.nodes[key]["properties"]["file"] == "/home/ada/XYZ/mueller.pdf"
    with pytest.raises(UnreadableFile, match="without a"):
        read_twin(tmp_path / f"b{name}", content.replace("Gentle paddles", ""))


def test_names_with_particles_schools_and_related_works(tmp_path):
    bibtex = read_twin(
        tmp_path / "a.bib", "@phdthesis{a, author={Strake, Jr., Ada}, school={Oxlade}, title={Quays}}"
    )
    assert {("a", "author", "person:Ada Strake Jr."), ("a", "published in", "venue:Oxlade")} <= set(
        bibtex.edges
    )
    person = {"family": "Berg", "given": "Anna", "non-dropping-particle": "van der", "suffix": "III"}
    csl = read_twin(
        tmp_path / "a.json", json.dumps([{"id": "b", "title": "Tides", "issued": {}, "author": [person]}])
    )
    assert ("b", "author", "person:Anna van der Berg III") in csl.edges
    related = ZOTERO.replace("<bib:pages>1-9", '<dc:relation rdf:resource="#item_20"/><bib:pages>1-9')
    assert ("strake21", "related to", "item_20") in read_twin(tmp_path / "a.rdf", related).edges


def test_a_work_with_half_a_character_is_a_bad_row():
    works = [{"id": "a", "title": "Ti\ud83ddes", "issued": {}}, {"id": "b", "title": "Quays \U0001f6a2"}]
    _, nodes, *_, messages = read_both_ways("a.json", json.dumps(works).encode(), skip=True)
    assert nodes == 1 and messages == ["a.json: line 1: a text of the work holds half a character"]
