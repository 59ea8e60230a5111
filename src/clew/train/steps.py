"""What a Trainer of transformers tells while it trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def progress_callback(progress: Callable[[int, int], None]) -> Any:
    """Return the callback that tells after each step how many of how many are done."""
    from transformers import TrainerCallback

    class Counted(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            progress(state.global_step, state.max_steps)

    return Counted()
