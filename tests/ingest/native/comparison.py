"""The same bytes read with the native reader and without it, and what is not the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import fields

from tests.support.traces import read_bytes
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto.native import library
from torch_tb_profiler.model.trace import ArgColumn, Trace

NEEDED = pytest.mark.skipif(library._load() is None, reason="the native reader is not built")


def outcome(content: bytes, native: str = "1") -> Trace | TraceError:
    """Return what is read with the library, where it was built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_PROFILER_NATIVE", native)
        try:
            return read_bytes(content)
        except TraceError as error:
            return error


def read_in_python(content: bytes) -> Trace | TraceError:
    """Return what is read without the library."""
    return outcome(content, "0")


def _equal_numbers(kind: str, *texts: str) -> bool:
    """Return whether these are spellings of one number in a column of JSON: 1e+18 and 1e18, 1 and 1.0."""
    if kind != "json":
        return False
    values = [json.loads(text) for text in texts]
    return (
        all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        and len({*values}) == 1
    )


def differences(one: Trace | TraceError, other: Trace | TraceError) -> list[str]:
    """Return names of what differs; the order of distinct texts and of columns counts, the spelling of numbers in
    a column of JSON doesn't."""
    if isinstance(one, TraceError) or isinstance(other, TraceError):
        return [] if str(one) == str(other) else [f"{one} | {other}"]
    return [*_of_traces(one, other)]


def _of_traces(one: Trace, other: Trace) -> Iterator[str]:
    for row in fields(one.events):
        if not np.array_equal(getattr(one.events, row.name), getattr(other.events, row.name)):
            yield row.name
    for name in ("strings", "threads", "text_ids", "metadata", "trace_start_ns", "base_ns", "health"):
        if getattr(one, name) != getattr(other, name):
            yield name
    if one.args.keys() != other.args.keys():
        yield f"keys {one.args.keys() ^ other.args.keys()}"
    for key in one.args.keys() & other.args.keys():
        yield from (f"{key}: {what}" for what in _of_columns(one.args[key], other.args[key]))


def _of_columns(one: ArgColumn, other: ArgColumn) -> Iterator[str]:
    if one.kind != other.kind:
        yield f"{one.kind} | {other.kind}"
    elif not np.array_equal(one.rows, other.rows):
        yield "rows"
    elif one.kind in ("text", "json"):
        texts = [[column.dictionary[code] for code in column.values] for column in (one, other)]
        unlike = [
            f"{a} | {b}" for a, b in zip(*texts, strict=True) if a != b and not _equal_numbers(one.kind, a, b)
        ]
        yield from unlike[:1]
    elif not np.array_equal(one.values, other.values, equal_nan=one.kind == "float"):
        yield "values"
