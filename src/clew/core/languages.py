"""Languages: which one a text is written in, its function words, and the stems of its words.

A language is a code of ISO 639-1 (``de``, ``zh``); "" stands for one that is not known. The writing system decides
first. Where several languages share one (Latin, Cyrillic, Arabic), the function words of the text decide: they are a
third of the words of any running text, and few are shared. What has neither (a table of numbers, a list of names) has
no language, and is indexed as English is.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import snowballstemmer

if TYPE_CHECKING:
    from clew.core.protocols import Snapshot

ENGLISH = "en"


class _Language(NamedTuple):
    """A row of ``languages.tsv``. ``stemmer`` names its Snowball stemmer: without one whole words are indexed.
    Function words are articles, pronouns, prepositions, conjunctions, auxiliaries and question words."""

    code: str
    name: str
    script: str
    stemmer: str
    function_words: str


_TABLE = Path(__file__).with_name("languages.tsv").read_text(encoding="utf-8")
_LANGUAGES = {line.split("\t")[0]: _Language(*line.split("\t")) for line in _TABLE.splitlines()[1:]}
FUNCTION_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(language.function_words.casefold().split()) for code, language in _LANGUAGES.items()
}
"""Function words by language, casefolded."""

#: The letters of each writing system. Function words decide between the languages of one.
_LETTERS = {
    name: re.compile(f"[{letters}]")
    for name, letters in (
        ("kana", "\u3040-\u30ff"),
        ("han", "\u3400-\u4dbf\u4e00-\u9fff"),
        ("hangul", "\uac00-\ud7af\u1100-\u11ff"),
        ("thai", "\u0e00-\u0e7f"),
        ("arabic", "\u0600-\u06ff\u0750-\u077f"),
        ("hebrew", "\u0590-\u05ff"),
        ("greek", "\u0370-\u03ff"),
        ("cyrillic", "\u0400-\u04ff"),
        ("devanagari", "\u0900-\u097f"),
        ("latin", "a-zA-Z\u00c0-\u024f\u1e00-\u1eff"),
    )
}
_WORD = re.compile(r"[^\W\d_]+")
_NO_WORD = re.compile(r"[\d_]")
#: The parts of a text that are looked at: its beginning may be a cover, its end a list of addresses.
_PARTS, _PART_LENGTH = 4, 3_000
#: A language other than English needs so many function words, and this share of all words; a few foreign names among
#: English words must not make a text foreign.
_MIN_HITS, _MIN_SHARE = 4, 0.12
_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxz")
#: ... and so many times the weight of English.
_ADVANTAGE = 1.5
#: The share of kana from which Han characters are Japanese.
_KANA_SHARE = 0.05


def language_name(code: str) -> str:
    """Return the English name of a language.

    >>> language_name("de"), language_name("")
    ('German', 'unknown')
    """
    return _LANGUAGES[code].name if code in _LANGUAGES else code or "unknown"


def detect_language(text: str) -> str:
    """Return the language of a text, "" where it cannot be told.

    Of a long text four parts are looked at, which are evenly spread. A text in Latin letters counts as another
    language than English only where its function words say so clearly.

    >>> detect_language("Der Fluss entspringt in den Bergen und mündet nach 300 Kilometern in das Meer.")
    'de'
    >>> detect_language("多瑙河发源于黑森林"), detect_language("12.5 | 13.1 | 14.0")
    ('zh', '')
    """
    sample = _sample(text)
    counts = {name: len(pattern.findall(sample)) for name, pattern in _LETTERS.items()}
    if counts["kana"] > _KANA_SHARE * (counts["kana"] + counts["han"]):
        counts["kana"] += counts.pop("han")
    # A character of Han is about a word: a text with as many of them as of Latin words is Chinese.
    script = max(counts, key=lambda name: counts[name] * (3 if name in {"han", "kana", "hangul"} else 1))
    if not counts[script]:
        return ""
    languages = [code for code, language in _LANGUAGES.items() if language.script == script]
    if len(languages) == 1:
        return languages[0]
    # A consonant alone is an initial that a table repeats ("M. Quint"), seldom the French "m’".
    words = Counter(word for word in _WORD.findall(sample.casefold()) if word not in _CONSONANTS)
    weights = weigh_languages(words, languages)
    best = max(languages, key=lambda code: weights[code])
    if script != "latin":
        return best if weights[best] else languages[0]
    hits = sum(count for word, count in words.items() if word in FUNCTION_WORDS[best])
    if best == ENGLISH:
        return ENGLISH if hits else ""
    is_clear = hits >= max(_MIN_HITS, _MIN_SHARE * words.total())
    is_clear = is_clear and weights[best] > _ADVANTAGE * weights[ENGLISH]
    if is_clear:
        return best
    return ENGLISH if weights[ENGLISH] else ""


def weigh_languages(words: Counter[str], languages: Sequence[str]) -> dict[str, float]:
    """Return the weight of each language for casefolded words: a function word of n languages adds 1/n to each."""
    weights = dict.fromkeys(languages, 0.0)
    for word, count in words.items():
        having = [code for code in languages if word in FUNCTION_WORDS[code]]
        for code in having:
            weights[code] += count / len(having)
    return weights


def question_language(question: str, languages: Sequence[str]) -> str:
    """Return which of ``languages`` a question is written in: the first of them where its words do not tell.

    >>> question_language("Wer hat das gebaut?", ["en", "de"]), question_language("Revenue 2023", ["en", "de"])
    ('de', 'en')
    """
    if len(languages) < 2:
        return languages[0] if languages else ENGLISH
    scripts = {
        code: len(_LETTERS[language.script].findall(question))
        for code, language in _LANGUAGES.items()
        if code in languages
    }
    most = max(scripts.values(), default=0)
    candidates = [code for code in languages if most and scripts.get(code, 0) == most] or list(languages)
    words = Counter(_WORD.findall(question.casefold()))
    weights = weigh_languages(words, [code for code in candidates if code in FUNCTION_WORDS])
    return max(candidates, key=lambda code: weights.get(code, 0.0))


def document_languages(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the languages of the documents, those with most passages first; computed once per generation.

    Documents whose language is not known count as English: they are indexed so.
    """

    def count() -> tuple[str, ...]:
        sizes: Counter[str] = Counter()
        for document in snapshot.documents():
            sizes[document.language or ENGLISH] += document.nodes
        return tuple(sorted(sizes, key=lambda code: (-sizes[code], code))) or (ENGLISH,)

    languages: tuple[str, ...] = snapshot.memoize("documents/languages", count, documents_only=True)
    return languages


def foreign_language(question: str, snapshot: Snapshot) -> str:
    """Return the language of a question that is not in English, "" for one that is or may be.

    A short question in Latin letters is taken for another language only where documents are written in that.
    """
    languages = document_languages(snapshot)
    if languages == (ENGLISH,):
        language = detect_language(question)
    else:
        language = question_language(question, list(dict.fromkeys((*languages, ENGLISH))))
    return "" if language == ENGLISH else language


def _sample(text: str) -> str:
    if len(text) <= _PARTS * _PART_LENGTH:
        return text
    step = (len(text) - _PART_LENGTH) // (_PARTS - 1)
    return "\n".join(text[part * step : part * step + _PART_LENGTH] for part in range(_PARTS))


@cache
def _stemmer(language: str) -> snowballstemmer.stemmer | None:
    name = _LANGUAGES[language].stemmer if language in _LANGUAGES else ""
    return snowballstemmer.stemmer(name) if name else None


# A stemmer stores its current word in itself: a second thread would spoil both stems, and stems are cached.
_stemmer_lock = threading.Lock()


@lru_cache(maxsize=1 << 17)
def stem(word: str, language: str = ENGLISH) -> str:
    """Return the Snowball stem of a casefolded word. A word with digits is returned unchanged, and so is an English
    word outside ASCII and a word of a language without a stemmer.

    >>> stem("häuser", "de"), stem("häuser"), stem("houses")
    ('haus', 'häuser', 'hous')
    """
    # Vowel signs of Indian scripts are no letters: words of other languages are those without digits.
    is_word = word.isascii() and word.isalpha() if language == ENGLISH else not _NO_WORD.search(word)
    if not is_word:
        return word
    stemmer = _stemmer(language)
    if stemmer is None:
        return word
    with _stemmer_lock:
        return str(stemmer.stemWord(word))
