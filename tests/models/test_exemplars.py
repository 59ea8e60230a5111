"""Few-shot prompts: exemplars in files, how many are shown, and a user's own."""

import json

import pytest

from clew.errors import UsageError
from clew.prompts import load
from clew.prompts.exemplars import load_exemplars


def own(folder, *shots, name="triplets"):
    (folder / "exemplars").mkdir(exist_ok=True)
    lines = [one if isinstance(one, str) else json.dumps(one) for one in shots]
    (folder / "exemplars" / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_exemplars_stand_before_what_is_asked_as_the_prompt_writes_them():
    shots = load_exemplars("triplets").shots
    user = load("chain-question").render(triplet="(?, x, y)").user
    blocks = user.split("\n\n")
    assert blocks[0] == f"Triplet: {shots[0]['triplet']}\nQuestion: {shots[0]['question']}"
    assert len(blocks) == min(15, len(shots)) + 1
    assert blocks[-1] == "Triplet: (?, x, y)\nQuestion:"


def test_the_number_of_shots_is_asked_for(tmp_path):
    own(tmp_path, *({"triplet": f"t{n}", "question": f"q{n}"} for n in range(3)))
    two = load("chain-question", folder=tmp_path, shots=2)
    assert two.user.count("Triplet:") == 3
    assert load("chain-question", shots=0).user == "Triplet: {{triplet}}\nQuestion:"
    with pytest.raises(UsageError, match=r"4 exemplars are asked for and .* has 3"):
        load("chain-question", folder=tmp_path, shots=4)


def test_exemplars_of_the_user_replace_ours_and_show_in_the_name(tmp_path, monkeypatch):
    own(tmp_path, {"triplet": "(mine, own, ?)", "question": "Whose?", "note": "kept for myself"})
    monkeypatch.setenv("CLEW_PROMPTS", str(tmp_path))
    template = load("chain-question")
    assert template.user.startswith("Triplet: (mine, own, ?)\nQuestion: Whose?\n\n")
    name, _, digest = template.name.partition("+")
    assert name == "chain-question.v1" and len(digest) == 8
    assert load("chain-parse").name == "chain-parse.v1"


@pytest.mark.parametrize(
    "line, problem",
    [
        ("{", "line 1 is not JSON"),
        ('["a"]', "line 1 is not an object"),
        ('{"triplet": 3, "question": "q"}', "line 1 is not an object whose values are texts"),
        ('{"triplet": "{{x}}", "question": "q"}', r"line 1 has '\{\{' in it"),
        ('{"triplet": "t"}', "exemplar 1 has no 'question'"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path, line, problem):
    with pytest.raises(UsageError, match=problem):
        load("chain-question", folder=own(tmp_path, line))


def test_a_prompt_that_does_not_say_how_exemplars_are_shown_is_refused(tmp_path):
    (tmp_path / "chain-question.v1.md").write_text(
        "---\nrole: structure\nvariables: triplet\nexemplars: triplets 3\n---\n# user\n{{triplet}}\n"
    )
    with pytest.raises(UsageError, match="does not say how its exemplars are shown"):
        load("chain-question", folder=tmp_path)


def test_an_unknown_file_of_exemplars_suggests_the_nearest():
    with pytest.raises(UsageError, match="triplets"):
        load_exemplars("triplet")
