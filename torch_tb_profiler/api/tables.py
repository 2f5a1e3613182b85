"""The tables in a payload: its lists of objects, its objects, and its columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import inspect

from torch_tb_profiler.view import NUMBERS, View

if TYPE_CHECKING:
    import pyarrow as pa

Rows = list[dict[str, Any]]

COLUMNS, WHOLE = "columns", "whole"
"""Names of the table of a payload's columns, and of the one-row table of its fields if it has no other table."""

_SCALARS: dict[Any, str] = {inspect.IntType: "int64", inspect.FloatType: "double", inspect.StrType: "string"}
"""Types of plain values and Arrow's names of them. Arrow itself is imported only for its tables."""

_declared_type: Callable[[type], inspect.Type] = cache(inspect.type_info)
"""Returns the types of all fields of a payload, which msgspec compiles from text."""


def split_sentences(payload: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return (the sentences of a payload as plain text, its other fields)."""
    lines, others = [], {}
    for key, value in payload.items():
        if _is_text(value):
            lines.append(_plain(value))
        elif isinstance(value, list) and value and all(map(_is_text, value)):
            lines += map(_plain, value)
        else:
            others[key] = value
    return lines, others


def without_links(value: Any) -> Any:
    """Return a payload with all its sentences, also nested ones, as plain text."""
    if _is_text(value):
        return _plain(value)
    if isinstance(value, list):
        return [without_links(each) for each in value]
    if isinstance(value, dict):
        return {key: without_links(each) for key, each in value.items()}
    return value


def tables(payload: Mapping[str, Any], first: str = "rows") -> dict[str, Rows]:
    """Return name -> rows for the lists of objects and the objects in a payload; the table `first` comes first."""
    by_name = dict(_tables(payload))
    return {name: by_name[name] for name in sorted(by_name, key=lambda name: name != first)}


def arrow_tables(view: View, data: object, payload: Mapping[str, Any]) -> dict[str, pa.Table]:
    """Return name -> Arrow table: `tables` with the declared types, and the columns; at least one table."""
    declared = dict(_declared_tables(_declared_type(view.payload)))
    by_name: dict[str, Rows] = {**dict.fromkeys(declared, []), **tables(payload)}
    typed = {name: _typed_table(rows, declared.get(name, {})) for name, rows in by_name.items()}
    columns = _column_arrays(view, data)
    if columns:
        import pyarrow as pa

        typed[COLUMNS] = pa.table(columns)
    lists = [name for name in typed if name in declared or name == COLUMNS]
    if not lists:
        typed[WHOLE] = _typed_table([flatten(payload)], {})
    main = view.rows if view.rows in typed else lists[0] if lists else WHOLE
    return {name: typed[name] for name in sorted(typed, key=lambda name: name != main)}


def packed_fields(payload: type) -> frozenset[str]:
    """Return the fields of a payload that are columns packed into bytes, or lists of such columns."""
    declared = _declared_type(payload)
    assert isinstance(declared, inspect.StructType)
    return frozenset(
        field.name
        for field in declared.fields
        for kind in (field.type,)
        if _dtype(kind.item_type if isinstance(kind, inspect.ListType) else kind) is not None
    )


def flatten(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten an object to one row: nested fields as `outer.inner`, sentences as text."""
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            cells.update(flatten(value, f"{prefix}{key}."))
        else:
            cells[prefix + key] = _plain(value) if _is_text(value) else value
    return cells


def _tables(payload: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Rows]]:
    for key, value in payload.items():
        if isinstance(value, list) and value and isinstance(value[0], dict) and not _is_text(value):
            yield prefix + key, [flatten(row) for row in _flatten_tree(value)]
        elif isinstance(value, dict) and value and not prefix:
            lists = dict(_tables(value, f"{key}."))
            yield key, [flatten({name: cell for name, cell in value.items() if f"{key}.{name}" not in lists})]
            yield from lists.items()


def _flatten_tree(rows: Rows, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the rows of a tree, parents before their `children`, each with its `depth`."""
    for row in rows:
        children = row.get("children")
        if not isinstance(children, list):
            yield row
            continue
        yield {"depth": depth, **{key: value for key, value in row.items() if key != "children"}}
        yield from _flatten_tree(children, depth + 1)


def _is_text(value: Any) -> bool:
    """Return whether `value` is a `views._shared.text.Text` as JSON."""
    return isinstance(value, list) and bool(value) and all(_is_phrase(part) for part in value)


def _is_phrase(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"text", "link"}


def _plain(text: list[dict[str, Any]]) -> str:
    return "".join(phrase["text"] for phrase in text)


def _declared_tables(info: Any, prefix: str = "") -> Iterator[tuple[str, dict[str, pa.DataType]]]:
    """Yield (name, types of the columns) of each declared list of objects."""
    for field in info.fields:
        kind = _base_type(field.type)
        row = _base_type(kind.item_type) if isinstance(kind, inspect.ListType) else None
        if isinstance(row, inspect.StructType):
            yield prefix + field.name, dict(_declared_cells(row))
        elif isinstance(kind, inspect.StructType) and not prefix:
            yield from _declared_tables(kind, f"{field.name}.")


def _declared_cells(info: inspect.StructType, prefix: str = "") -> Iterator[tuple[str, pa.DataType]]:
    if any(field.name == "children" for field in info.fields):
        yield "depth", _arrow_type(inspect.IntType())
    for field in info.fields:
        kind = _base_type(field.type)
        if isinstance(kind, inspect.StructType):
            yield from _declared_cells(kind, f"{prefix}{field.name}.")
        elif not isinstance(kind, inspect.DictType) and field.name != "children":
            yield prefix + field.name, _arrow_type(kind)


def _base_type(info: Any) -> Any:
    """Return a type without `| None` and without constraints."""
    if isinstance(info, inspect.Metadata):
        return _base_type(info.type)
    if isinstance(info, inspect.UnionType):
        others = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
        return _base_type(others[0]) if len(others) == 1 else info
    return info


def _arrow_type(kind: Any) -> pa.DataType:
    """Return the Arrow type; values without a plain one become JSON text."""
    import pyarrow as pa

    if isinstance(kind, inspect.BoolType):
        return pa.bool_()
    if isinstance(kind, inspect.LiteralType):
        return pa.string() if isinstance(kind.values[0], str) else pa.int64()
    if isinstance(kind, inspect.ListType) and type(_base_type(kind.item_type)) in _SCALARS:
        return pa.list_(_arrow_type(_base_type(kind.item_type)))
    return pa.type_for_alias(_SCALARS.get(type(kind), "string"))


def _typed_table(rows: Rows, types: Mapping[str, pa.DataType]) -> pa.Table:
    import pyarrow as pa

    names = [*types, *dict.fromkeys(name for row in rows for name in row if name not in types)]
    arrays = {}
    for name in names:
        cells = [row.get(name) for row in rows]
        kind = types.get(name)
        if kind is None and all(cell is None or isinstance(cell, (int, float)) for cell in cells):
            arrays[name] = pa.array(cells)
            continue
        if kind is None or kind == pa.string():
            cells = [cell if isinstance(cell, str | None) else json.dumps(cell) for cell in cells]
        arrays[name] = pa.array(cells, kind or pa.string())
    return pa.table(arrays)


def _column_arrays(view: View, data: object) -> dict[str, Any]:
    """Return the columns of equal length in a payload: byte columns, or else lists of numbers and texts."""
    columns: dict[str, Any] = {}
    kinds = {field.name: field.type for field in _declared_type(view.payload).fields}  # type: ignore[attr-defined]
    for name, kind in kinds.items():
        value = getattr(data, name)
        if (dtype := _dtype(kind)) is not None:
            columns[name] = np.frombuffer(value, dtype)
        elif isinstance(kind, inspect.ListType) and (dtype := _dtype(kind.item_type)) is not None:
            columns.update({f"{name}.{index}": np.frombuffer(each, dtype) for index, each in enumerate(value)})
    if not columns and not any(isinstance(_item_type(kind), inspect.StructType) for kind in kinds.values()):
        scalar = (*_SCALARS, inspect.LiteralType)
        columns = {
            name: getattr(data, name) for name, kind in kinds.items() if isinstance(_item_type(kind), scalar)
        }
    length = max(map(len, columns.values()), default=0)
    return {name: values for name, values in columns.items() if len(values) == length} if len(columns) > 1 else {}


def _item_type(kind: Any) -> Any:
    return _base_type(kind.item_type) if isinstance(kind, inspect.ListType) else None


def _dtype(kind: Any) -> str | None:
    return kind.extra.get(NUMBERS) if isinstance(kind, inspect.Metadata) and kind.extra else None
