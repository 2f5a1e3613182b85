"""The real traces of the corpus, each parsed once in a process: what a test derives from a trace serves the next.

All tests that use them carry `pytestmark = MARKS`, so that one process of pytest-xdist runs them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.ingest.runtime import without_gc
from torch_tb_profiler.model.ranks import split_ranks
from torch_tb_profiler.model.trace import Trace

MARKS = [pytest.mark.slow, pytest.mark.xdist_group("corpus")]


def files(corpus: Path) -> list[Path]:
    """Return all trace files, readable or not."""
    found = sorted((corpus / "traces").glob("*/*.json*"))
    assert found
    return found


@cache
def outcome(path: Path) -> Trace | TraceError:
    """Return what reading a file gives: its trace, or why there is none."""
    try:
        with path.open("rb") as stream:
            return read_trace(stream, size=path.stat().st_size)
    except TraceError as error:
        return error


def read(path: Path) -> Trace:
    """Return the trace of a file that can be read."""
    trace = outcome(path)
    assert isinstance(trace, Trace), trace
    return trace


def of_run(corpus: Path, run: str, span: int = 0) -> Trace:
    """Return the trace of a run, its first file by default."""
    return read(sorted((corpus / "traces" / run).glob("*.json*"))[span])


@cache
def ranks(path: Path) -> dict[int, Trace]:
    """Return the ranks in a file, by number; 0 for a file of one; none if the file cannot be read."""
    trace = outcome(path)
    return {} if isinstance(trace, TraceError) else split_ranks(trace) or {0: trace}


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def whole_files(corpus: Path) -> Iterator[tuple[str, Trace]]:
    """Yield name and trace of each file that can be read, ranks in it together."""
    for path in files(corpus):
        trace = outcome(path)
        if isinstance(trace, Trace):
            yield name(path), trace


def recordings(corpus: Path) -> Iterator[tuple[str, Trace]]:
    """Yield name and trace of each rank of each file that can be read: `<run>/<file>#<rank>`."""
    for path in files(corpus):
        for rank, trace in ranks(path).items():
            yield f"{name(path)}#{rank}", trace


class Written(NamedTuple):
    """What the standard library alone finds in a file: objects among its events, slices, and memory events."""

    events: int
    slices: int
    memory: list[dict[str, Any]]


@cache
def written(path: Path) -> Written | None:
    """Return what is written in a file, read once for all tests; None for one that is no JSON."""
    # The collector would go through all objects of the document again and again: half of the work.
    with without_gc():
        try:
            document = json.loads(gzip.decompress(path.read_bytes()))
        except (ValueError, EOFError):
            return None
        events = document if isinstance(document, list) else document.get("traceEvents", [])
        objects = [event for event in events if isinstance(event, dict)]
        slices = sum(event.get("ph") == "X" for event in objects)
        return Written(len(objects), slices, [event for event in objects if event.get("name") == "[memory]"])
