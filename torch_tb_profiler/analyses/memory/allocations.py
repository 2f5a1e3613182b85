"""Who made an allocation: its operator, its module, its Python stack. Positions are those in `memory_records`."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.shared.call_stacks import Stacks, distinct_stacks
from torch_tb_profiler.model.memory.events import memory_calls, memory_names, memory_records
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace


def event_of(trace: Trace, position: int) -> int:
    """The row of a memory event in the trace."""
    return int(memory_records(trace).rows[position])


def operator_name(trace: Trace, position: int) -> str | None:
    """The operator as `memory_names` spells it, None outside of operators."""
    codes, texts = memory_names(trace)
    code = codes[position]
    return None if code == NO_CODE else texts[code]


def operator_call(trace: Trace, position: int) -> int | None:
    """The row of the operator's call, None outside of operators."""
    call = int(memory_calls(trace)[position])
    return None if call == NO_CODE else call


def module_path(trace: Trace, position: int) -> str | None:
    """The module, "Net_0 > Linear_0", None outside of modules."""
    code = int(modules(trace).code[event_of(trace, position)])
    return None if code == NO_CODE else " > ".join(modules(trace).path(code))


def allocation_stacks(trace: Trace, positions: Int32) -> Stacks:
    """The Python stacks: those of the operators where they carry one, else the frames around the events."""
    rows, calls = memory_records(trace).rows[positions], memory_calls(trace)[positions]
    carried = trace.arg_codes("Call stack", calls)[0] >= 0
    return distinct_stacks(trace, np.where(carried, calls, rows).astype(np.int32))


def allocation_stack(trace: Trace, position: int) -> tuple[str, ...]:
    """The Python stack of one allocation, innermost frame first."""
    return allocation_stacks(trace, np.array([position], np.int32)).frames[0]
