"""The cache on disk: parsed traces as Arrow files, which are memory-mapped when they are opened.

A trace is one record batch with a single row: every array is a list cell, so arrays of different lengths share a
file and come back as views of the mapped file, without a copy. Processes share the pages, and the system takes
them back when memory is short.

A key identifies the source, its content, and the program version that wrote the entry: after an update, older
entries are not found any more and are evicted in time. A damaged entry means that the file is parsed again, never
an error.

The cache is a folder of this machine, limited in size, or a URL that a server shares with the workers of a
cluster: writes go to both the URL and a local folder, reads come from the local folder, and what is missing there
is fetched from the URL once.
"""

from __future__ import annotations

from torch_tb_profiler.cache.cache import Cache, cache_key, hash_content

__all__ = ["Cache", "cache_key", "hash_content"]
