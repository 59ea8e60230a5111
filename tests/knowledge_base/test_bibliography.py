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
