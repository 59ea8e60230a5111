"""Whether a summary says only what its section says: the limit that D3's authors leave open (Limitations).

What is checked is what can be: every number and every name of a summary must occur in its section. A number
occurs if the section has it, thousands separators aside; 1.5 billion made of 1,500 million does not, and is
refused: a reader could not find it. A name occurs if its words stand there in a row, or, where several names
were run together, if each of its words does.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.text import MAX_NAME_WORDS, STOPWORDS, candidate_names, normalise_name, sentence_spans, index_terms

#: Words that summaries start sentences with, which are capitalised for that alone.
_OPENERS = frozenset(
    """according additionally although among article based besides company contains covers defines describes despite
    details discusses document explains finally first following furthermore given gives here highlights however
    importantly includes information instead it's lists many meanwhile moreover nevertheless notably note overall
    paragraph part passage presents provides report reports second section several shows similarly since some
    specifically states summary table text therefore third thus today topics two various""".split()
)


def find_invented(summary: str, source: str) -> list[str]:
    """Return the numbers and names of ``summary`` that ``source``, the section with its name, does not have.

    In the order of the summary, each once; empty for a faithful one.
    """
    held = set(index_terms(source))
    words = f" {normalise_name(source)} "
    found = [number for number in _numbers(summary) if not set(index_terms(number)) <= held]
    for name in _names(summary):
        plain = normalise_name(name)
        if f" {plain} " not in words and not all(set(index_terms(part)) <= held for part in plain.split()):
            found.append(name)
    return list(dict.fromkeys(found))


def _numbers(text: str) -> Iterator[str]:
    for word in text.split():
        trimmed = word.strip("()[]{}\"'“”‘’.,;:!?*_")
        if any(char.isdigit() for char in trimmed):
            yield trimmed


def _names(text: str) -> Iterator[str]:
    """Yield the longest names of a text, but for a single word at a sentence's start that is usual there."""
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        reached = 0
        spans = [(first, last) for _, first, last in candidate_names(sentence)]
        for first, last in sorted(spans, key=lambda span: (span[0], -span[1])):
            name = sentence[first:last]
            if first < reached or any(char.isdigit() for char in name):
                continue
            reached = last
            opener = first == 0 and name.casefold() in STOPWORDS | _OPENERS
            if not opener and len(name.split()) <= MAX_NAME_WORDS:
                yield name
