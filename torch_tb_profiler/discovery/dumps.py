"""Flight recorder dumps, stacks of ranks and logs of a job: which files they are, and which run they belong to.

nccl_trace_rank_<r>, comm_lib_trace_rank_<r>     default names of PyTorch
<prefix><r>, also with .json, .pickle, .pkl      any other prefix, by its content
*rank<r>*.stack.txt, stack_rank_<r>.txt          stacks of py-spy or faulthandler
*.log, *.out, *.err                              logs of the job, in which NCCL's watchdog says what timed out

Dumps in a folder of traces, or in a folder right below one, belong to that run; others are a run of their own.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.discovery.catalog import DumpFile, ListedFile, ListedRun
from torch_tb_profiler.discovery.origin_files import run_folder

_DUMP = lazy_regex(r"^(?P<series>.*?)(?P<rank>\d{1,7})(?:\.(?:json|pickle|pkl))?$", re.DOTALL)
_DEFAULT_SERIES = lazy_regex(r"(?:^|[^a-z])(?:nccl|rccl|xccl|gloo|comm_lib)_trace_rank_$", re.IGNORECASE)
_STACK = lazy_regex(
    r"^(?:.*?rank[-_]?(?P<rank>\d{1,7})(?!\d).*\.stack\.txt|stack[-_]?rank[-_]?(?P<other>\d{1,7})\.txt)$",
    re.IGNORECASE | re.DOTALL,
)
_LOG = (".log", ".out", ".err")
_EVENT_FILE = "events.out.tfevents."
"""Start of the names of TensorBoard's own files, which end in a number."""


def find_dumps(files: Iterable[ListedFile], is_dump: Callable[[ListedFile], bool]) -> list[DumpFile]:
    """Return the dumps, stacks and logs among listed files.

    Of files whose names differ in the rank only, one that begins like a dump is enough: another may be damaged.
    Stacks and logs count only beside dumps.

    is_dump  whether a file begins like a dump; called only if its name leaves that open
    """
    candidates: dict[tuple[str, str], list[DumpFile]] = defaultdict(list)
    beside: list[DumpFile] = []
    for file in files:
        name = file.name
        if name[-4:].lower() == ".txt" and (match := _STACK.match(name)):
            beside.append(DumpFile(int(match["rank"] or match["other"]), "stack", "", file))
        elif name.endswith(_LOG):
            beside.append(DumpFile(None, "log", "", file))
        elif _ends_in_number(name) and (match := _DUMP.match(name)) and not name.startswith(_EVENT_FILE):
            dump = DumpFile(int(match["rank"]), "recorder", match["series"], file)
            candidates[posixpath.dirname(file.path), dump.series].append(dump)
    found: list[DumpFile] = []
    for (_, series), dumps in candidates.items():
        if _DEFAULT_SERIES.search(series) or any(is_dump(dump.file) for dump in dumps):
            found += dumps
    folders = {_folder(dump) for dump in found}
    return found + [dump for dump in beside if _folder(dump) in folders]


def _ends_in_number(name: str) -> bool:
    """Return whether a digit is the last character of a name, or the one before suffixes that dumps have."""
    return name.removesuffix(".json").removesuffix(".pickle").removesuffix(".pkl")[-1:].isdigit()


def with_dumps(
    runs: Sequence[ListedRun], dumps: Iterable[DumpFile], *, root_name: str, prefix: str
) -> list[ListedRun]:
    """Return the runs with their dumps, and a run for each other folder of dumps, sorted by name."""
    names = {run.name for run in runs}
    of_run: dict[str, list[DumpFile]] = defaultdict(list)
    for dump in dumps:
        folder = _folder(dump)
        name, parent = prefix + (folder or root_name), prefix + (posixpath.dirname(folder) or root_name)
        of_run[parent if name not in names and folder and parent in names else name].append(dump)
    known = [replace(run, dumps=_sort_dumps(of_run.pop(run.name, []))) for run in runs]
    return sorted(
        [*known, *(ListedRun(name, (), dumps=_sort_dumps(files)) for name, files in of_run.items())], key=_name
    )


def _name(run: ListedRun) -> str:
    return run.name


def _folder(dump: DumpFile) -> str:
    """Return the folder of a dump without one that is named like a rank; "" is the log folder itself."""
    return run_folder(dump.file.path)


def _sort_dumps(dumps: Iterable[DumpFile]) -> tuple[DumpFile, ...]:
    return tuple(sorted(dumps, key=lambda dump: (dump.kind, dump.series, dump.rank or 0, dump.file.path)))
