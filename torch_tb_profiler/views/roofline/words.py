"""Sentences of the Roofline tab."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.roofline.utilization import Utilization
from torch_tb_profiler.base.format import Rounding, format_duration, format_number, format_ratio
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.model.hardware.clocks import RecordedClock
from torch_tb_profiler.model.hardware.peaks import DeviceRates
from torch_tb_profiler.views._shared.params import set_params
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, shorten_name, text
from torch_tb_profiler.views.roofline.payload import DevicePeaks, RooflineCounters, RooflineParams, RooflineRow


def headline(
    rows: Sequence[RooflineRow],
    used: Utilization,
    devices: Sequence[DevicePeaks],
    counters: RooflineCounters | None,
    params: RooflineParams,
) -> Text:
    """Return the MFU as far as the work is known, then the row that could save most.

    Where counters were recorded instead of times, or without operators, return what they counted.
    """
    if counters is not None and used.modeled_ns == 0 and not params.step and params.device is None:
        no_times = "Kernel times aren't recorded together with counters."
        no_operators = "The operators that launched them aren't recorded."
        return sentences(_counter_sentence(counters), text(no_times if used.device_ns == 0 else no_operators))
    return sentences(_utilization_sentence(used, devices, params), _saving_text(rows, params))


def _counter_sentence(counters: RooflineCounters) -> Text:
    """Return the FLOPs that the counters measured, and of how many kernels if not of all."""
    measured = [row for row in counters.rows if row.flops is not None]
    kernels = sum(row.calls for row in measured)
    if kernels == 0:
        return text(
            "The recorded hardware counters don't include the FLOPs of {kernels}.",
            kernels=plural(counters.ranges, "kernel"),
        )
    flops = sum(row.flops or 0.0 for row in measured)
    top = max(measured, key=lambda row: row.flops or 0.0)
    share = format_ratio((top.flops or 0.0) / flops) if flops else ""
    name = Phrase(shorten_name(top.short_name), link("trace", event=top.event))
    return text(
        "Hardware counters measured {flops} GFLOP in {kernels}{of}{most}.",
        flops=format_number(flops / 1e9),
        kernels=plural(kernels, "kernel"),
        of="" if kernels == counters.ranges else f" (of {counters.ranges:,})",
        most=text(", {share} of them in {name}", share=share, name=name) if flops else (),
    )


def _utilization_sentence(used: Utilization, devices: Sequence[DevicePeaks], params: RooflineParams) -> Text:
    if used.coverage is None:
        return text("No device work matches.")
    modeled = _coverage_clause(used)
    unknown = next((each.reason for each in devices if each.reason), None)
    if used.mfu is None and unknown is not None:
        return text("No roofline: {reason}. Enter the rates under Device.", reason=unknown)
    if used.mfu is None:
        return text("No matmul or convolution with known FLOPs was recorded{modeled}.", modeled=modeled)
    names = " and ".join(dict.fromkeys(each.name or "an unnamed device" for each in devices))
    return text(
        "MFU is {least}{mfu} on {device}{edited}{modeled}.",
        least="at least " if modeled else "",
        mfu=_small_ratio(used.mfu, "down" if modeled else "half"),
        edited=" with edited peaks" if "=" in params.peaks else "",
        device=names if len(devices) == 1 else f"each {names}",
        modeled=modeled,
    )


def _small_ratio(ratio: float, rounding: Rounding) -> str:
    """Format a ratio with two digits where one decimal would show 0."""
    if ratio >= 0.001:
        return format_ratio(ratio, rounding)
    return f"{format_number(100 * ratio, 2, rounding)}%"


def _coverage_clause(used: Utilization) -> str:
    """Return the share of kernel time whose work is known; empty if it is all, and never rounded up to all."""
    if used.modeled_ns == used.device_ns:
        return ""
    share = format_ratio(used.coverage)
    return f" (work known for {'nearly all' if share == '100%' else f'{share} of'} kernel time)"


def clock_words(peaks: DeviceRates, clock: RecordedClock) -> Text:
    """Return what the recorded clock means for the peak rates; rooflines and MFU keep the rated clock."""
    sentence = text(
        "{counter} averaged {mhz} MHz while the device was busy ({samples}).",
        counter=clock.counter,
        mhz=f"{clock.mhz:,.0f}",
        samples=plural(clock.samples, "sample"),
    )
    kind = next((kind for kind in ("bf16", "fp16", *peaks.matrix) if kind in peaks.matrix), None)
    if peaks.clock is None or kind is None:
        return sentences(sentence, text("The clock that its peak rates assume isn't known."))
    share = clock.mhz / peaks.clock
    rate = text(
        "The peak rates assume {rated} MHz. At {share} of that clock, {kind} reaches at most {flops} TFLOP/s.",
        rated=f"{peaks.clock:,.0f}",
        share=format_ratio(share),
        kind=kind,
        flops=format_number(share * peaks.matrix[kind] / 1e12, rounding="up"),
    )
    return sentences(sentence, rate)


def _saving_text(rows: Sequence[RooflineRow], params: RooflineParams) -> Text:
    best = max(rows, key=lambda row: row.saved_ns or 0.0, default=None)
    if best is None or not best.saved_ns:
        return ()
    name = shorten_name(best.short_name.removeprefix("aten::"))
    return text(
        "At its roofline, {name} would take {then} instead of {busy}.",
        name=Phrase(name, link("roofline", **set_params(params), select=roofline_key(best))),
        then=_short(best.busy_ns - best.saved_ns),
        busy=format_duration(best.busy_ns),
    )


def _short(ns: float) -> str:
    """Format a duration; no kernel takes less than a microsecond, whatever its roofline."""
    return format_duration(ns) if ns >= 1000 else "less than 1 µs"


def roofline_key(row: RooflineRow) -> str:
    """Return how the page names a row in its address."""
    return row.name if row.input_shape is None else f"{row.name} | {row.input_shape}"
