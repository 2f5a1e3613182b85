"""What the operator table says in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch_tb_profiler.base.units import format_ratio
from torch_tb_profiler.views._shared.text import Phrase, Text, join_phrases, link, set_params, text
from torch_tb_profiler.views.operators.payload import OperatorRow, OperatorsParams, OperatorTotals

MOST_OF_THE_TIME = 0.6
NAMED = 3


def headline(rows: Sequence[OperatorRow], totals: OperatorTotals, params: OperatorsParams, cores: str) -> Text:
    """The few operators that take most of the device time, else of the host time; at most three of them."""
    by_device = bool(totals.device_self_ns)

    def time(row: OperatorRow) -> int:
        return (row.device_self_ns or 0) if by_device else row.host_self_ns

    whole = sum(time(row) for row in rows)
    if whole == 0:
        return text("No operator took any time.")
    top: list[OperatorRow] = []
    for row in sorted(rows, key=time, reverse=True)[:NAMED]:
        top.append(row)
        if sum(map(time, top)) >= MOST_OF_THE_TIME * whole:
            break
    keys: dict[str, str] = {}
    for row in top:
        keys.setdefault(row.name.removeprefix("aten::"), row_key(row))
    state = set_params(params)
    names = [Phrase(name, link("operators", **state, select=key)) for name, key in keys.items()]
    return text(
        "{names} {take} {share} of the {kind} time of all operators{cores}.",
        names=join_phrases(names),
        take="take" if len(names) > 1 else "takes",
        share=format_ratio(sum(map(time, top)) / whole),
        kind="device" if by_device else "host",
        cores=_tensor_cores(rows, cores) if by_device else "",
    )


def row_key(row: OperatorRow) -> str:
    """How the page names a row in its address: the name, and what else the rows are grouped by."""
    grouped_by = (row.input_shape, row.input_types, row.input_strides, row.module, row.annotation)
    return " | ".join([row.name, *(value for value in grouped_by if value is not None)])


def _tensor_cores(rows: Iterable[OperatorRow], cores: str) -> str:
    """Nothing where no kernel is known to use them and some do not tell; a lower bound where some do.

    `cores`: what they are called.
    """
    eligible = [row for row in rows if row.tc_eligible and row.device_self_ns]
    time = sum(row.device_self_ns or 0 for row in eligible)
    used = sum((row.device_self_ns or 0) * (row.tc_self_ratio or 0.0) for row in eligible)
    unknown = sum((row.device_self_ns or 0) * (row.tc_self_unknown or 0.0) for row in eligible)
    if time == 0 or (used == 0 and unknown > 0):
        return ""
    bound = "at least " if unknown > 0 else ""
    return f"; {bound}{format_ratio(used / time)} of what could run on {cores} does"
