"""A written trace comes back equal, and neither way needs more than Arrow."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.ingest.native.comparison import differences
from tests.ingest.test_mutations import LAYOUTS
from tests.support.traces import read_bytes
from tests.support.waiting import PATIENCE
from torch_tb_profiler.cache.arrow import read_trace_file, write_trace

WRITE_AND_READ = """
import sys
import numpy
import pyarrow
from tests.support.traces import draw
from torch_tb_profiler.cache.arrow import read_columns_file, read_trace_file, write_columns, write_trace
write_trace(draw("host cpu_op aten::mm 0 10"), sys.argv[1])
assert read_trace_file(pyarrow.py_buffer(open(sys.argv[1], "rb").read())).events.start.tolist() == [0]
write_columns({"a": numpy.arange(3)}, sys.argv[1])
assert read_columns_file(pyarrow.py_buffer(open(sys.argv[1], "rb").read()))["a"].tolist() == [0, 1, 2]
"""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_trace_comes_back_equal(layout: str, tmp_path: Path) -> None:
    trace = read_bytes(LAYOUTS[layout])
    write_trace(trace, str(tmp_path / "trace"))
    loaded = read_trace_file(pa.py_buffer((tmp_path / "trace").read_bytes()))
    assert differences(loaded, trace) == []


def test_texts_that_cannot_be_encoded_are_written_with_question_marks(tmp_path: Path) -> None:
    trace = read_bytes(LAYOUTS["kineto"])
    trace = replace(trace, strings=["a\ud800b", "\u00e9", *trace.strings[2:]])
    write_trace(trace, str(tmp_path / "trace"))
    loaded = read_trace_file(pa.py_buffer((tmp_path / "trace").read_bytes()))
    assert list(loaded.strings) == ["a?b", "\u00e9", *trace.strings[2:]]


def test_pandas_is_not_imported_where_it_is_installed(tmp_path: Path) -> None:
    """It would take longer than writing or reading a small trace does, and 40 MB."""
    (tmp_path / "pandas.py").write_text("print('imported')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-c", WRITE_AND_READ, str(tmp_path / "trace")]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
