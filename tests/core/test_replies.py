import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.errors import BadCompletion
from clew.core.prompts.replies import parse_json

SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": ["number", "null"]},
        "sure": {"type": "boolean"},
        "kind": {"type": "string", "enum": ["page", "table"]},
        "quotes": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"source": {"type": "integer"}, "text": {"type": "string"}},
                "required": ["source", "text"],
            },
        },
    },
    "required": ["answer"],
}


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"answer": "x"}', {"answer": "x"}),
        ('Sure! Here it is:\n```json\n{"answer": "x"}\n```\nAnything else?', {"answer": "x"}),
        ('```\n{"answer": "x"}', {"answer": "x"}),
        ('In the form {key: value} this is {"answer": "x"}.', {"answer": "x"}),
        ('<think>{"answer": "wrong"} no</think>{"answer": "x"}', {"answer": "x"}),
        ("{'answer': 'it's the dog's'}", {"answer": "it's the dog's"}),
        ('{"answer": "he said "no" twice"}', {"answer": 'he said "no" twice'}),
        ("{“answer”: “x”}", {"answer": "x"}),
        ('{answer: "x", sure: True, share: None,}', {"answer": "x", "sure": True, "share": None}),
        ('{"result": {"answer": "x"}}', {"answer": "x"}),
        ('{"answer": "x", // why\n "count": 3 /* more */}', {"answer": "x", "count": 3}),
        ('{"answer": "two\nlines"}', {"answer": "two\nlines"}),
        (r'{"answer": "\u00e9\ud83d\ude00\n\/"}', {"answer": "é😀\n/"}),
        ('{"answer": "x", "extra": [1, {"deep": 2}]}', {"answer": "x"}),
        ('{"answer": "x", "count": "3", "share": "0.5", "sure": "False"}',
         {"answer": "x", "count": 3, "share": 0.5, "sure": False}),
        ('{"answer": "x", "count": 3.0}', {"answer": "x", "count": 3}),
    ],
)  # fmt: skip
def test_a_value_is_parsed_whatever_surrounds_it(reply, value):
    assert parse_json(reply, SCHEMA) == value


def test_a_reply_that_is_cut_off_keeps_its_complete_parts():
    whole = '{"answer": "x", "quotes": [{"source": 1, "text": "one"}, {"source": 12, "text": "two"}]'
    whole += ', "count": 123}'
    quotes = [{"source": 1, "text": "one"}, {"source": 12, "text": "two"}]
    for end in range(whole.index('"x"') + 3, len(whole)):
        value = parse_json(whole[:end], SCHEMA)
        assert value["answer"] == "x"
        assert value.get("quotes", []) == quotes[: len(value.get("quotes", []))]
        assert value.get("count", 123) == 123
    with pytest.raises(BadCompletion):
        parse_json(whole[: whole.index('"x"') + 2], SCHEMA)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("I cannot help with that", "no JSON"),
        ("", "no JSON"),
        ('{"count": 3}', "no 'answer'"),
        ('{"answer": 7}', "answer is int"),
        ('{"answer": null}', "answer is NoneType"),
        ('{"answer": "x", "count": "three"}', "count is str"),
        ('{"answer": "x", "count": true}', "count is bool"),
        ('{"answer": "x", "count": 3.5}', "count is float"),
        ('{"answer": "x", "kind": "chapter"}', "not one of"),
        ('{"answer": "x", "quotes": {"source": 1, "text": "t"}}', "quotes is dict"),
        ('{"answer": "x", "quotes": [{"source": 1}]}', "quotes[0] has no 'text'"),
        ('{"answer" "x"}', "colon"),
        ('{"answer": ' + "[" * 5000, ""),
        ("{" * 100_000, ""),
    ],
)
def test_a_reply_that_does_not_match_the_schema_is_refused_with_the_reason(reply, problem):
    with pytest.raises(BadCompletion) as caught:
        parse_json(reply, SCHEMA)
    assert problem in caught.value.problem


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), JSON), st.booleans())
def test_valid_json_is_parsed_as_by_the_json_module(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_json(text, {"type": "object"}) == json.loads(text)


@pytest.mark.slow
@given(st.text(alphabet="{}[]\":,'ab1\\u\n `tfn"))
def test_any_other_text_raises_bad_completion(text):
    with contextlib.suppress(BadCompletion):
        assert isinstance(parse_json(text, SCHEMA), dict)
