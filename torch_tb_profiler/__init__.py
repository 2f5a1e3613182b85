"""torch-tb-profiler: where the time and the memory of a PyTorch model go."""

from __future__ import annotations

__all__: list[str] = []
