"""A query in a process of its own, which the kernel ends when it is over a limit.

DuckDB looks at its limits between the pieces of its work. A single value that a function makes of a small number,
``repeat('a', 4000000000)``, is one piece: it can be neither interrupted nor kept from filling the memory. So the
query runs in a process with limits of the system, without files and without a network
(:mod:`clew.parse.documents.sandbox`). Decision 47.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from clew.core.errors import UsageError
from clew.core.messages import OUTPUT_BEGINS, read_message, take_output
from clew.parse.documents.limits import MIB, limit_memory
from clew.parse.documents.sandbox import confine_process

if TYPE_CHECKING:
    import duckdb

#: Seconds and MiB that a query may take beyond its limits, by which DuckDB ends it with its own words.
_GRACE_SECONDS, _GRACE_MIB = 2.0, 256
#: How a process ends that gets no memory: it gives up, or the system ends it.
_OUT_OF_MEMORY = {-getattr(signal, name) for name in ("SIGABRT", "SIGKILL") if hasattr(signal, name)}
#: Seconds in which the process has to start, on a busy machine, and to take the tables.
_START_SECONDS = 30.0
#: No query may run longer; timers of some systems take no more than a few years.
_DAY = 86_400.0
#: Characters of one value of a result.
_VALUE_LENGTH = 10_000
#: What values of a result may be, beside what Python has built in.
_VALUE_TYPES = frozenset({date, datetime, time, timedelta, timezone, Decimal, UUID})


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits on a query: ``seconds``, ``memory`` in MiB, and the ``rows`` of its result. Raises UsageError."""

    seconds: float = 10.0
    memory: int = 512
    rows: int = 1000

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= _DAY:
            raise UsageError(f"no time limit of a query: {self.seconds:g} seconds", "A day at most: 86400")


@dataclass(frozen=True, slots=True)
class EngineTable:
    """A table as the engine takes it: arrays by name, and the expressions that make its columns of them."""

    name: str
    arrays: Mapping[str, Any]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryTask:
    """A checked query, the tables that it reads, and its forms with the ids of rows, to be tried in their order."""

    text: str
    traced: tuple[str, ...]
    tables: tuple[EngineTable, ...]
    limits: QueryLimits


@dataclass(frozen=True, slots=True)
class QueryRows:
    """What a query gives: the names of its columns, its rows (one more than the limit, if there are more), and for
    each the ids of the rows of tables that it was made of; empty where they cannot be traced."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    sources: list[tuple[str, ...]]


def run_in_process(task: QueryTask) -> QueryRows:
    """Return what a query gives. Raises UsageError where it is wrong or over a limit."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve_query; serve_query()"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the parent to deal with
    )
    with process:
        try:
            output, errors = process.communicate(
                pickle.dumps(task), task.limits.seconds + _GRACE_SECONDS + _START_SECONDS
            )
        except subprocess.TimeoutExpired:
            process.kill()
            raise _over_time(task.limits) from None
        except BaseException:
            process.kill()
            raise
    if process.returncode == -getattr(signal, "SIGALRM", 0):
        raise _over_time(task.limits)
    if process.returncode in _OUT_OF_MEMORY:
        raise _over_memory(task.limits)
    if process.returncode:
        if b"MemoryError" in errors or b"bad_alloc" in errors:
            raise _over_memory(task.limits)
        last = (errors.decode("utf-8", "replace").strip().splitlines() or [""])[-1]
        raise UsageError(
            f"the process of the query ended with {process.returncode}: {last[:300]}".rstrip(": ")
        )
    try:
        sent = output.partition(OUTPUT_BEGINS.encode())[2]
        result: QueryRows | UsageError = read_message(sent, ("clew.core.errors", __name__), _VALUE_TYPES)
    except pickle.UnpicklingError as error:
        raise UsageError(f"the process of the query failed: {error}") from error
    if isinstance(result, UsageError):
        raise result
    return result


def serve_query() -> None:
    """Run the query that stands on standard input, and write what it gives. The main function of the process."""
    output = take_output()
    task: QueryTask = pickle.load(sys.stdin.buffer)
    confine_process()
    import duckdb

    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": f"{task.limits.memory}MiB",
            "temp_directory": "",
            "threads": "2",
        },
    )
    for table in task.tables:
        _create_table(connection, table)
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    limit_memory((task.limits.memory + _GRACE_MIB) * MIB)
    _RowPickler(output).dump(_run(connection, task))
    output.flush()
    # Not to wait for a thread of the engine that still works.
    os._exit(0)


class _RowPickler(pickle.Pickler):
    """Writes times with the offset that they have, not with their time zone, which no message can have."""

    def reducer_override(self, value: Any) -> Any:
        """Return how a value is written, NotImplemented for the usual way."""
        if isinstance(value, datetime) and (offset := value.utcoffset()) is not None:
            return value.replace(tzinfo=timezone(offset)).__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return NotImplemented


def _run(connection: duckdb.DuckDBPyConnection, task: QueryTask) -> QueryRows | UsageError:
    import threading

    import duckdb

    timer = threading.Timer(task.limits.seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    if hasattr(signal, "setitimer"):
        # The signal's own action ends the process, whatever its threads are at.
        signal.setitimer(signal.ITIMER_REAL, task.limits.seconds + _GRACE_SECONDS)
    try:
        return _fetch_traced(connection, task)
    except duckdb.InterruptException:
        return _over_time(task.limits)
    except (duckdb.OutOfMemoryException, MemoryError):
        return _over_memory(task.limits)
    except duckdb.Error as error:
        if "bad_alloc" in str(error):
            return _over_memory(task.limits)
        return describe_failure(error)


def _fetch_traced(connection: duckdb.DuckDBPyConnection, task: QueryTask) -> QueryRows | UsageError:
    import duckdb

    for traced in task.traced:
        try:
            result = _fetch(connection, traced, task.limits.rows)
        except duckdb.BinderException:
            continue
        if isinstance(result, UsageError):
            return result
        return QueryRows(
            result.columns[:-1],
            [row[:-1] for row in result.rows],
            [tuple(filter(None, row[-1] or ())) for row in result.rows],
        )
    return _fetch(connection, task.text, task.limits.rows)


def _fetch(connection: duckdb.DuckDBPyConnection, query: str, limit: int) -> QueryRows | UsageError:
    cursor = connection.execute(query)
    columns = tuple(str(column[0]) for column in cursor.description or ())
    rows = cursor.fetchmany(limit + 1)
    for row in rows:
        if any(isinstance(value, str | bytes) and len(value) > _VALUE_LENGTH for value in row):
            return UsageError(f"a value of the result has more than {_VALUE_LENGTH:,} characters")
    rows = [tuple(map(_to_number, row)) for row in rows]
    return QueryRows(columns, rows, [])


def _to_number(value: Any) -> Any:
    """Return a decimal as a number that is written alike, and a float without the noise of binary fractions."""
    if isinstance(value, list):
        return [_to_number(each) for each in value]
    if isinstance(value, dict):
        return {_to_number(key): _to_number(each) for key, each in value.items()}
    if isinstance(value, Decimal):
        if Decimal(repr(float(value))) == value:
            return float(value)
        return int(value) if value == int(value) else f"{value.normalize():f}"
    return float(f"{value:.15g}") if isinstance(value, float) else value


def _create_table(connection: duckdb.DuckDBPyConnection, table: EngineTable) -> None:
    connection.register("_arrays", dict(table.arrays))
    connection.execute(
        f"CREATE TABLE {quote_identifier(table.name)} AS SELECT {', '.join(table.columns)} FROM _arrays"
    )
    connection.unregister("_arrays")


def quote_identifier(name: str) -> str:
    """Return a name in quotation marks, whether it needs them or not."""
    return '"' + name.replace('"', '""') + '"'


def describe_failure(error: Exception) -> UsageError:
    """Return the engine's error as one of the query."""
    message = " ".join(str(error).split("\n\n")[0].split())[:300]
    return UsageError(f"the query cannot be run: {message}", "See: clew tables")


def _over_time(limits: QueryLimits) -> UsageError:
    return UsageError(
        f"the query took longer than {limits.seconds:g} seconds", "Narrow it, or give it more: --timeout"
    )


def _over_memory(limits: QueryLimits) -> UsageError:
    return UsageError(
        f"the query needs more than {limits.memory} MiB of memory", "Narrow it with WHERE or LIMIT"
    )
