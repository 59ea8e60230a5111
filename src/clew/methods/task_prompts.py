"""The few-shot prompts of a task: answering questions, or judging claims (Su et al., NAACL 2024, Appendix F)."""

from __future__ import annotations

from typing import Literal

from clew.core.prompts.templates import Template, load_prompt

Task = Literal["question", "claim"]
#: A number that a recipe may leave to the prompt file or the method: ``auto``.
AutoCount = int | Literal["auto"]


def load_task_prompt(name: str, task: Task, shots: AutoCount = "auto", exemplars: str = "auto") -> Template:
    """Return the prompt ``name`` for a task, with ``shots`` exemplars of the file ``exemplars``.

    ``auto`` is what the prompt file says. Raises UsageError.
    """
    return load_prompt(
        f"{name}-claim" if task == "claim" else name,
        shots=None if shots == "auto" else shots,
        exemplars=None if exemplars == "auto" else exemplars,
    )
