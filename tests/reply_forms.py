"""120 forms in which language models reply: twelve for each of ten kinds, written down before any of them was tried.

A form has the reply and what it says (``says``), None where it says nothing that may be used. :func:`read_reply`
reads a form with the component that asks for it, behind a model that always gives this reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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


# Chains: "Who is the mother of the director of the film The Salt Orchard?"

_CHAIN = "The Salt Orchard >> director >> #1; #1 >> mother >> #2; final answer: #2"
CHAINS = {
    "the next question of its own": (
        f"{_CHAIN}\n\nQuestion: Which river flows through the town where Ada Strake was born?\n"
        "Reasoning Chain: Ada Strake >> birthplace >> #1; #1 >> river >> #2; final answer: #2",
        _CHAIN,
    ),
    "a sentence before": (f"Here is the reasoning chain for the question:\n\n{_CHAIN}", _CHAIN),
    "a code fence": (f"```\n{_CHAIN}\n```", _CHAIN),
    "a fence with a word, and a sentence after": (
        f"```text\n{_CHAIN}\n```\n\nThis chain first finds the director and then the director's mother.",
        _CHAIN,
    ),
    "numbered lines": (
        "1. The Salt Orchard >> director >> #1\n2. #1 >> mother >> #2\n\nFinal answer: #2",
        _CHAIN,
    ),
    "bold, with a label": (f"**Reasoning Chain:** {_CHAIN}.", _CHAIN),
    "a thought before": (
        "<think>\nThe film is The Salt Orchard. I need its director, #1, then the mother.\n"
        f"So The Salt Orchard >> director >> #1.\n</think>\n\n{_CHAIN}",
        _CHAIN,
    ),
    "an explanation after": (
        f"{_CHAIN}\n\nExplanation: #1 is the director of the film, and #2 is the mother of that director.",
        _CHAIN,
    ),
    "a bullet list with arrows": (
        "- The Salt Orchard → director → #1\n- #1 → mother → #2\n- final answer: #2",
        _CHAIN,
    ),
    "the question repeated": (
        "Question: Who is the mother of the director of the film The Salt Orchard?\n"
        f"Reasoning Chain: {_CHAIN}",
        _CHAIN,
    ),
    "answered, not written": ("The mother of the director of The Salt Orchard is Greta Varnholt.", None),
    "in prose, inline code": (
        f"Sure! The question can be rewritten as `{_CHAIN}`. Let me know if you need anything else!",
        _CHAIN,
    ),
}

# Typed triples: "Which films by David Lynch came out before 1990?"

_TYPED = "#1 : film; #1 >> directed_by >> David Lynch; #1.release_year < 1990; final answer: #1"
_TYPED_JSON = (
    '{"types": [{"of": "#1", "type": "film"}], "triples": [{"quantifier": "", "head": "#1", '
    '"relation": "directed_by", "tail": "David Lynch"}], "conditions": [{"of": "#1", "property": '
    '"release_year", "test": "<", "value": 1990, "high": null}], "wishes": [], "answer": "#1"}'
)
TYPED_TRIPLES = {
    "JSON in a fence": (f"```json\n{_TYPED_JSON}\n```", _TYPED),
    "a sentence before the JSON": (f"Here is the JSON object:\n\n{_TYPED_JSON}", _TYPED),
    "a sentence after the JSON": (
        f"{_TYPED_JSON}\n\nThe unknown #1 stands for the films that the question asks for.",
        _TYPED,
    ),
    "a thought before": (
        '<think>Let me see. {"types": maybe film}. The year is a property.</think>\n' + _TYPED_JSON,
        _TYPED,
    ),
    "single quotes": (_TYPED_JSON.replace('"', "'").replace("null", "None"), _TYPED),
    "empty keys left out": (
        '{"types": [{"of": "#1", "type": "film"}], "triples": [{"head": "#1", "relation": "directed_by", '
        '"tail": "David Lynch"}], "conditions": [{"of": "#1", "property": "release_year", "test": "<", '
        '"value": 1990}], "answer": "#1"}',
        _TYPED,
    ),
    "a number as text": (_TYPED_JSON.replace("1990", '"1990"'), _TYPED),
    "another unknown": (_TYPED_JSON.replace("#1", "?film"), _TYPED),
    "lines of text": (
        "#1 : film\n#1 >> directed_by >> David Lynch\n#1.release_year < 1990\nfinal answer: #1",
        _TYPED,
    ),
    "two objects, the second a correction": (
        '{"types": [], "triples": "none"}\n\nWait, that is not right. The correct object is:\n' + _TYPED_JSON,
        _TYPED,
    ),
    "inside another object": (f'{{"result": {_TYPED_JSON}}}', _TYPED),
    "answered, not written": (
        "The films by David Lynch before 1990 are Eraserhead (1977), The Elephant Man (1980), Dune (1984) and "
        "Blue Velvet (1986).",
        None,
    ),
}

# Section numbers: the right ones are 2 and 4

SECTIONS = (
    "Business", "Risk Factors", "Legal Proceedings", "Results of Operations", "Liquidity", "Controls",
)  # fmt: skip
_TWO_AND_FOUR = (1, 3)
SECTION_NUMBERS = {
    "a list": ("2, 4", _TWO_AND_FOUR),
    "words around": ("Sections 2 and 4", _TWO_AND_FOUR),
    "a sentence": ("The relevant sections are 2 and 4.", _TWO_AND_FOUR),
    "brackets": ("[2], [4]", _TWO_AND_FOUR),
    "a JSON list": ("[2, 4]", _TWO_AND_FOUR),
    "JSON in a fence": ('```json\n{"sections": [2, 4]}\n```', _TWO_AND_FOUR),
    "names with numbers": ("[2] Risk Factors\n[4] Results of Operations (pages 31-40)", _TWO_AND_FOUR),
    "bold names in a list of its own": (
        "1. **Risk Factors** - it lists what may go wrong.\n2. **Results of Operations** - it has the figures.",
        _TWO_AND_FOUR,
    ),
    "a reason after each": (
        "Section 2 (Risk Factors) because it describes the risks, and section 4 (Results of Operations) because "
        "it contains the figures.",
        _TWO_AND_FOUR,
    ),
    "numbers of the document in prose": (
        "Based on the outline, section 2 and section 4 are most likely to contain the 2 figures.",
        _TWO_AND_FOUR,
    ),
    "none": ("None of the sections can help.", ()),
    "no idea": ("I'm sorry, but I don't have enough information to choose.", None),
}

# Paragraph ids: eight paragraphs; the right ones are 3 and 5

PARAGRAPH_IDS = {
    "a list": ("3, 5", (3, 5)),
    "words around": ("Paragraphs 3 and 5", (3, 5)),
    "a sentence": ("The relevant paragraph ids are 3 and 5.", (3, 5)),
    "a sentence without the word": ("3 and 5 contain the relevant information.", (3, 5)),
    "a label": ("**Answer:** 3, 5", (3, 5)),
    "a thought before": ("<think>1 is about ships, 2 about cargo.</think>3,5", (3, 5)),
    "JSON": ('{"paragraph_ids": [3, 5]}', (3, 5)),
    "each with its text": ("3: The yard was built in 1871.\n5: It closed in 1902.", (3, 5)),
    "a reason after the list": ("3, 5\n\nParagraph 3 gives the 1 date and paragraph 5 the other.", (3, 5)),
    "each in a sentence": (
        "Paragraph 3 says when the yard was built. The fifth paragraph, [5], says when it closed.",
        (3, 5),
    ),
    "none": ("None of the paragraphs contain relevant information.", ()),
    "no idea": ("I cannot determine which paragraphs are relevant.", None),
}

# Yes or no

YES_OR_NO = {
    "yes": ("Yes.", True),
    "bold": ("**Yes**, the paragraph contains the date.", True),
    "a label": ("Answer: No", False),
    "a sentence, yes": ("The paragraph does contain relevant information for answering the question.", True),
    "a sentence, no": ("The paragraph does not contain relevant information for the question.", False),
    "a thought before": ("<think>No date here... wait, yes there is one.</think>\nYes", True),
    "a denial in words": ("Based on the text, it isn't relevant.", False),
    "JSON": ('{"relevant": false}', False),
    "repeats the choice": ("Respond with yes or no: yes", True),
    "a reason first": ("It names the builder and the year, so the answer is yes, not no.", True),
    "partly": ("It is relevant: the paragraph gives the builder's name.", True),
    "no idea": ("I would need more context to say.", None),
}

# Rankings: five candidates, best first; numbers from 1. The second half are scores.

RANKINGS = {
    "JSON": ('{"ranking": [3, 1, 5, 2, 4]}', (3, 1, 5, 2, 4), "list"),
    "a bare list": ("[3, 1, 5, 2, 4]", (3, 1, 5, 2, 4), "list"),
    "arrows of rank": ("[3] > [1] > [5] > [2] > [4]", (3, 1, 5, 2, 4), "list"),
    "numbers with commas": ("3, 1, 5, 2, 4", (3, 1, 5, 2, 4), "list"),
    "numbers as text": ('{"ranking": ["3", "1", "5", "2", "4"]}', (3, 1, 5, 2, 4), "list"),
    "brackets as text": ('{"ranking": ["[3]", "[1]", "[5]", "[2]", "[4]"]}', (3, 1, 5, 2, 4), "list"),
    "only the best, in a fence": ('```json\n{"ranking": [3, 1]}\n```', (3, 1, 2, 4, 5), "list"),
    "lines with reasons": (
        "1. Candidate 3: it satisfies both requirements.\n2. Candidate 1: it satisfies one.\n3. Candidate 5",
        (3, 1, 5, 2, 4),
        "list",
    ),
    "a score": ("0.8", 0.8, "score"),
    "a score with a label": ("**Score:** 0.8", 0.8, "score"),
    "a score in a sentence": ("I would give this candidate a score of 0.8 out of 1.0.", 0.8, "score"),
    "no score": ("This candidate is a film from 1984 by another director.", None, "score"),
}

# Memory: "In which town was the father of Ada Strake born?"; #1 is not known, nor is #2

_MEMORY = "Ada Strake >> father >> #1; #1 >> born in >> #2; final answer: #2"
_FILLED = ({1: "Tom Strake", 2: "Ellery"}, "Ellery")
MEMORY = {
    "as asked": (
        "Ada Strake >> father >> Tom Strake; Tom Strake >> born in >> Ellery; final answer: Ellery",
        _FILLED,
    ),
    "the triples in another order": (
        "Tom Strake >> born in >> Ellery; Ada Strake >> father >> Tom Strake; final answer: Ellery",
        _FILLED,
    ),
    "numbered lines": (
        "1. Ada Strake >> father >> Tom Strake\n2. Tom Strake >> born in >> Ellery\n\nFinal answer: Ellery",
        _FILLED,
    ),
    "a sentence before and a fence": (
        "Here is the filled chain:\n```\nAda Strake >> father >> Tom Strake; Tom Strake >> born in >> Ellery; "
        "final answer: Ellery\n```",
        _FILLED,
    ),
    "the next question of its own": (
        "Ada Strake >> father >> Tom Strake; Tom Strake >> born in >> Ellery; final answer: Ellery\n\n"
        "Question: Who built the Corran Light?\nReasoning Chain: Corran Light >> built by >> #1\n"
        "Filled reasoning chain: Corran Light >> built by >> Ada Strake; final answer: Ada Strake",
        _FILLED,
    ),
    "a triple left out": (
        "Tom Strake >> born in >> Ellery; final answer: Ellery",
        ({1: "Tom Strake", 2: "Ellery"}, "Ellery"),
    ),
    "a triple more": (
        "Ada Strake >> occupation >> engineer; Ada Strake >> father >> Tom Strake; Tom Strake >> born in >> "
        "Ellery; final answer: Ellery",
        _FILLED,
    ),
    "unknown in words": (
        "Ada Strake >> father >> Tom Strake; Tom Strake >> born in >> The context does not say.; "
        "final answer: The context does not say.",
        ({1: "Tom Strake"}, ""),
    ),
    "not mentioned": (
        "Ada Strake >> father >> not mentioned; not mentioned >> born in >> unknown; final answer: Not specified",
        ({}, ""),
    ),
    "a final answer in a sentence": (
        "Ada Strake >> father >> Tom Strake; Tom Strake >> born in >> Ellery; The final answer is Ellery.",
        _FILLED,
    ),
    "the relation in other words": (
        "Ada Strake >> father is >> Tom Strake; Tom Strake >> was born in >> Ellery; final answer: Ellery",
        _FILLED,
    ),
    "a refusal": ("I'm sorry, but I don't have information about Ada Strake's father.", ({}, "")),
}

# Cited answers: (answer, the quotes that stand in the sources)

SOURCES = (
    "The Corran Light was designed by Ada Strake and first lit in 1871.",
    "Ada Strake (1834-1902) was an engineer from Saltreach.",
    "The Fenner Dam holds 4 million cubic metres of water.",
)
_CITED = ("Saltreach", ("Ada Strake (1834-1902) was an engineer from Saltreach",))
_CITED_JSON = (
    '{"quotes": [{"source": 2, "text": "Ada Strake (1834-1902) was an engineer from Saltreach"}], '
    '"answer": "Saltreach", "abstain": false}'
)
CITED = {
    "JSON": (_CITED_JSON, _CITED),
    "JSON in a fence": (f"```json\n{_CITED_JSON}\n```", _CITED),
    "a thought before": (f"<think>The designer is Ada Strake.</think>\n{_CITED_JSON}", _CITED),
    "sources as text": (_CITED_JSON.replace('"source": 2', '"source": "[2]"'), _CITED),
    "without abstain": (_CITED_JSON.replace(', "abstain": false', ""), _CITED),
    "quotes as plain text": (
        '{"quotes": ["Ada Strake (1834-1902) was an engineer from Saltreach"], "answer": "Saltreach", '
        '"abstain": false}',
        _CITED,
    ),
    "prose with a quotation": (
        'The answer is Saltreach. Source [2] says: "Ada Strake (1834-1902) was an engineer from Saltreach".',
        ("Saltreach", ("Ada Strake (1834-1902) was an engineer from Saltreach",)),
    ),
    "an answer that refuses": (
        '{"quotes": [{"source": 1, "text": "designed by Ada Strake"}], "answer": "The sources do not say where '
        'the designer was from.", "abstain": false}',
        None,
    ),
    "not mentioned": (
        '{"quotes": [{"source": 3, "text": "The Fenner Dam holds 4 million cubic metres of water"}], '
        '"answer": "Not mentioned in the provided sources.", "abstain": false}',
        None,
    ),
    "a refusal in prose": (
        "I'm sorry, but the sources do not contain the answer to this question.",
        None,
    ),
    "an invented quote": (
        '{"quotes": [{"source": 2, "text": "Ada Strake was born in Ellery"}], "answer": "Ellery", '
        '"abstain": false}',
        None,
    ),
    "cut off after the answer": (
        _CITED_JSON.replace(', "abstain": false}', ', "abst'),
        _CITED,
    ),
}

# Next queries: four of Self-Ask, four of ReAct, four of DSP

NEXT_QUERIES = {
    "Self-Ask: as asked": (
        "Follow up: Who designed the Corran Light?",
        "Who designed the Corran Light?",
        "selfask",
    ),
    "Self-Ask: goes on by itself": (
        "Yes.\nFollow up: Who designed the Corran Light?\nIntermediate answer: Ada Strake\n"
        "Follow up: Where was Ada Strake from?\nIntermediate answer: Saltreach\nSo the final answer is: Saltreach",
        "Who designed the Corran Light?",
        "selfask",
    ),
    "Self-Ask: a final answer in a sentence": (
        "So the final answer is Saltreach.",
        "final: Saltreach",
        "selfask",
    ),
    "Self-Ask: does not know": (
        "So the final answer is: I don't have enough information to answer this question.",
        None,
        "selfask",
    ),
    "ReAct: as asked": (
        "Thought 1: I need the designer.\nAction 1: Search[Corran Light designer]",
        "search: Corran Light designer",
        "react",
    ),
    "ReAct: invents the observation": (
        "I need the designer.\nAction 1: Search[Corran Light]\nObservation 1: It was designed by Ada Strake.\n"
        "Thought 2: So she is from Saltreach.\nAction 2: Finish[Saltreach]",
        "search: Corran Light",
        "react",
    ),
    "ReAct: JSON": (
        '```json\n{"action": "Search", "action_input": "Corran Light designer"}\n```',
        "search: Corran Light designer",
        "react",
    ),
    "ReAct: finishes without an answer": (
        "Thought 3: The passages do not say.\nAction 3: Finish[not mentioned in the passages]",
        None,
        "react",
    ),
    "DSP: as asked": (
        "Summary: The light was designed by Ada Strake.\nSearch query: From which town was Ada Strake?",
        "From which town was Ada Strake?",
        "dsp",
    ),
    "DSP: bold": (
        '**Summary:** The light was designed by Ada Strake.\n\n**Search Query:** "Ada Strake town"',
        "Ada Strake town",
        "dsp",
    ),
    "DSP: no more": (
        "Summary: Ada Strake was from Saltreach.\nSearch query: None, the answer is known.",
        None,
        "dsp",
    ),
    "DSP: not needed, in words": (
        "Summary: Ada Strake was from Saltreach.\nSearch query: No further search is needed.",
        None,
        "dsp",
    ),
}

# Summaries and guides: the words that go on

_FACT = "Ada Strake was an engineer from Saltreach."
SUMMARIES = {
    "guide: as asked": (_FACT, _FACT, "guide"),
    "guide: a label": (f"Output: {_FACT}", _FACT, "guide"),
    "guide: a sentence before": (f"Here is the missing evidence:\n\n{_FACT}", _FACT, "guide"),
    "guide: a thought before": (f"<think>Who designed it? Maybe Ada.</think>\n\n{_FACT}", _FACT, "guide"),
    "guide: only a thought": (
        "<think>Okay, the user wants the missing evidence. Let me see, the",
        None,
        "guide",
    ),
    "guide: the next example of its own": (
        f"{_FACT}\n\nInstruction: What evidence do we need to answer the question given the current evidence?\n\n"
        "Input: Who built the Fenner Dam?",
        _FACT,
        "guide",
    ),
    "guide: a refusal": (
        "I'm sorry, but I cannot provide evidence without more information.",
        None,
        "guide",
    ),
    "summary: as asked": (_FACT, _FACT, "summary"),
    "summary: a sentence before": (
        f"Here is a summary of the section in 64 words:\n\n{_FACT}",
        _FACT,
        "summary",
    ),
    "summary: a label in bold": (f"**Summary:** {_FACT}", _FACT, "summary"),
    "summary: a thought before": (f"<think>The section is short.</think>\n{_FACT}", _FACT, "summary"),
    "summary: a remark after": (
        f"{_FACT}\n\nLet me know if you would like a longer summary!",
        _FACT,
        "summary",
    ),
}

_TABLES: Mapping[str, Mapping[str, tuple[Any, ...]]] = dict(
    zip(
        KINDS,
        (
            CHAINS, TYPED_TRIPLES, SECTION_NUMBERS, PARAGRAPH_IDS, YES_OR_NO, RANKINGS, MEMORY, CITED, NEXT_QUERIES,
            SUMMARIES,
        ),
        strict=True,
    )
)  # fmt: skip
FORMS = tuple(Form(kind, name, *row) for kind, table in _TABLES.items() for name, row in table.items())


#: Written after the forms above were read right, before any of these was tried. Nothing was mended on them.
FRESH = (
    Form(
        "chains",
        "fresh 1",
        "To answer this, we first need the director:\nThe Salt Orchard >> director >> #1\n"
        "Then the mother of that person:\n#1 >> mother >> #2\nFinal Answer: #2",
        _CHAIN,
    ),
    Form(
        "chains",
        "fresh 2",
        "Reasoning Chain:\n\n1) The Salt Orchard >> director >> #1;\n2) #1 >> mother >> #2;\n3) final answer: #2",
        _CHAIN,
    ),
    Form("chains", "fresh 3", '"' + _CHAIN + '"', _CHAIN),
    Form(
        "chains",
        "fresh 4",
        "Chain: (The Salt Orchard, director, #1), (#1, mother, #2); final answer: #2",
        _CHAIN,
    ),
    Form("section numbers", "fresh 1", "I would choose 2 and 4.", (1, 3)),
    Form("section numbers", "fresh 2", "2: Risk Factors, 4: Results of Operations", (1, 3)),
    Form("section numbers", "fresh 3", "Numbers of the sections: 2,4.", (1, 3)),
    Form(
        "section numbers",
        "fresh 4",
        "The answer can be found in Risk Factors and Results of Operations.",
        (1, 3),
    ),
    Form("paragraph ids", "fresh 1", "ids: [3, 5]", (3, 5)),
    Form(
        "paragraph ids",
        "fresh 2",
        "Relevant information is found in paragraphs 3 and 5, since both talk about the yard.",
        (3, 5),
    ),
    Form("paragraph ids", "fresh 3", "#3, #5", (3, 5)),
    Form(
        "paragraph ids", "fresh 4", "The question asks about the yard. Paragraph 3 and paragraph 5.", (3, 5)
    ),
    Form("yes or no", "fresh 1", "No, it does not.", False),
    Form("yes or no", "fresh 2", "I believe the answer would be: yes", True),
    Form("yes or no", "fresh 3", "The paragraph is about something else and is not helpful here.", False),
    Form("yes or no", "fresh 4", "This paragraph provides the date that the question asks for.", True),
    Form("rankings", "fresh 1", "Ranking: 3, 1, 5, 2, 4", (3, 1, 5, 2, 4), "list"),
    Form(
        "rankings",
        "fresh 2",
        "The best candidate is [3], followed by [1], [5], [2] and [4].",
        (3, 1, 5, 2, 4),
        "list",
    ),
    Form("rankings", "fresh 3", "```\n[3, 1, 5, 2, 4]\n```", (3, 1, 5, 2, 4), "list"),
    Form("rankings", "fresh 4", "Score: 4/5", 0.8, "score"),
    Form(
        "memory replies",
        "fresh 1",
        "**Ada Strake >> father >> Tom Strake; Tom Strake >> born in >> Ellery; final answer: Ellery**",
        _FILLED,
    ),
    Form("memory replies", "fresh 2", "#1 = Tom Strake, #2 = Ellery. Final answer: Ellery", _FILLED),
    Form(
        "memory replies",
        "fresh 3",
        "Ada Strake >> father >> Tom Strake; Tom Strake >> born in >> I don't know; final answer: I don't know",
        ({1: "Tom Strake"}, ""),
    ),
    Form(
        "memory replies",
        "fresh 4",
        "Ada Strake >> father >> Tom Strake\nTom Strake >> born in >> Ellery\nSo the final answer: Ellery.",
        _FILLED,
    ),
    Form(
        "cited answers",
        "fresh 1",
        '{"answer": "Saltreach", "quotes": [{"source": "2", '
        '"quote": "Ada Strake (1834-1902) was an engineer from Saltreach"}]}',
        _CITED,
    ),
    Form(
        "cited answers",
        "fresh 2",
        'Answer: Saltreach\nQuote: "Ada Strake (1834-1902) was an engineer from Saltreach" [2]',
        _CITED,
    ),
    Form(
        "cited answers",
        "fresh 3",
        '{"quotes": [], "answer": "There is not enough information in the sources.", "abstain": false}',
        None,
    ),
    Form(
        "cited answers",
        "fresh 4",
        '{"quotes": [{"source": 2, "text": "Ada Strake (1834-1902) was an engineer from Saltreach"}], '
        '"answer": ["Saltreach"], "abstain": false}',
        _CITED,
    ),
    Form(
        "next queries",
        "fresh 1",
        "Follow-up question: **Who designed the Corran Light?**",
        "Who designed the Corran Light?",
        "selfask",
    ),
    Form("next queries", "fresh 2", "Final answer: The passages do not mention it.", None, "selfask"),
    Form(
        "next queries",
        "fresh 3",
        "Action: Search: Corran Light designer",
        "search: Corran Light designer",
        "react",
    ),
    Form("next queries", "fresh 4", "Search query: N/A (the answer is known)", None, "dsp"),
    Form("summaries and guides", "fresh 1", "The missing fact is: " + _FACT, _FACT, "guide"),
    Form("summaries and guides", "fresh 2", '"' + _FACT + '"', _FACT, "guide"),
    Form(
        "summaries and guides",
        "fresh 3",
        "Sure! Here's a concise summary:\n\n" + _FACT + "\n\n(8 words)",
        _FACT,
        "summary",
    ),
    Form(
        "summaries and guides",
        "fresh 4",
        "Summary: " + _FACT + "\n\nSection: Fenner\n\nThe Fenner Dam",
        _FACT,
        "summary",
    ),
)


#: 40 more, as models of several families write them, written down after the reading of all others was settled; first
#: read: benchmarks/read_replies.py --families at the commit that added them.
FAMILIES = (
    # Chains
    Form(
        "chains",
        "Llama: steps in bold",
        "**Step 1:** The Salt Orchard >> director >> #1\n\n**Step 2:** #1 >> mother >> #2\n\n**Final answer:** #2",
        _CHAIN,
    ),
    Form(
        "chains",
        "Gemma: arrows of its own",
        "The Salt Orchard → director → #1; #1 → mother → #2; final answer: #2",
        _CHAIN,
    ),
    Form(
        "chains",
        "Qwen: full-width punctuation",
        "The Salt Orchard >> director >> #1；#1 >> mother >> #2；final answer：#2",
        _CHAIN,
    ),
    Form(
        "chains",
        "base model: answers behind it",
        f"{_CHAIN}\nAnswer: Ilse Varnholt\n\nQuestion: Who wrote Low Water?\nReasoning Chain: Low Water >>",
        _CHAIN,
    ),
    # Typed triples
    Form(
        "typed triples",
        "gpt-oss: the channels' names",
        f"analysisWe need JSON with types and triples.assistantfinal{_TYPED_JSON}",
        _TYPED,
    ),
    Form("typed triples", "Qwen: an empty thought", f"<think>\n\n</think>\n\n{_TYPED_JSON}", _TYPED),
    Form(
        "typed triples",
        "Phi: a remark in the object",
        _TYPED_JSON.replace('"wishes": []', '"wishes": [], // nothing is only wished for\n'),
        _TYPED,
    ),
    Form(
        "typed triples",
        "Mistral: a list of one object",
        f"[{_TYPED_JSON}]",
        _TYPED,
    ),
    # Section numbers
    Form(
        "section numbers",
        "Gemma: a list with reasons",
        "Here's a breakdown of the relevant sections:\n\n* **2** (Risk Factors): names the risks.\n"
        "* **4** (Results of Operations): shows what they cost in 2023.\n",
        (1, 3),
    ),
    Form("section numbers", "Llama: a JSON object", '{"sections": [2, 4]}', (1, 3)),
    Form(
        "section numbers",
        "Phi: a count before",
        "There are 2 relevant sections: 2 and 4.",
        (1, 3),
    ),
    Form(
        "section numbers",
        "SmolLM: the prompt repeated",
        "[1] Business\n[2] Risk Factors\n[3] Legal Proceedings\n[4] Results of Operations\n[5] Liquidity\n"
        "[6] Controls\n\nQuestion: What are the risks?\nAnswer: 2, 4",
        (1, 3),
    ),
    # Paragraph ids
    Form("paragraph ids", "Qwen: boxed", "The relevant paragraphs are \\boxed{3, 5}.", (3, 5)),
    Form("paragraph ids", "Llama: ranges denied", "3 and 5 (not 1, 2 or 4)", (3, 5)),
    Form("paragraph ids", "Gemma: one in each line", "**3**\n**5**\n", (3, 5)),
    Form(
        "paragraph ids",
        "Mistral: none in a sentence",
        "None of the given paragraphs contain information that helps to answer the question.",
        (),
    ),
    # Yes or no
    Form("yes or no", "Qwen: in Chinese", "是", True),
    Form(
        "yes or no", "Llama: the question first", "Does this paragraph help?\n\nYes. It names the date.", True
    ),
    Form(
        "yes or no",
        "Phi: a label and a reason",
        "**Decision:** No\n**Reason:** It says yes to nothing.",
        False,
    ),
    Form(
        "yes or no", "gpt-oss: the channels' names", "analysisThe paragraph names it.assistantfinalyes", True
    ),
    # Rankings
    Form("rankings", "RankGPT: greater than", "[3] > [1] > [5] > [2] > [4]", (3, 1, 5, 2, 4), "list"),
    Form(
        "rankings",
        "Llama: a numbered list",
        "1. Candidate 3\n2. Candidate 1\n3. Candidate 5\n4. Candidate 2\n5. Candidate 4",
        (3, 1, 5, 2, 4),
        "list",
    ),
    Form("rankings", "Gemma: percent", "**Score:** 80%", 0.8, "score"),
    Form("rankings", "Mistral: out of ten", "I would rate this candidate an 8 out of 10.", 0.8, "score"),
    # Memory replies
    Form(
        "memory replies",
        "Llama: a numbered list",
        "1. Ada Strake >> father >> Tom Strake\n2. Tom Strake >> born in >> Ellery\n\n**Final answer:** Ellery",
        _FILLED,
    ),
    Form(
        "memory replies",
        "base model: goes on",
        "Ada Strake >> father >> Tom Strake; Tom Strake >> born in >> Ellery; final answer: Ellery\n\n"
        "Question: Who is the father of Bo Harker?\nTriplet: Bo Harker >> father >> Jan Harker",
        _FILLED,
    ),
    Form(
        "memory replies",
        "Qwen: a doubt in brackets",
        "Ada Strake >> father >> Tom Strake (uncertain); Tom Strake >> born in >> Ellery; final answer: Ellery",
        _FILLED,
    ),
    Form(
        "memory replies",
        "Phi: an apology",
        "I'm sorry, but I don't have specific information about Ada Strake's father.",
        ({}, ""),
    ),
    # Cited answers
    Form(
        "cited answers",
        "gpt-oss: the channels' names",
        f"analysisSource 2 says it.assistantfinal{_CITED_JSON}",
        _CITED,
    ),
    Form(
        "cited answers",
        "Mistral: Python's words",
        _CITED_JSON.replace("false", "False").replace('"', "'"),
        _CITED,
    ),
    Form(
        "cited answers",
        "Gemma: numbers behind the sentence",
        "Ada Strake, who designed the light, was from Saltreach [2].\n\n"
        '* [2]: "Ada Strake (1834-1902) was an engineer from Saltreach"\n\n**Answer:** Saltreach',
        _CITED,
    ),
    Form(
        "cited answers",
        "Llama: abstains in prose",
        "I cannot determine the answer based on the provided sources.",
        None,
    ),
    # Next queries
    Form(
        "next queries",
        "Llama: the exemplar's form in bold",
        " Yes.\n**Follow up:** Who designed the Corran Light?\n**Intermediate answer:** Ada Strake.",
        "Who designed the Corran Light?",
        "selfask",
    ),
    Form(
        "next queries",
        "Qwen: an action as JSON",
        'Thought 1: I need the designer.\nAction 1: {"name": "Search", "argument": "Corran Light designer"}',
        "search: Corran Light designer",
        "react",
    ),
    Form(
        "next queries",
        "Gemma: a query in a fence",
        "The designer is not known yet.\nSearch query:\n```\nWho designed the Corran Light?\n```",
        "Who designed the Corran Light?",
        "dsp",
    ),
    Form(
        "next queries",
        "SmolLM: the question again",
        "No.\nSo the final answer is: Saltreach.\n\nQuestion: Who built the dam?\n"
        "Are follow up questions needed here:",
        "final: Saltreach",
        "selfask",
    ),
    # Summaries and guides
    Form(
        "summaries and guides",
        "Gemma: a heading",
        f"## Summary\n\n{_FACT}",
        _FACT,
        "summary",
    ),
    Form(
        "summaries and guides",
        "Llama: a question behind",
        f"{_FACT}\n\nIs there anything else you would like me to summarise?",
        _FACT,
        "summary",
    ),
    Form(
        "summaries and guides",
        "Mistral: the instruction's end",
        f"[/INST] {_FACT} </s>",
        _FACT,
        "guide",
    ),
    Form(
        "summaries and guides",
        "Qwen: evidence in bold",
        f"**Missing evidence:** {_FACT}",
        _FACT,
        "guide",
    ),
)


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
