"""How long the host's computation waits for communication where no device works."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.distributed.operations import computation_stalls
from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.model.communication.collectives import collectives

NOTHING = merge(np.empty(0, np.int64), np.empty(0, np.int64))


@pytest.mark.parametrize(
    ("resumes", "stall"),
    [
        (112, 97_000),  # at the end of the operation
        (108, 97_000),  # just before: the communicating thread noted its end later
        (60, 0),  # the computation went on long before: what it waited for was something else
    ],
)
def test_the_host_waits_until_the_operation_ends_or_just_before(resumes: int, stall: int) -> None:
    trace = draw(
        f"""
        host  cpu_op aten::mm          0  15
        host2 cpu_op gloo:all_reduce  12 100
        host  cpu_op aten::add  {resumes}  60
        """
    )
    assert computation_stalls(trace, collectives(trace), NOTHING).tolist() == [stall]
