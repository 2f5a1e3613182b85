"""The tables in a payload: its lists of objects, its objects, and its columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import inspect

from torch_tb_profiler.view import NUMBERS, View

Rows = list[dict[str, Any]]

COLUMNS, WHOLE = "columns", "whole"
"""The table of what travels as columns, and that of a payload that holds no table: its fields, in one row."""

_SCALARS: dict[Any, pa.DataType] = {
    inspect.IntType: pa.int64(),
    inspect.FloatType: pa.float64(),
    inspect.StrType: pa.string(),
}


def sentences(payload: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """(the sentences of a payload without their links, its other fields)."""
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
    """A payload with its sentences as plain text, wherever they are."""
    if _is_text(value):
        return _plain(value)
    if isinstance(value, list):
        return [without_links(each) for each in value]
    if isinstance(value, dict):
        return {key: without_links(each) for key, each in value.items()}
    return value


def tables(payload: Mapping[str, Any], first: str = "rows") -> dict[str, Rows]:
    """Name -> rows, of the lists of objects and the objects in a payload; `first` stands before the others."""
    by_name = dict(_tables(payload))
    return {name: by_name[name] for name in sorted(by_name, key=lambda name: name != first)}


def arrow_tables(view: View, data: object, payload: Mapping[str, Any]) -> dict[str, pa.Table]:
    """The same with the types that the payload declares, and with its columns; of every payload there is one."""
    declared = dict(_declared(inspect.type_info(view.payload)))
    by_name: dict[str, Rows] = {**dict.fromkeys(declared, []), **tables(payload)}
    typed = {name: _typed(rows, declared.get(name, {})) for name, rows in by_name.items()}
    columns = _columns(view, data)
    if columns:
        typed[COLUMNS] = pa.table(columns)
    lists = [name for name in typed if name in declared or name == COLUMNS]
    if not lists:
        typed[WHOLE] = _typed([flat(payload)], {})
    best = view.rows if view.rows in typed else lists[0] if lists else WHOLE
    return {name: typed[name] for name in sorted(typed, key=lambda name: name != best)}


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """An object as one row: nested ones as `outer.inner`, sentences as text."""
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            cells.update(flat(value, f"{prefix}{key}."))
        else:
            cells[prefix + key] = _plain(value) if _is_text(value) else value
    return cells


def _tables(payload: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Rows]]:
    for key, value in payload.items():
        if isinstance(value, list) and value and isinstance(value[0], dict) and not _is_text(value):
            yield prefix + key, [flat(row) for row in _unfolded(value)]
        elif isinstance(value, dict) and value and not prefix:
            lists = dict(_tables(value, f"{key}."))
            yield key, [flat({name: cell for name, cell in value.items() if f"{key}.{name}" not in lists})]
            yield from lists.items()


def _unfolded(rows: Rows, depth: int = 0) -> Iterator[dict[str, Any]]:
    """A tree of rows as lines, each row before its `children`, with its `depth`."""
    for row in rows:
        children = row.get("children")
        if not isinstance(children, list):
            yield row
            continue
        yield {"depth": depth, **{key: value for key, value in row.items() if key != "children"}}
        yield from _unfolded(children, depth + 1)


def _is_text(value: Any) -> bool:
    """Whether a value is a `views._shared.text.Text`, decoded."""
    return isinstance(value, list) and bool(value) and all(_is_phrase(part) for part in value)


def _is_phrase(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"text", "link"}


def _plain(text: list[dict[str, Any]]) -> str:
    return "".join(phrase["text"] for phrase in text)


def _declared(info: Any, prefix: str = "") -> Iterator[tuple[str, dict[str, pa.DataType]]]:
    """Name of a list of objects -> the types of its columns."""
    for field in info.fields:
        kind = _known(field.type)
        row = _known(kind.item_type) if isinstance(kind, inspect.ListType) else None
        if isinstance(row, inspect.StructType):
            yield prefix + field.name, dict(_cells(row))
        elif isinstance(kind, inspect.StructType) and not prefix:
            yield from _declared(kind, f"{field.name}.")


def _cells(info: inspect.StructType, prefix: str = "") -> Iterator[tuple[str, pa.DataType]]:
    if any(field.name == "children" for field in info.fields):
        yield "depth", pa.int64()
    for field in info.fields:
        kind = _known(field.type)
        if isinstance(kind, inspect.StructType):
            yield from _cells(kind, f"{prefix}{field.name}.")
        elif not isinstance(kind, inspect.DictType) and field.name != "children":
            yield prefix + field.name, _arrow_type(kind)


def _known(info: Any) -> Any:
    """A type without `| None` and without its limits."""
    if isinstance(info, inspect.Metadata):
        return _known(info.type)
    if isinstance(info, inspect.UnionType):
        others = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
        return _known(others[0]) if len(others) == 1 else info
    return info


def _arrow_type(kind: Any) -> pa.DataType:
    """Text for what Arrow has no plain type for; such values are JSON."""
    if isinstance(kind, inspect.BoolType):
        return pa.bool_()
    if isinstance(kind, inspect.LiteralType):
        return pa.string() if isinstance(kind.values[0], str) else pa.int64()
    if isinstance(kind, inspect.ListType) and type(_known(kind.item_type)) in _SCALARS:
        return pa.list_(_arrow_type(_known(kind.item_type)))
    return _SCALARS.get(type(kind), pa.string())


def _typed(rows: Rows, types: Mapping[str, pa.DataType]) -> pa.Table:
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


def _columns(view: View, data: object) -> dict[str, Any]:
    """What a payload holds as columns of one length: of bytes, else of numbers and texts."""
    columns: dict[str, Any] = {}
    kinds = {field.name: field.type for field in inspect.type_info(view.payload).fields}  # type: ignore[attr-defined]
    for name, kind in kinds.items():
        value = getattr(data, name)
        if (dtype := _dtype(kind)) is not None:
            columns[name] = np.frombuffer(value, dtype)
        elif isinstance(kind, inspect.ListType) and (dtype := _dtype(kind.item_type)) is not None:
            columns.update({f"{name}.{at}": np.frombuffer(each, dtype) for at, each in enumerate(value)})
    if not columns and not any(isinstance(_item(kind), inspect.StructType) for kind in kinds.values()):
        scalar = (*_SCALARS, inspect.LiteralType)
        columns = {name: getattr(data, name) for name, kind in kinds.items() if isinstance(_item(kind), scalar)}
    length = max(map(len, columns.values()), default=0)
    return {name: values for name, values in columns.items() if len(values) == length} if len(columns) > 1 else {}


def _item(kind: Any) -> Any:
    return _known(kind.item_type) if isinstance(kind, inspect.ListType) else None


def _dtype(kind: Any) -> str | None:
    return kind.extra.get(NUMBERS) if isinstance(kind, inspect.Metadata) and kind.extra else None
