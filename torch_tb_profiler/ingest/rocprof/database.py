"""Safe reading of a SQLite file that may be damaged or hostile, table by table.

SQLite reads by path only, so the stream is copied to a temporary file. It is opened read-only and immutable:
SQLite looks for no journal and writes nothing. Only entire tables are scanned, in stored order, with their columns
named one by one. Views, triggers, virtual tables, and computed columns are never used: they can run forever or
produce gigabytes. Damaged pages can link in circles, so no more rows are read than the file can hold.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.source import UnpackedStream
from torch_tb_profiler.model.health import HealthLog

CHUNK_ROWS = 1 << 16
"""Rows that are in memory as Python objects at a time."""

_COPY_BYTES = 1 << 20
_PAGE_COUNT_OFFSET = 28
"""Offset of the number of pages in the header."""

_MAX_PAGE_BYTES = 1 << 16
"""The largest page, which the header stores as 1."""

_MIN_ROW_BYTES = 8
"""Smallest row of three or more columns: two bytes of a pointer, a length, an id, a header."""

_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Errors of a damaged file; UnicodeDecodeError if SQLite's message isn't UTF-8."""


class Database:
    """An open database; an error of SQLite ends the table and is noted.

    report_step  called after each chunk of a table; an exception that it raises ends the reading
    """

    def __init__(
        self, connection: sqlite3.Connection, size: int, health: HealthLog, report_step: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._max_rows = size // _MIN_ROW_BYTES
        self._health = health
        self._report_step = report_step

    def tables(self) -> list[str]:
        """Return the names of the tables that store rows."""
        tables = self._fetch_rows("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        return [
            name
            for name, sql in tables
            if isinstance(name, str) and isinstance(sql, str) and sql.upper().startswith("CREATE TABLE")
        ]

    def columns(self, table: str) -> set[str]:
        """Return the stored (not computed) columns of a table."""
        return {str(row[1]) for row in self._fetch_rows(f"PRAGMA table_xinfo({_quote(table)})") if row[6] == 0}

    def rows(self, table: str, columns: Sequence[str], where: str = "") -> Iterator[list[Sequence[Any]]]:
        """Yield chunks of a table: one sequence of values per column, all None for a missing column."""
        stored = self.columns(table)
        selected = ", ".join(_quote(column) if column in stored else "NULL" for column in columns)
        query = f"SELECT {selected} FROM {_quote(table)} NOT INDEXED {where}"
        count = 0
        try:
            with closing(self._connection.execute(query)) as cursor:
                while chunk := cursor.fetchmany(CHUNK_ROWS):
                    count += len(chunk)
                    if count > self._max_rows:
                        self._note_damage(f"the pages of {table} form a circle")
                        return
                    yield list(zip(*chunk, strict=True))
                    self._report_step()
        except _ERRORS as error:
            self._note_damage(_error_text(error))

    def _fetch_rows(self, query: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        try:
            with closing(self._connection.execute(query)) as cursor:
                rows.extend(cursor.fetchmany(CHUNK_ROWS))
        except _ERRORS as error:
            self._note_damage(_error_text(error))
        return rows

    def _note_damage(self, reason: str) -> None:
        message = f"the database is damaged ({reason}); the readable part is shown"
        self._health.add("database_damaged", "error", message)


@contextmanager
def open_database(
    source: UnpackedStream, health: HealthLog, report_step: Callable[[], None]
) -> Iterator[Database]:
    """Open the database in `source`; raise TraceError if it isn't one, TooLargeError if `source` does."""
    with TemporaryDirectory(prefix="torch-tb-profiler-") as folder:
        path = Path(folder) / "copy.db"
        _copy_to_file(source, path, health)
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        with closing(connection):
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            try:
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA cell_size_check = ON")
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            except _ERRORS as error:
                raise TraceError(f"the database cannot be read: {_error_text(error)}") from error
            yield Database(connection, path.stat().st_size, health, report_step)


def _copy_to_file(source: UnpackedStream, path: Path, health: HealthLog) -> None:
    """Copy the database to `path`, with the page count that is there: SQLite would refuse a truncated file."""
    buffer = bytearray(_COPY_BYTES)
    with path.open("w+b") as target:
        while count := source.read_into(memoryview(buffer)):
            target.write(memoryview(buffer)[:count])
        size = target.tell()
        target.seek(0)
        header = target.read(_PAGE_COUNT_OFFSET + 4)
        if len(header) < _PAGE_COUNT_OFFSET + 4:
            raise TraceError("the database is truncated inside its header")
        page = int.from_bytes(header[16:18], "big")
        pages = size // max(_MAX_PAGE_BYTES if page == 1 else page, 1)
        if pages < int.from_bytes(header[_PAGE_COUNT_OFFSET:], "big"):
            health.add("truncated", "error", "the file ends too early; what came before is shown")
            target.seek(_PAGE_COUNT_OFFSET)
            target.write(min(pages, 2**32 - 1).to_bytes(4, "big"))


def _error_text(error: Exception) -> str:
    """Return SQLite's message, or a general one if it isn't UTF-8 and Python has none."""
    return (isinstance(error, sqlite3.Error) and str(error)) or "its schema is damaged"


def _quote(name: str) -> str:
    """Return the name of a table or column quoted for SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'
