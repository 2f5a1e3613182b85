"""Where traces lie: local folders and every URL that fsspec knows. The only package that imports fsspec."""

from __future__ import annotations

from torch_tb_profiler.storage.address import local_path, open_location
from torch_tb_profiler.storage.depot import Depot
from torch_tb_profiler.storage.location import Entry, FileId, Location, Scan

__all__ = ["Depot", "Entry", "FileId", "Location", "Scan", "local_path", "open_location"]
