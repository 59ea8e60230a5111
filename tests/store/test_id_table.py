"""Ids and their numbers, against a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.arrays import TextSpans
from clew.store.graphs import id_table
from clew.store.graphs.id_table import IdTable

IDS = st.one_of(
    st.text(alphabet="ab\0é", max_size=4),
    st.integers(0, 30).map(lambda length: "http://example.org/thing"[:length]),
    st.text(max_size=40).filter(lambda text: text.isprintable()),
)
STEPS = st.lists(st.tuples(st.booleans(), st.lists(IDS, max_size=30)), max_size=6)


@pytest.mark.slow
@pytest.mark.parametrize("few_ties", [0, 2_000])
@given(steps=STEPS)
def test_ids_are_numbered_once_and_sorted_as_texts(few_ties: int, steps):
    numbers: dict[str, int] = {}
    ids = IdTable()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(id_table, "_FEW_TIES", few_ties)
        for is_column, texts in steps:
            if is_column:
                given_numbers = ids.add_all(TextSpans.from_texts(texts)).tolist()
            else:
                given_numbers = [ids.add(text) for text in texts]
            for text, number in zip(texts, given_numbers, strict=True):
                assert numbers.setdefault(text, number) == number
            assert sorted(numbers.values()) == list(range(len(ids)))
        assert all(ids.find(text) == number for text, number in numbers.items())
        assert ids.find("another") is None
        stored = ids.ids()
        assert [stored[number] for number in ids.order()] == sorted(numbers)


def test_twenty_thousand_ids_with_long_common_prefixes_round_trip():
    texts = [f"{'prefix of every id ' * (place % 3)}{place % 5_000}" for place in range(20_000)]
    ids = IdTable()
    first = ids.add_all(TextSpans.from_texts(texts)).tolist()
    assert ids.add_all(TextSpans.from_texts(texts)).tolist() == first
    assert len(ids) == len(set(texts)) == len(set(first))
    stored = ids.ids()
    assert [stored[number] for number in first] == texts
