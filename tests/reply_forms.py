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

from clew.core.errors import BadCompletion
from clew.core.prompts.replies import is_refusal, parse_json, parse_question, read_text, undress_value
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Completion, Prompt
from clew.core.trail import TrailRecorder
from clew.core.types import Hit, Node, Question
from clew.evaluate.metrics.grading import read_verdict
from clew.methods.baselines import dsp, react, selfask
from clew.methods.chain.unknowns import FilledChain
from clew.methods.chain.writer import ChainWriter, Memory
from clew.methods.d3.chooser import Chooser, Entry
from clew.methods.d3.context_window import ContextWindow
from clew.methods.d3.replies import parse_numbers, parse_verdict
from clew.methods.d3.summarisers import ModelSummariser, SectionText
from clew.methods.focus.triples_writer import TriplesWriter
from clew.methods.kgp.guides import GeneratedEvidence
from clew.methods.prompting import parse_final_answer, parse_label, parse_short_answer
from clew.methods.readers.cited import CitedReader
from clew.models.costs import count_prompt_tokens, count_tokens
from clew.retrieve.reranking import ListwiseReranker, parse_score
from clew.triples.language.chain import ChainError, parse_chain

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


# Replies written by others, by the call that asks for them


_VIADUCT = "Marlow Viaduct >> designer >> #1; #1 >> place of birth >> #2; final answer: #2"
_FILLED = _VIADUCT.replace("#1", "Irene Castell").replace("#2", "Dunmore")
_HARBOUR = ("Dredging", "Light dues", "Warehouses", "Staff")


def read_call(call: str, reply: str) -> Any:
    """Return what the component that makes a call reads in a reply, None where it reads nothing."""
    try:
        return _CALLS[call](reply) or None
    except (BadCompletion, ChainError):
        return None


def expected_of_call(call: str, payload: Any) -> Any:
    """Return what has to be read for a payload: what the payload alone, in the plainest form, stands for."""
    plain = {
        "filled chain": ({1: "Irene Castell", 2: "Dunmore"}, "Dunmore"),
        "section numbers": (1, 4), "paragraph ids": (1, 3), "section names": (0, 1), "yes or no": "no", "score": 0.85,
        "self-ask final": "Dunmore", "chain of thought": "Dunmore", "grade": "1.0", "ranking (JSON)": (2, 1, 3),
        "cited answer (JSON)": ("Irene Castell", ("designed by Irene Castell",)),
    }  # fmt: skip
    return plain.get(call, payload)


def _filled(reply: str) -> tuple[dict[int, str], str] | None:
    filled = FilledChain(parse_chain(_VIADUCT))
    memory = Memory(OneReply(reply), load_prompt("chain-memory"))
    final = memory.recall(
        Question("Where was the designer of the Marlow Viaduct born?"), filled, TrailRecorder()
    )
    return (dict(filled.best_values), final) if final or filled.best_values else None


def _written_chain(reply: str) -> str | None:
    chains = ChainWriter(OneReply(reply), load_prompt("chain-parse")).write(Question("Who?"), TrailRecorder())
    return str(chains[0]) if chains else None


def _object_of(*keys: str) -> Callable[[str], Any]:
    """Return what reads an object with these keys, a list of texts and a text."""
    properties = {keys[0]: {"type": "array", "items": {"type": "string"}}, keys[1]: {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": list(keys)}
    return lambda reply: parse_json(reply, schema)


def _chosen(reply: str, prompt: str, names: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    chooser = Chooser(OneReply(reply), load_prompt(prompt), ContextWindow(count_tokens, count_prompt_tokens))
    return chooser.choose("Which?", [Entry(f"d:{n}", path) for n, path in enumerate(names)]).indexes


def _answered(text: str) -> str | None:
    return None if is_refusal(text) else text


def _quoted(reply: str) -> tuple[str, tuple[str, ...]] | None:
    texts = ("The Marlow Viaduct.", "It was designed by Irene Castell in 1880.")
    hits = [passage(number, text) for number, text in enumerate(texts, 1)]
    reader = CitedReader(OneReply(reply), load_prompt("read-cited"))
    answer = reader.read(Question("Who designed the Marlow Viaduct?"), hits, TrailRecorder())
    return None if answer.abstained else (answer.text, tuple(quote.text for quote in answer.quotes))


def _ranked(reply: str) -> tuple[int | None, ...] | None:
    hits = [passage(number, f"candidate {number}") for number in range(1, 4)]
    trail = TrailRecorder()
    ranked = ListwiseReranker(OneReply(reply), load_prompt("focus-rerank-list")).rerank("Which?", hits, trail)
    is_read = trail.steps[-1].detail.get("unreadable") is None
    return tuple(hit.node.position for hit in ranked) if is_read else None


def _verdict(reply: str) -> str | None:
    verdict = parse_verdict(reply)
    return None if verdict is None else "yes" if verdict else "no"


def _answered_shortly(reply: str) -> str | None:
    return _answered(parse_short_answer(reply))


def _acted(reply: str) -> str:
    step = react.parse_reply(reply)
    return f"{step.action}: {step.argument}"


def _triples(head: str, **more: str) -> dict[str, Any]:
    return {"triples": [more | {"head": head, "relation": "designer", "tail": "#1"}], "answer": "#1"}


def _extraction(name: str) -> dict[str, Any]:
    return {"entities": [{"name": name, "type": "bridge"}], "triples": _triples(name)["triples"]}


def _citation(name: str) -> dict[str, Any]:
    quote = {"source": 2, "text": f"designed by {name}"}
    return {"quotes": [quote], "why": "The source says so.", "answer": name, "missing": ""}


def _graph_query(name: str) -> dict[str, Any]:
    return {"statements": [f"{name} >> designer >> #1"], "operation": "list", "property": ""}


def _structure_query(number: int) -> dict[str, Any]:
    structure = dict.fromkeys(("name", "page", "relation", "beside", "document")) | {
        "kind": "table",
        "number": number,
    }
    return {"operation": "show", "counted": None, "structures": [structure], "text": None}


_CALLS: Mapping[str, Callable[[str], Any]] = {
    "chain": _written_chain,
    "hop answer": _answered_shortly,
    "single-hop question": parse_question,
    "filled chain": _filled,
    "section numbers": lambda reply: _chosen(reply, "drill-sections", [(name,) for name in SECTIONS]),
    "paragraph ids": lambda reply: parse_numbers(reply, range(1, 9)).chosen,
    "section names": lambda reply: _chosen(
        reply, "drill-sections", [("Harbour Report", name) for name in _HARBOUR]
    ),
    "yes or no": _verdict,
    "score": parse_score,
    "short answer": _answered_shortly,
    "chain of thought": lambda reply: _answered(parse_final_answer(reply)),
    "self-ask final": lambda reply: selfask.parse_reply(reply).final,
    "grade": lambda reply: str(read_verdict(reply)),
    "next evidence": read_text,
    "triples (JSON)": _object_of("triples", "answer"),
    "cited answer (JSON)": _quoted,
    "chain (JSON)": _object_of("chain", "answer"),
    "ranking (JSON)": _ranked,
}


# Every prompt of the package, in every dressing


#: What is read of a reply to a prompt without a schema: how, a value, and another that it must not be taken for.
TEXTS: Mapping[str, tuple[Callable[[str], Any], str, str]] = {
    "answer-none": (_answered_shortly, "Dunmore", "Kelso"),
    "chain-answer": (_answered_shortly, "Dunmore", "Kelso"),
    "chain-memory": (_filled, _FILLED, _FILLED.replace("Dunmore", "Kelso")),
    "chain-memory-claim": (_filled, _FILLED, _FILLED.replace("Dunmore", "Kelso")),
    "chain-parse": (_written_chain, _VIADUCT, _VIADUCT.replace("Marlow", "Holme")),
    "chain-parse-claim": (_written_chain, _VIADUCT, _VIADUCT.replace("Marlow", "Holme")),
    "chain-question": (parse_question, "Who designed the Marlow Viaduct?", "Who built the Holme Viaduct?"),
    "cot": (
        _CALLS["chain of thought"],
        "She was born in Dunmore. So the answer is: Dunmore.",
        "So the answer is: Kelso.",
    ),
    "cot-claim": (
        parse_label,
        "It was built in 1880. So the answer is: REFUTES.",
        "So the answer is: SUPPORTS.",
    ),
    "drill-boolean": (_verdict, "no", "yes"),
    "drill-documents": (_CALLS["section numbers"], "2, 5", "1, 3"),
    "drill-paper": (_CALLS["section names"], "Dredging, Light dues", "Warehouses, Staff"),
    "drill-paragraphs": (_CALLS["paragraph ids"], "1, 3", "2, 4"),
    "drill-sections": (_CALLS["section numbers"], "2, 5", "1, 3"),
    "drill-summarise": (read_text, "The harbour was dredged twice.", "The harbour is deep."),
    "drill-text": (read_text, "The harbour was dredged twice.", "The harbour is deep."),
    "dsp-search": (
        lambda reply: dsp.parse_reply(reply)[1],
        "Query: Irene Castell birthplace",
        "Query: Holme Viaduct",
    ),
    "fewshot": (_answered_shortly, "Dunmore", "Kelso"),
    "fewshot-claim": (parse_label, "REFUTES", "SUPPORTS"),
    "focus-rerank": (parse_score, "0.85", "0.2"),
    "grade": (_CALLS["grade"], "1", "0"),
    "ircot-reason": (read_text, "Irene Castell designed the viaduct.", "Tom Strake built it."),
    "kgp-generate": (read_text, "The designer was born in a harbour town.", "The designer was tall."),
    "kgp-listing1": (read_text, "The designer was born in a harbour town.", "The designer was tall."),
    "kgp-prefix": (read_text, "The designer was born in a harbour town.", "The designer was tall."),
    "kgp-read": (undress_value, "Dunmore", "Kelso"),
    "react": (
        _acted,
        "Thought 1: I need her birthplace.\nAction 1: Search[Irene Castell]",
        "Action 1: Search[Holme Viaduct]",
    ),
    "selfask": (
        lambda reply: selfask.parse_reply(reply).final,
        "So the final answer is: Dunmore.",
        "So the final answer is: Kelso.",
    ),
    "stand-alone": (parse_question, "Who designed the Marlow Viaduct?", "Who built the Holme Viaduct?"),
}

#: A valid object for each prompt with a schema, and another.
OBJECTS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "chain-structured": (_triples("Marlow Viaduct"), _triples("Holme Viaduct")),
    "extract-triples": (_extraction("Marlow Viaduct"), _extraction("Holme Viaduct")),
    "focus-rerank-list": ({"ranking": [2, 1, 3]}, {"ranking": [3, 1, 2]}),
    "focus-triples": (
        {"types": [], "conditions": [], "wishes": []} | _triples("Marlow Viaduct", quantifier=""),
        {"types": [], "conditions": [], "wishes": []} | _triples("Holme Viaduct", quantifier=""),
    ),
    "focus-triplets": ({"types": []} | _triples("Marlow Viaduct"), {"types": []} | _triples("Holme Viaduct")),
    "graph-query": (_graph_query("Marlow Viaduct"), _graph_query("Holme Viaduct")),
    "link-entity": ({"choice": 3}, {"choice": 1}),
    "read-cited": (_citation("Irene Castell"), _citation("Tom Strake")),
    "structure-query": (_structure_query(3), _structure_query(4)),
    "table-sql": ({"sql": "SELECT 1", "abstain": False}, {"sql": "SELECT 2", "abstain": False}),
}


def dress_prompt(name: str) -> list[tuple[str, str]]:
    """Return the replies to a prompt, each with the name of its dressing."""
    lines = (Path(__file__).parent / "data" / "dressings.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["of"] == ("json" if name in OBJECTS else "text")]
    value, other = map(json.dumps, OBJECTS[name]) if name in OBJECTS else TEXTS[name][1:]
    return [(row["name"], row["form"].replace("{other}", other).replace("{}", value)) for row in rows]


def read_dressed(name: str, reply: str) -> tuple[Any, Any]:
    """Return what a reply to a prompt is read as, and what it says; None if nothing is read."""
    if name in OBJECTS:
        read, value = load_prompt(name).parse, OBJECTS[name][0]
    else:
        read, value = TEXTS[name][0], TEXTS[name][0](TEXTS[name][1])
    try:
        return read(reply) or None, value
    except (BadCompletion, ChainError):
        return None, value
