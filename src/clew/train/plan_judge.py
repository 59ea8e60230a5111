"""Training of the judge of plans: an encoder that compares the tokens of a question with those of a plan in words."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.models.encoders import MODEL_FILE, TOKENIZER_FILE
from clew.models.plan_judge import MAX_TOKENS
from clew.train.export import convert_weights
from clew.train.gradient_steps import GradientSteps, choose_device, reduce_precision
from clew.train.plan_data import PlanExample

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """The settings of a training: ``most`` questions of a domain, ``most_untyped`` without its types, ``most_public``
    of a public set, ``most_tables`` of a world of tables, ``steps`` of ``batch`` questions with at most ``options``
    options each for the judge; ``without`` is the share of questions that lose their right option."""

    most: int = 100
    most_untyped: int = 30
    most_public: int = 160
    most_tables: int = 300
    steps: int = 1600
    batch: int = 8
    options: int = 8
    without: float = 0.1
    learning_rate: float = 6e-5
    warmup: float = 0.05
    seed: int = 1
    save_every: int = 50


@dataclass(slots=True, eq=False)
class RunExample:
    """A question with its likeliest options as they were run: ``features``, (options, :data:`FEATURES`), ``scores``
    by a linear score that did not see its domain, the ``rows`` that meet each, which are ``right``, and which
    ``answer`` as the right plan does; ``gold`` says the right plan in words, None where there is none."""

    example: PlanExample
    fold: int
    options: list[int]
    features: Floats
    rows: list[Rows]
    right: NDArray[np.bool_]
    answer: NDArray[np.bool_]
    sentences: list[str]
    gold: str | None
    scores: Floats

    def for_judge(self) -> JudgeExample:
        """Return what a judge is trained on."""
        return JudgeExample(
            self.example.question.question, self.sentences, self.scores, self.right, self.gold
        )


@dataclass(frozen=True, slots=True, eq=False)
class JudgeExample:
    """A question with its likeliest options in words, their linear ``scores``, and which are ``right``; ``gold`` says
    a right plan in words, None where there is none."""

    question: str
    sentences: Sequence[str]
    scores: Floats
    right: NDArray[np.bool_]
    gold: str | None


class JudgeTrainer:
    """The judge in training: an encoder of questions and plans, the weights of the likenesses and of the linear score
    beside them, the score of "none"."""

    def __init__(self, source: str, settings: PlanSettings, checkpoint: Path) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        self.settings, self.checkpoint = settings, checkpoint
        self.tokenizer = AutoTokenizer.from_pretrained(source)

        class Model(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.bert = AutoModel.from_pretrained(
                    source,
                    add_pooling_layer=False,
                    attn_implementation="eager",
                    hidden_dropout_prob=0.0,
                    attention_probs_dropout_prob=0.0,
                    dtype=torch.float32,
                )
                self.weights = torch.nn.Parameter(torch.full((3,), 3.0))
                self.scale = torch.nn.Parameter(torch.tensor(1.0))
                self.none = torch.nn.Parameter(torch.tensor(0.0))

            def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
                return self.bert(
                    input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
                ).last_hidden_state

        torch.manual_seed(settings.seed)
        self.model = Model()
        self.model.bert.embeddings.requires_grad_(False)

    @property
    def fitted(self) -> tuple[float, Floats, float]:
        """The weight of the linear score, those of the likenesses, and the score of "none of these"."""
        model = self.model
        weights: Floats = model.weights.detach().cpu().numpy().astype(np.float64)
        return float(model.scale.detach()), weights, float(model.none.detach())

    def train(self, examples: Sequence[JudgeExample], progress: Callable[[int, int], None]) -> None:
        """Train on questions; go on from the checkpoint, if there is one."""
        settings, model = self.settings, self.model
        own = [each for each in model.bert.parameters() if each.requires_grad]
        rising = max(round(settings.warmup * settings.steps), 1)

        def loss(step: int, batch: Sequence[JudgeExample]) -> Any:
            drawn = [
                self._draw(example, random.Random(f"{settings.seed} {step} {place}"))
                for place, example in enumerate(batch)
            ]
            return self._loss([example.question for example in batch], drawn, choose_device())

        GradientSteps(
            model,
            [
                {"params": own, "lr": settings.learning_rate},
                {"params": [model.weights, model.scale, model.none], "lr": 0.02},
            ],
            lambda step: min((step + 1) / rising, 1.0) * max(0.03, 1 - step / settings.steps),
            settings.steps,
            self.checkpoint,
            settings.save_every,
        ).run(self._batches([example for example in examples if len(example.sentences)]), loss, progress)
        model.cpu().eval()

    def _loss(
        self, questions: list[str], drawn: Sequence[tuple[list[str], list[float], int]], device: Any
    ) -> Any:
        """Return the mean loss of choosing among the options of each question."""
        import torch

        model = self.model
        pairs = [
            (question, text)
            for question, (texts, _, _) in zip(questions, drawn, strict=True)
            for text in texts
        ]
        likeness = self._compare(pairs, device) @ model.weights
        losses, start = [], 0
        for texts, scores, target in drawn:
            own = likeness[start : start + len(texts)]
            total = torch.cat([model.scale * torch.tensor(scores, device=device) + own, model.none.view(1)])
            losses.append(-torch.log_softmax(total, 0)[target])
            start += len(texts)
        return torch.stack(losses).mean()

    def _batches(self, examples: Sequence[JudgeExample]) -> Iterator[list[JudgeExample]]:
        """Yield batches of questions of about the same length, without end."""
        shuffler, batch = random.Random(self.settings.seed), self.settings.batch
        while True:
            order = list(examples)
            shuffler.shuffle(order)
            for start in range(0, len(order), 40 * batch):
                pool = sorted(order[start : start + 40 * batch], key=_length)
                batches = [pool[first : first + batch] for first in range(0, len(pool), batch)]
                shuffler.shuffle(batches)
                yield from batches

    def _draw(self, example: JudgeExample, drawer: random.Random) -> tuple[list[str], list[float], int]:
        """Return sentences with their linear scores, and the place of the right one; their number for none."""
        order = sorted(range(len(example.sentences)), key=lambda place: -example.scores[place])
        good = [place for place in order if example.right[place]]
        bad = [place for place in order if not example.right[place]]
        ranks = sorted(range(len(bad)), key=lambda rank: drawer.random() ** (rank + 3), reverse=True)
        chosen = [bad[rank] for rank in ranks[: self.settings.options - 1]]
        texts, scores = (
            [example.sentences[place] for place in chosen],
            [float(example.scores[place]) for place in chosen],
        )
        if example.gold is None or drawer.random() < self.settings.without:
            return texts, scores, len(texts)
        # Where no option is right, the plan itself stands beside the others, as the least likely of them.
        own = (
            (example.sentences[good[0]], float(example.scores[good[0]]))
            if good
            else (example.gold, float(example.scores.min()))
        )
        return [own[0], *texts], [own[1], *scores], 0

    def _compare(self, pairs: Sequence[tuple[str, str]], device: Any) -> Any:
        """Return the likenesses of questions and plans, (pairs, 3), as the judge will."""
        import torch

        encoded = self.tokenizer(
            list(pairs), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
        ).to(device)
        mask, of_plan = (encoded[name].to(torch.float32) for name in ("attention_mask", "token_type_ids"))
        with reduce_precision():
            states = self.model(
                encoded["input_ids"], encoded["attention_mask"], torch.zeros_like(encoded["token_type_ids"])
            ).float()
        unit, sides = torch.nn.functional.normalize(states, dim=2), (mask * (1 - of_plan), mask * of_plan)
        means = [torch.nn.functional.normalize((states * side.unsqueeze(-1)).sum(1), dim=1) for side in sides]
        likeness = torch.einsum("btd,bud->btu", unit, unit)
        # Of each token the nearest in the other text.
        near = [likeness.masked_fill(other[:, None, :] == 0, -1).max(2).values for other in reversed(sides)]
        return torch.stack(
            [
                (means[0] * means[1]).sum(1),
                *((best * side).sum(1) / side.sum(1) for best, side in zip(near, sides, strict=True)),
            ],
            dim=1,
        )

    def export(self, folder: Path) -> None:
        """Write the judge as a model that needs no torch."""
        import torch

        folder.mkdir(parents=True, exist_ok=True)
        sample = torch.ones((2, 8), dtype=torch.long)
        torch.onnx.export(
            self.model.cpu().eval(),
            (sample, sample, sample),
            str(folder / MODEL_FILE),
            input_names=list(_INPUTS),
            output_names=["states"],
            dynamic_axes={name: {0: "texts", 1: "tokens"} for name in (*_INPUTS, "states")},
            opset_version=17,
            dynamo=False,
        )
        convert_weights(folder / MODEL_FILE, "int8")
        self.tokenizer.backend_tokenizer.save(str(folder / TOKENIZER_FILE))


_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def _length(example: JudgeExample) -> int:
    return len(example.question) + max(map(len, example.sentences))
