"""Tables read in columns make the same graph, and the same errors, as tables read row by row."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clew.store.graphs.builder import GraphBuilder
from graph_reading import read_both_ways, small_blocks


@pytest.fixture(autouse=True, scope="module")
def _small_blocks():
    with small_blocks():
        yield


NAMES = st.sampled_from(
    ["a", "b", "Ada", "x y", "r", "longer than eight", "exactly fifteen", "sixteen letters!"]
)
QUOTED = ['"', '""', '"a"', '"a b"', '" a "', '"a"b', ' "a"', '"a" ', '"a""b"', '"a,b"', '"two\nlines"']
SPACES = [
    "\u3000wide\u3000",
    "\xa0x",
    "",
    "  ",
    " a ",
    "\ta",
    "a\tb",
    ",",
    "\x00",
    "\x1f",
    "\r",
    "\ufeff",
    "\x85",
]
ODD = st.sampled_from([*QUOTED, *SPACES, "é", "日本", "0.10", "10", "1e5", "nan", "x" * 5000])
CELLS = st.one_of(NAMES, NAMES, NAMES, ODD)
ROWS = st.lists(CELLS, min_size=0, max_size=4)
LINES = st.lists(st.one_of(st.lists(NAMES, min_size=3, max_size=3), ROWS), max_size=40)
FORMS = st.tuples(st.sampled_from([",", "\t", ";"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
EDGES, NODES = "head,relation,tail", "id,name,tags:string[],types,text,year,score:float"


def table(header: str, rows: list[list[str]], form: tuple[str, str, bool]) -> bytes:
    delimiter, end, is_ended = form
    lines = [header.replace(",", delimiter), *map(delimiter.join, rows)]
    return (end.join(lines) + (end if is_ended else "")).encode()


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=LINES, form=FORMS, skip=st.booleans(), is_tsv=st.booleans(), mark=st.booleans(), cut=st.booleans()
)
@example(
    rows=[["a", "r", "b"]] * 9, form=(",", "\r\n", False), skip=False, is_tsv=False, mark=True, cut=False
)
@example(
    rows=[["a", "r", 'b"\n']] * 9, form=(",", "\n", True), skip=True, is_tsv=False, mark=False, cut=False
)
def test_edges_are_the_same_in_columns_as_row_by_row(rows, form, skip, is_tsv, mark, cut):
    content = (b"\xef\xbb\xbf" if mark else b"") + table(EDGES, rows, form)
    if cut:
        content = content.replace("é".encode(), b"\xc3")  # not UTF-8
    read_both_ways("g.tsv" if is_tsv else "g.csv", content, skip)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.lists(st.lists(CELLS, min_size=7, max_size=7), max_size=20),
    form=FORMS,
    skip=st.booleans(),
    number=st.booleans(),
)
def test_nodes_are_the_same_in_columns_as_row_by_row(rows, form, skip, number):
    if number:  # different ids, or nearly every row is a repetition
        rows = [[f"n{place}", *cells[1:-1], "1.50"] for place, cells in enumerate(rows)]
    read_both_ways("g.csv", table(NODES, rows, form), skip)


def test_columns_are_used_where_they_can_be(monkeypatch: pytest.MonkeyPatch):
    calls: list[str] = []

    def count_calls(name: str):
        method = getattr(GraphBuilder, name)

        def count(*given, **named):
            calls.append(name)
            return method(*given, **named)

        monkeypatch.setattr(GraphBuilder, name, count)

    for name in ("add_edge", "add_edges", "add_node", "add_nodes"):
        count_calls(name)
    rows = [[f"n{place}", "r", "b"] for place in range(50)]
    read_both_ways("g.csv", table(EDGES, rows, (",", "\n", True)), False)
    assert set(calls) == {"add_edges", "add_edge"}  # the second by RowSink alone
    assert calls.count("add_edge") == 50
    for head in ('"n"', '"n ""n"""', '"two\nlines, and a comma"'):
        calls.clear()
        quoted = [[head.replace("two\nlines", "a line"), '"r"', "b"] for _ in range(50)]
        read_both_ways("g.csv", table(EDGES, quoted, (",", "\r\n", True)), False)
        assert calls.count("add_edge") == 50
    calls.clear()
    read_both_ways(
        "g.csv", table("id,name", [[f"n{place}", "b"] for place in range(50)], (",", "\n", True)), False
    )
    assert calls.count("add_node") == 50


def test_a_bad_row_far_into_a_file_is_named_with_its_line():
    rows = [[f"n{place}", "r", "b"] for place in range(500)]
    rows[300] = ["x", "r"]
    rows[310] = ['"two\nlines"', "r", "b"]
    rows[320] = ["", "r", "b"]
    *_, messages = read_both_ways("g.csv", table(EDGES, rows, (",", "\n", True)), True)
    assert messages == [
        "g.csv: line 302: 2 cells instead of 3",
        "g.csv: line 312: the head has more than one line; is a quotation mark never closed?",
        "g.csv: line 323: the head is empty",
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [("a", " r ", "b"), ("b", "r", "a"), ("a", "r", "b"), ("c", "s", "c")],
        [("a", "r", "b"), ("a", "", "b"), ("a", "r\ns", "c")],
        [("a", "r", None), ("a", "r", "b")],
        [("ä" * 9, "r", "b\tc"), ("a\x00", "r", "b")],
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_parquet_triples_are_read_as_rows_are(tmp_path, rows, skip):
    pa = pytest.importorskip("pyarrow", reason="the extra 'graphs' is not installed")
    from pyarrow import parquet

    names = ("head", "relation", "tail")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    parquet.write_table(pa.table(columns), tmp_path / "g.parquet")
    outcome = read_both_ways("g.parquet", (tmp_path / "g.parquet").read_bytes(), skip)
    assert outcome[2] or outcome[4]
