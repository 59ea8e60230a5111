"""120 forms in which language models reply: twelve for each of ten kinds, written down before any of them was tried.

A form is a line of ``data/reply_forms.jsonl``: the reply, and what it says (``says``), null where it says nothing
that may be used. :func:`read_reply` reads a form with the component that asks for it, behind a model that always
gives this reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Completion, Prompt
from clew.core.trail import TrailRecorder
from clew.core.types import Hit, Node, Question
from clew.methods.baselines import dsp, react, selfask
from clew.methods.chain.unknowns import FilledChain
from clew.methods.chain.writer import ChainWriter, Memory
from clew.methods.d3.chooser import Chooser, Entry
from clew.methods.d3.context_window import ContextWindow
from clew.methods.d3.replies import parse_numbers, parse_verdict
from clew.methods.d3.summarisers import ModelSummariser, SectionText
from clew.methods.focus.triples_writer import TriplesWriter
from clew.methods.kgp.guides import GeneratedEvidence
from clew.methods.readers.cited import CitedReader
from clew.models.costs import count_prompt_tokens, count_tokens
from clew.retrieve.reranking import ListwiseReranker, parse_score
from clew.triples.language.chain import parse_chain

KINDS = (
    "chains", "typed triples", "section numbers", "paragraph ids", "yes or no", "rankings", "memory replies",
    "cited answers", "next queries", "summaries and guides",
)  # fmt: skip


@dataclass(frozen=True)
class Form:
    """A reply, and what it says; ``reader`` tells components of one kind apart."""

    kind: str
    name: str
    reply: str
    says: Any
    reader: str = ""


@dataclass(frozen=True)
class OneReply:
    """A model that gives the same reply to every prompt."""

    reply: str
    name: str = "fixed"

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        return [Completion(self.reply, model=self.name) for _ in prompts]


SECTIONS = (
    "Business", "Risk Factors", "Legal Proceedings", "Results of Operations", "Liquidity", "Controls",
)  # fmt: skip
SOURCES = (
    "The Corran Light was designed by Ada Strake and first lit in 1871.",
    "Ada Strake (1834-1902) was an engineer from Saltreach.",
    "The Fenner Dam holds 4 million cubic metres of water.",
)
_MEMORY = "Ada Strake >> father >> #1; #1 >> born in >> #2; final answer: #2"


def _load(name: str) -> tuple[Form, ...]:
    """Return the forms of a set: ``first``, ``fresh`` or ``families``."""
    lines = (Path(__file__).parent / "data" / "reply_forms.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row.pop("set") == name]
    return tuple(Form(**row | {"says": _freeze(row["says"])}) for row in rows)


def _freeze(value: Any) -> Any:
    """Return a value of JSON with tuples for lists, and numbers of unknowns as keys."""
    if isinstance(value, dict):
        return {int(key): text for key, text in value.items()}
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


FORMS = _load("first")
#: Written after the forms above were read right, before any of these was tried. Nothing was mended on them.
FRESH = _load("fresh")
#: 40 more, as models of several families write them, written down after the reading of all others was settled; first
#: read: benchmarks/read_replies.py --families at the commit that added them.
FAMILIES = _load("families")


def read_reply(form: Form) -> Any:
    """Return what the component that asks for a form reads in it, None where it refuses it."""
    return _READERS[form.kind](form)


def read_as(form: Form) -> str:
    """Return ``right``, ``wrong`` or ``refused``: what the component makes of a form."""
    value = read_reply(form)
    if value == form.says:
        return "right"
    return "refused" if value is None else "wrong"


def passage(number: int, text: str) -> Hit:
    """Return a passage as a hit."""
    id = f"d:{number}"
    node = Node(id, "passage", text, "d", f"source{number}.md", number, None, "", 0, None, (), (0, len(text)))
    return Hit(node, 1.0 / (number + 1), (id,))


def _chain(form: Form) -> str | None:
    writer = ChainWriter(OneReply(form.reply), load_prompt("chain-parse"))
    question = Question("Who is the mother of the director of the film The Salt Orchard?")
    chains = writer.write(question, TrailRecorder())
    return str(chains[0]) if chains else None


def _read_typed(form: Form) -> str | None:
    model = OneReply(form.reply)
    writer = TriplesWriter(model, load_prompt("focus-triples"))
    chains = writer.write(Question("Which films by David Lynch came out before 1990?"), [], TrailRecorder())
    return str(chains[0]) if chains else None


def _sections(form: Form) -> tuple[int, ...] | None:
    window = ContextWindow(count_tokens, count_prompt_tokens)
    chooser = Chooser(OneReply(form.reply), load_prompt("drill-sections"), window)
    choice = chooser.choose(
        "What are the risks?", [Entry(f"d:{n}", (name,)) for n, name in enumerate(SECTIONS)]
    )
    is_refused = not choice.indexes and choice.unmatched
    return None if is_refused else choice.indexes


def _paragraphs(form: Form) -> tuple[int, ...] | None:
    numbers = parse_numbers(form.reply, range(1, 9))
    return numbers.chosen if numbers.readable else None


def _ranking(form: Form) -> Any:
    if form.reader == "score":
        return parse_score(form.reply)
    hits = [passage(number, f"candidate {number}") for number in range(1, 6)]
    trail = TrailRecorder()
    reranker = ListwiseReranker(OneReply(form.reply), load_prompt("focus-rerank-list"))
    ranked = reranker.rerank("Which candidate?", hits, trail)
    is_refused = trail.steps[-1].detail.get("unreadable") is not None
    return None if is_refused else tuple(hit.node.position for hit in ranked)


def _memory(form: Form) -> tuple[dict[int, str], str]:
    filled = FilledChain(parse_chain(_MEMORY))
    memory = Memory(OneReply(form.reply), load_prompt("chain-memory"))
    final = memory.recall(Question("Where was the father of Ada Strake born?"), filled, TrailRecorder())
    return dict(filled.best_values), final


def _read_cited(form: Form) -> tuple[str, tuple[str, ...]] | None:
    hits = [passage(number, text) for number, text in enumerate(SOURCES, 1)]
    reader = CitedReader(OneReply(form.reply), load_prompt("read-cited"))
    answer = reader.read(
        Question("From which town was the designer of the Corran Light?"), hits, TrailRecorder()
    )
    return None if answer.abstained else (answer.text, tuple(quote.text for quote in answer.quotes))


def _next_query(form: Form) -> str | None:
    if form.reader == "selfask":
        move = selfask.parse_reply(form.reply)
        return move.question or (f"final: {move.final}" if move.final else None)
    if form.reader == "react":
        step = react.parse_reply(form.reply)
        return f"{step.action}: {step.argument}" if step.action else None
    return dsp.parse_reply(form.reply)[1] or None


def _summary(form: Form) -> str | None:
    model = OneReply(form.reply)
    if form.reader == "guide":
        texts, _ = GeneratedEvidence(model, load_prompt("kgp-generate")).expect("Who?", [["A passage."]])
        return None if texts == ["Who? A passage."] else texts[0]
    summariser = ModelSummariser(model, load_prompt("drill-summarise"), 64, 1_000, count_tokens)
    return summariser.summarise([SectionText("Corran", ("The Corran Light.",))])[0] or None


_READERS: Mapping[str, Callable[[Form], Any]] = dict(
    zip(
        KINDS,
        (
            _chain, _read_typed, _sections, _paragraphs, lambda form: parse_verdict(form.reply), _ranking, _memory,
            _read_cited, _next_query, _summary,
        ),
        strict=True,
    )
)  # fmt: skip
