"""Training of an encoder that finds the next passage, with the MDR and DPR objectives, by sentence-transformers.

Xiong et al., "Answering complex open-domain questions with multi-hop dense retrieval", ICLR 2021 (MDR) and Karpukhin
et al., "Dense passage retrieval", EMNLP 2020 (DPR), as the KGP paper runs both (Supplementary 8.2, Table 5:
:data:`PAPER_SETTINGS`). Deviations: one encoder for queries and passages, mean pooling, unit vectors with a
temperature in place of inner products, hops to any depth, and by default an encoder that is trained already. The
recall on questions that it was not trained on is measured after each epoch (:class:`HeldOutQuestions`).

With a graph it is the dense retriever of STaRK (Wu et al., NeurIPS 2024), which 4StepFocus is compared with (Boer et
al., 2024, Section 2): questions learn the texts of the nodes that answer them (:func:`training_from_graph`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import Floats, Rows, Vectors, union
from clew.core.errors import UsageError, require_packages, unknown_name_error
from clew.core.text import build_hop_query, candidate_names, title_names
from clew.core.types import PASSAGE, Scope
from clew.evaluate.corpora import pool_paragraphs
from clew.evaluate.datasets import parse_dataset
from clew.evaluate.examples import Example, shuffle_examples
from clew.models import MULTILINGUAL
from clew.retrieve.nodes import NodeTexts, answer_rows_or_all
from clew.train.evidence_chains import gold_passages
from clew.train.pairs import (
    NodeQuestion,
    Objective,
    Pair,
    Passage,
    add_mined_negatives,
    find_node_questions,
    pairs_from_examples,
    pairs_from_nodes,
    pairs_from_passages,
    passage_text,
)
from clew.train.training_folder import FINISHED, TrainingFolder, progress_callback

if TYPE_CHECKING:
    from clew.core.protocols import PropertyGraph
    from clew.store.store import Store

#: The number of first hops to search second hops from, and the depth of the recall.
FIRST_HOPS, RECALL_DEPTH = 10, 5
#: The depth of the recall of nodes (STaRK), right answers of a question that are learned from, nodes that held-out
#: questions are searched over beside the right answers of all questions.
NODE_DEPTH, ANSWERS_PER_QUESTION, POOL_NODES = 20, 4, 2000


@dataclass(frozen=True, slots=True)
class HeldOutQuestions:
    """Held-out questions, searched over the pool of their own paragraphs and those of ``others``.

    With ``hops`` 2 a passage is ranked by its likeliest path of one or two hops, ``max(p(v), max over u of p(u) p(v |
    u))`` with ``p = softmax(scale * cosine)``; with 1 by the first hop alone, as DPR searches.
    """

    questions: Sequence[Example]
    others: Sequence[Example] = ()
    hops: int = 2
    scale: float = 20.0

    def measure(self, model: Any) -> dict[str, float]:
        """Return the mean recall of gold passages among the first five, by name of the measure.

        ``model`` is a sentence-transformers model.
        """
        questions = [
            (example, {(gold.title, gold.text) for gold in gold_passages(example)})
            for example in self.questions
        ]
        questions = [(example, gold) for example, gold in questions if gold]
        pool = pool_paragraphs([*self.questions, *self.others])
        keys = [(example.title, example.text) for example in pool]
        texts = [passage_text(example) for example in pool]
        passages = encode_texts(model, texts)
        asked = encode_texts(model, [example.question for example, _ in questions], query=True)
        scores = (asked @ passages.T).astype(np.float64)
        ranked = {"recall@5, one hop": scores}
        if self.hops > 1:
            ranked["recall@5"] = self._score_two_hops(
                model, [example.question for example, _ in questions], texts, passages, scores
            )
        return {
            name: _recall(scores, keys, [gold for _, gold in questions]) for name, scores in ranked.items()
        }

    def _score_two_hops(
        self, model: Any, questions: list[str], texts: list[str], passages: Vectors, scores: Floats
    ) -> Floats:
        first_rows = np.argsort(-scores, axis=1, kind="stable")[:, :FIRST_HOPS]
        queries = [
            build_hop_query(question, [texts[row]])
            for question, rows in zip(questions, first_rows.tolist(), strict=True)
            for row in rows
        ]
        second_vectors = encode_texts(model, queries, query=True).reshape(
            len(questions), -1, passages.shape[1]
        )
        combined = np.empty_like(scores)
        for number, rows in enumerate(first_rows):
            first_probabilities = _softmax(self.scale * scores[number])
            second_scores = self.scale * second_vectors[number] @ passages.T
            second_scores[np.arange(len(rows)), rows] = -np.inf
            combined[number] = np.maximum(
                first_probabilities, (first_probabilities[rows, None] * _softmax(second_scores)).max(axis=0)
            )
        return combined


@dataclass(frozen=True, slots=True)
class HeldOutNodes:
    """Held-out questions whose right answers are nodes: each is searched over the texts of ``pool``, rows of a graph,
    ascending."""

    graph: PropertyGraph
    questions: Sequence[NodeQuestion]
    pool: Rows

    def measure(self, model: Any) -> dict[str, float]:
        """Return the means of STaRK's measures over the questions, by name.

        ``model`` is a sentence-transformers model.
        """
        nodes = encode_texts(model, NodeTexts(self.graph).documents(self.pool))
        scores = encode_texts(model, [question.text for question in self.questions], query=True) @ nodes.T
        ranked = self.pool[np.argsort(-scores, axis=1, kind="stable")]
        is_right = [
            np.isin(rows, question.rows) for rows, question in zip(ranked, self.questions, strict=True)
        ]
        first_right = [int(right.argmax()) for right in is_right]
        recalls = [float(right[:NODE_DEPTH].sum()) / int(right.sum()) for right in is_right]
        return {
            "Hit@1": round(float(np.mean([place == 0 for place in first_right])), 4),
            f"recall@{NODE_DEPTH}": round(float(np.mean(recalls)), 4),
            "MRR": round(float(np.mean([1 / (place + 1) for place in first_right])), 4),
        }


def encode_texts(model: Any, texts: Sequence[str], query: bool = False) -> Vectors:
    """Return the unit vectors of a sentence-transformers model, (n, dimension), of queries or of passages."""
    vectors: Vectors = model.encode(
        list(texts), prompt=text_prompts(model)[not query], normalize_embeddings=True, show_progress_bar=False
    )
    return vectors


def text_prompts(model: Any) -> tuple[str, str]:
    """Return what a sentence-transformers model wants before each query and before each passage; "" for nothing."""
    prompts = model.prompts or {}
    return prompts.get("query") or "", prompts.get("document") or prompts.get("passage") or ""


def _softmax(scores: Floats) -> Floats:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probabilities: Floats = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return probabilities


def _recall(scores: Floats, keys: Sequence[tuple[str, str]], gold: Sequence[set[tuple[str, str]]]) -> float:
    best = np.argsort(-scores, axis=1, kind="stable")[:, :RECALL_DEPTH]
    recalls = [
        len({keys[row] for row in rows} & gold_passages) / len(gold_passages)
        for rows, gold_passages in zip(best.tolist(), gold, strict=True)
    ]
    return round(float(np.mean(recalls)), 4) if recalls else 0.0


RECORD = "clew-training.json"
#: The subfolder of the trained model.
MODEL_FOLDER = "model"
#: Receives the number of finished steps and their total.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """The settings of an encoder's training.

    A step has ``batch`` pairs; each query should be nearest to its own positive among all positives and negatives of
    the batch. A pair has ``negatives`` of the question's own distractors and ``mined`` of the texts that the encoder
    confuses most before the training. ``scale`` is 1 / temperature of the softmax over cosines. ``warmup`` and
    ``save_every`` count steps, ``clip`` bounds the norm of the gradient. Texts are cut at ``max_tokens`` in training
    (an exported encoder may read more). ``dropout`` None keeps the model's own.

    The result has ``blend`` times the trained weights plus 1 - ``blend`` times the original ones. The average keeps
    most of the new and most of the old abilities (Wortsman et al., CVPR 2022, "Robust fine-tuning").

    ``lora_rank`` 0 trains all weights. Else only updates of that rank of the layers' matrices are trained (Hu et al.,
    ICLR 2022, "LoRA", with an alpha of twice the rank); the embeddings of the vocabulary, most of the weights of a
    multilingual encoder, stay as they are.
    """

    objective: Objective = "mdr"
    epochs: int = 1
    batch: int = 32
    negatives: int = 1
    mined: int = 0
    learning_rate: float = 1e-4
    warmup: int = 10
    scale: float = 20.0
    clip: float = 1.0
    max_tokens: int = 128
    dropout: float | None = 0.0
    blend: float = 0.5
    lora_rank: int = 0
    seed: int = 0
    save_every: int = 50


#: Table 5 of the KGP paper: the middle of its search ranges (batch 128 to 512, length 128 to 350).
PAPER_SETTINGS = EncoderSettings(
    epochs=50,
    batch=256,
    negatives=1,
    learning_rate=2e-5,
    warmup=300,
    clip=2.0,
    max_tokens=256,
    dropout=None,
    blend=1.0,
)
CONFIGURATIONS = {"clew": EncoderSettings(), "paper": PAPER_SETTINGS}


def build_settings(configuration: str, changes: Mapping[str, Any]) -> EncoderSettings:
    """Return the named configuration with changes. Raises UsageError for an unknown configuration or objective."""
    if configuration not in CONFIGURATIONS:
        raise unknown_name_error("configuration", configuration, CONFIGURATIONS)
    if changes.get("objective", "mdr") not in {"mdr", "dpr"}:
        raise unknown_name_error("objective", str(changes["objective"]), ("mdr", "dpr"))
    return replace(CONFIGURATIONS[configuration], **changes)


@dataclass(frozen=True, slots=True)
class EncoderPlan:
    """The plan of a training: its pairs, its steps, and the steps that an interrupted run has finished."""

    pairs: int
    steps: int
    done: int


@dataclass(frozen=True, slots=True)
class Training:
    """A training: the encoder ``source`` (hub name or folder) and its ``pairs``.

    ``origin`` describes the source of the pairs and becomes part of the record. ``held_out`` is measured before the
    training, at each checkpoint and after it.
    """

    pairs: Sequence[Pair]
    source: str
    settings: EncoderSettings
    origin: Mapping[str, Any]
    held_out: HeldOutQuestions | HeldOutNodes | None = None


#: The default number of pairs from a knowledge base. More takes hours on two cores and gains little.
MAX_BASE_PAIRS = 4000


def training_from_data(
    data: Sequence[str], source: str, settings: EncoderSettings, held_out: float, limit: int | None = None
) -> Training:
    """Return the training on the questions of data sets, with the share ``held_out`` of them held out.

    ``limit`` questions are sampled with the seed, None for all. Raises UsageError.
    """
    datasets = [parse_dataset(dataset) for dataset in data]
    examples = (example for dataset in datasets for example in dataset.examples())
    sampled = [group[0] for group in shuffle_examples(examples, settings.seed)][:limit]
    held_out_examples = sampled[: round(held_out * len(sampled))]
    training_examples = sampled[len(held_out_examples) :]
    pairs = pairs_from_examples(training_examples, settings.objective, settings.negatives, settings.seed)
    if not pairs:
        raise UsageError(
            f"no question of {', '.join(data)} has gold passages in a known order",
            "hotpotqa, 2wikimultihopqa and musique have the order of their evidence; "
            "--objective dpr needs none",
        )
    origin: dict[str, Any] = {
        "data": [{"form": dataset.name, "digest": dataset.digest()} for dataset in datasets],
        "questions": len(training_examples),
        "held_out": len(held_out_examples),
        "limit": limit,
    }
    hops = 1 if settings.objective == "dpr" else 2
    return Training(
        pairs,
        source,
        settings,
        origin,
        HeldOutQuestions(held_out_examples, training_examples, hops) if held_out_examples else None,
    )


def training_from_graph(
    base: Store,
    data: Sequence[str],
    source: str,
    settings: EncoderSettings,
    held_out: float,
    limit: int | None = None,
) -> Training:
    """Return the training on questions whose right answers are nodes of the only graph of a base, such as STaRK's.

    The share ``held_out`` of the questions is searched over the right answers of all questions and
    :data:`POOL_NODES` others. Raises UsageError for a base with several graphs, and where no answer is in the graph.
    """
    graphs = base.graphs.graph_infos()
    if len(graphs) != 1:
        raise UsageError(
            f"{base.path} has {len(graphs)} graphs", "Name the file of the one that has the answers"
        )
    if settings.objective != "dpr":
        raise UsageError("nodes are learned without hops between them", "With --graph: --objective dpr")
    graph = base.snapshot().graph(graphs[0].name)
    datasets = [parse_dataset(dataset) for dataset in data]
    examples = (example for dataset in datasets for example in dataset.examples())
    sampled = [group[0] for group in shuffle_examples(examples, settings.seed)][:limit]
    questions = find_node_questions(graph, sampled)
    if not questions:
        raise UsageError(
            f"no answer in {', '.join(data)} is a node of {graph.name}",
            "The answers of stark are ids of its own knowledge base: --graph FOLDER/processed",
        )
    held_out_questions = questions[: round(held_out * len(questions))]
    learned = questions[len(held_out_questions) :]
    right = [question.rows for question in questions]
    others = answer_rows_or_all(graph)
    rng = np.random.default_rng(settings.seed)
    pool = union([*right, rng.choice(others, min(POOL_NODES, len(others)), replace=False)])
    return Training(
        pairs_from_nodes(graph, learned, ANSWERS_PER_QUESTION, settings.negatives, settings.seed),
        source,
        settings,
        {
            "data": [{"form": dataset.name, "digest": dataset.digest()} for dataset in datasets],
            "graph": graphs[0].digest,
            "questions": len(learned),
            "held_out": len(held_out_questions),
            "limit": limit,
        },
        HeldOutNodes(graph, held_out_questions, pool) if held_out_questions else None,
    )


def training_from_base(
    base: Store, source: str, settings: EncoderSettings, pairs: int = MAX_BASE_PAIRS
) -> Training:
    """Return the training on pairs made of the passages of a base. Raises UsageError for a base without pairs."""
    snapshot = base.snapshot()
    rows = np.flatnonzero(snapshot.mask(Scope(), (PASSAGE,)))
    titles = {document.key: document.title for document in snapshot.documents()}
    passages = [
        Passage(
            node.document,
            titles[node.document],
            node.headings,
            node.text,
            frozenset(name for name, _, _ in candidate_names(node.text)),
        )
        for node in snapshot.nodes(rows)
    ]
    names_by_document = {key: frozenset(title_names(title)) for key, title in titles.items()}
    base_pairs = pairs_from_passages(passages, names_by_document, pairs, settings.seed)
    if not base_pairs:
        raise UsageError(f"{base.path} has no passages to learn from", "Add documents: clew add FOLDER")
    return Training(base_pairs, source, settings, {"base": base.digest(), "pairs_asked": pairs})


def train_encoder(
    training: Training, out: Path, report_plan: Callable[[EncoderPlan], None], progress: Progress
) -> dict[str, Any]:
    """Train into the folder ``out``; return the record, which is also written there as ``clew-training.json``.

    After an interrupt the same call continues from the last checkpoint; a finished training is not repeated.
    ``report_plan`` receives the plan before the training starts. Equal pairs, model, settings, machine and versions
    give equal weights. Raises UsageError, MissingExtra.
    """
    require_packages("train", "torch", "sentence_transformers", "accelerate", "datasets", "peft")
    pairs, settings, held_out = training.pairs, training.settings, training.held_out
    if len(pairs) < settings.batch:
        raise UsageError(
            f"{len(pairs)} pairs do not fill a batch of {settings.batch}", "Give more data, or lower --batch"
        )
    output = TrainingFolder(out, RECORD)
    output.check()
    description = {
        # Only the name of a folder, because the record is copied to other machines with the model.
        "model": Path(training.source).name if Path(training.source).is_dir() else training.source,
        **training.origin,
        "pairs": len(pairs),
        "settings": asdict(settings),
    }
    if FINISHED in output.matching_record(description):
        return output.read()
    model = _load_model(training.source, settings)
    window, model.max_seq_length = model.max_seq_length, settings.max_tokens
    if settings.lora_rank:
        _add_low_rank_updates(model, settings)
    if settings.mined:
        pairs = add_mined_negatives(pairs, partial(encode_texts, model), settings.mined)
    run = _build_trainer(model, pairs, settings, output, progress)
    checkpoint, done = output.last_checkpoint()
    report_plan(EncoderPlan(len(pairs), settings.epochs * (len(pairs) // settings.batch), done))
    record = output.begin(description)
    if held_out is not None:
        if "before" not in record:
            output.write(record | {"before": held_out.measure(model)})
        run.add_callback(_measuring_callback(held_out, model, output))
    run.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    if settings.lora_rank:
        model = _merge_low_rank_updates(model, training.source, settings)
    else:
        _blend_weights(model, training.source, settings)
    model.max_seq_length = window
    model.save_pretrained(str(out / MODEL_FOLDER), create_model_card=False)
    after = held_out.measure(model) if held_out is not None else {}
    packages = ("clew", "torch", "transformers", "sentence-transformers", "accelerate")
    output.finish(output.read() | {FINISHED: after, "versions": {name: version(name) for name in packages}})
    return output.read()


def _load_model(source: str, settings: EncoderSettings) -> Any:
    from sentence_transformers import SentenceTransformer

    if source == f"clew:{MULTILINGUAL}":
        from clew.train.multilingual import trainable_folder

        source = str(trainable_folder())
    dropout_options = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    config = {} if settings.dropout is None else dict.fromkeys(dropout_options, settings.dropout)
    return SentenceTransformer(source, config_kwargs=config)


def _blend_weights(model: Any, source: str, settings: EncoderSettings) -> None:
    share = settings.blend
    if share == 1:
        return
    before = _load_model(source, settings).state_dict()
    after = model.state_dict()
    mixed = {
        name: share * weight + (1 - share) * before[name].to(weight.device)
        for name, weight in after.items()
        if weight.is_floating_point()
    }
    model.load_state_dict(after | mixed)


def _add_low_rank_updates(model: Any, settings: EncoderSettings) -> None:
    """Add updates of low rank to all matrices of the network, in place; only they will be trained."""
    import transformers
    from peft import LoraConfig, inject_adapter_in_model

    transformers.set_seed(settings.seed)  # LoRA draws its weights
    rank = settings.lora_rank
    inject_adapter_in_model(LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear"), model)


def _merge_low_rank_updates(model: Any, source: str, settings: EncoderSettings) -> Any:
    """Return the original model with the share ``blend`` of the updates added to its matrices."""
    from peft.tuners.lora import LoraLayer

    merged = _load_model(source, settings)
    for name, layer in model.named_modules():
        if isinstance(layer, LoraLayer):
            weight = merged.get_submodule(name).weight
            weight.data += settings.blend * layer.get_delta_weight("default").to(weight.device)
    return merged


def _build_trainer(
    model: Any, pairs: Sequence[Pair], settings: EncoderSettings, output: TrainingFolder, progress: Progress
) -> Any:
    import torch
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from transformers import PrinterCallback

    query, passage = text_prompts(model)
    columns = {
        "anchor": [query + pair.query for pair in pairs],
        "positive": [passage + pair.positive for pair in pairs],
    }
    for number in range(min(len(pair.negatives) for pair in pairs)):
        columns[f"negative_{number}"] = [passage + pair.negatives[number] for pair in pairs]
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(output.checkpoints),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup,
        max_grad_norm=settings.clip,
        seed=settings.seed,
        # Rows of one batch must not share a text: the positive of one would be a negative of the other.
        batch_sampler="no_duplicates",
        dataloader_drop_last=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        bf16=torch.cuda.is_available() and torch.cuda.is_bf16_supported(),
        save_strategy="steps",
        save_steps=settings.save_every,
        save_total_limit=1,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = (_low_rank_trainer() if settings.lora_rank else SentenceTransformerTrainer)(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict(columns),
        loss=ranking_loss(model, settings.scale),
        callbacks=[progress_callback(progress)],
    )
    # PrinterCallback prints to stdout, which is for the output of commands.
    trainer.remove_callback(PrinterCallback)
    return trainer


#: The updates of low rank in a checkpoint.
_UPDATES_FILE = "updates.safetensors"


def _low_rank_trainer() -> Any:
    """Return a trainer whose checkpoints hold the updates of low rank, and not the network that they belong to."""
    from safetensors.torch import load_file, save_file
    from sentence_transformers import SentenceTransformerTrainer

    class LowRankTrainer(SentenceTransformerTrainer):  # type: ignore[misc]
        def _save(self, output_dir: str, state_dict: Any = None) -> None:
            updates = {name: value for name, value in self.model.named_parameters() if value.requires_grad}
            Path(output_dir).mkdir(parents=True, exist_ok=True)
            save_file(updates, Path(output_dir) / _UPDATES_FILE)

        def _load_from_checkpoint(self, checkpoint_path: str) -> None:
            updates = load_file(Path(checkpoint_path) / _UPDATES_FILE)
            self.model.load_state_dict(updates, strict=False)

    return LowRankTrainer


def _measuring_callback(held_out: HeldOutQuestions | HeldOutNodes, model: Any, output: TrainingFolder) -> Any:
    """Return the callback that measures the held-out questions at each checkpoint and adds the result to the
    record."""
    from transformers import TrainerCallback

    class MeasureOnSave(TrainerCallback):  # type: ignore[misc]
        def on_save(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            record = output.read()
            measures = record.get("during", {}) | {str(state.global_step): held_out.measure(model)}
            output.write(record | {"during": measures})

    return MeasureOnSave()


#: The number of texts of similar length that are encoded together.
CHUNK = 16


def ranking_loss(model: Any, scale: float) -> Any:
    """Return the softmax loss over in-batch and given negatives, ``scale`` being 1 / temperature.

    It is ``MultipleNegativesRankingLoss`` (van den Oord et al., 2018; DPR and MDR use the same), except that the
    texts of all columns are encoded together, sorted by length. Without sorting, half of the computation on a CPU is
    padding.
    """
    import torch
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    class LengthSortedLoss(MultipleNegativesRankingLoss):  # type: ignore[misc]
        def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Any) -> Any:
            columns = list(sentence_features)
            width = max(column["input_ids"].shape[1] for column in columns)

            def join_columns(key: str) -> Any:
                return torch.cat(
                    [
                        torch.nn.functional.pad(column[key], (0, width - column[key].shape[1]))
                        for column in columns
                    ]
                )

            ids, mask = join_columns("input_ids"), join_columns("attention_mask")
            lengths = mask.sum(dim=1)
            order = torch.argsort(lengths)
            parts = []
            for rows in order.split(CHUNK):
                longest = int(lengths[rows].max())
                features = {"input_ids": ids[rows, :longest], "attention_mask": mask[rows, :longest]}
                parts.append(self.model(features)["sentence_embedding"])
            embeddings = torch.cat(parts)[torch.argsort(order)]
            sizes = [column["input_ids"].shape[0] for column in columns]
            return self.compute_loss_from_embeddings(list(embeddings.split(sizes)), labels)

    return LengthSortedLoss(model, scale=scale)


def training_objective(folder: Path) -> str:
    """Return the training objective of the model in a training's folder, "" if there is no record."""
    return _read_record(folder, lambda record: record["settings"]["objective"])


def training_source(folder: Path) -> str:
    """Return the model that the training in a folder began from, "" if there is no record."""
    return _read_record(folder, lambda record: record["model"])


def _read_record(folder: Path, choose: Callable[[dict[str, Any]], Any]) -> str:
    path = folder / RECORD
    if not path.is_file():
        return ""
    try:
        return str(choose(json.loads(path.read_text(encoding="utf-8"))))
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is damaged: {error}", "Train again") from error
