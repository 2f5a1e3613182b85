"""What `--columns`, `--sort` and `--limit` do to the tables of a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.cli.screens.screen import Column, Row, Screen, Table


@dataclass(frozen=True)
class Arrangement:
    """What the options ask for.

    columns  names of columns, by title or field, in order; empty: as the page shows them
    sort     name of a column, followed by ":asc" or ":desc", or after a "-": descending; "" keeps the view's order
    limit    most rows of a table; 0: all, None: as many as are read at a glance
    """

    columns: tuple[str, ...] = ()
    sort: str = ""
    limit: int | None = None


def arrange(screen: Screen, arrangement: Arrangement) -> Screen:
    """Return the screen with the requested order and columns; with `columns` only the table that has them.

    Raises UsageError if no table has them; its message lists the columns.
    """
    tables = [table for table in screen.tables if table.rows]
    if arrangement.sort:
        name, descending = parse_sort(arrangement.sort)
        index = _find_table(tables, [name])
        tables[index] = sort_table(tables[index], _column(tables[index], name), descending)
    if arrangement.columns:
        table = tables[_find_table(tables, arrangement.columns)]
        chosen = [replace(_column(table, name), hidden=False) for name in arrangement.columns]
        tables = [replace(table, columns=chosen, title="", detail="")]
    return replace(screen, tables=tables)


def parse_sort(text: str) -> tuple[str, bool | None]:
    """Return the column that `--sort` names, and whether to sort it descending; None as its kind suggests."""
    name, colon, order = text.rpartition(":")
    if colon and order in ("asc", "desc"):
        return name, order == "desc"
    if text.startswith("-"):
        return text[1:], True
    return text, None


def sort_table(table: Table, column: Column, descending: bool | None) -> Table:
    """Return the sorted table, unknown values last; None sorts numbers from the largest and texts from A."""
    if descending is None:
        descending = not column.is_text
    known = [row for row in table.rows if row.get(column.key) is not None]
    unknown = [row for row in table.rows if row.get(column.key) is None]
    rows = sorted(known, key=lambda row: _comparable(row, column), reverse=descending)
    return replace(table, rows=[*rows, *unknown])


def _comparable(row: Row, column: Column) -> tuple[str, float]:
    value = row[column.key]
    return (str(value).strip().lower(), 0) if column.is_text else ("", float(value))


def _find_table(tables: Sequence[Table], names: Sequence[str]) -> int:
    """Return the index of the first table that has all these columns."""
    for index, table in enumerate(tables):
        if all(_matching(table, name) for name in names):
            return index
    known = [column.title for table in tables for column in table.columns if column.title]
    missing = next((name for name in names if not any(_matching(table, name) for table in tables)), None)
    what = f"no column is called {missing!r}" if missing else f"no table has all of {', '.join(names)}"
    raise UsageError(what, hint=f"columns: {', '.join(dict.fromkeys(known)) or 'none'}")


def _column(table: Table, name: str) -> Column:
    return _matching(table, name)[0]


def _matching(table: Table, name: str) -> list[Column]:
    """Return the columns called `name`: by title or field, or the field without its unit (`host_self`)."""
    wanted = _normal(name)
    return [
        column
        for column in table.columns
        if wanted
        in (
            _normal(column.title),
            _normal(column.key),
            _normal(column.full),
            _normal(column.key.rpartition("_")[0]),
        )
        and wanted
    ]


def _normal(name: str) -> str:
    return name.strip().lower().replace("_", " ")
