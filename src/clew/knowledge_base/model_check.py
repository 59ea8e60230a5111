"""What a language model can do: ``clew doctor --llm MODEL``.

:func:`check_model` asks twenty short prompts, those that methods ask too, over invented facts that no model knows.
What the model got right decides :attr:`ModelReport.settings`, which :func:`save_report` keeps beside the caches of
models, and which methods use where a recipe leaves a choice open (``auto``): whether the model reads, or the trained
reader; whether chains are asked for by examples or by a schema; whether it chooses paragraphs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from clew.core.config import cache_path
from clew.core.errors import BadCompletion, ContextExceeded
from clew.core.prompts.replies import is_refusal, parse_json
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import LanguageModel, Prompt, context_of
from clew.core.trail import TrailRecorder
from clew.core.types import Hit, Node, Question, Usage
from clew.methods.chain.unknowns import is_solvable
from clew.methods.chain.writer import ChainWriter
from clew.methods.d3.replies import EntryNames, parse_numbers, parse_verdict
from clew.methods.readers.cited import CitedReader
from clew.retrieve.reranking import parse_ranking

REPORTS = "model-reports.json"
#: A model that does this share of an ability's prompts right is trusted with it.
ENOUGH = 0.6
_SHOTS = 5
_MOST_TOKENS = 160
#: Words before the question of a prompt that tests the context: some 700 tokens.
_FILLER_WORDS = 500

_FACTS = (
    "The Corran Light was designed by Ada Strake and first lit in 1871.",
    "Ada Strake (1834-1902) was an engineer from Saltreach.",
    "The Fenner Dam holds 4 million cubic metres of water.",
)
_CHAIN_QUESTIONS = (
    "Who is the mother of the director of the film The Salt Orchard?",
    "In which country is the birthplace of the composer of Low Water?",
)
_JSON_SCHEMA = {
    "type": "object",
    "properties": {"town": {"type": "string"}, "year": {"type": "integer"}},
    "required": ["town", "year"],
    "additionalProperties": False,
}
_JSON_TEXTS = (
    ("Tom Arden was born in Ellery in 1834.", {"town": "Ellery", "year": 1834}),
    ("In 1902 the ferry from Dunmere was closed.", {"town": "Dunmere", "year": 1902}),
    ("Saltreach got its first school in 1761.", {"town": "Saltreach", "year": 1761}),
)
_QUOTE_QUESTIONS = (
    ("Who designed the Corran Light?", "Ada Strake"),
    ("From which town was Ada Strake?", "Saltreach"),
    ("How much water does the Fenner Dam hold?", "4 million"),
)
_OPEN_QUESTIONS = (
    "Who was the husband of Ada Strake?",
    "How tall is the Corran Light?",
    "In which year was the Fenner Dam finished?",
)


@dataclass(frozen=True, slots=True)
class Ability:
    """How many of an ability's prompts were answered right, and what was wrong with the first that was not."""

    name: str
    right: int
    asked: int
    problem: str = ""

    @property
    def is_enough(self) -> bool:
        """Whether the model is trusted with it."""
        return self.right >= ENOUGH * self.asked


@dataclass(frozen=True, slots=True)
class ModelReport:
    """What a model can do. ``context`` is in tokens, None if it is not known; ``date`` is that of the check."""

    model: str
    context: int | None
    abilities: tuple[Ability, ...]
    usage: Usage
    date: str

    @property
    def settings(self) -> dict[str, str]:
        """What methods use for this model where a recipe leaves it open."""
        can = {ability.name: ability for ability in self.abilities}
        structured, by_example = can["chains by schema"], can["chains by example"]
        reads = can["quotes"].is_enough and can["abstaining"].is_enough
        return {
            "reader": "cited" if reads else "span",
            "form": "structured" if structured.right > by_example.right else "fewshot",
            "paragraphs": "base" if can["ids"].is_enough else "encoder",
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON."""
        abilities = [asdict(ability) for ability in self.abilities]
        usage = self.usage.to_dict()
        report = {"model": self.model, "context": self.context, "date": self.date}
        return report | {"abilities": abilities, "settings": self.settings, "usage": usage}


def check_model(model: LanguageModel, progress: Callable[[str], None] = lambda name: None) -> ModelReport:
    """Ask a model twenty short prompts and return what it can do; ``progress`` gets the name of each ability.

    Raises ModelError if the model cannot be asked at all.
    """
    counted = _CountingModel(model)
    abilities = []
    for name, cases in _cases().items():
        progress(name)
        problems = [problem for case in cases if (problem := _run_case(case, counted))]
        abilities.append(
            Ability(name, len(cases) - len(problems), len(cases), problems[0] if problems else "")
        )
    date = time.strftime("%Y-%m-%d")
    return ModelReport(model.name, context_of(model), tuple(abilities), counted.usage, date)


def save_report(report: ModelReport) -> None:
    """Keep a report; an older one of the same model is replaced."""
    path = cache_path() / REPORTS
    path.parent.mkdir(parents=True, exist_ok=True)
    reports = _read_reports() | {report.model: report.to_dict()}
    path.write_text(json.dumps(reports, ensure_ascii=False, indent=1), encoding="utf-8")


def saved_settings(model: str) -> Mapping[str, str]:
    """Return the settings that the report of a model gave, an empty mapping if it was never checked."""
    settings = _read_reports().get(model, {}).get("settings", {})
    return {str(key): str(value) for key, value in settings.items()} if isinstance(settings, dict) else {}


def _read_reports() -> dict[str, dict[str, Any]]:
    try:
        reports = json.loads((cache_path() / REPORTS).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # it is a cache: a damaged one is as good as none
        return {}
    return reports if isinstance(reports, dict) else {}


#: Asks a model, and returns what is wrong with its reply, "" for nothing.
_Case = Callable[[LanguageModel], str]


def _run_case(case: _Case, model: LanguageModel) -> str:
    try:
        return case(model)
    except (BadCompletion, ContextExceeded) as error:
        return error.problem


def _cases() -> dict[str, list[_Case]]:
    """Return the twenty prompts by ability."""
    return {
        "chains by example": [
            partial(_check_chain, "chain-parse", question) for question in _CHAIN_QUESTIONS
        ],
        "chains by schema": [
            partial(_check_chain, "chain-structured", question) for question in _CHAIN_QUESTIONS
        ],
        "JSON": [partial(_check_json, text, value) for text, value in _JSON_TEXTS],
        "ids": [
            _check_sections,
            _check_paragraphs,
            *(partial(_check_verdict, is_yes) for is_yes in (True, False)),
        ],
        "ranking": [_check_ranking],
        "quotes": [partial(_check_quote, question, gold) for question, gold in _QUOTE_QUESTIONS],
        "abstaining": [partial(_check_abstaining, question) for question in _OPEN_QUESTIONS],
        "context": [partial(_check_context, at_start) for at_start in (True, False)],
    }


@dataclass(slots=True)
class _CountingModel:
    """Sums up the usage of a model, and keeps replies short: small models repeat themselves to the end."""

    model: LanguageModel
    usage: Usage = field(default_factory=Usage)

    @property
    def name(self) -> str:
        return self.model.name

    def complete(self, prompts: Sequence[Prompt]) -> list[Any]:
        completions = self.model.complete(
            [replace(prompt, max_tokens=min(prompt.max_tokens, _MOST_TOKENS)) for prompt in prompts]
        )
        self.usage += sum((completion.usage for completion in completions), Usage())
        return completions


def _ask(model: LanguageModel, prompt: Prompt) -> str:
    return model.complete([prompt])[0].text


def _wrong(reply: str) -> str:
    return f"it wrote {' '.join(reply.split())[:120]!r}"


def _check_chain(prompt: str, question: str, model: LanguageModel) -> str:
    template = load_prompt(prompt, shots=_SHOTS) if prompt == "chain-parse" else load_prompt(prompt)
    chains = ChainWriter(model, template).write(Question(question), TrailRecorder())
    if not chains:
        return "no chain could be read"
    name = question.rpartition(" of ")[2].removeprefix("the film ").rstrip("?")
    chain = chains[0]
    is_right = is_solvable(chain) and len(chain.unknowns) >= 2 and name in str(chain)
    return "" if is_right else f"it wrote {chain}"


def _check_json(text: str, value: Mapping[str, Any], model: LanguageModel) -> str:
    user = f"{text}\n\nReply with one JSON object that has the keys town and year."
    reply = _ask(model, Prompt(user, schema=_JSON_SCHEMA, max_tokens=64, role="structure"))
    return "" if parse_json(reply, _JSON_SCHEMA) == value else _wrong(reply)


def _check_sections(model: LanguageModel) -> str:
    names = ("Ships", "Shipyards", "Dams", "Lighthouses")
    outline = "\n".join(f"[{number}] {name}" for number, name in enumerate(names, 1))
    prompt = load_prompt("drill-sections").render(
        outline=outline, question="Who designed the Corran Light, a lighthouse?"
    )
    reply = _ask(model, prompt)
    indexes, _ = EntryNames([(name,) for name in names], [1, 2, 3, 4]).match_reply(reply)
    return "" if 3 in indexes and len(indexes) <= 2 else _wrong(reply)


def _check_paragraphs(model: LanguageModel) -> str:
    lines = "\n".join(f"{number}: {fact}" for number, fact in enumerate(_FACTS, 1))
    prompt = load_prompt("drill-paragraphs").render(
        question="How much water does the dam hold?", paragraphs=lines
    )
    reply = _ask(model, prompt)
    return "" if parse_numbers(reply, range(1, 4)).chosen == (3,) else _wrong(reply)


def _check_verdict(expected: bool, model: LanguageModel) -> str:
    question = "Who designed the Corran Light?" if expected else "What do apples cost?"
    reply = _ask(model, load_prompt("drill-boolean").render(question=question, paragraph=_FACTS[0]))
    return "" if parse_verdict(reply) is expected else _wrong(reply)


def _check_ranking(model: LanguageModel) -> str:
    template = load_prompt("focus-rerank-list")
    candidates = "\n\n".join(f"[{number}]\n{fact}" for number, fact in enumerate(_FACTS, 1))
    reply = _ask(model, template.render(question="Which dam holds water?", candidates=candidates))
    return "" if parse_ranking(reply, template)[:1] == [3] else _wrong(reply)


def _fact_hits() -> list[Hit]:
    return [
        Hit(
            Node(
                f"facts:{n}", "passage", fact, "facts", "facts.md", n, None, "", 0, None, (), (0, len(fact))
            ),
            1.0,
            (),
        )
        for n, fact in enumerate(_FACTS)
    ]


def _check_quote(question: str, gold: str, model: LanguageModel) -> str:
    reader = CitedReader(model, load_prompt("read-cited"))
    answer = reader.read(Question(question), _fact_hits(), TrailRecorder())
    if answer.abstained:
        return "no answer with a quote that stands in its source"
    return "" if gold.casefold() in answer.text.casefold() else _wrong(answer.text)


def _check_abstaining(question: str, model: LanguageModel) -> str:
    answer = CitedReader(model, load_prompt("read-cited")).read(
        Question(question), _fact_hits(), TrailRecorder()
    )
    return "" if answer.abstained else _wrong(answer.text)


def _check_context(at_start: bool, model: LanguageModel) -> str:
    filler = " ".join(_FACTS[n % 3] for n in range(_FILLER_WORDS // 10))
    code = "The code word is Marlinspike."
    text = f"{code} {filler}" if at_start else f"{filler} {code}"
    reply = _ask(model, Prompt(f"{text}\n\nWhat is the code word? Reply with the word alone.", max_tokens=24))
    return "" if "marlinspike" in reply.casefold() and not is_refusal(reply) else _wrong(reply)
