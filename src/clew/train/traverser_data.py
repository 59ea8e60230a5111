"""What a guide is trained on: steps of questions, as the token ids that it will be asked with and should write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.errors import ModelError, UsageError
from clew.evaluate.examples import shuffle_examples
from clew.evaluate.instructions import GuideStep, guide_steps
from clew.models.local import render_prompt, tokenize_prompts

if TYPE_CHECKING:
    from clew.evaluate.examples import Example
    from clew.prompts import Template

#: The label of a token on which no loss is taken.
IGNORED = -100


@dataclass(frozen=True, slots=True)
class DividedQuestions:
    """Questions, each with its steps: those that are trained on, and those that are held out."""

    trained: list[list[GuideStep]]
    held_out: list[list[GuideStep]]


def divide_questions(examples: Iterable[Example], share: float, limit: int | None, seed: int) -> DividedQuestions:
    """Draw ``limit`` questions (None: all) that have a chain, and hold out a share of them, at least one.

    Which ones are drawn depends on the seed and on their words alone. Raises UsageError for less than two.
    """
    asked = (
        list(dict.fromkeys(step for example in same for step in guide_steps(example)))
        for same in shuffle_examples(examples, seed)
    )
    every = [one for one in asked if one][:limit]
    if len(every) < 2:
        raise UsageError(
            f"the data has {len(every) or 'no'} question{'s' * (len(every) != 1)} with ordered evidence",
            "At least two are needed: one to train on, one to hold out. "
            "hotpotqa, 2wikimultihopqa and musique have the order of their evidence",
        )
    held = min(max(1, round(share * len(every))), len(every) - 1)
    return DividedQuestions(every[held:], every[:held])


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Training rows (``input_ids``, ``attention_mask``, ``labels``), and how many steps were too long for one."""

    rows: list[dict[str, list[int]]]
    too_long: int


class RowBuilder:
    """Makes rows for one model. Labels are the output and the end of text; nothing else has a loss.

    A decoder-only model's row is the prompt followed by the output, an encoder-decoder's has them apart. The
    prompt's ids are those that :class:`clew.models.local.LocalModel` sends. ``max_input`` and ``max_output``
    are numbers of tokens: a longer prompt makes no row, since its question or evidence would be lost; a
    longer output is cut, as the guide cuts it.
    """

    def __init__(
        self, tokenizer: Any, template: Template, decoder_only: bool, limits: tuple[int, int]
    ) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._decoder_only = decoder_only
        self._max_input, self._max_output = limits
        if tokenizer.eos_token_id is None:
            raise ModelError("the model's tokenizer has no end of text", "A guide has to learn where to stop")

    def build_rows(self, chosen: Sequence[GuideStep]) -> TrainingRows:
        """Return the rows of steps, in order. Raises ModelError where the tokenizer cannot continue a prompt."""
        prompts = [self._template.render(question=one.question, evidence=one.evidence) for one in chosen]
        given = tokenize_prompts(self._tokenizer, prompts)["input_ids"]
        outputs = self._outputs([render_prompt(self._tokenizer, one) for one in prompts], given, chosen)
        rows = [
            self._row(list(ids), [*output, self._tokenizer.eos_token_id][: self._max_output])
            for ids, output in zip(given, outputs, strict=True)
            if len(ids) <= self._max_input
        ]
        return TrainingRows(rows, len(chosen) - len(rows))

    def _row(self, given: list[int], output: list[int]) -> dict[str, list[int]]:
        ids, labels = given, output
        if self._decoder_only:
            ids, labels = given + output, [IGNORED] * len(given) + output
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels}

    def _outputs(
        self, texts: Sequence[str], given: Sequence[Sequence[int]], chosen: Sequence[GuideStep]
    ) -> Iterable[list[int]]:
        """Yield the token ids of each output, without the end of text."""
        wanted = [one.next_evidence.strip() for one in chosen]
        if not self._decoder_only:
            yield from self._tokenizer(text_target=wanted, add_special_tokens=False)["input_ids"]
            return
        # As the prompt goes on, not as a text of its own: many tokenizers split a first word in another way.
        chat = bool(self._tokenizer.chat_template)
        whole = [f"{text}{'' if chat else ' '}{output}" for text, output in zip(texts, wanted, strict=True)]
        for ids, begun in zip(
            self._tokenizer(whole, add_special_tokens=not chat)["input_ids"], given, strict=True
        ):
            if ids[: len(begun)] != list(begun):
                raise ModelError(
                    "the model's tokenizer splits the end of a prompt in another way when text follows it",
                    "Its chat template or an added end of text does not fit; use another model",
                )
            yield ids[len(begun) :]
