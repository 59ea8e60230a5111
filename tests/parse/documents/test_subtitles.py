"""Subtitles: what is said, without the numbers, times and tags of cues."""

from __future__ import annotations

import pytest

from clew.core.errors import UnreadableFile
from clew.core.types import PASSAGE, count_left_out
from clew.parse.documents.reader import parse


def paragraphs(text: str, name: str = "a.srt") -> list[str]:
    return [node.text for node in parse(text.encode(), name).nodes if node.kind == PASSAGE]


def test_cues_are_joined_to_sentences() -> None:
    text = (
        "1\n00:00:01,000 --> 00:00:03,000\nThe <i>Gannet</i> was launched\n\n"
        "2\n00:00:03,100 --> 00:00:05,000 X1:10 X2:20\nin 1931\n\n"
        "3\n00:00:05,000 --> 00:00:06,500\n{\\an8}by Ida Holm &amp; Sons.\nShe carried coal.\n"
    )
    expected = ["The Gannet was launched in 1931 by Ida Holm & Sons. She carried coal."]
    assert paragraphs(text) == paragraphs(text.replace("\n", "\r\n")) == expected
    assert paragraphs(text, "talk.txt") == expected  # the content decides
    assert paragraphs(text.replace("\n\n", "\n")) == expected  # without empty lines
    assert parse(b"\xef\xbb\xbf" + text.encode(), "talk.srt").media_type == "text/vtt"


def test_a_pause_or_another_speaker_begins_a_paragraph() -> None:
    text = (
        "1\n00:00:01,000 --> 00:00:03,000\nThe quay was built of oak.\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\nIt lasted.\n\n"
        "3\n00:00:09,000 --> 00:00:11,000\nThen came\n\n"
        "4\n00:00:13,000 --> 00:00:14,000\nthe flood.\n\n"
        "5\n00:00:14,000 --> 00:00:16,000\n- Who saw it?\n- Nobody did.\n\n"
        "6\n00:00:16,000 --> 00:00:18,000\nPILOT: I saw it: at -5 degrees.\n\n"
        "7\n01:00:00,000 --> 01:00:02,000\n1984\n"
    )
    assert paragraphs(text) == [
        "The quay was built of oak. It lasted.",
        "Then came the flood.",
        "Who saw it?",
        "Nobody did.",
        "PILOT: I saw it: at -5 degrees.",
        "1984",
    ]


def test_web_subtitles_name_their_voices() -> None:
    text = (
        "WEBVTT - Harbour talk\nKind: captions\n\nSTYLE\n::cue { color: red }\n\n"
        "NOTE checked twice\nby the editor\n\n"
        "intro\n00:01.000 --> 00:03.000 align:start\n<v.loud Ada Pell>The crane <c.x>lifts</c>\n\n"
        "00:03.000 --> 00:04.000\n<v Ada Pell>nine tons.</v>\n\nNOTE again\n\n"
        "00:04.000 --> 00:05.000\n<v Bo>Ten.</v> <v Ada Pell>Nine.</v>\n\n"
        "8\n00:05.000 --> 00:06.000\n\n"
    )
    document = parse(text.encode(), "a.vtt")
    assert document.text.split("\n\n") == [
        "Ada Pell: The crane lifts nine tons.",
        "Bo: Ten.",
        "Ada Pell: Nine.",
    ]
    assert count_left_out(document.left_out) == {"in remarks": 6}


def test_lines_of_captions_that_roll_are_read_once() -> None:
    text = (
        "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nthe tide\n\n"
        "00:00:02.000 --> 00:00:04.000\nthe tide\nturns<00:00:03.000><c> at</c><00:00:03.500><c> noon</c>\n\n"
        "00:00:04.000 --> 00:00:04.010\nturns at noon\n"
    )
    assert paragraphs(text, "a.vtt") == ["the tide turns at noon"]


def test_a_long_talk_is_divided_between_sentences() -> None:
    cues = [
        f"{n}\n00:{n // 60:02}:{n % 60:02},000 --> 00:{n // 60:02}:{n % 60:02},999\nBuoy {n} is green.\n"
        for n in range(1, 200)
    ]
    found = paragraphs("\n".join(cues))
    assert len(found) > 3 and max(map(len, found)) < 700
    assert " ".join(found) == " ".join(f"Buoy {n} is green." for n in range(1, 200))


def test_a_text_that_only_mentions_times_is_a_text() -> None:
    text = b"1\nThe arrow --> points from 00:00:01,000 on."
    assert parse(text, "a.txt").media_type == "text/plain"
    with pytest.raises(UnreadableFile, match="no text"):
        parse(text, "a.srt")
