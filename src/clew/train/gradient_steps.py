"""Steps of gradient descent in torch that go on from their checkpoint after an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class GradientSteps:
    """Steps of AdamW on a torch ``model``.

    ``groups`` are its weights with their highest rates, as torch's optimizers take them; step n has the share
    ``rate(n)`` of it. ``clip`` bounds the norm of the gradient. The state is written into the file ``checkpoint``
    after every ``save_every`` steps and after the last.
    """

    model: Any
    groups: Sequence[Mapping[str, Any]]
    rate: Callable[[int], float]
    steps: int
    checkpoint: Path
    save_every: int
    clip: float = 1.0
    weight_decay: float = 0.0

    def run(
        self,
        batches: Iterable[Any],
        loss: Callable[[int, Any], Any],
        progress: Callable[[int, int], None],
    ) -> None:
        """Train the model in place; go on from the checkpoint, if there is one.

        ``loss`` receives the number of the step, from 0, and its batch; ``progress`` the numbers of finished steps
        and of all. Equal batches, machine and versions give equal weights, interrupted or not.
        """
        import torch

        self.model.to(choose_device()).train()
        optimizer = torch.optim.AdamW(list(self.groups), weight_decay=self.weight_decay)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self.rate)
        done = self._load(optimizer, schedule)
        for step, batch in enumerate(batches):
            if step >= self.steps:
                break
            if step < done:
                continue
            loss(step, batch).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
            done = step + 1
            if done % self.save_every == 0 or done == self.steps:
                self._save(optimizer, schedule, done)
            progress(done, self.steps)

    def _save(self, optimizer: Any, schedule: Any, done: int) -> None:
        import torch

        random_state = [torch.get_rng_state()]
        if torch.cuda.is_available():
            random_state.append(torch.cuda.get_rng_state())
        state = {
            "model": self.model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "random": random_state,
            "done": done,
        }
        temporary = self.checkpoint.with_suffix(".new")
        torch.save(state, temporary)
        temporary.replace(self.checkpoint)

    def _load(self, optimizer: Any, schedule: Any) -> int:
        """Restore the checkpoint, if there is one; return its number of steps."""
        import torch

        if not self.checkpoint.is_file():
            return 0
        state = torch.load(self.checkpoint, map_location=choose_device(), weights_only=True)
        self.model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["random"][0].cpu())
        if len(state["random"]) > 1:
            torch.cuda.set_rng_state(state["random"][1].cpu())
        return int(state["done"])


def choose_device() -> Any:
    """Return the GPU, where there is one, else the CPU."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def reduce_precision() -> Any:
    """Return a context in which torch multiplies matrices in bfloat16, where the device can: half the time; the
    weights and their gradients stay in 32 bits."""
    import torch

    device = choose_device()
    is_supported = (
        torch.cuda.is_bf16_supported()
        if device.type == "cuda"
        else torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_supported)


def count_finished(checkpoint: Path) -> int:
    """Return the number of steps that a checkpoint has finished, 0 where there is none."""
    if not checkpoint.is_file():
        return 0
    import torch

    return int(torch.load(checkpoint, map_location="cpu", weights_only=True)["done"])
