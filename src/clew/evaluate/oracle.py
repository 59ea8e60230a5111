"""The triples of a question that its data set spells out: what a perfect first step would write (oracle triples)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from clew.chains import Chain, Term, Triple
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.evaluate.examples import Example

#: The relations of the words of MetaQA's types, as its film graph names them, from the film.
METAQA_RELATIONS = {
    "director": "directed_by",
    "writer": "written_by",
    "actor": "starred_actors",
    "year": "release_year",
    "language": "in_language",
    "tags": "has_tags",
    "genre": "has_genre",
    "imdbrating": "has_imdb_rating",
    "imdbvotes": "has_imdb_votes",
}
_FILM = "movie"


def gold_triples(example: Example) -> str:
    """Return the triples that MetaQA's type of a question spells, as a person writes them; "" for other questions.

    ``writer_to_movie_to_actor`` of ``[Mads Matthiesen]`` is ``#1 >> written_by >> Mads Matthiesen; #1 >>
    starred_actors >> #2; final answer: #2``: every hop goes from the film to what is said of it, or back. The
    official files have the types of questions in files of their own; without them there are no triples.
    """
    words, topic = example.question_type.split("_to_"), example.meta.get("topic")
    if topic is None or len(words) < 2:
        return ""
    triples: list[Triple] = []
    before = Term(str(topic))
    for number, (here, there) in enumerate(pairwise(words), 1):
        unknown, said = Term(f"#{number}"), here if there == _FILM else there
        # From film to film there is no relation, and of other words none is known.
        if (here == _FILM) == (there == _FILM) or said not in METAQA_RELATIONS:
            return ""
        head, tail = (before, unknown) if here == _FILM else (unknown, before)
        triples.append(Triple(head, METAQA_RELATIONS[said], tail))
        before = unknown
    return str(Chain(tuple(triples), len(triples)))


def require_gold_triples(examples: Iterable[Example]) -> None:
    """Raise UsageError for the first question whose triples are not known."""
    for example in examples:
        if not gold_triples(example):
            raise UsageError(
                f"question {example.id}: its gold triples are not known",
                "MetaQA's JSON lines spell them in 'type', such as writer_to_movie_to_actor",
            )
