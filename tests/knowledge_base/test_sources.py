"""A str is one path or one name, in every public function that takes paths or names."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path

import pytest

import clew
from clew.app.web.mcp.lookups import search_passages
from clew.core.errors import NotFound, UsageError
from clew.knowledge_base.extraction import GraphExtraction
from clew.knowledge_base.grid import Grid
from clew.knowledge_base.summaries import SummaryJob
from clew.knowledge_base.trash import Trash
from clew.knowledge_base.watch import FolderWatch

SOURCE = Path(clew.__file__).parent

#: Parameters that are a series of texts or paths, and no names or paths that a person gives: what is internal.
INTERNAL = re.compile(
    r"""
    cluster\. | registry\. | local_cluster\. | shared_base\. | name_profile\. | copy_estimate\. | results\.
    | base_copy\.(upload_base|hold_copy_lock|claim_target|download_base)
    | source_files\.(Uploads|link_uploads|upload_path|UploadResult)
    | source_files\.SourceFiles\.(forgetting_uploads|finish_forgetting|open_uploads)
    | extraction\.(Extraction\(|PassageExtractions\() | graphs\._ | summaries\.UnfaithfulSummary
    | ingest/documents\.(IngestTarget|_AddRun)
    | ingest/graphs\. | ingest/plan\.(Scan\(|plan_files|scan_paths\((supported|exclude)) | ingest/report\.
    | watch\.FolderChanges
    | testing\.  # what a test gives is a Path
    """,
    re.VERBOSE,
)
SERIES = re.compile(
    r"\b(Sequence|Iterable|Collection|list|tuple|Set|set|frozenset)\[(str|Path|os\.PathLike)\b"
)
#: A parameter of these names is one path, or the name of one thing.
SINGLE = {"document", "before", "after", "path", "file", "folder", "place", "url", "source", "target"}


def public_parameters(modules):
    """Yield each parameter of a public function, method or dataclass: where it is, and its annotation."""
    for module in modules:
        place = str(module.relative_to(SOURCE).with_suffix("")).removeprefix("knowledge_base/")
        yield from parameters_of(ast.parse(module.read_text()), f"{place}.")


def parameters_of(tree, prefix):
    for item in ast.iter_child_nodes(tree):
        if isinstance(item, ast.ClassDef) and not item.name.startswith("_"):
            decorated = any("dataclass" in ast.unparse(decorator) for decorator in item.decorator_list)
            for field in item.body if decorated or "BaseRetriever" in ast.unparse(item) else ():
                if isinstance(field, ast.AnnAssign) and "init=False" not in ast.unparse(field):
                    yield f"{prefix}{item.name}({ast.unparse(field.target)})", ast.unparse(field.annotation)
            yield from parameters_of(item, f"{prefix}{item.name}.")
        elif isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            if item.name.startswith("_") and item.name != "__init__":
                continue
            given = item.args
            for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg):
                if argument is not None and argument.annotation is not None:
                    yield f"{prefix}{item.name}({argument.arg})", ast.unparse(argument.annotation)


def all_parameters():
    modules = sorted((SOURCE / "knowledge_base").rglob("*.py")) + sorted(
        (SOURCE / "app/integrations").rglob("*.py")
    )
    return {place: kind for place, kind in public_parameters(modules) if not INTERNAL.match(place)}


def test_every_public_series_of_names_or_paths_is_read_as_sources() -> None:
    """A new function that takes ``Sequence[str]`` fails here, until it reads its argument with ``list_sources``."""
    # What is a series of other things: questions, texts, prices.
    others = {"grid.Grid.__init__(questions)", "knowledge_base.KnowledgeBase.tag(add)"}
    others |= {"knowledge_base.KnowledgeBase.tag(remove)"}
    # Haystack compares the types of a pipeline's components; what is given goes to ``search``.
    checked = {"app/integrations/haystack.ClewRetriever.run(documents)"}
    wrong = {
        place: kind
        for place, kind in all_parameters().items()
        if SERIES.search(kind)
        and place not in others | checked
        and not re.search("Callable|_list_documents", kind)
    }
    assert wrong == {}
    assert all(all_parameters()[place] == "str | Iterable[str]" for place in others)


def test_every_public_path_may_be_a_str_or_a_path() -> None:
    wrong = {
        place: kind
        for place, kind in all_parameters().items()
        if (re.fullmatch(r"Path( \| None)?", kind))
        or (place.rpartition("(")[2].rstrip(")") in SINGLE and kind in {"str", "str | None"})
    }
    # A key that is made of what a person gave, and an address without a path.
    allowed = {
        "knowledge_base.KnowledgeBase.earlier_nodes(document)",
        "knowledge_base.KnowledgeBase.count_unannotated(url)",
        "knowledge_base.KnowledgeBase.annotate(url)",
        "ingest/web_page.PageFetcher.fetch(address)",
        "source_files.SourceFiles.original(document)",
        "source_files.SourceFiles.page_image(document)",
        "basket.PinnedQuote(document)",
        "grid.GridCell(document)",
        "grid.GridCell.from_answer(document)",
        "grid.GridCell(place)",
        "trash.TrashedDocument(path)",
        "extraction.UnreadableReply(document)",
        "base_copy.CopyReport(source)",
        "base_copy.CopyReport(target)",
        "ingest/documents.has_vanished(path)",
    }
    assert wrong.keys() - allowed == set()


# What each function does with a lone str, a Path, and a series.

TEXTS = {
    "one.md": "# One\n\nThe stork nests on chimneys.\n",
    # Documents whose names are letters of the other's, which a str must not be taken for.
    "o": "The stork has the letter o.\n",
    "n": "The stork has the letter n.\n",
}
QUESTION = "Where does the stork nest?"
EDGES = "head\trelation\ttail\nstork\teats\tfrog\n"


def forms(text):
    """Yield what a person may give for one name: a str, a path, and series of them."""
    yield from (text, Path(text), [text], {Path(text)}, (item for item in [text]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sources")
    (place / "documents").mkdir()
    for name, text in TEXTS.items():
        (place / "documents" / name).with_suffix(".md").write_text(text)
    for graph in "bg":
        (place / f"{graph}.tsv").write_text(EDGES)
    (place / "birds.tsv").write_text(EDGES)
    return place


@pytest.fixture(scope="module")
def base(folder, without_encoder):
    """A base that tests only read."""
    with clew.open(folder / "base", create=True) as base, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder / "documents")
        base.add(folder / "documents", workers=1)
        for graph in ("b", "g", "birds"):
            base.graphs.add(folder / f"{graph}.tsv")
        yield base


def reached(answer):
    """Return the names of the documents that an answer is from."""
    hits = [*answer.citations, *answer.evidence]
    return {hit.node.document_name for hit in hits}


async def last_event(events):
    return [event async for event in events][-1]


def document_names(base, keys):
    return {base.store.document(key).name for key in keys}


#: By parameter: the documents that a call reaches that names one.md.
READING = {
    "search(documents)": lambda base, given: {
        hit.node.document_name for hit in base.search(QUESTION, documents=given)
    },
    "ask(documents)": lambda base, given: reached(base.ask(QUESTION, documents=given)),
    "aask": lambda base, given: reached(asyncio.run(base.aask(QUESTION, documents=given))),
    "stream": lambda base, given: reached([*base.stream(QUESTION, documents=given)][-1]),
    "astream": lambda base, given: reached(asyncio.run(last_event(base.astream(QUESTION, documents=given)))),
    "about(documents)": lambda base, given: {
        statement.node.document_name for statement in base.about("stork", documents=given).statements
    },
    "document_keys(names)": lambda base, given: document_names(base, base.document_keys(given)),
    "select_documents(among)": lambda base, given: document_names(
        base, base.select_documents("name ~ md", map(str, base.document_keys(given)))
    ),
    "Grid(documents)": lambda base, given: {
        document.name for document in Grid(base, QUESTION, "cells.jsonl", documents=given).documents
    },
    "SummaryJob(documents)": lambda base, given: document_names(
        base, (section.document for section in SummaryJob(base, documents=given)._open()[1])
    ),
    "GraphExtraction(documents)": lambda base, given: document_names(
        base, base.document_keys(GraphExtraction(base, "found", documents=given).documents)
    ),
    "MCP": lambda base, given: {
        hit["document"] for hit in search_passages(base, QUESTION, 5, given).structure["hits"]
    },
}


@pytest.mark.parametrize("call", READING.values(), ids=READING)
def test_a_document_is_named_in_every_form(call, base) -> None:
    for given in forms("one.md"):
        assert call(base, given) == {"one.md"}, given


def test_a_graph_is_named_in_every_form(base) -> None:
    for given in forms("birds"):
        assert base.ask("What does the stork eat?", graphs=given) is not None
    chain = "stork >> eats >> #1"
    for given in ("birds", Path("birds"), ["birds"], iter(["birds"])):
        assert [reading.graph for reading in base.explain(chain, graphs=given)] == ["birds"]
    assert len(base.explain(chain, graphs=["b", "g"])) == 2
    shown = str(base.graphs.schema("What is eaten?", "birds"))
    assert shown == str(base.graphs.schema("What is eaten?", ["birds"]))
    assert [size.name for size in base.graph_sizes("keywords")] == ["keywords(n=10)"]


def test_one_thing_is_named_by_a_path_too(base) -> None:
    assert base.tree(Path("one.md")) == base.tree("one.md")
    assert base.compare(Path("one.md"), Path("o.md")).counts() == base.compare("one.md", "o.md").counts()
    assert len(base.match_documents(Path("one.md")).documents) == 1
    assert base.tables.list(Path("one.md")) == []
    with pytest.raises(UsageError, match="no path, address or name"):
        base.tree(["one.md"])


@pytest.mark.parametrize("given", [3, None, b"one.md", "", ["one.md", None]])
def test_what_names_nothing_is_refused(given, base) -> None:
    for call in (base.document_keys, base.remove, base.add, base.estimate):
        with pytest.raises(UsageError, match="no path, address or name"):
            call(given)


# What is added


def listed(base):
    return sorted(document.name for document in base.documents())


@pytest.fixture
def own(tmp_path, monkeypatch, without_encoder):
    """An empty base, beside the folders a and b and the files ab.md and a.md."""
    monkeypatch.chdir(tmp_path)
    for name in ("a/x.md", "b/y.md", "ab.md", "a.md"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(f"The stork {name}.")
    Path("ab").mkdir()
    Path("ab/z.md").write_text("The stork ab/z.md.")
    with clew.open(tmp_path / "base", create=True) as base:
        yield base


def test_a_str_is_added_as_one_path(own, tmp_path) -> None:
    assert own.estimate("ab").files == 1
    own.add("ab", workers=1)
    assert listed(own) == ["z.md"]
    own.add((path for path in [str(tmp_path / "ab.md"), Path("b"), "a.md", Path("a/x.md")]), workers=1)
    assert listed(own) == ["a.md", "ab.md", "x.md", "y.md", "z.md"]
    # Removed in every form, too, and put back from the trash.
    assert [document.name for document in own.remove("ab.md")] == ["ab.md"]
    assert [document.name for document in own.remove(Path("a.md"), ["x.md"])] == ["a.md", "x.md"]
    (id,) = Trash(own).add(str(tmp_path / "b" / "y.md"))
    assert listed(own) == ["z.md"]
    Trash(own).restore(id)
    Trash(own).add([tmp_path / "b" / "y.md"])
    Trash(own).delete([id])
    own.tag("z.md", add="lease")
    assert own.documents()[0].tags == ("lease",)
    own.tag(Path("z.md"), remove="lease")
    assert own.documents()[0].tags == ()


def test_a_file_url_is_its_path_and_a_page_is_not_estimated(own, tmp_path) -> None:
    own.add((tmp_path / "ab.md").as_uri(), workers=1)
    assert listed(own) == ["ab.md"]
    (failure,) = own.estimate("https://example.org/report.html").failed
    assert failure.path == "https://example.org/report.html" and "fetched" in failure.reason


def test_graph_files_are_given_in_every_form(own, tmp_path) -> None:
    (tmp_path / "edges.tsv").write_text(EDGES)
    (tmp_path / "more.tsv").write_text(EDGES.replace("frog", "mouse"))
    own.graphs.add("edges.tsv", name="first")
    own.graphs.add(edges=Path("edges.tsv"), name="second")
    assert [graph.edges for graph in own.graphs.infos()] == [1, 1]
    own.graphs.edit("first", add="more.tsv")
    own.graphs.edit("second", add=Path("more.tsv"), remove="edges.tsv")
    assert [graph.edges for graph in own.graphs.infos()] == [2, 1]


def test_a_grid_takes_one_question_and_the_name_of_a_file(own) -> None:
    own.add("ab.md", workers=1)
    grid = Grid(own, "Where does the stork nest?", "cells.jsonl")
    assert grid.questions == ["Where does the stork nest?"]
    grid.fill()
    grid.write("grid.csv")
    assert Path("cells.jsonl").is_file() and Path("grid.csv").read_text().startswith("document,")


SYSTEM = ["/", "/etc", "/usr/", "/usr/../var", "/proc", "/sys", "/dev", "/proc/self/root", "~"]


@pytest.mark.parametrize("place", SYSTEM)
def test_a_system_folder_is_read_only_where_that_is_meant(place, own, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for call in (own.add, own.estimate, lambda place: FolderWatch(own, place)):
        with pytest.raises(UsageError, match="anyway"):
            call(place)
        with pytest.raises(UsageError, match="anyway"):
            call([tmp_path / "a", Path(place).expanduser()])
    assert listed(own) == []


def test_the_home_folder_is_read_with_anyway_and_links_to_it_without(own, tmp_path, monkeypatch) -> None:
    home = tmp_path / "home"
    (home / "papers").mkdir(parents=True)
    (home / "papers" / "p.md").write_text("The stork p.")
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "b" / "link").symlink_to(home)
    (tmp_path / "b" / "etc").symlink_to("/etc")
    report = own.add("b", workers=1)
    assert listed(own) == ["y.md"] and report.skipped == {"link to a system folder": 2}
    own.add("~/papers", workers=1)
    assert listed(own) == ["p.md", "y.md"]
    own.remove("p.md")
    assert own.estimate("~", anyway=True).files == 1
    assert own.add("~", anyway=True, workers=1).added == [str(home / "papers" / "p.md")]
    watch = FolderWatch(own, "~", quiet=0.0, workers=1, anyway=True)
    (home / "new.md").write_text("The stork new.")
    watch.synchronise()
    assert "new.md" in listed(own)


def test_an_unknown_name_is_said_as_a_whole(base) -> None:
    for given in ("nothing.md", Path("nothing.md"), ["nothing.md"]):
        with pytest.raises(NotFound, match=r"'nothing\.md'"):
            base.ask(QUESTION, documents=given)
