import pytest

from clew.methods.readers.cited import SourceText


@pytest.mark.parametrize(
    ("text", "quote", "result"),
    [
        ("The bar is 2.4 m deep.", "bar is 2.4 m", "bar is 2.4 m"),
        ("The bar  is\n2.4\u00a0m deep.", "bar is 2.4 m deep", "bar  is\n2.4\u00a0m deep"),
        ("He said “no” – twice.", "He said \"no\" - twice.", "He said “no” – twice."),
        ("It’s the keeper‘s", "It's the keeper's", "It’s the keeper‘s"),
        ("an exam-\nple of it", "an example of it", "an exam-\nple of it"),
        ("an ex\u00adample", "an example", "an ex\u00adample"),
        ("the ﬁrst ﬂood", "the first flood", "the ﬁrst ﬂood"),
        ("in cafe\u0301 Merle", "café Merle", "cafe\u0301 Merle"),
        ("in café Merle", "cafe\u0301 Merle", "café Merle"),
        ("It was lost", '"It was lost"', "It was lost"),
        ("It was lost with all hands", "It was lost.", "It was lost"),
        ("and so it was lost … then", "...it was lost...", "it was lost"),
        ("東京の橋は1907年", "橋は1907", "橋は1907"),
        ("cost: $1,577; was (1,373)", "$1,577", "$1,577"),
        ("a 250, b 12", "12", "12"),
    ],
)  # fmt: skip
def test_a_quote_is_found_and_shown_as_its_source_has_it(text, quote, result):
    span = SourceText.from_text(text).find(quote)
    assert span is not None
    assert text[slice(*span)] == result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("cost 1,250 a year", "250"),
        ("cost 1,250 a year", "1"),
        ("cost 12.5 a year", "12"),
        ("cost 12.5 a year", "2.5"),
        ("cost 1250 a year", "125"),
        ("the harbours", "harbour"),
        ("not so", "ot so"),
        ("He left in 1931", "He left in 1932"),
        ("He left in 1931", "He never left in 1931"),
        ("He left. She stayed.", "She stayed ... He left"),
        ("10² metres", "102 metres"),
        ("a well-known man", "a wellknown man"),
        ("x", ""),
        ("a - b", "-"),
        ("a.*b", "a.xb"),
    ],
)
def test_altered_words_are_not_found(text, quote):
    assert SourceText.from_text(text).find(quote) is None


@pytest.mark.slow
def test_every_word_span_of_a_text_is_found_where_it_stands():
    text = "The “Heron  Maid” was built in 1907–08,\nat the ship-\nyard of Strake & Loam (2.4 m; $1,940)."
    words = text.split(" ")
    ends = [len(" ".join(words[: n + 1])) for n in range(len(words))]
    starts = [0, *(end + 1 for end in ends[:-1])]
    source = SourceText.from_text(text)
    for start in starts:
        for end in ends:
            quote = text[start:end]
            if quote.strip() and any(char.isalnum() for char in quote):
                span = source.find(quote)
                assert span is not None
                assert text[slice(*span)].strip("“” ") in quote
