"""SQL over tables: what is read, where it came from, and what is refused."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

import clew
from clew.core.errors import MissingExtra, UsageError
from clew.core.types import Table
from clew.methods.tables.sql_engine import run_query
from clew.methods.tables.sql_process import QueryLimits
from clew.parse.data_tables import build_data_table

pytest.importorskip("duckdb")

TABLES = {
    "Sales": build_data_table(
        Table(
            ("Region", "2023", "2022", "Opened"),
            (
                ("Europe:", "", "", ""),
                ("North", "1,200", "(900)", "2023-01-01"),
                ("South", "300", "—", "2023-01-02"),
                ("Total", "1,500", "900", ""),
            ),
        ),
        "s:",
        1,
    ),
    "chiefs": build_data_table(Table(("Region", "Chief"), (("North", "Ada"), ("East", "Bo"))), "c:", 1),
}


def load(name):
    from dataclasses import replace

    return replace(TABLES[name], name=name)


def query(text, **limits):
    return run_query(text, {name.lower(): name for name in TABLES}, load, QueryLimits(**limits))


def test_rows_and_their_sources():
    result = query('select region, "2023" - "2022" as change, opened, _group, _total from sales')
    assert result.columns == ("region", "change", "opened", "_group", "_total")
    assert result.rows == (
        ("North", 2100.0, date(2023, 1, 1), "Europe", False),
        ("South", None, date(2023, 1, 2), "Europe", False),
        ("Total", 600.0, None, "Europe", True),
    )
    assert result.sources == (("s:2",), ("s:3",), ("s:4",))
    assert result.tables == ("Sales",)
    assert result.to_dict()["rows"][0][2] == "2023-01-01"


def test_sources_of_groups_and_joins():
    total = query('select sum("2023") from SALES where not _total')
    assert total.rows == ((1500.0,),)
    assert set(total.sources[0]) == {"s:2", "s:3"}
    joined = query(
        'select s.region, chief from sales s left join chiefs c using (region) order by "2023" desc'
    )
    assert joined.rows == (("Total", None), ("North", "Ada"), ("South", None))
    assert joined.sources == (("s:4",), ("s:2", "c:1"), ("s:3",))


def test_values_of_all_kinds_arrive():
    values = query(
        "select timestamptz '2020-01-01 00:00:00+02', timestamp '2020-01-01 10:00:00', time '10:00', "
        "interval 3 days, 1.50::decimal(5, 2), '4609846c-53ba-46fb-941b-9dc662cc7b08'::uuid, [1, 2], {'a': 1} "
        "from chiefs"
    ).rows[0]
    assert values[0] == datetime(2019, 12, 31, 22, tzinfo=UTC)
    assert values[1:4] == (datetime(2020, 1, 1, 10), time(10), timedelta(days=3))
    assert values[4:] == (Decimal("1.50"), UUID("4609846c-53ba-46fb-941b-9dc662cc7b08"), [1, 2], {"a": 1})


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "select distinct region from sales",
        "with a as (select * from sales) select region from a",
        "select region from sales union all select region from chiefs",
        "select count(*) from (select * from sales)",
    ],
)
def test_what_cannot_be_traced_has_no_sources(text):
    assert query(text).rows
    assert query(text).sources == ()


def test_limits():
    assert query("select range from range(50)", rows=10).more
    assert len(query("select range from range(50)", rows=10).rows) == 10
    assert not query("select range from range(10)", rows=10).more
    with pytest.raises(UsageError, match="longer than"):
        query("select count(*) from range(1000000000000)", seconds=0.2)
    with pytest.raises(UsageError, match="memory"):
        query("select list(range) from range(1000000000)", memory=32, seconds=60)
    with pytest.raises(UsageError, match="characters"):
        query("select repeat('a', 20000)")


@pytest.mark.parametrize(
    "text",
    [
        "select length(repeat('a', 4000000000))",
        "select length(format('{:1000000000}', 1))",
        "select len(range(300000000))",
        "select sum(length(repeat('ab', 1000000 + x))) from range(100000) t(x)",
        "with recursive r(s) as (select 'aaaaaaaa' union all select s || s from r) select max(length(s)) from r",
    ],
)
def test_a_single_long_value_is_within_the_limits(text):
    """DuckDB neither counts the bytes of such values nor can be interrupted in the midst of one."""
    with pytest.raises(UsageError, match=r"more than 64 MiB of memory|longer than 5 seconds"):
        query(text, memory=64, seconds=5)


@pytest.mark.slow
def test_a_query_of_more_than_three_seconds_gives_its_rows():
    """DuckDB draws a bar of progress after two seconds, which once went where the rows go."""
    numbers = 1_000_000
    result = query(f"select count(*) from range({numbers})")
    while result.seconds <= 3:
        numbers *= 4
        text = f"select count(*) filter (hash(i) % 7 < 7), 'bar' from range({numbers}) t(i)"
        result = query(text, seconds=300)
    assert result.rows == ((numbers, "bar"),)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [2.5, 4])
def test_a_query_is_ended_at_its_own_limit_and_says_which(seconds):
    with pytest.raises(UsageError, match=f"longer than {seconds:g} seconds"):
        query("select count(*) from range(1000000000000)", seconds=seconds)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 1e10, 0, -1])
def test_a_limit_that_is_none_is_refused(seconds):
    with pytest.raises(UsageError, match="no time limit of a query"):
        query("select 1", seconds=seconds)


@pytest.mark.slow
def test_the_command_keeps_to_its_timeout_and_names_what_is_missing(tmp_path):
    (tmp_path / "tolls.csv").write_text("cargo,toll\ngeese,2\nbarley,5\n")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.add([tmp_path / "tolls.csv"], workers=1)
    words = [*("--kb", str(tmp_path / "kb")), "--timeout"]

    def run(query, timeout, before=""):
        program = f"{before}from clew.app.cli.commands import app; app()"
        return subprocess.run(
            [sys.executable, "-c", program, "sql", query, *words, timeout], capture_output=True, text=True
        )

    assert "barley" in run("select * from tolls", "60").stdout
    for timeout in ("0.5", "2.5"):
        late = run("select count(*) from range(1000000000000)", timeout)
        assert late.returncode == 2 and f"took longer than {timeout} seconds" in late.stderr
    assert "A day at most" in run("select 1", "inf").stderr
    bare = run("select 1", "10", "import sys; sys.modules['duckdb'] = None; ")
    problem = MissingExtra("DuckDB, which runs SQL over tables,", "tables")
    assert bare.returncode == 2 and problem.problem in bare.stderr and problem.hint in bare.stderr


def test_a_process_that_fails_is_not_said_to_need_memory(monkeypatch):
    monkeypatch.setattr("clew.methods.tables.sql_process.__name__", "no_such_module")
    with pytest.raises(UsageError, match="ended with 1: ModuleNotFoundError"):
        query("select region from sales")


#: Writes, files, networks, settings, the process, more than one statement, endless recursion.
REFUSED = [
    "drop table sales",
    "delete from sales",
    "update sales set region = 'x'",
    "insert into sales select * from sales",
    "with a as (select 1) insert into chiefs select 'x', 'y'",
    "create table t as select 1",
    "create view v as select 1",
    "create macro f() as 1",
    "alter table sales rename to s",
    "copy sales to 'out.csv'",
    "copy (select 1) to '/tmp/out.parquet'",
    "export database 'x'",
    "import database 'x'",
    "attach 'other.db'",
    "install httpfs",
    "load json",
    "pragma database_list",
    "set memory_limit = '9GB'",
    "set enable_external_access = true",
    "reset lock_configuration",
    "call pragma_version()",
    "explain analyze select 1",
    "checkpoint",
    "vacuum",
    "begin",
    "prepare p as select 1",
    "use memory",
    "select 1; drop table sales",
    "select 1; select 2",
    "select * from sales where region = ''; delete from sales; --'",
    "select * from read_csv('/etc/passwd')",
    "select * from read_text('/etc/passwd')",
    "select * from '/etc/passwd'",
    "select * from 'https://example.org/x.parquet'",
    "select * from glob('/*')",
    "select * from sniff_csv('x')",
    "select * from duckdb_settings()",
    "select * from duckdb_secrets()",
    "select * from query('select 1')",
    "select * from query_table('sales')",
    "select (select count(*) from read_blob('/proc/self/environ'))",
    "select * from information_schema.tables",
    "select * from pg_catalog.pg_class",
    "select * from sqlite_master",
    "select current_setting('home_directory')",
    "select getenv('HOME')",
    "select write_log('x')",
    "select nextval('s')",
    "show tables",
    "describe sales",
    "select * from nosuch",
    "select nosuch from sales",
    "selec",
    "   ",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", REFUSED)
def test_refused(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        query(text)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_endless_query_ends():
    with pytest.raises(UsageError):
        query(
            "with recursive t(n) as (select 1 union all select n + 1 from t) select sum(n) from t",
            seconds=0.3,
        )


def test_variables_of_python_are_out_of_reach():
    secret = {"a": [1]}
    with pytest.raises(UsageError, match="no table named"):
        query("select * from secret")
    assert secret


def test_what_is_computed_is_exact():
    rows = (("x", "0.1", "9,007,199,254.74"), ("y", "0.2", "12,345,678,901.01"), ("z", "0.3", "0.02"))
    table = build_data_table(Table(("Name", "Fee", "Sum"), rows), "k:")

    def ask(text):
        (row,) = run_query(
            f"select {text} from fees", {"fees": "fees"}, lambda name: replace(table, name=name)
        ).rows
        return row

    assert ask("sum(fee), avg(fee), sum(fee * 3)") == (0.6, 0.2, 1.8)
    assert ask("median(fee) filter (where fee < 0.25), quantile_cont(fee, 0.25)") == (0.15, 0.15)
    assert ask('sum("sum"), sum(fee * "sum")') == (21352878155.77, 3369855705.682)
    assert ask("100.0 * sum(fee) filter (where fee >= 0.2) / sum(fee)") == (83.3333333333333,)
    assert ask("list(fee)") == ([0.1, 0.2, 0.3],)
    assert ask("sum(99999999999999999999)")[0] == 3 * 99999999999999999999


def test_identifiers_are_text_in_sql():
    rows = tuple((name, f"2023{number}") for name, number in (("a", 1234), ("b", 5678), ("c", 9999)))
    table = build_data_table(Table(("Name", "Invoice number"), rows), "k:")
    load = {"bills": replace(table, name="bills")}.__getitem__
    assert run_query("select max(invoice_number) from bills", {"bills": "bills"}, load).rows == (
        ("20239999",),
    )
    with pytest.raises(UsageError, match="sum"):
        run_query("select sum(invoice_number) from bills", {"bills": "bills"}, load)
