"""One prompt asked several times, for self-consistency (Wang et al., ICLR 2023)."""

from __future__ import annotations

from dataclasses import replace

from clew.protocols import Prompt

#: Of samples: how different they are.
TEMPERATURE = 0.7


def sample_prompts(prompt: Prompt, samples: int) -> list[Prompt]:
    """Return the prompt for each of some samples; one alone is taken at temperature 0."""
    if samples == 1:
        return [prompt]
    return [replace(prompt, temperature=TEMPERATURE, sample=n) for n in range(samples)]
