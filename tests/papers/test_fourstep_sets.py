"""The page of 4StepFocus over MetaQA's questions, and over several data sets: no model."""

import json
import re

import pytest

from clew.core.errors import UsageError
from clew.core.text import slugify
from clew.papers.fourstep import build_settings, data_names
from command_line import run
from paper_pages import WATER_BIRDS, cells


def test_oracle_triples_of_metaqa_need_no_model(tmp_path):
    (tmp_path / "films.tsv").write_text(WATER_BIRDS)
    questions = [
        ("who acted in films by the director of [Heron]", ["Di Reed", "Ada Finch"],
         "movie_to_director_to_movie_to_actor"),
        ("what films did [Di Reed] write", ["Teal"], "writer_to_movie"),
        ("when were films by [Ada Finch] released", ["1931", "1932"], "director_to_movie_to_year"),
    ]  # fmt: skip
    names = ("question", "answers", "type")
    lines = [json.dumps(dict(zip(names, question, strict=True))) for question in questions]
    (tmp_path / "dev.jsonl").write_text("\n".join(lines))
    words = ["--data", f"metaqa={tmp_path}/dev.jsonl", "--graph", tmp_path / "films.tsv", "--encoder", "none"]
    run("eval", "paper", "4stepfocus", *words, "--out", tmp_path / "page")
    text = (tmp_path / "page" / "page.md").read_text(encoding="utf-8")
    typed = cells(text, "Oracle triples", "typed relations")
    # Two of three sets are whole; the graph has one of the two years: F1 2 * 1 * 1/2 / (3/2) = 2/3. All first answers
    # are right.
    assert typed["set-EM"].startswith("0.667 [") and typed["set-F1"].startswith(
        f"{(1 + 1 + 2 / 3) / 3:.3f} ["
    )
    assert typed["Hit@1"].startswith("1.000 [") and typed["calls"].startswith("0.000 [")
    loose = cells(text, "Oracle triples", "any relation")
    # Any relation of Di Reed's: Plover as well; so with the others, whose sets are larger than the gold ones.
    assert loose["set-EM"].startswith("0.000 [")
    # As they are printed, lines 14 and 19 of Algorithm 2 leave the question of one triple; corrected, all of them.
    printed, corrected = (
        cells(text, "Oracle triples", label)
        for label in ("paper=yes, as printed", "paper=yes, lines corrected")
    )
    assert printed["set-EM"].startswith("0.333 [") and "focus(form=none, k=20, paper=yes)" in text
    assert corrected["Hit@1"].startswith("1.000 [") and corrected["set-EM"].startswith("0.667 [")
    assert "--gold-triples" in text and "metaqa (films, gold triples)" in text


@pytest.mark.slow
def test_data_sets_with_one_file_name_have_folders_and_headings_of_their_own(tmp_path):
    (tmp_path / "films.tsv").write_text(WATER_BIRDS)
    asked = {
        "1-hop": {"question": "what films did [Di Reed] write", "answers": ["Teal"], "type": "writer_to_movie"},
        "2-hop": {"question": "when were films by [Ada Finch] released", "answers": ["1931"],
                  "type": "director_to_movie_to_year"},
    }  # fmt: skip
    words = ["--graph", tmp_path / "films.tsv", "--encoder", "none"]
    for hops, question in asked.items():
        (tmp_path / hops / "vanilla").mkdir(parents=True)
        (tmp_path / hops / "vanilla" / "qa_test.jsonl").write_text(json.dumps(question))
        words += ["--data", f"metaqa={tmp_path}/{hops}/vanilla/qa_test.jsonl"]
    page = ["eval", "paper", "4stepfocus", *words, "--out", tmp_path / "page"]
    run(*page)
    text = (tmp_path / "page" / "page.md").read_text(encoding="utf-8")
    named = [f"{hops}/vanilla/qa_test.jsonl" for hops in asked]
    assert re.findall(r"^## (metaqa.*)$", text, re.M) == [f"metaqa (films), {name}" for name in named]
    assert all((tmp_path / "page" / name.replace("/", "-")).is_dir() for name in named)
    run(*page)  # each goes on where it was
    assert (tmp_path / "page" / "page.md").read_text(encoding="utf-8") == text


def test_a_data_set_is_called_by_as_much_of_its_path_as_tells_it_from_others():
    def named(*data):
        return list(data_names(data).values())

    assert named("stark=a/qa.csv#test-0.1", "stark=a/qa.csv#test") == ["qa.csv#test-0.1", "qa.csv#test"]
    assert named("metaqa=qa.txt", "metaqa=../b/qa.txt", "metaqa=c/x.txt")[1:] == ["b/qa.txt", "x.txt"]
    assert named("metaqa=a/qa.txt", "metaqa=b/qa.txt", "metaqa=a-qa.txt")[1] == "b/qa.txt"
    for several in (["stark=qa.txt", "metaqa=qa.txt"], ["stark=a b.txt", "stark=a-b.txt", "stark=A-b.txt"]):
        results = {slugify(name).casefold() for name in named(*several)}
        assert len(results) == len(several)
        assert all(re.fullmatch(r"([0-9a-f]{8}-)*(qa|a-b)\.txt", name) for name in results)
    with pytest.raises(UsageError, match="twice"):
        build_settings(["stark=a.csv", "stark=a.csv"], ["g"], (), 1, False)
