"""The result of a view: typed, as a dictionary, and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from torch_tb_profiler.api.tables import arrow_tables, split_sentences
from torch_tb_profiler.base import html
from torch_tb_profiler.base.errors import MissingExtraError, NotFoundError
from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.view import View

if TYPE_CHECKING:
    import pandas
    import pyarrow

R = TypeVar("R")


class Result(Generic[R]):
    """The result of a view: the same numbers as on the page, in base units (ns, bytes, ratios 0..1, FLOPs)."""

    def __init__(self, view: View, content: bytes) -> None:
        self._view = view
        self._content = content

    @cached_property
    def data(self) -> R:
        """Return the result as an object with typed fields, which its class documents."""
        data: R = msgspec.json.decode(self._content, type=threadsafe(self._view.payload))
        return data

    def to_dict(self) -> dict[str, Any]:
        """Return the result as the page gets it, as JSON values. Columns of bytes are base64 text."""
        payload: dict[str, Any] = msgspec.json.decode(self._content)
        return payload

    @property
    def text(self) -> str:
        """Return the sentences of the view, one per line."""
        return "\n".join(split_sentences(self.to_dict())[0])

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the names of the tables in the result, the main one first."""
        return tuple(self._tables)

    def to_arrow(self, table: str | None = None) -> pyarrow.Table:
        """Return a table of the result, by default the first of `tables`; raise NotFoundError for an unknown name.

        Nested objects become columns `outer.inner`, a tree has one row per node with its `depth`, unknown is null.
        """
        name = self.tables[0] if table is None else table
        if name not in self._tables:
            raise NotFoundError(f"there is no table {name!r}", hint=f"tables: {', '.join(self.tables)}")
        return self._tables[name]

    def to_pandas(self, table: str | None = None) -> pandas.DataFrame:
        """Return the table as a pandas data frame; raise MissingExtraError if pandas is not installed."""
        return to_data_frame(self.to_arrow(table))

    @cached_property
    def _tables(self) -> Mapping[str, pyarrow.Table]:
        return arrow_tables(self._view, self.data, self.to_dict())

    def __repr__(self) -> str:
        return f"<{self._view.title}>\n{self.text}"

    def _repr_html_(self) -> str:
        """Return the sentences and the first rows of the main table, for a notebook."""
        name = self.tables[0]
        rows = self.to_arrow(name)
        shown = html.render_table(name, rows.slice(0, html.MAX_ROWS).to_pylist(), rows.num_rows)
        return html.render_block(self._view.title, split_sentences(self.to_dict())[0], shown)


def to_data_frame(table: pyarrow.Table) -> pandas.DataFrame:
    """Convert an Arrow table to a pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("pandas is not installed", hint="pip install pandas") from error
    import pyarrow

    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pyarrow.types.is_integer(column.type) and column.null_count:
            # pandas would convert them to floats, which are exact only up to 2^53.
            frame[name] = column.to_pandas(types_mapper=lambda _: pandas.Int64Dtype())
    return frame
