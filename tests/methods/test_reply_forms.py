"""Forms of replies on which the reading was mended (``tests/reply_forms.py``), and refusals in many wordings."""

import json
from collections import Counter
from pathlib import Path

import pytest

import clew.core.prompts
from clew.core.prompts.replies import is_refusal, read_text
from reply_forms import (
    FAMILIES,
    FORMS,
    KINDS,
    OBJECTS,
    TEXTS,
    Form,
    dress_prompt,
    expected_of_call,
    read_call,
    read_dressed,
    read_reply,
)

#: Least share of the replies of ``benchmarks/data/replies`` that is read right, and greatest that is read wrong.
RIGHT_REPLIES, WRONG_REPLIES = 0.93, 0.04
PROMPTS = sorted(
    {path.name.split(".")[0] for path in Path(clew.core.prompts.__file__).parent.glob("*.v*.md")}
)

REFUSALS = """
The context does not say.|Not mentioned in the provided sources.|I don't know|Unknown|N/A|None|not stated
The passage doesn't mention where he was born.|There is no information about this in the context.
It is not specified.|It isn't mentioned|The answer is not provided in the text|Cannot be determined
Unfortunately, the documents do not contain this.|Based on the context, it is not possible to determine.
I'm sorry, but I cannot answer that.|As an AI language model I can't|Not enough information|unable to determine
The provided text does not specify the director's place of birth|His birthplace is not mentioned
The sources do not say where the designer was from.|I cannot provide evidence without more information.
The question cannot be answered from the given passages.|Not explicitly stated in the passage|It is unclear
Unknown (not mentioned in the text)|None of the passages mention it|No mention of it|insufficient information
"""
ANSWERS = """
No Country for Old Men|Not Another Teen Movie|The Unknown Soldier|Unknown Pleasures|Nothing Else Matters
I Don't Know How She Does It|None Shall Escape|Saltreach|no|yes|Never Let Me Go|The Answer|Not guilty|1871
Saltreach, although the context does not say which one|No, it is not in the same country|The Question of God
Sorry Wrong Number|There Is No Evil|I, Robot|We Were Soldiers|Not One Less|Nowhere Boy|The Given Day
He was not elected|The company did not pay a dividend|It is not a city|No data center was sold|Information Society
"""


@pytest.mark.parametrize(
    "form", [*FORMS, *FAMILIES], ids=[f"{form.kind}, {form.name}" for form in (*FORMS, *FAMILIES)]
)
def test_a_reply_as_models_write_it_is_read(form: Form):
    assert read_reply(form) == form.says


def test_there_are_twelve_forms_of_each_kind():
    assert [sum(form.kind == kind for form in FORMS) for kind in KINDS] == [12] * 10
    assert len(FORMS) == 120 and len({(form.kind, form.name) for form in FORMS}) == 120


@pytest.mark.parametrize("text", [text for line in REFUSALS.split("\n") for text in line.split("|") if text])
def test_a_refusal_is_no_value(text):
    assert is_refusal(text) and is_refusal(f"**{text}**") and read_text(f"Answer: {text}") == ""


@pytest.mark.parametrize("text", [text for line in ANSWERS.split("\n") for text in line.split("|") if text])
def test_an_answer_that_begins_like_a_refusal_is_an_answer(text):
    assert not is_refusal(text)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_replies_to_every_prompt_are_read_in_every_dressing(prompt: str):
    assert prompt in TEXTS or prompt in OBJECTS, "a new prompt needs a value, another, and how it is read"
    replies = dress_prompt(prompt)
    assert len(replies) >= 30
    assert {
        name: read for name, reply in replies if (read := read_dressed(prompt, reply))[0] != read[1]
    } == {}


def test_replies_that_others_wrote_are_read_right_or_refused():
    outcomes = Counter[str]()
    for path in (Path(__file__).parents[2] / "benchmarks" / "data" / "replies").glob("*.jsonl"):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            wanted = expected_of_call(row["call"], row["payload"]) if row["expect"] == "value" else None
            read = read_call(row["call"], row["reply"])
            outcomes["right" if read == wanted else "refused" if read is None else "wrong"] += 1
    assert outcomes["right"] >= RIGHT_REPLIES * outcomes.total()
    assert outcomes["wrong"] <= WRONG_REPLIES * outcomes.total()
