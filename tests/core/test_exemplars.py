"""Few-shot prompts: exemplars in files, how many are shown, and a user's own."""

import json
import re

import pytest

from clew.core.errors import UsageError
from clew.core.prompts.templates import load_exemplars, load_prompt
from clew.methods.prompting import LABELS, parse_label
from clew.triples.language.chain import Limits, parse_chain


def own(folder, *shots, name="triplets"):
    (folder / "exemplars").mkdir(exist_ok=True)
    lines = [shot if isinstance(shot, str) else json.dumps(shot) for shot in shots]
    (folder / "exemplars" / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_exemplars_precede_the_question_in_the_form_of_the_prompt():
    shots = load_exemplars("triplets").shots
    user = load_prompt("chain-question").render(triplet="(?, x, y)").user
    blocks = user.split("\n\n")
    assert blocks[0] == f"Triplet: {shots[0]['triplet']}\nQuestion: {shots[0]['question']}"
    assert len(blocks) == min(15, len(shots)) + 1
    assert blocks[-1] == "Triplet: (?, x, y)\nQuestion:"


def test_the_number_of_exemplars_can_be_chosen(tmp_path):
    own(tmp_path, *({"triplet": f"t{n}", "question": f"q{n}"} for n in range(3)))
    two = load_prompt("chain-question", folder=tmp_path, shots=2)
    assert two.user.count("Triplet:") == 3
    assert load_prompt("chain-question", shots=0).user == "Triplet: {{triplet}}\nQuestion:"
    with pytest.raises(UsageError, match=r"4 exemplars are requested and .* has 3"):
        load_prompt("chain-question", folder=tmp_path, shots=4)


def test_a_users_exemplars_replace_the_built_in_ones_and_change_the_name(tmp_path, monkeypatch):
    own(tmp_path, {"triplet": "(mine, own, ?)", "question": "Whose?", "note": "kept for myself"})
    monkeypatch.setenv("CLEW_PROMPTS", str(tmp_path))
    template = load_prompt("chain-question")
    assert template.user.startswith("Triplet: (mine, own, ?)\nQuestion: Whose?\n\n")
    name, _, digest = template.name.partition("+")
    assert name == "chain-question.v1" and len(digest) == 8
    assert load_prompt("chain-parse").name == "chain-parse.v1"


@pytest.mark.parametrize(
    "line, problem",
    [
        ("{", "line 1 is not JSON"),
        ('["a"]', "line 1 is not an object"),
        ('{"triplet": 3, "question": "q"}', "line 1 is not an object whose values are texts"),
        ('{"triplet": "{{x}}", "question": "q"}', r"line 1 contains '\{\{'"),
        ('{"triplet": "t"}', "exemplar 1 has no 'question'"),
    ],
)
def test_an_error_in_a_file_names_the_line(tmp_path, line, problem):
    with pytest.raises(UsageError, match=problem):
        load_prompt("chain-question", folder=own(tmp_path, line))


def test_a_prompt_without_an_exemplar_part_is_refused(tmp_path):
    (tmp_path / "chain-question.v1.md").write_text(
        "---\nrole: structure\nvariables: triplet\nexemplars: triplets 3\n---\n# user\n{{triplet}}\n"
    )
    with pytest.raises(UsageError, match="does not declare how its exemplars are shown"):
        load_prompt("chain-question", folder=tmp_path)


def test_another_file_of_exemplars_can_be_chosen_and_changes_the_name(tmp_path):
    four = load_prompt("chain-parse", exemplars="compositional")
    assert four.user.count("Reasoning Chain:") == 5 and four.name == "chain-parse.v1+compositional"
    assert load_prompt("chain-parse", exemplars="compositional", shots=2).user.count("Reasoning Chain:") == 3
    assert load_prompt("chain-parse").user.count("Reasoning Chain:") == 26
    own(tmp_path, {"question": "q", "chain": "c"}, name="compositional")
    mine = load_prompt("chain-parse", exemplars="compositional", folder=tmp_path)
    assert mine.name.startswith("chain-parse.v1+compositional+") and "Question: q" in mine.user
    with pytest.raises(UsageError, match="exemplar 1 has no 'chain'"):
        load_prompt("chain-parse", exemplars="hops")
    with pytest.raises(UsageError, match="compositional"):
        load_prompt("chain-parse", exemplars="compositonal")


@pytest.mark.parametrize("name", ["chain-parse", "chain-memory", "fewshot", "cot"])
def test_prompts_for_claims_have_the_variables_of_those_for_questions(name):
    asked, claimed = load_prompt(name), load_prompt(f"{name}-claim")
    assert asked.variables == claimed.variables and asked.role == claimed.role
    shown = claimed.render(**{variable: f"<{variable}>" for variable in claimed.variables}).user
    assert shown.count("Claim: ") == (4 if name == "cot" else 26) and "Claim: <question>" in shown
    assert all(label in shown for label in LABELS) or name == "chain-parse"


def test_an_unknown_file_of_exemplars_suggests_the_nearest():
    with pytest.raises(UsageError, match="triplets"):
        load_exemplars("triplet")


#: What a file of exemplars must have: how many, and which fields.
FILES = {
    "chains": (25, {"question", "chain", "filled", "answer", "thought"}),
    "compositional": (4, {"question", "chain", "filled", "answer", "thought"}),
    "claims": (25, {"claim", "chain", "filled", "thought", "label"}),
    "triplets": (15, {"triplet", "question"}),
    "hops": (15, {"context", "question", "answer"}),
}


@pytest.mark.parametrize("name", FILES)
def test_built_in_files_have_as_many_exemplars_as_the_paper_and_no_duplicates(name):
    number, fields = FILES[name]
    shots = load_exemplars(name).shots
    assert len(shots) == number
    assert all(shot.keys() == fields and all(value.strip() for value in shot.values()) for shot in shots)
    asked = [shot.get("question", shot.get("claim", "")) for shot in shots]
    assert len(set(asked)) == number


def pieces(chain):
    """Return the triples of a chain as it is written, in (head, relation, tail), and its final answer."""
    *triples, final = (part.strip() for part in chain.split(";"))
    assert final.startswith("final answer: ")
    return [tuple(triple.split(" >> ")) for triple in triples], final.removeprefix("final answer: ")


@pytest.mark.parametrize("name", ["chains", "compositional", "claims"])
def test_every_chain_parses_and_its_filled_form_is_the_same_chain_with_values(name):
    limits = Limits(1, 3) if name == "claims" else Limits()
    for shot in load_exemplars(name).shots:
        chain = parse_chain(shot["chain"], limits)
        assert str(chain) == shot["chain"]
        filled, final = pieces(shot["filled"])
        values = {}
        for asked, given in zip(chain.triples, filled, strict=True):
            for term, value in ((asked.head, given[0]), (asked.tail, given[2])):
                # An unknown takes the value that stands where it stood, wherever it stands.
                before, number, after = re.fullmatch(r"(.*?)(?:#(\d+))?([^#]*)", term.text).groups()
                if number:
                    assert value.startswith(before) and value.endswith(after)
                    here = value[len(before) : len(value) - len(after)]
                    assert values.setdefault(int(number), here) == here
                else:
                    assert value == term.text
            assert given[1] == asked.relation
        assert set(values) == set(chain.unknowns) and all(values.values())
        assert "; ".join(map(str, chain.fill(values).triples)) == shot["filled"].rpartition("; final")[0]
        assert final == shot.get("answer", shot.get("label"))
        if chain.answer is not None:
            assert values[chain.answer] == final
        assert shot["thought"].endswith(f" So the answer is: {final}.")


def test_built_in_chains_vary_in_shape():
    chains = [parse_chain(shot["chain"]) for shot in load_exemplars("chains").shots]
    assert {len(chain.unknowns) for chain in chains} == {2, 3, 4}
    assert 5 <= sum(chain.answer is None for chain in chains) <= 15
    assert any(
        triple.head.unknowns and triple.head.unknown is None for item in chains for triple in item.triples
    )
    answers = {shot["answer"] for shot in load_exemplars("chains").shots}
    assert {"yes", "no"} <= answers


def test_claims_are_of_every_kind_and_the_first_three_show_each():
    labels = [item["label"] for item in load_exemplars("claims").shots]
    assert set(labels[:3]) == {"SUPPORTS", "REFUTES", "NOT ENOUGH INFO"}
    assert len(set(labels)) == 3 and all(labels.count(label) >= 7 for label in labels)
    for shot in load_exemplars("claims").shots:
        assert parse_label(shot["filled"]) == parse_label(shot["thought"]) == shot["label"]


def test_a_third_of_the_contexts_lack_the_answer():
    shots = load_exemplars("hops").shots
    assert sum(item["answer"] == "unknown" for item in shots) == 5
    for shot in shots:
        # Title and text, passages divided by an empty line; what is answered stands there.
        assert all("\n" in passage for passage in shot["context"].split("\n\n"))
        assert shot["answer"] == "unknown" or shot["answer"] in shot["context"]


def test_triplets_ask_with_one_question_mark():
    forms = [
        re.fullmatch(r'\((".*"|\?), (".*"), (".*"|\?)\)', shot["triplet"])
        for shot in load_exemplars("triplets").shots
    ]
    assert all(form and (form[1] == "?") != (form[3] == "?") for form in forms)
    assert sum(form[1] == "?" for form in forms) == 2
