"""Events read by a small library in C (`native/` of the source), where it was built."""

from __future__ import annotations

from torch_tb_profiler.ingest.kineto.native.decode import NativeDecoder
from torch_tb_profiler.ingest.kineto.native.library import Library, load
from torch_tb_profiler.ingest.kineto.native.nesting import compiled_nest

__all__ = ["Library", "NativeDecoder", "compiled_nest", "load"]
