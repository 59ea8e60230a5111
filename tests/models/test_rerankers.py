"""MonoT5 and cross-encoders: scores against what the model says of one pair at a time, unpadded and by hand."""

import numpy as np
import pytest

from clew.core.errors import MissingExtra, ModelError, UsageError
from clew.models.rerankers import CrossEncoder, MonoT5, create_reranker

# Third-party warnings of the loading code are not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = [
    "the yard built the lighter",
    "coal",
    "the weather was fair all week and the ferry ran on the river each day",
    "lighters carry coal on the river",
]
QUESTION = "who built the lighter"
WORDS = sorted({*" ".join([QUESTION, *TEXTS]).split(), "Query:", "Document:", "Relevant:", "true", "false"})


def torch():
    return pytest.importorskip("torch", reason="needs the extra local")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch()
    pytest.importorskip("transformers", reason="needs the extra local")
    import tiny_models

    known = tiny_models.tokenizer(WORDS)
    return tiny_models.save_model(tmp_path_factory.mktemp("monot5"), tiny_models.t5(known, spread=1.0), known)


def by_hand(folder, text, window=512):
    """Softmax over "true" and "false" at the first step, of one pair without padding."""
    import transformers

    known = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    ids = known(f"Query: {QUESTION} Document: {text} Relevant:", add_special_tokens=False)["input_ids"]
    ids = [*ids[: min(len(ids) - 1, window - 2)], ids[-1], known.eos_token_id]
    with torch().inference_mode():
        logits = (
            model(
                input_ids=torch().tensor([ids]),
                decoder_input_ids=torch().tensor([[model.config.decoder_start_token_id]]),
            )
            .logits[0, 0]
            .double()
        )
    true, false = (logits[known.convert_tokens_to_ids(word)].item() for word in ("true", "false"))
    return np.exp(true) / (np.exp(true) + np.exp(false))


@pytest.mark.parametrize("batch", [1, 3, 16])
def test_monot5_says_how_surely_it_says_true(folder, batch):
    scores = MonoT5(str(folder), batch_size=batch).score(QUESTION, TEXTS)
    assert scores.dtype == np.float64 and scores.shape == (4,)
    assert np.allclose(scores, [by_hand(folder, text) for text in TEXTS], atol=1e-5)
    assert len(set(scores.round(6))) == 4


def test_monot5_cuts_the_end_of_a_text_and_not_the_word_it_answers_to(folder):
    scores = MonoT5(str(folder), window=14).score(QUESTION, TEXTS)
    assert np.allclose(scores, [by_hand(folder, text, 14) for text in TEXTS], atol=1e-5)
    # What lies beyond the window makes no difference.
    assert np.allclose(
        MonoT5(str(folder), window=14).score(QUESTION, [TEXTS[2] + " coal"])[0], scores[2], atol=1e-6
    )


def test_a_model_of_another_kind_is_refused(folder, tmp_path):
    import tiny_models

    words = [word for word in WORDS if word != "true"]
    known = tiny_models.tokenizer(words)
    tiny_models.save_model(tmp_path / "mute", tiny_models.t5(known), known)
    with pytest.raises(ModelError, match="no tokens 'true'"):
        MonoT5(str(tmp_path / "mute")).score(QUESTION, TEXTS)
    tiny_models.save_model(tmp_path / "llama", tiny_models.llama(known), known)
    with pytest.raises(ModelError, match="no sequence-to-sequence"):
        MonoT5(str(tmp_path / "llama")).score(QUESTION, TEXTS)
    with pytest.raises(ModelError, match="cannot load"):
        MonoT5(str(tmp_path / "nowhere")).score(QUESTION, TEXTS)


def test_a_cross_encoder_reads_both_together(tmp_path):
    torch()
    pytest.importorskip("sentence_transformers", reason="needs the extra local")
    import transformers

    import tiny_models

    folder = tiny_models.cross_encoder(tmp_path / "model", WORDS)
    tokens = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    scores = CrossEncoder(str(folder), batch_size=3).score(QUESTION, TEXTS)
    for text, score in zip(TEXTS, scores, strict=True):
        with torch().inference_mode():
            logit = model(**tokens(QUESTION, text, return_tensors="pt")).logits[0, 0].double()
        assert min(abs(score - logit.item()), abs(score - logit.sigmoid().item())) < 1e-5
    assert len(set(scores.round(9))) == 4


def test_names():
    assert create_reranker("monot5:some/model").name == "monot5:some/model"
    assert create_reranker("cross-encoder:./folder").name == "cross-encoder:./folder"
    with pytest.raises(UsageError, match="monot5"):
        create_reranker("mono:some/model")


def test_what_is_missing_is_said_where_torch_is_missing():
    try:
        import torch  # noqa: F401
    except ImportError:
        for name in ("monot5:x/y", "cross-encoder:x/y"):
            with pytest.raises(MissingExtra, match="local"):
                create_reranker(name).score(QUESTION, TEXTS)
    else:
        pytest.skip("torch is there")
