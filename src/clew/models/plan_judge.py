"""The judge of plans: how alike a question and a plan in words are, token by token, in a folder that
``clew train plans`` exported, with the fitted arrays of :class:`clew.questions.reading.PlanModel` beside it.

Question and plan are encoded together, so that each token is seen beside the other text; then each token of one is
compared with the nearest of the other (late interaction, Khattab and Zaharia, SIGIR 2020).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import ModelError, NotFound
from clew.models.encoders import (
    MODEL_FILE,
    TOKENIZER_FILE,
    OnnxEncoder,
    embedded_folder,
    open_onnx_session,
    read_tokenizer,
)

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder

#: The fitted arrays, and the tokens of a question and a plan that are read.
ARRAYS_FILE, MAX_TOKENS = "plans.npz", 112
#: The fitted arrays of what reads questions about the structure of documents, which needs no judge.
OUTLINES_FILE = "outlines.npz"
#: The fitted arrays of what ranks sentences of passages.
SENTENCES_FILE = "sentences.npz"
#: The fitted weights of what completes follow-up questions.
FOLLOW_UPS_FILE = "follow-ups.npz"
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class PlanJudge:
    """A judge of plans: ``model.onnx``, ``tokenizer.json`` and ``plans.npz``.

    The inputs of the graph are ``input_ids``, ``attention_mask`` and ``token_type_ids``, int64 (texts, tokens); the
    output is ``states``, float32 (texts, tokens, dimension). ``encoder`` is the one that the arrays were fitted with.
    Raises NotFound, ModelError.
    """

    def __init__(self, folder: Path | str, encoder: Encoder) -> None:
        self.folder, self.encoder = Path(folder), encoder
        for name in (MODEL_FILE, TOKENIZER_FILE, ARRAYS_FILE):
            if not (self.folder / name).is_file():
                raise NotFound(
                    f"no judge of plans in {self.folder}: {name} missing", "See: clew train plans --help"
                )
        self._lock = threading.Lock()

    @cached_property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """The fitted arrays, by name."""
        return self._read(ARRAYS_FILE)

    @cached_property
    def outlines(self) -> Mapping[str, NDArray[Any]]:
        """The fitted arrays of :class:`clew.questions.outline_reading.OutlineModel`, by name."""
        return self._read(OUTLINES_FILE)

    @cached_property
    def sentences(self) -> Mapping[str, NDArray[Any]]:
        """The fitted arrays of :class:`clew.questions.sentences.SentenceModel`, by name."""
        return self._read(SENTENCES_FILE)

    @cached_property
    def follow_ups(self) -> Mapping[str, NDArray[Any]]:
        """The fitted weights of :class:`clew.questions.follow_up.FollowUpReader`, and the names of their features."""
        return self._read(FOLLOW_UPS_FILE)

    def _read(self, name: str) -> Mapping[str, NDArray[Any]]:
        try:
            with np.load(self.folder / name, allow_pickle=False) as stored:
                return dict(stored)
        except (OSError, ValueError) as error:
            raise ModelError(f"damaged {self.folder / name}: {error}", "Train it again") from error

    def compare(self, question: str, sentences: Sequence[str]) -> Floats:
        """Return how alike a question and each plan in words are, (sentences, 3): as wholes, the question's tokens in
        the plan, and the plan's in the question."""
        return np.array([self._compare(question, text) for text in sentences]).reshape(-1, 3)

    def _compare(self, question: str, sentence: str) -> tuple[float, float, float]:
        """Return the likenesses of one plan. One pair a run: those of a batch would share the scales of 8 bits, and a
        likeness would depend on its neighbours."""
        with self._lock:
            tokenizer, session = self._session
        encoded = tokenizer.encode(question, sentence)
        # The encoder was trained on single texts, all of whose tokens are of the first type.
        numbers = (encoded.ids, encoded.attention_mask, [0] * len(encoded.ids))
        feed = {name: np.array([own], np.int64) for name, own in zip(_INPUTS, numbers, strict=True)}
        states: Floats = session.run(["states"], feed)[0][0].astype(np.float64)
        of_plan = np.array(encoded.type_ids) == 1
        return compare_states(states[~of_plan], states[of_plan])

    @cached_property
    def _session(self) -> tuple[Any, Any]:
        tokenizer = read_tokenizer(self.folder / TOKENIZER_FILE)
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        return tokenizer, open_onnx_session(self.folder / MODEL_FILE)


def compare_states(first: Floats, second: Floats) -> tuple[float, float, float]:
    """Return the cosine of the means of two texts' states, and the mean over the tokens of each of the highest cosine
    with a token of the other."""
    means = [_normalise(states.mean(axis=0)) for states in (first, second)]
    likeness = _normalise(first) @ _normalise(second).T
    return float(means[0] @ means[1]), float(likeness.max(axis=1).mean()), float(likeness.max(axis=0).mean())


def _normalise(vectors: Floats) -> Floats:
    unit: Floats = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit


@cache
def create_plan_judge() -> PlanJudge:
    """Return the judge that comes with clew; the same one each time."""
    return PlanJudge(embedded_folder("plans", ARRAYS_FILE), OnnxEncoder(embedded_folder("hops")))
