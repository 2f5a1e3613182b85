"""Events read by a small library in C (`native/` of the source), where it was built.

What says whether it was is imported here; what uses it, and numpy with it, by who reads.
"""

from __future__ import annotations

from torch_tb_profiler.ingest.kineto.native.library import Library, load, state

__all__ = ["Library", "load", "state"]
