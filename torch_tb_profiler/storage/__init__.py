"""Where traces lie: local folders and every URL that fsspec knows. The only package that imports fsspec."""

from __future__ import annotations

from torch_tb_profiler.storage.location import Entry, Location, Scan, open_location

__all__ = ["Entry", "Location", "Scan", "open_location"]
