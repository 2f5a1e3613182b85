"""Rules about sentences on how near a device comes to its peak rates."""

from __future__ import annotations

import re

from tests.support.random_jobs.rules import NUMBER, SHARE, Check, Context, first_reason, ratio, us


def _mfu(context: Context) -> float:
    assert context.plan.gpu is not None
    flops, _, _ = context.truth.products(context.rank, context.odd)
    return flops / (context.typical * 1e-6 * context.plan.gpu.flops)


def _judge_mfu(match: re.Match[str], context: Context) -> str | None:
    """Check the FLOP/s of the products over the peak of the device, and for which model that is said."""
    if context.plan.gpu is None:
        return "nobody knows its peaks"
    true, model = _mfu(context), match["model"].split(" ")[0]
    return first_reason(
        None if abs(ratio(match["share"]) - true) <= 0.05 * true + 0.001 else f"it is {true:.1%}",
        None if model in context.plan.gpu.name else f"it is {context.plan.gpu.name}",
    )


def _judge_roofline(match: re.Match[str], context: Context) -> str | None:
    """Check by how much its roofline is faster than the products."""
    _, time, shortest = context.truth.products(context.rank, context.odd)
    said, true = us(match["then"]) / us(match["now"]), shortest / time
    return None if abs(said - true) <= 0.05 * true else f"it is {true:.1%} of the time"


def _judge_peaks(match: re.Match[str], context: Context) -> str | None:
    gpu = context.plan.gpu
    if gpu is None:
        return "nobody knows its peaks"
    flops, memory = (float(match[name].replace(",", "")) for name in ("flops", "memory"))
    right = abs(flops / (gpu.flops / 1e12) - 1) < 0.02 and abs(memory / (gpu.memory / 1e9) - 1) < 0.02
    return None if right else f"they are {gpu}"


PEAK_RULES: tuple[tuple[str, Check], ...] = (
    (
        rf"MFU is (?:at least )?(?P<share>{SHARE}) on (?P<model>[\w -]+)"
        rf"(?: \((?:nearly all|{SHARE} of) kernel time has known work\))?\.",
        _judge_mfu,
    ),
    (rf"MFU: (?:≥ )?(?P<share>{SHARE}) of (?P<model>.+)", _judge_mfu),
    (
        rf"At its roofline, mm would take (?P<then>{NUMBER}) instead of (?P<now>{NUMBER})\.",
        _judge_roofline,
    ),
    (r"Peaks of .*: bf16 (?P<flops>[\d,.]+) TFLOP/s, memory (?P<memory>[\d,.]+) GB/s", _judge_peaks),
)
"""(pattern of a whole sentence, what makes it false)."""
