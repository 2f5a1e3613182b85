"""What commands write: tables for people, JSON and CSV for programs, and files."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.cli._styles import terminal_width

if TYPE_CHECKING:
    from torch_tb_profiler.cli.screens.arrange import Arrangement
    from torch_tb_profiler.cli.screens.screen import Screen


def print_payload(
    payload: dict[str, Any], options: argparse.Namespace, slug: str = "", first: str = "rows"
) -> None:
    """Print `payload` to stdout as `options` of `add_format` ask for.

    slug   the view that it answers; "" for anything else
    first  the table that CSV consists of, and that comes first among several tables

    Raises UsageError for a column that it doesn't have.
    """
    from torch_tb_profiler.cli.screens.arrange import Arrangement, arrange

    columns = tuple(name.strip() for name in (options.columns or "").split(",") if name.strip())
    arrangement = Arrangement(columns, options.sort or "", options.limit)
    if options.format == "json":
        sys.stdout.write(json.dumps(payload, indent=1) + "\n")
    elif options.format == "table":
        from torch_tb_profiler.cli.screens import screen_of

        print_screen(arrange(screen_of(slug, payload, first), arrangement), options.wide, options.limit)
    else:
        _print_separated(payload, first, arrangement, "," if options.format == "csv" else "\t")


def print_screen(screen: Screen, wide: bool = False, limit: int | None = None) -> None:
    """Print a screen to stdout: within the width of a terminal, and without bars and limits to a pipe.

    What is longer than the terminal goes through a pager.
    """
    from torch_tb_profiler.cli._pager import paged
    from torch_tb_profiler.cli.screens.draw import ScreenLayout, draw_screen

    width = terminal_width(sys.stdout)
    with paged(sys.stdout) as stream:
        draw_screen(screen, ScreenLayout(width, width is not None, wide, limit), stream)


def _print_separated(payload: dict[str, Any], first: str, arrangement: Arrangement, delimiter: str) -> None:
    """Print the first table with exact numbers in base units, its columns named like the fields."""
    import csv

    from torch_tb_profiler.api.tables import tables
    from torch_tb_profiler.cli.screens.arrange import arrange
    from torch_tb_profiler.cli.screens.generic import kind_of, title_of
    from torch_tb_profiler.cli.screens.screen import Column, Screen, Table

    rows = next(iter(tables(payload, first).values()), [])
    rows = [*map(_with_json_lists, rows)]
    names = dict.fromkeys(key for row in rows for key in row)
    columns = [Column(key, title_of(key), kind_of(key, [row.get(key) for row in rows])) for key in names]
    table = Table(columns, rows)
    arranged = next(iter(arrange(Screen([], tables=[table]), arrangement).tables), table)
    buffer = io.StringIO()
    keys = [column.key for column in arranged.columns]
    writer = csv.DictWriter(buffer, keys, delimiter=delimiter, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(arranged.rows[: arrangement.limit or None])
    sys.stdout.write(buffer.getvalue())


def _with_json_lists(row: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(cell) if isinstance(cell, list) else cell for name, cell in row.items()}


def write_file(path: str, pieces: Iterable[bytes]) -> None:
    """Write `pieces` to a file that appears only when it is complete; "-" is stdout, and .gz is compressed.

    Raises StorageError if it can't be written.
    """
    if path == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    import gzip

    partial = f"{path}.part"
    try:
        with gzip.open(partial, "wb", 5) if path.endswith(".gz") else open(partial, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(partial, path)
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror or error}", where=path) from error
    finally:
        if os.path.exists(partial):
            os.remove(partial)
