"""The operations of all ranks joined to collectives, and those among them that can be compared.

Within a process group (its name *and* its ranks) operations are joined by the recorded sequence number; messages
by sender, receiver, and ordinal; all else by order (see `order`). Ranks that disagree on name, size, or dtype are
reported and not compared.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching.differences import Difference, differences
from torch_tb_profiler.analyses.distributed.matching.keys import METHODS, keys_of
from torch_tb_profiler.analyses.shared.grouping import codes
from torch_tb_profiler.model.communication.collectives import Timing
from torch_tb_profiler.model.communication.names import DEVICE_BACKENDS
from torch_tb_profiler.model.trace import ABSENT, Bool, Int8, Int64


class Matching(msgspec.Struct, frozen=True):
    """Collectives across ranks.

    instance  int64[k]  the collective of each operation of the job's table: 0..count-1, in order of first start
    method    int8[count]  position in METHODS of how it was matched
    sizes     int64[count]  how many operations it joins
    compared  bool[k]  the operation has a time, as has at least one of another rank that recorded the same
    unaddressed  bool[k]  a message whose sender and receiver are not recorded, so that it is compared with none
    complete  bool[count]  all ranks of the group are compared (two, if the size of the group is unknown)
    """

    instance: Int64
    method: Int8
    sizes: Int64
    compared: Bool
    complete: Bool
    differences: tuple[Difference, ...]
    unaddressed: Bool

    def __len__(self) -> int:
        return len(self.sizes)

    def first_row(self, collective: int) -> int:
        """The first of a collective's operations in the job's table."""
        return int(np.flatnonzero(self.instance == collective)[0])


def match(job: Job) -> Matching:
    """Join the operations of all ranks."""
    keys = keys_of(job)
    instance, count = _instances(job, keys.values)
    listed = tuple(differences(job, instance, count, keys.method, ~keys.doubtful))
    has_time = timed(job)
    counts = np.bincount(instance[has_time], minlength=count)
    alike = np.ones(count, np.bool_)
    alike[instance[keys.doubtful]] = False
    alike[[each.instance for each in listed if each.what != "missing"]] = False
    compared = has_time & (alike & (counts > 1))[instance]
    method, expected = np.zeros(count, np.int8), np.zeros(count, np.int64)
    method[instance] = keys.method
    expected[instance] = np.where(keys.method == METHODS.index("peers"), 2, _group_sizes(job)[job.table.group])
    return Matching(
        instance=instance,
        method=method,
        sizes=np.bincount(instance, minlength=count),
        compared=compared,
        complete=alike & (counts >= np.maximum(expected, 2)),
        differences=listed,
        unaddressed=keys.unaddressed,
    )


def _instances(job: Job, keys: Int64) -> tuple[Int64, int]:
    """(int64[k] number of the collective with these keys, count); the collectives in order of first start."""
    table = job.table
    dense, count = codes(*keys[::-1])
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, dense, np.where(table.start == ABSENT, table.issue, table.start))
    number = np.empty(count, np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(count)
    return number[dense], count


def _group_sizes(job: Job) -> Int64:
    """int64[groups + 1]: ranks of each group; 0 if unknown."""
    return np.array([group.size or 0 for group in job.groups] + [0], np.int64)


def timed(job: Job) -> Bool:
    """bool[k]: operations with a time of their own. The host's call of one that runs on a device has none: it only
    shows how long the launch took."""
    table = job.table
    on_device = [code for code, text in enumerate(job.names) if text in DEVICE_BACKENDS]
    launches = (table.timing == Timing.HOST) & np.isin(table.backend, on_device)
    has_time: Bool = (table.timing != Timing.NONE) & ~launches
    return has_time


def untimed(job: Job) -> list[int]:
    """Positions of workers whose operations all lack a time of their own."""
    member, count = job.table.member, len(job.sources)
    times = np.bincount(member[timed(job)], minlength=count)
    positions: list[int] = np.flatnonzero((np.bincount(member, minlength=count) > 0) & (times == 0)).tolist()
    return positions
