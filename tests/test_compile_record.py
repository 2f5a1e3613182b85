"""The recorder of compiles keeps what joins kernels with the program, within its limit."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch_tb_profiler.ingest.compile_log import read_compile_log
from torch_tb_profiler.training.compile_record import CompileRecorder, TraceLogHandlers

CODE = "# AOT ID: ['0_forward']\n# [Provenance debug handles] cpp_fused_add_0:1"


def log(recorder: CompileRecorder, payload: str, **metadata: Any) -> None:
    record = logging.LogRecord("torch.__trace", logging.DEBUG, "x.py", 1, "", (), None)
    record.metadata = metadata | {"frame_id": 0, "frame_compile_id": 0}
    record.payload = payload
    recorder.handle(record)


def test_a_record_is_read_back_and_says_no_more_than_needed(tmp_path: Path) -> None:
    recorder = CompileRecorder()
    log(recorder, "weights", dynamo_output_graph={})
    log(recorder, CODE, inductor_output_code={"file_path": "/tmp/c.py"})
    log(recorder, '{"key": "fone", "secret": "configuration"}', artifact={"name": "fx_graph_cache_miss"})
    assert recorder.write(tmp_path / "rank0.1.compiled.log")
    content = (tmp_path / "rank0.1.compiled.log").read_bytes()
    (graph,) = read_compile_log(io.BytesIO(content))
    assert (graph.key, [kernel.name for kernel in graph.kernels]) == ("fone", ["cpp_fused_add_0"])
    assert b"weights" not in content and b"secret" not in content
    assert not recorder.write(tmp_path / "rank0.2.compiled.log")  # nothing new
    assert [path.name for path in tmp_path.iterdir()] == ["rank0.1.compiled.log"]


def test_the_limit_holds_and_errors_do_not_reach_the_compile(tmp_path: Path) -> None:
    recorder = CompileRecorder(limit=1000)
    for _ in range(50):
        log(recorder, CODE, inductor_output_code={"file_path": "/tmp/c.py"})
    log(recorder, "not JSON", artifact={"name": "fx_graph_cache_hit"})
    log(recorder, CODE, inductor_output_code={"object": object()})
    assert recorder.write(tmp_path / "x.compiled.log")
    assert 0 < (tmp_path / "x.compiled.log").stat().st_size <= 1000
    assert recorder.dropped > 45


def test_entries_that_nobody_keeps_are_not_rendered() -> None:
    logger = logging.Logger("torch.__trace")
    logger.handlers = TraceLogHandlers([CompileRecorder()])

    def trace_structured(name: str, metadata_fn: Callable[[], Any] = dict) -> bool:
        """Decide as PyTorch does whether to render an entry."""
        if logger.handlers:
            return True
        return False

    compiled_lines = [
        trace_structured("inductor_output_code"),
        trace_structured("artifact", lambda: {"name": "fx_graph_cache_miss"}),
        trace_structured("artifact", lambda: {"name": "inductor_provenance_tracking_node_mappings"}),
        trace_structured("artifact", lambda: 1 / 0),
        bool(logger.handlers),
    ]
    left_out = [
        trace_structured("chromium_event"),
        trace_structured("artifact", lambda: {"name": "before_post_grad_graph"}),
    ]
    assert (compiled_lines, left_out) == ([True] * 5, [False] * 2)
    logger.addHandler(logging.NullHandler())  # such as that of TORCH_TRACE
    assert trace_structured("chromium_event")
    logger.handlers.clear()
    assert not trace_structured("inductor_output_code")
