"""Serving on a terminal: rates, phases, what to set, what an iteration costs, and stalls."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.format import format_duration, format_number
from torch_tb_profiler.base.grammar import agree, capitalize, join_words
from torch_tb_profiler.cli.screens.screen import (
    Column,
    Row,
    Screen,
    Table,
    facts_of,
    payload_text,
    sentences_of,
)

CAUSES = {
    "scheduler": "Scheduler",
    "launch": "Preparing and launching",
    "sampling_sync": "Sampling and sync",
    "network": "Other processes",
    "host_unrecorded": "Host, not recorded",
    "kernel_gaps": "Between kernels",
    "idle": "No requests",
    "prefill_blocks_decode": "Prefill holds up decodes",
    "preemption": "Preempted, recomputed",
    "slow_device": "Slow kernels",
}
"""Cause of idle time or of a stall -> its title."""

_COSTS = (
    ("fixed_ns", "fixed"),
    ("per_prompt_token_ns", "per prompt token"),
    ("per_request_ns", "per decoding request"),
    ("per_kv_token_ns", "per KV token"),
)

_RATES = {
    "output_tokens_per_s": "Output",
    "prompt_tokens_per_s": "Prompt",
    "between_tokens_median_ns": "Between tokens",
    "requests_mean": "Requests in a batch",
    "kv_tokens_mean": "KV cache",
    "time_to_first_token_ns": "Time to first token",
    "queue_median_ns": "Time in queue",
}


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `ServingPayload`."""
    rates = payload["rates"]
    idle = [
        {"title": CAUSES.get(cause, cause), "time_ns": time}
        for cause, time in sorted(payload["idle_by_cause"].items(), key=lambda part: -part[1])
        if time > 0
    ]
    return Screen(
        [*sentences_of(payload, "headline", "details"), *_unknown_rates(rates["reasons"])],
        facts_of(
            ("Iterations", f"{len(payload['iterations']['phase']):,}"),
            ("Output", _number(rates["output_tokens_per_s"], " tokens/s")),
            ("Prompt", _number(rates["prompt_tokens_per_s"], " tokens/s")),
            ("Between tokens", format_duration(rates["between_tokens_median_ns"])),
            ("Requests in a batch", _number(rates["requests_mean"])),
            ("KV cache", _number(rates["kv_tokens_mean"], " tokens")),
            ("Time to first token", _duration(rates["time_to_first_token_ns"])),
            ("Time in queue", _duration(rates["queue_median_ns"])),
        ),
        [
            Table(_PHASES, [_phase_row(row) for row in payload["phases"]], "phase"),
            Table(_ADVICE, _advice_rows(payload["advice"]), "setting", "What to set", detail="detail"),
            Table(
                (
                    Column("title", "Idle time", "text"),
                    Column("time_ns", "Time", total=sum(payload["idle_by_cause"].values())),
                ),
                idle,
                "cause",
                "Where the idle time goes",
            ),
            Table(_COST, _cost_rows(payload["cost"]), "cost", "What an iteration costs"),
            Table(
                _STALLS,
                [{**row, "cause": CAUSES.get(row["cause"], row["cause"])} for row in payload["stalls"]],
                "stall",
                "Stalls",
            ),
        ],
    )


_PHASES = (
    Column("phase", "Phase", "text"),
    Column("iterations", "Iterations", "count"),
    Column("share", "Time", "ratio", total=1),
    Column("median_ns", "Median"),
    Column("p99_ns", "p99"),
    Column("tokens", "Tokens each", "number"),
    Column("idle_share", "Idle", "ratio"),
    Column("mostly", "Mostly", "text"),
)

_ADVICE = (
    Column("number", "", "count"),
    Column("title", "Change", "text"),
    Column("gain_ns", "Saves up to", rounding="up"),
)

_COST = (
    Column("title", "Cost", "text"),
    Column("value", "Time"),
    Column("low", "From"),
    Column("high", "To"),
    Column("reason", "Unknown because", "text"),
)

_STALLS = (
    Column("iteration", "Iteration", "count"),
    Column("start_ns", "At"),
    Column("extra_ns", "Extra time"),
    Column("requests", "Requests held up", "count"),
    Column("cause", "Cause", "text"),
    Column("event", "Event", "number", hidden=True),
)


def _unknown_rates(reasons: dict[str, str]) -> list[str]:
    """Return a sentence for each reason why rates are unknown, with all rates that it is the reason of."""
    rates: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        if name in _RATES:
            rates.setdefault(reason, []).append(_RATES[name])
    return [
        f"{capitalize(join_words([name.lower() if name != 'KV cache' else name for name in names]))} "
        f"{agree(len(names), 'is', 'are')} unknown: {reason}."
        for reason, names in rates.items()
    ]


def _number(value: float | None, unit: str = "") -> str | None:
    return None if value is None else f"{format_number(value)}{unit}"


def _duration(value: float | None) -> str | None:
    return None if value is None else format_duration(value)


def _phase_row(row: Row) -> Row:
    mostly = row["mostly"]
    return {
        **row,
        "phase": row["phase"] or "unknown",
        "mostly": "none" if mostly is None else CAUSES.get(mostly, mostly),
    }


def _advice_rows(advice: list[Row]) -> list[Row]:
    return [
        {**each, "number": number, "title": payload_text(each["title"]), "detail": payload_text(each["detail"])}
        for number, each in enumerate(advice, 1)
    ]


def _cost_rows(cost: Row) -> list[Row]:
    """Return the costs of an iteration with their 95% intervals; [] if none of them is known."""
    rows = [{"title": title, **cost[name]} for name, title in _COSTS]
    batch = cost["one_batch"]
    if batch:
        rows.append({"title": f"decode, {batch['requests']:,} requests", "value": batch["duration_ns"]})
    return rows if any(row["value"] is not None for row in rows) else []
