import pytest

import clew
from clew.core.errors import UsageError

BIBTEX = """
@article{strake, author={Strake, Ada}, title={Keepers of the northern weirs}, year=2021, file={papers/one.md}}
@article{wu, author={Wu, Jo}, title={Tides and the quays of Oxlade}, year=2019}
@article{brun, author={Brun, Elodie}, title={The lamp at Stennick harbour}, year=2015}
@article{late, author={Strake, Ada}, title={A second look at lamps}, year=2023}
@misc{tiny, title={Tides}}
"""
PAPERS = {
    "one.md": "# Keepers\n\nAfter earlier work.\n\nReferences\n\n[1] J. Wu. Tides and the Quays of Oxlade. 2019.\n",
    "look.md": "# A second look at lamps\n\nAs in E. Brun, “The lamp at Stennick harbour” (2015), and in tides.\n",
}


def test_papers_by_one_author_that_cite_another_take_a_hop_from_each(tmp_path):
    (tmp_path / "library.bib").write_text(BIBTEX)
    for name, text in PAPERS.items():
        (tmp_path / name).write_text(text)
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        base.add([tmp_path / name for name in PAPERS], workers=1)
        base.graphs.add(tmp_path / "library.bib")
        assert base.graphs.link_citations("library") == 2
        assert base.graphs.link_citations("library") == 0
        triples = "#1 >> author >> Ada Strake; #1 >> cites >> #2; #2 >> author >> {}; final answer: #1"
        for author, title in {
            "Jo Wu": "Keepers of the northern weirs",
            "Elodie Brun": "A second look at lamps",
        }.items():
            answer = base.ask("", chain=triples.format(author), recipe="focus")
            assert answer.ranking[0].name == title and answer.ranking[0].meets_all
        with pytest.raises(UsageError, match="no graph"):
            base.graphs.link_citations("films")


SHORT = """
@book{oak, author={Oak, P. Q.}, title={Weirs of Europe}, year=2010}
@article{tides, author={Wu, Jo}, title={Tides}, year=1999}
@article{lamps, author={Brun, Elodie}, title={Lamps of the old harbour: A catalogue}, year=2015}
@article{quay, author={Elm, R.}, title={The quay}, year=2001}
@article{own, author={Strake, Ada}, title={A survey of the northern weirs}, year=2023}
"""
SURVEY = """# A survey of the northern weirs

The quay is old. Tides turn it, and R. Elm agrees. Many weirs of Europe are older.

References

Oak, P. Weirs of Europe. Quay Press, 2010.
Wu, J. (1999). Tides. Journal of Water.
Brun, E. Lamps of the old harbour. 2016.
"""


def test_short_titles_count_beside_author_and_year_and_main_titles_alone(tmp_path):
    (tmp_path / "library.bib").write_text(SHORT)
    (tmp_path / "survey.md").write_text(SURVEY)
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        base.add([tmp_path / "survey.md"], workers=1)
        base.graphs.add(tmp_path / "library.bib")
        assert base.graphs.link_citations("library") == 3
        answer = base.ask(
            "", chain="A survey of the northern weirs >> cites >> #1; final answer: #1", recipe="focus"
        )
        assert {hit.name for hit in answer.ranking if hit.meets_all} == {
            "Weirs of Europe", "Tides", "Lamps of the old harbour: A catalogue",
        }  # fmt: skip
