"""Counters beside traces: which files of rocprofv3 counted the kernels of which trace.

run/host.1.pt.trace.json            has the counters of
run/4242_counter_collection.csv     (one pass) and of
run/pass_1/host_counter_collection.csv, run/pass_2/...
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from torch_tb_profiler.discovery.beside import files_beside
from torch_tb_profiler.discovery.catalog import ListedFile
from torch_tb_profiler.discovery.names import FileName, parse_file_name, rank_in
from torch_tb_profiler.storage import FileId

_COUNTERS = re.compile(r"counter_collection\.csv(?:\.gz)?$", re.IGNORECASE)
_PASS = re.compile(r"^(?:pass|pmc)_\d+$", re.IGNORECASE)


def with_counters(files: Sequence[ListedFile], is_trace: Callable[[ListedFile], bool]) -> list[ListedFile]:
    """The files in their order; traces with the counters that lie beside them, and an id that tells both.

    Where a folder holds traces of several workers, counters are those of the worker whose rank their name says.

    is_trace  asked for files whose name does not say
    """
    folders: dict[str, list[ListedFile]] = defaultdict(list)
    for file in files:
        if _COUNTERS.search(file.name):
            folders[_folder(file.path)].append(file)
    if not folders:
        return list(files)
    traces: dict[str, list[tuple[ListedFile, FileName]]] = defaultdict(list)
    hidden = {each.path for listed in files_beside(files).values() for each in listed}
    for file in files:
        name = None if _COUNTERS.search(file.name) or file.path in hidden else parse_file_name(file.name)
        if posixpath.dirname(file.path) in folders and name is not None and (name.certain or is_trace(file)):
            traces[posixpath.dirname(file.path)].append((file, name))
    beside: dict[FileId, list[ListedFile]] = defaultdict(list)
    for folder, counters in folders.items():
        single = len({name.worker for _, name in traces[folder]}) == 1
        for counted in sorted(counters, key=lambda file: file.path):
            rank = rank_in(counted.name)
            for file, name in traces[folder]:
                if single or (rank is not None and name.rank == rank):
                    beside[file.id].append(counted)
    return [file.counted(beside[file.id]) if file.id in beside else file for file in files]


def _folder(path: str) -> str:
    """Of the run that a file of counters belongs to: a folder for each pass aside."""
    folder = posixpath.dirname(path)
    return posixpath.dirname(folder) if _PASS.match(posixpath.basename(folder)) else folder
