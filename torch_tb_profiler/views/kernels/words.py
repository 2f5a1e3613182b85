"""What the kernel table says in words."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.base.format import format_ratio
from torch_tb_profiler.views._shared.call_payloads import TensorCoreTime
from torch_tb_profiler.views._shared.params import set_params
from torch_tb_profiler.views._shared.text import Phrase, Text, link, text
from torch_tb_profiler.views.kernels.payload import KernelRow, KernelsParams


def headline(
    rows: Sequence[KernelRow],
    total_ns: int,
    cores: TensorCoreTime,
    params: KernelsParams,
    called: str,
    missing: str | None = None,
) -> Text:
    """The row that takes the most time; `rows` are in this order.

    called   what the cores are
    missing  why there are no kernels although some may have run
    """
    if not rows and missing is not None:
        return text("{reason}.", reason=missing[:1].upper() + missing[1:])
    if not rows:
        return text("No kernel matches.")
    if total_ns == 0:
        return text("The kernels take no time.")
    top = rows[0]
    select = row_key(top, params.group_by == "launch")
    return text(
        "{family}{name} takes {share} of the kernel time{cores}.",
        family="The family " if params.group_by == "family" else "",
        name=Phrase(top.short_name, link("kernels", **set_params(params), select=select)),
        share=format_ratio(top.total_ns / total_ns),
        cores=_tensor_cores(cores, total_ns, called),
    )


def row_key(row: KernelRow, by_launch: bool) -> str:
    """How the page names a row in its address: the name, and the launch where rows are grouped by it."""
    if not by_launch:
        return row.name
    launch = (row.operator, row.grid, row.block, row.registers, row.shared_memory)
    return " | ".join([row.name, *("" if value is None else str(value) for value in launch)])


def _tensor_cores(cores: TensorCoreTime, total_ns: int, called: str) -> str:
    """Nothing where no name tells; a lower bound where some do not."""
    if cores.used_ns == 0 and cores.unknown_ns > 0:
        return ""
    bound = "at least " if cores.unknown_ns > 0 else ""
    return f"; {bound}{format_ratio(cores.used_ns / total_ns)} of all kernel time runs on {called}"
