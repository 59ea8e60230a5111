"""Questions over the tables of a base: by rule, by a model's SQL, and what a hostile or confused model achieves."""

import csv
import json
import sys

import pytest

import clew
from clew.core.prompts.templates import load_prompt
from clew.core.trail import TableQueryStep, TrailRecorder
from clew.core.types import FallbackStep, Plan
from clew.methods.tables.sql_process import QueryLimits
from clew.methods.tables.sql_writer import SqlWriter
from clew.models import create_language_model
from scripted import ScriptedServer

pytest.importorskip("duckdb")

ORDERS = [
    ["Order", "Country", "Product", "Quantity", "Total"],
    ["A1", "Norway", "Lamp", "2", "80.5"],
    ["A2", "Sweden", "Chair", "1", "219"],
    ["A3", "Norway", "Chair", "4", "876"],
    ["A4", "Denmark", "Lamp", "3", "120.75"],
]
REPORT = """# Annual report

Our results:

| $ in millions | 2023 | 2022 |
|---|---|---|
| Revenue | $ 420 | $ 380 |
| Costs | 300 | 290 |

The lighthouse keeper of Skerry is Ada Lund.
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    with (folder / "orders.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(ORDERS)
    (folder / "report.md").write_text(REPORT, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_ENCODER", "none")
        patch.setenv("CLEW_READER", "none")
        with clew.open(folder / "kb", create=True) as opened:
            opened.add([folder / "orders.csv", folder / "report.md"])
            yield opened


def ask(base, question, *replies):
    """Return the answer with a model that gives ``replies``, and the requests it got."""
    with ScriptedServer(list(replies)) as server:
        answer = base.ask(question, llm=server.llm, recipe="tables")
        assert server.answered == len(replies)
        return answer, server.requests


def reply(sql, abstain=False):
    return {"sql": sql, "abstain": abstain}


def query_step(answer):
    (step,) = [step for step in answer.trail if isinstance(step, TableQueryStep)]
    return step


@pytest.mark.slow
def test_a_plain_question_is_computed_without_a_model(base):
    answer = base.ask("How many orders went to Norway?", recipe="tables")
    assert (answer.text, answer.reader) == ("2 orders", "tables") and 0.12 < (answer.confidence or 0) < 1
    assert (
        answer.formula
        == "Read as: how many orders where Country is Norway. Computed from 2 rows of the table 'orders'."
    )
    assert answer.plan == Plan("table", "select count(*) from orders where country = 'Norway'", "count")
    assert [quote.text for quote in answer.quotes] and all("Norway" in quote.text for quote in answer.quotes)
    assert query_step(answer).written_by == "clew's parser" and answer.usage.calls == 0
    cell = base.ask("What is the total of A3?", recipe="tables")
    assert (cell.text, cell.way) == ("876 (Total)", "answer")
    assert [quote.text[slice(*quote.answer)] for quote in cell.quotes] == ["876"]


@pytest.mark.slow
def test_the_documents_answer_what_no_table_does(base):
    answer = base.ask("Who is the lighthouse keeper of Skerry?", recipe="tables")
    assert answer.way != "not_found" and "Ada Lund" in answer.text and answer.recipe.startswith("kgp")


@pytest.mark.slow
def test_a_model_writes_sql_over_any_table(base):
    sql = 'select "2023" - "2022" from report where in_millions = \'Revenue\''
    answer, requests = ask(base, "By how much did revenue grow?", reply(sql))
    assert (answer.text, answer.plan, answer.way) == ("$40 million", Plan("table", sql, "query"), "answer")
    marked = [quote.text[slice(*quote.answer)] for quote in answer.quotes]
    assert marked == ["$ 420", "$ 380"] and answer.usage.calls == 1
    assert answer.reader == "scripted" or answer.reader.endswith("#scripted")
    shown = requests[0].user
    assert "table report" in shown and "table orders" in shown and "in millions $" in shown
    assert "'Revenue', 'Costs'" in shown and requests[0].format == "json_schema"


@pytest.mark.slow
def test_groups_have_their_numbers_beside_them(base):
    sql = "select country, count(*) from orders group by country order by country"
    answer, _ = ask(base, "Which countries do we deliver to, and how often?", reply(sql))
    assert answer.values == ("Denmark: 1", "Norway: 2", "Sweden: 1")


def test_a_query_that_fails_is_repaired_once(base):
    question = "What did the chairs bring in, roughly speaking?"
    right = "select sum(total) from orders where product = 'Chair'"
    answer, requests = ask(base, question, reply("select sum(totl) from orders"), reply(right))
    assert answer.text == "1,095" and query_step(answer).problem
    assert "totl" in requests[1].user and "cannot be used" in requests[1].user


HOSTILE = [
    "drop table orders",
    "select 1; delete from orders",
    "update orders set total = 0",
    "copy orders to '/tmp/stolen.csv'",
    "select * from read_csv('/etc/passwd')",
    "select * from '/etc/passwd'",
    "attach '/tmp/x.db'",
    "install httpfs",
    "select current_setting('home_directory')",
    "select * from duckdb_settings()",
    "set memory_limit = '9GB'",
    "select total from secrets",
    "with recursive r as (select 1 as n union all select n + 1 from r) select max(r.n) from r, orders",
    "select count(*) from orders a, orders b, orders c, range(100000000000)",
]
#: Values that are in no table: from memory, made up, or smuggled past the cells.
NOWHERE = [
    "select 43.7",
    "select 43.7 from orders limit 1",
    "select 'Oslo' from orders limit 1",
    "select sum(total) + 17 from orders",
    "select sum(total) * 1.07 from orders",
    "select case when count(*) > 0 then 512 end from orders",
    "with t as (select 512 as n) select n from t, orders limit 1",
    "select n from (values (512)) t(n), orders limit 1",
    "select max(range) from range(600), orders",
    "select unnest([512]) from orders limit 1",
    "select coalesce(null, 512) from orders limit 1",
    "select round(1234.5, 0) from orders limit 1",
    "select (select 512) from orders limit 1",
    "select total from orders where false union all select 512",
    "select random() from orders limit 1",
    "select pi() from orders limit 1",
]


@pytest.mark.slow
@pytest.mark.parametrize("sql", [*HOSTILE, *NOWHERE])
def test_what_is_refused_never_answers(base, sql):
    answer, requests = ask(base, "Is the keeper of Skerry paid well, roughly?", reply(sql), reply(sql))
    assert len(requests) == 2 and query_step(answer).outcome != "answered"
    (fallback,) = [step for step in answer.trail if isinstance(step, FallbackStep)]
    assert "the documents were read without a model" in fallback.used and answer.fallbacks
    assert answer.recipe.startswith("kgp") and "512" not in answer.text and "43.7" not in answer.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "It grew by 40 million dollars.",
        "SELECT 40",
        "",
        "{",
        '{"sql": 5',
        json.dumps({"answer": "$40 million"}),
    ],
)
def test_prose_instead_of_sql_is_no_answer(base, text):
    answer, _ = ask(base, "By how much did revenue grow?", text, text)
    assert answer.fallbacks and "$40 million" not in answer.text


@pytest.mark.slow
def test_an_endless_query_is_ended(base):
    endless = "select count(*) from " + ", ".join(f"orders o{n}" for n in range(24))
    with ScriptedServer([reply(endless), reply(endless)]) as server:
        writer = SqlWriter(
            create_language_model(server.llm), load_prompt("table-sql"), QueryLimits(0.2, 1024, 10)
        )
        answer, problem = writer.answer("How many orders?", [base.tables.get("orders")], TrailRecorder())
    assert answer is None and "longer than 0.2 seconds" in problem


def test_an_empty_result_is_asked_again_and_then_given_up(base):
    sql = "select total from orders where country = 'Portugal'"
    answer, requests = ask(base, "What did the Portuguese pay?", reply(sql), reply(sql))
    assert "no row meets" in requests[1].user and answer.fallbacks


def test_a_model_may_say_that_no_table_has_it(base):
    answer, requests = ask(base, "Who is the lighthouse keeper of Skerry?", reply("", abstain=True))
    assert len(requests) == 1 and "Ada Lund" in answer.text
    assert "the tables do not hold" in answer.fallbacks[0]


@pytest.mark.parametrize(
    "sql",
    [
        "select 100.0 * sum(total) filter (where country = 'Norway') / sum(total) from orders",
        "select sum(total) / 1000 from orders",
        "select product, round(avg(total), 2) from orders group by 1 having count(*) > 1 order by 2 desc limit 1",
        "select sum(case when country = 'Norway' then 1 else 0 end) from orders",
        "select max(total) - min(total) from orders",
        "select a.country from orders a join orders b on a.country = b.country where a.total > b.total + 5",
        "with n as (select * from orders where country in ('Norway', 'Sweden')) select count(*) from n",
        "select coalesce(sum(total), 0) from orders where quantity between 2 and 9",
        "select product || ': ' || sum(quantity) from orders group by product",
        "select total * 1.07 from orders where \"order\" = 'A1'",
    ],
)
def test_what_is_computed_from_cells_is_an_answer(base, sql):
    answer, _ = ask(base, "What comes of it with 1.07?", reply(sql))
    assert query_step(answer).outcome == "answered" and answer.plan == Plan("table", sql, "query")


def test_only_tables_in_scope_are_shown(base):
    with ScriptedServer([reply("", abstain=True)]) as server:
        base.ask("How did costs develop?", llm=server.llm, recipe="tables", documents=["report.md"])
        assert "table orders" not in server.requests[0].user


def test_a_small_context_leaves_tables_out(base):
    with ScriptedServer([reply("", abstain=True)]) as server:
        base.ask("How did costs develop?", llm=f"{server.llm}?context=900", recipe="tables")
        assert "table report" in server.requests[0].user


def test_without_duckdb_no_model_is_asked_for_sql(base, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    answer, requests = ask(base, "What did the Portuguese pay?")
    assert requests == [] and "DuckDB" in answer.fallbacks[0]
