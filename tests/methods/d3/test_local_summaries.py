"""Summaries by a model of bart-large-cnn's kind, with random weights. Needs the extra local."""

import pytest

pytest.importorskip("torch", reason="needs the extra local")
pytest.importorskip("transformers", reason="needs the extra local")

from clew.knowledge_base.registry import open_resources
from clew.methods.d3.outline import Outlines
from clew.methods.d3.summaries import open_summaries, section_texts
from clew.methods.d3.summarisers import ExtractiveSummariser
from drill_documents import NOTES
from tiny_models import bart, save_model, tokenizer


def test_a_sequence_to_sequence_model_summarises_and_is_checked(tmp_path, base, snapshot_of):
    snapshot = snapshot_of(NOTES)
    sections = Outlines(snapshot).of(snapshot.documents()[0].key).sections
    words = tokenizer(["bridge opened Osterby 1999 granite arches barges keeper hand"])
    folder = save_model(tmp_path / "bart", bart(words), words)
    result = open_summaries(open_resources(base), f"local:{folder}", 8)
    assert result.name == f"written(words=8, llm=local:{folder}, prompt=drill-text.v1)"
    assert result.make(sections) == len(sections) == 2
    extracts = ExtractiveSummariser(8).summarise(section_texts(snapshot, sections))
    for section, extract in zip(sections, extracts, strict=True):
        summary = result.available(sections)[section.id]
        assert summary.text
        # Random weights say what they like: what is not of the section is replaced.
        assert (summary.text == extract) == bool(summary.invented)
        assert "Osterby" not in summary.text and "1999" not in summary.text
