from pathlib import Path

import pytest

from clew.core import prompts
from clew.core.errors import UsageError
from clew.core.prompts.templates import load_prompt

OURS = sorted(path.name.partition(".v")[0] for path in Path(prompts.__file__).parent.glob("*.v?.md"))


def test_the_prompts_of_the_methods_exist():
    assert {"kgp-read", "kgp-generate", "read-cited", "structure-query", "grade"} <= set(OURS)


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_every_prompt_is_filled_in_completely(name):
    template = load_prompt(name)
    values = {variable: f"<<{variable}>>" for variable in template.variables}
    prompt = template.render(**values)
    assert all(value in prompt.system + prompt.user for value in values.values())
    assert "{{" not in prompt.system + prompt.user
    assert prompt.role == template.role
    assert template.name.rpartition(".v")[0] == name


def test_the_paper_prompt_has_the_form_of_listing_3():
    prompt = load_prompt("kgp-read").render(question="Who?", contexts="1: one\n2: two")
    assert prompt.system == ""
    assert prompt.user.split("\n\n") == [
        "Given the following question and contexts, create a final answer to the question.",
        "=====", "QUESTION: Who?", "=====", "CONTEXT:", "1: one\n2: two", "=====", "QUESTION: Who?", "=====",
        "ANSWER: Please answer in less than 6 words.",
    ]  # fmt: skip


def test_braces_in_a_value_are_inserted_as_they_are():
    prompt = load_prompt("kgp-read").render(question="what is {{contexts}}?", contexts="{x} {{question}}")
    assert "QUESTION: what is {{contexts}}?" in prompt.user
    assert "{x} {{question}}" in prompt.user


def test_missing_and_extra_variables_are_named():
    with pytest.raises(UsageError, match="without 'contexts' and with 'passages'"):
        load_prompt("kgp-read").render(question="x", passages="y")


def test_an_unknown_prompt_suggests_the_nearest():
    with pytest.raises(UsageError, match=r"Did you mean 'kgp-read'"):
        load_prompt("kgp-raed")


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


def test_a_users_file_replaces_the_built_in_one_and_changes_the_name(tmp_path, monkeypatch):
    write(tmp_path, "read-cited.v2.md", "---\nrole: read\nvariables: question contexts\nmax_tokens: 9\n---\n"
          "# user\n{{contexts}} -> {{ question }}\n")  # fmt: skip
    ours = load_prompt("read-cited")
    theirs = load_prompt("read-cited", folder=tmp_path)
    assert theirs.render(question="q", contexts="c").user == "c -> q"
    assert theirs.max_tokens == 9
    assert theirs.schema == ours.schema
    assert theirs.name.startswith("read-cited.v2@")
    monkeypatch.setenv("CLEW_PROMPTS", str(tmp_path))
    assert load_prompt("read-cited") == theirs
    assert load_prompt("kgp-read").name == "kgp-read.v1"
    # What an earlier version asked for is not what is read now.
    (tmp_path / "read-cited.v2.md").rename(tmp_path / "read-cited.v1.md")
    with pytest.raises(UsageError, match="is of an earlier version"):
        load_prompt("read-cited")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no header", "has no header"),
        ("---\nrole: read\n---\n# user\nx", "missing in the header: variables"),
        ("---\nrole: read\nvariables: question\ncolour: red\n---\n# user\n{{question}}", "header: colour"),
        ("---\nrole: read\nvariables: question contexts\n---\n# user\n{{question}}", "with 'contexts'"),
        (
            "---\nrole: read\nvariables: question\n---\n# user\n{{question}} {{contexts}}",
            "without 'contexts'",
        ),
        ("---\nrole: read\nvariables: question\n---\n# user\n{{question}}", "without 'contexts'"),
        (
            "---\nrole: read\nvariables: question contexts\n---\n# system\n{{question}} {{contexts}}",
            "no '# user'",
        ),
        (
            "---\nrole: grade\nvariables: question contexts\n---\n# user\n{{question}} {{contexts}}",
            "role 'grade'",
        ),
        ("---\nrole: read\nvariables: question\nmax_tokens: few\n---\n# user\n{{question}}", "max_tokens"),
    ],
)
def test_a_damaged_file_is_refused_before_it_is_used(tmp_path, text, problem):
    write(tmp_path, "kgp-read.v1.md", text)
    with pytest.raises(UsageError) as caught:
        load_prompt("kgp-read", folder=tmp_path)
    assert problem in caught.value.problem


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="no folder of prompts"):
        load_prompt("kgp-read", folder=tmp_path / "nowhere")
