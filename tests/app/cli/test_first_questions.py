"""The first questions of a newcomer, after ``clew graph add`` and nothing else: no model, no documents, no options.

They were written before they were asked, and before the models that read them were trained. ``None``: the graph does
not know, and nothing is stated.
"""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from clew.app.cli.commands import app

FILMS = """\
24 Hours\tdirected by\tMarion Gering
24 Hours\tstars\tClive Brook
24 Hours\tstars\tKay Francis
24 Hours\trelease year\t1931
24 Hours\tgenre\tdrama
24 Hours\tin language\tEnglish
Devil and the Deep\tdirected by\tMarion Gering
Devil and the Deep\tstars\tGary Cooper
Devil and the Deep\tstars\tTallulah Bankhead
Devil and the Deep\trelease year\t1932
Devil and the Deep\tgenre\tdrama
Trouble in Paradise\tdirected by\tErnst Lubitsch
Trouble in Paradise\tstars\tKay Francis
Trouble in Paradise\twritten by\tSamson Raphaelson
Trouble in Paradise\trelease year\t1932
Trouble in Paradise\tgenre\tcomedy
Design for Living\tdirected by\tErnst Lubitsch
Design for Living\tstars\tGary Cooper
Design for Living\twritten by\tBen Hecht
Design for Living\trelease year\t1933
Design for Living\tgenre\tcomedy
"""
QUESTIONS = {
    "Who directed 24 Hours?": {"Marion Gering"},
    "who stars in 24 hours": {"Clive Brook", "Kay Francis"},
    "When was 24 Hours released?": {"1931"},
    "What genre is 24 Hours?": {"drama"},
    "Which films did Ernst Lubitsch direct?": {"Trouble in Paradise", "Design for Living"},
    "What films has Kay Francis been in?": {"24 Hours", "Trouble in Paradise"},
    "Who wrote Design for Living?": {"Ben Hecht"},
    "What language is 24 Hours in?": {"English"},
    "Which comedies did Ernst Lubitsch direct?": {"Trouble in Paradise", "Design for Living"},
    "Who acted in the films of Marion Gering?": {
        "Clive Brook",
        "Kay Francis",
        "Gary Cooper",
        "Tallulah Bankhead",
    },
    "How many films did Marion Gering direct?": {"2"},
    "Which films came out in 1932?": {"Devil and the Deep", "Trouble in Paradise"},
    "Which film starring Gary Cooper was directed by → Ernst Lubitsch?": {"Design for Living"},
    "Which films with Kay Francis are not dramas?": {"Trouble in Paradise"},
    "Which other films did the director of 24 Hours make?": {"Devil and the Deep"},
    "Tell me the director of Devil and the Deep": {"Marion Gering"},
    "Name the actors in Design for Living.": {"Gary Cooper"},
    "Who directed the films that Samson Raphaelson wrote?": {"Ernst Lubitsch"},
    "Who composed the music of 24 Hours?": None,
    "How long is 24 Hours?": None,
    "Who directed Shanghai Express?": None,
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    (folder / "films.tsv").write_text(FILMS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_ENCODER", "none")
        added = CliRunner().invoke(
            app, ["graph", "add", str(folder / "films.tsv"), "--kb", str(folder / "kb")]
        )
        assert added.exit_code == 0 and "added films" in added.output
        yield folder / "kb"


def test_first_questions_are_answered(base):
    """A scored set with floors: what is right first, what is right among three readings, what is stated wrongly."""
    first, shown, stated_wrong = [], [], []
    for question, expected in QUESTIONS.items():
        result = CliRunner().invoke(app, ["ask", question, "--kb", str(base), "--json"])
        assert result.exit_code == 0, result.output
        answer = json.loads(result.stdout)
        readings = [set(reading["values"]) for reading in answer["perhaps"]] or [set(answer["values"])]
        if answer["way"] == "answer" and readings[0] != expected:
            stated_wrong.append(question)
        if answer["way"] != "not_found":
            first.append(readings[0] == expected)
            shown.append(expected in readings)
            assert answer["route"].startswith("From the graph: ") and 0 <= answer["confidence"] <= 1
    assert not stated_wrong
    assert sum(first) >= 13 and sum(shown) >= 14


def test_the_triples_that_clew_wrote_can_be_changed_and_asked_again(base):
    def ask(*words):
        return json.loads(CliRunner().invoke(app, ["ask", *words, "--kb", str(base), "--json"]).stdout)

    steps = ask("Who directed 24 Hours?")["trail"]
    triples = next(step["detail"]["triples"] for step in steps if step["name"] == "triples")
    assert ask("--triples", triples)["values"] == ["Marion Gering"]
    changed = triples.replace("24 Hours", "Design for Living")
    assert ask("--triples", changed)["values"] == ["Ernst Lubitsch"]


def test_a_misspelt_name_is_read_as_the_nearest_and_the_reading_has_it(base):
    result = CliRunner().invoke(app, ["ask", "Which films did Ernst Lubitch direct?", "--kb", str(base)])
    assert "Trouble in Paradise" in result.stdout
    assert "directed by → Ernst Lubitsch" in result.stdout
    unknown = CliRunner().invoke(app, ["ask", "Which films did Erna Luditt direct?", "--kb", str(base)])
    assert not unknown.stdout.startswith("Answer")
