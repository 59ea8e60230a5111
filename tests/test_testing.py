"""The conformance checks of clew.testing, over clew's own models and formats, and over ones that are wrong."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clew.core.types import Answer, Hit
from clew.models import create_encoder, create_language_model
from clew.parse.documents.formats import document_formats, format_of_suffix
from clew.testing import (
    SAMPLE_QUESTION,
    ScriptedModel,
    check_encoder,
    check_format,
    check_language_model,
    check_reader,
    check_retriever,
    sample_base,
)
from scripted import ScriptedServer

SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    with sample_base(tmp_path_factory.mktemp("testing")) as opened:
        yield opened


def test_the_encoder_that_comes_with_clew_conforms():
    check_encoder(create_encoder("clew:hops"))


def test_language_models_conform():
    check_language_model(ScriptedModel(lambda prompt: prompt.user.upper()))
    with ScriptedServer(lambda request: "yes") as server:
        check_language_model(create_language_model(server.llm))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [form.suffixes[0] for form in document_formats()])
def test_every_document_format_conforms(suffix):
    path = min(SAMPLES.rglob(f"*{suffix}"), default=None, key=lambda file: file.stat().st_size)
    if path is None:
        pytest.skip(f"no sample ends with {suffix}")
    check_format(format_of_suffix(suffix), path.read_bytes(), path.name)


class Wrong:
    """A retriever and reader that does what ``fault`` says."""

    def __init__(self, base, fault):
        self.hits, self.fault = base.search(SAMPLE_QUESTION, k=3), fault

    def retrieve(self, question, k):
        if question.scope.documents is not None and self.fault != "scope":
            return []
        faults = {
            "many": self.hits * 4,
            "twice": [self.hits[0]] * 2,
            "order": self.hits[::-1],
            "infinite": [replace(self.hits[0], score=float("inf"))],
            "path": [Hit(self.hits[0].node, 1.0, ("other",))],
            "scope": self.hits[:1],
            "k": self.hits[:2],
        }
        return faults[self.fault]

    def read(self, question, hits, trail):
        return Answer("Ada", tuple(hits))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("many", "10 hits were asked for, 12 came"),
        ("twice", "a node comes twice"),
        ("order", "a later hit scores higher"),
        ("infinite", "not finite"),
        ("path", "does not end with"),
        ("scope", "outside the scope"),
        ("k", "1 hit was asked for, 2 came"),
    ],
)
def test_what_is_wrong_with_a_retriever_is_named(base, fault, problem):
    with pytest.raises(AssertionError, match=problem):
        check_retriever(Wrong(base, fault), base)


@pytest.mark.slow
def test_what_is_wrong_with_a_reader_is_named(base):
    with pytest.raises(AssertionError, match="leaves no step"):
        check_reader(Wrong(base, "order"), base)


def test_what_is_wrong_with_an_encoder_is_named():
    class Long(ScriptedModel):
        dimension, objective = 3, ""

        def encode(self, texts, query=False):
            return np.ones((len(texts), 3), dtype=np.float32)

    with pytest.raises(AssertionError, match="not of length 1"):
        check_encoder(Long())
