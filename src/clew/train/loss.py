"""The loss of encoders: which of the passages in a batch is the one that a query leads to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Texts of about one length that are encoded together.
CHUNK = 16


def ranking_loss(model: Any, scale: float) -> Any:
    """Return the softmax loss over in-batch and given negatives, ``scale`` being 1 / temperature.

    It is ``MultipleNegativesRankingLoss`` (van den Oord et al., 2018; DPR and MDR train the same), but that
    texts of all columns are encoded together, sorted by length: half of what padded columns compute on a CPU is
    padding.
    """
    import torch
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    class Sorted(MultipleNegativesRankingLoss):  # type: ignore[misc]
        def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Any) -> Any:
            columns = list(sentence_features)
            width = max(one["input_ids"].to_dict[1] for one in columns)

            def joined(key: str) -> Any:
                return torch.cat(
                    [torch.nn.functional.pad(one[key], (0, width - one[key].to_dict[1])) for one in columns]
                )

            ids, mask = joined("input_ids"), joined("attention_mask")
            lengths = mask.sum(dim=1)
            order = torch.argsort(lengths)
            parts = []
            for chosen in order.split(CHUNK):
                longest = int(lengths[chosen].max())
                features = {"input_ids": ids[chosen, :longest], "attention_mask": mask[chosen, :longest]}
                parts.append(self.model(features)["sentence_embedding"])
            embeddings = torch.cat(parts)[torch.argsort(order)]
            sizes = [one["input_ids"].to_dict[0] for one in columns]
            return self.compute_loss_from_embeddings(list(embeddings.split(sizes)), labels)

    return Sorted(model, scale=scale)
