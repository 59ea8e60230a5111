"""A small mutation fuzzer: documents, graphs, questions, their languages, recipes, replies of models, requests.

    python tests/fuzz.py [--seconds 60] [--seed 0] [--from N] [TARGET ...]     # make fuzz
    python tests/fuzz.py --totals                                             # what was tried until now

Seconds are those of this process's processor time, so that a busy machine tries as many cases as an idle one. Case
number N of a target depends on the seed and N alone. What was tried is recorded in build/fuzz/runs.jsonl, a line for
each run of a target: the same command goes on where the last run of its seed ended; ``--from`` meets a fault again.
Anything but a ClewError, or a case of over ten seconds of processor time, is a fault: its bytes are written to
build/fuzz, its traceback printed, and the exit status is 1. The corpus is the samples, tests/data/formats and
tests/data/fuzz.
Of a package of ZIP (a Word document, a book), mostly one part is changed and packed again: a changed byte of a packed
file ends at its checksum. Graphs are read in columns and row by row. "ask" answers over the samples, "model" with a
model that gives changed replies, "store" stores a document, asks about it and removes it. JSON, forms and addresses
are sent to a server in this process, over a base with a document; a reply of 500 is a fault.
"""

from __future__ import annotations

import argparse
import atexit
import io
import itertools
import json
import logging
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.parse import quote

import numpy as np

import clew
from clew.core.component import parse_recipe
from clew.core.document_filter import parse_condition
from clew.core.errors import ClewError
from clew.core.prompts.replies import clean_reply, is_refusal, parse_json, read_text
from clew.core.protocols import Completion, Prompt
from clew.core.types import Location, Table
from clew.core.values import find_dates
from clew.knowledge_base.knowledge_base import MAX_QUESTION
from clew.methods.baselines import dsp, react, selfask
from clew.methods.d3.replies import EntryNames, parse_numbers, parse_verdict
from clew.methods.prompting import parse_final_answer, parse_label, parse_short_answer
from clew.methods.readers.composition import compose_question
from clew.methods.readers.spans import RULED_LENGTH
from clew.parse.data_tables import build_data_table
from clew.parse.documents.reader import parse
from clew.questions.outline_plans import find_numbers
from clew.questions.sequences import rank_splits, split_parts
from clew.questions.table_catalogue import CELL_FEATURES, COLUMN_FEATURES, TableCatalogue
from clew.questions.table_query import TableArrays
from clew.questions.table_reading import read_tables
from clew.questions.text import QuestionText
from clew.retrieve.reranking import parse_score
from clew.triples.language.chain import parse_chain, parse_chain_reply
from clew.triples.language.typed_parsing import parse_typed
from kb_documents import HashEncoder

sys.path.insert(0, str(Path(__file__).parent))
from bad_files import changed_zip, good_msg, good_pdf, plain_pdf
from film_world import films
from graph_reading import read_both_ways, small_blocks
from malformed import MALFORMED
from reply_forms import FORMS
from serve_app import BOUNDARY, ServedApp, multipart

ROOT = Path(__file__).parents[1]
FAULTS = ROOT / "build" / "fuzz"
RUNS = FAULTS / "runs.jsonl"
#: Where documents to change are. Those of tests/data/fuzz were taken from the tests of the parsers: each reaches
#: lines that no other reaches.
CORPUS = ("samples/documents", "tests/data/formats", "tests/data/fuzz")
#: Questions about the samples.
QUESTIONS = ("samples/questions.jsonl", "samples/mixed-questions.jsonl", "benchmarks/data/structure.jsonl")
#: Seconds of processor time that a case may take.
CASE_SECONDS = 10.0
#: Larger parts of a package are not changed: a case would be mostly the same bytes.
MAX_PART = 100_000
MARKS = [
    b"<",
    b">",
    b"&",
    b'"',
    b"|",
    b"\n",
    b"\0",
    b"\xff",
    b"#",
    b">>",
    b"(",
    b")",
    b";",
    b"{",
    b"[",
    b"=",
    b"\\",
    b"'",
    b" ",
    b"\t",
    b", ",
    # Python reads no integer of more than 4,300 digits.
    b"9" * 5000,
    b"1e400",
    b"-1",
    "\u202e\u0663\u00bd".encode(),
    # JSON may name half of a character, which UTF-8 cannot write.
    rb"\ud800",
    rb"\u0000",
    b"NaN",
    b"null",
    b"[]",
    b"{}",
    b"0000-02-30",
]
#: Open until this program ends.
RESOURCES = ExitStack()
atexit.register(RESOURCES.close)
Target = tuple[Callable[[bytes], object], list[bytes]]


def list_samples(suffix: str) -> list[Path]:
    """Return the samples with a suffix."""
    return sorted(path for folder in CORPUS for path in (ROOT / folder).glob(f"*.{suffix}"))


def document_target(suffix: str, *corpus: bytes) -> Target:
    """Change the samples with a suffix, and further content of such files."""
    return lambda data: parse(data, f"a.{suffix}"), [*corpus, *(p.read_bytes() for p in list_samples(suffix))]


def documents_target(*suffixes: str) -> Target:
    """Change the samples with one of the suffixes, or the suffix."""
    corpus = [(suffix, path.read_bytes()) for suffix in suffixes for path in list_samples(suffix)]
    return named_target(lambda suffix, data: parse(data, f"a.{suffix or suffixes[0]}"), corpus)


def named_target(read: Callable[[str, bytes], object], corpus: list[tuple[str, bytes]]) -> Target:
    """Change content of several forms: a case is a name (the suffix of a file), a line feed, and the content."""

    def read_case(case: bytes) -> None:
        name, _, content = case.partition(b"\n")
        read(name.decode("ascii", "ignore"), content)

    return read_case, [b"%s\n%s" % (name.encode(), content) for name, content in corpus]


def package_target(*paths: Path) -> Target:
    """Change packages of ZIP, or a part of one: such a case is the name of the package, that of the part and its
    content, each on a line of its own."""
    packages = {path.name: path.read_bytes() for path in paths}
    corpus = list(packages.values())
    for file, data in packages.items():
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            parts = [info for info in package.infolist() if 0 < info.file_size <= MAX_PART]
            corpus += [b"%s\n%s\n%s" % (file.encode(), p.filename.encode(), package.read(p)) for p in parts]

    def read(case: bytes) -> None:
        file, _, rest = case.partition(b"\n")
        name, _, content = rest.partition(b"\n")
        data = packages.get(file.decode("ascii", "ignore"))
        if data is not None:
            part = name.decode("utf-8", "replace")[:200].partition("\0")[0].strip("/") or "part"
            case = changed_zip(data, {part: content})
        parse(case, paths[0].name)

    return read, corpus


def read_questions(file: str) -> list[str]:
    """Return the questions in a file of the repository."""
    return [json.loads(line)["question"] for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]


def text_target(function: Callable[[str], object], *corpus: str) -> Target:
    return lambda data: function(data.decode("utf-8", "replace")), [text.encode() for text in corpus]


def graph_target(*files: tuple[str, bytes]) -> Target:
    """Read the content as a file of a graph with one of the suffixes, bad rows skipped, in columns and row by row:
    two graphs that differ are a fault."""
    known = {suffix for suffix, _ in files}

    def read(suffix: str, data: bytes) -> None:
        with small_blocks():
            read_both_ways(f"graph.{suffix if suffix in known else files[0][0]}", data, skip=True)

    return named_target(read, list(files))


@lru_cache(maxsize=1)
def start_server() -> ServedApp:
    """Start a server over a new base with two documents and a graph; it ends with this program."""
    folder = temporary_folder()
    (folder / "a.md").write_bytes(NOTES)
    (folder / "b.pdf").write_bytes(good_pdf())
    (folder / "people.tsv").write_text("Ada\tknows\tBo\n", encoding="utf-8")
    with clew.open(folder / "kb", create=True) as base:
        base.add([folder / "a.md", folder / "b.pdf"])
        base.graphs.add([folder / "people.tsv"])
    return RESOURCES.enter_context(ServedApp(folder / "kb", encoder="none"))


@lru_cache(maxsize=1)
def make_base() -> clew.KnowledgeBase:
    """Return a new base with the sample documents, their graph and a graph of films."""
    base = RESOURCES.enter_context(clew.open(temporary_folder() / "kb", create=True))
    base.add([ROOT / "samples" / "documents"])
    base.graphs.add(sorted((ROOT / "samples" / "graphs").glob("*.tsv")))
    films(base.store)  # type: ignore[no-untyped-call]
    return base


@lru_cache(maxsize=1)
def make_empty_base() -> clew.KnowledgeBase:
    """Return a new base without documents."""
    return RESOURCES.enter_context(clew.open(temporary_folder() / "kb", create=True))


def temporary_folder() -> Path:
    """Return a new folder that goes with this program."""
    return Path(RESOURCES.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))


def ask(recipe: str, text: bytes) -> None:
    """Answer a question, or triples, from the base of the samples, without a language model. A question is as long as
    the longest that a server takes: answering takes about a millisecond for each character."""
    question = text.decode("utf-8", "replace")[:LONGEST_SERVED]
    if recipe in TRIPLES:
        make_base().ask("", chain=question, recipe=recipe)
    else:
        make_base().ask(question, recipe=recipe if recipe in RECIPES else "default")


@dataclass(frozen=True)
class ChangedModel:
    """A model that gives the changed reply to about half of its prompts, and one of many real wordings to others."""

    reply: str
    rng: random.Random
    name: str = "changed"

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        return [
            Completion(self.rng.choice([self.reply, self.rng.choice(FORMS).reply]), model=self.name)
            for _ in prompts
        ]


def ask_model(recipe: str, reply: bytes) -> None:
    """Answer a question with a model that replies in a changed wording."""
    rng = random.Random(reply)
    model = ChangedModel(reply.decode("utf-8", "replace")[:MAX_REPLY], rng)
    recipe = recipe if recipe in MODEL_RECIPES else "default"
    answer = make_base().ask(rng.choice(MODEL_QUESTIONS), recipe=recipe, llm=model)
    json.dumps(answer.to_dict()).encode()


def store_document(suffix: str, data: bytes) -> None:
    """Store a document in a base, ask about words of it, read its tables, and remove it."""
    parsed = parse(data, f"a.{suffix or 'md'}")
    base, place = make_empty_base(), Location(f"/a.{suffix}", "/", len(data), 0, 0)
    base.store.put_document(parsed, place)
    words = re.findall(r"\w{3,40}", parsed.text)[:2000] or ["a"]
    rng = random.Random(data)
    first, second, third = rng.choices(words, k=3)
    with suppress(ClewError):
        base.ask(f"What was the {first} of {second} {third} in 2021?", recipe=rng.choice(RECIPES))
    base.tables.list()
    base.remove(place.path)


def request_target(content_type: str, requests: list[tuple[str, bytes]]) -> Target:
    """Send the content as the body of a request to one of the places; those that begin with "." lie below the
    base."""
    places = {place for place, _ in requests}

    def send(place: str, data: bytes) -> None:
        server = start_server()
        path = place if place in places else requests[0][0]
        path = path.replace(".", server.api, 1) if path.startswith(".") else path
        status, _, reply = server.request("POST", path, data, {"Content-Type": content_type})
        if (status >= 500 and status != 503) or b"Traceback" in reply:
            raise RuntimeError(f"{path}: {status} {reply[:300]!r}")

    return named_target(send, requests)


@lru_cache(maxsize=1)
def start_work() -> dict[bytes, bytes]:
    """Let the server answer a question and fill a grid; return the words that stand in addresses for their ids, and
    for the key of its PDF: they differ from run to run."""
    server = start_server()
    _, listed = server.get(f"{server.api}/documents")
    [key] = [item["key"] for item in listed["documents"] if item["key"] != KEY.decode()]
    _, started = server.post(f"{server.api}/questions", {"question": "What is x?"})
    list(server.events(started["events"]))
    _, grid = server.post(f"{server.api}/grids", {"questions": ["What is x?"], "documents": [KEY.decode()]})
    return {b"PDF": key.encode(), b"QUESTION": started["id"].encode(), b"GRID": grid["id"].encode()}


def get_address(address: bytes) -> None:
    """Get an address of the server."""
    for word, id in start_work().items():
        address = address.replace(word, id)
    # A longer address is more than a server reads: it ends the connection.
    path = quote(address[:MAX_ADDRESS], safe="/?&=%:+,;!*'()[]~@$")
    status, _, reply = start_server().request("GET", path)
    if (status >= 500 and status != 503) or b"Traceback" in reply:
        raise RuntimeError(f"{path[:300]}: {status} {reply[:300]!r}")


def read_question(text: str) -> None:
    """Read a question as all that look for a form of question do; the limits on its length are theirs."""
    text = " ".join(text[:MAX_QUESTION].split())
    for form in (
        lambda text: find_numbers(QuestionText(text)),
        split_parts,
        lambda text: rank_splits(QuestionText(text)),
        find_dates,
        find_table_options,
    ):
        form(text)
    if len(text) <= RULED_LENGTH:
        for rule in RULES:
            rule(text)


def read_reply(text: str) -> None:
    """Read a reply of a model as each method does."""
    for form in REPLIES:
        with suppress(ClewError):
            form(text)
    parse_json(text, SCHEMA)


def find_table_options(text: str) -> int:
    """Return how many queries over a table a question may mean."""
    ones = np.ones(len(COLUMN_FEATURES)), np.ones(len(CELL_FEATURES))
    return len(read_tables(QuestionText(text), [make_catalogue()], *ones, HashEncoder()).options)


@lru_cache(maxsize=1)
def make_catalogue() -> TableCatalogue:
    """Return a table of which questions may be asked."""
    header = ("Voyage", "Departed", "Vessel", "Cargo", "Tons", "Insured")
    rows = (
        ("V1", "1928-03-02", "Heron Maid", "Salt", "120", "yes"),
        ("V2", "1929-01-05", "Tern", "Coal", "80", "no"),
    )
    table = build_data_table(Table(header, rows), "v:", 1)
    return TableCatalogue(TableArrays(replace(table, name="voyages")))


#: What looks for a form of question in short ones alone.
RULES: tuple[Callable[[str], object], ...] = (compose_question,)
#: The entries that a reply may name.
ENTRIES = EntryNames([["1. Scope"], ["2. Tolls", "Boats"], ["3. A, B and C"]])
REPLIES: tuple[Callable[[str], object], ...] = (
    clean_reply,
    read_text,
    is_refusal,
    partial(parse_numbers, offered=range(1, 40)),
    parse_verdict,
    ENTRIES.match_reply,
    selfask.parse_reply,
    dsp.parse_reply,
    react.parse_reply,
    parse_final_answer,
    parse_short_answer,
    parse_label,
    parse_score,
    parse_chain_reply,
    parse_typed,
)


PAGE = b"<html><title>T</title><body><h1>A</h1><table><tr><th colspan=2>a<td>b</table><ul><li>c<ol start=3><li>d</ul>"
NOTES = b"# A\n\n| a | b |\n| - | -: |\n| 1 | 2 |\n\n1. x\n   - y\n\n> q\n\n```\ncode\n```\n[l](http://x) ![i](y)\n"
#: The key of NOTES in a base.
KEY = parse(NOTES, "a.md").key.encode()
SCHEMA = {
    "type": "object",
    "properties": {
        "quotes": {
            "type": "array",
            "items": {"type": "object", "properties": {"source": {"type": "integer"}}},
        },
        "answer": {"type": "string"},
    },
}
#: The methods that need no language model; those of the second line take triples.
RECIPES = ("default", "mixed", "tables", "graph", "kgp", "read")
TRIPLES = {
    "chain": [
        "The Salt Orchard >> directed_by >> #1; #1 >> born_in >> #2; final answer: #2",
        "Heron Maid >> commanded by >> #1; #1 >> married to >> #2; #2 >> paid >> #3; final answer: #3",
    ],
    "focus": [
        "#1 : film; not #1 >> starred_actors >> Dorte Halvik; #1.release_year > 1931",
        "#1 >> starred_actors >> #2; #2 >> born_in >> Dunmere or Vessby; #1 ~ slow and dreamlike; final answer: #1",
        '#1 : person or town; #1 << directed_by or starred_actors << Low Water; #1 != "Emil Szarka"',
        "at least 2 #1 >> starred_actors >> #2; #2 >> born_in >> Saltreach; final answer: #1",
        "#1 : film; most #1 >> starred_actors >> #2; final answer: #1",
        "only #1 >> starred_actors >> #2; #2 >> born_in >> #3; #3 = Dunmere; final answer: #1",
        "#1 >> directed_by >> Marit Solheim; highest #1.release_year; #1.release_year between 1930 and 1940",
        "#1 >> directed_by >>+ #2; #1 >> starred_actors >> #2; final answer: #2",
    ],
}
MODEL_QUESTIONS = (
    "Who is the mother of the director of the film The Salt Orchard?",
    "Which films with Emil Szarka came out before 1935 and are slow and dreamlike?",
    "Which firm built the craft commanded by Ottilie Brandt, and what is the weekly wage of its mate?",
    "What is the total weekly wage by vessel?",
)
#: Methods that ask a model, each with what makes it ask most often.
MODEL_RECIPES = (
    "default",
    "kgp",
    "chain(samples=2)",
    "focus(samples=2)",
    "focus(paper=yes)",
    "cot(retriever=bm25, samples=2)",
    "iterretgen(final=model)",
    "react",
    "selfask",
    "dsp",
    "ircot",
    "tables",
    "mixed",
    "read(retriever=drill)",
    "read(retriever=reranked)",
    "read(reader=cited)",
)
TARGETS: dict[str, Target] = {
    "html": document_target("html", PAGE),
    "markdown": document_target("md", NOTES),
    "text": document_target("txt", b"Title\n\n1. A line.\n\n2. Another one, that goes on.\n" * 3),
    "csv": document_target("csv", b'name,year\n"a, b",1999\nc,2000\n', b"a;b\n1;2\n"),
    "json file": documents_target("json", "jsonl", "ipynb"),
    "mail": documents_target("eml", "mbox"),
    "outlook": document_target("msg", good_msg()),
    "latex": document_target("tex"),
    "rtf": document_target("rtf", rb"{\rtf1\ansi {\b A}\par \trowd\cellx99 a\cell b\cell\row \u8364?\'e9}"),
    "pdf": document_target("pdf", good_pdf(), plain_pdf()),
    "docx": package_target(*list_samples("docx")),
    "xlsx": package_target(*list_samples("xlsx")),
    "pptx": package_target(*list_samples("pptx")),
    "opendocument": package_target(*list_samples("odt"), *list_samples("ods"), *list_samples("odp")),
    "epub": package_target(*list_samples("epub")),
    "zip": package_target(*list_samples("zip")),
    "graph csv": graph_target(
        ("csv", b"head,relation,tail\nLima,capital of,Peru\nLima,population,10000000\n"),
        ("tsv", b"id\tname\ttype\tyear\n1\tLima\tCity\t1535\n2\tCusco\tCity\t\n3\tPuno\tCity\t1668\n"),
        (
            "csv",
            b"id:ID(City),name,area:float,tags:string[],open:boolean,seen:date,:LABEL\n"
            b'1,Lima,2672.3,"coast;port",true,2020-01-31,City;Port\n2,Cusco,385.1,,false,,City\n',
        ),
        ("csv", b":START_ID(City),:END_ID(City),:TYPE,km:int\n1,2,road,1105\n2,1,rail,\n"),
        ("tsv", b"head\trelation\ttail\n" + b"Lima\tin\tPeru\nCusco\tin\tPeru\n" * 8),
        ("csv", b'"head","relation","tail"\n"Lima","in","Peru"\n"a ""b""","r","c, d"\n'),
    ),
    "graph jsonl": graph_target(
        (
            "jsonl",
            b'{"type": "node", "id": "1", "labels": ["City"], "properties": {"name": "Lima", "size": 3.5}}\n'
            b'{"type": "relationship", "id": "1", "label": "in", "start": {"id": "1"}, "end": {"id": "2"}}\n',
        ),
        (
            "jsonl",
            b'["Lima", "capital of", "Peru"]\n{"title": "A", "text": "B", "triples": [["a", "b", "c"]]}\n',
        ),
    ),
    "graph bibliography": graph_target(
        ("bib", b"@article{a, title = {T}, author = {B, C and D}, year = 2020, cites = {b}}\n"),
        (
            "ris",
            b"TY  - JOUR\nAU  - B, C\nTI  - T\nPY  - 2020/01/02\nDO  - 10.1/x\nN1  - cites: b\nER  - \n\n",
        ),
        (
            "json",
            b'[{"id": "a", "type": "book", "title": "T", "author": [{"family": "B", "given": "C"}],'
            b' "issued": {"date-parts": [[2020, 1]]}, "container-title": "J", "DOI": "10.1/x"}]',
        ),
    ),
    "graph rdf": graph_target(
        (
            "ttl",
            b'@prefix e: <http://e/> .\ne:lima a e:City ; e:in e:peru ; e:name "Lima"@es ; e:size 3.5e1 .\n'
            b"e:a e:list ( 1 2 [ e:b true ] ) .\n",
        ),
        (
            "nt",
            b'<http://e/a> <http://e/p> "2020"^^<http://www.w3.org/2001/XMLSchema#gYear> .\n'
            b"_:b <http://e/q> _:c .\n",
        ),
        (
            "rdf",
            b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
            b'<e:City rdf:about="http://e/lima"><e:name xml:lang="es">Lima</e:name>'
            b'<e:in rdf:resource="http://e/peru"/></e:City></rdf:RDF>',
        ),
    ),
    "question": text_target(
        read_question,
        "How many tables are there in A, and what is in section 2.1 of the 10-K?",
        "What was the growth of revenue from fiscal 2019 to Q3 2020 in percent, and who was born first, A or B?",
        "Show the 3rd paragraph of page 12 and the last two tables of 'a.pdf'",
        "Was Ada Pell or Bo Lind born first? By how much did net sales change from fiscal 2019 to 2020?",
        "What percentage of total revenue in 2020 is from cloud services in the first quarter, and why did it rise?",
        "How many voyages of the Heron Maid departed between 2 March 1928 and 5 January 1929 with over 100 tons?",
    ),
    "where": text_target(
        parse_condition,
        "date >= 2021 and tag = lease",
        "not (author = 'A B' or pages < 3) and kind in (a, b)",
    ),
    "chain": text_target(parse_chain, "Kismet >> director >> #1; #1 >> born in >> #2; final answer: #2"),
    "triples": text_target(
        parse_typed,
        "#1::film >> directed by >> Ada; #1.year > 1990; not #1 >> stars >> Bo; highest #1.runtime; #1 ~ funny",
        '#1 << relation << #2; #2 >>+ "x"; 3 most #1 >> stars >> #2; count #1',
        *TRIPLES["focus"],
    ),
    "recipe": text_target(
        parse_recipe, "kgp(reader=span(calculate=no), hops=3)", "read(retriever='a b', k=5)"
    ),
    "reply": text_target(
        read_reply,
        '```json\n{"quotes": [{"source": 1, "text": "a"}], "answer": "b"}\n```',
        "<think>so</think> Answer: [1, 2, {'a': None}]",
        *(form.reply for form in FORMS),
    ),
    "ask": named_target(
        ask,
        [
            (recipe, question.encode())
            for file in QUESTIONS
            for recipe, question in zip(itertools.cycle(RECIPES), read_questions(file), strict=False)
        ]
        + [(recipe, text.encode()) for recipe, texts in TRIPLES.items() for text in texts * 10],
    ),
    "model": named_target(
        ask_model,
        [
            (recipe, reply.encode("utf-8", "replace"))
            for recipe, reply in zip(
                itertools.cycle(MODEL_RECIPES),
                [*(form.reply for form in FORMS), *MALFORMED.values()] * 2,
                strict=False,
            )
        ],
    ),
    "store": named_target(
        store_document,
        [
            (path.suffix[1:], path.read_bytes())
            for suffix in ("md", "html", "txt", "csv", "json", "eml", "tex", "rtf")
            for path in list_samples(suffix)
        ],
    ),
    "json": request_target(
        "application/json",
        [
            (
                "./questions",
                b'{"question": "What is x?", "recipe": "default", "documents": ["%s"], "where": "not tag = b"}'
                % KEY,
            ),
            ("./search", b'{"question": "x", "k": 5, "retriever": "default", "documents": ["%s"]}' % KEY),
            (
                "/v1/chat/completions",
                b'{"model": "clew", "messages": [{"role": "user", "content": "What?"}]}',
            ),
            (
                "/v1/chat/completions",
                b'{"model": "clew", "messages": [{"role": "user", "content": [{"type": "text", "text": "Who?"}]}],'
                b' "max_tokens": 50, "temperature": 0.5, "n": 1}',
            ),
            (
                "/v1/responses",
                b'{"model": "clew", "input": [{"role": "user", "content": "What?"}], "store": false}',
            ),
            ("/v1/embeddings", b'{"model": "clew", "input": ["a", "b"], "encoding_format": "base64"}'),
            ("/v1/rerank", b'{"model": "clew", "query": "a", "documents": ["a", {"text": "b"}], "top_n": 1}'),
            ("./basket", b'{"node": "%s:4", "text": "", "question": "b", "note": "c"}' % KEY),
            ("./grids", b'{"questions": ["What?"], "documents": ["%s"]}' % KEY[::-1]),
            ("./documents/tags", b'{"documents": ["%s"], "add": ["a"], "remove": ["b"]}' % KEY),
            ("./documents/remove", b'{"documents": ["%s"]}' % KEY[::-1]),
            ("./trash/restore", b'{"ids": ["a"]}'),
        ],
    ),
    "address": (
        get_address,
        [
            address.replace(b"KEY", KEY)
            for address in (
                b"/api/bases/kb?x=1",
                b"/api/bases/kb/documents/KEY/nodes?start=1&limit=5&page=1",
                b"/api/bases/kb/documents/KEY/text?start=2&end=10",
                b"/api/bases/kb/nodes?id=KEY:4&id=KEY:1",
                b"/api/bases/kb/nodes/KEY:4?around=100",
                b"/api/bases/kb/documents/PDF/pages/1.png?scale=1.5",
                b"/api/bases/kb/documents/PDF/pages/1?node=PDF:1",
                b"/api/bases/kb/documents/KEY/original",
                b"/api/bases/kb/about?name=a&documents=KEY&where=not%20tag%20%3D%20b&start=0&limit=20",
                b"/api/bases/kb/diff?before=KEY&after=KEY&start=0&limit=20",
                b"/api/bases/kb/memo?form=docx&title=a",
                b"/api/bases/kb/graphs/people/entities?called=Ada&limit=10",
                b"/api/bases/kb/grids/GRID/file?form=xlsx",
                b"/api/bases/kb/questions?limit=10&before=1700000000.5",
                b"/api/bases/kb/questions/QUESTION/export?format=markdown",
                b"/api/bases/kb/recipes?model=none",
                b"/b/kb/?question=What%20is%20x%3F&chain=a%20%3E%3E%20b",
                b"/b/kb/part/history?words=x",
                b"/b/kb/?find=a&tag=b&every=true",
                b"/b/kb/d/KEY?at=2&cites=KEY:4.0-3&words=x&rows=10",
                b"/b/kb/d/PDF/page?page=1&cites=PDF:1.0-3&words=x",
                b"/b/kb/d/KEY/find?words=x&cites=KEY:4.0-3",
                b"/b/kb/g/people?called=Bo",
                b"/b/kb/about?name=a",
                b"/b/kb/changes?before=KEY&after=KEY",
                b"/b/kb/grids?documents=KEY&documents=KEY",
                b"/b/kb/grids/GRID?part=true",
                b"/b/kb/q/QUESTION?part=true",
                b"/b/kb/q/QUESTION/how?part=true",
                b"/b/kb/q/QUESTION/table/1",
                b"/b/kb/q/QUESTION/cite/1?alternative=0&rows=10",
                b"/static/words/de.js",
                b"/login?next=%2Fb%2Fkb%2F",
            )
        ],
    ),
    "form": request_target(
        f"multipart/form-data; boundary={BOUNDARY}",
        [
            ("./uploads", multipart(("a.md", b"# Words"), ("b.csv", b"a,b\n1,2\n"))),
            (
                "./graphs",
                multipart(("a.tsv", b"Ada\tknows\tBo\n"), fields={"name": "people", "form": "tsv"}),
            ),
        ],
    ),
}


#: Characters of a reply: a longer one than was asked for is given up while it arrives.
MAX_REPLY = 20_000
#: Characters of the longest question that a server takes, which is one of a chat.
LONGEST_SERVED = 8_000
#: Bytes of an address; each may take three characters.
MAX_ADDRESS = 16_000
#: What is changed without breaking the form around it: numbers, strings in quotes, and elements of HTML and XML.
VALUE = re.compile(rb"\d+|\"[^\"<>]{0,200}\"|<([A-Za-z][\w:.-]*)\b[^<>]*>.{0,2000}?</\1>", re.DOTALL)
NUMBERS = [
    b"0",
    b"1",
    b"-1",
    b"1.5",
    b"255",
    b"65536",
    b"2147483648",
    b"9223372036854775808",
    b"1" + b"0" * 30,
]


def mutate(data: bytes, corpus: list[bytes], rng: random.Random) -> bytes:
    """Return data changed in one to eight places: bytes, or values whose surroundings stay as they are."""
    change = rng.choice([change_bytes, change_value])
    for _ in range(rng.randint(1, 8)):
        data = change(data, corpus, rng)
    return data[:200_000]


def change_bytes(data: bytes, corpus: list[bytes], rng: random.Random) -> bytes:
    """Insert bytes, marks, repetitions, or pieces of the corpus; cut some."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice([0, 1, 2, 8, 64]))
    piece = rng.choice(
        [
            rng.randbytes(rng.randint(0, 4)),
            rng.choice(MARKS) * rng.choice([1, 1, 1, 3, 200, 4_000]),
            data[start:end] * rng.choice([0, 2, 50, 500]),
            str(rng.choice([-1, 0, 2**31, 2**63, 10**30])).encode(),
            rng.choice(corpus)[start:][:32],
        ]
    )
    return data[:start] + piece + data[end:]


def change_value(data: bytes, corpus: list[bytes], rng: random.Random) -> bytes:
    """Replace a number, a string in quotes or an element by another, or repeat it."""
    value = VALUE.search(data, rng.randrange(len(data) + 1)) or VALUE.search(data)
    if value is None:
        return change_bytes(data, corpus, rng)
    second = VALUE.search(data, rng.randrange(len(data) + 1)) or value
    old, other = value[0], second[0]
    if old.isdigit():
        new = rng.choice([*NUMBERS, other])
    elif old.startswith(b'"'):
        new = b'"%s"' % rng.choice([b"", *NUMBERS, other.strip(b'"').replace(b'"', b""), rng.choice(MARKS)])
    else:
        inside = old.find(b">") + 1
        new = rng.choice([b"", old * 2, old * 50, other, old[:inside] + old + old[inside:]])
    return data[: value.start()] + new + data[value.end() :]


def cases(name: str, seed: int, first: int) -> Iterator[tuple[int, bytes]]:
    for number in itertools.count(first):
        rng = random.Random(f"{seed}/{name}/{number}")
        corpus = TARGETS[name][1]
        yield number, mutate(rng.choice(corpus), corpus, rng)


@dataclass(frozen=True)
class Run:
    """A line of the record: the cases of a target that were tried one after another, and their processor time."""

    target: str
    seed: int
    first: int
    cases: int
    seconds: float
    faults: int


def read_runs(file: Path) -> list[Run]:
    """Return what was tried until now."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [Run(**json.loads(line)) for line in lines]


def next_case(runs: list[Run], target: str, seed: int) -> int:
    """Return the number of the first case of a target and a seed that no run has reached."""
    return max((run.first + run.cases for run in runs if (run.target, run.seed) == (target, seed)), default=0)


def format_totals(runs: list[Run]) -> str:
    """Return a Markdown table: cases, minutes of processor time and faults of each target, over all seeds."""
    lines = ["| target | cases | CPU-minutes | faults |", "|" + " --- |" + " ---: |" * 3]
    for target in TARGETS:
        own = [run for run in runs if run.target == target]
        cases, faults = sum(run.cases for run in own), sum(run.faults for run in own)
        lines.append(f"| {target} | {cases:,} | {sum(run.seconds for run in own) / 60:.1f} | {faults} |")
    return "\n".join(lines) + "\n"


def fuzz(name: str, seconds: float, seed: int, first: int = 0) -> tuple[Run, list[str]]:
    """Try cases of a target for so many seconds of processor time; return the run, and the faults in words."""
    faults: list[str] = []
    function, corpus = TARGETS[name]
    function(corpus[0])  # starts what it needs; nothing of this is a fault
    started, number = time.process_time(), first
    for number, data in cases(name, seed, first):
        if time.process_time() - started >= seconds:
            break
        try:
            with limited_time():
                function(data)
        except ClewError:
            pass
        except RecursionError:
            pass  # the pool of readers says that the file is nested too deeply
        except (Exception, SlowCase):  # noqa: BLE001 - what is looked for
            FAULTS.mkdir(parents=True, exist_ok=True)
            place = FAULTS / f"{name.replace(' ', '-')}-{seed}-{number}"
            place.write_bytes(data)
            faults.append(f"{place}\n{traceback.format_exc()}")
    spent = time.process_time() - started
    return Run(name, seed, first, number - first, round(spent, 1), len(faults)), faults


class SlowCase(BaseException):
    """A case took too long. No Exception: a parser would say that it cannot read the file."""


@contextmanager
def limited_time(seconds: float | None = None) -> Iterator[None]:
    """Raise SlowCase in a block that takes more processor time, by default more than :data:`CASE_SECONDS`."""
    before = signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds or CASE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _give_up(signum: int, frame: FrameType | None) -> NoReturn:
    raise SlowCase("more processor time than a case may take")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "targets", nargs="*", choices=[[], *TARGETS], metavar="TARGET", help=", ".join(TARGETS)
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of processor time, for each target (default 60)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--from",
        dest="first",
        type=int,
        metavar="N",
        help="the number of the first case (default: where the last run of the seed ended)",
    )
    parser.add_argument("--totals", action="store_true", help="print what was tried until now, and end")
    given = parser.parse_args()
    if given.totals:
        sys.stdout.write(format_totals(read_runs(RUNS)))
        return 0
    logging.disable(logging.CRITICAL)  # a server says what is wrong with each request
    FAULTS.mkdir(parents=True, exist_ok=True)
    status = 0
    for name in given.targets or TARGETS:
        first = given.first if given.first is not None else next_case(read_runs(RUNS), name, given.seed)
        run, faults = fuzz(name, given.seconds, given.seed, first)
        with RUNS.open("a", encoding="utf-8") as record:
            record.write(json.dumps(asdict(run)) + "\n")
        sys.stdout.write(f"{name}: {run.cases} cases from {first}, {run.seconds:g} s, {run.faults} faults\n")
        sys.stdout.write("".join(f"{fault}\n" for fault in faults[:5]))
        sys.stdout.flush()
        status |= bool(faults)
    return status


if __name__ == "__main__":
    sys.exit(main())
