"""The KGP paper's reader."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from clew.core.component import PromptFile, component
from clew.core.prompts.templates import Template
from clew.core.protocols import LanguageModel, Snapshot, Trail
from clew.core.trail import PromptReadStep, ReadOutcomeStep
from clew.core.types import Answer, Hit, Question
from clew.methods.readers import NOT_FOUND


@component("paper", summary="the KGP paper's prompt (Listings 3 and 4)", paper="Wang et al., AAAI 2024")
@dataclass(frozen=True, slots=True)
class PaperReader:
    """Asks for an answer of less than six words, given all contexts (Wang et al., Listings 3 and 4).

    A context is a passage; of a hit with a path it is the passages of the path, joined by a newline (Listing 4).
    ``template`` is the prompt ``kgp-read``; ``texts`` returns the texts of nodes by id. The answer is the model's
    reply, unchecked; the reader abstains only if there is nothing to read or the reply is empty.
    :class:`~clew.methods.readers.cited.CitedReader` gives answers that can be checked.
    """

    model: LanguageModel
    template: Template
    texts: Callable[[list[str]], list[str]]

    @classmethod
    def build(
        cls,
        snapshot: Snapshot,
        model: LanguageModel,
        template: Annotated[Template, PromptFile("kgp-read")],
    ) -> PaperReader:
        """Return the reader over the texts of a base."""

        def texts(ids: list[str]) -> list[str]:
            return [node.text for node in snapshot.nodes(snapshot.rows(ids))]

        return cls(model, template, texts)

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the model's answer, resting on all hits. Raises ModelError."""
        if not hits:
            trail.add(ReadOutcomeStep("paper", "nothing to read"))
            return Answer(NOT_FOUND, abstained=True, reader="paper")
        started = time.perf_counter()
        prompt = self.template.render(question=question.text, contexts=self._contexts(hits))
        completion = self.model.complete([prompt])[0]
        text = completion.text.strip()
        trail.add(
            PromptReadStep(
                "paper",
                self.template.name,
                completion.model,
                contexts=len(hits),
                reply=text,
                hits=tuple(hits),
                usage=completion.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return Answer(
            text or NOT_FOUND,
            tuple(hits) if text else (),
            usage=completion.usage,
            abstained=not text,
            reader="paper",
        )

    def _contexts(self, hits: Sequence[Hit]) -> str:
        paths = [hit.path if len(hit.path) > 1 else () for hit in hits]
        texts = iter(self.texts([id for path in paths for id in path]))
        contexts = [
            "\n".join(next(texts) for _ in path) if path else hit.node.text
            for hit, path in zip(hits, paths, strict=True)
        ]
        return "\n".join(f"{number}: {context}" for number, context in enumerate(contexts, 1))
