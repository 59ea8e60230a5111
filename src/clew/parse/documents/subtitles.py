"""Subtitles (SubRip, WebVTT): what is said, in sentences and paragraphs, without numbers, times and tags of cues."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import zip_longest

from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import Block, LeftOut, Note, Paragraph, SourceFile, build_document
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.encoding import decode_text
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.limits import LIMITS, Limits

PARSER = "subtitles/1"
MEDIA_TYPE = "text/vtt"

_TIME = r"(?:\d+:)?\d\d:\d\d[.,]\d{1,3}"
_CUE = re.compile(rf"[ \t]*({_TIME})[ \t]*-->[ \t]*({_TIME})(?:[ \t].*)?")
_START = re.compile(rf"\s*(?:WEBVTT\b|\d+[ \t\r]*\n[ \t]*{_TIME}[ \t]*-->)".encode())
#: Remarks and styles of WebVTT, which stand between cues.
_ASIDE = re.compile(r"\n[ \t]*\n(NOTE|STYLE|REGION)\b(.*?)(?=\n[ \t]*\n|\Z)", re.S)
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}")
#: In captions that roll, each line comes twice, the first time with the time of each word.
_ROLLING = re.compile(r"<(?:\d+:)?\d\d:\d\d\.\d{3}>")
_OTHER_SPEAKER = re.compile(r"(?:[-–—]|>>)(?: |(?=[^\W\d]))")
_NAME_LENGTH = 30
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
#: Seconds without words that end a paragraph: after a sentence, and anywhere.
_PAUSE, _LONG_PAUSE = 1.5, 4.0
#: A paragraph of this many characters ends with its sentence; one of so many anywhere: not all have full stops.
_PARAGRAPH_LENGTH, _MAX_PARAGRAPH_LENGTH = 600, 2_400


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse a file of subtitles. Raises UnreadableFile."""
    text, remarks = decode_text(data)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document([*map(Note, remarks), *_blocks(text)], source)


FORMAT = DocumentFormat(
    MEDIA_TYPE,
    "subtitles",
    (".srt", ".vtt"),
    parse,
    matches=lambda start: _START.match(start) is not None,
    parser=PARSER,
)


def _blocks(text: str) -> Iterator[Block]:
    """Yield the paragraphs: cues joined until a pause, another speaker, or the end of a sentence where it is long."""
    yield from (LeftOut("in remarks", remark) for kind, remark in _ASIDE.findall(text) if kind == "NOTE")
    spoken, speaker, last_end, last_words = "", "", 0.0, ""
    is_rolling = _ROLLING.search(text) is not None
    for start, end, lines in _cues(text):
        pause, last_end = start - last_end, end
        for voice, words in lines:
            if not words or (is_rolling and words == last_words):
                continue
            last_words = words
            if (voice is not None and (not voice or voice != speaker)) or _ends_paragraph(spoken, pause):
                yield Paragraph(spoken)
                spoken = ""
            speaker = speaker if voice is None else voice
            spoken = f"{spoken} {words}" if spoken else f"{speaker}: {words}" if speaker else words
            pause = 0.0
    yield Paragraph(spoken)


def _ends_paragraph(spoken: str, pause: float) -> bool:
    """Return whether a paragraph ends with what was said so far, before a pause of some seconds."""
    is_sentence = _SENTENCE_END.search(spoken[-20:]) is not None
    if pause >= _LONG_PAUSE or len(spoken) > _MAX_PARAGRAPH_LENGTH:
        return True
    return is_sentence and (pause >= _PAUSE or len(spoken) > _PARAGRAPH_LENGTH)


def _cues(text: str) -> Iterator[tuple[float, float, list[tuple[str | None, str]]]]:
    """Yield start and end of each cue in seconds, and its lines, as :func:`_read_line` does."""
    lines = text.split("\n")
    cues = [(number, cue) for number, line in enumerate(lines) if (cue := _CUE.fullmatch(line))]
    ends = [number for number, _ in cues[1:]]
    for (number, cue), end in zip_longest(cues, ends):
        body = lines[number + 1 : end]
        # The number or name of the next cue stands right above its time, below an empty line.
        if end and (body[-1].strip().isdigit() or not "".join(body[-2:-1]).strip()):
            body.pop()
        shown = _ASIDE.sub("", "\n" + "\n".join(body))
        pieces = (piece for line in shown.split("\n") for piece in re.split(r"(?=<v[.\s])", line))
        yield _seconds(cue[1]), _seconds(cue[2]), list(map(_read_line, pieces))


def _read_line(line: str) -> tuple[str | None, str]:
    """Return who says a line (None: who spoke before; "": somebody else, with no voice stated), and its words."""
    voice = _VOICE.search(line)
    words = " ".join(html.unescape(_TAG.sub("", line)).split())
    if voice:
        return " ".join(html.unescape(voice[1]).split()), words
    if dash := _OTHER_SPEAKER.match(words):
        return "", words[dash.end() :]
    name, colon, _ = words.partition(": ")
    return "" if colon and len(name) <= _NAME_LENGTH and name.isupper() else None, words


def _seconds(time: str) -> float:
    seconds = 0.0
    for part in time.replace(",", ".").split(":"):
        seconds = seconds * 60 + float(part)
    return seconds
