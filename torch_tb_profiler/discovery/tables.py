"""Tables of one recording of rocprofv3, which are read as one trace.

host/7_kernel_trace.csv         is the trace of worker 7, with
host/7_hip_api_trace.csv, host/7_memory_copy_trace.csv, host/7_agent_info.csv
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from torch_tb_profiler.discovery.catalog import ListedFile
from torch_tb_profiler.discovery.names import NAMES_OF_TABLES, TABLES

_TABLE = re.compile(rf"^(?P<stem>(?:.*/)?(?:[^/]+_)?){NAMES_OF_TABLES}\.csv(?:\.gz)?$", re.IGNORECASE)
_AGENTS = re.compile(r"^(?P<stem>(?:.*/)?(?:[^/]+_)?)agent_info\.csv(?:\.gz)?$", re.IGNORECASE)


def with_tables(
    files: Sequence[ListedFile], is_trace: Callable[[ListedFile], bool], is_table: Callable[[ListedFile], bool]
) -> list[ListedFile]:
    """The files in their order; of the tables of one recording one, with the others and an id that tells all.

    is_trace  whether a file holds records, as its name says
    is_table  whether a file holds agents, as its name says
    """
    records: dict[str, list[tuple[int, str, ListedFile]]] = defaultdict(list)
    agents: dict[str, list[ListedFile]] = defaultdict(list)
    for file in files:
        if (match := _TABLE.match(file.path)) and is_trace(file):
            records[match["stem"]].append((TABLES.index(match["kind"].lower()), file.path, file))
        elif match := _AGENTS.match(file.path):
            agents[match["stem"]].append(file)
    joined: dict[str, ListedFile | None] = {}
    for stem, candidates in records.items():
        first, *others = _one_of_each(candidates)
        described = [each for each in agents[stem] if is_table(each)][:1]
        joined.update((path, None) for _, path, _ in candidates)
        joined.update((each.path, None) for each in agents[stem] if described)
        joined[first.path] = first.tabled([*others, *described])
    return [each for file in files if (each := joined.get(file.path, file)) is not None]


def _one_of_each(candidates: Sequence[tuple[int, str, ListedFile]]) -> list[ListedFile]:
    """A table that lies packed beside itself is read once."""
    kinds: dict[int, ListedFile] = {}
    for kind, _, file in sorted(candidates, key=lambda each: each[:2]):
        kinds.setdefault(kind, file)
    return list(kinds.values())
