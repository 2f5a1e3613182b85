"""Which importer reads a file: by its name where files are listed, by its first bytes where one is read."""

from __future__ import annotations

import gzip
import io
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import BinaryIO, cast

import pytest

from tests.support.traces import document
from torch_tb_profiler import ingest
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest import formats, read_trace
from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.runtime import Report
from torch_tb_profiler.ingest.streams import HEAD_BYTES, unpack_head
from torch_tb_profiler.model.trace import Trace

EVENT = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
TRACE = document([EVENT] * 3000)


class OnlyRead:
    """A stream of a driver that knows nothing but `read`."""

    def __init__(self, content: bytes) -> None:
        self._stream = io.BytesIO(content)

    def read(self, size: int) -> bytes:
        return self._stream.read(size)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_bytes_read_for_recognition_are_parsed_as_well(pack: Callable[[bytes], bytes]) -> None:
    assert len(TRACE) > 2 * HEAD_BYTES
    assert len(read_trace(io.BytesIO(pack(TRACE)))) == 3000
    assert len(read_trace(cast(BinaryIO, OnlyRead(pack(TRACE))))) == 3000


def test_the_stream_stays_open_for_its_owner() -> None:
    stream = io.BytesIO(TRACE)
    read_trace(stream)
    assert not stream.closed


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Register a second format, whose files begin with "lines"; return what it was asked to parse."""
    parsed: list[bytes] = []

    def parse(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
        parsed.append(stream.read())
        return read_trace(io.BytesIO(TRACE))

    second = TraceFormat("lines", (".lines", ".lines.json"), lambda head: head.startswith(b"lines"), parse)
    module = ModuleType("torch_tb_profiler.ingest.lines")
    vars(module)["FORMATS"] = (second,)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(formats, "IMPORTERS", (*formats.IMPORTERS, "lines"))
    for kept in (formats._formats, formats._trace_formats, formats._suffixes):
        kept.cache_clear()  # of an earlier test, whose list is another
    return parsed


def test_a_file_is_parsed_by_the_format_that_recognizes_it(lines: list[bytes]) -> None:
    content = b"lines" + bytes(2 * HEAD_BYTES)
    assert len(read_trace(io.BytesIO(content))) == 3000
    assert lines == [content]
    read_trace(io.BytesIO(gzip.compress(content)))
    assert gzip.decompress(lines[1]) == content


def test_an_unrecognized_file_gets_the_error_of_the_first_format(lines: list[bytes]) -> None:
    with pytest.raises(TraceError):
        read_trace(io.BytesIO(b"neither"))
    assert lines == []


def test_the_longest_suffix_of_a_name_counts(lines: list[bytes]) -> None:
    assert formats.trace_suffix("W.JSON.GZ") == ".json.gz"
    assert formats.trace_suffix("w.lines.json") == ".lines.json"
    assert formats.trace_suffix("w.txt") is None


def test_no_format_recognizes_a_damaged_compressed_head() -> None:
    packed = gzip.compress(TRACE)
    assert TRACE.startswith(unpack_head(packed[:1000]))
    assert unpack_head(packed[:2] + b"x" * 100) == b""


@pytest.mark.parametrize(
    ("name", "kind"), [("a.PICKLE", "snapshot"), ("m.raw.json.gz", "timeline"), ("a.json", None)]
)
def test_files_beside_traces_are_recognized_by_name(name: str, kind: str | None) -> None:
    beside = formats.file_format_by_name(name)
    assert (beside and beside.kind) == kind


LISTING_MODULES = {"formats", "foreign", "runtime", "streams"}
"""Modules of `ingest` that a listing imports besides the packages of importers and their `sniff` modules."""
HEAVY = {"csv", "numpy", "sqlite3"}


def test_a_listing_imports_no_parser() -> None:
    listing = "from torch_tb_profiler.ingest import formats; assert formats.trace_suffix('7_results.db') == '.db'"
    program = f"import sys; {listing}; print(*(name for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    own = {name.removeprefix(f"{ingest.__name__}.") for name in modules if name.startswith(f"{ingest.__name__}.")}
    packages = {each.name for each in pkgutil.iter_modules(ingest.__path__) if each.ispkg}
    assert {"rocprof", "perfetto", "composer", "aorta", "foreign"} <= own
    assert own - packages <= LISTING_MODULES | {f"{package}.sniff" for package in packages}
    assert modules & HEAVY == set()
