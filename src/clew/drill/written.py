"""Summaries that a language model writes: of our prompt, or of a model that was made for it (BART)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.drill.extracts import SectionText
from clew.drill.packing import truncate
from clew.types import Usage

if TYPE_CHECKING:
    from clew.protocols import LanguageModel, Prompt, PromptTemplate


@dataclass(frozen=True, slots=True)
class ModelSummariser:
    """A model writes the summary, of at most about ``words`` words.

    ``template`` is ``drill-summarise``, ours; for a sequence-to-sequence model fine-tuned on summaries it is
    ``drill-text``, the section alone (D3, Section 3.3.1: bart-large tuned on CNN/DailyMail). Of a section longer
    than ``room`` tokens the model is given the start, as that model cuts it; a base's long sections come in parts,
    so that concerns long tables. ``count`` counts tokens. ``spent`` is told what each batch cost.
    """

    model: LanguageModel
    template: PromptTemplate
    words: int
    max_tokens: int
    count_tokens: Callable[[str], int]
    on_usage: Callable[[Usage], None] = lambda usage: None

    @property
    def name(self) -> str:
        """``written(words=64, llm=openai:gpt-4o-mini, prompt=drill-summarise.v1)``."""
        return f"written(words={self.words}, llm={self.model.name}, prompt={self.template.name})"

    def summarise(self, texts: Sequence[SectionText]) -> list[str]:
        """Return what the model writes of each section. Raises ModelError."""
        if not texts:
            return []
        made = self.model.complete(self.prompts(texts))
        self.on_usage(sum((one.usage for one in made), Usage()))
        return [one.text.strip() for one in made]

    def prompts(self, texts: Sequence[SectionText]) -> list[Prompt]:
        """Return what the model is asked, one prompt for each section: for foreseeing what it costs."""
        return [self._prompt(one) for one in texts]

    def _prompt(self, one: SectionText) -> Prompt:
        values = {"text": truncate(one.text, self.max_tokens, self.count_tokens), "name": one.name, "words": str(self.words)}
        return self.template.render(**{key: values[key] for key in self.template.variables})
