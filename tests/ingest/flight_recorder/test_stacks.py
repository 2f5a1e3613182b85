"""Stacks as py-spy and faulthandler write them."""

from __future__ import annotations

import faulthandler
import io
import tempfile

import pytest

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.flight_recorder.texts import read_stacks

PY_SPY = b"""Process 48213: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 48300 (idle): "pin_memory"
    wait (threading.py:320)
Thread 48213 (active): "MainThread"
    load_batch (data (copy)/train.py:88)
    <module> (train.py:231)
"""


def test_py_spy_names_the_main_thread() -> None:
    dump = read_stacks(io.BytesIO(PY_SPY))
    assert dump.source == "py-spy" and len(dump.threads) == 2
    assert [tuple(frame) for frame in dump.threads[0]] == [
        ("data (copy)/train.py", 88, "load_batch"),
        ("train.py", 231, "<module>"),
    ]


def test_faulthandler_of_this_process() -> None:
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        dump = read_stacks(file)
    assert dump.source == "faulthandler"
    assert dump.threads[0][0].function == "test_faulthandler_of_this_process"
    assert dump.threads[0][0].file.endswith("test_stacks.py")


def test_text_without_a_stack_is_refused() -> None:
    with pytest.raises(TraceError, match="no stack"):
        read_stacks(io.BytesIO(b"Error: Permission Denied\n"))
