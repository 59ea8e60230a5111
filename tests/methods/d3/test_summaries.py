"""Summaries: extractive ones, those of a model, their faithfulness, and how they are kept."""

import itertools

import numpy as np
import pytest

from clew.core.errors import StoreError, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.trail import TrailRecorder
from clew.methods.d3.outline import Outlines
from clew.methods.d3.summaries import Summaries, find_invented, section_texts
from clew.methods.d3.summarisers import (
    BREVITY,
    ExtractiveSummariser,
    ModelSummariser,
    SectionText,
    select_covering,
)
from clew.models import create_language_model
from clew.models.costs import count_tokens
from clew.store.store import Store
from drill_documents import NOTES, REPORT, SUBJECTS
from kb_documents import HashEncoder, document, location
from scripted import ScriptedServer

LONG = SectionText("Report > History", SUBJECTS)


def sections_of(snapshot, encoder=None):
    outlines = Outlines(snapshot, encoder)
    return [section for known in snapshot.documents() for section in outlines.of(known.key).sections]


@pytest.mark.parametrize("words", [8, 16, 32, 64])
@pytest.mark.parametrize("encoder", [None, HashEncoder()])
def test_extracts_are_verbatim_in_order_and_within_the_words(words, encoder):
    vectors = encoder.encode(SUBJECTS) if encoder else None
    (summary,) = ExtractiveSummariser(words, encoder).summarise([SectionText("", SUBJECTS, vectors)])
    assert 0 < len(summary.split()) <= words
    whole = LONG.text.replace("\n", " ")
    places = [whole.index(piece) for piece in summary.replace(". ", ".|").split("|")]
    assert places == sorted(places)
    assert not find_invented(summary, whole)


def test_an_extract_covers_every_subject():
    (summary,) = ExtractiveSummariser(48).summarise([LONG])
    assert all(word in summary.casefold() for word in ("hive", "volcano", "violin"))


def test_a_short_section_is_its_own_summary_and_encodes_nothing():
    encoder = HashEncoder()
    assert ExtractiveSummariser(8, encoder).summarise([SectionText("", ("Two words.", "Two more."))]) == [
        "Two words. Two more."
    ]
    assert encoder.encoded == []


def test_few_sentences_are_encoded_however_long_the_section():
    encoder = HashEncoder()
    texts = tuple(f"Sentence {n} says that. It also says this {n}." for n in range(300))
    ExtractiveSummariser(20, encoder).summarise([SectionText("", texts, HashEncoder().encode(texts))])
    assert 0 < len(encoder.encoded) <= 36


def test_a_sentence_that_is_too_long_gives_its_start():
    (summary,) = ExtractiveSummariser(5).summarise(
        [SectionText("", ("one two three four five six seven eight",))]
    )
    assert summary == "one two three four five"


@pytest.mark.parametrize("seed", range(10))
def test_each_choice_adds_most_for_its_length(seed):
    rng = np.random.default_rng(seed)
    similarity, weights = rng.uniform(-1, 1, (6, 5)), rng.uniform(1, 9, 5)
    costs, budget = rng.integers(1, 5, 6).astype(float), 8
    chosen, left, covered = [], budget, np.zeros(5)
    while True:
        gains = {
            n: float((np.maximum(similarity[n], covered) - covered) @ weights) / costs[n] ** BREVITY
            for n in range(6)
            if n not in chosen and costs[n] <= left
        }
        gains = {n: gain for n, gain in gains.items() if gain > 1e-6}
        if not gains:
            break
        best = max(gains, key=lambda n: (gains[n], -n))
        chosen.append(best)
        left -= costs[best]
        covered = np.maximum(covered, similarity[best])
    assert select_covering(similarity, weights, costs, budget) == chosen


SOURCE = (
    "Segment results\nIn 2023 revenue of Osk Brothers rose 4.5% to $1,577 million. Maria Hale leads the "
    "company in Tolland. The board met twice."
)


@pytest.mark.parametrize(
    ("summary", "wrong"),
    [
        ("Revenue rose 4.5% to $1577 million in 2023.", []),
        ("Osk Brothers, led by Maria Hale, met twice in Tolland.", []),
        ("However, the section says that Hale leads it.", []),
        ("The Board met. Segment Results are given.", []),
        ("Revenue rose 5.4% to $1,577 million.", ["5.4%"]),
        ("Revenue was 1.6 billion in 2024.", ["1.6", "2024"]),
        ("John Brandt leads Osk Brothers.", ["John Brandt"]),
        ("Amazon grew.", ["Amazon"]),
        ("The company moved to Osterby.", ["Osterby"]),
    ],
)
def test_numbers_and_names_must_stand_in_the_section(summary, wrong):
    assert find_invented(summary, SOURCE) == wrong


def model_summariser(server, words=40, prompt="drill-summarise"):
    return ModelSummariser(create_language_model(server.llm), load_prompt(prompt), words, 3000, count_tokens)


def test_a_model_writes_summaries_and_what_it_invents_is_replaced(snapshot_of):
    snapshot = snapshot_of(REPORT)
    sections = sections_of(snapshot)

    def reply(request):
        name = request.user.split("Section: ")[1].split("\n")[0]
        if name == "History":
            return "Osk Brothers built 17 lighters."  # 17 is nowhere
        return "The Tolland Coal Company owned them; Maria Hale led it." if name.endswith("Owners") else ""

    with ScriptedServer(reply) as server:
        summaries = Summaries(snapshot, ExtractiveSummariser(12), model_summariser(server))
        assert summaries.make(sections) == len(server.requests) > 0
        known = summaries.available(sections)
    by_name = {section.name: known[section.id] for section in sections}
    assert by_name["History"].invented == ("17",)
    (extract,) = ExtractiveSummariser(12).summarise(
        section_texts(snapshot, [section for section in sections if section.name == "History"])
    )
    assert by_name["History"].text == extract
    assert by_name["History > Owners"].text == "The Tolland Coal Company owned them; Maria Hale led it."
    assert by_name["Fleet"].invented == ("(nothing was written)",)
    assert "Maria Hale" in by_name["End > Owners"].invented
    assert "drill-summarise.v1" in summaries.name and "words=40" in summaries.name


def test_no_model_is_asked_for_summaries_without_being_told(snapshot_of):
    snapshot = snapshot_of(REPORT)
    sections = sections_of(snapshot)
    trail = TrailRecorder()
    with ScriptedServer() as server:
        result = Summaries(snapshot, ExtractiveSummariser(12), model_summariser(server)).of(sections, trail)
        assert server.requests == []
    assert result == Summaries(snapshot, ExtractiveSummariser(12)).of(sections)
    assert [step.detail.get("instead") for step in trail.steps if "instead" in step.detail] == [
        "extractive(words=12)"
    ]


def test_summaries_are_made_once(snapshot_of):
    snapshot = snapshot_of(REPORT, NOTES)
    sections = sections_of(snapshot)
    trail = TrailRecorder()
    first = Summaries(snapshot, ExtractiveSummariser(8)).of(sections, trail)
    second = Summaries(snapshot, ExtractiveSummariser(8)).of(sections, trail)
    assert first == second
    assert [step.name for step in trail.steps] == ["summarise"]
    assert Summaries(snapshot, ExtractiveSummariser(0)).of(sections) == [""] * len(sections)


def test_a_stopped_run_continues_where_it_was(base, snapshot_of):
    snapshot = snapshot_of(REPORT, NOTES)
    sections = sections_of(snapshot)

    class Killed(ExtractiveSummariser):
        def summarise(self, texts):
            if next(batches) == 2:
                raise KeyboardInterrupt
            return super().summarise(texts)

    batches = itertools.count()
    with pytest.raises(KeyboardInterrupt):
        Summaries(snapshot, Killed(8), batch_size=2).make(sections)
    waiting = len(sections) - len(Summaries(snapshot, ExtractiveSummariser(8)).available(sections))
    assert 0 < waiting < len(sections)
    assert Summaries(base.snapshot(), Killed(8), batch_size=2).make(sections) == waiting
    assert Summaries(snapshot, Killed(8), batch_size=2).make(sections) == 0


def test_keeping_summaries_is_no_change_of_the_base(base, snapshot_of):
    snapshot = snapshot_of(REPORT, NOTES)
    before = base.digest(), list(base.dump()), base.info().generation
    Summaries(snapshot, ExtractiveSummariser(8)).make(sections_of(snapshot))
    assert (base.digest(), list(base.dump()), base.info().generation) == before
    assert base.snapshot() is snapshot  # views stay as they are
    assert base.info().derived["extractive(words=8)"] > 0


def test_a_removed_document_leaves_no_summary_behind(base, tmp_path):
    parsed = document(1)
    base.put_document(parsed, location("/d/1.txt"))
    base.put_document(document(2), location("/d/2.txt"))
    snapshot = base.snapshot()
    secret = b"Quillfeather"
    snapshot.write_derived("test(words=1)", parsed.key, {"1": secret, "2": b"x"})
    snapshot.write_derived("test(words=1)", document(2).key, {"1": b"stays"})
    assert any(secret in path.read_bytes() for path in base.path.iterdir() if path.is_file())
    base.remove(["/d/1.txt"])
    assert base.info().derived == {"test(words=1)": 1}
    base.close()
    left = [path for path in base.path.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert left == []
    with Store.open(base.path) as again:
        again.put_document(parsed, location("/d/1.txt"))
        assert again.snapshot().read_derived("test(words=1)", parsed.key) == {}


def test_what_is_made_of_a_document_that_has_gone_is_not_kept(base):
    parsed = document(1)
    base.put_document(parsed, location("/d/1.txt"))
    snapshot = base.snapshot()
    base.remove(["/d/1.txt"])
    assert snapshot.write_derived("test", parsed.key, {"1": b"late"}) is False
    assert base.info().derived == {}


def test_a_base_that_cannot_be_written_to_can_be_asked(snapshot_of, monkeypatch):
    snapshot = snapshot_of(REPORT)
    trail = TrailRecorder()

    def refuse(*_):
        raise StoreError("the folder is read-only")

    monkeypatch.setattr(type(snapshot), "write_derived", refuse)
    sections = sections_of(snapshot)
    assert all(Summaries(snapshot, ExtractiveSummariser(8)).of(sections, trail))
    assert trail.steps[0].detail["not kept"] == "the folder is read-only"


def test_a_table_is_told_by_its_caption_and_rows(snapshot_of):
    snapshot = snapshot_of(REPORT)
    (table,) = [item for item in sections_of(snapshot) if item.kind == "table"]
    (text,) = section_texts(snapshot, [table])
    assert text.texts == ("Ships of the line: Petrel; Gannet; Auk",)


def test_a_summariser_that_is_not_known_is_named():
    from clew.core.component import Resources
    from clew.methods.d3.summaries import open_summaries

    with pytest.raises(UsageError, match=r"no summariser named 'extractiv'.*extractive"):
        open_summaries(Resources(None, None, None), "extractiv", 64)


@pytest.mark.slow
@pytest.mark.parametrize("encoded", [False, True])
def test_a_base_can_be_drilled_before_and_after_its_passages_are_encoded(base, encoded):
    from clew.core.types import Question
    from clew.knowledge_base import registry

    encoder = HashEncoder()
    for number in range(3):
        base.put_document(document(number), location(f"/d/{number}.txt"))
    if encoded:
        base.encode(encoder)
    drill = registry.build_retriever("drill(words=8)", base, encoder=encoder)
    hits = drill.retrieve(Question("Oskell ferry 1929"), 5)
    assert len(hits) == 5
    # The second time, with everything kept, it is the same.
    again = registry.build_retriever("drill(words=8)", base, encoder=encoder)
    assert again.retrieve(Question("Oskell ferry 1929"), 5) == hits
