"""The columnar cache: parsed traces as Arrow files, opened by mapping them into memory.

A trace is one record batch with a single row: every array is a list cell, so arrays of different lengths
share a file and come back as views of the mapped file, without a copy. Pages are shared between processes
and given back to the system under pressure.

A key names the source's place and content, and the program that wrote what is kept of it: after an update, older
entries are not found any more and die out. Any damage means that the file is parsed again,
never an error.

The place is a folder of this machine, bounded in size, or a URL that a server shares with the workers of a
cluster: what is written goes to both the URL and a local folder, what is read comes from the local folder
and is fetched from the URL once.
"""

from __future__ import annotations

from torch_tb_profiler.cache.cache import Cache
from torch_tb_profiler.cache.key import cache_key

__all__ = ["Cache", "cache_key"]
