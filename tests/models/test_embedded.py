"""The encoder that comes with clew."""

import json

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.models import create_encoder
from clew.models.encoders import embedded_folder


@pytest.fixture(scope="module")
def hops():
    return create_encoder("clew:hops")


def test_it_is_small_documented_and_says_what_it_is_for(hops):
    files = {path.name: path for path in embedded_folder("hops").iterdir()}
    assert files.keys() == {
        "model.onnx", "tokenizer.json", "clew-encoder.json", "clew-training.json", "MODEL_CARD.md"
    }  # fmt: skip
    assert sum(path.stat().st_size for path in files.values()) < 50 * 2**20
    record = json.loads(files["clew-training.json"].read_text())
    assert hops.objective == record["settings"]["objective"] == "mdr"
    card = files["MODEL_CARD.md"].read_text()
    for item in ("all-MiniLM-L6-v2", "Apache-2.0", "CC BY-SA 4.0", "seed 0", "English", hops.name):
        assert item in card, item


def test_a_question_with_a_passage_leads_on_from_it(hops):
    question = "Where was the architect of the Dunmere lighthouse born?"
    first = "Dunmere lighthouse: The lighthouse at Dunmere was designed by Harriet Vane in 1871."
    passages = [
        "Harriet Vane: Harriet Vane was an engineer, born in Corran in 1838.",
        "Corran lighthouse: The lighthouse at Corran was lit in 1902.",
        "Architect: An architect designs buildings.",
        first,
    ]
    vectors = hops.encode(passages)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    alone = vectors @ hops.encode([question], query=True)[0]
    after = vectors[:3] @ hops.encode([f"{question} {first}"], query=True)[0]
    assert int(np.argmax(alone)) == 3 and int(np.argmax(after)) == 0


def test_a_name_that_does_not_come_with_clew_is_refused():
    with pytest.raises(UsageError, match="Did you mean 'hops'"):
        create_encoder("clew:hop")
