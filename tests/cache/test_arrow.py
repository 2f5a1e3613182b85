"""A written trace comes back equal, and Arrow reads it as well; neither way imports Arrow."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from tests.ingest.native.comparison import differences
from tests.ingest.test_mutations import LAYOUTS
from tests.support.traces import read_bytes
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.arrays import ArrowTexts, StoredTexts
from torch_tb_profiler.cache.arrow import read_trace_file, write_columns, write_trace
from torch_tb_profiler.cache.arrow_file import read_arrow_file
from torch_tb_profiler.model.trace import Trace

WRITE_AND_READ = """
import sys
import numpy
import pyarrow
from tests.support.traces import draw
from torch_tb_profiler.cache.arrow import read_columns_file, read_trace_file, write_columns, write_trace
with open(sys.argv[1], "wb") as file:
    write_trace(draw("host cpu_op aten::mm 0 10"), file)
assert read_trace_file(pyarrow.py_buffer(open(sys.argv[1], "rb").read())).events.start.tolist() == [0]
with open(sys.argv[1], "wb") as file:
    write_columns({"a": numpy.arange(3)}, file)
assert read_columns_file(pyarrow.py_buffer(open(sys.argv[1], "rb").read()))["a"].tolist() == [0, 1, 2]
"""


def written(trace: Trace) -> bytes:
    content = io.BytesIO()
    write_trace(trace, content)
    return content.getvalue()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_trace_comes_back_equal(layout: str) -> None:
    trace = read_bytes(LAYOUTS[layout])
    loaded = read_trace_file(written(trace))
    assert differences(loaded, trace) == []


def test_texts_that_cannot_be_encoded_are_written_with_question_marks() -> None:
    trace = read_bytes(LAYOUTS["kineto"])
    trace = replace(trace, strings=["a\ud800b", "\u00e9", *trace.strings[2:]])
    loaded = read_trace_file(written(trace))
    assert list(loaded.strings) == ["a?b", "\u00e9", *trace.strings[2:]]


@pytest.mark.parametrize("texts", [[], [""], ["a", "", "bc"], ["é", "a", "漢字"]])
def test_columns_of_every_type_are_read_as_arrow_reads_them(texts: list[str]) -> None:
    dtypes = [np.dtype(code) for code in np.typecodes["AllInteger"] + "fd"]
    columns: dict[str, Any] = {dtype.str: np.arange(length).astype(dtype) for length, dtype in enumerate(dtypes)}
    content = io.BytesIO()
    write_columns(columns | {"texts": texts}, content)
    found = read_arrow_file(content.getvalue()).columns
    with pa.ipc.open_file(pa.py_buffer(content.getvalue())) as file:
        batch = file.get_batch(0)
    batch.validate(full=True)
    for name, cell in zip(batch.schema.names, batch.columns, strict=True):
        assert list(found[name]) == cell.values.to_pylist(), name
        values = found[name]
        assert name == "texts" or (isinstance(values, np.ndarray) and values.dtype.str == name)
    read = found["texts"]
    assert isinstance(read, StoredTexts) and len(read) == len(texts) and read.array.to_pylist() == texts
    assert [read[i] for i in range(len(texts))] == texts and [*read[-2:]] == texts[-2:]
    assert [read[-1]] == texts[-1:] if texts else True
    for outside in (len(texts), -len(texts) - 1):
        with pytest.raises(IndexError):
            read[outside]


def test_a_damaged_file_is_an_error_at_most() -> None:
    random = np.random.default_rng(1)
    content, refused = written(read_bytes(LAYOUTS["kineto"])), 0
    for _ in range(300):
        damaged = np.frombuffer(content, np.uint8).copy()
        at = random.integers(0, len(content), 3)
        at[0] = len(content) - 1 - at[0] % 900  # its footer
        damaged[at] = random.integers(0, 256, 3)
        try:
            read_trace_file(damaged.tobytes()[: len(content) - int(random.integers(0, 2))])
        except Exception:
            refused += 1
    assert 100 < refused < 300


@pytest.mark.parametrize("texts", [["a", "", "é"], ["b"], []])
def test_texts_of_arrow_and_of_a_file_are_written_as_they_are(texts: list[str]) -> None:
    """Also those of a slice, whose buffers begin before it and end behind it."""
    array = pa.array(["before", *texts, "behind"], pa.large_string())[1:-1]
    content = io.BytesIO()
    write_columns({"arrow": ArrowTexts(array)}, content)
    stored = read_arrow_file(content.getvalue()).columns["arrow"]
    again = io.BytesIO()
    write_columns({"stored": stored}, again)
    assert list(stored) == list(read_arrow_file(again.getvalue()).columns["stored"]) == texts


def test_a_column_that_cannot_be_read_is_not_written() -> None:
    with pytest.raises(ValueError):
        write_columns({"a": np.array([True])}, io.BytesIO())


def test_neither_writing_nor_reading_imports_arrow(tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(written(read_bytes(LAYOUTS["kineto"])))
    code = (
        "import io, sys; from torch_tb_profiler.cache.arrow import read_trace_file, write_trace; "
        "trace = read_trace_file(open(sys.argv[1], 'rb').read()); write_trace(trace, io.BytesIO()); "
        "print(len(trace), 'pyarrow' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "trace")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.split() == [str(len(read_bytes(LAYOUTS["kineto"]))), "False"]


def test_pandas_is_not_imported_where_it_is_installed(tmp_path: Path) -> None:
    """It would take longer than writing or reading a small trace does, and 40 MB."""
    (tmp_path / "pandas.py").write_text("print('imported')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-c", WRITE_AND_READ, str(tmp_path / "trace")]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
