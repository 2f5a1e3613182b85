"""A SQLite file that nobody vouches for, read table by table.

SQLite reads by path only, so what comes in is copied to a temporary file. It is opened read-only and as
unchanging: no journal beside it is looked for, nothing is written. Only whole tables are scanned, in the order
they are stored, and their columns are named one by one. A view, a trigger, a virtual table or a computed column
can run for ever or make gigabytes of nothing; none is touched. A table of damaged pages can lead in circles: no
more rows are read than the file can hold.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog

ROWS = 1 << 16
"""Rows that are held as Python objects at a time."""

_PIECE = 1 << 20
_COUNT_AT = 28
"""Where the header says how many pages there are."""

_LARGEST_PAGE = 1 << 16
"""Bytes; the header says it as 1."""

_LEAST_ROW_BYTES = 8
"""Of a row of three columns or more: two bytes of a pointer, a length, an id, a header."""

_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What Python's module raises of a damaged file: UnicodeDecodeError where an error of SQLite quotes bytes that
are no UTF-8."""


class Database:
    """An open file; errors of SQLite inside a table end the table and are noted.

    advance  called after each piece of a table that is read; what it raises ends the reading
    """

    def __init__(
        self, connection: sqlite3.Connection, size: int, health: HealthLog, advance: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._most_rows = size // _LEAST_ROW_BYTES
        self._health = health
        self._advance = advance

    def tables(self) -> list[str]:
        """Names of the tables that hold rows of their own."""
        tables = self._all("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        return [
            name
            for name, sql in tables
            if isinstance(name, str) and isinstance(sql, str) and sql.upper().startswith("CREATE TABLE")
        ]

    def columns(self, table: str) -> set[str]:
        """Columns of a table that are stored, not computed."""
        return {str(row[1]) for row in self._all(f"PRAGMA table_xinfo({_quoted(table)})") if row[6] == 0}

    def rows(self, table: str, columns: Sequence[str], where: str = "") -> Iterator[list[Sequence[Any]]]:
        """Pieces of a table: one sequence of values per column; of a column that it lacks, None."""
        stored = self.columns(table)
        wanted = ", ".join(_quoted(column) if column in stored else "NULL" for column in columns)
        query = f"SELECT {wanted} FROM {_quoted(table)} NOT INDEXED {where}"
        count = 0
        try:
            with closing(self._connection.execute(query)) as cursor:
                while piece := cursor.fetchmany(ROWS):
                    count += len(piece)
                    if count > self._most_rows:
                        self._damaged(f"{table} leads in circles")
                        return
                    yield list(zip(*piece, strict=True))
                    self._advance()
        except _ERRORS as error:
            self._damaged(_reason(error))

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        try:
            with closing(self._connection.execute(query)) as cursor:
                rows.extend(cursor.fetchmany(ROWS))
        except _ERRORS as error:
            self._damaged(_reason(error))
        return rows

    def _damaged(self, reason: str) -> None:
        message = f"the database is damaged ({reason}); what could be read is shown"
        self._health.add("database_damaged", "error", message)


@contextmanager
def open_database(source: Source, health: HealthLog, advance: Callable[[], None]) -> Iterator[Database]:
    """The database that `source` holds; TraceError if it is none, TooLargeError as `source` says."""
    with TemporaryDirectory(prefix="torch-tb-profiler-") as folder:
        path = Path(folder) / "copy.db"
        _copy(source, path, health)
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        with closing(connection):
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            try:
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA cell_size_check = ON")
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            except _ERRORS as error:
                raise TraceError(f"this database cannot be read: {_reason(error)}") from error
            yield Database(connection, path.stat().st_size, health, advance)


def _copy(source: Source, path: Path, health: HealthLog) -> None:
    """SQLite opens no file that is shorter than its header says, so a copy that is cut off says what it has."""
    buffer = bytearray(_PIECE)
    with path.open("w+b") as target:
        while count := source.read_into(memoryview(buffer)):
            target.write(memoryview(buffer)[:count])
        size = target.tell()
        target.seek(0)
        header = target.read(_COUNT_AT + 4)
        if len(header) < _COUNT_AT + 4:
            raise TraceError("this database is cut off inside its header")
        page = int.from_bytes(header[16:18], "big")
        pages = size // max(_LARGEST_PAGE if page == 1 else page, 1)
        if pages < int.from_bytes(header[_COUNT_AT:], "big"):
            health.add("truncated", "error", "the file ends too early; what came before is shown")
            target.seek(_COUNT_AT)
            target.write(min(pages, 2**32 - 1).to_bytes(4, "big"))


def _reason(error: Exception) -> str:
    """SQLite's words. Where they quote what is no UTF-8, Python 3.10 has none, later ones cannot decode them."""
    return (isinstance(error, sqlite3.Error) and str(error)) or "its schema is damaged"


def _quoted(name: str) -> str:
    """A name of a table or column as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
