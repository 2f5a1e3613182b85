"""Read events with a small C library (`native/` in the source tree), where it was built.

This package imports only what tells whether it was built; readers import the rest, and numpy with it.
"""

from __future__ import annotations

from torch_tb_profiler.ingest.kineto.native.library import NativeLibrary, describe_state, load_library

__all__ = ["NativeLibrary", "load_library", "describe_state"]
